/* gpu/host/ism/column_scaling.c: columns of X and Y whose sizes are far apart, brought to one size.
 *
 * X Y^T stays what it is where column c of X is multiplied by 2^s and that of Y by 2^-s. But what
 * is computed are sums over a column of X alone, and products of it, or of one of Y, with A0^-1:
 * where one column is huge and the other tiny they may overflow, or lose digits among the
 * denormals, though the entries of X Y^T A0^-1 are ordinary numbers. So where the largest
 * magnitudes of the two columns are more than 2^APART apart, s makes them alike, to a factor of 4,
 * in copies of X and Y that everything uses in place of those given. A column whose partner is zero
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
 * bits of the answer. Elsewhere the capacitance matrix may be pivoted in another order.
 *
 * Threads: any, each on its own matrix. Cost: 2 n m comparisons; where there is something to do,
 * two copies of X and Y.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/ism/ism.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "gpu/host/base/stop.h"

#include "gpu/host/base/by_precision.h"
#include "gpu/host/ism/lanes.h"

#define IDLE_EXPONENT (-20) /* of a column whose partner is zero; the order is at most 2^15 */

#define APART HOST_SMALL_APART(REAL_MAX_EXP)

/* ---- Which columns ---- */

/* The largest magnitude in a line of n numbers with zeros behind them. A NaN counts as 0. */
HOST_INLINE REAL largest_in_line(const REAL *line, int64_t n)
{
    REAL largest[LANES] = {0};
    for (int64_t i = 0; i < n; i += LANES) {
        for (int64_t l = 0; l < LANES; l++) {
            const REAL magnitude = REAL_FABS(line[i + l]);
            largest[l] = magnitude > largest[l] ? magnitude : largest[l];
        }
    }
    for (int64_t half = LANES / 2; half > 0; half /= 2) {
        for (int64_t l = 0; l < half; l++)
            largest[l] = largest[l + half] > largest[l] ? largest[l + half] : largest[l];
    }
    return largest[0];
}

/* to: the same of the m columns of from, which is n x m. */
static void largest_in_columns(const REAL *restrict from, int64_t n, int64_t m, REAL *restrict to)
{
    memset(to, 0, (size_t)m * sizeof *to);
    for (int64_t i = 0, end; i < n; i = end) {
        end = host_stop_part_of(i, n, m);
        for (const REAL *row = from + i * m; row < from + end * m; row += m) {
            for (int64_t c = 0; c < m; c++) {
                const REAL magnitude = REAL_FABS(row[c]);
                to[c] = magnitude > to[c] ? magnitude : to[c];
            }
        }
    }
}

static void measure(const struct R(host_ism) * ism, REAL *x, REAL *y)
{
    if (!ism->xt) {
        largest_in_columns(ism->x, ism->n, ism->m, x);
        largest_in_columns(ism->y, ism->n, ism->m, y);
        return;
    }
    for (int64_t c = 0; c < ism->m; c++) {
        x[c] = largest_in_line(ism->xt + c * ism->ld, ism->n);
        y[c] = largest_in_line(ism->yt + c * ism->ld, ism->n);
    }
}

/* Is one more than 2^APART times the other? A bound that overflows holds. */
static bool are_apart(REAL x, REAL y)
{
    const REAL far = REAL_LDEXP(1, APART);
    return isfinite(x) && isfinite(y) && !(x <= y * far && y <= x * far);
}

static int exponent_of(REAL number)
{
    int exponent;
    (void)REAL_FREXP(number, &exponent);
    return exponent;
}

/* The power of two that a column of X is multiplied by, and one of Y divided by; their largest
 * magnitudes being x and y. */
static int shift(REAL x, REAL y)
{
    if (!are_apart(x, y))
        return 0;
    if (y == 0)
        return IDLE_EXPONENT - exponent_of(x);
    if (x == 0)
        return exponent_of(y) - IDLE_EXPONENT;
    return (exponent_of(y) - exponent_of(x)) / 2;
}

/* ---- The copies ---- */

/* to = from (n x m), column c times 2^(sign shifts[c]). */
static void copy_shifted(const struct R(host_ism) * ism, const REAL *from, int sign, REAL *to)
{
    const int64_t n = ism->n, m = ism->m;
    for (int64_t first = 0, end; first < n; first = end) {
        end = host_stop_part_of(first, n, m);
        for (int64_t i = first * m; i < end * m; i += m) {
            for (int64_t c = 0; c < m; c++)
                to[i + c] = REAL_LDEXP(from[i + c], sign * ism->shifts[c]);
        }
    }
}

bool R(host__ism_scale_columns)(struct R(host_ism) * ism, REAL *copies)
{
    const int64_t n = ism->n, m = ism->m;
    REAL *x = ism->lines, *y = ism->lines + m;
    bool apart = false;
    measure(ism, x, y);
    for (int64_t c = 0; c < m; c++)
        apart = apart || are_apart(x[c], y[c]);
    if (!apart)
        return false;
    int32_t *shifts = (int32_t *)(copies + 2 * n * m);
    for (int64_t c = 0; c < m; c++)
        shifts[c] = shift(x[c], y[c]);
    ism->shifts = shifts;
    copy_shifted(ism, ism->x, 1, copies);
    copy_shifted(ism, ism->y, -1, copies + n * m);
    ism->x = copies;
    ism->y = copies + n * m;
    return true;
}

/* With X D and Y D^-1, D being diagonal, the recurrences lead to U D, V D^-1 and D^-1 R D. */
void R(host__ism_restore_factors)(const struct R(host_ism) * ism)
{
    const int64_t m = ism->m;
    if (!ism->shifts)
        return;
    if (ism->u)
        copy_shifted(ism, ism->u, -1, ism->u);
    if (ism->v)
        copy_shifted(ism, ism->v, 1, ism->v);
    for (int64_t first = 0, end; ism->r && first < m; first = end) {
        end = host_stop_part_of(first, m, m);
        for (int64_t i = first; i < end; i++) {
            for (int64_t c = 0; c < m; c++)
                ism->r[i * m + c] = REAL_LDEXP(ism->r[i * m + c], ism->shifts[i] - ism->shifts[c]);
        }
    }
}
