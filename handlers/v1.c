/* handlers/v1.c: /v1: matrices from curl, NumPy and people.
 *
 * The body's format comes from Content-Type, or from its first bytes when there is none,
 * or curl's default. Options stand in the query or in a JSON body; they are read after the body is
 * decoded, because a JSON body may be what names the method. The answer has the body's format
 * unless Accept asks for another.
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
#include "handlers/inference.h"
#include "proto/proto.h"

/* ---- The head ---- */

/* Media types of bodies. UNKNOWN: known by the first bytes. */
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
    static const char form[] = "multipart/form-data";
    const char *hint = "";
    if (length == sizeof raw - 1 && strncasecmp(raw, value, length) == 0)
        hint = " Raw binary is taken by /v2/models/METHOD/infer.";
    else if (length == sizeof form - 1 && strncasecmp(form, value, length) == 0)
        hint = " Send the file itself, not a form with it: curl --data-binary @FILE.";
    return failure_set(failure, ERROR_UNSUPPORTED_MEDIA,
                       "Send application/x-npy, application/x-npz or application/json, or no "
                       "Content-Type.%s",
                       hint);
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

static enum error read_head(struct exchange *x, struct item_head *head, struct failure *failure)
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
    head->method = search.model != NULL ? search.model->method : NULL;
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
    if (strcmp(name, "method") != 0 && strcmp(name, "callback") != 0) /* read by now */
        reader->error = proto_request_option(reader->request, name, value, reader->failure);
    return reader->error == ERROR_NONE;
}

static enum error decoded(struct inference *inference, struct failure *failure)
{
    struct proto_request *request = handlers__item_request(inference->item);
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

static bool refuses(const struct proto_request *request, const struct survey *survey)
{
    return survey->failed > 0 && !request->nan_on_singular;
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

static void write_rcond(double rcond, enum precision precision, char *text)
{
    size_t length = 3;
    if (isnan(rcond))
        memcpy(text, "nan", length);
    else if (precision == PRECISION_FP32)
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
    const struct proto_request *request = handlers__item_request(inference->item);
    const struct survey *survey = &inference->survey;
    const struct queue_item *item = handlers__item_result(inference->item);
    handlers__reply_field(reply, "Invertd-Method",
                          survey->algorithm == METHOD_ALGORITHM_COUNT
                              ? "mixed"
                              : method_algorithm_name(survey->algorithm));
    if (method_output_find(request->method, "RCOND") >= 0 && request->batch > 0) {
        write_rcond(survey->rcond, request->precision, report->rcond);
        handlers__reply_field(reply, "Invertd-Rcond", report->rcond);
    }
    int64_t not_good = request->batch - survey->infos[SURVEY_GOOD];
    report->info[number_write_i64(report->info, not_good)] = '\0';
    handlers__reply_field(reply, "Invertd-Info", report->info);
    write_kernel(item, report->kernel);
    handlers__reply_field(reply, "Invertd-Kernel", report->kernel);
    snprintf(report->timing, sizeof report->timing, "queue;dur=%.3f, compute;dur=%.3f",
             milliseconds(item->queued_ns, item->started_ns), (double)item->compute_ns * 1e-6);
    handlers__reply_field(reply, "Server-Timing", report->timing);
}

/* 422: which matrices have no inverse, the first hundred of them by index. */
static void answer_not_invertible(struct inference *inference, struct exchange_reply *reply)
{
    const struct survey *survey = &inference->survey;
    char detail[1024];
    handlers__survey_explain(handlers__item_request(inference->item), survey, detail,
                             sizeof detail);
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

const struct inference_kind handlers__v1_kind = {.has_jobs = true,
                                                 .read_head = read_head,
                                                 .decoded = decoded,
                                                 .refuses = refuses,
                                                 .answer = answer};

void handlers__v1_invert_begin(struct exchange *x)
{
    handlers__inference_begin(x, &handlers__v1_kind, NULL);
}

void handlers__v1_methods(struct exchange *x)
{
    struct text json;
    text_init(&json, HANDLERS_PAGE_MAX);
    proto_methods_document(&json);
    handlers__reply_document(x, HANDLERS_JSON, &json);
}
