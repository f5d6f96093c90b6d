/* gpu/host/simd/update.c: updates as many known inverses as a vector has lanes, and measures what a
 * check of them wants (ism/check.c); see small.h.
 *
 * With B = A0^-1: K = Y^T B and G = B X in one pass over B; R = (I + K X)^-1 by Gauss's and
 * Jordan's elimination with partial pivoting; Z = B - (G R) K row by row, each of which is measured
 * and goes out at once. Columns are filled up with zeros to `m` of them, so that loops over them
 * are unrolled.
 *
 * Threads: any, each on its own scratch. Cost: see small.h.
 */
#include "gpu/host/simd/small.h"

#include "gpu/host/simd/vector.h"

#define WIDE HOST_SMALL_UPDATE_RANK

struct update {
    int64_t n;
    V *b;          /* n x n */
    V *x, *y;      /* n x m */
    V *k, *g;      /* n x m: K^T; G, then G R */
    V *weights;    /* n: what column i of X Y^T is no longer than */
    V *row, *sums; /* n: of Z; |Z|'s columns */
    V *lines;      /* 2 n: T Z, or columns' sums of the errors and of the change */
    V *rest;       /* n */
    V c[WIDE * WIDE], det;
    V norm_b, terms, norm_x, error, change;
    BITS good;
};

HOST_INLINE struct update carve_update(int64_t n, int64_t m, void *scratch)
{
    V *at = scratch;
    struct update work = {.n = n, .b = at, .good = ~(BITS){0}};
    work.x = (at += n * n);
    work.y = (at += n * m);
    work.k = (at += n * m);
    work.g = (at += n * m);
    work.weights = (at += n * m);
    work.row = (at += n);
    work.sums = (at += n);
    work.lines = (at += n);
    work.rest = at + 2 * n;
    return work;
}

HOST_INLINE void clear(V *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (V){0};
}

/* The largest of n numbers, none below 0. A lane with one that is not finite is good no longer. */
HOST_INLINE V largest_of(struct update *work, const V *numbers)
{
    V largest = {0};
    for (int64_t j = 0; j < work->n; j++) {
        work->good &= numbers[j] <= all(REAL_MAX);
        largest = LARGER(largest, numbers[j]);
    }
    return largest;
}

/* ---- What is given ---- */

/* A lane whose columns of X and Y are apart (ism/column_scaling.c) is good no longer. */
HOST_INLINE void load_thin(struct update *work, const REAL *const *x, const REAL *const *y,
                           int64_t m)
{
    const int64_t n = work->n;
    const V far = all(REAL_LDEXP(1, HOST_SMALL_APART(REAL_MAX_EXP)));
    V norms[WIDE], largest_x[WIDE], largest_y[WIDE];
    for (int64_t c = 0; c < m; c++)
        norms[c] = largest_x[c] = largest_y[c] = (V){0};
    for (int64_t i = 0; i < n; i++) {
        V *restrict of_x = work->x + i * m, *restrict of_y = work->y + i * m;
        gather(x, i * m, m, of_x);
        gather(y, i * m, m, of_y);
        for (int64_t c = 0; c < m; c++) {
            norms[c] += magnitude(of_x[c]);
            largest_x[c] = LARGER(largest_x[c], magnitude(of_x[c]));
            largest_y[c] = LARGER(largest_y[c], magnitude(of_y[c]));
        }
    }
    for (int64_t c = 0; c < m; c++)
        work->good &= (largest_x[c] <= largest_y[c] * far) & (largest_y[c] <= largest_x[c] * far);
    for (int64_t i = 0; i < n; i++) {
        V weight = {0};
        for (int64_t c = 0; c < m; c++)
            weight += norms[c] * magnitude(work->y[i * m + c]);
        work->weights[i] = weight;
    }
}

