/* handlers/inference/survey.c: see survey.h. */
#include "handlers/inference/survey.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

static enum survey_info info_kind(int32_t info, int64_t n)
{
    if (info == 0)
        return SURVEY_GOOD;
    if (info < 0)
        return SURVEY_NONFINITE;
    if (info <= n)
        return SURVEY_SINGULAR;
    return info == n + 1 ? SURVEY_ILL_CONDITIONED : SURVEY_NOT_CONVERGED;
}

/* The output of that name; NULL when the method has none, or it has no data. */
static const void *output_named(const struct proto_request *request,
                                void *const outputs[METHOD_OUTPUTS_MAX], const char *name)
{
    const int output = method_output_find(request->method, name);
    return output >= 0 ? outputs[output] : NULL;
}

/* Of a number from 0 on. Cost: no logarithm, for there may be millions of small matrices. */
static int decade_of(double rcond)
{
    static const double bounds[SURVEY_DECADES] = {1,     1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,
                                                  1e-7,  1e-8,  1e-9,  1e-10, 1e-11, 1e-12, 1e-13,
                                                  1e-14, 1e-15, 1e-16, 1e-17, 1e-18};
    int exponent, last = SURVEY_DECADES - 1;
    (void)frexp(rcond, &exponent); /* rcond < 2^exponent */
    int decade = rcond == 0 ? last : (int)(-exponent * 0.30102999);
    if (decade < 0)
        return 0;
    if (decade >= last)
        return last;
    return rcond < bounds[decade + 1] ? decade + 1 : decade;
}

static void count_rconds(const struct proto_request *request, const void *rconds,
                         struct survey *survey)
{
    for (int64_t b = 0; b < request->batch && rconds != NULL; b++) {
        double rcond = request->precision == PRECISION_FP32 ? ((const float *)rconds)[b]
                                                            : ((const double *)rconds)[b];
        if (rcond >= 0)
            survey->rconds[decade_of(rcond)]++;
    }
}

static void count_residuals(const struct proto_request *request, const void *residuals,
                            enum survey_residual kind, struct survey *survey)
{
    for (int64_t b = 0; b < request->batch && residuals != NULL; b++) {
        double residual = request->precision == PRECISION_FP32 ? ((const float *)residuals)[b]
                                                               : ((const double *)residuals)[b];
        if (isnan(residual))
            continue;
        survey->measured[kind]++;
        survey->residuals[kind] = fmax(survey->residuals[kind], residual);
    }
}

void handlers__survey_count(const struct proto_request *request,
                            void *const outputs[METHOD_OUTPUTS_MAX], struct survey *survey)
{
    assert(request->method != NULL && request->batch >= 0);
    const int32_t *infos = output_named(request, outputs, "INFO");
    memset(survey, 0, offsetof(struct survey, bad));
    count_rconds(request, output_named(request, outputs, "RCOND"), survey);
    count_residuals(request, output_named(request, outputs, "RESIDUAL"), SURVEY_RESIDUAL_NORM,
                    survey);
    count_residuals(request, output_named(request, outputs, "RESIDUAL_LEFT"),
                    SURVEY_RESIDUAL_SCALED, survey);
    count_residuals(request, output_named(request, outputs, "RESIDUAL_RIGHT"),
                    SURVEY_RESIDUAL_SCALED, survey);
    for (int64_t b = 0; b < request->batch && infos != NULL; b++) {
        enum survey_info kind = info_kind(infos[b], request->n);
        survey->infos[kind]++;
        if (kind == SURVEY_GOOD || kind == SURVEY_ILL_CONDITIONED)
            continue;
        survey->failed++;
        if (survey->bad_count < SURVEY_BAD_MAX) {
            survey->bad[survey->bad_count].index = b;
            survey->bad[survey->bad_count++].info = infos[b];
        }
    }
}

/* Number b of an output of single numbers; NaN where the output is absent. */
static double output_number(const struct proto_request *request,
                            void *const outputs[METHOD_OUTPUTS_MAX], const char *name, int64_t b)
{
    const int output = method_output_find(request->method, name);
    const void *numbers = output >= 0 ? outputs[output] : NULL;
    if (numbers == NULL)
        return NAN;
    if (request->method->outputs[output].kind == METHOD_INT32)
        return ((const int32_t *)numbers)[b];
    return request->precision == PRECISION_FP32 ? ((const float *)numbers)[b]
                                                : ((const double *)numbers)[b];
}

/* How far the first matrix that did not converge has come. */
static void survey_unconverged(const struct proto_request *request,
                               void *const outputs[METHOD_OUTPUTS_MAX], struct survey *survey)
{
    const int32_t *infos = output_named(request, outputs, "INFO");
    int64_t b = 0;
    while (info_kind(infos[b], request->n) != SURVEY_NOT_CONVERGED)
        b++;
    assert(b < request->batch);
    const double iterations = output_number(request, outputs, "ITERATIONS", b);
    survey->unconverged = b;
    survey->iterations = isnan(iterations) ? -1 : (int32_t)iterations;
    survey->residual = output_number(request, outputs, "RESIDUAL", b);
}

/* fmin passes over NaN. */
static double min_rcond(const struct proto_request *request, const void *rconds)
{
    double min = NAN;
    for (int64_t b = 0; b < request->batch; b++)
        min = fmin(min, request->precision == PRECISION_FP32 ? ((const float *)rconds)[b]
                                                             : ((const double *)rconds)[b]);
    return min;
}

/* The algorithm of those matrices that took one. */
static int common_algorithm(const struct proto_request *request, const int32_t *algorithms)
{
    int algorithm = METHOD_ALGORITHM_NONE;
    for (int64_t b = 0; b < request->batch; b++) {
        if (algorithms[b] == METHOD_ALGORITHM_NONE || algorithms[b] == algorithm)
            continue;
        if (algorithm != METHOD_ALGORITHM_NONE)
            return METHOD_ALGORITHM_COUNT;
        algorithm = algorithms[b];
    }
    return algorithm;
}

void handlers__survey_make(const struct proto_request *request,
                           void *const outputs[METHOD_OUTPUTS_MAX], struct survey *survey)
{
    handlers__survey_count(request, outputs, survey);
    if (survey->infos[SURVEY_NOT_CONVERGED] > 0)
        survey_unconverged(request, outputs, survey);
    const void *rconds = output_named(request, outputs, "RCOND");
    survey->rcond = rconds != NULL ? min_rcond(request, rconds) : (double)NAN;
    survey->algorithm =
        request->n == 0 ? METHOD_ALGORITHM_NONE : (int)method_algorithm_of_all(request->method);
    if (method_output_find(request->method, "METHOD") >= 0)
        survey->algorithm = common_algorithm(request, output_named(request, outputs, "METHOD"));
}
