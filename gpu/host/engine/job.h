/* gpu/host/engine/job.h: one batch under way: how it is cut into chunks, and how a chunk is run.
 *
 * A chunk is as many matrices as are predicted to take HOST_CHUNK_NS, at least one group: so a
 * small batch is one chunk and stays on one worker, and taking a chunk costs nothing next to
 * running it. A method that takes several matrices at once gets full groups of them, from as many
 * items as it takes; only a chunk's last group may be smaller. A batch of fewer chunks than the
 * team has threads is helped by it. Of an unwanted batch no chunk is begun, and those that have
 * begun are left (stop.h). A batch that takes long reports each chunk that is done; one that is a
 * single matrix reports what its method says (progress.h).
 *
 * Life: host__job_open by one worker; host__job_take and host__job_run by any, until the run of the
 * last chunk reports the batch done. A job is a slot of a ring and is opened again after that, so
 * `left` holds the number of the batch it counts for: a late worker cannot take a chunk of the
 * next one. Everything else in a job is read only by the holders of its chunks.
 */
#ifndef GPU_HOST_ENGINE_JOB_H
#define GPU_HOST_ENGINE_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"
#include "gpu/engine.h"
#include "gpu/host/base/host.h"
#include "gpu/host/base/scratch.h"
#include "gpu/host/base/team.h"
#include "gpu/process/fault.h"

#define HOST_CHUNK_NS 20000.0
/* What is predicted to take less on one core, batch or matrix, reports no progress:
 * no client could read it, and words that many threads write cost time. */
#define HOST_REPORT_NS 10e6

struct host_job {
    _Alignas(64) _Atomic uint64_t left; /* number << 32 | chunks left to take */
    _Alignas(64) _Atomic uint32_t unfinished;
    _Atomic uint32_t status; /* enum engine_status */
    /* constant while chunks are unfinished */
    _Alignas(64) struct engine_batch *batch;
    const struct host_method *method;
    struct region_map arena;
    struct host_budget *budget;
    struct host_team *team; /* may be NULL */
    const struct process_faults *faults;
    uint32_t chunks;
    int64_t chunk_matrices;
    double chunk_ns;  /* predicted */
    int64_t matrices; /* of the batch */
    bool reports;     /* it takes so long that its progress is reported */
    int group;        /* matrices run together */
    int64_t scratch_bytes;
    int input_count, output_count;
    int residuals[2]; /* places of RESIDUAL_LEFT and _RIGHT; -1: the method has none */
    int64_t tensor_bytes[ENGINE_TENSORS_MAX]; /* of one matrix: inputs, then outputs */
    bool single;                              /* every item is one matrix */
    int64_t first[ENGINE_BATCH_ITEMS];        /* not single: an item's first matrix */
};

/* SUBMITTED -> RUNNING. job->arena, job->budget and job->faults are set. A batch that cannot run at
 * all has one chunk, which only reports it. */
void host__job_open(struct host_job *job, struct engine_batch *batch, uint32_t number);
/* Takes the next chunk of batch `number`; false when there is none left. */
bool host__job_take(struct host_job *job, uint32_t number, uint32_t *chunk);
/* Is there a chunk of batch `number` to take? */
bool host__job_has(struct host_job *job, uint32_t number);
/* Runs a taken chunk; may wait for scratch. True when it was the batch's last: state, times and
 * status are stored, and the front is to be woken. */
bool host__job_run(struct host_job *job, uint32_t chunk, struct host_scratch *scratch);

#endif
