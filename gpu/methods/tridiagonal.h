/* tridiagonal: the dense inverse, or a part of it, of a matrix given by its three diagonals. */
#ifndef GPU_METHODS_TRIDIAGONAL_H
#define GPU_METHODS_TRIDIAGONAL_H

/* Beyond this order the whole inverse is of no size that is answered. */
#define METHOD_TRIDIAGONAL_INVERSE_ORDER_MAX 32768

enum method_tridiagonal_input {
    METHOD_TRIDIAGONAL_DL,
    METHOD_TRIDIAGONAL_D,
    METHOD_TRIDIAGONAL_DU
};

enum method_tridiagonal_output {
    METHOD_TRIDIAGONAL_INVERSE,
    METHOD_TRIDIAGONAL_DIAGONAL,
    METHOD_TRIDIAGONAL_INFO,
    METHOD_TRIDIAGONAL_RCOND,
    METHOD_TRIDIAGONAL_ALGORITHM,
    METHOD_TRIDIAGONAL_GENERATORS,
    METHOD_TRIDIAGONAL_EXPONENTS
};

enum method_tridiagonal_option {
    METHOD_TRIDIAGONAL_VARIANT,
    METHOD_TRIDIAGONAL_ROWS,
    METHOD_TRIDIAGONAL_COLUMNS
};

/* The choices of variant, in the order of their names in tridiagonal.c. */
enum method_tridiagonal_variant {
    METHOD_TRIDIAGONAL_AUTO,
    METHOD_TRIDIAGONAL_SHERMAN_MORRISON,
    METHOD_TRIDIAGONAL_TWO_SWEEP,
    METHOD_TRIDIAGONAL_PIVOTED
};

#endif
