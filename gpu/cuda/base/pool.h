/* gpu/cuda/base/pool.h: the engine's device memory for workspaces, within a budget.
 *
 * Blocks are taken for a batch and given back when it is over, so that the lane that takes one next
 * finds the device done with it. What was given back is kept for the next one: in the steady state
 * nothing is allocated. When the budget, or the device, is short, what is kept unused is freed; so
 * it is when nothing was asked for a while (lane.c). Freeing waits for all kernels, so it is done
 * when no block is in use; until then the other lanes get none.
 *
 * The budget is each engine's own. A device may have four of ours (one at work, spare ones, one
 * that is ending), so that it may be full where the budget is not: then the lane is asked to ask
 * again, for a while, since a process that ends gives back what it has.
 *
 * A lane that finds the memory in use asks again too. The other lanes leave a quarter to the short
 * one, but for a matrix that needs more than three quarters, so that short items are never behind
 * them for long.
 *
 * Threads: any; a mutex guards the table of blocks. Cost: a walk through a few blocks.
 */
#ifndef GPU_CUDA_BASE_POOL_H
#define GPU_CUDA_BASE_POOL_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/engine.h"

struct cuda_pool;

struct cuda_block {
    void *d_data; /* aligned to CUDA_WORKSPACE_ALIGN; NULL: none */
    size_t bytes;
    enum engine_lane_id lane; /* that has taken it */
};

/* bytes_max: the budget; 0: half of the device's memory, whatever is free now, so that all engines
 * of a device take the same matrices (spare ones start next to one at work). The device must be
 * open. What fails is logged. */
enum engine_exit cuda_pool_create(size_t bytes_max, struct cuda_pool **pool);
/* Every block must have been given back. */
void cuda_pool_destroy(struct cuda_pool **pool);
size_t cuda_pool_bytes_max(const struct cuda_pool *pool);
/* How long cuda_pool_take asks to wait where others have the device's memory; at first not at all.
 * Before the pool has more than one user. */
void cuda_pool_set_patience(struct cuda_pool *pool, uint64_t patience_ns);

/* Takes a block of `wanted` bytes or more, or of `least` where so much is not to be had (1 <= least
 * <= wanted). cudaErrorNotReady: not now, ask again; cudaErrorMemoryAllocation: it is beyond the
 * budget, or the device had not so much for the pool's patience; any other: the device
 * failed. */
cudaError_t cuda_pool_take(struct cuda_pool *pool, enum engine_lane_id lane, size_t least,
                           size_t wanted, struct cuda_block *block);
/* The same for a batch that has begun and goes on: from its first question on the other lanes get
 * no block before it; but the short lane does, while another one that asks uses one. */
cudaError_t cuda_pool_take_on(struct cuda_pool *pool, enum engine_lane_id lane, size_t least,
                              size_t wanted, struct cuda_block *block);
/* The same for a lane that can do without: now or not at all. No lane waits for it, it does not go
 * before those whom a lane waits for, and gets one batch's share at most. *block stays empty where
 * `least` is more than that, or not to be had; any status but cudaSuccess: the device failed. */
cudaError_t cuda_pool_try(struct cuda_pool *pool, enum engine_lane_id lane, size_t least,
                          size_t wanted, struct cuda_block *block);
/* A lane that was to ask again will not: the others need not wait for it any more. */
void cuda_pool_withdraw(struct cuda_pool *pool, enum engine_lane_id lane);
/* The device must be done with it. Leaves block empty; one that is empty is left alone. */
void cuda_pool_give(struct cuda_pool *pool, struct cuda_block *block);
/* Frees what is kept, if no block was in use for so long: the device's other engines may need it.
 * true: something is held still. */
bool cuda_pool_trim(struct cuda_pool *pool, uint64_t unused_ns);

#endif
