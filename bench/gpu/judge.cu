/* bench/gpu/judge.cu: whether the answers of a kernel are right, worked out in long double.
 *
 * The rules are those of gpu/method.h and docs/numerics.md. All processors share a set.
 */
#include "bench/gpu/lu.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>

namespace
{

typedef long double real;

/* The largest column sum of f(i, j); NaN if there is one. */
template <typename F> real norm_of(int n, F f)
{
    real worst = 0;
    for (int j = 0; j < n; j++) {
        real sum = 0;
        for (int i = 0; i < n; i++)
            sum += std::fabs((real)f(i, j));
        worst = sum > worst || std::isnan(sum) ? sum : worst;
    }
    return worst;
}

template <typename T> real norm(const T *a, int n)
{
    return norm_of(n, [&](int i, int j) { return a[i * n + j]; });
}

/* |I - one other| */
template <typename T> real residual_of(int n, const T *one, const T *other)
{
    return norm_of(n, [&](int i, int j) {
        real sum = i == j;
        for (int k = 0; k < n; k++)
            sum -= (real)one[i * n + k] * other[k * n + j];
        return sum;
    });
}

template <typename T> bool all_finite(const T *a, int count)
{
    return std::all_of(a, a + count, [](T x) { return std::isfinite(x); });
}

template <typename T> bool all_nan(const T *a, int count)
{
    return std::all_of(a, a + count, [](T x) { return std::isnan(x); });
}

/* LU with partial pivoting of a copy; INFO as LAPACK's. */
int host_factor(std::vector<real> &a, int n, std::vector<int> &pivots)
{
    int info = 0;
    for (int k = 0; k < n; k++) {
        int best = k;
        for (int i = k + 1; i < n; i++)
            best = std::fabs(a[i * n + k]) > std::fabs(a[best * n + k]) ? i : best;
        pivots[k] = best + 1;
        if (a[best * n + k] == 0) {
            info = info ? info : k + 1;
            continue;
        }
        std::swap_ranges(&a[best * n], &a[best * n] + (best == k ? 0 : n), &a[k * n]);
        for (int i = k + 1; i < n; i++) {
            a[i * n + k] /= a[k * n + k];
            for (int j = k + 1; j < n; j++)
                a[i * n + j] -= a[i * n + k] * a[k * n + j];
        }
    }
    return info;
}

template <typename T> int host_info(const T *a, int n)
{
    std::vector<real> copy(a, a + n * n);
    std::vector<int> pivots(n);
    return host_factor(copy, n, pivots);
}

void measured(struct verdict *verdict, double ratio)
{
    verdict->measured++;
    verdict->sum += ratio;
    verdict->worst = std::max(verdict->worst, ratio);
}

void complain(struct verdict *verdict, enum matrix_kind kind, const char *what, int info,
              double number)
{
    char line[200];
    if (!what)
        return;
    snprintf(line, sizeof line, "%s: %s, INFO %d, %g", matrix_kind_name(kind), what, info, number);
    if (verdict->wrong++ == 0)
        verdict->first = line;
}

/* Has A an inverse that is finite and not near the end of the range, and is it far from singular?
 */
template <typename T> bool can_be_had(int n, const T *a)
{
    std::vector<real> lu(a, a + n * n), column(n);
    std::vector<int> pivots(n);
    if (host_factor(lu, n, pivots) != 0)
        return false;
    real size = 0;
    for (int c = 0; c < n; c++) {
        real sum = 0;
        for (int i = 0; i < n; i++)
            column[i] = i == c;
        for (int i = 0; i < n; i++)
            std::swap(column[i], column[pivots[i] - 1]);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < i; k++)
                column[i] -= lu[i * n + k] * column[k];
        for (int i = n - 1; i >= 0; i--) {
            for (int k = i + 1; k < n; k++)
                column[i] -= lu[i * n + k] * column[k];
            column[i] /= lu[i * n + i];
            sum += std::fabs(column[i]);
        }
        size = std::max(size, sum);
    }
    real margin = 8 * n;
    return size < number<T>::largest / margin && size > number<T>::denormal_step * margin &&
           1 / size / norm(a, n) > margin * (real)number<T>::eps;
}

bool zero_step_is_certain(enum matrix_kind kind)
{
    return kind == KIND_ZERO_COLUMN || kind == KIND_ZERO;
}

