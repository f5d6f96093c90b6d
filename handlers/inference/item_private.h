/* handlers/inference/item_private.h: what the files of an item share. */
#ifndef HANDLERS_INFERENCE_ITEM_PRIVATE_H
#define HANDLERS_INFERENCE_ITEM_PRIVATE_H

#include "handlers/inference/item.h"
#include "handlers/inference/memory.h"

enum item_state {
    ITEM_EMPTY,
    ITEM_RECEIVING,
    ITEM_RECEIVED,
    ITEM_DECODED,
    ITEM_READY,
    ITEM_QUEUED,
    ITEM_DONE,
    ITEM_STATES
};

struct item {
    _Atomic int state; /* enum item_state; atomic for a cancel while the queue finishes the item */
    struct item_source source;
    struct item_head head;
    unsigned char *body;
    int64_t body_bytes, answer_max_bytes;
    void *outputs[METHOD_OUTPUTS_MAX];
    void *context;
    struct item_memory memory;
    struct queue_item queued;
    /* From here on nothing is set by open. */
    struct proto_request request; /* from DECODED on */
};

/* The only place where the state changes. */
void handlers__item_move(struct item *item, enum item_state to);
/* Bytes of one output for the whole batch, rounded up as a take is; 0 when it is not wanted, -1 on
 * overflow. */
int64_t handlers__item_output_bytes(const struct proto_request *request, int output);
/* Why the last take of memory failed. To send fewer matrices is no advice to the sender of one. */
enum error handlers__item_memory_failure(const struct item *item, struct failure *failure);

#endif
