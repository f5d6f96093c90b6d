/* gpu/cuda/auto/call.h: what the passes of `auto` are given, and the entry to them in each
 * precision. Between auto.c, which says what is next, and the kernels of kernels.cu.
 */
#ifndef GPU_CUDA_AUTO_CALL_H
#define GPU_CUDA_AUTO_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/cuda/base/method.h"
#include "gpu/cuda/structured/identify.h"
#include "gpu/cuda/tridiagonal/call.h"
#include "gpu/method.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds that have an algorithm of their own. */
enum cuda__auto_kind {
    CUDA__AUTO_DIAGONAL,
    CUDA__AUTO_TRIANGULAR,
    CUDA__AUTO_TRIDIAGONAL,
    CUDA__AUTO_KINDS
};

/* What is counted: how long the lists are, how many of lu's inverses are to be recovered, and of
 * how many the matrix looks symmetric. */
enum cuda__auto_count {
    CUDA__AUTO_ODD,
    CUDA__AUTO_LIKELY,
    CUDA__AUTO_DEFINITE, /* of those that are held: Cholesky's to invert */
    CUDA__AUTO_DENSE,
    CUDA__AUTO_UNVERIFIED,
    CUDA__AUTO_SYMMETRIC,
    CUDA__AUTO_SPOILT,  /* of these: how many to be recovered as one side of X spoilt the mean */
    CUDA__AUTO_OF_KIND, /* of the places; CUDA__AUTO_OF_KIND + kind */
    CUDA__AUTO_COUNTS = CUDA__AUTO_OF_KIND + CUDA__AUTO_KINDS
};

/* In the workspace, where counting is fast. The last block of a pass that counts puts all of it
 * into the notes. */
struct cuda__auto_counts {
    uint32_t of[CUDA__AUTO_COUNTS];
    uint32_t blocks; /* that have come to the end of the pass */
};

/* Of a triangular matrix in its place: how it becomes an upper one that nothing overflows in. */
struct cuda__auto_plan {
    double norm, factor; /* |factor A|; a power of two */
    int32_t reversed;    /* rows and columns, which makes a lower one an upper one */
};

/* Of a matrix that may be definite. */
struct cuda__auto_claim {
    double norm, factor;      /* |factor A|; a power of two */
    int32_t refuted, differs; /* from its transpose */
};

/* Of a matrix that lu inverts, where it is symmetric: of A, of the mean of X and X^T, and of the
 * check. Doubles that are not negative, as the integers that they are ordered as. */
struct cuda__auto_image {
    unsigned long long norm, size, error;
    int32_t differs; /* from its transpose */
};

/* What an algorithm has found out. */
struct cuda__auto_verdict {
    double rcond;
    int32_t info;
};

/* The workspace. Places: A, B and X are ld x ld each, a step of ld * ld apart. B and X have the
 * matrices of one kind side by side, in its list's order. */
struct cuda__auto_space {
    int64_t matrices, places; /* that there is room for */
    /* Of the chunk. */
    struct cuda__auto_counts *counts;
    int32_t *odd, *likely;
    struct cuda_item *dense; /* a matrix each */
    int32_t *dense_matrices;
    struct cuda_item *items;         /* the call's, where there are no lists */
    struct cuda__auto_image *images; /* of each matrix that lu inverts */
    double *products;                /* and n numbers: A times the probe vector */
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
    void *shared; /* all from the places on: lu's; or that of the held matrices, which are worked on
                   * when the places are free */
    size_t shared_bytes;
    /* Of the held matrices: their W (kernels.cu), ld x ld each; lines of ld each; of each
     * strip of columns two numbers; Cholesky's scratch. */
    int64_t holds; /* that there is room for */
    void *w, *product, *own, *peaks;
    struct cuda__auto_claim *claims;
    int32_t *failed;
    void *cholesky;
};

/* A chunk of a batch: its matrices first to first + count - 1. In it, the places hold the odd ones
 * from odd_first on, and those that may be definite are held from likely_first on. */
struct cuda__auto_call {
    enum precision precision;
    int64_t n, ld; /* ld: n in whole panels of triangular.h */
    bool sorts;    /* matrices with zeros are recognised */
    bool definite; /* symmetric ones too */
    bool averages; /* those that differ from their transposes by rounding are Cholesky's too */
    bool lists;    /* false: every matrix is lu's */
    const struct cuda_tensors *tensors;
    int64_t item_count, matrices;
    int64_t first, count;
    int64_t odd_first, placed;
    int64_t likely_first, held;
    bool last;          /* what is mirrored has been recovered: it is not checked again */
    uint32_t *reported; /* CUDA__AUTO_COUNTS of them, in the notes, as the device sees them */
    uint32_t *asked;    /* likewise */
    struct cuda__auto_space space;
};

/* Strips of columns that are summed up by a block. */
#define CUDA__AUTO_STRIP 32

/* The passes; `count` matrices of a kind, where they take one. */
typedef cudaError_t cuda__auto_pass(const struct cuda__auto_call *call, int64_t count,
                                    cudaStream_t stream);

struct cuda__auto_kernels {
    cuda__auto_pass *begin;        /* nothing is counted; so many items, for lu */
    cuda__auto_pass *look;         /* at the chunk's matrices: odd or dense */
    cuda__auto_pass *place;        /* the placed matrices come into A */
    cuda__auto_pass *sort;         /* by their identities */
    cuda__auto_pass *diagonal;     /* verdicts, then deliveries */
    cuda__auto_pass *load;         /* triangular ones to B, X = I; plans and verdicts */
    cuda__auto_pass *unload;       /* verdicts, then deliveries of X */
    cuda__auto_pass *cut;          /* tridiagonal ones: bands and tensors */
    cuda__auto_pass *take_or_pass; /* deliveries of X; what has an INFO is passed to lu */
    cuda__auto_pass *note;         /* METHOD of what lu has inverted; is it symmetric? */
    cuda__auto_pass *mirror;       /* then its inverse becomes so, and is judged */
    cuda__auto_pass *hold;         /* what may be definite comes to W, and is judged */
    cuda__auto_pass *conclude;     /* deliveries of X; what has failed is passed to lu */
};

/* What the call is, without its workspace. */
struct cuda__auto_call cuda__auto_read(const struct cuda_call *call, bool sorts);
/* Lays out as many matrices and places as the call's workspace holds; false: not even one.
 * space.c. */
bool cuda__auto_settle(struct cuda__auto_call *of, const struct cuda_call *call);
/* `tridiagonal` of the places' bands. */
struct cuda_call cuda__auto_bands_call(const struct cuda__auto_call *of, int64_t count);

/* cuda_auto and its workspace, for any order with or without sorting: for tests and benches. What
 * follows is cuda_auto_again. */
cudaError_t cuda__auto_begin(const struct cuda_call *call, bool sorts, cudaStream_t stream);
size_t cuda__auto_bytes(const struct cuda_call *call, bool sorts, int64_t matrices);

extern const struct cuda__auto_kernels cuda__auto_kernels_f32, cuda__auto_kernels_f64;

cuda_self_tester cuda__try_auto; /* self_test.c */

#ifdef __cplusplus
}
#endif

#endif
