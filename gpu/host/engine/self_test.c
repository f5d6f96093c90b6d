/* gpu/host/engine/self_test.c: see self_test.h.
 *
 * Checks |I - X A| / (n |A| |X| eps) against the contract's 15 for every method that answers an
 * INVERSE of an A, in both precisions. The sums run in double. It is a check that this build works
 * on this machine, not the tests' replacement.
 */
#include "gpu/host/engine/self_test.h"

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

struct check {
    const struct method *method;
    const struct host_method *host;
    enum precision precision;
    int64_t n;
    void *a, *inverse, *scratch; /* a, inverse: ORDER_MAX^2 numbers of either precision */
};

/* The ratio of the answer; infinite when INFO says that there is none. */
static double run(struct check *check)
{
    int64_t options[METHOD_OPTIONS_MAX];
    union {
        float narrow;
        double wide;
    } rcond;
    int32_t info = -1, algorithm = 0;
    struct host_matrix matrix = {.inputs = {check->a},
                                 .outputs = {check->inverse, &info, &rcond, &algorithm},
                                 .n = check->n,
                                 .options = options,
                                 .scratch = check->scratch};
    method_default_options(check->method, options);
    process_attempt_fill(check->precision, check->a, check->n * check->n);
    check->host->run(&matrix);
    return info == 0
               ? process_attempt_ratio(check->precision, check->n, check->a, check->inverse, 0)
               : HUGE_VAL;
}

/* One method, one precision, every order. */
static int check_method(struct check *check)
{
    int bad = 0;
    double worst = 0;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        check->n = orders[i];
        int64_t bytes = check->host->scratch_bytes(check->n, 0);
        check->scratch = aligned_alloc(HOST_ALIGN_BYTES, (size_t)bytes);
        if (!check->scratch)
            return -1;
        double ratio = run(check);
        free(check->scratch);
        worst = ratio > worst ? ratio : worst;
        bad += !(ratio <= RATIO_MAX);
    }
    printf("%-14s %s residual %.3f of %g: %s\n", check->method->name,
           precision_name(check->precision), worst, RATIO_MAX, bad ? "BAD" : "good");
    return bad;
}

int host_self_test(void)
{
    int bad = 0;
    struct check check = {.a = malloc(ORDER_MAX * ORDER_MAX * sizeof(double)),
                          .inverse = malloc(ORDER_MAX * ORDER_MAX * sizeof(double))};
    for (int i = 0; check.a && check.inverse && i < method_count(); i++) {
        check.method = method_at(i);
        for (int p = 0; method_inverts_dense(check.method) && p < PRECISION_COUNT; p++) {
            check.precision = (enum precision)p;
            check.host = host_method_at((uint32_t)i, check.precision);
            int result = check_method(&check);
            bad = result < 0 || bad < 0 ? -1 : bad + result;
        }
    }
    if (!check.a || !check.inverse)
        bad = -1;
    free(check.a);
    free(check.inverse);
    return bad;
}
