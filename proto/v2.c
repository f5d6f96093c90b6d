/* proto/v2.c: requests of the Open Inference Protocol: JSON, binary tensors behind it, and raw.
 *
 *      body = JSON of json_bytes | tensors with binary_data_size, in the JSON's order
 *
 * Any thread. Binary tensors stay where they lie in the body when they are aligned; the numbers of
 * JSON tensors go right to their place in the space.
 */
#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "proto/json_private.h"
#include "proto/proto_private.h"

#define INPUT_DEPTH 3 /* containers open inside an input: the root, "inputs", the input itself */

struct v2_input {
    const char *name;
    enum precision precision;
    int rank;
    int64_t shape[PROTO_RANK_MAX];
    int64_t count;                  /* elements */
    const struct proto__lift *data; /* NULL: binary */
    int64_t binary_bytes;
};

struct v2_decoder {
    struct proto__scan scan;
    struct proto__node *root;
    struct proto_request *request;
    struct v2_input inputs[METHOD_INPUTS_MAX];
    int places[METHOD_INPUTS_MAX]; /* in the descriptor */
    int input_count;
    bool binary_outputs;
};

static bool is_named(struct proto__name name, const char *wanted)
{
    return name.length == strlen(wanted) && memcmp(name.text, wanted, name.length) == 0;
}

static bool lifts_data(const void *context, int depth, struct proto__name root,
                       struct proto__name name)
{
    (void)context;
    return depth == INPUT_DEPTH && is_named(name, "data") && is_named(root, "inputs");
}

/* ---- One input ---- */

static struct proto__words name_words(const struct v2_input *input)
{
    return proto__safe_words(input->name, strlen(input->name));
}

static enum error read_shape(const struct proto__node *node, struct v2_input *input,
                             struct failure *failure)
{
    int64_t rank = proto__node_length(node);
    if (proto__node_kind(node) != PROTO_NODE_ARRAY || rank > PROTO_RANK_MAX)
        return failure_set(failure, ERROR_BAD_SHAPE,
                           "input %s: \"shape\" must be a list of at most %d whole numbers",
                           name_words(input).text, PROTO_RANK_MAX);
    input->rank = (int)rank;
    for (int i = 0; i < input->rank; i++) {
        const struct proto__node *length = proto__node_entry(node, i);
        if (proto__node_kind(length) != PROTO_NODE_INTEGER)
            return failure_set(failure, ERROR_BAD_SHAPE,
                               "input %s: \"shape\" must hold whole numbers",
                               name_words(input).text);
        input->shape[i] = proto__node_integer(length);
        if (input->shape[i] < 0)
            return failure_set(failure, ERROR_BAD_SHAPE,
                               "input %s: \"shape\" holds %lld; post the real dimensions, which "
                               "are not negative",
                               name_words(input).text, (long long)input->shape[i]);
    }
    if (!proto__shape_count(input->rank, input->shape, &input->count))
        return failure_set(failure, ERROR_BAD_SHAPE, "input %s: shape %s overflows",
                           name_words(input).text,
                           proto__shape_words(input->rank, input->shape).text);
    return ERROR_NONE;
}

static enum error read_datatype(const struct proto__node *node, struct v2_input *input,
                                struct failure *failure)
{
    const char *datatype = proto__node_string(node);
    if (datatype == NULL)
        return failure_set(failure, ERROR_MALFORMED,
                           "input %s: \"datatype\" must be \"FP64\" or \"FP32\"",
                           name_words(input).text);
    for (int p = 0; p < PRECISION_COUNT; p++) {
        input->precision = (enum precision)p;
        if (strcmp(datatype, precision_name(input->precision)) == 0)
            return ERROR_NONE;
    }
    return failure_set(failure, ERROR_BAD_DATATYPE,
                       "input %s: datatype %s is not supported; post FP64 or FP32",
                       name_words(input).text, proto__safe_words(datatype, strlen(datatype)).text);
}

