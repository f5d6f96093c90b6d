/* bench/cuda/middle_check.cu: cuda_middle --check: the answers of a kernel are right, and their
 * bits do not depend on where a matrix lies or how much workspace there is.
 *
 * A set of matrices, random and hostile ones, is run as one item with workspace for all, recovered
 * where that is due, and judged on all processors. Then each matrix is an item of its own, in
 * reverse, at an odd address, and the workspace does for one: every answer must have the bits it
 * had. Nothing beyond a result may be written.
 */
#include "bench/cuda/middle.cuh"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

namespace
{

const double JUDGE_OPERATIONS = 1.5e9; /* of a set, about */
const int64_t COMPANY_MAX = 280;       /* matrices; more than find room on a device at once */
const int64_t COMPANY_BYTES = 1 << 27; /* of them, at most */
const int64_t GUARD = 64;              /* numbers behind each result that nobody may touch */

template <typename T> struct answers {
    std::vector<T> result;
    std::vector<unsigned char> extra;
    std::vector<int32_t> info;
    uint32_t unverified;
    int64_t overrun; /* bytes written beyond results */
};

template <typename T> struct set {
    enum small_kernel kernel;
    int n;
    int64_t count;
    size_t entries, extra_bytes; /* of a matrix */
    std::vector<T> a;
};

/* Enough for every kind of matrix where that is cheap. */
int64_t count_of(int n, int64_t most)
{
    double operations = (double)n * n * n;
    int64_t count = (int64_t)std::min(60.0, std::max(3.0, JUDGE_OPERATIONS / operations));
    return most ? std::min(count, most) : count;
}

/* Runs the set with results `stride` numbers apart; scattered: an item a matrix, in reverse. */
template <typename T> answers<T> run(const set<T> &of, bool scattered)
{
    const enum precision precision = small_real<T>::precision;
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
    size_t bytes = middle_workspace(of.kernel, precision, of.n, scattered ? 1 : of.count);
    device_array<unsigned char> workspace(bytes);
    struct cuda_batch batch = {items.at(0), (int64_t)table.size(), of.count, unverified.at(0)};
    SMALL_TRY(middle_launch(of.kernel, precision, of.n, &batch, workspace.at(0), bytes));
    SMALL_TRY(cudaDeviceSynchronize());
    answers<T> answer = {{}, {}, {}, unverified.get(0, 1)[0], 0};
    if (answer.unverified)
        SMALL_TRY(cuda_recover_middle(precision, of.n, &batch, workspace.at(0), bytes,
                                      middle_products(), nullptr));
    SMALL_TRY(cudaDeviceSynchronize());
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
    set<T> company = of;
    company.count = count;
    company.a.clear();
    for (int64_t k = 0; k < count; k++) {
        auto from = of.a.begin() + (int64_t)((size_t)(k % of.count) * of.entries);
        company.a.insert(company.a.end(), from, from + (int64_t)of.entries);
    }
    answers<T> answer = run(company, false);
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

template <typename T>
bool company_never_shows(const set<T> &of, const answers<T> &alone, int64_t most)
{
    int64_t room = COMPANY_BYTES / (int64_t)(of.entries * sizeof(T));
    int64_t many = std::min(room, most ? most : COMPANY_MAX);
    bool same = true;
    for (int64_t count : {int64_t(1), int64_t(7), many})
        same = same && (count > many || count == 0 || same_among(of, alone, count));
    return same;
}

template <typename T> small_verdict judge(const set<T> &of, const answers<T> &answer)
{
    std::atomic<int64_t> next(0);
    std::vector<small_verdict> verdicts(std::max(1u, std::thread::hardware_concurrency()));
    auto work = [&](small_verdict *verdict) {
        for (int64_t k = next++; k < of.count; k = next++) {
            const T *a = &of.a[k * of.entries], *result = &answer.result[k * of.entries];
            const unsigned char *extra = &answer.extra[k * of.extra_bytes];
            if (of.kernel == SMALL_INVERSE)
                small_judge_inverse<T>(of.n, small_kind_of(k), a, result, answer.info[k],
                                       *(const T *)extra, verdict);
            else
                small_judge_factor<T>(of.n, small_kind_of(k), a, result, answer.info[k],
                                      (const int32_t *)extra, verdict);
        }
    };
    std::vector<std::thread> threads;
    for (small_verdict &verdict : verdicts)
        threads.emplace_back(work, &verdict);
    for (std::thread &thread : threads)
        thread.join();
    small_verdict all;
    for (const small_verdict &verdict : verdicts) {
        all.worst = std::max(all.worst, verdict.worst);
        all.sum += verdict.sum;
        all.measured += verdict.measured;
        all.wrong += verdict.wrong;
        all.first = all.first.empty() ? verdict.first : all.first;
    }
    return all;
}

/* LU of growing elements overflows in FP32 from n = 128 on, as LAPACK's does. */
template <typename T> void tame(set<T> &of)
{
    for (int64_t k = 0; of.kernel == SMALL_FACTOR && of.n >= 100 && k < of.count; k++) {
        if (small_kind_of(k) < KIND_GROWING || small_kind_of(k) >= KIND_COUNT)
            continue;
        T *a = &of.a[k * of.entries];
        for (int i = 0; i < of.n; i++)
            a[(size_t)i * of.n + of.n - 1] = i == of.n - 1 ? T(1) : T(0);
    }
}

template <typename T> bool check(enum small_kernel kernel, int n, int64_t most)
{
    set<T> of = {kernel,
                 n,
                 count_of(n, most),
                 (size_t)n * n,
                 small_extra_bytes(kernel, small_real<T>::precision, n),
                 {}};
    of.a = small_matrices<T>(n, of.count);
    tame(of);
    answers<T> answer = run(of, false), again = run(of, true);
    small_verdict verdict = judge(of, answer);
    bool same =
        memcmp(answer.result.data(), again.result.data(), answer.result.size() * sizeof(T)) == 0 &&
        answer.extra == again.extra && answer.info == again.info &&
        company_never_shows(of, answer, most);
    bool right = verdict.wrong == 0 && same && answer.overrun + again.overrun == 0;
    printf("%s %-7s %s n=%-4d %3d matrices: worst %.3f, mean %.4f, %u recovered%s%s%s\n",
           right ? "ok    " : "FAILED", kernel == SMALL_INVERSE ? "inverse" : "factor",
           precision_name(small_real<T>::precision), n, (int)of.count, verdict.worst,
           verdict.sum / (double)std::max<int64_t>(1, verdict.measured), answer.unverified,
           same ? "" : ", other bits elsewhere",
           answer.overrun + again.overrun ? ", written beyond a result" : "",
           verdict.wrong ? (", " + verdict.first).c_str() : "");
    fflush(stdout);
    return right;
}

} // namespace

bool middle_check(enum small_kernel kernel, enum precision precision, int n, int64_t most)
{
    return precision == PRECISION_FP32 ? check<float>(kernel, n, most)
                                       : check<double>(kernel, n, most);
}
