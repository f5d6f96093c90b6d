/* handlers/inference_steps.c: the way of an inference's item: decoded, submitted, surveyed,
 * encoded, sent.
 *
 * Short steps run on the loop, long ones in the pool. Compression is asked for by Accept-Encoding
 * and done when the answer is long enough. A full pool compresses nothing.
 *
 * Threads: see inference.h; functions named *_in_pool and *_in_queue run there.
 */
#include "base/checked.h"

#include <assert.h>
#include "base/clock.h"
#include "base/number.h"
#include "handlers/fetch.h"
#include "handlers/inference.h"
#include "handlers/posting.h"

/* ---- Decoding ---- */

/* Moves the deadline to what the client asked for, counted from when its body was complete: how
 * long that took is the network's affair. */
static void set_deadline(struct inference *inference)
{
    struct exchange *x = inference->x;
    const struct proto_request *request = handlers__item_request(inference->item);
    int64_t timeout_ns;
    if (request->timeout_us <= 0 ||
        !checked_mul(request->timeout_us, (int64_t)CLOCK_US, &timeout_ns))
        return;
    x->deadline_ns = inference->decoding_ns + (uint64_t)timeout_ns;
    x->door->deadline_moved(x);
}

enum error handlers__inference_admit(struct inference *inference, struct failure *failure)
{
    struct handlers *handlers = inference->handlers;
    const struct proto_request *request = handlers__item_request(inference->item);
    enum error error = inference->kind->decoded(inference, failure);
    if (inference->posting != NULL && (request->batch == 0 || request->n == 0))
        handlers__posting_free(&inference->posting); /* nothing is to be computed later */
    if (inference->posting != NULL)
        return error != ERROR_NONE ? error : handlers__posting_fit(inference, failure);
    if (inference->stats == NULL)
        inference->stats = handlers__stats_cell(handlers, inference->shard,
                                                handlers__model_of(handlers, request->method));
    if (error != ERROR_NONE)
        return error;
    set_deadline(inference);
    return handlers__item_take_outputs(inference->item, failure);
}

/* ---- The queue and back ---- */

static void on_computed(struct message *message)
{
    struct inference *inference = inference_of_message(message);
    handlers__stats_returned(inference->stats);
    if (!handlers__inference_return(inference))
        return;
    if (handlers__item_failure(inference->item, &inference->failure) != ERROR_NONE)
        handlers__inference_refuse(inference, &inference->failure);
    else
        handlers__inference_encode(inference);
}

static struct message *completion_of(struct queue_item *done)
{
    struct inference *inference = handlers__item_done(done);
    inference->message.run = on_computed;
    return &inference->message;
}

/* Posts the completions of all items that belong to one loop at once. */
static void on_done_in_queue(struct queue_item *done)
{
    struct message *first = completion_of(done), *last = first;
    const struct inference *inference = inference_of_message(first);
    struct mailbox *mailbox = inference->mailbox;
    int64_t requests = 1;
    while ((done = done->next) != NULL) {
        last->next = completion_of(done);
        last = last->next;
        requests++;
    }
    queue_computed(inference->handlers->services->queue, requests);
    mailbox_post_chain(mailbox, first, last);
}

static void submit(struct inference *inference)
{
    assert(!inference->busy && inference->stats != NULL);
    handlers__stats_submitted(inference->stats);
    handlers__inference_move(inference, INFERENCE_QUEUED);
    inference->busy = true;
    handlers__item_submit(inference->item, on_done_in_queue, inference->mailbox, inference);
}

/* ---- Decoding, on the loop or in the pool ---- */

/* On the loop; inference->status says how decoding went. */
static void decoded(struct inference *inference)
{
    enum error error = inference->status;
    if (error == ERROR_NONE)
        error = handlers__inference_admit(inference, &inference->failure);
    if (error != ERROR_NONE) {
        handlers__inference_refuse(inference, &inference->failure);
        return;
    }
    if (inference->posting != NULL) {
        handlers__posting_start(inference);
        return;
    }
    if (handlers__item_needs_engine(inference->item)) {
        submit(inference);
        return;
    }
    handlers__item_fill_empty(inference->item);
    handlers__inference_encode(inference);
}

static void on_decoded(struct message *message)
{
    struct inference *inference = inference_of_message(message);
    if (handlers__inference_return(inference))
        decoded(inference);
}

