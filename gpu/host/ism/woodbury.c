/* gpu/host/ism/woodbury.c: A0 diagonal, and all columns as one block in double-double: what is done
 * where a variant has lost digits. See ism.h.
 *
 * With G = A0^-1 X, K = Y^T A0^-1 and the capacitance matrix C = I + Y^T G the inverse is
 * Z = A0^-1 - P K, P = G C^-1. A0 may be tiny next to X Y^T: then A, once it is formed, has lost
 * A0's digits, and Z, which is as large as A0^-1, cannot be had from it. This formula has those
 * digits. But where A0's numbers are far apart C is ill-conditioned, and sums in one precision have
 * little left of P.
 *
 * How much sums of unit roundoff u lose is known. P comes by C's factors, and not by its inverse:
 * so it is that of a matrix C + D with D about u (|Y^T| |G| + I). D comes to P D Q in Z, with
 * Q = C^-1 K. So the errors are about u times
 *
 *      |P| (|Y^T| |G| + I) |Q| + |P| |K| + |A0^-1|,
 *
 * whose norm is what this file returns, next to Z. It does not change with the sizes of A's rows
 * and columns, nor does it with A's condition: of A0 = s I and one column there is hardly a digit
 * to lose, however small s is.
 *
 * Where C, or the second halves of A0^-1, would leave the range, A0 is divided by 2^k and column c
 * of G multiplied by 2^w[c]. With W = diag(2^w) in the place of I that gives C W, and the same P; K
 * and Z become 2^k times as large. All of it is exact. Z is then checked at a scale at which
 * neither it nor Z A overflows, and takes its own behind that.
 *
 * Threads: any; a team helps. Cost: 2 n^2 m + 6 n m^2 + 2/3 m^3 operations in double-double, of
 * which each is 11 to 14.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/ism/ism.h"

#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/base/stop.h"
#include "gpu/host/ism/parts.h"

#include "gpu/host/base/by_precision.h"
#include "gpu/host/ism/double_double.h"

#define ROWS_AT_ONCE 32    /* of Z; what they lack is in the lines of a check */
#define ELIMINATE_LINES 32 /* of a piece */
/* Numbers beyond 2^ROOM have a reciprocal whose second half is below the range. */
#define ROOM (REAL_MAX_EXP - 2 * REAL_DIG)
/* A scaled Z is checked where |A| |Z| is 2^CHECKED at most: its sums then have room, and I none. */
#define CHECKED (REAL_MAX_EXP / 4 * 3)

#define NO_EXPONENT (-(1 << 20)) /* of 0 */

/* `count` lines of numbers, ld apart, and as many behind them of what they lack. */
struct dd_lines {
    REAL *high, *low;
    int64_t ld, columns;
};

struct woodbury {
    struct R(host_ism) * ism;
    int64_t m;
    struct dd_lines g, k, p; /* m x n: G^T, later Q; K; P^T, later -P^T */
    struct dd_lines c;       /* m x m: C^T, later its factors but for the sign */
    struct dd_lines r;       /* m x m: C^-T */
    struct dd_lines by;      /* 1 x m: reciprocals of the pivots */
    int32_t *pivots;         /* m */
    REAL *rows;              /* n */
    REAL *left, *all;        /* m: the sums of |P|'s columns, and those times |Y^T| |G| + I */
    int64_t step;            /* of the elimination */
    int exponent;            /* k, which is 0, with w, where all is in range */
    int32_t *weights;        /* m: w */
};

static struct dd_lines lines_at(REAL *at, int64_t count, int64_t columns)
{
    const int64_t ld = host__ld(REAL_PRECISION, columns);
    return (struct dd_lines){.high = at, .low = at + count * ld, .ld = ld, .columns = columns};
}

