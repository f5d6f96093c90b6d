/* Kernels of `ism` next to its products, by themselves, on the CPU: sums of pieces, the search for
 * |A| and its choice of columns, what is brought, and the verdict, with so many numbers for a block
 * or a thread as whole calls have at large orders alone. Behind the numbers there is NaN. */
#include <algorithm>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <vector>

extern "C" {
#include <cmocka.h>

#include "gpu/method.h"
#include "tests/simt/simt.h"
#include "tests/unit/gpu/host/matrices.h"
}

#include "gpu/cuda/ism/launcher.cuh"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LINES CUDA__ISM_PROBES

/* One slot. */
struct bed {
    std::vector<double> space, lines;
    cuda_tensors item;
    cuda__ism_call call;
    uint64_t seed;
};

static double *array_of(bed &of, int array)
{
    return cuda__ism_array_of<double>(of.call, 0, array);
}

static void make(bed &of, int64_t n, int64_t m, std::vector<std::pair<int, int64_t>> arrays)
{
    of = {};
    of.seed = (uint64_t)(n + m);
    of.call.n = n;
    of.call.m = m;
    of.call.ld = (n + 3) / 4 * 4;
    of.call.ldm = (m + 3) / 4 * 4;
    for (const auto &array : arrays) {
        of.call.at[array.first] = of.call.part;
        of.call.part += (array.second + 15) / 16 * 16;
    }
    of.space.assign((size_t)of.call.part, (double)NAN);
    of.lines.assign((size_t)(LINES * of.call.ld), (double)NAN);
    of.call.parts = (unsigned char *)of.space.data();
    of.call.probes = of.lines.data();
    of.call.tensors = &of.item;
    of.call.item_count = 1;
    of.call.matrices = of.call.count = 1;
}

/* rows x columns numbers, ld apart. */
static void fill(bed &of, double *to, int64_t rows, int64_t columns, int64_t ld)
{
    for (int64_t e = 0; e < rows * columns; e++)
        to[e / columns * ld + e % columns] = gputest_random(&of.seed);
}

static bool is_near(double x, double expected, double size)
{
    return fabs(x - expected) <= 1e-13 * size;
}

/* ---- Sums of pieces ---- */

/* By so many blocks, which go over the numbers in strides. */
static void try_pieces(int64_t rows, int64_t columns, int pieces, unsigned blocks, double beta)
{
    const int64_t area = rows * columns, ld = columns + 3, at = 5;
    bed of;
    make(of, 1, 1, {{CUDA__ISM_PIECES, pieces * area}, {CUDA__ISM_C, rows * ld + at}});
    double *from = array_of(of, CUDA__ISM_PIECES), *to = array_of(of, CUDA__ISM_C);
    fill(of, from, pieces, area, area);
    if (beta != 0)
        fill(of, to + at, rows, columns, ld);
    const std::vector<double> before(to, to + rows * ld + at);
    assert_int_equal(cuda__start(cuda__ism_gather_kernel<double>, blocks, CUDA__ISM_THREADS, 0,
                                 nullptr, of.call, pieces, rows, columns, -2.0, beta,
                                 (int)CUDA__ISM_C, at, ld),
                     cudaSuccess);
    for (int64_t e = 0; e < rows * ld; e++) {
        const int64_t i = e / ld, j = e % ld;
        double sum = 0;
        for (int p = 0; p < pieces && j < columns; p++)
            sum += from[p * area + i * columns + j];
        if (j < columns)
            assert_true(is_near(
                to[at + e], (beta != 0 ? beta * before[(size_t)(at + e)] : 0) - 2 * sum, pieces));
        else
            assert_true(isnan(to[at + e]));
    }
    for (int64_t e = 0; e < at; e++)
        assert_true(isnan(to[e]));
}

