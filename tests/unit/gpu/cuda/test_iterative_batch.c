/* `iterative` on the CUDA engine's kernels, run on the CPU: batches of items whose matrices take
 * different starts, schemes and numbers of steps, whose answers are bit for bit what each matrix
 * gets alone; and the descriptor's order. Its accuracy: test_iterative.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/cuda/iterative/call.h"
#include "gpu/cuda/iterative/iterative.h"
#include "gpu/common/iteration.h"
#include "gpu/methods/iterative.h"
#include "tests/simt/simt.h"
#include "tests/unit/gpu/cuda/neighbours.h"
#include "tests/unit/gpu/cuda/iter_host.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define INPUTS 2
#define OUTPUTS (METHOD_ITERATIVE_HISTORY + 1)
#define WARM METHOD_INPUT(METHOD_ITERATIVE_V0)
#define ITEMS 5
#define KINDS 8
#define STEPS_MAX 60

static void put(enum precision precision, unsigned char *to, int64_t at, double value)
{
    if (precision == PRECISION_FP32)
        ((float *)(void *)to)[at] = (float)value;
    else
        ((double *)(void *)to)[at] = value;
}

/* Entry of matrix k of any batch: dominant, random, definite, singular, zero, not finite, large,
 * and one whose columns' sums overflow, so that it is identified a second time. */
static double entry(const struct cudatest_bed *bed, int64_t k, int64_t i, int64_t j, uint64_t *seed)
{
    double x = gputest_random(seed), n = (double)bed->n;
    double huge = bed->precision == PRECISION_FP32 ? 0x1p126 : 0x1p1021;
    switch (k % KINDS) {
    case 0:
        return i == j ? 2 * n : x;
    case 2:
        return i == j ? 2.5 : i - j == 1 || j - i == 1 ? -1 : 0;
    case 3:
        return (double)(i + 1) * (double)(j % 3 + 1);
    case 4:
        return i == 1 ? 0 : x;
    case 5:
        return i == j && i == bed->n / 2 ? (double)NAN : x;
    case 6:
        return i == j ? huge : x * huge / 64;
    case 7:
        return i == j ? 1.5 * huge : copysign(huge, x);
    default:
        return x;
    }
}

/* V0: near the inverse of a dominant one, of no use to others. */
static void set_matrix(const struct cudatest_bed *bed, int item, int64_t index, int64_t k)
{
    uint64_t seed = (uint64_t)k + 1;
    unsigned char *a = cudatest_input(bed, item, index, METHOD_ITERATIVE_A);
    unsigned char *v0 = cudatest_input(bed, item, index, METHOD_ITERATIVE_V0);
    for (int64_t e = 0; e < bed->n * bed->n; e++) {
        int64_t i = e / bed->n, j = e % bed->n;
        double x = entry(bed, k, i, j, &seed);
        put(bed->precision, a, e, x);
        put(bed->precision, v0, e, i == j && k % KINDS != 1 ? 0.9 / x : 0);
    }
}

static int launches; /* of the last call */

static void run(const struct cudatest_bed *bed, struct cuda_call *call, int64_t at_once)
{
    (void)bed;
    launches = cudatest_iterative_run(call, at_once);
}

static void complete(struct cudatest_bed *bed)
{
    bed->method = &method_iterative;
    bed->inputs |= METHOD_INPUT(METHOD_ITERATIVE_A);
    if (bed->options[METHOD_ITERATIVE_MAX_ITERATIONS] == 0)
        bed->options[METHOD_ITERATIVE_MAX_ITERATIONS] = STEPS_MAX;
    bed->set_matrix = set_matrix;
    bed->run = run;
}

static void try_batch(struct cudatest_bed *bed, int items)
{
    complete(bed);
    cudatest_try_neighbours(bed, items, 10 + bed->n);
}

