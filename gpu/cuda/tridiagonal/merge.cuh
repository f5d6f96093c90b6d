/* gpu/cuda/tridiagonal/merge.cuh: the inverse of a dominant tridiagonal matrix by merging blocks
 * with Sherman and Morrison's formula, level by level: gpu/host/tridiagonal/merge.c has the
 * splits and the formulas.
 *
 * Of each block of the level only the border and the diagonal are found. What a level subtracts is
 * kept for as many levels as the workspace has room for, for X is written once, from all of them.
 *
 * Blocks of rows up to a block of threads are merged in registers, a row a thread, by as many
 * blocks of threads as there are such chunks. The levels above them are joined by all of these
 * (join.cuh), and where there are too many chunks for that by one block, in memory.
 *
 * Cost: O(n) a level; in registers two barriers a level.
 */
#ifndef GPU_CUDA_TRIDIAGONAL_MERGE_CUH
#define GPU_CUDA_TRIDIAGONAL_MERGE_CUH

#include "gpu/cuda/tridiagonal/device.cuh"
#include "gpu/cuda/tridiagonal/block.cuh"
#include "gpu/cuda/tridiagonal/sweep.cuh"

/* The sign s of the split between rows h and h + 1, of which these are A's numbers. */
static __device__ __forceinline__ double cuda__tri_split(double d, double next, double below,
                                                         double right)
{
    bool upper = signbit(d) == signbit(below), lower = signbit(next) == signbit(right);
    return (fabs(right) <= fabs(below) ? upper : lower) ? -1 : 1;
}

/* A row of the border and of the diagonal of its block's inverse. */
struct cuda__tri_border {
    double first_row, last_row, first_column, last_column, merged;
};

/* One level of a chunk: row i's place in its merger. */
struct cuda__tri_place {
    int64_t first, split, end; /* of its rows; those before `split` are one block */
};

static __device__ __forceinline__ cuda__tri_place cuda__tri_merger_of(int64_t i, int level,
                                                                      int64_t n)
{
    int64_t half = INT64_C(1) << level, first = i & ~(2 * half - 1), split = first + half;
    return {first, split, n - first < 2 * half ? n : first + 2 * half};
}

