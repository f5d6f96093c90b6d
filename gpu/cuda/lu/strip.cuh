/* gpu/cuda/lu/strip.cuh: the inverse of a matrix whose every number is in its multiprocessor from
 * load to store, by block Gauss-Jordan elimination with partial pivoting: the strip of a warp. The
 * block, and the kernel, are in strip_launch.cuh.
 *
 * A warp holds a strip of columns, in the layout of the tensor cores' accumulators; one warp more
 * eliminates panels (strip_panel.cuh). A panel of `block` columns goes through shared memory to
 * that warp and comes back as M (order x block). Each strip puts what the panel's chosen rows held
 * into its own part of shared memory, R, solves L Y = R, and becomes C + M Y. The panel's own
 * columns count as those of the identity. The strip that holds the next panel goes first: while the
 * others work, the next panel is eliminated already.
 *
 * M holds what each step of the panel adds of its row to another: that one's entry over the pivot,
 * negated, as it was at that step. Its chosen rows are L, but for the diagonal, and what later
 * steps add. So Y holds rows of U, and all rows are fed from them, chosen ones too: those become
 * rows of Y on the way, bit for bit, because the sums of both go in the order of the steps, each
 * product rounded with its sum. The tensor cores do so too (seen on an H100, 2026-11-27: of 256,000
 * sums of eight products all). One product in place of two, C + P R with P = M L^-1, is the same in
 * exact arithmetic. Rounded, it keeps |I - X A| small but lets |I - A X| grow with the condition,
 * up to 1e11 n |A| |X| eps. With the factors a step adds one computed row everywhere, as in
 * Gauss-Jordan elimination without blocks (Higham, Accuracy and Stability of Numerical Algorithms,
 * 14.4): both stay below one.
 *
 * Far panels are those that do not fit in registers. They stay in shared memory, one panel a tile;
 * they are dealt round-robin to the warps, which update them after their own columns, and are
 * eliminated in place. Panels that do not fit there spill to global memory (L2 in practice). A
 * spilled panel is prefetched into a shared staging buffer one iteration before its elimination.
 *
 * Rows are never moved: row r, chosen in step k, ends as row k, and entry j of the inverse belongs
 * in the column numbered as the row chosen in step j. Rows of the inverse are divided by their
 * pivots in the end.
 *
 * Cost, by counting, in cycles of a multiprocessor of an H200, n = Order: n^3 / 128 of arithmetic,
 * on the tensor cores in FP64; n steps (strip_panel.cuh) and n / block times some 500 between
 * panels, which other blocks of the multiprocessor may hide. Measured on an H200, 2026-11-21, FP64,
 * n = 128: a matrix takes a block 57 us, of which the steps are some 55 of 100, and what the strips
 * do between two panels some 20. With panels in shared memory, 2026-11-22: n = 160 91 us, 192 145
 * us, 208 185 us. With spilled ones their latency shows: n = 224 316 us. All these are of panels
 * that were one product.
 */
#ifndef GPU_CUDA_LU_STRIP_CUH
#define GPU_CUDA_LU_STRIP_CUH

#include <type_traits>

#include "gpu/cuda/lu/strip_panel.cuh"
#include "gpu/cuda/base/reduce.cuh"
#include "gpu/cuda/base/check.cuh"

/* Has the order another shape where there are many matrices? */
template <typename T> static constexpr bool cuda__lu_strip_has_other(int order)
{
#define CUDA__LU_STRIP(type, most, tiles, strips, blocks)
#define CUDA__LU_STRIP_OF_MANY(type, most, tiles, strips, blocks)                                  \
    if (std::is_same<type, T>::value && order == most)                                             \
        return true;
#include "gpu/cuda/tuning/h200/lu_strip.cuh"
#undef CUDA__LU_STRIP
#undef CUDA__LU_STRIP_OF_MANY
    return false;
}

