/* queue/account.c: accounts by name, their counts, and what is shown of them. See account.h.
 *
 * Accounts are linked once and stay, so that they are walked without a lock. There are few new ones
 * after the start: a name is looked for one by one. The lock under which they are made is held
 * while the registry of metrics takes its own.
 *
 * Threads: see account.h. queue__accounts_charge runs under the queue's lock and takes no other.
 * Cost: a lookup compares with every name; to count is an atomic or two.
 */
#include "queue/account.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "queue/queue_private.h"

#define CERTIFIED_MAX 4096 /* accounts at which no more are made for certificates */

static const char *const quota_names[QUEUE_QUOTAS] = {
#define QUEUE_QUOTA_NAME(id, label, help) [QUEUE_QUOTA_##id] = (label),
    QUEUE_QUOTA_TABLE(QUEUE_QUOTA_NAME)
#undef QUEUE_QUOTA_NAME
};

void queue__accounts_init(struct queue_accounts *accounts)
{
    pthread_mutex_init(&accounts->lock, NULL);
}

void queue__accounts_fini(struct queue_accounts *accounts)
{
    struct queue_account *account = atomic_load(&accounts->first);
    while (account != NULL) {
        struct queue_account *next = atomic_load(&account->next);
        assert(account->client.count == 0 && account->claimed_bytes == 0);
        free(account);
        account = next;
    }
    free(accounts->shared);
    pthread_mutex_destroy(&accounts->lock);
}

/* ---- Accounts ---- */

/* FNV-1a. Two names may share a number by chance, and then take turns as one. */
static uint32_t number_of(const char *name)
{
    uint32_t hash = UINT32_C(0x811c9dc5);
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * UINT32_C(0x01000193);
    return hash;
}

static void make_series(struct metric_registry *metrics, const char *label, bool has_quotas,
                        struct queue_account_series *series)
{
    static const char *const codes[] = {NULL, NULL, "2xx", "3xx", "4xx", "5xx"};
    for (int i = 2; i < 6; i++)
        series->answers[i] = metric_series(metrics, METRIC_CLIENT_REQUESTS, label, codes[i]);
    series->inversions = metric_series(metrics, METRIC_CLIENT_INVERSIONS, label);
    series->device = metric_series(metrics, METRIC_CLIENT_DEVICE, label);
    series->bytes_in = metric_series(metrics, METRIC_CLIENT_BYTES, label, "in");
    series->bytes_out = metric_series(metrics, METRIC_CLIENT_BYTES, label, "out");
    for (int i = 0; i < QUEUE_QUOTAS && has_quotas; i++) {
        series->used[i] = metric_series(metrics, METRIC_CLIENT_USED, label, quota_names[i]);
        series->limit[i] = metric_series(metrics, METRIC_CLIENT_QUOTA, label, quota_names[i]);
    }
}

/* One that is not linked yet. */
static struct queue_account *make_account(struct queue *queue, const char *name, bool is_shared)
{
    struct queue_account *account = calloc(1, sizeof *account);
    if (account == NULL)
        return NULL;
    assert(strlen(name) < sizeof account->name);
    memcpy(account->name, name, strlen(name) + 1);
    account->is_shared = is_shared;
    account->client.client = number_of(name);
    bool shown = !is_shared && queue->accounts.count < QUEUE_ACCOUNTS_SHOWN;
    make_series(queue->metrics, shown ? name : "other", shown, &account->series);
    return account;
}

static void link_account(struct queue_accounts *accounts, struct queue_account *account)
{
    if (accounts->last == NULL)
        atomic_store_explicit(&accounts->first, account, memory_order_release);
    else
        atomic_store_explicit(&accounts->last->next, account, memory_order_release);
    accounts->last = account;
    accounts->count++;
}

static struct queue_account *find_account(const struct queue_accounts *accounts, const char *name)
{
    struct queue_account *account = atomic_load_explicit(&accounts->first, memory_order_acquire);
    while (account != NULL && strcmp(account->name, name) != 0)
        account = atomic_load_explicit(&account->next, memory_order_acquire);
    return account;
}

/* What all share that find no room. */
static struct queue_account *shared_account(struct queue *queue)
{
    struct queue_accounts *accounts = &queue->accounts;
    if (accounts->shared == NULL)
        accounts->shared = make_account(queue, "other", true);
    return accounts->shared;
}

/* The account of a name, made when there is none and fewer than max. */
static struct queue_account *open_account(struct queue *queue, const char *name, int max)
{
    struct queue_accounts *accounts = &queue->accounts;
    struct queue_account *account = find_account(accounts, name);
    if (account != NULL || accounts->count >= max)
        return account;
    account = make_account(queue, name, false);
    if (account != NULL)
        link_account(accounts, account);
    return account;
}

