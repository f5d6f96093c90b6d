/* gpu/host/auto/auto.c: `auto`, which looks at each matrix and takes the cheapest algorithm that is
 * as accurate as lu. The inverse of a matrix that is symmetric to the bit is so too, whichever it
 * takes (symmetry.h).
 *
 * Algorithms, in the order they are tried: diagonal (reciprocals), triangular (trtri), tridiagonal
 * (of order 3 or more), symmetric with a positive diagonal (Cholesky, cholesky.h), lu. A dense
 * matrix differs from the special ones in its first few rows; what may be zero to its end is looked
 * through by a team.
 *
 * Up to HOST_SMALL_ORDER_MAX a dense matrix joins one of lu's groups (small.h), a symmetric one
 * too: a lane of a group is several times faster than LAPACK's Cholesky. Cholesky is left with
 * those whose halves differ by rounding and are to be averaged, which only the option asks for.
 *
 * Threads: any. Cost: lu's 2 n^3 at most, and what cholesky.h says for a factor that was of no use;
 * a small matrix that joins a group costs a look at three entries more, with the option at half.
 */
#include "gpu/host/base/speed.h"

#include "gpu/methods/auto.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/linalg/cholesky.h"
#include "gpu/host/linalg/dense.h"
#include "gpu/host/linalg/blocked.h"
#include "gpu/host/linalg/symmetry.h"
#include "gpu/host/simd/small.h"
#include "gpu/host/tridiagonal/tridiagonal.h"
#include "gpu/methods/tridiagonal.h"

#include "gpu/host/base/by_precision.h"

#define PIECE_ROWS 64 /* of a matrix, for one thread */

/* What of a matrix is looked at. */
enum part {
    BELOW, /* the diagonal */
    ABOVE,
    OFF_BANDS /* the three diagonals of a tridiagonal matrix */
};

static const char *kernel(int64_t n)
{
    (void)n;
    return "host auto";
}

static int group(int64_t n, int64_t m)
{
    (void)m;
    return R(host__small_group)(n);
}

static bool any_nonzero(const REAL *a, int64_t count)
{
    for (int64_t j = 0; j < count; j++) {
        if (a[j] != 0)
            return true;
    }
    return false;
}

/* Is anything but zero in that part of row i? */
static bool row_used(const REAL *row, int64_t n, int64_t i, enum part part)
{
    int64_t gap = part == OFF_BANDS ? 1 : 0;
    return (part != BELOW && any_nonzero(row + i + 1 + gap, n - i - 1 - gap)) ||
           (part != ABOVE && any_nonzero(row, i - gap));
}

/* A look at a part, PIECE_ROWS rows a piece; a piece that finds something spares the others the
 * rest. */
struct look {
    const REAL *a;
    int64_t n, first; /* piece */
    enum part part;
    _Atomic bool used;
};

static void look_at_rows(void *context, int64_t index)
{
    struct look *look = context;
    int64_t n = look->n, i = (look->first + index) * PIECE_ROWS;
    int64_t end = min_i64(i + PIECE_ROWS, n);
    for (; i < end && !atomic_load_explicit(&look->used, memory_order_relaxed); i++) {
        if (row_used(look->a + i * n, n, i, look->part))
            atomic_store_explicit(&look->used, true, memory_order_relaxed);
    }
}

/* Is anything but zero in that part? A dense matrix is known by its first rows, without a step. */
static bool part_used(struct host_team *team, const REAL *a, int64_t n, enum part part)
{
    struct look look = {.a = a, .n = n, .part = part};
    look_at_rows(&look, 0);
    look.first = 1;
    if (!atomic_load_explicit(&look.used, memory_order_relaxed) && n > PIECE_ROWS)
        host_team_run(team, pieces(n, PIECE_ROWS) - 1, look_at_rows, &look);
    return atomic_load_explicit(&look.used, memory_order_relaxed);
}

struct reciprocals {
    const REAL *a;
    REAL *x;
    int64_t n, ld;
};

static void invert_rows(void *context, int64_t index)
{
    const struct reciprocals *all = context;
    int64_t n = all->n, ld = all->ld, first = index * PIECE_ROWS;
    int64_t end = min_i64(first + PIECE_ROWS, n);
    memset(all->x + first * ld, 0, (size_t)((end - first) * ld) * sizeof(REAL));
    for (int64_t i = first; i < end; i++)
        all->x[i * ld + i] = 1 / all->a[i * n + i];
}