/* K and G, and how large B is, and what may cancel: the largest sum of weights times |B|. */
HOST_INLINE void meet(struct update *work, int64_t m)
{
    const int64_t n = work->n;
    V *restrict norms = work->sums, *restrict terms = work->row;
    clear(norms, n);
    clear(terms, n);
    clear(work->k, n * m);
    for (int64_t i = 0; i < n; i++) {
        const V *restrict row = work->b + i * n, weight = work->weights[i];
        V y[WIDE], g[WIDE];
        for (int64_t c = 0; c < m; c++) {
            y[c] = work->y[i * m + c];
            g[c] = (V){0};
        }
        for (int64_t j = 0; j < n; j++) {
            const V b = row[j], size = magnitude(b);
            V *restrict k = work->k + j * m;
            const V *restrict x = work->x + j * m;
            norms[j] += size;
            terms[j] += weight * size;
            for (int64_t c = 0; c < m; c++) {
                k[c] += y[c] * b;
                g[c] += b * x[c];
            }
        }
        for (int64_t c = 0; c < m; c++)
            work->g[i * m + c] = g[c];
    }
    work->norm_b = largest_of(work, norms);
    work->terms = largest_of(work, terms);
}

/* ---- The block ---- */

HOST_INLINE void exchange(V *a, V *b, BITS mask)
{
    const V old = *a;
    *a = choose(mask, *b, old);
    *b = choose(mask, old, *b);
}

/* c = (I + K X)^-1, and its determinant. The row with the largest entry comes to the top by
 * exchanges with it, of one row after the other. */
HOST_INLINE void invert_block(struct update *work, int64_t m)
{
    V *restrict c = work->c;
    BITS moved[WIDE][WIDE];
    work->det = all(1);
    for (int64_t s = 0; s < m; s++) {
        for (int64_t i = s + 1; i < m; i++) {
            const BITS mask = magnitude(c[i * m + s]) > magnitude(c[s * m + s]);
            moved[s][i] = mask;
            work->det = choose(mask, -work->det, work->det);
            for (int64_t j = 0; j < m; j++)
                exchange(&c[s * m + j], &c[i * m + j], mask);
        }
        const V pivot = c[s * m + s], by = 1 / pivot;
        work->det *= pivot;
        work->good &= (magnitude(work->det) >= all(REAL_MIN)) &
                      (magnitude(work->det) <= all(REAL_MAX)) & (magnitude(by) <= all(REAL_MAX));
        c[s * m + s] = all(1);
        for (int64_t j = 0; j < m; j++)
            c[s * m + j] *= by;
        for (int64_t i = 0; i < m; i++) {
            const V factor = c[i * m + s];
            if (i == s)
                continue;
            c[i * m + s] = (V){0};
            for (int64_t j = 0; j < m; j++)
                c[i * m + j] -= factor * c[s * m + j];
        }
    }
    for (int64_t s = m - 1; s >= 0; s--) {
        for (int64_t i = m - 1; i > s; i--) {
            for (int64_t j = 0; j < m; j++)
                exchange(&c[j * m + s], &c[j * m + i], moved[s][i]);
        }
    }
}

/* R, and G R in the place of G. */
HOST_INLINE void form_capacitance(struct update *work, int64_t m)
{
    const int64_t n = work->n;
    for (int64_t c = 0; c < m * m; c++)
        work->c[c] = all(c % (m + 1) == 0);
    for (int64_t j = 0; j < n; j++) {
        for (int64_t c = 0; c < m; c++) {
            const V k = work->k[j * m + c];
            for (int64_t d = 0; d < m; d++)
                work->c[c * m + d] += k * work->x[j * m + d];
        }
    }
    invert_block(work, m);
    for (int64_t i = 0; i < n; i++) {
        V *restrict g = work->g + i * m, sums[WIDE];
        for (int64_t c = 0; c < m; c++)
            sums[c] = (V){0};
        for (int64_t l = 0; l < m; l++) {
            for (int64_t c = 0; c < m; c++)
                sums[c] += g[l] * work->c[l * m + c];
        }
        for (int64_t c = 0; c < m; c++)
            g[c] = sums[c];
    }
}

/* ---- The inverse ---- */

