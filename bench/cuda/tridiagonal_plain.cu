/* bench/cuda/tridiagonal_plain.cu: "Accelerating Tridiagonal Matrix Inversion on the GPU" (Demere,
 * Hormenou, Yoon) as it is printed: the matrix is reorganised into blocks of two rows, these are
 * inverted, and level by level neighbours are merged with one thread an entry. Kept here alone, to
 * be measured against. It needs matrices whose halves stay dominant with the signs as printed.
 */
#include "bench/cuda/tridiagonal.cuh"

namespace
{

#define THREADS 256

template <typename T>
__global__ void reorganise(const T *dl, const T *d, const T *du, T *a, int64_t n)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        a[i] = d[i] - (i % 2 ? (i + 1 < n ? dl[i] : 0) : (i > 0 ? du[i - 1] : 0));
}

template <typename T>
__global__ void invert_pairs(const T *dl, const T *a, const T *du, T *x, int64_t n)
{
    int64_t i = 2 * ((int64_t)blockIdx.x * THREADS + threadIdx.x);
    if (i + 1 >= n)
        return;
    T determinant = a[i] * a[i + 1] - du[i] * dl[i];
    x[i * n + i] = a[i + 1] / determinant;
    x[i * n + i + 1] = -du[i] / determinant;
    x[(i + 1) * n + i] = -dl[i] / determinant;
    x[(i + 1) * n + i + 1] = a[i] / determinant;
}

/* Entry (i, j) of the blocks of 2 * half rows, from those of half rows. */
template <typename T>
__global__ void merge(const T *dl, const T *du, const T *from, T *to, int64_t n, int64_t half)
{
    int64_t size = 2 * half, index = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    int64_t i = index / size, first = i / size * size, j = first + index % size;
    if (i >= n)
        return;
    int64_t h = first + half - 1;
    T divisor = 1 + dl[h] * from[h * n + h] + du[h] * from[(h + 1) * n + h + 1];
    T left = i <= h ? from[i * n + h] : from[i * n + h + 1];
    T right = j <= h ? dl[h] * from[h * n + j] : du[h] * from[(h + 1) * n + j];
    T before = (i <= h) == (j <= h) ? from[i * n + j] : 0;
    to[i * n + j] = before - left * right / divisor;
}

unsigned blocks(int64_t threads)
{
    return (unsigned)((threads + THREADS - 1) / THREADS);
}

template <typename T> void run(tridiagonal_bed<T> &bed, T *other, T *reorganised)
{
    int64_t n = bed.n;
    T *from = bed.x.at(0), *to = other;
    const T *dl = bed.dl.at(0), *d = bed.d.at(0), *du = bed.du.at(0);
    reorganise<<<blocks(n), THREADS>>>(dl, d, du, reorganised, n);
    invert_pairs<<<blocks(n / 2), THREADS>>>(dl, (const T *)reorganised, du, from, n);
    for (int64_t half = 2; half < n; half *= 2) {
        merge<<<blocks(2 * half * n), THREADS>>>(dl, du, (const T *)from, to, n, half);
        std::swap(from, to);
    }
    SMALL_TRY(cudaGetLastError());
}

template <typename T> double time_plain(tridiagonal_bed<T> &bed, T *other)
{
    device_array<T> reorganised(bed.n);
    return clock_seconds([&](int) { run(bed, other, reorganised.at(0)); }, 3);
}

} // namespace

double tridiagonal_plain(tridiagonal_bed<float> &bed, float *other)
{
    return time_plain(bed, other);
}

double tridiagonal_plain(tridiagonal_bed<double> &bed, double *other)
{
    return time_plain(bed, other);
}
