/* gpu/host/ism/ism.c: `ism`: reads what is given, scales columns of X and Y, goes the algorithms
 * that ism.h offers until one leads to a good inverse, and reports.
 *
 * Small updates of a known inverse go as many at once as a vector has lanes (simd/update.c); what
 * is not verified there, and all others, alone. Algorithms, in the order they are tried:
 * the plan's variant; where blocks broke down or lost accuracy and m is small, all columns as one
 * block, whose capacitance matrix is factored with pivoting; where A0 is diagonal and m is small
 * the same in double-double; at last A is formed, where terms cancel in double-double, and inverted
 * as by lu, with the scaling and the repair that lu has. A0_INVERSE alone has no A: there the last
 * algorithm solves Z (I + X Y^T A0^-1) = A0^-1 by LU, the matrix being summed up in
 * double-double. No answer goes out that its check has not found good.
 *
 * Threads: any. Cost: see ism.h; the last algorithm takes lu's 2 n^3 and more.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/ism/ism.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/minmax.h"
#include "gpu/host/ism/parts.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/linalg/blocked.h"
#include "gpu/host/simd/small.h"
#include "gpu/host/base/stop.h"

#include "gpu/host/base/by_precision.h"

#define MERGED_SHARE 4 /* all columns become one block where m <= n / 4: cheaper than lu */
#define NEAR_ULPS 64   /* nearer to singular, A formed has lost most of A0 */
/* Of the inverse's norm, which what double-double may have lost must not exceed. */
#define LOST_ULPS 1024

static const char *kernel(int64_t n)
{
    (void)n;
    return "host ism";
}

/* A bit for each that is there. */
static uint32_t inputs_of(const struct host_matrix *matrix)
{
    uint32_t inputs = 0;
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        inputs |= matrix->inputs[i] ? METHOD_INPUT(i) : 0;
    return inputs;
}

static bool merges(int64_t n, int64_t m)
{
    return m <= n / MERGED_SHARE;
}

/* May double-double be tried where the variants fail? */
static bool recovers_dd(int64_t n, int64_t m, uint32_t inputs)
{
    return (inputs & (METHOD_INPUT(METHOD_ISM_A) | METHOD_INPUT(METHOD_ISM_A0_INVERSE))) == 0 &&
           m > 0 && m <= method_ism_dd_max(n);
}

/* Numbers that a plan takes behind a matrix's own, `planned` of them, or what may be tried after
 * it; -1 on overflow. */
static int64_t work_numbers(int64_t n, int64_t m, uint32_t inputs, int64_t planned, bool factors)
{
    struct host_ism_plan merged = {.algorithm = METHOD_ALGORITHM_BLOCK, .block = max_i64(m, 1)};
    int64_t residual = R(host__ism_residual_numbers)(n, m);
    if (planned < 0 || residual < 0)
        return -1;
    int64_t numbers = max_i64(planned, residual);
    if (recovers_dd(n, m, inputs))
        numbers = max_i64(numbers, host__ism_layout_dd(REAL_PRECISION, n, m).total);
    return merges(n, m)
               ? max_i64(numbers, host__ism_plan_numbers(REAL_PRECISION, n, m, merged, factors))
               : numbers;
}

/* Are the columns of X and Y scaled? Where they are thin, which takes little, or where no A could
 * be formed. */
static bool scales_columns(int64_t m, uint32_t inputs)
{
    const uint32_t both = METHOD_INPUT(METHOD_ISM_A0_INVERSE) | METHOD_INPUT(METHOD_ISM_A0_DENSE);
    return (inputs & METHOD_INPUT(METHOD_ISM_X)) != 0 &&
           (m <= HOST_ISM_THIN || (inputs & both) == METHOD_INPUT(METHOD_ISM_A0_INVERSE));
}

/* Layout: the matrix's own numbers and the work of a plan, or what lu takes; the inverse where it
 * is not wanted; X and Y with scaled columns. These are the bytes without the last. */
static int64_t first_bytes(int64_t n, int64_t own, int64_t work, bool inverse_wanted)
{
    int64_t bytes, dense = R(host__lu_scratch_bytes)(n, 0), inverse = 0;
    if (own < 0 || work < 0 || dense < 0 || !checked_add(own, work, &bytes) ||
        !checked_mul(bytes, (int64_t)sizeof(REAL), &bytes))
        return -1;
    if (!inverse_wanted &&
        (!checked_mul(n, n, &inverse) || !checked_mul(inverse, (int64_t)sizeof(REAL), &inverse)))
        return -1;
    if (!checked_add(max_i64(bytes, dense), inverse, &bytes) ||
        !checked_round_up(bytes, HOST_ALIGN_BYTES, &bytes))
        return -1;
    return bytes;
}

