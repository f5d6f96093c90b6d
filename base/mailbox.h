/* base/mailbox.h: how any thread asks an event loop to run something.
 *
 * A message is embedded in the sender's object. Posting makes no allocation. The owner of the
 * mailbox (an event loop) is woken through `wake` when the box was empty. It then calls mailbox_run
 * on its own thread, which runs the messages in the order of posting. A sender with several
 * messages for one owner chains them and posts them at once.
 *
 * Threads: mailbox_post from any; mailbox_run from the owner's thread alone. A post touches nothing
 * of the box once its message can run: an owner that has run the last message it waits for may free
 * the box.
 */
#ifndef BASE_MAILBOX_H
#define BASE_MAILBOX_H

#include <pthread.h>

struct message {
    struct message *next;              /* private to the mailbox, but for a chain to be posted */
    void (*run)(struct message *self); /* runs on the owner's thread; may free the message */
};

struct mailbox {
    pthread_mutex_t lock;
    struct message *first, **last;
    /* Any thread, with the lock held: must neither block nor post (uv_async_send, say). */
    void (*wake)(void *context);
    void *context;
    int number; /* of the owner, among those of its kind; 0 unless the owner sets it */
};

void mailbox_init(struct mailbox *box, void (*wake)(void *context), void *context);
void mailbox_fini(struct mailbox *box); /* must be empty */
void mailbox_post(struct mailbox *box, struct message *message);
/* The same for the messages from first to last, linked by next. */
void mailbox_post_chain(struct mailbox *box, struct message *first, struct message *last);
void mailbox_run(struct mailbox *box);

#endif
