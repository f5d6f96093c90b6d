/* gpu/cuda/lu/wide_launch.cuh: the launches that invert or factorise a batch in workspaces
 * (wide.cuh, ends.cuh). Host code, any thread; nothing is awaited.
 *
 * The batch goes through in chunks of as many matrices as there is workspace for. Which operations
 * are done, and in which order, depends on n alone; by which kernels, on the batch too, where
 * clusters take groups of columns (group.cuh).
 */
#ifndef GPU_CUDA_LU_WIDE_LAUNCH_CUH
#define GPU_CUDA_LU_WIDE_LAUNCH_CUH

#include <type_traits>

#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/lu/cluster_launch.cuh"
#include "gpu/cuda/lu/ends.cuh"
#include "gpu/cuda/lu/group_launch.cuh"
#include "gpu/cuda/lu/rows.cuh"
#include "gpu/cuda/lu/wide.cuh"
#include "gpu/cuda/gemm/gemm.h"

#define CUDA__LU_CHUNK_MAX 32768 /* of blockIdx.y */

/* f(columns of a panel, warps), as the order's row of the table has them. */
template <typename T, typename F> static int cuda__lu_with_panel(int padded, F f)
{
#define CUDA__LU_PRODUCT(type, most, rows, across, warp_rows, warp_columns, blocks)
#define CUDA__LU_PANEL(type, order, block, warps)                                                  \
    if constexpr (std::is_same<type, T>::value) {                                                  \
        if (padded <= order)                                                                       \
            return f(std::integral_constant<int, block>(), std::integral_constant<int, warps>());  \
    }
#include "gpu/cuda/tuning/h200/lu_wide.cuh"
#undef CUDA__LU_PANEL
#undef CUDA__LU_PRODUCT
    return 0;
}

/* cuda__lu_group_blocks with the order's panels. */
template <typename T> static int cuda__lu_groups(int64_t n, int columns, int most, int64_t matrices)
{
    return cuda__lu_with_panel<T>(cuda__lu_padded(n), [&](auto block, auto) {
        return cuda__lu_group_blocks<T, block>((int)n, columns, most, matrices);
    });
}

