/* gpu/host/ism/newton.c: Newton's step, which repairs an inverse that is nearly good; see ism.h.
 *
 * Threads: any; a team helps. Cost: 2 n^3 + 4 n^2 m operations.
 */
#include "gpu/host/base/speed.h"

#include "base/minmax.h"
#include "gpu/host/ism/ism.h"
#include "gpu/host/linalg/lapack.h"

#include "gpu/host/base/by_precision.h"

#define REPAIR_ROWS HOST_ISM_REPAIR_ROWS
#define REPAIR_PIECE 256

/* REPAIR_ROWS rows of Z from `row` on. */
struct repair {
    const struct R(host_ism) * ism;
    int64_t row, rows, thin_ld;
    REAL *residual, *thin, *change;
};

/* Columns of the rows times X. */
static void repair_thin(void *context, int64_t index)
{
    const struct repair *repair = context;
    const struct R(host_ism) *ism = repair->ism;
    int64_t first = index * REPAIR_PIECE;
    R(host__product)
    (false, false, repair->rows, min_i64(REPAIR_PIECE, ism->m - first), ism->n, 1,
     ism->z + repair->row * ism->n, ism->n, ism->x + first, ism->m, 0, repair->thin + first,
     repair->thin_ld);
}

/* Columns of the rows of I - Z A. */
static void repair_residual(void *context, int64_t index)
{
    const struct repair *repair = context;
    const struct R(host_ism) *ism = repair->ism;
    int64_t n = ism->n, first = index * REPAIR_PIECE, columns = min_i64(REPAIR_PIECE, n - first);
    const REAL *z = ism->z + repair->row * n;
    for (int64_t i = 0; i < repair->rows; i++) {
        REAL *to = repair->residual + i * ism->ld;
        for (int64_t j = first; j < first + columns; j++)
            to[j] = (j == repair->row + i) - z[i * n + j] * ism->d[j];
    }
    R(host__product)
    (false, true, repair->rows, columns, ism->m, -1, repair->thin, repair->thin_ld,
     ism->y + first * ism->m, ism->m, 1, repair->residual + first, ism->ld);
}

static void repair_change(void *context, int64_t index)
{
    const struct repair *repair = context;
    const struct R(host_ism) *ism = repair->ism;
    int64_t first = index * REPAIR_PIECE;
    R(host__product)
    (false, false, repair->rows, min_i64(REPAIR_PIECE, ism->n - first), ism->n, 1, repair->residual,
     ism->ld, ism->z + first, ism->n, 0, repair->change + first, ism->ld);
}

void R(host__ism_repair)(struct R(host_ism) * ism)
{
    int64_t n = ism->n;
    struct repair repair = {.ism = ism,
                            .thin_ld = host__ld(REAL_PRECISION, ism->m),
                            .residual = ism->work,
                            .change = ism->work + REPAIR_ROWS * ism->ld,
                            .thin = ism->work + 2 * REPAIR_ROWS * ism->ld};
    for (; repair.row < n; repair.row += REPAIR_ROWS) {
        repair.rows = min_i64(REPAIR_ROWS, n - repair.row);
        host_team_run(ism->team, pieces(ism->m, REPAIR_PIECE), repair_thin, &repair);
        host_team_run(ism->team, pieces(n, REPAIR_PIECE), repair_residual, &repair);
        host_team_run(ism->team, pieces(n, REPAIR_PIECE), repair_change, &repair);
        for (int64_t i = 0; i < repair.rows; i++) {
            for (int64_t j = 0; j < n; j++)
                ism->z[(repair.row + i) * n + j] += repair.change[i * ism->ld + j];
        }
    }
}