static void test_pieces(void **state)
{
    (void)state;
    for (int pieces = 1; pieces <= 9; pieces += 2) {
        try_pieces(1, 5, pieces, 1, 0);
        try_pieces(7, 93, pieces, 2, 0);
        try_pieces(7, 93, pieces, 3, 0.5);
        try_pieces(8, 64, pieces, 1, 1);
    }
}

/* ---- |A| ---- */

/* The first of the largest numbers that are not negative; it becomes negative. */
static int64_t take_largest(std::vector<double> &of)
{
    const int64_t at = std::max_element(of.begin(), of.end()) - of.begin();
    of[(size_t)at] = -1;
    return at;
}

static void try_choice(bed &of, bool by_bounds)
{
    const int64_t n = of.call.n, m = of.call.m, ldm = of.call.ldm;
    double *scores = cuda__ism_scores<double>(of.call, 0);
    double *bounds = cuda__ism_weights<double>(of.call, 0);
    const double *y = array_of(of, CUDA__ISM_Y), *chosen = array_of(of, CUDA__ISM_CHOSEN);
    const cuda__ism_answer *answer = cuda__ism_answer_of<double>(of.call, 0);
    std::vector<double> left(scores, scores + n), limits(bounds, bounds + n);
    assert_int_equal(cuda__start(cuda__ism_choose_kernel<double, CUDA__ISM_THREADS>, 1u,
                                 CUDA__ISM_THREADS, 0, nullptr, of.call, by_bounds),
                     cudaSuccess);
    for (int c = 0; c < LINES; c++) {
        for (int64_t j = 0; by_bounds && c == LINES / 2 && j < n; j++)
            left[(size_t)j] = left[(size_t)j] < 0 ? -1 : limits[(size_t)j];
        const int64_t expected = take_largest(left);
        assert_int_equal(answer->chosen[c], expected);
        limits[(size_t)expected] = 0;
        for (int64_t k = 0; k < m; k++)
            assert_true(chosen[c * ldm + k] == y[expected * ldm + k]);
    }
    for (int64_t j = 0; j < n; j++)
        assert_true(bounds[j] == limits[(size_t)j]);
}

/* The largest all in one thread's share, some of them alike, and anywhere; then by bounds. */
static void test_choice(void **state)
{
    (void)state;
    static const int64_t orders[] = {65, 256, 700, 2047};
    for (size_t k = 0; k < COUNT(orders) * 2; k++) {
        const int64_t n = orders[k / 2], m = 3;
        bed of;
        make(of, n, m,
             {{CUDA__ISM_ANSWER, 64},
              {CUDA__ISM_REST, n},
              {CUDA__ISM_WEIGHTS, n},
              {CUDA__ISM_Y, n * 4},
              {CUDA__ISM_CHOSEN, LINES * 4}});
        double *scores = cuda__ism_scores<double>(of.call, 0);
        double *bounds = cuda__ism_weights<double>(of.call, 0);
        fill(of, array_of(of, CUDA__ISM_Y), n, m, 4);
        for (int64_t j = 0; j < n; j++) {
            scores[j] = fabs(gputest_random(&of.seed));
            bounds[j] = fabs(gputest_random(&of.seed));
            if (k % 2 == 0 && j % CUDA__ISM_THREADS == 17) {
                scores[j] = j / CUDA__ISM_THREADS % 3 + 2;
                bounds[j] = j / CUDA__ISM_THREADS % 2 + 2;
            }
        }
        try_choice(of, false);
        for (int64_t j = 0; j < n; j += 5)
            scores[j] = 0;
        try_choice(of, true);
    }
}

/* The search for |A| as gpu/cuda/ism/norm.cuh says, by loops: X, Y and D of one slot. */
struct search {
    const double *x, *y, *d;
    int64_t n, m, ldm;
    std::vector<double> lines, bounds, sizes; /* LINES lines of n; bounds and norms of columns */

