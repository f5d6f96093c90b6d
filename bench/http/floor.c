/* bench/http/floor.c: the floor of the HTTP stack, to measure the daemon's HTTP path against.
 *
 * N libuv loops, each embedding one libmicrohttpd epoll daemon on one shared port. A POST echoes
 * its body after suspending and resuming the connection, as a daemon that waits for a device must;
 * with a header `Answer-Bytes: N` it answers with N bytes instead. Any other request is answered
 * "hello" at once. Nothing is parsed, queued or computed.
 *
 *   http_floor PORT LOOPS
 *
 * Each loop runs on a thread of its own and shares nothing with the others. A request's body is
 * owned by the request. It serves until it is killed; it is a benchmark's yardstick and does not
 * defend itself against hostile clients.
 */
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum {
    ROUNDS_MAX = 1000,
    CONNECTION_BYTES = 256 << 10,
    ANSWER_MAX = 1 << 30,
    TICK_MS = 100
};

struct request {
    char *body;
    size_t length, capacity;
    struct MHD_Connection *connection;
    struct request *next;
    int answered;
};

struct loop {
    uv_loop_t uv;
    uv_poll_t poll;
    uv_timer_t timer;
    uv_async_t resume;
    uv_thread_t thread;
    struct MHD_Daemon *daemon;
    struct request *done; /* suspended, to be resumed */
    char *answer;         /* of any request that asks for a length; it stays for the next */
    size_t answer_bytes;
    uint16_t port;
};

/* The daemon's sockets are edge-triggered: run until it has nothing ready, or some will stall. */
static void drive(struct loop *loop)
{
    MHD_UNSIGNED_LONG_LONG timeout;
    int rounds = 0;
    do {
        MHD_run(loop->daemon);
    } while (++rounds < ROUNDS_MAX && MHD_get_timeout(loop->daemon, &timeout) == MHD_YES &&
             timeout == 0);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    drive(poll->data);
}

static void on_timer(uv_timer_t *timer)
{
    drive(timer->data);
}

/* Resuming does not wake an externally polled daemon: it must be run afterwards. */
static void on_resume(uv_async_t *async)
{
    struct loop *loop = async->data;
    struct request *r = loop->done;
    loop->done = NULL;
    while (r != NULL) {
        struct request *next = r->next;
        r->answered = 1;
        MHD_resume_connection(r->connection);
        r = next;
    }
    drive(loop);
}

static enum MHD_Result reply(struct MHD_Connection *c, const void *data, size_t length)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(length, (void *)data, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result = MHD_queue_response(c, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

/* As long an answer as was asked for. */
static enum MHD_Result reply_bytes(struct loop *loop, struct MHD_Connection *c, const char *asked)
{
    size_t bytes = strtoul(asked, NULL, 10);
    if (bytes > ANSWER_MAX)
        return MHD_NO;
    if (bytes > loop->answer_bytes) {
        free(loop->answer); /* no other answer is under way in a measurement */
        loop->answer = malloc(bytes);
        loop->answer_bytes = loop->answer != NULL ? bytes : 0;
        if (loop->answer == NULL)
            return MHD_NO;
        memset(loop->answer, 'x', bytes);
    }
    return reply(c, loop->answer, bytes);
}

static enum MHD_Result begin(struct MHD_Connection *c, void **state)
{
    const char *length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");
    struct request *r = calloc(1, sizeof *r);
    if (r == NULL)
        return MHD_NO;
    r->connection = c;
    r->capacity = length ? strtoul(length, NULL, 10) : 0;
    r->body = malloc(r->capacity + 1);
    *state = r;
    return r->body != NULL ? MHD_YES : MHD_NO;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state)
{
    struct loop *loop = cls;
    struct request *r = *state;
    (void)url;
    (void)version;
    if (r == NULL)
        return begin(c, state);
    if (*upload_size > 0) {
        if (*upload_size > r->capacity - r->length)
            return MHD_NO;
        memcpy(r->body + r->length, upload, *upload_size);
        r->length += *upload_size;
        *upload_size = 0;
        return MHD_YES;
    }
    if (strcmp(method, "POST") != 0)
        return reply(c, "hello", 5);
    if (!r->answered) {
        MHD_suspend_connection(c);
        r->next = loop->done;
        loop->done = r;
        uv_async_send(&loop->resume);
        return MHD_YES;
    }
    const char *asked = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Answer-Bytes");
    return asked != NULL ? reply_bytes(loop, c, asked) : reply(c, r->body, r->length);
}

static void on_completed(void *cls, struct MHD_Connection *c, void **state,
                         enum MHD_RequestTerminationCode why)
{
    struct request *r = *state;
    (void)cls;
    (void)c;
    (void)why;
    if (r != NULL) {
        free(r->body);
        free(r);
    }
}

static void run(void *arg)
{
    struct loop *loop = arg;
    uv_loop_init(&loop->uv);
    loop->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, loop->port, NULL, NULL, on_request, loop,
        MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
    if (loop->daemon == NULL) {
        fprintf(stderr, "http_floor: cannot listen on port %u\n", loop->port);
        exit(1);
    }
    int fd = MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    uv_poll_init(&loop->uv, &loop->poll, fd);
    uv_async_init(&loop->uv, &loop->resume, on_resume);
    uv_timer_init(&loop->uv, &loop->timer);
    loop->poll.data = loop->resume.data = loop->timer.data = loop;
    uv_poll_start(&loop->poll, UV_READABLE, on_readable);
    uv_timer_start(&loop->timer, on_timer, TICK_MS, TICK_MS);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

int main(int argc, char **argv)
{
    long port = argc == 3 ? strtol(argv[1], NULL, 10) : 0;
    long count = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    if (port < 1 || port > 65535 || count < 1 || count > 256) {
        fprintf(stderr, "usage: floor PORT LOOPS\n");
        return 2;
    }
    struct loop *loops = calloc((size_t)count, sizeof *loops);
    if (loops == NULL)
        return 1;
    for (long i = 0; i < count; i++) {
        loops[i].port = (uint16_t)port;
        uv_thread_create(&loops[i].thread, run, &loops[i]);
    }
    for (long i = 0; i < count; i++)
        uv_thread_join(&loops[i].thread);
    free(loops);
    return 0;
}
