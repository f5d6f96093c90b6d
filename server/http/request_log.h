/* server/http/request_log.h: the access log: one JSON line a request.
 *
 *   {"time":"2026-01-31T23:59:59.123Z","id":"...","client":"192.0.2.1","route":"/v1/invert",
 *    "status":200,"method":"lu","n":8,"batch":1,"bytes_in":512,"bytes_out":640,"queue_us":3,
 *    "compute_us":12,"total_us":80}
 *
 * Lines gather in a buffer of the door, and go out when it is full, or after REQUEST_LOG_LAG_NS: no
 * system call a request. The doors of all loops append to one file, or pipe, whole lines at a time.
 * None waits for it: what a pipe has no room for stays in the buffer, and further lines are lost
 * when that is full, which is logged.
 *
 * Threads: the log is shared; a buffer is one event loop's.
 */
#ifndef SERVER_HTTP_REQUEST_LOG_H
#define SERVER_HTTP_REQUEST_LOG_H

#include <stdint.h>

#include "base/error.h"

#define REQUEST_LOG_LAG_NS (200 * UINT64_C(1000000))

struct request_log;
struct request_log_buffer;

/* path: "-" is stderr. BAD_OPTION: it cannot be opened. */
ERROR_MUST_CHECK enum error request_log_open(const char *path, struct request_log **log,
                                             struct failure *failure);
void request_log_close(struct request_log **log); /* no buffer may be left */
/* Opens the path anew, where it is one. The old file stays when that fails, which is logged. */
void request_log_reopen(struct request_log *log);

/* NULL for a log that is NULL, or when there is no memory, which ends no request. */
struct request_log_buffer *request_log_buffer_create(struct request_log *log);
/* Writes what it holds, for which it waits a little. */
void request_log_buffer_destroy(struct request_log_buffer **buffer);

struct request_log_entry {
    const char *id, *client, *route; /* NULL: not known */
    int status;                      /* 0: the client left unanswered */
    const char *method;              /* of the matrices; NULL: none, and so for what follows */
    int64_t n, batch;
    int64_t bytes_in, bytes_out;
    uint64_t queue_ns, compute_ns, total_ns;
};

/* Nothing for a buffer that is NULL. */
void request_log_add(struct request_log_buffer *buffer, const struct request_log_entry *entry,
                     uint64_t now_ns);
/* Writes what has waited for too long. Call it often. */
void request_log_tick(struct request_log_buffer *buffer, uint64_t now_ns);

#endif
