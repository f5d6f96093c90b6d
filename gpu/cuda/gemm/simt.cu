/* gpu/cuda/gemm/simt.cu: see simt.h. */
#include "gpu/cuda/gemm/simt.h"

#include "gpu/cuda/base/anchor.cuh"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/gemm/simt.cuh"

#define MATRICES_MAX 65535 /* of blockIdx.y; more are gone round */
#define BLOCKS_MANY 132    /* the multiprocessors of an H200 */

template <typename T>
static cuda__operand<T> operand(const struct cuda_matrices &of, bool transposed)
{
    bool in_pieces = (uintptr_t)of.at % 16 == 0 && of.stride * sizeof(T) % 16 == 0 &&
                     of.step * sizeof(T) % 16 == 0;
    return cuda__operand<T>{(T *)of.at, of.stride, of.step, transposed, in_pieces};
}

/* Tiles of all matrices. */
template <typename Shape> static int64_t tiles(const cuda__own_product<typename Shape::T> &of)
{
    return (of.rows + Shape::rows - 1) / Shape::rows *
           ((of.columns + Shape::columns - 1) / Shape::columns) * of.count;
}

template <typename Shape>
static cudaError_t by(const cuda__own_product<typename Shape::T> &of, cudaStream_t stream)
{
    const int64_t blocks = tiles<Shape>(of) / of.count;
    if (blocks > INT32_MAX)
        return cudaErrorInvalidValue;
    unsigned matrices = (unsigned)(of.count < MATRICES_MAX ? of.count : MATRICES_MAX);
    return cuda__follow(cuda__own_product_kernel<Shape>, dim3((unsigned)blocks, matrices),
                        Shape::threads, sizeof(typename Shape::shared), cuda__overlaps(), stream,
                        of);
}

template <typename T> struct shapes {
    typedef cuda__own_shape<T, 1, 1, 2, 2, 4> least;
    typedef cuda__own_shape<T, 1, 1, 2, 2, 3, 32> small; /* of sums of 32 numbers and more */
    typedef cuda__own_shape<T, 2, 1, 2, 2, 2, 32> middle;
    typedef cuda__own_shape<T, 2, 2, 2, 2, 3> square;
    typedef cuda__own_shape<T, 2, 2, 2, 2, 2, 32> deep;
    typedef cuda__own_shape<T, 4, 2, 2, 2, 2> large;
};

/* The larger the tiles, the less is read; but few of them leave multiprocessors idle. Chosen by
 * timing on an H200, 2026-11-23; they leave the bits alone. */
static cudaError_t of_type(const cuda__own_product<double> &of, cudaStream_t stream)
{
    typedef shapes<double> shape;
    if (of.rows <= 32 && of.columns <= 32)
        return by<shape::least>(of, stream);
    if (of.inner < 32)
        return by<shape::square>(of, stream);
    return tiles<shape::deep>(of) >= BLOCKS_MANY ? by<shape::deep>(of, stream)
                                                 : by<shape::small>(of, stream);
}

static cudaError_t of_type(const cuda__own_product<float> &of, cudaStream_t stream)
{
    typedef shapes<float> shape;
    if (of.rows <= 32 && of.columns <= 32)
        return by<shape::least>(of, stream);
    if (of.rows > 256 && of.columns > 256 && tiles<shape::large>(of) >= BLOCKS_MANY)
        return by<shape::large>(of, stream);
    if (of.inner < 32 || tiles<shape::square>(of) >= BLOCKS_MANY)
        return by<shape::square>(of, stream);
    return tiles<shape::middle>(of) >= BLOCKS_MANY / 2 ? by<shape::middle>(of, stream)
                                                       : by<shape::small>(of, stream);
}

template <typename T> static cudaError_t start(const struct cuda_product *from, cudaStream_t stream)
{
    cuda__own_product<T> of = {operand<T>(from->a, from->transpose_a),
                               operand<T>(from->b, from->transpose_b),
                               operand<T>(from->c, false),
                               from->rows,
                               from->columns,
                               from->inner,
                               from->count,
                               (T)from->alpha,
                               (T)from->beta};
    return of_type(of, stream);
}

cudaError_t cuda__product_own(const struct cuda_product *product, cudaStream_t stream)
{
    return product->precision == PRECISION_FP32 ? start<float>(product, stream)
                                                : start<double>(product, stream);
}
