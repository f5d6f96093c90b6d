/* gpu/cuda/auto/kernels.cu: the launches of kernels.cuh, in both precisions.
 * Host code, any thread; nothing is awaited.
 */
#include "gpu/cuda/auto/definite.cuh"
#include "gpu/cuda/auto/kernels.cuh"
#include "gpu/cuda/base/launch.cuh"

template <typename T> struct cuda__auto_launch {
    typedef struct cuda__auto_call call;

    static unsigned pieces(int64_t count, int64_t size)
    {
        return (unsigned)((count + size - 1) / size);
    }

    /* A thread each of `count`; `matrices` of them. */
    template <typename... Parameters, typename... Arguments>
    static cudaError_t threads(void (*kernel)(const call, Parameters...), const call *of,
                               int64_t count, int64_t matrices, cudaStream_t stream,
                               const Arguments &...arguments)
    {
        if (count == 0 || matrices == 0)
            return cudaSuccess;
        return cuda__start(kernel, dim3(pieces(count, CUDA__AUTO_THREADS), (unsigned)matrices),
                           CUDA__AUTO_THREADS, 0, stream, *of, arguments...);
    }

    /* `count` matrices of so many rows. */
    static cudaError_t rows(void (*kernel)(const call), const call *of, int64_t rows, int64_t count,
                            cudaStream_t stream)
    {
        if (count == 0)
            return cudaSuccess;
        return cuda__start(kernel, dim3(pieces(rows, CUDA__AUTO_ROWS), (unsigned)count),
                           CUDA__AUTO_THREADS, 0, stream, *of);
    }

    /* `blocks` for each of `count` matrices. */
    static cudaError_t blocks(void (*kernel)(const call), const call *of, dim3 blocks,
                              cudaStream_t stream)
    {
        return cuda__start(kernel, blocks, CUDA__AUTO_THREADS, 0, stream, *of);
    }

    static cudaError_t begin(const call *of, int64_t count, cudaStream_t stream)
    {
        return threads(cuda__auto_begin_kernel<T>, of, count > 0 ? count : 1, 1, stream, count);
    }

    static cudaError_t look(const call *of, int64_t count, cudaStream_t stream)
    {
        return threads(cuda__auto_look_kernel<T>, of, count, 1, stream);
    }

    static cudaError_t place(const call *of, int64_t count, cudaStream_t stream)
    {
        return rows(cuda__auto_place_kernel<T>, of, of->n, count, stream);
    }

    static cudaError_t sort(const call *of, int64_t count, cudaStream_t stream)
    {
        return threads(cuda__auto_sort_kernel<T>, of, count, 1, stream);
    }

    static cudaError_t diagonal(const call *of, int64_t count, cudaStream_t stream)
    {
        cudaError_t status =
            blocks(cuda__auto_diagonal_kernel<T>, of, dim3((unsigned)count), stream);
        if (status != cudaSuccess)
            return status;
        return rows(cuda__auto_deliver_kernel<T, CUDA__AUTO_DIAGONAL>, of, of->n, count, stream);
    }

    static cudaError_t load(const call *of, int64_t count, cudaStream_t stream)
    {
        cudaError_t status = blocks(cuda__auto_plan_kernel<T>, of, dim3((unsigned)count), stream);
        if (status != cudaSuccess)
            return status;
        return rows(cuda__auto_load_kernel<T>, of, of->ld, count, stream);
    }

    static cudaError_t unload(const call *of, int64_t count, cudaStream_t stream)
    {
        dim3 strips((unsigned)(of->ld / CUDA__AUTO_STRIP), (unsigned)count);
        cudaError_t status = blocks(cuda__auto_sums_kernel<T>, of, strips, stream);
        if (status == cudaSuccess)
            status = blocks(cuda__auto_judge_kernel<T>, of, dim3((unsigned)count), stream);
        if (status != cudaSuccess)
            return status;
        return rows(cuda__auto_deliver_kernel<T, CUDA__AUTO_TRIANGULAR>, of, of->n, count, stream);
    }

    static cudaError_t cut(const call *of, int64_t count, cudaStream_t stream)
    {
        return threads(cuda__auto_cut_kernel<T>, of, of->n, count, stream);
    }

    static cudaError_t take_or_pass(const call *of, int64_t count, cudaStream_t stream)
    {
        cudaError_t status = threads(cuda__auto_pass_kernel<T>, of, count, 1, stream, count);
        if (status != cudaSuccess)
            return status;
        return rows(cuda__auto_deliver_kernel<T, CUDA__AUTO_TRIDIAGONAL>, of, of->n, count, stream);
    }

    static cudaError_t note(const call *of, int64_t count, cudaStream_t stream)
    {
        return threads(cuda__auto_note_kernel<T>, of, count, 1, stream, count);
    }

    /* One after the other: `count` matrices by pairs of tiles, then by strips, then each whole. */
    static cudaError_t pairs(void (*by_pair)(const call), void (*by_strip)(const call),
                             void (*whole)(const call), const call *of, int64_t count,
                             cudaStream_t stream)
    {
        int64_t strips = of->ld / CUDA__AUTO_STRIP;
        unsigned all = (unsigned)count;
        cudaError_t status =
            blocks(by_pair, of, dim3((unsigned)(strips * (strips + 1) / 2), all), stream);
        if (status == cudaSuccess)
            status = blocks(by_strip, of, dim3((unsigned)strips, all), stream);
        return status == cudaSuccess ? blocks(whole, of, dim3(all), stream) : status;
    }

    static cudaError_t hold(const call *of, int64_t count, cudaStream_t stream)
    {
        cudaError_t status = blocks(cuda__auto_claim_kernel<T>, of, dim3((unsigned)count), stream);
        if (status != cudaSuccess)
            return status;
        return pairs(cuda__auto_hold_kernel<T>, cuda__auto_add_kernel<T, false>,
                     cuda__auto_admit_kernel<T>, of, count, stream);
    }

    static cudaError_t conclude(const call *of, int64_t count, cudaStream_t stream)
    {
        return pairs(cuda__auto_give_kernel<T>, cuda__auto_add_kernel<T, true>,
                     cuda__auto_conclude_kernel<T>, of, count, stream);
    }

    static constexpr cuda__auto_kernels kernels()
    {
        return {begin,  look, place,        sort, diagonal, load,
                unload, cut,  take_or_pass, note, hold,     conclude};
    }
};

extern "C" const struct cuda__auto_kernels cuda__auto_kernels_f32 =
    cuda__auto_launch<float>::kernels();
extern "C" const struct cuda__auto_kernels cuda__auto_kernels_f64 =
    cuda__auto_launch<double>::kernels();
