/* client/session.h: what all requests of one command share: server, deadline, retries, outcome.
 *
 * A request that found no room, or a server that has gone, is sent again after a pause: as long as
 * the server asked for, else 0.2 s and twice as long each time, to 5 s. Pauses add up to
 * --retry-max at most, counted anew after each answer that brought a job further; --timeout ends
 * everything.
 *
 * Threads: one. Blocks.
 */
#ifndef CLIENT_SESSION_H
#define CLIENT_SESSION_H

#include "client/arguments.h"
#include "client/wire.h"
#include "client/outcome.h"
#include "client/progress.h"

#define SESSION_TOKEN_MAX 1024 /* bytes, as the daemon's */

struct session {
    const struct arguments *arguments;
    struct outcome *outcome;
    struct wire *wire;
    struct progress progress;
    uint64_t begun_ns, deadline_ns; /* deadline 0: none */
    int64_t patience_ns, pause_ns;  /* what is left of --retry-max; the next pause */
    bool reached;                   /* the server was, once */
    char token[SESSION_TOKEN_MAX + 1];
};

/* All else is borrowed. BAD_OPTION: token or key. session_close in any case. */
ERROR_MUST_CHECK enum error session_open(struct session *session, const struct arguments *arguments,
                                         struct outcome *outcome, bool show,
                                         struct failure *failure);
void session_close(struct session *session);

/* Erases the progress and writes the time into the outcome. */
void session_stop(struct session *session);

/* Sends request once and sets the outcome; true: the status is 200 to 206. The caller frees
 * answer->body. limit_ns of the request: 0, or no later than that. */
bool session_send(struct session *session, struct wire_request *request,
                  struct wire_answer *answer);
/* After a session_send that failed: pauses, and true: send it again. The outcome says why not.
 * persists: it is harmless to send again after the connection broke. */
bool session_pause(struct session *session, const struct wire_answer *answer, bool persists);
void session_sleep(int64_t ns);
/* A job got further. */
void session_renew(struct session *session);
/* On a terminal. */
void session_show(struct session *session, const struct progress_state *state);

#endif
