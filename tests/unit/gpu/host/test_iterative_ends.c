/* How `iterative` ends on the host: limits, tolerances, matrices that have no inverse or hardly
 * one; convergence is never claimed where there is none. And the same bits the one that helps. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/base/host.h"
#include "gpu/common/iteration.h"
#include "gpu/host/linalg/lapack.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/iterate.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#ifndef TOLERANCE_ROUNDS
#define TOLERANCE_ROUNDS 40
#endif
#ifndef FAMILY
#define FAMILY 10000 /* matrices */
#endif

static double *random_matrix(int64_t n, uint64_t seed)
{
    double *a = gputest_numbers(n * n);
    for (int64_t i = 0; i < n * n; i++)
        a[i] = (double)(float)gputest_random(&seed);
    return a;
}

/* RESIDUAL is |I - X A| of the X that came, within what rounding adds. */
static void check_residual(const struct gputest_iterate *task,
                           const struct gputest_iterated *result)
{
    int64_t n = task->n;
    double residual = residual_inverse(n, result->inverse, task->a);
    double size = residual_norm(n, task->a) * residual_norm(n, result->inverse);
    double slack = (double)n * gputest_eps(task->precision) * size + 1e-6 * residual;
    if (!(fabs(result->residual - residual) <= slack))
        fail_msg("RESIDUAL %g, but %g", result->residual, residual);
}

/* ---- Limits ---- */

static void test_max_iterations(void **state)
{
    (void)state;
    int64_t n = 40;
    double *a = random_matrix(n, 1), last = HUGE_VAL;
    struct gputest_iterate task = {.precision = PRECISION_FP64,
                                   .n = n,
                                   .a = a,
                                   .scheme = METHOD_ITERATIVE_NEWTON_SCHULZ,
                                   .initial = METHOD_ITERATIVE_TRANSPOSE};
    struct gputest_iterated whole = gputest_iterate(&task);
    assert_int_equal(whole.info, 0);
    assert_true(whole.iterations > 12);
    for (task.max_iterations = 1; task.max_iterations <= whole.iterations + 1;
         task.max_iterations += 3) {
        bool enough = task.max_iterations >= whole.iterations;
        struct gputest_iterated result = gputest_iterate(&task);
        assert_int_equal(result.history_length, task.max_iterations);
        assert_int_equal(result.info, enough ? 0 : n + 2);
        assert_int_equal(result.iterations, enough ? whole.iterations : task.max_iterations);
        assert_int_equal(result.algorithm, METHOD_ALGORITHM_TRANSPOSE_START);
        check_residual(&task, &result);
        for (int64_t i = 0; i < task.max_iterations; i++) {
            bool reported = i <= result.iterations;
            assert_true(reported ? result.history[i] == whole.history[i]
                                 : isnan(result.history[i]));
        }
        /* The best iterate: once it is an inverse at all, never worse for another step. */
        assert_true(result.residual <= last || last > 0.5);
        last = result.residual;
        gputest_iterated_free(&result);
    }
    gputest_iterated_free(&whole);
    free(a);
}

static void test_tolerance(void **state)
{
    (void)state;
    static const double tolerances[] = {0.3, 1e-2, 1e-5, 1e-9};
    int64_t n = 60;
    double *a = random_matrix(n, 2);
    struct gputest_iterate task = {.precision = PRECISION_FP64,
                                   .n = n,
                                   .a = a,
                                   .scheme = METHOD_ITERATIVE_NEWTON_SCHULZ,
                                   .initial = METHOD_ITERATIVE_TRANSPOSE};
    struct gputest_iterated best = gputest_iterate(&task);
    assert_int_equal(best.info, 0);
    int32_t last = 0;
    for (size_t i = 0; i < COUNT(tolerances); i++) {
        task.tolerance = tolerances[i];
        struct gputest_iterated result = gputest_iterate(&task);
        assert_int_equal(result.info, 0);
        assert_true(result.residual <= tolerances[i]);
        assert_true(result.history[result.iterations - 1] > tolerances[i]); /* and not sooner */
        assert_true(result.iterations >= last && result.iterations <= best.iterations);
        last = result.iterations;
        check_residual(&task, &result);
        gputest_iterated_free(&result);
    }
    /* Below what rounding allows: reported, and as good as can be all the same. */
    task.tolerance = 1e-300;
    struct gputest_iterated result = gputest_iterate(&task);
    assert_int_equal(result.info, n + 2);
    assert_true(result.residual <= best.residual);
    check_residual(&task, &result);
    gputest_iterated_free(&result);
    gputest_iterated_free(&best);
    free(a);
}

