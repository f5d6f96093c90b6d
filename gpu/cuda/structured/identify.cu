/* gpu/cuda/structured/identify.cu: see identify.h.
 *
 * Two kernels, each put on the device while the one before it ends. The first reads A by pairs of
 * tiles, T above the diagonal and U opposite below it, of 32 x 32 numbers, and writes for each
 * strip of tiles a line of sums of its columns and one of its rows. The second adds the lines up,
 * in double, and adds its findings to the matrix by atomic operations, so that no block waits for
 * the others. One matrix wants many warps for a group, which share its lines; a batch has groups
 * enough for a warp each. The sums have the same order, so a matrix has the same answer in any
 * batch.
 *
 * One kernel could do both: the block that completes a strip adds up its sums, if those that come
 * are counted; or one cluster of 16 blocks holds all sums of n = 512. Both were tried on an H100,
 * 2026-11-27, and took longer than two launches: the first waits for its fences and counts, and 16
 * multiprocessors read slower than all do (bench/results/iterative.md).
 */
#include "gpu/cuda/structured/identify.h"

#include "gpu/cuda/base/batch.h"
#include "gpu/cuda/base/ptx.cuh"
#include "gpu/cuda/base/stage.cuh"
#include "gpu/cuda/tuning/h200/structured.h"
#include "gpu/cuda/base/launch.cuh"

/* ---- Kernels ---- */

/* The second kernel of identify.cu. Device code; a matrix a blockIdx.y; the first block adds up
 * what the pairs have, each of the others groups of 32 columns and their rows.
 *
 * A group's lines are added up by one warp to CUDA__IDENTIFY_ADDERS, always as so many sums, which
 * are then added in their order: the number of warps does not show. What a group finds is reported
 * by atomic operations, whose order does not show either: the largest, the least, the first and the
 * union of all.
 *
 * Cost: reads what the first kernel wrote, and the diagonal.
 */

/* ---- Pairs of strips ---- */

/* The first kernel of identify.cu, and the scratch that it leaves for the second. Device code; a
 * matrix a blockIdx.y, a pair of strips a blockIdx.x.
 *
 * A block goes through a tile T of the one strip and the tile U opposite at a time. Four warps
 * share them: each reads every fourth row, a column a lane, and adds up what it has of each column;
 * then, from shared memory, every fourth column of the rows. Of what they have each warp adds up
 * one kind: the columns of T, its rows, the columns of U, its rows.
 *
 * Cost: reads A once, but tiles on the diagonal twice, as what the second-level cache may let go
 * first: a batch would push the sums out. Writes two lines of n sums for each strip.
 */

#define CUDA__IDENTIFY_TILE CUDA__WARP
#define CUDA__IDENTIFY_WARPS 4 /* of a block of the first kernel: one for each kind of sum */
#define CUDA__IDENTIFY_EACH (CUDA__IDENTIFY_TILE / CUDA__IDENTIFY_WARPS) /* of a tile's rows */

/* What a pair of strips has besides the sums. */
struct cuda__identify_pair {
    double squares;
    uint32_t parts;
};

/* The scratch of one matrix. */
template <typename T> struct cuda__identify_space {
    T *columns, *rows; /* strips lines of n sums each */
    struct cuda__identify_pair *pairs;
};

struct cuda__identify_shape {
    int64_t n, strips; /* n in strips of `width` */
    int width;

    __host__ __device__ int64_t pairs() const
    {
        return strips * (strips + 1) / 2;
    }
    /* Of 32 columns and their rows. */
    __host__ __device__ int64_t groups() const
    {
        return (n + CUDA__IDENTIFY_TILE - 1) / CUDA__IDENTIFY_TILE;
    }
};

/* The width of a strip in tiles: 1, 2 or 4. */
static inline int cuda__identify_tiles(enum precision precision, int64_t n)
{
    if (n <= CUDA__IDENTIFY_ONE_TILE_MAX(precision))
        return 1;
    return n <= CUDA__IDENTIFY_TWO_TILES_MAX ? 2 : 4;
}

