/* Kernels of a streamed update of `ism` by themselves, on the CPU: the lines that it begins with;
 * and the answer, with the sums that its check takes, which have the same bits whether a block has
 * a strip or a part of the rows. Where nothing was written there is NaN. */
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

#include "gpu/cuda/ism/stream.cuh"

#define SUMS (1 + CUDA__ISM_CHECK_PROBES) /* lines: of |Z|, of T Z */

/* One slot, of a device whose strips have `strip` rows. */
struct bed {
    int64_t n, m, strip, parts;
    std::vector<double> b, x, y, z, lines, space;
    cuda_tensors item;
    cuda__ism_call call;
};

static std::vector<double> randoms(int64_t numbers, uint64_t seed)
{
    std::vector<double> made((size_t)numbers);
    for (double &number : made)
        number = gputest_random(&seed);
    return made;
}

static void take(bed &of, int array, int64_t numbers)
{
    of.call.at[array] = of.call.part;
    of.call.part += (numbers + 15) / 16 * 16;
}

/* All but Z and the sums, which were not made. */
static void make(bed &of, int64_t n, int64_t m, int64_t strip, int64_t rows)
{
    const int64_t ld =
        (n + CUDA__ISM_STREAM_SLAB - 1) / CUDA__ISM_STREAM_SLAB * CUDA__ISM_STREAM_SLAB;
    const int64_t wide = (m + 7) / 8 * 8;
    of = {};
    of.n = n;
    of.m = m;
    of.strip = strip;
    of.parts = (n + rows - 1) / rows;
    of.b = randoms(n * n, 1);
    of.x = randoms(n * m, 2);
    of.y = randoms(n * m, 5);
    of.lines = randoms(CUDA__ISM_CHECK_PROBES * n, 3);
    of.call.n = of.call.ld = n;
    of.call.m = m;
    take(of, CUDA__ISM_ANSWER, 64);
    take(of, CUDA__ISM_STREAM_K, (m + CUDA__ISM_CHECK_PROBES) * ld);
    take(of, CUDA__ISM_STREAM_RK, wide * ld);
    take(of, CUDA__ISM_STREAM_SIZES, ld);
    take(of, CUDA__ISM_STREAM_PARTS, SUMS * (n + strip - 1) / strip * ld + SUMS * ld);
    of.space = randoms(of.call.part, 4);
    of.call.parts = (unsigned char *)of.space.data();
    of.call.probes = of.lines.data();
    of.call.tensors = &of.item;
    of.call.item_count = 1;
    of.call.matrices = of.call.count = 1;
    of.call.plan.stream_rows = rows;
    of.call.plan.stream_parts = of.parts;
    of.call.plan.stream_ld = ld;
    of.item.inputs[METHOD_ISM_A0_INVERSE] = of.b.data();
    of.item.inputs[METHOD_ISM_X] = of.x.data();
    of.item.inputs[METHOD_ISM_Y] = of.y.data();
    *cuda__ism_answer_of<double>(of.call, 0) = {};
    memset(cuda__ism_array_of<double>(of.call, 0, CUDA__ISM_STREAM_SIZES), 0,
           (size_t)ld * sizeof(double));
}

/* ---- Lines ---- */

/* K, T B and the sums of magnitudes of B's columns, by loops; there are zeros behind n. */
template <int Lines> static void try_lines(int64_t n, int64_t m)
{
    bed of;
    make(of, n, m, 32, 128);
    const int64_t ld = of.call.plan.stream_ld, lines = m + CUDA__ISM_CHECK_PROBES;
    const int64_t none = n - 1, large = n / 2; /* columns */
    double *k = cuda__ism_array_of<double>(of.call, 0, CUDA__ISM_STREAM_K);
    double *sizes = cuda__ism_array_of<double>(of.call, 0, CUDA__ISM_STREAM_SIZES);
    of.b[(size_t)((n - 1) * n + none)] = (double)INFINITY;
    of.b[(size_t)large] = of.b[(size_t)((n - 1) * n + large)] = 1.5e308;
    for (int64_t e = 0; e < lines * ld; e++)
        k[e] = (double)NAN;
    assert_int_equal((cuda__ism_start_meet<double, Lines>(of.call, nullptr)), cudaSuccess);
    for (int64_t j = 0; j < ld; j++) {
        double size = 0;
        for (int64_t i = 0; i < n && j < n; i++)
            size += fabs(of.b[(size_t)(i * n + j)]);
        assert_true(j == none    ? isnan(sizes[j])
                    : j == large ? isinf(sizes[j])
                                 : fabs(sizes[j] - size) <= 1e-13 * size);
    }
    for (int64_t e = 0; e < lines * ld; e++) {
        const int64_t line = e / ld, j = e % ld;
        double sum = 0;
        for (int64_t i = 0; i < n && j < n; i++)
            sum +=
                (line < m ? of.y[(size_t)(i * m + line)] : of.lines[(size_t)((line - m) * n + i)]) *
                of.b[(size_t)(i * n + j)];
        if (j != none && j != large)
            assert_true(fabs(k[e] - sum) <= 1e-14 * (double)n);
    }
}

