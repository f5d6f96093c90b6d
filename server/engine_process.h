/* server/engine_process.h: one engine's process: spawned, connected to a pair of lanes, reaped.
 *
 * Life: IDLE -> STARTING -> UP -> ENDING -> IDLE. Each start has a shared memory of its own, so
 * that nothing a former process could still do reaches the next one. Policy (when to start, when to
 * kill) is the supervisor's.
 *
 * Threads: all on the thread of the libuv loop.
 */
#ifndef SERVER_ENGINE_PROCESS_H
#define SERVER_ENGINE_PROCESS_H

#include <uv.h>

#include "base/arena.h"
#include "base/error.h"
#include "queue/queue.h"

enum engine_process_state {
    ENGINE_PROCESS_IDLE,
    ENGINE_PROCESS_STARTING,
    ENGINE_PROCESS_UP,
    ENGINE_PROCESS_ENDING
};

/* Why the owner ended a process; NONE: it ended by itself. */
enum engine_process_reason {
    ENGINE_PROCESS_NONE,
    ENGINE_PROCESS_HEARTBEAT,    /* it was silent */
    ENGINE_PROCESS_DEADLINE,     /* it took too long for a batch */
    ENGINE_PROCESS_START,        /* it took too long to come up */
    ENGINE_PROCESS_WRONG_ANSWER, /* of a probe */
    ENGINE_PROCESS_RETIRED,      /* nobody needs it any more */
    ENGINE_PROCESS_STOPPED,      /* the service ends */
    ENGINE_PROCESS_REASONS
};

struct engine_process {
    /* Set by the owner once. */
    uv_loop_t *loop;
    struct queue *queue;
    struct arena *arena;
    const char *path;   /* of the program */
    char **arguments;   /* argv, NULL-terminated */
    char **environment; /* allow-listed, NULL-terminated */
    int event_fd;
    struct queue_engine engine; /* who it is for the queue */
    const char *version;
    /* The process is reaped and its batches are back in the queue. */
    void (*on_ended)(struct engine_process *engine);
    void *owner;

    /* Read by the owner. */
    enum engine_process_state state;
    int pid;
    uint64_t started_ns, up_ns;
    struct engine_shared *shared;
    struct queue_lane *lane;
    bool worked;                       /* it ended at least one batch well */
    bool mismatch;                     /* the engine found another contract than its own */
    enum engine_process_reason reason; /* of the last end */
    int64_t exit_code;                 /* enum engine_exit, or any other; -1: killed by a signal */
    int device_count;                  /* devices of its kind that the last one told of; 0: none */
    uint64_t heartbeat, heartbeat_seen_ns;
    bool closing; /* a start failed, and the loop is not done with it: it cannot be started yet */

    /* Private. */
    uv_process_t process;
    int control_fd, shared_fd;
    bool blame;
};

/* Moves IDLE to STARTING; only when not closing. */
ERROR_MUST_CHECK enum error engine_process_start(struct engine_process *engine,
                                                 struct failure *failure);
/* Moves STARTING to UP when the engine says it is ready; returns whether it is up. */
bool engine_process_poll(struct engine_process *engine);
/* SIGKILL. blame: its running items become suspects. An engine that ends by itself is blamed on
 * what ran, unless its device is out of order or absent. */
void engine_process_kill(struct engine_process *engine, enum engine_process_reason reason,
                         bool blame);
/* What the last end is called in logs and metrics: "heartbeat", "died". */
const char *engine_process_end_name(const struct engine_process *engine);
/* The names that an end of such an engine may have which is a failure, one an index from 0; NULL
 * beyond the last. */
const char *engine_process_failure_name(const struct engine_process *engine, int index);

#endif
