/* Parts of a tridiagonal inverse on the host: blocks, generators, tiles that a team writes. Their
 * bits are those of the whole inverse, whatever the part and the one that writes it. And auto,
 * which finds such a matrix among dense ones. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/base/team.h"
#include "gpu/methods/tridiagonal.h"
#include "tests/unit/gpu/host/band_run.h"
#include "tests/unit/gpu/host/bands.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
    AUTO = METHOD_TRIDIAGONAL_AUTO,
    MERGED = METHOD_TRIDIAGONAL_SHERMAN_MORRISON,
    SWEPT = METHOD_TRIDIAGONAL_TWO_SWEEP,
    PIVOTED = METHOD_TRIDIAGONAL_PIVOTED,
    VARIANTS
};

static struct gputest_band_answer run(const struct gputest_bands *a, int variant,
                                      struct method_range rows, struct method_range columns)
{
    struct gputest_band_request request = {
        .variant = variant, .inverse = true, .rows = rows, .columns = columns};
    return gputest_band_run(a, &request);
}

static const struct method_range everything = {0, 0};

/* ---- Blocks ---- */

/* Is the block what the whole has there, bit for bit? */
static void check_block(const struct gputest_bands *a, int variant,
                        const struct gputest_band_answer *whole, struct method_range rows,
                        struct method_range columns)
{
    int64_t width = columns.end - columns.first;
    struct gputest_band_answer block = run(a, variant, rows, columns);
    assert_int_equal(block.info, whole->info);
    assert_int_equal(block.algorithm, whole->algorithm);
    assert_memory_equal(&block.rcond, &whole->rcond, sizeof block.rcond);
    for (int64_t i = rows.first; i < rows.end; i++)
        assert_memory_equal(block.x + (i - rows.first) * width, whole->x + i * a->n + columns.first,
                            (size_t)width * sizeof(double));
    gputest_band_free(&block);
}

static void check_blocks(enum gputest_bands_kind kind, enum precision precision, int64_t n,
                         int variant)
{
    struct gputest_bands a = gputest_bands_make(kind, precision, n, (uint64_t)n);
    struct gputest_band_answer whole = run(&a, variant, everything, everything);
    const struct method_range ranges[] = {
        {0, 1}, {n - 1, n}, {0, n}, {n / 2, n / 2 + 1}, {n / 3, n - n / 4}};
    for (size_t k = 0; k < COUNT(ranges) * COUNT(ranges); k++)
        check_block(&a, variant, &whole, ranges[k / COUNT(ranges)], ranges[k % COUNT(ranges)]);
    gputest_band_free(&whole);
    gputest_bands_free(&a);
}

static void test_blocks(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 2, 3, 5, 64, 65};
    for (size_t i = 0; i < COUNT(orders) * BANDS_KINDS; i++)
        for (int k = 0; k < VARIANTS * PRECISION_COUNT; k++)
            check_blocks((enum gputest_bands_kind)(i % BANDS_KINDS), (enum precision)(k / VARIANTS),
                         orders[i / BANDS_KINDS], k % VARIANTS);
}

/* Orders beyond a tile's rows, a strip's columns and a tile's columns. */
static void test_blocks_of_many_tiles(void **state)
{
    (void)state;
    static const struct {
        int64_t n;
        enum gputest_bands_kind kind;
    } rows[] = {{129, BANDS_FAR}, {700, BANDS_DECOUPLED}, {700, BANDS_RANDOM}, {600, BANDS_ILL}};
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int variant = 0; variant < VARIANTS; variant++)
            check_blocks(rows[i].kind, (enum precision)(i % 2), rows[i].n, variant);
    struct gputest_bands a = gputest_bands_make(BANDS_CONDITION_2, PRECISION_FP64, 5000, 1);
    struct method_range wide = {0, 5000}, narrow = {4090, 4100};
    struct gputest_band_answer line = run(&a, AUTO, narrow, wide);
    struct gputest_band_answer corner = run(&a, AUTO, narrow, narrow);
    for (int64_t i = 0; i < 10; i++)
        assert_memory_equal(line.x + i * 5000 + 4090, corner.x + i * 10, 10 * sizeof(double));
    gputest_band_free(&line);
    gputest_band_free(&corner);
    gputest_bands_free(&a);
}

