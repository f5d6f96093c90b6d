/* gpu/cuda/ism/device.cuh: `ism` on the device: what its kernels share: where a matrix's tensors
 * and arrays are, the probe vectors, what a block of threads finds out together, the
 * verdict, and how one of them follows another. Device code but for that; kernels take a slot a
 * blockIdx.y.
 */
#ifndef GPU_CUDA_ISM_DEVICE_CUH
#define GPU_CUDA_ISM_DEVICE_CUH

#include "gpu/cuda/base/find.cuh"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/ism/call.h"
#include "gpu/cuda/ism/lost.cuh"
#include "gpu/cuda/base/reduce.cuh"
#include "gpu/cuda/base/real.cuh"

#define CUDA__ISM_THREADS 256
#define CUDA__ISM_WARPS (CUDA__ISM_THREADS / CUDA__WARP)
/* Of a block that has a large matrix's lines to itself, and from which order on it is large on the
 * algorithm by blocks. Streamed updates are large from another order on (stream.cuh). */
#define CUDA__ISM_ALONE_THREADS 1024
#define CUDA__ISM_ALONE_ORDER 2048
#define CUDA__ISM_NEAR 64         /* times eps: below that RCOND's INFO is left to lu */
#define CUDA__ISM_WHOLE_RATIO 8.0 /* of a residual that is known whole; the contract has 15 */

/* What is known of a matrix on its way: at the start of its part. */
struct cuda__ism_answer {
    double det; /* fraction and exponent of the product of pivots */
    int64_t det_exponent;
    double norm_a;              /* |A|, or |A0^-1| where A is not known */
    double change;              /* of a check where A is not known */
    double reach;               /* of lost.cuh: the largest row */
    unsigned long long loss;    /* the bits of a number that is not negative */
    double rcond;               /* of lu, in the precision */
    unsigned long long terms;   /* bits of a sum that terms.cuh makes */
    int32_t bad;                /* an input is not finite */
    int32_t broken;             /* a block is singular */
    int32_t refused;            /* no inverse goes out */
    int32_t info, factor_info;  /* of lu */
    int32_t shift;              /* binary places that what was factored was scaled by */
    double factored;            /* a bound of the 1-norm of what is shifted */
    int32_t equilibrated, lost; /* see recover.cuh */
    int32_t form_dd;            /* recovery: A is to be formed in double-double */
    int32_t dd_lost, restored;  /* see woodbury.cuh: no inverse was had; one goes out */
    double amplified, dd_det;
    int64_t dd_det_exponent;
    int32_t chosen[CUDA__ISM_PROBES]; /* columns */
};

/* ---- Places ---- */

/* The matrix `index` of the batch: its item, and its number there. */
static __device__ __forceinline__ const cuda_tensors *cuda__ism_item(const cuda__ism_call &call,
                                                                     int64_t index, int64_t *within)
{
    const cuda_tensors *item =
        call.tensors + cuda__item_of(call.tensors, call.item_count, call.matrices, index);
    *within = index - item->first;
    return item;
}

static __device__ __forceinline__ const cuda_tensors *
cuda__ism_item_of_slot(const cuda__ism_call &call, int64_t slot, int64_t *within)
{
    return cuda__ism_item(call, call.list ? call.list[slot] : call.first + slot, within);
}

/* The slot's part of an input or output, `numbers` for each matrix; NULL: there is none. */
template <typename T>
static __device__ __forceinline__ const T *cuda__ism_input(const cuda__ism_call &call, int64_t slot,
                                                           int input, int64_t numbers)
{
    int64_t within;
    const cuda_tensors *item = cuda__ism_item_of_slot(call, slot, &within);
    return item->inputs[input] ? (const T *)item->inputs[input] + within * numbers : nullptr;
}

template <typename T>
static __device__ __forceinline__ T *cuda__ism_output(const cuda__ism_call &call, int64_t slot,
                                                      int output, int64_t numbers)
{
    int64_t within;
    const cuda_tensors *item = cuda__ism_item_of_slot(call, slot, &within);
    return item->outputs[output] ? (T *)item->outputs[output] + within * numbers : nullptr;
}

