/* The fused kernels for n <= 32 on the CPU (tests/simt): the bench's check of every order and
 * precision, with batches that suit a CPU. It judges the answers to random and to hostile matrices
 * (singular, not finite, far from 1, of growing elements), then asks for the same bits in other
 * layouts: scattered, misaligned, in reverse, alone. Then outputs that no one wants, and pivots
 * next to LAPACK's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <algorithm>

extern "C" {
#include <cmocka.h>

#include "gpu/host/linalg/lapack.h"
#include "tests/unit/gpu/host/matrices.h"
}

#include "bench/gpu/lu.h"
#include "tests/simt/sanitizers.h"

/* Two rounds of the kinds of matrices; with a sanitizer one, of some orders. Of the smallest orders
 * more, for a warp takes many at a time. */
#define SANITIZED (TSAN_IS_HERE || ASAN_IS_HERE)
#define MATRICES (SANITIZED ? 33 : 60)
#define MATRICES_SMALLEST 300
#define SMALLEST_N_MAX 3

static bool is_tried(int n)
{
    static const uint32_t tried = 1u << 1 | 1u << 3 | 1u << 5 | 1u << 8 | 1u << 16 | 1u << 17;
    return !SANITIZED || n == CUDA_SMALL_N_MAX || tried >> n & 1;
}

static void check(enum lu_kind kind, enum precision precision)
{
    int wrong = 0;
    for (int n = 1; n <= CUDA_SMALL_N_MAX; n++)
        wrong += is_tried(n) && !lu_small_check(kind, precision, n,
                                                n <= SMALLEST_N_MAX ? MATRICES_SMALLEST : MATRICES);
    assert_int_equal(wrong, 0);
}

static void test_inverse_f32(void **)
{
    check(LU_INVERSE, PRECISION_FP32);
}

static void test_inverse_f64(void **)
{
    check(LU_INVERSE, PRECISION_FP64);
}

static void test_factor_f32(void **)
{
    check(LU_FACTOR, PRECISION_FP32);
}

static void test_factor_f64(void **)
{
    check(LU_FACTOR, PRECISION_FP64);
}

/* Any thread order gives the bits that one gives. */
static void test_orders(void **)
{
    simt_set_order(SIMT_BACKWARD, 0);
    check(LU_INVERSE, PRECISION_FP32);
    simt_set_order(SIMT_SHUFFLED, 7);
    check(LU_FACTOR, PRECISION_FP64);
    simt_set_order(SIMT_FORWARD, 0);
}

/* ---- Outputs that no one wants ---- */

#define ORDER 13
#define PLACES 3 /* the last is not in the batch */

struct outputs {
    double result[PLACES][ORDER * ORDER], extra[PLACES][ORDER];
    int32_t info[PLACES];
};

/* Two matrices, each an item of its own; first lacks the outputs whose bit is not in `wanted`. */
static void run_wanting(enum lu_kind kernel, const std::vector<double> &a, unsigned wanted,
                        struct outputs *to)
{
    cuda_item items[2];
    memset(to, 0xa5, sizeof *to);
    for (int k = 0; k < 2; k++) {
        unsigned mask = k == 0 ? wanted : 7;
        items[k] = {&a[k * ORDER * ORDER], mask & 1 ? to->result[k] : nullptr,
                    mask & 2 ? to->extra[k] : nullptr, mask & 4 ? &to->info[k] : nullptr, k};
    }
    cuda_batch batch = {items, 2, 2, nullptr};
    assert_int_equal(lu_small_launch(kernel, PRECISION_FP64, ORDER, &batch, nullptr), cudaSuccess);
    if (kernel == LU_INVERSE)
        assert_int_equal(cuda_recover_small(PRECISION_FP64, ORDER, &batch, nullptr), cudaSuccess);
}

static bool same(const void *one, const void *other, size_t bytes)
{
    return memcmp(one, other, bytes) == 0;
}

/* What is there has the bits it has when all is there; what is not wanted is not touched. */
static void test_unwanted(void **)
{
    /* The first one's inverse is spoilt by growth, so that it is recovered too. */
    std::vector<double> a = matrices_of<double>(ORDER, KIND_COUNT);
    std::copy(&a[KIND_GROWING_INEXACT * ORDER * ORDER],
              &a[KIND_GROWING_INEXACT * ORDER * ORDER] + ORDER * ORDER, &a[0]);
    struct outputs all, some, none;
    memset(&none, 0xa5, sizeof none);
    for (int kernel = 0; kernel < LU_KINDS; kernel++) {
        run_wanting((enum lu_kind)kernel, a, 7, &all);
        for (unsigned wanted = 0; wanted < 8; wanted++) {
            if (kernel == LU_INVERSE && !(wanted & 4))
                continue; /* inverses must have INFO */
            run_wanting((enum lu_kind)kernel, a, wanted, &some);
            const struct outputs *first[] = {wanted & 1 ? &all : &none, wanted & 2 ? &all : &none,
                                             wanted & 4 ? &all : &none};
            assert_true(same(some.result[0], first[0]->result[0], sizeof some.result[0]));
            assert_true(same(some.extra[0], first[1]->extra[0], sizeof some.extra[0]));
            assert_int_equal(some.info[0], first[2]->info[0]);
            assert_true(same(some.result[1], all.result[1], 2 * sizeof some.result[0]));
            assert_true(same(some.extra[1], all.extra[1], 2 * sizeof some.extra[0]));
            assert_true(same(some.info + 1, all.info + 1, 2 * sizeof some.info[0]));
        }
    }
}

