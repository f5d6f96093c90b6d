/* gpu/cuda/lu/cluster.cuh: LU of some columns, in the rows from their diagonal on, by one cluster
 * of blocks, each with a part of those rows, a panel after the other.
 *
 * A panel's columns are in registers, as in panel.cuh. Each step the warps propose, each block
 * picks the best of its own and sends it to all blocks, piece by piece into their shared memory.
 * When the messages of all have come, which a signal shows and no barrier of the cluster, all
 * threads pick among the blocks' proposals and eliminate. A block's message of step k + 2 takes the
 * place of that of step k; it cannot come too early, for it follows on the receiver's own message
 * of step k + 1.
 *
 * A finished panel is brought at once to the cluster's columns behind it: the chosen rows go
 * through global memory and are multiplied by L^-1, each block's multipliers stay in its shared
 * memory, and the products run as in base/mma_tile.cuh.
 *
 * Rows stay where they are. In the end the view says where each of them belongs: order, and
 * row_place of the others.
 *
 * A cluster of one block sends nothing: its threads pick among the warps' proposals.
 *
 * So nothing but the cluster is needed for many columns, while the rest of the device works on
 * others. The bits do not depend on the number of blocks or threads.
 *
 * Cost of a step, counted by the clock of an H200, 2026-11-21, for FP64, n = 1024 and 16 blocks:
 * 1870 cycles, while a warp sent two messages in 13 stores each: to propose 310 and to wait for the
 * other warps 270, to choose among them 170 and to send 510, to await 160, to choose 170, to
 * eliminate 280. Now a thread sends one piece, and warps without rows do not look for the first of
 * equals: 1200, predicted. Next to that a panel takes rows x (columns behind it) x 16 bytes of
 * traffic, which the multiprocessors of a cluster share one way to the L2 for, and some 400 cycles
 * a column for its barriers. Device code.
 */
#ifndef GPU_CUDA_LU_CLUSTER_CUH
#define GPU_CUDA_LU_CLUSTER_CUH

#include "gpu/cuda/lu/space.cuh"

#define CUDA__LU_CLUSTER_MAX 16   /* blocks */
#define CUDA__LU_CLUSTER_WARPS 16 /* of a block, at most */
#define CUDA__LU_CLUSTER_THREADS (CUDA__LU_CLUSTER_WARPS * CUDA__WARP)
#define CUDA__LU_CLUSTER_UNIT 32 /* rows and columns of a warp's tile; of a block's rows */

/* A proposal (panel.cuh) in whole pieces of 16 bytes, as it is sent. */
template <typename T, int Block> struct alignas(16) cuda__lu_message {
    T row[Block];
    T inverse, scale;
    int lead, place;
    uint32_t rest;
};

/* One field of all messages, as if it were an array [2][proposals]. */
template <typename Message, typename Field, Field Message::*field> struct cuda__lu_field {
    struct of_turn {
        Message *messages;

        __device__ __forceinline__ Field &operator[](int i) const
        {
            return messages[i].*field;
        }
    };
    Message (*turns)[CUDA__LU_CLUSTER_MAX];

    __device__ __forceinline__ of_turn operator[](int turn) const
    {
        return of_turn{turns[turn]};
    }
};

/* cuda__lu_proposals of messages, which it borrows. */
template <typename T, int Block> struct cuda__lu_mail {
    typedef cuda__lu_message<T, Block> message;
    cuda__lu_field<message, T[Block], &message::row> row;
    cuda__lu_field<message, T, &message::inverse> inverse;
    cuda__lu_field<message, T, &message::scale> scale;
    cuda__lu_field<message, int, &message::lead> lead;
    cuda__lu_field<message, int, &message::place> place;
    cuda__lu_field<message, uint32_t, &message::rest> rest;

    explicit __device__ __forceinline__ cuda__lu_mail(message (*turns)[CUDA__LU_CLUSTER_MAX])
        : row{turns}, inverse{turns}, scale{turns}, lead{turns}, place{turns}, rest{turns}
    {
    }
};

/* Shared memory; behind it the multipliers, a row of the block a line. */
template <typename T, int Block> struct cuda__lu_cluster_memory {
    static constexpr int m_line = cuda__mma_line<T>::of_factor(Block);
    static constexpr int r_line = cuda__mma_line<T>::of_factor(CUDA__LU_WIDTH_MAX);
    cuda__lu_message<T, Block>
        ours[2][CUDA__LU_CLUSTER_MAX]; /* of the block's warps, double-buffered */
    cuda__lu_message<T, Block> theirs[2][CUDA__LU_CLUSTER_MAX]; /* of the cluster's blocks */
    cuda__signal come[2];            /* when they are there; double-buffered */
    alignas(16) T r[Block * r_line]; /* the chosen rows */
    int chosen[Block];               /* rows of the block; or -1 */

    __device__ __forceinline__ T *m()
    {
        return (T *)(this + 1);
    }
};

