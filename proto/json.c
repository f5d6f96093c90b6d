/* proto/json.c: /v1 JSON requests.
 *
 *      {"matrix": [[4,7],[2,6]]}                          one matrix
 *      {"matrices": [[[4,7],[2,6]], ...]}                 a batch
 *      {"dl": [..], "d": [..], "du": [..]}                a method's inputs by lower-case name
 *
 * and next to them "method", "precision", "outputs", "options", "on_singular", "priority",
 * "timeout". Any thread. The numbers go right from the text to their place in the space.
 */
#include <string.h>

#include "base/checked.h"
#include "proto/json_private.h"
#include "proto/proto_private.h"

#define ROOT_DEPTH 1

struct json_decoder {
    struct proto__scan scan;
    struct proto__node *root;
    struct proto_request *request;
    const struct proto__lift *lifts[METHOD_INPUTS_MAX]; /* by the descriptor's inputs */
    uint32_t present;
};

/* ---- Which members hold matrices ---- */

static bool names_input(const struct method *method, struct proto__name name)
{
    for (const struct method_tensor *input = method->inputs; input->name != NULL; input++) {
        if (proto__equals_ignoring_case(input->name, name.text, name.length))
            return true;
    }
    return false;
}

/* The method may stand behind the matrix: every method's inputs count. context: the method that is
 * known already, or NULL. */
static bool lifts_matrix(const void *context, int depth, struct proto__name root,
                         struct proto__name name)
{
    const struct method *method = context;
    (void)root;
    if (depth != ROOT_DEPTH)
        return false;
    if (proto__equals_ignoring_case("matrix", name.text, name.length) ||
        proto__equals_ignoring_case("matrices", name.text, name.length) ||
        (method != NULL && names_input(method, name)))
        return true;
    for (int i = 0; i < method_count(); i++) {
        if (names_input(method_at(i), name))
            return true;
    }
    return false;
}

/* An empty list has fewer brackets than the tensor dimensions: [] is a matrix of order 0, and
 * [[],[]] two of them. */
static void fill_empty(struct proto_tensor *input, int rank)
{
    bool empty = input->rank > 0 && input->shape[input->rank - 1] == 0;
    while (empty && input->rank < rank)
        input->shape[input->rank++] = 0;
}

static enum error add_input(struct json_decoder *d, int place, int rank, const char *name,
                            const struct proto__lift *lift, struct failure *failure)
{
    const struct method_tensor *tensor = &d->request->method->inputs[place];
    struct proto_tensor *input = &d->request->inputs[place];
    if ((d->present >> place & 1) != 0)
        return failure_set(failure, ERROR_MALFORMED, "input %s is given twice", tensor->name);
    input->rank = lift->rank;
    memcpy(input->shape, lift->shape, sizeof input->shape);
    fill_empty(input, rank > 0 ? rank : tensor->rank);
    if (rank > 0 && input->rank != rank)
        return failure_set(failure, ERROR_BAD_SHAPE,
                           "\"%s\" has shape %s: a matrix is a list of rows, and \"matrices\" a "
                           "list of matrices",
                           name, proto__shape_words(lift->rank, lift->shape).text);
    d->lifts[place] = lift;
    d->present |= UINT32_C(1) << place;
    return ERROR_NONE;
}

static enum error read_matrix(struct json_decoder *d, const char *name,
                              const struct proto__node *value, int lead_rank,
                              struct failure *failure)
{
    const struct method *method = d->request->method;
    const struct proto__lift *lift = proto__node_lift(value, &d->scan);
    int place = proto__sole_input(method);
    if (lift == NULL)
        return proto__refuse_value((struct proto__name){name, strlen(name)}, failure);
    if (place < 0 || method->inputs[place].rank != 2)
        return failure_set(failure, ERROR_MALFORMED, "%s takes %s, not \"%s\"", method->name,
                           proto__input_words(method, true).text, name);
    d->request->inputs[place].called = name;
    return add_input(d, place, lead_rank + 2, name, lift, failure);
}

/* ---- The other members ---- */

static enum error read_method(struct json_decoder *d, struct failure *failure)
{
    struct proto_request *request = d->request;
    const struct proto__node *node = proto__node_member(d->root, "method");
    const char *name = proto__node_string(node);
    if (node != NULL && name == NULL)
        return failure_set(failure, ERROR_BAD_OPTION, "\"method\" must be the name of a method");
    if (name != NULL && request->method != NULL)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "the method is named in the query and in the body; name it once");
    if (request->method != NULL)
        return ERROR_NONE;
    const struct method *method = method_find(name != NULL ? name : "auto");
    if (method == NULL)
        return proto_no_method(ERROR_BAD_OPTION, name != NULL ? name : "auto",
                               name != NULL ? strlen(name) : 4, failure);
    proto__set_method(request, method);
    return ERROR_NONE;
}

static enum error read_precision(struct json_decoder *d, const struct proto__node *value,
                                 struct failure *failure)
{
    const char *name = proto__node_string(value);
    for (int p = 0; name != NULL && p < PRECISION_COUNT; p++) {
        d->request->precision = (enum precision)p;
        if (proto__equals_ignoring_case(precision_name((enum precision)p), name, strlen(name)))
            return ERROR_NONE;
    }
    return failure_set(failure, ERROR_BAD_OPTION, "\"precision\" must be \"fp32\" or \"fp64\"");
}