static inline struct cuda__identify_shape cuda__identify_shape_of(int64_t n, int tiles)
{
    int width = CUDA__IDENTIFY_TILE * tiles;
    return {n, (n + width - 1) / width, width};
}

template <typename T>
static __host__ __device__ unsigned char *cuda__identify_lay_out(cuda__identify_space<T> &space,
                                                                 unsigned char *at,
                                                                 const cuda__identify_shape &shape)
{
    auto take = [&at](size_t bytes) {
        unsigned char *from = at;
        at += (bytes + 255) / 256 * 256;
        return from;
    };
    size_t lines = (size_t)(shape.strips * shape.n) * sizeof(T);
    space.columns = (T *)take(lines);
    space.rows = (T *)take(lines);
    space.pairs = (cuda__identify_pair *)take((size_t)shape.pairs() * sizeof *space.pairs);
    return at;
}

template <typename T>
static __host__ __device__ size_t cuda__identify_matrix_bytes(const cuda__identify_shape &shape)
{
    cuda__identify_space<T> space;
    unsigned char *none = nullptr;
    return (size_t)(cuda__identify_lay_out(space, none, shape) - none);
}

template <typename T>
static __device__ __forceinline__ cuda__identify_space<T>
cuda__identify_space_of(const cuda_identification &task, const cuda__identify_shape &shape,
                        int64_t k)
{
    cuda__identify_space<T> space;
    unsigned char *scratch = (unsigned char *)task.scratch;
    cuda__identify_lay_out(space, scratch + k * cuda__identify_matrix_bytes<T>(shape), shape);
    return space;
}

/* Matrix k of all sets. */
template <typename T>
static __device__ __forceinline__ const T *cuda__identify_matrix(const cuda_identification &task,
                                                                 int64_t k)
{
    return (const T *)task.a.at + k / task.count * task.set_step + k % task.count * task.a.step;
}

/* Its answer. */
static __device__ __forceinline__ struct cuda_identity *
cuda__identify_to(const cuda_identification &task, int64_t k)
{
    return task.to + k / task.count * task.to_step + k % task.count;
}

template <typename T>
static __device__ __forceinline__ T cuda__identify_factor(const cuda_identification &task,
                                                          int64_t k)
{
    return task.factors ? (T)task.factors[2 * (k % task.count)] : T(1);
}

/* ---- Pairs of tiles ---- */

/* The kinds of sums: warp w adds up kind w. */
enum {
    CUDA__IDENTIFY_COLUMNS_OF_T,
    CUDA__IDENTIFY_ROWS_OF_T,
    CUDA__IDENTIFY_COLUMNS_OF_U,
    CUDA__IDENTIFY_ROWS_OF_U
};

static_assert(CUDA__IDENTIFY_ROWS_OF_U + 1 == CUDA__IDENTIFY_WARPS, "a warp for each kind");

/* What each warp has of the lines of T and U, by the kinds. */
template <typename T> struct cuda__identify_shares {
    T of[CUDA__IDENTIFY_WARPS][CUDA__IDENTIFY_WARPS][CUDA__IDENTIFY_TILE];
};

template <typename T, int Tiles> struct cuda__identify_memory {
    T t[CUDA__IDENTIFY_TILE][CUDA__IDENTIFY_TILE + 1],
        u[CUDA__IDENTIFY_TILE][CUDA__IDENTIFY_TILE + 1];
    /* Of two pairs in turn: a warp may be one ahead of another. */
    cuda__identify_shares<T> shares[Tiles > 1 ? 2 : 1];
    double squares[CUDA__IDENTIFY_WARPS];
    uint32_t parts[CUDA__IDENTIFY_WARPS];
};

