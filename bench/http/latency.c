/* bench/http/latency.c: how long one small inversion takes over HTTP when nothing else goes on.
 *
 *   latency PORT PATH N COUNT
 *
 * One connection, one request at a time: an N x N FP64 matrix as a binary v2 tensor, COUNT times
 * after a tenth as many to warm up. Prints one line of JSON with percentiles in microseconds. Ends
 * with 1 on an answer other than 200.
 *
 * One thread; memory for COUNT samples.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum {
    N_MAX = 32,
    BODY_MAX = 512 + N_MAX * N_MAX * 8,
    REQUEST_MAX = BODY_MAX + 512,
    ANSWER_MAX = 65536
};

/* The whole request, head and body. Returns its length. */
static size_t make_request(char *request, const char *path, int n)
{
    char json[512];
    size_t data_bytes = (size_t)(n * n) * sizeof(double);
    int json_bytes = snprintf(json, sizeof json,
                              "{\"inputs\":[{\"name\":\"A\",\"shape\":[1,%d,%d],\"datatype\":"
                              "\"FP64\",\"parameters\":{\"binary_data_size\":%zu}}],"
                              "\"parameters\":{\"binary_data_output\":true}}",
                              n, n, data_bytes);
    int length = snprintf(request, REQUEST_MAX,
                          "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n"
                          "Inference-Header-Content-Length: %d\r\n\r\n%s",
                          path, (size_t)json_bytes + data_bytes, json_bytes, json);
    for (int i = 0; i < n * n; i++) {
        double value = i % (n + 1) == 0 ? n : 1.0 / (1 + i);
        memcpy(request + length + (size_t)i * sizeof value, &value, sizeof value);
    }
    return (size_t)length + data_bytes;
}

/* Whether answer[0, have) is a whole HTTP answer with status 200; -1 when it is another one. */
static int is_whole(char *answer, size_t have)
{
    answer[have] = '\0';
    const char *end = strstr(answer, "\r\n\r\n");
    if (end == NULL)
        return 0;
    if (strncmp(answer, "HTTP/1.1 200", 12) != 0)
        return -1;
    const char *length = strcasestr(answer, "\r\nContent-Length:");
    if (length == NULL || length > end)
        return -1;
    size_t body = strtoul(length + strlen("\r\nContent-Length:"), NULL, 10);
    return have >= (size_t)(end + 4 - answer) + body;
}

static bool exchange(int fd, const char *request, size_t length)
{
    static char answer[ANSWER_MAX + 1];
    size_t have = 0;
    int whole = 0;
    if (send(fd, request, length, MSG_NOSIGNAL) != (ssize_t)length)
        return false;
    while (whole == 0 && have < ANSWER_MAX) {
        ssize_t got = recv(fd, answer + have, ANSWER_MAX - have, 0);
        if (got <= 0)
            return false;
        have += (size_t)got;
        whole = is_whole(answer, have);
    }
    return whole == 1;
}

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double percentile_us(const uint64_t *sorted, long count, double share)
{
    return (double)sorted[(long)(share * (double)(count - 1))] / 1e3;
}

int main(int argc, char **argv)
{
    static char request[REQUEST_MAX];
    long port = argc == 5 ? strtol(argv[1], NULL, 10) : 0;
    long n = argc == 5 ? strtol(argv[3], NULL, 10) : 0;
    long count = argc == 5 ? strtol(argv[4], NULL, 10) : 0;
    if (port < 1 || port > 65535 || n < 1 || n > N_MAX || count < 10 || count > 10000000) {
        fprintf(stderr, "usage: latency PORT PATH N COUNT\n");
        return 2;
    }
    size_t length = make_request(request, argv[2], (int)n);
    uint64_t *samples = calloc((size_t)count, sizeof *samples);
    int fd = connect_to((int)port);
    bool good = samples != NULL && fd >= 0;
    for (long i = -count / 10; good && i < count; i++) {
        uint64_t start = clock_now_ns();
        good = exchange(fd, request, length);
        if (i >= 0)
            samples[i] = clock_now_ns() - start;
    }
    if (good) {
        qsort(samples, (size_t)count, sizeof *samples, compare);
        printf("{\"samples\": %ld, \"p50_us\": %.1f, \"p90_us\": %.1f, \"p99_us\": %.1f, "
               "\"min_us\": %.1f, \"max_us\": %.1f}\n",
               count, percentile_us(samples, count, 0.5), percentile_us(samples, count, 0.9),
               percentile_us(samples, count, 0.99), percentile_us(samples, count, 0),
               percentile_us(samples, count, 1));
    } else {
        fprintf(stderr, "latency: no answer with status 200\n");
    }
    if (fd >= 0)
        close(fd);
    free(samples);
    return good ? 0 : 1;
}
