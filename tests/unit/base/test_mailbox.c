/* tests/unit/base/test_mailbox.c: order, wake-ups, messages that post or free themselves, many
 * posters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "base/mailbox.h"

#define POSTERS 4
#define MESSAGES 5000 /* of one poster */

struct numbered {
    struct message message; /* first */
    int number;
    struct mailbox *again; /* to be posted to from run; NULL: not at all */
};

static int opened[8];
static int opened_count;

static void run_numbered(struct message *self)
{
    struct numbered *numbered = (struct numbered *)self;
    opened[opened_count++] = numbered->number;
    struct mailbox *again = numbered->again;
    numbered->again = NULL;
    if (again != NULL)
        mailbox_post(again, self);
}

static void count_wake(void *context)
{
    ++*(int *)context;
}

static void expect_locked(void *context)
{
    struct mailbox *box = context;
    assert_int_not_equal(pthread_mutex_trylock(&box->lock), 0);
}

/* The owner cannot run the message, and free the box, before the post is done with the box. */
static void test_wake_under_lock(void **state)
{
    (void)state;
    struct mailbox box;
    struct numbered numbered = {{.run = run_numbered}, 0, NULL};
    mailbox_init(&box, expect_locked, &box);
    opened_count = 0;
    mailbox_post(&box, &numbered.message);
    mailbox_run(&box);
    assert_int_equal(opened_count, 1);
    mailbox_fini(&box);
}

static void test_order(void **state)
{
    (void)state;
    int wakes = 0;
    struct mailbox box;
    mailbox_init(&box, count_wake, &wakes);
    opened_count = 0;
    mailbox_run(&box);
    assert_int_equal(opened_count, 0);

    struct numbered messages[3];
    for (int i = 0; i < 3; i++) {
        messages[i] = (struct numbered){{.run = run_numbered}, i, NULL};
        mailbox_post(&box, &messages[i].message);
    }
    assert_int_equal(wakes, 1); /* the first post alone found the box empty */
    assert_int_equal(opened_count, 0);
    mailbox_run(&box);
    assert_int_equal(opened_count, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(opened[i], i);

    mailbox_post(&box, &messages[1].message);
    assert_int_equal(wakes, 2);
    mailbox_run(&box);
    assert_int_equal(opened_count, 4);
    mailbox_fini(&box);
}

static void test_chain(void **state)
{
    (void)state;
    int wakes = 0;
    struct mailbox box;
    mailbox_init(&box, count_wake, &wakes);
    opened_count = 0;
    struct numbered messages[5];
    for (int i = 0; i < 5; i++) {
        messages[i] = (struct numbered){{.run = run_numbered}, i, NULL};
        messages[i].message.next = &messages[(i + 1) % 5].message;
    }
    mailbox_post(&box, &messages[0].message);
    mailbox_post_chain(&box, &messages[1].message, &messages[3].message);
    mailbox_post_chain(&box, &messages[4].message, &messages[4].message);
    assert_int_equal(wakes, 1);
    mailbox_run(&box);
    assert_int_equal(opened_count, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(opened[i], i);
    mailbox_fini(&box);
}

/* A message posted while the box is run is kept for the next run, and wakes the owner. */
static void test_post_from_open(void **state)
{
    (void)state;
    int wakes = 0;
    struct mailbox box;
    mailbox_init(&box, count_wake, &wakes);
    opened_count = 0;
    struct numbered first = {{.run = run_numbered}, 1, &box};
    struct numbered second = {{.run = run_numbered}, 2, NULL};
    mailbox_post(&box, &first.message);
    mailbox_post(&box, &second.message);
    mailbox_run(&box);
    assert_int_equal(opened_count, 2);
    assert_int_equal(wakes, 2);
    mailbox_run(&box);
    assert_int_equal(opened_count, 3);
    assert_int_equal(opened[2], 1);
    mailbox_fini(&box);
}

/* ---- Many posters, one owner ---- */

struct post_office {
    struct mailbox box;
    sem_t woken;
    int last[POSTERS]; /* the number of each poster's last message */
    int received, disordered;
};

struct parcel {
    struct message message; /* first */
    struct post_office *office;
    int poster, number;
};

static void run_parcel(struct message *self)
{
    struct parcel *parcel = (struct parcel *)self;
    struct post_office *office = parcel->office;
    office->disordered += parcel->number != office->last[parcel->poster] + 1;
    office->last[parcel->poster] = parcel->number;
    office->received++;
    free(parcel);
}

static void wake_office(void *context)
{
    struct post_office *office = context;
    sem_post(&office->woken);
}

struct poster {
    struct post_office *office;
    int number;
};

static void *post_all(void *context)
{
    struct poster *poster = context;
    for (int i = 1; i <= MESSAGES; i++) {
        struct parcel *parcel = calloc(1, sizeof *parcel);
        if (parcel == NULL)
            abort();
        parcel->message.run = run_parcel;
        parcel->office = poster->office;
        parcel->poster = poster->number;
        parcel->number = i;
        mailbox_post(&poster->office->box, &parcel->message);
    }
    return NULL;
}

/* The owner sleeps until it is woken, as an event loop does: a lost wake-up would hang the test. */
static void test_threads(void **state)
{
    (void)state;
    struct post_office office = {0};
    sem_init(&office.woken, 0, 0);
    mailbox_init(&office.box, wake_office, &office);
    struct poster posters[POSTERS];
    pthread_t threads[POSTERS];
    for (int i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){&office, i};
        assert_int_equal(pthread_create(&threads[i], NULL, post_all, &posters[i]), 0);
    }
    while (office.received < POSTERS * MESSAGES) {
        while (sem_wait(&office.woken) != 0)
            continue;
        mailbox_run(&office.box);
    }
    for (int i = 0; i < POSTERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(office.last[i], MESSAGES);
    }
    assert_int_equal(office.disordered, 0);
    mailbox_fini(&office.box);
    sem_destroy(&office.woken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),           cmocka_unit_test(test_chain),
        cmocka_unit_test(test_wake_under_lock), cmocka_unit_test(test_post_from_open),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