/* A warp's rows of a tile, and its columns: `warp`, warp + 4, ... */
template <typename T> struct cuda__identify_reader {
    const T *a;
    int64_t n, stride;
    T factor;
    int lane, warp;
    uint32_t parts;

    /* Reads the rows of the tile at (top, left), a column a lane. */
    __device__ __forceinline__ void read(int64_t top, int64_t left, T *x) const
    {
        const int64_t i = top + warp, j = left + lane;
        const T *from = a + i * stride + j;
        const int line = (int)stride; /* an address takes one instruction then */
        if (top + CUDA__IDENTIFY_TILE <= n && left + CUDA__IDENTIFY_TILE <= n) {
#pragma unroll
            for (int r = 0; r < CUDA__IDENTIFY_EACH; r++)
                x[r] = cuda__load_stream(from + (int64_t)(CUDA__IDENTIFY_WARPS * r) * line);
        } else {
#pragma unroll
            for (int r = 0; r < CUDA__IDENTIFY_EACH; r++)
                x[r] = j < n && i + CUDA__IDENTIFY_WARPS * r < n
                           ? cuda__load_stream(from + (int64_t)(CUDA__IDENTIFY_WARPS * r) * line)
                           : T(0);
        }
    }

    /* Keeps what was read there, learns which parts it lies in, and adds up the column: magnitudes
     * to *share, squares are returned. */
    __device__ __forceinline__ double take(int64_t top, int64_t left, T *x,
                                           T (*tile)[CUDA__IDENTIFY_TILE + 1], T *share)
    {
        T sum = 0, square = 0;
        if (factor != T(1)) {
#pragma unroll
            for (int r = 0; r < CUDA__IDENTIFY_EACH; r++)
                x[r] *= factor;
        }
#pragma unroll
        for (int r = 0; r < CUDA__IDENTIFY_EACH; r++) {
            tile[warp + CUDA__IDENTIFY_WARPS * r][lane] = x[r];
            sum += fabs(x[r]);
            square = fma(x[r], x[r], square);
        }
        *share = sum;
        if (!(sum <= cuda__real<T>::largest))
            find_not_finite(x);
        if (!(sum == 0))
            look(top, left, x);
        return (double)square;
    }

    /* A sum of numbers may overflow. */
    __device__ __forceinline__ void find_not_finite(const T *x)
    {
#pragma unroll
        for (int r = 0; r < CUDA__IDENTIFY_EACH; r++)
            parts |= fabs(x[r]) <= cuda__real<T>::largest ? 0 : CUDA_PART_NOT_FINITE;
    }

    /* Which parts a column other than zeros lies in. */
    __device__ __forceinline__ void look(int64_t top, int64_t left, const T *x)
    {
        if (top + 2 * CUDA__IDENTIFY_TILE <= left) {
            parts |= CUDA_PART_ABOVE | CUDA_PART_OFF_BAND;
            return;
        }
        if (left + 2 * CUDA__IDENTIFY_TILE <= top) {
            parts |= CUDA_PART_BELOW | CUDA_PART_OFF_BAND;
            return;
        }
        const int first = (int)(top + warp - (left + lane)); /* rows from the diagonal to x[0] */
#pragma unroll
        for (int r = 0; r < CUDA__IDENTIFY_EACH; r++) {
            const int below = first + CUDA__IDENTIFY_WARPS * r;
            const uint32_t part = (below < 0   ? CUDA_PART_ABOVE
                                   : below > 0 ? CUDA_PART_BELOW
                                               : 0) |
                                  (below < -1 || below > 1 ? CUDA_PART_OFF_BAND : 0);
            parts |= x[r] != 0 ? part : 0;
        }
    }

    /* Adds up the warp's columns of the rows `lane` of T and U, and compares T's with the column of
     * U that it must equal if A is symmetric. */
    template <int Tiles>
    __device__ __forceinline__ void compare(const cuda__identify_memory<T, Tiles> &held,
                                            cuda__identify_shares<T> &shares)
    {
        T of_t = 0, of_u = 0;
        bool differs = false;
#pragma unroll
        for (int c = 0; c < CUDA__IDENTIFY_EACH; c++) {
            const int j = warp + CUDA__IDENTIFY_WARPS * c;
            const T x = held.t[lane][j];
            of_t += fabs(x);
            of_u += fabs(held.u[lane][j]);
            differs = differs || x != held.u[j][lane];
        }
        parts |= differs ? CUDA_PART_ASYMMETRIC : 0;
        shares.of[CUDA__IDENTIFY_ROWS_OF_T][warp][lane] = of_t;
        shares.of[CUDA__IDENTIFY_ROWS_OF_U][warp][lane] = of_u;
    }
};

