/* gpu/cuda/lu_strip.cuh: the inverse of a matrix whose every number is in a register of its block
 * from load to store, by block Gauss-Jordan elimination with partial pivoting.
 *
 * A warp holds a strip of columns, in the layout of the tensor cores' accumulators; one warp more
 * eliminates panels (lu_column.cuh). A panel of `block` columns goes through shared memory to that
 * warp and comes back as M (order x block). Each strip puts what the panel's chosen rows held into
 * its own part of shared memory, R, and becomes C + M R; M has no ones for the chosen rows, whose C
 * stays where it is. The strip that holds the next panel goes first: while the others work, the
 * next panel is eliminated already.
 *
 * Rows are never moved: row r, chosen in step k, ends as row k, and entry j of the inverse belongs
 * in the column numbered as the row chosen in step j. Rows of the inverse are divided by their
 * pivots in the end. The result is put together in shared memory and leaves in one piece. The work
 * is on A, not on its transpose: of a block elimination only I - X A is small.
 *
 * Cost, by counting, in cycles of a multiprocessor of an H200, n = Order: n^3 / 128 of arithmetic,
 * on the tensor cores in FP64; n steps (lu_column.cuh) and n / block times some 500 between panels,
 * which other blocks of the multiprocessor may hide. Measured on an H200, 2026-11-21, FP64, n =
 * 128: a matrix takes a block 57 us, of which the steps are some 55 of 100, and what the strips do
 * between two panels some 20.
 */
#ifndef GPU_CUDA_LU_STRIP_CUH
#define GPU_CUDA_LU_STRIP_CUH

#include "gpu/cuda/lu_column.cuh"
#include "gpu/cuda/lu_reduce.cuh"
#include "gpu/cuda/trial.cuh"

/* Tiles: panels of columns in a strip. */
template <typename T, int Order_, int Tiles_> struct cuda__lu_strip_shape {
    typedef T real_type;
    static constexpr int order = Order_, tiles = Tiles_, width = cuda__real<T>::width;
    static constexpr int block = cuda__lu_column<T, order>::block;
    static constexpr int columns = tiles * block;
    static constexpr int strips = (order + columns - 1) / columns;
    static constexpr int warps = strips + 1, threads = warps * CUDA__WARP;
    static constexpr int units = order / 16;
    /* Lanes that differ in the row of R read other banks. */
    static constexpr int r_line = columns + (sizeof(T) == 8 ? 2 : 0);
    static_assert(order % 16 == 0, "units divide the matrix");
    static constexpr int row_turns = (order + threads - 1) / threads; /* rows of a thread */
};

template <typename Shape> struct cuda__lu_strip_shared {
    typedef typename Shape::real_type T;
    alignas(16) T result[Shape::order * Shape::order]; /* and sums of rows */
    alignas(16) T m[2][Shape::order * Shape::block];   /* by turns */
    alignas(16) T r[Shape::strips][Shape::block * Shape::r_line];
    cuda__lu_column_notes<T, Shape::order> notes;
    /* A times the factor times the vector of signs. */
    T product[Shape::order];
    T scale[Shape::order]; /* of each row in the end */
    T most[Shape::warps];
    int votes[Shape::warps];
};

/* A warp's strip. A lane has two rows, `g` and g + 8, of each unit of 16, and `width` columns of
 * each tile. */
