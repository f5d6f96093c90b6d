/* gpu/cuda/ism/algorithm.cuh: the launches of `ism` by blocks: a sequence for as many matrices as
 * the workspace holds, then for the next ones. Host code, any thread; nothing is awaited.
 *
 * Which kernels and products there are follows from n, m, the plan and what is given. With lines of
 * n numbers for G^T, (G R)^T and K a step is
 *
 *      W = X_s^T A0^-T - P^T (G R)^T_earlier,    P = K_earlier X_s,
 *      K_s = Y_s^T A0^-1 - Q^T K_earlier,        Q = (G R)^T_earlier Y_s,
 *      R^T = (I + W Y_s)^-1, (G R)^T_s = R^T W,  and Z = A0^-1 - (G R) K.
 *
 * What is earlier than a group is met by the whole group at once, the rest by the block.
 */
#ifndef GPU_CUDA_ISM_ALGORITHM_CUH
#define GPU_CUDA_ISM_ALGORITHM_CUH

#include "gpu/cuda/ism/fused.cuh"
#include "gpu/cuda/ism/last_narrow.cuh"
#include "gpu/cuda/ism/launcher.cuh"
#include "gpu/cuda/ism/middle_room.h"
#include "gpu/cuda/ism/tile.cuh"

#define CUDA__ISM_LINE_BLOCKS 64 /* that make the probe vectors */
#define CUDA__ISM_IDLE (-20)     /* exponent of a column next to zeros; n is 2^14 at most */

/* By what power of two a column of X is multiplied and one of Y divided, x and y being their
 * largest magnitudes; see gpu/host/ism/column_scaling.c. */
template <typename T> static __device__ __forceinline__ int cuda__ism_scaling_of(T x, T y)
{
    constexpr int apart = sizeof(T) == sizeof(float) ? 32 : 256;
    const double larger = fmax((double)x, (double)y), smaller = fmin((double)x, (double)y);
    int of_x = CUDA__ISM_IDLE, of_y = CUDA__ISM_IDLE;
    if (!(larger <= (double)cuda__real<T>::largest) || larger == 0)
        return 0;
    if (x > 0)
        frexp((double)x, &of_x);
    if (y > 0)
        frexp((double)y, &of_y);
    if (smaller > 0 && larger <= ldexp(smaller, apart))
        return 0;
    return smaller > 0 ? (of_y - of_x) / 2 : of_y - of_x;
}