    std::vector<double> scores() const
    {
        std::vector<double> thin((size_t)(LINES * m)), found((size_t)n);
        for (int64_t e = 0; e < LINES * m; e++)
            for (int64_t i = 0; i < n; i++)
                thin[(size_t)e] += lines[(size_t)(e / m * n + i)] * x[i * ldm + e % m];
        for (int64_t j = 0; j < n; j++) {
            double squares = 0;
            for (int l = 0; l < LINES; l++) {
                double sum = 0;
                for (int64_t c = 0; c < m; c++)
                    sum += thin[(size_t)(l * m + c)] * y[j * ldm + c];
                squares += sum * sum;
            }
            found[(size_t)j] =
                std::min(fabs(d[j]) + sqrt((double)n / LINES * squares), bounds[(size_t)j]);
        }
        return found;
    }

    /* A column of A: its signs become line l, and its norm is noted. */
    void look(int64_t column, int l)
    {
        double size = 0;
        for (int64_t i = 0; i < n; i++) {
            double value = i == column ? d[i] : 0;
            for (int64_t c = 0; c < m; c++)
                value += x[i * ldm + c] * y[column * ldm + c];
            lines[(size_t)(l * n + i)] = value < 0 ? -1 : 1;
            size += fabs(value);
        }
        bounds[(size_t)column] = 0;
        sizes.push_back(size);
    }

    void climb(bool by_bounds)
    {
        std::vector<double> left = scores(), limits = bounds;
        int64_t taken[LINES];
        for (int l = 0; l < LINES; l++) {
            for (int64_t j = 0; by_bounds && l == LINES / 2 && j < n; j++)
                left[(size_t)j] = left[(size_t)j] < 0 ? -1 : limits[(size_t)j];
            taken[l] = take_largest(left);
        }
        for (int l = 0; l < LINES; l++)
            look(taken[l], l);
    }
};

/* A matrix of each of these slots. */
#define SLOTS 2

/* at: a row of Y and a number of D are large, so that their columns are the longest; -1: none. up:
 * X, Y and D are scaled by powers of two, A by 2^17, beyond what sums of their magnitudes bear. */
static void make_search(bed &of, int64_t n, int64_t m, int64_t at, bool up)
{
    const int64_t ld = (n + 3) / 4 * 4, ldm = (m + 3) / 4 * 4;
    make(of, n, m,
         {{CUDA__ISM_ANSWER, 64},
          {CUDA__ISM_X, n * ldm},
          {CUDA__ISM_Y, n * ldm},
          {CUDA__ISM_D, ld},
          {CUDA__ISM_WEIGHTS, n},
          {CUDA__ISM_OVERLAPPED, cuda__ism_norm_room_of(n, m).left}});
    of.space.assign((size_t)(SLOTS * of.call.part), (double)NAN);
    of.call.parts = (unsigned char *)of.space.data();
    of.call.count = SLOTS;
    fill(of, of.lines.data(), LINES, n, ld);
    for (int64_t slot = 0; slot < SLOTS; slot++) {
        double *x = cuda__ism_array_of<double>(of.call, slot, CUDA__ISM_X);
        double *y = cuda__ism_array_of<double>(of.call, slot, CUDA__ISM_Y);
        double *d = cuda__ism_array_of<double>(of.call, slot, CUDA__ISM_D);
        fill(of, x, n, m, ldm);
        fill(of, y, n, m, ldm);
        fill(of, d, 1, n, ld);
        *cuda__ism_answer_of<double>(of.call, slot) = {};
        for (int64_t c = 0; at >= 0 && c < m; c++)
            y[at * ldm + c] *= 50;
        if (at >= 0)
            d[n - 1 - at] *= 1e4;
        for (int64_t e = 0; up && e < n * m; e++) {
            x[e / m * ldm + e % m] *= 0x1p1017;
            y[e / m * ldm + e % m] *= 0x1p-1000;
        }
        for (int64_t j = 0; up && j < n; j++)
            d[j] *= 0x1p17;
    }
}

