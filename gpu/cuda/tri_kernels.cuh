/* gpu/cuda/tri_kernels.cuh: the kernels of `tridiagonal` in one precision; tri_f32.cu and
 * tri_f64.cu are their instances.
 */
#ifndef GPU_CUDA_TRI_KERNELS_CUH
#define GPU_CUDA_TRI_KERNELS_CUH

#include "gpu/cuda/launch.cuh"
#include "gpu/cuda/tri.cuh"
#include "gpu/cuda/tri_solve.cuh"
#include "gpu/cuda/tri_write.cuh"

#define CUDA__TRI_FEW_THREADS 128
#define CUDA__TRI_MANY_THREADS 512
#define CUDA__TRI_SMALL_THREADS 512 /* of a multiprocessor, at least, where a block does it all */

template <typename T, int Threads>
static __device__ __forceinline__ void cuda__tri_write(const cuda__tri_call &call, int64_t slot,
                                                       int64_t tile, cuda__tri_tiles tiles,
                                                       cuda__tri_write_memory *memory)
{
    cuda__tri_part part = cuda__tri_find_part(call, slot);
    cuda__tri_answer answer = *part.answer();
    if (!answer.x)
        return;
    cuda__tri_writer<T, Threads> writer = {call, part, memory, tiles};
    writer.write(tile, answer);
}

/* The O(n) numbers: a block a matrix. */
template <typename T, int Threads>
static __global__ __launch_bounds__(Threads) void cuda__tri_solve_kernel(const cuda__tri_call call)
{
    __shared__ cuda__tri_memory<Threads> memory;
    for (int64_t k = blockIdx.x; k < call.count; k += gridDim.x) {
        cuda__tri_solver<T, Threads>(call, k, k, &memory).run();
        __syncthreads();
    }
}

/* X: a block a tile. */
template <typename T, int Threads>
static __global__ __launch_bounds__(Threads) void cuda__tri_write_kernel(const cuda__tri_call call,
                                                                         cuda__tri_tiles tiles)
{
    __shared__ cuda__tri_write_memory memory;
    int64_t all = call.count * tiles.number;
    for (int64_t t = blockIdx.x; t < all; t += gridDim.x) {
        cuda__tri_write<T, Threads>(call, t / tiles.number, t % tiles.number, tiles, &memory);
        __syncthreads();
    }
}

/* Both: a block a matrix, and its own part of the workspace for all of them. */
template <typename T, int Threads>
static __global__
__launch_bounds__(Threads, CUDA__TRI_SMALL_THREADS /
                               Threads) void cuda__tri_small_kernel(const cuda__tri_call call,
                                                                    cuda__tri_tiles tiles)
{
    __shared__ cuda__tri_memory<Threads> memory;
    __shared__ cuda__tri_write_memory write_memory;
    for (int64_t k = blockIdx.x; k < call.count; k += gridDim.x) {
        cuda__tri_solver<T, Threads>(call, k, blockIdx.x, &memory).run();
        __syncthreads();
        for (int64_t tile = 0; tile < tiles.number; tile++) {
            cuda__tri_write<T, Threads>(call, blockIdx.x, tile, tiles, &write_memory);
            __syncthreads();
        }
    }
}

static inline unsigned cuda__tri_grid(int64_t blocks)
{
    return (unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX);
}

template <typename T, int Threads>
static cudaError_t cuda__tri_launch_small(const cuda__tri_call &call, cudaStream_t stream)
{
    cuda__tri_tiles tiles = cuda__tri_cut<T>(call.rows, call.columns, Threads);
    int64_t blocks = call.parts < call.count ? call.parts : call.count;
    return cuda__start(cuda__tri_small_kernel<T, Threads>, cuda__tri_grid(blocks), Threads, 0,
                       stream, call, tiles);
}

/* For as many matrices as there are parts at a time. */
template <typename T>
static cudaError_t cuda__tri_launch_large(cuda__tri_call call, cudaStream_t stream)
{
    cuda__tri_tiles tiles = cuda__tri_cut<T>(call.rows, call.columns, CUDA__TRI_FEW_THREADS);
    int64_t end = call.first + call.count;
    cudaError_t status = cudaSuccess;
    for (; status == cudaSuccess && call.first < end; call.first += call.count) {
        call.count = end - call.first < call.parts ? end - call.first : call.parts;
        status = cuda__start(cuda__tri_solve_kernel<T, CUDA__TRI_MANY_THREADS>,
                             cuda__tri_grid(call.count), CUDA__TRI_MANY_THREADS, 0, stream, call);
        if (status == cudaSuccess && call.writes)
            status = cuda__start(cuda__tri_write_kernel<T, CUDA__TRI_FEW_THREADS>,
                                 cuda__tri_grid(call.count * tiles.number), CUDA__TRI_FEW_THREADS,
                                 0, stream, call, tiles);
    }
    return status;
}

template <typename T>
static cudaError_t cuda__tri_launch(const cuda__tri_call &call, cudaStream_t stream)
{
    if (call.n <= CUDA__TRI_WARP_N_MAX)
        return cuda__tri_launch_small<T, CUDA__WARP>(call, stream);
    if (call.n <= CUDA__TRI_BLOCK_N_MAX)
        return cuda__tri_launch_small<T, CUDA__TRI_FEW_THREADS>(call, stream);
    return cuda__tri_launch_large<T>(call, stream);
}

#endif
