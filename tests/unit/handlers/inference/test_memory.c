/* An item's arena slots: what the body takes, how takes are served, what is counted. */
#include "../fake_queue.h"

#include "handlers/inference/memory.h"

#define ARENA_BYTES (4 << 20)

static struct arena *arena;
static struct queue queue;
static struct item_memory memory;
static int rooms_made;

static void on_room(struct queue_reservation *reservation)
{
    assert_ptr_equal(reservation, &memory.reservation);
    rooms_made++;
}

/* A body's memory, planned and counted in. */
static void begin(int64_t length, int64_t lead, int64_t more_bytes)
{
    struct failure failure;
    memset(&memory, 0, sizeof memory);
    handlers__memory_init(&memory, arena, &queue);
    memory.reservation.client = 5;
    memory.reservation.on_room = on_room;
    assert_int_equal(handlers__memory_plan(&memory, length, lead, more_bytes, &failure),
                     ERROR_NONE);
    memory.reservation.need_bytes = memory.body_whole;
    assert_int_equal(queue_enter(&queue, &memory.reservation, &failure), ERROR_NONE);
}

static void end(void)
{
    handlers__memory_free(&memory);
    queue_leave(&queue, &memory.reservation);
    assert_int_equal(arena_used_bytes(arena), 0);
    assert_int_equal(queue.reserved_bytes, 0);
    assert_int_equal(queue.staged_bytes, 0);
}

static void test_takes(void **state)
{
    (void)state;
    struct failure failure;
    int64_t room_bytes;
    begin(100, 70, 1000);
    assert_int_equal(memory.body_whole, 1536);
    assert_true(handlers__memory_grow(&memory, 1));
    unsigned char *at = handlers__memory_body(&memory, &room_bytes);
    assert_int_equal(room_bytes, 100);
    assert_int_equal(queue.reserved_bytes, 1536); /* and no more had to be asked for */
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
    end();
}

/* Later slots are longer. */
static void test_more_takes_than_slots(void **state)
{
    (void)state;
    begin(0, 0, 0);
    for (int i = 0; i < 4 * HANDLERS_MEMORY_SLOTS; i++)
        assert_non_null(handlers__memory_take(&memory, 5000));
    end();
}

static void test_dropped_body(void **state)
{
    (void)state;
    begin(5000, 0, 0);
    assert_true(handlers__memory_grow(&memory, 5000));
    assert_non_null(handlers__memory_take(&memory, 1)); /* never behind a body alone */
    assert_int_equal(memory.count, 2);
    uint64_t before = arena_used_bytes(arena);
    handlers__memory_drop_body(&memory);
    handlers__memory_drop_body(&memory);
    assert_int_equal(before - arena_used_bytes(arena), 5120);
    /* What was counted once stays counted: the request will need it again. */
    assert_int_equal(queue.reserved_bytes, before);
    end();
}

static void test_too_large(void **state)
{
    (void)state;
    static const int64_t rows[][3] = {
        {ARENA_BYTES, 0, 1}, {INT64_MAX, 1, 1}, {1, 0, INT64_MAX}, {ARENA_BYTES, 1, 0}};
    struct failure failure;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memset(&memory, 0, sizeof memory);
        handlers__memory_init(&memory, arena, &queue);
        assert_int_equal(
            handlers__memory_plan(&memory, rows[i][0], rows[i][1], rows[i][2], &failure),
            ERROR_TOO_LARGE);
    }
}

/* A long body lies in staging memory first, and in the arena before it is all there; what has come
 * is never lost. */
static void test_long_body(void **state)
{
    (void)state;
    const int64_t length = 1 << 20, piece = 10000;
    int64_t room_bytes, staged_most = 0;
    begin(length, 0, length);
    for (int64_t at = 0; at < length; at += piece) {
        int64_t bytes = length - at < piece ? length - at : piece;
        assert_true(handlers__memory_grow(&memory, at + bytes));
        unsigned char *body = handlers__memory_body(&memory, &room_bytes);
        assert_true(room_bytes >= at + bytes && room_bytes <= length);
        assert_true(queue.reserved_bytes == 0 || at > 0);
        staged_most = queue.staged_bytes > staged_most ? queue.staged_bytes : staged_most;
        for (int64_t i = at; i < at + bytes; i++)
            body[i] = (unsigned char)(i * 7 % 251);
    }
    assert_true(staged_most >= 32 << 10 && staged_most < 512 << 10);
    assert_int_equal(queue.staged_bytes, 0);
    assert_true(handlers__memory_settle(&memory));
    const unsigned char *body = handlers__memory_body(&memory, &room_bytes);
    assert_int_equal(room_bytes, length);
    for (int64_t i = 0; i < length; i++)
        if (body[i] != (unsigned char)(i * 7 % 251))
            fail_msg("byte %lld", (long long)i);
    end();
}

/* A body without memory waits for it, for staging memory, the arena, or a piece of it. */
static void test_waiting(void **state)
{
    (void)state;
    const int64_t length = 1 << 20;
    struct arena_slot slots[2];
    int64_t room_bytes;
    rooms_made = 0;
    begin(length, 0, length);
    queue.is_short = true;
    assert_false(handlers__memory_grow(&memory, 1));
    fake_give_room(&queue);
    assert_int_equal(rooms_made, 1);
    assert_true(handlers__memory_grow(&memory, 1));
    handlers__memory_body(&memory, &room_bytes)[0] = 77;
    assert_false(handlers__memory_grow(&memory, length));
    fake_give_room(&queue);
    /* Half of the arena is free, in pieces that are too short. */
    assert_int_equal(arena_alloc(arena, ARENA_BYTES / 2 - 4096, &slots[0]), ERROR_NONE);
    assert_int_equal(arena_alloc(arena, ARENA_BYTES / 4, &slots[1]), ERROR_NONE);
    arena_free(arena, &slots[0]);
    assert_false(handlers__memory_grow(&memory, length));
    arena_free(arena, &slots[1]);
    fake_give_room(&queue);
    assert_int_equal(rooms_made, 3);
    assert_true(handlers__memory_grow(&memory, length));
    assert_int_equal(handlers__memory_body(&memory, &room_bytes)[0], 77);
    assert_int_equal(room_bytes, length);
    queue.is_short = false;
    end();
}

static int make_arena(void **state)
{
    (void)state;
    struct failure failure;
    return arena_create(ARENA_BYTES, &arena, &failure) == ERROR_NONE ? 0 : -1;
}

static int free_arena(void **state)
{
    (void)state;
    arena_destroy(&arena);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takes),        cmocka_unit_test(test_more_takes_than_slots),
        cmocka_unit_test(test_dropped_body), cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_long_body),    cmocka_unit_test(test_waiting),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
