/* tests/unit/server/library_head.h: how libmicrohttpd 0.9.75 takes the head of a request apart, as
 * a model: in place, tolerantly, leaving the pointers that the guard looks at. So the guard is
 * tested, and fuzzed, without sockets. Kept in a header for both.
 */
#ifndef TESTS_UNIT_SERVER_LIBRARY_HEAD_H
#define TESTS_UNIT_SERVER_LIBRARY_HEAD_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "server/http/guard.h"

#define LIBRARY_HEAD_MAX 32768

struct library_head {
    char bytes[2 * LIBRARY_HEAD_MAX]; /* the head as received; behind it, joined lines */
    size_t length, line, joined;      /* line: where the next one starts */
    struct http_guard_field fields[HTTP_GUARD_FIELDS_MAX];
    struct http_guard_head head; /* what the guard is given */
};

/* The next line, its end overwritten with NULs; NULL when there is none. */
static inline char *library_line(struct library_head *it, size_t *length)
{
    char *start = it->bytes + it->line;
    char *end = memchr(start, '\n', it->length - it->line);
    if (end == NULL)
        return NULL;
    it->line = (size_t)(end + 1 - it->bytes);
    *end = '\0';
    if (end > start && end[-1] == '\r')
        *--end = '\0';
    *length = (size_t)(end - start);
    return start;
}

static inline bool library_request_line(struct library_head *it, char *line, size_t length)
{
    char *uri = memchr(line, ' ', length);
    if (uri == NULL || uri == line)
        return false;
    *uri++ = '\0';
    while (uri < line + length && *uri == ' ')
        uri++;
    char *space = line + length - 1;
    while (space > uri && *space == ' ')
        space--;
    while (space > uri && *space != ' ')
        space--;
    if (space <= uri || line + length - (space + 1) != 8 || memcmp(space + 1, "HTTP/1.", 7) != 0 ||
        space[8] < '0' || space[8] > '9')
        return false;
    *space = '\0';
    it->head.method = line;
    it->head.method_length = strlen(line);
    it->head.uri = uri;
    it->head.version = space + 1;
    it->head.target = http_guard_uri(uri);
    char *arguments = strchr(uri, '?');
    if (arguments != NULL)
        *arguments = '\0';
    return true;
}

static inline void library_add(struct library_head *it, const char *name, const char *value)
{
    if (it->head.field_count < HTTP_GUARD_FIELDS_MAX)
        it->fields[it->head.field_count] =
            (struct http_guard_field){name, value, (uint32_t)strlen(name), (uint32_t)strlen(value)};
    it->head.field_count++;
}

/* Appends a folded line to the name before it, elsewhere: the library does just that. */
static inline char *library_join(struct library_head *it, char *name, const char *line)
{
    while (*line == ' ' || *line == '\t')
        line++;
    size_t before = strlen(name), more = strlen(line);
    if (more == 0 || it->joined + before + more + 1 > sizeof it->bytes)
        return name;
    char *joined = it->bytes + it->joined;
    it->joined += before + more + 1;
    memmove(joined, name, before);
    memcpy(joined + before, line, more + 1);
    return joined;
}

/* Takes a head of at most LIBRARY_HEAD_MAX bytes apart. false when the library itself refuses it,
 * or would wait for more. *used: the bytes up to the end of the empty line. */
static inline bool library_read(struct library_head *it, const void *data, size_t length,
                                size_t *used)
{
    memset(it, 0, sizeof *it);
    memcpy(it->bytes, data, length);
    it->length = length;
    it->joined = LIBRARY_HEAD_MAX;
    it->head.fields = it->fields;
    size_t bytes;
    char *line = library_line(it, &bytes);
    if (line == NULL || !library_request_line(it, line, bytes))
        return false;
    char *name = NULL, *value = NULL;
    while ((line = library_line(it, &bytes)) != NULL) {
        if (name != NULL && (*line == ' ' || *line == '\t')) {
            name = library_join(it, name, line);
            continue;
        }
        if (name != NULL)
            library_add(it, name, value);
        if (*line == '\0') {
            it->head.head_bytes = (size_t)(it->bytes + it->line - it->head.method);
            *used = it->line;
            return true;
        }
        value = strchr(line, ':');
        if (value == NULL)
            return false;
        name = line;
        *value++ = '\0';
        while (*value == ' ' || *value == '\t')
            value++;
    }
    return false;
}

#endif
