/* gpu/process/self_test.h: what the engines' self-tests share: matrices to try, in either
 * precision. Threads: any.
 */
#ifndef GPU_PROCESS_SELF_TEST_H
#define GPU_PROCESS_SELF_TEST_H

#include <stdint.h>

#include "base/datatype.h"

/* Number `index` of the numbers at `data`. */
double process_trial_get(enum precision precision, const void *data, int64_t index);

/* Fills `data` with `count` numbers, always the same ones: matrices without structure whose
 * condition grows gently with the order. */
void process_trial_fill(enum precision precision, void *data, int64_t count);

#endif
