/* gpu/cuda/ism/recover.cuh: the last algorithm of `ism`, for matrices whose answer was unverified:
 * A is formed and inverted as by lu, recovery and all; with A0_INVERSE alone, where there is no A,
 * Z M = A0^-1 is solved with M = I + X K, K = Y^T A0^-1, by M's factors (solve.cuh), and corrected.
 * The determinant comes from the factors. Host code but for the kernels; any thread; nothing is
 * awaited.
 *
 * As many matrices as the workspace holds are picked from the batch, by their INFO, and recovered
 * together; then the next ones.
 *
 * Cost: of lu twice, and 2 n^2 m operations to form A, 14 n^2 m more where its terms cancel (FP32:
 * 2 n^2 m); with A0_INVERSE alone 28 n^2 m to form M (FP32: 4 n^2 m), and 10 n^3 more.
 */
#ifndef GPU_CUDA_ISM_RECOVER_CUH
#define GPU_CUDA_ISM_RECOVER_CUH

#include "gpu/cuda/ism/equilibrate.cuh"
#include "gpu/cuda/ism/algorithm.cuh"
#include "gpu/cuda/ism/solve.cuh"
#include "gpu/cuda/lu/lu.h"

#define CUDA__ISM_CORRECTIONS 2 /* of a solution by factors */

/* The numbers of the next call.count unverified matrices, from *call.picked on, to call.list;
 * begins: of the batch's first ones. One block, which looks at each matrix once in all rounds. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_pick_kernel(const cuda__ism_call call, bool begins)
{
    cuda__follow_previous();
    __shared__ int found[CUDA__ISM_WARPS];
    int lane = threadIdx.x % CUDA__WARP, warp = threadIdx.x / CUDA__WARP;
    const int64_t start = begins ? 0 : *call.picked;
    int64_t count = 0, within;
    for (int64_t k = threadIdx.x; k < call.count; k += CUDA__ISM_THREADS)
        call.list[k] = 0;
    __syncthreads();
    if (threadIdx.x == 0)
        *call.picked = call.matrices;
    for (int64_t first = start; first < call.matrices && count < call.count;
         first += CUDA__ISM_THREADS) {
        int64_t index = first + threadIdx.x;
        bool unverified = false;
        if (index < call.matrices) {
            const cuda_tensors *item = cuda__ism_item(call, index, &within);
            unverified = ((const int32_t *)item->outputs[METHOD_ISM_INFO])[within] < -1;
        }
        unsigned ballot = __ballot_sync(CUDA__ALL, unverified);
        if (lane == 0)
            found[warp] = __popc(ballot);
        __syncthreads();
        int64_t place = count + __popc(ballot & ((1u << lane) - 1));
        for (int w = 0; w < CUDA__ISM_WARPS; w++) {
            place += w < warp ? found[w] : 0;
            count += found[w];
        }
        if (unverified && place < call.count)
            call.list[place] = index;
        __syncthreads();
        if (unverified && place == call.count - 1)
            *call.picked = index + 1;
    }
}

/* What lu is given: of the inverse of FORMED, and of factors of what is where that will be. */
template <typename T> static __global__ void cuda__ism_items_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    int64_t slot = blockIdx.y;
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    cuda_item item = {};
    item.first = slot;
    item.a = cuda__ism_array_of<T>(call, slot, CUDA__ISM_FORMED);
    item.result = cuda__ism_array_of<T>(call, slot, CUDA__ISM_INVERSE);
    item.extra = &answer->rcond;
    item.info = &answer->info;
    call.items[slot] = item;
    item.a = item.result;
    item.result = cuda__ism_array_of<T>(call, slot, CUDA__ISM_LU);
    item.extra = cuda__ism_array_of<T>(call, slot, CUDA__ISM_PIVOTS);
    item.info = &answer->factor_info;
    call.items[call.held + slot] = item;
}

/* By lu. */
template <typename T> static __global__ void cuda__ism_report_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    int64_t slot = blockIdx.y, within;
    const cuda_tensors *item = cuda__ism_item_of_slot(call, slot, &within);
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    int info = answer->bad ? -1 : answer->info;
    T det_ratio = (T)cuda__ism_value(answer->det, answer->det_exponent);
    T rcond = *(const T *)&answer->rcond;
    if (info < 0)
        det_ratio = rcond = cuda__real<T>::nan();
    else if (info >= 1 && info <= call.n)
        det_ratio = 0;
    answer->refused = info < 0 || (info >= 1 && info <= call.n);
    cuda__ism_store<T>(call, item, within, info, rcond,
                       info < 0 ? (int)METHOD_ALGORITHM_NONE : (int)METHOD_ALGORITHM_LU, det_ratio);
}

