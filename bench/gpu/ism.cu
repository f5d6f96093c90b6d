/* bench/gpu/ism.cu: `ism`: inverses of A0 + X Y^T.
 *
 * Check: every way to give A0 and every variant at orders of every kind of launch by the residual,
 * and the algorithm of matrices that fail the residual check.
 *
 * Updates: batches of known inverses, and single ones, next to a copy of as many bytes, our own lu
 * on as many matrices, and the sum of both, the minimum that forming A takes.
 *
 * Large: one matrix, next to our lu and cuSOLVER's getrf and getrs on the formed A, a fill of n^2
 * numbers, and a product of the order n at whose rate the same operations would run: 2 n^2 m +
 * 4 n m^2 are counted, with A0_INVERSE 4 n^2 m more. Then the paper's Figure 5, how the time of
 * BISM is shared by its steps where the block stays the same and n grows (A0 is diagonal, m = n/2),
 * and what `block` and `reduced_memory` reserve and write at m = n. Needs up to 20 GB.
 */
#include "bench/gpu/calls.h"

#include "bench/gpu/ablate.h"
#include "gpu/cuda/ism/call.h"
#include "gpu/cuda/ism/ism.h"

#define BATCH_BYTES ((int64_t)1 << 29) /* of known inverses */
/* Of ordinary matrices no more than one of so many is recovered. */
#define RECOVERED_SHARE 8
/* Calls of fewer operations are timed by ten: of two the first would count in which the device
 * waits for launches. */
#define SHORT_FLOPS 1e11

namespace
{

enum kind {
    DIAGONAL,
    INVERSE,
    BOTH,
    ALONE,
    KINDS
};

enum variant {
    AUTO,
    SINGLE,
    BLOCK,
    REDUCED_MEMORY,
    VARIANTS
};

const char *const kind_names[] = {"diagonal", "inverse", "both", "alone"};
const char *const variant_names[] = {"auto", "single", "block", "reduced_memory"};

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

    bed(enum kind how, int64_t order, int64_t rank, int64_t matrices, int64_t variant,
        int64_t block_size)
        : kind(how), n(order), m(rank), count(matrices), x((size_t)(order * rank * matrices)),
          y((size_t)(order * rank * matrices)), d((size_t)(order * matrices)),
          b(how == INVERSE || how == BOTH ? (size_t)(order * order * matrices) : 1),
          a0(how >= BOTH ? (size_t)(order * order * matrices) : 1),
          z((size_t)(order * order * matrices)), rcond((size_t)(matrices)), det((size_t)(matrices)),
          info((size_t)(matrices)), algorithm((size_t)(matrices)), unverified(1), tensors(1)
    {
        double small = 0.7 / sqrt((double)n * (double)std::max<int64_t>(m, 1));
        draw(x.at(0), (size_t)(n * m * count));
        draw(y.at(0), (size_t)(n * m * count), small);
        draw(d.at(0), (size_t)(n * count), 0.5);
        fill_diagonal();
        if (kind == INVERSE)
            draw(b.at(0), (size_t)(n * n * count), 0.5 / sqrt((double)n), 1, n);
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
        call.precision = number<T>::precision;
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
        call.products = here().products;
    }

    void run()
    {
        TRY(cuda_ism(&call, nullptr));
    }

    /* As the engine does it; returns how many were recovered. */
    int64_t run_whole()
    {
        unverified.put({0});
        run();
        call.to_recover = unverified.get(0, 1)[0];
        if (call.to_recover > 0)
            TRY(cuda_ism_recover(&call, nullptr));
        TRY(cudaDeviceSynchronize());
        return call.to_recover;
    }
};

/* ---- Check ---- */

/* A0 = what lu makes of B: kinds with both. B is drawn; A0 = B^-1 by the device's lu. */
template <typename T> void invert_into(bed<T> &of)
{
    int64_t n = of.n;
    draw(of.a0.at(0), (size_t)(n * n * of.count), 0.5 / sqrt((double)n), 2, n);
    if (of.kind == ALONE)
        return;
    lu_call<T> lu(LU_INVERSE, n, of.count, of.a0.at(0), of.b.at(0));
    lu.run();
    lu.recover();
    TRY(cudaDeviceSynchronize());
    for (int32_t info : lu.info.get(0, (size_t)of.count)) {
        if (info != 0) {
            printf("lu of a matrix of order %d: INFO %d\n", (int)n, (int)info);
            return;
        }
    }
}

