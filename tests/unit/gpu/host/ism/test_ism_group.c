/* Small updates of a known inverse, a matrix a lane: a matrix's answer is the same bits in every
 * width of vector, in every lane and in any company, good where it says so, and what is out of the
 * ordinary harms no one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/ism/ism.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/simd/small.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/matrices.h"

#define FACTORS 3

/* What a lane may hold. */
enum kind {
    PLAIN,
    NOT_FINITE, /* a NaN in A0^-1 */
    BEYOND,     /* entries whose sums overflow */
    APART,      /* X huge and Y tiny: scaled, and then good */
    CANCELLING, /* two columns of X Y^T that cancel but for rounding; good in double-double */
    SINGULAR,   /* I + X Y^T A0^-1 is */
    NEARLY,     /* the same but for rounding */
    NOTHING,    /* X Y^T = 0 */
    KINDS
};

/* Matrices, and their answers: aligned to the element only. */
struct workers {
    enum precision precision;
    int64_t n, m, unit;
    unsigned char *memory, *inputs[3]; /* A0^-1, X, Y: of one matrix after the other */
    int64_t bytes[3];
    unsigned char *scratch;
    int64_t options[METHOD_OPTIONS_MAX];
};

struct answer {
    unsigned char z[HOST_SMALL_ORDER_MAX * HOST_SMALL_ORDER_MAX * sizeof(double)];
    unsigned char factors[FACTORS][HOST_SMALL_ORDER_MAX * HOST_SMALL_UPDATE_RANK * sizeof(double)];
    double rcond, det_ratio; /* room for either precision */
    int32_t info, algorithm;
};

static const struct host_method *ism(enum precision precision)
{
    return host_method_at((uint32_t)method_index(method_find("ism")), precision);
}

static void put(const struct workers *pool, int input, int place, int64_t i, double value)
{
    unsigned char *to = pool->inputs[input] + place * pool->bytes[input] + i * pool->unit;
    const float narrow = (float)value;
    memcpy(to, pool->unit == 4 ? (const void *)&narrow : (const void *)&value, (size_t)pool->unit);
}

static double number(const struct workers *pool, const unsigned char *from, int64_t i)
{
    float narrow;
    double wide;
    if (pool->unit == 4) {
        memcpy(&narrow, from + i * 4, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, from + i * 8, sizeof wide);
    return wide;
}

static double given(const struct workers *pool, int input, int place, int64_t i)
{
    return number(pool, pool->inputs[input] + place * pool->bytes[input], i);
}

static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int64_t)(*state >> 11) * 0x1p-52 - 1;
}

static void fill(struct workers *pool, int place, enum kind kind)
{
    const int64_t n = pool->n, m = pool->m;
    const bool narrow = pool->unit == 4;
    const double huge = narrow ? 1e38 : 1e308, far = narrow ? 0x1p50 : 0x1p400;
    uint64_t state = (uint64_t)(n * 1000 + m * 100 + place);
    for (int64_t i = 0; i < n * n; i++)
        put(pool, 0, place, i, uniform(&state) / sqrt((double)n) + (i % (n + 1) == 0 ? 2 : 0));
    for (int64_t i = 0; i < n * m; i++) {
        put(pool, 1, place, i, kind == NOTHING ? 0 : uniform(&state));
        put(pool, 2, place, i, uniform(&state) / (double)n);
    }
    if (kind == NOT_FINITE)
        put(pool, 0, place, n * n / 2, (double)NAN);
    for (int64_t i = 0; i < n * m && (kind == BEYOND || kind == APART); i++) {
        put(pool, 1, place, i, given(pool, 1, place, i) * (kind == APART ? far : huge));
        put(pool, 2, place, i, given(pool, 2, place, i) * (kind == APART ? 1 / far : huge));
    }
    for (int64_t i = 0; i < n && kind == CANCELLING && m > 1; i++) {
        put(pool, 1, place, i * m, given(pool, 1, place, i * m) * 1e6);
        put(pool, 1, place, i * m + 1, -given(pool, 1, place, i * m));
        put(pool, 2, place, i * m + 1,
            given(pool, 2, place, i * m) * (1 + (double)(i % 3) * 0x1p-20));
    }
    if (kind != SINGULAR && kind != NEARLY)
        return;
    /* A0^-1 = 2 I, and the first column takes its first number away; others are zero. */
    for (int64_t i = 0; i < n * n; i++)
        put(pool, 0, place, i, i % (n + 1) == 0 ? 2 : 0);
    for (int64_t i = 0; i < n * m; i++) {
        put(pool, 1, place, i, i == 0 ? -0.5 : 0);
        put(pool, 2, place, i,
            i == 0 ? 1 - (kind == NEARLY ? (narrow ? 0x1p-23 : 0x1p-52) : 0) : 0);
    }
}

