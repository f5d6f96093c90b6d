/* tests/device/chain.c: see chain.h. */
#include "tests/device/chain.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/residual.h"
#include "tests/unit/gpu/host/matrices.h"

#define STRENGTH 0.5 /* |x| |y| of a term, about */

/* Numbers of X are multiples of 2^-x, those of Y of 2^-y: entries of A below 8 fit. */
static const struct {
    int x, y;
} bits[PRECISION_COUNT] = {[PRECISION_FP32] = {4, 16}, [PRECISION_FP64] = {10, 40}};

/* ---- Numbers ---- */

static double on_grid(double value, int places)
{
    return ldexp(round(ldexp(value, places)), -places);
}

static double rounded(const struct chain *chain, long double value)
{
    return chain->precision == PRECISION_FP32 ? (double)(float)value : (double)value;
}

static int64_t pick(struct chain *chain, int64_t count)
{
    int64_t picked = (int64_t)((gputest_random(&chain->seed) + 1) / 2 * (double)count);
    return picked < count ? picked : count - 1;
}

static bool toss(struct chain *chain)
{
    return gputest_random(&chain->seed) < 0;
}

/* w (n x n) becomes its inverse, by Gauss and Jordan with partial pivoting; returns its
 * determinant. With 0 for that there is no inverse. */
static long double invert(int64_t n, long double *w)
{
    int64_t pivots[CHAIN_N_MAX];
    long double det = 1;
    assert_true(n <= CHAIN_N_MAX);
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++)
            best = fabsl(w[i * n + k]) > fabsl(w[best * n + k]) ? i : best;
        pivots[k] = best;
        const long double pivot = w[best * n + k];
        det *= best == k ? pivot : -pivot;
        if (pivot == 0)
            return 0;
        w[best * n + k] = w[k * n + k];
        w[k * n + k] = 1;
        for (int64_t j = 0; j < n; j++) {
            const long double held = j == k ? 1 : w[best * n + j];
            if (j != k)
                w[best * n + j] = w[k * n + j];
            w[k * n + j] = held / pivot;
        }
        for (int64_t i = 0; i < n; i++) {
            const long double factor = w[i * n + k];
            if (i == k)
                continue;
            w[i * n + k] = 0;
            for (int64_t j = 0; j < n; j++)
                w[i * n + j] -= factor * w[k * n + j];
        }
    }
    for (int64_t k = n - 1; k >= 0; k--) {
        for (int64_t i = 0; i < n && pivots[k] != k; i++) {
            const long double held = w[i * n + k];
            w[i * n + k] = w[i * n + pivots[k]];
            w[i * n + pivots[k]] = held;
        }
    }
    return det;
}

/* work = a^-1; returns det(a). */
static long double invert_into_work(const struct chain *chain, const double *a)
{
    for (int64_t i = 0; i < chain->n * chain->n; i++)
        chain->work[i] = a[i];
    return invert(chain->n, chain->work);
}

static long double largest_of(int64_t n, const long double *sums)
{
    long double largest = 0;
    for (int64_t j = 0; j < n; j++)
        largest = sums[j] > largest || isnan(sums[j]) ? sums[j] : largest;
    return largest;
}

static long double norm(int64_t n, const long double *w)
{
    long double sums[CHAIN_N_MAX] = {0};
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++)
            sums[j] += fabsl(w[i * n + j]);
    }
    return largest_of(n, sums);
}

/* ---- Life ---- */

