/* gpu/cuda/ism/ism.c: see ism.h: which variant is taken, and the layout of the workspace.
 *
 * Threads: any. Cost: some comparisons and additions.
 */
#include "gpu/cuda/ism/ism.h"

#include "base/minmax.h"
#include "gpu/cuda/base/method.h"
#include "gpu/cuda/ism/call.h"
#include "gpu/cuda/ism/middle_room.h"
#include "gpu/cuda/ism/norm_room.h"
#include "gpu/cuda/lu/lu.h"
#include "gpu/methods/ism.h"

/* Columns that a group has. */
#define GROUP_USUAL 512
/* Columns that `auto` gives to a block of REDUCED_MEMORY, for small orders and larger ones. */
#define REDUCED_BLOCK 128
#define REDUCED_BLOCK_LARGE 256
#define REDUCED_LARGE_MIN 2048
/* A block of s columns takes the inverse of an s x s matrix, which a small A must not pay. */
#define BLOCK_ALWAYS 32
/* Beyond this part of n columns of an update go without factors: fewer operations. */
#define REDUCED_SHARE 4
#define ARRAY_ALIGN 64 /* numbers: 256 bytes or more */

static int64_t rounded_up(int64_t value, int64_t to)
{
    return (value + to - 1) / to * to;
}

/* Numbers from line to line. */
static int64_t padded(int64_t numbers)
{
    return rounded_up(numbers, 4);
}

/* ---- The choice ---- */

/* Columns of X. */
static int64_t rank_of(const struct cuda_call *call)
{
    return cuda__ism_has(call->inputs, METHOD_ISM_A) ? call->n : call->m;
}

static bool wants_factors(const struct cuda_call *call)
{
    return (call->wanted & (METHOD_INPUT(METHOD_ISM_U) | METHOD_INPUT(METHOD_ISM_R) |
                            METHOD_INPUT(METHOD_ISM_V))) != 0;
}

/* Is an inverse updated, and A not known? */
static bool updates(const struct cuda_call *call)
{
    return cuda__ism_has(call->inputs, METHOD_ISM_A0_INVERSE) &&
           !cuda__ism_has(call->inputs, METHOD_ISM_A0_DENSE);
}

/* Is one kernel enough for a matrix, where `auto` is free to choose? */
static bool is_small(const struct cuda_call *call, int64_t n, int64_t m)
{
    if (n <= CUDA_ISM_FUSED_N_MAX && m <= CUDA_ISM_FUSED_M_MAX)
        return !cuda__ism_has(call->inputs, METHOD_ISM_A);
    return updates(call) && cuda__ism_middle_holds(n, m, (int)precision_bytes(call->precision));
}

static bool streams(const struct cuda_call *call, int64_t n, int64_t m)
{
    return updates(call) && n > CUDA_ISM_FUSED_N_MAX && n <= CUDA__ISM_STREAM_ORDER && m > 0 &&
           m <= CUDA__ISM_STREAM_MAX;
}

/* Parts of the rows are of one size, but for the last. How many matrices there are decides who
 * works on a strip, not what is added up to what. */
static void plan_stream(struct cuda__ism_plan *plan, int64_t n, int64_t matrices)
{
    int64_t parts = (n + CUDA__ISM_STREAM_ROWS - 1) / CUDA__ISM_STREAM_ROWS;
    plan->fused = plan->streams = true;
    plan->stream_rows = rounded_up((n + parts - 1) / parts, 32);
    plan->stream_parts = (n + plan->stream_rows - 1) / plan->stream_rows;
    plan->stream_ld = rounded_up(n, CUDA__ISM_STREAM_SLAB);
    plan->stream_by_strips = matrices <= CUDA__ISM_STREAM_FEW / plan->stream_parts;
}