static void test_neighbours_never_show(void **state)
{
    (void)state;
    static const struct {
        enum precision precision;
        int64_t n, scheme, initial, at_once;
        int late;
        bool warm;
        double tolerance;
    } rows[] = {
        {PRECISION_FP64, 1, METHOD_ITERATIVE_SCHEME_AUTO, METHOD_ITERATIVE_INITIAL_AUTO, 0, 0, true,
         0},
        {PRECISION_FP32, 3, METHOD_ITERATIVE_ORDER19, METHOD_ITERATIVE_DIAGONAL, 2, 3, true, 0},
        {PRECISION_FP64, 8, METHOD_ITERATIVE_SCHEME_AUTO, METHOD_ITERATIVE_INITIAL_AUTO, 0, 1,
         false, 0},
        {PRECISION_FP64, 8, METHOD_ITERATIVE_SCHEME_AUTO, METHOD_ITERATIVE_SCALED_IDENTITY, 5, 1,
         true, 0},
        {PRECISION_FP32, 20, METHOD_ITERATIVE_SCHEME_AUTO, METHOD_ITERATIVE_INITIAL_AUTO, 1, 1,
         false, 0},
        {PRECISION_FP64, 33, METHOD_ITERATIVE_ORDER7, METHOD_ITERATIVE_INITIAL_AUTO, 3, 0, false,
         0},
        /* Some of these are judged: whole, and by signs first. */
        {PRECISION_FP64, 12, METHOD_ITERATIVE_SCHEME_AUTO, METHOD_ITERATIVE_INITIAL_AUTO, 0, 1,
         true, 1e-15},
        {PRECISION_FP32, ITERATION_WHOLE_FIRST + 2, METHOD_ITERATIVE_SCHEME_AUTO,
         METHOD_ITERATIVE_INITIAL_AUTO, 0, 1, true, 2e-7},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct cudatest_bed bed = {.precision = rows[i].precision,
                                   .n = rows[i].n,
                                   .counts = {1, 3, 2, 5, 1},
                                   .at_once = rows[i].at_once,
                                   .late = rows[i].late,
                                   .inputs = rows[i].warm ? WARM : 0};
        bed.options[METHOD_ITERATIVE_SCHEME] = rows[i].scheme;
        bed.options[METHOD_ITERATIVE_INITIAL] = rows[i].initial;
        memcpy(&bed.options[METHOD_ITERATIVE_TOLERANCE], &rows[i].tolerance,
               sizeof rows[i].tolerance);
        try_batch(&bed, rows[i].n > 20 ? 3 : ITEMS);
    }
}

/* Matrices that are far apart, for this order, are launched for one after the other. */
static void test_groups(void **state)
{
    (void)state;
    struct cudatest_bed bed = {.precision = PRECISION_FP64, .n = 2, .counts = {60}};
    try_batch(&bed, 1);
    bed = (struct cudatest_bed){
        .precision = PRECISION_FP32, .n = 4, .counts = {1, 1, 1, 1, 1}, .late = 1};
    try_batch(&bed, ITEMS);
}

/* An item may leave out what is not always computed. */
static void test_unwanted_outputs(void **state)
{
    (void)state;
    static const int outputs[] = {METHOD_ITERATIVE_INVERSE, METHOD_ITERATIVE_HISTORY};
    for (size_t i = 0; i < COUNT(outputs); i++) {
        struct cudatest_bed bed = {.precision = PRECISION_FP64,
                                   .n = 6,
                                   .counts = {2, 3, 2},
                                   .unwanted = UINT32_C(1) << outputs[i]};
        try_batch(&bed, 3);
    }
}