struct chain chain_make(enum precision precision, int64_t n, uint64_t seed)
{
    struct chain chain = {.precision = precision, .n = n, .seed = seed};
    chain.a = gputest_numbers(n * n);
    chain.inverse = gputest_numbers(n * n);
    chain.next = gputest_numbers(n * n);
    chain.x = gputest_numbers(n * CHAIN_RANK_MAX);
    chain.y = gputest_numbers(n * CHAIN_RANK_MAX);
    chain.terms = gputest_numbers(CHAIN_TERMS * 2 * n);
    chain.near = gputest_numbers(2 * n);
    chain.work = calloc((size_t)(n * n), sizeof *chain.work);
    assert_non_null(chain.work);
    for (int64_t i = 0; i < n; i++)
        chain.a[i * (n + 1)] = (double)(2 + i % 3);
    invert_into_work(&chain, chain.a);
    for (int64_t i = 0; i < n * n; i++)
        chain.inverse[i] = rounded(&chain, chain.work[i]);
    return chain;
}

void chain_free(struct chain *chain)
{
    free(chain->a);
    free(chain->inverse);
    free(chain->next);
    free(chain->x);
    free(chain->y);
    free(chain->terms);
    free(chain->near);
    free(chain->work);
    *chain = (struct chain){0};
}

/* ---- Changes ---- */

static void form_next(struct chain *chain)
{
    const int64_t n = chain->n, m = chain->m;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            long double sum = chain->a[i * n + j];
            for (int64_t c = 0; c < m; c++)
                sum += (long double)chain->x[i * m + c] * chain->y[j * m + c];
            chain->next[i * n + j] = rounded(chain, sum);
            assert_true((long double)chain->next[i * n + j] == sum);
        }
    }
}

/* x: of any direction, or one of the axes, as where a row is replaced. */
static void make_x(struct chain *chain, double *x, bool axis)
{
    const int64_t n = chain->n, one = pick(chain, n);
    for (int64_t i = 0; i < n; i++)
        x[i] = axis ? i == one : on_grid(gputest_random(&chain->seed), bits[chain->precision].x);
}

static void make_term(struct chain *chain, double *x, double *y)
{
    const double n = (double)chain->n;
    const bool axis = toss(chain);
    const double largest = STRENGTH * (axis ? sqrt(3 / n) : 3 / n);
    make_x(chain, x, axis);
    for (int64_t i = 0; i < chain->n; i++)
        y[i] = on_grid(largest * gputest_random(&chain->seed), bits[chain->precision].y);
}

void chain_change(struct chain *chain, int64_t m)
{
    const int64_t n = chain->n, first = pick(chain, CHAIN_TERMS);
    chain->m = m;
    for (int64_t c = 0; c < m; c++) {
        const int64_t t = (first + c) % CHAIN_TERMS;
        double *x = chain->terms + t * 2 * n, *y = x + n;
        const bool leaves = chain->live >> t & 1;
        if (!leaves)
            make_term(chain, x, y);
        chain->live ^= UINT32_C(1) << t;
        for (int64_t i = 0; i < n; i++) {
            chain->x[i * m + c] = x[i];
            chain->y[i * m + c] = leaves ? -y[i] : y[i];
        }
    }
    form_next(chain);
}

/* X Y^T = x (sign y)^T, in m columns. */
static void spread(struct chain *chain, int64_t m, const double *x, const double *y, double sign)
{
    chain->m = m;
    for (int64_t i = 0; i < chain->n; i++) {
        double rest = sign * y[i];
        for (int64_t c = 0; c < m; c++) {
            double part = rest;
            if (c + 1 < m)
                part = on_grid(STRENGTH * gputest_random(&chain->seed), bits[chain->precision].y);
            chain->x[i * m + c] = x[i];
            chain->y[i * m + c] = part;
            rest -= part;
        }
    }
    form_next(chain);
}

/* Of all multiples of y's last place: y[best], the one that brings 1 + y^T w nearest to share. */
static void adjust(const struct chain *chain, double *y, const long double *w, double share)
{
    int64_t best = 0;
    long double off = 1 - (long double)share;
    for (int64_t i = 0; i < chain->n; i++) {
        off += y[i] * w[i];
        best = fabsl(w[i]) > fabsl(w[best]) ? i : best;
    }
    y[best] -= on_grid((double)(off / w[best]), bits[chain->precision].y);
}

