/* Products of factors that are packed once (gpu/host/linalg/panels.h), against plain sums; the
 * tiles of `ism`'s inverse; and inverses of `ism` that are made by such products, and by OpenBLAS's
 * alone where the kernel family lacks AVX-512: this program runs itself with OPENBLAS_CORETYPE for
 * that, which is what --cpu sets.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu/host/ism/ism.h"
#include "gpu/host/ism/parts.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/linalg/panels.h"
#include "tests/unit/gpu/host/ism.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define OTHER_FAMILY "Haswell"
#define OTHER "other" /* the argument of the run with that family */
#define PAD 3         /* numbers between rows of what a product is subtracted from */
#define FACTORS (ISMTEST_INVERSE_WANTED | ISMTEST_FACTORS_WANTED)

static int failures;

static void complain(const struct ismtest_problem *problem, const char *what, double value)
{
    failures++;
    print_error("%s kind %d block %d, n = %d, m = %d: %s %g\n", precision_name(problem->precision),
                (int)problem->kind, (int)problem->block_size, (int)problem->n, (int)problem->m,
                what, value);
}

/* ---- Products ---- */

/* Numbers of one precision. */
struct numbers {
    enum precision precision;
    int64_t count;
    void *at; /* of that length to the byte, for a sanitizer to watch */
};

static struct numbers make(enum precision precision, int64_t count, double value)
{
    struct numbers made = {precision, count, malloc((size_t)(count * precision_bytes(precision)))};
    assert_non_null(made.at);
    for (int64_t i = 0; i < count; i++) {
        if (precision == PRECISION_FP32)
            ((float *)made.at)[i] = (float)value;
        else
            ((double *)made.at)[i] = value;
    }
    return made;
}

static double get(const struct numbers *of, int64_t i)
{
    assert_in_range(i, 0, of->count - 1);
    return of->precision == PRECISION_FP32 ? (double)((const float *)of->at)[i]
                                           : ((const double *)of->at)[i];
}

static struct numbers make_random(enum precision precision, int64_t count, uint64_t *seed)
{
    struct numbers made = make(precision, count, 0);
    for (int64_t i = 0; i < count; i++) {
        if (precision == PRECISION_FP32)
            ((float *)made.at)[i] = (float)gputest_random(seed);
        else
            ((double *)made.at)[i] = gputest_random(seed);
    }
    return made;
}

/* `width` columns side by side, for all n. Everything is written, zeros behind column n. */
static struct numbers pack(const struct numbers *from, int64_t inner, int64_t n, int64_t ld,
                           int64_t width, bool panels)
{
    const int64_t whole = (n + width - 1) / width * width, half = whole / 2 / width * width;
    struct numbers to = make(from->precision, whole * inner, (double)NAN);
    if (from->precision == PRECISION_FP32) {
        void (*const run)(int64_t, int64_t, const float *, int64_t, int64_t, int64_t, float *) =
            panels ? host__pack_panels_f32 : host__pack_groups_f32;
        run(inner, n, from->at, ld, half, n, to.at);
        run(inner, n, from->at, ld, 0, half, to.at);
    } else {
        void (*const run)(int64_t, int64_t, const double *, int64_t, int64_t, int64_t, double *) =
            panels ? host__pack_panels_f64 : host__pack_groups_f64;
        run(inner, n, from->at, ld, half, n, to.at);
        run(inner, n, from->at, ld, 0, half, to.at);
    }
    for (int64_t j = 0; j < whole; j++) {
        for (int64_t l = 0; l < inner; l++) {
            const double packed = get(&to, j / width * width * inner + l * width + j % width);
            assert_true(packed == (j < n ? get(from, l * ld + j) : 0));
        }
    }
    return to;
}

