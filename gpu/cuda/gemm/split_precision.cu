/* gpu/cuda/gemm/split_precision.cu: see split_precision.h. A thread has four numbers that lie
 * together. */
#include "gpu/cuda/gemm/split_precision.h"

#include "gpu/cuda/base/anchor.cuh"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/base/stage.cuh"
#include "gpu/cuda/tuning/h200/gemm.h"

#define SPLIT_THREADS 256
#define SPLIT_QUADS_MAX (UINT32_C(1) << 31)

/* Bits of a float. */
#define SPLIT_LOST 13  /* that TF32 has not */
#define SPLIT_SHORT 16 /* that BF16 has not */
#define SPLIT_INFINITY UINT32_C(0x7f800000)
#define SPLIT_MANTISSA 23
#define SPLIT_BIAS 127
/* Exponents of a largest entry that are left alone; beyond, it becomes 2^0 or 2^HIGH. So the parts
 * of entries down to 2^-85 of the largest are exact, nothing overflows that would not in FP32, and
 * what undoes the scaling, 2^126 at most, does not either. */
#define SPLIT_LOW (-30)
#define SPLIT_HIGH 64

static __device__ __forceinline__ uint32_t cuda__split_size(float x)
{
    return __float_as_uint(x) & ~(UINT32_C(1) << 31);
}

/* The power of two for an operand with that largest entry. */
static __device__ __forceinline__ int cuda__split_scale(uint32_t most)
{
    int biased = (int)(most >> SPLIT_MANTISSA), exponent = (biased ? biased : 1) - SPLIT_BIAS;
    if (most == 0 || most >= SPLIT_INFINITY)
        return 0;
    return exponent < SPLIT_LOW ? -exponent : exponent > SPLIT_HIGH ? SPLIT_HIGH - exponent : 0;
}

/* A finite number without its last `Lost` bits, to the nearest, to even; it stays finite. */
template <int Lost> static __device__ __forceinline__ uint32_t cuda__split_round(float x)
{
    const uint32_t lost = (UINT32_C(1) << Lost) - 1;
    uint32_t bits = __float_as_uint(x), near = bits + (lost >> 1) + (bits >> Lost & 1);
    if ((near & SPLIT_INFINITY) == SPLIT_INFINITY)
        near = bits;
    return near & ~lost;
}

/* Four numbers of TF32, and what is left; infinities and NaN are in `high` alone. */
struct cuda__split_parts {
    float4 high, low;
};

static __device__ __forceinline__ cuda__split_parts cuda__split_four(float4 x)
{
    cuda__split_parts parts;
#pragma unroll
    for (int v = 0; v < 4; v++) {
        float one = (&x.x)[v];
        bool is_finite = cuda__split_size(one) < SPLIT_INFINITY;
        float high = is_finite ? __uint_as_float(cuda__split_round<SPLIT_LOST>(one)) : one;
        (&parts.high.x)[v] = high;
        (&parts.low.x)[v] = is_finite ? one - high : 0;
    }
    return parts;
}

static __device__ __forceinline__ float4 cuda__split_to_tf32(float4 x)
{
    return make_float4(__uint_as_float(cuda__split_round<SPLIT_LOST>(x.x)),
                       __uint_as_float(cuda__split_round<SPLIT_LOST>(x.y)),
                       __uint_as_float(cuda__split_round<SPLIT_LOST>(x.z)),
                       __uint_as_float(cuda__split_round<SPLIT_LOST>(x.w)));
}

/* 0 for what is not finite. */
static __device__ __forceinline__ uint32_t cuda__split_to_bf16(float x)
{
    return cuda__split_size(x) < SPLIT_INFINITY ? cuda__split_round<SPLIT_SHORT>(x) >> SPLIT_SHORT
                                                : 0;
}

static __device__ __forceinline__ uint2 cuda__split_to_bf16(float4 x)
{
    return make_uint2(cuda__split_to_bf16(x.x) | cuda__split_to_bf16(x.y) << SPLIT_SHORT,
                      cuda__split_to_bf16(x.z) | cuda__split_to_bf16(x.w) << SPLIT_SHORT);
}

/* Four numbers of row i from column j on; zeros beyond the edge. */
static __device__ __forceinline__ float4 cuda__split_read(const cuda__split_side &side, uint32_t i,
                                                          uint32_t j)
{
    float four[4] = {};
    const float *from = side.from + i * side.stride + j;
    if (i >= side.height)
        return make_float4(0, 0, 0, 0);
    if (((uintptr_t)side.from | (uintptr_t)(side.stride * sizeof(float))) % 16 == 0 &&
        j + 4 <= side.width)
        return *(const float4 *)from;
#pragma unroll
    for (int v = 0; v < 4; v++) {
        if (j + v < side.width)
            four[v] = from[v];
    }
    return make_float4(four[0], four[1], four[2], four[3]);
}

static __global__ void cuda__split_reset_kernel(cuda__split_scalars *scalars)
{
    scalars->max[threadIdx.x] = 0;
}