#define TOLERANCE_ORDER_MAX 8

/* A random reflection of the rows, or of the columns. */
static void reflect(int64_t n, bool rows, uint64_t *seed, double *a)
{
    double v[TOLERANCE_ORDER_MAX], square = 0;
    int64_t along = rows ? n : 1, across = rows ? 1 : n;
    for (int64_t i = 0; i < n; i++) {
        v[i] = gputest_random(seed);
        square += v[i] * v[i];
    }
    for (int64_t j = 0; j < n; j++) {
        double dot = 0;
        for (int64_t i = 0; i < n; i++)
            dot += v[i] * a[i * along + j * across];
        for (int64_t i = 0; i < n; i++)
            a[i * along + j * across] -= 2 * dot / square * v[i];
    }
}

/* Singular values of 1 but for the last one. */
static void make_conditioned(enum precision precision, int64_t n, double condition, uint64_t *seed,
                             double *a)
{
    for (int64_t k = 0; k < n * n; k++)
        a[k] = k % (n + 1) > 0 ? 0 : k > 0 && k == n * n - 1 ? 1 / condition : 1;
    reflect(n, true, seed, a);
    reflect(n, false, seed, a);
    for (int64_t k = 0; k < n * n && precision == PRECISION_FP32; k++)
        a[k] = (double)(float)a[k];
}

/* INFO 0 keeps its promise, and is not withheld where rounding leaves room for it; RESIDUAL is the
 * true one. Returns whether INFO was 0. */
static bool try_tolerance(const struct gputest_iterate *task)
{
    double eps = gputest_eps(task->precision), n = (double)task->n;
    struct gputest_iterated result = gputest_iterate(task);
    double residual = gputest_exact_residual(task->n, result.inverse, task->a);
    double size = residual_norm(task->n, task->a) * residual_norm(task->n, result.inverse);
    double slack = 4 * n * eps * residual + n * n * 0x1p-104 * size;
    bool good = result.info == 0;
    if (good && !(residual <= task->tolerance + slack))
        fail_msg("n = %d: INFO 0 for %g, but %g, reported as %g", (int)task->n, task->tolerance,
                 residual, result.residual);
    if (!good && !(task->tolerance <= 2 * eps * size))
        fail_msg("n = %d: INFO %d for %g, size %g", (int)task->n, result.info, task->tolerance,
                 size);
    if (!(fabs(result.residual - residual) <= slack))
        fail_msg("n = %d: RESIDUAL %g, but %g", (int)task->n, result.residual, residual);
    gputest_iterated_free(&result);
    return good;
}

/* In so small orders the errors of a product's few roundings may all vanish by chance; what is left
 * of the residual must be seen all the same. */
static void test_tolerance_is_kept(void **state)
{
    (void)state;
    enum {
        TOLERANCES = 5 /* from eps on */
    };
    uint64_t seed = 5;
    int good = 0, all = TOLERANCE_ORDER_MAX * TOLERANCES * 2 * TOLERANCE_ROUNDS;
    for (int i = 0; i < all; i++) {
        int64_t n = i % TOLERANCE_ORDER_MAX + 1;
        int factor = i / TOLERANCE_ORDER_MAX % TOLERANCES;
        enum precision precision = (enum precision)(i / TOLERANCE_ORDER_MAX / TOLERANCES % 2);
        double *a = gputest_numbers(n * n), condition = precision == PRECISION_FP32 ? 1e3 : 1e6;
        make_conditioned(precision, n, condition, &seed, a);
        struct gputest_iterate task = {.precision = precision,
                                       .n = n,
                                       .a = a,
                                       .tolerance =
                                           gputest_eps(precision) * pow(condition, factor / 3.0)};
        good += try_tolerance(&task);
        free(a);
    }
    assert_true(good > all / 4 && good < all * 3 / 4);
}

/* ---- A tolerance that rounding hides ---- */

/* A block of order 2 of that condition, and ones, with rows and columns in a random order: sums of
 * V A have two terms that are not 0. */
