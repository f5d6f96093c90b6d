/* client/receive.h: the answer's way into its file, in several pieces where a download breaks off.
 *
 * Threads: one.
 */
#ifndef CLIENT_RECEIVE_H
#define CLIENT_RECEIVE_H

#include "client/session.h"

/* Zeroed but for the first two, which are borrowed. output NULL: the answer is not kept. */
struct receive {
    struct session *session;
    struct files_output *output;
    char accept[100], range[64], if_range[180]; /* fields of the request */
    char etag[160];                             /* of what output holds a part of */
    int64_t skip, total;
    bool begun; /* this try has its first piece */
};

/* Adds the format that is wanted, and from where, to the fields of a request. */
void receive_ask(struct receive *receive, struct wire_request *request);
/* on_body of a request, with the receive as its context: takes what is no refusal. */
bool receive_piece(void *context, struct wire_answer *answer, const char *data, size_t size);
/* on_progress, likewise. */
void receive_progress(void *context, int64_t sent, int64_t to_send, int64_t received);

#endif
