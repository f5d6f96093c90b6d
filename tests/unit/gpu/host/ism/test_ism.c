/* `ism` on the host: every way to give A0, every variant, what breaks down, and what is reported.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/base/host.h"
#include "gpu/host/linalg/lapack.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/ism.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* RCOND of orders above 64 comes from a column of A that seems the longest. */
#define RCOND_SLACK 1.5
/* In eps / RCOND; what it is compared with is off by as much. */
#define DET_RATIO_OFF 20

extern const struct host_method host_method_ism_f32, host_method_ism_f64;

static const struct host_method *method_of(enum precision precision)
{
    return precision == PRECISION_FP32 ? &host_method_ism_f32 : &host_method_ism_f64;
}

static int failures;

static void complain(const struct ismtest_problem *problem, const char *what, double value)
{
    failures++;
    print_error("%s kind %d variant %d block %d, n = %d, m = %d: %s %g\n",
                precision_name(problem->precision), (int)problem->kind, (int)problem->variant,
                (int)problem->block_size, (int)problem->n, (int)problem->m, what, value);
}

static void check_good(const struct ismtest_problem *problem, const struct ismtest_answer *answer)
{
    int64_t n = problem->n;
    double eps = gputest_eps(problem->precision);
    double ratio = gputest_inverse_ratio(problem->precision, n, problem->a, answer->inverse);
    double rcond = 1 / residual_norm(n, problem->a) / residual_norm(n, answer->inverse);
    double slack = n > 64 && problem->kind != ISMTEST_ALONE ? RCOND_SLACK : 1 + 4 * (double)n * eps;
    if (answer->info != 0)
        complain(problem, "INFO", answer->info);
    if (!(ratio <= GPUTEST_RATIO_MAX))
        complain(problem, "residual ratio", ratio);
    if (problem->kind == ISMTEST_INVERSE && !isnan(answer->rcond))
        complain(problem, "RCOND without A0", answer->rcond);
    if (problem->kind != ISMTEST_INVERSE &&
        !(answer->rcond >= rcond * (1 - 4 * (double)n * eps) && answer->rcond <= rcond * slack))
        complain(problem, "RCOND is off by the factor", answer->rcond / rcond);
    double det_ratio = ismtest_det_ratio(problem);
    if (!(fabs(answer->det_ratio - det_ratio) <= 1e3 * (double)n * eps * fabs(det_ratio)))
        complain(problem, "DET_RATIO is off by the factor", answer->det_ratio / det_ratio);
}

static void check_algorithm(const struct ismtest_problem *problem,
                            const struct ismtest_answer *answer)
{
    static const enum method_algorithm algorithms[] = {
        METHOD_ALGORITHM_BLOCK, METHOD_ALGORITHM_SINGLE, METHOD_ALGORITHM_BLOCK,
        METHOD_ALGORITHM_REDUCED_MEMORY};
    /* auto may take another one where m is large; A alone may need pivots. */
    bool free_choice = problem->variant == METHOD_ISM_AUTO && 4 * problem->m > problem->n;
    if (problem->kind != ISMTEST_ALONE && !free_choice &&
        answer->algorithm != (int32_t)algorithms[problem->variant])
        complain(problem, "METHOD", answer->algorithm);
}

static void check_factors(const struct ismtest_problem *problem,
                          const struct ismtest_answer *answer, bool has)
{
    int64_t m = problem->kind == ISMTEST_ALONE ? problem->n : problem->m;
    if (!has) {
        for (int64_t i = 0; i < m * m; i++)
            assert_true(isnan(answer->r[i]));
        for (int64_t i = 0; i < problem->n * m; i++)
            assert_true(isnan(answer->u[i]) && isnan(answer->v[i]));
        return;
    }
    if (problem->kind == ISMTEST_ALONE)
        return;
    double ratio = ismtest_factors_ratio(problem, answer);
    if (!(ratio <= GPUTEST_RATIO_MAX))
        complain(problem, "factors' ratio", ratio);
}

