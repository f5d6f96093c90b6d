/* server/engines/process.h: one engine's process: spawned, connected to a pair of lanes, reaped.
 *
 * Life: STARTING -> UP -> ENDING; then it is reaped, reported to the owner and freed. Each has a
 * shared memory of its own, so that nothing a dying process could still do reaches another one.
 * While it ends its lane takes nothing, and what it had begun waits until it is reaped: its device
 * may still write. Policy (when to start, when to kill, which role) is the supervisor's.
 *
 * Threads: all on the thread of the libuv loop.
 */
#ifndef SERVER_ENGINES_PROCESS_H
#define SERVER_ENGINES_PROCESS_H

#include <uv.h>

#include "base/arena.h"
#include "base/error.h"
#include "queue/queue.h"
#include "server/engines/spawner.h"
#include "server/engines/start_clock.h"

enum engine_process_state {
    ENGINE_PROCESS_STARTING,
    ENGINE_PROCESS_UP,
    ENGINE_PROCESS_ENDING
};

/* Why the owner ended a process; NONE: it ended by itself. X(id, name, help). Failures of any
 * engine come first; their name is the label `reason` of invertd_engine_restarts_total, and their
 * help stands in its documentation. */
#define ENGINE_PROCESS_FAILURE_TABLE(X)                                                            \
    X(NONE, "died", "it ended by itself")                                                          \
    X(HEARTBEAT, "heartbeat", "it was silent for too long")                                        \
    X(DEADLINE, "deadline", "it took too long for a batch")                                        \
    X(START, "start", "it took too long to come up")                                               \
    X(WRONG_ANSWER, "wrong_answer", "it gave a wrong answer to a probe")

#define ENGINE_PROCESS_OTHER_TABLE(X)                                                              \
    X(LOST, "device_fault", "it says that its device lost its context: as the end that it says")   \
    X(RETIRED, "retired", "no one needs it any more")                                              \
    X(STOPPED, "stopped", "the service ends")
#define ENGINE_PROCESS_REASON_TABLE(X) ENGINE_PROCESS_FAILURE_TABLE(X) ENGINE_PROCESS_OTHER_TABLE(X)

enum engine_process_reason {
#define ENGINE_PROCESS_ID(id, name, help) ENGINE_PROCESS_##id,
    ENGINE_PROCESS_REASON_TABLE(ENGINE_PROCESS_ID)
#undef ENGINE_PROCESS_ID
    ENGINE_PROCESS_REASONS
};

/* Ends that an engine gives itself, because of its device: failures too, of one that has a device.
 * X(id of enum engine_exit, name, help), as above. */
#define ENGINE_PROCESS_DEVICE_TABLE(X)                                                             \
    X(FAULT, "device_fault", "the device lost its context")                                        \
    X(DEVICE_OUT, "device_out", "the device is out of order")

struct engine_process;

/* What all engines of the service are started with. Borrowed until the last on_ended. */
struct engine_process_home {
    uv_loop_t *loop;
    struct queue *queue;
    struct arena *arena;
    int event_fd;
    struct spawner *spawner;
    bool confine; /* engines shall confine themselves once they are up */
    const char *version;
    /* The process is reaped. After this its batches are back in the queue, and it is freed. */
    void (*on_ended)(struct engine_process *process);
    void *context;
};

struct engine_process {
    const struct engine_process_home *home;
    const char *path;           /* of the program */
    struct queue_engine engine; /* who it is for the queue */
    void *owner;                /* the owner's own */

    /* Read by the owner. */
    enum engine_process_state state;
    int pid;
    uint64_t started_ns, up_ns; /* up 0: it has not been */
    uint64_t role_ns;           /* since when it is up as who it is */
    struct engine_shared *shared;
    struct queue_lane *lane;
    uint64_t heartbeat, heartbeat_seen_ns;

    /* The same, once it is ENDING. */
    enum engine_process_reason reason;
    bool worked; /* it has ended at least one batch well since it is who it is */
    bool idle;   /* it had none to end */

    /* The same, in on_ended. */
    bool mismatch;     /* it found another contract than its own */
    int64_t exit_code; /* enum engine_exit, or any other; -1: killed by a signal */
    int device_count;  /* devices of its kind that it reported; 0: none */

    /* Private. */
    uv_signal_t child; /* SIGCHLD */
    struct start_clock start_clock;
    int control_fd, shared_fd;
    bool blame;
};

/* Spawns an engine for the role. Borrows path and arguments (argv, NULL-terminated) until on_ended.
 */
ERROR_MUST_CHECK enum error engine_process_start(const struct engine_process_home *home,
                                                 const char *path, char **arguments,
                                                 const struct queue_engine *role,
                                                 struct engine_process **process,
                                                 struct failure *failure);
/* Moves STARTING to UP when the engine says it is ready; returns whether it is up. */
bool engine_process_poll(struct engine_process *process);
/* How long it has been STARTING, time in which it waited for a processor left out. To be asked
 * often. */
uint64_t engine_process_starting_ns(struct engine_process *process, uint64_t now_ns);
/* Gives it another role, at once if it is up. false: it has batches under way, or is ending. */
bool engine_process_appoint(struct engine_process *process, const struct queue_engine *role);
/* Moves STARTING or UP to ENDING: SIGKILL. blame: its running items become suspects. An engine that
 * ends by itself is blamed on what ran, unless its device is out of order or absent. */
void engine_process_kill(struct engine_process *process, enum engine_process_reason reason,
                         bool blame);
/* What its end is called in logs and metrics: "heartbeat", "died". */
const char *engine_process_end_name(const struct engine_process *process);
/* The names of failures that an engine of the device class may end with, one an index from 0;
 * NULL beyond the last. */
const char *engine_process_failure_name(enum queue_class_id device_class, int index);

#endif
