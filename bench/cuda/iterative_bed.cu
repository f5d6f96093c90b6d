/* bench/cuda/iterative_bed.cu: calls of `iterative`, visit by visit as an engine makes them; the
 * passes by themselves; and the paper's Gauss-Jordan elimination.
 */
#include "bench/cuda/iterative.cuh"

#include <chrono>

#include <cublas_v2.h>

#include "gpu/cuda/gemm/gemm.h"
#include "gpu/cuda/structured/identify.h"
#include "gpu/cuda/iterative/iterative.h"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/base/ptx.cuh"
#include "gpu/cuda/structured/transpose.h"

template <typename T>
iterative_bed<T>::iterative_bed(int64_t order, int64_t matrices, bool with_v0)
    : n(order), count(matrices), a(order * order * matrices),
      v0(with_v0 ? order * order * matrices : 1), x(order * order * matrices), rcond(matrices),
      residual(matrices), history(matrices * 1000), info(matrices), algorithm(matrices),
      iterations(matrices), tensors(1)
{
    struct cuda_tensors item = {};
    void *memory = nullptr;
    item.inputs[METHOD_ITERATIVE_A] = a.at(0);
    item.inputs[METHOD_ITERATIVE_V0] = with_v0 ? v0.at(0) : nullptr;
    item.outputs[METHOD_ITERATIVE_INVERSE] = x.at(0);
    item.outputs[METHOD_ITERATIVE_INFO] = info.at(0);
    item.outputs[METHOD_ITERATIVE_RCOND] = rcond.at(0);
    item.outputs[METHOD_ITERATIVE_ALGORITHM] = algorithm.at(0);
    item.outputs[METHOD_ITERATIVE_ITERATIONS] = iterations.at(0);
    item.outputs[METHOD_ITERATIVE_RESIDUAL] = residual.at(0);
    item.outputs[METHOD_ITERATIVE_HISTORY] = history.at(0);
    tensors.put({item});
    SMALL_TRY(cuda_products_create(nullptr, &products));
    SMALL_TRY(cudaHostAlloc(&memory, sizeof *notes, cudaHostAllocMapped));
    notes = (struct cuda_notes *)memory;
    memset(memory, 0, sizeof *notes);
    SMALL_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
}

template <typename T> iterative_bed<T>::~iterative_bed()
{
    cudaDeviceSynchronize();
    cuda_products_destroy(&products);
    cudaFreeHost(notes);
    cudaStreamDestroy(stream);
}

/* Products of a note's action and of the steps that follow it, those of measurements included. */
static int products_of(uint8_t note, bool measures)
{
    static const int of_step[] = {0, 2, 3, 4, 5, 9, 7};
    int action = cuda__iter_action_of(note);
    if (action >= CUDA__ITER_LAST)
        return of_step[action - CUDA__ITER_LAST] - !measures;
    if (action >= CUDA__ITER_STEP)
        return of_step[action - CUDA__ITER_STEP] * (1 + cuda__iter_more_of(note));
    return action >= CUDA__ITER_START_WARM ? 1 : 0;
}

