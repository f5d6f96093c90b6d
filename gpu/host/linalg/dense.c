/* gpu/host/linalg/dense.c: see dense.h.
 *
 * Threads: any; all state is the caller's matrix and scratch. Cost: passes over n^2 numbers.
 */
#include "gpu/host/base/speed.h"

#include "gpu/host/linalg/dense.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "gpu/host/linalg/blocked.h"
#include "gpu/host/linalg/qr.h"
#include "gpu/host/linalg/refine.h"
#include "gpu/host/linalg/symmetry.h"
#include "gpu/host/base/stop.h"
#include "gpu/host/linalg/transpose.h"

#include "gpu/host/base/by_precision.h"

/* Layout: a, lines, pivots, exponents. */
int64_t R(host__dense_scratch_bytes)(int64_t n, int64_t m)
{
    (void)m;
    int64_t bytes, lines, pivots_bytes;
    if (!checked_add(n, host__lines(n), &lines) ||
        !checked_mul(lines, host__ld(REAL_PRECISION, n), &bytes))
        return -1;
    if (!checked_mul(bytes, (int64_t)sizeof(REAL), &bytes) ||
        !checked_mul(n, 4 * sizeof(int32_t), &pivots_bytes) ||
        !checked_add(bytes, pivots_bytes, &bytes) ||
        !checked_round_up(bytes, HOST_ALIGN_BYTES, &bytes))
        return -1;
    return bytes;
}

#define ROWS 4  /* rows added up together */
#define LANES 4 /* accumulators of a reduction */
/* Rows of a piece of a copy or of a transposition in place, and its columns moved together: both
 * ends of it stay in the first cache. Columns of a piece of a sum, or rows where one thread adds up
 * all. */
#define TILE 64
#define SUM_COLUMNS 256
#define SUM_ROWS 256
/* A transpose of more bytes is larger than a core's own caches. From HOST_PAST_CACHES_BYTES on it
 * goes past them, but where its rows begin with a line, later: up to there fetched lines are
 * faster. */
#define NEAR_BYTES (INT64_C(1) << 20)
#define PAST_LINES_BYTES (INT64_C(24) << 20)
#define PAST_COLUMNS 512 /* of a transpose past the caches, moved together: as many pages */

struct R(host_work) R(host__work)(const struct host_matrix *matrix)
{
    struct R(host_work) work = {.ld = host__ld(REAL_PRECISION, matrix->n), .a = matrix->scratch};
    work.lines = work.a + matrix->n * work.ld;
    work.pivots = (int32_t *)(work.lines + host__lines(matrix->n) * work.ld);
    work.exponents = work.pivots + 2 * matrix->n;
    work.team = matrix->n >= HOST_TEAM_ORDER_MIN ? matrix->team : NULL;
    return work;
}

int64_t R(host__bytes_with_inverse)(int64_t bytes, int64_t n, bool wanted)
{
    int64_t inverse;
    if (wanted || bytes < 0)
        return bytes;
    if (!checked_mul(n, n, &inverse) || !checked_mul(inverse, (int64_t)sizeof(REAL), &inverse) ||
        !checked_add(bytes, inverse, &bytes) || !checked_round_up(bytes, HOST_ALIGN_BYTES, &bytes))
        return -1;
    return bytes;
}

struct host_matrix R(host__with_inverse)(const struct host_matrix *matrix, int64_t bytes)
{
    struct host_matrix with = *matrix;
    if (!with.outputs[HOST_INVERSE])
        with.outputs[HOST_INVERSE] = (char *)with.scratch + bytes;
    return with;
}

/* Entry i of a fixed vector of signs without a pattern. */
HOST_INLINE REAL sign(int64_t i)
{
    uint32_t mixed = (uint32_t)i * UINT32_C(0x9e3779b1);
    mixed = (mixed ^ mixed >> 15) * UINT32_C(0x85ebca6b);
    return mixed >> 31 ? -1 : 1;
}

/* What a pass over the rows of a matrix adds up, down its columns and row by row. */
struct pass {
    const REAL *a;
    int64_t first, n, columns, ld; /* rows first to n - 1 */
    REAL factor;
    REAL *sums;          /* + |factor a_ij| */
    REAL *signed_sums;   /* + s_i a_ij, s being the vector of signs; NULL: nothing */
    const REAL *weights; /* not NULL: sums take weights_i a_ij and nothing else */
};

