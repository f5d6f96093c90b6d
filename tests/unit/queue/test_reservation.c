/* tests/unit/queue/test_reservation.c: who holds how much memory, and who waits. */
#include "tests/unit/queue/bed.h"

#define KIB INT64_C(1024)
#define MAX (16 * 1024 * KIB)
#define STAGING (1024 * KIB)

struct guest {
    struct queue_reservation reservation; /* first */
    int calls;                            /* of on_room */
};

static void on_room(struct queue_reservation *reservation)
{
    ((struct guest *)reservation)->calls++;
}

static struct bench open_arena(int64_t client_bytes_max)
{
    struct queue_limits bounded = limits;
    bounded.requests_max = 1 << 20;
    bounded.client_requests_max = 0;
    bounded.bytes_max = MAX;
    bounded.staging_bytes_max = STAGING;
    bounded.client_bytes_max = client_bytes_max;
    return bench_open(&bounded);
}

static void come(struct bench *bench, struct guest *guest, uint32_t client, int64_t need_bytes)
{
    struct failure failure;
    *guest = (struct guest){
        .reservation = {.client = client, .need_bytes = need_bytes, .on_room = on_room}};
    assert_int_equal(queue_enter(bench->queue, &guest->reservation, &failure), ERROR_NONE);
}

static bool take(struct bench *bench, struct guest *guest)
{
    return queue_take(bench->queue, &guest->reservation);
}

static void go(struct bench *bench, struct guest *guest)
{
    queue_leave(bench->queue, &guest->reservation);
}

/* A small reservation has all from the start, a large one nothing until it asks. */
static void test_small_and_large(void **state)
{
    (void)state;
    struct bench bench = open_arena(0);
    struct guest small, large;
    come(&bench, &small, 1, QUEUE_RESERVATION_SMALL);
    come(&bench, &large, 2, QUEUE_RESERVATION_SMALL + 1);
    assert_int_equal(small.reservation.held_bytes, QUEUE_RESERVATION_SMALL);
    assert_int_equal(large.reservation.held_bytes, 0);
    assert_true(take(&bench, &large));
    assert_int_equal(large.reservation.held_bytes, QUEUE_RESERVATION_SMALL + 1);
    go(&bench, &small);
    go(&bench, &large);
    assert_int_equal(queue_pending(bench.queue), 0);
    bench_close(&bench);
}

/* Limits may change at any time; who is in already stays. */
static void test_limits_change(void **state)
{
    (void)state;
    struct queue_limits changed = limits;
    struct bench bench = open_arena(0);
    struct guest guests[4];
    struct failure failure;
    for (int i = 0; i < 3; i++)
        come(&bench, &guests[i], (uint32_t)i % 2, KIB);
    guests[3] = (struct guest){0};
    guests[3].reservation =
        (struct queue_reservation){.client = 0, .need_bytes = KIB, .on_room = on_room};
    changed.requests_max = 3;
    queue_set_limits(bench.queue, &changed);
    assert_int_equal(queue_enter(bench.queue, &guests[3].reservation, &failure), ERROR_FULL);
    changed.requests_max = 4;
    changed.client_requests_max = 2;
    queue_set_limits(bench.queue, &changed);
    assert_int_equal(queue_enter(bench.queue, &guests[3].reservation, &failure),
                     ERROR_CLIENT_QUOTA);
    changed.client_requests_max = 3;
    queue_set_limits(bench.queue, &changed);
    assert_int_equal(queue_enter(bench.queue, &guests[3].reservation, &failure), ERROR_NONE);
    for (int i = 0; i < 4; i++)
        go(&bench, &guests[i]);
    bench_close(&bench);
}

/* A thousand that declare the whole arena, and send nothing, are in no client's way. */
static void test_declarations_take_nothing(void **state)
{
    (void)state;
    struct bench bench = open_arena(0);
    static struct guest liars[1000];
    struct guest guest;
    for (int i = 0; i < 1000; i++)
        come(&bench, &liars[i], (uint32_t)i, MAX);
    come(&bench, &guest, 5000, MAX / 2);
    assert_true(take(&bench, &guest));
    go(&bench, &guest);
    for (int i = 0; i < 1000; i++)
        go(&bench, &liars[i]);
    bench_close(&bench);
}

