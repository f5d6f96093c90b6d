/* tests/unit/server/test_start_clock.c: what counts of an engine's start, on an idle machine and on
 * a busy one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "server/engines/start_clock.h"

#define LOOK_NS (2 * CLOCK_MS)

/* Looks often for so long, while the process uses a percentage of a processor, and is ready for
 * another. */
static uint64_t run(uint64_t seconds, uint64_t percent, uint64_t ready_percent)
{
    struct start_clock clock;
    uint64_t now_ns = 5 * CLOCK_S, counted_ns = 0;
    start_clock_begin(&clock, now_ns);
    for (uint64_t passed_ns = 0; passed_ns <= seconds * CLOCK_S; passed_ns += LOOK_NS) {
        uint64_t before_ns = counted_ns;
        const struct start_usage usage = {passed_ns * percent / 100,
                                          passed_ns * ready_percent / 100};
        counted_ns = start_clock_look(&clock, now_ns + passed_ns, &usage);
        assert_true(counted_ns >= before_ns);
    }
    return counted_ns;
}

static void test_shares(void **state)
{
    (void)state;
    static const struct {
        uint64_t percent, ready, counted_s; /* of 60 s */
    } rows[] = {
        {0, 0, 60},                /* it sleeps, or hangs */
        {3, 0, 60},                /* next to nothing */
        {100, 0, 60},              /* it computes on an idle machine */
        {400, 0, 60},              /* with several threads */
        {50, 0, 30},               /* two more processes want its two processors */
        {33, 0, 20},  {10, 0, 15}, /* the bound */
        {3, 60, 24},               /* it starves, and sleeps for the rest */
        {1, 99, 15},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t counted_ns = run(60, rows[i].percent, rows[i].ready),
                 expected_ns = rows[i].counted_s * CLOCK_S;
        if (counted_ns + CLOCK_S < expected_ns || counted_ns > expected_ns + CLOCK_S)
            fail_msg("row %zu: %llu ms", i, (unsigned long long)(counted_ns / CLOCK_MS));
    }
}

/* What the system says of a process that has just ended is no use: its time goes on. */
static void test_no_processor_time(void **state)
{
    (void)state;
    struct start_clock clock;
    start_clock_begin(&clock, 0);
    (void)start_clock_look(&clock, 2 * CLOCK_S, &(struct start_usage){2 * CLOCK_S, 0});
    assert_true(start_clock_look(&clock, 4 * CLOCK_S, &(struct start_usage){0, 0}) == 4 * CLOCK_S);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_no_processor_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
