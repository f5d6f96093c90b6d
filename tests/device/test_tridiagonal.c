/* `tridiagonal` through an engine process: both residuals of every variant over matrices of every
 * kind, batches in company, and large orders. INVERTD_ENGINE_N_MAX in the environment leaves larger
 * orders out, for an engine that takes its time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "gpu/methods/tridiagonal.h"
#include "tests/device/rig.h"
#include "tests/unit/gpu/host/band_run.h"
#include "tests/unit/gpu/host/bands.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ARENA_BYTES (UINT64_C(4) << 30)
#define INPUTS 3
#define VARIANTS 4

/* The descriptor's outputs. */
enum {
    INVERSE,
    DIAGONAL,
    INFO,
    RCOND,
    ALGORITHM,
    GENERATORS,
    EXPONENTS,
    OUTPUTS
};

static struct rig rig;
static int64_t n_max;

static int start(void **state)
{
    (void)state;
    rig_start(&rig, ARENA_BYTES, NULL);
    n_max = rig_order_max(&rig, "tridiagonal");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    rig_stop(&rig);
    return 0;
}

static struct engine_batch *next(enum engine_lane_id lane, enum precision precision, int64_t n,
                                 int variant)
{
    struct engine_batch *batch = gputest_bed_next(&rig.bed, lane, "tridiagonal", precision, n);
    batch->options[METHOD_TRIDIAGONAL_VARIANT] = variant;
    return batch;
}

static void finish(struct engine_batch *batch)
{
    gputest_bed_release(batch);
    gputest_bed_reset(&rig.bed);
}

static void put(enum precision precision, unsigned char *to, const double *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (precision == PRECISION_FP32)
            memcpy(to + i * 4, &(float){(float)from[i]}, 4);
        else
            memcpy(to + i * 8, &from[i], 8);
    }
}

/* Matrix `index` of an item is to be `a`. */
static void set(const struct engine_batch *batch, const struct engine_item *item, int64_t index,
                const struct gputest_bands *a)
{
    const double *bands[] = {a->dl, a->d, a->du};
    for (int t = 0; t < INPUTS; t++) {
        int64_t count = t == 1 ? a->n : a->n - 1;
        int64_t bytes = count * precision_bytes((enum precision)batch->precision);
        put(a->precision, rig.bed.arena + item->inputs[t].offset_bytes + index * bytes, bands[t],
            count);
    }
}

static double *numbers(const struct engine_batch *batch, const struct engine_item *item, int output,
                       int64_t index, int64_t count)
{
    const unsigned char *from = rig_output(&rig, batch, item, output, index);
    double *to = gputest_numbers(count);
    for (int64_t i = 0; i < count; i++) {
        float narrow = 0;
        if (batch->precision == PRECISION_FP32)
            memcpy(&narrow, from + i * 4, 4);
        else
            memcpy(&to[i], from + i * 8, 8);
        to[i] = batch->precision == PRECISION_FP32 ? narrow : to[i];
    }
    return to;
}

static int32_t whole(const struct engine_batch *batch, const struct engine_item *item, int output,
                     int64_t index)
{
    int32_t number;
    memcpy(&number, rig_output(&rig, batch, item, output, index), sizeof number);
    return number;
}

/* ---- Accuracy ---- */

static void check(const struct engine_batch *batch, const struct engine_item *item, int64_t index,
                  const struct gputest_bands *a)
{
    int64_t n = a->n;
    int32_t info = whole(batch, item, INFO, index);
    double *x = numbers(batch, item, INVERSE, index, n * n);
    double *rcond = numbers(batch, item, RCOND, index, 1);
    if (info == 0) {
        double ratio = gputest_band_ratio(a, x);
        if (!(ratio <= GPUTEST_RATIO_MAX))
            fail_msg("n = %d, variant %d, algorithm %d: ratio %g", (int)n,
                     (int)batch->options[METHOD_TRIDIAGONAL_VARIANT],
                     whole(batch, item, ALGORITHM, index), ratio);
        assert_true(*rcond >= gputest_eps(a->precision));
    } else {
        assert_in_range(info, 1, n + 1);
        assert_true(*rcond < gputest_eps(a->precision));
        assert_true(info > n || isnan(x[0]));
    }
    free(x);
    free(rcond);
}