static void make_block(enum precision precision, int64_t n, double condition, uint64_t *seed,
                       double *a)
{
    double block[4];
    make_conditioned(precision, 2, condition, seed, block);
    for (int64_t k = 0; k < n * n; k++)
        a[k] = k % (n + 1) == 0;
    for (int64_t k = 0; k < 4; k++)
        a[k / 2 * n + k % 2] = block[k];
    for (int64_t k = 0; k < 2 * n; k++) {
        bool rows = k < n;
        int64_t other = (int64_t)((gputest_random(seed) + 1) / 2 * (double)n);
        for (int64_t i = 0; i < n; i++) {
            double *x = &a[rows ? k * n + i : i * n + k - n];
            double *y = &a[rows ? other * n + i : i * n + other], old = *x;
            *x = *y;
            *y = old;
        }
    }
}

/* From a V0 that is some last digits off, and as good as can be: what is `share` of its residual is
 * not reached by a measurement that errs. */
static bool try_hidden(struct gputest_iterate *task, double share, uint64_t *seed)
{
    double eps = gputest_eps(task->precision), n = (double)task->n;
    struct gputest_iterated first = gputest_iterate(task);
    assert_int_equal(first.info, 0);
    for (int64_t k = 0; k < task->n * task->n; k++) {
        first.inverse[k] *= 1 + eps * gputest_random(seed);
        if (task->precision == PRECISION_FP32)
            first.inverse[k] = (double)(float)first.inverse[k];
    }
    task->v0 = first.inverse;
    task->tolerance = share * gputest_exact_residual(task->n, first.inverse, task->a);
    task->max_iterations = 6;
    struct gputest_iterated result = gputest_iterate(task);
    double residual = gputest_exact_residual(task->n, result.inverse, task->a);
    double slack = 4 * n * eps * residual;
    bool good = result.info == 0;
    if (good && !(residual <= task->tolerance + slack))
        fail_msg("n = %d: INFO 0 for %g, but %g, reported as %g", (int)task->n, task->tolerance,
                 residual, result.residual);
    if (!good && residual < task->tolerance - slack)
        fail_msg("n = %d: INFO %d for %g, but %g", (int)task->n, result.info, task->tolerance,
                 residual);
    /* Never below the true one; as an estimate from above it says that a tolerance was kept. */
    if (!(result.residual >= residual - slack && (good || result.residual <= residual + slack)))
        fail_msg("n = %d: RESIDUAL %g, but %g", (int)task->n, result.residual, residual);
    gputest_iterated_free(&result);
    gputest_iterated_free(&first);
    task->v0 = NULL;
    return good;
}

static void test_hidden_tolerances(void **state)
{
    (void)state;
    static const int64_t orders[] = {9, 10, 33, ITERATION_WHOLE_FIRST, ITERATION_WHOLE_FIRST + 1};
    uint64_t seed = 6;
    int good = 0, all = (int)COUNT(orders) * 2 * TOLERANCE_ROUNDS;
    for (int i = 0; i < all; i++) {
        int64_t n = orders[(size_t)i % COUNT(orders)];
        enum precision precision = (enum precision)((size_t)i / COUNT(orders) % 2);
        double *a = gputest_numbers(n * n), condition = precision == PRECISION_FP32 ? 1e3 : 1e9;
        make_block(precision, n, condition, &seed, a);
        struct gputest_iterate task = {.precision = precision, .n = n, .a = a};
        good += try_hidden(&task, pow(10, gputest_random(&seed) - 1), &seed);
        free(a);
    }
    if (good <= all / 8 || good >= all * 7 / 8)
        fail_msg("%d of %d were reached", good, all);
}

/* A is singular, and V so large that double-double sees nothing of R: I - V A is not reported to
 * be less than what hides it. */
static void test_unseen_residual(void **state)
{
    (void)state;
    double a[] = {0x1.cdfdf446bbeecp-2, -0x1.fa700f9659fb8p-2, -0x1.d9c98fdfcdd5cp-2,
                  0x1.cfb13873068d8p-3, 0x1.7a4f9b58c5764p-2,  0x1.c877bd79c4a2ap-1,
                  0x1.cfb13873068d8p-2, 0x1.7a4f9b58c5764p-1,  0x1.c877bd79c4a2ap+0};
    struct gputest_iterate task = {.precision = PRECISION_FP64,
                                   .n = 3,
                                   .a = a,
                                   .tolerance = 1e-14,
                                   .initial = METHOD_ITERATIVE_SCALED_IDENTITY};
    struct gputest_iterated result = gputest_iterate(&task);
    assert_in_range(result.info, 4, 5);
    assert_true(result.residual >= 0.5 * gputest_exact_residual(3, result.inverse, a));
    gputest_iterated_free(&result);
}

/* ---- No inverse, or hardly one ---- */

