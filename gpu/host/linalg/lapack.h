/* gpu/host/linalg/lapack.h: the door to OpenBLAS: the few routines the engine calls, with 64-bit
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

/* Numbers of workspace that getri takes for order n. */
int64_t host__getri_work(int64_t n);

/* pivots: n of them, 1-based. */
int64_t host__getrf_f32(int64_t n, float *a, int64_t ld, int32_t *pivots);
int64_t host__getrf_f64(int64_t n, double *a, int64_t ld, int32_t *pivots);
int64_t host__getri_f32(int64_t n, float *a, int64_t ld, const int32_t *pivots, float *work);
int64_t host__getri_f64(int64_t n, double *a, int64_t ld, const int32_t *pivots, double *work);

/* uplo: 'U' or 'L', the triangle that is read and written. */
int64_t host__trtri_f32(char uplo, int64_t n, float *a, int64_t ld);
int64_t host__trtri_f64(char uplo, int64_t n, double *a, int64_t ld);
int64_t host__potrf_f32(char uplo, int64_t n, float *a, int64_t ld);
int64_t host__potrf_f64(char uplo, int64_t n, double *a, int64_t ld);
int64_t host__potri_f32(char uplo, int64_t n, float *a, int64_t ld);
int64_t host__potri_f64(char uplo, int64_t n, double *a, int64_t ld);

/* c (rows x columns) += a (rows x inner) b (inner x columns), all row-major. */
void host__gemm_f32(int64_t rows, int64_t columns, int64_t inner, const float *a, int64_t lda,
                    const float *b, int64_t ldb, float *c, int64_t ldc);
void host__gemm_f64(int64_t rows, int64_t columns, int64_t inner, const double *a, int64_t lda,
                    const double *b, int64_t ldb, double *c, int64_t ldc);

/* c (rows x columns) = alpha a b + beta c, all row-major; a is rows x inner, or with transposed_a
 * inner x rows, and b likewise. rows, columns, inner >= 1. */
void host__product_f32(bool transposed_a, bool transposed_b, int64_t rows, int64_t columns,
                       int64_t inner, float alpha, const float *a, int64_t lda, const float *b,
                       int64_t ldb, float beta, float *c, int64_t ldc);
void host__product_f64(bool transposed_a, bool transposed_b, int64_t rows, int64_t columns,
                       int64_t inner, double alpha, const double *a, int64_t lda, const double *b,
                       int64_t ldb, double beta, double *c, int64_t ldc);
/* b (n x columns, column-major) becomes T^-1 b, by getrf's factors of T. */
void host__getrs_f32(int64_t n, int64_t columns, const float *factors, int64_t ld,
                     const int32_t *pivots, float *b, int64_t ldb);
void host__getrs_f64(int64_t n, int64_t columns, const double *factors, int64_t ld,
                     const int32_t *pivots, double *b, int64_t ldb);

/* What a factorisation and an inverse by blocks are made of; all column-major. */

/* getrf of a (rows x columns, rows >= columns); pivots: columns of them, 1-based, from a's first
 * row on. */
int64_t host__getrf_panel_f32(int64_t rows, int64_t columns, float *a, int64_t ld, int32_t *pivots);
int64_t host__getrf_panel_f64(int64_t rows, int64_t columns, double *a, int64_t ld,
                              int32_t *pivots);
/* Rows i and pivots[i] - 1 of a change places, for i = first to end - 1. */
void host__laswp_f32(int64_t columns, float *a, int64_t ld, int64_t first, int64_t end,
                     const int32_t *pivots);
void host__laswp_f64(int64_t columns, double *a, int64_t ld, int64_t first, int64_t end,
                     const int32_t *pivots);
/* b (order x columns) becomes T^-1 b, T being unit lower triangular. */
void host__solve_lower_f32(int64_t order, int64_t columns, const float *t, int64_t ldt, float *b,
                           int64_t ldb);
void host__solve_lower_f64(int64_t order, int64_t columns, const double *t, int64_t ldt, double *b,
                           int64_t ldb);
/* b (rows x order) becomes b T^-1; uplo 'U': T is upper triangular; 'L': unit lower. */
void host__solve_right_f32(char uplo, int64_t rows, int64_t order, const float *t, int64_t ldt,
                           float *b, int64_t ldb);
void host__solve_right_f64(char uplo, int64_t rows, int64_t order, const double *t, int64_t ldt,
                           double *b, int64_t ldb);
/* b (order x columns) becomes -T b, T being upper triangular. */
void host__multiply_upper_f32(int64_t order, int64_t columns, const float *t, int64_t ldt, float *b,
                              int64_t ldb);
void host__multiply_upper_f64(int64_t order, int64_t columns, const double *t, int64_t ldt,
                              double *b, int64_t ldb);
