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

#include "gpu/cuda/iter_call.h"
#include "gpu/cuda/iterative.h"
#include "gpu/methods/iterative.h"
#include "tests/simt/simt.h"
#include "tests/unit/cuda/iter_host.h"
#include "tests/unit/gpu/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define INPUTS 2
#define OUTPUTS (METHOD_ITERATIVE_HISTORY + 1)
#define NOISE 0x5a
#define ITEMS 5
#define KINDS 7
#define STEPS_MAX 60

/* Matrices of one order, in items; every tensor of an item is a piece of memory of its own, which
 * begins `late` numbers behind a multiple of 16 bytes. */
struct bed {
    enum precision precision;
    int64_t n;
    int64_t options[METHOD_OPTIONS_MAX];
    int64_t counts[ITEMS];
    int late;
    bool warm;
    bool by_all;     /* what is unwanted is so by all items, or else by every other one */
    int64_t at_once; /* matrices that the workspace is for */
    unsigned char *memory[ITEMS][INPUTS + OUTPUTS];
    struct cuda_tensors items[ITEMS];
};

static size_t tensor_bytes(const struct bed *bed, int tensor)
{
    const struct method_tensor *of = tensor < INPUTS ? &method_iterative.inputs[tensor]
                                                     : &method_iterative.outputs[tensor - INPUTS];
    return (size_t)method_tensor_bytes(of, bed->precision, bed->n, 0, bed->options);
}

static unsigned char *start_of(const struct bed *bed, int item, int tensor)
{
    bool real = tensor < INPUTS || method_iterative.outputs[tensor - INPUTS].kind == METHOD_REAL;
    size_t unit = real ? (size_t)precision_bytes(bed->precision) : sizeof(int32_t);
    return bed->memory[item][tensor] + 32 + (size_t)bed->late * unit;
}

static void put(enum precision precision, unsigned char *to, int64_t at, double value)
{
    if (precision == PRECISION_FP32)
        ((float *)(void *)to)[at] = (float)value;
    else
        ((double *)(void *)to)[at] = value;
}

/* Entry of matrix k of any batch: dominant, random, definite, singular, zero, not finite, large. */
static double entry(const struct bed *bed, int64_t k, int64_t i, int64_t j, uint64_t *seed)
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
    default:
        return x;
    }
}

/* V0: near the inverse of a dominant one, of no use to others. */
static void set_matrix(const struct bed *bed, int item, int64_t index, int64_t k)
{
    uint64_t seed = (uint64_t)k + 1;
    unsigned char *a = start_of(bed, item, 0) + (size_t)index * tensor_bytes(bed, 0);
    unsigned char *v0 = start_of(bed, item, 1) + (size_t)index * tensor_bytes(bed, 1);
    for (int64_t e = 0; e < bed->n * bed->n; e++) {
        int64_t i = e / bed->n, j = e % bed->n;
        double x = entry(bed, k, i, j, &seed);
        put(bed->precision, a, e, x);
        put(bed->precision, v0, e, i == j && k % KINDS != 1 ? 0.9 / x : 0);
    }
}

static void fill(struct bed *bed, int items, int64_t first, uint32_t unwanted)
{
    int64_t at = 0;
    for (int i = 0; i < items; i++) {
        for (int t = 0; t < INPUTS + OUTPUTS; t++) {
            size_t bytes = (size_t)bed->counts[i] * tensor_bytes(bed, t) + 128;
            bed->memory[i][t] = aligned_alloc(64, (bytes + 63) / 64 * 64);
            assert_non_null(bed->memory[i][t]);
            memset(bed->memory[i][t], NOISE, (bytes + 63) / 64 * 64);
            if (t < INPUTS)
                bed->items[i].inputs[t] = t == 0 || bed->warm ? start_of(bed, i, t) : NULL;
            else
                bed->items[i].outputs[t - INPUTS] =
                    unwanted >> (t - INPUTS) & 1 && (i % 2 || bed->by_all) ? NULL
                                                                           : start_of(bed, i, t);
        }
        bed->items[i].first = at;
        for (int64_t k = 0; k < bed->counts[i]; k++, at++)
            set_matrix(bed, i, k, first + at);
    }
}

