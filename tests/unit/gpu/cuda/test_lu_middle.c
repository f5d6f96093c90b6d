/* The launchers of gpu/cuda/lu/lu.h: `lu` and `lu_factor` of orders above 32, run on the CPU.
 *
 * TEST_LU_ORDERS in the environment, "100,128,513", has other orders tried than the few below. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/cuda/lu/lu.h"
#include "gpu/cuda/gemm/gemm.h"
#include "gpu/host/linalg/lapack.h"
#include "tests/simt/sanitizers.h"
#include "tests/simt/simt.h"
#include "tests/support/gallery.h"
#include "tests/support/residual.h"
#include "tests/unit/gpu/cuda/lu_bed.h"
#include "tests/unit/gpu/host/matrices.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct cuda_products *products;
typedef cudaError_t launcher(enum precision, int64_t, const struct cuda_batch *, void *, size_t,
                             struct cuda_products *, cudaStream_t);

/* With a sanitizer the first of each list alone. */
#define TRIED(list) (TSAN_IS_HERE || ASAN_IS_HERE ? 1 : COUNT(list))

/* On both sides of the orders where kernels change, and of their tiles. */
static const struct order {
    enum precision precision;
    int64_t n;
} orders[] = {{PRECISION_FP64, 33},  {PRECISION_FP32, 48},  {PRECISION_FP64, 81},
              {PRECISION_FP64, 145}, {PRECISION_FP32, 209}, {PRECISION_FP64, 209}};

/* ---- The contract ---- */

static int failures;

static void complain(const struct lubed *bed, const char *matrix, const char *what, double value)
{
    failures++;
    print_error("%s %s n = %d, %s: %s %g\n", bed->factor ? "lu_factor" : "lu",
                precision_name(bed->precision), (int)bed->n, matrix, what, value);
}

/* What an inverse must keep; info: what is expected, or -2 for 0 or n + 1 as RCOND says. */
static void judge_inverse(const struct lubed *bed, int64_t k, const double *a, const char *name,
                          int64_t info)
{
    int64_t n = bed->n;
    double *x = gputest_numbers(n * n), rcond, eps = gputest_eps(bed->precision);
    lubed_get(bed, bed->items[k].result, n * n, x);
    lubed_get(bed, bed->items[k].extra, 1, &rcond);
    if (info == -2)
        info = rcond >= eps ? 0 : n + 1;
    if (bed->info[k] != info)
        complain(bed, name, "INFO", bed->info[k]);
    if (info == -1 || (info > 0 && info <= n)) {
        for (int64_t i = 0; i < n * n; i++)
            failures += !isnan(x[i]);
        if (info < 0 ? !isnan(rcond) : rcond != 0)
            complain(bed, name, "RCOND", rcond);
    } else {
        double ratio = gputest_inverse_ratio(bed->precision, n, a, x);
        if (info == 0 && !(ratio <= GPUTEST_RATIO_MAX))
            complain(bed, name, "ratio", ratio);
        int exponent;
        frexp(residual_norm(n, a), &exponent);
        double want =
            1 / ldexp(residual_norm(n, a), -exponent) / ldexp(residual_norm(n, x), exponent);
        if (want > FLT_MIN && !(fabs(want - rcond) <= 2 * (double)n * eps * want))
            complain(bed, name, "RCOND is off", rcond / want);
    }
    free(x);
}

/* LAPACK's INFO and pivots of A as written. */
static int64_t reference(enum precision precision, int64_t n, const double *a, int32_t *pivots)
{
    double *wide = gputest_numbers(n * n);
    float *narrow = (float *)wide;
    for (int64_t i = 0; i < n * n; i++) {
        int64_t at = i % n * n + i / n;
        if (precision == PRECISION_FP64)
            wide[at] = a[i];
        else
            narrow[at] = (float)a[i];
    }
    int64_t info = precision == PRECISION_FP32 ? host__getrf_f32(n, narrow, n, pivots)
                                               : host__getrf_f64(n, wide, n, pivots);
    free(wide);
    return info;
}

