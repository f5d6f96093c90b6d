/* tests/support/latms.h: random matrices of known singular values, made as LAPACK's dlatms makes
 * them: a diagonal between two random orthogonal factors. All of it is done in long double and
 * rounded once, so that a condition up to 1e15 is what it is called.
 *
 * From n = LATMS_ROTATED_N_MIN on a factor is a product of 16 rounds of rotations. Each turns
 * random pairs of rows or columns into each other by random angles, so that all entries are filled
 * in.
 *
 * The same row gives the same matrix, on any machine whose long double has 64 bits. Threads: any.
 * Cost: 16/3 n^3 operations of long double; of large orders 100 n^2, but for triangular matrices.
 */
#ifndef TESTS_SUPPORT_LATMS_H
#define TESTS_SUPPORT_LATMS_H

#include <stdint.h>

#include "base/datatype.h"

#define LATMS_ROTATED_N_MIN 512

/* The singular values, from 1 down to 1 / condition. */
enum latms_mode {
    LATMS_ONE_LARGE = 1, /* 1, all others 1 / condition */
    LATMS_ONE_SMALL,     /* 1 / condition, all others 1 */
    LATMS_GEOMETRIC,
    LATMS_ARITHMETIC,
    LATMS_LOG_UNIFORM, /* random */
    LATMS_UNIFORM,     /* random in (0, 1), as entries are; the condition does not matter */
    LATMS_MODE_MAX = LATMS_UNIFORM
};

enum latms_kind {
    LATMS_GENERAL,
    LATMS_SYMMETRIC, /* to the bit; eigenvalues of random sign */
    LATMS_DEFINITE,  /* the same with positive ones, but for rounding */
    LATMS_UPPER,     /* triangular */
    LATMS_LOWER,
    LATMS_DIAGONAL, /* of random sign */
    LATMS_KIND_COUNT
};

struct latms {
    enum latms_kind kind;
    enum latms_mode mode;
    double condition; /* in the 2-norm; >= 1 */
    uint64_t seed;
};

/* a (n x n, row-major) holds numbers of the precision. */
void latms_make(const struct latms *row, enum precision precision, int64_t n, double *a);

const char *latms_mode_name(enum latms_mode mode); /* "geometric" */
const char *latms_kind_name(enum latms_kind kind); /* "symmetric" */

#endif
