/* The batch runner: an answer's bits never depend on the batch, the place in it or the threads;
 * one bad matrix never changes another; every batch ends and says so. */
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "gpu/host/base/host.h"
#include "gpu/host/engine/lane.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/methods/iterative.h"
#include "tests/unit/gpu/host/bed.h"
#include "tests/unit/gpu/host/matrices.h"
#include "tests/unit/gpu/host/mixed.h"

#define ARENA_BYTES (UINT64_C(64) << 20)
#define WAIT_MS 10000
#define ORDER_MAX 130
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct gputest_bed bed;
static struct host_lane *lane;
static struct host_budget *budget;

static void start_within(int threads, int64_t scratch_max)
{
    struct failure failure = {0};
    assert_int_equal(host_budget_create(scratch_max, threads, &budget, &failure), ERROR_NONE);
    gputest_bed_create(&bed, ARENA_BYTES);
    struct host_lane_options options = {.lane = &bed.shared->lanes[ENGINE_LANE_SHORT],
                                        .arena = {bed.arena, bed.arena_bytes},
                                        .event_fd = bed.event_fd,
                                        .threads = threads,
                                        .spin_ns = 2000,
                                        .budget = budget};
    assert_int_equal(host_lane_create(&options, &lane, &failure), ERROR_NONE);
}

static void start(int threads)
{
    start_within(threads, INT64_C(1) << 30);
}

static void stop(void)
{
    host_lane_destroy(&lane);
    assert_null(lane);
    host_budget_destroy(&budget);
    assert_null(budget);
    gputest_bed_destroy(&bed);
}

static void run(struct engine_batch *batch)
{
    gputest_bed_submit(&bed, ENGINE_LANE_SHORT, batch);
    assert_true(gputest_bed_wait(&bed, ENGINE_LANE_SHORT, batch, WAIT_MS));
    assert_int_equal(batch->status, ENGINE_OK);
    assert_true(batch->finished_ns >= batch->started_ns && batch->started_ns > 0);
}

/* ---- Batch invariance ---- */

struct invariance {
    const char *method;
    enum precision precision;
    int64_t n, batch_max;
    int rounds;
};

static const struct invariance invariances[] = {
    {"lu", PRECISION_FP64, 8, 1024, 200},          {"lu", PRECISION_FP32, 8, 1024, 50},
    {"lu", PRECISION_FP64, 130, 12, 20},           {"lu", PRECISION_FP32, 33, 100, 20},
    {"auto", PRECISION_FP64, 17, 1024, 20},        {"gauss_jordan", PRECISION_FP64, 32, 200, 20},
    {"gauss_jordan", PRECISION_FP64, 100, 12, 20}, {"gauss_jordan", PRECISION_FP32, 5, 1024, 20},
    {"lu_factor", PRECISION_FP64, 64, 40, 20},     {"auto", PRECISION_FP32, 8, 1024, 20},
};

static void fill(const struct invariance *row, unsigned char *matrix, uint64_t seed)
{
    int64_t unit = precision_bytes(row->precision);
    for (int64_t i = 0; i < row->n * row->n; i++) {
        double wide = gputest_random(&seed);
        float narrow = (float)wide;
        memcpy(matrix + i * unit, unit == 4 ? (void *)&narrow : (void *)&wide, (size_t)unit);
    }
}

/* One random batch of random items, the known matrix in a random place: its answer. */
static void run_in_company(const struct invariance *row, uint64_t *seed, unsigned char *answer)
{
    int64_t bytes = row->n * row->n * precision_bytes(row->precision);
    int64_t size = 1 + (int64_t)(fabs(gputest_random(seed)) * (double)row->batch_max);
    int64_t place = (int64_t)(fabs(gputest_random(seed)) * (double)size), at = 0;
    struct engine_batch *batch =
        gputest_bed_next(&bed, ENGINE_LANE_SHORT, row->method, row->precision, row->n);
    uint64_t found = 0;
    bool singles = gputest_random(seed) < 0;
    while (at < size) {
        int64_t count = singles ? 1 : 1 + (int64_t)(fabs(gputest_random(seed)) * 40);
        count = count < size - at ? count : size - at;
        struct engine_item *item = gputest_bed_item(&bed, batch, count);
        for (int64_t i = 0; i < count; i++, at++) {
            uint64_t offset = (uint64_t)(i * bytes);
            fill(row, bed.arena + item->inputs[0].offset_bytes + offset,
                 at == place ? 1 : 2 + (uint64_t)at * 977);
            found =
                at == place ? item->outputs[METHOD_OUTPUT_INVERSE].offset_bytes + offset : found;
        }
    }
    run(batch);
    memcpy(answer, bed.arena + found, (size_t)bytes);
    gputest_bed_release(batch);
    gputest_bed_reset(&bed);
}