static struct woodbury open_woodbury(struct R(host_ism) * ism)
{
    const struct host_ism_dd_layout layout = host__ism_layout_dd(REAL_PRECISION, ism->n, ism->m);
    const int64_t n = ism->n, m = ism->m;
    REAL *work = ism->work;
    return (struct woodbury){.ism = ism,
                             .m = m,
                             .g = lines_at(work + layout.g, m, n),
                             .k = lines_at(work + layout.k, m, n),
                             .p = lines_at(work + layout.p, m, n),
                             .c = lines_at(work + layout.c, m, m),
                             .r = lines_at(work + layout.r, m, m),
                             .by = lines_at(work + layout.by, 1, m),
                             .pivots = (int32_t *)(work + layout.pivots),
                             .rows = work + layout.rows,
                             .left = work + layout.left,
                             .all = work + layout.all,
                             .weights = (int32_t *)(work + layout.weights)};
}

/* to + low = number / by */
HOST_INLINE void divide(REAL number, REAL by, REAL *to, REAL *low)
{
    const double quotient = (double)number / (double)by;
    *to = (REAL)quotient;
    *low = REAL_BITS == 32 ? (REAL)(quotient - (double)*to)
                           : (REAL)(fma(-quotient, (double)by, (double)number) / (double)by);
}

/* ---- G, K and C ---- */

HOST_INLINE REAL times_power(REAL number, int exponent)
{
    return exponent == 0 ? number : REAL_LDEXP(number, exponent);
}

/* A number of A0, which is scaled. */
HOST_INLINE REAL scaled_a0(const struct woodbury *of, int64_t i)
{
    return times_power(of->ism->d[i], -of->exponent);
}

/* Columns of X and Y, divided by A0. */
static void divide_column(void *context, int64_t c)
{
    const struct woodbury *of = context;
    const struct R(host_ism) *ism = of->ism;
    const int64_t at = c * of->g.ld;
    for (int64_t i = 0; i < ism->n; i++) {
        const REAL x = times_power(ism->x[i * of->m + c], of->weights[c] - of->exponent);
        const REAL d = scaled_a0(of, i);
        divide(x, d, &of->g.high[at + i], &of->g.low[at + i]);
        divide(ism->y[i * of->m + c], d, &of->k.high[at + i], &of->k.low[at + i]);
    }
}

/* lines = W */
static void set_weights(const struct woodbury *of, const struct dd_lines *lines)
{
    memset(lines->high, 0, (size_t)(2 * lines->columns * lines->ld) * sizeof(REAL));
    for (int64_t c = 0; c < lines->columns; c++)
        lines->high[c * (lines->ld + 1)] = times_power(1, of->weights[c]);
}

/* c = W + G^T Y */
static void form_capacitance(const struct woodbury *of)
{
    struct R(host_ism_dd) dd = {.lines = of->g.high,
                                .lines_low = of->g.low,
                                .line_step = of->g.ld,
                                .step = 1,
                                .count = of->m,
                                .rows = of->ism->n,
                                .columns = of->m,
                                .from = of->ism->y,
                                .from_ld = of->m,
                                .adds = true,
                                .to = of->c.high,
                                .to_low = of->c.low,
                                .to_ld = of->c.ld,
                                .low_ld = of->c.ld};
    host_team_run(of->ism->team, of->m, divide_column, (void *)of);
    set_weights(of, &of->c);
    R(host__ism_dd)(of->ism->team, &dd);
}

static REAL min_magnitude(REAL smallest, REAL number)
{
    return REAL_FABS(number) < smallest ? REAL_FABS(number) : smallest;
}

/* Are all numbers, and what they lack, in range, and their reciprocals? */
static bool is_in_range(const struct woodbury *of)
{
    const struct R(host_ism) *ism = of->ism;
    REAL smallest = REAL_MAX;
    for (int64_t i = 0; i < ism->n; i++)
        smallest = min_magnitude(smallest, scaled_a0(of, i));
    if (smallest < REAL_LDEXP(1, -ROOM) || smallest > REAL_LDEXP(1, ROOM))
        return false;
    for (int64_t c = 0; c < of->m; c++) {
        for (int64_t l = 0; l < of->m; l++) {
            if (!(REAL_FABS(of->c.high[c * of->c.ld + l]) <= REAL_LDEXP(1, ROOM)))
                return false;
        }
        if (!R(host__ism_all_finite)(of->k.high + c * of->k.ld, ism->n))
            return false;
    }
    return true;
}

