/* gpu/cuda/ism_turn.cuh: the inverses of blocks of `ism`, and products whose rows and columns are
 * few and whose sums are long. Device code; a slot a blockIdx.y.
 *
 * A block I + C of s columns becomes its inverse in place by Gauss-Jordan's elimination, turn after
 * turn: a turn takes CUDA__ISM_TURN columns, whose square is inverted in registers, with pivots
 * from its rows, while the rows and columns that it meets are set aside and cleared. With D that
 * inverse, TOP those rows and LEFT those columns, two products follow: ROWS = D TOP, and
 * C -= LEFT ROWS, for which TOP has ones in the place of the square and LEFT minus ones.
 *
 * A product whose tiles are too few for a device is cut into pieces of its sums, products of their
 * own, which are added up in order afterwards. How many follows from its shape alone. Large ones
 * are left to cuBLAS, which cuts them by itself.
 *
 * Cost: a column of a turn two barriers; 2 s^3 operations a block.
 */
#ifndef GPU_CUDA_ISM_TURN_CUH
#define GPU_CUDA_ISM_TURN_CUH

#include "gpu/cuda/ism.cuh"

#define CUDA__ISM_TURN_LANES 8 /* threads that have a row */
#define CUDA__ISM_TURN_THREADS (CUDA__ISM_TURN * CUDA__ISM_TURN_LANES)
#define CUDA__ISM_TURN_BLOCKS 16 /* that set rows and columns aside */

/* ---- A turn ---- */

/* A square of s <= CUDA__ISM_TURN columns in the registers of a block. A thread has the columns
 * lane, lane + 8, ... of a row. Rows are not exchanged: row place[k] had the pivot of column k. */
template <typename T> struct cuda__ism_square {
    static constexpr int width = CUDA__ISM_TURN / CUDA__ISM_TURN_LANES;
    struct shared {
        T column[2][CUDA__ISM_TURN], row[CUDA__ISM_TURN], pivot[CUDA__ISM_TURN];
        int place[CUDA__ISM_TURN], of_row[CUDA__ISM_TURN];
    };

    shared &memory;
    int s, i, lane; /* i: the row */
    T a[width];

    /* The row with the largest magnitude of `column` among those that had no pivot yet, by its
     * leading bits; the first of equals. To all threads. */
    __device__ __forceinline__ int choose(const T *column, unsigned long long rows) const
    {
        unsigned best = 0;
        for (int half = 0; half < CUDA__ISM_TURN; half += CUDA__WARP) {
            int row = half + (int)threadIdx.x % CUDA__WARP;
            unsigned lead = cuda__real<T>::lead(fabs(column[row])) & ~127u;
            unsigned key = rows >> row & 1 ? lead | (unsigned)(127 - row) : 0u;
            best = key > best ? key : best;
        }
        return 127 - (int)(__reduce_max_sync(CUDA__ALL, best) & 127u);
    }

    /* false: a pivot is zero or not finite. */
    __device__ __forceinline__ bool invert()
    {
        unsigned long long rows = s < 64 ? (1ull << s) - 1 : ~0ull;
        if (lane == 0)
            memory.column[0][i] = a[0];
#pragma unroll
        for (int c = 0; c < width; c++) {
            for (int q = 0; q < CUDA__ISM_TURN_LANES; q++) {
                int k = c * CUDA__ISM_TURN_LANES + q;
                if (k >= s)
                    return true;
                __syncthreads();
                const T *column = memory.column[k & 1];
                int row = choose(column, rows);
                T pivot = column[row], factor = column[i];
                rows &= ~(1ull << row);
                if (!(fabs(pivot) > 0 && fabs(pivot) <= cuda__real<T>::largest))
                    return false;
                if (lane == q)
                    a[c] = i == row ? T(1) : T(0);
#pragma unroll
                for (int e = 0; e < width; e++) {
                    if (i == row)
                        memory.row[e * CUDA__ISM_TURN_LANES + lane] = a[e];
                }
                T by = 1 / pivot;
                if (threadIdx.x == 0) {
                    memory.place[k] = row;
                    memory.pivot[k] = pivot;
                }
                __syncthreads();
                factor *= by;
#pragma unroll
                for (int e = 0; e < width; e++)
                    a[e] = i == row
                               ? a[e] * by
                               : fma(-factor, memory.row[e * CUDA__ISM_TURN_LANES + lane], a[e]);
                if (q + 1 < CUDA__ISM_TURN_LANES && lane == q + 1)
                    memory.column[(k + 1) & 1][i] = a[c];
                if (c + 1 < width && q + 1 == CUDA__ISM_TURN_LANES && lane == 0)
                    memory.column[(k + 1) & 1][i] = a[c + 1 < width ? c + 1 : c];
            }
        }
        return true;
    }

    /* The determinant, by the first warp: what is found counts for its first thread. Which column's
     * pivot a row had goes to of_row. */
    __device__ __forceinline__ void conclude(double *det, int64_t *exponent) const
    {
        double fraction = 1;
        int exponents = 0, exchanged = 0;
        for (int k = (int)threadIdx.x; k < s; k += CUDA__WARP) {
            int row = memory.place[k], shift;
            for (int l = 0; l < k; l++)
                exchanged += memory.place[l] > row;
            fraction *= frexp((double)memory.pivot[k], &shift);
            exponents += shift;
            memory.of_row[row] = k;
        }
        for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2) {
            fraction *= __shfl_xor_sync(CUDA__ALL, fraction, reach);
            exponents += __shfl_xor_sync(CUDA__ALL, exponents, reach);
            exchanged += __shfl_xor_sync(CUDA__ALL, exchanged, reach);
        }
        cuda__ism_times(det, exponent, exchanged % 2 ? -fraction : fraction);
        *exponent += exponents;
    }
};

