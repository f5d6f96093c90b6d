/* bench/gpu/fill.cu: see clock.h. */
#include "bench/gpu/clock.h"

#include "bench/gpu/random.cuh"
#include "gpu/cuda/base/ptx.cuh"
#include "gpu/cuda/base/real.cuh"

namespace
{

/* f(i) for every i below count. */
template <typename F> __global__ void each(size_t count, F f)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += step)
        f(i);
}

template <typename F> void run_each(size_t count, F f)
{
    if (count > 0)
        each<<<1024, 256>>>(count, f);
    TRY(cudaGetLastError());
}

} // namespace

template <typename T> void draw(T *a, size_t count, double scale, double diagonal, int64_t n)
{
    run_each(count, [=] __device__(size_t i) {
        int64_t at = n > 0 ? (int64_t)(i % (size_t)(n * n)) : 1;
        T random = (T)random_number(i) * (T)scale;
        a[i] = random + (n > 0 && at / n == at % n ? (T)diagonal : T(0));
    });
}

template <typename T> __global__ void stream_kernel(T *x, size_t pieces)
{
    typedef typename cuda__real<T>::vector vector;
    T values[cuda__real<T>::width];
    for (T &value : values)
        value = 1;
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < pieces; i += step)
        cuda__store_stream((vector *)x + i, values);
}

template <typename T> void fill_streaming(T *a, size_t count)
{
    stream_kernel<<<132 * 16, 256>>>(a, count / cuda__real<T>::width);
    TRY(cudaGetLastError());
}

/* The sum is for the compiler's eyes. */
template <typename T> __global__ void read_kernel(const T *a, size_t count, T *sink)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    T sum = 0;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += step)
        sum += a[i] * a[i];
    if (sum < 0)
        *sink = sum;
}

template <typename T> void read_all(const T *a, size_t count)
{
    static device_array<T> sink(1);
    read_kernel<<<1024, 256>>>(a, count, sink.at(0));
    TRY(cudaGetLastError());
}

template <typename T> void scale(T *a, size_t count, double factor)
{
    run_each(count, [=] __device__(size_t i) { a[i] *= (T)factor; });
}

template <typename T> void make_identity(T *x, int64_t n, int64_t matrices)
{
    run_each((size_t)(n * n * matrices), [=] __device__(size_t i) {
        int64_t at = (int64_t)(i % (size_t)(n * n));
        x[i] = at / n == at % n ? 1 : 0;
    });
}

template <typename T> void widen(double *to, const T *from, size_t count, bool magnitudes)
{
    run_each(count, [=] __device__(size_t i) {
        to[i] = magnitudes ? fabs((double)from[i]) : (double)from[i];
    });
}

std::vector<double> clock_copies(void *to, const void *from, size_t all, size_t bytes, int calls)
{
    size_t part = std::min(bytes / 2, all), places = (all - part) / part + 1;
    std::vector<double> rounds =
        clock_rounds([] {},
                     [&](int i) {
                         size_t at = (size_t)i % places * part / 256 * 256;
                         TRY(cudaMemcpyAsync((char *)to + at, (const char *)from + at, part,
                                             cudaMemcpyDeviceToDevice));
                     },
                     calls);
    for (double &seconds : rounds)
        seconds *= (double)(bytes / 2) / (double)part;
    return rounds;
}

#define INSTANCES(T)                                                                               \
    template void draw(T *, size_t, double, double, int64_t);                                      \
    template void fill_streaming(T *, size_t);                                                     \
    template void read_all(const T *, size_t);                                                     \
    template void scale(T *, size_t, double);                                                      \
    template void make_identity(T *, int64_t, int64_t);                                            \
    template void widen(double *, const T *, size_t, bool);
INSTANCES(float)
INSTANCES(double)
