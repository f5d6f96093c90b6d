/* gpu/cuda/structured/cholesky_kernels.cuh: the kernels of cholesky.h. W is n x n; its columns go
 * by groups, and those by corners (cholesky_corner.cuh). The last part of grids numbers the
 * matrices.
 *
 * Where matrices are small, V V^T is made of tiles of 64 x 64, in one launch for all of a group: so
 * they keep the device busy where cuBLAS's products, one for each strip of columns, would not.
 */
#ifndef GPU_CUDA_STRUCTURED_CHOLESKY_KERNELS_CUH
#define GPU_CUDA_STRUCTURED_CHOLESKY_KERNELS_CUH

#include "gpu/cuda/structured/cholesky.h"
#include "gpu/cuda/structured/cholesky_corner.cuh"
#include "gpu/cuda/gemm/simt.cuh"

#define CUDA__CHOL_TILE 64
#define CUDA__CHOL_THREADS 256

/* Tiles of CUDA__CHOL_TILE, and smaller ones, of which there are more. Turned: of a product whose
 * second factor is stored transposed. */
template <typename T, bool Turned>
using cuda__chol_shape = cuda__own_shape<T, 2, 2, 2, 2, 3, 32, Turned>;
template <typename T, bool Turned>
using cuda__chol_small_shape = cuda__own_shape<T, 1, 1, 2, 2, 3, 64, Turned>;

/* Numbers in device memory, matrices `step` apart. */
template <typename T> struct cuda__chol_part {
    T *at;
    int64_t stride, step;

    __device__ __forceinline__ T *of(int64_t matrix, int64_t row, int64_t column) const
    {
        return at + matrix * step + row * stride + column;
    }
};

/* The corner of `size` rows at `first` becomes M's. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__CHOL_WARPS *CUDA__WARP, 1)
    cuda__chol_corner_kernel(const cuda__chol_part<T> w, int64_t first, int size, int32_t *failed)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__chol_corner<T> corner = {*(cuda__chol_corner_memory<T> *)cuda__memory, size,
                                   (int)threadIdx.x / CUDA__WARP, (int)threadIdx.x % CUDA__WARP};
    if (!corner.run(w.of(blockIdx.x, first, first), w.stride) && corner.lane == 0)
        failed[blockIdx.x] = 1;
}

/* V (n x group), which is the group's part of W = W +- V V^T: M's rows, turned, above where the
 * group ends, and -L below. In the rows from a corner on, and in its columns: what is M's, turned,
 * and zeros. 32 columns x 8 rows of threads; a block 32 x 32 numbers. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__CHOL_THREADS)
    cuda__chol_turn_kernel(const cuda__chol_part<T> m, const cuda__chol_part<T> v, int size)
{
    __shared__ T tile[CUDA__WARP][CUDA__WARP + 1];
    int lane = (int)threadIdx.x % CUDA__WARP, group = (int)threadIdx.x / CUDA__WARP;
    int across = size / CUDA__WARP, row = (int)blockIdx.x / across * CUDA__WARP;
    int column = (int)blockIdx.x % across * CUDA__WARP;
    for (int i = group; i < CUDA__WARP; i += CUDA__CHOL_THREADS / CUDA__WARP)
        tile[i][lane] = row < size ? *m.of(blockIdx.y, column + i, row + lane) : T(0);
    __syncthreads();
    for (int i = group; i < CUDA__WARP; i += CUDA__CHOL_THREADS / CUDA__WARP)
        *v.of(blockIdx.y, row + i, column + lane) = tile[lane][i];
}

/* Of W's lower triangle the group's rows and columns, from .. end - 1, become zero. A block a row,
 * from `from` on. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__CHOL_THREADS)
    cuda__chol_clear_kernel(const cuda__chol_part<T> w, int64_t from, int64_t end)
{
    typedef typename cuda__real<T>::vector vector;
    constexpr int width = cuda__real<T>::width, step = CUDA__CHOL_THREADS * width;
    int64_t i = from + blockIdx.x, first = i < end ? 0 : from;
    T *row = w.of(blockIdx.y, i, 0);
    for (int64_t j = first + (int)threadIdx.x * width; j < end; j += step)
        *(vector *)(row + j) = vector{};
}

/* W's lower triangle: + V V^T in the columns before `end`, - V V^T behind; columns end .. rest - 1
 * are left alone. */
template <typename T> struct cuda__chol_update {
    cuda__chol_part<T> w, v;
    int64_t n, group, end, rest;
};

template <typename T>
static __global__ void __launch_bounds__(cuda__chol_shape<T, true>::threads,
                                         cuda__chol_shape<T, true>::blocks)
    cuda__chol_update_kernel(const cuda__chol_update<T> of)
{
    typedef cuda__chol_shape<T, true> shape;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    int64_t row = (int64_t)((sqrt(8.0 * blockIdx.x + 1) - 1) / 2);
    row -= row * (row + 1) / 2 > blockIdx.x;
    row += (row + 1) * (row + 2) / 2 <= blockIdx.x;
    int64_t column = (blockIdx.x - row * (row + 1) / 2) * CUDA__CHOL_TILE;
    row *= CUDA__CHOL_TILE;
    if (column >= of.end && column < of.rest)
        return;
    cuda__operand<T> v = {of.v.at, of.v.stride, of.v.step, false, true}, turned = v;
    turned.transposed = true;
    cuda__operand<T> w = {of.w.at, of.w.stride, of.w.step, false, true};
    cuda__own_product<T> product = {
        v, turned, w, of.n, of.n, of.group, 1, column < of.end ? T(1) : T(-1), T(1)};
    cuda__own_block<shape> block = {product, *(typename shape::shared *)cuda__memory, row, column};
    block.run(blockIdx.y);
}

#endif
