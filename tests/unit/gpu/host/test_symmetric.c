/* Symmetric in, symmetric out, to the bit: `auto` on matrices that equal their transposes,
 * whichever algorithm they take. And the inverse is still one: both residuals stay small.
 *
 * With INVERTD_ENGINE it is that engine's inverses that are judged (see matrices.h); with
 * INVERTD_ENGINE_N_MAX, that is, on a CPU that stands in for a GPU, of fewer matrices. */
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
/* The contract's is 15; of a matrix in a thousand a residual may be larger than this. */
#define RATIO_TRIED 1.0
#define LARGE_AT_MOST 0.001
#define FAMILY 10000 /* random matrices */

/* ---- Matrices ---- */

struct subject {
    const char *kind;
    enum precision precision;
    int64_t n;
    uint64_t seed;
    double *a;
};

/* Entry (i, j), j <= i, of a symmetric matrix. */
typedef double entry(const struct subject *subject, int64_t i, int64_t j, double random);

static double general(const struct subject *subject, int64_t i, int64_t j, double random)
{
    (void)subject, (void)i, (void)j;
    return random;
}

static double definite(const struct subject *subject, int64_t i, int64_t j, double random)
{
    return i == j ? (double)subject->n + random : random;
}

/* [[H, B], [B^T, 0]] */
static double saddle(const struct subject *subject, int64_t i, int64_t j, double random)
{
    return j >= (subject->n + 1) / 2 ? 0 : i == j ? 3 + random : random;
}

static double band(const struct subject *subject, int64_t i, int64_t j, double random)
{
    (void)subject;
    return i - j > 1 ? 0 : i == j ? (i % 2 ? -3 : 3) + random : random;
}

/* Not dominant: it takes pivots, or lu. */
static double weak_band(const struct subject *subject, int64_t i, int64_t j, double random)
{
    (void)subject;
    return i - j > 1 ? 0 : i == j ? random / 8 : random;
}

/* A diagonal, and the last row and column. */
static double arrow(const struct subject *subject, int64_t i, int64_t j, double random)
{
    return i == j ? (i % 3 ? 2 : -2) + random : i == subject->n - 1 ? random : 0;
}

static double diagonal(const struct subject *subject, int64_t i, int64_t j, double random)
{
    (void)subject;
    return i == j ? random : 0;
}

static double reversal(const struct subject *subject, int64_t i, int64_t j, double random)
{
    (void)random;
    return i + j == subject->n - 1 ? 1 : 0;
}

static double hilbert(const struct subject *subject, int64_t i, int64_t j, double random)
{
    (void)random;
    return gallery_hilbert(i, j, subject->n);
}

/* Gaussian kernels, of which LAPACK leaves up to 1e6 in I - A X, and a mean would on both sides. */
static double gaussian_narrow(const struct subject *subject, int64_t i, int64_t j, double random)
{
    (void)random;
    return gallery_rbf_narrow(i, j, subject->n);
}

static double gaussian_wide(const struct subject *subject, int64_t i, int64_t j, double random)
{
    (void)random;
    return gallery_rbf_wide(i, j, subject->n);
}

/* D S D with powers of two in D from 1 down to 2^-span. */
static double scaled(const struct subject *subject, int64_t i, int64_t j, double random,
                     int64_t span)
{
    const int64_t last = subject->n > 1 ? subject->n - 1 : 1;
    return ldexp(saddle(subject, i, j, random), -(int)(i * span / last) - (int)(j * span / last));
}

static double graded(const struct subject *subject, int64_t i, int64_t j, double random)
{
    return scaled(subject, i, j, random, subject->precision == PRECISION_FP32 ? 6 : 16);
}

static double badly_scaled(const struct subject *subject, int64_t i, int64_t j, double random)
{
    return scaled(subject, i, j, random, subject->precision == PRECISION_FP32 ? 30 : 300);
}

/* Near the ends of the range. */
static double tiny(const struct subject *subject, int64_t i, int64_t j, double random)
{
    const int down = subject->precision == PRECISION_FP32 ? -110 : -980;
    return ldexp(saddle(subject, i, j, random), down);
}

static double huge(const struct subject *subject, int64_t i, int64_t j, double random)
{
    const int up = subject->precision == PRECISION_FP32 ? 115 : 1000;
    return ldexp(saddle(subject, i, j, random), up);
}

/* [[0, G], [G^T, 0]], with a G whose elements grow: it is recovered. */
static double growing(const struct subject *subject, int64_t i, int64_t j, double random)
{
    const int64_t half = subject->n / 2;
    (void)random;
    if (i == 2 * half)
        return i == j;
    return i >= half && j < half ? gallery_growing_inexact(j, i - half, half) : 0;
}