/* Rows i to i + count - 1; count is known to the compiler. */
HOST_INLINE void add_rows(const struct pass *pass, int64_t i, int64_t count, bool weighted,
                          bool with_signs)
{
    const REAL *restrict a = pass->a + i * pass->ld;
    REAL *restrict sums = pass->sums, *restrict signed_sums = pass->signed_sums;
    REAL weights[ROWS], factor = pass->factor;
    int64_t columns = pass->columns, ld = pass->ld;
    for (int64_t r = 0; r < count; r++)
        weights[r] = weighted ? pass->weights[i + r] : sign(i + r);
    for (int64_t j = 0; j < columns; j++) {
        REAL sum = sums[j];
        for (int64_t r = 0; r < count; r++)
            sum += weighted ? weights[r] * a[r * ld + j] : REAL_FABS(a[r * ld + j] * factor);
        sums[j] = sum;
        if (!with_signs)
            continue;
        sum = signed_sums[j];
        for (int64_t r = 0; r < count; r++)
            sum += weights[r] * a[r * ld + j];
        signed_sums[j] = sum;
    }
}

HOST_INLINE void add_all(const struct pass *pass, bool weighted, bool with_signs)
{
    int64_t i = pass->first;
    for (; i + ROWS <= pass->n; i += ROWS)
        add_rows(pass, i, ROWS, weighted, with_signs);
    for (; i < pass->n; i++)
        add_rows(pass, i, 1, weighted, with_signs);
}

HOST_INLINE void add_any(const struct pass *pass)
{
    if (pass->weights)
        add_all(pass, true, false);
    else if (pass->signed_sums)
        add_all(pass, false, true);
    else
        add_all(pass, false, false);
}

HOST_AVX512 static void add_avx512(const struct pass *pass)
{
    add_any(pass);
}

HOST_AVX2 static void add_avx2(const struct pass *pass)
{
    add_any(pass);
}

/* The same operations in the same order, whatever the width of the vectors. */
static void add_columns(const struct pass *pass)
{
    if (__builtin_cpu_supports("avx512f"))
        add_avx512(pass);
    else if (__builtin_cpu_supports("avx2"))
        add_avx2(pass);
    else
        add_any(pass);
}

static void add_piece(void *context, int64_t index)
{
    struct pass pass = *(const struct pass *)context;
    int64_t first = index * SUM_COLUMNS, left = pass.columns - first;
    pass.a += first;
    pass.columns = left < SUM_COLUMNS ? left : SUM_COLUMNS;
    pass.sums += first;
    pass.signed_sums = pass.signed_sums ? pass.signed_sums + first : NULL;
    add_columns(&pass);
}

/* On one thread, for which whole rows are faster. */
static void add_alone(const struct pass *pass)
{
    struct pass part = *pass;
    for (part.n = 0; part.n < pass->n;) {
        part.first = part.n;
        part.n = part.first + SUM_ROWS < pass->n ? part.first + SUM_ROWS : pass->n;
        add_columns(&part);
        host_stop_check();
    }
}

/* A column's sum is the same, whatever its company, and however many rows are added up at once. */
static void add(struct host_team *team, struct pass *pass)
{
    pass->columns = pass->n;
    if (team)
        host_team_run(team, (pass->n + SUM_COLUMNS - 1) / SUM_COLUMNS, add_piece, pass);
    else
        add_alone(pass);
}

/* The largest of the magnitudes; not finite when one of them is not. LANES at a time, for the
 * vector unit. */
static REAL largest_of(const REAL *numbers, int64_t n)
{
    /* A finite largest number keeps the excess at zero; a NaN anywhere makes it a NaN. */
    REAL largest[LANES] = {0}, excess[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        for (int64_t k = 0; k < LANES; k++) {
            REAL magnitude = REAL_FABS(numbers[j + k]);
            largest[k] = magnitude > largest[k] ? magnitude : largest[k];
            excess[k] += magnitude * 0;
        }
    }
    for (; j < n; j++) {
        REAL magnitude = REAL_FABS(numbers[j]);
        largest[0] = magnitude > largest[0] ? magnitude : largest[0];
        excess[0] += magnitude * 0;
    }
    for (int64_t k = 1; k < LANES; k++) {
        largest[0] = largest[k] > largest[0] ? largest[k] : largest[0];
        excess[0] += excess[k];
    }
    return largest[0] + excess[0];
}