enum hostile {
    EQUAL_ROWS,
    RANK_ONE,
    NEAR_SINGULAR, /* rows that differ by 1e-17 of their size */
    PROJECTOR,     /* I - e e^T / n: but for rounding singular, eigenvalues 0 and 1 */
    ROTATED_ZERO,  /* a singular value of 1e-20 */
    SCALED_ROWS,   /* rows from 1e12 to 1e-12 */
    SCALED_COLUMNS,
    HILBERT,
    NILPOTENT, /* ones above the diagonal, and 1e-30 in the corner */
    HOSTILES
};

static void make_hostile(enum hostile kind, int64_t n, double *a)
{
    for (int64_t k = 0; k < n * n; k++) {
        int64_t i = k / n, j = k % n;
        double exponent = 12 - 24 * (double)(kind == SCALED_ROWS ? i : j) / (double)(n - 1);
        if (kind == EQUAL_ROWS && i == n - 1)
            a[k] = a[j];
        if (kind == RANK_ONE)
            a[k] = (double)(i + 1) * (double)(j % 4 + 1);
        if (kind == PROJECTOR)
            a[k] = (i == j) - 1 / (double)n;
        if (kind == NEAR_SINGULAR && i == n - 1)
            a[k] = a[j] * (1 + 1e-17 * (double)j);
        if (kind == SCALED_ROWS || kind == SCALED_COLUMNS)
            a[k] *= pow(10, exponent);
        if (kind == HILBERT)
            a[k] = 1 / (double)(i + j + 1);
        if (kind == NILPOTENT)
            a[k] = j == i + 1 ? 1 : i == n - 1 && j == 0 ? 1e-30 : 0;
    }
    if (kind == ROTATED_ZERO)
        gputest_dge(9, 3, PRECISION_FP64, n, 5, a);
}

static void try_hostile(enum hostile kind, enum precision precision, int64_t n,
                        const struct gputest_iterate *options)
{
    double *a = random_matrix(n, 12), eps = gputest_eps(precision);
    make_hostile(kind, n, a);
    for (int64_t k = 0; k < n * n; k++)
        a[k] = precision == PRECISION_FP32 ? (double)(float)a[k] : a[k];
    struct gputest_iterate task = *options;
    task.precision = precision;
    task.n = n;
    task.a = a;
    struct gputest_iterated result = gputest_iterate(&task);
    assert_true(result.info == 0 || result.info == n + 1 || result.info == n + 2);
    /* RCOND has no meaning where it has not converged, and may be small for the scaling alone. */
    assert_true(result.info != n + 1 || result.rcond < eps);
    assert_true(result.info != 0 || result.rcond >= eps || kind >= SCALED_ROWS);
    for (int64_t k = 0; k < n * n; k++)
        assert_true(isfinite(result.inverse[k]));
    check_residual(&task, &result);
    double ratio = gputest_inverse_ratio(precision, n, a, result.inverse);
    if (result.info == 0 && !(ratio <= GPUTEST_RATIO_MAX))
        fail_msg("hostile %d, n = %d: INFO 0 with ratio %g", kind, (int)n, ratio);
    /* These are singular in the precision. */
    if (kind <= NEAR_SINGULAR && result.info == 0)
        fail_msg("hostile %d, n = %d: INFO 0, RCOND %g, residual %g", kind, (int)n, result.rcond,
                 result.residual);
    if (result.info == n + 2)
        assert_true(result.residual > 1e-4);
    gputest_iterated_free(&result);
    free(a);
}

static void test_convergence_is_not_faked(void **state)
{
    (void)state;
    static const int64_t orders[] = {2, 3, 8, 33, 70};
    static const struct gputest_iterate options[] = {
        {0},
        {.scheme = METHOD_ITERATIVE_NEWTON_SCHULZ, .max_iterations = 300},
        {.scheme = METHOD_ITERATIVE_ORDER7_HORNER},
        {.scheme = METHOD_ITERATIVE_ORDER19, .initial = METHOD_ITERATIVE_SCALED_IDENTITY},
        {.scheme = METHOD_ITERATIVE_ORDER7, .initial = METHOD_ITERATIVE_DIAGONAL},
    };
    for (size_t i = 0; i < COUNT(orders) * COUNT(options) * HOSTILES; i++) {
        int64_t n = orders[i % COUNT(orders)];
        const struct gputest_iterate *option = &options[i / COUNT(orders) % COUNT(options)];
        enum hostile kind = (enum hostile)(i / COUNT(orders) / COUNT(options));
        try_hostile(kind, PRECISION_FP64, n, option);
        try_hostile(kind, PRECISION_FP32, n, option);
    }
}

