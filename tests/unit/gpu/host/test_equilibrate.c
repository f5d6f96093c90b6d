/* Equilibration by powers of two: every row and column gets a largest entry in [1/4, 1), whatever
 * the scales; by the rule's own symmetries; and scaling rounds once. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/linalg/equilibrate.h"
#include "tests/unit/gpu/host/matrices.h"

#define FAMILY 10000 /* matrices */
#define ORDER_MAX 8

static int below(int count, uint64_t *seed)
{
    return (int)((gputest_random(seed) + 1) / 2 * count) % count;
}

/* A matrix and its exponents, in FP64; FP32 holds the same numbers. */
struct bed {
    int64_t n;
    double *a;
    float *narrow;
    int32_t *exponents, *scratch;
    struct host_equilibrium of;
};

static struct bed make(int64_t n)
{
    struct bed bed = {.n = n,
                      .a = gputest_numbers(n * n),
                      .narrow = calloc((size_t)(n * n), sizeof(float)),
                      .exponents = malloc((size_t)(2 * n) * sizeof(int32_t)),
                      .scratch = malloc((size_t)host__equilibrate_numbers(n) * sizeof(int32_t))};
    assert_true(bed.narrow && bed.exponents && bed.scratch);
    bed.of = (struct host_equilibrium){bed.exponents, bed.exponents + n};
    return bed;
}

static void release(struct bed *bed)
{
    free(bed->a);
    free(bed->narrow);
    free(bed->exponents);
    free(bed->scratch);
}

static void equilibrate(struct bed *bed, enum precision precision, struct host_team *team)
{
    const int64_t n = bed->n;
    for (int64_t k = 0; k < n * n && precision == PRECISION_FP32; k++)
        bed->narrow[k] = (float)bed->a[k];
    if (precision == PRECISION_FP32)
        host__equilibrate_f32(team, bed->narrow, n, n, &bed->of, bed->scratch);
    else
        host__equilibrate_f64(team, bed->a, n, n, &bed->of, bed->scratch);
}

/* The largest entry of a row or a column, as scaled. */
static double largest(const struct bed *bed, bool row, int64_t line)
{
    double found = 0;
    for (int64_t k = 0; k < bed->n; k++) {
        const int64_t i = row ? line : k, j = row ? k : line;
        const double x = bed->a[i * bed->n + j];
        found = fmax(found, fabs(ldexp(x, bed->of.rows[i] + bed->of.columns[j])));
    }
    return found;
}

static void check_even(const struct bed *bed)
{
    for (int64_t line = 0; line < 2 * bed->n; line++) {
        const double x = largest(bed, line < bed->n, line % bed->n);
        if (!(x >= 0.25 && x < 1))
            fail_msg("n = %d, line %d: %g", (int)bed->n, (int)line, x);
    }
}

/* Random entries, of rows and columns of random scales, and some zeros; without a line of them. */
static void fill(struct bed *bed, int range, uint64_t *seed)
{
    const int64_t n = bed->n;
    int rows[ORDER_MAX], columns[ORDER_MAX];
    for (int64_t i = 0; i < n; i++) {
        rows[i] = below(2 * range + 1, seed) - range;
        columns[i] = below(2 * range + 1, seed) - range;
    }
    for (int64_t k = 0; k < n * n; k++) {
        const bool zero = below(3, seed) == 0 && (k / n + 1) % n != k % n;
        bed->a[k] = zero ? 0 : (double)(float)gputest_random(seed);
        bed->a[k] = ldexp(bed->a[k], (rows[k / n] + columns[k % n]) / 2);
    }
}

static void test_random_scales(void **state)
{
    (void)state;
    static const int ranges[] = {0, 1, 5, 40, 100, 900};
    uint64_t seed = 1;
    for (int k = 0; k < FAMILY; k++) {
        const int range = ranges[k % 6];
        const enum precision precision = range <= 100 && k % 2 ? PRECISION_FP32 : PRECISION_FP64;
        struct bed bed = make(1 + below(ORDER_MAX, &seed));
        fill(&bed, range, &seed);
        equilibrate(&bed, precision, NULL);
        check_even(&bed);
        release(&bed);
    }
}

/* Those of the accuracy contract. */
static void test_named_matrices(void **state)
{
    (void)state;
    static const struct {
        int64_t n;
        double a[9];
    } rows[] = {
        {1, {0x1p-1074}},
        {1, {-0x1.fffffffffffffp1023}},
        {2, {1e-300, 0, 1e-16, 1e300}},
        {2, {1e-20, 0, 1e305, 1e20}},
        {2, {1e-200, 1e-200, 1e200, -1e200}},
        {3, {1e-200, 0, 0, 0, 1, 0, 0, 0, 1e200}},
        {3, {2, 1e-9, .5e9, 1e-9, 3e-18, 1, .5e9, 1, 1e18}},
        {3, {0x1p-1074, 0, 0x1.8p1023, 0, 0x1p-1074, 1, 0x1.8p1023, 1, 0}},
    };
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        struct bed bed = make(rows[k].n);
        memcpy(bed.a, rows[k].a, (size_t)(bed.n * bed.n) * sizeof(double));
        equilibrate(&bed, PRECISION_FP64, NULL);
        check_even(&bed);
        release(&bed);
    }
}

/* Rows alone are uneven: columns keep their exponents, all of them 0. */
static void test_rows_alone(void **state)
{
    (void)state;
    struct bed bed = make(6);
    uint64_t seed = 3;
    for (int64_t k = 0; k < 36; k++)
        bed.a[k] = ldexp(0.75 + gputest_random(&seed) / 8, -(int)(k / 6) * 7);
    equilibrate(&bed, PRECISION_FP64, NULL);
    check_even(&bed);
    for (int64_t i = 0; i < 6; i++)
        assert_true(bed.of.columns[i] == 0 && bed.of.rows[i] == (int)i * 7);
    release(&bed);
}

