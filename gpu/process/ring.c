/* gpu/process/ring.c: see ring.h. Cost: an atomic exchange a batch, and a system call only where
 * the front sleeps. */
#include "gpu/process/ring.h"

#include <assert.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

uint32_t process_ring_first(const struct engine_lane *lane)
{
    uint32_t number = atomic_load(&lane->submitted);
    for (int i = 0; i < ENGINE_BATCH_SLOTS; i++) {
        const struct engine_batch *batch = &lane->batches[(number - 1) % ENGINE_BATCH_SLOTS];
        if (atomic_load_explicit(&batch->state, memory_order_acquire) != ENGINE_BATCH_SUBMITTED)
            break;
        number--;
    }
    return number;
}

void process_ring_begin(struct engine_batch *batch)
{
    uint32_t state = ENGINE_BATCH_SUBMITTED;
    if (atomic_compare_exchange_strong_explicit(&batch->state, &state, ENGINE_BATCH_RUNNING,
                                                memory_order_acq_rel, memory_order_acquire))
        return;
    assert(state == ENGINE_BATCH_FREE);
    for (;;)
        pause();
}

void process_ring_sleep(struct engine_lane *lane, uint32_t seen, int64_t timeout_ns)
{
    assert(timeout_ns >= 0 || timeout_ns == PROCESS_RING_FOR_EVER);
    struct timespec timeout = {(time_t)(timeout_ns / (int64_t)CLOCK_S),
                               (long)(timeout_ns % (int64_t)CLOCK_S)};
    syscall(SYS_futex, &lane->submitted, FUTEX_WAIT, seen,
            timeout_ns == PROCESS_RING_FOR_EVER ? NULL : &timeout, NULL, 0);
}

void process_ring_wake(struct engine_lane *lane)
{
    syscall(SYS_futex, &lane->submitted, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void process_ring_notify(struct engine_lane *lane, int event_fd)
{
    uint64_t one = 1;
    if (atomic_exchange(&lane->front_waits, 0) != 1)
        return;
    /* Fails only when the counter is full: the front has been notified often enough. */
    ssize_t written = write(event_fd, &one, sizeof one);
    (void)written;
}
