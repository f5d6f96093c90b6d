/* gpu/cuda/iterative/measure.cuh: how large V and R are, and what that means for each matrix.
 *
 * Two kernels, the second of which is put on the device while the first ends. The first reads V and
 * R once and adds up the magnitudes of their columns and the squares of R's entries, by pieces of
 * rows: a block some rows and CUDA__WARP vectors of columns. Where R comes from a product it is
 * R - I, and the pass adds 1 to its diagonal on the way. The second kernel, a block a matrix, adds
 * the pieces up and decides (decide.cuh).
 *
 * Where A is equilibrated V scaled back is measured too, and where its columns' exponents differ so
 * is the residual that counts: C R C^-1, C being the columns' powers of two. The pass adds up V and
 * R times C_i then, too; what a column is multiplied by comes to the sums.
 *
 * All sums are made in double, in an order that n alone decides, so that a matrix's answer does not
 * depend on its neighbours. One that is beyond range stays so, and so does a NaN.
 *
 * Cost: V and R read once; then by one block up to 8192 sums of each of them, or n where that is
 * more: some microseconds.
 */
#ifndef GPU_CUDA_ITERATIVE_MEASURE_CUH
#define GPU_CUDA_ITERATIVE_MEASURE_CUH

#include "gpu/cuda/iterative/view.cuh"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/base/reduce.cuh"
#include "gpu/cuda/base/norm.cuh"

#define CUDA__ITER_AT_ONCE 8    /* vectors of a lane that are on their way together */
#define CUDA__ITER_WEIGHED 2    /* and where C_i counts, which is rare: registers are the others' */
#define CUDA__ITER_PIECE_MIN 64 /* rows, where there are as many */
#define CUDA__ITER_PIECES_MAX 8 /* of a matrix */
#define CUDA__ITER_SUMS_NEAR 8192 /* of a matrix in all, where n is not more */
#define CUDA__ITER_DECIDERS 512   /* threads of the second kernel, at most */

/* ---- Pieces ---- */

/* How a matrix is cut: into `pieces` of `rows` each, and each of these into groups of columns. The
 * sums of a matrix: V's, a line for each piece, R's likewise, both again times C_i, and of R's
 * squares one for each block. */
struct cuda__iter_pieces {
    int groups, pieces, rows;
    int line; /* n, up to whole warps; behind n are zeros */

    __host__ __device__ int64_t numbers() const
    {
        return ((int64_t)4 * line + groups) * pieces;
    }
    __device__ double *line_of(double *sums, int kind, int piece) const
    {
        return sums + ((int64_t)(kind - CUDA__ITER_MATRIX_V) * pieces + piece) * line;
    }
    __device__ double *weighed_line_of(double *sums, int kind, int piece) const
    {
        return line_of(sums, kind + 2, piece);
    }
    __device__ double *squares(double *sums) const
    {
        return sums + (int64_t)4 * pieces * line;
    }
};

template <typename T> static struct cuda__iter_pieces cuda__iter_pieces_of(int64_t n)
{
    const int64_t width = CUDA__WARP * cuda__real<T>::width, near = CUDA__ITER_SUMS_NEAR / n;
    int64_t pieces = (n + CUDA__ITER_PIECE_MIN - 1) / CUDA__ITER_PIECE_MIN;
    int64_t most = near < CUDA__ITER_PIECES_MAX ? near : CUDA__ITER_PIECES_MAX;
    pieces = pieces < most ? pieces : most > 1 ? most : 1;
    return {(int)((n + width - 1) / width), (int)pieces, (int)((n + pieces - 1) / pieces),
            (int)((n + CUDA__WARP - 1) / CUDA__WARP * CUDA__WARP)};
}

/* What is measured: `kinds` kinds of matrices from `first` on, V and R. */
struct cuda__iter_measured {
    int first, kinds;
    bool adds; /* R is to become R + I */
};

template <typename T>
static __device__ __forceinline__ double *cuda__iter_sums_of(const cuda__iter_view<T> &view,
                                                             const cuda__iter_pieces &pieces)
{
    return (double *)view.call.space.scratch + view.index * pieces.numbers();
}