static void test_company_never_shows(void **state)
{
    (void)state;
    static unsigned char first[COUNT(invariances)][ORDER_MAX * ORDER_MAX * 8];
    static unsigned char answer[ORDER_MAX * ORDER_MAX * 8];
    uint64_t seed = 42;
    for (int threads = 1; threads <= 3; threads++) {
        start(threads);
        for (size_t i = 0; i < COUNT(invariances); i++) {
            const struct invariance *row = &invariances[i];
            size_t bytes = (size_t)(row->n * row->n * precision_bytes(row->precision));
            for (int round = 0; round < row->rounds / 3 + 1; round++) {
                run_in_company(row, &seed, answer);
                if (threads == 1 && round == 0)
                    memcpy(first[i], answer, bytes);
                assert_memory_equal(answer, first[i], bytes);
            }
        }
        stop();
    }
}

/* ---- Neighbours ---- */

#define SLOTS 64
#define SLOT_ORDER 8
#define SLOT_NUMBERS ((size_t)(SLOT_ORDER * SLOT_ORDER))

/* Inverts SLOTS matrices, the one at `bad` spoiled: by a zero column, or by a NaN. */
static void run_slots(int bad, bool nan, double *inverses, int32_t *infos)
{
    static const struct invariance row = {"auto", PRECISION_FP64, SLOT_ORDER, SLOTS, 0};
    struct engine_batch *batch =
        gputest_bed_next(&bed, ENGINE_LANE_SHORT, row.method, row.precision, row.n);
    struct engine_item *item = gputest_bed_item(&bed, batch, SLOTS);
    double *a = (double *)(bed.arena + item->inputs[0].offset_bytes);
    for (int i = 0; i < SLOTS; i++)
        fill(&row, (unsigned char *)(a + (size_t)i * SLOT_NUMBERS), (uint64_t)i + 1);
    for (int i = 0; i < SLOT_ORDER && bad >= 0; i++)
        a[(size_t)bad * SLOT_NUMBERS + (size_t)(i * SLOT_ORDER + 3)] = nan ? (double)NAN : 0;
    run(batch);
    memcpy(inverses, bed.arena + item->outputs[METHOD_OUTPUT_INVERSE].offset_bytes,
           SLOTS * SLOT_NUMBERS * sizeof *inverses);
    memcpy(infos, bed.arena + item->outputs[METHOD_OUTPUT_INFO].offset_bytes,
           SLOTS * sizeof *infos);
    gputest_bed_release(batch);
    gputest_bed_reset(&bed);
}

static void test_neighbours_are_untouched(void **state)
{
    (void)state;
    static double good[SLOTS * SLOT_NUMBERS], mixed[SLOTS * SLOT_NUMBERS];
    int32_t infos[SLOTS];
    start(2);
    run_slots(-1, false, good, infos);
    for (int bad = 0; bad < 2 * SLOTS; bad++) {
        bool nan = bad >= SLOTS;
        run_slots(bad % SLOTS, nan, mixed, infos);
        for (int i = 0; i < SLOTS; i++) {
            if (i == bad % SLOTS) {
                assert_int_equal(infos[i], nan ? -1 : 4);
                assert_true(isnan(mixed[(size_t)i * SLOT_NUMBERS]));
            } else {
                assert_int_equal(infos[i], 0);
                assert_memory_equal(mixed + (size_t)i * SLOT_NUMBERS,
                                    good + (size_t)i * SLOT_NUMBERS, SLOT_NUMBERS * sizeof *good);
            }
        }
    }
    stop();
}

