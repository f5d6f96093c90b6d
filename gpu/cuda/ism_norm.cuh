/* gpu/cuda/ism_norm.cuh: |A| of A = D + X Y^T for large orders, where D is diagonal: the search of
 * ism_trial.cuh in fewer and shorter kernels, which take what is given and nothing else, so that
 * they can run beside the work.
 *
 * First come the columns' bounds (ism_terms.cuh). A round: L X for eight lines L (those of the
 * trial, then signs), by parts of the rows; the columns' scores by L X Y^T; the eight columns with
 * the largest, or the second time four, and four by their bounds (cuda__ism_choose_kernel); and
 * those columns' norms and signs. Sums are taken in an order that n and m alone decide.
 *
 * Cost: the bounds read X and Y once, a round X twice and Y once. Device code; a slot a blockIdx.y.
 */
#ifndef GPU_CUDA_ISM_NORM_CUH
#define GPU_CUDA_ISM_NORM_CUH

#include "gpu/cuda/ism_trial.cuh"

#define CUDA__ISM_NORM_PAIR 2   /* lines that a thread has */
#define CUDA__ISM_NORM_HELD 256 /* rows of lines that a block holds */
static_assert(CUDA__ISM_NORM_TILE * CUDA__ISM_PROBES == CUDA__ISM_THREADS * CUDA__ISM_NORM_PAIR,
              "a thread has two lines of a row");

/* L X, of a part of the rows, `rows` of them: eight lines of ldm numbers in BESIDE a part.
 * blockIdx.x: 64 columns, blockIdx.z: the part. signs: L is SIGNS. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_norm_probe_kernel(const cuda__ism_call call, int rows, bool signs)
{
    constexpr int tile = CUDA__ISM_NORM_TILE, groups = CUDA__ISM_THREADS / tile;
    __shared__ __align__(16) T lines[CUDA__ISM_NORM_HELD][CUDA__ISM_PROBES];
    __shared__ T sums[groups][CUDA__ISM_PROBES][tile];
    const int64_t slot = blockIdx.y;
    const int n = (int)call.n, group = (int)threadIdx.x / tile, c = (int)threadIdx.x % tile;
    const int column = (int)blockIdx.x * tile + c, first = (int)blockIdx.z * rows;
    const int end = first + rows < n ? first + rows : n;
    const T *from =
        signs ? cuda__ism_array_of<T>(call, slot, CUDA__ISM_SIGNS) : (const T *)call.lines;
    const T *x = cuda__ism_array_of<T>(call, slot, CUDA__ISM_X);
    T sum[CUDA__ISM_PROBES] = {};
    for (int row = first; row < end; row += CUDA__ISM_NORM_HELD) {
        const int held = end - row < CUDA__ISM_NORM_HELD ? end - row : CUDA__ISM_NORM_HELD;
        for (int i = (int)threadIdx.x; i < held; i += CUDA__ISM_THREADS) {
#pragma unroll
            for (int l = 0; l < CUDA__ISM_PROBES; l++)
                lines[i][l] = from[l * call.ld + row + i];
        }
        __syncthreads();
#pragma unroll 16
        for (int r = group; r < held; r += groups) {
            T value = column < call.m ? x[(row + r) * call.ldm + column] : T(0);
#pragma unroll
            for (int l = 0; l < CUDA__ISM_PROBES; l++)
                sum[l] = fma(lines[r][l], value, sum[l]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int l = 0; l < CUDA__ISM_PROBES; l++)
        sums[group][l][c] = sum[l];
    __syncthreads();
    T *to = cuda__ism_array_of<T>(call, slot, CUDA__ISM_BESIDE) +
            blockIdx.z * CUDA__ISM_PROBES * call.ldm;
    for (int l = group; l < CUDA__ISM_PROBES && column < call.m; l += groups) {
        T all = 0;
        for (int g = 0; g < groups; g++)
            all += sums[g][l][c];
        to[l * call.ldm + column] = all;
    }
}

/* A block's 64 rows of X or Y times eight lines of m numbers: a thread has a row and two lines. */
template <typename T> struct cuda__ism_norm_rows {
    static constexpr int tile = CUDA__ISM_NORM_TILE;
    struct shared {
        T rows[tile][tile + 1];
        alignas(16) T lines[tile][CUDA__ISM_PROBES];
    };

    const cuda__ism_call &call;
    shared &memory;
    int row, pair; /* the thread's row of the block, and its first line */

    /* source(line, column): of the eight lines. */
    template <typename F>
    __device__ __forceinline__ void multiply(int array, F source, T (&sums)[CUDA__ISM_NORM_PAIR])
    {
        constexpr int groups = CUDA__ISM_THREADS / tile;
        const T *from = cuda__ism_array_of<T>(call, blockIdx.y, array);
        const int first = (int)blockIdx.x * tile, c = (int)threadIdx.x % tile;
        const int m = (int)call.m, group = (int)threadIdx.x / tile;
        sums[0] = sums[1] = 0;
        for (int column = 0; column < m; column += tile) {
            bool inside = column + c < m;
#pragma unroll
            for (int r = group; r < tile; r += groups)
                memory.rows[r][c] =
                    inside && first + r < call.n ? from[(first + r) * call.ldm + column + c] : T(0);
            for (int l = group; l < CUDA__ISM_PROBES; l += groups)
                memory.lines[c][l] = inside ? source(l, column + c) : T(0);
            __syncthreads();
#pragma unroll 16
            for (int k = 0; k < tile; k++) {
                T value = memory.rows[row][k];
                sums[0] = fma(memory.lines[k][pair], value, sums[0]);
                sums[1] = fma(memory.lines[k][pair + 1], value, sums[1]);
            }
            __syncthreads();
        }
    }
};