static void judge_factor(const struct lubed *bed, int64_t k, const double *a, const char *name)
{
    int64_t n = bed->n;
    int32_t *pivots = malloc((size_t)n * sizeof *pivots);
    assert_non_null(pivots);
    struct gputest_answer answer = {
        .n = n, .inverse = gputest_numbers(n * n), .pivots = (int32_t *)bed->items[k].extra};
    lubed_get(bed, bed->items[k].result, n * n, answer.inverse);
    int64_t info = reference(bed->precision, n, a, pivots);
    if (bed->info[k] != info)
        complain(bed, name, "INFO", bed->info[k]);
    if (memcmp(pivots, answer.pivots, (size_t)n * sizeof *pivots) != 0)
        complain(bed, name, "pivots other than LAPACK's", 0);
    double ratio = gputest_factor_ratio(bed->precision, n, a, &answer);
    if (!(ratio <= GPUTEST_RATIO_MAX))
        complain(bed, name, "ratio", ratio);
    free(answer.inverse);
    free(pivots);
}

#define CHECKS (GPUTEST_DGE_TYPES + 2) /* the DGE types, 8 and 9 with both spectra */

static void make_dge(const struct order *order, int64_t k, double *a)
{
    int type = k < GPUTEST_DGE_TYPES ? (int)k + 1 : (int)(k - GPUTEST_DGE_TYPES) + 8;
    gputest_dge(type, k < GPUTEST_DGE_TYPES ? 4 : 3, order->precision, order->n,
                (uint64_t)(order->n * 16 + type), a);
}

static void try_dge(const struct order *order, bool factor)
{
    int64_t n = order->n;
    double *a = gputest_numbers(n * n);
    /* Less workspace than matrices: they go through in parts. */
    struct lubed bed = lubed_make(order->precision, n, CHECKS, factor, 4);
    for (int64_t k = 0; k < CHECKS; k++) {
        make_dge(order, k, a);
        lubed_put(&bed, k, a);
    }
    lubed_run(&bed, products);
    for (int64_t k = 0; k < CHECKS; k++) {
        char name[16];
        int type = k < GPUTEST_DGE_TYPES ? (int)k + 1 : 8;
        snprintf(name, sizeof name, "matrix %d", (int)k);
        make_dge(order, k, a);
        if (factor)
            judge_factor(&bed, k, a, name);
        else if (type >= 5 && type <= 7)
            judge_inverse(&bed, k, a, name, type == 5 ? 1 : type == 6 ? n : n - n / 2 + 1);
        else
            judge_inverse(&bed, k, a, name, -2);
    }
    lubed_free(&bed);
    free(a);
}

static void test_contract(void **state)
{
    (void)state;
    failures = 0;
    char *list = getenv("TEST_LU_ORDERS");
    for (size_t i = 0; !list && i < 2 * TRIED(orders); i++)
        try_dge(&orders[i / 2], i % 2);
    while (list && *list) {
        int64_t n = strtoll(list, &list, 10);
        list += *list == ',';
        for (int k = 0; k < 2 * PRECISION_COUNT; k++)
            try_dge(&(struct order){(enum precision)(k / 2), n}, k % 2);
    }
    assert_int_equal(failures, 0);
}

/* An inverse of random numbers is right without being recovered: recovery would hide a kernel's
 * fault. An order of each shape of the kernels that keep a matrix in a multiprocessor, and one
 * beyond. */
