/* `ism` on the CUDA engine's kernels, run on the CPU: batches of items of every shape, whose
 * answers are bit for bit what each matrix gets alone; the memory that is taken; and the
 * descriptor's order. Algorithms: test_ism_algorithms.c; accuracy: test_ism_cases.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gpu/cuda/ism/ism.h"
#include "gpu/cuda/gemm/gemm.h"
#include "gpu/cuda/ism/call.h"
#include "tests/simt/simt.h"
#include "tests/unit/gpu/cuda/neighbours.h"
#include "tests/unit/gpu/cuda/ism/ism_host.h"
#include "tests/unit/gpu/host/ism.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define INPUTS 7
#define OUTPUTS 10
#define ITEMS 5

/* ---- Neighbours ---- */

static const struct method *method(void)
{
    return method_find("ism");
}

static uint32_t inputs_of(enum ismtest_kind kind)
{
    static const uint32_t inputs[] = {
        [ISMTEST_DEFAULT] = METHOD_ISM_XY,
        [ISMTEST_SCALE] = METHOD_ISM_XY | METHOD_INPUT(METHOD_ISM_A0_SCALE),
        [ISMTEST_DIAGONAL] = METHOD_ISM_XY | METHOD_INPUT(METHOD_ISM_A0_DIAGONAL),
        [ISMTEST_INVERSE] = METHOD_ISM_XY | METHOD_INPUT(METHOD_ISM_A0_INVERSE),
        [ISMTEST_INVERSE_AND_A0] =
            METHOD_ISM_XY | METHOD_INPUT(METHOD_ISM_A0_INVERSE) | METHOD_INPUT(METHOD_ISM_A0_DENSE),
        [ISMTEST_ALONE] = METHOD_INPUT(METHOD_ISM_A),
    };
    return inputs[kind];
}

/* Matrix k of any batch: of every seventh A0 is tiny, so that it must be recovered; of every
 * eleventh a number is none. */
static void set_matrix(const struct cudatest_bed *bed, int item, int64_t index, int64_t k)
{
    int64_t n = bed->n, m = bed->m;
    struct ismtest_problem a =
        ismtest_problem(bed->precision, (enum ismtest_kind)bed->kind, n, m, (uint64_t)(k * 31 + n));
    for (int64_t i = 0; k % 7 == 3 && i < n * n; i++) {
        a.a0[i] *= 1e-12;
        if (a.b)
            a.b[i] *= i % (n + 1) ? -3 : 1e12;
    }
    if (k % 11 == 5)
        a.a[0] = a.x[m > 0 ? n * m - 1 : 0] = a.a0[0] = (double)NAN;
    const struct {
        const double *numbers;
        int64_t count, step;
    } tensors[INPUTS] = {
        [METHOD_ISM_A] = {a.a, n * n, 1},
        [METHOD_ISM_X] = {a.x, n * m, 1},
        [METHOD_ISM_Y] = {a.y, n * m, 1},
        [METHOD_ISM_A0_SCALE] = {a.a0, 1, 1},
        [METHOD_ISM_A0_DIAGONAL] = {a.a0, n, n + 1},
        [METHOD_ISM_A0_DENSE] = {a.a0, n * n, 1},
        [METHOD_ISM_A0_INVERSE] = {a.b, n * n, 1},
    };
    for (int t = 0; t < INPUTS; t++)
        if (bed->items[item].inputs[t])
            cudatest_put(bed->precision, cudatest_input(bed, item, index, t), tensors[t].numbers,
                         tensors[t].count, tensors[t].step);
    ismtest_free(&a);
}

/* As the engine does it. */
static void run(const struct cudatest_bed *bed, struct cuda_call *call, int64_t at_once)
{
    uint32_t unverified = 0;
    (void)bed;
    call->batch.unverified = &unverified;
    call->workspace_bytes = cuda_ism_workspace(call, at_once);
    assert_int_equal(cudaMalloc(&call->workspace, call->workspace_bytes), cudaSuccess);
    if (cuda_ism(call, NULL) != cudaSuccess)
        fail_msg("%s", simt_report());
    cudaFree(call->workspace);
    call->to_recover = unverified;
    cudatest_recover_ism(call);
    assert_true(unverified <= call->matrices); /* recovery adds none */
}

