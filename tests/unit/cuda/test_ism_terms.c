/* `ism` on the CUDA engine's kernels: updates whose sums lost the same terms as a trial of one
 * precision, judged in more than twice the precision; sums of magnitudes that leave the range of
 * numbers where X Y^T does not; a column of A that hides from the search for |A|; and DET_RATIO
 * where A0_INVERSE has drifted from A0. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/ism_probes.h"
#include "tests/unit/cuda/ism_host.h"
#include "tests/unit/gpu/ism.h"
#include "tests/unit/gpu/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- Updates ---- */

/* The last column of A0^-1 has large numbers in some rows and their opposites in others, and
 * between them small ones of one sign that a sum of it loses one by one. All but the first column
 * of X and Y are zeros. */
static struct ismtest_problem swamped(enum precision precision, int64_t n, int64_t m, int64_t heads)
{
    struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_INVERSE, n, m);
    double large = (double)(8 * n) / (double)heads;
    problem.x[0] = 1;
    for (int64_t i = 0; i < n; i++)
        problem.y[i * m] = 1;
    ismtest_complete(&problem);
    memset(problem.b, 0, (size_t)(n * n) * sizeof *problem.b);
    for (int64_t i = 0; i < n; i++) {
        problem.b[i * (n + 1)] = 0x1p-12;
        problem.b[i * n + n - 1] = large * gputest_eps(precision) * 0.49 / 2;
    }
    for (int64_t i = 0; i < heads; i++) {
        problem.b[i * n + n - 1] = large;
        problem.b[(n - 1 - i) * n + n - 1] = -large;
    }
    problem.b[0] = 0;
    problem.b[2 * n] = large * (double)heads;
    problem.b[3 * n] = -large * (double)heads;
    for (int64_t i = 0; precision == PRECISION_FP32 && i < n * n; i++)
        problem.b[i] = (double)(float)problem.b[i];
    return problem;
}

/* INFO 0 is to be had, and keeps the contract. Returns METHOD. */
static int check_update(const struct ismtest_problem *problem, const char *what)
{
    struct ismtest_answer answer = ismtest_run(problem, ISMTEST_INVERSE_WANTED, NULL);
    double ratio = cudatest_solution_ratio(problem, answer.inverse);
    int road = answer.road;
    if (answer.info != 0 || !(ratio <= GPUTEST_RATIO_MAX))
        ismtest_tell(problem, what, ratio);
    ismtest_forget(&answer);
    return road;
}

