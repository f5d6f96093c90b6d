/* The pool of workspaces: kept blocks are used again, the budget holds, the long lane leaves room
 * for the short one, and the one that cannot be served now is reported whether waiting helps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "gpu/cuda/base/pool.h"
#include "tests/simt/simt.h"

#define MIB ((size_t)1 << 20)

static struct cuda_pool *create(size_t bytes_max)
{
    struct cuda_pool *pool = NULL;
    assert_int_equal(cuda_pool_create(bytes_max, &pool), ENGINE_EXIT_OK);
    return pool;
}

static struct cuda_block take(struct cuda_pool *pool, bool is_long, size_t least, size_t wanted)
{
    struct cuda_block block = {0};
    assert_int_equal(cuda_pool_take(pool, is_long, least, wanted, &block), cudaSuccess);
    assert_non_null(block.d_data);
    assert_true(block.bytes >= least);
    return block;
}

static void assert_refused(struct cuda_pool *pool, bool is_long, size_t least, cudaError_t status)
{
    struct cuda_block block = {0};
    assert_int_equal(cuda_pool_take(pool, is_long, least, least, &block), status);
    assert_null(block.d_data);
}

static void test_blocks_are_used_again(void **state)
{
    (void)state;
    int64_t before = simt_allocations(), kept = 0;
    struct cuda_pool *pool = create(100 * MIB);
    for (int i = 0; i < 20; i++) {
        struct cuda_block a = take(pool, false, 1, 3 * MIB - (size_t)i);
        struct cuda_block b = take(pool, true, 5 * MIB, 5 * MIB);
        assert_ptr_not_equal(a.d_data, b.d_data);
        assert_int_equal(a.bytes, 3 * MIB);
        kept = i == 0 ? simt_allocations() : kept;
        assert_int_equal(simt_allocations(), kept);
        cuda_pool_give(pool, &a);
        cuda_pool_give(pool, &b);
        assert_null(a.d_data);
        cuda_pool_give(pool, &b); /* an empty one */
    }
    cuda_pool_destroy(&pool);
    assert_null(pool);
    assert_int_equal(simt_allocations(), before);
}

/* A batch that would take everything gets a share; one that must have more gets what it must. */
static void test_shares(void **state)
{
    (void)state;
    struct cuda_pool *pool = create(64 * MIB);
    struct cuda_block modest = take(pool, false, 1, SIZE_MAX);
    assert_true(modest.bytes <= 32 * MIB);
    struct cuda_block large = take(pool, false, 40 * MIB, 40 * MIB);
    cuda_pool_give(pool, &modest);
    cuda_pool_give(pool, &large);
    large = take(pool, false, 64 * MIB, SIZE_MAX);
    assert_int_equal(large.bytes, 64 * MIB);
    cuda_pool_give(pool, &large);
    cuda_pool_destroy(&pool);
}

static void test_budget(void **state)
{
    (void)state;
    struct cuda_pool *pool = create(64 * MIB);
    assert_refused(pool, false, 64 * MIB + 1, cudaErrorMemoryAllocation);
    assert_refused(pool, false, SIZE_MAX, cudaErrorMemoryAllocation);
    struct cuda_block first = take(pool, false, 40 * MIB, 40 * MIB);
    assert_refused(pool, false, 30 * MIB, cudaErrorNotReady);
    struct cuda_block rest = take(pool, false, 2 * MIB, 60 * MIB); /* less than it would like */
    assert_true(first.bytes + rest.bytes <= 64 * MIB);
    cuda_pool_give(pool, &first);
    cuda_pool_give(pool, &rest);
    /* What is kept makes room. */
    first = take(pool, false, 60 * MIB, 60 * MIB);
    cuda_pool_give(pool, &first);
    cuda_pool_destroy(&pool);
}

static void test_lanes(void **state)
{
    (void)state;
    struct cuda_pool *pool = create(64 * MIB);
    struct cuda_block all = take(pool, true, 60 * MIB, 60 * MIB); /* alone it may */
    assert_refused(pool, true, MIB, cudaErrorNotReady);
    cuda_pool_give(pool, &all);
    cuda_pool_destroy(&pool);
    pool = create(64 * MIB);
    struct cuda_block some = take(pool, true, 32 * MIB, 32 * MIB);
    assert_refused(pool, true, 24 * MIB, cudaErrorNotReady);
    struct cuda_block short_one = take(pool, false, 24 * MIB, 24 * MIB);
    assert_refused(pool, false, 24 * MIB, cudaErrorNotReady);
    cuda_pool_give(pool, &some);
    cuda_pool_give(pool, &short_one);
    cuda_pool_destroy(&pool);
}