/* Strip I of rows and J of columns, I <= J, of pair number `index`. */
static __device__ __forceinline__ void cuda__identify_find_pair(int index, int *row, int *column)
{
    int j = (int)((sqrtf(8 * (float)index + 1) - 1) / 2);
    /* From pair 10,619,135 on that may be one next to it. */
    j -= j * (j + 1) / 2 > index;
    j += (j + 1) * (j + 2) / 2 <= index;
    *column = j;
    *row = index - j * (j + 1) / 2;
}

/* What a warp has found besides the sums. */
template <typename T, int Tiles>
static __device__ __forceinline__ void
cuda__identify_keep_rest(cuda__identify_memory<T, Tiles> &held, double squares, uint32_t parts,
                         int warp, int lane)
{
    for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2)
        squares += __shfl_xor_sync(CUDA__ALL, squares, reach);
    parts = __reduce_or_sync(CUDA__ALL, parts);
    if (lane == 0) {
        held.squares[warp] = squares;
        held.parts[warp] = parts;
    }
}

/* What all warps have, and of the matrix that nothing is known yet; the first thread's work. */
template <typename T, int Tiles>
static __device__ __forceinline__ void
cuda__identify_tell_pair(const cuda__identify_memory<T, Tiles> &held,
                         const cuda__identify_space<T> &space, struct cuda_identity *matrix)
{
    struct cuda__identify_pair pair = {0, 0};
    for (int w = 0; w < CUDA__IDENTIFY_WARPS; w++) {
        pair.squares += held.squares[w];
        pair.parts |= held.parts[w];
    }
    space.pairs[blockIdx.x] = pair;
    if (blockIdx.x == 0)
        *matrix = {0, 0, 0, 0, HUGE_VAL, 1, CUDA_NO_LINE, CUDA_NO_LINE, 0};
}

/* Blocks that a multiprocessor can hold at least. */
template <typename T, int Tiles> static constexpr int cuda__identify_blocks()
{
    if (sizeof(T) == sizeof(float))
        return Tiles == 1 ? 12 : 8;
    return Tiles == 1 ? 8 : 6;
}

