/* gpu/host/engine/self_test.h: a quick look at the engine's own answers, for `invertd-host
 * --self-test`.
 */
#ifndef GPU_HOST_ENGINE_SELF_TEST_H
#define GPU_HOST_ENGINE_SELF_TEST_H

/* Runs every method that takes dense matrices alone on a few of known difficulty, and prints one
 * line for each to stdout. Returns the count of answers outside the accuracy contract, -1 when
 * there is no memory. Blocks for about a tenth of a second; any thread. */
int host_self_test(void);

#endif
