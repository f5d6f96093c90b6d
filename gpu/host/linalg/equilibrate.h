/* gpu/host/linalg/equilibrate.h: a matrix scaled by powers of two, so that its rows and columns
 * have largest entries of one size (gpu/common/equilibrate.h).
 *
 * Threads: any, each on its own matrix; team may be NULL, and the result is independent of it.
 * Cost: a pass over n^2 numbers; as many more, up to EQUILIBRATE_PASSES_..., as both rows and
 * columns are uneven.
 */
#ifndef GPU_HOST_LINALG_EQUILIBRATE_H
#define GPU_HOST_LINALG_EQUILIBRATE_H

#include <stdint.h>

#include "gpu/host/base/team.h"
#include "gpu/host/linalg/identify.h"

/* 2^(rows[i] + columns[j]) a_ij is equilibrated, and its inverse is 2^-(columns[i] + rows[j]) x_ij;
 * n of each. */
struct host_equilibrium {
    int32_t *rows, *columns;
};

/* Entry (i, j) is multiplied by 2^(row_sign rows[i] + column_sign columns[j]); a sign is 1 or -1.
 */
struct host_scaling {
    const int32_t *rows, *columns;
    int row_sign, column_sign;
};

/* Numbers of scratch for host__equilibrate. */
static inline int64_t host__equilibrate_numbers(int64_t n)
{
    return host__identify_lines(n) * n;
}

#define REAL_HEADER "gpu/host/linalg/equilibrate.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* Finds the exponents of a (n x n), all of it finite. A line of zeros keeps its 0. */
void R(host__equilibrate)(struct host_team *team, const REAL *a, int64_t n, int64_t ld,
                          const struct host_equilibrium *to, int32_t *scratch);

/* to = from (n x n), scaled; each number is rounded once where it is subnormal. to == from is
 * allowed. */
void R(host__scale)(struct host_team *team, const REAL *from, int64_t from_ld, REAL *to,
                    int64_t to_ld, int64_t n, const struct host_scaling *scaling);
/* The 1-norm of what host__scale would make of a; infinite or NaN where that holds such a number.
 * sums: n numbers of scratch. */
double R(host__scaled_norm)(struct host_team *team, const REAL *a, int64_t n, int64_t ld,
                            const struct host_scaling *scaling, double *sums);

#endif
