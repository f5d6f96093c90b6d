/* gpu/host/linalg/lapack.c: see lapack.h.
 *
 * The Fortran entry points are called directly: LAPACKE's own functions look for NaN in every
 * argument and allocate workspace, both done already.
 *
 * Threads: any, each on its own matrices. OpenBLAS lends every call a buffer from a table of its
 * own that holds a bounded number of threads; main.c keeps within it.
 */
#include "gpu/host/linalg/lapack.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "gpu/host/linalg/openblas.h"

#include "gpu/host/base/by_precision.h"

int64_t R(host__getrf)(int64_t n, REAL *a, int64_t ld, int32_t *pivots)
{
    lapack_int order = (lapack_int)n, lda = (lapack_int)ld, info = 0;
    REAL_LAPACK(getrf)(&order, &order, a, &lda, pivots, &info);
    assert(info >= 0);
    return info;
}

int64_t R(host__getri)(int64_t n, REAL *a, int64_t ld, const int32_t *pivots, REAL *work)
{
    lapack_int order = (lapack_int)n, lda = (lapack_int)ld, info = 0;
    lapack_int length = (lapack_int)host__getri_work(n);
    REAL_LAPACK(getri)(&order, a, &lda, pivots, work, &length, &info);
    assert(info >= 0);
    return info;
}

int64_t R(host__trtri)(char uplo, int64_t n, REAL *a, int64_t ld)
{
    lapack_int order = (lapack_int)n, lda = (lapack_int)ld, info = 0;
    REAL_LAPACK(trtri)(&uplo, "N", &order, a, &lda, &info);
    assert(info >= 0);
    return info;
}

int64_t R(host__potrf)(char uplo, int64_t n, REAL *a, int64_t ld)
{
    lapack_int order = (lapack_int)n, lda = (lapack_int)ld, info = 0;
    REAL_LAPACK(potrf)(&uplo, &order, a, &lda, &info);
    assert(info >= 0);
    return info;
}

int64_t R(host__potri)(char uplo, int64_t n, REAL *a, int64_t ld)
{
    lapack_int order = (lapack_int)n, lda = (lapack_int)ld, info = 0;
    REAL_LAPACK(potri)(&uplo, &order, a, &lda, &info);
    assert(info >= 0);
    return info;
}

void R(host__gemm)(int64_t rows, int64_t columns, int64_t inner, const REAL *a, int64_t lda,
                   const REAL *b, int64_t ldb, REAL *c, int64_t ldc)
{
    REAL_BLAS(gemm)
    (CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)rows, (blasint)columns, (blasint)inner,
     REAL_C(1.0), a, (blasint)lda, b, (blasint)ldb, REAL_C(1.0), c, (blasint)ldc);
}

void R(host__product)(bool transposed_a, bool transposed_b, int64_t rows, int64_t columns,
                      int64_t inner, REAL alpha, const REAL *a, int64_t lda, const REAL *b,
                      int64_t ldb, REAL beta, REAL *c, int64_t ldc)
{
    REAL_BLAS(gemm)
    (CblasRowMajor, transposed_a ? CblasTrans : CblasNoTrans,
     transposed_b ? CblasTrans : CblasNoTrans, (blasint)rows, (blasint)columns, (blasint)inner,
     alpha, a, (blasint)lda, b, (blasint)ldb, beta, c, (blasint)ldc);
}

void R(host__getrs)(int64_t n, int64_t columns, const REAL *factors, int64_t ld,
                    const int32_t *pivots, REAL *b, int64_t ldb)
{
    lapack_int order = (lapack_int)n, count = (lapack_int)columns, lda = (lapack_int)ld;
    lapack_int ldc = (lapack_int)ldb, info = 0;
    REAL_LAPACK(getrs)("N", &order, &count, factors, &lda, pivots, b, &ldc, &info);
    assert(info == 0);
}

int64_t R(host__getrf_panel)(int64_t rows, int64_t columns, REAL *a, int64_t ld, int32_t *pivots)
{
    lapack_int m = (lapack_int)rows, n = (lapack_int)columns, lda = (lapack_int)ld, info = 0;
    REAL_LAPACK(getrf)(&m, &n, a, &lda, pivots, &info);
    assert(info >= 0);
    return info;
}

void R(host__laswp)(int64_t columns, REAL *a, int64_t ld, int64_t first, int64_t end,
                    const int32_t *pivots)
{
    lapack_int n = (lapack_int)columns, lda = (lapack_int)ld, step = 1;
    lapack_int from = (lapack_int)first + 1, to = (lapack_int)end;
    REAL_LAPACK(laswp)(&n, a, &lda, &from, &to, pivots, &step);
}

void R(host__solve_lower)(int64_t order, int64_t columns, const REAL *t, int64_t ldt, REAL *b,
                          int64_t ldb)
{
    REAL_BLAS(trsm)
    (CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit, (blasint)order,
     (blasint)columns, REAL_C(1.0), t, (blasint)ldt, b, (blasint)ldb);
}

void R(host__solve_right)(char uplo, int64_t rows, int64_t order, const REAL *t, int64_t ldt,
                          REAL *b, int64_t ldb)
{
    bool upper = uplo == 'U';
    REAL_BLAS(trsm)
    (CblasColMajor, CblasRight, upper ? CblasUpper : CblasLower, CblasNoTrans,
     upper ? CblasNonUnit : CblasUnit, (blasint)rows, (blasint)order, REAL_C(1.0), t, (blasint)ldt,
     b, (blasint)ldb);
}