/* As the host's plan, with blocks and algorithms that suit a GPU. */
static struct cuda__ism_plan plan_of(const struct cuda_call *call)
{
    static const enum method_algorithm algorithms[] = {
        [METHOD_ISM_SINGLE] = METHOD_ALGORITHM_SINGLE,
        [METHOD_ISM_BLOCK] = METHOD_ALGORITHM_BLOCK,
        [METHOD_ISM_REDUCED_MEMORY] = METHOD_ALGORITHM_REDUCED_MEMORY,
    };
    int64_t n = call->n, m = rank_of(call), block = call->options[METHOD_ISM_BLOCK_SIZE];
    int64_t variant = call->options[METHOD_ISM_VARIANT];
    bool inverse = cuda__ism_has(call->inputs, METHOD_ISM_A0_INVERSE);
    struct cuda__ism_plan plan = {.algorithm = METHOD_ALGORITHM_BLOCK, .block = GROUP_USUAL};
    if (inverse && m > n / REDUCED_SHARE)
        plan.algorithm = METHOD_ALGORITHM_REDUCED_MEMORY;
    if (variant == METHOD_ISM_AUTO && block == 0 && is_small(call, n, m)) {
        plan.algorithm = METHOD_ALGORITHM_BLOCK;
        plan.fused = true;
    } else if (variant == METHOD_ISM_AUTO && block == 0 && streams(call, n, m)) {
        plan.algorithm = METHOD_ALGORITHM_BLOCK;
        plan_stream(&plan, n, call->matrices);
    }
    if (variant != METHOD_ISM_AUTO)
        plan.algorithm = algorithms[variant];
    else if (m > n)
        plan = (struct cuda__ism_plan){.algorithm = METHOD_ALGORITHM_LU, .block = 1};
    if (plan.algorithm == METHOD_ALGORITHM_REDUCED_MEMORY)
        plan.block = n < REDUCED_LARGE_MIN ? REDUCED_BLOCK : REDUCED_BLOCK_LARGE;
    plan.block = block > 0 ? block : plan.block;
    plan.block = plan.algorithm == METHOD_ALGORITHM_SINGLE ? 1 : plan.block;
    plan.block = min_i64(plan.block, min_i64(max_i64(n, BLOCK_ALWAYS), CUDA_ISM_BLOCK_MAX));
    plan.block = max_i64(min_i64(plan.block, m), 1);
    plan.group = plan.algorithm == METHOD_ALGORITHM_REDUCED_MEMORY
                     ? plan.block
                     : max_i64(GROUP_USUAL / plan.block, 1) * plan.block;
    plan.group = min_i64(plan.group, rounded_up(max_i64(m, 1), plan.block));
    return plan;
}

/* How the last product is shared: into the parts that end first, if a block takes as long as it has
 * rows, and each multiprocessor of an H200 one after the other; of equals, into the fewest. */
static void plan_last(const struct cuda_call *call, struct cuda__ism_plan *plan)
{
    int64_t n = call->n, strips = (n + CUDA__ISM_LAST_STRIP - 1) / CUDA__ISM_LAST_STRIP;
    bool narrow = call->precision == PRECISION_FP32;
    bool two = !narrow && rank_of(call) <= CUDA__ISM_LAST_MAX / 2 &&
               !cuda__ism_has(call->inputs, METHOD_ISM_A0_INVERSE); /* on a multiprocessor */
    int64_t unit = narrow ? CUDA__ISM_NARROW_ROWS : CUDA__ISM_LAST_ROWS;
    int64_t all = (two ? 2 : 1) * CUDA__ISM_LAST_ALL, shortest = INT64_MAX;
    for (int64_t wish = 1; wish <= CUDA__ISM_LAST_ROUNDS * all / strips + 1; wish++) {
        int64_t rows = rounded_up((n + wish - 1) / wish, unit), parts = (n + rows - 1) / rows;
        int64_t time = (strips * parts + all - 1) / all * rows;
        if (time >= shortest)
            continue;
        shortest = time;
        plan->last_rows = rows;
        plan->last_parts = parts;
    }
}

/* What a matrix that is not recovered goes by besides. */
static void plan_ends(const struct cuda_call *call, struct cuda__ism_plan *plan)
{
    int64_t n = call->n, m = rank_of(call);
    uint32_t others = METHOD_INPUT(METHOD_ISM_A0_INVERSE) | METHOD_INPUT(METHOD_ISM_A);
    if (plan->fused || plan->algorithm == METHOD_ALGORITHM_LU)
        return;
    /* It costs another way of A0^-1 across the bus: who asks for less memory has it so. */
    plan->in_place = call->options[METHOD_ISM_VARIANT] == METHOD_ISM_REDUCED_MEMORY &&
                     cuda__ism_has(call->inputs, METHOD_ISM_A0_INVERSE);
    plan->adjacent = (call->inputs & others) == 0 && n >= CUDA__ISM_OVERLAPPED_MIN &&
                     m <= CUDA__ISM_OVERLAPPED_MAX;
    plan->last = plan->algorithm != METHOD_ALGORITHM_REDUCED_MEMORY && m > 0 &&
                 m <= CUDA__ISM_LAST_MAX &&
                 n > (updates(call) ? CUDA__ISM_NORM_ORDER : CUDA__ISM_PROBES);
    if (plan->last)
        plan_last(call, plan);
}

