/* handlers/inference.h: the life of one inference over HTTP, the same for /v1 and /v2.
 *
 *                 RECEIVING          the body arrives in an arena slot, or waits for memory
 *          INFLATING | DECODING      in the pool, or on the loop when it is short
 *                  QUEUED            the queue holds the item
 *                 ACCEPTING          or it becomes a job: posting.h
 *                 LOADING            a job's result becomes the item: fetch.h
 *          ENCODING | DEFLATING      in the pool, or on the loop when it is short
 *                 ANSWERED           the reply's segments are lent to the door
 *                   FREE             memory returned, the queue's count left, object idle
 *
 * ABANDONED: the exchange has ended while the pool or the queue still holds the inference; it is
 * freed when they let go. With n = 0 or no matrices the queue is passed by.
 *
 * What knows the exchange is here; handlers/inference/ has the steps from bytes to bytes: an item
 * (decoded request), its survey (INFO over all matrices) and its answer.
 *
 * Threads: state and all decisions belong to the exchange's loop. While `busy` is set, a task of
 * the pool or the queue works on the inference, and the loop touches `x`, `state` and `busy`
 * alone. Both end by posting the message to the loop, which clears `busy`.
 * Ownership: the object owns its item, whose arena slots the queue counts for the client, and one
 * queue_enter; all go back exactly once, when the last of exchange, pool, queue and reply lets
 * go.
 */
#ifndef HANDLERS_INFERENCE_H
#define HANDLERS_INFERENCE_H

#include <stddef.h>

#include "base/mailbox.h"
#include "base/workers.h"
#include "handlers/handlers_private.h"
#include "handlers/inference/answer.h"
#include "handlers/inference/item.h"
#include "handlers/inference/survey.h"
#include "handlers/stats.h"

enum inference_state {
    INFERENCE_FREE,
    INFERENCE_RECEIVING,
    INFERENCE_INFLATING,
    INFERENCE_DECODING,
    INFERENCE_QUEUED,
    INFERENCE_ACCEPTING,
    INFERENCE_LOADING,
    INFERENCE_ENCODING,
    INFERENCE_DEFLATING,
    INFERENCE_ANSWERED,
    INFERENCE_ABANDONED,
    INFERENCE_STATES
};

/* Where /v1 and /v2 differ. All but refuses run on the loop. */
struct inference_kind {
    bool has_jobs; /* Prefer: respond-async makes one */
    /* Reads the fields of the head that are not common to both: body_bytes and coding are set. */
    enum error (*read_head)(struct exchange *x, struct item_head *head, struct failure *failure);
    /* Reads options that are not in the body, once that is decoded. */
    enum error (*decoded)(struct inference *inference, struct failure *failure);
    /* True: the survey forbids a good answer; nothing is encoded. NULL: never, and the survey
     * counts INFO alone. Any thread. */
    bool (*refuses)(const struct proto_request *request, const struct survey *survey);
    void (*answer)(struct inference *inference);
};

struct posting;
struct fetch;

struct inference {
    struct message message;
    struct workers_task task;
    struct inference *next; /* idle ones */
    struct item *item;      /* lives as long as the object; EMPTY in idle ones */
    struct handlers *handlers;
    struct handlers__shard *shard;
    struct stats_cell *stats; /* NULL until the method is known, and for what a job computed */
    struct posting *posting;  /* NULL: it is to be answered, not to become a job */
    struct fetch *fetch;      /* NULL: it does not come from a job */
    struct exchange *x;       /* NULL: has ended */
    struct mailbox *mailbox;  /* of the loop that owns it */
    const struct inference_kind *kind;
    enum inference_state state;
    bool busy;          /* the pool, the queue or the mailbox holds it, or it waits for memory */
    bool received;      /* the body is there */
    int64_t room_bytes; /* of the body, that memory was last asked for */
    enum error status;  /* of the step that the pool ran */
    struct answer_compression compression;         /* wanted */
    bool refused;                                  /* kind->refuses said so */
    uint64_t arrived_ns, decoding_ns, encoding_ns; /* when those began */
    /* From here on nothing is set at birth. */
    struct failure failure;
    struct survey survey; /* these two from ENCODING on */
    struct answer answer;
};

static inline struct inference *inference_of_message(struct message *message)
{
    return (struct inference *)((char *)message - offsetof(struct inference, message));
}

static inline struct inference *inference_of_task(struct workers_task *task)
{
    return (struct inference *)((char *)task - offsetof(struct inference, task));
}

extern const struct inference_kind handlers__v1_kind; /* v1.c */

/* ---- inference.c: birth, moves, hand-overs, death ---- */

void handlers__inference_begin(struct exchange *x, const struct inference_kind *kind,
                               const struct method *method);
void handlers__inference_run(struct exchange *x);
/* Answers with the result of a job; takes fetch. */
void handlers__inference_fetch(struct exchange *x, struct fetch *fetch);
/* See handlers_make_room. */
bool handlers__inference_make_room(struct exchange *x, int64_t bytes);
/* The exchange gives its inference up: ended, expired or refused by the door. */
void handlers__inference_drop(struct exchange *x);
/* Frees what the shards keep for later use. */
void handlers__inference_free_idle(struct handlers *handlers);
/* Ends the inference with an error answer. */
void handlers__inference_refuse(struct inference *inference, const struct failure *failure);
void handlers__inference_move(struct inference *inference, enum inference_state to);
/* Hands the inference to the pool, which calls run; FULL when it is not taken. */
ERROR_MUST_CHECK enum error handlers__inference_to_pool(struct inference *inference,
                                                        enum inference_state state,
                                                        void (*run)(struct workers_task *task));
/* Any thread: posts the completion to the owning loop, where run is called. */
void handlers__inference_post(struct inference *inference, void (*run)(struct message *message));
/* On the loop, first thing in a completion: false when the exchange has ended; then the inference
 * is freed. */
bool handlers__inference_return(struct inference *inference);
/* Takes the inference off its exchange, which may then be answered. */
struct exchange *handlers__inference_detach(struct inference *inference);
void handlers__inference_release(struct inference *inference);

/* ---- inference_steps.c: the way of the item, from a whole body to the answer ---- */

/* Decodes and submits, or answers at once. */
void handlers__inference_decode(struct inference *inference);
/* The options outside the body, the limits; what the outputs or the job need. */
ERROR_MUST_CHECK enum error handlers__inference_admit(struct inference *inference,
                                                      struct failure *failure);
/* Encodes the outputs of an item that is DONE, and answers. */
void handlers__inference_encode(struct inference *inference);
/* For kind->answer: adds the body and its fields to the reply and sends it. */
void handlers__inference_send(struct inference *inference, struct exchange_reply *reply);
/* For kind->answer: sends another document instead, and counts a failure; takes the text. */
void handlers__inference_send_text(struct inference *inference, struct exchange_reply *reply,
                                   const char *content_type, struct text *text);

#endif
