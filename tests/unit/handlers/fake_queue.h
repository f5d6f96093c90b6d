/* tests/unit/handlers/fake_queue.h: a queue of the test's own. Included once by each program.
 *
 * It keeps what is submitted until the test takes it, and counts requests and their bytes, all of
 * client 5.
 */
#ifndef TESTS_UNIT_HANDLERS_FAKE_QUEUE_H
#define TESTS_UNIT_HANDLERS_FAKE_QUEUE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "queue/queue.h"

#define FAKE_ITEMS 8

struct queue {
    enum error enter_error; /* what queue_enter says */
    int64_t entered, left;
    int64_t bytes_max;              /* what requests may reserve together; 0: anything */
    _Atomic int64_t reserved_bytes; /* the pool's threads reserve too */
    struct queue_item *items[FAKE_ITEMS];
    int count, cancels;
    bool cancel_at_once; /* queue_cancel calls on_done before it returns */
    struct queue_observer observer;
};

enum error queue_reserve(struct queue *queue, uint32_t client, int64_t bytes,
                         struct failure *failure)
{
    assert_int_equal(client, 5);
    if (queue->bytes_max > 0 && atomic_load(&queue->reserved_bytes) + bytes > queue->bytes_max)
        return failure_set(failure, ERROR_CLIENT_QUOTA, "no more bytes");
    atomic_fetch_add(&queue->reserved_bytes, bytes);
    return ERROR_NONE;
}

void queue_unreserve(struct queue *queue, uint32_t client, int64_t bytes)
{
    assert_int_equal(client, 5);
    assert_true(atomic_fetch_sub(&queue->reserved_bytes, bytes) >= bytes);
}

enum error queue_enter(struct queue *queue, uint32_t client, int64_t bytes, struct failure *failure)
{
    if (queue->enter_error != ERROR_NONE)
        return failure_set(failure, queue->enter_error, "no entry");
    enum error error = queue_reserve(queue, client, bytes, failure);
    queue->entered += error == ERROR_NONE;
    return error;
}

void queue_leave(struct queue *queue, uint32_t client, int64_t bytes)
{
    queue_unreserve(queue, client, bytes);
    queue->left++;
    assert_true(queue->left < queue->entered || atomic_load(&queue->reserved_bytes) == 0);
    assert_true(queue->left <= queue->entered);
}

void queue_submit(struct queue *queue, struct queue_item *item)
{
    assert_true(queue->count < FAKE_ITEMS);
    item->queued_ns = clock_now_ns();
    queue->items[queue->count++] = item;
}

static struct queue_item *fake_take_item(struct queue *queue)
{
    assert_true(queue->count > 0);
    struct queue_item *item = queue->items[0];
    queue->count--;
    memmove(queue->items, queue->items + 1, (size_t)queue->count * sizeof queue->items[0]);
    return item;
}

void queue_cancel(struct queue *queue, struct queue_item *item)
{
    queue->cancels++;
    if (!queue->cancel_at_once)
        return;
    assert_ptr_equal(fake_take_item(queue), item);
    item->status = ERROR_CANCELLED;
    item->on_done(item);
}

int queue_retry_after_s(struct queue *queue)
{
    (void)queue;
    return 7;
}

void queue_observe(struct queue *queue, struct queue_observer observer)
{
    queue->observer = observer;
}

int64_t queue_pending(struct queue *queue)
{
    return queue->entered - queue->left;
}

void queue_show_running(struct queue *queue)
{
    (void)queue;
}

#endif
