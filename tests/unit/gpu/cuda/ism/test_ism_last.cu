/* The last product of `ism` (gpu/cuda/ism/last.cuh, and in FP32 gpu/cuda/ism/last_narrow.cuh) by
 * itself, on the CPU: blocks that go down so many rows that they use their places again and again,
 * which whole calls of small orders do not; strips and rows that are whole and that are not;
 * answers that begin at any number, at 16 bytes or not; warps in each order. Behind and between the
 * numbers there is NaN. And rows of the answer by themselves (gpu/cuda/ism/last_row.cuh). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <vector>

extern "C" {
#include <cmocka.h>

#include "gpu/method.h"
#include "tests/simt/simt.h"
#include "tests/unit/gpu/host/matrices.h"
}

#include "gpu/cuda/ism/last_narrow.cuh"
#include "gpu/cuda/base/launch.cuh"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SLOTS 2
#define BEHIND 8 /* numbers behind the answers, and before them */
#define NOISE (-77.0)
/* What may be off, in eps times the sum of the terms' magnitudes: a number, and a sum of a column.
 * Of a number 2.2 was seen, of a sum 2.2 in FP32 and, where it is compared with no better one, 9 in
 * FP64. */
#define ROUNDINGS 16.0
#define SUM_ROUNDINGS 32.0

static const struct {
    enum simt_order order;
    uint32_t seed;
} orders[] = {{SIMT_FORWARD, 0}, {SIMT_BACKWARD, 0}, {SIMT_AHEAD, 1}, {SIMT_AHEAD, 2}};

struct size {
    int64_t n, m;
    bool given; /* A0^-1 is; else it is diagonal */
    int late;   /* numbers behind a multiple of 16 bytes at which the answers begin: slot 0 */
};

/* What a run leaves: the answers with what is next to them, and T Z and the sums of each slot. */
template <typename T> struct result {
    std::vector<T> answers, sums;
};

template <typename T> struct bed {
    static constexpr int shapes = sizeof(T) == sizeof(double) ? 2 : 1; /* of a kernel for a size */
    struct size size;
    int64_t ld, parts, rows; /* rows: of a part */
    std::vector<T> space, lines;
    cuda__ism_call call;
    cuda_tensors item;
};

template <typename T> static void take(bed<T> &of, int array, int64_t lines)
{
    of.call.at[array] = of.call.part;
    of.call.part += lines * of.ld;
}

/* `lines` of n numbers each. */
template <typename T> static void fill(T *to, int64_t lines, int64_t n, int64_t ld, uint64_t *seed)
{
    for (int64_t e = 0; e < lines * n; e++)
        to[e / n * ld + e % n] = (T)gputest_random(seed);
}

template <typename T> static T *array_of(bed<T> &of, int64_t slot, int array)
{
    return cuda__ism_array_of<T>(of.call, slot, array);
}

template <typename T> static void make(bed<T> &of, const struct size &size, int64_t rows)
{
    const int64_t n = size.n, ld = (n + 3) / 4 * 4;
    uint64_t seed = (uint64_t)(n * 64 + size.m);
    of = {size, ld, (n + rows - 1) / rows, rows, {}, {}, {}, {}};
    take(of, CUDA__ISM_GR, size.m);
    take(of, CUDA__ISM_K, size.m);
    take(of, CUDA__ISM_E, 1);
    take(of, CUDA__ISM_B, n);
    take(of, CUDA__ISM_PARTS, CUDA__ISM_LAST_SUMS * of.parts);
    take(of, CUDA__ISM_TZ, CUDA__ISM_CHECK_PROBES);
    take(of, CUDA__ISM_SIZES, 2);
    of.space.assign((size_t)(SLOTS * of.call.part), (T)NAN);
    of.lines.assign((size_t)(CUDA__ISM_CHECK_PROBES * ld), (T)NAN);
    of.call.parts = (unsigned char *)of.space.data();
    of.call.probes = of.lines.data();
    of.call.n = n;
    of.call.m = size.m;
    of.call.ld = ld;
    of.call.tensors = &of.item;
    of.call.item_count = 1;
    of.call.matrices = of.call.count = SLOTS;
    fill(of.lines.data(), CUDA__ISM_CHECK_PROBES, n, ld, &seed);
    for (int64_t slot = 0; slot < SLOTS; slot++) {
        fill(array_of(of, slot, CUDA__ISM_GR), size.m, n, ld, &seed);
        fill(array_of(of, slot, CUDA__ISM_K), size.m, n, ld, &seed);
        fill(array_of(of, slot, CUDA__ISM_E), 1, n, ld, &seed);
        fill(array_of(of, slot, CUDA__ISM_B), n, n, ld, &seed);
    }
}

