/* handlers/inference.c: the life of an inference: birth, moves, hand-overs, death. See inference.h.
 *
 * A request is counted in before any memory is taken for it, and memory is taken as its body comes.
 *
 * Cost: objects are used again, each with its item, from the shard of the loop; 6 KiB together.
 */
#include "handlers/inference.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "handlers/fetch.h"
#include "handlers/posting.h"
#include "handlers/upload.h"

#define IDLE_MAX 256           /* objects a shard keeps */
#define FETCH_SLACK (16 << 10) /* for what alignment takes of a result's memory */

#define TO(state) (1u << INFERENCE_##state)

/* The allowed moves. */
static const unsigned moves[INFERENCE_STATES] = {
    [INFERENCE_FREE] = TO(RECEIVING) | TO(LOADING),
    [INFERENCE_RECEIVING] = TO(INFLATING) | TO(DECODING) | TO(ACCEPTING) | TO(ABANDONED) | TO(FREE),
    [INFERENCE_INFLATING] =
        TO(QUEUED) | TO(ACCEPTING) | TO(ENCODING) | TO(DEFLATING) | TO(ABANDONED) | TO(FREE),
    [INFERENCE_DECODING] =
        TO(QUEUED) | TO(ACCEPTING) | TO(ENCODING) | TO(DEFLATING) | TO(ABANDONED) | TO(FREE),
    [INFERENCE_ACCEPTING] = TO(ABANDONED) | TO(FREE),
    [INFERENCE_LOADING] = TO(ENCODING) | TO(DEFLATING) | TO(ABANDONED) | TO(FREE),
    [INFERENCE_QUEUED] = TO(ENCODING) | TO(DEFLATING) | TO(ABANDONED) | TO(FREE),
    [INFERENCE_ENCODING] = TO(ANSWERED) | TO(ABANDONED) | TO(FREE),
    [INFERENCE_DEFLATING] = TO(ANSWERED) | TO(ABANDONED) | TO(FREE),
    [INFERENCE_ANSWERED] = TO(FREE),
    [INFERENCE_ABANDONED] = TO(FREE),
};

void handlers__inference_move(struct inference *inference, enum inference_state to)
{
    assert((moves[inference->state] & (1u << to)) != 0);
    inference->state = to;
}

/* ---- Birth and death ---- */

static void free_object(struct inference *inference)
{
    handlers__item_destroy(&inference->item);
    free(inference);
}

static struct inference *make_object(void)
{
    struct inference *inference = malloc(sizeof *inference);
    struct item *item = inference != NULL ? handlers__item_create() : NULL;
    if (item == NULL) {
        free(inference);
        return NULL;
    }
    inference->item = item;
    return inference;
}

/* An idle object of the shard, or a new one; NULL when out of memory. */
static struct inference *take_object(struct handlers__shard *shard)
{
    pthread_mutex_lock(&shard->lock);
    struct inference *inference = shard->idle;
    if (inference != NULL) {
        shard->idle = inference->next;
        shard->idle_count--;
    }
    pthread_mutex_unlock(&shard->lock);
    if (inference == NULL)
        inference = make_object();
    if (inference == NULL)
        return NULL;
    struct item *item = inference->item;
    memset(inference, 0, offsetof(struct inference, failure));
    inference->item = item;
    inference->shard = shard;
    return inference;
}

static void give_object_back(struct inference *inference)
{
    struct handlers__shard *shard = inference->shard;
    pthread_mutex_lock(&shard->lock);
    bool keep = shard->idle_count < IDLE_MAX;
    if (keep) {
        inference->next = shard->idle;
        shard->idle = inference;
        shard->idle_count++;
    }
    pthread_mutex_unlock(&shard->lock);
    if (!keep)
        free_object(inference);
}

void handlers__inference_free_idle(struct handlers *handlers)
{
    for (int i = 0; i < HANDLERS_SHARDS; i++) {
        struct handlers__shard *shard = &handlers->shards[i];
        while (shard->idle != NULL) {
            struct inference *inference = shard->idle;
            shard->idle = inference->next;
            free_object(inference);
        }
    }
}