static void test_recovery_is_rare(void **state)
{
    (void)state;
    static const struct order tried[] = {
        {PRECISION_FP64, 33},  {PRECISION_FP32, 48},  {PRECISION_FP64, 64},  {PRECISION_FP32, 57},
        {PRECISION_FP64, 71},  {PRECISION_FP32, 80},  {PRECISION_FP64, 96},  {PRECISION_FP32, 90},
        {PRECISION_FP64, 112}, {PRECISION_FP32, 105}, {PRECISION_FP64, 113}, {PRECISION_FP32, 128},
        {PRECISION_FP64, 144}, {PRECISION_FP32, 131}, {PRECISION_FP32, 160}, {PRECISION_FP32, 169},
        {PRECISION_FP32, 192}, {PRECISION_FP32, 208}, {PRECISION_FP64, 146}, {PRECISION_FP64, 170},
        {PRECISION_FP64, 192}, {PRECISION_FP64, 205}, {PRECISION_FP64, 224}, {PRECISION_FP64, 225},
        {PRECISION_FP32, 222}, {PRECISION_FP32, 256}, {PRECISION_FP32, 288}, {PRECISION_FP32, 319}};
    failures = 0;
    for (size_t i = 0; i < TRIED(tried); i++) {
        int64_t n = tried[i].n;
        uint64_t seed = (uint64_t)n;
        double *a = gputest_numbers(n * n);
        struct lubed bed = lubed_make(tried[i].precision, n, 1, false, 1);
        for (int64_t e = 0; e < n * n; e++)
            a[e] = (double)(float)gputest_random(&seed);
        lubed_put(&bed, 0, a);
        lubed_run(&bed, products);
        judge_inverse(&bed, 0, a, "random", 0);
        if (bed.unverified != 0)
            complain(&bed, "random", "recovered", bed.unverified);
        lubed_free(&bed);
        free(a);
    }
    assert_int_equal(failures, 0);
}

/* ---- Matrices that trip ---- */

static double not_a_number(int64_t i, int64_t j, int64_t n)
{
    return i == n / 2 && j == n - 1 ? (double)NAN : i == j;
}

static double infinite(int64_t i, int64_t j, int64_t n)
{
    return i == n - 1 && j == 0 ? (double)INFINITY : i == j;
}

static double cyclic(int64_t i, int64_t j, int64_t n)
{
    return j == (i + 1) % n ? 4 : 0;
}

/* The inverse has min(i, j) + 1 everywhere. */
static double second_difference(int64_t i, int64_t j, int64_t n)
{
    return i == j ? (i == n - 1 ? 1 : 2) : i - j == 1 || j - i == 1 ? -1 : 0;
}

/* Column 7 is the sum of the columns 0 and 1; exactly. */
static double dependent(int64_t i, int64_t j, int64_t n)
{
    (void)n;
    return j == 7 ? (i == 0) + (i == 1) : i == j;
}

/* Twice the same largest entry: LAPACK takes the first. */
static double tied(int64_t i, int64_t j, int64_t n)
{
    return (double)((i * 7 + j * j * 3 + n) % 3 - 1) + (i == j ? 0.5 : 0);
}

static const struct {
    const char *name;
    double (*entry)(int64_t i, int64_t j, int64_t n);
    int64_t info; /* of the inverse; as judge_inverse has it */
} gallery[] = {
    {"growing", gallery_growing_inexact, 0},
    {"Hilbert", gallery_hilbert, -2},
    {"zero", NULL, 1},
    {"NaN", not_a_number, -1},
    {"infinity", infinite, -1},
    {"cyclic", cyclic, 0},
    {"second difference", second_difference, 0},
    {"dependent", dependent, 8},
    {"tied", tied, -2},
};

