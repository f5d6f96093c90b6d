/* gpu/cuda/base/check.cuh: the probabilistic residual check (Freivalds) of an inverse: A times a
 * probe vector of signs is taken when A is read, and X times that must be the signs again; and how
 * its numbers are stored. Device code.
 */
#ifndef GPU_CUDA_BASE_CHECK_CUH
#define GPU_CUDA_BASE_CHECK_CUH

#include "gpu/cuda/base/stage.cuh"

/* How large an entry of X (A t) - t may be, in units of eps, of an X that is the mean of both sides
 * of an inverse: `size` is |A| |X|. It is less than what is allowed to the inverse itself, for both
 * sides are as bad. Next to a condition near 1 it is rounding that shows. */
template <typename T>
static constexpr __host__ __device__ T cuda__mean_allowed(int64_t n, T root, T size)
{
    return root * ((n < CUDA_CHECKED_N_MIN ? T(1) : T(0.25)) * size + 4);
}

/* The signs of the probe vector: without a pattern, as the host's. */
static constexpr __host__ __device__ bool cuda__negative(int i)
{
    uint32_t mixed = (uint32_t)i * 0x9e3779b1u;
    return ((mixed ^ mixed >> 15) * 0x85ebca6bu) >> 31;
}

static constexpr uint32_t cuda__collect_signs()
{
    uint32_t signs = 0;
    for (int i = 0; i < CUDA_SMALL_N_MAX; i++)
        signs |= (uint32_t)cuda__negative(i) << i;
    return signs;
}

static constexpr uint32_t cuda__negatives = cuda__collect_signs();

/* A little above the root of n. */
static constexpr __host__ __device__ double cuda__root(int n)
{
    double root = n;
    for (int i = 0; i < 8; i++)
        root = (root + n / root) / 2;
    return root;
}

/* INFO of a matrix whose scaling has yet to be looked at (batch.h). */
static __device__ __forceinline__ int cuda__await_scaling(int info, int n)
{
    return info > 0 ? info + CUDA_INFO_AWAITING(n) : info;
}

/* INFO and RCOND of a warp's matrices, gathered to one lane a matrix and stored by it. */
template <typename T, typename Shape>
static __device__ __forceinline__ void cuda__store_numbers(const cuda__place<T> &place, int info,
                                                           T rcond, int lane, uint32_t *unverified)
{
    int from = lane < Shape::held ? lane * Shape::lanes : 0;
    info = __shfl_sync(CUDA__ALL, info, from);
    rcond = __shfl_sync(CUDA__ALL, rcond, from);
    if (lane >= Shape::held || !place.valid)
        return;
    if (place.info)
        place.info[place.within] = info;
    if (info < -1 && unverified)
        atomicAdd(unverified, 1);
    if (place.extra)
        ((T *)place.extra)[place.within] = rcond;
}

#endif