static void try_batch(struct cudatest_bed *bed, int items)
{
    bed->method = method();
    bed->inputs = inputs_of((enum ismtest_kind)bed->kind);
    bed->set_matrix = set_matrix;
    bed->run = run;
    assert_int_equal(cuda_products_create(NULL, &bed->products), cudaSuccess);
    cudatest_try_neighbours(bed, items, 40 + bed->n);
    cuda_products_destroy(&bed->products);
}

/* Each way to give A0, each algorithm, orders of each size of a team. */
static void test_neighbours_never_show(void **state)
{
    (void)state;
    static const struct {
        enum precision precision;
        enum ismtest_kind kind;
        int64_t n, m, variant, block_size;
        int late, at_once;
    } rows[] = {
        {PRECISION_FP64, ISMTEST_INVERSE, 1, 1, 0, 0, 1, 0},
        {PRECISION_FP32, ISMTEST_DIAGONAL, 5, 2, 0, 0, 3, 1},
        {PRECISION_FP64, ISMTEST_INVERSE, 8, 3, 0, 0, 0, 1},
        {PRECISION_FP64, ISMTEST_INVERSE_AND_A0, 13, 6, 0, 0, 1, 0},
        {PRECISION_FP32, ISMTEST_INVERSE, 32, 1, 0, 0, 1, 1},
        {PRECISION_FP64, ISMTEST_INVERSE, 16, 4, 0, 0, 0, 0},
        {PRECISION_FP32, ISMTEST_INVERSE, 29, 7, 0, 0, 1, 0},
        {PRECISION_FP64, ISMTEST_INVERSE, 32, 8, 0, 0, 0, 0},
        {PRECISION_FP64, ISMTEST_INVERSE, 19, 3, 0, 0, 1, 1},
        {PRECISION_FP64, ISMTEST_INVERSE, 22, 4, 0, 0, 1, 0},
        {PRECISION_FP64, ISMTEST_INVERSE, 24, 6, 0, 0, 1, 0},
        {PRECISION_FP32, ISMTEST_INVERSE, 20, 5, 0, 0, 3, 0},
        {PRECISION_FP32, ISMTEST_INVERSE, 24, 7, 0, 0, 1, 0},
        {PRECISION_FP64, ISMTEST_INVERSE, 32, 5, 0, 0, 1, 0},
        {PRECISION_FP64, ISMTEST_SCALE, 35, 5, 0, 0, 0, 0},
        {PRECISION_FP64, ISMTEST_INVERSE, 67, 35, 0, 0, 1, 1},
        {PRECISION_FP32, ISMTEST_INVERSE, 90, 34, 0, 0, 0, 3},
        {PRECISION_FP64, ISMTEST_INVERSE, 33, 3, 0, 0, 1, 0},
        {PRECISION_FP32, ISMTEST_INVERSE, 52, 11, 0, 0, 0, 1},
        {PRECISION_FP64, ISMTEST_INVERSE, 66, 17, 0, 0, 2, 0},
        {PRECISION_FP64, ISMTEST_DEFAULT, 9, 4, METHOD_ISM_SINGLE, 0, 1, 1},
        {PRECISION_FP32, ISMTEST_DIAGONAL, 40, 20, METHOD_ISM_BLOCK, 8, 2, 1},
        {PRECISION_FP64, ISMTEST_INVERSE, 21, 9, METHOD_ISM_REDUCED_MEMORY, 4, 1, 1},
        {PRECISION_FP32, ISMTEST_INVERSE, 21, 9, METHOD_ISM_REDUCED_MEMORY, 4, 1, 3},
        {PRECISION_FP64, ISMTEST_INVERSE, 70, 9, METHOD_ISM_REDUCED_MEMORY, 2, 2, 0},
        {PRECISION_FP64, ISMTEST_INVERSE_AND_A0, 21, 9, METHOD_ISM_REDUCED_MEMORY, 4, 0, 0},
        {PRECISION_FP64, ISMTEST_DIAGONAL, 130, 9, 0, 0, 1, 0},
        {PRECISION_FP64, ISMTEST_INVERSE_AND_A0, 130, 33, 0, 0, 0, 3},
        {PRECISION_FP64, ISMTEST_ALONE, 18, 18, 0, 0, 1, 0},
        {PRECISION_FP64, ISMTEST_INVERSE, 6, 9, 0, 0, 0, 1}, /* m > n: by lu */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct cudatest_bed bed = {.precision = rows[i].precision,
                                   .kind = rows[i].kind,
                                   .n = rows[i].n,
                                   .m = rows[i].m,
                                   .options = {rows[i].variant, rows[i].block_size},
                                   .counts = {1, 3, 5, 1, 2},
                                   .late = rows[i].late,
                                   .at_once = rows[i].at_once};
        try_batch(&bed, ITEMS);
    }
}

