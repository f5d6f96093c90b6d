/* gpu/cuda/ism/launcher.cuh: what the launch sequences of algorithm.cuh and recover.cuh are made
 * of: a launcher of kernels and products, and a verifier, which launches the check of an inverse.
 * Host code, any thread; nothing is awaited.
 */
#ifndef GPU_CUDA_ISM_LAUNCHER_CUH
#define GPU_CUDA_ISM_LAUNCHER_CUH

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/gemm/gemm.h"
#include "gpu/cuda/ism/check.cuh"
#include "gpu/cuda/ism/norm.cuh"
#include "gpu/cuda/ism/terms.cuh"
#include "gpu/cuda/ism/turn.cuh"

#define CUDA__ISM_BLOCKS_MAX 1024 /* of a kernel that goes over an array */
#define CUDA__ISM_CLIMBS 2        /* rounds of the search for |A| */

/* A part of an array, or of the probe vectors, as a product takes it. */
struct cuda__ism_operand {
    int array; /* -1: T */
    int64_t line, column;
};

/* A chunk of matrices, and where launches for them go. */
template <typename T> struct cuda__ism_stream_launcher {
    cuda__ism_call call;
    struct cuda_products *products;
    cudaStream_t stream;
    cudaError_t status; /* the first that is not cudaSuccess; nothing is launched after it */

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
        return !has(METHOD_ISM_A0_INVERSE);
    }

    static int64_t pieces(int64_t count, int64_t size)
    {
        return (count + size - 1) / size;
    }

    /* As cuda__ism_follow, unless a launch has failed. */
    template <typename... Parameters, typename... Arguments>
    void start_grid(void (*kernel)(Parameters...), dim3 blocks, int64_t threads,
                    size_t shared_bytes, const Arguments &...arguments)
    {
        if (status == cudaSuccess && blocks.x > 0)
            status = cuda__ism_follow(kernel, blocks, (unsigned)threads, shared_bytes, stream,
                                      arguments...);
    }

    template <typename... Parameters, typename... Arguments>
    void start(void (*kernel)(Parameters...), int64_t blocks, int64_t threads, size_t shared_bytes,
               const Arguments &...arguments)
    {
        start_grid(kernel, dim3((unsigned)blocks, (unsigned)call.count), threads, shared_bytes,
                   arguments...);
    }

    /* One grid for all slots. */
    template <typename... Parameters, typename... Arguments>
    void start_once(void (*kernel)(Parameters...), int64_t blocks, const Arguments &...arguments)
    {
        start_grid(kernel, (unsigned)blocks, CUDA__ISM_THREADS, 0, arguments...);
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

    /* Of X, and in blockIdx.z 1 of Y. */
    template <typename... Parameters, typename... Arguments>
    void start_both(void (*kernel)(Parameters...), int64_t blocks, const Arguments &...arguments)
    {
        start_grid(kernel, dim3((unsigned)blocks, (unsigned)call.count, 2), CUDA__ISM_THREADS, 0,
                   arguments...);
    }

    static int64_t blocks_over(int64_t numbers, int64_t of_block = CUDA__ISM_THREADS)
    {
        int64_t blocks = pieces(numbers, of_block);
        return blocks < CUDA__ISM_BLOCKS_MAX ? blocks : CUDA__ISM_BLOCKS_MAX;
    }

    /* A kernel that goes over `numbers` numbers of a slot. */
    template <typename... Parameters, typename... Arguments>
    void over(int64_t numbers, void (*kernel)(Parameters...), const Arguments &...arguments)
    {
        start(kernel, blocks_over(numbers), CUDA__ISM_THREADS, 0, arguments...);
    }

    template <typename... Parameters, typename... Arguments>
    void over_both(int64_t numbers, void (*kernel)(Parameters...), const Arguments &...arguments)
    {
        start_both(kernel, blocks_over(numbers), arguments...);
    }

    void check(cudaError_t next)
    {
        status = status == cudaSuccess ? next : status;
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
        case CUDA__ISM_DD_C:
        case CUDA__ISM_DD_R:
            return call.ldm;
        case CUDA__ISM_P:
        case CUDA__ISM_Q:
            return call.ldg;
        case CUDA__ISM_C:
        case CUDA__ISM_TOP:
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
            return {(T *)call.probes + of.line * ld + of.column, ld, 0};
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
            launch(pieces);
            pieces.inner = cut.rest;
            pieces.count = cut.rest > 0;
            pieces.a.at = a + rest * step_a;
            pieces.b.at = b + rest * step_b;
            pieces.c.at = to + cut.whole * area;
            launch(pieces);
        }
        start(cuda__ism_gather_kernel<T>, blocks_over(area, CUDA__ISM_GATHER_WIDE),
              CUDA__ISM_THREADS, 0, call, (int)(cut.whole + (cut.rest > 0)), whole.rows,
              whole.columns, (T)whole.alpha, (T)whole.beta, c.array,
              c.line * whole.c.stride + c.column, whole.c.stride);
    }

    void launch(const struct cuda_product &product)
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
            launch(product);
    }
};