/* Of calls that go by products, whose trial takes the sums as the update does. */
static void test_lost_terms(void **state)
{
    (void)state;
    static const struct {
        int64_t n, m, heads, variant;
    } rows[] = {
        {8, 1, 1, METHOD_ISM_SINGLE},          {8, 1, 1, METHOD_ISM_BLOCK},
        {8, 1, 1, METHOD_ISM_REDUCED_MEMORY},  {8, 2, 2, METHOD_ISM_BLOCK},
        {33, 1, 1, METHOD_ISM_SINGLE},         {64, 1, 4, METHOD_ISM_BLOCK},
        {64, 1, 1, METHOD_ISM_REDUCED_MEMORY}, {120, 70, 1, METHOD_ISM_AUTO},
        {128, 1, 1, METHOD_ISM_BLOCK},         {128, 3, 2, METHOD_ISM_REDUCED_MEMORY},
    };
    ismtest_wrongs = 0;
    for (size_t k = 0; k < COUNT(rows) * PRECISION_COUNT; k++) {
        size_t row = k / PRECISION_COUNT;
        struct ismtest_problem problem = swamped((enum precision)(k % PRECISION_COUNT), rows[row].n,
                                                 rows[row].m, rows[row].heads);
        problem.variant = rows[row].variant;
        check_update(&problem, "of lost terms: ratio");
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* Numbers of A0^-1 are integers, of which sums lose nothing, however much cancels: the answer is as
 * good as any, and the second trial says so. */
static void test_terms_that_cancel(void **state)
{
    (void)state;
    static const struct {
        int64_t n, m, variant;
    } rows[] = {{5, 1, METHOD_ISM_SINGLE},          {8, 3, METHOD_ISM_BLOCK},
                {9, 2, METHOD_ISM_REDUCED_MEMORY},  {40, 1, METHOD_ISM_BLOCK},
                {70, 2, METHOD_ISM_REDUCED_MEMORY}, {80, 70, METHOD_ISM_AUTO}};
    ismtest_wrongs = 0;
    for (size_t k = 0; k < COUNT(rows) * PRECISION_COUNT; k++) {
        int64_t n = rows[k / PRECISION_COUNT].n, m = rows[k / PRECISION_COUNT].m;
        struct ismtest_problem problem =
            ismtest_blank((enum precision)(k % PRECISION_COUNT), ISMTEST_INVERSE, n, m);
        uint64_t seed = k;
        ismtest_complete(&problem);
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t i = 0; i < n - 1; i++) {
                problem.b[i * n + j] = floor(gputest_random(&seed) * 0x1p14);
                sum += problem.b[i * n + j];
            }
            problem.b[(n - 1) * n + j] = (double)(j % 3) - 1 - sum;
        }
        problem.x[n / 2 * m] = 0.25;
        for (int64_t i = 0; i < n; i++)
            problem.y[i * m] = 1;
        problem.variant = rows[k / PRECISION_COUNT].variant;
        if (check_update(&problem, "of terms that cancel: ratio") == METHOD_ROAD_LU)
            ismtest_tell(&problem, "of terms that cancel: METHOD", METHOD_ROAD_LU);
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* The sum of a column of X overflows, or of |X| |Y^T|, and X Y^T is far from it. With more columns
 * than rows lu takes it at once. */
static void test_sums_beyond_the_range(void **state)
{
    (void)state;
    static const double sizes[][2] = {{5e306, 1.6e-307}, {1.6e-307, 5e306}, {1.7e308, 0}};
    static const double narrow[][2] = {{3e37, 1e-36}, {1e-36, 3e37}, {3e38, 0}};
    ismtest_wrongs = 0;
    for (size_t k = 0; k < COUNT(sizes) * PRECISION_COUNT * 3; k++) {
        enum precision precision = (enum precision)(k % PRECISION_COUNT);
        const double *size =
            (precision == PRECISION_FP32 ? narrow : sizes)[k / PRECISION_COUNT % COUNT(sizes)];
        int64_t n = 41, m = k / PRECISION_COUNT / COUNT(sizes) == 1 ? n + 1 : 1;
        struct ismtest_problem problem = ismtest_blank(precision, ISMTEST_INVERSE, n, m);
        uint64_t seed = k;
        for (int64_t i = 0; i < n; i++) {
            problem.x[i * m] = size[0] * (gputest_random(&seed) < 0 ? -1 : 1);
            problem.y[i * m] = size[1] * (1 + 0.1 * gputest_random(&seed));
        }
        ismtest_complete(&problem);
        problem.variant = k / PRECISION_COUNT / COUNT(sizes) == 0 ? METHOD_ISM_BLOCK : 0;
        check_update(&problem, "of large sums: ratio");
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* X is near the end of the range, and so are the sums of its columns or they are beyond it; and Y
 * is so small that its products with A0^-1 underflow, though those of X Y^T do not. */
static void test_products_below_the_range(void **state)
{
    (void)state;
    static const struct {
        int64_t n, m, variant;
    } rows[] = {{20, 13, METHOD_ISM_AUTO},  {9, 1, METHOD_ISM_AUTO},   {9, 10, METHOD_ISM_AUTO},
                {16, 1, METHOD_ISM_BLOCK},  {48, 32, METHOD_ISM_AUTO}, {70, 60, METHOD_ISM_AUTO},
                {120, 90, METHOD_ISM_AUTO}, {8, 2, METHOD_ISM_SINGLE}, {16, 4, METHOD_ISM_AUTO},
                {32, 8, METHOD_ISM_AUTO},   {60, 2, METHOD_ISM_AUTO},  {200, 3, METHOD_ISM_AUTO}};
    ismtest_wrongs = 0;
    for (size_t k = 0; k < COUNT(rows) * PRECISION_COUNT * 2; k++) {
        const size_t row = k / PRECISION_COUNT / 2;
        const bool wide = k % PRECISION_COUNT == PRECISION_FP64, far = k / PRECISION_COUNT % 2;
        int64_t n = rows[row].n, m = rows[row].m;
        struct ismtest_problem problem =
            ismtest_blank((enum precision)(k % PRECISION_COUNT), ISMTEST_INVERSE, n, m);
        ismtest_complete(&problem);
        for (int64_t e = 0; e < n * n; e++)
            problem.b[e] = ldexp(e % (n + 1) == 0 ? 0.5 : 0.875, wide ? -300 : -50);
        for (int64_t e = 0; e < n * m; e++) {
            const bool filled = !far || e % m == 0;
            double size = far ? 1.875 : 1.875 / (double)(n * m);
            size = ldexp(filled ? size : 0, wide ? 1023 : 127);
            problem.x[e] = wide ? size : (double)(float)size;
            problem.y[e] = ldexp(filled ? 1 : 0, wide ? -775 : -100);
        }
        problem.variant = rows[row].variant;
        check_update(&problem, "of small products: ratio");
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* ---- A0 is known ---- */

/* The lines of the search for |A|, and one of ones. */
static double line_weight(int64_t i, int l)
{
    const uint32_t bits = ISM_PROBE_BITS((uint32_t)i, (uint32_t)l);
    return l == ISM_PROBES ? 1 : (double)ISM_PROBE_OF(bits);
}

/* A dozen columns have one entry each besides the diagonal's, and one column many, with signs by
 * which its products with all lines of the search are small: only what bounds it tells. */
static void test_a_column_that_hides(void **state)
{
    (void)state;
    static const enum ismtest_kind kinds[] = {ISMTEST_DEFAULT, ISMTEST_DIAGONAL,
                                              ISMTEST_INVERSE_AND_A0};
    int64_t n = 200;
    ismtest_wrongs = 0;
    for (size_t k = 0; k < PRECISION_COUNT * COUNT(kinds); k++) {
        struct ismtest_problem problem =
            ismtest_blank((enum precision)(k % PRECISION_COUNT), kinds[k / PRECISION_COUNT], n, 2);
        double sums[9] = {0};
        problem.x[2] = 1;
        for (int64_t j = 10; j < 46; j += 3)
            problem.y[2 * j] = 1;
        for (int64_t i = 0; i < n; i++) {
            double met = 0;
            for (int l = 0; l < 9; l++)
                met += sums[l] * line_weight(i, l);
            problem.x[2 * i + 1] = met > 0 ? -1 : 1;
            for (int l = 0; l < 9; l++)
                sums[l] += problem.x[2 * i + 1] * line_weight(i, l);
        }
        problem.y[2 * 7 + 1] = 0.02;
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        double rcond = 1 / gputest_norm(n, problem.a) / gputest_norm(n, answer.inverse);
        if (!(answer.rcond >= rcond * 0.999 && answer.rcond <= rcond * 1.001))
            ismtest_tell(&problem, "of a hidden column: RCOND is off by the factor",
                         answer.rcond / rcond);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

/* A0_INVERSE is off by some factor: the answer is A's inverse, and DET_RATIO that of A and A0. */
static void test_det_ratio_of_the_drifted(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 2, 7, 20, 70};
    ismtest_wrongs = 0;
    for (size_t k = 0; k < PRECISION_COUNT * COUNT(orders) * 2; k++) {
        enum precision precision = (enum precision)(k % PRECISION_COUNT);
        int64_t n = orders[k / PRECISION_COUNT % COUNT(orders)];
        bool large = k >= PRECISION_COUNT * COUNT(orders);
        double size = !large ? 1 : precision == PRECISION_FP32 ? 1e37 : 1e306;
        struct ismtest_problem problem =
            ismtest_problem(precision, ISMTEST_INVERSE_AND_A0, n, 1, k);
        for (int64_t i = 0; i < n * n; i++)
            problem.a0[i] *= size;
        for (int64_t i = 0; i < n; i++)
            problem.x[i] *= size;
        ismtest_complete(&problem);
        for (int64_t i = 0; i < n * n; i++)
            problem.b[i] *= 1.125;
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        double off = fabs(answer.det_ratio / ismtest_det_ratio(&problem) - 1);
        assert_int_equal(answer.info, 0);
        assert_int_equal(answer.road, METHOD_ROAD_LU);
        /* The reference is a sum of logarithms. */
        if (!(off <= 100 * (double)n * (1 + fabs(log(size))) * gputest_eps(precision)))
            ismtest_tell(&problem, "of a drifted A0_INVERSE: DET_RATIO is off by", off);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
    assert_int_equal(ismtest_wrongs, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost_terms),
        cmocka_unit_test(test_terms_that_cancel),
        cmocka_unit_test(test_sums_beyond_the_range),
        cmocka_unit_test(test_products_below_the_range),
        cmocka_unit_test(test_a_column_that_hides),
        cmocka_unit_test(test_det_ratio_of_the_drifted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