/* "outputs" as a list of names; as one string it is an option like others. */
static enum error read_outputs(struct json_decoder *d, const struct proto__node *value,
                               struct failure *failure)
{
    struct proto__scalar names = {""};
    size_t used = 0;
    for (int64_t i = 0; i < proto__node_length(value); i++) {
        const char *name = proto__node_string(proto__node_entry(value, i));
        size_t length = name != NULL ? strlen(name) : 0;
        if (length == 0 || strchr(name, ',') != NULL)
            return failure_set(
                failure, ERROR_BAD_OPTION,
                "\"outputs\" must be a list of names, as in [\"inverse\", \"info\"]");
        if (used + length + 2 > sizeof names.text)
            return failure_set(failure, ERROR_BAD_OPTION, "%s has no such outputs; it has %s",
                               d->request->method->name,
                               proto__output_words(d->request->method, true).text);
        if (used > 0)
            names.text[used++] = ',';
        memcpy(names.text + used, name, length + 1);
        used += length;
    }
    return proto_request_option(d->request, "outputs", names.text, failure);
}

/* An option, in "options" or next to it. */
static enum error read_option(void *context, const char *name, const struct proto__node *value,
                              struct failure *failure)
{
    struct json_decoder *d = context;
    struct proto__scalar scalar;
    enum proto__node_kind kind = proto__node_kind(value);
    bool is_outputs = strcmp(name, "outputs") == 0;
    if (is_outputs && kind == PROTO_NODE_ARRAY)
        return read_outputs(d, value, failure);
    if (!proto__node_scalar(value, &scalar) || (is_outputs && kind != PROTO_NODE_STRING))
        return proto__refuse_option(d->request, PROTO_SCOPE_V1, name, proto__node_kind_words(value),
                                    failure);
    return proto_request_option(d->request, name, scalar.text, failure);
}

static enum error read_member(void *context, const char *name, const struct proto__node *value,
                              struct failure *failure)
{
    struct json_decoder *d = context;
    if (strcmp(name, "method") == 0)
        return ERROR_NONE; /* read first */
    if (proto__equals_ignoring_case("matrix", name, strlen(name)))
        return read_matrix(d, "matrix", value, 0, failure);
    if (proto__equals_ignoring_case("matrices", name, strlen(name)))
        return read_matrix(d, "matrices", value, 1, failure);
    if (strcmp(name, "precision") == 0)
        return read_precision(d, value, failure);
    if (strcmp(name, "options") == 0 && proto__node_kind(value) == PROTO_NODE_OBJECT)
        return proto__node_members(value, read_option, d, failure);
    if (strcmp(name, "options") == 0)
        return failure_set(failure, ERROR_BAD_OPTION, "\"options\" must be an object");
    if (strcmp(name, "outputs") == 0 || strcmp(name, "on_singular") == 0 ||
        strcmp(name, "priority") == 0 || strcmp(name, "timeout") == 0)
        return read_option(d, name, value, failure);
    const struct method *method = d->request->method;
    int place = method_input_find(method, name);
    const struct proto__lift *lift = proto__node_lift(value, &d->scan);
    if (place >= 0 && lift != NULL)
        return add_input(d, place, 0, name, lift, failure);
    if (method_option_find(method, name) >= 0)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "options go into \"options\": {\"options\": {\"%s\": ...}}", name);
    return failure_set(failure, ERROR_MALFORMED,
                       "for %s there is no member \"%s\"%s; give matrix, matrices or %s, and "
                       "method, options, outputs, precision, on_singular, priority, timeout",
                       method->name, proto__safe_words(name, strlen(name)).text,
                       place < 0 ? proto__takers_words(name).text : "",
                       proto__input_words(method, true).text);
}

static enum error place_inputs(struct json_decoder *d, struct proto_space *space,
                               struct failure *failure)
{
    struct proto_request *request = d->request;
    const struct method_tensor *tensors = request->method->inputs;
    enum error error = ERROR_NONE;
    for (int i = 0; error == ERROR_NONE && tensors[i].name != NULL; i++) {
        int64_t bytes;
        if ((d->present >> i & 1) == 0)
            continue;
        if (!checked_mul(d->lifts[i]->count, precision_bytes(request->precision), &bytes))
            return failure_set(failure, ERROR_BAD_SHAPE, "the size of %s overflows",
                               proto__called(&tensors[i], &request->inputs[i]));
        error = proto__take(space, bytes, &request->inputs[i].data, failure);
        if (error == ERROR_NONE)
            error = proto__lift_read(d->lifts[i], request->precision,
                                     proto__called(&tensors[i], &request->inputs[i]),
                                     request->inputs[i].data, failure);
    }
    return error;
}

enum error proto_json_decode(unsigned char *body, int64_t length, struct proto_space *space,
                             struct proto_request *request, struct failure *failure)
{
    struct json_decoder d = {.request = request};
    int64_t at = 0;
    while (at < length && strchr(" \t\r\n", body[at]) != NULL && body[at] != '\0')
        at++;
    if (at < length && body[at] == '[')
        return failure_set(
            failure, ERROR_MALFORMED,
            "a bare array does not say what it is: wrap it, {\"matrix\": ...} for one "
            "matrix, {\"matrices\": ...} for a list of them");
    enum error error =
        proto__scan(&d.scan, (const char *)body, length, lifts_matrix, request->method, failure);
    if (error == ERROR_NONE)
        error = proto__node_parse(&d.scan, &d.root, failure);
    if (error == ERROR_NONE)
        error = read_method(&d, failure);
    if (error == ERROR_NONE)
        error = proto__node_members(d.root, read_member, &d, failure);
    if (error == ERROR_NONE)
        error = proto__bind(request, d.present, PROTO_LEAD_ANY, failure);
    if (error == ERROR_NONE)
        error = place_inputs(&d, space, failure);
    if (error == ERROR_NONE) {
        proto__settle_inputs(request);
        proto__default_outputs(request, false);
    }
    proto__node_free(&d.root);
    proto__scan_free(&d.scan);
    return error;
}
