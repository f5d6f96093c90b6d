/* Scaling is not singularity: `lu`, `auto` and `gauss_jordan` of matrices that are well conditioned
 * but for the scales of their rows and columns, of some that are not, and of some that are singular
 * at any scale. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/linalg/lapack.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#ifndef FAMILY
#define FAMILY 10000 /* matrices of each family */
#define ORDER_MAX 40
#endif
#define CONDITION_MAX 100.0 /* of S, an order */
#define SMALL 6             /* the largest order of most */
#define LARGE_EACH 50       /* one of so many is of a larger order */

static const char *const methods[] = {"lu", "auto", "gauss_jordan"};

static int below(int64_t count, uint64_t *seed)
{
    return (int)((gputest_random(seed) + 1) / 2 * (double)count) % (int)count;
}

/* ---- Single matrices ---- */

struct single {
    const char *what;
    enum precision precision;
    int64_t n;
    double a[9], x[9];
    int64_t info; /* 0, or n + 1 where the inverse overflows */
};

#define F32 PRECISION_FP32
#define F64 PRECISION_FP64

static const struct single singles[] = {
    {"diagonal",
     F64,
     3,
     {1e-200, 0, 0, 0, 1, 0, 0, 0, 1e200},
     {1e200, 0, 0, 0, 1, 0, 0, 0, 1e-200},
     0},
    {"D S D",
     F64,
     3,
     {2, 1e-9, .5e9, 1e-9, 3e-18, 1, .5e9, 1, 2e18},
     {5 / 8.25, -1.5e9 / 8.25, -.5e-9 / 8.25, -1.5e9 / 8.25, 3.75e18 / 8.25, -1.5 / 8.25,
      -.5e-9 / 8.25, -1.5 / 8.25, 5e-18 / 8.25},
     0},
    {"lower", F64, 2, {1e-300, 0, 1e-16, 1e300}, {1e300, 0, -1e-16, 1e-300}, 0},
    {"upper", F64, 2, {1e-300, 1e-16, 0, 1e300}, {1e300, -1e-16, 0, 1e-300}, 0},
    {"wide", F64, 2, {1e-20, 0, 1e305, 1e20}, {1e20, 0, -1e305, 1e-20}, 0},
    {"rows", F64, 2, {1e-200, 1e-200, 1e200, -1e200}, {5e199, 5e-201, 5e199, -5e-201}, 0},
    {"columns", F64, 2, {1e-200, 1e200, 1e-200, -1e200}, {5e199, 5e199, 5e-201, -5e-201}, 0},
    {"FP32", F32, 2, {1e-9, 0, 1e37, 1e9}, {1e9, 0, -1e37, 1e-9}, 0},
    {"overflow", F64, 2, {1e-310, 0, 1, 1e300}, {INFINITY, 0, -1e10, 1e-300}, 3},
    {"overflow on the diagonal", F64, 2, {1e-310, 0, 0, 1}, {INFINITY, 0, 0, 1}, 3},
};

/* The magnitude of an entry of the inverse; or what other entries say of the largest of its scaled
 * row and column, where it is zero. */
static double size_of(const struct single *single, int64_t entry)
{
    const int64_t n = single->n, i = entry / n, j = entry % n;
    double size = single->x[entry] == 0 ? HUGE_VAL : fabs(single->x[entry]);
    for (int64_t k = 0; k < n * n && single->x[entry] == 0; k++) {
        const double across = single->x[i * n + k % n], down = single->x[k / n * n + j];
        if (across != 0 && down != 0 && single->x[k] != 0)
            size = fmin(size, fabs(across / single->x[k] * down));
    }
    return isfinite(size) ? size : 0;
}

static void test_singles(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(singles) * COUNT(methods); i++) {
        const struct single *single = &singles[i / COUNT(methods)];
        const char *method = methods[i % COUNT(methods)];
        const int64_t n = single->n;
        double a[9];
        for (int64_t k = 0; k < n * n; k++)
            a[k] = single->precision == F32 ? (double)(float)single->a[k] : single->a[k];
        struct gputest_answer answer = gputest_run(method, single->precision, n, a, false);
        if (answer.info != single->info || !(answer.rcond < gputest_eps(single->precision)))
            fail_msg("%s: %s: INFO %d, RCOND %g", method, single->what, answer.info, answer.rcond);
        for (int64_t k = 0; k < n * n && single->info == 0; k++) {
            const double bound = (single->precision == F32 ? 1e-5 : 1e-10) * size_of(single, k);
            if (!(fabs(answer.inverse[k] - single->x[k]) <= bound))
                fail_msg("%s: %s: entry %d is %g", method, single->what, (int)k, answer.inverse[k]);
        }
        assert_true(single->info == 0 || isinf(answer.inverse[0]));
        gputest_free(&answer);
    }
}

