/* proto/answer.c: what the encoders share: shapes of outputs, text of their values, segments.
 *
 * Text goes into memory whose size was bounded before, through a writer that asserts the bound. Any
 * thread.
 */
#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "proto/proto_private.h"

#define LONG_ANSWER_BYTES (16 << 10)

/* Longest texts: -1.7976931348623157e+308, -1.17549435e-38, -2147483648; and a comma each. */
#define TEXT_MAX_F64 25
#define TEXT_MAX_F32 16
#define TEXT_MAX_I32 12

struct proto__shape proto__output_shape(const struct proto_request *request,
                                        const struct method_tensor *tensor)
{
    struct proto__shape shape;
    shape.rank = request->lead_rank + tensor->rank;
    assert(request->lead_rank <= PROTO_RANK_MAX && tensor->rank <= METHOD_RANK_MAX);
    memcpy(shape.dims, request->lead, (size_t)request->lead_rank * sizeof shape.dims[0]);
    for (int d = 0; d < tensor->rank; d++)
        shape.dims[request->lead_rank + d] =
            method_dim_length(tensor->dims[d], request->n, request->m, request->options);
    bool fits = proto__shape_count(shape.rank, shape.dims, &shape.count);
    assert(fits); /* proto__bind has seen it */
    return shape;
}

/* Elements of the whole tensor. */
static int64_t output_count(const struct proto_request *request, const struct method_tensor *tensor)
{
    int64_t count = request->batch;
    for (int d = 0; d < tensor->rank; d++)
        count *= method_dim_length(tensor->dims[d], request->n, request->m, request->options);
    return count; /* bind has seen it fit */
}

int64_t proto__output_bytes(const struct proto_request *request, const struct method_tensor *tensor)
{
    int64_t element = tensor->kind == METHOD_REAL ? precision_bytes(request->precision) : 4;
    return output_count(request, tensor) * element; /* and this */
}

const void *proto__output_data(const struct proto_request *request,
                               void *const outputs[METHOD_OUTPUTS_MAX], int index)
{
    assert(outputs[index] != NULL || output_count(request, &request->method->outputs[index]) == 0);
    return outputs[index];
}

const char *proto__datatype(const struct method_tensor *tensor, enum precision precision)
{
    switch (tensor->kind) {
    case METHOD_REAL:
        return precision_name(precision);
    case METHOD_INT32:
        return "INT32";
    case METHOD_ALGORITHM:
        break;
    }
    return "BYTES";
}

size_t proto__algorithm_name_max(void)
{
    size_t max = 0;
    for (int algorithm = 0; algorithm < METHOD_ALGORITHM_COUNT; algorithm++) {
        size_t length = strlen(method_algorithm_name(algorithm));
        max = length > max ? length : max;
    }
    return max;
}

/* ---- The writer ---- */

void proto__write(struct proto__writer *writer, const void *data, size_t length)
{
    assert(length <= (size_t)(writer->end - writer->at));
    memcpy(writer->at, data, length);
    writer->at += length;
}

void proto__write_text(struct proto__writer *writer, const char *string)
{
    proto__write(writer, string, strlen(string));
}

void proto__write_lower(struct proto__writer *writer, const char *name)
{
    proto__write_text(writer, proto__lower_words(name).text);
}

void proto__write_int(struct proto__writer *writer, int64_t value)
{
    char text[NUMBER_TEXT_MAX];
    size_t length = number_write_i64(text, value);
    proto__write(writer, text, length);
}

void proto__write_json_string(struct proto__writer *writer, const char *string)
{
    struct text json;
    assert(writer->end > writer->at);
    text_init_fixed(&json, writer->at, (size_t)(writer->end - writer->at));
    text_json_string(&json, string, strlen(string));
    assert(!json.failed);
    writer->at += json.length;
}

int64_t proto__value_text_max(const struct method_tensor *tensor, enum precision precision)
{
    switch (tensor->kind) {
    case METHOD_REAL:
        return precision == PRECISION_FP32 ? TEXT_MAX_F32 : TEXT_MAX_F64;
    case METHOD_INT32:
        return TEXT_MAX_I32;
    case METHOD_ALGORITHM:
        break;
    }
    return (int64_t)proto__algorithm_name_max() + 3; /* quotes and comma */
}

static void write_value(struct proto__writer *writer, const struct method_tensor *tensor,
                        enum precision precision, const void *data, int64_t index)
{
    char text[NUMBER_TEXT_MAX];
    size_t length = 0;
    if (tensor->kind == METHOD_ALGORITHM) {
        proto__write(writer, "\"", 1);
        proto__write_text(writer, method_algorithm_name(((const int32_t *)data)[index]));
        proto__write(writer, "\"", 1);
        return;
    }
    if (tensor->kind == METHOD_INT32)
        length = number_write_i64(text, ((const int32_t *)data)[index]);
    else if (precision == PRECISION_FP32)
        length = number_write_f32(text, ((const float *)data)[index]);
    else
        length = number_write_f64(text, ((const double *)data)[index]);
    proto__write(writer, text, length);
}

void proto__write_values(struct proto__writer *writer, const struct method_tensor *tensor,
                         enum precision precision, const void *data, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (i > 0)
            proto__write(writer, ",", 1);
        write_value(writer, tensor, precision, data, first + i);
    }
}

/* ---- Answers ---- */

void proto__answer_init(struct proto_answer *answer, const char *content_type)
{
    *answer = (struct proto_answer){.content_type = content_type, .json_bytes = -1};
}

void proto__answer_add(struct proto_answer *answer, const void *data, int64_t bytes)
{
    if (bytes == 0)
        return;
    assert(answer->segment_count < PROTO_SEGMENTS_MAX);
    answer->segments[answer->segment_count++] =
        (struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = (size_t)bytes};
    answer->total_bytes += bytes;
}

int64_t proto_answer_bound(const struct proto_request *request)
{
    switch (request->format) {
    case PROTO_FORMAT_V2:
    case PROTO_FORMAT_RAW:
        return proto__v2_bound(request);
    case PROTO_FORMAT_JSON:
        return request->want_npz ? proto__npz_bound(request) : proto__json_bound(request);
    case PROTO_FORMAT_NPY:
    case PROTO_FORMAT_NPZ:
    case PROTO_FORMAT_UNKNOWN:
        break;
    }
    return proto__npz_bound(request);
}

bool proto_answer_is_long(const struct proto_request *request)
{
    bool v2 = request->format == PROTO_FORMAT_V2 || request->format == PROTO_FORMAT_RAW;
    bool npy = !v2 && request->format != PROTO_FORMAT_JSON && !request->want_npz;
    int64_t work = 0;
    for (int i = 0; i < request->output_count; i++) {
        const struct method_tensor *tensor = &request->method->outputs[request->outputs[i].index];
        int64_t bytes = proto__output_bytes(request, tensor);
        bool stays =
            (npy || (v2 && request->outputs[i].binary)) && tensor->kind != METHOD_ALGORITHM;
        if (!stays && !checked_add(work, bytes, &work))
            return true;
    }
    return work > LONG_ANSWER_BYTES;
}
