/* tests/unit/gpu/host/ism.c: see ism.h. */
#include "tests/support/residual.h"
#include "tests/unit/gpu/host/ism.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/base/host.h"
#include "gpu/host/linalg/lapack.h"
#include "tests/unit/gpu/host/matrices.h"

#define GUARD 5
#define GUARD_BYTE 0x5a
#define PAGE 4096
#define POISON 0x7f /* numbers near the end of either range, which no sum hides */

extern const struct host_method host_method_ism_f32, host_method_ism_f64;

static const struct host_method *method_of(enum precision precision)
{
    return precision == PRECISION_FP32 ? &host_method_ism_f32 : &host_method_ism_f64;
}

static double rounded(enum precision precision, double value)
{
    return precision == PRECISION_FP32 ? (double)(float)value : value;
}

static void round_all(enum precision precision, double *numbers, int64_t count)
{
    for (int64_t i = 0; numbers && i < count; i++)
        numbers[i] = rounded(precision, numbers[i]);
}

struct ismtest_problem ismtest_blank(enum precision precision, enum ismtest_kind kind, int64_t n,
                                     int64_t m)
{
    struct ismtest_problem problem = {.precision = precision, .kind = kind, .n = n, .m = m};
    problem.x = gputest_numbers(n * m + 1);
    problem.y = gputest_numbers(n * m + 1);
    problem.a0 = gputest_numbers(n * n);
    problem.a = gputest_numbers(n * n);
    for (int64_t i = 0; i < n; i++)
        problem.a0[i * (n + 1)] = 1;
    return problem;
}

void ismtest_complete(struct ismtest_problem *problem)
{
    enum precision precision = problem->precision;
    int64_t n = problem->n, m = problem->m;
    round_all(precision, problem->x, n * m);
    round_all(precision, problem->y, n * m);
    round_all(precision, problem->a0, n * n);
    for (int64_t i = 0; i < n * n; i++) {
        long double sum = problem->a0[i];
        for (int64_t k = 0; k < m; k++)
            sum += (long double)problem->x[i / n * m + k] * problem->y[i % n * m + k];
        problem->a[i] = rounded(precision, (double)sum);
    }
    if (problem->kind != ISMTEST_INVERSE && problem->kind != ISMTEST_INVERSE_AND_A0)
        return;
    struct gputest_answer answer = gputest_run("lu", precision, n, problem->a0, false);
    free(problem->b);
    problem->b = gputest_numbers(n * n);
    memcpy(problem->b, answer.inverse, (size_t)(n * n) * sizeof(double));
    gputest_free(&answer);
}

void ismtest_sum_exactly(struct ismtest_problem *problem)
{
    const int64_t n = problem->n, m = problem->m;
    for (int64_t i = 0; i < n * n; i++) {
        __float128 sum = problem->a0[i];
        for (int64_t k = 0; k < m; k++)
            sum += (__float128)problem->x[i / n * m + k] * problem->y[i % n * m + k];
        problem->a[i] = (double)sum;
    }
}

struct ismtest_problem ismtest_problem(enum precision precision, enum ismtest_kind kind, int64_t n,
                                       int64_t m, uint64_t seed)
{
    struct ismtest_problem problem = ismtest_blank(precision, kind, n, m);
    double scale = 0.7 / sqrt((double)n), shift = gputest_random(&seed);
    double weight = m > 4 ? scale * 2 / sqrt((double)m) : scale; /* |X Y^T| stays near 1 */
    for (int64_t i = 0; i < n * m; i++) {
        problem.x[i] = gputest_random(&seed);
        problem.y[i] = gputest_random(&seed) * weight;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; kind >= ISMTEST_INVERSE && j < n; j++)
            problem.a0[i * n + j] = gputest_random(&seed) * scale;
        double own = kind == ISMTEST_DEFAULT ? 1 : 3 + (kind == ISMTEST_SCALE ? shift : 0);
        problem.a0[i * (n + 1)] = kind >= ISMTEST_DIAGONAL ? own + gputest_random(&seed) : own;
    }
    ismtest_complete(&problem);
    return problem;
}

void ismtest_free(struct ismtest_problem *problem)
{
    free(problem->x);
    free(problem->y);
    free(problem->a0);
    free(problem->b);
    free(problem->a);
}

/* ---- One run ---- */

struct tensor {
    unsigned char *raw;
    int64_t bytes, unit;
};

