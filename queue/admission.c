/* queue/admission.c: which requests are admitted. What they hold of the arena is reservation.c's.
 *
 * A request is counted before any memory is taken for it, and uncounted when it ends. The counts
 * have a lock of their own: event loops come here twice a request, and must not wait for a batch
 * that is being put together.
 *
 * Threads: any; one short mutex, which is spun on before it is slept on.
 * Cost: about 50 ns, and the cache misses of three lines that the loops share.
 */
#include "queue/queue_private.h"

#include <assert.h>
#include <stdlib.h>

void queue__admission_init(struct queue_admission *admission)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&admission->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void queue__admission_fini(struct queue_admission *admission)
{
    for (int i = 0; i < QUEUE_HASH_SIZE; i++)
        while (admission->clients[i] != NULL) {
            struct queue_client *client = admission->clients[i];
            admission->clients[i] = client->next;
            free(client);
        }
    pthread_mutex_destroy(&admission->lock);
}

/* ---- Clients ---- */

static struct queue_client **find_client(struct queue *queue, uint32_t number)
{
    struct queue_client **link = &queue->admission.clients[number % QUEUE_HASH_SIZE];
    while (*link != NULL && (*link)->client != number)
        link = &(*link)->next;
    return link;
}

/* An address's entry, made when it is new; NULL when out of memory. */
static struct queue_client *address_entry(struct queue *queue, uint32_t number)
{
    struct queue_client **link = find_client(queue, number);
    if (*link == NULL)
        *link = calloc(1, sizeof **link);
    if (*link != NULL)
        (*link)->client = number;
    return *link;
}

static enum error enter_client(struct queue *queue, struct queue_reservation *reservation,
                               struct failure *failure)
{
    int64_t max = queue->limits.client_requests_max;
    if (reservation->account != NULL && reservation->account->is_shared)
        reservation->account = NULL;
    struct queue_account *account = reservation->account;
    struct queue_client *client =
        account != NULL ? &account->client : address_entry(queue, reservation->client);
    if (client == NULL)
        return failure_set(failure, ERROR_FULL, "The service is out of memory; try again later.");
    if (account != NULL) {
        enum error error = queue__quota_enter(account, reservation, max, failure);
        if (error != ERROR_NONE)
            return error;
    } else if (max > 0 && client->count >= max) {
        return failure_set(failure, ERROR_CLIENT_QUOTA,
                           "This client has %lld requests under way, which is its limit; wait "
                           "for an answer before sending the next.",
                           (long long)max);
    }
    client->count++;
    reservation->client = client->client;
    reservation->entry = client;
    return ERROR_NONE;
}

static void leave_client(struct queue *queue, struct queue_reservation *reservation)
{
    struct queue_client *client = reservation->entry;
    assert(client != NULL && client->count > 0);
    reservation->entry = NULL;
    client->count--;
    if (reservation->account != NULL)
        queue__quota_leave(reservation->account, reservation);
    if (client->count > 0 || reservation->account != NULL)
        return;
    assert(client->bytes == 0 && client->staged_bytes == 0 && client->line.first == NULL);
    struct queue_client **link = find_client(queue, reservation->client);
    assert(*link == client);
    *link = client->next;
    free(client);
}

/* ---- Requests ---- */

static enum error enter(struct queue *queue, struct queue_reservation *reservation,
                        struct failure *failure)
{
    struct queue_admission *admission = &queue->admission;
    if (admission->draining)
        return failure_set(failure, ERROR_DRAINING,
                           "The service is shutting down; send the request to another instance.");
    int64_t under_way =
        admission->entered - atomic_load_explicit(&admission->computed, memory_order_relaxed);
    if (under_way >= queue->limits.requests_max)
        return failure_set(failure, ERROR_FULL,
                           "The service has %lld requests under way, which is its limit; try "
                           "again later.",
                           (long long)under_way);
    if (queue->classes[QUEUE_HOST].out && queue->classes[QUEUE_CUDA].out)
        return failure_set(failure, ERROR_NO_ENGINE,
                           "No computing engine is running at the moment; try again later.");
    enum error error = enter_client(queue, reservation, failure);
    if (error != ERROR_NONE)
        return error;
    admission->entered++;
    queue__reservation_open(queue, reservation);
    return ERROR_NONE;
}

void queue_set_limits(struct queue *queue, const struct queue_limits *limits)
{
    pthread_mutex_lock(&queue->admission.lock);
    queue->limits.requests_max = limits->requests_max;
    queue->limits.client_requests_max = limits->client_requests_max;
    queue->limits.client_bytes_max = limits->client_bytes_max;
    struct queue_reservation *served = queue__reservation_serve(queue);
    pthread_mutex_unlock(&queue->admission.lock);
    queue__reservation_report(served);
}

