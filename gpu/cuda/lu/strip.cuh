/* gpu/cuda/lu/strip.cuh: the inverse of a matrix whose every number is in its multiprocessor from
 * load to store, by block Gauss-Jordan elimination with partial pivoting: the strip of a warp. The
 * block, and the kernel, are in strip_launch.cuh.
 *
 * A warp holds a strip of columns, in the layout of the tensor cores' accumulators; one warp more
 * eliminates panels (strip.cuh). A panel of `block` columns goes through shared memory to that
 * warp and comes back as M (order x block). Each strip puts what the panel's chosen rows held into
 * its own part of shared memory, R, and becomes C + M R; M has no ones for the chosen rows, whose C
 * stays where it is. The strip that holds the next panel goes first: while the others work, the
 * next panel is eliminated already.
 *
 * Far panels are those that do not fit in registers. They stay in shared memory, one panel a tile;
 * they are dealt round-robin to the warps, which update them after their own columns, and are
 * eliminated in place. Panels that do not fit there spill to global memory (L2 in practice). A
 * spilled panel is prefetched into a shared staging buffer one iteration before its elimination.
 *
 * Rows are never moved: row r, chosen in step k, ends as row k, and entry j of the inverse belongs
 * in the column numbered as the row chosen in step j. Rows of the inverse are divided by their
 * pivots in the end. The work is on A, not on its transpose: of a block elimination only I - X A is
 * small.
 *
 * Cost, by counting, in cycles of a multiprocessor of an H200, n = Order: n^3 / 128 of arithmetic,
 * on the tensor cores in FP64; n steps (strip.cuh) and n / block times some 500 between panels,
 * which other blocks of the multiprocessor may hide. Measured on an H200, 2026-11-21, FP64, n =
 * 128: a matrix takes a block 57 us, of which the steps are some 55 of 100, and what the strips do
 * between two panels some 20. With panels in shared memory, 2026-11-22: n = 160 91 us, 192 145 us,
 * 208 185 us. With spilled ones their latency shows: n = 224 316 us.
 */
#ifndef GPU_CUDA_LU_STRIP_CUH
#define GPU_CUDA_LU_STRIP_CUH

#include <type_traits>

#include "gpu/cuda/lu/panel.cuh"
#include "gpu/cuda/base/reduce.cuh"
#include "gpu/cuda/base/check.cuh"

/* ---- A panel ---- */

/* A panel of columns is eliminated by one warp, for an inverse, while the other warps of the
 * block do something else (strip.cuh).
 *
 * A lane has the rows lane, lane + 32, ... of the panel in registers. Step k takes the largest
 * magnitude of the panel's column k among the rows not chosen yet: numbers are distinguished by
 * their leading 13 bits of fraction in FP64 and 16 in FP32 (15 beyond 256 rows), and of equal ones
 * the first row is taken. So one reduction over keys that end in the row's number finds it.
 * Reciprocals are had meanwhile, because that takes as long. The lane of the chosen row puts it
 * into shared memory for all; other rows are eliminated, and the step's column becomes the
 * multipliers. Chosen rows are not divided by their pivots.
 *
 * The step's column is always a row's first register, and the others move down by one as they are
 * updated, so that all steps run the same code; after `block` of them every column is back.
 *
 * Cost: a step is a chain of a reduction, or a reciprocal, and a row through shared memory; besides
 * it go block multiplications and additions a row. Some 500 cycles on an H200, 2026-11-21, for n =
 * 128 in FP64, where a lane has four rows.
 */

/* A row of a panel is four pieces of 16 bytes, in shared memory in an order that keeps both lanes
 * with eight rows and lanes with two rows apart: piece t of row g is at: */
static __device__ __forceinline__ int cuda__lu_turned(int row, int piece)
{
    return piece ^ (row >> 1 & 3);
}

/* -1/x, within an ulp where it and x are normal numbers; NaN for 0. */
static __device__ __forceinline__ double cuda__lu_negated_reciprocal(double x)
{
    double r = cuda__estimate_reciprocal(x), e = fma(-x, r, 1.0);
    return fma(-r, fma(e, e, e), -r);
}

static __device__ __forceinline__ float cuda__lu_negated_reciprocal(float x)
{
    float r = cuda__estimate_reciprocal(x);
    return fmaf(-r, fmaf(-x, r, 1.0f), -r);
}

