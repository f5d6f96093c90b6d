/* gpu/cuda/lu/group.cuh: a group of columns of an inverse by one cluster of blocks in one launch: a
 * panel by a warp of a block, the kernel, the order in which columns are eliminated by halves, and
 * launches. Launches: host code, any thread; nothing is awaited.
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
 * the last. Its first warp eliminates panels (group.cuh), the others send proposals; all warps make
 * products. Chosen rows go through global memory to all blocks. The host passes the steps as a
 * list. Each element sees the same operations in the same order as in wide.cuh, so results are
 * bitwise equal for any number of blocks.
 *
 * So the batch may decide: few matrices have the device to themselves, and a cluster makes the
 * chain of a matrix's steps short; many hide each other's, one block a panel.
 *
 * Messages: a block's message of step k + 2 takes the place of that of step k; it cannot come too
 * early, for it follows on the receiver's own message of step k + 1.
 *
 * Cost: a step a column; for each product a barrier of the cluster and a way through the L2, 1.3 us
 * on an H200, 2026-11-22, besides its operations, by as many multiprocessors as the cluster has
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

    template <typename Line> __device__ __forceinline__ void write(int rows, Line line) const
    {
#pragma unroll
        for (int r = 0; r < Rows; r++) {
#pragma unroll
            for (int j = 0; j < Block; j += width) {
                if (row(r) < rows)
                    *(vector *)(line(row(r)) + j) = *(const vector *)&a[r][j];
            }
        }
    }

    /* The step of the lane's row r in the panel that begins with step `first`; others: large. */
    __device__ __forceinline__ unsigned panel_step(int r, int first) const
    {
        return (unsigned)place[r] - (unsigned)(CUDA__LU_CHOSEN | first);
    }

    /* After `count` steps every column goes back to its place, and chosen rows get their ones. */
    __device__ __forceinline__ void complete(int first, int count)
    {
#pragma unroll 1
        for (int k = count; k < Block; k++) {
#pragma unroll
            for (int r = 0; r < Rows; r++) {
                T front = a[r][0];
#pragma unroll
                for (int j = 1; j < Block; j++)
                    a[r][j - 1] = a[r][j];
                a[r][Block - 1] = front;
            }
        }
#pragma unroll
        for (int e = 0; e < Rows * Block; e++) {
            if (panel_step(e / Block, first) == (unsigned)(e % Block))
                a[e / Block][e % Block] += 1;
        }
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

    /* Returns seek() of the next step, which overlaps the rest of this one. */
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
#define CUDA__LU_STEPS_MAX 24      /* for CUDA__LU_GROUP_MAX columns, 16 a panel */

/* Columns are counted from the group's first. */
struct cuda__lu_step {
    short from, inner; /* the panel's columns; or those that are brought */
    short to, columns; /* to these; 0 columns: a panel */
};

/* The columns at .. at + columns - 1. */
struct cuda__lu_plan {
    int at, columns;
    int rows;           /* of a block */
    int half;           /* columns that are brought to others at once, at most */
    int w_line, r_line; /* distances of rows in shared memory */
    int count;
    cuda__lu_step steps[CUDA__LU_STEPS_MAX];
};

/* Shared memory; behind it the chosen rows, half x half, and the block's rows of the columns.
 */
template <typename T, int Block> struct cuda__lu_group_memory {
    cuda__lu_message<T, Block> ours[2];                         /* double-buffered */
    cuda__lu_message<T, Block> theirs[2][CUDA__LU_CLUSTER_MAX]; /* of the cluster's blocks */
    cuda__signal come[2];                       /* when they are there; double-buffered */
    alignas(16) int chosen[CUDA__LU_GROUP_MAX]; /* in each step: a row of the block; or -1 */
};

/* Bytes of it all. */
template <typename T, int Block>
static inline size_t cuda__lu_group_bytes(const cuda__lu_plan &plan)
{
    size_t numbers = (size_t)plan.half * plan.r_line + (size_t)plan.rows * plan.w_line;
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
    static constexpr int inner = 16; /* indices of a product that go together */

    cuda__lu_group_memory<T, Block> &shared;
    const cuda__lu_view<T> &view;
    const cuda__lu_plan &plan;
    int n, padded;
    int first_row, rows; /* the block's */
    int blocks, warp, lane;
    T *r, *w;
    cuda__lu_lanes<T, Block, Rows> mine;
    /* A sender's piece of a message in even steps, and where it goes. */
    const unsigned char *piece;
    cuda__address to, come;

    /* f(place in W, place in shared memory) for the pieces of the block's rows. */
    template <typename F> __device__ __forceinline__ void each(F f)
    {
        int across = plan.columns / width;
        for (int e = (int)threadIdx.x; e < rows * across; e += threads) {
            int i = e / across, j = e % across * width;
            f(view.w + (int64_t)(first_row + i) * padded + plan.at + j, w + i * plan.w_line + j);
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
        for (int q = (int)threadIdx.x; q < plan.columns; q += threads)
            shared.chosen[q] = -1;
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

    /* `count` steps from step `first` on; so many steps of the group are behind. The signals have
     * as many phases behind them as there were pairs of steps. A single block sends nothing. */
    __device__ __forceinline__ void eliminate(int first, int count, int behind)
    {
        int most = mine.seek();
#pragma unroll 1
        for (int k = 0; k < count; k++) {
            int turn = k & 1, winner = 0;
            message *from = blocks > 1 ? shared.theirs[turn] : &shared.ours[turn];
            mine.propose(shared.ours[turn], most);
            if (blocks > 1) {
                cuda__block_sync<threads>();
                cuda__signal_await(&shared.come[turn], (unsigned)(behind + k) >> 1 & 1);
                winner = mine.choose(from, blocks);
            } else {
                __syncwarp();
            }
            most = mine.eliminate(from[winner], first + k);
        }
    }

    __device__ __forceinline__ void panel(int sub)
    {
        int from = plan.at + sub, left = n - from, count = left < Block ? left : Block;
        auto line = [&](int row) { return w + row * plan.w_line + sub; };
        if (warp > 0) {
            send(count);
        } else {
            mine.read(rows, line);
            eliminate(from, count, sub);
            mine.complete(from, count);
            mine.write(rows, line);
            each_row([&](int i) {
                unsigned q = mine.panel_step(i, from);
                if (q < (unsigned)count)
                    shared.chosen[sub + (int)q] = mine.row(i);
            });
        }
        __syncthreads();
    }

    /* ---- The other columns ---- */

    /* f(q, j) for the pieces of chosen rows: row q, column j. */
    template <typename F> __device__ __forceinline__ void each_chosen(cuda__lu_step step, F f)
    {
        int across = step.columns / width;
        for (int e = (int)threadIdx.x; e < step.inner * across; e += threads)
            f(e / across, e % across * width);
    }

    /* The chosen rows of all blocks come to shared memory, and the columns lose them. Their place
     * in global memory is double-buffered: a block may be a product ahead of another one, which no
     * message between the two need hold back. */
    __device__ __forceinline__ void gather(cuda__lu_step step, int turn)
    {
        T *exchange = view.r + (turn & 1) * plan.half * plan.half;
        each_chosen(step, [&](int q, int j) {
            int row = shared.chosen[step.from + q];
            if (row < 0)
                return;
            T *own = w + row * plan.w_line + step.to + j;
            *(vector *)(exchange + q * step.columns + j) = *(const vector *)own;
            *(vector *)own = vector{};
        });
        __syncwarp(); /* some rows are not the block's */
        cuda__cluster_sync();
        int some = n - plan.at - step.from;
        each_chosen(step, [&](int q, int j) {
            T *row = r + q * plan.r_line + j;
            if (q < some)
                cuda__copy_async<16>(row, exchange + q * step.columns + j);
            else
                *(vector *)row = vector{};
        });
        cuda__copy_arrive();
        __syncthreads();
    }

    /* The columns += M R, a tile of Down x 1 units a warp. */
    template <int Down> __device__ __forceinline__ void multiply(cuda__lu_step step)
    {
        constexpr int unit = CUDA__UNIT;
        int across = step.columns / unit, tiles = rows / (Down * unit) * across, line = plan.w_line;
#pragma unroll 1
        for (int t = warp; t < tiles; t += warps) {
            T *row = w + t / across * Down * unit * line;
            T *corner = row + step.to + t % across * unit;
            const T *by = r + t % across * unit;
            cuda__mma_tile<T, Down, 1> tile;
            tile.each(lane, [&](int i, int j, T *x) {
                *(vector *)x = *(const vector *)(corner + i * line + j);
            });
            __syncwarp(); /* the tensor cores want the lanes together */
            for (int k = 0; k < step.inner; k += inner)
                tile.template multiply<inner>(row + step.from + k, line, by + k * plan.r_line,
                                              plan.r_line, lane);
            tile.each(lane, [&](int i, int j, T *x) {
                *(vector *)(corner + i * line + j) = *(const vector *)x;
            });
        }
    }

    __device__ __forceinline__ void bring(cuda__lu_step step, int turn)
    {
        gather(step, turn);
        if (rows / (2 * CUDA__UNIT) * (step.columns / CUDA__UNIT) >= warps)
            multiply<2>(step);
        else
            multiply<1>(step);
        __syncthreads();
    }

    __device__ __forceinline__ void run()
    {
        begin();
#pragma unroll 1
        for (int d = 0; d < plan.count; d++) {
            if (plan.steps[d].columns > 0)
                bring(plan.steps[d], d);
            else
                panel(plan.steps[d].from);
        }
        end();
    }
};

/* A cluster a matrix. */
template <typename T, int Block, int Rows>
static __global__ void __launch_bounds__(cuda__lu_group<T, Block, Rows>::threads, 1)
    cuda__lu_group_kernel(const cuda__lu_chunk chunk, const cuda__lu_plan plan)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    cuda__lu_group_memory<T, Block> &memory = *(cuda__lu_group_memory<T, Block> *)cuda__memory;
    int first = (int)blockIdx.x * plan.rows, left = chunk.padded - first;
    int rows = left < 0 ? 0 : left < plan.rows ? left : plan.rows, thread = (int)threadIdx.x;
    T *r = (T *)(&memory + 1);
    cuda__lu_group<T, Block, Rows> group = {memory,
                                            view,
                                            plan,
                                            chunk.n,
                                            chunk.padded,
                                            first,
                                            rows,
                                            (int)gridDim.x,
                                            thread / CUDA__WARP,
                                            thread % CUDA__WARP,
                                            r,
                                            r + plan.half * plan.r_line,
                                            {},
                                            nullptr,
                                            {},
                                            {}};
    group.run();
}

/* Eliminates the columns at .. at + columns - 1 of order n: the left half, which is applied to the
 * right half, then the right half, which is applied to the left half. of.whole(at, columns)
 * eliminates columns without halving them and returns true, as it must up to `block` columns;
 * of.apply(from, inner, at, columns) applies columns to others. */
template <typename Of> static void cuda__lu_by_halves(int n, int block, int at, int columns, Of &of)
{
    if (at >= n || of.whole(at, columns))
        return; /* from n on there is padding */
    int left = ((columns + block - 1) / block + 1) / 2 * block;
    cuda__lu_by_halves(n, block, at, left, of);
    of.apply(at, left, at + left, columns - left);
    cuda__lu_by_halves(n, block, at + left, columns - left, of);
    of.apply(at + left, columns - left, at, left);
}

/* Writes down what there is to do. */
struct cuda__lu_planner {
    int n, block;
    cuda__lu_plan plan;

    void add(int from, int inner, int to, int columns)
    {
        plan.steps[plan.count++] = {(short)(from - plan.at), (short)inner, (short)(to - plan.at),
                                    (short)columns};
    }

    bool whole(int at, int columns)
    {
        if (columns <= block)
            add(at, block, at, 0);
        return columns <= block;
    }

    void apply(int from, int inner, int at, int columns)
    {
        if (from < n && at < n)
            add(from, inner, at, columns);
    }
};

/* Rows of each of so many blocks. */
static inline int cuda__lu_group_rows(int padded, int blocks)
{
    const int unit = CUDA__LU_GROUP_ROWS;
    return ((padded + blocks - 1) / blocks + unit - 1) / unit * unit;
}

template <typename T>
static cuda__lu_plan cuda__lu_plan_group(int n, int block, int rows, int at, int columns)
{
    cuda__lu_planner planner = {n, block, {}};
    cuda__lu_plan &plan = planner.plan;
    plan.at = at;
    plan.columns = columns;
    plan.rows = rows;
    plan.half = (columns / block + 1) / 2 * block;
    plan.w_line = cuda__mma_line<T>::of_factor(columns);
    plan.r_line = cuda__mma_line<T>::of_factor(plan.half);
    cuda__lu_by_halves(n, block, at, columns, planner);
    return plan;
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

    template <typename T, int Block, int Rows> cudaError_t prepare(const cuda__lu_plan &plan)
    {
        const void *kernel = (const void *)cuda__lu_group_kernel<T, Block, Rows>;
        config.blockDim = dim3((unsigned)cuda__lu_group<T, Block, Rows>::threads);
        config.dynamicSmemBytes = cuda__lu_group_bytes<T, Block>(plan);
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
                                        unsigned matrices, cudaStream_t stream)
{
    static_assert(Block % 16 == 0 && CUDA__LU_GROUP_MAX / Block * 3 - 2 <= CUDA__LU_STEPS_MAX,
                  "there is room for all steps");
    int blocks = chunk.manner.blocks;
    int rows = blocks > 0 ? cuda__lu_group_rows(chunk.padded, blocks) : INT32_MAX;
    if (rows > CUDA__LU_GROUP_ROWS_MAX)
        return cudaErrorInvalidValue;
    cuda__lu_plan plan = cuda__lu_plan_group<T>(chunk.n, Block, rows, at, columns);
    cuda__lu_group_launch launch(blocks, matrices, stream);
    return cuda__lu_with_lanes(rows, [&](auto of_lane) {
        cudaError_t status = launch.prepare<T, Block, of_lane>(plan);
        if (status != cudaSuccess)
            return status;
        return cudaLaunchKernelEx(&launch.config, cuda__lu_group_kernel<T, Block, of_lane>, chunk,
                                  plan);
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
        cuda__lu_plan plan = cuda__lu_plan_group<T>(n, Block, rows, 0, columns);
        cuda__lu_group_launch launch(blocks, 1, nullptr);
        cudaError_t status = cuda__lu_with_lanes(rows, [&](auto of_lane) {
            cudaError_t prepared = launch.prepare<T, Block, of_lane>(plan);
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
