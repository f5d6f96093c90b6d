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
 * Cost: eight columns of a turn a barrier; 2 s^3 operations a block.
 */
#ifndef GPU_CUDA_ISM_TURN_CUH
#define GPU_CUDA_ISM_TURN_CUH

#include "gpu/cuda/ism.cuh"

#define CUDA__ISM_TURN_WARPS 8
#define CUDA__ISM_TURN_THREADS (CUDA__ISM_TURN_WARPS * CUDA__WARP)
#define CUDA__ISM_TURN_BLOCKS 32 /* that set rows and columns aside */

/* ---- A turn ---- */

/* A square of s <= CUDA__ISM_TURN columns in the registers of a block. A warp has eight columns,
 * its panel, a lane two rows of them. Panel after panel a warp eliminates its columns alone; what
 * it leaves of them takes the place of the identity's columns, and the others multiply their pivot
 * rows by it. Rows are not exchanged: row place[k] had the pivot of column k. */
template <typename T> struct cuda__ism_square {
    typedef typename cuda__real<T>::vector vector;
    static constexpr int width = CUDA__ISM_TURN / CUDA__ISM_TURN_WARPS; /* of a panel */
    static constexpr int line = sizeof(T) == 8 ? width + 2 : width + 4; /* free of conflicts */
    static constexpr int vectors = width / cuda__real<T>::width;
    struct shared {
        alignas(16) T panel[2][CUDA__ISM_TURN][line];
        alignas(16) T rows[CUDA__ISM_TURN_WARPS][width][width];
        T pivot[CUDA__ISM_TURN];
        alignas(16) int place[CUDA__ISM_TURN];
        int of_row[CUDA__ISM_TURN]; /* column of the row's pivot, in the end */
        int broken;
    };

    shared &memory;
    int s, warp, lane;
    alignas(16) T a[2][width]; /* rows lane and lane + 32, columns from warp * width on */
    bool open[2];              /* rows without a pivot yet */

    /* Calls f(row, column, number) for all that is the lane's and in the square. */
    template <typename F> __device__ __forceinline__ void each(F f)
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int i = lane + h * CUDA__WARP;
#pragma unroll
            for (int e = 0; e < width; e++) {
                if (i < s && warp * width + e < s)
                    f(i, warp * width + e, a[h][e]);
            }
        }
    }

    static __device__ __forceinline__ void copy(T *to, const T *from)
    {
#pragma unroll
        for (int v = 0; v < vectors; v++)
            ((vector *)to)[v] = ((const vector *)from)[v];
    }

    /* The open row with the largest magnitude of panel column k, by its leading bits; the first of
     * equals. To all lanes. */
    __device__ __forceinline__ int choose(int k) const
    {
        unsigned best = 0;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            unsigned lead = cuda__real<T>::lead(fabs(a[h][k])) & ~127u;
            unsigned key = open[h] ? lead | (unsigned)(127 - lane - h * CUDA__WARP) : 0u;
            best = key > best ? key : best;
        }
        return (127 - (int)(__reduce_max_sync(CUDA__ALL, best) & 127u)) & (CUDA__ISM_TURN - 1);
    }

    /* Eliminates panel column k of the own warp; returns the pivot, and its row. Every lane has the
     * reciprocals of its numbers ready when the row is known. */
    __device__ __forceinline__ T eliminate(int k, int *place)
    {
        const T ready[2] = {cuda__real<T>::reciprocal(a[0][k]), cuda__real<T>::reciprocal(a[1][k])};
        const int row = choose(k), from = row % CUDA__WARP;
        const bool high = row >= CUDA__WARP;
        T pivots[width], by = __shfl_sync(CUDA__ALL, high ? ready[1] : ready[0], from);
        *place = row;
#pragma unroll
        for (int e = 0; e < width; e++)
            pivots[e] = __shfl_sync(CUDA__ALL, high ? a[1][e] : a[0][e], from);
        T pivot = pivots[k], size = fabs(pivot);
        bool usual = size >= cuda__real<T>::least_safe && size <= cuda__real<T>::most_safe;
        if (!usual)
            by = 1 / pivot;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            bool mine = lane == from && high == (h == 1);
            T factor = a[h][k] * by;
#pragma unroll
            for (int e = 0; e < width; e++) {
                T other = mine ? pivots[e] * by : fma(-factor, pivots[e], a[h][e]);
                a[h][e] = e != k ? other : mine ? by : -factor;
            }
        }
        return pivot;
    }

    __device__ __forceinline__ void close(int row)
    {
        open[0] = open[0] && row != lane;
        open[1] = open[1] && row != lane + CUDA__WARP;
    }

    /* The own panel, of `count` columns. It is left in `panel`, and the places of its pivots. */
    __device__ __forceinline__ void eliminate_panel(int count)
    {
#pragma unroll
        for (int k = 0; k < width; k++) {
            if (k >= count)
                break;
            int row, column = warp * width + k;
            T pivot = eliminate(k, &row);
            close(row);
            if (lane == 0) {
                memory.place[column] = row;
                memory.pivot[column] = pivot;
                if (!(fabs(pivot) > 0 && fabs(pivot) <= cuda__real<T>::largest))
                    memory.broken = 1;
            }
        }
#pragma unroll
        for (int h = 0; h < 2; h++)
            copy(memory.panel[warp % 2][lane + h * CUDA__WARP], a[h]);
    }

    /* Another warp's panel of `count` columns is applied to the own columns. */
    __device__ __forceinline__ void follow(int panel, int count)
    {
        T(*rows)[width] = memory.rows[warp];
        alignas(16) T left[width], right[width];
        int mine[2] = {-1, -1}; /* which pivot a row had */
#pragma unroll
        for (int k = 0; k < width; k++) {
            int row = k < count ? memory.place[panel * width + k] : -1;
            mine[0] = row == lane ? k : mine[0];
            mine[1] = row == lane + CUDA__WARP ? k : mine[1];
            close(row);
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if (mine[h] < 0)
                continue;
            copy(rows[mine[h]], a[h]);
#pragma unroll
            for (int e = 0; e < width; e++)
                a[h][e] = 0;
        }
        __syncwarp();
#pragma unroll
        for (int h = 0; h < 2; h++) {
            copy(left, memory.panel[panel % 2][lane + h * CUDA__WARP]);
#pragma unroll
            for (int k = 0; k < width; k++) {
                if (k >= count) /* nobody has written those rows */
                    break;
                copy(right, rows[k]);
#pragma unroll
                for (int e = 0; e < width; e++)
                    a[h][e] = fma(left[k], right[e], a[h][e]);
            }
        }
        __syncwarp();
    }

    /* false: a pivot is zero or not finite. */
    __device__ __forceinline__ bool invert()
    {
        open[0] = lane < s;
        open[1] = lane + CUDA__WARP < s;
        if (threadIdx.x == 0)
            memory.broken = 0;
        __syncthreads();
        for (int first = 0; first < s; first += width) {
            int panel = first / width;
            if (warp == panel)
                eliminate_panel(s - first);
            __syncthreads();
            if (warp != panel)
                follow(panel, s - first);
        }
        if ((int)threadIdx.x < s)
            memory.of_row[memory.place[threadIdx.x]] = (int)threadIdx.x;
        __syncthreads();
        return !memory.broken;
    }

    /* The determinant, by the first warp: what is found counts for its first thread. */
    __device__ __forceinline__ void conclude(double *det, int64_t *exponent) const
    {
        double fraction = 1;
        int exponents = 0, exchanged = 0;
        for (int k = (int)threadIdx.x; k < s; k += CUDA__WARP) {
            int row = memory.place[k], shift;
#pragma unroll 8
            for (int l = 0; l < k; l++)
                exchanged += memory.place[l] > row;
            fraction *= frexp((double)memory.pivot[k], &shift);
            exponents += shift;
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
    cuda__ism_square<T> square = {
        memory, count, (int)threadIdx.x / CUDA__WARP, (int)threadIdx.x % CUDA__WARP, {}, {}};
    T *c = cuda__ism_array_of<T>(call, slot, CUDA__ISM_C) + first * (call.lds + 1);
    T *turned = cuda__ism_array_of<T>(call, slot, CUDA__ISM_TURNED);
    square.each([&](int i, int j, T &number) { number = c[i * call.lds + j] + T(i == j); });
    bool whole = square.invert();
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
    /* Row place[k] has the inverse's row k, and its column l that of row place[l]. */
    square.each([&](int i, int j, T number) {
        int to = whole ? memory.of_row[i] : i, place = whole ? memory.place[j] : j;
        T value = whole ? number : T(0);
        if (count == s) {
            c[to * call.lds + place] = value;
        } else {
            turned[to * CUDA__ISM_TURN + place] = value;
            c[i * call.lds + j] = 0;
        }
    });
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
