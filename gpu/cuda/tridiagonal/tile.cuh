/* gpu/cuda/tridiagonal/tile.cuh: how a tile of X is written: which rows and columns of it a thread
 * has, and the stores. The numbers come from write.cuh or serial.cuh.
 *
 * A tile is some rows of X by as many columns as the threads cover with 16 bytes each: `lanes`
 * threads lie along a row, and the threads beyond them take further rows.
 *
 * A row of X need not begin at a multiple of 16 bytes. A thread's 16 bytes always do, and so the
 * columns in them shift from row to row: a thread holds all that may be among them. Only the ends
 * of a row are stored number by number. Large matrices in double have the threads' pieces paired to
 * 32 bytes (`grain`): what a warp stores of 32 bytes in part the memory must read first. It takes
 * more turns.
 *
 * Device code, and the cut for the host.
 */
#ifndef GPU_CUDA_TRIDIAGONAL_TILE_CUH
#define GPU_CUDA_TRIDIAGONAL_TILE_CUH

#include "gpu/cuda/base/ptx.cuh"
#include "gpu/cuda/base/stage.cuh"
#include "gpu/cuda/tridiagonal/device.cuh"

#define CUDA__TRI_ROWS_MAX 256 /* rows of a tile */

/* The part of X that is wanted, in tiles. Host and device. steps: rows of a tile that a thread
 * takes, at most. */
struct cuda__tri_tiles {
    int32_t lanes, rows;    /* threads along a row; rows of a tile */
    int64_t across, number; /* tiles next to each other; in all */
};

template <typename T>
static inline __host__ __device__ cuda__tri_tiles cuda__tri_cut(const method_range &rows,
                                                                const method_range &columns,
                                                                int threads, int steps)
{
    cuda__tri_tiles tiles;
    int64_t pieces =
        (columns.end - columns.first + cuda__real<T>::width - 1) / cuda__real<T>::width;
    tiles.lanes = 1;
    while (tiles.lanes < threads && tiles.lanes < pieces)
        tiles.lanes *= 2;
    tiles.rows = steps * (threads / tiles.lanes);
    tiles.rows = tiles.rows < CUDA__TRI_ROWS_MAX ? tiles.rows : CUDA__TRI_ROWS_MAX;
    tiles.across = (pieces + tiles.lanes - 1) / tiles.lanes;
    tiles.number = tiles.across * ((rows.end - rows.first + tiles.rows - 1) / tiles.rows);
    return tiles;
}

/* Sides of the diagonal. */
enum cuda__tri_side {
    CUDA__TRI_ABOVE,
    CUDA__TRI_UNDER
};

/* Of a tile's rows, from the first: the factors above and below the diagonal, and what is on it. */
struct cuda__tri_factors {
    const double *row[2], *diagonal;
};

