/* gpu/cuda/lu/group.cuh: a group of columns of a matrix that is inverted in its workspace, by one
 * cluster of blocks in one launch, where wide.cuh takes a launch for each panel and two for what
 * it does to others.
 *
 * Each block keeps its part of the rows of these columns in shared memory from the first panel to
 * the last. Its first warp eliminates panels (lanes.cuh), the others send proposals; all warps make
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
#ifndef GPU_CUDA_LU_GROUP_CUH
#define GPU_CUDA_LU_GROUP_CUH

#include "gpu/cuda/lu/lanes.cuh"

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

#endif
