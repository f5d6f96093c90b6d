/* base/text.h: a growing byte string with a limit, for headers, JSON skeletons, metrics pages.
 *
 * Not for matrices: those live in the arena. Every append after the first that failed (out of
 * memory, or past the limit) does nothing; look at `failed` once, at the end.
 * Threads: one owner at a time.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
    char *data; /* always NUL-terminated when not NULL; owned; text_free gives it back */
    size_t length, capacity, limit;
    bool failed;
};

void text_init(struct text *text, size_t limit);
/* A text in the caller's buffer, lent until the last use: allocates nothing, holds size - 1 bytes
 * at most. Never text_free it. */
void text_init_fixed(struct text *text, char *buffer, size_t size);
void text_free(struct text *text);
void text_append(struct text *text, const char *data, size_t length);
void text_puts(struct text *text, const char *string);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends data as a JSON string, with its quotes and without control characters (U+0000 to U+001F,
 * U+007F to U+009F), which are escaped. Invalid UTF-8 becomes U+FFFD. */
void text_json_string(struct text *text, const char *data, size_t length);
/* Appends the shortest JSON text of a double, `null` when it is not finite. */
void text_json_number(struct text *text, double value);

/* The bytes (1 to 4) of the UTF-8 character at the start of data; 0 when there is no valid one. */
size_t text_utf8(const char *data, size_t length);

#endif
