/* The team that helps with a large matrix: every piece is done once and before the call returns,
 * the one that else wants the team, and it does run in parallel. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "gpu/host/base/team.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PIECES_MAX 1000
#define CALLERS 3
#define MEET_NS UINT64_C(5000000000)

static struct host_team *create(int helpers)
{
    struct failure failure = {0};
    struct host_team *team = NULL;
    assert_int_equal(host_team_create(helpers, 0, &team, &failure), ERROR_NONE);
    assert_int_equal(host_team_threads(team), helpers + 1);
    return team;
}

/* Plain numbers: the run itself must order what is written to them. */
struct tally {
    int done[PIECES_MAX];
};

static void tick(void *context, int64_t index)
{
    ((struct tally *)context)->done[index]++;
}

static bool all_are(const struct tally *tally, int64_t count, int wanted)
{
    for (int64_t i = 0; i < PIECES_MAX; i++) {
        if (tally->done[i] != (i < count ? wanted : 0))
            return false;
    }
    return true;
}

/* ---- Every piece once ---- */

static void test_every_piece_once(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 3, 7, 64, PIECES_MAX};
    static const int helpers[] = {0, 1, 2, 4};
    for (size_t i = 0; i < COUNT(helpers) + 1; i++) {
        struct host_team *team = i < COUNT(helpers) ? create(helpers[i]) : NULL;
        for (size_t j = 0; j < COUNT(counts); j++) {
            struct tally tally = {0};
            for (int round = 1; round <= 50; round++) {
                host_team_run(team, counts[j], tick, &tally);
                assert_true(all_are(&tally, counts[j], round));
            }
        }
        host_team_destroy(&team);
        assert_null(team);
    }
    assert_int_equal(host_team_threads(NULL), 1);
}

static void add_one(void *context, int64_t index)
{
    ((int *)context)[index]++;
}

/* Short runs one after another; after some of them the helpers have time to fall asleep. */
static void test_many_rounds(void **state)
{
    (void)state;
    struct host_team *team = create(2);
    int done[5] = {0};
    for (int round = 1; round <= 20000; round++) {
        host_team_run(team, 5, add_one, done);
        for (int i = 0; i < 5; i++)
            assert_int_equal(done[i], round);
        if (round % 1000 == 0)
            usleep(2000);
    }
    host_team_destroy(&team);
}

/* Destroyed while helpers poll, or on their way to sleep. */
static void test_short_lives(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct host_team *team = create(round % 4);
        int done[3] = {0};
        if (round % 3)
            host_team_run(team, 3, add_one, done);
        assert_int_equal(done[0] + done[1] + done[2], round % 3 ? 3 : 0);
        host_team_destroy(&team);
    }
}

/* ---- In parallel ---- */

static _Atomic int arrived;

/* Waits until all three pieces are under way, each on a thread of its own. */
static void meet(void *context, int64_t index)
{
    (void)index;
    uint64_t until = clock_now_ns() + MEET_NS;
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) % 3 != 0 && clock_now_ns() < until)
        continue;
    if (clock_now_ns() >= until)
        *(_Atomic bool *)context = true;
}

static void test_pieces_run_at_the_same_time(void **state)
{
    (void)state;
    struct host_team *team = create(2);
    _Atomic bool late = false;
    for (int round = 0; round < 20; round++) {
        atomic_store(&arrived, 0);
        host_team_run(team, 3, meet, &late);
        assert_false(atomic_load(&late));
        usleep(round % 2 ? 1000 : 0);
    }
    host_team_destroy(&team);
}

/* ---- A busy team ---- */

struct nest {
    struct host_team *team;
    struct tally inner[4];
};

static void run_within(void *context, int64_t index)
{
    struct nest *nest = context;
    host_team_run(nest->team, 100, tick, &nest->inner[index]);
}

static void test_runs_within_runs(void **state)
{
    (void)state;
    static struct nest nest;
    memset(&nest, 0, sizeof nest);
    nest.team = create(2);
    for (int round = 1; round <= 200; round++) {
        host_team_run(nest.team, 4, run_within, &nest);
        for (int i = 0; i < 4; i++)
            assert_true(all_are(&nest.inner[i], 100, round));
    }
    host_team_destroy(&nest.team);
}

struct caller {
    struct host_team *team;
    pthread_t thread;
    struct tally tally;
    int wrong;
};

static void *call_often(void *context)
{
    struct caller *caller = context;
    for (int round = 1; round <= 500; round++) {
        host_team_run(caller->team, 20, tick, &caller->tally);
        caller->wrong += !all_are(&caller->tally, 20, round);
    }
    return NULL;
}

static void test_several_callers(void **state)
{
    (void)state;
    static struct caller callers[CALLERS];
    struct host_team *team = create(2);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.team = team};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_int_equal(callers[i].wrong, 0);
    }
    host_team_destroy(&team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_piece_once), cmocka_unit_test(test_many_rounds),
        cmocka_unit_test(test_short_lives),      cmocka_unit_test(test_pieces_run_at_the_same_time),
        cmocka_unit_test(test_runs_within_runs), cmocka_unit_test(test_several_callers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
