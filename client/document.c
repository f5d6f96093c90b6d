/* client/document.c: see document.h. */
#include "client/document.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[DOCUMENT_STATUSES] = {"accepted", "running", "successful", "failed",
                                                     "dismissed"};

const char *document_status_name(enum document_status status)
{
    return names[status];
}

/* What is not printable ASCII as question marks: a terminal might obey it. False: no string, or too
 * long a one; text is then empty. */
static bool copy(const json_t *object, const char *name, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(object, name));
    bool fits = value != NULL && strlen(value) < size;
    snprintf(text, size, "%s", fits ? value : "");
    for (char *c = text; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~')
            *c = '?';
    }
    return fits;
}

static int64_t whole(const json_t *object, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(object, name);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

/* The id becomes part of a path. */
static bool is_plain(const char *id)
{
    size_t i = 0;
    while (isalnum((unsigned char)id[i]) || id[i] == '-' || id[i] == '_')
        i++;
    return i > 0 && id[i] == '\0';
}

static bool read_object(const json_t *object, struct document *document)
{
    char status[32];
    int i = 0;
    *document = (struct document){0};
    bool good = copy(object, "id", document->id, sizeof document->id) && is_plain(document->id) &&
                copy(object, "status", status, sizeof status);
    while (good && i < DOCUMENT_STATUSES && strcmp(status, names[i]) != 0)
        i++;
    if (!good || i == DOCUMENT_STATUSES)
        return false;
    document->status = (enum document_status)i;
    document->progress = json_number_value(json_object_get(object, "progress"));
    document->position = whole(object, "position", 0);
    document->n = whole(object, "n", -1);
    document->batch = whole(object, "batch", -1);
    (void)copy(object, "method", document->method, sizeof document->method);
    (void)copy(object, "created", document->created, sizeof document->created);
    (void)copy(object, "message", document->message, sizeof document->message);
    return true;
}

bool document_read(const struct text *body, struct document *document)
{
    json_t *object = json_loadb(body->data != NULL ? body->data : "", body->length, 0, NULL);
    bool good = read_object(object, document);
    json_decref(object);
    return good;
}

int document_read_page(const struct text *body, char *next, size_t next_size, int max,
                       void (*each)(void *context, const struct document *document,
                                    const char *json),
                       void *context)
{
    json_t *page = json_loadb(body->data != NULL ? body->data : "", body->length, 0, NULL);
    const json_t *jobs = json_object_get(page, "jobs");
    const char *cursor = json_string_value(json_object_get(page, "next"));
    bool good = json_is_array(jobs) && (cursor == NULL || strlen(cursor) < next_size);
    int count = 0;
    snprintf(next, next_size, "%s", good && cursor != NULL ? cursor : "");
    for (size_t i = 0; good && count < max && i < json_array_size(jobs); i++) {
        struct document document;
        char *json = json_dumps(json_array_get(jobs, i), JSON_COMPACT);
        good = json != NULL && read_object(json_array_get(jobs, i), &document);
        if (good)
            each(context, &document, json);
        count++;
        free(json);
    }
    json_decref(page);
    return good ? count : -1;
}

void document_print_head(FILE *stream)
{
    fprintf(stream, "%-34s %-10s %8s %8s %-12s %8s %8s  %s\n", "ID", "STATUS", "PROGRESS",
            "POSITION", "METHOD", "N", "BATCH", "CREATED");
}

void document_print_json(const struct text *body, FILE *stream)
{
    json_t *object = json_loadb(body->data != NULL ? body->data : "", body->length, 0, NULL);
    if (object != NULL && json_dumpf(object, stream, JSON_COMPACT) == 0)
        fputc('\n', stream);
    json_decref(object);
}

static void show_whole(char text[24], int64_t value, int64_t unknown)
{
    snprintf(text, 24, "%lld", (long long)value);
    if (value == unknown)
        snprintf(text, 24, "-");
}

void document_print(const struct document *document, FILE *stream)
{
    char position[24], n[24], batch[24];
    show_whole(position, document->position, 0);
    show_whole(n, document->n, -1);
    show_whole(batch, document->batch, -1);
    fprintf(stream, "%-34s %-10s %7.0f%% %8s %-12s %8s %8s  %s%s%s\n", document->id,
            names[document->status], document->progress, position, document->method, n, batch,
            document->created, document->message[0] != '\0' ? "  " : "", document->message);
}
