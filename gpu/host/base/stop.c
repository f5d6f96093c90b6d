/* gpu/host/base/stop.c: see stop.h. */
#include "gpu/host/base/stop.h"

#include <assert.h>
#include <setjmp.h>
#include <stddef.h>

/* Of this thread. word NULL: it watches nothing. */
static _Thread_local struct {
    const _Atomic uint32_t *word;
    jmp_buf back; /* into host_stop_watch */
} watch;

bool host_stop_watch(const _Atomic uint32_t *word, void (*work)(void *context), void *context)
{
    assert(!watch.word && word);
    if (setjmp(watch.back) != 0) {
        watch.word = NULL;
        return false;
    }
    watch.word = word;
    work(context);
    watch.word = NULL;
    return true;
}

void host_stop_check(void)
{
    if (watch.word && atomic_load_explicit(watch.word, memory_order_relaxed) != 0)
        longjmp(watch.back, 1);
}

const _Atomic uint32_t *host__stop_pause(void)
{
    const _Atomic uint32_t *word = watch.word;
    watch.word = NULL;
    return word;
}

void host__stop_resume(const _Atomic uint32_t *word)
{
    assert(!watch.word);
    watch.word = word;
}