static void *place(struct tensor *tensor, enum precision precision, int64_t count)
{
    tensor->unit = precision_bytes(precision);
    tensor->bytes = count * tensor->unit;
    tensor->raw = malloc((size_t)(tensor->bytes + 2 * GUARD * tensor->unit));
    assert_non_null(tensor->raw);
    memset(tensor->raw, GUARD_BYTE, (size_t)(tensor->bytes + 2 * GUARD * tensor->unit));
    return tensor->raw + GUARD * tensor->unit;
}

static const void *fill(struct tensor *tensor, enum precision precision, const double *numbers,
                        int64_t count, int64_t step)
{
    void *data = place(tensor, precision, count);
    for (int64_t i = 0; i < count; i++) {
        if (precision == PRECISION_FP32)
            ((float *)data)[i] = (float)numbers[i * step];
        else
            ((double *)data)[i] = numbers[i * step];
    }
    return data;
}

static double *take(struct tensor *tensor)
{
    int64_t guard = GUARD * tensor->unit, count = tensor->bytes / tensor->unit;
    double *numbers = gputest_numbers(count + 1);
    for (int64_t i = 0; i < guard; i++) {
        assert_int_equal(tensor->raw[i], GUARD_BYTE);
        assert_int_equal(tensor->raw[guard + tensor->bytes + i], GUARD_BYTE);
    }
    for (int64_t i = 0; i < count; i++) {
        const unsigned char *at = tensor->raw + guard + i * tensor->unit;
        numbers[i] = tensor->unit == 4 ? (double)*(const float *)at : *(const double *)at;
    }
    free(tensor->raw);
    return numbers;
}

static double take_one(struct tensor *tensor)
{
    double *numbers = take(tensor), number = numbers[0];
    free(numbers);
    return number;
}

static void fill_inputs(const struct ismtest_problem *problem, struct host_matrix *matrix,
                        struct tensor inputs[METHOD_INPUTS_MAX])
{
    enum precision p = problem->precision;
    int64_t n = problem->n, m = problem->m;
    const struct {
        const double *numbers;
        int64_t count, step;
        bool given;
    } tensors[METHOD_INPUTS_MAX] = {
        [METHOD_ISM_A] = {problem->a, n * n, 1, problem->kind == ISMTEST_ALONE},
        [METHOD_ISM_X] = {problem->x, n * m, 1, problem->kind != ISMTEST_ALONE},
        [METHOD_ISM_Y] = {problem->y, n * m, 1, problem->kind != ISMTEST_ALONE},
        [METHOD_ISM_A0_SCALE] = {problem->a0, 1, 1, problem->kind == ISMTEST_SCALE},
        [METHOD_ISM_A0_DIAGONAL] = {problem->a0, n, n + 1, problem->kind == ISMTEST_DIAGONAL},
        [METHOD_ISM_A0_DENSE] = {problem->a0, n * n, 1, problem->kind == ISMTEST_INVERSE_AND_A0},
        [METHOD_ISM_A0_INVERSE] = {problem->b, n * n, 1, problem->b != NULL},
    };
    for (int i = 0; i < METHOD_INPUTS_MAX; i++) {
        if (tensors[i].given)
            matrix->inputs[i] =
                fill(&inputs[i], p, tensors[i].numbers, tensors[i].count, tensors[i].step);
    }
}

/* Scratch full of poison, and how much of it was written. */
static void *poisoned(int64_t bytes)
{
    void *scratch = aligned_alloc(HOST_ALIGN_BYTES, (size_t)bytes);
    assert_non_null(scratch);
    memset(scratch, POISON, (size_t)bytes);
    return scratch;
}

static int64_t touched(const unsigned char *scratch, int64_t bytes)
{
    int64_t sum = 0;
    for (int64_t page = 0; page < bytes; page += PAGE) {
        int64_t i = page, end = page + PAGE < bytes ? page + PAGE : bytes;
        while (i < end && scratch[i] == POISON)
            i++;
        sum += i < end ? end - page : 0;
    }
    return sum;
}

static uint32_t mask(const void *const *pointers, int count)
{
    uint32_t set = 0;
    for (int i = 0; i < count; i++)
        set |= pointers[i] ? METHOD_INPUT(i) : 0;
    return set;
}

