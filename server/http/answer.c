/* server/http/answer.c: answers, and the end of exchanges and connections. See private.h.
 *
 * Threads: one event loop's.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "server/http/private.h"
#include "server/http/raw.h"

#define COPY_MAX (16 << 10)   /* answers up to here go out in one piece with their head */
#define GONE_NS (3 * CLOCK_S) /* after which a connection that should close is cut */
#define FINAL_S 1u            /* how long a connection that is being closed stays readable */

static struct MHD_Response *make_body(struct http__connection *c,
                                      const struct exchange_reply *reply)
{
    if (reply->file != NULL)
        return http__file_response(c, reply);
    if (reply->stream != NULL)
        return http__stream_response(c);
    if (reply->segment_count == 1)
        return MHD_create_response_from_buffer(reply->segments[0].iov_len,
                                               reply->segments[0].iov_base, MHD_RESPMEM_PERSISTENT);
    if (c->answer_bytes > COPY_MAX)
        return MHD_create_response_from_iovec((const struct MHD_IoVec *)reply->segments,
                                              (unsigned)reply->segment_count, NULL, NULL);
    /* The library writes the head and one buffer with one system call, head and vector with two. */
    if (c->copy == NULL && reply->segment_count > 0)
        c->copy = malloc(COPY_MAX);
    if (c->copy == NULL && reply->segment_count > 0)
        return NULL;
    size_t length = 0;
    for (int i = 0; i < reply->segment_count; i++) {
        assert(reply->segments[i].iov_len <= COPY_MAX - length);
        memcpy(c->copy + length, reply->segments[i].iov_base, reply->segments[i].iov_len);
        length += reply->segments[i].iov_len;
    }
    return MHD_create_response_from_buffer(length, c->copy, MHD_RESPMEM_PERSISTENT);
}

/* What lets a page of a listed site read the answer. */
static bool add_cors(struct http__connection *c)
{
    const struct option_list *origins = c->http->options.site.origins;
    bool good = true;
    if (origins != NULL && origins->count > 0)
        good &= MHD_add_response_header(c->response, "Vary", "Origin") == MHD_YES;
    if (c->cors == NULL)
        return good;
    good &= MHD_add_response_header(c->response, "Access-Control-Allow-Origin", c->cors) == MHD_YES;
    return good &
           (MHD_add_response_header(c->response, "Access-Control-Expose-Headers", "*") == MHD_YES);
}

static void make_response(struct http__connection *c, const struct exchange_reply *reply)
{
    c->response = make_body(c, reply);
    if (c->response == NULL)
        return; /* out of memory: the connection closes */
    bool good = true;
    for (int i = 0; i < reply->field_count; i++)
        good &= MHD_add_response_header(c->response, reply->fields[i].name,
                                        reply->fields[i].value) == MHD_YES;
    good &= MHD_add_response_header(c->response, "X-Request-Id", c->x.id) == MHD_YES;
    /* Browsers take an answer for what its Content-Type says, and not for a page. */
    good &= MHD_add_response_header(c->response, "X-Content-Type-Options", "nosniff") == MHD_YES;
    good &= add_cors(c);
    if (reply->close || c->final || c->http->draining)
        good &= MHD_add_response_header(c->response, "Connection", "close") == MHD_YES;
    if (!good) {
        MHD_destroy_response(c->response);
        c->response = NULL;
    }
}

void http__send_raw(struct http__connection *c)
{
    if (c->session == NULL)
        (void)http_raw_send(c->fd, &c->raw);
    else if (!c->raw.failed && c->raw.data != NULL)
        (void)tls_send_last(c->session, c->raw.data, c->raw.length);
}

void http__answer_past_library(struct http__connection *c)
{
    http__send_raw(c);
    http__finish(c, false);
    http__move(c, HTTP_GONE);
    http__close_soon(c);
    shutdown(c->fd, SHUT_WR);
}

void http__answer(struct exchange *x, const struct exchange_reply *reply)
{
    struct http__connection *c = (struct http__connection *)x;
    assert(!c->answered);
    c->answered = true;
    c->status = reply->status;
    c->release = reply->release;
    c->release_context = reply->context;
    c->lends = reply->segment_count > 0;
    c->stream = reply->stream != NULL ? *reply->stream : (struct exchange_stream){0};
    c->answer_bytes = reply->file != NULL ? reply->file->bytes : 0;
    for (int i = 0; i < reply->segment_count; i++)
        c->answer_bytes += (int64_t)reply->segments[i].iov_len;

    bool in_body = c->phase == HTTP_BODY && !c->in_call;
    bool before_body = c->frame.content_length > 0 && !c->early;
    bool may_be_put_off = c->http->put_off != NULL && http__is_full(c) && x->verb == EXCHANGE_POST;
    if (in_body || (c->phase == HTTP_HEAD && (before_body || may_be_put_off))) {
        assert(reply->file == NULL && reply->stream == NULL);
        text_init(&c->raw, HTTP_RAW_MAX);
        http_raw_compose(&c->raw, reply, x->id, c->cors, x->verb == EXCHANGE_HEAD);
    }
    make_response(c, reply);
    if (in_body)
        http__set_deadline(c, 1); /* the tick sends it, or the body's end if that comes first */
    if (c->phase == HTTP_WAIT)
        http__release(c);
}

