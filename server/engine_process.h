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

struct engine_process {
    /* Set by the owner once. */
    uv_loop_t *loop;
    struct queue *queue;
    struct arena *arena;
    const char *path;   /* of the program */
    char **arguments;   /* argv, NULL-terminated */
    char **environment; /* allow-listed, NULL-terminated */
    int event_fd;
    bool spare;
    const char *version;
    /* The process is reaped and its batches are back in the queue. reason: why the owner ended it;
     * NULL when it ended by itself. */
    void (*on_ended)(struct engine_process *engine, const char *reason);
    void *owner;

    /* Read by the owner. */
    enum engine_process_state state;
    int pid;
    uint64_t started_ns, up_ns;
    struct engine_shared *shared;
    struct queue_lane *lane;
    bool worked;   /* it ended at least one batch well */
    bool mismatch; /* the engine found another contract than its own */
    uint64_t heartbeat, heartbeat_seen_ns;

    /* Private. */
    uv_process_t process;
    int control_fd, shared_fd;
    const char *reason;
    bool blame;
};

/* Moves IDLE to STARTING. */
ERROR_MUST_CHECK enum error engine_process_start(struct engine_process *engine,
                                                 struct failure *failure);
/* Moves STARTING to UP when the engine says it is ready; returns whether it is up. */
bool engine_process_poll(struct engine_process *engine);
/* SIGKILL; reason is a literal. blame: its running items become suspects. */
void engine_process_kill(struct engine_process *engine, const char *reason, bool blame);

#endif
