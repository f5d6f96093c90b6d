/* gpu/cuda/ism/few_launch.cuh: the launches of updates of known inverses at once, n <= 32: by a
 * thread a column (few.cuh), or from some columns of X on by tensor cores (tile.cuh).
 */
#ifndef GPU_CUDA_ISM_FEW_LAUNCH_CUH
#define GPU_CUDA_ISM_FEW_LAUNCH_CUH

#include "gpu/cuda/ism/tile.cuh"

template <typename T, int Order, int Blocks>
static __global__ void __launch_bounds__(CUDA__ISM_TILE_WARPS *CUDA__WARP, Blocks)
    cuda__ism_tile_kernel(const cuda__ism_call call)
{
    typedef cuda__ism_tile_room<T, Order> room;
    constexpr int threads = CUDA__ISM_TILE_WARPS * CUDA__WARP;
    constexpr int held = CUDA__ISM_TRIED * room::line;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    const int n = (int)call.n, warp = (int)threadIdx.x / CUDA__WARP;
    const int lane = (int)threadIdx.x % CUDA__WARP;
    double *weights = (double *)cuda__memory, *all = weights + held;
    for (int e = threadIdx.x; e < held; e += threads) {
        int i = e % room::line;
        weights[e] = i < n ? (double)cuda__ism_weight(n, i, e / room::line) : 0.0;
    }
    for (int e = threadIdx.x; e < CUDA__ISM_TILE_WARPS * room::numbers; e += threads)
        all[e] = 0;
    __syncthreads();
    cuda__ism_tile_update<T, Order> one = {
        call,    n,  (int)call.m, lane, lane / 4, lane % 4, all + warp * room::numbers,
        weights, {}, {},          {},   0};
    const int64_t step = (int64_t)gridDim.x * CUDA__ISM_TILE_WARPS;
    int64_t index = (int64_t)blockIdx.x * CUDA__ISM_TILE_WARPS + warp;
    int turn = 0, number = 0;
    if (index < call.matrices)
        one.fetch(index, 0);
    for (; index < call.matrices; index += step, turn ^= 1) {
        one.run(index, index + step, turn, number++);
        if (number == CUDA__ISM_TILE_RECORDS || index + step >= call.matrices) {
            one.judge(number);
            number = 0;
        }
    }
}

/* Blocks fill an H200 once and go over the batch in strides. */
template <typename T, int Order, int Blocks>
static cudaError_t cuda__ism_launch_tile(const cuda__ism_call &call, cudaStream_t stream)
{
    typedef cuda__ism_tile_room<T, Order> room;
    constexpr int64_t most = 132 * Blocks;
    int64_t blocks = (call.matrices + CUDA__ISM_TILE_WARPS - 1) / CUDA__ISM_TILE_WARPS;
    size_t numbers = CUDA__ISM_TRIED * room::line + CUDA__ISM_TILE_WARPS * room::numbers;
    return cuda__start(cuda__ism_tile_kernel<T, Order, Blocks>,
                       (unsigned)(blocks < most ? blocks : most), CUDA__ISM_TILE_WARPS * CUDA__WARP,
                       numbers * sizeof(double), stream, call);
}

/* Is this a call for an update at once? To this order and this many columns, where A is not known.
 */
static inline bool cuda__ism_is_few(const cuda__ism_call &call)
{
    return !cuda__ism_knows(call) && call.m > 0 && call.n <= 32 && call.m <= (call.n > 16 ? 8 : 4);
}

/* Columns from which on the tensor cores are faster, for n > 16. */
template <typename T> static constexpr int cuda__ism_tile_min = sizeof(T) == sizeof(float) ? 5 : 3;

template <typename T>
static cudaError_t cuda__ism_few(const cuda__ism_call &call, cudaStream_t stream)
{
    if (call.n > 24 && call.m >= cuda__ism_tile_min<T>)
        return cuda__ism_launch_tile<T, 32, 4>(call, stream);
    if (call.n > 16 && call.m >= cuda__ism_tile_min<T>)
        return cuda__ism_launch_tile<T, 24, 6>(call, stream);
    if (call.n <= 8)
        return cuda__ism_launch_few<T, 8, 8>(call, stream);
    if (call.n <= 12)
        return cuda__ism_launch_few<T, 12, 16>(call, stream);
    if (call.n <= 16)
        return cuda__ism_launch_few<T, 16, 16>(call, stream);
    if (call.n <= 24)
        return cuda__ism_launch_few<T, 24, 32>(call, stream);
    return cuda__ism_launch_few<T, 32, 32>(call, stream);
}

#endif