enum error queue_enter(struct queue *queue, struct queue_reservation *reservation,
                       struct failure *failure)
{
    assert(reservation->held_bytes == 0 && reservation->staged_bytes == 0);
    pthread_mutex_lock(&queue->admission.lock);
    enum error error = enter(queue, reservation, failure);
    pthread_mutex_unlock(&queue->admission.lock);
    return error;
}

void queue_leave(struct queue *queue, struct queue_reservation *reservation)
{
    pthread_mutex_lock(&queue->admission.lock);
    assert(queue->admission.entered > 0);
    queue__reservation_remove(queue, reservation, reservation->held_bytes);
    queue__reservation_remove_staging(queue, reservation);
    queue->admission.entered--;
    if (reservation->computed)
        atomic_fetch_sub_explicit(&queue->admission.computed, 1, memory_order_relaxed);
    reservation->computed = false;
    leave_client(queue, reservation);
    struct queue_reservation *served = queue__reservation_serve(queue);
    pthread_mutex_unlock(&queue->admission.lock);
    queue__reservation_report(served);
}

void queue_computed(struct queue *queue, int64_t requests)
{
    atomic_fetch_add_explicit(&queue->admission.computed, requests, memory_order_relaxed);
}

bool queue_take(struct queue *queue, struct queue_reservation *reservation)
{
    pthread_mutex_lock(&queue->admission.lock);
    bool taken = queue__reservation_take(queue, reservation);
    pthread_mutex_unlock(&queue->admission.lock);
    return taken;
}

bool queue_await_piece(struct queue *queue, struct queue_reservation *reservation)
{
    pthread_mutex_lock(&queue->admission.lock);
    bool changed = queue__reservation_await_piece(queue, reservation);
    pthread_mutex_unlock(&queue->admission.lock);
    return changed;
}

bool queue_take_staging(struct queue *queue, struct queue_reservation *reservation, int64_t bytes)
{
    pthread_mutex_lock(&queue->admission.lock);
    bool taken = queue__reservation_take_staging(queue, reservation, bytes);
    pthread_mutex_unlock(&queue->admission.lock);
    return taken;
}

void queue_leave_staging(struct queue *queue, struct queue_reservation *reservation)
{
    pthread_mutex_lock(&queue->admission.lock);
    queue__reservation_remove_staging(queue, reservation);
    struct queue_reservation *served = queue__reservation_serve(queue);
    pthread_mutex_unlock(&queue->admission.lock);
    queue__reservation_report(served);
}

bool queue_stop_waiting(struct queue *queue, struct queue_reservation *reservation)
{
    pthread_mutex_lock(&queue->admission.lock);
    bool waited = queue__reservation_stop_waiting(queue, reservation);
    struct queue_reservation *served = waited ? queue__reservation_serve(queue) : NULL;
    pthread_mutex_unlock(&queue->admission.lock);
    queue__reservation_report(served);
    return waited;
}

enum error queue_reserve(struct queue *queue, struct queue_reservation *reservation, int64_t bytes,
                         struct failure *failure)
{
    pthread_mutex_lock(&queue->admission.lock);
    enum error error = queue__reservation_add(queue, reservation, bytes, failure);
    pthread_mutex_unlock(&queue->admission.lock);
    return error;
}

void queue_unreserve(struct queue *queue, struct queue_reservation *reservation, int64_t bytes)
{
    pthread_mutex_lock(&queue->admission.lock);
    queue__reservation_remove(queue, reservation, bytes);
    struct queue_reservation *served = queue__reservation_serve(queue);
    pthread_mutex_unlock(&queue->admission.lock);
    queue__reservation_report(served);
}

const _Atomic uint64_t *queue_short_since_ns(const struct queue *queue)
{
    return &queue->admission.short_since_ns;
}

int64_t queue_waiting_for_room(struct queue *queue)
{
    pthread_mutex_lock(&queue->admission.lock);
    int64_t waiting = queue->admission.waiting;
    pthread_mutex_unlock(&queue->admission.lock);
    return waiting;
}

void queue_drain(struct queue *queue)
{
    pthread_mutex_lock(&queue->admission.lock);
    queue->admission.draining = true;
    pthread_mutex_unlock(&queue->admission.lock);
}

int64_t queue_pending(struct queue *queue)
{
    pthread_mutex_lock(&queue->admission.lock);
    int64_t pending = queue->admission.entered;
    pthread_mutex_unlock(&queue->admission.lock);
    return pending;
}
