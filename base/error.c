/* base/error.c: looks things up in the table of error.h and fills failures.
 *
 * Threads: any. Cost: constant; failure_set formats into the caller's struct, never on the heap.
 */
#include "base/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

struct error_row {
    int http_status;
    const char *name, *title;
};

static const struct error_row rows[ERROR_COUNT] = {
#define ERROR_ROW(code, status, retryable, name, title) [ERROR_##code] = {status, name, title},
    ERROR_TABLE(ERROR_ROW)
#undef ERROR_ROW
};

static const struct error_row *row_of(enum error code)
{
    assert((unsigned)code < ERROR_COUNT);
    return &rows[code];
}

/* Drops a UTF-8 character that was cut in two at the end of text: the detail goes into JSON. */
static void drop_cut_character(char *text)
{
    size_t length = strlen(text);
    size_t start = length;
    while (start > 0 && length - start < 3 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start > 0 && text_utf8(text + start - 1, length - start + 1) != length - start + 1)
        text[start - 1] = '\0';
}

enum error failure_set(struct failure *failure, enum error code, const char *format, ...)
{
    assert((unsigned)code < ERROR_COUNT);
    if (failure == NULL)
        return code;
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(failure->detail, sizeof failure->detail, format, arguments);
    va_end(arguments);
    assert(wanted >= 0);
    if ((size_t)wanted >= sizeof failure->detail)
        drop_cut_character(failure->detail);
    failure->code = code;
    failure->retry_after_s = 0;
    return code;
}

int error_http_status(enum error code)
{
    return row_of(code)->http_status;
}

const char *error_name(enum error code)
{
    return row_of(code)->name;
}

const char *error_title(enum error code)
{
    return row_of(code)->title;
}