/* A strip is `Tiles` tiles wide. */
template <typename T, int Tiles>
static __global__ void __launch_bounds__(CUDA__IDENTIFY_WARPS *CUDA__WARP,
                                         cuda__identify_blocks<T, Tiles>())
    cuda__identify_pairs_kernel(const cuda_identification task, const cuda__identify_shape shape)
{
    __shared__ cuda__identify_memory<T, Tiles> held;
    const int lane = (int)threadIdx.x % CUDA__WARP, warp = (int)threadIdx.x / CUDA__WARP;
    const int64_t k = blockIdx.y;
    int strip_row, strip_column;
    cuda__identify_find_pair((int)blockIdx.x, &strip_row, &strip_column);
    const bool is_diagonal = strip_row == strip_column;
    const cuda__identify_space<T> space = cuda__identify_space_of<T>(task, shape, k);
    cuda__wait_for_previous(); /* and so does what is behind this kernel */
    cuda__release_next();
    cuda__identify_reader<T> reader = {cuda__identify_matrix<T>(task, k),
                                       shape.n,
                                       task.a.stride,
                                       cuda__identify_factor<T>(task, k),
                                       lane,
                                       warp,
                                       0};
    /* T's columns and U's rows go on with the next row of tiles, T's rows and U's columns with the
     * next tile of the row. In a strip's pair with itself what U has is counted by T alone. */
    const bool is_column =
        warp == CUDA__IDENTIFY_COLUMNS_OF_T || warp == CUDA__IDENTIFY_COLUMNS_OF_U;
    const bool goes_down = warp == CUDA__IDENTIFY_COLUMNS_OF_T || warp == CUDA__IDENTIFY_ROWS_OF_U;
    const bool counts =
        !is_diagonal || warp == CUDA__IDENTIFY_COLUMNS_OF_T || warp == CUDA__IDENTIFY_ROWS_OF_T;
    T *const to =
        (is_column ? space.columns : space.rows) + (goes_down ? strip_row : strip_column) * shape.n;
    T sums[Tiles] = {}; /* down the strip */
    double squares = 0;
#pragma unroll 1
    for (int r = 0; r < Tiles; r++) {
        const int64_t top = (int64_t)strip_row * shape.width + r * CUDA__IDENTIFY_TILE;
        T along = 0;
#pragma unroll
        for (int c = 0; c < Tiles; c++) {
            const int64_t left = (int64_t)strip_column * shape.width + c * CUDA__IDENTIFY_TILE;
            cuda__identify_shares<T> &shares = held.shares[Tiles > 1 ? c % 2 : 0];
            T x[CUDA__IDENTIFY_EACH], y[CUDA__IDENTIFY_EACH];
            reader.read(top, left, x);
            reader.read(left, top, y);
            squares += reader.take(top, left, x, held.t,
                                   &shares.of[CUDA__IDENTIFY_COLUMNS_OF_T][warp][lane]);
            /* On the diagonal, of what another tile counts. */
            const double others = reader.take(left, top, y, held.u,
                                              &shares.of[CUDA__IDENTIFY_COLUMNS_OF_U][warp][lane]);
            squares += is_diagonal ? 0 : others;
            __syncthreads();
            reader.compare(held, shares);
            __syncthreads();
            const T(*share)[CUDA__IDENTIFY_TILE] = shares.of[warp];
            const T sum = (share[0][lane] + share[1][lane]) + (share[2][lane] + share[3][lane]);
            sums[c] += goes_down ? sum : T(0);
            along += sum;
        }
        if (!goes_down && counts && top + lane < shape.n)
            to[top + lane] = along;
    }
#pragma unroll
    for (int c = 0; c < Tiles; c++) {
        const int64_t j = (int64_t)strip_column * shape.width + c * CUDA__IDENTIFY_TILE + lane;
        if (goes_down && counts && j < shape.n)
            to[j] = sums[c];
    }
    cuda__identify_keep_rest(held, squares, reader.parts, warp, lane);
    __syncthreads();
    if (threadIdx.x == 0)
        cuda__identify_tell_pair(held, space, cuda__identify_to(task, k));
}

#define CUDA__IDENTIFY_ADDERS 8 /* sums of a column's lines; warps of a block */
#define CUDA__IDENTIFY_ADDING (CUDA__IDENTIFY_ADDERS * CUDA__WARP)
#define CUDA__IDENTIFY_BLOCKS 3 /* of a multiprocessor, at least: a batch wants them */

/* ---- What a group reports ---- */

/* What a column and its row have; of a lane. */
struct cuda__identify_line {
    double column, row, dominance; /* sums of magnitudes; the row's others by its own */
    double min;                    /* of the two sums */
    int32_t zero_column, zero_row; /* its number, from 1, where it holds zeros alone */
    uint32_t parts;
    int32_t dominant;
};

static __device__ __forceinline__ cuda__identify_line cuda__identify_no_line()
{
    return {0, 0, 0, HUGE_VAL, CUDA_NO_LINE, CUDA_NO_LINE, 0, 1};
}

/* The largest of the warp's numbers, none of them below 0, as its bits: those of such numbers have
 * their order, and NaN is above them all. */
static __device__ __forceinline__ unsigned long long cuda__identify_largest(double x)
{
    const unsigned long long bits = (unsigned long long)__double_as_longlong(x);
    const unsigned high = (unsigned)(bits >> 32);
    const unsigned top = __reduce_max_sync(CUDA__ALL, high);
    const unsigned low = __reduce_max_sync(CUDA__ALL, high == top ? (unsigned)bits : 0u);
    return (unsigned long long)top << 32 | low;
}