void handlers__inference_release(struct inference *inference)
{
    assert(!inference->busy && inference->x == NULL);
    handlers__inference_move(inference, INFERENCE_FREE);
    handlers__posting_free(&inference->posting);
    handlers__fetch_free(&inference->fetch);
    handlers__item_close(inference->item);
    give_object_back(inference);
}

/* ---- The head ---- */

static enum error check_length(int64_t bytes, int64_t max, const char *option,
                               struct failure *failure)
{
    if (bytes <= max)
        return ERROR_NONE;
    return failure_set(failure, ERROR_TOO_LARGE,
                       "The body has %lld bytes; at most %lld are taken (%s).", (long long)bytes,
                       (long long)max, option);
}

/* *posting: see handlers__posting_open; streams: the body is no item's. */
static enum error read_head(struct exchange *x, const struct inference_kind *kind,
                            struct item_head *head, struct posting **posting, bool *streams,
                            struct failure *failure)
{
    const struct handlers_limits *limits = &x->handlers->services->limits;
    int64_t bytes = x->content_length;
    if (bytes < 0)
        return failure_set(failure, ERROR_LENGTH_REQUIRED,
                           "Send the body with a Content-Length field.");
    head->body_bytes = bytes;
    enum error error = ERROR_NONE;
    if (kind->has_jobs)
        error = handlers__posting_open(x, posting, failure);
    head->later = *posting != NULL;
    if (error == ERROR_NONE && !head->later)
        error = check_length(bytes, limits->body_max_bytes, "--request-max", failure);
    if (error == ERROR_NONE)
        error = proto_coding_parse(exchange_header(x, "Content-Encoding"), &head->coding, failure);
    if (error == ERROR_NONE)
        error = kind->read_head(x, head, failure);
    if (error != ERROR_NONE || !head->later)
        return error;
    *streams = handlers__posting_streams(x, head);
    if (*streams)
        return check_length(bytes, limits->job_max_bytes, "--job-request-max", failure);
    return check_length(bytes, limits->body_max_bytes,
                        "--request-max; an .npy as long as that, uncompressed, of its own "
                        "Content-Type and with Prefer: respond-async, is written to the disk",
                        failure);
}

static void on_room(void *context);

static struct item_source source_of(const struct exchange *x, struct inference *inference)
{
    const struct handlers *handlers = x->handlers;
    const struct handlers_services *services = handlers->services;
    return (struct item_source){.arena = services->arena,
                                .queue = services->queue,
                                .method_default = handlers->initial->method,
                                .inflated_max_bytes = services->limits.body_max_bytes,
                                .client = x->client,
                                .account = handlers__account(x),
                                .arrived_ns = x->arrived_ns,
                                .on_room = on_room,
                                .context = inference};
}

static struct stats_cell *stats_of(struct handlers *handlers, const struct handlers__shard *shard,
                                   const struct method *method)
{
    if (method == NULL)
        return NULL;
    return handlers__stats_cell(handlers, shard, handlers__model_of(handlers, method));
}

static void show_sink(struct inference *inference)
{
    struct exchange *x = inference->x;
    x->sink = handlers__item_body(inference->item, &x->sink_bytes);
}

/* Makes an inference of an exchange, in a state that follows FREE. */
static enum error create(struct exchange *x, const struct inference_kind *kind,
                         const struct item_head *head, enum inference_state state,
                         struct failure *failure)
{
    struct handlers *handlers = x->handlers;
    struct handlers__shard *shard = handlers__shard_of(handlers, x->mailbox);
    struct inference *inference = take_object(shard);
    if (inference == NULL)
        return failure_set(failure, ERROR_FULL, "The service is out of memory; try again later.");
    struct item_source source = source_of(x, inference);
    enum error error = handlers__item_open(inference->item, &source, head, failure);
    if (error != ERROR_NONE) {
        give_object_back(inference);
        return error;
    }
    inference->handlers = handlers;
    inference->mailbox = x->mailbox;
    inference->kind = kind;
    inference->arrived_ns = x->arrived_ns;
    handlers__inference_move(inference, state);
    inference->x = x;
    x->state = inference;
    x->drop = handlers__inference_drop;
    return ERROR_NONE;
}

