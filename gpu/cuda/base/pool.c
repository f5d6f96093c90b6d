/* gpu/cuda/base/pool.c: see pool.h.
 *
 * Sizes are rounded up to a power of two or one and a half of it, so that a block fits what comes
 * next. `held` counts all blocks, used or kept; it never exceeds the budget.
 */
#include "gpu/cuda/base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpu/cuda/base/failed.h"

/* A batch of each slot of the lanes uses one, and as many again may be kept. */
#define BLOCKS (2 * ENGINE_LANES * ENGINE_BATCH_SLOTS)
#define SIZE_MIN ((size_t)2 << 20) /* what the device gives out */
#define SHARE 4 /* one batch asks for this part of the budget at most, unless it must have more */
#define FIT 4   /* a kept block that is this much larger still fits */
#define SHORT_PART 4             /* this part is left to the short lane */
#define AGAIN_NS (10 * CLOCK_MS) /* between two tries of a device that is full */

struct entry {
    void *d_data; /* NULL: no block */
    size_t bytes;
    bool used;
};

struct cuda_pool {
    size_t bytes_max;
    pthread_mutex_t lock;
    size_t held, used, used_by[ENGINE_LANES];
    bool drains; /* no other lane takes a block until nothing is in use */
    enum engine_lane_id drains_for;
    uint64_t full_ns, tried_ns; /* others have the device's memory: since when, 0: they have not;
                                   and when it was tried last */
    uint64_t patience_ns;       /* see cuda_pool_set_patience */
    uint64_t given_ns;          /* when a block was given back last */
    struct entry entries[BLOCKS];
};

enum engine_exit cuda_pool_create(size_t bytes_max, struct cuda_pool **result)
{
    size_t available = 0, total = 0;
    if (bytes_max == 0) {
        cudaError_t status = cudaMemGetInfo(&available, &total);
        if (status != cudaSuccess)
            return cuda__failed(status, "ask for the device's memory");
        bytes_max = total / 2;
    }
    struct cuda_pool *pool = calloc(1, sizeof *pool);
    if (!pool) {
        log_line(LOG_ERROR, "no memory for the pool of workspaces", NULL);
        return ENGINE_EXIT_FAILURE;
    }
    pool->bytes_max = bytes_max;
    pthread_mutex_init(&pool->lock, NULL);
    *result = pool;
    return ENGINE_EXIT_OK;
}

void cuda_pool_destroy(struct cuda_pool **pool)
{
    struct cuda_pool *old = *pool;
    if (!old)
        return;
    assert(old->used == 0);
    for (int i = 0; i < BLOCKS; i++) {
        if (old->entries[i].d_data)
            cudaFree(old->entries[i].d_data);
    }
    pthread_mutex_destroy(&old->lock);
    free(old);
    *pool = NULL;
}

void cuda_pool_set_patience(struct cuda_pool *pool, uint64_t patience_ns)
{
    pool->patience_ns = patience_ns;
}

size_t cuda_pool_bytes_max(const struct cuda_pool *pool)
{
    return pool->bytes_max;
}

/* ---- Under the lock ---- */

/* The next size from `bytes` on; bytes itself where that would be beyond counting. */
static size_t rounded_up(size_t bytes)
{
    size_t size = SIZE_MIN;
    while (size < bytes && size <= SIZE_MAX / 4)
        size *= 2;
    if (size / 4 * 3 >= bytes && size > SIZE_MIN)
        size = size / 4 * 3;
    return size >= bytes ? size : bytes;
}

/* The smallest unused block of `bytes` to `most`; NULL: none. */
static struct entry *find_kept(struct cuda_pool *pool, size_t bytes, size_t most)
{
    struct entry *best = NULL;
    for (int i = 0; i < BLOCKS; i++) {
        struct entry *entry = &pool->entries[i];
        if (entry->d_data && !entry->used && entry->bytes >= bytes && entry->bytes <= most &&
            (!best || entry->bytes < best->bytes))
            best = entry;
    }
    return best;
}

/* Frees what is kept unused. */
static cudaError_t trim(struct cuda_pool *pool)
{
    cudaError_t status = cudaSuccess;
    for (int i = 0; i < BLOCKS && status == cudaSuccess; i++) {
        struct entry *entry = &pool->entries[i];
        if (!entry->d_data || entry->used)
            continue;
        status = cudaFree(entry->d_data);
        pool->held -= entry->bytes;
        *entry = (struct entry){0};
    }
    return status;
}

