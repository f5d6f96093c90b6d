/* gpu/cuda/ism/turn.cuh: the inverses of blocks of `ism`, and products whose rows and columns are
 * few and whose sums are long. Device code; a slot a blockIdx.y.
 *
 * A block I + C of s columns becomes its inverse in place by Gauss-Jordan's elimination, turn after
 * turn: a turn takes CUDA__ISM_TURN columns, whose square is inverted in registers, with pivots
 * from its rows, while the rows and columns that it meets are set aside and cleared. With D that
 * inverse, TOP those rows and LEFT those columns, C -= LEFT (D TOP) follows, for which TOP has ones
 * in the place of the square and LEFT minus ones: a block has a tile of C, and makes what it takes
 * of D TOP itself, which another launch would take longer for.
 *
 * A product whose tiles are too few for a device is cut into pieces of its sums, products of their
 * own, which are added up in order afterwards. How many follows from its shape alone. Large ones
 * are left to cuBLAS, which cuts them by itself.
 *
 * Cost: the columns of a turn one after the other; 2 s^3 operations a block.
 */
#ifndef GPU_CUDA_ISM_TURN_CUH
#define GPU_CUDA_ISM_TURN_CUH

#include "gpu/cuda/ism/device.cuh"
#include "gpu/cuda/base/mma_tile.cuh"

#define CUDA__ISM_TURN_WARPS 8
#define CUDA__ISM_TURN_THREADS (CUDA__ISM_TURN_WARPS * CUDA__WARP)
#define CUDA__ISM_TURN_BLOCKS 32 /* that set rows and columns aside */
#define CUDA__ISM_GATHER_WIDE 64 /* numbers of a block that adds up pieces */

/* ---- A turn ---- */

/* A square of s <= CUDA__ISM_TURN columns in the registers of a block. A lane has two rows of its
 * warp's columns, which are one in CUDA__ISM_TURN_WARPS; the first is always the one to come next:
 * when it has been eliminated the others move up, and what takes its place in the inverse goes to
 * the end, so that registers are named by constants and the code is that of one step.
 *
 * A step is a chain of dependent instructions. The warp of the next column brings that one up to
 * date before its others, chooses its pivot, leaves what the pivot's row is to be multiplied by,
 * and says; the others wait for nothing else. Rows are not exchanged: row place[k] had the pivot
 * of column k; nor are they divided by their pivots before the end. */
