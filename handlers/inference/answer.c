/* answer.c: from outputs to the reply.
 *
 * INFO is looked through once for the metrics and, on /v1, for the status and the headers. Short
 * answers are encoded on the loop; long text, checksums, compression and many INFOs in the
 * pool. Compression is asked for by Accept-Encoding and done when the answer is long enough, and
 * when it is binary only where a first piece shows that it pays; when
 * there is no memory for it, the answer goes out as it is.
 *
 * Threads: see inference.h; functions named *_away run in the pool.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "handlers/inference/inference.h"

#define LOOP_MATRICES_MAX 16384 /* whose INFO is read on the loop */

/* ---- The survey ---- */

static enum stats_info info_kind(int32_t info, int64_t n)
{
    if (info == 0)
        return STATS_GOOD;
    if (info < 0)
        return STATS_NONFINITE;
    if (info <= n)
        return STATS_SINGULAR;
    return info == n + 1 ? STATS_ILL_CONDITIONED : STATS_NOT_CONVERGED;
}

static void survey_infos(struct inference *inference, const int32_t *infos)
{
    const struct proto_request *request = &inference->request;
    struct inference_survey *survey = &inference->survey;
    for (int64_t b = 0; b < request->batch; b++) {
        int32_t info = infos[b];
        enum stats_info kind = info_kind(info, request->n);
        survey->infos[kind]++;
        if (kind == STATS_GOOD || kind == STATS_ILL_CONDITIONED)
            continue;
        survey->failed++;
        if (survey->bad_count < INFERENCE_BAD_MAX) {
            survey->bad[survey->bad_count].index = b;
            survey->bad[survey->bad_count++].info = info;
        }
    }
}

/* Number b of an output of single numbers; NaN where it is not there. */
static double output_number(const struct inference *inference, const char *name, int64_t b)
{
    const struct proto_request *request = &inference->request;
    const int output = method_output_find(request->method, name);
    const void *numbers = output >= 0 ? inference->outputs[output] : NULL;
    if (numbers == NULL)
        return NAN;
    if (request->method->outputs[output].kind == METHOD_INT32)
        return ((const int32_t *)numbers)[b];
    return request->precision == PRECISION_FP32 ? ((const float *)numbers)[b]
                                                : ((const double *)numbers)[b];
}

/* How far the first that did not converge has come. */
static void survey_unconverged(struct inference *inference, const int32_t *infos)
{
    const struct proto_request *request = &inference->request;
    struct inference_survey *survey = &inference->survey;
    int64_t b = 0;
    while (infos[b] <= request->n + 1)
        b++;
    const double iterations = output_number(inference, "ITERATIONS", b);
    survey->unconverged = b;
    survey->iterations = isnan(iterations) ? -1 : (int32_t)iterations;
    survey->residual = output_number(inference, "RESIDUAL", b);
}

