/* gpu/cuda/iterative/self_test.c: the self-test of `iterative`: see self_test.h. Random matrices
 * and dominant ones, by every scheme and from every start once, some with rows and columns of
 * different scales, judged by |I - X A| / (n |A| |X| eps).
 */
#include "gpu/cuda/base/self_test.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "gpu/cuda/iterative/call.h"
#include "gpu/cuda/iterative/iterative.h"
#include "gpu/methods/iterative.h"
#include "gpu/process/self_test.h"

#define MATRICES 3
#define N_MAX 40
#define NUMBERS (N_MAX * N_MAX)
#define STARTS (METHOD_ITERATIVE_SCALED_IDENTITY + 1)

/* Pinned: what one call reads and writes. The numbers are of either precision. */
struct bench {
    double a[MATRICES * NUMBERS], x[MATRICES * NUMBERS];
    double rcond[MATRICES], residual[MATRICES];
    int32_t info[MATRICES], algorithm[MATRICES], iterations[MATRICES];
    struct cuda_tensors item;
    struct cuda_notes notes;
};

/* Infinite when INFO says that there is no answer. */
static double ratio_of(const struct cuda__self_case *of, int64_t matrix)
{
    const struct bench *h_bench = of->h_bench;
    if (h_bench->info[matrix] != 0)
        return HUGE_VAL;
    return process_attempt_ratio(of->call.precision, of->call.n, h_bench->a, h_bench->x, matrix);
}

/* Entry (i, j) of each matrix times 2^(4 (i % 3 - j % 2)). */
static void scale(enum precision precision, void *a, int64_t n)
{
    for (int64_t e = 0; e < MATRICES * n * n; e++) {
        const int exponent = 4 * (int)(e / n % n % 3 - e % n % 2);
        if (precision == PRECISION_FP32)
            ((float *)a)[e] = ldexpf(((float *)a)[e], exponent);
        else
            ((double *)a)[e] = ldexp(((double *)a)[e], exponent);
    }
}

/* Random matrices, made dominant for the starts that want it. */
static void fill(struct cuda__self_case *of, int k)
{
    static const int64_t orders[] = {1, 20, N_MAX};
    struct bench *h_bench = of->h_bench, *seen = of->d_bench;
    struct cuda_call *call = &of->call;
    const int64_t n = orders[k % 3], initial = k % STARTS;
    h_bench->item =
        (struct cuda_tensors){.inputs = {seen->a},
                              .outputs = {[METHOD_ITERATIVE_INVERSE] = seen->x,
                                          [METHOD_ITERATIVE_INFO] = seen->info,
                                          [METHOD_ITERATIVE_RCOND] = seen->rcond,
                                          [METHOD_ITERATIVE_ALGORITHM] = seen->algorithm,
                                          [METHOD_ITERATIVE_ITERATIONS] = seen->iterations,
                                          [METHOD_ITERATIVE_RESIDUAL] = seen->residual}};
    of->options[METHOD_ITERATIVE_MAX_ITERATIONS] = 100;
    of->options[METHOD_ITERATIVE_SCHEME] = k;
    of->options[METHOD_ITERATIVE_INITIAL] = initial;
    call->n = n;
    call->inputs = UINT32_C(1) << METHOD_ITERATIVE_A;
    call->wanted = UINT32_C(1) << METHOD_ITERATIVE_INVERSE;
    call->notes = &h_bench->notes;
    call->d_notes = &seen->notes;
    call->tensors = &seen->item;
    process_attempt_fill(call->precision, h_bench->a, MATRICES * n * n);
    for (int64_t row = 0; initial != METHOD_ITERATIVE_TRANSPOSE && row < MATRICES * n; row++) {
        int64_t at = row / n * n * n + row % n * (n + 1);
        if (call->precision == PRECISION_FP32)
            ((float *)h_bench->a)[at] = (float)(2 * n);
        else
            h_bench->a[at] = (double)(2 * n);
    }
    if (k % 2)
        scale(call->precision, h_bench->a, n);
    memset(h_bench->x, 0xa5, sizeof h_bench->x);
}

cudaError_t cuda__try_iterative(struct cuda_pool *pool, struct cuda_products *products,
                                enum precision precision, cudaStream_t stream, double *worst)
{
    static const struct cuda__self_rows rows = {.bench_bytes = sizeof(struct bench),
                                                .cases = METHOD_ITERATIVE_SCHEMES,
                                                .matrices = MATRICES,
                                                .fill = fill,
                                                .ratio = ratio_of,
                                                .workspace = cuda_iterative_workspace,
                                                .launch = cuda_iterative,
                                                .again = cuda_iterative_again};
    return cuda__self_test(&rows, pool, products, precision, stream, worst);
}
