/* base/log.c: builds a line in a buffer on the stack and hands it over in one write(2).
 *
 * A line is at most LINE_BYTES (PIPE_BUF, so that lines of several processes on one pipe do not
 * mix). A field that does not fit is shortened; what follows it still gets its chance. The state is
 * the one global of the folder: a log must be reachable from everywhere, failures of its users
 * included.
 *
 * Threads: any after log_open. A reopened file takes the old one's descriptor number in one step,
 * so no lock is needed. Cost: one write; nothing below the lowest level.
 */
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"

#define LINE_BYTES 4096
#define TAIL_BYTES 2 /* the closing brace and the line feed */

static struct {
    int fd;
    _Atomic int min; /* an enum log_level */
    enum log_format format;
    const char *program;
    char path[PATH_MAX]; /* "": stderr */
} state = {.fd = STDERR_FILENO, .min = LOG_INFO, .format = LOG_JSON, .program = ""};

static const char *const level_names[] = {"debug", "info", "warning", "error"};

/* A value of a field, whatever its kind. */
struct field {
    const char *name;
    enum log_kind kind;
    const char *string;
    int64_t integer;
    double real;
};

static int open_file(void)
{
    return open(state.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

bool log_open(enum log_level min, enum log_format format, const char *program, const char *path)
{
    state.min = min;
    state.format = format;
    state.program = program;
    if (path == NULL)
        return true;
    if (path[0] == '\0' || strlen(path) >= sizeof state.path)
        return false;
    memcpy(state.path, path, strlen(path) + 1);
    int fd = open_file();
    if (fd < 0) {
        state.path[0] = '\0';
        return false;
    }
    state.fd = fd;
    return true;
}

void log_set_level(enum log_level min)
{
    state.min = min;
}

void log_reopen(void)
{
    if (state.path[0] == '\0')
        return;
    int fd = open_file();
    if (fd < 0) {
        log_line(LOG_ERROR, "the log cannot be opened anew; the old file stays", "errno", LOG_I64,
                 (int64_t)errno, NULL);
        return;
    }
    dup3(fd, state.fd, O_CLOEXEC);
    close(fd);
}

bool log_wanted(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&state.min, memory_order_relaxed);
}

/* ---- Fields ---- */

/* Whether a string can stand in a text line without quotes. */
static bool is_plain(const char *string)
{
    if (*string == '\0')
        return false;
    for (; *string != '\0'; string++) {
        if (*string <= ' ' || *string == '"' || *string == '=' || *string == 0x7f)
            return false;
    }
    return true;
}

static void append_string(struct text *line, const char *string, size_t length)
{
    if (state.format == LOG_TEXT && length == strlen(string) && is_plain(string))
        text_append(line, string, length);
    else
        text_json_string(line, string, length);
}

static void append_value(struct text *line, const struct field *field, size_t length)
{
    if (field->kind == LOG_I64)
        text_printf(line, "%" PRId64, field->integer);
    else if (field->kind == LOG_F64)
        text_json_number(line, field->real);
    else if (field->string == NULL)
        text_puts(line, "null");
    else
        append_string(line, field->string, length);
}

/* The greatest length up to limit at which string can be cut without cutting a character. */
static size_t cut_between_characters(const char *string, size_t limit)
{
    while (limit > 0 && ((unsigned char)string[limit] & 0xc0) == 0x80)
        limit--;
    return limit;
}

/* Appends a whole field, its string shortened until it fits, or nothing. */
static void append_field(struct text *line, const struct field *field)
{
    bool is_string = field->kind == LOG_STR && field->string != NULL;
    size_t length = is_string ? strnlen(field->string, LINE_BYTES) : 0;
    size_t before = line->length;
    for (;;) {
        if (state.format == LOG_JSON) {
            text_puts(line, ",");
            text_json_string(line, field->name, strlen(field->name));
            text_puts(line, ":");
        } else {
            text_printf(line, " %s=", field->name);
        }
        append_value(line, field, length);
        if (!line->failed)
            return;
        line->length = before;
        line->data[before] = '\0';
        line->failed = false;
        if (length == 0)
            return;
        length = cut_between_characters(field->string, length / 2);
    }
}

/* 2026-01-31T23:59:59.123Z: RFC 3339 in UTC. */
static void append_time(struct text *line)
{
    uint64_t now_ms = clock_wall_ms();
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    char date[32];
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    text_printf(line, "%s.%03uZ", date, (unsigned)(now_ms % 1000));
}

static void append_head(struct text *line, enum log_level level, const char *message)
{
    if (state.format == LOG_TEXT) {
        append_time(line);
        text_printf(line, " %s%s%s: %s", state.program, state.program[0] != '\0' ? " " : "",
                    level_names[level], message);
        return;
    }
    text_puts(line, "{\"time\":\"");
    append_time(line);
    text_printf(line, "\",\"level\":\"%s\"", level_names[level]);
    struct field fields[] = {{.name = "program", .kind = LOG_STR, .string = state.program},
                             {.name = "message", .kind = LOG_STR, .string = message}};
    append_field(line, &fields[0]);
    append_field(line, &fields[1]);
}

static void write_line(const char *data, size_t length)
{
    ssize_t written;
    do
        written = write(state.fd, data, length);
    while (written < 0 && errno == EINTR);
    /* A log that cannot be written must not stop the service, and there is no other way to report
     * it. */
}

void log_line(enum log_level level, const char *message, ...)
{
    if (!log_wanted(level))
        return;
    int error_number = errno; /* callers may log between a failure and its report */
    char buffer[LINE_BYTES + 1];
    struct text line;
    text_init_fixed(&line, buffer, sizeof buffer - TAIL_BYTES);
    append_head(&line, level, message);

    va_list arguments;
    va_start(arguments, message);
    const char *name;
    while ((name = va_arg(arguments, const char *)) != NULL) {
        struct field field = {.name = name, .kind = (enum log_kind)va_arg(arguments, int)};
        if (field.kind == LOG_I64)
            field.integer = va_arg(arguments, int64_t);
        else if (field.kind == LOG_F64)
            field.real = va_arg(arguments, double);
        else
            field.string = va_arg(arguments, const char *);
        append_field(&line, &field);
    }
    va_end(arguments);

    size_t length = line.length;
    if (state.format == LOG_JSON)
        buffer[length++] = '}';
    buffer[length++] = '\n';
    write_line(buffer, length);
    errno = error_number;
}
