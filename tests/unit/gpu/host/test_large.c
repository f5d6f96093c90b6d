/* Orders that are taken by blocks, and by a team: the bits never depend on the team; factors,
 * inverses, INFO and RCOND are right around the orders where the code changes, and where blocks
 * end. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/linalg/dense.h"
#include "gpu/host/engine/lane.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/linalg/blocked.h"
#include "gpu/host/linalg/qr.h"
#include "gpu/method.h"
#include "tests/support/gallery.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/bed.h"
#include "tests/unit/gpu/host/child.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define FIRST HOST_LARGE_INVERT_MIN
#define SECOND HOST_LARGE_FACTOR_MIN
#define THIRD 1024 /* larger blocks from here on */
#define ARENA_BYTES (UINT64_C(64) << 20)
#define WAIT_MS 20000
#define OUTPUTS 6

static const int helpers[] = {0, 1, 3};

static struct host_team *create(int count)
{
    struct failure failure = {0};
    struct host_team *team = NULL;
    assert_int_equal(host_team_create(count, 0, &team, &failure), ERROR_NONE);
    return team;
}

/* Which entries a matrix has, and so the algorithm that auto takes. */
enum shape {
    DENSE,
    DEFINITE,
    LOWER,
    UPPER,
    GROWING /* Foster's */
};

static double entry(enum shape shape, int64_t i, int64_t j, int64_t n, double random)
{
    if (shape == GROWING)
        return gallery_foster(i, j, n);
    if (shape == DENSE || (shape == DEFINITE && i != j))
        return random;
    if (i == j)
        return (shape == DEFINITE ? (double)n : 2) + random;
    return (shape == LOWER) == (i > j) ? random / (double)n : 0;
}

static void *fill_shape(enum shape shape, enum precision precision, int64_t n, uint64_t seed)
{
    void *a = malloc((size_t)(n * n * precision_bytes(precision)));
    assert_non_null(a);
    for (int64_t k = 0; k < n * n; k++) {
        int64_t i = k / n, j = k % n, mirrored = j * n + i;
        double value = entry(shape, i, j, n, gputest_random(&seed));
        bool copied = shape == DEFINITE && j < i;
        if (precision == PRECISION_FP32)
            ((float *)a)[k] = copied ? ((float *)a)[mirrored] : (float)value;
        else
            ((double *)a)[k] = copied ? ((double *)a)[mirrored] : value;
    }
    return a;
}

static void *fill(enum precision precision, int64_t n, uint64_t seed)
{
    return fill_shape(DENSE, precision, n, seed);
}

/* ---- The same bits, whatever the team ---- */

struct answers {
    unsigned char *outputs[OUTPUTS];
    int64_t bytes[OUTPUTS];
};

/* Runs a method on a, with scratch that starts as noise. wanted: is the first output? */
static struct answers run_with(struct host_team *team, const char *name, enum precision precision,
                               int64_t n, const void *a, bool wanted)
{
    const struct method *method = method_find(name);
    const struct host_method *host = host_method_at((uint32_t)method_index(method), precision);
    int64_t options[METHOD_OPTIONS_MAX], bytes = host->scratch_bytes(n, 0);
    struct host_matrix matrix = {.inputs = {a}, .n = n, .options = options, .team = team};
    struct answers answers = {0};
    method_default_options(method, options);
    for (int i = 0; method->outputs[i].name; i++) {
        answers.bytes[i] = method_tensor_bytes(&method->outputs[i], precision, n, 0, options);
        answers.outputs[i] = calloc(1, (size_t)answers.bytes[i]);
        matrix.outputs[i] = i > 0 || wanted ? answers.outputs[i] : NULL;
    }
    matrix.scratch = aligned_alloc(HOST_ALIGN_BYTES, (size_t)bytes);
    assert_non_null(matrix.scratch);
    memset(matrix.scratch, 0xa5, (size_t)bytes);
    host->run(&matrix);
    free(matrix.scratch);
    return answers;
}

static void drop(struct answers *answers)
{
    for (int i = 0; i < OUTPUTS; i++)
        free(answers->outputs[i]);
}

struct algorithm_case {
    const char *method;
    enum shape shape;
    int32_t algorithm; /* of auto */
};