/* All kinds in one batch, an item each. */
static void try_kinds(enum precision precision, int64_t n, int variant)
{
    struct gputest_bands kinds[BANDS_KINDS];
    struct engine_batch *batch = next(ENGINE_LANE_SHORT, precision, n, variant);
    for (int k = 0; k < BANDS_KINDS; k++) {
        kinds[k] = gputest_bands_make((enum gputest_bands_kind)k, precision, n, (uint64_t)(n + k));
        set(batch, gputest_bed_item(&rig.bed, batch, 1), 0, &kinds[k]);
    }
    rig_run(&rig, ENGINE_LANE_SHORT, batch);
    for (int k = 0; k < BANDS_KINDS; k++) {
        check(batch, &batch->items[k], 0, &kinds[k]);
        gputest_bands_free(&kinds[k]);
    }
    finish(batch);
}

static void test_every_kind(void **state)
{
    (void)state;
    static const int64_t orders[] = {1,  2,   3,   5,   16,  17,  31,  32,  33,  64,
                                     65, 100, 127, 128, 129, 300, 511, 512, 513, 1000};
    for (size_t i = 0; i < COUNT(orders) && orders[i] <= n_max; i++)
        for (int k = 0; k < VARIANTS * PRECISION_COUNT; k++)
            try_kinds((enum precision)(k / VARIANTS), orders[i], k % VARIANTS);
}

static void test_kernel_name(void **state)
{
    (void)state;
    struct gputest_bands a = gputest_bands_make(BANDS_LAPLACE, PRECISION_FP64, 9, 1);
    struct engine_batch *batch = next(ENGINE_LANE_LONG, PRECISION_FP64, 9, 0);
    set(batch, gputest_bed_item(&rig.bed, batch, 1), 0, &a);
    rig_run(&rig, ENGINE_LANE_LONG, batch);
    if (rig_is_cuda(&rig))
        assert_string_equal(batch->kernel, "cuda tridiagonal f64 n=9");
    assert_int_equal(whole(batch, &batch->items[0], ALGORITHM, 0), METHOD_ALGORITHM_TWO_SWEEP);
    finish(batch);
    gputest_bands_free(&a);
}

/* ---- Company ---- */

/* Every output of a matrix, one after the other. */
static size_t gather(const struct engine_batch *batch, const struct engine_item *item,
                     int64_t index, unsigned char *answer)
{
    size_t at = 0;
    for (int i = 0; i < OUTPUTS; i++) {
        size_t bytes = (size_t)rig_output_bytes(batch, i);
        memcpy(answer + at, rig_output(&rig, batch, item, i, index), bytes);
        at += bytes;
    }
    return at;
}

/* One matrix in batches of random sizes, at random places. */
static void try_company(enum precision precision, int64_t n, int variant, int rounds)
{
    uint64_t seed = (uint64_t)n;
    size_t bytes = (size_t)(n * n * 8 + n * 8 * 8 + 64);
    unsigned char *first = malloc(bytes), *answer = malloc(bytes);
    assert_true(first && answer);
    for (int round = 0; round < rounds; round++) {
        enum engine_lane_id lane = (enum engine_lane_id)(round % ENGINE_LANES);
        int64_t size = 1 + (int64_t)((gputest_random(&seed) + 1) * 20);
        int64_t place = (int64_t)((gputest_random(&seed) + 1) / 2 * (double)size);
        struct engine_batch *batch = next(lane, precision, n, variant);
        struct engine_item *found = NULL;
        for (int64_t at = 0; at < size; at++) {
            int kind = at == place ? BANDS_CONDITION_2 : (int)(at % BANDS_KINDS);
            struct gputest_bands a = gputest_bands_make((enum gputest_bands_kind)kind, precision, n,
                                                        at == place ? 7 : (uint64_t)at);
            struct engine_item *item = gputest_bed_item(&rig.bed, batch, 1);
            set(batch, item, 0, &a);
            found = at == place ? item : found;
            gputest_bands_free(&a);
        }
        rig_run(&rig, lane, batch);
        size_t length = gather(batch, found, 0, round == 0 ? first : answer);
        if (round > 0)
            assert_memory_equal(answer, first, length);
        finish(batch);
    }
    free(first);
    free(answer);
}

static void test_company_never_shows(void **state)
{
    (void)state;
    static const int64_t orders[] = {3, 31, 64, 129, 513};
    for (size_t i = 0; i < COUNT(orders) && orders[i] <= n_max; i++)
        for (int k = 0; k < VARIANTS * PRECISION_COUNT; k++)
            try_company((enum precision)(k / VARIANTS), orders[i], k % VARIANTS, 12);
}