template <typename T> struct cuda__ism_square {
    typedef typename cuda__real<T>::vector vector;
    static constexpr int warps = CUDA__ISM_TURN_WARPS, width = CUDA__ISM_TURN / warps;
    static constexpr int vectors = width / cuda__real<T>::width;
    /* Columns whose factors are kept. Of the last `warps` columns every warp has prepared one, and
     * was through with all steps but the last before it, so that none reads older ones. */
    static constexpr int kept = 2 * warps;
    struct shared {
        alignas(16) T above[warps][width]; /* the pivot's row */
        T times[kept][CUDA__ISM_TURN];     /* what it is multiplied by for each row */
        T pivot[CUDA__ISM_TURN];
        unsigned place[CUDA__ISM_TURN];
        int of_row[CUDA__ISM_TURN]; /* column of the row's pivot, in the end */
        int prepared;               /* columns so far */
    };

    shared &memory;
    int s, warp, lane;
    alignas(16) T a[2][width]; /* rows lane and lane + 32 */
    bool open[2];              /* rows without a pivot yet */
    bool odd;                  /* the permutation, in the end */

    /* Calls f(row, column, number) for all that is the lane's and in the square; `steps` of the
     * elimination have been taken. */
    template <typename F> __device__ __forceinline__ void each(int steps, F f)
    {
        const int moved = (steps + warps - 1 - warp) / warps;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int i = lane + h * CUDA__WARP;
#pragma unroll
            for (int e = 0; e < width; e++) {
                const int j = (e + moved) % width * warps + warp;
                if (i < s && j < s)
                    f(i, j, a[h][e]);
            }
        }
    }

    __device__ __forceinline__ unsigned own_row(int h) const
    {
        return (unsigned)(lane + h * CUDA__WARP);
    }

    /* Of the open row with the largest magnitude of the first column, by its leading bits, the
     * first of equals: those bits, and 127 less the row. To all lanes. */
    __device__ __forceinline__ unsigned choose() const
    {
        unsigned best = 0;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            unsigned lead = cuda__real<T>::lead(a[h][0]) & 0x7fffff80u;
            unsigned key = open[h] ? lead | (unsigned)(127 - lane - h * CUDA__WARP) : 0u;
            best = key > best ? key : best;
        }
        return __reduce_max_sync(CUDA__ALL, best);
    }

    /* What the pivot's row is multiplied by in the elimination of column k, the warp's first, for
     * all warps; the column becomes what it is behind that. Every lane has the reciprocals of its
     * numbers ready when the row is known. */
    __device__ __forceinline__ void prepare(int k)
    {
        const T ready[2] = {cuda__real<T>::reciprocal(a[0][0]), cuda__real<T>::reciprocal(a[1][0])};
        const unsigned best = choose(), row = (127 - best % 128) % CUDA__ISM_TURN;
        const bool high = row >= CUDA__WARP;
        T by = __shfl_sync(CUDA__ALL, high ? ready[1] : ready[0], row % CUDA__WARP);
        if (best < cuda__real<T>::lead(cuda__real<T>::min_safe) ||
            best >= cuda__real<T>::lead(cuda__real<T>::max_safe))
            by = 1 / __shfl_sync(CUDA__ALL, high ? a[1][0] : a[0][0], row % CUDA__WARP);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const bool mine = row == own_row(h);
            const T times = cuda__real<T>::times(-a[h][0], by);
            memory.times[k % kept][lane + h * CUDA__WARP] = mine ? T(0) : times;
            if (mine) {
                memory.place[k] = row;
                memory.pivot[k] = a[h][0];
            }
            a[h][0] = mine ? T(1) : times;
        }
        __syncwarp();
        if (lane == 0)
            cuda__tell(&memory.prepared, k + 1);
    }

    /* The pivot's row to all lanes. */
    __device__ __forceinline__ void share(unsigned row, T (&above)[width])
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if (row != own_row(h))
                continue;
#pragma unroll
            for (int v = 0; v < vectors; v++)
                ((vector *)memory.above[warp])[v] = ((const vector *)a[h])[v];
        }
        __syncwarp();
#pragma unroll
        for (int v = 0; v < vectors; v++)
            ((vector *)above)[v] = ((const vector *)memory.above[warp])[v];
        __syncwarp();
    }

    /* Eliminates column k; prepares the next one. */
    __device__ __forceinline__ void eliminate(int k)
    {
        const bool own = warp == k % warps, next = k + 1 < s && warp == (k + 1) % warps;
        alignas(16) T above[width];
        T times[2];
        cuda__await(&memory.prepared, k + 1);
        const unsigned row = memory.place[k];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            times[h] = memory.times[k % kept][lane + h * CUDA__WARP];
            open[h] = open[h] && row != own_row(h);
        }
        if (next) {
            const T head =
                __shfl_sync(CUDA__ALL, row < CUDA__WARP ? a[0][0] : a[1][0], row % CUDA__WARP);
            a[0][0] = fma(times[0], head, a[0][0]);
            a[1][0] = fma(times[1], head, a[1][0]);
            prepare(k + 1);
        }
        share(row, above);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if (!own && !next) /* it has been done */
                a[h][0] = fma(times[h], above[0], a[h][0]);
