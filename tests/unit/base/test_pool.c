/* tests/unit/base/test_pool.c: the limit, the order, destruction with work left, many submitters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/workers.h"

#define LIMIT 5
#define SUBMITTERS 3
#define TASKS 2000 /* of one submitter */

static struct workers *create(int threads, int limit)
{
    struct workers *pool;
    struct failure failure;
    if (workers_create(threads, limit, &pool, &failure) != ERROR_NONE)
        fail_msg("%s", failure.detail);
    return pool;
}

/* A task that says it has begun, then waits to be let go. */
struct gate {
    struct workers_task task; /* first */
    sem_t begun, go;
};

static void run_gate(struct workers_task *self)
{
    struct gate *gate = (struct gate *)self;
    sem_post(&gate->begun);
    while (sem_wait(&gate->go) != 0)
        continue;
}

struct counted {
    struct workers_task task; /* first */
    _Atomic int *turn;        /* counts the tasks that ran */
    int place;                /* this one's turn, from 1 */
};

static void run_counted(struct workers_task *self)
{
    struct counted *counted = (struct counted *)self;
    counted->place = atomic_fetch_add(counted->turn, 1) + 1;
}

/* With the only thread busy, LIMIT tasks wait and the next is refused; all run in order, also when
 * the pool is destroyed meanwhile. */
static void test_limit_and_order(void **state)
{
    (void)state;
    struct workers *pool = create(1, LIMIT);
    struct gate gate = {.task.run = run_gate};
    sem_init(&gate.begun, 0, 0);
    sem_init(&gate.go, 0, 0);
    assert_int_equal(workers_submit(pool, &gate.task), ERROR_NONE);
    while (sem_wait(&gate.begun) != 0)
        continue;

    _Atomic int turn = 0;
    struct counted tasks[LIMIT + 1];
    for (int i = 0; i <= LIMIT; i++) {
        tasks[i] = (struct counted){{.run = run_counted}, &turn, 0};
        assert_int_equal(workers_submit(pool, &tasks[i].task), i < LIMIT ? ERROR_NONE : ERROR_FULL);
    }
    assert_int_equal(atomic_load(&turn), 0);
    sem_post(&gate.go);
    workers_destroy(&pool);
    assert_null(pool);
    assert_int_equal(atomic_load(&turn), LIMIT);
    for (int i = 0; i < LIMIT; i++)
        assert_int_equal(tasks[i].place, i + 1);
    assert_int_equal(tasks[LIMIT].place, 0);
    sem_destroy(&gate.begun);
    sem_destroy(&gate.go);
}

/* As many tasks run at once as there are threads: each gate begins while the others are shut. */
static void test_parallel(void **state)
{
    (void)state;
    struct workers *pool = create(3, LIMIT);
    struct gate gates[3];
    for (int i = 0; i < 3; i++) {
        gates[i].task.run = run_gate;
        sem_init(&gates[i].begun, 0, 0);
        sem_init(&gates[i].go, 0, 0);
        assert_int_equal(workers_submit(pool, &gates[i].task), ERROR_NONE);
    }
    for (int i = 0; i < 3; i++) {
        while (sem_wait(&gates[i].begun) != 0)
            continue;
    }
    for (int i = 0; i < 3; i++)
        sem_post(&gates[i].go);
    workers_destroy(&pool);
    for (int i = 0; i < 3; i++) {
        sem_destroy(&gates[i].begun);
        sem_destroy(&gates[i].go);
    }
    workers_destroy(&pool); /* nothing to destroy */
}

struct submitter {
    struct workers *pool;
    _Atomic int *turn;
    struct counted tasks[TASKS];
};

static void *submit_all(void *context)
{
    struct submitter *submitter = context;
    for (int i = 0; i < TASKS; i++) {
        submitter->tasks[i] = (struct counted){{.run = run_counted}, submitter->turn, 0};
        while (workers_submit(submitter->pool, &submitter->tasks[i].task) == ERROR_FULL)
            sched_yield();
    }
    return NULL;
}

static void test_submitters(void **state)
{
    (void)state;
    static struct submitter submitters[SUBMITTERS];
    pthread_t threads[SUBMITTERS];
    _Atomic int turn = 0;
    struct workers *pool = create(2, 16);
    for (int i = 0; i < SUBMITTERS; i++) {
        submitters[i].pool = pool;
        submitters[i].turn = &turn;
        assert_int_equal(pthread_create(&threads[i], NULL, submit_all, &submitters[i]), 0);
    }
    for (int i = 0; i < SUBMITTERS; i++)
        pthread_join(threads[i], NULL);
    workers_destroy(&pool);
    assert_int_equal(atomic_load(&turn), SUBMITTERS * TASKS);
    for (int i = 0; i < SUBMITTERS; i++) {
        for (int j = 0; j < TASKS; j++)
            assert_true(submitters[i].tasks[j].place > 0);
    }
}

/* ---- Signals ---- */

struct mask {
    struct workers_task task; /* first */
    int blocked;              /* SIGTERM and SIGHUP */
};

static void run_mask(struct workers_task *self)
{
    struct mask *mask = (struct mask *)self;
    sigset_t signals;
    pthread_sigmask(SIG_SETMASK, NULL, &signals);
    mask->blocked = sigismember(&signals, SIGTERM) + sigismember(&signals, SIGHUP);
}

/* Signals never land on a thread of the pool, and the caller's mask is as before. */
static void test_signals(void **state)
{
    (void)state;
    struct mask mask = {{.run = run_mask}, 0};
    struct workers *pool = create(1, 1);
    assert_int_equal(workers_submit(pool, &mask.task), ERROR_NONE);
    workers_destroy(&pool);
    assert_int_equal(mask.blocked, 2);
    run_mask(&mask.task);
    assert_int_equal(mask.blocked, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limit_and_order),
        cmocka_unit_test(test_parallel),
        cmocka_unit_test(test_submitters),
        cmocka_unit_test(test_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