/* A row is twice another one: whatever V has become, and its RCOND, it did not converge. */
static void test_singular_matrices_do_not_converge(void **state)
{
    (void)state;
    enum {
        N_MAX = 6
    };
    double a[N_MAX * N_MAX];
    uint64_t seed = 9;
    for (int k = 0; k < FAMILY; k++) {
        const int64_t n = 2 + k % (N_MAX - 1);
        for (int64_t i = 0; i < n * n; i++)
            a[i] = (double)(float)gputest_random(&seed);
        for (int64_t i = 0; i < n; i++)
            a[(n - 1) * n + i] = 2 * a[i];
        struct gputest_iterate task = {
            .precision = (enum precision)(k / 2 % 2),
            .n = n,
            .a = a,
            .tolerance = k % 2 ? 0.1 : 0,
            .scheme = (enum method_iterative_scheme)(k / 3 % METHOD_ITERATIVE_SCHEMES),
            .initial = (enum method_iterative_initial)(k / 7 % METHOD_ITERATIVE_INITIALS)};
        struct gputest_iterated result = gputest_iterate(&task);
        assert_int_equal(result.info, n + 2);
        assert_true(result.residual > 0.5);
        gputest_iterated_free(&result);
    }
}

/* A line of zeros is singular without a doubt, also where sums of the other entries overflow. */
static void try_zero_line(enum precision precision, bool row, double huge)
{
    int64_t n = 30;
    double *a = random_matrix(n, 3);
    for (int64_t i = 0; i < n && huge > 0; i++)
        a[row ? i * n + 2 : 2 * n + i] = huge;
    for (int64_t i = 0; i < n; i++)
        a[row ? 7 * n + i : i * n + 7] = 0;
    struct gputest_iterate task = {.precision = precision, .n = n, .a = a};
    struct gputest_iterated result = gputest_iterate(&task);
    assert_int_equal(result.info, row ? n : 8);
    assert_true(result.rcond == 0 && isnan(result.residual) && isnan(result.history[0]));
    assert_int_equal(result.iterations, 0);
    for (int64_t i = 0; i < n * n; i++)
        assert_true(isnan(result.inverse[i]));
    gputest_iterated_free(&result);
    free(a);
}

static void test_zero_lines(void **state)
{
    (void)state;
    for (int row = 0; row < 2; row++) {
        for (int huge = 0; huge < 2; huge++) {
            try_zero_line(PRECISION_FP64, row, huge ? 1.7e308 : 0);
            try_zero_line(PRECISION_FP32, row, huge ? 3.4e38 : 0);
        }
    }
}

/* Where lu finds an inverse that is worth something, so does iterative: to a condition of a
 * hundredth of 1 / (n eps). */
static void test_conditions(void **state)
{
    (void)state;
    static const int64_t orders[] = {10, 40, 100};
    for (size_t i = 0; i < COUNT(orders); i++) {
        int64_t n = orders[i];
        double *a = gputest_numbers(n * n);
        for (int digits = 0; digits <= 12; digits += 2) {
            for (int mode = 3; mode <= 4; mode++) {
                gputest_dge(4, mode, PRECISION_FP64, n, (uint64_t)digits, a);
                for (int64_t k = 0; k < n; k++) /* a last column that has all but vanished */
                    a[k * n + n - 1] *= pow(10, -digits);
                struct gputest_iterate task = {.precision = PRECISION_FP64, .n = n, .a = a};
                struct gputest_iterated result = gputest_iterate(&task);
                assert_int_equal(result.info, 0);
                assert_true(gputest_inverse_ratio(PRECISION_FP64, n, a, result.inverse) <= 1);
                gputest_iterated_free(&result);
            }
        }
        free(a);
    }
}

/* ---- The same bits ---- */

static void try_teams(const struct gputest_iterate *options, struct host_team **teams, int count)
{
    struct gputest_iterate task = *options;
    struct gputest_iterated first = gputest_iterate(&task);
    for (int i = 0; i < count; i++) {
        task.team = teams[i];
        struct gputest_iterated other = gputest_iterate(&task);
        if (!gputest_iterated_equal(&first, &other, task.n))
            fail_msg("n = %d: other bits with %d threads", (int)task.n,
                     host_team_threads(teams[i]));
        gputest_iterated_free(&other);
    }
    /* And when no one wants the matrix. */
    task.bare = true;
    struct gputest_iterated bare = gputest_iterate(&task);
    assert_int_equal(bare.info, first.info);
    assert_int_equal(bare.iterations, first.iterations);
    assert_int_equal(bare.algorithm, first.algorithm);
    assert_true(bare.rcond == first.rcond && bare.residual == first.residual);
    gputest_iterated_free(&bare);
    gputest_iterated_free(&first);
}

