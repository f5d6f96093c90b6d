/* Small orders of lu, a matrix a lane: a matrix's answer is the same bits in every width of vector,
 * in every lane and in any company, and what is out of the ordinary harms no one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/linalg/dense.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/simd/small.h"
#include "tests/unit/gpu/host/matrices.h"

#define POISON 0xa5

/* Matrices and their answers, as the engine sees them: aligned to the element only. */
struct workers {
    enum precision precision;
    int64_t n, bytes; /* of one matrix */
    unsigned char *memory, *a, *x, *scratch;
    int32_t info[HOST_GROUP_MAX];
    double rcond[HOST_GROUP_MAX]; /* room for either precision */
};

static void workers_create(struct workers *pool, enum precision precision, int64_t n)
{
    int64_t unit = precision_bytes(precision);
    *pool = (struct workers){.precision = precision, .n = n, .bytes = n * n * unit};
    pool->memory = malloc((size_t)(2 * HOST_GROUP_MAX * pool->bytes + unit));
    pool->scratch = aligned_alloc(
        HOST_ALIGN_BYTES,
        (size_t)GPUTEST_OF(precision, host__lu_scratch_bytes)(HOST_SMALL_ORDER_MAX, 0));
    assert_non_null(pool->memory);
    assert_non_null(pool->scratch);
    pool->a = pool->memory + unit;
    pool->x = pool->a + HOST_GROUP_MAX * pool->bytes;
}

static void workers_destroy(struct workers *pool)
{
    free(pool->memory);
    free(pool->scratch);
}

static void put(struct workers *pool, int place, const double *a)
{
    unsigned char *to = pool->a + place * pool->bytes;
    for (int64_t i = 0; i < pool->n * pool->n; i++) {
        float narrow = (float)a[i];
        if (pool->precision == PRECISION_FP32)
            memcpy(to + i * (int64_t)sizeof narrow, &narrow, sizeof narrow);
        else
            memcpy(to + i * (int64_t)sizeof a[i], &a[i], sizeof a[i]);
    }
}

static void get(const struct workers *pool, const unsigned char *from, double *numbers)
{
    for (int64_t i = 0; i < pool->n * pool->n; i++) {
        float narrow;
        if (pool->precision == PRECISION_FP32) {
            memcpy(&narrow, from + i * (int64_t)sizeof narrow, sizeof narrow);
            numbers[i] = narrow;
        } else {
            memcpy(&numbers[i], from + i * (int64_t)sizeof numbers[i], sizeof numbers[i]);
        }
    }
}

/* Matrices of every difficulty: LAPACK's types in turn. */
static void put_any(struct workers *pool, int place, uint64_t seed)
{
    double *a = gputest_numbers(pool->n * pool->n);
    gputest_dge(place % GPUTEST_DGE_TYPES + 1, 3 + place % 2, pool->precision, pool->n, seed, a);
    put(pool, place, a);
    free(a);
}

/* Inverts the matrices at `places`, in that order, as one group. */
static void run(struct workers *pool, const int *places, int count)
{
    struct host_matrix matrices[HOST_GROUP_MAX] = {{.inputs = {NULL}}};
    memset(pool->x, POISON, (size_t)(HOST_GROUP_MAX * pool->bytes));
    memset(pool->info, POISON, sizeof pool->info);
    memset(pool->rcond, POISON, sizeof pool->rcond);
    for (int i = 0; i < count; i++) {
        int place = places[i];
        matrices[i] = (struct host_matrix){
            .inputs = {pool->a + place * pool->bytes},
            .outputs = {pool->x + place * pool->bytes, &pool->info[place], &pool->rcond[place]},
            .n = pool->n,
            .scratch = pool->scratch};
    }
    if (pool->precision == PRECISION_FP32)
        host__small_lu_f32(matrices, count, NULL, 0);
    else
        host__small_lu_f64(matrices, count, NULL, 0);
}

