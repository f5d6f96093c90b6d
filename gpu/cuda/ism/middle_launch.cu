/* gpu/cuda/ism/middle_launch.cu: updates of middle orders of `ism` in one precision: middle.cuh. */
#include "gpu/cuda/base/by_precision.cuh"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/ism/middle.cuh"

template <typename S, int Tiles, int Threads, int Blocks>
static __global__ void __launch_bounds__(Threads, Blocks)
    cuda__ism_middle_kernel(const cuda__ism_call call, const cuda__ism_middle_room room)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    const int lane = (int)threadIdx.x % CUDA__WARP, g = lane / 4;
    const int row = sizeof(S) < sizeof(double) ? g : (g & 4) | (g & 1) << 1 | (g >> 1 & 1);
    cuda__ism_middle_update<S, Tiles> one = {{call, room, cuda__memory, (int)call.n, (int)call.m,
                                              (int)blockDim.x, (int)threadIdx.x / CUDA__WARP, lane,
                                              g, lane % 4, row, 0},
                                             {}};
    one.run_all(blockIdx.x, gridDim.x);
}

/* Blocks fill the device once and go over the batch in strides. */
template <typename S, int Tiles, int Threads, int Blocks>
static cudaError_t cuda__ism_start_middle(const cuda__ism_call &call,
                                          const cuda__ism_middle_room &room, cudaStream_t stream)
{
    constexpr int registers = Threads * Blocks; /* threads that they suffice for */
    const int threads = room.warps * CUDA__WARP;
    int64_t held = (cuda__shared_max() + 1024) / (room.bytes + 1024), blocks_max;
    held = held < registers / threads ? held : registers / threads;
    blocks_max = cuda__multiprocessors() * (held > 1 ? held : 1);
    return cuda__start(cuda__ism_middle_kernel<S, Tiles, Threads, Blocks>,
                       (unsigned)(call.matrices < blocks_max ? call.matrices : blocks_max), threads,
                       (size_t)room.bytes, stream, call, room);
}

template <typename S, int Tiles>
static cudaError_t cuda__ism_launch_middle(const cuda__ism_call &call,
                                           const cuda__ism_middle_room &room, cudaStream_t stream)
{
    /* Few blocks of FP64 fit that are wide. */
    constexpr int blocks = Tiles > 2 && sizeof(S) > sizeof(float) ? 1 : 2;
    if (room.warps <= 8)
        return cuda__ism_start_middle<S, Tiles, 256, blocks>(call, room, stream);
    return cuda__ism_start_middle<S, Tiles, 512, 1>(call, room, stream);
}

/* For what cuda__ism_middle_holds. */
cudaError_t R(cuda__ism_middle)(const struct cuda__ism_call *work, cudaStream_t stream)
{
    const cuda__ism_middle_room room =
        cuda__ism_middle_room_of(work->n, work->m, (int)sizeof(REAL));
    switch (room.wide / CUDA__ISM_MIDDLE_TILE) {
    case 1:
        return cuda__ism_launch_middle<REAL, 1>(*work, room, stream);
    case 2:
        return cuda__ism_launch_middle<REAL, 2>(*work, room, stream);
    case 3:
        return cuda__ism_launch_middle<REAL, 3>(*work, room, stream);
    case 4:
        return cuda__ism_launch_middle<REAL, 4>(*work, room, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
