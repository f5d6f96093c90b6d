/* gpu/cuda/tri_merge.cuh: the inverse of a dominant tridiagonal matrix by merging blocks with
 * Sherman and Morrison's formula, level by level, by one block of threads: gpu/host/tri_merge.c
 * tells the splits and the formulas.
 *
 * Of each block of the level only the border and the diagonal are found. What a level subtracts is
 * kept for as many levels as the workspace has room for, for X is written once, from all of them.
 *
 * Cost: O(n) a level.
 */
#ifndef GPU_CUDA_TRI_MERGE_CUH
#define GPU_CUDA_TRI_MERGE_CUH

#include "gpu/cuda/tri.cuh"
#include "gpu/cuda/tri_block.cuh"

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

    /* The sign s of the split between rows h and h + 1. */
    __device__ __forceinline__ double sign_of_split(int64_t h) const
    {
        double below = part.sub()[h + 1], right = part.sup()[h];
        bool upper = signbit(part.middle()[h]) == signbit(below);
        bool lower = signbit(part.middle()[h + 1]) == signbit(right);
        return (fabs(right) <= fabs(below) ? upper : lower) ? -1 : 1;
    }

    /* The leaf of rows i and i + 1: the inverse of [p b; c q], by its two Schur complements.
     * Returns the sum of its magnitudes. */
    __device__ __forceinline__ double pair(int64_t i) const
    {
        double p = part.middle()[i], q = part.middle()[i + 1], b = part.sup()[i],
               c = part.sub()[i + 1];
        p -= i > 0 ? sign_of_split(i - 1) * part.sup()[i - 1] : 0;
        q -= i + 2 < n ? sign_of_split(i + 1) * part.sub()[i + 2] : 0;
        double upper = 1 / (p - b * (c / q)), lower = 1 / (q - c * (b / p));
        double right = -(b / p) * lower, left = -(c / q) * upper;
        part.merged()[i] = part.array(CUDA__TRI_FIRST_ROW)[i] =
            part.array(CUDA__TRI_FIRST_COLUMN)[i] = upper;
        part.merged()[i + 1] = part.array(CUDA__TRI_LAST_ROW)[i + 1] =
            part.array(CUDA__TRI_LAST_COLUMN)[i + 1] = lower;
        part.array(CUDA__TRI_FIRST_ROW)[i + 1] = part.array(CUDA__TRI_LAST_COLUMN)[i] =
            part.leaves()[i] = right;
        part.array(CUDA__TRI_LAST_ROW)[i] = part.array(CUDA__TRI_FIRST_COLUMN)[i + 1] =
            part.leaves()[i + 1] = left;
        return fabs(upper) + fabs(lower) + fabs(left) + fabs(right);
    }

    __device__ __forceinline__ double single(int64_t i) const
    {
        double p = part.middle()[i];
        p -= i > 0 ? sign_of_split(i - 1) * part.sup()[i - 1] : 0;
        part.merged()[i] = part.array(CUDA__TRI_FIRST_ROW)[i] =
            part.array(CUDA__TRI_FIRST_COLUMN)[i] = 1 / p;
        part.array(CUDA__TRI_LAST_ROW)[i] = part.array(CUDA__TRI_LAST_COLUMN)[i] = 1 / p;
        part.leaves()[i] = 0;
        return 1 / p;
    }

    /* What row i gives to and takes from its merger at this level: rows first to end - 1, of which
     * those before `split` are one block and the others another. */
    struct place {
        int64_t first, split, end;
    };

    __device__ __forceinline__ place find(int64_t i, int level) const
    {
        int64_t half = INT64_C(1) << level, first = i & ~(2 * half - 1), split = first + half;
        return {first, split, n - first < 2 * half ? n : first + 2 * half};
    }

    struct sizes {
        double column, row;
    };

    /* column and row of the merger that row i is in, and their magnitudes. */
    __device__ __forceinline__ sizes factors(int64_t i, int level, double *column,
                                             double *row) const
    {
        place at = find(i, level);
        bool merges = at.split < n;
        double x = 0, y = 0;
        if (merges) {
            int64_t h = at.split - 1;
            double sign = sign_of_split(h), below = sign * part.sub()[h + 1], right = part.sup()[h];
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
        place at = find(i, level);
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

    /* Fills merged, leaves, column and row. *largest: no entry of a block, and no product of a
     * column and a row, was larger. Returns the number of levels; -1: a half was singular, or the
     * formula divided by zero. */
    __device__ __forceinline__ int run(double *largest)
    {
        double seen = 0, excess = 0;
        for (int64_t i = 2 * (int64_t)threadIdx.x; i < n; i += 2 * Threads) {
            double sum = i + 1 < n ? pair(i) : single(i);
            seen = i + 1 < n ? fmax(seen, sum) : seen;
            excess += sum * 0;
        }
        int level = 1;
        for (; INT64_C(1) << level < n; level++) {
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
    double growth; /* no entry of a block, and no product of a column and a row, was larger */
    int levels;    /* -1: a half was singular, or the formula divided by zero */
};

/* The threads must be together, and are afterwards. keeps: all levels, not the last one alone. */
template <int Threads>
static __device__ __noinline__ cuda__tri_merged cuda__tri_merge(
    cuda__tri_part part, typename cuda__block<Threads>::shared *memory, int64_t n, bool keeps)
{
    cuda__tri_merger<Threads> merger = {part, cuda__block<Threads>::begin(memory), n, keeps};
    cuda__tri_merged merged;
    merged.levels = merger.run(&merged.growth);
    __syncthreads();
    return merged;
}

#endif
