/* test_seat.c: when an engine is started, ended and given up, with processes played by the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/seat.h"

#define MS_NS UINT64_C(1000000)
#define MOST_NS (10 * CLOCK_S)
#define NOW_NS (1000 * CLOCK_S)

/* ---- Processes ---- */

static struct engine_shared *shared;
static int starts, kills;
static enum error start_error;
static bool comes_up;
static uint64_t overdue_ns, clock_ns;

enum error engine_process_start(struct engine_process *process, struct failure *failure)
{
    starts++;
    process->reason = ENGINE_PROCESS_NONE;
    process->exit_code = 0;
    process->up_ns = 0;
    process->worked = process->mismatch = false;
    if (start_error != ERROR_NONE)
        return failure_set(failure, start_error, "cannot start");
    process->state = ENGINE_PROCESS_STARTING;
    process->started_ns = clock_ns;
    process->heartbeat_seen_ns = clock_ns;
    process->shared = shared;
    return ERROR_NONE;
}

bool engine_process_poll(struct engine_process *process)
{
    if (process->state == ENGINE_PROCESS_STARTING && comes_up) {
        process->state = ENGINE_PROCESS_UP;
        process->up_ns = process->heartbeat_seen_ns = clock_ns;
    }
    return process->state == ENGINE_PROCESS_UP;
}

void engine_process_kill(struct engine_process *process, enum engine_process_reason reason,
                         bool blame)
{
    (void)blame;
    if (process->state != ENGINE_PROCESS_STARTING && process->state != ENGINE_PROCESS_UP)
        return;
    kills++;
    process->reason = reason;
    process->state = ENGINE_PROCESS_ENDING;
}

const char *engine_process_end_name(const struct engine_process *process)
{
    (void)process;
    return "ended";
}

const char *engine_process_failure_name(const struct engine_process *process, int index)
{
    static const char *const names[] = {"ended", "melted"};
    (void)process;
    return index < 2 ? names[index] : NULL;
}

uint64_t queue_lane_overdue_ns(struct queue_lane *lane, uint64_t now_ns)
{
    (void)lane;
    (void)now_ns;
    return overdue_ns;
}

/* ---- The bench ---- */

struct bench {
    struct metric_registry *metrics;
    struct seat seat;
};

static struct bench bench_open(enum queue_place_id place, bool must)
{
    struct bench bench = {.metrics = metric_registry_create()};
    shared = calloc(1, sizeof *shared);
    assert_non_null(shared);
    starts = kills = 0;
    start_error = ERROR_NONE;
    comes_up = true;
    overdue_ns = 0;
    clock_ns = NOW_NS;
    bench.seat = (struct seat){.must = must,
                               .name = "device",
                               .metrics = bench.metrics,
                               .start_most_ns = 20 * CLOCK_S,
                               .heartbeat_ns = 2 * CLOCK_S,
                               .backoff_max_ns = MOST_NS};
    bench.seat.process.engine.place = place;
    return bench;
}

static void bench_close(struct bench *bench)
{
    metric_registry_destroy(&bench->metrics);
    free(shared);
}

static bool tick(struct bench *bench, uint64_t after_ns)
{
    clock_ns += after_ns;
    return seat_look_after(&bench->seat, clock_ns, false);
}

/* The process is reaped. */
static void end(struct bench *bench, int64_t code, bool worked)
{
    struct engine_process *process = &bench->seat.process;
    assert_int_not_equal(process->state, ENGINE_PROCESS_IDLE);
    process->state = ENGINE_PROCESS_IDLE;
    process->exit_code = code;
    process->worked = worked;
    seat_note_end(&bench->seat, clock_ns);
}

static void come_up(struct bench *bench)
{
    seat_want(&bench->seat, clock_ns);
    assert_true(tick(bench, MS_NS));
    assert_true(seat_is_up(&bench->seat));
}

static int64_t device_up(const struct bench *bench)
{
    return (int64_t)metric_value(metric_series(bench->metrics, METRIC_DEVICE_UP, "device"));
}

