/* handlers/inference/item.c: the life of an item: memory for its body, the queue and back, the end.
 * See item.h.
 *
 * The body gets an arena slot placed so that the first binary tensor lies on 64 bytes, with room
 * for the outputs where the head lets one guess, so that a binary request takes one slot in all.
 *
 * Cost: of its 3 KiB an open zeroes the first 1.5 KiB.
 */
#include "handlers/inference/item.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/inference/item_private.h"

#define EXPECTED_MIN (64 << 10) /* shorter bodies are not worth guessing for */
/* Room behind a binary body for the outputs: as much as the tensors, INFO and RCOND of matrices
 * that are not tiny, the answer's JSON. */
#define ANSWER_SLACK 8192

#define TO(state) (1u << ITEM_##state)

/* The allowed moves. */
static const unsigned moves[ITEM_STATES] = {
    [ITEM_EMPTY] = TO(RECEIVING),
    [ITEM_RECEIVING] = TO(RECEIVED) | TO(EMPTY),
    [ITEM_RECEIVED] = TO(DECODED) | TO(EMPTY),
    [ITEM_DECODED] = TO(READY) | TO(EMPTY),
    [ITEM_READY] = TO(QUEUED) | TO(DONE) | TO(EMPTY),
    [ITEM_QUEUED] = TO(DONE),
    [ITEM_DONE] = TO(EMPTY),
};

void handlers__item_move(struct item *item, enum item_state to)
{
    int from = atomic_load_explicit(&item->state, memory_order_relaxed);
    assert((moves[from] & (1u << to)) != 0);
    atomic_store_explicit(&item->state, (int)to, memory_order_relaxed);
}

struct item *handlers__item_create(void)
{
    struct item *item = malloc(sizeof *item);
    if (item != NULL)
        memset(item, 0, offsetof(struct item, request));
    return item;
}

void handlers__item_destroy(struct item **item)
{
    assert(*item == NULL || (*item)->state == ITEM_EMPTY);
    free(*item);
    *item = NULL;
}

/* ---- The body ---- */

/* Where the first tensor begins in the body. */
static int64_t lead_of(const struct item_head *head)
{
    bool known = head->format == PROTO_FORMAT_V2 && head->json_bytes > 0 &&
                 head->coding == PROTO_CODING_IDENTITY;
    return known ? head->json_bytes : 0;
}

static bool is_binary(const struct item_head *head)
{
    return (head->format == PROTO_FORMAT_V2 && head->json_bytes > 0) ||
           head->format == PROTO_FORMAT_RAW || head->format == PROTO_FORMAT_NPY;
}

/* How much to take behind the body; 0 when its outputs cannot be guessed, or are not its own. */
static int64_t answer_guess(const struct item_head *head)
{
    if (!is_binary(head) || head->coding != PROTO_CODING_IDENTITY || head->later)
        return head->more_bytes;
    int64_t tensors = head->body_bytes - (head->json_bytes > 0 ? head->json_bytes : 0);
    return tensors + tensors / 16 + ANSWER_SLACK;
}

/* What the whole request is likely to need, as a multiple of its body: inflated text in a buffer
 * that doubles, numbers decoded from text, outputs, the answer's text, its compressed form. */
static int64_t expected_bytes(const struct item_head *head)
{
    static const int text_factor = 5, coded_text_factor = 16, coded_factor = 6, binary_factor = 2;
    bool coded = head->coding != PROTO_CODING_IDENTITY;
    int binary = head->later ? 1 : binary_factor;
    int factor = is_binary(head) ? (coded ? coded_factor : binary)
                                 : (coded ? coded_text_factor : text_factor);
    return head->body_bytes * factor; /* at most request-max: it cannot overflow */
}

/* What the request is likely to hold, its body's slot among it. A guess claims half of the arena at
 * most: what it lacks is asked for when it is known. */
static int64_t need_bytes(const struct item_memory *memory, const struct item_head *head)
{
    int64_t guess = head->body_bytes < EXPECTED_MIN ? 0 : expected_bytes(head);
    int64_t half = (int64_t)arena_bytes(memory->arena) / 2;
    guess = guess < half ? guess : half;
    return guess > memory->body_whole ? guess : memory->body_whole;
}

