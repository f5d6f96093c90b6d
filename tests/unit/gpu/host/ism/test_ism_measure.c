/* What `ism` measures on request, RESIDUAL and RCOND_CAPACITANCE, and updates of rank 0, which
 * repair an inverse that has drifted. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/linalg/lapack.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/ism.h"
#include "tests/unit/gpu/host/matrices.h"

#ifndef COUNT
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#endif
#ifndef MEASURED_ORDERS
#define MEASURED_ORDERS 1, 2, 7, 9, 33, 70, 260
#endif

#ifndef RANDOM_UPDATES
#define RANDOM_UPDATES 10000
#endif

#define RANK_MAX 4

#define MEASURED (ISMTEST_INVERSE_WANTED | ISMTEST_MEASURES_WANTED)

/* RCOND of C = I + Y^T A0^-1 X by lu in FP64, formed in long double. Of A alone A0 is its diagonal.
 * condition: |C^-1| times the norm of C's terms, which may cancel. */
static double capacitance(const struct ismtest_problem *problem, double *condition)
{
    const bool alone = problem->kind == ISMTEST_ALONE;
    const int64_t n = problem->n, m = alone ? n : problem->m;
    double *c = gputest_numbers(m * m), *terms = gputest_numbers(m * m);
    struct gputest_answer b = {0};
    if (problem->kind == ISMTEST_DEFAULT || problem->kind == ISMTEST_SCALE ||
        problem->kind == ISMTEST_DIAGONAL)
        b = gputest_run("lu", PRECISION_FP64, n, problem->a0, false);
    long double *g = calloc((size_t)(2 * n * m), sizeof *g);
    assert_non_null(g);
    for (int64_t e = 0; !alone && e < n * m * n; e++) {
        const int64_t i = e / n, l = e % n;
        const long double term = (long double)(b.inverse ? b.inverse : problem->b)[i / m * n + l] *
                                 problem->x[l * m + i % m];
        g[i] += term;
        g[n * m + i] += fabsl(term);
    }
    for (int64_t i = 0; i < m * m; i++) {
        const int64_t row = i / m, column = i % m;
        long double sum = row == column, all = sum;
        for (int64_t k = 0; !alone && k < n; k++) {
            sum += (long double)problem->y[k * m + row] * g[k * m + column];
            all += fabsl((long double)problem->y[k * m + row]) * g[n * m + k * m + column];
        }
        c[i] = alone ? problem->a[i] / problem->a[row * (n + 1)] : (double)sum;
        terms[i] = alone ? c[i] : (double)all;
    }
    struct gputest_answer answer = gputest_run("lu", PRECISION_FP64, m, c, false);
    const double rcond = answer.rcond;
    *condition = residual_norm(m, terms) / residual_norm(m, c) / rcond;
    gputest_free(&answer);
    if (b.inverse)
        gputest_free(&b);
    free(terms);
    free(g);
    free(c);
    return rcond;
}

static bool is_known(const struct ismtest_problem *problem)
{
    return problem->kind != ISMTEST_INVERSE;
}

/* What rounding errors of a measured |I - Z A| come to. */
static double rounding(const struct ismtest_problem *problem, const double *z)
{
    double x = 0, y = 0;
    for (int64_t i = 0; i < problem->n * problem->m; i++) {
        x = fmax(x, fabs(problem->x[i]));
        y = fmax(y, fabs(problem->y[i]));
    }
    const double terms =
        residual_norm(problem->n, problem->a) + (double)(problem->n * problem->m) * x * y;
    return (double)problem->n * gputest_eps(problem->precision) * residual_norm(problem->n, z) *
           terms;
}