/* "data" flat, or nested exactly as shape. An empty array may stop nesting at its first zero. */
static enum error check_data(const struct v2_input *input, const struct proto__lift *lift,
                             struct failure *failure)
{
    bool flat = lift->rank == 1 && lift->count == input->count;
    bool nested = lift->count == input->count && lift->rank <= input->rank &&
                  (input->count == 0 || lift->rank == input->rank) &&
                  memcmp(lift->shape, input->shape, (size_t)lift->rank * sizeof(int64_t)) == 0;
    if (flat || nested)
        return ERROR_NONE;
    if (lift->count != input->count)
        return failure_set(
            failure, ERROR_MALFORMED, "input %s: \"data\" holds %lld numbers, shape %s needs %lld",
            name_words(input).text, (long long)lift->count,
            proto__shape_words(input->rank, input->shape).text, (long long)input->count);
    return failure_set(failure, ERROR_MALFORMED,
                       "input %s: \"data\" is nested as %s; write it flat, or nested as %s",
                       name_words(input).text, proto__shape_words(lift->rank, lift->shape).text,
                       proto__shape_words(input->rank, input->shape).text);
}

static enum error read_binary_size(const struct proto__node *node, struct v2_input *input,
                                   struct failure *failure)
{
    int64_t bytes;
    if (!checked_mul(input->count, precision_bytes(input->precision), &bytes))
        return failure_set(failure, ERROR_BAD_SHAPE, "input %s: shape %s overflows",
                           name_words(input).text,
                           proto__shape_words(input->rank, input->shape).text);
    input->binary_bytes = proto__node_integer(node);
    if (proto__node_kind(node) == PROTO_NODE_INTEGER && input->binary_bytes == bytes)
        return ERROR_NONE;
    return failure_set(
        failure, ERROR_MALFORMED, "input %s: \"binary_data_size\" must be %lld for shape %s of %s",
        name_words(input).text, (long long)bytes,
        proto__shape_words(input->rank, input->shape).text, precision_name(input->precision));
}

static enum error read_data(const struct proto__scan *scan, const struct proto__node *node,
                            struct v2_input *input, struct failure *failure)
{
    const struct proto__node *parameters = proto__node_member(node, "parameters");
    const struct proto__node *size = proto__node_member(parameters, "binary_data_size");
    const struct proto__node *data = proto__node_member(node, "data");
    if (parameters != NULL && proto__node_kind(parameters) != PROTO_NODE_OBJECT)
        return failure_set(failure, ERROR_MALFORMED, "input %s: \"parameters\" must be an object",
                           name_words(input).text);
    if (proto__node_member(parameters, "shared_memory_region") != NULL)
        return failure_set(failure, ERROR_MALFORMED,
                           "input %s: shared memory is not available here; send the tensor",
                           name_words(input).text);
    if ((size != NULL) == (data != NULL))
        return failure_set(failure, ERROR_MALFORMED,
                           "input %s: give either \"data\" or the parameter binary_data_size",
                           name_words(input).text);
    if (size != NULL)
        return read_binary_size(size, input, failure);
    input->data = proto__node_lift(data, scan);
    if (input->data == NULL)
        return failure_set(failure, ERROR_MALFORMED, "input %s: \"data\" must be an array",
                           name_words(input).text);
    return check_data(input, input->data, failure);
}

static enum error read_input(const struct proto__scan *scan, const struct proto__node *node,
                             struct v2_input *input, struct failure *failure)
{
    memset(input, 0, sizeof *input);
    input->name = proto__node_string(proto__node_member(node, "name"));
    if (input->name == NULL)
        return failure_set(failure, ERROR_MALFORMED,
                           "every input must be an object with a \"name\"");
    enum error error = read_shape(proto__node_member(node, "shape"), input, failure);
    if (error == ERROR_NONE)
        error = read_datatype(proto__node_member(node, "datatype"), input, failure);
    if (error == ERROR_NONE)
        error = read_data(scan, node, input, failure);
    return error;
}

static enum error read_inputs(struct v2_decoder *d, struct failure *failure)
{
    const struct proto__node *inputs = proto__node_member(d->root, "inputs");
    int64_t count = proto__node_length(inputs);
    if (proto__node_kind(inputs) != PROTO_NODE_ARRAY || count == 0)
        return failure_set(failure, ERROR_MALFORMED,
                           "\"inputs\" must be a list of tensors, as in {\"name\": \"A\", "
                           "\"shape\": [1,2,2], \"datatype\": \"FP64\", \"data\": [4,7,2,6]}");
    if (count > METHOD_INPUTS_MAX)
        return failure_set(failure, ERROR_MALFORMED, "there are more than %d inputs",
                           METHOD_INPUTS_MAX);
    for (int64_t i = 0; i < count; i++) {
        struct v2_input *input = &d->inputs[d->input_count++];
        enum error error = read_input(&d->scan, proto__node_entry(inputs, i), input, failure);
        if (error != ERROR_NONE)
            return error;
    }
    return ERROR_NONE;
}

