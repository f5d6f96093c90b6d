/* gpu/host/base/team.h: threads that help with one large matrix.
 *
 * Flow: a worker that holds a large matrix calls host_team_run for one step after another; a step
 * is `count` pieces of work that do not depend on one another, which the caller and the helpers
 * take by number, in ascending order; the call returns when all are done.
 *
 * Two designs were thought of. A graph of tasks with counters lets a thread run ahead of the others
 * by many steps, but needs memory for the counters, waits in the middle of tasks, and its order is
 * hard to follow. Steps with a barrier lose the time in which the last piece is awaited; a caller
 * that makes its longest piece number 0 loses little. This is the second.
 *
 * What a piece does is fixed by its number, never by its thread, so answers do not depend on the
 * count of threads, nor on whether the team was free: when it is busy with another caller, the
 * caller does all pieces itself. That also makes a call from within a piece safe.
 *
 * An unwanted matrix is left in here (stop.h): before a step, and after one
 * whose pieces were skipped from then on.
 *
 * Threads: create and destroy from one; run from any. Cost: no allocation after create. A step
 * wakes helpers that sleep (a few microseconds); a thread without work polls for a moment before it
 * sleeps, so that one step follows another without sleep between them.
 */
#ifndef GPU_HOST_BASE_TEAM_H
#define GPU_HOST_BASE_TEAM_H

#include <stdint.h>

#include "base/error.h"
#include "base/rank.h"

struct host_team;

/* helpers >= 0, next to the caller of host_team_run; rank: theirs. */
ERROR_MUST_CHECK enum error host_team_create(int helpers, enum rank rank, struct host_team **team,
                                             struct failure *failure);
/* No run is under way. Joins the helpers and nulls *team. */
void host_team_destroy(struct host_team **team);

/* Helpers and a caller. team NULL: 1. */
int host_team_threads(const struct host_team *team);

/* Calls work(context, index) once for every index from 0 to count - 1, on any thread; all of it has
 * happened before this returns. team NULL: on the caller's own. Does not return where
 * host_stop_check does not. */
void host_team_run(struct host_team *team, int64_t count,
                   void (*work)(void *context, int64_t index), void *context);

#endif
