/* base/text.c: a growing byte string with a limit; JSON strings and numbers on top of it.
 *
 * The bytes double in size as they grow, so an append costs amortised constant time a byte.
 * A text over a caller's buffer (text_init_fixed) never grows: its limit stops it first.
 * Threads: one owner at a time.
 */
#include "base/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define FIRST_CAPACITY 256

void text_init(struct text *text, size_t limit)
{
    /* One byte more is needed for the NUL, and no object is larger than PTRDIFF_MAX. */
    size_t max = (size_t)PTRDIFF_MAX - 1;
    *text = (struct text){.limit = limit < max ? limit : max};
}

void text_init_fixed(struct text *text, char *buffer, size_t size)
{
    assert(size > 0);
    *text = (struct text){.data = buffer, .capacity = size, .limit = size - 1};
    buffer[0] = '\0';
}

void text_free(struct text *text)
{
    free(text->data);
    *text = (struct text){.limit = text->limit};
}

/* Makes room for more bytes and a NUL. On failure the text keeps what it has. */
static bool make_room(struct text *text, size_t more)
{
    if (text->failed)
        return false;
    if (more > text->limit - text->length) {
        text->failed = true;
        return false;
    }
    size_t needed = text->length + more + 1;
    if (needed <= text->capacity)
        return true;
    size_t capacity = text->capacity < FIRST_CAPACITY / 2 ? FIRST_CAPACITY : 2 * text->capacity;
    if (capacity > text->limit + 1)
        capacity = text->limit + 1;
    if (capacity < needed)
        capacity = needed;
    char *data = realloc(text->data, capacity);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void text_append(struct text *text, const char *data, size_t length)
{
    if (!make_room(text, length))
        return;
    if (length > 0)
        memcpy(text->data + text->length, data, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void text_puts(struct text *text, const char *string)
{
    text_append(text, string, strlen(string));
}

void text_printf(struct text *text, const char *format, ...)
{
    if (!make_room(text, 0))
        return;
    size_t room = text->capacity - text->length;
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(text->data + text->length, room, format, arguments);
    va_end(arguments);
    assert(wanted >= 0);
    if ((size_t)wanted < room) {
        text->length += (size_t)wanted;
        return;
    }
    text->data[text->length] = '\0';
    if (!make_room(text, (size_t)wanted))
        return;
    va_start(arguments, format);
    vsnprintf(text->data + text->length, (size_t)wanted + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)wanted;
}

/* Lead bytes C2..F4 and the range of the byte after each (Unicode, table 3-7): this alone excludes
 * overlong forms, surrogates and what lies above U+10FFFF. */
struct utf8_row {
    unsigned char lead_first, lead_last, second_first, second_last;
    size_t length;
};

static const struct utf8_row utf8_rows[] = {
    {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
    {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
    {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

static const struct utf8_row *utf8_row_of(unsigned char lead)
{
    for (size_t i = 0; i < sizeof utf8_rows / sizeof utf8_rows[0]; i++) {
        if (lead >= utf8_rows[i].lead_first && lead <= utf8_rows[i].lead_last)
            return &utf8_rows[i];
    }
    return NULL;
}

size_t text_utf8(const char *data, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)data;
    if (length == 0)
        return 0;
    if (bytes[0] < 0x80)
        return 1;
    const struct utf8_row *row = utf8_row_of(bytes[0]);
    if (row == NULL || length < row->length)
        return 0;
    if (bytes[1] < row->second_first || bytes[1] > row->second_last)
        return 0;
    for (size_t i = 2; i < row->length; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    }
    return row->length;
}

/* What stands for one character of 0 to 4 bytes in a JSON string; NULL: the character itself.
 * Terminals obey control characters, those above 0x7e too, which JSON would let pass. */
static const char *json_escape(const char *at, size_t bytes, char unicode[7])
{
    unsigned char byte = (unsigned char)*at;
    if (bytes == 0)
        return "\xef\xbf\xbd"; /* U+FFFD */
    if (bytes == 2 && byte == 0xc2 && (unsigned char)at[1] < 0xa0)
        byte = (unsigned char)at[1]; /* U+0080 to U+009F */
    else if (bytes > 1)
        return NULL;
    switch (byte) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\b':
        return "\\b";
    case '\f':
        return "\\f";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        break;
    }
    if (byte >= 0x20 && byte < 0x7f)
        return NULL;
    snprintf(unicode, 7, "\\u%04x", byte);
    return unicode;
}

void text_json_string(struct text *text, const char *data, size_t length)
{
    text_puts(text, "\"");
    size_t done = 0; /* data[done..at) waits to be copied as it is */
    size_t at = 0;
    while (at < length) {
        char unicode[7];
        size_t bytes = text_utf8(data + at, length - at);
        const char *escape = json_escape(data + at, bytes, unicode);
        if (escape == NULL) {
            at += bytes;
            continue;
        }
        text_append(text, data + done, at - done);
        text_puts(text, escape);
        at += bytes > 0 ? bytes : 1;
        done = at;
    }
    text_append(text, data + done, length - done);
    text_puts(text, "\"");
}

void text_json_number(struct text *text, double value)
{
    char number[NUMBER_TEXT_MAX];
    text_append(text, number, number_write_f64(number, value));
}