/* other: what a group of small updates takes, which has nothing else then, or what is measured
 * afterwards. */
static int64_t whole_bytes(int64_t first, int64_t scaled, int64_t other)
{
    int64_t bytes;
    if (first < 0 || scaled < 0 || other < 0 ||
        !checked_mul(scaled, (int64_t)sizeof(REAL), &bytes) || !checked_add(first, bytes, &bytes))
        return -1;
    return max_i64(bytes, other);
}

static int64_t lanes_bytes(int64_t n, int64_t m)
{
    return n <= HOST_SMALL_ORDER_MAX && m <= HOST_SMALL_UPDATE_RANK ? host__small_update_bytes(n)
                                                                    : 0;
}

/* Whatever the options are. m = 0: A alone, perhaps. */
static int64_t scratch_bytes(int64_t n, int64_t m)
{
    if (n > METHOD_ISM_ORDER_MAX || m > METHOD_ISM_ORDER_MAX)
        return -1;
    int64_t scaled = host__ism_scaling_numbers(n, m), lanes = lanes_bytes(n, m);
    m = m > 0 ? m : n;
    int64_t work = work_numbers(n, m, 0, host__ism_max_numbers(REAL_PRECISION, n, m), true);
    int64_t own = host__ism_own_numbers(REAL_PRECISION, n, m);
    return whole_bytes(first_bytes(n, own, work, false), scaled,
                       max_i64(lanes, R(host__ism_capacitance_bytes)(n, m)));
}

static int64_t task_scratch_bytes(const struct host_task *task)
{
    bool factors = (task->wanted & (METHOD_INPUT(METHOD_ISM_U) | METHOD_INPUT(METHOD_ISM_V) |
                                    METHOD_INPUT(METHOD_ISM_R))) != 0;
    bool alone = (task->inputs & METHOD_INPUT(METHOD_ISM_A)) != 0;
    int64_t n = task->n, m = alone ? n : task->m;
    struct host_ism_plan plan = host__ism_plan(n, m, task->inputs, task->options);
    int64_t own = host__ism_own_numbers(REAL_PRECISION, n, m);
    int64_t planned = host__ism_plan_numbers(REAL_PRECISION, n, m, plan, factors);
    int64_t work = work_numbers(n, m, task->inputs, planned, factors);
    int64_t first =
        first_bytes(n, own, work, (task->outputs & METHOD_INPUT(METHOD_ISM_INVERSE)) != 0);
    bool measures = (task->wanted & METHOD_INPUT(METHOD_ISM_RCOND_CAPACITANCE)) != 0;
    return whole_bytes(
        first, scales_columns(m, task->inputs) ? host__ism_scaling_numbers(n, m) : 0,
        max_i64(lanes_bytes(n, m), measures ? R(host__ism_capacitance_bytes)(n, m) : 0));
}

static int group(int64_t n, int64_t m)
{
    const int64_t rank_max = min_i64(n, HOST_SMALL_UPDATE_RANK);
    return m >= 1 && m <= rank_max ? R(host__small_group)(n) : 1;
}

/* ---- What is given ---- */

bool R(host__ism_all_finite)(const REAL *numbers, int64_t count)
{
    REAL excess = 0;
    for (int64_t first = 0, end; numbers && first < count; first = end) {
        end = host_stop_part(first, count);
        for (int64_t i = first; i < end; i++)
            excess += numbers[i] * 0;
    }
    return excess == 0;
}

/* d: the diagonal of A0, where it is one. */
static void set_diagonal(struct R(host_ism) * ism)
{
    const REAL *const *inputs = (const REAL *const *)ism->matrix->inputs;
    const REAL *scale = inputs[METHOD_ISM_A0_SCALE], *diagonal = inputs[METHOD_ISM_A0_DIAGONAL];
    int64_t n = ism->n;
    bool zero = false;
    for (int64_t i = 0; i < n; i++) {
        ism->d[i] = ism->a ? ism->a[i * (n + 1)] : diagonal ? diagonal[i] : scale ? *scale : 1;
        zero = zero || ism->d[i] == 0;
    }
    if (ism->a && zero) {
        struct host_norm norm = R(host__norm)(ism->team, ism->a, n, n, ism->e);
        for (int64_t i = 0; i < n; i++)
            ism->d[i] = REAL_LDEXP((REAL)norm.fraction, norm.exponent);
    }
    ism->det_a0 = (struct scaled){.fraction = 1};
    for (int64_t i = 0; i < n; i++) {
        ism->e[i] = 1 / ism->d[i];
        ism->det_a0 = scaled_times(ism->det_a0, (double)ism->d[i]);
    }
}

