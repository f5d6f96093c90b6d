/* gpu/host/ism/check_norm.c: |A|, and how much may cancel in X Y^T, for the check of `ism`; see
 * check.h.
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

#define CANDIDATES 8 /* columns whose norm is computed, by either score */
#define CLIMBS 4     /* from the best of them */

/* ---- What may cancel ---- */

REAL R(host__check_largest)(const REAL *numbers, int64_t n)
{
    REAL largest[LANES] = {0};
    lanes lacks = {0};
    for (int64_t j = 0; j < n; j += LANES) {
        lacks += *(const lanes *)(numbers + j) * 0;
        for (int64_t l = 0; l < LANES; l++)
            largest[l] = numbers[j + l] > largest[l] ? numbers[j + l] : largest[l];
    }
    for (int64_t l = 1; l < LANES; l++)
        largest[0] = largest[l] > largest[0] ? largest[l] : largest[0];
    return largest[0] + total(&lacks);
}

void R(host__check_weigh_columns)(const struct R(host_check) * check, REAL *weights)
{
    R(host__check_meet)
    (check, check->t, 0, check->thin, weights, check->error, 2 * HOST_ISM_PROBES);
}

long double *R(host__check_wide_norms)(const struct R(host_check) * check)
{
    const struct R(host_ism) *ism = check->ism;
    long double *norms = (long double *)check->thin;
    for (int64_t c = 0; c < ism->m; c++)
        norms[c] = 0;
    for (int64_t first = 0, end; first < ism->n; first = end) {
        end = host_stop_part_of(first, ism->n, ism->m);
        for (int64_t i = first; i < end; i++) {
            for (int64_t c = 0; c < ism->m; c++)
                norms[c] += (long double)REAL_FABS(ism->x[i * ism->m + c]);
        }
    }
    return norms;
}

long double R(host__check_wide_weight)(const struct R(host_check) * check, const long double *norms,
                                       int64_t j)
{
    const struct R(host_ism) *ism = check->ism;
    long double weight = 0;
    for (int64_t c = 0; c < ism->m; c++)
        weight += norms[c] * (long double)REAL_FABS(ism->y[j * ism->m + c]);
    return weight;
}

/* The largest of weights, as weigh_columns sets them, without overflow. thin is used up. */
static long double largest_of(const struct R(host_check) * check, const REAL *weights)
{
    const int64_t n = check->ism->n;
    const REAL plain = R(host__check_largest)(weights, n);
    if (isfinite(plain))
        return (long double)plain;
    const long double *norms = R(host__check_wide_norms)(check);
    long double largest = 0;
    for (int64_t first = 0, end; first < n; first = end) {
        end = host_stop_part_of(first, n, check->ism->m);
        for (int64_t j = first; j < end; j++) {
            const long double weight = R(host__check_wide_weight)(check, norms, j);
            largest = weight > largest ? weight : largest;
        }
    }
    return largest;
}

long double R(host__check_largest_weight)(const struct R(host_check) * check)
{
    R(host__check_weigh_columns)(check, check->spare);
    return largest_of(check, check->spare);
}

/* ---- |A| ---- */

REAL R(host__check_sum_of)(const struct R(host_check) * check, const REAL *line)
{
    REAL sums[LANES] = {0};
    const int64_t n = check->ism->n;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int64_t l = 0; l < LANES; l++)
            sums[l] += REAL_FABS(line[i + l]);
    }
    for (; i < n; i++)
        sums[0] += REAL_FABS(line[i]);
    for (int64_t l = 1; l < LANES; l++)
        sums[0] += sums[l];
    return sums[0];
}

