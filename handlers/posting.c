/* handlers/posting.c: see posting.h. */
#include "handlers/posting.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "callback/hosts.h"
#include "handlers/job_pages.h"
#include "handlers/jobs/keep.h"
#include "handlers/upload.h"
#include "handlers/visit.h"

#define LONG_DIGEST_BYTES (64 << 10)
#define STREAM_SHARE 4 /* of the arena: a longer body goes to the spool as it comes */

static_assert(JOB_URL_BYTES >= CALLBACK_URL_BYTES && JOB_PLACE_BYTES >= CALLBACK_HOST_BYTES + 6,
              "every callback fits");
static_assert(DIGEST_BYTES == JOB_DIGEST_BYTES, "a key's digest is SHA-256");

static struct posting *posting_of(struct message *message)
{
    return (struct posting *)message;
}

static struct jobs *jobs_of(const struct posting *posting)
{
    return posting->inference->handlers->services->jobs;
}

/* ---- The head ---- */

static bool add_parameter(void *context, const char *name, const char *value)
{
    struct digest_stream *digest = context;
    digest_add(digest, name, strlen(name) + 1);
    digest_add(digest, value, strlen(value) + 1);
    return true;
}

/* Route, query and content fields, each with a NUL behind it. */
static bool digest_head(const struct exchange *x, unsigned char digest[DIGEST_BYTES])
{
    static const char *const fields[] = {"Content-Type", "Content-Encoding"};
    struct digest_stream *stream = digest_begin();
    if (stream == NULL)
        return false;
    digest_add(stream, x->path, strlen(x->path) + 1);
    x->door->query(x, add_parameter, stream);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const char *value = exchange_header(x, fields[i]);
        if (value == NULL)
            value = "";
        digest_add(stream, value, strlen(value) + 1);
    }
    return digest_end(&stream, digest);
}

static enum error read_key(const struct exchange *x, struct posting *posting,
                           struct failure *failure)
{
    const char *key = exchange_header(x, "Idempotency-Key");
    if (key == NULL)
        return ERROR_NONE;
    size_t length = strlen(key);
    bool good = length > 0 && length < JOB_KEY_BYTES;
    for (size_t i = 0; good && i < length; i++)
        good = key[i] >= ' ' && key[i] <= '~';
    if (!good)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "An Idempotency-Key has 1 to %d printable characters of ASCII.",
                           JOB_KEY_BYTES - 1);
    memcpy(posting->fresh.key, key, length + 1);
    if (digest_head(x, posting->head_digest))
        return ERROR_NONE;
    return failure_set(failure, ERROR_INTERNAL, "The service cannot digest the request.");
}

struct callback_search {
    const char *url; /* NULL: there is none. Lent by the exchange */
    bool is_repeated;
};

static bool find_callback(void *context, const char *name, const char *value)
{
    struct callback_search *search = context;
    if (strcmp(name, "callback") != 0)
        return true;
    search->is_repeated = search->url != NULL;
    search->url = value;
    return !search->is_repeated;
}

/* Everything about a callback that can be refused is refused before there is a job. */
static enum error read_callback(const struct exchange *x, bool respond_async,
                                struct store_new *fresh, struct failure *failure)
{
    const struct callback_hosts *hosts = x->handlers->services->callbacks;
    struct callback_search search = {NULL, false};
    struct callback_url url;
    x->door->query(x, find_callback, &search);
    if (search.url == NULL)
        return ERROR_NONE;
    if (search.is_repeated)
        return failure_set(failure, ERROR_BAD_OPTION, "The query has two callbacks; give one.");
    if (!respond_async)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "callback is for jobs alone; send Prefer: respond-async with it.");
    if (hosts == NULL || hosts->count == 0)
        return failure_set(failure, ERROR_FORBIDDEN,
                           "This service sends no callbacks; its option --allow-callbacks lists "
                           "the hosts that it may send them to. Ask for the job's document "
                           "instead, with wait=N.");
    enum error error = callback_url_read(search.url, &url, failure);
    if (error != ERROR_NONE)
        return error;
    if (!callback_hosts_list_url(hosts, &url))
        return failure_set(failure, ERROR_FORBIDDEN,
                           "The host of the callback, with port %d, is none of those that this "
                           "service may send callbacks to (--allow-callbacks).",
                           url.port);
    snprintf(fresh->callback_url, sizeof fresh->callback_url, "%s", search.url);
    snprintf(fresh->callback_place, sizeof fresh->callback_place, "%s:%d", url.host, url.port);
    fresh->job.callback.state = JOB_CALLBACK_PENDING;
    return ERROR_NONE;
}