/* More than a block of threads has teams, in one item; and items of one matrix. */
static void test_single_items(void **state)
{
    (void)state;
    struct cudatest_bed bed = {.precision = PRECISION_FP64,
                               .kind = ISMTEST_INVERSE,
                               .n = 7,
                               .m = 1,
                               .counts = {1, 1, 1, 1, 1}};
    try_batch(&bed, ITEMS);
    bed.counts[0] = 37;
    try_batch(&bed, 1);
}

/* An item may leave out any output that is no number of a matrix, or takes work of its own.
 * RESIDUAL is measured from INVERSE, and goes with it. */
static void test_unwanted_outputs(void **state)
{
    (void)state;
    static const uint32_t outputs[] = {METHOD_INPUT(METHOD_ISM_INVERSE) |
                                           METHOD_INPUT(METHOD_ISM_RESIDUAL),
                                       METHOD_INPUT(METHOD_ISM_U),
                                       METHOD_INPUT(METHOD_ISM_R),
                                       METHOD_INPUT(METHOD_ISM_V),
                                       METHOD_INPUT(METHOD_ISM_RESIDUAL),
                                       METHOD_INPUT(METHOD_ISM_RCOND_CAPACITANCE)};
    for (size_t i = 0; i < COUNT(outputs); i++) {
        struct cudatest_bed bed = {.precision = PRECISION_FP64,
                                   .kind = ISMTEST_DIAGONAL,
                                   .n = 11,
                                   .m = 3,
                                   .options = {(int64_t)i % (METHOD_ISM_REDUCED_MEMORY + 1)},
                                   .counts = {2, 2, 1},
                                   .unwanted = outputs[i]};
        try_batch(&bed, 3);
    }
}

/* Sums so long that their products are cut, in a workspace for one matrix too. */
static void test_pieces_in_company(void **state)
{
    (void)state;
    struct cudatest_bed bed = {
        .precision = PRECISION_FP64, .kind = ISMTEST_DIAGONAL, .n = 521, .m = 3, .counts = {2}};
    try_batch(&bed, 1);
}

/* Streamed updates of few matrices have a block for each strip, and of many for several: strips of
 * 32 rows, and of 16; one part, and two; at once, and in chunks. */
static void test_streams_in_company(void **state)
{
    (void)state;
    static const struct {
        enum precision precision;
        int64_t n, m, matrices, at_once;
    } rows[] = {{PRECISION_FP64, 66, 33, CUDA__ISM_STREAM_FEW + 1, 0},
                {PRECISION_FP64, 145, 2, CUDA__ISM_STREAM_FEW / 2 + 1, 5},
                {PRECISION_FP32, 90, 34, CUDA__ISM_STREAM_FEW + 1, 0}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct cudatest_bed bed = {.precision = rows[i].precision,
                                   .kind = ISMTEST_INVERSE,
                                   .n = rows[i].n,
                                   .m = rows[i].m,
                                   .counts = {rows[i].matrices},
                                   .at_once = rows[i].at_once};
        try_batch(&bed, 1);
    }
}

/* ---- The descriptor, and what is refused ---- */

