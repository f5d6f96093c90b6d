/* gpu/cuda/ism/last_narrow.cuh: the last product of `ism` in FP32 where there are few columns, as
 * last.cuh is in FP64: Z = A0^-1 - (G R) K goes from the registers to the answer, and with it
 * go T Z and the sums of magnitudes of its columns. Z is written once and never read.
 *
 * A block has a strip of columns, whose part of K stays in shared memory, and goes down a part of
 * its rows, CUDA__ISM_NARROW_ROWS at a time; lines of (G R)^T and of T are double-
 * buffered: one place is filled while the other is worked on. A thread has 8 x 8 numbers of Z, and
 * adds up what it has seen of its columns; the threads of a column are added at the end, and the
 * blocks of a strip by cuda__ism_last_sum_kernel, in an order that n alone decides. Tensor cores
 * would take FP32's digits.
 *
 * Cost: n^2 numbers written, and read where A0^-1 is given; (G R)^T read once a strip, from the
 * second-level cache. Device code; a slot a blockIdx.y.
 */
#ifndef GPU_CUDA_ISM_LAST_NARROW_CUH
#define GPU_CUDA_ISM_LAST_NARROW_CUH

#include "gpu/cuda/ism/last.cuh"
#include "gpu/cuda/ism/last_row.cuh"

#define CUDA__ISM_NARROW_THREADS 256
#define CUDA__ISM_NARROW_STEP 8 /* columns of X and Y that are multiplied without a branch */
#define CUDA__ISM_NARROW_EACH 8 /* rows and columns of a thread */
#define CUDA__ISM_NARROW_DOWN 4 /* warps of a block that have the same columns */

/* Lines of K, and of a place. */
static constexpr __host__ __device__ __forceinline__ int cuda__ism_narrow_inner(int64_t m)
{
    return (int)((m + CUDA__ISM_NARROW_STEP - 1) / CUDA__ISM_NARROW_STEP * CUDA__ISM_NARROW_STEP);
}

static constexpr size_t cuda__ism_narrow_bytes(int64_t m)
{
    const int inner = cuda__ism_narrow_inner(m);
    return (size_t)(inner * CUDA__ISM_LAST_STRIP +
                    2 * (inner + CUDA__ISM_CHECK_PROBES) * CUDA__ISM_NARROW_ROWS) *
           sizeof(float);
}

/* There is no shape that takes less. */
static_assert(cuda__ism_narrow_bytes(CUDA__ISM_LAST_MAX) <= 99 * 1024,
              "a block has no more at compute capability 8.6");