static __device__ __forceinline__ unsigned long long cuda__identify_min(double x)
{
    const unsigned long long bits = (unsigned long long)__double_as_longlong(x);
    const unsigned high = (unsigned)(bits >> 32);
    const unsigned top = __reduce_min_sync(CUDA__ALL, high);
    const unsigned low = __reduce_min_sync(CUDA__ALL, high == top ? (unsigned)bits : ~0u);
    return (unsigned long long)top << 32 | low;
}

/* The matrix learns what the lines of a group have; of `Warps` warps that have the same lines each
 * reports every so many things, from `warp` on. Warp-wide. */
template <int Warps>
static __device__ __forceinline__ void cuda__identify_tell(struct cuda_identity *matrix,
                                                           const cuda__identify_line &line,
                                                           int warp, int lane)
{
    auto is_own = [=](int thing) { return thing % Warps == warp; };
    auto tell_largest = [=](double *known, double x) {
        const unsigned long long bits = cuda__identify_largest(x);
        if (lane == 0)
            atomicMax((unsigned long long *)known, bits);
    };
    auto tell_first = [=](int32_t *known, int32_t number) {
        const int32_t first = __reduce_min_sync(CUDA__ALL, number);
        if (lane == 0 && first != CUDA_NO_LINE)
            atomicMin(known, first);
    };
    if (is_own(0))
        tell_largest(&matrix->norm_1, line.column);
    if (is_own(1))
        tell_largest(&matrix->norm_inf, line.row);
    if (is_own(2))
        tell_largest(&matrix->dominance, line.dominance);
    if (is_own(3)) {
        const unsigned long long least = cuda__identify_min(line.min);
        if (lane == 0)
            atomicMin((unsigned long long *)&matrix->min, least);
    }
    if (is_own(4))
        tell_first(&matrix->zero_column, line.zero_column);
    if (is_own(5))
        tell_first(&matrix->zero_row, line.zero_row);
    if (is_own(6)) {
        if (!__all_sync(CUDA__ALL, line.dominant) && lane == 0)
            atomicMin(&matrix->dominant, 0);
    }
    if (is_own(7)) {
        const uint32_t parts = __reduce_or_sync(CUDA__ALL, line.parts);
        if (lane == 0 && parts)
            atomicOr(&matrix->parts, parts);
    }
}

/* ---- Strips ---- */

/* The second kernel's shared memory, of a group: sums of every CUDA__IDENTIFY_ADDERS-th line. */
struct cuda__identify_sums {
    double columns[CUDA__IDENTIFY_ADDERS][CUDA__WARP], rows[CUDA__IDENTIFY_ADDERS][CUDA__WARP];
};

/* One of `Warps` warps that add up a group's lines. */
template <typename T, int Warps> struct cuda__identify_adder {
    static constexpr int each = CUDA__IDENTIFY_ADDERS / Warps; /* sums of a warp */
    static constexpr int rounds = Warps > 1 ? Warps / 2 : 1;   /* of eight lines, read together */
    const cuda__identify_shape &shape;
    const cuda__identify_space<T> &space;
    int64_t group;
    int warp, lane;

    __device__ __forceinline__ void add_lines(cuda__identify_sums &sums) const
    {
        const int64_t i = group * CUDA__WARP + lane, j = i < shape.n ? i : 0;
        const int64_t last = shape.strips - 1;
        double column[each] = {}, row[each] = {};
        for (int64_t first = warp; first <= last; first += rounds * CUDA__IDENTIFY_ADDERS) {
            /* What there is no line for reads the last: reads that depend on nothing are put on
             * their way together. */
#pragma unroll
            for (int r = 0; r < rounds; r++) {
#pragma unroll
                for (int e = 0; e < each; e++) {
                    const int64_t line = first + r * CUDA__IDENTIFY_ADDERS + e * Warps;
                    const int64_t at = (line < last ? line : last) * shape.n + j;
                    const T of_column = space.columns[at], of_row = space.rows[at];
                    column[e] += line <= last ? (double)of_column : 0;
                    row[e] += line <= last ? (double)of_row : 0;
                }
            }
        }
#pragma unroll
        for (int e = 0; e < each; e++) {
            sums.columns[warp + e * Warps][lane] = column[e];
            sums.rows[warp + e * Warps][lane] = row[e];
        }
    }
};

