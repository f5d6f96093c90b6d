/* client/matrix_market.c: NIST's exchange format.
 *
 *      %%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric|skew-symmetric
 *      % comments
 *      rows columns [entries]
 *      i j value           an entry a line, counted from 1; a pattern has no value and means 1
 *      value               array: column by column
 *
 * Symmetric and skew-symmetric files hold the lower triangle alone. Entries given more than once
 * are added. Words of the first line in any case.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "client/matrix.h"

#define ORDER_MAX INT64_C(1000000000)
#define PIECE_BYTES (64 << 10)

enum layout {
    COORDINATE,
    ARRAY
};
enum field {
    REAL,
    INTEGER,
    PATTERN,
    DOUBLE
};
enum symmetry {
    GENERAL,
    SYMMETRIC,
    SKEW_SYMMETRIC
};

struct market {
    int layout, field, symmetry;
};

/* The next word of the first line as one of `choices`. */
static enum error read_choice(struct lexer *lexer, const char *const *choices, const char *list,
                              int *choice)
{
    const char *word;
    size_t length = lexer_word(lexer, &word);
    for (int i = 0; choices[i] != NULL; i++) {
        if (length == strlen(choices[i]) && strncasecmp(word, choices[i], length) == 0) {
            *choice = i;
            return ERROR_NONE;
        }
    }
    return lexer_fail(lexer, word, "\"%.*s\" is not supported; %s is expected",
                      (int)(length < 40 ? length : 40), word, list);
}

static enum error read_banner(struct lexer *lexer, struct market *market)
{
    static const struct {
        const char *choices[5], *list;
    } words[] = {
        {{"%%MatrixMarket"}, "%%MatrixMarket, with which a Matrix Market file begins,"},
        {{"matrix"}, "matrix"},
        {{"coordinate", "array"}, "coordinate or array"},
        {{"real", "integer", "pattern", "double"}, "real, integer or pattern"},
        {{"general", "symmetric", "skew-symmetric"}, "general, symmetric or skew-symmetric"},
    };
    int found[sizeof words / sizeof words[0]];
    enum error error = ERROR_NONE;
    for (size_t i = 0; error == ERROR_NONE && i < sizeof words / sizeof words[0]; i++)
        error = read_choice(lexer, words[i].choices, words[i].list, &found[i]);
    if (error != ERROR_NONE)
        return error;
    *market = (struct market){found[2], found[3], found[4]};
    if (market->layout == ARRAY && market->field == PATTERN)
        return lexer_fail(lexer, lexer->line_start, "an array cannot be a pattern");
    (void)lexer_next_line(lexer);
    return ERROR_NONE;
}

static enum error end_line(struct lexer *lexer)
{
    if (!lexer_at_line_end(lexer))
        return lexer_fail(lexer, lexer->at, "the line is expected to end here");
    return ERROR_NONE;
}

static void put(const struct market *market, struct matrix *matrix, int64_t i, int64_t j,
                double value)
{
    matrix->values[i * matrix->columns + j] += value;
    if (market->symmetry != GENERAL && i != j)
        matrix->values[j * matrix->columns + i] += market->symmetry == SYMMETRIC ? value : -value;
}

/* ---- The numbers ---- */

static enum error read_entry(struct lexer *lexer, const struct market *market,
                             struct matrix *matrix)
{
    int64_t i, j;
    double value = 1;
    const char *start = lexer->at;
    enum error error = lexer_whole(lexer, "the row", 1, matrix->rows, &i);
    if (error == ERROR_NONE)
        error = lexer_whole(lexer, "the column", 1, matrix->columns, &j);
    if (error == ERROR_NONE && market->field != PATTERN)
        error = lexer_number(lexer, &value);
    if (error != ERROR_NONE)
        return error;
    if ((market->symmetry != GENERAL && i < j) || (market->symmetry == SKEW_SYMMETRIC && i == j))
        return lexer_fail(lexer, start,
                          "the entry is not in the lower triangle, which is all that "
                          "a %ssymmetric file holds",
                          market->symmetry == SYMMETRIC ? "" : "skew-");
    put(market, matrix, i - 1, j - 1, value);
    return end_line(lexer);
}

