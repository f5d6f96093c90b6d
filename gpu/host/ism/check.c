/* gpu/host/ism/check.c: is the inverse that a variant made a good one? And Newton's step, which
 * repairs one that is nearly so. See ism.h.
 *
 * The check multiplies a few lines T by I - Z A: two of random numbers, or up to n =
 * HOST_ISM_PROBES those of the identity, so that all of it is seen. With errors of the size e in a
 * column, an entry of the product is near sqrt(n) e, and the sum of the column n e; so a product
 * within sqrt(n) eps |A| |Z| leaves a factor of 15 to what is promised, and two lines are not
 * mistaken at once.
 *
 * With A0_INVERSE alone A is not known. With M = I + X Y^T A0^-1 the new inverse is Z = A0^-1 M^-1,
 * and T (A0^-1 - Z M) is measured by |Z| (1 + |M - I|): the error of a backward stable solution.
 * Where terms of Y^T A0^-1 or of X times that cancel, the update has their rounding errors, and so
 * has a check of one precision, which may be the very same ones. They are n / 2 eps at most of the
 * sum of the terms' magnitudes, |X| |Y^T| |A0^-1|. That sum is taken; where it is so much larger
 * than 1 + |M - I| that the contract could be broken unseen, the check is made in
 * double-double. That of the last algorithm always is. Where even that would not do, nothing is
 * good.
 *
 * Where A is known and terms of X Y^T cancel, it is the same with |X| |Y^T| and |A|, which is then
 * summed in double-double too; four lines are tried. What fails goes the last algorithm,
 * where A is formed, and tried likewise: if it is not the sum to within rounding, that is taken in
 * dd the precision and rounded once.
 *
 * |A| is exact for A alone, and for orders up to NORM_ORDER. Beyond, columns are chosen whose
 * norms seem largest, by products with fixed lines, and others whose norms may be so by the norms
 * of the columns of X; the best is improved as LAPACK's estimate of a norm is. What comes out is
 * the norm of a column, so never more than |A|, and as a rule |A| itself: for certain, where it is
 * as long as any of the others may be.
 *
 * Threads: any; a team helps with large matrices. Cost: see ism.h.
 */
#include "gpu/host/base/speed.h"

#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/base/stop.h"
#include "gpu/host/ism/check.h"

#include "gpu/host/base/by_precision.h"
#include "gpu/host/ism/lanes.h"

#define MORE_PROBE_VECTORS 4 /* where terms of a known A cancel */
#define FORMED_RATIO 2.0     /* of what A formed lacks, where all of it is known */

double R(host__check_allowed_of)(int64_t n, bool whole, double size)
{
    return (whole ? WHOLE_RATIO * (double)n : sqrt((double)n)) * (double)REAL_EPS * size;
}

double R(host__check_allowed)(const struct R(host_check) * check, double size)
{
    return R(host__check_allowed_of)(check->ism->n, check->count == check->ism->n, size);
}

/* ---- The check ---- */

/* error = I - Z A, by columns of A that are formed; returns |A|. The sum of Z A0 and (Z X) Y^T has
 * rounding errors of the size of its terms: where A0 and X Y^T cancel, it may agree with I by
 * chance in each of a few entries. */
static struct host_norm check_formed(const struct R(host_check) * check)
{
    const struct R(host_ism) *ism = check->ism;
    int64_t n = ism->n;
    REAL largest = 0;
    for (int64_t j = 0; j < n; j++) {
        REAL column = R(host__check_column_norm)(check, j);
        largest = column > largest || isnan(column) ? column : largest;
        for (int64_t l = 0; l < n; l++) {
            REAL sum = l == j;
            for (int64_t i = 0; i < n; i++)
                sum -= ism->z[l * n + i] * check->spare[i];
            check->error[l * check->ld + j] = sum;
        }
    }
    return R(host__check_norm_of_number)(largest);
}

/* ---- A is known ---- */

/* What largest_weight returns being `weight`: may sums of one precision have lost so much of X Y^T
 * that it matters for a matrix with the norm a? */
