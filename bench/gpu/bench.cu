/* bench/gpu/bench.cu: see bench.h and calls.h. */
#include "bench/gpu/calls.h"

#include <cstring>

#include <cublas_v2.h>

namespace
{

/* The sum of |P(i, j)| down a column of P, n x n. */
template <typename T> __global__ void column_sums(const T *p, int64_t n, double *sums)
{
    int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0;
    for (int64_t i = 0; j < n && i < n; i++)
        sum += fabs((double)p[i * n + j]);
    if (j < n)
        sums[j] = sum;
}

template <typename T> double largest_sum(const T *p, int64_t n)
{
    device_array<double> sums((size_t)n);
    column_sums<<<(unsigned)((n + 63) / 64), 64>>>(p, n, sums.at(0));
    TRY(cudaGetLastError());
    double found = 0;
    for (double sum : sums.get(0, (size_t)n))
        found = worse(sum, found);
    return found;
}

} // namespace

/* ---- Figures ---- */

void recorder::add(const std::string &shape, enum precision precision, const std::string &what,
                   double value, const char *unit, const std::vector<peer> &peers)
{
    const char *name = precision_name(precision);
    printf("%s %s %-40s %-28s %12.6g %s", subject_, name, shape.c_str(), what.c_str(), value, unit);
    auto write = [&](const char *peer, const char *format, double of_peer) {
        if (!csv_)
            return;
        fprintf(csv_, "%s,%s,%s,%s,%.9g,%s,%s,", subject_, shape.c_str(), name, what.c_str(), value,
                unit, peer);
        fprintf(csv_, format, of_peer);
        fprintf(csv_, ",%s\n", origin_.c_str());
    };
    bool has_peer = false;
    for (const struct peer &peer : peers) {
        if (!(peer.value > 0))
            continue;
        has_peer = true;
        if (strncmp(peer.name, "without ", 8) == 0)
            printf("; %s %.6g (%+.1f%%)", peer.name, peer.value, 100 * (peer.value / value - 1));
        else
            printf("; %s %.6g (%.3g times)", peer.name, peer.value, peer.value / value);
        write(peer.name, "%.9g", peer.value);
    }
    if (!has_peer)
        write("", "", 0);
    printf("\n");
    fflush(stdout);
}

/* ---- What launchers need ---- */

const session &here()
{
    static session made;
    if (made.products)
        return made;
    void *memory = nullptr;
    TRY(cuda_products_create(nullptr, &made.products));
    TRY(cudaHostAlloc(&memory, sizeof *made.notes, cudaHostAllocMapped));
    made.notes = new (memory) cuda_notes();
    TRY(cudaStreamCreateWithFlags(&made.stream, cudaStreamNonBlocking));
    return made;
}

/* ---- Residuals ---- */

/* Row-major for column-major: C^T = op(B)^T A^T. */
void multiply_f64(int64_t rows, int64_t columns, int64_t inner, const double *a, const double *b,
                  bool transpose_b, double beta, double *c)
{
    static cublasHandle_t handle;
    const double one = 1;
    if (!handle)
        TRY(cublasCreate(&handle));
    TRY(cublasDgemm(handle, transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, (int)columns,
                    (int)rows, (int)inner, &one, b, (int)(transpose_b ? inner : columns), a,
                    (int)inner, &beta, c, (int)columns));
}

template <typename A, typename X>
struct residual residual_of(const A *a, const X *x, int64_t n, const double *b)
{
    size_t numbers = (size_t)(n * n);
    device_array<double> wide_a(numbers), wide_x(numbers), product(numbers);
    TRY(cudaDeviceSynchronize()); /* A and X may come from another stream */
    widen(wide_a.at(0), a, numbers);
    widen(wide_x.at(0), x, numbers);
    if (b)
        widen(product.at(0), b, numbers);
    else
        make_identity(product.at(0), n);
    scale(wide_x.at(0), numbers, -1);
    multiply_f64(n, n, n, wide_x.at(0), wide_a.at(0), false, 1, product.at(0));
    return {norm_1(product.at(0), n), norm_1(wide_a.at(0), n), norm_1(wide_x.at(0), n)};
}

template <typename T> double norm_1(const T *a, int64_t n)
{
    return largest_sum(a, n);
}

/* ---- Our own lu ---- */

#define WORKSPACE_BYTES ((size_t)8 << 30)

static size_t workspace_of(enum lu_kind kind, enum precision precision, int64_t n, int64_t count)
{
    size_t all = lu_workspace(kind, precision, n, count), one = lu_workspace(kind, precision, n, 1);
    return std::max(one, std::min(all, WORKSPACE_BYTES));
}

template <typename T>
lu_call<T>::lu_call(enum lu_kind what, int64_t order, int64_t matrices, const T *a, T *x,
                    uint32_t *unverified)
    : kind(what), n(order), count(matrices), extra((size_t)(matrices * std::max<int64_t>(n, 2))),
      info((size_t)matrices), items(1), bytes(workspace_of(kind, number<T>::precision, n, count)),
      workspace(bytes), batch{items.at(0), 1, matrices, unverified}
{
    items.put({cuda_item{a, x, extra.at(0), info.at(0), 0}});
    TRY(cudaDeviceSynchronize());
}

template <typename T> void lu_call<T>::run(cudaStream_t stream)
{
    TRY(lu_launch(kind, number<T>::precision, n, &batch, workspace.at(0), bytes, stream));
}

template <typename T> void lu_call<T>::recover(cudaStream_t stream)
{
    TRY(lu_recover(number<T>::precision, n, &batch, workspace.at(0), bytes, stream));
}

template <typename T> double lu_seconds(int64_t n, int64_t count, const T *a, int calls)
{
    device_array<T> x((size_t)(n * n * count));
    lu_call<T> call(LU_INVERSE, n, count, a, x.at(0));
    return clock_seconds([&](int) { call.run(); }, calls);
}

#define INSTANCES(T)                                                                               \
    template struct residual residual_of(const T *, const T *, int64_t, const double *);           \
    template double norm_1(const T *, int64_t);                                                    \
    template struct lu_call<T>;                                                                    \
    template double lu_seconds(int64_t, int64_t, const T *, int);
INSTANCES(float)
INSTANCES(double)
template struct residual residual_of(const double *, const float *, int64_t, const double *);
