/* handlers/jobs/document.c: see document.h. */
#include "handlers/jobs/document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CURSOR_TIME_DIGITS 16
#define MS_A_SECOND 1000

/* ---- Times ---- */

void handlers__time_write(int64_t unix_ms, char text[JOB_TIME_TEXT])
{
    struct tm tm;
    time_t seconds = (time_t)(unix_ms / MS_A_SECOND);
    if (unix_ms < 0 || gmtime_r(&seconds, &tm) == NULL || tm.tm_year > 9999 - 1900) {
        snprintf(text, JOB_TIME_TEXT, "9999-12-31T23:59:59.999Z");
        return;
    }
    size_t length = strftime(text, JOB_TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + length, JOB_TIME_TEXT - length, ".%03dZ", (int)(unix_ms % MS_A_SECOND));
}

/* So many digits. */
static bool read_digits(const char **at, int count, int *value)
{
    *value = 0;
    for (int i = 0; i < count; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        *value = *value * 10 + (**at - '0');
    }
    return true;
}

static bool read_byte(const char **at, const char *allowed)
{
    if (**at == '\0' || strchr(allowed, **at) == NULL)
        return false;
    (*at)++;
    return true;
}

/* ".123", or nothing; what is finer than milliseconds is cut off. */
static bool read_fraction(const char **at, int64_t *ms)
{
    int unit = MS_A_SECOND / 10;
    *ms = 0;
    if (**at != '.')
        return true;
    const char *begin = ++*at;
    for (; **at >= '0' && **at <= '9'; (*at)++, unit /= 10)
        *ms += (int64_t)unit * (**at - '0');
    return *at > begin;
}

/* "Z" or "+01:00". A + that was not escaped in a query has become a space. */
static bool read_zone(const char **at, int64_t *minutes)
{
    int hours, rest;
    *minutes = 0;
    if (read_byte(at, "Zz"))
        return true;
    int sign = **at == '-' ? -1 : 1;
    if (!read_byte(at, "+ -") || !read_digits(at, 2, &hours) || !read_byte(at, ":") ||
        !read_digits(at, 2, &rest) || hours > 23 || rest > 59)
        return false;
    *minutes = (int64_t)sign * (hours * 60 + rest);
    return true;
}

bool handlers__time_read(const char *text, int64_t *unix_ms)
{
    static const struct {
        int digits, min, max;
        const char *behind;
    } parts[] = {{4, 1970, 9999, "-"}, {2, 1, 12, "-"}, {2, 1, 31, "Tt "},
                 {2, 0, 23, ":"},      {2, 0, 59, ":"}, {2, 0, 60, NULL}};
    int values[6];
    int64_t ms, minutes;
    const char *at = text;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!read_digits(&at, parts[i].digits, &values[i]) || values[i] < parts[i].min ||
            values[i] > parts[i].max ||
            (parts[i].behind != NULL && !read_byte(&at, parts[i].behind)))
            return false;
    }
    if (!read_fraction(&at, &ms) || !read_zone(&at, &minutes) || *at != '\0')
        return false;
    struct tm tm = {.tm_year = values[0] - 1900,
                    .tm_mon = values[1] - 1,
                    .tm_mday = values[2],
                    .tm_hour = values[3],
                    .tm_min = values[4],
                    .tm_sec = values[5]};
    const int day = tm.tm_mday;
    int64_t seconds = (int64_t)timegm(&tm) - minutes * 60;
    *unix_ms = seconds * MS_A_SECOND + ms;
    return tm.tm_mday == day || values[5] == 60; /* no 30th of February */
}

/* ---- Cursors ---- */

void handlers__cursor_write(int64_t created_ms, const struct job_id *id, char text[JOB_CURSOR_TEXT])
{
    snprintf(text, JOB_CURSOR_TEXT, "%016llx", (unsigned long long)created_ms);
    job_id_write(id, text + CURSOR_TIME_DIGITS);
}

bool handlers__cursor_read(const char *text, int64_t *created_ms, struct job_id *id)
{
    char digits[CURSOR_TIME_DIGITS + 1];
    size_t length = strlen(text);
    if (length != JOB_CURSOR_TEXT - 1 || strspn(text, "0123456789abcdef") != length)
        return false;
    memcpy(digits, text, CURSOR_TIME_DIGITS);
    digits[CURSOR_TIME_DIGITS] = '\0';
    uint64_t created = strtoull(digits, NULL, 16);
    *created_ms = (int64_t)(created & INT64_MAX);
    return created <= INT64_MAX && job_id_read(text + CURSOR_TIME_DIGITS, JOB_ID_TEXT - 1, id);
}

/* ---- The document ---- */

int handlers__job_percent(int64_t progress)
{
    return (int)(progress / (JOB_PROGRESS_WHOLE / 100));
}

void handlers__job_path(const struct job_id *id, char path[JOB_PATH_TEXT])
{
    char text[JOB_ID_TEXT];
    job_id_write(id, text);
    snprintf(path, JOB_PATH_TEXT, "/v1/jobs/%s", text);
}

static void put_time(struct text *json, const char *name, int64_t unix_ms)
{
    char text[JOB_TIME_TEXT];
    handlers__time_write(unix_ms, text);
    if (unix_ms == 0)
        text_printf(json, ",\"%s\":null", name);
    else
        text_printf(json, ",\"%s\":\"%s\"", name, text);
}

static void put_callback(struct text *json, const struct job_callback *callback)
{
    if (callback->state == JOB_CALLBACK_NONE) {
        text_puts(json, ",\"callback\":null");
        return;
    }
    text_printf(json, ",\"callback\":{\"status\":\"%s\",\"attempts\":%d",
                job_callback_name(callback->state), (int)callback->attempts);
    put_time(json, "next", callback->state == JOB_CALLBACK_WAITING ? callback->due_ms : 0);
    text_puts(json, ",\"problem\":");
    if (callback->problem[0] != '\0')
        text_json_string(json, callback->problem, strlen(callback->problem));
    else
        text_puts(json, "null");
    text_puts(json, "}");
}

void handlers__job_document(const struct job *job, int64_t position, struct text *json)
{
    const struct job_task *task = &job->task;
    char id[JOB_ID_TEXT], path[JOB_PATH_TEXT];
    job_id_write(&job->id, id);
    handlers__job_path(&job->id, path);
    text_printf(json,
                "{\"id\":\"%s\",\"status\":\"%s\",\"method\":\"%s\",\"n\":%lld,\"batch\":%lld,"
                "\"precision\":\"%s\"",
                id, job_state_name(job->state), task->method->name, (long long)task->n,
                (long long)task->batch, task->precision == PRECISION_FP32 ? "fp32" : "fp64");
    put_time(json, "created", job->created_ms);
    put_time(json, "started", job->started_ms);
    put_time(json, "finished", job->finished_ms);
    put_time(json, "expires", job->expires_ms);
    text_printf(json, ",\"progress\":%d",
                job->state == JOB_SUCCESSFUL ? 100 : handlers__job_percent(job->progress));
    if (position >= 0)
        text_printf(json, ",\"position\":%lld", (long long)position);
    else
        text_puts(json, ",\"position\":null");
    text_printf(json, ",\"attempt\":%d,\"message\":", (int)job->attempt);
    if (job->state == JOB_FAILED && job->outcome.message[0] != '\0')
        text_json_string(json, job->outcome.message, strlen(job->outcome.message));
    else
        text_puts(json, "null");
    put_callback(json, &job->callback);
    text_printf(json,
                ",\"links\":{\"self\":\"%s\",\"result\":\"%s/result\",\"events\":\"%s/events\"}}",
                path, path, path);
}
