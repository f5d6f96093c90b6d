/* auto of small orders: matrices of one kind go through lu's groups, whatever stands between them.
 * A matrix's answer is the same bits alone and in any company, METHOD names the algorithm it took,
 * and what lu takes has lu's bits. */
#include <float.h>
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
#include "gpu/methods/auto.h"
#include "tests/unit/gpu/host/matrices.h"

#define POISON 0xa5

enum kind {
    DENSE,
    DEFINITE,
    NEARLY_SYMMETRIC, /* the halves differ by rounding */
    CORNER_ZEROS,     /* dense, but for the entries that tell most dense ones */
    DIAGONAL,
    LOWER,
    UPPER,
    TRIDIAGONAL,
    NOT_A_NUMBER,
    DIAGONAL_NAN, /* nothing but the diagonal, and a NaN on it */
    SINGULAR,     /* symmetric, of rank 1 */
    ZERO,
    KINDS
};

/* The algorithm without and with the option. */
static const int algorithms[KINDS][2] = {
    [DENSE] = {METHOD_ALGORITHM_LU, METHOD_ALGORITHM_LU},
    [DEFINITE] = {METHOD_ALGORITHM_LU, METHOD_ALGORITHM_LU},
    [NEARLY_SYMMETRIC] = {METHOD_ALGORITHM_LU, METHOD_ALGORITHM_CHOLESKY},
    [CORNER_ZEROS] = {METHOD_ALGORITHM_LU, METHOD_ALGORITHM_LU},
    [DIAGONAL] = {METHOD_ALGORITHM_DIAGONAL, METHOD_ALGORITHM_DIAGONAL},
    [LOWER] = {METHOD_ALGORITHM_TRIANGULAR, METHOD_ALGORITHM_TRIANGULAR},
    [UPPER] = {METHOD_ALGORITHM_TRIANGULAR, METHOD_ALGORITHM_TRIANGULAR},
    [TRIDIAGONAL] = {METHOD_ALGORITHM_TRIDIAGONAL, METHOD_ALGORITHM_TRIDIAGONAL},
    [NOT_A_NUMBER] = {METHOD_ALGORITHM_NONE, METHOD_ALGORITHM_NONE},
    [DIAGONAL_NAN] = {METHOD_ALGORITHM_NONE, METHOD_ALGORITHM_NONE},
    [SINGULAR] = {METHOD_ALGORITHM_LU, METHOD_ALGORITHM_LU},
    [ZERO] = {METHOD_ALGORITHM_DIAGONAL, METHOD_ALGORITHM_DIAGONAL},
};

static double entry(enum kind kind, int64_t n, int64_t i, int64_t j, uint64_t seed)
{
    int64_t low = i < j ? i : j, high = i < j ? j : i;
    uint64_t mirrored = seed * 7919 + (uint64_t)(low * 64 + high);
    uint64_t own = mirrored + (uint64_t)(i > j) * 5003;
    double symmetric = gputest_random(&mirrored), any = gputest_random(&own);
    double definite = i == j ? (double)n + symmetric : symmetric;
    switch (kind) {
    case DENSE:
        return any;
    case NEARLY_SYMMETRIC:
        return i == n - 1 && j == 0 ? definite * (1 + DBL_EPSILON) : definite;
    case CORNER_ZEROS:
        return (i == 0 && j == 1) || (i == 1 && j == 0) ? 0 : any;
    case DIAGONAL:
        return i == j ? 1 + any / 2 : 0;
    case LOWER:
        return i == j ? 2 : i > j ? any : 0;
    case UPPER:
        return i == j ? 2 : i < j ? any : 0;
    case TRIDIAGONAL:
        return i == j ? 3 : high - low == 1 ? any : 0;
    case NOT_A_NUMBER:
        return i == n - 1 && j == n - 1 ? NAN : any;
    case DIAGONAL_NAN:
        return i != j ? 0 : i == n - 1 ? NAN : 1;
    case SINGULAR:
        return 1;
    case ZERO:
        return 0;
    default:
        return definite;
    }
}