/* ---- The layout ---- */

static void take(struct cuda__ism_call *work, enum cuda__ism_array array, int64_t lines, int64_t ld)
{
    work->at[array] = work->part;
    work->part += rounded_up(lines * ld, ARRAY_ALIGN);
}

/* What is known of A0. */
static void take_known(struct cuda__ism_call *work)
{
    bool inverse = cuda__ism_has(work->inputs, METHOD_ISM_A0_INVERSE);
    bool dense = cuda__ism_has(work->inputs, METHOD_ISM_A0_DENSE);
    take(work, CUDA__ISM_ANSWER, 1, ARRAY_ALIGN);
    take(work, CUDA__ISM_D, inverse ? 0 : 1, work->ld);
    take(work, CUDA__ISM_E, inverse ? 0 : 1, work->ld);
    take(work, CUDA__ISM_B, inverse ? work->n : 0, work->ld);
    take(work, CUDA__ISM_A0, dense ? work->n : 0, work->ld);
}

static void take_thin(struct cuda__ism_call *work)
{
    take(work, CUDA__ISM_X, work->n, work->ldm);
    take(work, CUDA__ISM_Y, work->n, work->ldm);
}

/* A product that is cut has columns and sums of n or m numbers at most; rows: as many. */
static void take_pieces(struct cuda__ism_call *work, int64_t rows)
{
    int64_t longest = max_i64(work->n, work->m), pieces = longest / CUDA__ISM_CUT_INNER;
    int64_t numbers = min_i64(pieces * longest * rows, CUDA__ISM_CUT_NUMBERS);
    take(work, CUDA__ISM_PIECES, longest >= CUDA__ISM_CUT_MIN ? 1 : 0, numbers);
}

static void take_check(struct cuda__ism_call *work)
{
    int64_t n = work->n, ld = work->ld, ldm = work->ldm;
    /* T X and T Z X, or that times Y^T, in double-double. */
    int64_t dd_lines = n <= CUDA__ISM_NORM_ORDER ? 4 * CUDA__ISM_PROBES : 2 * CUDA__ISM_PROBES;
    take(work, CUDA__ISM_TZ, CUDA__ISM_PROBES, ld);
    take(work, CUDA__ISM_REST, dd_lines, ld);
    take(work, CUDA__ISM_ERROR, 2 * CUDA__ISM_PROBES, ld);
    take(work, CUDA__ISM_SIGNS, CUDA__ISM_PROBES, ld);
    take(work, CUDA__ISM_COLUMNS,
         n <= CUDA__ISM_NORM_ORDER ? max_i64(n, CUDA__ISM_PROBES) : CUDA__ISM_PROBES, ld);
    take(work, CUDA__ISM_THIN, dd_lines, ldm);
    take(work, CUDA__ISM_CHOSEN, CUDA__ISM_PROBES, ldm);
    take(work, CUDA__ISM_SIZES, 2, ld);
    take(work, CUDA__ISM_WEIGHTS, 2, ld);
}

/* Numbers of FP64, whatever the precision. */
static void take_doubles(struct cuda__ism_call *work, enum cuda__ism_array array, int64_t lines,
                         int64_t ld, enum precision precision)
{
    take(work, array, lines, ld * precision_bytes(PRECISION_FP64) / precision_bytes(precision));
}

