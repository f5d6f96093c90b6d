/* gpu/cuda/iterative/call.h: what the parts of `iterative` share: the workspace of a chunk of the
 * batch, what is known of each matrix, and the kernels' entries in each precision.
 *
 * iterative.c goes from visit to visit, step.c makes a step of products, measure.cuh
 * measures what came of it, decide.cuh says on the device what each matrix needs next,
 * kernels.cu has the other passes.
 *
 * A is the matrix that is worked on: what was sent, or that equilibrated. V is its approximate
 * inverse, R = I - V A its residual (as gpu/host/iterative/shared.h has it). All matrices of a
 * chunk are n x n in rows of `ld` numbers, and one kind of them lies behind another: all A, all V,
 * all R, ...
 */
#ifndef GPU_CUDA_ITERATIVE_CALL_H
#define GPU_CUDA_ITERATIVE_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/cuda/base/method.h"
#include "gpu/cuda/structured/equilibrate.h"
#include "gpu/cuda/structured/identify.h"
#include "gpu/cuda/gemm/gemm.h"
#include "gpu/cuda/tuning/h200/iterative.h"
#include "gpu/methods/iterative.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a matrix needs next. A start and a step are each followed by a measurement, but for a last
 * step where the client does not want the residual; to be judged is a visit of its own. */
enum cuda__iter_action {
    CUDA__ITER_REST, /* nothing: it is answered */
    CUDA__ITER_STORE,
    CUDA__ITER_JUDGE,       /* the rounding of R may hide on which side of the tolerance it is */
    CUDA__ITER_JUDGE_WHOLE, /* and all of R is wanted in double-double for that */
    CUDA__ITER_IDENTIFY,    /* again, scaled down, as sums were beyond range */
    CUDA__ITER_EQUILIBRATE, /* and identified again */
    CUDA__ITER_START_WARM,
    CUDA__ITER_START_LOW,
    CUDA__ITER_START_DIAGONAL,
    CUDA__ITER_START_TRANSPOSE,
    CUDA__ITER_START_IDENTITY,
    CUDA__ITER_STEP, /* CUDA__ITER_STEP + scheme */
    CUDA__ITER_LAST =
        CUDA__ITER_STEP + METHOD_ITERATIVE_SCHEMES, /* likewise; none comes behind it */
    CUDA__ITER_ACTIONS = CUDA__ITER_LAST + METHOD_ITERATIVE_SCHEMES
};

/* A note of a matrix to the CPU: its action; and, of a step that is not the last one, how many more
 * of its kind are sure to follow, so that a visit may launch them at once. Where they turn out not
 * to follow they change nothing: a step is taken by those alone whose action it is then. */
#define CUDA__ITER_NOTE_BITS 5 /* of the action */
#define CUDA__ITER_MORE_MAX 3  /* steps */

static inline int cuda__iter_action_of(uint8_t note)
{
    return note & ((1 << CUDA__ITER_NOTE_BITS) - 1);
}

static inline int cuda__iter_more_of(uint8_t note)
{
    return note >> CUDA__ITER_NOTE_BITS;
}

#define CUDA__ITER_SPARE 5 /* matrices that a scheme works in */

/* The kinds of matrices in the workspace. A and V are next to each other, as V0 is identified
 * together with A; and so are V and R, which are measured together. */
enum cuda__iter_matrix {
    CUDA__ITER_MATRIX_A,
    CUDA__ITER_MATRIX_V,
    CUDA__ITER_MATRIX_R,
    CUDA__ITER_MATRIX_BEST, /* the best V so far, once another one has come */
    CUDA__ITER_MATRIX_SPARE,
    CUDA__ITER_MATRICES = CUDA__ITER_MATRIX_SPARE + CUDA__ITER_SPARE
};

