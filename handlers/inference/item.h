/* handlers/inference/item.h: one decoded request: from a body's bytes to what the queue takes.
 *
 * It knows no exchange: over HTTP an inference owns it.
 *
 *     EMPTY      nothing
 *     RECEIVING  the head is known and the client counted; the body's slot grows as it comes
 *     RECEIVED   the body is complete
 *     DECODED    method, shapes, options and inputs are known
 *     READY      the outputs have memory, and so will the encoder have
 *     QUEUED     the queue borrows the item
 *     DONE       the queue has let go; outputs and result are there
 *
 * Every state but QUEUED may go back to EMPTY. An item that needs no engine passes QUEUED by.
 *
 * Threads: one at a time. While the item is QUEUED, only the queue touches it,
 * but for a cancel.
 * Ownership: an item owns its arena slots, with body, inputs, outputs and the encoded answer; all
 * go back at close. The queue counts them for the client.
 * Cost: 3 KiB an item, to be opened and closed many times.
 */
#ifndef HANDLERS_INFERENCE_ITEM_H
#define HANDLERS_INFERENCE_ITEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "proto/coding.h"
#include "proto/proto.h"
#include "queue/queue.h"

struct item;

/* Where items take memory from, what bounds them, and for whom. All borrowed until close. */
struct item_source {
    struct arena *arena;
    struct queue *queue; /* which counts the arena's bytes for the client */
    const struct method *method_default;
    int64_t inflated_max_bytes;
    /* Who asks. */
    uint32_t client;               /* its address's number */
    struct queue_account *account; /* NULL: none */
    uint64_t arrived_ns;           /* the request: clock_now_ns */
    /* Memory that an item waited for is there: once a wait, on any thread. */
    void (*on_room)(void *context);
    void *context;
};

/* What is known before the body is. */
struct item_head {
    const struct method *method; /* NULL: the body names it, or it is the default */
    enum proto_format format;
    enum proto_coding coding;
    int64_t json_bytes; /* Inference-Header-Content-Length; -1: none */
    int64_t body_bytes;
    bool later;         /* its outputs are a job's: no room for them is needed here */
    int64_t more_bytes; /* of an item that is restored: what it is going to hold */
};

/* NULL when out of memory; EMPTY. */
struct item *handlers__item_create(void);
void handlers__item_destroy(struct item **item); /* must be EMPTY */

/* Counts the request in (queue_enter), and takes memory for a small body. After a failure the item
 * is EMPTY, and nothing is counted. */
ERROR_MUST_CHECK enum error handlers__item_open(struct item *item, const struct item_source *source,
                                                const struct item_head *head,
                                                struct failure *failure);
/* Gives all memory back, and counts the request out. It does not wait. */
void handlers__item_close(struct item *item);

/* Takes memory for the body's first so many bytes. false: none is free, and source.on_room comes;
 * then this is called again. It may move the body. */
ERROR_MUST_CHECK bool handlers__item_make_room(struct item *item, int64_t bytes);
/* The same for all that the request is likely to need besides, once its body has come. */
ERROR_MUST_CHECK bool handlers__item_make_whole(struct item *item);
/* Stops waiting. false: on_room has come, or comes. */
ERROR_MUST_CHECK bool handlers__item_stop_waiting(struct item *item);

/* Where the body's first bytes belong, and how many there is room for; lent until the next
 * make_room, or until the item is RECEIVED. */
unsigned char *handlers__item_body(struct item *item, int64_t *room_bytes);
void handlers__item_receive(struct item *item, int64_t body_bytes);

/* The body of an item that is RECEIVED and whole: lent until it is decoded. */
const unsigned char *handlers__item_received(const struct item *item, int64_t *bytes);

/* ---- decode.c: from bytes to tensors ---- */

bool handlers__item_is_compressed(const struct item *item); /* the body */
/* Whether decoding takes long enough to need the work pool. */
bool handlers__item_decode_is_long(const struct item *item);
ERROR_MUST_CHECK enum error handlers__item_decode(struct item *item, struct failure *failure);
/* Lent until close. From DECODED on; options may be set until the outputs are taken. */
struct proto_request *handlers__item_request(struct item *item);

/* The method that the head or the source names. */
const struct method *handlers__item_method(const struct item *item);
/* In place of a body and its decoding: the request is known. RECEIVING -> DECODED. */
void handlers__item_adopt(struct item *item, const struct proto_request *request);

/* ---- outputs.c: memory for the answer ---- */

/* The outputs that the request wants, a bit each. */
uint32_t handlers__item_wanted(const struct proto_request *request);
/* Checks the order against the method's limit. */
ERROR_MUST_CHECK enum error handlers__item_check(const struct item *item, struct failure *failure);

/* Checks the order against the method's limit, takes memory for the outputs that are wanted, and
 * reserves what the encoder will take. */
ERROR_MUST_CHECK enum error handlers__item_take_outputs(struct item *item, struct failure *failure);
/* The same without some of the outputs, a bit each, which the answer does without. */
ERROR_MUST_CHECK enum error handlers__item_take_some_outputs(struct item *item, uint32_t left_out,
                                                             struct failure *failure);
int64_t handlers__item_answer_max_bytes(const struct item *item); /* outputs and their encoding */
/* One for each of the method's, NULL for those not wanted. Lent until close. */
void *const *handlers__item_outputs(const struct item *item);
/* No matrices, or matrices of order 0. */
bool handlers__item_needs_engine(const struct item *item);
/* Gives the outputs of an item that needs no engine; then it is DONE. */
void handlers__item_fill_empty(struct item *item);

/* Its outputs hold what an engine once computed. READY -> DONE. */
void handlers__item_restore(struct item *item, const char *kernel, uint64_t queue_ns,
                            uint64_t compute_ns);

/* ---- The queue ---- */

/* on_done comes as queue_item.on_done does; items with the same on_done and owner may come
 * together. context: the caller's own. */
void handlers__item_submit(struct item *item, void (*on_done)(struct queue_item *done), void *owner,
                           void *context);
/* In on_done, once for each item: its context. The item is DONE, and is to be counted for
 * queue_computed. */
void *handlers__item_done(struct queue_item *done);
void handlers__item_cancel(struct item *item); /* see queue_cancel */
/* Of an item that is DONE: why it has no outputs, or NONE. */
ERROR_MUST_CHECK enum error handlers__item_failure(const struct item *item,
                                                   struct failure *failure);
/* Kernel and times of an item that is DONE. */
const struct queue_item *handlers__item_result(const struct item *item);

#endif