/* The square of the turn from column `first` on, of `count` columns: D, to C where it is the whole
 * block, and to TURNED otherwise. */
template <typename T>
static __device__ __forceinline__ void cuda__ism_invert_square(const cuda__ism_call &call, int s,
                                                               int first, int count)
{
    __shared__ typename cuda__ism_square<T>::shared memory;
    int64_t slot = blockIdx.y;
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    cuda__ism_square<T> square = {memory,
                                  count,
                                  (int)threadIdx.x / CUDA__ISM_TURN_LANES,
                                  (int)threadIdx.x % CUDA__ISM_TURN_LANES,
                                  {}};
    T *c = cuda__ism_array_of<T>(call, slot, CUDA__ISM_C) + first * (call.lds + 1);
    T *turned = cuda__ism_array_of<T>(call, slot, CUDA__ISM_TURNED);
#pragma unroll
    for (int e = 0; e < square.width; e++) {
        int j = e * CUDA__ISM_TURN_LANES + square.lane;
        bool inside = square.i < count && j < count;
        square.a[e] = inside ? c[square.i * call.lds + j] + (square.i == j ? T(1) : T(0)) : T(0);
    }
    bool whole = square.invert();
    __syncthreads();
    if (threadIdx.x < CUDA__WARP && whole) {
        double det = answer->det;
        int64_t exponent = answer->det_exponent;
        square.conclude(&det, &exponent);
        __syncwarp();
        if (threadIdx.x == 0) {
            answer->det = det;
            answer->det_exponent = exponent;
        }
    }
    if (threadIdx.x == 0 && !whole)
        answer->broken = 1;
    __syncthreads();
    /* Row place[k] has the inverse's row k, and its column l that of row place[l]. */
#pragma unroll
    for (int e = 0; e < square.width; e++) {
        int j = e * CUDA__ISM_TURN_LANES + square.lane;
        if (square.i >= count || j >= count)
            continue;
        int to = whole ? memory.of_row[square.i] : square.i, column = whole ? memory.place[j] : j;
        T value = whole ? square.a[e] : T(0);
        if (count == s) {
            c[to * call.lds + column] = value;
        } else {
            turned[to * CUDA__ISM_TURN + column] = value;
            c[square.i * call.lds + j] = 0;
        }
    }
}

