/* gpu/host/linalg/qr.c: see qr.h.
 *
 * Flow. A = Q R from left to right by panels, as blocked.c does LU: a step applies panel k to all
 * columns right of it, in pieces, and the piece with the next panel factors it too. Then R^-1 by
 * blocked.h, in place above the vectors V that hold Q. Then X = R^-1 Q^T, from the last panel to
 * the first: its V moves to `lines`, zeros take its place, and every strip of rows of X is a piece.
 * R^-1 as blocked.h has it keeps |R^-1 R - I| small, and orthogonal factors add errors of rounding
 * alone: |I - X A| is n eps |A| |X| or so for any matrix.
 *
 * Two designs were thought of. Complete pivoting, which small orders get (refine.c), keeps elements
 * from growing, but looks through what is left of the matrix at every step, and each step is bound
 * by memory: with n = 2048, FP64 and one thread an inverse that was recovered took 17 s in all,
 * where lu takes 0.55 s (AMD EPYC, 2 cores, 2026-11-21); with QR it takes 2.8 s. QR works in
 * blocks, and cannot meet growth at all. This is the second.
 *
 * Threads: any; the pieces run on a team. Cost: see qr.h; a panel, and the triangle that belongs to
 * it, run on one thread each.
 */
#include "gpu/host/linalg/qr.h"

#include <assert.h>
#include <string.h>

#include "base/minmax.h"
#include "gpu/host/linalg/dense.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/linalg/blocked.h"

#include "gpu/host/base/by_precision.h"

#define PIECE 128 /* columns, or rows, of a piece */

/* Columns of a panel: V, and the products with it, take so many lines each. */
static int64_t block_of(int64_t n)
{
    return n < 1024 ? 24 : 56;
}

struct qr {
    int64_t n, ld;
    REAL *a, *taus;
    int64_t block;    /* columns of a panel */
    int64_t at;       /* first column of the panel under way */
    REAL *v;          /* block lines */
    REAL *work;       /* block numbers for each row or column */
    REAL *squares[2]; /* S (block x block) of even and of odd panels */
};

static REAL *square_of(const struct qr *qr, int64_t at)
{
    return qr->squares[at / qr->block % 2];
}

/* Factors the columns from `at` on, which have met all panels left of them. */
static void factor_panel(const struct qr *qr, int64_t at)
{
    int64_t columns = min_i64(qr->block, qr->n - at);
    REAL *square = square_of(qr, at);
    R(host__qr_panel)(qr->n - at, columns, qr->a + at * (qr->ld + 1), qr->ld, square, qr->block);
    for (int64_t i = 0; i < columns; i++)
        qr->taus[at + i] = square[i * (qr->block + 1)];
}

/* Columns right of the panel at qr->at meet it: piece 0 the next panel's, others PIECE of them. */
static void update_columns(void *context, int64_t index)
{
    const struct qr *qr = context;
    int64_t at = qr->at, next = at + qr->block, block = qr->block, ld = qr->ld;
    int64_t first = index == 0 ? next : next + block + (index - 1) * PIECE;
    int64_t columns = min_i64(index == 0 ? block : PIECE, qr->n - first);
    R(host__qr_apply)
    ('L', qr->n - at, columns, block, qr->a + at * (ld + 1), ld, square_of(qr, at), block,
     qr->a + first * ld + at, ld, qr->work + (first - next) * block);
    if (index == 0)
        factor_panel(qr, next);
}

static void factor(struct host_team *team, struct qr *qr)
{
    int64_t n = qr->n, block = qr->block;
    factor_panel(qr, 0);
    for (qr->at = 0; qr->at + block < n; qr->at += block) {
        int64_t right = n - min_i64(qr->at + 2 * block, n);
        host_team_run(team, 1 + pieces(right, PIECE), update_columns, qr);
    }
}

/* V of the panel at qr->at goes to its lines; zeros take its place. */
static void move_panel(const struct qr *qr)
{
    int64_t at = qr->at, ld = qr->ld, columns = min_i64(qr->block, qr->n - at);
    for (int64_t j = at; j < at + columns; j++) {
        size_t bytes = (size_t)(qr->n - j - 1) * sizeof(REAL);
        memcpy(qr->v + (j - at) * ld + j + 1, qr->a + j * ld + j + 1, bytes);
        memset(qr->a + j * ld + j + 1, 0, bytes);
    }
}

/* Rows of X meet the panel at qr->at. */
static void update_rows(void *context, int64_t index)
{
    const struct qr *qr = context;
    int64_t n = qr->n, at = qr->at, ld = qr->ld, columns = min_i64(qr->block, n - at);
    int64_t first = index * PIECE, rows = min_i64(PIECE, n - first);
    R(host__qr_apply)
    ('R', rows, n - at, columns, qr->v + at, ld, square_of(qr, at), qr->block,
     qr->a + at * ld + first, ld, qr->work + first * qr->block);
}

bool R(host__qr_invert)(struct host_team *team, int64_t n, REAL *a, int64_t ld, REAL *taus,
                        REAL *lines)
{
    assert(n >= HOST_QR_ORDER_MIN);
    int64_t block = block_of(n);
    struct qr qr = {.n = n, .ld = ld, .a = a, .taus = taus, .block = block, .v = lines};
    qr.work = lines + block * ld;
    qr.squares[0] = qr.work + block * ld;
    qr.squares[1] = qr.squares[0] + block * block;
    assert(qr.squares[1] + block * block <= lines + host__lines(n) * ld);
    factor(team, &qr);
    if (R(host__large_trtri)(team, 'U', n, a, ld, lines))
        return false;
    for (qr.at = (n - 1) / block * block; qr.at >= 0; qr.at -= block) {
        int64_t columns = min_i64(block, n - qr.at);
        move_panel(&qr);
        R(host__qr_square)
        (n - qr.at, columns, qr.v + qr.at, ld, taus + qr.at, square_of(&qr, qr.at), block);
        host_team_run(team, pieces(n, PIECE), update_rows, &qr);
    }
    return true;
}
