/* gpu/cuda/tridiagonal/kernels.cu: the kernels of `tridiagonal` in one precision, and their
 * launches. */
#include "gpu/cuda/base/by_precision.cuh"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/tridiagonal/device.cuh"
#include "gpu/cuda/tridiagonal/serial.cuh"
#include "gpu/cuda/tridiagonal/solve.cuh"
#include "gpu/cuda/tridiagonal/write.cuh"
#include "gpu/cuda/tuning/h200/tridiagonal.h"
#include "gpu/cuda/tridiagonal/warps.cuh"

/* ---- Strips ---- */

/* Writes X from its lines where rows begin at multiples of 16 bytes: wide strips of a warp's
 * rows, a block of threads each, of which a device holds many at once.
 *
 * The rows' numbers are in shared memory, a thread's columns in registers; an entry is one
 * multiplication, in double, rounded once. What write.cuh has for other cases is not here, for
 * its registers: entries whose exponents range too far are put together one by one, by the threads
 * that have them.
 *
 * Cost: for 16 bytes a thread some 25 instructions in double.
 */

#define CUDA__TRI_STRIP_THREADS 256
#define CUDA__TRI_STRIP_ROWS CUDA__WARP

struct cuda__tri_strip_memory {
    __align__(16) double row[CUDA__TRI_STRIP_ROWS][2]; /* by sides */
    double diagonal[CUDA__TRI_STRIP_ROWS];
    int64_t scale[2];
    int fits[2];
};