/* What fits alone fits, if only after the others. */
static void test_all_of_the_arena(void **state)
{
    (void)state;
    struct bench bench = open_arena(0);
    struct guest a, b;
    come(&bench, &a, 1, MAX);
    come(&bench, &b, 2, MAX);
    assert_true(take(&bench, &a));
    assert_false(take(&bench, &b));
    assert_true(atomic_load(queue_short_since_ns(bench.queue)) != 0);
    assert_int_equal(b.calls, 0);
    go(&bench, &a);
    assert_int_equal(b.calls, 1);
    assert_int_equal(b.reservation.held_bytes, MAX);
    assert_int_equal(atomic_load(queue_short_since_ns(bench.queue)), 0);
    go(&bench, &b);
    bench_close(&bench);
}

/* Small ones overtake those that wait, and do not fill their place. */
static void test_small_ones_overtake(void **state)
{
    (void)state;
    struct bench bench = open_arena(0);
    struct guest running, waiting;
    static struct guest small[200];
    come(&bench, &running, 1, MAX * 5 / 8);
    assert_true(take(&bench, &running));
    come(&bench, &waiting, 2, MAX / 2);
    assert_false(take(&bench, &waiting));
    int whole = 0;
    for (int i = 0; i < 200; i++) {
        come(&bench, &small[i], 3, QUEUE_RESERVATION_SMALL);
        whole += small[i].reservation.held_bytes == QUEUE_RESERVATION_SMALL;
    }
    assert_int_equal(whole, MAX / 4 / QUEUE_RESERVATION_SMALL);
    go(&bench, &running);
    assert_int_equal(waiting.calls, 1);
    go(&bench, &waiting);
    for (int i = 0; i < 200; i++)
        go(&bench, &small[i]);
    bench_close(&bench);
}

/* Clients take turns, and who is above its share comes last, however long it has waited. */
static void test_turns_and_shares(void **state)
{
    (void)state;
    struct bench bench = open_arena(MAX / 2);
    struct guest first, greedy[2], others[2];
    const int64_t quarter = MAX / 4;
    come(&bench, &first, 1, 3 * quarter); /* alone: more than its share */
    assert_true(take(&bench, &first));
    for (int i = 0; i < 2; i++) {
        come(&bench, &greedy[i], 1, quarter);
        assert_false(take(&bench, &greedy[i]));
    }
    for (int i = 0; i < 2; i++) {
        come(&bench, &others[i], 2 + (uint32_t)i, quarter);
        assert_false(take(&bench, &others[i]));
    }
    go(&bench, &first);
    assert_int_equal(others[0].calls + others[1].calls, 2);
    assert_int_equal(greedy[0].calls + greedy[1].calls, 1); /* a sixteenth is the small ones' */
    go(&bench, &others[0]);
    assert_int_equal(greedy[0].calls + greedy[1].calls, 2);
    go(&bench, &others[1]);
    go(&bench, &greedy[0]);
    go(&bench, &greedy[1]);
    bench_close(&bench);
}

/* Who is above its share gets nothing of what another waits for, though it would be enough. */
static void test_above_the_share(void **state)
{
    (void)state;
    struct bench bench = open_arena(MAX / 2);
    struct guest holds, wants, other;
    come(&bench, &holds, 1, MAX / 2);
    assert_true(take(&bench, &holds));
    come(&bench, &wants, 1, MAX / 8);
    come(&bench, &other, 2, MAX / 2);
    assert_false(take(&bench, &other)); /* a sixteenth is the small ones' */
    assert_false(take(&bench, &wants));
    struct guest small;
    come(&bench, &small, 3, KIB);
    go(&bench, &small); /* a chance, which is not for it */
    assert_int_equal(wants.calls, 0);
    assert_true(queue_stop_waiting(bench.queue, &other.reservation));
    assert_int_equal(wants.calls, 1);
    go(&bench, &other);
    go(&bench, &wants);
    go(&bench, &holds);
    bench_close(&bench);
}

static void test_stopping(void **state)
{
    (void)state;
    struct bench bench = open_arena(0);
    struct guest running, waiting, behind;
    come(&bench, &running, 1, MAX);
    assert_true(take(&bench, &running));
    come(&bench, &waiting, 2, MAX);
    come(&bench, &behind, 3, MAX / 2);
    assert_false(take(&bench, &waiting));
    assert_false(take(&bench, &behind));
    assert_true(queue_stop_waiting(bench.queue, &waiting.reservation));
    assert_false(queue_stop_waiting(bench.queue, &waiting.reservation));
    go(&bench, &waiting);
    assert_int_equal(behind.calls, 0);
    go(&bench, &running);
    assert_int_equal(behind.calls, 1);
    assert_false(queue_stop_waiting(bench.queue, &behind.reservation));
    go(&bench, &behind);
    assert_int_equal(waiting.calls, 0);
    bench_close(&bench);
}

