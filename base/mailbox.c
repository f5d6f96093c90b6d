/* base/mailbox.c: a list of messages under a mutex. The lock is held for a few instructions and
 * for wake, which does not block; messages run outside it.
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

void mailbox_post(struct mailbox *box, struct message *message)
{
    mailbox_post_chain(box, message, message);
}

void mailbox_post_chain(struct mailbox *box, struct message *first, struct message *last)
{
    assert(first->run != NULL && last->run != NULL);
    last->next = NULL;
    pthread_mutex_lock(&box->lock);
    bool was_empty = box->first == NULL;
    *box->last = first;
    box->last = &last->next;
    /* A box that was not empty has been woken already and not yet run. Once the lock is
     * released, the owner may run these messages as its last and free the box: nothing of it is
     * touched then.
     */
    if (was_empty)
        box->wake(box->context);
    pthread_mutex_unlock(&box->lock);
}

void mailbox_run(struct mailbox *box)
{
    pthread_mutex_lock(&box->lock);
    struct message *message = box->first;
    box->first = NULL;
    box->last = &box->first;
    pthread_mutex_unlock(&box->lock);
    while (message != NULL) {
        struct message *next = message->next; /* run may free the message or post it again */
        message->run(message);
        message = next;
    }
}
