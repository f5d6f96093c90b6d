/* queue/jobs/desk.c: see desk.h.
 *
 * Calls wait in a list under a mutex. While the thread syncs one transaction, those of the next
 * gather: so the more ask at a time, the more share a sync. A transaction takes what waits, up to
 * CALLS_MAX, so that the first of them does not wait for the last of a long list.
 *
 * A transaction that fails leaves the store closed. Then calls are refused as they come, and the
 * opener is tried every REOPEN_NS.
 */
#include "queue/jobs/desk.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define CALLS_MAX 2048
#define REOPEN_NS (2 * CLOCK_S)
#define RETRY_AFTER_S 2

struct desk {
    struct desk_opener opener;
    struct store *store; /* NULL: it has failed. The thread's */
    struct metric_series *transactions, *calls, *duration, *failures;
    atomic_bool works; /* the same, for others */
    bool has_thread;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wanted;
    struct desk_call *first, **last;
    bool stopping;
};

/* ---- One call ---- */

static enum error do_lease(struct store *store, struct desk_call *call)
{
    struct failure *failure = &call->failure;
    if (call->kind == DESK_RENEW)
        return store->ops->renew(store, &call->in.renew.lease, call->in.renew.lease_until_ms,
                                 call->in.renew.progress, failure);
    if (call->kind == DESK_RELEASE)
        return store->ops->release(store, &call->in.release.lease, call->in.release.killed,
                                   failure);
    return store->ops->finish(store, &call->in.finish.lease, call->in.finish.outcome,
                              call->in.finish.result, call->in.finish.now_ms,
                              call->in.finish.expires_ms, failure);
}

static enum error do_look(struct store *store, struct desk_call *call)
{
    struct failure *failure = &call->failure;
    switch (call->kind) {
    case DESK_FIND_KEY:
        return store->ops->find_key(store, call->in.find_key.owner, call->in.find_key.key,
                                    call->in.find_key.digest, call->job, failure);
    case DESK_READ_BODY:
        return store->ops->read_body(store, &call->in.read.id, call->in.read.to,
                                     call->in.read.bytes, failure);
    case DESK_READ_RESULT:
        return store->ops->read_result(store, &call->in.read.id, call->in.read.to,
                                       call->in.read.bytes, failure);
    case DESK_LIST:
        return store->ops->list(store, call->in.list, call->jobs, &call->count, failure);
    case DESK_POSITION:
        return store->ops->position(store, &call->in.position, &call->position, failure);
    case DESK_TOTALS:
        return store->ops->totals(store, &call->totals, failure);
    default:
        assert(call->kind == DESK_GET);
        return store->ops->get(store, &call->in.get, call->job, failure);
    }
}

/* In a transaction that has begun. */
static enum error do_call(struct store *store, struct desk_call *call)
{
    struct failure *failure = &call->failure;
    *failure = (struct failure){.code = ERROR_NONE};
    switch (call->kind) {
    case DESK_PUT:
        return store->ops->put(store, call->in.put, call->job, failure);
    case DESK_CLAIM:
        return store->ops->claim(store, call->in.claim, call->job, failure);
    case DESK_END_LEASES:
        return store->ops->end_leases(store, &call->in.node, failure);
    case DESK_CANCEL:
        return store->ops->cancel(store, &call->in.cancel.id, call->in.cancel.now_ms, call->job,
                                  failure);
    case DESK_EXPIRE:
        call->count = call->in.expire.max;
        return store->ops->expire(store, call->in.expire.now_ms, call->in.expire.keep_ms,
                                  call->in.expire.gone, &call->count, &call->is_more, failure);
    case DESK_CLAIM_CALLBACK:
        return store->ops->claim_callback(store, call->in.claim_callback, call->job, call->callback,
                                          failure);
    case DESK_SETTLE_CALLBACK:
        return store->ops->settle_callback(store, call->in.settle_callback, failure);
    case DESK_RENEW:
    case DESK_FINISH:
    case DESK_RELEASE:
        return do_lease(store, call);
    default:
        return do_look(store, call);
    }
}

/* ---- One transaction ---- */

