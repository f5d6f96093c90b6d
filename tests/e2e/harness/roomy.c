/* tests/e2e/harness/roomy.c: every allocation gets twice its size, for programs that write past
 * half of theirs.
 *
 * perf_analyzer converts JSON answers of FP64 into blocks made for FP32 and crashes, whatever the
 * server. Preloaded into it, this lets the unmodified program finish.
 */
#include <stddef.h>

void *__libc_malloc(size_t bytes);
void *malloc(size_t bytes);

void *malloc(size_t bytes)
{
    return __libc_malloc(2 * bytes + 16);
}