template <typename T> struct cuda__tri_strip {
    typedef typename cuda__real<T>::vector vector;
    static constexpr int width = cuda__real<T>::width;
    static constexpr int step = CUDA__TRI_STRIP_THREADS * width;

    const cuda__tri_call &call;
    const cuda__tri_part &part;
    cuda__tri_strip_memory *memory;
    T *x;
    int64_t first_row, end_row, column; /* of this thread's 16 bytes */

    static inline __host__ __device__ int64_t across(int64_t columns)
    {
        return (columns + step - 1) / step;
    }

    /* Strips of X. */
    static inline __host__ __device__ int64_t number(const cuda__tri_call &call)
    {
        int64_t rows = call.rows.end - call.rows.first;
        return across(call.columns.end - call.columns.first) *
               ((rows + CUDA__TRI_STRIP_ROWS - 1) / CUDA__TRI_STRIP_ROWS);
    }

    __device__ __forceinline__ void place(int64_t strip)
    {
        const int64_t adjacent = across(call.columns.end - call.columns.first);
        first_row = call.rows.first + strip / adjacent * CUDA__TRI_STRIP_ROWS;
        end_row = first_row + CUDA__TRI_STRIP_ROWS;
        end_row = end_row < call.rows.end ? end_row : call.rows.end;
        column = call.columns.first + strip % adjacent * step + threadIdx.x * width;
    }

    /* A warp brings the rows' numbers of a side to shared memory, as doubles. */
    __device__ __forceinline__ void share_rows(int side) const
    {
        const int lane = threadIdx.x % CUDA__WARP;
        const int64_t i = first_row + lane;
        const cuda__number row =
            i < end_row ? part.line(cuda__tri_row_line(side))[i] : cuda__number{0, 0};
        const int64_t base = __shfl_sync(CUDA__ALL, row.exponent, 0);
        const int own = row.mantissa != 0 ? cuda__tri_clamp(row.exponent - base) : INT32_MIN;
        const int most = __reduce_max_sync(CUDA__ALL, own);
        const int64_t scale = base + (most == INT32_MIN ? 0 : most) + CUDA__TRI_ROW_TOP;
        double value = 0;
        const bool fits = cuda__tri_flatten_row(row, scale, &value);
        memory->row[lane][side] = value;
        const bool all = __all_sync(CUDA__ALL, fits);
        if (lane == 0) {
            memory->scale[side] = scale;
            memory->fits[side] = all;
        }
    }

    __device__ __forceinline__ bool is_wanted(int side) const
    {
        return column < call.columns.end &&
               (side == CUDA__TRI_ABOVE ? column + width - 1 > first_row : column < end_row - 1);
    }

    /* The numbers of this thread's columns on the side, or zeros where the strip needs none. */
    __device__ __forceinline__ void fetch_columns(int side, cuda__number *to) const
    {
        const cuda__number *line = part.line(cuda__tri_column_line(side)) + column;
        const bool wanted = is_wanted(side);
#pragma unroll
        for (int c = 0; c < width; c++)
            to[c] = wanted ? line[c] : cuda__number{0, 0};
    }

    __device__ __forceinline__ bool flatten(int side, const cuda__number *from, double *to) const
    {
        bool fits = memory->fits[side];
        const int64_t scale = memory->scale[side];
#pragma unroll
        for (int c = 0; c < width; c++)
            fits = cuda__tri_flatten_column(from[c], scale, &to[c]) && fits;
        return fits;
    }

    __device__ __forceinline__ void write_products(const double *above, const double *under) const
    {
        const int64_t length = call.columns.end - call.columns.first;
        const int rows = (int)(end_row - first_row);
        const int beyond = (int)(first_row - column); /* of the diagonal, from the first */
        T *to = x + (first_row - call.rows.first) * length + (column - call.columns.first);
        if (column >= call.columns.end)
            return;
#pragma unroll 4
        for (int k = 0; k < rows; k++, to += length) {
            const double up = memory->row[k][CUDA__TRI_ABOVE];
            const double down = memory->row[k][CUDA__TRI_UNDER];
            const int at = beyond + k;
            T values[width];
#pragma unroll
            for (int c = 0; c < width; c++)
                values[c] = (T)((at < c ? up : down) * (at < c ? above[c] : under[c]));
            if (at >= 0 && at < width) {
                const T diagonal = (T)memory->diagonal[k];
#pragma unroll
                for (int c = 0; c < width; c++)
                    values[c] = at == c ? diagonal : values[c];
            }
            cuda__store_stream((vector *)to, values);
        }
    }

    /* Entry by entry: find(i, j) gives them. */
    template <typename F> __device__ __forceinline__ void write_each(F find) const
    {
        const int64_t length = call.columns.end - call.columns.first;
#pragma unroll 1
        for (int64_t i = first_row; i < end_row; i++) {
#pragma unroll 1
            for (int64_t j = column; j < column + width && j < call.columns.end; j++)
                x[(i - call.rows.first) * length + (j - call.columns.first)] = find(i, j);
        }
    }

    __device__ __forceinline__ void write_nan() const
    {
        write_each([](int64_t, int64_t) { return cuda__real<T>::nan(); });
    }

    /* By all threads of the block, from lines. */
    __device__ __forceinline__ void write_lines() const
    {
        const int warp = threadIdx.x / CUDA__WARP, lane = threadIdx.x % CUDA__WARP;
        cuda__number above_numbers[width], under_numbers[width];
        double above[width], under[width];
        fetch_columns(CUDA__TRI_ABOVE, above_numbers);
        fetch_columns(CUDA__TRI_UNDER, under_numbers);
        if (warp < 2)
            share_rows(warp);
        if (warp == 2 && first_row + lane < end_row)
            memory->diagonal[lane] = part.diagonal()[first_row + lane];
        __syncthreads();
        const bool fits = flatten(CUDA__TRI_ABOVE, above_numbers, above);
        if (flatten(CUDA__TRI_UNDER, under_numbers, under) && fits && (uintptr_t)x % 16 == 0)
            write_products(above, under);
        else
            write_each([&](int64_t i, int64_t j) { return (T)cuda__tri_entry(part, i, j); });
    }
};

template <typename T, int Threads, bool Few, bool Merged>
static __device__ __forceinline__ void cuda__tri_write(const cuda__tri_call &call, int64_t slot,
                                                       int64_t tile, cuda__tri_tiles tiles,
                                                       cuda__tri_write_memory *memory)
{
    cuda__tri_part part = cuda__tri_find_part(call, slot);
    cuda__tri_answer answer = *part.answer();
    if (!answer.x)
        return;
    cuda__tri_writer<T, Threads, Few, Merged> writer = {
        call, part, memory, {call, tiles, (int)threadIdx.x, 1}};
    writer.write(tile, answer);
}

#define CUDA__TRI_BEGINNERS 4 /* blocks of a chunk: by rows and by columns, down and up */

/* What each chunk of rows multiplies by: for dominance by rows and for dominance by columns, from
 * above and from below. */