/* The levels within a chunk. Its first row is a multiple of Threads. */
template <int Threads> struct cuda__tri_chunk_merger {
    struct shared {
        double merged[Threads], column[Threads], row[Threads];
        double largest[2][Threads / CUDA__WARP]; /* of a warp's columns, of its rows */
    };

    const cuda__tri_band<Threads> &band;
    shared *memory;
    cuda__tri_part part;
    int64_t first, n;
    bool keeps; /* the levels */

    /* Of the split between rows t - 1 and t of the chunk: of 0 and Threads too. */
    __device__ __forceinline__ double split_before(int t) const
    {
        return cuda__tri_split(band.middle[t], band.middle[t + 1], band.sub[t + 1], band.sup[t]);
    }

    /* The leaf of this thread's row, alone or the inverse of [p b; c q] by its two Schur
     * complements. Returns the sum of a pair's magnitudes. */
    __device__ __forceinline__ double leaf(cuda__tri_border *of) const
    {
        int t = threadIdx.x, at = t & ~1;
        int64_t i = first + at;
        double p = band.middle[at + 1], q = band.middle[at + 2], b = band.sup[at + 1],
               c = band.sub[at + 2];
        p -= i > 0 ? split_before(at) * band.sup[at] : 0;
        if (i + 1 == n) {
            *of = {1 / p, 1 / p, 1 / p, 1 / p, 1 / p};
            part.leaves()[i] = 0;
            return 0;
        }
        q -= i + 2 < n ? split_before(at + 2) * band.sub[at + 3] : 0;
        double upper = 1 / (p - b * (c / q)), lower = 1 / (q - c * (b / p));
        double right = -(b / p) * lower, left = -(c / q) * upper;
        *of = t == at ? cuda__tri_border{upper, left, upper, right, upper}
                      : cuda__tri_border{right, lower, left, lower, lower};
        part.leaves()[first + t] = t == at ? right : left;
        return fabs(upper) + fabs(lower) + fabs(left) + fabs(right);
    }

    /* What a merger takes from this thread's row. */
    __device__ __forceinline__ void
    find_factors(const cuda__tri_place &at, const cuda__tri_border &of, double *x, double *y) const
    {
        int h = (int)(at.split - 1 - first);
        double sign = split_before(h + 1), below = sign * band.sub[h + 2], right = band.sup[h + 1];
        double divisor = 1 + below * memory->merged[h] + sign * right * memory->merged[h + 1];
        bool upper = first + threadIdx.x < at.split;
        *x = (upper ? of.last_column : sign * of.first_column) / divisor;
        *y = upper ? below * of.last_row : right * of.first_row;
    }

    /* The largest of x, or NaN, of the lanes of one merger. */
    static __device__ __forceinline__ double largest_of(double x, int lanes)
    {
        for (int step = 1; step < lanes; step *= 2) {
            double other = cuda__block<Threads>::shuffle(x, threadIdx.x % CUDA__WARP ^ step);
            x = other <= x || isnan(x) ? x : other;
        }
        return x;
    }

    /* The largest product of a column and a row of this thread's merger, if the thread reports it.
     */
    __device__ __forceinline__ double growth(int level, double x, double y) const
    {
        int rows = 2 << level, warps = rows / CUDA__WARP, warp = threadIdx.x / CUDA__WARP;
        if (rows <= CUDA__WARP)
            return x * y;
        if (threadIdx.x % rows != 0)
            return 0;
        double column = memory->largest[0][warp], row = memory->largest[1][warp];
        for (int i = 1; i < warps; i++) {
            double next = memory->largest[0][warp + i], below = memory->largest[1][warp + i];
            column = next <= column || isnan(column) ? column : next;
            row = below <= row || isnan(row) ? row : below;
        }
        return column * row;
    }

    /* One level more. Returns the growth of this thread's merger, or less. */
    __device__ __forceinline__ double merge(int level, cuda__tri_border *of) const
    {
        int64_t i = first + threadIdx.x;
        cuda__tri_place at = cuda__tri_merger_of(i, level, n);
        bool merges = i < n && at.split < n;
        double x = 0, y = 0;
        memory->merged[threadIdx.x] = of->merged;
        __syncthreads();
        if (merges)
            find_factors(at, *of, &x, &y);
        memory->column[threadIdx.x] = x;
        memory->row[threadIdx.x] = y;
        int lanes = 2 << level < CUDA__WARP ? 2 << level : CUDA__WARP;
        double column = largest_of(fabs(x), lanes), row = largest_of(fabs(y), lanes);
        if (threadIdx.x % CUDA__WARP == 0) {
            memory->largest[0][threadIdx.x / CUDA__WARP] = column;
            memory->largest[1][threadIdx.x / CUDA__WARP] = row;
        }
        if (i < n && keeps) {
            part.column(level)[i] = x;
            part.row(level)[i] = y;
        }
        __syncthreads();
        double seen = growth(level, column, row);
        if (!merges)
            return seen;
        bool upper = i < at.split;
        int top = (int)(at.first - first), bottom = (int)(at.end - 1 - first);
        of->merged -= x * y;
        of->first_row = (upper ? of->first_row : 0) - memory->column[top] * y;
        of->last_row = (upper ? 0 : of->last_row) - memory->column[bottom] * y;
        of->first_column = (upper ? of->first_column : 0) - memory->row[top] * x;
        of->last_column = (upper ? 0 : of->last_column) - memory->row[bottom] * x;
        return seen;
    }

    /* All levels of the chunk. Returns the largest growth that this thread knows of, NaN where a
     * half was singular or the formula divided by zero. */
    __device__ __forceinline__ double run() const
    {
        cuda__tri_border of = {0, 0, 0, 0, 0};
        int64_t i = first + threadIdx.x;
        double seen = i < n ? leaf(&of) : 0, sum = 0;
        for (int level = 1; 2 << level <= Threads && INT64_C(1) << level < n; level++) {
            double more = merge(level, &of);
            seen = more <= seen || isnan(seen) ? seen : more;
        }
        if (i >= n)
            return seen;
        part.merged()[i] = part.array(CUDA__TRI_CHUNK_MERGED)[i] = of.merged;
        part.array(CUDA__TRI_FIRST_ROW)[i] = of.first_row;
        part.array(CUDA__TRI_LAST_ROW)[i] = of.last_row;
        part.array(CUDA__TRI_FIRST_COLUMN)[i] = of.first_column;
        part.array(CUDA__TRI_LAST_COLUMN)[i] = of.last_column;
        sum = of.merged * 0;
        return sum == 0 ? seen : cuda__real<double>::nan();
    }
};

