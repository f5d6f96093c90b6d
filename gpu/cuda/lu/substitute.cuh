/* gpu/cuda/lu/substitute.cuh: forward and backward substitution with the factors of an inverse by
 * groups (wide.cuh), a panel at a time: by products with the inverse of the panel's triangle of L.
 *
 * Panels are the same for all groups, and so are the operations on a number and their order. So
 * results are bitwise independent of the columns that are taken together.
 *
 * blockIdx.y is the matrix. Cost: see each kernel. Device code.
 */
#ifndef GPU_CUDA_LU_SUBSTITUTE_CUH
#define GPU_CUDA_LU_SUBSTITUTE_CUH

#include "gpu/cuda/lu/space.cuh"

#define CUDA__LU_SUBSTITUTE_WARPS 4
#define CUDA__LU_SUBSTITUTE_THREADS (CUDA__LU_SUBSTITUTE_WARPS * CUDA__WARP)
/* Columns, or rows, of a block: a unit a warp. */
#define CUDA__LU_SUBSTITUTED (CUDA__LU_SUBSTITUTE_WARPS * CUDA__UNIT)

/* f(row, column) for the pieces of 16 bytes of rows x columns numbers. By the whole block. */
template <typename T, typename F>
static __device__ __forceinline__ void cuda__lu_each_piece(int rows, int columns, F f)
{
    constexpr int width = cuda__real<T>::width;
    int across = columns / width;
    for (int e = (int)threadIdx.x; e < rows * across; e += CUDA__LU_SUBSTITUTE_THREADS)
        f(e / across, e % across * width);
}

/* ---- Forward ---- */

/* The rows chosen in the steps from .. from + inner - 1. */
struct cuda__lu_forward_range {
    int from, inner; /* whole panels */
    int left;        /* so many columns, from the first on, are L's */
    int at, columns; /* U's; whole units */
};

/* Distances of rows in shared memory, and bytes of it. The panel's rows of L lie behind those of
 * the panels before it, up to its own columns. */
template <typename T, int Block> struct cuda__lu_forward_memory {
    static constexpr int u_line = cuda__mma_line<T>::of_factor(CUDA__LU_SUBSTITUTED);
    static constexpr int padding = cuda__mma_line<T>::of_factor(Block) - Block;
    static_assert(cuda__mma_line<T>::of_factor(2 * Block) == 2 * Block + padding, "of any panel");

    static __device__ __host__ constexpr int l_line(int panel)
    {
        return (panel + 1) * Block + padding;
    }

    /* Where the panel's rows of L begin. */
    static __device__ __host__ constexpr int l_place(int panel)
    {
        return Block * (panel * (panel + 1) / 2 * Block + panel * padding);
    }

    static constexpr size_t bytes(int inner)
    {
        return (size_t)(inner * u_line + l_place(inner / Block)) * sizeof(T);
    }
};

