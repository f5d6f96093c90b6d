/* gpu/cuda/lu/group.cuh: a group of columns of an inverse by one cluster of blocks in one launch: a
 * panel by a warp of a block, the kernel, and launches. Launches: host code, any thread; nothing is
 * awaited.
 */
#ifndef GPU_CUDA_LU_GROUP_CUH
#define GPU_CUDA_LU_GROUP_CUH

#include <type_traits>

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/lu/cluster.cuh"

/* ---- The kernel ---- */

/* A group of columns of a matrix that is inverted in its workspace, by one cluster of blocks in
 * one launch, where wide.cuh takes a launch for each panel and two for what it does to others.
 *
 * Each block keeps its part of the rows of these columns in shared memory from the first panel to
 * the last. Its first warp eliminates a panel, the others send proposals. All warps multiply what
 * is to the right of the panel at once: halves would save nothing in shared memory. Chosen rows go
 * to all blocks through global memory, each to its place among the factors. Each element sees the
 * same operations in the same order as in wide.cuh, so results are bitwise equal for any number of
 * blocks.
 *
 * So the batch may decide: few matrices have the device to themselves, and a cluster makes the
 * chain of a matrix's steps short; many hide each other's, one block a panel.
 *
 * Messages: a block's message of step k + 2 takes the place of that of step k; it cannot come too
 * early, for it follows on the receiver's own message of step k + 1.
 *
 * Cost: a step a column; for each panel a barrier of the cluster and a way through the L2, 1.3 us
 * on an H200, 2026-11-22, besides its product, by as many multiprocessors as the cluster has
 * blocks. The columns are read and written once. Device code.
 */

/* ---- A panel ---- */

/* A block's rows of a panel, for an inverse, by one warp, where a cluster of blocks has the
 * matrix (group.cuh).
 *
 * The steps are those of panel.cuh, each row's operations in the same order, so the panel has
 * the same bits. A lane has the rows lane and lane + 32, in registers. The warp proposes its best
 * row; other warps of the block send it to all blocks; the warp picks among the blocks' proposals
 * and eliminates. Reciprocals are had while the warp finds its largest number.
 *
 * Cost of a step by the clock of an H200, 2026-11-22, FP64, two rows of 16 numbers a lane: to
 * propose 380 cycles, to sync with the other warps 34, until all messages are there 470, to choose
 * 194, to eliminate 446. Device code.
 */

