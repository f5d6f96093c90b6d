/* gpu/cuda/tridiagonal/write.cuh: writes X, or the rows and columns of it that are wanted, from the
 * O(n) numbers of device.cuh: tile by tile, each of them on its own.
 *
 * A thread's columns stay in registers, the rows' numbers in shared memory, and an entry is one
 * multiplication. It is done in double and rounded once. Where exponents range too far for that
 * within a tile, its entries are put together one by one.
 *
 * Cost: for 16 bytes a thread some 40 instructions in double and 70 in float (counted in the
 * machine code), of the 110 that a multiprocessor's schedulers have until an H200's memory has
 * taken them.
 */
#ifndef GPU_CUDA_TRIDIAGONAL_WRITE_CUH
#define GPU_CUDA_TRIDIAGONAL_WRITE_CUH

#include "gpu/cuda/tridiagonal/tile.cuh"

/* Exponents of factors that are multiplied as doubles. The largest of a tile's rows is brought to
 * -CUDA__TRI_ROW_TOP, so that a column below -CUDA__TRI_COLUMN_RANGE gives nothing but zeros. */
#define CUDA__TRI_ROW_TOP 80
#define CUDA__TRI_ROW_RANGE 900
#define CUDA__TRI_COLUMN_RANGE 1000
#define CUDA__TRI_OFF (1 << 29) /* an exponent beyond these */

#define CUDA__TRI_LEVELS_MAX 15 /* of merging in shared memory; orders above 32768 have more */
#define CUDA__TRI_SLICE 64      /* rows that are written together by levels */
#define CUDA__TRI_NEAR_ROWS 8   /* of them, near the diagonal; blocks of level 2 have as many */

static __device__ __forceinline__ cuda__tri_line cuda__tri_row_line(int side)
{
    return side == CUDA__TRI_ABOVE ? CUDA__TRI_UPPER_ROW : CUDA__TRI_LOWER_ROW;
}

static __device__ __forceinline__ cuda__tri_line cuda__tri_column_line(int side)
{
    return side == CUDA__TRI_ABOVE ? CUDA__TRI_UPPER_COLUMN : CUDA__TRI_LOWER_COLUMN;
}

static __device__ __forceinline__ int cuda__tri_clamp(int64_t exponent)
{
    return (int)(exponent < -CUDA__TRI_OFF  ? -CUDA__TRI_OFF
                 : exponent > CUDA__TRI_OFF ? CUDA__TRI_OFF
                                            : exponent);
}

/* A row's number over 2^scale. False: it is out of range. */
static __device__ __forceinline__ bool cuda__tri_flatten_row(const cuda__number &row, int64_t scale,
                                                             double *value)
{
    int exponent = row.mantissa == 0 ? 0 : cuda__tri_clamp(row.exponent - scale);
    bool fits = exponent >= -CUDA__TRI_ROW_RANGE && exponent <= 0;
    *value = fits ? cuda__scale(row.mantissa, exponent) : 0;
    return fits;
}

/* A column's number times 2^scale. */
static __device__ __forceinline__ bool cuda__tri_flatten_column(const cuda__number &column,
                                                                int64_t scale, double *value)
{
    int exponent = cuda__tri_clamp(column.exponent + scale);
    *value = exponent < -CUDA__TRI_COLUMN_RANGE  ? copysign(0.0, column.mantissa)
             : exponent > CUDA__TRI_COLUMN_RANGE ? 0
                                                 : cuda__scale(column.mantissa, exponent);
    return column.mantissa == 0 || exponent <= CUDA__TRI_COLUMN_RANGE;
}

/* One entry of X from numbers. */
static __device__ __forceinline__ double cuda__tri_entry(const cuda__tri_part &part, int64_t i,
                                                         int64_t j)
{
    int side = i < j ? CUDA__TRI_ABOVE : CUDA__TRI_UNDER;
    return i == j ? part.diagonal()[i]
                  : cuda__product(part.line(cuda__tri_row_line(side))[i],
                                  part.line(cuda__tri_column_line(side))[j]);
}

/* By lines: the rows of a tile above and below the diagonal, as doubles, and on it. By levels: of
 * some rows the factors, the entries on the diagonal, and those next to it in a leaf. */
