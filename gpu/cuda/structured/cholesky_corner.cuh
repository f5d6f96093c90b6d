/* gpu/cuda/structured/cholesky_corner.cuh: the inverse of the Cholesky factor of a diagonal block,
 * by one block of threads in shared memory.
 *
 * The block goes by 32 columns as in cholesky.h a matrix: a warp makes the inverse of 32 x 32
 * numbers' factor in registers, a column a lane; the rows below become L's; what L does to all rows
 * below is done by all warps, but for the one that goes on with the next 32 x 32 numbers at once.
 * That chain bounds it: a step a column, of which each waits for a reciprocal and a round through
 * shared memory.
 *
 * In a row of 32 x 32 blocks that is done, what L does to the columns behind is kept above the
 * diagonal, where the block itself has nothing: the row is then the second factor of all products.
 * Device code.
 */
#ifndef GPU_CUDA_STRUCTURED_CHOLESKY_CORNER_CUH
#define GPU_CUDA_STRUCTURED_CHOLESKY_CORNER_CUH

#include "gpu/cuda/structured/cholesky.h"
#include "gpu/cuda/base/mma_tile.cuh"

#define CUDA__CHOL_CORNER CUDA_CHOLESKY_CORNER
#define CUDA__CHOL_PANEL 32 /* rows that are taken together; a lane each */
#define CUDA__CHOL_WARPS 8

template <typename T> struct cuda__chol_corner_memory {
    static constexpr int line = cuda__mma_line<T>::of_factor(CUDA__CHOL_CORNER);
    static constexpr int short_line = cuda__mma_line<T>::of_factor(CUDA__CHOL_PANEL);
    alignas(16) T c[CUDA__CHOL_CORNER * line];
    alignas(16) T l[CUDA__CHOL_CORNER * short_line];     /* -L, of rows below the panel */
    alignas(16) T turned[CUDA__CHOL_PANEL * short_line]; /* the panel's M, transposed */
    alignas(16) T column[2][CUDA__CHOL_PANEL];
};

/* One panel: its 32 x 32 numbers in the registers of a warp. Lane c has column c of the upper
 * triangle, and in the rows that are done column c of M without the roots of the pivots: L D L^T
 * with ones on L's diagonal. */
template <typename T> struct cuda__chol_panel {
    typedef typename cuda__real<T>::vector vector;
    static constexpr int width = cuda__real<T>::width, order = CUDA__CHOL_PANEL;
    alignas(16) T a[order];
    T pivot; /* of the lane's column */

    /* Column c of the upper triangle is row c of the lower one. */
    __device__ __forceinline__ void load(const T *block, int line, int lane)
    {
#pragma unroll
        for (int r = 0; r < order; r += width)
            *(vector *)(a + r) = *(const vector *)(block + lane * line + r);
    }

    /* Row `step`, which all lanes have shared, is taken from the rows below it. */
    __device__ __forceinline__ bool eliminate(int step, const T *shared, int lane)
    {
        T d = shared[step];
        bool positive = d > 0;
        T inverse = cuda__real<T>::reciprocal(positive ? d : T(1));
        T factor = (lane == step ? T(1) : a[step]) * inverse;
        pivot = lane == step ? d : pivot;
#pragma unroll
        for (int r = 0; r < order; r++) {
            if (r > step)
                a[r] = fma(-shared[r], factor, lane == step ? T(0) : a[r]);
        }
        return positive;
    }

    /* False: a pivot is not positive. */
    __device__ __forceinline__ bool run(T (*column)[order], int lane)
    {
        bool good = true;
#pragma unroll
        for (int step = 0; step < order; step++) {
            T *shared = column[step % 2];
            shared[lane] = a[step];
            __syncwarp();
            good = eliminate(step, shared, lane) && good;
        }
        return good;
    }

    /* M, with zeros above the diagonal, and its transpose. */
    __device__ __forceinline__ void store(T *block, int line, T *turned, int turned_line, T *column,
                                          int lane)
    {
        T root = 1 / (T)sqrt(pivot);
        __syncwarp();
        column[lane] = root;
        __syncwarp();
#pragma unroll
        for (int r = 0; r < order; r++) {
            a[r] = lane == r ? root : lane < r ? a[r] * column[r] : T(0);
            block[r * line + lane] = a[r];
        }
#pragma unroll
        for (int r = 0; r < order; r += width)
            *(vector *)(turned + lane * turned_line + r) = *(const vector *)(a + r);
    }
};

