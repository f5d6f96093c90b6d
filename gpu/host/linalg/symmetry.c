/* gpu/host/linalg/symmetry.c: see symmetry.h. A piece of a team's work is a row of tiles up to the
 * diagonal: the tiles on either side of it stay in the cache. */
#include "gpu/host/linalg/symmetry.h"

#include <math.h>
#include <stdatomic.h>

#include "base/minmax.h"

#include "gpu/host/base/by_precision.h"

#define TILE 32 /* rows and columns */

struct symmetry {
    const REAL *a;
    REAL *x;
    int64_t n;
    _Atomic bool differs;
};

/* Of a tile of rows [top, top + TILE) and columns [left, left + TILE), and of its mirror image. */
static bool tile_agrees(const REAL *a, int64_t n, int64_t top, int64_t left)
{
    for (int64_t i = top; i < min_i64(top + TILE, n); i++) {
        for (int64_t j = left; j < min_i64(left + TILE, i); j++) {
            if (!(a[i * n + j] == a[j * n + i]))
                return false;
        }
    }
    return true;
}

static void look_at_row(void *context, int64_t index)
{
    struct symmetry *of = context;
    for (int64_t left = 0; left <= index * TILE; left += TILE) {
        if (atomic_load_explicit(&of->differs, memory_order_relaxed))
            return;
        if (!tile_agrees(of->a, of->n, index * TILE, left))
            atomic_store_explicit(&of->differs, true, memory_order_relaxed);
    }
}

bool R(host__is_symmetric)(struct host_team *team, const REAL *a, int64_t n)
{
    struct symmetry of = {.a = a, .n = n};
    look_at_row(&of, 0);
    if (n > TILE && !atomic_load_explicit(&of.differs, memory_order_relaxed))
        host_team_run(team, pieces(n, TILE), look_at_row, &of);
    return !atomic_load_explicit(&of.differs, memory_order_relaxed);
}

/* Halves are added: the sum of two numbers might overflow. Returns whether a number differed. */
static bool average_tile(REAL *x, int64_t n, int64_t top, int64_t left)
{
    bool differs = false;
    for (int64_t i = top; i < min_i64(top + TILE, n); i++) {
        for (int64_t j = left; j < min_i64(left + TILE, i); j++) {
            REAL lower = x[i * n + j], upper = x[j * n + i];
            differs = differs || !(lower == upper);
            x[i * n + j] = x[j * n + i] = lower == upper ? lower : lower / 2 + upper / 2;
        }
    }
    return differs;
}

static void average_row(void *context, int64_t index)
{
    struct symmetry *of = context;
    bool differs = false;
    for (int64_t left = 0; left <= index * TILE; left += TILE)
        differs = average_tile(of->x, of->n, index * TILE, left) || differs;
    if (differs)
        atomic_store_explicit(&of->differs, true, memory_order_relaxed);
}

bool R(host__make_symmetric)(struct host_team *team, REAL *x, int64_t n)
{
    struct symmetry of = {.x = x, .n = n};
    host_team_run(team, pieces(n, TILE), average_row, &of);
    return atomic_load_explicit(&of.differs, memory_order_relaxed);
}