/* (-1, 2, -1), whose inverse is known. */
static void test_blocks_of_large_orders(void **state)
{
    (void)state;
    enum {
        N = 100000,
        SIDE = 8
    };
    struct gputest_bands a = gputest_bands_make(BANDS_LAPLACE, PRECISION_FP64, N, 5);
    const struct method_range ranges[] = {
        {0, SIDE}, {N - SIDE, N}, {N / 2, N / 2 + SIDE}, {N / 2 - 100, N / 2 - 100 + SIDE}};
    for (size_t k = 0; k < VARIANTS * COUNT(ranges); k++) {
        struct method_range rows = ranges[k / VARIANTS], columns = ranges[2];
        struct gputest_band_answer block = run(&a, (int)(k % VARIANTS), rows, columns);
        assert_int_equal(block.info, 0);
        for (int64_t e = 0; e < SIDE * SIDE; e++) {
            int64_t i = rows.first + e / SIDE, j = columns.first + e % SIDE;
            int64_t low = i < j ? i : j, high = i + j - low;
            double x = (double)(low + 1) * (double)(N - high) / (N + 1);
            assert_true(fabs(block.x[e] / x - 1) < 1e-9);
        }
        gputest_band_free(&block);
    }
    gputest_bands_free(&a);
}

/* No inverse: the block is NaN, and nothing next to it is written. */
static void test_blocks_without_inverse(void **state)
{
    (void)state;
    struct gputest_bands a = gputest_bands_make(BANDS_LAPLACE, PRECISION_FP64, 9, 5);
    struct method_range rows = {2, 5}, columns = {8, 9};
    for (int k = 0; k < 2 * VARIANTS; k++) {
        gputest_bands_fill(&a, k % 2 ? 0 : -1, k % 2 ? 0 : (double)NAN, -1);
        struct gputest_band_answer block = run(&a, k / 2, rows, columns);
        assert_int_equal(block.info, k % 2 ? 1 : -1);
        for (int i = 0; i < 3; i++)
            assert_true(isnan(block.x[i]));
        gputest_band_free(&block);
    }
    gputest_bands_free(&a);
}

/* ---- Generators ---- */

static double generated(const struct gputest_band_answer *answer, int64_t n, int64_t i, int64_t j)
{
    int row = i <= j ? 0 : 2;
    const double *g = answer->generators + row * n;
    const int32_t *e = answer->exponents + row * n;
    int64_t exponent = 64 * ((int64_t)e[i] + e[n + j]);
    return ldexp(g[i] * g[n + j], (int)(exponent < -4000 ? -4000 : exponent));
}

static void check_generators(enum gputest_bands_kind kind, enum precision precision, int64_t n,
                             int variant)
{
    struct gputest_bands a = gputest_bands_make(kind, precision, n, (uint64_t)n);
    struct gputest_band_request request = {
        .variant = variant, .inverse = true, .diagonal = true, .generators = true};
    struct gputest_band_answer answer = gputest_band_run(&a, &request);
    bool none = answer.info < 0 || (answer.info > 0 && answer.info <= n);
    double eps = gputest_eps(precision), largest = 0;
    for (int64_t k = 0; k < 4 * n; k++) {
        double size = fabs(answer.generators[k]);
        assert_true(none ? isnan(size) : size == 0 || (size >= 0x1p-32 && size <= 0x1p32));
    }
    for (int64_t k = 0; !none && k < n * n; k++)
        largest = fmax(largest, fabs(answer.x[k]));
    for (int64_t k = 0; !none && k < n * n; k++) {
        double x = answer.x[k], g = generated(&answer, n, k / n, k % n);
        bool exact = precision == PRECISION_FP64 &&
                     answer.algorithm != METHOD_ALGORITHM_SHERMAN_MORRISON && k / n != k % n &&
                     fabs(x) > 0x1p-1000;
        if (exact || isinf(x))
            assert_true(isinf(x) ? fabs(g) > DBL_MAX / 2 || precision == PRECISION_FP32 : g == x);
        else
            assert_true(fabs(g - x) <= 4 * (double)n * eps * largest);
    }
    gputest_band_free(&answer);
    gputest_bands_free(&a);
}

static void test_generators(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 2, 3, 17, 100};
    for (size_t i = 0; i < COUNT(orders) * BANDS_KINDS; i++)
        for (int k = 0; k < VARIANTS * PRECISION_COUNT; k++)
            check_generators((enum gputest_bands_kind)(i % BANDS_KINDS),
                             (enum precision)(k / VARIANTS), orders[i / BANDS_KINDS], k % VARIANTS);
}

/* They are the same whatever else is asked for, and ordinary matrices need no exponents. */
static void test_generators_alone(void **state)
{
    (void)state;
    enum {
        N = 300
    };
    struct gputest_bands a = gputest_bands_make(BANDS_LAPLACE, PRECISION_FP64, N, 1);
    for (int variant = 0; variant < VARIANTS; variant++) {
        struct gputest_band_request request = {.variant = variant, .generators = true};
        struct gputest_band_answer alone = gputest_band_run(&a, &request);
        request.inverse = request.diagonal = true;
        struct gputest_band_answer adjacent = gputest_band_run(&a, &request);
        assert_memory_equal(alone.generators, adjacent.generators, 4 * N * sizeof(double));
        assert_memory_equal(alone.exponents, adjacent.exponents, 4 * N * sizeof(int32_t));
        assert_int_equal(alone.algorithm, adjacent.algorithm);
        for (int i = 0; i < 4 * N; i++)
            assert_int_equal(alone.exponents[i], 0);
        gputest_band_free(&alone);
        gputest_band_free(&adjacent);
    }
    gputest_bands_free(&a);
}