static void workers_create(struct workers *pool, enum precision precision, int64_t n, int64_t m)
{
    const int64_t unit = precision_bytes(precision);
    *pool = (struct workers){.precision = precision,
                             .n = n,
                             .m = m,
                             .unit = unit,
                             .bytes = {n * n * unit, n * m * unit, n * m * unit}};
    method_default_options(method_find("ism"), pool->options);
    pool->memory = malloc((size_t)((n * n + 2 * n * m) * unit * HOST_GROUP_MAX + unit));
    pool->scratch = aligned_alloc(HOST_ALIGN_BYTES, (size_t)ism(precision)->scratch_bytes(n, m));
    assert_non_null(pool->memory);
    assert_non_null(pool->scratch);
    unsigned char *at = pool->memory + unit;
    for (int i = 0; i < 3; i++) {
        pool->inputs[i] = at;
        at += pool->bytes[i] * HOST_GROUP_MAX;
    }
    for (int place = 0; place < HOST_GROUP_MAX; place++)
        fill(pool, place, (enum kind)(place % 2 == 0 ? 0 : place / 2 % KINDS));
}

static void workers_destroy(struct workers *pool)
{
    free(pool->memory);
    free(pool->scratch);
}

static struct host_matrix matrix_of(const struct workers *pool, int place, struct answer *answer,
                                    bool factors)
{
    struct host_matrix matrix = {
        .n = pool->n, .m = pool->m, .options = pool->options, .scratch = pool->scratch};
    const int inputs[] = {METHOD_ISM_A0_INVERSE, METHOD_ISM_X, METHOD_ISM_Y};
    for (int i = 0; i < 3; i++)
        matrix.inputs[inputs[i]] = pool->inputs[i] + place * pool->bytes[i];
    memset(answer, 0xa5, sizeof *answer);
    matrix.outputs[METHOD_ISM_INVERSE] = answer->z;
    matrix.outputs[METHOD_ISM_INFO] = &answer->info;
    matrix.outputs[METHOD_ISM_RCOND] = &answer->rcond;
    matrix.outputs[METHOD_ISM_ALGORITHM] = &answer->algorithm;
    matrix.outputs[METHOD_ISM_DET_RATIO] = &answer->det_ratio;
    for (int i = 0; factors && i < FACTORS; i++)
        matrix.outputs[METHOD_ISM_U + i] = answer->factors[i];
    return matrix;
}

/* See residual.h. */
static double ratio_of(const struct workers *pool, int place, const struct answer *answer)
{
    const int64_t n = pool->n, m = pool->m, counts[] = {n * n, n * m, n * m};
    double *numbers[3], *z = gputest_numbers(n * n);
    for (int k = 0; k < 3; k++) {
        numbers[k] = gputest_numbers(counts[k] + 1);
        for (int64_t i = 0; i < counts[k]; i++)
            numbers[k][i] = given(pool, k, place, i);
    }
    for (int64_t i = 0; i < n * n; i++)
        z[i] = number(pool, answer->z, i);
    const double ratio = residual_update_ratio(gputest_eps(pool->precision), n, m, numbers[0],
                                               numbers[1], numbers[2], z);
    for (int k = 0; k < 3; k++)
        free(numbers[k]);
    free(z);
    return ratio;
}

/* ---- Company ---- */

static void try_shape(enum precision precision, int64_t n, int64_t m)
{
    static struct answer alone[HOST_GROUP_MAX], together[HOST_GROUP_MAX];
    struct host_matrix matrices[HOST_GROUP_MAX];
    struct workers pool;
    workers_create(&pool, precision, n, m);
    for (int place = 0; place < HOST_GROUP_MAX; place++) {
        matrices[0] = matrix_of(&pool, place, &alone[place], false);
        ism(precision)->run(&matrices[0]);
        if (alone[place].info != 0)
            continue;
        const double ratio = ratio_of(&pool, place, &alone[place]);
        if (!(ratio <= GPUTEST_RATIO_MAX))
            fail_msg("n = %d, m = %d, place %d: ratio %g", (int)n, (int)m, place, ratio);
    }
    const int group = ism(precision)->group(n, m);
    for (int count = 1; count <= group; count++) {
        int places[HOST_GROUP_MAX];
        for (int i = 0; i < count; i++) {
            places[i] = (i * 5 + count * 3) % HOST_GROUP_MAX;
            matrices[i] = matrix_of(&pool, places[i], &together[i], false);
        }
        ism(precision)->run_group(matrices, count, matrices, 0);
        for (int i = 0; i < count; i++)
            assert_memory_equal(&together[i], &alone[places[i]], sizeof together[i]);
    }
    workers_destroy(&pool);
}

