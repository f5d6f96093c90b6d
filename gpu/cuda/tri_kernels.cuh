/* gpu/cuda/tri_kernels.cuh: the kernels of `tridiagonal` in one precision; tri_f32.cu and
 * tri_f64.cu are their instances.
 */
#ifndef GPU_CUDA_TRI_KERNELS_CUH
#define GPU_CUDA_TRI_KERNELS_CUH

#include "gpu/cuda/launch.cuh"
#include "gpu/cuda/tri.cuh"
#include "gpu/cuda/tri_solve.cuh"
#include "gpu/cuda/tri_write.cuh"

#define CUDA__TRI_SOLVE_THREADS 256 /* of a chunk; which it is decides the bits */
#define CUDA__TRI_WRITE_THREADS 128
#define CUDA__TRI_SMALL_THREADS 512 /* of a multiprocessor, at least, where a block does it all */

/* Of the fastest that an H200 was seen to run on 2026-11-21. */
template <typename T> struct cuda__tri_tuning {
    static constexpr bool is_wide = sizeof(T) == sizeof(double);
    /* Rows of a thread where a block does all of a matrix and nothing is merged; which they are
     * decides the bits. */
    static constexpr int each(int rows)
    {
        return is_wide && rows == 128 ? 1 : 2;
    }
    /* Rows of a tile: of a block that does all, and of others by lines and by levels. */
    static constexpr int small_steps = 64, line_steps = is_wide ? 32 : 64, level_steps = 16;
};

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

#define CUDA__TRI_BEGINNERS 4 /* blocks of a chunk: by rows and by columns, down and up */

/* What each chunk of rows multiplies by: for dominance by rows and for dominance by columns, from
 * above and from below. */
template <typename T, int Threads>
static __global__ __launch_bounds__(Threads) void cuda__tri_begin_kernel(const cuda__tri_call call)
{
    __shared__ cuda__tri_memory<Threads> memory;
    int64_t chunks = cuda__tri_chunks(call.n, Threads);
    cuda__release_next();
    for (int64_t k = blockIdx.x; k < CUDA__TRI_BEGINNERS * chunks * call.count; k += gridDim.x) {
        int64_t chunk = k / CUDA__TRI_BEGINNERS, matrix = chunk / chunks;
        cuda__tri_solver<T, Threads>(call, matrix, matrix, &memory)
            .begin_chunk(chunk % chunks, k % 2 == 0, k / 2 % 2 == 1);
        __syncthreads();
    }
}

/* The O(n) numbers: a block a chunk, and the last of them for the whole matrix. */
template <typename T, int Threads>
static __global__ __launch_bounds__(Threads) void cuda__tri_end_kernel(const cuda__tri_call call)
{
    __shared__ cuda__tri_memory<Threads> memory;
    int64_t chunks = cuda__tri_chunks(call.n, Threads);
    cuda__release_next();
    cuda__wait_for_previous();
    for (int64_t k = blockIdx.x; k < chunks * call.count; k += gridDim.x) {
        int64_t matrix = k / chunks;
        cuda__tri_solver<T, Threads>(call, matrix, matrix, &memory).end_chunk(k % chunks);
        __syncthreads();
    }
}

