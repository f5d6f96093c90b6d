/* client/outcome.h: how a request ended: exit code, what a person reads, what a script reads.
 *
 * Threads: everything here is pure, or touches only the caller's struct.
 */
#ifndef CLIENT_OUTCOME_H
#define CLIENT_OUTCOME_H

#include <stdint.h>
#include <stdio.h>

#include "base/text.h"

/* X(code, exit code, what --help says). Scripts rely on the numbers. */
#define OUTCOME_TABLE(X)                                                                           \
    X(DONE, 0, "the answer is written; what was asked for is done")                                \
    X(LOCAL, 1, "the arguments or a local file are at fault")                                      \
    X(SINGULAR, 2, "at least one matrix has no inverse, or none was found")                        \
    X(INVALID, 3, "the request was refused as invalid")                                            \
    X(UNREACHABLE, 4, "no connection, or it broke")                                                \
    X(UNAUTHORIZED, 5, "no token, a wrong one, or one without the role")                           \
    X(NO_ROOM, 6, "no room for the request within --retry-max")                                    \
    X(SERVER, 7, "the server failed")                                                              \
    X(TIMED_OUT, 8, "the time was over")                                                           \
    X(CANCELLED, 9, "the job was cancelled")                                                       \
    X(NOT_FOUND, 10, "no such job, or its answer has expired")                                     \
    X(NOT_READY, 11, "the job has not ended yet")

enum outcome_code {
#define OUTCOME_ENUM(code, exit_code, help) OUTCOME_##code = (exit_code),
    OUTCOME_TABLE(OUTCOME_ENUM)
#undef OUTCOME_ENUM
};

struct outcome {
    enum outcome_code code;
    long status; /* of HTTP; 0: no answer */
    int tries;
    int64_t sent_bytes, received_bytes; /* of bodies, in the last try */
    double seconds;                     /* from the first try to the end */
    char method[32];                    /* empty: unknown */
    char id[68];                        /* of the job; empty: none */
    long info;                          /* matrices with an INFO other than 0; -1: unknown */
    char message[512];                  /* a sentence without the final stop; empty: all is well */
};

/* The code for an HTTP status. */
enum outcome_code outcome_of_status(long status);
/* Sets code, status and message from an answer other than 200: the detail of its problem document,
 * or the first line of plain text. type: its Content-Type. */
void outcome_refused(struct outcome *outcome, long status, const char *type,
                     const struct text *body);
/* Sets the message, what is not printable ASCII as question marks: a terminal might obey it. */
void outcome_say(struct outcome *outcome, const char *message);
/* Prints one line. */
void outcome_print_json(const struct outcome *outcome, FILE *stream);

#endif
