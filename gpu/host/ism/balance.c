/* gpu/host/ism/balance.c: columns of X and Y whose sizes are far apart, brought to one size.
 *
 * X Y^T stays what it is where column c of X is multiplied by 2^s and that of Y by 2^-s. But what
 * is computed are sums over a column of X alone, and products of it, or of one of Y, with A0^-1:
 * where one column is huge and the other tiny they may overflow, or lose digits among the
 * denormals, though the entries of X Y^T A0^-1 are ordinary numbers. So where the largest
 * magnitudes of the two columns are more than 2^APART apart, s makes them alike, to a factor of 4,
 * in copies of X and Y that everything uses in place of those given. A column beside one of zeros
 * becomes so small that no product with A0^-1 overflows.
 *
 * Powers of two are exact, but for entries that become denormal. Both columns then being near 2^h
 * at their largest, such an entry is off by 2^-1075 at most, and an entry of X Y^T by 2^(h - 1075),
 * the largest being near 2^2h (FP32: 150 for 1075). For h > 0 no digit of 2^2h is so small. For
 * h <= 0 it is less than A0 + X Y^T loses when it is formed, so it could show only in X Y^T A0^-1:
 * where |X Y^T| |A0^-1| is eps or more, h is at least -553 (FP32: -91), and with all n entries of a
 * column off, what is lost is less than 2^-500 of it (FP32: 2^-40).
 *
 * Columns that are nearer to each other, as they nearly always are, stay as they are, and so do all
 * bits of the answer. Elsewhere the coupling matrix may be pivoted in another order.
 *
 * Threads: any, each on its own matrix. Cost: 2 n m comparisons; where there is something to do,
 * two copies of X and Y.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/ism/ism.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "gpu/host/base/stop.h"

#define IDLE_EXPONENT (-20) /* of a column beside zeros; the order is at most 2^15 */

int64_t host__ism_balance_numbers(int64_t n, int64_t m)
{
    int64_t numbers;
    if (!checked_mul(n, m, &numbers) || !checked_mul(numbers, 2, &numbers) ||
        !checked_add(numbers, m, &numbers) ||
        !checked_round_up(numbers, HOST_ALIGN_BYTES, &numbers))
        return -1;
    return numbers;
}

#define REAL_FILE "gpu/host/ism/balance.inc"
#include "gpu/host/linalg/real.inc"
