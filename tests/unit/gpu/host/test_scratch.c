/* The workers' scratch: what is kept, what is refused, who waits, and that it all ends. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "gpu/host/base/scratch.h"

#define MIB (INT64_C(1) << 20)
#define THREADS 4
#define ROUNDS 300

static struct host_budget *budget;

static void start(int64_t limit, int workers)
{
    struct failure failure = {0};
    assert_int_equal(host_budget_create(limit, workers, &budget, &failure), ERROR_NONE);
}

static void stop(void)
{
    host_budget_destroy(&budget);
    assert_null(budget);
}

/* Limit 16 MiB, 4 workers: each keeps 1 MiB, and 12 MiB are for large pieces. */
static void test_kept_and_refused(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes;
        bool fits, kept;
    } rows[] = {
        {1, true, true},
        {MIB, true, true},
        {MIB + 1, true, false},
        {12 * MIB, true, false},
        {12 * MIB + 1, false, false},
        {INT64_MAX, false, false},
        {-1, false, false},
    };
    start(16 * MIB, 4);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct host_scratch scratch = {0};
        assert_int_equal(host__scratch_fit(&scratch, budget, rows[i].bytes), rows[i].fits);
        if (rows[i].fits) {
            assert_true(scratch.bytes >= rows[i].bytes && (uintptr_t)scratch.data % 4096 == 0);
            memset(scratch.data, 1, (size_t)rows[i].bytes);
        }
        host__scratch_done(&scratch, budget);
        assert_int_equal(scratch.data != NULL, rows[i].kept);
        host__scratch_free(&scratch);
    }
    stop();
}

/* All that 4 x 64 workers keep stays below 64 MiB, however much they may use. */
static void test_many_workers_keep_little(void **state)
{
    (void)state;
    start(INT64_C(1) << 40, 256);
    struct host_scratch scratch = {0};
    assert_true(host__scratch_fit(&scratch, budget, HOST_SCRATCH_KEPT_BYTES / 256));
    assert_false(scratch.large);
    host__scratch_free(&scratch);
    assert_true(host__scratch_fit(&scratch, budget, HOST_SCRATCH_KEPT_BYTES / 256 + 1));
    assert_true(scratch.large);
    host__scratch_done(&scratch, budget);
    assert_null(scratch.data);
    stop();
}

static _Atomic int64_t in_use, max_in_use;

/* Takes and gives pieces of many sizes, the largest one all that there is. */
static void *take_turns(void *context)
{
    uint32_t seed = (uint32_t)(uintptr_t)context;
    struct host_scratch scratch = {0};
    for (int i = 0; i < ROUNDS; i++) {
        seed = seed * 1664525 + 1013904223;
        int64_t bytes = (1 + (int64_t)(seed >> 16) % 12) * MIB;
        if (!host__scratch_fit(&scratch, budget, bytes))
            return NULL;
        int64_t now = scratch.large ? atomic_fetch_add(&in_use, bytes) + bytes : 0;
        int64_t most = atomic_load(&max_in_use);
        while (now > most && !atomic_compare_exchange_weak(&max_in_use, &most, now))
            continue;
        if (scratch.large)
            atomic_fetch_sub(&in_use, bytes);
        host__scratch_done(&scratch, budget);
    }
    host__scratch_free(&scratch);
    return context;
}

static void test_waiters_get_their_turn(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    start(16 * MIB, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_non_null(result);
    }
    assert_in_range(atomic_load(&max_in_use), 12 * MIB, 12 * MIB);
    stop();
}

/* A piece that fits alone waits for the one that is out. */
static _Atomic int served;

static void *ask_for_all(void *context)
{
    struct host_scratch scratch = {0};
    if (!host__scratch_fit(&scratch, budget, 12 * MIB))
        return NULL;
    atomic_store(&served, 1);
    host__scratch_done(&scratch, budget);
    return context;
}

static void test_waits_for_room(void **state)
{
    (void)state;
    static const struct timespec pause = {0, 30000000};
    struct host_scratch scratch = {0};
    pthread_t thread;
    void *result;
    start(16 * MIB, 4);
    assert_true(host__scratch_fit(&scratch, budget, 2 * MIB));
    assert_int_equal(pthread_create(&thread, NULL, ask_for_all, &scratch), 0);
    nanosleep(&pause, NULL);
    assert_int_equal(atomic_load(&served), 0);
    host__scratch_done(&scratch, budget);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_non_null(result);
    assert_int_equal(atomic_load(&served), 1);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_and_refused),
        cmocka_unit_test(test_many_workers_keep_little),
        cmocka_unit_test(test_waiters_get_their_turn),
        cmocka_unit_test(test_waits_for_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