template <typename T, int Block> struct cuda__lu_forward {
    typedef typename cuda__real<T>::vector vector;
    typedef cuda__lu_forward_memory<T, Block> memory;
    static constexpr int u_line = memory::u_line;

    const cuda__lu_view<T> &view;
    cuda__lu_forward_range of;
    int n, padded;
    T *u, *l;

    /* f(row of the range, column, row of W or NULL) for the pieces of some columns. */
    template <typename F> __device__ __forceinline__ void each(int first, int columns, F f) const
    {
        cuda__lu_each_piece<T>(of.inner, columns, [&](int q, int j) {
            bool some = of.from + q < n;
            T *row = view.w + (int64_t)(some ? view.order[of.from + q] : 0) * padded;
            f(q, j, some ? row + first + j : nullptr);
        });
    }

    __device__ __forceinline__ T *factor(int q, int column) const
    {
        return view.factors + (int64_t)(of.from + q) * padded + column;
    }

    /* The chosen rows' multipliers are L's rows. */
    __device__ __forceinline__ void move(int first, int columns) const
    {
        each(first, columns, [&](int q, int j, T *w) {
            *(vector *)factor(q, first + j) = w ? *(const vector *)w : vector{};
            if (w)
                *(vector *)w = vector{};
        });
    }

    __device__ __forceinline__ void fetch(int panel) const
    {
        T *to = l + memory::l_place(panel);
        cuda__lu_each_piece<T>(Block, (panel + 1) * Block, [&](int i, int j) {
            cuda__copy_async<16>(to + i * memory::l_line(panel) + j,
                                 factor(panel * Block + i, of.from + j));
        });
    }

    /* The panel's rows of U, in the warp's columns. */
    __device__ __forceinline__ void solve(int panel, T *mine, int lane) const
    {
        const T *rows = l + memory::l_place(panel);
        const int l_line = memory::l_line(panel);
        T *own = mine + panel * Block * u_line;
        cuda__mma_tile<T, Block / CUDA__UNIT, 1> tile;
        cuda__mma_load(tile, own, u_line, lane);
        __syncwarp(); /* the tensor cores want the lanes together */
        for (int k = 0; k < panel * Block; k += CUDA__UNIT)
            tile.template multiply<CUDA__UNIT>(rows + k, l_line, mine + k * u_line, u_line, lane);
        cuda__mma_store(tile, own, u_line, lane);
        tile.each(lane, [&](int, int, T *x) { *(vector *)x = vector{}; });
        __syncwarp();
        for (int k = 0; k < Block; k += CUDA__UNIT)
            tile.template multiply<CUDA__UNIT>(rows + panel * Block + k, l_line, own + k * u_line,
                                               u_line, lane);
        __syncwarp();
        cuda__mma_store(tile, own, u_line, lane);
    }

    __device__ __forceinline__ void run(int first, int columns) const
    {
        int warp = (int)threadIdx.x / CUDA__WARP, lane = (int)threadIdx.x % CUDA__WARP;
        T *mine = u + warp * CUDA__UNIT;
        each(first, columns, [&](int q, int j, T *w) {
            if (w)
                cuda__copy_async<16>(u + q * u_line + j, w);
            else
                *(vector *)(u + q * u_line + j) = vector{};
        });
        for (int panel = 0; panel * Block < of.inner; panel++)
            fetch(panel);
        cuda__copy_arrive();
        __syncthreads();
        for (int panel = 0; panel * Block < of.inner && warp * CUDA__UNIT < columns; panel++)
            solve(panel, mine, lane);
        __syncthreads();
        each(first, columns, [&](int q, int j, T *w) {
            *(vector *)factor(q, first + j) = *(const vector *)(u + q * u_line + j);
            if (w)
                *(vector *)w = vector{};
        });
    }
};

/* The chosen rows become rows of the factors, and W loses them: to the left they are moved, to the
 * right multiplied by L^-1. A block takes CUDA__LU_SUBSTITUTED columns. Cost: inner x (left +
 * columns) numbers read and twice that written, and inner^2 / 2 x columns multiplications and
 * additions. */
template <typename T, int Block>
static __global__ void __launch_bounds__(CUDA__LU_SUBSTITUTE_THREADS)
    cuda__lu_forward_kernel(const cuda__lu_chunk chunk, const cuda__lu_forward_range of)
{
    cuda__follow_previous();
    typedef cuda__lu_forward_memory<T, Block> memory;
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    T *u = (T *)cuda__memory;
    cuda__lu_forward<T, Block> forward = {view,         of, chunk.n,
                                          chunk.padded, u,  u + of.inner * memory::u_line};
    constexpr int size = CUDA__LU_SUBSTITUTED;
    int moved = (of.left + size - 1) / size, strip = (int)blockIdx.x;
    if (strip < moved) {
        int first = strip * size, left = of.left - first;
        forward.move(first, left < size ? left : size);
    } else {
        int first = (strip - moved) * size, left = of.columns - first;
        forward.run(of.at + first, left < size ? left : size);
    }
}

/* ---- Backward ---- */

template <typename T, int Block> struct cuda__lu_backward_memory {
    static constexpr int l_line = cuda__mma_line<T>::of_factor(Block);

    static constexpr int x_line(int columns)
    {
        return cuda__mma_line<T>::of_factor(columns);
    }

    /* Where the panel's columns of L begin, which have a row less for each one before them. */
    static __device__ __host__ constexpr int l_place(int panel, int columns)
    {
        return (panel * columns - panel * (panel - 1) / 2 * Block) * l_line;
    }

    static constexpr size_t bytes(int columns)
    {
        return (size_t)(CUDA__LU_SUBSTITUTED * x_line(columns) +
                        l_place(columns / Block, columns)) *
               sizeof(T);
    }
};

