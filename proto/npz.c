/* proto/npz.c: NumPy's .npz: a zip file of .npy arrays, named as the method's inputs.
 *
 * Every header is read and every shape bound before memory is taken; sizes come from the zip's
 * central directory, keep their limit and must be what the array's header declares. Stored arrays
 * stay where they lie when aligned. Any thread. Cost: a checksum over all bytes, and inflating what
 * is deflated.
 */
#include <string.h>

#include "base/checked.h"
#include "proto/flate_private.h"
#include "proto/zip_private.h"

#define SUFFIX ".npy"
#define SUFFIX_BYTES 4

struct npz_array {
    const struct proto__zip_member *member;
    struct proto__npy npy;
};

struct npz_decoder {
    struct proto__zip_member members[PROTO_ZIP_MEMBERS_MAX];
    int member_count;
    struct npz_array arrays[METHOD_INPUTS_MAX]; /* by the descriptor's inputs */
    uint32_t present;
    struct proto_request *request;
    struct failure *failure;
};

/* Bytes of a member's name before ".npy"; 0: it does not end so. */
static size_t stem_length(const struct proto__zip_member *member)
{
    size_t length = member->name_length;
    if (length <= SUFFIX_BYTES || memcmp(member->name + length - SUFFIX_BYTES, SUFFIX, 4) != 0)
        return 0;
    return length - SUFFIX_BYTES;
}

/* The input that a member is for, by its name without ".npy"; "matrix", "matrices" and "arr_0",
 * which numpy.savez gives to an array without a name, are the sole input. -1: none. */
static int find_input(const struct method *method, const struct proto__zip_member *member)
{
    static const char *const sole[] = {"arr_0", "matrix", "matrices"};
    size_t length = stem_length(member);
    if (length == 0)
        return -1;
    for (int i = 0; method->inputs[i].name != NULL; i++) {
        if (proto__equals_ignoring_case(method->inputs[i].name, member->name, length))
            return i;
    }
    for (size_t i = 0; i < sizeof sole / sizeof sole[0]; i++) {
        if (proto__equals_ignoring_case(sole[i], member->name, length))
            return proto__sole_input(method);
    }
    return -1;
}

static enum error broken(const struct npz_decoder *d, const char *what)
{
    return failure_set(d->failure, ERROR_MALFORMED, "a member of the zip file %s", what);
}

static enum error inflate_member(const struct npz_decoder *d,
                                 const struct proto__zip_member *member, unsigned char *out,
                                 int64_t bytes, bool whole)
{
    struct proto__flate *flate =
        proto__inflate_open(PROTO_FLATE_RAW, member->data, member->data_bytes);
    if (flate == NULL)
        return failure_set(d->failure, ERROR_FULL, "out of memory to inflate the body");
    int64_t produced, surplus = 0;
    unsigned char beyond;
    enum proto__flate_end end = proto__inflate_next(flate, out, bytes, &produced);
    if (whole && end == PROTO_FLATE_MORE)
        end = proto__inflate_next(flate, &beyond, 1, &surplus);
    int64_t unread = proto__inflate_unread(flate);
    proto__inflate_close(&flate);
    if (end == PROTO_FLATE_BROKEN || end == PROTO_FLATE_SHORT)
        return broken(d, "cannot be inflated: its deflated data is damaged");
    if (produced != bytes || (whole && (surplus != 0 || unread != 0 || end != PROTO_FLATE_DONE)))
        return broken(d, "does not inflate to the size that the directory gives");
    return ERROR_NONE;
}

/* Reads the array's header; of a deflated member only the first bytes are inflated for it. */
static enum error read_header(struct npz_decoder *d, struct npz_array *array)
{
    unsigned char head[PROTO_NPY_HEADER_MAX];
    const struct proto__zip_member *member = array->member;
    const unsigned char *bytes = member->data;
    int64_t length = member->inflated_bytes;
    if (member->deflated) {
        int64_t max;
        if (!checked_mul(member->data_bytes, PROTO_FLATE_RATIO_MAX, &max) || length > max)
            return broken(d, "cannot be as large as the directory says");
        length = length < PROTO_NPY_HEADER_MAX ? length : PROTO_NPY_HEADER_MAX;
        enum error error = inflate_member(d, member, head, length, false);
        if (error != ERROR_NONE)
            return error;
        bytes = head;
    }
    enum error error = proto__npy_read(bytes, length, &array->npy, d->failure);
    if (error != ERROR_NONE)
        return error;
    if (member->inflated_bytes - array->npy.data_offset != array->npy.data_bytes)
        return failure_set(d->failure, ERROR_MALFORMED,
                           "an array has shape %s: %lld bytes, but %lld are there",
                           proto__shape_words(array->npy.rank, array->npy.shape).text,
                           (long long)array->npy.data_bytes,
                           (long long)(member->inflated_bytes - array->npy.data_offset));
    return ERROR_NONE;
}

