/* gpu/cuda/lu_small/rounds.cuh: how the kernels of whole rows a lane (factor_rows.cuh,
 * inverse_rows.cuh) go round a batch. Device code: every thread of the block calls.
 */
#ifndef GPU_CUDA_LU_SMALL_ROUNDS_CUH
#define GPU_CUDA_LU_SMALL_ROUNDS_CUH

#include "gpu/cuda/lu_small/rows.cuh"
#include "gpu/cuda/lu_small/run.cuh"

/* Reads a warp's matrices, has them solved, and writes their answers, until the batch is done. Work
 * is what a lane has of a matrix: solve(work) leaves the answer with it, write() brings it to where
 * it is copied from, store_numbers() stores what is left. */
template <typename Work, int Warps, typename F>
static __device__ __forceinline__ void cuda__rounds(const cuda_batch &batch, F solve)
{
    typedef typename Work::number T;
    typedef typename Work::shape shape;
    typedef typename Work::layout layout;
    typedef typename layout::stage stage;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    int warp = Warps == 1 ? 0 : threadIdx.x / CUDA__WARP, lane = threadIdx.x % CUDA__WARP;
    typename Work::shared &memory = ((typename Work::shared *)cuda__memory)[warp];
    constexpr int n = shape::n, held = Warps * shape::held;
    /* The block's warps go round together, so that the compiler sees them converged. */
    for (int64_t first = (int64_t)blockIdx.x * held; first < batch.matrices;
         first += (int64_t)gridDim.x * held) {
        int64_t mine = first + warp * shape::held + (lane < shape::held ? lane : shape::held - 1);
        int shift = cuda__load<T, n, shape::held, stage>(memory.stage, batch, mine, lane);
        Work matrices;
        matrices.lane = shape::make(lane);
        matrices.note = &memory.matrix[matrices.lane.matrix].of;
        matrices.stage = memory.stage + matrices.lane.matrix * layout::stride;
        matrices.io = memory.stage + shift + matrices.lane.matrix * layout::io_stride;
        cuda__copy_wait();
        matrices.read();
        solve(matrices);
        shift = cuda__store_shift<T, n, shape::held, stage>(batch, mine, lane);
        matrices.io = memory.stage + shift + matrices.lane.matrix * layout::io_stride;
        matrices.write();
        /* Found again rather than kept: registers are short. */
        cuda__place<T> place = cuda__find<T>(batch, mine, n * n);
        cuda__store<T, n, shape::held, stage>(memory.stage, place, lane);
        matrices.store_numbers(memory, place, batch, lane);
        __syncwarp();
    }
}

#endif