/* ---- Life of a batch ---- */

static void test_ring_stays_full(void **state)
{
    (void)state;
    static const struct invariance row = {"lu", PRECISION_FP64, 6, 1, 0};
    struct engine_batch *flying[ENGINE_BATCH_SLOTS] = {0};
    start(3);
    for (int round = 0; round < 4000; round++) {
        int slot = round % ENGINE_BATCH_SLOTS;
        if (flying[slot]) {
            assert_true(gputest_bed_wait(&bed, ENGINE_LANE_SHORT, flying[slot], WAIT_MS));
            assert_int_equal(flying[slot]->status, ENGINE_OK);
            gputest_bed_release(flying[slot]);
        }
        if (round % (64 * ENGINE_BATCH_SLOTS) == 0) {
            for (int i = 0; i < ENGINE_BATCH_SLOTS; i++)
                assert_true(!flying[i] || i == slot ||
                            gputest_bed_wait(&bed, ENGINE_LANE_SHORT, flying[i], WAIT_MS));
            gputest_bed_reset(&bed);
        }
        flying[slot] = gputest_bed_next(&bed, ENGINE_LANE_SHORT, row.method, row.precision, row.n);
        for (int i = 0; i <= round % 7 * 20; i++) {
            struct engine_item *item = gputest_bed_item(&bed, flying[slot], 1 + round % 3);
            for (int j = 0; j < 1 + round % 3; j++)
                fill(&row, bed.arena + item->inputs[0].offset_bytes + j * 36 * 8, 5);
        }
        gputest_bed_submit(&bed, ENGINE_LANE_SHORT, flying[slot]);
    }
    for (int i = 0; i < ENGINE_BATCH_SLOTS; i++)
        assert_true(gputest_bed_wait(&bed, ENGINE_LANE_SHORT, flying[i], WAIT_MS));
    stop();
}

/* A long matrix holds one worker; the other serves what comes after it. */
static void test_long_batch_does_not_block(void **state)
{
    (void)state;
    start(2);
    struct invariance big = {"lu", PRECISION_FP64, 900, 1, 0}, small = big;
    small.n = 4;
    struct engine_batch *slow =
        gputest_bed_next(&bed, ENGINE_LANE_SHORT, big.method, big.precision, big.n);
    fill(&big, bed.arena + gputest_bed_item(&bed, slow, 1)->inputs[0].offset_bytes, 3);
    gputest_bed_submit(&bed, ENGINE_LANE_SHORT, slow);
    while (atomic_load(&slow->state) == ENGINE_BATCH_SUBMITTED)
        continue;
    struct engine_batch *quick =
        gputest_bed_next(&bed, ENGINE_LANE_SHORT, small.method, small.precision, small.n);
    fill(&small, bed.arena + gputest_bed_item(&bed, quick, 1)->inputs[0].offset_bytes, 3);
    run(quick);
    assert_true(gputest_bed_wait(&bed, ENGINE_LANE_SHORT, slow, WAIT_MS));
    assert_true(quick->finished_ns < slow->finished_ns);
    stop();
}

