/* gpu/host/simd/small.h: `lu`, and updates of a known inverse by `ism`, for orders up to
 * HOST_SMALL_ORDER_MAX: a group of matrices at once, one in each lane of the vector unit.
 *
 * The inversion (lu.inc) and the update (ism.inc) are compiled for vectors of 16, 32
 * and 64 bytes. Every matrix meets the same operations in the same order in all of them, and
 * products and sums are never fused: its bits depend neither on the code that is chosen, nor on its
 * lane, nor on its company.
 *
 * What is out of the ordinary (a number that is not finite, a norm near the ends of the range, a
 * zero pivot, elements that grow, an inverse that overflows or fails its trial) is left to
 * host__lu_alone, matrix by matrix; of an update, to ism.c (ism/group.inc).
 *
 * Threads: any, each on its own scratch. Cost: 2 n^3 operations a matrix, of an update 6 n^2 m and
 * some 16 n^2 (4 n^3 up to n = 8) for its trial; a group that is not full costs as much as a full
 * one of the narrowest code that holds it.
 */
#ifndef GPU_HOST_SIMD_SMALL_H
#define GPU_HOST_SIMD_SMALL_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/common/probes.h"
#include "gpu/host/base/host.h"

#define HOST_SMALL_ORDER_MAX 32
#define HOST_SMALL_VECTOR_BYTES 64 /* of the widest code */
/* A column of X and one of Y are balanced where one is so many binary places larger. */
#define HOST_SMALL_APART(max_exp) ((max_exp) / 4)
#define HOST_SMALL_UPDATE_RANK 8 /* columns of X and Y that an update has at most */

/* What fills the lanes, and how it came out. Lanes without a matrix of their own have another's a
 * and no x. */
struct host_small_group_f32 {
    const float *a[HOST_GROUP_MAX];    /* n x n, aligned to the element only */
    const float *next[HOST_GROUP_MAX]; /* what may come next: fetched into the cache, if at all */
    float *x[HOST_GROUP_MAX];          /* the inverse; NULL: not wanted; written if good */
    float rcond[HOST_GROUP_MAX];
    bool good[HOST_GROUP_MAX]; /* false: host__lu_alone has to do it */
};
struct host_small_group_f64 {
    const double *a[HOST_GROUP_MAX];
    const double *next[HOST_GROUP_MAX];
    double *x[HOST_GROUP_MAX];
    double rcond[HOST_GROUP_MAX];
    bool good[HOST_GROUP_MAX];
};

/* What a trial of an update of A0^-1 alone has measured; M = I + X Y^T A0^-1. */
struct host_small_measured {
    double norm_b, norm_x; /* |A0^-1|, |Z| */
    double change;         /* |M - I| */
    double terms;          /* the largest sum in a column of |X| |Y^T| |A0^-1| */
    double error;          /* T (A0^-1 - Z M): its largest entry, of a whole one its norm */
};

/* The same of updates of a known inverse: what fills the lanes, and what was measured. Lanes
 * without a matrix of their own have another's inputs and no z. */
struct host_small_update_f32 {
    const float *b[HOST_GROUP_MAX]; /* A0^-1, n x n, aligned to the element only */
    const float *x[HOST_GROUP_MAX], *y[HOST_GROUP_MAX]; /* n x m */
    float *z[HOST_GROUP_MAX];                           /* NULL: not wanted; written in any case */
    float weights[HOST_SMALL_ORDER_MAX][2];             /* two lines of a trial, by rows */
    float det_ratio[HOST_GROUP_MAX];
    struct host_small_measured measured[HOST_GROUP_MAX];
    bool good[HOST_GROUP_MAX]; /* false: something is out of the ordinary; nothing else counts */
};
struct host_small_update_f64 {
    const double *b[HOST_GROUP_MAX];
    const double *x[HOST_GROUP_MAX], *y[HOST_GROUP_MAX];
    double *z[HOST_GROUP_MAX];
    double weights[HOST_SMALL_ORDER_MAX][2];
    double det_ratio[HOST_GROUP_MAX];
    struct host_small_measured measured[HOST_GROUP_MAX];
    bool good[HOST_GROUP_MAX];
};

/* The inversion for one width of vector. */
struct host_small_code {
    const char *kernels[PRECISION_COUNT]; /* "host lu simd avx2 f64" */
    int vector_bytes;
    int64_t order_max; /* beyond, a narrower code is no slower: more of a group is near */
    bool (*supported)(void);
    /* scratch: host__small_scratch_bytes of them */
    void (*invert_f32)(struct host_small_group_f32 *group, int64_t n, void *scratch);
    void (*invert_f64)(struct host_small_group_f64 *group, int64_t n, void *scratch);
    /* scratch: host__small_update_bytes of them; m from 1 to HOST_SMALL_UPDATE_RANK */
    void (*update_f32)(struct host_small_update_f32 *group, int64_t n, int64_t m, void *scratch);
    void (*update_f64)(struct host_small_update_f64 *group, int64_t n, int64_t m, void *scratch);
};
extern const struct host_small_code host__small_sse2, host__small_avx2, host__small_avx512;

/* The narrowest code that takes `count` matrices, or the widest for that order. */
const struct host_small_code *host__small_choose(enum precision precision, int64_t n, int count);
/* The codes this CPU runs, narrowest first; NULL beyond the last. */
const struct host_small_code *host__small_code(int index);

int64_t host__small_scratch_bytes(int64_t n);
/* What `lu` takes of any order: host__small_scratch_bytes or host__dense_scratch_bytes, whichever
 * is more; -1 on overflow. m does not matter. */
int64_t host__lu_scratch_bytes(enum precision precision, int64_t n, int64_t m);
int64_t host__small_update_bytes(int64_t n);
/* How many matrices of order n are taken at once; 1 beyond HOST_SMALL_ORDER_MAX. */
int host__small_group(enum precision precision, int64_t n);
/* The predicted time of a matrix in a full group, n <= HOST_SMALL_ORDER_MAX. */
double host__small_matrix_ns(enum precision precision, int64_t n);
/* What a full group meets: "host lu simd avx2 f64". Constant text. */
const char *host__small_kernel(enum precision precision, int64_t n);

/* The whole of `lu` for 1 to host__small_group matrices of one order, whatever they hold: run_group
 * of a method (host.h). */
void host__small_lu_f32(const struct host_matrix *matrices, int count,
                        const struct host_matrix *next, int next_count);
void host__small_lu_f64(const struct host_matrix *matrices, int count,
                        const struct host_matrix *next, int next_count);

#endif
