/* gpu/host/ism/check.h: the parts of the residual check of `ism`'s answers (check.c), for the files
 * check*.c alone.
 *
 * Threads: any; a team helps. Cost: see check.c and ism.h.
 */
#ifndef GPU_HOST_ISM_CHECK_H
#define GPU_HOST_ISM_CHECK_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/host/ism/ism.h"

#define PROBE_VECTORS 2  /* and SEEN_LINES of a tile are these and the sums */
#define WHOLE_RATIO 8.0  /* of a residual that is known whole; the contract has 15 */
#define TERMS_RATIO 20.0 /* n / 2 times it is what the sums of an update may have lost unseen */
#define WHOLE_TERMS_RATIO 4.0 /* the same of a residual that is known whole */
#define SMALL_ORDER 32        /* to this order two lines may miss too much of it, A being known */
#define SMALL_TERMS_RATIO 8.0
#define DD_RATIO 4.0     /* of what those in double-double may have lost */
#define CHANGE_ERROR 0.1 /* of |M - I| or |A| that may be lost likewise */
#define NORM_ORDER 64
#define TIMES_PIECE 256 /* columns that a piece of a product takes */
#define GATHER_PIECE 64 /* columns of the strips' sums */
#define SEEN_LINES HOST_ISM_SEEN
#define TIMES_ROWS 4 /* rows and lines that are taken together */

/* What a loop over vectors does. */
enum task {
    ADD_TIMES,
    ADD_TIMES_AND_SUMS,
    ADD_SEEN,
    ADD_MAGNITUDES,
    ADD_WEIGHTS,
    SET_TIMES_TRANSPOSED,
    SET_WEIGHTS
};

static inline double value_of(struct host_norm norm)
{
    return ldexp(norm.fraction, norm.exponent);
}

static inline double size_of(struct host_norm a, struct host_norm x)
{
    return ldexp(a.fraction * x.fraction, a.exponent + x.exponent);
}

#define REAL_HEADER "gpu/host/ism/check.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* The arrays of lines that a check works in; thin, error and spare are of twice as many. */
struct R(host_check) {
    struct R(host_ism) * ism;
    int64_t count, ld;
    bool dd; /* A is multiplied, and its columns are summed, in double-double */
    REAL *t, *tz, *error, *thin, *spare;
};

struct R(host_check_product) {
    const REAL *lines; /* count lines, ld apart */
    int64_t count, ld;
    const REAL *from; /* rows x columns, from_ld apart */
    int64_t rows, columns, from_ld;
    REAL *to; /* lines, to_ld apart */
    int64_t to_ld;
    bool magnitudes; /* add_magnitudes, with one line, to two */
    REAL *weighed;   /* set_times_transposed: NULL, or becomes |from| times the line behind those */
};

/* to = lines * from, by strips of rows. */
struct R(host_check_down) {
    const REAL *lines, *from;
    int64_t count, ld; /* lines, and those of to, ld apart */
    int64_t rows, columns;
    bool sums; /* behind the lines of to stands one of the sums of |from|'s columns */
    REAL *to;
    REAL *parts; /* of every strip, lines part_ld apart; to, where there is one strip */
    int64_t part_ld, strips, strip;
};

/* The second half of an array: of pairs, what the first half lacks. */
static inline REAL *R(host__check_low)(const struct R(host_check) * check, REAL *pairs)
{
    return pairs + HOST_ISM_PROBES * check->ld;
}

/* What a check is measured by. terms: the largest sum in a column of |X| |Y^T| |A0^-1|, with the
 * norm of a column of X in place of its entries. */
struct R(host_check_weight) {
    double b; /* |A0^-1| */
    double terms;
};

/* ---- check_lines.c ---- */

void R(host__check_do)(const struct R(host_check_product) * product, enum task task);

/* ---- check_products.c ---- */

struct R(host_check) R(host__check_open)(struct R(host_ism) * ism);
/* to += lines * from (n x columns) */
void R(host__check_times)(const struct R(host_check) * check, const REAL *lines, const REAL *from,
                          int64_t columns, REAL *to);
void R(host__check_set_zero)(const struct R(host_check) * check, int64_t count, REAL *lines);
void R(host__check_clear)(const struct R(host_check) * check, REAL *lines);
void R(host__check_times_piece)(void *context, int64_t index);
/* Sets to; room: lines of ld at parts, which are used up. */
void R(host__check_go_down)(const struct R(host_check) * check, struct R(host_check_down) * down,
                            int64_t room);