/* The largest sum of magnitudes of a column of factor * a; not finite when anything in it is not,
 * or when a sum overflows. signed_sums, if any: becomes s^T a, s being the vector of signs. */
static REAL largest_sum(struct host_team *team, const REAL *a, int64_t n, int64_t ld, REAL factor,
                        REAL *sums, REAL *signed_sums)
{
    memset(sums, 0, (size_t)n * sizeof *sums);
    if (signed_sums)
        memset(signed_sums, 0, (size_t)n * sizeof *signed_sums);
    add(team,
        &(struct pass){
            .a = a, .n = n, .ld = ld, .factor = factor, .sums = sums, .signed_sums = signed_sums});
    return largest_of(sums, n);
}

/* sum: of a column of a with the factor 1. */
static struct host_norm norm_of_sum(struct host_team *team, REAL sum, const REAL *a, int64_t n,
                                    int64_t ld, REAL *sums)
{
    struct host_norm norm = {.finite = true};
    int shift = 0;
    if (!isfinite(sum)) {
        /* Either an entry is not finite, or only the sum is too large: n <= 2^REAL_DIG. */
        shift = REAL_DIG;
        sum = largest_sum(team, a, n, ld, REAL_LDEXP(1, -shift), sums, NULL);
    }
    norm.finite = isfinite(sum);
    norm.fraction = REAL_FREXP(sum, &norm.exponent);
    norm.exponent += shift;
    return norm;
}

struct host_norm R(host__norm)(struct host_team *team, const REAL *a, int64_t n, int64_t ld,
                               REAL *sums)
{
    REAL sum = largest_sum(team, a, n, ld, 1, sums, NULL);
    return norm_of_sum(team, sum, a, n, ld, sums);
}

int R(host__scaling)(struct host_norm norm)
{
    if (norm.fraction == 0)
        return 0;
    if (norm.exponent > REAL_MAX_EXP - REAL_DIG)
        return -REAL_DIG;
    return norm.exponent < REAL_MIN_EXP + REAL_DIG ? 2 * REAL_DIG : 0;
}

struct transposition {
    const REAL *from;
    int64_t from_ld;
    REAL *to;
    int64_t to_ld, n;
    REAL factor;
    enum host_writes writes;
};

static void transpose_rows(void *context, int64_t index)
{
    const struct transposition *all = context;
    int64_t n = all->n, columns_max = all->writes == HOST_WRITES_PAST ? PAST_COLUMNS : n;
    for (int64_t j = 0; j < n; j += columns_max) {
        int64_t columns = n - j < columns_max ? n - j : columns_max;
        R(host__transpose_rows)
        (all->from + j, all->from_ld, n, columns, all->to + j * all->to_ld, all->to_ld, all->factor,
         all->writes, index * HOST_TRANSPOSE_ROWS);
    }
}

static enum host_writes writes_of(const REAL *to, int64_t to_ld, int64_t n)
{
    int64_t bytes = n * n * (int64_t)sizeof *to;
    bool lines = ((uintptr_t)to | (uintptr_t)to_ld * sizeof *to) % HOST_ALIGN_BYTES == 0;
    if (bytes <= NEAR_BYTES)
        return HOST_WRITES_NEAR;
    return bytes < (lines ? PAST_LINES_BYTES : HOST_PAST_CACHES_BYTES) ? HOST_WRITES_FETCHED
                                                                       : HOST_WRITES_PAST;
}

void R(host__transpose)(struct host_team *team, const REAL *from, int64_t from_ld, REAL *to,
                        int64_t to_ld, int64_t n, REAL factor)
{
    int64_t pieces = (n + HOST_TRANSPOSE_ROWS - 1) / HOST_TRANSPOSE_ROWS;
    struct transposition all = {.from = from,
                                .from_ld = from_ld,
                                .to = to,
                                .to_ld = to_ld,
                                .n = n,
                                .factor = factor,
                                .writes = writes_of(to, to_ld, n)};
    host_team_run(team, pieces, transpose_rows, &all);
}

struct in_place {
    REAL *a;
    int64_t n, ld;
};