/* Every variant with two block sizes; the inverse is the same with factors and without. */
static void try_variants(struct ismtest_problem *problem)
{
    static const int64_t blocks[] = {0, 3};
    for (int64_t variant = 0; variant <= METHOD_ISM_REDUCED_MEMORY; variant++) {
        for (size_t b = 0; b < COUNT(blocks); b++) {
            problem->variant = variant;
            problem->block_size = blocks[b];
            struct ismtest_answer answer = ismtest_run(problem, ISMTEST_INVERSE_WANTED, NULL);
            struct ismtest_answer whole =
                ismtest_run(problem, ISMTEST_INVERSE_WANTED | ISMTEST_FACTORS_WANTED, NULL);
            check_good(problem, &answer);
            check_algorithm(problem, &answer);
            check_factors(problem, &whole,
                          whole.algorithm == METHOD_ALGORITHM_SINGLE ||
                              whole.algorithm == METHOD_ALGORITHM_BLOCK);
            if (memcmp(answer.bytes, whole.bytes, (size_t)answer.byte_count) != 0)
                complain(problem, "other bits with factors", 0);
            ismtest_forget(&answer);
            ismtest_forget(&whole);
        }
    }
}

static void test_every_kind(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 2, 3, 8, 9, 17, 33, 65, 100};
    failures = 0;
    for (size_t i = 0; i < COUNT(orders); i++) {
        int64_t n = orders[i], ranks[] = {0, 1, 2, 3, 4, 5, n / 2, n, n + 3};
        for (size_t r = 0; r < COUNT(ranks); r++) {
            for (int k = 0; k < ISMTEST_KINDS; k++) {
                enum precision precision =
                    (i + r + (size_t)k) % 3 ? PRECISION_FP64 : PRECISION_FP32;
                if (ranks[r] > 8 && n == 100 && k % 2)
                    continue; /* enough of the slow ones */
                struct ismtest_problem problem = ismtest_problem(
                    precision, (enum ismtest_kind)k, n, ranks[r], (uint64_t)(n * 64 + ranks[r]));
                try_variants(&problem);
                ismtest_free(&problem);
            }
        }
    }
    assert_int_equal(failures, 0);
}

static bool are_same(const double *some, const double *others, int64_t count)
{
    int64_t i = 0;
    while (i < count && ismtest_same(some[i], others[i]))
        i++;
    return i == count;
}

/* Bit for bit, with factors. */
static void check_same(const struct ismtest_problem *problem, const struct ismtest_answer *one,
                       const struct ismtest_answer *other)
{
    const int64_t n = problem->n, m = problem->kind == ISMTEST_ALONE ? n : problem->m;
    if (memcmp(one->bytes, other->bytes, (size_t)one->byte_count) != 0)
        complain(problem, "other bits of INVERSE with a team", 0);
    if (!ismtest_same(one->rcond, other->rcond))
        complain(problem, "another RCOND with a team", other->rcond);
    if (!are_same(one->u, other->u, n * m) || !are_same(one->r, other->r, m * m) ||
        !are_same(one->v, other->v, n * m))
        complain(problem, "other factors with a team", 0);
}

/* Beyond the fused update, with tiles and blocks that do not divide n and m. */
static void test_large(void **state)
{
    (void)state;
    static const struct {
        enum ismtest_kind kind;
        int64_t n, m, variant, block_size;
    } rows[] = {
        {ISMTEST_DIAGONAL, 300, 70, METHOD_ISM_BLOCK, 32},
        {ISMTEST_DIAGONAL, 300, 70, METHOD_ISM_REDUCED_MEMORY, 32},
        {ISMTEST_DEFAULT, 257, 1, METHOD_ISM_AUTO, 0},
        {ISMTEST_INVERSE, 300, 70, METHOD_ISM_AUTO, 0},
        {ISMTEST_INVERSE_AND_A0, 260, 10, METHOD_ISM_AUTO, 0},
        {ISMTEST_ALONE, 300, 0, METHOD_ISM_BLOCK, 64},
        {ISMTEST_SCALE, 280, 280, METHOD_ISM_AUTO, 0},
        {ISMTEST_DIAGONAL, 601, 75, METHOD_ISM_AUTO, 0},
        {ISMTEST_INVERSE_AND_A0, 520, 70, METHOD_ISM_AUTO, 0},
        {ISMTEST_INVERSE, 520, 131, METHOD_ISM_AUTO, 0},
        {ISMTEST_DIAGONAL, 513, 200, METHOD_ISM_BLOCK, 128},
        {ISMTEST_SCALE, 300, 500, METHOD_ISM_BLOCK, 200},
        {ISMTEST_INVERSE, 260, 270, METHOD_ISM_BLOCK, 50},
    };
    struct failure failure;
    struct host_team *team = NULL;
    failures = 0;
    assert_int_equal(host_team_create(3, 0, &team, &failure), ERROR_NONE);
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (int p = 0; p < PRECISION_COUNT; p++) {
            struct ismtest_problem problem =
                ismtest_problem((enum precision)p, rows[i].kind, rows[i].n, rows[i].m, 77 + i);
            problem.variant = rows[i].variant;
            problem.block_size = rows[i].block_size;
            const int wanted = ISMTEST_INVERSE_WANTED | ISMTEST_FACTORS_WANTED;
            struct ismtest_answer alone = ismtest_run(&problem, wanted, NULL);
            struct ismtest_answer helped = ismtest_run(&problem, wanted, team);
            check_good(&problem, &alone);
            check_algorithm(&problem, &alone);
            check_factors(&problem, &alone, alone.algorithm == METHOD_ALGORITHM_BLOCK);
            check_same(&problem, &alone, &helped);
            ismtest_forget(&alone);
            ismtest_forget(&helped);
            ismtest_free(&problem);
        }
    }
    host_team_destroy(&team);
    assert_int_equal(failures, 0);
}