/* By solution: refused where a number of it is none, or where it is in range and not good. A block
 * a slot. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_report_solution_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    __shared__ T scratch[CUDA__ISM_WARPS];
    int64_t slot = blockIdx.y, within;
    const cuda_tensors *item = cuda__ism_item_of_slot(call, slot, &within);
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    cuda__ism_check check = cuda__ism_weigh<T, CUDA__ISM_THREADS>(call, scratch, true);
    if (threadIdx.x > 0)
        return;
    int n = (int)call.n, info = answer->bad ? -1 : answer->info, algorithm = METHOD_ALGORITHM_LU;
    bool finite = check.norm_x <= (double)cuda__real<T>::largest;
    double size = check.norm_x * (1 + check.change), eps = cuda__real<T>::eps;
    bool good = finite && check.norm_x >= cuda__ism_min_norm<T>(call) &&
                check.error <= cuda__ism_allowed<T>(n, size) &&
                !cuda__ism_dd_loses<T>(call, answer, 1 + check.change);
    T rcond = cuda__real<T>::nan(), det_ratio = (T)check.det_ratio;
    answer->refused = true;
    if (info >= 1 && info <= n) { /* M is singular */
        rcond = det_ratio = 0;
    } else if (answer->bad) {
        algorithm = METHOD_ALGORITHM_NONE;
        det_ratio = cuda__real<T>::nan();
    } else if (info < 0) { /* M overflows */
        info = n + 1;
        det_ratio = cuda__real<T>::nan();
    } else {
        answer->refused = finite ? !good : isnan(check.norm_x);
        info = !good || size * eps > check.norm_a ? n + 1 : 0;
        det_ratio = answer->refused ? cuda__real<T>::nan() : det_ratio;
    }
    cuda__ism_store<T>(call, item, within, info, rcond, algorithm, det_ratio);
}