template <typename T, int Threads>
static __global__ __launch_bounds__(Threads) void cuda__tri_begin_kernel(const cuda__tri_call call)
{
    __shared__ cuda__tri_memory<Threads> memory;
    int64_t chunks = cuda__tri_chunks(call.n, Threads);
    cuda__release_next();
    for (int64_t k = blockIdx.x; k < CUDA__TRI_BEGINNERS * chunks * call.count; k += gridDim.x) {
        int64_t chunk = k / CUDA__TRI_BEGINNERS, matrix = chunk / chunks;
        cuda__tri_solver<T, Threads>(call, matrix, matrix, &memory)
            .begin_chunk(chunk % chunks, k % 2 == 0, k / 2 % 2 == 1);
        __syncthreads();
    }
}

/* The O(n) numbers: a block a chunk, and the last of them for the whole matrix. */
template <typename T, int Threads>
static __global__ __launch_bounds__(Threads) void cuda__tri_end_kernel(const cuda__tri_call call)
{
    __shared__ cuda__tri_memory<Threads> memory;
    int64_t chunks = cuda__tri_chunks(call.n, Threads);
    cuda__release_next();
    cuda__wait_for_previous();
    for (int64_t k = blockIdx.x; k < chunks * call.count; k += gridDim.x) {
        int64_t matrix = k / chunks;
        cuda__tri_solver<T, Threads>(call, matrix, matrix, &memory).end_chunk(k % chunks);
        __syncthreads();
    }
}

/* `sherman_morrison`'s levels above chunks: a block a chunk. */
template <typename T, int Threads>
static __global__ __launch_bounds__(Threads) void cuda__tri_join_kernel(const cuda__tri_call call)
{
    __shared__ cuda__tri_memory<Threads> memory;
    int64_t chunks = cuda__tri_chunks(call.n, Threads);
    cuda__release_next();
    cuda__wait_for_previous();
    for (int64_t k = blockIdx.x; k < chunks * call.count; k += gridDim.x) {
        int64_t matrix = k / chunks;
        cuda__tri_solver<T, Threads>(call, matrix, matrix, &memory).join_chunk(k % chunks);
        __syncthreads();
    }
}

/* X: a block a tile. */
template <typename T, int Threads>
static __global__ __launch_bounds__(Threads) void cuda__tri_write_kernel(const cuda__tri_call call,
                                                                         cuda__tri_tiles tiles)
{
    __shared__ cuda__tri_write_memory memory;
    int64_t all = call.count * tiles.number;
    cuda__wait_for_previous();
    for (int64_t t = blockIdx.x; t < all; t += gridDim.x) {
        cuda__tri_write<T, Threads, false, true>(call, t / tiles.number, t % tiles.number, tiles,
                                                 &memory);
        __syncthreads();
    }
}

/* Middle orders (warps.cuh): a chunk's scans, by so many threads of a block. */
template <typename T>
static __device__ __forceinline__ void cuda__tri_scan(const cuda__tri_call &call, int64_t k,
                                                      int thread, cuda__tri_band<CUDA__WARP> *band)
{
    const int64_t all = cuda__tri_warp_chunks(call.n), matrix = k / all, chunk = k % all;
    int64_t within;
    if (matrix < call.count) {
        const cuda_tensors *item = cuda__tri_find(call, call.first + matrix, &within);
        cuda__tri_load_rows<T>(item, within, call.n, chunk * CUDA__WARP, thread,
                               CUDA__TRI_SCAN_THREADS, band);
    }
    __syncthreads();
    if (matrix < call.count)
        cuda__tri_scan_rows(cuda__tri_find_part(call, matrix), *band, call.n, chunk,
                            thread / CUDA__WARP);
}

/* As much shared memory as the next kernel's: a multiprocessor that divides its cache otherwise
 * would have to be empty before that one begins. Threads: of the next one. */
template <int Threads> union cuda__tri_scan_memory {
    cuda__tri_memory<Threads> solve;
    cuda__tri_band<CUDA__WARP> bands[Threads / CUDA__TRI_SCAN_THREADS];
    struct {
        cuda__tri_memory<Threads> solve;
        cuda__tri_line_memory lines;
    } next;
};

template <typename T, int Threads>
static __global__
__launch_bounds__(CUDA__TRI_SCAN_THREADS) void cuda__tri_scan_kernel(const cuda__tri_call call)
{
    __shared__ cuda__tri_scan_memory<Threads> memory;
    cuda__release_next();
    cuda__tri_scan<T>(call, blockIdx.x, threadIdx.x, &memory.bands[0]);
}

