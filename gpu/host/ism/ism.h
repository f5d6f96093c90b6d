/* gpu/host/ism/ism.h: the parts of `ism`: the variants, the residual check of their answer, and
 * what is done when it fails.
 *
 * A = A0 + X Y^T (n x n; X, Y n x m). A0^-1 is a diagonal or is given. With A alone A0 is the
 * diagonal of A, X = A - A0 and Y = I, neither of which is formed.
 *
 * The paper's recurrences for U and V are multiplied by A0^-1: G = A0^-1 U and K = V^T A0^-1 are
 * kept instead, and of G the product G R, so that
 *
 *      G_k = A0^-1 X_k - (G R)_{<k} K_{<k} X_k,    K_k = Y_k^T A0^-1 - Y_k^T (G R)_{<k} K_{<k},
 *      R_k = (I + Y_k^T G_k)^-1,                   A^-1 = A0^-1 - (G R) K,
 *
 * which needs two products with A0^-1 where the paper's form has five, and none with R. Arrays of m
 * lines of n numbers hold G^T and K. Variant `single` is `block` with one column a block, as in the
 * paper; `reduced_memory` keeps, in place of H, the inverse so far, A0^-1 - A0^-1 H A0^-1.
 *
 * The paper: X. He, M. Holm and M. Neytcheva, "Efficiently parallel implementation of the inverse
 * Sherman-Morrison algorithm", PARA 2012. `single` is its Algorithm 1 (SISM), `block` Algorithm 2
 * (BISM), `reduced_memory` Algorithm 3 (RMBISM).
 *
 * Threads: any, each on its own matrix; a team may help, and what a piece of work is depends on n,
 * m and the block size alone. Nothing is allocated. Cost: see each function.
 */
#ifndef GPU_HOST_ISM_ISM_H
#define GPU_HOST_ISM_ISM_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/host/linalg/dense.h"
#include "gpu/host/base/host.h"
#include "gpu/host/simd/small.h"
#include "gpu/common/probes.h"
#include "gpu/common/scaled.h"
#include "gpu/methods/ism.h"

#define HOST_ISM_RANK 4 /* columns that the fused update takes at once, at most */
/* Probe vectors of a check at most; of orders up to it all of I - X A is computed. */
#define HOST_ISM_PROBES ISM_PROBES
#define HOST_ISM_LINES 8   /* arrays of HOST_ISM_PROBES lines that a check takes */
#define HOST_ISM_SEEN 3    /* lines that a check takes of a strip of the inverse */
#define HOST_ISM_STRIPS 16 /* of tiles at most: HOST_ISM_SEEN of each fit all arrays but two */
#define HOST_ISM_THIN 64   /* X and Y of so many columns are transposed first */
#define HOST_ISM_FUSED_LINES (3 * HOST_ISM_RANK) /* that the fused update takes */

/* Execution plan for one matrix. */
struct host_ism_plan {
    enum method_algorithm algorithm; /* SINGLE, BLOCK or REDUCED_MEMORY */
    bool fused;                      /* by the fused update, HOST_ISM_RANK columns at a time */
    int64_t block;                   /* columns of a block, 1 to m (1 where m is 0) */
};

/* A good plan for auto, or what the options say: plan.c. inputs: a bit for each that is there.
 */
struct host_ism_plan host__ism_plan(int64_t n, int64_t m, uint32_t inputs, const int64_t *options);
/* Numbers of scratch that the plan takes behind the matrix's own; -1 on overflow. */
int64_t host__ism_plan_numbers(enum precision precision, int64_t n, int64_t m,
                               struct host_ism_plan plan, bool factors);
/* No plan takes more, whatever the options are. m >= 1. */
int64_t host__ism_max_numbers(enum precision precision, int64_t n, int64_t m);
/* Of its own: A0's diagonal and the probe vectors. */
int64_t host__ism_own_numbers(enum precision precision, int64_t n, int64_t m);
/* How the inverse is cut into tiles, by strips of rows. */
struct host_ism_tiles {
    int64_t rows, columns; /* of a tile */
    int64_t down, across;  /* tiles */
};
struct host_ism_tiles host__ism_tiles(int64_t n);
/* Of X and Y with scaled columns (column_scaling.c), behind all others. */
int64_t host__ism_scaling_numbers(int64_t n, int64_t m);

