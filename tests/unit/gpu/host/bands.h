/* tests/unit/gpu/host/bands.h: tridiagonal matrices of many kinds, by their diagonals. */
#ifndef TESTS_UNIT_GPU_HOST_BANDS_H
#define TESTS_UNIT_GPU_HOST_BANDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/datatype.h"

/* n numbers in each; the last of dl and du are not the matrix's. FP32 ones hold rounded numbers. */
struct gputest_bands {
    int64_t n;
    enum precision precision;
    double *dl, *d, *du;
};

enum gputest_bands_kind {
    BANDS_DIAGONAL,
    BANDS_CONDITION_2,
    BANDS_ILL,
    BANDS_BARELY,
    BANDS_SMALL,
    BANDS_LARGE,
    BANDS_RANDOM,
    BANDS_FIRST_COLUMN_ZERO,
    BANDS_LAST_COLUMN_ZERO,
    BANDS_LAST_HALF_ZERO,
    BANDS_RANDOM_SMALL,
    BANDS_RANDOM_LARGE,
    BANDS_LAPLACE,     /* (-1, 2, -1) */
    BANDS_ALTERNATING, /* (1, 2, 1): the poster's formulas divide by zero */
    BANDS_WEAK_ROWS,
    BANDS_WEAK_COLUMNS,
    BANDS_STRONG_COLUMNS,
    BANDS_INTEGERS,
    BANDS_ZERO_DIAGONAL, /* nonsingular for even n */
    BANDS_DECOUPLED,
    BANDS_BIDIAGONAL,
    BANDS_FAR,     /* far entries underflow */
    BANDS_GROWING, /* far entries' generators overflow */
    BANDS_CHEQUERED,
    BANDS_KINDS
};

struct gputest_bands gputest_bands_make(enum gputest_bands_kind kind, enum precision precision,
                                        int64_t n, uint64_t seed);
void gputest_bands_free(struct gputest_bands *a);
/* The same three numbers in every row. */
void gputest_bands_fill(struct gputest_bands *a, double dl, double d, double du);
/* The magnitudes next to the diagonal in row i, or in column i. */
double gputest_bands_around(const struct gputest_bands *a, int64_t i, bool columns);

#endif
