/* bench/gpu/lu.cu: `lu` and `lu_factor` above n = 32.
 *
 * Check: a set of matrices, random and hostile ones, at orders on both sides of every change of
 * kernel, is run as one item with workspace for all, recovered where that is due, and judged on all
 * processors. Then each matrix is an item of its own, in reverse, at an odd address, and the
 * workspace does for one: every answer must have the bits it had. Nothing beyond a result may be
 * written.
 *
 * Time: random matrices, as many as fill 2 GiB (512 MiB where it must be quick), up to n = 1024;
 * and one. Next to them cuBLAS's batched and cuSOLVER's single routines. Needs up to 20 GB.
 *
 * Ways: one matrix, or a batch, by clusters of several widths and sizes (tuning/DEVICE), with the
 * residual of the answer.
 */
#include "bench/gpu/calls.h"

#include <cstring>

#include "bench/gpu/ablate.h"
#include "gpu/cuda/lu/wide.cuh"

namespace
{

/* ---- Check ---- */

const double JUDGE_OPERATIONS = 1.5e9; /* of a set, about */
const int64_t BATCH_MAX = 280;         /* matrices; more than find room on a device at once */
const int64_t BATCHED_BYTES = 1 << 27; /* of them, at most */
const int64_t GUARD = 64;              /* numbers behind each result that must stay as they are */

template <typename T> struct answers : lu_answers<T> {
    uint32_t unverified;
    int64_t overrun; /* bytes written beyond results */
};

template <typename T> struct set {
    enum lu_kind kind;
    int n;
    int64_t count;
    size_t entries, extra_bytes; /* of a matrix */
    std::vector<T> a;
};

/* Enough for every kind of matrix where that is cheap. */
int64_t count_of(int n, int64_t max)
{
    double operations = (double)n * n * n;
    int64_t count = (int64_t)std::min(60.0, std::max(3.0, JUDGE_OPERATIONS / operations));
    return std::min(count, max);
}

/* Runs the set with results `stride` numbers apart; scattered: an item a matrix, in reverse. */
template <typename T> answers<T> run(const set<T> &of, bool scattered)
{
    const enum precision precision = number<T>::precision;
    size_t skip = scattered ? 1 : 0, stride = of.entries + (scattered ? GUARD - 1 : 0);
    size_t count = (size_t)of.count, all = count * stride + GUARD + skip;
    device_array<T> in(all), out(all);
    device_array<unsigned char> extra(count * of.extra_bytes);
    device_array<int32_t> info(count);
    device_array<uint32_t> unverified(1);
    std::vector<cuda_item> table;
    for (size_t k = 0; k < count; k++) {
        in.put(std::vector<T>(&of.a[k * of.entries], &of.a[k * of.entries] + of.entries),
               skip + k * stride);
        table.push_back({in.at(skip + k * stride), out.at(skip + k * stride),
                         extra.at(k * of.extra_bytes), info.at(k), 0});
    }
    if (scattered)
        std::reverse(table.begin(), table.end());
    else
        table.resize(1);
    for (size_t k = 0; k < table.size(); k++)
        table[k].first = (int64_t)k;
    device_array<cuda_item> items(table.size());
    items.put(table);
    unverified.put({0});
    size_t bytes = lu_workspace(of.kind, precision, of.n, scattered ? 1 : of.count);
    device_array<unsigned char> workspace(bytes);
    struct cuda_batch batch = {items.at(0), (int64_t)table.size(), of.count, unverified.at(0)};
    TRY(lu_launch(of.kind, precision, of.n, &batch, workspace.at(0), bytes, nullptr));
    TRY(cudaDeviceSynchronize());
    answers<T> answer = {};
    answer.unverified = unverified.get(0, 1)[0];
    if (answer.unverified)
        TRY(lu_recover(precision, of.n, &batch, workspace.at(0), bytes, nullptr));
    TRY(cudaDeviceSynchronize());
    answer.extra = extra.get(0, count * of.extra_bytes);
    answer.info = info.get(0, count);
    for (size_t k = 0; k < count; k++) {
        std::vector<T> one = out.get(skip + k * stride, of.entries);
        answer.result.insert(answer.result.end(), one.begin(), one.end());
        if (!scattered && k + 1 < count)
            continue;
        std::vector<T> guard = out.get(skip + k * stride + of.entries, GUARD - 1);
        const unsigned char *byte = (const unsigned char *)guard.data();
        answer.overrun += (int64_t)(guard.size() * sizeof(T)) -
                          std::count(byte, byte + guard.size() * sizeof(T), 0xa5);
    }
    return answer;
}

/* Have the matrices these bits among so many, which are the set over and over? */
template <typename T> bool same_among(const set<T> &of, const answers<T> &alone, int64_t count)
{
    set<T> batch = of;
    batch.count = count;
    batch.a.clear();
    for (int64_t k = 0; k < count; k++) {
        auto from = of.a.begin() + (int64_t)((size_t)(k % of.count) * of.entries);
        batch.a.insert(batch.a.end(), from, from + (int64_t)of.entries);
    }
    answers<T> answer = run(batch, false);
    bool same = true;
    for (size_t k = 0; k < (size_t)count; k++) {
        size_t one = k % (size_t)of.count;
        same = same && answer.info[k] == alone.info[one] &&
               memcmp(&answer.result[k * of.entries], &alone.result[one * of.entries],
                      of.entries * sizeof(T)) == 0 &&
               memcmp(&answer.extra[k * of.extra_bytes], &alone.extra[one * of.extra_bytes],
                      of.extra_bytes) == 0;
    }
    return same;
}

template <typename T> bool same_in_batches(const set<T> &of, const answers<T> &alone, int64_t max)
{
    int64_t room = BATCHED_BYTES / (int64_t)(of.entries * sizeof(T));
    int64_t many = std::min(room, std::min(max, BATCH_MAX));
    bool same = true;
    for (int64_t count : {int64_t(1), int64_t(7), many})
        same = same && (count > many || count == 0 || same_among(of, alone, count));
    return same;
}

/* LU of growing elements overflows in FP32 from n = 128 on, as LAPACK's does. */
template <typename T> void tame(set<T> &of)
{
    for (int64_t k = 0; of.kind == LU_FACTOR && of.n >= 100 && k < of.count; k++) {
        if (matrix_kind_of(k) < KIND_GROWING || matrix_kind_of(k) >= KIND_COUNT)
            continue;
        T *a = &of.a[k * of.entries];
        for (int i = 0; i < of.n; i++)
            a[(size_t)i * of.n + of.n - 1] = i == of.n - 1 ? T(1) : T(0);
    }
}

template <typename T> bool check(enum lu_kind kind, int n, int64_t max)
{
    set<T> of = {
        kind, n, count_of(n, max), (size_t)n * n, lu_extra_bytes(kind, number<T>::precision, n),
        {}};
    of.a = matrices_of<T>(n, of.count);
    tame(of);
    answers<T> answer = run(of, false), again = run(of, true);
    struct verdict verdict = lu_judge<T>(kind, n, of.a, answer);
    bool same =
        memcmp(answer.result.data(), again.result.data(), answer.result.size() * sizeof(T)) == 0 &&
        answer.extra == again.extra && answer.info == again.info &&
        same_in_batches(of, answer, max);
    bool right = verdict.wrong == 0 && same && answer.overrun + again.overrun == 0;
    printf("%s %-7s %s n=%-4d %3d matrices: worst %.3f, mean %.4f, %u recovered%s%s%s\n",
           right ? "ok    " : "FAILED", lu_name(kind), precision_name(number<T>::precision), n,
           (int)of.count, verdict.worst, verdict.mean(), answer.unverified,
           same ? "" : ", other bits elsewhere",
           answer.overrun + again.overrun ? ", written beyond a result" : "",
           verdict.wrong ? (", " + verdict.first).c_str() : "");
    fflush(stdout);
    return right;
}

int check_all(const settings &wish)
{
    int failed = 0;
    for (int64_t order :
         wish.orders({33,  34,  47,  48,  49,  64,  65,  80,  96,  97,   112, 127, 128,
                      129, 144, 145, 160, 161, 176, 193, 208, 209, 224,  225, 255, 256,
                      257, 288, 300, 320, 321, 512, 513, 640, 769, 1000, 1024}))
        for (enum lu_kind kind : {LU_INVERSE, LU_FACTOR}) {
            failed += !check<float>(kind, (int)order, wish.matrices_max);
            failed += !check<double>(kind, (int)order, wish.matrices_max);
        }
    return failed;
}

/* ---- Time ---- */

const size_t BATCH_BYTES = (size_t)2 << 30, QUICK_BYTES = (size_t)1 << 29;
const int64_t BATCH_N_MAX = 1024; /* larger ones are timed alone */

template <typename T>
double time_kind(enum lu_kind kind, int64_t n, int64_t count, const T *a, T *x)
{
    lu_call<T> call(kind, n, count, a, x);
    return clock_seconds([&](int) { call.run(); }, count > 1 || n > BATCH_N_MAX ? 2 : 20);
}

template <typename T> void time_shape(int64_t n, int64_t count, recorder &to)
{
    const enum precision precision = number<T>::precision;
    size_t numbers = (size_t)(n * n * count);
    device_array<T> a(numbers), x(numbers);
    draw(a.at(0), numbers);
    struct lu_peers peers = lu_peers_of(n, count, a.at(0));
    to.add(shape_of(n, count), precision, "inverse",
           time_kind(LU_INVERSE, n, count, a.at(0), x.at(0)) * 1e6, "us",
           {{"cublas getrf+getri", peers.inverse * 1e6},
            {"cusolver getrf+getrs", peers.one_inverse * 1e6}});
    to.add(shape_of(n, count), precision, "factor",
           time_kind(LU_FACTOR, n, count, a.at(0), x.at(0)) * 1e6, "us",
           {{"cublas getrf", peers.factor * 1e6}, {"cusolver getrf", peers.one_factor * 1e6}});
}

template <typename T> void time_order(int64_t n, const settings &wish, recorder &to)
{
    size_t bytes = wish.quick ? QUICK_BYTES : BATCH_BYTES;
    if (n <= BATCH_N_MAX)
        time_shape<T>(n, (int64_t)(bytes / ((size_t)(n * n) * sizeof(T))), to);
    time_shape<T>(n, 1, to);
}

void time_all(const settings &wish, recorder &to)
{
    const std::vector<int64_t> some = {64, 128, 256, 512, 1024, 2048, 4096, 8192},
                               all = {33,  48,  64,  96,  128, 144, 160,  176,  192,  208,  224,
                                      256, 288, 320, 384, 512, 768, 1024, 2048, 4096, 8192, 16384};
    for (int64_t n : wish.orders(wish.quick ? some : all)) {
        time_order<float>(n, wish, to);
        time_order<double>(n, wish, to);
    }
}

/* ---- Ways ---- */

template <typename T> struct wide;

template <> struct wide<float> {
    static constexpr auto invert = cuda__lu_invert_wide_f32, factor = cuda__lu_factor_wide_f32;
    static constexpr auto clusters = cuda__lu_clusters_f32;
};

template <> struct wide<double> {
    static constexpr auto invert = cuda__lu_invert_wide_f64, factor = cuda__lu_factor_wide_f64;
    static constexpr auto clusters = cuda__lu_clusters_f64;
};

/* Matrices of one order, and their inverses or factors in any manner. */
template <typename T> struct matrices {
    int64_t n, count;
    device_array<T> a, x;
    lu_call<T> inverse, factor;

    matrices(int64_t order, int64_t many)
        : n(order), count(many), a((size_t)(many * n * n)), x((size_t)(many * n * n)),
          inverse(LU_INVERSE, n, many, a.at(0), x.at(0)),
          factor(LU_FACTOR, n, many, a.at(0), x.at(0))
    {
        draw(a.at(0), (size_t)(many * n * n));
    }

    double time(cuda__lu_manner manner)
    {
        const struct cuda_batch &batch = manner.factor ? factor.batch : inverse.batch;
        size_t bytes = cuda__lu_space_bytes<T>((int)n, manner) * (size_t)count;
        device_array<unsigned char> space(bytes);
        auto launch = manner.factor ? wide<T>::factor : wide<T>::invert;
        return clock_seconds(
            [&](int) {
                TRY(launch((int)n, batch, space.at(0), bytes, manner, here().products, nullptr));
            },
            1);
    }
};

/* Is the manner one that may suit the order? */
template <typename T> bool is_sensible(const cuda__lu_manner &manner, int64_t n, int64_t count)
{
    int64_t width = manner.width, blocks = manner.blocks;
    if (width == 0)
        return blocks == 16 && n <= CUDA__LU_ONE_BLOCK_MAX && !manner.factor;
    bool fits = count == 1 ? blocks == 16 || (blocks == 8 && n <= 2048)
                           : count * blocks <= 2 * cuda__multiprocessors() || blocks == 1;
    return fits && width * 2 <= n && width * 96 >= n &&
           wide<T>::clusters(cuda__lu_padded(n), (int)blocks) == blocks;
}

template <typename T> void try_ways(int64_t n, int64_t count, recorder &to)
{
    matrices<T> of(n, count);
    for (int width : {0, 32, 64, 128, 192, 256})
        for (int blocks : {16, 8, 4, 2, 1})
            for (bool factor : {false, true}) {
                cuda__lu_manner manner = {};
                manner.factor = factor;
                manner.width = width;
                manner.blocks = blocks;
                manner.behind = count > 1;
                if (!is_sensible<T>(manner, n, count))
                    continue;
                std::string shape = shape_of(n, count) + " width=" + std::to_string(width) +
                                    " blocks=" + std::to_string(blocks);
                to.add(shape, number<T>::precision, factor ? "factor" : "inverse",
                       of.time(manner) * 1e6, "us");
                if (!factor)
                    to.add(shape, number<T>::precision, "inverse residual",
                           residual_of(of.a.at(0), of.x.at(0), n).ratio(n, number<T>::eps), "1");
            }
}

void ways(const settings &wish, recorder &to)
{
    for (int64_t n : wish.orders({512, 1024, 2048, 4096, 8192}))
        for (int64_t count : {(int64_t)1, (int64_t)100})
            if (count == 1 || n <= CUDA_NEAR_N_MAX) {
                try_ways<double>(n, count, to);
                try_ways<float>(n, count, to);
            }
}

/* ---- Ablation ---- */

/* Without groups of columns that clusters take (gpu/cuda/lu/group.cuh): each panel is a launch. */
template <typename T> void ablate_groups(int64_t n, int64_t count, recorder &to)
{
    matrices<T> of(n, count);
    double with = clock_seconds([&](int) { of.inverse.run(); }, 10);
    to.add(shape_of(n, count), number<T>::precision, "inverse", with * 1e6, "us",
           {{"without groups", of.time({}) * 1e6}});
}

/* Without products in TF32 and BF16. */
void ablate_split(int64_t n, recorder &to)
{
    matrices<float> of(n, 1);
    double with = clock_seconds([&](int) { of.inverse.run(); }, 2);
    const ablation_scope scope(WITHOUT_SPLIT_PRODUCTS);
    lu_call<float> plain(LU_INVERSE, n, 1, of.a.at(0), of.x.at(0));
    double without = clock_seconds([&](int) { plain.run(); }, 2);
    if (scope.applied())
        to.add(shape_of(n, 1), PRECISION_FP32, "inverse", with * 1e6, "us",
               {{"without split-precision products", without * 1e6}});
}

void ablate(const settings &wish, recorder &to)
{
    for (int64_t n : wish.orders({384, 512, 768, 1024}))
        for (int64_t count : {1, 4}) {
            ablate_groups<double>(n, count, to);
            ablate_groups<float>(n, count, to);
        }
    for (int64_t n : wish.orders({1024, 1536, 2048, 4096, 8192}))
        ablate_split(n, to);
}

} // namespace

const struct subject lu_subject = {
    "lu", "lu and lu_factor above n = 32", check_all, time_all, ablate, ways};