union cuda__tri_write_memory {
    struct {
        double row[2][CUDA__TRI_ROWS_MAX], diagonal[CUDA__TRI_ROWS_MAX];
        int32_t max[2];
    };
    struct {
        double factor[CUDA__TRI_LEVELS_MAX][CUDA__TRI_SLICE];
        double middle[CUDA__TRI_SLICE], leaf[CUDA__TRI_SLICE];
    };
};

/* Few: of matrices of few rows. Merged: X may come by levels. */
template <typename T, int Threads, bool Few, bool Merged> struct cuda__tri_writer {
    typedef cuda__tri_tile<T, Threads> tile_type;
    typedef typename tile_type::run run;
    static constexpr int width = tile_type::width, window = tile_type::window;
    static constexpr int unit = tile_type::unit;

    const cuda__tri_call &call;
    const cuda__tri_part &part;
    cuda__tri_write_memory *memory;
    tile_type tile;

    /* ---- Tiles by lines ---- */

    __device__ __forceinline__ cuda__number number(cuda__tri_line line, int64_t i) const
    {
        return i >= 0 && i < call.n ? part.line(line)[i] : cuda__number{0, 0};
    }

    /* The exponent that others of the tile use. */
    __device__ __forceinline__ int64_t base_of(int side) const
    {
        return part.line(cuda__tri_row_line(side))[tile.first_row].exponent;
    }

    /* Shares the largest exponent of the tile's rows. All threads. */
    __device__ __forceinline__ void find_max(int side) const
    {
        int64_t base = base_of(side);
        int most = INT32_MIN;
        for (int64_t i = tile.first_row + threadIdx.x; i < tile.end_row; i += Threads) {
            cuda__number row = part.line(cuda__tri_row_line(side))[i];
            int exponent = cuda__tri_clamp(row.exponent - base);
            most = row.mantissa != 0 && exponent > most ? exponent : most;
        }
        most = __reduce_max_sync(CUDA__ALL, most);
        if (threadIdx.x % CUDA__WARP == 0 && most > INT32_MIN)
            atomicMax(&memory->max[side], most);
    }

    /* The power of two that rows are divided by and columns multiplied by. */
    __device__ __forceinline__ int64_t scale_of(int side) const
    {
        return base_of(side) + memory->max[side] + CUDA__TRI_ROW_TOP;
    }

    /* The rows as doubles. False: one of this thread's is out of range. */
    __device__ __forceinline__ bool flatten_rows(int side, int64_t scale) const
    {
        bool fits = true;
        for (int64_t i = tile.first_row + threadIdx.x; i < tile.end_row; i += Threads) {
            cuda__number row = part.line(cuda__tri_row_line(side))[i];
            fits =
                cuda__tri_flatten_row(row, scale, &memory->row[side][i - tile.first_row]) && fits;
        }
        return fits;
    }

    /* Of the tile's rows. */
    __device__ __forceinline__ void fetch_diagonal(const double *from) const
    {
        for (int64_t i = tile.first_row + threadIdx.x; i < tile.end_row; i += Threads)
            memory->diagonal[i - tile.first_row] = from[i];
    }

    /* The columns of a window as doubles. False: one is out of range. */
    __device__ __forceinline__ bool flatten_columns(int side, int64_t scale, int64_t first,
                                                    double *columns) const
    {
        bool fits = true;
#pragma unroll
        for (int k = 0; k < window; k++) {
            columns[k] = 0;
            if (tile.aligned && k < unit - 1)
                continue;
            fits = cuda__tri_flatten_column(number(cuda__tri_column_line(side), first + k), scale,
                                            &columns[k]) &&
                   fits;
        }
        return fits;
    }

    __device__ __forceinline__ void write_numbers(int64_t piece) const
    {
        tile.each_run(piece, [&](const run &r) {
            int row = r.first;
            tile.each_row(r, &row, tile.end_row, [&](int k, T *values) {
                for (int c = 0; c < width; c++)
                    values[c] = r.column + c < call.n && r.column + c >= 0
                                    ? (T)cuda__tri_entry(part, tile.first_row + k, r.column + c)
                                    : T(0);
            });
        });
    }

    __device__ __forceinline__ void write_lines(int64_t piece, const bool *wanted) const
    {
        double above[window] = {}, under[window] = {};
        int64_t first, last;
        bool fits = true;
        if (wanted[CUDA__TRI_ABOVE])
            fits = flatten_columns(CUDA__TRI_ABOVE, scale_of(CUDA__TRI_ABOVE), tile.begin(piece),
                                   above);
        if (wanted[CUDA__TRI_UNDER])
            fits = flatten_columns(CUDA__TRI_UNDER, scale_of(CUDA__TRI_UNDER), tile.begin(piece),
                                   under) &&
                   fits;
        if (!fits) {
            write_numbers(piece);
            return;
        }
        const cuda__tri_factors rows = {
            {memory->row[CUDA__TRI_ABOVE], memory->row[CUDA__TRI_UNDER]}, memory->diagonal};
        tile.find_columns(piece, &first, &last);
        tile.each_run(piece, [&](const run &r) {
            double above_picked[width], under_picked[width];
            tile_type::pick(above, r.shift, above_picked);
            tile_type::pick(under, r.shift, under_picked);
            tile.write_run(r, above_picked, under_picked, first, last, rows);
        });
    }

    /* ---- Tiles by levels ---- */

    /* The first level at which i and j are in one block; 0 in a leaf. */
    static __device__ __forceinline__ int meets(int64_t i, int64_t j)
    {
        return i == j ? 0 : 31 - __clz((int)(i ^ j));
    }

    /* The least of them for some rows and columns, which are compared by blocks of 64. *uniform: it
     * is that of all. */
    static __device__ __forceinline__ int min_level(int64_t top, int64_t bottom, int64_t left,
                                                    int64_t right, bool *uniform)
    {
        left = left < 0 ? 0 : left;
        top >>= 6;
        bottom >>= 6;
        left >>= 6;
        right >>= 6;
        *uniform = top == bottom && left == right && top != left;
        if (bottom >= left && top <= right)
            return 1;
        int least = 6 + meets(top > right ? top : bottom, top > right ? right : left);
        return *uniform ? least : 6;
    }

    /* Of rows first to end - 1, from a level on. */
    __device__ __forceinline__ void fetch_factors(int64_t first, int64_t end, int least,
                                                  int levels) const
    {
        constexpr int side = Threads < CUDA__TRI_SLICE ? Threads : CUDA__TRI_SLICE;
        for (int64_t i = first + threadIdx.x % side; i < end; i += side) {
            for (int level = least + (int)threadIdx.x / side;
                 level <= levels && level < CUDA__TRI_LEVELS_MAX; level += Threads / side)
                memory->factor[level][i - first] = part.column(level)[i];
            if (threadIdx.x < side) {
                memory->middle[i - first] = part.merged()[i];
                memory->leaf[i - first] = part.leaves()[i];
            }
        }
    }

    /* Columns of a run: row[k][c] of level least + k, 0 beyond X and beyond the levels. */
    template <int Levels>
    __device__ __forceinline__ void fetch_rows(const run &r, int least, int levels,
                                               double (*rows)[width]) const
    {
#pragma unroll
        for (int k = 0; k < Levels; k++) {
#pragma unroll
            for (int c = 0; c < width; c++) {
                int64_t j = r.column + c;
                bool in = least + k <= levels && j >= 0 && j < call.n;
                rows[k][c] = in ? part.row(least + k)[j] : 0;
            }
        }
    }

    /* The first row of a run that is not before row `from` of the tile. */
    static __device__ __forceinline__ int begin_at(const run &r, int from)
    {
        return r.first >= from ? r.first
                               : r.first + (from - r.first + r.step - 1) / r.step * r.step;
    }

    /* Some rows of a run, `Levels` levels from `least` on; near: rows and columns may be in blocks
     * that meet later, or never. */
    template <int Levels, bool Near>
    __device__ __forceinline__ void write_slice(const run &r, int64_t first, int64_t end, int least,
                                                int levels) const
    {
        double rows[Levels][width];
        int from = (int)(first - tile.first_row), row = begin_at(r, from);
        fetch_rows<Levels>(r, least, levels, rows);
        tile.each_row(r, &row, end, [&](int k, T *values) {
            double sums[width] = {};
            unsigned adjacent[width];
#pragma unroll
            for (int c = 0; c < width; c++)
                adjacent[c] = (unsigned)(tile.first_row + k) ^ (unsigned)(r.column + c);
#pragma unroll
            for (int l = 0; l < Levels; l++) {
                double factor = least + l <= levels ? memory->factor[least + l][k - from] : 0;
#pragma unroll
                for (int c = 0; c < width; c++) {
                    if (!Near || adjacent[c] >> (least + l + 1) == 0)
                        sums[c] -= factor * rows[l][c];
                }
            }
#pragma unroll
            for (int c = 0; c < width; c++) {
                if (Near && adjacent[c] == 1)
                    sums[c] += memory->leaf[k - from];
                values[c] = (T)(Near && adjacent[c] == 0 ? memory->middle[k - from] : sums[c]);
            }
        });
    }

    /* The same near the diagonal in double: some rows together are in one block with the same
     * columns at all levels, but perhaps at the first. */
    template <int Levels>
    __device__ __forceinline__ void write_near(const run &r, int64_t first, int64_t end, int least,
                                               int levels) const
    {
        double rows[Levels][width], met[Levels][width];
        int from = (int)(first - tile.first_row), row = begin_at(r, from);
        fetch_rows<Levels>(r, least, levels, rows);
        for (int64_t at = first, next; at < end; at = next) {
            next = (at | (CUDA__TRI_NEAR_ROWS - 1)) + 1;
#pragma unroll
            for (int l = 1; l < Levels; l++) {
#pragma unroll
                for (int c = 0; c < width; c++)
                    met[l][c] = (at ^ (r.column + c)) >> (least + l + 1) == 0 ? rows[l][c] : 0;
            }
            tile.each_row(r, &row, next < end ? next : end, [&](int k, T *values) {
                double factor = least <= levels ? memory->factor[least][k - from] : 0;
                double sums[width] = {};
                unsigned adjacent[width];
#pragma unroll
                for (int c = 0; c < width; c++) {
                    adjacent[c] = (unsigned)(tile.first_row + k) ^ (unsigned)(r.column + c);
                    sums[c] = adjacent[c] >> (least + 1) == 0 ? -factor * rows[0][c] : 0;
                }
#pragma unroll
                for (int l = 1; l < Levels; l++) {
                    factor = least + l <= levels ? memory->factor[least + l][k - from] : 0;
#pragma unroll
                    for (int c = 0; c < width; c++)
                        sums[c] -= factor * met[l][c];
                }
#pragma unroll
                for (int c = 0; c < width; c++) {
                    sums[c] += adjacent[c] == 1 ? memory->leaf[k - from] : 0;
                    values[c] = (T)(adjacent[c] == 0 ? memory->middle[k - from] : sums[c]);
                }
            });
        }
    }

    /* The same for any number of levels. */
    __device__ __forceinline__ void write_deep(const run &r, int64_t first, int64_t end, int least,
                                               int levels) const
    {
        int from = (int)(first - tile.first_row), row = begin_at(r, from);
        tile.each_row(r, &row, end, [&](int k, T *values) {
            int64_t i = tile.first_row + k, j = r.column;
            double sums[width] = {};
            for (int level = least; level <= levels; level++) {
                double factor = level < CUDA__TRI_LEVELS_MAX ? memory->factor[level][k - from]
                                                             : part.column(level)[i];
                const double *line = part.row(level);
#pragma unroll
                for (int c = 0; c < width; c++) {
                    bool inside = j + c >= 0 && j + c < call.n && meets(i, j + c) <= level;
                    sums[c] -= inside ? factor * line[j + c] : 0;
                }
            }
#pragma unroll
            for (int c = 0; c < width; c++) {
                sums[c] += (i ^ (j + c)) == 1 ? memory->leaf[k - from] : 0;
                values[c] = (T)(i == j + c ? memory->middle[k - from] : sums[c]);
            }
        });
    }

    /* No column of the tile is beyond it. */
    __device__ __forceinline__ int64_t last_column() const
    {
        return tile.begin(tile.end_piece) + unit - 1;
    }

    __device__ __forceinline__ void write_levels(int64_t piece, int64_t first, int64_t end,
                                                 int levels) const
    {
        int lanes = tile.tiles.lanes < CUDA__WARP ? tile.tiles.lanes : CUDA__WARP;
        int64_t start = piece - threadIdx.x % lanes;
        tile.each_run(piece, [&](const run &r) {
            bool uniform;
            int64_t left = call.columns.first + start * width - r.shift;
            int64_t right = left + (int64_t)lanes * width - 1, last = last_column();
            /* Columns behind the tile's may ask for factors that were not fetched. */
            int least = min_level(first, end - 1, left, right < last ? right : last, &uniform);
            int terms = levels - least + 1;
            if (levels >= CUDA__TRI_LEVELS_MAX)
                write_deep(r, first, end, least, levels);
            else if (Few && width == 2 && !uniform && terms <= 5)
                write_near<5>(r, first, end, least, levels);
            else if (Few && width == 2 && !uniform && terms <= 8)
                write_near<8>(r, first, end, least, levels);
            else if (!uniform && terms <= 8)
                write_slice<8, true>(r, first, end, least, levels);
            else if (!uniform || terms > 8)
                write_deep(r, first, end, least, levels);
            else if (terms > 4)
                write_slice<8, false>(r, first, end, least, levels);
            else if (terms > 2)
                write_slice<4, false>(r, first, end, least, levels);
            else
                write_slice<2, false>(r, first, end, least, levels);
        });
    }

    /* By all threads of the block, some rows at a time. */
    __device__ __forceinline__ void write_by_levels(int levels) const
    {
        for (int64_t first = tile.first_row; first < tile.end_row; first += CUDA__TRI_SLICE) {
            int64_t end =
                tile.end_row - first < CUDA__TRI_SLICE ? tile.end_row : first + CUDA__TRI_SLICE;
            bool uniform;
            int least =
                min_level(first, end - 1, tile.begin(tile.first_piece), last_column(), &uniform);
            fetch_factors(first, end, least, levels);
            __syncthreads();
            tile.each_piece([&](int64_t piece) { write_levels(piece, first, end, levels); });
            __syncthreads();
        }
    }

    /* ---- One tile ---- */

    /* By all threads of the block. */
    __device__ __forceinline__ void write_by_lines() const
    {
        /* Are there entries on this side? */
        const bool wanted[2] = {last_column() > tile.first_row,
                                tile.begin(tile.first_piece) < tile.end_row};
        bool good = true;
        if (threadIdx.x < 2)
            memory->max[threadIdx.x] = INT32_MIN;
        __syncthreads();
        for (int side = 0; side < 2; side++) {
            if (wanted[side])
                find_max(side);
        }
        __syncthreads();
        if (threadIdx.x < 2 && memory->max[threadIdx.x] == INT32_MIN)
            memory->max[threadIdx.x] = 0;
        __syncthreads();
        for (int side = 0; side < 2; side++) {
            if (wanted[side])
                good = flatten_rows(side, scale_of(side)) && good;
        }
        if (wanted[0] && wanted[1])
            fetch_diagonal(part.diagonal());
        if (__syncthreads_and(good))
            tile.each_piece([&](int64_t piece) { write_lines(piece, wanted); });
        else
            tile.each_piece([&](int64_t piece) { write_numbers(piece); });
    }

    /* By all threads of the block; they must be together again before the next tile. */
    __device__ __forceinline__ void write(int64_t which, const cuda__tri_answer &answer)
    {
        tile.grain = Few || answer.form == CUDA__TRI_BY_LEVELS ? width : unit;
        tile.place(which, (T *)answer.x);
        if (answer.form == CUDA__TRI_NAN) {
            tile.each_piece([&](int64_t piece) { tile.write_nan(piece); });
        } else if (answer.form == CUDA__TRI_BY_LINES) {
            write_by_lines();
        } else if constexpr (Merged) {
            write_by_levels(answer.levels);
        }
    }
};

#endif