static const struct algorithm_case algorithms[] = {
    {"lu", DENSE, 0},
    {"auto", DENSE, METHOD_ALGORITHM_LU},
    {"lu_factor", DENSE, 0},
    {"gauss_jordan", DENSE, 0},
    {"auto", DEFINITE, METHOD_ALGORITHM_CHOLESKY},
    {"auto", LOWER, METHOD_ALGORITHM_TRIANGULAR},
    {"auto", UPPER, METHOD_ALGORITHM_TRIANGULAR},
    {"lu", GROWING, 0},
};

static void try_teams(const struct algorithm_case *algorithm, enum precision precision, int64_t n,
                      struct host_team **teams)
{
    const char *method = algorithm->method;
    void *a = fill_shape(algorithm->shape, precision, n, (uint64_t)n);
    struct answers first = run_with(NULL, method, precision, n, a, true);
    if (algorithm->algorithm)
        assert_int_equal(*(int32_t *)(void *)first.outputs[3], algorithm->algorithm);
    for (size_t t = 0; t < COUNT(helpers); t++) {
        struct answers other = run_with(teams[t], method, precision, n, a, true);
        for (int i = 0; i < OUTPUTS && first.outputs[i]; i++) {
            if (memcmp(first.outputs[i], other.outputs[i], (size_t)first.bytes[i]) != 0)
                fail_msg("%s (%d) %s %d: output %d differs with %d helpers", method,
                         algorithm->shape, precision_name(precision), (int)n, i, helpers[t]);
        }
        drop(&other);
    }
    /* No one wants the inverse: INFO and RCOND are the same. */
    struct answers bare = run_with(teams[1], method, precision, n, a, false);
    for (int i = 1; i < OUTPUTS && first.outputs[i]; i++)
        assert_memory_equal(first.outputs[i], bare.outputs[i], (size_t)first.bytes[i]);
    drop(&bare);
    drop(&first);
    free(a);
}

static void test_bits_do_not_depend_on_the_team(void **state)
{
    (void)state;
    static const int64_t orders[] = {100, SECOND - 1, SECOND, 391, THIRD + 5};
    struct host_team *teams[COUNT(helpers)];
    for (size_t t = 0; t < COUNT(helpers); t++)
        teams[t] = create(helpers[t]);
    for (size_t i = 0; i < COUNT(orders) * COUNT(algorithms); i++) {
        const struct algorithm_case *algorithm = &algorithms[i % COUNT(algorithms)];
        int64_t n = orders[i / COUNT(algorithms)];
        if (algorithm->shape == GROWING && n > 400)
            continue; /* slow */
        try_teams(algorithm, PRECISION_FP64, n, teams);
        if (n < THIRD)
            try_teams(algorithm, PRECISION_FP32, n, teams);
    }
    for (size_t t = 0; t < COUNT(helpers); t++)
        host_team_destroy(&teams[t]);
}

/* ---- The same bits from a lane and from the engine ---- */

#define SERVED_ORDER 300

/* The answer of a batch of `count` equal matrices; every one of them must be the same. */
static void serve(struct gputest_bed *bed, int count, double *inverse)
{
    const size_t bytes = sizeof(double) * SERVED_ORDER * SERVED_ORDER;
    double *a = fill(PRECISION_FP64, SERVED_ORDER, 77);
    struct engine_batch *batch =
        gputest_bed_next(bed, ENGINE_LANE_SHORT, "lu", PRECISION_FP64, SERVED_ORDER);
    struct engine_item *item = gputest_bed_item(bed, batch, count);
    unsigned char *answer = bed->arena + item->outputs[0].offset_bytes;
    for (int i = 0; i < count; i++)
        memcpy(bed->arena + item->inputs[0].offset_bytes + (size_t)i * bytes, a, bytes);
    free(a);
    gputest_bed_submit(bed, ENGINE_LANE_SHORT, batch);
    assert_true(gputest_bed_wait(bed, ENGINE_LANE_SHORT, batch, WAIT_MS));
    assert_int_equal(batch->status, ENGINE_OK);
    assert_string_equal(batch->kernel, "host blocked getrf+getri");
    memcpy(inverse, answer, bytes);
    for (int i = 1; i < count; i++)
        assert_memory_equal(answer, answer + (size_t)i * bytes, bytes);
    gputest_bed_release(batch);
    gputest_bed_reset(bed);
}

