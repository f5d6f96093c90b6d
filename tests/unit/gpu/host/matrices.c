/* tests/unit/gpu/host/matrices.c: see matrices.h. */
#include "tests/support/latms.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/matrices.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

double gputest_eps(enum precision precision)
{
    return precision == PRECISION_FP32 ? FLT_EPSILON : DBL_EPSILON;
}

double gputest_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int64_t)(*seed >> 11) / 4503599627370496.0 - 1.0;
}

double *gputest_numbers(int64_t count)
{
    assert_true(count > 0);
    double *numbers = count > 0 ? calloc((size_t)count, sizeof *numbers) : NULL;
    assert_non_null(numbers);
    return numbers;
}

/* ---- dlatb4 ---- */

enum scale {
    ONE,
    SMALL,
    LARGE
};
enum condition {
    EASY,
    HARD,
    HARDEST
};

static const struct {
    const char *name;
    enum latms_kind kind;
    enum scale scale;
    enum condition condition;
    int zero; /* columns: -1 the first, 1 the last, 2 the last n/2 */
} dge[GPUTEST_DGE_TYPES + 1] = {
    [1] = {"diagonal", LATMS_DIAGONAL, ONE, EASY, 0},
    [2] = {"upper triangular", LATMS_UPPER, ONE, EASY, 0},
    [3] = {"lower triangular", LATMS_LOWER, ONE, EASY, 0},
    [4] = {"well conditioned", LATMS_GENERAL, ONE, EASY, 0},
    [5] = {"first column zero", LATMS_GENERAL, ONE, EASY, -1},
    [6] = {"last column zero", LATMS_GENERAL, ONE, EASY, 1},
    [7] = {"last n/2 columns zero", LATMS_GENERAL, ONE, EASY, 2},
    [8] = {"condition sqrt(0.1/eps)", LATMS_GENERAL, ONE, HARD, 0},
    [9] = {"condition 0.1/eps", LATMS_GENERAL, ONE, HARDEST, 0},
    [10] = {"near underflow", LATMS_GENERAL, SMALL, EASY, 0},
    [11] = {"near overflow", LATMS_GENERAL, LARGE, EASY, 0},
};

const char *gputest_dge_name(int type)
{
    return dge[type].name;
}

bool gputest_dge_singular(int type, int64_t n)
{
    return dge[type].zero == 2 ? n > 1 : dge[type].zero != 0;
}

static double dge_scale(enum scale scale, enum precision precision)
{
    double least = precision == PRECISION_FP32 ? FLT_MIN : DBL_MIN;
    double small = 0.25 * (least / gputest_eps(precision));
    return scale == SMALL ? small : scale == LARGE ? 1 / small : 1;
}

static void zero_columns(double *a, int64_t n, int which)
{
    int64_t first = which == -1 ? 0 : which == 1 ? n - 1 : n - n / 2;
    int64_t last = which == -1 ? 1 : n;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = first; j < last; j++)
            a[i * n + j] = 0;
    }
}

void gputest_dge(int type, int mode, enum precision precision, int64_t n, uint64_t seed, double *a)
{
    double hardest = 0.1 / gputest_eps(precision), condition = 2;
    if (dge[type].condition != EASY)
        condition = dge[type].condition == HARD ? sqrt(hardest) : hardest;
    latms_make(&(struct latms){.kind = dge[type].kind,
                               .mode = (enum latms_mode)mode,
                               .condition = condition,
                               .seed = seed},
               precision, n, a);
    if (dge[type].zero)
        zero_columns(a, n, dge[type].zero);
    double scale = dge_scale(dge[type].scale, precision);
    for (int64_t i = 0; i < n * n; i++) {
        a[i] *= scale;
        a[i] = precision == PRECISION_FP32 ? (double)(float)a[i] : a[i];
    }
}

/* ---- Measures ---- */

double gputest_exact_residual(int64_t n, const double *x, const double *a)
{
    double largest = 0;
    for (int64_t j = 0; j < n; j++) {
        __float128 column = 0;
        for (int64_t i = 0; i < n; i++) {
            __float128 entry = i == j;
            for (int64_t k = 0; k < n; k++)
                entry -= (__float128)x[i * n + k] * a[k * n + j];
            column += entry < 0 ? -entry : entry;
        }
        largest = residual_larger(largest, (double)column);
    }
    return largest;
}

double gputest_inverse_ratio(enum precision precision, int64_t n, const double *a, const double *x)
{
    return residual_inverse_ratio(gputest_eps(precision), n, a, x);
}

double gputest_factor_ratio(enum precision precision, int64_t n, const double *a,
                            const struct gputest_answer *answer)
{
    return residual_factors_ratio(gputest_eps(precision), n, a, answer->inverse, answer->pivots);
}
