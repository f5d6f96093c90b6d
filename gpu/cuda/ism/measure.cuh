/* gpu/cuda/ism/measure.cuh: what `ism` measures on request, when the inverses are out: |I - Z A| of
 * an A that is known, and the condition of the capacitance matrix C = I + Y^T A0^-1 X, which is
 * lu's. Host code but for the kernels; any thread; nothing is awaited. Device code: a slot a
 * blockIdx.y.
 *
 * It has a layout of its own, and brings what is given once more: most inverses come by kernels
 * that leave nothing behind. An unverified matrix has its residual measured again when it has been
 * recovered.
 *
 * Cost: that of the host's (gpu/host/ism/measure.c), as products.
 */
#ifndef GPU_CUDA_ISM_MEASURE_CUH
#define GPU_CUDA_ISM_MEASURE_CUH

#include "gpu/cuda/base/reduce.cuh"
#include "gpu/cuda/ism/algorithm.cuh"
#include "gpu/cuda/lu/lu.h"

/* Z = the inverse that is out; NaN where it is not wanted. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_fetch_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    const int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS, n = call.n;
    const T *from = cuda__ism_output<T>(call, slot, METHOD_ISM_INVERSE, n * n);
    T *z = cuda__ism_array_of<T>(call, slot, CUDA__ISM_Z);
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; e < n * n; e += step)
        z[e / n * call.ld + e % n] = from ? from[e] : cuda__real<T>::nan();
}

/* FORMED = I - Z A0 where A0 is diagonal, else I. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_begin_residual_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    const int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS, n = call.n;
    const bool diagonal = !(call.inputs >> METHOD_ISM_A0_INVERSE & 1);
    const T *z = cuda__ism_array_of<T>(call, slot, CUDA__ISM_Z);
    const T *d = cuda__ism_array_of<T>(call, slot, CUDA__ISM_D);
    T *to = cuda__ism_array_of<T>(call, slot, CUDA__ISM_FORMED);
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; e < n * n; e += step) {
        const int64_t i = e / n, j = e % n;
        to[i * call.ld + j] = T(i == j) - (diagonal ? z[i * call.ld + j] * d[j] : T(0));
    }
}

/* C = I + C, and what lu is given. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_capacitance_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    const int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS;
    const int64_t first = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x;
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    T *c = cuda__ism_array_of<T>(call, slot, CUDA__ISM_C);
    for (int64_t k = first; k < call.m; k += step)
        c[k * (call.m + 1)] += 1;
    if (first > 0)
        return;
    cuda_item item = {};
    item.first = slot;
    item.a = c;
    item.result = cuda__ism_array_of<T>(call, slot, CUDA__ISM_INVERSE);
    item.extra = &answer->rcond;
    item.info = &answer->info;
    call.items[slot] = item;
}

/* Writes what was measured. A block a slot. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_measured_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    __shared__ T scratch[CUDA__ISM_WARPS];
    const int64_t slot = blockIdx.y;
    const T nan = cuda__real<T>::nan();
    const cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    const T *sizes = cuda__ism_array_of<T>(call, slot, CUDA__ISM_SIZES);
    T *residual = cuda__ism_output<T>(call, slot, METHOD_ISM_RESIDUAL, 1);
    T *rcond = cuda__ism_output<T>(call, slot, METHOD_ISM_RCOND_CAPACITANCE, 1), largest = 0;
    const bool known = call.wanted >> METHOD_ISM_RESIDUAL & 1 && cuda__ism_knows(call);
    for (int64_t j = threadIdx.x; known && j < call.n; j += CUDA__ISM_THREADS)
        largest = cuda__max_or_nan(largest, sizes[j]);
    largest = cuda__block_max<CUDA__ISM_WARPS>(largest, scratch);
    if (threadIdx.x > 0)
        return;
    if (residual)
        *residual = known ? largest : nan;
    if (rcond && call.wanted >> METHOD_ISM_RCOND_CAPACITANCE & 1)
        *rcond = call.m == 0                                          ? T(1)
                 : call.m > call.n || answer->bad || answer->info < 0 ? nan
                                                                      : *(const T *)&answer->rcond;
}

/* ---- The launches ---- */

/* Inverts the matrices of the slots, of this order, that the table of items has; as by lu, recovery
 * and all. */