HOST_INLINE void store_row(const V *restrict row, int64_t i, int64_t n, REAL *const *z)
{
    for (int lane = 0; lane < LANES; lane++) {
        REAL *restrict to = z[lane] ? z[lane] + i * n : NULL;
        for (int64_t j = 0; to && j < n; j++)
            to[j] = ((const REAL *)row)[j * LANES + lane];
    }
}

/* Row i of Z. */
HOST_INLINE void make_row(struct update *work, int64_t i, int64_t m)
{
    const int64_t n = work->n;
    const V *restrict b = work->b + i * n;
    V *restrict row = work->row, g[WIDE];
    for (int64_t c = 0; c < m; c++)
        g[c] = work->g[i * m + c];
    for (int64_t j = 0; j < n; j++) {
        const V *restrict k = work->k + j * m;
        V z = b[j];
        for (int64_t c = 0; c < m; c++)
            z -= g[c] * k[c];
        row[j] = z;
        work->sums[j] += magnitude(z);
    }
}

/* to -= thin Y^T */
HOST_INLINE void take_thin(const struct update *work, const V *thin, int64_t m, V *to)
{
    for (int64_t j = 0; j < work->n; j++) {
        V sum = to[j];
        for (int64_t c = 0; c < m; c++)
            sum -= thin[c] * work->y[j * m + c];
        to[j] = sum;
    }
}

/* thin = line X */
HOST_INLINE void times_x(const struct update *work, const V *line, int64_t m, V *thin)
{
    for (int64_t c = 0; c < m; c++)
        thin[c] = (V){0};
    for (int64_t j = 0; j < work->n; j++) {
        for (int64_t c = 0; c < m; c++)
            thin[c] += line[j] * work->x[j * m + c];
    }
}

/* to = line B - what is there */
HOST_INLINE void times_b(const struct update *work, const V *restrict line, V *restrict to)
{
    const int64_t n = work->n;
    for (int64_t j = 0; j < n; j++)
        to[j] = -to[j];
    for (int64_t i = 0; i < n; i++) {
        const V *restrict b = work->b + i * n, factor = line[i];
        for (int64_t j = 0; j < n; j++)
            to[j] += factor * b[j];
    }
}

/* ---- A check of all rows ---- */

/* Row i of B - Z M, and of M - I, added to columns' sums; Z's is used up. */
HOST_INLINE void check_row(struct update *work, int64_t i, int64_t m)
{
    const int64_t n = work->n;
    V *restrict errors = work->lines, *restrict changes = work->lines + n;
    V *restrict rest = work->rest, thin[WIDE];
    times_x(work, work->row, m, thin);
    for (int64_t j = 0; j < n; j++)
        rest[j] = all(i == j);
    take_thin(work, thin, m, rest);
    times_b(work, rest, work->row);
    for (int64_t j = 0; j < n; j++) {
        errors[j] += magnitude(work->row[j]);
        rest[j] = work->row[j] = (V){0};
    }
    for (int64_t c = 0; c < m; c++)
        thin[c] = -work->x[i * m + c];
    take_thin(work, thin, m, rest);
    times_b(work, rest, work->row);
    for (int64_t j = 0; j < n; j++)
        changes[j] += magnitude(work->row[j]);
}

/* ---- A check of two lines ---- */

HOST_INLINE void add_lines(struct update *work, const REAL weights[2])
{
    const int64_t n = work->n;
    for (int64_t j = 0; j < n; j++) {
        work->lines[j] += work->row[j] * weights[0];
        work->lines[n + j] += work->row[j] * weights[1];
    }
}

/* The norm of the column of M - I at which the first line times it is the largest. */
HOST_INLINE void find_change(struct update *work, int64_t m)
{
    const int64_t n = work->n;
    V *restrict line = work->row, *restrict column = work->rest, best = {0}, thin[WIDE], sum = {0};
    clear(column, n);
    for (int64_t j = 0; j < n; j++) {
        const V size = magnitude(line[j]);
        const BITS mask = size > best;
        best = choose(mask, size, best);
        for (int64_t i = 0; i < n; i++)
            column[i] = choose(mask, work->b[i * n + j], column[i]);
    }
    for (int64_t c = 0; c < m; c++)
        thin[c] = (V){0};
    for (int64_t i = 0; i < n; i++) {
        for (int64_t c = 0; c < m; c++)
            thin[c] += work->y[i * m + c] * column[i];
    }
    for (int64_t i = 0; i < n; i++) {
        V entry = {0};
        for (int64_t c = 0; c < m; c++)
            entry += work->x[i * m + c] * thin[c];
        sum += magnitude(entry);
    }
    work->good &= sum <= all(REAL_MAX);
    work->change = sum;
}