void R(host__multiply_upper)(int64_t order, int64_t columns, const REAL *t, int64_t ldt, REAL *b,
                             int64_t ldb)
{
    REAL_BLAS(trmm)
    (CblasColMajor, CblasLeft, CblasUpper, CblasNoTrans, CblasNonUnit, (blasint)order,
     (blasint)columns, REAL_C(-1.0), t, (blasint)ldt, b, (blasint)ldb);
}

void R(host__subtract_product)(int64_t rows, int64_t columns, int64_t inner, const REAL *a,
                               int64_t lda, const REAL *b, int64_t ldb, REAL *c, int64_t ldc)
{
    REAL_BLAS(gemm)
    (CblasColMajor, CblasNoTrans, CblasNoTrans, (blasint)rows, (blasint)columns, (blasint)inner,
     REAL_C(-1.0), a, (blasint)lda, b, (blasint)ldb, REAL_C(1.0), c, (blasint)ldc);
}

void R(host__multiply_lower)(int64_t order, int64_t columns, const REAL *t, int64_t ldt, REAL *b,
                             int64_t ldb)
{
    REAL_BLAS(trmm)
    (CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (blasint)order,
     (blasint)columns, REAL_C(-1.0), t, (blasint)ldt, b, (blasint)ldb);
}

void R(host__multiply_transposed)(int64_t order, int64_t columns, const REAL *t, int64_t ldt,
                                  REAL *b, int64_t ldb)
{
    REAL_BLAS(trmm)
    (CblasColMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, (blasint)order,
     (blasint)columns, REAL_C(1.0), t, (blasint)ldt, b, (blasint)ldb);
}

void R(host__solve_right_lower)(bool transposed, int64_t rows, int64_t order, const REAL *t,
                                int64_t ldt, REAL *b, int64_t ldb)
{
    REAL_BLAS(trsm)
    (CblasColMajor, CblasRight, CblasLower, transposed ? CblasTrans : CblasNoTrans, CblasNonUnit,
     (blasint)rows, (blasint)order, REAL_C(1.0), t, (blasint)ldt, b, (blasint)ldb);
}

void R(host__subtract_outer)(int64_t rows, int64_t columns, int64_t inner, const REAL *a,
                             int64_t lda, const REAL *b, int64_t ldb, REAL *c, int64_t ldc)
{
    REAL_BLAS(gemm)
    (CblasColMajor, CblasNoTrans, CblasTrans, (blasint)rows, (blasint)columns, (blasint)inner,
     REAL_C(-1.0), a, (blasint)lda, b, (blasint)ldb, REAL_C(1.0), c, (blasint)ldc);
}

void R(host__subtract_square)(int64_t order, int64_t inner, const REAL *a, int64_t lda, REAL *c,
                              int64_t ldc)
{
    REAL_BLAS(syrk)
    (CblasColMajor, CblasLower, CblasNoTrans, (blasint)order, (blasint)inner, REAL_C(-1.0), a,
     (blasint)lda, REAL_C(1.0), c, (blasint)ldc);
}

void R(host__add_inner)(int64_t rows, int64_t columns, int64_t inner, const REAL *a, int64_t lda,
                        const REAL *b, int64_t ldb, REAL *c, int64_t ldc)
{
    REAL_BLAS(gemm)
    (CblasColMajor, CblasTrans, CblasNoTrans, (blasint)rows, (blasint)columns, (blasint)inner,
     REAL_C(1.0), a, (blasint)lda, b, (blasint)ldb, REAL_C(1.0), c, (blasint)ldc);
}

void R(host__add_square)(int64_t order, int64_t inner, const REAL *a, int64_t lda, REAL *c,
                         int64_t ldc)
{
    REAL_BLAS(syrk)
    (CblasColMajor, CblasLower, CblasTrans, (blasint)order, (blasint)inner, REAL_C(1.0), a,
     (blasint)lda, REAL_C(1.0), c, (blasint)ldc);
}

void R(host__lauum)(int64_t n, REAL *t, int64_t ld)
{
    lapack_int order = (lapack_int)n, ldt = (lapack_int)ld, info = 0;
    REAL_LAPACK(lauum)("L", &order, t, &ldt, &info);
    assert(info == 0);
}

void R(host__qr_panel)(int64_t rows, int64_t columns, REAL *a, int64_t ld, REAL *s, int64_t lds)
{
    lapack_int m = (lapack_int)rows, n = (lapack_int)columns, info = 0;
    lapack_int lda = (lapack_int)ld, ldt = (lapack_int)lds;
    REAL_LAPACK(geqrt3)(&m, &n, a, &lda, s, &ldt, &info);
    assert(info == 0);
}

void R(host__qr_square)(int64_t rows, int64_t order, const REAL *v, int64_t ldv, const REAL *tau,
                        REAL *s, int64_t lds)
{
    lapack_int m = (lapack_int)rows, k = (lapack_int)order;
    lapack_int lda = (lapack_int)ldv, ldt = (lapack_int)lds;
    REAL_LAPACK(larft)("F", "C", &m, &k, v, &lda, tau, s, &ldt);
}

void R(host__qr_apply)(char side, int64_t rows, int64_t columns, int64_t order, const REAL *v,
                       int64_t ldv, const REAL *s, int64_t lds, REAL *c, int64_t ldc, REAL *work)
{
    lapack_int m = (lapack_int)rows, n = (lapack_int)columns, k = (lapack_int)order;
    lapack_int lda = (lapack_int)ldv, ldt = (lapack_int)lds, ld = (lapack_int)ldc;
    lapack_int length = side == 'L' ? n : m;
    REAL_LAPACK(larfb)
    (&side, "T", "F", "C", &m, &n, &k, v, &lda, s, &ldt, c, &ld, work, &length);
}