static void test_bits_do_not_depend_on_the_team(void **state)
{
    (void)state;
    static const int helpers[] = {0, 1, 2, 4};
    static const int64_t orders[] = {100, 255, 256, 257, 400};
    struct host_team *teams[COUNT(helpers)];
    for (size_t i = 0; i < COUNT(helpers); i++) {
        struct failure failure = {0};
        assert_int_equal(host_team_create(helpers[i], 0, &teams[i], &failure), ERROR_NONE);
    }
    for (size_t i = 0; i < COUNT(orders); i++) {
        int64_t n = orders[i];
        double *a = random_matrix(n, 14);
        struct gputest_iterate task = {.precision = PRECISION_FP64, .n = n, .a = a};
        try_teams(&task, teams, COUNT(helpers));
        for (int64_t k = 0; k < n; k++)
            a[k * (n + 1)] = (double)n;
        task.initial = METHOD_ITERATIVE_DIAGONAL;
        task.scheme = METHOD_ITERATIVE_ORDER7_HORNER;
        try_teams(&task, teams, COUNT(helpers));
        task.precision = PRECISION_FP32;
        task.initial = METHOD_ITERATIVE_TRANSPOSE;
        task.scheme = METHOD_ITERATIVE_ORDER19;
        try_teams(&task, teams, COUNT(helpers));
        free(a);
    }
    for (size_t i = 0; i < COUNT(helpers); i++)
        host_team_destroy(&teams[i]);
}

/* Scaling A by a power of two scales the inverse, and changes no other bit. */
static void test_power_of_two(void **state)
{
    (void)state;
    static const int exponents[] = {1, -7, 300, -300};
    int64_t n = 48;
    double *a = random_matrix(n, 15), *b = gputest_numbers(n * n);
    for (int initial = METHOD_ITERATIVE_INITIAL_AUTO; initial <= METHOD_ITERATIVE_SCALED_IDENTITY;
         initial++) {
        for (int64_t i = 0; i < n; i++) /* every start leads somewhere */
            a[i * (n + 1)] = (double)n;
        struct gputest_iterate task = {.precision = PRECISION_FP64,
                                       .n = n,
                                       .a = a,
                                       .initial = (enum method_iterative_initial)initial};
        struct gputest_iterated plain = gputest_iterate(&task);
        assert_int_equal(plain.info, 0);
        for (size_t k = 0; k < COUNT(exponents); k++) {
            for (int64_t i = 0; i < n * n; i++)
                b[i] = ldexp(a[i], exponents[k]);
            task.a = b;
            struct gputest_iterated scaled = gputest_iterate(&task);
            for (int64_t i = 0; i < n * n; i++)
                scaled.inverse[i] = ldexp(scaled.inverse[i], exponents[k]);
            assert_true(gputest_iterated_equal(&plain, &scaled, n));
            gputest_iterated_free(&scaled);
        }
        gputest_iterated_free(&plain);
    }
    free(a);
    free(b);
}

/* ---- Memory ---- */

/* Eight n x n next to input and output, and lines that vanish next to them. */
static void test_scratch_is_eight_matrices(void **state)
{
    (void)state;
    static const int64_t sizes[] = {256, 1000, 4096, 32768};
    const struct host_method *host =
        host_method_at((uint32_t)method_index(method_find("iterative")), PRECISION_FP64);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        int64_t n = sizes[i], bytes = host->scratch_bytes(n, 0);
        assert_true(bytes >= 8 * n * n * 8);
        assert_true(bytes <= (8 * n + n / 128 + 192) * (n + 16) * 8 + 16384);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_max_iterations),
        cmocka_unit_test(test_tolerance),
        cmocka_unit_test(test_tolerance_is_kept),
        cmocka_unit_test(test_hidden_tolerances),
        cmocka_unit_test(test_unseen_residual),
        cmocka_unit_test(test_convergence_is_not_faked),
        cmocka_unit_test(test_singular_matrices_do_not_converge),
        cmocka_unit_test(test_zero_lines),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_bits_do_not_depend_on_the_team),
        cmocka_unit_test(test_power_of_two),
        cmocka_unit_test(test_scratch_is_eight_matrices),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