/* ---- The pass ---- */

/* The first `here` numbers of a vector, and zeros behind them. */
template <typename T>
static __device__ __forceinline__ typename cuda__real<T>::vector cuda__iter_take(const T *from,
                                                                                 int here)
{
    typedef cuda__real<T> real;
    typename real::vector x;
    if (here >= real::width)
        return *(const typename real::vector *)from;
#pragma unroll
    for (int v = 0; v < real::width; v++)
        ((T *)&x)[v] = v < here ? from[v] : T(0);
    return x;
}

/* A lane's columns, and what is found of them so far; Weighs: times C_i too. */
template <typename T, bool Weighs> struct cuda__iter_columns {
    typedef cuda__real<T> real;
    static constexpr int at_once = Weighs ? CUDA__ITER_WEIGHED : CUDA__ITER_AT_ONCE;
    T *first; /* of row 0 */
    int64_t ld;
    int j, here; /* the number of that one, and how many there are, from 0 on */
    bool adds;
    double sums[real::width], weighed[Weighs ? real::width : 1], square;

    /* Rows i, i + apart, ... below `end`, some of them. */
    __device__ __forceinline__ void count(const cuda__iter_view<T> &view, int i, int apart, int end)
    {
        typename real::vector x[at_once];
#pragma unroll
        for (int u = 0; u < at_once; u++)
            x[u] = cuda__iter_take(first + (i + u * apart) * ld, i + u * apart < end ? here : 0);
#pragma unroll
        for (int u = 0; u < at_once; u++) {
            int own = i + u * apart - j; /* the diagonal's place among the columns */
            if (adds && own >= 0 && own < here && i + u * apart < end)
                add_one(x[u], i + u * apart, own);
            const double weight = Weighs && i + u * apart < end ? view.weight(i + u * apart) : 0;
#pragma unroll
            for (int v = 0; v < real::width; v++) {
                double entry = (double)((const T *)&x[u])[v];
                sums[v] += fabs(entry);
                square = fma(entry, entry, square);
                if (Weighs)
                    weighed[v] = fma(weight, fabs(entry), weighed[v]);
            }
        }
    }

    __device__ __forceinline__ void add_one(typename real::vector &x, int i, int own)
    {
#pragma unroll
        for (int v = 0; v < real::width; v++) {
            if (v == own)
                first[i * ld + v] = ((T *)&x)[v] += T(1);
        }
    }
};

/* The warps' sums of a group's columns, to a line. */
template <typename T>
static __device__ __forceinline__ void
cuda__iter_join_warps(double (*held)[CUDA__WARP * cuda__real<T>::width], const double *own,
                      double *to, int count)
{
    constexpr int width = cuda__real<T>::width;
    const int warp = (int)threadIdx.x / CUDA__WARP, warps = (int)blockDim.x / CUDA__WARP;
    for (int v = 0; v < width; v++)
        held[warp][threadIdx.x % CUDA__WARP * width + v] = own[v];
    __syncthreads();
    for (int c = (int)threadIdx.x; c < count; c += (int)blockDim.x) {
        double sum = 0;
        for (int w = 0; w < warps; w++)
            sum += held[w][c];
        to[c] = sum;
    }
    __syncthreads();
}

