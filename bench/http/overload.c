/* bench/http/overload.c: clients that ask for more than a service can do.
 *
 *   overload PORT PATH N COUNT CONNECTIONS SECONDS THREADS again|reconnect
 *
 * Each connection sends COUNT matrices of N x N FP64 as a binary v2 tensor, and the same again when
 * its answer is there. One that is refused (429 or 503) does so at once, on the same connection or,
 * with `reconnect`, on a new one. Prints one line of JSON: answers with status 200 a second, from
 * the second second on; refusals a second; other answers, and connections lost, in all; and the
 * time, in milliseconds, that refusals of newcomers took, from the request's first byte to the
 * answer's end. A newcomer sends one request, and there is one every 10 ms.
 *
 * Every client has an address of its own in 127.0.0.0/8: one address would run out of ports.
 *
 * THREADS threads with an epoll set each; memory for a request, and 8 KiB a connection.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    HEAD_MAX = 8192,
    THREADS_MAX = 64,
    EVENTS_MAX = 64,
    SAMPLES_MAX = 1 << 16,
    NEWCOMERS = 256, /* at once, of a thread */
    NEWCOMER_NS = 10000000,
    ARGUMENTS = 9
};

struct counts {
    uint64_t good, refused, other, lost;
};

struct connection {
    int fd;
    struct sockaddr_in from;
    bool is_newcomer;
    size_t sent, have, left; /* left: of the answer's body; have: of its head, 0 past it */
    int status;              /* 0: its head has not come */
    bool closes;
    uint64_t begun_ns;
    char head[HEAD_MAX + 1];
};

struct thread {
    pthread_t id;
    int first, connections, epoll_fd; /* first: its connections' numbers begin there */
    struct connection newcomers[NEWCOMERS];
    uint64_t newcomer_ns; /* when the next one comes; 0: none does */
    uint32_t newcomer_count;
    struct counts counts;
    float *first_ms;
    size_t first_count;
};

static struct {
    struct sockaddr_in address;
    char *request;
    size_t length;
    bool reconnect;
    uint64_t from_ns, until_ns; /* what is counted */
} load;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "overload: %s\n", what);
    exit(1);
}

static void make_request(const char *path, int n, int count)
{
    char json[512];
    size_t data_bytes = (size_t)n * (size_t)n * (size_t)count * sizeof(double);
    int json_bytes = snprintf(json, sizeof json,
                              "{\"inputs\":[{\"name\":\"A\",\"shape\":[%d,%d,%d],\"datatype\":"
                              "\"FP64\",\"parameters\":{\"binary_data_size\":%zu}}],"
                              "\"parameters\":{\"binary_data_output\":true}}",
                              count, n, n, data_bytes);
    load.request = malloc(HEAD_MAX + data_bytes);
    if (load.request == NULL)
        die("out of memory");
    load.length = (size_t)snprintf(load.request, HEAD_MAX,
                                   "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n"
                                   "Inference-Header-Content-Length: %d\r\n\r\n%s",
                                   path, (size_t)json_bytes + data_bytes, json_bytes, json);
    for (size_t i = 0; i < data_bytes / sizeof(double); i++) {
        size_t entry = i % ((size_t)n * (size_t)n);
        double value = entry % ((size_t)n + 1) == 0 ? n : 1.0 / (double)(1 + entry);
        memcpy(load.request + load.length + i * sizeof value, &value, sizeof value);
    }
    load.length += data_bytes;
}

static void watch(struct thread *thread, struct connection *c, int operation)
{
    struct epoll_event event = {.events = EPOLLIN | (c->sent < load.length ? EPOLLOUT : 0),
                                .data.ptr = c};
    if (epoll_ctl(thread->epoll_fd, operation, c->fd, &event) != 0)
        die("epoll_ctl failed");
}

static void begin(struct connection *c)
{
    c->sent = c->have = c->left = 0;
    c->status = 0;
    c->closes = false;
    c->begun_ns = 0;
}

static void open_anew(struct thread *thread, struct connection *c)
{
    int one = 1;
    if (c->fd >= 0)
        close(c->fd);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0 || setsockopt(c->fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one) != 0 ||
        bind(c->fd, (struct sockaddr *)&c->from, sizeof c->from) != 0 ||
        (connect(c->fd, (struct sockaddr *)&load.address, sizeof load.address) != 0 &&
         errno != EINPROGRESS))
        die("cannot connect");
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    begin(c);
    watch(thread, c, EPOLL_CTL_ADD);
}

