/* The CUDA engine's equilibration, run on the CPU: the host engine's exponents, for orders of one
 * tile and of several, by one block and by many, in any company. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/cuda/structured/equilibrate.h"
#include "gpu/host/linalg/equilibrate.h"
#include "tests/simt/simt.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT 5
#define NOISE 0x5a

/* COUNT matrices in rows of n + 3 numbers, one behind another; number 3 is left alone. */
struct bed {
    struct cuda_equilibration task;
    double *a; /* as doubles */
    struct cuda_equilibrium states[COUNT];
};

static int32_t *int32s(int64_t count)
{
    int32_t *made = malloc((size_t)count * sizeof *made);
    assert_non_null(made);
    memset(made, NOISE, (size_t)count * sizeof *made);
    return made;
}

/* Entry (i, j) of matrix k: even, of uneven rows, of uneven rows and columns, some zeros; subnormal
 * numbers too. */
static double entry(enum precision precision, int64_t k, int64_t i, int64_t j, uint64_t *seed)
{
    const int range = precision == PRECISION_FP32 ? 60 : 480;
    const double x = gputest_random(seed);
    const int row = (int)(i * 37 % (2 * range + 1)) - range, column = (int)(j * 53 % range);
    if (k == 0)
        return i == j ? 1 : x / 2;
    if (k == 1)
        return ldexp(x, row);
    return k == 2 && i != j && x < 0 ? 0 : ldexp(x, row + column - range * (int)(k == 4));
}

static struct bed make(enum precision precision, int64_t n)
{
    struct bed bed = {.task = {.precision = precision, .n = n, .count = COUNT}};
    const int64_t stride = n + 3, numbers = COUNT * n * stride;
    uint64_t seed = (uint64_t)n;
    bed.a = gputest_numbers(numbers);
    bed.task.a =
        (struct cuda_matrices){malloc((size_t)numbers * sizeof(double)), stride, n * stride};
    bed.task.exponents = int32s(2 * n * COUNT);
    bed.task.scratch = int32s(2 * n * COUNT);
    assert_non_null(bed.task.a.at);
    for (int64_t e = 0; e < numbers; e++) {
        const double x = e % stride < n
                             ? entry(precision, e / stride / n, e / stride % n, e % stride, &seed)
                             : NAN;
        bed.a[e] = precision == PRECISION_FP32 ? (double)(float)x : x;
        if (precision == PRECISION_FP32)
            ((float *)bed.task.a.at)[e] = (float)x;
        else
            ((double *)bed.task.a.at)[e] = x;
    }
    return bed;
}

static void release(struct bed *bed)
{
    free(bed->a);
    free(bed->task.a.at);
    free(bed->task.exponents);
    free(bed->task.scratch);
}

static void check(const struct bed *bed, int64_t k)
{
    const int64_t n = bed->task.n, stride = bed->task.a.stride;
    const int32_t *found = bed->task.exponents + 2 * k * n;
    int32_t *exponents = int32s(2 * n), *scratch = int32s(host__equilibrate_numbers(n));
    const struct host_equilibrium to = {exponents, exponents + n};
    int32_t least = INT32_MAX, most = INT32_MIN;
    if (bed->task.precision == PRECISION_FP32)
        host__equilibrate_f32(NULL, (const float *)bed->task.a.at + k * n * stride, n, stride, &to,
                              scratch);
    else
        host__equilibrate_f64(NULL, (const double *)bed->task.a.at + k * n * stride, n, stride, &to,
                              scratch);
    for (int64_t i = 0; i < 2 * n; i++) {
        if (found[i] != exponents[i])
            fail_msg("n = %d, matrix %d, line %d: %d, not %d", (int)n, (int)k, (int)i, found[i],
                     exponents[i]);
    }
    for (int64_t j = 0; j < n; j++) {
        least = to.columns[j] < least ? to.columns[j] : least;
        most = to.columns[j] > most ? to.columns[j] : most;
    }
    assert_int_equal(bed->states[k].wanted, 0);
    assert_int_equal(bed->states[k].column_min, least);
    assert_int_equal(bed->states[k].column_max, most);
    free(exponents);
    free(scratch);
}

static void try_order(enum precision precision, int64_t n)
{
    struct bed bed = make(precision, n);
    memset(bed.states, NOISE, sizeof bed.states);
    bed.states[3].wanted = 0;
    bed.task.states = bed.states;
    if (cuda_equilibrate(&bed.task, NULL) != cudaSuccess)
        fail_msg("%s", simt_report());
    for (int64_t k = 0; k < COUNT; k++) {
        if (k != 3)
            check(&bed, k);
    }
    const unsigned char *alone = (unsigned char *)(bed.task.exponents + 6 * n);
    for (size_t b = 0; b < 2 * (size_t)n * sizeof(int32_t); b++)
        assert_int_equal(alone[b], NOISE);
    release(&bed);
}

static void test_as_the_host(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 2, 3, 31, 32, 33, 63, 64, 65, 200, 255, 256, 257, 321};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        for (int many = 0; many < 2; many++) {
            simt_set_multiprocessors(many ? 100 : 1);
            try_order(PRECISION_FP64, orders[i]);
            try_order(PRECISION_FP32, orders[i]);
        }
    }
    simt_set_multiprocessors(1);
}

static void test_refused(void **state)
{
    (void)state;
    struct cuda_equilibration task = {.precision = PRECISION_FP64, .n = 0, .count = 1};
    assert_int_equal(cuda_equilibrate(&task, NULL), cudaErrorInvalidValue);
    task.n = 1;
    task.count = CUDA_EQUILIBRATE_MATRICES_MAX + 1;
    assert_int_equal(cuda_equilibrate(&task, NULL), cudaErrorInvalidValue);
    task.count = 0;
    assert_int_equal(cuda_equilibrate(&task, NULL), cudaSuccess);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_the_host),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