/* A block's part of a matrix of that kind. */
template <typename T, bool Weighs>
static __device__ __forceinline__ void cuda__iter_measure(const cuda__iter_view<T> &view,
                                                          const cuda__iter_pieces &pieces, int kind,
                                                          bool adds)
{
    constexpr int width = cuda__real<T>::width, columns = CUDA__WARP * width;
    __shared__ double held[CUDA__ITER_ROWS][columns], squares[CUDA__ITER_ROWS];
    const int warp = (int)threadIdx.x / CUDA__WARP, warps = (int)blockDim.x / CUDA__WARP;
    const int group = (int)blockIdx.x % pieces.groups, piece = (int)blockIdx.x / pieces.groups;
    const int end = min((piece + 1) * pieces.rows, (int)view.call.n);
    const int j = group * columns + view.lane * width;
    cuda__iter_columns<T, Weighs> own = {
        view.matrix(kind) + j, view.call.ld, j, (int)view.call.n - j, adds, {}, {}, 0};
    own.here = max(0, min(own.here, width));
#pragma unroll 1
    for (int i = piece * pieces.rows + warp; i < end; i += warps * own.at_once)
        own.count(view, i, warps, end);
    own.square = cuda__warp_sum(own.square);
    if (view.lane == 0)
        squares[warp] = own.square;
    double *sums = cuda__iter_sums_of(view, pieces);
    const int count = min(columns, pieces.line - group * columns);
    cuda__iter_join_warps<T>(held, own.sums, pieces.line_of(sums, kind, piece) + group * columns,
                             count);
    if (Weighs)
        cuda__iter_join_warps<T>(
            held, own.weighed, pieces.weighed_line_of(sums, kind, piece) + group * columns, count);
    if (threadIdx.x > 0 || kind != CUDA__ITER_MATRIX_R)
        return;
    double square = 0;
    for (int w = 0; w < warps; w++)
        square += squares[w];
    pieces.squares(sums)[blockIdx.x] = square;
}

template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_THREADS)
    cuda__iter_measure_kernel(const cuda__iter_call call, const cuda__iter_run run,
                              const cuda__iter_pieces pieces, const cuda__iter_measured what)
{
    const cuda__iter_view<T> view(call, run);
    const int kind = what.first + (int)blockIdx.z;
    const bool adds = what.adds && kind == CUDA__ITER_MATRIX_R;
    cuda__release_next();
    if (view.state().uneven)
        cuda__iter_measure<T, true>(view, pieces, kind, adds);
    else
        cuda__iter_measure<T, false>(view, pieces, kind, adds);
}

/* ---- The decision ---- */

/* What R in double-double may not have seen, or with `counts` of what counts of it; by one thread,
 * of a small matrix. */
template <typename T>
static __device__ __noinline__ double cuda__iter_unseen(const cuda__iter_view<T> &view, bool counts)
{
    const T *v = view.matrix(CUDA__ITER_MATRIX_V), *a = view.matrix(CUDA__ITER_MATRIX_A);
    const int n = (int)view.call.n;
    double most = 0;
    for (int j = 0; j < n; j++) {
        double terms = 0;
        for (int e = 0; e < n * n; e++)
            terms +=
                (counts ? view.weight(e / n) : 1) *
                fabs((double)v[e / n * view.call.ld + e % n] * (double)a[e % n * view.call.ld + j]);
        terms /= counts ? view.weight(j) : 1;
        most = terms > most ? terms : most;
    }
    return ITERATION_UNSEEN(n, most);
}

/* The largest sums of columns of V and R, and the sum of R's squares. */
struct cuda__iter_sizes {
    double v, r, squares;

    __device__ __forceinline__ void join(double other_v, double other_r, double other_squares)
    {
        v = cuda__larger(v, other_v);
        r = cuda__larger(r, other_r);
        squares += other_squares;
    }
    /* Of the lanes of a warp; in every lane. */
    __device__ __forceinline__ void join_warp()
    {
#pragma unroll
        for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2)
            join(__shfl_xor_sync(CUDA__ALL, v, reach), __shfl_xor_sync(CUDA__ALL, r, reach),
                 __shfl_xor_sync(CUDA__ALL, squares, reach));
    }
};

/* The same of V scaled back, and of the residual that counts. */
struct cuda__iter_sent {
    double x, r;

    __device__ __forceinline__ void join_warp()
    {
#pragma unroll
        for (int reach = CUDA__WARP / 2; reach > 0; reach /= 2) {
            x = cuda__larger(x, __shfl_xor_sync(CUDA__ALL, x, reach));
            r = cuda__larger(r, __shfl_xor_sync(CUDA__ALL, r, reach));
        }
    }
};

/* From the sums of the pieces, of a matrix that is equilibrated; in every lane of the block's first
 * warp. */
