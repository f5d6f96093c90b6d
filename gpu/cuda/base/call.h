/* gpu/cuda/base/call.h: what a launcher is given: one batch, whatever the method.
 *
 * A launcher puts kernels into the caller's stream and returns. It allocates nothing and waits for
 * nothing: the workspace is the batch's from the launch until the batch is DONE. Its size may be
 * anything from what one matrix needs upwards; a launcher that could use more goes over the batch
 * in parts, one after the other. The bits of a result never depend on it.
 *
 * Threads: any, each with its own stream.
 */
#ifndef GPU_CUDA_BASE_CALL_H
#define GPU_CUDA_BASE_CALL_H

#include <stddef.h>

#include "gpu/cuda/base/batch.h"
#include "gpu/method.h"

#define CUDA_WORKSPACE_ALIGN 256 /* bytes */

/* Where an item's tensors start, as the device sees them: dense, row-major, matrix after matrix,
 * aligned to their elements at least. NULL: an absent input, or an output that is not wanted. */
struct cuda_tensors {
    const void *inputs[METHOD_INPUTS_MAX];
    void *outputs[METHOD_OUTPUTS_MAX];
    int64_t first; /* matrices of all items before this one */
};

/* What a launcher that is called again keeps, and what the device reports, from one call to the
 * next: pinned. The launcher and the device alone say what `done` and `next` mean. */
#define CUDA_NOTES_MAX 4096
struct cuda_notes {
    uint32_t asked; /* not 0: the launcher is called again. 0 before each call; the device sets it,
                     * or the launcher itself */
    int64_t done;
    uint8_t next[CUDA_NOTES_MAX];
    /* How far it is. shares: of matrices in parts, of which one has METHOD_PROGRESS_WHOLE; written
     * by the device. progress: of the whole batch, as in engine_batch; set to 0 before the first
     * call, and by the launcher in a later one, where it knows. */
    uint16_t shares[CUDA_NOTES_MAX];
    uint64_t progress;
};

struct cuda_products;
struct cuda_residual_item;

struct cuda_call {
    enum precision precision;
    int64_t n, m;
    const int64_t
        *options; /* METHOD_OPTIONS_MAX of them, as they travel; for the launcher's eyes */
    int64_t item_count, matrices;
    uint32_t inputs;                    /* that all items have: 1 << index; of `tensors` */
    uint32_t wanted;                    /* outputs that some item wants: 1 << index; of `tensors` */
    struct cuda_batch batch;            /* of methods that take one matrix */
    const struct cuda_tensors *tensors; /* of the others, read by the device; item_count of them */
    void *workspace; /* of the device, contents undefined; NULL: none is needed */
    size_t workspace_bytes;
    struct cuda_products *products;             /* of the stream; see gemm/gemm.h */
    struct cuda_notes *notes, *d_notes;         /* d_notes: as the device sees them */
    int64_t to_recover;                         /* unverified matrices, for the recovery */
    const struct cuda_residual_item *residuals; /* for the engine's measure; item_count of them */
};

#endif
