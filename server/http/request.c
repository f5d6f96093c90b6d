/* server/http/request.c: a request from its first line to its end. See private.h.
 *
 * Threads: one event loop's.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "server/http/private.h"
#include "server/http/raw.h"

#define SCHEME_LENGTH 7 /* of "http://" */
/* Bodies up to here are read, and the connection kept: of a request that is refused, which else is
 * answered at once, and of one whose path does nothing with a body. */
#define REFUSED_MAX (64 << 10)
#define UNWANTED_MAX (1 << 20)
/* How long a client that has closed its sending side is taken to wait for its answer. */
#define PROBE_NS CLOCK_S

/* ---- What handlers ask ---- */

static const char *door_header(const struct exchange *x, const char *name, int index)
{
    const struct http__connection *c = (const struct http__connection *)x;
    size_t length = strlen(name);
    for (int i = 0; i < c->field_count; i++)
        if (c->fields[i].name_length == length && http_guard_is(c->fields[i].name, length, name) &&
            index-- == 0)
            return c->fields[i].value;
    return NULL;
}

struct query {
    bool (*each)(void *context, const char *name, const char *value);
    void *context;
};

static enum MHD_Result on_argument(void *context, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    const struct query *query = context;
    (void)kind;
    return query->each(query->context, name, value == NULL ? "" : value) ? MHD_YES : MHD_NO;
}

static void door_query(const struct exchange *x,
                       bool (*each)(void *context, const char *name, const char *value),
                       void *context)
{
    const struct http__connection *c = (const struct http__connection *)x;
    struct query query = {each, context};
    MHD_get_connection_values(c->library, MHD_GET_ARGUMENT_KIND, on_argument, &query);
}

/* Before the connection waits, the field itself is looked at when the time comes. */
static void door_deadline_moved(struct exchange *x)
{
    struct http__connection *c = (struct http__connection *)x;
    if (c->phase == HTTP_WAIT)
        http__wait(c);
}

static void door_address(const struct exchange *x, char *text, size_t size)
{
    const struct http__connection *c = (const struct http__connection *)x;
    char address[HTTP_PEER_TEXT];
    http_peer_show(&c->peer, address);
    snprintf(text, size, "%s", address);
}

static const struct exchange_door door = {.header = door_header,
                                          .query = door_query,
                                          .answer = http__answer,
                                          .deadline_moved = door_deadline_moved,
                                          .room_made = http__body_resume,
                                          .address = door_address,
                                          .more = http__stream_more};

/* ---- What the library calls ---- */

/* The library then finds the sending side closed, and closes the rest. */
static void refuse_length(struct http__connection *c)
{
    static const char text[] =
        "{\"error\":\"The Content-Length must be one decimal number of 1 to 18 "
        "digits, without a sign.\"}\n";
    const struct exchange_reply reply = {.status = 400,
                                         .fields = {{"Content-Type", "application/json"}},
                                         .field_count = 1,
                                         .segments = {{(void *)(uintptr_t)text, sizeof text - 1}},
                                         .segment_count = 1};
    text_init(&c->raw, HTTP_RAW_MAX);
    http_raw_compose(&c->raw, &reply, http__id(c, NULL), NULL, false);
    http__send_raw(c);
    text_free(&c->raw);
    shutdown(c->fd, SHUT_WR);
    c->refused = reply.status;
}

/* The one connection with a whole head that no handler has seen is the one complained of. */
void http__on_complaint(void *context, const char *format, va_list arguments)
{
    struct http *http = context;
    (void)arguments;
    if (strstr(format, "handshake") != NULL)
        http__handshake_failed(http);
    if (strstr(format, "Content-Length") == NULL)
        return;
    for (uint32_t slot = 0; slot < http->slots; slot++) {
        struct http__connection *c = http->connections[slot];
        if (c != NULL && c->phase == HTTP_HEAD &&
            MHD_get_connection_info(c->library, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE) != NULL)
            refuse_length(c);
    }
}