/* A group's entry of the diagonal, a lane each. */
template <typename T>
static __device__ __forceinline__ T cuda__identify_own(const cuda_identification &task, int64_t k,
                                                       int64_t j)
{
    if (j >= task.n)
        return 0;
    return cuda__identify_matrix<T>(task, k)[j * (task.a.stride + 1)] *
           cuda__identify_factor<T>(task, k);
}

/* Column and row `lane` of a group, from what has been added up and the diagonal. */
template <typename T>
static __device__ __forceinline__ cuda__identify_line
cuda__identify_line_of(const cuda__identify_shape &shape, const cuda__identify_sums &sums, T own,
                       int64_t group, int lane)
{
    const int64_t j = group * CUDA__WARP + lane;
    cuda__identify_line line = cuda__identify_no_line();
    if (j >= shape.n)
        return line;
    for (int w = 0; w < CUDA__IDENTIFY_ADDERS; w++) {
        line.column += sums.columns[w][lane];
        line.row += sums.rows[w][lane];
    }
    const double size = fabs((double)own), others = line.row - size;
    line.dominance = size > 0 ? fmax(others / size, 0.0) : HUGE_VAL;
    line.dominant = others < size;
    line.min = fmin(line.column, line.row);
    line.zero_column = line.column == 0 ? (int32_t)j + 1 : CUDA_NO_LINE;
    line.zero_row = line.row == 0 ? (int32_t)j + 1 : CUDA_NO_LINE;
    line.parts = own > 0 ? 0 : CUDA_PART_NOT_POSITIVE;
    return line;
}

/* What all pairs have; the threads of a block. */
template <typename T>
static __device__ __forceinline__ void
cuda__identify_add_pairs(struct cuda_identity *matrix, const cuda__identify_shape &shape,
                         const cuda__identify_space<T> &space)
{
    __shared__ double squares_of[CUDA__IDENTIFY_ADDERS];
    const int64_t pairs = shape.pairs();
    double squares = 0;
    uint32_t parts = 0;
    for (int64_t first = threadIdx.x; first < pairs; first += 4 * CUDA__IDENTIFY_ADDING) {
#pragma unroll
        for (int b = 0; b < 4; b++) {
            const int64_t i = first + b * CUDA__IDENTIFY_ADDING;
            const struct cuda__identify_pair pair =
                i < pairs ? space.pairs[i] : cuda__identify_pair{0, 0};
            squares += pair.squares;
            parts |= pair.parts;
        }
    }
    for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2)
        squares += __shfl_xor_sync(CUDA__ALL, squares, reach);
    parts = __reduce_or_sync(CUDA__ALL, parts);
    if (threadIdx.x % CUDA__WARP == 0) {
        squares_of[threadIdx.x / CUDA__WARP] = squares;
        atomicOr(&matrix->parts, parts);
    }
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int w = 1; w < CUDA__IDENTIFY_ADDERS; w++)
        squares += squares_of[w];
    matrix->frobenius = sqrt(squares);
}

/* A group has `Warps` warps, a block behind the first as many groups as it has warps for. */
template <typename T, int Warps>
static __global__ void __launch_bounds__(CUDA__IDENTIFY_ADDING, CUDA__IDENTIFY_BLOCKS)
    cuda__identify_strips_kernel(const cuda_identification task, const cuda__identify_shape shape)
{
    constexpr int held = CUDA__IDENTIFY_ADDERS / Warps;
    __shared__ cuda__identify_sums all[held];
    const int lane = (int)threadIdx.x % CUDA__WARP, place = (int)threadIdx.x / CUDA__WARP;
    const int64_t k = blockIdx.y, group = ((int64_t)blockIdx.x - 1) * held + place / Warps;
    const bool adds_pairs = blockIdx.x == 0, is_group = !adds_pairs && group < shape.groups();
    cuda__identify_space<T> space = cuda__identify_space_of<T>(task, shape, k);
    struct cuda_identity *matrix = cuda__identify_to(task, k);
    cuda__identify_sums &sums = all[place / Warps];
    /* A and its factors were there before the first kernel released this one; the sums were not. */
    const T own = is_group ? cuda__identify_own<T>(task, k, group * CUDA__WARP + lane) : T(0);
    cuda__wait_for_previous();
    if (adds_pairs) {
        cuda__identify_add_pairs(matrix, shape, space);
        return;
    }
    if (is_group) {
        const cuda__identify_adder<T, Warps> adder = {shape, space, group, place % Warps, lane};
        adder.add_lines(sums);
    }
    __syncthreads();
    if (is_group)
        cuda__identify_tell<Warps>(matrix, cuda__identify_line_of<T>(shape, sums, own, group, lane),
                                   place % Warps, lane);
}

