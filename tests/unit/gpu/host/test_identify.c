/* The passes that tell what kind of matrix one is: against sums done plainly, tile by tile and
 * whole, with a team and without. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/linalg/dense.h"
#include "gpu/host/linalg/identify.h"
#include "gpu/host/linalg/transpose.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const int64_t orders[] = {1, 2, 3, 17, 64, 255, 256, 257, 300, 513};

static double *random_matrix(int64_t n, uint64_t seed)
{
    double *a = gputest_numbers(n * n);
    for (int64_t i = 0; i < n * n; i++)
        a[i] = (double)(float)gputest_random(&seed);
    return a;
}

static float *narrow_copy(const double *a, int64_t count)
{
    float *narrow = malloc((size_t)count * sizeof *narrow);
    assert_non_null(narrow);
    for (int64_t i = 0; i < count; i++)
        narrow[i] = (float)a[i];
    return narrow;
}

static struct host_identity identify(struct host_team *team, const double *a, int64_t n)
{
    double *lines = gputest_numbers(host__identify_lines(n) * n);
    struct host_identity identity = host__identify_f64(team, a, n, n, lines, n);
    free(lines);
    return identity;
}

static struct host_identity identify_narrow(const double *a, int64_t n)
{
    float *narrow = narrow_copy(a, n * n), *lines = narrow_copy(a, n * n);
    lines = realloc(lines, (size_t)(host__identify_lines(n) * n) * sizeof *lines);
    assert_non_null(lines);
    struct host_identity identity = host__identify_f32(NULL, narrow, n, n, lines, n);
    free(narrow);
    free(lines);
    return identity;
}

static double value(struct host_norm norm)
{
    assert_true(norm.finite);
    return ldexp(norm.fraction, norm.exponent);
}

static bool near(double a, double b, double relative)
{
    return fabs(a - b) <= relative * fabs(b);
}

/* ---- Norms ---- */

static double norm_inf(int64_t n, const double *a)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += fabs(a[i * n + j]);
        largest = fmax(largest, sum);
    }
    return largest;
}

/* Of rows and columns. */
static double min_sum(int64_t n, const double *a)
{
    double least = HUGE_VAL;
    for (int64_t i = 0; i < n; i++) {
        double row = 0, column = 0;
        for (int64_t j = 0; j < n; j++) {
            row += fabs(a[i * n + j]);
            column += fabs(a[j * n + i]);
        }
        least = fmin(least, fmin(row, column));
    }
    return least;
}

static double norm_frobenius(int64_t n, const double *a)
{
    double sum = 0;
    for (int64_t i = 0; i < n * n; i++)
        sum += a[i] * a[i];
    return sqrt(sum);
}

static void test_norms(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(orders); k++) {
        int64_t n = orders[k];
        double *a = random_matrix(n, (uint64_t)n);
        struct host_identity wide = identify(NULL, a, n), narrow = identify_narrow(a, n);
        assert_true(wide.finite && narrow.finite);
        assert_true(near(value(wide.norm_1), residual_norm(n, a), 1e-13));
        assert_true(near(value(wide.norm_inf), norm_inf(n, a), 1e-13));
        assert_true(near(value(narrow.norm_1), residual_norm(n, a), 1e-5));
        assert_true(near(value(narrow.norm_inf), norm_inf(n, a), 1e-5));
        assert_true(near(wide.min, min_sum(n, a), 1e-13));
        assert_true(near(narrow.min, min_sum(n, a), 1e-5));
        double *lines = gputest_numbers(host__identify_lines(n) * n);
        struct host_measure measure = host__measure_f64(NULL, a, n, n, -2, lines, n);
        assert_true(near(measure.norm_1, 2 * residual_norm(n, a), 1e-13));
        assert_true(near(measure.frobenius, 2 * norm_frobenius(n, a), 1e-13));
        free(lines);
        free(a);
    }
}

/* ---- Dominance ---- */

static void test_dominance(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(orders); k++) {
        int64_t n = orders[k], row = n / 2;
        double *a = gputest_numbers(n * n);
        /* Halves, so that every sum is exact. */
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < n; j++)
                a[i * n + j] = i == j ? (double)n : (i + j) % 2 ? 0.5 : -0.5;
        }
        double others = (double)(n - 1) / 2;
        struct host_identity identity = identify(NULL, a, n);
        assert_true(identity.dominant);
        assert_true(near(identity.dominance, others / (double)n, 1e-15));
        /* As large as the others together is not enough, whatever its sign. */
        a[row * (n + 1)] = -others;
        assert_false(identify(NULL, a, n).dominant);
        a[row * (n + 1)] = -others - 0.25;
        assert_true(identify(NULL, a, n).dominant);
        a[row * (n + 1)] = 0;
        identity = identify(NULL, a, n);
        assert_false(identity.dominant);
        assert_true(isinf(identity.dominance));
        free(a);
    }
}

