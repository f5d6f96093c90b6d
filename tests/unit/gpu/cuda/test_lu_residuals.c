/* Both residuals of the inverses of gpu/cuda/lu/strip.cuh, I - X A and I - A X, run on the CPU:
 * matrices of every spread of singular values, up to a condition next to 1 / eps.
 *
 * TEST_LU_ORDERS in the environment, "100,128,320", has other orders tried than the few below. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gpu/cuda/gemm/gemm.h"
#include "tests/simt/sanitizers.h"
#include "tests/simt/simt.h"
#include "tests/support/latms.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/cuda/lu_bed.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* The contract's is 15. */
#define RATIO_TRIED 1.0

static struct cuda_products *products;
static int failures;

/* Of a precision: every power of ten is a condition up to this one. */
static int decades(enum precision precision)
{
    return precision == PRECISION_FP32 ? 6 : 15;
}

struct worst {
    struct residual_sides sides;
    int64_t singular; /* to working precision, so RCOND says */
};

static void judge(const struct lubed *bed, int64_t k, const double *a, struct worst *worst)
{
    const int64_t n = bed->n;
    const double eps = gputest_eps(bed->precision);
    double *x = gputest_numbers(n * n), rcond;
    lubed_get(bed, bed->items[k].result, n * n, x);
    lubed_get(bed, bed->items[k].extra, 1, &rcond);
    /* An RCOND below eps may be so for the scaling alone. */
    assert_true(bed->info[k] == 0 || (bed->info[k] == n + 1 && rcond < eps));
    if (bed->info[k] == 0) {
        const struct residual_sides sides = {.left = residual_inverse_ratio(eps, n, a, x),
                                             .right = residual_inverse_ratio(eps, n, x, a)};
        worst->sides.left = residual_larger(worst->sides.left, sides.left);
        worst->sides.right = residual_larger(worst->sides.right, sides.right);
    }
    worst->singular += bed->info[k] != 0;
    free(x);
}

/* Conditions of every `step` decades, and the largest; matrices of each for every mode. many: in
 * one batch, which may have another shape of the kernel. */
static void try_order(enum precision precision, int64_t n, int step, bool many)
{
    struct latms row = {LATMS_GENERAL, LATMS_ONE_LARGE, 1, (uint64_t)n};
    const int last = decades(precision), each = (last + step - 1) / step;
    const int64_t all = (int64_t)each * LATMS_MODE_MAX, count = many ? all : 1;
    double *a = gputest_numbers(n * n * count);
    struct lubed bed = lubed_make(precision, n, count, false, 4);
    struct worst worst = {0};
    int64_t unverified = 0;
    for (int64_t first = 0; first < all; first += count) {
        for (int64_t k = 0; k < count; k++, row.seed += 1000) {
            row.mode = (enum latms_mode)(LATMS_ONE_LARGE + (first + k) % LATMS_MODE_MAX);
            row.condition = pow(10, last - (double)((first + k) / LATMS_MODE_MAX * step));
            latms_make(&row, precision, n, a + n * n * k);
            lubed_put(&bed, k, a + n * n * k);
        }
        lubed_run(&bed, products);
        unverified += bed.unverified;
        for (int64_t k = 0; k < count; k++)
            judge(&bed, k, a + n * n * k, &worst);
    }
    print_message("%s n = %-3d %s: left %.3g right %.3g, %d matrices, %d unverified, %d singular\n",
                  precision_name(precision), (int)n, many ? "many" : "few", worst.sides.left,
                  worst.sides.right, (int)all, (int)unverified, (int)worst.singular);
    assert_true(worst.singular < all / 2);
    failures += !(residual_larger(worst.sides.left, worst.sides.right) <= RATIO_TRIED);
    lubed_free(&bed);
    free(a);
}

static void test_both_sides(void **state)
{
    (void)state;
    /* An order of each way through the kernel: with tiles left and right, alone, far panels, and
     * spilled ones. */
    static const struct {
        enum precision precision;
        int64_t n;
        int step;
        bool many;
    } rows[] = {{PRECISION_FP64, 33, 1, false},  {PRECISION_FP32, 40, 1, false},
                {PRECISION_FP64, 64, 2, false},  {PRECISION_FP32, 64, 2, false},
                {PRECISION_FP64, 100, 3, true},  {PRECISION_FP32, 100, 2, false},
                {PRECISION_FP64, 128, 4, false}, {PRECISION_FP32, 128, 2, true},
                {PRECISION_FP64, 160, 4, true},  {PRECISION_FP32, 200, 2, false},
                {PRECISION_FP64, 221, 5, false}, {PRECISION_FP32, 257, 2, true}};
    const char *list = getenv("TEST_LU_ORDERS");
    for (size_t i = 0; !list && i < (TSAN_IS_HERE || ASAN_IS_HERE ? 1 : COUNT(rows)); i++)
        try_order(rows[i].precision, rows[i].n, rows[i].step, rows[i].many);
    while (list && *list) {
        char *end;
        int64_t n = strtoll(list, &end, 10);
        list = end + (*end == ',');
        for (int k = 0; k < 2 * PRECISION_COUNT; k++)
            try_order((enum precision)(k / 2), n, 1, k % 2);
    }
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_sides)};
    if (cuda_products_create(NULL, &products) != cudaSuccess)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cuda_products_destroy(&products);
    return failed;
}
