/* decode.c: from a whole body to an item in the queue.
 *
 * What is short runs on the loop: little text, or binary tensors that are used where they lie,
 * whatever their length. Inflating, long text, archives and arrays that have to be transposed or
 * moved go to the pool. Afterwards, on the loop: what the door still asks, limits,
 * the outputs' memory, the item.
 *
 * Threads: see inference.h; functions named *_away run in the pool.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "handlers/inference/inference.h"

#define ANSWER_TAKES_BYTES 256 /* lost to alignment when an encoder takes its memory in pieces */

static struct inference *of_item(struct queue_item *item)
{
    return (struct inference *)((char *)item - offsetof(struct inference, item));
}

/* ---- Decoding ---- */

/* An archive may inflate to any multiple of its length. */
static bool is_long(const struct inference *inference)
{
    const struct inference_head *head = &inference->head;
    return head->coding != PROTO_CODING_IDENTITY || head->format == PROTO_FORMAT_NPZ ||
           proto_request_is_long(head->format, inference->body, inference->body_bytes,
                                 head->json_bytes);
}

/* What the first bytes of an unknown body tell of what went wrong. */
static enum error refuse_format(const unsigned char *body, int64_t length, struct failure *failure)
{
    const char *hint = "";
    if (length >= 2 && memcmp(body, "\x1f\x8b", 2) == 0)
        hint = " It begins as gzip does: name that in Content-Encoding.";
    else if (length >= 3 && memcmp(body, "\xef\xbb\xbf", 3) == 0)
        hint = " It begins with a byte order mark: leave that out.";
    return failure_set(failure, ERROR_UNSUPPORTED_MEDIA,
                       "The body is neither an .npy nor an .npz file nor a JSON object; send one "
                       "of these, with its Content-Type.%s",
                       hint);
}

static enum error decode_format(struct inference *inference, unsigned char *body, int64_t length)
{
    struct proto_space *space = &inference->memory.space;
    struct proto_request *request = &inference->request;
    struct failure *failure = &inference->failure;
    enum error error = proto_check_format(inference->head.format, body, length, failure);
    if (error != ERROR_NONE)
        return error;
    switch (inference->head.format) {
    case PROTO_FORMAT_V2:
        return proto_v2_decode(body, length, inference->head.json_bytes, space, request, failure);
    case PROTO_FORMAT_RAW:
        return proto_raw_decode(body, length, space, request, failure);
    case PROTO_FORMAT_NPY:
        return proto_npy_decode(body, length, space, request, failure);
    case PROTO_FORMAT_NPZ:
        return proto_npz_decode(body, length, space, request, failure);
    case PROTO_FORMAT_JSON:
        return proto_json_decode(body, length, space, request, failure);
    case PROTO_FORMAT_UNKNOWN:
        break;
    }
    return refuse_format(body, length, failure);
}

/* Text has been read and archives unpacked: their bytes serve nobody. */
static void drop_body_if_unused(struct inference *inference)
{
    const unsigned char *from = inference->body, *to = from + inference->body_bytes;
    for (int i = 0; i < METHOD_INPUTS_MAX; i++) {
        const unsigned char *data = inference->request.inputs[i].data;
        if (data != NULL && data >= from && data <= to)
            return;
    }
    handlers__memory_drop_body(&inference->memory);
}

/* Any thread. */
static enum error decode(struct inference *inference)
{
    struct inference_head *head = &inference->head;
    unsigned char *body = inference->body;
    int64_t length = inference->body_bytes;
    inference->request.batch = 0; /* not known yet */
    if (head->coding != PROTO_CODING_IDENTITY) {
        enum error error =
            proto_inflate(head->coding, body, length, head->format, head->json_bytes,
                          inference->handlers->services->limits.body_max_bytes,
                          &inference->memory.space, &body, &length, &inference->failure);
        if (error != ERROR_NONE)
            return error;
        handlers__memory_drop_body(&inference->memory);
    }
    if (head->format == PROTO_FORMAT_UNKNOWN)
        head->format = proto_sniff(body, length);
    /* Only /v1 JSON can name a method itself. */
    const struct method *method = NULL;
    if (head->model != NULL)
        method = head->model->method;
    else if (head->format != PROTO_FORMAT_JSON)
        method = inference->handlers->initial->method;
    proto_request_init(&inference->request, head->format, method);
    inference->request.inflated_max = inference->handlers->services->limits.body_max_bytes;
    enum error error = decode_format(inference, body, length);
    if (error == ERROR_NONE)
        drop_body_if_unused(inference);
    return error;
}