/* ---- Tests ---- */

/* Its failures stand on the page before there is one, and keep their counts when shown again. */
static void test_failures_begin_at_zero(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_CUDA, false);
    struct text page;
    text_init(&page, 1 << 20);
    metric_render(bench.metrics, &page);
    assert_null(strstr(page.data, "reason=\"ended\""));
    text_free(&page);
    seat_show_failures(&bench.seat);
    come_up(&bench);
    end(&bench, ENGINE_EXIT_FAULT, true);
    seat_show_failures(&bench.seat);
    text_init(&page, 1 << 20);
    metric_render(bench.metrics, &page);
    const char *line = "invertd_engine_restarts_total{device=\"device\",reason=";
    char ended[128], melted[128];
    snprintf(ended, sizeof ended, "%s\"ended\"} 1\n", line);
    snprintf(melted, sizeof melted, "%s\"melted\"} 0\n", line);
    assert_non_null(strstr(page.data, ended));
    assert_non_null(strstr(page.data, melted));
    text_free(&page);
    bench_close(&bench);
}

static void test_who_worked_is_replaced_at_once(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_CUDA, false);
    assert_true(seat_is_settled(&bench.seat)); /* nobody is wanted */
    seat_want(&bench.seat, clock_ns);
    assert_false(seat_is_settled(&bench.seat));
    assert_true(seat_is_busy(&bench.seat));
    assert_true(tick(&bench, MS_NS));
    assert_true(seat_is_settled(&bench.seat));
    assert_int_equal(device_up(&bench), 1);
    end(&bench, ENGINE_EXIT_FAULT, true);
    assert_int_equal(starts, 2);
    assert_int_equal(device_up(&bench), 0);
    assert_true(tick(&bench, MS_NS));
    assert_int_equal(device_up(&bench), 1);
    bench_close(&bench);
}

static void test_the_pause_doubles_up_to_the_longest(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_HOST, true);
    come_up(&bench);
    uint64_t pause_ns = SEAT_QUICK_NS;
    for (int i = 0; i < 12; i++) {
        end(&bench, -1, false);
        tick(&bench, pause_ns - MS_NS);
        assert_int_equal(starts, 1 + i);
        tick(&bench, MS_NS);
        assert_int_equal(starts, 2 + i);
        assert_true(tick(&bench, MS_NS));
        pause_ns = 2 * pause_ns < MOST_NS ? 2 * pause_ns : MOST_NS;
    }
    assert_int_equal(bench.seat.state, SEAT_WANTED); /* the host is never done without */
    end(&bench, -1, true);
    assert_int_equal(starts, 14);
    bench_close(&bench);
}