void *http__on_target(void *context, const char *uri, struct MHD_Connection *library)
{
    struct http *http = context;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(library, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http__connection *c = info->socket_context;
    if (c == NULL)
        return NULL;
    if (c->final)
        (void)MHD_set_connection_option(library, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
    c->plain = false;
    c->refused = 0;
    c->target = http_guard_uri(uri);
    http__move(c, HTTP_HEAD);
    http__set_deadline(c, http->now_ns + (uint64_t)http->options.limits.header_timeout_ns);
    return c;
}

static enum MHD_Result on_field(void *context, enum MHD_ValueKind kind, const char *name,
                                size_t name_length, const char *value, size_t value_length)
{
    struct http__connection *c = context;
    (void)kind;
    if (c->field_count < HTTP_GUARD_FIELDS_MAX)
        c->fields[c->field_count] =
            (struct http_guard_field){name, value, (uint32_t)name_length, (uint32_t)value_length};
    return c->field_count++ <= HTTP_GUARD_FIELDS_MAX ? MHD_YES : MHD_NO;
}

static enum error check_head(struct http__connection *c, const char *url, const char *method,
                             const char *version, const char **why)
{
    c->field_count = 0;
    MHD_get_connection_values_n(c->library, MHD_HEADER_KIND, on_field, c);
    struct http_guard_head head = {
        .method = method,
        .method_length = strlen(method),
        .uri = url,
        .version = version,
        .target = c->target,
        .head_bytes = MHD_get_connection_info(c->library, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)
                          ->header_size,
        .fields = c->fields,
        .field_count = c->field_count,
    };
    enum error error = http_guard_check(&head, &c->frame, why);
    if (c->field_count > HTTP_GUARD_FIELDS_MAX)
        c->field_count = HTTP_GUARD_FIELDS_MAX;
    if (error != ERROR_NONE || !c->frame.chunked)
        return error;
    /* The library reads chunks leniently, and so may see another end than a proxy did. */
    *why = "Bodies in chunks are not taken; send the body with a Content-Length field.";
    return ERROR_LENGTH_REQUIRED;
}

static enum exchange_verb verb_of(const char *method)
{
    static const struct {
        const char *name;
        enum exchange_verb verb;
    } verbs[] = {
        {"POST", EXCHANGE_POST}, {"GET", EXCHANGE_GET},       {"HEAD", EXCHANGE_HEAD},
        {"PUT", EXCHANGE_PUT},   {"DELETE", EXCHANGE_DELETE}, {"OPTIONS", EXCHANGE_OPTIONS},
    };
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(method, verbs[i].name) == 0)
            return verbs[i].verb;
    return EXCHANGE_OTHER;
}

/* The path of a target: all of it, or what follows the authority of an absolute one. */
static const char *path_of(const char *url)
{
    if (url[0] == '/' || strncasecmp(url, "http://", SCHEME_LENGTH) != 0)
        return url;
    const char *path = strchr(url + SCHEME_LENGTH, '/');
    return path == NULL ? "/" : path;
}

/* Whether the request may have been sent by this client to this site, and in no other words than
 * the routes'. */
static enum error check_site(struct http__connection *c, const char *url, const char **why)
{
    const struct exchange *x = &c->x;
    struct site_claims claims = {
        .host = c->frame.host,
        .origin = c->frame.origin,
        .fetch_site = c->frame.fetch_site,
        .reads = x->verb == EXCHANGE_GET || x->verb == EXCHANGE_HEAD || x->verb == EXCHANGE_OPTIONS,
        .any_host = handlers_is_health(x),
    };
    if (url != x->path) {
        claims.authority = url + SCHEME_LENGTH;
        claims.authority_length = strcspn(claims.authority, "/");
    }
    if (!c->target.veiled)
        return site_check(&c->http->options.site, &claims, &c->cors, why);
    *why = "There is nothing at this path; send its letters, digits, -, ., _, ~ and slashes as "
           "they are.";
    return ERROR_NOT_FOUND;
}

/* OPTIONS of the server itself (RFC 9110, 9.3.7): the verbs that some path answers. */
static void answer_star(struct exchange *x)
{
    static const struct exchange_reply reply = {
        .status = 204, .fields = {{"Allow", "GET, HEAD, POST, OPTIONS"}}, .field_count = 1};
    exchange_answer(x, &reply);
}

/* A browser asks what a page of a listed site may send. */
static void answer_preflight(struct exchange *x)
{
    static const struct exchange_reply reply = {
        .status = 204,
        .fields = {{"Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, DELETE"},
                   {"Access-Control-Allow-Headers", "*, Authorization"},
                   {"Access-Control-Max-Age", "600"}},
        .field_count = 3};
    exchange_answer(x, &reply);
}

/* Handlers, or the door itself, see the head. */
static void offer(struct http__connection *c, const char *url, enum error error, const char *why)
{
    struct exchange *x = &c->x;
    c->in_call = true;
    if (error == ERROR_NONE)
        error = check_site(c, url, &why);
    if (error != ERROR_NONE)
        handlers_refuse(x, error, why);
    else if (c->over)
        handlers_refuse(x, ERROR_FULL,
                        "There are as many connections as are taken (--connections-max); use "
                        "fewer, or try again later.");
    else if (x->verb == EXCHANGE_OPTIONS && c->cors != NULL &&
             door_header(x, "Access-Control-Request-Method", 0) != NULL)
        answer_preflight(x);
    else if (x->verb == EXCHANGE_OPTIONS && strcmp(x->path, "*") == 0 && x->caller != NULL)
        answer_star(x);
    else
        handlers_begin(x);
    if (!c->answered && !x->takes_body && x->content_length > UNWANTED_MAX)
        handlers_refuse(x, ERROR_TOO_LARGE,
                        "This path does nothing with a body, and reads at most 1 MiB of one; "
                        "send none.");
    c->in_call = false;
}

bool http__is_full(const struct http__connection *c)
{
    return c->status == 503 || c->status == 429;
}

/* A refusal costs the loop as much as an answer. A client that was refused, comes back before the
 * second that it was asked to wait, and is refused again, gets to know that when the second is
 * over, or up to another second later. Otherwise clients that never wait keep the loops busy with
 * refusals, and those who were let in wait for them at every turn. Returns until when; 0: it hears
 * at once. */
static uint64_t put_off_until(struct http__connection *c)
{
    if (!http__is_full(c) || c->over || c->x.verb != EXCHANGE_POST || c->http->draining ||
        c->final || c->left)
        return 0;
    uint64_t now_ns = c->http->now_ns, until_ns = c->refused_ns + PUT_OFF_NS;
    if (c->refused_ns == 0 || until_ns <= now_ns)
        until_ns = put_off_take(c->http->options.put_off_clients, c->peer.number, now_ns);
    c->refused_ns = now_ns;
    return until_ns == 0 ? 0 : until_ns + put_off_spread_ns(c->peer.number, now_ns);
}

/* The head is complete. */
static enum MHD_Result begin(struct http__connection *c, const char *url, const char *method,
                             const char *version)
{
    const struct http_options *options = &c->http->options;
    struct exchange *x = &c->x;
    const char *why = NULL;
    assert(c->phase == HTTP_HEAD && c->release == NULL && c->response == NULL);
    enum error error = check_head(c, url, method, version, &why);
    uint64_t now_ns = clock_now_ns();
    c->first_deadline_ns = now_ns + (uint64_t)options->limits.request_timeout_ns;
    *x = (struct exchange){
        .door = &door,
        .handlers = options->handlers,
        .mailbox = options->mailbox,
        .verb = verb_of(method),
        .path = path_of(url),
        .content_length = c->frame.content_length,
        .expect_continue = c->frame.expect_continue,
        .client = c->peer.number,
        .caller = http__caller(c),
        .arrived_ns = now_ns,
        .deadline_ns = c->first_deadline_ns,
        .listener = options->listener,
        .half_closed = c->left,
    };
    x->id = http__id(c, door_header(x, "X-Request-Id", 0));
    c->cors = NULL;
    c->answered = false;
    c->early =
        error != ERROR_NONE || c->over || x->expect_continue || x->content_length > REFUSED_MAX;
    offer(c, url, error, why);
    c->put_off_ns = c->answered ? put_off_until(c) : 0;
    http__move(c, c->answered ? HTTP_DISCARD : HTTP_BODY);
    if (c->put_off_ns != 0 && http__put_off(c))
        return MHD_NO;
    if (c->answered && c->early)
        return http__send_answer(c);
    http__body_begin(c);
    return MHD_YES;
}

/* A piece of the body. It is left with the library while there is no memory for it. */
static enum MHD_Result take(struct http__connection *c, const char *piece, size_t *length)
{
    struct exchange *x = &c->x;
    int64_t bytes = x->body_bytes + (int64_t)*length;
    if (c->phase == HTTP_GONE)
        return MHD_NO;
    bool wanted = c->phase == HTTP_BODY && x->takes_body;
    if (wanted && bytes > x->content_length)
        return MHD_NO; /* the library ends a body at its length */
    if (wanted && bytes > x->sink_offset + x->sink_bytes && !handlers_make_room(x, bytes)) {
        if (!c->answered) {
            http__body_pause(c);
            return MHD_YES;
        }
        wanted = false; /* it was refused for what has come of it */
    }
    if (wanted)
        memcpy(x->sink + (x->body_bytes - x->sink_offset), piece, *length);
    x->body_bytes = bytes;
    http__body_came(c, *length);
    *length = 0;
    return MHD_YES;
}

void http__wait(struct http__connection *c)
{
    uint64_t by_ns = c->x.deadline_ns, probe_ns = c->http->now_ns + PROBE_NS;
    bool may_probe = c->left && !c->probed && !c->frame.http_1_0;
    http__set_deadline(c, may_probe && probe_ns < by_ns ? probe_ns : by_ns);
}

/* The body is complete. */
static enum MHD_Result complete(struct http__connection *c)
{
    struct exchange *x = &c->x;
    assert(c->phase == HTTP_BODY || (c->phase == HTTP_DISCARD && c->answered));
    if (c->answered && c->put_off_ns != 0 && c->session != NULL) {
        http__move(c, HTTP_WAIT);
        http__set_deadline(c, c->put_off_ns);
        http__suspend_later(c);
        return MHD_YES;
    }
    if (c->answered)
        return http__send_answer(c);
    x->body_done_ns = clock_now_ns();
    if (x->deadline_ns == c->first_deadline_ns)
        x->deadline_ns = x->body_done_ns + (uint64_t)c->http->options.limits.request_timeout_ns;
    c->in_call = true;
    handlers_run(x);
    c->in_call = false;
    if (c->answered)
        return http__send_answer(c);
    http__move(c, HTTP_WAIT);
    c->probed = false;
    http__wait(c);
    http__suspend_later(c);
    return MHD_YES;
}

enum MHD_Result http__on_request(void *context, struct MHD_Connection *library, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_bytes, void **state)
{
    struct http__connection *c = *state;
    (void)context;
    (void)library;
    if (c == NULL)
        return MHD_NO;
    if (*upload_bytes > 0)
        return take(c, upload, upload_bytes);
    switch (c->phase) {
    case HTTP_HEAD:
        return begin(c, url, method, version);
    case HTTP_BODY:
    case HTTP_DISCARD:
        return complete(c);
    case HTTP_WAIT:
        return MHD_YES; /* about to be suspended */
    case HTTP_READY:
        return http__send_answer(c);
    default:
        return MHD_NO;
    }
}

/* Whether the library has answered by itself, a refusal, which is counted. */
static bool count_refusal(struct http__connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->library, MHD_CONNECTION_INFO_HTTP_STATUS);
    if (info == NULL)
        return false;
    int status = c->refused != 0 ? c->refused : (int)info->http_status;
    http_count_refused(&c->http->count, status);
    if (!http__is_busy(c)) /* else http__finish logs it */
        http__log(c, "other", status, 0);
    return true;
}

void http__on_completed(void *context, struct MHD_Connection *library, void **state,
                        enum MHD_RequestTerminationCode why)
{
    struct http__connection *c = *state;
    struct http *http = context;
    (void)library;
    if (c == NULL)
        return;
    if (c->phase == HTTP_SENDING && !c->early)
        c->plain = why == MHD_REQUEST_TERMINATED_COMPLETED_OK;
    bool open = c->phase == HTTP_HEAD || (http__is_busy(c) && !c->answered);
    bool refused = open && count_refusal(c);
    if (http__is_busy(c))
        http__finish(c, !refused && why != MHD_REQUEST_TERMINATED_DAEMON_SHUTDOWN);
    http__move(c, HTTP_IDLE);
    http__set_deadline(c, http->now_ns + (uint64_t)http->options.limits.idle_timeout_ns);
    if (http->draining && why == MHD_REQUEST_TERMINATED_COMPLETED_OK)
        http__close_soon(c); /* its answer may have been made before the drain */
}