template <typename T> __global__ void add_diagonal(double *a, const T *d, int64_t n)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i * (n + 1)] += d ? (double)d[i] : 1;
}

/* c += X Y^T of matrix k, in FP64. */
template <typename T> void add_change(const bed<T> &of, int64_t k, double *c)
{
    size_t thin = (size_t)(of.n * of.m);
    device_array<double> x(thin), y(thin);
    widen(x.at(0), of.x.at((size_t)k * thin), thin);
    widen(y.at(0), of.y.at((size_t)k * thin), thin);
    if (thin > 0)
        multiply_f64(of.n, of.n, of.m, x.at(0), y.at(0), true, 1, c);
    TRY(cudaDeviceSynchronize());
}

/* |I - Z A| / (n |A| |Z| eps); where A0_INVERSE is alone |B - Z M| / (n |Z| (1 + |M - I|) eps) with
 * M = I + X Y^T B. */
template <typename T> double ratio_of(const bed<T> &of, int64_t k)
{
    const int64_t n = of.n;
    const size_t numbers = (size_t)(n * n), at = (size_t)k * numbers;
    const unsigned blocks = (unsigned)((n + 255) / 256);
    device_array<double> a(numbers);
    TRY(cudaMemset(a.at(0), 0, numbers * sizeof(double)));
    if (of.kind != INVERSE) {
        if (of.kind == DIAGONAL)
            add_diagonal<<<blocks, 256>>>(a.at(0), of.d.at((size_t)(k * n)), n);
        else
            widen(a.at(0), of.a0.at(at), numbers);
        if (of.kind != ALONE)
            add_change(of, k, a.at(0));
        return residual_of(a.at(0), of.z.at(at), n).ratio(n, number<T>::eps);
    }
    device_array<double> b(numbers), m(numbers);
    widen(b.at(0), of.b.at(at), numbers);
    add_change(of, k, a.at(0));
    multiply_f64(n, n, n, a.at(0), b.at(0), false, 0, m.at(0));
    double size = 1 + norm_1(m.at(0), n);
    add_diagonal<<<blocks, 256>>>(m.at(0), (const T *)nullptr, n);
    struct residual found = residual_of(m.at(0), of.z.at(at), n, b.at(0));
    found.size_a = size;
    return found.ratio(n, number<T>::eps);
}

template <typename T>
bool check_one(enum kind kind, int64_t n, int64_t m, int64_t count, int variant, bool recovers)
{
    bed<T> of(kind, n, m, count, variant, 0);
    double worst = 0;
    int wrong = 0;
    if (kind >= BOTH)
        invert_into(of);
    if (recovers) /* A0 is far smaller than the change: the residual check sees it. */
        of.d.put(std::vector<T>((size_t)(n * count), (T)1e-14));
    int64_t recovered = of.run_whole();
    std::vector<int32_t> info = of.info.get(0, (size_t)count);
    for (int64_t k = 0; k < count; k++)
        wrong += info[k] != 0 && !(recovers && info[k] == n + 1);
    for (int64_t k : {(int64_t)0, count / 2, count - 1})
        worst = worse(ratio_of(of, k), worst);
    bool right = worst <= RATIO_MAX && wrong == 0 &&
                 (recovers ? recovered == count : recovered <= count / RECOVERED_SHARE);
    if (!right)
        printf(
            "%s %s n = %d, m = %d, %d matrices, %s: ratio %g, %d wrong INFO, %d recovered: WRONG\n",
            precision_name(number<T>::precision), kind_names[kind], (int)n, (int)m, (int)count,
            variant_names[variant], worst, wrong, (int)recovered);
    return right;
}

int check_either(enum kind kind, int64_t n, int64_t m, int64_t count, int variant)
{
    return !check_one<float>(kind, n, m, count, variant, false) +
           !check_one<double>(kind, n, m, count, variant, false);
}

