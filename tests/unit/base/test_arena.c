/* tests/unit/base/test_arena.c: slots against a naive model, from one thread and from several.
 *
 * The model is a list of the slots in use. It finds overlaps, and it knows the longest free run,
 * and so when the arena may refuse.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"

#define MIB (INT64_C(1) << 20)
#define SLOTS 200
#define THREADS 4

static uint64_t random_bits(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static struct arena *create(int64_t bytes)
{
    struct arena *arena;
    struct failure failure;
    if (arena_create(bytes, &arena, &failure) != ERROR_NONE)
        fail_msg("%s", failure.detail);
    return arena;
}

/* The whole arena in one slot: possible only when every free run was joined with its neighbours. */
static void assert_whole(struct arena *arena)
{
    struct arena_slot all = {0};
    assert_int_equal(arena_used_bytes(arena), 0);
    assert_int_equal(arena_alloc(arena, (int64_t)arena_bytes(arena), &all), ERROR_NONE);
    assert_int_equal(all.offset_bytes, 0);
    assert_int_equal(all.bytes, arena_bytes(arena));
    arena_free(arena, &all);
}

static void test_create(void **state)
{
    (void)state;
    struct arena *arena = create(1);
    assert_int_equal(arena_bytes(arena), 2 * MIB);
    assert_whole(arena);
    arena_destroy(&arena);
    assert_null(arena);
    arena_destroy(&arena);

    static const int64_t impossible[] = {0, -1, INT64_MIN, INT64_MAX, INT64_C(1) << 42};
    for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
        struct failure failure = {0};
        assert_int_equal(arena_create(impossible[i], &arena, &failure), ERROR_BAD_OPTION);
        assert_null(arena);
        assert_non_null(strstr(failure.detail, "allowed"));
    }
}

/* What another process is given: a descriptor that keeps its size, closes on exec, and shows what
 * the arena's own map shows. */
static void test_descriptor(void **state)
{
    (void)state;
    struct arena *arena = create(2 * MIB);
    int fd = arena_fd(arena);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(fcntl(fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW),
                     F_SEAL_SHRINK | F_SEAL_GROW);
    assert_int_equal(ftruncate(fd, 4096), -1);
    assert_int_equal(errno, EPERM);
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_size, 2 * MIB);

    unsigned char *other = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(other != MAP_FAILED);
    struct arena_slot slot = {0};
    assert_int_equal(arena_alloc(arena, 1000, &slot), ERROR_NONE);
    memset(arena_base(arena) + slot.offset_bytes, 0x5a, slot.bytes);
    assert_int_equal(other[slot.offset_bytes + 999], 0x5a);
    other[slot.offset_bytes] = 1;
    assert_int_equal(arena_base(arena)[slot.offset_bytes], 1);
    arena_free(arena, &slot);
    munmap(other, 2 * MIB);
    arena_destroy(&arena);
}

struct size_row {
    int64_t bytes;
    uint64_t granted; /* 0: refused */
};

static const struct size_row size_rows[] = {
    {0, 512},
    {1, 512},
    {511, 512},
    {512, 512},
    {513, 1024},
    {MIB, MIB},
    {4 * MIB, 4 * MIB},
    {4 * MIB + 1, 0},
    {INT64_MAX, 0},
    {4 * MIB - 511, 4 * MIB},
    {4 * MIB - 512, 4 * MIB - 512},
};

static void test_sizes(void **state)
{
    (void)state;
    struct arena *arena = create(4 * MIB);
    for (size_t i = 0; i < sizeof size_rows / sizeof size_rows[0]; i++) {
        struct arena_slot slot = {77, 88};
        enum error error = arena_alloc(arena, size_rows[i].bytes, &slot);
        if (size_rows[i].granted == 0) {
            assert_int_equal(error, ERROR_FULL);
            assert_true(slot.offset_bytes == 77 && slot.bytes == 88);
            continue;
        }
        assert_int_equal(error, ERROR_NONE);
        assert_int_equal(slot.bytes, size_rows[i].granted);
        assert_int_equal(slot.offset_bytes % ARENA_GRANULE, 0);
        assert_int_equal(arena_used_bytes(arena), slot.bytes);
        arena_free(arena, &slot);
        assert_true(slot.offset_bytes == 0 && slot.bytes == 0);
        arena_free(arena, &slot); /* no slot: nothing happens */
    }
    assert_whole(arena);
    arena_destroy(&arena);
}

