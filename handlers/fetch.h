/* handlers/fetch.h: the result of a job as the answer of a direct request.
 *
 * The result's bytes become the outputs of an item that is DONE, and an inference (inference.h)
 * answers with it: the same survey, the same fields, the same encoders. Only the data of an .npy
 * that lies in the spool stays there: the door sends it from its file, behind its head, and the
 * item holds no more than one number a matrix.
 *
 * Threads: the exchange's loop; the spool is read in the pool.
 * Ownership: a fetch belongs to its inference.
 */
#ifndef HANDLERS_FETCH_H
#define HANDLERS_FETCH_H

#include "handlers/inference.h"
#include "handlers/jobs/range.h"
#include "handlers/visit.h"

struct fetch {
    struct desk_call call; /* first, so that a call is found to be a fetch's */
    struct inference *inference;
    struct job job;
    struct proto_request request; /* as the job has it; then the item's */
    bool is_under_way;
    bool is_posted;          /* the exchange is the POST, which waited */
    bool from_file;          /* the .npy's data stay in the spool */
    struct spool_file *file; /* NULL: the result lies in the store */
    unsigned char *bytes;    /* the result, when it does */
    int64_t npy_bytes;       /* of the data of an .npy */
    char head[PROTO_NPY_HEAD_MAX];
    int64_t head_bytes;
    char etag[2 * JOB_DIGEST_BYTES + 8], content_range[80], path[64];
    struct exchange_file part; /* of the file */
    bool is_lent;              /* its descriptor is the door's */
};

/* Answers a visit whose job is over: its result, or its failure. */
void handlers__fetch_answer(struct visit *visit);

/* ---- For the steps of an inference ---- */

/* Reads the result, once its memory is there. */
void handlers__fetch_load(struct inference *inference);
/* In place of the encoder's, where from_file. */
void handlers__fetch_encode(struct fetch *fetch, struct proto_answer *answer);
/* Adds the fields of a result to a reply that is whole but for them, and cuts it to the range that
 * was asked for. is_plain: the answer is neither compressed nor refused. */
void handlers__fetch_finish(struct fetch *fetch, struct exchange_reply *reply, bool is_plain);
/* The pool or the desk has it. */
bool handlers__fetch_is_under_way(const struct fetch *fetch);
void handlers__fetch_free(struct fetch **fetch);

#endif