template <typename T>
struct iterative_found iterative_bed<T>::run(const struct iterative_wish &wish, bool warm,
                                             int rounds, int64_t which) {
    int64_t options[METHOD_OPTIONS_MAX] = {};
    struct cuda_call call = {};
    struct iterative_found found;
    std::vector<double> times;
    memcpy(&options[METHOD_ITERATIVE_TOLERANCE], &wish.tolerance, sizeof wish.tolerance);
    options[METHOD_ITERATIVE_MAX_ITERATIONS] = wish.max_iterations;
    options[METHOD_ITERATIVE_SCHEME] = wish.scheme;
    options[METHOD_ITERATIVE_INITIAL] = wish.initial;
    call.precision = small_real<T>::precision;
    call.n = n;
    call.options = options;
    call.item_count = 1;
    call.matrices = count;
    call.inputs = warm ? 3 : 1;
    call.tensors = tensors.at(0);
    call.products = products;
    call.notes = call.d_notes = notes;
    call.workspace_bytes = cuda_iterative_workspace(&call, count);
    device_array<char> workspace(call.workspace_bytes);
    call.workspace = workspace.at(0);
    SMALL_TRY(cudaDeviceSynchronize());
    for (int round = 0; round <= rounds; round++) {
        bool measures = wish.measures || (round == 0 && rounds > 0);
        call.wanted =
            measures ? (1u << (METHOD_ITERATIVE_HISTORY + 1)) - 1 : 1u << METHOD_ITERATIVE_INVERSE;
        auto start = std::chrono::steady_clock::now();
        notes->asked = 0;
        found.products = 0;
        found.launches = 1;
        SMALL_TRY(cuda_iterative(&call, stream));
        SMALL_TRY(cudaStreamSynchronize(stream));
        for (; *(volatile uint32_t *)&notes->asked; found.launches++) {
            found.products += products_of(notes->next[which], measures);
            notes->asked = 0;
            SMALL_TRY(cuda_iterative_again(&call, stream));
            SMALL_TRY(cudaStreamSynchronize(stream));
        }
        std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        if (round > 0 || rounds == 0)
            times.push_back(taken.count());
        if (round > 0)
            continue;
        found.residual = (double)residual.get(which, 1)[0];
        found.first = (double)history.get(which * wish.max_iterations, 1)[0];
    }
    std::sort(times.begin(), times.end());
    found.seconds = times[times.size() / 2];
    found.info = info.get(which, 1)[0];
    found.algorithm = algorithm.get(which, 1)[0];
    found.iterations = iterations.get(which, 1)[0];
    found.rcond = (double)rcond.get(which, 1)[0];
    return found;
}

template struct iterative_bed<float>;
template struct iterative_bed<double>;

/* ---- The passes ---- */

template <typename T> struct iterative_passes iterative_time_passes(int64_t n, int64_t count)
{
    const size_t numbers = (size_t)(n * n * count), bytes = numbers * sizeof(T);
    int sets = (int)(CLOCK_CACHE_BYTES / bytes + 1);
    int calls = (int)std::min<size_t>(200, std::max<size_t>(3, ((size_t)8 << 30) / bytes));
    device_array<T> from(numbers * sets), to(numbers * sets);
    device_array<cuda_identity> identity((size_t)count);
    device_array<char> scratch(cuda_identify_bytes(small_real<T>::precision, n, count));
    clock_fill<<<1024, 256>>>(from.at(0), numbers * sets);
    SMALL_TRY(cudaGetLastError());
    size_t all = bytes * sets;
    /* Memory given back a moment ago keeps the device busy for a while. */
    const auto settled = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    while (std::chrono::steady_clock::now() < settled)
        (void)clock_copies(to.at(0), from.at(0), all, bytes, calls);
    struct iterative_passes found;
    auto place = [&](const device_array<T> &of, int i) {
        return cuda_matrices{of.at((size_t)(i % sets) * numbers), n, n * n};
    };
    found.identify = clock_seconds(
        [&](int i) {
            struct cuda_identification task = {};
            task.precision = small_real<T>::precision;
            task.n = n;
            task.a = place(from, i);
            task.count = count;
            task.sets = 1;
            task.to = identity.at(0);
            task.scratch = scratch.at(0);
            SMALL_TRY(cuda_identify(&task, nullptr));
        },
        calls);
    found.transpose = clock_seconds(
        [&](int i) {
            struct cuda_transposition task = {
                small_real<T>::precision, n, n, place(from, i), place(to, i), count, nullptr};
            SMALL_TRY(cuda_transpose(&task, nullptr));
        },
        calls);
    found.copy_of_identify =
        clock_copies(to.at(0), from.at(0), all, bytes, calls)[CLOCK_ROUNDS / 2];
    found.copy_of_transpose =
        clock_copies(to.at(0), from.at(0), all, 2 * bytes, calls)[CLOCK_ROUNDS / 2];
    return found;
}

template struct iterative_passes iterative_time_passes<float>(int64_t n, int64_t count);
template struct iterative_passes iterative_time_passes<double>(int64_t n, int64_t count);