/* The same by the first `scans` blocks, and the merging of chunks of a block's rows by those behind
 * them. */
template <typename T, int Threads>
static __global__ __launch_bounds__(Threads) void cuda__tri_merge_kernel(const cuda__tri_call call,
                                                                         int64_t scans)
{
    constexpr int held = Threads / CUDA__TRI_SCAN_THREADS;
    __shared__ cuda__tri_scan_memory<Threads> memory;
    cuda__release_next();
    if (blockIdx.x < scans) {
        const int which = threadIdx.x / CUDA__TRI_SCAN_THREADS;
        cuda__tri_scan<T>(call, blockIdx.x * (int64_t)held + which,
                          threadIdx.x % CUDA__TRI_SCAN_THREADS, &memory.bands[which]);
        return;
    }
    const int64_t k = blockIdx.x - scans, chunks = cuda__tri_chunks(call.n, Threads);
    cuda__tri_solver<T, Threads>(call, k / chunks, k / chunks, &memory.solve)
        .begin_merging(k % chunks);
}

/* The lines, `held` chunks a block; by the blocks behind `lines`, the levels of the merging above
 * its chunks. And the report. */
template <typename T, int Threads>
static __global__ __launch_bounds__(Threads,
                                    2) void cuda__tri_line_kernel(const cuda__tri_call call,
                                                                  int64_t lines, int held)
{
    __shared__ cuda__tri_memory<Threads> memory;
    __shared__ cuda__tri_line_memory line_memory;
    const bool merges = call.variant == METHOD_TRIDIAGONAL_SHERMAN_MORRISON,
               joins = blockIdx.x >= lines;
    const int64_t all = cuda__tri_warp_chunks(call.n), blocks = (all + held - 1) / held;
    const int64_t above = merges ? cuda__tri_chunks(call.n, Threads) : 0;
    const int64_t of = joins ? above : blocks, k = blockIdx.x - (joins ? lines : 0);
    cuda__tri_solver<T, Threads> solver(call, k / of, k / of, &memory);
    const cuda__tri_liner<T, Threads> liner = {solver, &line_memory, k % of * held, held, all};
    if (!joins)
        liner.load();
    cuda__wait_for_previous();
    cuda__release_next();
    if (joins)
        liner.join(k % of, blocks + above);
    else
        liner.run(blocks + above);
}

/* What is to be written before the answer is there: X by lines, once these are. */
template <typename T>
static __device__ __forceinline__ cuda__tri_answer cuda__tri_foresee(const cuda__tri_call &call,
                                                                     int64_t slot)
{
    int64_t within;
    const cuda_tensors *item = cuda__tri_find(call, call.first + slot, &within);
    cuda__tri_answer answer = {};
    answer.x = cuda__tri_start_of<T>(call, item, within);
    answer.form = CUDA__TRI_BY_LINES;
    if (!cuda__tri_await(cuda__tri_find_part(call, slot), cuda__tri_warp_chunks(call.n))) {
        cuda__wait_for_previous();
        answer = *cuda__tri_find_part(call, slot).answer();
    }
    return answer;
}

/* X, from such lines: a block a tile. */
template <typename T, int Threads>
static __global__ __launch_bounds__(Threads) void cuda__tri_fill_kernel(const cuda__tri_call call,
                                                                        cuda__tri_tiles tiles)
{
    __shared__ cuda__tri_write_memory memory;
    const unsigned slot = blockIdx.x / (unsigned)tiles.number;
    const cuda__tri_part part = cuda__tri_find_part(call, slot);
    const cuda__tri_answer answer = cuda__tri_foresee<T>(call, slot);
    cuda__tri_writer<T, Threads, false, false> writer = {
        call, part, &memory, {call, tiles, (int)threadIdx.x, 1}};
    if (answer.x)
        writer.write(blockIdx.x % (unsigned)tiles.number, answer);
    cuda__wait_for_previous(); /* and so does all that is behind this kernel */
}