/* Tiles: panels of columns in a strip's registers. */
template <typename T, int Order_, int Tiles_, int Strips_> struct cuda__lu_strip_frame {
    typedef T real_type;
    static constexpr int order = Order_, tiles = Tiles_, width = cuda__real<T>::width;
    static constexpr int block = cuda__lu_column<T, order>::block;
    static constexpr int columns = tiles * block;
    static constexpr int strips = Strips_, held = strips * tiles; /* panels in registers */
    static constexpr int panels = (order + block - 1) / block;
    static constexpr int far = panels > held ? panels - held : 0; /* the others */
    static constexpr int slots = (far + strips - 1) / strips;     /* a warp's of those */
    static constexpr int warps = strips + 1, threads = warps * CUDA__WARP;
    static constexpr int units = order / 16;
    /* Lanes that differ in the row of R read other banks. */
    static constexpr int r_line = columns + slots * block + (sizeof(T) == 8 ? 4 : 0);
    static constexpr int area = order * block; /* numbers of a panel */
    /* Are sums of rows added up of panels' parts, so that how panels are shared out is no matter?
     * Else of warps' parts, which are fewer. */
    static constexpr bool by_panels = cuda__lu_strip_has_other<T>(order);
    static constexpr int parts = !by_panels ? strips : panels > held ? panels : held;
    static_assert(parts <= 2 * block, "they have room in two panels");
    static_assert(order % 16 == 0, "units divide the matrix");
    static_assert(2 * block >= 16, "two panels have room for the rows of a unit");
    static constexpr int row_turns = (order + threads - 1) / threads; /* rows of a thread */
};

/* Shared memory, without far panels. */
template <typename Frame> struct cuda__lu_strip_base {
    typedef typename Frame::real_type T;
    alignas(16) T m[2][Frame::area]; /* double-buffered; before and after, sums of rows */
    alignas(16) T r[Frame::strips][Frame::block * Frame::r_line];
    cuda__lu_column_notes<T, Frame::order> notes;
    /* A times the factor times the vector of signs. */
    T product[Frame::order];
    T scale[Frame::order]; /* of each row in the end */
    T max[Frame::warps];
    int votes[Frame::warps];
};

/* Far panels in shared memory, and spilled ones, for which one place is the staging buffer. */
template <typename T, int Order, int Tiles, int Strips>
struct cuda__lu_strip_shape : cuda__lu_strip_frame<T, Order, Tiles, Strips> {
    typedef cuda__lu_strip_frame<T, Order, Tiles, Strips> frame;
    static constexpr int places = (int)((CUDA__LU_SHARED_MAX - sizeof(cuda__lu_strip_base<frame>)) /
                                        (frame::area * sizeof(T)));
    static constexpr int shared_far = places >= frame::far ? frame::far : places - 1;
    static constexpr int spilled = frame::far - shared_far;
};

template <typename Shape>
struct cuda__lu_strip_shared : cuda__lu_strip_base<typename Shape::frame> {
    typedef typename Shape::real_type T;
    /* Far panels, and the staging buffer; without them the result. */
    alignas(16) T room[Shape::slots > 0 ? (Shape::shared_far + (Shape::spilled > 0)) * Shape::area
                                        : Shape::order *Shape::order];
};

/* A warp's strip. A lane has two rows, `g` and g + 8, of each unit of 16, and `width` columns of
 * each tile. */
