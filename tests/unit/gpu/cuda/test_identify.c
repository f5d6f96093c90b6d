/* The CUDA engine's passes that tell what kind of matrix one is, and its transposes, run on the
 * CPU: against sums done plainly, for every way of cutting into strips. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "gpu/cuda/structured/identify.h"
#include "gpu/cuda/structured/transpose.h"
#include "tests/simt/simt.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NOISE 0xff

/* Matrices of one order one behind the other, in rows of `stride`; in the precision. */
struct bed {
    enum precision precision;
    int64_t n, count, stride;
    unsigned char *numbers;
};

static struct bed make(enum precision precision, int64_t n, int64_t count, int64_t stride)
{
    size_t bytes = (size_t)(count * n * stride * precision_bytes(precision));
    struct bed bed = {precision, n, count, stride, malloc(bytes)};
    assert_non_null(bed.numbers);
    memset(bed.numbers, NOISE, bytes);
    return bed;
}

static void set(const struct bed *bed, int64_t k, int64_t i, int64_t j, double value)
{
    int64_t at = (k * bed->n + i) * bed->stride + j;
    if (bed->precision == PRECISION_FP32)
        ((float *)(void *)bed->numbers)[at] = (float)value;
    else
        ((double *)(void *)bed->numbers)[at] = value;
}

static double get(const struct bed *bed, int64_t k, int64_t i, int64_t j)
{
    int64_t at = (k * bed->n + i) * bed->stride + j;
    return bed->precision == PRECISION_FP32 ? (double)((float *)(void *)bed->numbers)[at]
                                            : ((double *)(void *)bed->numbers)[at];
}

static void fill(const struct bed *bed, uint64_t seed)
{
    for (int64_t e = 0; e < bed->count * bed->n * bed->n; e++)
        set(bed, e / bed->n / bed->n, e / bed->n % bed->n, e % bed->n,
            (double)(float)gputest_random(&seed));
}

static int tiles; /* of a strip's width */

/* With a scratch of its own. */
static void run(struct cuda_identification *task)
{
    size_t bytes = cuda_identify_bytes(task->precision, task->n, task->count * task->sets);
    assert_int_equal(cudaMalloc(&task->scratch, bytes), cudaSuccess);
    cudaMemset(task->scratch, NOISE, bytes);
    if (cuda_identify_by(task, tiles, NULL) != cudaSuccess)
        fail_msg("%s", simt_report());
    cudaFree(task->scratch);
}

/* Of several sets the last matrix of each is left out. */
static void identify(const struct bed *bed, const double *factors, int64_t sets,
                     struct cuda_identity *to)
{
    int64_t step = bed->n * bed->stride, apart = bed->count / sets;
    struct cuda_identification task = {.precision = bed->precision,
                                       .n = bed->n,
                                       .a = {bed->numbers, bed->stride, step},
                                       .count = sets > 1 ? apart - 1 : apart,
                                       .sets = sets,
                                       .set_step = apart * step,
                                       .factors = factors,
                                       .to = to,
                                       .to_step = apart};
    memset(to, NOISE, (size_t)bed->count * sizeof *to);
    run(&task);
}

static struct cuda_identity identify_one(const struct bed *bed)
{
    struct cuda_identity identity;
    identify(bed, NULL, 1, &identity);
    return identity;
}

static bool near(double a, double b, double relative)
{
    return fabs(a - b) <= relative * fabs(b);
}

/* ---- Norms ---- */

/* Of one strip and of several, whole and not, whatever their width. */
static const int64_t orders[] = {1, 2, 3, 31, 32, 33, 64, 95, 129, 256, 300, 1057};

