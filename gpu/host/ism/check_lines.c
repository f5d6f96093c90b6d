/* gpu/host/ism/check_lines.c: a few lines times a matrix, for the check of `ism`; see check.h. Bits
 * do not depend on the instruction set.
 *
 * Threads: any. Cost: an operation or two a number and line.
 */
#include "gpu/host/base/speed.h"

#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/base/stop.h"
#include "gpu/host/ism/check.h"

#include "gpu/host/base/by_precision.h"
#include "gpu/host/ism/lanes.h"

#define TIMES_LINES 4
#define SEEN_ROWS 8 /* rows of the inverse likewise */

/* Number i of a line of a check. */
HOST_INLINE float weight(uint32_t i, uint32_t line)
{
    const uint32_t bits = ISM_PROBE_BITS(i, line);
    return ISM_PROBE_OF(bits);
}

/* `lines` lines of to from `line` on += those of lines times `rows` rows of from; how many is known
 * to the compiler. */
HOST_INLINE void add_rows(const struct R(host_check_product) * product, int64_t line, int64_t i,
                          int rows, int lines)
{
    int64_t j = 0, columns = product->columns, from_ld = product->from_ld;
    const int64_t ld = product->ld, to_ld = product->to_ld;
    const REAL *row = product->from + i * from_ld;
    REAL *to = product->to + line * to_ld, weights[TIMES_LINES][TIMES_ROWS];
    for (int l = 0; l < lines; l++) {
        for (int r = 0; r < rows; r++)
            weights[l][r] = product->lines[(line + l) * ld + i + r];
    }
    for (; j + LANES <= columns; j += LANES) {
        lanes numbers[TIMES_ROWS];
        for (int r = 0; r < rows; r++)
            numbers[r] = *(const lanes *)(row + r * from_ld + j);
        for (int l = 0; l < lines; l++) {
            lanes sum = *(const lanes *)(to + l * to_ld + j);
            for (int r = 0; r < rows; r++)
                sum += numbers[r] * weights[l][r];
            *(lanes *)(to + l * to_ld + j) = sum;
        }
    }
    for (; j < columns; j++) {
        for (int l = 0; l < lines; l++) {
            for (int r = 0; r < rows; r++)
                to[l * to_ld + j] += row[r * from_ld + j] * weights[l][r];
        }
    }
}

HOST_INLINE void add_lines(const struct R(host_check_product) * product, int64_t line, int lines)
{
    int64_t i = 0;
    for (; i + TIMES_ROWS <= product->rows; i += TIMES_ROWS)
        add_rows(product, line, i, TIMES_ROWS, lines);
    for (; i < product->rows; i++)
        add_rows(product, line, i, 1, lines);
}

/* to += lines * from */
HOST_INLINE void add_times(const struct R(host_check_product) * product)
{
    int64_t line = 0, count = product->count;
    for (; line + TIMES_LINES <= count; line += TIMES_LINES)
        add_lines(product, line, TIMES_LINES);
    for (; line + 2 <= count; line += 2)
        add_lines(product, line, 2);
    if (line < count)
        add_lines(product, line, 1);
}

/* Line 0 of to += the sums of |from|, line 1 the same of rows weighed by line 0; how many rows is
 * known to the compiler. */
HOST_INLINE void add_magnitudes(const struct R(host_check_product) * product, int64_t i, int rows)
{
    const REAL *restrict from = product->from + i * product->from_ld;
    REAL *restrict sums = product->to, *restrict weighed = product->to + product->to_ld;
    REAL weights[TIMES_ROWS];
    for (int r = 0; r < rows; r++)
        weights[r] = product->lines[i + r];
    for (int64_t j = 0; j < product->columns; j++) {
        REAL sum = sums[j], other = weighed[j];
        for (int r = 0; r < rows; r++) {
            const REAL magnitude = REAL_FABS(from[r * product->from_ld + j]);
            sum += magnitude;
            other += weights[r] * magnitude;
        }
        sums[j] = sum;
        weighed[j] = other;
    }
}

HOST_INLINE void add_all_magnitudes(const struct R(host_check_product) * product)
{
    int64_t i = 0;
    for (; i + TIMES_ROWS <= product->rows; i += TIMES_ROWS)
        add_magnitudes(product, i, TIMES_ROWS);
    for (; i < product->rows; i++)
        add_magnitudes(product, i, 1);
}