static void try_gallery(const struct order *order, bool factor)
{
    int64_t n = order->n;
    double *a = gputest_numbers(n * n);
    struct lubed bed = lubed_make(order->precision, n, COUNT(gallery), factor, 2);
    for (int64_t judged = 0; judged < 2; judged++) {
        for (int64_t k = 0; k < (int64_t)COUNT(gallery); k++) {
            for (int64_t i = 0; i < n * n; i++) {
                a[i] = gallery[k].entry ? gallery[k].entry(i / n, i % n, n) : 0;
                a[i] = order->precision == PRECISION_FP32 ? (double)(float)a[i] : a[i];
            }
            /* LU of growing elements is no better than its elements, nor is LAPACK's. */
            bool finite = gallery[k].info != -1, growing_lu = factor && k == 0;
            if (!judged)
                lubed_put(&bed, k, a);
            else if (!factor)
                judge_inverse(&bed, k, a, gallery[k].name, gallery[k].info);
            else if (!finite && bed.info[k] != -1)
                complain(&bed, gallery[k].name, "INFO", bed.info[k]);
            else if (finite && !growing_lu && gallery[k].entry != gallery_hilbert)
                judge_factor(&bed, k, a, gallery[k].name);
        }
        if (!judged)
            lubed_run(&bed, products);
    }
    if (!factor)
        assert_true(bed.unverified >= 1); /* or growth was not met */
    lubed_free(&bed);
    free(a);
}

static void test_gallery(void **state)
{
    (void)state;
    static const struct order tried[] = {
        {PRECISION_FP64, 50}, {PRECISION_FP32, 65}, {PRECISION_FP64, 150}, {PRECISION_FP64, 225}};
    failures = 0;
    for (size_t i = 0; i < TRIED(tried); i++) {
        try_gallery(&tried[i], false);
        if (tried[i].n < 200)
            try_gallery(&tried[i], true);
    }
    assert_int_equal(failures, 0);
}

/* Wright's matrix: pivots grow until the inverse is so large that its check says nothing. */
static void test_growth_that_hides(void **state)
{
    (void)state;
    const int64_t n = 256;
    if (TSAN_IS_HERE || ASAN_IS_HERE)
        return;
    failures = 0;
    double *a = gputest_numbers(n * n);
    struct lubed bed = lubed_make(PRECISION_FP32, n, 1, false, 1);
    for (int64_t i = 0; i < n * n; i++)
        a[i] = (double)(float)gallery_wright(i / n, i % n, n);
    lubed_put(&bed, 0, a);
    lubed_run(&bed, products);
    judge_inverse(&bed, 0, a, "Wright", 0);
    assert_int_equal(failures, 0);
    lubed_free(&bed);
    free(a);
}

/* ---- The same bits ---- */

/* Near both ends of the range, and in the middle: inv(s A) = inv(A) / s. */
static void test_scales(void **state)
{
    (void)state;
    static const struct {
        enum precision precision;
        int64_t n;
        int exponent;
    } rows[] = {{PRECISION_FP64, 34, 3},     {PRECISION_FP64, 34, 1015},
                {PRECISION_FP64, 146, 1012}, {PRECISION_FP64, 40, -990},
                {PRECISION_FP64, 146, -990}, {PRECISION_FP32, 40, -110},
                {PRECISION_FP32, 36, 119}};
    failures = 0;
    for (size_t i = 0; i < TRIED(rows); i++) {
        int64_t n = rows[i].n;
        uint64_t seed = 5;
        double *a = gputest_numbers(n * n), *x = gputest_numbers(n * n),
               *y = gputest_numbers(n * n);
        struct lubed bed = lubed_make(rows[i].precision, n, 2, false, 2);
        for (int64_t e = 0; e < n * n; e++)
            a[e] = (double)(float)(gputest_random(&seed) + (e % (n + 1) == 0 ? 2 : 0));
        lubed_put(&bed, 0, a);
        for (int64_t e = 0; e < n * n; e++)
            a[e] = ldexp(a[e], rows[i].exponent);
        lubed_put(&bed, 1, a);
        lubed_run(&bed, products);
        judge_inverse(&bed, 1, a, "scaled", 0);
        lubed_get(&bed, bed.items[0].result, n * n, x);
        lubed_get(&bed, bed.items[1].result, n * n, y);
        for (int64_t e = 0; e < n * n; e++)
            x[e] = ldexp(x[e], -rows[i].exponent);
        if (rows[i].exponent == 3)
            assert_memory_equal(x, y, (size_t)(n * n) * sizeof *x);
        lubed_free(&bed);
        free(a);
        free(x);
        free(y);
    }
    assert_int_equal(failures, 0);
}

