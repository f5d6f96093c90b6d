/* handlers/visit_wait.c: waiting for a job's end: long polls, and posts with wait=N. See visit.h.
 *
 * The watch says that the job has changed; the store says how. The job is looked up once more after
 * the watch has begun, since it may have ended in between.
 *
 * Threads: the exchange's loop.
 */
#include <assert.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "handlers/fetch.h"
#include "handlers/job_pages.h"
#include "handlers/visit.h"

#define ANSWER_NS (30 * CLOCK_S) /* for what remains to be done when the waiting is over */

static bool is_draining(const struct exchange *x)
{
    return atomic_load(&x->handlers->services->draining);
}

static void move_deadline(struct exchange *x, uint64_t by_ns)
{
    x->deadline_ns = by_ns;
    x->door->deadline_moved(x);
}

/* Answers with what the last look at the job has shown. */
static void end(struct visit *visit)
{
    struct exchange *x = visit->x;
    x->late = NULL;
    move_deadline(x, clock_now_ns() + ANSWER_NS);
    if (!visit->is_posted)
        handlers__job_answer(visit);
    else if (job_is_over(visit->job.state))
        handlers__fetch_answer(visit);
    else
        handlers__job_answer_accepted(visit);
}

static void look(struct visit *visit);

static void looked(struct visit *visit)
{
    if (!handlers__visit_found(visit))
        return;
    bool is_over = job_is_over(visit->job.state);
    if (is_over || visit->wait_s == 0)
        end(visit);
    else if (visit->has_news)
        look(visit);
}

static void look(struct visit *visit)
{
    visit->has_news = false;
    handlers__visit_get(visit, looked);
}

static void on_news(struct visit *visit)
{
    visit->has_news = true;
    if (!visit->is_asking)
        look(visit);
}

/* The time is over, or the service is about to end. */
static void stop_waiting(struct exchange *x)
{
    struct visit *visit = x->state;
    x->late = NULL;
    visit->wait_s = 0;
    move_deadline(x, clock_now_ns() + ANSWER_NS);
    if (!visit->is_asking)
        look(visit);
}

void handlers__visit_wait(struct visit *visit)
{
    struct exchange *x = visit->x;
    if (is_draining(x))
        visit->wait_s = 0;
    if (visit->wait_s > 0) {
        if (!handlers__visit_watch(visit, on_news))
            return;
        x->late = stop_waiting;
        move_deadline(x, clock_now_ns() + (uint64_t)visit->wait_s * CLOCK_S);
    }
    look(visit);
}
