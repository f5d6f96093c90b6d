/* server/http/put_off.c: see put_off.h. */
#include "server/http/put_off.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/http/raw.h"

/* ---- Clients ---- */

/* A cell: from the lowest bit on until when, in milliseconds of the clock's 32 lowest bits; how
 * many connections; and what of the number the cell's place does not say. */
#define COUNT_BITS 12
#define COUNT_MAX ((1u << COUNT_BITS) - 1)
#define TAG_BITS 20
#define LEFT_MAX_MS ((int32_t)(2 * PUT_OFF_NS / CLOCK_MS))
_Static_assert(PUT_OFF_CLIENTS == 1 << (32 - TAG_BITS), "a cell and its tag are the whole number");

struct cell {
    uint32_t tag, count, until_ms;
};

static struct cell unpack(uint64_t packed)
{
    return (struct cell){(uint32_t)(packed >> (32 + COUNT_BITS)),
                         (uint32_t)(packed >> 32) & COUNT_MAX, (uint32_t)packed};
}

static uint64_t pack(struct cell cell)
{
    return (uint64_t)cell.tag << (32 + COUNT_BITS) | (uint64_t)cell.count << 32 | cell.until_ms;
}

static uint32_t ms_of(uint64_t ns)
{
    return (uint32_t)(ns / CLOCK_MS);
}

/* How long the cell still counts for this client, in milliseconds; 0 and below: no more. Half of
 * the time a cell of weeks ago seems to have weeks left. */
static int32_t left_ms(struct cell cell, uint32_t client, uint64_t now_ns)
{
    int32_t left = (int32_t)(cell.until_ms - ms_of(now_ns));
    bool counts = cell.tag == client / PUT_OFF_CLIENTS && cell.count > 0 && left <= LEFT_MAX_MS;
    return counts ? left : 0;
}

void put_off_owe(struct put_off_clients *clients, uint32_t client, uint64_t until_ns,
                 uint64_t now_ns)
{
    _Atomic uint64_t *place = &clients->cells[client % PUT_OFF_CLIENTS];
    uint64_t old = atomic_load_explicit(place, memory_order_relaxed), fresh;
    do {
        struct cell cell = unpack(old);
        uint32_t count = left_ms(cell, client, now_ns) > 0 ? cell.count : 0;
        fresh = pack((struct cell){client / PUT_OFF_CLIENTS,
                                   count < COUNT_MAX ? count + 1 : COUNT_MAX, ms_of(until_ns)});
    } while (!atomic_compare_exchange_weak_explicit(place, &old, fresh, memory_order_relaxed,
                                                    memory_order_relaxed));
}

uint64_t put_off_take(struct put_off_clients *clients, uint32_t client, uint64_t now_ns)
{
    _Atomic uint64_t *place = &clients->cells[client % PUT_OFF_CLIENTS];
    uint64_t old = atomic_load_explicit(place, memory_order_relaxed), fresh;
    int32_t left;
    do {
        struct cell cell = unpack(old);
        left = left_ms(cell, client, now_ns);
        if (left <= 0)
            return 0;
        cell.count--;
        fresh = pack(cell);
    } while (!atomic_compare_exchange_weak_explicit(place, &old, fresh, memory_order_relaxed,
                                                    memory_order_relaxed));
    return now_ns + (uint64_t)left * CLOCK_MS;
}

bool put_off_owes(const struct put_off_clients *clients, uint32_t client, uint64_t now_ns)
{
    const _Atomic uint64_t *place = &clients->cells[client % PUT_OFF_CLIENTS];
    return left_ms(unpack(atomic_load_explicit(place, memory_order_relaxed)), client, now_ns) > 0;
}

uint64_t put_off_spread_ns(uint32_t client, uint64_t now_ns)
{
    /* The upper half of a product with the golden ratio of 2^64: neighbours lie far apart. */
    uint64_t mixed = (now_ns ^ (uint64_t)client << 32) * UINT64_C(0x9e3779b97f4a7c15);
    return (mixed >> 32) * PUT_OFF_NS >> 32;
}

/* ---- Connections ---- */

struct waiting {
    int fd;
    uint32_t client;
    uint64_t until_ns;
    struct text refusal;
};

struct put_off {
    struct put_off_clients *clients;
    int max, count;
    struct waiting waiting[];
};

enum error put_off_create(int max, struct put_off_clients *clients, struct put_off **result,
                          struct failure *failure)
{
    struct put_off *put_off = calloc(1, sizeof *put_off + (size_t)max * sizeof put_off->waiting[0]);
    if (put_off == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    put_off->clients = clients;
    put_off->max = max;
    *result = put_off;
    return ERROR_NONE;
}

/* The last one takes its place. */
static void end(struct put_off *put_off, int place)
{
    struct waiting *one = &put_off->waiting[place];
    close(one->fd);
    text_free(&one->refusal);
    atomic_fetch_sub(&put_off->clients->waiting, 1);
    *one = put_off->waiting[--put_off->count];
}

void put_off_destroy(struct put_off **result)
{
    assert(*result == NULL || (*result)->count == 0);
    free(*result);
    *result = NULL;
}

bool put_off_add(struct put_off *put_off, int fd, uint32_t client, struct text *refusal,
                 uint64_t until_ns)
{
    int own = put_off->count < put_off->max ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (own < 0)
        return false;
    put_off->waiting[put_off->count++] = (struct waiting){own, client, until_ns, *refusal};
    *refusal = (struct text){0};
    atomic_fetch_add(&put_off->clients->waiting, 1);
    return true;
}

int put_off_tick(struct put_off *put_off, struct watch *watch, uint64_t due_ns, int64_t min,
                 uint64_t now_ns)
{
    int before = put_off->count;
    for (int i = 0; i < put_off->count;) {
        const struct waiting *one = &put_off->waiting[i];
        if (one->until_ns > due_ns && before - put_off->count >= min) {
            i++;
            continue;
        }
        (void)http_raw_send(one->fd, &one->refusal);
        put_off_owe(put_off->clients, one->client, now_ns + PUT_OFF_NS, now_ns);
        watch_linger(watch, one->fd, now_ns);
        end(put_off, i);
    }
    return before - put_off->count;
}
