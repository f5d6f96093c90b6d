/* server/engines/role.h: an engine's role: its process is watched, ended when it fails, replaced.
 *
 *   EMPTY -> WANTED             role_want
 *   WANTED, OUT -> EMPTY        role_retire, role_stop
 *   WANTED -> OUT               the device is out of order, or its engine does not come up
 *   OUT -> WANTED               a later engine came up
 *   WANTED -> ABSENT            there is no such device, and none was ever there: for good
 *
 * A role is the engine of one device, or a spare engine, with its name in logs and metrics. The
 * process in it comes and goes. It leaves when it ends by itself or the front ends it. Another
 * process can have the role at once: a new one, or that of a spare role, which takes over. The end
 * of a process is judged when it leaves. That it is reaped, up to a second later for CUDA, changes
 * nothing any more.
 *
 * A wanted engine that ends is started again: at once when it did some work, else after a pause
 * that doubles. While OUT one is tried at the longest pause. What a role cannot come back from is
 * reported in `failure`; the service should end then.
 *
 * Threads: all on the thread of the libuv loop.
 */
#ifndef SERVER_ENGINES_ROLE_H
#define SERVER_ENGINES_ROLE_H

#include "server/engines/command.h"
#include "server/engines/process.h"

#define ROLE_QUICK_NS (20 * UINT64_C(1000000)) /* the first pause; the clock should be finer */

enum role_state {
    ROLE_EMPTY,
    ROLE_WANTED,
    ROLE_OUT,
    ROLE_ABSENT,
    ROLE_STATES
};

struct role {
    /* Set by the owner once. */
    const struct engine_process_home *home;
    struct engine_command command;
    struct queue_engine engine; /* its device is `name` */
    char name[ENGINE_NAME_MAX]; /* "host", "cuda:0", "cuda:0-spare" */
    int device;                 /* of CUDA */
    char device_text[16];
    bool must; /* the service cannot be without it at the start */
    struct metric_registry *metrics;
    uint64_t start_max_ns; /* an engine that takes longer to come up is ended */
    uint64_t heartbeat_ns, backoff_max_ns;

    /* Read by the owner. */
    enum role_state state;
    struct engine_process *process; /* its owner is the role; NULL: none */
    int leaving;                    /* processes that have left and are not reaped yet */
    bool ever_up;
    const char *failure; /* why the service should end; NULL: no reason */

    /* Private. */
    int failed_starts; /* ended before they were up, in a row */
    uint64_t backoff_ns, not_before_ns;
    bool held; /* not to be started yet: another engine is coming up on the same device */
};

/* Shows its failures as zeros, so that the first one is seen as a growth. May be called again. */
void role_show_failures(struct role *role);

bool role_is_on_the_way(const struct role *role);
/* Is its engine on the way up, or due to be started? */
bool role_is_starting(const struct role *role, uint64_t now_ns);

void role_want(struct role *role, uint64_t now_ns);
void role_retire(struct role *role, uint64_t now_ns); /* may be called when none is wanted */
/* The service ends: no process is started any more. */
void role_stop(struct role *role);

/* Starts, watches, ends. true: the engine has just come up. stalled: the machine slept, so that the
 * engine's silence says nothing. */
bool role_look_after(struct role *role, uint64_t now_ns, bool stalled);
/* The spare role's process takes this role when that is due to be filled. A process that is coming
 * up here goes on in the spare role. true: the engine is up. It cannot while it has work or is
 * silent, nor while too many of this role are not reaped. */
bool role_take_over(struct role *role, struct role *spare, uint64_t now_ns);
/* Ends the engine, which is not blamed on what it runs. */
void role_end(struct role *role, enum engine_process_reason reason, uint64_t now_ns);
/* To be called by on_ended of a process whose owner is the role. */
void role_note_end(struct role *role, struct engine_process *process, uint64_t now_ns);

bool role_is_up(const struct role *role);
/* Something is going to happen within milliseconds. */
bool role_is_busy(const struct role *role);
/* Whether it is known by now if an engine comes up in the role. */
bool role_is_settled(const struct role *role);

#endif
