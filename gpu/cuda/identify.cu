/* gpu/cuda/identify.cu: see identify.h.
 *
 * Two kernels, the second of which is put on the device while the first ends. The first reads A
 * by pairs of tiles, T above the diagonal and U opposite below it, of 32 x 32 numbers: a warp sums
 * the columns of a tile as it reads them, a column a lane, and its rows from shared memory; while
 * it reads T's row there, a lane holds the column of U that the row must equal if A is symmetric. A
 * block has `Warps` rows of tiles in T and as many columns in U, and writes one line of sums for
 * each. The second kernel adds the lines up, in double, and looks for the largest sum among 32
 * columns and rows; its last block to come, for the largest among those. (The last block of the
 * first kernel could do it all: there what the fences cost is more than a launch, on an H200,
 * 2026-11-21.)
 */
#include "gpu/cuda/identify.h"

#include "gpu/cuda/launch.cuh"
#include "gpu/cuda/norm.cuh"
#include "gpu/cuda/stage.cuh"

#define IDENTIFY_TILE CUDA__WARP
#define IDENTIFY_ADDERS 8 /* warps of a block of the second kernel */
#define IDENTIFY_ADDING (IDENTIFY_ADDERS * CUDA__WARP)

/* What a pair of strips has beside the sums. */
struct cuda__identify_pair {
    double squares;
    uint32_t parts;
};

/* What 32 columns and their rows have. */
struct cuda__identify_strip {
    double column, row, dominance; /* the largest */
    double squares;                /* of the pairs that are counted with them */
    int32_t zero_column, zero_row; /* the first, from 0; INT32_MAX: none */
    uint32_t parts;
    int32_t dominant;
};

/* The scratch of one matrix. */
template <typename T> struct cuda__identify_space {
    T *columns, *rows; /* strips lines of n sums each */
    struct cuda__identify_pair *pairs;
    struct cuda__identify_strip *strips;
    uint32_t *arrived; /* blocks of the second kernel */
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
        return (n + IDENTIFY_TILE - 1) / IDENTIFY_TILE;
    }
};

/* Warps of a block of the first kernel: 1, 2 or 4. More of them have fewer sums to write, fewer
 * have more blocks under way, which one small matrix wants; what is fastest was measured. */
static int cuda__identify_warps(enum precision precision, int64_t n)
{
    const bool wide = precision == PRECISION_FP64;
    return n <= (wide ? 512 : 2048) ? 1 : n <= (wide ? 2048 : 4096) ? 2 : 4;
}

