/* queue/admission.c: which requests are admitted, and what they hold.
 *
 * A request is counted, with the bytes of the arena that it is going to hold, before any memory is
 * taken for it, and uncounted when it ends. The counts have a lock of their own: event loops come
 * here twice a request, and must not wait for a batch that is being put together.
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

static bool counts_clients(const struct queue *queue)
{
    return queue->limits.client_requests_max > 0 || queue->limits.client_bytes_max > 0;
}

static enum error enter_client(struct queue *queue, uint32_t number, struct failure *failure)
{
    int64_t max = queue->limits.client_requests_max;
    if (!counts_clients(queue))
        return ERROR_NONE;
    struct queue_client **link = find_client(queue, number);
    if (*link == NULL)
        *link = calloc(1, sizeof **link);
    struct queue_client *client = *link;
    if (client == NULL)
        return failure_set(failure, ERROR_FULL, "The service is out of memory; try again later.");
    client->client = number;
    if (max > 0 && client->count >= max)
        return failure_set(failure, ERROR_CLIENT_QUOTA,
                           "This client has %lld requests under way, which is its limit; wait "
                           "for an answer before sending the next.",
                           (long long)max);
    client->count++;
    return ERROR_NONE;
}

static void leave_client(struct queue *queue, uint32_t number)
{
    if (!counts_clients(queue))
        return;
    struct queue_client **link = find_client(queue, number), *client = *link;
    assert(client != NULL && client->count > 0);
    if (--client->count == 0) {
        assert(client->bytes == 0);
        *link = client->next;
        free(client);
    }
}

/* ---- Bytes ---- */

/* The only request, of all or of a client's, is never refused: what is possible at all is possible
 * for everyone. */
static enum error reserve(struct queue *queue, uint32_t number, int64_t bytes,
                          struct failure *failure)
{
    struct queue_admission *admission = &queue->admission;
    int64_t max = queue->limits.bytes_max, client_max = queue->limits.client_bytes_max;
    assert(bytes >= 0);
    if (max > 0 && admission->entered > 1 && bytes > max - admission->reserved_bytes)
        return failure_set(failure, ERROR_FULL,
                           "The service's memory is taken by other requests; try again later.");
    if (counts_clients(queue)) {
        struct queue_client *client = *find_client(queue, number);
        assert(client != NULL);
        if (client_max > 0 && client->count > 1 && bytes > client_max - client->bytes)
            return failure_set(failure, ERROR_CLIENT_QUOTA,
                               "This client's requests hold %lld bytes of the service's memory, "
                               "and may hold %lld; wait for an answer before sending the next.",
                               (long long)client->bytes, (long long)client_max);
        client->bytes += bytes;
    }
    admission->reserved_bytes += bytes;
    return ERROR_NONE;
}

static void unreserve(struct queue *queue, uint32_t number, int64_t bytes)
{
    assert(bytes >= 0 && queue->admission.reserved_bytes >= bytes);
    queue->admission.reserved_bytes -= bytes;
    if (counts_clients(queue)) {
        struct queue_client *client = *find_client(queue, number);
        assert(client != NULL && client->bytes >= bytes);
        client->bytes -= bytes;
    }
}

enum error queue_reserve(struct queue *queue, uint32_t client, int64_t bytes,
                         struct failure *failure)
{
    pthread_mutex_lock(&queue->admission.lock);
    enum error error = reserve(queue, client, bytes, failure);
    pthread_mutex_unlock(&queue->admission.lock);
    return error;
}

void queue_unreserve(struct queue *queue, uint32_t client, int64_t bytes)
{
    pthread_mutex_lock(&queue->admission.lock);
    unreserve(queue, client, bytes);
    pthread_mutex_unlock(&queue->admission.lock);
}

/* ---- Requests ---- */

static enum error enter(struct queue *queue, uint32_t client, int64_t bytes,
                        struct failure *failure)
{
    struct queue_admission *admission = &queue->admission;
    if (admission->draining)
        return failure_set(failure, ERROR_DRAINING,
                           "The service is shutting down; send the request to another instance.");
    if (admission->entered >= queue->limits.requests_max)
        return failure_set(failure, ERROR_FULL,
                           "The service has %lld requests under way, which is its limit; try "
                           "again later.",
                           (long long)admission->entered);
    if (queue->classes[QUEUE_HOST].out && queue->classes[QUEUE_CUDA].out)
        return failure_set(failure, ERROR_NO_ENGINE,
                           "No computing engine is running at the moment; try again later.");
    enum error error = enter_client(queue, client, failure);
    if (error != ERROR_NONE)
        return error;
    admission->entered++;
    if (bytes > 0)
        error = reserve(queue, client, bytes, failure);
    if (error != ERROR_NONE) {
        admission->entered--;
        leave_client(queue, client);
    }
    return error;
}

enum error queue_enter(struct queue *queue, uint32_t client, int64_t bytes, struct failure *failure)
{
    pthread_mutex_lock(&queue->admission.lock);
    enum error error = enter(queue, client, bytes, failure);
    pthread_mutex_unlock(&queue->admission.lock);
    return error;
}

void queue_leave(struct queue *queue, uint32_t client, int64_t bytes)
{
    pthread_mutex_lock(&queue->admission.lock);
    assert(queue->admission.entered > 0);
    unreserve(queue, client, bytes);
    queue->admission.entered--;
    leave_client(queue, client);
    pthread_mutex_unlock(&queue->admission.lock);
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
