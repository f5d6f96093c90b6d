/* `tridiagonal` on the CUDA engine's kernels, run on the CPU: batches of items of every shape,
 * whose answers are bit for bit what each matrix gets alone; the same report as the host's; and the
 * descriptor's order. Its accuracy: test_tridiagonal_cases.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/cuda/tridiagonal/call.h"
#include "gpu/cuda/tridiagonal/tridiagonal.h"
#include "gpu/host/base/host.h"
#include "gpu/methods/tridiagonal.h"
#include "tests/simt/simt.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/cuda/as_host.h"
#include "tests/unit/gpu/cuda/neighbours.h"
#include "tests/unit/gpu/host/bands.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define OUTPUTS (METHOD_TRIDIAGONAL_EXPONENTS + 1)
#define INPUTS 3
#define ITEMS 7
#define VARIANTS 4

/* ---- Neighbours ---- */

static const struct method *method(void)
{
    return method_find("tridiagonal");
}

/* Matrix k of any batch: of a kind that goes with k. */
static void set_matrix(const struct cudatest_bed *bed, int item, int64_t index, int64_t k)
{
    struct gputest_bands a = gputest_bands_make((enum gputest_bands_kind)(k % BANDS_KINDS),
                                                bed->precision, bed->n, (uint64_t)k);
    const double *bands[] = {a.dl, a.d, a.du};
    if (k % 11 == 7)
        a.d[a.n / 2] = (double)NAN;
    for (int t = 0; t < INPUTS; t++)
        cudatest_put(bed->precision, cudatest_input(bed, item, index, t), bands[t],
                     t == METHOD_TRIDIAGONAL_D ? bed->n : bed->n - 1, 1);
    gputest_bands_free(&a);
}

static void run(const struct cudatest_bed *bed, struct cuda_call *call, int64_t at_once)
{
    (void)bed;
    call->workspace_bytes = cuda_tridiagonal_workspace(call, at_once);
    assert_int_equal(cudaMalloc(&call->workspace, call->workspace_bytes), cudaSuccess);
    if (cuda_tridiagonal(call, NULL) != cudaSuccess)
        fail_msg("%s", simt_report());
    cudaFree(call->workspace);
}

static void try_batch(struct cudatest_bed *bed, int items)
{
    bed->method = method();
    bed->inputs = (1U << INPUTS) - 1;
    bed->set_matrix = set_matrix;
    bed->run = run;
    cudatest_try_neighbours(bed, items, 100 + bed->n);
}

