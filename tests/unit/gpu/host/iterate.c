/* tests/unit/gpu/host/iterate.c: see iterate.h. */
#include "tests/unit/gpu/host/iterate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/host/base/host.h"
#include "tests/unit/gpu/host/matrices.h"

#define GUARD 3 /* elements before and behind: also spoils the alignment */
#define GUARD_BYTE 0x5a

/* `count` numbers in the precision, with guards. */
struct numbers {
    unsigned char *raw, *data;
    int64_t bytes, guard;
};

static struct numbers make(enum precision precision, int64_t count, const double *from)
{
    struct numbers numbers = {.guard = GUARD * precision_bytes(precision)};
    numbers.bytes = count * precision_bytes(precision);
    numbers.raw = malloc((size_t)(numbers.bytes + 2 * numbers.guard));
    assert_non_null(numbers.raw);
    memset(numbers.raw, GUARD_BYTE, (size_t)(numbers.bytes + 2 * numbers.guard));
    numbers.data = numbers.raw + numbers.guard;
    for (int64_t i = 0; from && i < count; i++) {
        float narrow = (float)from[i];
        if (precision == PRECISION_FP32)
            memcpy(numbers.data + i * 4, &narrow, sizeof narrow);
        else
            memcpy(numbers.data + i * 8, &from[i], sizeof from[i]);
    }
    return numbers;
}

static double get(enum precision precision, const struct numbers *numbers, int64_t i)
{
    float narrow;
    double wide;
    memcpy(&narrow, numbers->data + i * 4, sizeof narrow);
    if (precision == PRECISION_FP32)
        return (double)narrow;
    memcpy(&wide, numbers->data + i * 8, sizeof wide);
    return wide;
}

static void check_and_free(struct numbers *numbers)
{
    for (int64_t i = 0; i < numbers->guard; i++) {
        assert_int_equal(numbers->raw[i], GUARD_BYTE);
        assert_int_equal(numbers->data[numbers->bytes + i], GUARD_BYTE);
    }
    free(numbers->raw);
}

static void set_options(const struct gputest_iterate *task, const struct method *method,
                        int64_t *options)
{
    method_default_options(method, options);
    memcpy(&options[METHOD_ITERATIVE_TOLERANCE], &task->tolerance, sizeof task->tolerance);
    if (task->max_iterations)
        options[METHOD_ITERATIVE_MAX_ITERATIONS] = task->max_iterations;
    options[METHOD_ITERATIVE_SCHEME] = task->scheme;
    options[METHOD_ITERATIVE_INITIAL] = task->initial;
}

struct gputest_iterated gputest_iterate(const struct gputest_iterate *task)
{
    const struct method *method = method_find("iterative");
    const struct host_method *host =
        host_method_at((uint32_t)method_index(method), task->precision);
    enum precision precision = task->precision;
    int64_t n = task->n, options[METHOD_OPTIONS_MAX];
    struct gputest_iterated result = {.inverse = gputest_numbers(n * n)};
    set_options(task, method, options);
    result.history_length = options[METHOD_ITERATIVE_MAX_ITERATIONS];
    struct numbers a = make(precision, n * n, task->a), v0 = {0}, one = {0};
    struct numbers inverse = make(precision, n * n, NULL), scalars[2] = {one, one};
    struct numbers history = make(precision, result.history_length, NULL);
    for (int i = 0; i < 2; i++)
        scalars[i] = make(precision, 1, NULL);
    if (task->v0)
        v0 = make(precision, n * n, task->v0);
    int64_t bytes = host->scratch_bytes(n, 0);
    bool history_wanted = !task->bare && !task->unmeasured;
    struct host_matrix matrix = {.inputs = {a.data, v0.data},
                                 .outputs = {task->bare ? NULL : inverse.data, &result.info,
                                             scalars[0].data, &result.algorithm, &result.iterations,
                                             task->unmeasured ? NULL : scalars[1].data,
                                             history_wanted ? history.data : NULL},
                                 .n = n,
                                 .options = options,
                                 .team = task->team,
                                 .progress = task->progress,
                                 .scratch = aligned_alloc(HOST_ALIGN_BYTES, (size_t)bytes)};
    assert_non_null(matrix.scratch);
    memset(matrix.scratch, 0xff, (size_t)bytes);
    host->run(&matrix);
    free(matrix.scratch);

    for (int64_t i = 0; !task->bare && i < n * n; i++)
        result.inverse[i] = get(precision, &inverse, i);
    for (int64_t i = 0; history_wanted && i < result.history_length; i++)
        result.history[i] = get(precision, &history, i);
    result.rcond = get(precision, &scalars[0], 0);
    result.residual = get(precision, &scalars[1], 0);
    struct numbers old = make(precision, n * n, task->a);
    assert_memory_equal(old.data, a.data, (size_t)a.bytes);
    struct numbers *all[] = {&a, &inverse, &history, &scalars[0], &scalars[1], &old};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        check_and_free(all[i]);
    if (task->v0)
        check_and_free(&v0);
    return result;
}

void gputest_iterated_free(struct gputest_iterated *result)
{
    free(result->inverse);
    *result = (struct gputest_iterated){0};
}

bool gputest_iterated_equal(const struct gputest_iterated *a, const struct gputest_iterated *b,
                            int64_t n)
{
    return a->info == b->info && a->algorithm == b->algorithm && a->iterations == b->iterations &&
           memcmp(&a->rcond, &b->rcond, sizeof a->rcond) == 0 &&
           memcmp(&a->residual, &b->residual, sizeof a->residual) == 0 &&
           memcmp(a->history, b->history, sizeof a->history) == 0 &&
           memcmp(a->inverse, b->inverse, (size_t)(n * n) * sizeof(double)) == 0;
}