static void check_norms(const struct bed *bed, int64_t k, const struct cuda_identity *found,
                        double factor)
{
    int64_t n = bed->n;
    long double *columns = calloc((size_t)n, sizeof *columns), square = 0;
    long double *rows = calloc((size_t)n, sizeof *rows), one = 0, inf = 0, least = HUGE_VAL;
    double eps = 16 * gputest_eps(bed->precision), dominance = 0;
    assert_true(columns && rows);
    for (int64_t i = 0; i < n; i++) {
        long double squares = 0; /* of a row: one sum of all would lose more than the device */
        for (int64_t j = 0; j < n; j++) {
            double x = fabs(get(bed, k, i, j) * factor);
            columns[j] += x;
            rows[i] += x;
            squares += (long double)x * x;
        }
        square += squares;
    }
    for (int64_t i = 0; i < n; i++) {
        double own = fabs(get(bed, k, i, i) * factor);
        one = fmaxl(one, columns[i]);
        inf = fmaxl(inf, rows[i]);
        least = fminl(least, fminl(rows[i], columns[i]));
        dominance = fmax(dominance, (double)(rows[i] - own) / own);
    }
    assert_true(near(found->norm_1, (double)one, eps));
    assert_true(near(found->norm_inf, (double)inf, eps));
    assert_true(near(found->min, (double)least, eps));
    assert_true(near(found->frobenius, sqrt((double)square), eps));
    assert_true(n == 1 || near(found->dominance, dominance, 1e-4));
    assert_int_equal(found->dominant, dominance < 1);
    assert_false(found->parts & CUDA_PART_NOT_FINITE);
    free(columns);
    free(rows);
}

static void check_random(enum precision precision, int64_t n)
{
    struct bed bed = make(precision, n, 1, n + n % 3);
    fill(&bed, (uint64_t)n);
    const struct cuda_identity found = identify_one(&bed);
    check_norms(&bed, 0, &found, 1);
    free(bed.numbers);
}

static void test_norms(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(orders) * PRECISION_COUNT; i++)
        check_random((enum precision)(i % PRECISION_COUNT), orders[i / PRECISION_COUNT]);
    check_random(PRECISION_FP32, 1473); /* more pairs than are read together */
}

/* Sets of matrices, and factors: each matrix has its own answer, bit for bit that which it has
 * alone. */
static void test_neighbours_never_show(void **state)
{
    (void)state;
    enum {
        COUNT_OF_ALL = 8,
        APART = 4
    };
    static const double factors[] = {0.5, NAN, -4, NAN, 1, NAN};
    for (int precision = 0; precision < PRECISION_COUNT; precision++) {
        struct bed bed = make((enum precision)precision, 70, COUNT_OF_ALL, 80);
        struct cuda_identity found[COUNT_OF_ALL], plain[COUNT_OF_ALL], none;
        memset(&none, NOISE, sizeof none);
        fill(&bed, 3);
        identify(&bed, factors, COUNT_OF_ALL / APART, found);
        identify(&bed, NULL, 1, plain);
        for (int64_t k = 0; k < COUNT_OF_ALL; k++) {
            struct bed alone = bed;
            struct cuda_identity one;
            if (k % APART == APART - 1)
                assert_memory_equal(&found[k], &none, sizeof none);
            else
                check_norms(&bed, k, &found[k], factors[k % APART * 2]);
            alone.count = 1;
            alone.numbers += k * bed.n * bed.stride * precision_bytes(bed.precision);
            one = identify_one(&alone);
            assert_memory_equal(&one, &plain[k], sizeof one);
        }
        free(bed.numbers);
    }
}

/* In any of so many matrices, all the same one, what it has alone. */
static void check_alike(const struct bed *bed, const struct cuda_identity *alone, int64_t count)
{
    struct cuda_identity *found = calloc((size_t)count, sizeof *found);
    struct cuda_identification task = {.precision = bed->precision,
                                       .n = bed->n,
                                       .a = {bed->numbers, bed->stride, 0},
                                       .count = count,
                                       .sets = 1,
                                       .to = found};
    assert_non_null(found);
    run(&task);
    for (int64_t k = 0; k < count; k++)
        assert_memory_equal(&found[k], alone, sizeof *alone);
    free(found);
}

/* Its sums have other bits in another order. */
static struct bed make_thirds(enum precision precision, int64_t n)
{
    struct bed bed = make(precision, n, 1, n + 1);
    fill(&bed, 9);
    for (int64_t e = 0; e < n * n; e++)
        set(&bed, 0, e / n, e % n, get(&bed, 0, e / n, e % n) / 3);
    return bed;
}

/* Nor do neighbours show where there are so many matrices that a group has fewer warps than eight:
 * one, two or four. */
