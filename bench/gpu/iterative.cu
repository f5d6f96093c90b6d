/* bench/gpu/iterative.cu: `iterative`, on cold and warm starts.
 *
 * Check: every scheme and start by the true residual, and one matrix alone against the same in a
 * batch. Time, by the host's clock over all visits, as an engine makes them: the paper's
 * elimination next to the iteration; the schemes; cold and warm starts next to cuSOLVER's getrf +
 * getrs and our lu; batches. Needs up to 20 GB.
 */
#include "bench/gpu/calls.h"

#include <cstring>

#include "bench/gpu/random.cuh"
#include "gpu/cuda/iterative/call.h"
#include "gpu/cuda/iterative/iterative.h"

namespace
{

const char *const scheme_names[] = {"auto",   "newton_schulz", "chebyshev", "order5",
                                    "order7", "order7_horner", "order19"};
const int ROUNDS = 3;

/* ---- Calls ---- */

enum matrix {
    RANDOM,   /* uniform */
    DOMINANT, /* strictly diagonally dominant */
    MILD,     /* 2 I and a random matrix of radius 1: condition near 10 */
    GRADED    /* the same with rows from 1 to 1/100: condition to 1e3 */
};

/* Entry (i, j) of matrix `index`. */
__device__ double entry(enum matrix kind, int64_t n, uint64_t index, int64_t i, int64_t j)
{
    double x = random_number((index * (uint64_t)n + (uint64_t)i) * (uint64_t)n + (uint64_t)j);
    if (kind == RANDOM)
        return x;
    if (kind == DOMINANT)
        return i == j ? (double)n * (1 + fabs(x)) : x;
    x = x * sqrt(3.0 / (double)n) + (i == j ? 2 : 0);
    return kind == MILD ? x : x * pow(10.0, -2.0 * (double)i / (double)n);
}

template <typename T> __global__ void fill_kernel(T *a, int64_t n, int64_t count, enum matrix kind)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x, all = n * n * count;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < all; e += step)
        a[e] = (T)entry(kind, n, (uint64_t)(e / (n * n)), e / n % n, e % n);
}

template <typename T> void fill(T *a, int64_t n, int64_t count, enum matrix kind)
{
    fill_kernel<<<2048, 256>>>(a, n, count, kind);
    TRY(cudaGetLastError());
    TRY(cudaDeviceSynchronize());
}

/* What is asked of `iterative`. */
struct wish {
    enum method_iterative_scheme scheme = METHOD_ITERATIVE_SCHEME_AUTO;
    enum method_iterative_initial initial = METHOD_ITERATIVE_INITIAL_AUTO;
    int max_iterations = 200;
    bool measures = true; /* RESIDUAL is wanted, and its history */
};

/* What came of one matrix. */
struct found {
    int32_t info = 0, iterations = 0;
    double residual = 0, first = 0; /* first: the residual of the start */
    int products = 0;               /* of the whole call */
    double seconds = 0;
};

/* Products of a note's action and of the steps that follow it, those of measurements included. */
int products_of(uint8_t note, bool measures)
{
    static const int of_step[] = {0, 2, 3, 4, 5, 9, 7};
    int action = cuda__iter_action_of(note);
    if (action >= CUDA__ITER_LAST)
        return of_step[action - CUDA__ITER_LAST] - !measures;
    if (action >= CUDA__ITER_STEP)
        return of_step[action - CUDA__ITER_STEP] * (1 + cuda__iter_more_of(note));
    return action >= CUDA__ITER_START_WARM ? 1 : 0;
}

