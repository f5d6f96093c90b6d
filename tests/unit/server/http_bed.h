/* tests/unit/server/http_bed.h: a door over loopback, driven by hand in one thread, with handlers
 * of the test's own that answer at once, in time, later, or never. Defines what handlers/handlers.h
 * declares: for one program's one source alone.
 */
#ifndef TESTS_UNIT_SERVER_HTTP_BED_H
#define TESTS_UNIT_SERVER_HTTP_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "handlers/handlers.h"
#include "server/http/http.h"
#include "server/http/put_off.h"
#include "server/listen.h"

#define MS INT64_C(1000000)
#define ANSWER_MAX (8 << 20)

/* ---- Handlers ---- */

enum manner {
    AT_RUN,   /* answered in handlers_run */
    AT_BEGIN, /* refused in handlers_begin */
    LATER,    /* answered by the test */
};

static struct {
    enum manner manner;
    int begun, run, expired, expired_in_body, ended, refused, refused_begun, released;
    int status_at_begin; /* 0: 404 */
    enum error refusal;
    bool without_sink;
    bool in_steps, is_full; /* the sink grows; there is no memory for it */
    int64_t asked_bytes;    /* of handlers_make_room, last */
    int expired_in_pause;
    const struct exchange *last_begun;
    struct exchange *waiting;
    int64_t body_bytes;
    size_t answer_bytes; /* 0: a short text */
    int segments;
    const struct exchange_file *file;     /* instead; NULL: none */
    const struct exchange_stream *stream; /* NULL: none */
    char path[64], query[64], header[64];
    unsigned char body[1 << 20];
} fake;

static const struct mailbox *fake_mailbox; /* of the door */
static char *answer_body;                  /* [ANSWER_MAX], of the group of tests */

static inline int make_answer_body(void **state)
{
    (void)state;
    answer_body = malloc(ANSWER_MAX);
    if (answer_body == NULL)
        return -1;
    memset(answer_body, 'A', ANSWER_MAX);
    return 0;
}

static inline int free_answer_body(void **state)
{
    (void)state;
    free(answer_body);
    return 0;
}

static void on_release(void *context)
{
    (void)context;
    fake.released++;
}

static void answer(struct exchange *x, int status)
{
    struct exchange_reply reply = {.status = status, .release = on_release, .field_count = 1};
    reply.fields[0] = (struct exchange_field){"Content-Type", "text/plain"};
    size_t bytes = fake.answer_bytes != 0 ? fake.answer_bytes : 5;
    int segments = fake.segments != 0 ? fake.segments : 1;
    for (int i = 0; i < segments; i++)
        reply.segments[i] = (struct iovec){answer_body + (size_t)i * (bytes / (size_t)segments),
                                           bytes / (size_t)segments};
    reply.segment_count = segments;
    reply.file = fake.file;
    reply.stream = fake.stream;
    if (reply.file != NULL || reply.stream != NULL)
        reply.segment_count = 0;
    exchange_answer(x, &reply);
}

static bool on_parameter(void *context, const char *name, const char *value)
{
    char *query = context;
    size_t length = strlen(query);
    snprintf(query + length, sizeof fake.query - length, "%s=%s;", name, value);
    return true;
}

void handlers_begin(struct exchange *x)
{
    fake.begun++;
    fake.last_begun = x;
    snprintf(fake.path, sizeof fake.path, "%s", x->path);
    fake.query[0] = '\0';
    x->door->query(x, on_parameter, fake.query);
    const char *header = exchange_header(x, "x-test");
    snprintf(fake.header, sizeof fake.header, "%s", header != NULL ? header : "");
    if (fake.manner == AT_BEGIN)
        answer(x, fake.status_at_begin != 0 ? fake.status_at_begin : 404);
    else if (x->content_length > 0 && !fake.without_sink) {
        assert_true(x->content_length <= (int64_t)sizeof fake.body);
        x->takes_body = true;
        x->sink = fake.body;
        x->sink_bytes = fake.in_steps ? 0 : x->content_length;
    }
}

bool handlers_make_room(struct exchange *x, int64_t bytes)
{
    fake.asked_bytes = bytes;
    if (fake.is_full) {
        fake.waiting = x;
        return false;
    }
    x->sink_bytes = bytes;
    return true;
}

void handlers_run(struct exchange *x)
{
    fake.run++;
    fake.body_bytes = x->body_bytes;
    if (fake.manner == LATER)
        fake.waiting = x;
    else
        answer(x, 200);
}

void handlers_expired(struct exchange *x, enum handlers_late what)
{
    static const int statuses[] = {
        [HANDLERS_LATE_ANSWER] = 504, [HANDLERS_LATE_BODY] = 408, [HANDLERS_LATE_ROOM] = 503};
    fake.expired++;
    fake.expired_in_body += what == HANDLERS_LATE_BODY;
    fake.expired_in_pause += what == HANDLERS_LATE_ROOM;
    answer(x, statuses[what]);
}

void handlers_hasten(struct exchange *x)
{
    (void)x;
}

void handlers_tick(struct handlers *handlers, struct mailbox *mailbox, uint64_t now_ns)
{
    assert_null(handlers);
    assert_ptr_equal(mailbox, fake_mailbox);
    assert_true(now_ns > 0);
}

