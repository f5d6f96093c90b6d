/* An engine's batches: an answer's bits never depend on the company, the place or the count; one
 * bad matrix never changes another; every batch ends and says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "gpu/method.h"
#include "tests/device/rig.h"
#include "tests/unit/gpu/host/matrices.h"
#include "tests/unit/gpu/host/mixed.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ARENA_BYTES (UINT64_C(800) << 20)
#define SMALL_N_MAX 32 /* beyond, batches are smaller */
#define N_MAX 160      /* of the orders tried */
#define POOL_BYTES ((size_t)RIG_POOL * N_MAX * N_MAX * 8)
#define ANSWER_BYTES (N_MAX * N_MAX * 8 + N_MAX * 4 + 64)

static struct rig rig;
static unsigned char pool[POOL_BYTES];

static int start(void **state)
{
    (void)state;
    rig_start(&rig, ARENA_BYTES, NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    rig_stop(&rig);
    return 0;
}

static size_t matrix_bytes(const struct engine_batch *batch)
{
    return (size_t)(batch->n * batch->n * precision_bytes((enum precision)batch->precision));
}

/* Matrix `index` of an item is to be number k of the pool. */
static void set(const struct engine_batch *batch, const struct engine_item *item, int64_t index,
                int64_t k)
{
    size_t bytes = matrix_bytes(batch);
    memcpy(rig.bed.arena + item->inputs[0].offset_bytes + (size_t)index * bytes,
           pool + (size_t)k * bytes, bytes);
}

/* All outputs of one matrix, one after the other. */
static size_t gather(const struct engine_batch *batch, const struct engine_item *item,
                     int64_t index, unsigned char *answer)
{
    const struct method *method = method_at((int)batch->method);
    size_t at = 0;
    for (int i = 0; method->outputs[i].name; i++) {
        size_t bytes = (size_t)rig_output_bytes(batch, i);
        memcpy(answer + at, rig_output(&rig, batch, item, i, index), bytes);
        at += bytes;
    }
    assert_true(at <= ANSWER_BYTES);
    return at;
}

struct row {
    const char *method;
    enum precision precision;
    int64_t n;
};

static const struct row rows[] = {
    {"lu", PRECISION_FP64, 8},         {"lu", PRECISION_FP32, 8},
    {"lu", PRECISION_FP64, 32},        {"lu", PRECISION_FP32, 32},
    {"lu", PRECISION_FP64, 1},         {"lu", PRECISION_FP32, 21},
    {"lu", PRECISION_FP64, 13},        {"lu_factor", PRECISION_FP64, 8},
    {"lu_factor", PRECISION_FP32, 32}, {"lu_factor", PRECISION_FP64, 27},
};

/* ---- Company ---- */

/* A batch of `size` matrices in items of random counts; the one at `place` is number k of the pool:
 * its answer, and its length. */
static size_t run_in_company(const struct row *row, enum engine_lane_id lane, uint64_t *seed,
                             int64_t k, unsigned char *answer)
{
    double size_max = row->n > SMALL_N_MAX ? 100 : 1024;
    int64_t size = 1 + (int64_t)((gputest_random(seed) + 1) / 2 * size_max);
    int64_t place = (int64_t)((gputest_random(seed) + 1) / 2 * (double)size), at = 0, found_at = 0;
    int64_t most = gputest_random(seed) < 0 ? 1 : 40;
    struct engine_batch *batch =
        gputest_bed_next(&rig.bed, lane, row->method, row->precision, row->n);
    const struct engine_item *found = NULL;
    while (at < size) {
        int64_t count = 1 + (int64_t)((gputest_random(seed) + 1) / 2 * (double)most);
        count = count < size - at ? count : size - at;
        struct engine_item *item = gputest_bed_item(&rig.bed, batch, count);
        if (place >= at && place < at + count) {
            found = item;
            found_at = place - at;
        }
        for (int64_t i = 0; i < count; i++, at++)
            set(batch, item, i, at == place ? k : (at * 7 + size) % RIG_POOL);
    }
    assert_non_null(found);
    rig_run(&rig, lane, batch);
    size_t length = gather(batch, found, found_at, answer);
    gputest_bed_release(batch);
    gputest_bed_reset(&rig.bed);
    return length;
}

static void try_company(const struct row *row, int64_t k, int rounds)
{
    static unsigned char first[ANSWER_BYTES], answer[ANSWER_BYTES];
    uint64_t seed = 42 + (uint64_t)row->n;
    size_t length = 0;
    rig_fill_pool(row->precision, row->n, pool);
    for (int round = 0; round < rounds; round++) {
        length = run_in_company(row, (enum engine_lane_id)(round % ENGINE_LANES), &seed, k, answer);
        if (round == 0)
            memcpy(first, answer, length);
        assert_memory_equal(answer, first, length);
    }
}

static void test_company_never_shows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        try_company(&rows[i], 3, i == 0 ? 1000 : 200);
}