/* One product of the tile from (row, column) on to the last row and column. */
static void try_tile(const struct numbers *left, const struct numbers *right, int64_t inner,
                     int64_t n, int64_t ld, int64_t row, int64_t column, bool sets)
{
    const enum precision precision = left->precision;
    const int64_t rows = n - row, columns = n - column, ldc = columns + PAD;
    const int64_t width = host__panel_columns(precision);
    const double before = sets ? (double)NAN : 0.5;
    struct numbers groups = pack(left, inner, n, ld, HOST_PANEL_ROWS, false);
    struct numbers panels = pack(right, inner, n, ld, width, true);
    struct numbers c = make(precision, rows * ldc, before);
    if (precision == PRECISION_FP32)
        host__subtract_panels_f32(rows, columns, inner, (float *)groups.at + row * inner,
                                  (float *)panels.at + column * inner, sets, c.at, ldc);
    else
        host__subtract_panels_f64(rows, columns, inner, (double *)groups.at + row * inner,
                                  (double *)panels.at + column * inner, sets, c.at, ldc);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            long double sum = sets ? 0 : 0.5L;
            for (int64_t l = 0; l < inner; l++)
                sum -= (long double)get(left, l * ld + row + i) * get(right, l * ld + column + j);
            const double error = (double)fabsl(sum - get(&c, i * ldc + j));
            assert_true(error <= (double)(inner + 1) * gputest_eps(precision));
        }
        for (int64_t j = columns; j < ldc; j++) {
            const double kept = get(&c, i * ldc + j);
            assert_true(sets ? isnan(kept) : kept == before);
        }
    }
    free(groups.at);
    free(panels.at);
    free(c.at);
}

static void test_products(void **state)
{
    (void)state;
    static const int64_t orders[] = {1, 7, 8, 9, 23, 24, 25, 48, 49, 97, 120};
    static const int64_t inners[] = {1, 2, 75, 255, 256, 257, 513};
    if (!host__panels_work())
        skip();
    uint64_t seed = 31;
    for (size_t i = 0; i < COUNT(orders) * COUNT(inners) * PRECISION_COUNT; i++) {
        const enum precision precision = (enum precision)(i % PRECISION_COUNT);
        const int64_t n = orders[i / PRECISION_COUNT % COUNT(orders)];
        const int64_t inner = inners[i / PRECISION_COUNT / COUNT(orders)], ld = n + 2;
        struct numbers left = make_random(precision, inner * ld, &seed);
        struct numbers right = make_random(precision, inner * ld, &seed);
        const int64_t row = n / 2 / HOST_PANEL_ROWS * HOST_PANEL_ROWS;
        const int64_t width = host__panel_columns(precision), column = n / 2 / width * width;
        try_tile(&left, &right, inner, n, ld, 0, 0, true);
        try_tile(&left, &right, inner, n, ld, row, column, false);
        free(left.at);
        free(right.at);
    }
}

/* ---- Tiles ---- */

/* Strips fit the probe vectors, and tiles are whole panels. */
static void test_tiles(void **state)
{
    (void)state;
    assert_true(HOST_ISM_STRIPS * HOST_ISM_SEEN <= (HOST_ISM_LINES - 2) * HOST_ISM_PROBES);
    for (int64_t n = 1; n <= METHOD_ISM_ORDER_MAX; n++) {
        const struct host_ism_tiles tiles = host__ism_tiles(n);
        assert_in_range(tiles.down, 1, HOST_ISM_STRIPS);
        assert_true(tiles.down * tiles.rows >= n && (tiles.down - 1) * tiles.rows < n);
        assert_true(tiles.across * tiles.columns >= n && (tiles.across - 1) * tiles.columns < n);
        assert_int_equal(tiles.rows % HOST_PANEL_ROWS, 0);
        assert_int_equal(tiles.columns % HOST_PANEL_COLUMNS_MAX, 0);
    }
}

/* (G R)^T in groups fits the place of G^T, and K in panels that of (G R)^T, without a number of the
 * next: K is still read. */
static void test_places(void **state)
{
    (void)state;
    for (int64_t n = 256; n < 900; n++) {
        for (int p = 0; p < PRECISION_COUNT; p++) {
            const enum precision precision = (enum precision)p;
            const int64_t width = host__panel_columns(precision), m = n - n % 3 * 100;
            const struct host_ism_layout layout =
                host__ism_layout_block(precision, n, m, m, n % 2 == 0);
            assert_true(layout.packs);
            assert_true(layout.k - layout.gr >= (n + width - 1) / width * width * m);
            assert_true(layout.p - layout.w >=
                        (n + HOST_PANEL_ROWS - 1) / HOST_PANEL_ROWS * HOST_PANEL_ROWS * m);
        }
    }
}