static bool cancels(const struct R(host_check) * check, long double weight, struct host_norm a)
{
    const struct R(host_ism) *ism = check->ism;
    const bool whole = check->count == ism->n;
    const double share = ism->m > ism->n ? (double)ism->n / (double)ism->m : 1;
    const double ratio = whole                   ? WHOLE_TERMS_RATIO
                         : ism->n <= SMALL_ORDER ? SMALL_TERMS_RATIO
                                                 : TERMS_RATIO;
    const double terms_max = ratio * share;
    if (!a.finite) /* perhaps on the way: the sums of FP32 are then of doubles */
        return REAL_BITS == 32;
    return !(weight <= terms_max * value_of(a));
}

/* Errors of terms that cancel are large in many answers, and may be one column times one row: a
 * line whose product with that column is small does not see them, and of two lines both may be
 * such. */
static void take_more_lines(struct R(host_check) * check)
{
    if (!check->dd || check->count == check->ism->n)
        return;
    check->count = MORE_PROBE_VECTORS;
    R(host__check_set_lines)(check, check->t);
}

/* error = T (I - Z A). T Z is in tz, but where there are more lines or all. */
static void residual(const struct R(host_check) * check)
{
    if (check->count != PROBE_VECTORS) {
        R(host__check_clear)(check, check->tz);
        R(host__check_times)(check, check->t, check->ism->z, check->ism->n, check->tz);
    }
    R(host__check_times_a)(check, check->tz);
    R(host__check_subtract)(check, check->t, check->error, check->error);
    if (check->dd)
        R(host__check_subtract)
    (check, check->error, R(host__check_low)(check, check->error), check->error);
}

/* What check_known has measured. */
struct measured {
    struct host_norm a;
    long double weight; /* what largest_weight returns */
    double error;       /* of the lines */
};

/* By the products of one precision. */
static struct measured measure_plainly(const struct R(host_check) * check, bool forms)
{
    const struct R(host_ism) *ism = check->ism;
    struct measured of = {.weight = 0};
    if (!ism->a && ism->n > NORM_ORDER) {
        of.a = R(host__check_norm_with_residual)(check, &of.weight, &of.error);
        return of;
    }
    of.a = forms ? check_formed(check) : R(host__check_norm_a)(check);
    if (!forms)
        residual(check);
    of.error = R(host__check_measure)(check, check->error);
    if (!ism->a)
        of.weight = R(host__check_largest_weight)(check);
    return of;
}

/* The same in double-double, but for the weight. */
static void measure_dd(struct R(host_check) * check, bool forms, struct measured *of)
{
    const double rounding = (double)check->ism->n * (double)REAL_EPS;
    if (forms) {
        of->a = check_formed(check);
    } else {
        if (!(rounding * of->weight <= CHANGE_ERROR * value_of(of->a)))
            of->a = R(host__check_norm_a)(check);
        take_more_lines(check);
        residual(check);
    }
    of->error = R(host__check_measure)(check, check->error);
}

/* The variant's own sums may have lost the same terms as those of this check: where that could
 * matter, it is made in double-double. Of a given A nothing is summed. */
static void check_known(const struct R(host_check) * given, struct host_ism_verdict *verdict)
{
    struct R(host_check) check = *given;
    const struct R(host_ism) *ism = check.ism;
    const double n = (double)ism->n, rounding = n * (double)REAL_EPS;
    const bool forms = !ism->a && check.count == ism->n;
    struct measured of = measure_plainly(&check, forms);
    check.dd = verdict->cancels = !ism->a && cancels(&check, of.weight, of.a);
    if (check.dd)
        measure_dd(&check, forms, &of);
    verdict->a = of.a;
    verdict->error = check.count == ism->n ? of.error : sqrt(n) * of.error;
    verdict->good = verdict->a.finite && verdict->a.fraction > 0 &&
                    of.error <= R(host__check_allowed)(&check, size_of(verdict->a, verdict->x));
    if (check.dd)
        verdict->good = verdict->good && R(host__ism_dd_error)(2 * ism->n + ism->m) * of.weight <=
                                             DD_RATIO * rounding * value_of(verdict->a);
}