static void on_room(struct queue_reservation *reservation)
{
    struct item *item =
        (struct item *)((char *)reservation - offsetof(struct item, memory.reservation));
    item->source.on_room(item->source.context);
}

enum error handlers__item_open(struct item *item, const struct item_source *source,
                               const struct item_head *head, struct failure *failure)
{
    assert(item->state == ITEM_EMPTY && head->body_bytes >= 0);
    struct item_memory *memory = &item->memory;
    memset(item, 0, offsetof(struct item, request));
    item->source = *source;
    item->head = *head;
    item->request.batch = 0; /* not known yet */
    handlers__memory_init(memory, source->arena, source->queue);
    memory->reservation.client = source->client;
    memory->reservation.account = source->account;
    memory->reservation.arrived_ns = source->arrived_ns;
    memory->reservation.on_room = on_room;
    enum error error =
        handlers__memory_plan(memory, head->body_bytes, lead_of(head), answer_guess(head), failure);
    struct failure refusal; /* an error of admission takes precedence */
    if (error == ERROR_NONE)
        memory->reservation.need_bytes = need_bytes(memory, head);
    memory->reservation.sure_bytes = memory->body_whole;
    if (queue_enter(source->queue, &memory->reservation, &refusal) != ERROR_NONE) {
        *failure = refusal;
        return failure->code;
    }
    if (error != ERROR_NONE) {
        queue_leave(source->queue, &memory->reservation);
        return error;
    }
    handlers__item_move(item, ITEM_RECEIVING);
    return ERROR_NONE;
}

void handlers__item_close(struct item *item)
{
    handlers__item_move(item, ITEM_EMPTY);
    handlers__memory_free(&item->memory);
    queue_leave(item->source.queue, &item->memory.reservation);
}

bool handlers__item_make_room(struct item *item, int64_t bytes)
{
    assert(item->state == ITEM_RECEIVING);
    return handlers__memory_grow(&item->memory, bytes);
}

bool handlers__item_make_whole(struct item *item)
{
    struct item_head *head = &item->head;
    int64_t room_bytes;
    assert(item->state == ITEM_RECEIVED);
    if (!handlers__memory_settle(&item->memory))
        return false;
    item->body = handlers__memory_body(&item->memory, &room_bytes);
    assert(room_bytes >= item->body_bytes);
    if (head->format == PROTO_FORMAT_UNKNOWN && head->coding == PROTO_CODING_IDENTITY)
        head->format = proto_sniff(item->body, item->body_bytes);
    return true;
}

const unsigned char *handlers__item_received(const struct item *item, int64_t *bytes)
{
    assert(item->state == ITEM_RECEIVED);
    *bytes = item->body_bytes;
    return item->body;
}

const struct method *handlers__item_method(const struct item *item)
{
    return item->head.method != NULL ? item->head.method : item->source.method_default;
}

void handlers__item_adopt(struct item *item, const struct proto_request *request)
{
    if (item->state == ITEM_RECEIVING)
        handlers__item_receive(item, 0);
    item->request = *request;
    handlers__item_move(item, ITEM_DECODED);
}

bool handlers__item_stop_waiting(struct item *item)
{
    return queue_stop_waiting(item->source.queue, &item->memory.reservation);
}

unsigned char *handlers__item_body(struct item *item, int64_t *room_bytes)
{
    assert(item->state == ITEM_RECEIVING);
    return handlers__memory_body(&item->memory, room_bytes);
}

void handlers__item_receive(struct item *item, int64_t body_bytes)
{
    assert(body_bytes >= 0 && body_bytes <= item->head.body_bytes);
    item->body_bytes = body_bytes;
    handlers__item_move(item, ITEM_RECEIVED);
}

struct proto_request *handlers__item_request(struct item *item)
{
    assert(item->state >= ITEM_DECODED);
    return &item->request;
}

/* ---- The queue ---- */

/* The offset of a tensor that must lie in the arena. */
static struct engine_tensor arena_tensor(const struct item *item, const void *data, int64_t bytes)
{
    struct engine_tensor tensor = {.region = ENGINE_REGION_ARENA};
    bool is_inside =
        region_offset(arena_map(item->source.arena), data, bytes, &tensor.offset_bytes);
    assert(is_inside);
    return tensor;
}