static void test_bits_of_a_lane(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 5};
    static double first[SERVED_ORDER * SERVED_ORDER], other[SERVED_ORDER * SERVED_ORDER];
    for (size_t i = 0; i < COUNT(threads); i++) {
        struct gputest_bed bed;
        struct failure failure = {0};
        struct host_lane *lane = NULL;
        struct host_budget *budget = NULL;
        struct host_team *team = create(threads[i] - 1);
        gputest_bed_create(&bed, ARENA_BYTES);
        assert_int_equal(host_budget_create(INT64_C(1) << 30, threads[i], &budget, &failure),
                         ERROR_NONE);
        struct host_lane_options options = {.lane = &bed.shared->lanes[ENGINE_LANE_SHORT],
                                            .arena = {bed.arena, bed.arena_bytes},
                                            .event_fd = bed.event_fd,
                                            .threads = threads[i],
                                            .budget = budget,
                                            .team = team};
        assert_int_equal(host_lane_create(&options, &lane, &failure), ERROR_NONE);
        for (int count = 1; count <= 7; count += 2) {
            serve(&bed, count, other);
            if (i == 0 && count == 1)
                memcpy(first, other, sizeof first);
            assert_memory_equal(first, other, sizeof first);
        }
        host_lane_destroy(&lane);
        host_budget_destroy(&budget);
        host_team_destroy(&team);
        gputest_bed_destroy(&bed);
    }
}

static void test_bits_of_the_engine(void **state)
{
    (void)state;
    static const char *const threads[] = {"1", "2", "3", "5"};
    static double first[SERVED_ORDER * SERVED_ORDER], other[SERVED_ORDER * SERVED_ORDER];
    char path[4096];
    gputest_child_program("invertd-host", path, sizeof path);
    for (size_t i = 0; i < COUNT(threads); i++) {
        struct gputest_bed bed;
        struct gputest_child child;
        const char *arguments[] = {"--threads", threads[i], NULL};
        gputest_bed_create(&bed, ARENA_BYTES);
        gputest_child_start(&child, &bed, path, arguments, -1);
        assert_int_equal(gputest_child_wait_ready(&child, &bed, WAIT_MS), ENGINE_READY);
        serve(&bed, 1, i == 0 ? first : other);
        if (i > 0)
            assert_memory_equal(first, other, sizeof first);
        gputest_child_end(&child, WAIT_MS);
        gputest_bed_destroy(&bed);
    }
}

/* ---- Truth ---- */

static const int64_t orders[] = {
    FIRST - 1,  FIRST, FIRST + 1, 95,  96,  97,  127,       128,   129,       SECOND - 1, SECOND,
    SECOND + 1, 319,   320,       321, 511, 513, THIRD - 1, THIRD, THIRD + 1, THIRD + 129};

static double *random_matrix(int64_t n, enum precision precision, uint64_t seed)
{
    double *a = gputest_numbers(n * n);
    for (int64_t i = 0; i < n * n; i++) {
        a[i] = gputest_random(&seed);
        a[i] = precision == PRECISION_FP32 ? (double)(float)a[i] : a[i];
    }
    return a;
}

static void try_order(enum precision precision, int64_t n)
{
    double *a = random_matrix(n, precision, (uint64_t)n + 1), eps = gputest_eps(precision);
    struct gputest_answer answer = gputest_run("lu", precision, n, a, false);
    double ratio = gputest_inverse_ratio(precision, n, a, answer.inverse);
    double rcond = 1 / residual_norm(n, a) / residual_norm(n, answer.inverse);
    if (answer.info != 0 || !(ratio <= 1))
        fail_msg("lu %d: INFO %d, ratio %g", (int)n, answer.info, ratio);
    assert_true(fabs(answer.rcond - rcond) <= (double)n * eps * rcond);
    gputest_free(&answer);

    answer = gputest_run("lu_factor", precision, n, a, false);
    ratio = gputest_factor_ratio(precision, n, a, &answer);
    if (answer.info != 0 || !(ratio <= 1))
        fail_msg("lu_factor %d: INFO %d, ratio %g", (int)n, answer.info, ratio);
    gputest_free(&answer);
    free(a);
}