static void test_many_neighbours_never_show(void **state)
{
    (void)state;
    static const int64_t counts[] = {410, 205, 103};
    const int64_t n = 290;
    struct bed bed = make_thirds(PRECISION_FP64, n);
    struct cuda_identity alone = identify_one(&bed);
    check_norms(&bed, 0, &alone, 1);
    for (size_t i = 0; i < COUNT(counts); i++)
        check_alike(&bed, &alone, counts[i]);
    for (int64_t i = 0; i < n; i++) {
        set(&bed, 0, i, n - 2, 0);
        set(&bed, 0, n / 2, i, 0);
    }
    alone = identify_one(&bed);
    assert_int_equal(alone.zero_column, n - 1);
    assert_int_equal(alone.zero_row, n / 2 + 1);
    for (size_t i = 0; i < COUNT(counts); i++)
        check_alike(&bed, &alone, counts[i]);
    free(bed.numbers);
}

/* Which have more lines of sums than a warp has lanes, with strips of one tile. */
static void test_neighbours_of_large_matrices_never_show(void **state)
{
    (void)state;
    struct bed bed = make_thirds(PRECISION_FP32, 1057);
    const struct cuda_identity alone = identify_one(&bed);
    check_norms(&bed, 0, &alone, 1);
    check_alike(&bed, &alone, 31);
    free(bed.numbers);
}

/* ---- Dominance ---- */

static void test_dominance(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(orders); k++) {
        int64_t n = orders[k], row = n / 2;
        struct bed bed = make(PRECISION_FP32, n, 1, n);
        /* Halves, so that every sum is exact. */
        for (int64_t e = 0; e < n * n; e++)
            set(&bed, 0, e / n, e % n, e / n == e % n ? (double)n : e % 2 ? 0.5 : -0.5);
        double others = (double)(n - 1) / 2;
        struct cuda_identity found = identify_one(&bed);
        assert_true(found.dominant);
        assert_true(near(found.dominance, others / (double)n, 1e-15));
        /* As large as the others together is not enough, whatever its sign. */
        set(&bed, 0, row, row, -others);
        assert_false(identify_one(&bed).dominant);
        set(&bed, 0, row, row, -others - 0.25);
        assert_true(identify_one(&bed).dominant);
        set(&bed, 0, row, row, 0);
        found = identify_one(&bed);
        assert_false(found.dominant);
        assert_true(isinf(found.dominance));
        free(bed.numbers);
    }
}

/* ---- Parts ---- */

/* Where one entry in a matrix of zeros with a diagonal of ones makes a part. */
static uint32_t expected_part(int64_t i, int64_t j)
{
    uint32_t part = i < j ? CUDA_PART_ABOVE : i > j ? CUDA_PART_BELOW : 0;
    if (i - j > 1 || j - i > 1)
        part |= CUDA_PART_OFF_BAND;
    return part | (i == j ? 0 : CUDA_PART_ASYMMETRIC);
}

static void test_parts(void **state)
{
    (void)state;
    static const int64_t places[] = {0, 1, 2, 30, 31, 32, 33, 63, 64, 65, 68, 69};
    int64_t n = 70;
    struct bed bed = make(PRECISION_FP64, n, 1, n);
    for (size_t k = 0; k < COUNT(places) * COUNT(places); k++) {
        int64_t i = places[k / COUNT(places)], j = places[k % COUNT(places)];
        for (int64_t e = 0; e < n * n; e++)
            set(&bed, 0, e / n, e % n, e / n == e % n);
        assert_int_equal(identify_one(&bed).parts, 0);
        set(&bed, 0, i, j, 4.9e-324);
        assert_int_equal(identify_one(&bed).parts, expected_part(i, j));
        set(&bed, 0, j, i, 4.9e-324);
        assert_int_equal(identify_one(&bed).parts,
                         (expected_part(i, j) | expected_part(j, i)) & ~CUDA_PART_ASYMMETRIC);
        set(&bed, 0, i, i, i == j ? -0.0 : -1);
        assert_true(identify_one(&bed).parts & CUDA_PART_NOT_POSITIVE);
    }
    free(bed.numbers);
}