static enum error parse(struct v2_decoder *d, const char *json, int64_t length,
                        struct failure *failure)
{
    enum error error = proto__scan(&d->scan, json, length, lifts_data, NULL, failure);
    if (error == ERROR_NONE)
        error = proto__node_parse(&d->scan, &d->root, failure);
    if (error == ERROR_NONE)
        error = read_inputs(d, failure);
    return error;
}

static void decoder_free(struct v2_decoder *d)
{
    proto__node_free(&d->root);
    proto__scan_free(&d->scan);
}

static enum error sum_binary_bytes(const struct v2_decoder *d, int64_t *sum,
                                   struct failure *failure)
{
    *sum = 0;
    for (int i = 0; i < d->input_count; i++) {
        if (!checked_add(*sum, d->inputs[i].binary_bytes, sum))
            return failure_set(failure, ERROR_BAD_SHAPE, "the sizes of the inputs overflow");
    }
    return ERROR_NONE;
}

enum error proto__v2_binary_bytes(const char *json, int64_t length, int64_t *bytes,
                                  struct failure *failure)
{
    struct v2_decoder d = {.input_count = 0};
    enum error error = parse(&d, json, length, failure);
    if (error == ERROR_NONE)
        error = sum_binary_bytes(&d, bytes, failure);
    decoder_free(&d);
    return error;
}

/* ---- What stands next to the inputs ---- */

