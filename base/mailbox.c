/* mailbox.c: a list of letters under a mutex. The lock is held for a few instructions and
 * for wake, which does not block; open is called outside it.
 */
#include "base/mailbox.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

void mailbox_init(struct mailbox *box, void (*wake)(void *context), void *context)
{
    assert(wake != NULL);
    int status = pthread_mutex_init(&box->lock, NULL);
    assert(status == 0);
    box->first = NULL;
    box->last = &box->first;
    box->wake = wake;
    box->context = context;
    box->number = 0;
}

void mailbox_fini(struct mailbox *box)
{
    assert(box->first == NULL);
    pthread_mutex_destroy(&box->lock);
}

void mailbox_post(struct mailbox *box, struct letter *letter)
{
    mailbox_post_chain(box, letter, letter);
}

void mailbox_post_chain(struct mailbox *box, struct letter *first, struct letter *last)
{
    assert(first->open != NULL && last->open != NULL);
    last->next = NULL;
    pthread_mutex_lock(&box->lock);
    bool was_empty = box->first == NULL;
    *box->last = first;
    box->last = &last->next;
    /* A box that was not empty has been woken already and not yet run. Once the lock is open, the
     * owner may open these letters as its last and give the box up: nothing of it is touched then.
     */
    if (was_empty)
        box->wake(box->context);
    pthread_mutex_unlock(&box->lock);
}

void mailbox_run(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    struct letter *letter = box->first;
    box->first = NULL;
    box->last = &box->first;
    pthread_mutex_unlock(&box->lock);
    while (letter != NULL) {
        struct letter *next = letter->next; /* open may free the letter or post it again */
        letter->open(letter);
        letter = next;
    }
}