/* Each count of tiles that a warp has; warps with rows of one piece, of several, and of fewer than
 * the others; lines that take two blocks. */
static void test_lines(void **state)
{
    (void)state;
    try_lines<1>(66, 14);
    try_lines<1>(97, 3);
    try_lines<2>(150, 17);
    try_lines<3>(200, 33);
    try_lines<2>(290, 60);
}

/* ---- Strips ---- */

/* The sums, lines of n. */
static std::vector<double> update(bed &of, bool by_strips)
{
    double *left = cuda__ism_array_of<double>(of.call, 0, CUDA__ISM_STREAM_PARTS);
    const int64_t blocks = by_strips ? (of.n + of.strip - 1) / of.strip : of.parts;
    const int64_t ld = of.call.plan.stream_ld, end = of.call.part - (left - of.space.data());
    std::vector<double> sums;
    of.z.assign((size_t)(of.n * of.n), (double)NAN);
    for (int64_t e = 0; e < end; e++)
        left[e] = (double)NAN;
    of.item.outputs[METHOD_ISM_INVERSE] = of.z.data();
    of.call.plan.stream_by_strips = by_strips;
    assert_int_equal(cuda__ism_start_update<double>(of.call, nullptr), cudaSuccess);
    for (int64_t e = 0; e < end; e++) /* each block has left its own */
        assert_true(e % ld >= of.n || isnan(left[e]) == (e / ld >= SUMS * blocks));
    for (int64_t e = 0; e < SUMS * of.n; e++)
        sums.push_back(left[e / of.n * ld + e % of.n]);
    return sums;
}

/* Z = B + B X (-R K), and its sums, by loops. */
static void check(const bed &of, const std::vector<double> &sums)
{
    const double *rk = cuda__ism_array_of<double>(of.call, 0, CUDA__ISM_STREAM_RK);
    const double near = 1e-13 * (double)(of.n * of.m);
    std::vector<double> expected((size_t)(SUMS * of.n));
    for (int64_t i = 0; i < of.n; i++) {
        std::vector<double> g((size_t)of.m);
        for (int64_t e = 0; e < of.n * of.m; e++)
            g[(size_t)(e % of.m)] += of.b[(size_t)(i * of.n + e / of.m)] * of.x[(size_t)e];
        for (int64_t j = 0; j < of.n; j++) {
            double z = of.b[(size_t)(i * of.n + j)];
            for (int64_t c = 0; c < of.m; c++)
                z += g[(size_t)c] * rk[c * of.call.plan.stream_ld + j];
            assert_true(fabs(of.z[(size_t)(i * of.n + j)] - z) <= near);
            expected[(size_t)j] += fabs(z);
            for (int64_t l = 0; l < CUDA__ISM_CHECK_PROBES; l++)
                expected[(size_t)((1 + l) * of.n + j)] += of.lines[(size_t)(l * of.n + i)] * z;
        }
    }
    for (size_t e = 0; e < expected.size(); e++)
        assert_true(fabs(sums[e] - expected[e]) <= near * (double)of.n);
}

/* One part and several, whose last strip is whole or not; each shape of a strip. */
static void test_strips_and_parts(void **state)
{
    (void)state;
    static const struct {
        int64_t n, m, strip, rows;
    } rows[] = {
        {96, 3, 16, 96}, {145, 2, 16, 96}, {130, 17, 32, 96}, {98, 33, 32, 128}, {516, 5, 16, 128}};
    for (const auto &row : rows) {
        bed of;
        make(of, row.n, row.m, row.strip, row.rows);
        const std::vector<double> few = update(of, true), z = of.z, many = update(of, false);
        check(of, many);
        assert_true(z == of.z);
        assert_true(few == many);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_strips_and_parts),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