/* The same where rows begin alike: a block a strip. */
template <typename T>
static __global__
__launch_bounds__(CUDA__TRI_STRIP_THREADS,
                  CUDA__TRI_STRIP_BLOCKS) void cuda__tri_strip_kernel(const cuda__tri_call call,
                                                                      unsigned strips)
{
    __shared__ cuda__tri_strip_memory memory;
    const unsigned slot = blockIdx.x / strips;
    const cuda__tri_part part = cuda__tri_find_part(call, slot);
    const cuda__tri_answer answer = cuda__tri_foresee<T>(call, slot);
    cuda__tri_strip<T> strip = {call, part, &memory, (T *)answer.x, 0, 0, 0};
    strip.place(blockIdx.x % strips);
    if (answer.x && answer.form == CUDA__TRI_BY_LINES)
        strip.write_lines();
    else if (answer.x)
        strip.write_nan();
    cuda__wait_for_previous(); /* and so does all that is behind this kernel */
}

template <int Threads, int Each> union cuda__tri_small_memory {
    cuda__tri_memory<Threads, Each> solve;
    cuda__tri_write_memory write;
};

/* Small dominant matrices, `held` a block; the others are left. */
template <typename T>
static __global__
__launch_bounds__(CUDA__TRI_SERIAL_THREADS,
                  CUDA__TRI_SERIAL_BLOCKS) void cuda__tri_serial_kernel(const cuda__tri_call call,
                                                                        cuda__tri_tiles tiles,
                                                                        int held)
{
    extern __shared__ __align__(16) unsigned char cuda__memory[];
    const int n = (int)call.n;
    const int64_t first = (int64_t)blockIdx.x * held;
    cuda__tri_serial_place *places = (cuda__tri_serial_place *)cuda__memory;
    cuda__tri_serial<T> block = {call,
                                 tiles,
                                 places,
                                 (double *)(places + held),
                                 first,
                                 call.count - first < held ? (int)(call.count - first) : held,
                                 n,
                                 (int)threadIdx.x % CUDA__WARP,
                                 (int)threadIdx.x / CUDA__WARP};
    cuda__release_next();
    block.run();
}

/* Both: a block a matrix, and its own part of the workspace for all of them. Of what is left. */
template <typename T, int Threads, int Each>
static __global__
__launch_bounds__(Threads, CUDA__TRI_SMALL_THREADS /
                               Threads) void cuda__tri_small_kernel(const cuda__tri_call call,
                                                                    cuda__tri_tiles tiles)
{
    __shared__ cuda__tri_small_memory<Threads, Each> memory;
    cuda__wait_for_previous();
    int64_t share = (call.count + gridDim.x - 1) / gridDim.x, first = blockIdx.x * share;
    for (int64_t k = first; k < first + share && k < call.count; k++) {
        if (call.left && !call.left[k])
            continue;
        const double *found = call.found ? call.found + k * (call.n + 1) : nullptr;
        cuda__tri_solver<T, Threads, Each> solver(call, k, blockIdx.x, &memory.solve);
        if (!found || !(found[0] >= 0) || !solver.run_merging(found))
            solver.run();
        __syncthreads();
        for (int64_t tile = 0; tile < tiles.number; tile++) {
            cuda__tri_write<T, Threads, true, Each == 1>(call, blockIdx.x, tile, tiles,
                                                         &memory.write);
            __syncthreads();
        }
    }
}

static inline unsigned cuda__tri_grid(int64_t blocks)
{
    return (unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX);
}

template <typename T, int Threads, int Each>
static cudaError_t cuda__tri_start_small(const cuda__tri_call &call, cudaStream_t stream)
{
    cuda__tri_tiles tiles = cuda__tri_cut<T>(call.rows, call.columns, Threads,
                                             cuda__tridiagonal_tuning<T>::small_steps);
    int64_t blocks = call.parts < call.count ? call.parts : call.count;
    return cuda__follow(cuda__tri_small_kernel<T, Threads, Each>, cuda__tri_grid(blocks), Threads,
                        0, (call.left || call.found) && cuda__overlaps(), stream, call, tiles);
}

/* Matrices of so many rows, or fewer. */
template <typename T, int Rows>
static cudaError_t cuda__tri_launch_small(const cuda__tri_call &call, cudaStream_t stream)
{
    constexpr int each = cuda__tridiagonal_tuning<T>::each(Rows);
    return call.variant == METHOD_TRIDIAGONAL_SHERMAN_MORRISON
               ? cuda__tri_start_small<T, Rows, 1>(call, stream)
               : cuda__tri_start_small<T, Rows / each, each>(call, stream);
}