template <typename T> struct cuda__chol_corner {
    typedef cuda__chol_corner_memory<T> memory_type;
    typedef typename cuda__real<T>::vector vector;
    typedef cuda__mma_tile<T, 1, 2> tile; /* 16 x 32 */
    static constexpr int width = cuda__real<T>::width, order = CUDA__CHOL_PANEL;
    static constexpr int line = memory_type::line, short_line = memory_type::short_line;
    static constexpr int threads = CUDA__CHOL_WARPS * CUDA__WARP;

    memory_type &memory;
    int size, warp, lane;

    __device__ __forceinline__ T *at(int row, int column)
    {
        return memory.c + row * line + column;
    }

    /* Rows first .. end - 1 of the lower triangle, in whole panels, by `warps` warps. */
    __device__ __forceinline__ void load_rows(const T *from, int64_t stride, int first, int end,
                                              int warps)
    {
        for (int i = first; i < end; i += warps) {
            for (int j = lane * width; j < (i / order + 1) * order; j += CUDA__WARP * width)
                cuda__copy_async<16>(at(i, j), from + i * stride + j);
        }
        cuda__copy_arrive();
    }

    /* The first panel by the warp that begins with it, all else by the others. */
    __device__ __forceinline__ void load(const T *from, int64_t stride)
    {
        if (warp == 0)
            load_rows(from, stride, 0, order, 1);
        else
            load_rows(from, stride, order + warp - 1, size, CUDA__CHOL_WARPS - 1);
        __syncwarp();
    }

    /* A panel's rows, with zeros above the diagonal, by `warps` warps, this one being `own`. */
    __device__ __forceinline__ void store(T *to, int64_t stride, int first, int own, int warps)
    {
        for (int i = first + own; i < first + order; i += warps) {
            for (int j = lane * width; j < size; j += CUDA__WARP * width) {
                vector piece = {};
                if (j < first + order)
                    piece = *(const vector *)at(i, j);
                *(vector *)(to + i * stride + j) = piece;
            }
        }
    }

    /* By one warp. */
    __device__ __forceinline__ bool panel(int first)
    {
        cuda__chol_panel<T> own;
        own.load(at(first, first), line, lane);
        __syncwarp();
        bool good = own.run(memory.column, lane);
        own.store(at(first, first), line, memory.turned, short_line, memory.column[0], lane);
        __syncwarp();
        return good;
    }

    /* 16 rows below the panel become L's. */
    __device__ __forceinline__ void make_l(int first, int row)
    {
        tile product;
        product.each(lane, [&](int, int, T *to) { *(vector *)to = vector{}; });
        product.template multiply<order>(at(row, first), line, memory.turned, short_line, lane);
        product.each(lane, [&](int i, int j, T *from) {
#pragma unroll
            for (int v = 0; v < width; v++) {
                *at(first + j + v, row + i) = from[v];
                memory.l[(row + i) * short_line + j + v] = -from[v];
            }
        });
    }

    /* 16 columns of the panel's rows become M's. */
    __device__ __forceinline__ void make_m(int first, int column)
    {
        cuda__mma_tile<T, 2, 1> product;
        product.each(lane, [&](int, int, T *to) { *(vector *)to = vector{}; });
        product.template multiply<order>(at(first, first), line, at(first, column), line, lane);
        __syncwarp();
        cuda__mma_store(product, at(first, column), line, lane);
    }

    /* Some rows below the panel, in columns of one panel. The product is added up by itself: many
     * small numbers would leave no mark on a large one, one by one. */
    template <typename Tile> __device__ __forceinline__ void bring(int first, int row, int column)
    {
        Tile product;
        bool fresh = column / order == first / order;
        product.each(lane, [&](int, int, T *to) { *(vector *)to = vector{}; });
        product.template multiply<order>(memory.l + row * short_line, short_line, at(first, column),
                                         line, lane);
        __syncwarp();
        product.each(lane, [&](int i, int j, T *from) {
            T *to = at(row + i, column + j);
#pragma unroll
            for (int v = 0; v < width; v++)
                to[v] = fresh ? from[v] : to[v] + from[v];
        });
    }

    /* The next panel's own columns, by four warps. */
    __device__ __forceinline__ void bring_next(int first)
    {
        typedef cuda__mma_tile<T, 1, 1> quarter;
        int next = first + order, half = warp % 2 * CUDA__UNIT;
        if (warp < 4 && next < size)
            bring<quarter>(first, next + warp / 2 * CUDA__UNIT, next + half);
    }

    /* All rows below but those of the next panel's own columns, by all warps but the first. */
    __device__ __forceinline__ void bring_others(int first)
    {
        int next = first + order, count = 0;
        for (int row = next; row < size; row += CUDA__UNIT) {
            for (int column = 0; column <= row / order * order; column += order) {
                if (row < next + order && column == next)
                    continue;
                if (count++ % (CUDA__CHOL_WARPS - 1) == warp - 1)
                    bring<tile>(first, row, column);
            }
        }
    }

    /* The block goes from W and back. False, in the first warp: a pivot is not positive. */
    __device__ __forceinline__ bool run(T *w, int64_t stride)
    {
        load(w, stride);
        bool good = warp > 0 || panel(0);
        __syncthreads();
        for (int first = 0; first < size; first += order) {
            int below = (size - first - order) / CUDA__UNIT, left = first / CUDA__UNIT;
            for (int t = warp; t < below + left; t += CUDA__CHOL_WARPS) {
                if (t < below)
                    make_l(first, first + order + t * CUDA__UNIT);
                else
                    make_m(first, (t - below) * CUDA__UNIT);
            }
            __syncthreads();
            bring_next(first);
            __syncthreads();
            if (first + order == size) {
                store(w, stride, first, warp, CUDA__CHOL_WARPS);
            } else if (warp == 0) {
                good = panel(first + order) && good;
            } else {
                bring_others(first);
                store(w, stride, first, warp - 1, CUDA__CHOL_WARPS - 1);
            }
            __syncthreads();
        }
        return good;
    }
};

#endif
