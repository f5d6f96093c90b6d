/* The engine as a process, with real memfds, an eventfd and a control socket. The program is the
 * one that INVERTD_HOST names, else the one of the same build: BUILD/unit/gpu/(this) goes with
 * BUILD/invertd-host. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "tests/unit/gpu/host/bed.h"
#include "tests/unit/gpu/host/child.h"
#include "tests/unit/gpu/host/matrices.h"

#define ARENA_BYTES (UINT64_C(8) << 20)
#define WAIT_MS 10000
#define END_MS 2000

static struct gputest_bed bed;
static struct gputest_child child = {.control = -1};
static const char *const plain[] = {"--threads", "2", NULL};

static void sleep_ms(int ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static void spawn(const char *const *arguments, int log)
{
    char path[PATH_MAX];
    const char *named = getenv("INVERTD_HOST");
    if (named)
        snprintf(path, sizeof path, "%s", named);
    else
        gputest_child_program("invertd-host", path, sizeof path);
    gputest_child_start(&child, &bed, path, arguments, log);
}

static enum engine_ready wait_until_ready(void)
{
    return gputest_child_wait_ready(&child, &bed, WAIT_MS);
}

/* Closes the pipe: the engine must end well, and soon. */
static bool ends_well(void)
{
    int status = gputest_child_end(&child, END_MS);
    return WIFEXITED(status) && WEXITSTATUS(status) == ENGINE_EXIT_OK;
}

static int start(void **state)
{
    (void)state;
    gputest_bed_create(&bed, ARENA_BYTES);
    spawn(plain, -1);
    return wait_until_ready() == ENGINE_READY ? 0 : -1;
}

static int finish(void **state)
{
    (void)state;
    bool good = ends_well();
    gputest_bed_destroy(&bed);
    return good ? 0 : -1;
}

static void test_says_who_it_is(void **state)
{
    (void)state;
    assert_true(bed.shared->engine_contract_hash == engine_contract_hash());
    assert_string_equal(bed.shared->device, "host");
    assert_true(strlen(bed.shared->model) > 0);
    assert_true(strlen(bed.shared->engine_version) > 0);
}

static void test_heart_beats(void **state)
{
    (void)state;
    uint64_t before = atomic_load(&bed.shared->heartbeat);
    sleep_ms(3 * ENGINE_HEARTBEAT_MS);
    assert_true(atomic_load(&bed.shared->heartbeat) >= before + 2);
}

static void run_batch(enum engine_lane_id lane, const char *method, int64_t n, int items)
{
    struct engine_batch *batch = gputest_bed_next(&bed, lane, method, PRECISION_FP64, n);
    uint64_t seed = (uint64_t)n;
    for (int i = 0; i < items; i++) {
        struct engine_item *item = gputest_bed_item(&bed, batch, 2);
        double *a = (double *)(bed.arena + item->inputs[0].offset_bytes);
        for (int64_t j = 0; j < 2 * n * n; j++)
            a[j] = gputest_random(&seed);
    }
    gputest_bed_submit(&bed, lane, batch);
    assert_true(gputest_bed_wait(&bed, lane, batch, WAIT_MS));
    assert_int_equal(batch->status, ENGINE_OK);
    assert_true(strncmp(batch->kernel, "host ", 5) == 0);
    for (int i = 0; i < items * 2; i++) {
        struct engine_item *item = &batch->items[i / 2];
        const double *a = (double *)(bed.arena + item->inputs[0].offset_bytes) + i % 2 * n * n;
        const double *x =
            (double *)(bed.arena + item->outputs[METHOD_OUTPUT_INVERSE].offset_bytes) +
            i % 2 * n * n;
        assert_int_equal(
            ((int32_t *)(bed.arena + item->outputs[METHOD_OUTPUT_INFO].offset_bytes))[i % 2], 0);
        assert_true(gputest_inverse_ratio(PRECISION_FP64, n, a, x) <= GPUTEST_RATIO_MAX);
    }
    gputest_bed_release(batch);
    gputest_bed_reset(&bed);
}

static void test_both_lanes_answer(void **state)
{
    (void)state;
    for (int round = 0; round < 2 * ENGINE_BATCH_SLOTS + 1; round++) {
        run_batch(ENGINE_LANE_SHORT, "lu", 8, 1 + round * 20);
        run_batch(ENGINE_LANE_LONG, "auto", 40, 3);
        run_batch(ENGINE_LANE_SHORT, "gauss_jordan", 3, 1);
    }
}

/* The front ends the engine; a terminal's signals are for the front. */
static void test_signals_are_ignored(void **state)
{
    (void)state;
    kill(child.pid, SIGINT);
    kill(child.pid, SIGTERM);
    kill(child.pid, SIGPIPE);
    sleep_ms(20);
    run_batch(ENGINE_LANE_SHORT, "lu", 8, 1);
}

/* Without front_waits nothing is written to the event descriptor. */
static void test_silent_when_none_of_them_waits(void **state)
{
    (void)state;
    uint64_t count;
    while (read(bed.event_fd, &count, sizeof count) > 0)
        continue;
    struct engine_batch *batch = gputest_bed_next(&bed, ENGINE_LANE_SHORT, "lu", PRECISION_FP64, 4);
    struct engine_item *item = gputest_bed_item(&bed, batch, 1);
    memset(bed.arena + item->inputs[0].offset_bytes, 0, 16 * sizeof(double));
    gputest_bed_submit(&bed, ENGINE_LANE_SHORT, batch);
    for (int i = 0; i < WAIT_MS && atomic_load(&batch->state) != ENGINE_BATCH_DONE; i++)
        sleep_ms(1);
    assert_int_equal(atomic_load(&batch->state), ENGINE_BATCH_DONE);
    sleep_ms(5);
    assert_true(read(bed.event_fd, &count, sizeof count) < 0 && errno == EAGAIN);
    assert_int_equal(*(int32_t *)(bed.arena + item->outputs[METHOD_OUTPUT_INFO].offset_bytes), 1);
    gputest_bed_release(batch);
    gputest_bed_reset(&bed);
}