/* What each matrix answers when it is alone. */
struct alone {
    unsigned char *x;
    int32_t info[HOST_GROUP_MAX];
    double rcond[HOST_GROUP_MAX];
};

static void run_alone(struct workers *pool, struct alone *alone)
{
    alone->x = malloc((size_t)(HOST_GROUP_MAX * pool->bytes));
    assert_non_null(alone->x);
    for (int place = 0; place < HOST_GROUP_MAX; place++) {
        run(pool, &place, 1);
        memcpy(alone->x + place * pool->bytes, pool->x + place * pool->bytes, (size_t)pool->bytes);
        alone->info[place] = pool->info[place];
        alone->rcond[place] = pool->rcond[place];
    }
}

static void assert_as_alone(const struct workers *pool, const struct alone *alone,
                            const int *places, int count)
{
    bool ran[HOST_GROUP_MAX] = {false};
    for (int i = 0; i < count; i++)
        ran[places[i]] = true;
    for (int place = 0; place < HOST_GROUP_MAX; place++) {
        const unsigned char *x = pool->x + place * pool->bytes;
        for (int64_t i = 0; !ran[place] && i < pool->bytes; i++)
            assert_int_equal(x[i], POISON);
        if (!ran[place])
            continue;
        assert_memory_equal(x, alone->x + place * pool->bytes, (size_t)pool->bytes);
        assert_int_equal(pool->info[place], alone->info[place]);
        assert_memory_equal(&pool->rcond[place], &alone->rcond[place],
                            (size_t)precision_bytes(pool->precision));
    }
}

/* ---- Company ---- */

static void try_fills(enum precision precision, int64_t n)
{
    struct workers pool;
    struct alone alone;
    int group = GPUTEST_OF(precision, host__small_group)(n);
    workers_create(&pool, precision, n);
    for (int place = 0; place < HOST_GROUP_MAX; place++)
        put_any(&pool, place, (uint64_t)(n * 100 + place));
    run_alone(&pool, &alone);
    for (int count = 1; count <= group; count++) {
        int places[HOST_GROUP_MAX];
        for (int i = 0; i < count; i++)
            places[i] = (i * 5 + count * 3) % HOST_GROUP_MAX;
        run(&pool, places, count);
        assert_as_alone(&pool, &alone, places, count);
    }
    free(alone.x);
    workers_destroy(&pool);
}

static void test_every_fill(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= HOST_SMALL_ORDER_MAX; n++) {
        try_fills(PRECISION_FP64, n);
        try_fills(PRECISION_FP32, n);
    }
}

enum oddity {
    NOT_A_NUMBER,
    INFINITE,
    ZERO,
    SINGULAR,
    HUGE_NUMBERS,
    TINY_NUMBERS,
    GROWING,
    ODDITIES
};

static double odd_entry(enum oddity oddity, enum precision precision, int64_t n, int64_t i)
{
    int64_t row = i / n, column = i % n;
    int high = precision == PRECISION_FP32 ? 125 : 1021,
        low = precision == PRECISION_FP32 ? 120 : 1015;
    double entry = row == column ? 2 : 1 / (double)(row + column + 2);
    switch (oddity) {
    case NOT_A_NUMBER:
        return i == n * n / 2 ? NAN : entry;
    case INFINITE:
        return i == n * n - 1 ? -INFINITY : entry;
    case ZERO:
        return 0;
    case SINGULAR: /* an exact zero pivot */
        return column == n - 1 ? 0 : entry;
    case HUGE_NUMBERS:
        return ldexp(entry, high);
    case TINY_NUMBERS:
        return ldexp(entry, -low);
    default: /* partial pivoting nearly doubles the last column at every step */
        return row == column || column == n - 1 ? 1 : row > column ? -0.9 : 0;
    }
}