template <typename T>
static __device__ __noinline__ cuda__iter_sent
cuda__iter_add_up_sent(const cuda__iter_view<T> &view, double *sums,
                       const cuda__iter_pieces &pieces, const cuda__iter_measured &what)
{
    __shared__ cuda__iter_sent held[CUDA__ITER_DECIDERS / CUDA__WARP];
    const int lane = (int)threadIdx.x % CUDA__WARP, warps = (int)blockDim.x / CUDA__WARP;
    const int top = view.state().top;
    const bool uneven = view.state().uneven;
    cuda__iter_sent sizes = {0, 0};
    for (int e = (int)threadIdx.x; e < what.kinds * pieces.line; e += (int)blockDim.x) {
        const int kind = what.first + (e >= pieces.line), j = e % pieces.line;
        double sum = 0;
        for (int p = 0; p < pieces.pieces; p++)
            sum +=
                (uneven ? pieces.weighed_line_of(sums, kind, p) : pieces.line_of(sums, kind, p))[j];
        if (j >= view.call.n)
            continue;
        if (kind == CUDA__ITER_MATRIX_V)
            sizes.x = cuda__larger(sizes.x, ldexp(sum, top + view.row_exponents()[j]));
        else
            sizes.r = cuda__larger(sizes.r, ldexp(sum, top - view.column_exponents()[j]));
    }
    sizes.join_warp();
    if (lane == 0)
        held[threadIdx.x / CUDA__WARP] = sizes;
    __syncthreads();
    sizes = {0, 0};
    if (lane < warps)
        sizes = held[lane];
    sizes.join_warp();
    return sizes;
}

/* From the sums of the pieces; in every lane of the block's first warp. */
static __device__ __forceinline__ cuda__iter_sizes
cuda__iter_add_up(double *sums, const cuda__iter_pieces &pieces, const cuda__iter_measured &what)
{
    __shared__ cuda__iter_sizes held[CUDA__ITER_DECIDERS / CUDA__WARP];
    int lane = (int)threadIdx.x % CUDA__WARP, warps = (int)blockDim.x / CUDA__WARP;
    cuda__iter_sizes sizes = {0, 0, 0};
    for (int e = (int)threadIdx.x; e < what.kinds * pieces.line; e += (int)blockDim.x) {
        int kind = what.first + (e >= pieces.line); /* the same for all lanes */
        const double *from = pieces.line_of(sums, kind, 0) + e % pieces.line;
        double sum = 0;
#pragma unroll 8
        for (int p = 0; p < pieces.pieces; p++)
            sum += from[(int64_t)p * pieces.line];
        sizes.join(kind == CUDA__ITER_MATRIX_V ? sum : 0, kind == CUDA__ITER_MATRIX_R ? sum : 0, 0);
    }
    bool has_squares = what.first + what.kinds > CUDA__ITER_MATRIX_R;
    const double *squares = pieces.squares(sums);
    for (int b = (int)threadIdx.x; has_squares && b < pieces.groups * pieces.pieces;
         b += (int)blockDim.x)
        sizes.squares += squares[b];
    sizes.join_warp();
    if (lane == 0)
        held[threadIdx.x / CUDA__WARP] = sizes;
    __syncthreads();
    sizes = {0, 0, 0};
    if (lane < warps)
        sizes = held[lane];
    sizes.join_warp();
    return sizes;
}

/* Is it a matrix's turn to be measured for that action? See struct cuda__iter_kernels. */
static __device__ __forceinline__ bool cuda__iter_is_due(const cuda__iter_state &state, int action)
{
    return action < CUDA__ITER_START_WARM ? state.action == action
                                          : state.action >= action && state.made;
}

