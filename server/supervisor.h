/* server/supervisor.h: starts the engines, watches them, replaces them.
 *
 * An engine is a child process (gpu/engine.h). One that dies, misses its heartbeat or overruns a
 * batch's deadline is killed, reaped and replaced, with backoff when it dies before it has finished
 * a batch; the queue runs its unfinished batches again. While there are suspects (items that were
 * running when an engine died) a spare engine runs them one by one. It also sends the known-answer
 * probe through the queue when nothing was finished lately, and keeps the ready flag.
 *
 * Threads: all on the thread of the libuv loop given to create (main's).
 */
#ifndef SERVER_SUPERVISOR_H
#define SERVER_SUPERVISOR_H

#include <uv.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/metric.h"
#include "queue/queue.h"

struct supervisor;

struct supervisor_options {
    const char *engine_path; /* of invertd-host; NULL: beside this program */
    int threads;             /* the host engine's workers; 0: one a core */
    const char *cpu;         /* forced OpenBLAS core name (OPENBLAS_CORETYPE); NULL: detected */
    const char *fault;       /* passed on to a test build of the engine as --fault; NULL: none */
    const char *version;
    int64_t heartbeat_ns; /* an engine silent for longer is replaced */
    int64_t backoff_max_ns;
    int64_t scratch_max_bytes; /* of the engine's working memory; 0: the engine's own default */
    const char *log_format, *log_level; /* "json", "info": the front's own */
};

/* Starts the engines; returns when their processes are spawned, not when they are ready. ready is
 * kept true while a batch or a probe was finished within 5 s. on_stopped: after supervisor_stop,
 * when the last engine is reaped. on_failed: before any engine ever worked, it turns out that none
 * can (contract mismatch, cannot be executed, ends again and again before it is ready); the service
 * should end with exit code 1. */
ERROR_MUST_CHECK enum error supervisor_create(uv_loop_t *loop, struct queue *queue,
                                              struct arena *arena, struct metric_registry *metrics,
                                              const struct supervisor_options *options,
                                              _Atomic bool *ready, void (*on_failed)(void *context),
                                              void (*on_stopped)(void *context), void *context,
                                              struct supervisor **supervisor,
                                              struct failure *failure);
/* An eventfd, non-blocking, that becomes readable when an engine finished a batch while
 * queue_wait_begin was in force. One event loop polls it, reads it and calls queue_reap. */
int supervisor_event_fd(const struct supervisor *supervisor);
/* Ends the engines; on_stopped follows. Items that are still in the queue must be cancelled: nobody
 * would run them. */
void supervisor_stop(struct supervisor *supervisor);
void supervisor_destroy(struct supervisor **supervisor); /* after on_stopped */

#endif
