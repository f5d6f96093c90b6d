/* v1.c: /v1: matrices from curl, NumPy and people.
 *
 * The body's format comes from Content-Type, or from its first bytes when curl or nobody named
 * one. Options stand in the query or in a JSON body; they are read after the body is decoded,
 * because a JSON body may be what names the method. The answer has the body's format unless Accept
 * asks for another.
 *
 * Threads: the exchange's loop, but refuses(), which reads the inference alone.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "handlers/accept.h"
#include "handlers/handlers_private.h"
#include "handlers/inference/inference.h"
#include "proto/proto.h"

/* ---- The head ---- */

/* Media types of bodies. UNKNOWN: told by the first bytes. */
static const struct {
    const char *name;
    enum proto_format format;
} body_types[] = {
    {"application/x-npy", PROTO_FORMAT_NPY},
    {"application/x-npz", PROTO_FORMAT_NPZ},
    {"application/json", PROTO_FORMAT_JSON},
    {"application/x-www-form-urlencoded", PROTO_FORMAT_UNKNOWN}, /* curl's default */
    {"", PROTO_FORMAT_UNKNOWN},
};

static enum error read_content_type(const char *value, enum proto_format *format,
                                    struct failure *failure)
{
    if (value == NULL)
        return ERROR_NONE;
    size_t length = strcspn(value, "; \t");
    for (size_t i = 0; i < sizeof body_types / sizeof body_types[0]; i++) {
        if (strlen(body_types[i].name) != length ||
            strncasecmp(body_types[i].name, value, length) != 0)
            continue;
        *format = body_types[i].format;
        return ERROR_NONE;
    }
    static const char raw[] = "application/octet-stream";
    bool is_raw = length == sizeof raw - 1 && strncasecmp(raw, value, length) == 0;
    return failure_set(failure, ERROR_UNSUPPORTED_MEDIA,
                       "Send application/x-npy, application/x-npz or application/json, or no "
                       "Content-Type.%s",
                       is_raw ? " Raw binary is taken by /v2/models/METHOD/infer." : "");
}

struct method_search {
    const struct handlers *handlers;
    const struct handlers__model *model;
    enum error error;
    struct failure *failure;
};

static bool find_method(void *context, const char *name, const char *value)
{
    struct method_search *search = context;
    if (strcmp(name, "method") != 0)
        return true;
    if (search->model != NULL) {
        search->error = failure_set(search->failure, ERROR_BAD_OPTION,
                                    "The query names the method twice; name it once.");
        return false;
    }
    search->model = handlers__model_find(search->handlers, value, strlen(value));
    if (search->model != NULL)
        return true;
    search->error = proto_no_method(ERROR_BAD_OPTION, value, strlen(value), search->failure);
    return false;
}

static enum error read_head(struct exchange *x, struct inference_head *head,
                            struct failure *failure)
{
    if (x->content_length == 0)
        return failure_set(failure, ERROR_MALFORMED,
                           "The body is empty; send an .npy or .npz file, or JSON, as in "
                           "{\"matrix\": [[4, 7], [2, 6]]}.");
    enum error error =
        read_content_type(exchange_header(x, "Content-Type"), &head->format, failure);
    if (error != ERROR_NONE)
        return error;
    struct method_search search = {.handlers = x->handlers, .failure = failure};
    x->door->query(x, find_method, &search);
    head->model = search.model;
    return search.error;
}

/* ---- After decoding ---- */

struct option_reader {
    struct proto_request *request;
    enum error error;
    struct failure *failure;
};

static bool read_option(void *context, const char *name, const char *value)
{
    struct option_reader *reader = context;
    if (strcmp(name, "method") != 0)
        reader->error = proto_request_option(reader->request, name, value, reader->failure);
    return reader->error == ERROR_NONE;
}

static enum error decoded(struct inference *inference, struct failure *failure)
{
    struct proto_request *request = &inference->request;
    struct option_reader reader = {.request = request, .failure = failure};
    inference->x->door->query(inference->x, read_option, &reader);
    if (reader.error != ERROR_NONE)
        return reader.error;
    enum error error = proto_request_fit(request, failure);
    if (error != ERROR_NONE)
        return error;
    enum proto_format format = request->format;
    if (!handlers__accept_format(exchange_header(inference->x, "Accept"), &format))
        return failure_set(failure, ERROR_NOT_ACCEPTABLE,
                           "Answers are application/x-npy, application/x-npz or "
                           "application/json; Accept allows none of them.");
    request->format = format;
    request->want_npz = format == PROTO_FORMAT_NPZ;
    return ERROR_NONE;
}

