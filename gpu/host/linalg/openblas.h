/* gpu/host/linalg/openblas.h: the door to OpenBLAS: its headers, for lapack.c and family.c. */
#ifndef GPU_HOST_LINALG_OPENBLAS_H
#define GPU_HOST_LINALG_OPENBLAS_H

#include <cblas.h>
#include <lapacke.h>

#endif
