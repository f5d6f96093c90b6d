/* ism: inverses of A0 + X Y^T by the inverse Sherman-Morrison algorithms, and updates of a known
 * inverse. */
#ifndef GPU_METHODS_ISM_H
#define GPU_METHODS_ISM_H

#include "gpu/method.h"

enum method_ism_input {
    METHOD_ISM_A,
    METHOD_ISM_X,
    METHOD_ISM_Y,
    METHOD_ISM_A0_SCALE, /* three shapes of one input */
    METHOD_ISM_A0_DIAGONAL,
    METHOD_ISM_A0_DENSE,
    METHOD_ISM_A0_INVERSE
};

enum method_ism_output {
    METHOD_ISM_INVERSE = METHOD_OUTPUT_INVERSE,
    METHOD_ISM_INFO = METHOD_OUTPUT_INFO,
    METHOD_ISM_RCOND = METHOD_OUTPUT_RCOND,
    METHOD_ISM_ALGORITHM = METHOD_OUTPUT_ALGORITHM,
    METHOD_ISM_DET_RATIO,
    METHOD_ISM_U,
    METHOD_ISM_R,
    METHOD_ISM_V,
    METHOD_ISM_RCOND_CAPACITANCE,
    METHOD_ISM_RESIDUAL
};

enum method_ism_option {
    METHOD_ISM_VARIANT,
    METHOD_ISM_BLOCK_SIZE /* 0: chosen */
};

/* The choices of variant, in the order of their names in ism.c. */
enum method_ism_variant {
    METHOD_ISM_AUTO,
    METHOD_ISM_SINGLE,
    METHOD_ISM_BLOCK,
    METHOD_ISM_REDUCED_MEMORY
};

#define METHOD_ISM_ORDER_MAX 32768

/* An answer with a diagonal A0 that has lost digits is computed anew in double-double: to so many
 * columns of X and Y where it fails its check, for with more lu is as good and faster; and to so
 * many where RCOND is small, for A, formed, has lost the digits. */
static inline int64_t method_ism_dd_short(int64_t n)
{
    return n / 8 > 8 ? n / 8 : 8;
}
static inline int64_t method_ism_dd_max(int64_t n)
{
    return n / 8 > 64 ? n / 8 : 64;
}

/* With A0 and A0_INVERSE an update of rank 0 gives A0_INVERSE back where |I - A0_INVERSE A0| is so
 * many n eps |A0| |A0_INVERSE| at most; else it makes it anew. lu leaves less as a rule. */
#define METHOD_ISM_FRESH_RATIO 0.25

#define METHOD_ISM_XY (METHOD_INPUT(METHOD_ISM_X) | METHOD_INPUT(METHOD_ISM_Y))

#endif
