/* `ism` where A0 is tiny next to X Y^T, or some of its numbers are: A, once it is formed, has lost
 * them, and the inverse is as large as they are small. Errors are those of the largest entry's
 * digits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gpu/host/linalg/lapack.h"
#include "tests/unit/gpu/host/ism.h"
#include "tests/unit/gpu/host/matrices.h"

#ifndef COUNT
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#endif
#ifndef RANDOM_MATRICES
#define RANDOM_MATRICES 10000
#endif
/* Powers of two that A0 may be as small as: an engine's limits, in FP32 and FP64. */
#ifndef TINIEST_F64
#define TINIEST_F32 (-123)
#define TINIEST_F64 (-1019)
#define SIZES_SHARE 8 /* of that range, those of X and Y next to a tiny A0 */
#endif
#define RANK_MAX 4
#define ORDER_MAX 60
#define BROKEN_RANK 12

/* What nearly all answers keep, and what all do. */
static const double usual_errors[PRECISION_COUNT] = {1e-5, 1e-13};
static const double largest_errors[PRECISION_COUNT] = {2e-4, 1e-11};
static const int tiniest_exponents[PRECISION_COUNT] = {TINIEST_F32, TINIEST_F64};

/* ---- A0 = s I, X = Y = 1 ---- */

/* The inverse is (I - 1 1^T / (s + n)) / s. */
static void check_ones(enum precision precision, int64_t n, double s)
{
    struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_SCALE, n, 1);
    for (int64_t i = 0; i < n; i++) {
        problem.a0[i * (n + 1)] = s;
        problem.x[i] = problem.y[i] = 1;
    }
    ismtest_complete(&problem);
    const long double exact_s = problem.a0[0], sum = exact_s + (long double)n;
    struct ismtest_answer answer =
        ismtest_run(&problem, ISMTEST_INVERSE_WANTED | ISMTEST_FACTORS_WANTED, NULL);
    long double error = 0;
    for (int64_t i = 0; i < n * n; i++) {
        const long double exact = ((long double)(i % (n + 1) == 0) - 1 / sum) / exact_s;
        const long double off = fabsl((long double)answer.inverse[i] - exact) * exact_s;
        error = off > error || isnan(off) ? off : error;
    }
    error /= 1 - 1 / sum;
    if (answer.info != 0 || !(error <= (precision == PRECISION_FP32 ? 1e-6 : 1e-14)))
        ismtest_tell(&problem, "of ones: error", (double)error);
    if (answer.algorithm != METHOD_ALGORITHM_BLOCK ||
        !(ismtest_factors_ratio(&problem, &answer) <= 15))
        ismtest_tell(&problem, "of ones: METHOD or factors", answer.algorithm);
    if (!(fabsl((long double)answer.det_ratio * exact_s / sum - 1) <= 1e-5))
        ismtest_tell(&problem, "of ones: DET_RATIO", answer.det_ratio);
    const double rcond = (double)(exact_s / sum / (1 + (long double)(n - 2) / sum));
    if (!(fabs(answer.rcond / rcond - 1) <= 1e-5))
        ismtest_tell(&problem, "of ones: RCOND", answer.rcond);
    ismtest_forget(&answer);
    ismtest_free(&problem);
}

static const int64_t orders[] = {2, 3, 8, 9, 20, 33, 60};

static void test_ones(void **state)
{
    (void)state;
    static const double scales[PRECISION_COUNT][8] = {
        {1e-1, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-12},
        {1e-3, 1e-10, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-100}};
    ismtest_wrongs = 0;
    for (size_t i = 0; i < 2 * 8 * COUNT(orders); i++)
        check_ones(i % 2 ? PRECISION_FP64 : PRECISION_FP32, orders[i / 16],
                   scales[i % 2][i / 2 % 8]);
    assert_int_equal(ismtest_wrongs, 0);
}

