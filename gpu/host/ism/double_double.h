/* gpu/host/ism/double_double.h: arithmetic in double-double, for sources that are compiled once for
 * each precision.
 *
 * In FP64 sums of products have their rounding errors next to them: T. Ogita, S. M. Rump and
 * S. Oishi, "Accurate Sum and Dot Product" (2005), algorithm 5.3. In FP32 they are sums of doubles.
 * Results are pairs of numbers: the second is what the rounding of the first one left.
 */
#ifndef GPU_HOST_ISM_DOUBLE_DOUBLE_H
#define GPU_HOST_ISM_DOUBLE_DOUBLE_H

#include <math.h>
#include <stdbool.h>

#include "gpu/host/base/speed.h"

#include "gpu/host/base/by_precision.h"

/* sum + error += (high + low) number + high rest; where rest is 0, with_rest is not set. */
HOST_INLINE void add_product(double high, double low, double number, double rest, bool with_rest,
                             double *sum, double *error)
{
    if (REAL_BITS == 32) {
        *sum += (high + low) * (with_rest ? number + rest : number);
        return;
    }
    const double product = high * number, total = *sum + product, back = total - *sum;
    const double lost = (*sum - (total - back)) + (product - back);
    const double lower = fma(low, number, fma(high, number, -product));
    *error += lost + (with_rest ? fma(high, rest, lower) : lower);
    *sum = total;
}

/* to + low = sum + error */
HOST_INLINE void split(double sum, double error, REAL *to, REAL *low)
{
    const double total = sum + error, back = total - sum;
    *to = (REAL)total;
    *low = (REAL)(((sum - (total - back)) + (error - back)) + (total - (double)*to));
}

#endif