int check_all(const settings &wish)
{
    static const struct {
        int64_t n, m, count;
    } shapes[] = {{1, 1, 3},   {3, 2, 50},   {8, 1, 1000}, {8, 8, 33},   {13, 3, 77},  {16, 5, 9},
                  {31, 1, 40}, {32, 1, 999}, {32, 8, 50},  {33, 2, 30},  {50, 12, 5},  {64, 1, 20},
                  {64, 32, 9}, {65, 3, 7},   {128, 64, 3}, {200, 70, 2}, {257, 200, 1}};
    int failed = 0;
    for (const auto &s : shapes)
        for (int kind = 0; wish.wants(s.n) && kind < KINDS; kind++)
            for (int variant = 0; variant < VARIANTS; variant++)
                failed +=
                    check_either((enum kind)kind, s.n, kind == ALONE ? s.n : s.m, s.count, variant);
    for (int64_t n : wish.orders({20, 60, 150})) {
        failed += !check_one<double>(DIAGONAL, n, n, 5, AUTO, true);
        failed += !check_one<double>(DIAGONAL, n, n + 5, 70, AUTO, true);
    }
    /* The last product makes the answer; of an odd n, in FP32 of 1502, rows begin anywhere. */
    for (int64_t n : wish.orders({65, 129, 801, 1500, 1502, 3000, 3001}))
        for (int64_t m : {1, 32, 33, 64}) {
            failed += check_either(DIAGONAL, n, m, 2, AUTO);
            failed += check_either(INVERSE, n, m, 2, AUTO);
        }
    for (int64_t m : {1, 64, 700})
        for (int variant : {AUTO, BLOCK, REDUCED_MEMORY})
            failed += wish.wants(1500) ? check_either(DIAGONAL, 1500, m, 1, variant) : 0;
    for (int64_t m : {1300, 1536}) /* several groups that are blocks */
        failed += wish.wants(1536) ? check_either(DIAGONAL, 1536, m, 1, BLOCK) : 0;
    return failed;
}

/* ---- Updates ---- */

std::string shape_with(int64_t n, int64_t m, int64_t count)
{
    return "n=" + std::to_string(n) + " m=" + std::to_string(m) +
           " matrices=" + std::to_string(count);
}

/* Of a batch as many as BATCH_BYTES hold. */
template <typename T> int64_t batch_of(int64_t n)
{
    return BATCH_BYTES / (n * n * (int64_t)sizeof(T));
}

template <typename T> double update_seconds(int64_t n, int64_t m, int64_t count)
{
    bed<T> of(INVERSE, n, m, count, AUTO, 0);
    return clock_seconds([&](int) { of.run(); }, 4);
}

template <typename T> double drawn_lu_seconds(int64_t n, int64_t count)
{
    size_t numbers = (size_t)(n * n * count);
    device_array<T> a(numbers);
    draw(a.at(0), numbers, 0.5 / sqrt((double)n), 2, n);
    return lu_seconds(n, count, (const T *)a.at(0), 2);
}

/* count: 0: a batch. */
template <typename T> void time_update(int64_t n, int64_t m, int64_t count, recorder &to)
{
    count = count > 0 ? count : batch_of<T>(n);
    bed<T> of(INVERSE, n, m, count, AUTO, 0);
    size_t bytes = (size_t)(count * (2 * n * n + 2 * n * m + 2) + count) * sizeof(T);
    double ours = clock_seconds([&](int) { of.run(); }, 4);
    double copy =
        copy_seconds(of.z.at(0), of.b.at(0), (size_t)(count * n * n) * sizeof(T), bytes, 4);
    double lu = drawn_lu_seconds<T>(n, count);
    int64_t unverified = of.run_whole();
    to.add(shape_with(n, m, count), number<T>::precision, "update", ours * 1e6, "us",
           {{"copy", copy * 1e6}, {"our lu", lu * 1e6}, {"copy and our lu", (copy + lu) * 1e6}});
    if (unverified > 0)
        printf("%d unverified\n", (int)unverified);
}

