/* lu_factor: the factors themselves, P A = L U, as LAPACK's getrf returns them. */
#ifndef GPU_METHODS_LU_FACTOR_H
#define GPU_METHODS_LU_FACTOR_H

enum method_lu_factor_output {
    METHOD_LU_FACTOR_LU,
    METHOD_LU_FACTOR_PIVOTS,
    METHOD_LU_FACTOR_INFO
};

#endif
