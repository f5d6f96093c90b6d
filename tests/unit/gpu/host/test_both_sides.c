/* |I - X A| and |I - A X| of every method that eliminates a dense A, over matrices of known
 * singular values (dlatms' six modes, condition to 1e15, 1e6 in FP32) and those of the gallery. On
 * the right LAPACK's getrf and getri, run here on the same matrix, may leave more than the contract
 * allows; ten times that is allowed then.
 *
 * With INVERTD_ENGINE it is that engine's inverses that are judged (see matrices.h). With
 * INVERTD_ACCURACY=long there are many more matrices, up to n = 2048; with INVERTD_ENGINE_N_MAX,
 * that is, on a CPU that stands in for a GPU, few. With INVERTD_ACCURACY_PART=k/m the program takes
 * every m-th matrix, from the k-th on, so that m processes share them (scripts/accuracy). */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/linalg/lapack.h"
#include "gpu/method.h"
#include "tests/support/gallery.h"
#include "tests/support/latms.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LAPACK_TIMES 10

static const char *const methods[] = {"lu", "auto", "gauss_jordan"};

/* Reached to about the largest condition that an inverse is given for. */
static const double conditions[PRECISION_COUNT][4] = {
    [PRECISION_FP32] = {1e1, 1e3, 1e5, 1e6}, [PRECISION_FP64] = {1e2, 1e8, 1e12, 1e15}};

enum depth {
    FEW,
    SHORT,
    LONG
};

static enum depth depth_of_environment(void)
{
    const char *accuracy = getenv("INVERTD_ACCURACY");
    if (accuracy && strcmp(accuracy, "long") == 0)
        return LONG;
    return getenv("INVERTD_ENGINE_N_MAX") ? FEW : SHORT;
}

/* INVERTD_ACCURACY_PART. */
struct part {
    unsigned long first, parts;
};

static struct part part_of_environment(void)
{
    struct part part = {.first = 1, .parts = 1};
    const char *text = getenv("INVERTD_ACCURACY_PART");
    char *end = NULL;
    if (text) {
        part.first = strtoul(text, &end, 10);
        assert_int_equal(*end, '/');
        part.parts = strtoul(end + 1, &end, 10);
        assert_int_equal(*end, '\0');
    }
    assert_in_range(part.first, 1, part.parts);
    return part;
}

/* Is the next matrix in this process's part? */
static bool next_is_ours(void)
{
    static unsigned long next;
    const struct part part = part_of_environment();
    return next++ % part.parts == part.first - 1;
}

/* ---- One matrix ---- */

struct subject {
    const char *name, *kind;
    double condition; /* 0: not known */
    enum precision precision;
    int64_t n;
    double *a;
};

/* The largest ratios of a method and a precision. */
struct worst {
    double left, right;
    int64_t judged, inverted; /* inverted: with INFO 0 */
};

static struct worst worsts[COUNT(methods)][PRECISION_COUNT];
static int failures;

/* What LAPACK leaves on the right; 0 where it finds no inverse. */
static double lapack_right(const struct subject *subject)
{
    const int64_t n = subject->n;
    const bool single = subject->precision == PRECISION_FP32;
    double *x = gputest_numbers(n * n), *work = gputest_numbers(host__getri_work(n)), right = 0;
    float *x_f32 = (float *)calloc((size_t)(n * n), sizeof *x_f32);
    int32_t *pivots = calloc((size_t)n, sizeof *pivots);
    assert_true(x_f32 && pivots);
    for (int64_t i = 0; i < n * n; i++) {
        x[i] = subject->a[i % n * n + i / n];
        x_f32[i] = (float)x[i];
    }
    int64_t info = single ? host__getrf_f32(n, x_f32, n, pivots) : host__getrf_f64(n, x, n, pivots);
    if (info == 0 && single)
        host__getri_f32(n, x_f32, n, pivots, (float *)(void *)work);
    else if (info == 0)
        host__getri_f64(n, x, n, pivots, work);
    double *inverse = gputest_numbers(n * n);
    for (int64_t i = 0; i < n * n; i++)
        inverse[i] = single ? (double)x_f32[i % n * n + i / n] : x[i % n * n + i / n];
    if (info == 0)
        right = residual_sides(gputest_eps(subject->precision), n, subject->a, inverse).right;
    free(inverse);
    free(pivots);
    free(x_f32);
    free(work);
    free(x);
    return right;
}