HOST_INLINE void check_probes(struct update *work, REAL (*weights)[2], int64_t m)
{
    const int64_t n = work->n;
    V *rest = work->rest, thin[WIDE]; /* find_change uses it too */
    work->error = (V){0};
    for (int l = 0; l < 2; l++) {
        V *line = work->lines + l * n;
        times_x(work, line, m, thin);
        for (int64_t j = 0; j < n; j++)
            rest[j] = all(weights[j][l]);
        take_thin(work, thin, m, rest);
        times_b(work, rest, line);
        for (int64_t j = 0; j < n; j++)
            line[j] = magnitude(line[j]);
        work->error = LARGER(work->error, largest_of(work, line));
    }
    for (int64_t j = 0; j < n; j++)
        work->row[j] = all(-weights[j][0]);
    times_x(work, work->row, m, thin);
    clear(rest, n);
    clear(work->row, n);
    take_thin(work, thin, m, rest);
    times_b(work, rest, work->row);
    find_change(work, m);
}

/* ---- A group ---- */

HOST_INLINE void update_rank(struct R(host_small_update) * group, int64_t n, int64_t m,
                             void *scratch)
{
    struct update work = carve_update(n, m, scratch);
    const bool whole = n <= ISM_PROBES;
    gather(group->b, 0, n * n, work.b);
    load_thin(&work, group->x, group->y, m);
    meet(&work, m);
    form_capacitance(&work, m);
    clear(work.sums, n);
    clear(work.lines, 2 * n);
    for (int64_t i = 0; i < n; i++) {
        make_row(&work, i, m);
        store_row(work.row, i, n, group->z);
        if (whole)
            check_row(&work, i, m);
        else
            add_lines(&work, group->weights[i]);
    }
    work.norm_x = largest_of(&work, work.sums);
    if (whole) {
        work.error = largest_of(&work, work.lines);
        work.change = largest_of(&work, work.lines + n);
    } else {
        check_probes(&work, group->weights, m);
    }
    for (int lane = 0; lane < LANES; lane++) {
        group->good[lane] = work.good[lane] != 0;
        group->measured[lane] = (struct host_small_measured){.norm_b = (double)work.norm_b[lane],
                                                             .terms = (double)work.terms[lane],
                                                             .norm_x = (double)work.norm_x[lane],
                                                             .error = (double)work.error[lane],
                                                             .change = (double)work.change[lane]};
        group->det_ratio[lane] = work.det[lane];
    }
}

/* Loops over columns are unrolled, and the smallest shapes have code of their own. */
void AT_WIDTH(host__small_update)(struct R(host_small_update) * group, int64_t n, int64_t m,
                                  void *scratch)
{
    if (n == 8 && m == 1) {
        update_rank(group, 8, 1, scratch);
        return;
    }
    if (n == 8 && m == 2) {
        update_rank(group, 8, 2, scratch);
        return;
    }
    switch (m) {
    case 1:
        update_rank(group, n, 1, scratch);
        break;
    case 2:
        update_rank(group, n, 2, scratch);
        break;
    case 3:
        update_rank(group, n, 3, scratch);
        break;
    case 4:
        update_rank(group, n, 4, scratch);
        break;
    case 5:
        update_rank(group, n, 5, scratch);
        break;
    case 6:
        update_rank(group, n, 6, scratch);
        break;
    case 7:
        update_rank(group, n, 7, scratch);
        break;
    default:
        update_rank(group, n, WIDE, scratch);
    }
}