/* ---- After decoding ---- */

/* Numbers always are, but for one that takes work of its own. */
static bool is_wanted(const struct proto_request *request, int output)
{
    const struct method_tensor *tensor = &request->method->outputs[output];
    if (tensor->rank == 0 && !tensor->optional)
        return true;
    for (int i = 0; i < request->output_count; i++)
        if (request->outputs[i].index == output)
            return true;
    return false;
}

/* Bytes of one output for the whole batch, rounded up as a take is; 0 when nobody wants it, -1 on
 * overflow. */
static int64_t output_bytes(const struct proto_request *request, int output)
{
    if (!is_wanted(request, output))
        return 0;
    int64_t one = method_tensor_bytes(&request->method->outputs[output], request->precision,
                                      request->n, request->m, request->options);
    int64_t all;
    if (one < 0 || !checked_mul(one, request->batch, &all) ||
        !checked_round_up(all, HANDLERS_MEMORY_ALIGN, &all))
        return -1;
    return all;
}

/* Whether a part of the inverse may be asked for. */
static bool has_ranges(const struct method *method)
{
    for (int i = 0; i < METHOD_OPTIONS_MAX && method->options[i].name != NULL; i++)
        if (method->options[i].kind == METHOD_OPTION_RANGE)
            return true;
    return false;
}

/* Why there was no memory. To send fewer matrices is no advice to the sender of one. */
static enum error memory_failure(const struct inference *inference, struct failure *failure)
{
    const struct proto_request *request = &inference->request;
    enum error error = handlers__memory_failure(&inference->memory, failure);
    if (error != ERROR_TOO_LARGE || request->batch != 1)
        return error;
    return failure_set(failure, ERROR_TOO_LARGE,
                       "The matrix and its answer need at least %lld bytes, the whole arena has "
                       "%llu; %sstart invertd with a larger --arena-size.",
                       (long long)inference->memory.wanted_bytes,
                       (unsigned long long)arena_bytes(inference->memory.arena),
                       has_ranges(request->method)
                           ? "ask for a part of the inverse (rows, columns), for its diagonal "
                             "alone (outputs), or "
                           : "");
}

/* Takes memory for the wanted outputs, and makes sure of what the encoder will take. */
static enum error take_outputs(struct inference *inference, struct failure *failure)
{
    const struct proto_request *request = &inference->request;
    struct inference_memory *memory = &inference->memory;
    int64_t bytes[METHOD_OUTPUTS_MAX];
    int64_t total = proto_answer_bound(request);
    bool fits = checked_add(total, ANSWER_TAKES_BYTES, &total);
    int count = method_output_count(request->method);
    for (int i = 0; i < count && fits; i++) {
        bytes[i] = output_bytes(request, i);
        fits = checked_add(total, bytes[i], &total);
    }
    if (!fits)
        return failure_set(failure, ERROR_TOO_LARGE,
                           "The answer would be too large; send fewer matrices at once.");
    if (!handlers__memory_reserve(memory, total))
        return memory_failure(inference, failure);
    inference->answer_max_bytes = total;
    for (int i = 0; i < count; i++)
        if (is_wanted(request, i))
            inference->outputs[i] = handlers__memory_take(memory, bytes[i]);
    return ERROR_NONE;
}

/* Moves the deadline to what the client asked for, counted from when its body was complete: how
 * long that took is the network's affair. */
static void set_deadline(struct inference *inference)
{
    struct exchange *x = inference->x;
    int64_t timeout_ns;
    if (inference->request.timeout_us <= 0 ||
        !checked_mul(inference->request.timeout_us, (int64_t)CLOCK_US, &timeout_ns))
        return;
    x->deadline_ns = inference->decoding_ns + (uint64_t)timeout_ns;
    x->door->deadline_moved(x);
}