/* ---- Inverses ---- */

/* By the variant itself: neither lu nor Newton's step, which leaves no factors, was needed. */
static void check_made(const struct ismtest_problem *problem, const struct ismtest_answer *answer)
{
    const int64_t n = problem->n;
    const double ratio = gputest_inverse_ratio(problem->precision, n, problem->a, answer->inverse);
    if (answer->info != 0 || !(ratio <= GPUTEST_RATIO_MAX))
        complain(problem, "residual ratio", ratio);
    if (answer->algorithm != METHOD_ALGORITHM_BLOCK)
        complain(problem, "METHOD", answer->algorithm);
    if (problem->kind == ISMTEST_ALONE)
        return;
    const double factors = ismtest_factors_ratio(problem, answer);
    if (!(factors <= GPUTEST_RATIO_MAX))
        complain(problem, "factors' ratio", factors);
}

static void check_same(const struct ismtest_problem *problem, const struct ismtest_answer *one,
                       const struct ismtest_answer *other)
{
    if (one->info != other->info || one->algorithm != other->algorithm ||
        memcmp(&one->rcond, &other->rcond, sizeof one->rcond) != 0 ||
        memcmp(&one->det_ratio, &other->det_ratio, sizeof one->det_ratio) != 0 ||
        memcmp(one->bytes, other->bytes, (size_t)one->byte_count) != 0)
        complain(problem, "other bits", 0);
}

/* One block of all columns, from one that is thinner than a vector to one of all n; and blocks. */
static void test_inverses(void **state)
{
    (void)state;
    static const struct {
        enum ismtest_kind kind;
        int64_t n, m, block_size;
    } rows[] = {
        {ISMTEST_DIAGONAL, 255, 30, 30}, {ISMTEST_DIAGONAL, 256, 3, 3},
        {ISMTEST_DEFAULT, 263, 65, 65},  {ISMTEST_DIAGONAL, 289, 289, 289},
        {ISMTEST_INVERSE, 385, 96, 96},  {ISMTEST_INVERSE_AND_A0, 337, 131, 131},
        {ISMTEST_ALONE, 271, 0, 271},    {ISMTEST_INVERSE_AND_A0, 300, 150, 64},
    };
    struct failure failure;
    struct host_team *team = NULL;
    failures = 0;
    assert_int_equal(host_team_create(2, 0, &team, &failure), ERROR_NONE);
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (int p = 0; p < PRECISION_COUNT; p++) {
            struct ismtest_problem problem =
                ismtest_problem((enum precision)p, rows[i].kind, rows[i].n, rows[i].m, 91 + i);
            problem.variant = METHOD_ISM_BLOCK;
            problem.block_size = rows[i].block_size;
            struct ismtest_answer alone = ismtest_run(&problem, FACTORS, NULL);
            struct ismtest_answer helped = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, team);
            check_made(&problem, &alone);
            check_same(&problem, &alone, &helped);
            ismtest_forget(&alone);
            ismtest_forget(&helped);
            ismtest_free(&problem);
        }
    }
    host_team_destroy(&team);
    assert_int_equal(failures, 0);
}

/* ---- Another family ---- */

static void test_family_without(void **state)
{
    (void)state;
    assert_string_equal(host__lapack_cpu(), OTHER_FAMILY);
    assert_false(host__panels_work());
}

/* The bits are the family's: what has AVX-512 is not to use it where --cpu says another one. */
static void test_another_family(void **state)
{
    (void)state;
    if (!host__panels_work())
        skip();
    const pid_t pid = fork();
    if (pid == 0) {
        setenv("OPENBLAS_CORETYPE", OTHER_FAMILY, 1);
        execl("/proc/self/exe", "test_host_panels", OTHER, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles),          cmocka_unit_test(test_places),
        cmocka_unit_test(test_products),       cmocka_unit_test(test_inverses),
        cmocka_unit_test(test_another_family),
    };
    const struct CMUnitTest others[] = {
        cmocka_unit_test(test_family_without),
        cmocka_unit_test(test_inverses),
    };
    host__lapack_init();
    if (argc > 1 && strcmp(argv[1], OTHER) == 0)
        return cmocka_run_group_tests(others, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
