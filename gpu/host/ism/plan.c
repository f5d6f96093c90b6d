/* gpu/host/ism/plan.c: which variant `ism` takes and what memory that needs; see ism.h.
 *
 * Threads: pure functions. Cost: a few comparisons.
 */
#include "gpu/host/ism/ism.h"

#include <math.h>

#include "base/checked.h"
#include "base/minmax.h"
#include "gpu/host/ism/parts.h"
#include "gpu/host/ism/tuning.h"
#include "gpu/host/linalg/panels.h"

#define TILE_ROWS 128
#define BLOCK_ALWAYS 32      /* columns that a block may have for any n */
#define PACKED_ORDER_MIN 256 /* of an inverse made by panels: it has a part in the bits */

/* Columns of a block: it takes the inverse of a matrix of as many, which a small A must not pay. */
static int64_t block_max(int64_t n, int64_t m)
{
    return min_i64(max_i64(n, BLOCK_ALWAYS), m);
}

/* ---- Memory ---- */

/* Takes rows x columns numbers behind what was taken before. */
static int64_t take(int64_t *total, int64_t rows, int64_t columns)
{
    int64_t at = *total, numbers;
    if (at < 0 || !checked_mul(rows, columns, &numbers) ||
        !checked_round_up(numbers, HOST_ALIGN_BYTES, &numbers) || !checked_add(at, numbers, total))
        *total = -1;
    return at;
}

/* A block, and what its inversion takes: lines and pivots. */
static void take_inverse(struct host_ism_layout *layout, int64_t block)
{
    layout->inverse = take(&layout->total, block, layout->ld_block);
    layout->inverting = take(&layout->total, host__lines(block), layout->ld_block);
    take(&layout->total, 2, block);
}

/* Columns of n in whole panels. */
static int64_t packed_columns(int64_t n)
{
    return pieces(n, HOST_PANEL_COLUMNS_MAX) * HOST_PANEL_COLUMNS_MAX;
}

/* earlier: columns before the last block; kept: of them, those whose R is wanted later. */
static struct host_ism_layout layout_block(enum precision precision, int64_t n, int64_t m,
                                           int64_t block, int64_t earlier, int64_t kept)
{
    int64_t ld = host__ld(precision, n);
    struct host_ism_layout layout = {.ld_block = host__ld(precision, block)};
    layout.packs = block >= m && m > 0 && n >= PACKED_ORDER_MIN;
    layout.gr = take(&layout.total, m, layout.packs ? max_i64(ld, packed_columns(n)) : ld);
    layout.k = take(&layout.total, m, ld);
    layout.w = take(&layout.total, block, ld);
    layout.p = take(&layout.total, earlier, layout.ld_block);
    layout.q = take(&layout.total, earlier, layout.ld_block);
    layout.s = take(&layout.total, kept, layout.ld_block);
    layout.t = take(&layout.total, kept, layout.ld_block);
    take_inverse(&layout, block);
    return layout;
}

struct host_ism_layout host__ism_layout_block(enum precision precision, int64_t n, int64_t m,
                                              int64_t block, bool factors)
{
    int64_t earlier = m > 0 ? (m - 1) / block * block : 0;
    return layout_block(precision, n, m, block, earlier, factors ? earlier : 0);
}

struct host_ism_layout host__ism_layout_reduced(enum precision precision, int64_t n, int64_t block)
{
    struct host_ism_layout layout = {.ld_block = host__ld(precision, block)};
    layout.gr = take(&layout.total, n, layout.ld_block);
    layout.w = take(&layout.total, n, layout.ld_block);
    layout.k = take(&layout.total, block, host__ld(precision, n));
    take_inverse(&layout, block);
    return layout;
}

struct host_ism_dd_layout host__ism_layout_dd(enum precision precision, int64_t n, int64_t m)
{
    const int64_t ld = host__ld(precision, n), ldm = host__ld(precision, m);
    struct host_ism_dd_layout layout = {.total = 0};
    layout.g = take(&layout.total, 2 * m, ld);
    layout.k = take(&layout.total, 2 * m, ld);
    layout.p = take(&layout.total, 2 * m, ld);
    layout.c = take(&layout.total, 2 * m, ldm);
    layout.r = take(&layout.total, 2 * m, ldm);
    layout.by = take(&layout.total, 2, ldm);
    layout.pivots = take(&layout.total, 1, m);
    layout.weights = take(&layout.total, 1, m);
    layout.rows = take(&layout.total, 1, ld);
    layout.left = take(&layout.total, 1, m);
    layout.all = take(&layout.total, 1, m);
    return layout;
}