/* Of an inverse whose pivots were not zero; returns what is wrong or NULL. */
template <typename T>
const char *judge_numbers(int n, enum matrix_kind kind, const T *a, const T *x, int info, T rcond,
                          struct verdict *verdict)
{
    real size_a = norm(a, n), size_x = norm(x, n), eps = number<T>::eps;
    if (zero_step_is_certain(kind))
        return "a zero pivot was not seen";
    if (!all_finite(x, n * n) || size_x == 0) {
        if (info != n + 1 || rcond != 0)
            return "an overflow was not reported";
        return can_be_had(n, a) ? "an inverse that can be had is missing" : nullptr;
    }
    real want = 1 / size_a / size_x;
    if (want > FLT_MIN && std::fabs(rcond - want) > 4 * n * eps * want)
        return "RCOND is wrong";
    if (info != 0 && !(rcond < (T)eps)) /* with 0 it may be so for the scaling alone */
        return "INFO does not follow RCOND";
    if (info != 0)
        return can_be_had(n, a) ? "INFO of a good matrix" : nullptr;
    const real unit = n * size_a * size_x * eps;
    const real left = residual_of(n, x, a) / unit, right = residual_of(n, a, x) / unit;
    measured(verdict, (double)std::max(left, right));
    return !(left <= RATIO_MAX)    ? "|I - X A| is too large"
           : !(right <= RATIO_MAX) ? "|I - A X| is too large"
                                   : nullptr;
}

/* Are the pivots those of LU with partial pivoting in the same precision, the first of the largest
 * each, except where rounding could have decided otherwise? */
template <typename T> bool pivots_are_largest(int n, const T *a, const int32_t *pivots)
{
    std::vector<T> u(a, a + n * n);
    T largest = 0;
    for (int k = 0; k < n; k++) {
        int best = k, chosen = pivots[k] - 1;
        for (int e = 0; e < n * n; e++)
            largest = std::max(largest, std::fabs(u[e]));
        for (int i = k + 1; i < n; i++)
            best = std::fabs(u[i * n + k]) > std::fabs(u[best * n + k]) ? i : best;
        T short_of = std::fabs(u[best * n + k]) - std::fabs(u[chosen * n + k]);
        real doubt =
            k == 0 ? 0 : 8 * n * (largest * (real)number<T>::eps + number<T>::denormal_step);
        if (chosen != best && !(k > 0 && short_of <= doubt))
            return false;
        if (chosen != k)
            std::swap_ranges(&u[k * n], &u[k * n] + n, &u[chosen * n]);
        for (int i = k + 1; i < n && u[k * n + k] != 0; i++) {
            T multiplier = u[i * n + k] /= u[k * n + k];
            for (int j = k + 1; j < n; j++)
                u[i * n + j] -= multiplier * u[k * n + j];
        }
        if (!all_finite(u.data(), n * n))
            return true; /* what follows is undefined */
    }
    return true;
}

/* Of finite A; returns what is wrong or NULL. */
template <typename T>
const char *judge_product(int n, enum matrix_kind kind, const T *a, const T *lu,
                          const int32_t *pivots, struct verdict *verdict)
{
    std::vector<T> pa(a, a + n * n);
    for (int i = 0; i < n; i++) {
        if (pivots[i] < i + 1 || pivots[i] > n)
            return "a pivot is out of range";
        if (pivots[i] != i + 1)
            std::swap_ranges(&pa[i * n], &pa[i * n] + n, &pa[(pivots[i] - 1) * n]);
        for (int j = 0; j < i; j++) {
            if (std::fabs(lu[i * n + j]) > 1 + 2 * (T)number<T>::eps)
                return "an entry of L exceeds 1";
        }
    }
    auto term = [&](int i, int j, int k) {
        return (k == i ? (real)1 : (real)lu[i * n + k]) * (real)lu[k * n + j];
    };
    real residual = norm_of(n, [&](int i, int j) {
        real sum = pa[i * n + j];
        for (int k = 0; k <= std::min(i, j); k++)
            sum -= term(i, j, k);
        return sum;
    });
    real grown = norm_of(n, [&](int i, int j) {
        real sum = 0;
        for (int k = 0; k <= std::min(i, j); k++)
            sum += std::fabs(term(i, j, k));
        return sum;
    });
    /* No more can be asked of LU where its elements grow: LAPACK's do as well. */
    real unit = n * (kind >= KIND_GROWING ? grown : norm(a, n)) * (real)number<T>::eps;
    if (kind == KIND_DENORMAL ||
        kind == KIND_DENORMAL_COLUMN) /* products are rounded to the step of denormal numbers */
        return residual <= 30 * unit + 4 * n * n * number<T>::denormal_step
                   ? nullptr
                   : "|P A - L U| is too large";
    double ratio = (double)(unit > 0 ? residual / unit : residual);
    if (kind == KIND_LARGEST_ENTRY && !(ratio <= RATIO_MAX)) /* U may overflow */
        return nullptr;
    measured(verdict, ratio);
    return ratio <= RATIO_MAX ? nullptr : "|P A - L U| is too large";
}