/* Where no one wants the residual, the last step is not measured; all else keeps its bits. */
static void test_unmeasured(void **state)
{
    (void)state;
    static const double tolerances[] = {0, 1e-3, 1e-11};
    static const int64_t orders[] = {1, 3, 9, 20};
    for (size_t i = 0; i < COUNT(orders) * COUNT(tolerances) * METHOD_ITERATIVE_SCHEMES; i++) {
        size_t k = i / METHOD_ITERATIVE_SCHEMES;
        struct cudatest_bed bed = {.precision = (enum precision)(i % 2),
                                   .n = orders[k / COUNT(tolerances)],
                                   .counts = {2, 1, 1},
                                   .unwanted = UINT32_C(1) << METHOD_ITERATIVE_RESIDUAL |
                                               UINT32_C(1) << METHOD_ITERATIVE_HISTORY,
                                   .by_all = true,
                                   .inputs = i % 3 == 0 ? WARM : 0};
        bed.options[METHOD_ITERATIVE_SCHEME] = (int64_t)(i % METHOD_ITERATIVE_SCHEMES);
        bed.options[METHOD_ITERATIVE_INITIAL] = (int64_t)(k % 5);
        memcpy(&bed.options[METHOD_ITERATIVE_TOLERANCE], &tolerances[k % COUNT(tolerances)],
               sizeof tolerances[0]);
        try_batch(&bed, 3);
    }
}

/* A step is one launch but for those that are sure to follow, so that a batch takes as many as its
 * slowest matrix. */
static void test_launches(void **state)
{
    (void)state;
    for (int initial = METHOD_ITERATIVE_DIAGONAL; initial <= METHOD_ITERATIVE_TRANSPOSE;
         initial++) {
        struct cudatest_bed bed = {.precision = PRECISION_FP64, .n = 6, .counts = {1}};
        complete(&bed);
        bed.options[METHOD_ITERATIVE_SCHEME] = METHOD_ITERATIVE_NEWTON_SCHULZ;
        bed.options[METHOD_ITERATIVE_INITIAL] = initial;
        cudatest_fill(&bed, 1, 0);
        cudatest_iterative_steps(CUDATEST_STEPS_NONE);
        cudatest_run(&bed, 1);
        int32_t steps;
        memcpy(&steps, cudatest_output(&bed, 0, 0, METHOD_ITERATIVE_ITERATIONS), sizeof steps);
        assert_true(steps > 3);
        assert_int_equal(launches, steps + 3); /* coming in, the start, and storing */
        cudatest_iterative_steps(CUDATEST_STEPS_REPORTED);
        cudatest_run(&bed, 1);
        assert_true(launches < steps + 3);
        /* The last two steps are as a rule not sure. */
        int most = initial == METHOD_ITERATIVE_TRANSPOSE ? 1 + CUDA__ITER_MORE_MAX : 2;
        assert_in_range(launches, (steps + most - 1) / most + 3, (steps + most - 1) / most + 5);
        cudatest_release(&bed, 1);
    }
}

/* ---- Steps that are sure to follow ---- */

static void check_same(const struct cudatest_bed *bed, const struct cudatest_bed *other, int items)
{
    for (int i = 0; i < items; i++) {
        for (int t = 0; t < OUTPUTS; t++) {
            if (!bed->items[i].outputs[t])
                continue;
            const unsigned char *first = cudatest_output(bed, i, 0, t);
            size_t bytes = (size_t)(cudatest_output(bed, i, bed->counts[i], t) - first);
            assert_memory_equal(first, cudatest_output(other, i, 0, t), bytes);
        }
    }
}

/* Whatever is launched for the steps that may follow, the answers are the same bit for bit: where
 * the first of them ends the iteration, the next one is of another scheme, or R is to be judged. */
