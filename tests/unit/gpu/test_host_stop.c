/* Work that nobody waits for any more is left: at a step's beginning or at its end, on the caller's
 * own thread, with every helper done; and the team serves whoever comes next. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu/host/stop.h"
#include "gpu/host/team.h"

#define PIECES 64
#define STEPS 30

/* An algorithm of STEPS steps, whose piece `at` of step `step` finds the word set. */
struct walk {
    struct host_team *team;
    _Atomic uint32_t unwanted;
    int step, at; /* step -1: before the first; STEPS: never */
    bool nested;  /* a piece is a step itself */
    int steps;    /* begun */
    _Atomic int pieces, busy;
    bool ended;
};

static struct host_team *create(int helpers)
{
    struct failure failure = {0};
    struct host_team *team = NULL;
    assert_int_equal(host_team_create(helpers, 0, &team, &failure), ERROR_NONE);
    return team;
}

static void do_nothing(void *context, int64_t index)
{
    (void)context;
    (void)index;
}

static void piece(void *context, int64_t index)
{
    struct walk *walk = context;
    atomic_fetch_add(&walk->busy, 1);
    atomic_fetch_add(&walk->pieces, 1);
    if (walk->steps - 1 == walk->step && index == walk->at)
        atomic_store(&walk->unwanted, 1);
    if (walk->nested)
        host_team_run(walk->team, 4, do_nothing, NULL);
    sched_yield();
    atomic_fetch_sub(&walk->busy, 1);
}

static void walk_on(void *context)
{
    struct walk *walk = context;
    for (; walk->steps < STEPS;) {
        walk->steps++;
        host_team_run(walk->team, PIECES, piece, walk);
    }
    walk->ended = true;
}

static void test_a_step_is_left(void **state)
{
    (void)state;
    static const struct {
        int step, at, begun;
    } rows[] = {{0, 0, 1}, {0, PIECES - 1, 1}, {7, 20, 8}, {STEPS - 1, 5, STEPS}};
    for (int helpers = -1; helpers < 4; helpers++) {
        struct host_team *team = helpers >= 0 ? create(helpers) : NULL;
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            struct walk walk = {.team = team, .step = rows[i].step, .at = rows[i].at};
            assert_false(host_stop_watch(&walk.unwanted, walk_on, &walk));
            assert_false(walk.ended);
            assert_int_equal(atomic_load(&walk.busy), 0);
            assert_int_equal(walk.steps, rows[i].begun);
            assert_in_range(atomic_load(&walk.pieces), (rows[i].begun - 1) * PIECES + 1,
                            rows[i].begun * PIECES);
            host_stop_check(); /* nothing is watched any more */
            struct walk next = {.team = team, .step = STEPS};
            assert_true(host_stop_watch(&next.unwanted, walk_on, &next));
            assert_true(next.ended);
            assert_int_equal(atomic_load(&next.pieces), STEPS * PIECES);
        }
        host_team_destroy(&team);
    }
}

/* No piece of the first step is done, nor is a second one begun. */
static void test_unwanted_from_the_start(void **state)
{
    (void)state;
    struct host_team *team = create(2);
    struct walk walk = {.team = team, .unwanted = 1, .step = -1};
    assert_false(host_stop_watch(&walk.unwanted, walk_on, &walk));
    assert_int_equal(walk.steps, 1);
    assert_int_equal(atomic_load(&walk.pieces), 0);
    host_team_destroy(&team);
}

/* A step within a piece, on a helper or on the caller, is not where a team's step is left. */
static void test_within_a_piece(void **state)
{
    (void)state;
    for (int helpers = 0; helpers < 3; helpers++) {
        struct walk walk = {.team = create(helpers), .step = 3, .at = 11, .nested = true};
        assert_false(host_stop_watch(&walk.unwanted, walk_on, &walk));
        assert_int_equal(walk.steps, 4);
        assert_int_equal(atomic_load(&walk.busy), helpers == 0 ? 1 : 0);
        host_team_destroy(&walk.team);
    }
}

static void loop(void *context)
{
    struct walk *walk = context;
    for (; walk->steps < STEPS; walk->steps++) {
        atomic_store(&walk->unwanted, walk->steps == walk->step);
        host_stop_check();
    }
    walk->ended = true;
}

/* A loop without steps. Who watches nothing runs on, whatever the word says. */
static void test_a_loop_is_left(void **state)
{
    (void)state;
    struct walk walk = {.step = 9}, unwatched = {.step = 9};
    assert_false(host_stop_watch(&walk.unwanted, loop, &walk));
    assert_int_equal(walk.steps, 9);
    loop(&unwatched);
    assert_true(unwatched.ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_is_left),
        cmocka_unit_test(test_unwanted_from_the_start),
        cmocka_unit_test(test_within_a_piece),
        cmocka_unit_test(test_a_loop_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