/* Allocates a block where budget and table have room. *found stays NULL where they have none, or
 * the device has no memory. */
static cudaError_t allocate(struct cuda_pool *pool, size_t bytes, struct entry **found)
{
    struct entry *entry = NULL;
    for (int i = 0; i < BLOCKS && !entry; i++)
        entry = pool->entries[i].d_data ? NULL : &pool->entries[i];
    if (!entry || bytes > pool->bytes_max - pool->held)
        return cudaSuccess;
    cudaError_t status = cudaMalloc(&entry->d_data, bytes);
    if (status == cudaErrorMemoryAllocation) {
        entry->d_data = NULL;
        (void)cudaGetLastError();
        return cudaSuccess;
    }
    if (status != cudaSuccess)
        return status;
    entry->bytes = bytes;
    pool->held += bytes;
    pool->full_ns = 0;
    *found = entry;
    return cudaSuccess;
}

/* A block of `bytes` or more, up to `most`: a kept one that fits, a new one, a kept one that is far
 * too large, and at last, where no block is in use, one in place of what is kept. *found stays NULL
 * where there is none. */
static cudaError_t find(struct cuda_pool *pool, size_t bytes, size_t most, struct entry **found)
{
    size_t roomy = rounded_up(bytes) <= most ? rounded_up(bytes) : bytes;
    size_t fitting = roomy > most / FIT ? most : FIT * roomy;
    cudaError_t status = cudaSuccess;
    *found = find_kept(pool, bytes, fitting);
    if (!*found)
        status = allocate(pool, roomy, found);
    if (!*found && status == cudaSuccess)
        *found = find_kept(pool, bytes, most);
    if (*found || status != cudaSuccess || pool->used > 0)
        return status;
    status = trim(pool);
    if (status == cudaSuccess)
        status = allocate(pool, roomy, found);
    if (!*found && status == cudaSuccess)
        status = allocate(pool, bytes, found);
    return status;
}

static size_t share_of(const struct cuda_pool *pool)
{
    return pool->bytes_max / SHARE;
}

/* What the lane may take now: the others leave a part to the short one, but for a matrix that needs
 * it. */
static size_t room_of(const struct cuda_pool *pool, enum engine_lane_id lane, size_t least)
{
    size_t most = pool->bytes_max - pool->bytes_max / SHORT_PART;
    size_t used = pool->used - pool->used_by[ENGINE_LANE_SHORT];
    if (lane == ENGINE_LANE_SHORT || (used == 0 && least > most))
        return pool->bytes_max;
    return most > used ? most - used : 0;
}

/* The device has not even the least, though nothing of ours is in use: another engine has it, which
 * is ending, say. That is waited for once, and again only when it is long ago or there was some. */
static cudaError_t note_full(struct cuda_pool *pool, uint64_t now_ns)
{
    if (pool->full_ns == 0 || now_ns > pool->tried_ns + pool->patience_ns)
        pool->full_ns = now_ns;
    pool->tried_ns = now_ns;
    return now_ns < pool->full_ns + pool->patience_ns ? cudaErrorNotReady
                                                      : cudaErrorMemoryAllocation;
}

/* Whether the device was full a moment ago and the wait for it is not over. */
static bool is_full(const struct cuda_pool *pool, uint64_t now_ns)
{
    return pool->full_ns != 0 && pool->used == 0 && now_ns < pool->tried_ns + AGAIN_NS &&
           now_ns < pool->full_ns + pool->patience_ns;
}

/* A block of `wanted` bytes or the share of a batch, or of less down to `least`; of `most` at most.
 * *found stays NULL where there is none. */
static cudaError_t search(struct cuda_pool *pool, size_t least, size_t wanted, size_t most,
                          struct entry **found)
{
    size_t share = share_of(pool);
    cudaError_t status = cudaSuccess;
    wanted = wanted > share ? share : wanted;
    wanted = wanted < least ? least : wanted;
    for (;; wanted = wanted / 2 > least ? wanted / 2 : least) {
        if (wanted <= most)
            status = find(pool, wanted, most, found);
        if (status != cudaSuccess || *found || wanted == least)
            return status;
    }
}

static cudaError_t take(struct cuda_pool *pool, enum engine_lane_id lane, size_t least,
                        size_t wanted, uint64_t now_ns, struct entry **found)
{
    if (least > pool->bytes_max)
        return cudaErrorMemoryAllocation;
    if (is_full(pool, now_ns))
        return cudaErrorNotReady;
    cudaError_t status = search(pool, least, wanted, room_of(pool, lane, least), found);
    if (status != cudaSuccess || *found)
        return status;
    return pool->used > 0 ? cudaErrorNotReady : note_full(pool, now_ns);
}