/* to = the magnitudes of LANES numbers. */
HOST_INLINE void magnitudes(const REAL *from, lanes *to)
{
    const lanes zero = {0};
    const lanes_bits magnitude = ~(lanes_bits)-zero;
    *to = (lanes)(*(const lanes_bits *)from & magnitude);
}

/* Sums of the columns of |from|, behind the lines of to; how many rows is known to the compiler. */
HOST_INLINE void add_sums(const struct R(host_check_product) * product, int64_t i, int rows)
{
    const int64_t columns = product->columns, from_ld = product->from_ld;
    const REAL *from = product->from + i * from_ld;
    REAL *sums = product->to + product->count * product->to_ld;
    int64_t j = 0;
    for (; j + LANES <= columns; j += LANES) {
        lanes sum = *(const lanes *)(sums + j), number;
        for (int r = 0; r < rows; r++) {
            magnitudes(from + r * from_ld + j, &number);
            sum += number;
        }
        *(lanes *)(sums + j) = sum;
    }
    for (; j < columns; j++) {
        for (int r = 0; r < rows; r++)
            sums[j] += REAL_FABS(from[r * from_ld + j]);
    }
}

HOST_INLINE void add_all_sums(const struct R(host_check_product) * product)
{
    int64_t i = 0;
    for (; i + TIMES_ROWS <= product->rows; i += TIMES_ROWS)
        add_sums(product, i, TIMES_ROWS);
    for (; i < product->rows; i++)
        add_sums(product, i, 1);
}

/* Lines 0 and 1 of to += those of lines times from, line 2 the sums of |from|'s columns; how many
 * rows is known to the compiler. */
HOST_INLINE void add_seen(const struct R(host_check_product) * product, int64_t i, int rows)
{
    const int64_t columns = product->columns, from_ld = product->from_ld, to_ld = product->to_ld;
    const REAL *from = product->from + i * from_ld;
    REAL *to = product->to, weights[PROBE_VECTORS][SEEN_ROWS];
    int64_t j = 0;
    for (int l = 0; l < PROBE_VECTORS; l++) {
        for (int r = 0; r < rows; r++)
            weights[l][r] = product->lines[l * product->ld + i + r];
    }
    for (; j + LANES <= columns; j += LANES) {
        lanes one = *(const lanes *)(to + j), other = *(const lanes *)(to + to_ld + j);
        lanes sum = *(const lanes *)(to + 2 * to_ld + j), magnitude;
        for (int r = 0; r < rows; r++) {
            const lanes number = *(const lanes *)(from + r * from_ld + j);
            magnitudes(from + r * from_ld + j, &magnitude);
            one += number * weights[0][r];
            other += number * weights[1][r];
            sum += magnitude;
        }
        *(lanes *)(to + j) = one;
        *(lanes *)(to + to_ld + j) = other;
        *(lanes *)(to + 2 * to_ld + j) = sum;
    }
    for (; j < columns; j++) {
        for (int r = 0; r < rows; r++) {
            to[j] += from[r * from_ld + j] * weights[0][r];
            to[to_ld + j] += from[r * from_ld + j] * weights[1][r];
            to[2 * to_ld + j] += REAL_FABS(from[r * from_ld + j]);
        }
    }
}

HOST_INLINE void add_all_seen(const struct R(host_check_product) * product)
{
    int64_t i = 0;
    for (; i + SEEN_ROWS <= product->rows; i += SEEN_ROWS)
        add_seen(product, i, SEEN_ROWS);
    for (; i < product->rows; i++)
        add_seen(product, i, 1);
}

/* Row i of from times `lines` lines from `line` on; how many is known to the compiler. */
HOST_INLINE void set_dots(const struct R(host_check_product) * product, int64_t i, int64_t line,
                          int lines)
{
    const int64_t columns = product->columns, ld = product->ld;
    const REAL *row = product->from + i * product->from_ld, *other = product->lines + line * ld;
    lanes sums[TIMES_LINES] = {{0}};
    int64_t j = 0;
    for (; j + LANES <= columns; j += LANES) {
        const lanes numbers = *(const lanes *)(row + j);
        for (int l = 0; l < lines; l++)
            sums[l] += numbers * *(const lanes *)(other + l * ld + j);
    }
    for (int l = 0; l < lines; l++) {
        REAL sum = total(&sums[l]);
        for (int64_t k = j; k < columns; k++)
            sum += row[k] * other[l * ld + k];
        product->to[(line + l) * product->to_ld + i] = sum;
    }
}