static void test_orders_around_the_switches(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(orders); i++) {
        try_order(PRECISION_FP64, orders[i]);
        if (orders[i] < THIRD)
            try_order(PRECISION_FP32, orders[i]);
    }
}

/* auto's algorithms through blocks: as good as LAPACK's, with the RCOND of the inverse. */
static void test_algorithms_around_the_switches(void **state)
{
    (void)state;
    static const int64_t sizes[] = {SECOND - 1, SECOND, SECOND + 1, 319, 321, 513, THIRD + 129};
    for (size_t k = 0; k < COUNT(sizes) * 3; k++) {
        enum shape shape = DEFINITE + (int)(k % 3);
        enum precision precision = k % 2 ? PRECISION_FP32 : PRECISION_FP64;
        int64_t n = sizes[k / 3];
        double *a = gputest_numbers(n * n);
        void *filled = fill_shape(shape, precision, n, (uint64_t)k);
        for (int64_t i = 0; i < n * n; i++)
            a[i] = precision == PRECISION_FP32 ? ((float *)filled)[i] : ((double *)filled)[i];
        free(filled);
        struct gputest_answer answer = gputest_run("auto", precision, n, a, false);
        double ratio = gputest_inverse_ratio(precision, n, a, answer.inverse);
        double rcond = 1 / residual_norm(n, a) / residual_norm(n, answer.inverse);
        assert_int_equal(answer.algorithm, shape == DEFINITE ? METHOD_ALGORITHM_CHOLESKY
                                                             : METHOD_ALGORITHM_TRIANGULAR);
        if (answer.info != 0 || !(ratio <= 1))
            fail_msg("shape %d, %d: INFO %d, ratio %g", shape, (int)n, answer.info, ratio);
        assert_true(fabs(answer.rcond - rcond) <= (double)n * gputest_eps(precision) * rcond);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < i; j++) {
                double lower = answer.inverse[i * n + j], upper = answer.inverse[j * n + i];
                assert_true(shape == DEFINITE ? lower == upper
                            : shape == LOWER  ? upper == 0
                                              : lower == 0);
            }
        gputest_free(&answer);
        free(a);
    }
}

/* The pivots are those of LAPACK's own getrf. */
static void test_pivots_are_lapacks(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(orders); i++) {
        int64_t n = orders[i], ld = host__ld(PRECISION_FP64, n);
        double *a = random_matrix(n, PRECISION_FP64, 9), *columns = gputest_numbers(n * ld);
        int32_t *pivots = calloc((size_t)n, sizeof *pivots);
        host__transpose_f64(NULL, a, n, columns, ld, n, 1);
        assert_int_equal(host__getrf_f64(n, columns, ld, pivots), 0);
        struct gputest_answer answer = gputest_run("lu_factor", PRECISION_FP64, n, a, false);
        assert_memory_equal(answer.pivots, pivots, (size_t)n * sizeof *pivots);
        gputest_free(&answer);
        free(pivots);
        free(columns);
        free(a);
    }
}

/* ---- No inverse ---- */

static void assert_all_nan(const struct gputest_answer *answer)
{
    for (int64_t i = 0; i < answer->n * answer->n; i++)
        assert_true(isnan(answer->inverse[i]));
}

/* A zero column: an exact zero pivot at its step, wherever blocks end. */
static void try_zero_column(enum precision precision, int64_t n, int64_t column)
{
    double *a = random_matrix(n, precision, 21);
    for (int64_t i = 0; i < n; i++)
        a[i * n + column] = 0;
    struct gputest_answer answer = gputest_run("lu", precision, n, a, false);
    assert_int_equal(answer.info, column + 1);
    assert_true(answer.rcond == 0);
    assert_all_nan(&answer);
    gputest_free(&answer);

    answer = gputest_run("lu_factor", precision, n, a, false);
    assert_int_equal(answer.info, column + 1);
    assert_true(answer.inverse[column * (n + 1)] == 0);
    assert_true(gputest_factor_ratio(precision, n, a, &answer) <= 1);
    gputest_free(&answer);
    free(a);
}