static enum error check_inflated(const struct npz_decoder *d)
{
    int64_t max = d->request->inflated_max, sum = 0;
    for (int m = 0; m < d->member_count; m++) {
        if (!checked_add(sum, d->members[m].inflated_bytes, &sum))
            return broken(d, "is larger than any memory");
    }
    if (max > 0 && sum > max)
        return failure_set(d->failure, ERROR_TOO_LARGE,
                           "the zip file inflates to %lld bytes, more than the limit of %lld "
                           "(--request-max)",
                           (long long)sum, (long long)max);
    return ERROR_NONE;
}

/* stem: of the member's name, without .npy; 0: it does not end so. */
static enum error refuse_name(const struct npz_decoder *d, const struct proto__zip_member *member,
                              size_t stem)
{
    const struct method *method = d->request->method;
    struct proto__words name =
        proto__safe_words(member->name, stem > 0 ? stem : member->name_length);
    return failure_set(
        d->failure, ERROR_MALFORMED, "%s has no input '%s'%s; the arrays must be named %s%s",
        method->name, name.text, stem > 0 ? proto__takers_words(name.text).text : "",
        proto__input_words(method, true).text,
        proto__sole_input(method) >= 0 ? " (one alone also matrix, matrices or arr_0)" : "");
}

static const char *numpy_name(enum precision precision)
{
    return precision == PRECISION_FP32 ? "float32" : "float64";
}

static enum error read_headers(struct npz_decoder *d)
{
    const struct method *method = d->request->method;
    const struct npz_array *first = NULL;
    for (int m = 0; m < d->member_count; m++) {
        const struct proto__zip_member *member = &d->members[m];
        int place = find_input(method, member);
        size_t stem = stem_length(member);
        if (place < 0)
            return refuse_name(d, member, stem);
        if ((d->present >> place & 1) != 0)
            return failure_set(d->failure, ERROR_MALFORMED, "input %s is given twice",
                               method->inputs[place].name);
        struct npz_array *array = &d->arrays[place];
        array->member = member;
        enum error error = read_header(d, array);
        if (error != ERROR_NONE)
            return error;
        first = first != NULL ? first : array;
        if (array->npy.precision != first->npy.precision)
            return failure_set(
                d->failure, ERROR_BAD_DATATYPE, "%s is of %s and %s of %s: post all in one of them",
                method->inputs[first - d->arrays].name, numpy_name(first->npy.precision),
                method->inputs[place].name, numpy_name(array->npy.precision));
        d->present |= UINT32_C(1) << place;
        d->request->precision = array->npy.precision;
        d->request->inputs[place].rank = array->npy.rank;
        memcpy(d->request->inputs[place].shape, array->npy.shape, sizeof array->npy.shape);
    }
    return ERROR_NONE;
}

/* Inflates a member so that its numbers come to lie aligned. */
static enum error inflate_array(struct npz_decoder *d, const struct npz_array *array,
                                struct proto_space *space, unsigned char **bytes)
{
    int64_t shift = PROTO_ALIGNMENT - array->npy.data_offset % PROTO_ALIGNMENT;
    int64_t room;
    void *memory;
    if (!checked_add(array->member->inflated_bytes, shift, &room))
        return broken(d, "is larger than any memory");
    enum error error = proto__take(space, room, &memory, d->failure);
    if (error != ERROR_NONE)
        return error;
    *bytes = (unsigned char *)memory + shift;
    return inflate_member(d, array->member, *bytes, array->member->inflated_bytes, true);
}

static enum error place_array(struct npz_decoder *d, int place, struct proto_space *space)
{
    const struct npz_array *array = &d->arrays[place];
    unsigned char *bytes = array->member->data;
    enum error error = ERROR_NONE;
    if (array->member->deflated)
        error = inflate_array(d, array, space, &bytes);
    if (error != ERROR_NONE)
        return error;
    if (proto__crc32(0, bytes, array->member->inflated_bytes) != array->member->crc)
        return broken(d, "is damaged: its checksum is wrong");
    return proto__place(space, bytes + array->npy.data_offset, array->npy.precision,
                        array->npy.fortran, &d->request->inputs[place], d->failure);
}

enum error proto_npz_decode(unsigned char *body, int64_t length, struct proto_space *space,
                            struct proto_request *request, struct failure *failure)
{
    struct npz_decoder d = {.request = request, .failure = failure};
    enum error error = proto__zip_read(body, length, d.members, &d.member_count, failure);
    if (error == ERROR_NONE)
        error = check_inflated(&d);
    if (error == ERROR_NONE)
        error = read_headers(&d);
    if (error == ERROR_NONE)
        error = proto__bind(request, d.present, PROTO_LEAD_ANY, failure);
    for (int i = 0; error == ERROR_NONE && i < METHOD_INPUTS_MAX; i++) {
        if ((d.present >> i & 1) != 0)
            error = place_array(&d, i, space);
    }
    if (error == ERROR_NONE) {
        proto__settle_inputs(request);
        proto__default_outputs(request, false);
    }
    return error;
}