/* What the client asked for. */
struct cuda__iter_wishes {
    double tolerance;
    int64_t max_iterations;
    int32_t scheme, initial;
    bool warm;     /* there is a V0 */
    bool measures; /* some item wants RESIDUAL or its history */
};

struct cuda__iter_state; /* of one matrix: decide.cuh */

/* The workspace of a chunk: `count` of everything. */
struct cuda__iter_space {
    int64_t count;
    void *matrices; /* CUDA__ITER_MATRICES times count */
    struct cuda__iter_state *states;
    struct cuda_identity *identities; /* of A; and of V0, or later of A times the first factor */
    double *factors;                  /* two each: of a transpose, an FP32 copy, an identity; what
                                       * rounding hides of a residual that is judged */
    void *history;                    /* two times max_iterations numbers each */
    struct cuda_item *items;          /* of lu in FP32 */
    int32_t *infos;
    struct cuda_equilibrium *equilibria;
    int32_t *exponents; /* of rows and columns, 2 n each; and scratch, as many */
    void *scratch;      /* of cuda_identify, for A and V0, or of a measurement */
    void *products;     /* scratch of cuda_product; NULL: none is needed */
};

/* For the kernels, by value. */
struct cuda__iter_call {
    enum precision precision;
    int64_t n, ld;
    struct cuda__iter_wishes wishes;
    struct cuda__iter_space space;
    const struct cuda_tensors *tensors; /* of the batch */
    int64_t item_count, matrices;
    int64_t first;            /* the chunk's first matrix in the batch */
    int64_t count;            /* its matrices: no more than space.count */
    struct cuda_notes *notes; /* as the device sees them */
};

/* Matrices first to first + count - 1 of the chunk. again: what a second beginning follows,
 * CUDA__ITER_IDENTIFY or CUDA__ITER_EQUILIBRATE. */
struct cuda__iter_run {
    int64_t first, count;
    int again;
};

/* How many matrices that rest are computed with in a run, rather than launching twice. */
static inline int64_t cuda__iter_gap(int64_t n)
{
    return CUDA__ITER_GAP_MAX / (n * n * n);
}

/* to = identity I + the sum of factor * matrix. A matrix may be `to`; -1: none. */
struct cuda__iter_sum {
    int to;
    double identity;
    struct {
        double factor;
        int matrix;
    } terms[3];
};

/* Sums made one after the other, number by number. */
#define CUDA__ITER_SUMS_MAX 3
struct cuda__iter_sums {
    int count;
    struct cuda__iter_sum sums[CUDA__ITER_SUMS_MAX];
};

/* The kernels of a precision; each takes the matrices of a run, and but for sums and diagonals only
 * those of them whose turn it is. */