/* A block. Rows and columns of a thread come by fours: a warp has 32 rows and 64 columns. */
template <bool Given> struct cuda__ism_narrow_block {
    static constexpr int strip = CUDA__ISM_LAST_STRIP, rows = CUDA__ISM_NARROW_ROWS;
    static constexpr int each = CUDA__ISM_NARROW_EACH, down = CUDA__ISM_NARROW_DOWN;
    static_assert(rows == down * 32 && CUDA__ISM_NARROW_THREADS == 2 * down * CUDA__WARP &&
                      strip == 2 * 64 && strip == rows && each == 8,
                  "what the warps have");

    const cuda__ism_call &call;
    float *k;                 /* shared: `inner` lines of -K */
    float *places;            /* shared: two of inner + CUDA__ISM_CHECK_PROBES lines */
    int n, ld, inner, column; /* column: of the strip */
    int at_row, at_column;    /* the thread's first, in the block */
    float *to;                /* the answer; NULL: no one wants it */
    bool within, wide;        /* the strip is all there; and rows of the answer, of 16 bytes */
    float sums[CUDA__ISM_LAST_SUMS][each];

    __device__ __forceinline__ const float *line(int array, int64_t number) const
    {
        return cuda__ism_array_of<float>(call, blockIdx.y, array) + number * ld;
    }

    /* Row r of the thread, and column c. */
    static __device__ __forceinline__ int row_of(int r)
    {
        return r / 4 * 16 + r % 4;
    }
    static __device__ __forceinline__ int column_of(int c)
    {
        return c / 4 * 32 + c % 4;
    }

    __device__ __forceinline__ float *place(int number) const
    {
        return places + number * (inner + CUDA__ISM_CHECK_PROBES) * rows;
    }

    /* Four numbers to shared memory, of which `left` are there; behind them come zeros. */
    static __device__ __forceinline__ void stage(float *to, const float *from, int left)
    {
        if (left >= 4) {
            cuda__copy_async<16>(to, from);
            return;
        }
#pragma unroll
        for (int e = 0; e < 4; e++)
            to[e] = e < left ? from[e] : 0;
    }

    /* Lines of (G R)^T and T in rows `row` and on. */
    __device__ __forceinline__ void fetch(int row, int number) const
    {
        constexpr int pieces = rows / 4, step = CUDA__ISM_NARROW_THREADS / pieces;
        const int first = (int)threadIdx.x / pieces, i = (int)threadIdx.x % pieces * 4;
        float *lines = place(number) + i;
        for (int l = first; l < call.m; l += step)
            stage(lines + l * rows, line(CUDA__ISM_GR, l) + row + i, n - row - i);
        if (first < CUDA__ISM_CHECK_PROBES)
            stage(lines + (inner + first) * rows, (const float *)call.probes + first * ld + row + i,
                  n - row - i);
    }

    /* The strip's part of -K; and zeros behind m, in the places too. */
    __device__ __forceinline__ void begin() const
    {
        const int m = (int)call.m;
        for (int e = (int)threadIdx.x; e < inner * strip; e += CUDA__ISM_NARROW_THREADS) {
            const int l = e / strip, j = column + e % strip;
            k[e] = l < m && j < n ? -line(CUDA__ISM_K, l)[j] : 0;
        }
        for (int e = (int)threadIdx.x; e < (inner - m) * rows; e += CUDA__ISM_NARROW_THREADS) {
            place(0)[m * rows + e] = 0;
            place(1)[m * rows + e] = 0;
        }
    }

    /* What the thread's numbers begin from, in rows `row` and on. */
    __device__ __forceinline__ void take_known(float (&z)[each][each], int row) const
    {
#pragma unroll
        for (int r = 0; r < each; r++) {
            const int i = row + at_row + row_of(r);
#pragma unroll
            for (int c = 0; c < each; c += 4) {
                const int j = column + at_column + column_of(c);
                if (Given && i < n && (within || j + 4 <= n)) {
                    *(float4 *)&z[r][c] = *(const float4 *)(line(CUDA__ISM_B, i) + j);
                    continue;
                }
#pragma unroll
                for (int e = 0; e < 4; e++)
                    z[r][c + e] = Given && i < n && j + e < n ? line(CUDA__ISM_B, i)[j + e] : 0;
            }
        }
    }

    __device__ __forceinline__ void multiply(float (&z)[each][each], const float *lines) const
    {
        const float *left = lines + at_row, *right = k + at_column;
#pragma unroll 1
        for (int l = 0; l < inner; l += CUDA__ISM_NARROW_STEP) {
#pragma unroll
            for (int e = 0; e < CUDA__ISM_NARROW_STEP; e++, left += rows, right += strip) {
                alignas(16) float a[each], b[each];
#pragma unroll
                for (int q = 0; q < each; q += 4) {
                    *(float4 *)&a[q] = *(const float4 *)(left + row_of(q));
                    *(float4 *)&b[q] = *(const float4 *)(right + column_of(q));
                }
#pragma unroll
                for (int r = 0; r < each; r++) {
#pragma unroll
                    for (int c = 0; c < each; c++)
                        z[r][c] = fma(a[r], b[c], z[r][c]);
                }
            }
        }
    }

    __device__ __forceinline__ void add_diagonal(float (&z)[each][each], int row) const
    {
        const float *diagonal = line(CUDA__ISM_E, 0);
#pragma unroll
        for (int r = 0; r < each; r++) {
            const int i = row + at_row + row_of(r);
#pragma unroll
            for (int c = 0; c < each; c++) {
                if (i < n && i == column + at_column + column_of(c))
                    z[r][c] += diagonal[i];
            }
        }
    }

    /* The thread's numbers to the answer, in rows `row` and on. */
    __device__ __forceinline__ float *place_of(int row, int r, int c) const
    {
        return to + (int64_t)(row + at_row + row_of(r)) * n + column + at_column + column_of(c);
    }

    /* All of them are there, and rows begin at 16 bytes. */
    __device__ __forceinline__ void store_wide(const float (&z)[each][each], int row) const
    {
#pragma unroll
        for (int r = 0; r < each; r++) {
#pragma unroll
            for (int c = 0; c < each; c += 4)
                *(float4 *)place_of(row, r, c) = *(const float4 *)&z[r][c];
        }
    }

    /* A part of them may be beyond its end. */
    __device__ __forceinline__ void store(const float (&z)[each][each], int row) const
    {
#pragma unroll
        for (int r = 0; r < each; r++) {
#pragma unroll
            for (int c = 0; c < each; c++) {
                if (row + at_row + row_of(r) < n && column + at_column + column_of(c) < n)
                    *place_of(row, r, c) = z[r][c];
            }
        }
    }

    /* All numbers of the warp are there, and rows begin anywhere: every fourth one alike. */
    __device__ __forceinline__ void store_shifted(const float (&z)[each][each], int row) const
    {
        typedef cuda__ism_last_row<float, 8> piece;
#pragma unroll
        for (int r = 0; r < each; r++)
            piece::store(&z[r][0], &z[r][4], place_of(row, r, 0), at_column / 4 % 8,
                         piece::lead(to + r % 4 * n));
    }

    __device__ __forceinline__ void write(const float (&z)[each][each], int row) const
    {
        if (wide && row + rows <= n)
            store_wide(z, row);
        else if (row + at_row / 32 * 32 + 32 <= n && column + at_column / 64 * 64 + 64 <= n)
            store_shifted(z, row);
        else
            store(z, row);
    }

    __device__ __forceinline__ void add_up(const float (&z)[each][each], const float *lines)
    {
#pragma unroll
        for (int r = 0; r < each; r++) {
            float weight[CUDA__ISM_CHECK_PROBES];
#pragma unroll
            for (int l = 0; l < CUDA__ISM_CHECK_PROBES; l++)
                weight[l] = lines[(inner + l) * rows + at_row + row_of(r)];
#pragma unroll
            for (int c = 0; c < each; c++) {
#pragma unroll
                for (int l = 0; l < CUDA__ISM_CHECK_PROBES; l++)
                    sums[l][c] = fma(weight[l], z[r][c], sums[l][c]);
                sums[CUDA__ISM_CHECK_PROBES][c] += fabs(z[r][c]);
            }
        }
    }

    /* The block's sums, to its lines of PARTS: of a warp, and then of those below one another. */
    __device__ __forceinline__ void conclude()
    {
        float *parts = cuda__ism_array_of<float>(call, blockIdx.y, CUDA__ISM_PARTS) +
                       blockIdx.z * CUDA__ISM_LAST_SUMS * ld;
        const int lane = (int)threadIdx.x % CUDA__WARP, warp = (int)threadIdx.x / CUDA__WARP;
        float *of_warps = places + warp / 2 * CUDA__ISM_LAST_SUMS * strip;
        __syncthreads();
#pragma unroll
        for (int s = 0; s < CUDA__ISM_LAST_SUMS; s++) {
#pragma unroll
            for (int c = 0; c < each; c++) {
                float sum = sums[s][c];
                for (int reach = CUDA__WARP / 2; reach >= 8; reach /= 2)
                    sum += __shfl_xor_sync(CUDA__ALL, sum, reach);
                if (lane < 8)
                    of_warps[s * strip + at_column + column_of(c)] = sum;
            }
        }
        __syncthreads();
        for (int e = (int)threadIdx.x; e < CUDA__ISM_LAST_SUMS * strip;
             e += CUDA__ISM_NARROW_THREADS) {
            float sum = 0;
            for (int w = 0; w < down; w++)
                sum += places[w * CUDA__ISM_LAST_SUMS * strip + e];
            if (column + e % strip < n)
                parts[e / strip * ld + column + e % strip] = sum;
        }
    }

    /* Rows from `first` to `end`. */
    __device__ __forceinline__ void run(int first, int end)
    {
        begin();
        fetch(first, 0);
#pragma unroll 1
        for (int row = first, now = 0; row < end; row += rows, now ^= 1) {
            alignas(16) float z[each][each];
            take_known(z, row);
            cuda__copy_arrive();
            __syncthreads();
            if (row + rows < end)
                fetch(row + rows, now ^ 1);
            multiply(z, place(now));
            if (!Given && row == column) /* parts begin where strips do */
                add_diagonal(z, row);
            if (to)
                write(z, row);
            add_up(z, place(now));
        }
        conclude();
    }
};