template <typename T, int Block, int Rows> struct cuda__lu_lanes {
    typedef cuda__real<T> real;
    typedef typename real::vector vector;
    typedef cuda__lu_message<T, Block> message;
    static constexpr int width = real::width;

    alignas(16) T a[Rows][Block];
    int place[Rows]; /* as in panel.cuh */
    cuda__lu_steps<T> steps;
    int first_row, lane;
    /* The lane's best row, and what is of it. */
    int best, best_lead, best_place;
    uint32_t best_rest;
    T best_inverse;

    /* The number of the lane's row r among the block's. */
    __device__ __forceinline__ int row(int r) const
    {
        return r * CUDA__WARP + lane;
    }

    /* ---- Panels ---- */

    /* line(row): where the row's part in the panel is; of those up to `rows`. */
    template <typename Line> __device__ __forceinline__ void read(int rows, Line line)
    {
#pragma unroll
        for (int r = 0; r < Rows; r++) {
#pragma unroll
            for (int j = 0; j < Block; j += width)
                *(vector *)&a[r][j] =
                    row(r) < rows ? *(const vector *)(line(row(r)) + j) : vector{};
        }
    }

    /* The step of the lane's row r in the panel that begins with step `first`; others: large. */
    __device__ __forceinline__ unsigned panel_step(int r, int first) const
    {
        return (unsigned)place[r] - (unsigned)(CUDA__LU_CHOSEN | first);
    }

    /* ---- Steps ---- */

    __device__ __forceinline__ int lead(int r) const
    {
        return place[r] >= 0 ? (int)(real::lead(a[r][0]) & 0x7fffffffu) : -1;
    }

    /* The largest lead of the warp; -1: it has no row left. */
    __device__ __forceinline__ int seek()
    {
        T number = a[0][0];
        best = 0;
        best_lead = lead(0);
        best_place = place[0];
        best_rest = real::rest(number);
#pragma unroll
        for (int r = 1; r < Rows; r++) {
            int other = lead(r);
            uint32_t rest = real::rest(a[r][0]);
            bool first = rest > best_rest || (rest == best_rest && place[r] < best_place);
            bool better = other > best_lead || (other == best_lead && first);
            best = better ? r : best;
            best_lead = better ? other : best_lead;
            best_place = better ? place[r] : best_place;
            best_rest = better ? rest : best_rest;
            number = better ? a[r][0] : number;
        }
        int most = __reduce_max_sync(CUDA__ALL, best_lead);
        best_inverse = -real::reciprocal(number);
        return most;
    }

    /* The warp's best row; most: what seek() returned. */
    __device__ __forceinline__ void propose(message &to, int most)
    {
        cuda__keep(best_inverse); /* here, and not once it is known whose is wanted */
        if (most < 0) {
            to.lead = -1;
            return;
        }
        if (lane != cuda__lu_first_largest(most, best_lead, best_rest, best_place))
            return;
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            int which = best;
            cuda__keep(which); /* or a[which] would be taken, and a would be in memory */
            if (which != r)
                continue;
#pragma unroll
            for (int j = 0; j < Block; j += width)
                *(vector *)&to.row[j] = *(const vector *)&a[r][j];
        }
        to.inverse = best_inverse;
        to.lead = best_lead;
        to.place = best_place;
        to.rest = best_rest;
    }

    /* The best proposal of so many blocks. */
    __device__ __forceinline__ int choose(const message *from, int blocks) const
    {
        int at = lane < blocks ? lane : 0, mine = lane < blocks ? from[at].lead : -1;
        int most = __reduce_max_sync(CUDA__ALL, mine);
        return cuda__lu_first_largest(most, mine, from[at].rest, from[at].place);
    }

    /* Is the lane's row r the chosen one? Then it is written down. */
    __device__ __forceinline__ bool note(int r, const message &by, int step)
    {
        int was = by.place;
        bool chosen = place[r] == was && place[r] >= 0;
        if (chosen) {
            steps.pivot[step] = by.row[0];
            steps.order[step] = first_row + row(r);
            steps.place[step] = was;
        }
        place[r] = chosen ? CUDA__LU_CHOSEN | step : place[r] == step ? was : place[r];
        return chosen;
    }

    /* Column j moves down by one, and loses what is the chosen row's. */
    __device__ __forceinline__ void subtract(const T (&m)[Rows], T number, int j)
    {
#pragma unroll
        for (int r = 0; r < Rows; r++)
            a[r][j - 1] = fma(m[r], number, a[r][j]);
    }

    /* Returns seek() of the next step, which overlaps the rest of this one. The step's multipliers
     * are in a[..][Block - 1] then. */
    __device__ __forceinline__ int eliminate(const message &by, int step)
    {
        int most = -1;
        T m[Rows];
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            T product = a[r][0] * by.inverse;
            m[r] = note(r, by, step) ? T(0) : product;
        }
#pragma unroll
        for (int j = 0; j < Block; j += width) {
            vector piece = *(const vector *)&by.row[j];
#pragma unroll
            for (int v = 0; v < width; v++) {
                if (j + v > 0)
                    subtract(m, ((const T *)&piece)[v], j + v);
                if (j + v == 1)
                    most = seek();
            }
        }
#pragma unroll
        for (int r = 0; r < Rows; r++)
            a[r][Block - 1] = m[r];
        return most;
    }
};

#define CUDA__LU_GROUP_MAX 128     /* columns */
#define CUDA__LU_GROUP_ROWS 32     /* those of a block are a multiple of it */
#define CUDA__LU_GROUP_ROWS_MAX 64 /* a multiple of that */

/* The columns at .. at + columns - 1. */
struct cuda__lu_group_shape {
    int at, columns;
    int rows; /* of a block */
    int line; /* distance of rows in shared memory */
};

/* Shared memory; behind it the chosen rows of a panel, and the block's rows of the columns. */
template <typename T, int Block> struct cuda__lu_group_memory {
    static constexpr int inverse_line = cuda__mma_line<T>::of_factor(Block);
    cuda__lu_message<T, Block> ours[2];                         /* double-buffered */
    cuda__lu_message<T, Block> theirs[2][CUDA__LU_CLUSTER_MAX]; /* of the cluster's blocks */
    cuda__signal come[2];                        /* when they are there; double-buffered */
    alignas(16) int chosen[Block];               /* in each step: a row of the block; or -1 */
    alignas(16) T inverse[Block * inverse_line]; /* of the panel's triangle of L */
};

