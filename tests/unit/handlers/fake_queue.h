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
#include "queue/account.h"
#include "queue/queue.h"

#define FAKE_ITEMS 8

/* What has been counted for a client. */
struct queue_account {
    int answers, status;
    int64_t in_bytes, out_bytes, matrices;
};

struct queue {
    enum error enter_error;          /* what queue_enter says */
    int64_t entered, left, computed; /* computed: and not left */
    int64_t bytes_max;               /* what requests may reserve together; 0: anything */
    _Atomic int64_t reserved_bytes;  /* the pool's threads reserve too */
    bool is_short;                   /* every reservation has to wait */
    struct queue_reservation *waiting;
    int64_t staged_bytes;
    struct queue_item *items[FAKE_ITEMS];
    int count, cancels;
    bool cancel_at_once; /* queue_cancel calls on_done before it returns */
    struct queue_observer observer;
    int retry_after_s;                    /* of enter_error's failure */
    const struct queue_account_use *uses; /* [use_count]: of all accounts */
    int use_count, shows;
    const char *certified; /* whom an account was asked for */
    struct queue_account account;
};

/* Whether so many bytes more are within the bound; then they are counted. */
static bool fake_count(struct queue *queue, struct queue_reservation *reservation, int64_t bytes)
{
    if (queue->bytes_max > 0 && atomic_load(&queue->reserved_bytes) + bytes > queue->bytes_max)
        return false;
    atomic_fetch_add(&queue->reserved_bytes, bytes);
    reservation->held_bytes += bytes;
    return true;
}

enum error queue_reserve(struct queue *queue, struct queue_reservation *reservation, int64_t bytes,
                         struct failure *failure)
{
    assert_int_equal(reservation->client, 5);
    if (!fake_count(queue, reservation, bytes))
        return failure_set(failure, ERROR_FULL, "no more bytes");
    return ERROR_NONE;
}

void queue_unreserve(struct queue *queue, struct queue_reservation *reservation, int64_t bytes)
{
    assert_true(reservation->held_bytes >= bytes);
    reservation->held_bytes -= bytes;
    assert_true(atomic_fetch_sub(&queue->reserved_bytes, bytes) >= bytes);
}

static bool fake_wait(struct queue *queue, struct queue_reservation *reservation,
                      enum queue_waits what)
{
    assert_null(queue->waiting);
    queue->waiting = reservation;
    reservation->waits = what;
    return false;
}

bool queue_take(struct queue *queue, struct queue_reservation *reservation)
{
    if (!queue->is_short &&
        fake_count(queue, reservation, reservation->need_bytes - reservation->held_bytes))
        return true;
    return fake_wait(queue, reservation, QUEUE_WAITS_WHOLE);
}

bool queue_await_piece(struct queue *queue, struct queue_reservation *reservation)
{
    return fake_wait(queue, reservation, QUEUE_WAITS_PIECE);
}

bool queue_take_staging(struct queue *queue, struct queue_reservation *reservation, int64_t bytes)
{
    reservation->staging_wanted_bytes = bytes;
    if (queue->is_short)
        return fake_wait(queue, reservation, QUEUE_WAITS_STAGING);
    reservation->staged_bytes += bytes;
    queue->staged_bytes += bytes;
    return true;
}

void queue_leave_staging(struct queue *queue, struct queue_reservation *reservation)
{
    queue->staged_bytes -= reservation->staged_bytes;
    reservation->staged_bytes = 0;
}

bool queue_stop_waiting(struct queue *queue, struct queue_reservation *reservation)
{
    bool waited = queue->waiting == reservation;
    if (waited)
        queue->waiting = NULL;
    return waited;
}

/* Gives the reservation that waits what it waits for. */
static inline void fake_give_room(struct queue *queue)
{
    struct queue_reservation *reservation = queue->waiting;
    assert_non_null(reservation);
    queue->waiting = NULL;
    if (reservation->waits == QUEUE_WAITS_WHOLE)
        assert_true(
            fake_count(queue, reservation, reservation->need_bytes - reservation->held_bytes));
    if (reservation->waits == QUEUE_WAITS_STAGING) {
        reservation->staged_bytes += reservation->staging_wanted_bytes;
        queue->staged_bytes += reservation->staging_wanted_bytes;
    }
    reservation->waits = QUEUE_WAITS_NOT;
    reservation->on_room(reservation);
}

enum error queue_enter(struct queue *queue, struct queue_reservation *reservation,
                       struct failure *failure)
{
    assert_int_equal(reservation->client, 5);
    assert_true(reservation->sure_bytes <= reservation->need_bytes);
    assert_true(reservation->account == NULL || reservation->arrived_ns != 0);
    if (queue->enter_error != ERROR_NONE) {
        failure_set(failure, queue->enter_error, "no entry");
        failure->retry_after_s = queue->retry_after_s;
        return queue->enter_error;
    }
    if (!queue->is_short && reservation->need_bytes <= QUEUE_RESERVATION_SMALL)
        (void)fake_count(queue, reservation, reservation->need_bytes);
    queue->entered++;
    return ERROR_NONE;
}

void queue_leave(struct queue *queue, struct queue_reservation *reservation)
{
    assert_ptr_not_equal(queue->waiting, reservation);
    queue_leave_staging(queue, reservation);
    queue_unreserve(queue, reservation, reservation->held_bytes);
    queue->left++;
    queue->computed -= reservation->computed;
    reservation->computed = false;
    assert_true(queue->computed >= 0);
    assert_true(queue->left < queue->entered || queue->computed == 0);
    assert_true(queue->left < queue->entered || atomic_load(&queue->reserved_bytes) == 0);
    assert_true(queue->left <= queue->entered);
}

void queue_computed(struct queue *queue, int64_t requests)
{
    queue->computed += requests;
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

int64_t queue_waiting_for_room(struct queue *queue)
{
    return queue->waiting != NULL;
}

int64_t queue_pending(struct queue *queue)
{
    return queue->entered - queue->left;
}

void queue_show_running(struct queue *queue)
{
    (void)queue;
}

struct queue_account *queue_account_by_certificate(struct queue *queue, const char *name)
{
    queue->certified = name;
    return &queue->account;
}

void queue_account_answered(struct queue_account *account, int status, int64_t in_bytes,
                            int64_t out_bytes)
{
    account->answers++;
    account->status = status;
    account->in_bytes += in_bytes;
    account->out_bytes += out_bytes;
}

void queue_account_inverted(struct queue_account *account, int64_t matrices)
{
    account->matrices += matrices;
}

void queue_accounts_each(struct queue *queue,
                         void (*each)(void *context, const struct queue_account_use *use),
                         void *context)
{
    for (int i = 0; i < queue->use_count; i++)
        each(context, &queue->uses[i]);
}

void queue_accounts_show(struct queue *queue)
{
    queue->shows++;
}

#endif
