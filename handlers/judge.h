/* handlers/judge.h: whether a job that was computed has succeeded: as a direct request would. */
#ifndef HANDLERS_JUDGE_H
#define HANDLERS_JUDGE_H

#include "handlers/handlers.h"
#include "queue/jobs/jobs.h"

/* For jobs_config.judge; context: the handlers. NOT_INVERTIBLE, in the words of a direct request,
 * where one would be answered 422. Counts the matrices by INFO. Threads: any. Cost: the outputs
 * that have one number a matrix are read into memory of their own. */
enum error handlers_judge(void *context, const struct job *job, const struct jobs_result *result,
                          struct failure *failure);

#endif