struct cuda__iter_kernels {
    size_t state_bytes;
    /* A comes in, and V0. */
    cudaError_t (*load)(const struct cuda__iter_call *, struct cuda__iter_run, cudaStream_t);
    /* After A is identified: says what is next. */
    cudaError_t (*begin)(const struct cuda__iter_call *, struct cuda__iter_run, cudaStream_t);
    /* A is equilibrated, by its exponents. */
    cudaError_t (*scale)(const struct cuda__iter_call *, struct cuda__iter_run, cudaStream_t);
    /* The best V goes where it is kept, before a start. */
    cudaError_t (*prepare)(const struct cuda__iter_call *, struct cuda__iter_run, cudaStream_t);
    /* V = V0, scaled as A's inverse is. */
    cudaError_t (*warm)(const struct cuda__iter_call *, struct cuda__iter_run, cudaStream_t);
    /* The multiple of I that is nearest, after A scaled is identified. */
    cudaError_t (*alpha)(const struct cuda__iter_call *, struct cuda__iter_run, cudaStream_t);
    /* V = 1 / a_ii, or that multiple of I: by the action. */
    cudaError_t (*diagonal)(const struct cuda__iter_call *, struct cuda__iter_run, cudaStream_t);
    /* A in FP32 to the first spare, the items of its inverse, which goes to the second; and back
     * to V. */
    cudaError_t (*narrow)(const struct cuda__iter_call *, struct cuda__iter_run, cudaStream_t);
    cudaError_t (*widen)(const struct cuda__iter_call *, struct cuda__iter_run, cudaStream_t);
    cudaError_t (*sum)(const struct cuda__iter_call *, struct cuda__iter_run,
                       const struct cuda__iter_sums *, cudaStream_t);
    /* R = I - V A in double-double, rounded once; judges: of those that are judged alone. */
    cudaError_t (*residual)(const struct cuda__iter_call *, struct cuda__iter_run, bool judges,
                            cudaStream_t);
    /* What rounding has done to the R of those that are judged, to their factors; beyond
     * ITERATION_WHOLE_FIRST. */
    cudaError_t (*rounding)(const struct cuda__iter_call *, struct cuda__iter_run, cudaStream_t);
    /* The 1-norms of |V| |A|, or of what counts of it, of those with that action, to their states.
     */
    cudaError_t (*terms)(const struct cuda__iter_call *, struct cuda__iter_run, int action,
                         cudaStream_t);
    /* matrix += value I */
    cudaError_t (*shift)(const struct cuda__iter_call *, struct cuda__iter_run, int matrix,
                         double value, cudaStream_t);
    /* V = V + matrix, or matrix alone, where `action` is what was done, or the last step of the
     * same scheme; V is kept if it is the best so far. */
    cudaError_t (*commit)(const struct cuda__iter_call *, struct cuda__iter_run, int action,
                          int matrix, bool adds, cudaStream_t);
    /* Scratch of a measurement, bytes for each matrix. */
    size_t (*measure_bytes)(int64_t n);
    /* Measures, and says what is next. action: START_WARM, V and R, of those whose start or step is
     * made; LAST, V alone, of those whose last step is made; JUDGE or JUDGE_WHOLE, R alone, of
     * those whose action that is. START_WARM makes R of R - I too, for all, where R comes from a
     * product. */
    cudaError_t (*measure)(const struct cuda__iter_call *, struct cuda__iter_run, int action,
                           cudaStream_t);
    cudaError_t (*store)(const struct cuda__iter_call *, struct cuda__iter_run, cudaStream_t);
};

extern const struct cuda__iter_kernels cuda__iter_f32, cuda__iter_f64;

static inline const struct cuda__iter_kernels *cuda__iter_kernels_of(enum precision precision)
{
    return precision == PRECISION_FP32 ? &cuda__iter_f32 : &cuda__iter_f64;
}

/* Matrix `kind` of the run's first. */
static inline struct cuda_matrices cuda__iter_at(const struct cuda__iter_call *call, int kind,
                                                 struct cuda__iter_run run)
{
    int64_t step = call->n * call->ld;
    int64_t index = kind * call->space.count + run.first;
    unsigned char *start = (unsigned char *)call->space.matrices;
    struct cuda_matrices matrices = {start + index * step * precision_bytes(call->precision),
                                     call->ld, step};
    return matrices;
}

/* What the launches of a step have in common. status: the first that is not cudaSuccess; nothing
 * is launched after it. */
struct cuda__iter_step {
    const struct cuda__iter_call *call;
    const struct cuda__iter_kernels *kernels;
    struct cuda_products *products;
    struct cuda__iter_run run;
    cudaStream_t stream;
    cudaError_t status;
};

/* R = I - V A up to ITERATION_DD_ORDER_MAX; beyond, R - I, to which the measurement adds I. */
void cuda__iter_residual(struct cuda__iter_step *step);
/* V improved by a scheme other than auto, where that is what a matrix's turn is. */
void cuda__iter_improve(struct cuda__iter_step *step, enum method_iterative_scheme scheme);

cuda_self_tester cuda__try_iterative; /* self_test.c */

#ifdef __cplusplus
}
#endif

#endif
