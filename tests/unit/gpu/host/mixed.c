/* tests/unit/gpu/host/mixed.c: see mixed.h. */
#include "tests/unit/gpu/host/mixed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/residual.h"
#include "tests/unit/gpu/host/matrices.h"

enum kind {
    RANDOM,
    SINGULAR,
    GROWTH,
    KERNEL,
    KINDS
};

static const struct {
    int64_t count;
    bool wants[2]; /* by enum method_side */
    bool inverse;
} items[] = {
    {2, {true, true}, true},    {1, {false, false}, true}, {5, {true, false}, true},
    {1, {false, false}, false}, {4, {false, true}, true},  {1, {true, true}, true},
};

/* Element (i, j) of a matrix of order n. */
static double element(enum kind kind, int64_t n, int64_t i, int64_t j, uint64_t *seed)
{
    const double random = gputest_random(seed), apart = (double)(i - j) / 2;
    switch (kind) {
    case SINGULAR:
        return j == n - 1 ? 0 : random;
    case GROWTH:
        return i == j || j == n - 1 ? 1 : i > j ? -0.9 : 0;
    case KERNEL:
        return (exp(-apart * apart / 16) + (i == j ? 1e-12 : 0)) * (1 + (double)i / (double)n);
    default:
        return random;
    }
}

static void put(enum precision precision, unsigned char *to, int64_t index, double value)
{
    const float narrow = (float)value;
    const int64_t unit = precision_bytes(precision);
    memcpy(to + index * unit, unit == 4 ? (const void *)&narrow : (const void *)&value,
           (size_t)unit);
}

static double get(enum precision precision, const unsigned char *from, int64_t index)
{
    float narrow;
    double wide;
    if (precision == PRECISION_FP64) {
        memcpy(&wide, from + index * 8, 8);
        return wide;
    }
    memcpy(&narrow, from + index * 4, 4);
    return narrow;
}

/* The batch's matrix `number`. */
static void fill(const struct gputest_mixed *row, int64_t number, unsigned char *a)
{
    const enum kind kind = (enum kind)(number % KINDS);
    uint64_t seed = (uint64_t)(number + 1) * 7919;
    for (int64_t e = 0; e < row->n * row->n; e++)
        put(row->precision, a, e, element(kind, row->n, e / row->n, e % row->n, &seed));
}

struct engine_batch *gputest_mixed_next(struct gputest_bed *bed, enum engine_lane_id lane,
                                        const struct gputest_mixed *row)
{
    const struct method *method = method_find(row->method);
    struct engine_batch *batch = gputest_bed_next(bed, lane, row->method, row->precision, row->n);
    int64_t matrix = 0;
    for (size_t k = 0; k < sizeof items / sizeof items[0]; k++) {
        struct engine_item *item = gputest_bed_item(bed, batch, items[k].count);
        unsigned char *a = bed->arena + item->inputs[0].offset_bytes;
        for (int64_t index = 0; index < items[k].count; index++)
            fill(row, matrix + index,
                 a + index * row->n * row->n * precision_bytes(row->precision));
        matrix += items[k].count;
        for (int side = METHOD_LEFT; side <= METHOD_RIGHT; side++) {
            if (!items[k].wants[side])
                gputest_bed_drop(batch, item, method_residual_find(method, (enum method_side)side));
        }
        if (!items[k].inverse)
            gputest_bed_drop(batch, item, METHOD_OUTPUT_INVERSE);
    }
    return batch;
}

/* Of one matrix. sides: what they are. */
static void check_matrix(const struct gputest_bed *bed, const struct engine_batch *batch,
                         const struct engine_item *item, int64_t index, const double sides[2],
                         double slack)
{
    const struct method *method = method_at((int)batch->method);
    int32_t info;
    memcpy(&info, bed->arena + item->outputs[METHOD_OUTPUT_INFO].offset_bytes + index * 4, 4);
    for (int side = METHOD_LEFT; side <= METHOD_RIGHT; side++) {
        const int output = method_residual_find(method, (enum method_side)side);
        const struct engine_tensor *tensor = &item->outputs[output];
        if (tensor->region == ENGINE_REGION_NONE)
            continue;
        const double found =
            get((enum precision)batch->precision, bed->arena + tensor->offset_bytes, index);
        if (info >= 1 && info <= batch->n ? isnan(found)
                                          : fabs(found - sides[side]) <= slack + sides[side] / 100)
            continue;
        print_error("%s n = %d, item %d, matrix %d: %s is %g, not %g; INFO %d\n", method->name,
                    (int)batch->n, (int)(item - batch->items), (int)index,
                    method->outputs[output].name, found, sides[side], (int)info);
        fail();
    }
}

double gputest_mixed_check(const struct gputest_bed *bed, const struct engine_batch *batch,
                           double slack)
{
    const enum precision precision = (enum precision)batch->precision;
    const int64_t n = batch->n, all = n * n;
    double *a = gputest_numbers(all), *x = gputest_numbers(all), apart = 0;
    for (uint32_t k = 0; k < batch->item_count; k++) {
        const struct engine_item *item = &batch->items[k];
        for (int64_t index = 0; items[k].inverse && index < item->count; index++) {
            for (int64_t e = 0; e < all; e++) {
                a[e] = get(precision, bed->arena + item->inputs[0].offset_bytes, index * all + e);
                x[e] =
                    get(precision, bed->arena + item->outputs[METHOD_OUTPUT_INVERSE].offset_bytes,
                        index * all + e);
            }
            const struct residual_sides sides = residual_sides(gputest_eps(precision), n, a, x);
            check_matrix(bed, batch, item, index, (const double[]){sides.left, sides.right}, slack);
            apart = fmax(apart, fabs(sides.left - sides.right));
        }
    }
    free(x);
    free(a);
    return apart;
}