static enum error read_id(struct v2_decoder *d, struct failure *failure)
{
    const struct proto__node *node = proto__node_member(d->root, "id");
    const char *id = proto__node_string(node);
    if (node == NULL)
        return ERROR_NONE;
    if (id == NULL || strlen(id) > PROTO_ID_MAX)
        return failure_set(failure, ERROR_MALFORMED, "\"id\" must be a string of at most %d bytes",
                           PROTO_ID_MAX);
    memcpy(d->request->id, id, strlen(id) + 1);
    d->request->has_id = true;
    return ERROR_NONE;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static enum error read_parameter(void *context, const char *name, const struct proto__node *value,
                                 struct failure *failure)
{
    struct v2_decoder *d = context;
    struct proto__scalar scalar;
    if (starts_with(name, "sequence_") || starts_with(name, "triton_") ||
        strcmp(name, "headers") == 0)
        return ERROR_NONE; /* the protocol's, without a meaning here */
    if (strcmp(name, "binary_data_output") == 0) {
        d->binary_outputs = proto__node_true(value);
        if (proto__node_kind(value) == PROTO_NODE_BOOL)
            return ERROR_NONE;
        return failure_set(failure, ERROR_BAD_OPTION, "binary_data_output must be true or false");
    }
    if (!proto__node_scalar(value, &scalar))
        return proto__refuse_option(d->request, PROTO_SCOPE_V2, name, proto__node_kind_words(value),
                                    failure);
    return proto__set_option(d->request, PROTO_SCOPE_V2, name, scalar.text, failure);
}

static enum error read_parameters(struct v2_decoder *d, struct failure *failure)
{
    const struct proto__node *node = proto__node_member(d->root, "parameters");
    if (node == NULL)
        return ERROR_NONE;
    if (proto__node_kind(node) != PROTO_NODE_OBJECT)
        return failure_set(failure, ERROR_MALFORMED, "\"parameters\" must be an object");
    return proto__node_members(node, read_parameter, d, failure);
}

static enum error check_member(void *context, const char *name, const struct proto__node *value,
                               struct failure *failure)
{
    const struct v2_decoder *d = context;
    (void)value;
    return proto_request_stray(d->request, name, failure);
}

static enum error read_output(struct v2_decoder *d, const struct proto__node *node,
                              struct failure *failure)
{
    const char *name = proto__node_string(proto__node_member(node, "name"));
    const struct proto__node *parameters = proto__node_member(node, "parameters");
    const struct proto__node *binary = proto__node_member(parameters, "binary_data");
    if (name == NULL)
        return failure_set(failure, ERROR_MALFORMED,
                           "every output must be an object with a \"name\"");
    if (parameters != NULL && proto__node_kind(parameters) != PROTO_NODE_OBJECT)
        return failure_set(failure, ERROR_MALFORMED,
                           "the \"parameters\" of an output must be an object");
    if (proto__node_member(parameters, "shared_memory_region") != NULL ||
        proto__node_member(parameters, "classification") != NULL)
        return failure_set(failure, ERROR_MALFORMED,
                           "shared memory and classification are not available for outputs");
    if (binary != NULL && proto__node_kind(binary) != PROTO_NODE_BOOL)
        return failure_set(failure, ERROR_MALFORMED,
                           "the parameter binary_data of an output must be true or false");
    return proto__add_output(d->request, name, strlen(name),
                             binary != NULL ? proto__node_true(binary) : d->binary_outputs,
                             failure);
}

static enum error read_outputs(struct v2_decoder *d, struct failure *failure)
{
    const struct proto__node *outputs = proto__node_member(d->root, "outputs");
    if (outputs != NULL && proto__node_kind(outputs) != PROTO_NODE_ARRAY)
        return failure_set(failure, ERROR_MALFORMED, "\"outputs\" must be a list");
    d->request->output_count = 0;
    for (int64_t i = 0; i < proto__node_length(outputs); i++) {
        enum error error = read_output(d, proto__node_entry(outputs, i), failure);
        if (error != ERROR_NONE)
            return error;
    }
    proto__default_outputs(d->request, d->binary_outputs);
    return ERROR_NONE;
}

/* ---- Bringing the inputs to their place ---- */

static enum error bind_inputs(struct v2_decoder *d, struct failure *failure)
{
    struct proto_request *request = d->request;
    const struct method *method = request->method;
    uint32_t present = 0;
    for (int i = 0; i < d->input_count; i++) {
        const struct v2_input *input = &d->inputs[i];
        int place = method_input_find(method, input->name);
        if (place < 0 || strcmp(method->inputs[place].name, input->name) != 0)
            return failure_set(failure, ERROR_MALFORMED, "%s has no input '%s'%s; it takes %s",
                               method->name,
                               proto__safe_words(input->name, strlen(input->name)).text,
                               place < 0 ? proto__takers_words(input->name).text : "",
                               proto__input_words(method, false).text);
        if ((present >> place & 1) != 0)
            return failure_set(failure, ERROR_MALFORMED, "input %s is given twice",
                               method->inputs[place].name);
        if (input->precision != d->inputs[0].precision)
            return failure_set(failure, ERROR_BAD_DATATYPE,
                               "input %s is %s and input %s is %s: all must have one datatype",
                               d->inputs[0].name, precision_name(d->inputs[0].precision),
                               input->name, precision_name(input->precision));
        present |= UINT32_C(1) << place;
        d->places[i] = place;
        request->inputs[place].rank = input->rank;
        memcpy(request->inputs[place].shape, input->shape, sizeof input->shape);
    }
    request->precision = d->inputs[0].precision;
    return proto__bind(request, present, PROTO_LEAD_BATCH, failure);
}

static enum error place_inputs(struct v2_decoder *d, unsigned char *binary,
                               struct proto_space *space, struct failure *failure)
{
    enum error error = ERROR_NONE;
    for (int i = 0; error == ERROR_NONE && i < d->input_count; i++) {
        const struct v2_input *input = &d->inputs[i];
        struct proto_tensor *tensor = &d->request->inputs[d->places[i]];
        int64_t bytes = input->count * precision_bytes(input->precision); /* bound has seen it */
        if (input->data == NULL) {
            error = proto__place(space, binary, input->precision, false, tensor, failure);
            binary += bytes;
            continue;
        }
        error = proto__take(space, bytes, &tensor->data, failure);
        if (error == ERROR_NONE)
            error =
                proto__lift_read(input->data, input->precision, input->name, tensor->data, failure);
    }
    return error;
}

static enum error check_length(const struct v2_decoder *d, int64_t length, int64_t json_bytes,
                               struct failure *failure)
{
    int64_t binary_bytes;
    enum error error = sum_binary_bytes(d, &binary_bytes, failure);
    if (error != ERROR_NONE)
        return error;
    if (json_bytes < 0 && binary_bytes > 0)
        return failure_set(failure, ERROR_MALFORMED,
                           "binary tensors need the header Inference-Header-Content-Length");
    int64_t behind = json_bytes < 0 ? 0 : length - json_bytes;
    if (behind != binary_bytes)
        return failure_set(failure, ERROR_MALFORMED,
                           "the binary tensors have %lld bytes, the inputs declare %lld",
                           (long long)behind, (long long)binary_bytes);
    return ERROR_NONE;
}

/* Where no header says that tensors follow, the body is JSON from its first byte on. */
static enum error check_is_json(const unsigned char *body, int64_t length, struct failure *failure)
{
    int64_t at = 0;
    while (at < length && body[at] != '\0' && strchr(" \t\r\n", body[at]) != NULL)
        at++;
    if (at == length || (body[at] != '\0' && strchr("{[\"", body[at]) != NULL))
        return ERROR_NONE;
    if (length - at > 2 && memcmp(body + at, "--", 2) == 0)
        return failure_set(failure, ERROR_UNSUPPORTED_MEDIA,
                           "the body begins as multipart/form-data does, which is not taken here; "
                           "send the JSON itself as the body, with Content-Type application/json, "
                           "and binary tensors right behind it");
    return failure_set(failure, ERROR_MALFORMED,
                       "the body is no JSON; where binary tensors are in it, the header "
                       "Inference-Header-Content-Length must say how many bytes of JSON come "
                       "first (0: one raw FP64 matrix)");
}

enum error proto_v2_decode(unsigned char *body, int64_t length, int64_t json_bytes,
                           struct proto_space *space, struct proto_request *request,
                           struct failure *failure)
{
    struct v2_decoder d = {.request = request};
    if (json_bytes > length || json_bytes < -1)
        return failure_set(failure, ERROR_MALFORMED,
                           "Inference-Header-Content-Length is %lld, the body has %lld bytes",
                           (long long)json_bytes, (long long)length);
    int64_t text_bytes = json_bytes < 0 ? length : json_bytes;
    enum error error = json_bytes < 0 ? check_is_json(body, length, failure) : ERROR_NONE;
    if (error == ERROR_NONE)
        error = parse(&d, (const char *)body, text_bytes, failure);
    if (error == ERROR_NONE)
        error = read_id(&d, failure);
    if (error == ERROR_NONE)
        error = proto__node_members(d.root, check_member, &d, failure);
    if (error == ERROR_NONE)
        error = read_parameters(&d, failure);
    if (error == ERROR_NONE)
        error = read_outputs(&d, failure);
    if (error == ERROR_NONE)
        error = bind_inputs(&d, failure);
    if (error == ERROR_NONE)
        error = check_length(&d, length, json_bytes, failure);
    if (error == ERROR_NONE)
        error = place_inputs(&d, body + text_bytes, space, failure);
    if (error == ERROR_NONE)
        proto__settle_inputs(request);
    decoder_free(&d);
    return error;
}

/* The whole number whose square is `square`, or -1. */
static int64_t whole_root(int64_t square)
{
    int64_t low = 0, high = INT64_C(3037000499); /* the largest root of an int64_t */
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (middle * middle <= square)
            low = middle;
        else
            high = middle - 1;
    }
    return low * low == square ? low : -1;
}

enum error proto_raw_decode(unsigned char *body, int64_t length, struct proto_space *space,
                            struct proto_request *request, struct failure *failure)
{
    const struct method *method = request->method;
    int place = proto__sole_input(method);
    if (place < 0)
        return failure_set(failure, ERROR_MALFORMED,
                           "%s takes %s; a raw request can carry one input alone", method->name,
                           proto__input_words(method, false).text);
    int64_t n = length % 8 == 0 ? whole_root(length / 8) : -1;
    if (n <= 0)
        return failure_set(failure, ERROR_MALFORMED,
                           "the body has %lld bytes; a raw request is one square FP64 matrix of "
                           "8 n^2 bytes",
                           (long long)length);
    struct proto_tensor *tensor = &request->inputs[place];
    *tensor = (struct proto_tensor){.rank = 3, .shape = {1, n, n}};
    request->precision = PRECISION_FP64;
    enum error error = proto__bind(request, UINT32_C(1) << place, 1, failure);
    if (error == ERROR_NONE)
        error = proto__place(space, body, PRECISION_FP64, false, tensor, failure);
    if (error == ERROR_NONE)
        proto__default_outputs(request, true);
    return error;
}
