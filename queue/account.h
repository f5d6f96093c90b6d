/* queue/account.h: clients that have a name, by their token or their certificate: what they may use
 * and what they have used.
 *
 * An account is made once for a name, and stays as long as the queue, so that a file that is read
 * anew changes its limits and keeps its counts. A client with an account is one client wherever its
 * connections come from: turns, shares and quotas go by the account. Without one a client is its
 * address, and has no quotas.
 *
 * The quotas, where they are not 0:
 * - requests: so many may be under way. It stands in the place of client_requests_max.
 * - rate: a leaky bucket, which takes one second's worth at once.
 * - bytes: what its requests under way may need of the arena, by their heads and sizes; a request
 *   that needs more alone is TOO_LARGE.
 * - device_ns: a leaky bucket of a device's time, which is charged after each batch with the
 *   client's part of it, by matrices. While there is more in it than one second's worth, no request
 *   is let in. So a client may overdraw by what it has under way, and pays that back by waiting.
 *
 * Names are labels of metrics, of which the first QUEUE_ACCOUNTS_SHOWN are shown by themselves, the
 * others together as "other".
 *
 * Threads: any. queue_account_by_token and _by_certificate take two locks, one after the other, and
 * memory; counting takes neither.
 */
#ifndef QUEUE_ACCOUNT_H
#define QUEUE_ACCOUNT_H

#include <stdint.h>

#include "base/client.h"
#include "base/error.h"

#define QUEUE_ACCOUNTS_SHOWN 256

struct queue;
struct queue_account;

/* Makes the account of a name, or gives the one that there is new limits. Lent for the queue's
 * life. NULL when out of memory. */
struct queue_account *queue_account_by_token(struct queue *queue, const char *name,
                                             const struct client_limits *limits);
/* The same without limits, for names that a CA gives out: past 4096 names, and where there is no
 * memory for a new one, an account that all the others share, whose clients are known by their
 * addresses. NULL: there is no memory for that either. */
struct queue_account *queue_account_by_certificate(struct queue *queue, const char *name);

/* A request was answered, with so many body bytes in and out. */
void queue_account_answered(struct queue_account *account, int status, int64_t in_bytes,
                            int64_t out_bytes);
/* So many matrices were. */
void queue_account_inverted(struct queue_account *account, int64_t matrices);

/* What an account uses of its quotas, in the units of client_limits. */
struct queue_account_use {
    const char *name;            /* lent for the queue's life */
    struct client_limits limits; /* 0: none */
    int64_t requests;            /* under way */
    int64_t rate;                /* let in within the last second, as the bucket has it */
    int64_t bytes;               /* that requests under way need */
    int64_t device_ns;           /* in the bucket: above one second's worth it is overdrawn */
};

/* For each account, oldest first; outside of locks. */
void queue_accounts_each(struct queue *queue,
                         void (*each)(void *context, const struct queue_account_use *use),
                         void *context);
/* Brings the gauges of use and limit up to date: before they are shown. */
void queue_accounts_show(struct queue *queue);

#endif