static void complain(const struct subject *subject, const char *method, const char *side,
                     double ratio, double allowed)
{
    if (failures++ < 20)
        print_error("%s %s: %s %s of condition %g, n = %d: %g on the %s, %g allowed\n", method,
                    precision_name(subject->precision), subject->name, subject->kind,
                    subject->condition, (int)subject->n, ratio, side, allowed);
}

/* The residual that the answer reports is the one that it has: sums of n rounded products are off
 * by half a ratio at most. */
static void check_reported(const struct subject *subject, const char *method,
                           const struct gputest_answer *answer, struct residual_sides sides)
{
    const double left = answer->residuals[METHOD_LEFT], right = answer->residuals[METHOD_RIGHT];
    if (subject->n >= RESIDUAL_SAMPLED_MIN)
        return;
    if (!(fabs(left - sides.left) <= 0.5 + 0.01 * sides.left))
        complain(subject, method, "left, reported", left, sides.left);
    if (!(fabs(right - sides.right) <= 0.5 + 0.01 * sides.right))
        complain(subject, method, "right, reported", right, sides.right);
}

/* Is it sure that RCOND is above eps? The condition in the 1-norm is n times that in the 2-norm at
 * most. */
static bool is_regular(const struct subject *subject)
{
    const double most = (double)subject->n * subject->condition;
    return subject->condition > 0 && most * gputest_eps(subject->precision) < 0.5;
}

static void judge(const struct subject *subject, size_t method)
{
    const int64_t n = subject->n;
    struct worst *worst = &worsts[method][subject->precision];
    if (!gputest_takes(methods[method], subject->precision, n))
        return;
    struct gputest_answer answer =
        gputest_run(methods[method], subject->precision, n, subject->a, false);
    assert_true(answer.info == 0 || answer.info == n + 1);
    worst->judged++;
    if (answer.info == 0) {
        const struct residual_sides sides =
            residual_sides(gputest_eps(subject->precision), n, subject->a, answer.inverse);
        double allowed = GPUTEST_RATIO_MAX;
        if (!(sides.right <= allowed))
            allowed = fmax(allowed, LAPACK_TIMES * lapack_right(subject));
        if (!(sides.left <= GPUTEST_RATIO_MAX))
            complain(subject, methods[method], "left", sides.left, GPUTEST_RATIO_MAX);
        if (!(sides.right <= allowed))
            complain(subject, methods[method], "right", sides.right, allowed);
        check_reported(subject, methods[method], &answer, sides);
        worst->inverted++;
        worst->left = fmax(worst->left, sides.left);
        worst->right = fmax(worst->right, sides.right);
    } else if (is_regular(subject)) {
        complain(subject, methods[method], "left: no inverse", HUGE_VAL, GPUTEST_RATIO_MAX);
    }
    gputest_free(&answer);
}

static void judge_all(const struct subject *subject)
{
    for (size_t m = 0; m < COUNT(methods); m++)
        judge(subject, m);
}

/* At least `share` of the matrices must have been inverted, where all are tried. */
static void sum_up(double share)
{
    for (size_t k = 0; k < COUNT(methods) * PRECISION_COUNT; k++) {
        struct worst *worst = &worsts[k / PRECISION_COUNT][k % PRECISION_COUNT];
        print_message("%s %s: %d of %d inverted, ratios at most %.3g on the left, %.3g on the "
                      "right\n",
                      methods[k / PRECISION_COUNT],
                      precision_name((enum precision)(k % PRECISION_COUNT)), (int)worst->inverted,
                      (int)worst->judged, worst->left, worst->right);
        assert_true(part_of_environment().parts > 1 ||
                    (double)worst->inverted >= share * (double)worst->judged);
        *worst = (struct worst){0};
    }
    assert_int_equal(failures, 0);
}

