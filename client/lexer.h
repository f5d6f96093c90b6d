/* client/lexer.h: words and numbers of a text, with line and column for what is wrong.
 *
 * Threads: one a lexer.
 */
#ifndef CLIENT_LEXER_H
#define CLIENT_LEXER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* All borrowed. name: of the file, for messages. */
struct lexer {
    const char *at, *end, *line_start;
    int64_t line;
    const char *name;
    struct failure *failure;
};

/* Skips a byte order mark. */
void lexer_begin(struct lexer *lexer, const char *text, size_t size, const char *name,
                 struct failure *failure);
/* Fails with MALFORMED at the byte `at` of the current line. */
enum error lexer_fail(const struct lexer *lexer, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Skips spaces and tabs; true: the line, or the text, ends here. */
bool lexer_at_line_end(struct lexer *lexer);
/* To the start of the next line; false: the text is over. */
bool lexer_next_line(struct lexer *lexer);
/* To the first line that holds something, and is no comment after the mark. False: none. */
bool lexer_next_data(struct lexer *lexer, char mark);
/* A word ends before white space, a comma, a semicolon or a quote. It is of this line. */
size_t lexer_word(struct lexer *lexer, const char **word);
/* Also with a + before, without digits on one side of the point, with a Fortran D as exponent, and
 * nan, inf, infinity. */
ERROR_MUST_CHECK enum error lexer_number(struct lexer *lexer, double *value);
/* Of min to max. what: for the message. */
ERROR_MUST_CHECK enum error lexer_whole(struct lexer *lexer, const char *what, int64_t min,
                                        int64_t max, int64_t *value);

#endif
