/* tests/device/chain.h: a matrix that is changed by products of low rank, again and again, and is
 * known exactly all the while; and the measures of what an engine answers of it.
 *
 * X and Y hold multiples of a power of two that is coarse enough for every entry of A + X Y^T to be
 * a number of the precision: A is never rounded, so it cannot drift, and a change that is taken
 * back leaves what was. All else is summed up in long double. Nothing here is an engine's code.
 */
#ifndef TESTS_DEVICE_CHAIN_H
#define TESTS_DEVICE_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/datatype.h"

#define CHAIN_N_MAX 128
#define CHAIN_RANK_MAX 4
#define CHAIN_TERMS                                                                                \
    32 /* products that A may have next to its diagonal, about half of them at a time */

struct chain {
    enum precision precision;
    int64_t n, m;
    uint64_t seed;
    double *a;       /* n x n: A0, before the change */
    double *inverse; /* n x n: A0_INVERSE, as it was answered last */
    double *x, *y;   /* n x m: the change; room for CHAIN_RANK_MAX columns */
    double *next;    /* n x n: A0 + X Y^T */
    double *terms;   /* CHAIN_TERMS times x and y, n each */
    double *near;    /* x and y of the last change that was nearly singular, n each */
    uint32_t live;   /* bit t: term t is part of A */
    long double *work;
};

/* Well conditioned; the inverse is long double's, rounded. */
struct chain chain_make(enum precision precision, int64_t n, uint64_t seed);
void chain_free(struct chain *chain);

/* The next change, of rank m: terms come and go, and A stays well conditioned. */
void chain_change(struct chain *chain, int64_t m);
/* One after which det(A) / det(A0) is `share`, to 1e-10 (FP32: 1e-4), and one that takes it back.
 * Both are of rank 1, as the sum of m columns. */
void chain_change_near(struct chain *chain, int64_t m, double share);
void chain_change_back(struct chain *chain, int64_t m);
/* One after which two rows of A are the same. */
void chain_change_singular(struct chain *chain, int64_t m);
/* The change is made, and z (n x n) its inverse. Without this call it is rejected. */
void chain_accept(struct chain *chain, const double *z);
/* Every entry of the inverse becomes another one, by at most `share` of it. */
void chain_drift(struct chain *chain, double share);

/* |I - Z A| / (n |A| |Z| eps), A being n x n. */
double chain_ratio(const struct chain *chain, const double *a, const double *z);

/* What an answer without A0 is held against, B being A0_INVERSE and M = I + X Y^T B. */
struct chain_update {
    double ratio;     /* |B - Z M| / (n |Z| (1 + |M - I|) eps) */
    double det_ratio; /* det(I + Y^T B X) = det(M) */
    double det_slack; /* what rounding may change in it, about */
};

/* by_lu: DET_RATIO is by the pivots of M, not by those of I + Y^T B X. */
struct chain_update chain_measure_update(const struct chain *chain, const double *z, bool by_lu);

/* What one with A0 is held against. */
struct chain_truth {
    double rcond;    /* of A0 + X Y^T */
    double rcond_a0; /* of A0 */
    double det_ratio;
};

struct chain_truth chain_measure_truth(const struct chain *chain);

#endif