static void test_every_fill(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= HOST_SMALL_ORDER_MAX; n += n < 12 ? 1 : 5) {
        for (int64_t m = 1; m <= HOST_SMALL_UPDATE_RANK; m++) {
            try_shape(PRECISION_FP64, n, m);
            try_shape(PRECISION_FP32, n, m);
        }
    }
}

/* What each kind is reported of. */
static void test_kinds(void **state)
{
    (void)state;
    static const int32_t infos[KINDS] = {[NOT_FINITE] = -1, [BEYOND] = -1, [SINGULAR] = 1};
    static struct answer answer;
    for (int i = 0; i < 2 * 2 * KINDS; i++) {
        const enum precision precision = (enum precision)(i % 2);
        const int64_t n = i / 2 % 2 ? 7 : 20, m = 2;
        const enum kind kind = (enum kind)(i / 4);
        struct workers pool;
        workers_create(&pool, precision, n, m);
        fill(&pool, 0, kind);
        const struct host_matrix matrix = matrix_of(&pool, 0, &answer, false);
        ism(precision)->run(&matrix);
        const bool nearly = kind == NEARLY && answer.info == n + 1;
        const bool beyond = kind == BEYOND && answer.info != 0;
        if (answer.info != infos[kind] && !nearly && !beyond)
            fail_msg("kind %d, n = %d: INFO %d", (int)kind, (int)n, (int)answer.info);
        if (answer.info == 0)
            assert_true(ratio_of(&pool, 0, &answer) <= GPUTEST_RATIO_MAX);
        workers_destroy(&pool);
    }
}

/* ---- Made to be bad ---- */

static void put_all(const struct workers *pool, int input, const float *numbers)
{
    for (int64_t i = 0; i < pool->bytes[input] / pool->unit; i++)
        put(pool, input, 0, i, (double)numbers[i]);
}

static void try_made(int64_t n, int64_t m, const float *b, const float *x, const float *y)
{
    static struct answer answer;
    struct workers pool;
    workers_create(&pool, PRECISION_FP32, n, m);
    put_all(&pool, 0, b);
    put_all(&pool, 1, x);
    put_all(&pool, 2, y);
    const struct host_matrix matrix = matrix_of(&pool, 0, &answer, false);
    ism(PRECISION_FP32)->run(&matrix);
    assert_int_equal(answer.info, 0);
    assert_int_equal(answer.algorithm, METHOD_ALGORITHM_LU);
    assert_true(ratio_of(&pool, 0, &answer) <= 1);
    workers_destroy(&pool);
}

/* Opposed columns whose terms a check of two lines did not see (52 times the contract's unit), and
 * m > n (16 times). */