/* Bytes of it all. */
template <typename T, int Block>
static inline size_t cuda__lu_group_bytes(const cuda__lu_group_shape &shape)
{
    size_t numbers = (size_t)(Block + shape.rows) * shape.line;
    return sizeof(cuda__lu_group_memory<T, Block>) + numbers * sizeof(T);
}

/* One block of the cluster. Rows: of a lane of its first warp. */
template <typename T, int Block, int Rows> struct cuda__lu_group {
    typedef typename cuda__real<T>::vector vector;
    typedef cuda__lu_message<T, Block> message;
    static constexpr int width = cuda__real<T>::width;
    /* A message goes out in pieces of 16 bytes, a thread each, to each block. */
    static constexpr int pieces = (int)sizeof(message) / 16;
    static constexpr int senders = (CUDA__LU_CLUSTER_MAX * pieces + 31) / CUDA__WARP * CUDA__WARP;
    static constexpr int threads = senders < 224 ? 256 : senders + CUDA__WARP;
    static constexpr int warps = threads / CUDA__WARP;
    static constexpr int inverse_line = cuda__lu_group_memory<T, Block>::inverse_line;

    cuda__lu_group_memory<T, Block> &shared;
    const cuda__lu_view<T> &view;
    const cuda__lu_group_shape &shape;
    int n, padded;
    int first_row, rows; /* the block's */
    int blocks, warp, lane;
    T *u, *w; /* the panel's rows of U, at their columns; the block's rows */
    cuda__lu_lanes<T, Block, Rows> mine;
    /* A sender's piece of a message in even steps, and where it goes. */
    const unsigned char *piece;
    cuda__address to, come;

    /* f(place in W, place in shared memory) for the pieces of the block's rows. */
    template <typename F> __device__ __forceinline__ void each(F f)
    {
        int across = shape.columns / width;
        for (int e = (int)threadIdx.x; e < rows * across; e += threads) {
            int i = e / across, j = e % across * width;
            f(view.w + (int64_t)(first_row + i) * padded + shape.at + j, w + i * shape.line + j);
        }
    }

    /* f(number of the lane's row) for the rows of the first warp. */
    template <typename F> __device__ __forceinline__ void each_row(F f)
    {
#pragma unroll
        for (int i = 0; i < Rows; i++) {
            if (warp == 0 && mine.row(i) < rows)
                f(i);
        }
    }

    __device__ __forceinline__ bool sends() const
    {
        return warp > 0 && (int)threadIdx.x - CUDA__WARP < blocks * pieces;
    }

    __device__ __forceinline__ void share_out()
    {
        int sender = sends() ? (int)threadIdx.x - CUDA__WARP : 0, other = sender / pieces;
        piece = (const unsigned char *)&shared.ours[0] + 16 * (sender % pieces);
        to = cuda__address_in((unsigned char *)&shared.theirs[0][blockIdx.x] +
                                  16 * (sender % pieces),
                              (unsigned)other);
        come = cuda__address_in(&shared.come[0], (unsigned)other);
    }

    __device__ __forceinline__ void begin()
    {
        each([](const T *global, T *own) { cuda__copy_async<16>(own, global); });
        mine.steps = cuda__lu_steps<T>{view.pivot, view.order, view.place};
        mine.first_row = first_row;
        mine.lane = lane;
#pragma unroll
        for (int i = 0; i < Rows; i++)
            mine.place[i] = CUDA__LU_NO_ROW;
        each_row([&](int i) { mine.place[i] = view.row_place[first_row + mine.row(i)]; });
        share_out();
        if (threadIdx.x < 2)
            cuda__signal_begin(&shared.come[threadIdx.x]);
        cuda__copy_arrive();
        cuda__cluster_sync(); /* no block writes to one that has not begun */
    }

    __device__ __forceinline__ void end()
    {
        each([](T *global, const T *own) { *(vector *)global = *(const vector *)own; });
        each_row([&](int i) { view.row_place[first_row + mine.row(i)] = mine.place[i]; });
    }

    /* ---- Panels ---- */

    /* Sends the proposals of `count` steps to all blocks. By all warps but the first. */
    __device__ __forceinline__ void send(int count)
    {
#pragma unroll 1
        for (int k = 0; k < count && blocks > 1; k++) {
            int turn = k & 1;
            if (threadIdx.x == CUDA__WARP)
                cuda__signal_expect(&shared.come[turn], (unsigned)(blocks * (int)sizeof(message)));
            cuda__block_sync<threads>();
            if (sends())
                cuda__send(to + turn * (int)sizeof shared.theirs[0],
                           come + turn * (int)sizeof shared.come[0],
                           piece + turn * sizeof shared.ours[0]);
        }
    }

    /* Step k of the panel that begins at the group's column `sub`, by the first warp: its
     * multipliers go to their column, and the chosen row's multiples of those before it to the
     * inverse of the panel's triangle. */
    __device__ __forceinline__ void note(int sub, int k, const message &by)
    {
        each_row([&](int i) { w[mine.row(i) * shape.line + sub + k] = mine.a[i][Block - 1]; });
        if (lane < Block)
            shared.inverse[k * inverse_line + lane] = lane < k    ? by.row[Block - k + lane]
                                                      : lane == k ? T(1)
                                                                  : T(0);
    }

    /* `count` steps of the panel that begins at the group's column `sub`. The signals have as many
     * phases behind them as there were pairs of steps. A single block sends nothing. */
    __device__ __forceinline__ void eliminate(int sub, int count)
    {
        int most = mine.seek();
#pragma unroll 1
        for (int k = 0; k < count; k++) {
            int turn = k & 1, winner = 0;
            message *from = blocks > 1 ? shared.theirs[turn] : &shared.ours[turn];
            mine.propose(shared.ours[turn], most);
            if (blocks > 1) {
                cuda__block_sync<threads>();
                cuda__signal_await(&shared.come[turn], (unsigned)(sub + k) >> 1 & 1);
                winner = mine.choose(from, blocks);
            } else {
                __syncwarp();
            }
            most = mine.eliminate(from[winner], shape.at + sub + k);
            note(sub, k, from[winner]);
        }
    }

    /* What the steps left out: the ones of chosen rows, which are then L's no more, and padding. */
    __device__ __forceinline__ void complete(int sub, int count)
    {
        for (int k = count; k < Block; k++) {
            if (lane < Block)
                shared.inverse[k * inverse_line + lane] = 0;
        }
        if (lane < Block)
            shared.chosen[lane] = -1;
        __syncwarp();
        each_row([&](int i) {
            unsigned q = mine.panel_step(i, shape.at + sub);
            T *m = w + mine.row(i) * shape.line + sub;
            if (q >= (unsigned)count)
                return;
            shared.chosen[q] = mine.row(i);
            for (int k = 0; k <= (int)q; k++)
                m[k] = k == (int)q ? T(1) : T(0);
        });
    }

    __device__ __forceinline__ void panel(int sub, int count)
    {
        auto line = [&](int row) { return w + row * shape.line + sub; };
        if (warp > 0) {
            send(count);
        } else {
            mine.read(rows, line);
            eliminate(sub, count);
            complete(sub, count);
        }
        __syncthreads();
    }

    /* ---- The other columns ---- */

    /* f(q, j) for the pieces of the panel's chosen rows in the columns from `first` to `end`. */
    template <typename F> __device__ __forceinline__ void each_chosen(int first, int end, F f)
    {
        int across = (end - first) / width;
        for (int e = (int)threadIdx.x; e < Block * across; e += threads)
            f(e / across, first + e % across * width);
    }

    __device__ __forceinline__ T *factor(int sub, int q, int j) const
    {
        return view.factors + (int64_t)(shape.at + sub + q) * padded + shape.at + j;
    }

    /* The block's chosen rows in some columns go to their places among the factors; the columns
     * lose them. Rows of padding are zeros. */
    __device__ __forceinline__ void give(int sub, int count, int first, int end)
    {
        each_chosen(first, end, [&](int q, int j) {
            int row = shared.chosen[q];
            T *own = w + row * shape.line + j;
            if (row >= 0 || (q >= count && first_row == 0))
                *(vector *)factor(sub, q, j) = row >= 0 ? *(const vector *)own : vector{};
            if (row >= 0)
                *(vector *)own = vector{};
        });
        __syncwarp(); /* some rows are not the block's */
    }

    /* The panel's rows of the factors, but for those of U to the right. */
    __device__ __forceinline__ void give_lower(int sub, int count)
    {
        give(sub, count, 0, sub);
        if (first_row > 0)
            return;
        for (int e = (int)threadIdx.x; e < Block * Block; e += threads)
            *factor(sub, e / Block, sub + e % Block) =
                shared.inverse[e / Block * inverse_line + e % Block];
    }

    /* The panel's rows of U to its right: L^-1 times the chosen rows of all blocks. A warp a strip.
     */
    __device__ __forceinline__ void solve(int sub, int next)
    {
        give(sub, Block, next, shape.columns);
        cuda__cluster_sync();
        each_chosen(next, shape.columns, [&](int q, int j) {
            cuda__copy_async<16>(u + q * shape.line + j, factor(sub, q, j));
        });
        cuda__copy_arrive();
        __syncthreads();
        for (int j = next + warp * CUDA__UNIT; j < shape.columns; j += warps * CUDA__UNIT) {
            cuda__mma_tile<T, Block / CUDA__UNIT, 1> tile;
            tile.each(lane, [&](int, int, T *x) { *(vector *)x = vector{}; });
            __syncwarp(); /* the tensor cores want the lanes together */
            for (int k = 0; k < Block; k += CUDA__UNIT)
                tile.template multiply<CUDA__UNIT>(shared.inverse + k, inverse_line,
                                                   u + k * shape.line + j, shape.line, lane);
            __syncwarp();
            cuda__mma_store(tile, u + j, shape.line, lane);
        }
        __syncthreads();
    }

    /* The columns from `next` on += M U, a tile of Down x 1 units a warp. */
    template <int Down> __device__ __forceinline__ void multiply(int sub, int next)
    {
        constexpr int unit = CUDA__UNIT;
        int across = (shape.columns - next) / unit, tiles = rows / (Down * unit) * across;
#pragma unroll 1
        for (int t = warp; t < tiles; t += warps) {
            T *row = w + t / across * Down * unit * shape.line;
            int j = next + t % across * unit;
            cuda__mma_tile<T, Down, 1> tile;
            cuda__mma_load(tile, row + j, shape.line, lane);
            __syncwarp(); /* the tensor cores want the lanes together */
            for (int k = 0; k < Block; k += unit)
                tile.template multiply<unit>(row + sub + k, shape.line, u + k * shape.line + j,
                                             shape.line, lane);
            cuda__mma_store(tile, row + j, shape.line, lane);
        }
    }

    __device__ __forceinline__ void bring(int sub, int next)
    {
        solve(sub, next);
        if (rows / (2 * CUDA__UNIT) * ((shape.columns - next) / CUDA__UNIT) >= warps)
            multiply<2>(sub, next);
        else
            multiply<1>(sub, next);
        __syncthreads();
    }

    __device__ __forceinline__ void run()
    {
        begin();
#pragma unroll 1
        for (int sub = 0; sub < shape.columns; sub += Block) {
            int left = n - shape.at - sub, count = left < Block ? left : Block;
            panel(sub, count);
            give_lower(sub, count);
            if (sub + Block < shape.columns)
                bring(sub, sub + Block);
        }
        __syncthreads();
        end();
    }
};