/* Of rank 1. */
static double ones(const struct subject *subject, int64_t i, int64_t j, double random)
{
    (void)subject, (void)i, (void)j, (void)random;
    return 1;
}

static const struct {
    const char *name;
    entry *entry;
    double share; /* of them has an inverse, at least */
} kinds[] = {
    {"general", general, 0.95},
    {"definite", definite, 0.95},
    {"saddle", saddle, 0.95},
    {"band", band, 0.95},
    {"weak band", weak_band, 0.95},
    {"arrow", arrow, 0.95},
    {"diagonal", diagonal, 0.95},
    {"reversal", reversal, 0.95},
    {"Hilbert's", hilbert, 0.1},
    {"Gaussian narrow", gaussian_narrow, 0.95},
    {"Gaussian wide", gaussian_wide, 0.5},
    {"graded", graded, 0.8},
    {"tiny", tiny, 0.95},
    {"huge", huge, 0.95},
    {"growing", growing, 0.95},
    {"ones", ones, 0},
    {"badly scaled", badly_scaled, 0},
};

static void make(struct subject *subject, size_t kind)
{
    const int64_t n = subject->n;
    uint64_t seed = subject->seed;
    subject->kind = kinds[kind].name;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double value = kinds[kind].entry(subject, i, j, gputest_random(&seed));
            value = subject->precision == PRECISION_FP32 ? (double)(float)value : value;
            subject->a[i * n + j] = subject->a[j * n + i] = value;
        }
    }
}

/* ---- Judgement ---- */

struct tally {
    int64_t judged, inverted, large;
    double worst; /* of both residuals */
    int64_t algorithms[METHOD_ALGORITHM_COUNT];
};

static bool same_bits(double one, double other)
{
    return memcmp(&one, &other, sizeof one) == 0 || (isnan(one) && isnan(other));
}

static void fail_at(const struct subject *subject, const struct gputest_answer *answer,
                    const char *what, double value)
{
    fail_msg("%s, %s, n = %d, seed %llu, by %s: %s %g", subject->kind,
             precision_name(subject->precision), (int)subject->n, (unsigned long long)subject->seed,
             method_algorithm_name(answer->algorithm), what, value);
}

static double larger_side(const struct subject *subject, const double *x)
{
    const struct residual_sides sides =
        residual_sides(gputest_eps(subject->precision), subject->n, subject->a, x);
    return residual_larger(sides.left, sides.right);
}

/* Of the X that is answered. */
static void check_rcond(const struct subject *subject, const struct gputest_answer *answer)
{
    const int64_t n = subject->n;
    const double size = residual_norm(n, subject->a) * residual_norm(n, answer->inverse);
    const double off = fabs(answer->rcond * size - 1);
    if (isfinite(size) && !(off <= 8 * (double)n * gputest_eps(subject->precision)))
        fail_at(subject, answer, "RCOND is off by", off);
}

static void judge(const struct subject *subject, struct tally *tally)
{
    const int64_t n = subject->n;
    if (!gputest_takes("auto", subject->precision, n))
        return;
    struct gputest_answer answer = gputest_run("auto", subject->precision, n, subject->a, false);
    const double *x = answer.inverse;
    for (int64_t k = 0; k < n * n; k++) {
        const double mirrored = x[k % n * n + k / n];
        if (!same_bits(x[k], mirrored))
            fail_at(subject, &answer, "the triangles differ by", x[k] - mirrored);
    }
    tally->judged++;
    tally->algorithms[answer.algorithm]++;
    if (answer.info == 0) {
        const double ratio = larger_side(subject, x);
        if (!(ratio <= GPUTEST_RATIO_MAX))
            fail_at(subject, &answer, "a residual's ratio is", ratio);
        tally->worst = fmax(tally->worst, ratio);
        tally->large += ratio > RATIO_TRIED;
        tally->inverted++;
    }
    if (answer.info == 0 || answer.info == n + 1)
        check_rcond(subject, &answer);
    gputest_free(&answer);
}

/* At least `share` of the matrices must have been inverted, nearly all of them well. */
static void sum_up(const struct tally *tally, const char *name, double share)
{
    print_message("%s: %d of %d inverted, ratios at most %.3g; %d by lu, %d Cholesky's, %d "
                  "tridiagonal, %d diagonal\n",
                  name, (int)tally->inverted, (int)tally->judged, tally->worst,
                  (int)tally->algorithms[METHOD_ALGORITHM_LU],
                  (int)tally->algorithms[METHOD_ALGORITHM_CHOLESKY],
                  (int)tally->algorithms[METHOD_ALGORITHM_TRIDIAGONAL],
                  (int)tally->algorithms[METHOD_ALGORITHM_DIAGONAL]);
    assert_true((double)tally->inverted >= share * (double)tally->judged);
    assert_true((double)tally->large <= LARGE_AT_MOST * (double)tally->judged);
}