/* The O(n) numbers of large orders by two kernels, or three. */
template <typename T, int Threads>
static cudaError_t cuda__tri_start_chunks(const cuda__tri_call &call, bool overlaps,
                                          cudaStream_t stream)
{
    const int64_t chunks = cuda__tri_chunks(call.n, Threads);
    const unsigned grid = cuda__tri_grid(chunks * call.count);
    cudaError_t status = cuda__start(cuda__tri_begin_kernel<T, Threads>,
                                     cuda__tri_grid(CUDA__TRI_BEGINNERS * chunks * call.count),
                                     Threads, 0, stream, call);
    if (status == cudaSuccess)
        status = cuda__follow(cuda__tri_end_kernel<T, Threads>, grid, Threads, 0, overlaps, stream,
                              call);
    if (status == cudaSuccess && cuda__tri_joins(call.variant, chunks, Threads))
        status = cuda__follow(cuda__tri_join_kernel<T, Threads>, grid, Threads, 0, overlaps, stream,
                              call);
    return status;
}

/* The O(n) numbers of middle orders by two kernels. */
template <typename T, int Threads>
static cudaError_t cuda__tri_start_warps(const cuda__tri_call &call, bool overlaps,
                                         cudaStream_t stream)
{
    const bool merges = call.variant == METHOD_TRIDIAGONAL_SHERMAN_MORRISON;
    const int64_t chunks = cuda__tri_warp_chunks(call.n), all = chunks * call.count;
    const int64_t joins = merges ? cuda__tri_chunks(call.n, Threads) * call.count : 0;
    const int64_t fit = Threads / CUDA__TRI_SCAN_THREADS, scans = (all + fit - 1) / fit;
    const int held = all <= cuda__multiprocessors() ? 1 : CUDA__TRI_LINE_CHUNKS;
    const int64_t lines = (chunks + held - 1) / held * call.count;
    cudaError_t status =
        merges ? cuda__start(cuda__tri_merge_kernel<T, Threads>, cuda__tri_grid(scans + joins),
                             Threads, 0, stream, call, scans)
               : cuda__start(cuda__tri_scan_kernel<T, Threads>, cuda__tri_grid(all),
                             CUDA__TRI_SCAN_THREADS, 0, stream, call);
    if (status != cudaSuccess)
        return status;
    return cuda__follow(cuda__tri_line_kernel<T, Threads>, cuda__tri_grid(lines + joins), Threads,
                        0, overlaps, stream, call, lines, held);
}

/* X, behind them. */
template <typename T>
static cudaError_t cuda__tri_start_write(const cuda__tri_call &call, bool is_middle, bool overlaps,
                                         cudaStream_t stream)
{
    constexpr int threads = CUDA__TRI_WRITE_THREADS;
    typedef cuda__tridiagonal_tuning<T> tuning;
    const bool merges = call.variant == METHOD_TRIDIAGONAL_SHERMAN_MORRISON;
    const bool is_shifted =
        (call.columns.end - call.columns.first) % cuda__tri_tile<T, threads>::unit != 0;
    const int steps = merges       ? tuning::level_steps
                      : is_shifted ? tuning::shifted_steps
                                   : tuning::line_steps;
    const cuda__tri_tiles tiles = cuda__tri_cut<T>(call.rows, call.columns, threads, steps);
    const unsigned grid = cuda__tri_grid(call.count * tiles.number);
    const int64_t strips = cuda__tri_strip<T>::number(call);
    if (!is_middle || merges)
        return cuda__follow(cuda__tri_write_kernel<T, threads>, grid, threads, 0, overlaps, stream,
                            call, tiles);
    return is_shifted
               ? cuda__follow(cuda__tri_fill_kernel<T, threads>, grid, threads, 0, overlaps, stream,
                              call, tiles)
               : cuda__follow(cuda__tri_strip_kernel<T>, cuda__tri_grid(call.count * strips),
                              CUDA__TRI_STRIP_THREADS, 0, overlaps, stream, call, (unsigned)strips);
}