static void assert_odd_answer(const struct workers *pool, enum oddity oddity, int place,
                              const double *a)
{
    static const int infos[ODDITIES] = {[NOT_A_NUMBER] = -1, [INFINITE] = -1, [ZERO] = 1};
    int info = oddity == SINGULAR ? (int)pool->n : infos[oddity];
    assert_int_equal(pool->info[place], info);
    double *x = gputest_numbers(pool->n * pool->n);
    get(pool, pool->x + place * pool->bytes, x);
    if (info != 0)
        assert_true(isnan(x[0]));
    else
        assert_true(gputest_inverse_ratio(pool->precision, pool->n, a, x) <= GPUTEST_RATIO_MAX);
    free(x);
}

/* One of them in every lane: it gets its due, and its neighbours are as they were. */
static void try_oddity(enum oddity oddity, enum precision precision, int64_t n)
{
    struct workers pool;
    struct alone alone;
    int group = GPUTEST_OF(precision, host__small_group)(n), places[HOST_GROUP_MAX];
    double *a = gputest_numbers(n * n), *rounded = gputest_numbers(n * n);
    workers_create(&pool, precision, n);
    for (int64_t i = 0; i < n * n; i++)
        a[i] = odd_entry(oddity, precision, n, i);
    put(&pool, 0, a);
    get(&pool, pool.a, rounded);
    for (int place = 1; place < HOST_GROUP_MAX; place++)
        put_any(&pool, place, (uint64_t)(n * 100 + place));
    run_alone(&pool, &alone);
    for (int lane = 0; lane < group; lane++) {
        for (int i = 0; i < group; i++)
            places[i] = (i - lane + group) % group;
        run(&pool, places, group);
        assert_as_alone(&pool, &alone, places, group);
        assert_odd_answer(&pool, oddity, 0, rounded);
    }
    free(alone.x);
    free(rounded);
    free(a);
    workers_destroy(&pool);
}

static void test_an_odd_one_in_every_lane(void **state)
{
    (void)state;
    static const int64_t orders[] = {2, 3, 8, 9, 16, 17, 32};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        for (int oddity = 0; oddity < ODDITIES; oddity++) {
            try_oddity((enum oddity)oddity, PRECISION_FP64, orders[i]);
            try_oddity((enum oddity)oddity, PRECISION_FP32, orders[i]);
        }
    }
}

/* ---- Widths ---- */

/* Inverts the pool's first matrices with code `index`, from matrix `first` on; places x as run
 * does. */
static void run_code(struct workers *pool, int index, int first, bool *good)
{
    struct host_small_group_f32 narrow = {.a = {NULL}};
    struct host_small_group_f64 wide = {.a = {NULL}};
    int lanes = (int)(host__small_code_f64(index)->vector_bytes / precision_bytes(pool->precision));
    for (int lane = 0; lane < lanes; lane++) {
        int64_t offset = (first + lane) % HOST_GROUP_MAX * pool->bytes;
        narrow.a[lane] = (const float *)(pool->a + offset);
        narrow.next[lane] = narrow.a[lane];
        narrow.x[lane] = (float *)(pool->x + offset);
        wide.a[lane] = (const double *)(pool->a + offset);
        wide.next[lane] = wide.a[lane];
        wide.x[lane] = (double *)(pool->x + offset);
    }
    if (pool->precision == PRECISION_FP32)
        host__small_code_f32(index)->invert(&narrow, pool->n, pool->scratch);
    else
        host__small_code_f64(index)->invert(&wide, pool->n, pool->scratch);
    for (int lane = 0; lane < lanes; lane++) {
        int place = (first + lane) % HOST_GROUP_MAX;
        pool->rcond[place] =
            pool->precision == PRECISION_FP32 ? (double)narrow.rcond[lane] : wide.rcond[lane];
        good[place] = pool->precision == PRECISION_FP32 ? narrow.good[lane] : wide.good[lane];
    }
}

static void run_all(struct workers *pool, int index, int shift, bool *good)
{
    int lanes = (int)(host__small_code_f64(index)->vector_bytes / precision_bytes(pool->precision));
    memset(pool->x, POISON, (size_t)(HOST_GROUP_MAX * pool->bytes));
    for (int first = 0; first < HOST_GROUP_MAX; first += lanes)
        run_code(pool, index, first + shift, good);
}