/* To the end of the range, by powers of two and between them. */
static void test_ones_of_any_size(void **state)
{
    (void)state;
    static const int steps[PRECISION_COUNT] = {5, 37};
    ismtest_wrongs = 0;
    for (int p = 0; p < PRECISION_COUNT; p++) {
        for (int exponent = -steps[p]; exponent >= tiniest_exponents[p]; exponent -= steps[p])
            check_ones((enum precision)p, orders[-exponent / steps[p] % (int)COUNT(orders)],
                       ldexp(1.5, exponent));
        check_ones((enum precision)p, 2, ldexp(1, tiniest_exponents[p]));
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* ---- Any diagonal ---- */

/* Rows of C^T, C = I + Y^T A0^-1 X, and next to them (A0^-1 X)^T: they become I and P^T, P = A0^-1
 * X C^-1, by elimination and substitution. C's inverse would lose digits where its numbers are far
 * larger than those of P. */
static void solve_exactly(int64_t m, int64_t columns, __float128 *rows)
{
    for (int64_t s = 0; s < m; s++) {
        int64_t best = s;
        for (int64_t i = s + 1; i < m; i++) {
            const long double size = fabsl((long double)rows[i * columns + s]);
            best = size > fabsl((long double)rows[best * columns + s]) ? i : best;
        }
        for (int64_t j = 0; j < columns; j++) {
            const __float128 old = rows[s * columns + j];
            rows[s * columns + j] = rows[best * columns + j];
            rows[best * columns + j] = old;
        }
        for (int64_t i = s + 1; i < m; i++) {
            const __float128 factor = rows[i * columns + s] / rows[s * columns + s];
            for (int64_t j = s; j < columns; j++)
                rows[i * columns + j] -= factor * rows[s * columns + j];
        }
    }
    for (int64_t s = m - 1; s >= 0; s--) {
        for (int64_t j = columns - 1; j >= s; j--)
            rows[s * columns + j] /= rows[s * columns + s];
        for (int64_t i = 0; i < s; i++) {
            for (int64_t j = columns - 1; j >= s; j--)
                rows[i * columns + j] -= rows[i * columns + s] * rows[s * columns + j];
        }
    }
}

/* How far z is from A0^-1 - P Y^T A0^-1, in terms of its largest entry. */
static double error_of(const struct ismtest_problem *problem, const double *z)
{
    const int64_t n = problem->n, m = problem->m, columns = m + n;
    __float128 rows[BROKEN_RANK * (BROKEN_RANK + ORDER_MAX)];
    long double largest = 0, error = 0;
    for (int64_t c = 0; c < m; c++) {
        __float128 *row = rows + c * columns;
        for (int64_t l = 0; l < m; l++)
            row[l] = l == c;
        for (int64_t i = 0; i < n; i++) {
            row[m + i] = (__float128)problem->x[i * m + c] / problem->a0[i * (n + 1)];
            for (int64_t l = 0; l < m; l++)
                row[l] += row[m + i] * problem->y[i * m + l];
        }
    }
    solve_exactly(m, columns, rows);
    for (int64_t i = 0; i < n * n; i++) {
        const int64_t row = i / n, column = i % n;
        __float128 exact = row == column;
        for (int64_t c = 0; c < m; c++)
            exact -= rows[c * columns + m + row] * problem->y[column * m + c];
        exact /= problem->a0[column * (n + 1)];
        const long double off = fabsl((long double)(exact - z[i]));
        largest = fmaxl(largest, fabsl((long double)exact));
        error = off > error || isnan(off) ? off : error;
    }
    return (double)(error / largest);
}

/* A0's numbers from `least` to 1: of one size, of two, or of every size; then of either sign. */
static void set_diagonal(struct ismtest_problem *problem, int kind, double least, uint64_t *seed)
{
    const double size = pow(least, fabs(gputest_random(seed)));
    for (int64_t i = 0; i < problem->n; i++) {
        const double own = fabs(gputest_random(seed)), other = gputest_random(seed);
        double *d = &problem->a0[i * (problem->n + 1)];
        *d = kind == 0                ? size * (1 + own)
             : kind == 1 && other < 0 ? size * (1 + own)
             : kind == 1              ? 1 + own
                                      : pow(least, own);
        if (kind == 3 && other < 0)
            *d = -*d;
    }
}

/* Its error, INFO 0 being had. */
static double random_error(int64_t index)
{
    uint64_t seed = (uint64_t)index + 1;
    for (int i = 0; i < 4; i++)
        gputest_random(&seed);
    const enum precision precision = index % 2 ? PRECISION_FP64 : PRECISION_FP32;
    const double part = gputest_random(&seed);
    const int64_t n = 2 + (int64_t)(part * part * (ORDER_MAX - 1));
    const int64_t m = 1 + index / 2 % (n < RANK_MAX ? n : RANK_MAX);
    struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_DIAGONAL, n, m);
    set_diagonal(&problem, (int)(index / 8 % 4), precision == PRECISION_FP32 ? 1e-8 : 1e-15, &seed);
    for (int64_t i = 0; i < n * m; i++) {
        problem.x[i] = gputest_random(&seed);
        problem.y[i] = gputest_random(&seed);
    }
    ismtest_complete(&problem);
    struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
    const double error = error_of(&problem, answer.inverse);
    if (answer.info != 0 || !(error <= largest_errors[precision]))
        ismtest_tell(&problem, answer.info ? "INFO" : "error", answer.info ? answer.info : error);
    ismtest_forget(&answer);
    ismtest_free(&problem);
    return error;
}

static void test_random(void **state)
{
    (void)state;
    int64_t unusual = 0;
    ismtest_wrongs = 0;
    for (int64_t i = 0; i < RANDOM_MATRICES; i++)
        unusual += !(random_error(i) <= usual_errors[i % 2]);
    assert_int_equal(ismtest_wrongs, 0);
    assert_true(unusual <= RANDOM_MATRICES / 100);
}

/* A0 far below the reciprocal of what C may be, to the end of the range; X and Y of any size that
 * leaves A and its inverse in range. m < n: else the inverse does not depend on A0. */
static void check_tiniest(int64_t index)
{
    uint64_t seed = (uint64_t)index + 77;
    for (int i = 0; i < 4; i++)
        gputest_random(&seed);
    const enum precision precision = index % 2 ? PRECISION_FP64 : PRECISION_FP32;
    const enum ismtest_kind kind = index / 2 % 2 ? ISMTEST_DIAGONAL : ISMTEST_SCALE;
    const int range = -tiniest_exponents[precision];
    const int size = (int)(gputest_random(&seed) * range / SIZES_SHARE);
    const int other = (int)(gputest_random(&seed) * range / SIZES_SHARE);
    const double least = ldexp(1, -(int)(range * (0.75 + 0.2 * fabs(gputest_random(&seed)))));
    const int64_t n = 2 + index / 4 % (ORDER_MAX - 1);
    const int64_t m = 1 + index / 8 % (n <= RANK_MAX ? n - 1 : RANK_MAX);
    struct ismtest_problem problem = ismtest_blank(precision, kind, n, m);
    for (int64_t i = 0; i < n; i++) {
        const double own = kind == ISMTEST_SCALE ? 1 : 1 + fabs(gputest_random(&seed));
        problem.a0[i * (n + 1)] = least * own;
    }
    for (int64_t i = 0; i < n * m; i++) {
        problem.x[i] = ldexp(gputest_random(&seed), size);
        problem.y[i] = ldexp(gputest_random(&seed), other);
    }
    ismtest_complete(&problem);
    struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
    const double error = error_of(&problem, answer.inverse);
    if (answer.info != 0 || !(error <= usual_errors[precision]))
        ismtest_tell(&problem, answer.info ? "tiniest: INFO" : "tiniest: error",
                     answer.info ? answer.info : error);
    ismtest_forget(&answer);
    ismtest_free(&problem);
}

static void test_tiniest(void **state)
{
    (void)state;
    ismtest_wrongs = 0;
    for (int64_t i = 0; i < RANDOM_MATRICES / 5; i++)
        check_tiniest(i);
    assert_int_equal(ismtest_wrongs, 0);
}

#ifndef OVERFLOWS_TO_LU
/* The inverse overflows: it goes out with INFO n+1, and what is in range of it is right. */
static void test_overflow(void **state)
{
    (void)state;
    static const double scales[PRECISION_COUNT] = {1e-40, 1e-310};
    for (int64_t i = 0; i < 2 * RANK_MAX; i++) {
        const enum precision precision = i % 2 ? PRECISION_FP64 : PRECISION_FP32;
        struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_SCALE, 9, 1 + i / 2);
        uint64_t seed = (uint64_t)i;
        for (int64_t k = 0; k < 9 * problem.m; k++) {
            problem.x[k] = gputest_random(&seed);
            problem.y[k] = gputest_random(&seed);
        }
        for (int64_t k = 0; k < 9; k++)
            problem.a0[k * 10] = scales[precision];
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_int_equal(answer.info, 10);
        assert_true(answer.rcond == 0);
        assert_true(isinf(answer.inverse[0]));
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}
#endif

/* Standard normal X and Y: the sum of twelve. */
static void test_small_diagonal(void **state)
{
    (void)state;
    struct ismtest_problem problem = ismtest_blank(PRECISION_FP32, ISMTEST_DIAGONAL, 60, 3);
    uint64_t seed = 11;
    for (int64_t i = 0; i < 180; i++) {
        for (int k = 0; k < 12; k++) {
            problem.x[i] += gputest_random(&seed) / 2;
            problem.y[i] += gputest_random(&seed) / 2;
        }
    }
    for (int64_t i = 0; i < 60; i++)
        problem.a0[i * 61] = 1e-4;
    ismtest_complete(&problem);
    struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
    assert_int_equal(answer.info, 0);
    assert_true(error_of(&problem, answer.inverse) <= 1e-6);
    ismtest_forget(&answer);
    ismtest_free(&problem);
}

/* The first column makes a block singular: 1 + y^T A0^-1 x is 0. No inverse is had by which to see
 * that A, once formed, has lost the others of A0's digits. */
static void test_broken(void **state)
{
    (void)state;
    for (int64_t n = 20; n <= 60; n += 20) {
        const double s = 0x1p-50;
        struct ismtest_problem problem =
            ismtest_blank(PRECISION_FP64, ISMTEST_SCALE, n, BROKEN_RANK);
        uint64_t seed = (uint64_t)n;
        for (int64_t i = 0; i < n * BROKEN_RANK; i++) {
            const bool first = i % BROKEN_RANK == 0;
            problem.x[i] = first ? s * (i == 0) : gputest_random(&seed);
            problem.y[i] = first ? -1.0 * (i == 0) : gputest_random(&seed);
        }
        for (int64_t i = 0; i < n; i++)
            problem.a0[i * (n + 1)] = s;
        problem.variant = METHOD_ISM_SINGLE;
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_int_equal(answer.info, 0);
        assert_int_equal(answer.algorithm, METHOD_ALGORITHM_BLOCK);
        assert_true(error_of(&problem, answer.inverse) <= 1e-13);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* ---- What is not determined ---- */

/* A0 = I, and 1 + y^T x = 2^-53, which is known to no digit: A is singular to working precision,
 * and lu says so. */
static void test_not_determined(void **state)
{
    (void)state;
    for (int64_t n = 2; n <= 60; n += 29) {
        struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, ISMTEST_DEFAULT, n, 2);
        for (int64_t i = 0; i < n; i++) {
            problem.x[2 * i] = 1;
            problem.y[2 * i] = i == 0 ? -1 + 0x1p-53 : 0;
        }
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        /* For its scaling alone, which lu takes away on a GPU. */
        assert_true(answer.info == n + 1 || answer.info == 0);
        assert_true(answer.rcond > 0 && answer.rcond < 0x1p-52);
        assert_int_equal(answer.algorithm, METHOD_ALGORITHM_LU);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ones),           cmocka_unit_test(test_random),
        cmocka_unit_test(test_tiniest),        cmocka_unit_test(test_ones_of_any_size),
#ifndef OVERFLOWS_TO_LU
        cmocka_unit_test(test_overflow),
#endif
        cmocka_unit_test(test_small_diagonal), cmocka_unit_test(test_broken),
        cmocka_unit_test(test_not_determined),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
