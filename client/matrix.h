/* client/matrix.h: one real matrix in memory, and its forms in files.
 *
 * Threads: one a matrix.
 */
#ifndef CLIENT_MATRIX_H
#define CLIENT_MATRIX_H

#include <stdbool.h>
#include <stdint.h>

#include "client/files.h"
#include "client/lexer.h"

#define MATRIX_NUMBER_MAX 32 /* bytes of a number's text, without a NUL */

/* values [rows, columns], row-major; owned. single: they came as float32, and are written so. */
struct matrix {
    int64_t rows, columns;
    double *values;
    bool single;
};

/* Zeros. TOO_LARGE: over bytes_max, or memory is out. matrix_free in any case. */
ERROR_MUST_CHECK enum error matrix_create(struct matrix *matrix, int64_t rows, int64_t columns,
                                          int64_t bytes_max, struct failure *failure);
void matrix_free(struct matrix *matrix);
/* The shortest text that reads back to the same number; nan, inf, -inf. Returns its length. */
size_t matrix_number(const struct matrix *matrix, int64_t index, char text[MATRIX_NUMBER_MAX]);

/* Each reads a whole text. MALFORMED: failure names line and column. matrix_free in any case. */
ERROR_MUST_CHECK enum error matrix_market_read(struct lexer *lexer, int64_t bytes_max,
                                               struct matrix *matrix);
ERROR_MUST_CHECK enum error csv_read(struct lexer *lexer, int64_t bytes_max, struct matrix *matrix);
/* Array in general form: an inverse has few zeros. Each returns 0, or errno. */
int matrix_market_write(const struct matrix *matrix, struct files_output *output);
int csv_write(const struct matrix *matrix, struct files_output *output);

/* One matrix of float64 or float32, as the server writes it: two dimensions, or a stack of one.
 * BAD_SHAPE, BAD_DATATYPE: it is another. */
ERROR_MUST_CHECK enum error npy_read(struct files_input *input, int64_t bytes_max,
                                     struct matrix *matrix, struct failure *failure);
/* As float64. Returns 0, or errno. */
int npy_write(const struct matrix *matrix, struct files_output *output);

#endif