/* ---- Zeros ---- */

static void test_zero_lines(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(orders); k++) {
        int64_t n = orders[k], at = n - 1 - n / 3;
        double *a = random_matrix(n, 5);
        struct host_identity identity = identify(NULL, a, n);
        assert_true(identity.zero_column == 0 && identity.zero_row == 0);
        for (int64_t i = 0; i < n; i++)
            a[i * n + at] = i == n / 2 ? 4.9e-324 : 0;
        identity = identify(NULL, a, n);
        assert_int_equal(identity.zero_column, 0);
        assert_true(identity.min == 4.9e-324);
        a[n / 2 * n + at] = -0.0;
        assert_int_equal(identify(NULL, a, n).zero_column, at + 1);
        memset(a + at * n, 0, (size_t)n * sizeof *a);
        assert_int_equal(identify(NULL, a, n).zero_row, at + 1);
        assert_int_equal(identify_narrow(a, n).zero_row, at + 1);
        free(a);
    }
}

/* ---- What is not finite, and what only adds up to it ---- */

static void test_not_finite(void **state)
{
    (void)state;
    static const double poisons[] = {NAN, INFINITY, -INFINITY};
    for (size_t k = 0; k < COUNT(orders) * COUNT(poisons); k++) {
        int64_t n = orders[k / COUNT(poisons)], places[] = {0, n - 1, n * n / 2, n * n - 1};
        double *a = random_matrix(n, 6);
        for (size_t j = 0; j < COUNT(places); j++) {
            double old = a[places[j]];
            a[places[j]] = poisons[k % COUNT(poisons)];
            assert_false(identify(NULL, a, n).finite);
            assert_false(identify_narrow(a, n).finite);
            a[places[j]] = old;
        }
        free(a);
    }
}

static void test_sums_may_overflow(void **state)
{
    (void)state;
    int64_t n = 300;
    double *a = gputest_numbers(n * n);
    for (int64_t i = 0; i < n * n; i++)
        a[i] = i / n == i % n ? DBL_MAX : -DBL_MAX / 1024;
    struct host_identity identity = identify(NULL, a, n);
    assert_true(identity.finite && identity.dominant);
    double norm = ldexp(identity.norm_1.fraction, identity.norm_1.exponent - DBL_MAX_EXP);
    assert_true(near(norm, 1 + 299.0 / 1024, 1e-14));
    free(a);
}

/* ---- The same bits, the one that helps, and whichever way the tiles come ---- */

static void test_bits_do_not_depend_on_the_team(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(orders); k++) {
        int64_t n = orders[k];
        double *a = random_matrix(n, 8);
        struct host_identity first = identify(NULL, a, n);
        for (int helpers = 0; helpers < 4; helpers++) {
            struct failure failure = {0};
            struct host_team *team = NULL;
            assert_int_equal(host_team_create(helpers, 0, &team, &failure), ERROR_NONE);
            struct host_identity other = identify(team, a, n);
            assert_true(other.norm_1.fraction == first.norm_1.fraction);
            assert_true(other.norm_inf.fraction == first.norm_inf.fraction);
            assert_true(other.dominance == first.dominance);
            host_team_destroy(&team);
        }
        free(a);
    }
}

/* Tiles in a buffer of their own, one after another: the same sums, bit for bit. */
static void test_tiles_from_elsewhere(void **state)
{
    (void)state;
    enum {
        N = 600,
        TILE = HOST_IDENTIFY_TILE
    };
    double *a = random_matrix(N, 9), *tile = gputest_numbers((int64_t)TILE * TILE);
    double *columns = gputest_numbers((int64_t)N * 3), *rows = gputest_numbers(N);
    for (int64_t i = 0; i < N; i += TILE) {
        for (int64_t j = 0; j < N; j += TILE) {
            int64_t height = N - i < TILE ? N - i : TILE, width = N - j < TILE ? N - j : TILE;
            for (int64_t r = 0; r < height; r++)
                memcpy(tile + r * TILE, a + (i + r) * N + j, (size_t)width * sizeof *tile);
            host__identify_tile_f64(tile, TILE, height, width, 1, columns + i / TILE * N + j,
                                    rows + i);
        }
    }
    double one = 0, inf = 0;
    for (int64_t j = 0; j < N; j++) {
        one = fmax(one, columns[j] + columns[N + j] + columns[2 * N + j]);
        inf = fmax(inf, rows[j]);
    }
    struct host_identity identity = identify(NULL, a, N);
    assert_true(value(identity.norm_1) == one);
    assert_true(value(identity.norm_inf) == inf);
    free(a);
    free(tile);
    free(columns);
    free(rows);
}