/* X^T X of X = [1, z / 10^digits]. */
static void test_normal_equations(void **state)
{
    (void)state;
    uint64_t seed = 11;
    for (size_t i = 0; i < COUNT(methods) * PRECISION_COUNT; i++) {
        const enum precision precision = (enum precision)(i / COUNT(methods));
        double a[4] = {100, 0, 0, 0};
        for (int k = 0; k < 100; k++) {
            const double z = gputest_random(&seed) * (precision == F32 ? 1e-4 : 1e-8);
            a[1] += z;
            a[3] += z * z;
        }
        for (int k = 0; k < 4 && precision == F32; k++)
            a[k] = (double)(float)a[k];
        a[2] = a[1];
        struct gputest_answer answer =
            gputest_run(methods[i % COUNT(methods)], precision, 2, a, false);
        const double det = a[0] * a[3] - a[1] * a[1];
        const double x[4] = {a[3] / det, -a[1] / det, -a[2] / det, a[0] / det};
        assert_int_equal(answer.info, 0);
        for (int k = 0; k < 4; k++) {
            const double size = sqrt(x[k / 2 * 3] * x[k % 2 * 3]);
            assert_true(fabs(answer.inverse[k] - x[k]) <= (precision == F32 ? 1e-5 : 1e-13) * size);
        }
        gputest_free(&answer);
    }
}

/* ---- Families ---- */

/* A = D S E, D and E being `rows` and `columns`. */
struct scaled {
    enum precision precision;
    int64_t n;
    double rows[ORDER_MAX], columns[ORDER_MAX];
    double inverse[ORDER_MAX * ORDER_MAX]; /* of S, where it has one */
    double a[ORDER_MAX * ORDER_MAX];
};

static void begin_scaled(struct scaled *to, int64_t n_min, uint64_t *seed)
{
    to->precision = (enum precision)below(PRECISION_COUNT, seed);
    to->n = n_min + below(SMALL - n_min + 1, seed);
    if (below(LARGE_EACH, seed) == 0)
        to->n = SMALL + 1 + below(ORDER_MAX - SMALL, seed);
}

/* binary: powers of two. */
static void choose_scales(struct scaled *to, bool binary, uint64_t *seed)
{
    const double decades = to->precision == F32 ? 16 : 145;
    for (int64_t i = 0; i < to->n; i++) {
        const double row = decades * gputest_random(seed), column = decades * gputest_random(seed);
        to->rows[i] = binary ? ldexp(1, (int)(3 * row)) : pow(10, row);
        to->columns[i] = binary ? ldexp(1, (int)(3 * column)) : pow(10, column);
    }
}

static void apply_scales(struct scaled *to)
{
    for (int64_t k = 0; k < to->n * to->n; k++) {
        to->a[k] *= to->rows[k / to->n] * to->columns[k % to->n];
        to->a[k] = to->precision == F32 ? (double)(float)to->a[k] : to->a[k];
    }
}

/* The inverse of S, by elimination with partial pivoting in long double; its condition. */
static double invert(struct scaled *to)
{
    static long double work[ORDER_MAX][2 * ORDER_MAX];
    const int64_t n = to->n;
    for (int64_t k = 0; k < n * n; k++) {
        work[k / n][k % n] = to->a[k];
        work[k / n][n + k % n] = k % (n + 1) == 0;
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k; i < n; i++)
            pivot = fabsl(work[i][k]) > fabsl(work[pivot][k]) ? i : pivot;
        for (int64_t j = 0; j < 2 * n; j++) {
            const long double old = work[pivot][j];
            work[pivot][j] = work[k][j];
            work[k][j] = old;
        }
        for (int64_t j = 2 * n - 1; j >= k; j--)
            work[k][j] /= work[k][k];
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 2 * n - 1; i != k && j >= k; j--)
                work[i][j] -= work[i][k] * work[k][j];
        }
    }
    for (int64_t k = 0; k < n * n; k++)
        to->inverse[k] = (double)work[k / n][n + k % n];
    return residual_norm(n, to->a) * residual_norm(n, to->inverse);
}