/* ---- The scaling ---- */

/* |number| is less than 2 to it; of 0 below all others. */
static int exponent_of(REAL number)
{
    int exponent = NO_EXPONENT;
    if (number != 0)
        (void)REAL_FREXP(number, &exponent);
    return exponent;
}

static int max_exponent(int one, int other)
{
    return one > other ? one : other;
}

/* Of the largest number in column c of X A0^-1, or with `plain` of X, or Y. */
static int column_exponent(const struct woodbury *of, const REAL *column, bool plain)
{
    int largest = NO_EXPONENT;
    for (int64_t i = 0; i < of->ism->n; i++) {
        const REAL number = column[i * of->m];
        const int exponent =
            exponent_of(number) - (plain || number == 0 ? 0 : exponent_of(of->ism->d[i]) - 1);
        largest = exponent > largest ? exponent : largest;
    }
    return largest;
}

/* k brings the smallest number of A0 to 1/2 or more, and w those of C W to n or so. Where w would
 * be below -ROOM, C W may still leave the range. */
static void choose_scaling(struct woodbury *of)
{
    const struct R(host_ism) *ism = of->ism;
    REAL smallest = REAL_MAX;
    int y = NO_EXPONENT;
    for (int64_t i = 0; i < ism->n; i++)
        smallest = min_magnitude(smallest, ism->d[i]);
    for (int64_t c = 0; c < of->m; c++)
        y = max_exponent(y, column_exponent(of, ism->y + c, true));
    of->exponent = exponent_of(smallest);
    for (int64_t c = 0; c < of->m; c++) {
        const int size = column_exponent(of, ism->x + c, false) + y;
        of->weights[c] = size <= 0 ? 0 : size < ROOM ? -size : -ROOM;
    }
}

/* A bound of |A|, but for n and m. */
static int exponent_of_a(const struct woodbury *of)
{
    const struct R(host_ism) *ism = of->ism;
    int largest = NO_EXPONENT;
    for (int64_t i = 0; i < ism->n; i++)
        largest = max_exponent(largest, exponent_of(ism->d[i]));
    for (int64_t c = 0; c < of->m; c++)
        largest = max_exponent(largest, column_exponent(of, ism->x + c, true) +
                                            column_exponent(of, ism->y + c, true));
    return largest;
}

/* z is 2^k A^-1. Returns the exponent that it is to have for its check. */
static int check_exponent(const struct woodbury *of)
{
    const struct R(host_ism) *ism = of->ism;
    const struct host_norm z = R(host__norm)(ism->team, ism->z, ism->n, ism->n, ism->lines);
    const int a = exponent_of_a(of);
    if (!z.finite || a + z.exponent - of->exponent <= CHECKED)
        return 0;
    return of->exponent + CHECKED - max_exponent(a, 0) - z.exponent;
}

/* ---- C's factors ---- */

/* lines' line `line` times a number and what that lacks. */
static void scale_line(const struct dd_lines *lines, int64_t line, double by, double by_low)
{
    REAL *high = lines->high + line * lines->ld, *low = lines->low + line * lines->ld;
    for (int64_t j = 0; j < lines->columns; j++) {
        double sum = 0, error = 0;
        add_product((double)high[j], (double)low[j], by, by_low, true, &sum, &error);
        split(sum, error, &high[j], &low[j]);
    }
}