void chain_change_near(struct chain *chain, int64_t m, double share)
{
    const int64_t n = chain->n;
    double *x = chain->near, *y = chain->near + n;
    long double w[CHAIN_N_MAX], square = 0, met = 0;
    assert_true(n <= CHAIN_N_MAX);
    make_x(chain, x, toss(chain));
    invert_into_work(chain, chain->a);
    for (int64_t i = 0; i < n; i++) {
        w[i] = 0;
        for (int64_t j = 0; j < n; j++)
            w[i] += chain->work[i * n + j] * x[j];
        square += w[i] * w[i];
    }
    for (int64_t i = 0; i < n; i++) {
        const double other = STRENGTH * gputest_random(&chain->seed) / sqrt((double)n);
        y[i] = (double)(w[i] / square + other / sqrtl(square));
        met += y[i] * w[i];
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = on_grid((double)((share - 1) * y[i] / met), bits[chain->precision].y);
    adjust(chain, y, w, share);
    spread(chain, m, x, y, 1);
}

void chain_change_back(struct chain *chain, int64_t m)
{
    spread(chain, m, chain->near, chain->near + chain->n, -1);
}

void chain_change_singular(struct chain *chain, int64_t m)
{
    const int64_t n = chain->n, row = pick(chain, n), other = (row + 1 + pick(chain, n - 1)) % n;
    double x[CHAIN_N_MAX], y[CHAIN_N_MAX];
    assert_true(n <= CHAIN_N_MAX);
    for (int64_t i = 0; i < n; i++) {
        x[i] = i == row;
        y[i] = chain->a[other * n + i] - chain->a[row * n + i];
    }
    spread(chain, m, x, y, 1);
}

void chain_accept(struct chain *chain, const double *z)
{
    double *before = chain->a;
    chain->a = chain->next;
    chain->next = before;
    memcpy(chain->inverse, z, (size_t)(chain->n * chain->n) * sizeof *z);
}

void chain_drift(struct chain *chain, double share)
{
    for (int64_t i = 0; i < chain->n * chain->n; i++) {
        const double factor = 1 + share * gputest_random(&chain->seed);
        chain->inverse[i] = rounded(chain, chain->inverse[i] * factor);
    }
}

/* ---- Measures ---- */

double chain_ratio(const struct chain *chain, const double *a, const double *z)
{
    const int64_t n = chain->n;
    for (int64_t i = 0; i < n; i++) {
        long double *row = chain->work + i * n;
        for (int64_t j = 0; j < n; j++)
            row[j] = i == j;
        for (int64_t k = 0; k < n; k++) {
            for (int64_t j = 0; j < n; j++)
                row[j] -= (long double)z[i * n + k] * a[k * n + j];
        }
    }
    return (double)norm(n, chain->work) / residual_norm(n, a) / residual_norm(n, z) /
           ((double)n * gputest_eps(chain->precision));
}

/* Thin products that an update is made of, m lines of n each. */
struct products {
    long double x[CHAIN_RANK_MAX][CHAIN_N_MAX];         /* X^T */
    long double zx[CHAIN_RANK_MAX][CHAIN_N_MAX];        /* (Z X)^T */
    long double yb[CHAIN_RANK_MAX][CHAIN_N_MAX];        /* Y^T B */
    long double inner[CHAIN_RANK_MAX * CHAIN_RANK_MAX]; /* I + Y^T B X, m x m */
    double terms; /* 1 and the largest entry of |Y^T| |B| |X| */
};

/* Column c of X and Y. */
static void multiply_column(const struct chain *chain, const double *z, int64_t c,
                            struct products *products)
{
    const int64_t n = chain->n, m = chain->m;
    double weights[CHAIN_N_MAX] = {0}; /* |Y^T| |B| */
    for (int64_t i = 0; i < n; i++) {
        const double y = fabs(chain->y[i * m + c]);
        products->x[c][i] = chain->x[i * m + c];
        for (int64_t j = 0; j < n; j++)
            weights[j] += y * fabs(chain->inverse[i * n + j]);
    }
    for (int64_t i = 0; i < n; i++) {
        long double zx = 0, yb = 0;
        for (int64_t j = 0; j < n; j++) {
            zx += (long double)z[i * n + j] * chain->x[j * m + c];
            yb += (long double)chain->inverse[j * n + i] * chain->y[j * m + c];
        }
        products->zx[c][i] = zx;
        products->yb[c][i] = yb;
    }
    for (int64_t d = 0; d < m; d++) {
        long double sum = c == d;
        double terms = 1;
        for (int64_t j = 0; j < n; j++) {
            sum += products->yb[c][j] * chain->x[j * m + d];
            terms += weights[j] * fabs(chain->x[j * m + d]);
        }
        products->inner[c * m + d] = sum;
        products->terms = fmax(products->terms, terms);
    }
}

/* |L^T R|, both m x n; with z |Z - B + L^T R|. */
static long double norm_of_thin(const struct chain *chain, long double l[][CHAIN_N_MAX],
                                long double r[][CHAIN_N_MAX], const double *z)
{
    const int64_t n = chain->n;
    long double sums[CHAIN_N_MAX] = {0};
    for (int64_t j = 0; j < n; j++) {
        long double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            long double entry = z ? z[i * n + j] - (long double)chain->inverse[i * n + j] : 0;
            for (int64_t c = 0; c < chain->m; c++)
                entry += l[c][i] * r[c][j];
            sum += fabsl(entry);
        }
        sums[j] = sum;
    }
    return largest_of(n, sums);
}