/* TILE rows, left of the diagonal, change places with as many columns. */
static void transpose_pair(void *context, int64_t index)
{
    const struct in_place *all = context;
    int64_t ld = all->ld, first = index * TILE;
    int64_t end = first + TILE < all->n ? first + TILE : all->n;
    for (int64_t column = 0; column < end; column += TILE) {
        for (int64_t i = first; i < end; i++) {
            for (int64_t j = column; j < column + TILE && j < i; j++) {
                REAL upper = all->a[j * ld + i];
                all->a[j * ld + i] = all->a[i * ld + j];
                all->a[i * ld + j] = upper;
            }
        }
    }
}

void R(host__transpose_in_place)(struct host_team *team, REAL *a, int64_t n, int64_t ld)
{
    struct in_place all = {.a = a, .n = n, .ld = ld};
    host_team_run(team, (n + TILE - 1) / TILE, transpose_pair, &all);
}

struct copy {
    const REAL *from;
    int64_t from_ld;
    REAL *to;
    int64_t to_ld, n;
    REAL factor;
};

static void copy_rows(void *context, int64_t index)
{
    const struct copy *all = context;
    int64_t first = index * TILE, end = first + TILE < all->n ? first + TILE : all->n;
    for (int64_t i = first; i < end; i++) {
        const REAL *from = all->from + i * all->from_ld;
        REAL *to = all->to + i * all->to_ld;
        for (int64_t j = 0; j < all->n; j++)
            to[j] = from[j] * all->factor;
    }
}

void R(host__copy)(struct host_team *team, const REAL *from, int64_t from_ld, REAL *to,
                   int64_t to_ld, int64_t n, REAL factor)
{
    struct copy all = {
        .from = from, .from_ld = from_ld, .to = to, .to_ld = to_ld, .n = n, .factor = factor};
    host_team_run(team, (n + TILE - 1) / TILE, copy_rows, &all);
}

void R(host__fill_nan)(REAL *a, int64_t count)
{
    for (int64_t first = 0, end; first < count; first = end) {
        end = host_stop_part(first, count);
        for (int64_t i = first; i < end; i++)
            a[i] = (REAL)NAN;
    }
}

/* Its exponent alone can leave the range. A norm of 0 is X underflowed. */
REAL R(host__rcond)(struct host_norm a, struct host_norm x)
{
    if (!x.finite || x.fraction == 0)
        return 0;
    REAL rcond = 1 / (REAL)a.fraction / (REAL)x.fraction;
    return REAL_LDEXP(rcond, -a.exponent - x.exponent);
}

void R(host__report_info)(const struct host_matrix *matrix, int64_t info, REAL rcond,
                          enum method_algorithm algorithm)
{
    if (matrix->outputs[HOST_INFO])
        *(int32_t *)matrix->outputs[HOST_INFO] = (int32_t)info;
    if (matrix->outputs[HOST_RCOND])
        *(REAL *)matrix->outputs[HOST_RCOND] = rcond;
    if (matrix->outputs[HOST_ALGORITHM])
        *(int32_t *)matrix->outputs[HOST_ALGORITHM] = (int32_t)algorithm;
}

void R(host__report)(const struct host_matrix *matrix, REAL rcond, enum method_algorithm algorithm)
{
    R(host__report_info)(matrix, rcond < REAL_EPS ? matrix->n + 1 : 0, rcond, algorithm);
}

/* An inverse where it was put: in the output, or in scratch where it is not wanted. */
struct stored {
    REAL *x;
    int64_t ld;
    struct host_norm norm;
};

/* Stores 2^scaling times work->a. Lines: see plausible, where it is to be `checked`. */
static struct stored store_inverse(const struct host_matrix *matrix,
                                   const struct R(host_work) * work, enum host_order order,
                                   int scaling, bool checked)
{
    int64_t n = matrix->n;
    REAL factor = REAL_LDEXP(1, scaling);
    struct stored stored = {.x = matrix->outputs[HOST_INVERSE], .ld = n};
    if (!stored.x) {
        stored = (struct stored){.x = work->a, .ld = work->ld};
        if (order == HOST_COLUMN_MAJOR)
            R(host__transpose_in_place)(work->team, stored.x, n, stored.ld);
        R(host__copy)(work->team, stored.x, stored.ld, stored.x, stored.ld, n, factor);
    } else if (order == HOST_COLUMN_MAJOR) {
        R(host__transpose)(work->team, work->a, work->ld, stored.x, n, n, factor);
    } else {
        R(host__copy)(work->team, work->a, work->ld, stored.x, n, n, factor);
    }
    REAL *signed_sums = checked ? work->lines + work->ld : NULL;
    REAL sum = largest_sum(work->team, stored.x, n, stored.ld, 1, work->lines, signed_sums);
    stored.norm = norm_of_sum(work->team, sum, stored.x, n, stored.ld, work->lines);
    return stored;
}