static void take_variant(struct cuda__ism_call *work, enum precision precision)
{
    int64_t n = work->n, m = work->m, ld = work->ld, group = work->plan.group;
    bool reduced = work->plan.algorithm == METHOD_ALGORITHM_REDUCED_MEMORY,
         earlier = !reduced && m > group;
    bool inner = !reduced && min_i64(group, m) > work->plan.block;
    bool turns = work->plan.block > CUDA__ISM_TURN;
    bool factors = (work->wanted & METHOD_INPUT(METHOD_ISM_U)) != 0 ||
                   (work->wanted & METHOD_INPUT(METHOD_ISM_V)) != 0;
    int64_t met = earlier || inner ? m : 0, kept = factors && !reduced ? n : 0;
    take_thin(work);
    take(work, CUDA__ISM_GR, reduced ? group : m, ld);
    take(work, CUDA__ISM_K, reduced ? group : m, ld);
    take(work, CUDA__ISM_W, group, ld);
    take(work, CUDA__ISM_P, met, work->ldg);
    take(work, CUDA__ISM_Q, met, work->ldg);
    take(work, CUDA__ISM_C, work->plan.block, work->lds);
    take(work, CUDA__ISM_TURNED, turns ? CUDA__ISM_TURN : 0, CUDA__ISM_TURN);
    take(work, CUDA__ISM_TOP, turns ? CUDA__ISM_TURN : 0, work->lds);
    take(work, CUDA__ISM_LEFT, turns ? work->plan.block : 0, CUDA__ISM_TURN);
    take_pieces(work, max_i64(m, 2 * CUDA__ISM_PROBES));
    take(work, CUDA__ISM_U, kept, work->ldm);
    take(work, CUDA__ISM_UR, kept, work->ldm);
    take(work, CUDA__ISM_V, kept, work->ldm);
    if (work->plan.in_place)
        work->at[CUDA__ISM_Z] = work->at[CUDA__ISM_B];
    else
        take(work, CUDA__ISM_Z, work->plan.last ? 0 : n, ld);
    take(work, CUDA__ISM_PARTS, work->plan.last ? 3 * work->plan.last_parts : 0, ld);
    if (work->plan.adjacent)
        take_doubles(work, CUDA__ISM_OVERLAPPED, 1, cuda__ism_norm_room_of(n, work->m).left,
                     precision);
    take_check(work);
}

static void take_stream(struct cuda__ism_call *work, enum precision precision)
{
    const struct cuda__ism_plan *plan = &work->plan;
    int64_t ld = plan->stream_ld, wide = rounded_up(work->m, 8);
    int64_t strips = (work->n + CUDA__ISM_STREAM_STRIP - 1) / CUDA__ISM_STREAM_STRIP;
    int64_t shares = plan->stream_by_strips ? strips : plan->stream_parts;
    take_doubles(work, CUDA__ISM_STREAM_K, work->m + CUDA__ISM_CHECK_PROBES, ld, precision);
    take_doubles(work, CUDA__ISM_STREAM_R, wide, wide, precision);
    take_doubles(work, CUDA__ISM_STREAM_RK, wide, ld, precision);
    take_doubles(work, CUDA__ISM_STREAM_SIZES, 1, ld, precision);
    take_doubles(work, CUDA__ISM_STREAM_NORMS, 1, ld, precision);
    take_doubles(work, CUDA__ISM_STREAM_PARTS, (1 + CUDA__ISM_CHECK_PROBES) * shares, ld,
                 precision);
}

/* Of woodbury.cuh. */
static void take_restoring(struct cuda__ism_call *work)
{
    static const enum cuda__ism_array lines[] = {CUDA__ISM_DD_G, CUDA__ISM_DD_K, CUDA__ISM_DD_P,
                                                 CUDA__ISM_DD_Q};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        take(work, lines[i], 2 * work->m, work->ld);
    take(work, CUDA__ISM_DD_C, 2 * work->m, work->ldm);
    take(work, CUDA__ISM_DD_R, 2 * work->m, work->ldm);
    take(work, CUDA__ISM_DD_BY, 2, work->ldm);
    take(work, CUDA__ISM_DD_PIVOTS, 1, work->ldm);
}

/* The factors, and the inverse behind them, lie where X and Y were, and what double-double took,
 * which are not needed when A is formed; but they are where there is no A. */
static void take_recovery(struct cuda__ism_call *work)
{
    int64_t n = work->n;
    bool solved = cuda__ism_has(work->inputs, METHOD_ISM_A0_INVERSE) &&
                  !cuda__ism_has(work->inputs, METHOD_ISM_A0_DENSE);
    bool restores = cuda__ism_restores(work->inputs, n, work->m);
    take(work, CUDA__ISM_FORMED, n, n);
    take(work, CUDA__ISM_PIVOTS, 1, n);
    take_pieces(work, max_i64(n, work->m));
    take_check(work);
    take_thin(work);
    if (restores)
        take_restoring(work);
    int64_t thin = work->at[CUDA__ISM_X], end = work->part;
    work->part = solved ? end : thin;
    take(work, CUDA__ISM_LU, n, n);
    take(work, CUDA__ISM_INVERSE, n, n);
    work->part = max_i64(work->part, end);
    take(work, CUDA__ISM_K, solved ? 2 * min_i64(work->m, CUDA__ISM_MET) : 0, n);
    take(work, CUDA__ISM_Z, solved || restores ? n : 0, n);
}