static void refuse_all(struct desk_call *first, const struct failure *failure)
{
    for (struct desk_call *call = first; call; call = call->next) {
        call->failure = *failure;
        call->failure.retry_after_s = RETRY_AFTER_S;
    }
}

/* Those who know of a call, then its owner, after whom it may be gone. Neighbours of one mailbox go
 * together. */
static void hand_back(struct desk_call *first)
{
    for (struct desk_call *call = first; call; call = call->next) {
        if (call->on_done)
            call->on_done(call->context, call);
    }
    while (first) {
        struct desk_call *last = first, *next = first->next;
        struct mailbox *mailbox = first->mailbox;
        while (mailbox && next && next->mailbox == mailbox) {
            last->message.next = &next->message;
            last = next;
            next = next->next;
        }
        if (mailbox)
            mailbox_post_chain(mailbox, &first->message, &last->message);
        else
            first->message.run(&first->message);
        first = next;
    }
}

/* All of them, or none: then the failure is the transaction's. */
static enum error transact(struct store *store, struct desk_call *first, struct failure *failure)
{
    enum error error = store->ops->begin(store, failure);
    if (error != ERROR_NONE)
        return error;
    for (struct desk_call *call = first; call; call = call->next) {
        error = do_call(store, call);
        if (error == ERROR_NONE)
            call->failure.code = ERROR_NONE; /* of a row that it has passed over */
        if (error != ERROR_STORE_FAILED)
            continue;
        *failure = call->failure;
        store->ops->rollback(store);
        return error;
    }
    error = store->ops->commit(store, failure);
    if (error != ERROR_NONE)
        store->ops->rollback(store);
    return error;
}

static void serve(struct desk *desk, struct desk_call *first, int count)
{
    struct failure failure;
    if (!desk->store) {
        failure_set(&failure, ERROR_STORE_FAILED,
                    "The disk that keeps the jobs has failed; it is tried again every few "
                    "seconds.");
        refuse_all(first, &failure);
        hand_back(first);
        return;
    }
    uint64_t start_ns = clock_now_ns();
    if (transact(desk->store, first, &failure) == ERROR_NONE) {
        metric_add(desk->transactions, 1);
        metric_observe(desk->calls, (uint64_t)count);
        metric_observe(desk->duration, clock_now_ns() - start_ns);
    } else {
        metric_add(desk->failures, 1);
        desk->store->ops->destroy(&desk->store);
        atomic_store(&desk->works, false);
        refuse_all(first, &failure);
    }
    hand_back(first);
}

static void reopen(struct desk *desk)
{
    struct failure failure;
    if (desk->opener.open(desk->opener.context, &desk->store, &failure) == ERROR_NONE)
        atomic_store(&desk->works, true);
    else
        desk->store = NULL;
}

/* ---- The thread ---- */

/* What waits, with its number; the lock is held. */
static struct desk_call *take(struct desk *desk, int *count)
{
    struct desk_call *first = desk->first, *last = first;
    *count = first ? 1 : 0;
    while (last && last->next && *count < CALLS_MAX) {
        last = last->next;
        (*count)++;
    }
    desk->first = last ? last->next : NULL;
    if (!desk->first)
        desk->last = &desk->first;
    if (last)
        last->next = NULL;
    return first;
}

/* Until a call waits, the desk stops, or a failed store is due: that returns NULL. */
static struct desk_call *wait_for_calls(struct desk *desk, uint64_t due_ns, int *count)
{
    const struct timespec due = {(time_t)(due_ns / CLOCK_S), (long)(due_ns % CLOCK_S)};
    int status = 0;
    pthread_mutex_lock(&desk->lock);
    while (!desk->first && !desk->stopping && status == 0)
        status = desk->store ? pthread_cond_wait(&desk->wanted, &desk->lock)
                             : pthread_cond_timedwait(&desk->wanted, &desk->lock, &due);
    struct desk_call *first = take(desk, count);
    pthread_mutex_unlock(&desk->lock);
    return first;
}

static bool is_stopping(struct desk *desk)
{
    pthread_mutex_lock(&desk->lock);
    bool stopping = desk->stopping;
    pthread_mutex_unlock(&desk->lock);
    return stopping;
}

