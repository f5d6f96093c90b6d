/* queue/jobs/watches.c: see watches.h. */
#include "queue/jobs/watches.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct jobs_watch {
    struct watches *watches;
    struct jobs_watch *next; /* in its bucket */
    struct job_id id;
    struct mailbox *mailbox;
    struct message *message;
    struct jobs_news news;
    bool is_posted; /* and not taken since */
};

static struct jobs_watch **bucket_of(struct watches *watches, const struct job_id *id)
{
    uint32_t number;
    memcpy(&number, id->bytes, sizeof number); /* random bits */
    return &watches->buckets[number % WATCHES_BUCKETS];
}

void watches_init(struct watches *watches)
{
    pthread_mutex_init(&watches->lock, NULL);
}

void watches_fini(struct watches *watches)
{
    assert(watches->count == 0);
    pthread_mutex_destroy(&watches->lock);
}

void watches_report(struct watches *watches, const struct job_id *id, enum job_state state,
                    int64_t progress)
{
    pthread_mutex_lock(&watches->lock);
    uint64_t serial = ++watches->serial;
    for (struct jobs_watch *watch = *bucket_of(watches, id); watch != NULL; watch = watch->next) {
        if (memcmp(&watch->id, id, sizeof *id) != 0)
            continue;
        watch->news.serial = serial;
        if (state != JOB_STATES)
            watch->news.state = state;
        if (progress >= 0)
            watch->news.progress = progress;
        if (!watch->is_posted) {
            watch->is_posted = true;
            mailbox_post(watch->mailbox, watch->message);
        }
    }
    pthread_mutex_unlock(&watches->lock);
}

struct jobs_watch *watches_add(struct watches *watches, const struct job_id *id,
                               struct mailbox *mailbox, struct message *message)
{
    struct jobs_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL)
        return NULL;
    *watch =
        (struct jobs_watch){.watches = watches, .id = *id, .mailbox = mailbox, .message = message};
    watch->news.state = JOB_STATES;
    pthread_mutex_lock(&watches->lock);
    struct jobs_watch **bucket = bucket_of(watches, id);
    watch->next = *bucket;
    *bucket = watch;
    watches->count++;
    pthread_mutex_unlock(&watches->lock);
    return watch;
}

struct jobs_news jobs_watch_take(struct jobs_watch *watch)
{
    pthread_mutex_lock(&watch->watches->lock);
    struct jobs_news news = watch->news;
    watch->is_posted = false;
    pthread_mutex_unlock(&watch->watches->lock);
    return news;
}

bool jobs_unwatch(struct jobs_watch **watch_pointer)
{
    struct jobs_watch *watch = *watch_pointer;
    struct watches *watches = watch->watches;
    pthread_mutex_lock(&watches->lock);
    struct jobs_watch **link = bucket_of(watches, &watch->id);
    while (*link != watch)
        link = &(*link)->next;
    *link = watch->next;
    watches->count--;
    bool is_posted = watch->is_posted;
    pthread_mutex_unlock(&watches->lock);
    free(watch);
    *watch_pointer = NULL;
    return !is_posted;
}
