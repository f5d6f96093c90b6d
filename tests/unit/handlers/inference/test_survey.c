/* What a survey finds in INFO, RCOND and METHOD, and how it explains failures. No exchange. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "handlers/inference/survey.h"

#define N 4
#define BATCH_MAX 200

/* A request with its outputs of one number a matrix. */
struct subject {
    struct proto_request request;
    void *outputs[METHOD_OUTPUTS_MAX];
    int32_t infos[BATCH_MAX], algorithms[BATCH_MAX], iterations[BATCH_MAX];
    double rconds[BATCH_MAX], residuals[BATCH_MAX];
};

static void set_output(struct subject *subject, const char *name, void *numbers)
{
    int output = method_output_find(subject->request.method, name);
    if (output >= 0)
        subject->outputs[output] = numbers;
}

static void make_subject(struct subject *subject, const char *method, int64_t batch)
{
    memset(subject, 0, sizeof *subject);
    proto_request_init(&subject->request, PROTO_FORMAT_NPY, method_find(method));
    subject->request.precision = PRECISION_FP64;
    subject->request.batch = batch;
    subject->request.n = N;
    set_output(subject, "INFO", subject->infos);
    set_output(subject, "RCOND", subject->rconds);
    set_output(subject, "METHOD", subject->algorithms);
    set_output(subject, "ITERATIONS", subject->iterations);
    set_output(subject, "RESIDUAL", subject->residuals);
    for (int64_t b = 0; b < batch; b++) {
        subject->rconds[b] = 0.5;
        subject->algorithms[b] = METHOD_ALGORITHM_LU;
    }
}

static void test_infos(void **state)
{
    (void)state;
    static const int32_t infos[] = {0, 0, 1, N, N + 1, N + 2, -1, N + 2};
    static const int64_t expected[SURVEY_INFOS] = {[SURVEY_GOOD] = 2,
                                                   [SURVEY_SINGULAR] = 2,
                                                   [SURVEY_ILL_CONDITIONED] = 1,
                                                   [SURVEY_NOT_CONVERGED] = 2,
                                                   [SURVEY_NONFINITE] = 1};
    struct subject subject;
    struct survey survey;
    make_subject(&subject, "iterative", 8);
    memcpy(subject.infos, infos, sizeof infos);
    subject.iterations[5] = 7;
    subject.residuals[5] = 0.25;
    handlers__survey_make(&subject.request, subject.outputs, &survey);
    assert_memory_equal(survey.infos, expected, sizeof expected);
    assert_int_equal(survey.failed, 5);
    assert_int_equal(survey.bad_count, 5);
    assert_int_equal(survey.bad[0].index, 2);
    assert_int_equal(survey.bad[0].info, 1);
    assert_int_equal(survey.bad[4].index, 7);
    assert_int_equal(survey.unconverged, 5);
    assert_int_equal(survey.iterations, 7);
    assert_true(survey.residual == 0.25);

    struct survey counted;
    handlers__survey_count(&subject.request, subject.outputs, &counted);
    assert_memory_equal(counted.infos, expected, sizeof expected);

    /* Outputs that were not asked for. */
    set_output(&subject, "ITERATIONS", NULL);
    set_output(&subject, "RESIDUAL", NULL);
    handlers__survey_make(&subject.request, subject.outputs, &survey);
    assert_int_equal(survey.iterations, -1);
    assert_true(isnan(survey.residual));
}

static void test_many_failures(void **state)
{
    (void)state;
    struct subject subject;
    struct survey survey;
    make_subject(&subject, "lu", BATCH_MAX);
    for (int b = 0; b < BATCH_MAX; b++)
        subject.infos[b] = 2;
    handlers__survey_make(&subject.request, subject.outputs, &survey);
    assert_int_equal(survey.failed, BATCH_MAX);
    assert_int_equal(survey.bad_count, SURVEY_BAD_MAX);
    assert_int_equal(survey.bad[SURVEY_BAD_MAX - 1].index, SURVEY_BAD_MAX - 1);
}

static void test_rcond(void **state)
{
    (void)state;
    struct subject subject;
    struct survey survey;
    make_subject(&subject, "lu", 3);
    subject.rconds[0] = NAN;
    subject.rconds[1] = 0.25;
    handlers__survey_make(&subject.request, subject.outputs, &survey);
    assert_true(survey.rcond == 0.25);
    for (int b = 0; b < 3; b++)
        subject.rconds[b] = NAN;
    handlers__survey_make(&subject.request, subject.outputs, &survey);
    assert_true(isnan(survey.rcond));

    static float narrow[3] = {0.5F, 0.125F, 1};
    subject.request.precision = PRECISION_FP32;
    set_output(&subject, "RCOND", narrow);
    handlers__survey_make(&subject.request, subject.outputs, &survey);
    assert_true(survey.rcond == 0.125);
}