static const struct engine_tensor absent = {.region = ENGINE_REGION_NONE};

static void fill_tensors(struct item *item)
{
    const struct proto_request *request = &item->request;
    const struct method *method = request->method;
    struct queue_item *queued = &item->queued;
    int inputs = method_input_count(method), outputs = method_output_count(method);
    for (int i = 0; i < METHOD_INPUTS_MAX; i++) {
        const void *data = i < inputs ? request->inputs[i].data : NULL;
        queued->inputs[i] = absent;
        if (data != NULL)
            queued->inputs[i] = arena_tensor(
                item, data,
                request->batch * method_tensor_bytes(&method->inputs[i], request->precision,
                                                     request->n, request->m, request->options));
    }
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++) {
        queued->outputs[i] = absent;
        if (i < outputs && item->outputs[i] != NULL)
            queued->outputs[i] =
                arena_tensor(item, item->outputs[i], handlers__item_output_bytes(request, i));
    }
}

void handlers__item_submit(struct item *item, void (*on_done)(struct queue_item *done), void *owner,
                           void *context)
{
    assert(handlers__item_needs_engine(item));
    const struct proto_request *request = &item->request;
    struct queue_item *queued = &item->queued;
    queued->method = request->method;
    queued->precision = request->precision;
    queued->priority = request->priority == 0 ? 2 : request->priority > 3 ? 3 : request->priority;
    queued->client = item->memory.reservation.client;
    queued->account = item->source.account;
    queued->batch = request->batch;
    queued->n = request->n;
    queued->m = request->m;
    memcpy(queued->options, request->options, sizeof queued->options);
    fill_tensors(item);
    queued->on_done = on_done;
    queued->owner = owner;
    item->context = context;
    handlers__item_move(item, ITEM_QUEUED);
    queue_submit(item->source.queue, queued);
}

void handlers__item_restore(struct item *item, const char *kernel, uint64_t queue_ns,
                            uint64_t compute_ns)
{
    struct queue_item *queued = &item->queued;
    snprintf(queued->kernel, sizeof queued->kernel, "%s", kernel);
    queued->queued_ns = 1; /* 0 would say that it was never queued */
    queued->started_ns = queued->queued_ns + queue_ns;
    queued->finished_ns = queued->started_ns + compute_ns;
    queued->compute_ns = compute_ns;
    handlers__item_move(item, ITEM_DONE);
}

void *handlers__item_done(struct queue_item *done)
{
    struct item *item = (struct item *)((char *)done - offsetof(struct item, queued));
    handlers__item_move(item, ITEM_DONE);
    item->memory.reservation.computed = true;
    return item->context;
}

void handlers__item_cancel(struct item *item)
{
    assert(item->state == ITEM_QUEUED || item->state == ITEM_DONE);
    queue_cancel(item->source.queue, &item->queued);
}

enum error handlers__item_failure(const struct item *item, struct failure *failure)
{
    assert(item->state == ITEM_DONE);
    switch (item->queued.status) {
    case ERROR_NONE:
        return ERROR_NONE;
    case ERROR_NO_ENGINE:
        return failure_set(failure, ERROR_NO_ENGINE,
                           "No engine came back in time to run this request; try again later.");
    case ERROR_POISON:
        return failure_set(failure, ERROR_POISON,
                           "The computation of this request ended its engine twice while it ran "
                           "alone. It will not be tried again. If the log has signal 9 (SIGKILL) "
                           "for the engine, the system may have been out of memory.");
    case ERROR_TOO_LARGE:
        return failure_set(failure, ERROR_TOO_LARGE,
                           "A matrix of this request does not fit the device's memory; send "
                           "smaller ones, or FP32 ones.");
    case ERROR_FULL:
        return failure_set(failure, ERROR_FULL,
                           "The service's memory is taken by other requests; try again later.");
    default:
        return failure_set(failure, ERROR_INTERNAL,
                           "The computation of this request failed. Send it once more; when it "
                           "fails again, the operator finds the reason in the service's log.");
    }
}

const struct queue_item *handlers__item_result(const struct item *item)
{
    assert(item->state == ITEM_DONE);
    return &item->queued;
}