/* How a process ends before any was up, and what that means. */
static void test_ends_at_the_start(void **state)
{
    static const struct {
        enum queue_place_id place;
        bool must, mismatch;
        int64_t code;
        int times;
        bool fails;
        enum seat_state state;
    } rows[] = {
        {QUEUE_CUDA, false, false, ENGINE_EXIT_DEVICE_ABSENT, 1, false, SEAT_ABSENT},
        {QUEUE_CUDA, true, false, ENGINE_EXIT_DEVICE_ABSENT, 1, true, SEAT_WANTED},
        {QUEUE_CUDA, false, false, ENGINE_EXIT_DEVICE_OUT, 1, false, SEAT_OUT},
        {QUEUE_CUDA, true, false, ENGINE_EXIT_DEVICE_OUT, 1, true, SEAT_OUT},
        {QUEUE_CUDA, false, false, ENGINE_EXIT_FAILURE, 4, false, SEAT_WANTED},
        {QUEUE_CUDA, false, false, ENGINE_EXIT_FAILURE, 5, false, SEAT_OUT},
        {QUEUE_CUDA, true, false, ENGINE_EXIT_FAILURE, 5, true, SEAT_WANTED},
        {QUEUE_HOST, true, false, ENGINE_EXIT_FAILURE, 4, false, SEAT_WANTED},
        {QUEUE_HOST, true, false, ENGINE_EXIT_FAILURE, 5, true, SEAT_WANTED},
        {QUEUE_CUDA, false, true, ENGINE_EXIT_FAILURE, 1, true, SEAT_WANTED},
        {QUEUE_HOST, true, true, ENGINE_EXIT_FAILURE, 1, true, SEAT_WANTED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench bench = bench_open(rows[i].place, rows[i].must);
        comes_up = false;
        seat_want(&bench.seat, clock_ns);
        for (int k = 0; k < rows[i].times; k++) {
            tick(&bench, MOST_NS);
            bench.seat.process.mismatch = rows[i].mismatch;
            end(&bench, rows[i].code, false);
        }
        assert_int_equal(bench.seat.failure != NULL, rows[i].fails);
        assert_int_equal(bench.seat.state, rows[i].state);
        int so_far = starts;
        tick(&bench, 2 * MOST_NS); /* who failed or is absent is not tried again */
        bool again = !rows[i].fails && rows[i].state != SEAT_ABSENT;
        assert_int_equal(starts, so_far + again);
        bench_close(&bench);
    }
}

/* The same, once an engine has been up. */
static void test_ends_later(void **state)
{
    static const struct {
        enum queue_place_id place;
        int64_t code;
        bool mismatch, wrong;
        enum seat_state state;
    } rows[] = {
        {QUEUE_CUDA, ENGINE_EXIT_DEVICE_ABSENT, false, false, SEAT_OUT},
        {QUEUE_CUDA, ENGINE_EXIT_DEVICE_OUT, false, false, SEAT_OUT},
        {QUEUE_CUDA, ENGINE_EXIT_FAULT, false, false, SEAT_WANTED},
        {QUEUE_CUDA, -1, false, true, SEAT_OUT},
        {QUEUE_HOST, -1, false, true, SEAT_WANTED},
        {QUEUE_CUDA, ENGINE_EXIT_FAILURE, true, false, SEAT_WANTED},
        {QUEUE_HOST, ENGINE_EXIT_FAILURE, true, false, SEAT_WANTED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench bench = bench_open(rows[i].place, true);
        come_up(&bench);
        if (rows[i].wrong)
            engine_process_kill(&bench.seat.process, ENGINE_PROCESS_WRONG_ANSWER, false);
        bench.seat.process.mismatch = rows[i].mismatch;
        end(&bench, rows[i].code, true);
        assert_null(bench.seat.failure);
        assert_int_equal(bench.seat.state, rows[i].state);
        assert_int_equal(device_up(&bench), 0);
        assert_int_equal(starts, rows[i].state == SEAT_OUT ? 1 : 2);
        bench_close(&bench);
    }
}

static void test_a_device_comes_back(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_CUDA, true);
    come_up(&bench);
    end(&bench, ENGINE_EXIT_DEVICE_OUT, true);
    for (int i = 0; i < 3; i++) { /* tried at the longest pause, in vain */
        tick(&bench, MOST_NS - MS_NS);
        assert_int_equal(starts, 1 + i);
        tick(&bench, MS_NS);
        assert_int_equal(starts, 2 + i);
        end(&bench, i == 1 ? ENGINE_EXIT_FAILURE : ENGINE_EXIT_DEVICE_OUT, false);
        assert_int_equal(bench.seat.state, SEAT_OUT);
    }
    tick(&bench, MOST_NS);
    assert_true(tick(&bench, MS_NS));
    assert_int_equal(bench.seat.state, SEAT_WANTED);
    assert_int_equal(device_up(&bench), 1);
    bench_close(&bench);
}

static void test_who_cannot_be_started(void **state)
{
    (void)state;
    for (int must = 0; must < 2; must++) {
        struct bench bench = bench_open(QUEUE_CUDA, must);
        start_error = ERROR_INTERNAL;
        seat_want(&bench.seat, clock_ns);
        for (int i = 0; i < 4; i++)
            tick(&bench, MOST_NS);
        assert_int_equal(starts, 5);
        assert_int_equal(bench.seat.failure != NULL, must);
        assert_int_equal(bench.seat.state, must ? SEAT_WANTED : SEAT_OUT);
        bench_close(&bench);
    }
}

/* The loop still holds the handle of a start that failed: the next start waits for it. */
static void test_a_handle_that_is_being_closed(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_HOST, true);
    bench.seat.process.closing = true;
    seat_want(&bench.seat, clock_ns);
    assert_false(tick(&bench, CLOCK_S));
    assert_int_equal(starts, 0);
    assert_true(seat_is_busy(&bench.seat));
    bench.seat.process.closing = false;
    assert_false(tick(&bench, MS_NS));
    assert_int_equal(starts, 1);
    bench_close(&bench);
}

