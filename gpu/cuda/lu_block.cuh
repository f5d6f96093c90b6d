/* gpu/cuda/lu_block.cuh: one matrix a block, in shared memory from load to store: the inverse by
 * block Gauss-Jordan elimination, or LU, with partial pivoting.
 *
 * Of A (n x n, padded with zeros to Order x Order) a panel of Block columns goes into registers, a
 * row a thread, and is eliminated there (lu_panel.cuh). It leaves M (n x Block). Every other column
 * C becomes C, its chosen rows zeroed, plus M R, R being what those rows held: one product of rank
 * Block, by tiles (lu_tile.cuh). For LU R is first solved with the panel's part of L, and stays in
 * C. Rows are never moved: row r, chosen in step k, ends as row k, and entry j of the inverse
 * belongs in the column numbered as the row chosen in step j. Rows of the inverse are divided by
 * their pivots in the end.
 *
 * The work is on A, not on its transpose: of a block elimination only I - X A is small.
 *
 * Cost of the inverse, by counting, in cycles of a multiprocessor of an H200, n = Order: n^3 / 128
 * of arithmetic, on the tensor cores in FP64; of shared memory n^3 / (8 Block) for C in FP64, half
 * of it in FP32, and half as much again for M and R; n steps of some 350 that nothing else of the
 * block hides. Several blocks a multiprocessor hide each other's.
 */
#ifndef GPU_CUDA_LU_BLOCK_CUH
#define GPU_CUDA_LU_BLOCK_CUH

#include "gpu/cuda/lu_panel.cuh"
#include "gpu/cuda/lu_reduce.cuh"
#include "gpu/cuda/lu_tile.cuh"
#include "gpu/cuda/trial.cuh"

/* Block: columns of a panel. A warp's tile is TileRows x TileColumns units of 16 x 16. */
template <typename T, int Order_, int Block_, int Warps_, int TileRows, int TileColumns>
struct cuda__lu_shape {
    typedef T real_type;
    static constexpr int order = Order_, block = Block_, warps = Warps_;
    static constexpr int threads = warps * CUDA__WARP;
    static constexpr int tile_rows = TileRows * CUDA__UNIT, tile_columns = TileColumns * CUDA__UNIT;
    static constexpr int line = cuda__lu_line<T>::of_tile(order);
    static constexpr int m_line = cuda__lu_line<T>::of_factor(block);
    static constexpr int r_line = cuda__lu_line<T>::of_factor(order);
    typedef cuda__lu_tile<T, TileRows, TileColumns> tile;
    static_assert(order % tile_rows == 0 && order % tile_columns == 0, "tiles divide the matrix");
    static_assert(order % block == 0 && block % 8 == 0, "panels divide the matrix");
    static_assert(threads >= order, "a thread for each row and column");
};

template <typename Shape> struct cuda__lu_shared {
    typedef typename Shape::real_type T;
    alignas(16) T c[Shape::order * Shape::line];
    alignas(16) T m[Shape::order * Shape::m_line];
    alignas(16) T r[Shape::block * Shape::r_line];
    cuda__lu_proposals<T, Shape::block, Shape::warps> proposals;
    T pivot[Shape::order];
    /* A times the factor times the vector of signs. */
    T product[Shape::order];
    T scale[Shape::order]; /* of each row in the end */
    T most[Shape::warps];
    int order[Shape::order], place[Shape::order], step[Shape::order];
    int votes[Shape::warps];
};

