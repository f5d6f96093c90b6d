/* inference.c: the life of an inference: birth, moves, hand-overs, death. See inference.h.
 *
 * A request is counted in (queue_enter) before any memory is taken for it. Its body gets an arena
 * slot placed so that the first binary tensor lies on 64 bytes, with room for the outputs
 * where the head lets one guess, so that a small request takes one slot in all.
 *
 * Cost: objects are used again, from the shard of the loop; of their 5 KiB the first 1.5 KiB are
 * zeroed for a request.
 */
#include "handlers/inference/inference.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define IDLE_MAX 256            /* objects a shard keeps */
#define EXPECTED_MIN (64 << 10) /* shorter bodies are not worth counting in advance */
/* Room behind a binary body for the outputs: as much as the tensors, INFO and RCOND of matrices
 * that are not tiny, the answer's JSON. */
#define ANSWER_SLACK 8192

#define TO(state) (1u << INFERENCE_##state)

/* The allowed moves. */
static const unsigned moves[INFERENCE_STATES] = {
    [INFERENCE_FREE] = TO(RECEIVING),
    [INFERENCE_RECEIVING] = TO(INFLATING) | TO(DECODING) | TO(FREE),
    [INFERENCE_INFLATING] = TO(QUEUED) | TO(ENCODING) | TO(DEFLATING) | TO(ABANDONED) | TO(FREE),
    [INFERENCE_DECODING] = TO(QUEUED) | TO(ENCODING) | TO(DEFLATING) | TO(ABANDONED) | TO(FREE),
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
        inference = malloc(sizeof *inference);
    if (inference != NULL)
        memset(inference, 0, offsetof(struct inference, failure));
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
        free(inference);
}

void handlers__inference_free_idle(struct handlers *handlers)
{
    for (int i = 0; i < HANDLERS_SHARDS; i++) {
        struct handlers__shard *shard = &handlers->shards[i];
        while (shard->idle != NULL) {
            struct inference *inference = shard->idle;
            shard->idle = inference->next;
            free(inference);
        }
    }
}

void handlers__inference_release(struct inference *inference)
{
    assert(!inference->away && inference->x == NULL);
    handlers__inference_move(inference, INFERENCE_FREE);
    int64_t bytes = handlers__memory_free(&inference->memory);
    queue_leave(inference->handlers->services->queue, inference->client, bytes);
    give_object_back(inference);
}

/* ---- The head ---- */

static enum error read_head(struct exchange *x, const struct inference_kind *kind,
                            struct inference_head *head, struct failure *failure)
{
    int64_t most = x->handlers->services->limits.body_max_bytes;
    if (x->content_length < 0)
        return failure_set(failure, ERROR_LENGTH_REQUIRED,
                           "Send the body with a Content-Length field; chunked bodies and bodies "
                           "of unknown length are not taken.");
    if (x->content_length > most)
        return failure_set(failure, ERROR_TOO_LARGE,
                           "The body has %lld bytes; at most %lld are taken (--request-max).",
                           (long long)x->content_length, (long long)most);
    enum error error =
        proto_coding_parse(exchange_header(x, "Content-Encoding"), &head->coding, failure);
    return error != ERROR_NONE ? error : kind->read_head(x, head, failure);
}

/* Where the first tensor begins in the body. */
static int64_t lead_of(const struct inference_head *head)
{
    bool known = head->format == PROTO_FORMAT_V2 && head->json_bytes > 0 &&
                 head->coding == PROTO_CODING_IDENTITY;
    return known ? head->json_bytes : 0;
}

/* How much to take behind the body; 0 when its outputs cannot be guessed. */
static int64_t answer_guess(const struct exchange *x, const struct inference_head *head)
{
    bool binary = (head->format == PROTO_FORMAT_V2 && head->json_bytes > 0) ||
                  head->format == PROTO_FORMAT_RAW || head->format == PROTO_FORMAT_NPY;
    if (!binary || head->coding != PROTO_CODING_IDENTITY)
        return 0;
    int64_t tensors = x->content_length - (head->json_bytes > 0 ? head->json_bytes : 0);
    return tensors + tensors / 16 + ANSWER_SLACK;
}

/* What the whole request is likely to need, as a multiple of its body: inflated text in a buffer
 * that doubles, numbers decoded from text, outputs, the answer's text, its compressed form. */
static int64_t expected_bytes(const struct exchange *x, const struct inference_head *head)
{
    static const int text_factor = 5, coded_text_factor = 16, coded_factor = 6, binary_factor = 2;
    bool binary = (head->format == PROTO_FORMAT_V2 && head->json_bytes > 0) ||
                  head->format == PROTO_FORMAT_RAW || head->format == PROTO_FORMAT_NPY;
    bool coded = head->coding != PROTO_CODING_IDENTITY;
    int factor =
        binary ? (coded ? coded_factor : binary_factor) : (coded ? coded_text_factor : text_factor);
    return x->content_length * factor; /* at most request-max: it cannot overflow */
}

/* What the request holds to begin with. A body that is not short is counted with all that it is
 * likely to need, so that what cannot be finished is refused before it has begun. */
