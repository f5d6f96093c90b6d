/* tridiagonal: the dense inverse, or a part of it, of a matrix given by its three diagonals. */
#ifndef GPU_METHODS_TRIDIAGONAL_H
#define GPU_METHODS_TRIDIAGONAL_H

#include "gpu/method.h"

/* Beyond this order the whole inverse is of no size that is answered. */
#define METHOD_TRIDIAGONAL_INVERSE_ORDER_MAX 32768

enum method_tridiagonal_option {
    METHOD_TRIDIAGONAL_VARIANT,
    METHOD_TRIDIAGONAL_ROWS,
    METHOD_TRIDIAGONAL_COLUMNS
};

/* The choices of variant, in the order of their names below. */
enum method_tridiagonal_variant {
    METHOD_TRIDIAGONAL_AUTO,
    METHOD_TRIDIAGONAL_SHERMAN_MORRISON,
    METHOD_TRIDIAGONAL_TWO_SWEEP,
    METHOD_TRIDIAGONAL_PIVOTED
};

/* A row takes two divisions that wait for those of the row before, and count as what could be done
 * meanwhile; beyond the caches, four times that. Entries of the inverse cost their bytes. */
static inline double method_tridiagonal_flops(int64_t n, int64_t m)
{
    (void)m;
    return n <= 1 << 20 ? 60.0 * (double)n : 240.0 * (double)n;
}

/* sherman_morrison merges blocks of two rows, level by level; each level costs what two sweeps do.
 */
static inline double method_tridiagonal_flops_max(int64_t n, int64_t m)
{
    int levels = 1;
    while (levels < 62 && INT64_C(1) << levels < n)
        levels++;
    return levels * method_tridiagonal_flops(n, m);
}

static const struct method method_tridiagonal = {
    .name = "tridiagonal",
    .title = "Inverse of tridiagonal matrices",
    .when =
        "For matrices with three diagonals, which are never formed densely. The inverse takes a "
        "multiplication and a store an entry; its diagonal, a block of it or its generators alone "
        "cost time and memory of the order n, and of the block's size.",
    .inputs =
        {{.name = "DL", .help = "below the diagonal", .rank = 1, .dims = {METHOD_DIM_N_MINUS_1}},
         {.name = "D", .help = "diagonals", .rank = 1, .dims = {METHOD_DIM_N}},
         {.name = "DU", .help = "above the diagonal", .rank = 1, .dims = {METHOD_DIM_N_MINUS_1}}},
    .outputs = {{.name = "INVERSE",
                 .help = "inverses, or the block of them that the options name",
                 .rank = 2,
                 .dims = {METHOD_DIM_RANGE(METHOD_TRIDIAGONAL_ROWS),
                          METHOD_DIM_RANGE(METHOD_TRIDIAGONAL_COLUMNS)},
                 .is_default = true},
                {.name = "DIAGONAL",
                 .help = "the diagonals of the inverses; alone, nothing of the order n^2 is formed",
                 .rank = 1,
                 .dims = {METHOD_DIM_N}},
                {.name = "INFO", .help = "status", .kind = METHOD_INT32, .is_default = true},
                {.name = "RCOND",
                 .help = "reciprocal condition number in the 1-norm",
                 .when_empty = METHOD_EMPTY_ONES,
                 .is_default = true},
                {.name = "METHOD",
                 .help = "the variant each matrix took: sherman_morrison, two_sweep or pivoted",
                 .kind = METHOD_ALGORITHM},
                {.name = "GENERATORS",
                 .help = "G, with EXPONENTS E: entry (i, j) of the inverse is G[0,i] G[1,j] "
                         "2^(64 (E[0,i] + E[1,j])) where i <= j, and G[2,i] G[3,j] "
                         "2^(64 (E[2,i] + E[3,j])) where i >= j",
                 .rank = 2,
                 .dims = {METHOD_DIM_4, METHOD_DIM_N}},
                {.name = "EXPONENTS",
                 .help = "of the generators, which leave the range of numbers; 0 unless the "
                         "inverse's entries differ by many powers of two",
                 .kind = METHOD_INT32,
                 .rank = 2,
                 .dims = {METHOD_DIM_4, METHOD_DIM_N}}},
    .options = {[METHOD_TRIDIAGONAL_VARIANT] =
                    {.name = "variant",
                     .help = "sherman_morrison and two_sweep are for diagonally dominant matrices, "
                             "by rows or by columns; where they do not hold, the next one in this "
                             "list is taken, and METHOD tells; auto takes two_sweep or pivoted",
                     .kind = METHOD_OPTION_CHOICE,
                     .choices = "auto|sherman_morrison|two_sweep|pivoted"},
                [METHOD_TRIDIAGONAL_ROWS] =
                    {.name = "rows",
                     .help = "of the inverse; those alone are computed and answered",
                     .kind = METHOD_OPTION_RANGE},
                [METHOD_TRIDIAGONAL_COLUMNS] =
                    {.name = "columns",
                     .help = "of the inverse; those alone are computed and answered",
                     .kind = METHOD_OPTION_RANGE}},
    .algorithm = METHOD_ALGORITHM_NONE,
    .n_max = 1 << 24,
    .flops = method_tridiagonal_flops,
    .flops_max = method_tridiagonal_flops_max,
};

#endif
