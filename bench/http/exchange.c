/* bench/http/exchange.c: how long one large request and its answer take over HTTP.
 *
 *   exchange PORT PATH BODY-FILE COUNT [HEADER...]
 *
 * One connection, one request at a time, COUNT times after one to warm up; HEADERs ("Accept: ...")
 * go with each. The answer is read and dropped. Prints one line of JSON: the shortest and the
 * median time in milliseconds, and the bytes of the answer's body. Ends with 1 on an answer other
 * than 200 with a Content-Length.
 *
 * One thread; memory for the body.
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
    HEAD_MAX = 4096,
    PIECE_BYTES = 1 << 20,
    COUNT_MAX = 1000,
    FIXED_ARGUMENTS = 5
};

struct message {
    char *bytes;
    size_t length;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "exchange: %s\n", what);
    exit(1);
}

/* Head and body of the request. */
static struct message make_request(char **arguments, int count)
{
    struct message request = {0};
    FILE *file = fopen(arguments[3], "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        die("cannot read the body");
    size_t body = (size_t)ftell(file);
    rewind(file);
    request.bytes = malloc(HEAD_MAX + body);
    if (request.bytes == NULL)
        die("out of memory");
    size_t used = (size_t)snprintf(request.bytes, HEAD_MAX,
                                   "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n",
                                   arguments[2], body);
    for (int i = FIXED_ARGUMENTS; i < count && used < HEAD_MAX; i++)
        used += (size_t)snprintf(request.bytes + used, HEAD_MAX - used, "%s\r\n", arguments[i]);
    if (used + 2 > HEAD_MAX)
        die("too many headers");
    memcpy(request.bytes + used, "\r\n", 2);
    request.length = used + 2 + body;
    if (fread(request.bytes + used + 2, 1, body, file) != body)
        die("cannot read the body");
    fclose(file);
    return request;
}

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("cannot connect");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static size_t receive(int fd, char *to, size_t bytes_max)
{
    ssize_t got = recv(fd, to, bytes_max, 0);
    if (got <= 0)
        die("the connection was closed");
    return (size_t)got;
}

/* Returns the bytes of the answer's body. */
static size_t exchange(int fd, const struct message *request, char *piece)
{
    size_t sent = 0, have = 0;
    const char *end = NULL;
    while (sent < request->length) {
        ssize_t more = send(fd, request->bytes + sent, request->length - sent, MSG_NOSIGNAL);
        if (more <= 0)
            die("the connection was closed");
        sent += (size_t)more;
    }
    while (end == NULL && have < HEAD_MAX) {
        have += receive(fd, piece + have, PIECE_BYTES - have);
        piece[have] = '\0';
        end = strstr(piece, "\r\n\r\n");
    }
    if (end == NULL || strncmp(piece, "HTTP/1.1 200", 12) != 0)
        die("no answer with status 200");
    const char *length = strcasestr(piece, "\r\nContent-Length:");
    if (length == NULL || length > end)
        die("an answer without a length");
    size_t body = strtoul(length + strlen("\r\nContent-Length:"), NULL, 10);
    size_t left = body - (have - (size_t)(end + 4 - piece));
    while (left > 0)
        left -= receive(fd, piece, left < PIECE_BYTES ? left : PIECE_BYTES);
    return body;
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

int main(int count, char **arguments)
{
    static uint64_t samples[COUNT_MAX];
    static char piece[PIECE_BYTES + 1];
    long port = count >= FIXED_ARGUMENTS ? strtol(arguments[1], NULL, 10) : 0;
    long rounds = count >= FIXED_ARGUMENTS ? strtol(arguments[4], NULL, 10) : 0;
    if (port < 1 || port > 65535 || rounds < 1 || rounds > COUNT_MAX) {
        fprintf(stderr, "usage: exchange PORT PATH BODY-FILE COUNT [HEADER...]\n");
        return 2;
    }
    struct message request = make_request(arguments, count);
    int fd = connect_to((int)port);
    size_t answer = exchange(fd, &request, piece);
    for (long i = 0; i < rounds; i++) {
        uint64_t start = clock_now_ns();
        answer = exchange(fd, &request, piece);
        samples[i] = clock_now_ns() - start;
    }
    qsort(samples, (size_t)rounds, sizeof *samples, compare);
    uint64_t median = samples[rounds / 2];
    printf("{\"best_ms\": %.4f, \"median_ms\": %.4f, \"answer_bytes\": %zu}\n",
           (double)samples[0] / 1e6, (double)median / 1e6, answer);
    close(fd);
    free(request.bytes);
    return 0;
}
