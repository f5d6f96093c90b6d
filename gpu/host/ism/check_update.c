/* gpu/host/ism/check_update.c: the check of `ism` with A0_INVERSE alone; see check.h.
 *
 * Threads: any. Cost: see check.c.
 */
#include "gpu/host/base/speed.h"

#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/base/stop.h"
#include "gpu/host/ism/check.h"

#include "gpu/host/base/by_precision.h"
#include "gpu/host/ism/lanes.h"

#define CLOSE_ORDER 16 /* to this order two lines may miss as much of an update */

/* Which of the first line's numbers is the largest. */
static int64_t longest(const struct R(host_check) * check, const REAL *lines)
{
    int64_t best = 0;
    for (int64_t j = 1; j < check->ism->n; j++)
        best = REAL_FABS(lines[j]) > REAL_FABS(lines[best]) ? j : best;
    return best;
}

/* |X Y^T A0^-1|, or the norm of a column of it that seems the largest: of the lines T times it. */
static double norm_of_change(const struct R(host_check) * check, const REAL *lines)
{
    const struct R(host_ism) *ism = check->ism;
    const int64_t n = ism->n, best = longest(check, lines);
    if (check->count == n)
        return R(host__check_measure)(check, lines);
    /* Column `best` of A0^-1, then Y^T times it, then X times that. */
    for (int64_t i = 0; i < n; i++)
        check->spare[i] = ism->b[i * n + best];
    struct R(host_check_product) product = {.lines = check->spare,
                                            .count = 1,
                                            .ld = check->ld,
                                            .from = ism->yt,
                                            .rows = ism->m,
                                            .columns = n,
                                            .from_ld = ism->ld,
                                            .to = check->thin,
                                            .to_ld = check->ld};
    struct R(host_check_down) down = {.lines = check->spare,
                                      .from = ism->y,
                                      .count = 1,
                                      .rows = n,
                                      .columns = ism->m,
                                      .to = check->thin,
                                      .parts = check->error};
    if (ism->yt && ism->m > 0)
        R(host__check_do)(&product, SET_TIMES_TRANSPOSED);
    else if (ism->m > 0)
        R(host__check_go_down)(check, &down, 2 * HOST_ISM_PROBES);
    R(host__check_form_columns)(check, 1, check->spare);
    return (double)R(host__check_sum_of)(check, check->spare);
}

/* ---- The same in double-double ---- */

/* error = spare * A0^-1, in double-double. */
static void times_b_dd(const struct R(host_check) * check, int64_t count)
{
    const struct R(host_ism) *ism = check->ism;
    struct R(host_ism_dd) dd = {.lines = check->spare,
                                .lines_low = R(host__check_low)(check, check->spare),
                                .line_step = check->ld,
                                .step = 1,
                                .count = count,
                                .rows = ism->n,
                                .columns = ism->n,
                                .from = ism->b,
                                .from_ld = ism->n,
                                .to = check->error,
                                .to_low = R(host__check_low)(check, check->error),
                                .to_ld = check->ld,
                                .low_ld = check->ld};
    R(host__ism_dd)(ism->team, &dd);
}

/* spare = X (Y^T times column j of A0^-1), the first line. */
static void change_column_dd(const struct R(host_check) * check, int64_t j)
{
    const struct R(host_ism) *ism = check->ism;
    struct R(host_ism_dd) dd = {.lines = ism->b + j,
                                .step = ism->n,
                                .count = 1,
                                .rows = ism->n,
                                .columns = ism->m,
                                .from = ism->y,
                                .from_ld = ism->m,
                                .to = check->thin,
                                .to_low = R(host__check_low)(check, check->thin)};
    R(host__ism_dd)(ism->team, &dd);
    dd.lines = dd.to;
    dd.lines_low = dd.to_low;
    dd.step = 1;
    dd.rows = ism->m;
    dd.columns = ism->n;
    dd.from = ism->x;
    dd.transposed = true;
    dd.to = check->spare;
    dd.to_low = R(host__check_low)(check, check->spare);
    R(host__ism_dd)(ism->team, &dd);
}