/* The largest entry of factor s^T - weights^T a. line: n numbers of scratch. */
static double largest_off(struct host_team *team, int64_t n, REAL factor, const REAL *weights,
                          const REAL *a, int64_t ld, REAL *line)
{
    for (int64_t j = 0; j < n; j++)
        line[j] = -factor * sign(j);
    add(team, &(struct pass){.a = a, .n = n, .ld = ld, .sums = line, .weights = weights});
    return (double)largest_of(line, n);
}

/* That of s^T (I - X A). The second line holds s^T X. */
static double off_left(const struct host_matrix *matrix, const struct R(host_work) * work)
{
    const int64_t n = matrix->n;
    return largest_off(work->team, n, 1, work->lines + work->ld, matrix->inputs[0], n, work->lines);
}

/* That of s^T (I - A X). s^T A might overflow near the end of the range. */
static double off_right(const struct host_matrix *matrix, const struct R(host_work) * work,
                        struct stored stored, int scaling)
{
    const int64_t n = matrix->n;
    const REAL factor = scaling < 0 ? REAL_LDEXP(1, scaling) : 1;
    REAL *line = work->lines, *signs = line + work->ld, *weights = signs + work->ld;
    for (int64_t i = 0; i < n; i++) {
        signs[i] = factor * sign(i);
        weights[i] = 0;
    }
    add(work->team,
        &(struct pass){.a = matrix->inputs[0], .n = n, .ld = n, .sums = weights, .weights = signs});
    return largest_off(work->team, n, factor, weights, stored.x, stored.ld, line) / (double)factor;
}

/* The sides of an inverse that pass their check. */
struct sides {
    bool left, right;
};

/* Which are small, as far as probe vectors tell? With errors of the size e in a column of I - X A,
 * an entry of s^T (I - X A) is near sqrt(n) e, and their sum is n e. is_mean: of both sides of an
 * inverse, which are as bad then, so less is allowed; next to a condition near 1 it is rounding
 * that shows. The right side is no concern of one that is refused. */
static struct sides check(const struct host_matrix *matrix, const struct R(host_work) * work,
                          struct host_norm norm, struct stored stored, int scaling, bool is_mean)
{
    const int64_t n = matrix->n;
    const bool left = is_mean || n >= HOST_CHECKED_ORDER_MIN;
    const bool right = n >= HOST_CHECKED_RIGHT_MIN && n < HOST_QR_ORDER_MIN &&
                       R(host__rcond)(norm, stored.norm) >= REAL_EPS;
    const double unit = sqrt((double)n) * (double)REAL_EPS;
    double size = ldexp(norm.fraction * stored.norm.fraction, norm.exponent + stored.norm.exponent);
    if (is_mean)
        size = (n < HOST_CHECKED_ORDER_MIN ? 1 : 0.25) * size + 4;
    return (struct sides){.left = !left || off_left(matrix, work) <= unit * size,
                          .right =
                              !right || off_right(matrix, work, stored, scaling) <= unit * size};
}

struct host_answered R(host__answer)(const struct host_matrix *matrix,
                                     const struct R(host_work) * work, enum host_order order,
                                     int scaling, struct host_norm norm,
                                     enum method_algorithm algorithm, enum host_trust trust)
{
    int64_t n = matrix->n;
    const bool is_mean = trust == HOST_CHECK_MEAN, tried = trust == HOST_CHECK || is_mean;
    struct stored stored = store_inverse(matrix, work, order, scaling, tried);
    struct sides good = {.left = trust != HOST_UNVERIFIED, .right = trust != HOST_UNVERIFIED};
    REAL rcond = R(host__rcond)(norm, stored.norm);
    bool lost = false;
    if (tried)
        good = check(matrix, work, norm, stored, scaling, is_mean);
    if (!good.left || !good.right) {
        R(host__copy)
        (work->team, stored.x, stored.ld, work->a, work->ld, n, REAL_LDEXP(1, -scaling));
        bool anew = is_mean && !good.left && n < HOST_QR_ORDER_MIN;
        if (anew ? R(host__invert_anew)(matrix, work, scaling, norm)
                 : R(host__refine)(matrix, work, scaling, norm)) {
            stored = store_inverse(matrix, work, HOST_ROW_MAJOR, scaling, false);
            rcond = R(host__rcond)(norm, stored.norm);
        } else if (rcond >= REAL_EPS) {
            R(host__fill_nan)(stored.x, n * stored.ld);
            rcond = 0;
        } else {
            lost = stored.x == work->a;
        }
    }
    R(host__report)(matrix, rcond, algorithm);
    return (struct host_answered){.rcond = (double)rcond, .lost = lost};
}