/* A batch in flight does not delay the end. */
static void test_ends_with_its_control_socket(void **state)
{
    (void)state;
    gputest_bed_create(&bed, ARENA_BYTES);
    spawn(plain, -1);
    assert_int_equal(wait_until_ready(), ENGINE_READY);
    struct engine_batch *batch =
        gputest_bed_next(&bed, ENGINE_LANE_LONG, "lu", PRECISION_FP64, 700);
    gputest_bed_item(&bed, batch, 1);
    gputest_bed_submit(&bed, ENGINE_LANE_LONG, batch);
    assert_true(ends_well());
    gputest_bed_destroy(&bed);
}

/* What an engine with these options says, and its exit code, when it ends by itself. */
static int log_of(const char *const *arguments, char *text, size_t size)
{
    int log = memfd_create("log", MFD_CLOEXEC);
    assert_true(log >= 0);
    spawn(arguments, log);
    int status = gputest_child_wait(&child, WAIT_MS);
    ssize_t length = pread(log, text, size - 1, 0);
    assert_true(length >= 0);
    text[length] = 0;
    close(log);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_refuses_another_contract(void **state)
{
    (void)state;
    char text[4096];
    gputest_bed_create(&bed, ARENA_BYTES);
    bed.shared->contract_hash ^= 1;
    assert_int_equal(log_of(plain, text, sizeof text), ENGINE_EXIT_FAILURE);
    assert_non_null(strstr(text, "different contracts"));
    assert_int_equal(atomic_load(&bed.shared->ready), ENGINE_MISMATCH);
    assert_true(bed.shared->engine_contract_hash == engine_contract_hash());
    gputest_bed_destroy(&bed);
}

static void test_refuses_a_short_arena(void **state)
{
    (void)state;
    char text[4096];
    gputest_bed_create(&bed, ARENA_BYTES);
    bed.shared->arena_bytes = ARENA_BYTES + 4096;
    assert_int_equal(log_of(plain, text, sizeof text), ENGINE_EXIT_FAILURE);
    assert_non_null(strstr(text, "too short"));
    gputest_bed_destroy(&bed);
}

static enum engine_status status_of_order(int64_t n)
{
    struct engine_batch *batch = gputest_bed_next(&bed, ENGINE_LANE_SHORT, "lu", PRECISION_FP64, n);
    gputest_bed_item(&bed, batch, 1);
    gputest_bed_submit(&bed, ENGINE_LANE_SHORT, batch);
    assert_true(gputest_bed_wait(&bed, ENGINE_LANE_SHORT, batch, WAIT_MS));
    enum engine_status status = (enum engine_status)batch->status;
    gputest_bed_release(batch);
    gputest_bed_reset(&bed);
    return status;
}

static void test_refuses_what_needs_more_scratch(void **state)
{
    (void)state;
    static const char *const arguments[] = {"--threads", "2", "--scratch-max", "1000000", NULL};
    gputest_bed_create(&bed, ARENA_BYTES);
    spawn(arguments, -1);
    assert_int_equal(wait_until_ready(), ENGINE_READY);
    assert_int_equal(status_of_order(400), ENGINE_OUT_OF_MEMORY);
    assert_int_equal(status_of_order(200), ENGINE_OK);
    assert_int_equal(status_of_order(8), ENGINE_OK);
    assert_true(ends_well());
    gputest_bed_destroy(&bed);
}

static void test_logs_as_it_is_reported(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[GPUTEST_ARGUMENTS_MAX];
        int code;
        bool is_json;
    } rows[] = {
        {{NULL}, 1, true},
        {{"--log-format", "json", "--log-level", "error"}, 1, true},
        {{"--log-format", "text", "--log-level", "debug"}, 1, false},
        {{"--log-format", "xml"}, 2, true},
        {{"--log-level", "loud"}, 2, true},
        {{"--scratch-max", "much"}, 2, true},
        {{"--scratch-max", "-1"}, 2, true},
        {{"--threads", "1025"}, 2, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[4096];
        gputest_bed_create(&bed, ARENA_BYTES);
        bed.shared->contract_hash ^= 1;
        assert_int_equal(log_of(rows[i].arguments, text, sizeof text), rows[i].code);
        gputest_bed_destroy(&bed);
        assert_true(strlen(text) > 0);
        assert_int_equal(text[0] == '{', rows[i].is_json);
    }
}

int main(void)
{
    const struct CMUnitTest served[] = {
        cmocka_unit_test(test_says_who_it_is),
        cmocka_unit_test(test_heart_beats),
        cmocka_unit_test(test_both_lanes_answer),
        cmocka_unit_test(test_signals_are_ignored),
        cmocka_unit_test(test_silent_when_none_of_them_waits),
    };
    const struct CMUnitTest ends[] = {
        cmocka_unit_test(test_ends_with_its_control_socket),
        cmocka_unit_test(test_refuses_another_contract),
        cmocka_unit_test(test_refuses_a_short_arena),
        cmocka_unit_test(test_refuses_what_needs_more_scratch),
        cmocka_unit_test(test_logs_as_it_is_reported),
    };
    return cmocka_run_group_tests_name("served", served, start, finish) +
           cmocka_run_group_tests_name("ends", ends, NULL, NULL);
}