/* What a panel made of the rows g, g + 8, ...: a byte each, for a lane that has those rows: the
 * row's step in the panel, or 255. */
template <int Order> struct alignas(Order <= 64 ? 8 : 16) cuda__lu_marks {
    static constexpr int bytes = Order <= 64 ? 8 : (Order + 127) / 128 * 16, words = bytes / 4;
    uint32_t word[words];

    __device__ __forceinline__ bool has(int i) const
    {
        return (word[i / 4] & 64u << i % 4 * 8) == 0;
    }

    __device__ __forceinline__ unsigned of(int i) const
    {
        return word[i / 4] >> i % 4 * 8 & 255;
    }
};

/* What is known of the steps so far; shared memory. */
template <typename T, int Order> struct cuda__lu_column_notes {
    static constexpr int block = 4 * cuda__real<T>::width;
    /* The chosen row from the step's column on, double-buffered; and -1 / its pivot. */
    alignas(16) T line[2][block + cuda__real<T>::width];
    T pivot[Order];
    int order[Order];                  /* the row chosen in each step */
    int step[Order];                   /* of each row; -1: not chosen yet */
    cuda__lu_marks<Order> marks[2][8]; /* double-buffered by panels */
};

/* The warp's view of the matrix. Order: rows. */
template <typename T, int Order> struct cuda__lu_column {
    typedef cuda__real<T> real;
    typedef typename real::vector vector;
    static constexpr int width = real::width, block = 4 * width;
    static constexpr int rows = (Order + CUDA__WARP - 1) / CUDA__WARP; /* of a lane */
    static constexpr unsigned row_bits = Order <= 256 ? 255 : 511;
    /* Reciprocals are had of all rows while the warp finds the largest, or of the lane's largest.
     */
    static constexpr bool each_inverse = rows <= 4;
    static_assert(Order <= 384, "a key and the marks hold the row's number");

    cuda__lu_column_notes<T, Order> &notes;
    int n, lane;
    unsigned live; /* bit r: the lane's row r may be chosen */
    T a[rows][block];
    int kept_row, last_row, older_row; /* of this panel, the last and the one before it; or -1 */
    T kept_pivot;

    __device__ __forceinline__ cuda__lu_column(cuda__lu_column_notes<T, Order> &steps, int order,
                                               int own)
        : notes(steps), n(order), lane(own), live(0), kept_row(-1), last_row(-1), older_row(-1),
          kept_pivot(0)
    {
#pragma unroll
        for (int r = 0; r < rows; r++)
            live |= (unsigned)(r * CUDA__WARP + lane < n) << r;
    }

    /* Calls f(numbers, place in memory) for each piece of the lane's rows. */
    template <typename F> __device__ __forceinline__ void each(T *m, F f)
    {
#pragma unroll
        for (int r = 0; r < rows; r++) {
            int row = r * CUDA__WARP + lane;
#pragma unroll
            for (int p = 0; p < 4; p++) {
                if (r + 1 < rows || Order % CUDA__WARP == 0 || row < Order)
                    f(&a[r][p * width], m + row * block + cuda__lu_turned(lane, p) * width);
            }
        }
    }

    __device__ __forceinline__ void read(T *m)
    {
#pragma unroll
        for (int e = 0; e < rows * block; e++)
            a[e / block][e % block] = 0;
        each(m, [](T *x, const T *from) {
            vector piece = *(const vector *)from;
#pragma unroll
            for (int v = 0; v < width; v++)
                x[v] = ((const T *)&piece)[v];
        });
    }

    __device__ __forceinline__ void write(T *m)
    {
        each(m, [](const T *x, T *to) {
            vector piece;
#pragma unroll
            for (int v = 0; v < width; v++)
                ((T *)&piece)[v] = x[v];
            *(vector *)to = piece;
        });
    }

    /* The row of the largest first number, exactly; for numbers so small that their keys are
     * nothing. */
    __device__ __forceinline__ int search() const
    {
        T most = 0;
        int row = INT32_MAX;
#pragma unroll
        for (int r = 0; r < rows; r++) {
            bool better = (live >> r & 1) && (fabs(a[r][0]) > most || row == INT32_MAX);
            most = better ? fabs(a[r][0]) : most;
            row = better ? r * CUDA__WARP + lane : row;
        }
        unsigned lead = real::lead(most), rest = real::rest(most);
        unsigned high = __reduce_max_sync(CUDA__ALL, lead);
        unsigned low = __reduce_max_sync(CUDA__ALL, lead == high ? rest : 0u);
        return __reduce_min_sync(CUDA__ALL, lead == high && rest == low ? row : INT32_MAX);
    }

    /* What orders the lane's row r: 0 where it cannot be chosen. */
    __device__ __forceinline__ unsigned key(int r) const
    {
        unsigned row = r * CUDA__WARP + lane;
        unsigned key = (real::lead(a[r][0]) << 1 & ~row_bits) | (row_bits - row);
        return live >> r & 1 ? key : 0;
    }

    /* What finds the row to be chosen, and -1 / its first number in the lane that has it. */
    __device__ __forceinline__ unsigned seek(T (&inverse)[rows]) const
    {
        unsigned best = key(0);
        T first = a[0][0];
#pragma unroll
        for (int r = 1; r < rows; r++) {
            unsigned other = key(r);
            if (!each_inverse)
                first = other > best ? a[r][0] : first;
            best = other > best ? other : best;
        }
        best = __reduce_max_sync(CUDA__ALL, best);
#pragma unroll
        for (int r = 0; r < rows; r++)
            inverse[r] = r == 0 || each_inverse
                             ? cuda__lu_negated_reciprocal(each_inverse ? a[r][0] : first)
                             : inverse[0];
        return best;
    }

    /* The row that was found. */
    __device__ __forceinline__ int found(unsigned best, T (&inverse)[rows]) const
    {
#pragma unroll
        for (int r = 0; r < (each_inverse ? rows : 1); r++)
            cuda__keep(inverse[r]); /* here, and not once it is known which one is wanted */
        if (best > row_bits)
            return (int)(row_bits - (best & row_bits));
        int row = search();
#pragma unroll
        for (int r = 0; r < rows; r++)
            inverse[r] = cuda__lu_negated_reciprocal(a[r][0]);
        return row;
    }

    /* The chosen row and what belongs to it, for all lanes. */
    __device__ __forceinline__ void show(int chosen, const T (&inverse)[rows], int turn) const
    {
        cuda__address line = cuda__address_of(notes.line[turn]);
#pragma unroll
        for (int r = 0; r < rows; r++) {
            bool self = r * CUDA__WARP + lane == chosen;
            alignas(16) T last[width] = {inverse[r]};
            int group = chosen / CUDA__WARP;
            cuda__keep(group); /* or a[group] would be taken, and a would be in memory */
            if (rows > 2 && group != r)
                continue;
#pragma unroll
            for (int j = 0; j < block; j += width)
                cuda__store_if(self, line + j * (int)sizeof(T), &a[r][j]);
            cuda__store_if(self, line + block * (int)sizeof(T), last);
        }
        __syncwarp();
    }

    /* The row is eliminated from the others. Before the columns behind the next step's that one's
     * search begins: the two go on side by side. Returns what it found. */
    __device__ __forceinline__ unsigned eliminate(int chosen, T (&inverse)[rows], int turn,
                                                  bool more)
    {
        const T *line = notes.line[turn];
        T m[rows], by = line[block];
        unsigned best = 0;
#pragma unroll
        for (int r = 0; r < rows; r++) {
            bool self = r * CUDA__WARP + lane == chosen;
            m[r] = self ? T(0) : a[r][0] * by;
            live &= self ? ~(1u << r) : ~0u;
        }
#pragma unroll
        for (int j = 0; j < block; j += width) {
            vector piece = *(const vector *)(line + j);
#pragma unroll
            for (int v = j == 0; v < width; v++) {
#pragma unroll
                for (int r = 0; r < rows; r++)
                    a[r][j + v - 1] = fma(m[r], ((const T *)&piece)[v], a[r][j + v]);
                if (more && j + v == 1)
                    best = seek(inverse);
            }
        }
#pragma unroll
        for (int r = 0; r < rows; r++)
            a[r][block - 1] = m[r];
        return best;
    }

    /* What lane k keeps of the panel's step k until all of them are done. */
    __device__ __forceinline__ void keep(int k, int chosen, int turn)
    {
        bool own = lane == k;
        kept_row = own ? chosen : kept_row;
        kept_pivot = own ? notes.line[turn][0] : kept_pivot;
    }

    static __device__ __forceinline__ void mark(cuda__lu_marks<Order> *marks, int row, int as)
    {
        unsigned at = (unsigned)row;
        if (row >= 0)
            ((uint8_t *)&marks[at % 8])[at / 8] = (uint8_t)as;
    }

    __device__ __forceinline__ void note(cuda__lu_marks<Order> *marks, int first, int count)
    {
        int step = first + lane;
        mark(marks, older_row, 255);
        older_row = last_row;
        last_row = kept_row;
        kept_row = -1;
        if (lane >= count)
            return;
        notes.pivot[step] = kept_pivot;
        notes.order[step] = last_row;
        notes.step[last_row] = step;
        mark(marks, last_row, lane);
    }

    /* After `count` steps every column goes back to its place. */
    __device__ __forceinline__ void turn_back(int count)
    {
#pragma unroll 1
        for (int k = count; k < block; k++) {
#pragma unroll
            for (int r = 0; r < rows; r++) {
                T first = a[r][0];
#pragma unroll
                for (int j = 1; j < block; j++)
                    a[r][j - 1] = a[r][j];
                a[r][block - 1] = first;
            }
        }
    }

    /* The panel at column `first`, or what there is of it, is replaced by M. */
    __device__ __forceinline__ void run(T *m, cuda__lu_marks<Order> *marks, int first)
    {
        int count = n - first < block ? n - first : block;
        read(m);
        T inverse[rows];
        int chosen = found(seek(inverse), inverse), last = count - 1;
#pragma unroll 1
        for (int k = 0; k < last; k++) {
            show(chosen, inverse, k & 1);
            unsigned best = eliminate(chosen, inverse, k & 1, true);
            keep(k, chosen, k & 1);
            chosen = found(best, inverse);
        }
        show(chosen, inverse, last & 1);
        eliminate(chosen, inverse, last & 1, false);
        keep(last, chosen, last & 1);
        note(marks, first, count);
        turn_back(count);
        write(m);
    }
};

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
    static constexpr int r_line = columns + (slots > 0 ? block : 0) + (sizeof(T) == 8 ? 2 : 0);
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

    /* Calls f(row, tile, numbers) for what the lane has in the rows of unit i. */
    template <typename F> __device__ __forceinline__ void each_of(int i, F f)
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
#pragma unroll
            for (int j = 0; j < tiles; j++)
                f(i * 16 + h * 8 + g, j, c[i][j][h]);
