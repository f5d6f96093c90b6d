/* handlers/judge.h: what the handlers know of a job that has ended: whether it has succeeded, as a
 * direct request would, and its document. */
#ifndef HANDLERS_JUDGE_H
#define HANDLERS_JUDGE_H

#include "base/text.h"
#include "handlers/handlers.h"
#include "queue/jobs/jobs.h"

/* For jobs_config.judge; context: the handlers. NOT_INVERTIBLE, in the words of a direct request,
 * where one would be answered 422. Counts the matrices by INFO. Threads: any. Cost: the outputs
 * that have one number a matrix are read into memory of their own. */
enum error handlers_judge(void *context, const struct job *job, const struct jobs_result *result,
                          struct failure *failure);

/* The job as GET /v1/jobs/{id} answers it. Any thread. */
void handlers_job_document(const struct job *job, struct text *json);

#endif