/* A cluster a matrix. */
template <typename T, int Block, int Rows>
static __global__ void __launch_bounds__(cuda__lu_group<T, Block, Rows>::threads, 1)
    cuda__lu_group_kernel(const cuda__lu_chunk chunk, const cuda__lu_group_shape shape)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__follow_previous();
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    cuda__lu_group_memory<T, Block> &memory = *(cuda__lu_group_memory<T, Block> *)cuda__memory;
    int first = (int)blockIdx.x * shape.rows, left = chunk.padded - first;
    int rows = left < 0 ? 0 : left < shape.rows ? left : shape.rows, thread = (int)threadIdx.x;
    T *u = (T *)(&memory + 1);
    cuda__lu_group<T, Block, Rows> group = {memory,
                                            view,
                                            shape,
                                            chunk.n,
                                            chunk.padded,
                                            first,
                                            rows,
                                            (int)gridDim.x,
                                            thread / CUDA__WARP,
                                            thread % CUDA__WARP,
                                            u,
                                            u + Block * shape.line,
                                            {},
                                            nullptr,
                                            {},
                                            {}};
    group.run();
}

/* Rows of each of so many blocks. */
static inline int cuda__lu_group_rows(int padded, int blocks)
{
    const int unit = CUDA__LU_GROUP_ROWS;
    return ((padded + blocks - 1) / blocks + unit - 1) / unit * unit;
}

