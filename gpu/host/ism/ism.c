/* gpu/host/ism/ism.c: `ism`: reads what is given, balances X and Y, goes the algorithms that ism.h
 * offers until one leads to a good inverse, and reports.
 *
 * Small updates of a known inverse go as many at once as a vector has lanes (group.inc); what
 * is not good beyond doubt there, and all others, alone. Algorithms, in the order they are tried:
 * the plan's variant; where blocks broke down or lost accuracy and m is small, all columns as one
 * block, whose coupling matrix is factored with pivoting; where the answer is nearly good, Newton's
 * step; at last A is formed, where terms cancel in twice the precision, and inverted as by lu, with
 * the scaling and the repair that lu has. A0_INVERSE alone has no A: there the last algorithm
 * solves Z (I + X Y^T A0^-1) = A0^-1 by LU, the matrix being summed up in twice the precision. No
 * answer goes out that its trial has not found good.
 *
 * Threads: any. Cost: see types.inc; the last algorithm takes lu's 2 n^3 and more.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/ism/ism.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/minmax.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/linalg/blocked.h"
#include "gpu/host/simd/small.h"
#include "gpu/host/base/stop.h"

#define MERGED_SHARE 4 /* all columns become one block where m <= n / 4: cheaper than lu */
/* Newton's step is tried where m <= n / 8. It takes 2 n^3 + 4 n^2 m operations, lu 2 n^3 + 2 n^2 m;
 * both take 2/3 n^3 more for DET_RATIO, after the step with 2 n^2 m to form A. But the step is made
 * of products: on one core, FP64, n = 1200 and 2000, it took 0.8 to 0.9 of lu's time at m = n / 32,
 * as long at m = n / 8, and 1.1 to 1.4 times as long at m = n / 2. */
#define REPAIR_SHARE 8
#define NEAR_ULPS 64   /* nearer to singular, lu decides what INFO says */
#define FORM_PIECE 256 /* rows and columns of a tile of A */
#define SOLVE_PIECE 64 /* rows of the inverse that are solved for together */
#define MET_LINES 32   /* of Y^T A0^-1 or A, in pairs: HOST_LINES numbers */