static void test_unwanted_and_unsupported(void **state)
{
    (void)state;
    static const struct invariance row = {"lu", PRECISION_FP64, 9, 1, 0};
    start(1);
    struct engine_batch *batch =
        gputest_bed_next(&bed, ENGINE_LANE_SHORT, row.method, row.precision, row.n);
    struct engine_item *item = gputest_bed_item(&bed, batch, 1);
    fill(&row, bed.arena + item->inputs[0].offset_bytes, 11);
    run(batch);
    assert_string_equal(batch->kernel, host_method_at(batch->method, row.precision)->kernel(row.n));
    double rcond = *(double *)(bed.arena + item->outputs[METHOD_OUTPUT_RCOND].offset_bytes);
    gputest_bed_release(batch);

    /* Without INVERSE, INFO and RCOND are the same. */
    batch = gputest_bed_next(&bed, ENGINE_LANE_SHORT, row.method, row.precision, row.n);
    item = gputest_bed_item(&bed, batch, 1);
    fill(&row, bed.arena + item->inputs[0].offset_bytes, 11);
    gputest_bed_drop(batch, item, METHOD_OUTPUT_INVERSE);
    run(batch);
    assert_int_equal(*(int32_t *)(bed.arena + item->outputs[METHOD_OUTPUT_INFO].offset_bytes), 0);
    assert_true(*(double *)(bed.arena + item->outputs[METHOD_OUTPUT_RCOND].offset_bytes) == rcond);
    gputest_bed_release(batch);

    batch = gputest_bed_next(&bed, ENGINE_LANE_SHORT, row.method, row.precision, row.n);
    gputest_bed_item(&bed, batch, 1);
    batch->method = 1000;
    gputest_bed_submit(&bed, ENGINE_LANE_SHORT, batch);
    assert_true(gputest_bed_wait(&bed, ENGINE_LANE_SHORT, batch, WAIT_MS));
    assert_int_equal(batch->status, ENGINE_UNSUPPORTED);
    stop();
}

/* Residuals of one item are measured whatever the others want. */
static void test_mixed_residuals(void **state)
{
    (void)state;
    static const char *const methods[] = {"lu", "auto", "gauss_jordan"};
    static const int64_t orders[] = {1, 2, 8, 31, 33, 100};
    start(2);
    for (size_t i = 0; i < 2 * COUNT(methods) * COUNT(orders); i++) {
        const struct gputest_mixed row = {methods[i / 2 % COUNT(methods)],
                                          i % 2 ? PRECISION_FP64 : PRECISION_FP32,
                                          orders[i / 2 / COUNT(methods)]};
        struct engine_batch *batch = gputest_mixed_next(&bed, ENGINE_LANE_SHORT, &row);
        run(batch);
        const double apart = gputest_mixed_check(&bed, batch, 0.5);
        /* Sides that differ, or nothing would be shown. One bad side is made good where RCOND is
         * not below eps, as that of the FP64 matrices. */
        assert_true(apart > 100 || row.n < 20 || row.precision == PRECISION_FP64);
        gputest_bed_release(batch);
        gputest_bed_reset(&bed);
    }
    stop();
}

/* An item that wants a residual has the INVERSE that it is measured from. */
static void test_residual_without_inverse(void **state)
{
    (void)state;
    const struct gputest_mixed row = {"lu", PRECISION_FP64, 9};
    start(1);
    struct engine_batch *batch = gputest_mixed_next(&bed, ENGINE_LANE_SHORT, &row);
    batch->items[0].outputs[METHOD_OUTPUT_INVERSE].region = ENGINE_REGION_NONE;
    gputest_bed_submit(&bed, ENGINE_LANE_SHORT, batch);
    assert_true(gputest_bed_wait(&bed, ENGINE_LANE_SHORT, batch, WAIT_MS));
    assert_int_equal(batch->status, ENGINE_UNSUPPORTED);
    stop();
}

/* ---- No one waits any more ---- */

#define ABANDONED_ORDER 700
#define ABANDONED_MATRICES 4
#define LET_GO_MS 5000 /* much less than the work takes */

/* Matrices of rank n - 1 in a batch that takes minutes: as many products as `iterative` allows. */
static struct engine_batch *submit_endless(int64_t n)
{
    struct invariance row = {"iterative", PRECISION_FP64, n, ABANDONED_MATRICES, 0};
    struct engine_batch *batch =
        gputest_bed_next(&bed, ENGINE_LANE_SHORT, row.method, row.precision, n);
    batch->options[METHOD_ITERATIVE_MAX_ITERATIONS] = METHOD_ITERATIVE_ITERATIONS_MAX;
    batch->options[METHOD_ITERATIVE_SCHEME] = METHOD_ITERATIVE_NEWTON_SCHULZ;
    struct engine_item *item = gputest_bed_item(&bed, batch, ABANDONED_MATRICES);
    for (int k = 0; k < ABANDONED_MATRICES; k++) {
        double *a = (double *)(bed.arena + item->inputs[0].offset_bytes) + k * n * n;
        fill(&row, (unsigned char *)a, (uint64_t)k + 1);
        memcpy(a + n, a, (size_t)n * sizeof *a);
    }
    gputest_bed_submit(&bed, ENGINE_LANE_SHORT, batch);
    return batch;
}

