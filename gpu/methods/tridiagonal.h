/* tridiagonal: the dense inverse, or its diagonal alone, of a matrix given by its three diagonals.
 */
#ifndef GPU_METHODS_TRIDIAGONAL_H
#define GPU_METHODS_TRIDIAGONAL_H

#include "gpu/method.h"

/* Beyond this order only the diagonal is of a size that is answered. */
#define METHOD_TRIDIAGONAL_INVERSE_ORDER_MAX 32768

enum method_tridiagonal_option {
    METHOD_TRIDIAGONAL_VARIANT
};

/* The choices of variant, in the order of their names below. */
enum method_tridiagonal_variant {
    METHOD_TRIDIAGONAL_AUTO,
    METHOD_TRIDIAGONAL_SHERMAN_MORRISON,
    METHOD_TRIDIAGONAL_TWO_SWEEP,
    METHOD_TRIDIAGONAL_PIVOTED
};

/* The inverse takes a multiplication and a store an entry; its diagonal two divisions a row. */
static inline double method_tridiagonal_flops(int64_t n, int64_t m)
{
    (void)m;
    return n <= METHOD_TRIDIAGONAL_INVERSE_ORDER_MAX
               ? 60.0 * (double)n + 4.0 * (double)n * (double)n
               : 60.0 * (double)n;
}

static const struct method method_tridiagonal = {
    .name = "tridiagonal",
    .title = "Inverse of tridiagonal matrices",
    .when =
        "For matrices with three diagonals, which are never formed densely. The inverse takes a "
        "multiplication and a store an entry; its diagonal alone costs time and memory of the "
        "order n.",
    .inputs =
        {{.name = "DL", .help = "below the diagonal", .rank = 1, .dims = {METHOD_DIM_N_MINUS_1}},
         {.name = "D", .help = "diagonals", .rank = 1, .dims = {METHOD_DIM_N}},
         {.name = "DU", .help = "above the diagonal", .rank = 1, .dims = {METHOD_DIM_N_MINUS_1}}},
    .outputs = {{.name = "INVERSE",
                 .help = "inverses",
                 .rank = 2,
                 .dims = {METHOD_DIM_N, METHOD_DIM_N},
                 .is_default = true},
                {.name = "DIAGONAL",
                 .help = "the diagonals of the inverses; alone, nothing of the order n^2 is formed",
                 .rank = 1,
                 .dims = {METHOD_DIM_N}},
                {.name = "INFO", .help = "status", .kind = METHOD_INT32, .is_default = true},
                {.name = "RCOND",
                 .help = "reciprocal condition number in the 1-norm",
                 .is_default = true},
                {.name = "METHOD", .help = "the variant each matrix took", .kind = METHOD_ROAD}},
    .options = {[METHOD_TRIDIAGONAL_VARIANT] =
                    {.name = "variant",
                     .help = "sherman_morrison and two_sweep are for diagonally dominant matrices, "
                             "by rows or by columns; where they do not hold, the next one in this "
                             "list is taken, and METHOD tells; auto takes two_sweep or pivoted",
                     .kind = METHOD_OPTION_CHOICE,
                     .choices = "auto|sherman_morrison|two_sweep|pivoted"}},
    .road = METHOD_ROAD_NONE,
    .n_max = 1 << 24,
    .flops = method_tridiagonal_flops,
};

#endif