/* As norm_of_change. */
static double norm_of_change_dd(const struct R(host_check) * check)
{
    bool whole = check->count == check->ism->n;
    R(host__check_times_thin_dd)(check, whole ? check->count : 1, check->t, check->spare);
    times_b_dd(check, whole ? check->count : 1);
    if (whole)
        return R(host__check_measure)(check, check->error);
    change_column_dd(check, longest(check, check->error));
    return (double)R(host__check_sum_of)(check, check->spare);
}

/* error = T A0^-1 - (T Z) M, of which T Z is in tz. */
static double residual_dd(const struct R(host_check) * check)
{
    const int64_t n = check->ism->n, ld = check->ld;
    REAL *high = check->spare, *low = R(host__check_low)(check, check->spare);
    REAL *error = check->error, *error_low = R(host__check_low)(check, check->error);
    R(host__check_times_thin_dd)(check, check->count, check->tz, check->spare);
    for (int64_t l = 0; l < check->count; l++) {
        for (int64_t j = 0; j < n; j++) {
            const REAL one = check->t[l * ld + j], other = -high[l * ld + j];
            const REAL sum = one + other, back = sum - one;
            high[l * ld + j] = sum;
            low[l * ld + j] = (one - (sum - back)) + (other - back) - low[l * ld + j];
        }
    }
    times_b_dd(check, check->count);
    for (int64_t l = 0; l < check->count; l++) {
        for (int64_t j = 0; j < n; j++)
            error[l * ld + j] = (error[l * ld + j] - check->tz[l * ld + j]) + error_low[l * ld + j];
    }
    return R(host__check_measure)(check, error);
}

/* ---- An update: A0_INVERSE alone ---- */

/* The terms where sums of the precision overflow; thin and error are used up. */
static double wide_terms(const struct R(host_check) * check)
{
    const int64_t n = check->ism->n;
    const long double *norms = R(host__check_wide_norms)(check);
    long double *sums = (long double *)check->error, largest = 0;
    for (int64_t j = 0; j < n; j++)
        sums[j] = 0;
    for (int64_t first = 0, end; first < n; first = end) {
        end = host_stop_part_of(first, n, n + check->ism->m);
        for (int64_t i = first; i < end; i++) {
            const long double weight = R(host__check_wide_weight)(check, norms, i);
            for (int64_t j = 0; j < n; j++)
                sums[j] += weight * (long double)REAL_FABS(check->ism->b[i * n + j]);
        }
    }
    for (int64_t j = 0; j < n; j++)
        largest = sums[j] > largest || isnan(sums[j]) ? sums[j] : largest;
    return (double)largest;
}

struct R(host_check_weight) R(host__check_weigh_terms)(const struct R(host_check) * check)
{
    const struct R(host_ism) *ism = check->ism;
    const int64_t n = ism->n;
    REAL *weights = check->spare;
    R(host__check_weigh_columns)(check, weights);
    memset(check->error, 0, (size_t)(2 * check->ld) * sizeof(REAL));
    struct R(host_check_product) product = {.lines = weights,
                                            .ld = check->ld,
                                            .from = ism->b,
                                            .rows = n,
                                            .columns = n,
                                            .from_ld = n,
                                            .to = check->error,
                                            .to_ld = check->ld,
                                            .magnitudes = true};
    host_team_run(ism->team, pieces(n, TIMES_PIECE), R(host__check_times_piece), &product);
    const REAL sum = R(host__check_largest)(check->error, n);
    const struct host_norm norm = isfinite(sum)
                                      ? R(host__check_norm_of_number)(sum)
                                      : R(host__norm)(ism->team, ism->b, n, n, check->spare);
    const REAL terms = R(host__check_largest)(check->error + check->ld, n);
    return (struct R(host_check_weight)){.b = ldexp(norm.fraction, norm.exponent),
                                         .terms =
                                             isfinite(terms) ? (double)terms : wide_terms(check)};
}