static void assert_let_go(struct engine_batch *batch)
{
    assert_true(gputest_bed_wait(&bed, ENGINE_LANE_SHORT, batch, LET_GO_MS));
    assert_int_equal(batch->status, ENGINE_STOPPED);
    assert_int_equal(batch->kernel[0], 0);
    gputest_bed_release(batch);
}

/* Before it begins, and under way; what comes after it has the bits that it always has. */
static void test_unwanted_batch_is_left(void **state)
{
    (void)state;
    static const struct invariance row = {"lu", PRECISION_FP64, ORDER_MAX, 3, 0};
    static unsigned char first[ORDER_MAX * ORDER_MAX * 8], answer[ORDER_MAX * ORDER_MAX * 8];
    static const int64_t orders[] = {ABANDONED_ORDER, 150}; /* with a team, and without */
    for (int threads = 1; threads <= 3; threads++) {
        start(threads);
        uint64_t seed = 5;
        run_in_company(&row, &seed, first);
        for (size_t i = 0; i < COUNT(orders); i++) {
            struct engine_batch *batch = submit_endless(orders[i]);
            while (atomic_load(&batch->state) == ENGINE_BATCH_SUBMITTED)
                continue;
            usleep(20000);
            struct engine_batch *behind = submit_endless(orders[i]);
            atomic_store(&behind->unwanted, 1);
            atomic_store(&batch->unwanted, 1);
            assert_let_go(batch);
            assert_let_go(behind);
            gputest_bed_reset(&bed);
            run_in_company(&row, &seed, answer);
            assert_memory_equal(answer, first, sizeof first);
        }
        stop();
    }
}

/* ---- Progress ---- */

/* Lets others run; fails when WAIT_MS have passed since start_ns. */
static void wait_on(uint64_t start_ns, const char *what)
{
    sched_yield();
    if (clock_now_ns() - start_ns > WAIT_MS * CLOCK_MS)
        fail_msg("%s: nothing within %d ms", what, WAIT_MS);
}

/* Polls a batch until it is DONE; how often its progress was seen to rise. It never falls. */
static int watch_progress(const struct engine_batch *batch, uint64_t *progress)
{
    int rises = 0;
    const uint64_t start_ns = clock_now_ns();
    *progress = 0;
    for (;;) {
        const uint32_t state = atomic_load(&batch->state);
        const uint64_t now = atomic_load(&batch->progress);
        assert_true(now >= *progress);
        rises += now > *progress;
        *progress = now;
        if (state == ENGINE_BATCH_DONE)
            return rises;
        wait_on(start_ns, "the batch is not done");
    }
}

/* By matrices; by what is done of each; not at all where it is soon over; and no more of what is
 * left. */
