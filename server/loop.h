/* server/loop.h: an event loop: one thread that serves HTTP on its own sockets.
 *
 * Each round of a loop: sleep until something is ready, let its doors read, decode and answer, run
 * the messages in its mailbox, send what has gathered in the queue, and take in what the engines
 * have finished. Loop 0 alone is woken by the engines; the others take in what is there when they
 * send, or while they look out for the answer to one of very few requests. A loop goes to sleep
 * only when nothing of that is left, so a message to a loop that is awake costs no system call.
 *
 * Threads: loop 0 runs on the thread that calls loop_run_here; each other one on its own. What may
 * be called from elsewhere says so.
 */
#ifndef SERVER_LOOP_H
#define SERVER_LOOP_H

#include <uv.h>

#include "base/error.h"
#include "queue/queue.h"
#include "server/http/http.h"

#define LOOP_DOORS_MAX 4 /* for work and for operations, on unix sockets and on others */

struct loop;

/* number: which of the loops; the first, 0, hears the engines. */
ERROR_MUST_CHECK enum error loop_create(struct queue *queue, int number, struct loop **loop,
                                        struct failure *failure);
/* Ends the thread if it has one, closes the doors, runs the last messages, nulls *loop. No engine
 * or pool may hold anything of its requests any more, and nothing else may live on loop_uv. Loop 0:
 * on the thread that ran it. */
void loop_destroy(struct loop **loop);

/* Before the loop runs. options' mailbox is filled in here; its sockets are taken in any case. */
ERROR_MUST_CHECK enum error loop_add_door(struct loop *loop, struct http_options *options,
                                          struct failure *failure);
/* Before the loop runs. fd: an eventfd that engines write to when there is something to reap. */
ERROR_MUST_CHECK enum error loop_watch_engines(struct loop *loop, int fd, struct failure *failure);
/* Before the loop runs: it is to wake in time for batches whose wait for more items ends. */
ERROR_MUST_CHECK enum error loop_watch_batches(struct loop *loop, struct failure *failure);

uv_loop_t *loop_uv(struct loop *loop); /* lent: for what else runs on this thread */

/* Starts the loop on a thread of its own. */
ERROR_MUST_CHECK enum error loop_start(struct loop *loop, struct failure *failure);
/* Runs the loop on this thread until loop_stop_here is called on it. */
void loop_run_here(struct loop *loop);
void loop_stop_here(struct loop *loop);
/* Closes the doors and ends their exchanges; messages run as before. A loop with a thread
 * does it there, and this waits for it; any other must not be running, and is called on its thread.
 */
void loop_close_doors(struct loop *loop);

/* From any thread: the loop does it soon. Each once. */
void loop_drain(struct loop *loop);                       /* http_drain on its doors */
void loop_quiesce(struct loop *loop, uint64_t within_ns); /* http_quiesce on its doors */

/* http_set_limits on its doors; any thread, while the doors are open. */
void loop_set_limits(struct loop *loop, const struct http_limits *limits);
/* The sums of its doors; any thread, while the doors are open. */
int64_t loop_held(const struct loop *loop);
int64_t loop_arriving(const struct loop *loop);
int64_t loop_open(const struct loop *loop);

#endif
