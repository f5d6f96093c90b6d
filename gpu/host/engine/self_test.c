/* gpu/host/engine/self_test.c: see self_test.h.
 *
 * Checks |I - X A| / (n |A| |X| eps) against the contract's 15 for every method that answers an
 * INVERSE of an A, in both precisions. The sums run in double. It is a check that this build works
 * on this machine, not the tests' replacement.
 */
#include "gpu/host/engine/self_test.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/host/linalg/dense.h"
#include "gpu/process/self_test.h"

#define ORDER_MAX 100
#define RATIO_MAX 15.0

static const int64_t orders[] = {1, 2, 8, 33, ORDER_MAX};

struct trial {
    const struct method *method;
    const struct host_method *host;
    enum precision precision;
    int64_t n;
    void *a, *inverse, *scratch; /* a, inverse: ORDER_MAX^2 numbers of either precision */
};

static double get(const struct trial *trial, const void *data, int64_t index)
{
    return process_trial_get(trial->precision, data, index);
}

static double norm(const struct trial *trial, const void *data)
{
    double largest = 0;
    for (int64_t j = 0; j < trial->n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < trial->n; i++)
            sum += fabs(get(trial, data, i * trial->n + j));
        largest = sum > largest ? sum : largest;
    }
    return largest;
}

static double residual_ratio(const struct trial *trial)
{
    int64_t n = trial->n;
    double largest = 0, eps = trial->precision == PRECISION_FP32 ? FLT_EPSILON : DBL_EPSILON;
    for (int64_t j = 0; j < n; j++) {
        double column = 0;
        for (int64_t i = 0; i < n; i++) {
            double sum = i == j ? -1 : 0;
            for (int64_t k = 0; k < n; k++)
                sum += get(trial, trial->inverse, i * n + k) * get(trial, trial->a, k * n + j);
            column += fabs(sum);
        }
        largest = column > largest ? column : largest;
    }
    return largest / ((double)n * norm(trial, trial->a) * norm(trial, trial->inverse) * eps);
}

/* The ratio of the answer; infinite when INFO says that there is none. */
static double run(struct trial *trial)
{
    int64_t options[METHOD_OPTIONS_MAX];
    union {
        float narrow;
        double wide;
    } rcond;
    int32_t info = -1, algorithm = 0;
    struct host_matrix matrix = {.inputs = {trial->a},
                                 .outputs = {trial->inverse, &info, &rcond, &algorithm},
                                 .n = trial->n,
                                 .options = options,
                                 .scratch = trial->scratch};
    method_default_options(trial->method, options);
    process_trial_fill(trial->precision, trial->a, trial->n * trial->n);
    trial->host->run(&matrix);
    return info == 0 ? residual_ratio(trial) : HUGE_VAL;
}

/* One method, one precision, every order. */
static int try(struct trial *trial)
{
    int bad = 0;
    double worst = 0;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        trial->n = orders[i];
        int64_t bytes = trial->host->scratch_bytes(trial->n, 0);
        trial->scratch = aligned_alloc(HOST_ALIGN_BYTES, (size_t)bytes);
        if (!trial->scratch)
            return -1;
        double ratio = run(trial);
        free(trial->scratch);
        worst = ratio > worst ? ratio : worst;
        bad += !(ratio <= RATIO_MAX);
    }
    printf("%-14s %s residual %.3f of %g: %s\n", trial->method->name,
           precision_name(trial->precision), worst, RATIO_MAX, bad ? "BAD" : "good");
    return bad;
}

int host_self_test(void)
{
    int bad = 0;
    struct trial trial = {.a = malloc(ORDER_MAX * ORDER_MAX * sizeof(double)),
                          .inverse = malloc(ORDER_MAX * ORDER_MAX * sizeof(double))};
    for (int i = 0; trial.a && trial.inverse && i < method_count(); i++) {
        trial.method = method_at(i);
        for (int p = 0; method_inverts_dense(trial.method) && p < PRECISION_COUNT; p++) {
            trial.precision = (enum precision)p;
            trial.host = host_method_at((uint32_t)i, trial.precision);
            int result = try(&trial);
            bad = result < 0 || bad < 0 ? -1 : bad + result;
        }
    }
    if (!trial.a || !trial.inverse)
        bad = -1;
    free(trial.a);
    free(trial.inverse);
    return bad;
}
