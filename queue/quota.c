/* queue/quota.c: what an account may use, and when it may come again. See account.h.
 *
 * A refusal names the quota, its value and its use. Where the time is known after which a request
 * would pass, it says that time too: a bucket's. A request that is refused takes nothing.
 *
 * Threads: admission.c's lock guards everything but a bucket's level and device_ns, so that a batch
 * is charged without that lock.
 * Cost: a few comparisons; an atomic a bucket.
 */
#include <assert.h>
#include <limits.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "queue/queue_private.h"

/* What a bucket takes at once. */
#define BURST_NS CLOCK_S

/* The failure, with the time after which it would be none. */
static enum error refuse_until(struct failure *failure, uint64_t wait_ns)
{
    uint64_t seconds = wait_ns / CLOCK_S + (wait_ns % CLOCK_S != 0);
    failure->retry_after_s = seconds < INT_MAX ? (int)seconds : INT_MAX;
    return failure->code;
}

static enum error check_bytes(const struct queue_account *account, int64_t all_bytes,
                              int64_t more_bytes, struct failure *failure)
{
    const long long max = account->limits.bytes, used = account->claimed_bytes;
    if (max == 0)
        return ERROR_NONE;
    if (all_bytes > max)
        return failure_set(failure, ERROR_TOO_LARGE,
                           "The request needs at least %lld bytes of memory, with its answer; this "
                           "client's quota is bytes=%lld. Send fewer or smaller matrices at once.",
                           (long long)all_bytes, max);
    if (more_bytes > max - used)
        return failure_set(
            failure, ERROR_CLIENT_QUOTA,
            "This client's quota is bytes=%lld, of which its requests under way need "
            "%lld and this one %lld more; wait for an answer before sending the "
            "next.",
            max, used, (long long)more_bytes);
    return ERROR_NONE;
}

static enum error check_requests(const struct queue_account *account, int64_t requests_max,
                                 struct failure *failure)
{
    int64_t max = account->limits.requests > 0 ? account->limits.requests : requests_max;
    if (max == 0 || account->client.count < max)
        return ERROR_NONE;
    return failure_set(failure, ERROR_CLIENT_QUOTA,
                       "This client's quota is requests=%lld, and %lld are under way; wait for an "
                       "answer before sending the next.",
                       (long long)max, (long long)account->client.count);
}

static enum error check_device(const struct queue_account *account, uint64_t now_ns,
                               struct failure *failure)
{
    uint64_t level_ns = queue__bucket_level_ns(&account->device, now_ns);
    double share = (double)account->limits.device_ns / (double)CLOCK_S;
    if (share <= 0 || level_ns <= BURST_NS)
        return ERROR_NONE;
    failure_set(failure, ERROR_CLIENT_QUOTA,
                "This client's quota is device=%gs a second, and it has used %.3g s, of which one "
                "second allows %gs and the rest is to be waited for.",
                share, (double)level_ns / (double)CLOCK_S * share, share);
    return refuse_until(failure, level_ns - BURST_NS);
}

/* Takes one of the second's requests. */
static enum error take_rate(struct queue_account *account, uint64_t now_ns, struct failure *failure)
{
    const uint64_t rate = (uint64_t)account->limits.rate;
    if (rate == 0)
        return ERROR_NONE;
    uint64_t level_ns = queue__bucket_level_ns(&account->rate, now_ns), cost_ns = CLOCK_S / rate;
    if (level_ns + cost_ns <= BURST_NS) {
        queue__bucket_change(&account->rate, now_ns, 1, (double)cost_ns);
        return ERROR_NONE;
    }
    failure_set(failure, ERROR_CLIENT_QUOTA,
                "This client's quota is rate=%llu requests a second, and %llu came within the last "
                "second.",
                (unsigned long long)rate,
                (unsigned long long)(cost_ns > 0 ? (level_ns + cost_ns - 1) / cost_ns : rate));
    return refuse_until(failure, level_ns + cost_ns - BURST_NS);
}

/* A guess claims no more than the quota, as it claims no more than half of the arena. */
static void limit_guess(const struct queue_account *account, struct queue_reservation *reservation)
{
    int64_t max = account->limits.bytes;
    if (max > 0 && reservation->need_bytes > max)
        reservation->need_bytes = max_i64(reservation->sure_bytes, max);
}

enum error queue__quota_enter(struct queue_account *account, struct queue_reservation *reservation,
                              int64_t requests_max, struct failure *failure)
{
    assert(reservation->claimed_bytes == 0 && reservation->sure_bytes <= reservation->need_bytes);
    limit_guess(account, reservation);
    enum error error =
        check_bytes(account, reservation->need_bytes, reservation->need_bytes, failure);
    if (error == ERROR_NONE)
        error = check_requests(account, requests_max, failure);
    if (error == ERROR_NONE)
        error = check_device(account, reservation->arrived_ns, failure);
    if (error == ERROR_NONE)
        error = take_rate(account, reservation->arrived_ns, failure);
    if (error != ERROR_NONE)
        return error;
    reservation->claimed_bytes = reservation->need_bytes;
    account->claimed_bytes += reservation->claimed_bytes;
    return ERROR_NONE;
}

enum error queue__quota_grow(struct queue_account *account, struct queue_reservation *reservation,
                             int64_t held_bytes, struct failure *failure)
{
    int64_t more_bytes = held_bytes - reservation->claimed_bytes;
    if (more_bytes <= 0)
        return ERROR_NONE;
    enum error error = check_bytes(account, held_bytes, more_bytes, failure);
    if (error != ERROR_NONE)
        return error;
    reservation->claimed_bytes += more_bytes;
    account->claimed_bytes += more_bytes;
    return ERROR_NONE;
}

void queue__quota_shrink(struct queue_account *account, struct queue_reservation *reservation,
                         int64_t bytes)
{
    int64_t less_bytes = min_i64(bytes, reservation->claimed_bytes);
    reservation->claimed_bytes -= less_bytes;
    account->claimed_bytes -= less_bytes;
    assert(account->claimed_bytes >= 0);
}

void queue__quota_leave(struct queue_account *account, struct queue_reservation *reservation)
{
    queue__quota_shrink(account, reservation, reservation->claimed_bytes);
}

/* What is in a bucket stays the same, in requests or device time. */
static void set_leak(struct queue_bucket *bucket, uint64_t now_ns, int64_t old, int64_t leak)
{
    queue__bucket_change(bucket, now_ns, leak > 0 ? (double)old / (double)leak : 0, 0);
}

void queue__quota_set(struct queue_account *account, const struct client_limits *limits,
                      uint64_t now_ns)
{
    if (limits->rate != account->limits.rate)
        set_leak(&account->rate, now_ns, account->limits.rate, limits->rate);
    if (limits->device_ns != account->limits.device_ns)
        set_leak(&account->device, now_ns, account->limits.device_ns, limits->device_ns);
    account->limits = *limits;
    atomic_store_explicit(&account->device_ns, limits->device_ns, memory_order_relaxed);
}

void queue__quota_charge(struct queue_account *account, uint64_t now_ns, double device_ns)
{
    int64_t leak_ns = atomic_load_explicit(&account->device_ns, memory_order_relaxed);
    if (leak_ns > 0)
        queue__bucket_change(&account->device, now_ns, 1,
                             device_ns / (double)leak_ns * (double)CLOCK_S);
}