/* `count` matrices of order n on the device, their inverses, and what the launcher takes. */
template <typename T> struct bed {
    int64_t n, count;
    device_array<T> a, v0, x;
    device_array<T> rcond, residual, history;
    device_array<int32_t> info, algorithm, iterations;
    device_array<cuda_tensors> tensors;

    /* with_v0: there is room for V0. */
    bed(int64_t order, int64_t matrices, bool with_v0)
        : n(order), count(matrices), a(order * order * matrices),
          v0(with_v0 ? order * order * matrices : 1), x(order * order * matrices), rcond(matrices),
          residual(matrices), history(matrices * 1000), info(matrices), algorithm(matrices),
          iterations(matrices), tensors(1)
    {
        struct cuda_tensors item = {};
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
    }
    bed(const bed &) = delete;
    bed &operator=(const bed &) = delete;

    /* All visits of one call; returns the products of matrix `which`. */
    int visit_all(struct cuda_call *call, bool measures, int64_t which)
    {
        int products = 0;
        call->wanted =
            measures ? (1u << (METHOD_ITERATIVE_HISTORY + 1)) - 1 : 1u << METHOD_ITERATIVE_INVERSE;
        visit([&] { return cuda_iterative(call, here().stream); },
              [&] { return cuda_iterative_again(call, here().stream); },
              [&] { products += products_of(here().notes->next[which], measures); });
        return products;
    }

    /* Runs the call to its end, as an engine does: once, and `rounds` times by the clock. What was
     * found is of matrix `which`; its residuals are of the round that is not counted, which
     * measures in any case (but for rounds == 0). */
    struct found run(const struct wish &wish, bool warm, int rounds, int64_t which = 0)
    {
        int64_t options[METHOD_OPTIONS_MAX] = {};
        struct cuda_call call = {};
        struct found found;
        options[METHOD_ITERATIVE_MAX_ITERATIONS] = wish.max_iterations;
        options[METHOD_ITERATIVE_SCHEME] = wish.scheme;
        options[METHOD_ITERATIVE_INITIAL] = wish.initial;
        call.precision = number<T>::precision;
        call.n = n;
        call.options = options;
        call.item_count = 1;
        call.matrices = count;
        call.inputs = warm ? 3 : 1;
        call.tensors = tensors.at(0);
        call.products = here().products;
        call.notes = call.d_notes = here().notes;
        call.workspace_bytes = cuda_iterative_workspace(&call, count);
        device_array<char> workspace(call.workspace_bytes);
        call.workspace = workspace.at(0);
        TRY(cudaDeviceSynchronize());
        found.products = visit_all(&call, wish.measures || rounds > 0, which);
        found.residual = (double)residual.get(which, 1)[0];
        found.first = (double)history.get(which * wish.max_iterations, 1)[0];
        if (rounds > 0)
            found.seconds = host_seconds(
                [] {}, [&] { found.products = visit_all(&call, wish.measures, which); }, rounds);
        found.info = info.get(which, 1)[0];
        found.iterations = iterations.get(which, 1)[0];
        return found;
    }
};

/* ---- Check ---- */

int failed;

void expect(bool right, const char *what, enum precision precision, int64_t n, double found)
{
    if (right)
        return;
    failed++;
    printf("%s %s n = %d: %g: WRONG\n", precision_name(precision), what, (int)n, found);
}

template <typename T>
void check_answer(bed<T> &bed, const struct found &found, int64_t which, const char *what)
{
    int64_t n = bed.n, at = which * n * n;
    struct residual of = residual_of(bed.a.at(at), bed.x.at(at), n);
    double unit = (double)n * of.size_a * of.size_x * number<T>::eps;
    expect(found.info == 0, what, number<T>::precision, n, found.info);
    double ratio = of.ratio(n, number<T>::eps);
    expect(ratio <= RATIO_MAX, what, number<T>::precision, n, ratio);
    /* RESIDUAL is measured in the precision. */
    expect(fabs(found.residual - of.norm) <= unit, "RESIDUAL", number<T>::precision, n,
           found.residual);
}

/* The answer has the same bits where its residual is not wanted. */
template <typename T> void check_unmeasured(bed<T> &bed, struct wish wish)
{
    int64_t n = bed.n;
    std::vector<T> measured = bed.x.get(0, n * n);
    int32_t info = bed.info.get(0, 1)[0], iterations = bed.iterations.get(0, 1)[0];
    wish.measures = false;
    struct found found = bed.run(wish, false, 0);
    std::vector<T> alone = bed.x.get(0, n * n);
    bool same = memcmp(alone.data(), measured.data(), (size_t)(n * n) * sizeof(T)) == 0;
    expect(same && found.info == info && found.iterations == iterations,
           "the same bits without RESIDUAL", number<T>::precision, n, found.iterations);
}

