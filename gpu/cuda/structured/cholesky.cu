/* gpu/cuda/structured/cholesky.cu: see cholesky.h. The launches of cholesky_kernels.cuh. */
#include "gpu/cuda/structured/cholesky.h"

#include "base/minmax.h"
#include "gpu/cuda/base/anchor.cuh"
#include "gpu/cuda/structured/cholesky_kernels.cuh"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/tuning/h200/structured.h"

#define CORNER CUDA_CHOLESKY_CORNER

static_assert(CORNER % CUDA__CHOL_TILE == 0, "tiles begin where groups do");

struct cuda_cholesky_manner cuda_cholesky_manner_of(int64_t n)
{
    static const struct {
        int64_t n_max;
        struct cuda_cholesky_manner manner;
    } rows[] = {CUDA__CHOL_ROWS};
    int row = 0;
    while (n > rows[row].n_max)
        row++;
    return rows[row].manner;
}

static bool is_manner(const struct cuda_cholesky_manner *manner)
{
    return manner->group >= CORNER && manner->group % CORNER == 0 && manner->strip >= 0 &&
           manner->strip % CORNER == 0;
}

/* ---- Scratch ---- */

/* Of all matrices V of two groups, n x group each; and what FP32's products take. */
static size_t v_bytes(const struct cuda_cholesky_manner *manner, enum precision precision,
                      int64_t n, int64_t count)
{
    return 2 * (size_t)manner->group * (size_t)n * (size_t)count *
           (size_t)precision_bytes(precision);
}

size_t cuda_cholesky_scratch_as(const struct cuda_cholesky_manner *manner, enum precision precision,
                                int64_t n, int64_t count)
{
    struct cuda_product largest = {};
    largest.precision = precision;
    largest.rows = n;
    largest.columns = manner->strip > manner->group ? manner->strip : manner->group;
    largest.inner = manner->group;
    size_t product = manner->strip > 0 ? cuda_product_scratch(&largest) : 0;
    return v_bytes(manner, precision, n, count) + product;
}

size_t cuda_cholesky_scratch(enum precision precision, int64_t n, int64_t count)
{
    struct cuda_cholesky_manner manner = cuda_cholesky_manner_of(n);
    return cuda_cholesky_scratch_as(&manner, precision, n, count);
}

/* ---- A call on its way ---- */

