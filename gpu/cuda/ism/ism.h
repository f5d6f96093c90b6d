/* gpu/cuda/ism/ism.h: the launchers of `ism` (gpu/methods/ism.h). See call.h for what every
 * launcher keeps to. The formulas and names are those of gpu/host/ism/ism.h. The algorithms are
 * those of X. He, M. Holm and M. Neytcheva, "Efficiently parallel implementation of the inverse
 * Sherman-Morrison algorithm", PARA 2012: `single` is Algorithm 1 (SISM), `block` Algorithm 2
 * (BISM), `reduced_memory` Algorithm 3 (RMBISM).
 *
 * Three algorithms. The fused one, where `auto` is free to choose and n <= CUDA_ISM_FUSED_N_MAX and
 * m <= CUDA_ISM_FUSED_M_MAX: a team of threads holds a matrix in shared memory or registers, so
 * that A0^-1 is read once (twice where the check wants it whole) and the inverse written once,
 * takes the columns of X and Y four at a time (fused.cuh), or, of an update with few of them,
 * all at once (few.cuh, tile.cuh, and beyond these orders middle.cuh), and checks the
 * answer before it writes it. Updates that no block of threads can hold are streamed, to n =
 * CUDA__ISM_STREAM_ORDER: A0^-1 is read twice or thrice (stream.cuh). The last algorithm, for all
 * that is left: X, Y and what is known of A0 are brought to the workspace, and the variants are
 * sequences of products (gemm/gemm.h) with the inverses of small blocks between them. Of up to 64
 * columns the last product writes the answer and checks it on the way (last.cuh; in FP32
 * last_narrow.cuh). |A| of large orders is found out in another stream meanwhile
 * (norm.cuh).
 *
 * Blocks have CUDA_ISM_BLOCK_MAX columns at most and are inverted in place (turn.cuh). Smaller
 * ones form groups, which meet all earlier groups together, in products of some hundred columns. A
 * design that was not taken has lu's kernels invert the blocks: as many operations, but these
 * kernels take longer for one block of 512 columns than all the rest, and give no determinant.
 *
 * Every answer is checked, as on the host but in double-double where it goes by products. One
 * that fails is unverified, and cuda_ism_recover takes the last of the host's algorithms: one block
 * in double-double (woodbury.cuh), A formed and inverted by lu, or Z M = A0^-1 solved. (The host
 * tries one block of all columns in one precision before that, which is no faster here.) RESIDUAL
 * and RCOND_CAPACITANCE, on request, are measured when the inverses are out (measure.cuh).
 *
 * Cost: an update of a known inverse reads and writes n^2 numbers on the fused algorithm. Elsewhere
 * 2 n^2 m + 4 n m^2 operations, with A0_INVERSE 4 n^2 m more; `reduced_memory` 6 n^2 m. Nothing but
 * the inputs and the answer crosses the bus, and on the last algorithm again. Where
 * `reduced_memory` was asked for and A0 is not given, the check reads A0^-1 across the bus too,
 * once for four probe vectors.
 */
#ifndef GPU_CUDA_ISM_ISM_H
#define GPU_CUDA_ISM_ISM_H

#include "gpu/cuda/base/call.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Two of its matrices and lu's workspace fit the memory of a large GPU. */
#define CUDA_ISM_N_MAX 16384
#define CUDA_ISM_FUSED_N_MAX 64
#define CUDA_ISM_FUSED_M_MAX 32
#define CUDA_ISM_BLOCK_MAX 512

cudaError_t cuda_ism(const struct cuda_call *call, cudaStream_t stream);

/* Steps of the algorithm by blocks, which come in this order for each block of columns, but for the
 * first one and the last two. */
enum cuda_ism_step {
    CUDA_ISM_BRING,    /* the inputs to the workspace */
    CUDA_ISM_BEGIN,    /* X^T A0^-T and Y^T A0^-1 of a group or block */
    CUDA_ISM_MEET,     /* what earlier columns change in them: the paper's U and V */
    CUDA_ISM_INVERT,   /* R */
    CUDA_ISM_APPLY_R,  /* R times the columns, and the factors that are wanted */
    CUDA_ISM_ASSEMBLE, /* A0^-1 less the product */
    CUDA_ISM_CHECK,    /* the check, and the answer is written */
    CUDA_ISM_STEPS
};

/* The same, and on_step(watcher, step) before what belongs to a step is put into the stream; for
 * benches. In the caller's thread. */
struct cuda_ism_watch {
    void (*on_step)(void *watcher, enum cuda_ism_step step);
    void *watcher;
};
cudaError_t cuda_ism_watched(const struct cuda_call *call, cudaStream_t stream,
                             const struct cuda_ism_watch *watch);
size_t cuda_ism_workspace(const struct cuda_call *call, int64_t matrices);
/* For a batch that cuda_ism has left call->to_recover unverified matrices of. Its workspace may be
 * another one: many batches need none before. */
cudaError_t cuda_ism_recover(const struct cuda_call *call, cudaStream_t stream);
size_t cuda_ism_recover_workspace(const struct cuda_call *call, int64_t matrices);

#ifdef __cplusplus
}
#endif

#endif
