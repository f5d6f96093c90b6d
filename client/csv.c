/* client/csv.c: a matrix as text, one row a line.
 *
 * Between numbers stands a comma, a semicolon or a tab, whichever is on the first line of numbers,
 * or white space alone. Empty lines and those that begin with # are skipped, as numpy.savetxt
 * writes them. A number may stand in double quotes.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/matrix.h"

/* The separator of a line; a space: white space. */
static char find_separator(const struct lexer *lexer)
{
    static const char separators[] = ",;\t";
    size_t left = (size_t)(lexer->end - lexer->at);
    const char *end = memchr(lexer->at, '\n', left);
    size_t length = end != NULL ? (size_t)(end - lexer->at) : left;
    for (size_t i = 0; i < sizeof separators - 1; i++) {
        if (memchr(lexer->at, separators[i], length) != NULL)
            return separators[i];
    }
    return ' ';
}

static enum error read_field(struct lexer *lexer, double *value)
{
    bool ends = lexer_at_line_end(lexer);
    bool is_quoted = !ends && *lexer->at == '"';
    lexer->at += is_quoted;
    enum error error = lexer_number(lexer, value);
    if (error != ERROR_NONE || !is_quoted)
        return error;
    if (lexer->at == lexer->end || *lexer->at != '"')
        return lexer_fail(lexer, lexer->at, "a closing quote is missing");
    lexer->at++;
    return ERROR_NONE;
}

/* Up to the separator, which is there between numbers alone. */
static enum error read_separator(struct lexer *lexer, char separator, bool *more)
{
    const char *before = lexer->at;
    bool is_tab = separator == '\t' && before < lexer->end && *before == '\t';
    *more = is_tab || !lexer_at_line_end(lexer);
    if (!*more || separator == ' ' || is_tab) {
        lexer->at += is_tab;
        return ERROR_NONE;
    }
    if (*lexer->at != separator)
        return lexer_fail(lexer, lexer->at, "a separator is expected, as on the first line");
    lexer->at++;
    return ERROR_NONE;
}

static enum error add(struct matrix *matrix, int64_t *capacity, int64_t bytes_max, int64_t count,
                      double value, struct lexer *lexer)
{
    if (count == *capacity) {
        int64_t wanted = *capacity > 0 ? 2 * *capacity : 1024, most = bytes_max / 8;
        wanted = wanted < most ? wanted : most;
        double *more = wanted > count ? realloc(matrix->values, 8 * (size_t)wanted) : NULL;
        if (more == NULL)
            return lexer_fail(lexer, lexer->at,
                              "the matrix is larger than %lld bytes, or than "
                              "the memory here",
                              (long long)bytes_max);
        matrix->values = more;
        *capacity = wanted;
    }
    matrix->values[count] = value;
    return ERROR_NONE;
}

static enum error check_row(const struct lexer *lexer, int64_t columns, struct matrix *matrix)
{
    if (matrix->rows == 0)
        matrix->columns = columns;
    else if (columns != matrix->columns)
        return lexer_fail(lexer, lexer->at, "the row has %lld numbers, and the first has %lld",
                          (long long)columns, (long long)matrix->columns);
    matrix->rows++;
    return ERROR_NONE;
}

static enum error read_row(struct lexer *lexer, char separator, int64_t bytes_max,
                           int64_t *capacity, struct matrix *matrix)
{
    int64_t columns = 0;
    bool more = true;
    enum error error = ERROR_NONE;
    while (error == ERROR_NONE && more) {
        double value;
        error = read_field(lexer, &value);
        if (error == ERROR_NONE)
            error = add(matrix, capacity, bytes_max, matrix->rows * matrix->columns + columns,
                        value, lexer);
        columns++;
        if (error == ERROR_NONE)
            error = read_separator(lexer, separator, &more);
    }
    return error == ERROR_NONE ? check_row(lexer, columns, matrix) : error;
}

enum error csv_read(struct lexer *lexer, int64_t bytes_max, struct matrix *matrix)
{
    int64_t capacity = 0;
    char separator = '\0';
    enum error error = ERROR_NONE;
    *matrix = (struct matrix){0};
    while (error == ERROR_NONE && lexer_next_data(lexer, '#')) {
        if (separator == '\0')
            separator = find_separator(lexer);
        error = read_row(lexer, separator, bytes_max, &capacity, matrix);
    }
    if (error == ERROR_NONE && matrix->rows == 0)
        error = lexer_fail(lexer, lexer->at, "the file holds no numbers");
    return error;
}

int csv_write(const struct matrix *matrix, struct files_output *output)
{
    char text[MATRIX_NUMBER_MAX];
    struct text line;
    int number = 0;
    text_init(&line, SIZE_MAX);
    for (int64_t i = 0; number == 0 && i < matrix->rows; i++) {
        line.length = 0;
        for (int64_t j = 0; j < matrix->columns; j++) {
            size_t length = matrix_number(matrix, i * matrix->columns + j, text);
            if (j > 0)
                text_puts(&line, ",");
            text_append(&line, text, length);
        }
        text_puts(&line, "\n");
        number = line.failed ? ENOMEM : files_write(output, line.data, line.length);
    }
    text_free(&line);
    return number;
}