/* The inverse, dense; NaN where it is refused. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_write_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS;
    int64_t all = call.n * call.n;
    bool refused = cuda__ism_answer_of<T>(call, slot)->refused;
    const T *from = cuda__ism_array_of<T>(call, slot, CUDA__ISM_INVERSE);
    T *to = cuda__ism_output<T>(call, slot, METHOD_ISM_INVERSE, all);
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; to && e < all;
         e += step)
        to[e] = refused ? cuda__real<T>::nan() : from[e];
}

/* A chunk of matrices that are recovered. */
template <typename T> struct cuda__ism_recovery {
    cuda__ism_sequence<T> sequence;

    static constexpr enum precision precision =
        sizeof(T) == sizeof(float) ? PRECISION_FP32 : PRECISION_FP64;

    bool solves() const
    {
        return !cuda__ism_knows(sequence.call);
    }

    /* A, or M. */
    void form()
    {
        const cuda__ism_call &call = sequence.call;
        int64_t n = call.n, m = call.m;
        cuda__ism_shape formed = sequence.square(CUDA__ISM_FORMED);
        if (sequence.has(METHOD_ISM_A)) {
            sequence.over(n * n, cuda__ism_bring_kernel<T>, call, (int)METHOD_ISM_A, formed);
            return;
        }
        int start = solves()              ? CUDA__ISM_FROM_ONES
                    : sequence.diagonal() ? CUDA__ISM_FROM_D
                                          : CUDA__ISM_FROM_A0;
        sequence.over(n * n, cuda__ism_start_kernel<T>, call, start, formed);
        if (m == 0)
            return;
        if (solves())
            form_m();
        else
            form_a();
    }

    /* FORMED, which is A0, += X Y^T; anew where terms cancel. */
    void form_a()
    {
        const cuda__ism_call &call = sequence.call;
        const int64_t n = call.n, tiles = sequence.pieces(n, CUDA__ISM_FORM_TILE);
        sequence.multiply(n, n, call.m, false, true, 1, {CUDA__ISM_X, 0, 0}, {CUDA__ISM_Y, 0, 0}, 1,
                          {CUDA__ISM_FORMED, 0, 0});
        sequence.look_at(CUDA__ISM_FORMED, 0);
        sequence.weigh_thin(true);
        sequence.start(cuda__ism_cancel_kernel<T>, 1, CUDA__ISM_THREADS, 0, call);
        sequence.start(cuda__ism_form_kernel<T>, tiles * tiles, CUDA__ISM_THREADS, 0, call);
    }

    /* FORMED, which is I, += X K: terms of K may cancel, and those of X K. What its numbers lack
     * is where the inverse will be. */
    void form_m()
    {
        const cuda__ism_call &call = sequence.call;
        const int64_t n = call.n, m = call.m;
        sequence.over(n * n, cuda__ism_clear_kernel<T>, call, (int)CUDA__ISM_INVERSE, (int64_t)0,
                      n * n);
        for (int64_t first = 0; first < m; first += CUDA__ISM_MET) {
            const int64_t count = m - first < CUDA__ISM_MET ? m - first : CUDA__ISM_MET;
            const cuda__ism_twin k = {CUDA__ISM_K, CUDA__ISM_K, count};
            const cuda__ism_twin b = {CUDA__ISM_B, -1, 0};
            const cuda__ism_twin formed = {CUDA__ISM_FORMED, CUDA__ISM_INVERSE, 0};
            multiply_twofold({CUDA__ISM_Y, first, 1, call.ldm, count, n, b, k, false});
            multiply_twofold({CUDA__ISM_X, first, call.ldm, 1, n, count, k, formed, true});
        }
    }

    void multiply_twofold(const cuda__ism_twofold &of)
    {
        sequence.over(sequence.pieces(of.rows, CUDA__ISM_DD_ROWS) * sequence.call.n,
                      cuda__ism_twofold_kernel<T>, sequence.call, of);
    }

    struct cuda_batch batch(int table) const
    {
        struct cuda_batch batch = {};
        batch.items = sequence.call.items + table * sequence.call.held;
        batch.item_count = batch.matrices = sequence.call.count;
        return batch;
    }

    void invert()
    {
        const cuda__ism_call &call = sequence.call;
        struct cuda_batch all = batch(0);
        bool small = call.n <= CUDA_SMALL_N_MAX;
        if (sequence.status == cudaSuccess)
            sequence.status =
                small ? cuda_inverse_small(precision, call.n, &all, sequence.stream)
                      : cuda_inverse_middle(precision, call.n, &all, call.lu, call.lu_bytes,
                                            sequence.products, sequence.stream);
        if (sequence.status == cudaSuccess)
            sequence.status =
                small ? cuda_recover_small(precision, call.n, &all, sequence.stream)
                      : cuda_recover_middle(precision, call.n, &all, call.lu, call.lu_bytes,
                                            sequence.products, sequence.stream);
    }

    /* LU = the factors of an array, shifted or, but for M, equilibrated, and the answer's
     * determinant times its, or over A0's. INVERSE is used up. */
    void factor(int array)
    {
        const cuda__ism_call &call = sequence.call;
        struct cuda_batch all = batch(1);
        sequence.look_at(array, 0);
        if (!solves()) {
            sequence.start(cuda__ism_rows_kernel<T>, sequence.pieces(call.n, CUDA__ISM_WARPS),
                           CUDA__ISM_THREADS, 0, call, array);
            sequence.over(call.n, cuda__ism_columns_kernel<T>, call, array);
        }
        sequence.start(cuda__ism_shift_kernel<T>, 1, CUDA__ISM_THREADS, 0, call, !solves());
        if (!solves())
            sequence.over(call.n * call.n, cuda__ism_equilibrated_kernel<T>, call, array,
                          (int)CUDA__ISM_INVERSE);
        sequence.over(call.n * call.n, cuda__ism_shifted_kernel<T>, call, array,
                      (int)CUDA__ISM_INVERSE, !solves());
        if (sequence.status == cudaSuccess)
            sequence.status =
                call.n <= CUDA_SMALL_N_MAX
                    ? cuda_factor_small(precision, call.n, &all, sequence.stream)
                    : cuda_factor_middle(precision, call.n, &all, call.lu, call.lu_bytes,
                                         sequence.products, sequence.stream);
        sequence.start(cuda__ism_determinant_kernel<T>, 1, 1, 0, call, array == CUDA__ISM_A0,
                       solves());
    }

    /* Z's columns at .. at + columns - 1 times U^-1, or with Lower L^-1: the half that has all it
     * needs, what it does to the other one, that. */
    template <bool Lower> void substitute(int64_t at, int64_t columns)
    {
        const cuda__ism_call &call = sequence.call;
        int64_t half = sequence.pieces(sequence.pieces(columns, CUDA__ISM_PANEL), 2);
        half *= CUDA__ISM_PANEL;
        if (columns <= CUDA__ISM_PANEL) {
            sequence.start(cuda__ism_panel_kernel<T, Lower>,
                           sequence.pieces(call.n, CUDA__ISM_PANEL_ROWS), CUDA__ISM_PANEL_ROWS, 0,
                           call, at);
            return;
        }
        int64_t first = Lower ? at + half : at, other = Lower ? at : at + half;
        int64_t inner = Lower ? columns - half : half, rest = columns - inner;
        substitute<Lower>(first, inner);
        sequence.multiply(call.n, rest, inner, false, false, -1, {CUDA__ISM_Z, 0, first},
                          {CUDA__ISM_LU, first, other}, 1, {CUDA__ISM_Z, 0, other});
        substitute<Lower>(other, rest);
    }

    /* LU = A0^-1 - Z M */
    void find_error()
    {
        const cuda__ism_call &call = sequence.call;
        int64_t n = call.n;
        sequence.over(n * n, cuda__ism_start_kernel<T>, call, (int)CUDA__ISM_FROM_B,
                      sequence.square(CUDA__ISM_LU));
        sequence.multiply(n, n, n, false, false, -1, {CUDA__ISM_Z, 0, 0}, {CUDA__ISM_FORMED, 0, 0},
                          1, {CUDA__ISM_LU, 0, 0});
    }

    /* Z M = A0^-1 by M's factors, and Z + (A0^-1 - Z M) M^-1 by its inverse, in which growing
     * factors have been recovered: twice, since they may have left little of Z. */
    void solve()
    {
        const cuda__ism_call &call = sequence.call;
        int64_t n = call.n;
        sequence.over(n * n, cuda__ism_shifted_kernel<T>, call, (int)CUDA__ISM_B, (int)CUDA__ISM_Z,
                      false);
        substitute<false>(0, n);
        substitute<true>(0, n);
        sequence.start(cuda__ism_interchange_kernel<T>, sequence.pieces(n, CUDA__ISM_THREADS),
                       CUDA__ISM_THREADS, 0, call);
        for (int k = 0; k < CUDA__ISM_CORRECTIONS; k++) {
            find_error();
            if (k == 0) {
                sequence.look_at(CUDA__ISM_LU, 0);
                sequence.over(n * n, cuda__ism_begin_corrections_kernel<T>, call);
            }
            sequence.multiply(n, n, n, false, false, 1, {CUDA__ISM_LU, 0, 0},
                              {CUDA__ISM_INVERSE, 0, 0}, 1, {CUDA__ISM_Z, 0, 0});
        }
    }

    /* Behind `lines` lines of ERROR: T A0^-1 - T Z (M - I); SIGNS: the sums of the columns of M -
     * I. M was rounded once, so that there is no other one to try. */
    void check_solution()
    {
        const cuda__ism_call &call = sequence.call;
        const int64_t n = call.n, lines = sequence.lines();
        sequence.look_at_answer();
        sequence.start(cuda__ism_change_sums_kernel<T>, sequence.pieces(n, CUDA__ISM_THREADS),
                       CUDA__ISM_THREADS, 0, call);
        sequence.multiply(lines, n, n, false, false, 1, {-1, 0, 0}, {CUDA__ISM_B, 0, 0}, 0,
                          {CUDA__ISM_ERROR, lines, 0});
        sequence.multiply(lines, n, n, false, false, -1, {CUDA__ISM_TZ, 0, 0},
                          {CUDA__ISM_FORMED, 0, 0}, 1, {CUDA__ISM_ERROR, lines, 0});
    }

    void run(bool begins)
    {
        const cuda__ism_call &call = sequence.call;
        sequence.start_once(cuda__ism_pick_kernel<T>, 1, call, begins);
        sequence.bring(true);
        form();
        sequence.start(cuda__ism_items_kernel<T>, 1, 1, 0, call);
        factor(CUDA__ISM_FORMED);
        if (sequence.has(METHOD_ISM_A0_DENSE))
            factor(CUDA__ISM_A0);
        invert();
        if (solves()) {
            solve();
            check_solution();
            sequence.start(cuda__ism_report_solution_kernel<T>, 1, CUDA__ISM_THREADS, 0, call);
            sequence.refuse(METHOD_ISM_INVERSE, call.n * call.n);
        } else {
            sequence.start(cuda__ism_report_kernel<T>, 1, 1, 0, call);
            if (sequence.wants(METHOD_ISM_INVERSE))
                sequence.over(call.n * call.n, cuda__ism_write_kernel<T>, call);
        }
        sequence.write_factors(true);
    }
};

template <typename T>
static cudaError_t cuda__ism_recover(const cuda__ism_call &work, struct cuda_products *products,
                                     cudaStream_t stream)
{
    cuda__ism_recovery<T> recovery = {{{{work, products, stream, cudaSuccess}}}};
    cuda__ism_call &call = recovery.sequence.call;
    call.unverified = nullptr;
    recovery.sequence.start_once(cuda__ism_weights_kernel<T>, CUDA__ISM_LINE_BLOCKS, call);
    for (int64_t left = work.count; left > 0; left -= call.count) {
        call.count = left < work.held ? left : work.held;
        recovery.run(left == work.count);
    }
    return recovery.sequence.status;
}

#endif