/* to = from^T, from being n x m. */
static void transpose_thin(const struct R(host_ism) * ism, const REAL *from, REAL *to)
{
    for (int64_t k = 0; k < ism->m; k++, to += ism->ld) {
        for (int64_t i = 0; i < ism->n; i++)
            to[i] = from[i * ism->m + k];
        memset(to + ism->n, 0, (size_t)(ism->ld - ism->n) * sizeof *to);
    }
}

/* xt and yt, where X and Y have few columns. */
static void set_thin(const struct R(host_ism) * ism)
{
    if (!ism->xt)
        return;
    transpose_thin(ism, ism->x, ism->xt);
    transpose_thin(ism, ism->y, ism->yt);
}

static struct R(host_ism) open(const struct host_matrix *matrix)
{
    const REAL *const *inputs = (const REAL *const *)matrix->inputs;
    REAL *const *outputs = (REAL *const *)matrix->outputs;
    int64_t n = matrix->n, ld = host__ld(REAL_PRECISION, n);
    REAL *scratch = matrix->scratch;
    struct R(host_ism) ism = {.matrix = matrix,
                              .n = n,
                              .m = inputs[METHOD_ISM_A] ? n : matrix->m,
                              .ld = ld,
                              .a = inputs[METHOD_ISM_A],
                              .x = inputs[METHOD_ISM_X],
                              .y = inputs[METHOD_ISM_Y],
                              .a0 = inputs[METHOD_ISM_A0_DENSE],
                              .b = inputs[METHOD_ISM_A0_INVERSE],
                              .u = outputs[METHOD_ISM_U],
                              .r = outputs[METHOD_ISM_R],
                              .v = outputs[METHOD_ISM_V],
                              .z = outputs[METHOD_ISM_INVERSE],
                              .lines = scratch + 2 * ld,
                              .team = n >= HOST_TEAM_ORDER_MIN ? matrix->team : NULL};
    int64_t own = host__ism_own_numbers(REAL_PRECISION, n, ism.m);
    ism.work = scratch + own;
    if (!ism.a && ism.m <= HOST_ISM_THIN) {
        ism.yt = ism.work - ism.m * ld;
        ism.xt = ism.yt - ism.m * ld;
        set_thin(&ism);
    }
    if (!ism.b) {
        ism.d = scratch;
        ism.e = scratch + ld;
        set_diagonal(&ism);
    }
    return ism;
}

/* What lies behind the plan's work: the inverse, where it is not wanted, and X and Y with scaled
 * columns. */
static void open_rest(struct R(host_ism) * ism, struct host_ism_plan plan, uint32_t inputs)
{
    unsigned char *scratch = ism->matrix->scratch;
    const bool factors = ism->u || ism->v || ism->r, wanted = ism->z != NULL;
    const int64_t own = host__ism_own_numbers(REAL_PRECISION, ism->n, ism->m);
    const int64_t planned = host__ism_plan_numbers(REAL_PRECISION, ism->n, ism->m, plan, factors);
    const int64_t work = work_numbers(ism->n, ism->m, inputs, planned, factors);
    if (!wanted)
        ism->z = (REAL *)(scratch + first_bytes(ism->n, own, work, true));
    REAL *scaled = (REAL *)(scratch + first_bytes(ism->n, own, work, wanted));
    if (scales_columns(ism->m, inputs) && R(host__ism_scale_columns)(ism, scaled))
        set_thin(ism);
}

static bool given_finite(const struct R(host_ism) * ism)
{
    int64_t n = ism->n, m = ism->m;
    return R(host__ism_all_finite)(ism->a, n * n) && R(host__ism_all_finite)(ism->x, n * m) &&
           R(host__ism_all_finite)(ism->y, n * m) && R(host__ism_all_finite)(ism->a0, n * n) &&
           R(host__ism_all_finite)(ism->b, n * n) && (ism->a || R(host__ism_all_finite)(ism->d, n));
}

