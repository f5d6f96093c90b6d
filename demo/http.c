/* demo/http.c: a small HTTP client: one request a connection, an answer with a Content-Length.
 *
 * It is a demonstration's client: it trusts the daemon it has started itself, and gives up after
 * TIMEOUT_S. The caller owns the answer's body.
 */
#include "demo/demo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
    TIMEOUT_S = 60,
    HEAD_MAX = 8192
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval timeout = {.tv_sec = TIMEOUT_S};
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool send_all(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, data, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        data += sent;
        length -= (size_t)sent;
    }
    return true;
}

/* Reads up to length bytes, fewer only when the daemon closes. */
static size_t read_some(int fd, char *data, size_t length)
{
    ssize_t got;
    do {
        got = recv(fd, data, length, 0);
    } while (got < 0 && errno == EINTR);
    return got > 0 ? (size_t)got : 0;
}

/* What stands behind the colon of a header field; NULL when the field is absent. head ends with a
 * NUL. */
static const char *field(const char *head, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, length) == 0 && line[length] == ':')
            return line + length + 1 + strspn(line + length + 1, " ");
    }
    return NULL;
}

static size_t number_field(const char *head, const char *name, size_t fallback)
{
    const char *value = field(head, name);
    return value != NULL ? strtoull(value, NULL, 10) : fallback;
}

/* Reads the head into head (NUL-terminated) and whatever of the body came with it to behind it;
 * returns the bytes of the body that did, or SIZE_MAX on failure. */
static size_t read_head(int fd, char head[HEAD_MAX + 1], const char **body)
{
    size_t length = 0;
    char *end = NULL;
    while (end == NULL) {
        size_t got = length < HEAD_MAX ? read_some(fd, head + length, HEAD_MAX - length) : 0;
        if (got == 0)
            return SIZE_MAX;
        length += got;
        head[length] = '\0';
        end = strstr(head, "\r\n\r\n");
    }
    *body = end + 4;
    end[2] = '\0';
    return length - (size_t)(*body - head);
}

static bool read_answer(int fd, struct demo_answer *answer)
{
    char head[HEAD_MAX + 1];
    const char *early;
    size_t have = read_head(fd, head, &early);
    if (have == SIZE_MAX || strncmp(head, "HTTP/1.1 ", 9) != 0)
        return false;
    answer->status = (int)strtol(head + 9, NULL, 10);
    answer->length = number_field(head, "Content-Length", 0);
    answer->json_bytes = number_field(head, "Inference-Header-Content-Length", answer->length);
    const char *algorithm = field(head, "Invertd-Method");
    if (algorithm != NULL)
        snprintf(answer->algorithm, sizeof answer->algorithm, "%.*s", (int)strcspn(algorithm, "\r"),
                 algorithm);
    if (have > answer->length || answer->json_bytes > answer->length)
        return false;
    answer->body = malloc(answer->length + 1);
    if (answer->body == NULL)
        return false;
    memcpy(answer->body, early, have);
    while (have < answer->length) {
        size_t got = read_some(fd, answer->body + have, answer->length - have);
        if (got == 0)
            return false;
        have += got;
    }
    answer->body[answer->length] = '\0';
    return true;
}

bool demo_http(int port, const char *verb, const char *path, const void *body, size_t length,
               size_t json_bytes, struct demo_answer *answer)
{
    char head[512], inference[64] = "";
    memset(answer, 0, sizeof *answer);
    if (json_bytes > 0)
        snprintf(inference, sizeof inference, "Inference-Header-Content-Length: %zu\r\n",
                 json_bytes);
    int head_length = snprintf(head, sizeof head,
                               "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n"
                               "%sContent-Length: %zu\r\n\r\n",
                               verb, path, port, inference, length);
    int fd = connect_to(port);
    if (fd < 0)
        return false;
    double start = now_s();
    bool good = send_all(fd, head, (size_t)head_length) &&
                (length == 0 || send_all(fd, body, length)) && read_answer(fd, answer);
    answer->seconds = now_s() - start;
    close(fd);
    if (!good)
        demo_answer_free(answer);
    return good;
}

void demo_answer_free(struct demo_answer *answer)
{
    free(answer->body);
    memset(answer, 0, sizeof *answer);
}