template <typename T> void check_schemes(int64_t n)
{
    bed<T> bed(n, 1, false);
    for (int s = METHOD_ITERATIVE_SCHEME_AUTO; s < METHOD_ITERATIVE_SCHEMES; s++) {
        for (int initial = METHOD_ITERATIVE_INITIAL_AUTO;
             initial <= METHOD_ITERATIVE_SCALED_IDENTITY; initial++) {
            struct wish wish;
            wish.scheme = (enum method_iterative_scheme)s;
            wish.initial = (enum method_iterative_initial)initial;
            fill(bed.a.at(0), n, 1,
                 initial == METHOD_ITERATIVE_DIAGONAL || initial == METHOD_ITERATIVE_SCALED_IDENTITY
                     ? DOMINANT
                     : GRADED);
            check_answer(bed, bed.run(wish, false, 0), 0, "scheme and start");
            check_unmeasured(bed, wish);
        }
    }
}

/* A matrix has the same bits alone and in a batch of others. */
template <typename T> void check_company(int64_t n, int64_t count)
{
    bed<T> all(n, count, false), one(n, 1, false);
    struct wish wish;
    int64_t half = count / 2;
    fill(all.a.at(0), n, count, RANDOM);
    fill(all.a.at(half * n * n), n, count - half, DOMINANT);
    for (enum method_iterative_initial initial :
         {METHOD_ITERATIVE_INITIAL_AUTO, METHOD_ITERATIVE_TRANSPOSE}) {
        wish.initial = initial;
        (void)all.run(wish, false, 0);
        for (int64_t k : {(int64_t)0, (int64_t)1, half - 1, half, count - 1}) {
            size_t bytes = (size_t)(n * n) * sizeof(T);
            TRY(cudaMemcpy(one.a.at(0), all.a.at(k * n * n), bytes, cudaMemcpyDeviceToDevice));
            TRY(cudaDeviceSynchronize()); /* the call's stream does not wait */
            (void)one.run(wish, false, 0);
            std::vector<T> x = one.x.get(0, n * n), y = all.x.get(k * n * n, n * n);
            expect(memcmp(x.data(), y.data(), bytes) == 0, "the same bits in a batch",
                   number<T>::precision, n, (double)k);
        }
    }
}

template <typename T> void check_singular(int64_t n)
{
    bed<T> bed(n, 1, false);
    std::vector<T> a(n * n);
    for (int64_t e = 0; e < n * n; e++)
        a[e] = (T)random_number((uint64_t)(e / n == n - 1 ? e % n : e));
    bed.a.put(a);
    struct found found = bed.run({}, false, 0);
    expect(found.info == n + 1 || found.info == n + 2, "equal rows", number<T>::precision, n,
           found.info);
}

int check_all(const settings &wish)
{
    failed = 0;
    for (int64_t n : wish.orders({1, 7, 32, 33, 100, 129, 300, 513, 1024})) {
        check_schemes<float>(n);
        check_schemes<double>(n);
    }
    if (wish.wants(2048))
        check_schemes<float>(2048); /* products by parts */
    for (int64_t n : wish.orders({5, 33, 64, 200, 520})) {
        check_company<float>(n, n > 200 ? 8 : 37);
        check_company<double>(n, n > 200 ? 8 : 37);
        check_singular<float>(n);
        check_singular<double>(n);
    }
    return failed;
}

/* ---- The paper's elimination ---- */

/* Row k over its pivot; the pivot's column of the other rows is kept, before it changes. */
template <typename T> __global__ void plain_row(T *a, T *x, T *column, int64_t n, int64_t k)
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
template <typename T> __global__ void plain_rest(T *a, T *x, const T *column, int64_t n, int64_t k)
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

