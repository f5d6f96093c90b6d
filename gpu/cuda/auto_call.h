/* gpu/cuda/auto_call.h: what the passes of `auto` are given, and the entry to them in each
 * precision. Between auto.c, which says what is next, and the kernels of auto_kernels.cu.
 */
#ifndef GPU_CUDA_AUTO_CALL_H
#define GPU_CUDA_AUTO_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/cuda/call.h"
#include "gpu/cuda/identify.h"
#include "gpu/cuda/tri_call.h"
#include "gpu/method.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The descriptor's outputs, by their indices. */
enum cuda__auto_output {
    CUDA__AUTO_INVERSE,
    CUDA__AUTO_INFO,
    CUDA__AUTO_RCOND,
    CUDA__AUTO_ROAD
};

/* The kinds that have a road of their own. */
enum cuda__auto_kind {
    CUDA__AUTO_DIAGONAL,
    CUDA__AUTO_TRIANGULAR,
    CUDA__AUTO_TRIDIAGONAL,
    CUDA__AUTO_KINDS
};

/* How long the lists are. Counted by the device, in the notes; auto.c zeroes them. */
struct cuda__auto_counts {
    uint32_t odd, dense;
    uint32_t kinds[CUDA__AUTO_KINDS]; /* of the places */
    uint32_t doubtful;                /* inverses by lu that are to be mended */
};

/* Of a triangular matrix in its place: how it becomes an upper one that nothing overflows in. */
struct cuda__auto_plan {
    double norm, factor; /* |factor A|; a power of two */
    int32_t reversed;    /* rows and columns, which makes a lower one an upper one */
};

/* What a road has found out. */
struct cuda__auto_verdict {
    double rcond;
    int32_t info;
};

/* The workspace. Places: A, B and X are ld x ld each, a step of ld * ld apart. B and X have the
 * matrices of one kind side by side, in its list's order. */
struct cuda__auto_space {
    int64_t matrices, places; /* that there is room for */
    /* Of the chunk. */
    int32_t *odd;
    struct cuda_item *dense; /* a matrix each; above CUDA_SMALL_N_MAX */
    int32_t *dense_matrices;
    struct cuda_item *items; /* the call's; up to CUDA_SMALL_N_MAX */
    /* Of the places. */
    void *a, *b, *x;
    struct cuda_identity *identities;
    int32_t *lists[CUDA__AUTO_KINDS]; /* of places */
    struct cuda__auto_plan *plans;    /* by the list's order, as all that follows */
    struct cuda__auto_verdict *verdicts;
    double *sums;                 /* strips of a matrix's columns: the largest of each */
    void *bands;                  /* DL, D, DU, ld each */
    struct cuda_tensors *tensors; /* of `tridiagonal` */
    void *rconds;                 /* what it answers */
    int32_t *infos;
    void *scratch; /* of identify and `tridiagonal` */
    size_t scratch_bytes;
    void *shared; /* all from the places on: lu's */
    size_t shared_bytes;
};

/* A chunk of a batch: its matrices first to first + count - 1. In it, the places hold the odd ones
 * from odd_first on. */
struct cuda__auto_call {
    enum precision precision;
    int64_t n, ld; /* ld: n in whole panels of triangular.h */
    const struct cuda_tensors *tensors;
    int64_t item_count, matrices;
    int64_t first, count;
    int64_t odd_first, placed;
    struct cuda__auto_counts *counts; /* as the device sees them */
    uint32_t *asked;
    struct cuda__auto_space space;
};

/* Strips of columns that are summed up by a block. */
#define CUDA__AUTO_STRIP 32

/* The passes; `count` matrices of a kind, where they take one. */
typedef cudaError_t cuda__auto_pass(const struct cuda__auto_call *call, int64_t count,
                                    cudaStream_t stream);

struct cuda__auto_kernels {
    cuda__auto_pass *list_items;   /* the call's items, for lu */
    cuda__auto_pass *look;         /* at the chunk's matrices: odd or dense */
    cuda__auto_pass *place;        /* the placed matrices come into A */
    cuda__auto_pass *sort;         /* by their identities */
    cuda__auto_pass *diagonal;     /* verdicts, then deliveries */
    cuda__auto_pass *load;         /* triangular ones to B, X = I; plans and verdicts */
    cuda__auto_pass *unload;       /* verdicts, then deliveries of X */
    cuda__auto_pass *cut;          /* tridiagonal ones: bands and tensors */
    cuda__auto_pass *take_or_pass; /* deliveries of X; what has an INFO is passed to lu */
    cuda__auto_pass *note_dense;   /* METHOD of what lu has inverted */
};

extern const struct cuda__auto_kernels cuda__auto_kernels_f32, cuda__auto_kernels_f64;

#ifdef __cplusplus
}
#endif

#endif
