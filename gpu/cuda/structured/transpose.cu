/* gpu/cuda/structured/transpose.cu: see transpose.h. A tile is 256 bytes wide, in FP32 128 where
 * there would be few such tiles; a line of shared memory is one number longer, so that its columns
 * lie in different banks.
 */
#include "gpu/cuda/structured/transpose.h"

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/base/ptx.cuh"
#include "gpu/cuda/base/stage.cuh"
#include "gpu/cuda/tuning/h200/structured.h"

#define TRANSPOSE_THREADS 256
#define TRANSPOSE_MATRICES_MAX 65535

template <typename T, int Bytes> struct cuda__transpose_tile {
    static constexpr int side = Bytes / (int)sizeof(T);
    static constexpr int lines = TRANSPOSE_THREADS / side; /* moved at a time */
    T numbers[side][side + 1];
};

/* A block a tile; tiles are numbered row by row of `to`. */
template <typename T, int Bytes>
static __global__ void __launch_bounds__(TRANSPOSE_THREADS)
    cuda__transpose_kernel(const cuda_transposition task, uint32_t across)
{
    typedef cuda__transpose_tile<T, Bytes> tile;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    tile &held = *(tile *)cuda__memory;
    int x = (int)threadIdx.x % tile::side, y = (int)threadIdx.x / tile::side;
    int64_t k = blockIdx.y, top = (int64_t)(blockIdx.x % across) * tile::side;
    int64_t left = (int64_t)(blockIdx.x / across) * tile::side;
    const T *from = (const T *)task.from.at + k * task.from.step;
    T *to = (T *)task.to.at + k * task.to.step;
    cuda__follow_previous();
    T first = task.factors ? (T)task.factors[2 * k] : T(1);
    T second = task.factors ? (T)task.factors[2 * k + 1] : T(1);
#pragma unroll
    for (int i = y; i < tile::side; i += tile::lines) {
        if (top + i < task.rows && left + x < task.columns)
            held.numbers[i][x] = from[(top + i) * task.from.stride + left + x];
    }
    __syncthreads();
#pragma unroll
    for (int j = y; j < tile::side; j += tile::lines) {
        if (left + j < task.columns && top + x < task.rows)
            to[(left + j) * task.to.stride + top + x] = held.numbers[x][j] * first * second;
    }
}

static int64_t cuda__transpose_tiles(int64_t numbers, int64_t side)
{
    return (numbers + side - 1) / side;
}

template <typename T, int Bytes>
static cudaError_t cuda__transpose_start(const struct cuda_transposition *task, cudaStream_t stream)
{
    typedef cuda__transpose_tile<T, Bytes> tile;
    const int64_t across = cuda__transpose_tiles(task->rows, tile::side);
    const int64_t down = cuda__transpose_tiles(task->columns, tile::side);
    if (across > INT32_MAX / down)
        return cudaErrorInvalidValue;
    return cuda__follow(cuda__transpose_kernel<T, Bytes>,
                        dim3((unsigned)(across * down), (unsigned)task->count), TRANSPOSE_THREADS,
                        sizeof(tile), cuda__overlaps(), stream, *task, across);
}

template <typename T>
static cudaError_t cuda__transpose_start(const struct cuda_transposition *task, cudaStream_t stream)
{
    if constexpr (sizeof(T) == sizeof(float)) {
        const int64_t side = cuda__transpose_tile<T, 256>::side;
        const int64_t tiles = task->count * cuda__transpose_tiles(task->rows, side) *
                              cuda__transpose_tiles(task->columns, side);
        if (tiles < CUDA__TRANSPOSE_TILES_MIN * cuda__multiprocessors())
            return cuda__transpose_start<T, 128>(task, stream);
    }
    return cuda__transpose_start<T, 256>(task, stream);
}

cudaError_t cuda_transpose(const struct cuda_transposition *task, cudaStream_t stream)
{
    if (task->rows < 0 || task->columns < 0 || task->count < 0 ||
        task->count > TRANSPOSE_MATRICES_MAX)
        return cudaErrorInvalidValue;
    if (task->rows == 0 || task->columns == 0 || task->count == 0)
        return cudaSuccess;
    return task->precision == PRECISION_FP32 ? cuda__transpose_start<float>(task, stream)
                                             : cuda__transpose_start<double>(task, stream);
}
