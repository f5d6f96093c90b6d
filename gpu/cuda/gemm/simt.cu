/* gpu/cuda/gemm/simt.cu: see simt.h. */
#include "gpu/cuda/gemm/simt.h"

#include "gpu/cuda/base/anchor.cuh"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/gemm/simt.cuh"

#define MATRICES_MAX 65535 /* of blockIdx.y; more are gone round */

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

/* The tuning table's shapes and sizes, by their names. */
template <typename T> struct shapes {
#define CUDA__OWN_SHAPE(name, ...) typedef cuda__own_shape<T, __VA_ARGS__> name;
#define CUDA__OWN_SIZE(name, value) static constexpr int64_t name = value;
#include "gpu/cuda/tuning/h200/gemm.cuh"
#undef CUDA__OWN_SHAPE
#undef CUDA__OWN_SIZE
};

static cudaError_t of_type(const cuda__own_product<double> &of, cudaStream_t stream)
{
    typedef shapes<double> shape;
    if (of.rows <= shape::min_side_max && of.columns <= shape::min_side_max)
        return by<shape::min>(of, stream);
    if (of.inner < shape::deep_inner_min)
        return by<shape::square>(of, stream);
    return tiles<shape::deep>(of) >= cuda__multiprocessors() ? by<shape::deep>(of, stream)
                                                             : by<shape::small>(of, stream);
}

static cudaError_t of_type(const cuda__own_product<float> &of, cudaStream_t stream)
{
    typedef shapes<float> shape;
    const int64_t many = cuda__multiprocessors();
    if (of.rows <= shape::min_side_max && of.columns <= shape::min_side_max)
        return by<shape::min>(of, stream);
    if (of.rows >= shape::large_side_min && of.columns >= shape::large_side_min &&
        tiles<shape::large>(of) >= many)
        return by<shape::large>(of, stream);
    if (of.inner < shape::deep_inner_min || tiles<shape::square>(of) >= many)
        return by<shape::square>(of, stream);
    return tiles<shape::middle>(of) >= many / 2 ? by<shape::middle>(of, stream)
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