/* `Threads` threads and their tile; `thread`: this one's number among them. */
template <typename T, int Threads> struct cuda__tri_tile {
    typedef typename cuda__real<T>::vector vector;
    static constexpr int width = cuda__real<T>::width; /* numbers in 16 bytes */
    static constexpr int unit = 4;                     /* numbers of a grain at most */
    static constexpr int window = unit + width - 1;    /* columns that may be a thread's */

    const cuda__tri_call &call;
    cuda__tri_tiles tiles;
    int thread, grain; /* numbers to whose multiples the pieces are aligned: width or unit */
    T *x = nullptr;
    int64_t first_row = 0, end_row = 0; /* of the tile, in A's numbers as all others */
    int64_t first_piece = 0, end_piece = 0;
    int64_t length = 0;   /* of a row that is written */
    bool aligned = false; /* all rows begin at multiples of a grain */

    __device__ __forceinline__ void place(int64_t tile, T *to)
    {
        x = to;
        length = call.columns.end - call.columns.first;
        aligned = (((uintptr_t)x / sizeof(T) | (uintptr_t)length) & (uintptr_t)(grain - 1)) == 0;
        first_row = call.rows.first + tile / tiles.across * tiles.rows;
        end_row = call.rows.end - first_row < tiles.rows ? call.rows.end : first_row + tiles.rows;
        first_piece = tile % tiles.across * tiles.lanes;
        end_piece = first_piece + tiles.lanes;
        /* Rows that begin late reach into pieces more. */
        if (tile % tiles.across == tiles.across - 1)
            end_piece = (length + (aligned ? 0 : grain - 1) + width - 1) / width;
    }

    /* Calls write(piece) for the pieces of this thread. */
    template <typename F> __device__ __forceinline__ void each_piece(F write) const
    {
        int64_t piece = first_piece + thread % tiles.lanes;
        for (; piece < end_piece; piece += tiles.lanes)
            write(piece);
    }

    /* ---- Rows of a thread ---- */

    /* Rows of a thread whose pieces begin at one column: all, or every grain-th. */
    struct run {
        int shift;       /* numbers by which the rows begin late */
        int64_t column;  /* of X, where the thread's 16 bytes begin */
        bool whole;      /* all 16 bytes are the row's */
        int first, step; /* rows, from the tile's first */
    };

    /* The first column of the window of a piece. */
    __device__ __forceinline__ int64_t begin(int64_t piece) const
    {
        return call.columns.first + piece * width - (unit - 1);
    }

    /* Calls write(run) for the rows of this thread, which are every (Threads / lanes)-th. */
    template <typename F> __device__ __forceinline__ void each_run(int64_t piece, F write) const
    {
        int step = Threads / tiles.lanes, first = thread / tiles.lanes;
        int runs = aligned ? 1 : grain;
        for (int k = 0; k < runs; k++) {
            run r;
            r.first = first + k * step;
            r.step = runs * step;
            const T *row = x + (first_row + r.first - call.rows.first) * length;
            r.shift = (int)((uintptr_t)row / sizeof(T)) & (grain - 1);
            r.column = call.columns.first + piece * width - r.shift;
            int64_t at = piece * width - r.shift;
            r.whole = at >= 0 && at + width <= length;
            if (at < length && at + width > 0)
                write(r);
        }
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
        for (int by = unit / 2; by > 0; by /= 2) {
            bool moved = !(shift & by);
#pragma unroll
            for (int k = 0; k + by < window; k++)
                half[k] = moved ? half[k + by] : half[k];
        }
#pragma unroll
        for (int k = 0; k < width; k++)
            out[k] = half[k];
    }

    /* Writes rows *k, *k + step, ... before `end` of a run: fill(k, values) gives the values. */
    template <typename F>
    __device__ __forceinline__ void each_row(const run &r, int *k, int64_t end, F fill) const
    {
        int rows = (int)(end_row - first_row);
        int stop = end < first_row ? 0 : end < end_row ? (int)(end - first_row) : rows;
        int64_t stride = r.step * length;
        T *to = x + (first_row + *k - call.rows.first) * length + (r.column - call.columns.first);
        if (r.whole) {
#pragma unroll 4
            for (; *k < stop; *k += r.step, to += stride) {
                T values[width];
                fill(*k, values);
                cuda__store_stream((vector *)to, values);
            }
            return;
        }
        for (; *k < stop; *k += r.step, to += stride) {
            T values[width];
            fill(*k, values);
#pragma unroll
            for (int c = 0; c < width; c++) {
                if (r.column + c >= call.columns.first && r.column + c < call.columns.end)
                    to[c] = values[c];
            }
        }
    }

    /* The columns of this warp, or of all lanes along a row if those are fewer. */
    __device__ __forceinline__ void find_columns(int64_t piece, int64_t *first, int64_t *last) const
    {
        int lanes = tiles.lanes < CUDA__WARP ? tiles.lanes : CUDA__WARP;
        int64_t start = piece - thread % lanes;
        *first = begin(start);
        *last = begin(start + lanes - 1) + window - 1;
    }

    /* Rows above the diagonal in all columns of the warp, on it, and below it. */
    __device__ __forceinline__ void write_run(const run &r, const double *above,
                                              const double *under, int64_t first, int64_t last,
                                              const cuda__tri_factors &rows) const
    {
        int row = r.first;
        each_row(r, &row, first, [&](int k, T *values) {
            double factor = rows.row[CUDA__TRI_ABOVE][k];
#pragma unroll
            for (int c = 0; c < width; c++)
                values[c] = (T)(factor * above[c]);
        });
        each_row(r, &row, last + 1, [&](int k, T *values) {
            double up = rows.row[CUDA__TRI_ABOVE][k], down = rows.row[CUDA__TRI_UNDER][k];
            int beyond = (int)(first_row + k - r.column); /* of the diagonal, from the first */
#pragma unroll
            for (int c = 0; c < width; c++)
                values[c] = (T)(beyond < c ? up * above[c] : down * under[c]);
            if (beyond >= 0 && beyond < width) {
                T diagonal = (T)rows.diagonal[k];
#pragma unroll
                for (int c = 0; c < width; c++)
                    values[c] = beyond == c ? diagonal : values[c];
            }
        });
        each_row(r, &row, end_row, [&](int k, T *values) {
            double factor = rows.row[CUDA__TRI_UNDER][k];
#pragma unroll
            for (int c = 0; c < width; c++)
                values[c] = (T)(factor * under[c]);
        });
    }

    __device__ __forceinline__ void write_nan(int64_t piece) const
    {
        each_run(piece, [&](const run &r) {
            int row = r.first;
            each_row(r, &row, end_row, [&](int, T *values) {
#pragma unroll
                for (int c = 0; c < width; c++)
                    values[c] = cuda__real<T>::nan();
            });
        });
    }
};

#endif