/* Every granule by itself, given back in three orders. */
static void test_granules(void **state)
{
    (void)state;
    enum {
        COUNT = 2 * 1024 * 1024 / ARENA_GRANULE
    };
    static struct arena_slot slots[COUNT];
    struct arena *arena = create(2 * MIB);
    for (int order = 0; order < 3; order++) {
        struct arena_slot more = {0};
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(arena_alloc(arena, 1, &slots[i]), ERROR_NONE);
        assert_int_equal(arena_alloc(arena, 1, &more), ERROR_FULL);
        assert_int_equal(arena_used_bytes(arena), 2 * MIB);
        for (int i = 0; i < COUNT; i++) {
            int at = order == 0 ? i : order == 1 ? COUNT - 1 - i : (i * 1237) % COUNT;
            arena_free(arena, &slots[at]);
        }
        assert_whole(arena);
    }
    arena_destroy(&arena);
}

/* What is kept for the next short request stands in no one's way. */
static void test_kept_slots_return(void **state)
{
    (void)state;
    static struct arena_slot slots[2000];
    struct arena *arena = create(64 * MIB);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2000; i++)
            assert_int_equal(arena_alloc(arena, 512 * (1 + i % 40), &slots[i]), ERROR_NONE);
        for (int i = 0; i < 2000; i++)
            arena_free(arena, &slots[i]);
        assert_int_equal(arena_used_bytes(arena), 0);
        if (round > 0)
            assert_whole(arena);
    }
    arena_destroy(&arena);
}

/* ---- Against the model ---- */

struct model {
    struct arena_slot slots[SLOTS]; /* bytes 0: not in use */
    uint64_t used_bytes;
};

static int by_offset(const void *a, const void *b)
{
    const struct arena_slot *left = a, *right = b;
    return left->offset_bytes < right->offset_bytes ? -1 : left->offset_bytes > right->offset_bytes;
}

/* The longest free run; fails on an overlap or a slot outside the arena. */
static uint64_t check_model(const struct arena *arena, const struct model *model)
{
    struct arena_slot sorted[SLOTS + 1];
    int count = 0;
    for (int i = 0; i < SLOTS; i++) {
        if (model->slots[i].bytes > 0)
            sorted[count++] = model->slots[i];
    }
    qsort(sorted, (size_t)count, sizeof sorted[0], by_offset);
    sorted[count] = (struct arena_slot){arena_bytes(arena), 0};
    uint64_t longest = 0, behind = 0;
    for (int i = 0; i <= count; i++) {
        assert_true(sorted[i].offset_bytes >= behind);
        uint64_t gap = sorted[i].offset_bytes - behind;
        longest = gap > longest ? gap : longest;
        behind = sorted[i].offset_bytes + sorted[i].bytes;
    }
    assert_int_equal(arena_used_bytes(arena), model->used_bytes);
    return longest;
}

static int64_t random_size(uint64_t *random)
{
    uint64_t most = UINT64_C(1) << (random_bits(random) % 21);
    return (int64_t)(random_bits(random) % most) + 1;
}

static void model_step(struct arena *arena, struct model *model, uint64_t *random)
{
    struct arena_slot *slot = &model->slots[random_bits(random) % SLOTS];
    if (slot->bytes > 0) {
        model->used_bytes -= slot->bytes;
        arena_free(arena, slot);
        return;
    }
    uint64_t longest = check_model(arena, model);
    int64_t bytes = random_size(random);
    enum error error = arena_alloc(arena, bytes, slot);
    if (error == ERROR_NONE) {
        assert_true(slot->bytes >= (uint64_t)bytes);
        assert_true(slot->bytes < (uint64_t)bytes + ARENA_GRANULE);
        model->used_bytes += slot->bytes;
        return;
    }
    assert_int_equal(error, ERROR_FULL);
    assert_int_equal(slot->bytes, 0);
    /* With so few slots no class is longer than what is searched: a refusal means no room. */
    assert_true(longest < (uint64_t)bytes);
}