/* blockIdx.x: the strip, blockIdx.z: the part of its rows, `rows` each. */
template <bool Given>
static __global__ void __launch_bounds__(CUDA__ISM_NARROW_THREADS)
    cuda__ism_last_narrow_kernel(const cuda__ism_call call, int rows)
{
    cuda__wait_for_previous();
    typedef cuda__ism_narrow_block<Given> of;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    const int n = (int)call.n, begin = (int)blockIdx.z * rows, end = begin + rows;
    const int lane = (int)threadIdx.x % CUDA__WARP, warp = (int)threadIdx.x / CUDA__WARP;
    const int inner = cuda__ism_narrow_inner(call.m);
    const bool within = ((int)blockIdx.x + 1) * of::strip <= n;
    float *to = cuda__ism_output<float>(call, blockIdx.y, METHOD_ISM_INVERSE, call.n * call.n);
    float *shared = cuda__held((float *)cuda__memory);
    of block = {call,
                shared,
                shared + inner * of::strip,
                n,
                (int)call.ld,
                inner,
                (int)blockIdx.x * of::strip,
                warp / 2 * 32 + lane / 8 * 4,
                warp % 2 * 64 + lane % 8 * 4,
                to,
                within,
                to && within && n % 4 == 0 && (uintptr_t)to % 16 == 0,
                {}};
    block.run(begin, end < n ? end : n);
}

#endif