static void run_on(const struct ismtest_problem *problem, struct host_matrix *matrix,
                   struct ismtest_answer *answer)
{
    struct host_task task = {.n = problem->n,
                             .m = problem->kind == ISMTEST_ALONE ? problem->n : problem->m,
                             .options = matrix->options,
                             .inputs = mask(matrix->inputs, METHOD_INPUTS_MAX),
                             .outputs =
                                 mask((const void *const *)matrix->outputs, METHOD_OUTPUTS_MAX)};
    task.wanted = task.outputs;
    matrix->n = task.n;
    matrix->m = task.m;
    answer->scratch_bytes = method_of(problem->precision)->task_scratch_bytes(&task);
    assert_true(answer->scratch_bytes > 0);
    assert_true(answer->scratch_bytes <=
                method_of(problem->precision)->scratch_bytes(task.n, task.m));
    /* Behind it nothing is written. */
    matrix->scratch = poisoned(answer->scratch_bytes + PAGE);
    method_of(problem->precision)->run(matrix);
    answer->touched_bytes = touched(matrix->scratch, answer->scratch_bytes);
    for (int64_t i = 0; i < PAGE; i++)
        assert_int_equal(((unsigned char *)matrix->scratch)[answer->scratch_bytes + i], POISON);
    free(matrix->scratch);
}

struct ismtest_answer ismtest_run(const struct ismtest_problem *problem, int wanted,
                                  struct host_team *team)
{
    enum precision p = problem->precision;
    int64_t n = problem->n, m = problem->kind == ISMTEST_ALONE ? n : problem->m;
    int64_t options[METHOD_OPTIONS_MAX] = {
        [METHOD_ISM_VARIANT] = problem->variant, [METHOD_ISM_BLOCK_SIZE] = problem->block_size};
    struct tensor inputs[METHOD_INPUTS_MAX] = {{0}}, inverse, rcond, det, u, r, v, residual, c;
    struct ismtest_answer answer = {.info = -77, .algorithm = -77};
    struct host_matrix matrix = {.options = options, .team = team};
    fill_inputs(problem, &matrix, inputs);
    matrix.outputs[METHOD_ISM_INFO] = &answer.info;
    matrix.outputs[METHOD_ISM_ALGORITHM] = &answer.algorithm;
    matrix.outputs[METHOD_ISM_RCOND] = place(&rcond, p, 1);
    void *det_ratio = place(&det, p, 1);
    if (!(wanted & ISMTEST_DET_RATIO_UNWANTED))
        matrix.outputs[METHOD_ISM_DET_RATIO] = det_ratio;
    if (wanted & ISMTEST_INVERSE_WANTED)
        matrix.outputs[METHOD_ISM_INVERSE] = place(&inverse, p, n * n);
    if (wanted & ISMTEST_FACTORS_WANTED) {
        matrix.outputs[METHOD_ISM_U] = place(&u, p, n * m);
        matrix.outputs[METHOD_ISM_R] = place(&r, p, m * m);
        matrix.outputs[METHOD_ISM_V] = place(&v, p, n * m);
    }
    if (wanted & ISMTEST_MEASURES_WANTED) {
        matrix.outputs[METHOD_ISM_RESIDUAL] = place(&residual, p, 1);
        matrix.outputs[METHOD_ISM_RCOND_CAPACITANCE] = place(&c, p, 1);
    }
    run_on(problem, &matrix, &answer);

    for (int i = 0; i < METHOD_INPUTS_MAX; i++) {
        if (!matrix.inputs[i])
            continue;
        free(take(&inputs[i]));
    }
    answer.rcond = take_one(&rcond);
    answer.det_ratio = take_one(&det);
    if (wanted & ISMTEST_MEASURES_WANTED) {
        answer.residual = take_one(&residual);
        answer.rcond_capacitance = take_one(&c);
    }
    if (wanted & ISMTEST_INVERSE_WANTED) {
        answer.byte_count = inverse.bytes;
        answer.bytes = malloc((size_t)inverse.bytes);
        assert_non_null(answer.bytes);
        memcpy(answer.bytes, matrix.outputs[METHOD_ISM_INVERSE], (size_t)inverse.bytes);
        answer.inverse = take(&inverse);
    }
    if (wanted & ISMTEST_FACTORS_WANTED) {
        answer.u = take(&u);
        answer.r = take(&r);
        answer.v = take(&v);
    }
    return answer;
}

