/* handlers/v2.c: the Open Inference Protocol's endpoints: server, models, repository index, infer.
 *
 * Every method is a model with the one version "1". The documents about a method come from its
 * descriptor, through proto/.
 *
 * Threads: the exchange's loop.
 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "handlers/handlers_private.h"
#include "handlers/inference.h"
#include "handlers/stats.h"
#include "proto/proto.h"

#define INDEX_BODY_MAX 1024

/* ---- Which model ---- */

/* The model of the path; NULL when there is none: then the exchange is answered. */
static const struct handlers__model *model_of_path(struct exchange *x)
{
    struct handlers__path path;
    handlers__route_match(x->route->pattern, x->path, &path);
    const struct handlers__model *model =
        handlers__model_find(x->handlers, path.model, path.model_length);
    if (model == NULL) {
        struct failure failure;
        proto_no_method(ERROR_NOT_FOUND, path.model, path.model_length, &failure);
        handlers__fail(x, &failure);
        return NULL;
    }
    if (path.version != NULL && (path.version_length != 1 || path.version[0] != '1')) {
        handlers__fail_with(x, ERROR_NOT_FOUND, "This model has the version 1 alone.");
        return NULL;
    }
    return model;
}

/* ---- Documents ---- */

void handlers__v2_server(struct exchange *x)
{
    const char *version = x->handlers->services->version;
    struct text json;
    text_init(&json, HANDLERS_PAGE_MAX);
    text_puts(&json, "{\"name\":\"invertd\",\"version\":");
    text_json_string(&json, version, strlen(version));
    text_puts(&json, ",\"extensions\":[\"binary_tensor_data\",\"parameters\",\"statistics\","
                     "\"model_configuration\",\"model_repository\"]}");
    handlers__reply_document(x, HANDLERS_JSON, &json);
}

/* Answers with a document that a method's descriptor gives. */
static void answer_from_descriptor(struct exchange *x,
                                   void (*write)(const struct method *method, struct text *json))
{
    const struct handlers__model *model = model_of_path(x);
    if (model == NULL)
        return;
    struct text json;
    text_init(&json, HANDLERS_PAGE_MAX);
    write(model->method, &json);
    handlers__reply_document(x, HANDLERS_JSON, &json);
}

void handlers__v2_model(struct exchange *x)
{
    answer_from_descriptor(x, proto_v2_metadata);
}

void handlers__v2_model_config(struct exchange *x)
{
    answer_from_descriptor(x, proto_v2_config);
}

void handlers__v2_model_ready(struct exchange *x)
{
    const struct handlers__model *model = model_of_path(x);
    if (model == NULL)
        return;
    bool ready = handlers__ready(x->handlers);
    struct text json;
    text_init(&json, HANDLERS_PAGE_MAX);
    text_printf(&json, "{\"name\":\"%s\",\"ready\":%s}", model->method->name,
                ready ? "true" : "false");
    struct exchange_reply reply;
    handlers__reply_open(&reply, ready ? 200 : 503);
    handlers__reply_text(x, &reply, HANDLERS_JSON, &json);
}

static void answer_stats(struct exchange *x, const struct handlers__model *model)
{
    struct text json;
    text_init(&json, HANDLERS_PAGE_MAX);
    handlers__stats_document(x->handlers, model, &json);
    handlers__reply_document(x, HANDLERS_JSON, &json);
}

void handlers__v2_model_stats(struct exchange *x)
{
    const struct handlers__model *model = model_of_path(x);
    if (model != NULL)
        answer_stats(x, model);
}

void handlers__v2_stats(struct exchange *x)
{
    answer_stats(x, NULL);
}

/* ---- The repository's index ---- */

struct index_body {
    char text[INDEX_BODY_MAX];
};

void handlers__v2_index_begin(struct exchange *x)
{
    if (x->content_length <= 0)
        return;
    if (x->content_length > INDEX_BODY_MAX) {
        handlers__fail_with(x, ERROR_TOO_LARGE, "This body has at most 1024 bytes.");
        return;
    }
    struct index_body *body = malloc(sizeof *body);
    if (body == NULL) {
        handlers__fail_with(x, ERROR_FULL, "The service is out of memory; try again later.");
        return;
    }
    x->state = body;
    x->sink = (unsigned char *)body->text;
    x->sink_bytes = x->content_length;
    x->takes_body = true;
}

void handlers__v2_index_drop(struct exchange *x)
{
    free(x->state);
    x->state = NULL;
    x->sink = NULL;
    x->sink_bytes = 0;
    x->takes_body = false;
}