/* A line of zeros stays as it is, and is in no other's way. */
static void test_zeros(void **state)
{
    (void)state;
    struct bed bed = make(3);
    equilibrate(&bed, PRECISION_FP64, NULL);
    for (int64_t i = 0; i < 6; i++)
        assert_int_equal(bed.exponents[i], 0);
    bed.a[0] = 0x1p40;
    bed.a[4] = 0x1p-40;
    equilibrate(&bed, PRECISION_FP64, NULL);
    assert_int_equal(bed.of.rows[2], 0);
    assert_int_equal(bed.of.columns[2], 0);
    for (int64_t i = 0; i < 2; i++)
        assert_true(largest(&bed, true, i) >= 0.25 && largest(&bed, true, i) < 1);
    release(&bed);
}

/* 2^k A has the same exponents but for the level, a symmetric A the same for rows and columns. */
static void test_symmetries(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int k = 0; k < 1000; k++) {
        struct bed bed = make(1 + below(ORDER_MAX, &seed)), other = make(bed.n);
        fill(&bed, 30, &seed);
        for (int64_t e = 0; e < bed.n * bed.n; e++) {
            const int64_t mirrored = e % bed.n * bed.n + e / bed.n;
            bed.a[e] = e < mirrored ? bed.a[e] : bed.a[mirrored];
            other.a[e] = ldexp(bed.a[e], k % 900);
        }
        equilibrate(&bed, PRECISION_FP64, NULL);
        equilibrate(&other, PRECISION_FP64, NULL);
        for (int64_t i = 0; i < bed.n; i++) {
            assert_int_equal(bed.of.rows[i] - bed.of.columns[i],
                             bed.of.rows[0] - bed.of.columns[0]);
            assert_int_equal(bed.of.rows[i] - other.of.rows[i], k % 900);
            assert_int_equal(bed.of.columns[i], other.of.columns[i]);
        }
        release(&other);
        release(&bed);
    }
}

static void test_teams(void **state)
{
    (void)state;
    struct host_team *team;
    struct failure failure = {0};
    struct bed bed = make(600);
    int32_t exponents[1200];
    uint64_t seed = 6;
    assert_int_equal(host_team_create(3, 0, &team, &failure), ERROR_NONE);
    for (int64_t k = 0; k < bed.n * bed.n; k++)
        bed.a[k] = ldexp(gputest_random(&seed), (int)(k / 600 % 37 * 11 - k % 600 % 41 * 9));
    equilibrate(&bed, PRECISION_FP64, NULL);
    check_even(&bed);
    memcpy(exponents, bed.exponents, sizeof exponents);
    equilibrate(&bed, PRECISION_FP64, team);
    assert_memory_equal(exponents, bed.exponents, sizeof exponents);
    host_team_destroy(&team);
    release(&bed);
}

/* As ldexp: rounded once where the result is subnormal, and infinite beyond the range. */
static void test_scaling(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int k = 0; k < 100000; k++) {
        const int32_t row = below(4000, &seed) - 2000, column = below(400, &seed) - 200;
        const struct host_scaling by = {&row, &column, k % 2 ? 1 : -1, k / 2 % 2 ? 1 : -1};
        const int exponent = by.row_sign * row + by.column_sign * column;
        const double x = ldexp(gputest_random(&seed), below(2000, &seed) - 1000);
        const float y = ldexpf((float)gputest_random(&seed), below(200, &seed) - 100);
        double wide, sum;
        float narrow;
        host__scale_f64(NULL, &x, 1, &wide, 1, 1, &by);
        assert_true(wide == ldexp(x, exponent));
        assert_true(host__scaled_norm_f64(NULL, &x, 1, 1, &by, &sum) == fabs(wide));
        host__scale_f32(NULL, &y, 1, &narrow, 1, 1, &by);
        assert_true(narrow == ldexpf(y, exponent));
        assert_true(host__scaled_norm_f32(NULL, &y, 1, 1, &by, &sum) == (double)fabsf(narrow));
    }
}

/* Of several pieces; a NaN stays. */
static void test_scaled_norm(void **state)
{
    (void)state;
    struct bed bed = make(300);
    const struct host_scaling by = {bed.of.rows, bed.of.columns, 1, -1};
    double *scaled = gputest_numbers(300 * 300), sums[300], largest = 0;
    uint64_t seed = 8;
    for (int64_t i = 0; i < 300; i++) {
        bed.of.rows[i] = below(20, &seed);
        bed.of.columns[i] = below(20, &seed);
    }
    for (int64_t k = 0; k < 300 * 300; k++)
        bed.a[k] = gputest_random(&seed);
    host__scale_f64(NULL, bed.a, 300, scaled, 300, 300, &by);
    for (int64_t j = 0; j < 300; j++) {
        double sum = 0;
        for (int64_t i = 0; i < 300; i++)
            sum += fabs(scaled[i * 300 + j]);
        largest = fmax(largest, sum);
    }
    assert_true(host__scaled_norm_f64(NULL, bed.a, 300, 300, &by, sums) == largest);
    bed.a[260] = NAN;
    assert_true(isnan(host__scaled_norm_f64(NULL, bed.a, 300, 300, &by, sums)));
    free(scaled);
    release(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_scales), cmocka_unit_test(test_named_matrices),
        cmocka_unit_test(test_rows_alone),    cmocka_unit_test(test_zeros),
        cmocka_unit_test(test_symmetries),    cmocka_unit_test(test_teams),
        cmocka_unit_test(test_scaling),       cmocka_unit_test(test_scaled_norm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
