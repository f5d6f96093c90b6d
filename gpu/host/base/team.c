/* gpu/host/base/team.c: see team.h.
 *
 * Shared state: `left` counts the pieces left to take. A thread that lowers it has taken a piece,
 * and until that piece is finished work, context and count stand still: they are written before
 * `left` is raised, and the run ends only when `unfinished` has reached 0. So a helper that comes
 * late can take a piece of the next run, and then sees that run's.
 *
 * No wake is lost: a helper announces itself, reads `runs`, looks once more for work, and sleeps
 * only while `runs` is the same; a caller raises `left`, then `runs`, then looks for sleepers. All
 * of it is sequentially consistent. The caller's own sleep, on `unfinished`, is made the same way.
 */
#include "gpu/host/base/team.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "gpu/host/base/stop.h"

/* How long a thread without work polls before it sleeps. */
#define SPIN_NS 20000
#define SPIN_POLLS 64 /* between two looks at the clock */

struct host_team {
    int helpers, started;
    enum rank rank;
    pthread_t *threads;
    _Atomic bool stopping, busy;
    _Alignas(64) _Atomic uint32_t left;
    _Alignas(64) _Atomic uint32_t unfinished;
    _Atomic uint32_t caller_sleeps;
    _Alignas(64) _Atomic uint32_t runs;
    _Atomic uint32_t sleepers;
    /* constant while pieces are unfinished */
    _Alignas(64) void *context;
    void (*work)(void *context, int64_t index);
    uint32_t count;
    const _Atomic uint32_t *unwanted; /* the word that the caller watches, or NULL */
};

/* Polls until the word is zero, or is not, as wanted. False: it took too long. */
static bool poll_word(_Atomic uint32_t *word, bool zero)
{
    uint64_t until = clock_now_ns() + SPIN_NS;
    do {
        for (int i = 0; i < SPIN_POLLS; i++) {
            if ((atomic_load(word) == 0) == zero)
                return true;
            __builtin_ia32_pause();
        }
    } while (clock_now_ns() < until);
    return false;
}

static bool is_wanted(const struct host_team *team)
{
    return !team->unwanted || atomic_load_explicit(team->unwanted, memory_order_relaxed) == 0;
}

/* Does one piece, or takes it and leaves it undone; false when none is left. */
static bool take_part(struct host_team *team)
{
    uint32_t left = atomic_load(&team->left);
    do {
        if (left == 0)
            return false;
    } while (!atomic_compare_exchange_weak(&team->left, &left, left - 1));
    if (is_wanted(team))
        team->work(team->context, team->count - left);
    /* After this the run may be over, and the team another caller's: a wake may then reach one who
     * does not wait for it, and who looks again. */
    if (atomic_fetch_sub(&team->unfinished, 1) == 1 && atomic_load(&team->caller_sleeps))
        futex_wake(&team->unfinished, 1);
    return true;
}

static void sleep_for_work(struct host_team *team)
{
    atomic_fetch_add(&team->sleepers, 1);
    uint32_t runs = atomic_load(&team->runs);
    if (atomic_load(&team->left) == 0 && !atomic_load(&team->stopping))
        futex_wait(&team->runs, runs);
    atomic_fetch_sub(&team->sleepers, 1);
}

static void *help(void *context)
{
    struct host_team *team = context;
    rank_take(team->rank);
    while (!atomic_load(&team->stopping)) {
        bool any = false;
        while (take_part(team))
            any = true;
        if (!any || !poll_word(&team->left, false))
            sleep_for_work(team);
    }
    return NULL;
}

enum error host_team_create(int helpers, enum rank rank, struct host_team **result,
                            struct failure *failure)
{
    assert(helpers >= 0);
    struct host_team *team = aligned_alloc(_Alignof(struct host_team), sizeof *team);
    pthread_t *threads = calloc((size_t)helpers + 1, sizeof *threads);
    if (!team || !threads) {
        free(team);
        free(threads);
        return failure_set(failure, ERROR_INTERNAL, "no memory for %d helpers", helpers);
    }
    memset(team, 0, sizeof *team);
    team->helpers = helpers;
    team->rank = rank;
    team->threads = threads;
    for (; team->started < helpers; team->started++) {
        if (pthread_create(&threads[team->started], NULL, help, team) != 0) {
            host_team_destroy(&team);
            return failure_set(failure, ERROR_INTERNAL, "cannot start %d helper threads", helpers);
        }
    }
    *result = team;
    return ERROR_NONE;
}

void host_team_destroy(struct host_team **team)
{
    struct host_team *old = *team;
    if (!old)
        return;
    assert(!atomic_load(&old->busy));
    atomic_store(&old->stopping, true);
    atomic_fetch_add(&old->runs, 1);
    futex_wake(&old->runs, UINT32_MAX >> 1);
    for (int i = 0; i < old->started; i++)
        pthread_join(old->threads[i], NULL);
    free(old->threads);
    free(old);
    *team = NULL;
}

int host_team_threads(const struct host_team *team)
{
    return team ? team->helpers + 1 : 1;
}

/* Until the others have finished the pieces they took. */
static void wait_for_all(struct host_team *team)
{
    if (poll_word(&team->unfinished, true))
        return;
    atomic_store(&team->caller_sleeps, 1);
    uint32_t unfinished;
    while ((unfinished = atomic_load(&team->unfinished)) != 0)
        futex_wait(&team->unfinished, unfinished);
    atomic_store(&team->caller_sleeps, 0);
}

void host_team_run(struct host_team *team, int64_t count,
                   void (*work)(void *context, int64_t index), void *context)
{
    host_stop_check();
    if (!team || team->helpers == 0 || count < 2 || count > INT32_MAX ||
        atomic_exchange(&team->busy, true)) {
        for (int64_t i = 0; i < count; i++) {
            work(context, i);
            host_stop_check();
        }
        return;
    }
    /* Helpers may be at work until all pieces are finished: no piece is left in its middle. */
    const _Atomic uint32_t *watched = host__stop_pause();
    team->unwanted = watched;
    team->work = work;
    team->context = context;
    team->count = (uint32_t)count;
    atomic_store(&team->unfinished, (uint32_t)count);
    atomic_store(&team->left, (uint32_t)count);
    atomic_fetch_add(&team->runs, 1);
    if (atomic_load(&team->sleepers) > 0)
        futex_wake(&team->runs, (uint32_t)count - 1);
    while (take_part(team))
        continue;
    wait_for_all(team);
    atomic_store(&team->busy, false);
    host__stop_resume(watched);
    host_stop_check();
}
