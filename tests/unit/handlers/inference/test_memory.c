/* An item's arena slots: what the body takes, how takes are served, what is counted. */
#include "../fake_queue.h"

#include "handlers/inference/memory.h"

#define ARENA_BYTES (4 << 20)

static void test_takes(void **state)
{
    (void)state;
    struct arena *arena;
    struct queue queue = {0};
    struct failure failure;
    assert_int_equal(arena_create(ARENA_BYTES, &arena, &failure), ERROR_NONE);
    struct item_memory memory = {0};
    int64_t bytes_in = handlers__memory_body_bytes(arena, 100, 70, 1000);
    assert_int_equal(bytes_in, 1536);
    assert_int_equal(handlers__memory_body_bytes(arena, 0, 0, 0), 512);
    assert_int_equal(handlers__memory_body_bytes(arena, ARENA_BYTES, 0, 1), ARENA_BYTES);
    assert_int_equal(handlers__memory_body_bytes(arena, INT64_MAX, 1, 1), ARENA_BYTES);
    assert_int_equal(queue_enter(&queue, 5, bytes_in, &failure), ERROR_NONE);
    handlers__memory_init(&memory, arena, &queue, 5, bytes_in);
    unsigned char *at = handlers__memory_body(&memory, 100, 70, 1000);
    assert_int_equal(memory.reserved_bytes, bytes_in); /* and no more had to be asked for */
    assert_int_equal(((uintptr_t)at + 70) % 64, 0);
    assert_int_equal(memory.count, 1);
    unsigned char *next = handlers__memory_take(&memory, 10);
    assert_true(next >= at + 100);
    assert_int_equal((uintptr_t)next % 64, 0);
    assert_int_equal(memory.count, 1);
    handlers__memory_drop_body(&memory); /* not alone in its slot: stays */
    assert_true(arena_used_bytes(arena) > 0);
    /* A buffer that doubles step by step, as inflating text does. */
    for (int64_t bytes = 1024; bytes <= 1 << 20; bytes *= 2)
        assert_non_null(memory.space.take(&memory.space, bytes));
    assert_true(memory.count <= HANDLERS_MEMORY_SLOTS);
    assert_null(memory.space.take(&memory.space, ARENA_BYTES));
    assert_int_equal(handlers__memory_failure(&memory, &failure), ERROR_TOO_LARGE);
    assert_null(memory.space.take(&memory.space, -1));
    assert_null(memory.space.take(&memory.space, INT64_MAX));
    assert_int_equal(queue.reserved_bytes, arena_used_bytes(arena));
    queue_leave(&queue, 5, handlers__memory_free(&memory));
    assert_int_equal(arena_used_bytes(arena), 0);
    assert_int_equal(queue.reserved_bytes, 0);

    /* More takes than slots: later slots are longer. */
    for (int i = 0; i < 4 * HANDLERS_MEMORY_SLOTS; i++)
        assert_non_null(handlers__memory_take(&memory, 5000));
    queue_unreserve(&queue, 5, handlers__memory_free(&memory));

    memset(&memory, 0, sizeof memory);
    handlers__memory_init(&memory, arena, &queue, 5, 0);
    assert_non_null(handlers__memory_body(&memory, 5000, 0, 0));
    assert_non_null(handlers__memory_take(&memory, 1)); /* never behind a body alone */
    assert_int_equal(memory.count, 2);
    uint64_t before = arena_used_bytes(arena);
    handlers__memory_drop_body(&memory);
    handlers__memory_drop_body(&memory);
    assert_int_equal(before - arena_used_bytes(arena), 5120);
    /* What was counted once stays counted: the request will need it again. */
    assert_int_equal(queue.reserved_bytes, before);
    assert_int_equal(handlers__memory_free(&memory), before);
    queue_unreserve(&queue, 5, (int64_t)before);
    assert_int_equal(arena_used_bytes(arena), 0);
    assert_int_equal(queue.reserved_bytes, 0);
    arena_destroy(&arena);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
