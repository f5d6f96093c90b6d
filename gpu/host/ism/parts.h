/* gpu/host/ism/parts.h: the layout of the scratch of `ism`'s variants, said once for
 * the code that takes it and the code that counts it.
 *
 * Threads: pure functions.
 */
#ifndef GPU_HOST_ISM_PARTS_H
#define GPU_HOST_ISM_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/datatype.h"

/* Where each array starts, in numbers; total -1: it overflows. What a variant does not use has no
 * length. */
struct host_ism_layout {
    int64_t ld_block;  /* of arrays with lines of a block's numbers */
    int64_t gr, k;     /* block: m lines of n. reduced: gr n lines of a block, k a block's of n */
    int64_t w;         /* block: a block's lines of n. reduced: n lines of a block */
    int64_t p, q;      /* block: K X_k and (G R)^T Y_k, a line for each earlier column */
    int64_t s, t;      /* with factors: the earlier R_k^T, and R times p */
    bool packs;        /* block: there is room for (G R)^T and K in panels, at w and gr */
    int64_t inverse;   /* R_k: a block's lines */
    int64_t inverting; /* what its inversion takes */
    int64_t total;
};

/* The same of woodbury.c, which has these arrays. */
struct host_ism_dd_layout {
    int64_t g, k, p, c, r, by, pivots, weights, rows, left, all;
    int64_t total;
};
struct host_ism_dd_layout host__ism_layout_dd(enum precision precision, int64_t n, int64_t m);

struct host_ism_layout host__ism_layout_block(enum precision precision, int64_t n, int64_t m,
                                              int64_t block, bool factors);
struct host_ism_layout host__ism_layout_reduced(enum precision precision, int64_t n, int64_t block);

#endif
