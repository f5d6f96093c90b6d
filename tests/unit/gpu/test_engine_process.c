/* The engine as a process, with real memfds, an eventfd and a control pipe. The program is the one
 * that INVERTD_HOST names, else the one of the same build: BUILD/unit/gpu/(this) goes with
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
#include "tests/unit/gpu/bed.h"
#include "tests/unit/gpu/matrices.h"

#define ARENA_BYTES (UINT64_C(8) << 20)
#define WAIT_MS 10000
#define ARGUMENTS_MAX 6

static struct gputest_bed bed;
static int control = -1;
static pid_t pid;
static const char *more_arguments[ARGUMENTS_MAX]; /* of the next engine; NULL ends them */
static int log_fd = -1;                           /* where it logs; -1: with the test */

static void sleep_ms(int ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static void find_engine(char *path, size_t size)
{
    const char *named = getenv("INVERTD_HOST");
    if (named) {
        snprintf(path, size, "%s", named);
        return;
    }
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    assert_true(length > 0);
    path[length] = 0;
    for (int up = 0; up < 3; up++)
        *strrchr(path, '/') = 0;
    strncat(path, "/invertd-host", size - strlen(path) - 1);
    if (access(path, X_OK) != 0)
        fail_msg("the engine is not built: %s", path);
}

/* In the child, before exec: only async-signal-safe calls. Descriptors go above the contract's
 * first, so that none overwrites another. */
static void become_engine(const char *path, int control_end)
{
    char *arguments[ARGUMENTS_MAX + 4] = {(char *)(uintptr_t)path, (char *)(uintptr_t) "--threads",
                                          (char *)(uintptr_t) "2"};
    for (int i = 0; i < ARGUMENTS_MAX && more_arguments[i]; i++)
        arguments[3 + i] = (char *)(uintptr_t)more_arguments[i];
    int control_copy = dup2(control_end, 40), arena = dup2(bed.arena_fd, 41);
    int shared = dup2(bed.shared_fd, 42), event = dup2(bed.event_fd, 43);
    dup2(control_copy, ENGINE_FD_CONTROL);
    dup2(arena, ENGINE_FD_ARENA);
    dup2(shared, ENGINE_FD_SHARED);
    dup2(event, ENGINE_FD_EVENT);
    if (log_fd >= 0)
        dup2(log_fd, STDERR_FILENO);
    execv(path, arguments);
    _exit(127);
}

/* quiet: what it logs is expected, and would only alarm the reader of the test's output. */
static void spawn(bool quiet)
{
    int ends[2];
    char path[PATH_MAX];
    find_engine(path, sizeof path);
    assert_int_equal(pipe(ends), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(ends[1]);
        if (quiet && !freopen("/dev/null", "w", stderr))
            _exit(127);
        become_engine(path, ends[0]);
    }
    close(ends[0]);
    control = ends[1];
}

/* Exit status as waitpid has it; -1 when it did not end in time (and is killed). */
static int wait_for_exit(int timeout_ms)
{
    int status;
    for (int i = 0; i < timeout_ms; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return status;
        sleep_ms(1);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return -1;
}

static uint32_t wait_until_ready(void)
{
    for (int i = 0; i < WAIT_MS && atomic_load(&bed.shared->ready) == ENGINE_STARTING; i++)
        sleep_ms(1);
    return atomic_load(&bed.shared->ready);
}

static int start(void **state)
{
    (void)state;
    gputest_bed_create(&bed, ARENA_BYTES);
    spawn(false);
    return wait_until_ready() == 1 ? 0 : -1;
}

static int finish(void **state)
{
    (void)state;
    if (control >= 0)
        close(control);
    control = -1;
    int status = wait_for_exit(2000);
    gputest_bed_destroy(&bed);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
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
        const double *x = (double *)(bed.arena + item->outputs[0].offset_bytes) + i % 2 * n * n;
        assert_int_equal(((int32_t *)(bed.arena + item->outputs[1].offset_bytes))[i % 2], 0);
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
    kill(pid, SIGINT);
    kill(pid, SIGTERM);
    kill(pid, SIGPIPE);
    sleep_ms(20);
    run_batch(ENGINE_LANE_SHORT, "lu", 8, 1);
}

/* Without front_waits nothing is written to the event descriptor. */
static void test_silent_when_nobody_waits(void **state)
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
    assert_int_equal(*(int32_t *)(bed.arena + item->outputs[1].offset_bytes), 1);
    gputest_bed_release(batch);
    gputest_bed_reset(&bed);
}

/* A batch in flight does not delay the end. */
static void test_ends_with_its_control_pipe(void **state)
{
    (void)state;
    gputest_bed_create(&bed, ARENA_BYTES);
    spawn(false);
    assert_int_equal(wait_until_ready(), 1);
    struct engine_batch *batch =
        gputest_bed_next(&bed, ENGINE_LANE_LONG, "lu", PRECISION_FP64, 700);
    gputest_bed_item(&bed, batch, 1);
    gputest_bed_submit(&bed, ENGINE_LANE_LONG, batch);
    close(control);
    control = -1;
    int status = wait_for_exit(2000);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    gputest_bed_destroy(&bed);
}

static void test_refuses_another_contract(void **state)
{
    (void)state;
    gputest_bed_create(&bed, ARENA_BYTES);
    bed.shared->contract_hash ^= 1;
    spawn(true);
    int status = wait_for_exit(WAIT_MS);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    assert_int_equal(atomic_load(&bed.shared->ready), ENGINE_MISMATCH);
    assert_true(bed.shared->engine_contract_hash == engine_contract_hash());
    close(control);
    control = -1;
    gputest_bed_destroy(&bed);
}

static void test_refuses_a_short_arena(void **state)
{
    (void)state;
    gputest_bed_create(&bed, ARENA_BYTES);
    bed.shared->arena_bytes = ARENA_BYTES + 4096;
    spawn(true);
    int status = wait_for_exit(WAIT_MS);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    close(control);
    control = -1;
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
    gputest_bed_create(&bed, ARENA_BYTES);
    more_arguments[0] = "--scratch-max";
    more_arguments[1] = "1000000";
    spawn(false);
    assert_int_equal(wait_until_ready(), 1);
    assert_int_equal(status_of_order(400), ENGINE_OUT_OF_MEMORY);
    assert_int_equal(status_of_order(200), ENGINE_OK);
    assert_int_equal(status_of_order(8), ENGINE_OK);
    close(control);
    control = -1;
    int status = wait_for_exit(2000);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    gputest_bed_destroy(&bed);
    memset(more_arguments, 0, sizeof more_arguments);
}

/* What an engine with these options says, and its exit code, when it ends at once: it is of another
 * contract. */
static int log_of(const char *const *arguments, char *text, size_t size)
{
    gputest_bed_create(&bed, ARENA_BYTES);
    bed.shared->contract_hash ^= 1;
    log_fd = memfd_create("log", MFD_CLOEXEC);
    assert_true(log_fd >= 0);
    for (int i = 0; i < ARGUMENTS_MAX; i++)
        more_arguments[i] = arguments[i];
    spawn(false);
    int status = wait_for_exit(WAIT_MS);
    ssize_t length = pread(log_fd, text, size - 1, 0);
    assert_true(length >= 0);
    text[length] = 0;
    close(log_fd);
    log_fd = -1;
    close(control);
    control = -1;
    gputest_bed_destroy(&bed);
    memset(more_arguments, 0, sizeof more_arguments);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_logs_as_it_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[ARGUMENTS_MAX];
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
        assert_int_equal(log_of(rows[i].arguments, text, sizeof text), rows[i].code);
        assert_true(strlen(text) > 0);
        assert_int_equal(text[0] == '{', rows[i].is_json);
    }
}

int main(void)
{
    const struct CMUnitTest served[] = {
        cmocka_unit_test(test_says_who_it_is),           cmocka_unit_test(test_heart_beats),
        cmocka_unit_test(test_both_lanes_answer),        cmocka_unit_test(test_signals_are_ignored),
        cmocka_unit_test(test_silent_when_nobody_waits),
    };
    const struct CMUnitTest ends[] = {
        cmocka_unit_test(test_ends_with_its_control_pipe),
        cmocka_unit_test(test_refuses_another_contract),
        cmocka_unit_test(test_refuses_a_short_arena),
        cmocka_unit_test(test_refuses_what_needs_more_scratch),
        cmocka_unit_test(test_logs_as_it_is_told),
    };
    return cmocka_run_group_tests_name("served", served, start, finish) +
           cmocka_run_group_tests_name("ends", ends, NULL, NULL);
}