/* Of measure.cuh. lu's matrix is dense. */
static void take_measures(struct cuda__ism_call *work)
{
    int64_t n = work->n, m = work->m, of_c = m <= n ? m : 0;
    bool residual = cuda__ism_has(work->wanted, METHOD_ISM_RESIDUAL);
    bool capacitance = cuda__ism_has(work->wanted, METHOD_ISM_RCOND_CAPACITANCE);
    take_pieces(work, max_i64(n, m));
    take_thin(work);
    take(work, CUDA__ISM_SIZES, 2, work->ld);
    take(work, CUDA__ISM_Z, residual ? n : 0, work->ld);
    take(work, CUDA__ISM_FORMED, residual ? n : 0, work->ld);
    take(work, CUDA__ISM_THIN, residual ? n : 0, work->ldm);
    take(work, CUDA__ISM_K, capacitance ? of_c : 0, work->ld);
    take(work, CUDA__ISM_W, capacitance ? of_c : 0, work->ld);
    take(work, CUDA__ISM_C, capacitance ? of_c : 0, m);
    take(work, CUDA__ISM_INVERSE, capacitance ? of_c : 0, m);
}

/* Of a call that is laid out. */
static struct cuda__ism_call begin_layout(const struct cuda_call *call, bool recovery)
{
    int64_t n = call->n, m = rank_of(call);
    struct cuda__ism_call work = {
        .tensors = call->tensors,
        .item_count = call->item_count,
        .matrices = call->matrices,
        .n = n,
        .m = m,
        .inputs = call->inputs,
        .wanted = call->wanted,
        .plan = plan_of(call),
        .recovery = recovery,
        .unverified = call->batch.unverified,
        .ld = recovery ? n : padded(n),
        .ldm = padded(m),
    };
    work.lds = padded(work.plan.block);
    work.ldg = padded(work.plan.group);
    return work;
}

/* All of it but who the matrices are, and where the workspace is. */
static struct cuda__ism_call lay_out(const struct cuda_call *call, bool recovery)
{
    struct cuda__ism_call work = begin_layout(call, recovery);
    if (!recovery)
        plan_ends(call, &work.plan);
    if (!recovery && work.plan.streams && !wants_factors(call)) {
        take(&work, CUDA__ISM_ANSWER, 1, ARRAY_ALIGN);
        take_stream(&work, call->precision);
        return work;
    }
    take_known(&work);
    if (recovery)
        take_recovery(&work);
    else
        take_variant(&work, call->precision);
    if (!recovery && work.plan.streams)
        take_stream(&work, call->precision);
    return work;
}

#define MEASURED (METHOD_INPUT(METHOD_ISM_RESIDUAL) | METHOD_INPUT(METHOD_ISM_RCOND_CAPACITANCE))

/* The same of what is measured. recovery: of unverified matrices, whose capacitance matrix was. */
static struct cuda__ism_call lay_out_measures(const struct cuda_call *call, bool recovery)
{
    struct cuda__ism_call work = begin_layout(call, false);
    work.wanted &= recovery ? METHOD_INPUT(METHOD_ISM_RESIDUAL) : MEASURED;
    work.lds = work.m;
    take_known(&work);
    take_measures(&work);
    return work;
}

/* Bytes of the probe vectors. */
static size_t probe_bytes(const struct cuda__ism_call *work, enum precision precision)
{
    int64_t numbers = rounded_up(CUDA__ISM_PROBES * work->ld, ARRAY_ALIGN);
    return (size_t)numbers * (size_t)precision_bytes(precision);
}

/* Bytes of the tables of a recovery. */
static size_t table_bytes(int64_t matrices)
{
    size_t each = sizeof(int64_t) + 2 * sizeof(struct cuda_item);
    size_t bytes = (size_t)matrices * each + sizeof(int64_t);
    return (size_t)rounded_up((int64_t)bytes, CUDA_WORKSPACE_ALIGN);
}

static size_t part_bytes(const struct cuda__ism_call *work, enum precision precision)
{
    return (size_t)work->part * (size_t)precision_bytes(precision);
}

