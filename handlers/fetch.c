/* handlers/fetch.c: see fetch.h. */
#include "handlers/fetch.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "handlers/accept.h"
#include "handlers/job_pages.h"
#include "handlers/jobs/document.h"
#include "handlers/jobs/keep.h"

static_assert(JOB_DIGEST_BYTES == DIGEST_BYTES, "a result's digest is shown as any");

static struct fetch *fetch_of(struct message *message)
{
    return (struct fetch *)message;
}

void handlers__fetch_free(struct fetch **fetch)
{
    if (*fetch == NULL)
        return;
    spool_close(&(*fetch)->file);
    if ((*fetch)->part.fd >= 0 && !(*fetch)->is_lent)
        close((*fetch)->part.fd);
    free((*fetch)->bytes);
    free(*fetch);
    *fetch = NULL;
}

bool handlers__fetch_is_under_way(const struct fetch *fetch)
{
    return fetch->is_under_way;
}

/* ---- What is asked for ---- */

/* The format that Accept likes best, the POST's own among equals. */
static enum error choose_format(const struct exchange *x, struct proto_request *request,
                                struct failure *failure)
{
    enum proto_format format = request->format;
    if (!handlers__accept_format(exchange_header(x, "Accept"), &format))
        return failure_set(failure, ERROR_NOT_ACCEPTABLE,
                           "Answers are application/x-npy, application/x-npz or "
                           "application/json; Accept allows none of them.");
    request->format = format;
    request->want_npz = format == PROTO_FORMAT_NPZ;
    return ERROR_NONE;
}

static bool is_in_spool(const struct job *job)
{
    return job->task.result_bytes > JOB_INLINE_MAX;
}

/* Why there is no result of a job to be had. */
static enum error check_ready(const struct job *job, int64_t now_ms, struct failure *failure)
{
    const struct job_outcome *outcome = &job->outcome;
    if (!job_is_over(job->state))
        return failure_set(failure, ERROR_RESULT_NOT_READY,
                           "The job is %s; ask again later, or with wait=N for the job itself.",
                           job_state_name(job->state));
    if (job->expires_ms != 0 && job->expires_ms <= now_ms)
        return failure_set(failure, ERROR_RESULT_EXPIRED,
                           "The job ended, and the time is over for which its result was kept "
                           "(--result-ttl).");
    /* What one without an inverse says is in its INFO. */
    if (job->state == JOB_SUCCESSFUL ||
        (outcome->error == ERROR_NOT_INVERTIBLE && outcome->has_result))
        return ERROR_NONE;
    return failure_set(failure, outcome->error, "%s", outcome->message);
}

static struct fetch *make_fetch(const struct visit *visit, struct failure *failure)
{
    struct fetch *fetch = calloc(1, sizeof *fetch);
    if (fetch == NULL) {
        failure_set(failure, ERROR_FULL, "The service is out of memory; try again later.");
        return NULL;
    }
    fetch->part.fd = -1;
    fetch->job = visit->job;
    fetch->is_posted = visit->is_posted;
    struct proto_request *request = &fetch->request;
    if (handlers__keep_request(&fetch->job, request, failure) != ERROR_NONE ||
        choose_format(visit->x, request, failure) != ERROR_NONE) {
        handlers__fetch_free(&fetch);
        return NULL;
    }
    if (fetch->job.state == JOB_FAILED) {
        request->format = PROTO_FORMAT_NPY; /* the answer is a problem document: no text is made */
        request->want_npz = false;
    }
    bool is_npy = request->format == PROTO_FORMAT_NPY && !proto_npy_answer_is_text(request);
    fetch->from_file = is_npy && is_in_spool(&fetch->job) && fetch->job.state == JOB_SUCCESSFUL;
    if (is_npy) {
        char hex[DIGEST_HEX_BYTES];
        fetch->npy_bytes = proto_npy_answer_bytes(request);
        fetch->head_bytes = proto_npy_answer_head(request, fetch->head);
        digest_show(fetch->job.outcome.digest, hex);
        snprintf(fetch->etag, sizeof fetch->etag, "\"%s\"", hex);
    }
    handlers__job_path(&fetch->job.id, fetch->path);
    return fetch;
}

void handlers__fetch_answer(struct visit *visit)
{
    struct failure failure;
    struct exchange *x = visit->x;
    if (check_ready(&visit->job, jobs_now_ms(visit->jobs), &failure) != ERROR_NONE) {
        bool is_its_own = job_is_over(visit->job.state) && failure.code != ERROR_RESULT_EXPIRED;
        (void)handlers__visit_leave(visit);
        if (is_its_own)
            handlers__report(x, &failure);
        else
            handlers__fail(x, &failure);
        return;
    }
    struct fetch *fetch = make_fetch(visit, &failure);
    (void)handlers__visit_leave(visit);
    if (fetch == NULL)
        handlers__fail(x, &failure);
    else
        handlers__inference_fetch(x, fetch);
}

