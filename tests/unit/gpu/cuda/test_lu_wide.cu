/* The kernels of `lu` and `lu_factor` for large orders, on matrices that suit a CPU: inverses by
 * halves; columns that a cluster of blocks eliminates during the products of the others; and
 * inverses that are recovered by mixing columns.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <vector>

extern "C" {
#include <cmocka.h>

#include "gpu/host/linalg/lapack.h"
#include "gpu/cuda/gemm/gemm.h"
#include "tests/support/gallery.h"
#include "tests/unit/gpu/host/matrices.h"
}

#include "gpu/cuda/lu/wide.cuh"
#include "tests/simt/sanitizers.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KINDS 7
#define UNEVEN 4          /* rows and columns of many scales */
#define UNEVEN_SINGULAR 5 /* and two rows that are the same but for theirs */

/* The exponent of a row or a column. */
static int scale_of(int line, enum precision precision)
{
    return line * 7 % 41 * (precision == PRECISION_FP32 ? 1 : 9) - 20;
}

/* Matrix number `kind`; INFO of its inverse. */
static int fill(int kind, enum precision precision, int n, std::vector<double> &a)
{
    uint64_t seed = (uint64_t)(n + kind);
    for (int e = 0; e < n * n; e++) {
        int i = e / n, j = e % n;
        double random = gputest_random(&seed), value = random;
        if (kind == 1) /* partial pivoting doubles its last column at every step */
            value = gallery_growing_inexact(i, j, n);
        if (kind == 2 && j == n - 3)
            value = 0;
        if (kind == 3)
            value = ldexp(random, precision == PRECISION_FP32 ? -108 : -995);
        if (kind == UNEVEN || kind == UNEVEN_SINGULAR) {
            const double first = i == n - 1 ? a[j] * ldexp(1, -scale_of(0, precision)) : random;
            value = ldexp(kind == UNEVEN ? random : first, scale_of(i, precision));
            value = i == n - 1 && kind == UNEVEN_SINGULAR
                        ? value
                        : ldexp(value, scale_of(j + 5, precision));
        }
        if (kind == KINDS - 1 && e == n + 1)
            value = (double)NAN;
        a[e] = precision == PRECISION_FP32 ? (double)(float)value : value;
    }
    return kind == 2 ? n - 2 : kind == UNEVEN_SINGULAR ? n + 1 : kind == KINDS - 1 ? -1 : 0;
}

static cuda__lu_manner manner_of(bool factor, int width, int blocks)
{
    cuda__lu_manner manner = {};
    manner.factor = factor;
    manner.width = width;
    manner.blocks = blocks;
    return manner;
}

template <typename T> struct batch {
    std::vector<T> a, result, rcond;
    std::vector<int32_t> pivots, info;
    struct cuda_item item;
    uint32_t unverified;
    std::vector<double> one; /* matrix */

    explicit batch(int n)
        : a(KINDS * n * n), result(KINDS * n * n, T(7)), rcond(KINDS), pivots(KINDS * n),
          info(KINDS, 77), item(), unverified(0), one(n * n)
    {
    }
};

/* Two of the matrices at a time. */
template <typename T>
static void run(cuda__lu_wide_launcher *launch, cuda__lu_manner manner, int n, batch<T> &of)
{
    struct cuda_batch all = {&of.item, 1, KINDS, &of.unverified};
    struct cuda_products *products = nullptr;
    size_t bytes = 2 * cuda__lu_space_bytes<T>(n, manner);
    void *space;
    of.item = {of.a.data(), of.result.data(),
               manner.factor ? (void *)of.pivots.data() : (void *)of.rcond.data(), of.info.data(),
               0};
    assert_int_equal(cudaMalloc(&space, bytes), cudaSuccess);
    assert_int_equal(cuda_products_create(nullptr, &products), cudaSuccess);
    assert_int_equal(launch(n, all, space, bytes, manner, products, nullptr), cudaSuccess);
    if (!manner.factor) {
        manner.recovery = true;
        assert_int_equal(launch(n, all, space, bytes, manner, products, nullptr), cudaSuccess);
        manner.equilibrated = true;
        assert_int_equal(launch(n, all, space, bytes, manner, products, nullptr), cudaSuccess);
    }
    cuda_products_destroy(&products);
    assert_int_equal(cudaFree(space), cudaSuccess);
}