void time_updates(const settings &wish, recorder &to)
{
    static const struct {
        int64_t n, m;
    } batches[] = {{8, 1},    {8, 2},   {12, 3},   {16, 1},   {16, 2},   {16, 3},   {16, 4},
                   {24, 6},   {32, 1},  {32, 2},   {32, 3},   {32, 4},   {32, 5},   {32, 6},
                   {32, 8},   {40, 4},  {48, 1},   {48, 12},  {64, 1},   {64, 4},   {64, 8},
                   {64, 16},  {96, 8},  {96, 24},  {112, 8},  {128, 4},  {128, 8},  {128, 16},
                   {128, 32}, {144, 8}, {200, 8},  {200, 16}, {200, 50}, {256, 8},  {256, 64},
                   {384, 8},  {512, 8}, {512, 32}, {600, 16}, {600, 40}, {1000, 8}, {1000, 64}},
      singles[] = {{8, 1},    {8, 2},   {16, 1},   {16, 2},  {16, 4},   {32, 1},
                   {32, 2},   {32, 3},  {32, 4},   {32, 8},  {48, 12},  {64, 1},
                   {64, 8},   {64, 16}, {96, 24},  {128, 8}, {128, 32}, {176, 8},
                   {200, 16}, {256, 8}, {256, 64}, {512, 32}},
      alone[] = {{100, 4}, {200, 16}, {600, 40}, {1000, 8}, {1000, 64}};
    for (const auto &batch : batches) {
        if (wish.wants(batch.n))
            time_update<double>(batch.n, batch.m, 0, to);
    }
    for (const auto &batch : singles) {
        if (wish.wants(batch.n))
            time_update<float>(batch.n, batch.m, 0, to);
    }
    for (const auto &one : alone) {
        if (wish.wants(one.n))
            time_update<double>(one.n, one.m, 1, to);
    }
}

/* n = 9..12 by the kernel of n = 16, which is launched first, for as many matrices. */
template <typename T> void ablate_few(int64_t n, int64_t m, recorder &to)
{
    int64_t count = batch_of<T>(n);
    double with = update_seconds<T>(n, m, count);
    const ablation_scope scope(WITHOUT_ISM_FEW_12);
    (void)update_seconds<T>(16, m, count);
    to.add(shape_with(n, m, count), number<T>::precision, "update", with * 1e6, "us",
           {{"without few.cuh for 12", update_seconds<T>(n, m, count) * 1e6}});
}

void ablate_updates(const settings &wish, recorder &to)
{
    for (int64_t n : wish.orders({10, 12}))
        for (int64_t m : {1, 2, 3, 4}) {
            ablate_few<double>(n, m, to);
            ablate_few<float>(n, m, to);
        }
}

/* ---- One large matrix ---- */

/* What a matrix of order n takes without ism, and what a device can do at that order. */
struct bounds {
    int64_t n = 0;
    double lu = 0, solver = 0, fill = 0, product = 0;
};

template <typename T> struct bounds bounds_of(int64_t n)
{
    struct bounds found;
    size_t numbers = (size_t)(n * n);
    device_array<T> a(numbers), b(numbers), c(numbers);
    draw(a.at(0), numbers, 0.5 / sqrt((double)n), 2, n);
    draw(b.at(0), numbers);
    struct cuda_product square = {};
    square.precision = number<T>::precision;
    square.rows = square.columns = square.inner = n;
    square.alpha = 1;
    square.a = {a.at(0), n, 0};
    square.b = {b.at(0), n, 0};
    square.c = {c.at(0), n, (int64_t)numbers};
    square.count = 1;
    found.n = n;
    found.product =
        clock_seconds([&](int) { TRY(cuda_product(here().products, &square, nullptr)); }, 3);
    found.fill = clock_seconds([&](int) { fill_streaming(c.at(0), numbers); }, 10);
    found.solver = lu_peers_of(n, 1, (const T *)a.at(0)).one_inverse;
    found.lu = lu_seconds(n, 1, (const T *)a.at(0), 2);
    return found;
}

double operations_of(enum kind kind, int64_t order, int64_t rank)
{
    double n = (double)order, m = (double)rank;
    return n * n * m * (kind == INVERSE ? 6 : 2) + 4 * n * m * m;
}

template <typename T>
double large_seconds(enum kind kind, int64_t n, int64_t m, int variant, int64_t block)
{
    bed<T> of(kind, n, m, 1, variant, block);
    return clock_seconds([&](int) { of.run(); }, operations_of(kind, n, m) < SHORT_FLOPS ? 10 : 2);
}

std::string shape_of_large(enum kind kind, int64_t n, int64_t m, int64_t block)
{
    return shape_with(n, m, 1) + " a0=" + kind_names[kind] + " block=" + std::to_string(block);
}