static struct cuda__identify_shape cuda__identify_shape_of(enum precision precision, int64_t n)
{
    int width = IDENTIFY_TILE * cuda__identify_warps(precision, n);
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
    space.strips = (cuda__identify_strip *)take((size_t)shape.groups() * sizeof *space.strips);
    space.arrived = (uint32_t *)take(sizeof *space.arrived);
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

template <typename T>
static __device__ __forceinline__ T cuda__identify_factor(const cuda_identification &task,
                                                          int64_t k)
{
    return task.factors ? (T)task.factors[2 * (k % task.count)] : T(1);
}

/* ---- Pairs of tiles ---- */

template <typename T, int Warps> struct cuda__identify_memory {
    T tile[Warps][IDENTIFY_TILE][IDENTIFY_TILE + 1];
    T columns[Warps][Warps * IDENTIFY_TILE]; /* of T, by the warps' rows of tiles */
    T rows[Warps][Warps * IDENTIFY_TILE];    /* of U, by the warps' columns of tiles */
    double squares[Warps];
    uint32_t parts[Warps];
};

/* One warp's walk along a row of tiles, and down the column opposite. */
template <typename T, int Warps> struct cuda__identify_walk {
    const T *a;
    int64_t n, stride;
    T factor;
    int lane;
    T (*tile)[IDENTIFY_TILE + 1];
    uint32_t parts;
    double squares;

    /* Reads the tile at (top, left), a column a lane. Returns the column's sum. */
    __device__ __forceinline__ T read(int64_t top, int64_t left, T *x)
    {
        T sum = 0, square = 0;
        int64_t j = left + lane;
        const T *from = a + top * stride + j;
        int line = (int)stride; /* an address takes one instruction then */
        bool inside = j < n, whole = top + IDENTIFY_TILE <= n && left + IDENTIFY_TILE <= n;
        if (whole) {
#pragma unroll
            for (int i = 0; i < IDENTIFY_TILE; i++)
                x[i] = from[(int64_t)i * line];
        } else {
#pragma unroll
            for (int i = 0; i < IDENTIFY_TILE; i++)
                x[i] = inside && top + i < n ? from[(int64_t)i * line] : T(0);
        }
        if (factor != T(1)) {
#pragma unroll
            for (int i = 0; i < IDENTIFY_TILE; i++)
                x[i] *= factor;
        }
#pragma unroll
        for (int i = 0; i < IDENTIFY_TILE; i++) {
            sum += fabs(x[i]);
            square = fma(x[i], x[i], square);
        }
        squares += (double)square;
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
        for (int i = 0; i < IDENTIFY_TILE; i++)
            parts |= fabs(x[i]) <= cuda__real<T>::largest ? 0 : CUDA_PART_NOT_FINITE;
    }

    /* Which parts a column other than zeros lies in. */
    __device__ __forceinline__ void look(int64_t top, int64_t left, const T *x)
    {
        if (top + 2 * IDENTIFY_TILE <= left) {
            parts |= CUDA_PART_ABOVE | CUDA_PART_OFF_BAND;
            return;
        }
        if (left + 2 * IDENTIFY_TILE <= top) {
            parts |= CUDA_PART_BELOW | CUDA_PART_OFF_BAND;
            return;
        }
        int64_t late = left + lane - top;
#pragma unroll
        for (int i = 0; i < IDENTIFY_TILE; i++) {
            int64_t right = late - i;
            uint32_t where = (right > 0 ? CUDA_PART_ABOVE : 0) | (right < 0 ? CUDA_PART_BELOW : 0) |
                             (right > 1 || right < -1 ? CUDA_PART_OFF_BAND : 0);
            parts |= x[i] != 0 ? where : 0;
        }
    }

    /* The warp's tile becomes x. */
    __device__ __forceinline__ void keep(const T *x)
    {
        __syncwarp();
#pragma unroll
        for (int i = 0; i < IDENTIFY_TILE; i++)
            tile[i][lane] = x[i];
        __syncwarp();
    }

    /* The sum of the tile's row `lane`. opposite: the column that it must equal, or NULL. */
    __device__ __forceinline__ T row(const T *opposite)
    {
        T sum = 0;
        bool differs = false;
#pragma unroll
        for (int j = 0; j < IDENTIFY_TILE; j++) {
            T x = tile[lane][j];
            sum += fabs(x);
            if (opposite)
                differs = differs || x != opposite[j];
        }
        parts |= differs ? CUDA_PART_ASYMMETRIC : 0;
        return sum;
    }
};

/* Strip I of rows and J of columns, I <= J, of pair number `index`. */
static __device__ __forceinline__ void cuda__identify_find_pair(int64_t index, int64_t *row,
                                                                int64_t *column)
{
    int64_t j = (int64_t)((sqrt(8.0 * (double)index + 1) - 1) / 2);
    j -= j * (j + 1) / 2 > index;
    j += (j + 1) * (j + 2) / 2 <= index;
    *column = j;
    *row = index - j * (j + 1) / 2;
}

template <typename T, int Warps>
static __global__ void __launch_bounds__(Warps *CUDA__WARP)
    cuda__identify_pairs_kernel(const cuda_identification task, const cuda__identify_shape shape)
{
    typedef cuda__identify_memory<T, Warps> memory;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    memory &held = *(memory *)cuda__memory;
    int lane = (int)threadIdx.x % CUDA__WARP, warp = (int)threadIdx.x / CUDA__WARP;
    int64_t k = blockIdx.y, strip_row, strip_column;
    cuda__identify_find_pair(blockIdx.x, &strip_row, &strip_column);
    bool is_diagonal = strip_row == strip_column;
    cuda__release_next();
    cuda__identify_walk<T, Warps> walk = {cuda__identify_matrix<T>(task, k),
                                          shape.n,
                                          task.a.stride,
                                          cuda__identify_factor<T>(task, k),
                                          lane,
                                          held.tile[warp],
                                          0,
                                          0};
    int64_t top = strip_row * shape.width + warp * IDENTIFY_TILE;
    T own_rows = 0, own_columns = 0, x[IDENTIFY_TILE];
#pragma unroll 1
    for (int c = 0; c < Warps; c++) {
        int64_t left = strip_column * shape.width + c * IDENTIFY_TILE;
        held.columns[warp][c * IDENTIFY_TILE + lane] = walk.read(top, left, x);
        walk.keep(x);
        double squares = walk.squares;
        T column = walk.read(left, top, x); /* on the diagonal, of what another tile counts */
        walk.squares = is_diagonal ? squares : walk.squares;
        own_columns += column;
        own_rows += walk.row(x);
        if (is_diagonal)
            continue;
        walk.keep(x);
        held.rows[warp][c * IDENTIFY_TILE + lane] = walk.row(nullptr);
    }
    cuda__identify_space<T> space = cuda__identify_space_of<T>(task, shape, k);
    for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2) {
        walk.squares += __shfl_xor_sync(CUDA__ALL, walk.squares, reach);
        walk.parts |= __shfl_xor_sync(CUDA__ALL, walk.parts, reach);
    }
    held.squares[warp] = walk.squares;
    held.parts[warp] = walk.parts;
    __syncthreads();
    int64_t i = top + lane, j = strip_column * shape.width + threadIdx.x;
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
    if (threadIdx.x > 0)
        return;
    struct cuda__identify_pair pair = {0, 0};
    for (int w = 0; w < Warps; w++) {
        pair.squares += held.squares[w];
        pair.parts |= held.parts[w];
    }
    space.pairs[blockIdx.x] = pair;
    if (blockIdx.x == 0)
        *space.arrived = 0;
}