template <typename T>
static void try_inverse(cuda__lu_wide_launcher *launch, enum precision precision,
                        cuda__lu_manner manner, int n)
{
    batch<T> of(n);
    int expected[KINDS];
    for (int k = 0; k < KINDS; k++) {
        expected[k] = fill(k, precision, n, of.one);
        for (int e = 0; e < n * n; e++)
            of.a[k * n * n + e] = (T)of.one[e];
    }
    run(launch, manner, n, of);
    /* What has grown, what is singular, and what is uneven. */
    assert_int_equal(of.unverified, 4);
    for (int k = 0; k < KINDS; k++) {
        std::vector<double> x(of.result.begin() + k * n * n, of.result.begin() + (k + 1) * n * n);
        fill(k, precision, n, of.one);
        if (k == UNEVEN_SINGULAR) { /* rounding decides whether its last pivot is zero */
            assert_in_range(of.info[k], 1, n + 1);
            assert_true(of.rcond[k] < (T)gputest_eps(precision));
            continue;
        }
        assert_int_equal(of.info[k], expected[k]);
        if (expected[k]) {
            for (double entry : x)
                assert_true(isnan(entry));
            continue;
        }
        assert_true(k == UNEVEN ? of.rcond[k] < (T)1e-7 : of.rcond[k] > (T)1e-6);
        assert_true(gputest_inverse_ratio(precision, n, of.one.data(), x.data()) < 2);
    }
}

template <typename T>
static void try_factor(cuda__lu_wide_launcher *launch, enum precision precision,
                       cuda__lu_manner manner, int n)
{
    batch<T> of(n);
    std::vector<T> columns(n * n);
    std::vector<int32_t> pivots(n);
    for (int k = 0; k < KINDS; k++) {
        fill(k, precision, n, of.one);
        for (int e = 0; e < n * n; e++)
            of.a[k * n * n + e] = (T)of.one[e];
    }
    run(launch, manner, n, of);
    for (int k = 0; k < UNEVEN_SINGULAR; k++) { /* whose last pivot is rounding */
        for (int e = 0; e < n * n; e++)
            columns[e] = of.a[k * n * n + e % n * n + e / n];
        int64_t info = precision == PRECISION_FP32
                           ? host__getrf_f32(n, (float *)columns.data(), n, pivots.data())
                           : host__getrf_f64(n, (double *)columns.data(), n, pivots.data());
        assert_int_equal(of.info[k], info);
        assert_memory_equal(&of.pivots[k * n], pivots.data(), n * sizeof pivots[0]);
    }
    assert_int_equal(of.info[KINDS - 1], -1);
}

/* The table's rows; whole panels, and less. */
static const int orders[] = {34, 64, 270};
#define TRIED (TSAN_IS_HERE || ASAN_IS_HERE ? 1 : COUNT(orders))

static void test_inverse(void **)
{
    for (size_t i = 0; i < TRIED; i++) {
        try_inverse<double>(cuda__lu_invert_wide_f64, PRECISION_FP64, manner_of(false, 0, 0),
                            orders[i]);
        if (i + 1 < COUNT(orders))
            try_inverse<float>(cuda__lu_invert_wide_f32, PRECISION_FP32, manner_of(false, 0, 0),
                               orders[i]);
    }
}

/* One width and more, and the last one short; one group of columns and more; one block and four. */
static const struct {
    int n, width, blocks;
} clusters[] = {{34, 32, 0}, {64, 64, 1}, {150, 64, 2}, {210, 160, 0}};

static void test_clusters(void **)
{
    for (size_t i = 0; i < (TRIED == 1 ? 3 : COUNT(clusters)); i++) {
        cuda__lu_manner manner = manner_of(false, clusters[i].width, clusters[i].blocks);
        manner.behind = i == 2;
        try_inverse<double>(cuda__lu_invert_wide_f64, PRECISION_FP64, manner, clusters[i].n);
        if (i + 1 < COUNT(clusters))
            try_inverse<float>(cuda__lu_invert_wide_f32, PRECISION_FP32, manner, clusters[i].n);
    }
}