/* ---- Loading ---- */

/* Outputs that the answer is made of without the item. */
static uint32_t left_out(const struct fetch *fetch)
{
    const struct method *method = fetch->job.task.method;
    uint32_t mask = 0;
    for (int i = 0; i < method_output_count(method); i++) {
        bool is_matrix = method->outputs[i].rank > 0;
        bool is_needed = !is_matrix || (!fetch->from_file && fetch->job.state == JOB_SUCCESSFUL);
        if (fetch->job.task.outputs[i].offset_bytes < 0 || !is_needed)
            mask |= UINT32_C(1) << i;
    }
    return mask;
}

/* Brings the outputs to the item. In the pool where the result is a file. */
static enum error read_outputs(struct fetch *fetch, struct failure *failure)
{
    const struct job_task *task = &fetch->job.task;
    void *const *outputs = handlers__item_outputs(fetch->inference->item);
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++) {
        if (outputs[i] == NULL)
            continue;
        int64_t bytes = handlers__keep_output_bytes(task, i);
        int64_t offset = task->outputs[i].offset_bytes;
        assert(bytes >= 0 && offset >= 0);
        if (fetch->bytes != NULL)
            memcpy(outputs[i], fetch->bytes + offset, (size_t)bytes);
        enum error error = fetch->bytes == NULL && bytes > 0
                               ? spool_get(fetch->file, offset, outputs[i], bytes, failure)
                               : ERROR_NONE;
        if (error != ERROR_NONE)
            return error;
    }
    const struct job_outcome *outcome = &fetch->job.outcome;
    handlers__item_restore(fetch->inference->item, outcome->kernel, outcome->queue_ns,
                           outcome->compute_ns);
    return ERROR_NONE;
}

static enum error open_file(struct fetch *fetch, struct failure *failure)
{
    struct jobs *jobs = fetch->inference->handlers->services->jobs;
    const struct job *job = &fetch->job;
    enum error error = spool_read(jobs_spool(jobs), &job->id, job->attempt, job->task.result_bytes,
                                  &fetch->file, failure);
    if (error != ERROR_NONE || !fetch->from_file)
        return error;
    fetch->part.fd = fcntl(spool_fd(fetch->file), F_DUPFD_CLOEXEC, 0);
    if (fetch->part.fd < 0)
        return failure_set(failure, ERROR_FULL,
                           "The service has no descriptor left; try again later.");
    return ERROR_NONE;
}

static void end_load(struct inference *inference)
{
    if (inference->status == ERROR_NONE)
        handlers__inference_encode(inference);
    else
        handlers__inference_refuse(inference, &inference->failure);
}

static void on_loaded(struct message *message)
{
    struct inference *inference = inference_of_message(message);
    if (handlers__inference_return(inference))
        end_load(inference);
}

static void load_in_pool(struct workers_task *task)
{
    struct inference *inference = inference_of_task(task);
    struct fetch *fetch = inference->fetch;
    inference->status = open_file(fetch, &inference->failure);
    if (inference->status == ERROR_NONE)
        inference->status = read_outputs(fetch, &inference->failure);
    spool_close(&fetch->file);
    handlers__inference_post(inference, on_loaded);
}

/* A result that is gone although its row says otherwise was cancelled in this very moment. */
static void on_read(struct message *message)
{
    struct fetch *fetch = fetch_of(message);
    struct inference *inference = fetch->inference;
    inference->status = fetch->call.failure.code;
    inference->failure = fetch->call.failure;
    if (!handlers__inference_return(inference))
        return;
    if (inference->status == ERROR_NONE)
        inference->status = read_outputs(fetch, &inference->failure);
    end_load(inference);
}

/* From the store. */
static enum error post_read(struct fetch *fetch, struct failure *failure)
{
    struct inference *inference = fetch->inference;
    struct desk_call *call = &fetch->call;
    int64_t bytes = fetch->job.task.result_bytes;
    fetch->bytes = malloc((size_t)(bytes > 0 ? bytes : 1));
    if (fetch->bytes == NULL)
        return failure_set(failure, ERROR_FULL, "The service is out of memory; try again later.");
    call->message.run = on_read;
    call->mailbox = inference->mailbox;
    call->kind = DESK_READ_RESULT;
    call->failure.code = ERROR_NONE;
    call->in.read.id = fetch->job.id;
    call->in.read.to = fetch->bytes;
    call->in.read.bytes = bytes;
    inference->busy = true;
    desk_post(jobs_desk(inference->handlers->services->jobs), call);
    return ERROR_NONE;
}

