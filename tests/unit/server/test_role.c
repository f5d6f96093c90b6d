/* tests/unit/server/test_role.c: when an engine is started, ended and given up, with processes
 * played by the test. */
#include "tests/unit/server/role_bed.h"

#include <string.h>

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
    role_show_failures(&bench.role);
    come_up(&bench);
    end(&bench, ENGINE_EXIT_FAULT, true);
    role_show_failures(&bench.role);
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
    assert_true(role_is_settled(&bench.role)); /* no one is wanted */
    role_want(&bench.role, clock_ns);
    assert_false(role_is_settled(&bench.role));
    assert_true(role_is_busy(&bench.role));
    assert_true(tick(&bench, MS_NS));
    assert_true(role_is_settled(&bench.role));
    assert_int_equal(device_up(&bench), 1);
    for (int idle = 0; idle < 2; idle++) { /* who had nothing to do has done it well */
        end_with(&bench.role, ENGINE_EXIT_FAULT, !idle, idle);
        assert_int_equal(device_up(&bench), 0);
        assert_true(role_is_busy(&bench.role));
        assert_false(tick(&bench, 0));
        assert_int_equal(starts, 2 + idle);
        assert_true(tick(&bench, MS_NS));
        assert_int_equal(device_up(&bench), 1);
    }
    bench_close(&bench);
}

static void test_the_pause_doubles_up_to_the_longest(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_HOST, true);
    come_up(&bench);
    uint64_t pause_ns = ROLE_QUICK_NS;
    for (int i = 0; i < 12; i++) {
        end(&bench, -1, false);
        tick(&bench, pause_ns - MS_NS);
        assert_int_equal(starts, 1 + i);
        tick(&bench, MS_NS);
        assert_int_equal(starts, 2 + i);
        assert_true(tick(&bench, MS_NS));
        pause_ns = 2 * pause_ns < MAX_NS ? 2 * pause_ns : MAX_NS;
    }
    assert_int_equal(bench.role.state, ROLE_WANTED); /* the host is never done without */
    end(&bench, -1, true);
    tick(&bench, 0);
    assert_int_equal(starts, 14);
    bench_close(&bench);
}

