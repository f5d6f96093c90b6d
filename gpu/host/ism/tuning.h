/* gpu/host/ism/tuning.h: what `auto` of `ism` takes, by n, m and m / n: the fastest, or nearly, of
 * a sweep of bench/host/ism.c over one core of an AMD EPYC (Zen 4) with OpenBLAS 0.3.21,
 * 2026-11-21. The first row whose bounds hold n and m is taken. Up to m = n / 4 all columns are one
 * block, whose pivoting makes it the safest: smaller ones were at most a tenth faster. FP32 came
 * out alike.
 *
 * For plan.c alone.
 */
#ifndef GPU_HOST_ISM_TUNING_H
#define GPU_HOST_ISM_TUNING_H

#include <math.h>

#include "gpu/host/ism/ism.h"

struct ism_tuning {
    int64_t n_max, m_max;
    double share_max; /* of m in n */
    enum method_algorithm algorithm;
    bool fused;    /* HOST_ISM_RANK columns at a time, without OpenBLAS; m_max <= HOST_ISM_THIN */
    int64_t block; /* columns of a block; 0: `part` of m */
    double part;
};

#define ANY INT64_MAX
#define BLOCK METHOD_ALGORITHM_BLOCK
#define REDUCED METHOD_ALGORITHM_REDUCED_MEMORY

/* A0 is diagonal. */
static const struct ism_tuning tuning_diagonal[] = {
    {16, 16, HUGE_VAL, BLOCK, true, 0, 1},     {64, 4, HUGE_VAL, BLOCK, true, 0, 1},
    {512, 2, HUGE_VAL, BLOCK, true, 0, 1},     {ANY, ANY, 0.25, BLOCK, false, 0, 1},
    {512, ANY, HUGE_VAL, BLOCK, false, 32, 0}, {ANY, ANY, HUGE_VAL, BLOCK, false, 0, 0.2},
};
/* A0_INVERSE is given. */
static const struct ism_tuning tuning_inverse[] = {
    {16, 16, HUGE_VAL, BLOCK, true, 0, 1},        {32, 8, HUGE_VAL, BLOCK, true, 0, 1},
    {64, 4, HUGE_VAL, BLOCK, true, 0, 1},         {512, 2, HUGE_VAL, BLOCK, true, 0, 1},
    {ANY, ANY, 0.25, BLOCK, false, 0, 1},         {512, ANY, HUGE_VAL, REDUCED, false, 32, 0},
    {ANY, ANY, HUGE_VAL, REDUCED, false, 128, 0},
};

#undef ANY
#undef BLOCK
#undef REDUCED

#endif