static void lose(struct thread *thread, struct connection *c)
{
    thread->counts.lost++;
    open_anew(thread, c);
}

static void set_address(struct connection *c, uint32_t number)
{
    c->fd = -1;
    c->from.sin_family = AF_INET;
    c->from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (1u << 16) + number);
}

static void let_newcomer_in(struct thread *thread, uint64_t now_ns)
{
    if (thread->newcomer_ns == 0 || now_ns < thread->newcomer_ns)
        return;
    thread->newcomer_ns += NEWCOMER_NS;
    struct connection *c = &thread->newcomers[thread->newcomer_count % NEWCOMERS];
    if (thread->newcomer_count >= NEWCOMERS && c->fd >= 0)
        return; /* it still waits */
    c->is_newcomer = true;
    set_address(c, (1u << 16) + thread->newcomer_count++);
    open_anew(thread, c);
}

/* The answer is whole. */
static void end(struct thread *thread, struct connection *c)
{
    uint64_t now_ns = clock_now_ns();
    bool refused = c->status == 429 || c->status == 503;
    bool counts = now_ns >= load.from_ns && now_ns < load.until_ns;
    thread->counts.good += counts && c->status == 200;
    thread->counts.refused += counts && refused;
    thread->counts.other += !refused && c->status != 200;
    if (refused && c->is_newcomer && thread->first_count < SAMPLES_MAX)
        thread->first_ms[thread->first_count++] = (float)(now_ns - c->begun_ns) / 1e6F;
    if (c->is_newcomer) {
        close(c->fd);
        c->fd = -1;
        return;
    }
    if (c->closes || c->sent < load.length || (refused && load.reconnect)) {
        open_anew(thread, c);
        return;
    }
    begin(c);
    watch(thread, c, EPOLL_CTL_MOD);
}

/* False: the connection is a new one. */
static bool write_more(struct thread *thread, struct connection *c)
{
    if (c->begun_ns == 0)
        c->begun_ns = clock_now_ns();
    ssize_t more = send(c->fd, load.request + c->sent, load.length - c->sent, MSG_NOSIGNAL);
    if (more < 0 && errno != EAGAIN && errno != EPIPE && errno != ECONNRESET) {
        lose(thread, c);
        return false;
    }
    if (more < 0)
        return true; /* the answer may lie there */
    c->sent += (size_t)more;
    if (c->sent == load.length)
        watch(thread, c, EPOLL_CTL_MOD);
    return true;
}

/* Of a head; false when it is none. */
static bool read_head(struct connection *c, char *head_end)
{
    *head_end = '\0';
    const char *length = strcasestr(c->head, "\r\nContent-Length:");
    if (strncmp(c->head, "HTTP/1.1 ", 9) != 0 || length == NULL)
        return false;
    c->status = (int)strtol(c->head + 9, NULL, 10);
    c->left = strtoul(length + strlen("\r\nContent-Length:"), NULL, 10);
    c->closes = strcasestr(c->head, "\r\nConnection: close") != NULL;
    size_t body = c->have - (size_t)(head_end + 4 - c->head);
    c->left -= body < c->left ? body : c->left;
    return true;
}

static void read_more(struct thread *thread, struct connection *c)
{
    static _Thread_local char piece[1 << 16];
    bool in_head = c->status == 0;
    char *to = in_head ? c->head + c->have : piece;
    size_t most = in_head ? HEAD_MAX - c->have : c->left < sizeof piece ? c->left : sizeof piece;
    ssize_t got = recv(c->fd, to, most, 0);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        lose(thread, c);
        return;
    }
    if (!in_head) {
        c->left -= (size_t)got;
    } else {
        c->have += (size_t)got;
        c->head[c->have] = '\0';
        char *head_end = strstr(c->head, "\r\n\r\n");
        if (head_end == NULL && c->have < HEAD_MAX)
            return;
        if (head_end == NULL || !read_head(c, head_end))
            die("an answer without a length");
    }
    if (c->left == 0)
        end(thread, c);
}