static void try_steps(const struct cudatest_bed *like, int items, int64_t first)
{
    static const enum cudatest_steps ways[] = {CUDATEST_STEPS_NONE, CUDATEST_STEPS_REPORTED,
                                               CUDATEST_STEPS_MAX};
    bool is_judged = like->options[METHOD_ITERATIVE_TOLERANCE] != 0; /* with others, or later */
    struct cudatest_bed beds[COUNT(ways)];
    int most = INT32_MAX;
    for (size_t i = 0; i < COUNT(ways); i++) {
        beds[i] = *like;
        complete(&beds[i]);
        cudatest_fill(&beds[i], items, first);
        cudatest_iterative_steps(ways[i]);
        cudatest_run(&beds[i], items);
        assert_true(launches <= most || is_judged);
        most = launches;
        check_same(&beds[i], &beds[0], items);
    }
    cudatest_iterative_steps(CUDATEST_STEPS_REPORTED);
    for (size_t i = 0; i < COUNT(ways); i++)
        cudatest_release(&beds[i], items);
}

static void test_steps_that_follow(void **state)
{
    (void)state;
    static const struct {
        int64_t n;
        double tolerance;
    } cases[] = {{1, 0},    {3, 0},     {3, 1e-15}, {8, 1e-3}, {9, 0},
                 {9, 1e-3}, {9, 1e-15}, {12, 2e-7}, {20, 0},   {20, 1e-15}};
    static const uint32_t measures =
        UINT32_C(1) << METHOD_ITERATIVE_RESIDUAL | UINT32_C(1) << METHOD_ITERATIVE_HISTORY;
    for (size_t i = 0; i < COUNT(cases) * METHOD_ITERATIVE_SCHEMES; i++) {
        size_t k = i / METHOD_ITERATIVE_SCHEMES;
        struct cudatest_bed bed = {.precision = (enum precision)((i + k) % 2),
                                   .n = cases[k].n,
                                   .counts = {3, 5},
                                   .unwanted = i % 3 ? 0 : measures,
                                   .by_all = true,
                                   .inputs = i % 5 == 0 ? WARM : 0};
        bed.options[METHOD_ITERATIVE_SCHEME] = (int64_t)(i % METHOD_ITERATIVE_SCHEMES);
        bed.options[METHOD_ITERATIVE_INITIAL] =
            i % 2 ? METHOD_ITERATIVE_TRANSPOSE : METHOD_ITERATIVE_INITIAL_AUTO;
        memcpy(&bed.options[METHOD_ITERATIVE_TOLERANCE], &cases[k].tolerance,
               sizeof cases[k].tolerance);
        try_steps(&bed, 2, (int64_t)i);
    }
}

/* The same where R is judged by signs first. */
static void test_steps_before_a_judgement(void **state)
{
    (void)state;
    static const double tolerance = 2e-7;
    struct cudatest_bed bed = {
        .precision = PRECISION_FP32, .n = ITERATION_WHOLE_FIRST + 2, .counts = {2}};
    bed.options[METHOD_ITERATIVE_SCHEME] = METHOD_ITERATIVE_ORDER7;
    memcpy(&bed.options[METHOD_ITERATIVE_TOLERANCE], &tolerance, sizeof tolerance);
    try_steps(&bed, 1, 0);
}

/* The same where order7 works in R, which must be what it was before it is judged. */
static void test_steps_of_large_matrices(void **state)
{
    (void)state;
    static const struct {
        enum precision precision;
        int64_t n, initial, steps;
        double tolerance;
    } cases[] = {{PRECISION_FP64, 646, METHOD_ITERATIVE_TRANSPOSE, 2, 0},
                 {PRECISION_FP32, ITERATION_WHOLE_MAX + 1, METHOD_ITERATIVE_DIAGONAL, 1, 1e-5}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct cudatest_bed bed = {.precision = cases[i].precision, .n = cases[i].n, .counts = {1}};
        assert_int_equal(cuda__iter_gap(bed.n), 0);
        bed.options[METHOD_ITERATIVE_SCHEME] = METHOD_ITERATIVE_ORDER7;
        bed.options[METHOD_ITERATIVE_INITIAL] = cases[i].initial;
        bed.options[METHOD_ITERATIVE_MAX_ITERATIONS] = cases[i].steps;
        memcpy(&bed.options[METHOD_ITERATIVE_TOLERANCE], &cases[i].tolerance,
               sizeof cases[i].tolerance);
        try_steps(&bed, 1, 0);
    }
}

