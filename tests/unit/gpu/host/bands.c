/* tests/unit/gpu/host/bands.c: see bands.h. */
#include "tests/unit/gpu/host/bands.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "tests/unit/gpu/host/matrices.h"

static double random_sign(uint64_t *seed)
{
    return gputest_random(seed) < 0 ? -1 : 1;
}

static void fill_random(struct gputest_bands *a, uint64_t *seed)
{
    for (int64_t i = 0; i < a->n; i++) {
        a->dl[i] = gputest_random(seed);
        a->d[i] = gputest_random(seed);
        a->du[i] = gputest_random(seed);
    }
}

double gputest_bands_around(const struct gputest_bands *a, int64_t i, bool columns)
{
    const double *before = columns ? a->du : a->dl, *after = columns ? a->dl : a->du;
    return (i > 0 ? fabs(before[i - 1]) : 0) + (i + 1 < a->n ? fabs(after[i]) : 0);
}

/* Dominant by `margin`, by rows or by columns, with signs at random. */
static void dominate(struct gputest_bands *a, bool columns, double margin, uint64_t *seed)
{
    for (int64_t i = 0; i < a->n; i++)
        a->d[i] = random_sign(seed) * (gputest_bands_around(a, i, columns) + margin);
}

static void scale_rows(struct gputest_bands *a, double condition, double scale)
{
    for (int64_t i = 0; i < a->n; i++) {
        double share = a->n > 1 ? (double)i / (double)(a->n - 1) : 0;
        double factor = scale * exp2(round(-log2(condition) * share));
        a->d[i] *= factor;
        a->du[i] *= factor;
        if (i > 0)
            a->dl[i - 1] *= factor;
    }
}

static void poison_columns(struct gputest_bands *a, int64_t first, int64_t end)
{
    for (int64_t j = first; j < end; j++) {
        a->d[j] = a->dl[j] = 0;
        if (j > 0)
            a->du[j - 1] = 0;
    }
}

void gputest_bands_fill(struct gputest_bands *a, double dl, double d, double du)
{
    for (int64_t i = 0; i < a->n; i++) {
        a->dl[i] = dl;
        a->d[i] = d;
        a->du[i] = du;
    }
}

/* The twelve types of LAPACK's tests of GT, as far as no SVD is needed. */
static void fill_dgt(struct gputest_bands *a, enum gputest_bands_kind kind, uint64_t *seed)
{
    bool narrow = a->precision == PRECISION_FP32;
    double eps = gputest_eps(a->precision), small = (narrow ? FLT_MIN : DBL_MIN) / eps;
    fill_random(a, seed);
    if (kind <= BANDS_LARGE)
        dominate(a, false, 1, seed);
    if (kind == BANDS_DIAGONAL)
        for (int64_t i = 0; i < a->n; i++)
            a->dl[i] = a->du[i] = 0;
    if (kind == BANDS_ILL || kind == BANDS_BARELY)
        scale_rows(a, kind == BANDS_ILL ? sqrt(0.1 / eps) : 0.01 / eps, 1);
    if (kind == BANDS_SMALL || kind == BANDS_RANDOM_SMALL)
        scale_rows(a, 1, small);
    if (kind == BANDS_LARGE || kind == BANDS_RANDOM_LARGE)
        scale_rows(a, 1, 0.01 / small);
    if (kind == BANDS_FIRST_COLUMN_ZERO)
        poison_columns(a, 0, 1);
    if (kind == BANDS_LAST_COLUMN_ZERO)
        poison_columns(a, a->n - 1, a->n);
    if (kind == BANDS_LAST_HALF_ZERO)
        poison_columns(a, a->n / 2, a->n);
}

static void fill_other(struct gputest_bands *a, enum gputest_bands_kind kind, uint64_t *seed)
{
    static const double constants[BANDS_KINDS][3] = {[BANDS_LAPLACE] = {-1, 2, -1},
                                                     [BANDS_ALTERNATING] = {1, 2, 1},
                                                     [BANDS_FAR] = {0.001, 10, 0.002},
                                                     [BANDS_GROWING] = {100, 0.5, -300},
                                                     [BANDS_ZERO_DIAGONAL] = {2, 0, -2}};
    fill_random(a, seed);
    if (constants[kind][0] != 0)
        gputest_bands_fill(a, constants[kind][0], constants[kind][1], constants[kind][2]);
    if (kind == BANDS_WEAK_ROWS || kind == BANDS_WEAK_COLUMNS || kind == BANDS_STRONG_COLUMNS)
        dominate(a, kind != BANDS_WEAK_ROWS, kind == BANDS_STRONG_COLUMNS ? 0.5 : 0, seed);
    /* A weakly dominant matrix is singular but for one strong row. */
    if (kind == BANDS_WEAK_ROWS || kind == BANDS_WEAK_COLUMNS)
        a->d[a->n / 3] *= 1.5;
    for (int64_t i = 0; i < a->n; i++) {
        if (kind == BANDS_INTEGERS) {
            a->d[i] = trunc(3 * a->d[i]);
            a->dl[i] = random_sign(seed);
            a->du[i] = random_sign(seed);
        }
        if (kind == BANDS_DECOUPLED || kind == BANDS_CHEQUERED) {
            a->dl[i] = gputest_random(seed) < -0.3 ? 0 : a->dl[i];
            a->du[i] = gputest_random(seed) < -0.3 ? 0 : a->du[i];
        }
        if (kind == BANDS_CHEQUERED && i % 2)
            a->d[i] = 0;
        if (kind == BANDS_BIDIAGONAL)
            a->dl[i] = 0;
    }
}

struct gputest_bands gputest_bands_make(enum gputest_bands_kind kind, enum precision precision,
                                        int64_t n, uint64_t seed)
{
    double *numbers = gputest_numbers(3 * n);
    struct gputest_bands a = {n, precision, numbers, numbers + n, numbers + 2 * n};
    if (kind <= BANDS_RANDOM_LARGE)
        fill_dgt(&a, kind, &seed);
    else
        fill_other(&a, kind, &seed);
    for (int64_t i = 0; i < 3 * n && precision == PRECISION_FP32; i++)
        numbers[i] = (float)numbers[i];
    return a;
}

void gputest_bands_free(struct gputest_bands *a)
{
    free(a->dl);
}
