/* proto/npy_encode.c: outputs as .npy, version 1.0, in C order.
 *
 * The data is the engine's output itself; only METHOD is converted, to NumPy's fixed-width unicode.
 * Any thread.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "proto/proto_private.h"

#define NPY_ALIGNMENT 64 /* of the data, as NumPy writes it */
#define PREFIX_BYTES 10

static void write_descr(struct proto__writer *writer, const struct method_tensor *tensor,
                        enum precision precision)
{
    char descr[16] = "<i4";
    if (tensor->kind == METHOD_REAL)
        snprintf(descr, sizeof descr, "<f%d", (int)precision_bytes(precision));
    else if (tensor->kind == METHOD_ALGORITHM)
        snprintf(descr, sizeof descr, "<U%d", (int)proto__algorithm_name_max());
    proto__write_text(writer, descr);
}

void proto__npy_write(struct proto__writer *writer, const struct method_tensor *tensor,
                      enum precision precision, const struct proto__shape *shape)
{
    char *begin = writer->at;
    proto__write(writer, "\x93NUMPY\1\0\0\0", PREFIX_BYTES);
    proto__write_text(writer, "{'descr': '");
    write_descr(writer, tensor, precision);
    proto__write_text(writer, "', 'fortran_order': False, 'shape': (");
    for (int i = 0; i < shape->rank; i++) {
        proto__write_int(writer, shape->dims[i]);
        if (i + 1 < shape->rank || shape->rank == 1)
            proto__write_text(writer, i + 1 < shape->rank ? ", " : ",");
    }
    proto__write_text(writer, "), }");
    while ((writer->at + 1 - begin) % NPY_ALIGNMENT != 0)
        proto__write(writer, " ", 1);
    proto__write(writer, "\n", 1);
    int64_t length = writer->at - begin - PREFIX_BYTES;
    begin[8] = (char)(length & 0xff);
    begin[9] = (char)(length >> 8);
}

int64_t proto__algorithm_array_bytes(int64_t count)
{
    int64_t bytes;
    return checked_mul(count, 4 * (int64_t)proto__algorithm_name_max(), &bytes) ? bytes : -1;
}

void proto__write_algorithm_array(struct proto__writer *writer, const int32_t *algorithms,
                                  int64_t count)
{
    size_t width = proto__algorithm_name_max();
    for (int64_t i = 0; i < count; i++) {
        const char *name = method_algorithm_name(algorithms[i]);
        size_t length = strlen(name);
        for (size_t c = 0; c < width; c++) {
            char letter[4] = {c < length ? name[c] : '\0', 0, 0, 0}; /* UCS-4, little-endian */
            proto__write(writer, letter, sizeof letter);
        }
    }
}

static const struct method_tensor *answered(const struct proto_request *request)
{
    assert(request->output_count > 0);
    return &request->method->outputs[request->outputs[0].index];
}

int64_t proto_npy_answer_head(const struct proto_request *request, char head[PROTO_NPY_HEAD_MAX])
{
    const struct method_tensor *tensor = answered(request);
    struct proto__shape shape = proto__output_shape(request, tensor);
    struct proto__writer writer = {head, head, head + PROTO_NPY_HEAD_MAX};
    proto__npy_write(&writer, tensor, request->precision, &shape);
    return writer.at - writer.start;
}

int64_t proto_npy_answer_bytes(const struct proto_request *request)
{
    return proto__output_bytes(request, answered(request));
}

bool proto_npy_answer_is_text(const struct proto_request *request)
{
    return answered(request)->kind == METHOD_ALGORITHM;
}

/* The first output asked for. The bound of an .npz covers it. */
enum error proto_npy_encode(const struct proto_request *request,
                            void *const outputs[METHOD_OUTPUTS_MAX], struct proto_space *space,
                            struct proto_answer *answer, struct failure *failure)
{
    int index = request->outputs[0].index;
    const struct method_tensor *tensor = &request->method->outputs[index];
    struct proto__shape shape = proto__output_shape(request, tensor);
    int64_t algorithms =
        tensor->kind == METHOD_ALGORITHM ? proto__algorithm_array_bytes(shape.count) : 0;
    const void *data = proto__output_data(request, outputs, index);
    int64_t bound;
    void *memory;
    assert(request->output_count > 0);
    if (algorithms < 0 || !checked_add(algorithms, PROTO_NPY_HEAD_MAX, &bound))
        return failure_set(failure, ERROR_TOO_LARGE, "the answer is too large");
    enum error error = proto__take(space, bound, &memory, failure);
    if (error != ERROR_NONE)
        return error;
    struct proto__writer writer = {memory, memory, (char *)memory + bound};
    proto__answer_init(answer, "application/x-npy");
    proto__npy_write(&writer, tensor, request->precision, &shape);
    if (tensor->kind == METHOD_ALGORITHM)
        proto__write_algorithm_array(&writer, data, shape.count);
    proto__answer_add(answer, writer.start, writer.at - writer.start);
    if (tensor->kind != METHOD_ALGORITHM)
        proto__answer_add(answer, data, proto__output_bytes(request, tensor));
    return ERROR_NONE;
}