/* ---- Matrices of known singular values ---- */

static void try_latms(const struct latms *row, enum precision precision, int64_t n)
{
    if (!next_is_ours())
        return;
    struct subject subject = {.name = latms_mode_name(row->mode),
                              .kind = latms_kind_name(row->kind),
                              .condition = row->mode == LATMS_UNIFORM ? 0 : row->condition,
                              .precision = precision,
                              .n = n,
                              .a = gputest_numbers(n * n)};
    latms_make(row, precision, n, subject.a);
    judge_all(&subject);
    free(subject.a);
}

/* Every mode and kind with `count` of the conditions: all of them, or 1 or 2, round robin. */
static void try_order(int64_t n, enum precision precision, int kinds, int count)
{
    const int all = (int)COUNT(conditions[0]);
    for (int k = 0; k < LATMS_MODE_MAX * kinds * count; k++) {
        const int mode = k % LATMS_MODE_MAX, kind = k / LATMS_MODE_MAX % kinds;
        const int place = k / LATMS_MODE_MAX / kinds;
        const int turn = count == all ? 0 : (mode + kind + (int)n) % all;
        struct latms row = {.kind = (enum latms_kind)kind,
                            .mode = (enum latms_mode)(LATMS_ONE_LARGE + mode),
                            .condition = conditions[precision][(place * all / count + turn) % all],
                            .seed = (uint64_t)(n * 1000 + k)};
        try_latms(&row, precision, n);
    }
}

static void test_small_orders(void **state)
{
    (void)state;
    const enum depth depth = depth_of_environment();
    static const int64_t few[] = {1, 2, 5, 8, 12, 16, 17, 24, 25, 31, 32, 33, 40, 50};
    for (int64_t i = 0; i < (depth == FEW ? (int64_t)COUNT(few) : 40); i++) {
        const int64_t n = depth == FEW ? few[i] : i + 1;
        try_order(n, PRECISION_FP64, depth == FEW ? 1 : 3, depth == FEW ? 1 : 4);
        try_order(n, PRECISION_FP32, depth == FEW ? 1 : 3, depth == FEW ? 1 : 4);
    }
    sum_up(0.9);
}

static void test_middle_orders(void **state)
{
    (void)state;
    static const int64_t orders[] = {64, 100, 128, 200, 257};
    const enum depth depth = depth_of_environment();
    for (size_t i = 0; i < COUNT(orders) && depth != FEW; i++) {
        try_order(orders[i], PRECISION_FP64, 3, depth == LONG ? 4 : 1);
        try_order(orders[i], PRECISION_FP32, depth == LONG ? 3 : 1, depth == LONG ? 4 : 1);
    }
    sum_up(depth == FEW ? 0 : 0.8);
}

static void test_large_orders(void **state)
{
    (void)state;
    static const int64_t orders[] = {512, 1000, 2048};
    if (depth_of_environment() != LONG)
        skip();
    for (size_t i = 0; i < COUNT(orders); i++) {
        try_order(orders[i], PRECISION_FP64, 3, 2);
        try_order(orders[i], PRECISION_FP32, 3, 2);
    }
    sum_up(0.5);
}

/* ---- The gallery ---- */

static const struct {
    const char *name;
    double (*entry)(int64_t i, int64_t j, int64_t n);
} gallery[] = {
    {"Hilbert's", gallery_hilbert},
    {"Kahan's", gallery_kahan},
    {"Kahan's transposed", gallery_kahan_transposed},
    {"Gaussian narrow", gallery_rbf_narrow},
    {"Gaussian wide", gallery_rbf_wide},
    {"growing", gallery_growing},
    {"growing inexactly", gallery_growing_inexact},
    {"Wright's", gallery_wright},
    {"Foster's", gallery_foster},
};