template <typename T> struct cuda__chol_sequence {
    typedef cuda__chol_part<T> part;
    typedef cuda__chol_shape<T, true> shape;

    const struct cuda_cholesky &task;
    const struct cuda_cholesky_manner &manner;
    struct cuda_products *products;
    cudaStream_t stream, where; /* where: what is launched goes, other than gemm/gemm.h's */
    int64_t n, group;
    part w;
    void *product_scratch;
    cudaError_t status; /* the first that is not cudaSuccess; nothing is launched after it */

    void note(cudaError_t result)
    {
        status = status == cudaSuccess ? result : status;
    }

    template <typename... Parameters, typename... Arguments>
    void start(void (*kernel)(Parameters...), int64_t blocks, int threads, size_t shared_bytes,
               const Arguments &...arguments)
    {
        if (status == cudaSuccess && blocks > 0)
            note(cuda__start(kernel, dim3((unsigned)blocks, (unsigned)task.count), threads,
                             shared_bytes, where, arguments...));
    }

    static part at(const part &of, int64_t row, int64_t column)
    {
        return part{of.at + row * of.stride + column, of.stride, of.step};
    }

    /* V of a group: of the even ones or the odd ones. */
    part v_of(int64_t from) const
    {
        int64_t odd = from / group % 2;
        return part{(T *)task.scratch + odd * task.count * n * group, group, n * group};
    }

    struct factor {
        part of;
        bool transposed;
    };

    /* C = beta C + alpha op(A) op(B), by gemm/gemm.h. */
    void multiply(double alpha, factor a, factor b, double beta, part c, int64_t height,
                  int64_t width, int64_t inner)
    {
        struct cuda_product product = {};
        product.precision = sizeof(T) == sizeof(float) ? PRECISION_FP32 : PRECISION_FP64;
        product.rows = height;
        product.columns = width;
        product.inner = inner;
        product.transpose_a = a.transposed;
        product.transpose_b = b.transposed;
        product.alpha = alpha;
        product.beta = beta;
        product.a = cuda_matrices{a.of.at, a.of.stride, a.of.step};
        product.b = cuda_matrices{b.of.at, b.of.stride, b.of.step};
        product.c = cuda_matrices{c.at, c.stride, c.step};
        product.count = task.count;
        product.scratch = product_scratch;
        if (status == cudaSuccess && height > 0 && width > 0)
            note(cuda_product(products, &product, stream));
    }

    template <typename Shape> void tiles(const cuda__own_product<T> &product)
    {
        int64_t down = (product.rows + Shape::rows - 1) / Shape::rows;
        int64_t across = (product.columns + Shape::columns - 1) / Shape::columns;
        start(cuda__own_product_kernel<Shape>, down * across, Shape::threads,
              sizeof(typename Shape::shared), product);
    }

    static cuda__operand<T> operand(const part &of, bool transposed)
    {
        return cuda__operand<T>{of.at, of.stride, of.step, transposed, true};
    }

    /* The same by our own tiles. */
    void multiply_tiles(double alpha, factor a, factor b, double beta, part c, int64_t height,
                        int64_t width, int64_t inner)
    {
        cuda__own_product<T> product = {operand(a.of, a.transposed),
                                        operand(b.of, b.transposed),
                                        operand(c, false),
                                        height,
                                        width,
                                        inner,
                                        task.count,
                                        (T)alpha,
                                        (T)beta};
        if (height <= 0 || width <= 0)
            return;
        bool small = height * width * task.count <= CUDA__CHOL_SMALL_TILES_MAX;
        if (small && b.transposed)
            tiles<cuda__chol_small_shape<T, true>>(product);
        else if (small)
            tiles<cuda__chol_small_shape<T, false>>(product);
        else if (b.transposed)
            tiles<shape>(product);
        else
            tiles<cuda__chol_shape<T, false>>(product);
    }

    /* By the one or the other, as V V^T is. */
    void multiply_any(double alpha, factor a, factor b, double beta, part c, int64_t height,
                      int64_t width, int64_t inner)
    {
        if (manner.strip > 0)
            multiply(alpha, a, b, beta, c, height, width, inner);
        else
            multiply_tiles(alpha, a, b, beta, c, height, width, inner);
    }

    /* ---- A group ---- */

    void corner(int64_t first, int64_t size, cudaEvent_t begun)
    {
        cudaLaunchAttribute attribute = {};
        attribute.id = cudaLaunchAttributeLaunchCompletionEvent;
        attribute.val.launchCompletionEvent.event = begun;
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3((unsigned)task.count);
        config.blockDim = dim3(CUDA__CHOL_WARPS * CUDA__WARP);
        config.dynamicSmemBytes = sizeof(cuda__chol_corner_memory<T>);
        config.stream = where;
        config.attrs = &attribute;
        config.numAttrs = begun ? 1 : 0;
        if (status == cudaSuccess)
            note(cuda__allow_shared((const void *)cuda__chol_corner_kernel<T>,
                                    config.dynamicSmemBytes));
        if (status == cudaSuccess)
            note(cudaLaunchKernelEx(&config, cuda__chol_corner_kernel<T>, w, first, (int)size,
                                    task.failed));
    }

    /* The group's corners, and -L below each of them. begun: records that the first corner has its
     * multiprocessor. */
    void make_l(int64_t from, cudaEvent_t begun)
    {
        int64_t end = min_i64(from + group, n);
        part v = v_of(from);
        for (int64_t first = from; first < end; first += CORNER) {
            int64_t size = min_i64(CORNER, end - first), next = first + size;
            part l = at(v, next, first - from);
            corner(first, size, first == from ? begun : nullptr);
            multiply_tiles(-1, {at(w, next, first), false}, {at(w, first, first), true}, 0, l,
                           n - next, size, size);
            multiply_tiles(-1, {l, false}, {l, true}, 1, at(w, next, next), n - next, end - next,
                           size);
        }
    }

    /* What -L of a group does to the next one's columns. */
    void bring_next(int64_t from)
    {
        int64_t next = min_i64(from + group, n), rest = min_i64(next + group, n);
        part l = at(v_of(from), next, 0);
        multiply_any(-1, {l, false}, {l, true}, 1, at(w, next, next), n - next, rest - next,
                     next - from);
    }

    /* Of M's rows the group's own columns, turned, to V. */
    void make_own_m(int64_t from)
    {
        int64_t end = min_i64(from + group, n);
        for (int64_t first = from; first < end; first += CORNER) {
            int64_t size = min_i64(CORNER, end - first), next = first + size, before = first - from;
            part m = at(w, first, first), own = at(v_of(from), from, before);
            part l = at(own, next - from, 0);
            multiply_tiles(1, {at(w, first, from), true}, {m, true}, 0, own, before, size, size);
            multiply_tiles(1, {l, false}, {own, true}, 1, at(w, next, from), end - next, before,
                           size);
            multiply_tiles(1, {l, false}, {m, false}, 0, at(w, next, first), end - next, size,
                           size);
            start(cuda__chol_turn_kernel<T>, (end - first) / CUDA__WARP * (size / CUDA__WARP),
                  CUDA__CHOL_THREADS, 0, m, at(own, before, 0), (int)size);
        }
    }

    /* The group's rows of M, turned, to V; in W they are zeros then, and so are its columns. */
    void make_m(int64_t from)
    {
        int64_t end = min_i64(from + group, n);
        part v = v_of(from);
        make_own_m(from);
        multiply_any(1, {at(w, from, 0), true}, {at(v, from, 0), false}, 0, v, from, end - from,
                     end - from);
        start(cuda__chol_clear_kernel<T>, n - from, CUDA__CHOL_THREADS, 0, w, from, end);
    }

    /* W's columns first .. end - 1, by strips: W + factor V V^T. inner: V's columns. */
    void bring_strips(double factor, const part &v, int64_t inner, int64_t first, int64_t end)
    {
        for (; first < end; first += manner.strip)
            multiply(factor, {at(v, first, 0), false}, {at(v, first, 0), true}, 1,
                     at(w, first, first), n - first, min_i64(manner.strip, end - first), inner);
    }

    /* V V^T, but for the next group's columns. */
    void bring(int64_t from)
    {
        int64_t end = min_i64(from + group, n), rest = min_i64(end + group, n);
        part v = v_of(from);
        if (manner.strip > 0) {
            bring_strips(1, v, end - from, 0, end);
            bring_strips(-1, v, end - from, rest, n);
            return;
        }
        int64_t side = (n + CUDA__CHOL_TILE - 1) / CUDA__CHOL_TILE;
        cuda__chol_update<T> update = {w, v, n, end - from, end, rest};
        start(cuda__chol_update_kernel<T>, side * (side + 1) / 2, shape::threads,
              sizeof(typename shape::shared), update);
    }

    /* ---- All groups ---- */

    void record(cudaEvent_t event, cudaStream_t by)
    {
        if (status == cudaSuccess)
            note(cudaEventRecord(event, by));
    }

    void await(cudaStream_t who, cudaEvent_t event)
    {
        if (status == cudaSuccess)
            note(cudaStreamWaitEvent(who, event, 0));
    }

    /* The chain is in the side's stream. It waits for V V^T of the group before, which is long done
     * where the chain is what takes the time. gemm/gemm.h serves one stream: where it is asked, the
     * next group's columns are brought in that one. */
    void go_on(int64_t from, int64_t next)
    {
        const struct cuda_side *side = cuda_products_side(products);
        if (manner.strip > 0) {
            bring_next(from);
            record(side->forked, stream);
        }
        await(side->stream, side->forked);
        where = side->stream;
        if (manner.strip == 0)
            bring_next(from);
        make_l(next, side->begun);
        where = stream;
    }

    void run()
    {
        const struct cuda_side *side = cuda_products_side(products);
        record(side->forked, stream);
        await(side->stream, side->forked);
        where = side->stream;
        make_l(0, nullptr);
        where = stream;
        for (int64_t from = 0; from < n; from += group) {
            int64_t next = min_i64(from + group, n);
            record(side->joined, side->stream);
            await(stream, side->joined);
            if (next < n)
                go_on(from, next);
            make_m(from);
            if (next < n)
                await(stream, side->begun);
            bring(from);
            record(side->forked, stream);
        }
    }
};