/* The levels above chunks. */
template <int Threads> struct cuda__tri_merger {
    cuda__tri_part part;
    cuda__block<Threads> block;
    int64_t n;
    bool keeps; /* the levels */

    /* The largest column and row of a merger, of which there are n / 4 at most, as bits. */
    __device__ __forceinline__ unsigned long long *largest_column() const
    {
        return (unsigned long long *)part.array(CUDA__TRI_LARGEST);
    }
    __device__ __forceinline__ unsigned long long *largest_row() const
    {
        return largest_column() + part.pitch / 2;
    }

    struct sizes {
        double column, row;
    };

    /* column and row of the merger that row i is in, and their magnitudes. */
    __device__ __forceinline__ sizes factors(int64_t i, int level, double *column,
                                             double *row) const
    {
        cuda__tri_place at = cuda__tri_merger_of(i, level, n);
        bool merges = at.split < n;
        double x = 0, y = 0;
        if (merges) {
            int64_t h = at.split - 1;
            double sign = cuda__tri_split(part.middle()[h], part.middle()[h + 1], part.sub()[h + 1],
                                          part.sup()[h]);
            double below = sign * part.sub()[h + 1], right = part.sup()[h];
            double divisor = 1 + below * part.merged()[h] + sign * right * part.merged()[h + 1];
            bool upper = i < at.split;
            x = (upper ? part.array(CUDA__TRI_LAST_COLUMN)[i]
                       : sign * part.array(CUDA__TRI_FIRST_COLUMN)[i]) /
                divisor;
            y = upper ? below * part.array(CUDA__TRI_LAST_ROW)[i]
                      : right * part.array(CUDA__TRI_FIRST_ROW)[i];
        }
        column[i] = x;
        row[i] = y;
        return {fabs(x), fabs(y)};
    }

    /* The bits of numbers that are not negative, and of NaN, are ordered as they are. */
    static __device__ __forceinline__ void enlarge(unsigned long long *largest, double value)
    {
        atomicMax(largest, (unsigned long long)__double_as_longlong(value));
    }

    /* All rows' factors. Returns 0, or a NaN when one is not finite. */
    __device__ __forceinline__ double find_factors(int level, double *column, double *row)
    {
        double excess = 0;
        for (int64_t base = 0; base < n; base += Threads) {
            int64_t i = base + threadIdx.x;
            sizes size = {0, 0};
            if (i < n)
                size = factors(i, level, column, row);
            excess += size.column * 0 + size.row * 0;
            /* Rows of a warp are one merger's at all levels but the first ones. */
            bool alone = CUDA__WARP >> (level + 1) > 1;
            for (int step = CUDA__WARP / 2; step > 0 && !alone; step /= 2) {
                sizes other = cuda__block<Threads>::shuffle(size, threadIdx.x % CUDA__WARP ^ step);
                size = {fmax(size.column, other.column), fmax(size.row, other.row)};
            }
            if (i >= n || (!alone && threadIdx.x % CUDA__WARP != 0))
                continue;
            enlarge(&largest_column()[i >> (level + 1)], size.column);
            enlarge(&largest_row()[i >> (level + 1)], size.row);
        }
        return excess;
    }

    /* The border and the diagonal of the merged block, in row i. */
    __device__ __forceinline__ double subtract(int64_t i, int level, const double *column,
                                               const double *row) const
    {
        cuda__tri_place at = cuda__tri_merger_of(i, level, n);
        if (at.split >= n)
            return 0;
        bool upper = i < at.split;
        int64_t last = at.end - 1;
        double x = column[i], y = row[i], merged = part.merged()[i] - x * y;
        part.merged()[i] = merged;
        part.array(CUDA__TRI_FIRST_ROW)[i] =
            (upper ? part.array(CUDA__TRI_FIRST_ROW)[i] : 0) - column[at.first] * y;
        part.array(CUDA__TRI_LAST_ROW)[i] =
            (upper ? 0 : part.array(CUDA__TRI_LAST_ROW)[i]) - column[last] * y;
        part.array(CUDA__TRI_FIRST_COLUMN)[i] =
            (upper ? part.array(CUDA__TRI_FIRST_COLUMN)[i] : 0) - row[at.first] * x;
        part.array(CUDA__TRI_LAST_COLUMN)[i] =
            (upper ? 0 : part.array(CUDA__TRI_LAST_COLUMN)[i]) - row[last] * x;
        return merged * 0;
    }

    __device__ __forceinline__ void forget() const
    {
        for (int64_t i = threadIdx.x; i < n / 4 + 1; i += Threads)
            largest_column()[i] = largest_row()[i] = 0;
        block.sync();
    }

    /* The largest product of a column and a row of this level, of each merger. */
    __device__ __forceinline__ double growth(int level) const
    {
        double largest = 0;
        for (int64_t i = threadIdx.x; i < (n >> (level + 1)) + 1; i += Threads) {
            double column = __longlong_as_double((long long)largest_column()[i]);
            double row = __longlong_as_double((long long)largest_row()[i]);
            largest = fmax(largest, column * row);
        }
        return largest;
    }

    /* Levels first and up, on what the chunks left. Fills merged, column and row. *largest: no
     * product of a column and a row was larger. Returns the number of levels of all; -1: the
     * formula divided by zero. */
    __device__ __forceinline__ int run(int first, double *largest)
    {
        double seen = 0, excess = 0;
        int level = 1;
        for (; INT64_C(1) << level < n; level++) {
            if (level < first)
                continue;
            double *column = part.column(keeps ? level : 1), *row = part.row(keeps ? level : 1);
            forget();
            excess += find_factors(level, column, row);
            block.sync();
            seen = fmax(seen, growth(level));
            for (int64_t i = threadIdx.x; i < n; i += Threads)
                excess += subtract(i, level, column, row);
            block.sync();
        }
        *largest = block.largest(seen);
        return block.all(excess == 0) ? level - 1 : -1;
    }
};

struct cuda__tri_merged {
    double growth; /* no product of a column and a row was larger */
    int levels;    /* -1: a half was singular, or the formula divided by zero */
};

/* The threads must be together, and are afterwards. keeps: all levels, not the last one alone. */
template <int Threads>
static __device__ __noinline__ cuda__tri_merged cuda__tri_merge(
    cuda__tri_part part, typename cuda__block<Threads>::shared *memory, int64_t n, bool keeps)
{
    cuda__tri_merger<Threads> merger = {part, cuda__block<Threads>::begin(memory), n, keeps};
    cuda__tri_merged merged;
    int first = 1;
    while (2 << first <= Threads)
        first++;
    merged.levels = merger.run(first, &merged.growth);
    __syncthreads();
    return merged;
}

#endif
