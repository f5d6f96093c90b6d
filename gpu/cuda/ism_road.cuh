/* gpu/cuda/ism_road.cuh: the launches of `ism` by blocks: a sequence for as many matrices as the
 * workspace holds, then for the next ones. Host code, any thread; nothing is awaited.
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
#ifndef GPU_CUDA_ISM_ROAD_CUH
#define GPU_CUDA_ISM_ROAD_CUH

#include "gpu/cuda/ism_fused.cuh"
#include "gpu/cuda/ism_tile.cuh"
#include "gpu/cuda/ism_trial.cuh"
#include "gpu/cuda/ism_turn.cuh"
#include "gpu/cuda/launch.cuh"

#define CUDA__ISM_BLOCKS_MOST 1024 /* of a kernel that goes over an array */
#define CUDA__ISM_LINE_BLOCKS 64   /* that make the lines of a trial */
#define CUDA__ISM_CLIMBS 2         /* rounds of the search for |A| */

/* A part of an array, or of the lines of a trial, as a product takes it. */
struct cuda__ism_operand {
    int array; /* -1: T */
    int64_t line, column;
};

/* A chunk of matrices on its way. */
template <typename T> struct cuda__ism_journey {
    cuda__ism_call call;
    struct cuda_products *products;
    cudaStream_t stream;
    cudaError_t status; /* the first that is not cudaSuccess; nothing is put after it */

    bool has(int input) const
    {
        return call.inputs >> input & 1;
    }

    void note(enum cuda_ism_step step) const
    {
        if (call.watch)
            call.watch->on_step(call.watch->watcher, step);
    }

    bool diagonal() const
    {
        return !has(CUDA__ISM_GIVEN_INVERSE);
    }

    static int64_t pieces(int64_t count, int64_t size)
    {
        return (count + size - 1) / size;
    }

    template <typename... Parameters, typename... Arguments>
    void start(void (*kernel)(Parameters...), int64_t blocks, int64_t threads, size_t shared_bytes,
               const Arguments &...arguments)
    {
        if (status == cudaSuccess && blocks > 0)
            status = cuda__start(kernel, dim3((unsigned)blocks, (unsigned)call.count),
                                 (unsigned)threads, shared_bytes, stream, arguments...);
    }

    /* Whatever the slots. */
    template <typename... Parameters, typename... Arguments>
    void start_once(void (*kernel)(Parameters...), int64_t blocks, const Arguments &...arguments)
    {
        if (status == cudaSuccess)
            status =
                cuda__start(kernel, (unsigned)blocks, CUDA__ISM_THREADS, 0, stream, arguments...);
    }

    /* The one of two kernels that suits the order, of blocks that have all of a line each. */
    template <typename... Parameters, typename... Arguments>
    void start_alone(void (*small)(Parameters...), void (*large)(Parameters...), int64_t blocks,
                     const Arguments &...arguments)
    {
        bool is_large = call.n >= CUDA__ISM_ALONE_ORDER;
        start(is_large ? large : small, blocks,
              is_large ? CUDA__ISM_ALONE_THREADS : CUDA__ISM_THREADS, 0, arguments...);
    }

    /* A kernel that goes over `numbers` numbers of a slot. */
    template <typename... Parameters, typename... Arguments>
    void over(int64_t numbers, void (*kernel)(Parameters...), const Arguments &...arguments)
    {
        int64_t blocks = pieces(numbers, CUDA__ISM_THREADS);
        start(kernel, blocks < CUDA__ISM_BLOCKS_MOST ? blocks : CUDA__ISM_BLOCKS_MOST,
              CUDA__ISM_THREADS, 0, arguments...);
    }

    /* ---- Products ---- */

    int64_t stride(int array) const
    {
        switch (array) {
        case CUDA__ISM_X:
        case CUDA__ISM_Y:
        case CUDA__ISM_U:
        case CUDA__ISM_UR:
        case CUDA__ISM_V:
        case CUDA__ISM_THIN:
        case CUDA__ISM_CHOSEN:
            return call.ldm;
        case CUDA__ISM_P:
        case CUDA__ISM_Q:
            return call.ldg;
        case CUDA__ISM_C:
        case CUDA__ISM_TOP:
        case CUDA__ISM_ROWS:
            return call.lds;
        case CUDA__ISM_TURNED:
        case CUDA__ISM_LEFT:
            return CUDA__ISM_TURN;
        default:
            return call.ld;
        }
    }

    struct cuda_matrices matrices(const cuda__ism_operand &of) const
    {
        int64_t ld = stride(of.array);
        if (of.array < 0)
            return {(T *)call.lines + of.line * ld + of.column, ld, 0};
        return {cuda__ism_array_of<T>(call, 0, of.array) + of.line * ld + of.column, ld, call.part};
    }

    /* The same of pieces of its sums, slot after slot: a and b at the first one. */
    void multiply_pieces(const struct cuda_product &whole, const struct cuda__ism_cut &cut,
                         const cuda__ism_operand &c)
    {
        int64_t area = whole.rows * whole.columns, rest = cut.whole * cut.inner;
        int64_t step_a = whole.transpose_a ? whole.a.stride : 1;
        int64_t step_b = whole.transpose_b ? 1 : whole.b.stride;
        for (int64_t slot = 0; slot < call.count; slot++) {
            T *a = (T *)whole.a.at + slot * whole.a.step,
              *b = (T *)whole.b.at + slot * whole.b.step;
            T *to = cuda__ism_array_of<T>(call, slot, CUDA__ISM_PIECES);
            struct cuda_product pieces = whole;
            pieces.alpha = 1;
            pieces.beta = 0;
            pieces.inner = cut.inner;
            pieces.count = cut.whole;
            pieces.a = {a, whole.a.stride, cut.inner * step_a};
            pieces.b = {b, whole.b.stride, cut.inner * step_b};
            pieces.c = {to, whole.columns, area};
            put(pieces);
            pieces.inner = cut.rest;
            pieces.count = cut.rest > 0;
            pieces.a.at = a + rest * step_a;
            pieces.b.at = b + rest * step_b;
            pieces.c.at = to + cut.whole * area;
            put(pieces);
        }
        over(area, cuda__ism_gather_kernel<T>, call, cut.whole + (cut.rest > 0), whole.rows,
             whole.columns, (T)whole.alpha, (T)whole.beta, c.array,
             c.line * whole.c.stride + c.column, whole.c.stride);
    }

    void put(const struct cuda_product &product)
    {
        if (status == cudaSuccess)
            status = cuda_product(products, &product, stream);
    }

    /* c (rows x columns) = alpha op(a) op(b) + beta c */
    void multiply(int64_t rows, int64_t columns, int64_t inner, bool transpose_a, bool transpose_b,
                  double alpha, const cuda__ism_operand &a, const cuda__ism_operand &b, double beta,
                  const cuda__ism_operand &c)
    {
        struct cuda_product product = {};
        product.precision = sizeof(T) == sizeof(float) ? PRECISION_FP32 : PRECISION_FP64;
        product.rows = rows;
        product.columns = columns;
        product.inner = inner;
        product.transpose_a = transpose_a;
        product.transpose_b = transpose_b;
        product.alpha = alpha;
        product.beta = beta;
        product.a = matrices(a);
        product.b = matrices(b);
        product.c = matrices(c);
        product.count = call.count;
        struct cuda__ism_cut cut = cuda__ism_cut_of(rows, columns, inner);
        if (cut.whole > 0)
            multiply_pieces(product, cut, c);
        else
            put(product);
    }

    /* ---- What is given ---- */

    cuda__ism_shape square(int array) const
    {
        return {array, call.n, call.n, stride(array)};
    }

    cuda__ism_shape thin(int array) const
    {
        return {array, call.n, call.m, call.ldm};
    }

    void look_at(int array, int sizes)
    {
        cuda__ism_sight sight = {array, stride(array), sizes, -1};
        start(cuda__ism_look_kernel<T, 0>, pieces(call.n, CUDA__WARP),
              CUDA__ISM_LOOK_WARPS * CUDA__WARP, 0, call, sight);
    }

    /* sizes: there is SIZES for the sums of A0^-1 or A. */
    void bring(bool sizes)
    {
        bool alone = has(CUDA__ISM_GIVEN_A);
        note(CUDA_ISM_BRING);
        start(cuda__ism_begin_kernel<T>, 1, 1, 0, call);
        if (alone) {
            over(call.n * call.n, cuda__ism_bring_kernel<T>, call, (int)CUDA__ISM_GIVEN_A,
                 thin(CUDA__ISM_X));
            look_at(CUDA__ISM_X, 1);
            over(call.n * call.n, cuda__ism_start_kernel<T>, call, (int)CUDA__ISM_FROM_ONES,
                 thin(CUDA__ISM_Y));
        } else {
            over(call.n * call.m, cuda__ism_bring_kernel<T>, call, (int)CUDA__ISM_GIVEN_X,
                 thin(CUDA__ISM_X));
            over(call.n * call.m, cuda__ism_bring_kernel<T>, call, (int)CUDA__ISM_GIVEN_Y,
                 thin(CUDA__ISM_Y));
        }
        if (diagonal())
            start_alone(cuda__ism_diagonal_kernel<T, CUDA__ISM_THREADS>,
                        cuda__ism_diagonal_kernel<T, CUDA__ISM_ALONE_THREADS>, 1, call);
        else
            over(call.n * call.n, cuda__ism_bring_kernel<T>, call, (int)CUDA__ISM_GIVEN_INVERSE,
                 square(CUDA__ISM_B));
        if (has(CUDA__ISM_GIVEN_A0))
            over(call.n * call.n, cuda__ism_bring_kernel<T>, call, (int)CUDA__ISM_GIVEN_A0,
                 square(CUDA__ISM_A0));
        if (sizes && !diagonal())
            look_at(CUDA__ISM_B, 1);
    }

    /* ---- The variants ---- */

    /* `to`, from `line` on, = columns of X or Y, transposed, times A0^-T or A0^-1. `reduced`: times
     * Z in its place. */
    void begin_block(int from, int64_t first, int64_t count, int to, int64_t line, bool reduced)
    {
        int known = reduced ? CUDA__ISM_Z : CUDA__ISM_B;
        note(CUDA_ISM_BEGIN);
        if (diagonal() && !reduced)
            start(cuda__ism_scale_kernel<T>,
                  pieces(call.n, CUDA__ISM_TILE) * pieces(count, CUDA__ISM_TILE), CUDA__ISM_THREADS,
                  0, call, from, first, count, to, line);
        else
            multiply(count, call.n, call.n, true, from == CUDA__ISM_X, 1, {from, 0, first},
                     {known, 0, 0}, 0, {to, line, 0});
    }

    /* Columns first to first + count - 1, in W and K from `group` on, meet those from `begin` on.
     * P and Q: from column first - group on. */
    void meet_earlier(int64_t begin, int64_t group, int64_t first, int64_t count)
    {
        int64_t inner = first - begin, at = first - group;
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
        for (int64_t first = 0; first < s; first += CUDA__ISM_TURN) {
            int64_t count = s - first < CUDA__ISM_TURN ? s - first : CUDA__ISM_TURN;
            bool whole = count == s;
            start(cuda__ism_turn_kernel<T>, whole ? 1 : 1 + CUDA__ISM_TURN_BLOCKS,
                  CUDA__ISM_TURN_THREADS, 0, call, (int)s, (int)first, (int)count);
            if (whole)
                return;
            multiply(count, s, count, false, false, 1, {CUDA__ISM_TURNED, 0, 0},
                     {CUDA__ISM_TOP, 0, 0}, 0, {CUDA__ISM_ROWS, 0, 0});
            multiply(s, s, count, false, false, -1, {CUDA__ISM_LEFT, 0, 0}, {CUDA__ISM_ROWS, 0, 0},
                     1, {CUDA__ISM_C, 0, 0});
        }
    }

    /* R^T of the block whose G^T is in W from line `at` on, and (G R)^T from line `to` on. */
    void couple(int64_t first, int64_t count, int64_t at, int64_t to)
    {
        note(CUDA_ISM_INVERT);
        multiply(count, count, call.n, false, false, 1, {CUDA__ISM_W, at, 0},
                 {CUDA__ISM_Y, 0, first}, 0, {CUDA__ISM_C, 0, 0});
        invert_block(count);
        note(CUDA_ISM_COUPLE);
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
        if (wants(CUDA__ISM_WANTED_R))
            over(count * call.m, cuda__ism_write_r_kernel<T>, call, first, count);
        if (!wants(CUDA__ISM_WANTED_U) && !wants(CUDA__ISM_WANTED_V))
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
        if (!wants(CUDA__ISM_WANTED_U) && !wants(CUDA__ISM_WANTED_V))
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
        } factors[] = {{CUDA__ISM_WANTED_U, CUDA__ISM_U}, {CUDA__ISM_WANTED_V, CUDA__ISM_V}};
        for (const auto &factor : factors) {
            if (wants(factor.output))
                over(call.n * call.m, cuda__ism_factor_kernel<T>, call, factor.output,
                     thin(factor.array), none);
        }
        if (none && wants(CUDA__ISM_WANTED_R))
            over(call.m * call.m, cuda__ism_factor_kernel<T>, call, (int)CUDA__ISM_WANTED_R,
                 cuda__ism_shape{CUDA__ISM_C, call.m, call.m, call.lds}, true);
    }

    /* The group of `count` columns from `first` on. */
    void take_group(int64_t first, int64_t count)
    {
        int64_t end = first + count, block = call.plan.block;
        begin_block(CUDA__ISM_X, first, count, CUDA__ISM_W, 0, false);
        begin_block(CUDA__ISM_Y, first, count, CUDA__ISM_K, first, false);
        meet_earlier(0, first, first, count);
        for (int64_t at = first; at < end; at += block) {
            int64_t columns = end - at < block ? end - at : block;
            meet_earlier_in_group(first, at, columns);
            couple(at, columns, at - first, at);
            keep_factors(first, at, columns);
        }
    }

    void meet_earlier_in_group(int64_t group, int64_t first, int64_t count)
    {
        meet_earlier(group, group, first, count);
    }

    /* Z = A0^-1 - lines^T lines of `count` lines; begins: Z is not yet anything. */
    void assemble(int64_t count, bool begins)
    {
        bool sets = begins && diagonal() && count > 0;
        note(CUDA_ISM_ASSEMBLE);
        if (begins && !sets)
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
        int64_t m = call.m, group = call.plan.group;
        start_factors();
        for (int64_t first = 0; first < m; first += group)
            take_group(first, m - first < group ? m - first : group);
        if (!call.plan.fused)
            assemble(m, true);
    }

    void by_reduced_memory()
    {
        int64_t m = call.m, block = call.plan.block;
        if (m == 0)
            assemble(0, true);
        for (int64_t first = 0; first < m; first += block) {
            int64_t count = m - first < block ? m - first : block;
            begin_block(CUDA__ISM_X, first, count, CUDA__ISM_W, 0, first > 0);
            begin_block(CUDA__ISM_Y, first, count, CUDA__ISM_K, 0, first > 0);
            couple(first, count, 0, 0);
            assemble(count, first == 0);
        }
    }

    /* ---- The trial ---- */

    int lines() const
    {
        return cuda__ism_is_whole(call.n) ? (int)call.n : CUDA__ISM_TRIED;
    }

    /* to (count lines of n) = from X Y^T; THIN is used up. */
    void times_thin(const cuda__ism_operand &from, int64_t count, const cuda__ism_operand &to)
    {
        if (call.m == 0) {
            over(count * call.ld, cuda__ism_clear_kernel<T>, call, to.array, to.line * call.ld,
                 count * call.ld);
            return;
        }
        multiply(count, call.m, call.n, false, false, 1, from, {CUDA__ISM_X, 0, 0}, 0,
                 {CUDA__ISM_THIN, 0, 0});
        multiply(count, call.n, call.m, false, true, 1, {CUDA__ISM_THIN, 0, 0}, {CUDA__ISM_Y, 0, 0},
                 0, to);
    }

    /* to = from A, but for A0 that is diagonal. */
    void times_a(const cuda__ism_operand &from, int64_t count, const cuda__ism_operand &to)
    {
        times_thin(from, count, to);
        if (!diagonal())
            multiply(count, call.n, call.n, false, false, 1, from, {CUDA__ISM_A0, 0, 0}, 1, to);
    }

    /* The norms of columns whose rows of Y are `rows`. */
    void measure_columns(int rows, int64_t count, bool all)
    {
        if (call.m > 0)
            multiply(count, call.n, call.m, false, true, 1, {rows, 0, 0}, {CUDA__ISM_X, 0, 0}, 0,
                     {CUDA__ISM_COLUMNS, 0, 0});
        else
            over(count * call.ld, cuda__ism_clear_kernel<T>, call, (int)CUDA__ISM_COLUMNS,
                 (int64_t)0, count * call.ld);
        start_alone(cuda__ism_columns_kernel<T, CUDA__ISM_THREADS>,
                    cuda__ism_columns_kernel<T, CUDA__ISM_ALONE_THREADS>, count, call, all);
        start(cuda__ism_largest_kernel<T>, 1, 1, 0, call, (int)count);
    }

    /* |A|, where A itself was not given. */
    void measure_a()
    {
        if (call.n <= CUDA__ISM_NORM_ORDER) {
            measure_columns(CUDA__ISM_Y, call.n, true);
            return;
        }
        for (int round = 0; round < CUDA__ISM_CLIMBS; round++) {
            times_a({round == 0 ? -1 : (int)CUDA__ISM_SIGNS, 0, 0}, CUDA__ISM_PROBES,
                    {CUDA__ISM_ERROR, 0, 0});
            start(cuda__ism_score_kernel<T>, pieces(call.n, CUDA__ISM_THREADS), CUDA__ISM_THREADS,
                  0, call, round > 0);
            start_alone(cuda__ism_choose_kernel<T, CUDA__ISM_THREADS>,
                        cuda__ism_choose_kernel<T, CUDA__ISM_ALONE_THREADS>, 1, call);
            measure_columns(CUDA__ISM_CHOSEN, CUDA__ISM_PROBES, false);
        }
    }

    /* ERROR: (T - T Z X Y^T) A0^-1 behind T X Y^T A0^-1; COLUMNS, line 1: a column of that. */
    void try_update()
    {
        int64_t count = lines();
        times_thin({-1, 0, 0}, count, {CUDA__ISM_REST, 0, 0});
        times_thin({CUDA__ISM_TZ, 0, 0}, count, {CUDA__ISM_REST, count, 0});
        start(cuda__ism_rest_kernel<T>, pieces(count * call.ld, CUDA__ISM_THREADS),
              CUDA__ISM_THREADS, 0, call, (int)count);
        multiply(2 * count, call.n, call.n, false, false, 1, {CUDA__ISM_REST, 0, 0},
                 {CUDA__ISM_B, 0, 0}, 0, {CUDA__ISM_ERROR, 0, 0});
        if (cuda__ism_is_whole(call.n) || call.m == 0)
            return;
        start_alone(cuda__ism_change_kernel<T, CUDA__ISM_THREADS>,
                    cuda__ism_change_kernel<T, CUDA__ISM_ALONE_THREADS>, 1, call);
        multiply(1, call.m, call.n, false, false, 1, {CUDA__ISM_COLUMNS, 0, 0}, {CUDA__ISM_Y, 0, 0},
                 0, {CUDA__ISM_THIN, 0, 0});
        multiply(1, call.n, call.m, false, true, 1, {CUDA__ISM_THIN, 0, 0}, {CUDA__ISM_X, 0, 0}, 0,
                 {CUDA__ISM_COLUMNS, 1, 0});
    }

    /* Z is copied out, and all that the verdict needs is found out. */
    void try_answer()
    {
        cuda__ism_sight sight = {CUDA__ISM_Z, call.ld, 0, CUDA__ISM_WANTED_INVERSE};
        int64_t blocks = pieces(call.n, CUDA__WARP), threads = CUDA__ISM_LOOK_WARPS * CUDA__WARP;
        note(CUDA_ISM_TRY);
        if (cuda__ism_is_whole(call.n))
            start(cuda__ism_look_kernel<T, CUDA__ISM_PROBES>, blocks, threads, 0, call, sight);
        else
            start(cuda__ism_look_kernel<T, CUDA__ISM_TRIED>, blocks, threads, 0, call, sight);
        if (!cuda__ism_knows(call)) {
            try_update();
            return;
        }
        if (!has(CUDA__ISM_GIVEN_A))
            measure_a();
        times_a({CUDA__ISM_TZ, 0, 0}, lines(), {CUDA__ISM_ERROR, 0, 0});
    }

    void refuse(int output, int64_t numbers)
    {
        if (wants(output))
            over(numbers, cuda__ism_refuse_kernel<T>, call, output, numbers);
    }

    /* ---- One chunk ---- */

    void run()
    {
        bring(!call.plan.fused);
        bool reduced = call.plan.road == METHOD_ROAD_REDUCED_MEMORY;
        if (reduced)
            by_reduced_memory();
        else
            by_blocks();
        write_factors(reduced);
        if (!call.plan.fused) {
            try_answer();
            start_alone(cuda__ism_judge_kernel<T, CUDA__ISM_THREADS>,
                        cuda__ism_judge_kernel<T, CUDA__ISM_ALONE_THREADS>, 1, call);
            refuse(CUDA__ISM_WANTED_INVERSE, call.n * call.n);
            refuse(CUDA__ISM_WANTED_U, call.n * call.m);
            refuse(CUDA__ISM_WANTED_V, call.n * call.m);
        }
        refuse(CUDA__ISM_WANTED_R, call.m * call.m);
    }
};

template <typename T>
static cudaError_t cuda__ism_launch(const cuda__ism_call &work, struct cuda_products *products,
                                    cudaStream_t stream)
{
    cuda__ism_journey<T> journey = {work, products, stream, cudaSuccess};
    cuda__ism_call &call = journey.call;
    if (work.plan.road == METHOD_ROAD_LU) {
        int64_t blocks = (work.matrices + CUDA__ISM_THREADS - 1) / CUDA__ISM_THREADS;
        return cuda__start(cuda__ism_postpone_kernel<T>,
                           (unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX), CUDA__ISM_THREADS,
                           0, stream, work);
    }
    if (work.held > 0)
        journey.start_once(cuda__ism_weights_kernel<T>, CUDA__ISM_LINE_BLOCKS, call);
    for (; work.held > 0 && call.first < work.matrices; call.first += call.count) {
        call.count =
            work.matrices - call.first < work.held ? work.matrices - call.first : work.held;
        journey.run();
    }
    if (work.plan.fused && journey.status == cudaSuccess)
        journey.status = cuda__ism_is_few(work) ? cuda__ism_few<T>(work, stream)
                                                : cuda__ism_fused<T>(work, stream);
    return journey.status;
}

#endif
