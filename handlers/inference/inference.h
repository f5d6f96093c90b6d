/* handlers/inference/inference.h: the shared life of one inference, whichever door it came through.
 *
 *                 RECEIVING          the body arrives in an arena slot
 *          INFLATING | DECODING      in the pool, or on the loop when it is short
 *                  QUEUED            the queue holds the item
 *          ENCODING | DEFLATING      in the pool, or on the loop when it is short
 *                 ANSWERED           the reply's segments are lent to the door
 *                   FREE             slots returned, the queue's count left, object idle
 *
 * ABANDONED: the exchange has ended while the pool or the queue still holds the inference; it is
 * freed when they let go. With n = 0 or no matrices the queue is passed by.
 *
 * Threads: state and all decisions belong to the exchange's loop. While `away` is set, the pool's
 * task or the queue works on the inference, and the loop touches `x`, `state` and `away` alone.
 * They end by posting the letter; its opening, on the loop, clears `away`.
 * Ownership: the object owns its arena slots, which the queue counts for the client, and one
 * queue_enter; all go back exactly once, when the last of exchange, pool, queue and reply lets
 * go.
 */
#ifndef HANDLERS_INFERENCE_INFERENCE_H
#define HANDLERS_INFERENCE_INFERENCE_H

#include <stddef.h>

#include "base/mailbox.h"
#include "base/workers.h"
#include "handlers/handlers_private.h"
#include "handlers/inference/memory.h"
#include "handlers/stats.h"
#include "proto/coding.h"
#include "proto/proto.h"
#include "queue/queue.h"

#define INFERENCE_BAD_MAX 100 /* indices a survey keeps */

enum inference_state {
    INFERENCE_FREE,
    INFERENCE_RECEIVING,
    INFERENCE_INFLATING,
    INFERENCE_DECODING,
    INFERENCE_QUEUED,
    INFERENCE_ENCODING,
    INFERENCE_DEFLATING,
    INFERENCE_ANSWERED,
    INFERENCE_ABANDONED,
    INFERENCE_STATES
};

/* What the head of a request said. */
struct inference_head {
    const struct handlers__model *model; /* NULL: the body names it, or it is the default */
    enum proto_format format;
    enum proto_coding coding;
    int64_t json_bytes; /* Inference-Header-Content-Length; -1: none */
};

/* Where the two doors differ. All run on the loop. */
struct inference_kind {
    /* Reads the door's own fields of the head; Content-Length and -Encoding are read already. */
    enum error (*read_head)(struct exchange *x, struct inference_head *head,
                            struct failure *failure);
    /* What the door has to ask once the body is decoded. NULL: nothing. */
    enum error (*decoded)(struct inference *inference, struct failure *failure);
    /* True: the survey forbids a good answer; nothing is encoded. NULL: never. May run in the
     * pool: reads the inference alone. */
    bool (*refuses)(const struct inference *inference);
    void (*answer)(struct inference *inference);
};

/* What INFO, RCOND and METHOD say over all matrices. */
struct inference_survey {
    int64_t infos[STATS_INFOS]; /* matrices, by kind */
    int64_t failed;             /* INFO other than 0 and n+1 */
    int bad_count;
    struct {
        int64_t index;
        int32_t info;
    } bad[INFERENCE_BAD_MAX]; /* the first of the failed */
    double rcond;             /* the smallest; NaN when none is a number */
    int algorithm;            /* that of all, or METHOD_ALGORITHM_COUNT: several */
    int64_t unconverged;      /* the first with INFO n+2, and what is told of it: */
    int32_t iterations;       /* its ITERATIONS; -1: not told */
    double residual;          /* its RESIDUAL; NaN: not told */
};

struct inference {
    struct letter letter;
    struct workers_task task;
    struct inference *next; /* idle ones */
    struct handlers *handlers;
    struct handlers__shard *shard;
    struct stats_cell *stats; /* NULL until the method is known */
    struct exchange *x;       /* NULL: has ended */
    struct mailbox *home;
    const struct inference_kind *kind;
    struct inference_head head;
    enum inference_state state;
    bool away; /* the pool, the queue or the mailbox holds it */
    uint32_t client;
    enum error status; /* of the step that ran away */
    unsigned char *body;
    int64_t body_bytes, answer_max_bytes;
    enum proto_coding answer_coding; /* wanted; IDENTITY: as it is */
    bool refused;                    /* kind->refuses said so */
    bool deflated;
    uint64_t arrived_ns, decoding_ns, encoding_ns; /* when those began */
    void *outputs[METHOD_OUTPUTS_MAX];
    struct inference_memory memory;
    struct queue_item item;
    /* From here on nothing is set at birth. */
    struct failure failure;
    struct proto_request request; /* from decoding on */
    struct proto_answer answer;   /* from encoding on */
    struct inference_survey survey;
};

static inline struct inference *inference_of_letter(struct letter *letter)
{
    return (struct inference *)((char *)letter - offsetof(struct inference, letter));
}

static inline struct inference *inference_of_task(struct workers_task *task)
{
    return (struct inference *)((char *)task - offsetof(struct inference, task));
}

/* ---- inference.c: the life ---- */

void handlers__inference_begin(struct exchange *x, const struct inference_kind *kind,
                               const struct handlers__model *model);
void handlers__inference_run(struct exchange *x);
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
/* Any thread: what was away comes home; open runs on the loop. */
void handlers__inference_come_home(struct inference *inference,
                                   void (*open)(struct letter *letter));
/* On the loop, first thing in a letter: false when the exchange has ended; then it is freed. */
bool handlers__inference_arrive(struct inference *inference);
/* Takes the inference off its exchange, which may then be answered. */
struct exchange *handlers__inference_detach(struct inference *inference);
void handlers__inference_release(struct inference *inference);

/* ---- decode.c: from a whole body to an item in the queue ---- */

/* Decodes and submits, or answers at once. */
void handlers__inference_decode(struct inference *inference);

/* ---- answer.c: from outputs to the reply ---- */

/* The outputs are there: surveys, encodes, answers. */
void handlers__inference_answer(struct inference *inference);
/* For kind->answer: adds the body and its fields to the reply and sends it. */
void handlers__inference_send(struct inference *inference, struct exchange_reply *reply);
/* For kind->answer: sends another document instead, and counts a failure; takes the text. */
void handlers__inference_send_text(struct inference *inference, struct exchange_reply *reply,
                                   const char *content_type, struct text *text);

#endif