template <typename Shape> struct cuda__lu_strip {
    typedef typename Shape::real_type T;
    typedef cuda__real<T> real;
    typedef typename real::vector vector;
    static constexpr int width = Shape::width, tiles = Shape::tiles, block = Shape::block;
    static constexpr int all = tiles + Shape::slots; /* tiles of a lane, far panels last */
    typedef cuda__lu_marks<Shape::order> marks[8];

    alignas(16) T c[Shape::units][tiles][2][width];
    int n, lane, g, t, left; /* left: the lane's first column */
    int index, filled;       /* the warp's number, and how many far panels it has */
    T *r, *shared_panels, *spill;

    /* Calls f(row, numbers) for what the lane has of far panel number s. A loop, other than of what
     * is in registers: unrolled, its code would not stay in the instruction cache. */
    template <typename F> __device__ __forceinline__ void each_far(int s, F f)
    {
        at(s, [&](T *x) {
#pragma unroll 2
            for (int row = g; row < Shape::order; row += 8)
                f(row, x + piece(row));
        });
    }

    /* The same of all that the lane has. */
    template <typename F> __device__ __forceinline__ void each(F f)
    {
#pragma unroll
        for (int e = 0; e < 2 * Shape::units * tiles; e++)
            f(e / tiles * 8 + g, c[e / tiles / 2][e % tiles][e / tiles % 2]);
        if (Shape::slots > 0) {
#pragma unroll 1
            for (int s = 0; s < filled; s++)
                each_far(s, f);
        }
    }

    /* The lane's first column of tile j. */
    __device__ __forceinline__ int column(int j) const
    {
        return j < tiles ? left + j * block
                         : (Shape::held + (j - tiles) * Shape::strips + index) * block + t * width;
    }

    __device__ __forceinline__ bool has(int j) const
    {
        return j < tiles || j - tiles < filled;
    }

    /* Is the warp's far panel number s spilled? */
    static __device__ __forceinline__ bool is_spilled(int s, int warp)
    {
        return Shape::spilled > 0 && s * Shape::strips + warp >= Shape::shared_far;
    }

    /* Calls f(where the warp's far panel number s is). */
    template <typename F> __device__ __forceinline__ void at(int s, F f) const
    {
        if (is_spilled(s, index))
            f(spilled(s));
        else
            f(shared_panels + (s * Shape::strips + index) * Shape::area);
    }

    __device__ __forceinline__ T *spilled(int s) const
    {
        return spill + (s * Shape::strips + index - Shape::shared_far) * Shape::area;
    }

    /* Registers alone. */
    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int e = 0; e < Shape::units * tiles * 2; e++)
            *(vector *)c[e / (2 * tiles)][e / 2 % tiles][e % 2] = vector{};
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

    /* A piece of a far column's row, or what there is of it; in the end in shared memory. */
    template <int Width>
    __device__ __forceinline__ void fetch_piece(T *to, const T *from, int row, int column,
                                                bool below) const
    {
#pragma unroll
        for (int v = 0; v < width; v += Width) {
            bool inside = row < n && column + v < n;
            if (inside && !below)
                cuda__copy_async<Width *(int)sizeof(T)>(to + v, from + v);
            else if (Width == 1)
                to[v] = inside ? from[v] : T(0);
            else
                *(vector *)to = inside ? *(const vector *)from : vector{};
        }
    }

    template <int Width> __device__ __forceinline__ void fetch_by(const T *a)
    {
#pragma unroll 1
        for (int s = 0; s < filled; s++) {
            int first = column(tiles + s);
            at(s, [&](T *to) {
#pragma unroll 4
                for (int row = g; row < Shape::order; row += 8)
                    fetch_piece<Width>(to + piece(row), a + (int64_t)row * n + first, row, first,
                                       is_spilled(s, index));
            });
        }
    }

    __device__ __forceinline__ void read(const T *a)
    {
        bool whole = n % width == 0 && (uintptr_t)a % 16 == 0;
        if (Shape::slots > 0 && whole)
            fetch_by<width>(a);
        else if (Shape::slots > 0)
            fetch_by<1>(a);
        if (whole)
            read_by<width>(a);
        else
            read_by<1>(a);
        if (Shape::slots > 0)
            cuda__copy_wait();
    }

    /* The largest sum of magnitudes of a column, of a lane's part of the columns: of the warp's,
     * the largest of the lanes'. */
    __device__ __forceinline__ T largest_column(T by)
    {
        T sums[tiles * width] = {};
#pragma unroll
        for (int e = 0; e < 2 * Shape::units * tiles * width; e++) {
            const int i = e / (tiles * width), k = e % (tiles * width);
            sums[k] += fabs(c[i / 2][k / width][i % 2][k % width] * by);
        }
        T most = cuda__share_sums<4, 16>(sums);
        if (Shape::slots > 0) {
#pragma unroll 1
            for (int s = 0; s < filled; s++) {
                T far[width] = {};
                each_far(s, [&](int, const T *x) {
#pragma unroll
                    for (int v = 0; v < width; v++)
                        far[v] += fabs(x[v] * by);
                });
                most = cuda__max_or_nan(most, cuda__share_sums<4, 16>(far));
            }
        }
        return most;
    }

    /* A part of a row's sum, which the lanes t have together; adds: to what is there. */
    __device__ __forceinline__ void put_part(T sum, T *to, bool adds) const
    {
        sum += __shfl_xor_sync(CUDA__ALL, sum, 1);
        sum += __shfl_xor_sync(CUDA__ALL, sum, 2);
        if (t == 0)
            *to = adds ? *to + sum : sum;
    }

    /* Which part of a row's sum tile j's is. */
    __device__ __forceinline__ int part(int j) const
    {
        return Shape::by_panels ? index * tiles + j : index;
    }

    /* The strip's parts of the sums of rows, by the tensor cores: each tile times a matrix that has
     * `by` in the column of its part. */
    __device__ __forceinline__ void row_sums_held(const double (&by)[tiles][width], double *to)
    {
        double b[tiles][2];
#pragma unroll
        for (int e = 0; e < tiles * 2; e++)
            b[e / 2][e % 2] = g == (Shape::by_panels ? e / 2 : 0) ? by[e / 2][e % 2] : 0;
#pragma unroll
        for (int i = 0; i < Shape::units; i++) {
            double sums[4] = {};
#pragma unroll
            for (int j = 0; j < tiles; j++) {
                const double a[4] = {c[i][j][0][0], c[i][j][1][0], c[i][j][0][1], c[i][j][1][1]};
                cuda__multiply_add(sums, a, b[j]);
            }
#pragma unroll
            for (int j = 0; t == 0 && j < (Shape::by_panels ? tiles : 1); j++) {
                double *rows = to + part(j) * Shape::order + i * 16 + g;
                rows[0] = sums[j];
                rows[8] = sums[2 + j];
            }
        }
    }

    __device__ __forceinline__ void row_sums_held(const float (&by)[tiles][width], float *to)
    {
        /* Lane t ends with the sum of the row number t of four, or of two. */
        constexpr int together = Shape::units % 2 == 0 ? 4 : 2;
#pragma unroll
        for (int i = 0; i < 2 * Shape::units; i += together) {
#pragma unroll
            for (int j = 0; j < tiles; j += Shape::by_panels ? 1 : tiles) {
                float sums[together] = {};
#pragma unroll
                for (int e = 0; e < together * (Shape::by_panels ? 1 : tiles); e++) {
                    const int row = i + e % together, tile = j + e / together;
                    sums[e % together] =
                        add_row(sums[e % together], c[row / 2][tile][row % 2], by[tile]);
                }
                const float sum = cuda__share_sums<1, 2>(sums);
                if (t < together)
                    to[part(j) * Shape::order + (i + t) * 8 + g] = sum;
            }
        }
    }

    static __device__ __forceinline__ T add_row(T sum, const T *x, const T (&by)[width])
    {
#pragma unroll
        for (int v = 0; v < width; v++)
            sum = fma(x[v], by[v], sum);
        return sum;
    }

    /* The strip's parts of the sums of rows, its columns times weight(column). */
    template <typename F> __device__ __forceinline__ void row_sums(F weight, T *to)
    {
        T by[tiles][width];
#pragma unroll
        for (int e = 0; e < tiles * width; e++)
            by[e / width][e % width] = weight(column(e / width) + e % width);
        row_sums_held(by, to);
        if (Shape::slots > 0) {
            __syncwarp();
#pragma unroll 1
            for (int s = 0; s < filled; s++) {
                const int part = Shape::by_panels ? Shape::held + s * Shape::strips + index : index;
                T own[width];
#pragma unroll
                for (int v = 0; v < width; v++)
                    own[v] = weight(column(tiles + s) + v);
                each_far(s, [&](int row, const T *x) {
                    put_part(add_row(0, x, own), to + part * Shape::order + row, !Shape::by_panels);
                });
            }
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

    /* A panel's own columns, once it is eliminated, begin as those of the identity. */
    template <int J> __device__ __forceinline__ void renew(const marks &all)
    {
        const cuda__lu_marks<Shape::order> marks = all[g];
#pragma unroll
        for (int i = 0; i < 2 * Shape::units; i++) {
            const int q = (int)marks.of(i) - t * width;
#pragma unroll
            for (int v = 0; v < width; v++)
                c[i / 2][J][i % 2][v] = q == v ? T(1) : T(0);
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

    /* Y = L^-1 R takes the place of R in the tiles for which wanted(tile), far ones too. A lane has
     * a column, and adds up in the order of the steps, as the products do. own: the tile whose R is
     * the identity, or another number. */
    template <typename F>
    __device__ __forceinline__ void solve(const T *lower, int own, F wanted) const
    {
#pragma unroll 1
        for (int first = 0; first < all * block; first += CUDA__WARP) {
            const int column = first + lane, tile = column / block;
            if (column < all * block && wanted(tile))
                solve_column(r + column, lower, tile == own ? column % block : -1);
        }
        __syncwarp();
    }

    /* unit: R is this column of the identity; -1: it is in `to`. */
    __device__ __forceinline__ void solve_column(T *to, const T *lower, int unit) const
    {
        T y[block];
#pragma unroll
        for (int q = 0; q < block; q++)
            y[q] = to[q * Shape::r_line];
        if (unit >= 0) {
#pragma unroll
            for (int q = 0; q < block; q++)
                y[q] = q == unit ? T(1) : T(0);
        }
#pragma unroll
        for (int q = 1; q < block; q++) {
#pragma unroll
            for (int k = 0; k < q; k += width) {
                const vector by = *(const vector *)(lower + q * block + k);
#pragma unroll
                for (int v = 0; v < width && k + v < q; v++)
                    y[q] = fma(((const T *)&by)[v], y[k + v], y[q]);
            }
        }
#pragma unroll
        for (int q = 0; q < block; q++)
            to[q * Shape::r_line] = y[q];
    }

    /* What a lane gives of Y to a product: rows t and t + 4 of a column. */
    static __device__ __forceinline__ void take_solution(double (&b)[2], const double *from)
    {
        b[0] = from[0];
        b[1] = from[4 * Shape::r_line];
    }

    /* C += M Y for the tiles First .. Last. */
    template <int First, int Last> __device__ __forceinline__ void update(const double *m)
    {
        double b[Last - First + 1][2];
#pragma unroll
        for (int j = First; j <= Last; j++)
            take_solution(b[j - First], r + t * Shape::r_line + g + j * block);
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

    static __device__ __forceinline__ void add(float *x, float by, const float4 &b)
    {
        x[0] = fmaf(by, b.x, x[0]);
        x[1] = fmaf(by, b.y, x[1]);
        x[2] = fmaf(by, b.z, x[2]);
        x[3] = fmaf(by, b.w, x[3]);
    }

    static __device__ __forceinline__ void add(float *x, const float4 &a, const float4 (&b)[width])
    {
        add(x, a.x, b[0]);
        add(x, a.y, b[1]);
        add(x, a.z, b[2]);
        add(x, a.w, b[3]);
    }

    /* ---- Far panels ---- */

    /* Which of the warp's panel number p is; or one that it has not. */
    __device__ __forceinline__ int slot_of(int p) const
    {
        int behind = p - Shape::held - index;
        return behind >= 0 && behind % Shape::strips == 0 ? behind / Shape::strips : filled;
    }

    /* As renew, of the far panel at `to`, whose chosen rows are order[q], for the first `count`. */
    __device__ __forceinline__ void renew_far(T *to, const int *order, int count) const
    {
#pragma unroll 4
        for (int row = g; row < Shape::order; row += 8)
            *(vector *)(to + piece(row)) = vector{};
        __syncwarp();
        if (lane < block && lane < count)
            to[order[lane] * block + cuda__lu_turned(order[lane], lane / width) * width +
               lane % width] = 1;
        __syncwarp();
    }

    /* The chosen rows of far panel number s, which is at `from`, go to their part of R. */
    __device__ __forceinline__ void take_rows(int s, const T *from, const int *order,
                                              int count) const
    {
        __syncwarp();
#pragma unroll
        for (int turn = 0; turn < block * 4 / CUDA__WARP; turn++) {
            int e = turn * CUDA__WARP + lane, q = e / 4, row = q < count ? order[q] : 0;
            vector x = {};
            if (q < count)
                x = *(const vector *)(from + row * block + cuda__lu_turned(row, e % 4) * width);
            *(vector *)(r + q * Shape::r_line + (tiles + s) * block + e % 4 * width) = x;
        }
        __syncwarp();
    }

    /* Units, or in FP32 rows of the lane, that are multiplied together: as many as registers are
     * left for, for those of the spill are long on their way. */
    static constexpr int spare = (Shape::warps <= 8 ? 255 : 168) - 64 -
                                 Shape::units * tiles * 2 * width * (int)sizeof(T) / 4;
    static constexpr int least = sizeof(T) == 8 ? 2 : 8, most = sizeof(T) == 8 ? 4 : 8;
    static constexpr int wanted = spare * 4 / (16 * least);
    static constexpr int together = wanted < least ? least : wanted < most ? wanted : most;

    /* C + M Y for far panel number s. */
    __device__ __forceinline__ void update_far(int s, const T *from, T *to, const T *m)
    {
        const T *y = r + (tiles + s) * block;
        constexpr int count = sizeof(T) == 8 ? Shape::units : 2 * Shape::units;
        constexpr int rest = count % together;
#pragma unroll 1
        for (int i = 0; i + together <= count; i += together)
            update_part<together>(i, from, to, m, y);
        if constexpr (rest > 0)
            update_part<rest>(count - rest, from, to, m, y);
    }

    template <int Count>
    __device__ __forceinline__ void update_part(int first, const double *from, double *to,
                                                const double *m, const double *y)
    {
        double b[2];
        take_solution(b, y + t * Shape::r_line + g);
        alignas(16) double x[Count][4];
#pragma unroll
        for (int u = 0; u < 2 * Count; u++)
            *(double2 *)&x[u / 2][u % 2 * 2] =
                *(const double2 *)(from + piece((first * 2 + u) * 8 + g));
#pragma unroll
        for (int u = 0; u < Count; u++) {
            double2 upper = *(const double2 *)(m + piece((first + u) * 16 + g));
            double2 lower = *(const double2 *)(m + piece((first + u) * 16 + 8 + g));
            double a[4] = {upper.x, lower.x, upper.y, lower.y};
            cuda__multiply_add(x[u], a, b);
        }
#pragma unroll
        for (int u = 0; u < 2 * Count; u++)
            *(double2 *)(to + piece((first * 2 + u) * 8 + g)) =
                *(const double2 *)&x[u / 2][u % 2 * 2];
    }

    template <int Count>
    __device__ __forceinline__ void update_part(int first, const float *from, float *to,
                                                const float *m, const float *y)
    {
        alignas(16) float x[Count][width];
#pragma unroll
        for (int u = 0; u < Count; u++)
            *(float4 *)x[u] = *(const float4 *)(from + piece((first + u) * 8 + g));
#pragma unroll 1
        for (int k = 0; k < block; k += width) {
            float4 b[1][width];
            const float *by = m + cuda__lu_turned(g, k / width) * width;
#pragma unroll
            for (int q = 0; q < width; q++)
                b[0][q] = *(const float4 *)(y + (k + q) * Shape::r_line + t * width);
#pragma unroll
            for (int u = 0; u < Count; u++)
                add(x[u], *(const float4 *)(by + ((first + u) * 8 + g) * block), b[0]);
        }
#pragma unroll
        for (int u = 0; u < Count; u++)
            *(float4 *)(to + piece((first + u) * 8 + g)) = *(const float4 *)x[u];
    }
};

#endif