template <typename T>
static cudaError_t invert(const struct cuda_cholesky_manner *manner, struct cuda_products *products,
                          const struct cuda_cholesky *task, cudaStream_t stream)
{
    cuda__chol_part<T> w = {(T *)task->w.at, task->w.stride, task->w.step};
    size_t before = v_bytes(manner, task->precision, task->n, task->count);
    cuda__chol_sequence<T> sequence = {
        *task,         *manner, products,
        stream,        stream,  task->n,
        manner->group, w,       (unsigned char *)task->scratch + before,
        cudaSuccess};
    sequence.run();
    return sequence.status;
}

cudaError_t cuda_cholesky_invert_as(const struct cuda_cholesky_manner *manner,
                                    struct cuda_products *products,
                                    const struct cuda_cholesky *task, cudaStream_t stream)
{
    if (task->n < CUDA_CHOLESKY_UNIT || task->n % CUDA_CHOLESKY_UNIT != 0 || task->count < 0 ||
        task->count > CUDA_CHOLESKY_MATRICES_MAX || !is_manner(manner))
        return cudaErrorInvalidValue;
    if (task->count == 0)
        return cudaSuccess;
    return task->precision == PRECISION_FP32 ? invert<float>(manner, products, task, stream)
                                             : invert<double>(manner, products, task, stream);
}

cudaError_t cuda_cholesky_invert(struct cuda_products *products, const struct cuda_cholesky *task,
                                 cudaStream_t stream)
{
    struct cuda_cholesky_manner manner = cuda_cholesky_manner_of(task->n);
    return cuda_cholesky_invert_as(&manner, products, task, stream);
}