/* The same, and the launches of the check. */
template <typename T> struct cuda__ism_verifier : cuda__ism_stream_launcher<T> {
    typedef cuda__ism_stream_launcher<T> launcher;
    using launcher::call;
    using launcher::check;
    using launcher::diagonal;
    using launcher::has;
    using launcher::multiply;
    using launcher::over;
    using launcher::pieces;
    using launcher::start;
    using launcher::start_alone;
    using launcher::start_grid;
    using launcher::stride;

    cuda__ism_shape square(int array) const
    {
        return {array, call.n, call.n, stride(array)};
    }

    cuda__ism_shape thin(int array) const
    {
        return {array, call.n, call.m, call.ldm};
    }

    /* A0^-1, wherever it is. */
    cuda__ism_shape given_inverse() const
    {
        return {CUDA__ISM_B, call.n, call.n, call.plan.in_place ? call.n : call.ld};
    }

    void look_at(int array, int sizes)
    {
        cuda__ism_sight sight = {array, stride(array), sizes, -1};
        start(cuda__ism_look_kernel<T, 0>, pieces(call.n, CUDA__WARP),
              CUDA__ISM_LOOK_WARPS * CUDA__WARP, 0, call, sight);
    }

    /* WEIGHTS: what no column of X Y^T is longer than, or of A; then the answer's terms too. The
     * judge reads them, so that a measurement in another stream is joined before. */
    void weigh_thin(bool bounds)
    {
        start(cuda__ism_weigh_x_kernel<T>, pieces(call.m, cuda__ism_across(call.n, call.m)),
              CUDA__ISM_TERMS_THREADS, 0, call);
        start(cuda__ism_weigh_y_kernel<T>, pieces(call.n, CUDA__ISM_WARPS), CUDA__ISM_THREADS, 0,
              call, bounds);
    }

    /* ---- Products with probe vectors ---- */

    int probes() const
    {
        return cuda__ism_probes_of(call);
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

    /* ---- |A| ---- */

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
        weigh_thin(true);
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
                        cuda__ism_choose_kernel<T, CUDA__ISM_ALONE_THREADS>, 1, call, round > 0);
            measure_columns(CUDA__ISM_CHOSEN, CUDA__ISM_PROBES, false);
        }
    }

    /* The same for large orders: see norm.cuh. */
    void measure_diagonal()
    {
        const cuda__ism_norm_room room = cuda__ism_norm_room_of(call.n, call.m);
        start_norm(cuda__ism_norm_begin_kernel<T>, room.parts, room);
        start_norm(cuda__ism_norm_score_kernel<T, true>, room.blocks, room);
        start_norm(cuda__ism_norm_columns_kernel<T, true>, room.parts, room);
        start_norm(cuda__ism_norm_score_kernel<T, false>, room.blocks, room);
        start_norm(cuda__ism_norm_columns_kernel<T, false>, room.parts, room);
        start(cuda__ism_norm_largest_kernel<T>, 1, CUDA__WARP, 0, call, room);
    }

    void start_norm(void (*kernel)(const cuda__ism_call, const cuda__ism_norm_room), int blocks,
                    const cuda__ism_norm_room &room)
    {
        start(kernel, blocks, CUDA__ISM_NORM_THREADS, (size_t)room.bytes, call, room);
    }

    /* ---- The check ---- */

    /* A product in double-double, by blocks of some lines each. */
    template <int Lines>
    void multiply_dd_lines(const struct cuda__ism_dd_product &of, bool transposed)
    {
        const int64_t blocks =
            transposed ? pieces(of.from.lines, CUDA__ISM_WARPS * CUDA__ISM_DD_HELD)
                       : pieces(of.from.columns, cuda__ism_across(of.from.lines, of.from.columns));
        const dim3 grid((unsigned)blocks, (unsigned)call.count, (unsigned)pieces(of.count, Lines));
        if (transposed)
            start_grid(cuda__ism_dd_rows_kernel<T, Lines>, grid, CUDA__ISM_THREADS, 0, call, of);
        else
            start_grid(cuda__ism_dd_kernel<T, Lines>, grid, CUDA__ISM_TERMS_THREADS, 0, call, of);
    }

    void multiply_dd(const struct cuda__ism_dd_product &of, bool transposed)
    {
        if (of.count > CUDA__ISM_CHECK_PROBES)
            multiply_dd_lines<CUDA__ISM_DD_LINES>(of, transposed);
        else
            multiply_dd_lines<CUDA__ISM_CHECK_PROBES>(of, transposed);
    }

    /* Lines as they are, or of double-double numbers. */
    struct cuda__ism_lines plain_lines(int array, int64_t count) const
    {
        return {array, -1, count, call.ld, 0};
    }

    struct cuda__ism_lines dd_lines(int array, int64_t count) const
    {
        const int64_t ld = stride(array);
        return {array, -1, count, ld, count * ld};
    }

    struct cuda__ism_place place(int array, int64_t line, int64_t count) const
    {
        const int64_t ld = stride(array);
        return {array, line, ld, count * ld};
    }

    /* What becomes of by X Y^T; THIN is used up. */
    void times_thin_dd(const struct cuda__ism_lines &by, int64_t count, int64_t half, int end,
                       const struct cuda__ism_place &to)
    {
        multiply_dd({by, thin(CUDA__ISM_X), place(CUDA__ISM_THIN, 0, count), count, count,
                     CUDA__ISM_DD_BOTH},
                    false);
        multiply_dd({dd_lines(CUDA__ISM_THIN, count), thin(CUDA__ISM_Y), to, count, half, end},
                    true);
    }

    /* ERROR: T (I - Z A). Of A alone, X is A but for the diagonal, and Y is I. */
    void check_known()
    {
        const int64_t count = probes();
        const struct cuda__ism_lines tz = plain_lines(CUDA__ISM_TZ, count);
        const struct cuda__ism_place error = place(CUDA__ISM_ERROR, 0, count);
        const struct cuda__ism_place rest = place(CUDA__ISM_REST, 0, count);
        if (has(METHOD_ISM_A)) {
            multiply_dd({tz, thin(CUDA__ISM_X), error, count, 0, CUDA__ISM_DD_OWN}, false);
        } else if (diagonal()) {
            times_thin_dd(tz, count, 0, CUDA__ISM_DD_OWN, error);
        } else {
            times_thin_dd(tz, count, 0, CUDA__ISM_DD_REST, rest);
            multiply_dd({tz, square(CUDA__ISM_A0), error, count, 0, CUDA__ISM_DD_LEFT}, false);
        }
    }

    /* ERROR: (T - T Z X Y^T) A0^-1 - T Z behind T X Y^T A0^-1; COLUMNS, line 1: a column of what T
     * was multiplied by there. */
    void check_update()
    {
        const int64_t count = probes(), all = 2 * count;
        const struct cuda__ism_lines both = {-1, CUDA__ISM_TZ, count, call.ld, 0};
        times_thin_dd(both, all, count, CUDA__ISM_DD_REST, place(CUDA__ISM_REST, 0, all));
        multiply_dd({dd_lines(CUDA__ISM_REST, all), given_inverse(), place(CUDA__ISM_ERROR, 0, all),
                     all, count, CUDA__ISM_DD_ERROR},
                    false);
        if (cuda__ism_is_whole(call.n) || call.m == 0)
            return;
        start_alone(cuda__ism_change_kernel<T, CUDA__ISM_THREADS>,
                    cuda__ism_change_kernel<T, CUDA__ISM_ALONE_THREADS>, 1, call);
        multiply_dd({plain_lines(CUDA__ISM_COLUMNS, 1), thin(CUDA__ISM_Y),
                     place(CUDA__ISM_THIN, 0, 1), 1, 1, CUDA__ISM_DD_BOTH},
                    false);
        multiply_dd({dd_lines(CUDA__ISM_THIN, 1), thin(CUDA__ISM_X), place(CUDA__ISM_COLUMNS, 1, 1),
                     1, 1, CUDA__ISM_DD_ROUND},
                    true);
    }

    /* Z is copied out. */
    void look_at_answer()
    {
        look_at_inverse(METHOD_ISM_INVERSE);
    }

    /* output: where Z is copied to, or -1. */
    void look_at_inverse(int output)
    {
        cuda__ism_sight sight = {CUDA__ISM_Z, call.ld, 0, output};
        int64_t blocks = pieces(call.n, CUDA__WARP), threads = CUDA__ISM_LOOK_WARPS * CUDA__WARP;
        if (cuda__ism_is_whole(call.n) || probes() == CUDA__ISM_PROBES)
            start(cuda__ism_look_kernel<T, CUDA__ISM_PROBES>, blocks, threads, 0, call, sight);
        else if (probes() == CUDA__ISM_KNOWN_PROBES)
            start(cuda__ism_look_kernel<T, CUDA__ISM_KNOWN_PROBES>, blocks, threads, 0, call,
                  sight);
        else
            start(cuda__ism_look_kernel<T, CUDA__ISM_CHECK_PROBES>, blocks, threads, 0, call,
                  sight);
    }
};

#endif