#pragma unroll
            for (int s = 0; s < Shape::slots; s++) {
                if (s < filled)
                    at(s, [&](T *x) {
                        f(i * 16 + h * 8 + g, tiles + s, x + piece(i * 16 + h * 8 + g));
                    });
            }
        }
    }

    template <typename F> __device__ __forceinline__ void each(F f)
    {
#pragma unroll
        for (int i = 0; i < Shape::units; i++)
            each_of(i, f);
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
        int p = s * Shape::strips + index;
        if (is_spilled(s, index))
            f(spill + (p - Shape::shared_far) * Shape::area);
        else
            f(shared_panels + p * Shape::area);
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

    /* The largest sum of magnitudes of a column; after it all lanes have it. */
    __device__ __forceinline__ T largest_column(T by)
    {
        T sums[all][width] = {}, most = 0;
        each([&](int, int j, T *x) {
#pragma unroll
            for (int v = 0; v < width; v++)
                sums[j][v] += fabs(x[v] * by);
        });
#pragma unroll
        for (int j = 0; j < all * width; j++) {
            T sum = sums[j / width][j % width];
            sum += __shfl_xor_sync(CUDA__ALL, sum, 4);
            sum += __shfl_xor_sync(CUDA__ALL, sum, 8);
            sum += __shfl_xor_sync(CUDA__ALL, sum, 16);
            most = cuda__max_or_nan(most, sum);
        }
        return most;
    }

    /* A part of a row's sum, which the lanes t have together. */
    __device__ __forceinline__ void put_part(T sum, T *to) const
    {
        sum += __shfl_xor_sync(CUDA__ALL, sum, 1);
        sum += __shfl_xor_sync(CUDA__ALL, sum, 2);
        if (t == 0)
            *to = sum;
    }

    /* The strip's parts of the sums of rows, its columns times `by`. */
    __device__ __forceinline__ void row_sums(const T (&by)[all][width], T *to)
    {
#pragma unroll
        for (int i = 0; i < 2 * Shape::units; i++) {
            T sum = 0, *row = to + i * 8 + g;
#pragma unroll
            for (int j = 0; j < tiles; j++) {
#pragma unroll
                for (int v = 0; v < width; v++)
                    sum = fma(c[i / 2][j][i % 2][v], by[j][v], sum);
                if (!Shape::by_panels)
                    continue;
                put_part(sum, row + (index * tiles + j) * Shape::order);
                sum = 0;
            }
#pragma unroll
            for (int s = 0; s < Shape::slots; s++) {
                if (s >= filled)
                    continue;
                vector x;
                at(s, [&](const T *from) { x = *(const vector *)(from + piece(i * 8 + g)); });
#pragma unroll
                for (int v = 0; v < width; v++)
                    sum = fma(((const T *)&x)[v], by[tiles + s][v], sum);
                if (!Shape::by_panels)
                    continue;
                put_part(sum, row + (Shape::held + s * Shape::strips + index) * Shape::order);
                sum = 0;
            }
            if (!Shape::by_panels)
                put_part(sum, row + index * Shape::order);
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

    /* ---- Far panels ---- */

    /* Which of the warp's panel number p is; or one that it has not. */
    __device__ __forceinline__ int slot_of(int p) const
    {
        int behind = p - Shape::held - index;
        return behind >= 0 && behind % Shape::strips == 0 ? behind / Shape::strips : filled;
    }

    /* The chosen rows of the panel at `from` go to their part of R: order[q], for the first
     * `count`.
     */
    __device__ __forceinline__ void take_rows(const T *from, const int *order, int count)
    {
        __syncwarp();
#pragma unroll
        for (int e = lane; e < block * 4; e += CUDA__WARP) {
            int q = e / 4, row = q < count ? order[q] : 0;
            vector x = {};
            if (q < count)
                x = *(const vector *)(from + row * block + cuda__lu_turned(row, e % 4) * width);
            *(vector *)(r + q * Shape::r_line + tiles * block + e % 4 * width) = x;
        }
        __syncwarp();
    }

    /* Where a panel has become M there, it gets the ones that it lacks. */
    __device__ __forceinline__ void complete(T *m, const int *order, int count) const
    {
        if (lane < count) {
            int row = order[lane];
            m[row * block + cuda__lu_turned(row, lane / width) * width + lane % width] += 1;
        }
        __syncwarp();
    }

    /* M and those ones. */
    __device__ __forceinline__ void put_away(const T *m, T *to, const marks &all) const
    {
        const cuda__lu_marks<Shape::order> marks = all[g];
#pragma unroll
        for (int i = 0; i < 2 * Shape::units; i++) {
            int q = (int)marks.of(i) - t * width;
            alignas(16) T x[width];
            *(vector *)x = *(const vector *)(m + piece(i * 8 + g));
#pragma unroll
            for (int v = 0; v < width; v++)
                x[v] += q == v ? T(1) : T(0);
            *(vector *)(to + piece(i * 8 + g)) = *(const vector *)x;
        }
    }

    /* Units, or in FP32 rows of the lane, that are multiplied together: as many as registers are
     * left for, for those of the spill are long on their way. */
    static constexpr int spare = (Shape::warps <= 8 ? 255 : 168) - 64 -
                                 Shape::units * tiles * 2 * width * (int)sizeof(T) / 4;
    static constexpr int least = sizeof(T) == 8 ? 2 : 8, most = sizeof(T) == 8 ? 4 : 8;
    static constexpr int wanted = spare * 4 / (16 * least);
    static constexpr int together = wanted < least ? least : wanted < most ? wanted : most;

    /* C + M R for a far panel. */
    __device__ __forceinline__ void update_far(const T *from, T *to, const T *m)
    {
        constexpr int count = sizeof(T) == 8 ? Shape::units : 2 * Shape::units;
        constexpr int rest = count % together;
#pragma unroll 1
        for (int i = 0; i + together <= count; i += together)
            update_part<together>(i, from, to, m);
        if constexpr (rest > 0)
            update_part<rest>(count - rest, from, to, m);
    }

    template <int Count>
    __device__ __forceinline__ void update_part(int first, const double *from, double *to,
                                                const double *m)
    {
        const double *rows = r + 2 * t * Shape::r_line + tiles * block + g;
        double b[2] = {rows[0], rows[Shape::r_line]};
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
                                                const float *m)
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
                b[0][q] =
                    *(const float4 *)(r + (k + q) * Shape::r_line + tiles * block + t * width);
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