/* Bytes of it for so many rows of a block. */
template <typename T, int Block> static inline size_t cuda__lu_cluster_bytes(int rows)
{
    typedef cuda__lu_cluster_memory<T, Block> memory;
    return sizeof(memory) + (size_t)rows * memory::m_line * sizeof(T);
}

/* One block of the cluster. Rows: of a thread. */
template <typename T, int Block, int Rows> struct cuda__lu_cluster {
    typedef cuda__real<T> real;
    typedef typename real::vector vector;
    typedef cuda__lu_cluster_memory<T, Block> memory;
    typedef cuda__mma_tile<T, 2, 2> tile;
    static constexpr int width = real::width;
    static constexpr int r_line = memory::r_line;
    typedef cuda__lu_message<T, Block> message;
    static constexpr int PIECES = (int)sizeof(message) / 16;
    static_assert(CUDA__LU_CLUSTER_WARPS == CUDA__LU_CLUSTER_MAX, "ours are as many as theirs");

    cuda__lu_panel<T, Block, true> mine[Rows];
    memory &shared;
    cuda__lu_view<T> view;
    int n, padded;
    int at, columns;     /* the cluster's */
    int first_row, rows; /* the block's */
    int rank, blocks;    /* in the cluster */
    int warps, warp, lane;
    cuda__address to, come; /* where the thread sends its piece of a message in even steps */

    /* ---- Steps ---- */

    __device__ __forceinline__ void propose(int k, int most)
    {
        cuda__lu_mail<T, Block> ours(shared.ours);
        int best = 0, lead = mine[0].lead(), place = mine[0].place;
        uint32_t rest = real::rest(mine[0].a[0]);
#pragma unroll
        for (int r = 1; r < Rows; r++) {
            int other = mine[r].lead(), there = mine[r].place;
            uint32_t low = real::rest(mine[r].a[0]);
            bool better =
                other > lead || (other == lead && (low > rest || (low == rest && there < place)));
            best = better ? r : best;
            lead = better ? other : lead;
            rest = better ? low : rest;
            place = better ? there : place;
        }
        if (most < 0) { /* no row is left */
            shared.ours[k & 1][warp].lead = -1;
            return;
        }
        if (lane != cuda__lu_first_largest(most, lead, rest, place))
            return;
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            if (best == r)
                mine[r].offer(ours, k, warp);
        }
    }

    /* A thread sends one piece of the block's message to one block. */
    __device__ __forceinline__ void share_out()
    {
        int piece = (int)threadIdx.x % PIECES, other = (int)threadIdx.x / PIECES;
        unsigned block = (unsigned)(other < blocks ? other : 0);
        to = cuda__address_in((unsigned char *)&shared.theirs[0][rank] + 16 * piece, block);
        come = cuda__address_in(&shared.come[0], block);
    }

    /* The block's best proposal goes to all blocks. */
    __device__ __forceinline__ void put_forward(int k)
    {
        int turn = k & 1, piece = (int)threadIdx.x % PIECES;
        if (warp * CUDA__WARP >= blocks * PIECES)
            return;
        int one = mine[0].choose(cuda__lu_mail<T, Block>(shared.ours), k, warps, lane);
        if ((int)threadIdx.x < blocks * PIECES)
            cuda__send(to + turn * (int)sizeof shared.theirs[0],
                       come + turn * (int)sizeof shared.come[0],
                       (const unsigned char *)&shared.ours[turn][one] + 16 * piece);
    }

    __device__ __forceinline__ int seek() const
    {
        int most = mine[0].seek();
#pragma unroll
        for (int r = 1; r < Rows; r++)
            most = max(most, mine[r].seek());
        return most;
    }

    /* What the blocks, or a single block's warps, propose in step k is there; whose is taken. */
    __device__ __forceinline__ int settle(int first, int k)
    {
        if (blocks == 1)
            return mine[0].choose(cuda__lu_mail<T, Block>(shared.ours), k, warps, lane);
        put_forward(k);
        cuda__signal_await(&shared.come[k & 1], (unsigned)(first - at + k) >> 1 & 1);
        return mine[0].choose(cuda__lu_mail<T, Block>(shared.theirs), k, blocks, lane);
    }

    /* `count` steps, from step `first` on. The signals have as many phases behind them as there
     * were pairs of steps. A single block sends nothing. */
    __device__ __forceinline__ void eliminate(int first, int count)
    {
        int most = seek();
        cuda__lu_mail<T, Block> taken(blocks == 1 ? shared.ours : shared.theirs);
#pragma unroll 1
        for (int k = 0; k < count; k++) {
            if (threadIdx.x == 0 && blocks > 1)
                cuda__signal_expect(&shared.come[k & 1], (unsigned)(blocks * (int)sizeof(message)));
            propose(k, most);
            __syncthreads();
            int winner = settle(first, k);
            most = -1;
#pragma unroll
            for (int r = 0; r < Rows; r++)
                most = max(most, mine[r].eliminate(taken, k, first + k, winner));
        }
#pragma unroll
        for (int r = 0; r < Rows; r++)
            mine[r].turn_back(count);
    }

    /* ---- Panels ---- */

    __device__ __forceinline__ bool inside(int r) const
    {
        return r * (int)blockDim.x + (int)threadIdx.x < rows;
    }

    __device__ __forceinline__ void begin()
    {
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            mine[r].steps = cuda__lu_steps<T>{view.pivot, view.order, view.place};
            mine[r].row = first_row + r * (int)blockDim.x + (int)threadIdx.x;
            mine[r].place = inside(r) && mine[r].row < n ? mine[r].row : CUDA__LU_NO_ROW;
        }
    }

    __device__ __forceinline__ void end()
    {
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            if (inside(r))
                view.row_place[mine[r].row] = mine[r].place;
        }
    }

    /* The panel at column `from`; its multipliers go to shared memory: zeros for chosen rows, which
     * take part in no product any more. */
    __device__ __forceinline__ void panel(int from)
    {
        int left = n - from, count = left < Block ? left : Block;
        int *chosen = shared.chosen;
        if ((int)threadIdx.x < Block)
            chosen[threadIdx.x] = -1;
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            mine[r].clear();
            if (inside(r))
                mine[r].read(view.w + (int64_t)mine[r].row * padded + from);
        }
        eliminate(from, count);
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            unsigned q = mine[r].panel_step(from);
            if (q < (unsigned)count)
                chosen[q] = mine[r].row;
            if (!inside(r))
                continue;
            mine[r].write(view.w + (int64_t)mine[r].row * padded + from, 1);
            if (mine[r].place < 0)
                mine[r].clear();
            mine[r].write(shared.m() + (int64_t)(mine[r].row - first_row) * memory::m_line, T(-1));
        }
        __syncthreads();
    }

    /* ---- The other columns ---- */

    /* How many a panel is brought to that begins with number `sub` of the columns. */
    __device__ __forceinline__ int others(int sub) const
    {
        return columns - Block - sub;
    }

    /* Where the first of them is. */
    __device__ __forceinline__ int column(int sub) const
    {
        return at + sub + Block;
    }

    /* The block's chosen rows go to all blocks, with their part of L. A warp a row. */
    __device__ __forceinline__ void give_rows(int sub)
    {
        for (int q = warp; q < Block; q += warps) {
            int row = shared.chosen[q];
            if (row < 0)
                continue;
            const T *from = view.w + (int64_t)row * padded;
            T *to = view.rows + q * columns;
            for (int j = lane * width; j < others(sub); j += CUDA__WARP * width)
                *(vector *)(to + j) = *(const vector *)(from + column(sub) + j);
            if (lane < Block)
                to[columns - Block + lane] = from[at + sub + lane];
        }
    }

    /* Those of all blocks come to shared memory: `count` of them, and zeros. */
    __device__ __forceinline__ void take_rows(int sub, int count)
    {
        int pieces = (others(sub) + Block) / width;
        for (int e = (int)threadIdx.x; e < Block * pieces; e += (int)blockDim.x) {
            int q = e / pieces, j = e % pieces * width;
            j = j < others(sub) ? j : j - others(sub) + columns - Block;
            T *to = shared.r + q * r_line + j;
            if (q < count)
                cuda__copy_async<16>(to, view.rows + q * columns + j);
            else
                *(vector *)to = vector{};
        }
        cuda__copy_arrive();
        __syncthreads();
    }

    /* The chosen rows become L^-1 times those. A thread a column. */
    __device__ __forceinline__ void solve(int sub)
    {
        const T *lower = shared.r + columns - Block;
        for (int j = (int)threadIdx.x; j < others(sub); j += (int)blockDim.x) {
            T x[Block];
#pragma unroll
            for (int q = 0; q < Block; q++) {
                x[q] = shared.r[q * r_line + j];
#pragma unroll
                for (int p = 0; p < q; p++)
                    x[q] = fma(-lower[q * r_line + p], x[p], x[q]);
                shared.r[q * r_line + j] = x[q];
            }
        }
        __syncthreads();
    }

    /* The block's chosen rows come back to W. A warp a row. */
    __device__ __forceinline__ void put_back(int sub)
    {
        for (int q = warp; q < Block; q += warps) {
            int row = shared.chosen[q];
            if (row < 0)
                continue;
            for (int j = lane * width; j < others(sub); j += CUDA__WARP * width)
                *(vector *)(view.w + (int64_t)row * padded + column(sub) + j) =
                    *(const vector *)(shared.r + q * r_line + j);
        }
    }

    /* The block's rows += its multipliers times the chosen rows, a tile a warp. */
    __device__ __forceinline__ void multiply(int sub)
    {
        int count = others(sub),
            across = (count + CUDA__LU_CLUSTER_UNIT - 1) / CUDA__LU_CLUSTER_UNIT;
        int tiles = rows / CUDA__LU_CLUSTER_UNIT * across;
#pragma unroll 1
        for (int t = warp; t < tiles; t += warps) {
            int i0 = t / across * CUDA__LU_CLUSTER_UNIT, j0 = t % across * CUDA__LU_CLUSTER_UNIT;
            T *corner = view.w + (int64_t)(first_row + i0) * padded + column(sub) + j0;
            tile c;
            c.each(lane, [&](int i, int j, T *to) {
                vector piece = {};
                if (j0 + j < count)
                    piece = *(const vector *)(corner + (int64_t)i * padded + j);
                *(vector *)to = piece;
            });
            __syncwarp(); /* the tensor cores want the lanes together */
            c.template multiply<Block>(shared.m() + i0 * memory::m_line, memory::m_line,
                                       shared.r + j0, r_line, lane);
            c.each(lane, [&](int i, int j, T *from) {
                if (j0 + j < count)
                    *(vector *)(corner + (int64_t)i * padded + j) = *(const vector *)from;
            });
        }
    }

    /* What a panel's columns have become is brought to those behind it. */
    __device__ __forceinline__ void bring_panel(int sub)
    {
        int left = n - at - sub;
        give_rows(sub);
        cuda__cluster_sync();
        take_rows(sub, left < Block ? left : Block);
        solve(sub);
        multiply(sub);
        __syncthreads();
        put_back(sub);
        __syncthreads();
    }

    /* ---- All of it ---- */

    __device__ __forceinline__ void run()
    {
        begin();
        share_out();
        if (threadIdx.x < 2)
            cuda__signal_begin(&shared.come[threadIdx.x]);
        cuda__cluster_sync(); /* no block writes to one that has not begun */
#pragma unroll 1
        for (int sub = 0; sub < columns && at + sub < n; sub += Block) {
            panel(at + sub);
            if (others(sub) > 0)
                bring_panel(sub);
        }
        end();
    }
};

/* The columns at .. at + columns - 1; a cluster a matrix. rows: of a block, a multiple of
 * CUDA__LU_CLUSTER_UNIT. */
template <typename T, int Block, int Rows>
static __global__ void __launch_bounds__(CUDA__LU_CLUSTER_THREADS, 1)
    cuda__lu_cluster_kernel(const cuda__lu_chunk chunk, int at, int columns, int rows)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    int first = at + (int)blockIdx.x * rows, left = chunk.padded - first;
    cuda__lu_cluster<T, Block, Rows> cluster = {{},
                                                *(cuda__lu_cluster_memory<T, Block> *)cuda__memory,
                                                view,
                                                chunk.n,
                                                chunk.padded,
                                                at,
                                                columns,
                                                first,
                                                left < 0      ? 0
                                                : left < rows ? left
                                                              : rows,
                                                (int)blockIdx.x,
                                                (int)gridDim.x,
                                                (int)(blockDim.x / CUDA__WARP),
                                                (int)(threadIdx.x / CUDA__WARP),
                                                (int)(threadIdx.x % CUDA__WARP),
                                                {},
                                                {}};
    cluster.run();
}

#endif