static void check_large_parts(enum precision precision, int64_t n, const int64_t (*places)[2],
                              size_t count)
{
    struct bed bed = make(precision, n, 1, n);
    for (int64_t e = 0; e < n * n; e++)
        set(&bed, 0, e / n, e % n, e / n == e % n);
    for (size_t k = 0; k < count; k++) {
        int64_t i = places[k][0], j = places[k][1];
        set(&bed, 0, i, j, 3);
        struct cuda_identity found = identify_one(&bed);
        assert_int_equal(found.parts, expected_part(i, j));
        assert_true(found.norm_1 == 4 && found.norm_inf == 4);
        set(&bed, 0, j, i, 3);
        assert_int_equal(identify_one(&bed).parts,
                         (expected_part(i, j) | expected_part(j, i)) & ~CUDA_PART_ASYMMETRIC);
        set(&bed, 0, i, j, 0);
        set(&bed, 0, j, i, 0);
    }
    free(bed.numbers);
}

static void test_parts_of_a_large_matrix(void **state)
{
    (void)state;
    static const int64_t places[][2] = {{5, 299},   {299, 5},   {127, 128}, {130, 140},
                                        {260, 250}, {255, 256}, {298, 299}, {33, 100}};
    check_large_parts(PRECISION_FP32, 300, places, COUNT(places));
    check_large_parts(PRECISION_FP64, 300, places, COUNT(places));
}

/* ---- Zeros, and what is not finite ---- */

static void test_zero_lines(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(orders); k++) {
        int64_t n = orders[k], at = n - 1 - n / 3, row = n > 2 ? n / 3 : n - 1;
        struct bed bed = make(PRECISION_FP64, n, 1, n);
        fill(&bed, 5);
        assert_int_equal(identify_one(&bed).zero_column, CUDA_NO_LINE);
        assert_int_equal(identify_one(&bed).zero_row, CUDA_NO_LINE);
        for (int64_t i = 0; i < n; i++)
            set(&bed, 0, i, at, i == n / 2 ? 4.9e-324 : 0);
        assert_int_equal(identify_one(&bed).zero_column, CUDA_NO_LINE);
        assert_true(identify_one(&bed).min == 4.9e-324);
        set(&bed, 0, n / 2, at, -0.0);
        assert_int_equal(identify_one(&bed).zero_column, at + 1);
        assert_true(n == 1 || identify_one(&bed).zero_row == CUDA_NO_LINE);
        for (int64_t j = 0; j < n; j++)
            set(&bed, 0, row, j, 0);
        assert_int_equal(identify_one(&bed).zero_row, row + 1);
        for (int64_t i = 0; i < n; i++) { /* behind them others, which are not the first */
            set(&bed, 0, i, n - 1, 0);
            set(&bed, 0, n - 1, i, 0);
        }
        assert_int_equal(identify_one(&bed).zero_column, at + 1);
        assert_int_equal(identify_one(&bed).zero_row, row + 1);
        free(bed.numbers);
    }
}

static void test_not_finite(void **state)
{
    (void)state;
    static const double poisons[] = {NAN, INFINITY, -INFINITY};
    for (size_t k = 0; k < COUNT(orders) * COUNT(poisons); k++) {
        int64_t n = orders[k / COUNT(poisons)], places[] = {0, n - 1, n * n / 2, n * n - 1};
        struct bed bed = make((enum precision)(k % PRECISION_COUNT), n, 1, n);
        fill(&bed, 6);
        for (size_t j = 0; j < COUNT(places); j++) {
            double old = get(&bed, 0, places[j] / n, places[j] % n);
            set(&bed, 0, places[j] / n, places[j] % n, poisons[k % COUNT(poisons)]);
            assert_true(identify_one(&bed).parts & CUDA_PART_NOT_FINITE);
            set(&bed, 0, places[j] / n, places[j] % n, old);
        }
        assert_false(identify_one(&bed).parts & CUDA_PART_NOT_FINITE);
        free(bed.numbers);
    }
}