/* yb = (I + Y^T B X)^-1 Y^T B: X times it is I - M^-1. inner: that inverse. */
static void solve(const struct chain *chain, struct products *products)
{
    const int64_t m = chain->m;
    for (int64_t j = 0; j < chain->n; j++) {
        long double column[CHAIN_RANK_MAX] = {0};
        for (int64_t e = 0; e < m * m; e++)
            column[e / m] += products->inner[e] * products->yb[e % m][j];
        for (int64_t c = 0; c < m; c++)
            products->yb[c][j] = column[c];
    }
}

struct chain_update chain_measure_update(const struct chain *chain, const double *z, bool by_lu)
{
    const int64_t n = chain->n, m = chain->m;
    const double rounding = (double)n * gputest_eps(chain->precision);
    static struct products products; /* too large for a stack */
    struct chain_update update;
    memset(&products, 0, sizeof products);
    for (int64_t c = 0; c < m; c++)
        multiply_column(chain, z, c, &products);
    /* M - I = X (Y^T B); Z M - B = Z - B + (Z X) (Y^T B) */
    const long double size = 1 + norm_of_thin(chain, products.x, products.yb, NULL);
    const long double error = norm_of_thin(chain, products.zx, products.yb, z);
    update.ratio = (double)(error / (residual_norm(n, z) * size * rounding));
    update.det_ratio = (double)invert(m, products.inner);
    long double condition = (double)m * products.terms * norm(m, products.inner);
    if (by_lu) {
        solve(chain, &products);
        condition = size * (1 + norm_of_thin(chain, products.x, products.yb, NULL));
    }
    update.det_slack = (double)condition * rounding * fabs(update.det_ratio);
    return update;
}

/* rcond of a, whose determinant is returned. */
static long double measure(const struct chain *chain, const double *a, double *rcond)
{
    const long double det = invert_into_work(chain, a);
    *rcond = det == 0 ? 0 : 1 / residual_norm(chain->n, a) / (double)norm(chain->n, chain->work);
    return det;
}

struct chain_truth chain_measure_truth(const struct chain *chain)
{
    struct chain_truth truth;
    const long double det_a0 = measure(chain, chain->a, &truth.rcond_a0);
    const long double det = measure(chain, chain->next, &truth.rcond);
    truth.det_ratio = (double)(det / det_a0);
    return truth;
}
