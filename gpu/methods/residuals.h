/* The rows RESIDUAL_LEFT and RESIDUAL_RIGHT of a method that inverts a dense A. */
#ifndef GPU_METHODS_RESIDUALS_H
#define GPU_METHODS_RESIDUALS_H

#include "gpu/method.h"

#define METHOD_RESIDUAL(output, product)                                                           \
    {                                                                                              \
        .name = (output),                                                                          \
        .help = "|I - " product "| / (n |A| |X| eps) in the 1-norm, measured from the X returned", \
        .optional = true,                                                                          \
        .needs = UINT32_C(1) << METHOD_OUTPUT_INVERSE | UINT32_C(1) << METHOD_OUTPUT_RCOND         \
    }
#define METHOD_RESIDUALS                                                                           \
    METHOD_RESIDUAL("RESIDUAL_LEFT", "X A"), METHOD_RESIDUAL("RESIDUAL_RIGHT", "A X")

#endif