bool R(host__ism_formed_well)(struct R(host_ism) * ism)
{
    struct R(host_check) check = R(host__check_open)(ism);
    const int64_t n = ism->n, ld = check.ld;
    const struct host_norm a = R(host__norm)(ism->team, ism->z, n, n, check.spare);
    check.dd = cancels(&check, R(host__check_largest_weight)(&check), a);
    if (!check.dd)
        return true;
    R(host__check_set_lines)(&check, check.t);
    take_more_lines(&check);
    REAL *product = check.spare, *product_low = R(host__check_low)(&check, product);
    REAL *error = check.error, *low = R(host__check_low)(&check, error);
    struct R(host_ism_dd) dd = {.lines = check.t,
                                .line_step = ld,
                                .step = 1,
                                .count = check.count,
                                .rows = n,
                                .columns = n,
                                .from = ism->z,
                                .from_ld = n,
                                .to = product,
                                .to_low = product_low,
                                .to_ld = ld,
                                .low_ld = ld};
    R(host__check_times_a_dd)(&check, check.t);
    R(host__ism_dd)(ism->team, &dd);
    R(host__check_subtract)(&check, error, product, error);
    R(host__check_subtract)(&check, low, product_low, low);
    for (int64_t l = 0; l < check.count; l++) {
        for (int64_t j = 0; j < n; j++)
            error[l * ld + j] += low[l * ld + j];
    }
    const double lines = check.count == n ? FORMED_RATIO * (double)n : sqrt((double)n);
    return R(host__check_measure)(&check, error) <= lines * (double)REAL_EPS * value_of(a);
}

/* ---- Any matrix ---- */

void R(host__ism_open_check)(struct R(host_ism) * ism)
{
    struct R(host_check) check = R(host__check_open)(ism);
    if (!ism->a && (!ism->b || ism->a0) && ism->n > NORM_ORDER)
        check.count = HOST_ISM_PROBES; /* |A| takes them all */
    R(host__check_set_lines)(&check, check.t);
}

/* T and T Z in t and tz; returns |Z|. */
static struct host_norm see(const struct R(host_check) * check)
{
    struct R(host_ism) *ism = check->ism;
    const int64_t n = ism->n;
    if (check->count == n) {
        R(host__check_set_lines)(check, check->t);
        R(host__check_clear)(check, check->tz);
        R(host__check_times)(check, check->t, ism->z, n, check->tz);
        return R(host__norm)(ism->team, ism->z, n, n, check->spare);
    }
    if (!ism->seen) {
        const struct host_ism_tiles tiles = host__ism_tiles(n);
        R(host__ism_open_check)(ism);
        host_team_run(ism->team, tiles.down * tiles.across, R(host__check_see_piece), ism);
    }
    ism->seen = false;
    host_team_run(ism->team, pieces(n, GATHER_PIECE), R(host__check_seen_piece), (void *)check);
    REAL *sums = check->tz + PROBE_VECTORS * check->ld;
    memset(sums + n, 0, (size_t)(check->ld - n) * sizeof *sums);
    const REAL sum = R(host__check_largest)(sums, n);
    return isfinite(sum) ? R(host__check_norm_of_number)(sum)
                         : R(host__norm)(ism->team, ism->z, n, n, check->spare);
}

struct host_ism_verdict R(host__ism_check)(struct R(host_ism) * ism)
{
    const struct R(host_check) check = R(host__check_open)(ism);
    struct host_ism_verdict verdict = {.error = (double)NAN};
    verdict.x = see(&check);
    if (!verdict.x.finite)
        return verdict;
    if (!ism->b || ism->a0)
        check_known(&check, &verdict);
    else
        R(host__check_update)(&check, &verdict);
    return verdict;
}

struct host_ism_verdict R(host__ism_check_solution)(struct R(host_ism) * ism, double change)
{
    struct R(host_check) check = R(host__check_open)(ism);
    struct host_ism_verdict verdict = {.error = (double)NAN};
    ism->seen = false;
    verdict.x = see(&check);
    if (!verdict.x.finite)
        return verdict;
    const struct R(host_check_weight) weight = R(host__check_weigh_terms)(&check);
    R(host__check_update_dd)(&check, &weight, change, &verdict);
    return verdict;
}
