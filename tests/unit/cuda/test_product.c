/* gpu/cuda/product.h on the CPU: both roads against sums in double, at every edge of the tiles,
 * stored either way, at any alignment; and bits that do not depend on the batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda/product.h"
#include "tests/simt/simt.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct shape {
    int64_t rows, columns, inner, count;
};

static double draw(uint32_t *random)
{
    *random = *random * 1664525u + 1013904223u;
    return (double)(int32_t)(*random >> 8 & 0xffff) / 4096 - 8;
}

static void put(enum precision precision, void *at, int64_t index, double value)
{
    if (precision == PRECISION_FP32)
        ((float *)at)[index] = (float)value;
    else
        ((double *)at)[index] = value;
}

static double get(enum precision precision, const void *at, int64_t index)
{
    return precision == PRECISION_FP32 ? (double)((const float *)at)[index]
                                       : ((const double *)at)[index];
}

/* Matrices of rows x columns; `shift` numbers from where memory is aligned, rows `gap` further
 * apart than they need be. */
static struct cuda_matrices make(enum precision precision, int64_t rows, int64_t columns,
                                 int64_t count, int64_t shift, int64_t gap, uint32_t *random)
{
    void *memory = NULL;
    int64_t stride = columns + gap, step = rows * stride + gap;
    int64_t numbers = shift + step * count + 16;
    assert_int_equal(cudaMalloc(&memory, (size_t)(numbers * precision_bytes(precision))), 0);
    for (int64_t i = 0; i < numbers; i++)
        put(precision, memory, i, draw(random));
    return (struct cuda_matrices){
        .at = (char *)memory + shift * precision_bytes(precision), .stride = stride, .step = step};
}

static double entry(const struct cuda_product *p, const struct cuda_matrices *of, int64_t matrix,
                    int64_t i, int64_t j, bool transposed)
{
    int64_t at = transposed ? j * of->stride + i : i * of->stride + j;
    return get(p->precision, of->at, matrix * of->step + at);
}

/* Does C hold what the product of `before` must be? Of large ones some entries are tried. */
static void check(const struct cuda_product *p, const void *before)
{
    double eps = p->precision == PRECISION_FP32 ? 0x1p-23 : 0x1p-52;
    int64_t apart = p->rows * p->columns * p->inner > INT64_C(1) << 24 ? 5 : 1;
    for (int64_t m = 0; m < p->count; m++) {
        for (int64_t i = 0; i < p->rows; i++) {
            for (int64_t j = i % apart; j < p->columns; j += apart) {
                int64_t at = m * p->c.step + i * p->c.stride + j;
                double old = get(p->precision, before, at);
                double sum = p->beta == 0 ? 0 : p->beta * old, size = fabs(sum);
                for (int64_t k = 0; k < p->inner; k++) {
                    double x = p->alpha * entry(p, &p->a, m, i, k, p->transpose_a) *
                               entry(p, &p->b, m, k, j, p->transpose_b);
                    sum += x;
                    size += fabs(x);
                }
                double difference = fabs(get(p->precision, p->c.at, at) - sum);
                assert_true(difference <= ((double)p->inner + 4) * eps * size);
            }
        }
    }
}

static void release(struct cuda_matrices *of, enum precision precision, int64_t shift)
{
    assert_int_equal(cudaFree((char *)of->at - shift * precision_bytes(precision)), 0);
}

static void *copy_of(const struct cuda_product *p)
{
    size_t bytes = (size_t)(p->count * p->c.step * precision_bytes(p->precision));
    void *copy = malloc(bytes + 1);
    assert_non_null(copy);
    memcpy(copy, p->c.at, bytes);
    return copy;
}

static void try(struct cuda_products *with, struct cuda_product p, int64_t shift, int64_t gap)
{
    uint32_t random = (uint32_t)(p.rows * 31 + p.columns * 7 + p.inner);
    p.a = make(p.precision, p.transpose_a ? p.inner : p.rows, p.transpose_a ? p.rows : p.inner,
               p.count, shift, gap, &random);
    p.b = make(p.precision, p.transpose_b ? p.columns : p.inner,
               p.transpose_b ? p.inner : p.columns, p.count, shift, gap, &random);
    p.c = make(p.precision, p.rows, p.columns, p.count, shift, gap, &random);
    void *before = copy_of(&p);
    assert_int_equal(cuda_product(with, &p, NULL), cudaSuccess);
    check(&p, before);
    /* What lies between the rows is not touched. */
    for (int64_t i = 0; gap > 0 && i < p.rows; i++) {
        int64_t at = i * p.c.stride + p.columns;
        assert_true(get(p.precision, p.c.at, at) == get(p.precision, before, at));
    }
    free(before);
    release(&p.a, p.precision, shift);
    release(&p.b, p.precision, shift);
    release(&p.c, p.precision, shift);
}

static const struct shape shapes[] = {
    {1, 1, 1, 1},    {1, 1, 0, 2},      {3, 5, 7, 3},      {16, 16, 16, 2}, {31, 33, 17, 2},
    {32, 32, 8, 1},  {33, 1, 40, 1},    {1, 65, 15, 1},    {64, 64, 64, 1}, {65, 63, 33, 2},
    {100, 70, 3, 1}, {130, 257, 19, 1}, {257, 260, 16, 1},
};

