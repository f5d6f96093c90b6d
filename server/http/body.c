/* server/http/body.c: how fast a body must come, and the pause when there is no memory for it; who
 * crawls while others wait for memory.
 *
 * A body is late when the time for all of it is over (body_by), or when less than rate_min has come
 * over any RATE_NS: a leaky bucket, into which bytes bring time (pace_by). Time in which the door
 * does not read is not counted. While others wait for memory, a body that holds some must come as
 * fast as the time for all of it wants, and a client must take its answer at a MiB a second.
 *
 * Threads: one event loop's. Cost: a multiplication a piece of a body.
 */
#include <assert.h>

#include "server/http/private.h"

#define RATE_NS (10 * CLOCK_S)
#define GRACE_NS (2 * CLOCK_S)   /* for a body that holds memory which others wait for */
#define SMALL_ANSWER (64 << 10)  /* bytes, which few sockets do not take at once */
#define DISCARD_NS (5 * CLOCK_S) /* how long an unwanted body may take */

static uint64_t sooner(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* How long the body may take. */
static uint64_t body_time_ns(const struct http__connection *c)
{
    uint64_t wait_ns = (uint64_t)c->http->options.limits.body_timeout_ns;
    if (c->x.takes_body)
        return wait_ns + http__second_a_mebibyte(c->x.content_length);
    return sooner(wait_ns, DISCARD_NS);
}

void http__body_begin(struct http__connection *c)
{
    c->began_ns = c->http->now_ns;
    c->body_by_ns = c->began_ns + body_time_ns(c);
    c->pace_by_ns = c->http->options.limits.body_rate_min > 0 ? c->began_ns + RATE_NS : UINT64_MAX;
    http__set_deadline(c, sooner(c->body_by_ns, c->pace_by_ns));
}

/* When a body is too slow that was paid for until pace_by_ns, after length bytes more. */
static uint64_t pace_after(const struct http__connection *c, size_t length)
{
    int64_t rate = c->http->options.limits.body_rate_min;
    if (rate <= 0)
        return UINT64_MAX;
    uint64_t max_ns = c->http->now_ns + RATE_NS;
    double more_ns = (double)length / (double)rate * (double)CLOCK_S;
    if (c->pace_by_ns >= max_ns || more_ns >= (double)RATE_NS)
        return max_ns; /* the former also where there was no rate until now */
    return sooner(c->pace_by_ns + (uint64_t)more_ns, max_ns);
}

void http__body_came(struct http__connection *c, size_t length)
{
    if (c->answered)
        return;
    c->pace_by_ns = pace_after(c, length);
    http__set_deadline(c, sooner(c->body_by_ns, c->pace_by_ns));
}

void http__body_pause(struct http__connection *c)
{
    assert(c->phase == HTTP_BODY && c->paused_ns == 0);
    c->paused_ns = c->http->now_ns;
    http__set_deadline(c, c->paused_ns + (uint64_t)c->http->options.limits.request_timeout_ns);
    MHD_suspend_connection(c->library);
}

static void resume(struct http__connection *c)
{
    c->paused_ns = 0;
    c->http->stirred = true;
    MHD_resume_connection(c->library);
}

void http__body_resume(struct exchange *x)
{
    struct http__connection *c = (struct http__connection *)x;
    assert(http__is_paused(c));
    uint64_t now_ns = clock_now_ns(), paused_ns = now_ns - sooner(c->paused_ns, now_ns);
    c->began_ns += paused_ns;
    c->body_by_ns += paused_ns;
    if (c->pace_by_ns != UINT64_MAX)
        c->pace_by_ns += paused_ns;
    resume(c);
    http__set_deadline(c, sooner(c->body_by_ns, c->pace_by_ns));
}

void http__body_late(struct http__connection *c)
{
    assert(c->phase == HTTP_BODY);
    bool is_paused = http__is_paused(c);
    if (!c->answered)
        handlers_expired(&c->x, is_paused ? HANDLERS_LATE_ROOM : HANDLERS_LATE_BODY);
    assert(c->answered);
    http__answer_past_library(c);
    if (is_paused)
        resume(c);
}

static bool body_crawls(const struct http__connection *c)
{
    const struct exchange *x = &c->x;
    if (http__is_paused(c) || c->answered || x->sink == NULL || x->sink_offset > 0)
        return false;
    uint64_t late_ns = c->http->now_ns - c->began_ns - GRACE_NS;
    double part = (double)late_ns / (double)(c->body_by_ns - c->began_ns);
    return (double)x->body_bytes < part * (double)x->content_length;
}

bool http__crawls(const struct http__connection *c)
{
    uint64_t now_ns = c->http->now_ns;
    if (now_ns <= c->began_ns + GRACE_NS)
        return false;
    if (c->phase == HTTP_BODY)
        return body_crawls(c);
    return c->phase == HTTP_SENDING && c->lends && c->answer_bytes > SMALL_ANSWER &&
           now_ns > c->began_ns + GRACE_NS + http__second_a_mebibyte(c->answer_bytes);
}