static void exchange_lines(const struct dd_lines *lines, int64_t one, int64_t other)
{
    const int64_t from = one * lines->ld, to = other * lines->ld;
    for (int64_t j = 0; one != other && j < lines->columns; j++) {
        const REAL high = lines->high[from + j], low = lines->low[from + j];
        lines->high[from + j] = lines->high[to + j];
        lines->low[from + j] = lines->low[to + j];
        lines->high[to + j] = high;
        lines->low[to + j] = low;
    }
}

/* The reciprocal of the pivot of this step. */
static void divide_pivot(const struct woodbury *of)
{
    const int64_t at = of->step * (of->c.ld + 1);
    const double first = 1 / (double)of->c.high[at];
    double sum = 1, error = 0;
    add_product(-(double)of->c.high[at], -(double)of->c.low[at], first, 0, false, &sum, &error);
    split(first, (sum + error) * first, &of->by.high[of->step], &of->by.low[of->step]);
}

/* Line i less its multiple of line `step`, which takes the place of its number there. */
HOST_INLINE void eliminate_line(const struct woodbury *of, int64_t i)
{
    const int64_t s = of->step, ld = of->c.ld;
    const REAL *restrict top = of->c.high + s * ld, *restrict top_low = of->c.low + s * ld;
    REAL *restrict line = of->c.high + i * ld, *restrict low = of->c.low + i * ld;
    double sum = 0, error = 0;
    add_product((double)line[s], (double)low[s], (double)of->by.high[s], (double)of->by.low[s],
                true, &sum, &error);
    split(sum, error, &line[s], &low[s]);
    const double factor = -(double)line[s], factor_low = -(double)low[s];
    for (int64_t j = s + 1; j < of->m; j++) {
        sum = (double)line[j];
        error = (double)low[j];
        add_product(factor, factor_low, (double)top[j], (double)top_low[j], true, &sum, &error);
        split(sum, error, &line[j], &low[j]);
    }
}

HOST_INLINE void eliminate_any(const struct woodbury *of, int64_t index)
{
    const int64_t first = of->step + 1 + index * ELIMINATE_LINES;
    const int64_t end = min_i64(first + ELIMINATE_LINES, of->m);
    for (int64_t i = first; i < end; i++)
        eliminate_line(of, i);
}

HOST_FMA512 static void eliminate_fma512(const struct woodbury *of, int64_t index)
{
    eliminate_any(of, index);
}

HOST_FMA static void eliminate_fma(const struct woodbury *of, int64_t index)
{
    eliminate_any(of, index);
}

static void eliminate_best(void *context, int64_t index)
{
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma"))
        eliminate_fma512(context, index);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        eliminate_fma(context, index);
    else
        eliminate_any(context, index);
}

/* c becomes its factors L, whose diagonal is not stored, and U, by partial pivoting; then all of
 * them change their signs, as substitution wants them. */
static bool factor(struct woodbury *of)
{
    struct R(host_ism) *ism = of->ism;
    const int64_t m = of->m, ld = of->c.ld;
    struct host_team *team = m >= HOST_TEAM_ORDER_MIN ? ism->team : NULL;
    ism->det_ratio = (struct scaled){.fraction = 1};
    for (int64_t c = 0; c < m; c++)
        ism->det_ratio.exponent -= of->weights[c];
    for (of->step = 0; of->step < m; of->step++) {
        int64_t best = of->step;
        for (int64_t i = of->step + 1; i < m; i++) {
            const REAL size = REAL_FABS(of->c.high[i * ld + of->step]);
            best = size > REAL_FABS(of->c.high[best * ld + of->step]) ? i : best;
        }
        of->pivots[of->step] = (int32_t)best;
        exchange_lines(&of->c, of->step, best);
        const double pivot = (double)of->c.high[of->step * (ld + 1)];
        if (pivot == 0 || !isfinite(pivot))
            return false;
        ism->det_ratio = scaled_times(ism->det_ratio, best == of->step ? pivot : -pivot);
        divide_pivot(of);
        host_team_run(team, pieces(m - of->step - 1, ELIMINATE_LINES), eliminate_best, of);
    }
    for (int64_t i = 0; i < 2 * m * ld; i++)
        of->c.high[i] = -of->c.high[i];
    return true;
}