/* A diagonal matrix is well conditioned once equilibrated: INFO n+1 is that of an overflow. */
static void diagonal(const struct host_matrix *matrix, struct host_norm norm)
{
    int64_t n = matrix->n, zero = 0;
    const REAL *a = matrix->inputs[0];
    bool overflows = false;
    for (int64_t i = n - 1; i >= 0; i--) {
        zero = a[i * n + i] == 0 ? i + 1 : zero;
        overflows = overflows || REAL_FABS(1 / a[i * n + i]) > REAL_MAX;
    }
    if (zero) {
        R(host__refuse)(matrix, zero, METHOD_ALGORITHM_DIAGONAL);
        return;
    }
    struct R(host_work) work = R(host__work)(matrix);
    struct reciprocals all = {.a = a, .x = work.a, .n = n, .ld = work.ld};
    host_team_run(work.team, pieces(n, PIECE_ROWS), invert_rows, &all);
    /* A reciprocal cannot be wrong. */
    struct host_answered answered = R(host__answer)(matrix, &work, HOST_ROW_MAJOR, 0, norm,
                                                    METHOD_ALGORITHM_DIAGONAL, HOST_TRUST);
    R(host__report_info)
    (matrix, overflows ? n + 1 : 0, (REAL)answered.rcond, METHOD_ALGORITHM_DIAGONAL);
}

/* Transposed on the way in and out, as in lu.c, and for the same reason. Returns whether that is
 * the last word, as that of a zero on the diagonal is. */
static bool by_trtri(const struct host_matrix *matrix, struct host_norm norm, bool upper)
{
    int64_t n = matrix->n;
    int scaling = R(host__scaling)(norm);
    struct R(host_work) work = R(host__work)(matrix);
    R(host__transpose)(work.team, matrix->inputs[0], n, work.a, work.ld, n, REAL_LDEXP(1, scaling));
    int64_t info =
        R(host__large_trtri)(work.team, upper ? 'U' : 'L', n, work.a, work.ld, work.lines);
    if (scaling < 0 && (info || !R(host__norm)(work.team, work.a, n, work.ld, work.lines).finite)) {
        /* Scaled down, a small diagonal entry may have vanished, or have no reciprocal any more. */
        scaling = 0;
        R(host__transpose)(work.team, matrix->inputs[0], n, work.a, work.ld, n, 1);
        info = R(host__large_trtri)(work.team, upper ? 'U' : 'L', n, work.a, work.ld, work.lines);
    }
    if (info) {
        R(host__refuse)(matrix, info, METHOD_ALGORITHM_TRIANGULAR);
        return true;
    }
    struct host_answered answered = R(host__answer)(matrix, &work, HOST_COLUMN_MAJOR, scaling, norm,
                                                    METHOD_ALGORITHM_TRIANGULAR, HOST_CHECK);
    return answered.rcond >= (double)REAL_EPS;
}

static void triangular(const struct host_matrix *matrix, struct host_norm norm, bool upper)
{
    bool spoilt;
    if (!by_trtri(matrix, norm, upper) && !R(host__lu_equilibrated)(matrix, norm, &spoilt) &&
        spoilt)
        (void)by_trtri(matrix, norm, upper);
}

/* Of less than three rows a matrix would always be so. */
static bool is_tridiagonal(struct host_team *team, const REAL *a, int64_t n)
{
    return n > 2 && !part_used(team, a, n, OFF_BANDS);
}

/* False when lu has to do it, as of a matrix that is singular, or all but singular: what INFO says
 * then is lu's. Scratch: the three diagonals, then what `tridiagonal` needs. */
static bool tridiagonal(const struct host_matrix *matrix)
{
    int64_t n = matrix->n, unit = HOST_ALIGN_BYTES / (int64_t)sizeof(REAL);
    int64_t options[METHOD_OPTIONS_MAX], step = (n + unit - 1) / unit * unit;
    const REAL *a = matrix->inputs[0];
    REAL *dl = matrix->scratch, *d = dl + step, *du = d + step, rcond = 0;
    int32_t info = 0;
    int64_t bytes = R(host__tridiagonal_scratch_bytes)(n, 0);
    assert(bytes + 3 * step * (int64_t)sizeof(REAL) <= R(host__lu_scratch_bytes)(n, 0));
    for (int64_t i = 0; i < n; i++) {
        d[i] = a[i * n + i];
        dl[i] = i + 1 < n ? a[(i + 1) * n + i] : 0;
        du[i] = i + 1 < n ? a[i * n + i + 1] : 0;
    }
    method_default_options(&method_tridiagonal, options);
    struct host_matrix bands = {.inputs = {dl, d, du},
                                .n = n,
                                .options = options,
                                .team = matrix->team,
                                .scratch = du + step};
    bands.outputs[HOST_TRI_INVERSE] = matrix->outputs[HOST_INVERSE];
    bands.outputs[HOST_TRI_INFO] = &info;
    bands.outputs[HOST_TRI_RCOND] = &rcond;
    R(host__tridiagonal)(&bands);
    if (info != 0)
        return false;
    R(host__report)(matrix, rcond, METHOD_ALGORITHM_TRIDIAGONAL);
    /* The recurrences of the two triangles agree but for rounding, entry by entry. */
    struct host_team *team = R(host__work)(matrix).team;
    if (matrix->outputs[HOST_INVERSE] && R(host__is_symmetric)(team, a, n))
        (void)R(host__make_symmetric)(team, matrix->outputs[HOST_INVERSE], n);
    return true;
}