/* ---- Strips ---- */

/* What two strips have together. */
static __device__ __forceinline__ void cuda__identify_join(cuda__identify_strip *to,
                                                           const cuda__identify_strip &other)
{
    to->column = cuda__larger(to->column, other.column);
    to->row = cuda__larger(to->row, other.row);
    to->dominance = cuda__larger(to->dominance, other.dominance);
    to->squares += other.squares;
    to->zero_column = min(to->zero_column, other.zero_column);
    to->zero_row = min(to->zero_row, other.zero_row);
    to->parts |= other.parts;
    to->dominant = to->dominant && other.dominant;
}

static __device__ __forceinline__ cuda__identify_strip cuda__identify_nothing()
{
    return {0, 0, 0, 0, INT32_MAX, INT32_MAX, 0, 1};
}

/* The warp's strips joined; in every lane. */
static __device__ __forceinline__ void cuda__identify_join_warp(cuda__identify_strip *strip)
{
    for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2) {
        cuda__identify_strip other;
        other.column = __shfl_xor_sync(CUDA__ALL, strip->column, reach);
        other.row = __shfl_xor_sync(CUDA__ALL, strip->row, reach);
        other.dominance = __shfl_xor_sync(CUDA__ALL, strip->dominance, reach);
        other.squares = __shfl_xor_sync(CUDA__ALL, strip->squares, reach);
        other.zero_column = __shfl_xor_sync(CUDA__ALL, strip->zero_column, reach);
        other.zero_row = __shfl_xor_sync(CUDA__ALL, strip->zero_row, reach);
        other.parts = __shfl_xor_sync(CUDA__ALL, strip->parts, reach);
        other.dominant = __shfl_xor_sync(CUDA__ALL, strip->dominant, reach);
        cuda__identify_join(strip, other);
    }
}

/* The second kernel's shared memory. */
struct cuda__identify_sums {
    double columns[IDENTIFY_ADDERS][CUDA__WARP], rows[IDENTIFY_ADDERS][CUDA__WARP];
    double squares[IDENTIFY_ADDERS];
    uint32_t parts[IDENTIFY_ADDERS];
};