/* A launch for clusters of so many blocks, and what it takes. */
struct cuda__lu_group_launch {
    cudaLaunchAttribute cluster;
    cudaLaunchConfig_t config;

    cuda__lu_group_launch(int blocks, unsigned matrices, cudaStream_t stream) : cluster{}, config{}
    {
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim.x = (unsigned)blocks;
        cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
        config.gridDim = dim3((unsigned)blocks, matrices);
        config.stream = stream;
        config.attrs = &cluster;
        config.numAttrs = 1;
    }

    template <typename T, int Block, int Rows>
    cudaError_t prepare(const cuda__lu_group_shape &shape)
    {
        const void *kernel = (const void *)cuda__lu_group_kernel<T, Block, Rows>;
        config.blockDim = dim3((unsigned)cuda__lu_group<T, Block, Rows>::threads);
        config.dynamicSmemBytes = cuda__lu_group_bytes<T, Block>(shape);
        cudaError_t status = cuda__allow_shared(kernel, config.dynamicSmemBytes);
        if (status != cudaSuccess)
            return status;
        return cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    }
};

/* f(rows of a lane) for so many of a block. */
template <typename F> static cudaError_t cuda__lu_with_lanes(int rows, F f)
{
    static_assert(CUDA__LU_GROUP_ROWS_MAX == 2 * CUDA__WARP, "one or two");
    if (rows <= CUDA__WARP)
        return f(std::integral_constant<int, 1>());
    return f(std::integral_constant<int, 2>());
}