/* One turn of a block of s columns. blockIdx.x 0: the square; the others set aside. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_TURN_THREADS)
    cuda__ism_turn_kernel(const cuda__ism_call call, int s, int first, int count)
{
    if (blockIdx.x == 0) {
        cuda__ism_invert_square<T>(call, s, first, count);
        return;
    }
    int64_t slot = blockIdx.y;
    T *c = cuda__ism_array_of<T>(call, slot, CUDA__ISM_C);
    T *top = cuda__ism_array_of<T>(call, slot, CUDA__ISM_TOP);
    T *left = cuda__ism_array_of<T>(call, slot, CUDA__ISM_LEFT);
    int step = ((int)gridDim.x - 1) * CUDA__ISM_TURN_THREADS;
    int begin = ((int)blockIdx.x - 1) * CUDA__ISM_TURN_THREADS + (int)threadIdx.x;
    for (int e = begin; e < count * s; e += step) {
        int i = e / s, j = e % s - first;
        T *at = c + (first + i) * call.lds + e % s;
        bool inside = j >= 0 && j < count;
        top[i * call.lds + e % s] = inside ? (i == j ? T(1) : T(0)) : *at;
        if (!inside)
            *at = 0;
    }
    for (int e = begin; e < count * s; e += step) {
        int i = e / count - first, j = e % count;
        T *at = c + (e / count) * call.lds + first + j;
        bool inside = i >= 0 && i < count;
        left[e / count * CUDA__ISM_TURN + j] = inside ? (i == j ? T(-1) : T(0)) : *at;
        if (!inside)
            *at = 0;
    }
}

/* ---- Pieces of sums ---- */

#define CUDA__ISM_CUT_VOLUME (INT64_C(1) << 28) /* multiplications of large products */

/* How a product is cut: `whole` pieces of `inner` numbers, and one of the rest. */
struct cuda__ism_cut {
    int64_t whole, inner, rest;
};

/* whole 0: it is not. */
static inline struct cuda__ism_cut cuda__ism_cut_of(int64_t rows, int64_t columns, int64_t inner)
{
    int64_t tile = CUDA__ISM_CUT_TILE;
    int64_t tiles = ((rows + tile - 1) / tile) * ((columns + tile - 1) / tile);
    int64_t pieces = tiles > 0 ? CUDA__ISM_CUT_TILES / tiles : 0;
    struct cuda__ism_cut cut = {};
    bool large = rows * columns >= CUDA__ISM_CUT_VOLUME / (inner + 1);
    pieces = pieces < inner / CUDA__ISM_CUT_INNER ? pieces : inner / CUDA__ISM_CUT_INNER;
    if (inner < CUDA__ISM_CUT_LEAST || large || pieces < 2)
        return cut;
    cut.inner = ((inner + pieces - 1) / pieces + 15) / 16 * 16;
    cut.whole = inner / cut.inner;
    cut.rest = inner % cut.inner;
    return cut;
}

/* to (rows x columns, rows ld apart) = alpha the sum of `pieces` of them in PIECES, dense, + beta
 * of what it was. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_gather_kernel(const cuda__ism_call call, int64_t pieces, int64_t rows,
                            int64_t columns, T alpha, T beta, int array, int64_t at, int64_t ld)
{
    int64_t slot = blockIdx.y, step = (int64_t)gridDim.x * CUDA__ISM_THREADS;
    const T *from = cuda__ism_array_of<T>(call, slot, CUDA__ISM_PIECES);
    T *to = cuda__ism_array_of<T>(call, slot, array) + at;
    for (int64_t e = (int64_t)blockIdx.x * CUDA__ISM_THREADS + threadIdx.x; e < rows * columns;
         e += step) {
        T sum = 0, *place = to + e / columns * ld + e % columns;
#pragma unroll 8
        for (int64_t p = 0; p < pieces; p++)
            sum += from[p * rows * columns + e];
        *place = beta == 0 ? alpha * sum : fma(beta, *place, alpha * sum);
    }
}

#endif