static void test_made(void **state)
{
    (void)state;
    static const float b[] = {
        -0x1.9266a6p-1F, -0x1.7e8964p-1F, -0x1.2a8f56p-1F, -0x1.3ad568p+0F, 0x1.475e2cp-2F,
        -0x1.3f2d64p+0F, -0x1.0fb658p+0F, 0x1.a8933ep-5F,  -0x1.311992p-8F, -0x1.a97a9p-5F,
        0x1.123008p-2F,  0x1.42117p-1F,   -0x1.8ec8b2p-1F, -0x1.0b2b58p-1F, 0x1.20cb18p-1F,
        -0x1.eea40cp-1F, 0x1.59d182p-1F,  0x1.5c9fcp-1F,   -0x1.64c52p-4F,  -0x1.437cbep+0F,
        -0x1.2436f4p-1F, 0x1.e5e13ap-3F,  -0x1.73291p+0F,  0x1.1c1aeep+0F,  0x1.08f9a4p+0F,
        -0x1.452288p+0F, 0x1.f21cacp-1F,  -0x1.578be8p-1F, 0x1.e19a26p-1F,  0x1.14508p-2F,
        0x1.5b8526p-1F,  0x1.b35dbep-1F,  0x1.204b94p-1F,  0x1.8e07d6p-2F,  -0x1.d60aa2p-1F,
        0x1.85286p-2F,   -0x1.504b66p+0F, 0x1.4d000ap+0F,  -0x1.7375e4p+0F, 0x1.d8b53ep-3F,
        0x1.72009cp+0F,  0x1.b36c8p-1F,   -0x1.4e523cp+0F, -0x1.e810c8p-2F, -0x1.50120ap-1F,
        0x1.796e6ep-1F,  -0x1.ff5708p+0F, -0x1.a45b64p-1F, -0x1.f0b4b6p-1F, -0x1.e3d8c8p-1F,
        -0x1.7c123p-1F,  0x1.b672dep+0F,  0x1.5d8caep-1F,  -0x1.6cd3a6p-2F, -0x1.7420e2p+0F,
        0x1.c72e3cp-1F,  0x1.2cfbe2p-5F,  0x1.ef94d6p+0F,  -0x1.f3462ap+0F, 0x1.bc9706p-3F,
        -0x1.7a12bep-4F, -0x1.973e3ep+0F, -0x1.bd15e2p-2F, 0x1.d10b16p-1F,  -0x1.ac7d3p+0F,
        0x1.ce2b6p-3F,   0x1.486436p+0F,  0x1.58d4e6p-1F,  -0x1.97417ap-3F, 0x1.6f6bbap-6F,
        -0x1.5c9cfp+0F,  -0x1.6dcb8ep+0F, 0x1.cf1444p-2F,  0x1.e9ee6ap-1F,  0x1.417fb8p+0F,
        -0x1.eb3bf2p-4F, -0x1.7c4a54p+0F, 0x1.0fa666p+0F,  0x1.d79c8ep-2F,  0x1.5988d4p-2F,
        0x1.dea18cp-2F};
    static const float x[] = {-0x1.8eeda4p+6F, 0x1.969e76p+6F,  -0x1.036502p+6F, 0x1.1cf8e4p+6F,
                              -0x1.a31eccp+4F, 0x1.8624bcp+6F,  -0x1.c602b8p+6F, 0x1.c7f1c4p+6F,
                              0x1.10b3a6p+7F,  -0x1.1ac726p+7F, -0x1.761ff8p+4F, -0x1.7bec82p+5F,
                              -0x1.aac36ap+3F, 0x1.7aa89p+1F,   -0x1.29d8f8p+6F, 0x1.35935ep+6F,
                              -0x1.77901p+6F,  0x1.8c8912p+6F};
    static const float y[] = {0x1.7db868p-4F,  0x1.863cdp-4F,   0x1.d9e56ap-5F,  0x1.ce0b1p-5F,
                              0x1.d3fc8ep-4F,  0x1.d3fc8cp-4F,  -0x1.a1e4fp-3F,  -0x1.a1e4fp-3F,
                              -0x1.4fba64p-6F, -0x1.4fba72p-6F, -0x1.6b62a6p-4F, -0x1.6b6284p-4F,
                              0x1.26a3dp-4F,   0x1.26a3dp-4F,   0x1.104996p-3F,  0x1.104996p-3F,
                              0x1.c4894cp-5F,  0x1.c48a24p-5F};
    static const float thin_x[] = {-0x1.be7244p+1F, 0x1.dae086p+1F,  -0x1.0ceddcp-2F,
                                   -0x1.466752p+1F, -0x1.511adcp+0F, -0x1.3938b6p+0F,
                                   0x1.f378b4p-1F,  -0x1.dd358ep+1F};
    static const float thin_y[] = {0x1.f902bep+0F, -0x1.8b9bep-7F, -0x1.2aa2b4p-1F,
                                   0x1.5e9792p-1F, 0x1.5c3958p-2F, -0x1.007decp-1F,
                                   0x1.cb51a2p-2F, -0x1.5a9e62p+1F};
    static const float thin_b[] = {0x1.16faeap-2F};
    try_made(9, 2, b, x, y);
    try_made(1, 8, thin_b, thin_x, thin_y);
}

