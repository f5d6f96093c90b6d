/* client/wire.h: one HTTP request at a time, by libcurl, which has its only door here.
 *
 * The body is read from its file as curl asks for it, the answer is given on as it comes: neither
 * is ever whole in memory. The connection is kept for the next request.
 *
 * Threads: one. Blocks until the request has ended.
 */
#ifndef CLIENT_WIRE_H
#define CLIENT_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "client/files.h"

#define WIRE_FIELDS_MAX 6

struct wire;

/* All borrowed until wire_close; NULL: none. */
struct wire_server {
    const char *address; /* http://HOST:PORT, without a slash at the end */
    const char *socket;  /* of a unix socket, in place of the address's host */
    const char *token, *cacert, *cert, *key;
};

enum wire_end {
    WIRE_ANSWERED, /* with whatever status */
    WIRE_NO_CONNECTION,
    WIRE_BROKEN, /* after it was made */
    WIRE_REFUSED_TLS,
    WIRE_TIMED_OUT,
    WIRE_LOCAL, /* a local file, or out of memory */
};

struct wire_answer {
    enum wire_end end;
    char message[512]; /* why there is no answer */
    long status;       /* 0: none */
    int64_t sent, received;
    int64_t range_from; /* of Content-Range; -1: none */
    int64_t length;     /* of Content-Length; -1: none */
    int retry_after_s;  /* 0: none */
    bool applied;       /* Preference-Applied: respond-async */
    char type[80], etag[160], method[32];
    long info;        /* of Invertd-Info; -1: none */
    struct text body; /* what on_body was not given, to WIRE_BODY_MAX bytes; the caller frees */
};

#define WIRE_BODY_MAX (4 << 20)

struct wire_request {
    const char *verb, *path;
    const char *fields[WIRE_FIELDS_MAX]; /* "Name: value"; the first NULL ends them */
    struct files_input *body;            /* NULL: none */
    const char *body_name;
    int64_t limit_ns; /* 0: none */
    bool may_stall;   /* a server that computes sends nothing for long */
    void *context;
    /* Either may be NULL. answer: its head is filled in. True: the piece was taken; false: it
     * belongs to answer->body; to end the request set answer->message. */
    bool (*on_body)(void *context, struct wire_answer *answer, const char *data, size_t size);
    void (*on_progress)(void *context, int64_t sent, int64_t to_send, int64_t received);
};

/* NULL: out of memory. */
struct wire *wire_open(const struct wire_server *server);
void wire_close(struct wire **wire);
/* Fills *answer, all of it. */
void wire_send(struct wire *wire, const struct wire_request *request, struct wire_answer *answer);

#endif
