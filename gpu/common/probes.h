/* gpu/common/probes.h: the fixed lines of numbers that answers of `ism` are tried with, and |A| is
 * searched for: the same on both engines. Also for device code.
 *
 * A number is of either sign, 1/2 to 1, without a pattern. Hardly any two are alike, so that errors
 * of one size do not cancel; and where an error is the same in all rows, as the rounding errors of
 * terms that cancel often are, one of the first two lines sees it, for their sums are not small
 * together: for every order from 9 to 2^15 one of them is 1.3 sqrt(n) or more
 * (tests/unit/gpu/host/ism/test_ism_cancel.c). ISM_PROBE_FIRST was searched for that.
 */
#ifndef GPU_COMMON_PROBES_H
#define GPU_COMMON_PROBES_H

#include <stdint.h>

#define ISM_PROBES 8 /* lines */
#define ISM_PROBE_FIRST 440588u

/* 32 bits for number i of a line, both of type uint32_t. */
#define ISM_PROBE_MIXED(x, shift, factor) (((x) ^ (x) >> (shift)) * (factor))
#define ISM_PROBE_BITS(i, line)                                                                    \
    ISM_PROBE_MIXED(ISM_PROBE_MIXED((((i) + ISM_PROBE_FIRST) * ISM_PROBES + (line)) * 0x9e3779b1u, \
                                    15, 0x85ebca6bu),                                              \
                    13, 0xc2b2ae35u)

/* The number that they stand for. */
#define ISM_PROBE_OF(bits)                                                                         \
    (((bits) >> 31 ? -1.0f : 1.0f) * (0.5f + (float)(int32_t)((bits) >> 8 & 0x7fffff) * 0x1p-24f))

#endif