/* How a check came out. */
struct host_ism_verdict {
    bool good;
    bool cancels;          /* A is known: terms of X Y^T cancel */
    bool singular;         /* A0_INVERSE alone: A is no different from a singular matrix */
    bool determined;       /* by A0, X and Y: A counts as regular whatever its condition is */
    bool overflows;        /* the inverse, which is good */
    double error;          /* what |I - X A| seems to be; NaN when X is not finite */
    struct host_norm a, x; /* a: not known when A0_INVERSE is alone */
};

#define REAL_HEADER "gpu/host/ism/ism.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* One matrix on its way. */
struct R(host_ism) {
    const struct host_matrix *matrix;
    int64_t n, m, ld;      /* ld: of arrays with lines of n numbers */
    const REAL *a;         /* n x n: A alone; else NULL */
    const REAL *x, *y;     /* as given, or with scaled columns */
    const int32_t *shifts; /* m: column c of x is that given times 2^shifts[c]; NULL: as given */
    REAL *xt, *yt;      /* X^T and Y^T, m x n, zeros behind their lines; NULL: m > HOST_ISM_THIN */
    const REAL *a0, *b; /* n x n: A0 and A0^-1 as given; NULL: A0 is diagonal */
    REAL *d, *e;        /* the diagonals of A0 and A0^-1, where b is NULL */
    REAL *u, *r, *v;    /* factors, n x m, m x m and n x m; NULL: unwanted */
    REAL *z;            /* n x n: becomes the inverse */
    REAL *lines;        /* of a check: probe vectors, and their products */
    bool seen;          /* every tile of z was, since it was made */
    REAL *work;         /* a plan's */
    struct host_team *team;
    struct scaled det_a0, det_ratio;
};

/* ---- The report: ism.c ---- */

/* Are all numbers finite? NULL has none. */
bool R(host__ism_all_finite)(const REAL *numbers, int64_t count);
/* NaN in numbers, which may be NULL. */
void R(host__ism_fill)(REAL *numbers, int64_t count);
/* The factors that are wanted become NaN. */
void R(host__ism_no_factors)(const struct R(host_ism) * ism);
/* Writes every output but the inverse and factors that are there: what is not becomes NaN. */
void R(host__ism_report)(const struct R(host_ism) * ism, int64_t info, REAL rcond,
                         enum method_algorithm algorithm, double det_ratio);
/* The same of an inverse that was found good. */
void R(host__ism_report_good)(const struct R(host_ism) * ism,
                              const struct host_ism_verdict *verdict,
                              enum method_algorithm algorithm);

/* ---- The last algorithm: direct.c. All scratch is used up. ---- */

/* Inverts A by lu, A as given, or formed in z, where the inverse takes its place; and reports. */
void R(host__ism_by_lu)(struct R(host_ism) * ism);
/* The same with A0_INVERSE alone, by a solution of Z (I + X Y^T A0^-1) = A0^-1. */
void R(host__ism_by_solution)(struct R(host_ism) * ism);

/* ---- X and Y with scaled columns: column_scaling.c ---- */

/* Brings columns of X and Y that are of far different sizes to one size: x and y, where it returns
 * true, are then the copies, which take host__ism_scaling_numbers. lines are used up. */
bool R(host__ism_scale_columns)(struct R(host_ism) * ism, REAL *copies);
/* Makes those factors of the scaled X and Y that are wanted factors of the given ones. */
void R(host__ism_restore_factors)(const struct R(host_ism) * ism);

/* ---- The variants: false when a block is singular. z and det_ratio are set. ---- */

/* 4 n m^2 + 2 n^2 m operations, with b 4 n^2 m more. Writes the factors that are wanted: U and V
 * take 2 n m^2 more, or less where blocks are large. */
bool R(host__ism_block)(struct R(host_ism) * ism, int64_t block);
/* 6 n^2 m operations, for a first block without b 2 n^2 of each of its columns. */
bool R(host__ism_reduced)(struct R(host_ism) * ism, int64_t block);
/* The same, HOST_ISM_RANK columns at a time, for small matrices: without OpenBLAS, whose calls
 * would take most of the time. */
bool R(host__ism_fused)(struct R(host_ism) * ism);

