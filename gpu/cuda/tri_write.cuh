/* gpu/cuda/tri_write.cuh: writes X, or the rows and columns of it that are wanted, from the O(n)
 * numbers of tri.cuh: tile by tile, each of them on its own.
 *
 * A tile is some rows of X by as many columns as the threads of a block cover with 16 bytes each:
 * `lanes` threads lie along a row, and the threads beyond them take further rows. A thread's
 * columns stay in registers, the rows' numbers in shared memory, and an entry is one
 * multiplication. It is done in double and rounded once. Where exponents range too far for that
 * within a tile, its entries are put together one by one.
 *
 * A row of X need not begin at a multiple of 16 bytes. A thread's 16 bytes always do, and so the
 * columns in them shift from row to row: a thread holds all that may be among them. Only the ends
 * of a row are stored number by number.
 *
 * Cost: for 16 bytes a thread some 40 instructions in double and 70 in float (counted in the
 * machine code), of the 110 that a multiprocessor's schedulers have until an H200's memory has
 * taken them.
 */
#ifndef GPU_CUDA_TRI_WRITE_CUH
#define GPU_CUDA_TRI_WRITE_CUH

#include "gpu/cuda/ptx.cuh"
#include "gpu/cuda/stage.cuh"
#include "gpu/cuda/tri.cuh"

#define CUDA__TRI_STEPS 64     /* rows of a tile that a thread takes, at most */
#define CUDA__TRI_ROWS_MAX 256 /* rows of a tile */
/* Exponents of factors that are multiplied as doubles: rows over the largest of the tile's, and
 * columns by it. */
#define CUDA__TRI_ROW_RANGE 900
#define CUDA__TRI_COLUMN_RANGE 1000

/* The part of X that is wanted, in tiles. Host and device. */
struct cuda__tri_tiles {
    int32_t lanes, rows;    /* threads along a row; rows of a tile */
    int64_t across, number; /* tiles beside each other; in all */
};

template <typename T>
static inline __host__ __device__ cuda__tri_tiles cuda__tri_cut(const method_range &rows,
                                                                const method_range &columns,
                                                                int threads)
{
    cuda__tri_tiles tiles;
    int64_t pieces =
        (columns.end - columns.first + cuda__real<T>::width - 1) / cuda__real<T>::width;
    tiles.lanes = 1;
    while (tiles.lanes < threads && tiles.lanes < pieces)
        tiles.lanes *= 2;
    tiles.rows = CUDA__TRI_STEPS * (threads / tiles.lanes);
    tiles.rows = tiles.rows < CUDA__TRI_ROWS_MAX ? tiles.rows : CUDA__TRI_ROWS_MAX;
    tiles.across = (pieces + tiles.lanes - 1) / tiles.lanes;
    tiles.number = tiles.across * ((rows.end - rows.first + tiles.rows - 1) / tiles.rows);
    return tiles;
}

struct cuda__tri_write_memory {
    double upper[CUDA__TRI_ROWS_MAX], lower[CUDA__TRI_ROWS_MAX];
    int64_t upper_most, lower_most;
};

/* What fills a tile. */
enum cuda__tri_fill {
    CUDA__TRI_FILL_UPPER,  /* above the diagonal, by one multiplication an entry */
    CUDA__TRI_FILL_LOWER,  /* below it */
    CUDA__TRI_FILL_MIXED,  /* on it */
    CUDA__TRI_FILL_NUMBERS /* anywhere, numbers with exponents */
};