/* HOST_GROUP_MAX matrices and their answers, aligned to the element only. */
struct workers {
    enum precision precision;
    int64_t n, bytes, options[METHOD_OPTIONS_MAX];
    enum kind kinds[HOST_GROUP_MAX];
    unsigned char *memory, *a, *x, *scratch;
    int32_t info[HOST_GROUP_MAX], algorithm[HOST_GROUP_MAX];
    double rcond[HOST_GROUP_MAX]; /* room for either precision */
};

static void workers_create(struct workers *pool, enum precision precision, int64_t n, bool spd)
{
    int64_t unit = precision_bytes(precision);
    *pool = (struct workers){.precision = precision, .n = n, .bytes = n * n * unit};
    method_default_options(&method_auto, pool->options);
    pool->options[METHOD_AUTO_SPD] = spd;
    pool->memory = malloc((size_t)(2 * HOST_GROUP_MAX * pool->bytes + unit));
    pool->scratch = aligned_alloc(HOST_ALIGN_BYTES,
                                  (size_t)GPUTEST_OF(precision, host__lu_scratch_bytes)(n, 0));
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

static void put(struct workers *pool, int place, enum kind kind)
{
    unsigned char *to = pool->a + place * pool->bytes;
    int64_t n = pool->n, unit = precision_bytes(pool->precision);
    pool->kinds[place] = kind;
    for (int64_t k = 0; k < n * n; k++) {
        double wide = entry(kind, n, k / n, k % n, (uint64_t)place);
        float narrow = (float)wide;
        if (kind == NEARLY_SYMMETRIC && k == (n - 1) * n)
            narrow = nextafterf((float)entry(DEFINITE, n, n - 1, 0, (uint64_t)place), 9);
        memcpy(to + k * unit, unit == 4 ? (void *)&narrow : (void *)&wide, (size_t)unit);
    }
}

/* Runs the matrices at `places`, in that order: as one group, or by `name`'s run, one by one. */
static void run(struct workers *pool, const char *name, const int *places, int count, bool together)
{
    const struct host_method *method =
        host_method_at((uint32_t)method_index(method_find(name)), pool->precision);
    struct host_matrix matrices[HOST_GROUP_MAX] = {{.inputs = {NULL}}};
    memset(pool->x, POISON, (size_t)(HOST_GROUP_MAX * pool->bytes));
    memset(pool->info, POISON, sizeof pool->info);
    memset(pool->algorithm, POISON, sizeof pool->algorithm);
    memset(pool->rcond, POISON, sizeof pool->rcond);
    for (int i = 0; i < count; i++) {
        int place = places[i];
        matrices[i] = (struct host_matrix){
            .inputs = {pool->a + place * pool->bytes},
            .outputs = {pool->x + place * pool->bytes, &pool->info[place], &pool->rcond[place]},
            .n = pool->n,
            .options = pool->options,
            .scratch = pool->scratch};
        if (method->name[0] == 'a')
            matrices[i].outputs[HOST_ALGORITHM] = &pool->algorithm[place];
        if (!together)
            method->run(&matrices[i]);
    }
    if (together)
        method->run_group(matrices, count, NULL, 0);
}

/* All of a pool's answers. */
struct answers {
    unsigned char *x;
    int32_t info[HOST_GROUP_MAX], algorithm[HOST_GROUP_MAX];
    double rcond[HOST_GROUP_MAX];
};

static void run_alone(struct workers *pool, const char *name, struct answers *alone)
{
    int places[HOST_GROUP_MAX];
    for (int place = 0; place < HOST_GROUP_MAX; place++)
        places[place] = place;
    run(pool, name, places, HOST_GROUP_MAX, false);
    alone->x = malloc((size_t)(HOST_GROUP_MAX * pool->bytes));
    assert_non_null(alone->x);
    memcpy(alone->x, pool->x, (size_t)(HOST_GROUP_MAX * pool->bytes));
    memcpy(alone->info, pool->info, sizeof alone->info);
    memcpy(alone->algorithm, pool->algorithm, sizeof alone->algorithm);
    memcpy(alone->rcond, pool->rcond, sizeof alone->rcond);
}

static void assert_as_alone(const struct workers *pool, const struct answers *alone, int place)
{
    assert_memory_equal(pool->x + place * pool->bytes, alone->x + place * pool->bytes,
                        (size_t)pool->bytes);
    assert_int_equal(pool->info[place], alone->info[place]);
    assert_memory_equal(&pool->rcond[place], &alone->rcond[place],
                        (size_t)precision_bytes(pool->precision));
}

/* Is a matrix at `data` the same as its transpose, NaN for NaN? */
static bool is_symmetric(const struct workers *pool, const unsigned char *data)
{
    int64_t n = pool->n, unit = precision_bytes(pool->precision);
    for (int64_t k = 0; k < n * n; k++) {
        if (memcmp(data + k * unit, data + (k % n * n + k / n) * unit, (size_t)unit) != 0)
            return false;
    }
    return true;
}

/* Of orders below 3 some kinds are others too. */
static void check_algorithms(const struct workers *pool, const struct answers *alone)
{
    for (int place = 0; pool->n > 2 && place < HOST_GROUP_MAX; place++) {
        enum kind kind = pool->kinds[place];
        int32_t expected = algorithms[kind][pool->options[METHOD_AUTO_SPD]];
        if (alone->algorithm[place] != expected)
            fail_msg("kind %d, order %d: %s", (int)kind, (int)pool->n,
                     method_algorithm_name(alone->algorithm[place]));
        assert_int_equal(alone->info[place], kind == NOT_A_NUMBER || kind == DIAGONAL_NAN ? -1
                                             : kind == SINGULAR                           ? 2
                                             : kind == ZERO                               ? 1
                                                                                          : 0);
    }
}

/* Every matrix by itself, then groups of every size, with every kind between the others. */
static void try_companies(enum precision precision, int64_t n, bool spd)
{
    struct workers pool;
    struct answers alone, lu;
    int group = GPUTEST_OF(precision, host__small_group)(n);
    workers_create(&pool, precision, n, spd);
    for (int place = 0; place < HOST_GROUP_MAX; place++)
        put(&pool, place, (enum kind)((place * 5 + (int)n) % KINDS));
    run_alone(&pool, "lu", &lu);
    run_alone(&pool, "auto", &alone);
    check_algorithms(&pool, &alone);
    for (int count = 1; count <= group; count++) {
        int places[HOST_GROUP_MAX];
        for (int i = 0; i < count; i++)
            places[i] = (i * 3 + count * 5) % HOST_GROUP_MAX;
        run(&pool, "auto", places, count, true);
        for (int i = 0; i < count; i++) {
            assert_as_alone(&pool, &alone, places[i]);
            assert_int_equal(pool.algorithm[places[i]], alone.algorithm[places[i]]);
            bool symmetric = is_symmetric(&pool, pool.a + places[i] * pool.bytes);
            if (symmetric)
                assert_true(is_symmetric(&pool, pool.x + places[i] * pool.bytes));
            else if (pool.algorithm[places[i]] == METHOD_ALGORITHM_LU)
                assert_as_alone(&pool, &lu, places[i]);
        }
    }
    free(alone.x);
    free(lu.x);
    workers_destroy(&pool);
}

static void test_company_never_shows(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= HOST_SMALL_ORDER_MAX; n++) {
        for (int k = 0; k < 4; k++)
            try_companies(k % 2 ? PRECISION_FP32 : PRECISION_FP64, n, k / 2 == 1);
    }
}

/* Dense and definite ones are taken by groups as large as lu's. */
static void test_groups_are_those_of_lu(void **state)
{
    (void)state;
    const uint32_t index = (uint32_t)method_index(method_find("auto"));
    for (int64_t n = 1; n <= HOST_SMALL_ORDER_MAX + 1; n++) {
        assert_int_equal(host_method_at(index, PRECISION_FP64)->group(n, 0),
                         host__small_group_f64(n));
        assert_int_equal(host_method_at(index, PRECISION_FP32)->group(n, 0),
                         host__small_group_f32(n));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_company_never_shows),
        cmocka_unit_test(test_groups_are_those_of_lu),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