/* ---- Substitution ---- */

/* lines = L^-1 lines, or U^-1 lines; transposed: U^-T, or L^-T. */
static void substitute(const struct woodbury *of, const struct dd_lines *lines, bool upper,
                       bool transposed)
{
    const int64_t m = of->m, ld = of->c.ld;
    for (int64_t turn = 0; turn < m; turn++) {
        const int64_t i = upper ? m - 1 - turn : turn, first = upper ? i + 1 : 0;
        const int64_t at = transposed ? first * ld + i : i * ld + first;
        struct R(host_ism_dd) dd = {.lines = of->c.high + at,
                                    .lines_low = of->c.low + at,
                                    .step = transposed ? ld : 1,
                                    .count = 1,
                                    .rows = turn,
                                    .columns = lines->columns,
                                    .from = lines->high + first * lines->ld,
                                    .from_low = lines->low + first * lines->ld,
                                    .from_ld = lines->ld,
                                    .adds = true,
                                    .to = lines->high + i * lines->ld,
                                    .to_low = lines->low + i * lines->ld};
        if (turn > 0)
            R(host__ism_dd)(of->ism->team, &dd);
        if (upper != transposed)
            scale_line(lines, i, (double)of->by.high[i], (double)of->by.low[i]);
    }
}

/* lines = C^-T lines */
static void solve_transposed(const struct woodbury *of, const struct dd_lines *lines)
{
    for (int64_t step = 0; step < of->m; step++)
        exchange_lines(lines, step, of->pivots[step]);
    substitute(of, lines, false, false);
    substitute(of, lines, true, false);
}

/* lines = C^-1 lines */
static void solve(const struct woodbury *of, const struct dd_lines *lines)
{
    substitute(of, lines, false, true);
    substitute(of, lines, true, true);
    for (int64_t step = of->m - 1; step >= 0; step--)
        exchange_lines(lines, step, of->pivots[step]);
}

/* The factors that are wanted: one block has X and Y themselves. */
static void write_factors(const struct woodbury *of)
{
    const struct R(host_ism) *ism = of->ism;
    const size_t thin_bytes = (size_t)(ism->n * of->m) * sizeof(REAL);
    if (ism->u)
        memcpy(ism->u, ism->x, thin_bytes);
    if (ism->v)
        memcpy(ism->v, ism->y, thin_bytes);
    if (ism->r) {
        set_weights(of, &of->r);
        solve_transposed(of, &of->r);
    }
    for (int64_t i = 0; ism->r && i < of->m; i++) {
        for (int64_t j = 0; j < of->m; j++)
            ism->r[i * of->m + j] = of->r.high[j * of->r.ld + i];
    }
    R(host__ism_restore_factors)(ism);
}

/* ---- What was lost ---- */

/* `left` and `all`. */
static void weigh_left(const struct woodbury *of)
{
    const int64_t n = of->ism->n, m = of->m;
    memset(of->rows, 0, (size_t)n * sizeof *of->rows);
    for (int64_t c = 0; c < m; c++) {
        REAL sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += REAL_FABS(of->p.high[c * of->p.ld + i]);
        of->left[c] = sum;
        for (int64_t i = 0; i < n; i++)
            of->rows[i] += sum * REAL_FABS(of->ism->y[i * m + c]);
    }
    for (int64_t c = 0; c < m; c++) {
        REAL sum = times_power(of->left[c], of->weights[c]);
        for (int64_t i = 0; i < n; i++)
            sum += of->rows[i] * REAL_FABS(of->g.high[c * of->g.ld + i]);
        of->all[c] = sum;
    }
}