template <typename T>
void judge_inverse(int n, enum matrix_kind kind, const T *a, const T *x, int info, T rcond,
                   struct verdict *verdict)
{
    const char *what = nullptr;
    if (!all_finite(a, n * n)) {
        if (info != -1 || !all_nan(x, n * n) || !std::isnan(rcond))
            what = "NaN or infinity was not reported";
    } else if (info < 0 || info > n + 1) {
        what = "INFO is out of range";
    } else if (info > 0 && info <= n) {
        if (!all_nan(x, n * n) || rcond != 0)
            what = "a zero pivot without NaNs and RCOND 0";
        else if (zero_step_is_certain(kind) && info != host_info(a, n))
            what = "the zero pivot's step";
    } else {
        what = judge_numbers(n, kind, a, x, info, rcond, verdict);
    }
    complain(verdict, kind, what, info, (double)rcond);
}

template <typename T>
void judge_factor(int n, enum matrix_kind kind, const T *a, const T *lu, int info,
                  const int32_t *pivots, struct verdict *verdict)
{
    const char *what = nullptr;
    std::vector<real> copy(a, a + n * n);
    std::vector<int> expected(n);
    if (!all_finite(a, n * n)) {
        bool none = std::all_of(pivots, pivots + n, [](int32_t p) { return p == 0; });
        if (info != -1 || !all_nan(lu, n * n) || !none)
            what = "NaN or infinity was not reported";
        complain(verdict, kind, what, info, 0);
        return;
    }
    int step = host_factor(copy, n, expected);
    bool exact = kind == KIND_PERMUTATION || kind == KIND_IDENTITY || kind == KIND_ZERO;
    if ((exact || zero_step_is_certain(kind)) && step != info)
        what = "the zero pivot's step";
    else if (exact && !std::equal(expected.begin(), expected.end(), pivots))
        what = "pivots other than LAPACK's";
    else
        what = judge_product(n, kind, a, lu, pivots, verdict);
    if (!what && !pivots_are_largest(n, a, pivots))
        what = "a pivot that is not the first largest";
    complain(verdict, kind, what, info, 0);
}

template <typename T>
void judge(enum lu_kind which, int n, const T *a, const lu_answers<T> &answers, int64_t k,
           struct verdict *verdict)
{
    const size_t entries = (size_t)n * n;
    const size_t extra_bytes = lu_extra_bytes(which, number<T>::precision, n);
    const unsigned char *extra = &answers.extra[(size_t)k * extra_bytes];
    const T *own = a + (size_t)k * entries, *result = &answers.result[(size_t)k * entries];
    if (which == LU_FACTOR) {
        std::vector<int32_t> pivots(n);
        memcpy(pivots.data(), extra, extra_bytes);
        judge_factor(n, matrix_kind_of(k), own, result, answers.info[k], pivots.data(), verdict);
    } else {
        T rcond;
        memcpy(&rcond, extra, sizeof rcond);
        judge_inverse(n, matrix_kind_of(k), own, result, answers.info[k], rcond, verdict);
    }
}

} // namespace

template <typename T>
struct verdict lu_judge(enum lu_kind kind, int n, const std::vector<T> &a,
                        const lu_answers<T> &answers)
{
    const int64_t count = (int64_t)answers.info.size();
    std::atomic<int64_t> next(0);
    std::vector<struct verdict> parts(std::max(1u, std::thread::hardware_concurrency()));
    std::vector<std::thread> threads;
    for (struct verdict &part : parts)
        threads.emplace_back([&] {
            for (int64_t k = next++; k < count; k = next++)
                judge(kind, n, a.data(), answers, k, &part);
        });
    for (std::thread &thread : threads)
        thread.join();
    struct verdict all;
    for (const struct verdict &part : parts) {
        all.worst = std::max(all.worst, part.worst);
        all.sum += part.sum;
        all.measured += part.measured;
        all.wrong += part.wrong;
        all.first = all.first.empty() ? part.first : all.first;
    }
    return all;
}

template struct verdict lu_judge(enum lu_kind, int, const std::vector<float> &,
                                 const lu_answers<float> &);
template struct verdict lu_judge(enum lu_kind, int, const std::vector<double> &,
                                 const lu_answers<double> &);