static void *work(void *context)
{
    struct desk *desk = context;
    uint64_t due_ns = 0;
    for (;;) {
        int count;
        struct desk_call *first = wait_for_calls(desk, due_ns, &count);
        if (first) {
            bool worked = desk->store != NULL;
            serve(desk, first, count);
            if (worked && !desk->store)
                due_ns = clock_now_ns() + REOPEN_NS;
        } else if (is_stopping(desk)) {
            return NULL;
        }
        if (!desk->store && clock_now_ns() >= due_ns) {
            reopen(desk);
            due_ns = clock_now_ns() + REOPEN_NS;
        }
    }
}

/* Signals are main's. */
static int start_thread(struct desk *desk)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(&desk->thread, NULL, work, desk);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status != 0)
        return status;
    pthread_setname_np(desk->thread, "desk");
    desk->has_thread = true;
    return 0;
}

/* ---- The desk ---- */

static void init_lock(struct desk *desk)
{
    pthread_condattr_t attributes;
    int status = pthread_mutex_init(&desk->lock, NULL);
    status += pthread_condattr_init(&attributes);
    status += pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    status += pthread_cond_init(&desk->wanted, &attributes);
    status += pthread_condattr_destroy(&attributes);
    assert(status == 0);
}

enum error desk_create_driven(const struct desk_opener *opener, struct metric_registry *metrics,
                              struct desk **desk, struct failure *failure)
{
    *desk = NULL;
    struct desk *made = calloc(1, sizeof *made);
    if (!made)
        return failure_set(failure, ERROR_INTERNAL, "Out of memory for the store of jobs.");
    made->opener = *opener;
    made->last = &made->first;
    made->transactions = metric_series(metrics, METRIC_STORE_TRANSACTIONS);
    made->calls = metric_series(metrics, METRIC_STORE_CALLS);
    made->duration = metric_series(metrics, METRIC_STORE_DURATION);
    made->failures = metric_series(metrics, METRIC_STORE_FAILURES);
    enum error error = opener->open(opener->context, &made->store, failure);
    if (error != ERROR_NONE) {
        free(made);
        return error;
    }
    atomic_init(&made->works, true);
    init_lock(made);
    *desk = made;
    return ERROR_NONE;
}

enum error desk_create(const struct desk_opener *opener, struct metric_registry *metrics,
                       struct desk **desk, struct failure *failure)
{
    enum error error = desk_create_driven(opener, metrics, desk, failure);
    if (error != ERROR_NONE)
        return error;
    assert(*desk);
    int status = start_thread(*desk);
    if (status == 0)
        return ERROR_NONE;
    desk_destroy(desk);
    return failure_set(failure, ERROR_INTERNAL, "The thread of the store cannot start: %s.",
                       strerror(status));
}

int desk_run(struct desk *desk)
{
    assert(!desk->has_thread);
    if (!desk->store)
        reopen(desk);
    int count;
    pthread_mutex_lock(&desk->lock);
    struct desk_call *first = take(desk, &count);
    pthread_mutex_unlock(&desk->lock);
    if (first)
        serve(desk, first, count);
    return count;
}

void desk_destroy(struct desk **desk)
{
    struct desk *old = *desk;
    if (!old)
        return;
    *desk = NULL;
    pthread_mutex_lock(&old->lock);
    old->stopping = true;
    pthread_cond_signal(&old->wanted);
    pthread_mutex_unlock(&old->lock);
    if (old->has_thread)
        pthread_join(old->thread, NULL);
    old->has_thread = false;
    while (old->first)
        desk_run(old);
    if (old->store)
        old->store->ops->destroy(&old->store);
    pthread_cond_destroy(&old->wanted);
    pthread_mutex_destroy(&old->lock);
    free(old);
}

void desk_post(struct desk *desk, struct desk_call *call)
{
    assert((unsigned)call->kind < DESK_KINDS && call->message.run);
    call->next = NULL;
    pthread_mutex_lock(&desk->lock);
    bool was_empty = !desk->first;
    *desk->last = call;
    desk->last = &call->next;
    if (was_empty)
        pthread_cond_signal(&desk->wanted);
    pthread_mutex_unlock(&desk->lock);
}

bool desk_works(const struct desk *desk)
{
    return atomic_load(&desk->works);
}