/* The norms of all chosen columns, in their order, of a slot. */
static std::vector<double> sizes_of(const bed &of, int64_t slot)
{
    const cuda__ism_norm_room room = cuda__ism_norm_room_of(of.call.n, of.call.m);
    const double *from =
        cuda__ism_array_of<double>(of.call, slot, CUDA__ISM_OVERLAPPED) + room.sizes;
    std::vector<double> sizes((size_t)(2 * LINES));
    for (int64_t e = 0; e < 2 * room.parts * LINES; e++)
        sizes[(size_t)(e / LINES / room.parts * LINES + e % LINES)] += from[e];
    return sizes;
}

static void run_search(bed &of)
{
    cuda__ism_verifier<double> verifier = {{of.call, nullptr, nullptr, cudaSuccess}};
    verifier.measure_diagonal();
    assert_int_equal(verifier.status, cudaSuccess);
}

static void check_slot(bed &of, int64_t slot)
{
    const int64_t n = of.call.n, m = of.call.m, ld = of.call.ld, ldm = of.call.ldm;
    const double *x = cuda__ism_array_of<double>(of.call, slot, CUDA__ISM_X);
    const double *y = cuda__ism_array_of<double>(of.call, slot, CUDA__ISM_Y);
    const double *d = cuda__ism_array_of<double>(of.call, slot, CUDA__ISM_D);
    const cuda__ism_answer *answer = cuda__ism_answer_of<double>(of.call, slot);
    search by = {x, y, d, n, m, ldm, {}, std::vector<double>((size_t)n), {}};
    double terms = 0, largest = 0;
    for (int64_t e = 0; e < LINES * n; e++)
        by.lines.push_back(of.lines[(size_t)(e / n * ld + e % n)]);
    for (int64_t j = 0; j < n; j++) {
        by.bounds[(size_t)j] = fabs(d[j]);
        for (int64_t e = 0; e < n * m; e++)
            by.bounds[(size_t)j] += fabs(x[e / m * ldm + e % m] * y[j * ldm + e % m]);
        terms = std::max(terms, by.bounds[(size_t)j] * CUDA__ISM_TERMS_SCALE);
    }
    by.climb(false);
    by.climb(true);
    const std::vector<double> found = sizes_of(of, slot);
    for (size_t l = 0; l < found.size(); l++) {
        assert_true(is_near(found[l], by.sizes[l], by.sizes[l]));
        largest = std::max(largest, by.sizes[l]);
    }
    assert_true(is_near(answer->norm_a, largest, largest));
    assert_true(is_near(cuda__ism_terms(answer), terms, terms));
}

static void try_search(int64_t n, int64_t m, int64_t at)
{
    bed of;
    make_search(of, n, m, at, false);
    run_search(of);
    for (int64_t slot = 0; slot < SLOTS; slot++)
        check_slot(of, slot);
}

/* Orders that leave warps without rows, or with less than their share; columns about those of a
 * product and of a piece, and none; the longest columns in the first block, the last one, and
 * anywhere. */
static void test_search(void **state)
{
    (void)state;
    static const int64_t columns[] = {0, 1, 15, 16, 17, 63, 64, 65, 130};
    static const enum simt_order orders[] = {SIMT_FORWARD, SIMT_BACKWARD, SIMT_SHUFFLED,
                                             SIMT_AHEAD};
    for (size_t k = 0; k < COUNT(columns); k++) {
        simt_set_order(orders[k % COUNT(orders)], (uint32_t)k);
        try_search(70 + (int64_t)k * 41, columns[k], -1);
        simt_set_order(orders[(k + 1) % COUNT(orders)], (uint32_t)k);
        try_search(129, columns[k], k % 2 ? 3 : 128);
    }
    for (size_t o = 0; o < COUNT(orders); o++) {
        simt_set_order(orders[o], 1);
        try_search(700, 70, -1);
    }
    simt_set_order(SIMT_FORWARD, 0);
    try_search(1030, 20, 700);
}