/* The launch sequence of a chunk of a batch. */
template <typename T, bool Factor> struct cuda__lu_sequence {
    const cuda_batch &batch;
    cuda__lu_chunk chunk;
    unsigned matrices; /* of the chunk */
    cudaStream_t stream;
    struct cuda_products *products;
    int blocks;         /* of a cluster; 0: by halves */
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

    template <typename F> int with_panel(F f) const
    {
        return cuda__lu_with_panel<T>(chunk.padded, f);
    }

    int block() const
    {
        return with_panel([](auto columns, auto) { return (int)columns; });
    }

    void panel(int at)
    {
        with_panel([&](auto columns, auto warps) {
            start(cuda__lu_panel_kernel<T, columns, warps>, 1, warps * CUDA__WARP,
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
#include "gpu/cuda/tuning/h200/lu_wide.cuh"
#undef CUDA__LU_PANEL
#undef CUDA__LU_PRODUCT
    }

    /* What the columns from .. from + inner - 1 have become is brought to others. */
    void apply(int from, int inner, int at, int columns)
    {
        if (from >= chunk.n || at >= chunk.n)
            return; /* padding */
        start(cuda__lu_gather_kernel<T>, pieces(inner, CUDA__LU_GATHER_ROWS),
              CUDA__LU_GATHER_ROWS * CUDA__WARP, 0, chunk, from, inner, at, columns);
        product(from, inner, at, columns);
    }

    /* What a group's columns take, in one launch. */
    void group(int at, int columns)
    {
        with_panel([&](auto block, auto) {
            if (status == cudaSuccess)
                status = cuda__lu_start_group<T, block>(chunk, at, columns, matrices, stream);
            return 0;
        });
    }

    /* The columns at .. at + columns - 1 by themselves. */
    void eliminate(int at, int columns)
    {
        cuda__lu_by_halves(chunk.n, block(), at, columns, *this);
    }

    /* Is there no need to halve these columns? Then they are done. */
    bool whole(int at, int columns)
    {
        if (columns <= block())
            panel(at);
        else if (columns <= chunk.manner.group)
            group(at, columns);
        else
            return false;
        return true;
    }

    /* ---- Elimination by clusters ---- */

    void note(cudaError_t result)
    {
        status = status == cudaSuccess ? result : status;
    }

    cuda__lu_view<T> view() const
    {
        cuda__lu_view<T> view;
        cuda__lu_lay_out(view, chunk.space, chunk.n, chunk.padded, chunk.manner);
        return view;
    }

    struct cuda_matrices lying(T *first, int64_t line) const
    {
        return cuda_matrices{first, line, (int64_t)(chunk.stride / sizeof(T))};
    }

    /* In W, from that place on. */
    struct cuda_matrices in_w(int row, int column) const
    {
        return lying(view().w + (int64_t)row * chunk.padded + column, chunk.padded);
    }

    struct cuda_matrices in_r(int column) const
    {
        return lying(view().r + column, chunk.padded);
    }

    struct cuda_matrices in_v(int column) const
    {
        return lying(view().v + column, chunk.padded);
    }

    struct cuda_matrices in_m(int row) const
    {
        int64_t line = chunk.manner.width;
        return lying(view().m + row * line, line);
    }

    /* C = beta C + alpha A B, of all matrices. */
    void multiply(double alpha, struct cuda_matrices a, struct cuda_matrices b, double beta,
                  struct cuda_matrices c, int64_t rows, int64_t columns, int64_t inner)
    {
        struct cuda_product product = {};
        product.precision = sizeof(T) == sizeof(float) ? PRECISION_FP32 : PRECISION_FP64;
        product.rows = rows;
        product.columns = columns;
        product.inner = inner;
        product.alpha = alpha;
        product.beta = beta;
        product.a = a;
        product.b = b;
        product.c = c;
        product.count = matrices;
        size_t bytes = cuda__lu_scratch_bytes<T>(chunk.n, chunk.manner);
        product.scratch = bytes > 0 ? chunk.space + chunk.stride - bytes : nullptr;
        if (status == cudaSuccess && rows > 0 && columns > 0)
            note(cuda_product(products, &product, stream));
    }

    /* The rows chosen in the `inner` columns from `from` on go to their places and to R, in
     * `columns` columns from `at` on. */
    void move(int from, int inner, int at, int columns)
    {
        int64_t blocks =
            pieces(inner, CUDA__LU_MOVED_ROWS) * pieces(columns, CUDA__LU_MOVED_COLUMNS);
        int threads = CUDA__LU_MOVED_ROWS * CUDA__WARP;
        if (columns <= 0)
            return;
        start(cuda__lu_collect_kernel<T>, blocks, threads, 0, chunk, from, inner, at, columns);
        start(cuda__lu_displace_kernel<T>, blocks, threads, 0, chunk, from, inner, at, columns);
    }

    /* LU: L^-1 times some columns of R. */
    void solve(int from, int inner, int at, int columns)
    {
        int64_t width = chunk.manner.width;
        T *lower = view().lower, *r = view().r;
        for (int first = 0; columns > 0 && first < inner; first += CUDA__LU_SOLVED) {
            int left = inner - first, rows = left < CUDA__LU_SOLVED ? left : CUDA__LU_SOLVED;
            int64_t below = first + rows;
            start(cuda__lu_solve_rows_kernel<T>, pieces(columns, CUDA__LU_SOLVED_COLUMNS),
                  CUDA__LU_SOLVED_COLUMNS, sizeof(cuda__lu_solve_memory<T>), chunk, from, first,
                  rows, at, columns);
            multiply(1, lying(lower + below * width + first, width),
                     lying(r + (int64_t)first * chunk.padded + at, chunk.padded), 1,
                     lying(r + below * chunk.padded + at, chunk.padded), inner - below, columns,
                     rows);
        }
    }

    /* Inverse: V in some columns. */
    void make_v(int inner, int at, int columns)
    {
        multiply(1, lying(view().lower, chunk.manner.width), in_r(at), 0, in_v(at), inner, columns,
                 inner);
    }

    void cluster(int at, int columns, cudaStream_t where, cudaEvent_t begun)
    {
        cuda__lu_cluster_place place = {matrices, where, begun};
        if (status == cudaSuccess)
            note(cuda__lu_start_cluster<T>(chunk, at, columns, blocks, place));
    }

    /* The columns at .. at + columns - 1 next to what the stream is given next, which begins when
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

    /* Columns behind, below the chosen rows, lose L times L^-1 times those rows. */
    void bring_below(int from, int inner, int at, int columns)
    {
        int next = from + inner;
        if (Factor)
            solve(from, inner, at, columns);
        else
            make_v(inner, at, columns);
        multiply(-1, in_w(next, from), Factor ? in_r(at) : in_v(at), 1, in_w(next, at),
                 chunk.n - next, columns, inner);
    }

    /* Inverse: L^-1 and U^-1. */
    void invert_triangles(int from, int inner)
    {
        start(cuda__lu_triangles_kernel<T>, 2 * inner / CUDA__LU_TRIANGLE,
              CUDA__LU_TRIANGLE_THREADS, sizeof(cuda__lu_triangle_memory<T>), chunk, from, inner);
    }

    /* The other columns of an inverse, where bring_below has not been; and the columns themselves.
     */
    void bring_around(int from, int inner, int rest)
    {
        int n = chunk.n, next = from + inner, right = chunk.padded - rest;
        start(cuda__lu_multipliers_kernel<T>,
              pieces(n > next ? n - next : 1, CUDA__LU_MULTIPLIED_ROWS),
              CUDA__LU_MULTIPLIED_ROWS * CUDA__WARP, 0, chunk, from, inner, next);
        multiply(-1, in_w(0, from), in_m(from), 0, in_m(0), from, inner, inner);
        make_v(inner, 0, from);
        make_v(inner, rest, right);
        multiply(-1, in_m(0), in_v(next), 1, in_w(0, next), next, rest - next, inner);
        multiply(-1, in_m(0), in_v(0), 1, in_w(0, 0), n, from, inner);
        multiply(-1, in_m(0), in_v(rest), 1, in_w(0, rest), n, right, inner);
        multiply(-1, in_m(0), lying(view().lower, chunk.manner.width), 0, in_w(0, from), n, inner,
                 inner);
    }

    /* Each step brings `width` finished columns to the next ones first, so that a cluster works on
     * those while the rest of the device brings the finished ones to all others. */
    void eliminate_by_clusters()
    {
        cluster(0, columns_at(0), stream, nullptr);
        for (int at = 0; columns_at(at) > 0;) {
            int inner = columns_at(at), next = at + inner, columns = columns_at(next);
            int rest = next + columns;
            move(at, inner, at, rest - at);
            if (!Factor)
                invert_triangles(at, inner);
            bring_below(at, inner, next, columns);
            if (columns > 0 && chunk.manner.behind)
                cluster(next, columns, stream, nullptr);
            else if (columns > 0)
                cluster_beside(next, columns);
            start(cuda__lu_rename_kernel<T>, 1, CUDA__LU_WIDTH_MAX, 0, chunk, at, inner);
            move(at, inner, 0, at);
            move(at, inner, rest, chunk.padded - rest);
            if (Factor)
                bring_below(at, inner, rest, chunk.padded - rest);
            else
                bring_around(at, inner, rest);
            if (columns > 0 && !chunk.manner.behind && status == cudaSuccess)
                note(cudaStreamWaitEvent(stream, cuda_products_side(products)->joined, 0));
            at = next;
        }
    }

    /* ---- One chunk ---- */

    void write_inverse()
    {
        int most = CUDA__LU_STAGED_BYTES / (int)sizeof(T);
        int staged = chunk.padded < most ? chunk.padded : most;
        bool is_long = chunk.manner.width > 0 || chunk.n * sizeof(T) > CUDA__LU_SHORT_ROW_BYTES;
        if (!is_long)
            start(cuda__lu_write_inverse_kernel<T>, pieces(chunk.n, CUDA__LU_ROWS),
                  CUDA__LU_THREADS, 0, batch, chunk);
        else
            start(cuda__lu_write_long_inverse_kernel<T>, chunk.n, CUDA__LU_THREADS,
                  (size_t)(staged + CUDA__LU_STAGED_SUMS) * sizeof(T), batch, chunk, staged);
    }

    void run()
    {
        const int threads = CUDA__LU_THREADS;
        const size_t sums = CUDA__LU_SUMS_NUMBERS * sizeof(T), most = sums;
        int64_t rows = pieces(chunk.n, CUDA__LU_ROWS), strips = pieces(chunk.n, CUDA__LU_STRIP);
        if (chunk.manner.recovery)
            start(cuda__lu_pick_kernel<T>, 1, 1, 0, batch, chunk);
        start(cuda__lu_read_kernel<T>, pieces(chunk.padded, CUDA__LU_ROWS), threads, 0, batch,
              chunk);
        start(cuda__lu_sums_kernel<T, false>, strips, threads, sums, chunk);
        start(cuda__lu_prepare_kernel<T>, 1, threads, most, chunk);
        if constexpr (Factor) {
            eliminate_by_clusters();
            start(cuda__lu_settle_kernel<T>, 1, threads, most, chunk);
            start(cuda__lu_write_factors_kernel<T>, rows, threads, 0, batch, chunk);
        } else {
            start(cuda__lu_scale_kernel<T>, rows, threads, 0, chunk);
            for (int i = 0; chunk.manner.recovery && i < REFLECTIONS; i++)
                start(cuda__lu_mix_kernel<T>, rows, threads, 0, chunk, i);
            if (blocks > 0)
                eliminate_by_clusters();
            else
                eliminate(0, chunk.padded);
            start(cuda__lu_settle_kernel<T>, 1, threads, most, chunk);
            for (int i = REFLECTIONS - 1; chunk.manner.recovery && i >= 0; i--) {
                start(cuda__lu_mirrored_sums_kernel<T>, strips, threads, sums, chunk, i);
                start(cuda__lu_unmix_kernel<T>, rows, threads, 0, chunk, i);
            }
            start(cuda__lu_sums_kernel<T, true>, strips, threads, sums, chunk);
            write_inverse();
            start(cuda__lu_answer_kernel<T>, 1, threads, most, batch, chunk);
            if (chunk.manner.recovery)
                start(cuda__lu_refuse_kernel<T>, rows, threads, 0, batch, chunk);
        }
    }
};

/* n up to CUDA_MIDDLE_N_MAX. manner.factor is Factor. cudaErrorNotSupported: only clusters take the
 * order, and the device has none that hold its rows. */
template <typename T, bool Factor>
static cudaError_t cuda__lu_wide(int64_t n, const cuda_batch &batch, void *space,
                                 size_t space_bytes, cuda__lu_manner manner,
                                 struct cuda_products *products, cudaStream_t stream)
{
    int blocks = 0;
    if (manner.width > 0)
        blocks = cuda__lu_cluster_blocks<T>(cuda__lu_padded(n), manner.blocks);
    if (manner.width == 0 && (Factor || n > CUDA__LU_ONE_BLOCK_MAX))
        return cudaErrorNotSupported;
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
        cuda__lu_sequence<T, Factor> sequence = {
            batch,  chunk,      (unsigned)(left < held ? left : held), stream, products,
            blocks, cudaSuccess};
        sequence.run();
        status = sequence.status;
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
cuda__lu_clusters cuda__lu_clusters_f32, cuda__lu_clusters_f64;

/* cuda__lu_groups. */
typedef int cuda__lu_grouper(int64_t n, int columns, int most, int64_t matrices);
cuda__lu_grouper cuda__lu_groups_f32, cuda__lu_groups_f64;

#endif
