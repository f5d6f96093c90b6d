/* bench/gpu/passes.cu: the passes over a matrix that `iterative` and `auto` make: norms and kinds
 * (identify), and transposes.
 *
 * Check: against plain sums on the host. Time: one matrix, and batches of 256 MiB, next to copies
 * that move as many bytes; and launches that do nothing, as many as identify has.
 */
#include "bench/gpu/calls.h"

#include <cstring>

#include "bench/gpu/ablate.h"
#include "bench/gpu/random.cuh"
#include "gpu/cuda/base/launch.cuh"
#include "gpu/cuda/base/ptx.cuh"
#include "gpu/cuda/structured/identify.h"
#include "gpu/cuda/structured/transpose.h"

#define SUM_ERROR 64 /* eps, of a norm */

namespace
{

/* ---- Check ---- */

int failed;

void expect(bool right, const char *what, enum precision precision, int64_t n, double found)
{
    if (right)
        return;
    failed++;
    printf("%s %s n = %d: %g: WRONG\n", precision_name(precision), what, (int)n, found);
}

template <typename T> struct cuda_identity identify(const device_array<T> &a, int64_t n, int64_t at)
{
    enum precision precision = number<T>::precision;
    device_array<cuda_identity> identity(1);
    device_array<char> scratch(cuda_identify_bytes(precision, n, 1));
    struct cuda_identification task = {};
    task.precision = precision;
    task.n = n;
    task.a = {a.at(at), n, n * n};
    task.count = task.sets = 1;
    task.to = identity.at(0);
    task.scratch = scratch.at(0);
    TRY(cuda_identify(&task, nullptr));
    return identity.get(0, 1)[0];
}

/* Many calls behind one another with one scratch, of matrices that differ: each may begin while the
 * one before it ends, and reports what it reports alone. */
template <typename T> void check_in_a_row(int64_t n)
{
    enum precision precision = number<T>::precision;
    const int64_t calls = 200, kinds = 5;
    std::vector<T> a(n * n * kinds);
    for (int64_t e = 0; e < n * n * kinds; e++)
        a[e] = (T)(random_number((uint64_t)(e + n)) * (double)(1 + e / (n * n)));
    device_array<T> d_a(n * n * kinds);
    d_a.put(a);
    device_array<cuda_identity> identity(calls);
    device_array<char> scratch(cuda_identify_bytes(precision, n, 1));
    for (int64_t k = 0; k < calls; k++) {
        struct cuda_identification task = {};
        task.precision = precision;
        task.n = n;
        task.a = {d_a.at(k % kinds * n * n), n, n * n};
        task.count = task.sets = 1;
        task.to = identity.at(k);
        task.scratch = scratch.at(0);
        TRY(cuda_identify(&task, nullptr));
    }
    std::vector<cuda_identity> found = identity.get(0, calls);
    int64_t wrong = 0;
    for (int64_t k = 0; k < calls; k++) {
        struct cuda_identity alone = identify(d_a, n, k % kinds * n * n);
        wrong += memcmp(&found[k], &alone, sizeof alone) != 0;
    }
    expect(wrong == 0, "in a row", precision, n, (double)wrong);
}

template <typename T> void check_norms(int64_t n, int64_t late)
{
    enum precision precision = number<T>::precision;
    std::vector<T> a(n * n + late);
    std::vector<double> columns(n), rows(n);
    double one = 0, inf = 0;
    long double square = 0; /* a plain sum of millions in double is too far off */
    for (int64_t e = 0; e < n * n; e++) {
        T x = (T)random_number((uint64_t)(e + n));
        a[e + late] = x;
        columns[e % n] += fabs((double)x);
        rows[e / n] += fabs((double)x);
        square += (long double)x * (long double)x;
    }
    for (int64_t k = 0; k < n; k++) {
        one = fmax(one, columns[k]);
        inf = fmax(inf, rows[k]);
    }
    device_array<T> d_a(n * n + late), d_b(n * n + late);
    d_a.put(a);
    struct cuda_identity found = identify(d_a, n, late);
    double bound = SUM_ERROR * number<T>::eps;
    expect(fabs(found.norm_1 / one - 1) <= bound, "1-norm", precision, n, found.norm_1 / one);
    expect(fabs(found.norm_inf / inf - 1) <= bound, "infinity-norm", precision, n,
           found.norm_inf / inf);
    expect(fabs(found.frobenius / (double)sqrtl(square) - 1) <= bound, "Frobenius norm", precision,
           n, found.frobenius);
    uint32_t parts = CUDA_PART_BELOW | CUDA_PART_ABOVE | CUDA_PART_OFF_BAND | CUDA_PART_ASYMMETRIC;
    if (n > 2)
        expect((found.parts & ~(uint32_t)CUDA_PART_NOT_POSITIVE) == parts, "parts", precision, n,
               found.parts);
    struct cuda_transposition task = {
        precision, n, n, {d_a.at(late), n, 0}, {d_b.at(late), n, 0}, 1, nullptr};
    TRY(cuda_transpose(&task, nullptr));
    std::vector<T> b = d_b.get(late, n * n);
    int64_t wrong = 0;
    for (int64_t e = 0; e < n * n; e++)
        wrong += b[e % n * n + e / n] != a[e + late];
    expect(wrong == 0, "transpose", precision, n, (double)wrong);
}

/* Kinds, each with one entry that makes it another. */
template <typename T> void check_kinds(int64_t n)
{
    enum precision precision = number<T>::precision;
    std::vector<T> a(n * n);
    device_array<T> d_a(n * n);
    for (int64_t e = 0; e < n * n; e++)
        a[e] = e / n == e % n ? (T)2 : T(0);
    d_a.put(a);
    struct cuda_identity found = identify(d_a, n, 0);
    expect(found.parts == 0 && found.dominant && found.zero_column == CUDA_NO_LINE &&
               found.zero_row == CUDA_NO_LINE,
           "diagonal", precision, n, found.parts);
    int64_t i = n / 2, j = n - 1;
    a[i * n + j] = 1;
    d_a.put(a);
    expect(identify(d_a, n, 0).parts ==
               (CUDA_PART_ABOVE | CUDA_PART_OFF_BAND | CUDA_PART_ASYMMETRIC),
           "one above", precision, n, found.parts);
    a[j * n + i] = 1;
    d_a.put(a);
    expect(identify(d_a, n, 0).parts == (CUDA_PART_ABOVE | CUDA_PART_BELOW | CUDA_PART_OFF_BAND),
           "symmetric", precision, n, found.parts);
    a[j * n + i] = a[i * n + j] = a[i * n + i] = 0;
    a[j * n + j] = (T)NAN;
    d_a.put(a);
    found = identify(d_a, n, 0);
    expect(found.parts & CUDA_PART_NOT_FINITE, "NaN", precision, n, found.parts);
    a[j * n + j] = -1;
    d_a.put(a);
    found = identify(d_a, n, 0);
    expect(found.zero_column == i + 1 && found.zero_row == i + 1 && !found.dominant &&
               found.parts == CUDA_PART_NOT_POSITIVE,
           "zero line", precision, n, found.zero_column);
}

int check_all(const settings &wish)
{
    failed = 0;
    for (int64_t n : wish.orders(
             {1, 2, 3, 31, 32, 33, 64, 65, 500, 1024, 2049, 3500, 3501, 5001, 7936, 8001})) {
        for (int64_t late : {0, 1}) {
            check_norms<float>(n, late);
            check_norms<double>(n, late);
        }
        if (n > 8) {
            check_kinds<float>(n);
            check_kinds<double>(n);
        }
    }
    for (int64_t n : wish.orders({33, 512, 700})) {
        check_in_a_row<float>(n);
        check_in_a_row<double>(n);
    }
    return failed;
}

/* ---- Time ---- */

const size_t BATCH_BYTES = (size_t)256 << 20; /* about */

/* Two arrays of sets of `count` matrices, more bytes than the cache holds, which calls go round. */
template <typename T> struct bed {
    int64_t n, count;
    size_t numbers, bytes; /* of a set */
    int sets, calls;
    device_array<T> from, to;
    device_array<cuda_identity> identity;
    device_array<char> scratch;

    bed(int64_t order, int64_t matrices)
        : n(order), count(matrices), numbers((size_t)(n * n * count)), bytes(numbers * sizeof(T)),
          sets((int)(CLOCK_CACHE_BYTES / bytes + 1)),
          calls((int)std::min<size_t>(200, std::max<size_t>(3, ((size_t)8 << 30) / bytes))),
          from(numbers * sets), to(numbers * sets), identity((size_t)count),
          scratch(cuda_identify_bytes(number<T>::precision, n, count))
    {
        draw(from.at(0), numbers * sets);
        /* Memory given back a moment ago keeps the device busy for a while. */
        const auto settled = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
        while (std::chrono::steady_clock::now() < settled)
            (void)copy(bytes);
    }

    double copy(size_t moved)
    {
        return copy_seconds(to.at(0), from.at(0), bytes * sets, moved, calls);
    }

    cuda_matrices place(const device_array<T> &of, int i) const
    {
        return cuda_matrices{of.at((size_t)(i % sets) * numbers), n, n * n};
    }

    double identify_seconds()
    {
        return clock_seconds(
            [&](int i) {
                struct cuda_identification task = {};
                task.precision = number<T>::precision;
                task.n = n;
                task.a = place(from, i);
                task.count = count;
                task.sets = 1;
                task.to = identity.at(0);
                task.scratch = scratch.at(0);
                TRY(cuda_identify(&task, nullptr));
            },
            calls);
    }

    double transpose_seconds()
    {
        return clock_seconds(
            [&](int i) {
                struct cuda_transposition task = {
                    number<T>::precision, n, n, place(from, i), place(to, i), count, nullptr};
                TRY(cuda_transpose(&task, nullptr));
            },
            calls);
    }
};

template <typename T> void time_passes(int64_t n, int64_t count, recorder &to)
{
    bed<T> bed(n, count ? count : (int64_t)(BATCH_BYTES / ((size_t)(n * n) * sizeof(T))));
    double identify = bed.identify_seconds(), transpose = bed.transpose_seconds();
    const std::string shape = shape_of(n, bed.count);
    to.add(shape, number<T>::precision, "identify", identify * 1e6, "us",
           {{"copy", bed.copy(bed.bytes) * 1e6}});
    to.add(shape, number<T>::precision, "transpose", transpose * 1e6, "us",
           {{"copy", bed.copy(2 * bed.bytes) * 1e6}});
}

/* What the first kernel of a pass begins with. */
__global__ void nothing()
{
    cuda__wait_for_previous();
    cuda__release_next();
}

double launch_seconds(int launches)
{
    const bool overlaps = cuda__overlaps();
    return clock_seconds(
        [=](int) {
            for (int launch = 0; launch < launches; launch++)
                TRY(cuda__follow(nothing, 136, 128, 0, overlaps, nullptr));
        },
        200);
}

void time_all(const settings &wish, recorder &to)
{
    to.add("n=512", PRECISION_FP64, "one launch", launch_seconds(1) * 1e6, "us");
    to.add("n=512", PRECISION_FP64, "two launches", launch_seconds(2) * 1e6, "us");
    for (int64_t n : wish.orders({512, 1000, 1024, 1536, 2048, 4096, 8192, 16384, 32768})) {
        time_passes<double>(n, 1, to);
        time_passes<float>(n, 1, to);
    }
    for (int64_t n : wish.orders({512, 1000, 1024, 2048})) {
        time_passes<double>(n, 0, to);
        time_passes<float>(n, 0, to);
    }
}

void ablate(const settings &wish, recorder &to)
{
    for (int64_t n : wish.orders({512, 1024, 2048, 4096})) {
        bed<double> bed(n, 1);
        double with = bed.identify_seconds();
        const ablation_scope scope(WITHOUT_OVERLAP);
        to.add(shape_of(n, 1), PRECISION_FP64, "identify", with * 1e6, "us",
               {{"without overlapped launches", bed.identify_seconds() * 1e6}});
    }
}

} // namespace

const struct subject passes_subject = {
    "passes", "norms, kinds and transposes", check_all, time_all, ablate, nullptr};