/* A sum beyond range is reported from an entry beyond it, and a factor brings it back. */
static void test_sums_may_overflow(void **state)
{
    (void)state;
    int64_t n = 100;
    struct bed bed = make(PRECISION_FP64, n, 1, n);
    double factors[] = {0x1p-53, 0};
    struct cuda_identity found;
    for (int64_t e = 0; e < n * n; e++)
        set(&bed, 0, e / n, e % n, e / n == e % n ? DBL_MAX : -DBL_MAX / 1024);
    found = identify_one(&bed);
    assert_false(found.norm_1 <= DBL_MAX || found.norm_inf <= DBL_MAX);
    assert_false(found.parts & CUDA_PART_NOT_FINITE);
    identify(&bed, factors, 1, &found);
    assert_true(near(found.norm_1, DBL_MAX * 0x1p-53 * (1 + 99.0 / 1024), 1e-14));
    assert_true(found.dominant);
    free(bed.numbers);
}

/* Strips whose sums are in FP32's range, but not together, nor those of every eighth: the norm is
 * finite, and beyond it. */
static void test_sums_of_strips_may_overflow(void **state)
{
    (void)state;
    const int64_t n = 300 * tiles;
    const double large = 0x1p127;
    struct bed bed = make(PRECISION_FP32, n, 1, n);
    for (int64_t e = 0; e < n * n; e++)
        set(&bed, 0, e / n, e % n, e / n == e % n);
    for (int64_t i = 0; i < n; i += 32 * tiles)
        set(&bed, 0, i, 70, large);
    const struct cuda_identity found = identify_one(&bed);
    assert_true(found.norm_1 == 10 * large);
    assert_true(found.norm_inf == large);
    assert_false(found.parts & CUDA_PART_NOT_FINITE);
    free(bed.numbers);
}

/* The squares of eight numbers are in FP32's range, but not of sixteen. */
static void test_squares_of_tiles_may_overflow(void **state)
{
    (void)state;
    const int64_t n = 150;
    struct bed bed = make(PRECISION_FP32, n, 1, n);
    for (int64_t e = 0; e < n * n; e++)
        set(&bed, 0, e / n, e % n, 0x1p62);
    assert_true(near(identify_one(&bed).frobenius, (double)n * 0x1p62, 1e-12));
    free(bed.numbers);
}

/* ---- Transposes ---- */

static void try_transpose(enum precision precision, int64_t rows, int64_t columns)
{
    enum {
        MATRICES = 2
    };
    static const double factors[] = {2, -0.5, 0.25, 8};
    int64_t most = rows > columns ? rows : columns;
    struct bed from = make(precision, most, MATRICES, most + 1);
    struct bed to = make(precision, most, MATRICES, most + 2);
    fill(&from, 7);
    struct cuda_transposition task = {.precision = precision,
                                      .rows = rows,
                                      .columns = columns,
                                      .from = {from.numbers, from.stride, from.n * from.stride},
                                      .to = {to.numbers, to.stride, to.n * to.stride},
                                      .count = MATRICES,
                                      .factors = factors};
    if (cuda_transpose(&task, NULL) != cudaSuccess)
        fail_msg("%s", simt_report());
    for (int64_t e = 0; e < MATRICES * most * most; e++) {
        int64_t k = e / most / most, j = e / most % most, i = e % most;
        double x = get(&to, k, j, i), factor = factors[2 * k] * factors[2 * k + 1];
        if (i < rows && j < columns)
            assert_true(x == factor * get(&from, k, i, j));
        else
            assert_true(isnan(x)); /* not written */
    }
    free(from.numbers);
    free(to.numbers);
}

static void test_transposes(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 3, 31, 32, 33, 63, 64, 65, 130};
    static const int multiprocessors[] = {1, 100}; /* of wide tiles there are enough, or too few */
    for (size_t m = 0; m < COUNT(multiprocessors); m++) {
        simt_set_multiprocessors(multiprocessors[m]);
        for (size_t k = 0; k < COUNT(sizes) * COUNT(sizes) * PRECISION_COUNT; k++)
            try_transpose((enum precision)(k % PRECISION_COUNT),
                          sizes[k / PRECISION_COUNT / COUNT(sizes)],
                          sizes[k / PRECISION_COUNT % COUNT(sizes)]);
    }
    simt_set_multiprocessors(1);
}

/* ---- Calls ---- */