/* Ordinary matrices that need pivoting; every other one has equals in each column to choose from.
 */
static double ordinary(int place, int64_t n, int64_t i, uint64_t *seed)
{
    int64_t row = (i / n + place) % n, column = i % n;
    if (place % 2)
        return row >= column;
    return gputest_random(seed) + (column == (row + 1) % n ? 2 : 0);
}

/* The narrowest code says what is right; ordinary matrices are good, and their inverses too. */
static void try_widths(enum precision precision, int64_t n)
{
    struct workers pool;
    bool good[HOST_GROUP_MAX], other_good[HOST_GROUP_MAX];
    double rcond[HOST_GROUP_MAX], *a = gputest_numbers(n * n), *x = gputest_numbers(n * n);
    uint64_t seed = (uint64_t)n;
    workers_create(&pool, precision, n);
    unsigned char *expected = malloc((size_t)(HOST_GROUP_MAX * pool.bytes));
    assert_non_null(expected);
    for (int place = 0; place < HOST_GROUP_MAX; place++) {
        put_any(&pool, place, (uint64_t)(n * 100 + place));
        for (int64_t i = 0; i < n * n; i++)
            a[i] = ordinary(place, n, i, &seed);
        if (place >= GPUTEST_DGE_TYPES)
            put(&pool, place, a);
    }
    run_all(&pool, 0, 0, good);
    memcpy(expected, pool.x, (size_t)(HOST_GROUP_MAX * pool.bytes));
    memcpy(rcond, pool.rcond, sizeof rcond);
    for (int place = GPUTEST_DGE_TYPES; place < HOST_GROUP_MAX; place++) {
        assert_true(good[place]);
        get(&pool, pool.a + place * pool.bytes, a);
        get(&pool, pool.x + place * pool.bytes, x);
        assert_true(gputest_inverse_ratio(precision, n, a, x) <= GPUTEST_RATIO_MAX);
    }
    for (int index = 0; host__small_code_f64(index); index++) {
        for (int shift = 0; shift < 3; shift++) {
            run_all(&pool, index, shift, other_good);
            assert_memory_equal(good, other_good, sizeof good);
            assert_memory_equal(expected, pool.x, (size_t)(HOST_GROUP_MAX * pool.bytes));
            for (int place = 0; place < HOST_GROUP_MAX; place++)
                assert_true(!good[place] || rcond[place] == pool.rcond[place]);
        }
    }
    free(expected);
    free(a);
    free(x);
    workers_destroy(&pool);
}

static void test_every_width(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= HOST_SMALL_ORDER_MAX; n++) {
        try_widths(PRECISION_FP64, n);
        try_widths(PRECISION_FP32, n);
    }
}

static void test_choice_of_code(void **state)
{
    (void)state;
    assert_non_null(host__small_code_f64(0));
    for (int index = 1; host__small_code_f64(index); index++)
        assert_true(host__small_code_f64(index)->vector_bytes >
                    host__small_code_f64(index - 1)->vector_bytes);
    for (int64_t n = 1; n <= HOST_SMALL_ORDER_MAX; n++) {
        int group = host__small_group_f64(n), index = 0;
        while (host__small_code_f64(index)->vector_bytes != group * (int)sizeof(double))
            index++;
        assert_string_equal(host__small_kernel_f64(n), host__small_code_f64(index)->kernel);
        assert_int_equal(host__small_group_f32(n), 2 * group);
        assert_true(host__small_matrix_ns_f64(n) > 0);
    }
    assert_int_equal(host__small_group_f64(HOST_SMALL_ORDER_MAX + 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_fill),
        cmocka_unit_test(test_an_odd_one_in_every_lane),
        cmocka_unit_test(test_every_width),
        cmocka_unit_test(test_choice_of_code),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