/* S, whose entries have magnitudes from 1/2 to 1, so that equilibration finds its scales; or a
 * triangle, less what is next to the diagonal. */
static double make_good(struct scaled *to, bool triangular, uint64_t *seed)
{
    const int64_t n = to->n;
    const bool upper = triangular && below(2, seed);
    double condition;
    do {
        for (int64_t k = 0; k < n * n; k++) {
            const int64_t i = k / n, j = k % n;
            const double x = gputest_random(seed), part = i == j || !triangular ? 1 : (double)n;
            to->a[k] = (x < 0 ? x - 1 : x + 1) / 2 / part;
            to->a[k] = triangular && (upper ? j < i : j > i) ? 0 : to->a[k];
        }
        condition = invert(to);
    } while (!(condition <= CONDITION_MAX * (double)n));
    return condition;
}

/* INFO 0, and each entry right relative to the largest of its equilibrated row and column. */
static void check_good(const struct scaled *scaled, const char *method, double condition)
{
    const int64_t n = scaled->n;
    const double eps = gputest_eps(scaled->precision);
    struct gputest_answer answer = gputest_run(method, scaled->precision, n, scaled->a, false);
    double off = 0, size = 0;
    for (int64_t k = 0; k < n * n; k++) {
        const double found =
            answer.inverse[k] * scaled->columns[k / n] * scaled->rows[k % n] - scaled->inverse[k];
        off = fabs(found) > off || isnan(found) ? fabs(found) : off;
        size = fmax(size, fabs(scaled->inverse[k]));
    }
    if (answer.info != 0 || !(off <= 8 * (double)n * eps * condition * size))
        fail_msg("%s %s, n = %d: INFO %d, RCOND %g, off by %g times %g, condition %g", method,
                 precision_name(scaled->precision), (int)n, answer.info, answer.rcond, off / size,
                 size, condition);
    gputest_free(&answer);
}

static void try_good(bool triangular, uint64_t seed)
{
    static struct scaled scaled;
    for (int i = 0; i < FAMILY; i++) {
        begin_scaled(&scaled, 1, &seed);
        const double condition = make_good(&scaled, triangular, &seed);
        choose_scales(&scaled, false, &seed);
        apply_scales(&scaled);
        check_good(&scaled, methods[i % (int)COUNT(methods)], condition);
    }
}

static void test_dense(void **state)
{
    (void)state;
    try_good(false, 1);
}

static void test_triangular(void **state)
{
    (void)state;
    try_good(true, 2);
}

/* An S of rank n - 1 whose elimination is exact, or next to it, by powers of two. */
static void make_bad(struct scaled *to, bool exact, uint64_t *seed)
{
    const int64_t n = to->n, row = below(n, seed), other = (row + 1) % n;
    memset(to->a, 0, sizeof to->a);
    for (int64_t i = 0; i < n; i++)
        to->a[i * (n + 1)] = 1;
    to->a[row * n + other] = to->a[other * n + row] = 1;
    to->a[row * (n + 1)] += exact ? 0 : gputest_eps(to->precision);
}

static void test_singular(void **state)
{
    (void)state;
    static struct scaled scaled;
    uint64_t seed = 3;
    for (int i = 0; i < FAMILY; i++) {
        const bool exact = i % 2 == 0;
        const char *method = methods[i / 2 % (int)COUNT(methods)];
        begin_scaled(&scaled, 2, &seed);
        make_bad(&scaled, exact, &seed);
        choose_scales(&scaled, true, &seed);
        apply_scales(&scaled);
        const int64_t n = scaled.n;
        struct gputest_answer answer = gputest_run(method, scaled.precision, n, scaled.a, false);
        const bool right = exact ? answer.info >= 1 && answer.info <= n : answer.info == n + 1;
        if (!right || !(answer.rcond < gputest_eps(scaled.precision)))
            fail_msg("%s %s, n = %d, %s: INFO %d, RCOND %g", method,
                     precision_name(scaled.precision), (int)n, exact ? "singular" : "next to it",
                     answer.info, answer.rcond);
        gputest_free(&answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_singles),  cmocka_unit_test(test_normal_equations),
        cmocka_unit_test(test_dense),    cmocka_unit_test(test_triangular),
        cmocka_unit_test(test_singular),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