/* The door's questions, the limits, the outputs' memory. */
static enum error admit(struct inference *inference, struct failure *failure)
{
    const struct proto_request *request = &inference->request;
    inference->head.model = handlers__model_of(inference->handlers, request->method);
    if (inference->stats == NULL)
        inference->stats =
            handlers__stats_cell(inference->handlers, inference->shard, inference->head.model);
    if (inference->kind->decoded != NULL) {
        enum error error = inference->kind->decoded(inference, failure);
        if (error != ERROR_NONE)
            return error;
    }
    if (request->n > request->method->n_max)
        return failure_set(failure, ERROR_TOO_LARGE,
                           "The order is %lld; this method takes up to %lld.",
                           (long long)request->n, (long long)request->method->n_max);
    set_deadline(inference);
    return take_outputs(inference, failure);
}

/* What an output of a matrix of order 0 has as its number `at`, its rows having `columns`. */
static double number_when_empty(enum method_empty when_empty, int64_t at, int64_t columns)
{
    if (when_empty == METHOD_EMPTY_IDENTITY)
        return at % (columns + 1) == 0;
    if (when_empty == METHOD_EMPTY_ONE_ZERO)
        return at == 0 ? 0 : (double)NAN;
    return when_empty == METHOD_EMPTY_ONES;
}

/* An output of order 0, of REALs, for every matrix of the request. */
static void fill_empty(const struct proto_request *request, int output, void *numbers)
{
    const struct method_tensor *tensor = &request->method->outputs[output];
    int64_t unit = precision_bytes(request->precision);
    int64_t count =
        method_tensor_bytes(tensor, request->precision, 0, request->m, request->options) / unit;
    int64_t columns = 1;
    if (tensor->rank > 0)
        columns =
            method_dim_length(tensor->dims[tensor->rank - 1], 0, request->m, request->options);
    for (int64_t i = 0; i < request->batch * count; i++) {
        double number = number_when_empty(tensor->when_empty, i % count, columns);
        if (request->precision == PRECISION_FP32)
            ((float *)numbers)[i] = (float)number;
        else
            ((double *)numbers)[i] = number;
    }
}

/* What no engine is needed for: no matrices, or matrices of order 0. */
static void answer_empty(struct inference *inference)
{
    const struct proto_request *request = &inference->request;
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++) {
        if (inference->outputs[i] == NULL)
            continue;
        memset(inference->outputs[i], 0, (size_t)output_bytes(request, i));
        if (request->n == 0 && request->method->outputs[i].when_empty != METHOD_EMPTY_ZEROS)
            fill_empty(request, i, inference->outputs[i]);
    }
    static const char no_kernel[] = "none";
    memcpy(inference->item.kernel, no_kernel, sizeof no_kernel);
    handlers__inference_answer(inference);
}

/* The offset of a tensor that must lie in the arena. */
static struct engine_tensor arena_tensor(const struct inference *inference, const void *data,
                                         int64_t bytes)
{
    const struct arena *arena = inference->memory.arena;
    const unsigned char *at = data, *base = arena_base(arena);
    assert(at >= base && bytes >= 0);
    uint64_t offset_bytes = (uint64_t)(at - base);
    assert(offset_bytes <= arena_bytes(arena) &&
           (uint64_t)bytes <= arena_bytes(arena) - offset_bytes);
    return (struct engine_tensor){.offset_bytes = offset_bytes, .region = ENGINE_REGION_ARENA};
}

static const struct engine_tensor absent = {.region = ENGINE_REGION_NONE};

static void fill_tensors(struct inference *inference)
{
    const struct proto_request *request = &inference->request;
    const struct method *method = request->method;
    struct queue_item *item = &inference->item;
    int inputs = method_input_count(method), outputs = method_output_count(method);
    for (int i = 0; i < METHOD_INPUTS_MAX; i++) {
        const void *data = i < inputs ? request->inputs[i].data : NULL;
        item->inputs[i] = absent;
        if (data != NULL)
            item->inputs[i] = arena_tensor(
                inference, data,
                request->batch * method_tensor_bytes(&method->inputs[i], request->precision,
                                                     request->n, request->m, request->options));
    }
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++) {
        item->outputs[i] = absent;
        if (i < outputs && inference->outputs[i] != NULL)
            item->outputs[i] =
                arena_tensor(inference, inference->outputs[i], output_bytes(request, i));
    }
}

