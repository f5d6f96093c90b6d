/* server/engines/spawner.h: a small process that starts the engines for the front, which itself may
 * not run programs (base/confine.h).
 *
 * It is forked before the front has threads, listeners or secrets, and waits for requests on a
 * pair of sockets. What it starts is the front's own child (CLONE_PARENT): the front gets SIGCHLD,
 * reaps it, and takes it along when it dies. The spawner ends with the front.
 *
 * It believes nothing: who has broken into the front may ask it too. What programs there are, and
 * with what environment, is settled before the fork. A request chooses one, with arguments and
 * descriptors of its own.
 *
 * Why not start engines first and confine the front then: a dead engine is replaced. Why not let
 * the front start them: a filter outlives exec, so the front's list would have to allow all that
 * CUDA's libraries do, and running programs too.
 *
 * Threads: one at a time. A start blocks as fork and exec do, for a millisecond or so.
 */
#ifndef SERVER_ENGINES_SPAWNER_H
#define SERVER_ENGINES_SPAWNER_H

#include <stdbool.h>

#include "base/error.h"

#define SPAWNER_FDS_MAX 6             /* descriptors of a new process, from 0 on */
#define SPAWNER_WORDS_MAX_BYTES 65536 /* path and arguments together */

struct spawner;

/* What it may start: NULL-terminated. */
struct spawner_rules {
    const char *const *paths;
    char *const *environment; /* of each */
};

struct spawner_program {
    const char *path;         /* one of the rules' */
    char *const *arguments;   /* NULL-terminated, at least one */
    int fds[SPAWNER_FDS_MAX]; /* what is to be its descriptor i; -1: /dev/null. Borrowed. */
};

/* How a process ended. */
struct spawner_end {
    int exit_status; /* 0 where it was a signal */
    int signal;      /* 0: none */
};

/* Forks; borrows the rules. INTERNAL: no process, no sockets. */
ERROR_MUST_CHECK enum error spawner_create(const struct spawner_rules *rules,
                                           struct spawner **spawner, struct failure *failure);
/* Starts a program in a session of its own, with the default signals and no other descriptors, as a
 * child of this process, which is the caller's to reap. INTERNAL: it cannot be run, is no rule's,
 * or the spawner is gone; TOO_LARGE: too many words. */
ERROR_MUST_CHECK enum error spawner_start(struct spawner *spawner,
                                          const struct spawner_program *program, int *pid,
                                          struct failure *failure);
/* Reaps a process if it has ended; false: not yet, which is so also while another one traces it. */
bool spawner_reap(int pid, struct spawner_end *end);
/* Ends a process that has not been reaped. */
void spawner_kill(int pid);
/* Ends the spawner; NULL is let be. Processes that it started stay. */
void spawner_destroy(struct spawner **spawner);

#endif