static enum error read_entries(struct lexer *lexer, const struct market *market, int64_t entries,
                               struct matrix *matrix)
{
    enum error error = ERROR_NONE;
    for (int64_t k = 0; error == ERROR_NONE && k < entries; k++) {
        if (!lexer_next_data(lexer, '%'))
            return lexer_fail(lexer, lexer->at, "the file ends after %lld of %lld entries",
                              (long long)k, (long long)entries);
        error = read_entry(lexer, market, matrix);
    }
    return error;
}

static enum error read_array(struct lexer *lexer, const struct market *market,
                             struct matrix *matrix)
{
    enum error error = ERROR_NONE;
    for (int64_t j = 0; error == ERROR_NONE && j < matrix->columns; j++) {
        int64_t i = market->symmetry == GENERAL ? 0 : j + (market->symmetry == SKEW_SYMMETRIC);
        for (; error == ERROR_NONE && i < matrix->rows; i++) {
            double value = 0;
            error = lexer_next_data(lexer, '%')
                        ? lexer_number(lexer, &value)
                        : lexer_fail(lexer, lexer->at,
                                     "the file ends before row %lld of column "
                                     "%lld",
                                     (long long)i + 1, (long long)j + 1);
            put(market, matrix, i, j, value);
        }
    }
    return error;
}

enum error matrix_market_read(struct lexer *lexer, int64_t bytes_max, struct matrix *matrix)
{
    struct market market;
    int64_t rows = 0, columns = 0, entries = 0;
    *matrix = (struct matrix){0};
    enum error error = read_banner(lexer, &market);
    if (error == ERROR_NONE && !lexer_next_data(lexer, '%'))
        error = lexer_fail(lexer, lexer->at, "the line of sizes is missing");
    if (error == ERROR_NONE)
        error = lexer_whole(lexer, "the count of rows", 1, ORDER_MAX, &rows);
    if (error == ERROR_NONE)
        error = lexer_whole(lexer, "the count of columns", 1, ORDER_MAX, &columns);
    if (error == ERROR_NONE && market.layout == COORDINATE)
        error = lexer_whole(lexer, "the count of entries", 0, INT64_MAX, &entries);
    if (error == ERROR_NONE)
        error = end_line(lexer);
    if (error == ERROR_NONE && market.symmetry != GENERAL && rows != columns)
        error = lexer_fail(lexer, lexer->line_start, "a symmetric matrix is square");
    if (error == ERROR_NONE)
        error = matrix_create(matrix, rows, columns, bytes_max, lexer->failure);
    if (error != ERROR_NONE)
        return error;
    (void)lexer_next_line(lexer);
    error = market.layout == COORDINATE ? read_entries(lexer, &market, entries, matrix)
                                        : read_array(lexer, &market, matrix);
    if (error == ERROR_NONE && market.layout == COORDINATE)
        (void)lexer_next_line(lexer);
    if (error == ERROR_NONE && lexer_next_data(lexer, '%'))
        error = lexer_fail(lexer, lexer->at, "there is more than the sizes promise");
    return error;
}

int matrix_market_write(const struct matrix *matrix, struct files_output *output)
{
    char number[MATRIX_NUMBER_MAX];
    struct text piece;
    int failed = 0;
    text_init(&piece, 2 * PIECE_BYTES);
    text_printf(&piece, "%%%%MatrixMarket matrix array real general\n%lld %lld\n",
                (long long)matrix->rows, (long long)matrix->columns);
    for (int64_t j = 0; failed == 0 && j < matrix->columns; j++) {
        for (int64_t i = 0; failed == 0 && i < matrix->rows; i++) {
            text_append(&piece, number, matrix_number(matrix, i * matrix->columns + j, number));
            text_puts(&piece, "\n");
            if (piece.length >= PIECE_BYTES) {
                failed = piece.failed ? ENOMEM : files_write(output, piece.data, piece.length);
                piece.length = 0;
            }
        }
    }
    if (failed == 0)
        failed = piece.failed ? ENOMEM : files_write(output, piece.data, piece.length);
    text_free(&piece);
    return failed;
}