/* Whom the job belongs to, and what its client may have. */
static void set_owner(const struct exchange *x, struct store_new *fresh)
{
    handlers__job_owner(x, fresh->job.owner);
    if (x->caller == NULL)
        return;
    fresh->owner_jobs_max = x->caller->limits.jobs;
    fresh->owner_bytes_max = x->caller->limits.spool_bytes;
}

enum error handlers__posting_open(struct exchange *x, struct posting **result,
                                  struct failure *failure)
{
    struct prefer prefer = {0};
    struct jobs *jobs = x->handlers->services->jobs;
    const char *value;
    for (int i = 0; (value = x->door->header(x, "Prefer", i)) != NULL; i++)
        handlers__prefer(&prefer, value);
    *result = NULL;
    if (!prefer.respond_async)
        return read_callback(x, false, NULL, failure);
    if (x->caller == NULL || !client_may(x->caller, CLIENT_JOBS))
        return failure_set(failure, ERROR_FORBIDDEN,
                           "Prefer: respond-async is for clients with the role jobs; the token's "
                           "line in the service's token file does not give it.");
    if (jobs == NULL)
        return failure_set(failure, ERROR_JOBS_OFF,
                           "This service keeps no jobs: it has no folder for them (--data-dir). "
                           "Send the request without Prefer: respond-async.");
    enum error error = jobs_open_for(jobs, 0, failure);
    if (error != ERROR_NONE)
        return error;
    struct posting *posting = calloc(1, sizeof *posting);
    if (posting == NULL)
        return failure_set(failure, ERROR_FULL, "The service is out of memory; try again later.");
    posting->prefer = prefer;
    posting->known.state = JOB_STATES;
    set_owner(x, &posting->fresh);
    error = read_key(x, posting, failure);
    if (error == ERROR_NONE)
        error = read_callback(x, true, &posting->fresh, failure);
    if (error != ERROR_NONE)
        handlers__posting_free(&posting);
    *result = posting;
    return error;
}

void handlers__posting_free(struct posting **posting)
{
    if (*posting == NULL)
        return;
    handlers__upload_leave(&(*posting)->upload);
    if ((*posting)->has_file)
        handlers__posting_remove_file(*posting);
    free((*posting)->body);
    free(*posting);
    *posting = NULL;
}

bool handlers__posting_has_key(const struct posting *posting)
{
    return posting->fresh.key[0] != '\0';
}

bool handlers__posting_streams(const struct exchange *x, const struct item_head *head)
{
    const struct handlers_services *services = x->handlers->services;
    int64_t share = (int64_t)arena_bytes(services->arena) / STREAM_SHARE;
    return head->format == PROTO_FORMAT_NPY && head->coding == PROTO_CODING_IDENTITY &&
           (x->content_length > services->limits.body_max_bytes || x->content_length > share);
}

bool handlers__posting_digest_is_long(const struct posting *posting)
{
    int64_t bytes;
    (void)handlers__item_received(posting->inference->item, &bytes);
    return handlers__posting_has_key(posting) && bytes > LONG_DIGEST_BYTES;
}

enum error handlers__posting_digest_body(struct posting *posting, struct failure *failure)
{
    int64_t bytes;
    const unsigned char *body = handlers__item_received(posting->inference->item, &bytes);
    if (!handlers__posting_has_key(posting) ||
        digest_sha256(body, (size_t)bytes, posting->body_digest))
        return ERROR_NONE;
    return failure_set(failure, ERROR_INTERNAL, "The service cannot digest the request.");
}

/* ---- The job ---- */

static int64_t spool_bytes(const struct job_task *task)
{
    int64_t body = task->body_bytes > JOB_INLINE_MAX ? task->body_bytes : 0;
    int64_t result = task->result_bytes > JOB_INLINE_MAX ? task->result_bytes : 0;
    return body <= INT64_MAX - result ? body + result : INT64_MAX;
}

enum error handlers__posting_fit(struct inference *inference, struct failure *failure)
{
    struct posting *posting = inference->posting;
    struct job *job = &posting->fresh.job;
    const struct proto_request *request = handlers__item_request(inference->item);
    enum error error = handlers__item_check(inference->item, failure);
    if (error == ERROR_NONE)
        error = handlers__keep_task(request, handlers__item_wanted(request), &job->task, failure);
    if (error == ERROR_NONE)
        error = jobs_check(jobs_of(posting), &job->task, failure);
    if (error != ERROR_NONE)
        return error;
    job->state = JOB_ACCEPTED;
    job->answer_bytes = handlers__keep_answer(request, job->answer);
    return ERROR_NONE;
}