/* By one thread. state: of the view's matrix, but held elsewhere. */
template <typename T>
static __device__ __forceinline__ void
cuda__iter_decide(const cuda__iter_view<T> &view, cuda__iter_state &state,
                  const cuda__iter_sizes &sizes, const cuda__iter_sent &sent, int action)
{
    cuda__iter_mind<T> mind = view.mind_of(state);
    const bool finite = cuda__norm_is_finite<T>(sizes.r);
    const cuda__iter_found found = {
        cuda__norm_of<T>(sizes.v), cuda__norm_of<T>(sent.x), finite ? sizes.r : HUGE_VAL,
        finite ? sqrt(sizes.squares) : HUGE_VAL, finite ? sent.r : HUGE_VAL};
    /* A last step may come to be measured though it need not be. */
    bool finishes = state.action >= CUDA__ITER_LAST && !view.call.wishes.measures;
    state.more = 0;
    if (action >= CUDA__ITER_START_WARM)
        state.made = 0;
    if (action < CUDA__ITER_START_WARM)
        mind.judge(found);
    else if (finishes)
        mind.finish_unmeasured(found);
    else
        mind.decide(found, [&](bool counts) { return cuda__iter_unseen(view, counts); });
    cuda__iter_tell(view.call, view.index, state);
}

/* A state from one place to another; the threads number `first`, `first` + `apart`, ... */
static __device__ __forceinline__ void
cuda__iter_move_state(cuda__iter_state *to, const cuda__iter_state *from, int first, int apart)
{
    static_assert(sizeof *to % sizeof(int) == 0, "whole words");
    for (int w = first; w < (int)(sizeof *to / sizeof(int)); w += apart)
        ((int *)to)[w] = ((const int *)from)[w];
}

/* A block a matrix. The state is none of the pass's business, and may be read before that ends. */
template <typename T>
static __global__ void __launch_bounds__(CUDA__ITER_DECIDERS)
    cuda__iter_decide_kernel(const cuda__iter_call call, const cuda__iter_run run,
                             const cuda__iter_pieces pieces, const cuda__iter_measured what,
                             int action)
{
    __shared__ cuda__iter_state held;
    cuda__iter_view<T> view(call, run);
    bool is_due = cuda__iter_is_due(view.state(), action);
    cuda__iter_move_state(&held, &view.state(), (int)threadIdx.x, (int)blockDim.x);
    cuda__wait_for_previous();
    if (!is_due)
        return;
    double *sums = cuda__iter_sums_of(view, pieces);
    const cuda__iter_sizes sizes = cuda__iter_add_up(sums, pieces, what);
    cuda__iter_sent sent = {sizes.v, sizes.r};
    if (held.scaled)
        sent = cuda__iter_add_up_sent(view, sums, pieces, what);
    if (threadIdx.x == 0)
        cuda__iter_decide(view, held, sizes, sent, action);
    if (threadIdx.x >= CUDA__WARP)
        return;
    __syncwarp();
    cuda__iter_move_state(&view.state(), &held, view.lane, CUDA__WARP);
}

/* ---- Launches ---- */

template <typename T>
static cudaError_t cuda__iter_start_measure(const cuda__iter_call &call, cuda__iter_run run,
                                            int action, cudaStream_t stream)
{
    const struct cuda__iter_pieces pieces = cuda__iter_pieces_of<T>(call.n);
    struct cuda__iter_measured what = {CUDA__ITER_MATRIX_V, 2, call.n > ITERATION_DD_ORDER_MAX};
    if (action < CUDA__ITER_START_WARM)
        what = {CUDA__ITER_MATRIX_R, 1, false};
    else if (action >= CUDA__ITER_LAST)
        what = {CUDA__ITER_MATRIX_V, 1, false};
    int warps = (pieces.rows + CUDA__ITER_AT_ONCE - 1) / CUDA__ITER_AT_ONCE;
    int threads = (warps < CUDA__ITER_ROWS ? warps : CUDA__ITER_ROWS) * CUDA__WARP;
    int lanes = what.kinds * pieces.line;
    const bool overlaps = cuda__overlaps();
    cudaError_t status = cuda__start(
        cuda__iter_measure_kernel<T>,
        dim3((unsigned)(pieces.groups * pieces.pieces), (unsigned)run.count, (unsigned)what.kinds),
        threads, 0, stream, call, run, pieces, what);
    if (status == cudaSuccess)
        status = cuda__follow(cuda__iter_decide_kernel<T>, dim3(1, (unsigned)run.count),
                              lanes < CUDA__ITER_DECIDERS ? lanes : CUDA__ITER_DECIDERS, 0,
                              overlaps, stream, call, run, pieces, what, action);
    return status;
}

#endif
