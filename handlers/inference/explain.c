/* handlers/inference/explain.c: a survey's failures in words for the client: the detail of a 422.
 * See survey.h. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "handlers/inference/survey.h"

/* Which inputs a matrix has, where they are several: " (A, V0)". */
static const char *several_inputs(const struct proto_request *request, char *text, size_t size)
{
    size_t used = 0;
    int count = 0;
    for (int i = 0; i < method_input_count(request->method); i++) {
        if (request->inputs[i].data == NULL || used >= size)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s", count++ > 0 ? ", " : " (",
                                 request->method->inputs[i].name);
    }
    if (used < size)
        snprintf(text + used, size - used, ")");
    return count > 1 ? text : "";
}

/* What became of the first matrix that did not converge, and what may help. */
struct unconverged {
    char reason[160], remedy[224];
};

static double tolerance_of(const struct proto_request *request)
{
    const int option = method_option_find(request->method, "tolerance");
    double tolerance = 0;
    if (option >= 0)
        memcpy(&tolerance, &request->options[option], sizeof tolerance);
    return tolerance;
}

/* Where no start led to an inverse, and the best of them ended with steps left. */
static const char *remedy_without_start(const struct proto_request *request, int64_t max_steps)
{
    const int steps = method_option_find(request->method, "max_iterations");
    const int initial = method_option_find(request->method, "initial");
    if (max_steps < request->method->options[steps].initial)
        return " Raise max_iterations.";
    if (initial >= 0 && request->options[initial] != request->method->options[initial].initial)
        return " Take initial=auto, or method=lu, which says whether the matrix is singular.";
    if (tolerance_of(request) > 0)
        return " The matrix may be singular: method=lu says. If it is not, leave tolerance out: "
               "columns of different scales may put it out of reach.";
    return " The matrix may be singular: method=lu says, and inverts it if it is not.";
}

/* By ITERATIONS and, where it was asked for, RESIDUAL: below 1/2 it is that of an inverse. Without
 * them the words say no more than INFO. */
static void say_unconverged(const struct proto_request *request, const struct survey *survey,
                            struct unconverged *said)
{
    static const char failed[] = "the iteration did not converge";
    const int limit = method_option_find(request->method, "max_iterations");
    const double tolerance = tolerance_of(request), residual = survey->residual;
    const long long steps = survey->iterations;
    const long long max_steps = limit >= 0 ? request->options[limit] : 0;
    const bool is_known = !isnan(residual), is_near = residual < 0.5;
    char at[40] = "";
    const char *remedy = "";
    if (is_known)
        snprintf(at, sizeof at, " (RESIDUAL %.2g)", residual);
    if (steps < 0 || limit < 0) {
        snprintf(said->reason, sizeof said->reason, "%s", failed);
    } else if (steps >= max_steps) {
        snprintf(said->reason, sizeof said->reason,
                 "%s: it took all %lld steps that max_iterations allows%s", failed, max_steps, at);
        remedy = tolerance > 0 && is_near ? " Raise max_iterations, or tolerance above RESIDUAL."
                 : (double)max_steps < request->method->options[limit].max
                     ? " Raise max_iterations."
                     : " The matrix may be singular: method=lu says.";
    } else if (is_near && tolerance == 0) {
        snprintf(said->reason, sizeof said->reason,
                 "%s: RESIDUAL came to %.4g, above what lu leaves", failed, residual);
        remedy = " Take method=lu.";
    } else if (is_near) {
        snprintf(said->reason, sizeof said->reason,
                 "%s: RESIDUAL stood still at %.4g, above tolerance=%.4g", failed, residual,
                 tolerance);
        remedy = " Raise tolerance above that, or leave it out.";
    } else if (tolerance > 0 && !is_known) {
        snprintf(said->reason, sizeof said->reason,
                 "%s: it ended after %lld of at most %lld steps, above tolerance=%.2g", failed,
                 steps, max_steps, tolerance);
        remedy = " Where outputs=residual is below 0.5, rounding allows no less, and tolerance "
                 "has to be above it; else leave tolerance out, or ask method=lu whether the "
                 "matrix is singular.";
    } else {
        snprintf(said->reason, sizeof said->reason,
                 "%s: no start led to an inverse, the best of them ended after %lld of at most "
                 "%lld steps%s",
                 failed, steps, max_steps, at);
        remedy = remedy_without_start(request, max_steps);
    }
    snprintf(said->remedy, sizeof said->remedy, "%s", remedy);
}