/* Reads what may be asked for: nothing, {} or {"ready":true|false}, white space anywhere between.
 * False when it is something else. */
static bool read_index_body(const char *body, int64_t length, bool *ready_alone)
{
    static const struct {
        const char *text;
        bool ready_alone;
    } known[] = {
        {"", false}, {"{}", false}, {"{\"ready\":false}", false}, {"{\"ready\":true}", true}};
    char plain[32];
    size_t used = 0;
    for (int64_t i = 0; i < length; i++) {
        if (body[i] != '\0' && strchr(" \t\r\n", body[i]) != NULL)
            continue;
        if (used == sizeof plain - 1)
            return false;
        plain[used++] = body[i];
    }
    plain[used] = '\0';
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i].text) == used && memcmp(known[i].text, plain, used) == 0) {
            *ready_alone = known[i].ready_alone;
            return true;
        }
    return false;
}

void handlers__v2_index_run(struct exchange *x)
{
    bool ready_alone = false;
    struct index_body *body = x->state;
    if (body != NULL && !read_index_body(body->text, x->body_bytes, &ready_alone)) {
        handlers__v2_index_drop(x);
        handlers__fail_with(x, ERROR_MALFORMED,
                            "The body may be empty, {}, {\"ready\":true} or {\"ready\":false}.");
        return;
    }
    handlers__v2_index_drop(x);
    bool ready = handlers__ready(x->handlers);
    struct text json;
    text_init(&json, HANDLERS_PAGE_MAX);
    text_puts(&json, "[");
    for (int i = 0; i < x->handlers->model_count && (ready || !ready_alone); i++)
        text_printf(&json,
                    "%s{\"name\":\"%s\",\"version\":\"1\",\"state\":\"%s\",\"reason\":\"%s\"}",
                    i == 0 ? "" : ",", x->handlers->models[i].method->name,
                    ready ? "READY" : "UNAVAILABLE", ready ? "" : "the service is not ready");
    text_puts(&json, "]");
    handlers__reply_document(x, HANDLERS_JSON, &json);
}

/* ---- Infer ---- */

/* Inference-Header-Content-Length: where the JSON ends and the tensors begin. */
static enum error read_head(struct exchange *x, struct item_head *head, struct failure *failure)
{
    head->format = PROTO_FORMAT_V2;
    const char *value = exchange_header(x, "Inference-Header-Content-Length");
    if (value == NULL && x->content_length == 0)
        return failure_set(failure, ERROR_MALFORMED,
                           "The body is empty; send JSON, {\"inputs\": [...]}.");
    if (value == NULL)
        return ERROR_NONE;
    size_t digits = strspn(value, "0123456789");
    if (digits == 0 || value[digits] != '\0' || digits > 18)
        return failure_set(failure, ERROR_MALFORMED,
                           "Inference-Header-Content-Length must be a count of bytes.");
    head->json_bytes = strtoll(value, NULL, 10);
    if (head->json_bytes == 0)
        head->format = PROTO_FORMAT_RAW;
    if (head->coding == PROTO_CODING_IDENTITY && head->json_bytes > x->content_length)
        return failure_set(failure, ERROR_MALFORMED,
                           "Inference-Header-Content-Length is %lld, but the body has %lld bytes.",
                           (long long)head->json_bytes, (long long)x->content_length);
    return ERROR_NONE;
}

struct stray_search {
    const struct proto_request *request;
    enum error error;
    struct failure *failure;
};

static bool find_stray(void *context, const char *name, const char *value)
{
    struct stray_search *search = context;
    (void)value;
    search->error = proto_request_stray(search->request, name, search->failure);
    return search->error == ERROR_NONE;
}

/* The query has no options. */
static enum error decoded(struct inference *inference, struct failure *failure)
{
    struct stray_search search = {.request = handlers__item_request(inference->item),
                                  .failure = failure};
    inference->x->door->query(inference->x, find_stray, &search);
    return search.error;
}

static void answer(struct inference *inference)
{
    struct exchange_reply reply;
    handlers__reply_open(&reply, 200);
    handlers__inference_send(inference, &reply);
}

static const struct inference_kind infer_kind = {
    .read_head = read_head, .decoded = decoded, .answer = answer};

void handlers__v2_infer_begin(struct exchange *x)
{
    const struct handlers__model *model = model_of_path(x);
    if (model != NULL)
        handlers__inference_begin(x, &infer_kind, model->method);
}
