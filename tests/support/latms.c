/* tests/support/latms.c: see latms.h. */
#include "tests/support/latms.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 4 /* of a pass over a matrix, whose sums are stored once for all of them */
/* Of rotations: 11 are the fewest after which a number of the result can depend on 2048 others. */
#define ROUNDS 16

const char *latms_mode_name(enum latms_mode mode)
{
    static const char *const names[] = {
        [LATMS_ONE_LARGE] = "one large",     [LATMS_ONE_SMALL] = "one small",
        [LATMS_GEOMETRIC] = "geometric",     [LATMS_ARITHMETIC] = "arithmetic",
        [LATMS_LOG_UNIFORM] = "log-uniform", [LATMS_UNIFORM] = "uniform",
    };
    return names[mode];
}

const char *latms_kind_name(enum latms_kind kind)
{
    static const char *const names[LATMS_KIND_COUNT] = {
        [LATMS_GENERAL] = "general",        [LATMS_SYMMETRIC] = "symmetric",
        [LATMS_DEFINITE] = "definite",      [LATMS_UPPER] = "upper triangular",
        [LATMS_LOWER] = "lower triangular", [LATMS_DIAGONAL] = "diagonal",
    };
    return names[kind];
}

/* ---- Numbers ---- */

/* Uniform in (-1, 1). */
static double uniform(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int64_t)(*seed >> 11) / 4503599627370496.0 - 1.0 + 0x1p-53;
}

/* Nearly normal: of vectors with such entries every direction is as likely, nearly. */
static double normal(uint64_t *seed)
{
    double sum = 0;
    for (int i = 0; i < 6; i++)
        sum += uniform(seed);
    return sum;
}

static long double *numbers(int64_t count)
{
    long double *numbers = calloc((size_t)count, sizeof *numbers);
    if (!numbers)
        abort();
    return numbers;
}

static double singular_value(const struct latms *row, int64_t i, int64_t n, uint64_t *seed)
{
    const double part = n > 1 ? (double)i / (double)(n - 1) : 0;
    const double random = (uniform(seed) + 1) / 2;
    switch (row->mode) {
    case LATMS_ONE_LARGE:
        return i == 0 ? 1 : 1 / row->condition;
    case LATMS_ONE_SMALL:
        return i + 1 < n || n == 1 ? 1 : 1 / row->condition;
    case LATMS_GEOMETRIC:
        return pow(row->condition, -part);
    case LATMS_ARITHMETIC:
        return 1 - part * (1 - 1 / row->condition);
    case LATMS_LOG_UNIFORM:
        return pow(row->condition, -random);
    default:
        return random;
    }
}

/* ---- Reflections ---- */

/* Vectors of a reflection of the rows and columns from `from` on, n numbers each. */
struct reflection {
    int64_t n, from;
    long double *u, *v; /* of unit length */
    long double *rows;  /* u^T A */
    long double *sides; /* A v */
};

static void random_direction(int64_t from, int64_t n, uint64_t *seed, long double *v)
{
    long double square = 0;
    for (int64_t i = from; i < n; i++) {
        v[i] = normal(seed);
        square += v[i] * v[i];
    }
    const long double length = sqrtl(square);
    for (int64_t i = from; i < n && square > 0; i++)
        v[i] /= length;
}

/* Rows i to i + count - 1 take part in both products. */
static void add_rows(const struct reflection *reflection, const long double *a, int64_t i,
                     int64_t count)
{
    const int64_t n = reflection->n;
    const long double *v = reflection->v;
    const long double *lines[ROWS];
    long double weights[ROWS], sums[ROWS] = {0};
    for (int64_t r = 0; r < ROWS; r++) {
        lines[r] = a + (i + (r < count ? r : 0)) * n;
        weights[r] = r < count ? reflection->u[i + r] : 0;
    }
    for (int64_t j = reflection->from; j < n; j++) {
        long double sum = reflection->rows[j];
        for (int r = 0; r < ROWS; r++) {
            sum += weights[r] * lines[r][j];
            sums[r] += lines[r][j] * v[j];
        }
        reflection->rows[j] = sum;
    }
    for (int64_t r = 0; r < count; r++)
        reflection->sides[i + r] = sums[r];
}

/* A becomes (I - 2 u u^T) A (I - 2 v v^T), which is A - u p^T - q v^T with p = 2 A^T u - 2 c v,
 * q = 2 A v - 2 c u and c = u^T A v. With u = v and a symmetric A it stays symmetric to the bit. */
static void reflect(const struct reflection *reflection, long double *a)
{
    const int64_t n = reflection->n, from = reflection->from;
    const bool symmetric = reflection->u == reflection->v;
    const long double *u = reflection->u, *v = reflection->v;
    long double *p = reflection->rows, *q = reflection->sides, c = 0;
    for (int64_t j = from; j < n; j++)
        p[j] = 0;
    for (int64_t i = from; i < n; i += ROWS)
        add_rows(reflection, a, i, n - i < ROWS ? n - i : ROWS);
    for (int64_t i = from; i < n; i++)
        c += u[i] * q[i];
    for (int64_t i = from; i < n; i++) {
        q[i] = 2 * q[i] - 2 * c * u[i];
        p[i] = symmetric ? q[i] : 2 * p[i] - 2 * c * v[i];
    }
    for (int64_t i = from; i < n; i++) {
        long double *line = a + i * n, left = u[i], right = q[i];
        for (int64_t j = from; j < n; j++)
            line[j] -= left * p[j] + right * v[j];
    }
}

/* Multiplies by random orthogonal matrices from both sides, or with `symmetric` by one and its
 * transpose. Every orthogonal matrix is as likely, nearly. */
