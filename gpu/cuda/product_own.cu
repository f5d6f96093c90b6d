/* gpu/cuda/product_own.cu: see product_own.h. */
#include "gpu/cuda/product_own.h"

#include "gpu/cuda/anchor.cuh"
#include "gpu/cuda/launch.cuh"
#include "gpu/cuda/product_own.cuh"

#define MATRICES_MAX 65535 /* of blockIdx.y; more are gone round */

template <typename T>
static cuda__operand<T> operand(const struct cuda_matrices &of, bool transposed)
{
    bool in_pieces = (uintptr_t)of.at % 16 == 0 && of.stride * sizeof(T) % 16 == 0 &&
                     of.step * sizeof(T) % 16 == 0;
    return cuda__operand<T>{(T *)of.at, of.stride, of.step, transposed, in_pieces};
}

template <typename Shape>
static cudaError_t by(const cuda__own_product<typename Shape::T> &of, cudaStream_t stream)
{
    int64_t tiles = (of.rows + Shape::rows - 1) / Shape::rows *
                    ((of.columns + Shape::columns - 1) / Shape::columns);
    if (tiles > INT32_MAX)
        return cudaErrorInvalidValue;
    unsigned matrices = (unsigned)(of.count < MATRICES_MAX ? of.count : MATRICES_MAX);
    return cuda__start(cuda__own_product_kernel<Shape>, dim3((unsigned)tiles, matrices),
                       Shape::threads, sizeof(typename Shape::shared), stream, of);
}

/* The smallest tiles that leave little of the matrix's edge empty; larger ones read less. Chosen by
 * counting, 2026-11-21; they leave the bits alone. */
template <typename T>
static cudaError_t of_type(const struct cuda_product *from, cudaStream_t stream)
{
    const int rows = sizeof(T) == 8 ? 2 : 4; /* units of a warp's tile */
    cuda__own_product<T> of = {operand<T>(from->a, from->transpose_a),
                               operand<T>(from->b, from->transpose_b),
                               operand<T>(from->c, false),
                               from->rows,
                               from->columns,
                               from->inner,
                               from->count,
                               (T)from->alpha,
                               (T)from->beta};
    if (of.rows <= 32 && of.columns <= 32)
        return by<cuda__own_shape<T, 1, 1, 2, 2, 4>>(of, stream);
    if (of.rows <= 256 || of.columns <= 256)
        return by<cuda__own_shape<T, 2, 2, 2, 2, 3>>(of, stream);
    return by<cuda__own_shape<T, rows, 2, 8 / rows, 2, 2>>(of, stream);
}

cudaError_t cuda__product_own(const struct cuda_product *product, cudaStream_t stream)
{
    return product->precision == PRECISION_FP32 ? of_type<float>(product, stream)
                                                : of_type<double>(product, stream);
}
