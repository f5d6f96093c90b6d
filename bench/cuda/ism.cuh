/* bench/cuda/ism.cuh: what the parts of the program cuda_ism share: problems on the device, and the
 * launcher's call for them. Host code, one thread; an error of CUDA or of a library ends the
 * program.
 */
#ifndef BENCH_CUDA_ISM_CUH
#define BENCH_CUDA_ISM_CUH

#include <cmath>

#include "bench/cuda/clock.cuh"
#include "gpu/cuda/ism/ism.h"
#include "gpu/cuda/ism/call.h"
#include "gpu/cuda/gemm/gemm.h"

enum kind {
    DIAGONAL,
    INVERSE,
    BOTH,
    ALONE,
    KINDS
};

/* a = scale * a + shift on the diagonal of each n x n; n = 0: no diagonal */
template <typename T> static __global__ void adjust(T *a, size_t count, T scale, T shift, int64_t n)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t e = blockIdx.x * (size_t)blockDim.x + threadIdx.x; e < count; e += step) {
        int64_t at = n > 0 ? (int64_t)(e % (size_t)(n * n)) : 1;
        a[e] = a[e] * scale + (n > 0 && at / n == at % n ? shift : T(0));
    }
}

/* cuBLAS's handle, made once. */
static inline struct cuda_products *products()
{
    static struct cuda_products *made = nullptr;
    if (!made)
        SMALL_TRY(cuda_products_create(nullptr, &made));
    return made;
}

template <typename T>
static void draw(device_array<T> &to, size_t count, T scale, T shift, int64_t n)
{
    clock_fill<<<1024, 256>>>(to.at(0), count);
    adjust<<<1024, 256>>>(to.at(0), count, scale, shift, n);
    SMALL_TRY(cudaGetLastError());
}

/* `count` problems of one shape, one after the other, and the launcher's call for them. */
template <typename T> struct bed {
    enum kind kind;
    int64_t n, m, count;
    device_array<T> x, y, d, b, a0; /* a0: A0, or A alone */
    device_array<T> z, rcond, det;
    device_array<int32_t> info, algorithm;
    device_array<uint32_t> unverified;
    device_array<cuda_tensors> tensors;
    device_array<char> *workspace = nullptr;
    int64_t options[METHOD_OPTIONS_MAX] = {};
    struct cuda_call call = {};

    static size_t some(int64_t numbers)
    {
        return (size_t)std::max<int64_t>(numbers, 1);
    }

    bed(enum kind how, int64_t order, int64_t rank, int64_t matrices, int64_t variant,
        int64_t block_size)
        : kind(how), n(order), m(rank), count(matrices), x(some(order * rank * matrices)),
          y(some(order * rank * matrices)), d(some(order * matrices)),
          b(how == INVERSE || how == BOTH ? some(order * order * matrices) : 1),
          a0(how >= BOTH ? some(order * order * matrices) : 1), z(some(order * order * matrices)),
          rcond(some(matrices)), det(some(matrices)), info(some(matrices)),
          algorithm(some(matrices)), unverified(1), tensors(1)
    {
        T small = (T)(0.7 / sqrt((double)n * (double)std::max<int64_t>(m, 1)));
        draw<T>(x, (size_t)(n * m * count), 1, 0, 0);
        draw<T>(y, (size_t)(n * m * count), small, 0, 0);
        draw<T>(d, (size_t)(n * count), (T)0.5, 0, 0);
        fill_diagonal();
        if (kind == INVERSE)
            draw<T>(b, (size_t)(n * n * count), (T)(0.5 / sqrt((double)n)), 1, n);
        options[0] = variant;
        options[1] = block_size;
        place();
    }
    ~bed()
    {
        delete workspace;
    }
    bed(const bed &) = delete;
    bed &operator=(const bed &) = delete;

    /* D between 1.5 and 2.5. */
    void fill_diagonal()
    {
        std::vector<T> numbers = d.get(0, (size_t)(n * std::min<int64_t>(count, 1)));
        for (T &number : numbers)
            number += 2;
        for (int64_t k = 0; k < count && kind == DIAGONAL; k++)
            d.put(numbers, (size_t)(k * n));
    }

    void place()
    {
        struct cuda_tensors item = {};
        const void *given[] = {a0.at(0), x.at(0), y.at(0), nullptr, d.at(0), a0.at(0), b.at(0)};
        static const uint32_t inputs[] = {1u << METHOD_ISM_A0_DIAGONAL, 1u << METHOD_ISM_A0_INVERSE,
                                          1u << METHOD_ISM_A0_INVERSE | 1u << METHOD_ISM_A0_DENSE,
                                          1u << METHOD_ISM_A};
        call.inputs = inputs[kind];
        if (kind != ALONE)
            call.inputs |= 1u << METHOD_ISM_X | 1u << METHOD_ISM_Y;
        for (int i = 0; i < 7; i++)
            item.inputs[i] = call.inputs >> i & 1 ? given[i] : nullptr;
        item.outputs[METHOD_ISM_INVERSE] = z.at(0);
        item.outputs[METHOD_ISM_INFO] = info.at(0);
        item.outputs[METHOD_ISM_RCOND] = rcond.at(0);
        item.outputs[METHOD_ISM_ALGORITHM] = algorithm.at(0);
        item.outputs[METHOD_ISM_DET_RATIO] = det.at(0);
        tensors.put({item});
        call.precision = small_real<T>::precision;
        call.n = n;
        call.m = m;
        call.options = options;
        call.item_count = 1;
        call.matrices = count;
        call.wanted = 1u << METHOD_ISM_INVERSE;
        call.tensors = tensors.at(0);
        call.batch.unverified = unverified.at(0);
        const int64_t at_once = std::min<int64_t>(count, 4096);
        call.workspace_bytes = std::max(cuda_ism_workspace(&call, at_once),
                                        cuda_ism_recover_workspace(&call, at_once));
        workspace = new device_array<char>(call.workspace_bytes);
        call.workspace = workspace->at(0);
        call.products = products();
    }

    void run()
    {
        SMALL_TRY(cuda_ism(&call, nullptr));
    }

    /* As the engine does it; returns how many were recovered. */
    int64_t run_whole()
    {
        unverified.put({0});
        run();
        call.to_recover = unverified.get(0, 1)[0];
        if (call.to_recover > 0)
            SMALL_TRY(cuda_ism_recover(&call, nullptr));
        SMALL_TRY(cudaDeviceSynchronize());
        return call.to_recover;
    }
};

/* Seconds of one matrix a (n x n, on the device); 0: not measured. */
struct ism_peers {
    double solver = 0; /* cuSOLVER's getrf and getrs on the identity */
};

struct ism_peers ism_peers_of(int64_t n, const float *a);
struct ism_peers ism_peers_of(int64_t n, const double *a);

/* Prints how the time of BISM is shared by its steps, and with csv the same for a file. */
void ism_steps(FILE *csv);

#endif