static int run(const struct bed *bed, int items)
{
    struct cuda_call call = {.precision = bed->precision,
                             .n = bed->n,
                             .options = bed->options,
                             .item_count = items,
                             .inputs = bed->warm ? 3 : 1,
                             .tensors = bed->items};
    for (int i = 0; i < items; i++) {
        call.matrices += bed->counts[i];
        for (int t = 0; t < OUTPUTS; t++)
            call.wanted |= bed->items[i].outputs[t] ? UINT32_C(1) << t : 0;
    }
    return cudatest_iterative_run(&call, bed->at_once ? bed->at_once : call.matrices);
}

static void release(struct bed *bed, int items)
{
    for (int i = 0; i < items; i++)
        for (int t = 0; t < INPUTS + OUTPUTS; t++)
            free(bed->memory[i][t]);
}

/* Nothing before or behind a tensor was written. */
static void check_edges(const struct bed *bed, int item, int tensor)
{
    const unsigned char *first = start_of(bed, item, tensor);
    const unsigned char *end = first + (size_t)bed->counts[item] * tensor_bytes(bed, tensor);
    for (const unsigned char *at = bed->memory[item][tensor]; at < first; at++)
        assert_int_equal(*at, NOISE);
    for (int i = 0; i < 32; i++)
        assert_int_equal(end[i], NOISE);
}

/* Number k alone, aligned and with memory in plenty. */
static void compare(const struct bed *bed, int item, int64_t index, int64_t k)
{
    struct bed alone = *bed;
    alone.late = 0;
    alone.at_once = 1;
    alone.counts[0] = 1;
    fill(&alone, 1, k, 0);
    (void)run(&alone, 1);
    for (int t = INPUTS; t < INPUTS + OUTPUTS; t++) {
        size_t bytes = tensor_bytes(bed, t);
        if (bed->items[item].outputs[t - INPUTS] &&
            memcmp(start_of(bed, item, t) + (size_t)index * bytes, start_of(&alone, 0, t), bytes))
            fail_msg("n = %d, matrix %d: another %s", (int)bed->n, (int)k,
                     method_iterative.outputs[t - INPUTS].name);
    }
    release(&alone, 1);
}

static void try_batch(struct bed *bed, int items, uint32_t unwanted)
{
    int64_t at = 10 + bed->n;
    bed->options[METHOD_ITERATIVE_MAX_ITERATIONS] = STEPS_MAX;
    fill(bed, items, at, unwanted);
    (void)run(bed, items);
    for (int i = 0; i < items; i++) {
        for (int t = 0; t < INPUTS + OUTPUTS; t++)
            check_edges(bed, i, t);
        for (int64_t k = 0; k < bed->counts[i]; k++, at++)
            compare(bed, i, k, at);
    }
    release(bed, items);
}