/* An array of a part; host code too. */
template <typename T>
static __host__ __device__ __forceinline__ T *cuda__ism_array_of(const cuda__ism_call &call,
                                                                 int64_t slot, int array)
{
    return (T *)call.parts + slot * call.part + call.at[array];
}

/* A0^-1 as it was given: rows of ld numbers, but of n where Z has taken its place. */
template <typename T>
static __device__ __forceinline__ const T *cuda__ism_given_inverse(const cuda__ism_call &call,
                                                                   int64_t slot)
{
    return call.plan.in_place
               ? cuda__ism_input<T>(call, slot, METHOD_ISM_A0_INVERSE, call.n * call.n)
               : cuda__ism_array_of<T>(call, slot, CUDA__ISM_B);
}

template <typename T>
static __device__ __forceinline__ cuda__ism_answer *cuda__ism_answer_of(const cuda__ism_call &call,
                                                                        int64_t slot)
{
    return (cuda__ism_answer *)cuda__ism_array_of<T>(call, slot, CUDA__ISM_ANSWER);
}

static __host__ __device__ __forceinline__ bool cuda__ism_is_whole(int64_t n)
{
    return n <= CUDA__ISM_PROBES;
}

/* Is A known? */
static __host__ __device__ __forceinline__ bool cuda__ism_knows(const cuda__ism_call &call)
{
    return !(call.inputs >> METHOD_ISM_A0_INVERSE & 1) || (call.inputs >> METHOD_ISM_A0_DENSE & 1);
}

/* ---- The probe vectors ---- */

static __host__ __device__ __forceinline__ int cuda__ism_probes_of(const cuda__ism_call &call)
{
    const bool knows = cuda__ism_knows(call);
    return cuda__ism_is_whole(call.n)       ? (int)call.n
           : call.plan.last                 ? CUDA__ISM_CHECK_PROBES
           : knows                          ? CUDA__ISM_KNOWN_PROBES
           : call.n <= CUDA__ISM_NORM_ORDER ? CUDA__ISM_PROBES
                                            : CUDA__ISM_CHECK_PROBES;
}

/* Number i of a line (gpu/common/probes.h); up to n = CUDA__ISM_PROBES of the identity. */
static __device__ __forceinline__ float cuda__ism_weight(int64_t n, int64_t i, int line)
{
    if (cuda__ism_is_whole(n))
        return i == line ? 1.0f : 0.0f;
    const uint32_t bits = ISM_PROBE_BITS((uint32_t)i, (uint32_t)line);
    return ISM_PROBE_OF(bits);
}

/* What a check allows, by the size of what was multiplied. */
template <typename T>
static __device__ __forceinline__ double cuda__ism_allowed(int64_t n, double size)
{
    double share = cuda__ism_is_whole(n) ? CUDA__ISM_WHOLE_RATIO * (double)n : sqrt((double)n);
    return share * (double)cuda__real<T>::eps * size;
}

/* ---- Products of many numbers ---- */

/* A denormal product would have lost digits. */
static __device__ __forceinline__ void cuda__ism_times(double *fraction, int64_t *exponent,
                                                       double factor)
{
    int shift = 0;
    if (fabs(factor) < 2 * cuda__real<double>::min_safe) {
        factor *= 0x1p64;
        *exponent -= 64;
    }
    *fraction = frexp(*fraction * factor, &shift);
    *exponent += shift;
}

static __device__ __forceinline__ double cuda__ism_value(double fraction, int64_t exponent)
{
    exponent = exponent > 4000 ? 4000 : exponent < -4000 ? -4000 : exponent;
    return ldexp(fraction, (int)exponent);
}

/* ---- The report ---- */

/* The numbers of a matrix, by one thread. info < -1: it is unverified, and the rest does not count.
 */
