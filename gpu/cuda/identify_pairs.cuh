/* gpu/cuda/identify_pairs.cuh: the first kernel of identify.cu, and the scratch that it leaves for
 * the second. Device code; a matrix a blockIdx.y, a pair of strips a blockIdx.x.
 *
 * Cost: reads A once, as what the second-level cache may let go first: a batch would push the sums
 * out. Writes two lines of n sums for each strip.
 */
#ifndef GPU_CUDA_IDENTIFY_PAIRS_CUH
#define GPU_CUDA_IDENTIFY_PAIRS_CUH

#include "gpu/cuda/identify.h"
#include "gpu/cuda/kernels.h"
#include "gpu/cuda/ptx.cuh"
#include "gpu/cuda/stage.cuh"

#define CUDA__IDENTIFY_TILE CUDA__WARP

/* What a pair of strips has beside the sums. */
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

/* Warps of a block of the first kernel: 1, 2 or 4. More of them have fewer sums to write, fewer
 * have more blocks under way, which one small matrix wants; what is fastest was measured. */
static inline int cuda__identify_warps(enum precision precision, int64_t n)
{
    return n <= (precision == PRECISION_FP64 ? 1024 : 2048) ? 1 : n <= 4096 ? 2 : 4;
}

static inline struct cuda__identify_shape cuda__identify_shape_of(enum precision precision,
                                                                  int64_t n)
{
    int width = CUDA__IDENTIFY_TILE * cuda__identify_warps(precision, n);
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

template <typename T, int Warps> struct cuda__identify_memory {
    T tile[Warps][CUDA__IDENTIFY_TILE][CUDA__IDENTIFY_TILE + 1];
    T columns[Warps][Warps * CUDA__IDENTIFY_TILE]; /* of T, by the warps' rows of tiles */
    T rows[Warps][Warps * CUDA__IDENTIFY_TILE];    /* of U, by the warps' columns of tiles */
    double squares[Warps];
    uint32_t parts[Warps];
};

/* One warp's walk along a row of tiles, and down the column opposite. */
template <typename T, int Warps> struct cuda__identify_walk {
    const T *a;
    int64_t n, stride;
    T factor;
    int lane;
    T (*tile)[CUDA__IDENTIFY_TILE + 1];
    uint32_t parts;
    double squares;

    /* Reads the tile at (top, left), a column a lane. */
    __device__ __forceinline__ void read(int64_t top, int64_t left, T *x) const
    {
        int64_t j = left + lane;
        const T *from = a + top * stride + j;
        int line = (int)stride; /* an address takes one instruction then */
        bool inside = j < n,
             whole = top + CUDA__IDENTIFY_TILE <= n && left + CUDA__IDENTIFY_TILE <= n;
        if (whole) {
#pragma unroll
            for (int i = 0; i < CUDA__IDENTIFY_TILE; i++)
                x[i] = cuda__load_stream(from + (int64_t)i * line);
        } else {
#pragma unroll
            for (int i = 0; i < CUDA__IDENTIFY_TILE; i++)
                x[i] = inside && top + i < n ? cuda__load_stream(from + (int64_t)i * line) : T(0);
        }
    }

    /* Takes what is to be known of the tile that was read there. Returns the column's sum: of four
     * sums, since an addition waits for the one before it. */
    __device__ __forceinline__ T take(int64_t top, int64_t left, T *x)
    {
        T sums[4] = {}, square[4] = {};
        if (factor != T(1)) {
#pragma unroll
            for (int i = 0; i < CUDA__IDENTIFY_TILE; i++)
                x[i] *= factor;
        }
#pragma unroll
        for (int i = 0; i < CUDA__IDENTIFY_TILE; i++) {
            sums[i % 4] += fabs(x[i]);
            square[i % 4] = fma(x[i], x[i], square[i % 4]);
        }
        const T sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        squares += (double)((square[0] + square[1]) + (square[2] + square[3]));
        if (!(sum <= cuda__real<T>::largest))
            find_not_finite(x);
        if (!(sum == 0))
            look(top, left, x);
        return sum;
    }

    /* A sum of numbers may overflow. */
    __device__ __forceinline__ void find_not_finite(const T *x)
    {
#pragma unroll
        for (int i = 0; i < CUDA__IDENTIFY_TILE; i++)
            parts |= fabs(x[i]) <= cuda__real<T>::largest ? 0 : CUDA_PART_NOT_FINITE;
    }

    /* Rows of a tile before row `end`, a bit each. */
    static __device__ __forceinline__ uint32_t rows_before(int end)
    {
        return end <= 0 ? 0 : end >= CUDA__IDENTIFY_TILE ? ~0u : (1u << end) - 1;
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
        const int late = (int)(left + lane - top); /* the row of the diagonal in this column */
        uint32_t filled = 0;
#pragma unroll
        for (int i = 0; i < CUDA__IDENTIFY_TILE; i++)
            filled |= x[i] != 0 ? 1u << i : 0;
        const uint32_t above = rows_before(late), below = ~rows_before(late + 1);
        const uint32_t off_band = rows_before(late - 1) | ~rows_before(late + 2);
        parts |= (filled & above ? CUDA_PART_ABOVE : 0) | (filled & below ? CUDA_PART_BELOW : 0) |
                 (filled & off_band ? CUDA_PART_OFF_BAND : 0);
    }

    /* The warp's tile becomes x. */
    __device__ __forceinline__ void keep(const T *x)
    {
        __syncwarp();
#pragma unroll
        for (int i = 0; i < CUDA__IDENTIFY_TILE; i++)
            tile[i][lane] = x[i];
        __syncwarp();
    }

    /* The sum of the tile's row `lane`. opposite: the column that it must equal, or NULL. */
    __device__ __forceinline__ T row(const T *opposite)
    {
        T sums[4] = {};
        bool differs = false;
#pragma unroll
        for (int j = 0; j < CUDA__IDENTIFY_TILE; j++) {
            T x = tile[lane][j];
            sums[j % 4] += fabs(x);
            if (opposite)
                differs = differs || x != opposite[j];
        }
        parts |= differs ? CUDA_PART_ASYMMETRIC : 0;
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
};

/* Strip I of rows and J of columns, I <= J, of pair number `index`. */
static __device__ __forceinline__ void cuda__identify_find_pair(int index, int *row, int *column)
{
    int j = (int)((sqrtf(8 * (float)index + 1) - 1) / 2); /* or one beside it */
    j -= j * (j + 1) / 2 > index;
    j += (j + 1) * (j + 2) / 2 <= index;
    *column = j;
    *row = index - j * (j + 1) / 2;
}

/* What the warps have found beside the sums, and of the matrix that nothing is known yet; the first
 * thread's work. */
template <typename T, int Warps>
static __device__ __forceinline__ void
cuda__identify_tell_pair(const cuda__identify_memory<T, Warps> &held,
                         const cuda__identify_space<T> &space, struct cuda_identity *matrix)
{
    struct cuda__identify_pair pair = {0, 0};
    for (int w = 0; w < Warps; w++) {
        pair.squares += held.squares[w];
        pair.parts |= held.parts[w];
    }
    space.pairs[blockIdx.x] = pair;
    if (blockIdx.x == 0)
        *matrix = {0, 0, 0, 0, HUGE_VAL, 1, CUDA_NO_LINE, CUDA_NO_LINE, 0};
}

/* Blocks that a multiprocessor can hold at least: with a warp each in FP32 as many as it may. */
template <typename T, int Warps> static constexpr int cuda__identify_blocks()
{
    return Warps == 1 && sizeof(T) == sizeof(float) ? 32 : 1;
}

template <typename T, int Warps>
static __global__ void __launch_bounds__(Warps *CUDA__WARP, cuda__identify_blocks<T, Warps>())
    cuda__identify_pairs_kernel(const cuda_identification task, const cuda__identify_shape shape)
{
    typedef cuda__identify_memory<T, Warps> memory;
    /* Are both tiles on their way at once? In FP32 the registers are worth more. */
    constexpr bool ahead = sizeof(T) == sizeof(double);
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    memory &held = *(memory *)cuda__memory;
    int lane = (int)threadIdx.x % CUDA__WARP, warp = (int)threadIdx.x / CUDA__WARP;
    int64_t k = blockIdx.y;
    int strip_row, strip_column;
    cuda__identify_find_pair((int)blockIdx.x, &strip_row, &strip_column);
    bool is_diagonal = strip_row == strip_column;
    cuda__wait_for_previous(); /* and so does what is behind this kernel */
    cuda__release_next();
    cuda__identify_walk<T, Warps> walk = {cuda__identify_matrix<T>(task, k),
                                          shape.n,
                                          task.a.stride,
                                          cuda__identify_factor<T>(task, k),
                                          lane,
                                          held.tile[warp],
                                          0,
                                          0};
    int64_t top = (int64_t)strip_row * shape.width + warp * CUDA__IDENTIFY_TILE;
    T own_rows = 0, own_columns = 0, x[CUDA__IDENTIFY_TILE], y[CUDA__IDENTIFY_TILE];
#pragma unroll 1
    for (int c = 0; c < Warps; c++) {
        int64_t left = (int64_t)strip_column * shape.width + c * CUDA__IDENTIFY_TILE;
        walk.read(top, left, x);
        if (ahead)
            walk.read(left, top, y);
        held.columns[warp][c * CUDA__IDENTIFY_TILE + lane] = walk.take(top, left, x);
        walk.keep(x);
        if (!ahead)
            walk.read(left, top, y);
        double squares = walk.squares;
        T column = walk.take(left, top, y); /* on the diagonal, of what another tile counts */
        walk.squares = is_diagonal ? squares : walk.squares;
        own_columns += column;
        own_rows += walk.row(y);
        if (is_diagonal)
            continue;
        walk.keep(y);
        held.rows[warp][c * CUDA__IDENTIFY_TILE + lane] = walk.row(nullptr);
    }
    cuda__identify_space<T> space = cuda__identify_space_of<T>(task, shape, k);
    for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2) {
        walk.squares += __shfl_xor_sync(CUDA__ALL, walk.squares, reach);
        walk.parts |= __shfl_xor_sync(CUDA__ALL, walk.parts, reach);
    }
    held.squares[warp] = walk.squares;
    held.parts[warp] = walk.parts;
    __syncthreads();
    int64_t i = top + lane, j = (int64_t)strip_column * shape.width + threadIdx.x;
    T columns = 0, rows = 0;
    for (int w = 0; w < Warps; w++) {
        columns += held.columns[w][threadIdx.x];
        rows += is_diagonal ? T(0) : held.rows[w][threadIdx.x];
    }
    if (j < shape.n)
        space.columns[strip_row * shape.n + j] = columns;
    if (i < shape.n)
        space.rows[strip_column * shape.n + i] = own_rows;
    if (!is_diagonal && i < shape.n)
        space.columns[strip_column * shape.n + i] = own_columns;
    if (!is_diagonal && j < shape.n)
        space.rows[strip_row * shape.n + j] = rows;
    if (threadIdx.x == 0)
        cuda__identify_tell_pair(held, space, cuda__identify_to(task, k));
}

#endif
