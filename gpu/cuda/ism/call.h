/* gpu/cuda/ism/call.h: what the kernels of `ism` are given, the layout of its workspace, and the
 * entries in each precision. Between ism.c, which reads the method's options, and the kernels.
 *
 * The workspace begins with what all matrices share, the probe vectors and the tables of a
 * recovery; then comes a part for each matrix that is worked on at once, cut into arrays. Rows of
 * arrays begin at multiples of 16 bytes, or follow one another without a gap where lu reads them.
 */
#ifndef GPU_CUDA_ISM_CALL_H
#define GPU_CUDA_ISM_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/cuda/base/method.h"
#include "gpu/cuda/ism/ism.h"
#include "gpu/common/probes.h"
#include "gpu/methods/ism.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Probe vectors at most: of updates by products to CUDA__ISM_NORM_ORDER, too. Orders up to it
 * are checked whole. */
#define CUDA__ISM_PROBES ISM_PROBES
#define CUDA__ISM_CHECK_PROBES 2  /* of a larger one, */
#define CUDA__ISM_KNOWN_PROBES 4  /* and where A is known, but for last.cuh */
#define CUDA__ISM_NORM_ORDER 64   /* to this order |A| is computed from all columns */
#define CUDA__ISM_SLOTS_MAX 32768 /* matrices that are worked on at once: of blockIdx.y */
#define CUDA__ISM_RECOVERED_MIN                                                                    \
    64 /* matrices that are recovered at once, of small orders more:                               \
        */
#define CUDA__ISM_RECOVERED_BYTES (64 << 20) /* as many as so much workspace holds */
#define CUDA__ISM_MET 128 /* lines of K that M = I + X K is formed with at a time */
#define CUDA__ISM_TURN 64 /* columns of a block that are eliminated together */
/* Products with sums of so many numbers on are cut, if they have few tiles: the numbers of a
 * piece's sums at least, rows and columns of a tile, tiles of all pieces together. */
#define CUDA__ISM_CUT_MIN 512
#define CUDA__ISM_CUT_INNER 128
#define CUDA__ISM_CUT_TILE 64
#define CUDA__ISM_CUT_TILES 264 /* twice the multiprocessors of an H200 */
#define CUDA__ISM_CUT_NUMBERS (CUDA__ISM_CUT_TILES * CUDA__ISM_CUT_TILE * CUDA__ISM_CUT_TILE)

/* The last product makes the answer itself up to so many columns (last.cuh; in FP32
 * last_narrow.cuh): columns of a block's strip, rows that it takes together, and blocks of all
 * strips, the multiprocessors of an H200; twice that where two blocks fit on one. */
#define CUDA__ISM_LAST_MAX 64
#define CUDA__ISM_LAST_STRIP 128
#define CUDA__ISM_LAST_ROWS 64
#define CUDA__ISM_NARROW_ROWS 128
#define CUDA__ISM_LAST_ALL 132
#define CUDA__ISM_LAST_ROUNDS 3 /* of all multiprocessors, at most */
/* From this order on, and to so many columns, |A| is measured next to the work, in another stream
 * (norm.cuh). */
#define CUDA__ISM_OVERLAPPED_MIN 1024
#define CUDA__ISM_OVERLAPPED_MAX 1024

/* Updates without A0 that no block of threads holds, to this order and so many columns, go by
 * stream.cuh: columns that a block reads, rows of a part of the answer, about, and rows of a
 * strip at least. Where all matrices have so few parts, a block of it has a strip: half as many as
 * an H200 has multiprocessors. */
#define CUDA__ISM_STREAM_ORDER 1024
#define CUDA__ISM_STREAM_MAX 64
#define CUDA__ISM_STREAM_SLAB 64
#define CUDA__ISM_STREAM_ROWS 128
#define CUDA__ISM_STREAM_STRIP 16
#define CUDA__ISM_STREAM_FEW 66

/* An unverified answer with a diagonal A0 is computed anew in double-double (woodbury.cuh) to so
 * many columns: with more lu takes less time. At most, whatever n is. */