static void test_who_is_watched(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_CUDA, false);
    comes_up = false;
    seat_want(&bench.seat, clock_ns);
    tick(&bench, 20 * CLOCK_S);
    assert_int_equal(kills, 0);
    tick(&bench, MS_NS); /* too long at the start: done without, for now */
    assert_int_equal(kills, 1);
    end(&bench, -1, false);
    assert_int_equal(bench.seat.state, SEAT_OUT);
    comes_up = true;
    tick(&bench, MOST_NS);
    assert_true(tick(&bench, MS_NS));
    for (int i = 0; i < 4; i++) { /* it beats */
        atomic_fetch_add(&shared->heartbeat, 1);
        tick(&bench, CLOCK_S);
    }
    tick(&bench, 2 * CLOCK_S);
    assert_int_equal(kills, 1);
    seat_look_after(&bench.seat, clock_ns + 5 * CLOCK_S, true); /* the machine slept */
    assert_int_equal(kills, 1);
    clock_ns += 5 * CLOCK_S;
    tick(&bench, 2 * CLOCK_S + MS_NS);
    assert_int_equal(kills, 2);
    assert_int_equal(bench.seat.process.reason, ENGINE_PROCESS_HEARTBEAT);
    end(&bench, -1, true);
    assert_true(tick(&bench, MS_NS));
    overdue_ns = 1;
    tick(&bench, MS_NS);
    assert_int_equal(bench.seat.process.reason, ENGINE_PROCESS_DEADLINE);
    bench_close(&bench);
}

static void test_a_spare_engine(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_CUDA, false);
    bench.seat.process.engine.spare = true;
    come_up(&bench);
    for (int i = 0; i < 8; i++) { /* it is there to die: never a long pause */
        end(&bench, i % 2 ? ENGINE_EXIT_DEVICE_OUT : -1, false);
        assert_int_equal(bench.seat.state, SEAT_WANTED);
        tick(&bench, 100 * MS_NS);
        assert_true(tick(&bench, MS_NS));
    }
    seat_dismiss(&bench.seat);
    assert_int_equal(kills, 1);
    seat_want(&bench.seat, clock_ns); /* before it is reaped */
    int so_far = starts;
    end(&bench, -1, false);
    tick(&bench, MS_NS);
    assert_int_equal(starts, so_far + 1);
    seat_dismiss(&bench.seat);
    end(&bench, -1, false);
    tick(&bench, MOST_NS);
    assert_int_equal(starts, so_far + 1);
    seat_dismiss(&bench.seat); /* nobody is there */
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures_begin_at_zero),
        cmocka_unit_test(test_who_worked_is_replaced_at_once),
        cmocka_unit_test(test_the_pause_doubles_up_to_the_longest),
        cmocka_unit_test(test_ends_at_the_start),
        cmocka_unit_test(test_ends_later),
        cmocka_unit_test(test_a_device_comes_back),
        cmocka_unit_test(test_who_cannot_be_started),
        cmocka_unit_test(test_a_handle_that_is_being_closed),
        cmocka_unit_test(test_who_is_watched),
        cmocka_unit_test(test_a_spare_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