#pragma unroll
            for (int e = 1; e < width; e++)
                a[h][e] = fma(times[h], above[e], a[h][e]);
        }
        if (own)
            move_up();
    }

    __device__ __forceinline__ void move_up()
    {
        __syncwarp(); /* behind a branch, then: not a choice for all */
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const T first = a[h][0];
#pragma unroll
            for (int e = 1; e < width; e++)
                a[h][e - 1] = a[h][e];
            a[h][width - 1] = first;
        }
    }

    /* false: a pivot is zero or not finite. All threads of the block call. */
    __device__ __forceinline__ bool invert()
    {
        open[0] = lane < s;
        open[1] = lane + CUDA__WARP < s;
        if (threadIdx.x == 0)
            memory.prepared = 0;
        __syncthreads();
        if (warp == 0)
            prepare(0);
#pragma unroll 1
        for (int k = 0; k < s; k++)
            eliminate(k);
        const bool good = conclude();
        divide();
        return good;
    }

    /* The rows by their pivots. */
    __device__ __forceinline__ void divide()
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int i = lane + h * CUDA__WARP;
            const T by = i < s ? 1 / memory.pivot[memory.of_row[i]] : T(0);
#pragma unroll
            for (int e = 0; e < width; e++)
                a[h][e] *= by;
        }
    }

    /* Whether all pivots are fine; of_row and odd. */
    __device__ __forceinline__ bool conclude()
    {
        constexpr int parts = warps * CUDA__WARP / CUDA__ISM_TURN, part = CUDA__ISM_TURN / parts;
        const int k = (int)threadIdx.x % CUDA__ISM_TURN, of = (int)threadIdx.x / CUDA__ISM_TURN;
        const unsigned row = k < s ? memory.place[k] : 0;
        int exchanged = 0;
#pragma unroll
        for (int l = of * part; l < (of + 1) * part; l++)
            exchanged += l < k && k < s && memory.place[l] > row;
        if (of == 0 && k < s)
            memory.of_row[row] = k;
        const T size = k < s ? fabs(memory.pivot[k]) : T(1);
        odd = __syncthreads_count(exchanged % 2) % 2;
        return !__syncthreads_or(!(size > 0 && size <= cuda__real<T>::largest));
    }

    /* The determinant, by the first warp: what is found counts for its first thread. */
    __device__ __forceinline__ void multiply_pivots(double *det, int64_t *exponent) const
    {
        double fraction = 1;
        int exponents = 0;
        for (int k = lane; k < s; k += CUDA__WARP) {
            int shift;
            fraction *= frexp((double)memory.pivot[k], &shift);
            exponents += shift;
        }
        for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2) {
            fraction *= __shfl_xor_sync(CUDA__ALL, fraction, reach);
            exponents += __shfl_xor_sync(CUDA__ALL, exponents, reach);
        }
        cuda__ism_times(det, exponent, odd ? -fraction : fraction);
        *exponent += exponents;
    }
};

/* The square of the turn from column `first` on, of `count` columns: D, to C where it is the whole
 * block, and to TURNED otherwise. Its rows are read and written whole. */