/* One matrix with other neighbours, at other places, with other workspace and order of threads,
 * and, but for the first time, so many multiprocessors. zeros: it has zeros above its diagonal, and
 * larger numbers on it. */
static void try_neighbours(enum precision precision, int64_t n, bool factor, int multiprocessors,
                           bool zeros)
{
    double *a = gputest_numbers(n * n);
    unsigned char first[8], *answer = NULL;
    size_t bytes = (size_t)(n * n) * (size_t)precision_bytes(precision);
    for (int round = 0; round < 3; round++) {
        int64_t count = 1 + round, place = round / 2;
        struct lubed bed = lubed_make(precision, n, count, factor, round % 2 + 1);
        for (int64_t k = 0; k < count; k++) {
            uint64_t seed = k == place ? 1 : (uint64_t)(100 * round + k);
            for (int64_t e = 0; e < n * n; e++)
                a[e] = gputest_random(&seed);
            for (int64_t e = 0; e < n * n && zeros; e++)
                a[e] = e / n < e % n ? 0 : a[e] + (e / n == e % n ? (double)n : 0);
            lubed_put(&bed, k, a);
        }
        simt_set_order(round == 1 ? SIMT_BACKWARD : SIMT_SHUFFLED, (uint32_t)round);
        simt_set_multiprocessors(round > 0 ? multiprocessors : 1);
        lubed_run(&bed, products);
        if (!answer) {
            answer = lubed_take(bytes);
            memcpy(answer, bed.items[place].result, bytes);
            memcpy(first, bed.items[place].extra, sizeof first / 2);
        }
        assert_memory_equal(answer, bed.items[place].result, bytes);
        assert_memory_equal(first, bed.items[place].extra, sizeof first / 2);
        lubed_free(&bed);
    }
    simt_set_order(SIMT_FORWARD, 0);
    simt_set_multiprocessors(1);
    free(answer);
    free(a);
}

static void test_neighbours_never_show(void **state)
{
    (void)state;
    static const struct order tried[] = {
        {PRECISION_FP64, 36},  {PRECISION_FP64, 149}, {PRECISION_FP32, 211}, {PRECISION_FP64, 225},
        {PRECISION_FP64, 210}, {PRECISION_FP64, 111}, {PRECISION_FP64, 114}, {PRECISION_FP32, 128},
        {PRECISION_FP32, 141}, {PRECISION_FP32, 150}, {PRECISION_FP32, 163}};
    static const struct order factored[] = {{PRECISION_FP32, 70}, {PRECISION_FP64, 149}};
    for (size_t i = 0; i < 2 * TRIED(tried); i++)
        try_neighbours(tried[i / 2].precision, tried[i / 2].n, false, 1, i % 2);
    for (size_t i = 0; i < TRIED(factored); i++)
        try_neighbours(factored[i].precision, factored[i].n, true, 1, false);
    /* With so many each matrix has a cluster for groups of columns. */
    try_neighbours(PRECISION_FP64, 231, false, 20, false);
    try_neighbours(PRECISION_FP64, 231, false, 20, true);
}