/* Every slot of both rings at once, which share the memory for workspaces. */
static void test_rings_stay_full(void **state)
{
    (void)state;
    struct engine_batch *flying[ENGINE_LANES * ENGINE_BATCH_SLOTS];
    int64_t n = n_max < 600 ? n_max : 600;
    struct gputest_bands a = gputest_bands_make(BANDS_ILL, PRECISION_FP64, n, 1);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < (int)COUNT(flying); i++) {
            enum engine_lane_id lane = (enum engine_lane_id)(i % ENGINE_LANES);
            flying[i] = next(lane, PRECISION_FP64, n, i % VARIANTS);
            set(flying[i], gputest_bed_item(&rig.bed, flying[i], 1), 0, &a);
            gputest_bed_submit(&rig.bed, lane, flying[i]);
        }
        for (int i = 0; i < (int)COUNT(flying); i++) {
            enum engine_lane_id lane = (enum engine_lane_id)(i % ENGINE_LANES);
            assert_true(gputest_bed_wait(&rig.bed, lane, flying[i], RIG_WAIT_MS));
            assert_int_equal(flying[i]->status, ENGINE_OK);
            check(flying[i], &flying[i]->items[0], 0, &a);
            gputest_bed_release(flying[i]);
        }
        gputest_bed_reset(&rig.bed);
    }
    gputest_bands_free(&a);
}

/* ---- Large orders ---- */

/* (-1, 2, -1), whose inverse is known. */
static void try_large(int64_t n, int variant)
{
    struct gputest_bands a = gputest_bands_make(BANDS_LAPLACE, PRECISION_FP64, n, 1);
    struct engine_batch *batch = next(ENGINE_LANE_LONG, PRECISION_FP64, n, variant);
    struct engine_item *item = gputest_bed_item(&rig.bed, batch, 1);
    set(batch, item, 0, &a);
    rig_run(&rig, ENGINE_LANE_LONG, batch);
    const double *x = (const double *)(void *)rig_output(&rig, batch, item, INVERSE, 0);
    assert_int_equal(whole(batch, item, INFO, 0), 0);
    for (int64_t k = 0; k < n * n; k += 1 + k % 5) {
        int64_t i = k / n + 1, j = k % n + 1, low = i < j ? i : j, high = i + j - low;
        assert_true(fabs(x[k] / ((double)low * (double)(n + 1 - high) / (double)(n + 1)) - 1) <
                    1e-9);
    }
    print_message("one n = %d, variant %d: %.2f ms\n", (int)n, variant,
                  (double)(batch->finished_ns - batch->started_ns) / 1e6);
    finish(batch);
    gputest_bands_free(&a);
}

static void test_large_orders(void **state)
{
    (void)state;
    static const int64_t orders[] = {2047, 4096, 8191};
    for (size_t i = 0; i < COUNT(orders) && orders[i] <= n_max; i++)
        for (int variant = 0; variant < VARIANTS; variant++)
            try_large(orders[i], variant);
}

static void test_diagonal_of_a_million(void **state)
{
    (void)state;
    int64_t n = 1000000;
    if (n > n_max)
        skip();
    for (int variant = 0; variant < VARIANTS; variant++) {
        struct gputest_bands a = gputest_bands_make(BANDS_LAPLACE, PRECISION_FP64, n, 1);
        gputest_bands_fill(&a, -1, 3, -1);
        struct engine_batch *batch = next(ENGINE_LANE_LONG, PRECISION_FP64, n, variant);
        batch->options[METHOD_TRIDIAGONAL_ROWS] = method_range_pack((struct method_range){0, 1});
        batch->options[METHOD_TRIDIAGONAL_COLUMNS] =
            method_range_pack((struct method_range){n / 2, n / 2 + 1});
        struct engine_item *item = gputest_bed_item(&rig.bed, batch, 1);
        set(batch, item, 0, &a);
        rig_run(&rig, ENGINE_LANE_LONG, batch);
        const double *d = (const double *)(void *)rig_output(&rig, batch, item, DIAGONAL, 0);
        assert_int_equal(whole(batch, item, INFO, 0), 0);
        for (int64_t i = 100; i < n - 100; i++)
            assert_true(fabs(d[i] * sqrt(5) - 1) < 1e-12);
        print_message("one n = %d, variant %d: %.2f ms\n", (int)n, variant,
                      (double)(batch->finished_ns - batch->started_ns) / 1e6);
        finish(batch);
        gputest_bands_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_name),         cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_company_never_shows), cmocka_unit_test(test_rings_stay_full),
        cmocka_unit_test(test_large_orders),        cmocka_unit_test(test_diagonal_of_a_million),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