/* A0 diagonal, all columns as one block, in double-double: woodbury.c. *amplified: u times it is
 * about the norm of what sums of unit roundoff u would lose of z, which is 2^exponent A^-1 */
bool R(host__ism_woodbury)(struct R(host_ism) * ism, double *amplified, int *exponent);
/* z times 2^exponent. */
void R(host__ism_times_power)(const struct R(host_ism) * ism, int exponent);

/* ---- What is measured on request: measure.c. All else is done, and ism opened anew. ---- */

/* |I - z A|, A being known; NaN where z is. */
REAL R(host__ism_residual)(const struct R(host_ism) * ism);
/* Numbers of a plan's that it takes; -1 on overflow. */
int64_t R(host__ism_residual_numbers)(int64_t n, int64_t m);
/* RCOND of I + Y^T A0^-1 X, as lu has it. X and Y are those sent. NaN where m > n. All scratch is
 * used up. */
REAL R(host__ism_rcond_capacitance)(const struct R(host_ism) * ism);
/* That it takes; -1 on overflow. */
int64_t R(host__ism_capacitance_bytes)(int64_t n, int64_t m);

/* ---- Double-double: double_double.c ---- */

/* A product of lines and a matrix, with pairs of numbers as its result. */
struct R(host_ism_dd) {
    const REAL *lines, *lines_low; /* low: of pairs; NULL: they are numbers */
    int64_t line_step, step;       /* number i of line l is at l line_step + i step */
    int64_t count, rows, columns;
    const REAL *from, *from_low; /* rows x columns, from_ld apart; low as above */
    int64_t from_ld;
    bool transposed;   /* from, which has no low, is columns x rows */
    bool adds;         /* to what is there */
    REAL *to, *to_low; /* count lines, to_ld and low_ld apart */
    int64_t to_ld, low_ld;
};
void R(host__ism_dd)(struct host_team *team, struct R(host_ism_dd) * dd);
/* to += lines * a diagonal, which is `from`. */
void R(host__ism_dd_diagonal)(const struct R(host_ism_dd) * dd);
/* Of a sum of so many products, in terms of their magnitudes' sum: a bound of its error, next to
 * the rounding of the result. */
double R(host__ism_dd_error)(int64_t terms);

/* ---- The check: check.c ---- */

/* Numbers first to end - 1 of to = those of `count` lines, `step` apart, added in their order. */
void R(host__ism_add_lines)(const REAL *lines, int64_t count, int64_t step, int64_t first,
                            int64_t end, REAL *restrict to);
/* Before tiles of z are seen: sets the lines that a check multiplies by z. n > HOST_ISM_PROBES. */
void R(host__ism_open_check)(struct R(host_ism) * ism);
/* What the check wants of rows of a tile of z (host__ism_tiles), from its first row on to its last,
 * best while they are in a cache. Where all were seen, which `seen` says, it makes no pass over z.
 */
void R(host__ism_see_rows)(const struct R(host_ism) * ism, int64_t row, int64_t rows,
                           int64_t column, int64_t columns);
/* Is z the inverse? Up to n = HOST_ISM_PROBES I - Z A is computed, beyond two lines of random
 * numbers are multiplied by it; with A0_INVERSE alone by A0^-1 - Z (I + X Y^T A0^-1). 4 to 12 n^2 +
 * 8 n m operations; where terms of X Y^T or X Y^T A0^-1 may cancel, 24 to 36 n^2 and as many n m
 * more. */
struct host_ism_verdict R(host__ism_check)(struct R(host_ism) * ism);
/* The same with A0_INVERSE alone, in double-double. change: |X Y^T A0^-1|. */
struct host_ism_verdict R(host__ism_check_solution)(struct R(host_ism) * ism, double change);
/* Is an update of A0^-1 alone good for certain, by what a check of one precision has measured? */
bool R(host__ism_update_holds)(int64_t n, const struct host_small_measured *of);
/* Two probe vectors, by rows. */
void R(host__ism_weights)(int64_t n, REAL (*lines)[2]);
/* Is z A0 + X Y^T, but for rounding? Only where terms of X Y^T may cancel is it tried, on lines as
 * above, in double-double. lines are used up. */
bool R(host__ism_formed_well)(struct R(host_ism) * ism);

#endif