/* Does the plan take no workspace? */
static bool is_light(const struct cuda_call *call, const struct cuda__ism_plan *plan)
{
    return plan->algorithm == METHOD_ALGORITHM_LU ||
           (plan->fused && !plan->streams && !wants_factors(call));
}

/* Bytes that so many matrices take which are measured at once, 0 where none is; and how many those
 * are at most. */
static size_t measure_bytes(const struct cuda_call *call, const struct cuda__ism_call *measures,
                            int64_t matrices)
{
    const int64_t m = measures->m;
    if (measures->wanted == 0)
        return 0;
    size_t lu =
        cuda__ism_has(measures->wanted, METHOD_ISM_RCOND_CAPACITANCE) && m > 0 && m <= measures->n
            ? cuda_inverse_middle_workspace(call->precision, m, matrices)
            : 0;
    return table_bytes(matrices) + part_bytes(measures, call->precision) * (size_t)matrices + lu;
}

static int64_t measured_max(const struct cuda_call *call, const struct cuda__ism_call *measures)
{
    int64_t held = CUDA__ISM_RECOVERED_BYTES / (int64_t)measure_bytes(call, measures, 1);
    return min_i64(max_i64(held, CUDA__ISM_RECOVERED_MIN), CUDA__ISM_SLOTS_MAX);
}

/* Places it for as many of the matrices at once as fit; false: for none. */
static bool place_measures(const struct cuda_call *call, struct cuda__ism_call *measures,
                           int64_t matrices, void *at, size_t bytes)
{
    measures->held = min_i64(matrices, measured_max(call, measures));
    while (measures->held > 0 && measure_bytes(call, measures, measures->held) > bytes)
        measures->held /= 2;
    if (measures->held < 1)
        return false;
    size_t parts = part_bytes(measures, call->precision) * (size_t)measures->held;
    measures->items = at;
    measures->parts = (unsigned char *)at + table_bytes(measures->held);
    measures->lu = measures->parts + parts;
    measures->lu_bytes =
        measure_bytes(call, measures, measures->held) - table_bytes(measures->held) - parts;
    return true;
}

static size_t lu_bytes(const struct cuda_call *call, int64_t matrices)
{
    size_t inverse = cuda_inverse_middle_workspace(call->precision, call->n, matrices);
    size_t factor = cuda_factor_middle_workspace(call->precision, call->n, matrices);
    return inverse > factor ? inverse : factor;
}

static size_t recovery_bytes(const struct cuda_call *call, const struct cuda__ism_call *work,
                             int64_t matrices)
{
    return probe_bytes(work, call->precision) + table_bytes(matrices) +
           part_bytes(work, call->precision) * (size_t)matrices + lu_bytes(call, matrices);
}

/* Matrices that are recovered at once at most. */
static int64_t recovered_max(const struct cuda_call *call, const struct cuda__ism_call *work)
{
    int64_t held = CUDA__ISM_RECOVERED_BYTES / (int64_t)recovery_bytes(call, work, 1);
    return min_i64(max_i64(held, CUDA__ISM_RECOVERED_MIN), CUDA__ISM_SLOTS_MAX);
}

/* What is measured of so many matrices takes no more than it needs for a while. */
static size_t measure_workspace(const struct cuda_call *call, bool recovery, int64_t matrices)
{
    struct cuda__ism_call measures = lay_out_measures(call, recovery);
    if (measures.wanted == 0)
        return 0;
    return measure_bytes(call, &measures, min_i64(matrices, measured_max(call, &measures)));
}

static size_t larger(size_t one, size_t other)
{
    return one > other ? one : other;
}

size_t cuda_ism_workspace(const struct cuda_call *call, int64_t matrices)
{
    struct cuda__ism_call work = lay_out(call, false);
    size_t measured = measure_workspace(call, false, matrices);
    if (is_light(call, &work.plan))
        return measured;
    return larger(measured, probe_bytes(&work, call->precision) +
                                part_bytes(&work, call->precision) *
                                    (size_t)min_i64(matrices, CUDA__ISM_SLOTS_MAX));
}

/* What a recovery of so many at once takes, and what is measured afterwards behind its tables. */
static size_t recover_bytes(const struct cuda_call *call, const struct cuda__ism_call *work,
                            int64_t matrices)
{
    size_t before = probe_bytes(work, call->precision) + table_bytes(matrices);
    return larger(before + measure_workspace(call, true, 1), recovery_bytes(call, work, matrices));
}