#define CUDA__ISM_DD_MAX (CUDA_ISM_N_MAX / CUDA__ISM_DD_SHARE)
#define CUDA__ISM_DD_FEW 64
#define CUDA__ISM_DD_SHARE 32 /* of n */

/* The arrays of a part. One that a matrix does not need has no length. */
enum cuda__ism_array {
    CUDA__ISM_ANSWER, /* struct cuda__ism_answer */
    CUDA__ISM_D,      /* the diagonals of A0 and A0^-1, where A0_INVERSE is not given */
    CUDA__ISM_E,
    CUDA__ISM_X, /* n x m, rows ldm apart */
    CUDA__ISM_Y,
    CUDA__ISM_B,  /* n x n, A0^-1, until Z takes its place */
    CUDA__ISM_A0, /* n x n */
    CUDA__ISM_GR, /* (G R)^T, lines of n: m of them, or a block's */
    CUDA__ISM_K,  /* the same of K */
    CUDA__ISM_W,  /* G^T of a group or block */
    CUDA__ISM_P,  /* K X and (G R)^T Y of a group, a line of ldg for each earlier column */
    CUDA__ISM_Q,
    CUDA__ISM_C,      /* a block, which becomes its inverse: R^T, lines of lds */
    CUDA__ISM_TURNED, /* of a turn of a block: see turn.cuh */
    CUDA__ISM_TOP,
    CUDA__ISM_LEFT,
    CUDA__ISM_PIECES,     /* of a product */
    CUDA__ISM_OVERLAPPED, /* of norm.cuh, in FP64: what its kernels leave one another */
    CUDA__ISM_PARTS,      /* of last.cuh: sums of the blocks, three lines each */
    CUDA__ISM_STREAM_K,   /* of stream.cuh, in FP64: see there */
    CUDA__ISM_STREAM_R,
    CUDA__ISM_STREAM_RK,
    CUDA__ISM_STREAM_SIZES,
    CUDA__ISM_STREAM_NORMS,
    CUDA__ISM_STREAM_PARTS,
    CUDA__ISM_Z, /* n x n, becomes the inverse */
    CUDA__ISM_U, /* factors, n x m; U R next to them */
    CUDA__ISM_UR,
    CUDA__ISM_V,
    CUDA__ISM_TZ,      /* lines of n: T Z */
    CUDA__ISM_REST,    /* T less T X Y^T, or T Z X Y^T; before that columns' scores and norms */
    CUDA__ISM_ERROR,   /* what is left of T; before that lines times A */
    CUDA__ISM_SIGNS,   /* of chosen columns of A; of a solution the sums of those of |M - I| */
    CUDA__ISM_COLUMNS, /* columns of X Y^T or A0^-1 */
    CUDA__ISM_THIN,    /* lines of m: T Z X */
    CUDA__ISM_CHOSEN,  /* chosen rows of Y; before that m doubles, the norms of X's columns */
    CUDA__ISM_SIZES,   /* sums of magnitudes of the columns of Z or FORMED, and of A, A0 or B */
    CUDA__ISM_WEIGHTS, /* n doubles: see terms.cuh */
    CUDA__ISM_FORMED,  /* recovery: A or M; its inverse, and before that what is factored; its
                        * factors  and their pivots */
    CUDA__ISM_INVERSE,
    CUDA__ISM_LU,
    CUDA__ISM_PIVOTS,
    CUDA__ISM_DD_G, /* of woodbury.cuh: lines of n, m of them and as many of what they lack */
    CUDA__ISM_DD_K,
    CUDA__ISM_DD_P,
    CUDA__ISM_DD_Q,
    CUDA__ISM_DD_C, /* likewise, lines of m */
    CUDA__ISM_DD_R,
    CUDA__ISM_DD_BY, /* one line of m, and one of what it lacks */
    CUDA__ISM_DD_PIVOTS,
    CUDA__ISM_ARRAYS
};