size_t cuda_identify_bytes(enum precision precision, int64_t n, int64_t matrices)
{
    struct cuda__identify_shape shape =
        cuda__identify_shape_of(n, cuda__identify_tiles(precision, n));
    size_t one = precision == PRECISION_FP32 ? cuda__identify_matrix_bytes<float>(shape)
                                             : cuda__identify_matrix_bytes<double>(shape);
    return one * (size_t)matrices;
}

/* The second kernel, with as few warps for a group as there are groups for. */
template <typename T, int Warps>
static cudaError_t cuda__identify_add_up(const struct cuda_identification &task,
                                         const cuda__identify_shape &shape, cudaStream_t stream)
{
    constexpr int held = CUDA__IDENTIFY_ADDERS / Warps;
    const int64_t all = task.count * task.sets, groups = shape.groups();
    if constexpr (Warps < CUDA__IDENTIFY_ADDERS) {
        if (all * groups * Warps < CUDA__IDENTIFY_ENOUGH)
            return cuda__identify_add_up<T, 2 * Warps>(task, shape, stream);
    }
    return cuda__follow(cuda__identify_strips_kernel<T, Warps>,
                        dim3((unsigned)(1 + (groups + held - 1) / held), (unsigned)all),
                        CUDA__IDENTIFY_ADDING, 0, cuda__overlaps(), stream, task, shape);
}

template <typename T, int Tiles>
static cudaError_t cuda__identify_start(const struct cuda_identification &task, cudaStream_t stream)
{
    struct cuda__identify_shape shape = cuda__identify_shape_of(task.n, Tiles);
    cudaError_t status =
        cuda__follow(cuda__identify_pairs_kernel<T, Tiles>,
                     dim3((unsigned)shape.pairs(), (unsigned)(task.count * task.sets)),
                     CUDA__IDENTIFY_WARPS * CUDA__WARP, 0, cuda__overlaps(), stream, task, shape);
    if (status == cudaSuccess)
        status = cuda__identify_add_up<T, 1>(task, shape, stream);
    return status;
}

template <typename T>
static cudaError_t cuda__identify_start(const struct cuda_identification &task, int tiles,
                                        cudaStream_t stream)
{
    switch (tiles) {
    case 1:
        return cuda__identify_start<T, 1>(task, stream);
    case 2:
        return cuda__identify_start<T, 2>(task, stream);
    default:
        return cuda__identify_start<T, 4>(task, stream);
    }
}

cudaError_t cuda_identify_by(const struct cuda_identification *task, int tiles, cudaStream_t stream)
{
    if (task->n < 1 || task->a.stride > INT32_MAX || task->count < 0 || task->sets < 1 ||
        task->count > CUDA_IDENTIFY_MATRICES_MAX / task->sets ||
        (tiles != 1 && tiles != 2 && tiles != 4) ||
        tiles < cuda__identify_tiles(task->precision, task->n))
        return cudaErrorInvalidValue;
    if (task->count == 0)
        return cudaSuccess;
    return task->precision == PRECISION_FP32 ? cuda__identify_start<float>(*task, tiles, stream)
                                             : cuda__identify_start<double>(*task, tiles, stream);
}

cudaError_t cuda_identify(const struct cuda_identification *task, cudaStream_t stream)
{
    return cuda_identify_by(task, cuda__identify_tiles(task->precision, task->n), stream);
}
