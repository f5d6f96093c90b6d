/* gpu/host/linalg/dense.c: see dense.h. The precision-dependent part is dense.inc.
 *
 * Threads: any; all state is the caller's matrix and scratch. Cost: passes over n^2 numbers.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/linalg/dense.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "gpu/host/linalg/blocked.h"
#include "gpu/host/linalg/refine.h"
#include "gpu/host/base/stop.h"
#include "gpu/host/linalg/transpose.h"

int64_t host__ld(enum precision precision, int64_t n)
{
    int64_t unit = HOST_ALIGN_BYTES / precision_bytes(precision);
    int64_t ld = (n + unit - 1) / unit * unit;
    return ld % (8 * unit) == 0 ? ld + unit : ld;
}

int64_t host__lines(int64_t n)
{
    int64_t lines = host__large_lines(n);
    return lines > HOST_LINES ? lines : HOST_LINES;
}

/* Layout: a, lines, pivots. */
int64_t host__dense_scratch_bytes(enum precision precision, int64_t n, int64_t m)
{
    (void)m;
    int64_t bytes, lines, pivots_bytes;
    if (!checked_add(n, host__lines(n), &lines) ||
        !checked_mul(lines, host__ld(precision, n), &bytes))
        return -1;
    if (!checked_mul(bytes, precision_bytes(precision), &bytes) ||
        !checked_mul(n, 2 * sizeof(int32_t), &pivots_bytes) ||
        !checked_add(bytes, pivots_bytes, &bytes) ||
        !checked_round_up(bytes, HOST_ALIGN_BYTES, &bytes))
        return -1;
    return bytes;
}

#define REAL_FILE "gpu/host/linalg/dense.inc"
#include "gpu/host/linalg/real.inc"