void http__release(struct http__connection *c)
{
    assert(c->phase == HTTP_WAIT);
    http__move(c, HTTP_READY);
    c->http->stirred = true;
    MHD_resume_connection(c->library);
}

bool http__put_off(struct http__connection *c)
{
    struct http *http = c->http;
    if (http->put_off == NULL || c->raw.failed || c->raw.data == NULL ||
        !put_off_add(http->put_off, c->fd, c->peer.number, &c->raw, c->put_off_ns))
        return false;
    (void)http__count_open(http, 1); /* as long as it is put off; the library's side is uncounted */
    http__finish(c, false);
    http__move(c, HTTP_GONE);
    c->plain = true;   /* the duplicate lingers */
    c->refused_ns = 0; /* put_off knows it */
    return true;
}

enum MHD_Result http__send_answer(struct http__connection *c)
{
    assert(c->answered);
    if (c->response == NULL)
        return MHD_NO;
    http__move(c, HTTP_SENDING);
    c->began_ns = c->http->now_ns;
    if (c->put_off_ns != 0)
        c->refused_ns = c->http->now_ns; /* it hears of it only now */
    http__set_deadline(c, c->http->now_ns + (uint64_t)c->http->options.limits.send_timeout_ns +
                              http__second_a_mebibyte(c->answer_bytes));
    enum MHD_Result result = MHD_queue_response(c->library, (unsigned)c->status, c->response);
    MHD_destroy_response(c->response); /* the library holds it until it is sent */
    c->response = NULL;
    return result;
}

/* ---- Ends ---- */

void http__log(const struct http__connection *c, const char *route, int status, uint64_t took_ns)
{
    const struct exchange *x = &c->x;
    char address[HTTP_PEER_TEXT];
    if (c->http->log == NULL)
        return;
    bool busy = http__is_busy(c);
    struct request_log_entry entry = {.client = address, .route = route, .status = status};
    http_peer_show(&c->peer, address);
    if (busy) {
        entry.id = x->id;
        entry.client = x->caller != NULL && x->caller->name[0] != '\0' ? x->caller->name : address;
        entry.method = x->work.method;
        entry.n = x->work.n;
        entry.batch = x->work.batch;
        entry.bytes_in = x->body_bytes;
        entry.bytes_out = status != 0 ? c->answer_bytes : 0;
        entry.queue_ns = x->work.queue_ns;
        entry.compute_ns = x->work.compute_ns;
        entry.total_ns = took_ns;
    }
    request_log_add(c->http->log, &entry, c->http->now_ns);
}

void http__finish(struct http__connection *c, bool left)
{
    struct exchange *x = &c->x;
    const char *route = handlers_route_label(x);
    uint64_t took_ns = clock_now_ns() - x->arrived_ns;
    http__log(c, route, c->answered ? c->status : 0, took_ns);
    if (x->streams && c->began_ns > x->arrived_ns)
        took_ns = c->began_ns - x->arrived_ns; /* how long it lasted is its client's business */
    if (c->answered) {
        http_count_request(&c->http->count, route, c->status, took_ns, x->body_bytes,
                           c->answer_bytes);
        handlers_answered(x, c->status, x->body_bytes, c->answer_bytes);
        const char *trace = log_wanted(LOG_DEBUG) ? handlers_traceparent(x) : NULL;
        if (log_wanted(LOG_DEBUG))
            log_line(LOG_DEBUG, "request", "route", LOG_STR, route, "status", LOG_I64,
                     (int64_t)c->status, "duration_us", LOG_I64, (int64_t)(took_ns / CLOCK_US),
                     "in_bytes", LOG_I64, x->body_bytes, "out_bytes", LOG_I64, c->answer_bytes,
                     trace != NULL ? "traceparent" : NULL, LOG_STR, trace, NULL);
    } else if (left) {
        metric_add(c->http->count.client_left, 1);
    }
    if (c->response != NULL)
        MHD_destroy_response(c->response);
    c->response = NULL;
    if (c->release != NULL)
        c->release(c->release_context);
    c->release = NULL;
    if (c->raw.data != NULL)
        text_free(&c->raw);
    handlers_end(x);
}

void http__drop(struct http__connection *c, bool left)
{
    http__finish(c, left);
    http__move(c, HTTP_GONE);
    c->plain = true;
    http__set_deadline(c, c->http->now_ns + GONE_NS);
}

void http__close_soon(struct http__connection *c)
{
    c->final = true;
    c->plain = false;
    (void)MHD_set_connection_option(c->library, MHD_CONNECTION_OPTION_TIMEOUT, FINAL_S);
    http__set_deadline(c, c->http->now_ns + GONE_NS);
}
