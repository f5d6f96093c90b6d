/* bench/cuda/iterative_check.cu: what cuda_iterative --check tries: the passes against plain sums
 * on the host, every scheme and start by the true residual, and one matrix alone against the same
 * in a batch.
 */
#include "bench/cuda/iterative.cuh"

#include "gpu/cuda/structured/identify.h"
#include "gpu/cuda/structured/transpose.h"

#define RATIO_MAX 15.0
/* Of FP32 products by parts: beside SGEMM's errors, and, where all numbers have one sign, in
 * eps |A| |B|: sums are cut off there, which adds up. */
#define PRODUCT_MEAN 4
#define PRODUCT_WORST 5
#define PRODUCT_BIAS 32
#define SUM_ERROR 64 /* eps, of a norm */

namespace
{

int failed;

void expect(bool right, const char *what, enum precision precision, int64_t n, double found)
{
    if (right)
        return;
    failed++;
    printf("%s %s n = %d: %g: WRONG\n", precision_name(precision), what, (int)n, found);
}

/* ---- Passes ---- */

template <typename T> struct cuda_identity identify(const device_array<T> &a, int64_t n, int64_t at)
{
    enum precision precision = small_real<T>::precision;
    device_array<cuda_identity> identity(1);
    device_array<char> scratch(cuda_identify_bytes(precision, n, 1));
    struct cuda_identification task = {};
    task.precision = precision;
    task.n = n;
    task.a = {a.at(at), n, n * n};
    task.count = task.sets = 1;
    task.to = identity.at(0);
    task.scratch = scratch.at(0);
    SMALL_TRY(cuda_identify(&task, nullptr));
    return identity.get(0, 1)[0];
}

/* Many calls behind one another with one scratch, of matrices that differ: each may begin while the
 * one before it ends, and tells what it tells alone. */
template <typename T> void check_in_a_row(int64_t n)
{
    enum precision precision = small_real<T>::precision;
    const int64_t calls = 200, kinds = 5;
    std::vector<T> a(n * n * kinds);
    for (int64_t e = 0; e < n * n * kinds; e++)
        a[e] = (T)(iterative_random((uint64_t)(e + n)) * (double)(1 + e / (n * n)));
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
        SMALL_TRY(cuda_identify(&task, nullptr));
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
    enum precision precision = small_real<T>::precision;
    std::vector<T> a(n * n + late);
    std::vector<double> columns(n), rows(n);
    double one = 0, inf = 0;
    long double square = 0; /* a plain sum of millions in double is too far off */
    for (int64_t e = 0; e < n * n; e++) {
        T x = (T)iterative_random((uint64_t)(e + n));
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
    double bound = SUM_ERROR * small_real<T>::eps;
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
    SMALL_TRY(cuda_transpose(&task, nullptr));
    std::vector<T> b = d_b.get(late, n * n);
    int64_t wrong = 0;
    for (int64_t e = 0; e < n * n; e++)
        wrong += b[e % n * n + e / n] != a[e + late];
    expect(wrong == 0, "transpose", precision, n, (double)wrong);
}

/* Kinds, each with one entry that makes it another. */
template <typename T> void check_kinds(int64_t n)
{
    enum precision precision = small_real<T>::precision;
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

template <typename T> void check_passes()
{
    for (int64_t n : {1, 2, 3, 31, 32, 33, 64, 65, 500, 1024, 2049, 3500, 3501, 5001, 7936, 8001}) {
        check_norms<T>(n, 0);
        check_norms<T>(n, 1);
        if (n > 8)
            check_kinds<T>(n);
    }
    for (int64_t n : {33, 512, 700})
        check_in_a_row<T>(n);
}

/* ---- Products ---- */

/* The same bits each time, and nothing lost where operands are far from 1. */
void check_products()
{
    for (int64_t n : {512, 1000, 2048, 3001}) {
        for (enum iterative_operand kind :
             {ITERATIVE_ANY, ITERATIVE_ONE_SIGN, ITERATIVE_SLOPE, ITERATIVE_TINY}) {
            struct iterative_product found = iterative_try_product(n, n, n, kind);
            expect(found.same, "the same bits of a product", PRECISION_FP32, n, kind);
            double most = kind == ITERATIVE_ONE_SIGN ? PRODUCT_BIAS : PRODUCT_MEAN * found.mean;
            expect(found.split_mean <= most, "mean error of a product", PRECISION_FP32, n,
                   found.split_mean);
            expect(found.split_worst <= PRODUCT_WORST * found.worst, "worst error of a product",
                   PRECISION_FP32, n, found.split_worst / found.worst);
        }
    }
}

/* ---- Inverses ---- */

template <typename T> double norm_1(const device_array<T> &a, int64_t n, int64_t at)
{
    return identify(a, n, at).norm_1;
}

template <typename T>
void check_answer(iterative_bed<T> &bed, const struct iterative_found &found, int64_t which,
                  const char *what)
{
    int64_t n = bed.n, at = which * n * n;
    double residual = iterative_true_residual(bed.a.at(at), bed.x.at(at), n);
    double size = norm_1(bed.a, n, at) * norm_1(bed.x, n, at);
    double unit = (double)n * small_real<T>::eps * size;
    expect(found.info == 0, what, small_real<T>::precision, n, found.info);
    expect(residual / unit <= RATIO_MAX, what, small_real<T>::precision, n, residual / unit);
    /* RESIDUAL is measured in the precision. */
    expect(fabs(found.residual - residual) <= unit, "RESIDUAL", small_real<T>::precision, n,
           found.residual);
}

/* The answer has the same bits where nobody wants its residual. */
template <typename T> void check_unmeasured(iterative_bed<T> &bed, struct iterative_wish wish)
{
    int64_t n = bed.n;
    std::vector<T> measured = bed.x.get(0, n * n);
    int32_t info = bed.info.get(0, 1)[0], iterations = bed.iterations.get(0, 1)[0];
    wish.measures = false;
    struct iterative_found found = bed.run(wish, false, 0);
    std::vector<T> alone = bed.x.get(0, n * n);
    bool same = memcmp(alone.data(), measured.data(), (size_t)(n * n) * sizeof(T)) == 0;
    expect(same && found.info == info && found.iterations == iterations,
           "the same bits without RESIDUAL", small_real<T>::precision, n, found.iterations);
}

template <typename T> void check_schemes(int64_t n)
{
    iterative_bed<T> bed(n, 1, false);
    for (int s = METHOD_ITERATIVE_SCHEME_AUTO; s < METHOD_ITERATIVE_SCHEMES; s++) {
        for (int initial = METHOD_ITERATIVE_INITIAL_AUTO;
             initial <= METHOD_ITERATIVE_SCALED_IDENTITY; initial++) {
            struct iterative_wish wish;
            wish.scheme = (enum method_iterative_scheme)s;
            wish.initial = (enum method_iterative_initial)initial;
            iterative_fill(bed.a.at(0), n, 1,
                           initial == METHOD_ITERATIVE_DIAGONAL ||
                                   initial == METHOD_ITERATIVE_SCALED_IDENTITY
                               ? ITERATIVE_DOMINANT
                               : ITERATIVE_GRADED);
            check_answer(bed, bed.run(wish, false, 0), 0, "scheme and start");
            check_unmeasured(bed, wish);
        }
    }
}

/* A matrix has the same bits alone and in a batch of others. */
template <typename T> void check_company(int64_t n, int64_t count)
{
    iterative_bed<T> all(n, count, false), one(n, 1, false);
    struct iterative_wish wish;
    int64_t half = count / 2;
    iterative_fill(all.a.at(0), n, count, ITERATIVE_RANDOM);
    iterative_fill(all.a.at(half * n * n), n, count - half, ITERATIVE_DOMINANT);
    for (enum method_iterative_initial initial :
         {METHOD_ITERATIVE_INITIAL_AUTO, METHOD_ITERATIVE_TRANSPOSE}) {
        wish.initial = initial;
        (void)all.run(wish, false, 0);
        for (int64_t k : {(int64_t)0, (int64_t)1, half - 1, half, count - 1}) {
            size_t bytes = (size_t)(n * n) * sizeof(T);
            SMALL_TRY(
                cudaMemcpy(one.a.at(0), all.a.at(k * n * n), bytes, cudaMemcpyDeviceToDevice));
            SMALL_TRY(cudaDeviceSynchronize()); /* the call's stream waits for nobody */
            (void)one.run(wish, false, 0);
            std::vector<T> x = one.x.get(0, n * n), y = all.x.get(k * n * n, n * n);
            expect(memcmp(x.data(), y.data(), bytes) == 0, "the same bits in a batch",
                   small_real<T>::precision, n, (double)k);
        }
    }
}

template <typename T> void check_singular(int64_t n)
{
    iterative_bed<T> bed(n, 1, false);
    std::vector<T> a(n * n);
    for (int64_t e = 0; e < n * n; e++)
        a[e] = (T)iterative_random((uint64_t)(e / n == n - 1 ? e % n : e));
    bed.a.put(a);
    struct iterative_found found = bed.run({}, false, 0);
    expect(found.info == n + 1 || found.info == n + 2, "equal rows", small_real<T>::precision, n,
           found.info);
}

} // namespace

int iterative_check()
{
    check_passes<float>();
    check_passes<double>();
    printf("passes: %d failed so far\n", failed);
    check_products();
    printf("products: %d failed so far\n", failed);
    for (int64_t n : {1, 7, 32, 33, 100, 129, 300, 513, 1024}) {
        check_schemes<float>(n);
        check_schemes<double>(n);
    }
    check_schemes<float>(2048); /* products by parts */
    printf("schemes: %d failed so far\n", failed);
    for (int64_t n : {5, 33, 64, 200, 520}) {
        check_company<float>(n, n > 200 ? 8 : 37);
        check_company<double>(n, n > 200 ? 8 : 37);
        check_singular<float>(n);
        check_singular<double>(n);
    }
    printf("cuda_iterative: %d failed\n", failed);
    return failed ? 1 : 0;
}
