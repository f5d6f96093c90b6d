/* proto/json_encode.c: /v1 answers as JSON.
 *
 *      {"inverse":[[-0.7,...],...],"info":0,"rcond":0.0357,"method":"lu"}
 *
 * Every output is nested as the posted batch is: a number or a matrix for one, lists for stacks.
 * Any thread; the whole text lies in one piece of memory.
 */
#include <string.h>

#include "base/checked.h"
#include "proto/proto_private.h"

#define HEAD_MAX 256
#define OUTPUT_MAX 160 /* a member's name, quotes, colon, comma */

/* What the answer calls "method" when the method itself has no METHOD output. */
static const struct method_tensor fixed_algorithm = {.name = "METHOD", .kind = METHOD_ALGORITHM};

/* Brackets and their commas: two and one for each list at each level. */
static bool add_brackets(const struct proto__shape *shape, int64_t *bound)
{
    int64_t lists = 1;
    for (int d = 0; d < shape->rank; d++) {
        int64_t bytes;
        if (!checked_mul(lists, 3, &bytes) || !checked_add(*bound, bytes, bound) ||
            !checked_mul(lists, shape->dims[d], &lists))
            return false;
    }
    return true;
}

static bool add_output(const struct proto_request *request, const struct method_tensor *tensor,
                       int64_t *bound)
{
    struct proto__shape shape = proto__output_shape(request, tensor);
    int64_t text;
    return checked_mul(shape.count, proto__value_text_max(tensor, request->precision), &text) &&
           checked_add(*bound, text, bound) && checked_add(*bound, OUTPUT_MAX, bound) &&
           add_brackets(&shape, bound);
}

int64_t proto__json_bound(const struct proto_request *request)
{
    int64_t bound = HEAD_MAX + PROTO_ALIGNMENT;
    for (int i = 0; i < request->output_count; i++) {
        if (!add_output(request, &request->method->outputs[request->outputs[i].index], &bound))
            return -1;
    }
    return add_output(request, &fixed_algorithm, &bound) ? bound : -1;
}

struct nested {
    struct proto__writer *writer;
    const struct proto_request *request;
    const struct method_tensor *tensor;
    struct proto__shape shape;
    const void *data; /* NULL: the method's algorithm for each, or nothing to write */
    int64_t next;     /* element to be written */
};

static void write_run(struct nested *nested, int64_t count)
{
    int32_t algorithm = (int32_t)method_algorithm_of_all(nested->request->method);
    for (int64_t i = 0; nested->data == NULL && i < count; i++) {
        proto__write_text(nested->writer, i > 0 ? "," : "");
        proto__write_values(nested->writer, nested->tensor, PRECISION_FP64, &algorithm, 0, 1);
    }
    if (nested->data != NULL)
        proto__write_values(nested->writer, nested->tensor, nested->request->precision,
                            nested->data, nested->next, count);
    nested->next += count;
}

/* Recursion goes as deep as the shape has dimensions: PROTO_RANK_MAX + METHOD_RANK_MAX at most. */
static void write_nested(struct nested *nested, int level)
{
    int levels_left = nested->shape.rank - level;
    if (levels_left == 0) {
        write_run(nested, 1);
        return;
    }
    proto__write_text(nested->writer, "[");
    if (levels_left == 1)
        write_run(nested, nested->shape.dims[level]);
    for (int64_t i = 0; levels_left > 1 && i < nested->shape.dims[level]; i++) {
        proto__write_text(nested->writer, i > 0 ? "," : "");
        write_nested(nested, level + 1);
    }
    proto__write_text(nested->writer, "]");
}

static void write_member(struct proto__writer *writer, const struct proto_request *request,
                         const struct method_tensor *tensor, const void *data)
{
    struct nested nested = {.writer = writer,
                            .request = request,
                            .tensor = tensor,
                            .shape = proto__output_shape(request, tensor),
                            .data = data};
    proto__write_text(writer, writer->at == writer->start + 1 ? "\"" : ",\"");
    proto__write_lower(writer, tensor->name);
    proto__write_text(writer, "\":");
    write_nested(&nested, 0);
}

/* "method" stands in every answer: asked for or not, from the METHOD output where there is one. */
static void write_algorithm(struct proto__writer *writer, const struct proto_request *request,
                            void *const outputs[METHOD_OUTPUTS_MAX])
{
    int algorithm = method_output_find(request->method, fixed_algorithm.name);
    for (int i = 0; i < request->output_count; i++) {
        if (request->outputs[i].index == algorithm)
            return; /* written with the others */
    }
    if (algorithm < 0)
        write_member(writer, request, &fixed_algorithm, NULL);
    else if (outputs[algorithm] != NULL)
        write_member(writer, request, &request->method->outputs[algorithm], outputs[algorithm]);
}

enum error proto_json_encode(const struct proto_request *request,
                             void *const outputs[METHOD_OUTPUTS_MAX], struct proto_space *space,
                             struct proto_answer *answer, struct failure *failure)
{
    int64_t bound = proto__json_bound(request);
    void *memory;
    if (bound < 0)
        return failure_set(failure, ERROR_TOO_LARGE, "the answer is too large");
    enum error error = proto__take(space, bound, &memory, failure);
    if (error != ERROR_NONE)
        return error;
    struct proto__writer writer = {memory, memory, (char *)memory + bound};
    proto__answer_init(answer, "application/json");
    proto__write_text(&writer, "{");
    for (int i = 0; i < request->output_count; i++) {
        int index = request->outputs[i].index;
        write_member(&writer, request, &request->method->outputs[index],
                     proto__output_data(request, outputs, index));
    }
    write_algorithm(&writer, request, outputs);
    proto__write_text(&writer, "}\n");
    proto__answer_add(answer, writer.start, writer.at - writer.start);
    return ERROR_NONE;
}
