/* handlers/jobs/document.h: a job as clients see it, and the small words of /v1/jobs: times,
 * cursors.
 *
 *      {"id":..,"status":"running","method":"lu","n":3,"batch":1,"precision":"fp64",
 *       "created":"2026-01-31T12:00:00.000Z","started":..,"finished":null,"expires":..,
 *       "progress":42,"position":null,"attempt":1,"message":null,"callback":null or
 *       {"status":"waiting","attempts":1,"next":..,"problem":"the answer was 503"},
 *       "links":{"self":"/v1/jobs/ID","result":"/v1/jobs/ID/result","events":"/v1/jobs/ID/events"}}
 *
 * Threads: pure functions of their arguments.
 */
#ifndef HANDLERS_JOBS_DOCUMENT_H
#define HANDLERS_JOBS_DOCUMENT_H

#include "base/text.h"
#include "queue/jobs/job.h"

#define JOB_TIME_TEXT 32 /* bytes of a time, its NUL among them */
#define JOB_PATH_TEXT (sizeof "/v1/jobs/" + JOB_ID_TEXT)
#define JOB_CURSOR_TEXT (16 + JOB_ID_TEXT)

/* position: how many jobs are taken before it; -1: it waits for none, or that is not known. */
void handlers__job_document(const struct job *job, int64_t position, struct text *json);
void handlers__job_path(const struct job_id *id, char path[JOB_PATH_TEXT]);
int handlers__job_percent(int64_t progress);

/* RFC 3339, in UTC, with milliseconds. */
void handlers__time_write(int64_t unix_ms, char text[JOB_TIME_TEXT]);
/* Any time of RFC 3339. false: it is none. */
ERROR_MUST_CHECK bool handlers__time_read(const char *text, int64_t *unix_ms);

/* Where a page of a list ended: behind this job. */
void handlers__cursor_write(int64_t created_ms, const struct job_id *id,
                            char text[JOB_CURSOR_TEXT]);
ERROR_MUST_CHECK bool handlers__cursor_read(const char *text, int64_t *created_ms,
                                            struct job_id *id);

#endif