/* How a process ends before any was up, and what that means. */
static void test_ends_at_the_start(void **state)
{
    static const struct {
        enum queue_class_id device_class;
        bool must, mismatch;
        int64_t code;
        int times;
        bool fails;
        enum role_state state;
    } rows[] = {
        {QUEUE_CUDA, false, false, ENGINE_EXIT_DEVICE_ABSENT, 1, false, ROLE_ABSENT},
        {QUEUE_CUDA, true, false, ENGINE_EXIT_DEVICE_ABSENT, 1, true, ROLE_WANTED},
        {QUEUE_CUDA, false, false, ENGINE_EXIT_DEVICE_OUT, 1, false, ROLE_OUT},
        {QUEUE_CUDA, true, false, ENGINE_EXIT_DEVICE_OUT, 1, true, ROLE_OUT},
        {QUEUE_CUDA, false, false, ENGINE_EXIT_FAILURE, 4, false, ROLE_WANTED},
        {QUEUE_CUDA, false, false, ENGINE_EXIT_FAILURE, 5, false, ROLE_OUT},
        {QUEUE_CUDA, true, false, ENGINE_EXIT_FAILURE, 5, true, ROLE_WANTED},
        {QUEUE_HOST, true, false, ENGINE_EXIT_FAILURE, 4, false, ROLE_WANTED},
        {QUEUE_HOST, true, false, ENGINE_EXIT_FAILURE, 5, true, ROLE_WANTED},
        {QUEUE_CUDA, false, true, ENGINE_EXIT_FAILURE, 1, true, ROLE_WANTED},
        {QUEUE_HOST, true, true, ENGINE_EXIT_FAILURE, 1, true, ROLE_WANTED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench bench = bench_open(rows[i].device_class, rows[i].must);
        comes_up = false;
        role_want(&bench.role, clock_ns);
        for (int k = 0; k < rows[i].times; k++) {
            tick(&bench, MAX_NS);
            bench.role.process->mismatch = rows[i].mismatch;
            end(&bench, rows[i].code, false);
        }
        assert_int_equal(bench.role.failure != NULL, rows[i].fails);
        assert_int_equal(bench.role.state, rows[i].state);
        int so_far = starts;
        tick(&bench, 2 * MAX_NS); /* who failed or is absent is not tried again */
        bool again = !rows[i].fails && rows[i].state != ROLE_ABSENT;
        assert_int_equal(starts, so_far + again);
        bench_close(&bench);
    }
}

/* The same, once an engine has been up. */
static void test_ends_later(void **state)
{
    static const struct {
        enum queue_class_id device_class;
        int64_t code;
        bool mismatch, wrong;
        enum role_state state;
    } rows[] = {
        {QUEUE_CUDA, ENGINE_EXIT_DEVICE_ABSENT, false, false, ROLE_OUT},
        {QUEUE_CUDA, ENGINE_EXIT_DEVICE_OUT, false, false, ROLE_OUT},
        {QUEUE_CUDA, ENGINE_EXIT_FAULT, false, false, ROLE_WANTED},
        {QUEUE_CUDA, -1, false, true, ROLE_OUT},
        {QUEUE_HOST, -1, false, true, ROLE_WANTED},
        {QUEUE_CUDA, ENGINE_EXIT_FAILURE, true, false, ROLE_WANTED},
        {QUEUE_HOST, ENGINE_EXIT_FAILURE, true, false, ROLE_WANTED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench bench = bench_open(rows[i].device_class, true);
        come_up(&bench);
        bench.role.process->worked = true;
        bench.role.process->mismatch = rows[i].mismatch;
        if (rows[i].wrong)
            role_end(&bench.role, ENGINE_PROCESS_WRONG_ANSWER, clock_ns);
        else
            end(&bench, rows[i].code, true);
        tick(&bench, 0);
        assert_null(bench.role.failure);
        assert_int_equal(bench.role.state, rows[i].state);
        assert_int_equal(device_up(&bench), 0);
        assert_int_equal(starts, rows[i].state == ROLE_OUT ? 1 : 2);
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
        tick(&bench, MAX_NS - MS_NS);
        assert_int_equal(starts, 1 + i);
        tick(&bench, MS_NS);
        assert_int_equal(starts, 2 + i);
        end(&bench, i == 1 ? ENGINE_EXIT_FAILURE : ENGINE_EXIT_DEVICE_OUT, false);
        assert_int_equal(bench.role.state, ROLE_OUT);
    }
    tick(&bench, MAX_NS);
    assert_true(tick(&bench, MS_NS));
    assert_int_equal(bench.role.state, ROLE_WANTED);
    assert_int_equal(device_up(&bench), 1);
    bench_close(&bench);
}

static void test_who_cannot_be_started(void **state)
{
    (void)state;
    for (int must = 0; must < 2; must++) {
        struct bench bench = bench_open(QUEUE_CUDA, must);
        start_error = ERROR_INTERNAL;
        role_want(&bench.role, clock_ns);
        for (int i = 0; i < 4; i++)
            tick(&bench, MAX_NS);
        assert_int_equal(starts, 5);
        assert_int_equal(bench.role.failure != NULL, must);
        assert_int_equal(bench.role.state, must ? ROLE_WANTED : ROLE_OUT);
        bench_close(&bench);
    }
}

/* Processes that no one can reap, such as a device holds: there are not ever more of them. */
static void test_who_cannot_be_reaped(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_CUDA, true);
    come_up(&bench);
    struct engine_process *first = bench.role.process;
    for (int i = 0; i < 2; i++) { /* another one is started while they end */
        overdue_ns = 1;
        tick(&bench, MS_NS);
        overdue_ns = 0;
        assert_null(bench.role.process);
        assert_int_equal(bench.role.leaving, 1 + i);
        if (i == 0) {
            tick(&bench, CLOCK_S);
            assert_true(tick(&bench, MS_NS));
            assert_int_equal(starts, 2);
        }
    }
    tick(&bench, MAX_NS);
    assert_int_equal(starts, 2);
    assert_false(role_is_busy(&bench.role));
    role_note_end(&bench.role, first, clock_ns);
    tick(&bench, MS_NS);
    assert_int_equal(starts, 3);
    assert_int_equal(bench.role.leaving, 1);
    bench_close(&bench);
}

static void test_who_is_watched(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_CUDA, false);
    comes_up = false;
    role_want(&bench.role, clock_ns);
    tick(&bench, 20 * CLOCK_S);
    assert_int_equal(kills, 0);
    tick(&bench, MS_NS); /* too long at the start: done without, for now */
    assert_int_equal(kills, 1);
    assert_int_equal(bench.role.state, ROLE_OUT);
    assert_int_equal(processes[1].reason, ENGINE_PROCESS_START);
    comes_up = true;
    tick(&bench, MAX_NS);
    assert_true(tick(&bench, MS_NS));
    for (int i = 0; i < 4; i++) { /* it beats */
        atomic_fetch_add(&shared->heartbeat, 1);
        tick(&bench, CLOCK_S);
    }
    tick(&bench, 2 * CLOCK_S);
    assert_int_equal(kills, 1);
    role_look_after(&bench.role, clock_ns + 5 * CLOCK_S, true); /* the machine slept */
    assert_int_equal(kills, 1);
    clock_ns += 5 * CLOCK_S;
    tick(&bench, 2 * CLOCK_S + MS_NS);
    assert_int_equal(kills, 2);
    assert_int_equal(processes[2].reason, ENGINE_PROCESS_HEARTBEAT);
    role_note_end(&bench.role, &processes[1], clock_ns);
    role_note_end(&bench.role, &processes[2], clock_ns);
    tick(&bench, MAX_NS);
    assert_true(tick(&bench, MS_NS));
    overdue_ns = 1;
    tick(&bench, MS_NS);
    assert_int_equal(processes[3].reason, ENGINE_PROCESS_DEADLINE);
    overdue_ns = 0;
    role_note_end(&bench.role, &processes[3], clock_ns);
    tick(&bench, MAX_NS);
    assert_true(tick(&bench, MS_NS));
    atomic_store(&shared->ready, ENGINE_LOST); /* it says so */
    tick(&bench, MS_NS);
    assert_int_equal(processes[4].reason, ENGINE_PROCESS_LOST);
    assert_null(bench.role.process);
    bench_close(&bench);
}

