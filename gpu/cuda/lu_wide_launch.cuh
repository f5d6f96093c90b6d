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
#include "gpu/cuda/lu_cluster_launch.cuh"
#include "gpu/cuda/lu_ends.cuh"
#include "gpu/cuda/lu_wide.cuh"
#include "gpu/cuda/product.h"

#define CUDA__LU_CHUNK_MAX 32768 /* of blockIdx.y */

/* A batch on its way. */
template <typename T, bool Factor> struct cuda__lu_journey {
    const cuda_batch &batch;
    cuda__lu_chunk chunk;
    unsigned matrices; /* of the chunk */
    cudaStream_t stream;
    struct cuda_products *products;
    int blocks;         /* of a cluster; 0: no clusters */
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

    /* ---- Elimination by clusters ---- */

    void note(cudaError_t result)
    {
        status = status == cudaSuccess ? result : status;
    }

    struct cuda_matrices lying(T *first) const
    {
        return cuda_matrices{first, chunk.padded, (int64_t)(chunk.stride / sizeof(T))};
    }

    /* C += M R for some columns, M being `inner` columns from `from` on, or LU's multipliers. */
    void cluster_product(int from, int inner, int at, int columns)
    {
        cuda__lu_view<T> view;
        cuda__lu_lay_out(view, chunk.space, chunk.n, chunk.padded, chunk.manner);
        struct cuda_product product = {};
        product.precision = sizeof(T) == sizeof(float) ? PRECISION_FP32 : PRECISION_FP64;
        product.rows = chunk.n;
        product.columns = columns;
        product.inner = inner;
        product.alpha = product.beta = 1;
        product.a = lying(view.w + from);
        if (Factor) {
            product.a.at = cuda__lu_multipliers(view, chunk.padded, chunk.manner.width, from);
            product.a.stride = chunk.manner.width;
        }
        product.b = lying(view.r + at);
        product.c = lying(view.w + at);
        product.count = matrices;
        if (status == cudaSuccess)
            note(cuda_product(products, &product, stream));
    }

    /* The rows chosen in `inner` columns from `from` on go to R, in the columns from `at` on. */
    void collect(int from, int inner, int at, int columns)
    {
        if (columns > 0)
            start(cuda__lu_collect_kernel<T>,
                  pieces(inner, CUDA__LU_GATHER_ROWS) * pieces(columns, CUDA__LU_COLLECT_COLUMNS),
                  CUDA__LU_GATHER_ROWS * CUDA__WARP, 0, chunk, from, inner, at, columns);
    }

    /* R += lower R: what the CUDA__LU_SOLVED rows from `first` on are to those behind them. */
    void solve_product(int first, int inner, int at, int columns)
    {
        cuda__lu_view<T> view;
        cuda__lu_lay_out(view, chunk.space, chunk.n, chunk.padded, chunk.manner);
        int64_t below = first + CUDA__LU_SOLVED;
        struct cuda_product product = {};
        product.precision = sizeof(T) == sizeof(float) ? PRECISION_FP32 : PRECISION_FP64;
        product.rows = inner - below;
        product.columns = columns;
        product.inner = CUDA__LU_SOLVED;
        product.alpha = product.beta = 1;
        product.a = lying(view.lower + below * chunk.manner.width + first);
        product.a.stride = chunk.manner.width;
        product.b = lying(view.r + (int64_t)first * chunk.padded + at);
        product.c = lying(view.r + below * chunk.padded + at);
        product.count = matrices;
        if (status == cudaSuccess)
            note(cuda_product(products, &product, stream));
    }

    /* LU: R = L^-1 R, and the chosen rows of W become that. */
    void solve(int from, int inner, int at, int columns)
    {
        for (int first = 0; first < inner; first += CUDA__LU_SOLVED) {
            int left = inner - first, rows = left < CUDA__LU_SOLVED ? left : CUDA__LU_SOLVED;
            start(cuda__lu_solve_rows_kernel<T>, pieces(columns, CUDA__LU_SOLVE_COLUMNS),
                  CUDA__LU_SOLVE_COLUMNS, sizeof(cuda__lu_solve_memory<T>), chunk, from, first,
                  rows, at, columns);
            if (rows < left)
                solve_product(first, inner, at, columns);
        }
    }

    /* What the `inner` columns from `from` on have become is brought to others. */
    void bring(int from, int inner, int at, int columns)
    {
        if (columns <= 0)
            return;
        collect(from, inner, at, columns);
        if (Factor)
            solve(from, inner, at, columns);
        cluster_product(from, inner, at, columns);
    }

    void cluster(int at, int columns, cudaStream_t where, cudaEvent_t begun)
    {
        cuda__lu_cluster_place place = {matrices, where, begun};
        if (status == cudaSuccess)
            note(cuda__lu_start_cluster<T, Factor>(chunk, at, columns, blocks, place));
    }

    /* The columns at .. at + columns - 1 beside what the stream is given next, which begins when
     * they have got their multiprocessors. */
    void cluster_beside(int at, int columns)
    {
        const struct cuda_side *side = cuda_products_side(products);
        if (status == cudaSuccess)
            note(cudaEventRecord(side->forked, stream));
        if (status == cudaSuccess)
            note(cudaStreamWaitEvent(side->stream, side->forked, 0));
        cluster(at, columns, side->stream, side->begun);
        if (status == cudaSuccess)
            note(cudaEventRecord(side->joined, side->stream));
        if (status == cudaSuccess)
            note(cudaStreamWaitEvent(stream, side->begun, 0));
    }

    int columns_at(int at) const
    {
        int left = at < chunk.n ? chunk.padded - at : 0;
        return left < chunk.manner.width ? left : chunk.manner.width;
    }

    /* Each step brings `width` finished columns to the next ones first, so that a cluster works on
     * those while the rest of the device brings the finished ones to all others. */
    void eliminate_by_clusters()
    {
        cluster(0, columns_at(0), stream, nullptr);
        for (int at = 0; columns_at(at) > 0;) {
            int inner = columns_at(at), next = at + inner, columns = columns_at(next);
            int rest = next + columns;
            if (Factor && columns > 0)
                start(cuda__lu_lower_kernel<T>, inner, CUDA__WARP, 0, chunk, at, inner);
            bring(at, inner, next, columns);
            if (columns > 0 && chunk.manner.behind)
                cluster(next, columns, stream, nullptr);
            else if (columns > 0)
                cluster_beside(next, columns);
            if (!Factor)
                bring(at, inner, 0, at);
            if (columns > 0)
                bring(at, inner, rest, chunk.padded - rest);
            if (columns > 0 && !chunk.manner.behind && status == cudaSuccess)
                note(cudaStreamWaitEvent(stream, cuda_products_side(products)->joined, 0));
            at = next;
        }
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
            if (blocks > 0)
                eliminate_by_clusters();
            else
                factor();
            start(cuda__lu_settle_kernel<T>, 1, threads, most, chunk);
            start(cuda__lu_write_factors_kernel<T>, rows, threads, 0, batch, chunk);
        } else {
            start(cuda__lu_scale_kernel<T>, rows, threads, 0, chunk);
            for (int i = 0; chunk.manner.mending && i < REFLECTIONS; i++)
                start(cuda__lu_mix_kernel<T>, rows, threads, 0, chunk, i);
            if (blocks > 0)
                eliminate_by_clusters();
            else
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
                                 size_t space_bytes, cuda__lu_manner manner,
                                 struct cuda_products *products, cudaStream_t stream)
{
    int blocks = 0;
    if (manner.width > 0)
        blocks = cuda__lu_cluster_blocks<T, Factor>(cuda__lu_padded(n), manner.blocks);
    if (manner.width > 0 && (blocks == 0 || manner.width > CUDA__LU_WIDTH_MAX || !products))
        return cudaErrorInvalidValue;
    size_t each = cuda__lu_space_bytes<T>(n, manner);
    int64_t held = (int64_t)(space_bytes / each);
    if (held < 1)
        return cudaErrorMemoryAllocation;
    held = held < CUDA__LU_CHUNK_MAX ? held : CUDA__LU_CHUNK_MAX;
    cuda__lu_chunk chunk = {(unsigned char *)space, each, 0, (int)n, cuda__lu_padded(n), manner};
    cudaError_t status = cudaSuccess;
    for (; chunk.first < batch.matrices && status == cudaSuccess; chunk.first += held) {
        int64_t left = batch.matrices - chunk.first;
        cuda__lu_journey<T, Factor> journey = {
            batch,  chunk,      (unsigned)(left < held ? left : held), stream, products,
            blocks, cudaSuccess};
        journey.run();
        status = journey.status;
    }
    return status;
}

typedef cudaError_t cuda__lu_wide_launcher(int64_t n, const cuda_batch &batch, void *space,
                                           size_t space_bytes, cuda__lu_manner manner,
                                           struct cuda_products *products, cudaStream_t stream);
cuda__lu_wide_launcher cuda__lu_invert_wide_f32, cuda__lu_invert_wide_f64;
cuda__lu_wide_launcher cuda__lu_factor_wide_f32, cuda__lu_factor_wide_f64;

/* cuda__lu_cluster_blocks. */
typedef int cuda__lu_clusters(int padded, int most);
cuda__lu_clusters cuda__lu_invert_clusters_f32, cuda__lu_invert_clusters_f64;
cuda__lu_clusters cuda__lu_factor_clusters_f32, cuda__lu_factor_clusters_f64;

#endif