/* to = count lines * X Y^T. weights: NULL, or becomes |Y| times the norms of the columns of X: no
 * column of X Y^T is longer. thin is used up, and `room` lines at parts, where to may lie. */
void R(host__check_meet)(const struct R(host_check) * check, const REAL *lines, int64_t count,
                         REAL *to, REAL *weights, REAL *parts, int64_t room);
/* to = count columns of X Y^T, whose rows of Y are in thin. */
void R(host__check_form_columns)(const struct R(host_check) * check, int64_t count, REAL *to);
void R(host__check_see_piece)(void *context, int64_t index);
/* Columns of the strips' sums, in tz. */
void R(host__check_seen_piece)(void *context, int64_t index);
/* to = lines * X Y^T; thin is used up. */
void R(host__check_times_thin)(const struct R(host_check) * check, const REAL *lines, REAL *to);
/* to = count lines * X Y^T, in double-double; thin is used up. */
void R(host__check_times_thin_dd)(const struct R(host_check) * check, int64_t count,
                                  const REAL *lines, REAL *to);
/* error = lines * A, in double-double; thin is used up. */
void R(host__check_times_a_dd)(const struct R(host_check) * check, const REAL *lines);
/* spare = column j of A, in double-double. */
void R(host__check_column_dd)(const struct R(host_check) * check, int64_t j);
/* to += lines * A0, or A where that is given. */
void R(host__check_add_times_a0)(const struct R(host_check) * check, const REAL *lines, REAL *to);
/* error = lines * A, A being known. */
void R(host__check_times_a)(const struct R(host_check) * check, const REAL *lines);
/* Lines of the identity, if there are as many as it has, or of random numbers. */
void R(host__check_set_lines)(const struct R(host_check) * check, REAL *lines);
/* The largest of lines that are a part of a matrix: of its columns' sums, where they are all. */
double R(host__check_measure)(const struct R(host_check) * check, const REAL *lines);
/* to = one - other */
void R(host__check_subtract)(const struct R(host_check) * check, const REAL *one, const REAL *other,
                             REAL *to);

/* ---- check_norm.c ---- */

/* The largest of n numbers, none below 0, with zeros behind them; not finite if one of them is not.
 */
REAL R(host__check_largest)(const REAL *numbers, int64_t n);
/* weights = |Y| times the norms of the columns of X: no column of X Y^T is longer. thin and error
 * are used up. */
void R(host__check_weigh_columns)(const struct R(host_check) * check, REAL *weights);
/* The norms of the columns of X, in numbers that no sum of magnitudes overflows. */
long double *R(host__check_wide_norms)(const struct R(host_check) * check);
/* What column j of X Y^T is no longer than. */
long double R(host__check_wide_weight)(const struct R(host_check) * check, const long double *norms,
                                       int64_t j);
/* The same, without them. thin, spare and error are used up. */
long double R(host__check_largest_weight)(const struct R(host_check) * check);
/* The sum of a line's magnitudes. */
REAL R(host__check_sum_of)(const struct R(host_check) * check, const REAL *line);
/* The norm of column j of A, which is left in spare. */
REAL R(host__check_column_norm)(const struct R(host_check) * check, int64_t j);
struct host_norm R(host__check_norm_of_number)(REAL number);
/* |A|, and on the way what is measured of T (I - Z A), and the largest weight: one pass over X and
 * one over Y do for T, other lines and T Z. n > NORM_ORDER, and A is not given. All lines are used
 * up: T too, by the climb. */
struct host_norm R(host__check_norm_with_residual)(const struct R(host_check) * check,
                                                   long double *weight, double *measured);
/* T is in t, and T Z in tz; t, error, thin and spare are used up. */
struct host_norm R(host__check_norm_a)(const struct R(host_check) * check);

/* ---- check_update.c ---- */

/* thin, spare and error are used up. */
struct R(host_check_weight) R(host__check_weigh_terms)(const struct R(host_check) * check);
/* change: |M - I|, or NaN: not known. */
void R(host__check_update_dd)(const struct R(host_check) * check,
                              const struct R(host_check_weight) * weight, double change,
                              struct host_ism_verdict *verdict);
/* With A0_INVERSE alone: T (A0^-1 - Z M). The update's own sums may have lost the same terms as
 * those of this check, bit for bit: where that could matter, it is made in double-double. */
void R(host__check_update)(const struct R(host_check) * check, struct host_ism_verdict *verdict);

/* ---- check.c ---- */

/* What a check of order n allows, by the size of what was multiplied. */
double R(host__check_allowed_of)(int64_t n, bool whole, double size);
double R(host__check_allowed)(const struct R(host_check) * check, double size);

#endif
