/* gpu/cuda/ism/solve.cuh: the kernels that form M = I + X K, and solve Z M = A0^-1; see
 * recover.cuh.
 *
 * M is formed in double-double, and rounded once. With its factors P M = L U every row z of Z is
 * solved by itself: w U = b, v L = w, z = v P. So |b - z M| is small next to |z| |M| (Higham,
 * Accuracy and Stability, 9.3), however much larger than Z A0^-1 is: A0^-1 times an inverse of M
 * would have errors of the size of |A0^-1| |M^-1|. Where the factors grew beyond all bounds, or
 * have a zero pivot, Z starts at 0, and M's inverse alone makes it, by the corrections that follow.
 */
#ifndef GPU_CUDA_ISM_SOLVE_CUH
#define GPU_CUDA_ISM_SOLVE_CUH

#include "gpu/cuda/base/reduce.cuh"
#include "gpu/cuda/ism/algorithm.cuh"

#define CUDA__ISM_DD_ROWS 4        /* of a thread */
#define CUDA__ISM_PANEL CUDA__WARP /* columns that are solved together: a lane a row */
#define CUDA__ISM_PANEL_WARPS 4
#define CUDA__ISM_PANEL_ROWS (CUDA__ISM_PANEL_WARPS * CUDA__WARP) /* of a block */

/* Numbers, and next to them what they lack: lines of n. */
struct cuda__ism_twin {
    int high, low; /* arrays; low -1: nothing is lacking */
    int64_t line;  /* of `low` */
};

/* to (rows x n) = or += op(A) (terms x n): A is X or Y. */
struct cuda__ism_twofold {
    int a;
    int64_t first, row_step, term_step; /* where op(A) begins, and from number to number */
    int64_t rows, terms;
    struct cuda__ism_twin by, to;
    bool adds;
};

template <typename T>
static __device__ __forceinline__ T *cuda__ism_low_of(const cuda__ism_call &call, int64_t slot,
                                                      const cuda__ism_twin &twin)
{
    return twin.low < 0 ? nullptr
                        : cuda__ism_array_of<T>(call, slot, twin.low) + twin.line * call.ld;
}

/* A thread has a column of some rows. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_twofold_kernel(const cuda__ism_call call, const cuda__ism_twofold of)
{
    cuda__follow_previous();
    const int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS;
    const int64_t groups = (of.rows + CUDA__ISM_DD_ROWS - 1) / CUDA__ISM_DD_ROWS;
    const T *a = cuda__ism_array_of<T>(call, slot, of.a) + of.first;
    const T *b = cuda__ism_array_of<T>(call, slot, of.by.high);
    const T *b_low = cuda__ism_low_of<T>(call, slot, of.by);
    T *to = cuda__ism_array_of<T>(call, slot, of.to.high);
    T *to_low = cuda__ism_low_of<T>(call, slot, of.to);
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; e < groups * call.n;
         e += step) {
        const int64_t row = e / call.n * CUDA__ISM_DD_ROWS, j = e % call.n;
        cuda__ism_sum<T> sums[CUDA__ISM_DD_ROWS];
#pragma unroll
        for (int r = 0; r < CUDA__ISM_DD_ROWS; r++) {
            const bool adds = of.adds && row + r < of.rows;
            const int64_t at = (row + r) * call.ld + j;
            sums[r] = cuda__ism_sum_of(adds ? to[at] : T(0), adds ? to_low[at] : T(0));
        }
        for (int64_t k = 0; k < of.terms; k++) {
            const T high = b[k * call.ld + j], low = b_low ? b_low[k * call.ld + j] : T(0);
#pragma unroll
            for (int r = 0; r < CUDA__ISM_DD_ROWS; r++) {
                const int64_t i = row + r < of.rows ? row + r : of.rows - 1;
                sums[r].add(a[i * of.row_step + k * of.term_step], high, low);
            }
        }
#pragma unroll
        for (int r = 0; r < CUDA__ISM_DD_ROWS; r++) {
            if (row + r < of.rows) {
                to[(row + r) * call.ld + j] = sums[r].high();
                to_low[(row + r) * call.ld + j] = sums[r].low();
            }
        }
    }
}

/* M becomes M - I, and SIGNS the columns' sums of its magnitudes. A thread a column. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_change_sums_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    const int64_t slot = blockIdx.y, n = call.n;
    const int64_t j = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x;
    T *column = cuda__ism_array_of<T>(call, slot, CUDA__ISM_FORMED) + j, sum = 0;
    if (j >= n)
        return;
    column[j * call.ld] -= 1;
    for (int64_t i = 0; i < n; i++)
        sum += fabs(column[i * call.ld]);
    cuda__ism_array_of<T>(call, slot, CUDA__ISM_SIGNS)[j] = sum;
}

/* Z's columns at .. at + CUDA__ISM_PANEL - 1, from what the others have left there: times U^-1, or
 * with Lower L^-1. */
