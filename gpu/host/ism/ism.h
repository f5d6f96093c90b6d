/* gpu/host/ism/ism.h: the parts of `ism`: the variants, the trial of their answer, and what is done
 * when it fails.
 *
 * A = A0 + X Y^T (n x n; X, Y n x m). A0^-1 is a diagonal or is given. With A alone A0 is the
 * diagonal of A, X = A - A0 and Y = I, neither of which is formed.
 *
 * The paper's recurrences for U and V are multiplied by A0^-1: G = A0^-1 U and K = V^T A0^-1 are
 * kept instead, and of G the product G R, so that
 *
 *      G_k = A0^-1 X_k - (G R)_{<k} K_{<k} X_k,    K_k = Y_k^T A0^-1 - Y_k^T (G R)_{<k} K_{<k},
 *      R_k = (I + Y_k^T G_k)^-1,                   A^-1 = A0^-1 - (G R) K,
 *
 * which needs two products with A0^-1 where the paper's form has five, and none with R. Arrays of m
 * lines of n numbers hold G^T and K. Variant `single` is `block` with one column a block, as in the
 * paper; `reduced_memory` keeps, in place of H, the inverse so far, A0^-1 - A0^-1 H A0^-1.
 *
 * The paper: X. He, M. Holm and M. Neytcheva, "Efficiently parallel implementation of the inverse
 * Sherman-Morrison algorithm", PARA 2012. `single` is its Algorithm 1 (SISM), `block` Algorithm 2
 * (BISM), `reduced_memory` Algorithm 3 (RMBISM).
 *
 * Threads: any, each on its own matrix; a team may help, and what a piece of work is depends on n,
 * m and the block size alone. Nothing is allocated. Cost: see each function.
 */
#ifndef GPU_HOST_ISM_ISM_H
#define GPU_HOST_ISM_ISM_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/host/linalg/dense.h"
#include "gpu/host/base/host.h"
#include "gpu/host/simd/small.h"
#include "gpu/common/probes.h"
#include "gpu/methods/ism.h"

#define HOST_ISM_RANK 4 /* columns that the fused update takes at once, at most */
/* Lines of a trial at most; orders up to it are tried whole. */
#define HOST_ISM_PROBES ISM_PROBES
#define HOST_ISM_LINES 8   /* arrays of HOST_ISM_PROBES lines that a trial takes */
#define HOST_ISM_SEEN 3    /* lines that a trial takes of a strip of the inverse */
#define HOST_ISM_STRIPS 16 /* of tiles at most: HOST_ISM_SEEN of each fit all arrays but two */
#define HOST_ISM_THIN 64   /* X and Y of so many columns are transposed first */
#define HOST_ISM_FUSED_LINES (3 * HOST_ISM_RANK) /* that the fused update takes */
#define HOST_ISM_REPAIR_ROWS 64                  /* that Newton's step takes at once */

/* fraction * 2^exponent: a product of many numbers that must not overflow on the way. */
struct host_ism_product {
    double fraction;
    int64_t exponent;
};
void host__ism_product_times(struct host_ism_product *product, double factor);
double host__ism_product_value(struct host_ism_product product);

/* How a matrix is gone about. */
struct host_ism_plan {
    enum method_algorithm algorithm; /* SINGLE, BLOCK or REDUCED_MEMORY */
    bool fused;                      /* by the fused update, HOST_ISM_RANK columns at a time */
    int64_t block;                   /* columns of a block, 1 to m (1 where m is 0) */
};

/* A good plan for auto, or what the options say: plan.c. inputs: a bit for each that is there.
 */
struct host_ism_plan host__ism_plan(int64_t n, int64_t m, uint32_t inputs, const int64_t *options);
/* Numbers of scratch that the plan takes behind the matrix's own; -1 on overflow. */
int64_t host__ism_plan_numbers(enum precision precision, int64_t n, int64_t m,
                               struct host_ism_plan plan, bool factors);
/* No plan takes more, whatever the options are. m >= 1. */
int64_t host__ism_max_numbers(enum precision precision, int64_t n, int64_t m);
/* Of its own: A0's diagonal and the trial's lines. */
int64_t host__ism_own_numbers(enum precision precision, int64_t n, int64_t m);
/* How the inverse is cut into tiles, by strips of rows. */
struct host_ism_tiles {
    int64_t rows, columns; /* of a tile */
    int64_t down, across;  /* tiles */
};
struct host_ism_tiles host__ism_tiles(int64_t n);
/* Of X and Y balanced (balance.c), behind all others. */
int64_t host__ism_balance_numbers(int64_t n, int64_t m);

/* How a trial came out. */
struct host_ism_verdict {
    bool good;
    bool cancels;          /* A is known: terms of X Y^T cancel */
    bool singular;         /* A0_INVERSE alone: A cannot be told from a singular matrix */
    double error;          /* what |I - X A| seems to be; NaN when X is not finite */
    struct host_norm a, x; /* a: not known when A0_INVERSE is alone */
};

#define REAL_FILE "gpu/host/ism/types.inc"
#include "gpu/host/linalg/real.inc"

#endif