static void test_refused(void **)
{
    cuda_batch none = {nullptr, 0, 0, nullptr}, bad = {nullptr, 0, 3, nullptr};
    assert_int_equal(cuda_inverse_small(PRECISION_FP64, 5, &none, nullptr), cudaSuccess);
    assert_int_equal(cuda_recover_small(PRECISION_FP64, 5, &none, nullptr), cudaSuccess);
    assert_int_equal(cuda_inverse_small(PRECISION_FP64, 5, &bad, nullptr), cudaErrorInvalidValue);
    assert_int_equal(cuda_factor_small(PRECISION_FP64, 0, &none, nullptr), cudaErrorInvalidValue);
    assert_int_equal(cuda_recover_small(PRECISION_FP64, CUDA_SMALL_N_MAX + 1, &none, nullptr),
                     cudaErrorInvalidValue);
}

/* ---- Pivots are LAPACK's ---- */

template <typename T> static void check_pivots(int n, const std::vector<T> &a)
{
    std::vector<T> turned(n * n), lu(n * n);
    std::vector<int32_t> pivots(n), expected(n);
    int32_t info = -9;
    for (int i = 0; i < n * n; i++)
        turned[i % n * n + i / n] = a[i];
    int64_t found = sizeof(T) == 4
                        ? host__getrf_f32(n, (float *)turned.data(), n, expected.data())
                        : host__getrf_f64(n, (double *)turned.data(), n, expected.data());
    cuda_item item = {a.data(), lu.data(), pivots.data(), &info, 0};
    cuda_batch batch = {&item, 1, 1, nullptr};
    assert_int_equal(cuda_factor_small(number<T>::precision, n, &batch, nullptr), cudaSuccess);
    assert_int_equal(info, found);
    for (int i = 0; i < n; i++)
        assert_int_equal(pivots[i], expected[i]);
}

/* Random ones; and, for powers of two, Hadamard's, whose elimination is exact and full of ties. */
template <typename T> static void check_all_pivots()
{
    uint64_t seed = 1;
    for (int n = 1; n <= CUDA_SMALL_N_MAX; n++) {
        std::vector<T> a(n * n);
        for (T &number : a)
            number = (T)gputest_random(&seed);
        check_pivots(n, a);
        if (n & (n - 1))
            continue;
        for (int i = 0; i < n * n; i++)
            a[i] = __builtin_parity((unsigned)(i / n & i % n)) ? -1 : 1;
        check_pivots(n, a);
    }
}

static void test_pivots(void **)
{
    host__lapack_init();
    check_all_pivots<float>();
    check_all_pivots<double>();
}

/* ---- Matrices that are scaled ---- */

/* A pivot that vanishes when the matrix is scaled down is no zero pivot: the matrix is met again as
 * it is (CUDA_INFO_UNVERIFIED). */
template <typename T> static void check_false_zero(int n, double large, double small)
{
    std::vector<T> a(n * n), x(n * n);
    T rcond = -1;
    int32_t info = -9;
    uint32_t unverified = 0;
    for (int i = 0; i < n; i++)
        a[i * n + i] = (T)(i == 0 ? large : i == n - 1 ? small : 1);
    cuda_item item = {a.data(), x.data(), &rcond, &info, 0};
    cuda_batch batch = {&item, 1, 1, &unverified};
    assert_int_equal(cuda_inverse_small(number<T>::precision, n, &batch, nullptr), cudaSuccess);
    assert_int_equal(unverified, 1);
    assert_true(info < -1);
    assert_int_equal(cuda_recover_small(number<T>::precision, n, &batch, nullptr), cudaSuccess);
    assert_int_equal(info, 0); /* scaling is not singularity: its RCOND is below eps */
    for (int i = 0; i < n * n; i++) {
        double expected = i / n == i % n ? 1 / (double)a[i] : 0;
        if (fabs((double)x[i] - expected) > 4 * number<T>::eps * expected)
            fail_msg("n %d, element %d: %g, not %g", n, i, (double)x[i], expected);
    }
}

static void test_no_false_zero_pivot(void **)
{
    for (int n = 2; n <= CUDA_SMALL_N_MAX; n++) {
        check_false_zero<double>(n, 1e308, 1e-308);
        check_false_zero<float>(n, 1e38, 1e-38);
    }
}

