/* mailbox.h: how any thread asks an event loop to run something.
 *
 * A letter is embedded in the sender's object. Posting makes no allocation. The owner of the
 * mailbox (an event loop) is woken through `wake` when the box was empty, and then runs
 * mailbox_run on its own thread, which calls each letter's `open` in the order of posting. Who has
 * several letters for one owner chains them and posts them at once.
 *
 * Threads: mailbox_post from any; mailbox_run from the owner's thread alone. A post
 * touches nothing of the box once its letter can be opened: an owner that has opened the last
 * letter it waits for may give the box up.
 */
#ifndef BASE_MAILBOX_H
#define BASE_MAILBOX_H

#include <pthread.h>

struct letter {
    struct letter *next;               /* private to the mailbox, but for a chain to be posted */
    void (*open)(struct letter *self); /* runs on the owner's thread; may free the letter */
};

struct mailbox {
    pthread_mutex_t lock;
    struct letter *first, **last;
    /* Any thread, with the lock held: must neither block nor post (uv_async_send, say). */
    void (*wake)(void *context);
    void *context;
    int number; /* of the owner, among those of its kind; 0 unless the owner sets it */
};

void mailbox_init(struct mailbox *box, void (*wake)(void *context), void *context);
void mailbox_fini(struct mailbox *box); /* must be empty */
void mailbox_post(struct mailbox *box, struct letter *letter);
/* The same for the letters from first to last, linked by next. */
void mailbox_post_chain(struct mailbox *box, struct letter *first, struct letter *last);
void mailbox_run(struct mailbox *box);

#endif
