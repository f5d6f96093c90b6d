/* gpu/process/self_test.h: what the engines' self-tests share: matrices to try, in either
 * precision. Threads: any.
 */
#ifndef GPU_PROCESS_SELF_TEST_H
#define GPU_PROCESS_SELF_TEST_H

#include <stdint.h>

#include "base/datatype.h"

/* Number `index` of the numbers at `data`. */
double process_attempt_get(enum precision precision, const void *data, int64_t index);

/* Fills `data` with `count` numbers, always the same ones: matrices without structure whose
 * condition grows gently with the order. */
void process_attempt_fill(enum precision precision, void *data, int64_t count);

/* |I - X A| / (n |A| |X| eps), 1-norms, of matrix k of the n x n ones at `a` and their inverses at
 * `x`, dense and row-major; NaN where a residual is. Sums in double, n^3 steps. */
double process_attempt_ratio(enum precision precision, int64_t n, const void *a, const void *x,
                             int64_t k);

#endif
