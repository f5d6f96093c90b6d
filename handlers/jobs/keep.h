/* handlers/jobs/keep.h: a decoded request as a job keeps it, and back.
 *
 * What is to be computed is a job_task: the queue's side. How the answer is to be written is a few
 * bytes of the handlers' own, which lie with the job (job.answer):
 *
 *      version | format | flags | rank of lead | outputs | inputs, a bit each | lead, 8 bytes each,
 *      little-endian | the outputs' indices in the order asked for
 *
 * All but lead are one byte each. Threads: pure functions of their arguments.
 */
#ifndef HANDLERS_JOBS_KEEP_H
#define HANDLERS_JOBS_KEEP_H

#include "proto/proto.h"
#include "queue/jobs/job.h"

#define KEEP_ALIGN 64 /* of tensors in bodies and results */

/* Where the wanted outputs lie in the result; body and inputs stay empty. wanted: a bit for each
 * output. TOO_LARGE when the sum overflows. */
ERROR_MUST_CHECK enum error handlers__keep_task(const struct proto_request *request,
                                                uint32_t wanted, struct job_task *task,
                                                struct failure *failure);
/* Bytes of one input of all matrices, dense; what has been decoded fits. */
int64_t handlers__keep_input_bytes(const struct job_task *task, int input);
/* -1: the output is not there. */
int64_t handlers__keep_output_bytes(const struct job_task *task, int output);
/* Takes the next place in the body for an input. false: the sum overflows. */
ERROR_MUST_CHECK bool handlers__keep_place_input(struct job_task *task, int input,
                                                 bool column_major);
/* Returns how many bytes. */
int handlers__keep_answer(const struct proto_request *request, uint8_t answer[JOB_ANSWER_MAX]);

/* The request as it was once decoded, its inputs without data but for a mark where they were.
 * INTERNAL, with words for the log, for bytes that no version of this wrote. */
ERROR_MUST_CHECK enum error handlers__keep_request(const struct job *job,
                                                   struct proto_request *request,
                                                   struct failure *failure);

#endif