static void test_progress_is_reported(void **state)
{
    (void)state;
    static const struct {
        struct invariance of;
        int64_t parts;
        int rises; /* at least */
    } rows[] = {
        {{"lu", PRECISION_FP64, 130, 64, 0}, METHOD_PROGRESS_WHOLE, 1},
        {{"auto", PRECISION_FP64, 33, 3000, 0}, METHOD_PROGRESS_WHOLE, 1},
        {{"iterative", PRECISION_FP64, 300, 2, 0}, METHOD_PROGRESS_WHOLE, 6},
        {{"lu", PRECISION_FP64, 8, 5, 0}, 0, 0},
        {{"iterative", PRECISION_FP32, 30, 2, 0}, 0, 0},
    };
    for (int threads = 1; threads <= 3; threads++) {
        start(threads);
        for (size_t i = 0; i < COUNT(rows); i++) {
            const struct invariance *row = &rows[i].of;
            struct engine_batch *batch =
                gputest_bed_next(&bed, ENGINE_LANE_SHORT, row->method, row->precision, row->n);
            struct engine_item *item = gputest_bed_item(&bed, batch, row->batch_max);
            for (int64_t k = 0; k < row->batch_max; k++)
                fill(row,
                     bed.arena + item->inputs[0].offset_bytes +
                         (uint64_t)(k * row->n * row->n * precision_bytes(row->precision)),
                     (uint64_t)k + 1);
            if (strcmp(row->method, "iterative") == 0) {
                batch->options[METHOD_ITERATIVE_SCHEME] = METHOD_ITERATIVE_NEWTON_SCHULZ;
                batch->options[METHOD_ITERATIVE_INITIAL] = METHOD_ITERATIVE_TRANSPOSE;
            }
            gputest_bed_submit(&bed, ENGINE_LANE_SHORT, batch);
            uint64_t progress;
            int rises = watch_progress(batch, &progress);
            assert_int_equal(batch->status, ENGINE_OK);
            assert_int_equal(progress, row->batch_max * rows[i].parts);
            if (rises < rows[i].rises)
                fail_msg("%s: seen to rise %d times", row->method, rises);
            gputest_bed_release(batch);
            gputest_bed_reset(&bed);
        }
        struct engine_batch *batch = submit_endless(ABANDONED_ORDER);
        for (uint64_t start_ns = clock_now_ns(); atomic_load(&batch->progress) == 0;)
            wait_on(start_ns, "no progress is reported");
        atomic_store(&batch->unwanted, 1);
        assert_let_go(batch);
        assert_true(atomic_load(&batch->progress) < METHOD_PROGRESS_WHOLE);
        stop();
    }
}

/* ---- Scratch ---- */

#define BIG_ORDER 200
#define BIG_ITEMS 40

/* Room for one matrix of BIG_ORDER, and what is kept: three workers take turns. What needs more
 * than the limit is refused, at once, and only that. */
static void test_scratch_is_bounded(void **state)
{
    (void)state;
    static const struct invariance big = {"lu", PRECISION_FP64, BIG_ORDER, 1, 0};
    start_within(3, 800 * 1000);
    for (int round = 0; round < 3; round++) {
        struct engine_batch *batch =
            gputest_bed_next(&bed, ENGINE_LANE_SHORT, big.method, big.precision, BIG_ORDER * 2);
        gputest_bed_item(&bed, batch, 1);
        gputest_bed_submit(&bed, ENGINE_LANE_SHORT, batch);
        assert_true(gputest_bed_wait(&bed, ENGINE_LANE_SHORT, batch, WAIT_MS));
        assert_int_equal(batch->status, ENGINE_OUT_OF_MEMORY);
        gputest_bed_release(batch);
        gputest_bed_reset(&bed);

        batch = gputest_bed_next(&bed, ENGINE_LANE_SHORT, big.method, big.precision, BIG_ORDER);
        for (int i = 0; i < BIG_ITEMS; i++) {
            struct engine_item *item = gputest_bed_item(&bed, batch, 1);
            fill(&big, bed.arena + item->inputs[0].offset_bytes, (uint64_t)i);
        }
        run(batch);
        for (int i = 0; i < BIG_ITEMS; i++)
            assert_int_equal(*(int32_t *)(bed.arena + batch->items[i].outputs[1].offset_bytes), 0);
        gputest_bed_release(batch);
        gputest_bed_reset(&bed);
    }
    stop();
}

/* OpenBLAS takes a processor that is younger than itself for a Prescott. */
static void test_kernels_fit_the_processor(void **state)
{
    (void)state;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        assert_string_not_equal(host__lapack_cpu(), "Prescott");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_fit_the_processor),
        cmocka_unit_test(test_unwanted_and_unsupported),
        cmocka_unit_test(test_mixed_residuals),
        cmocka_unit_test(test_residual_without_inverse),
        cmocka_unit_test(test_company_never_shows),
        cmocka_unit_test(test_neighbours_are_untouched),
        cmocka_unit_test(test_ring_stays_full),
        cmocka_unit_test(test_long_batch_does_not_block),
        cmocka_unit_test(test_unwanted_batch_is_left),
        cmocka_unit_test(test_progress_is_reported),
        cmocka_unit_test(test_scratch_is_bounded),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