/* What is 2^17 times as large is found to be so, where sums of X's magnitudes leave the range. */
static void test_search_near_overflow(void **state)
{
    (void)state;
    bed usual, large;
    make_search(usual, 1030, 20, -1, false);
    make_search(large, 1030, 20, -1, true);
    run_search(usual);
    run_search(large);
    for (int64_t slot = 0; slot < SLOTS; slot++) {
        const std::vector<double> expected = sizes_of(usual, slot), found = sizes_of(large, slot);
        for (size_t l = 0; l < found.size(); l++)
            assert_true(found[l] == expected[l] * 0x1p17);
        assert_true(cuda__ism_answer_of<double>(large.call, slot)->norm_a ==
                    cuda__ism_answer_of<double>(usual.call, slot)->norm_a * 0x1p17);
    }
}

/* ---- What is brought ---- */

/* By so many blocks; and what is not finite is noted, wherever it is. */
static void try_input(int64_t n, int64_t m, unsigned blocks)
{
    const int64_t ldm = (m + 3) / 4 * 4, bad = n * m - 1 - n * m / 3;
    bed of;
    make(of, n, m, {{CUDA__ISM_ANSWER, 64}, {CUDA__ISM_X, n * ldm}});
    std::vector<double> given((size_t)(n * m));
    cuda__ism_answer *answer = cuda__ism_answer_of<double>(of.call, 0);
    const cuda__ism_shape shape = {CUDA__ISM_X, n, m, ldm};
    const double *x = array_of(of, CUDA__ISM_X);
    fill(of, given.data(), n, m, m);
    of.item.inputs[METHOD_ISM_X] = given.data();
    for (int round = 0; round < 2; round++) {
        answer->bad = 0;
        if (round > 0)
            given[(size_t)bad] = (double)INFINITY;
        assert_int_equal(cuda__start(cuda__ism_bring_kernel<double>, dim3(blocks, 1),
                                     CUDA__ISM_THREADS, 0, nullptr, of.call, (int)METHOD_ISM_X,
                                     shape),
                         cudaSuccess);
        assert_int_equal(answer->bad, round);
        for (int64_t e = 0; e < n * ldm; e++)
            assert_true(e % ldm < m ? x[e] == given[(size_t)(e / ldm * m + e % ldm)] : isnan(x[e]));
    }
}

/* Columns about powers of two, and about what a warp brings at once. */
static void test_inputs(void **state)
{
    (void)state;
    static const int64_t columns[] = {1, 2, 3, 5, 8, 31, 32, 33, 255, 256, 257, 600};
    for (size_t k = 0; k < COUNT(columns); k++) {
        try_input(1, columns[k], 1);
        try_input(100, columns[k], 1 + (unsigned)k % 3);
    }
}

/* Diagonals of A0 and its inverse, by several blocks; one number of them is not finite. */
static void try_diagonal(int64_t n, int64_t bad)
{
    const int64_t ld = (n + 3) / 4 * 4;
    bed of;
    make(of, n, 1,
         {{CUDA__ISM_ANSWER, 64}, {CUDA__ISM_D, ld}, {CUDA__ISM_E, ld}, {CUDA__ISM_SIZES, 2 * ld}});
    std::vector<double> given((size_t)n);
    cuda__ism_answer *answer = cuda__ism_answer_of<double>(of.call, 0);
    const double *d = array_of(of, CUDA__ISM_D), *e = array_of(of, CUDA__ISM_E);
    fill(of, given.data(), 1, n, n);
    if (bad >= 0)
        given[(size_t)bad] = -(double)INFINITY;
    answer->bad = 0;
    of.item.inputs[METHOD_ISM_A0_DIAGONAL] = given.data();
    of.call.inputs = UINT32_C(1) << METHOD_ISM_A0_DIAGONAL;
    const int64_t blocks = (n + CUDA__ISM_THREADS - 1) / CUDA__ISM_THREADS;
    assert_int_equal(cuda__start(cuda__ism_diagonal_kernel<double, CUDA__ISM_THREADS>,
                                 dim3((unsigned)blocks, 1), CUDA__ISM_THREADS, 0, nullptr, of.call),
                     cudaSuccess);
    assert_int_equal(answer->bad, bad >= 0);
    for (int64_t i = 0; i < ld; i++)
        assert_true(i < n ? d[i] == given[(size_t)i] && e[i] == 1 / given[(size_t)i]
                          : isnan(d[i]) && isnan(e[i]));
}

