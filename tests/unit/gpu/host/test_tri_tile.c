/* Tiles of a tridiagonal inverse, from generators made up here: every entry is its two numbers'
 * product, also among subnormal numbers, whatever the tile's place and way to memory. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/tridiagonal/number.h"
#include "gpu/host/tridiagonal/tridiagonal.h"
#include "tests/unit/gpu/host/matrices.h"

enum {
    N = 700, /* beyond a strip and several panels */
    CHUNKS = (N + HOST_TRI_CHUNK - 1) / HOST_TRI_CHUNK,
    RUN = 40, /* columns with the same exponent */
    MARGIN = 16
};

struct lines {
    struct host_tri_generators generators;
    double mantissas[4][N], diagonal[N];
    int32_t exponents[4][N], max[2][CHUNKS];
};

/* A magnitude between 2^-32 and 2^32 of either sign; every tenth is 0. */
static double mantissa(uint64_t *seed)
{
    double size = 1 + fabs(gputest_random(seed)), sign = gputest_random(seed);
    int place = (int)floor(gputest_random(seed) * 32);
    return gputest_random(seed) < -0.8 ? 0 : copysign(ldexp(size, place), sign);
}

/* Rows' exponents are 0 or -1, columns' `base` to base - 3. */
static struct lines *make_lines(int base, uint64_t seed)
{
    struct lines *lines = calloc(1, sizeof *lines);
    assert_non_null(lines);
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < N; i++) {
            lines->mantissas[k][i] = mantissa(&seed);
            lines->exponents[k][i] = k % 2 ? base - i / RUN % 4 : -(i / RUN % 2);
        }
    for (int i = 0; i < N; i++)
        lines->diagonal[i] = i;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < N; i++) {
            int32_t *most = &lines->max[k][i / HOST_TRI_CHUNK], e = lines->exponents[2 * k + 1][i];
            *most = i % HOST_TRI_CHUNK == 0 || e > *most ? e : *most;
        }
    lines->generators = (struct host_tri_generators){
        .upper_row = {lines->mantissas[0], lines->exponents[0]},
        .upper_column = {lines->mantissas[1], lines->exponents[1]},
        .lower_row = {lines->mantissas[2], lines->exponents[2]},
        .lower_column = {lines->mantissas[3], lines->exponents[3]},
        .upper_max = lines->max[0],
        .lower_max = lines->max[1],
    };
    return lines;
}

static double entry(const struct lines *lines, int64_t i, int64_t j)
{
    const struct host_tri_generators *g = &lines->generators;
    if (i == j)
        return lines->diagonal[i];
    return tri_product(tri_get(i < j ? &g->upper_row : &g->lower_row, i),
                       tri_get(i < j ? &g->upper_column : &g->lower_column, j));
}

/* Returns how many entries are subnormal. */
static int64_t check_f64(const struct lines *lines, const struct host_tri_tile *tile)
{
    int64_t subnormal = 0;
    for (int64_t i = tile->rows.first; i < tile->rows.end; i++)
        for (int64_t j = tile->columns.first; j < tile->columns.end; j++) {
            const double *x = (const double *)tile->x + (i - tile->rows.first) * tile->ld;
            double expected = entry(lines, i, j) + 0;
            assert_memory_equal(&x[j - tile->columns.first], &expected, sizeof expected);
            subnormal += fpclassify(expected) == FP_SUBNORMAL;
        }
    return subnormal;
}

static int64_t check_f32(const struct lines *lines, const struct host_tri_tile *tile)
{
    int64_t subnormal = 0;
    for (int64_t i = tile->rows.first; i < tile->rows.end; i++)
        for (int64_t j = tile->columns.first; j < tile->columns.end; j++) {
            const float *x = (const float *)tile->x + (i - tile->rows.first) * tile->ld;
            float expected = (float)entry(lines, i, j) + 0;
            assert_memory_equal(&x[j - tile->columns.first], &expected, sizeof expected);
            subnormal += fpclassify(expected) == FP_SUBNORMAL;
        }
    return subnormal;
}

static int64_t check_tile(enum precision precision, int base, bool past_caches,
                          struct method_range columns)
{
    struct lines *lines = make_lines(base, (uint64_t)(base + 100));
    int64_t ld = columns.end - columns.first + 3, subnormal;
    unsigned char *x = malloc((size_t)(N * ld + MARGIN) * sizeof(double));
    assert_non_null(x);
    struct host_tri_tile tile = {.rows = {1, N - 1},
                                 .columns = columns,
                                 .x = x + (precision == PRECISION_FP64 ? 8 : 4),
                                 .ld = ld,
                                 .past_caches = past_caches};
    if (precision == PRECISION_FP64) {
        host__tri_tile_f64(&lines->generators, lines->diagonal, &tile);
        subnormal = check_f64(lines, &tile);
    } else {
        host__tri_tile_f32(&lines->generators, lines->diagonal, &tile);
        subnormal = check_f32(lines, &tile);
    }
    free(x);
    free(lines);
    return subnormal;
}

/* From entries of ordinary size to such as are all less than the smallest number. */
static void test_every_size(void **state)
{
    (void)state;
    static const struct method_range ranges[] = {{0, N}, {5, 90}, {N - 1, N}};
    int64_t subnormal[PRECISION_COUNT] = {0};
    for (int base = 0; base >= -20; base--)
        for (int k = 0; k < 4 * 3; k++)
            subnormal[k % 2] += check_tile((enum precision)(k % 2), base, k / 2 % 2, ranges[k / 4]);
    for (int k = 0; k < PRECISION_COUNT; k++)
        assert_true(subnormal[k] > 200000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_size)};
    return cmocka_run_group_tests_name("gpu/host/tri_tile", tests, NULL, NULL);
}