/* For as many matrices as there are parts at a time, and as a grid has blocks for. */
template <typename T>
static cudaError_t cuda__tri_launch_large(cuda__tri_call call, cudaStream_t stream)
{
    constexpr int solvers = CUDA__TRI_SOLVE_THREADS;
    const bool overlaps = cuda__overlaps(), is_middle = call.n <= CUDA__TRI_WARP_N_MAX;
    const int64_t end = call.first + call.count;
    int64_t most = is_middle ? INT32_MAX / (call.n * call.n) : INT32_MAX;
    cudaError_t status = cudaSuccess;
    most = call.parts < most ? call.parts : most;
    for (; status == cudaSuccess && call.first < end; call.first += call.count) {
        call.count = end - call.first < most ? end - call.first : most;
        status = is_middle ? cuda__tri_start_warps<T, solvers>(call, overlaps, stream)
                           : cuda__tri_start_chunks<T, solvers>(call, overlaps, stream);
        if (status == cudaSuccess && call.writes)
            status = cuda__tri_start_write<T>(call, is_middle, overlaps, stream);
    }
    return status;
}

/* As many matrices a block as its memory holds, or as there are for all blocks. */
template <typename T>
static cudaError_t cuda__tri_start_serial(const cuda__tri_call &call, cudaStream_t stream)
{
    const int n = (int)call.n;
    cuda__tri_tiles tiles =
        cuda__tri_cut<T>(call.rows, call.columns, CUDA__WARP, CUDA__TRI_SERIAL_STEPS);
    int most = CUDA__TRI_SERIAL_BYTES / cuda__tri_serial_bytes(n);
    const int64_t blocks = CUDA__TRI_SERIAL_BLOCKS * cuda__multiprocessors();
    int64_t held = (call.count + blocks - 1) / blocks;
    most = most < CUDA__WARP ? most : CUDA__WARP;
    held = held < most ? held : most;
    return cuda__start(cuda__tri_serial_kernel<T>, cuda__tri_grid((call.count + held - 1) / held),
                       CUDA__TRI_SERIAL_THREADS, (size_t)(held * cuda__tri_serial_bytes(n)), stream,
                       call, tiles, (int)held);
}

/* Matrices of so many rows, or fewer. */
template <typename T, int Rows>
static cudaError_t cuda__tri_launch_serial(cuda__tri_call call, cudaStream_t stream)
{
    const bool is_serial = call.left || call.found;
    int64_t end = call.first + call.count;
    int64_t most = call.parts * (call.found ? CUDA__TRI_FOUND_HELD : CUDA__TRI_LEFT_BYTES);
    cudaError_t status = cudaSuccess;
    for (; status == cudaSuccess && call.first < end; call.first += call.count) {
        call.count = is_serial && end - call.first > most ? most : end - call.first;
        if (is_serial)
            status = cuda__tri_start_serial<T>(call, stream);
        if (status == cudaSuccess)
            status = cuda__tri_launch_small<T, Rows>(call, stream);
    }
    return status;
}

template <typename T>
static cudaError_t cuda__tri_launch(const cuda__tri_call &call, cudaStream_t stream)
{
    if (call.n <= 64)
        return cuda__tri_launch_serial<T, 64>(call, stream);
    if (call.n <= 128)
        return cuda__tri_launch_serial<T, 128>(call, stream);
    if (call.n <= 256)
        return cuda__tri_launch_small<T, 256>(call, stream);
    if (call.n <= CUDA__TRI_BLOCK_N_MAX)
        return cuda__tri_launch_small<T, CUDA__TRI_BLOCK_N_MAX>(call, stream);
    return cuda__tri_launch_large<T>(call, stream);
}

cudaError_t R(cuda__tri_launch)(const struct cuda__tri_call *call, cudaStream_t stream)
{
    return cuda__tri_launch<REAL>(*call, stream);
}

#if REAL_BITS == 64 /* of either precision: the O(n) numbers are FP64 */
int64_t cuda__tri_part_bytes(int64_t n, int levels)
{
    int64_t arrays = levels > 0 ? (int)CUDA__TRI_MERGERS + 2 * levels : (int)CUDA__TRI_ARRAYS;
    int64_t row_bytes = arrays * (int64_t)sizeof(double);
    if (n > CUDA__TRI_BLOCK_N_MAX)
        row_bytes += CUDA__TRI_TAIL_BYTES;
    return CUDA__TRI_ANSWER_BYTES + cuda__tri_pitch(n) * row_bytes;
}
#endif