/* No pivoting, an n x n identity next to A, a row at a time: a becomes I, x the inverse. */
template <typename T> void plain(T *a, T *x, T *column, int64_t n)
{
    dim3 rows((unsigned)((n + 255) / 256)), all((unsigned)((n + 255) / 256), (unsigned)n);
    make_identity(x, n);
    for (int64_t k = 0; k < n; k++) {
        plain_row<<<rows, 256>>>(a, x, column, n, k);
        plain_rest<<<all, 256>>>(a, x, (const T *)column, n, k);
    }
    TRY(cudaGetLastError());
}

/* ---- Time ---- */

/* One call: its time next to that of a rival; its steps, products, residuals and INFO. */
void report(recorder &to, const std::string &shape, enum precision precision,
            const std::string &what, const struct found &found, const peer &rival)
{
    to.add(shape, precision, what, found.seconds * 1e3, "ms", {rival});
    to.add(shape, precision, what + " steps", found.iterations, "1");
    to.add(shape, precision, what + " products", found.products, "1");
    to.add(shape, precision, what + " residual", found.residual, "1", {{"start", found.first}});
    to.add(shape, precision, what + " info", found.info, "1");
}

/* The paper's Table 2. */
void time_paper(int64_t n, enum matrix kind, recorder &to)
{
    const std::string of = kind == DOMINANT ? " dominant" : " random";
    bed<double> bed(n, 1, false);
    device_array<double> worked(n * n), column(n);
    fill(bed.a.at(0), n, 1, kind);
    double elimination = clock_prepared(
        [&] {
            TRY(cudaMemcpyAsync(worked.at(0), bed.a.at(0), (size_t)(n * n) * sizeof(double),
                                cudaMemcpyDeviceToDevice));
        },
        [&](int) { plain(worked.at(0), bed.x.at(0), column.at(0), n); }, 1);
    for (enum method_iterative_scheme scheme :
         {METHOD_ITERATIVE_ORDER7_HORNER, METHOD_ITERATIVE_ORDER7}) {
        struct wish wish;
        wish.scheme = scheme;
        wish.initial = kind == DOMINANT ? METHOD_ITERATIVE_DIAGONAL : METHOD_ITERATIVE_TRANSPOSE;
        report(to, shape_of(n, 1), PRECISION_FP64, "paper " + (scheme_names[scheme] + of),
               bed.run(wish, false, ROUNDS), {"gauss_jordan_plain", elimination * 1e3});
    }
}

template <typename T> void time_schemes(int64_t n, recorder &to)
{
    bed<T> bed(n, 1, false);
    fill(bed.a.at(0), n, 1, GRADED);
    for (int scheme = METHOD_ITERATIVE_SCHEME_AUTO; scheme < METHOD_ITERATIVE_SCHEMES; scheme++) {
        struct wish wish;
        wish.scheme = (enum method_iterative_scheme)scheme;
        wish.initial = METHOD_ITERATIVE_TRANSPOSE;
        report(to, shape_of(n, 1), number<T>::precision,
               std::string("scheme ") + scheme_names[scheme],
               bed.run(wish, false, n > 2048 ? 1 : ROUNDS), {"", 0});
    }
}

/* V0 = X + E X with |E|_1 = distance, from X in bed.x. */
template <typename T> void make_v0(bed<T> &bed, double distance)
{
    int64_t n = bed.n;
    device_array<T> e(n * n);
    fill(e.at(0), n, 1, RANDOM);
    struct cuda_product product = {};
    product.precision = number<T>::precision;
    product.rows = product.columns = product.inner = n;
    product.alpha = distance / norm_1(e.at(0), n);
    product.beta = 1;
    product.a = {e.at(0), n, n * n};
    product.b = {bed.x.at(0), n, n * n};
    product.c = {bed.v0.at(0), n, n * n};
    product.count = 1;
    TRY(cudaMemcpy(bed.v0.at(0), bed.x.at(0), (size_t)(n * n) * sizeof(T),
                   cudaMemcpyDeviceToDevice));
    TRY(cudaDeviceSynchronize()); /* the product's stream does not wait */
    TRY(cuda_product(here().products, &product, here().stream));
    TRY(cudaStreamSynchronize(here().stream));
}

