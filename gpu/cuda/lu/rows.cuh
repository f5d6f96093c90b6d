/* gpu/cuda/lu/rows.cuh: what follows on the columns that a cluster has eliminated (cluster.cuh):
 * the rows of W are moved as row interchanges would have moved them, and what the others take is
 * made ready for products.
 *
 * At columns `from` .. from + inner - 1, with P the rows of those numbers, which are the chosen
 * ones once rows have moved:
 *
 * LU: the rows P of the columns behind become L^-1 times those, and the rows below lose their part
 * of L times that.
 *
 * An inverse, by Gauss-Jordan in place: with V = L^-1 times the rows P of all other columns, and
 *
 *      M = (the rows above) U^-1,   -U^-1 in the rows P,   L in the rows below,
 *
 * the rows P become zero, all other columns lose M V, and the columns themselves become -M L^-1.
 * So that the rows above may wait, the next columns take their part below alone before a cluster
 * begins with them.
 *
 * LU solves with L by substitution, an inverse multiplies by L^-1. All rows, chosen ones too, take
 * their multiples of the same V: so |I - X A| and |I - A X| are both small (at most 0.07 for n = 96
 * and 32 columns at a time, over all spreads of singular values to a condition of 1e15, computed on
 * a CPU).
 *
 * blockIdx.y is the matrix. Cost: see each kernel.
 */
#ifndef GPU_CUDA_LU_ROWS_CUH
#define GPU_CUDA_LU_ROWS_CUH

#include "gpu/cuda/lu/space.cuh"

/* ---- Moves ---- */

#define CUDA__LU_MOVED_ROWS 8      /* of a block: a warp each */
#define CUDA__LU_MOVED_COLUMNS 512 /* of a block */

/* A warp's row of those of a step, and its columns. */
struct cuda__lu_stretch {
    int q; /* its number in the step */
    int first, end, lane;

    __device__ __forceinline__ cuda__lu_stretch(int at, int columns)
    {
        int across = (columns + CUDA__LU_MOVED_COLUMNS - 1) / CUDA__LU_MOVED_COLUMNS;
        q = (int)(blockIdx.x / across * CUDA__LU_MOVED_ROWS + threadIdx.x / CUDA__WARP);
        first = at + (int)blockIdx.x % across * CUDA__LU_MOVED_COLUMNS;
        end = at + columns;
        end = end < first + CUDA__LU_MOVED_COLUMNS ? end : first + CUDA__LU_MOVED_COLUMNS;
        lane = (int)(threadIdx.x % CUDA__WARP);
    }
};

/* R = the chosen rows, in `columns` columns from `at` on; LU: of their own columns -L without the
 * ones goes to the view's lower too. Cost: inner x columns numbers read and written. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_MOVED_ROWS *CUDA__WARP)
    cuda__lu_collect_kernel(const cuda__lu_chunk chunk, int from, int inner, int at, int columns)
{
    cuda__follow_previous();
    typedef typename cuda__real<T>::vector vector;
    constexpr int width = cuda__real<T>::width;
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    cuda__lu_stretch on(at, columns);
    if (cuda__lu_rests(chunk, view) || on.q >= inner)
        return;
    bool some = from + on.q < chunk.n;
    const T *row = view.w + (int64_t)(some ? view.order[from + on.q] : 0) * chunk.padded;
    T *to = view.r + (int64_t)on.q * chunk.padded;
    T *lower = view.lower + (int64_t)on.q * chunk.manner.width;
    for (int j = on.first + on.lane * width; j < on.end; j += CUDA__WARP * width) {
        vector piece = {};
        if (some)
            piece = *(const vector *)(row + j);
        *(vector *)(to + j) = piece;
        bool own = chunk.manner.factor && j >= from && j < from + inner;
        for (int v = 0; own && v < width; v++)
            lower[j - from + v] = j - from + v < on.q ? -((const T *)&piece)[v] : T(0);
    }
}

/* The rows that were in the chosen rows' places go where those were, in the same columns. Into
 * their places come, in the step's own columns and in those of LU to the left, the chosen rows; in
 * other columns of an inverse zeros; LU's to the right are left to what solves. Cost: 3 inner x
 * columns numbers read or written. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_MOVED_ROWS *CUDA__WARP)
    cuda__lu_displace_kernel(const cuda__lu_chunk chunk, int from, int inner, int at, int columns)
{
    cuda__follow_previous();
    typedef typename cuda__real<T>::vector vector;
    constexpr int width = cuda__real<T>::width;
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    cuda__lu_stretch on(at, columns);
    int row = from + on.q, end = from + inner;
    if (cuda__lu_rests(chunk, view) || on.q >= inner || row >= chunk.n)
        return;
    int place = view.row_place[row]; /* below 0: the row was chosen */
    T *w = view.w + (int64_t)row * chunk.padded;
    T *there = view.w + (int64_t)(place < 0 ? row : place) * chunk.padded;
    const T *chosen = view.r + (int64_t)on.q * chunk.padded;
    for (int j = on.first + on.lane * width; j < on.end; j += CUDA__WARP * width) {
        bool own = j >= from && j < end, left = chunk.manner.factor && j < from;
        vector piece = {};
        if (place >= 0)
            *(vector *)(there + j) = *(const vector *)(w + j);
        if (own || left)
            piece = *(const vector *)(chosen + j);
        if (own || left || !chunk.manner.factor)
            *(vector *)(w + j) = piece;
    }
}

