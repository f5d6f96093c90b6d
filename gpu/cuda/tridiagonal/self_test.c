/* gpu/cuda/tridiagonal/self_test.c: `tridiagonal` for the self-test: a dominant matrix and one that
 * is not, by every variant, at an order of each kind of launch. Checked by
 * |I - A X| / (n |A| |X| eps), the sums in double. See self_test.h.
 */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "gpu/cuda/base/self_test.h"
#include "gpu/cuda/tridiagonal/call.h"
#include "gpu/cuda/tridiagonal/tridiagonal.h"

#define MATRICES 2
#define N_MAX 530
#define VARIANTS 4

static const int64_t orders[] = {1, 6, 70, 200, N_MAX};
#define ORDERS 5

/* Pinned. The numbers are of either precision. */
struct bench {
    double dl[MATRICES * N_MAX], d[MATRICES * N_MAX], du[MATRICES * N_MAX];
    double x[MATRICES * N_MAX * N_MAX], rcond[MATRICES];
    int32_t info[MATRICES], algorithm[MATRICES];
    struct cuda_tensors item;
};

static double get(enum precision precision, const void *data, int64_t index)
{
    return precision == PRECISION_FP32 ? (double)((const float *)data)[index]
                                       : ((const double *)data)[index];
}

static void put(enum precision precision, void *data, int64_t index, double value)
{
    if (precision == PRECISION_FP32)
        ((float *)data)[index] = (float)value;
    else
        ((double *)data)[index] = value;
}

static double ratio_of(const struct cuda__self_case *of, int64_t k)
{
    const struct bench *h_bench = of->h_bench;
    const enum precision precision = of->call.precision;
    const int64_t n = of->call.n;
    double norm_a = 0, norm_x = 0, worst = 0;
    double eps = precision == PRECISION_FP32 ? FLT_EPSILON : DBL_EPSILON;
    if (h_bench->info[k] != 0)
        return HUGE_VAL;
    for (int64_t j = 0; j < n; j++) {
        double wrong = 0, size = 0;
        for (int64_t i = 0; i < n; i++) {
            int64_t at = (k * n + i) * n + j, adjacent = k * (n - 1) + i;
            double x = get(precision, h_bench->x, at), sum = i == j ? -1 : 0, row;
            double d = get(precision, h_bench->d, k * n + i);
            double left = i > 0 ? get(precision, h_bench->dl, adjacent - 1) : 0;
            double right = i + 1 < n ? get(precision, h_bench->du, adjacent) : 0;
            sum += d * x + (i > 0 ? left * get(precision, h_bench->x, at - n) : 0);
            sum += i + 1 < n ? right * get(precision, h_bench->x, at + n) : 0;
            row = fabs(left) + fabs(d) + fabs(right);
            norm_a = row > norm_a ? row : norm_a;
            wrong += fabs(sum);
            size += fabs(x);
        }
        norm_x = size > norm_x ? size : norm_x;
        worst = wrong > worst || isnan(wrong) ? wrong : worst;
    }
    return worst / ((double)n * norm_a * norm_x * eps);
}

/* The diagonal of the second matrix is too small to dominate, and no entry is zero. */
static void fill(struct cuda__self_case *of, int k)
{
    struct bench *h_bench = of->h_bench, *seen = of->d_bench;
    const enum precision precision = of->call.precision;
    const int64_t n = orders[k / VARIANTS];
    h_bench->item =
        (struct cuda_tensors){.inputs = {seen->dl, seen->d, seen->du},
                              .outputs = {[METHOD_TRIDIAGONAL_INVERSE] = seen->x,
                                          [METHOD_TRIDIAGONAL_INFO] = seen->info,
                                          [METHOD_TRIDIAGONAL_RCOND] = seen->rcond,
                                          [METHOD_TRIDIAGONAL_ALGORITHM] = seen->algorithm}};
    of->options[0] = k % VARIANTS;
    of->call.n = n;
    of->call.wanted = UINT32_C(1) << METHOD_TRIDIAGONAL_INVERSE;
    of->call.tensors = &seen->item;
    for (int64_t i = 0; i < MATRICES * n; i++) {
        double wave = sin((double)(3 * i + 1));
        put(precision, h_bench->d, i, i < n ? 2.5 + 0.4 * wave : 0.6 + 0.3 * wave);
    }
    for (int64_t i = 0; i < MATRICES * (n - 1); i++) {
        put(precision, h_bench->dl, i, 1 - 0.2 * cos((double)(5 * i)));
        put(precision, h_bench->du, i, -1 + 0.3 * cos((double)(7 * i + 2)));
    }
    memset(h_bench->x, 0xa5, (size_t)(MATRICES * n * n) * sizeof(double));
}

cudaError_t cuda__try_tridiagonal(struct cuda_pool *pool, struct cuda_products *products,
                                  enum precision precision, cudaStream_t stream, double *worst)
{
    static const struct cuda__self_rows rows = {.bench_bytes = sizeof(struct bench),
                                                .cases = VARIANTS * ORDERS,
                                                .matrices = MATRICES,
                                                .fill = fill,
                                                .ratio = ratio_of,
                                                .workspace = cuda_tridiagonal_workspace,
                                                .launch = cuda_tridiagonal};
    return cuda__self_test(&rows, pool, products, precision, stream, worst);
}