/* One answer, whatever the number of blocks. */
static void test_blocks_never_show(void **)
{
    const int n = 200;
    std::vector<double> first;
    for (int blocks : {1, 2, 4}) {
        batch<double> of(n);
        for (int k = 0; k < KINDS; k++) {
            fill(k, PRECISION_FP64, n, of.one);
            std::copy(of.one.begin(), of.one.end(), of.a.begin() + k * n * n);
        }
        run(cuda__lu_invert_wide_f64, manner_of(false, 64, blocks), n, of);
        first = blocks == 1 ? of.result : first;
        assert_memory_equal(of.result.data(), first.data(), first.size() * sizeof first[0]);
    }
}

/* Groups of columns: more than one and the last one short; as many columns as there are. */
static const struct {
    int n, group, blocks;
} groups[] = {{100, 64, 2}, {64, 64, 1}, {150, 128, 4}, {225, 96, 8}};

/* The answer of a launch a panel, whatever the group and the number of blocks. */
template <typename T>
static void try_group(cuda__lu_wide_launcher *launch, enum precision precision, int n, int columns,
                      int blocks)
{
    batch<T> ofs[2] = {batch<T>(n), batch<T>(n)};
    for (batch<T> &of : ofs) {
        for (int k = 0; k < KINDS; k++) {
            fill(k, precision, n, of.one);
            for (int e = 0; e < n * n; e++)
                of.a[k * n * n + e] = (T)of.one[e];
        }
        cuda__lu_manner manner = manner_of(false, 0, blocks);
        manner.group = &of == ofs ? 0 : columns;
        run(launch, manner, n, of);
    }
    assert_memory_equal(ofs[0].result.data(), ofs[1].result.data(),
                        ofs[0].result.size() * sizeof(T));
    assert_memory_equal(ofs[0].rcond.data(), ofs[1].rcond.data(), KINDS * sizeof(T));
    assert_memory_equal(ofs[0].info.data(), ofs[1].info.data(), KINDS * sizeof(int32_t));
}

static void test_groups_never_show(void **)
{
    for (size_t i = 0; i < (TRIED == 1 ? 2 : COUNT(groups)); i++) {
        try_group<double>(cuda__lu_invert_wide_f64, PRECISION_FP64, groups[i].n, groups[i].group,
                          groups[i].blocks);
        try_group<float>(cuda__lu_invert_wide_f32, PRECISION_FP32, groups[i].n, groups[i].group,
                         groups[i].blocks);
    }
}

/* No cluster holds the rows. */
static void test_no_clusters(void **)
{
    struct cuda_batch none = {};
    unsigned char space[1];
    assert_int_equal(cuda__lu_invert_wide_f64(1025, none, space, sizeof space,
                                              manner_of(false, 0, 0), nullptr, nullptr),
                     cudaErrorNotSupported);
    assert_int_equal(cuda__lu_factor_wide_f32(300, none, space, sizeof space, manner_of(true, 0, 0),
                                              nullptr, nullptr),
                     cudaErrorNotSupported);
}

static void test_factor_by_clusters(void **)
{
    for (size_t i = 0; i < (TRIED == 1 ? 3 : COUNT(clusters)); i++) {
        cuda__lu_manner manner = manner_of(true, clusters[i].width, clusters[i].blocks);
        manner.behind = i == 2;
        try_factor<double>(cuda__lu_factor_wide_f64, PRECISION_FP64, manner, clusters[i].n);
        if (i + 1 < COUNT(clusters))
            try_factor<float>(cuda__lu_factor_wide_f32, PRECISION_FP32, manner, clusters[i].n);
    }
}

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inverse),
        cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_blocks_never_show),
        cmocka_unit_test(test_groups_never_show),
        cmocka_unit_test(test_factor_by_clusters),
        cmocka_unit_test(test_no_clusters),
    };
    host__lapack_init();
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