/* to = `count` columns of A, with the numbers in columns. */
static void set_columns(const struct R(host_check) * check, const int64_t *columns, int64_t count,
                        REAL *to)
{
    const struct R(host_ism) *ism = check->ism;
    for (int64_t k = 0; k < count && ism->m > 0; k++)
        memcpy(check->thin + k * check->ld, ism->y + columns[k] * ism->m,
               (size_t)ism->m * sizeof(REAL));
    R(host__check_form_columns)(check, count, to);
    for (int64_t k = 0; k < count; k++, to += check->ld) {
        for (int64_t i = 0; ism->b && i < ism->n; i++)
            to[i] += ism->a0[i * ism->n + columns[k]];
        if (!ism->b)
            to[columns[k]] += ism->d[columns[k]];
    }
}

REAL R(host__check_column_norm)(const struct R(host_check) * check, int64_t j)
{
    if (check->dd)
        R(host__check_column_dd)(check, j);
    else
        set_columns(check, &j, 1, check->spare);
    return R(host__check_sum_of)(check, check->spare);
}

/* What no column of A is longer than, weights being those of weigh_columns. */
static void bound_columns(const struct R(host_check) * check, const REAL *weights, REAL *bounds)
{
    const struct R(host_ism) *ism = check->ism;
    const int64_t n = ism->n;
    if (ism->b)
        R(host__norm)(ism->team, ism->a0, n, n, bounds);
    for (int64_t j = 0; !ism->b && j < n; j++)
        bounds[j] = REAL_FABS(ism->d[j]);
    for (int64_t j = 0; j < n; j++)
        bounds[j] += weights[j];
}

/* How long columns seem: by the entry on the diagonal, and by the products of the rest with the
 * lines in `t`, which are in `error` with the diagonal's; but no longer than they can be. A column
 * of entries of one size e has products near sqrt(n) e, and a sum of n e; next to a large diagonal
 * it would not be seen in the whole. */
static void score_columns(const struct R(host_check) * check, const REAL *bounds, REAL *scores)
{
    const struct R(host_ism) *ism = check->ism;
    const double lines = (double)check->count, n = (double)ism->n;
    for (int64_t j = 0; j < ism->n; j++) {
        const double own = (double)(ism->b ? ism->a0[j * (ism->n + 1)] : ism->d[j]);
        double squares = 0;
        for (int64_t l = 0; l < check->count; l++) {
            double rest = (double)check->error[l * check->ld + j];
            rest -= (double)check->t[l * check->ld + j] * own;
            squares += rest * rest;
        }
        const double score = fabs(own) + sqrt(n / lines * squares);
        scores[j] = score < (double)bounds[j] ? (REAL)score : bounds[j];
    }
}

/* The columns with the highest scores, the highest first. */
static int64_t choose_columns(const REAL *scores, int64_t n, int64_t columns[CANDIDATES])
{
    int64_t count = 0;
    for (int64_t j = 0; j < n; j++) {
        int64_t at = count;
        while (at > 0 && !(scores[j] <= scores[columns[at - 1]]))
            at--;
        if (at == CANDIDATES)
            continue;
        count += count < CANDIDATES;
        for (int64_t k = count - 1; k > at; k--)
            columns[k] = columns[k - 1];
        columns[at] = j;
    }
    return count;
}

/* The longest column so far, which is in spare. */
struct found {
    REAL largest;
    int64_t best;
};

static bool look_at(int64_t j, REAL column, struct found *found)
{
    const bool longer = column > found->largest || isnan(column);
    if (longer)
        *found = (struct found){column, j};
    return longer;
}

/* The columns whose score is more than what was found; of those with the highest ones. All are made
 * in one pass over X. error is used up. */
static void search(const struct R(host_check) * check, const REAL *scores, REAL *bounds,
                   struct found *found)
{
    int64_t columns[CANDIDATES], count = choose_columns(scores, check->ism->n, columns);
    while (count > 0 && scores[columns[count - 1]] <= found->largest)
        count--;
    for (int64_t k = 0; k < count; k++)
        bounds[columns[k]] = -1;
    if (!check->dd)
        set_columns(check, columns, count, check->error);
    for (int64_t k = 0; k < count; k++) {
        const REAL *column = check->error + k * check->ld;
        if (check->dd)
            look_at(columns[k], R(host__check_column_norm)(check, columns[k]), found);
        else if (look_at(columns[k], R(host__check_sum_of)(check, column), found))
            memcpy(check->spare, column, (size_t)check->ism->n * sizeof *column);
    }
    if (check->dd)
        R(host__check_column_norm)(check, found->best);
}