/* The same moves of the rows' names; one block. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_WIDTH_MAX)
    cuda__lu_rename_kernel(const cuda__lu_chunk chunk, int from, int inner)
{
    cuda__follow_previous();
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    int row = from + (int)threadIdx.x, place = -1, chosen = 0, displaced = 0;
    bool some = (int)threadIdx.x < inner && row < chunk.n;
    if (some) {
        place = view.row_place[row];
        chosen = view.origin[view.order[row]];
        displaced = view.origin[row];
    }
    __syncthreads();
    if (some)
        view.origin[row] = chosen;
    if (some && place >= 0)
        view.origin[place] = displaced;
}

/* ---- Substitution ---- */

#define CUDA__LU_SOLVED 64      /* rows that are solved together */
#define CUDA__LU_SOLVED_PART 16 /* of those, in registers */
#define CUDA__LU_SOLVED_COLUMNS 64

template <typename T> struct cuda__lu_solve_memory {
    alignas(16) T lower[CUDA__LU_SOLVED * CUDA__LU_SOLVED];
    T x[CUDA__LU_SOLVED * CUDA__LU_SOLVED_COLUMNS];
};

/* sum -= the part's rows of L, at `l`, times x, for the columns 0 .. count - 1 of those. */
template <typename T>
static __device__ __forceinline__ void cuda__lu_substitute(T (&sum)[CUDA__LU_SOLVED_PART],
                                                           const T *l, const T *x, int count)
{
    typedef typename cuda__real<T>::vector vector;
    constexpr int width = cuda__real<T>::width, line = CUDA__LU_SOLVED_COLUMNS;
    for (int p = 0; p < count; p += width) {
        T by[width];
#pragma unroll
        for (int v = 0; v < width; v++)
            by[v] = x[(p + v) * line];
#pragma unroll
        for (int i = 0; i < CUDA__LU_SOLVED_PART; i++) {
            vector piece = *(const vector *)(l + i * CUDA__LU_SOLVED + p);
#pragma unroll
            for (int v = 0; v < width; v++)
                sum[i] = fma(((const T *)&piece)[v], by[v], sum[i]);
        }
    }
}

/* LU: the rows first .. first + inner - 1 of R, in `columns` columns from `at` on, become L^-1
 * times that, and go to W too. inner <= CUDA__LU_SOLVED, a multiple of CUDA__LU_SOLVED_PART. A
 * thread a column. Cost: inner^2 / 2 multiplications and additions a column. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_SOLVED_COLUMNS)
    cuda__lu_solve_rows_kernel(const cuda__lu_chunk chunk, int from, int first, int inner, int at,
                               int columns)
{
    cuda__follow_previous();
    constexpr int part = CUDA__LU_SOLVED_PART, line = CUDA__LU_SOLVED_COLUMNS;
    constexpr int step = cuda__real<T>::width;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    cuda__lu_solve_memory<T> &memory = *(cuda__lu_solve_memory<T> *)cuda__memory;
    int j = (int)blockIdx.x * line + (int)threadIdx.x, pieces = inner / step;
    bool inside = j < columns;
    T *r = view.r + (int64_t)first * chunk.padded + at + j, *x = memory.x + threadIdx.x;
    T *w = view.w + (int64_t)(from + first) * chunk.padded + at + j;
    const T *lower = view.lower + (int64_t)first * chunk.manner.width + first;
    for (int q = 0; q < inner && inside; q++)
        cuda__copy_async<sizeof(T)>(x + q * line, r + (int64_t)q * chunk.padded);
    for (int e = (int)threadIdx.x; e < inner * pieces; e += line) {
        int q = e / pieces, p = e % pieces * step;
        cuda__copy_async<16>(memory.lower + q * CUDA__LU_SOLVED + p,
                             lower + (int64_t)q * chunk.manner.width + p);
    }
    cuda__copy_arrive();
    __syncthreads();
    if (!inside)
        return;
    for (int b = 0; b < inner; b += part) {
        const T *l = memory.lower + b * CUDA__LU_SOLVED;
        T sum[part];
#pragma unroll
        for (int i = 0; i < part; i++)
            sum[i] = x[(b + i) * line];
        cuda__lu_substitute(sum, l, x, b);
#pragma unroll
        for (int i = 0; i < part; i++) {
#pragma unroll
            for (int p = 0; p < i; p++)
                sum[i] = fma(l[i * CUDA__LU_SOLVED + b + p], sum[p], sum[i]);
            x[(b + i) * line] = sum[i];
            r[(int64_t)(b + i) * chunk.padded] = sum[i];
            w[(int64_t)(b + i) * chunk.padded] = sum[i];
        }
    }
}

/* ---- Inverses of triangles ---- */