/* Answers that are recovered must not depend on the company either. */
static void test_company_of_the_recovered(void **state)
{
    (void)state;
    static const struct row grown[] = {
        {"lu", PRECISION_FP32, 24}, {"lu", PRECISION_FP64, 32}, {"lu", PRECISION_FP32, 32}};
    for (size_t i = 0; i < COUNT(grown); i++)
        try_company(&grown[i], RIG_POOL_GROWTH, 200);
}

/* Orders that other kernels take: in shared memory, and in device memory. */
static void test_company_of_larger_orders(void **state)
{
    (void)state;
    static const struct row larger[] = {
        {"lu", PRECISION_FP64, 33},        {"lu", PRECISION_FP32, 64},
        {"lu", PRECISION_FP64, 144},       {"lu", PRECISION_FP64, 145},
        {"lu_factor", PRECISION_FP64, 65}, {"lu_factor", PRECISION_FP64, 160}};
    for (size_t i = 0; i < COUNT(larger); i++) {
        int method = method_index(method_find(larger[i].method));
        if (rig.bed.shared->n_max[method][larger[i].precision] < larger[i].n)
            continue;
        try_company(&larger[i], 3, 40);
        try_company(&larger[i], RIG_POOL_GROWTH, 10);
    }
}

/* ---- Neighbours ---- */

#define SLOTS 512
#define SLOT_BYTES (32 * 32 * 8 + 32 * 4 + 64) /* of the orders below */

static void run_slots(const struct row *row, int bad, unsigned char *answers, size_t *length)
{
    struct engine_batch *batch =
        gputest_bed_next(&rig.bed, ENGINE_LANE_SHORT, row->method, row->precision, row->n);
    struct engine_item *item = gputest_bed_item(&rig.bed, batch, SLOTS);
    for (int i = 0; i < SLOTS; i++)
        set(batch, item, i, i == bad ? 11 : i % 11);
    rig_run(&rig, ENGINE_LANE_SHORT, batch);
    for (int i = 0; i < SLOTS; i++)
        *length = gather(batch, item, i, answers + (size_t)i * SLOT_BYTES);
    gputest_bed_release(batch);
    gputest_bed_reset(&rig.bed);
}

/* A singular matrix in every slot of 512. */
static void test_neighbours_are_untouched(void **state)
{
    (void)state;
    static unsigned char good[SLOTS * SLOT_BYTES], mixed[SLOTS * SLOT_BYTES];
    static const struct row tried[] = {
        {"lu", PRECISION_FP64, 8}, {"lu", PRECISION_FP32, 17}, {"lu_factor", PRECISION_FP64, 5}};
    for (size_t t = 0; t < COUNT(tried); t++) {
        size_t length = 0;
        rig_fill_pool(tried[t].precision, tried[t].n, pool);
        run_slots(&tried[t], -1, good, &length);
        for (int bad = 0; bad < SLOTS; bad++) {
            run_slots(&tried[t], bad, mixed, &length);
            for (int i = 0; i < SLOTS; i++) {
                size_t at = (size_t)i * SLOT_BYTES;
                if (i == bad)
                    assert_memory_not_equal(mixed + at, good + at, length);
                else
                    assert_memory_equal(mixed + at, good + at, length);
            }
        }
    }
}

/* ---- Counts ---- */

/* What each matrix of the pool gives in a batch of its own. */
static size_t learn(const struct row *row, unsigned char *answers)
{
    size_t length = 0;
    rig_fill_pool(row->precision, row->n, pool);
    for (int64_t k = 0; k < RIG_POOL; k++) {
        struct engine_batch *batch =
            gputest_bed_next(&rig.bed, ENGINE_LANE_SHORT, row->method, row->precision, row->n);
        struct engine_item *item = gputest_bed_item(&rig.bed, batch, 1);
        set(batch, item, 0, k);
        rig_run(&rig, ENGINE_LANE_SHORT, batch);
        length = gather(batch, item, 0, answers + (size_t)k * ANSWER_BYTES);
        gputest_bed_release(batch);
        gputest_bed_reset(&rig.bed);
    }
    return length;
}