/* Bytes at once, for what was not foreseen; and a wait for any piece. */
static void test_reserve(void **state)
{
    (void)state;
    struct bench bench = open_arena(0);
    struct guest a, b;
    struct failure failure;
    come(&bench, &a, 1, KIB);
    come(&bench, &b, 2, KIB);
    assert_int_equal(queue_reserve(bench.queue, &a.reservation, MAX - 2 * KIB, &failure),
                     ERROR_NONE);
    assert_int_equal(queue_reserve(bench.queue, &b.reservation, 1, &failure), ERROR_FULL);
    assert_false(queue_await_piece(bench.queue, &b.reservation));
    queue_unreserve(bench.queue, &a.reservation, KIB);
    assert_int_equal(b.calls, 1);
    assert_int_equal(queue_reserve(bench.queue, &b.reservation, KIB, &failure), ERROR_NONE);
    queue_unreserve(bench.queue, &a.reservation, KIB);
    assert_true(
        queue_await_piece(bench.queue, &b.reservation)); /* something was given back since */
    go(&bench, &a);
    go(&bench, &b);
    bench_close(&bench);
}

/* Of staging memory a client has a quarter, but one body what it wants; others are not held up. */
static void test_staging(void **state)
{
    (void)state;
    struct bench bench = open_arena(0);
    struct guest greedy[3], other;
    for (int i = 0; i < 3; i++)
        come(&bench, &greedy[i], 1, MAX);
    come(&bench, &other, 2, MAX);
    assert_true(queue_take_staging(bench.queue, &greedy[0].reservation, STAGING / 8));
    assert_true(queue_take_staging(bench.queue, &greedy[1].reservation, STAGING / 8));
    assert_false(queue_take_staging(bench.queue, &greedy[2].reservation, STAGING / 8));
    assert_true(queue_take_staging(bench.queue, &other.reservation, STAGING / 2));
    queue_leave_staging(bench.queue, &greedy[0].reservation);
    assert_int_equal(greedy[2].calls, 1);
    assert_int_equal(greedy[2].reservation.staged_bytes, STAGING / 8);
    assert_false(queue_take_staging(bench.queue, &greedy[0].reservation, STAGING));
    go(&bench, &other);
    assert_int_equal(greedy[0].calls, 0);
    assert_true(queue_stop_waiting(bench.queue, &greedy[0].reservation));
    for (int i = 0; i < 3; i++)
        go(&bench, &greedy[i]);
    bench_close(&bench);
}

/* ---- None waits for ever ---- */

#define CROWD 40

static uint64_t random_state;

static int64_t random_below(int64_t bound)
{
    random_state = random_state * 6364136223846793005U + 1442695040888963407U;
    return (int64_t)((random_state >> 33) % (uint64_t)bound);
}

/* Random reservations in random order. One that has its part of the arena ends some time. A long
 * time in which nothing happens would be a deadlock. */
static void test_no_room_waits_for_ever(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        random_state = seed;
        struct bench bench = open_arena(seed % 2 == 0 ? MAX / 2 : 0);
        struct guest guests[CROWD];
        bool waits[CROWD] = {false}, ended[CROWD] = {false};
        for (int i = 0; i < CROWD; i++) {
            int64_t most = random_below(4) == 0 ? MAX : MAX / 8;
            come(&bench, &guests[i], (uint32_t)random_below(6), 1 + random_below(most));
        }
        for (int idle = 0, left = CROWD; left > 0; idle++) {
            assert_true(idle < 100 * CROWD);
            int i = (int)random_below(CROWD);
            struct queue_reservation *reservation = &guests[i].reservation;
            if (waits[i] && guests[i].calls > 0) {
                waits[i] = false;
                guests[i].calls = 0;
            }
            if (ended[i] || waits[i])
                continue;
            if (reservation->held_bytes < reservation->need_bytes) {
                int64_t staged = 1 + random_below(STAGING / 4);
                waits[i] = reservation->staged_bytes == 0
                               ? !queue_take_staging(bench.queue, reservation, staged)
                               : !take(&bench, &guests[i]);
                idle = 0;
                continue;
            }
            go(&bench, &guests[i]);
            ended[i] = true;
            left--;
            idle = 0;
        }
        assert_int_equal(queue_pending(bench.queue), 0);
        bench_close(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_and_large),
        cmocka_unit_test(test_limits_change),
        cmocka_unit_test(test_declarations_take_nothing),
        cmocka_unit_test(test_all_of_the_arena),
        cmocka_unit_test(test_small_ones_overtake),
        cmocka_unit_test(test_turns_and_shares),
        cmocka_unit_test(test_above_the_share),
        cmocka_unit_test(test_stopping),
        cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_staging),
        cmocka_unit_test(test_no_room_waits_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