static void test_algorithm(void **state)
{
    (void)state;
    static const struct {
        const char *method;
        int64_t batch;
        int32_t algorithms[2];
        int expected;
    } rows[] = {
        {"auto", 2, {METHOD_ALGORITHM_LU, METHOD_ALGORITHM_LU}, METHOD_ALGORITHM_LU},
        {"auto", 2, {METHOD_ALGORITHM_NONE, METHOD_ALGORITHM_LU}, METHOD_ALGORITHM_LU},
        {"auto", 2, {METHOD_ALGORITHM_CHOLESKY, METHOD_ALGORITHM_LU}, METHOD_ALGORITHM_COUNT},
        {"auto", 2, {METHOD_ALGORITHM_NONE, METHOD_ALGORITHM_NONE}, METHOD_ALGORITHM_NONE},
        {"auto", 0, {0, 0}, METHOD_ALGORITHM_NONE},
        {"lu", 2, {0, 0}, METHOD_ALGORITHM_LU},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct subject subject;
        struct survey survey;
        make_subject(&subject, rows[i].method, rows[i].batch);
        memcpy(subject.algorithms, rows[i].algorithms, sizeof rows[i].algorithms);
        handlers__survey_make(&subject.request, subject.outputs, &survey);
        assert_int_equal(survey.algorithm, rows[i].expected);
    }
}

static void test_explain(void **state)
{
    (void)state;
    static const struct {
        const char *method;
        int64_t batch;
        int32_t infos[3];
        const char *expected;
    } rows[] = {
        {"lu", 1, {2}, "Matrix 0: singular, exact zero pivot at step 2 of 4."},
        {"lu", 3, {0, 3, 0}, "Matrix 1 (of 0 to 2): singular, exact zero pivot at step 3 of 4."},
        {"lu", 3, {-1, 3, 0}, "2 of 3 matrices could not be inverted, the first of them matrix 0"},
        {"lu", 1, {-1}, "Matrix 0: its input holds a NaN or an infinity."},
        {"iterative", 1, {N + 2}, "Matrix 0: the iteration did not converge"},
        {"iterative", 1, {1}, "Matrix 0: a row or a column of zeros."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct subject subject;
        struct survey survey;
        char text[1024];
        make_subject(&subject, rows[i].method, rows[i].batch);
        memcpy(subject.infos, rows[i].infos, sizeof rows[i].infos);
        handlers__survey_make(&subject.request, subject.outputs, &survey);
        handlers__survey_explain(&subject.request, &survey, text, sizeof text);
        if (strncmp(text, rows[i].expected, strlen(rows[i].expected)) != 0)
            fail_msg("row %zu: %s", i, text);
    }
}

/* A decade begins at its lower bound; a NaN is in none. */
static void test_accuracy(void **state)
{
    static const double rconds[8] = {1, 0.1, 0.0999, 1e-5, 9.99e-6, 1.5e-18, 1e-30, 0};
    static const int decades[8] = {0, 0, 1, 4, 5, 17, 18, 18};
    (void)state;
    struct subject subject;
    struct survey survey;
    make_subject(&subject, "iterative", 8);
    for (int i = 0; i < 8; i++)
        subject.rconds[i] = rconds[i];
    subject.residuals[2] = 0.25;
    subject.residuals[4] = 0.125;
    subject.residuals[5] = (double)NAN;
    handlers__survey_count(&subject.request, subject.outputs, &survey);
    int64_t expected[SURVEY_DECADES] = {0};
    for (int i = 0; i < 8; i++)
        expected[decades[i]]++;
    assert_memory_equal(survey.rconds, expected, sizeof expected);
    assert_int_equal(survey.measured[SURVEY_RESIDUAL_NORM], 7);
    assert_true(survey.residuals[SURVEY_RESIDUAL_NORM] == 0.25);
    assert_int_equal(survey.measured[SURVEY_RESIDUAL_SCALED], 0);

    subject.rconds[0] = (double)NAN;
    set_output(&subject, "RESIDUAL", NULL);
    handlers__survey_count(&subject.request, subject.outputs, &survey);
    assert_int_equal(survey.rconds[0], 1);
    assert_int_equal(survey.measured[SURVEY_RESIDUAL_NORM], 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_infos),   cmocka_unit_test(test_many_failures),
        cmocka_unit_test(test_rcond),   cmocka_unit_test(test_algorithm),
        cmocka_unit_test(test_explain), cmocka_unit_test(test_accuracy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
