/* gpu/cuda/gemm/gemm.h on the CPU: both algorithms against sums in double, at every edge of the
 * tiles, stored either way, at any alignment; and bits that do not depend on the batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda/gemm/split_precision.h"
#include "gpu/cuda/gemm/gemm.h"
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

/* Does C hold what the product of `before` must be, but for `ulps` of |A| |B|? Of large ones some
 * entries are tried. */
static void check(const struct cuda_product *p, const void *before, double ulps)
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
                assert_true(difference <= ulps * eps * size);
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
    check(&p, before, (double)p.inner + 4);
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

/* The library's algorithm, and ours where the machine has no library. */
static void large_products_are_right(void **state)
{
    (void)state;
    for (int hidden = 0; hidden < 2; hidden++) {
        struct cuda_products *with = NULL, *adjacent = NULL;
        simt_hide_library(hidden);
        assert_int_equal(cuda_products_create(NULL, &with), cudaSuccess);
        assert_int_equal(cuda_products_create(with, &adjacent), cudaSuccess);
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
            try(i & 2 ? with : adjacent, p, 0, 0);
        }
        cuda_products_destroy(&adjacent);
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

/* ---- FP32 by parts in TF32 ---- */

/* A product of full FP32 numbers, A times 2^a_power, B times 2^b_power. */
static struct cuda_product split_make(struct shape s, bool transpose_a, bool transpose_b,
                                      int64_t shift, int a_power, int b_power)
{
    uint32_t random = (uint32_t)(s.rows * 31 + s.columns * 7 + s.inner);
    int64_t gap = shift ? 3 : 0;
    struct cuda_product p = {.precision = PRECISION_FP32,
                             .rows = s.rows,
                             .columns = s.columns,
                             .inner = s.inner,
                             .transpose_a = transpose_a,
                             .transpose_b = transpose_b,
                             .alpha = 1,
                             .count = s.count};
    int64_t a_rows = transpose_a ? s.inner : s.rows, b_rows = transpose_b ? s.columns : s.inner;
    p.a = make(PRECISION_FP32, a_rows, s.rows + s.inner - a_rows, s.count, shift, gap, &random);
    p.b = make(PRECISION_FP32, b_rows, s.columns + s.inner - b_rows, s.count, shift, gap, &random);
    p.c = make(PRECISION_FP32, s.rows, s.columns, s.count, shift, gap, &random);
    for (int64_t i = 0; i < p.a.step * s.count; i++)
        ((float *)p.a.at)[i] = ldexpf(((float *)p.a.at)[i] * 1.1f, a_power);
    for (int64_t i = 0; i < p.b.step * s.count; i++)
        ((float *)p.b.at)[i] = ldexpf(((float *)p.b.at)[i] * 1.1f, b_power);
    size_t bytes = cuda__product_split_bytes(&p);
    assert_int_equal(cudaMalloc(&p.scratch, bytes), cudaSuccess);
    memset(p.scratch, 0xff, bytes); /* NaN */
    return p;
}

static void split_release(struct cuda_product *p, int64_t shift)
{
    release(&p->a, PRECISION_FP32, shift);
    release(&p->b, PRECISION_FP32, shift);
    release(&p->c, PRECISION_FP32, shift);
    assert_int_equal(cudaFree(p->scratch), cudaSuccess);
}

/* What the parts leave out, sums that are cut off every four indices of a piece, and the pieces'
 * own sums. Without the low parts thousands would come out. */
static double split_ulps(int64_t inner)
{
    int64_t piece = inner < CUDA__SPLIT_DEPTH ? inner : CUDA__SPLIT_DEPTH;
    return (inner > CUDA__SPLIT_SHALLOW ? 32 : 4) + (double)piece / 4 +
           (double)inner / CUDA__SPLIT_DEPTH + 2;
}

static void split_products_are_right(void **state)
{
    static const struct shape split[] = {
        {1, 1, 1, 1},     {3, 5, 7, 3},     {33, 30, 17, 2}, {64, 64, 64, 1}, {65, 63, 133, 2},
        {20, 70, 513, 1}, {34, 9, 1100, 1}, {8, 9, 4100, 1}, {9, 8, 384, 1},  {9, 8, 385, 1}};
    struct cuda_products *with = NULL;
    (void)state;
    assert_int_equal(cuda_products_create(NULL, &with), cudaSuccess);
    for (size_t i = 0; i < COUNT(split) * 8; i++) {
        int64_t shift = i & 4 ? 1 : 0;
        struct cuda_product p = split_make(split[i / 8], i & 1, i & 2, shift, 0, 0);
        p.alpha = -1.5;
        p.beta = i % 3 == 0 ? 0 : 0.75;
        void *before = copy_of(&p);
        if (p.beta == 0) /* is not read */
            *(float *)p.c.at = NAN;
        assert_int_equal(cuda__product_split(with, &p, NULL), cudaSuccess);
        check(&p, before, split_ulps(p.inner));
        for (int64_t r = 0; shift && r < p.rows; r++) {
            int64_t at = r * p.c.stride + p.columns;
            assert_true(((float *)p.c.at)[at] == ((float *)before)[at]);
        }
        free(before);
        split_release(&p, shift);
    }
    cuda_products_destroy(&with);
}

/* Operands near underflow and overflow give the same bits, but for the power of two. */
static void split_products_are_scaled(void **state)
{
    static const struct {
        int a, b;
    } rows[] = {{-31, 0}, {0, -60}, {-100, 30}, {-112, 120}, {63, -20}, {123, -112}, {-51, -42}};
    const struct shape s = {20, 30, 40, 1};
    struct cuda_products *with = NULL;
    (void)state;
    assert_int_equal(cuda_products_create(NULL, &with), cudaSuccess);
    struct cuda_product plain = split_make(s, false, false, 0, 0, 0);
    assert_int_equal(cuda__product_split(with, &plain, NULL), cudaSuccess);
    for (size_t i = 0; i < COUNT(rows); i++) {
        /* Entries are normal numbers, or nought. */
        struct cuda_product p = split_make(s, false, false, 0, 0, 0);
        for (int64_t k = 0; k < p.a.step; k++)
            ((float *)p.a.at)[k] = ldexpf(((float *)p.a.at)[k], rows[i].a);
        for (int64_t k = 0; k < p.b.step; k++)
            ((float *)p.b.at)[k] = ldexpf(((float *)p.b.at)[k], rows[i].b);
        assert_int_equal(cuda__product_split(with, &p, NULL), cudaSuccess);
        for (int64_t k = 0; k < s.rows * s.columns; k++)
            assert_true(((float *)p.c.at)[k] ==
                        ldexpf(((float *)plain.c.at)[k], rows[i].a + rows[i].b));
        split_release(&p, 0);
    }
    split_release(&plain, 0);
    cuda_products_destroy(&with);
}

/* Two operands with entries near the largest number, which do not meet. */
static void split_products_of_large_numbers(void **state)
{
    const struct shape s = {40, 40, 40, 1};
    struct cuda_products *with = NULL;
    (void)state;
    assert_int_equal(cuda_products_create(NULL, &with), cudaSuccess);
    struct cuda_product p = split_make(s, false, false, 0, 0, 0);
    float *a = p.a.at, *b = p.b.at, *c = p.c.at;
    for (int64_t k = 0; k < 40 * 40; k++)
        a[k] = b[k] = k % 41 == 0 ? 1 : 0;
    a[0] = b[41] = 0x1p125f;
    assert_int_equal(cuda__product_split(with, &p, NULL), cudaSuccess);
    for (int64_t k = 0; k < 40 * 40; k++)
        assert_true(c[k] == (k == 0 || k == 41 ? 0x1p125f : a[k]));
    split_release(&p, 0);
    cuda_products_destroy(&with);
}

/* NaN and infinities stay in their rows and columns, and are not finite there; the largest numbers
 * are. */
static void split_products_tell_what_is_not_finite(void **state)
{
    const struct shape s = {12, 9, 70, 1};
    struct cuda_products *with = NULL;
    (void)state;
    assert_int_equal(cuda_products_create(NULL, &with), cudaSuccess);
    for (int i = 0; i < 4; i++) {
        struct cuda_product p = split_make(s, false, false, 0, 0, -20);
        float *a = p.a.at, *b = p.b.at, *c = p.c.at;
        uint32_t least = 0x7f800001; /* a NaN whose mantissa TF32 has not */
        a[3 * 70 + 5] = i == 0 ? NAN : i == 1 ? -INFINITY : FLT_MAX;
        if (i == 2)
            memcpy(&a[3 * 70 + 5], &least, sizeof least);
        if (i == 1)
            b[6 * 9 + 2] = INFINITY;
        assert_int_equal(cuda__product_split(with, &p, NULL), cudaSuccess);
        for (int k = 0; k < 12 * 9; k++)
            assert_int_equal(isfinite(c[k]) != 0,
                             i == 3 || (k / 9 != 3 && !(i == 1 && k % 9 == 2)));
        split_release(&p, 0);
    }
    cuda_products_destroy(&with);
}

/* Which shapes take that algorithm, if they may. */
static void split_products_have_their_shapes(void **state)
{
    static const struct {
        enum precision precision;
        int64_t rows, columns, inner;
        bool is_split;
    } rows[] = {
        {PRECISION_FP32, 1024, 1024, 1024, false},
        {PRECISION_FP32, 2048, 2048, 2048, true},
        {PRECISION_FP64, 2048, 2048, 2048, false},
        {PRECISION_FP32, 32768, 32768, 32768, true},
        {PRECISION_FP32, 8192, 8192, 32, false},
        {PRECISION_FP32, 4096, 4096, 128, true},
        {PRECISION_FP32, 64, 1 << 15, 1 << 15, false},
        {PRECISION_FP32, 1 << 20, 512, 512, false},
        {PRECISION_FP32, 0, 0, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct cuda_product p = {.precision = rows[i].precision,
                                 .rows = rows[i].rows,
                                 .columns = rows[i].columns,
                                 .inner = rows[i].inner};
        size_t bytes = cuda_product_scratch(&p);
        assert_int_equal(bytes > 0, rows[i].is_split);
        if (bytes > 0)
            assert_int_equal(bytes, cuda__product_split_bytes(&p));
        assert_true(bytes <= ((size_t)(rows[i].rows + rows[i].columns) << 14) + 256);
    }
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
    struct cuda_products *with = NULL, *adjacent = NULL;
    int64_t before = simt_allocations();
    (void)state;
    assert_int_equal(cuda_products_create(NULL, &with), cudaSuccess);
    assert_int_equal(cuda_products_create(with, &adjacent), cudaSuccess);
    cuda_products_destroy(&with);
    cuda_products_destroy(&adjacent);
    cuda_products_destroy(&adjacent);
    assert_int_equal(simt_allocations(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(large_products_are_right),
        cmocka_unit_test(bits_do_not_depend_on_the_batch),
        cmocka_unit_test(split_products_are_right),
        cmocka_unit_test(split_products_are_scaled),
        cmocka_unit_test(split_products_of_large_numbers),
        cmocka_unit_test(split_products_tell_what_is_not_finite),
        cmocka_unit_test(split_products_have_their_shapes),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(nothing_is_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