/* |A| is the norm of a column that neither its products with lines nor the sizes of its terms put
 * before 20 others, of one large number each and of terms that cancel: only from the signs of one
 * of them it is found. m > 64: X and Y are not transposed. */
static void test_a_hidden_norm(void **state)
{
    (void)state;
    enum {
        N = 100,
        OTHERS = 20,
        SHOWN = 70
    };
    failures = 0;
    for (int64_t m = 1 + 3 * OTHERS; m <= SHOWN; m += SHOWN - 1 - 3 * OTHERS) {
        struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, ISMTEST_SCALE, N, m);
        uint64_t seed = 17;
        for (int64_t i = 0; i < N; i++) {
            problem.a0[i * (N + 1)] = 30;
            problem.x[i * m] = gputest_random(&seed) < 0 ? -1 : 1;
        }
        problem.y[0] = 1;
        for (int64_t k = 0; k < OTHERS; k++) {
            static const double terms[] = {20, 60, -60};
            double *y = problem.y + (2 + 2 * k) * m;
            y[0] = 0.01;
            for (int64_t t = 0; t < 3; t++) {
                problem.x[(50 + k) * m + 1 + 3 * k + t] = 1;
                y[1 + 3 * k + t] = terms[t];
            }
        }
        problem.variant = METHOD_ISM_BLOCK;
        problem.block_size = m;
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        double rcond = 1 / residual_norm(N, problem.a) / residual_norm(N, answer.inverse);
        check_algorithm(&problem, &answer);
        if (!(fabs(answer.rcond / rcond - 1) <= 1e-10))
            complain(&problem, "RCOND is off by the factor", answer.rcond / rcond);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
    assert_int_equal(failures, 0);
}

/* ---- What breaks down ---- */

/* A0 = I, and 1 + y_1^T x_1 = 0, though A is well conditioned: it exchanges two rows. */
static struct ismtest_problem exchange(enum ismtest_kind kind, int64_t n)
{
    struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, kind, n, 2);
    problem.x[0] = problem.x[3] = 1;
    problem.y[0] = problem.y[3] = -1;
    problem.y[1] = problem.y[2] = 1;
    ismtest_complete(&problem);
    return problem;
}

static void test_a_singular_block(void **state)
{
    (void)state;
    static const struct {
        int64_t n, variant, block_size;
    } rows[] = {
        {40, METHOD_ISM_SINGLE, 0}, {40, METHOD_ISM_BLOCK, 1}, {40, METHOD_ISM_REDUCED_MEMORY, 1},
        {40, METHOD_ISM_AUTO, 0},   {3, METHOD_ISM_SINGLE, 0}, /* m is no small part of n */
    };
    static const enum ismtest_kind kinds[] = {ISMTEST_DEFAULT, ISMTEST_INVERSE,
                                              ISMTEST_INVERSE_AND_A0};
    failures = 0;
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (size_t k = 0; k < COUNT(kinds); k++) {
            struct ismtest_problem problem = exchange(kinds[k], rows[i].n);
            problem.variant = rows[i].variant;
            problem.block_size = rows[i].block_size;
            struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
            bool exchanges = problem.a[1] == 1 && problem.a[0] == 0;
            assert_true(exchanges);
            const bool lu = rows[i].n == 3 && kinds[k] != ISMTEST_DEFAULT;
            if (answer.algorithm != (lu ? METHOD_ALGORITHM_LU : METHOD_ALGORITHM_BLOCK))
                complain(&problem, "METHOD", answer.algorithm);
            check_good(&problem, &answer);
            ismtest_forget(&answer);
            ismtest_free(&problem);
        }
    }
    assert_int_equal(failures, 0);
}

