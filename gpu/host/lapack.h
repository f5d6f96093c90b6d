/* gpu/host/lapack.h: the door to OpenBLAS: the few routines the engine calls, with 64-bit orders.
 *
 * Matrices are column-major n x n with leading dimension ld, as LAPACK has them, but for
 * host__gemm, which is row-major. A positive result is LAPACK's info; a bad argument is a bug and
 * asserted.
 *
 * Threads: any, each on its own matrices, after host__lapack_init. One BLAS thread each.
 */
#ifndef GPU_HOST_LAPACK_H
#define GPU_HOST_LAPACK_H

#include <stdint.h>

/* Sets OpenBLAS to one thread. Once, before any other call here. */
void host__lapack_init(void);
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

#endif