/* Every IDENTIFY_ADDERS-th line and pair, a warp each. A pair belongs to its strip of columns; the
 * groups of 32 columns in a strip share them. */
template <typename T>
static __device__ __forceinline__ void cuda__identify_add(const cuda__identify_shape &shape,
                                                          const cuda__identify_space<T> &space,
                                                          cuda__identify_sums &sums)
{
    int lane = (int)threadIdx.x % CUDA__WARP, warp = (int)threadIdx.x / CUDA__WARP;
    int64_t j = blockIdx.x * (int64_t)CUDA__WARP + lane, most = shape.width / CUDA__WARP;
    int64_t s = blockIdx.x / most, own = blockIdx.x % most;
    int64_t groups = min(most, shape.groups() - s * most); /* of the strip: the last may be short */
    const cuda__identify_pair *pairs = space.pairs + s * (s + 1) / 2;
    double column = 0, row = 0, squares = 0;
    uint32_t parts = 0;
    if (j < shape.n) {
#pragma unroll 8
        for (int64_t l = warp; l < shape.strips; l += IDENTIFY_ADDERS) {
            column += (double)space.columns[l * shape.n + j];
            row += (double)space.rows[l * shape.n + j];
        }
    }
    for (int64_t i = own + threadIdx.x * groups; i <= s; i += IDENTIFY_ADDING * groups) {
        squares += pairs[i].squares;
        parts |= pairs[i].parts;
    }
    for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2) {
        squares += __shfl_xor_sync(CUDA__ALL, squares, reach);
        parts |= __shfl_xor_sync(CUDA__ALL, parts, reach);
    }
    sums.columns[warp][lane] = column;
    sums.rows[warp][lane] = row;
    sums.squares[warp] = squares;
    sums.parts[warp] = parts;
}

/* Of 32 columns and their rows, from what the warps have added up; in every lane of a warp. */
template <typename T>
static __device__ __forceinline__ cuda__identify_strip
cuda__identify_strip_of(const cuda_identification &task, const cuda__identify_shape &shape,
                        const cuda__identify_sums &sums, int64_t k)
{
    int64_t j = blockIdx.x * (int64_t)CUDA__WARP + threadIdx.x;
    cuda__identify_strip strip = cuda__identify_nothing();
    if (j < shape.n) {
        for (int w = 0; w < IDENTIFY_ADDERS; w++) {
            strip.column += sums.columns[w][threadIdx.x];
            strip.row += sums.rows[w][threadIdx.x];
        }
        T own = cuda__identify_matrix<T>(task, k)[j * (task.a.stride + 1)];
        own *= cuda__identify_factor<T>(task, k);
        double size = fabs((double)own), others = strip.row - size;
        strip.dominance = size > 0 ? others / size : HUGE_VAL;
        strip.dominant = others < size;
        strip.zero_column = strip.column == 0 ? (int32_t)j : INT32_MAX;
        strip.zero_row = strip.row == 0 ? (int32_t)j : INT32_MAX;
        strip.parts = own > 0 ? 0 : CUDA_PART_NOT_POSITIVE;
    }
    if (threadIdx.x < IDENTIFY_ADDERS) {
        strip.squares = sums.squares[threadIdx.x];
        strip.parts |= sums.parts[threadIdx.x];
    }
    cuda__identify_join_warp(&strip);
    return strip;
}

/* ---- The matrix ---- */

/* Of all strips; the threads of a block. */
template <typename T>
static __device__ __forceinline__ void
cuda__identify_end(const cuda_identification &task, const cuda__identify_shape &shape,
                   const cuda__identify_space<T> &space, int64_t k)
{
    __shared__ cuda__identify_strip found[IDENTIFY_ADDERS];
    cuda__identify_strip all = cuda__identify_nothing();
    for (int64_t s = threadIdx.x; s < shape.groups(); s += IDENTIFY_ADDING)
        cuda__identify_join(&all, space.strips[s]);
    cuda__identify_join_warp(&all);
    if (threadIdx.x % CUDA__WARP == 0)
        found[threadIdx.x / CUDA__WARP] = all;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    for (int w = 1; w < IDENTIFY_ADDERS; w++)
        cuda__identify_join(&all, found[w]);
    struct cuda_identity identity = {
        cuda__norm_of<T>(all.column),
        cuda__norm_of<T>(all.row),
        sqrt(all.squares),
        all.dominance,
        all.dominant,
        all.zero_column == INT32_MAX ? 0 : all.zero_column + 1,
        all.zero_row == INT32_MAX ? 0 : all.zero_row + 1,
        all.parts,
    };
    task.to[k / task.count * task.to_step + k % task.count] = identity;
}