/* One kept block of all: the long lane gets none of it, for it would be all. */
static void test_what_is_kept_is_no_way_round_the_lanes(void **state)
{
    (void)state;
    struct cuda_pool *pool = create(64 * MIB);
    struct cuda_block all = take(pool, false, 64 * MIB, 64 * MIB);
    cuda_pool_give(pool, &all);
    struct cuda_block some = take(pool, true, 2 * MIB, 2 * MIB);
    assert_true(some.bytes <= 48 * MIB);
    struct cuda_block short_one = take(pool, false, 2 * MIB, 2 * MIB);
    cuda_pool_give(pool, &some);
    cuda_pool_give(pool, &short_one);
    cuda_pool_destroy(&pool);
}

/* 64 MiB in four pieces, of which the last is in use. */
static struct cuda_pool *in_pieces(struct cuda_block *last)
{
    struct cuda_pool *pool = create(64 * MIB);
    struct cuda_block blocks[4];
    for (int i = 0; i < 4; i++)
        blocks[i] = take(pool, false, 16 * MIB, 16 * MIB);
    for (int i = 0; i < 3; i++)
        cuda_pool_give(pool, &blocks[i]);
    *last = blocks[3];
    return pool;
}

/* Memory that is kept in pieces is freed when nothing is in use; until then the other lane waits.
 */
static void test_pieces_are_joined_in_turn(void **state)
{
    (void)state;
    struct cuda_block last;
    struct cuda_pool *pool = in_pieces(&last);
    assert_refused(pool, true, 40 * MIB, cudaErrorNotReady);
    assert_refused(pool, false, MIB, cudaErrorNotReady);
    cuda_pool_give(pool, &last);
    assert_refused(pool, false, MIB, cudaErrorNotReady);
    struct cuda_block large = take(pool, true, 40 * MIB, 40 * MIB);
    struct cuda_block small = take(pool, false, MIB, MIB);
    cuda_pool_give(pool, &large);
    cuda_pool_give(pool, &small);
    cuda_pool_destroy(&pool);
}

/* Who waited for that has gone: the other lane waits no longer, and its own waiting goes on. */
static void test_none_of_them_waits_for_who_has_gone(void **state)
{
    (void)state;
    struct cuda_block last;
    struct cuda_pool *pool = in_pieces(&last);
    assert_refused(pool, true, 40 * MIB, cudaErrorNotReady);
    cuda_pool_withdraw(pool, false);
    assert_refused(pool, false, MIB, cudaErrorNotReady);
    cuda_pool_withdraw(pool, true);
    struct cuda_block small = take(pool, false, MIB, MIB);
    cuda_pool_give(pool, &last);
    cuda_pool_give(pool, &small);
    cuda_pool_destroy(&pool);
}

/* A batch that has begun is not kept from its memory by those that the other lane begins. */
static void test_who_has_begun(void **state)
{
    (void)state;
    struct cuda_block found = {0};
    for (int is_long = 0; is_long < 2; is_long++) {
        struct cuda_pool *pool = create(64 * MIB);
        struct cuda_block other = take(pool, !is_long, 40 * MIB, 40 * MIB);
        assert_refused(pool, is_long, 30 * MIB, cudaErrorNotReady);
        struct cuda_block next = {0}; /* nothing is kept for that */
        if (is_long)
            next = take(pool, !is_long, MIB, MIB);
        cuda_pool_give(pool, &next);
        assert_int_equal(cuda_pool_take_on(pool, is_long, 30 * MIB, 30 * MIB, &found),
                         cudaErrorNotReady);
        assert_refused(pool, !is_long, MIB, cudaErrorNotReady);
        cuda_pool_give(pool, &other);
        assert_refused(pool, !is_long, MIB, cudaErrorNotReady);
        assert_int_equal(cuda_pool_take_on(pool, is_long, 30 * MIB, 30 * MIB, &found), cudaSuccess);
        other = take(pool, !is_long, MIB, MIB);
        cuda_pool_give(pool, &other);
        cuda_pool_give(pool, &found);
        cuda_pool_destroy(&pool);
    }
    /* But for the long lane's own batches the short one does not wait. */
    struct cuda_pool *pool = create(64 * MIB);
    struct cuda_block own = take(pool, true, 12 * MIB, 12 * MIB);
    struct cuda_block other = take(pool, false, 32 * MIB, 32 * MIB);
    assert_int_equal(cuda_pool_take_on(pool, true, 30 * MIB, 30 * MIB, &found), cudaErrorNotReady);
    struct cuda_block small = take(pool, false, MIB, MIB);
    cuda_pool_give(pool, &small);
    cuda_pool_give(pool, &other);
    cuda_pool_give(pool, &own);
    cuda_pool_destroy(&pool);
}