/* How a matrix is gone about. */
struct cuda__ism_plan {
    enum method_algorithm
        algorithm; /* SINGLE, BLOCK or REDUCED_MEMORY; LU: it is left to recovery at once */
    bool fused;
    bool streams; /* with `fused`: by stream.cuh, with a workspace; rows of a part, parts */
    int64_t stream_rows, stream_parts, stream_ld; /* numbers from line to line */
    bool stream_by_strips;                        /* few parts: their strips are blocks' */
    int64_t block, group;                         /* columns; a group is a multiple of a block */
    bool in_place; /* Z takes the place of A0^-1, which the check reads where it was given */
    bool last;     /* the product makes the answer: rows of a block, blocks of a strip */
    int64_t last_rows, last_parts;
    bool adjacent; /* |A| is measured next to the work, by norm.cuh */
};

/* Slot k of a chunk has matrix first + k of the batch, or list[k]. */
struct cuda__ism_call {
    const struct cuda_tensors *tensors;
    int64_t item_count, matrices, n, m; /* m: n, of A alone */
    uint32_t inputs, wanted;
    struct cuda__ism_plan plan;
    bool recovery;
    int64_t first, count;
    int64_t *list;   /* recovery, `held` of them; else NULL */
    int64_t *picked; /* recovery: matrices that were looked through so far */
    uint32_t *unverified;
    int64_t ld, ldm, lds, ldg; /* numbers from line to line of arrays */
    int64_t held;              /* parts that there are */
    void *probes;              /* T: CUDA__ISM_PROBES probe vectors, ld apart */
    struct cuda_item *items;   /* recovery, `held` each: of the inverses, of the factors */
    unsigned char *parts;
    int64_t part; /* numbers */
    int64_t at[CUDA__ISM_ARRAYS];
    void *lu; /* recovery: lu's workspace */
    size_t lu_bytes;
    const struct cuda_ism_watch *watch; /* host's; NULL: no one watches */
    /* Host's: what is measured afterwards (measure.cuh), or NULL. `items` are for its lu. */
    const struct cuda__ism_call *measures;
};

static inline bool cuda__ism_has(uint32_t inputs, int input)
{
    return inputs >> input & 1;
}

/* Is double-double tried where an answer is unverified? */
static inline bool cuda__ism_restores(uint32_t inputs, int64_t n, int64_t m)
{
    const int64_t share = n / CUDA__ISM_DD_SHARE;
    return !cuda__ism_has(inputs, METHOD_ISM_A) && !cuda__ism_has(inputs, METHOD_ISM_A0_INVERSE) &&
           m > 0 && m <= (share > CUDA__ISM_DD_FEW ? share : CUDA__ISM_DD_FEW);
}

/* The whole batch, by the algorithm that the plan says; all that is unverified. */
typedef cudaError_t cuda__ism_launcher(const struct cuda__ism_call *work,
                                       struct cuda_products *products, cudaStream_t stream);
cuda__ism_launcher cuda__ism_launch_f32, cuda__ism_launch_f64;
/* Updates of a known inverse without A0, which cuda__ism_middle_holds. */
cudaError_t cuda__ism_middle_f32(const struct cuda__ism_call *work, cudaStream_t stream);
cudaError_t cuda__ism_middle_f64(const struct cuda__ism_call *work, cudaStream_t stream);
/* The chunk of work->count slots of such that the plan streams. */
cudaError_t cuda__ism_stream_f32(const struct cuda__ism_call *work, cudaStream_t stream);
cudaError_t cuda__ism_stream_f64(const struct cuda__ism_call *work, cudaStream_t stream);
/* The first work->count of the unverified matrices. */
cuda__ism_launcher cuda__ism_recover_f32, cuda__ism_recover_f64;
/* Those of its matrices, or of its list, which are done with. */
cuda__ism_launcher cuda__ism_measure_f32, cuda__ism_measure_f64;

cuda_self_tester cuda__try_ism; /* self_test.c */

#ifdef __cplusplus
}
#endif

#endif
