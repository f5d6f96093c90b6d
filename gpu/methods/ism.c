/* ism: inverses of A0 + X Y^T by the inverse Sherman-Morrison algorithms, and updates of a known
 * inverse. */
#include "gpu/methods/ism.h"

/* G and K, and U and V, which are not always wanted; the product that is the inverse; and, with
 * A0_INVERSE, two products with it. */
static double flops(int64_t n, int64_t m)
{
    double order = (double)n, rank = (double)m;
    return order * order * (6 * rank + 8) + 6 * order * rank * rank;
}

/* An algorithm that fails leaves the answer to double-double, where an operation is 14, and then A
 * to be formed, factored for its determinant, and inverted by lu. */
static double flops_max(int64_t n, int64_t m)
{
    double order = (double)n, rank = m <= method_ism_dd_max(n) ? (double)m : 0;
    double dd = 14 * (order * rank * (2 * order + 6 * rank) + rank * rank * rank);
    return flops(n, m) + dd + order * order * (2 * (double)m + 14.0 / 3.0 * order);
}

const struct method method_ism = {
    .name = "ism",
    .title = "Inverse of A0 + X Y^T, or an update of a known inverse",
    .when = "For matrices that are a diagonal and a product of two thin ones, which are never "
            "formed, and for inverses that are known and whose matrix has changed by a product of "
            "low rank: an update costs n^2 m operations, not n^3. Faster than lu from about n = 32 "
            "on for small m (with A0_INVERSE alone, on the host engine, from n = 8 on up to m = "
            "n/4), and for larger n up to m = n/2, in FP32 on a GPU up to n/4. A alone is taken "
            "too, but as a rule lu inverts it faster.",
    .inputs = {[METHOD_ISM_A] = {.name = "A",
                                 .help = "matrices, in place of all other inputs: A0 is then the "
                                         "diagonal, or the 1-norm where that has a zero",
                                 .rank = 2,
                                 .dims = {METHOD_DIM_N, METHOD_DIM_N},
                                 .optional = true},
               [METHOD_ISM_X] = {.name = "X",
                                 .help = "left factors; m may be 0. Without A0 and A0_INVERSE "
                                         "nothing else gives n, so X and Y that are sent as "
                                         "[m, n] are taken as they are, and the inverse is m by m",
                                 .rank = 2,
                                 .dims = {METHOD_DIM_N, METHOD_DIM_M},
                                 .optional = true},
               [METHOD_ISM_Y] = {.name = "Y",
                                 .help = "right factors",
                                 .rank = 2,
                                 .dims = {METHOD_DIM_N, METHOD_DIM_M},
                                 .optional = true},
               [METHOD_ISM_A0_SCALE] = {.name = "A0",
                                        .help = "A0 is this multiple of the identity. Without A0 "
                                                "and A0_INVERSE, A0 is the identity",
                                        .rank = 1,
                                        .dims = {METHOD_DIM_1},
                                        .optional = true},
               [METHOD_ISM_A0_DIAGONAL] = {.name = "A0",
                                           .help = "A0 is diagonal",
                                           .rank = 1,
                                           .dims = {METHOD_DIM_N},
                                           .optional = true},
               [METHOD_ISM_A0_DENSE] = {.name = "A0",
                                        .help =
                                            "A0 itself, the matrix before the change, with "
                                            "A0_INVERSE: RCOND and the check of the answer are "
                                            "then those of A0 + X Y^T. If A0_INVERSE is off by "
                                            "more than the promise allows, A0 + X Y^T is formed "
                                            "and inverted anew (METHOD lu). With m = 0 that "
                                            "refreshes an inverse, and less is allowed: "
                                            "docs/guide.md says how much. "
                                            "Where no inverse of A0 is known, form A0 + X Y^T and "
                                            "take lu",
                                        .instead = "form A0 + X Y^T and take lu",
                                        .rank = 2,
                                        .dims = {METHOD_DIM_N, METHOD_DIM_N},
                                        .optional = true},
               [METHOD_ISM_A0_INVERSE] = {.name = "A0_INVERSE",
                                          .help = "known inverses, to be updated; without A0, "
                                                  "RCOND is not a number, or 0 where INFO is in "
                                                  "1..n",
                                          .rank = 2,
                                          .dims = {METHOD_DIM_N, METHOD_DIM_N},
                                          .optional = true}},
    .input_sets = {METHOD_INPUT(METHOD_ISM_A), METHOD_ISM_XY,
                   METHOD_ISM_XY | METHOD_INPUT(METHOD_ISM_A0_SCALE),
                   METHOD_ISM_XY | METHOD_INPUT(METHOD_ISM_A0_DIAGONAL),
                   METHOD_ISM_XY | METHOD_INPUT(METHOD_ISM_A0_INVERSE),
                   METHOD_ISM_XY | METHOD_INPUT(METHOD_ISM_A0_INVERSE) |
                       METHOD_INPUT(METHOD_ISM_A0_DENSE)},
    .outputs = {[METHOD_ISM_INVERSE] = {.name = "INVERSE",
                                        .help = "inverses",
                                        .rank = 2,
                                        .dims = {METHOD_DIM_N, METHOD_DIM_N},
                                        .is_default = true},
                [METHOD_ISM_INFO] =
                    {.name = "INFO", .help = "status", .kind = METHOD_INT32, .is_default = true},
                [METHOD_ISM_RCOND] = {.name = "RCOND",
                                      .help = "reciprocal condition number in the 1-norm",
                                      .when_empty = METHOD_EMPTY_ONES,
                                      .is_default = true},
                [METHOD_ISM_ALGORITHM] = {.name = "METHOD",
                                          .help = "the variant each matrix took",
                                          .kind = METHOD_ALGORITHM},
                [METHOD_ISM_DET_RATIO] = {.name = "DET_RATIO",
                                          .help = "det(A) / det(A0), as good as A0_INVERSE where "
                                                  "that is given; with A0_INVERSE alone and METHOD "
                                                  "lu only as good as the pivots of I + X Y^T "
                                                  "A0_INVERSE. To accept or reject a change, "
                                                  "compare |DET_RATIO| with a threshold of your "
                                                  "own, or send A0. Alone it saves the transfer "
                                                  "of INVERSE, not the work. It may overflow to "
                                                  "infinity or underflow to 0, and with "
                                                  "A0_INVERSE alone is NaN where INFO is n+1 and "
                                                  "INVERSE all NaN. In JSON null "
                                                  "is an infinity where INFO is 0, and no answer "
                                                  "where it is another: use .npz for chains",
                                          .when_empty = METHOD_EMPTY_ONES},
                [METHOD_ISM_U] =
                    {.name = "U",
                     .help = "factors: the inverse is A0^-1 - A0^-1 U R V^T A0^-1; NaN where "
                             "the variant taken has none. Of A alone m is n, A0 the diagonal of "
                             "A, or its 1-norm where that has a zero, X is A - A0 and Y is I",
                     .rank = 2,
                     .dims = {METHOD_DIM_N, METHOD_DIM_M}},
                [METHOD_ISM_R] = {.name = "R",
                                  .help = "see U; block diagonal",
                                  .rank = 2,
                                  .dims = {METHOD_DIM_M, METHOD_DIM_M},
                                  .when_empty = METHOD_EMPTY_IDENTITY},
                [METHOD_ISM_V] =
                    {.name = "V", .help = "see U", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_M}},
                [METHOD_ISM_RCOND_CAPACITANCE] =
                    {.name = "RCOND_CAPACITANCE",
                     .help = "reciprocal condition number in the 1-norm of the capacitance matrix "
                             "I + Y^T A0^-1 X, with A0_INVERSE in the place of A0^-1 where that is "
                             "given: of all m columns as one block, whatever blocks were taken, "
                             "formed in the answer's precision and inverted by lu. 0 where that "
                             "finds it singular; NaN where m > n, and where it overflows. The "
                             "smaller it is, the more digits an update with A0_INVERSE alone may "
                             "have lost, which neither INFO nor DET_RATIO shows",
                     .when_empty = METHOD_EMPTY_ONES,
                     .optional = true},
                [METHOD_ISM_RESIDUAL] =
                    {.name = "RESIDUAL",
                     .help = "the 1-norm of I - X A, X being INVERSE, measured from A0, X and Y in "
                             "the answer's precision. So where terms of A0 + X Y^T cancel it may "
                             "be far above the true one, by their size times eps |X|. NaN with "
                             "A0_INVERSE alone, where A is not known, and where there is no "
                             "inverse. It takes 4 n^2 m operations, with a dense A0 2 n^3 more",
                     .optional = true,
                     .needs = METHOD_INPUT(METHOD_ISM_INVERSE)}},
    .options =
        {[METHOD_ISM_VARIANT] =
             {.name = "variant",
              .help =
                  "single takes one column of X and Y at a time, block and "
                  "reduced_memory a block of s (block_size). In addition to X, Y and the answer "
                  "block keeps the factors, on the host engine 2 m n + 3 s n numbers, "
                  "reduced_memory 3 s n; there either sets aside what lu would take, n^2 "
                  "and 64 to 128 vectors of n, and up to m = 64 or with A0_INVERSE alone "
                  "2 m n for equilibrated X and Y. On a GPU, at m = n, block takes 5 n^2 "
                  "numbers of its memory, with A0_INVERSE 6 n^2, and reduced_memory 3 n^2. "
                  "auto chooses by n and m, "
                  "and takes lu where m > n, on a GPU up to m = 64 one block in "
                  "double-double before it, if A0 is diagonal; where a variant breaks down or "
                  "loses accuracy, "
                  "larger blocks, one block in double-double or lu are taken, and METHOD reports "
                  "block or lu",
              .kind = METHOD_OPTION_CHOICE,
              .choices = "auto|single|block|reduced_memory"},
         [METHOD_ISM_BLOCK_SIZE] = {.name = "block_size",
                                    .help = "columns of a block; ignored with variant=single; "
                                            "more than m, than the larger of n "
                                            "and 32, or on a GPU than 512, count as that; 0: "
                                            "chosen by n and m, as docs/kernels.md describes; "
                                            "no output reports it",
                                    .kind = METHOD_OPTION_INT,
                                    .min = 0,
                                    .max = 32768}},
    .algorithms = {{METHOD_ALGORITHM_SINGLE, "a column of X and Y at a time"},
                   {METHOD_ALGORITHM_BLOCK, "block_size columns at a time"},
                   {METHOD_ALGORITHM_REDUCED_MEMORY, "likewise, with fewer numbers kept"},
                   {METHOD_ALGORITHM_LU, "A is formed and inverted"}},
    .n_max = METHOD_ISM_ORDER_MAX,
    .flops = flops,
    .flops_max = flops_max,
};