/* `count` matrices in `items` items; each must give what it gave alone. */
static void try_count(const struct row *row, int64_t count, int64_t items,
                      const unsigned char *answers, size_t length)
{
    static unsigned char answer[ANSWER_BYTES];
    struct engine_batch *batch =
        gputest_bed_next(&rig.bed, ENGINE_LANE_LONG, row->method, row->precision, row->n);
    for (int64_t i = 0, at = 0; i < items; i++) {
        int64_t held = (count - at) / (items - i);
        held += i % 2 && held > 1 && i + 1 < items ? held / 3 : 0;
        struct engine_item *item = gputest_bed_item(&rig.bed, batch, held);
        for (int64_t j = 0; j < held; j++, at++)
            set(batch, item, j, at % RIG_POOL);
    }
    assert_true(batch->matrices == count);
    rig_run(&rig, ENGINE_LANE_LONG, batch);
    for (int64_t i = 0, at = 0; i < items; i++) {
        for (int64_t j = 0; j < batch->items[i].count; j++, at++) {
            gather(batch, &batch->items[i], j, answer);
            if (memcmp(answer, answers + (size_t)(at % RIG_POOL) * ANSWER_BYTES, length) != 0)
                fail_msg("%s n = %d: matrix %lld of %lld in %lld items differs", row->method,
                         (int)row->n, (long long)at, (long long)count, (long long)items);
        }
    }
    gputest_bed_release(batch);
    gputest_bed_reset(&rig.bed);
}

static void test_counts(void **state)
{
    (void)state;
    static unsigned char answers[RIG_POOL * ANSWER_BYTES];
    static const struct row tried[] = {
        {"lu", PRECISION_FP64, 5}, {"lu", PRECISION_FP32, 9}, {"lu_factor", PRECISION_FP32, 4}};
    static const int64_t counts[] = {1, 2, 31, 32, 33, 65535, 65536, 65537, 1000000};
    for (size_t t = 0; t < COUNT(tried); t++) {
        size_t length = learn(&tried[t], answers);
        for (size_t i = 0; i < COUNT(counts); i++) {
            int64_t most = counts[i] < ENGINE_BATCH_ITEMS ? counts[i] : ENGINE_BATCH_ITEMS;
            try_count(&tried[t], counts[i], 1, answers, length);
            try_count(&tried[t], counts[i], most, answers, length);
            try_count(&tried[t], counts[i], most / 2 + 1, answers, length);
        }
    }
}

/* Where its tensors start never shows in an answer, whether together or each on its own. */
static void test_alignment_never_shows(void **state)
{
    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        static unsigned char first[ANSWER_BYTES], answer[ANSWER_BYTES];
        int64_t unit = precision_bytes(rows[r].precision);
        rig_fill_pool(rows[r].precision, rows[r].n, pool);
        for (int64_t align = unit; align <= 256; align *= 2) {
            struct engine_batch *batch = gputest_bed_next(
                &rig.bed, ENGINE_LANE_SHORT, rows[r].method, rows[r].precision, rows[r].n);
            gputest_bed_item(&rig.bed, batch, 3);
            struct engine_item *item = &batch->items[0];
            int64_t bytes = 3 * (int64_t)matrix_bytes(batch);
            item->inputs[0].offset_bytes = gputest_bed_take(&rig.bed, bytes, align);
            for (int i = 0; method_at((int)batch->method)->outputs[i].name; i++)
                item->outputs[i].offset_bytes =
                    gputest_bed_take(&rig.bed, 3 * rig_output_bytes(batch, i), align);
            for (int64_t j = 0; j < 3; j++)
                set(batch, item, j, 40 + j);
            rig_run(&rig, ENGINE_LANE_SHORT, batch);
            size_t length = gather(batch, item, 1, align == unit ? first : answer);
            if (align > unit)
                assert_memory_equal(answer, first, length);
            gputest_bed_release(batch);
            gputest_bed_reset(&rig.bed);
        }
    }
}

/* ---- Life ---- */

