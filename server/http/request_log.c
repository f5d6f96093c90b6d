/* server/http/request_log.c: see request_log.h.
 *
 * A file that is opened anew takes the old one's descriptor number in one step, so that a door that
 * writes at that moment needs no lock.
 *
 * A pipe (stderr in a container) takes pieces of PIPE_BUF in one go, and longer ones mixed with
 * those of others; and it makes a writer wait when it is full. So it gets whole lines in pieces no
 * longer than that, when it has room for one. What has to wait stays in the buffer.
 */
#include "server/http/request_log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#define BUFFER_BYTES ((size_t)64 << 10)
#define LINE_MAX_BYTES 2048 /* more than any line has */
#define DATE_BYTES 24
#define END_WAIT_MS 100             /* at the end, for a pipe to take a piece */
#define SAY_AGAIN_NS (10 * CLOCK_S) /* between two complaints that nothing can be written */

struct request_log {
    int fd;
    char *path;               /* NULL: stderr */
    _Atomic size_t piece_max; /* bytes that are written at once */
    _Atomic uint64_t said_ns;
};

struct request_log_buffer {
    struct request_log *log;
    uint64_t since_ns; /* of the oldest line */
    uint64_t second;   /* that date is of */
    char date[DATE_BYTES];
    size_t length;
    char bytes[BUFFER_BYTES];
};

_Static_assert(LINE_MAX_BYTES <= PIPE_BUF, "a piece holds a line");

/* ---- The file ---- */

static size_t piece_max_of(int fd)
{
    struct stat file;
    return fstat(fd, &file) == 0 && S_ISREG(file.st_mode) ? BUFFER_BYTES : PIPE_BUF;
}

/* Of a pipe without a reader it says so, and does not wait. */
static int open_path(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640);
}

enum error request_log_open(const char *path, struct request_log **result, struct failure *failure)
{
    struct request_log *log = calloc(1, sizeof *log);
    if (log == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    log->fd = STDERR_FILENO;
    if (strcmp(path, "-") != 0) {
        log->path = strdup(path);
        log->fd = log->path != NULL ? open_path(path) : -1;
    }
    if (log->fd < 0) {
        enum error error =
            failure_set(failure, ERROR_BAD_OPTION, "--access-log \"%s\" is not allowed; %s.", path,
                        strerror(errno));
        free(log->path);
        free(log);
        return error;
    }
    log->piece_max = piece_max_of(log->fd);
    *result = log;
    return ERROR_NONE;
}

void request_log_close(struct request_log **log)
{
    if (*log == NULL)
        return;
    if ((*log)->path != NULL)
        close((*log)->fd);
    free((*log)->path);
    free(*log);
    *log = NULL;
}

void request_log_reopen(struct request_log *log)
{
    if (log->path == NULL)
        return;
    int fd = open_path(log->path);
    if (fd < 0) {
        log_line(LOG_ERROR, "the access log cannot be opened anew; the old file stays", "why",
                 LOG_STR, strerror(errno), NULL);
        return;
    }
    log->piece_max = piece_max_of(fd);
    dup3(fd, log->fd, O_CLOEXEC);
    close(fd);
}

/* What cannot be written is lost: a log must not stop the service. */
static void complain(struct request_log *log, int number, uint64_t now_ns)
{
    uint64_t said_ns = atomic_load(&log->said_ns);
    if ((said_ns != 0 && now_ns < said_ns + SAY_AGAIN_NS) ||
        !atomic_compare_exchange_strong(&log->said_ns, &said_ns, now_ns))
        return;
    log_line(LOG_ERROR, "lines of the access log are lost", "why", LOG_STR, strerror(number), NULL);
}

/* ---- A door's buffer ---- */

/* Of lines so many bytes that max are not exceeded. */
static size_t whole_lines(const char *lines, size_t length, size_t max)
{
    if (length <= max)
        return length;
    const char *end = memrchr(lines, '\n', max);
    assert(end != NULL);
    return (size_t)(end - lines) + 1;
}

/* As write, but waits no longer than wait_ms. */
static ssize_t write_piece(int fd, const char *piece, size_t length, int wait_ms)
{
    struct pollfd polled = {.fd = fd, .events = POLLOUT};
    if (poll(&polled, 1, wait_ms) > 0)
        return write(fd, piece, length);
    errno = EAGAIN;
    return -1;
}

/* Writes as much as can be without waiting for longer than wait_ms at each piece; the rest stays.
 */
static void flush(struct request_log_buffer *buffer, int wait_ms, uint64_t now_ns)
{
    size_t written = 0, max = buffer->log->piece_max;
    while (written < buffer->length) {
        const char *lines = buffer->bytes + written;
        size_t piece = whole_lines(lines, buffer->length - written, max);
        ssize_t count = write_piece(buffer->log->fd, lines, piece, wait_ms);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN)
            break;
        if (count < 0)
            complain(buffer->log, errno, now_ns);
        written += count < 0 ? buffer->length - written : (size_t)count;
    }
    buffer->length -= written;
    memmove(buffer->bytes, buffer->bytes + written, buffer->length);
}

