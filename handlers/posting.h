/* handlers/posting.h: a request of /v1 that becomes a job: Prefer: respond-async.
 *
 * It is received, decoded and checked as any other is (inference.h). Then, in place of the queue,
 * its tensors become the body of a job: in memory when it is short, else a file of the spool, which
 * the pool writes. Once the store has the job for good the answer is 202. With wait=N the
 * exchange then waits for the job's end (visit.h).
 *
 * An .npy that is too long for the arena is written to the spool as it comes (upload.h).
 *
 * Idempotency-Key: the store keeps it with a digest of the request, so that of two requests with
 * one key, at the same time or not, one makes the job and the other is answered with it.
 *
 * Threads: the exchange's loop, and the pool where said.
 * Ownership: a posting belongs to its inference.
 */
#ifndef HANDLERS_POSTING_H
#define HANDLERS_POSTING_H

#include "base/digest.h"
#include "handlers/inference.h"
#include "handlers/jobs/prefer.h"
#include "queue/jobs/jobs.h"

struct upload;

struct posting {
    struct desk_call call; /* first, so that a call is found to be a posting's */
    struct inference *inference;
    struct store_new fresh;
    struct job known; /* under the same key */
    struct upload *upload;
    struct spool_file *file; /* that the pool writes */
    unsigned char *body;     /* of a short job */
    struct prefer prefer;
    bool has_file;                           /* in the spool, and no job refers to it yet */
    unsigned char head_digest[DIGEST_BYTES]; /* with a key: of the request's line and fields */
    unsigned char body_digest[DIGEST_BYTES];
};

/* Whether the client prefers a job. *posting stays NULL where it does not, or when that is refused:
 * FORBIDDEN, JOBS_OFF, BAD_OPTION. */
ERROR_MUST_CHECK enum error handlers__posting_open(struct exchange *x, struct posting **posting,
                                                   struct failure *failure);
void handlers__posting_free(struct posting **posting);
bool handlers__posting_has_key(const struct posting *posting);
/* Whether the body goes to the spool as it comes. */
bool handlers__posting_streams(const struct exchange *x, const struct item_head *head);

/* With a key: the digest of a body that has been received, before it is decoded. Any thread. */
ERROR_MUST_CHECK enum error handlers__posting_digest_body(struct posting *posting,
                                                          struct failure *failure);
bool handlers__posting_digest_is_long(const struct posting *posting); /* for a loop */

/* From the item's request to a job that lacks its body's places: everything is refused here that
 * can be. */
ERROR_MUST_CHECK enum error handlers__posting_fit(struct inference *inference,
                                                  struct failure *failure);
/* Once its inputs have their places: may the job be taken, with what it takes of the spool? */
ERROR_MUST_CHECK enum error handlers__posting_find_room(const struct posting *posting,
                                                        struct failure *failure);
/* Makes the job of a decoded item. */
void handlers__posting_start(struct inference *inference);
/* The same once its body lies in the spool. The inference is busy. */
void handlers__posting_accept(struct posting *posting);
/* Removes the body that no job refers to, in the pool. */
void handlers__posting_remove_file(struct posting *posting);

#endif
