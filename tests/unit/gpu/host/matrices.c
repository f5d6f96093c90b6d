/* tests/unit/gpu/host/matrices.c: see matrices.h. */
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

#define REFLECTORS_MAX 24 /* random ones on each side: enough to mix every entry */

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

/* ---- dlatb4 and dlatms ---- */

enum shape {
    DIAGONAL,
    UPPER,
    LOWER,
    FULL
};
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
    enum shape shape;
    enum scale scale;
    enum condition condition;
    int zero; /* columns: -1 the first, 1 the last, 2 the last n/2 */
} dge[GPUTEST_DGE_TYPES + 1] = {
    [1] = {"diagonal", DIAGONAL, ONE, EASY, 0},
    [2] = {"upper triangular", UPPER, ONE, EASY, 0},
    [3] = {"lower triangular", LOWER, ONE, EASY, 0},
    [4] = {"well conditioned", FULL, ONE, EASY, 0},
    [5] = {"first column zero", FULL, ONE, EASY, -1},
    [6] = {"last column zero", FULL, ONE, EASY, 1},
    [7] = {"last n/2 columns zero", FULL, ONE, EASY, 2},
    [8] = {"condition sqrt(0.1/eps)", FULL, ONE, HARD, 0},
    [9] = {"condition 0.1/eps", FULL, ONE, HARDEST, 0},
    [10] = {"near underflow", FULL, SMALL, EASY, 0},
    [11] = {"near overflow", FULL, LARGE, EASY, 0},
};

const char *gputest_dge_name(int type)
{
    return dge[type].name;
}

bool gputest_dge_singular(int type, int64_t n)
{
    return dge[type].zero == 2 ? n > 1 : dge[type].zero != 0;
}

/* a = (I - 2 v v^T) a, |v| = 1, for the rows `from` to n - 1 and the columns `column` to n - 1. */
static void reflect_rows(double *a, int64_t n, int64_t from, int64_t column, const double *v)
{
    double *sums = gputest_numbers(n);
    for (int64_t i = from; i < n; i++) {
        for (int64_t j = column; j < n; j++)
            sums[j] += v[i] * a[i * n + j];
    }
    for (int64_t i = from; i < n; i++) {
        for (int64_t j = column; j < n; j++)
            a[i * n + j] -= 2 * v[i] * sums[j];
    }
    free(sums);
}

static void transpose(double *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) {
            double upper = a[j * n + i];
            a[j * n + i] = a[i * n + j];
            a[i * n + j] = upper;
        }
    }
}

static void normalize(double *v, int64_t from, int64_t n)
{
    double square = 0;
    for (int64_t i = from; i < n; i++)
        square += v[i] * v[i];
    for (int64_t i = from; i < n && square > 0; i++)
        v[i] /= sqrt(square);
}

/* Multiplies by random orthogonal matrices from both sides. */
static void mix(double *a, int64_t n, uint64_t *seed)
{
    double *v = gputest_numbers(n);
    int64_t count = n < REFLECTORS_MAX ? n : REFLECTORS_MAX;
    for (int64_t k = 0; k < 2 * count; k++) {
        for (int64_t i = 0; i < n; i++)
            v[i] = gputest_random(seed);
        normalize(v, 0, n);
        reflect_rows(a, n, 0, 0, v);
        transpose(a, n);
    }
    free(v);
}

/* Householder's R of a: upper triangular, the same singular values. */
static void triangularize(double *a, int64_t n)
{
    double *v = gputest_numbers(n);
    for (int64_t k = 0; k + 1 < n; k++) {
        double length = 0;
        for (int64_t i = k; i < n; i++)
            length = hypot(length, v[i] = a[i * n + k]);
        v[k] += v[k] < 0 ? -length : length;
        normalize(v, k, n);
        reflect_rows(a, n, k, k, v);
        for (int64_t i = k + 1; i < n; i++)
            a[i * n + k] = 0;
    }
    free(v);
}

static double singular_value(int mode, double condition, int64_t i, int64_t n)
{
    double part = n > 1 ? (double)i / (double)(n - 1) : 0;
    return mode == 3 ? pow(condition, -part) : 1 - part * (1 - 1 / condition);
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
    memset(a, 0, (size_t)(n * n) * sizeof *a);
    for (int64_t i = 0; i < n; i++) {
        double sign = gputest_random(&seed) < 0 ? -1 : 1;
        a[i * n + i] = sign * singular_value(mode, condition, i, n);
    }
    if (dge[type].shape != DIAGONAL)
        mix(a, n, &seed);
    if (dge[type].shape == UPPER || dge[type].shape == LOWER)
        triangularize(a, n);
    if (dge[type].shape == LOWER)
        transpose(a, n);
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
        largest = fmax(largest, (double)column);
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