/* Both rings stay full; every answer is the one the matrix gives alone. */
static void test_rings_stay_full(void **state)
{
    (void)state;
    static unsigned char answers[RIG_POOL * ANSWER_BYTES];
    static const struct row row = {"lu", PRECISION_FP64, 6};
    struct engine_batch *flying[ENGINE_LANES * ENGINE_BATCH_SLOTS] = {0};
    static unsigned char answer[ANSWER_BYTES];
    size_t length = learn(&row, answers);
    for (int round = 0; round < 8000 + (int)COUNT(flying); round++) {
        enum engine_lane_id lane = (enum engine_lane_id)(round % ENGINE_LANES);
        int slot = round % (int)COUNT(flying);
        struct engine_batch *batch = flying[slot];
        if (batch) {
            assert_true(gputest_bed_wait(&rig.bed, lane, batch, RIG_WAIT_MS));
            assert_int_equal(batch->status, ENGINE_OK);
            for (uint32_t i = 0; i < batch->item_count; i += 7) {
                gather(batch, &batch->items[i], 0, answer);
                assert_memory_equal(answer, answers + i % RIG_POOL * ANSWER_BYTES, length);
            }
            gputest_bed_release(batch);
            flying[slot] = NULL;
        }
        /* Places in the arena are taken anew now and then, when nothing flies. */
        if (round % 512 >= 512 - (int)COUNT(flying) || round >= 8000)
            continue;
        if (round % 512 == 0)
            gputest_bed_reset(&rig.bed);
        batch = gputest_bed_next(&rig.bed, lane, row.method, row.precision, row.n);
        for (int i = 0; i <= round % 7 * 20; i++) {
            struct engine_item *item = gputest_bed_item(&rig.bed, batch, 1 + round % 3);
            for (int j = 0; j < 1 + round % 3; j++)
                set(batch, item, j, (i + j) % RIG_POOL);
        }
        gputest_bed_submit(&rig.bed, lane, batch);
        flying[slot] = batch;
    }
    gputest_bed_reset(&rig.bed);
}

static void test_unwanted_outputs(void **state)
{
    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        const struct method *method = method_find(rows[r].method);
        static unsigned char whole[METHOD_OUTPUTS_MAX][ANSWER_BYTES];
        rig_fill_pool(rows[r].precision, rows[r].n, pool);
        for (int unwanted = -1; unwanted < method_output_count(method); unwanted++) {
            if (unwanted >= 0 && method->outputs[unwanted].rank == 0)
                continue;
            struct engine_batch *batch = gputest_bed_next(
                &rig.bed, ENGINE_LANE_SHORT, rows[r].method, rows[r].precision, rows[r].n);
            struct engine_item *item = gputest_bed_item(&rig.bed, batch, 1);
            set(batch, item, 0, 1);
            if (unwanted >= 0)
                gputest_bed_drop(batch, item, unwanted);
            rig_run(&rig, ENGINE_LANE_SHORT, batch);
            for (int i = 0; method->outputs[i].name; i++) {
                size_t bytes = (size_t)rig_output_bytes(batch, i);
                unsigned char *data = rig_output(&rig, batch, item, i, 0);
                if (unwanted < 0)
                    memcpy(whole[i], data, bytes);
                else if (item->outputs[i].region == ENGINE_REGION_ARENA)
                    assert_memory_equal(data, whole[i], bytes);
            }
            gputest_bed_release(batch);
            gputest_bed_reset(&rig.bed);
        }
    }
}

/* Residuals of one item are measured whatever the others want. */
static void test_mixed_residuals(void **state)
{
    (void)state;
    static const char *const methods[] = {"lu", "auto", "gauss_jordan"};
    static const int64_t orders[] = {1, 8, 32, 33, 100, 160};
    for (size_t i = 0; i < 2 * COUNT(methods) * COUNT(orders); i++) {
        const struct gputest_mixed row = {methods[i / 2 % COUNT(methods)],
                                          i % 2 ? PRECISION_FP64 : PRECISION_FP32,
                                          orders[i / 2 / COUNT(methods)]};
        struct engine_batch *batch = gputest_mixed_next(&rig.bed, ENGINE_LANE_SHORT, &row);
        rig_run(&rig, ENGINE_LANE_SHORT, batch);
        gputest_mixed_check(&rig.bed, batch, 0.5);
        gputest_bed_release(batch);
        gputest_bed_reset(&rig.bed);
    }
}

static void assert_refused(struct engine_batch *batch)
{
    gputest_bed_submit(&rig.bed, ENGINE_LANE_SHORT, batch);
    assert_true(gputest_bed_wait(&rig.bed, ENGINE_LANE_SHORT, batch, RIG_WAIT_MS));
    assert_int_equal(batch->status, ENGINE_UNSUPPORTED);
    assert_string_equal(batch->kernel, "");
    gputest_bed_release(batch);
    gputest_bed_reset(&rig.bed);
}

static struct engine_batch *next_good(void)
{
    struct engine_batch *batch =
        gputest_bed_next(&rig.bed, ENGINE_LANE_SHORT, "lu", PRECISION_FP64, 4);
    rig_fill_pool(PRECISION_FP64, 4, pool);
    set(batch, gputest_bed_item(&rig.bed, batch, 1), 0, 0);
    return batch;
}

