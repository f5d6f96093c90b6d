/* How `iterative` measures V and R, run on the CPU: against sums done plainly, for every way of
 * cutting into pieces; whose turn it is; and sums that are beyond range or no numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <vector>

extern "C" {
#include <cmocka.h>

#include "tests/simt/simt.h"
#include "tests/unit/gpu/host/matrices.h"
}

#include "gpu/cuda/iterative/measure.cuh"

#define CHUNK 3
#define STEP (CUDA__ITER_STEP + METHOD_ITERATIVE_NEWTON_SCHULZ)
#define LAST (CUDA__ITER_LAST + METHOD_ITERATIVE_NEWTON_SCHULZ)

/* A chunk; matrices 1 and 2 are a run, and it is the turn of matrix 1. */
template <typename T> struct bed {
    cuda__iter_call call = {};
    cuda__iter_run run = {1, 2, 0};
    cuda_notes notes = {};
    std::vector<T> matrices, history;
    std::vector<cuda__iter_state> states;
    std::vector<double> factors, scratch;

    explicit bed(int64_t n, int action)
        : matrices((size_t)((CUDA__ITER_MATRIX_R + 1) * CHUNK * n * ((n + 15) / 16 * 16)), (T)NAN),
          history(2 * CHUNK, (T)-1), states(CHUNK), factors(2 * CHUNK)
    {
        call.precision = sizeof(T) == sizeof(float) ? PRECISION_FP32 : PRECISION_FP64;
        call.n = n;
        call.ld = (n + 15) / 16 * 16;
        call.wishes.max_iterations = 1;
        call.wishes.initial = METHOD_ITERATIVE_SCALED_IDENTITY; /* none follows the transpose */
        call.count = call.space.count = CHUNK;
        call.notes = &notes;
        scratch.assign((size_t)(CHUNK * cuda__iter_pieces_of<T>(n).numbers()), NAN);
        call.space.matrices = matrices.data();
        call.space.history = history.data();
        call.space.states = states.data();
        call.space.factors = factors.data();
        call.space.scratch = scratch.data();
        uint64_t seed = (uint64_t)n;
        for (int64_t k = 0; k < CHUNK; k++) {
            states[(size_t)k] = state_of(k == 2 && action >= CUDA__ITER_STEP, action);
            for (int64_t e = 0; e < n * n; e++) {
                at(CUDA__ITER_MATRIX_V, k, e / n, e % n) = (T)gputest_random(&seed);
                at(CUDA__ITER_MATRIX_R, k, e / n, e % n) = (T)gputest_random(&seed);
            }
        }
    }

    /* For whose next step there are no products left. */
    static cuda__iter_state state_of(bool waits, int action)
    {
        cuda__iter_state state = {};
        state.action = action;
        state.made = !waits;
        state.norm = state.one = state.inf = {0.5, 1, 1};
        state.algorithm = METHOD_ALGORITHM_TRANSPOSE_START;
        state.scheme = METHOD_ITERATIVE_NEWTON_SCHULZ;
        state.last = state.frobenius = state.best_frobenius = state.residual = HUGE_VAL;
        state.v = {0.5, 1, 1};
        return state;
    }

    T &at(int kind, int64_t k, int64_t i, int64_t j)
    {
        return matrices[(size_t)(((kind * CHUNK + k) * call.n + i) * call.ld + j)];
    }

    void measure(int action)
    {
        if (cuda__iter_start_measure<T>(call, run, action, nullptr) != cudaSuccess)
            fail_msg("%s", simt_report());
    }

    /* The 1-norm; *square: of the Frobenius norm. */
    double norm(int kind, int64_t k, double *square)
    {
        double largest = 0;
        long double squares = 0;
        for (int64_t j = 0; j < call.n; j++) {
            long double sum = 0;
            for (int64_t i = 0; i < call.n; i++) {
                long double x = at(kind, k, i, j);
                sum += fabsl(x);
                squares += x * x;
            }
            largest = fmax(largest, (double)sum);
        }
        *square = (double)squares;
        return largest;
    }
};

static bool near(double a, double b, double eps)
{
    return fabs(a - b) <= 32 * eps * fabs(b);
}

static double value(struct cuda_norm norm)
{
    assert_true(norm.finite && norm.fraction >= 0.5 && norm.fraction < 1);
    return ldexp(norm.fraction, norm.exponent);
}

/* Both ends of a piece, of a group of columns, and of the numbers of pieces. */
static const int64_t orders[] = {1,  2,   8,   9,   31,  32,  33,  63,   64,
                                 65, 127, 128, 129, 200, 512, 515, 1024, 1100};

