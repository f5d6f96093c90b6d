/* gpu/cuda/lu/strip_launch.cuh: the block of strip.cuh, its kernel, and the way from an order to
 * its instance. Launches: host code, any thread.
 */
#ifndef GPU_CUDA_LU_STRIP_LAUNCH_CUH
#define GPU_CUDA_LU_STRIP_LAUNCH_CUH

#include <type_traits>

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/lu/strip.cuh"

/* ---- The block ---- */

/* In, elimination, out.
 *
 * A matrix in registers alone leaves through shared memory in one piece; with far panels it leaves
 * by the rows of a unit, through where panels were. Device code.
 */

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

    /* spill: the block's. */
    __device__ __forceinline__ cuda__lu_strip_block(cuda__lu_strip_shared<Shape> &memory, int order,
                                                    T *spill)
        : of(memory), n(order), thread((int)threadIdx.x), warp(thread / CUDA__WARP),
          lane(thread % CUDA__WARP), has_strip(warp < Shape::strips)
    {
        mine.n = n;
        mine.lane = lane;
        mine.g = lane / 4;
        mine.t = lane % 4;
        mine.left = warp * Shape::columns + mine.t * width;
        mine.r = of.r[has_strip ? warp : 0];
        mine.index = warp;
        mine.filled = has_strip ? (Shape::far - warp + Shape::strips - 1) / Shape::strips : 0;
        mine.shared_panels = of.room;
        mine.spill = spill;
    }

    __device__ __forceinline__ T most(T value)
    {
        return cuda__block_max_magnitude<Shape::warps>(value, of.max);
    }

    /* The largest sum of magnitudes of a column; and, unless it is below `limit` and no less than
     * tiny, or zero, that of the columns times real::lower: where sums overflow, entries need not.
     */
    __device__ __forceinline__ T largest_column(T limit, T &lowered)
    {
        T largest = 0;
        lowered = 0;
#pragma unroll 1
        for (int pass = 0; pass < 2; pass++) {
            const T found = most(has_strip ? mine.largest_column(pass ? real::lower : T(1)) : T(0));
            (pass ? lowered : largest) = found;
            if (found < limit && (found >= real::tiny || found == 0))
                break;
        }
        return largest;
    }

    /* ---- In ---- */

    /* The matrix becomes that times factor, a power of two, and so does its norm. lowered: see
     * largest_column. Returns INFO: 0, or -1 when something is not finite. */
    __device__ __forceinline__ int scale(T &norm, T lowered, T &factor)
    {
        factor = 1;
        if (norm < real::huge && (norm >= real::tiny || norm == 0))
            return 0;
        if (!(lowered <= real::largest))
            return -1;
        if (lowered >= real::huge * real::lower)
            factor = real::lower;
        else if (norm < real::tiny)
            factor = real::raise;
        norm = factor == real::lower ? lowered : norm * factor;
        mine.each([&](int, T *x) {
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
     * of.m is free again behind the next barrier. */
    template <typename W, typename F> __device__ __forceinline__ void sum_rows(W weight, F f)
    {
        T *parts = of.m[0];
        if (has_strip)
            mine.row_sums([&](int column) { return column < n ? weight(column) : T(0); }, parts);
        __syncthreads();
        each_row([&](int row) {
            T sum = 0;
#pragma unroll
            for (int p = 0; p < Shape::parts; p++)
                sum += parts[p * Shape::order + row];
            f(row, sum);
        });
    }

    __device__ __forceinline__ void clear_marks()
    {
        constexpr int words = cuda__lu_marks<Shape::order>::words;
        if (thread < 8 * words)
            of.notes.marks[0][thread / words].word[thread % words] =
                of.notes.marks[1][thread / words].word[thread % words] = ~0u;
        __syncthreads();
    }

    /* ---- Elimination ---- */

    /* Where panel number p is before it is eliminated. */
    __device__ __forceinline__ T *panel(int p)
    {
        bool is_far = p >= Shape::held && p < Shape::held + Shape::shared_far;
        return is_far ? of.room + (p - Shape::held) * Shape::area : of.m[p & 1];
    }

    __device__ __forceinline__ T *staging()
    {
        return of.room + Shape::shared_far * Shape::area;
    }

    /* The tiles First .. Last and panel number p. */
    template <int First, int Last> __device__ __forceinline__ void update(int p)
    {
        mine.template update<First, Last>(of.m[p & 1]);
    }

    /* The tile of the warp's that comes next is brought to where its panel is to be. */
    __device__ __forceinline__ void hurry(int p)
    {
        int next = p + 1, tile = warp * tiles;
        if (next == tile) {
            update<0, 0>(p);
            mine.template publish<0>(of.m[next & 1]);
        }
        if (tiles > 1 && next == tile + 1) {
            update<tiles - 1, tiles - 1>(p);
            mine.template publish<tiles - 1>(of.m[next & 1]);
        }
    }

    /* The chosen rows of the warp's far panel number s at `from` go to R. */
    __device__ __forceinline__ void take_far(int p, int s, const T *from)
    {
        mine.take_rows(s, from, of.notes.order + p * block, n - p * block);
    }

    /* The same of those in shared memory, but for the eliminated one. */
    __device__ __forceinline__ void take_shared_far(int p)
    {
        const int here = mine.slot_of(p), soon = mine.slot_of(p + 1);
#pragma unroll 1
        for (int s = 0; s < mine.filled; s++) {
            const bool spilled = mine.is_spilled(s, warp);
            if (s != here && (!spilled || s == soon))
                take_far(p, s,
                         spilled ? staging() : of.room + (s * Shape::strips + warp) * Shape::area);
        }
    }

    /* Solves for the tiles that are wanted. */
    template <typename F> __device__ __forceinline__ void solve(int p, F wanted)
    {
        int own = p - warp * tiles;
        if (Shape::slots > 0 && own >= tiles) {
            const int here = mine.slot_of(p);
            own = here < mine.filled ? tiles + here : -1;
        }
        mine.solve(of.notes.lower[p & 1], own, wanted);
    }

    /* The same as hurry for a far panel: in its place in shared memory, or in the staging buffer.
     */
    __device__ __forceinline__ void hurry_far(int p)
    {
        const int next = mine.slot_of(p + 1);
        if (next < mine.filled)
            mine.update_far(next, mine.is_spilled(next, warp) ? staging() : panel(p + 1),
                            panel(p + 1), of.m[p & 1]);
    }

    __device__ __forceinline__ void spread_far(int p)
    {
        const int here = mine.slot_of(p), soon = mine.slot_of(p + 1), then = mine.slot_of(p + 2);
        const auto late = [&](int s) {
            return s >= 0 && s != here && s != soon && mine.is_spilled(s, warp);
        };
        if (Shape::spilled > 0) {
#pragma unroll 1
            for (int s = 0; s < mine.filled; s++) {
                if (late(s))
                    take_far(p, s, mine.spilled(s));
            }
            solve(p, [&](int tile) { return late(tile - tiles); });
        }
        if (here < mine.filled)
            mine.at(here,
                    [&](T *x) { mine.renew_far(x, of.notes.order + p * block, n - p * block); });
#pragma unroll 1
        for (int s = 0; s < mine.filled; s++) {
            if (s == soon)
                continue;
            const bool stages = s == then && mine.is_spilled(s, warp);
            mine.at(s, [&](T *x) { mine.update_far(s, x, stages ? staging() : x, of.m[p & 1]); });
        }
    }

    /* A barrier of the block where the warps run different code. */
    __device__ __forceinline__ void sync() const
    {
        cuda__block_sync<Shape::threads>();
    }

    /* What strips do once panel number p is eliminated. */
    __device__ __forceinline__ void spread(int p)
    {
        int tile = warp * tiles;
        bool soon[2] = {p + 1 == tile, tiles > 1 && p + 1 == tile + 1};
        mine.extract(of.notes.marks[p & 1]);
        if (Shape::slots > 0)
            take_shared_far(p);
        solve(p, [&](int tile) { return Shape::slots == 0 || mine.has(tile); });
        hurry(p);
        if (Shape::slots > 0)
            hurry_far(p);
        sync();
        if (p == tile)
            mine.template renew<0>(of.notes.marks[p & 1]);
        if (tiles > 1 && p == tile + 1)
            mine.template renew<tiles - 1>(of.notes.marks[p & 1]);
        __syncwarp(); /* the tensor cores want the lanes together */
        if (!soon[0] && !soon[1])
            update<0, tiles - 1>(p);
        else if (tiles > 1 && soon[1])
            update<0, 0>(p);
        else if (tiles > 1)
            update<tiles - 1, tiles - 1>(p);
        if (Shape::slots > 0)
            spread_far(p);
        sync();
    }

    __device__ __forceinline__ void eliminate_strips()
    {
        if (warp == 0)
            mine.template publish<0>(of.m[0]);
        sync();
        sync();
#pragma unroll 1
        for (int p = 0; p * block < n; p++)
            spread(p);
    }

    __device__ __forceinline__ void eliminate_panels()
    {
        cuda__lu_column<T, Shape::order> with(of.notes, n, lane);
        sync();
#pragma unroll 1
        for (int p = 0; p * block < n; p++) {
            with.run(p, panel(p), of.m[p & 1]);
            sync();
            sync();
        }
        sync();
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
     * range midway. Every zero is +0: which sign a zero has, depends on where its column was. */
    __device__ __forceinline__ void finish(T factor)
    {
        mine.each([&](int row, T *x) {
            T scale = row < n ? of.scale[row] : T(0);
#pragma unroll
            for (int v = 0; v < width; v++)
                x[v] = fma(x[v] * scale, factor, T(0));
        });
    }

    /* The product of the matrix and the vector of signs; of its inverse and that product, the
     * thread's largest entry less the signs. */
    __device__ __forceinline__ T multiply(bool inverse, T factor)
    {
        T error = 0;
        sum_rows(
            [&](int j) {
                return inverse ? of.product[of.notes.order[j]] : cuda__negative(j) ? T(-1) : T(1);
            },
            [&](int row, T sum) {
                if (inverse) {
                    sum -= cuda__negative(of.notes.step[row]) ? -factor : factor;
                    error = cuda__max_or_nan(error, fabs(sum));
                } else {
                    of.product[row] = sum;
                    of.notes.step[row] = -1;
                }
            });
        return error;
    }

    /* Where each of the lane's columns of tile j belongs in the result; -1: nowhere. */
    __device__ __forceinline__ void find_columns(int j, int (&columns)[width]) const
    {
#pragma unroll
        for (int v = 0; v < width; v++) {
            int column = mine.column(j) + v;
            columns[v] = column < n ? of.notes.order[column] : -1;
        }
    }

    static __device__ __forceinline__ void put_row(T *line, const T *x, const int (&columns)[width])
    {
#pragma unroll
        for (int v = 0; v < width; v++) {
            if (columns[v] >= 0)
                line[columns[v]] = x[v];
        }
    }

    /* Every number goes to its place in the result, which is dense; to: its memory. */
    __device__ __forceinline__ void put_together(T *to)
    {
        int columns[tiles][width];
        if (!has_strip)
            return;
#pragma unroll
        for (int j = 0; j < tiles; j++)
            find_columns(j, columns[j]);
#pragma unroll
        for (int i = 0; i < 2 * Shape::units; i++) {
            const int row = i * 8 + mine.g;
            if (row >= n)
                continue;
            T *line = to + of.notes.step[row] * n;
#pragma unroll
            for (int j = 0; j < tiles; j++)
                put_row(line, mine.c[i / 2][j][i % 2], columns[j]);
        }
    }

    /* The rows of unit i, which are in of.m, go to the result; a warp a row. */
    template <int Width> __device__ __forceinline__ void write_unit(int i, T *to) const
    {
#pragma unroll 1
        for (int u = warp; u < 16 && i * 16 + u < n; u += Shape::warps) {
            const T *from = of.m[0] + u * Shape::order;
            T *line = to + (int64_t)of.notes.step[i * 16 + u] * n;
#pragma unroll 1
            for (int j = lane * Width; j < n; j += CUDA__WARP * Width) {
                if (Width == 1)
                    line[j] = from[j];
                else
                    cuda__store_stream((vector *)(line + j), from + j);
            }
        }
    }

    /* The same for all, the rows of a unit at a time. */
    __device__ __forceinline__ void write_units(T *to)
    {
        int columns[tiles][width];
        bool whole = n % width == 0 && (uintptr_t)to % 16 == 0;
#pragma unroll
        for (int j = 0; j < tiles; j++)
            find_columns(j, columns[j]);
#pragma unroll
        for (int i = 0; i < Shape::units; i++) {
            T *line = of.m[0] + mine.g * Shape::order;
            __syncthreads();
#pragma unroll
            for (int e = 0; has_strip && e < 2 * tiles; e++)
                put_row(line + e / tiles * 8 * Shape::order, mine.c[i][e % tiles][e / tiles],
                        columns[e % tiles]);
#pragma unroll 1
            for (int s = 0; s < mine.filled; s++) {
                int far[width];
                find_columns(tiles + s, far);
                mine.at(s, [&](const T *x) {
                    const int row = i * 16 + mine.g;
                    put_row(line, x + mine.piece(row), far);
                    put_row(line + 8 * Shape::order, x + mine.piece(row + 8), far);
                });
            }
            __syncthreads();
            if (whole)
                write_unit<width>(i, to);
            else
                write_unit<1>(i, to);
        }
    }

    /* From shared memory. */
    __device__ __forceinline__ void write_all(T *to) const
    {
        int count = n * n;
        if ((uintptr_t)to % 16 == 0) {
            int whole = count / width * width;
            for (int e = thread * width; e < whole; e += Shape::threads * width)
                cuda__store_stream((vector *)(to + e), of.room + e);
            if (thread < count - whole)
                to[whole + thread] = of.room[whole + thread];
        } else {
            for (int e = thread; e < count; e += Shape::threads)
                to[e] = of.room[e];
        }
    }

    __device__ __forceinline__ void write(T *to, bool none)
    {
        if (none) {
            for (int e = thread; e < n * n; e += Shape::threads)
                to[e] = real::nan();
        } else if constexpr (Shape::slots > 0) {
            write_units(to);
        } else {
            put_together(of.room);
            __syncthreads();
            write_all(to);
        }
    }

    /* ---- One matrix ---- */

    /* Returns INFO of an inverse. lowered: see largest_column. */
    __device__ __forceinline__ int judge(T norm, T size, T lowered, T error, T factor, bool beyond,
                                         T &rcond)
    {
        const T scale = size <= real::largest ? T(1) : real::lower;
        size = size <= real::largest ? size : lowered;
        const bool good = error * scale <= (T)sqrt((T)n) * real::eps * norm * size;
        if (size > 0 && size <= real::largest)
            rcond = 1 / norm / size * factor * scale;
        const bool large = !(rcond >= real::eps); /* so the check says nothing */
        return !good || (large && beyond) ? CUDA_INFO_UNVERIFIED : large ? n + 1 : 0;
    }

    /* Two rounds, of the matrix and of its inverse: the code of what both do is long. */
    __device__ __forceinline__ void invert(const cuda__place<T> &place, uint32_t *unverified)
    {
        T norm = 0, factor = 1, rcond = 0;
        bool beyond = false;
        int info = 0;
        mine.clear();
        if (has_strip)
            mine.read(place.a);
#pragma unroll 1
        for (int round = 0; round < 2 && info == 0; round++) {
            T lowered, size = largest_column(round == 0 ? real::huge : real::largest, lowered);
            if (round == 0) {
                norm = size;
                info = scale(norm, lowered, factor);
                if (info != 0)
                    break;
            }
            T error = multiply(round > 0, factor);
            if (round > 0) {
                info = judge(norm, size, lowered, most(error), factor, beyond, rcond);
                break;
            }
            clear_marks();
            eliminate();
            info = first_zero(CUDA__LU_GROWN * norm, beyond);
            if (info == 0)
                finish(factor);
            else if (beyond || factor == real::lower)
                info += CUDA_INFO_UNVERIFIED; /* growth, or the scaling, may have made the zero */
        }
        bool none = info != 0 && info <= n;
        if (place.result)
            write(place.result, none);
        if (thread == 0)
            report(place, info, none ? (info < 0 ? real::nan() : T(0)) : rcond, unverified);
    }

    __device__ __forceinline__ void report(const cuda__place<T> &place, int info, T rcond,
                                           uint32_t *unverified) const
    {
        info = cuda__await_scaling(info, n);
        if (place.info)
            place.info[place.within] = info;
        if (place.extra)
            ((T *)place.extra)[place.within] = rcond;
        if (info < -1 && unverified)
            atomicAdd(unverified, 1);
    }
};

template <typename Shape, int Blocks>
static __global__ void __launch_bounds__(Shape::threads, Blocks)
    cuda__lu_strip_kernel(const cuda_batch batch, int n, void *spills)
{
    typedef typename Shape::real_type T;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    T *spill = (T *)spills + (int64_t)blockIdx.x * Shape::spilled * Shape::area;
    for (int64_t index = blockIdx.x; index < batch.matrices; index += gridDim.x) {
        cuda__lu_strip_block<Shape> block(*(cuda__lu_strip_shared<Shape> *)cuda__memory, n, spill);
        block.invert(cuda__find<T>(batch, index, n * n), batch.unverified);
        __syncthreads();
    }
}

/* Bytes that a block spills. */
template <typename Shape> static constexpr size_t cuda__lu_strip_spill()
{
    return (size_t)Shape::spilled * Shape::area * sizeof(typename Shape::real_type);
}

template <typename Shape, int Blocks>
static cudaError_t cuda__lu_strip_launch(int64_t n, const cuda_batch &batch, void *space,
                                         size_t space_bytes, cudaStream_t stream)
{
    typedef cuda__lu_strip_shared<Shape> shared;
    static_assert(sizeof(shared) <= CUDA__LU_SHARED_MAX, "it fits");
    const size_t spill = cuda__lu_strip_spill<Shape>();
    int64_t most = spill > 0 ? (int64_t)(space_bytes / spill) : INT32_MAX;
    if (most < 1)
        return cudaErrorMemoryAllocation;
    /* More blocks would spill more than the cache holds. */
    most = spill > 0 && most > cuda__multiprocessors() ? cuda__multiprocessors() : most;
    int64_t blocks = batch.matrices < most ? batch.matrices : most;
    return cuda__start(cuda__lu_strip_kernel<Shape, Blocks>, (unsigned)blocks, Shape::threads,
                       sizeof(shared), stream, batch, n, space);
}

/* A row of the table; order 0: none. */
struct cuda__lu_strip_choice {
    int order, tiles, strips, blocks;
};

/* The shape for order n. Many matrices, more than blocks of the order's own shape find room for at
 * once, may have another one. */
template <typename T>
static cuda__lu_strip_choice cuda__lu_strip_choose(int64_t n, int64_t matrices)
{
    cuda__lu_strip_choice few = {}, many = {};
#define CUDA__LU_STRIP_IS(choice, type, most, tiles, strips, blocks)                               \
    if (std::is_same<type, T>::value && n <= most && choice.order == 0)                            \
        choice = {most, tiles, strips, blocks};
#define CUDA__LU_STRIP(...) CUDA__LU_STRIP_IS(few, __VA_ARGS__)
#define CUDA__LU_STRIP_OF_MANY(...) CUDA__LU_STRIP_IS(many, __VA_ARGS__)
#include "gpu/cuda/tuning/h200/lu_strip.cuh"
#undef CUDA__LU_STRIP
#undef CUDA__LU_STRIP_OF_MANY
#undef CUDA__LU_STRIP_IS
    bool other = many.order == few.order && matrices > few.blocks * cuda__multiprocessors();
    return other ? many : few;
}

template <typename Shape, int Blocks> struct cuda__lu_strip_row {
    typedef Shape shape;
    static constexpr int blocks = Blocks;
};

/* f(cuda__lu_strip_row) of the choice. */
template <typename T, typename F> static void cuda__lu_strip_with(cuda__lu_strip_choice choice, F f)
{
#define CUDA__LU_STRIP(type, most, by_warp, warps, together)                                       \
    if constexpr (std::is_same<type, T>::value) {                                                  \
        if (choice.order == most && choice.tiles == by_warp && choice.strips == warps)             \
            return f(                                                                              \
                cuda__lu_strip_row<cuda__lu_strip_shape<type, most, by_warp, warps>, together>()); \
    }
#define CUDA__LU_STRIP_OF_MANY CUDA__LU_STRIP
#include "gpu/cuda/tuning/h200/lu_strip.cuh"
#undef CUDA__LU_STRIP
#undef CUDA__LU_STRIP_OF_MANY
}

/* What a block takes for order n, of either shape: shared memory, 0 where there is no kernel for
 * it; and what it spills to the workspace. */
struct cuda__lu_strip_needs {
    size_t shared_bytes, spill_bytes;
};

template <typename T> static inline cuda__lu_strip_needs cuda__lu_strip_needs_of(int64_t n)
{
    cuda__lu_strip_needs needs = {0, 0};
    for (int64_t matrices : {int64_t(1), INT64_MAX})
        cuda__lu_strip_with<T>(cuda__lu_strip_choose<T>(n, matrices), [&](auto row) {
            typedef typename decltype(row)::shape shape;
            size_t shared = sizeof(cuda__lu_strip_shared<shape>);
            size_t spill = cuda__lu_strip_spill<shape>();
            needs.shared_bytes = shared > needs.shared_bytes ? shared : needs.shared_bytes;
            needs.spill_bytes = spill > needs.spill_bytes ? spill : needs.spill_bytes;
        });
    return needs;
}

typedef cudaError_t cuda__lu_strip_launcher(int64_t n, const cuda_batch &batch, void *space,
                                            size_t space_bytes, cudaStream_t stream);
cuda__lu_strip_launcher cuda__lu_strip_f32, cuda__lu_strip_f64;
/* Shapes with far panels, in files of their own: they take long to compile. */
cuda__lu_strip_launcher cuda__lu_strip_far_f32, cuda__lu_strip_far_f64;

/* The order's shape, of those with or without far panels; for a shape of the other kind other(). */
template <typename T, bool Far>
static cudaError_t cuda__lu_strip_pick(int64_t n, const cuda_batch &batch, void *space,
                                       size_t space_bytes, cudaStream_t stream,
                                       cuda__lu_strip_launcher *other)
{
    cudaError_t status = cudaErrorInvalidValue;
    cuda__lu_strip_with<T>(cuda__lu_strip_choose<T>(n, batch.matrices), [&](auto row) {
        typedef decltype(row) of;
        if constexpr ((of::shape::far > 0) == Far)
            status = cuda__lu_strip_launch<typename of::shape, of::blocks>(n, batch, space,
                                                                           space_bytes, stream);
        else if (other)
            status = other(n, batch, space, space_bytes, stream);
    });
    return status;
}

#endif