/* Have the other lanes to wait for who finds no memory? Enough may be unused, but only in pieces
 * that can be freed when nothing is in use. Who has begun must not be kept from it by those that
 * begin behind it; but the short lane does not wait for the own batches of another. */
static bool reserves(const struct cuda_pool *pool, enum engine_lane_id lane, bool has_begun,
                     size_t least)
{
    if (pool->used == 0 || least > room_of(pool, lane, least))
        return false;
    return has_begun ? lane == ENGINE_LANE_SHORT || pool->used_by[lane] == 0
                     : least <= pool->bytes_max - pool->used;
}

static cudaError_t take_in_turn(struct cuda_pool *pool, enum engine_lane_id lane, bool has_begun,
                                size_t least, size_t wanted, struct entry **found)
{
    uint64_t now_ns = clock_now_ns();
    if (pool->drains && pool->drains_for != lane)
        return cudaErrorNotReady;
    cudaError_t status = take(pool, lane, least, wanted, now_ns, found);
    pool->drains = status == cudaErrorNotReady && reserves(pool, lane, has_begun, least);
    pool->drains_for = lane;
    return status;
}

static void hand_out(struct cuda_pool *pool, enum engine_lane_id lane, struct entry *entry,
                     struct cuda_block *block)
{
    entry->used = true;
    pool->used += entry->bytes;
    pool->used_by[lane] += entry->bytes;
    *block = (struct cuda_block){entry->d_data, entry->bytes, lane};
}

/* ---- The lock ---- */

static cudaError_t take_locked(struct cuda_pool *pool, enum engine_lane_id lane, bool has_begun,
                               size_t least, size_t wanted, struct cuda_block *block)
{
    assert(least >= 1 && least <= wanted && !block->d_data);
    struct entry *found = NULL;
    pthread_mutex_lock(&pool->lock);
    cudaError_t status = take_in_turn(pool, lane, has_begun, least, wanted, &found);
    if (status == cudaSuccess)
        hand_out(pool, lane, found, block);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

cudaError_t cuda_pool_take(struct cuda_pool *pool, enum engine_lane_id lane, size_t least,
                           size_t wanted, struct cuda_block *block)
{
    return take_locked(pool, lane, false, least, wanted, block);
}

cudaError_t cuda_pool_take_on(struct cuda_pool *pool, enum engine_lane_id lane, size_t least,
                              size_t wanted, struct cuda_block *block)
{
    return take_locked(pool, lane, true, least, wanted, block);
}

cudaError_t cuda_pool_try(struct cuda_pool *pool, enum engine_lane_id lane, size_t least,
                          size_t wanted, struct cuda_block *block)
{
    assert(least >= 1 && least <= wanted && !block->d_data);
    struct entry *found = NULL;
    cudaError_t status = cudaSuccess;
    pthread_mutex_lock(&pool->lock);
    size_t room = room_of(pool, lane, least), share = share_of(pool);
    if (!pool->drains && least <= share)
        status = search(pool, least, wanted, room < share ? room : share, &found);
    if (status == cudaSuccess && found)
        hand_out(pool, lane, found, block);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

void cuda_pool_withdraw(struct cuda_pool *pool, enum engine_lane_id lane)
{
    pthread_mutex_lock(&pool->lock);
    pool->drains = pool->drains && pool->drains_for != lane;
    pthread_mutex_unlock(&pool->lock);
}

void cuda_pool_give(struct cuda_pool *pool, struct cuda_block *block)
{
    if (!block->d_data)
        return;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < BLOCKS; i++) {
        struct entry *entry = &pool->entries[i];
        if (entry->d_data != block->d_data)
            continue;
        assert(entry->used);
        entry->used = false;
        pool->used -= entry->bytes;
        pool->used_by[block->lane] -= entry->bytes;
        pool->given_ns = clock_now_ns();
    }
    pthread_mutex_unlock(&pool->lock);
    *block = (struct cuda_block){0};
}

bool cuda_pool_trim(struct cuda_pool *pool, uint64_t unused_ns)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->used == 0 && clock_now_ns() >= pool->given_ns + unused_ns)
        (void)trim(pool); /* what fails shows again with the next batch */
    bool held = pool->held > 0;
    pthread_mutex_unlock(&pool->lock);
    return held;
}