/* Takes the posting, if there is one. The exchange has its sink, if the body is small. */
static enum error receive(struct exchange *x, const struct inference_kind *kind,
                          struct item_head *head, struct posting *posting, bool streams,
                          struct failure *failure)
{
    if (streams)
        head->body_bytes = 0;
    enum error error = create(x, kind, head, INFERENCE_RECEIVING, failure);
    if (error != ERROR_NONE) {
        handlers__posting_free(&posting);
        return error;
    }
    struct inference *inference = x->state;
    inference->posting = posting;
    if (posting != NULL)
        posting->inference = inference;
    if (posting == NULL)
        inference->stats = stats_of(inference->handlers, inference->shard, head->method);
    x->takes_body = true;
    if (!streams) {
        show_sink(inference);
        return ERROR_NONE;
    }
    error = handlers__upload_begin(inference, failure);
    if (error != ERROR_NONE)
        handlers__inference_drop(x);
    return error;
}

/* Admission runs even if the head is invalid: a client over its quota gets 429, not 400. */
static void try_to_enter(const struct exchange *x, struct failure *failure)
{
    struct queue *queue = x->handlers->services->queue;
    struct queue_reservation reservation = {
        .client = x->client, .account = handlers__account(x), .arrived_ns = x->arrived_ns};
    struct failure refusal;
    if (queue_enter(queue, &reservation, &refusal) == ERROR_NONE)
        queue_leave(queue, &reservation);
    else
        *failure = refusal;
}

static void count_failure(struct stats_cell *cell, uint64_t arrived_ns)
{
    uint64_t now_ns = clock_now_ns();
    if (cell != NULL)
        handlers__stats_failure(cell, now_ns > arrived_ns ? now_ns - arrived_ns : 0);
}

void handlers__inference_begin(struct exchange *x, const struct inference_kind *kind,
                               const struct method *method)
{
    struct handlers *handlers = x->handlers;
    struct item_head head = {.method = method, .format = PROTO_FORMAT_UNKNOWN, .json_bytes = -1};
    struct failure failure;
    struct posting *posting = NULL;
    bool streams = false;
    enum error error = read_head(x, kind, &head, &posting, &streams, &failure);
    if (error == ERROR_NONE) {
        if (receive(x, kind, &head, posting, streams, &failure) == ERROR_NONE)
            return;
    } else {
        handlers__posting_free(&posting);
        try_to_enter(x, &failure);
    }
    count_failure(stats_of(handlers, handlers__shard_of(handlers, x->mailbox), head.method),
                  x->arrived_ns);
    handlers__fail(x, &failure);
}

/* ---- The body ---- */

/* Decodes or loads once all the memory is there that the request is likely to need. */
static void run_when_whole(struct inference *inference)
{
    inference->busy = true; /* if it waits: until on_room's message has come */
    if (!handlers__item_make_whole(inference->item))
        return;
    inference->busy = false;
    if (inference->fetch != NULL)
        handlers__fetch_load(inference);
    else
        handlers__inference_decode(inference);
}

bool handlers__inference_make_room(struct exchange *x, int64_t bytes)
{
    struct inference *inference = x->state;
    assert(inference->state == INFERENCE_RECEIVING && !inference->busy);
    if (inference->posting != NULL && inference->posting->upload != NULL)
        return handlers__upload_make_room(inference, bytes);
    inference->room_bytes = bytes;
    inference->busy = true;
    if (!handlers__item_make_room(inference->item, bytes))
        return false;
    inference->busy = false;
    show_sink(inference);
    return true;
}

static void on_room_made(struct message *message)
{
    struct inference *inference = inference_of_message(message);
    if (!handlers__inference_return(inference))
        return;
    struct exchange *x = inference->x;
    if (inference->received)
        run_when_whole(inference);
    else if (handlers__inference_make_room(x, inference->room_bytes))
        x->door->room_made(x);
}

/* In the thread that gave memory back. */
static void on_room(void *context)
{
    handlers__inference_post(context, on_room_made);
}

void handlers__inference_run(struct exchange *x)
{
    struct inference *inference = x->state;
    assert(inference->state == INFERENCE_RECEIVING && inference->x == x);
    if (inference->posting != NULL && inference->posting->upload != NULL) {
        handlers__upload_run(inference);
        return;
    }
    handlers__item_receive(inference->item, x->body_bytes);
    inference->received = true;
    inference->decoding_ns = x->body_done_ns != 0 ? x->body_done_ns : clock_now_ns();
    run_when_whole(inference);
}