struct request_log_buffer *request_log_buffer_create(struct request_log *log)
{
    struct request_log_buffer *buffer = log != NULL ? malloc(sizeof *buffer) : NULL;
    if (buffer == NULL)
        return NULL;
    buffer->log = log;
    buffer->length = 0;
    buffer->second = 0;
    return buffer;
}

void request_log_buffer_destroy(struct request_log_buffer **buffer)
{
    if (*buffer == NULL)
        return;
    uint64_t now_ns = clock_now_ns();
    flush(*buffer, END_WAIT_MS, now_ns);
    if ((*buffer)->length > 0)
        complain((*buffer)->log, EAGAIN, now_ns);
    free(*buffer);
    *buffer = NULL;
}

static void append_time(struct request_log_buffer *buffer, struct text *line)
{
    uint64_t now_ms = clock_wall_ms(), second = now_ms / 1000;
    if (second != buffer->second) {
        time_t seconds = (time_t)second;
        struct tm utc;
        gmtime_r(&seconds, &utc);
        strftime(buffer->date, sizeof buffer->date, "%Y-%m-%dT%H:%M:%S", &utc);
        buffer->second = second;
    }
    text_printf(line, "{\"time\":\"%s.%03uZ\"", buffer->date, (unsigned)(now_ms % 1000));
}

static void append_string(struct text *line, const char *name, const char *value)
{
    text_printf(line, ",\"%s\":", name);
    if (value == NULL)
        text_puts(line, "null");
    else
        text_json_string(line, value, strlen(value));
}

static void append_line(struct request_log_buffer *buffer, const struct request_log_entry *entry,
                        struct text *line)
{
    append_time(buffer, line);
    append_string(line, "id", entry->id);
    append_string(line, "client", entry->client);
    append_string(line, "route", entry->route);
    if (entry->status != 0)
        text_printf(line, ",\"status\":%d", entry->status);
    else
        text_puts(line, ",\"status\":null");
    append_string(line, "method", entry->method);
    if (entry->method != NULL)
        text_printf(line, ",\"n\":%lld,\"batch\":%lld", (long long)entry->n,
                    (long long)entry->batch);
    else
        text_puts(line, ",\"n\":null,\"batch\":null");
    text_printf(line,
                ",\"bytes_in\":%lld,\"bytes_out\":%lld,\"queue_us\":%llu,\"compute_us\":%llu,"
                "\"total_us\":%llu}\n",
                (long long)entry->bytes_in, (long long)entry->bytes_out,
                (unsigned long long)(entry->queue_ns / CLOCK_US),
                (unsigned long long)(entry->compute_ns / CLOCK_US),
                (unsigned long long)(entry->total_ns / CLOCK_US));
}

void request_log_add(struct request_log_buffer *buffer, const struct request_log_entry *entry,
                     uint64_t now_ns)
{
    if (buffer == NULL)
        return;
    if (buffer->length + LINE_MAX_BYTES > BUFFER_BYTES)
        flush(buffer, 0, now_ns);
    if (buffer->length + LINE_MAX_BYTES > BUFFER_BYTES) {
        complain(buffer->log, EAGAIN, now_ns);
        return;
    }
    if (buffer->length == 0)
        buffer->since_ns = now_ns;
    struct text line;
    text_init_fixed(&line, buffer->bytes + buffer->length, LINE_MAX_BYTES);
    append_line(buffer, entry, &line);
    if (!line.failed)
        buffer->length += line.length;
}

void request_log_tick(struct request_log_buffer *buffer, uint64_t now_ns)
{
    if (buffer != NULL && buffer->length > 0 && now_ns >= buffer->since_ns + REQUEST_LOG_LAG_NS)
        flush(buffer, 0, now_ns);
}