template <typename T, int Threads> struct cuda__tri_writer {
    typedef typename cuda__real<T>::vector vector;
    static constexpr int width = cuda__real<T>::width; /* numbers in 16 bytes */
    static constexpr int window = 2 * width - 1;       /* columns that may be a thread's */

    const cuda__tri_call &call;
    const cuda__tri_part &part;
    cuda__tri_write_memory *memory;
    cuda__tri_tiles tiles;
    T *x = nullptr;
    int64_t first_row = 0, end_row = 0; /* of the tile, in A's numbers as all others */
    int64_t first_piece = 0, end_piece = 0;
    int64_t length = 0; /* of a row that is written */
    bool inner = false; /* the piece is within its row, whatever the shift */

    /* How many numbers after a multiple of 16 bytes row i begins. */
    __device__ __forceinline__ int shift(int64_t i) const
    {
        const T *row = x + (i - call.rows.first) * length;
        return (int)((uintptr_t)row / sizeof(T) % width);
    }

    /* The first column of the window of a piece. */
    __device__ __forceinline__ int64_t begin(int64_t piece) const
    {
        return call.columns.first + piece * width - (width - 1);
    }

    /* Of the window's numbers, those that a row with this shift has in the piece. */
    template <typename V>
    static __device__ __forceinline__ void pick(const V *all, int shift, V *out)
    {
        V half[window];
#pragma unroll
        for (int k = 0; k < window; k++)
            half[k] = all[k];
#pragma unroll
        for (int by = width / 2; by > 0; by /= 2) {
            bool moved = !(shift & by);
#pragma unroll
            for (int k = 0; k + by < window; k++)
                half[k] = moved ? half[k + by] : half[k];
        }
#pragma unroll
        for (int k = 0; k < width; k++)
            out[k] = half[k];
    }

    /* Stores the piece of row i: 16 bytes, or those of them that are the row's. */
    __device__ __forceinline__ void store(int64_t i, int64_t piece, int shift,
                                          const T *values) const
    {
        int64_t column = piece * width - shift;
        T *to = x + (i - call.rows.first) * length + column;
        if (inner || (column >= 0 && column + width <= length)) {
            cuda__store_stream((vector *)to, values);
            return;
        }
#pragma unroll
        for (int k = 0; k < width; k++) {
            if (column + k >= 0 && column + k < length)
                to[k] = values[k];
        }
    }

    /* ---- Tiles by lines ---- */

    __device__ __forceinline__ cuda__number number(cuda__tri_line line, int64_t i) const
    {
        return i >= 0 && i < call.n ? part.line(line)[i] : cuda__number{0, 0};
    }

    /* The largest exponent of the tile's rows. All threads. */
    __device__ __forceinline__ int64_t find_most(cuda__tri_line line, int64_t *shared) const
    {
        if (threadIdx.x < CUDA__WARP) {
            int64_t most = INT64_MIN;
            for (int64_t i = first_row + threadIdx.x; i < end_row; i += CUDA__WARP) {
                cuda__number row = part.line(line)[i];
                most = row.mantissa != 0 && row.exponent > most ? row.exponent : most;
            }
            for (int step = CUDA__WARP / 2; step > 0; step /= 2) {
                int64_t other = __shfl_sync(CUDA__ALL, most, threadIdx.x ^ step);
                most = other > most ? other : most;
            }
            if (threadIdx.x == 0)
                *shared = most == INT64_MIN ? 0 : most;
        }
        __syncthreads();
        return *shared;
    }

    /* The rows' numbers as doubles, over 2^most. False: one of this thread's is out of range. */
    __device__ __forceinline__ bool flatten_rows(cuda__tri_line line, int64_t most,
                                                 double *to) const
    {
        bool fits = true;
        for (int64_t i = first_row + threadIdx.x; i < end_row; i += Threads) {
            cuda__number row = part.line(line)[i];
            int64_t down = row.mantissa == 0 ? 0 : most - row.exponent;
            fits = fits && down <= CUDA__TRI_ROW_RANGE;
            to[i - first_row] = fits ? cuda__scale(row.mantissa, (int)-down) : 0;
        }
        return fits;
    }

    /* A column's number as a double, by 2^most. */
    static __device__ __forceinline__ bool fits(const cuda__number &column, int64_t most)
    {
        int64_t exponent = column.exponent + most;
        return column.mantissa == 0 ||
               (exponent <= CUDA__TRI_COLUMN_RANGE && exponent >= -CUDA__TRI_COLUMN_RANGE);
    }

    __device__ __forceinline__ bool columns_fit(cuda__tri_line line, int64_t most) const
    {
        bool good = true;
        int64_t first = begin(first_piece), end = begin(end_piece) + width - 1;
        for (int64_t j = first + threadIdx.x; j < end; j += Threads)
            good = good && fits(number(line, j), most);
        return good;
    }

    __device__ __forceinline__ void flatten_columns(cuda__tri_line line, int64_t most,
                                                    int64_t first, double *columns) const
    {
#pragma unroll
        for (int k = 0; k < window; k++) {
            cuda__number column = number(line, first + k);
            columns[k] = column.mantissa == 0
                             ? 0
                             : cuda__scale(column.mantissa, (int)(column.exponent + most));
        }
    }

    /* One entry from numbers. */
    __device__ __forceinline__ double entry(int64_t i, int64_t j) const
    {
        cuda__number row = part.line(i < j ? CUDA__TRI_UPPER_ROW : CUDA__TRI_LOWER_ROW)[i];
        cuda__number column = number(i < j ? CUDA__TRI_UPPER_COLUMN : CUDA__TRI_LOWER_COLUMN, j);
        return i == j ? part.diagonal()[i] : cuda__product(row, column);
    }

    /* Rows of this thread: every (Threads / lanes)-th of the tile. */
    template <typename F> __device__ __forceinline__ void each_row(F row) const
    {
        int step = Threads / tiles.lanes;
#pragma unroll 4
        for (int64_t i = first_row + threadIdx.x / tiles.lanes; i < end_row; i += step)
            row(i);
    }

    /* One side of the diagonal. */
    __device__ __forceinline__ void write_side(cuda__tri_line line, int64_t most,
                                               const double *rows, int64_t piece) const
    {
        double columns[window];
        flatten_columns(line, most, begin(piece), columns);
        each_row([&](int64_t i) {
            double picked[width], factor = rows[i - first_row];
            T values[width];
            int by = shift(i);
            pick(columns, by, picked);
#pragma unroll
            for (int k = 0; k < width; k++)
                values[k] = (T)(factor * picked[k]);
            store(i, piece, by, values);
        });
    }

    __device__ __forceinline__ void write_mixed(int64_t upper_most, int64_t lower_most,
                                                int64_t piece) const
    {
        double upper[window], lower[window];
        flatten_columns(CUDA__TRI_UPPER_COLUMN, upper_most, begin(piece), upper);
        flatten_columns(CUDA__TRI_LOWER_COLUMN, lower_most, begin(piece), lower);
        each_row([&](int64_t i) {
            double above[width], below[width];
            T values[width];
            int by = shift(i);
            int64_t j = call.columns.first + piece * width - by;
            pick(upper, by, above);
            pick(lower, by, below);
#pragma unroll
            for (int k = 0; k < width; k++)
                values[k] = (T)(i < j + k ? memory->upper[i - first_row] * above[k]
                                          : memory->lower[i - first_row] * below[k]);
#pragma unroll
            for (int k = 0; k < width; k++)
                values[k] = i == j + k ? (T)part.diagonal()[i] : values[k];
            store(i, piece, by, values);
        });
    }

    __device__ __forceinline__ void write_numbers(int64_t piece) const
    {
        each_row([&](int64_t i) {
            T values[width];
            int by = shift(i);
            int64_t j = call.columns.first + piece * width - by;
#pragma unroll
            for (int k = 0; k < width; k++)
                values[k] = (T)entry(i, j + k);
            store(i, piece, by, values);
        });
    }

    /* ---- Tiles by levels ---- */

    /* The first level at which i and j are in one block; 0 in a leaf. */
    static __device__ __forceinline__ int meets(int64_t i, int64_t j)
    {
        return i == j ? 0 : 31 - __clz((int)(i ^ j));
    }

    /* The least of them in a tile. Its rows and columns are compared by blocks of 256. */
    __device__ __forceinline__ int least_level() const
    {
        int64_t low = (begin(first_piece) < 0 ? 0 : begin(first_piece)) >> 8;
        int64_t high = (begin(end_piece) + width - 1) >> 8;
        int64_t top = first_row >> 8, bottom = (end_row - 1) >> 8;
        if (bottom >= low && top <= high)
            return 1;
        int64_t nearest = top > high ? top : bottom, edge = top > high ? high : low;
        int least = 8 + meets(nearest, edge);
        return top == bottom && low == high ? least : 8;
    }

    __device__ __forceinline__ double leaf(int64_t i, int64_t j) const
    {
        return i / 2 == j / 2 && i != j ? part.leaves()[i] : 0;
    }

    __device__ __forceinline__ void write_levels(int64_t piece, int least, int levels) const
    {
        each_row([&](int64_t i) {
            double sums[width];
            T values[width];
            int by = shift(i);
            int64_t j = call.columns.first + piece * width - by;
#pragma unroll
            for (int k = 0; k < width; k++)
                sums[k] = leaf(i, j + k);
            for (int level = least; level <= levels; level++) {
                double factor = part.column(level)[i];
                const double *row = part.row(level);
#pragma unroll
                for (int k = 0; k < width; k++) {
                    bool inside = j + k >= 0 && j + k < call.n && meets(i, j + k) <= level;
                    sums[k] -= inside ? factor * row[j + k] : 0;
                }
            }
#pragma unroll
            for (int k = 0; k < width; k++)
                values[k] = (T)(i == j + k ? part.merged()[i] : sums[k]);
            store(i, piece, by, values);
        });
    }

    /* ---- One tile ---- */

    __device__ __forceinline__ void write_nan(int64_t piece) const
    {
        each_row([&](int64_t i) {
            T values[width];
#pragma unroll
            for (int k = 0; k < width; k++)
                values[k] = cuda__real<T>::nan();
            store(i, piece, shift(i), values);
        });
    }

    __device__ __forceinline__ void place(int64_t tile)
    {
        length = call.columns.end - call.columns.first;
        first_row = call.rows.first + tile / tiles.across * tiles.rows;
        end_row = call.rows.end - first_row < tiles.rows ? call.rows.end : first_row + tiles.rows;
        first_piece = tile % tiles.across * tiles.lanes;
        end_piece = first_piece + tiles.lanes;
        /* Rows that begin late reach into one piece more. */
        if (tile % tiles.across == tiles.across - 1)
            end_piece = (length + width - 1) / width + 1;
    }

    /* Calls write(piece) for the pieces of this thread. */
    template <typename F> __device__ __forceinline__ void each_piece(F write)
    {
        int64_t piece = first_piece + threadIdx.x % tiles.lanes;
        for (; piece < end_piece; piece += tiles.lanes) {
            inner = piece > 0 && (piece + 1) * width <= length;
            write(piece);
        }
    }

    /* Prepares the rows' numbers in shared memory, and finds what fills the tile. */
    __device__ __forceinline__ cuda__tri_fill prepare(int64_t *upper_most,
                                                      int64_t *lower_most) const
    {
        bool above = begin(end_piece) + width - 1 > first_row; /* has entries above or on it */
        bool below = begin(first_piece) < end_row;             /* below or on the diagonal */
        bool good = true;
        if (above) {
            *upper_most = find_most(CUDA__TRI_UPPER_ROW, &memory->upper_most);
            good = flatten_rows(CUDA__TRI_UPPER_ROW, *upper_most, memory->upper) &&
                   columns_fit(CUDA__TRI_UPPER_COLUMN, *upper_most);
        }
        if (below) {
            *lower_most = find_most(CUDA__TRI_LOWER_ROW, &memory->lower_most);
            good = flatten_rows(CUDA__TRI_LOWER_ROW, *lower_most, memory->lower) && good &&
                   columns_fit(CUDA__TRI_LOWER_COLUMN, *lower_most);
        }
        if (!__syncthreads_and(good))
            return CUDA__TRI_FILL_NUMBERS;
        return above && below ? CUDA__TRI_FILL_MIXED
               : above        ? CUDA__TRI_FILL_UPPER
                              : CUDA__TRI_FILL_LOWER;
    }

    /* By all threads of the block; they must be together again before the next tile. */
    __device__ __forceinline__ void write(int64_t tile, const cuda__tri_answer &answer)
    {
        int64_t upper = 0, lower = 0;
        x = (T *)answer.x;
        place(tile);
        if (answer.form == CUDA__TRI_NAN) {
            each_piece([&](int64_t piece) { write_nan(piece); });
            return;
        }
        if (answer.form == CUDA__TRI_BY_LEVELS) {
            int least = least_level();
            each_piece([&](int64_t piece) { write_levels(piece, least, answer.levels); });
            return;
        }
        cuda__tri_fill fill = prepare(&upper, &lower);
        if (fill == CUDA__TRI_FILL_UPPER)
            each_piece([&](int64_t piece) {
                write_side(CUDA__TRI_UPPER_COLUMN, upper, memory->upper, piece);
            });
        else if (fill == CUDA__TRI_FILL_LOWER)
            each_piece([&](int64_t piece) {
                write_side(CUDA__TRI_LOWER_COLUMN, lower, memory->lower, piece);
            });
        else if (fill == CUDA__TRI_FILL_MIXED)
            each_piece([&](int64_t piece) { write_mixed(upper, lower, piece); });
        else
            each_piece([&](int64_t piece) { write_numbers(piece); });
    }
};

#endif