/* DET_RATIO is off by a few eps / RCOND; infinite where A0 is singular. */
static void check_det_ratio(const struct ismtest_problem *problem,
                            const struct ismtest_answer *answer)
{
    const double wanted = ismtest_det_ratio(problem), eps = gputest_eps(problem->precision);
    const double off = fabs(answer->det_ratio / wanted - 1) * answer->rcond / eps;
    if (isinf(wanted) ? !isinf(answer->det_ratio) : !(off <= DET_RATIO_OFF))
        complain(problem, "DET_RATIO is off by so many eps / RCOND:", off);
}

/* All else is the same where DET_RATIO, which may take a factorization, is not wanted. */
static void check_without_det_ratio(const struct ismtest_problem *problem,
                                    const struct ismtest_answer *with)
{
    struct ismtest_answer without =
        ismtest_run(problem, ISMTEST_INVERSE_WANTED | ISMTEST_DET_RATIO_UNWANTED, NULL);
    if (without.info != with->info || without.algorithm != with->algorithm ||
        !ismtest_same(without.rcond, with->rcond) ||
        memcmp(without.bytes, with->bytes, (size_t)with->byte_count) != 0)
        complain(problem, "another answer without DET_RATIO", without.rcond);
    ismtest_forget(&without);
}

/* A0's first numbers are tiny, and X Y^T puts ones in their place: A0^-1 is far larger than the
 * inverse, whose digits are lost in the difference. Double-double brings them back, and the
 * factors. */
static void test_lost_accuracy(void **state)
{
    (void)state;
    static const struct {
        double tiny;
        int64_t n;
        enum method_algorithm algorithm;
        bool factors;
    } rows[] = {
        {0.5, 70, METHOD_ALGORITHM_BLOCK, true},
        /* Double-double: */
        {1e-2, 70, METHOD_ALGORITHM_BLOCK, true},
        {1e-5, 70, METHOD_ALGORITHM_BLOCK, true},
        {1e-5, 9, METHOD_ALGORITHM_BLOCK, true},
        {1e-13, 70, METHOD_ALGORITHM_BLOCK, true},
        {1e-40, 70, METHOD_ALGORITHM_LU, false},
        {0, 70, METHOD_ALGORITHM_LU, false},
    };
    failures = 0;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const int64_t n = rows[i].n;
        struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, ISMTEST_DIAGONAL, n, 6);
        uint64_t seed = 5;
        for (int64_t j = 0; j < n; j++)
            problem.a0[j * (n + 1)] = j < 6 ? rows[i].tiny : 2 + gputest_random(&seed);
        for (int64_t j = 0; j < 6 * 6; j++) {
            problem.x[j] = gputest_random(&seed) + 3 * (j % 7 == 0);
            problem.y[j] = gputest_random(&seed) + 3 * (j % 7 == 0);
        }
        ismtest_complete(&problem);
        struct ismtest_answer answer =
            ismtest_run(&problem, ISMTEST_INVERSE_WANTED | ISMTEST_FACTORS_WANTED, NULL);
        if (answer.algorithm != (int32_t)rows[i].algorithm)
            complain(&problem, "METHOD", answer.algorithm);
        if (rows[i].tiny > 0)
            check_good(&problem, &answer);
        check_det_ratio(&problem, &answer);
        check_factors(&problem, &answer, rows[i].factors);
        check_without_det_ratio(&problem, &answer);
        double ratio = gputest_inverse_ratio(PRECISION_FP64, n, problem.a, answer.inverse);
        if (answer.info != 0 || !(ratio <= GPUTEST_RATIO_MAX))
            complain(&problem, "residual ratio", ratio);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
    assert_int_equal(failures, 0);
}

/* A0 of condition 1e8: its inverse is as good as one can be, but not the update of it. */
static void test_ill_conditioned(void **state)
{
    (void)state;
    static const enum ismtest_kind kinds[] = {ISMTEST_INVERSE_AND_A0, ISMTEST_INVERSE};
    int64_t n = 60, m = 5;
    failures = 0;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        struct ismtest_problem problem = ismtest_blank(PRECISION_FP64, kinds[k], n, m);
        uint64_t seed = 9;
        gputest_dge(8, 3, PRECISION_FP64, n, 3, problem.a0);
        for (int64_t i = 0; i < n * m; i++) {
            problem.x[i] = gputest_random(&seed);
            problem.y[i] = gputest_random(&seed);
        }
        ismtest_complete(&problem);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        double ratio = kinds[k] == ISMTEST_INVERSE
                           ? ismtest_solution_ratio(&problem, answer.inverse)
                           : gputest_inverse_ratio(PRECISION_FP64, n, problem.a, answer.inverse);
        if (answer.info != 0)
            complain(&problem, "INFO", answer.info);
        if (!(ratio <= GPUTEST_RATIO_MAX))
            complain(&problem, "residual ratio", ratio);
        ismtest_forget(&answer);
        ismtest_free(&problem);
    }
    assert_int_equal(failures, 0);
}

