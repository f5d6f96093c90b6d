/* `iterative` at the ends of the range. Where the inverse is beyond it in part: INFO n+1, as of the
 * methods that eliminate, and the rest of the inverse. Where A is near to it: INFO 0 promises the
 * tolerance of the inverse as it is written, among the subnormal numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gpu/host/linalg/lapack.h"
#include "tests/unit/gpu/host/iterate.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A row so small that the inverse overflows, whatever the rest. */
enum tiny_row {
    TINY_DIAGONAL,   /* zeros next to its diagonal, and in that column */
    TINY_ROW,        /* numbers of one size */
    TINY_OVERLAPPED, /* as the first, next to numbers so large that all of A cannot be scaled up */
    TINY_CANCELS,    /* as TINY_ROW, next to columns whose sums overflow */
    TINY_ROWS
};

static void make_tiny_row(enum tiny_row kind, enum precision precision, int64_t n, int64_t at,
                          double *a)
{
    const double large = precision == PRECISION_FP32 ? 3e38 : 1.7e308;
    const double tiny = precision == PRECISION_FP32 ? 1e-42 : 1e-310;
    for (int64_t k = 0; k < n * n; k++) {
        const int64_t i = k / n, j = k % n;
        const bool adjacent = (i == at || j == at) && i != j;
        a[k] += i == j ? 2 * (double)n : 0;
        if (adjacent && (kind == TINY_DIAGONAL || kind == TINY_OVERLAPPED))
            a[k] = 0;
        if (i == at && (i == j || kind == TINY_ROW || kind == TINY_CANCELS))
            a[k] = tiny / (double)n;
        if (i == j && i != at && kind == TINY_OVERLAPPED)
            a[k] = large / 16;
        if (i != at && j != at && kind == TINY_CANCELS)
            a[k] = i < j ? large : -large;
    }
}

/* Column `at` of the inverse is beyond the range in part. The others are those of an inverse. */
static void check_columns(const struct gputest_iterate *task, const double *inverse, int64_t at)
{
    const int64_t n = task->n;
    const double eps = gputest_eps(task->precision);
    bool overflows = false;
    for (int64_t i = 0; i < n; i++)
        overflows = overflows || !isfinite(inverse[i * n + at]);
    assert_true(overflows);
    for (int64_t k = 0; k < n * n; k++) {
        const int64_t i = k / n, j = k % n;
        long double sum = i == j ? -1 : 0, size = 1;
        for (int64_t e = 0; e < n && j != at; e++) {
            const long double term = (long double)task->a[i * n + e] * inverse[e * n + j];
            sum += term;
            size += fabsl(term);
        }
        if (j != at && !(fabsl(sum) <= 100 * (double)n * eps * size))
            fail_msg("n = %d, entry (%d, %d) of A X: off by %Lg", (int)n, (int)i, (int)j, sum);
    }
}

static void try_tiny_row(enum tiny_row kind, struct gputest_iterate *task)
{
    const int64_t n = task->n, at = n / 2;
    uint64_t seed = 21;
    double *a = gputest_numbers(n * n);
    for (int64_t k = 0; k < n * n; k++)
        a[k] = (double)(float)gputest_random(&seed);
    make_tiny_row(kind, task->precision, n, at, a);
    for (int64_t k = 0; k < n * n && task->precision == PRECISION_FP32; k++)
        a[k] = (double)(float)a[k];
    task->a = a;
    struct gputest_iterated result = gputest_iterate(task);
    /* Where columns are that far apart no |I - X A| need be within a tolerance. */
    const bool is_out_of_reach = kind == TINY_CANCELS && task->tolerance > 0;
    assert_true(result.info == n + 1 || (result.info == n + 2 && is_out_of_reach));
    assert_true(result.rcond == 0);
    assert_int_not_equal(result.algorithm, METHOD_ALGORITHM_NONE);
    if (task->tolerance == 0)
        check_columns(task, result.inverse, at);
    gputest_iterated_free(&result);
    free(a);
}

static void test_overflow_in_part(void **state)
{
    (void)state;
    static const int64_t orders[] = {2, 3, 8, 9, 33};
    for (size_t i = 0; i < COUNT(orders) * TINY_ROWS * PRECISION_COUNT; i++) {
        const enum tiny_row kind = (enum tiny_row)(i / COUNT(orders) % TINY_ROWS);
        struct gputest_iterate task = {.precision = (enum precision)(i / COUNT(orders) / TINY_ROWS),
                                       .n = orders[i % COUNT(orders)]};
        try_tiny_row(kind, &task);
        task.tolerance = 0.1;
        try_tiny_row(kind, &task);
        task.initial = METHOD_ITERATIVE_DIAGONAL;
        try_tiny_row(kind, &task);
    }
}