enum error handlers__posting_find_room(const struct posting *posting, struct failure *failure)
{
    int64_t bytes = spool_bytes(&posting->fresh.job.task), max = posting->fresh.owner_bytes_max;
    if (max > 0 && bytes > max)
        return failure_set(failure, ERROR_TOO_LARGE,
                           "The job and its result take %lld bytes of disk, and this client's "
                           "quota is spool=%lld; send fewer or smaller matrices.",
                           (long long)bytes, (long long)max);
    return jobs_open_for(jobs_of(posting), bytes, failure);
}

/* Places the inputs in the body; then all is known that the job takes of the spool. */
static enum error place_inputs(struct posting *posting, struct failure *failure)
{
    struct job_task *task = &posting->fresh.job.task;
    const struct proto_request *request = handlers__item_request(posting->inference->item);
    bool fits = true;
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        if (request->inputs[i].data != NULL)
            fits = fits && handlers__keep_place_input(task, i, false);
    if (!fits)
        return failure_set(failure, ERROR_TOO_LARGE, "The request is too large.");
    return handlers__posting_find_room(posting, failure);
}

/* Calls put for each input. Between them the body is zero. */
static enum error each_piece(struct posting *posting,
                             enum error (*put)(struct posting *posting, int64_t offset,
                                               const void *data, int64_t bytes,
                                               struct failure *failure),
                             struct failure *failure)
{
    const struct job_task *task = &posting->fresh.job.task;
    const struct proto_request *request = handlers__item_request(posting->inference->item);
    enum error error = ERROR_NONE;
    for (int i = 0; i < METHOD_INPUTS_MAX && error == ERROR_NONE; i++)
        if (request->inputs[i].data != NULL)
            error = put(posting, task->inputs[i].offset_bytes, request->inputs[i].data,
                        handlers__keep_input_bytes(task, i), failure);
    return error;
}

static enum error put_in_memory(struct posting *posting, int64_t offset, const void *data,
                                int64_t bytes, struct failure *failure)
{
    (void)failure;
    memcpy(posting->body + offset, data, (size_t)bytes);
    return ERROR_NONE;
}

static enum error put_in_file(struct posting *posting, int64_t offset, const void *data,
                              int64_t bytes, struct failure *failure)
{
    return spool_put(posting->file, offset, data, bytes, failure);
}

static enum error copy_body(struct posting *posting, struct failure *failure)
{
    const struct job_task *task = &posting->fresh.job.task;
    posting->body = calloc(1, (size_t)(task->body_bytes > 0 ? task->body_bytes : 1));
    if (posting->body == NULL)
        return failure_set(failure, ERROR_FULL, "The service is out of memory; try again later.");
    posting->fresh.body = posting->body;
    return each_piece(posting, put_in_memory, failure);
}

static void on_written(struct message *message)
{
    struct inference *inference = inference_of_message(message);
    if (!handlers__inference_return(inference))
        return;
    if (inference->status != ERROR_NONE) {
        handlers__inference_refuse(inference, &inference->failure);
        return;
    }
    inference->busy = true;
    handlers__posting_accept(inference->posting);
}

static enum error write_file(struct posting *posting, struct failure *failure)
{
    const struct job *job = &posting->fresh.job;
    enum error error = spool_write(jobs_spool(jobs_of(posting)), &job->id, 0, job->task.body_bytes,
                                   &posting->file, failure);
    if (error == ERROR_NONE)
        error = each_piece(posting, put_in_file, failure);
    if (error == ERROR_NONE)
        error = spool_keep(&posting->file, failure);
    spool_close(&posting->file); /* and remove it, where it was not kept */
    posting->has_file = error == ERROR_NONE;
    return error;
}

static void write_in_pool(struct workers_task *task)
{
    struct inference *inference = inference_of_task(task);
    inference->status = write_file(inference->posting, &inference->failure);
    handlers__inference_post(inference, on_written);
}

static enum error start(struct inference *inference, struct failure *failure)
{
    struct posting *posting = inference->posting;
    struct job *job = &posting->fresh.job;
    enum error error = place_inputs(posting, failure);
    if (error != ERROR_NONE)
        return error;
    if (job->task.body_bytes <= JOB_INLINE_MAX) {
        error = copy_body(posting, failure);
        if (error != ERROR_NONE)
            return error;
        handlers__inference_move(inference, INFERENCE_ACCEPTING);
        inference->busy = true;
        handlers__posting_accept(posting);
        return ERROR_NONE;
    }
    error = job_id_make(&job->id, failure);
    if (error == ERROR_NONE &&
        handlers__inference_to_pool(inference, INFERENCE_ACCEPTING, write_in_pool) != ERROR_NONE)
        error = failure_set(failure, ERROR_FULL,
                            "Too many bodies wait to be written; try again later.");
    return error;
}