template <typename T> static void cuda__ism_invert(cuda__ism_sequence<T> &sequence, int64_t order)
{
    constexpr enum precision precision =
        sizeof(T) == sizeof(float) ? PRECISION_FP32 : PRECISION_FP64;
    const cuda__ism_call &call = sequence.call;
    const bool small = order <= CUDA_SMALL_N_MAX;
    struct cuda_batch all = {};
    all.items = call.items;
    all.item_count = all.matrices = call.count;
    if (sequence.status == cudaSuccess)
        sequence.status = small
                              ? cuda_inverse_small(precision, order, &all, sequence.stream)
                              : cuda_inverse_middle(precision, order, &all, call.lu, call.lu_bytes,
                                                    sequence.products, sequence.stream);
    if (sequence.status == cudaSuccess)
        sequence.status = small
                              ? cuda_recover_small(precision, order, &all, sequence.stream)
                              : cuda_recover_middle(precision, order, &all, call.lu, call.lu_bytes,
                                                    sequence.products, sequence.stream);
}

/* The sums of the columns of |I - Z A| in SIZES. Of A alone X is A - A0, and Y is I. */
template <typename T> static void cuda__ism_measure_residual(cuda__ism_sequence<T> &sequence)
{
    const cuda__ism_call &call = sequence.call;
    const int64_t n = call.n, m = call.m;
    const cuda__ism_operand z = {CUDA__ISM_Z, 0, 0}, x = {CUDA__ISM_X, 0, 0};
    const cuda__ism_operand thin = {CUDA__ISM_THIN, 0, 0}, to = {CUDA__ISM_FORMED, 0, 0};
    sequence.over(n * n, cuda__ism_fetch_kernel<T>, call);
    sequence.over(n * n, cuda__ism_begin_residual_kernel<T>, call);
    if (sequence.has(METHOD_ISM_A0_DENSE))
        sequence.multiply(n, n, n, false, false, -1, z, {CUDA__ISM_A0, 0, 0}, 1, to);
    if (sequence.has(METHOD_ISM_A)) {
        sequence.multiply(n, n, n, false, false, -1, z, x, 1, to);
    } else if (m > 0) {
        sequence.multiply(n, m, n, false, false, 1, z, x, 0, thin);
        sequence.multiply(n, n, m, false, true, -1, thin, {CUDA__ISM_Y, 0, 0}, 1, to);
    }
    sequence.look_at(CUDA__ISM_FORMED, 0);
}

/* RCOND of I + K X, K = Y^T A0^-1. */
template <typename T> static void cuda__ism_measure_capacitance(cuda__ism_sequence<T> &sequence)
{
    const cuda__ism_call &call = sequence.call;
    const int64_t n = call.n, m = call.m;
    const cuda__ism_operand k = {CUDA__ISM_K, 0, 0};
    if (sequence.diagonal())
        sequence.start_both(cuda__ism_scale_kernel<T>,
                            sequence.pieces(n, CUDA__ISM_TILE) * sequence.pieces(m, CUDA__ISM_TILE),
                            call, (int64_t)0, m);
    else
        sequence.multiply(m, n, n, true, false, 1, {CUDA__ISM_Y, 0, 0}, {CUDA__ISM_B, 0, 0}, 0, k);
    sequence.multiply(m, m, n, false, false, 1, k, {CUDA__ISM_X, 0, 0}, 0, {CUDA__ISM_C, 0, 0});
    sequence.over(m, cuda__ism_capacitance_kernel<T>, call);
    cuda__ism_invert(sequence, m);
}

/* The first work.matrices of the batch, or of the list. */
template <typename T>
static cudaError_t cuda__ism_measure(const cuda__ism_call &work, struct cuda_products *products,
                                     cudaStream_t stream)
{
    cuda__ism_sequence<T> sequence = {{{work, products, stream, cudaSuccess}}};
    cuda__ism_call &call = sequence.call;
    for (int64_t done = 0; done < work.matrices; done += call.count) {
        call.count = work.matrices - done < work.held ? work.matrices - done : work.held;
        call.first = done;
        call.list = work.list ? work.list + done : nullptr;
        sequence.bring(false);
        if (sequence.wants(METHOD_ISM_RESIDUAL) && cuda__ism_knows(call))
            cuda__ism_measure_residual(sequence);
        if (sequence.wants(METHOD_ISM_RCOND_CAPACITANCE) && call.m > 0 && call.m <= call.n)
            cuda__ism_measure_capacitance(sequence);
        sequence.start(cuda__ism_measured_kernel<T>, 1, CUDA__ISM_THREADS, 0, call);
    }
    return sequence.status;
}

#endif