/* The ends of the range: all of A scaled, by way of A0 and X. */
static void test_scales(void **state)
{
    (void)state;
    static const double scales[] = {1e-300, 1e-150, 1e150, 1e300};
    failures = 0;
    for (int k = ISMTEST_SCALE; k < ISMTEST_KINDS; k++) {
        for (size_t s = 0; s < COUNT(scales); s++) {
            struct ismtest_problem problem =
                ismtest_problem(PRECISION_FP64, (enum ismtest_kind)k, 30, 4, 3);
            for (int64_t i = 0; i < 900; i++)
                problem.a0[i] *= scales[s];
            for (int64_t i = 0; i < 120; i++)
                problem.x[i] *= scales[s];
            ismtest_complete(&problem);
            struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
            double ratio = gputest_inverse_ratio(PRECISION_FP64, 30, problem.a, answer.inverse);
            if (answer.info != 0 || !(ratio <= GPUTEST_RATIO_MAX))
                complain(&problem, "at an end of the range: ratio", ratio);
            ismtest_forget(&answer);
            ismtest_free(&problem);
        }
    }
    assert_int_equal(failures, 0);
}

/* ---- What is not wanted, and memory ---- */

static void test_without_inverse(void **state)
{
    (void)state;
    for (int k = 0; k < ISMTEST_KINDS; k++) {
        struct ismtest_problem problem =
            ismtest_problem(PRECISION_FP64, (enum ismtest_kind)k, 70, 9, 8);
        struct ismtest_answer with = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        struct ismtest_answer without = ismtest_run(&problem, 0, NULL);
        assert_int_equal(with.info, without.info);
        assert_int_equal(with.algorithm, without.algorithm);
        assert_true(ismtest_same(with.rcond, without.rcond));
        assert_true(with.det_ratio == without.det_ratio);
        ismtest_forget(&with);
        ismtest_forget(&without);
        ismtest_free(&problem);
    }
}

/* What a batch takes is no more than what is set aside whatever its options are. Orders about
 * those to which scratch is rounded; n = 34 and m = 35 with blocks of 34, too. */
static void test_scratch_of_any_options(void **state)
{
    (void)state;
    static const uint32_t factors = METHOD_INPUT(METHOD_ISM_U) | METHOD_INPUT(METHOD_ISM_R);
    static const int64_t orders[] = {1, 2, 7, 8, 9, 31, 32, 33, 34, 35, 63, 64, 65, 130, 257, 600};
    int64_t wrongs = 0;
    for (size_t i = 0; i < COUNT(orders) * COUNT(orders) * COUNT(orders) * 192; i++) {
        const size_t k = i / 192;
        const int64_t n = orders[k % COUNT(orders)], m = orders[k / COUNT(orders) % COUNT(orders)];
        const int64_t options[METHOD_OPTIONS_MAX] = {[METHOD_ISM_VARIANT] = (int64_t)(i % 4),
                                                     [METHOD_ISM_BLOCK_SIZE] =
                                                         orders[k / COUNT(orders) / COUNT(orders)]};
        const uint32_t outputs =
            (i / 4 % 2 ? METHOD_INPUT(METHOD_ISM_INVERSE) : 0) | (i / 8 % 2 ? factors : 0);
        const enum precision precision = (enum precision)(i / 16 % 2);
        const struct host_task task = {.n = n,
                                       .m = m,
                                       .options = options,
                                       .inputs = method_find("ism")->input_sets[i / 32 % 6],
                                       .outputs = outputs,
                                       .wanted = outputs};
        const bool alone = (task.inputs & METHOD_INPUT(METHOD_ISM_A)) != 0;
        wrongs += method_of(precision)->task_scratch_bytes(&task) >
                  method_of(precision)->scratch_bytes(n, alone ? 0 : m);
    }
    assert_int_equal(wrongs, 0);
}