static void check_measures(const struct ismtest_problem *problem)
{
    const bool wide = problem->kind != ISMTEST_ALONE && problem->m > problem->n;
    struct ismtest_answer plain = ismtest_run(problem, ISMTEST_INVERSE_WANTED, NULL);
    struct ismtest_answer answer = ismtest_run(problem, MEASURED, NULL);
    if (memcmp(plain.bytes, answer.bytes, (size_t)plain.byte_count) != 0 ||
        plain.info != answer.info)
        ismtest_tell(problem, "another answer next to what is measured", answer.info);
    const double exact = residual_inverse(problem->n, answer.inverse, problem->a);
    if (is_known(problem) ? !(fabs(answer.residual - exact) <= rounding(problem, answer.inverse))
                          : !isnan(answer.residual))
        ismtest_tell(problem, "RESIDUAL", answer.residual);
    double condition = 1;
    const double wanted = wide ? NAN : problem->m == 0 ? 1 : capacitance(problem, &condition);
    const double off = fabs(answer.rcond_capacitance / wanted - 1);
    if (wide ? !isnan(answer.rcond_capacitance)
             : !(off <= 100 * gputest_eps(problem->precision) * condition))
        ismtest_tell(problem, "RCOND_CAPACITANCE", answer.rcond_capacitance);
    ismtest_forget(&plain);
    ismtest_forget(&answer);
}