/* ---- The answer ---- */

static bool refuses(const struct inference *inference)
{
    return inference->survey.failed > 0 && !inference->request.nan_on_singular;
}

/* What the Invertd-* fields and Server-Timing say; lent to a reply until it is sent. */
struct report {
    char rcond[NUMBER_TEXT_MAX + 1], info[NUMBER_TEXT_MAX + 1];
    char kernel[ENGINE_KERNEL_NAME_MAX];
    char timing[96];
};

static double milliseconds(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) * 1e-6 : 0;
}

static void write_rcond(const struct inference *inference, char *text)
{
    double rcond = inference->survey.rcond;
    size_t length = 3;
    if (isnan(rcond))
        memcpy(text, "nan", length);
    else if (inference->request.precision == PRECISION_FP32)
        length = number_write_f32(text, (float)rcond);
    else
        length = number_write_f64(text, rcond);
    text[length] = '\0';
}

/* The engine's words; what is not printable does not go into a header. */
static void write_kernel(const struct queue_item *item, char *text)
{
    size_t length = strnlen(item->kernel, ENGINE_KERNEL_NAME_MAX - 1);
    for (size_t i = 0; i < length; i++)
        text[i] = item->kernel[i] >= ' ' && item->kernel[i] <= '~' ? item->kernel[i] : '?';
    text[length] = '\0';
}

static void add_report(const struct inference *inference, struct report *report,
                       struct exchange_reply *reply)
{
    const struct inference_survey *survey = &inference->survey;
    const struct queue_item *item = &inference->item;
    handlers__reply_field(reply, "Invertd-Method",
                          survey->algorithm == METHOD_ALGORITHM_COUNT
                              ? "mixed"
                              : method_algorithm_name(survey->algorithm));
    if (inference->head.model->rcond >= 0 && inference->request.batch > 0) {
        write_rcond(inference, report->rcond);
        handlers__reply_field(reply, "Invertd-Rcond", report->rcond);
    }
    int64_t not_good = inference->request.batch - survey->infos[STATS_GOOD];
    report->info[number_write_i64(report->info, not_good)] = '\0';
    handlers__reply_field(reply, "Invertd-Info", report->info);
    write_kernel(item, report->kernel);
    handlers__reply_field(reply, "Invertd-Kernel", report->kernel);
    snprintf(report->timing, sizeof report->timing, "queue;dur=%.3f, compute;dur=%.3f",
             milliseconds(item->queued_ns, item->started_ns), (double)item->compute_ns * 1e-6);
    handlers__reply_field(reply, "Server-Timing", report->timing);
}

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

/* Where no start led to an inverse, though steps were left. All starts share them. */
static const char *remedy_without_start(const struct proto_request *request, int64_t most)
{
    const int steps = method_option_find(request->method, "max_iterations");
    const int initial = method_option_find(request->method, "initial");
    if (most < request->method->options[steps].initial)
        return " Raise max_iterations, which all starts share.";
    if (initial >= 0 && request->options[initial] != request->method->options[initial].initial)
        return " Take initial=auto, or method=lu, which tells whether the matrix is singular.";
    if ((double)most < request->method->options[steps].max)
        return " The matrix may be singular: method=lu tells. If it is not, raise max_iterations, "
               "which all starts share.";
    return " The matrix may be singular: method=lu tells.";
}

/* By ITERATIONS and, where it was asked for, RESIDUAL: below 1/2 it is that of an inverse. Without
 * them nothing but INFO is told. */