/* INVERSE becomes symmetric. Returns RCOND; good: is it an inverse then? */
static REAL take_mean(const struct host_matrix *matrix, const struct R(host_work) * work,
                      struct host_norm norm, int scaling, bool *good)
{
    const int64_t n = matrix->n;
    struct stored stored = {.x = matrix->outputs[HOST_INVERSE], .ld = n};
    R(host__make_symmetric)(work->team, stored.x, n);
    REAL sum = largest_sum(work->team, stored.x, n, n, 1, work->lines, work->lines + work->ld);
    stored.norm = norm_of_sum(work->team, sum, stored.x, n, n, work->lines);
    *good = check(matrix, work, norm, stored, scaling, true).left;
    return R(host__rcond)(norm, stored.norm);
}

/* What was made anew, and lies in work->a too, becomes symmetric. QR's right side may be bad (see
 * refine.c), and the mean then is: up to a size complete pivoting follows, beyond it QR's inverse
 * goes out as it is. */
static void keep_anew(const struct host_matrix *matrix, const struct R(host_work) * work,
                      struct host_norm norm, int scaling)
{
    const int64_t n = matrix->n;
    REAL *x = matrix->outputs[HOST_INVERSE];
    bool good;
    REAL rcond = take_mean(matrix, work, norm, scaling, &good);
    if (good || rcond < REAL_EPS || n < HOST_QR_ORDER_MIN) {
        R(host__report)(matrix, rcond, METHOD_ALGORITHM_LU);
        return;
    }
    if (n > HOST_SYMMETRIC_COMPLETE_MAX) {
        struct stored stored = store_inverse(matrix, work, HOST_ROW_MAJOR, scaling, false);
        rcond = R(host__rcond)(norm, stored.norm);
    } else if (R(host__invert_complete)(matrix, work, scaling, norm)) {
        (void)store_inverse(matrix, work, HOST_ROW_MAJOR, scaling, false);
        rcond = take_mean(matrix, work, norm, scaling, &good);
    } else {
        R(host__fill_nan)(x, n * n);
        rcond = 0;
    }
    R(host__report)(matrix, rcond, METHOD_ALGORITHM_LU);
}

void R(host__keep_symmetry)(const struct host_matrix *matrix)
{
    const int64_t n = matrix->n;
    const struct R(host_work) work = R(host__work)(matrix);
    REAL *x = matrix->outputs[HOST_INVERSE];
    if (!x || !R(host__is_symmetric)(work.team, matrix->inputs[0], n) ||
        !R(host__make_symmetric)(work.team, x, n))
        return;
    const struct host_norm norm = R(host__norm)(work.team, matrix->inputs[0], n, n, work.lines);
    const int scaling = R(host__scaling)(norm);
    if (!norm.finite || !R(host__norm)(work.team, x, n, n, work.lines).finite)
        return;
    R(host__copy)(work.team, x, n, work.a, work.ld, n, REAL_LDEXP(1, -scaling));
    (void)R(host__answer)(matrix, &work, HOST_ROW_MAJOR, scaling, norm, METHOD_ALGORITHM_LU,
                          HOST_CHECK_MEAN);
    if (R(host__is_symmetric)(work.team, x, n))
        (void)R(host__make_symmetric)(work.team, x, n); /* signs of zeros */
    else
        keep_anew(matrix, &work, norm, scaling);
}

void R(host__refuse)(const struct host_matrix *matrix, int64_t info,
                     enum method_algorithm algorithm)
{
    if (matrix->outputs[HOST_INVERSE])
        R(host__fill_nan)(matrix->outputs[HOST_INVERSE], matrix->n * matrix->n);
    R(host__report_info)
    (matrix, info, info < 0 ? (REAL)NAN : 0, info < 0 ? METHOD_ALGORITHM_NONE : algorithm);
}