static size_t tried(struct cuda_pool *pool, bool is_long, size_t least, size_t wanted)
{
    struct cuda_block block = {0};
    assert_int_equal(cuda_pool_try(pool, is_long, least, wanted, &block), cudaSuccess);
    size_t bytes = block.bytes;
    cuda_pool_give(pool, &block);
    return bytes;
}

/* Who can do without gets what is there, a share at most, and no one waits for it. */
static void test_who_can_do_without(void **state)
{
    (void)state;
    struct cuda_block last;
    struct cuda_pool *pool = in_pieces(&last);
    assert_int_equal(tried(pool, true, 12 * MIB, 60 * MIB), 16 * MIB);
    assert_int_equal(tried(pool, true, 17 * MIB, 60 * MIB), 0);
    struct cuda_block blocks[3];
    for (int i = 0; i < 3; i++)
        blocks[i] = take(pool, false, 16 * MIB, 16 * MIB);
    assert_int_equal(tried(pool, true, 12 * MIB, 60 * MIB), 0);
    for (int i = 0; i < 2; i++)
        cuda_pool_give(pool, &blocks[i]);
    struct cuda_block small = take(pool, false, MIB, MIB); /* none was kept from it */
    cuda_pool_give(pool, &small);
    assert_refused(pool, true, 30 * MIB, cudaErrorNotReady);
    assert_int_equal(tried(pool, false, MIB, MIB), 0); /* it does not go before that, */
    assert_int_equal(tried(pool, true, MIB, MIB), 0);
    assert_refused(pool, false, MIB, cudaErrorNotReady); /* which still waits */
    cuda_pool_give(pool, &blocks[2]);
    cuda_pool_give(pool, &last);
    assert_refused(pool, true, 64 * MIB + 1, cudaErrorMemoryAllocation); /* waits no longer */
    assert_int_equal(tried(pool, false, 17 * MIB, 60 * MIB), 0);
    small = take(pool, true, 40 * MIB, 40 * MIB);
    cuda_pool_give(pool, &small);
    assert_true(tried(pool, false, 4 * MIB, 12 * MIB) <= 16 * MIB); /* not the large one kept */
    cuda_pool_destroy(&pool);
}

/* A try that finds the device full does not start the pool's patience. */
static void test_a_try_of_a_full_device(void **state)
{
    (void)state;
    struct cuda_pool *pool = create(64 * MIB);
    cuda_pool_set_patience(pool, CLOCK_S);
    simt_fill_memory(true);
    assert_int_equal(tried(pool, true, MIB, MIB), 0);
    simt_fill_memory(false);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    struct cuda_block block = take(pool, true, MIB, MIB); /* at once */
    cuda_pool_give(pool, &block);
    cuda_pool_destroy(&pool);
}

/* What is kept can be given up, but for what is in use. */
static void test_trim(void **state)
{
    (void)state;
    int64_t before = simt_allocations();
    struct cuda_pool *pool = create(100 * MIB);
    assert_false(cuda_pool_trim(pool, 0));
    struct cuda_block a = take(pool, false, MIB, MIB), b = take(pool, true, 5 * MIB, 5 * MIB);
    cuda_pool_give(pool, &a);
    assert_true(cuda_pool_trim(pool, 0));
    assert_int_equal(simt_allocations(), before + 2);
    cuda_pool_give(pool, &b);
    assert_false(cuda_pool_trim(pool, 0));
    assert_int_equal(simt_allocations(), before);
    a = take(pool, false, MIB, MIB);
    cuda_pool_give(pool, &a);
    assert_true(cuda_pool_trim(pool, CLOCK_S)); /* the one that asks, it was in use a moment ago */
    assert_false(cuda_pool_trim(pool, 0));
    a = take(pool, false, 100 * MIB, 100 * MIB);
    cuda_pool_give(pool, &a);
    cuda_pool_destroy(&pool);
}

