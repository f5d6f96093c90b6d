/* gpu/cuda/ism/put.cuh: how kernels and products of `ism` are put into a stream: what algorithm.cuh
 * and recover.cuh are made of. Host code, any thread; nothing is awaited.
 */
#ifndef GPU_CUDA_ISM_PUT_CUH
#define GPU_CUDA_ISM_PUT_CUH

#include "gpu/cuda/ism/turn.cuh"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/gemm/gemm.h"

#define CUDA__ISM_BLOCKS_MAX 1024 /* of a kernel that goes over an array */

/* A part of an array, or of the probe vectors, as a product takes it. */
struct cuda__ism_operand {
    int array; /* -1: T */
    int64_t line, column;
};

/* A chunk of matrices, and where launches for them go. */
template <typename T> struct cuda__ism_stream_launcher {
    cuda__ism_call call;
    struct cuda_products *products;
    cudaStream_t stream;
    cudaError_t status; /* the first that is not cudaSuccess; nothing is put after it */
    bool overlaps;      /* kernels are put on the device while those before them end */

    bool has(int input) const
    {
        return call.inputs >> input & 1;
    }

    void note(enum cuda_ism_step step) const
    {
        if (call.watch)
            call.watch->on_step(call.watch->watcher, step);
    }

    bool diagonal() const
    {
        return !has(METHOD_ISM_A0_INVERSE);
    }

    static int64_t pieces(int64_t count, int64_t size)
    {
        return (count + size - 1) / size;
    }

    /* A kernel behind what is in the stream; it begins by waiting for that (cuda__follow_previous,
     * or where it leaves no room to let the next one in, cuda__wait_for_previous). scripts/check
     * looks for it. */
    template <typename... Parameters, typename... Arguments>
    void start_grid(void (*kernel)(Parameters...), dim3 blocks, int64_t threads,
                    size_t shared_bytes, const Arguments &...arguments)
    {
        if (status == cudaSuccess && blocks.x > 0)
            status = cuda__follow(kernel, blocks, (unsigned)threads, shared_bytes, overlaps, stream,
                                  arguments...);
    }

    template <typename... Parameters, typename... Arguments>
    void start(void (*kernel)(Parameters...), int64_t blocks, int64_t threads, size_t shared_bytes,
               const Arguments &...arguments)
    {
        start_grid(kernel, dim3((unsigned)blocks, (unsigned)call.count), threads, shared_bytes,
                   arguments...);
    }

    /* Whatever the slots. */
    template <typename... Parameters, typename... Arguments>
    void start_once(void (*kernel)(Parameters...), int64_t blocks, const Arguments &...arguments)
    {
        start_grid(kernel, (unsigned)blocks, CUDA__ISM_THREADS, 0, arguments...);
    }

    /* The one of two kernels that suits the order, of blocks that have all of a line each. */
    template <typename... Parameters, typename... Arguments>
    void start_alone(void (*small)(Parameters...), void (*large)(Parameters...), int64_t blocks,
                     const Arguments &...arguments)
    {
        bool is_large = call.n >= CUDA__ISM_ALONE_ORDER;
        start(is_large ? large : small, blocks,
              is_large ? CUDA__ISM_ALONE_THREADS : CUDA__ISM_THREADS, 0, arguments...);
    }

    /* Of X, and in blockIdx.z 1 of Y. */
    template <typename... Parameters, typename... Arguments>
    void start_both(void (*kernel)(Parameters...), int64_t blocks, const Arguments &...arguments)
    {
        start_grid(kernel, dim3((unsigned)blocks, (unsigned)call.count, 2), CUDA__ISM_THREADS, 0,
                   arguments...);
    }

    static int64_t blocks_over(int64_t numbers, int64_t of_block = CUDA__ISM_THREADS)
    {
        int64_t blocks = pieces(numbers, of_block);
        return blocks < CUDA__ISM_BLOCKS_MAX ? blocks : CUDA__ISM_BLOCKS_MAX;
    }

    /* A kernel that goes over `numbers` numbers of a slot. */
    template <typename... Parameters, typename... Arguments>
    void over(int64_t numbers, void (*kernel)(Parameters...), const Arguments &...arguments)
    {
        start(kernel, blocks_over(numbers), CUDA__ISM_THREADS, 0, arguments...);
    }

    template <typename... Parameters, typename... Arguments>
    void over_both(int64_t numbers, void (*kernel)(Parameters...), const Arguments &...arguments)
    {
        start_both(kernel, blocks_over(numbers), arguments...);
    }

    void check(cudaError_t next)
    {
        status = status == cudaSuccess ? next : status;
    }

    /* ---- Products ---- */

    int64_t stride(int array) const
    {
        switch (array) {
        case CUDA__ISM_X:
        case CUDA__ISM_Y:
        case CUDA__ISM_U:
        case CUDA__ISM_UR:
        case CUDA__ISM_V:
        case CUDA__ISM_THIN:
        case CUDA__ISM_CHOSEN:
            return call.ldm;
        case CUDA__ISM_P:
        case CUDA__ISM_Q:
            return call.ldg;
        case CUDA__ISM_C:
        case CUDA__ISM_TOP:
            return call.lds;
        case CUDA__ISM_TURNED:
        case CUDA__ISM_LEFT:
            return CUDA__ISM_TURN;
        default:
            return call.ld;
        }
    }

    struct cuda_matrices matrices(const cuda__ism_operand &of) const
    {
        int64_t ld = stride(of.array);
        if (of.array < 0)
            return {(T *)call.lines + of.line * ld + of.column, ld, 0};
        return {cuda__ism_array_of<T>(call, 0, of.array) + of.line * ld + of.column, ld, call.part};
    }

    /* The same of pieces of its sums, slot after slot: a and b at the first one. */
    void multiply_pieces(const struct cuda_product &whole, const struct cuda__ism_cut &cut,
                         const cuda__ism_operand &c)
    {
        int64_t area = whole.rows * whole.columns, rest = cut.whole * cut.inner;
        int64_t step_a = whole.transpose_a ? whole.a.stride : 1;
        int64_t step_b = whole.transpose_b ? 1 : whole.b.stride;
        for (int64_t slot = 0; slot < call.count; slot++) {
            T *a = (T *)whole.a.at + slot * whole.a.step,
              *b = (T *)whole.b.at + slot * whole.b.step;
            T *to = cuda__ism_array_of<T>(call, slot, CUDA__ISM_PIECES);
            struct cuda_product pieces = whole;
            pieces.alpha = 1;
            pieces.beta = 0;
            pieces.inner = cut.inner;
            pieces.count = cut.whole;
            pieces.a = {a, whole.a.stride, cut.inner * step_a};
            pieces.b = {b, whole.b.stride, cut.inner * step_b};
            pieces.c = {to, whole.columns, area};
            put(pieces);
            pieces.inner = cut.rest;
            pieces.count = cut.rest > 0;
            pieces.a.at = a + rest * step_a;
            pieces.b.at = b + rest * step_b;
            pieces.c.at = to + cut.whole * area;
            put(pieces);
        }
        start(cuda__ism_gather_kernel<T>, blocks_over(area, CUDA__ISM_GATHER_WIDE),
              CUDA__ISM_THREADS, 0, call, (int)(cut.whole + (cut.rest > 0)), whole.rows,
              whole.columns, (T)whole.alpha, (T)whole.beta, c.array,
              c.line * whole.c.stride + c.column, whole.c.stride);
    }

    void put(const struct cuda_product &product)
    {
        if (status == cudaSuccess)
            status = cuda_product(products, &product, stream);
    }

    /* c (rows x columns) = alpha op(a) op(b) + beta c */
    void multiply(int64_t rows, int64_t columns, int64_t inner, bool transpose_a, bool transpose_b,
                  double alpha, const cuda__ism_operand &a, const cuda__ism_operand &b, double beta,
                  const cuda__ism_operand &c)
    {
        struct cuda_product product = {};
        product.precision = sizeof(T) == sizeof(float) ? PRECISION_FP32 : PRECISION_FP64;
        product.rows = rows;
        product.columns = columns;
        product.inner = inner;
        product.transpose_a = transpose_a;
        product.transpose_b = transpose_b;
        product.alpha = alpha;
        product.beta = beta;
        product.a = matrices(a);
        product.b = matrices(b);
        product.c = matrices(c);
        product.count = call.count;
        struct cuda__ism_cut cut = cuda__ism_cut_of(rows, columns, inner);
        if (cut.whole > 0)
            multiply_pieces(product, cut, c);
        else
            put(product);
    }
};

#endif