void handlers__posting_start(struct inference *inference)
{
    if (start(inference, &inference->failure) != ERROR_NONE)
        handlers__inference_refuse(inference, &inference->failure);
}

/* ---- Into the store ---- */

static void note_work(const struct posting *posting, struct exchange *x)
{
    const struct job_task *task = &posting->fresh.job.task;
    x->work =
        (struct exchange_work){.method = task->method->name, .n = task->n, .batch = task->batch};
}

/* Leaves the inference, and waits for the job's end. */
static void wait_for(struct inference *inference, const struct job *job, bool was_known)
{
    int wait_s = inference->posting->prefer.wait_s;
    struct exchange *x = handlers__inference_detach(inference);
    struct visit *visit = handlers__visit_open(x);
    if (visit != NULL) {
        visit->id = job->id;
        visit->wait_s = wait_s;
        visit->is_posted = true;
        visit->was_known = was_known;
        handlers__visit_wait(visit);
    }
    handlers__inference_release(inference);
}

static void on_accepted(struct message *message)
{
    struct posting *posting = posting_of(message);
    struct inference *inference = posting->inference;
    const struct failure *failure = &posting->call.failure;
    bool was_known = failure->code == ERROR_NONE && posting->known.state != JOB_STATES;
    /* After STORE_FAILED a job may refer to the file all the same; if not, it is swept away. */
    if ((failure->code == ERROR_NONE && !was_known) || failure->code == ERROR_STORE_FAILED)
        posting->has_file = false;
    if (!handlers__inference_return(inference))
        return;
    if (failure->code != ERROR_NONE) {
        handlers__inference_refuse(inference, failure);
        return;
    }
    const struct job *job = was_known ? &posting->known : &posting->fresh.job;
    note_work(posting, inference->x);
    if (posting->prefer.wait_s > 0 && job->state != JOB_DISMISSED) {
        wait_for(inference, job, was_known);
        return;
    }
    handlers__job_reply_accepted(handlers__inference_detach(inference), job, was_known);
    handlers__inference_release(inference);
}

/* What goes with a key: what the request is but for who sends it. */
static bool digest_request(struct posting *posting)
{
    unsigned char both[2 * DIGEST_BYTES];
    memcpy(both, posting->head_digest, DIGEST_BYTES);
    memcpy(both + DIGEST_BYTES, posting->body_digest, DIGEST_BYTES);
    return digest_sha256(both, sizeof both, posting->fresh.key_digest);
}

void handlers__posting_accept(struct posting *posting)
{
    struct desk_call *call = &posting->call;
    assert(posting->inference->busy && posting->inference->state == INFERENCE_ACCEPTING);
    if (handlers__posting_has_key(posting) && !digest_request(posting)) {
        posting->inference->busy = false;
        failure_set(&posting->inference->failure, ERROR_INTERNAL,
                    "The service cannot digest the request.");
        handlers__inference_refuse(posting->inference, &posting->inference->failure);
        return;
    }
    call->message.run = on_accepted;
    call->mailbox = posting->inference->mailbox;
    call->kind = DESK_PUT;
    call->failure.code = ERROR_NONE;
    call->in.put = &posting->fresh;
    call->job = &posting->known;
    jobs_accept(jobs_of(posting), call);
}

/* ---- Removing ---- */

struct removal {
    struct workers_task task;
    struct spool *spool;
    struct job_id id;
};

static void remove_in_pool(struct workers_task *task)
{
    struct removal *removal = (struct removal *)task;
    spool_remove(removal->spool, &removal->id, 0);
    free(removal);
}

/* What cannot be removed now is swept away later, as what a crash leaves is. */
void handlers__posting_remove_file(struct posting *posting)
{
    const struct handlers_services *services = posting->inference->handlers->services;
    posting->has_file = false;
    if (atomic_load(&services->draining)) { /* the pool may be gone by now */
        spool_remove(jobs_spool(services->jobs), &posting->fresh.job.id, 0);
        return;
    }
    struct removal *removal = calloc(1, sizeof *removal);
    if (removal == NULL)
        return;
    removal->task.run = remove_in_pool;
    removal->spool = jobs_spool(jobs_of(posting));
    removal->id = posting->fresh.job.id;
    if (workers_submit(services->pool, &removal->task) != ERROR_NONE)
        free(removal);
}