static void test_company_never_shows(void **state)
{
    (void)state;
    static const struct {
        enum precision precision;
        int64_t n, scheme, initial, at_once;
        int late;
        bool warm;
    } rows[] = {
        {PRECISION_FP64, 1, METHOD_ITERATIVE_SCHEME_AUTO, METHOD_ITERATIVE_INITIAL_AUTO, 0, 0,
         true},
        {PRECISION_FP32, 3, METHOD_ITERATIVE_ORDER19, METHOD_ITERATIVE_DIAGONAL, 2, 3, true},
        {PRECISION_FP64, 8, METHOD_ITERATIVE_SCHEME_AUTO, METHOD_ITERATIVE_INITIAL_AUTO, 0, 1,
         false},
        {PRECISION_FP64, 8, METHOD_ITERATIVE_SCHEME_AUTO, METHOD_ITERATIVE_SCALED_IDENTITY, 5, 1,
         true},
        {PRECISION_FP32, 20, METHOD_ITERATIVE_SCHEME_AUTO, METHOD_ITERATIVE_INITIAL_AUTO, 1, 1,
         false},
        {PRECISION_FP64, 33, METHOD_ITERATIVE_ORDER7, METHOD_ITERATIVE_INITIAL_AUTO, 3, 0, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bed bed = {.precision = rows[i].precision,
                          .n = rows[i].n,
                          .counts = {1, 3, 2, 5, 1},
                          .at_once = rows[i].at_once,
                          .late = rows[i].late,
                          .warm = rows[i].warm};
        bed.options[METHOD_ITERATIVE_SCHEME] = rows[i].scheme;
        bed.options[METHOD_ITERATIVE_INITIAL] = rows[i].initial;
        try_batch(&bed, rows[i].n > 20 ? 3 : ITEMS, 0);
    }
}

/* Matrices that are far apart, for this order, are launched for one after the other. */
static void test_groups(void **state)
{
    (void)state;
    struct bed bed = {.precision = PRECISION_FP64, .n = 2, .counts = {60}};
    try_batch(&bed, 1, 0);
    bed = (struct bed){.precision = PRECISION_FP32, .n = 4, .counts = {1, 1, 1, 1, 1}, .late = 1};
    try_batch(&bed, ITEMS, 0);
}

/* An item may leave out what is not always computed. */
static void test_unwanted_outputs(void **state)
{
    (void)state;
    static const int outputs[] = {METHOD_ITERATIVE_INVERSE, METHOD_ITERATIVE_HISTORY};
    for (size_t i = 0; i < COUNT(outputs); i++) {
        struct bed bed = {.precision = PRECISION_FP64, .n = 6, .counts = {2, 3, 2}};
        try_batch(&bed, 3, UINT32_C(1) << outputs[i]);
    }
}

/* Where nobody wants the residual, the last step is not measured; all else keeps its bits. */
static void test_unmeasured(void **state)
{
    (void)state;
    static const double tolerances[] = {0, 1e-3, 1e-11};
    static const int64_t orders[] = {1, 9, 20};
    for (size_t i = 0; i < COUNT(orders) * COUNT(tolerances) * METHOD_ITERATIVE_SCHEMES; i++) {
        size_t k = i / METHOD_ITERATIVE_SCHEMES;
        struct bed bed = {.precision = (enum precision)(i % 2),
                          .n = orders[k / COUNT(tolerances)],
                          .counts = {2, 1, 1},
                          .by_all = true,
                          .warm = i % 3 == 0};
        bed.options[METHOD_ITERATIVE_SCHEME] = (int64_t)(i % METHOD_ITERATIVE_SCHEMES);
        bed.options[METHOD_ITERATIVE_INITIAL] = (int64_t)(k % 5);
        memcpy(&bed.options[METHOD_ITERATIVE_TOLERANCE], &tolerances[k % COUNT(tolerances)],
               sizeof tolerances[0]);
        try_batch(&bed, 3,
                  UINT32_C(1) << METHOD_ITERATIVE_RESIDUAL | UINT32_C(1)
                                                                 << METHOD_ITERATIVE_HISTORY);
    }
}

/* A step is one launch, so that a batch takes as many as its slowest matrix. */
static void test_launches(void **state)
{
    (void)state;
    struct bed bed = {.precision = PRECISION_FP64, .n = 6, .counts = {1}, .warm = true};
    bed.options[METHOD_ITERATIVE_MAX_ITERATIONS] = STEPS_MAX;
    bed.options[METHOD_ITERATIVE_SCHEME] = METHOD_ITERATIVE_NEWTON_SCHULZ;
    fill(&bed, 1, 0, 0);
    int launches = run(&bed, 1);
    int32_t steps;
    memcpy(&steps, start_of(&bed, 0, INPUTS + METHOD_ITERATIVE_ITERATIONS), sizeof steps);
    assert_true(steps > 3);
    assert_int_equal(launches, steps + 3); /* coming in, the start, and storing */
    release(&bed, 1);
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
    assert_int_equal((int)CUDA__ITER_V0, (int)METHOD_ITERATIVE_V0);
    assert_int_equal((int)CUDA__ITER_HISTORY, (int)METHOD_ITERATIVE_HISTORY);
    assert_int_equal((int)CUDA__ITER_SCHEMES, (int)METHOD_ITERATIVE_SCHEMES);
    assert_int_equal((int)CUDA__ITER_ORDER7_HORNER, (int)METHOD_ITERATIVE_ORDER7_HORNER);
    assert_int_equal((int)CUDA__ITER_SCALED_IDENTITY, (int)METHOD_ITERATIVE_SCALED_IDENTITY);
    assert_int_equal((int)CUDA__ITER_MAX_ITERATIONS, (int)METHOD_ITERATIVE_MAX_ITERATIONS);
    assert_int_equal((int)CUDA__ITER_INITIAL, (int)METHOD_ITERATIVE_INITIAL);
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
        cmocka_unit_test(test_descriptor), cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_launches),   cmocka_unit_test(test_company_never_shows),
        cmocka_unit_test(test_groups),     cmocka_unit_test(test_unwanted_outputs),
        cmocka_unit_test(test_unmeasured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