/* The scores of A's columns by L X Y^T, of 64 columns a block; BESIDE has `parts` of L X. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_norm_score_kernel(const cuda__ism_call call, int parts)
{
    constexpr int tile = CUDA__ISM_NORM_TILE, groups = CUDA__ISM_THREADS / tile;
    __shared__ typename cuda__ism_norm_rows<T>::shared memory;
    __shared__ double squares[groups][tile];
    const int64_t slot = blockIdx.y;
    const int row = (int)threadIdx.x % tile, group = (int)threadIdx.x / tile;
    const int64_t j = (int64_t)blockIdx.x * tile + row;
    const T *thin = cuda__ism_array_of<T>(call, slot, CUDA__ISM_BESIDE);
    const T *d = cuda__ism_array_of<T>(call, slot, CUDA__ISM_D);
    cuda__ism_norm_rows<T> of = {call, memory, row, group * CUDA__ISM_NORM_PAIR};
    T sums[CUDA__ISM_NORM_PAIR];
    of.multiply(
        CUDA__ISM_Y,
        [&](int l, int c) {
            T sum = 0;
#pragma unroll 16
            for (int p = 0; p < parts; p++)
                sum += thin[(p * CUDA__ISM_PROBES + l) * call.ldm + c];
            return sum;
        },
        sums);
    double square = 0;
#pragma unroll
    for (int l = 0; l < CUDA__ISM_NORM_PAIR; l++)
        square += (double)sums[l] * (double)sums[l];
    squares[group][row] = square;
    __syncthreads();
    if (group > 0 || j >= call.n)
        return;
    square = 0;
    for (int g = 0; g < groups; g++)
        square += squares[g][row];
    cuda__ism_scores<T>(call, slot)[j] =
        cuda__ism_score_of(call.n, d[j], square, cuda__ism_weights<T>(call, slot)[j]);
}

/* The chosen columns of A, 64 rows of them a block: their signs, and in ERROR, eight numbers a
 * block, their sums of magnitudes. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_norm_columns_kernel(const cuda__ism_call call)
{
    constexpr int tile = CUDA__ISM_NORM_TILE, warps = tile / CUDA__WARP;
    __shared__ typename cuda__ism_norm_rows<T>::shared memory;
    __shared__ T sizes[CUDA__ISM_PROBES][warps];
    const int64_t slot = blockIdx.y;
    const int row = (int)threadIdx.x % tile, pair = (int)threadIdx.x / tile * CUDA__ISM_NORM_PAIR;
    const int64_t i = (int64_t)blockIdx.x * tile + row;
    const T *chosen = cuda__ism_array_of<T>(call, slot, CUDA__ISM_CHOSEN);
    const T *d = cuda__ism_array_of<T>(call, slot, CUDA__ISM_D);
    const cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    T *signs = cuda__ism_array_of<T>(call, slot, CUDA__ISM_SIGNS);
    cuda__ism_norm_rows<T> of = {call, memory, row, pair};
    T sums[CUDA__ISM_NORM_PAIR];
    of.multiply(
        CUDA__ISM_X, [&](int l, int c) { return chosen[l * call.ldm + c]; }, sums);
#pragma unroll
    for (int l = 0; l < CUDA__ISM_NORM_PAIR; l++) {
        T value = sums[l];
        if (i < call.n) {
            value += answer->chosen[pair + l] == i ? d[i] : T(0);
            signs[(pair + l) * call.ld + i] = value < 0 ? T(-1) : T(1);
        }
        T size = cuda__lu_warp_sum(i < call.n ? (T)fabs(value) : T(0));
        if (threadIdx.x % CUDA__WARP == 0)
            sizes[pair + l][row / CUDA__WARP] = size;
    }
    __syncthreads();
    if (threadIdx.x >= CUDA__ISM_PROBES)
        return;
    T size = 0;
    for (int w = 0; w < warps; w++)
        size += sizes[threadIdx.x][w];
    cuda__ism_array_of<T>(call, slot,
                          CUDA__ISM_ERROR)[blockIdx.x * CUDA__ISM_PROBES + threadIdx.x] = size;
}

/* norm_a: the largest of the columns' norms, whose parts `blocks` blocks left in ERROR, and of
 * those before. A block a slot: a warp a column. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_PROBES *CUDA__WARP)
    cuda__ism_norm_largest_kernel(const cuda__ism_call call, int blocks)
{
    __shared__ T sizes[CUDA__ISM_PROBES];
    const int64_t slot = blockIdx.y;
    const int line = (int)threadIdx.x / CUDA__WARP;
    const T *parts = cuda__ism_array_of<T>(call, slot, CUDA__ISM_ERROR) + line;
    T sum = 0;
    for (int b = (int)threadIdx.x % CUDA__WARP; b < blocks; b += CUDA__WARP)
        sum += parts[b * CUDA__ISM_PROBES];
    sum = cuda__lu_warp_sum(sum);
    if (threadIdx.x % CUDA__WARP == 0)
        sizes[line] = sum;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    double largest = answer->norm_a;
    for (int l = 0; l < CUDA__ISM_PROBES; l++)
        largest = cuda__lu_larger(largest, (double)sizes[l]);
    answer->norm_a = largest;
}

#endif