static int64_t order_at(int64_t index)
{
    static const int64_t larger[] = {64, 100, 257};
    return index < 40 ? index + 1 : larger[index - 40];
}

#define ORDERS 43

static void test_kinds(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        struct tally tally = {0};
        for (int64_t k = 0; k < ORDERS * PRECISION_COUNT; k++) {
            const int64_t n = order_at(k / PRECISION_COUNT);
            struct subject subject = {.precision = (enum precision)(k % PRECISION_COUNT),
                                      .n = n,
                                      .seed = (uint64_t)k,
                                      .a = gputest_numbers(n * n)};
            make(&subject, kind);
            judge(&subject, &tally);
            free(subject.a);
        }
        sum_up(&tally, kinds[kind].name, kinds[kind].share);
    }
}

/* ---- Random spectra ---- */

/* Eigenvalues of random sign, or positive ones, of any condition that an inverse is given for. */
static void make_spectrum(struct subject *subject)
{
    uint64_t seed = subject->seed;
    const double digits = subject->precision == PRECISION_FP32 ? 7 : 16;
    const double decades = digits * (0.5 + gputest_random(&seed) / 2);
    const struct latms row = {.kind = seed >> 40 & 1 ? LATMS_SYMMETRIC : LATMS_DEFINITE,
                              .mode = (enum latms_mode)(1 + (seed >> 41) % LATMS_MODE_MAX),
                              .condition = pow(10, decades),
                              .seed = seed};
    subject->kind = latms_mode_name(row.mode);
    latms_make(&row, subject->precision, subject->n, subject->a);
}

static void test_spectra(void **state)
{
    (void)state;
    struct tally tally = {0};
    for (int64_t k = 0; k < ORDERS * PRECISION_COUNT * 4; k++) {
        const int64_t n = order_at(k / PRECISION_COUNT % ORDERS);
        struct subject subject = {.precision = (enum precision)(k % PRECISION_COUNT),
                                  .n = n,
                                  .seed = (uint64_t)k + 1,
                                  .a = gputest_numbers(n * n)};
        if (n > 100 && k >= ORDERS * PRECISION_COUNT) {
            free(subject.a);
            continue;
        }
        make_spectrum(&subject);
        judge(&subject, &tally);
        free(subject.a);
    }
    sum_up(&tally, "spectra", 0.8);
}

/* Small orders, where all depends on rounding: every second one of a random spectrum. */
static void test_family(void **state)
{
    (void)state;
    const int count = getenv("INVERTD_ENGINE_N_MAX") ? FAMILY / 50 : FAMILY;
    struct tally tally = {0};
    uint64_t seed = 20261127;
    for (int k = 0; k < count; k++) {
        (void)gputest_random(&seed);
        const int64_t n = 1 + (int64_t)(seed >> 33) % 24;
        struct subject subject = {.precision = (enum precision)(seed >> 60 & 1),
                                  .n = n,
                                  .seed = seed,
                                  .a = gputest_numbers(n * n)};
        if (k % 2)
            make_spectrum(&subject);
        else
            make(&subject, (size_t)(seed >> 48) % COUNT(kinds));
        judge(&subject, &tally);
        free(subject.a);
    }
    sum_up(&tally, "family", 0.7);
}

/* A Gaussian kernel of points in a row, too near to a singular one for Cholesky. QR, which large
 * orders are recovered by, leaves much on the right, and so the mean on both sides. */
static void test_large_kernel(void **state)
{
    (void)state;
    if (getenv("INVERTD_ENGINE_N_MAX"))
        skip();
    for (int64_t n = 257; n <= 300; n += 43) {
        struct subject subject = {.kind = "large kernel", .precision = PRECISION_FP64, .n = n};
        struct tally tally = {0};
        subject.a = gputest_numbers(n * n);
        for (int64_t e = 0; e < n * n; e++) {
            const double step = (double)(e / n - e % n) / (double)n;
            subject.a[e] = exp(-5 * step * step) + (e / n == e % n ? 3e-13 : 0);
        }
        judge(&subject, &tally);
        sum_up(&tally, subject.kind, 1);
        free(subject.a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_spectra),
        cmocka_unit_test(test_family),
        cmocka_unit_test(test_large_kernel),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
