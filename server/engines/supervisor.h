/* server/engines/supervisor.h: starts the engines, watches them, replaces them.
 *
 * An engine is a child process (gpu/engine.h); server/engines/role.h looks after each. There is
 * always the host engine, and one for each CUDA device that --engine asks for.
 * Spare engines run suspects (items that were running when an engine died) one by one. The host's
 * is started when there are some; those of a CUDA device are kept up, and one of them takes over
 * when the device's own engine ends. The supervisor also sends known-answer probes through the
 * queue when nothing was finished lately, and keeps the ready flag.
 *
 * Threads: all on the thread of the libuv loop given to create (main's).
 */
#ifndef SERVER_ENGINES_SUPERVISOR_H
#define SERVER_ENGINES_SUPERVISOR_H

#include <uv.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/metric.h"
#include "queue/queue.h"
#include "server/engines/choice.h"

#define SUPERVISOR_SPARES_MAX 3 /* of a CUDA device */
/* Descriptors that it holds at most, as a rule: a socket and shared memory for each
 * engine, and for one before it that is ending. */
#define SUPERVISOR_FDS (2 * 2 * (2 + ENGINE_DEVICES_MAX * (1 + SUPERVISOR_SPARES_MAX)))

struct spawner;
struct supervisor;

struct supervisor_options {
    /* Borrowed until destroy. */
    uv_loop_t *loop;
    struct queue *queue;
    struct arena *arena;
    struct metric_registry *metrics;
    struct spawner *spawner;
    _Atomic bool *ready; /* kept up to date: see supervisor_create */
    void (*on_failed)(void *context);
    void (*on_stopped)(void *context);
    void *context;

    struct engine_choice engines;
    const char *version;
    const char *host_path,
        *cuda_path; /* of the engines' programs; NULL: in this program's folder */
    const char *host_fault, *cuda_fault; /* for test builds of them; NULL: none */
    bool confine;                        /* engines, once they are up */
    int threads;                         /* the host engine's workers; 0: one a core */
    int cuda_spares;                     /* kept up on each device, 0..SUPERVISOR_SPARES_MAX */
    const char *cpu;      /* forced OpenBLAS core name (OPENBLAS_CORETYPE); NULL: detected */
    int64_t heartbeat_ns; /* an engine silent for longer is replaced */
    int64_t backoff_max_ns;
    int64_t scratch_max_bytes;       /* of the host engine's working memory; 0: its own default */
    int64_t device_memory_max_bytes; /* the same of a CUDA engine, on its device */
    const char *log_format, *log_level; /* "json", "info": the front's own */
};

/* Starts the engines; returns when their processes are spawned, not when they are ready. *ready
 * becomes true once every engine asked for is up or known to be missing, and stays true while a
 * batch or a probe was finished within 5 s. on_stopped: after supervisor_stop, when the last engine
 * is reaped. on_failed: at the start it turns out that an engine that must be there cannot be used
 * (contract mismatch, no such device, ends again and again before it is ready); the service should
 * end with exit code 1. */
ERROR_MUST_CHECK enum error supervisor_create(const struct supervisor_options *options,
                                              struct supervisor **supervisor,
                                              struct failure *failure);
/* An eventfd, non-blocking, that becomes readable when an engine finished a batch while
 * queue_wait_begin was in force. One event loop polls it, reads it and calls queue_reap. */
int supervisor_event_fd(const struct supervisor *supervisor);
/* Ends the engines; on_stopped follows. Items that are still in the queue must be cancelled: no
 * engine would run them. */
void supervisor_stop(struct supervisor *supervisor);
void supervisor_destroy(struct supervisor **supervisor); /* after on_stopped */

#endif