static void on_computed(struct letter *letter);

/* The queue's thread: nothing but the way home, of all that live on one loop at once. */
static void on_done_away(struct queue_item *item)
{
    struct inference *inference = of_item(item);
    struct mailbox *home = inference->home;
    struct letter *first = &inference->letter, *last = first;
    first->open = on_computed;
    while ((item = item->next) != NULL) {
        last->next = &of_item(item)->letter;
        last = last->next;
        last->open = on_computed;
    }
    mailbox_post_chain(home, first, last);
}

static void submit(struct inference *inference)
{
    const struct proto_request *request = &inference->request;
    struct queue_item *item = &inference->item;
    item->method = request->method;
    item->precision = request->precision;
    item->priority = request->priority == 0 ? 2 : request->priority == 1 ? 1 : 3;
    item->client = inference->client;
    item->batch = request->batch;
    item->n = request->n;
    item->m = request->m;
    memcpy(item->options, request->options, sizeof item->options);
    fill_tensors(inference);
    item->on_done = on_done_away;
    item->owner = inference->home;
    handlers__stats_submitted(inference->stats);
    handlers__inference_move(inference, INFERENCE_QUEUED);
    inference->away = true;
    queue_submit(inference->handlers->services->queue, item);
}

/* On the loop; inference->status says how decoding went. */
static void decoded(struct inference *inference)
{
    enum error error = inference->status;
    if (error == ERROR_FULL)
        memory_failure(inference, &inference->failure);
    if (error == ERROR_NONE)
        error = admit(inference, &inference->failure);
    if (error != ERROR_NONE) {
        handlers__inference_refuse(inference, &inference->failure);
        return;
    }
    if (inference->request.batch == 0 || inference->request.n == 0)
        answer_empty(inference);
    else
        submit(inference);
}

static void on_decoded(struct letter *letter)
{
    struct inference *inference = inference_of_letter(letter);
    if (handlers__inference_arrive(inference))
        decoded(inference);
}

static void decode_away(struct workers_task *task)
{
    struct inference *inference = inference_of_task(task);
    inference->status = decode(inference);
    handlers__inference_come_home(inference, on_decoded);
}

void handlers__inference_decode(struct inference *inference)
{
    struct inference_head *head = &inference->head;
    if (head->format == PROTO_FORMAT_UNKNOWN && head->coding == PROTO_CODING_IDENTITY)
        head->format = proto_sniff(inference->body, inference->body_bytes);
    if (!is_long(inference)) {
        handlers__inference_move(inference, INFERENCE_DECODING);
        inference->status = decode(inference);
        decoded(inference);
        return;
    }
    enum inference_state state =
        head->coding == PROTO_CODING_IDENTITY ? INFERENCE_DECODING : INFERENCE_INFLATING;
    if (handlers__inference_to_pool(inference, state, decode_away) != ERROR_NONE) {
        failure_set(&inference->failure, ERROR_FULL,
                    "Too many bodies wait to be decoded; try again later.");
        handlers__inference_refuse(inference, &inference->failure);
    }
}

/* ---- Back from the queue ---- */

/* Why an item came back without a result. */
static enum error item_failure(const struct queue_item *item, struct failure *failure)
{
    switch (item->status) {
    case ERROR_NONE:
        return ERROR_NONE;
    case ERROR_NO_ENGINE:
        return failure_set(failure, ERROR_NO_ENGINE,
                           "No engine came back in time to run this request; try again later.");
    case ERROR_POISON:
        return failure_set(failure, ERROR_POISON,
                           "The computation of this request ended its engine twice while it ran "
                           "alone. It will not be tried again.");
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

static void on_computed(struct letter *letter)
{
    struct inference *inference = inference_of_letter(letter);
    handlers__stats_returned(inference->stats);
    if (!handlers__inference_arrive(inference))
        return;
    if (item_failure(&inference->item, &inference->failure) != ERROR_NONE)
        handlers__inference_refuse(inference, &inference->failure);
    else
        handlers__inference_answer(inference);
}
