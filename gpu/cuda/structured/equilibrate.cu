/* gpu/cuda/structured/equilibrate.cu: see equilibrate.h.
 *
 * A block takes tiles of a matrix, a column a thread, and finds the largest exponents of its rows
 * and columns; atomic maxima, which are the same in any order, join them to those of other blocks.
 * The last block of a matrix that arrives ends the pass: it makes the next exponents of the rows
 * and columns. Where a block has a whole matrix it goes from pass to pass by itself; else as many
 * passes are launched as may be wanted, each put on the device while the one before it ends.
 */
#include "gpu/cuda/structured/equilibrate.h"

#include "gpu/cuda/base/equilibrate.cuh"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/base/stage.cuh"

#define CUDA__EQUILIBRATE_THREADS 256
#define CUDA__EQUILIBRATE_WARPS (CUDA__EQUILIBRATE_THREADS / CUDA__WARP)
#define CUDA__EQUILIBRATE_COLUMNS CUDA__EQUILIBRATE_THREADS /* of a tile */
#define CUDA__EQUILIBRATE_ROWS 64
#define CUDA__EQUILIBRATE_AT_ONCE 8 /* rows that are on their way together */
#define CUDA__EQUILIBRATE_BLOCKS 4  /* of a multiprocessor, for all matrices together */

/* One matrix, and what a block of it has in shared memory. */
template <typename T> struct cuda__equilibrate_view {
    const cuda_equilibration &task;
    const T *a;
    cuda_equilibrium &state;
    int32_t *rows, *columns;                 /* exponents */
    int32_t *largest_rows, *largest_columns; /* of this pass */

    __device__ cuda__equilibrate_view(const cuda_equilibration &of, int64_t k)
        : task(of), a((const T *)of.a.at + k * of.a.step), state(of.states[k]),
          rows(of.exponents + 2 * k * of.n), columns(rows + of.n),
          largest_rows(of.scratch + 2 * k * of.n), largest_columns(largest_rows + of.n)
    {
    }

    /* The largest exponents of a tile, whose rows' share `held`. */
    __device__ void look(int64_t top, int64_t left, int *held) const
    {
        const int n = (int)task.n, j = (int)left + (int)threadIdx.x;
        const int end = min((int)top + CUDA__EQUILIBRATE_ROWS, n);
        const int lane = (int)threadIdx.x % CUDA__WARP;
        const int own = j < n ? columns[j] : 0;
        const T *from = a + j;
        int largest = EQUILIBRATE_NONE;
        if (threadIdx.x < CUDA__EQUILIBRATE_ROWS)
            held[threadIdx.x] = EQUILIBRATE_NONE;
        __syncthreads();
#pragma unroll 1
        for (int i = (int)top; i < end; i += CUDA__EQUILIBRATE_AT_ONCE) {
            T x[CUDA__EQUILIBRATE_AT_ONCE];
#pragma unroll
            for (int u = 0; u < CUDA__EQUILIBRATE_AT_ONCE; u++)
                x[u] = j < n && i + u < end ? from[(i + u) * task.a.stride] : T(0);
#pragma unroll
            for (int u = 0; u < CUDA__EQUILIBRATE_AT_ONCE; u++) {
                const int e = cuda__exponent_of(x[u]) + own + (i + u < end ? rows[i + u] : 0);
                const int of_row = __reduce_max_sync(CUDA__ALL, e);
                largest = max(largest, e);
                if (lane == 0 && i + u < end)
                    atomicMax(&held[i + u - top], of_row);
            }
        }
        __syncthreads();
        if (threadIdx.x < end - top)
            atomicMax(&largest_rows[top + threadIdx.x], held[threadIdx.x]);
        if (j < n)
            atomicMax(&largest_columns[j], largest);
    }

    /* Has the pass come to its end with this block? */
    __device__ bool is_last() const
    {
        __shared__ bool last;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0)
            last = atomicAdd(&state.arrived, 1u) == gridDim.x - 1;
        __syncthreads();
        return last;
    }

    /* The largest of the threads' numbers. */
    __device__ static int largest_of(int x)
    {
        __shared__ int held[CUDA__EQUILIBRATE_WARPS];
        x = __reduce_max_sync(CUDA__ALL, x);
        __syncthreads();
        if (threadIdx.x % CUDA__WARP == 0)
            held[threadIdx.x / CUDA__WARP] = x;
        __syncthreads();
        for (int w = 0; w < CUDA__EQUILIBRATE_WARPS; w++)
            x = max(x, held[w]);
        return x;
    }

    /* The end of a pass: the next exponents. Atomic operations have left the largest ones beyond
     * this multiprocessor's first cache, where they are read. */
    __device__ void grow() const
    {
        const volatile int32_t *of_rows = largest_rows, *of_columns = largest_columns;
        const int n = (int)task.n, first = (int)threadIdx.x, apart = (int)blockDim.x;
        int level = 0;
        if (state.passes == 0) {
            level = EQUILIBRATE_NONE;
            for (int i = first; i < n; i += apart)
                level = max(level, of_rows[i]);
            level = largest_of(level);
        }
        bool rows_even = true, columns_even = true;
        for (int i = first; i < n; i += apart) {
            rows_even = rows_even && EQUILIBRATE_IS_EVEN(of_rows[i] - level);
            columns_even = columns_even && EQUILIBRATE_IS_EVEN(of_columns[i] - level);
        }
        rows_even = __syncthreads_and(rows_even);
        columns_even = __syncthreads_and(columns_even);
        const bool ends =
            rows_even || columns_even ||
            state.passes + 1 ==
                (sizeof(T) == sizeof(float) ? EQUILIBRATE_PASSES_FP32 : EQUILIBRATE_PASSES_FP64);
        int min_column = INT32_MAX, max_column = INT32_MIN;
        for (int i = first; i < n; i += apart) {
            const int of_row = of_rows[i], row = of_row - level, column = of_columns[i] - level;
            const int next =
                columns[i] + (columns_even ? 0 : EQUILIBRATE_GROWTH(column, rows_even));
            rows[i] += (rows_even ? 0 : EQUILIBRATE_GROWTH(row, columns_even)) -
                       (EQUILIBRATE_IS_ZERO(of_row) ? 0 : level);
            columns[i] = next;
            min_column = min(min_column, next);
            max_column = max(max_column, next);
            largest_rows[i] = largest_columns[i] = EQUILIBRATE_NONE;
        }
        min_column = -largest_of(-min_column);
        max_column = largest_of(max_column);
        if (threadIdx.x == 0) {
            state.passes++;
            state.arrived = 0;
            state.column_min = min_column;
            state.column_max = max_column;
            state.wanted = !ends;
        }
        __syncthreads();
    }
};