template <typename T, bool Lower>
static __global__ void __launch_bounds__(CUDA__ISM_PANEL_ROWS)
    cuda__ism_panel_kernel(const cuda__ism_call call, int64_t at)
{
    cuda__follow_previous();
    __shared__ T diagonal[CUDA__ISM_PANEL][CUDA__ISM_PANEL];
    __shared__ T held[CUDA__ISM_PANEL_WARPS][CUDA__WARP][CUDA__ISM_PANEL + 1];
    const int64_t slot = blockIdx.y, ld = call.ld;
    const int lane = (int)threadIdx.x % CUDA__WARP, warp = (int)threadIdx.x / CUDA__WARP;
    const int64_t first = ((int64_t)blockIdx.x * CUDA__ISM_PANEL_WARPS + warp) * CUDA__WARP;
    const int64_t count = call.n - first, columns = call.n - at;
    const T *a = cuda__ism_array_of<T>(call, slot, CUDA__ISM_LU) + at * (ld + 1);
    T *z = cuda__ism_array_of<T>(call, slot, CUDA__ISM_Z) + first * ld + at;
    T(*rows)[CUDA__ISM_PANEL + 1] = held[warp], row[CUDA__ISM_PANEL];
    for (int k = warp; k < CUDA__ISM_PANEL; k += CUDA__ISM_PANEL_WARPS) {
        const bool within = k < columns && lane < columns && (Lower ? lane < k : lane >= k);
        diagonal[k][lane] = within ? a[k * ld + lane] : T(k == lane);
    }
    for (int i = 0; i < CUDA__WARP; i++)
        rows[i][lane] = i < count && lane < columns ? z[i * ld + lane] : T(0);
    __syncthreads();
#pragma unroll
    for (int j = 0; j < CUDA__ISM_PANEL; j++)
        row[j] = rows[lane][j];
#pragma unroll
    for (int k = 0; k < CUDA__ISM_PANEL; k++) {
        const int j = Lower ? CUDA__ISM_PANEL - 1 - k : k;
        row[j] /= diagonal[j][j];
#pragma unroll
        for (int l = 0; l < CUDA__ISM_PANEL; l++) {
            if (Lower ? l < j : l > j)
                row[l] = fma(-row[j], diagonal[j][l], row[l]);
        }
    }
#pragma unroll
    for (int j = 0; j < CUDA__ISM_PANEL; j++)
        rows[lane][j] = row[j];
    __syncwarp();
    for (int i = 0; i < CUDA__WARP && i < count; i++) {
        if (lane < columns)
            z[i * ld + lane] = rows[i][lane];
    }
}

/* Z becomes Z P: the interchanges of rows of M, the last one first. A thread a row. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_interchange_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    const int64_t slot = blockIdx.y, i = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x;
    const int32_t *pivots = (const int32_t *)cuda__ism_array_of<T>(call, slot, CUDA__ISM_PIVOTS);
    T *row = cuda__ism_array_of<T>(call, slot, CUDA__ISM_Z) + i * call.ld;
    if (i >= call.n)
        return;
    for (int64_t k = call.n - 1; k >= 0; k--) {
        const int64_t other = pivots[k] - 1;
        const T value = row[k];
        row[k] = row[other];
        row[other] = value;
    }
}

/* LU has A0^-1 - Z M, and SIZES its columns' sums before A0^-1's. 0 in the place of a Z that is no
 * better; or else no corrections of it by an inverse that is none to speak of. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_begin_corrections_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    __shared__ T scratch[CUDA__ISM_WARPS];
    const int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS;
    const T *sizes = cuda__ism_array_of<T>(call, slot, CUDA__ISM_SIZES);
    const T *b = cuda__ism_array_of<T>(call, slot, CUDA__ISM_B);
    T *z = cuda__ism_array_of<T>(call, slot, CUDA__ISM_Z);
    T *error = cuda__ism_array_of<T>(call, slot, CUDA__ISM_LU);
    T *inverse = cuda__ism_array_of<T>(call, slot, CUDA__ISM_INVERSE), left = 0, all = 0;
    for (int64_t j = threadIdx.x; j < call.n; j += CUDA__ISM_THREADS) {
        left = cuda__max_or_nan(left, sizes[j]);
        all = cuda__max_or_nan(all, sizes[call.ld + j]);
    }
    left = cuda__block_max<CUDA__ISM_WARPS>(left, scratch);
    all = cuda__block_max<CUDA__ISM_WARPS>(all, scratch);
    const bool anew = !(left <= all / 2);
    const bool leave = !anew && cuda__ism_answer_of<T>(call, slot)->info != 0;
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x;
         (anew || leave) && e < call.n * call.n; e += step) {
        z[e] = anew ? T(0) : z[e];
        error[e] = anew ? b[e] : error[e];
        inverse[e] = leave ? T(0) : inverse[e];
    }
}

#endif
