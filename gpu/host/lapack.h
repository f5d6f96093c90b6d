/* gpu/host/lapack.h: the door to OpenBLAS: the few routines the engine calls, with 64-bit orders.
 *
 * Matrices are column-major n x n with leading dimension ld, as LAPACK has them, but for gemm,
 * which is row-major. A positive result is LAPACK's info; a bad argument is a bug and asserted.
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

#endif