static int64_t first_bytes(const struct exchange *x, const struct inference_head *head)
{
    const struct arena *arena = x->handlers->services->arena;
    int64_t most = (int64_t)arena_bytes(arena);
    int64_t body =
        handlers__memory_body_bytes(arena, x->content_length, lead_of(head), answer_guess(x, head));
    int64_t all = x->content_length < EXPECTED_MIN ? 0 : expected_bytes(x, head);
    all = all < most ? all : most;
    return body > all ? body : all;
}

/* Makes the inference of an exchange that was counted in with so many bytes, and its sink. */
static enum error create(struct exchange *x, const struct inference_kind *kind,
                         const struct inference_head *head, int64_t bytes, struct failure *failure)
{
    struct handlers *handlers = x->handlers;
    struct handlers__shard *shard = handlers__shard_of(handlers, x->home);
    struct inference *inference = take_object(shard);
    if (inference == NULL)
        return failure_set(failure, ERROR_FULL, "The service is out of memory; try again later.");
    inference->handlers = handlers;
    inference->shard = shard;
    inference->home = x->home;
    inference->client = x->client;
    inference->kind = kind;
    inference->head = *head;
    inference->arrived_ns = x->arrived_ns;
    if (head->model != NULL)
        inference->stats = handlers__stats_cell(handlers, shard, head->model);
    handlers__memory_init(&inference->memory, handlers->services->arena, handlers->services->queue,
                          x->client, bytes);
    inference->body = handlers__memory_body(&inference->memory, x->content_length, lead_of(head),
                                            answer_guess(x, head));
    if (inference->body == NULL) {
        enum error error = handlers__memory_failure(&inference->memory, failure);
        int64_t counted = handlers__memory_free(&inference->memory);
        assert(counted == bytes);
        give_object_back(inference);
        return error;
    }
    handlers__inference_move(inference, INFERENCE_RECEIVING);
    inference->x = x;
    x->state = inference;
    x->sink = inference->body;
    x->sink_bytes = x->content_length;
    return ERROR_NONE;
}

static void count_failure(struct stats_cell *cell, uint64_t arrived_ns)
{
    uint64_t now_ns = clock_now_ns();
    if (cell != NULL)
        handlers__stats_failure(cell, now_ns > arrived_ns ? now_ns - arrived_ns : 0);
}

void handlers__inference_begin(struct exchange *x, const struct inference_kind *kind,
                               const struct handlers__model *model)
{
    struct handlers *handlers = x->handlers;
    struct queue *queue = handlers->services->queue;
    struct inference_head head = {.model = model, .format = PROTO_FORMAT_UNKNOWN, .json_bytes = -1};
    struct failure failure, refusal;
    enum error error = read_head(x, kind, &head, &failure);
    int64_t bytes = error == ERROR_NONE ? first_bytes(x, &head) : 0;
    /* Also for a head that is wrong: whoever may not come in is told that first. */
    bool entered = queue_enter(queue, x->client, bytes, &refusal) == ERROR_NONE;
    if (entered && error == ERROR_NONE)
        error = create(x, kind, &head, bytes, &failure);
    if (entered && error == ERROR_NONE)
        return;
    if (entered)
        queue_leave(queue, x->client, bytes);
    else
        failure = refusal;
    if (head.model != NULL)
        count_failure(
            handlers__stats_cell(handlers, handlers__shard_of(handlers, x->home), head.model),
            x->arrived_ns);
    handlers__fail(x, &failure);
}

void handlers__inference_run(struct exchange *x)
{
    struct inference *inference = x->state;
    inference->body_bytes = x->body_bytes;
    inference->decoding_ns = x->body_done_ns != 0 ? x->body_done_ns : clock_now_ns();
    handlers__inference_decode(inference);
}

/* ---- Hand-overs ---- */

enum error handlers__inference_to_pool(struct inference *inference, enum inference_state state,
                                       void (*run)(struct workers_task *task))
{
    inference->task.run = run;
    inference->away = true;
    enum error error = workers_submit(inference->handlers->services->pool, &inference->task);
    if (error != ERROR_NONE) {
        inference->away = false;
        return error;
    }
    handlers__inference_move(inference, state);
    return ERROR_NONE;
}

void handlers__inference_come_home(struct inference *inference, void (*open)(struct letter *letter))
{
    inference->letter.open = open;
    mailbox_post(inference->home, &inference->letter);
}

bool handlers__inference_arrive(struct inference *inference)
{
    assert(inference->away);
    inference->away = false;
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
    return x;
}

void handlers__inference_refuse(struct inference *inference, const struct failure *failure)
{
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
    if (!inference->away) {
        handlers__inference_release(inference);
        return;
    }
    bool queued = inference->state == INFERENCE_QUEUED;
    handlers__inference_move(inference, INFERENCE_ABANDONED);
    /* The item may be done by now, with its letter under way: then this does nothing, and the
     * object is alive until the letter is opened here. */
    if (queued)
        queue_cancel(inference->handlers->services->queue, &inference->item);
}
