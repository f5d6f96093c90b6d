/* `ism` on the CUDA engine's kernels, run on the CPU: every kernel by orders that it takes, whole
 * and padded; blocks and their pivots; what is left to lu; factors; and a chain of updates. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/cuda/ism/ism.h"
#include "gpu/cuda/ism/call.h"
#include "tests/simt/simt.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/cuda/ism/ism_host.h"
#include "tests/unit/gpu/host/ism.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void check_ratio(const struct ismtest_problem *problem, const struct ismtest_answer *answer)
{
    double ratio =
        gputest_inverse_ratio(problem->precision, problem->n, problem->a, answer->inverse);
    assert_int_equal(answer->info, 0);
    assert_true(ratio <= GPUTEST_RATIO_MAX);
}

static void check_update(enum precision precision, int64_t n, int64_t m)
{
    struct ismtest_problem problem =
        ismtest_problem(precision, ISMTEST_INVERSE, n, m, (uint64_t)(40 * n + m));
    struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
    double off = fabs(answer.det_ratio / ismtest_det_ratio(&problem) - 1);
    check_ratio(&problem, &answer);
    assert_int_equal(answer.algorithm, METHOD_ALGORITHM_BLOCK);
    assert_true(off <= 1000 * gputest_eps(precision) * (double)n);
    ismtest_forget(&answer);
    ismtest_free(&problem);
}

/* Updates that take all columns at once: every size of a team and of a block, whole and padded. */
static void test_few_columns(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 2, 7, 8, 9, 12, 13, 16, 17, 24, 25, 31, 32};
    for (size_t k = 0; k < COUNT(orders) * PRECISION_COUNT; k++) {
        enum precision precision = (enum precision)(k % PRECISION_COUNT);
        int64_t n = orders[k / PRECISION_COUNT];
        for (int64_t m = 1; m <= 9 && m <= n; m++)
            check_update(precision, n, m);
    }
}

/* Orders that take a block of threads: each count of tiles of columns, whole and padded, and
 * probe vectors within a tile or beyond it. */
static void test_middle_orders(void **state)
{
    (void)state;
    static const struct {
        int64_t n, m;
    } rows[] = {{20, 12}, {33, 1},  {34, 8},  {40, 14}, {48, 15}, {49, 16},
                {64, 23}, {64, 24}, {70, 30}, {80, 31}, {97, 32}, {128, 5}};
    for (size_t k = 0; k < COUNT(rows) * PRECISION_COUNT; k++)
        check_update((enum precision)(k % PRECISION_COUNT), rows[k / PRECISION_COUNT].n,
                     rows[k / PRECISION_COUNT].m);
    check_update(PRECISION_FP32, 177, 3);
}

/* By streams that are late or early, from `first` on, the algorithm is `block`, and its answer has
 * the same bytes. */
