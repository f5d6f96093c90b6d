/* gpu/host/ism/lanes.h: vectors of 64 bytes in one precision, for sources that are compiled once
 * for each. They pass by address: a vector in a register is not the same on every machine.
 */
#ifndef GPU_HOST_ISM_LANES_H
#define GPU_HOST_ISM_LANES_H

#include <stdint.h>
#include <string.h>

#include "gpu/host/base/host.h"
#include "gpu/host/base/speed.h"

#include "gpu/host/base/by_precision.h"

#define LANES (HOST_ALIGN_BYTES / (int64_t)sizeof(REAL))

typedef REAL lanes __attribute__((vector_size(HOST_ALIGN_BYTES), aligned(sizeof(REAL)), may_alias));

/* Their bits. */
typedef __typeof__((lanes){0} < (lanes){0}) lane_bits;
typedef lane_bits lanes_bits __attribute__((aligned(sizeof(REAL)), may_alias));

/* Halves are added up, in this order on every machine. */
HOST_INLINE REAL total(const lanes *numbers)
{
    REAL sums[LANES];
    memcpy(sums, numbers, sizeof sums);
    for (int64_t half = LANES / 2; half > 0; half /= 2) {
        for (int64_t l = 0; l < half; l++)
            sums[l] += sums[l + half];
    }
    return sums[0];
}

#endif