/* fmin passes over NaN. */
static double min_rcond(const struct proto_request *request, const void *rconds)
{
    double least = NAN;
    for (int64_t b = 0; b < request->batch; b++)
        least = fmin(least, request->precision == PRECISION_FP32 ? ((const float *)rconds)[b]
                                                                 : ((const double *)rconds)[b]);
    return least;
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

static void survey_all(struct inference *inference)
{
    const struct handlers__model *model = inference->head.model;
    struct inference_survey *survey = &inference->survey;
    memset(survey, 0, offsetof(struct inference_survey, bad));
    if (model->info >= 0)
        survey_infos(inference, inference->outputs[model->info]);
    if (inference->kind->refuses == NULL)
        return; /* and no headers to make */
    const struct proto_request *request = &inference->request;
    if (survey->infos[STATS_NOT_CONVERGED] > 0)
        survey_unconverged(inference, inference->outputs[model->info]);
    survey->rcond = NAN;
    if (model->rcond >= 0)
        survey->rcond = min_rcond(request, inference->outputs[model->rcond]);
    survey->algorithm =
        request->n == 0 ? METHOD_ALGORITHM_NONE : (int)method_algorithm_of_all(model->method);
    if (model->algorithm >= 0)
        survey->algorithm = common_algorithm(request, inference->outputs[model->algorithm]);
}

/* ---- Encoding ---- */

static enum error encode_format(struct inference *inference)
{
    const struct proto_request *request = &inference->request;
    struct proto_space *space = &inference->memory.space;
    struct proto_answer *answer = &inference->answer;
    struct failure *failure = &inference->failure;
    switch (request->format) {
    case PROTO_FORMAT_V2:
    case PROTO_FORMAT_RAW:
        return proto_v2_encode(request, inference->outputs, space, answer, failure);
    case PROTO_FORMAT_JSON:
        return proto_json_encode(request, inference->outputs, space, answer, failure);
    default:
        break;
    }
    if (request->want_npz)
        return proto_npz_encode(request, inference->outputs, space, answer, failure);
    return proto_npy_encode(request, inference->outputs, space, answer, failure);
}

/* Any thread. */
static enum error encode(struct inference *inference)
{
    const struct handlers_limits *limits = &inference->handlers->services->limits;
    survey_all(inference);
    if (inference->kind->refuses != NULL && inference->kind->refuses(inference)) {
        inference->refused = true;
        return ERROR_NONE;
    }
    enum error error = encode_format(inference);
    if (error != ERROR_NONE || inference->answer_coding == PROTO_CODING_IDENTITY ||
        inference->answer.total_bytes < limits->compress_min_bytes)
        return error;
    struct proto_space *space = &inference->memory.space;
    bool text = strcmp(inference->answer.content_type, "application/json") == 0;
    if (!text && !proto_deflate_pays(limits->compress_level, space, &inference->answer))
        return ERROR_NONE;
    /* Without memory for it the answer stays as it is. */
    struct failure ignored;
    inference->deflated = proto_deflate(inference->answer_coding, limits->compress_level, space,
                                        &inference->answer, &ignored) == ERROR_NONE;
    return ERROR_NONE;
}

/* On the loop; inference->status says how encoding went. */
static void encoded(struct inference *inference)
{
    const struct inference_survey *survey = &inference->survey;
    if (inference->status == ERROR_FULL)
        handlers__memory_failure(&inference->memory, &inference->failure);
    if (inference->status != ERROR_NONE) {
        handlers__inference_refuse(inference, &inference->failure);
        return;
    }
    handlers__stats_inversions(inference->stats, inference->request.precision, survey->infos);
    inference->kind->answer(inference);
}

static void on_encoded(struct letter *letter)
{
    struct inference *inference = inference_of_letter(letter);
    if (handlers__inference_arrive(inference))
        encoded(inference);
}

static void encode_away(struct workers_task *task)
{
    struct inference *inference = inference_of_task(task);
    inference->status = encode(inference);
    handlers__inference_come_home(inference, on_encoded);
}

void handlers__inference_answer(struct inference *inference)
{
    const struct handlers_limits *limits = &inference->handlers->services->limits;
    inference->encoding_ns = clock_now_ns();
    enum inference_state state = INFERENCE_ENCODING;
    if (inference->answer_max_bytes >= limits->compress_min_bytes) {
        inference->answer_coding =
            proto_coding_accepted(exchange_header(inference->x, "Accept-Encoding"));
        if (inference->answer_coding != PROTO_CODING_IDENTITY)
            state = INFERENCE_DEFLATING;
    }
    bool is_long =
        proto_answer_is_long(&inference->request) || inference->request.batch > LOOP_MATRICES_MAX;
    if (is_long || state == INFERENCE_DEFLATING) {
        if (handlers__inference_to_pool(inference, state, encode_away) == ERROR_NONE)
            return;
        if (is_long) {
            failure_set(&inference->failure, ERROR_FULL,
                        "Too many answers wait to be encoded; try again later.");
            handlers__inference_refuse(inference, &inference->failure);
            return;
        }
        inference->answer_coding = PROTO_CODING_IDENTITY; /* a full pool compresses nothing */
    }
    handlers__inference_move(inference, INFERENCE_ENCODING);
    inference->status = encode(inference);
    encoded(inference);
}

/* ---- Sending ---- */

static uint64_t between(uint64_t from_ns, uint64_t to_ns)
{
    return from_ns != 0 && to_ns > from_ns ? to_ns - from_ns : 0;
}

static void count_success(struct inference *inference)
{
    const struct queue_item *item = &inference->item;
    uint64_t now_ns = clock_now_ns();
    uint64_t decoded_ns = item->queued_ns != 0 ? item->queued_ns : inference->encoding_ns;
    struct stats_times times = {
        .total_ns = between(inference->arrived_ns, now_ns),
        .queue_ns = between(item->queued_ns, item->started_ns),
        .input_ns = between(inference->decoding_ns, decoded_ns),
        .infer_ns = between(item->started_ns, item->finished_ns),
        .output_ns = between(inference->encoding_ns, now_ns),
    };
    handlers__stats_success(inference->stats, &times, inference->request.batch);
}

/* The reply's last byte has gone. */
static void release_reply(void *context)
{
    handlers__inference_release(context);
}

void handlers__inference_send(struct inference *inference, struct exchange_reply *reply)
{
    const struct proto_answer *answer = &inference->answer;
    char json_bytes[NUMBER_TEXT_MAX + 1];
    handlers__reply_field(reply, "Content-Type", answer->content_type);
    if (answer->json_bytes >= 0) {
        json_bytes[number_write_i64(json_bytes, answer->json_bytes)] = '\0';
        handlers__reply_field(reply, "Inference-Header-Content-Length", json_bytes);
    }
    if (inference->deflated)
        handlers__reply_field(reply, "Content-Encoding",
                              proto_coding_name(inference->answer_coding));
    /* Also when it is not compressed: another client's might be. */
    handlers__reply_field(reply, "Vary", "Accept-Encoding");
    for (int i = 0; i < answer->segment_count; i++)
        handlers__reply_segment(reply, answer->segments[i].iov_base, answer->segments[i].iov_len);
    reply->release = release_reply;
    reply->context = inference;
    count_success(inference);
    handlers__inference_move(inference, INFERENCE_ANSWERED);
    exchange_answer(handlers__inference_detach(inference), reply);
}

void handlers__inference_send_text(struct inference *inference, struct exchange_reply *reply,
                                   const char *content_type, struct text *text)
{
    uint64_t now_ns = clock_now_ns();
    handlers__stats_failure(inference->stats, between(inference->arrived_ns, now_ns));
    handlers__reply_text(handlers__inference_detach(inference), reply, content_type, text);
    handlers__inference_release(inference);
}