static void test_zero_pivots(void **state)
{
    (void)state;
    static const int64_t sizes[] = {FIRST + 1, SECOND, SECOND + 65, 520};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        int64_t n = sizes[i], columns[] = {0, 63, 64, n / 2, n - 2, n - 1};
        for (size_t j = 0; j < COUNT(columns); j++)
            try_zero_column(j % 2 ? PRECISION_FP32 : PRECISION_FP64, n, columns[j]);
    }
}

/* Two zero columns: INFO is the first one's step. Equal rows: never good. NaN: -1. */
static void test_other_defects(void **state)
{
    (void)state;
    enum {
        N = 400
    };
    double *a = random_matrix(N, PRECISION_FP64, 4);
    for (int i = 0; i < N; i++)
        a[i * N + 70] = a[i * N + 390] = 0;
    struct gputest_answer answer = gputest_run("lu", PRECISION_FP64, N, a, false);
    assert_int_equal(answer.info, 71);
    gputest_free(&answer);
    free(a);

    a = random_matrix(N, PRECISION_FP64, 4);
    memcpy(a + (N - 1) * N, a, N * sizeof *a);
    answer = gputest_run("lu", PRECISION_FP64, N, a, false);
    assert_true(answer.rcond < gputest_eps(PRECISION_FP64) && answer.info >= 1);
    gputest_free(&answer);
    free(a);

    static const double poisons[] = {NAN, INFINITY};
    for (size_t i = 0; i < COUNT(poisons); i++) {
        a = random_matrix(N, PRECISION_FP64, 4);
        a[N * N - 1] = poisons[i];
        answer = gputest_run("lu", PRECISION_FP64, N, a, false);
        assert_int_equal(answer.info, -1);
        assert_true(isnan(answer.rcond));
        assert_all_nan(&answer);
        gputest_free(&answer);
        free(a);
    }
}

/* A pivot that is not positive is found where LAPACK finds it; auto then leaves it to lu. */
static void test_indefinite_pivots(void **state)
{
    (void)state;
    static const int64_t sizes[] = {SECOND, SECOND + 65, 520};
    for (size_t k = 0; k < COUNT(sizes); k++) {
        int64_t n = sizes[k], ld = host__ld(PRECISION_FP64, n);
        int64_t columns[] = {0, 63, 64, n / 2, n - 1};
        for (size_t c = 0; c < COUNT(columns); c++) {
            double *a = fill_shape(DEFINITE, PRECISION_FP64, n, 5),
                   *factor = gputest_numbers(n * ld);
            a[columns[c] * (n + 1)] = 0.5; /* positive, and less than what is subtracted */
            a[columns[c] * n + (columns[c] + 1) % n] = a[(columns[c] + 1) % n * n + columns[c]] =
                (double)n / 2;
            host__transpose_f64(NULL, a, n, factor, ld, n, 1);
            int64_t info = host__potrf_f64('L', n, factor, ld);
            assert_true(info > 0);
            host__transpose_f64(NULL, a, n, factor, ld, n, 1);
            assert_int_equal(host__large_potrf_f64(NULL, n, factor, ld), info);
            struct gputest_answer answer = gputest_run("auto", PRECISION_FP64, n, a, false);
            assert_int_equal(answer.algorithm, METHOD_ALGORITHM_LU);
            assert_int_equal(answer.info, 0);
            gputest_free(&answer);
            free(factor);
            free(a);
        }
    }
}

/* A zero on a triangle's diagonal: INFO is its place, from either end. */
static void test_singular_triangles(void **state)
{
    (void)state;
    static const int64_t zeros[] = {0, 64, 300, 399};
    enum {
        N = 400
    };
    for (size_t i = 0; i < COUNT(zeros) * 2; i++) {
        double *a = fill_shape(i % 2 ? UPPER : LOWER, PRECISION_FP64, N, 3);
        a[zeros[i / 2] * (N + 1)] = 0;
        struct gputest_answer answer = gputest_run("auto", PRECISION_FP64, N, a, false);
        assert_int_equal(answer.info, zeros[i / 2] + 1);
        assert_int_equal(answer.algorithm, METHOD_ALGORITHM_TRIANGULAR);
        assert_true(answer.rcond == 0);
        assert_all_nan(&answer);
        gputest_free(&answer);
        free(a);
    }
}

/* ---- Elements that grow ---- */

