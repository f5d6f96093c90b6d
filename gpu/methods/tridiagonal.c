/* tridiagonal: the dense inverse, or a part of it, of a matrix given by its three diagonals. */
#include "gpu/methods/tridiagonal.h"

#include "gpu/method.h"

/* A row takes two divisions that wait for those of the row before, and count as what could be done
 * meanwhile; beyond the caches, four times that. Entries of the inverse cost their bytes. */
static double flops(int64_t n, int64_t m)
{
    (void)m;
    return n <= 1 << 20 ? 60.0 * (double)n : 240.0 * (double)n;
}

/* sherman_morrison merges blocks of two rows, level by level; each level costs what two sweeps do.
 */
static double flops_max(int64_t n, int64_t m)
{
    int levels = 1;
    while (levels < 62 && INT64_C(1) << levels < n)
        levels++;
    return levels * flops(n, m);
}

const struct method method_tridiagonal = {
    .name = "tridiagonal",
    .title = "Inverse of tridiagonal matrices",
    .when =
        "For matrices with three diagonals, which are never formed densely. The inverse takes a "
        "multiplication and a store an entry; its diagonal, a block of it or its generators alone "
        "cost time and memory of the order n, and of the block's size.",
    .inputs = {[METHOD_TRIDIAGONAL_DL] = {.name = "DL",
                                          .help = "below the diagonal",
                                          .rank = 1,
                                          .dims = {METHOD_DIM_N_MINUS_1}},
               [METHOD_TRIDIAGONAL_D] =
                   {.name = "D", .help = "diagonals", .rank = 1, .dims = {METHOD_DIM_N}},
               [METHOD_TRIDIAGONAL_DU] = {.name = "DU",
                                          .help = "above the diagonal",
                                          .rank = 1,
                                          .dims = {METHOD_DIM_N_MINUS_1}}},
    .outputs =
        {[METHOD_TRIDIAGONAL_INVERSE] = {.name = "INVERSE",
                                         .help =
                                             "inverses, or the block of them that the options name",
                                         .rank = 2,
                                         .dims = {METHOD_DIM_RANGE(METHOD_TRIDIAGONAL_ROWS),
                                                  METHOD_DIM_RANGE(METHOD_TRIDIAGONAL_COLUMNS)},
                                         .is_default = true},
         [METHOD_TRIDIAGONAL_DIAGONAL] =
             {.name = "DIAGONAL",
              .help = "the diagonals of the inverses; alone, nothing of the order n^2 is formed",
              .rank = 1,
              .dims = {METHOD_DIM_N}},
         [METHOD_TRIDIAGONAL_INFO] =
             {.name = "INFO", .help = "status", .kind = METHOD_INT32, .is_default = true},
         [METHOD_TRIDIAGONAL_RCOND] = {.name = "RCOND",
                                       .help = "reciprocal condition number in the 1-norm",
                                       .when_empty = METHOD_EMPTY_ONES,
                                       .is_default = true},
         [METHOD_TRIDIAGONAL_ALGORITHM] = {.name = "METHOD",
                                           .help = "the variant each matrix took",
                                           .kind = METHOD_ALGORITHM},
         [METHOD_TRIDIAGONAL_GENERATORS] =
             {.name = "GENERATORS",
              .help = "G, with EXPONENTS E: entry (i, j) of the inverse is G[0,i] G[1,j] "
                      "2^(64 (E[0,i] + E[1,j])) where i <= j, and G[2,i] G[3,j] "
                      "2^(64 (E[2,i] + E[3,j])) where i >= j",
              .rank = 2,
              .dims = {METHOD_DIM_4, METHOD_DIM_N}},
         [METHOD_TRIDIAGONAL_EXPONENTS] =
             {.name = "EXPONENTS",
              .help = "of the generators, which leave the range of numbers; 0 unless the "
                      "inverse's entries differ by many powers of two",
              .kind = METHOD_INT32,
              .rank = 2,
              .dims = {METHOD_DIM_4, METHOD_DIM_N}}},
    .options = {[METHOD_TRIDIAGONAL_VARIANT] =
                    {.name = "variant",
                     .help =
                         "sherman_morrison and two_sweep are for diagonally dominant matrices, "
                         "by rows or by columns; where they do not hold, the next one in this "
                         "list is taken, and METHOD reports it; auto takes two_sweep or pivoted",
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
    .algorithms = {{METHOD_ALGORITHM_SHERMAN_MORRISON, "halves, joined by updates of rank one"},
                   {METHOD_ALGORITHM_TWO_SWEEP, "recurrences from both ends"},
                   {METHOD_ALGORITHM_PIVOTED, "for matrices that are not dominant"}},
    .n_max = 1 << 24,
    .flops = flops,
    .flops_max = flops_max,
};