template <typename T>
void time_large(enum kind kind, int64_t m, int variant, int64_t block, const struct bounds &bounds,
                recorder &to)
{
    int64_t n = bounds.n;
    double work = operations_of(kind, n, m) / (2.0 * (double)n * (double)n * (double)n);
    to.add(shape_of_large(kind, n, m, block), number<T>::precision, variant_names[variant],
           large_seconds<T>(kind, n, m, variant, block) * 1e6, "us",
           {{"product", bounds.product * work * 1e6},
            {"fill", bounds.fill * 1e6},
            {"our lu", bounds.lu * 1e6},
            {"cusolver getrf+getrs", bounds.solver * 1e6}});
}

template <typename T> void time_order(int64_t n, bool whole, recorder &to)
{
    struct bounds bounds = bounds_of<T>(n);
    time_large<T>(DIAGONAL, 64, AUTO, 0, bounds, to);
    time_large<T>(INVERSE, 64, AUTO, 0, bounds, to);
    if (n % 2 != 0) /* rows of the answer do not begin at multiples of 16 bytes */
        return;
    time_large<T>(DIAGONAL, n / 8, AUTO, 0, bounds, to);
    time_large<T>(DIAGONAL, n / 2, AUTO, 0, bounds, to);
    if (!whole)
        return;
    time_large<T>(INVERSE, n / 8, AUTO, 0, bounds, to);
    for (int64_t block : {16, 32, 96, 128})
        time_large<T>(DIAGONAL, n / 2, BLOCK, block, bounds, to);
    for (int64_t block : {64, 128})
        time_large<T>(DIAGONAL, n / 2, REDUCED_MEMORY, block, bounds, to);
}

/* ---- Steps ---- */

/* The device's time between the marks that the launcher's watch puts into the stream; each mark
 * takes it a microsecond or so, so that many small steps seem longer than they are. */
#define MARKS_MAX 4096

const char *const step_names[CUDA_ISM_STEPS] = {"bring",  "begin",    "meet", "invert",
                                                "couple", "assemble", "try"};

/* Marks in the default stream. */
struct marks {
    cudaEvent_t events[MARKS_MAX];
    enum cuda_ism_step steps[MARKS_MAX];
    int count = 0;

    marks()
    {
        for (cudaEvent_t &event : events)
            TRY(cudaEventCreate(&event));
    }
    ~marks()
    {
        for (cudaEvent_t &event : events)
            cudaEventDestroy(event);
    }
    marks(const marks &) = delete;
    marks &operator=(const marks &) = delete;
};

void put_mark(void *watcher, enum cuda_ism_step step)
{
    marks *of = (marks *)watcher;
    if (of->count == MARKS_MAX) {
        fprintf(stderr, "cuda_ism: more steps than there are places\n");
        exit(2);
    }
    TRY(cudaEventRecord(of->events[of->count]));
    of->steps[of->count++] = step;
}

/* Microseconds of each step, of the last round. */
template <typename T> void time_steps(bed<T> &of, double (&found)[CUDA_ISM_STEPS])
{
    static marks seen;
    struct cuda_ism_watch watch = {put_mark, &seen};
    for (int round = 0; round < CLOCK_ROUNDS; round++) {
        seen.count = 0;
        TRY(cuda_ism_watched(&of.call, nullptr, &watch));
        put_mark(&seen, CUDA_ISM_STEPS);
        TRY(cudaDeviceSynchronize());
    }
    for (double &microseconds : found)
        microseconds = 0;
    for (int i = 0; i + 1 < seen.count; i++) {
        float milliseconds;
        TRY(cudaEventElapsedTime(&milliseconds, seen.events[i], seen.events[i + 1]));
        found[seen.steps[i]] += milliseconds * 1e3;
    }
}

void report_steps(enum kind kind, int64_t n, int64_t m, int variant, int64_t block, recorder &to)
{
    bed<double> of(kind, n, m, 1, variant, block);
    double found[CUDA_ISM_STEPS], all = 0;
    time_steps(of, found);
    for (double microseconds : found)
        all += microseconds;
    for (int step = 0; step < CUDA_ISM_STEPS; step++)
        to.add(shape_of_large(kind, n, m, block), PRECISION_FP64,
               std::string("step ") + step_names[step], found[step], "us", {{"all steps", all}});
}

/* ---- Memory ---- */

#define UNTOUCHED 0xa5

__global__ void count_touched(const unsigned char *bytes, size_t count, unsigned long long *touched)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    unsigned long long found = 0;
    for (size_t e = blockIdx.x * (size_t)blockDim.x + threadIdx.x; e < count; e += step)
        found += bytes[e] != UNTOUCHED;
    atomicAdd(touched, found);
}

