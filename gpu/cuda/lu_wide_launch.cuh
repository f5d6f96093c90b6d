/* gpu/cuda/lu_wide_launch.cuh: the launches that invert or factorise a batch in workspaces
 * (lu_wide.cuh, lu_ends.cuh). Host code, any thread; nothing is awaited.
 *
 * The batch goes through in chunks of as many matrices as there is workspace for. Which kernels
 * run, in which order and with which tiles, depends on n alone.
 */
#ifndef GPU_CUDA_LU_WIDE_LAUNCH_CUH
#define GPU_CUDA_LU_WIDE_LAUNCH_CUH

#include <type_traits>

#include "gpu/cuda/launch.cuh"
#include "gpu/cuda/lu_ends.cuh"
#include "gpu/cuda/lu_wide.cuh"

#define CUDA__LU_CHUNK_MAX 32768 /* of blockIdx.y */

/* A batch on its way. */
template <typename T, bool Factor> struct cuda__lu_journey {
    const cuda_batch &batch;
    cuda__lu_chunk chunk;
    unsigned matrices; /* of the chunk */
    cudaStream_t stream;
    cudaError_t status; /* the first that is not cudaSuccess; nothing is launched after it */

    template <typename... Parameters, typename... Arguments>
    void start(void (*kernel)(Parameters...), int64_t blocks, int threads, size_t shared_bytes,
               const Arguments &...arguments)
    {
        if (status == cudaSuccess)
            status = cuda__start(kernel, dim3((unsigned)blocks, matrices), threads, shared_bytes,
                                 stream, arguments...);
    }

    static constexpr int REFLECTIONS = 2; /* one was enough for every matrix tried */

    static int64_t pieces(int64_t count, int64_t size)
    {
        return (count + size - 1) / size;
    }

    /* ---- Elimination ---- */

    /* f(columns of a panel, warps), as the order's row of the table has them. */
    template <typename F> int with_panel(F f) const
    {
#define CUDA__LU_PRODUCT(type, most, rows, across, warp_rows, warp_columns, blocks)
#define CUDA__LU_PANEL(type, order, block, warps)                                                  \
    if constexpr (std::is_same<type, T>::value) {                                                  \
        if (chunk.padded <= order)                                                                 \
            return f(std::integral_constant<int, block>(), std::integral_constant<int, warps>());  \
    }
#include "gpu/cuda/lu_wide_tuning_h200.cuh"
#undef CUDA__LU_PANEL
#undef CUDA__LU_PRODUCT
        return 0;
    }

    int block() const
    {
        if (chunk.manner.shared)
            return CUDA__LU_STEP_BLOCK;
        return with_panel([](auto columns, auto) { return (int)columns; });
    }

    void shared_panel(int at)
    {
        typedef cuda__lu_proposals<T, CUDA__LU_STEP_BLOCK, CUDA__LU_STEP_WARPS> proposals;
        int left = chunk.n - at, count = left < CUDA__LU_STEP_BLOCK ? left : CUDA__LU_STEP_BLOCK;
        for (int k = 0; k <= count; k++)
            start(cuda__lu_step_kernel<T, Factor>, pieces(chunk.padded, CUDA__LU_STEP_ROWS),
                  CUDA__LU_STEP_ROWS, sizeof(proposals), chunk, at, k);
    }

    void panel(int at)
    {
        if (chunk.manner.shared) {
            shared_panel(at);
            return;
        }
        with_panel([&](auto columns, auto warps) {
            start(cuda__lu_panel_kernel<T, columns, warps, Factor>, 1, warps * CUDA__WARP,
                  sizeof(cuda__lu_proposals<T, columns, warps>), chunk, at);
            return 0;
        });
    }

    template <typename Shape> void product_by(int from, int inner, int at, int columns)
    {
        int64_t tiles = pieces(chunk.padded, Shape::rows) * pieces(columns, Shape::columns);
        start(cuda__lu_product_kernel<Shape>, tiles, Shape::threads, sizeof(typename Shape::shared),
              chunk, from, inner, at, columns);
    }

    void product(int from, int inner, int at, int columns)
    {
#define CUDA__LU_PANEL(type, order, block, warps)
#define CUDA__LU_PRODUCT(type, most, rows, across, warp_rows, warp_columns, blocks)                \
    if constexpr (std::is_same<type, T>::value) {                                                  \
        if (columns <= most)                                                                       \
            return product_by<                                                                     \
                cuda__lu_product_shape<T, rows, across, warp_rows, warp_columns, blocks>>(         \
                from, inner, at, columns);                                                         \
    }
#include "gpu/cuda/lu_wide_tuning_h200.cuh"
#undef CUDA__LU_PANEL
#undef CUDA__LU_PRODUCT
    }

    /* What the columns from .. from + inner - 1 have become is brought to others. */
    void apply(int from, int inner, int at, int columns)
    {
        if (from >= chunk.n || at >= chunk.n)
            return; /* padding */
        if constexpr (Factor)
            start(cuda__lu_solve_kernel<T>, pieces(columns, CUDA__LU_SOLVE_COLUMNS),
                  CUDA__LU_SOLVE_COLUMNS,
                  CUDA__LU_FACTOR_STEP * (CUDA__LU_FACTOR_STEP + CUDA__LU_SOLVE_COLUMNS) *
                      sizeof(T),
                  chunk, from, inner, at, columns);
        else
            start(cuda__lu_gather_kernel<T>, pieces(inner, CUDA__LU_GATHER_ROWS),
                  CUDA__LU_GATHER_ROWS * CUDA__WARP, 0, chunk, from, inner, at, columns);
        product(from, inner, at, columns);
    }

    /* The columns at .. at + columns - 1 by themselves. */
    void eliminate(int at, int columns)
    {
        if (at >= chunk.n)
            return; /* padding */
        if (columns <= block()) {
            panel(at);
            return;
        }
        int left = (int)pieces(pieces(columns, block()), 2) * block();
        eliminate(at, left);
        apply(at, left, at + left, columns - left);
        eliminate(at + left, columns - left);
        if (!Factor)
            apply(at + left, columns - left, at, left);
    }

    void factor()
    {
        for (int at = 0; at < chunk.padded; at += CUDA__LU_FACTOR_STEP) {
            int right = chunk.padded - at - CUDA__LU_FACTOR_STEP;
            eliminate(at, right > 0 ? CUDA__LU_FACTOR_STEP : chunk.padded - at);
            if (right > 0)
                apply(at, CUDA__LU_FACTOR_STEP, at + CUDA__LU_FACTOR_STEP, right);
        }
    }

    /* ---- One chunk ---- */

    void run()
    {
        const int threads = CUDA__LU_THREADS;
        const size_t sums = CUDA__LU_SUMS_NUMBERS * sizeof(T), most = sums;
        int64_t rows = pieces(chunk.n, CUDA__LU_ROWS), strips = pieces(chunk.n, CUDA__LU_STRIP);
        if (chunk.manner.mending)
            start(cuda__lu_pick_kernel<T>, 1, 1, 0, batch, chunk);
        start(cuda__lu_read_kernel<T>, pieces(chunk.padded, CUDA__LU_ROWS), threads, 0, batch,
              chunk);
        start(cuda__lu_sums_kernel<T, false>, strips, threads, sums, chunk);
        start(cuda__lu_prepare_kernel<T>, 1, threads, most, chunk);
        if constexpr (Factor) {
            factor();
            start(cuda__lu_settle_kernel<T>, 1, threads, most, chunk);
            start(cuda__lu_write_factors_kernel<T>, rows, threads, 0, batch, chunk);
        } else {
            start(cuda__lu_scale_kernel<T>, rows, threads, 0, chunk);
            for (int i = 0; chunk.manner.mending && i < REFLECTIONS; i++)
                start(cuda__lu_mix_kernel<T>, rows, threads, 0, chunk, i);
            eliminate(0, chunk.padded);
            start(cuda__lu_settle_kernel<T>, 1, threads, most, chunk);
            for (int i = REFLECTIONS - 1; chunk.manner.mending && i >= 0; i--) {
                start(cuda__lu_mirrored_sums_kernel<T>, strips, threads, sums, chunk, i);
                start(cuda__lu_unmix_kernel<T>, rows, threads, 0, chunk, i);
            }
            start(cuda__lu_sums_kernel<T, true>, strips, threads, sums, chunk);
            start(cuda__lu_write_inverse_kernel<T>, rows, threads, 0, batch, chunk);
            start(cuda__lu_answer_kernel<T>, 1, threads, most, batch, chunk);
            if (chunk.manner.mending)
                start(cuda__lu_refuse_kernel<T>, rows, threads, 0, batch, chunk);
        }
    }
};