static const char *kernel(enum precision precision, int64_t n)
{
    (void)precision;
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

/* Numbers that a plan takes behind a matrix's own, `planned` of them, or what may be tried after
 * it; -1 on overflow. */
static int64_t work_numbers(enum precision precision, int64_t n, int64_t m, int64_t planned,
                            bool factors)
{
    struct host_ism_plan merged = {.algorithm = METHOD_ALGORITHM_BLOCK, .block = max_i64(m, 1)};
    int64_t repair = HOST_ISM_REPAIR_ROWS * (2 * host__ld(precision, n) + host__ld(precision, m));
    if (planned < 0)
        return -1;
    int64_t numbers = max_i64(planned, repair);
    return merges(n, m) ? max_i64(numbers, host__ism_plan_numbers(precision, n, m, merged, factors))
                        : numbers;
}

/* Are X and Y balanced? Where they are thin, which takes little, or where no A could be formed. */
static bool balances(int64_t m, uint32_t inputs)
{
    const uint32_t both = METHOD_INPUT(METHOD_ISM_A0_INVERSE) | METHOD_INPUT(METHOD_ISM_A0_DENSE);
    return (inputs & METHOD_INPUT(METHOD_ISM_X)) != 0 &&
           (m <= HOST_ISM_THIN || (inputs & both) == METHOD_INPUT(METHOD_ISM_A0_INVERSE));
}

/* Layout: the matrix's own numbers and the work of a plan, or what lu takes; the inverse where it
 * is not wanted; X and Y balanced. These are the bytes without the last. */
static int64_t first_bytes(enum precision precision, int64_t n, int64_t own, int64_t work,
                           bool inverse_wanted)
{
    int64_t bytes, dense = host__lu_scratch_bytes(precision, n, 0), inverse = 0;
    if (own < 0 || work < 0 || dense < 0 || !checked_add(own, work, &bytes) ||
        !checked_mul(bytes, precision_bytes(precision), &bytes))
        return -1;
    if (!inverse_wanted && (!checked_mul(n, n, &inverse) ||
                            !checked_mul(inverse, precision_bytes(precision), &inverse)))
        return -1;
    if (!checked_add(max_i64(bytes, dense), inverse, &bytes) ||
        !checked_round_up(bytes, HOST_ALIGN_BYTES, &bytes))
        return -1;
    return bytes;
}

/* `lanes`: what a group of small updates takes, which has nothing else then. */
static int64_t whole_bytes(enum precision precision, int64_t first, int64_t balanced, int64_t lanes)
{
    int64_t bytes;
    if (first < 0 || balanced < 0 || !checked_mul(balanced, precision_bytes(precision), &bytes) ||
        !checked_add(first, bytes, &bytes))
        return -1;
    return max_i64(bytes, lanes);
}

static int64_t lanes_bytes(int64_t n, int64_t m)
{
    return n <= HOST_SMALL_ORDER_MAX && m <= HOST_SMALL_UPDATE_RANK ? host__small_update_bytes(n)
                                                                    : 0;
}

/* Whatever the options are. m = 0: A alone, perhaps. */
static int64_t scratch_bytes(enum precision precision, int64_t n, int64_t m)
{
    if (n > METHOD_ISM_ORDER_MAX || m > METHOD_ISM_ORDER_MAX)
        return -1;
    int64_t balanced = host__ism_balance_numbers(n, m), lanes = lanes_bytes(n, m);
    m = m > 0 ? m : n;
    int64_t work = work_numbers(precision, n, m, host__ism_max_numbers(precision, n, m), true);
    int64_t own = host__ism_own_numbers(precision, n, m);
    return whole_bytes(precision, first_bytes(precision, n, own, work, false), balanced, lanes);
}

static int64_t task_scratch_bytes(const struct host_task *task)
{
    bool factors = (task->wanted & (METHOD_INPUT(METHOD_ISM_U) | METHOD_INPUT(METHOD_ISM_V) |
                                    METHOD_INPUT(METHOD_ISM_R))) != 0;
    bool alone = (task->inputs & METHOD_INPUT(METHOD_ISM_A)) != 0;
    int64_t n = task->n, m = alone ? n : task->m;
    struct host_ism_plan plan = host__ism_plan(n, m, task->inputs, task->options);
    int64_t own = host__ism_own_numbers(task->precision, n, m);
    int64_t planned = host__ism_plan_numbers(task->precision, n, m, plan, factors);
    int64_t work = work_numbers(task->precision, n, m, planned, factors);
    int64_t first = first_bytes(task->precision, n, own, work,
                                (task->outputs & METHOD_INPUT(METHOD_ISM_INVERSE)) != 0);
    return whole_bytes(task->precision, first,
                       balances(m, task->inputs) ? host__ism_balance_numbers(n, m) : 0,
                       lanes_bytes(n, m));
}

static int group(enum precision precision, int64_t n, int64_t m)
{
    const int64_t most = min_i64(n, HOST_SMALL_UPDATE_RANK);
    return m >= 1 && m <= most ? host__small_group(precision, n) : 1;
}

#define REAL_FILE "gpu/host/ism/determinant.inc"
#include "gpu/host/linalg/real.inc"

#define REAL_FILE "gpu/host/ism/ism.inc"
#include "gpu/host/linalg/real.inc"

#define REAL_FILE "gpu/host/ism/group.inc"
#include "gpu/host/linalg/real.inc"

const struct host_method host_method_ism = {
    .name = "ism",
    .run = {[PRECISION_FP32] = run_f32, [PRECISION_FP64] = run_f64},
    .run_group = {[PRECISION_FP32] = run_group_f32, [PRECISION_FP64] = run_group_f64},
    .group = group,
    .scratch_bytes = scratch_bytes,
    .task_scratch_bytes = task_scratch_bytes,
    .kernel = kernel,
};