static void check_in_any_order(const struct ismtest_problem *problem,
                               const struct ismtest_answer *expected, enum simt_streams first)
{
    for (int how = (int)first; how <= SIMT_STREAMS_EARLY; how++) {
        simt_set_streams((enum simt_streams)how);
        struct ismtest_answer answer = ismtest_run(problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_int_equal(answer.algorithm, METHOD_ALGORITHM_BLOCK);
        assert_true(answer.rcond == expected->rcond || isnan(expected->rcond));
        assert_memory_equal(answer.bytes, expected->bytes, (size_t)answer.byte_count);
        ismtest_forget(&answer);
    }
    simt_set_streams(SIMT_STREAMS_AT_ONCE);
}

/* Orders and columns beyond what a block holds: parts of the rows, both shapes of a strip, each
 * count of tiles of lines, columns that a warp inverts or a block, and blocks of more threads. */
static void test_streamed_orders(void **state)
{
    (void)state;
    static const struct {
        enum precision precision;
        int64_t n, m;
    } rows[] = {{PRECISION_FP64, 70, 40},  {PRECISION_FP64, 72, 40},  {PRECISION_FP32, 72, 40},
                {PRECISION_FP32, 81, 33},  {PRECISION_FP64, 130, 32}, {PRECISION_FP64, 150, 7},
                {PRECISION_FP64, 150, 17}, {PRECISION_FP64, 80, 50},  {PRECISION_FP32, 90, 62},
                {PRECISION_FP32, 260, 64}, {PRECISION_FP32, 196, 5},  {PRECISION_FP64, 515, 3},
                {PRECISION_FP32, 520, 9},  {PRECISION_FP64, 513, 34}, {PRECISION_FP32, 516, 33}};
    for (size_t i = 0; i < COUNT(rows); i++)
        check_update(rows[i].precision, rows[i].n, rows[i].m);
}

/* Each kernel follows the one before it, when that has ended. */
static void test_streams_in_any_order(void **state)
{
    (void)state;
    static const int64_t columns[] = {7, 33};
    for (size_t k = 0; k < COUNT(columns) * PRECISION_COUNT; k++) {
        struct ismtest_problem problem =
            ismtest_problem((enum precision)(k % PRECISION_COUNT), ISMTEST_INVERSE, 196,
                            columns[k / PRECISION_COUNT], k);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        check_ratio(&problem, &answer);
        check_in_any_order(&problem, &answer, SIMT_STREAMS_LATE);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* A number of any input that is not finite, in the first rows and columns and in the last. */
static void test_streams_of_no_numbers(void **state)
{
    (void)state;
    const int64_t n = 150, m = 7;
    for (int k = 0; k < 3 * 2 * 2; k++) {
        struct ismtest_problem problem = ismtest_problem(PRECISION_FP64, ISMTEST_INVERSE, n, m, 3);
        double *const inputs[] = {problem.b, problem.x, problem.y};
        const int64_t counts[] = {n * n, n * m, n * m};
        inputs[k % 3][k / 3 % 2 ? counts[k % 3] - 1 : 0] = k / 6 ? (double)INFINITY : (double)NAN;
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_int_equal(answer.info, -1);
        assert_true(isnan(answer.inverse[n]));
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* A0 + c X X^T of many columns of random numbers, whose terms are many times X Y^T A0^-1, is no
 * reason to solve. */
static void test_many_random_columns(void **state)
{
    (void)state;
    static const int64_t rows[][2] = {{128, 32}, {200, 50}, {256, 64}};
    uint64_t seed = 1;
    for (size_t k = 0; k < COUNT(rows); k++) {
        const int64_t n = rows[k][0], m = rows[k][1];
        struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, ISMTEST_INVERSE, n, m);
        ismtest_complete(&problem);
        for (int64_t i = 0; i < n * n; i++)
            problem.b[i] = 0.5 / sqrt((double)n) * gputest_random(&seed) + (i % (n + 1) == 0);
        for (int64_t i = 0; i < n * m; i++) {
            problem.x[i] = gputest_random(&seed);
            problem.y[i] = 0.7 / sqrt((double)(n * m)) * problem.x[i];
        }
        cudatest_check_solution(&problem, METHOD_ALGORITHM_BLOCK);
    }
}

/* A device whose blocks have 99 KiB: what they cannot hold is streamed, by strips of fewer rows. */
static void test_less_shared_memory(void **state)
{
    (void)state;
    simt_set_shared(99 * 1024);
    check_update(PRECISION_FP64, 72, 8);
    check_update(PRECISION_FP64, 100, 8);
    check_update(PRECISION_FP32, 136, 32);
    check_update(PRECISION_FP64, 500, 16);
    simt_set_shared(SIMT_SHARED_MAX);
}

/* The last product of a few columns finds room there, in FP64 by places of fewer rows; and it has
 * the same bits. */
static void test_the_last_product_in_less_shared_memory(void **state)
{
    (void)state;
    static const struct {
        enum ismtest_kind kind;
        int64_t n, m;
    } rows[] = {{ISMTEST_DIAGONAL, 150, 40},
                {ISMTEST_DIAGONAL, 131, 64},
                {ISMTEST_INVERSE_AND_A0, 150, 20},
                {ISMTEST_INVERSE_AND_A0, 161, 40},
                {ISMTEST_INVERSE_AND_A0, 257, 64}};
    for (size_t k = 0; k < COUNT(rows) * PRECISION_COUNT; k++) {
        const size_t row = k / PRECISION_COUNT;
        struct ismtest_problem problem = ismtest_problem(
            (enum precision)(k % PRECISION_COUNT), rows[row].kind, rows[row].n, rows[row].m, 7);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        simt_set_shared(99 * 1024);
        struct ismtest_answer other = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        simt_set_shared(SIMT_SHARED_MAX);
        check_ratio(&problem, &answer);
        assert_int_equal(other.info, 0);
        assert_int_equal(other.algorithm, METHOD_ALGORITHM_BLOCK);
        assert_memory_equal(other.bytes, answer.bytes, (size_t)answer.byte_count);
        ismtest_forget(&other);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* A0 = I, and 1 + y_1^T x_1 = 0, though A is well conditioned: it exchanges two rows. One block has
 * pivots, in double-double where A0 is diagonal; the others are left to lu. */
static void test_a_singular_block(void **state)
{
    (void)state;
    static const enum ismtest_kind kinds[] = {ISMTEST_DEFAULT, ISMTEST_INVERSE,
                                              ISMTEST_INVERSE_AND_A0};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        for (int64_t variant = 0; variant <= METHOD_ISM_REDUCED_MEMORY; variant++) {
            struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, kinds[k], 40, 2);
            problem.x[0] = problem.x[3] = 1;
            problem.y[0] = problem.y[3] = -1;
            problem.y[1] = problem.y[2] = 1;
            ismtest_complete(&problem);
            problem.variant = variant;
            problem.block_size = variant == METHOD_ISM_AUTO ? 0 : 1;
            struct ismtest_answer answer =
                ismtest_run(&problem, ISMTEST_INVERSE_WANTED | ISMTEST_FACTORS_WANTED, NULL);
            bool whole = variant == METHOD_ISM_AUTO || kinds[k] == ISMTEST_DEFAULT;
            check_ratio(&problem, &answer);
            assert_int_equal(answer.algorithm,
                             whole ? METHOD_ALGORITHM_BLOCK : METHOD_ALGORITHM_LU);
            assert_true(fabs(answer.det_ratio + 1) < 1e-12);
            assert_int_equal(isnan(answer.u[0]) && isnan(answer.r[0]), !whole);
            ismtest_forget(&answer);
            ismtest_free(&problem);
        }
    }
}

/* A0 = I, and X Y^T puts a matrix in the first m rows and columns whose pivots lie `step`
 * rows below the diagonal, those of the last ones above it. */
static void check_exchanges(enum ismtest_kind kind, int64_t n, int64_t m, int64_t step)
{
    struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, kind, n, m);
    for (int64_t i = 0; i < m; i++) {
        problem.x[i * m + i] = 1;
        for (int64_t j = 0; j < m; j++) {
            double number =
                (i + m - step) % m == j ? 1 : 0.4 * sin((double)(i * m + j)) / (double)m;
            problem.y[j * m + i] = number - (i == j);
        }
    }
    ismtest_complete(&problem);
    struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
    check_ratio(&problem, &answer);
    assert_true(fabs(answer.det_ratio / ismtest_det_ratio(&problem) - 1) < 1e-11);
    ismtest_forget(&answer);
    ismtest_free(&problem);
}

/* Rows are exchanged an even and an odd number of times, in blocks of one turn and of several: the
 * sign of DET_RATIO says. */
static void test_exchanged_rows(void **state)
{
    (void)state;
    static const int64_t rows[][2] = {{7, 2},   {16, 3},  {31, 8},  {40, 12},  {70, 40},
                                      {72, 63}, {90, 64}, {80, 33}, {150, 90}, {200, 129}};
    static const enum ismtest_kind kinds[] = {ISMTEST_DEFAULT, ISMTEST_INVERSE};
    for (size_t i = 0; i < COUNT(rows) * COUNT(kinds); i++) {
        const int64_t n = rows[i / COUNT(kinds)][0], m = rows[i / COUNT(kinds)][1];
        check_exchanges(kinds[i % COUNT(kinds)], n, m, 1);
        check_exchanges(kinds[i % COUNT(kinds)], n, m, m - 1);
        check_exchanges(kinds[i % COUNT(kinds)], n, m, m / 2);
    }
}

/* Blocks of several turns, the last of which may be short, in both precisions. */
static void test_blocks_of_several_turns(void **state)
{
    (void)state;
    static const int64_t ranks[] = {65, 90, 128, 131};
    for (size_t k = 0; k < COUNT(ranks) * PRECISION_COUNT; k++) {
        struct ismtest_problem problem =
            ismtest_problem((enum precision)(k % PRECISION_COUNT), ISMTEST_DEFAULT, 150,
                            ranks[k / PRECISION_COUNT], k);
        problem.variant = METHOD_ISM_BLOCK;
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_int_equal(answer.algorithm, METHOD_ALGORITHM_BLOCK);
        check_ratio(&problem, &answer);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* The inverse takes the place of A0^-1, which the check reads where it was given: that of each
 * matrix. With M nearly singular |M - I| is far from what the answer would say of it. */
static void test_inverses_in_place(void **state)
{
    (void)state;
    const int64_t n = 70;
    struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, ISMTEST_INVERSE, n, 2);
    problem.variant = METHOD_ISM_REDUCED_MEMORY;
    problem.block_size = 1;
    ismtest_complete(&problem);
    memset(problem.b, 0, (size_t)(n * n) * sizeof *problem.b);
    for (int64_t i = 0; i < n; i++)
        problem.b[i * (n + 1)] = 1;
    problem.x[0] = 0x1p-30 - 1;
    problem.y[0] = 1;
    struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
    assert_int_equal(answer.info, 0);
    assert_int_equal(answer.algorithm, METHOD_ALGORITHM_REDUCED_MEMORY);
    assert_true(answer.inverse[0] == 0x1p30);
    ismtest_forget(&answer);
    ismtest_free(&problem);
}

/* A0's first numbers are tiny, and X Y^T puts ones in their place: the inverse's digits are lost in
 * the difference, and had back in double-double. A0 that is singular is left to lu. */
static void test_lost_accuracy(void **state)
{
    (void)state;
    static const struct {
        double tiny;
        enum method_algorithm algorithm;
    } rows[] = {
        {0.3, METHOD_ALGORITHM_BLOCK}, {1e-7, METHOD_ALGORITHM_BLOCK}, {0, METHOD_ALGORITHM_LU}};
    static const int64_t orders[] = {30, 70};
    for (size_t i = 0; i < COUNT(rows) * COUNT(orders); i++) {
        int64_t n = orders[i / COUNT(rows)];
        double tiny = rows[i % COUNT(rows)].tiny;
        struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, ISMTEST_DIAGONAL, n, 6);
        uint64_t seed = 5;
        for (int64_t j = 0; j < n; j++)
            problem.a0[j * (n + 1)] = j < 6 ? tiny : 2 + gputest_random(&seed);
        for (int64_t j = 0; j < 6 * 6; j++) {
            problem.x[j] = gputest_random(&seed) + 3 * (j % 7 == 0);
            problem.y[j] = gputest_random(&seed) + 3 * (j % 7 == 0);
        }
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        check_ratio(&problem, &answer);
        assert_int_equal(answer.algorithm, rows[i % COUNT(rows)].algorithm);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* Where they are asked for the inverse has the same bits; blocks in groups, and of one column. */
static void test_factors(void **state)
{
    (void)state;
    static const struct {
        int64_t n, m, variant, block_size;
    } rows[] = {{20, 5, 0, 0},
                {20, 7, METHOD_ISM_SINGLE, 0},
                {30, 13, METHOD_ISM_BLOCK, 4},
                {70, 9, 0, 0},
                {12, 5, METHOD_ISM_REDUCED_MEMORY, 2}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ismtest_problem problem =
            ismtest_problem(PRECISION_FP64, ISMTEST_INVERSE_AND_A0, rows[i].n, rows[i].m, 3 + i);
        problem.variant = rows[i].variant;
        problem.block_size = rows[i].block_size;
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        struct ismtest_answer whole =
            ismtest_run(&problem, ISMTEST_INVERSE_WANTED | ISMTEST_FACTORS_WANTED, NULL);
        assert_memory_equal(answer.bytes, whole.bytes, (size_t)answer.byte_count);
        if (rows[i].variant == METHOD_ISM_REDUCED_MEMORY)
            assert_true(isnan(whole.u[0]) && isnan(whole.r[0]) && isnan(whole.v[0]));
        else
            assert_true(ismtest_factors_ratio(&problem, &whole) <= GPUTEST_RATIO_MAX);
        ismtest_forget(&answer);
        ismtest_forget(&whole);
        ismtest_free(&problem);
    }
}

/* Groups of several blocks, several groups, and groups that are blocks, the last of one column: the
 * bits are the same with factors and without. */
static void test_groups(void **state)
{
    (void)state;
    static const struct {
        enum precision precision;
        enum ismtest_kind kind;
        int64_t n, m, variant, block_size;
    } rows[] = {{PRECISION_FP64, ISMTEST_DIAGONAL, 90, 80, METHOD_ISM_AUTO, 0},
                {PRECISION_FP64, ISMTEST_DIAGONAL, 90, 530, METHOD_ISM_BLOCK, 0},
                {PRECISION_FP64, ISMTEST_DIAGONAL, 258, 517, METHOD_ISM_BLOCK, 258},
                {PRECISION_FP32, ISMTEST_INVERSE_AND_A0, 260, 300, METHOD_ISM_BLOCK, 257},
                {PRECISION_FP64, ISMTEST_ALONE, 262, 262, METHOD_ISM_BLOCK, 257}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct ismtest_problem problem =
            ismtest_problem(rows[i].precision, rows[i].kind, rows[i].n, rows[i].m, 9 + i);
        problem.variant = rows[i].variant;
        problem.block_size = rows[i].block_size;
        struct ismtest_answer whole =
            ismtest_run(&problem, ISMTEST_INVERSE_WANTED | ISMTEST_FACTORS_WANTED, NULL);
        check_ratio(&problem, &whole);
        check_in_any_order(&problem, &whole, SIMT_STREAMS_EARLY);
        ismtest_forget(&whole);
        ismtest_free(&problem);
    }
}

/* Sums so long that their products are cut. */
static void test_pieces(void **state)
{
    (void)state;
    struct ismtest_problem problem = ismtest_problem(PRECISION_FP64, ISMTEST_DIAGONAL, 521, 3, 9);
    struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
    check_ratio(&problem, &answer);
    assert_int_equal(answer.algorithm, METHOD_ALGORITHM_BLOCK);
    ismtest_forget(&answer);
    ismtest_free(&problem);
}

/* The last product writes the answer: strips and parts of rows that are whole and that are not,
 * few columns and all that there may be. Pairs of numbers at 16 bytes: see test_ism_last.cu. */
static void test_last_products(void **state)
{
    (void)state;
    static const struct {
        int64_t n, m;
        enum ismtest_kind kind;
    } rows[] = {{9, 9, ISMTEST_DIAGONAL},   {65, 33, ISMTEST_INVERSE},
                {96, 64, ISMTEST_DIAGONAL}, {128, 32, ISMTEST_INVERSE_AND_A0},
                {131, 1, ISMTEST_DEFAULT},  {130, 47, ISMTEST_INVERSE},
                {257, 64, ISMTEST_SCALE}};
    for (size_t k = 0; k < COUNT(rows) * PRECISION_COUNT; k++) {
        const size_t i = k / PRECISION_COUNT;
        struct ismtest_problem problem = ismtest_problem(
            (enum precision)(k % PRECISION_COUNT), rows[i].kind, rows[i].n, rows[i].m, 20 + i);
        problem.variant = METHOD_ISM_BLOCK;
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        check_ratio(&problem, &answer);
        assert_int_equal(answer.algorithm, METHOD_ALGORITHM_BLOCK);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* A0's numbers lie far apart, up to what leaves A with a condition of 1e12, in FP32 of 5e4. */
static void test_last_product_of_an_uneven_a0(void **state)
{
    (void)state;
    static const double powers[PRECISION_COUNT] = {4, 12};
    for (int p = 0; p < PRECISION_COUNT; p++) {
        struct ismtest_problem problem = ismtest_blank((enum precision)p, ISMTEST_DIAGONAL, 80, 3);
        uint64_t seed = 7;
        for (int64_t j = 0; j < 80; j++)
            problem.a0[j * 81] = pow(10, (double)(j * 37 % 80) * powers[p] / 79 - powers[p]);
        for (int64_t j = 0; j < 80 * 3; j++) {
            problem.x[j] = 1e-3 * gputest_random(&seed);
            problem.y[j] = gputest_random(&seed);
        }
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        check_ratio(&problem, &answer);
        assert_int_equal(answer.algorithm, METHOD_ALGORITHM_BLOCK);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* Orders at which |A| is measured in another stream, next to groups, and of few columns next to the
 * last product. RCOND says whether it was. */
static void test_measured_overlapped(void **state)
{
    (void)state;
    int64_t n = CUDA__ISM_OVERLAPPED_MIN + 6;
    static const struct {
        enum precision precision;
        int64_t m;
    } rows[] = {{PRECISION_FP32, 0}, {PRECISION_FP32, 70}, {PRECISION_FP32, 66},
                {PRECISION_FP32, 3}, {PRECISION_FP64, 0},  {PRECISION_FP64, 70},
                {PRECISION_FP64, 3}};
    for (size_t k = 0; k < COUNT(rows); k++) {
        const int64_t m = rows[k].m;
        struct ismtest_problem problem =
            ismtest_problem(rows[k].precision, ISMTEST_DIAGONAL, n, m, 8);
        for (int64_t e = 0; m == 66 && e < n * m; e += m) { /* columns that cancel */
            problem.x[e] *= 64;
            problem.x[e + 1] -= problem.x[e];
            problem.y[e + 1] = problem.y[e];
        }
        if (m == 66)
            ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        double rcond = 1 / residual_norm(n, problem.a) / residual_norm(n, answer.inverse);
        assert_int_equal(answer.info, 0);
        assert_int_equal(answer.algorithm, METHOD_ALGORITHM_BLOCK);
        assert_true(answer.rcond >= rcond * (1 - 1e-4) && answer.rcond <= rcond * 1.4);
        if (m == 70 || m == 3)
            check_in_any_order(&problem, &answer, SIMT_STREAMS_LATE);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
}

/* Updates of an inverse, every twentieth with A0 next to it. */
static void test_chain(void **state)
{
    (void)state;
    int64_t n = 12;
    uint64_t seed = 4;
    struct ismtest_problem problem =
        ismtest_problem(PRECISION_FP64, ISMTEST_INVERSE_AND_A0, n, 1, 12);
    for (int64_t i = 0; i < n; i++)
        problem.a0[i * (n + 1)] += 4;
    ismtest_complete(&problem);
    memcpy(problem.a, problem.a0, (size_t)(n * n) * sizeof(double));
    for (int step = 1; step <= 200; step++) {
        bool known = step % 20 == 0;
        problem.kind = known ? ISMTEST_INVERSE_AND_A0 : ISMTEST_INVERSE;
        memcpy(problem.a0, problem.a, (size_t)(n * n) * sizeof(double));
        memset(problem.x, 0, (size_t)n * sizeof *problem.x);
        problem.x[step % n] = 1;
        for (int64_t j = 0; j < n; j++) {
            double next = gputest_random(&seed) + (step % n == j ? 4 : 0);
            problem.y[j] = next - problem.a0[step % n * n + j];
            problem.a[step % n * n + j] = problem.a0[step % n * n + j] + problem.y[j];
        }
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_int_equal(answer.info, 0);
        assert_int_equal(isnan(answer.rcond), !known);
        if (known)
            check_ratio(&problem, &answer);
        memcpy(problem.b, answer.inverse, (size_t)(n * n) * sizeof(double));
        ismtest_forget(&answer);
    }
    ismtest_free(&problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_columns),
        cmocka_unit_test(test_middle_orders),
        cmocka_unit_test(test_streamed_orders),
        cmocka_unit_test(test_streams_in_any_order),
        cmocka_unit_test(test_streams_of_no_numbers),
        cmocka_unit_test(test_many_random_columns),
        cmocka_unit_test(test_less_shared_memory),
        cmocka_unit_test(test_the_last_product_in_less_shared_memory),
        cmocka_unit_test(test_a_singular_block),
        cmocka_unit_test(test_exchanged_rows),
        cmocka_unit_test(test_blocks_of_several_turns),
        cmocka_unit_test(test_inverses_in_place),
        cmocka_unit_test(test_lost_accuracy),
        cmocka_unit_test(test_factors),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_last_products),
        cmocka_unit_test(test_last_product_of_an_uneven_a0),
        cmocka_unit_test(test_measured_overlapped),
        cmocka_unit_test(test_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