static void test_measures(void **state)
{
    (void)state;
    static const int64_t orders[] = {MEASURED_ORDERS};
    ismtest_wrongs = 0;
    for (size_t i = 0; i < COUNT(orders) * ISMTEST_KINDS * 5; i++) {
        const int64_t n = orders[i / 5 / ISMTEST_KINDS];
        const int64_t ranks[] = {0, 1, n / 2, n, n + 2};
        const enum ismtest_kind kind = (enum ismtest_kind)(i / 5 % ISMTEST_KINDS);
        const enum precision precision = i % 2 ? PRECISION_FP64 : PRECISION_FP32;
        if (kind == ISMTEST_ALONE && i % 5 > 0)
            continue; /* m is n */
        struct ismtest_problem problem =
            ismtest_problem(precision, kind, n, kind == ISMTEST_ALONE ? n : ranks[i % 5], i);
        check_measures(&problem);
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* The second columns of X and Y are large multiples of the first ones: I + Y^T A0^-1 X is
 * ill-conditioned. With A0_INVERSE alone INFO is 0, and RCOND_CAPACITANCE alone shows it. */
static void test_ill_conditioned_capacitance(void **state)
{
    (void)state;
    static const enum ismtest_kind kinds[] = {ISMTEST_INVERSE, ISMTEST_INVERSE_AND_A0,
                                              ISMTEST_DIAGONAL};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        struct ismtest_problem problem = ismtest_problem(PRECISION_FP64, kinds[k], 20, 3, k + 1);
        for (int64_t i = 0; i < 20; i++) {
            problem.x[3 * i + 1] = 1e5 * problem.x[3 * i];
            problem.y[3 * i + 1] = 1e5 * problem.y[3 * i];
        }
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, MEASURED, NULL);
        double condition;
        const double wanted = capacitance(&problem, &condition);
        assert_int_equal(answer.info, 0);
        assert_true(wanted < 1e-8);
        assert_true(fabs(answer.rcond_capacitance / wanted - 1) <= 1e-3);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* I + Y^T A0_INVERSE X = L D U, D's numbers from 1 to `least`, or its reciprocal: X is A0's first
 * columns then. Or else columns that are nearly multiples of each other, and longer. */
static void set_factors(struct ismtest_problem *problem, bool by_columns, uint64_t *seed)
{
    const double least = problem->precision == PRECISION_FP32 ? 1e-3 : 1e-8;
    const double apart = pow(least, fabs(gputest_random(seed)));
    const double longer = pow(least, -fabs(gputest_random(seed)) / 2);
    const int64_t m = problem->m;
    double l[RANK_MAX][RANK_MAX], u[RANK_MAX][RANK_MAX];
    for (int64_t i = 0; i < problem->n * m; i++) {
        const int64_t row = i / m, column = i % m;
        if (!by_columns) {
            problem->x[i] = problem->a0[row * problem->n + column];
        } else if (column > 0) {
            problem->x[i] = longer * (problem->x[row * m] + apart * problem->x[i]);
            problem->y[i] = longer * (problem->y[row * m] + apart * problem->y[i]);
        }
    }
    for (int64_t i = 0; i < m * m; i++) {
        const int64_t row = i / m, column = i % m;
        const double size = pow(least, gputest_random(seed));
        l[row][column] = row == column ? size : row > column ? gputest_random(seed) : 0;
        u[row][column] = row == column ? 1 : row < column ? gputest_random(seed) : 0;
    }
    for (int64_t i = 0; i < m * m && !by_columns; i++) {
        double sum = i % (m + 1) == 0 ? -1 : 0;
        for (int64_t k = 0; k < m; k++)
            sum += l[i / m][k] * l[k][k] * u[k][i % m];
        problem->y[i % m * m + i / m] = sum;
    }
    ismtest_complete(problem);
    ismtest_sum_exactly(problem);
}

/* Is INFO 0 right, or A all but singular? Does RCOND_CAPACITANCE show what is lost? */
static void check_update(const struct ismtest_problem *problem, const struct ismtest_answer *answer)
{
    const double eps = gputest_eps(problem->precision);
    double condition;
    const double wanted = capacitance(problem, &condition), bound = 100 * eps * condition;
    if (bound < 1 && !(fabs(answer->rcond_capacitance / wanted - 1) <= bound))
        ismtest_tell(problem, "RCOND_CAPACITANCE", answer->rcond_capacitance);
    if (answer->info == 0) {
        const double ratio = residual_inverse_ratio(eps, problem->n, problem->a, answer->inverse);
        if (!(ratio <= 15) || (ratio > 1.5 && !(answer->rcond_capacitance <= 0.05)))
            ismtest_tell(problem, "|I - Z A|", ratio);
        return;
    }
    struct gputest_answer lu = gputest_run("lu", PRECISION_FP64, problem->n, problem->a, false);
    if (!(lu.rcond <= 1000 * eps))
        ismtest_tell(problem, "INFO", answer->info);
    gputest_free(&lu);
}

/* Of A0_INVERSE alone, n from 4 to 24 and m from 2 to 4. The matrix whose inverse was sent is well
 * conditioned, so that the new inverse is a good one. */
static void test_random_capacitance(void **state)
{
    (void)state;
    ismtest_wrongs = 0;
    for (int64_t k = 0; k < RANDOM_UPDATES; k++) {
        uint64_t seed = (uint64_t)(k + 1) * 7919;
        const enum precision precision = k % 2 ? PRECISION_FP64 : PRECISION_FP32;
        const int64_t n = 4 + (int64_t)(fabs(gputest_random(&seed)) * 21);
        struct ismtest_problem problem =
            ismtest_problem(precision, ISMTEST_INVERSE, n, 2 + k / 2 % (RANK_MAX - 1), seed);
        set_factors(&problem, k / 8 % 2, &seed);
        struct ismtest_answer answer = ismtest_run(&problem, MEASURED, NULL);
        check_update(&problem, &answer);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* No inverse, no residual; the capacitance matrix is singular then, or not finite. */
static void test_measures_without_inverse(void **state)
{
    (void)state;
    for (int64_t n = 3; n <= 40; n += 37) {
        struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, ISMTEST_DEFAULT, n, 1);
        problem.x[0] = 1;
        problem.y[0] = -1;
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, MEASURED, NULL);
        assert_int_equal(answer.info, 1);
        assert_true(isnan(answer.residual) && answer.rcond_capacitance == 0);
        ismtest_forget(&answer);
        problem.x[0] = INFINITY;
        answer = ismtest_run(&problem, MEASURED, NULL);
        assert_int_equal(answer.info, -1);
        assert_true(isnan(answer.residual) && isnan(answer.rcond_capacitance));
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* ---- Updates of rank 0 ---- */

/* A fresh inverse comes back as it is, or of small orders anew; one that drifted is made anew, if
 * A0 is there to tell. */
static void test_refresh(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 2, 6, 9, 20, 50, 100};
    for (size_t i = 0; i < COUNT(orders) * 2; i++) {
        const enum precision precision = i % 2 ? PRECISION_FP64 : PRECISION_FP32;
        const int64_t n = orders[i / 2], bytes = n * n * (int64_t)sizeof(double);
        struct ismtest_problem problem =
            ismtest_problem(precision, ISMTEST_INVERSE_AND_A0, n, 0, i + 1);
        struct ismtest_answer answer = ismtest_run(&problem, MEASURED, NULL);
        assert_int_equal(answer.info, 0);
        assert_int_equal(answer.algorithm, n < 9 ? answer.algorithm : METHOD_ALGORITHM_BLOCK);
        if (answer.algorithm == METHOD_ALGORITHM_BLOCK)
            assert_memory_equal(answer.inverse, problem.b, (size_t)bytes);
        assert_true(answer.det_ratio == 1 && answer.rcond_capacitance == 1);
        ismtest_forget(&answer);
        double *drifted = &problem.b[n / 2 * (n + 1)];
        *drifted *= 1 + 40 * (double)n * gputest_eps(precision);
        *drifted = precision == PRECISION_FP32 ? (double)(float)*drifted : *drifted;
        problem.kind = ISMTEST_INVERSE;
        answer = ismtest_run(&problem, MEASURED, NULL);
        assert_memory_equal(answer.inverse, problem.b, (size_t)bytes);
        ismtest_forget(&answer);
        problem.kind = ISMTEST_INVERSE_AND_A0;
        answer = ismtest_run(&problem, MEASURED, NULL);
        assert_int_equal(answer.info, 0);
        assert_int_equal(answer.algorithm, METHOD_ALGORITHM_LU);
        assert_true(gputest_inverse_ratio(precision, n, problem.a0, answer.inverse) <= 1);
        assert_true(fabs(answer.det_ratio - 1) <= (double)n * gputest_eps(precision));
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* Was it made anew twice? */
static bool check_refresh(const struct ismtest_problem *problem)
{
    const int64_t n = problem->n, bytes = n * n * (int64_t)sizeof(double);
    struct ismtest_problem again = *problem;
    struct ismtest_answer first = ismtest_run(problem, MEASURED, NULL);
    const double ratio = gputest_inverse_ratio(problem->precision, n, problem->a0, first.inverse);
    const bool kept = first.algorithm != METHOD_ALGORITHM_LU;
    if (first.info != 0 || !(ratio <= 1))
        ismtest_tell(problem, first.info ? "INFO" : "ratio", first.info ? first.info : ratio);
    if (kept && memcmp(first.inverse, problem->b, (size_t)bytes) != 0)
        ismtest_tell(problem, "another inverse, METHOD", first.algorithm);
    again.b = first.inverse;
    struct ismtest_answer second = ismtest_run(&again, MEASURED, NULL);
    if (memcmp(first.inverse, second.inverse, (size_t)bytes) != 0)
        ismtest_tell(problem, "a second refresh changes it", ratio);
    const bool twice = !kept && second.algorithm == METHOD_ALGORITHM_LU;
    ismtest_forget(&second);
    ismtest_forget(&first);
    return twice;
}

/* Inverses that drifted by anything from nothing to a tenth, of conditions up to 1e6 (FP32: 1e2): a
 * refresh gives the inverse back or makes it anew, and another one gives that back; hardly ever lu
 * leaves more from n = 9 on than a refresh allows, and makes the same once more. */
static void test_random_refresh(void **state)
{
    (void)state;
    int64_t anew = 0;
    ismtest_wrongs = 0;
    for (int64_t k = 0; k < RANDOM_UPDATES; k++) {
        uint64_t seed = (uint64_t)(k + 1) * 7919;
        const enum precision precision = k % 2 ? PRECISION_FP64 : PRECISION_FP32;
        const int64_t n = 1 + (int64_t)(fabs(gputest_random(&seed)) * 24);
        const double least = precision == PRECISION_FP32 ? 1e-2 : 1e-6;
        const double drift = pow(gputest_eps(precision), fabs(gputest_random(&seed)) * 1.1) / 10;
        struct ismtest_problem problem =
            ismtest_problem(precision, ISMTEST_INVERSE_AND_A0, n, 0, seed);
        for (int64_t i = 0; i < n; i++) {
            const double size = pow(least, fabs(gputest_random(&seed)));
            for (int64_t j = 0; j < n; j++)
                problem.a0[i * n + j] *= size;
        }
        ismtest_complete(&problem);
        for (int64_t i = 0; i < n * n; i++) {
            const double drifted = problem.b[i] * (1 + drift * gputest_random(&seed));
            problem.b[i] = precision == PRECISION_FP32 ? (double)(float)drifted : drifted;
        }
        anew += check_refresh(&problem) && n > 8;
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
    assert_true(anew <= RANDOM_UPDATES / 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measures),
        cmocka_unit_test(test_ill_conditioned_capacitance),
        cmocka_unit_test(test_random_capacitance),
        cmocka_unit_test(test_measures_without_inverse),
        cmocka_unit_test(test_refresh),
        cmocka_unit_test(test_random_refresh),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
