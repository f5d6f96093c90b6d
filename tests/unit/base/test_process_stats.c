/* tests/unit/base/test_process_stats.c: what the process says of itself, against what is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process_stats.h"

static int64_t value(struct metric_registry *registry, enum metric_id id)
{
    return (int64_t)metric_value(metric_series(registry, id));
}

static void test_values(void **state)
{
    (void)state;
    struct metric_registry *registry = metric_registry_create();
    struct process_stats *stats = process_stats_create(registry);
    assert_non_null(stats);
    int64_t started_ms = value(registry, METRIC_PROCESS_START), now_ms = (int64_t)clock_wall_ms();
    assert_in_range(started_ms, now_ms - 600000, now_ms + 1000);
    process_stats_update(stats);
    int64_t cpu_ns = value(registry, METRIC_PROCESS_CPU), end_ns = cpu_ns;
    assert_true(cpu_ns > 0);
    for (int i = 0; i < 100000000 && end_ns < cpu_ns + (int64_t)(20 * CLOCK_MS); i++)
        if (i % 100000 == 0) {
            process_stats_update(stats);
            end_ns = value(registry, METRIC_PROCESS_CPU);
        }
    assert_true(end_ns >= cpu_ns + (int64_t)(20 * CLOCK_MS));
    int64_t resident = value(registry, METRIC_PROCESS_RESIDENT);
    assert_true(resident > 100000);
    assert_true(value(registry, METRIC_PROCESS_VIRTUAL) > resident);
    int64_t open = value(registry, METRIC_PROCESS_OPEN_FDS);
    assert_true(open >= 3 && open < value(registry, METRIC_PROCESS_MAX_FDS));
    int fd = dup(STDERR_FILENO);
    process_stats_update(stats);
    assert_int_equal(value(registry, METRIC_PROCESS_OPEN_FDS), open + 1);
    close(fd);
    process_stats_destroy(&stats);
    assert_null(stats);
    metric_registry_destroy(&registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