void handlers_end(struct exchange *x)
{
    fake.ended++;
    fake.last_begun = NULL;
    if (fake.waiting == x)
        fake.waiting = NULL;
}

void handlers_answered(const struct exchange *x, int status, int64_t in_bytes, int64_t out_bytes)
{
    assert_int_equal(in_bytes, x->body_bytes);
    assert_true(status >= 200 && out_bytes >= 0);
}

struct queue_account *handlers_certified(struct handlers *handlers, const char *name)
{
    (void)handlers;
    (void)name;
    return NULL;
}

void handlers_refuse(struct exchange *x, enum error code, const char *detail)
{
    fake.refused++;
    fake.refused_begun += fake.last_begun == x;
    fake.refusal = code;
    assert_non_null(detail);
    answer(x, error_http_status(code));
}

const char *handlers_traceparent(const struct exchange *x)
{
    (void)x;
    return NULL;
}

bool handlers_is_health(const struct exchange *x)
{
    (void)x;
    return false;
}

const char *handlers_route_label(const struct exchange *x)
{
    (void)x;
    return "test";
}

/* ---- A door and its clients ---- */

static struct {
    struct http *http;
    struct metric_registry *metrics;
    struct mailbox box;
    _Atomic int64_t connections;
    _Atomic uint64_t short_since_ns;
    struct put_off_clients put_off_clients;
    int port;
} bed;

static void no_wake(void *context)
{
    (void)context;
}

static const struct proxy_list no_proxies;

static inline void set_up(struct http_limits limits)
{
    struct listen_address address;
    struct listen sockets;
    assert_int_equal(listen_parse("127.0.0.1:0", &address, NULL), ERROR_NONE);
    assert_int_equal(listen_open(&address, 1, &sockets, NULL), ERROR_NONE);
    bed.port = sockets.port;
    bed.metrics = metric_registry_create();
    bed.connections = 0;
    bed.short_since_ns = 0;
    memset(&bed.put_off_clients, 0, sizeof bed.put_off_clients);
    mailbox_init(&bed.box, no_wake, NULL);
    fake_mailbox = &bed.box;
    int fd = listen_take(&sockets, 0);
    struct http_options options = {.listen_fds = &fd,
                                   .listen_count = 1,
                                   .proxies = &no_proxies,
                                   .metrics = bed.metrics,
                                   .mailbox = &bed.box,
                                   .connections = &bed.connections,
                                   .short_since_ns = &bed.short_since_ns,
                                   .spare_max = 64,
                                   .linger_max = 1024,
                                   .put_off_clients = &bed.put_off_clients,
                                   .limits = limits};
    assert_int_equal(http_create(&options, &bed.http, NULL), ERROR_NONE);
    memset(&fake, 0, sizeof fake);
    signal(SIGPIPE, SIG_IGN);
}

static inline void tear_down(void)
{
    http_destroy(&bed.http);
    mailbox_fini(&bed.box);
    metric_registry_destroy(&bed.metrics);
    assert_int_equal(fake.ended, fake.begun + fake.refused - fake.refused_begun);
    assert_int_equal(bed.connections, 0);
}

static const struct http_limits generous = {.connections_max = 8,
                                            .header_timeout_ns = 10000 * MS,
                                            .body_timeout_ns = 10000 * MS,
                                            .request_timeout_ns = 10000 * MS,
                                            .send_timeout_ns = 10000 * MS,
                                            .idle_timeout_ns = 10000 * MS};

static inline void connect_to_bed(int fd)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)bed.port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof name), 0);
}

static inline int call(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    connect_to_bed(fd);
    return fd;
}

static inline int64_t counted(enum metric_id metric, const char *first, const char *second)
{
    return (int64_t)metric_value(metric_series(bed.metrics, metric, first, second));
}

static inline void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static inline void turn(void)
{
    struct pollfd ready[] = {{.fd = http_fd(bed.http), .events = POLLIN},
                             {.fd = http_accept_fd(bed.http), .events = POLLIN},
                             {.fd = http_watch_fd(bed.http), .events = POLLIN}};
    poll(ready, 3, 1);
    http_accept(bed.http);
    http_watch(bed.http);
    http_tick(bed.http);
    (void)http_drive(bed.http);
}

/* What a client hears until `until` is in it, or the connection ends, or a second passed. The end
 * is shown as "<end>", a reset as "<reset>". */
static inline const char *hear(int fd, const char *until)
{
    static char heard[ANSWER_MAX + 4096];
    size_t length = 0;
    heard[0] = '\0';
    for (int i = 0; i < 2000; i++) {
        turn();
        ssize_t count = recv(fd, heard + length, sizeof heard - length - 16, MSG_DONTWAIT);
        if (count > 0) {
            length += (size_t)count;
            heard[length] = '\0';
            i = 0;
        } else if (count == 0 || errno != EAGAIN) {
            strcpy(heard + length, count == 0 ? "<end>" : "<reset>");
            return heard;
        }
        if (strstr(heard, until) != NULL)
            return heard;
    }
    return heard;
}

static inline int times(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        count++;
    return count;
}

#endif