/* ---- Transposes ---- */

/* Numbers that begin with a line of a cache. */
static void *lines(int64_t bytes)
{
    void *zeros = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
    assert_non_null(zeros);
    return memset(zeros, 0, (size_t)bytes);
}

#define SIDE 144 /* of the memory that a transpose lies in */

/* skip: where the arrays begin. Nothing next to the result is written. */
static void try_shares(int64_t rows, int64_t columns, int64_t from_ld, int64_t to_ld, int64_t skip,
                       enum host_writes writes)
{
    const int64_t all = (int64_t)SIDE * SIDE;
    double *a = random_matrix(SIDE, 4), *x = lines(all * (int64_t)sizeof *x);
    float *narrow = narrow_copy(a, all), *y = lines(all * (int64_t)sizeof *y);
    for (int64_t first = 0; first < rows; first += HOST_TRANSPOSE_ROWS) {
        host__transpose_rows_f64(a + skip, from_ld, rows, columns, x + skip, to_ld, -0.5, writes,
                                 first);
        host__transpose_rows_f32(narrow + skip, from_ld, rows, columns, y + skip, to_ld, -0.5F,
                                 writes, first);
    }
    for (int64_t k = 0; k < all; k++) {
        int64_t j = (k - skip) / to_ld, i = (k - skip) % to_ld;
        bool written = k >= skip && j < columns && i < rows;
        double expected = written ? -0.5 * a[skip + i * from_ld + j] : 0;
        assert_true(x[k] == expected && (double)y[k] == expected);
    }
    free(a);
    free(x);
    free(narrow);
    free(y);
}

static void test_transposed_shares(void **state)
{
    (void)state;
    static const int64_t sizes[] = {0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 80, 129};
    for (size_t k = 0; k < COUNT(sizes) * COUNT(sizes); k++) {
        int64_t rows = sizes[k / COUNT(sizes)], columns = sizes[k % COUNT(sizes)];
        for (int writes = HOST_WRITES_NEAR; writes <= HOST_WRITES_PAST; writes++) {
            try_shares(rows, columns, columns + 3, rows + 2, 1, writes); /* few rows are aligned */
            try_shares(rows, columns, columns, rows + 5, 7, writes);
            try_shares(rows, columns, columns + 3, SIDE, 0, writes); /* every row is */
            try_shares(rows, columns, columns, SIDE, 3, writes);     /* all miss by as much */
        }
    }
}

static void try_whole_transpose(int64_t n, int64_t to_ld)
{
    const int64_t bytes = n * to_ld * (int64_t)sizeof(double);
    double *a = random_matrix(n, 6), *x = lines(bytes);
    float *narrow = narrow_copy(a, n * n), *y = lines(bytes / 2);
    host__transpose_f64(NULL, a, n, x, to_ld, n, 2);
    host__transpose_f32(NULL, narrow, n, y, to_ld, n, 2);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            assert_true(x[j * to_ld + i] == 2 * a[i * n + j]);
            assert_true(y[j * to_ld + i] == 2 * narrow[i * n + j]);
        }
    }
    free(a);
    free(x);
    free(narrow);
    free(y);
}

/* In a core's caches, larger than they are, larger than all caches. */
static void test_whole_transposes(void **state)
{
    (void)state;
    static const int64_t sizes[] = {200, 203, 512, 555, 1023, 2048, 2051};
    for (size_t k = 0; k < COUNT(sizes); k++) {
        try_whole_transpose(sizes[k], sizes[k]);
        try_whole_transpose(sizes[k], host__ld(PRECISION_FP64, sizes[k]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_dominance),
        cmocka_unit_test(test_zero_lines),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_sums_may_overflow),
        cmocka_unit_test(test_bits_do_not_depend_on_the_team),
        cmocka_unit_test(test_tiles_from_elsewhere),
        cmocka_unit_test(test_transposed_shares),
        cmocka_unit_test(test_whole_transposes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
