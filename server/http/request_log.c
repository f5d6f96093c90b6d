/* server/http/request_log.c: see request_log.h.
 *
 * A file that is opened anew takes the old one's descriptor number in one step, so that a door that
 * writes at that moment needs no lock.
 */
#include "server/http/request_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#define BUFFER_BYTES ((size_t)64 << 10)
#define LINE_MAX_BYTES 2048 /* more than any line has */
#define DATE_BYTES 24
#define SAY_AGAIN_NS (10 * CLOCK_S) /* between two complaints that nothing can be written */

struct request_log {
    int fd;
    char *path; /* NULL: stderr */
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

/* ---- The file ---- */

static int open_path(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
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

static void flush(struct request_log_buffer *buffer, uint64_t now_ns)
{
    size_t written = 0;
    while (written < buffer->length) {
        ssize_t count = write(buffer->log->fd, buffer->bytes + written, buffer->length - written);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            complain(buffer->log, errno, now_ns);
            break;
        }
        written += (size_t)count;
    }
    buffer->length = 0;
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
    flush(*buffer, clock_now_ns());
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
        flush(buffer, now_ns);
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
        flush(buffer, now_ns);
}