/* A block a matrix. */
static __global__ void __launch_bounds__(CUDA__EQUILIBRATE_THREADS)
    cuda__equilibrate_begin_kernel(const cuda_equilibration task)
{
    cuda__follow_previous();
    const int64_t k = blockIdx.x;
    cuda_equilibrium &state = task.states[k];
    if (!state.wanted)
        return;
    for (int64_t i = threadIdx.x; i < 2 * task.n; i += blockDim.x) {
        task.exponents[2 * k * task.n + i] = 0;
        task.scratch[2 * k * task.n + i] = EQUILIBRATE_NONE;
    }
    if (threadIdx.x == 0)
        state.passes = state.arrived = 0;
}

/* Of n rows and columns; `across` next to each other. */
struct cuda__equilibrate_tiles {
    int across, count;
};

/* A pass; or all, where the grid has one block for a matrix. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__EQUILIBRATE_THREADS)
    cuda__equilibrate_pass_kernel(const cuda_equilibration task,
                                  const cuda__equilibrate_tiles tiles)
{
    __shared__ int held[CUDA__EQUILIBRATE_ROWS];
    cuda__follow_previous();
    const cuda__equilibrate_view<T> view(task, blockIdx.y);
    const volatile int32_t &wanted = view.state.wanted;
    while (wanted) {
        for (int tile = (int)blockIdx.x; tile < tiles.count; tile += (int)gridDim.x)
            view.look((int64_t)(tile / tiles.across) * CUDA__EQUILIBRATE_ROWS,
                      (int64_t)(tile % tiles.across) * CUDA__EQUILIBRATE_COLUMNS, held);
        if (!view.is_last())
            return;
        view.grow();
        if (gridDim.x > 1)
            return;
    }
}

template <typename T>
static cudaError_t cuda__equilibrate_start(const struct cuda_equilibration &task,
                                           cudaStream_t stream)
{
    const int64_t across = (task.n + CUDA__EQUILIBRATE_COLUMNS - 1) / CUDA__EQUILIBRATE_COLUMNS;
    const int64_t down = (task.n + CUDA__EQUILIBRATE_ROWS - 1) / CUDA__EQUILIBRATE_ROWS;
    const int64_t enough = CUDA__EQUILIBRATE_BLOCKS * cuda__multiprocessors() / task.count + 1;
    const int64_t blocks = across * down < enough ? across * down : enough;
    const int most = sizeof(T) == sizeof(float) ? EQUILIBRATE_PASSES_FP32 : EQUILIBRATE_PASSES_FP64;
    const cuda__equilibrate_tiles tiles = {(int)across, (int)(across * down)};
    cudaError_t status = cuda__follow(cuda__equilibrate_begin_kernel, (unsigned)task.count,
                                      CUDA__EQUILIBRATE_THREADS, 0, cuda__overlaps(), stream, task);
    for (int k = 0; k < (blocks > 1 ? most : 1) && status == cudaSuccess; k++)
        status = cuda__follow(cuda__equilibrate_pass_kernel<T>,
                              dim3((unsigned)blocks, (unsigned)task.count),
                              CUDA__EQUILIBRATE_THREADS, 0, cuda__overlaps(), stream, task, tiles);
    return status;
}

cudaError_t cuda_equilibrate(const struct cuda_equilibration *task, cudaStream_t stream)
{
    if (task->n < 1 || task->n > CUDA_EQUILIBRATE_N_MAX || task->count < 0 ||
        task->count > CUDA_EQUILIBRATE_MATRICES_MAX)
        return cudaErrorInvalidValue;
    if (task->count == 0)
        return cudaSuccess;
    return task->precision == PRECISION_FP32 ? cuda__equilibrate_start<float>(*task, stream)
                                             : cuda__equilibrate_start<double>(*task, stream);
}
