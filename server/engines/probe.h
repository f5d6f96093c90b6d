/* server/engines/probe.h: the known-answer probe of one engine: a 2x2 inverse through the real
 * queue, by a method that the engine serves.
 *
 * It shows readiness when no client's request does, and notices a device that computes wrong
 * answers. It bypasses admission, so overload alone never makes the service unready.
 *
 * Threads: all on the supervisor's thread; the queue answers from any.
 */
#ifndef SERVER_ENGINES_PROBE_H
#define SERVER_ENGINES_PROBE_H

#include "base/arena.h"
#include "base/error.h"
#include "queue/queue.h"

struct probe;

enum probe_state {
    PROBE_IDLE,
    PROBE_RUNNING,
    PROBE_RIGHT,
    PROBE_WRONG,
    PROBE_FAILED
};

/* method: of one input A and the outputs INVERSE, INFO, RCOND. */
ERROR_MUST_CHECK enum error probe_create(struct queue *queue, struct arena *arena,
                                         const char *method, struct probe **probe,
                                         struct failure *failure);
void probe_destroy(struct probe **probe); /* must not be RUNNING */

/* Must not be RUNNING. It waits for that engine (queue_engine.number) alone, and should be
 * cancelled when that ends. */
void probe_start(struct probe *probe, int engine);
/* Both take NULL for a probe that does not run. */
void probe_cancel(struct probe *probe); /* harmless when not RUNNING */
bool probe_is_running(const struct probe *probe);
/* What the last probe found, once: IDLE when none has ended since the last call, or one runs. */
enum probe_state probe_take(struct probe *probe);
int probe_engine(const struct probe *probe); /* who gave the last answer: queue_engine.number */

#endif