/* INFO of a diagonal matrix with the numbers `small` and `other` at the places `at` and `zero`. */
template <typename T> static int info_of_small(int n, int at, double small, int zero, double other)
{
    std::vector<T> a(n * n), x(n * n);
    T rcond = -1;
    int32_t info = -9;
    for (int i = 0; i < n; i++)
        a[i * n + i] = (T)(i == at ? small : i == zero ? other : 1 + i);
    cuda_item item = {a.data(), x.data(), &rcond, &info, 0};
    cuda_batch batch = {&item, 1, 1, nullptr};
    assert_int_equal(cuda_inverse_small(number<T>::precision, n, &batch, nullptr), cudaSuccess);
    assert_int_equal(cuda_recover_small(number<T>::precision, n, &batch, nullptr), cudaSuccess);
    assert_true(rcond == 0);
    assert_true(isnan(x[0]) || info == n + 1);
    return info;
}

template <typename T> static void check_small_pivots(double least)
{
    for (int n = 3; n <= CUDA_SMALL_N_MAX; n++) {
        const int last = n - 1;
        for (double small = least; small < 0x1p20 * least; small *= 32) {
            assert_int_equal(info_of_small<T>(n, 0, small, last, 1), n + 1);
            assert_int_equal(info_of_small<T>(n, last, small, 0, 1), n + 1);
            assert_int_equal(info_of_small<T>(n, 0, small, last, small), n + 1);
            assert_int_equal(info_of_small<T>(n, 0, small, last, 0), n + 1); /* NaNs */
            assert_int_equal(info_of_small<T>(n, last, small, 0, 0), 1);
        }
    }
}

/* A pivot is no zero pivot however small it is. As on the host, one without a reciprocal leaves
 * NaNs. */
static void test_small_pivots(void **)
{
    check_small_pivots<double>(0x1p-1074);
    check_small_pivots<float>(0x1p-149);
}

/* INFO of ones on the diagonal but in row `steps`, and a chain of `link` that makes a pivot there,
 * link^(steps + 1). */
template <typename T> static int info_of_chain(int n, int steps, double link)
{
    std::vector<T> a(n * n), x(n * n);
    T rcond = -1;
    int32_t info = -9;
    for (int i = 0; i < n; i++)
        a[i * n + i] = (T)(i != steps);
    for (int i = 0; i < steps; i++)
        a[(i + 1) * n + i] = (T)link;
    a[steps] = (T)link;
    cuda_item item = {a.data(), x.data(), &rcond, &info, 0};
    cuda_batch batch = {&item, 1, 1, nullptr};
    assert_int_equal(cuda_inverse_small(number<T>::precision, n, &batch, nullptr), cudaSuccess);
    assert_int_equal(cuda_recover_small(number<T>::precision, n, &batch, nullptr), cudaSuccess);
    return info;
}

/* A pivot that elimination makes so small, step by step, of numbers that are not. */
static void test_small_pivots_of_larger_numbers(void **)
{
    for (int n = 6; n <= CUDA_SMALL_N_MAX; n++) {
        for (int steps = 1; steps < n - 1; steps++) {
            assert_int_equal(info_of_chain<double>(n, steps, exp2(-1064 / (steps + 1))), n + 1);
            assert_int_equal(info_of_chain<float>(n, steps, exp2(-148 / (steps + 1))), n + 1);
            assert_int_equal(info_of_chain<float>(n, steps, exp2(-160)), steps + 1);
        }
    }
}

/* A zero column that is doubted, for there is the least number, and met again: of the rows of ones
 * the last comes first. */
template <typename T> static void check_unverified_zero(double least)
{
    for (int n = 6; n <= CUDA_SMALL_N_MAX; n += 5) {
        for (int zero = 1; zero < n; zero++) {
            std::vector<T> a(n * n), x(n * n);
            T rcond = -1;
            int32_t info = -9;
            for (int i = 0; i < n; i++)
                a[i * n + n - 1 - i] = (T)(n - 1 - i != zero);
            a[0] = (T)least;
            cuda_item item = {a.data(), x.data(), &rcond, &info, 0};
            cuda_batch batch = {&item, 1, 1, nullptr};
            const enum precision precision = number<T>::precision;
            assert_int_equal(cuda_inverse_small(precision, n, &batch, nullptr), cudaSuccess);
            assert_int_equal(info, CUDA_INFO_UNVERIFIED + zero + 1);
            assert_int_equal(cuda_recover_small(precision, n, &batch, nullptr), cudaSuccess);
            assert_int_equal(info, zero + 1);
        }
    }
}

static void test_unverified_zeros(void **)
{
    check_unverified_zero<double>(0x1p-1074);
    check_unverified_zero<float>(0x1p-149);
}

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inverse_f32),
        cmocka_unit_test(test_inverse_f64),
        cmocka_unit_test(test_factor_f32),
        cmocka_unit_test(test_factor_f64),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_unwanted),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_pivots),
        cmocka_unit_test(test_no_false_zero_pivot),
        cmocka_unit_test(test_small_pivots),
        cmocka_unit_test(test_small_pivots_of_larger_numbers),
        cmocka_unit_test(test_unverified_zeros),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