void handlers__fetch_load(struct inference *inference)
{
    struct fetch *fetch = inference->fetch;
    struct failure *failure = &inference->failure;
    fetch->is_under_way = true;
    handlers__item_adopt(inference->item, &fetch->request);
    enum error error = handlers__item_take_some_outputs(inference->item, left_out(fetch), failure);
    if (error == ERROR_NONE && !is_in_spool(&fetch->job))
        error = post_read(fetch, failure);
    else if (error == ERROR_NONE &&
             handlers__inference_to_pool(inference, INFERENCE_LOADING, load_in_pool) != ERROR_NONE)
        error =
            failure_set(failure, ERROR_FULL, "Too many results wait to be read; try again later.");
    if (error != ERROR_NONE)
        handlers__inference_refuse(inference, failure);
}

/* ---- The answer ---- */

void handlers__fetch_encode(struct fetch *fetch, struct proto_answer *answer)
{
    assert(fetch->from_file && fetch->part.fd >= 0);
    const int index = fetch->request.outputs[0].index;
    *answer = (struct proto_answer){.content_type = "application/x-npy", .json_bytes = -1};
    answer->segments[0] =
        (struct iovec){.iov_base = fetch->head, .iov_len = (size_t)fetch->head_bytes};
    answer->segment_count = 1;
    answer->total_bytes = fetch->head_bytes + fetch->npy_bytes;
    fetch->part.offset = fetch->job.task.outputs[index].offset_bytes;
    fetch->part.bytes = fetch->npy_bytes;
}

/* Leaves of the reply's segments, and of the file behind them, the bytes of the range. */
static void cut(struct exchange_reply *reply, struct exchange_file *part, const struct range *range)
{
    int64_t skip = range->first, left = range->bytes;
    int kept = 0;
    for (int i = 0; i < reply->segment_count; i++) {
        struct iovec segment = reply->segments[i];
        int64_t length = (int64_t)segment.iov_len, skipped = skip < length ? skip : length;
        int64_t taken = length - skipped < left ? length - skipped : left;
        skip -= skipped;
        left -= taken;
        segment.iov_base = (char *)segment.iov_base + skipped;
        segment.iov_len = (size_t)taken;
        if (taken > 0)
            reply->segments[kept++] = segment;
    }
    reply->segment_count = kept;
    part->offset += skip;
    part->bytes = left;
}

static void apply_range(struct fetch *fetch, struct exchange_reply *reply)
{
    const struct exchange *x = fetch->inference->x;
    int64_t total = fetch->head_bytes + fetch->npy_bytes;
    struct range range = handlers__range(exchange_header(x, "Range"),
                                         exchange_header(x, "If-Range"), fetch->etag, total);
    if (range.kind == RANGE_ALL)
        return;
    snprintf(fetch->content_range, sizeof fetch->content_range, "bytes */%lld", (long long)total);
    reply->status = error_http_status(ERROR_BAD_RANGE);
    if (range.kind == RANGE_PART) {
        snprintf(fetch->content_range, sizeof fetch->content_range, "bytes %lld-%lld/%lld",
                 (long long)range.first, (long long)(range.first + range.bytes - 1),
                 (long long)total);
        reply->status = 206;
    }
    cut(reply, &fetch->part, &range); /* to nothing, for one that lies outside */
    handlers__reply_field(reply, "Content-Range", fetch->content_range);
}

void handlers__fetch_finish(struct fetch *fetch, struct exchange_reply *reply, bool is_plain)
{
    bool is_npy = is_plain && fetch->head_bytes > 0;
    if (fetch->is_posted) {
        handlers__reply_field(reply, "Location", fetch->path);
        handlers__reply_field(reply, "Preference-Applied", "respond-async");
    }
    if (is_npy) {
        handlers__reply_field(reply, "ETag", fetch->etag);
        handlers__reply_field(reply, "Accept-Ranges", "bytes");
    }
    if (is_npy && !fetch->is_posted)
        apply_range(fetch, reply);
    fetch->is_lent = fetch->from_file && is_plain && fetch->part.bytes > 0;
    if (fetch->is_lent)
        reply->file = &fetch->part;
}

/* ---- The route ---- */

static void found(struct visit *visit)
{
    if (handlers__visit_found(visit))
        handlers__fetch_answer(visit);
}

void handlers__job_result(struct exchange *x)
{
    struct visit *visit = handlers__visit_open(x);
    if (visit != NULL && handlers__visit_read_id(visit))
        handlers__visit_get(visit, found);
}