/* ---- The report ---- */

void R(host__ism_fill)(REAL *numbers, int64_t count)
{
    if (numbers)
        R(host__fill_nan)(numbers, count);
}

void R(host__ism_no_factors)(const struct R(host_ism) * ism)
{
    R(host__ism_fill)(ism->u, ism->n * ism->m);
    R(host__ism_fill)(ism->v, ism->n * ism->m);
    R(host__ism_fill)(ism->r, ism->m * ism->m);
}

void R(host__ism_report)(const struct R(host_ism) * ism, int64_t info, REAL rcond,
                         enum method_algorithm algorithm, double det_ratio)
{
    void *const *outputs = ism->matrix->outputs;
    bool inverted = info == 0 || info == ism->n + 1;
    if (!inverted)
        R(host__ism_fill)(ism->z, ism->n * ism->n);
    if (algorithm != METHOD_ALGORITHM_SINGLE && algorithm != METHOD_ALGORITHM_BLOCK)
        R(host__ism_no_factors)(ism);
    if (outputs[METHOD_ISM_INFO])
        *(int32_t *)outputs[METHOD_ISM_INFO] = (int32_t)info;
    if (outputs[METHOD_ISM_RCOND])
        *(REAL *)outputs[METHOD_ISM_RCOND] = rcond;
    if (outputs[METHOD_ISM_ALGORITHM])
        *(int32_t *)outputs[METHOD_ISM_ALGORITHM] = (int32_t)algorithm;
    if (outputs[METHOD_ISM_DET_RATIO])
        *(REAL *)outputs[METHOD_ISM_DET_RATIO] = (REAL)det_ratio;
}

static REAL rcond_of(const struct host_ism_verdict *verdict)
{
    REAL rcond = 1 / (REAL)verdict->a.fraction / (REAL)verdict->x.fraction;
    return REAL_LDEXP(rcond, -verdict->a.exponent - verdict->x.exponent);
}

void R(host__ism_report_good)(const struct R(host_ism) * ism,
                              const struct host_ism_verdict *verdict,
                              enum method_algorithm algorithm)
{
    double det_ratio = scaled_value(ism->det_ratio);
    REAL rcond = (REAL)NAN;
    bool singular = verdict->singular;
    if (!ism->b || ism->a0) {
        rcond = verdict->overflows ? 0 : rcond_of(verdict);
        singular = verdict->overflows || (rcond < REAL_EPS && !verdict->determined);
    }
    R(host__ism_report)(ism, singular ? ism->n + 1 : 0, rcond, algorithm, det_ratio);
}

/* ---- The variants ---- */

/* Would A, formed, have lost most of A0? Perhaps, where there was no inverse to judge. */
static bool is_near(const struct host_ism_verdict *verdict)
{
    return verdict->x.fraction == 0 || !(rcond_of(verdict) >= NEAR_ULPS * REAL_EPS);
}

/* Is double-double no slower than lu? */
static bool is_short(const struct R(host_ism) * ism)
{
    return ism->m <= method_ism_dd_short(ism->n);
}

/* Is the inverse none that an update of rank 0 is to repair? */
static bool is_fresh(const struct R(host_ism) * ism, const struct host_ism_verdict *verdict)
{
    const double size =
        ldexp(verdict->a.fraction * verdict->x.fraction, verdict->a.exponent + verdict->x.exponent);
    return ism->m > 0 || !ism->a0 ||
           verdict->error <= METHOD_ISM_FRESH_RATIO * (double)ism->n * (double)REAL_EPS * size;
}

/* Is the inverse of the plan a good one? Of a matrix that is all but singular, what INFO says is
 * left to lu, or to a solution. */
static bool follow(struct R(host_ism) * ism, struct host_ism_plan plan,
                   struct host_ism_verdict *verdict)
{
    *verdict = (struct host_ism_verdict){.error = (double)NAN};
    /* The fused update leaves no factors. */
    if (plan.fused && (ism->u || ism->v || ism->r) && !R(host__ism_block)(ism, plan.block))
        R(host__ism_no_factors)(ism);
    bool whole = plan.fused ? R(host__ism_fused)(ism)
                 : plan.algorithm == METHOD_ALGORITHM_REDUCED_MEMORY
                     ? R(host__ism_reduced)(ism, plan.block)
                     : R(host__ism_block)(ism, plan.block);
    if (!whole)
        return false;
    *verdict = R(host__ism_check)(ism);
    bool known = !ism->b || ism->a0;
    return verdict->good && is_fresh(ism, verdict) &&
           (known ? !is_near(verdict) : !verdict->singular);
}