size_t cuda_ism_recover_workspace(const struct cuda_call *call, int64_t matrices)
{
    struct cuda__ism_call work = lay_out(call, true);
    return recover_bytes(call, &work, min_i64(matrices, recovered_max(call, &work)));
}

/* ---- The launchers ---- */

static bool is_possible(const struct cuda_call *call)
{
    return call->n >= 1 && call->n <= CUDA_ISM_N_MAX && call->m >= 0 &&
           call->m <= METHOD_ISM_ORDER_MAX && call->matrices >= 0;
}

cudaError_t cuda_ism(const struct cuda_call *call, cudaStream_t stream)
{
    return cuda_ism_watched(call, stream, NULL);
}

cudaError_t cuda_ism_watched(const struct cuda_call *call, cudaStream_t stream,
                             const struct cuda_ism_watch *watch)
{
    if (!is_possible(call))
        return cudaErrorInvalidValue;
    struct cuda__ism_call work = lay_out(call, false);
    work.watch = watch;
    size_t shared = probe_bytes(&work, call->precision);
    if (call->matrices == 0)
        return cudaSuccess;
    if (!is_light(call, &work.plan)) {
        size_t bytes = call->workspace_bytes > shared ? call->workspace_bytes - shared : 0;
        work.held = (int64_t)(bytes / part_bytes(&work, call->precision));
        work.held = min_i64(min_i64(work.held, call->matrices), CUDA__ISM_SLOTS_MAX);
        if (work.held < 1)
            return cudaErrorInvalidValue;
        work.probes = call->workspace;
        work.parts = (unsigned char *)call->workspace + shared;
    }
    cudaError_t status = call->precision == PRECISION_FP32
                             ? cuda__ism_launch_f32(&work, call->products, stream)
                             : cuda__ism_launch_f64(&work, call->products, stream);
    struct cuda__ism_call measures = lay_out_measures(call, false);
    if (status != cudaSuccess || measures.wanted == 0)
        return status;
    if (!place_measures(call, &measures, call->matrices, call->workspace, call->workspace_bytes))
        return cudaErrorInvalidValue;
    return call->precision == PRECISION_FP32
               ? cuda__ism_measure_f32(&measures, call->products, stream)
               : cuda__ism_measure_f64(&measures, call->products, stream);
}

cudaError_t cuda_ism_recover(const struct cuda_call *call, cudaStream_t stream)
{
    if (!is_possible(call))
        return cudaErrorInvalidValue;
    struct cuda__ism_call work = lay_out(call, true);
    size_t probes = probe_bytes(&work, call->precision), part = part_bytes(&work, call->precision);
    work.count = call->to_recover;
    work.held = min_i64(max_i64(work.count, 1), recovered_max(call, &work));
    while (work.held > 0 && recover_bytes(call, &work, work.held) > call->workspace_bytes)
        work.held /= 2;
    if (work.held < 1)
        return cudaErrorInvalidValue;
    work.probes = call->workspace;
    work.items = (struct cuda_item *)((unsigned char *)call->workspace + probes);
    work.list = (int64_t *)(work.items + 2 * work.held);
    work.picked = work.list + work.held;
    work.parts = (unsigned char *)work.items + table_bytes(work.held);
    work.lu = work.parts + part * (size_t)work.held;
    work.lu_bytes = lu_bytes(call, work.held);
    struct cuda__ism_call measures = lay_out_measures(call, true);
    size_t before = (size_t)(work.parts - (unsigned char *)call->workspace);
    if (measures.wanted != 0) {
        work.measures = &measures;
        if (!place_measures(call, &measures, work.held, work.parts, call->workspace_bytes - before))
            return cudaErrorInvalidValue;
    }
    return call->precision == PRECISION_FP32 ? cuda__ism_recover_f32(&work, call->products, stream)
                                             : cuda__ism_recover_f64(&work, call->products, stream);
}

const struct cuda_method cuda_method_ism[] = {
    {.name = "ism",
     .kernel = "cuda ism",
     .n_min = 1,
     .n_max = {CUDA_ISM_N_MAX, CUDA_ISM_N_MAX},
     .takes_tensors = true,
     .takes_products = true,
     .launch = cuda_ism,
     .recover = cuda_ism_recover,
     .workspace = cuda_ism_workspace,
     .recover_workspace = cuda_ism_recover_workspace,
     .self_test = cuda__try_ism},
    {0},
};