static void test_a_spare_engine(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_CUDA, false);
    bench.role.engine.spare = true;
    come_up(&bench);
    for (int i = 0; i < 8; i++) { /* it is there to die of its work: never a long pause */
        end(&bench, i % 2 ? ENGINE_EXIT_DEVICE_OUT : -1, false);
        assert_int_equal(bench.role.state, ROLE_WANTED);
        tick(&bench, 100 * MS_NS);
        assert_true(tick(&bench, MS_NS));
    }
    role_retire(&bench.role, clock_ns);
    assert_int_equal(kills, 1);
    role_want(&bench.role, clock_ns); /* before the other one is reaped */
    int so_far = starts;
    assert_non_null(bench.role.process);
    role_note_end(&bench.role, &processes[so_far - 1], clock_ns);
    assert_int_equal(bench.role.leaving, 0);
    role_retire(&bench.role, clock_ns);
    tick(&bench, MAX_NS);
    assert_int_equal(starts, so_far);
    role_retire(&bench.role, clock_ns); /* no one is there */
    bench_close(&bench);
}

/* A spare engine that comes up and ends, without any work, is started ever more seldom; its device
 * stays in service. One that was up for a while is replaced at once. */
static void test_a_spare_engine_that_ends_idle(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_CUDA, false);
    bench.role.engine.spare = true;
    come_up(&bench);
    uint64_t pause_ns = ROLE_QUICK_NS;
    for (int i = 0; i < 12; i++) {
        end_with(&bench.role, -1, false, true);
        tick(&bench, pause_ns - MS_NS);
        assert_int_equal(starts, 1 + i);
        tick(&bench, MS_NS);
        assert_int_equal(starts, 2 + i);
        assert_true(tick(&bench, MS_NS));
        pause_ns = 2 * pause_ns < MAX_NS ? 2 * pause_ns : MAX_NS;
    }
    clock_ns += CLOCK_S;
    end_with(&bench.role, -1, false, true);
    tick(&bench, 0);
    assert_int_equal(starts, 14);
    comes_up = false;
    for (int i = 0; i < 12; i++) { /* nor one that never comes up */
        end_with(&bench.role, ENGINE_EXIT_FAILURE, false, true);
        tick(&bench, MAX_NS);
        assert_int_equal(starts, 15 + i);
    }
    assert_int_equal(bench.role.state, ROLE_WANTED);
    assert_null(bench.role.failure);
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
        cmocka_unit_test(test_who_cannot_be_reaped),
        cmocka_unit_test(test_who_is_watched),
        cmocka_unit_test(test_a_spare_engine),
        cmocka_unit_test(test_a_spare_engine_that_ends_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
