/* gpu/cuda/structured/identify_pairs.cuh: the first kernel of identify.cu, and the scratch that it
 * leaves for the second. Device code; a matrix a blockIdx.y, a pair of strips a blockIdx.x.
 *
 * A block goes through a tile T of the one strip and the tile U opposite at a time. Four warps
 * share them: each reads every fourth row, a column a lane, and adds up what it has of each column;
 * then, from shared memory, every fourth column of the rows. Of what they have each warp adds up
 * one kind: the columns of T, its rows, the columns of U, its rows.
 *
 * Cost: reads A once, but tiles on the diagonal twice, as what the second-level cache may let go
 * first: a batch would push the sums out. Writes two lines of n sums for each strip.
 */
#ifndef GPU_CUDA_STRUCTURED_IDENTIFY_PAIRS_CUH
#define GPU_CUDA_STRUCTURED_IDENTIFY_PAIRS_CUH

#include "gpu/cuda/structured/identify.h"
#include "gpu/cuda/base/batch.h"
#include "gpu/cuda/base/ptx.cuh"
#include "gpu/cuda/base/stage.cuh"
#include "gpu/cuda/tuning/h200/structured.h"

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
    /* From pair 10,619,135 on that may be one beside it. */
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

#endif
