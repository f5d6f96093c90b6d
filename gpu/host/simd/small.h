/* gpu/host/simd/small.h: `lu`, and updates of a known inverse by `ism`, for orders up to
 * HOST_SMALL_ORDER_MAX: a group of matrices at once, one in each lane of the vector unit.
 *
 * The inversion (invert.c) and the update (update.c) are compiled for vectors of 16, 32 and 64
 * bytes. Every matrix meets the same operations in the same order in all of them, and
 * products and sums are never fused: its bits depend neither on the code that is chosen, nor on its
 * lane, nor on its neighbours.
 *
 * What is out of the ordinary (a number that is not finite, a norm near the ends of the range, a
 * zero pivot, elements that grow, an inverse that overflows or fails its residual check, an RCOND
 * below eps) is left to host__lu_alone, matrix by matrix; of an update, to ism.c.
 *
 * Threads: any, each on its own scratch. Cost: 2 n^3 operations a matrix, of an update 6 n^2 m and
 * some 16 n^2 (4 n^3 up to n = 8) for its check; a group that is not full costs as much as a full
 * one of the narrowest code that holds it.
 */
#ifndef GPU_HOST_SIMD_SMALL_H
#define GPU_HOST_SIMD_SMALL_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/common/probes.h"
#include "gpu/host/base/host.h"

#define HOST_SMALL_ORDER_MAX 32
#define HOST_SMALL_VECTOR_BYTES 64 /* of the widest code */
/* A column of X and one of Y are scaled where one is so many binary places larger. */
#define HOST_SMALL_APART(max_exp) ((max_exp) / 4)
#define HOST_SMALL_UPDATE_RANK 8 /* columns of X and Y that an update has at most */

/* What a check of an update of A0^-1 alone has measured; M = I + X Y^T A0^-1. */
struct host_small_measured {
    double norm_b, norm_x; /* |A0^-1|, |Z| */
    double change;         /* |M - I| */
    double terms;          /* the largest sum in a column of |X| |Y^T| |A0^-1| */
    double error;          /* T (A0^-1 - Z M): its largest entry, of a whole one its norm */
};

/* Bytes of scratch of an inversion: vectors next to the matrix's own as carve has them (invert.c).
 */
static inline int64_t host__small_scratch_bytes(int64_t n)
{
    assert(n <= HOST_SMALL_ORDER_MAX);
    return n * ((n | 1) + 12) * HOST_SMALL_VECTOR_BYTES;
}

/* The same of an update (carve_update in update.c). */
static inline int64_t host__small_update_bytes(int64_t n)
{
    assert(n <= HOST_SMALL_ORDER_MAX);
    return n * (n + 4 * HOST_SMALL_UPDATE_RANK + 6) * HOST_SMALL_VECTOR_BYTES;
}

#define REAL_HEADER "gpu/host/simd/small.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* What fills the lanes, and how it came out. Lanes without a matrix of their own have another's a
 * and no x. */
struct R(host_small_group) {
    const REAL *a[HOST_GROUP_MAX];    /* n x n, aligned to the element only */
    const REAL *next[HOST_GROUP_MAX]; /* what may come next: fetched into the cache, if at all */
    REAL *x[HOST_GROUP_MAX];          /* the inverse; NULL: not wanted; written if good */
    REAL rcond[HOST_GROUP_MAX];
    bool good[HOST_GROUP_MAX]; /* false: host__lu_alone has to do it */
};

/* The same of updates of a known inverse: what fills the lanes, and what was measured. Lanes
 * without a matrix of their own have another's inputs and no z. */
struct R(host_small_update) {
    const REAL *b[HOST_GROUP_MAX]; /* A0^-1, n x n, aligned to the element only */
    const REAL *x[HOST_GROUP_MAX], *y[HOST_GROUP_MAX]; /* n x m */
    REAL *z[HOST_GROUP_MAX];                           /* NULL: not wanted; written in any case */
    REAL weights[HOST_SMALL_ORDER_MAX][2];             /* two probe vectors, by rows */
    REAL det_ratio[HOST_GROUP_MAX];
    struct host_small_measured measured[HOST_GROUP_MAX];
    bool good[HOST_GROUP_MAX]; /* false: something is out of the ordinary; nothing else counts */
};

/* scratch: host__small_scratch_bytes of them */
void R(host__small_invert_v16)(struct R(host_small_group) * group, int64_t n, void *scratch);
void R(host__small_invert_v32)(struct R(host_small_group) * group, int64_t n, void *scratch);
void R(host__small_invert_v64)(struct R(host_small_group) * group, int64_t n, void *scratch);
/* scratch: host__small_update_bytes of them; m from 1 to HOST_SMALL_UPDATE_RANK */
void R(host__small_update_v16)(struct R(host_small_update) * group, int64_t n, int64_t m,
                               void *scratch);
void R(host__small_update_v32)(struct R(host_small_update) * group, int64_t n, int64_t m,
                               void *scratch);
void R(host__small_update_v64)(struct R(host_small_update) * group, int64_t n, int64_t m,
                               void *scratch);

/* The code for one width of vector. */
struct R(host_small_code) {
    const char *kernel; /* "host lu simd avx2 f64" */
    int vector_bytes;
    int64_t order_max; /* beyond, a narrower code is no slower: more of a group is near */
    bool (*supported)(void);
    void (*invert)(struct R(host_small_group) * group, int64_t n, void *scratch);
    void (*update)(struct R(host_small_update) * group, int64_t n, int64_t m, void *scratch);
};

/* The codes this CPU runs, narrowest first; NULL beyond the last. */
const struct R(host_small_code) * R(host__small_code)(int index);
/* The narrowest code that takes `count` matrices, or the widest for that order. */
const struct R(host_small_code) * R(host__small_choose)(int64_t n, int count);

/* What `lu` takes of any order: host__small_scratch_bytes or host__dense_scratch_bytes, whichever
 * is more; -1 on overflow. m does not matter. */
int64_t R(host__lu_scratch_bytes)(int64_t n, int64_t m);
/* That and room for an inverse that is not asked for: scratch_bytes and task_scratch_bytes of a
 * method's row (host.h). */
int64_t R(host__lu_whole_bytes)(int64_t n, int64_t m);
int64_t R(host__lu_task_bytes)(const struct host_task *task);
/* The matrix with its inverse in that room, where it is not asked for. */
struct host_matrix R(host__lu_whole)(const struct host_matrix *matrix);
/* How many matrices of order n are taken at once; 1 beyond HOST_SMALL_ORDER_MAX. */
int R(host__small_group)(int64_t n);
/* The predicted time of a matrix in a full group, n <= HOST_SMALL_ORDER_MAX. */
double R(host__small_matrix_ns)(int64_t n);
/* Which code a full group takes: "host lu simd avx2 f64". Constant text. */
const char *R(host__small_kernel)(int64_t n);

/* The whole of `lu` for 1 to host__small_group matrices of one order, whatever they hold: run_group
 * of a method (host.h), whose scratch has room for inverses that are not asked for. */
void R(host__small_lu)(const struct host_matrix *matrices, int count,
                       const struct host_matrix *next, int next_count);

#endif