/* From the column in `spare` to a better one, as long as there is one. */
static REAL climb(const struct R(host_check) * check, REAL largest)
{
    struct R(host_check) one = *check;
    one.count = 1;
    for (int climbs = 0; climbs < CLIMBS; climbs++) {
        int64_t best = 0;
        for (int64_t i = 0; i < check->ism->n; i++)
            check->t[i] = check->spare[i] < 0 ? -1 : 1;
        R(host__check_times_a)(&one, check->t);
        for (int64_t j = 1; j < check->ism->n; j++)
            best = REAL_FABS(check->error[j]) > REAL_FABS(check->error[best]) ? j : best;
        REAL norm = R(host__check_column_norm)(check, best);
        if (!(norm > largest))
            return isnan(norm) ? norm : largest;
        largest = norm;
    }
    return largest;
}

struct host_norm R(host__check_norm_of_number)(REAL number)
{
    struct host_norm norm = {.finite = isfinite(number)};
    norm.fraction = REAL_FREXP(number, &norm.exponent);
    return norm;
}

/* The longest of some columns: by what they seem, then by what they may be: neither alone finds
 * every long one. The lines t are multiplied by A in error; weights, in spare, are those of
 * weigh_columns. t, error, thin and spare are used up. */
static struct host_norm norm_of_some(const struct R(host_check) * check, const REAL *weights)
{
    struct R(host_check) many = *check;
    struct found found = {.largest = -1};
    REAL *bounds = check->spare + check->ld, *scores = check->spare + 2 * check->ld;
    many.count = HOST_ISM_PROBES;
    bound_columns(check, weights, bounds);
    score_columns(&many, bounds, scores);
    search(check, scores, bounds, &found);
    search(check, bounds, bounds, &found);
    return R(host__check_norm_of_number)(climb(check, found.largest));
}

/* The lines behind bounds and scores, and before what pairs lack. */
static REAL *weights_of(const struct R(host_check) * check)
{
    return check->spare + 3 * check->ld;
}

struct host_norm R(host__check_norm_with_residual)(const struct R(host_check) * check,
                                                   long double *weight, double *measured)
{
    struct R(host_check) all = *check;
    REAL *weights = weights_of(check), *residual = check->tz;
    all.count = HOST_ISM_PROBES + check->count;
    R(host__check_meet)
    (check, check->t, all.count, check->error, weights, check->error, 4 * HOST_ISM_PROBES);
    R(host__check_add_times_a0)(&all, check->t, check->error);
    R(host__check_subtract)(check, check->t, R(host__check_low)(check, check->error), residual);
    *measured = R(host__check_measure)(check, residual);
    *weight = largest_of(check, weights);
    return norm_of_some(check, weights);
}

struct host_norm R(host__check_norm_a)(const struct R(host_check) * check)
{
    const struct R(host_ism) *ism = check->ism;
    const int64_t n = ism->n;
    struct found found = {.largest = -1};
    if (ism->a)
        return R(host__norm)(ism->team, ism->a, n, n, check->spare);
    if (n <= NORM_ORDER) {
        for (int64_t j = 0; j < n; j++)
            look_at(j, R(host__check_column_norm)(check, j), &found);
        return R(host__check_norm_of_number)(found.largest);
    }
    struct R(host_check) many = *check;
    many.count = HOST_ISM_PROBES;
    R(host__check_set_lines)(&many, many.t);
    R(host__check_weigh_columns)(check, weights_of(check));
    R(host__check_times_a)(&many, many.t);
    return norm_of_some(check, weights_of(check));
}