/* The recovered inverse is good, and the same with a team. */
static void test_growth_is_recovered(void **state)
{
    (void)state;
    static double (*const at[])(int64_t, int64_t, int64_t) = {gallery_growing_inexact,
                                                              gallery_foster};
    static const int64_t sizes[] = {FIRST + 1, SECOND - 1, SECOND, 400};
    struct host_team *team = create(2);
    for (size_t k = 0; k < COUNT(at) * COUNT(sizes); k++) {
        int64_t n = sizes[k / COUNT(at)];
        double *a = gputest_numbers(n * n);
        for (int64_t i = 0; i < n * n; i++)
            a[i] = at[k % COUNT(at)](i / n, i % n, n);
        struct answers answers = run_with(team, "lu", PRECISION_FP64, n, a, true);
        struct answers alone = run_with(NULL, "lu", PRECISION_FP64, n, a, true);
        double *inverse = (double *)(void *)answers.outputs[0];
        assert_int_equal(*(int32_t *)(void *)answers.outputs[1], 0);
        assert_true(gputest_inverse_ratio(PRECISION_FP64, n, a, inverse) <= GPUTEST_RATIO_MAX);
        assert_memory_equal(inverse, alone.outputs[0], (size_t)alone.bytes[0]);
        drop(&alone);
        drop(&answers);
        free(a);
    }
    host_team_destroy(&team);
}

/* QR by itself: the inverse of any matrix, and no answer where R has a zero. */
static void test_inverse_by_qr(void **state)
{
    (void)state;
    static const int64_t sizes[] = {HOST_QR_ORDER_MIN, 263, 264, 265, THIRD + 7};
    for (size_t k = 0; k < COUNT(sizes) * 2; k++) {
        int64_t n = sizes[k / 2], ld = host__ld(PRECISION_FP64, n);
        double *a = fill_shape(k % 2 ? GROWING : DENSE, PRECISION_FP64, n, k);
        size_t bytes = (size_t)(n * ld) * sizeof *a;
        double *x = aligned_alloc(HOST_ALIGN_BYTES, bytes), *taus = gputest_numbers(n);
        double *lines = aligned_alloc(HOST_ALIGN_BYTES, (size_t)(host__lines(n) * ld) * sizeof *a);
        host__transpose_f64(NULL, a, n, x, ld, n, 1);
        assert_true(host__qr_invert_f64(NULL, n, x, ld, taus, lines));
        host__transpose_in_place_f64(NULL, x, n, ld);
        host__copy_f64(NULL, x, ld, x, n, n, 1);
        assert_true(gputest_inverse_ratio(PRECISION_FP64, n, a, x) <= 1);

        for (int64_t i = 0; i < n; i++)
            a[i * n + 100] = 0;
        host__transpose_f64(NULL, a, n, x, ld, n, 1);
        assert_false(host__qr_invert_f64(NULL, n, x, ld, taus, lines));
        free(lines);
        free(taus);
        free(x);
        free(a);
    }
}

/* ---- Memory ---- */

/* One n x n next to input and output, and lines that vanish next to it. */
static void test_scratch_is_one_matrix(void **state)
{
    (void)state;
    static const int64_t sizes[] = {SECOND, 1000, 4096, 32768};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        int64_t n = sizes[i], bytes = host__dense_scratch_bytes_f64(n, 0);
        int64_t lines = HOST_LARGE_BLOCK_MAX + 16;
        assert_true(bytes >= n * n * 8);
        assert_true(bytes <= (n + 16) * (n + lines) * 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_around_the_switches),
        cmocka_unit_test(test_algorithms_around_the_switches),
        cmocka_unit_test(test_pivots_are_lapacks),
        cmocka_unit_test(test_zero_pivots),
        cmocka_unit_test(test_other_defects),
        cmocka_unit_test(test_indefinite_pivots),
        cmocka_unit_test(test_singular_triangles),
        cmocka_unit_test(test_growth_is_recovered),
        cmocka_unit_test(test_inverse_by_qr),
        cmocka_unit_test(test_scratch_is_one_matrix),
        cmocka_unit_test(test_bits_do_not_depend_on_the_team),
        cmocka_unit_test(test_bits_of_a_lane),
        cmocka_unit_test(test_bits_of_the_engine),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