template <typename Shape> struct cuda__lu_strip {
    typedef typename Shape::real_type T;
    typedef cuda__real<T> real;
    typedef typename real::vector vector;
    static constexpr int width = Shape::width, tiles = Shape::tiles, block = Shape::block;
    typedef cuda__lu_marks<Shape::order> marks[8];

    alignas(16) T c[Shape::units][tiles][2][width];
    int n, lane, g, t, left; /* left: the lane's first column */
    T *r;

    /* Calls f(row, column, numbers) for what the lane has. */
    template <typename F> __device__ __forceinline__ void each(F f)
    {
#pragma unroll
        for (int i = 0; i < Shape::units; i++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
#pragma unroll
                for (int j = 0; j < tiles; j++)
                    f(i * 16 + h * 8 + g, left + j * block, c[i][j][h]);
            }
        }
    }

    __device__ __forceinline__ void clear()
    {
        each([](int, int, T *x) { *(vector *)x = vector{}; });
    }

    template <int Width> __device__ __forceinline__ void read_by(const T *a)
    {
        const T *from = a + (int64_t)g * n + left;
#pragma unroll
        for (int i = 0; i < 2 * Shape::units; i++) {
#pragma unroll
            for (int e = 0; e < tiles * width; e += Width) {
                int j = e / width, v = e % width;
                bool inside = i * 8 + g < n && left + j * block + v < n;
                T *x = &c[i / 2][j][i % 2][v];
                if (Width == 1)
                    *x = inside ? from[j * block + v] : T(0);
                else
                    *(vector *)x = inside ? *(const vector *)(from + j * block) : vector{};
            }
            from = cuda__renewed(from + 8 * n);
        }
    }

    __device__ __forceinline__ void read(const T *a)
    {
        if (n % width == 0 && (uintptr_t)a % 16 == 0)
            read_by<width>(a);
        else
            read_by<1>(a);
    }

    /* The largest sum of magnitudes of a column; after it all lanes have it. */
    __device__ __forceinline__ T largest_column(T by)
    {
        T sums[tiles][width] = {}, most = 0;
        each([&](int, int column, T *x) {
#pragma unroll
            for (int v = 0; v < width; v++)
                sums[(column - left) / block][v] += fabs(x[v] * by);
        });
#pragma unroll
        for (int j = 0; j < tiles * width; j++) {
            T sum = sums[j / width][j % width];
            sum += __shfl_xor_sync(CUDA__ALL, sum, 4);
            sum += __shfl_xor_sync(CUDA__ALL, sum, 8);
            sum += __shfl_xor_sync(CUDA__ALL, sum, 16);
            most = cuda__lu_larger(most, sum);
        }
        return most;
    }

    /* The strip's part of the sums of rows, its columns times `by`. */
    __device__ __forceinline__ void row_sums(const T (&by)[tiles][width], T *to)
    {
#pragma unroll
        for (int i = 0; i < 2 * Shape::units; i++) {
            T sum = 0;
#pragma unroll
            for (int j = 0; j < tiles * width; j++)
                sum = fma(c[i / 2][j / width][i % 2][j % width], by[j / width][j % width], sum);
            sum += __shfl_xor_sync(CUDA__ALL, sum, 1);
            sum += __shfl_xor_sync(CUDA__ALL, sum, 2);
            if (t == 0)
                to[i * 8 + g] = sum;
        }
    }

    /* ---- Panels ---- */

    /* Where the lane's piece of a panel's row is. */
    __device__ __forceinline__ int piece(int row) const
    {
        return row * block + cuda__lu_turned(g, t) * width;
    }

    template <int J> __device__ __forceinline__ void publish(T *m) const
    {
#pragma unroll
        for (int i = 0; i < 2 * Shape::units; i++)
            *(vector *)(m + piece(i * 8 + g)) = *(const vector *)c[i / 2][J][i % 2];
    }

    /* The panel's own columns become M and the ones that it lacks. */
    template <int J> __device__ __forceinline__ void replace(const T *m, const marks &all)
    {
        const cuda__lu_marks<Shape::order> marks = all[g];
#pragma unroll
        for (int i = 0; i < 2 * Shape::units; i++) {
            T *x = c[i / 2][J][i % 2];
            int q = (int)marks.of(i) - t * width;
            if (i % 4 == 0)
                cuda__in_order();
            *(vector *)x = *(const vector *)(m + piece(i * 8 + g));
#pragma unroll
            for (int v = 0; v < width; v++)
                x[v] += q == v ? T(1) : T(0);
        }
    }

    /* The rows that the panel has chosen go to R. */
    __device__ __forceinline__ void extract(const marks &all)
    {
        const cuda__lu_marks<Shape::order> marks = all[g];
        cuda__address base = cuda__address_of(r + t * width);
#pragma unroll
        for (int i = 0; i < 2 * Shape::units; i++) {
            cuda__address to = base + marks.of(i) * (unsigned)(Shape::r_line * sizeof(T));
#pragma unroll
            for (int j = 0; j < tiles; j++)
                cuda__store_if(marks.has(i), to + j * (unsigned)(block * sizeof(T)),
                               c[i / 2][j][i % 2]);
        }
        __syncwarp();
    }

    /* C += M R for the tiles First .. Last. The order of the inner index is the lanes' own: it is
     * the same for M and R. */
    template <int First, int Last> __device__ __forceinline__ void update(const double *m)
    {
        double b[Last - First + 1][2];
        const double *from = r + 2 * t * Shape::r_line + g;
#pragma unroll
        for (int j = First; j <= Last; j++) {
            b[j - First][0] = from[j * block];
            b[j - First][1] = from[j * block + Shape::r_line];
        }
#pragma unroll
        for (int i = 0; i < Shape::units; i++) {
            if (i % 2 == 0)
                cuda__in_order();
            double2 upper = *(const double2 *)(m + piece(i * 16 + g));
            double2 lower = *(const double2 *)(m + piece(i * 16 + 8 + g));
            double a[4] = {upper.x, lower.x, upper.y, lower.y};
#pragma unroll
            for (int j = First; j <= Last; j++)
                cuda__multiply_add(&c[i][j][0][0], a, b[j - First]);
        }
    }

    template <int First, int Last> __device__ __forceinline__ void update(const float *m)
    {
#pragma unroll 1
        for (int k = 0; k < block; k += width) {
            float4 b[Last - First + 1][width];
            const float *from = m + g * block + cuda__lu_turned(g, k / width) * width;
#pragma unroll
            for (int e = 0; e < (Last - First + 1) * width; e++)
                b[e / width][e % width] =
                    *(const float4 *)(r + (k + e % width) * Shape::r_line +
                                      (First + e / width) * block + t * width);
#pragma unroll
            for (int i = 0; i < 2 * Shape::units; i++) {
                float4 a = *(const float4 *)(from + i * 8 * block);
#pragma unroll
                for (int j = First; j <= Last; j++)
                    add(c[i / 2][j][i % 2], a, b[j - First]);
            }
        }
    }

    static __device__ __forceinline__ void add(float *x, const float4 &a, const float4 (&b)[width])
    {
#pragma unroll
        for (int q = 0; q < width; q++) {
            float by = q == 0 ? a.x : q == 1 ? a.y : q == 2 ? a.z : a.w;
            x[0] = fmaf(by, b[q].x, x[0]);
            x[1] = fmaf(by, b[q].y, x[1]);
            x[2] = fmaf(by, b[q].z, x[2]);
            x[3] = fmaf(by, b[q].w, x[3]);
        }
    }
};

