/* Both residuals of the inverses of gpu/cuda/lu/wide.cuh, I - X A and I - A X, run on the CPU:
 * matrices of every spread of singular values, up to a condition next to 1 / eps.
 *
 * TEST_LU_ORDERS in the environment, "225,513,1000", has other orders tried than the few below. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <vector>

extern "C" {
#include <cmocka.h>

#include "gpu/cuda/gemm/gemm.h"
#include "tests/support/latms.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/matrices.h"
}

#include "gpu/cuda/lu/wide.cuh"
#include "tests/simt/sanitizers.h"

/* The contract's is 15. */
#define RATIO_TRIED 1.0

/* Of both sides; and of all matrices, how many are singular to working precision, so RCOND says. */
struct worst {
    double left, right;
    int matrices, singular;
};

template <typename T> static enum precision precision_of()
{
    return sizeof(T) == sizeof(float) ? PRECISION_FP32 : PRECISION_FP64;
}

/* x = the inverse of a; RCOND. */
template <typename T>
static double invert(cuda__lu_wide_launcher *launch, cuda__lu_manner manner, int n,
                     const std::vector<double> &a, std::vector<double> &x)
{
    std::vector<T> narrow(a.begin(), a.end()), result(a.size());
    T rcond = 0;
    int32_t info = 77;
    uint32_t unverified = 0;
    size_t bytes = cuda__lu_space_bytes<T>(n, manner);
    void *space;
    struct cuda_item item = {narrow.data(), result.data(), &rcond, &info, 0};
    struct cuda_batch one = {&item, 1, 1, &unverified};
    struct cuda_products *products = nullptr;
    assert_int_equal(cuda_products_create(nullptr, &products), cudaSuccess);
    assert_int_equal(cudaMalloc(&space, bytes), cudaSuccess);
    assert_int_equal(launch(n, one, space, bytes, manner, products, nullptr), cudaSuccess);
    cuda_products_destroy(&products);
    assert_int_equal(cudaFree(space), cudaSuccess);
    /* What is singular awaits its scaling. */
    const bool singular = !(rcond >= gputest_eps(precision_of<T>()));
    assert_int_equal(unverified, singular);
    assert_int_equal(info, singular ? CUDA_INFO_AWAITING(n) + n + 1 : 0);
    x.assign(result.begin(), result.end());
    return rcond;
}

template <typename T>
static void judge(cuda__lu_wide_launcher *launch, cuda__lu_manner manner, int n,
                  const struct latms &row, struct worst &worst)
{
    const double eps = gputest_eps(precision_of<T>());
    std::vector<double> a((size_t)n * n), x;
    latms_make(&row, precision_of<T>(), n, a.data());
    bool singular = invert<T>(launch, manner, n, a, x) < eps;
    worst.matrices++;
    worst.singular += singular;
    if (singular)
        return;
    worst.left = residual_larger(worst.left, residual_inverse_ratio(eps, n, a.data(), x.data()));
    worst.right = residual_larger(worst.right, residual_inverse_ratio(eps, n, x.data(), a.data()));
}

/* All modes, conditions of every `step` decades from the largest on. */
template <typename T>
static void try_order(cuda__lu_wide_launcher *launch, cuda__lu_manner manner, int n, int step)
{
    struct latms row = {LATMS_GENERAL, LATMS_ONE_LARGE, 1, (uint64_t)n};
    struct worst worst = {};
    for (int decade = sizeof(T) == sizeof(float) ? 6 : 15; decade > 0; decade -= step) {
        for (int mode = LATMS_ONE_LARGE; mode <= LATMS_MODE_MAX; mode++, row.seed += 1000) {
            row.mode = (enum latms_mode)mode;
            row.condition = pow(10, decade);
            judge<T>(launch, manner, n, row, worst);
        }
    }
    print_message(
        "%s n = %-4d width %d, group %d: left %.3g right %.3g, %d matrices, %d singular\n",
        precision_name(precision_of<T>()), n, manner.width, manner.group, worst.left, worst.right,
        worst.matrices, worst.singular);
    assert_true(worst.singular < worst.matrices / 2);
    assert_true(residual_larger(worst.left, worst.right) <= RATIO_TRIED);
}

/* group: of a cluster; 0: each panel is a launch. width: of columns by clusters. */
static const struct {
    enum precision precision;
    int n, group, width, step;
} rows[] = {{PRECISION_FP64, 70, 0, 0, 2},   {PRECISION_FP32, 70, 0, 0, 1},
            {PRECISION_FP64, 96, 0, 32, 2},  {PRECISION_FP32, 96, 0, 32, 1},
            {PRECISION_FP64, 150, 64, 0, 3}, {PRECISION_FP32, 150, 0, 0, 2},
            {PRECISION_FP64, 257, 0, 0, 5},  {PRECISION_FP32, 321, 0, 0, 4}};

static void try_row(enum precision precision, int n, int group, int width, int step)
{
    cuda__lu_manner manner = {};
    manner.group = group;
    manner.width = width;
    manner.blocks = group > 0 ? 4 : 0;
    if (precision == PRECISION_FP64)
        try_order<double>(cuda__lu_invert_wide_f64, manner, n, step);
    else
        try_order<float>(cuda__lu_invert_wide_f32, manner, n, step);
}

static void test_both_sides(void **)
{
    const char *list = getenv("TEST_LU_ORDERS");
    for (auto &row : rows) {
        if (!list && (&row == rows || !(TSAN_IS_HERE || ASAN_IS_HERE)))
            try_row(row.precision, row.n, row.group, row.width, row.step);
    }
    while (list && *list) {
        char *end;
        int n = (int)strtol(list, &end, 10);
        list = end + (*end == ',');
        try_row(PRECISION_FP64, n, 0, 0, 5);
        try_row(PRECISION_FP32, n, 0, 0, 3);
    }
}

int main()
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_sides)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