/* n up to CUDA_MIDDLE_N_MAX. manner.factor is Factor. */
template <typename T, bool Factor>
static cudaError_t cuda__lu_wide(int64_t n, const cuda_batch &batch, void *space,
                                 size_t space_bytes, cuda__lu_manner manner, cudaStream_t stream)
{
    size_t each = cuda__lu_space_bytes<T>(n, manner);
    int64_t held = (int64_t)(space_bytes / each);
    if (held < 1)
        return cudaErrorMemoryAllocation;
    held = held < CUDA__LU_CHUNK_MAX ? held : CUDA__LU_CHUNK_MAX;
    cuda__lu_chunk chunk = {(unsigned char *)space, each, 0, (int)n, cuda__lu_padded(n), manner};
    cudaError_t status = cudaSuccess;
    for (; chunk.first < batch.matrices && status == cudaSuccess; chunk.first += held) {
        int64_t left = batch.matrices - chunk.first;
        cuda__lu_journey<T, Factor> journey = {batch, chunk, (unsigned)(left < held ? left : held),
                                               stream, cudaSuccess};
        journey.run();
        status = journey.status;
    }
    return status;
}

typedef cudaError_t cuda__lu_wide_launcher(int64_t n, const cuda_batch &batch, void *space,
                                           size_t space_bytes, cuda__lu_manner manner,
                                           cudaStream_t stream);
cuda__lu_wide_launcher cuda__lu_invert_wide_f32, cuda__lu_invert_wide_f64;
cuda__lu_wide_launcher cuda__lu_factor_wide_f32, cuda__lu_factor_wide_f64;

#endif
