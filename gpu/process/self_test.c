/* gpu/process/self_test.c: see self_test.h. */
#include "gpu/process/self_test.h"

double process_trial_get(enum precision precision, const void *data, int64_t index)
{
    return precision == PRECISION_FP32 ? ((const float *)data)[index]
                                       : ((const double *)data)[index];
}

void process_trial_fill(enum precision precision, void *data, int64_t count)
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
