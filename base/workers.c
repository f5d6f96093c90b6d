/* base/workers.c: threads that take tasks, first in first out, from a bounded list.
 *
 * One mutex and one condition. A task runs for microseconds to milliseconds, so the lock is no
 * bottleneck. Signals are blocked in the pool's threads: they belong to main's.
 */
#include "base/workers.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 1024

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t wanted; /* a task waits, or stopping was set */
    struct workers_task *first, **last;
    int waiting, limit;
    bool stopping;
    int thread_count; /* started */
    pthread_t threads[];
};

/* The next task; NULL when the pool stops and nothing waits any more. */
static struct workers_task *take_task(struct workers *pool)
{
    pthread_mutex_lock(&pool->lock);
    while (pool->first == NULL && !pool->stopping)
        pthread_cond_wait(&pool->wanted, &pool->lock);
    struct workers_task *task = pool->first;
    if (task != NULL) {
        pool->first = task->next;
        if (pool->first == NULL)
            pool->last = &pool->first;
        pool->waiting--;
    }
    pthread_mutex_unlock(&pool->lock);
    return task;
}

static void *work(void *context)
{
    struct workers *pool = context;
    struct workers_task *task;
    while ((task = take_task(pool)) != NULL)
        task->run(task); /* the task may be gone afterwards */
    return NULL;
}

/* Starts threads until there are as many as asked for; 0 or an error number. */
static int start_threads(struct workers *pool, int threads)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = 0;
    while (pool->thread_count < threads && status == 0) {
        pthread_t *thread = &pool->threads[pool->thread_count];
        status = pthread_create(thread, NULL, work, pool);
        if (status == 0) {
            pthread_setname_np(*thread, "pool");
            pool->thread_count++;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

enum error workers_create(int threads, int limit, struct workers **pool, struct failure *failure)
{
    assert(threads >= 1 && threads <= THREADS_MAX && limit >= 1);
    *pool = NULL;
    struct workers *made = calloc(1, sizeof *made + (size_t)threads * sizeof made->threads[0]);
    if (made == NULL)
        return failure_set(failure, ERROR_INTERNAL, "Out of memory for the work pool.");
    int status = pthread_mutex_init(&made->lock, NULL);
    assert(status == 0);
    status = pthread_cond_init(&made->wanted, NULL);
    assert(status == 0);
    made->last = &made->first;
    made->limit = limit;
    status = start_threads(made, threads);
    if (status != 0) {
        workers_destroy(&made);
        return failure_set(failure, ERROR_INTERNAL, "The work pool's threads cannot start: %s.",
                           strerror(status));
    }
    *pool = made;
    return ERROR_NONE;
}

void workers_destroy(struct workers **pool)
{
    struct workers *old = *pool;
    if (old == NULL)
        return;
    *pool = NULL;
    pthread_mutex_lock(&old->lock);
    old->stopping = true;
    pthread_cond_broadcast(&old->wanted);
    pthread_mutex_unlock(&old->lock);
    for (int i = 0; i < old->thread_count; i++)
        pthread_join(old->threads[i], NULL);
    assert(old->first == NULL && old->waiting == 0);
    pthread_cond_destroy(&old->wanted);
    pthread_mutex_destroy(&old->lock);
    free(old);
}

enum error workers_submit(struct workers *pool, struct workers_task *task)
{
    assert(task->run != NULL);
    task->next = NULL;
    pthread_mutex_lock(&pool->lock);
    bool full = pool->waiting >= pool->limit;
    if (!full) {
        *pool->last = task;
        pool->last = &task->next;
        pool->waiting++;
        pthread_cond_signal(&pool->wanted);
    }
    pthread_mutex_unlock(&pool->lock);
    return full ? ERROR_FULL : ERROR_NONE;
}