static void mix_by_reflections(int64_t n, bool symmetric, uint64_t *seed, long double *a)
{
    long double *lines = numbers(4 * n);
    struct reflection reflection = {.n = n,
                                    .u = lines,
                                    .v = symmetric ? lines : lines + n,
                                    .rows = lines + 2 * n,
                                    .sides = lines + 3 * n};
    for (reflection.from = n - 2; reflection.from >= 0; reflection.from--) {
        random_direction(reflection.from, n, seed, reflection.u);
        if (!symmetric)
            random_direction(reflection.from, n, seed, reflection.v);
        reflect(&reflection, a);
    }
    free(lines);
}

/* ---- Rotations ---- */

/* Plane rotations of disjoint pairs of places: places[2 k] and places[2 k + 1] by cosines[k] and
 * sines[k]. The last place of an odd n is left alone. */
struct round {
    int64_t n, *places;
    long double *cosines, *sines;
};

static void draw_round(struct round *round, uint64_t *seed)
{
    for (int64_t i = 0; i < round->n; i++) {
        uniform(seed);
        const int64_t other = (int64_t)(*seed >> 33) % (i + 1);
        round->places[i] = round->places[other];
        round->places[other] = i;
    }
    for (int64_t k = 0; k < round->n / 2; k++) {
        const long double x = uniform(seed), y = uniform(seed), length = sqrtl(x * x + y * y);
        round->cosines[k] = x / length;
        round->sines[k] = y / length;
    }
}

static void rotate(long double c, long double s, long double *one, long double *other)
{
    const long double first = *one, second = *other;
    *one = c * first + s * second;
    *other = c * second - s * first;
}

static void rotate_rows(const struct round *round, long double *a)
{
    for (int64_t k = 0; k < round->n / 2; k++) {
        long double *one = a + round->places[2 * k] * round->n;
        long double *other = a + round->places[2 * k + 1] * round->n;
        for (int64_t j = 0; j < round->n; j++)
            rotate(round->cosines[k], round->sines[k], one + j, other + j);
    }
}

static void rotate_columns(const struct round *round, long double *a)
{
    for (int64_t i = 0; i < round->n; i++) {
        long double *line = a + i * round->n;
        for (int64_t k = 0; k < round->n / 2; k++)
            rotate(round->cosines[k], round->sines[k], line + round->places[2 * k],
                   line + round->places[2 * k + 1]);
    }
}

/* The same by orthogonal matrices that are products of ROUNDS of rotations. */
static void mix_by_rotations(int64_t n, bool symmetric, uint64_t *seed, long double *a)
{
    long double *lines = numbers(n);
    struct round round = {.n = n,
                          .places = calloc((size_t)n, sizeof *round.places),
                          .cosines = lines,
                          .sines = lines + n / 2};
    if (!round.places)
        abort();
    for (int r = 0; r < ROUNDS; r++) {
        draw_round(&round, seed);
        rotate_rows(&round, a);
        if (!symmetric)
            draw_round(&round, seed);
        rotate_columns(&round, a);
    }
    for (int64_t i = 0; i < n && symmetric; i++) {
        for (int64_t j = 0; j < i; j++) /* rows first: the two differ by rounding */
            a[j * n + i] = a[i * n + j];
    }
    free(round.places);
    free(lines);
}

/* ---- Matrices ---- */

/* a becomes R of its QR factorisation, whose singular values are the same. */
static void triangularize(int64_t n, long double *a)
{
    long double *lines = numbers(2 * n), *v = lines, *sums = lines + n;
    for (int64_t k = 0; k + 1 < n; k++) {
        long double square = 0, length;
        for (int64_t i = k; i < n; i++) {
            v[i] = a[i * n + k];
            square += v[i] * v[i];
        }
        length = sqrtl(square);
        square += fabsl(v[k]) * length; /* half the square of what v is now */
        v[k] += v[k] < 0 ? -length : length;
        memset(sums, 0, (size_t)n * sizeof *sums);
        for (int64_t i = k; i < n; i++) {
            for (int64_t j = k; j < n; j++)
                sums[j] += v[i] * a[i * n + j];
        }
        for (int64_t i = k; i < n && square > 0; i++) {
            for (int64_t j = k; j < n; j++)
                a[i * n + j] -= v[i] * (sums[j] / square);
        }
        for (int64_t i = k + 1; i < n; i++)
            a[i * n + k] = 0;
    }
    free(lines);
}

void latms_make(const struct latms *row, enum precision precision, int64_t n, double *a)
{
    const enum latms_kind kind = row->kind;
    const bool symmetric = kind == LATMS_SYMMETRIC || kind == LATMS_DEFINITE;
    uint64_t seed = row->seed * 2 + 1;
    long double *wide = numbers(n * n);
    for (int64_t i = 0; i < n; i++) {
        const double value = singular_value(row, i, n, &seed);
        const bool is_negative = uniform(&seed) < 0;
        wide[i * (n + 1)] = is_negative && kind != LATMS_DEFINITE ? -value : value;
    }
    if (kind != LATMS_DIAGONAL && n < LATMS_ROTATED_N_MIN)
        mix_by_reflections(n, symmetric, &seed, wide);
    else if (kind != LATMS_DIAGONAL)
        mix_by_rotations(n, symmetric, &seed, wide);
    if (kind == LATMS_UPPER || kind == LATMS_LOWER)
        triangularize(n, wide);
    for (int64_t i = 0; i < n * n; i++) {
        const long double value = kind == LATMS_LOWER ? wide[i % n * n + i / n] : wide[i];
        a[i] = precision == PRECISION_FP32 ? (double)(float)value : (double)value;
    }
    free(wide);
}
