/* gpu/cuda/gemm/simt.cuh: the kernel of simt.h.
 *
 * A block has a tile of C. Pieces of op(A) and op(B), `inner` indices deep, go through shared
 * memory double-buffered, with zeros where the matrices end; what is not laid out in pieces
 * of 16 bytes goes number by number, and what is stored transposed is turned on its way. Blocks of
 * one column of the grid go round the matrices.
 *
 * Cost: A is read once a column of tiles, B once a row of tiles, C written once, and read unless
 * beta is 0. Turned operands have eight-way bank conflicts in shared memory. Device code.
 */
#ifndef GPU_CUDA_GEMM_SIMT_CUH
#define GPU_CUDA_GEMM_SIMT_CUH

#include "gpu/cuda/base/mma_tile.cuh"

/* One operand, in numbers of type T. */
template <typename T> struct cuda__operand {
    T *at;
    int64_t stride, step;
    bool transposed;
    bool in_pieces; /* every row of every matrix begins at 16 bytes */
};

template <typename T> struct cuda__own_product {
    cuda__operand<T> a, b, c;
    int64_t rows, columns, inner, count;
    T alpha, beta;
};

/* A block's tile: WarpRows x WarpColumns warps of Rows x Columns units. Blocks: of a
 * multiprocessor, at least. Inner: indices staged together. Turned: B is stored transposed, and
 * lies so in shared memory too. */
template <typename T_, int Rows, int Columns, int WarpRows, int WarpColumns, int Blocks,
          int Inner = 16, bool Turned = false>
struct cuda__own_shape {
    typedef T_ T;
    typedef cuda__mma_tile<T, Rows, Columns> tile;
    static constexpr int inner = Inner;
    static constexpr int warp_columns = WarpColumns;
    static constexpr int threads = WarpRows * WarpColumns * CUDA__WARP, blocks = Blocks;
    static constexpr int tile_rows = Rows * CUDA__UNIT, tile_columns = Columns * CUDA__UNIT;
    static constexpr int rows = WarpRows * tile_rows, columns = WarpColumns * tile_columns;
    static constexpr int a_line = cuda__mma_line<T>::of_factor(inner);
    static constexpr bool turned = Turned;
    static constexpr int b_rows = Turned ? columns : inner, b_width = Turned ? inner : columns;
    static constexpr int b_line = cuda__mma_line<T>::of_factor(b_width);
    struct shared {
        alignas(16) T a[2][rows * a_line];
        alignas(16) T b[2][b_rows * b_line];
    };
};