/* The line is small, and the inverse large, but in range: only the scaling is extreme. */
static void test_no_overflow(void **state)
{
    (void)state;
    const double a[] = {0x1p-1022, 0, 0, 1};
    struct gputest_iterate task = {.precision = PRECISION_FP64, .n = 2, .a = a};
    struct gputest_iterated result = gputest_iterate(&task);
    assert_int_equal(result.info, 0);
    assert_true(result.rcond == 0x1p-1022 && result.inverse[0] == 0x1p1022);
    assert_true(result.inverse[3] == 1 && result.algorithm == METHOD_ALGORITHM_DIAGONAL_START);
    gputest_iterated_free(&result);
    const double b[] = {1e-305, 1e-305, 1, 2}, x[] = {2e305, -1, -1e305, 1};
    task.a = b;
    result = gputest_iterate(&task);
    assert_int_equal(result.info, 0);
    for (int k = 0; k < 4; k++)
        assert_true(fabs(result.inverse[k] - x[k]) <= 1e-14 * fabs(x[k]));
    gputest_iterated_free(&result);
}

/* Where 1 / s is beyond the range for a row of that sum. */
static void test_a_row_of_the_smallest_numbers(void **state)
{
    (void)state;
    for (int k = 0; k < 2 * PRECISION_COUNT; k++) {
        const enum precision precision = (enum precision)(k / 2);
        const bool single = precision == PRECISION_FP32;
        const double half = single ? 0x1p-129 : 0x1p-1025, smallest = single ? 0x1p-149 : 0x1p-1074;
        const double a[] = {half, half + (k % 2) * smallest, 1, 2};
        struct gputest_iterate task = {.precision = precision, .n = 2, .a = a};
        struct gputest_iterated result = gputest_iterate(&task);
        assert_int_equal(result.info, 3);
        assert_true(result.rcond == 0);
        check_columns(&task, result.inverse, 0);
        gputest_iterated_free(&result);
    }
}

/* ---- A near to the end of the range ---- */

#define LARGE_FP32 0x1.a17c5ap+127
#define LARGE_FP64 0x1.a17c5ap+1023

/* Of order n, a power of two: Hadamard's matrix times `size`. */
static double *hadamard(int64_t n, double size)
{
    double *a = gputest_numbers(n * n);
    for (int64_t k = 0; k < n * n; k++)
        a[k] = __builtin_parityll((unsigned long long)(k / n & k % n)) ? -size : size;
    return a;
}

static const struct near_the_end {
    enum precision precision;
    int64_t n;
    double size, tolerance;
    bool is_reached;
} near_the_end[] = {
    {PRECISION_FP32, 1, -LARGE_FP32, 1e-9, false},
    {PRECISION_FP32, 1, -LARGE_FP32, 1e-6, true},
    {PRECISION_FP32, 1, -LARGE_FP32, 0, true},
    {PRECISION_FP32, 1, 0x1p127, 1e-9, true}, /* its inverse is subnormal, and exact */
    {PRECISION_FP32, 1, 0x1.8p104, 1e-15, false},
    {PRECISION_FP32, 8, LARGE_FP32, 1e-6, false},
    {PRECISION_FP32, 8, LARGE_FP32, 2e-5, true},
    {PRECISION_FP32, 8, LARGE_FP32, 0, true},
    {PRECISION_FP32, 16, LARGE_FP32, 1e-6, false},
    {PRECISION_FP32, 16, LARGE_FP32, 1e-4, true},
    {PRECISION_FP32, 16, LARGE_FP32, 0, true},
    {PRECISION_FP64, 1, -LARGE_FP64, 1e-17, false},
    {PRECISION_FP64, 1, -LARGE_FP64, 1e-15, true},
    {PRECISION_FP64, 1, -LARGE_FP64, 0, true},
    {PRECISION_FP64, 1, 0x1p1023, 1e-18, true},
    {PRECISION_FP64, 8, LARGE_FP64, 1e-15, false},
    {PRECISION_FP64, 8, LARGE_FP64, 1e-13, true},
    {PRECISION_FP64, 8, LARGE_FP64, 0, true},
    {PRECISION_FP64, 16, LARGE_FP64, 1e-15, false},
    {PRECISION_FP64, 16, LARGE_FP64, 1e-12, true},
    {PRECISION_FP64, 16, LARGE_FP64, 0, true},
};

static void try_near_the_end(const struct near_the_end *row)
{
    const int64_t n = row->n;
    double *a = hadamard(n, row->size);
    struct gputest_iterate task = {
        .precision = row->precision, .n = n, .a = a, .tolerance = row->tolerance};
    struct gputest_iterated result = gputest_iterate(&task);
    const double true_one = gputest_exact_residual(n, result.inverse, a);
    assert_int_equal(result.info, row->is_reached ? 0 : n + 2);
    assert_true(result.residual * (1 + 0x1p-20) >= true_one);
    assert_true(result.history[result.iterations] == result.residual);
    if (row->tolerance > 0) {
        assert_true(!row->is_reached || true_one <= row->tolerance);
        assert_true((result.residual <= row->tolerance) == row->is_reached);
    }
    /* The same answer where no one wants to know. */
    task.unmeasured = true;
    struct gputest_iterated other = gputest_iterate(&task);
    assert_int_equal(other.info, result.info);
    for (int64_t k = 0; k < n * n; k++)
        assert_true(other.inverse[k] == result.inverse[k]);
    gputest_iterated_free(&other);
    gputest_iterated_free(&result);
    free(a);
}

static void test_near_the_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(near_the_end); i++)
        try_near_the_end(&near_the_end[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overflow_in_part),
        cmocka_unit_test(test_no_overflow),
        cmocka_unit_test(test_a_row_of_the_smallest_numbers),
        cmocka_unit_test(test_near_the_end),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