static void test_descriptor(void **state)
{
    (void)state;
    static const int inputs[] = {METHOD_ISM_A,         METHOD_ISM_X,           METHOD_ISM_Y,
                                 METHOD_ISM_A0_SCALE,  METHOD_ISM_A0_DIAGONAL, METHOD_ISM_A0_DENSE,
                                 METHOD_ISM_A0_INVERSE};
    static const int theirs[] = {METHOD_ISM_A,         METHOD_ISM_X,           METHOD_ISM_Y,
                                 METHOD_ISM_A0_SCALE,  METHOD_ISM_A0_DIAGONAL, METHOD_ISM_A0_DENSE,
                                 METHOD_ISM_A0_INVERSE};
    static const int outputs[] = {
        METHOD_ISM_INVERSE,           METHOD_ISM_INFO,    METHOD_ISM_RCOND, METHOD_ISM_ALGORITHM,
        METHOD_ISM_DET_RATIO,         METHOD_ISM_U,       METHOD_ISM_R,     METHOD_ISM_V,
        METHOD_ISM_RCOND_CAPACITANCE, METHOD_ISM_RESIDUAL};
    static const int their_outputs[] = {
        METHOD_ISM_INVERSE,           METHOD_ISM_INFO,    METHOD_ISM_RCOND, METHOD_ISM_ALGORITHM,
        METHOD_ISM_DET_RATIO,         METHOD_ISM_U,       METHOD_ISM_R,     METHOD_ISM_V,
        METHOD_ISM_RCOND_CAPACITANCE, METHOD_ISM_RESIDUAL};
    for (size_t i = 0; i < COUNT(inputs); i++)
        assert_int_equal(inputs[i], theirs[i]);
    for (size_t i = 0; i < COUNT(outputs); i++)
        assert_int_equal(outputs[i], their_outputs[i]);
    assert_int_equal(method_output_count(method()), OUTPUTS);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    int64_t options[METHOD_OPTIONS_MAX] = {METHOD_ISM_BLOCK};
    struct cuda_call call = {.precision = PRECISION_FP64,
                             .n = 4,
                             .m = 2,
                             .inputs = METHOD_ISM_XY,
                             .options = options,
                             .matrices = 1};
    call.workspace_bytes = 100;
    assert_int_equal(cuda_ism(&call, NULL), cudaErrorInvalidValue);
    call.to_recover = 1;
    assert_int_equal(cuda_ism_recover(&call, NULL), cudaErrorInvalidValue);
    call.matrices = 0;
    assert_int_equal(cuda_ism(&call, NULL), cudaSuccess);
    call.n = CUDA_ISM_N_MAX + 1;
    assert_int_equal(cuda_ism(&call, NULL), cudaErrorInvalidValue);
    assert_int_equal(cuda_ism_recover(&call, NULL), cudaErrorInvalidValue);
}

/* At m = n `reduced_memory` takes 3 n^2 numbers and `block` 5 n^2, with A0_INVERSE 6 n^2, and lines
 * of n for a few blocks. */
static void test_memory(void **state)
{
    (void)state;
    static const struct {
        uint32_t inputs;
        int64_t block, reduced; /* squares */
    } rows[] = {{0, 5, 3},
                {METHOD_INPUT(METHOD_ISM_A0_DIAGONAL), 5, 3},
                {METHOD_INPUT(METHOD_ISM_A0_INVERSE), 6, 3}};
    static const int64_t orders[] = {4096, 8192};
    for (size_t i = 0; i < COUNT(rows) * COUNT(orders); i++) {
        const int64_t n = orders[i / COUNT(rows)], row = (int64_t)(i % COUNT(rows));
        int64_t options[METHOD_OPTIONS_MAX] = {METHOD_ISM_BLOCK};
        struct cuda_call call = {.precision = PRECISION_FP64,
                                 .n = n,
                                 .m = n,
                                 .inputs = METHOD_ISM_XY | rows[row].inputs,
                                 .options = options,
                                 .matrices = 1};
        const size_t line = (size_t)n * sizeof(double);
        const size_t block = cuda_ism_workspace(&call, 1) / line;
        options[METHOD_ISM_VARIANT] = METHOD_ISM_REDUCED_MEMORY;
        const size_t reduced = cuda_ism_workspace(&call, 1) / line;
        assert_in_range(block, rows[row].block * n, rows[row].block * n + 2048);
        assert_in_range(reduced, rows[row].reduced * n, rows[row].reduced * n + 1280);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptor),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_single_items),
        cmocka_unit_test(test_neighbours_never_show),
        cmocka_unit_test(test_unwanted_outputs),
        cmocka_unit_test(test_pieces_in_company),
        cmocka_unit_test(test_streams_in_company),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
