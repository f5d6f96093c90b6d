/* queue/jobs/jobs_calls.c: what the handlers ask of jobs. See jobs.h. Threads: any. */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "queue/jobs/jobs_private.h"

#define OWNER_SHARE 4 /* of the room that there is: a client may have one part in so many */

struct desk *jobs_desk(struct jobs *jobs)
{
    return jobs->desk;
}

struct spool *jobs_spool(struct jobs *jobs)
{
    return jobs->spool;
}

int64_t jobs_now_ms(const struct jobs *jobs)
{
    (void)jobs;
    return (int64_t)clock_wall_ms();
}

enum error jobs_open_for(const struct jobs *jobs, int64_t spool_bytes, struct failure *failure)
{
    if (jobs->stops)
        return failure_set(failure, ERROR_DRAINING,
                           "The service is shutting down; send the request to another instance.");
    if (!desk_works(jobs->desk))
        return failure_set(failure, ERROR_STORE_FAILED,
                           "The disk that jobs are kept on fails; no jobs are taken until it works "
                           "again. Send the request without Prefer: respond-async.");
    int64_t max = jobs->config.spool_bytes_max, used = jobs->used_bytes;
    if (max > 0 && spool_bytes > max - used)
        return failure_set(failure, ERROR_NO_ROOM,
                           "The job and its result take %lld bytes of disk, and %lld are left of "
                           "what all jobs may have (--spool-max); try again later, or send a "
                           "smaller one.",
                           (long long)spool_bytes, (long long)(used < max ? max - used : 0));
    if (spool_bytes <= jobs->free_bytes)
        return ERROR_NONE;
    return failure_set(failure, ERROR_NO_ROOM,
                       "The job and its result take %lld bytes of disk, %lld are free; try again "
                       "later, or send a smaller one.",
                       (long long)spool_bytes, (long long)jobs->free_bytes);
}

enum error jobs_check(const struct jobs *jobs, const struct job_task *task, struct failure *failure)
{
    return runner_check(runner_config(jobs->runner), task, failure);
}

/* On the desk's thread. */
static void on_put(void *context, const struct desk_call *call)
{
    if (call->failure.code == ERROR_NONE)
        queue__jobs_wake_to_claim(context);
}

static int64_t file_bytes(int64_t bytes)
{
    return bytes > JOB_INLINE_MAX ? bytes : 0;
}

/* Times, and the limits that its client's own do not set. */
static void fill_new(const struct jobs *jobs, struct store_new *fresh)
{
    struct job *job = &fresh->job;
    int64_t room_bytes = jobs->free_bytes + jobs->used_bytes;
    job->state = JOB_ACCEPTED;
    job->attempt = 0;
    job->created_ms = jobs_now_ms(jobs);
    job->expires_ms = job->created_ms + jobs->config.result_ttl_ms;
    job->spool_bytes = file_bytes(job->task.body_bytes) + file_bytes(job->task.result_bytes);
    if (fresh->owner_jobs_max == 0)
        fresh->owner_jobs_max = jobs->config.owner_jobs_max;
    if (fresh->owner_bytes_max == 0)
        fresh->owner_bytes_max = room_bytes / OWNER_SHARE;
    int64_t max = jobs->config.spool_bytes_max;
    fresh->bytes_max = max > 0 && max < room_bytes ? max : room_bytes;
}

void jobs_accept(struct jobs *jobs, struct desk_call *put)
{
    static const struct job_id none = {{0}};
    struct store_new *fresh = put->in.put;
    bool is_new = memcmp(&fresh->job.id, &none, sizeof none) == 0;
    fill_new(jobs, fresh);
    put->on_done = on_put;
    put->context = jobs;
    /* One that the store could not read again is not taken. */
    enum error error = job_task_check(&fresh->job.task, &put->failure);
    if (error == ERROR_NONE && is_new)
        error = job_id_make(&fresh->job.id, &put->failure);
    if (error != ERROR_NONE) {
        assert(put->mailbox != NULL);
        mailbox_post(put->mailbox, &put->message);
        return;
    }
    desk_post(jobs->desk, put);
}

/* On the desk's thread. */
static void on_cancel(void *context, const struct desk_call *call)
{
    struct jobs *jobs = context;
    if (call->failure.code != ERROR_NONE)
        return;
    watches_report(&jobs->watches, &call->in.cancel.id, JOB_DISMISSED, -1);
    if (call->job->spool_bytes > 0)
        queue__jobs_remove_later(jobs, call->job);
    if (call->job->state == JOB_RUNNING)
        queue__jobs_wake_to_look(jobs, &call->in.cancel.id);
}

void jobs_cancel(struct jobs *jobs, struct desk_call *cancel)
{
    assert(cancel->kind == DESK_CANCEL && cancel->job != NULL);
    cancel->on_done = on_cancel;
    cancel->context = jobs;
    desk_post(jobs->desk, cancel);
}

enum error jobs_watch(struct jobs *jobs, const struct job_id *id, struct mailbox *mailbox,
                      struct message *message, struct jobs_watch **watch, struct failure *failure)
{
    *watch = watches_add(&jobs->watches, id, mailbox, message);
    return *watch != NULL
               ? ERROR_NONE
               : failure_set(failure, ERROR_FULL, "The service is out of memory; try again later.");
}

enum error jobs_result_read(const struct jobs_result *result, int64_t offset_bytes, void *data,
                            int64_t bytes, struct failure *failure)
{
    assert(offset_bytes >= 0 && bytes >= 0 && bytes <= result->bytes - offset_bytes);
    return transfer_get(result->end, offset_bytes, data, bytes, failure);
}