/* What the first kernel of a pass begins with. */
static __global__ void iterative_nothing()
{
    cuda__wait_for_previous();
    cuda__release_next();
}

double iterative_time_launches(int launches)
{
    const bool overlaps = cuda__overlaps();
    return clock_seconds(
        [=](int) {
            for (int launch = 0; launch < launches; launch++)
                SMALL_TRY(cuda__follow(iterative_nothing, 136, 128, 0, overlaps, nullptr));
        },
        200);
}

/* ---- The paper's elimination ---- */

/* Row k over its pivot; the pivot's column of the other rows is kept, before it changes. */
template <typename T>
static __global__ void iterative_plain_row(T *a, T *x, T *column, int64_t n, int64_t k)
{
    int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= n)
        return;
    column[j] = a[j * n + k];
    T pivot = a[k * n + k];
    if (j != k)
        a[k * n + j] /= pivot;
    x[k * n + j] /= pivot;
}

/* Every other row less its multiple of row k. */
template <typename T>
static __global__ void iterative_plain_rest(T *a, T *x, const T *column, int64_t n, int64_t k)
{
    int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j >= n)
        return;
    if (i == k) {
        if (j == k)
            a[k * n + k] = 1;
        return;
    }
    T factor = column[i];
    a[i * n + j] = j == k ? T(0) : a[i * n + j] - factor * a[k * n + j];
    x[i * n + j] -= factor * x[k * n + j];
}

template <typename T> static __global__ void iterative_plain_identity(T *x, int64_t n)
{
    int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j < n)
        x[i * n + j] = i == j;
}

template <typename T> static void plain(T *a, T *x, int64_t n)
{
    static device_array<char> column(65536 * sizeof(double));
    dim3 rows((unsigned)((n + 255) / 256)), all((unsigned)((n + 255) / 256), (unsigned)n);
    T *kept = (T *)(void *)column.at(0);
    iterative_plain_identity<<<all, 256>>>(x, n);
    for (int64_t k = 0; k < n; k++) {
        iterative_plain_row<<<rows, 256>>>(a, x, kept, n, k);
        iterative_plain_rest<<<all, 256>>>(a, x, kept, n, k);
    }
    SMALL_TRY(cudaGetLastError());
}

void iterative_plain(float *a, float *x, int64_t n)
{
    plain(a, x, n);
}

void iterative_plain(double *a, double *x, int64_t n)
{
    plain(a, x, n);
}

/* ---- The true residual ---- */

template <typename T> static __global__ void iterative_widen(double *to, const T *from, int64_t all)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < all; e += step)
        to[e] = (double)from[e];
}

template <typename T> static double true_residual(const T *a, const T *x, int64_t n)
{
    device_array<double> wide_a(n * n), wide_x(n * n), product(n * n);
    cublasHandle_t handle;
    double one = 1, zero = 0, worst = 0;
    iterative_widen<<<1024, 256>>>(wide_a.at(0), a, n * n);
    iterative_widen<<<1024, 256>>>(wide_x.at(0), x, n * n);
    SMALL_TRY(cudaGetLastError());
    /* Rows for columns: (X A)^T = A^T X^T. */
    if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS ||
        cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, (int)n, (int)n, (int)n, &one, wide_a.at(0),
                    (int)n, wide_x.at(0), (int)n, &zero, product.at(0),
                    (int)n) != CUBLAS_STATUS_SUCCESS) {
        fprintf(stderr, "cuda_iterative: cuBLAS failed\n");
        exit(2);
    }
    std::vector<double> found = product.get(0, n * n), sums(n);
    cublasDestroy(handle);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++)
            sums[j] += fabs(found[i * n + j] - (i == j));
    }
    for (double sum : sums)
        worst = sum > worst || std::isnan(sum) ? sum : worst;
    return worst;
}

double iterative_true_residual(const float *a, const float *x, int64_t n)
{
    return true_residual(a, x, n);
}

double iterative_true_residual(const double *a, const double *x, int64_t n)
{
    return true_residual(a, x, n);
}
