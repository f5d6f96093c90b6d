/* client/outcome.c: see outcome.h. */
#include "client/outcome.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* The first row that holds a status counts. */
static const struct {
    long first, last;
    enum outcome_code code;
} statuses[] = {
    {200, 200, OUTCOME_DONE},         {202, 202, OUTCOME_DONE},
    {204, 204, OUTCOME_DONE},         {206, 206, OUTCOME_DONE},
    {401, 401, OUTCOME_UNAUTHORIZED}, {403, 403, OUTCOME_UNAUTHORIZED},
    {404, 404, OUTCOME_NOT_FOUND},    {407, 407, OUTCOME_UNAUTHORIZED},
    {408, 408, OUTCOME_TIMED_OUT},    {410, 410, OUTCOME_NOT_FOUND},
    {422, 422, OUTCOME_SINGULAR},     {429, 429, OUTCOME_NO_ROOM},
    {503, 503, OUTCOME_NO_ROOM},      {504, 504, OUTCOME_TIMED_OUT},
    {507, 507, OUTCOME_NO_ROOM},      {400, 499, OUTCOME_INVALID},
};

enum outcome_code outcome_of_status(long status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (status >= statuses[i].first && status <= statuses[i].last)
            return statuses[i].code;
    }
    return OUTCOME_SERVER;
}

void outcome_say(struct outcome *outcome, const char *message)
{
    snprintf(outcome->message, sizeof outcome->message, "%s", message);
    size_t length = strlen(outcome->message);
    if (length > 0 && outcome->message[length - 1] == '.')
        outcome->message[length - 1] = '\0';
    for (char *c = outcome->message; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~')
            *c = '?';
    }
}

void outcome_refused(struct outcome *outcome, long status, const char *type,
                     const struct text *body)
{
    char line[sizeof outcome->message];
    const char *data = body->data != NULL ? body->data : "";
    bool is_words = strncmp(type, "text/plain", strlen("text/plain")) == 0;
    outcome->code = outcome_of_status(status);
    outcome->status = status;
    snprintf(line, sizeof line, "the server answered %ld", status);
    if (is_words && data[0] != '\0')
        snprintf(line, sizeof line, "%.*s", (int)strcspn(data, "\r\n"), data);
    json_t *problem = json_loadb(data, body->length, 0, NULL);
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    const char *name = json_string_value(json_object_get(problem, "type"));
    outcome_say(outcome, detail != NULL ? detail : line);
    if (status == 404 && name != NULL && strstr(name, "result-not-ready") != NULL)
        outcome->code = OUTCOME_NOT_READY;
    json_decref(problem);
}

void outcome_print_json(const struct outcome *outcome, FILE *stream)
{
    json_t *line = json_pack(
        "{s:i, s:I, s:s?, s:s?, s:o, s:I, s:I, s:i, s:f, s:s?}", "exit", (int)outcome->code,
        "status", (json_int_t)outcome->status, "id", outcome->id[0] != '\0' ? outcome->id : NULL,
        "method", outcome->method[0] != '\0' ? outcome->method : NULL, "info",
        outcome->info >= 0 ? json_integer(outcome->info) : json_null(), "sent_bytes",
        (json_int_t)outcome->sent_bytes, "received_bytes", (json_int_t)outcome->received_bytes,
        "tries", outcome->tries, "seconds", outcome->seconds, "error",
        outcome->message[0] != '\0' ? outcome->message : NULL);
    json_dumpf(line, stream, JSON_COMPACT | JSON_REAL_PRECISION(6));
    fputc('\n', stream);
    json_decref(line);
}