template <typename Shape> struct cuda__own_block {
    typedef typename Shape::T T;
    typedef typename cuda__real<T>::vector vector;
    static constexpr int width = cuda__real<T>::width;

    const cuda__own_product<T> &of;
    typename Shape::shared &memory;
    int64_t row, column; /* of the block's tile */

    static __device__ __forceinline__ void stage_number(bool inside, T *to, const T *from)
    {
        if (inside)
            cuda__copy_async<(int)sizeof(T)>(to, from);
        else
            *to = 0;
    }

    /* Number by number; turned, from the side that lies together. */
    template <int Rows, int Width>
    static __device__ __forceinline__ void stage_numbers(T *to, int to_line, const T *from,
                                                         const cuda__operand<T> &x, int rows,
                                                         int columns)
    {
#pragma unroll 1
        for (int e = (int)threadIdx.x; e < Rows * Width; e += Shape::threads) {
            int i = x.transposed ? e % Rows : e / Width;
            int j = x.transposed ? e / Rows : e % Width;
            int64_t at = x.transposed ? j * x.stride + i : i * x.stride + j;
            stage_number(i < rows && j < columns, to + i * to_line + j, from + at);
        }
    }

    template <int Rows, int Width>
    static __device__ __forceinline__ void stage_pieces(T *to, int to_line, const T *from,
                                                        int64_t stride, int rows, int columns)
    {
        constexpr int pieces = Width / width;
#pragma unroll
        for (int e = 0; e < Rows * pieces; e += Shape::threads) {
            int at = e + (int)threadIdx.x, i = at / pieces, j = at % pieces * width;
            if (Rows * pieces % Shape::threads != 0 && at >= Rows * pieces)
                break;
            if (i < rows && j < columns)
                cuda__copy_async<16>(to + i * to_line + j, from + i * stride + j);
            else
                *(vector *)(to + i * to_line + j) = vector{};
        }
    }

    static __device__ __forceinline__ int at_most(int64_t count, int most)
    {
        return count < most ? (int)count : most;
    }

    /* Rows x Width numbers of op(X) from (i0, j0) on, of which `rows` and `columns` are left. */
    template <int Rows, int Width>
    static __device__ __forceinline__ void stage(T *to, int to_line, const cuda__operand<T> &x,
                                                 int64_t i0, int64_t j0, int64_t rows,
                                                 int64_t columns)
    {
        int down = at_most(rows, Rows), across = at_most(columns, Width);
        const T *from = x.at + (x.transposed ? j0 * x.stride + i0 : i0 * x.stride + j0);
        if (x.in_pieces && !x.transposed && across % width == 0)
            stage_pieces<Rows, Width>(to, to_line, cuda__renewed(from), x.stride, down, across);
        else
            stage_numbers<Rows, Width>(to, to_line, cuda__renewed(from), x, down, across);
    }

    /* Between two of these stands a barrier. */
    __device__ __forceinline__ void fetch(const cuda__operand<T> &a, const cuda__operand<T> &b,
                                          int64_t k, int turn)
    {
        stage<Shape::rows, Shape::inner>(memory.a[turn], Shape::a_line, a, row, k, of.rows - row,
                                         of.inner - k);
        cuda__operand<T> stored = b;
        stored.transposed = b.transposed != Shape::turned;
        if (Shape::turned)
            stage<Shape::columns, Shape::inner>(memory.b[turn], Shape::b_line, stored, column, k,
                                                of.columns - column, of.inner - k);
        else
            stage<Shape::inner, Shape::columns>(memory.b[turn], Shape::b_line, stored, k, column,
                                                of.inner - k, of.columns - column);
    }

    /* One number of C. */
    __device__ __forceinline__ T last(T sum, const T *c) const
    {
        return of.beta == 0 ? of.alpha * sum : fma(of.beta, *c, of.alpha * sum);
    }

    __device__ __forceinline__ void put(typename Shape::tile &tile, T *c, int rows, int columns,
                                        int lane)
    {
        c = cuda__renewed(c);
        tile.each(lane, [&](int i, int j, T *from) {
            T *to = c + i * of.c.stride + j;
            if (i >= rows)
                return;
            if (of.c.in_pieces && j + width <= columns) {
                vector piece = {};
                if (of.beta != 0)
                    piece = *(const vector *)to;
#pragma unroll
                for (int v = 0; v < width; v++)
                    ((T *)&piece)[v] = last(from[v], (const T *)&piece + v);
                *(vector *)to = piece;
                return;
            }
#pragma unroll
            for (int v = 0; v < width; v++) {
                if (j + v < columns)
                    to[v] = last(from[v], to + v);
            }
        });
    }

    /* The tile of one matrix. Leaves shared memory free. */
    __device__ __forceinline__ void run(int64_t matrix)
    {
        int warp = (int)threadIdx.x / CUDA__WARP, lane = (int)threadIdx.x % CUDA__WARP, turn = 0;
        int i0 = warp / Shape::warp_columns * Shape::tile_rows;
        int j0 = warp % Shape::warp_columns * Shape::tile_columns;
        int64_t inner = of.alpha == 0 ? 0 : of.inner;
        cuda__operand<T> a = of.a, b = of.b;
        a.at += matrix * a.step;
        b.at += matrix * b.step;
        typename Shape::tile tile;
        tile.each(lane, [&](int, int, T *to) { *(vector *)to = vector{}; });
        if (inner > 0)
            fetch(a, b, 0, 0);
#pragma unroll 1
        for (int64_t k = 0; k < inner; k += Shape::inner, turn ^= 1) {
            cuda__copy_arrive();
            __syncthreads();
            if (k + Shape::inner < inner)
                fetch(a, b, k + Shape::inner, turn ^ 1);
            __syncwarp(); /* the tensor cores want the lanes together */
            const T *own = memory.a[turn] + i0 * Shape::a_line;
            if constexpr (Shape::turned)
                tile.template multiply_turned<Shape::inner>(
                    own, Shape::a_line, memory.b[turn] + j0 * Shape::b_line, Shape::b_line, lane);
            else
                tile.template multiply<Shape::inner>(own, Shape::a_line, memory.b[turn] + j0,
                                                     Shape::b_line, lane);
        }
        put(tile, of.c.at + matrix * of.c.step + (row + i0) * of.c.stride + column + j0,
            at_most(of.rows - row, Shape::rows) - i0,
            at_most(of.columns - column, Shape::columns) - j0, lane);
        __syncthreads();
    }
};

template <typename Shape>
static __global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    cuda__own_product_kernel(const cuda__own_product<typename Shape::T> of)
{
    cuda__follow_previous();
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    int64_t across = (of.columns + Shape::columns - 1) / Shape::columns;
    cuda__own_block<Shape> block = {of, *(typename Shape::shared *)cuda__memory,
                                    blockIdx.x / across * Shape::rows,
                                    blockIdx.x % across * Shape::columns};
    for (int64_t matrix = blockIdx.y; matrix < of.count; matrix += gridDim.y)
        block.run(matrix);
}

#endif
