/* queue/jobs/transfer.h: matrices on their way from a job's body into memory, and from memory into
 * its result.
 *
 * Threads: any that may block. Cost: one copy; a column-major input is transposed on the way, a
 * panel of columns at a time.
 */
#ifndef QUEUE_JOBS_TRANSFER_H
#define QUEUE_JOBS_TRANSFER_H

#include "queue/jobs/job.h"
#include "queue/jobs/spool.h"

/* Where the tensors of so many matrices lie in one run of memory; -1: not there. */
struct transfer_layout {
    int64_t matrices, bytes;
    int64_t inputs[METHOD_INPUTS_MAX], outputs[METHOD_OUTPUTS_MAX];
};

/* Also for outputs that the task does not want and an engine writes all the same. false: the sizes
 * overflow. */
ERROR_MUST_CHECK bool transfer_lay_out(const struct job_task *task, int64_t matrices,
                                       struct transfer_layout *layout);

/* A body or a result: a file, or memory where file is NULL. */
struct transfer_end {
    struct spool_file *file;
    uint8_t *bytes;
};

/* From matrix `first` of the task on, as many as the layout has. */
ERROR_MUST_CHECK enum error transfer_read(const struct job_task *task,
                                          const struct transfer_layout *layout, int64_t first,
                                          const struct transfer_end *body, unsigned char *memory,
                                          struct failure *failure);
ERROR_MUST_CHECK enum error transfer_write(const struct job_task *task,
                                           const struct transfer_layout *layout, int64_t first,
                                           const struct transfer_end *result,
                                           const unsigned char *memory, struct failure *failure);
/* Bytes of either. */
ERROR_MUST_CHECK enum error transfer_get(const struct transfer_end *from, int64_t offset_bytes,
                                         void *data, int64_t bytes, struct failure *failure);

#endif