static void test_gallery(void **state)
{
    (void)state;
    static const int64_t orders[] = {2, 4, 8, 10, 16, 20, 24, 30, 32, 33, 48, 64, 100, 200, 300};
    const bool few = depth_of_environment() == FEW;
    for (size_t k = 0; k < COUNT(gallery) * COUNT(orders) * PRECISION_COUNT; k++) {
        const int64_t n = orders[k / PRECISION_COUNT % COUNT(orders)];
        struct subject subject = {.name = gallery[k / PRECISION_COUNT / COUNT(orders)].name,
                                  .kind = "matrix",
                                  .precision = (enum precision)(k % PRECISION_COUNT),
                                  .n = n};
        if ((few && n > 33) || !next_is_ours())
            continue;
        subject.a = gputest_numbers(n * n);
        for (int64_t i = 0; i < n * n; i++) {
            const double value =
                gallery[k / PRECISION_COUNT / COUNT(orders)].entry(i / n, i % n, n);
            subject.a[i] = subject.precision == PRECISION_FP32 ? (double)(float)value : value;
        }
        judge_all(&subject);
        free(subject.a);
    }
    sum_up(0.5);
}

/* ---- Kernels of points ---- */

#define KERNELS 150 /* of an order and a precision */
/* The host engine's; LAPACK leaves up to 1e10. A probe vector lets hardly one pass that has more
 * than this. The kernels of a GPU look at the left side alone, and leave about what getri does: of
 * 20,000 kernels of n = 9 to 32 one was above ten times that. */
#define KERNEL_RIGHT_MAX 100

static double fraction(uint64_t *seed)
{
    return (1 + gputest_random(seed)) / 2;
}

/* exp(-width |p - q|^2) of n random points in a space of 1 to 3 dimensions, some with a little
 * added to the diagonal; every other one with its rows in another order. */
static void make_kernel(uint64_t seed, int64_t n, enum precision precision, double *a)
{
    const int dimensions = 1 + (int)(seed % 3);
    const int64_t turn = seed & 1 ? n / 2 : 0;
    const double width = pow(10, -1.5 + 3 * fraction(&seed)),
                 added = pow(10, precision == PRECISION_FP32 ? -6 + 4 * fraction(&seed)
                                                             : -14 + 10 * fraction(&seed));
    double *points = gputest_numbers(n * dimensions);
    for (int64_t i = 0; i < n * dimensions; i++)
        points[i] = fraction(&seed);
    for (int64_t e = 0; e < n * n; e++) {
        const int64_t i = (e / n + turn) % n, j = e % n;
        double distance = 0;
        for (int d = 0; d < dimensions; d++) {
            const double step = points[i * dimensions + d] - points[j * dimensions + d];
            distance += step * step;
        }
        const double value = exp(-width * distance) + (i == j ? added : 0);
        a[e] = precision == PRECISION_FP32 ? (double)(float)value : value;
    }
    free(points);
}

/* Below n = 256 the host engine makes an inverse anew that is bad on either side. */
static void test_points(void **state)
{
    (void)state;
    static const int64_t orders[] = {6, 7, 8, 9, 10, 12, 16, 20, 24, 32, 33, 48};
    const bool few = depth_of_environment() == FEW, has_bound = !getenv("INVERTD_ENGINE");
    for (size_t k = 0; k < COUNT(orders) * PRECISION_COUNT * KERNELS; k++) {
        struct subject subject = {.name = "Gaussian",
                                  .kind = "kernel of points",
                                  .precision = (enum precision)(k % PRECISION_COUNT),
                                  .n = orders[k / PRECISION_COUNT % COUNT(orders)]};
        if (few && subject.n > 33)
            continue;
        subject.a = gputest_numbers(subject.n * subject.n);
        make_kernel(k + 1, subject.n, subject.precision, subject.a);
        judge_all(&subject);
        free(subject.a);
    }
    for (size_t k = 0; k < COUNT(methods) * PRECISION_COUNT && has_bound; k++)
        assert_true(worsts[k / PRECISION_COUNT][k % PRECISION_COUNT].right <= KERNEL_RIGHT_MAX);
    sum_up(0.3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_orders), cmocka_unit_test(test_middle_orders),
        cmocka_unit_test(test_large_orders), cmocka_unit_test(test_gallery),
        cmocka_unit_test(test_points),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
