/* base/number.h: numbers to text and back, exactly. Any thread.
 *
 * Text to number is correctly rounded in the precision asked for (never through the other one);
 * number to text is the shortest that reads back to the same bits. Through C++ <charconv>.
 */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NUMBER_TEXT_MAX 32 /* bytes that number_write_* may write; no terminating NUL */

enum number_status {
    NUMBER_OK,
    NUMBER_SYNTAX,
    NUMBER_OVERFLOW
};

/* Reads one JSON number (RFC 8259 grammar: no leading +, no leading zeros, no hexadecimal, no
 * inf or nan) that starts at text and ends before end. On success *rest is the first byte after
 * it, which is no letter, digit, sign or point: 0x10 and 1.2.3 are syntax errors. Otherwise *rest
 * and *value are as before. An underflow gives the nearest subnormal or a signed zero; -0 keeps its
 * sign. */
enum number_status number_read_f64(const char *text, const char *end, const char **rest,
                                   double *value);
enum number_status number_read_f32(const char *text, const char *end, const char **rest,
                                   float *value);
/* Is what stands there, up to rest, no 0, though it was read as 0? */
bool number_vanished(const char *text, const char *rest, double value);

/* Writes the value as JSON, `null` when it is not finite, `-0.0` for negative zero; returns the
 * count of bytes written. */
size_t number_write_f64(char *text, double value);
size_t number_write_f32(char *text, float value);
size_t number_write_i64(char *text, long long value);

#ifdef __cplusplus
}
#endif

#endif
