/* server/engines/seat.h: an engine's seat: whoever sits in it is watched, ended when it fails,
 * replaced.
 *
 *   EMPTY -> WANTED             seat_want
 *   WANTED -> EMPTY             seat_dismiss
 *   WANTED -> OUT               its device is out of order, or its engine does not come up
 *   OUT -> WANTED               a later engine came up
 *   WANTED -> ABSENT            there is no such device, and none was ever there: for good
 *
 * The seat is the role, with its name in logs and metrics; the process in it comes and goes. It
 * leaves when it ends by itself or the front ends it, and somebody else can have the seat at once:
 * a new process, or the one in a spare seat, which takes over. How the process ended is judged when
 * it leaves; that it is reaped, up to a second later for CUDA, changes nothing any more.
 *
 * A wanted engine that ends is started again: at once when it did some work, else after a pause
 * that doubles. While OUT one is tried at the longest pause. What a seat cannot come back from it
 * tells in `failure`; the service should end then.
 *
 * Threads: all on the thread of the libuv loop.
 */
#ifndef SERVER_ENGINES_SEAT_H
#define SERVER_ENGINES_SEAT_H

#include "server/engines/command.h"
#include "server/engines/process.h"

#define SEAT_QUICK_NS (20 * UINT64_C(1000000)) /* the first pause; the clock should be finer */

enum seat_state {
    SEAT_EMPTY,
    SEAT_WANTED,
    SEAT_OUT,
    SEAT_ABSENT,
    SEAT_STATES
};

struct seat {
    /* Set by the owner once. */
    const struct engine_process_home *home;
    struct engine_command command;
    struct queue_engine role;   /* its device is `name` */
    char name[ENGINE_NAME_MAX]; /* "host", "cuda:0", "cuda:0-spare" */
    int device;                 /* of CUDA */
    char device_text[16];
    bool must; /* the service cannot be without it at the start */
    struct metric_registry *metrics;
    uint64_t start_max_ns; /* an engine that takes longer to come up is ended */
    uint64_t heartbeat_ns, backoff_max_ns;

    /* Read by the owner. */
    enum seat_state state;
    struct engine_process *process; /* its owner is the seat; NULL: nobody sits there */
    int leaving;                    /* processes that have left and are not reaped yet */
    bool ever_up;
    const char *failure; /* why the service should end; NULL: no reason */

    /* Private. */
    int failed_starts; /* ended before they were up, in a row */
    uint64_t backoff_ns, not_before_ns;
    bool held; /* not to be started yet: another engine is coming up on the same device */
};

/* Shows its failures as zeros, so that the first one is a growth for who watches the rate. Harmless
 * when they are shown already. */
void seat_show_failures(struct seat *seat);

bool seat_is_on_the_way(const struct seat *seat);
/* Is its engine on the way up, or due to be started? */
bool seat_is_starting(const struct seat *seat, uint64_t now_ns);

void seat_want(struct seat *seat, uint64_t now_ns);
void seat_dismiss(struct seat *seat, uint64_t now_ns); /* harmless when nobody is wanted */
/* The service ends: nobody is started any more. */
void seat_stop(struct seat *seat);

/* Starts, watches, ends. true: the engine has just come up. stalled: the machine slept, so that the
 * engine's silence says nothing. */
bool seat_look_after(struct seat *seat, uint64_t now_ns, bool stalled);
/* The one in the spare seat takes this one when it is due to be filled; who is on the way up here
 * goes on in the spare seat. true: the engine is up. It cannot while it has work or is silent, nor
 * while too many of this seat are not reaped. */
bool seat_take_over(struct seat *seat, struct seat *spare, uint64_t now_ns);
/* Ends the engine, which is not blamed on what it runs. */
void seat_end(struct seat *seat, enum engine_process_reason reason, uint64_t now_ns);
/* To be called by on_ended of a process whose owner is the seat. */
void seat_note_end(struct seat *seat, struct engine_process *process, uint64_t now_ns);

bool seat_is_up(const struct seat *seat);
/* Something is going to happen within milliseconds. */
bool seat_is_busy(const struct seat *seat);
/* Whether it has turned out if an engine can sit there. */
bool seat_is_settled(const struct seat *seat);

#endif