/* Orders of each kind of launch, and their neighbours. */
static void test_neighbours_never_show(void **state)
{
    (void)state;
    static const struct {
        enum precision precision;
        int64_t n;
        int variant, late, at_once;
    } rows[] = {
        {PRECISION_FP64, 1, 0, 0, 0},   {PRECISION_FP32, 1, 3, 1, 1},
        {PRECISION_FP64, 2, 1, 1, 1},   {PRECISION_FP32, 5, 1, 2, 0},
        {PRECISION_FP64, 33, 1, 1, 1},  {PRECISION_FP32, 66, 0, 3, 1},
        {PRECISION_FP64, 128, 2, 0, 1}, {PRECISION_FP32, 129, 1, 1, 0},
        {PRECISION_FP64, 300, 3, 1, 1}, {PRECISION_FP32, 514, 0, 2, 1},
        {PRECISION_FP64, 516, 0, 0, 1}, {PRECISION_FP32, 520, 2, 1, 0},
        {PRECISION_FP64, 544, 1, 0, 0}, {PRECISION_FP64, 516, 3, 1, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct cudatest_bed bed = {.precision = rows[i].precision,
                                   .n = rows[i].n,
                                   .options = {rows[i].variant},
                                   .counts = {1, 3, 1, 5, 2, 1, 4},
                                   .late = rows[i].late,
                                   .at_once = rows[i].at_once};
        try_batch(&bed, rows[i].n > 200 ? 3 : ITEMS);
    }
}

static void test_single_items(void **state)
{
    (void)state;
    struct cudatest_bed bed = {
        .precision = PRECISION_FP32, .n = 9, .counts = {1, 1, 1, 1, 1, 1, 1}, .late = 1};
    try_batch(&bed, ITEMS);
    bed.counts[0] = 40;
    try_batch(&bed, 1);
}

/* So many that a block has several of them at once, which a thread each follows; and a workspace
 * that holds few of those that are left over. */
static void test_several_a_block(void **state)
{
    (void)state;
    static const struct {
        int64_t n;
        int variant, late, at_once;
    } rows[] = {{5, 0, 1, 0}, {7, 1, 0, 3}, {4, 2, 0, 1}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct cudatest_bed bed = {.precision = (enum precision)(i % 2),
                                   .n = rows[i].n,
                                   .options = {rows[i].variant},
                                   .counts = {300, 1, 290},
                                   .late = rows[i].late,
                                   .at_once = rows[i].at_once};
        try_batch(&bed, 3);
    }
}

/* An item may leave out any output. */
static void test_unwanted_outputs(void **state)
{
    (void)state;
    static const int64_t orders[] = {6, 530};
    for (int output = 0; output < OUTPUTS; output++) {
        struct cudatest_bed bed = {.precision = PRECISION_FP64,
                                   .n = orders[output % 2],
                                   .options = {output % VARIANTS},
                                   .counts = {1, 2, 1},
                                   .unwanted = UINT32_C(1) << output};
        try_batch(&bed, 3);
    }
}

/* Blocks of X in a batch: their rows follow one another without a gap. */
static void test_blocks(void **state)
{
    (void)state;
    for (int variant = 0; variant < VARIANTS; variant++) {
        struct cudatest_bed bed = {
            .precision = PRECISION_FP64, .n = 41, .counts = {2, 3}, .late = 1};
        bed.options[METHOD_TRIDIAGONAL_VARIANT] = variant;
        bed.options[METHOD_TRIDIAGONAL_ROWS] = method_range_pack((struct method_range){7, 30});
        bed.options[METHOD_TRIDIAGONAL_COLUMNS] = method_range_pack((struct method_range){11, 16});
        try_batch(&bed, 2);
    }
}

/* ---- The host's report ---- */

struct report {
    int32_t info, algorithm;
    double rcond;
};

static struct report report_of(const struct host_method *of, const struct gputest_bands *a,
                               int variant)
{
    int64_t options[METHOD_OPTIONS_MAX] = {variant}, n = a->n;
    struct report report = {0};
    struct host_matrix matrix = {.inputs = {a->dl, a->d, a->du},
                                 .outputs = {[METHOD_TRIDIAGONAL_INFO] = &report.info,
                                             [METHOD_TRIDIAGONAL_RCOND] = &report.rcond,
                                             [METHOD_TRIDIAGONAL_ALGORITHM] = &report.algorithm},
                                 .n = n,
                                 .options = options};
    size_t bytes = (size_t)of->scratch_bytes(n, 0);
    matrix.scratch = aligned_alloc(HOST_ALIGN_BYTES, bytes);
    assert_non_null(matrix.scratch);
    of->run(&matrix);
    free(matrix.scratch);
    return report;
}

/* But for matrices that are singular to working precision, where rounding decides. */
static void test_same_report_as_the_host(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 2, 3, 20, 64, 131, 600};
    const struct host_method *host =
        host_method_at((uint32_t)method_index(method()), PRECISION_FP64);
    for (size_t k = 0; k < COUNT(orders) * BANDS_KINDS * VARIANTS; k++) {
        int64_t n = orders[k / VARIANTS / BANDS_KINDS];
        enum gputest_bands_kind kind = (enum gputest_bands_kind)(k / VARIANTS % BANDS_KINDS);
        struct gputest_bands a = gputest_bands_make(kind, PRECISION_FP64, n, (uint64_t)(k + 5));
        struct report theirs = report_of(host, &a, (int)(k % VARIANTS));
        struct report ours =
            report_of(cudatest_method_at(0, PRECISION_FP64), &a, (int)(k % VARIANTS));
        if (theirs.rcond > 1e-13 || theirs.rcond == 0) {
            assert_int_equal(ours.info, theirs.info);
            assert_int_equal(ours.algorithm, theirs.algorithm);
            assert_true(fabs(ours.rcond - theirs.rcond) <= 1e-3 * theirs.rcond);
        }
        gputest_bands_free(&a);
    }
}

/* ---- The scan against the serial recurrence ---- */

/* The largest relative error of the diagonal that two_sweep finds, by that of the serial recurrence
 * in long double. */
static double diagonal_error(const struct host_method *of, const struct gputest_bands *a,
                             const long double *truth)
{
    int64_t options[METHOD_OPTIONS_MAX] = {METHOD_TRIDIAGONAL_TWO_SWEEP};
    struct report report = {0};
    double *diagonal = gputest_numbers(a->n), largest = 0;
    struct host_matrix matrix = {.inputs = {a->dl, a->d, a->du},
                                 .outputs = {[METHOD_TRIDIAGONAL_DIAGONAL] = diagonal,
                                             [METHOD_TRIDIAGONAL_INFO] = &report.info,
                                             [METHOD_TRIDIAGONAL_RCOND] = &report.rcond,
                                             [METHOD_TRIDIAGONAL_ALGORITHM] = &report.algorithm},
                                 .n = a->n,
                                 .options = options};
    matrix.scratch = aligned_alloc(HOST_ALIGN_BYTES, (size_t)of->scratch_bytes(a->n, 0));
    assert_non_null(matrix.scratch);
    of->run(&matrix);
    assert_int_equal(report.info, 0);
    for (int64_t i = 0; i < a->n; i++)
        largest = residual_larger(largest, (double)fabsl(diagonal[i] / truth[i] - 1));
    free(matrix.scratch);
    free(diagonal);
    return largest;
}