/* ---- Entries that fall fast, and parts that do not meet ---- */

/* Diagonal 1, and next to it what makes entries fall by so much a row; cuts: every so many rows
 * nothing next to it. */
static void make_falling(struct gputest_bands *a, double fall, int64_t cuts)
{
    gputest_bands_fill(a, fall, 1, -fall);
    for (int64_t i = cuts; cuts > 0 && i < a->n; i += cuts)
        a->dl[i - 1] = i % 2 ? 0 : fall, a->du[i - 1] = i % 2 ? -fall : 0;
}

/* Every variant agrees with the closed form to first order: X_ij is the product of what lies
 * between, negated, or nothing. */
static void test_falling_entries(void **state)
{
    (void)state;
    static const struct {
        double fall;
        int64_t cuts;
    } rows[] = {{1e-4, 0}, {1e-30, 0}, {1e-300, 0}, {1e-4, 3}, {1e-5, 1}, {0x1p-40, 50}};
    enum {
        N = 300
    };
    for (size_t k = 0; k < COUNT(rows) * VARIANTS * PRECISION_COUNT; k++) {
        size_t row = k / VARIANTS / PRECISION_COUNT;
        enum precision precision = (enum precision)(k % 2);
        double fall = precision == PRECISION_FP32 ? fmax(rows[row].fall, 1e-37) : rows[row].fall;
        struct gputest_bands a = gputest_bands_make(BANDS_LAPLACE, precision, N, 1);
        make_falling(&a, precision == PRECISION_FP32 ? (double)(float)fall : fall, rows[row].cuts);
        struct gputest_band_answer answer =
            run(&a, (int)(k / 2 % VARIANTS), everything, everything);
        double least = precision == PRECISION_FP32 ? 0x1p-149 : 0x1p-1074;
        assert_int_equal(answer.info, 0);
        for (int64_t i = 0; i < N; i++) {
            double right = 1, left = 1;
            for (int64_t j = i; j < N; j++) {
                double x = answer.x[i * N + j], y = answer.x[j * N + i];
                assert_true(fabs(x - right) <= 1e-4 * fabs(right) + least);
                assert_true(fabs(y - left) <= 1e-4 * fabs(left) + least);
                right *= j + 1 < N ? -a.du[j] : 0;
                left *= j + 1 < N ? -a.dl[j] : 0;
            }
        }
        gputest_band_free(&answer);
        gputest_bands_free(&a);
    }
}

/* Entries near the end of the range are written one by one. */
static void test_huge_entries(void **state)
{
    (void)state;
    for (int variant = 0; variant < VARIANTS; variant++) {
        struct gputest_bands a = gputest_bands_make(BANDS_LAPLACE, PRECISION_FP64, 150, 1);
        gputest_bands_fill(&a, -1, 3, -1);
        struct gputest_band_answer plain = run(&a, variant, everything, everything);
        gputest_bands_fill(&a, -0x1p-1000, 3 * 0x1p-1000, -0x1p-1000);
        struct gputest_band_answer huge = run(&a, variant, everything, everything);
        assert_int_equal(huge.info, 0);
        for (int64_t i = 0; i < a.n * a.n; i++)
            assert_true(huge.x[i] == plain.x[i] * 0x1p1000);
        gputest_band_free(&plain);
        gputest_band_free(&huge);
        gputest_bands_free(&a);
    }
}

/* ---- Teams ---- */

/* Large enough for tiles, and the second and third for stores past the caches. */
static void test_threads_make_no_difference(void **state)
{
    (void)state;
    static const struct {
        int64_t n;
        enum precision precision;
        enum gputest_bands_kind kind;
        int variant;
    } rows[] = {{600, PRECISION_FP64, BANDS_ALTERNATING, MERGED},
                {1501, PRECISION_FP64, BANDS_LAPLACE, SWEPT},
                {2101, PRECISION_FP32, BANDS_RANDOM, PIVOTED},
                {700, PRECISION_FP64, BANDS_FAR, AUTO}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t n = rows[i].n;
        struct gputest_bands a = gputest_bands_make(rows[i].kind, rows[i].precision, n, 3);
        struct gputest_band_request request = {.variant = rows[i].variant, .inverse = true};
        struct gputest_band_answer alone = gputest_band_run(&a, &request);
        for (int helpers = 1; helpers <= 3; helpers += 2) {
            struct failure failure;
            assert_int_equal(host_team_create(helpers, 0, &request.team, &failure), ERROR_NONE);
            struct gputest_band_answer helped = gputest_band_run(&a, &request);
            assert_memory_equal(helped.x, alone.x, (size_t)(n * n) * sizeof(double));
            gputest_band_free(&helped);
            host_team_destroy(&request.team);
        }
        struct method_range middle = {n / 2 - 5, n / 2 + 150};
        check_block(&a, rows[i].variant, &alone, middle, middle);
        assert_true(gputest_band_ratio(&a, alone.x) <= GPUTEST_RATIO_MAX);
        gputest_band_free(&alone);
        gputest_bands_free(&a);
    }
}