/* Rows as far apart as they may be, of which the pages that hold numbers are there alone. */
static void test_far_rows(void **state)
{
    (void)state;
    const int64_t n = 6, stride = INT32_MAX;
    const size_t bytes = (size_t)(n * stride) * sizeof(float);
    float *a = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (a == MAP_FAILED) /* where memory may not be promised twice */
        skip();
    for (int64_t i = 0; i < n; i++)
        a[i * stride + i] = 2;
    a[5 * stride] = 1;
    struct bed bed = {PRECISION_FP32, n, 1, stride, (unsigned char *)(void *)a};
    tiles = 1;
    const struct cuda_identity found = identify_one(&bed);
    assert_true(found.norm_1 == 3 && found.norm_inf == 3);
    assert_int_equal(found.parts, expected_part(5, 0));
    munmap(a, bytes);
}

/* cuda_identify takes narrow strips where the order is small; wide ones would be seen. */
static void test_strips_by_order(void **state)
{
    (void)state;
    struct bed bed = make_thirds(PRECISION_FP32, 300);
    struct cuda_identity narrow, wide, found;
    tiles = 2;
    wide = identify_one(&bed);
    tiles = 1;
    narrow = identify_one(&bed);
    assert_memory_not_equal(&narrow, &wide, sizeof wide);
    struct cuda_identification task = {
        .precision = bed.precision, .n = bed.n, .a = {bed.numbers, bed.stride, 0}};
    task.count = task.sets = 1;
    task.to = &found;
    size_t bytes = cuda_identify_bytes(task.precision, task.n, 1);
    assert_int_equal(cudaMalloc(&task.scratch, bytes), cudaSuccess);
    assert_int_equal(cuda_identify(&task, NULL), cudaSuccess);
    assert_memory_equal(&found, &narrow, sizeof found);
    assert_int_equal(cuda_identify_by(&task, 3, NULL), cudaErrorInvalidValue);
    task.n = 100000; /* which has wide strips */
    assert_int_equal(cuda_identify_by(&task, 1, NULL), cudaErrorInvalidValue);
    task.n = 300;
    task.count = 0;
    assert_int_equal(cuda_identify_by(&task, 0, NULL), cudaErrorInvalidValue);
    cudaFree(task.scratch);
    free(bed.numbers);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    struct cuda_identification task = {.precision = PRECISION_FP64, .n = 4, .sets = 1};
    assert_int_equal(cuda_identify(&task, NULL), cudaSuccess); /* nothing to do */
    task.count = CUDA_IDENTIFY_MATRICES_MAX;
    task.sets = 2;
    assert_int_equal(cuda_identify(&task, NULL), cudaErrorInvalidValue);
    task.sets = task.count = 1;
    task.n = 0;
    assert_int_equal(cuda_identify(&task, NULL), cudaErrorInvalidValue);
    task.n = 4;
    task.a.stride = INT64_C(1) << 31;
    assert_int_equal(cuda_identify(&task, NULL), cudaErrorInvalidValue);
    struct cuda_transposition other = {.precision = PRECISION_FP64, .rows = 4, .count = 1};
    assert_int_equal(cuda_transpose(&other, NULL), cudaSuccess);
    other.columns = -1;
    assert_int_equal(cuda_transpose(&other, NULL), cudaErrorInvalidValue);
}

int main(void)
{
    const struct CMUnitTest by_tiles[] = {
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_neighbours_never_show),
        cmocka_unit_test(test_many_neighbours_never_show),
        cmocka_unit_test(test_neighbours_of_large_matrices_never_show),
        cmocka_unit_test(test_dominance),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_parts_of_a_large_matrix),
        cmocka_unit_test(test_zero_lines),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_sums_may_overflow),
        cmocka_unit_test(test_sums_of_strips_may_overflow),
        cmocka_unit_test(test_squares_of_tiles_may_overflow),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_far_rows),
        cmocka_unit_test(test_strips_by_order),
        cmocka_unit_test(test_transposes),
        cmocka_unit_test(test_what_is_refused),
    };
    int failed = 0;
    for (tiles = 1; tiles <= 4; tiles *= 2) {
        char name[32];
        snprintf(name, sizeof name, "strips of %d tiles", tiles);
        failed += cmocka_run_group_tests_name(name, by_tiles, NULL, NULL);
    }
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