template <typename T>
static __device__ __forceinline__ void cuda__ism_invert_square(const cuda__ism_call &call, int s,
                                                               int first, int count)
{
    __shared__ typename cuda__ism_square<T>::shared held;
    __shared__ T rows[CUDA__ISM_TURN][CUDA__ISM_TURN + 1];
    const int64_t slot = blockIdx.y;
    const bool whole = count == s;
    typename cuda__ism_square<T>::shared &memory = *cuda__held(&held);
    cuda__ism_answer *answer = cuda__ism_answer_of<T>(call, slot);
    cuda__ism_square<T> square = {
        memory, count, (int)threadIdx.x / CUDA__WARP, (int)threadIdx.x % CUDA__WARP, {}, {}, false};
    T *c = cuda__ism_array_of<T>(call, slot, CUDA__ISM_C) + first * (call.lds + 1);
    T *turned = cuda__ism_array_of<T>(call, slot, CUDA__ISM_TURNED);
    const int j = (int)threadIdx.x % CUDA__ISM_TURN;
    constexpr int step = CUDA__ISM_TURN_THREADS / CUDA__ISM_TURN;
#pragma unroll
    for (int r = 0; r < CUDA__ISM_TURN; r += step) {
        const int i = r + (int)threadIdx.x / CUDA__ISM_TURN;
        if (i >= count || j >= count)
            continue;
        rows[i][j] = c[i * call.lds + j] + T(i == j);
        if (!whole)
            c[i * call.lds + j] = 0;
    }
    __syncthreads();
    square.each(0, [&](int i, int l, T &number) { number = rows[i][l]; });
    const bool good = square.invert();
    /* Row place[k] has the inverse's row k, and its column l that of row place[l]. */
    square.each(count, [&](int i, int l, T number) {
        rows[good ? memory.of_row[i] : i][good ? (int)memory.place[l] : l] = good ? number : T(0);
    });
    __syncthreads();
#pragma unroll
    for (int r = 0; r < CUDA__ISM_TURN; r += step) {
        const int i = r + (int)threadIdx.x / CUDA__ISM_TURN;
        if (i < count && j < count)
            (whole ? c + i * call.lds : turned + i * CUDA__ISM_TURN)[j] = rows[i][j];
    }
    if (threadIdx.x >= CUDA__WARP)
        return;
    double det = answer->det;
    int64_t exponent = answer->det_exponent;
    square.multiply_pivots(&det, &exponent);
    if (threadIdx.x > 0)
        return;
    if (good) {
        answer->det = det;
        answer->det_exponent = exponent;
    } else {
        answer->broken = 1;
    }
}

/* One turn of a block of s columns. blockIdx.x 0: the square; the others set aside. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_TURN_THREADS)
    cuda__ism_turn_kernel(const cuda__ism_call call, int s, int first, int count)
{
    cuda__follow_previous();
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

/* ---- What a turn leaves to be done ---- */

/* A block's tile of C, of 16 x 16 numbers a warp. D, LEFT's rows and TOP's columns, filled up with
 * zeros to a whole turn. */
template <typename T> struct cuda__ism_turn_tile {
    typedef typename cuda__real<T>::vector vector;
    static constexpr int turn = CUDA__ISM_TURN, rows = CUDA__ISM_TURN, columns = 32;
    static constexpr int width = cuda__real<T>::width, threads = CUDA__ISM_TURN_THREADS;
    static constexpr int line = cuda__mma_line<T>::of_factor(turn);
    static constexpr int top_line = cuda__mma_line<T>::of_factor(columns);
    static_assert(rows * columns == CUDA__ISM_TURN_WARPS * CUDA__UNIT * CUDA__UNIT,
                  "a warp has a unit");
    struct shared {
        alignas(16) T turned[turn][line], left[rows][line];
        alignas(16) T top[turn][top_line]; /* then D times it */
    };

    /* `down` x `across` numbers, and zeros around them. */
    template <int Width>
    static __device__ __forceinline__ void stage(T *to, int to_line, const T *from, int64_t ld,
                                                 int down, int across)
    {
        constexpr int pieces = Width / width;
#pragma unroll
        for (int e = 0; e < turn * pieces; e += threads) {
            const int i = (e + (int)threadIdx.x) / pieces;
            const int j = (e + (int)threadIdx.x) % pieces * width;
            T *place = to + i * to_line + j;
            if (i < down && j + width <= across) {
                cuda__copy_async<16>(place, from + i * ld + j);
                continue;
            }
#pragma unroll
            for (int v = 0; v < width; v++)
                place[v] = i < down && j + v < across ? from[i * ld + j + v] : T(0);
        }
    }
};