/* Is the inverse that double-double makes of it a good one? That is known but for some ulps, or it
 * is lu's. Where sums of one precision would do, A0, X and Y say what it is; else it is left to lu
 * whether A is singular. */
static bool follow_dd(struct R(host_ism) * ism, struct host_ism_verdict *verdict)
{
    double amplified;
    int exponent;
    if (!R(host__ism_woodbury)(ism, &amplified, &exponent))
        return false;
    *verdict = R(host__ism_check)(ism);
    const double condition = amplified / ldexp(verdict->x.fraction, verdict->x.exponent);
    const double lost = condition * R(host__ism_dd_error)(ism->n);
    R(host__ism_times_power)(ism, -exponent);
    verdict->x.exponent -= exponent;
    verdict->overflows = exponent != 0 && !R(host__ism_all_finite)(ism->z, ism->n * ism->n);
    verdict->determined = condition * (double)REAL_EPS < 1;
    return verdict->good && lost <= LOST_ULPS * (double)REAL_EPS &&
           (verdict->determined || rcond_of(verdict) >= REAL_EPS);
}

/* The plan, and what else there is without lu. *algorithm: whose inverse it is. */
static bool by_variants(struct R(host_ism) * ism, struct host_ism_plan plan, uint32_t inputs,
                        enum method_algorithm *algorithm)
{
    struct host_ism_verdict verdict;
    bool good = follow(ism, plan, &verdict);
    *algorithm = plan.algorithm;
    if (!good && plan.block < ism->m && merges(ism->n, ism->m)) {
        plan = (struct host_ism_plan){.algorithm = METHOD_ALGORITHM_BLOCK, .block = ism->m};
        good = follow(ism, plan, &verdict);
        *algorithm = METHOD_ALGORITHM_BLOCK;
    }
    if (!good && recovers_dd(ism->n, ism->m, inputs) && (is_short(ism) || is_near(&verdict))) {
        good = follow_dd(ism, &verdict);
        *algorithm = METHOD_ALGORITHM_BLOCK;
    }
    if (good)
        R(host__ism_report_good)(ism, &verdict, *algorithm);
    return good;
}

/* ---- One matrix ---- */

static void answer(struct R(host_ism) * ism, struct host_ism_plan plan, uint32_t inputs)
{
    enum method_algorithm algorithm;
    bool finite = ism->b || R(host__ism_all_finite)(ism->d, ism->n);
    /* To form A takes 2 n^2 m operations, to invert it by parts 4 n m^2. */
    bool pays = ism->m <= ism->n || ism->matrix->options[METHOD_ISM_VARIANT] != METHOD_ISM_AUTO;
    if (finite && pays && by_variants(ism, plan, inputs, &algorithm))
        return;
    if (!given_finite(ism))
        R(host__ism_report)(ism, -1, (REAL)NAN, METHOD_ALGORITHM_NONE, (double)NAN);
    else if (ism->b && !ism->a0)
        R(host__ism_by_solution)(ism);
    else
        R(host__ism_by_lu)(ism);
}

/* What is measured on request. z: the inverse. */
static void measure(const struct host_matrix *matrix, REAL *z)
{
    REAL *residual = matrix->outputs[METHOD_ISM_RESIDUAL];
    REAL *rcond = matrix->outputs[METHOD_ISM_RCOND_CAPACITANCE];
    if (!residual && !rcond)
        return;
    struct R(host_ism) ism = open(matrix);
    ism.z = z;
    if (residual)
        *residual = !ism.b || ism.a0 ? R(host__ism_residual)(&ism) : (REAL)NAN;
    if (rcond)
        *rcond = R(host__ism_rcond_capacitance)(&ism);
}

static void run_alone(const struct host_matrix *matrix)
{
    struct R(host_ism) ism = open(matrix);
    const uint32_t inputs = inputs_of(matrix);
    struct host_ism_plan plan = host__ism_plan(ism.n, ism.m, inputs, matrix->options);
    open_rest(&ism, plan, inputs);
    answer(&ism, plan, inputs);
    measure(matrix, ism.z);
}

