/* An engine that goes wrong on purpose, in a build with faults (gpu/process/fault.h): how it ends,
 * what it does not report, and how soon a new one works. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "gpu/method.h"
#include "tests/device/rig.h"
#include "tests/unit/gpu/host/matrices.h"

#define ARENA_BYTES (UINT64_C(256) << 20)
#define ORDER 8
#define VALUE 666.0
#define ROUNDS 3

static struct rig rig;

/* `items` matrices, of which the one at `place` begins with VALUE. */
static struct engine_batch *next(enum engine_lane_id lane, int items, int place)
{
    struct engine_batch *batch = gputest_bed_next(&rig.bed, lane, "lu", PRECISION_FP64, ORDER);
    uint64_t seed = 5;
    for (int i = 0; i < items; i++) {
        struct engine_item *item = gputest_bed_item(&rig.bed, batch, 1);
        double *a = (double *)(rig.bed.arena + item->inputs[0].offset_bytes);
        for (int e = 0; e < ORDER * ORDER; e++)
            a[e] = gputest_random(&seed);
        if (i == place)
            a[0] = VALUE;
    }
    return batch;
}

static void run_good(enum engine_lane_id lane)
{
    struct engine_batch *batch = next(lane, 20, -1);
    rig_run(&rig, lane, batch);
    for (int i = 0; i < 20; i++)
        assert_int_equal(*(int32_t *)rig_output(&rig, batch, &batch->items[i], 1, 0), 0);
    gputest_bed_release(batch);
}

/* What the front gives an engine of a GPU, where the machine has room for it: pinning it is most of
 * the time that a new engine takes. */
static uint64_t service_arena_bytes(void)
{
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return memory < UINT64_C(24) << 30 ? ARENA_BYTES : UINT64_C(8) << 30;
}

/* A bad address ends the process with the right code, nothing of what was poisoned is reported, and
 * a new process answers within 5 s, most of which CUDA takes to begin (spare engines, which
 * tests/device/deaths.py tries, have that behind them). */
static void test_bad_address(void **state)
{
    (void)state;
    rig_start(&rig, service_arena_bytes(), "poison:666");
    for (int round = 0; round < ROUNDS; round++) {
        run_good(ENGINE_LANE_SHORT);
        run_good(ENGINE_LANE_LONG);
        struct engine_batch *bad = next(ENGINE_LANE_SHORT, 100, 37 + round);
        gputest_bed_submit(&rig.bed, ENGINE_LANE_SHORT, bad);
        int status = gputest_child_wait(&rig.child, RIG_WAIT_MS);
        uint64_t died_ns = clock_now_ns();
        assert_int_not_equal(atomic_load(&bad->state), ENGINE_BATCH_DONE);
        if (rig_is_cuda(&rig)) {
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), ENGINE_EXIT_FAULT);
            assert_int_equal(atomic_load(&rig.bed.shared->ready), ENGINE_LOST);
        } else {
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        }
        rig_restart(&rig, "poison:666");
        run_good(ENGINE_LANE_SHORT);
        uint64_t took_ns = clock_now_ns() - died_ns;
        print_message("a new engine's first answer: %.0f ms after the old one's end\n",
                      (double)took_ns / 1e6);
        assert_true(took_ns < 5 * CLOCK_S || rig_is_simt(&rig));
    }
    rig_stop(&rig);
}

/* A kernel that never ends holds no one but its batch; the heart goes on; the front's kill works.
 */
static void test_hang(void **state)
{
    (void)state;
    rig_start(&rig, ARENA_BYTES, "hang:666");
    for (int i = 0; i < 2 * ENGINE_BATCH_SLOTS; i++)
        run_good((enum engine_lane_id)(i % ENGINE_LANES));
    struct engine_batch *bad = next(ENGINE_LANE_LONG, 3, 1);
    gputest_bed_submit(&rig.bed, ENGINE_LANE_LONG, bad);
    uint64_t heartbeat = atomic_load(&rig.bed.shared->heartbeat);
    uint64_t until = clock_now_ns() + 300 * CLOCK_MS;
    while (clock_now_ns() < until) {
        uint64_t used_bytes = rig.bed.used_bytes;
        run_good(ENGINE_LANE_SHORT);
        rig.bed.used_bytes = used_bytes;
    }
    assert_true(atomic_load(&rig.bed.shared->heartbeat) > heartbeat);
    assert_int_equal(atomic_load(&bad->state), ENGINE_BATCH_RUNNING);
    uint64_t killed_ns = clock_now_ns();
    kill(rig.child.pid, SIGKILL);
    int status = gputest_child_wait(&rig.child, RIG_WAIT_MS);
    print_message("killed with a kernel that hangs: reaped after %.0f ms\n",
                  (double)(clock_now_ns() - killed_ns) / 1e6);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    gputest_bed_destroy(&rig.bed);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    rig_start(&rig, ARENA_BYTES, "oom:10");
    for (int items = 9; items <= 12; items++) {
        struct engine_batch *batch = next(ENGINE_LANE_SHORT, items, -1);
        gputest_bed_submit(&rig.bed, ENGINE_LANE_SHORT, batch);
        assert_true(gputest_bed_wait(&rig.bed, ENGINE_LANE_SHORT, batch, RIG_WAIT_MS));
        assert_int_equal(batch->status, items > 10 ? ENGINE_OUT_OF_MEMORY : ENGINE_OK);
        gputest_bed_release(batch);
    }
    rig_stop(&rig);
}

static void test_slow(void **state)
{
    (void)state;
    rig_start(&rig, ARENA_BYTES, "slow:20000");
    struct engine_batch *batch = next(ENGINE_LANE_SHORT, 1, -1);
    rig_run(&rig, ENGINE_LANE_SHORT, batch);
    assert_true(batch->finished_ns - batch->started_ns >= 19 * CLOCK_MS);
    gputest_bed_release(batch);
    rig_stop(&rig);
}

static void test_bad_fault_is_refused(void **state)
{
    (void)state;
    static const char *const specs[] = {"nonsense", "oom", "oom:", "oom:x", "oom:1;slow:2", ":1"};
    char path[4096];
    rig_faulty_program(path, sizeof path);
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        const char *const arguments[] = {"--log-level", "error", "--fault", specs[i], NULL};
        gputest_bed_create(&rig.bed, 1 << 20);
        gputest_child_start(&rig.child, &rig.bed, path, arguments, -1);
        int status = gputest_child_wait(&rig.child, RIG_WAIT_MS);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == ENGINE_EXIT_BAD_OPTION);
        gputest_bed_destroy(&rig.bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_fault_is_refused),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_bad_address),
        cmocka_unit_test(test_hang),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