#define CUDA__LU_TRIANGLE 16 /* rows of a piece */
#define CUDA__LU_TRIANGLE_PIECES (CUDA__LU_WIDTH_MAX / CUDA__LU_TRIANGLE)
#define CUDA__LU_TRIANGLE_WARPS 8
#define CUDA__LU_TRIANGLE_THREADS (CUDA__LU_TRIANGLE_WARPS * CUDA__WARP)
static_assert(CUDA__LU_TRIANGLE * CUDA__LU_TRIANGLE == CUDA__LU_TRIANGLE_THREADS,
              "a thread has one number of a piece");
static_assert(CUDA__LU_WIDTH_MAX <= CUDA__LU_TRIANGLE_THREADS, "or one row");

template <typename T> struct cuda__lu_triangle_memory {
    static constexpr int piece = CUDA__LU_TRIANGLE, line = cuda__mma_line<T>::of_factor(piece);
    static constexpr int row_line = cuda__mma_line<T>::of_factor(CUDA__LU_WIDTH_MAX);
    alignas(16) T row[2][piece * row_line];                     /* of pieces, double-buffered */
    alignas(16) T x[CUDA__LU_WIDTH_MAX * line];                 /* the columns of the inverse */
    alignas(16) T parts[CUDA__LU_TRIANGLE_WARPS][piece * line]; /* of a sum, a warp each */
    T diagonal[CUDA__LU_TRIANGLE_PIECES][piece * line];         /* pieces, then their inverses */
    T sum[piece * line];
};

/* A block makes CUDA__LU_TRIANGLE columns of the inverse of a lower triangle G: of L, with its
 * ones, or of U^T. */
template <typename T> struct cuda__lu_triangle {
    typedef cuda__lu_triangle_memory<T> memory;
    static constexpr int piece = memory::piece, line = memory::line;

    memory &shared;
    const T *r; /* L and U, in R */
    int r_line;
    bool upper;
    int count; /* rows that are there; the others are those of the identity */
    int i, j;  /* of the thread's number in a piece */

    /* Number (i, j) of the piece (row, column) of G goes to `to`, turned for U. */
    __device__ __forceinline__ void fetch(T *to, int to_line, int row, int column) const
    {
        int down = (upper ? column : row) * piece + i, across = (upper ? row : column) * piece + j;
        cuda__copy_async<sizeof(T)>(upper ? to + j * to_line + i : to + i * to_line + j,
                                    r + (int64_t)down * r_line + across);
    }

    __device__ __forceinline__ void fetch_row(int row, int first)
    {
        for (int p = first; p < row; p++)
            fetch(shared.row[row & 1] + p * piece, memory::row_line, row, p);
    }

    /* Column j of the inverse of a piece of the diagonal. */
    __device__ __forceinline__ void invert_piece(int which, T (&x)[piece]) const
    {
        const T *g = shared.diagonal[which];
#pragma unroll
        for (int q = 0; q < piece; q++) {
            T sum = q == j ? T(1) : T(0);
#pragma unroll
            for (int p = 0; p < q; p++)
                sum = fma(-g[q * line + p], x[p], sum);
            x[q] = upper && which * piece + q < count ? sum / g[q * line + q] : sum;
        }
    }

    /* All pieces of the diagonal, from `first` on, become their inverses; a thread a column. */
    __device__ __forceinline__ void invert_diagonal(int first, int pieces)
    {
        T x[piece];
        bool some = first + i < pieces;
        for (int p = first; p < pieces; p++)
            fetch(shared.diagonal[p], line, p, p);
        cuda__copy_arrive();
        __syncthreads();
        if (some)
            invert_piece(first + i, x);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < piece; q++) {
            if (some)
                shared.diagonal[first + i][q * line + j] = x[q];
        }
    }

    /* The warps' parts of G's row of pieces times what is known of the inverse. */
    __device__ __forceinline__ void sum_up(int row, int first, int warp, int lane)
    {
        typedef typename cuda__real<T>::vector vector;
        cuda__mma_tile<T, 1, 1> tile;
        tile.each(lane, [&](int, int, T *to) { *(vector *)to = vector{}; });
        __syncwarp(); /* the tensor cores want the lanes together */
        for (int p = first + warp; p < row; p += CUDA__LU_TRIANGLE_WARPS)
            tile.template multiply<piece>(shared.row[row & 1] + p * piece, memory::row_line,
                                          shared.x + p * piece * line, line, lane);
        tile.each(lane, [&](int a, int b, T *from) {
            *(vector *)(shared.parts[warp] + a * line + b) = *(const vector *)from;
        });
    }

    /* Piece `row` of the columns. */
    __device__ __forceinline__ void step(int row, int first, int pieces, int warp, int lane)
    {
        cuda__copy_arrive();
        __syncthreads();
        if (row + 1 < pieces)
            fetch_row(row + 1, first);
        sum_up(row, first, warp, lane);
        __syncthreads();
        T sum = row == first && i == j ? T(1) : T(0);
        for (int w = 0; w < CUDA__LU_TRIANGLE_WARPS && first + w < row; w++)
            sum -= shared.parts[w][i * line + j];
        shared.sum[i * line + j] = sum;
        __syncthreads();
        sum = 0;
#pragma unroll
        for (int p = 0; p < piece; p++)
            sum = fma(shared.diagonal[row][i * line + p], shared.sum[p * line + j], sum);
        shared.x[(row * piece + i) * line + j] = sum;
    }

    /* f(row, column in the piece, number) for the columns of piece `first`. */
    template <typename F> __device__ __forceinline__ void run(int first, int pieces, F f)
    {
        int thread = (int)threadIdx.x, warp = thread / CUDA__WARP, lane = thread % CUDA__WARP;
        invert_diagonal(first, pieces);
        for (int row = first; row < pieces; row++)
            step(row, first, pieces, warp, lane);
        for (int row = 0; row < pieces; row++)
            f(row * piece + i, j, row < first ? T(0) : shared.x[(row * piece + i) * line + j]);
    }
};

