/* gpu/host/base/progress.h: how a method says how far it is with one matrix.
 *
 * A method whose work is known beforehand, or foreseen, calls host_progress_report with
 * `host_matrix.progress` as it goes on. What it has reported is added to its batch's figure
 * (engine_batch.progress); what it has not reported of a matrix comes when the matrix is done. So
 * methods that say nothing are counted by matrices.
 *
 * Threads: the one that runs the matrix. Cost: a comparison, and an atomic addition where the share
 * has grown: at most METHOD_PROGRESS_WHOLE of them a matrix. Matrices that are done soon have no
 * `progress`.
 */
#ifndef GPU_HOST_BASE_PROGRESS_H
#define GPU_HOST_BASE_PROGRESS_H

#include <stdint.h>

#include "gpu/engine.h"

/* Of one matrix, or of several that report together. */
struct host_progress {
    struct engine_batch *batch;
    uint64_t reported; /* parts; a matrix has METHOD_PROGRESS_WHOLE */
};

/* `done` of `whole` is done, whatever it is that is counted; whole 0: nothing is known. Less than
 * was reported before changes nothing; the whole is reported by host__progress_end alone. progress
 * NULL: nothing is reported. */
void host_progress_report(struct host_progress *progress, int64_t done, int64_t whole);

/* So many matrices are done. */
void host__progress_end(struct host_progress *progress, int64_t matrices);

#endif