struct queue_account *queue_account_by_token(struct queue *queue, const char *name,
                                             const struct client_limits *limits)
{
    pthread_mutex_lock(&queue->accounts.lock);
    struct queue_account *account = open_account(queue, name, INT_MAX);
    pthread_mutex_unlock(&queue->accounts.lock);
    if (account == NULL)
        return NULL;
    pthread_mutex_lock(&queue->admission.lock);
    queue__quota_set(account, limits, clock_now_ns());
    pthread_mutex_unlock(&queue->admission.lock);
    return account;
}

struct queue_account *queue_account_by_certificate(struct queue *queue, const char *name)
{
    pthread_mutex_lock(&queue->accounts.lock);
    struct queue_account *account = open_account(queue, name, CERTIFIED_MAX);
    if (account == NULL)
        account = shared_account(queue);
    pthread_mutex_unlock(&queue->accounts.lock);
    return account;
}

/* ---- Counts ---- */

void queue_account_answered(struct queue_account *account, int status, int64_t in_bytes,
                            int64_t out_bytes)
{
    const struct queue_account_series *series = &account->series;
    assert(status >= 200 && status < 600);
    metric_add(series->answers[status / 100], 1);
    metric_add(series->bytes_in, (uint64_t)in_bytes);
    metric_add(series->bytes_out, (uint64_t)out_bytes);
}

void queue_account_inverted(struct queue_account *account, int64_t matrices)
{
    metric_add(account->series.inversions, (uint64_t)matrices);
}

void queue__accounts_charge(const struct queue_slot *slot, uint64_t duration_ns, uint64_t now_ns)
{
    for (int i = 0; i < slot->count;) {
        struct queue_account *account = slot->fragments[i].item->account;
        int64_t matrices = 0;
        /* Neighbours are often of one client. */
        for (; i < slot->count && slot->fragments[i].item->account == account; i++)
            matrices += slot->fragments[i].count;
        if (account == NULL)
            continue;
        double part_ns = (double)duration_ns * ((double)matrices / (double)slot->matrices);
        metric_add(account->series.device, (uint64_t)part_ns);
        queue__quota_charge(account, now_ns, part_ns);
    }
}

/* ---- What is shown ---- */

static struct queue_account_use use_of(struct queue *queue, const struct queue_account *account)
{
    pthread_mutex_lock(&queue->admission.lock);
    struct queue_account_use use = {
        .name = account->name,
        .limits = account->limits,
        .requests = account->client.count,
        .bytes = account->claimed_bytes,
    };
    pthread_mutex_unlock(&queue->admission.lock);
    uint64_t now_ns = clock_now_ns();
    double second = (double)CLOCK_S;
    double rate_s = (double)queue__bucket_level_ns(&account->rate, now_ns) / second;
    double device_s = (double)queue__bucket_level_ns(&account->device, now_ns) / second;
    use.rate = (int64_t)(rate_s * (double)use.limits.rate + 0.5);
    use.device_ns = (int64_t)(device_s * (double)use.limits.device_ns);
    return use;
}

void queue_accounts_each(struct queue *queue,
                         void (*each)(void *context, const struct queue_account_use *use),
                         void *context)
{
    const struct queue_account *account =
        atomic_load_explicit(&queue->accounts.first, memory_order_acquire);
    while (account != NULL) {
        struct queue_account_use use = use_of(queue, account);
        each(context, &use);
        account = atomic_load_explicit(&account->next, memory_order_acquire);
    }
}

static void set_gauges(const struct queue_account_series *series, enum queue_quota quota,
                       int64_t used, int64_t limit)
{
    metric_set(series->used[quota], used);
    metric_set(series->limit[quota], limit);
}

static void show(const struct queue_account *account, const struct queue_account_use *use)
{
    const struct queue_account_series *series = &account->series;
    const struct client_limits *limits = &use->limits;
    const int64_t unit = 1000, unit_ns = CLOCK_S / 1000; /* thousandths are shown */
    if (series->used[0] == NULL)
        return;
    set_gauges(series, QUEUE_QUOTA_REQUESTS, use->requests * unit, limits->requests * unit);
    set_gauges(series, QUEUE_QUOTA_RATE, use->rate * unit, limits->rate * unit);
    set_gauges(series, QUEUE_QUOTA_BYTES, use->bytes * unit, limits->bytes * unit);
    set_gauges(series, QUEUE_QUOTA_DEVICE, use->device_ns / unit_ns, limits->device_ns / unit_ns);
}

void queue_accounts_show(struct queue *queue)
{
    const struct queue_account *account =
        atomic_load_explicit(&queue->accounts.first, memory_order_acquire);
    for (; account != NULL; account = atomic_load_explicit(&account->next, memory_order_acquire)) {
        struct queue_account_use use = use_of(queue, account);
        show(account, &use);
    }
}