/* C -= LEFT (D TOP) of s columns, after a turn of `count`. blockIdx.x: the tile. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_TURN_THREADS)
    cuda__ism_turn_rest_kernel(const cuda__ism_call call, int s, int count)
{
    cuda__follow_previous();
    typedef cuda__ism_turn_tile<T> block;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    typename block::shared &memory = *(typename block::shared *)cuda__memory;
    const int64_t slot = blockIdx.y, ld = call.lds;
    const int lane = (int)threadIdx.x % CUDA__WARP, warp = (int)threadIdx.x / CUDA__WARP;
    const int across = (s + block::columns - 1) / block::columns;
    const int row = (int)blockIdx.x / across * block::rows;
    const int column = (int)blockIdx.x % across * block::columns;
    const int i0 = warp / 2 * CUDA__UNIT, j0 = warp % 2 * CUDA__UNIT;
    block::template stage<block::turn>(memory.turned[0], block::line,
                                       cuda__ism_array_of<T>(call, slot, CUDA__ISM_TURNED),
                                       block::turn, count, count);
    block::template stage<block::columns>(memory.top[0], block::top_line,
                                          cuda__ism_array_of<T>(call, slot, CUDA__ISM_TOP) + column,
                                          ld, count, s - column);
    block::template stage<block::turn>(memory.left[0], block::line,
                                       cuda__ism_array_of<T>(call, slot, CUDA__ISM_LEFT) +
                                           row * block::turn,
                                       block::turn, s - row, count);
    cuda__copy_arrive();
    __syncthreads();
    cuda__mma_tile<T, 1, 1> tile = {};
    tile.template multiply<block::turn>(memory.turned[i0], block::line, memory.top[0] + j0,
                                        block::top_line, lane);
    __syncthreads();
    cuda__mma_store(tile, memory.top[i0] + j0, block::top_line, lane);
    __syncthreads();
    tile = {};
    tile.template multiply<block::turn>(memory.left[i0], block::line, memory.top[0] + j0,
                                        block::top_line, lane);
    T *c = cuda__ism_array_of<T>(call, slot, CUDA__ISM_C) + (row + i0) * ld + column + j0;
    tile.each(lane, [&](int i, int j, const T *from) {
#pragma unroll
        for (int v = 0; v < block::width; v++) {
            if (row + i0 + i < s && column + j0 + j + v < s)
                c[i * ld + j + v] -= from[v];
        }
    });
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
    if (inner < CUDA__ISM_CUT_MIN || large || pieces < 2)
        return cut;
    cut.inner = ((inner + pieces - 1) / pieces + 15) / 16 * 16;
    cut.whole = inner / cut.inner;
    cut.rest = inner % cut.inner;
    return cut;
}

/* to (rows x columns, rows ld apart) = alpha the sum of `pieces` of them in PIECES, dense, + beta
 * of what it was. A group of threads every fourth piece; then their sums. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ISM_THREADS)
    cuda__ism_gather_kernel(const cuda__ism_call call, int pieces, int64_t rows, int64_t columns,
                            T alpha, T beta, int array, int64_t at, int64_t ld)
{
    cuda__follow_previous();
    constexpr int wide = CUDA__ISM_GATHER_WIDE, groups = CUDA__ISM_THREADS / wide;
    __shared__ T sums[groups][wide];
    const int place = (int)threadIdx.x % wide, group = (int)threadIdx.x / wide;
    const int64_t slot = blockIdx.y, area = rows * columns, step = (int64_t)gridDim.x * wide;
    T *to = cuda__ism_array_of<T>(call, slot, array) + at;
    for (int64_t first = (int64_t)blockIdx.x * wide; first < area; first += step) {
        const int64_t e = first + place;
        const T *from = cuda__ism_array_of<T>(call, slot, CUDA__ISM_PIECES) + e;
        T sum = 0;
#pragma unroll 16
        for (int p = group; p < pieces; p += groups)
            sum += e < area ? from[p * area] : T(0);
        sums[group][place] = sum;
        __syncthreads();
        if (group == 0 && e < area) {
            T *number = to + e / columns * ld + e % columns;
            for (int g = 1; g < groups; g++)
                sum += sums[g][place];
            *number = beta == 0 ? alpha * sum : fma(beta, *number, alpha * sum);
        }
        __syncthreads();
    }
}

#endif