static long double *true_diagonal(const struct gputest_bands *a)
{
    int64_t n = a->n;
    long double *gamma = calloc((size_t)n, sizeof *gamma), delta = a->d[0];
    assert_non_null(gamma);
    gamma[n - 1] = a->d[n - 1];
    for (int64_t i = n - 2; i >= 0; i--)
        gamma[i] = a->d[i] - (long double)a->dl[i] * a->du[i] / gamma[i + 1];
    for (int64_t i = 0; i < n; i++) {
        long double next = i + 1 < n ? a->d[i + 1] - (long double)a->dl[i] * a->du[i] / delta : 0;
        gamma[i] = 1 / (delta + gamma[i] - a->d[i]);
        delta = next;
    }
    return gamma;
}

/* Of one round of a block's threads and of several. */
static void test_scan_is_as_accurate_as_the_recurrence(void **state)
{
    (void)state;
    static const int64_t orders[] = {2, 30, 127, 500, 3000, 9000};
    static const enum gputest_bands_kind kinds[] = {BANDS_CONDITION_2, BANDS_STRONG_COLUMNS,
                                                    BANDS_ALTERNATING, BANDS_LAPLACE};
    const struct host_method *host =
        host_method_at((uint32_t)method_index(method()), PRECISION_FP64);
    for (size_t k = 0; k < COUNT(orders) * COUNT(kinds); k++) {
        struct gputest_bands a = gputest_bands_make(kinds[k % COUNT(kinds)], PRECISION_FP64,
                                                    orders[k / COUNT(kinds)], (uint64_t)k);
        long double *truth = true_diagonal(&a);
        double theirs = diagonal_error(host, &a, truth);
        double ours = diagonal_error(cudatest_method_at(0, PRECISION_FP64), &a, truth);
        if (!(ours <= theirs + 8 * gputest_eps(PRECISION_FP64)))
            fail_msg("kind %d, n = %d: %g, and serially %g", (int)kinds[k % COUNT(kinds)], (int)a.n,
                     ours, theirs);
        free(truth);
        gputest_bands_free(&a);
    }
}

/* ---- The descriptor, and what is refused ---- */

static void test_descriptor(void **state)
{
    (void)state;
    static const char *const inputs[] = {"DL", "D", "DU"};
    static const char *const outputs[] = {"INVERSE", "DIAGONAL",   "INFO",     "RCOND",
                                          "METHOD",  "GENERATORS", "EXPONENTS"};
    for (int i = 0; i < INPUTS; i++)
        assert_int_equal(method_input_find(method(), inputs[i]), i);
    assert_int_equal(method_output_count(method()), OUTPUTS);
    for (int i = 0; i < OUTPUTS; i++)
        assert_int_equal(method_output_find(method(), outputs[i]), i);
    assert_int_equal((int)METHOD_TRIDIAGONAL_AUTO, (int)METHOD_TRIDIAGONAL_AUTO);
    assert_int_equal((int)METHOD_TRIDIAGONAL_SHERMAN_MORRISON,
                     (int)METHOD_TRIDIAGONAL_SHERMAN_MORRISON);
    assert_int_equal((int)METHOD_TRIDIAGONAL_TWO_SWEEP, (int)METHOD_TRIDIAGONAL_TWO_SWEEP);
    assert_int_equal((int)METHOD_TRIDIAGONAL_PIVOTED, (int)METHOD_TRIDIAGONAL_PIVOTED);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    int64_t options[METHOD_OPTIONS_MAX] = {0};
    struct cuda_call call = {
        .precision = PRECISION_FP64, .n = 4, .options = options, .matrices = 1};
    call.workspace_bytes = cuda_tridiagonal_workspace(&call, 1) - 1;
    assert_int_equal(cuda_tridiagonal(&call, NULL), cudaErrorInvalidValue);
    call.workspace_bytes++;
    call.matrices = 0;
    assert_int_equal(cuda_tridiagonal(&call, NULL), cudaSuccess);
    call.n = CUDA_TRIDIAGONAL_N_MAX + 1;
    assert_int_equal(cuda_tridiagonal(&call, NULL), cudaErrorInvalidValue);
    assert_true(cuda_tridiagonal_workspace(&call, INT64_MAX) == SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptor),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_single_items),
        cmocka_unit_test(test_neighbours_never_show),
        cmocka_unit_test(test_several_a_block),
        cmocka_unit_test(test_unwanted_outputs),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_same_report_as_the_host),
        cmocka_unit_test(test_scan_is_as_accurate_as_the_recurrence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