/* ---- The answer ---- */

int64_t proto__npz_bound(const struct proto_request *request)
{
    int64_t bound = PROTO_ZIP_END_MAX + PROTO_ALIGNMENT;
    for (int i = 0; i < request->output_count; i++) {
        const struct method_tensor *tensor = &request->method->outputs[request->outputs[i].index];
        struct proto__shape shape = proto__output_shape(request, tensor);
        int64_t algorithms =
            tensor->kind == METHOD_ALGORITHM ? proto__algorithm_array_bytes(shape.count) : 0;
        bound += PROTO_ZIP_LOCAL_MAX + PROTO_NPY_HEAD_MAX + PROTO_ZIP_CENTRAL_MAX;
        if (algorithms < 0 || !checked_add(bound, algorithms, &bound))
            return -1;
    }
    return bound;
}

/* What precedes an output's data in the file: local header, NPY header, and the data itself where
 * it must be converted. */
static void write_member(struct proto__writer *writer, const struct proto_request *request,
                         const struct method_tensor *tensor, const void *data,
                         struct proto__zip_entry *entry)
{
    char head[PROTO_NPY_HEAD_MAX];
    struct proto__writer npy = {head, head, head + sizeof head};
    struct proto__shape shape = proto__output_shape(request, tensor);
    proto__npy_write(&npy, tensor, request->precision, &shape);
    int64_t head_bytes = npy.at - npy.start;
    entry->crc = proto__crc32(0, (const unsigned char *)head, head_bytes);
    if (tensor->kind != METHOD_ALGORITHM) {
        int64_t bytes = proto__output_bytes(request, tensor);
        entry->bytes = head_bytes + bytes;
        if (bytes > 0)
            entry->crc = proto__crc32(entry->crc, data, bytes);
        proto__zip_write_local(writer, entry);
        proto__write(writer, head, (size_t)head_bytes);
        return;
    }
    /* The local header is written again with the checksum, once the names stand behind it; its
     * length does not depend on that. */
    int64_t algorithms_bytes = proto__algorithm_array_bytes(shape.count);
    entry->bytes = head_bytes + algorithms_bytes;
    char *local = writer->at;
    proto__zip_write_local(writer, entry);
    proto__write(writer, head, (size_t)head_bytes);
    const char *algorithms = writer->at;
    proto__write_algorithm_array(writer, data, shape.count);
    entry->crc = proto__crc32(entry->crc, (const unsigned char *)algorithms, algorithms_bytes);
    struct proto__writer again = {local, local, writer->end};
    proto__zip_write_local(&again, entry);
}

enum error proto_npz_encode(const struct proto_request *request,
                            void *const outputs[METHOD_OUTPUTS_MAX], struct proto_space *space,
                            struct proto_answer *answer, struct failure *failure)
{
    struct proto__zip_entry entries[METHOD_OUTPUTS_MAX];
    struct proto__words names[METHOD_OUTPUTS_MAX];
    int64_t bound = proto__npz_bound(request);
    void *memory;
    if (bound < 0)
        return failure_set(failure, ERROR_TOO_LARGE, "the answer is too large");
    enum error error = proto__take(space, bound, &memory, failure);
    if (error != ERROR_NONE)
        return error;
    struct proto__writer writer = {memory, memory, (char *)memory + bound};
    proto__answer_init(answer, "application/x-npz");
    for (int i = 0; i < request->output_count; i++) {
        int index = request->outputs[i].index;
        const struct method_tensor *tensor = &request->method->outputs[index];
        const char *begin = writer.at;
        const void *data = proto__output_data(request, outputs, index);
        names[i] = proto__lower_words(tensor->name);
        memcpy(names[i].text + strlen(names[i].text), SUFFIX, SUFFIX_BYTES + 1);
        entries[i] =
            (struct proto__zip_entry){.name = names[i].text, .offset = answer->total_bytes};
        write_member(&writer, request, tensor, data, &entries[i]);
        proto__answer_add(answer, begin, writer.at - begin);
        if (tensor->kind != METHOD_ALGORITHM)
            proto__answer_add(answer, data, proto__output_bytes(request, tensor));
    }
    const char *begin = writer.at;
    proto__zip_write_central(&writer, entries, request->output_count, answer->total_bytes);
    proto__answer_add(answer, begin, writer.at - begin);
    return ERROR_NONE;
}