static void products_are_right(void **state)
{
    struct cuda_products *with = NULL;
    (void)state;
    assert_int_equal(cuda_products_create(NULL, &with), cudaSuccess);
    for (size_t i = 0; i < COUNT(shapes) * 8; i++) {
        const struct shape *s = &shapes[i / 8];
        struct cuda_product p = {.precision = i & 1 ? PRECISION_FP64 : PRECISION_FP32,
                                 .rows = s->rows,
                                 .columns = s->columns,
                                 .inner = s->inner,
                                 .transpose_a = i & 2,
                                 .transpose_b = i & 4,
                                 .alpha = -1.5,
                                 .beta = i % 3 == 0 ? 0 : 0.75,
                                 .count = s->count};
        try(with, p, 0, 0);
        try(with, p, 1, 3);
    }
    cuda_products_destroy(&with);
    assert_null(with);
}

/* The library's road, and ours where the machine has no library. */
static void large_products_are_right(void **state)
{
    (void)state;
    for (int hidden = 0; hidden < 2; hidden++) {
        struct cuda_products *with = NULL, *beside = NULL;
        simt_hide_library(hidden);
        assert_int_equal(cuda_products_create(NULL, &with), cudaSuccess);
        assert_int_equal(cuda_products_create(with, &beside), cudaSuccess);
        for (int i = 0; i < 4; i++) {
            struct cuda_product p = {.precision = i & 1 ? PRECISION_FP64 : PRECISION_FP32,
                                     .rows = 36,
                                     .columns = 14,
                                     .inner = (INT64_C(1) << 28) / (36 * 14) + 1,
                                     .transpose_a = i & 1,
                                     .transpose_b = i & 2,
                                     .alpha = 2,
                                     .beta = -1,
                                     .count = 1};
            if (hidden) { /* any size will do, and ours takes its time */
                p.rows = 270;
                p.columns = 300;
                p.inner = 20;
            }
            try(i & 2 ? with : beside, p, 0, 0);
        }
        cuda_products_destroy(&beside);
        cuda_products_destroy(&with);
    }
    simt_hide_library(false);
}

/* A matrix has one answer, wherever it is in however many. */
static void bits_do_not_depend_on_the_batch(void **state)
{
    struct cuda_products *with = NULL;
    uint32_t random = 5;
    const int64_t n = 50, count = 7;
    (void)state;
    assert_int_equal(cuda_products_create(NULL, &with), cudaSuccess);
    for (int i = 0; i < PRECISION_COUNT; i++) {
        enum precision precision = (enum precision)i;
        struct cuda_product all = {.precision = precision,
                                   .rows = n,
                                   .columns = n,
                                   .inner = n,
                                   .alpha = 1,
                                   .count = count};
        all.a = make(precision, n, n, count, 0, 0, &random);
        all.b = make(precision, n, n, 1, 0, 0, &random);
        all.c = make(precision, n, n, count, 0, 0, &random);
        all.b.step = 0;
        assert_int_equal(cuda_product(with, &all, NULL), cudaSuccess);
        for (int64_t m = 0; m < count; m++) {
            struct cuda_product one = all;
            size_t bytes = (size_t)(n * n * precision_bytes(precision));
            one.count = 1;
            one.a.at = (char *)all.a.at + m * all.a.step * precision_bytes(precision);
            one.c = make(precision, n, n, 1, 0, 0, &random);
            assert_int_equal(cuda_product(with, &one, NULL), cudaSuccess);
            assert_memory_equal(
                one.c.at, (char *)all.c.at + m * all.c.step * precision_bytes(precision), bytes);
            release(&one.c, precision, 0);
        }
        release(&all.a, precision, 0);
        release(&all.b, precision, 0);
        release(&all.c, precision, 0);
    }
    cuda_products_destroy(&with);
}

static void what_cannot_be_is_refused(void **state)
{
    struct cuda_products *with = NULL;
    double numbers[4] = {1, 2, 3, 4};
    struct cuda_matrices two = {numbers, 2, 4};
    struct cuda_product good = {.precision = PRECISION_FP64,
                                .rows = 2,
                                .columns = 2,
                                .inner = 2,
                                .alpha = 1,
                                .a = two,
                                .b = two,
                                .c = two,
                                .count = 0};
    struct cuda_product bad[6] = {good, good, good, good, good, good};
    (void)state;
    assert_int_equal(cuda_products_create(NULL, &with), cudaSuccess);
    bad[0].precision = PRECISION_COUNT;
    bad[1].rows = -1;
    bad[2].a.stride = 1;
    bad[3].c.stride = 1;
    bad[4].count = -1;
    bad[5].rows = INT64_C(1) << 40;
    bad[5].inner = bad[5].a.stride = INT64_C(1) << 40;
    assert_int_equal(cuda_product(with, &good, NULL), cudaSuccess);
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(cuda_product(with, &bad[i], NULL), cudaErrorInvalidValue);
    cuda_products_destroy(&with);
}

static void nothing_is_left_behind(void **state)
{
    struct cuda_products *with = NULL, *beside = NULL;
    int64_t before = simt_allocations();
    (void)state;
    assert_int_equal(cuda_products_create(NULL, &with), cudaSuccess);
    assert_int_equal(cuda_products_create(with, &beside), cudaSuccess);
    cuda_products_destroy(&with);
    cuda_products_destroy(&beside);
    cuda_products_destroy(&beside);
    assert_int_equal(simt_allocations(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(large_products_are_right),
        cmocka_unit_test(bits_do_not_depend_on_the_batch),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