/* Bytes of workspace that one call writes. One byte of 256 that is written as it was is not seen;
 * nothing of random numbers is left out for that. */
double written_by(bed<double> &of)
{
    device_array<unsigned long long> touched(1);
    size_t bytes = of.call.workspace_bytes;
    touched.put({0});
    TRY(cudaMemset(of.call.workspace, UNTOUCHED, bytes));
    int64_t recovered = of.run_whole();
    count_touched<<<132 * 16, 256>>>((unsigned char *)of.call.workspace, bytes, touched.at(0));
    TRY(cudaDeviceSynchronize());
    if (recovered > 0)
        printf("it was recovered: the figure is lu's\n");
    return (double)touched.get(0, 1)[0];
}

void report_memory(enum kind kind, int64_t n, recorder &to)
{
    double reserved[2], written[2];
    for (int reduced = 0; reduced < 2; reduced++) {
        bed<double> of(kind, n, n, 1, reduced ? REDUCED_MEMORY : BLOCK, 0);
        reserved[reduced] = (double)cuda_ism_workspace(&of.call, 1);
        written[reduced] = written_by(of);
    }
    const std::string shape = shape_of_large(kind, n, n, 0);
    to.add(shape, PRECISION_FP64, "reduced_memory reserved", reserved[1] * 1e-9, "GB",
           {{"block", reserved[0] * 1e-9}});
    to.add(shape, PRECISION_FP64, "reduced_memory written", written[1] * 1e-9, "GB",
           {{"block", written[0] * 1e-9}});
}

void time_all(const settings &wish, recorder &to)
{
    if (wish.wants(8192))
        time_order<double>(8192, true, to);
    if (wish.wants(4096))
        time_order<double>(4096, false, to);
    if (wish.wants(8192))
        time_order<float>(8192, false, to);
    if (wish.wants(8191)) {
        time_order<double>(8191, false, to);
        time_order<float>(8191, false, to);
    }
    for (int64_t n : wish.orders({1024, 2048, 4096, 8192}))
        report_steps(DIAGONAL, n, n / 2, BLOCK, 128, to);
    for (int64_t n : wish.orders({4096, 8192}))
        for (enum kind kind : {DIAGONAL, INVERSE})
            report_steps(kind, n, 64, AUTO, 0, to);
    for (int64_t n : wish.orders({2048, 4096, 8192}))
        for (enum kind kind : {DIAGONAL, INVERSE})
            report_memory(kind, n, to);
}

/* ---- Ablation ---- */

void ablate_one(enum ablation without, const char *name, enum kind kind, int64_t n, int64_t m,
                recorder &to)
{
    double with = large_seconds<double>(kind, n, m, AUTO, 0);
    const ablation_scope scope(without);
    double plain = large_seconds<double>(kind, n, m, AUTO, 0);
    if (scope.applied())
        to.add(shape_of_large(kind, n, m, 0), PRECISION_FP64, "auto", with * 1e6, "us",
               {{name, plain * 1e6}});
}

void ablate(const settings &wish, recorder &to)
{
    for (int64_t n : wish.orders({768, 1024, 1536, 2048, 3072, 4096, 8192})) {
        for (int64_t m : {(int64_t)16, (int64_t)64, (int64_t)256, n / 8, n / 2}) {
            ablate_one(WITHOUT_ISM_OVERLAPPED, "without overlap", DIAGONAL, n, m, to);
            ablate_one(WITHOUT_OVERLAP, "without overlapped launches", DIAGONAL, n, m, to);
        }
    }
}

template <typename T> void once(int64_t n, int64_t m, bool update)
{
    bool batch = n <= 1000;
    bed<T> of(batch || update ? INVERSE : DIAGONAL, n, m, batch ? batch_of<T>(n) : 1, AUTO, 0);
    of.run_whole();
    of.run_whole();
}

} // namespace

void ism_once(int64_t n, int64_t m, enum precision precision, bool update)
{
    if (precision == PRECISION_FP32)
        once<float>(n, m, update);
    else
        once<double>(n, m, update);
}

const struct subject updates_subject = {
    "updates", "ism: updates of known inverses", nullptr, time_updates, ablate_updates, nullptr};
const struct subject ism_subject = {"ism",  "ism: one large matrix", check_all, time_all, ablate,
                                    nullptr};