/* The inverse alone, and with its residual measured, where that is worth a row. */
template <typename T>
void report_both(bed<T> &bed, struct wish wish, bool warm, const std::string &what, double cusolver,
                 recorder &to)
{
    int rounds = bed.n > 4096 ? 1 : ROUNDS;
    const std::string shape = shape_of(bed.n, 1);
    const peer rival = {"cusolver getrf+getrs", cusolver * 1e3};
    wish.measures = false;
    report(to, shape, number<T>::precision, what, bed.run(wish, warm, rounds), rival);
    if (sizeof(T) == 4 && !warm)
        return;
    wish.measures = true;
    report(to, shape, number<T>::precision, what + " measured", bed.run(wish, warm, rounds), rival);
}

template <typename T> void time_starts(int64_t n, recorder &to)
{
    bed<T> bed(n, 1, true);
    struct wish wish;
    fill(bed.a.at(0), n, 1, GRADED);
    struct lu_peers peers = lu_peers_of(n, 1, (const T *)bed.a.at(0));
    double lu = lu_seconds(n, 1, (const T *)bed.a.at(0), n > 4096 ? 1 : 2);
    to.add(shape_of(n, 1), number<T>::precision, "our lu", lu * 1e3, "ms",
           {{"cusolver getrf+getrs", peers.one_inverse * 1e3},
            {"cublas getrf+getri", peers.inverse * 1e3}});
    wish.initial = sizeof(T) == 8 ? METHOD_ITERATIVE_LOW_PRECISION : METHOD_ITERATIVE_TRANSPOSE;
    report_both(bed, wish, false, sizeof(T) == 8 ? "cold low_precision" : "cold transpose",
                peers.one_inverse, to);
    for (double distance : {0.5, 0.1, 0.01}) {
        char what[32];
        snprintf(what, sizeof what, "warm %g", distance);
        /* X is the inverse that the run before has left. */
        make_v0(bed, distance);
        wish.initial = METHOD_ITERATIVE_INITIAL_AUTO;
        report_both(bed, wish, true, what, peers.one_inverse, to);
    }
}

template <typename T> void time_batch(int64_t n, int64_t count, recorder &to)
{
    bed<T> bed(n, count, false);
    struct wish wish;
    fill(bed.a.at(0), n, count, MILD);
    for (enum method_iterative_initial initial :
         {METHOD_ITERATIVE_LOW_PRECISION, METHOD_ITERATIVE_TRANSPOSE}) {
        if (sizeof(T) == 4 && initial == METHOD_ITERATIVE_LOW_PRECISION)
            continue;
        wish.initial = initial;
        report(to, shape_of(n, count), number<T>::precision,
               initial == METHOD_ITERATIVE_TRANSPOSE ? "batch transpose" : "batch low_precision",
               bed.run(wish, false, ROUNDS, count / 2), {"", 0});
    }
}

void time_all(const settings &wish, recorder &to)
{
    static const struct {
        int64_t n, count;
    } batches[] = {{32, 4096}, {64, 4096}, {128, 2048}, {256, 512}, {512, 128}};
    for (int64_t n : wish.orders({512, 1024, 2048}))
        for (enum matrix kind : {DOMINANT, RANDOM})
            time_paper(n, kind, to);
    for (int64_t n : wish.orders({512, 1024, 4096}))
        time_schemes<double>(n, to);
    if (wish.wants(4096))
        time_schemes<float>(4096, to);
    for (int64_t n : wish.orders({512, 1024, 2048, 4096, 8192})) {
        time_starts<double>(n, to);
        time_starts<float>(n, to);
    }
    for (const auto &batch : batches) {
        if (!wish.wants(batch.n))
            continue;
        time_batch<double>(batch.n, batch.count, to);
        time_batch<float>(batch.n, batch.count, to);
    }
}

} // namespace

const struct subject iterative_subject = {
    "iterative", "iterative, cold and warm", check_all, time_all, nullptr, nullptr};