/* Columns of X and Y whose sizes are far apart are brought to one size, X Y^T being what it is:
 * else products of the small one with A0^-1 may underflow. A block a column. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_scale_columns_kernel(const cuda__ism_call call)
{
    cuda__follow_previous();
    __shared__ T scratch[CUDA__ISM_WARPS];
    const int64_t slot = blockIdx.y, c = blockIdx.x;
    T *x = cuda__ism_array_of<T>(call, slot, CUDA__ISM_X) + c, largest_x = 0;
    T *y = cuda__ism_array_of<T>(call, slot, CUDA__ISM_Y) + c, largest_y = 0;
    for (int64_t i = threadIdx.x; i < call.n; i += CUDA__ISM_THREADS) {
        largest_x = cuda__max_or_nan(largest_x, (T)fabs(x[i * call.ldm]));
        largest_y = cuda__max_or_nan(largest_y, (T)fabs(y[i * call.ldm]));
    }
    largest_x = cuda__block_max<CUDA__ISM_WARPS>(largest_x, scratch);
    largest_y = cuda__block_max<CUDA__ISM_WARPS>(largest_y, scratch);
    const int shift = cuda__ism_scaling_of(largest_x, largest_y);
    for (int64_t i = threadIdx.x; shift != 0 && i < call.n; i += CUDA__ISM_THREADS) {
        x[i * call.ldm] = (T)ldexp((double)x[i * call.ldm], shift);
        y[i * call.ldm] = (T)ldexp((double)y[i * call.ldm], -shift);
    }
}

/* A chunk of matrices on its way. */
template <typename T> struct cuda__ism_sequence : cuda__ism_verifier<T> {
    typedef cuda__ism_verifier<T> verifier;
    using verifier::call;
    using verifier::check;
    using verifier::check_known;
    using verifier::check_update;
    using verifier::diagonal;
    using verifier::has;
    using verifier::look_at;
    using verifier::look_at_answer;
    using verifier::measure_a;
    using verifier::measure_diagonal;
    using verifier::multiply;
    using verifier::note;
    using verifier::over;
    using verifier::over_both;
    using verifier::pieces;
    using verifier::probes;
    using verifier::products;
    using verifier::square;
    using verifier::start;
    using verifier::start_alone;
    using verifier::start_both;
    using verifier::start_grid;
    using verifier::start_once;
    using verifier::status;
    using verifier::stream;
    using verifier::stride;
    using verifier::thin;
    using verifier::weigh_thin;

    /* ---- What is given ---- */

    /* sizes: the sums of A0 or A0^-1 are wanted, for the check. */
    void bring(bool sizes)
    {
        bool alone = has(METHOD_ISM_A);
        note(CUDA_ISM_BRING);
        start(cuda__ism_begin_kernel<T>, 1, 1, 0, call);
        if (alone) {
            over(call.n * call.n, cuda__ism_bring_kernel<T>, call, (int)METHOD_ISM_A,
                 thin(CUDA__ISM_X));
            look_at(CUDA__ISM_X, 1);
            over(call.n * call.n, cuda__ism_start_kernel<T>, call, (int)CUDA__ISM_FROM_ONES,
                 thin(CUDA__ISM_Y));
        } else {
            over_both(call.n * call.m, cuda__ism_bring_kernel<T>, call, (int)METHOD_ISM_X,
                      thin(CUDA__ISM_X));
        }
        if (call.recovery && !cuda__ism_knows(call))
            start(cuda__ism_scale_columns_kernel<T>, call.m, CUDA__ISM_THREADS, 0, call);
        if (diagonal() && alone)
            start_alone(cuda__ism_diagonal_kernel<T, CUDA__ISM_THREADS>,
                        cuda__ism_diagonal_kernel<T, CUDA__ISM_ALONE_THREADS>, 1, call);
        else if (diagonal())
            over(call.n, cuda__ism_diagonal_kernel<T, CUDA__ISM_THREADS>, call);
        else
            over(call.n * call.n, cuda__ism_bring_kernel<T>, call, (int)METHOD_ISM_A0_INVERSE,
                 square(CUDA__ISM_B));
        if (has(METHOD_ISM_A0_DENSE))
            over(call.n * call.n, cuda__ism_bring_kernel<T>, call, (int)METHOD_ISM_A0_DENSE,
                 square(CUDA__ISM_A0));
        if (sizes && has(METHOD_ISM_A0_DENSE))
            look_at(CUDA__ISM_A0, 1);
        if (sizes && !cuda__ism_knows(call)) {
            weigh_thin(false);
            start(cuda__ism_weigh_given_kernel<T>, pieces(call.n, CUDA__WARP),
                  CUDA__ISM_TERMS_THREADS, 0, call);
        }
    }

    /* ---- The variants ---- */

    /* W = columns of X, transposed, times A0^-T, and K, from line `first` on, those of Y times
     * A0^-1; `reduced`: times Z in its place, and from line 0 on. */
    void begin_block(int64_t first, int64_t count, bool reduced)
    {
        int known = reduced && first > 0 ? CUDA__ISM_Z : CUDA__ISM_B;
        int64_t line = reduced ? 0 : first;
        note(CUDA_ISM_BEGIN);
        if (diagonal() && known == CUDA__ISM_B && line == first) {
            start_both(cuda__ism_scale_kernel<T>,
                       pieces(call.n, CUDA__ISM_TILE) * pieces(count, CUDA__ISM_TILE), call, first,
                       count);
            return;
        }
        multiply(count, call.n, call.n, true, true, 1, {CUDA__ISM_X, 0, first}, {known, 0, 0}, 0,
                 {CUDA__ISM_W, 0, 0});
        multiply(count, call.n, call.n, true, false, 1, {CUDA__ISM_Y, 0, first}, {known, 0, 0}, 0,
                 {CUDA__ISM_K, line, 0});
    }

    /* Columns first to first + count - 1, in W and K from `group` on, meet those from `begin` to
     * end - 1. P and Q: from column first - group on. */
    void meet_earlier(int64_t begin, int64_t end, int64_t group, int64_t first, int64_t count)
    {
        int64_t inner = end - begin, at = first - group;
        if (inner <= 0)
            return;
        note(CUDA_ISM_MEET);
        multiply(inner, count, call.n, false, false, 1, {CUDA__ISM_K, begin, 0},
                 {CUDA__ISM_X, 0, first}, 0, {CUDA__ISM_P, begin, at});
        multiply(inner, count, call.n, false, false, 1, {CUDA__ISM_GR, begin, 0},
                 {CUDA__ISM_Y, 0, first}, 0, {CUDA__ISM_Q, begin, at});
        multiply(count, call.n, inner, true, false, -1, {CUDA__ISM_P, begin, at},
                 {CUDA__ISM_GR, begin, 0}, 1, {CUDA__ISM_W, at, 0});
        multiply(count, call.n, inner, true, false, -1, {CUDA__ISM_Q, begin, at},
                 {CUDA__ISM_K, begin, 0}, 1, {CUDA__ISM_K, first, 0});
    }

    /* C = (I + C)^-1, of s columns. */
    void invert_block(int64_t s)
    {
        typedef cuda__ism_turn_tile<T> tile;
        for (int64_t first = 0; first < s; first += CUDA__ISM_TURN) {
            int64_t count = s - first < CUDA__ISM_TURN ? s - first : CUDA__ISM_TURN;
            bool whole = count == s;
            start(cuda__ism_turn_kernel<T>, whole ? 1 : 1 + CUDA__ISM_TURN_BLOCKS,
                  CUDA__ISM_TURN_THREADS, 0, call, (int)s, (int)first, (int)count);
            if (whole)
                return;
            start(cuda__ism_turn_rest_kernel<T>, pieces(s, tile::rows) * pieces(s, tile::columns),
                  CUDA__ISM_TURN_THREADS, sizeof(typename tile::shared), call, (int)s, (int)count);
        }
    }

    /* R^T of the block whose G^T is in W from line `at` on, and (G R)^T from line `to` on. */
    void take_block(int64_t first, int64_t count, int64_t at, int64_t to)
    {
        note(CUDA_ISM_INVERT);
        multiply(count, count, call.n, false, false, 1, {CUDA__ISM_W, at, 0},
                 {CUDA__ISM_Y, 0, first}, 0, {CUDA__ISM_C, 0, 0});
        invert_block(count);
        note(CUDA_ISM_APPLY_R);
        multiply(count, call.n, count, false, false, 1, {CUDA__ISM_C, 0, 0}, {CUDA__ISM_W, at, 0},
                 0, {CUDA__ISM_GR, to, 0});
    }

    bool wants(int output) const
    {
        return call.wanted >> output & 1;
    }

    /* U, U R and V of a block: columns of all the paper's recurrences; and R. */
    void keep_factors(int64_t group, int64_t first, int64_t count)
    {
        int64_t at = first - group, n = call.n;
        if (wants(METHOD_ISM_R))
            over(count * call.m, cuda__ism_write_r_kernel<T>, call, first, count);
        if (!wants(METHOD_ISM_U) && !wants(METHOD_ISM_V))
            return;
        if (first > 0)
            multiply(n, count, first, false, false, -1, {CUDA__ISM_UR, 0, 0}, {CUDA__ISM_P, 0, at},
                     1, {CUDA__ISM_U, 0, first});
        multiply(n, count, count, false, true, 1, {CUDA__ISM_U, 0, first}, {CUDA__ISM_C, 0, 0}, 0,
                 {CUDA__ISM_UR, 0, first});
        if (first > 0)
            multiply(n, count, first, false, false, -1, {CUDA__ISM_V, 0, 0}, {CUDA__ISM_Q, 0, at},
                     1, {CUDA__ISM_V, 0, first});
    }

    void start_factors()
    {
        if (!wants(METHOD_ISM_U) && !wants(METHOD_ISM_V))
            return;
        copy_thin(CUDA__ISM_X, CUDA__ISM_U);
        copy_thin(CUDA__ISM_Y, CUDA__ISM_V);
    }

    void copy_thin(int from, int to)
    {
        over(call.n * call.m, cuda__ism_copy_kernel<T>, call, from, thin(to));
    }

    /* U and V, or NaN in their place; and in that of R, which has been written by then. */
    void write_factors(bool none)
    {
        static const struct {
            int output, array;
        } factors[] = {{METHOD_ISM_U, CUDA__ISM_U}, {METHOD_ISM_V, CUDA__ISM_V}};
        for (const auto &factor : factors) {
            if (wants(factor.output))
                over(call.n * call.m, cuda__ism_factor_kernel<T>, call, factor.output,
                     thin(factor.array), none);
        }
        if (none && wants(METHOD_ISM_R))
            over(call.m * call.m, cuda__ism_factor_kernel<T>, call, (int)METHOD_ISM_R,
                 cuda__ism_shape{CUDA__ISM_C, call.m, call.m, call.lds}, true);
    }

    /* The group of `count` columns from `first` on. Where a group is a block, the last one before
     * it is met by products of its own: that order of the sums decides an answer's bits. */
    void take_group(int64_t first, int64_t count)
    {
        const int64_t end = first + count, block = call.plan.block, group = call.plan.group;
        const int64_t last = block == group && first > 0 ? first - group : 0;
        begin_block(first, count, false);
        meet_earlier(0, last, first, first, count);
        meet_earlier(last, first, first, first, count);
        for (int64_t at = first; at < end; at += block) {
            int64_t columns = end - at < block ? end - at : block;
            meet_earlier(first, at, first, at, columns);
            take_block(at, columns, at - first, at);
            keep_factors(first, at, columns);
        }
    }

    dim3 last_blocks(int64_t strip) const
    {
        return {(unsigned)pieces(call.n, strip), (unsigned)call.count,
                (unsigned)call.plan.last_parts};
    }

    template <typename Shape> void start_shape()
    {
        static_assert(Shape::strip == CUDA__ISM_LAST_STRIP, "the plan counts them");
        start_grid(cuda__ism_last_kernel<Shape>, last_blocks(Shape::strip), Shape::threads,
                   sizeof(typename Shape::shared), call, (int)call.plan.last_rows);
    }

    /* The answer has the same bits by either shape. */
    template <int Inner, bool Given> void start_inner()
    {
        constexpr int rows = Given ? CUDA__ISM_LAST_ROWS / 2 : CUDA__ISM_LAST_ROWS;
        typedef cuda__ism_last_shape<Inner, Given, rows> large;
        if (sizeof(typename large::shared) <= (size_t)cuda__shared_max())
            start_shape<large>();
        else
            start_shape<cuda__ism_last_shape<Inner, Given, rows / 2>>();
    }

    template <bool Given> void start_last()
    {
        if constexpr (sizeof(T) == sizeof(float)) {
            start_grid(cuda__ism_last_narrow_kernel<Given>, last_blocks(CUDA__ISM_LAST_STRIP),
                       CUDA__ISM_NARROW_THREADS, cuda__ism_narrow_bytes(call.m), call,
                       (int)call.plan.last_rows);
        } else if (call.m > 32) {
            start_inner<64, Given>();
        } else {
            start_inner<32, Given>();
        }
    }

    /* The answer, and what the check wants of it: see last.cuh. */
    void assemble_last()
    {
        note(CUDA_ISM_ASSEMBLE);
        if (diagonal())
            start_last<false>();
        else
            start_last<true>();
        start(cuda__ism_last_sum_kernel<T>,
              pieces(CUDA__ISM_LAST_SUMS * call.ld, CUDA__ISM_THREADS), CUDA__ISM_THREADS, 0, call,
              (int)call.plan.last_parts);
    }

    /* Z = A0^-1 - lines^T lines of `count` lines; begins: Z is not yet anything. */
    void assemble(int64_t count, bool begins)
    {
        bool sets = begins && diagonal() && count > 0;
        note(CUDA_ISM_ASSEMBLE);
        if (begins && !sets && !call.plan.in_place)
            over(call.n * call.n, cuda__ism_start_kernel<T>, call,
                 (int)(diagonal() ? CUDA__ISM_FROM_E : CUDA__ISM_FROM_B), square(CUDA__ISM_Z));
        if (count > 0)
            multiply(call.n, call.n, count, true, false, -1, {CUDA__ISM_GR, 0, 0},
                     {CUDA__ISM_K, 0, 0}, sets ? 0 : 1, {CUDA__ISM_Z, 0, 0});
        if (sets)
            start(cuda__ism_add_diagonal_kernel<T>, pieces(call.n, CUDA__ISM_THREADS),
                  CUDA__ISM_THREADS, 0, call);
    }

    void by_blocks()
    {
        const int64_t m = call.m, group = call.plan.group;
        start_factors();
        for (int64_t first = 0; first < m; first += group)
            take_group(first, m - first < group ? m - first : group);
        measure_overlapped();
        if (call.plan.last)
            assemble_last();
        else if (!call.plan.fused)
            assemble(m, true);
    }

    void by_reduced_memory()
    {
        int64_t m = call.m, block = call.plan.block;
        measure_overlapped();
        if (m == 0)
            assemble(0, true);
        for (int64_t first = 0; first < m; first += block) {
            int64_t count = m - first < block ? m - first : block;
            begin_block(first, count, true);
            take_block(first, count, 0, 0);
            assemble(count, first == 0);
        }
    }

    /* ---- The check ---- */

    /* Z is copied out, but where it is out already, and all that the verdict needs is found out. */
    void check_answer()
    {
        note(CUDA_ISM_CHECK);
        if (!call.plan.last)
            look_at_answer();
        if (!cuda__ism_knows(call)) {
            check_update();
            return;
        }
        if (call.plan.adjacent)
            join();
        else if (!has(METHOD_ISM_A))
            measure_a();
        check_known();
    }

    /* Here begins what is done in another stream. */
    void fork()
    {
        check(cudaEventRecord(cuda_products_side(products)->forked, stream));
    }

    /* |A|, of A0 that is diagonal, needs what is given alone: in another stream, since the fork. It
     * is launched after the short kernels of the work, which would wait for the host else. */
    void measure_overlapped()
    {
        if (!call.plan.adjacent)
            return;
        const struct cuda_side *side = cuda_products_side(products);
        cuda__ism_sequence other = *this;
        other.stream = side->stream;
        other.check(cudaStreamWaitEvent(side->stream, side->forked, 0));
        other.measure_diagonal();
        other.check(cudaEventRecord(side->joined, side->stream));
        status = other.status;
    }

    /* Waits for it. */
    void join()
    {
        check(cudaStreamWaitEvent(stream, cuda_products_side(products)->joined, 0));
    }

    void refuse(int output, int64_t numbers)
    {
        if (wants(output))
            over(numbers, cuda__ism_refuse_kernel<T>, call, output, numbers);
    }

    /* ---- One chunk ---- */

    bool wants_factors() const
    {
        return wants(METHOD_ISM_U) || wants(METHOD_ISM_R) || wants(METHOD_ISM_V);
    }

    void run()
    {
        if (!call.plan.streams || wants_factors())
            run_blocks();
        if (call.plan.streams && status == cudaSuccess)
            status = sizeof(T) == sizeof(float) ? cuda__ism_stream_f32(&call, stream)
                                                : cuda__ism_stream_f64(&call, stream);
    }

    void run_blocks()
    {
        bring(!call.plan.fused);
        if (call.plan.adjacent)
            fork();
        bool reduced = call.plan.algorithm == METHOD_ALGORITHM_REDUCED_MEMORY;
        if (reduced)
            by_reduced_memory();
        else
            by_blocks();
        write_factors(reduced);
        if (!call.plan.fused) {
            check_answer();
            start_alone(cuda__ism_judge_kernel<T, CUDA__ISM_THREADS>,
                        cuda__ism_judge_kernel<T, CUDA__ISM_ALONE_THREADS>, 1, call);
            refuse(METHOD_ISM_INVERSE, call.n * call.n);
            refuse(METHOD_ISM_U, call.n * call.m);
            refuse(METHOD_ISM_V, call.n * call.m);
        }
        refuse(METHOD_ISM_R, call.m * call.m);
    }
};