/* The magnitudes of row i of from times the line behind those of lines. */
HOST_INLINE REAL weighed_row(const struct R(host_check_product) * product, int64_t i)
{
    const REAL *row = product->from + i * product->from_ld;
    const REAL *line = product->lines + product->count * product->ld;
    lanes sums = {0}, numbers;
    int64_t j = 0;
    for (; j + LANES <= product->columns; j += LANES) {
        magnitudes(row + j, &numbers);
        sums += numbers * *(const lanes *)(line + j);
    }
    REAL sum = total(&sums);
    for (; j < product->columns; j++)
        sum += REAL_FABS(row[j]) * line[j];
    return sum;
}

/* to = lines * from^T */
HOST_INLINE void set_times_transposed(const struct R(host_check_product) * product)
{
    const int64_t count = product->count;
    for (int64_t i = 0; i < product->rows; i++) {
        int64_t line = 0;
        for (; line + TIMES_LINES <= count; line += TIMES_LINES)
            set_dots(product, i, line, TIMES_LINES);
        for (; line + 2 <= count; line += 2)
            set_dots(product, i, line, 2);
        if (line < count)
            set_dots(product, i, line, 1);
        if (product->weighed)
            product->weighed[i] = weighed_row(product, i);
    }
}

/* to += |from| times the sums of the magnitudes of lines: `rows` of both. All have zeros behind
 * them. */
HOST_INLINE void add_weights(const struct R(host_check_product) * product)
{
    const lanes zero = {0};
    const lanes_bits magnitude = ~(lanes_bits)-zero;
    const int64_t columns = product->columns;
    for (int64_t r = 0; r < product->rows; r++) {
        const REAL *line = product->lines + r * product->ld;
        const REAL *row = product->from + r * product->from_ld;
        lanes sums = {0};
        for (int64_t i = 0; i < columns; i += LANES)
            sums += (lanes)(*(const lanes_bits *)(line + i) & magnitude);
        const REAL sum = total(&sums);
        for (int64_t i = 0; i < columns; i += LANES) {
            lanes *to = (lanes *)(product->to + i);
            *to += sum * (lanes)(*(const lanes_bits *)(row + i) & magnitude);
        }
    }
}

/* to = count lines of random numbers. */
HOST_INLINE void set_weights(const struct R(host_check_product) * product)
{
    for (int64_t l = 0; l < product->count; l++) {
        REAL *to = product->to + l * product->to_ld;
        for (uint32_t i = 0; i < (uint32_t)product->columns; i++)
            to[i] = (REAL)weight(i, (uint32_t)l);
    }
}

HOST_INLINE void do_any(const struct R(host_check_product) * product, enum task task)
{
    if (task == ADD_TIMES || task == ADD_TIMES_AND_SUMS)
        add_times(product);
    if (task == ADD_TIMES_AND_SUMS)
        add_all_sums(product);
    else if (task == ADD_SEEN)
        add_all_seen(product);
    else if (task == ADD_MAGNITUDES)
        add_all_magnitudes(product);
    else if (task == ADD_WEIGHTS)
        add_weights(product);
    else if (task == SET_TIMES_TRANSPOSED)
        set_times_transposed(product);
    else if (task == SET_WEIGHTS)
        set_weights(product);
}

HOST_AVX512 static void do_avx512(const struct R(host_check_product) * product, enum task task)
{
    do_any(product, task);
}

HOST_AVX2 static void do_avx2(const struct R(host_check_product) * product, enum task task)
{
    do_any(product, task);
}

void R(host__check_do)(const struct R(host_check_product) * product, enum task task)
{
    if (__builtin_cpu_supports("avx512f"))
        do_avx512(product, task);
    else if (__builtin_cpu_supports("avx2"))
        do_avx2(product, task);
    else
        do_any(product, task);
}

void R(host__ism_weights)(int64_t n, REAL (*lines)[2])
{
    for (int64_t i = 0; i < n; i++) {
        for (uint32_t l = 0; l < 2; l++)
            lines[i][l] = (REAL)weight((uint32_t)i, l);
    }
}
