/* client/matrix.c: see matrix.h. */
#include "client/matrix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/number.h"

enum error matrix_create(struct matrix *matrix, int64_t rows, int64_t columns, int64_t bytes_max,
                         struct failure *failure)
{
    int64_t count = 0, bytes = 0;
    *matrix = (struct matrix){.rows = rows, .columns = columns};
    bool fits =
        checked_mul(rows, columns, &count) && checked_mul(count, 8, &bytes) && bytes <= bytes_max;
    if (fits)
        matrix->values = calloc((size_t)count + 1, sizeof *matrix->values);
    if (matrix->values == NULL)
        return failure_set(failure, ERROR_TOO_LARGE,
                           "a matrix of %lld rows and %lld columns is larger than %lld bytes, or "
                           "than the memory here; send it as .npy",
                           (long long)rows, (long long)columns, (long long)bytes_max);
    return ERROR_NONE;
}

void matrix_free(struct matrix *matrix)
{
    free(matrix->values);
    matrix->values = NULL;
}

size_t matrix_number(const struct matrix *matrix, int64_t index, char text[MATRIX_NUMBER_MAX])
{
    double value = matrix->values[index];
    const char *name = isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    if (isfinite(value))
        return matrix->single ? number_write_f32(text, (float)value)
                              : number_write_f64(text, value);
    return (size_t)snprintf(text, MATRIX_NUMBER_MAX, "%s", name);
}