/* One kernel for all. */
template <typename T>
static cudaError_t cuda__ism_launch_light(const cuda__ism_call &work, cudaStream_t stream)
{
    if (cuda__ism_is_few(work))
        return cuda__ism_few<T>(work, stream);
    if (cuda__ism_knows(work) || !cuda__ism_middle_holds(work.n, work.m, (int)sizeof(T)))
        return cuda__ism_fused<T>(work, stream);
    return sizeof(T) == sizeof(float) ? cuda__ism_middle_f32(&work, stream)
                                      : cuda__ism_middle_f64(&work, stream);
}

template <typename T>
static cudaError_t cuda__ism_launch(const cuda__ism_call &work, struct cuda_products *products,
                                    cudaStream_t stream)
{
    cuda__ism_sequence<T> sequence = {{{work, products, stream, cudaSuccess}}};
    cuda__ism_call &call = sequence.call;
    if (work.plan.algorithm == METHOD_ALGORITHM_LU) {
        int64_t blocks = (work.matrices + CUDA__ISM_THREADS - 1) / CUDA__ISM_THREADS;
        return cuda__start(cuda__ism_postpone_kernel<T>,
                           (unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX), CUDA__ISM_THREADS,
                           0, stream, work);
    }
    if (work.held > 0)
        sequence.start_once(cuda__ism_weights_kernel<T>, CUDA__ISM_LINE_BLOCKS, call);
    for (; work.held > 0 && call.first < work.matrices; call.first += call.count) {
        call.count =
            work.matrices - call.first < work.held ? work.matrices - call.first : work.held;
        sequence.run();
    }
    if (work.plan.fused && !work.plan.streams && sequence.status == cudaSuccess)
        sequence.status = cuda__ism_launch_light<T>(work, stream);
    return sequence.status;
}

#endif