int64_t host__ism_plan_numbers(enum precision precision, int64_t n, int64_t m,
                               struct host_ism_plan plan, bool factors)
{
    int64_t total = 0;
    if (plan.fused)
        take(&total, HOST_ISM_FUSED_LINES, host__ld(precision, n));
    if (plan.fused && !factors)
        return total;
    if (plan.fused) {
        int64_t whole = host__ism_layout_block(precision, n, m, plan.block, true).total;
        return total < whole ? whole : total;
    }
    if (plan.algorithm == METHOD_ALGORITHM_REDUCED_MEMORY)
        return host__ism_layout_reduced(precision, n, plan.block).total;
    return host__ism_layout_block(precision, n, m, plan.block, factors).total;
}

/* Every array is the longest that a block of any size makes it. */
int64_t host__ism_max_numbers(enum precision precision, int64_t n, int64_t m)
{
    const int64_t block = block_max(n, m);
    struct host_ism_plan reduced = {.algorithm = METHOD_ALGORITHM_REDUCED_MEMORY, .block = block};
    struct host_ism_plan fused = {.fused = true};
    const int64_t by_blocks = layout_block(precision, n, m, block, m, m).total;
    const int64_t others = max_i64(host__ism_plan_numbers(precision, n, m, reduced, false),
                                   host__ism_plan_numbers(precision, n, m, fused, false));
    return by_blocks < 0 || others < 0 ? -1 : max_i64(by_blocks, others);
}

int64_t host__ism_own_numbers(enum precision precision, int64_t n, int64_t m)
{
    int64_t total = 0;
    take(&total, 2, host__ld(precision, n));
    take(&total, HOST_ISM_LINES * HOST_ISM_PROBES, host__ld(precision, n > m ? n : m));
    take(&total, m <= HOST_ISM_THIN ? 2 * m : 0, host__ld(precision, n));
    return total;
}

int64_t host__ism_scaling_numbers(int64_t n, int64_t m)
{
    int64_t numbers;
    if (!checked_mul(n, m, &numbers) || !checked_mul(numbers, 2, &numbers) ||
        !checked_add(numbers, m, &numbers) ||
        !checked_round_up(numbers, HOST_ALIGN_BYTES, &numbers))
        return -1;
    return numbers;
}

/* ---- Tiles ---- */

/* Enough of them for many threads, and of whole panels. */
struct host_ism_tiles host__ism_tiles(int64_t n)
{
    struct host_ism_tiles tiles = {.rows = TILE_ROWS, .columns = n <= 2048 ? 192 : 384};
    while (tiles.rows * HOST_ISM_STRIPS < n)
        tiles.rows += TILE_ROWS;
    tiles.down = pieces(n, tiles.rows);
    tiles.across = pieces(n, tiles.columns);
    return tiles;
}

/* ---- The choice ---- */

static int64_t within(int64_t value, int64_t max)
{
    value = value < max ? value : max;
    return value > 1 ? value : 1;
}

/* The first row whose bounds hold n and m. */
static const struct ism_tuning *tuned(int64_t n, int64_t m, bool inverse)
{
    const struct ism_tuning *row = inverse ? tuning_inverse : tuning_diagonal;
    while (n > row->n_max || m > row->m_max || (double)m > row->share_max * (double)n)
        row++;
    return row;
}

struct host_ism_plan host__ism_plan(int64_t n, int64_t m, uint32_t inputs, const int64_t *options)
{
    bool inverse = (inputs & METHOD_INPUT(METHOD_ISM_A0_INVERSE)) != 0;
    bool alone = (inputs & METHOD_INPUT(METHOD_ISM_A)) != 0;
    static const enum method_algorithm algorithms[] = {
        [METHOD_ISM_SINGLE] = METHOD_ALGORITHM_SINGLE,
        [METHOD_ISM_BLOCK] = METHOD_ALGORITHM_BLOCK,
        [METHOD_ISM_REDUCED_MEMORY] = METHOD_ALGORITHM_REDUCED_MEMORY,
    };
    const int64_t max = block_max(n, m);
    const struct ism_tuning *row = tuned(n, m, inverse);
    int64_t block = row->block > 0 ? row->block : (int64_t)(row->part * (double)m);
    struct host_ism_plan plan = {.algorithm = row->algorithm, .block = within(block, max)};
    if (options[METHOD_ISM_VARIANT] != METHOD_ISM_AUTO)
        plan.algorithm = algorithms[options[METHOD_ISM_VARIANT]];
    if (options[METHOD_ISM_BLOCK_SIZE] > 0)
        plan.block = within(options[METHOD_ISM_BLOCK_SIZE], max);
    if (plan.algorithm == METHOD_ALGORITHM_SINGLE)
        plan.block = 1;
    /* Where no blocks were asked for. */
    plan.fused = row->fused && m > 0 && !alone && options[METHOD_ISM_VARIANT] == METHOD_ISM_AUTO &&
                 options[METHOD_ISM_BLOCK_SIZE] == 0;
    return plan;
}