static void *run(void *context)
{
    struct thread *thread = context;
    struct connection *connections = calloc((size_t)thread->connections, sizeof *connections);
    struct epoll_event events[EVENTS_MAX];
    if (connections == NULL || thread->first_ms == NULL || thread->epoll_fd < 0)
        die("out of memory");
    for (int i = 0; i < thread->connections; i++) {
        set_address(&connections[i], (uint32_t)(thread->first + i));
        open_anew(thread, &connections[i]);
    }
    for (uint64_t now_ns; (now_ns = clock_now_ns()) < load.until_ns;) {
        let_newcomer_in(thread, now_ns);
        int count = epoll_wait(thread->epoll_fd, events, EVENTS_MAX, 5);
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            bool same = true;
            if ((events[i].events & EPOLLOUT) != 0 && c->sent < load.length)
                same = write_more(thread, c);
            if (same && (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
                read_more(thread, c);
        }
    }
    for (int i = 0; i < thread->connections; i++)
        close(connections[i].fd);
    close(thread->epoll_fd);
    free(connections);
    return NULL;
}

static int compare(const void *a, const void *b)
{
    const float *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void report(struct thread *threads, int count, double seconds)
{
    struct counts all = {0};
    float *first_ms = malloc((size_t)count * SAMPLES_MAX * sizeof *first_ms);
    size_t samples = 0;
    if (first_ms == NULL)
        die("out of memory");
    for (int i = 0; i < count; i++) {
        const struct thread *thread = &threads[i];
        all.good += thread->counts.good;
        all.refused += thread->counts.refused;
        all.other += thread->counts.other;
        all.lost += thread->counts.lost;
        memcpy(first_ms + samples, thread->first_ms, thread->first_count * sizeof *first_ms);
        samples += thread->first_count;
    }
    qsort(first_ms, samples, sizeof *first_ms, compare);
    printf("{\"good_per_s\": %.1f, \"refused_per_s\": %.1f, \"other\": %llu, \"lost\": %llu, "
           "\"first_refusals\": %zu",
           (double)all.good / seconds, (double)all.refused / seconds, (unsigned long long)all.other,
           (unsigned long long)all.lost, samples);
    if (samples > 0)
        printf(", \"first_p50_ms\": %.3f, \"first_p99_ms\": %.3f, \"first_max_ms\": %.3f",
               (double)first_ms[samples / 2], (double)first_ms[samples * 99 / 100],
               (double)first_ms[samples - 1]);
    printf("}\n");
    free(first_ms);
}

int main(int count, char **arguments)
{
    static struct thread threads[THREADS_MAX];
    long values[7] = {0}; /* PORT, N, COUNT, CONNECTIONS, SECONDS, THREADS */
    const int places[] = {1, 3, 4, 5, 6, 7};
    bool good = count == ARGUMENTS &&
                (strcmp(arguments[8], "again") == 0 || strcmp(arguments[8], "reconnect") == 0);
    for (int i = 0; i < 6 && good; i++) {
        values[i] = strtol(arguments[places[i]], NULL, 10);
        good = values[i] >= 1 && values[i] <= 65535;
    }
    if (!good || values[5] > THREADS_MAX || values[3] < values[5]) {
        fprintf(stderr, "usage: overload PORT PATH N COUNT CONNECTIONS SECONDS THREADS "
                        "again|reconnect\n");
        return 2;
    }
    load.address = (struct sockaddr_in){.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)values[0]),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    load.reconnect = strcmp(arguments[8], "reconnect") == 0;
    make_request(arguments[2], (int)values[1], (int)values[2]);
    load.from_ns = clock_now_ns() + UINT64_C(1000000000);
    load.until_ns = load.from_ns + (uint64_t)values[4] * UINT64_C(1000000000);
    for (long i = 0; i < values[5]; i++) {
        long more = i < values[3] % values[5];
        threads[i].connections = (int)(values[3] / values[5] + more);
        threads[i].first = i > 0 ? threads[i - 1].first + threads[i - 1].connections : 0;
        threads[i].newcomer_ns = i == 0 ? load.from_ns : 0;
        threads[i].epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        threads[i].first_ms = malloc(SAMPLES_MAX * sizeof *threads[i].first_ms);
        if (pthread_create(&threads[i].id, NULL, run, &threads[i]) != 0)
            die("cannot start a thread");
    }
    for (long i = 0; i < values[5]; i++)
        pthread_join(threads[i].id, NULL);
    report(threads, (int)values[5], (double)values[4]);
    for (long i = 0; i < values[5]; i++)
        free(threads[i].first_ms);
    free(load.request);
    return 0;
}