static void test_diagonals(void **state)
{
    (void)state;
    static const int64_t places[] = {-1, 0, 255, 256, 512, 600};
    for (size_t k = 0; k < COUNT(places); k++)
        try_diagonal(601, places[k]);
    try_diagonal(1, -1);
}

/* ---- The verdict ---- */

/* INFO of a check that left `error` in lines `first` to `last`, and nothing in others. */
static int32_t judged(int64_t n, bool update, int first, int last, double error)
{
    const int64_t ld = (n + 3) / 4 * 4;
    int32_t info = 77, algorithm;
    double rcond, det_ratio;
    bed of;
    make(of, n, 1,
         {{CUDA__ISM_ANSWER, 64},
          {CUDA__ISM_SIZES, 2 * ld},
          {CUDA__ISM_COLUMNS, 2 * ld},
          {CUDA__ISM_ERROR, 2 * LINES * ld}});
    cuda__ism_answer *answer = cuda__ism_answer_of<double>(of.call, 0);
    *answer = {};
    answer->norm_a = answer->det = 1;
    of.call.inputs = UINT32_C(1) << (update ? METHOD_ISM_A0_INVERSE : METHOD_ISM_A0_DIAGONAL);
    of.item.outputs[METHOD_ISM_INFO] = &info;
    of.item.outputs[METHOD_ISM_RCOND] = &rcond;
    of.item.outputs[METHOD_ISM_ALGORITHM] = &algorithm;
    of.item.outputs[METHOD_ISM_DET_RATIO] = &det_ratio;
    const int lines = cuda__ism_probes_of(of.call), begin = update ? lines : 0;
    double *errors = array_of(of, CUDA__ISM_ERROR), *sizes = array_of(of, CUDA__ISM_SIZES);
    std::fill(errors, errors + (begin + lines) * ld, 0.0);
    std::fill(sizes, sizes + 2 * ld, 1.0);
    std::fill_n(array_of(of, CUDA__ISM_COLUMNS), 2 * ld, 0.0);
    for (int l = first; l <= last; l++)
        errors[(begin + l) * ld + n - 1] = l % 2 ? error : -error;
    assert_int_equal(cuda__start(cuda__ism_judge_kernel<double, CUDA__ISM_THREADS>, 1u,
                                 CUDA__ISM_THREADS, 0, nullptr, of.call),
                     cudaSuccess);
    return info;
}

/* Each line counts: of four where A is known, of eight of updates; of small orders their sums. */
static void test_verdict(void **state)
{
    (void)state;
    for (int update = 0; update < 2; update++) {
        const int lines = update ? LINES : CUDA__ISM_KNOWN_PROBES;
        assert_int_equal(judged(20, update, 0, lines - 1, 1e-16), 0);
        for (int l = 0; l < lines; l++) {
            assert_true(judged(20, update, l, l, 1e-3) < -1);
            assert_true(judged(20, update, l, l, (double)NAN) < -1);
        }
    }
    for (int n = 3; n <= LINES; n++) {
        const double allowed = CUDA__ISM_WHOLE_RATIO * n * cuda__real<double>::eps;
        assert_int_equal(judged(n, false, 0, n - 2, allowed / n), 0);
        assert_true(judged(n, false, 0, n - 1, 1.01 * allowed / n) < -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_search_near_overflow),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_diagonals),
        cmocka_unit_test(test_verdict),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
