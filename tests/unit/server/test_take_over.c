/* tests/unit/server/test_take_over.c: who is in a spare role takes the device's own, with processes
 * played by the test.
 */
#include "tests/unit/server/role_bed.h"

/* The bench's role has its engine, and there is a spare one, which no one has taken. */
static struct role two_roles(struct bench *bench)
{
    come_up(bench);
    struct role spare = bench->role;
    spare.engine.spare = true;
    spare.process = NULL;
    spare.state = ROLE_EMPTY;
    return spare;
}

static void fill_spare(struct role *spare, bool up)
{
    comes_up = up;
    spare->state = ROLE_EMPTY;
    role_want(spare, clock_ns);
    assert_non_null(spare->process);
    assert_true(role_look_after(spare, clock_ns, false) == up);
}

/* It shows that it is alive. */
static void beat(struct role *spare)
{
    atomic_fetch_add(&shared->heartbeat, 1);
    assert_false(role_look_after(spare, clock_ns, false));
}

static void test_a_spare_engine_takes_over(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_CUDA, false);
    struct role spare = two_roles(&bench);
    fill_spare(&spare, true);
    struct engine_process *comer = spare.process;
    assert_false(role_take_over(&bench.role, &spare, clock_ns)); /* the role is taken */
    end(&bench, ENGINE_EXIT_FAULT, true);
    assert_int_equal(device_up(&bench), 0);
    has_work = true; /* a suspect */
    assert_false(role_take_over(&bench.role, &spare, clock_ns));
    has_work = false;
    assert_true(role_take_over(&bench.role, &spare, clock_ns));
    assert_int_equal(device_up(&bench), 1);
    assert_true(bench.role.process == comer && comer->owner == &bench.role);
    assert_false(comer->engine.spare);
    assert_null(spare.process);
    role_look_after(&spare, clock_ns, false); /* another one comes there */
    assert_int_equal(starts, 3);
    assert_true(spare.process->engine.spare);
    bench_close(&bench);
}

/* Who is on the way up in the role goes on in the spare one. */
static void test_who_is_on_the_way_makes_room(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_CUDA, false);
    struct role spare = two_roles(&bench);
    fill_spare(&spare, true);
    struct engine_process *comer = spare.process;
    comes_up = false;
    end(&bench, ENGINE_EXIT_FAULT, true);
    tick(&bench, MS_NS);
    struct engine_process *starting = bench.role.process;
    assert_true(role_is_on_the_way(&bench.role));
    assert_true(role_take_over(&bench.role, &spare, clock_ns));
    assert_true(bench.role.process == comer);
    assert_true(spare.process == starting && starting->owner == &spare);
    assert_true(starting->engine.spare);
    bench_close(&bench);
}

/* Who is on the way up in the spare role comes up in the other one. */
static void test_who_is_on_the_way_is_taken(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_CUDA, false);
    struct role spare = two_roles(&bench);
    fill_spare(&spare, false);
    struct engine_process *starting = spare.process;
    end(&bench, ENGINE_EXIT_FAULT, true);
    assert_false(role_take_over(&bench.role, &spare, clock_ns)); /* it is not up yet */
    assert_true(bench.role.process == starting);
    assert_null(spare.process);
    fill_spare(&spare, false);
    assert_false(role_take_over(&bench.role, &spare, clock_ns)); /* for nothing */
    assert_true(bench.role.process == starting);
    comes_up = true;
    assert_true(tick(&bench, MS_NS));
    assert_int_equal(starts, 3);
    bench_close(&bench);
}

/* An engine that dies at once is no better for having been spare: the pauses are the role's. Nor is
 * a device out of order, which is tried by an engine of its own. */
static void test_no_engine_takes_over_too_soon(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_CUDA, false);
    struct role spare = two_roles(&bench);
    uint64_t pause_ns = ROLE_QUICK_NS;
    for (int i = 0; i < 5; i++) {
        fill_spare(&spare, true);
        end(&bench, ENGINE_EXIT_FAULT, false);
        clock_ns += pause_ns - MS_NS;
        beat(&spare);
        assert_false(role_take_over(&bench.role, &spare, clock_ns));
        clock_ns += MS_NS;
        assert_true(role_take_over(&bench.role, &spare, clock_ns));
        pause_ns *= 2;
    }
    fill_spare(&spare, true);
    end(&bench, ENGINE_EXIT_DEVICE_OUT, true);
    assert_false(role_take_over(&bench.role, &spare, clock_ns + 2 * MAX_NS));
    bench_close(&bench);
}

/* Nor does one that is silent, though no one has given it up yet. */
static void test_no_silent_engine_takes_over(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_CUDA, false);
    struct role spare = two_roles(&bench);
    fill_spare(&spare, true);
    clock_ns += CLOCK_S; /* of the two that are allowed */
    assert_false(role_look_after(&spare, clock_ns, false));
    assert_non_null(spare.process);
    end(&bench, ENGINE_EXIT_FAULT, true);
    assert_false(role_take_over(&bench.role, &spare, clock_ns));
    beat(&spare);
    assert_true(role_take_over(&bench.role, &spare, clock_ns));
    bench_close(&bench);
}

/* A device that lets no process go: engines are not used up on it one after the other. */
static void test_who_cannot_be_reaped_ends_the_taking_over(void **state)
{
    (void)state;
    struct bench bench = bench_open(QUEUE_CUDA, false);
    struct role spare = two_roles(&bench);
    struct engine_process *first = bench.role.process;
    for (int i = 0; i < 4; i++) {
        role_end(&bench.role, ENGINE_PROCESS_DEADLINE, clock_ns);
        assert_int_equal(bench.role.leaving, 1 + i);
        clock_ns = bench.role.not_before_ns;
        fill_spare(&spare, true);
        assert_true(role_take_over(&bench.role, &spare, clock_ns) == (i < 3));
    }
    assert_null(bench.role.process);
    role_note_end(&bench.role, first, clock_ns);
    assert_true(role_take_over(&bench.role, &spare, clock_ns));
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_spare_engine_takes_over),
        cmocka_unit_test(test_who_is_on_the_way_makes_room),
        cmocka_unit_test(test_who_is_on_the_way_is_taken),
        cmocka_unit_test(test_no_engine_takes_over_too_soon),
        cmocka_unit_test(test_no_silent_engine_takes_over),
        cmocka_unit_test(test_who_cannot_be_reaped_ends_the_taking_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
