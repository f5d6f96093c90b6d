/* gpu/cuda/tridiagonal/generators.cuh: the lines of X as the outputs GENERATORS and EXPONENTS have
 * them: mantissa * 2^(64 exponent), 32 bits for the exponent, and the mantissa from 2^-32 to 2^32.
 *
 * Where A falls apart, lines hold a factor that no such exponent has room for. It is taken out, and
 * exponents are moved by as little as makes products across the gap underflow, as
 * gpu/host/tridiagonal/generators.c does it: one thread for each side of the diagonal.
 *
 * Cost: O(n), and where A falls apart some ten cycles a row for those two.
 */
#ifndef GPU_CUDA_TRIDIAGONAL_GENERATORS_CUH
#define GPU_CUDA_TRIDIAGONAL_GENERATORS_CUH

#include "gpu/cuda/tridiagonal/device.cuh"

#define CUDA__TRI_UNIT 64         /* of exponents */
#define CUDA__TRI_UNDERFLOW (-18) /* units below which a product of two mantissas underflows */

template <typename T, int Threads> struct cuda__tri_generators {
    cuda__tri_part part;
    int64_t n;

    /* Exponents of line k. The sweep from below, and the sums, are no longer needed. */
    __device__ __forceinline__ int32_t *exponents(int k) const
    {
        return (int32_t *)part.array(CUDA__TRI_REST) + k * part.pitch;
    }

    /* How often a number holds CUDA__NOTHING: exponents are smaller than half of that otherwise. */
    static __device__ __forceinline__ int64_t nothings(const cuda__number &number)
    {
        return (number.exponent + CUDA__NOTHING / 2) >> 38;
    }

    /* The exponent without them. */
    static __device__ __forceinline__ int64_t clean(const cuda__number &number)
    {
        return number.exponent - (nothings(number) << 38);
    }

    static __device__ __forceinline__ int32_t units(const cuda__number &number)
    {
        return (int32_t)((clean(number) + CUDA__TRI_UNIT / 2 - 1) >> 6);
    }

    /* The part of A that row i is in, by a number that differs from its neighbours'. A line that is
     * zero there shows nothing. */
    __device__ __forceinline__ int64_t segment(int early, int late, int64_t i,
                                               int64_t otherwise) const
    {
        cuda__number row = part.line(early)[i], column = part.line(late)[i];
        if (row.mantissa != 0)
            return nothings(row);
        return column.mantissa != 0 ? -nothings(column) : otherwise;
    }

    __device__ __forceinline__ int64_t larger(int line, int64_t i, int64_t most) const
    {
        int64_t here = exponents(line)[i];
        return part.line(line)[i].mantissa != 0 && here > most ? here : most;
    }

    /* Numbers of `early` in one part of A times numbers of `late` in a later one underflow. */
    __device__ __forceinline__ void separate(int early, int late) const
    {
        const int64_t none = -(INT64_C(1) << 40);
        int64_t max_early = none, here = segment(early, late, 0, 0);
        for (int64_t first = 0, end = 0; first < n; first = end) {
            int64_t number = here, widest = none, most = none;
            for (end = first; end < n && here == number; end++) {
                widest = larger(early, end, widest);
                most = larger(late, end, most);
                here = end + 1 < n ? segment(early, late, end + 1, number) : number + 1;
            }
            int64_t down = max_early + most - CUDA__TRI_UNDERFLOW;
            down = down > 0 ? down : 0;
            for (int64_t i = first; i < end; i++) {
                exponents(early)[i] += (int32_t)down;
                exponents(late)[i] -= (int32_t)down;
            }
            max_early = widest + down > max_early ? widest + down : max_early;
        }
    }

    /* All threads, together. NULL: not wanted. */
    __device__ __forceinline__ void write(T *mantissas, int32_t *wanted) const
    {
        for (int64_t i = threadIdx.x; i < n; i += Threads) {
            for (int k = 0; k < CUDA__TRI_LINES; k++)
                exponents(k)[i] = units(part.line(k)[i]);
        }
        __syncthreads();
        if (threadIdx.x == 0)
            separate(CUDA__TRI_UPPER_ROW, CUDA__TRI_UPPER_COLUMN);
        if (threadIdx.x == 1)
            separate(CUDA__TRI_LOWER_COLUMN, CUDA__TRI_LOWER_ROW);
        __syncthreads();
        for (int64_t i = threadIdx.x; i < n; i += Threads) {
            for (int k = 0; k < CUDA__TRI_LINES; k++) {
                cuda__number number = part.line(k)[i];
                int down = (int)(clean(number) - (int64_t)units(number) * CUDA__TRI_UNIT);
                if (mantissas)
                    mantissas[k * n + i] = (T)cuda__scale(number.mantissa, down);
                if (wanted)
                    wanted[k * n + i] = exponents(k)[i];
            }
        }
    }

    /* There are none. */
    __device__ __forceinline__ void refuse(T *mantissas, int32_t *wanted) const
    {
        for (int64_t i = threadIdx.x; i < CUDA__TRI_LINES * n; i += Threads) {
            if (mantissas)
                mantissas[i] = cuda__real<T>::nan();
            if (wanted)
                wanted[i] = 0;
        }
    }
};

template <typename T, int Threads>
static __device__ __noinline__ void cuda__tri_write_generators(cuda__tri_part part, int64_t n,
                                                               bool found, T *mantissas,
                                                               int32_t *exponents)
{
    cuda__tri_generators<T, Threads> generators = {part, n};
    if (found)
        generators.write(mantissas, exponents);
    else
        generators.refuse(mantissas, exponents);
    __syncthreads();
}

#endif