/* ---- Results of jobs ---- */

/* Memory for the outputs that are to be loaded, and for the answer's text. */
static int64_t fetch_bytes(const struct fetch *fetch)
{
    int64_t outputs = fetch->from_file ? 0 : fetch->job.task.result_bytes;
    int64_t per_matrix = fetch->from_file ? fetch->job.task.batch : 0;
    int64_t text = proto_answer_bound(&fetch->request), total = INT64_MAX;
    if (text < 0 || !checked_mul(per_matrix, METHOD_OUTPUTS_MAX * 8, &per_matrix) ||
        !checked_add(outputs, per_matrix, &total) || !checked_add(total, text, &total) ||
        !checked_add(total, FETCH_SLACK, &total))
        return INT64_MAX - FETCH_SLACK;
    return total;
}

void handlers__inference_fetch(struct exchange *x, struct fetch *fetch)
{
    struct failure failure;
    struct item_head head = {.format = PROTO_FORMAT_NPY,
                             .json_bytes = -1,
                             .later = true,
                             .more_bytes = fetch_bytes(fetch)};
    if (create(x, &handlers__v1_kind, &head, INFERENCE_LOADING, &failure) != ERROR_NONE) {
        handlers__fetch_free(&fetch);
        handlers__fail(x, &failure);
        return;
    }
    struct inference *inference = x->state;
    inference->fetch = fetch;
    fetch->inference = inference;
    handlers__item_receive(inference->item, 0);
    inference->received = true;
    inference->decoding_ns = clock_now_ns();
    run_when_whole(inference);
}

/* ---- Hand-overs ---- */

enum error handlers__inference_to_pool(struct inference *inference, enum inference_state state,
                                       void (*run)(struct workers_task *task))
{
    assert(!inference->busy && inference->x != NULL);
    inference->task.run = run;
    inference->busy = true;
    enum error error = workers_submit(inference->handlers->services->pool, &inference->task);
    if (error != ERROR_NONE) {
        inference->busy = false;
        return error;
    }
    if (state != inference->state)
        handlers__inference_move(inference, state);
    return ERROR_NONE;
}

void handlers__inference_post(struct inference *inference, void (*run)(struct message *message))
{
    assert(inference->busy && run != NULL);
    inference->message.run = run;
    mailbox_post(inference->mailbox, &inference->message);
}

bool handlers__inference_return(struct inference *inference)
{
    assert(inference->busy);
    inference->busy = false;
    if (inference->x != NULL)
        return true;
    handlers__inference_release(inference);
    return false;
}

struct exchange *handlers__inference_detach(struct inference *inference)
{
    struct exchange *x = inference->x;
    assert(x != NULL && x->state == inference);
    inference->x = NULL;
    x->state = NULL;
    x->sink = NULL; /* the body's slot may be another request's from now on */
    x->sink_bytes = 0;
    x->sink_offset = 0;
    x->takes_body = false;
    x->drop = NULL;
    return x;
}

void handlers__inference_refuse(struct inference *inference, const struct failure *failure)
{
    assert(!inference->busy && failure->code != ERROR_NONE);
    count_failure(inference->stats, inference->arrived_ns);
    struct exchange *x = handlers__inference_detach(inference);
    handlers__fail(x, failure);
    handlers__inference_release(inference);
}

void handlers__inference_drop(struct exchange *x)
{
    struct inference *inference = x->state;
    count_failure(inference->stats, inference->arrived_ns);
    handlers__inference_detach(inference);
    if (!inference->busy) {
        handlers__inference_release(inference);
        return;
    }
    bool queued = inference->state == INFERENCE_QUEUED;
    bool may_wait =
        inference->state == INFERENCE_RECEIVING ||
        (inference->state == INFERENCE_LOADING && !handlers__fetch_is_under_way(inference->fetch));
    if (may_wait && handlers__item_stop_waiting(inference->item)) {
        inference->busy = false;
        handlers__inference_release(inference);
        return;
    }
    handlers__inference_move(inference, INFERENCE_ABANDONED);
    /* The item may be done by now, with its completion posted: then this does nothing, and the
     * object is alive until the completion runs here. */
    if (queued)
        handlers__item_cancel(inference->item);
}