/* blockIdx.y: the side; across: of four numbers. */
static __global__ void __launch_bounds__(SPLIT_THREADS)
    cuda__split_measure_kernel(const cuda__split_task task, uint32_t across_a, uint32_t across_b)
{
    const cuda__split_side &side = task.sides[blockIdx.y];
    uint32_t across = blockIdx.y ? across_b : across_a, most = 0;
    uint32_t all = (uint32_t)side.height * across;
#pragma unroll 4
    for (uint32_t q = blockIdx.x * SPLIT_THREADS + threadIdx.x; q < all;
         q += gridDim.x * SPLIT_THREADS) {
        float4 x = cuda__split_read(side, q / across, q % across * 4);
        most = max(max(most, max(cuda__split_size(x.x), cuda__split_size(x.y))),
                   max(cuda__split_size(x.z), cuda__split_size(x.w)));
    }
    most = __reduce_max_sync(~0u, most);
    if (threadIdx.x % CUDA__WARP == 0)
        (void)atomicMax(&task.scalars->max[blockIdx.y], most);
}

static __global__ void __launch_bounds__(SPLIT_THREADS)
    cuda__split_fill_kernel(const cuda__split_task task)
{
    const cuda__split_side &side = task.sides[blockIdx.y];
    int scale_a = cuda__split_scale(task.scalars->max[0]);
    int scale_b = cuda__split_scale(task.scalars->max[1]);
    float factor = ldexpf(1, blockIdx.y ? scale_b : scale_a);
    uint32_t across = (uint32_t)side.to_width / 4, q = blockIdx.x * SPLIT_THREADS + threadIdx.x;
    uint32_t i = q / across, j = q % across * 4;
    if (q == 0 && blockIdx.y == 0) {
        task.scalars->alpha = ldexpf(task.alpha, -scale_a - scale_b);
        task.scalars->beta = task.beta;
        task.scalars->one = 1;
    }
    if (i >= side.to_height)
        return;
    float4 x = cuda__split_read(side, i, j);
    x = make_float4(x.x * factor, x.y * factor, x.z * factor, x.w * factor);
    cuda__split_parts parts = cuda__split_four(x);
    float *high = side.high + i * side.high_stride + j;
    if (side.cross) {
        uint16_t *cross = side.cross + i * side.cross_stride + j;
        uint2 near = cuda__split_to_bf16(x), low = cuda__split_to_bf16(parts.low);
        *(float4 *)high = parts.high;
        *(uint2 *)cross = side.low_first ? low : near;
        *(uint2 *)(cross + side.part) = side.low_first ? near : low;
        return;
    }
    float4 low = cuda__split_to_tf32(parts.low);
    *(float4 *)high = side.low_first ? low : parts.high;
    *(float4 *)(high + side.part) = side.low_first ? parts.high : low;
    *(float4 *)(high + 2 * side.part) = parts.high;
}

/* Blocks that have a thread for every four numbers; 0: too many. */
static unsigned blocks_of(int64_t height, int64_t width)
{
    int64_t across = (width + 3) / 4;
    if (height >= SPLIT_QUADS_MAX || across >= SPLIT_QUADS_MAX ||
        height * across >= SPLIT_QUADS_MAX)
        return 0;
    return (unsigned)((height * across + SPLIT_THREADS - 1) / SPLIT_THREADS);
}

cudaError_t cuda__split_measure(const struct cuda__split_task *task, cudaStream_t stream)
{
    const struct cuda__split_side *a = &task->sides[0], *b = &task->sides[1];
    unsigned of_a = blocks_of(a->height, a->width), of_b = blocks_of(b->height, b->width);
    unsigned most = of_a > of_b ? of_a : of_b;
    if (of_a == 0 || of_b == 0)
        return cudaErrorInvalidValue;
    cudaError_t status = cuda__start(cuda__split_reset_kernel, 1, 2, 0, stream, task->scalars);
    if (status != cudaSuccess)
        return status;
    return cuda__start(cuda__split_measure_kernel,
                       dim3(most < CUDA__SPLIT_BLOCKS ? most : CUDA__SPLIT_BLOCKS, 2),
                       SPLIT_THREADS, 0, stream, *task, (uint32_t)((a->width + 3) / 4),
                       (uint32_t)((b->width + 3) / 4));
}

cudaError_t cuda__split_fill(const struct cuda__split_task *task, cudaStream_t stream)
{
    const struct cuda__split_side *a = &task->sides[0], *b = &task->sides[1];
    unsigned of_a = blocks_of(a->to_height, a->to_width),
             of_b = blocks_of(b->to_height, b->to_width);
    if (of_a == 0 || of_b == 0)
        return cudaErrorInvalidValue;
    return cuda__start(cuda__split_fill_kernel, dim3(of_a > of_b ? of_a : of_b, 2), SPLIT_THREADS,
                       0, stream, *task);
}