static void test_what_it_does_not_take(void **state)
{
    (void)state;
    struct engine_batch *batch = next_good();
    batch->method = 1000;
    assert_refused(batch);
    batch = next_good();
    batch->precision = PRECISION_COUNT;
    assert_refused(batch);
    batch = next_good();
    batch->n = 0;
    assert_refused(batch);
    batch = next_good();
    batch->n = rig.bed.shared->n_max[batch->method][PRECISION_FP64] + 1;
    assert_refused(batch);
    batch = next_good();
    batch->item_count = 0;
    assert_refused(batch);
    batch = next_good();
    rig_run(&rig, ENGINE_LANE_SHORT, batch);
    assert_true(strlen(batch->kernel) > 0);
    if (rig_is_cuda(&rig))
        assert_string_equal(batch->kernel, "cuda lu fused f64 n=4");
    gputest_bed_release(batch);
    gputest_bed_reset(&rig.bed);
}

static void test_says_who_it_is(void **state)
{
    (void)state;
    const struct engine_shared *shared = rig.bed.shared;
    assert_true(shared->engine_contract_hash == engine_contract_hash());
    assert_true(strlen(shared->model) > 0 && strlen(shared->engine_version) > 0);
    assert_true(shared->device_count >= 1);
    for (int p = 0; rig_is_cuda(&rig) && p < PRECISION_COUNT; p++) {
        assert_true(shared->n_max[method_index(method_find("lu"))][p] == 32768);
        assert_true(shared->n_max[method_index(method_find("lu_factor"))][p] == 32768);
        assert_true(shared->n_max[method_index(method_find("auto"))][p] == 32768);
    }
    uint64_t before = atomic_load(&shared->heartbeat), until = clock_now_ns() + 2 * CLOCK_S;
    while (atomic_load(&shared->heartbeat) < before + 3)
        assert_true(clock_now_ns() < until);
}

/* ---- Latency ---- */

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static void drop_residuals(struct engine_batch *batch, struct engine_item *item)
{
    const struct method *method = method_at((int)batch->method);
    gputest_bed_drop(batch, item, method_residual_find(method, METHOD_LEFT));
    gputest_bed_drop(batch, item, method_residual_find(method, METHOD_RIGHT));
}

/* One small matrix on an idle lane, without the residuals, which are a second launch; prints what
 * it takes, and is wide of the mark only when something is wrong. idle_us: since the batch
 * before. */
static void try_latency(int64_t n, unsigned idle_us)
{
    uint64_t times[301];
    rig_fill_pool(PRECISION_FP64, n, pool);
    for (size_t i = 0; i < COUNT(times); i++) {
        struct engine_batch *batch =
            gputest_bed_next(&rig.bed, ENGINE_LANE_SHORT, "lu", PRECISION_FP64, n);
        struct engine_item *item = gputest_bed_item(&rig.bed, batch, 1);
        drop_residuals(batch, item);
        set(batch, item, 0, 0);
        uint64_t until = clock_now_ns() + idle_us * CLOCK_US;
        while (clock_now_ns() < until)
            continue;
        times[i] = rig_run_spinning(&rig, ENGINE_LANE_SHORT, batch);
        gputest_bed_release(batch);
        gputest_bed_reset(&rig.bed);
    }
    qsort(times, COUNT(times), sizeof times[0], compare);
    print_message("one %dx%d, %u us after the last: median %.1f us, 99%% %.1f us\n", (int)n, (int)n,
                  idle_us, (double)times[COUNT(times) / 2] / 1e3,
                  (double)times[COUNT(times) * 99 / 100] / 1e3);
    assert_true(times[COUNT(times) / 2] < CLOCK_MS || rig_is_simt(&rig));
}

static void test_latency(void **state)
{
    (void)state;
    try_latency(8, 5);
    try_latency(8, 500);
    try_latency(32, 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_says_who_it_is),
        cmocka_unit_test(test_latency),
        cmocka_unit_test(test_what_it_does_not_take),
        cmocka_unit_test(test_unwanted_outputs),
        cmocka_unit_test(test_mixed_residuals),
        cmocka_unit_test(test_alignment_never_shows),
        cmocka_unit_test(test_company_never_shows),
        cmocka_unit_test(test_company_of_the_recovered),
        cmocka_unit_test(test_company_of_larger_orders),
        cmocka_unit_test(test_neighbours_are_untouched),
        cmocka_unit_test(test_rings_stay_full),
        cmocka_unit_test(test_counts),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