/* ---- Groups in lanes ---- */

/* Is it an update without A0 of rank n at most without blocks that were asked for? */
static bool fits_lanes(const struct host_matrix *matrix)
{
    const uint32_t inputs = inputs_of(matrix);
    const int64_t n = matrix->n, m = matrix->m;
    if (group(n, m) == 1 || inputs != (METHOD_INPUT(METHOD_ISM_X) | METHOD_INPUT(METHOD_ISM_Y) |
                                       METHOD_INPUT(METHOD_ISM_A0_INVERSE)))
        return false;
    const struct host_ism_plan plan = host__ism_plan(n, m, inputs, matrix->options);
    return plan.fused && plan.algorithm == METHOD_ALGORITHM_BLOCK;
}

/* The factors, which the lanes do not have. */
static void make_factors(const struct host_matrix *matrix)
{
    if (!matrix->outputs[METHOD_ISM_U] && !matrix->outputs[METHOD_ISM_R] &&
        !matrix->outputs[METHOD_ISM_V])
        return;
    struct R(host_ism) ism = open(matrix);
    const uint32_t inputs = inputs_of(matrix);
    const struct host_ism_plan plan = host__ism_plan(ism.n, ism.m, inputs, matrix->options);
    open_rest(&ism, plan, inputs);
    if (!R(host__ism_block)(&ism, plan.block))
        R(host__ism_no_factors)(&ism);
}

static struct host_matrix lent_scratch(const struct host_matrix *matrix, void *scratch)
{
    struct host_matrix lent = *matrix;
    lent.scratch = scratch;
    return lent;
}

static void run_lanes(const struct host_matrix *matrices, int count)
{
    const int64_t n = matrices[0].n, m = matrices[0].m;
    const struct R(host_small_code) *code = R(host__small_choose)(n, count);
    const int lanes = (int)(code->vector_bytes / (int64_t)sizeof(REAL));
    void *scratch = matrices[0].scratch;
    struct R(host_small_update) group;
    for (int lane = 0; lane < count; lane++) {
        const struct host_matrix matrix = lent_scratch(&matrices[lane], scratch);
        make_factors(&matrix);
    }
    for (int lane = 0; lane < lanes; lane++) {
        const struct host_matrix *matrix = &matrices[lane < count ? lane : 0];
        group.b[lane] = matrix->inputs[METHOD_ISM_A0_INVERSE];
        group.x[lane] = matrix->inputs[METHOD_ISM_X];
        group.y[lane] = matrix->inputs[METHOD_ISM_Y];
        group.z[lane] = lane < count ? matrix->outputs[METHOD_ISM_INVERSE] : NULL;
    }
    if (n > HOST_ISM_PROBES)
        R(host__ism_weights)(n, group.weights);
    code->update(&group, n, m, scratch);
    for (int lane = 0; lane < count; lane++) {
        const struct R(host_ism) ism = {.matrix = &matrices[lane], .n = n, .m = m};
        group.good[lane] = group.good[lane] && R(host__ism_update_holds)(n, &group.measured[lane]);
        if (group.good[lane])
            R(host__ism_report)
        (&ism, 0, (REAL)NAN, METHOD_ALGORITHM_BLOCK, (double)group.det_ratio[lane]);
    }
    /* Only now, for it uses the scratch up. */
    for (int lane = 0; lane < count; lane++) {
        const struct host_matrix matrix = lent_scratch(&matrices[lane], scratch);
        if (group.good[lane])
            measure(&matrix, NULL);
        else
            run_alone(&matrix);
    }
}

static void run(const struct host_matrix *matrix)
{
    if (fits_lanes(matrix))
        run_lanes(matrix, 1);
    else
        run_alone(matrix);
}

static void run_group(const struct host_matrix *matrices, int count, const struct host_matrix *next,
                      int next_count)
{
    (void)next;
    (void)next_count;
    if (fits_lanes(&matrices[0])) {
        run_lanes(matrices, count);
        return;
    }
    for (int i = 0; i < count; i++) {
        const struct host_matrix matrix = lent_scratch(&matrices[i], matrices[0].scratch);
        run_alone(&matrix);
    }
}

const struct host_method R(host_method_ism) = {
    .name = "ism",
    .run = run,
    .run_group = run_group,
    .group = group,
    .scratch_bytes = scratch_bytes,
    .task_scratch_bytes = task_scratch_bytes,
    .kernel = kernel,
};