/* c (rows x columns) -= a (rows x inner) b (inner x columns). */
void host__subtract_product_f32(int64_t rows, int64_t columns, int64_t inner, const float *a,
                                int64_t lda, const float *b, int64_t ldb, float *c, int64_t ldc);
void host__subtract_product_f64(int64_t rows, int64_t columns, int64_t inner, const double *a,
                                int64_t lda, const double *b, int64_t ldb, double *c, int64_t ldc);

/* What Cholesky by blocks is made of. T is lower triangular, and of a square c only the lower
 * triangle is read and written. */

/* b (order x columns) becomes -T b. */
void host__multiply_lower_f32(int64_t order, int64_t columns, const float *t, int64_t ldt, float *b,
                              int64_t ldb);
void host__multiply_lower_f64(int64_t order, int64_t columns, const double *t, int64_t ldt,
                              double *b, int64_t ldb);
/* b (order x columns) becomes T^T b. */
void host__multiply_transposed_f32(int64_t order, int64_t columns, const float *t, int64_t ldt,
                                   float *b, int64_t ldb);
void host__multiply_transposed_f64(int64_t order, int64_t columns, const double *t, int64_t ldt,
                                   double *b, int64_t ldb);
/* b (rows x order) becomes b T^-1, or with `transposed` b T^-T. */
void host__solve_right_lower_f32(bool transposed, int64_t rows, int64_t order, const float *t,
                                 int64_t ldt, float *b, int64_t ldb);
void host__solve_right_lower_f64(bool transposed, int64_t rows, int64_t order, const double *t,
                                 int64_t ldt, double *b, int64_t ldb);
/* c (rows x columns) -= a (rows x inner) b^T, b being columns x inner. */
void host__subtract_outer_f32(int64_t rows, int64_t columns, int64_t inner, const float *a,
                              int64_t lda, const float *b, int64_t ldb, float *c, int64_t ldc);
void host__subtract_outer_f64(int64_t rows, int64_t columns, int64_t inner, const double *a,
                              int64_t lda, const double *b, int64_t ldb, double *c, int64_t ldc);
/* c (order x order) -= a a^T, a being order x inner. */
void host__subtract_square_f32(int64_t order, int64_t inner, const float *a, int64_t lda, float *c,
                               int64_t ldc);
void host__subtract_square_f64(int64_t order, int64_t inner, const double *a, int64_t lda,
                               double *c, int64_t ldc);
/* c (rows x columns) += a^T b, a and b having `inner` rows. */
void host__add_inner_f32(int64_t rows, int64_t columns, int64_t inner, const float *a, int64_t lda,
                         const float *b, int64_t ldb, float *c, int64_t ldc);
void host__add_inner_f64(int64_t rows, int64_t columns, int64_t inner, const double *a, int64_t lda,
                         const double *b, int64_t ldb, double *c, int64_t ldc);
/* c (order x order) += a^T a, a having `inner` rows. */
void host__add_square_f32(int64_t order, int64_t inner, const float *a, int64_t lda, float *c,
                          int64_t ldc);
void host__add_square_f64(int64_t order, int64_t inner, const double *a, int64_t lda, double *c,
                          int64_t ldc);
/* t becomes T^T T. */
void host__lauum_f32(int64_t n, float *t, int64_t ld);
void host__lauum_f64(int64_t n, double *t, int64_t ld);

/* What a QR factorisation by blocks is made of. H = I - V S V^T; V (rows x order) is unit lower
 * trapezoidal, S (order x order) upper triangular. */

/* a (rows x columns, rows >= columns) becomes R, and V below its diagonal; s becomes S, whose
 * diagonal holds LAPACK's tau. */
void host__qr_panel_f32(int64_t rows, int64_t columns, float *a, int64_t ld, float *s, int64_t lds);
void host__qr_panel_f64(int64_t rows, int64_t columns, double *a, int64_t ld, double *s,
                        int64_t lds);
/* s becomes S, from V and tau. */
void host__qr_square_f32(int64_t rows, int64_t order, const float *v, int64_t ldv, const float *tau,
                         float *s, int64_t lds);
void host__qr_square_f64(int64_t rows, int64_t order, const double *v, int64_t ldv,
                         const double *tau, double *s, int64_t lds);
/* side 'L': c (rows x columns) becomes H^T c; 'R': c H^T. work: order numbers for each column of c,
 * or row. */
void host__qr_apply_f32(char side, int64_t rows, int64_t columns, int64_t order, const float *v,
                        int64_t ldv, const float *s, int64_t lds, float *c, int64_t ldc,
                        float *work);
void host__qr_apply_f64(char side, int64_t rows, int64_t columns, int64_t order, const double *v,
                        int64_t ldv, const double *s, int64_t lds, double *c, int64_t ldc,
                        double *work);

#endif