template <typename Shape, bool Factor> struct cuda__lu_block {
    typedef typename Shape::real_type T;
    typedef cuda__real<T> real;
    typedef typename real::vector vector;
    typedef cuda__lu_shared<Shape> shared;
    typedef cuda__lu_panel<T, Shape::block, Factor> panel;
    static constexpr int width = real::width;
    static constexpr int line = Shape::line;

    shared &of;
    int n, thread, warp, lane;

    __device__ __forceinline__ cuda__lu_block(shared &memory, int order)
        : of(memory), n(order), thread((int)threadIdx.x), warp(thread / CUDA__WARP),
          lane(thread % CUDA__WARP)
    {
    }

    __device__ __forceinline__ T most(T value)
    {
        return cuda__lu_block_largest<Shape::warps>(value, of.most);
    }

    /* ---- In ---- */

    template <int Width> __device__ void copy_in(const T *a)
    {
        for (int i = warp; i < n; i += Shape::warps) {
            for (int j = lane * Width; j < n; j += CUDA__WARP * Width)
                cuda__copy_async<Width *(int)sizeof(T)>(&of.c[i * line + j],
                                                        a + (int64_t)i * n + j);
        }
    }

    __device__ void read(const T *a)
    {
        for (int i = warp; i < Shape::order; i += Shape::warps) {
            for (int j = (i < n ? n : 0) + lane; j < Shape::order; j += CUDA__WARP)
                of.c[i * line + j] = 0;
        }
        if (n % width == 0 && (uintptr_t)a % 16 == 0)
            copy_in<width>(a);
        else
            copy_in<1>(a);
        cuda__copy_arrive();
        __syncthreads();
    }

    /* The sum of magnitudes of the thread's column, times `by`. */
    __device__ T column_sum(T by) const
    {
        T sums[4] = {0, 0, 0, 0};
        const T *at = of.c + (thread < n ? thread : 0);
        int i = 0;
        for (; i + 4 <= n; i += 4) {
#pragma unroll
            for (int v = 0; v < 4; v++)
                sums[v] += fabs(at[(i + v) * line] * by);
        }
        for (; i < n; i++)
            sums[0] += fabs(at[i * line] * by);
        return thread < n ? (sums[0] + sums[1]) + (sums[2] + sums[3]) : T(0);
    }

    /* A thread a row; each begins at another column, so that their banks differ. */
    template <typename F> __device__ T row_sum(int row, F term) const
    {
        T sums[2] = {0, 0};
        const T *at = of.c + row * line;
        int j = row;
        for (int k = 0; k < n; k++) {
            sums[k & 1] = term(sums[k & 1], at[j], j);
            j = j + 1 < n ? j + 1 : 0;
        }
        return sums[0] + sums[1];
    }

    __device__ void multiply_signs()
    {
        if (thread < n)
            of.product[thread] = row_sum(
                thread, [](T sum, T x, int j) { return sum + (cuda__negative(j) ? -x : x); });
    }

    /* The norm of the matrix, and the power of two it is to be multiplied by. Returns INFO: 0, or
     * -1 when something is not finite. */
    __device__ int measure(T &norm, T &factor)
    {
        factor = 1;
        norm = most(column_sum(1));
        if (norm < real::huge && (norm >= real::tiny || norm == 0))
            return 0;
        T lowered = most(column_sum(real::lower));
        if (!(lowered <= real::largest))
            return -1;
        if (lowered >= real::huge * real::lower)
            factor = real::lower;
        else if (norm < real::tiny)
            factor = real::raise;
        norm = factor == real::lower ? lowered : norm * factor;
        for (int i = 0; thread < n && i < n; i++)
            of.c[i * line + thread] *= factor;
        __syncthreads();
        return 0;
    }

    /* ---- Elimination ---- */

    /* Moves the chosen rows of the panel, outside it, to R, and zeroes them. */
    __device__ void gather(int first, int count)
    {
        for (int q = warp; q < Shape::block; q += Shape::warps) {
            T *from = of.c + (q < count ? of.order[first + q] : 0) * line,
              *to = of.r + q * Shape::r_line;
            for (int j = lane * width; j < Shape::order; j += CUDA__WARP * width) {
                vector none = {}, piece = none;
                if (q < count && (j < first || j >= first + Shape::block)) {
                    piece = *(const vector *)(from + j);
                    *(vector *)(from + j) = none;
                }
                *(vector *)(to + j) = piece;
            }
        }
    }

    /* LU: R, right of the panel, becomes U; a thread a column. */
    __device__ void solve(int first)
    {
        T x[Shape::block];
        int j = thread;
        if (j >= Shape::order)
            return;
#pragma unroll
        for (int q = 0; q < Shape::block; q++) {
            const T *lower = of.c + of.order[first + q] * line + first;
            x[q] = j >= first + Shape::block ? of.c[of.order[first + q] * line + j] : T(0);
#pragma unroll
            for (int p = 0; p < q; p++)
                x[q] = fma(-lower[p], x[p], x[q]);
            of.r[q * Shape::r_line + j] = x[q];
            if (j >= first + Shape::block)
                of.c[of.order[first + q] * line + j] = x[q];
        }
    }

    /* C += M R, for the tiles that reach beyond column `from`. */
    __device__ void update(int from)
    {
        constexpr int columns = Shape::order / Shape::tile_columns;
        constexpr int tiles = columns * (Shape::order / Shape::tile_rows);
        __syncwarp(); /* the tensor cores want the lanes together */
#pragma unroll 1
        for (int t = warp; t < tiles; t += Shape::warps) {
            int i = t / columns * Shape::tile_rows, j = t % columns * Shape::tile_columns;
            typename Shape::tile tile;
            if (j + Shape::tile_columns <= from)
                continue;
            cuda__lu_load<T>(tile, of.c + i * line + j, line, lane);
            tile.template multiply<Shape::block>(of.m + i * Shape::m_line, Shape::m_line, of.r + j,
                                                 Shape::r_line, lane);
            cuda__lu_store<T>(tile, of.c + i * line + j, line, lane);
        }
    }

    /* What follows a panel: the columns outside it. */
    __device__ void spread(panel &mine, int first, int count)
    {
        if (thread < Shape::order) {
            mine.write(of.c + thread * line + first, 1);
            if (Factor && mine.place < 0)
                mine.clear();
            mine.write(of.m + thread * Shape::m_line, Factor ? T(-1) : T(1));
        }
        __syncthreads();
        if (Factor && first + Shape::block >= n)
            return;
        if (Factor)
            solve(first);
        else
            gather(first, count);
        __syncthreads();
        update(Factor ? first + Shape::block : 0);
        __syncthreads();
    }

    __device__ void eliminate()
    {
        panel mine;
        mine.steps = cuda__lu_steps<T>{of.pivot, of.order, of.place};
        mine.row = thread;
        mine.place = thread < n ? thread : CUDA__LU_NO_ROW;
#pragma unroll 1
        for (int first = 0; first < n; first += Shape::block) {
            int count = n - first < Shape::block ? n - first : Shape::block;
            if (thread < Shape::order)
                mine.read(of.c + thread * line + first);
            else
                mine.clear();
            mine.run(of.proposals, first, count, warp, lane);
            if (!Factor)
                mine.complete(first);
            spread(mine, first, count);
        }
    }

    /* INFO of pivots: the first zero's step, or 0. Also whether one is beyond `bound`. */
    __device__ int first_zero(T bound, bool &beyond)
    {
        bool zero = thread < n && of.pivot[thread] == 0;
        int at = __reduce_min_sync(CUDA__ALL, zero ? thread + 1 : INT32_MAX);
        if (lane == 0)
            of.votes[warp] = at;
        beyond = __syncthreads_or(thread < n && fabs(of.pivot[thread]) > bound);
        at = of.votes[0];
#pragma unroll
        for (int w = 1; w < Shape::warps; w++)
            at = of.votes[w] < at ? of.votes[w] : at;
        return at == INT32_MAX ? 0 : at;
    }

    /* ---- Out: the inverse ---- */

    /* Divides the rows by their pivots and undoes the scaling, in an order that cannot leave the
     * range midway. Returns the largest sum of a column. */
    __device__ T finish(T factor)
    {
        T sum = 0;
        if (thread < n) {
            of.step[of.order[thread]] = thread;
            of.scale[of.order[thread]] = real::reciprocal(of.pivot[thread]);
        }
        __syncthreads();
        for (int i = 0; thread < n && i < n; i++) {
            T x = of.c[i * line + thread] * of.scale[i] * factor;
            of.c[i * line + thread] = x;
            sum += fabs(x);
        }
        return most(sum);
    }

    /* The largest entry of X times the product less the signs. */
    __device__ T trial(T factor)
    {
        T error = 0;
        if (thread < n) {
            error = row_sum(
                thread, [&](T sum, T x, int j) { return fma(x, of.product[of.order[j]], sum); });
            error = fabs(error - (cuda__negative(of.step[thread]) ? -factor : factor));
        }
        return most(error);
    }

    __device__ void write_inverse(T *result, bool none) const
    {
        for (int k = warp; k < n; k += Shape::warps) {
            const T *from = of.c + of.order[k] * line;
            for (int j = lane; j < n; j += CUDA__WARP)
                result[(int64_t)k * n + j] = none ? real::nan() : from[of.step[j]];
        }
    }

    /* ---- Out: LU ---- */

    __device__ void write_factors(T *result, bool none) const
    {
        for (int k = warp; k < n; k += Shape::warps) {
            const T *from = of.c + (none ? k : of.order[k]) * line;
            for (int j = lane; j < n; j += CUDA__WARP)
                result[(int64_t)k * n + j] = none ? real::nan() : from[j];
        }
    }

    /* ---- One matrix ---- */

    __device__ void invert(const cuda__place<T> &place, uint32_t *doubtful)
    {
        T norm, factor;
        read(place.a);
        int info = measure(norm, factor);
        multiply_signs();
        bool beyond = false;
        if (info == 0) {
            eliminate();
            info = first_zero(CUDA__LU_GROWN * norm, beyond);
        }
        T rcond = 0;
        if (info == 0) {
            T size = finish(factor), error = trial(factor);
            bool good = error <= (T)sqrt((T)n) * real::eps * norm * size;
            rcond = size > 0 && size <= real::largest ? 1 / norm / size * factor : T(0);
            info = !good ? CUDA_INFO_DOUBTFUL : !(rcond >= real::eps) ? n + 1 : 0;
        } else if (info > 0 && (beyond || factor == real::lower)) {
            info += CUDA_INFO_DOUBTFUL; /* growth, or the scaling, may have made the zero */
        }
        bool none = info != 0 && info <= n;
        if (place.result)
            write_inverse(place.result, none);
        if (thread == 0)
            report(place, info, none ? (info < 0 ? real::nan() : T(0)) : rcond, doubtful);
    }

    __device__ void report(const cuda__place<T> &place, int info, T rcond, uint32_t *doubtful) const
    {
        if (place.info)
            place.info[place.within] = info;
        if (place.extra)
            ((T *)place.extra)[place.within] = rcond;
        if (info < -1 && doubtful)
            atomicAdd(doubtful, 1);
    }

    __device__ void factor(const cuda__place<T> &place)
    {
        bool finite = true, beyond;
        read(place.a);
        for (int i = 0; thread < n && i < n; i++)
            finite = finite && fabs(of.c[i * line + thread]) <= real::largest;
        int info = __syncthreads_or(!finite) ? -1 : 0;
        if (info == 0) {
            eliminate();
            info = first_zero(0, beyond);
        }
        if (place.result)
            write_factors(place.result, info < 0);
        if (place.extra && thread < n)
            ((int *)place.extra)[place.within * n + thread] = info < 0 ? 0 : of.place[thread] + 1;
        if (place.info && thread == 0)
            place.info[place.within] = info;
    }
};

template <typename Shape, bool Factor, int Blocks>
static __global__ void __launch_bounds__(Shape::threads, Blocks)
    cuda__lu_block_kernel(const cuda_batch batch, int n)
{
    typedef typename Shape::real_type T;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_block<Shape, Factor> block(*(cuda__lu_shared<Shape> *)cuda__memory, n);
    for (int64_t index = blockIdx.x; index < batch.matrices; index += gridDim.x) {
        cuda__place<T> place = cuda__find<T>(batch, index, n * n);
        if (Factor)
            block.factor(place);
        else
            block.invert(place, batch.doubtful);
        __syncthreads();
    }
}

#endif
