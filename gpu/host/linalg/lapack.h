/* gpu/host/linalg/lapack.h: the part of OpenBLAS that the engine calls: few routines, with 64-bit
 * orders.
 *
 * Matrices are column-major n x n with leading dimension ld, as LAPACK has them, but for
 * host__gemm and host__product, which are row-major. A positive result is LAPACK's info; a bad
 * argument is a bug and asserted.
 *
 * Threads: any, each on its own matrices, after host__lapack_init. One BLAS thread each.
 */
#ifndef GPU_HOST_LINALG_LAPACK_H
#define GPU_HOST_LINALG_LAPACK_H

#include <stdbool.h>
#include <stdint.h>

/* Sets OpenBLAS to one thread. Once, before any other call here, and first in main: on a processor
 * that OpenBLAS does not know it sets OPENBLAS_CORETYPE to the family with the same instructions,
 * unless that is set, and executes the program again. */
void host__lapack_init(void);
/* OpenBLAS's own threads, from then on: for measurements of what it does alone. Not while any of
 * its routines runs. */
void host__lapack_threads(int threads);
/* The kernel family in use: "Haswell", "SkylakeX". Constant text. */
const char *host__lapack_cpu(void);

/* getri's block size in every precision, and the order up to which it works unblocked. */
#define HOST_GETRI_BLOCK 64

/* Numbers of workspace that getri takes for order n. */
static inline int64_t host__getri_work(int64_t n)
{
    return n <= HOST_GETRI_BLOCK ? n : n * HOST_GETRI_BLOCK;
}

#define REAL_HEADER "gpu/host/linalg/lapack.h"
#include "gpu/host/base/both_precisions.h"

#elif defined(REAL_HEADER)

/* pivots: n of them, 1-based. */
int64_t R(host__getrf)(int64_t n, REAL *a, int64_t ld, int32_t *pivots);
int64_t R(host__getri)(int64_t n, REAL *a, int64_t ld, const int32_t *pivots, REAL *work);

/* uplo: 'U' or 'L', the triangle that is read and written. */
int64_t R(host__trtri)(char uplo, int64_t n, REAL *a, int64_t ld);
int64_t R(host__potrf)(char uplo, int64_t n, REAL *a, int64_t ld);
int64_t R(host__potri)(char uplo, int64_t n, REAL *a, int64_t ld);

/* c (rows x columns) += a (rows x inner) b (inner x columns), all row-major. */
void R(host__gemm)(int64_t rows, int64_t columns, int64_t inner, const REAL *a, int64_t lda,
                   const REAL *b, int64_t ldb, REAL *c, int64_t ldc);

/* c (rows x columns) = alpha a b + beta c, all row-major; a is rows x inner, or with transposed_a
 * inner x rows, and b likewise. rows, columns, inner >= 1. */
void R(host__product)(bool transposed_a, bool transposed_b, int64_t rows, int64_t columns,
                      int64_t inner, REAL alpha, const REAL *a, int64_t lda, const REAL *b,
                      int64_t ldb, REAL beta, REAL *c, int64_t ldc);
/* b (n x columns, column-major) becomes T^-1 b, by getrf's factors of T. */
void R(host__getrs)(int64_t n, int64_t columns, const REAL *factors, int64_t ld,
                    const int32_t *pivots, REAL *b, int64_t ldb);

/* What a factorisation and an inverse by blocks are made of; all column-major. */

/* getrf of a (rows x columns, rows >= columns); pivots: columns of them, 1-based, from a's first
 * row on. */
int64_t R(host__getrf_panel)(int64_t rows, int64_t columns, REAL *a, int64_t ld, int32_t *pivots);
/* Rows i and pivots[i] - 1 of a change places, for i = first to end - 1. */
void R(host__laswp)(int64_t columns, REAL *a, int64_t ld, int64_t first, int64_t end,
                    const int32_t *pivots);
/* b (order x columns) becomes T^-1 b, T being unit lower triangular. */
void R(host__solve_lower)(int64_t order, int64_t columns, const REAL *t, int64_t ldt, REAL *b,
                          int64_t ldb);
/* b (rows x order) becomes b T^-1; uplo 'U': T is upper triangular; 'L': unit lower. */
void R(host__solve_right)(char uplo, int64_t rows, int64_t order, const REAL *t, int64_t ldt,
                          REAL *b, int64_t ldb);
/* b (order x columns) becomes -T b, T being upper triangular. */
void R(host__multiply_upper)(int64_t order, int64_t columns, const REAL *t, int64_t ldt, REAL *b,
                             int64_t ldb);
/* c (rows x columns) -= a (rows x inner) b (inner x columns). */
void R(host__subtract_product)(int64_t rows, int64_t columns, int64_t inner, const REAL *a,
                               int64_t lda, const REAL *b, int64_t ldb, REAL *c, int64_t ldc);

/* What Cholesky by blocks is made of. T is lower triangular, and of a square c only the lower
 * triangle is read and written. */

/* b (order x columns) becomes -T b. */
void R(host__multiply_lower)(int64_t order, int64_t columns, const REAL *t, int64_t ldt, REAL *b,
                             int64_t ldb);
/* b (order x columns) becomes T^T b. */
void R(host__multiply_transposed)(int64_t order, int64_t columns, const REAL *t, int64_t ldt,
                                  REAL *b, int64_t ldb);
/* b (rows x order) becomes b T^-1, or with `transposed` b T^-T. */
void R(host__solve_right_lower)(bool transposed, int64_t rows, int64_t order, const REAL *t,
                                int64_t ldt, REAL *b, int64_t ldb);
/* c (rows x columns) -= a (rows x inner) b^T, b being columns x inner. */
void R(host__subtract_outer)(int64_t rows, int64_t columns, int64_t inner, const REAL *a,
                             int64_t lda, const REAL *b, int64_t ldb, REAL *c, int64_t ldc);
/* c (order x order) -= a a^T, a being order x inner. */
void R(host__subtract_square)(int64_t order, int64_t inner, const REAL *a, int64_t lda, REAL *c,
                              int64_t ldc);
/* c (rows x columns) += a^T b, a and b having `inner` rows. */
void R(host__add_inner)(int64_t rows, int64_t columns, int64_t inner, const REAL *a, int64_t lda,
                        const REAL *b, int64_t ldb, REAL *c, int64_t ldc);
/* c (order x order) += a^T a, a having `inner` rows. */
void R(host__add_square)(int64_t order, int64_t inner, const REAL *a, int64_t lda, REAL *c,
                         int64_t ldc);
/* t becomes T^T T. */
void R(host__lauum)(int64_t n, REAL *t, int64_t ld);

/* What a QR factorisation by blocks is made of. H = I - V S V^T; V (rows x order) is unit lower
 * trapezoidal, S (order x order) upper triangular. */

/* a (rows x columns, rows >= columns) becomes R, and V below its diagonal; s becomes S, whose
 * diagonal holds LAPACK's tau. */
void R(host__qr_panel)(int64_t rows, int64_t columns, REAL *a, int64_t ld, REAL *s, int64_t lds);
/* s becomes S, from V and tau. */
void R(host__qr_square)(int64_t rows, int64_t order, const REAL *v, int64_t ldv, const REAL *tau,
                        REAL *s, int64_t lds);
/* side 'L': c (rows x columns) becomes H^T c; 'R': c H^T. work: order numbers for each column of c,
 * or row. */
void R(host__qr_apply)(char side, int64_t rows, int64_t columns, int64_t order, const REAL *v,
                       int64_t ldv, const REAL *s, int64_t lds, REAL *c, int64_t ldc, REAL *work);

#endif