/* The number of steps ends wherever it is set. */
static void test_steps_that_are_left(void **state)
{
    (void)state;
    for (int64_t steps = 1; steps <= 9; steps++) {
        struct cudatest_bed bed = {.precision = PRECISION_FP64, .n = 12, .counts = {4}};
        complete(&bed);
        bed.options[METHOD_ITERATIVE_SCHEME] = METHOD_ITERATIVE_NEWTON_SCHULZ;
        bed.options[METHOD_ITERATIVE_INITIAL] = METHOD_ITERATIVE_TRANSPOSE;
        bed.options[METHOD_ITERATIVE_MAX_ITERATIONS] = steps;
        try_steps(&bed, 1, 0);
    }
}

/* ---- The descriptor, and what is refused ---- */

static void test_descriptor(void **state)
{
    (void)state;
    static const char *const inputs[] = {"A", "V0"};
    static const char *const outputs[] = {"INVERSE",    "INFO",     "RCOND",           "METHOD",
                                          "ITERATIONS", "RESIDUAL", "RESIDUAL_HISTORY"};
    for (int i = 0; i < INPUTS; i++)
        assert_int_equal(method_input_find(&method_iterative, inputs[i]), i);
    assert_int_equal(method_output_count(&method_iterative), OUTPUTS);
    for (int i = 0; i < OUTPUTS; i++)
        assert_int_equal(method_output_find(&method_iterative, outputs[i]), i);
    assert_int_equal((int)METHOD_ITERATIVE_V0, (int)METHOD_ITERATIVE_V0);
    assert_int_equal((int)METHOD_ITERATIVE_HISTORY, (int)METHOD_ITERATIVE_HISTORY);
    assert_int_equal((int)METHOD_ITERATIVE_SCHEMES, (int)METHOD_ITERATIVE_SCHEMES);
    assert_int_equal((int)METHOD_ITERATIVE_ORDER7_HORNER, (int)METHOD_ITERATIVE_ORDER7_HORNER);
    assert_int_equal((int)METHOD_ITERATIVE_SCALED_IDENTITY, (int)METHOD_ITERATIVE_SCALED_IDENTITY);
    assert_int_equal((int)METHOD_ITERATIVE_MAX_ITERATIONS, (int)METHOD_ITERATIVE_MAX_ITERATIONS);
    assert_int_equal((int)METHOD_ITERATIVE_INITIAL, (int)METHOD_ITERATIVE_INITIAL);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    int64_t options[METHOD_OPTIONS_MAX] = {0, 10};
    struct cuda_notes notes = {0};
    struct cuda_call call = {.precision = PRECISION_FP64,
                             .n = 4,
                             .options = options,
                             .matrices = 1,
                             .notes = &notes,
                             .d_notes = &notes};
    call.workspace_bytes = cuda_iterative_workspace(&call, 1) - 1;
    assert_int_equal(cuda_iterative(&call, NULL), cudaErrorMemoryAllocation);
    call.n = CUDA_ITERATIVE_N_MAX + 1;
    assert_int_equal(cuda_iterative(&call, NULL), cudaErrorInvalidValue);
    call.matrices = 0;
    assert_int_equal(cuda_iterative(&call, NULL), cudaSuccess);
    /* A batch of any size takes what its largest part does. */
    call.n = 4;
    assert_true(cuda_iterative_workspace(&call, INT64_MAX) ==
                cuda_iterative_workspace(&call, CUDA_NOTES_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptor),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_neighbours_never_show),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_unwanted_outputs),
        cmocka_unit_test(test_unmeasured),
        cmocka_unit_test(test_steps_that_follow),
        cmocka_unit_test(test_steps_before_a_judgement),
        cmocka_unit_test(test_steps_of_large_matrices),
        cmocka_unit_test(test_steps_that_are_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