template <typename T, int Block> struct cuda__lu_backward {
    typedef typename cuda__real<T>::vector vector;
    typedef cuda__lu_backward_memory<T, Block> memory;
    static constexpr int l_line = memory::l_line;

    const cuda__lu_view<T> &view;
    int padded, at, columns, first_row, rows, x_line;
    T *x, *l;

    /* f(place in W, place in shared memory) for the pieces of the block's rows. */
    template <typename F> __device__ __forceinline__ void each(F f) const
    {
        cuda__lu_each_piece<T>(rows, columns, [&](int i, int j) {
            f(view.w + (int64_t)(first_row + i) * padded + at + j, x + i * x_line + j);
        });
    }

    /* The columns of a panel, from its first row of the factors on. */
    __device__ __forceinline__ void fetch(int panel) const
    {
        T *to = l + memory::l_place(panel, columns);
        const T *from = view.factors + (int64_t)(at + panel * Block) * padded + at + panel * Block;
        cuda__lu_each_piece<T>(columns - panel * Block, Block, [&](int i, int j) {
            cuda__copy_async<16>(to + i * l_line + j, from + (int64_t)i * padded + j);
        });
    }

    /* The panel's columns of the warp's rows. */
    __device__ __forceinline__ void solve(int panel, T *mine, int lane) const
    {
        const T *by = l + memory::l_place(panel, columns);
        T *own = mine + panel * Block;
        cuda__mma_tile<T, 1, Block / CUDA__UNIT> tile;
        cuda__mma_load(tile, own, x_line, lane);
        __syncwarp(); /* the tensor cores want the lanes together */
        for (int k = columns - panel * Block - CUDA__UNIT; k >= Block; k -= CUDA__UNIT)
            tile.template multiply<CUDA__UNIT>(own + k, x_line, by + k * l_line, l_line, lane);
        cuda__mma_store(tile, own, x_line, lane);
        tile.each(lane, [&](int, int, T *to) { *(vector *)to = vector{}; });
        __syncwarp();
        for (int k = 0; k < Block; k += CUDA__UNIT)
            tile.template multiply<CUDA__UNIT>(own + k, x_line, by + k * l_line, l_line, lane);
        __syncwarp();
        cuda__mma_store(tile, own, x_line, lane);
    }

    __device__ __forceinline__ void run() const
    {
        int warp = (int)threadIdx.x / CUDA__WARP, lane = (int)threadIdx.x % CUDA__WARP;
        T *mine = x + warp * CUDA__UNIT * x_line;
        int last = columns / Block - 1;
        each([](const T *global, T *own) { cuda__copy_async<16>(own, global); });
        for (int panel = last; panel >= 0; panel--)
            fetch(panel);
        cuda__copy_arrive();
        __syncthreads();
        for (int panel = last; panel >= 0 && warp * CUDA__UNIT < rows; panel--)
            solve(panel, mine, lane);
        __syncthreads();
        each([](T *global, const T *own) { *(vector *)global = *(const vector *)own; });
    }
};

/* The columns at .. at + columns - 1 are divided by their square of L: whole panels, from the last
 * to the first. A block takes CUDA__LU_SUBSTITUTED rows. Cost: padded x columns numbers read and
 * written, and half of columns times as many multiplications and additions. */
template <typename T, int Block>
static __global__ void __launch_bounds__(CUDA__LU_SUBSTITUTE_THREADS)
    cuda__lu_backward_kernel(const cuda__lu_chunk chunk, int at, int columns, int x_line)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    cuda__follow_previous();
    cuda__lu_view<T> view = cuda__lu_view_of<T>(chunk);
    if (cuda__lu_rests(chunk, view))
        return;
    int first = (int)blockIdx.x * CUDA__LU_SUBSTITUTED, left = chunk.padded - first;
    int rows = left < CUDA__LU_SUBSTITUTED ? left : CUDA__LU_SUBSTITUTED;
    T *x = (T *)cuda__memory;
    cuda__lu_backward<T, Block> backward = {
        view, chunk.padded, at, columns, first, rows, x_line, x, x + CUDA__LU_SUBSTITUTED * x_line};
    backward.run();
}

#endif