/* Launches `kernel`, and what adds up behind it. */
template <typename T>
static result<T> run_kernel(bed<T> &of, void (*kernel)(const cuda__ism_call, int), int threads,
                            size_t bytes, bool wanted)
{
    const int64_t n = of.size.n, strips = (n - 1) / CUDA__ISM_LAST_STRIP + 1;
    const int64_t blocks = (CUDA__ISM_LAST_SUMS * of.ld - 1) / CUDA__ISM_THREADS + 1;
    result<T> found;
    found.answers.assign((size_t)(SLOTS * n * n + 2 * BEHIND), (T)NOISE);
    of.item.outputs[METHOD_ISM_INVERSE] =
        wanted ? found.answers.data() + BEHIND + of.size.late : nullptr;
    if (cuda__follow(kernel, dim3((unsigned)strips, SLOTS, (unsigned)of.parts), (unsigned)threads,
                     bytes, true, nullptr, of.call, (int)of.rows) != cudaSuccess)
        fail_msg("%s", simt_report());
    assert_int_equal(cuda__start(cuda__ism_last_sum_kernel<T>, dim3((unsigned)blocks, SLOTS),
                                 CUDA__ISM_THREADS, 0, nullptr, of.call, (int)of.parts),
                     cudaSuccess);
    for (int64_t slot = 0; slot < SLOTS; slot++) {
        const T *tz = array_of(of, slot, CUDA__ISM_TZ);
        found.sums.insert(found.sums.end(), tz, tz + (CUDA__ISM_CHECK_PROBES + 2) * of.ld);
    }
    return found;
}

template <typename Shape> static result<double> run(bed<double> &of, bool wanted)
{
    static_assert(Shape::strip == CUDA__ISM_LAST_STRIP, "as in the plan");
    return run_kernel<double>(of, cuda__ism_last_kernel<Shape>, Shape::threads,
                              sizeof(typename Shape::shared), wanted);
}

/* By either shape. */
static result<double> run(bed<double> &of, int shape, bool wanted)
{
    const bool small = shape == 1;
    constexpr int rows = CUDA__ISM_LAST_ROWS;
    if (of.size.given)
        return of.size.m > 32 ? small ? run<cuda__ism_last_shape<64, true, rows / 4>>(of, wanted)
                                      : run<cuda__ism_last_shape<64, true, rows / 2>>(of, wanted)
               : small ? run<cuda__ism_last_shape<32, true, rows / 4>>(of, wanted)
                              : run<cuda__ism_last_shape<32, true, rows / 2>>(of, wanted);
    return of.size.m > 32 ? small ? run<cuda__ism_last_shape<64, false, rows / 2>>(of, wanted)
                                  : run<cuda__ism_last_shape<64, false, rows>>(of, wanted)
           : small ? run<cuda__ism_last_shape<32, false, rows / 2>>(of, wanted)
                          : run<cuda__ism_last_shape<32, false, rows>>(of, wanted);
}

/* There is one. */
static result<float> run(bed<float> &of, int shape, bool wanted)
{
    assert_int_equal(shape, 0);
    return run_kernel<float>(of,
                             of.size.given ? cuda__ism_last_narrow_kernel<true>
                                           : cuda__ism_last_narrow_kernel<false>,
                             CUDA__ISM_NARROW_THREADS, cuda__ism_narrow_bytes(of.size.m), wanted);
}

/* Number (i, j) of A0^-1 - (G R) K, and what it may be off. */
template <typename T>
static double number_of(bed<T> &of, int64_t slot, int64_t i, int64_t j, double *allowed)
{
    const T *gr = array_of(of, slot, CUDA__ISM_GR), *k = array_of(of, slot, CUDA__ISM_K);
    double sum = of.size.given ? (double)array_of(of, slot, CUDA__ISM_B)[i * of.ld + j]
                 : i == j      ? (double)array_of(of, slot, CUDA__ISM_E)[i]
                               : 0;
    double size = fabs(sum);
    for (int64_t l = 0; l < of.size.m; l++) {
        const double product = (double)gr[l * of.ld + i] * (double)k[l * of.ld + j];
        sum -= product;
        size += fabs(product);
    }
    *allowed = ROUNDINGS * (double)cuda__real<T>::eps * size;
    return sum;
}

/* The answers, T Z and the sums of magnitudes, and nothing next to them. */
template <typename T> static void check(bed<T> &of, const result<T> &found)
{
    const int64_t n = of.size.n, ld = of.ld, step = (CUDA__ISM_CHECK_PROBES + 2) * ld;
    const size_t first = (size_t)(BEHIND + of.size.late), all = (size_t)(SLOTS * n * n);
    for (size_t e = 0; e < found.answers.size(); e++)
        assert_true((e >= first && e < first + all) || found.answers[e] == (T)NOISE);
    for (int64_t slot = 0; slot < SLOTS; slot++) {
        const T *z = &found.answers[first + (size_t)(slot * n * n)];
        const T *sums = &found.sums[(size_t)(slot * step)];
        for (int64_t j = 0; j < n; j++) {
            double expected[CUDA__ISM_LAST_SUMS] = {}, size[CUDA__ISM_LAST_SUMS] = {}, allowed;
            for (int64_t i = 0; i < n; i++) {
                const double number = number_of(of, slot, i, j, &allowed);
                assert_true(fabs((double)z[i * n + j] - number) <= allowed);
                for (int l = 0; l < CUDA__ISM_LAST_SUMS; l++) {
                    const double term = l < CUDA__ISM_CHECK_PROBES
                                            ? (double)of.lines[(size_t)(l * ld + i)] * number
                                            : fabs(number);
                    expected[l] += term;
                    size[l] += fabs(term);
                }
            }
            for (int l = 0; l < CUDA__ISM_LAST_SUMS; l++)
                assert_true(fabs((double)sums[l * ld + j] - expected[l]) <=
                            SUM_ROUNDINGS * (double)cuda__real<T>::eps * size[l]);
        }
        for (int64_t e = 0; e < step; e++)
            assert_true((e < CUDA__ISM_LAST_SUMS * ld && e % ld < n) || isnan(sums[e]));
    }
}

