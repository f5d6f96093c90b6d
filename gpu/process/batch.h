/* gpu/process/batch.h: whether an engine can run a batch at all, whether it need go on with it, and
 * how it says how far it is. Threads: any. */
#ifndef GPU_PROCESS_BATCH_H
#define GPU_PROCESS_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/engine.h"
#include "gpu/process/fault.h"

/* ENGINE_OK; UNSUPPORTED for an order, precision or count that the engine does not take, or for an
 * output without those that it is made of; in test builds OUT_OF_MEMORY where faults say so. n_max:
 * the largest order of the batch's method, 0 when the engine has no such method. faults may be
 * NULL. */
enum engine_status process_batch_check(const struct engine_batch *batch, int64_t n_max,
                                       const struct process_faults *faults);

/* Does no client wait for it any more? Once true, it stays so until the batch is DONE. */
bool process_batch_unwanted(const struct engine_batch *batch);

/* So many parts more are done of a RUNNING batch; a matrix has METHOD_PROGRESS_WHOLE. Cost: an
 * atomic addition to a word that the batch's threads share. */
void process_batch_advance(struct engine_batch *batch, uint64_t parts);

#endif
