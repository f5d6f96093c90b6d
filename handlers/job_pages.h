/* handlers/job_pages.h: the documents of /v1/jobs, and the ends of visits.
 *
 * Threads: the exchange's loop.
 */
#ifndef HANDLERS_JOB_PAGES_H
#define HANDLERS_JOB_PAGES_H

#include "handlers/visit.h"

/* Routes. */
void handlers__jobs_list(struct exchange *x);
void handlers__job_page(struct exchange *x);   /* GET, HEAD, DELETE */
void handlers__job_result(struct exchange *x); /* fetch.c */
void handlers__job_events(struct exchange *x); /* job_events.c */

/* 200 with visit->job, whose place among those that wait is asked for first. */
void handlers__job_answer(struct visit *visit);
/* To a POST that was answered with a job: 202, or 200 where it was known. */
void handlers__job_answer_accepted(struct visit *visit);
/* The same without a visit. */
void handlers__job_reply_accepted(struct exchange *x, const struct job *job, bool was_known);

#endif