/* Columns of X that are nearly opposed, and of Y nearly equal: around where lanes give up. */
static void test_opposed(void **state)
{
    (void)state;
    static struct answer answer;
    uint64_t random = 5;
    int good = 0, lanes = 0;
    for (int i = 0; i < 6000; i++) {
        const enum precision precision = (enum precision)(i % 2);
        const int64_t n = 2 + i / 2 % 20, m = 2;
        struct workers pool;
        workers_create(&pool, precision, n, m);
        const double size = ldexp(1, i / 40 % 12), off = ldexp(1, -(i / 40 % 25));
        for (int64_t k = 0; k < n; k++) {
            const double x = uniform(&random) * size, y = uniform(&random);
            put(&pool, 1, 0, k * m, x);
            put(&pool, 1, 0, k * m + 1, -x * (1 + off * uniform(&random)));
            put(&pool, 2, 0, k * m, y);
            put(&pool, 2, 0, k * m + 1, y * (1 + off * uniform(&random)));
        }
        const struct host_matrix matrix = matrix_of(&pool, 0, &answer, false);
        ism(precision)->run(&matrix);
        good += answer.info == 0;
        lanes += answer.info == 0 && answer.algorithm == METHOD_ALGORITHM_BLOCK;
        if (answer.info == 0)
            assert_true(ratio_of(&pool, 0, &answer) <= GPUTEST_RATIO_MAX);
        workers_destroy(&pool);
    }
    assert_true(good > 5000 && lanes > 1000);
}

/* ---- Code ---- */

/* Every width leaves the same numbers. */
static void test_every_width(void **state)
{
    (void)state;
    struct host_small_update_f64 group, first;
    static double z[HOST_GROUP_MAX][HOST_SMALL_ORDER_MAX * HOST_SMALL_ORDER_MAX],
        first_z[HOST_SMALL_ORDER_MAX * HOST_SMALL_ORDER_MAX];
    for (int64_t n = 1; n <= HOST_SMALL_ORDER_MAX; n += 3) {
        const int64_t m = (n - 1) % HOST_SMALL_UPDATE_RANK + 1;
        struct workers pool;
        workers_create(&pool, PRECISION_FP64, n, m);
        for (int i = 0; host__small_code_f64(i); i++) {
            const struct host_small_code_f64 *code = host__small_code_f64(i);
            const int lanes = code->vector_bytes / (int)sizeof(double);
            for (int lane = 0; lane < lanes; lane++) {
                const int place = lane % 2 * 2; /* two plain ones double-buffered */
                group.b[lane] = (const double *)pool.inputs[0] + place * n * n;
                group.x[lane] = (const double *)pool.inputs[1] + place * n * m;
                group.y[lane] = (const double *)pool.inputs[2] + place * n * m;
                group.z[lane] = z[lane];
            }
            host__ism_weights_f64(n, group.weights);
            code->update(&group, n, m, pool.scratch);
            if (i == 0) {
                first = group;
                memcpy(first_z, z[0], sizeof first_z);
            }
            for (int lane = 0; lane < lanes; lane++) {
                assert_true(group.good[lane]);
                assert_true(host__ism_update_holds_f64(n, &group.measured[lane]));
                assert_memory_equal(&group.measured[lane], &first.measured[lane % 2],
                                    sizeof first.measured[0]);
                assert_true(group.det_ratio[lane] == first.det_ratio[lane % 2]);
            }
            assert_memory_equal(z[0], first_z, (size_t)(n * n) * sizeof(double));
        }
        workers_destroy(&pool);
    }
}

/* ---- Factors ---- */

/* They change nothing of the inverse. */
static void test_factors(void **state)
{
    (void)state;
    static struct answer plain, with;
    for (int64_t n = 3; n <= 30; n += 9) {
        struct workers pool;
        workers_create(&pool, PRECISION_FP64, n, 3);
        for (int place = 0; place < HOST_GROUP_MAX; place++) {
            struct host_matrix matrix = matrix_of(&pool, place, &plain, false);
            ism(PRECISION_FP64)->run(&matrix);
            matrix = matrix_of(&pool, place, &with, true);
            ism(PRECISION_FP64)->run(&matrix);
            assert_memory_equal(plain.z, with.z, sizeof plain.z);
            assert_int_equal(plain.info, with.info);
            const bool made = with.algorithm == METHOD_ALGORITHM_BLOCK;
            const double u = number(&pool, with.factors[0], 0);
            assert_true(made ? isfinite(u) : isnan(u));
        }
        workers_destroy(&pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_fill),  cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_made),        cmocka_unit_test(test_opposed),
        cmocka_unit_test(test_every_width), cmocka_unit_test(test_factors),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