/* `sherman_morrison`'s levels above chunks: a block a chunk. */
template <typename T, int Threads>
static __global__ __launch_bounds__(Threads) void cuda__tri_join_kernel(const cuda__tri_call call)
{
    __shared__ cuda__tri_memory<Threads> memory;
    int64_t chunks = cuda__tri_chunks(call.n, Threads);
    cuda__release_next();
    cuda__wait_for_previous();
    for (int64_t k = blockIdx.x; k < chunks * call.count; k += gridDim.x) {
        int64_t matrix = k / chunks;
        cuda__tri_solver<T, Threads>(call, matrix, matrix, &memory).join_chunk(k % chunks);
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
    cuda__wait_for_previous();
    for (int64_t t = blockIdx.x; t < all; t += gridDim.x) {
        cuda__tri_write<T, Threads>(call, t / tiles.number, t % tiles.number, tiles, &memory);
        __syncthreads();
    }
}

template <int Threads, int Each> union cuda__tri_small_memory {
    cuda__tri_memory<Threads, Each> solve;
    cuda__tri_write_memory write;
};

/* Both: a block a matrix, and its own part of the workspace for all of them. */
template <typename T, int Threads, int Each>
static __global__
__launch_bounds__(Threads, CUDA__TRI_SMALL_THREADS /
                               Threads) void cuda__tri_small_kernel(const cuda__tri_call call,
                                                                    cuda__tri_tiles tiles)
{
    __shared__ cuda__tri_small_memory<Threads, Each> memory;
    for (int64_t k = blockIdx.x; k < call.count; k += gridDim.x) {
        cuda__tri_solver<T, Threads, Each>(call, k, blockIdx.x, &memory.solve).run();
        __syncthreads();
        for (int64_t tile = 0; tile < tiles.number; tile++) {
            cuda__tri_write<T, Threads>(call, blockIdx.x, tile, tiles, &memory.write);
            __syncthreads();
        }
    }
}

static inline unsigned cuda__tri_grid(int64_t blocks)
{
    return (unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX);
}

template <typename T, int Threads, int Each>
static cudaError_t cuda__tri_start_small(const cuda__tri_call &call, cudaStream_t stream)
{
    cuda__tri_tiles tiles =
        cuda__tri_cut<T>(call.rows, call.columns, Threads, cuda__tri_tuning<T>::small_steps);
    int64_t blocks = call.parts < call.count ? call.parts : call.count;
    return cuda__start(cuda__tri_small_kernel<T, Threads, Each>, cuda__tri_grid(blocks), Threads, 0,
                       stream, call, tiles);
}

/* Matrices of so many rows, or fewer. */
template <typename T, int Rows>
static cudaError_t cuda__tri_launch_small(const cuda__tri_call &call, cudaStream_t stream)
{
    constexpr int each = cuda__tri_tuning<T>::each(Rows);
    return call.variant == CUDA__TRI_SHERMAN_MORRISON
               ? cuda__tri_start_small<T, Rows, 1>(call, stream)
               : cuda__tri_start_small<T, Rows / each, each>(call, stream);
}

/* For as many matrices as there are parts at a time. */
template <typename T>
static cudaError_t cuda__tri_launch_large(cuda__tri_call call, cudaStream_t stream)
{
    constexpr int solvers = CUDA__TRI_SOLVE_THREADS, writers = CUDA__TRI_WRITE_THREADS;
    typedef cuda__tri_tuning<T> tuning;
    const int steps =
        call.variant == CUDA__TRI_SHERMAN_MORRISON ? tuning::level_steps : tuning::line_steps;
    cuda__tri_tiles tiles = cuda__tri_cut<T>(call.rows, call.columns, writers, steps);
    int64_t end = call.first + call.count, chunks = cuda__tri_chunks(call.n, solvers);
    const bool overlaps = cuda__overlaps();
    cudaError_t status = cudaSuccess;
    for (; status == cudaSuccess && call.first < end; call.first += call.count) {
        call.count = end - call.first < call.parts ? end - call.first : call.parts;
        status = cuda__start(cuda__tri_begin_kernel<T, solvers>,
                             cuda__tri_grid(CUDA__TRI_BEGINNERS * chunks * call.count), solvers, 0,
                             stream, call);
        if (status == cudaSuccess)
            status =
                cuda__follow(cuda__tri_end_kernel<T, solvers>, cuda__tri_grid(chunks * call.count),
                             solvers, overlaps, stream, call);
        if (status == cudaSuccess && cuda__tri_joins(call.variant, chunks, solvers))
            status =
                cuda__follow(cuda__tri_join_kernel<T, solvers>, cuda__tri_grid(chunks * call.count),
                             solvers, overlaps, stream, call);
        if (status == cudaSuccess && call.writes)
            status = cuda__follow(cuda__tri_write_kernel<T, writers>,
                                  cuda__tri_grid(call.count * tiles.number), writers, overlaps,
                                  stream, call, tiles);
    }
    return status;
}

template <typename T>
static cudaError_t cuda__tri_launch(const cuda__tri_call &call, cudaStream_t stream)
{
    if (call.n <= 64)
        return cuda__tri_launch_small<T, 64>(call, stream);
    if (call.n <= 128)
        return cuda__tri_launch_small<T, 128>(call, stream);
    if (call.n <= 256)
        return cuda__tri_launch_small<T, 256>(call, stream);
    if (call.n <= CUDA__TRI_BLOCK_N_MAX)
        return cuda__tri_launch_small<T, CUDA__TRI_BLOCK_N_MAX>(call, stream);
    return cuda__tri_launch_large<T>(call, stream);
}

#endif