/* Inverse: L^-1 to the view's lower, and -U^-1 to M's rows P. Blocks: twice inner /
 * CUDA__LU_TRIANGLE. Cost: inner / CUDA__LU_TRIANGLE steps, of some 1000 cycles. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_TRIANGLE_THREADS)
    cuda__lu_triangles_kernel(const cuda__lu_chunk chunk, int from, int inner)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__follow_previous();
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    int pieces = inner / CUDA__LU_TRIANGLE, thread = (int)threadIdx.x, width = chunk.manner.width;
    int first = (int)blockIdx.x % pieces, column = first * CUDA__LU_TRIANGLE;
    bool upper = (int)blockIdx.x >= pieces;
    cuda__lu_triangle<T> triangle = {*(cuda__lu_triangle_memory<T> *)cuda__memory,
                                     view.r + from,
                                     chunk.padded,
                                     upper,
                                     chunk.n - from,
                                     thread / CUDA__LU_TRIANGLE,
                                     thread % CUDA__LU_TRIANGLE};
    T *lower_to = view.lower + column, *upper_to = view.m + (int64_t)(from + column) * width;
    triangle.run(first, pieces, [&](int i, int j, T x) {
        if (upper)
            upper_to[(int64_t)j * width + i] = -x;
        else
            lower_to[(int64_t)i * width + j] = x;
    });
}

/* ---- Multipliers ---- */

#define CUDA__LU_MULTIPLIED_ROWS 8 /* of a block: a warp each */

/* Inverse: M in the rows from `next` on, where `from` is the first of its columns in W. Cost: as
 * many numbers read and written. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__LU_MULTIPLIED_ROWS *CUDA__WARP)
    cuda__lu_multipliers_kernel(const cuda__lu_chunk chunk, int from, int inner, int next)
{
    cuda__follow_previous();
    typedef typename cuda__real<T>::vector vector;
    constexpr int step = cuda__real<T>::width;
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    int row = next + (int)(blockIdx.x * CUDA__LU_MULTIPLIED_ROWS + threadIdx.x / CUDA__WARP);
    int lane = (int)(threadIdx.x % CUDA__WARP);
    if (cuda__lu_rests(chunk, view) || row >= chunk.n)
        return;
    T *m = view.m + (int64_t)row * chunk.manner.width;
    const T *w = view.w + (int64_t)row * chunk.padded + from;
    for (int j = lane * step; j < inner; j += CUDA__WARP * step)
        *(vector *)(m + j) = *(const vector *)(w + j);
}

#endif