/* Is this matrix one for a group of lu's? Of a small order, without zeros that make it cheaper, and
 * not to be averaged. Three entries exclude most dense ones. A NaN is dense too: lu's to refuse. */
static bool joins_group(const struct host_matrix *matrix)
{
    int64_t n = matrix->n;
    const REAL *a = matrix->inputs[0];
    if (n < 2 || n > HOST_SMALL_ORDER_MAX)
        return false;
    if ((a[1] == 0 || a[2] == 0 || a[n] == 0) &&
        (!part_used(NULL, a, n, BELOW) || !part_used(NULL, a, n, ABOVE) ||
         is_tridiagonal(NULL, a, n)))
        return false;
    return matrix->options[METHOD_AUTO_SPD] == 0 || R(host__is_symmetric)(NULL, a, n);
}

/* A finite matrix that joins no group. */
static void by_kind(const struct host_matrix *matrix, struct host_norm norm)
{
    int64_t n = matrix->n;
    const REAL *a = matrix->inputs[0];
    struct host_team *team = R(host__work)(matrix).team;
    bool below = part_used(team, a, n, BELOW), above = part_used(team, a, n, ABOVE);
    if (!below && !above)
        diagonal(matrix, norm);
    else if (!below || !above)
        triangular(matrix, norm, above);
    else if (is_tridiagonal(team, a, n) && tridiagonal(matrix))
        return;
    else if (!R(host__cholesky)(matrix, norm, matrix->options[METHOD_AUTO_SPD] != 0)) {
        R(host__lu)(matrix, norm);
        R(host__keep_symmetry)(matrix);
    }
}

static void run(const struct host_matrix *matrix)
{
    int64_t n = matrix->n;
    const REAL *a = matrix->inputs[0];
    const struct host_matrix whole = R(host__lu_whole)(matrix);
    if (joins_group(matrix)) {
        R(host__small_lu)(matrix, 1, NULL, 0);
        R(host__keep_symmetry)(matrix);
        return;
    }
    struct R(host_work) work = R(host__work)(matrix);
    struct host_norm norm = R(host__norm)(work.team, a, n, n, work.lines);
    if (norm.finite)
        by_kind(&whole, norm);
    else
        R(host__refuse)(&whole, -1, METHOD_ALGORITHM_NONE);
}

/* Only now, for it uses the scratch of the group up. */
static void keep_symmetries(const struct host_matrix *matrices, int count)
{
    for (int i = 0; i < count; i++) {
        struct host_matrix matrix = matrices[i];
        matrix.scratch = matrices[0].scratch;
        R(host__keep_symmetry)(&matrix);
    }
}

/* Those that join go together, the others one by one: which code a matrix takes depends on it
 * alone. */
static void run_group(const struct host_matrix *matrices, int count, const struct host_matrix *next,
                      int next_count)
{
    struct host_matrix joined[HOST_GROUP_MAX];
    bool joins[HOST_GROUP_MAX];
    int found = 0;
    for (int i = 0; i < count; i++) {
        joins[i] = joins_group(&matrices[i]);
        found += joins[i];
    }
    if (found == count) {
        R(host__small_lu)(matrices, count, next, next_count);
        keep_symmetries(matrices, count);
        return;
    }
    int filled = 0;
    for (int i = 0; i < count; i++) {
        struct host_matrix matrix = matrices[i];
        matrix.scratch = matrices[0].scratch;
        if (joins[i])
            joined[filled++] = matrix;
        else
            run(&matrix);
    }
    if (filled == 0)
        return;
    R(host__small_lu)(joined, filled, next, next_count);
    keep_symmetries(joined, filled);
}

const struct host_method R(host_method_auto) = {
    .name = "auto",
    .run = run,
    .run_group = run_group,
    .group = group,
    .group_matrix_ns = R(host__small_matrix_ns),
    .scratch_bytes = R(host__lu_whole_bytes),
    .task_scratch_bytes = R(host__lu_task_bytes),
    .kernel = kernel,
};