/* Panels of one matrix, each by a cluster next to the products of the one before. */
static void test_streams_never_show(void **state)
{
    (void)state;
    static const struct order tried[] = {{PRECISION_FP32, 300}, {PRECISION_FP64, 290}};
    for (size_t i = 0; i < TRIED(tried); i++) {
        const int64_t n = tried[i].n;
        const size_t bytes = (size_t)(n * n) * (size_t)precision_bytes(tried[i].precision);
        double *a = gputest_numbers(n * n);
        unsigned char *answer = NULL;
        uint64_t seed = i;
        for (int64_t e = 0; e < n * n; e++)
            a[e] = gputest_random(&seed);
        simt_set_multiprocessors(20);
        for (int how = SIMT_STREAMS_AT_ONCE; how <= SIMT_STREAMS_EARLY; how++) {
            struct lubed bed = lubed_make(tried[i].precision, n, 1, true, 1);
            lubed_put(&bed, 0, a);
            simt_set_streams((enum simt_streams)how);
            lubed_run(&bed, products);
            answer = answer ? answer : memcpy(lubed_take(bytes), bed.items[0].result, bytes);
            assert_memory_equal(answer, bed.items[0].result, bytes);
            lubed_free(&bed);
        }
        simt_set_streams(SIMT_STREAMS_AT_ONCE);
        simt_set_multiprocessors(1);
        free(answer);
        free(a);
    }
}

/* ---- Calls ---- */

static void test_outputs_none_of_them_wants(void **state)
{
    (void)state;
    static const int64_t tried[] = {35, 150};
    for (int round = 0; round < 4; round++) {
        struct lubed bed = lubed_make(PRECISION_FP64, tried[round / 2], 1, round % 2, 1);
        for (int64_t i = 0; i < bed.n * bed.n; i++)
            ((double *)bed.items[0].a)[i] = i % (bed.n + 1) == 0;
        bed.items[0].result = NULL;
        bed.items[0].extra = NULL;
        lubed_run(&bed, products);
        assert_int_equal(bed.info[0], 0);
        lubed_free(&bed);
    }
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const struct {
        launcher *launch;
        int64_t n;
        cudaError_t status; /* with too little workspace */
    } rows[] = {{cuda_inverse_middle, 0, cudaErrorInvalidValue},
                {cuda_inverse_middle, CUDA_SMALL_N_MAX, cudaErrorInvalidValue},
                {cuda_inverse_middle, CUDA_MIDDLE_N_MAX + 1, cudaErrorInvalidValue},
                {cuda_inverse_middle, 224, cudaErrorMemoryAllocation},
                {cuda_inverse_middle, 300, cudaErrorMemoryAllocation},
                {cuda_factor_middle, 150, cudaErrorMemoryAllocation},
                {cuda_recover_middle, 150, cudaErrorMemoryAllocation}};
    struct cuda_batch none = {0};
    struct lubed bed = lubed_make(PRECISION_FP64, 150, 1, false, 1);
    struct cuda_batch one = {bed.items, 1, 1, &bed.unverified};
    for (size_t i = 0; i < COUNT(rows); i++) {
        int64_t n = rows[i].n;
        bool taken = rows[i].status != cudaErrorInvalidValue;
        assert_int_equal(
            rows[i].launch(PRECISION_FP64, n, &one, bed.workspace, 1024, products, NULL),
            rows[i].status);
        assert_int_equal(rows[i].launch(PRECISION_FP64, n, &none, NULL, 0, products, NULL),
                         taken ? cudaSuccess : rows[i].status);
        assert_int_equal(cuda_inverse_middle_workspace(PRECISION_FP64, n, 1) > 0, taken);
        assert_int_equal(cuda_factor_middle_workspace(PRECISION_FP64, n, 1) > 0, taken);
    }
    lubed_free(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contract),
        cmocka_unit_test(test_recovery_is_rare),
        cmocka_unit_test(test_gallery),
        cmocka_unit_test(test_growth_that_hides),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_neighbours_never_show),
        cmocka_unit_test(test_streams_never_show),
        cmocka_unit_test(test_outputs_none_of_them_wants),
        cmocka_unit_test(test_what_is_refused),
    };
    host__lapack_init();
    if (cuda_products_create(NULL, &products) != cudaSuccess)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cuda_products_destroy(&products);
    return failed;
}
