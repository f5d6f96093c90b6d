/* gpu/host/simd/small.c: see small.h. Which code a group meets, and what becomes of its lanes. The
 * precision-dependent part is small.inc.
 *
 * Threads: any; constant data. Cost: some ten nanoseconds a matrix beside the inversion.
 */
#include "gpu/host/simd/small.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stddef.h>

#include "gpu/host/linalg/dense.h"

#define CODES 3
static const struct host_small_code *const codes[CODES] = {
    &host__small_sse2,
    &host__small_avx2,
    &host__small_avx512,
};

/* A matrix's time is predicted as a fixed part, and a group's as one for every vector and one for
 * every vector of every step (measured on one core of Zen 4, n = 2 to 32). */
#define MATRIX_NS 20.0
#define NUMBER_NS 4.8
#define STEP_NS 0.32
#define GROUP_BYTES 32.0

/* Vectors of scratch beside the matrix's own: see carve in lu.inc. */
#define LINES 11
#define UPDATE_LINES 6 /* the same of an update: carve_update in ism.inc */

const struct host_small_code *host__small_code(int index)
{
    return index < CODES && codes[index]->supported() ? codes[index] : NULL;
}

const struct host_small_code *host__small_choose(enum precision precision, int64_t n, int count)
{
    const struct host_small_code *code = codes[0];
    for (int i = 1; i < CODES && code->vector_bytes / precision_bytes(precision) < count; i++) {
        const struct host_small_code *wider = host__small_code(i);
        if (!wider || n > wider->order_max)
            break;
        code = wider;
    }
    return code;
}

int64_t host__small_scratch_bytes(int64_t n)
{
    assert(n <= HOST_SMALL_ORDER_MAX);
    return n * ((n | 1) + LINES) * HOST_SMALL_VECTOR_BYTES;
}

int64_t host__lu_scratch_bytes(enum precision precision, int64_t n, int64_t m)
{
    int64_t bytes = host__dense_scratch_bytes(precision, n, m);
    int64_t small = n <= HOST_SMALL_ORDER_MAX ? host__small_scratch_bytes(n) : 0;
    return bytes >= 0 && small > bytes ? small : bytes;
}

int64_t host__small_update_bytes(int64_t n)
{
    assert(n <= HOST_SMALL_ORDER_MAX);
    return n * (n + 4 * HOST_SMALL_UPDATE_RANK + UPDATE_LINES) * HOST_SMALL_VECTOR_BYTES;
}

int host__small_group(enum precision precision, int64_t n)
{
    if (n > HOST_SMALL_ORDER_MAX)
        return 1;
    return (int)(host__small_choose(precision, n, HOST_GROUP_MAX)->vector_bytes /
                 precision_bytes(precision));
}

double host__small_matrix_ns(enum precision precision, int64_t n)
{
    double order = (double)n, bytes = (double)precision_bytes(precision);
    double group_bytes = host__small_group(precision, n) * bytes;
    /* Vectors wider than that gain little. */
    double lanes = fmin(group_bytes, GROUP_BYTES) / bytes;
    return MATRIX_NS + (NUMBER_NS + STEP_NS * order) * order * order / lanes;
}

#define REAL_FILE "gpu/host/simd/small.inc"
#include "gpu/host/linalg/real.inc"

const char *host__small_kernel(enum precision precision, int64_t n)
{
    return host__small_choose(precision, n, HOST_GROUP_MAX)->kernels[precision];
}