/* Any thread. */
static enum error decode(struct inference *inference)
{
    if (inference->posting != NULL) {
        enum error error = handlers__posting_digest_body(inference->posting, &inference->failure);
        if (error != ERROR_NONE)
            return error;
    }
    return handlers__item_decode(inference->item, &inference->failure);
}

static void decode_in_pool(struct workers_task *task)
{
    struct inference *inference = inference_of_task(task);
    inference->status = decode(inference);
    handlers__inference_post(inference, on_decoded);
}

void handlers__inference_decode(struct inference *inference)
{
    struct item *item = inference->item;
    bool digest_is_long =
        inference->posting != NULL && handlers__posting_digest_is_long(inference->posting);
    if (!digest_is_long && !handlers__item_decode_is_long(item)) {
        handlers__inference_move(inference, INFERENCE_DECODING);
        inference->status = decode(inference);
        decoded(inference);
        return;
    }
    enum inference_state state =
        handlers__item_is_compressed(item) ? INFERENCE_INFLATING : INFERENCE_DECODING;
    if (handlers__inference_to_pool(inference, state, decode_in_pool) != ERROR_NONE) {
        failure_set(&inference->failure, ERROR_FULL,
                    "Too many bodies wait to be decoded; try again later.");
        handlers__inference_refuse(inference, &inference->failure);
    }
}

/* ---- Encoding, on the loop or in the pool ---- */

/* Any thread. */
static enum error encode(struct inference *inference)
{
    struct item *item = inference->item;
    const struct proto_request *request = handlers__item_request(item);
    void *const *outputs = handlers__item_outputs(item);
    if (inference->kind->refuses == NULL) {
        handlers__survey_count(request, outputs, &inference->survey);
    } else {
        handlers__survey_make(request, outputs, &inference->survey);
        inference->refused = inference->kind->refuses(request, &inference->survey);
    }
    const struct fetch *fetch = inference->fetch;
    if (!inference->refused && fetch != NULL && fetch->job.state == JOB_FAILED)
        return failure_set(&inference->failure, ERROR_INTERNAL,
                           "The job failed, and its outputs do not say why.");
    if (inference->refused)
        return ERROR_NONE;
    if (fetch != NULL && fetch->from_file) {
        handlers__fetch_encode(inference->fetch, &inference->answer.body);
        inference->answer.coding = PROTO_CODING_IDENTITY;
        return ERROR_NONE;
    }
    return handlers__answer_encode(item, &inference->compression, &inference->answer,
                                   &inference->failure);
}

static uint64_t between(uint64_t from_ns, uint64_t to_ns)
{
    return from_ns != 0 && to_ns > from_ns ? to_ns - from_ns : 0;
}

static void note_work(const struct inference *inference)
{
    const struct proto_request *request = handlers__item_request(inference->item);
    const struct queue_item *item = handlers__item_result(inference->item);
    inference->x->work = (struct exchange_work){
        .method = request->method->name,
        .n = request->n,
        .batch = request->batch,
        .queue_ns = between(item->queued_ns, item->started_ns),
        .compute_ns = item->compute_ns,
    };
}

/* On the loop; inference->status says how encoding went. */
static void encoded(struct inference *inference)
{
    assert(inference->x != NULL && !inference->busy);
    note_work(inference);
    if (inference->status != ERROR_NONE) {
        handlers__inference_refuse(inference, &inference->failure);
        return;
    }
    struct queue_account *account = handlers__account(inference->x);
    if (inference->fetch == NULL) { /* else they were counted when the job was computed */
        handlers__stats_inversions(inference->stats,
                                   handlers__item_request(inference->item)->precision,
                                   inference->survey.infos);
        handlers__stats_accuracy(inference->stats, &inference->survey);
    }
    if (inference->fetch == NULL && account != NULL)
        queue_account_inverted(account, handlers__item_request(inference->item)->batch);
    inference->kind->answer(inference);
}

static void on_encoded(struct message *message)
{
    struct inference *inference = inference_of_message(message);
    if (handlers__inference_return(inference))
        encoded(inference);
}

static void encode_in_pool(struct workers_task *task)
{
    struct inference *inference = inference_of_task(task);
    inference->status = encode(inference);
    handlers__inference_post(inference, on_encoded);
}