/* ---- auto ---- */

static double *dense(const struct gputest_bands *a)
{
    int64_t n = a->n;
    double *x = gputest_numbers(n * n);
    for (int64_t i = 0; i < n; i++) {
        x[i * n + i] = a->d[i];
        if (i + 1 < n) {
            x[i * n + i + 1] = a->du[i];
            x[(i + 1) * n + i] = a->dl[i];
        }
    }
    return x;
}

/* No worse than lu, by the contract's ratio; and lu's word on what is singular. */
static void test_auto_on_dense_matrices(void **state)
{
    (void)state;
    static const int64_t orders[] = {3, 4, 33, 100, 300};
    for (size_t k = 0; k < COUNT(orders) * BANDS_KINDS * PRECISION_COUNT; k++) {
        int64_t n = orders[k / BANDS_KINDS / PRECISION_COUNT];
        enum gputest_bands_kind kind = (enum gputest_bands_kind)(k / PRECISION_COUNT % BANDS_KINDS);
        enum precision precision = (enum precision)(k % PRECISION_COUNT);
        struct gputest_bands a = gputest_bands_make(kind, precision, n, (uint64_t)k);
        double *matrix = dense(&a);
        struct gputest_answer automatic = gputest_run("auto", precision, n, matrix, false);
        struct gputest_answer lu = gputest_run("lu", precision, n, matrix, false);
        if (automatic.algorithm == METHOD_ALGORITHM_TRIDIAGONAL) {
            assert_int_equal(automatic.info, 0);
            assert_true(gputest_band_ratio(&a, automatic.inverse) <= GPUTEST_RATIO_MAX);
        } else if (automatic.algorithm == METHOD_ALGORITHM_LU) {
            assert_int_equal(automatic.info, lu.info);
            assert_memory_equal(automatic.inverse, lu.inverse, (size_t)(n * n) * sizeof(double));
        }
        bool good = kind == BANDS_CONDITION_2 || kind == BANDS_LAPLACE || kind == BANDS_LARGE;
        if (good)
            assert_int_equal(automatic.algorithm, METHOD_ALGORITHM_TRIDIAGONAL);
        gputest_free(&automatic);
        gputest_free(&lu);
        free(matrix);
        gputest_bands_free(&a);
    }
}

/* One number anywhere else, and it is not tridiagonal. */
static void test_auto_sees_every_entry(void **state)
{
    (void)state;
    enum {
        N = 9
    };
    struct gputest_bands a = gputest_bands_make(BANDS_LAPLACE, PRECISION_FP64, N, 1);
    for (int64_t k = 0; k < N * N; k++) {
        int64_t i = k / N, j = k % N;
        double *matrix = dense(&a);
        matrix[k] += 0.25;
        struct gputest_answer answer = gputest_run("auto", PRECISION_FP64, N, matrix, false);
        bool adjacent = i - j <= 1 && j - i <= 1;
        assert_int_equal(answer.algorithm,
                         adjacent ? METHOD_ALGORITHM_TRIDIAGONAL : METHOD_ALGORITHM_LU);
        assert_int_equal(answer.info, 0);
        gputest_free(&answer);
        free(matrix);
    }
    double two[] = {2, 1, 1, 3};
    struct gputest_answer answer = gputest_run("auto", PRECISION_FP64, 2, two, false);
    assert_int_equal(answer.algorithm, METHOD_ALGORITHM_LU);
    gputest_free(&answer);
    gputest_bands_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_blocks_of_many_tiles),
        cmocka_unit_test(test_blocks_of_large_orders),
        cmocka_unit_test(test_blocks_without_inverse),
        cmocka_unit_test(test_generators),
        cmocka_unit_test(test_generators_alone),
        cmocka_unit_test(test_falling_entries),
        cmocka_unit_test(test_huge_entries),
        cmocka_unit_test(test_threads_make_no_difference),
        cmocka_unit_test(test_auto_on_dense_matrices),
        cmocka_unit_test(test_auto_sees_every_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