/* Why a matrix has no inverse, by its INFO. A matrix may be given as a sum, and a method that
 * iterates has no pivots. */
static void say_reason(int32_t info, const struct proto_request *request, char *text, size_t size)
{
    char inputs[48];
    const char *which = several_inputs(request, inputs, sizeof inputs);
    if (info < 0)
        snprintf(text, size, "%s%s%s holds a NaN or an infinity",
                 *which != '\0' ? "one of its inputs" : "its input", which,
                 method_input_find(request->method, "X") >= 0 ? ", or A0 + X Y^T," : "");
    else if (info <= request->n && method_output_find(request->method, "ITERATIONS") >= 0)
        snprintf(text, size, "a row or a column of zeros");
    else
        snprintf(text, size, "singular, exact zero pivot at step %d of %lld", (int)info,
                 (long long)request->n);
}

/* Of the first matrix that failed the reason, and what may help it, or the first that did not
 * converge. */
static void say_first(const struct proto_request *request, const struct survey *survey,
                      char *reason, size_t reason_size, char *remedy, size_t remedy_size)
{
    struct unconverged said = {"", ""};
    if (survey->infos[SURVEY_NOT_CONVERGED] > 0)
        say_unconverged(request, survey, &said);
    if (survey->bad[0].info > request->n) {
        snprintf(reason, reason_size, "%s", said.reason);
        snprintf(remedy, remedy_size, "%s", said.remedy);
        return;
    }
    say_reason(survey->bad[0].info, request, reason, reason_size);
    if (said.reason[0] != '\0')
        snprintf(remedy, remedy_size, " Matrix %lld: %s.%s", (long long)survey->unconverged,
                 said.reason, said.remedy);
}

/* A method without an inverse answers with factors, whatever they are. Matrices are counted from
 * 0, steps from 1: the word before a number says which. */
void handlers__survey_explain(const struct proto_request *request, const struct survey *survey,
                              char *text, size_t size)
{
    assert(survey->failed > 0);
    long long batch = request->batch, failed = survey->failed, first = survey->bad[0].index;
    bool inverts = method_output_find(request->method, "INVERSE") >= 0;
    bool converges = survey->infos[SURVEY_NOT_CONVERGED] == 0;
    char reason[160], remedy[416] = "", of[40] = "";
    say_first(request, survey, reason, sizeof reason, remedy, sizeof remedy);
    if (batch > 1)
        snprintf(of, sizeof of, " (of 0 to %lld)", batch - 1);
    if (failed > 1) {
        snprintf(text, size,
                 "%lld of %lld matrices could not be inverted, the first of them matrix %lld%s: "
                 "%s; \"matrices\" lists %s.%s on_singular=nan answers with %s.",
                 failed, batch, first, of, reason,
                 failed > survey->bad_count ? "the first hundred" : "them", remedy,
                 !inverts    ? "the complete factors"
                 : converges ? "NaN in their places"
                             : "NaN in their places, or the best iterate");
        return;
    }
    snprintf(text, size, "Matrix %lld%s: %s.%s %s.", first, of, reason, remedy,
             !inverts    ? "on_singular=nan answers with the complete factors"
             : converges ? "Ask on_singular=nan for NaN in its place"
                         : "Ask on_singular=nan for the best iterate, and "
                           "outputs=inverse,iterations,residual for how near it came");
}