/* Of `blocks` whose work others are to see; a thread of each calls. */
static __device__ __forceinline__ bool cuda__identify_is_last(uint32_t *arrived, uint32_t blocks)
{
    __threadfence();
    bool is_last = atomicAdd(arrived, 1) == blocks - 1;
    __threadfence();
    return is_last;
}

/* A block 32 columns and their rows. */
template <typename T>
static __global__ void __launch_bounds__(IDENTIFY_ADDING)
    cuda__identify_strips_kernel(const cuda_identification task, const cuda__identify_shape shape)
{
    __shared__ cuda__identify_sums sums;
    int64_t k = blockIdx.y;
    cuda__identify_space<T> space = cuda__identify_space_of<T>(task, shape, k);
    int last = 0;
    cuda__wait_for_previous();
    cuda__identify_add(shape, space, sums);
    __syncthreads();
    if (threadIdx.x < CUDA__WARP) {
        cuda__identify_strip strip = cuda__identify_strip_of<T>(task, shape, sums, k);
        if (threadIdx.x == 0) {
            space.strips[blockIdx.x] = strip;
            last = gridDim.x == 1 || cuda__identify_is_last(space.arrived, gridDim.x);
        }
    }
    if (__syncthreads_or(last))
        cuda__identify_end<T>(task, shape, space, k);
}

/* ---- Launches ---- */

size_t cuda_identify_bytes(enum precision precision, int64_t n, int64_t matrices)
{
    struct cuda__identify_shape shape = cuda__identify_shape_of(precision, n);
    size_t one = precision == PRECISION_FP32 ? cuda__identify_matrix_bytes<float>(shape)
                                             : cuda__identify_matrix_bytes<double>(shape);
    return one * (size_t)matrices;
}

template <typename T, int Warps>
static cudaError_t cuda__identify_start(const struct cuda_identification &task, cudaStream_t stream)
{
    struct cuda__identify_shape shape = cuda__identify_shape_of(task.precision, task.n);
    unsigned all = (unsigned)(task.count * task.sets);
    const bool overlaps = cuda__overlaps();
    cudaError_t status = cuda__start(cuda__identify_pairs_kernel<T, Warps>,
                                     dim3((unsigned)shape.pairs(), all), Warps * CUDA__WARP,
                                     sizeof(cuda__identify_memory<T, Warps>), stream, task, shape);
    if (status == cudaSuccess)
        status = cuda__follow(cuda__identify_strips_kernel<T>, dim3((unsigned)shape.groups(), all),
                              IDENTIFY_ADDING, overlaps, stream, task, shape);
    return status;
}

template <typename T>
static cudaError_t cuda__identify_start(const struct cuda_identification &task, cudaStream_t stream)
{
    switch (cuda__identify_warps(task.precision, task.n)) {
    case 1:
        return cuda__identify_start<T, 1>(task, stream);
    case 2:
        return cuda__identify_start<T, 2>(task, stream);
    default:
        return cuda__identify_start<T, 4>(task, stream);
    }
}

cudaError_t cuda_identify(const struct cuda_identification *task, cudaStream_t stream)
{
    if (task->n < 1 || task->a.stride > INT32_MAX || task->count < 0 || task->sets < 1 ||
        task->count > CUDA_IDENTIFY_MATRICES_MAX / task->sets)
        return cudaErrorInvalidValue;
    if (task->count == 0)
        return cudaSuccess;
    return task->precision == PRECISION_FP32 ? cuda__identify_start<float>(*task, stream)
                                             : cuda__identify_start<double>(*task, stream);
}