/* reduced_memory writes at least 40% less scratch than block at m = n, and none of that size. */
static void test_reduced_memory(void **state)
{
    (void)state;
    struct ismtest_problem problem =
        ismtest_problem(PRECISION_FP64, ISMTEST_DIAGONAL, 520, 520, 21);
    problem.block_size = 32;
    problem.variant = METHOD_ISM_BLOCK;
    struct ismtest_answer block = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
    problem.variant = METHOD_ISM_REDUCED_MEMORY;
    struct ismtest_answer reduced = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
    assert_int_equal(block.algorithm, METHOD_ALGORITHM_BLOCK);
    assert_int_equal(reduced.algorithm, METHOD_ALGORITHM_REDUCED_MEMORY);
    assert_true((double)reduced.touched_bytes <= 0.6 * (double)block.touched_bytes);
    assert_true((double)reduced.scratch_bytes <= 0.6 * (double)block.scratch_bytes);
    ismtest_forget(&block);
    ismtest_forget(&reduced);
    ismtest_free(&problem);
}

/* ---- A chain of updates ---- */

/* Row i of A becomes another one: x = e_i, y = what is added to it. */
static void replace_row(struct ismtest_problem *problem, int64_t i, uint64_t *seed)
{
    int64_t n = problem->n;
    memset(problem->x, 0, (size_t)n * sizeof *problem->x);
    problem->x[i] = 1;
    for (int64_t j = 0; j < n; j++) {
        double next = gputest_random(seed) + (i == j ? 4 : 0);
        problem->y[j] = next - problem->a0[i * n + j];
        problem->a[i * n + j] = problem->a0[i * n + j] + problem->y[j];
    }
}

/* As in quantum Monte Carlo: 10,000 updates of an inverse, every hundredth with A0 next to it, so
 * that the drift is seen and repaired. */
static void test_chain(void **state)
{
    (void)state;
    int64_t n = 20;
    uint64_t seed = 4;
    struct ismtest_problem problem =
        ismtest_problem(PRECISION_FP64, ISMTEST_INVERSE_AND_A0, n, 1, 12);
    failures = 0;
    for (int64_t i = 0; i < n; i++)
        problem.a0[i * (n + 1)] += 4;
    ismtest_complete(&problem);
    memcpy(problem.a, problem.a0, (size_t)(n * n) * sizeof(double));
    for (int step = 1; step <= 10000; step++) {
        bool known = step % 100 == 0;
        problem.kind = known ? ISMTEST_INVERSE_AND_A0 : ISMTEST_INVERSE;
        memcpy(problem.a0, problem.a, (size_t)(n * n) * sizeof(double));
        replace_row(&problem, step % n, &seed);
        struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
        assert_int_equal(answer.info, 0);
        assert_int_equal(isnan(answer.rcond), !known);
        double ratio = gputest_inverse_ratio(PRECISION_FP64, n, problem.a, answer.inverse);
        if (known && !(ratio <= GPUTEST_RATIO_MAX))
            complain(&problem, "ratio after a known step", ratio);
        memcpy(problem.b, answer.inverse, (size_t)(n * n) * sizeof(double));
        ismtest_forget(&answer);
    }
    ismtest_free(&problem);
    assert_int_equal(failures, 0);
}

/* An inverse that has drifted: the check sees it, and lu takes its place. */
static void test_drift(void **state)
{
    (void)state;
    struct ismtest_problem problem =
        ismtest_problem(PRECISION_FP64, ISMTEST_INVERSE_AND_A0, 50, 2, 6);
    failures = 0;
    problem.b[7] += 1e-9;
    struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
    assert_int_equal(answer.algorithm, METHOD_ALGORITHM_LU);
    double ratio = gputest_inverse_ratio(PRECISION_FP64, 50, problem.a, answer.inverse);
    assert_true(ratio <= GPUTEST_RATIO_MAX);
    ismtest_forget(&answer);
    problem.kind = ISMTEST_INVERSE; /* no one can know */
    answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
    assert_int_equal(answer.algorithm, METHOD_ALGORITHM_BLOCK);
    ismtest_forget(&answer);
    ismtest_free(&problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_a_hidden_norm),
        cmocka_unit_test(test_a_singular_block),
        cmocka_unit_test(test_lost_accuracy),
        cmocka_unit_test(test_ill_conditioned),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_without_inverse),
        cmocka_unit_test(test_scratch_of_any_options),
        cmocka_unit_test(test_reduced_memory),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_drift),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