template <typename T> static bool are_same(const std::vector<T> &one, const std::vector<T> &other)
{
    return memcmp(one.data(), other.data(), one.size() * sizeof(T)) == 0;
}

/* Parts of `rows` rows: right, and the same bits in any order, by any shape, and whether the
 * answer is wanted or not. */
template <typename T> static void try_parts(const struct size &size, int64_t rows)
{
    bed<T> of;
    make(of, size, rows);
    simt_set_order(SIMT_FORWARD, 0);
    const result<T> usual = run(of, 0, true);
    check(of, usual);
    for (size_t o = 0; o < COUNT(orders); o++) {
        simt_set_order(orders[o].order, orders[o].seed);
        for (int shape = 0; shape < of.shapes; shape++) {
            const result<T> other = run(of, shape, true);
            assert_true(are_same(other.answers, usual.answers));
            assert_true(are_same(other.sums, usual.sums));
        }
    }
    assert_true(are_same(run(of, 0, false).sums, usual.sums));
    simt_set_order(SIMT_FORWARD, 0);
}

/* All rows by one block of a strip, and two places for each of several. */
template <typename T> static void try_sizes(int64_t unit)
{
    static const struct size sizes[] = {
        {9, 1, false, 0},    {70, 31, false, 1}, {130, 33, false, 2}, {330, 64, false, 0},
        {200, 3, false, 1},  {65, 32, true, 0},  {127, 64, true, 1},  {258, 17, true, 3},
        {321, 64, true, 0},  {256, 8, true, 0},  {384, 5, false, 0},  {260, 12, false, 0},
        {193, 40, false, 1}, {195, 9, true, 2},
    };
    for (size_t k = 0; k < COUNT(sizes); k++) {
        const int64_t n = sizes[k].n;
        try_parts<T>(sizes[k], (n + unit - 1) / unit * unit);
        if (n > unit)
            try_parts<T>(sizes[k], 2 * unit);
        if (n > 2 * unit)
            try_parts<T>(sizes[k], unit);
    }
}

static void test_places_by_turns(void **state)
{
    (void)state;
    try_sizes<double>(CUDA__ISM_LAST_ROWS);
}

static void test_narrow_places_by_turns(void **state)
{
    (void)state;
    try_sizes<float>(CUDA__ISM_NARROW_ROWS);
}

#define ROW_LD 160 /* numbers from row to row, a multiple of 32 bytes */

/* Each group of lanes writes a row, which begins `late` numbers behind a multiple of 32 bytes. */
template <typename T, int Lanes> static __global__ void put_rows_kernel(T *rows, int late)
{
    typedef cuda__ism_last_row<T, Lanes> row;
    const int lane = (int)threadIdx.x % Lanes, group = (int)threadIdx.x / Lanes;
    T *to = rows + group * ROW_LD + late + lane * row::width, near[row::width], far[row::width];
    for (int e = 0; e < row::width; e++) {
        near[e] = (T)(group * 100 + lane * row::width + e);
        far[e] = near[e] + row::across;
    }
    row::store(near, far, to, lane, row::lead(rows + late));
}

/* All numbers of each row are where they belong, and nothing next to them. */
template <typename T, int Lanes> static void try_rows(void)
{
    constexpr int groups = SIMT_WARP / Lanes, numbers = 2 * cuda__ism_last_row<T, Lanes>::across;
    constexpr int lates = 32 / (int)sizeof(T);
    alignas(32) static T rows[groups * ROW_LD];
    for (int late = 0; late < lates; late++) {
        for (int e = 0; e < groups * ROW_LD; e++)
            rows[e] = (T)NOISE;
        assert_int_equal(
            cuda__start(put_rows_kernel<T, Lanes>, 1, SIMT_WARP, 0, nullptr, (T *)rows, late),
            cudaSuccess);
        for (int e = 0; e < groups * ROW_LD; e++) {
            const int at = e % ROW_LD - late;
            const bool own = at >= 0 && at < numbers;
            assert_true(rows[e] == (T)(own ? e / ROW_LD * 100 + at : NOISE));
        }
    }
}

static void test_rows_that_begin_anywhere(void **state)
{
    (void)state;
    try_rows<double, 4>();
    try_rows<float, 8>();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_that_begin_anywhere),
        cmocka_unit_test(test_places_by_turns),
        cmocka_unit_test(test_narrow_places_by_turns),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