/* A block and its matrix. Barriers: what only strips or only the panels' warp pass comes in equal
 * numbers. */
template <typename Shape> struct cuda__lu_strip_block {
    typedef typename Shape::real_type T;
    typedef cuda__real<T> real;
    typedef typename real::vector vector;
    typedef cuda__lu_strip<Shape> strip;
    static constexpr int width = Shape::width, block = Shape::block, tiles = Shape::tiles;
    static_assert(tiles <= 2, "a strip has a first and a last tile");

    cuda__lu_strip_shared<Shape> &of;
    int n, thread, warp, lane;
    bool has_strip;
    strip mine;

    __device__ __forceinline__ cuda__lu_strip_block(cuda__lu_strip_shared<Shape> &memory, int order)
        : of(memory), n(order), thread((int)threadIdx.x), warp(thread / CUDA__WARP),
          lane(thread % CUDA__WARP), has_strip(warp < Shape::strips)
    {
        mine.n = n;
        mine.lane = lane;
        mine.g = lane / 4;
        mine.t = lane % 4;
        mine.left = warp * Shape::columns + mine.t * width;
        mine.r = of.r[has_strip ? warp : 0];
    }

    __device__ __forceinline__ T most(T value)
    {
        return cuda__lu_block_largest<Shape::warps>(value, of.most);
    }

    /* ---- In ---- */

    /* The norm of the matrix, and the power of two it is to be multiplied by. Returns INFO: 0, or
     * -1 when something is not finite. */
    __device__ __forceinline__ int measure(T &norm, T &factor)
    {
        factor = 1;
        norm = most(has_strip ? mine.largest_column(1) : T(0));
        if (norm < real::huge && (norm >= real::tiny || norm == 0))
            return 0;
        T lowered = most(has_strip ? mine.largest_column(real::lower) : T(0));
        if (!(lowered <= real::largest))
            return -1;
        if (lowered >= real::huge * real::lower)
            factor = real::lower;
        else if (norm < real::tiny)
            factor = real::raise;
        norm = factor == real::lower ? lowered : norm * factor;
        mine.each([&](int, int, T *x) {
#pragma unroll
            for (int v = 0; v < width; v++)
                x[v] *= factor;
        });
        return 0;
    }

    /* Calls f(row) for the thread's rows. */
    template <typename F> __device__ __forceinline__ void each_row(F f)
    {
#pragma unroll
        for (int i = 0; i < Shape::row_turns; i++) {
            int row = i * Shape::threads + thread;
            if (row < n)
                f(row);
        }
    }

    /* Calls f(row, sum) for the thread's rows: the sum of columns times what weight(column) says.
     * of.result is free again behind the next barrier. */
    template <typename W, typename F> __device__ __forceinline__ void sum_rows(W weight, F f)
    {
        T by[tiles][width], *parts = of.result;
        if (has_strip) {
#pragma unroll
            for (int j = 0; j < tiles * width; j++) {
                int column = mine.left + j / width * block + j % width;
                by[j / width][j % width] = column < n ? weight(column) : T(0);
            }
            mine.row_sums(by, parts + warp * Shape::order);
        }
        __syncthreads();
        each_row([&](int row) {
            T sum = 0;
#pragma unroll
            for (int s = 0; s < Shape::strips; s++)
                sum += parts[s * Shape::order + row];
            f(row, sum);
        });
    }

    __device__ __forceinline__ void multiply_signs()
    {
        sum_rows([](int j) { return cuda__negative(j) ? T(-1) : T(1); },
                 [&](int row, T sum) {
                     of.product[row] = sum;
                     of.notes.step[row] = -1;
                 });
        constexpr int words = cuda__lu_marks<Shape::order>::words;
        if (thread < 8 * words)
            of.notes.marks[0][thread / words].word[thread % words] =
                of.notes.marks[1][thread / words].word[thread % words] = ~0u;
        __syncthreads();
    }

    /* ---- Elimination ---- */

    /* What strips do once a panel at column `first` is there. */
    __device__ __forceinline__ void spread(int first, int turn)
    {
        const T *m = of.m[turn];
        T *next = of.m[turn ^ 1];
        const typename strip::marks &marks = of.notes.marks[turn];
        int following = first + block, tile = warp * tiles;
        bool here[2] = {first / block == tile, tiles > 1 && first / block == tile + 1};
        bool soon[2] = {following / block == tile, tiles > 1 && following / block == tile + 1};
        mine.extract(marks);
        if (soon[0]) {
            mine.template update<0, 0>(m);
            mine.template publish<0>(next);
        }
        if (soon[1]) {
            mine.template update<tiles - 1, tiles - 1>(m);
            mine.template publish<tiles - 1>(next);
        }
        __syncthreads();
        if (here[0])
            mine.template replace<0>(m, marks);
        if (here[1])
            mine.template replace<tiles - 1>(m, marks);
        bool left = !here[0] && !soon[0], right = tiles > 1 && !here[1] && !soon[1];
        __syncwarp(); /* the tensor cores want the lanes together */
        if (left && (right || tiles == 1))
            mine.template update<0, tiles - 1>(m);
        else if (left)
            mine.template update<0, 0>(m);
        else if (right)
            mine.template update<tiles - 1, tiles - 1>(m);
        __syncthreads();
    }

    __device__ __forceinline__ void eliminate_strips()
    {
        if (warp == 0)
            mine.template publish<0>(of.m[0]);
        __syncthreads();
        __syncthreads();
#pragma unroll 1
        for (int first = 0, turn = 0; first < n; first += block, turn ^= 1)
            spread(first, turn);
    }

    __device__ __forceinline__ void eliminate_panels()
    {
        cuda__lu_column<T, Shape::order> with(of.notes, n, lane);
        __syncthreads();
#pragma unroll 1
        for (int first = 0, turn = 0; first < n; first += block, turn ^= 1) {
            with.run(of.m[turn], of.notes.marks[turn], first);
            __syncthreads();
            __syncthreads();
        }
        __syncthreads();
    }

    __device__ __forceinline__ void eliminate()
    {
        if (has_strip) {
            eliminate_strips();
        } else {
            eliminate_panels();
            mine.clear(); /* so that it takes no registers up to here */
        }
    }

    /* INFO of pivots: the first zero's step, or 0. Also whether one is beyond `bound`. */
    __device__ __forceinline__ int first_zero(T bound, bool &beyond)
    {
        int at = INT32_MAX;
        bool large = false;
        each_row([&](int k) {
            T pivot = of.notes.pivot[k];
            at = pivot == 0 && k + 1 < at ? k + 1 : at;
            large = large || fabs(pivot) > bound;
            of.scale[of.notes.order[k]] = real::reciprocal(pivot);
        });
        at = __reduce_min_sync(CUDA__ALL, at);
        if (lane == 0)
            of.votes[warp] = at;
        beyond = __syncthreads_or(large);
        at = of.votes[0];
#pragma unroll
        for (int w = 1; w < Shape::warps; w++)
            at = of.votes[w] < at ? of.votes[w] : at;
        return at == INT32_MAX ? 0 : at;
    }

    /* ---- Out ---- */

    /* Divides the rows by their pivots and undoes the scaling, in an order that cannot leave the
     * range midway. Returns the largest sum of a column. */
    __device__ __forceinline__ T finish(T factor)
    {
        mine.each([&](int row, int, T *x) {
            T scale = row < n ? of.scale[row] : T(0);
#pragma unroll
            for (int v = 0; v < width; v++)
                x[v] = x[v] * scale * factor;
        });
        return most(has_strip ? mine.largest_column(1) : T(0));
    }

    /* The largest entry of X times the product less the signs. */
    __device__ __forceinline__ T trial(T factor)
    {
        T error = 0;
        sum_rows([&](int j) { return of.product[of.notes.order[j]]; },
                 [&](int row, T sum) {
                     sum -= cuda__negative(of.notes.step[row]) ? -factor : factor;
                     error = cuda__lu_larger(error, fabs(sum));
                 });
        return most(error);
    }

    /* Every number goes to its place in the result, which is dense; to: its memory. */
    __device__ __forceinline__ void put_together(T *to)
    {
        int columns[tiles][width];
        if (!has_strip)
            return;
#pragma unroll
        for (int j = 0; j < tiles * width; j++) {
            int column = mine.left + j / width * block + j % width;
            columns[j / width][j % width] = column < n ? of.notes.order[column] : -1;
        }
        mine.each([&](int row, int column, T *x) {
            const int *places = columns[(column - mine.left) / block];
            T *line = to + (int64_t)(row < n ? of.notes.step[row] : 0) * n;
#pragma unroll
            for (int v = 0; v < width; v++) {
                if (row < n && places[v] >= 0)
                    line[places[v]] = x[v];
            }
        });
    }

    /* From shared memory. */
    __device__ __forceinline__ void write_all(T *to) const
    {
        int count = n * n;
        if ((uintptr_t)to % 16 == 0) {
            int whole = count / width * width;
            for (int e = thread * width; e < whole; e += Shape::threads * width)
                cuda__store_stream((vector *)(to + e), of.result + e);
            if (thread < count - whole)
                to[whole + thread] = of.result[whole + thread];
        } else {
            for (int e = thread; e < count; e += Shape::threads)
                to[e] = of.result[e];
        }
    }

    __device__ __forceinline__ void write(T *to, bool none)
    {
        if (none) {
            for (int e = thread; e < n * n; e += Shape::threads)
                to[e] = real::nan();
        } else {
            put_together(of.result);
            __syncthreads();
            write_all(to);
        }
    }

    /* ---- One matrix ---- */

    __device__ __forceinline__ void invert(const cuda__place<T> &place, uint32_t *doubtful)
    {
        T norm, factor;
        mine.clear();
        if (has_strip)
            mine.read(place.a);
        int info = measure(norm, factor);
        bool beyond = false;
        if (info == 0) {
            multiply_signs();
            eliminate();
            info = first_zero(CUDA__LU_GROWN * norm, beyond);
        }
        T rcond = 0;
        if (info == 0) {
            T size = finish(factor), error = trial(factor);
            bool good = error <= (T)sqrt((T)n) * real::eps * norm * size;
            rcond = size > 0 && size <= real::largest ? 1 / norm / size * factor : T(0);
            bool large = !(rcond >= real::eps); /* so the trial says nothing */
            info = !good || (large && beyond) ? CUDA_INFO_DOUBTFUL : large ? n + 1 : 0;
        } else if (info > 0 && (beyond || factor == real::lower)) {
            info += CUDA_INFO_DOUBTFUL; /* growth, or the scaling, may have made the zero */
        }
        bool none = info != 0 && info <= n;
        if (place.result)
            write(place.result, none);
        if (thread == 0)
            report(place, info, none ? (info < 0 ? real::nan() : T(0)) : rcond, doubtful);
    }

    __device__ __forceinline__ void report(const cuda__place<T> &place, int info, T rcond,
                                           uint32_t *doubtful) const
    {
        if (place.info)
            place.info[place.within] = info;
        if (place.extra)
            ((T *)place.extra)[place.within] = rcond;
        if (info < -1 && doubtful)
            atomicAdd(doubtful, 1);
    }
};

template <typename Shape, int Blocks>
static __global__ void __launch_bounds__(Shape::threads, Blocks)
    cuda__lu_strip_kernel(const cuda_batch batch, int n)
{
    typedef typename Shape::real_type T;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    for (int64_t index = blockIdx.x; index < batch.matrices; index += gridDim.x) {
        cuda__lu_strip_block<Shape> block(*(cuda__lu_strip_shared<Shape> *)cuda__memory, n);
        block.invert(cuda__find<T>(batch, index, n * n), batch.doubtful);
        __syncthreads();
    }
}

#endif
