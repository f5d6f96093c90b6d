/* gpu/cuda/auto/self_test.c: the self-test of `auto`: see self_test.h. A batch of one matrix of
 * each kind, sorted and not, at orders below the least that is sorted, judged by
 * |I - X A| / (n |A| |X| eps), and by the algorithms that METHOD reports.
 */
#include "gpu/cuda/base/self_test.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "gpu/cuda/auto/auto.h"
#include "gpu/cuda/auto/call.h"
#include "gpu/process/self_test.h"

#define N_MAX 70
#define NUMBERS (N_MAX * N_MAX)

/* By their places in the batch. */
enum kind {
    DENSE,
    DIAGONAL,
    LOWER,
    UPPER,
    TRIDIAGONAL,
    DEFINITE,
    KINDS
};

static const enum method_algorithm algorithms[KINDS] = {
    [DENSE] = METHOD_ALGORITHM_LU,
    [DIAGONAL] = METHOD_ALGORITHM_DIAGONAL,
    [LOWER] = METHOD_ALGORITHM_TRIANGULAR,
    [UPPER] = METHOD_ALGORITHM_TRIANGULAR,
    [TRIDIAGONAL] = METHOD_ALGORITHM_TRIDIAGONAL,
    [DEFINITE] = METHOD_ALGORITHM_CHOLESKY,
};

/* Pinned: what one call reads and writes. The numbers are of either precision. */
struct bench {
    double a[KINDS * NUMBERS], x[KINDS * NUMBERS];
    double rcond[KINDS];
    int32_t info[KINDS], algorithm[KINDS];
    struct cuda_tensors item;
    struct cuda_notes notes;
};

static bool is_zero(enum kind kind, int64_t i, int64_t j)
{
    switch (kind) {
    case DIAGONAL:
        return i != j;
    case LOWER:
        return j > i;
    case UPPER:
        return j < i;
    case TRIDIAGONAL:
        return j > i + 1 || i > j + 1;
    default:
        return false;
    }
}

/* Random numbers where there are any; all but the dense one dominated by their diagonals. */
static void fill_matrices(struct bench *h_bench, enum precision precision, int64_t n)
{
    process_attempt_fill(precision, h_bench->a, KINDS * n * n);
    for (int64_t at = 0; at < KINDS * n * n; at++) {
        int64_t i = at / n % n, j = at % n;
        enum kind kind = (enum kind)(at / (n * n));
        /* Of a symmetric one above the diagonal what is below, which comes later. */
        int64_t image = kind == DEFINITE && i < j ? at + (j - i) * (n - 1) : at;
        double value = process_attempt_get(precision, h_bench->a, image);
        value = is_zero(kind, i, j) ? 0 : i == j && kind != DENSE ? (double)n + value : value;
        if (precision == PRECISION_FP32)
            ((float *)h_bench->a)[at] = (float)value;
        else
            h_bench->a[at] = value;
    }
    memset(h_bench->x, 0xa5, sizeof h_bench->x);
}

static void fill(struct cuda__self_case *of, int k)
{
    static const int64_t orders[] = {8, CUDA_SMALL_N_MAX + 1, N_MAX};
    struct bench *h_bench = of->h_bench, *seen = of->d_bench;
    struct cuda_call *call = &of->call;
    h_bench->item = (struct cuda_tensors){.inputs = {seen->a},
                                          .outputs = {[METHOD_OUTPUT_INVERSE] = seen->x,
                                                      [METHOD_OUTPUT_INFO] = seen->info,
                                                      [METHOD_OUTPUT_RCOND] = seen->rcond,
                                                      [METHOD_OUTPUT_ALGORITHM] = seen->algorithm}};
    call->n = orders[k];
    call->inputs = UINT32_MAX;
    call->wanted = UINT32_C(1) << METHOD_OUTPUT_INVERSE;
    call->notes = &h_bench->notes;
    call->d_notes = &seen->notes;
    call->tensors = &seen->item;
    fill_matrices(h_bench, call->precision, call->n);
}

/* Infinite when INFO says that there is no answer, or METHOD names another algorithm. */
static double ratio_of(const struct cuda__self_case *of, int64_t matrix,
                       enum method_algorithm algorithm)
{
    const struct bench *h_bench = of->h_bench;
    if (h_bench->info[matrix] != 0 || h_bench->algorithm[matrix] != (int)algorithm)
        return HUGE_VAL;
    return process_attempt_ratio(of->call.precision, of->call.n, h_bench->a, h_bench->x, matrix);
}

/* ---- By lu, and sorted ---- */

static double plain_ratio(const struct cuda__self_case *of, int64_t matrix)
{
    return ratio_of(of, matrix, METHOD_ALGORITHM_LU);
}

static size_t plain_workspace(const struct cuda_call *call, int64_t matrices)
{
    return cuda__auto_bytes(call, false, matrices);
}

static cudaError_t plain_launch(const struct cuda_call *call, cudaStream_t stream)
{
    return cuda__auto_begin(call, false, stream);
}

static double sorted_ratio(const struct cuda__self_case *of, int64_t matrix)
{
    return ratio_of(of, matrix, algorithms[matrix]);
}

static size_t sorted_workspace(const struct cuda_call *call, int64_t matrices)
{
    return cuda__auto_bytes(call, true, matrices);
}

static cudaError_t sorted_launch(const struct cuda_call *call, cudaStream_t stream)
{
    return cuda__auto_begin(call, true, stream);
}

cudaError_t cuda__try_auto(struct cuda_pool *pool, struct cuda_products *products,
                           enum precision precision, cudaStream_t stream, double *worst)
{
    static const struct cuda__self_rows rows[] = {
        {sizeof(struct bench), 3, KINDS, fill, plain_ratio, plain_workspace, plain_launch,
         cuda_auto_again},
        {sizeof(struct bench), 3, KINDS, fill, sorted_ratio, sorted_workspace, sorted_launch,
         cuda_auto_again},
    };
    double sorted = 0;
    cudaError_t status = cuda__self_test(&rows[0], pool, products, precision, stream, worst);
    if (status == cudaSuccess)
        status = cuda__self_test(&rows[1], pool, products, precision, stream, &sorted);
    *worst = sorted > *worst || isnan(sorted) ? sorted : *worst;
    return status;
}
