/* proto/v2_encode.c: answers of the Open Inference Protocol.
 *
 * One piece of memory holds the JSON with the data of JSON outputs in it, and behind it the BYTES
 * of binary METHOD outputs; other binary outputs are segments where the engine wrote them. Any
 * thread.
 */
#include <string.h>

#include "base/checked.h"
#include "proto/proto_private.h"

#define HEAD_MAX 512   /* braces, names of model and members */
#define OUTPUT_MAX 768 /* an output without its data: names, and at most 17 dimensions */
#define BYTES_PREFIX 4 /* the length before each string of a BYTES tensor */

static bool writes_binary_algorithms(const struct proto_output *output,
                                     const struct method_tensor *tensor)
{
    return output->binary && tensor->kind == METHOD_ALGORITHM;
}

int64_t proto__v2_bound(const struct proto_request *request)
{
    int64_t bound = HEAD_MAX + PROTO_ALIGNMENT + 6 * (int64_t)sizeof request->id;
    for (int i = 0; i < request->output_count; i++) {
        const struct proto_output *output = &request->outputs[i];
        const struct method_tensor *tensor = &request->method->outputs[output->index];
        int64_t each = 0, data;
        if (writes_binary_algorithms(output, tensor))
            each = BYTES_PREFIX + (int64_t)proto__algorithm_name_max();
        else if (!output->binary)
            each = proto__value_text_max(tensor, request->precision);
        if (!checked_mul(proto__output_shape(request, tensor).count, each, &data) ||
            !checked_add(bound, data, &bound) || !checked_add(bound, OUTPUT_MAX, &bound))
            return -1;
    }
    return bound;
}

static int64_t algorithms_bytes(const int32_t *algorithms, int64_t count)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < count; i++)
        bytes += BYTES_PREFIX + (int64_t)strlen(method_algorithm_name(algorithms[i]));
    return bytes;
}

static void write_algorithms(struct proto__writer *writer, const int32_t *algorithms, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const char *name = method_algorithm_name(algorithms[i]);
        char prefix[BYTES_PREFIX] = {(char)strlen(name), 0, 0, 0}; /* little-endian */
        proto__write(writer, prefix, sizeof prefix);
        proto__write_text(writer, name);
    }
}

static void write_output(struct proto__writer *writer, const struct proto_request *request,
                         const struct proto_output *output, const void *data)
{
    const struct method_tensor *tensor = &request->method->outputs[output->index];
    struct proto__shape shape = proto__output_shape(request, tensor);
    proto__write_text(writer, "{\"name\":\"");
    proto__write_text(writer, tensor->name);
    proto__write_text(writer, "\",\"shape\":[");
    for (int d = 0; d < shape.rank; d++) {
        proto__write_text(writer, d > 0 ? "," : "");
        proto__write_int(writer, shape.dims[d]);
    }
    proto__write_text(writer, "],\"datatype\":\"");
    proto__write_text(writer, proto__datatype(tensor, request->precision));
    if (output->binary) {
        proto__write_text(writer, "\",\"parameters\":{\"binary_data_size\":");
        proto__write_int(writer, tensor->kind == METHOD_ALGORITHM
                                     ? algorithms_bytes(data, shape.count)
                                     : proto__output_bytes(request, tensor));
        proto__write_text(writer, "}}");
        return;
    }
    proto__write_text(writer, "\",\"data\":[");
    proto__write_values(writer, tensor, request->precision, data, 0, shape.count);
    proto__write_text(writer, "]}");
}

static void write_json(struct proto__writer *writer, const struct proto_request *request,
                       void *const outputs[METHOD_OUTPUTS_MAX])
{
    proto__write_text(writer, "{\"model_name\":\"");
    proto__write_text(writer, request->method->name);
    proto__write_text(writer, "\",\"model_version\":\"1\",");
    if (request->has_id) {
        proto__write_text(writer, "\"id\":");
        proto__write_json_string(writer, request->id);
        proto__write_text(writer, ",");
    }
    proto__write_text(writer, "\"outputs\":[");
    for (int i = 0; i < request->output_count; i++) {
        int index = request->outputs[i].index;
        proto__write_text(writer, i > 0 ? "," : "");
        write_output(writer, request, &request->outputs[i],
                     proto__output_data(request, outputs, index));
    }
    proto__write_text(writer, "]}");
}

/* The binary outputs, in the JSON's order. */
static void add_binary(struct proto__writer *writer, const struct proto_request *request,
                       void *const outputs[METHOD_OUTPUTS_MAX], struct proto_answer *answer)
{
    for (int i = 0; i < request->output_count; i++) {
        const struct proto_output *output = &request->outputs[i];
        const struct method_tensor *tensor = &request->method->outputs[output->index];
        if (!output->binary)
            continue;
        if (tensor->kind != METHOD_ALGORITHM) {
            proto__answer_add(answer, outputs[output->index], proto__output_bytes(request, tensor));
            continue;
        }
        const char *begin = writer->at;
        write_algorithms(writer, outputs[output->index],
                         proto__output_shape(request, tensor).count);
        proto__answer_add(answer, begin, writer->at - begin);
    }
}

enum error proto_v2_encode(const struct proto_request *request,
                           void *const outputs[METHOD_OUTPUTS_MAX], struct proto_space *space,
                           struct proto_answer *answer, struct failure *failure)
{
    int64_t bound = proto__v2_bound(request);
    void *memory;
    if (bound < 0)
        return failure_set(failure, ERROR_TOO_LARGE, "the answer is too large");
    enum error error = proto__take(space, bound, &memory, failure);
    if (error != ERROR_NONE)
        return error;
    struct proto__writer writer = {memory, memory, (char *)memory + bound};
    proto__answer_init(answer, "application/json");
    write_json(&writer, request, outputs);
    bool binary = false;
    for (int i = 0; i < request->output_count; i++)
        binary = binary || request->outputs[i].binary;
    if (!binary)
        proto__write_text(&writer, "\n");
    int64_t json_bytes = writer.at - writer.start;
    proto__answer_add(answer, writer.start, json_bytes);
    if (binary) {
        answer->content_type = "application/octet-stream";
        answer->json_bytes = json_bytes;
        add_binary(&writer, request, outputs, answer);
    }
    return ERROR_NONE;
}