/* The device has less than the budget. */
static void test_device_is_full(void **state)
{
    (void)state;
    size_t available, total;
    assert_int_equal(cudaMemGetInfo(&available, &total), cudaSuccess);
    struct cuda_pool *pool = create(8 * total);
    struct cuda_block block = take(pool, false, MIB, MIB);
    assert_refused(pool, false, 2 * total, cudaErrorNotReady);
    cuda_pool_give(pool, &block);
    assert_refused(pool, false, 2 * total, cudaErrorMemoryAllocation);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    cuda_pool_destroy(&pool);
    pool = create(total / 4); /* what another engine of the device has changes nothing */
    block = take(pool, false, MIB, MIB);
    struct cuda_pool *other = create(0);
    assert_int_equal(cuda_pool_bytes_max(other), total / 2);
    cuda_pool_destroy(&other);
    cuda_pool_give(pool, &block);
    cuda_pool_destroy(&pool);
}

/* Another engine has the device's memory and is ending: that is waited for, once. */
static void test_another_engine_has_the_memory(void **state)
{
    const uint64_t patience_ns = 100 * CLOCK_MS;
    (void)state;
    struct cuda_pool *pool = create(64 * MIB);
    cuda_pool_set_patience(pool, patience_ns);
    for (int i = 0; i < 2; i++) {
        struct cuda_block block = {0};
        simt_fill_memory(true);
        uint64_t start_ns = clock_now_ns();
        assert_refused(pool, true, 64 * MIB + 1, cudaErrorMemoryAllocation); /* beyond the budget */
        assert_refused(pool, true, MIB, cudaErrorNotReady);
        cudaError_t status = cudaErrorNotReady;
        while (status == cudaErrorNotReady && clock_now_ns() < start_ns + 20 * patience_ns)
            status = cuda_pool_take(pool, true, MIB, MIB, &block);
        assert_int_equal(status, cudaErrorMemoryAllocation);
        assert_true(clock_now_ns() >= start_ns + patience_ns);
        assert_refused(pool, true, MIB, cudaErrorMemoryAllocation); /* not again */
        simt_fill_memory(false);
        block = take(pool, true, MIB, MIB);
        cuda_pool_give(pool, &block);
        assert_false(cuda_pool_trim(pool, 0));
    }
    cuda_pool_destroy(&pool);
}

/* It comes back while somebody waits, who does not keep the other lane from it. */
static void test_memory_that_comes_back(void **state)
{
    (void)state;
    struct cuda_pool *pool = create(64 * MIB);
    cuda_pool_set_patience(pool, CLOCK_S);
    struct cuda_block block = {0};
    simt_fill_memory(true);
    assert_refused(pool, true, MIB, cudaErrorNotReady);
    simt_fill_memory(false);
    uint64_t start_ns = clock_now_ns();
    cudaError_t status = cudaErrorNotReady;
    while (status == cudaErrorNotReady && clock_now_ns() < start_ns + CLOCK_S)
        status = cuda_pool_take(pool, false, MIB, MIB, &block);
    assert_int_equal(status, cudaSuccess);
    cuda_pool_give(pool, &block);
    cuda_pool_destroy(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_are_used_again),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_trim),
        cmocka_unit_test(test_what_is_kept_is_no_way_round_the_lanes),
        cmocka_unit_test(test_pieces_are_joined_in_turn),
        cmocka_unit_test(test_none_of_them_waits_for_who_has_gone),
        cmocka_unit_test(test_who_has_begun),
        cmocka_unit_test(test_who_can_do_without),
        cmocka_unit_test(test_a_try_of_a_full_device),
        cmocka_unit_test(test_device_is_full),
        cmocka_unit_test(test_another_engine_has_the_memory),
        cmocka_unit_test(test_memory_that_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