static void test_model(void **state)
{
    (void)state;
    uint64_t random = 4711;
    for (int round = 0; round < 4; round++) {
        struct arena *arena = create(4 * MIB + round * 6 * MIB);
        struct model model = {0};
        for (int step = 0; step < 5000; step++)
            model_step(arena, &model, &random);
        (void)check_model(arena, &model);
        for (int i = 0; i < SLOTS; i++)
            arena_free(arena, &model.slots[i]);
        assert_whole(arena);
        arena_destroy(&arena);
    }
}

/* ---- Several threads ---- */

struct worker {
    struct arena *arena;
    uint64_t random;
    int refused, damaged;
};

/* Fills each slot with its own byte and finds it again before giving the slot back. */
static void *work(void *context)
{
    struct worker *worker = context;
    struct arena_slot slots[32] = {0};
    unsigned char marks[32] = {0};
    for (int step = 0; step < 8000; step++) {
        int at = (int)(random_bits(&worker->random) % 32);
        unsigned char *data = arena_base(worker->arena) + slots[at].offset_bytes;
        if (slots[at].bytes > 0) {
            worker->damaged += data[0] != marks[at] || data[slots[at].bytes - 1] != marks[at];
            arena_free(worker->arena, &slots[at]);
            continue;
        }
        int64_t bytes = (int64_t)(random_bits(&worker->random) % 400000) + 1;
        if (arena_alloc(worker->arena, bytes, &slots[at]) != ERROR_NONE) {
            worker->refused++;
            continue;
        }
        marks[at] = (unsigned char)random_bits(&worker->random);
        data = arena_base(worker->arena) + slots[at].offset_bytes;
        data[0] = data[slots[at].bytes - 1] = marks[at];
    }
    for (int i = 0; i < 32; i++)
        arena_free(worker->arena, &slots[i]);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct arena *arena = create(4 * MIB); /* at times too small for one alone: refusals happen */
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.arena = arena, .random = 1000 + (uint64_t)i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    int refused = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].damaged, 0);
        refused += workers[i].refused;
    }
    assert_true(refused > 0);
    assert_whole(arena);
    arena_destroy(&arena);
}

/* ---- Bugs are caught ---- */

static void free_dd(struct arena *arena, struct arena_slot slot)
{
    struct arena_slot again = slot;
    arena_free(arena, &slot);
    arena_free(arena, &again);
}

static void free_part(struct arena *arena, struct arena_slot slot)
{
    slot.bytes -= ARENA_GRANULE;
    arena_free(arena, &slot);
}

static void free_outside(struct arena *arena, struct arena_slot slot)
{
    slot.offset_bytes += arena_bytes(arena);
    arena_free(arena, &slot);
}

static void destroy_in_use(struct arena *arena, struct arena_slot slot)
{
    (void)slot;
    arena_destroy(&arena);
}

static void test_bugs_abort(void **state)
{
    (void)state;
    static void (*const bugs[])(struct arena *, struct arena_slot) = {free_dd, free_part,
                                                                      free_outside, destroy_in_use};
    for (size_t i = 0; i < sizeof bugs / sizeof bugs[0]; i++) {
        struct arena *arena = create(2 * MIB);
        struct arena_slot before = {0}, slot = {0};
        assert_int_equal(arena_alloc(arena, 3 * ARENA_GRANULE, &before), ERROR_NONE);
        assert_int_equal(arena_alloc(arena, 3 * ARENA_GRANULE, &slot), ERROR_NONE);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            signal(SIGABRT, SIG_DFL);
            close(STDERR_FILENO); /* the assertion's message is expected */
            arena_free(arena, &before);
            bugs[i](arena, slot);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        arena_free(arena, &slot);
        arena_free(arena, &before);
        arena_destroy(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_descriptor),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_granules),
        cmocka_unit_test(test_kept_slots_return),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_bugs_abort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