/* A group of columns of all matrices of a chunk. */
template <typename T, int Block>
static cudaError_t cuda__lu_start_group(const cuda__lu_chunk &chunk, int at, int columns,
                                        unsigned matrices, bool overlaps, cudaStream_t stream)
{
    int blocks = chunk.manner.blocks;
    int rows = blocks > 0 ? cuda__lu_group_rows(chunk.padded, blocks) : INT32_MAX;
    if (rows > CUDA__LU_GROUP_ROWS_MAX)
        return cudaErrorInvalidValue;
    cuda__lu_group_shape shape = {at, columns, rows, cuda__mma_line<T>::of_factor(columns)};
    cuda__lu_group_launch launch(blocks, matrices, stream);
    return cuda__lu_with_lanes(rows, [&](auto of_lane) {
        cudaError_t status = launch.prepare<T, Block, of_lane>(shape);
        if (status != cudaSuccess)
            return status;
        return cuda__follow_in_clusters(
            cuda__lu_group_kernel<T, Block, of_lane>, (unsigned)blocks, launch.config.gridDim,
            launch.config.blockDim, launch.config.dynamicSmemBytes, overlaps, stream, chunk, shape);
    });
}

/* The blocks of a cluster for groups of so many columns, as many, up to `most`, as let the current
 * device take the clusters of all matrices at once; 0: it cannot. Asks the driver: some 10 us. */
template <typename T, int Block>
static int cuda__lu_group_blocks(int n, int columns, int most, int64_t matrices)
{
    int padded = cuda__lu_padded(n), blocks = most;
    while (blocks > 1 && blocks / 2 * CUDA__LU_GROUP_ROWS >= padded)
        blocks /= 2; /* or half of them would have no rows */
    for (; blocks >= 1; blocks /= 2) {
        int rows = cuda__lu_group_rows(padded, blocks), clusters = 0;
        if (rows > CUDA__LU_GROUP_ROWS_MAX)
            return 0;
        cuda__lu_group_shape shape = {0, columns, rows, cuda__mma_line<T>::of_factor(columns)};
        cuda__lu_group_launch launch(blocks, 1, nullptr);
        cudaError_t status = cuda__lu_with_lanes(rows, [&](auto of_lane) {
            cudaError_t prepared = launch.prepare<T, Block, of_lane>(shape);
            if (prepared != cudaSuccess)
                return prepared;
            return cudaOccupancyMaxActiveClusters(
                &clusters, (const void *)cuda__lu_group_kernel<T, Block, of_lane>, &launch.config);
        });
        if (status != cudaSuccess)
            (void)cudaGetLastError(); /* the device has no such cluster, and says so */
        else if (clusters >= matrices)
            return blocks;
    }
    return 0;
}

#endif
