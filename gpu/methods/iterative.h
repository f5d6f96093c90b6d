/* iterative: a dense inverse by products of matrices alone, from a first or a known approximation.
 */
#ifndef GPU_METHODS_ITERATIVE_H
#define GPU_METHODS_ITERATIVE_H

#include "gpu/method.h"

/* The longest RESIDUAL_HISTORY. */
#define METHOD_ITERATIVE_ITERATIONS_MAX 1000

enum method_iterative_input {
    METHOD_ITERATIVE_A,
    METHOD_ITERATIVE_V0
};

enum method_iterative_output {
    METHOD_ITERATIVE_INVERSE = METHOD_OUTPUT_INVERSE,
    METHOD_ITERATIVE_INFO = METHOD_OUTPUT_INFO,
    METHOD_ITERATIVE_RCOND = METHOD_OUTPUT_RCOND,
    METHOD_ITERATIVE_ALGORITHM = METHOD_OUTPUT_ALGORITHM,
    METHOD_ITERATIVE_ITERATIONS,
    METHOD_ITERATIVE_RESIDUAL,
    METHOD_ITERATIVE_HISTORY
};

enum method_iterative_option {
    METHOD_ITERATIVE_TOLERANCE,
    METHOD_ITERATIVE_MAX_ITERATIONS,
    METHOD_ITERATIVE_SCHEME,
    METHOD_ITERATIVE_INITIAL
};

/* The choices of scheme, in the order of their names in iterative.c. */
enum method_iterative_scheme {
    METHOD_ITERATIVE_SCHEME_AUTO,
    METHOD_ITERATIVE_NEWTON_SCHULZ, /* order 2, 2 products */
    METHOD_ITERATIVE_CHEBYSHEV,     /* order 3, 3 products */
    METHOD_ITERATIVE_ORDER5,        /* 4 products */
    METHOD_ITERATIVE_ORDER7,        /* 5 products */
    METHOD_ITERATIVE_ORDER7_HORNER, /* 9 products */
    METHOD_ITERATIVE_ORDER19,       /* 7 products */
    METHOD_ITERATIVE_SCHEMES
};

/* The choices of initial. */
enum method_iterative_initial {
    METHOD_ITERATIVE_INITIAL_AUTO,
    METHOD_ITERATIVE_LOW_PRECISION,
    METHOD_ITERATIVE_DIAGONAL,
    METHOD_ITERATIVE_TRANSPOSE,
    METHOD_ITERATIVE_SCALED_IDENTITY,
    METHOD_ITERATIVE_INITIALS
};

#endif