void ismtest_forget(struct ismtest_answer *answer)
{
    free(answer->inverse);
    free(answer->u);
    free(answer->r);
    free(answer->v);
    free(answer->bytes);
    *answer = (struct ismtest_answer){0};
}

/* ---- Measures ---- */

/* log |det| and its sign, by LAPACK. */
static double log_det(int64_t n, const double *a, double *sign)
{
    double *copy = gputest_numbers(n * n), sum = 0;
    int32_t *pivots = calloc((size_t)n, sizeof *pivots);
    assert_non_null(pivots);
    memcpy(copy, a, (size_t)(n * n) * sizeof *copy);
    host__getrf_f64(n, copy, n, pivots);
    *sign = 1;
    for (int64_t i = 0; i < n; i++) {
        double pivot = copy[i * (n + 1)];
        *sign *= (pivot < 0) != (pivots[i] != i + 1) ? -1 : 1;
        sum += log(fabs(pivot));
    }
    free(copy);
    free(pivots);
    return sum;
}

double ismtest_det_ratio(const struct ismtest_problem *problem)
{
    double sign, sign0, *a0 = gputest_numbers(problem->n * problem->n);
    int64_t n = problem->n;
    memcpy(a0, problem->a0, (size_t)(n * n) * sizeof *a0);
    /* A0 of A alone is A's diagonal. */
    for (int64_t i = 0; problem->kind == ISMTEST_ALONE && i < n * n; i++)
        a0[i] = i % (n + 1) == 0 ? problem->a[i] : 0;
    double ratio = exp(log_det(n, problem->a, &sign) - log_det(n, a0, &sign0));
    free(a0);
    return ratio * sign * sign0;
}

/* to (rows x columns) = a (rows x inner) b */
static double *product(int64_t rows, int64_t columns, int64_t inner, const double *a,
                       const double *b)
{
    double *to = gputest_numbers(rows * columns + 1);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < inner; k++) {
            for (int64_t j = 0; j < columns; j++)
                to[i * columns + j] += a[i * inner + k] * b[k * columns + j];
        }
    }
    return to;
}

double ismtest_factors_ratio(const struct ismtest_problem *problem,
                             const struct ismtest_answer *answer)
{
    int64_t n = problem->n, m = problem->m;
    double *left = product(n, n, n, problem->a0, answer->inverse);
    double *whole = product(n, n, n, left, problem->a0);
    double *ur = product(n, m, m, answer->u, answer->r), largest = 0;
    for (int64_t i = 0; i < n * n; i++) {
        double sum = problem->a0[i] - whole[i];
        for (int64_t k = 0; k < m; k++)
            sum -= ur[i / n * m + k] * answer->v[i % n * m + k];
        largest = !(fabs(sum) <= largest) ? fabs(sum) : largest;
    }
    free(left);
    free(whole);
    free(ur);
    double size = residual_norm(n, problem->a0);
    return largest / size /
           ((double)n * (size * residual_norm(n, answer->inverse)) *
            gputest_eps(problem->precision));
}

double ismtest_solution_ratio(const struct ismtest_problem *problem, const double *z)
{
    return residual_update_ratio(gputest_eps(problem->precision), problem->n, problem->m,
                                 problem->b, problem->x, problem->y, z);
}

int ismtest_wrongs;

void ismtest_tell(const struct ismtest_problem *problem, const char *what, double value)
{
    ismtest_wrongs++;
    print_error("%s kind %d variant %d, n = %d, m = %d: %s %g\n",
                precision_name(problem->precision), (int)problem->kind, (int)problem->variant,
                (int)problem->n, (int)problem->m, what, value);
}

void ismtest_too_small(enum precision precision, int64_t n, int64_t m)
{
    static const double sizes[PRECISION_COUNT] = {0x1.8p-148, 0x1.8p-1073};
    struct ismtest_problem problem = ismtest_problem(precision, ISMTEST_INVERSE, n, m, (uint64_t)n);
    for (int64_t j = 0; j < n * n; j++)
        problem.b[j] = j % (n + 1) == 0 ? sizes[precision] : 0;
    struct ismtest_answer answer = ismtest_run(&problem, ISMTEST_INVERSE_WANTED, NULL);
    assert_int_equal(answer.info, n + 1);
    assert_true(isnan(answer.det_ratio) == isnan(answer.inverse[0]));
    ismtest_forget(&answer);
    ismtest_free(&problem);
}
