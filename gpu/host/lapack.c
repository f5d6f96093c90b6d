/* gpu/host/lapack.c: the only file that includes cblas.h and lapacke.h. See lapack.h.
 *
 * The Fortran entry points are called directly: LAPACKE's own functions look for NaN in every
 * argument and allocate workspace, both done already.
 *
 * Threads: any, each on its own matrices. OpenBLAS lends every call a buffer from a table of its
 * own that holds a bounded number of threads; main.c keeps within it.
 */
#include "gpu/host/lapack.h"

#include <assert.h>
#include <cblas.h>
#include <lapacke.h>
#include <stdbool.h>

/* getri's block size in every precision, and the order up to which it works unblocked. */
#define GETRI_BLOCK 64

void host__lapack_init(void)
{
    openblas_set_num_threads(1);
}

const char *host__lapack_cpu(void)
{
    return openblas_get_corename();
}

int64_t host__getri_work(int64_t n)
{
    return n <= GETRI_BLOCK ? n : n * GETRI_BLOCK;
}

#define REAL_FILE "gpu/host/lapack.inc"
#include "gpu/host/both.inc"
