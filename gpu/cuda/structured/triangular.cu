/* gpu/cuda/structured/triangular.cu: see triangular.h. */
#include "gpu/cuda/structured/triangular.h"

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/base/stage.cuh"

#define PANEL CUDA_TRIANGULAR_PANEL
#define SOLVE_WARPS 4

static_assert(PANEL == CUDA__WARP, "a lane a column, and a lane a row");

template <typename T> struct cuda__triangular_memory {
    T diagonal[PANEL][PANEL]; /* A's block */
    T rows[SOLVE_WARPS][PANEL][PANEL + 1];
};

/* X's columns at .. at + PANEL - 1, from what the columns before them have left there. A warp has
 * PANEL rows; blockIdx.y numbers the matrices. */
template <typename T>
static __global__ void __launch_bounds__(SOLVE_WARPS *CUDA__WARP)
    cuda__triangular_solve_kernel(const cuda_triangular task, int64_t at)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__triangular_memory<T> &held = *(cuda__triangular_memory<T> *)cuda__memory;
    int lane = (int)threadIdx.x % CUDA__WARP, warp = (int)threadIdx.x / CUDA__WARP;
    const T *a = (const T *)task.a.at + blockIdx.y * task.a.step + at * (task.a.stride + 1);
    int64_t first = ((int64_t)blockIdx.x * SOLVE_WARPS + warp) * PANEL;
    T *x = (T *)task.x.at + blockIdx.y * task.x.step + first * task.x.stride + at, row[PANEL];
    T(*rows)[PANEL + 1] = held.rows[warp];
    bool inside = first <= at;
    for (int k = warp; k < PANEL; k += SOLVE_WARPS)
        held.diagonal[k][lane] = k <= lane ? a[k * task.a.stride + lane] : T(0);
    for (int i = 0; inside && i < PANEL; i++)
        rows[i][lane] = x[i * task.x.stride + lane];
    __syncthreads();
    if (!inside)
        return;
#pragma unroll
    for (int j = 0; j < PANEL; j++)
        row[j] = rows[lane][j];
#pragma unroll
    for (int j = 0; j < PANEL; j++) {
        row[j] /= held.diagonal[j][j];
#pragma unroll
        for (int l = j + 1; l < PANEL; l++)
            row[l] = fma(-row[j], held.diagonal[j][l], row[l]);
    }
#pragma unroll
    for (int j = 0; j < PANEL; j++)
        rows[lane][j] = row[j];
    __syncwarp();
    for (int i = 0; i < PANEL; i++)
        x[i * task.x.stride + lane] = rows[i][lane];
}

/* A call on its way. */
struct sequence {
    const struct cuda_triangular *task;
    struct cuda_products *products;
    cudaStream_t stream;
    cudaError_t status; /* the first that is not cudaSuccess; nothing is launched after it */
};

static void solve(struct sequence *sequence, int64_t at)
{
    const struct cuda_triangular &task = *sequence->task;
    int64_t panels = at / PANEL + 1;
    dim3 blocks((unsigned)((panels + SOLVE_WARPS - 1) / SOLVE_WARPS), (unsigned)task.count);
    if (sequence->status != cudaSuccess)
        return;
    if (task.precision == PRECISION_FP32)
        sequence->status =
            cuda__start(cuda__triangular_solve_kernel<float>, blocks, SOLVE_WARPS * CUDA__WARP,
                        sizeof(cuda__triangular_memory<float>), sequence->stream, task, at);
    else
        sequence->status =
            cuda__start(cuda__triangular_solve_kernel<double>, blocks, SOLVE_WARPS * CUDA__WARP,
                        sizeof(cuda__triangular_memory<double>), sequence->stream, task, at);
}

/* The part of a matrix that begins at (row, column). */
static struct cuda_matrices part(const struct sequence *sequence, struct cuda_matrices of,
                                 int64_t row, int64_t column)
{
    of.at = (char *)of.at + (row * of.stride + column) * precision_bytes(sequence->task->precision);
    return of;
}

/* What X's columns at .. at + inner - 1 do to the `columns` behind them. */
static void bring(struct sequence *sequence, int64_t at, int64_t inner, int64_t columns)
{
    const struct cuda_triangular *task = sequence->task;
    struct cuda_product product = {};
    product.precision = task->precision;
    product.rows = at + inner;
    product.columns = columns;
    product.inner = inner;
    product.alpha = -1;
    product.beta = 1;
    product.a = part(sequence, task->x, 0, at);
    product.b = part(sequence, task->a, at, at + inner);
    product.c = part(sequence, task->x, 0, at + inner);
    product.count = task->count;
    if (sequence->status == cudaSuccess)
        sequence->status = cuda_product(sequence->products, &product, sequence->stream);
}

/* X's columns at .. at + columns - 1: the left half, what it does to the right one, that. */
static void invert(struct sequence *sequence, int64_t at, int64_t columns)
{
    if (columns <= PANEL) {
        solve(sequence, at);
        return;
    }
    int64_t half = (columns / PANEL + 1) / 2 * PANEL;
    invert(sequence, at, half);
    bring(sequence, at, half, columns - half);
    invert(sequence, at + half, columns - half);
}

cudaError_t cuda_triangular_invert(struct cuda_products *products,
                                   const struct cuda_triangular *task, cudaStream_t stream)
{
    struct sequence sequence = {task, products, stream, cudaSuccess};
    if (task->n < PANEL || task->n % PANEL != 0 || task->count < 0 ||
        task->count > CUDA_TRIANGULAR_MATRICES_MAX)
        return cudaErrorInvalidValue;
    if (task->count > 0)
        invert(&sequence, 0, task->n);
    return sequence.status;
}