static void say_unconverged(const struct inference *inference, struct unconverged *said)
{
    static const char failed[] = "the iteration did not converge";
    const struct proto_request *request = &inference->request;
    const int limit = method_option_find(request->method, "max_iterations");
    const double tolerance = tolerance_of(request), residual = inference->survey.residual;
    const long long steps = inference->survey.iterations;
    const long long most = limit >= 0 ? request->options[limit] : 0;
    const bool is_told = !isnan(residual), is_near = residual < 0.5;
    char at[40] = "";
    const char *remedy = "";
    if (is_told)
        snprintf(at, sizeof at, " (RESIDUAL %.2g)", residual);
    if (steps < 0 || limit < 0) {
        snprintf(said->reason, sizeof said->reason, "%s", failed);
    } else if (steps >= most) {
        snprintf(said->reason, sizeof said->reason,
                 "%s: it took all %lld steps that max_iterations allows%s", failed, most, at);
        remedy = tolerance > 0 && is_near ? " Raise max_iterations, or tolerance above RESIDUAL."
                 : (double)most < request->method->options[limit].max
                     ? " Raise max_iterations."
                     : " The matrix may be singular: method=lu tells.";
    } else if (is_near && tolerance == 0) {
        snprintf(said->reason, sizeof said->reason,
                 "%s: RESIDUAL came to %.4g, above what lu leaves", failed, residual);
        remedy = " Take method=lu.";
    } else if (is_near) {
        snprintf(said->reason, sizeof said->reason,
                 "%s: RESIDUAL stood still at %.4g, above tolerance=%.4g", failed, residual,
                 tolerance);
        remedy = " Raise tolerance above that, or leave it out.";
    } else if (tolerance > 0 && !is_told) {
        snprintf(said->reason, sizeof said->reason,
                 "%s: it ended after %lld of at most %lld steps, above tolerance=%.2g", failed,
                 steps, most, tolerance);
        remedy = " Where outputs=residual is below 0.5, rounding allows no less, and tolerance "
                 "has to be above it; else method=lu tells whether the matrix is singular.";
    } else {
        snprintf(said->reason, sizeof said->reason,
                 "%s: no start led to an inverse, the best of them ended after %lld of at most "
                 "%lld steps%s",
                 failed, steps, most, at);
        remedy = remedy_without_start(request, most);
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
static void say_first(const struct inference *inference, char *reason, size_t reason_size,
                      char *remedy, size_t remedy_size)
{
    const struct inference_survey *survey = &inference->survey;
    struct unconverged said = {"", ""};
    if (survey->infos[STATS_NOT_CONVERGED] > 0)
        say_unconverged(inference, &said);
    if (survey->bad[0].info > inference->request.n) {
        snprintf(reason, reason_size, "%s", said.reason);
        snprintf(remedy, remedy_size, "%s", said.remedy);
        return;
    }
    say_reason(survey->bad[0].info, &inference->request, reason, reason_size);
    if (said.reason[0] != '\0')
        snprintf(remedy, remedy_size, " Matrix %lld: %s.%s", (long long)survey->unconverged,
                 said.reason, said.remedy);
}

/* The detail of a 422. A method without an inverse answers with factors, whatever they are.
 * Matrices are counted from 0, steps from 1: what stands beside a number tells. */
static void say_what_failed(const struct inference *inference, char *text, size_t size)
{
    const struct inference_survey *survey = &inference->survey;
    const struct proto_request *request = &inference->request;
    long long batch = request->batch, failed = survey->failed, first = survey->bad[0].index;
    bool inverts = method_output_find(request->method, "INVERSE") >= 0;
    bool converges = survey->infos[STATS_NOT_CONVERGED] == 0;
    char reason[160], remedy[416] = "", of[40] = "";
    say_first(inference, reason, sizeof reason, remedy, sizeof remedy);
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

/* 422: which matrices have no inverse, the first hundred of them by index. */
static void answer_not_invertible(struct inference *inference, struct exchange_reply *reply)
{
    const struct inference_survey *survey = &inference->survey;
    char detail[1024];
    say_what_failed(inference, detail, sizeof detail);
    struct text text;
    text_init(&text, HANDLERS_PAGE_MAX);
    handlers__problem_open(&text, inference->x, ERROR_NOT_INVERTIBLE, detail);
    text_printf(&text, ",\"count\":%lld,\"matrices\":[", (long long)survey->failed);
    for (int i = 0; i < survey->bad_count; i++)
        text_printf(&text, "%s{\"index\":%lld,\"info\":%d}", i == 0 ? "" : ",",
                    (long long)survey->bad[i].index, (int)survey->bad[i].info);
    text_puts(&text, "]}");
    handlers__inference_send_text(inference, reply, HANDLERS_PROBLEM, &text);
}

static void answer(struct inference *inference)
{
    struct exchange_reply reply;
    struct report report;
    handlers__reply_open(&reply,
                         inference->refused ? error_http_status(ERROR_NOT_INVERTIBLE) : 200);
    add_report(inference, &report, &reply);
    if (inference->refused)
        answer_not_invertible(inference, &reply);
    else
        handlers__inference_send(inference, &reply);
}

static const struct inference_kind invert_kind = {
    .read_head = read_head, .decoded = decoded, .refuses = refuses, .answer = answer};

void handlers__v1_invert_begin(struct exchange *x)
{
    handlers__inference_begin(x, &invert_kind, NULL);
}

void handlers__v1_methods(struct exchange *x)
{
    struct text json;
    text_init(&json, HANDLERS_PAGE_MAX);
    proto_methods_document(&json);
    handlers__reply_document(x, HANDLERS_JSON, &json);
}