template <typename T>
static __device__ __forceinline__ void
cuda__ism_store(const cuda__ism_call &call, const cuda_tensors *item, int64_t within, int info,
                T rcond, int algorithm, T det_ratio)
{
    ((int32_t *)item->outputs[METHOD_ISM_INFO])[within] = info;
    ((T *)item->outputs[METHOD_ISM_RCOND])[within] = rcond;
    ((int32_t *)item->outputs[METHOD_ISM_ALGORITHM])[within] = algorithm;
    ((T *)item->outputs[METHOD_ISM_DET_RATIO])[within] = det_ratio;
    if (info < -1 && call.unverified)
        atomicAdd(call.unverified, 1);
}

/* What a check has measured. */
struct cuda__ism_check {
    double error;          /* the largest of T (I - Z A), or of T (A0^-1 - Z M) */
    double norm_x, norm_a; /* norm_a: of A, or of A0^-1 where A is not known */
    double change;         /* |X Y^T A0^-1| where A is not known */
    double lost;           /* see lost.cuh */
    bool blind;            /* likewise */
    double det_ratio;
    bool bad;
};

/* The smallest norm of an inverse of a matrix whose numbers are in range: smaller ones have hardly
 * a digit, and their check, which works with as few, would not show. One of FP32 was checked before
 * it was rounded, perhaps to denormal numbers. */
template <typename T>
static __device__ __forceinline__ double cuda__ism_min_norm(const cuda__ism_call &call)
{
    const double smallest = (double)cuda__real<T>::min_safe;
    return sizeof(T) < sizeof(double) && !call.recovery ? (double)call.n * smallest : smallest / 4;
}

/* Of what a check allows: less where an update of rank 0 is to repair a known inverse. */
static __device__ __forceinline__ double cuda__ism_share(const cuda__ism_call &call)
{
    const bool refreshes = call.m == 0 && (call.inputs >> METHOD_ISM_A0_DENSE & 1);
    const double whole = cuda__ism_is_whole(call.n) ? CUDA__ISM_WHOLE_RATIO : 1;
    return refreshes ? METHOD_ISM_FRESH_RATIO / whole : 1;
}

/* Reports the answer of `algorithm`, or that there is none; by one thread. Returns INFO: what is
 * singular is left to lu, or to a solution. */
template <typename T>
static __device__ __forceinline__ int cuda__ism_judge(const cuda__ism_call &call,
                                                      const cuda_tensors *item, int64_t within,
                                                      const cuda__ism_check &check, int algorithm)
{
    const double eps = cuda__real<T>::eps, nan = (double)cuda__real<T>::nan();
    const double largest = (double)cuda__real<T>::largest;
    bool known = cuda__ism_knows(call);
    bool sized = check.norm_x >= cuda__ism_min_norm<T>(call) && check.norm_x <= largest;
    double size = check.norm_x * (known ? check.norm_a : 1 + check.change);
    double rcond = known ? 1 / check.norm_a / check.norm_x : nan;
    bool good = sized && check.norm_a <= largest && !check.bad && !check.blind &&
                check.error <= cuda__ism_share(call) * cuda__ism_allowed<T>(call.n, size) &&
                (known ? check.norm_a > 0 && rcond >= CUDA__ISM_NEAR * eps
                       : !cuda__ism_cancels(call.n, check.lost, check.change) &&
                             size * eps <= check.norm_a);
    int info = check.bad ? -1 : CUDA_INFO_UNVERIFIED;
    double det_ratio = nan;
    if (good) {
        info = 0;
        det_ratio = check.det_ratio;
    } else {
        rcond = nan;
    }
    cuda__ism_store<T>(call, item, within, info, (T)rcond,
                       good ? algorithm : (int)METHOD_ALGORITHM_NONE, (T)det_ratio);
    return info;
}

/* ---- Launches ---- */

/* A kernel behind what is in the stream; it begins by waiting for that (cuda__follow_previous, or
 * where it leaves no room to let the next one in, cuda__wait_for_previous). scripts/check/waits.py
 * looks for it. */
template <typename... Parameters, typename... Arguments>
static cudaError_t cuda__ism_follow(void (*kernel)(Parameters...), dim3 blocks, unsigned threads,
                                    size_t shared_bytes, cudaStream_t stream,
                                    const Arguments &...arguments)
{
    return cuda__follow(kernel, blocks, threads, shared_bytes, cuda__overlaps(), stream,
                        arguments...);
}

#endif