/* Can a matrix whose numbers are in range have an inverse of this norm? Smaller ones have hardly a
 * digit, and their check, which works with as few, would not show it. One beyond the range measures
 * nothing. */
static bool is_some_inverse(double norm_x)
{
    return norm_x >= (double)REAL_MIN / 4 && norm_x <= (double)REAL_MAX;
}

/* change: |M - I|. */
static void judge_update(const struct R(host_check) * check,
                         const struct R(host_check_weight) * weight, double change,
                         struct host_ism_verdict *verdict)
{
    const double norm_x = ldexp(verdict->x.fraction, verdict->x.exponent);
    const double size = norm_x * (1 + change);
    verdict->good =
        is_some_inverse(norm_x) && verdict->error <= R(host__check_allowed)(check, size);
    verdict->singular = verdict->good && size * (double)REAL_EPS > weight->b;
}

void R(host__check_update_dd)(const struct R(host_check) * check,
                              const struct R(host_check_weight) * weight, double change,
                              struct host_ism_verdict *verdict)
{
    const int64_t n = check->ism->n;
    const double lost = R(host__ism_dd_error)(2 * n + check->ism->m) * weight->terms;
    change = isnan(change) ? norm_of_change_dd(check) : change;
    verdict->error = residual_dd(check);
    judge_update(check, weight, change, verdict);
    verdict->good = verdict->good && lost <= DD_RATIO * (double)n * (double)REAL_EPS * (1 + change);
}

/* By the products of one precision; returns |M - I|. */
static double check_plainly(const struct R(host_check) * check,
                            const struct R(host_check_weight) * weight,
                            struct host_ism_verdict *verdict)
{
    const struct R(host_ism) *ism = check->ism;
    struct R(host_check) both = *check;
    REAL *rest = check->spare + check->count * check->ld;
    REAL *error = check->error + check->count * check->ld;
    both.count = 2 * check->count;
    R(host__check_times_thin)(check, check->t, check->spare);
    R(host__check_times_thin)(check, check->tz, rest);
    R(host__check_subtract)(check, check->t, rest, rest);
    R(host__check_clear)(&both, check->error);
    R(host__check_times)(&both, check->spare, ism->b, ism->n, check->error);
    R(host__check_subtract)(check, error, check->tz, error);
    verdict->error = R(host__check_measure)(check, error);
    const double change = norm_of_change(check, check->error);
    judge_update(check, weight, change, verdict);
    return change;
}

/* So many times 1 + |M - I| may the terms of an update be, for a check of one precision. */
static double terms_max(int64_t n)
{
    return n <= CLOSE_ORDER   ? WHOLE_TERMS_RATIO
           : n <= SMALL_ORDER ? SMALL_TERMS_RATIO
                              : TERMS_RATIO;
}

void R(host__check_update)(const struct R(host_check) * check, struct host_ism_verdict *verdict)
{
    const double n = (double)check->ism->n;
    const struct R(host_check_weight) weight = R(host__check_weigh_terms)(check);
    double change = check_plainly(check, &weight, verdict);
    if (!verdict->good || weight.terms <= terms_max(check->ism->n) * (1 + change))
        return;
    /* Is |M - I| too what was lost? */
    if (!(n * (double)REAL_EPS * weight.terms <= CHANGE_ERROR * (1 + change)))
        change = (double)NAN;
    R(host__check_update_dd)(check, &weight, change, verdict);
}

bool R(host__ism_update_holds)(int64_t n, const struct host_small_measured *of)
{
    const bool whole = n <= HOST_ISM_PROBES;
    const double size = of->norm_x * (1 + of->change);
    return is_some_inverse(of->norm_x) && of->error <= R(host__check_allowed_of)(n, whole, size) &&
           size * (double)REAL_EPS <= of->norm_b && of->terms <= terms_max(n) * (1 + of->change);
}