/* The norm at the top of this file; g has Q by now. */
static double amplification(const struct woodbury *of)
{
    const int64_t n = of->ism->n;
    REAL largest = 0;
    for (int64_t i = 0; i < n; i++)
        of->rows[i] = REAL_FABS(1 / scaled_a0(of, i));
    for (int64_t c = 0; c < of->m; c++) {
        const REAL *q = of->g.high + c * of->g.ld, *k = of->k.high + c * of->k.ld;
        for (int64_t i = 0; i < n; i++)
            of->rows[i] += of->all[c] * REAL_FABS(q[i]) + of->left[c] * REAL_FABS(k[i]);
    }
    for (int64_t i = 0; i < n; i++)
        largest = of->rows[i] > largest || isnan(of->rows[i]) ? of->rows[i] : largest;
    return (double)largest;
}

/* ---- The inverse ---- */

/* z = A0^-1 - P K; -P^T is in p. */
static void assemble(const struct woodbury *of)
{
    const struct R(host_ism) *ism = of->ism;
    const int64_t n = ism->n;
    struct R(host_ism_dd) dd = {.line_step = 1,
                                .step = of->p.ld,
                                .rows = of->m,
                                .columns = n,
                                .from = of->k.high,
                                .from_low = of->k.low,
                                .from_ld = of->k.ld,
                                .adds = true,
                                .to_low = ism->lines,
                                .to_ld = n,
                                .low_ld = ism->ld};
    for (int64_t row = 0; row < n; row += dd.count) {
        dd.count = min_i64(ROWS_AT_ONCE, n - row);
        dd.lines = of->p.high + row;
        dd.lines_low = of->p.low + row;
        dd.to = ism->z + row * n;
        memset(dd.to, 0, (size_t)(dd.count * n) * sizeof *dd.to);
        memset(dd.to_low, 0, (size_t)(dd.count * dd.low_ld) * sizeof *dd.to_low);
        for (int64_t i = 0; i < dd.count; i++)
            divide(1, scaled_a0(of, row + i), &dd.to[i * n + row + i],
                   &dd.to_low[i * dd.low_ld + row + i]);
        R(host__ism_dd)(ism->team, &dd);
    }
}

/* c and its factors, where need be scaled. */
static bool factor_capacitance(struct woodbury *of)
{
    of->exponent = 0;
    memset(of->weights, 0, (size_t)of->m * sizeof *of->weights);
    form_capacitance(of);
    if (is_in_range(of))
        return factor(of);
    choose_scaling(of);
    form_capacitance(of);
    return is_in_range(of) && factor(of);
}

void R(host__ism_times_power)(const struct R(host_ism) * ism, int exponent)
{
    const int64_t numbers = ism->n * ism->n;
    for (int64_t first = 0, end; exponent != 0 && first < numbers; first = end) {
        end = host_stop_part(first, numbers);
        for (int64_t i = first; i < end; i++)
            ism->z[i] = REAL_LDEXP(ism->z[i], exponent);
    }
}

bool R(host__ism_woodbury)(struct R(host_ism) * ism, double *amplified, int *exponent)
{
    struct woodbury of = open_woodbury(ism);
    const size_t thin_bytes = (size_t)(2 * of.m * of.g.ld) * sizeof(REAL);
    ism->seen = false;
    if (!factor_capacitance(&of))
        return false;
    write_factors(&of);
    memcpy(of.p.high, of.g.high, thin_bytes);
    solve_transposed(&of, &of.p);
    weigh_left(&of);
    memcpy(of.g.high, of.k.high, thin_bytes);
    solve(&of, &of.g);
    *amplified = amplification(&of);
    for (int64_t i = 0; i < 2 * of.m * of.p.ld; i++)
        of.p.high[i] = -of.p.high[i];
    assemble(&of);
    *exponent = of.exponent == 0 ? 0 : check_exponent(&of);
    R(host__ism_times_power)(ism, *exponent - of.exponent);
    *amplified = ldexp(*amplified, *exponent - of.exponent);
    return true;
}