template <typename T> static void try_order(int64_t n)
{
    bed<T> bed(n, STEP);
    std::vector<T> old = bed.matrices;
    bed.measure(CUDA__ITER_START_WARM);
    bool adds = n > ITERATION_DD_ORDER_MAX;
    for (int64_t e = 0; e < CHUNK * n * n; e++) {
        int64_t k = e / n / n, i = e / n % n, j = e % n;
        T now = bed.at(CUDA__ITER_MATRIX_R, k, i, j);
        size_t place = (size_t)(&bed.at(CUDA__ITER_MATRIX_R, k, i, j) - bed.matrices.data());
        assert_true(now == old[place] + T(adds && i == j && (k == 1 || k == 2)));
    }
    double square, one = bed.norm(CUDA__ITER_MATRIX_R, 1, &square);
    const cuda__iter_state &state = bed.states[1];
    assert_int_equal(state.action, CUDA__ITER_STORE);
    assert_int_equal(bed.notes.next[1], CUDA__ITER_STORE);
    assert_true(bed.notes.asked);
    assert_true(near((double)bed.history[2], one, (double)cuda__real<T>::eps));
    assert_true(near(state.frobenius, sqrt(square), 0x1p-52));
    assert_true(near(state.residual, one, 0x1p-52));
    assert_true(near(value(state.v), bed.norm(CUDA__ITER_MATRIX_V, 1, &square), 0x1p-52));
    for (size_t k = 0; k < CHUNK; k++) {
        cuda__iter_state before = bed.state_of(k == 2, STEP);
        if (k != 1) /* none of the run's, or not made */
            assert_memory_equal(&bed.states[k], &before, sizeof before);
    }
}

static void test_norms(void **state)
{
    (void)state;
    for (int64_t n : orders) {
        try_order<double>(n);
        try_order<float>(n);
    }
    try_order<float>(2050); /* fewer pieces again */
}

/* R alone, as it is. */
static void test_judged(void **state)
{
    (void)state;
    for (int action = CUDA__ITER_JUDGE; action <= CUDA__ITER_JUDGE_WHOLE; action++) {
        bed<double> bed(70, action);
        std::vector<double> old = bed.matrices;
        bed.states[2].action = CUDA__ITER_STEP;
        for (double &sum : bed.scratch)
            sum = NAN;
        bed.measure(action);
        assert_memory_equal(old.data(), bed.matrices.data(), old.size() * sizeof(double));
        double square, one = bed.norm(CUDA__ITER_MATRIX_R, 1, &square);
        assert_true(near(bed.states[1].frobenius, sqrt(square), 0x1p-52));
        assert_true(near(bed.states[1].residual, one, 0x1p-52));
        assert_int_equal(bed.states[1].action, CUDA__ITER_STORE);
        assert_int_equal(bed.states[2].action, CUDA__ITER_STEP);
    }
}

/* V alone. */
static void test_finished(void **state)
{
    (void)state;
    bed<float> bed(70, LAST);
    std::vector<float> old = bed.matrices;
    bed.states[1].goal = 0.25;
    bed.measure(CUDA__ITER_LAST);
    assert_memory_equal(old.data(), bed.matrices.data(), old.size() * sizeof(float));
    double square, one = bed.norm(CUDA__ITER_MATRIX_V, 1, &square);
    assert_true(near(value(bed.states[1].best_v), one, 0x1p-52));
    assert_true(bed.states[1].good && bed.states[1].residual == 0.25);
    assert_int_equal(bed.states[2].action, LAST);
}

/* An entry that is none, or that a sum overflows with, is never a small residual. Before it
 * another start is what is next. */
template <typename T> static void try_poison(int kind, T poison, int64_t n, int64_t i, int64_t j)
{
    bed<T> bed(n, STEP);
    for (int64_t e = 0; e < n * n; e++) {
        bed.at(CUDA__ITER_MATRIX_R, 1, e / n, e % n) = e % (n + 1) == 0 ? T(-1) : T(0);
        bed.at(CUDA__ITER_MATRIX_V, 1, e / n, e % n) = e % (n + 1) == 0 ? T(1) : T(0);
    }
    bed.at(kind, 1, i, j) = poison;
    bed.at(kind, 1, (i + n / 2) % n, j) = poison;
    bed.call.wishes.initial = METHOD_ITERATIVE_INITIAL_AUTO;
    bed.measure(CUDA__ITER_START_WARM);
    assert_int_equal(bed.states[1].action, CUDA__ITER_START_IDENTITY);
    assert_false(bed.states[1].good);
    /* NaN stands behind the last of a history. */
    assert_true(kind == CUDA__ITER_MATRIX_V || isinf(bed.history[2]));
}

static void test_beyond_range(void **state)
{
    (void)state;
    static const int64_t places[][2] = {{0, 0}, {69, 69}, {3, 68}, {69, 0}, {40, 40}};
    for (int kind = CUDA__ITER_MATRIX_V; kind <= CUDA__ITER_MATRIX_R; kind++) {
        for (const int64_t *place : places) {
            try_poison<double>(kind, (double)NAN, 70, place[0], place[1]);
            try_poison<float>(kind, (float)NAN, 70, place[0], place[1]);
            try_poison<double>(kind, -HUGE_VAL, 70, place[0], place[1]);
            try_poison<float>(kind, -HUGE_VALF, 70, place[0], place[1]);
            try_poison<double>(kind, cuda__real<double>::largest, 70, place[0], place[1]);
            try_poison<float>(kind, cuda__real<float>::largest, 70, place[0], place[1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_judged),
        cmocka_unit_test(test_finished),
        cmocka_unit_test(test_beyond_range),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
