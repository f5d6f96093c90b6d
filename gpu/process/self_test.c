/* gpu/process/self_test.c: see self_test.h. */
#include "gpu/process/self_test.h"

#include <float.h>
#include <math.h>

double process_attempt_get(enum precision precision, const void *data, int64_t index)
{
    return precision == PRECISION_FP32 ? ((const float *)data)[index]
                                       : ((const double *)data)[index];
}

void process_attempt_fill(enum precision precision, void *data, int64_t count)
{
    uint32_t state = 12345;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        double value = (double)state / 4294967296.0 - 0.5;
        if (precision == PRECISION_FP32)
            ((float *)data)[i] = (float)value;
        else
            ((double *)data)[i] = value;
    }
}

double process_attempt_ratio(enum precision precision, int64_t n, const void *a, const void *x,
                             int64_t k)
{
    double norm_a = 0, norm_x = 0, worst = 0;
    double eps = precision == PRECISION_FP32 ? (double)FLT_EPSILON : DBL_EPSILON;
    for (int64_t j = 0; j < n; j++) {
        double sum = 0, column_a = 0, column_x = 0;
        for (int64_t i = 0; i < n; i++) {
            double entry = i == j ? -1 : 0;
            for (int64_t l = 0; l < n; l++)
                entry += process_attempt_get(precision, x, (k * n + i) * n + l) *
                         process_attempt_get(precision, a, (k * n + l) * n + j);
            sum += fabs(entry);
            column_a += fabs(process_attempt_get(precision, a, (k * n + i) * n + j));
            column_x += fabs(process_attempt_get(precision, x, (k * n + i) * n + j));
        }
        norm_a = fmax(norm_a, column_a);
        norm_x = fmax(norm_x, column_x);
        worst = sum > worst || isnan(sum) ? sum : worst;
    }
    return worst / ((double)n * norm_a * norm_x * eps);
}