void handlers__inference_encode(struct inference *inference)
{
    const struct handlers_limits *limits = &inference->handlers->services->limits;
    struct answer_compression *compression = &inference->compression;
    inference->encoding_ns = clock_now_ns();
    compression->level = limits->compress_level;
    compression->min_bytes = limits->compress_min_bytes;
    compression->coding = PROTO_CODING_IDENTITY;
    /* A result that is taken from its file, or in ranges, goes out as it is. */
    bool is_whole = inference->fetch == NULL || (!inference->fetch->from_file &&
                                                 exchange_header(inference->x, "Range") == NULL);
    if (is_whole && handlers__item_answer_max_bytes(inference->item) >= limits->compress_min_bytes)
        compression->coding =
            proto_coding_accepted(exchange_header(inference->x, "Accept-Encoding"));
    const bool compresses = compression->coding != PROTO_CODING_IDENTITY;
    const bool is_long = handlers__answer_is_long(inference->item);
    if (is_long || compresses) {
        enum inference_state state = compresses ? INFERENCE_DEFLATING : INFERENCE_ENCODING;
        if (handlers__inference_to_pool(inference, state, encode_in_pool) == ERROR_NONE)
            return;
        if (is_long) {
            failure_set(&inference->failure, ERROR_FULL,
                        "Too many answers wait to be encoded; try again later.");
            handlers__inference_refuse(inference, &inference->failure);
            return;
        }
        compression->coding = PROTO_CODING_IDENTITY;
    }
    handlers__inference_move(inference, INFERENCE_ENCODING);
    inference->status = encode(inference);
    encoded(inference);
}

/* ---- Sending ---- */

static void count_success(struct inference *inference)
{
    if (inference->fetch != NULL)
        return;
    const struct queue_item *item = handlers__item_result(inference->item);
    uint64_t now_ns = clock_now_ns();
    uint64_t decoded_ns = item->queued_ns != 0 ? item->queued_ns : inference->encoding_ns;
    struct stats_times times = {
        .total_ns = between(inference->arrived_ns, now_ns),
        .queue_ns = between(item->queued_ns, item->started_ns),
        .input_ns = between(inference->decoding_ns, decoded_ns),
        .infer_ns = between(item->started_ns, item->finished_ns),
        .output_ns = between(inference->encoding_ns, now_ns),
    };
    handlers__stats_success(inference->stats, &times,
                            handlers__item_request(inference->item)->batch);
}

/* The reply's last byte has gone. */
static void release_reply(void *context)
{
    handlers__inference_release(context);
}

void handlers__inference_send(struct inference *inference, struct exchange_reply *reply)
{
    const struct proto_answer *answer = &inference->answer.body;
    assert(!inference->refused && inference->status == ERROR_NONE);
    char json_bytes[NUMBER_TEXT_MAX + 1];
    handlers__reply_field(reply, "Content-Type", answer->content_type);
    if (answer->json_bytes >= 0) {
        json_bytes[number_write_i64(json_bytes, answer->json_bytes)] = '\0';
        handlers__reply_field(reply, "Inference-Header-Content-Length", json_bytes);
    }
    if (inference->answer.coding != PROTO_CODING_IDENTITY)
        handlers__reply_field(reply, "Content-Encoding",
                              proto_coding_name(inference->answer.coding));
    /* Also when it is not compressed: another client's might be. */
    handlers__reply_field(reply, "Vary", "Accept-Encoding");
    for (int i = 0; i < answer->segment_count; i++)
        handlers__reply_segment(reply, answer->segments[i].iov_base, answer->segments[i].iov_len);
    if (inference->fetch != NULL)
        handlers__fetch_finish(inference->fetch, reply,
                               inference->answer.coding == PROTO_CODING_IDENTITY);
    reply->release = release_reply;
    reply->context = inference;
    count_success(inference);
    handlers__inference_move(inference, INFERENCE_ANSWERED);
    exchange_answer(handlers__inference_detach(inference), reply);
}

void handlers__inference_send_text(struct inference *inference, struct exchange_reply *reply,
                                   const char *content_type, struct text *text)
{
    uint64_t now_ns = clock_now_ns();
    if (inference->fetch != NULL)
        handlers__fetch_finish(inference->fetch, reply, false);
    else
        handlers__stats_failure(inference->stats, between(inference->arrived_ns, now_ns));
    handlers__reply_text(handlers__inference_detach(inference), reply, content_type, text);
    handlers__inference_release(inference);
}
