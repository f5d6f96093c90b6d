/* gpu/common/equilibrate.h: the rule by which both engines equilibrate a matrix by powers of two.
 * Also for device code.
 *
 * Wanted are exponents r_i of rows and c_j of columns, so that the largest entry of each row and
 * each column of 2^(r_i + c_j) a_ij is at least 1/4 and below 1. They are found by passes over A. A
 * pass finds for each line, row or column, the largest exponent e of its entries as they are scaled
 * so far; the exponent of a number is frexp's. Then
 *
 * - in the first pass, the largest e of all is taken off all e, and off the rows' exponents: from
 *   here on no e is above 0;
 * - a line is even where e >= -1, or where it holds zeros alone. Where all lines are even, that is
 *   the end;
 * - where all columns are even and some rows are not, each row's exponent grows by -e, and that is
 *   the end too: every row's largest entry is in [1/2, 1) then, and no column's has become smaller.
 *   Likewise with rows and columns exchanged;
 * - else the exponents of all lines grow by half of -e, rounded towards 0. No e is above 0 then,
 * and the least one is half of what it was, rounded away from 0.
 *
 * The last rule is D. Ruiz's, "A scaling algorithm to equilibrate both rows and columns norms in
 * matrices" (2001). Rows first and columns next would take one pass, but bring a matrix to 1 by its
 * rows alone, and let entries that matter underflow: of [[1e-300, 0], [1e-16, 1e300]] the second
 * row has 1e-316 then.
 *
 * A is read as it is, and only exponents are added: nothing is rounded, over- or underflows on the
 * way, and the largest is the same in any order. A symmetric matrix gets the same exponents for
 * rows and columns but for the level, and 2^k A those of A but for the level.
 */
#ifndef GPU_COMMON_EQUILIBRATE_H
#define GPU_COMMON_EQUILIBRATE_H

/* The exponent of 0: below all others, whatever is added. */
#define EQUILIBRATE_NONE (-(1 << 20))

/* e is that of a line of zeros. */
#define EQUILIBRATE_IS_ZERO(e) ((e) < EQUILIBRATE_NONE / 2)
#define EQUILIBRATE_IS_EVEN(e) ((e) >= -1 || EQUILIBRATE_IS_ZERO(e))

/* By how much a line's exponent grows. */
#define EQUILIBRATE_GROWTH(e, others_even)                                                         \
    (EQUILIBRATE_IS_ZERO(e) ? 0 : (others_even) ? -(e) : -((e) / 2))

/* Passes that are enough: e is halved from the range of all exponents down to 1. */
#define EQUILIBRATE_PASSES_FP32 9  /* 2^9 > 128 + 148 */
#define EQUILIBRATE_PASSES_FP64 12 /* 2^12 > 1024 + 1073 */

#endif
