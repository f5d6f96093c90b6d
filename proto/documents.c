/* proto/documents.c: JSON documents about methods, all derived from their descriptors.
 *
 * Any thread; the text is the caller's.
 */
#include <assert.h>
#include <string.h>

#include "base/choices.h"
#include "proto/proto_private.h"

static void put_string(struct text *json, const char *string)
{
    text_json_string(json, string, strlen(string));
}

/* `"name":"value"` */
static void put_member(struct text *json, const char *name, const char *value)
{
    put_string(json, name);
    text_puts(json, ":");
    put_string(json, value);
}

static bool is_constant(enum method_dim dim)
{
    return dim == METHOD_DIM_1 || dim == METHOD_DIM_4;
}

/* The dimensions of one matrix's tensor behind `lead`: -1 for every one that varies. */
static void put_dims(struct text *json, const char *lead, const struct method *method,
                     const struct method_tensor *tensor)
{
    text_printf(json, "[%s", lead);
    for (int d = 0; d < tensor->rank; d++)
        text_printf(json, "%s%s", d > 0 || *lead != '\0' ? "," : "",
                    is_constant(tensor->dims[d]) ? method_dim_name(method, tensor->dims[d]) : "-1");
    text_puts(json, "]");
}

/* The protocol has one shape a tensor: of those with the first one's rank the last, whose lengths
 * vary most. */
static bool is_other_shape(const struct method_tensor *tensors, const struct method_tensor *tensor)
{
    const struct method_tensor *first = tensor;
    while (first > tensors && strcmp(first[-1].name, tensor->name) == 0)
        first--;
    bool followed = tensor[1].name != NULL && strcmp(tensor[1].name, tensor->name) == 0;
    return tensor->rank != first->rank || (followed && tensor[1].rank == first->rank);
}

typedef void put_tensor(struct text *json, const struct method *method,
                        const struct method_tensor *tensor, bool is_input);

/* `"name":[...]`, one entry a tensor; all: one for each of its shapes. */
static void put_tensors(struct text *json, const char *name, const struct method *method,
                        bool is_input, bool all, put_tensor *put)
{
    const struct method_tensor *tensors = is_input ? method->inputs : method->outputs;
    put_string(json, name);
    text_puts(json, ":[");
    for (const struct method_tensor *tensor = tensors; tensor->name != NULL; tensor++) {
        if (!all && is_other_shape(tensors, tensor))
            continue;
        text_puts(json, tensor == tensors ? "{" : ",{");
        put_member(json, "name", tensor->name);
        text_puts(json, ",");
        put(json, method, tensor, is_input);
        text_puts(json, "}");
    }
    text_puts(json, "]");
}

/* ---- Metadata ---- */

static void put_metadata_tensor(struct text *json, const struct method *method,
                                const struct method_tensor *tensor, bool is_input)
{
    (void)is_input;
    put_member(json, "datatype", proto__datatype(tensor, PRECISION_FP64));
    text_puts(json, ",\"shape\":");
    put_dims(json, "-1", method, tensor); /* the batch first */
}

void proto_v2_metadata(const struct method *method, struct text *json)
{
    text_puts(json, "{");
    put_member(json, "name", method->name);
    text_puts(json, ",\"versions\":[\"1\"],\"platform\":\"invertd\",");
    put_tensors(json, "inputs", method, true, false, put_metadata_tensor);
    text_puts(json, ",");
    put_tensors(json, "outputs", method, false, false, put_metadata_tensor);
    text_puts(json, "}");
}

/* ---- Configuration, as Triton's protobuf message prints itself ----
 *
 * A model that batches (max_batch_size > 0) has `dims` without the batch, which its metadata has:
 * so perf_analyzer -b 8 --shape A:8,8 posts [8,8,8]. */

#define MAX_BATCH_SIZE INT32_MAX /* the message's largest: the limits are of bytes */

static void put_config_tensor(struct text *json, const struct method *method,
                              const struct method_tensor *tensor, bool is_input)
{
    const char *datatype =
        tensor->kind == METHOD_ALGORITHM ? "STRING" : proto__datatype(tensor, PRECISION_FP64);
    text_printf(json, "\"data_type\":\"TYPE_%s\",", datatype);
    if (is_input)
        text_puts(json, "\"format\":\"FORMAT_NONE\",");
    text_puts(json, "\"dims\":");
    put_dims(json, "", method, tensor);
    text_puts(json, ",\"is_shape_tensor\":false,");
    if (is_input)
        text_printf(json, "\"allow_ragged_batch\":false,\"optional\":%s",
                    tensor->optional ? "true" : "false");
    else
        text_puts(json, "\"label_filename\":\"\"");
}

void proto_v2_config(const struct method *method, struct text *json)
{
    text_puts(json, "{");
    put_member(json, "name", method->name);
    text_printf(json,
                ",\"platform\":\"invertd\",\"backend\":\"invertd\","
                "\"version_policy\":{\"latest\":{\"num_versions\":1}},\"max_batch_size\":%d,",
                (int)MAX_BATCH_SIZE);
    put_tensors(json, "input", method, true, false, put_config_tensor);
    text_puts(json, ",");
    put_tensors(json, "output", method, false, false, put_config_tensor);
    text_puts(json, ",\"dynamic_batching\":{},\"instance_group\":[],\"parameters\":{},"
                    "\"model_transaction_policy\":{\"decoupled\":false},"
                    "\"response_cache\":{\"enable\":false}}");
}

/* ---- The methods document of /v1 ---- */

/* METHOD's help goes on with the algorithms: "which one: lu (the safe one), ...". */
static void put_help(struct text *json, const struct method *method,
                     const struct method_tensor *tensor)
{
    char buffer[1024];
    struct text help;
    text_init_fixed(&help, buffer, sizeof buffer);
    text_puts(&help, tensor->help != NULL ? tensor->help : "");
    const struct method_algorithm_row *row = method->algorithms;
    for (int i = 0; tensor->kind == METHOD_ALGORITHM && row[i].id != METHOD_ALGORITHM_NONE; i++)
        text_printf(&help, "%s%s (%s)", i > 0 ? ", " : ": ", method_algorithm_name((int)row[i].id),
                    row[i].help);
    assert(!help.failed);
    put_member(json, "help", help.data);
}

static void put_method_tensor(struct text *json, const struct method *method,
                              const struct method_tensor *tensor, bool is_input)
{
    static const char *const kinds[] = {
        [METHOD_REAL] = "real", [METHOD_INT32] = "int32", [METHOD_ALGORITHM] = "string"};
    put_help(json, method, tensor);
    text_printf(json, ",\"type\":\"%s\",\"shape\":[\"batch\"", kinds[tensor->kind]);
    for (int d = 0; d < tensor->rank; d++) {
        const char *quote = is_constant(tensor->dims[d]) ? "" : "\"";
        text_printf(json, ",%s%s%s", quote, method_dim_name(method, tensor->dims[d]), quote);
    }
    text_printf(json, "],\"%s\":%s", is_input ? "optional" : "default",
                (is_input ? tensor->optional : tensor->is_default) ? "true" : "false");
}

/* `,"input_sets":[["A"],["X","Y"]]`: which inputs go together, where not all do. */
static void put_input_sets(struct text *json, const struct method *method)
{
    if (method->input_sets[0] == 0)
        return;
    text_puts(json, ",\"input_sets\":[");
    for (int s = 0; method->input_sets[s] != 0; s++) {
        const char *comma = "";
        text_puts(json, s > 0 ? ",[" : "[");
        for (int i = 0; method->inputs[i].name != NULL; i++) {
            if ((method->input_sets[s] >> i & 1) == 0)
                continue;
            text_puts(json, comma);
            put_string(json, method->inputs[i].name);
            comma = ",";
        }
        text_puts(json, "]");
    }
    text_puts(json, "]");
}

static void put_choices(struct text *json, const struct method_option *option)
{
    size_t length;
    const char *choice;
    text_puts(json, "\"kind\":\"choice\",\"choices\":[");
    for (int i = 0; (choice = choices_at(option->choices, i, &length)) != NULL; i++) {
        text_puts(json, i > 0 ? "," : "");
        text_json_string(json, choice, length);
    }
    text_puts(json, "],\"default\":");
    choice = choices_at(option->choices, (int)option->initial, &length);
    assert(choice != NULL);
    text_json_string(json, choice, length);
}

static void put_bounds(struct text *json, const struct method_option *option)
{
    bool is_int = option->kind == METHOD_OPTION_INT;
    double initial = (double)option->initial;
    if (!is_int)
        memcpy(&initial, &option->initial, sizeof initial);
    text_printf(json, "\"kind\":\"%s\",\"least\":", is_int ? "integer" : "real");
    text_json_number(json, option->min);
    text_puts(json, ",\"most\":");
    text_json_number(json, option->max);
    text_puts(json, ",\"default\":");
    text_json_number(json, initial);
}

static void put_option(struct text *json, const struct method_option *option)
{
    text_puts(json, "{");
    put_member(json, "name", option->name);
    text_puts(json, ",");
    put_member(json, "help", option->help != NULL ? option->help : "");
    text_puts(json, ",");
    if (option->kind == METHOD_OPTION_BOOL)
        text_printf(json, "\"kind\":\"bool\",\"default\":%s",
                    option->initial != 0 ? "true" : "false");
    else if (option->kind == METHOD_OPTION_CHOICE)
        put_choices(json, option);
    else if (option->kind == METHOD_OPTION_RANGE)
        text_puts(json, "\"kind\":\"range\",\"default\":\"0:n\"");
    else
        put_bounds(json, option);
    text_puts(json, "}");
}

static void put_method(struct text *json, const struct method *method)
{
    text_puts(json, "{");
    put_member(json, "name", method->name);
    text_puts(json, ",");
    put_member(json, "title", method->title);
    text_puts(json, ",");
    put_member(json, "when", method->when);
    text_printf(json, ",\"n_max\":%lld,", (long long)method->n_max);
    put_tensors(json, "inputs", method, true, true, put_method_tensor);
    text_puts(json, ",");
    put_tensors(json, "outputs", method, false, true, put_method_tensor);
    put_input_sets(json, method);
    text_puts(json, ",\"options\":[");
    for (int i = 0; i < METHOD_OPTIONS_MAX && method->options[i].name != NULL; i++) {
        text_puts(json, i > 0 ? "," : "");
        put_option(json, &method->options[i]);
    }
    text_puts(json, "]}");
}

void proto_methods_document(struct text *json)
{
    text_puts(json, "{\"methods\":[");
    for (int i = 0; i < method_count(); i++) {
        text_puts(json, i > 0 ? "," : "");
        put_method(json, method_at(i));
    }
    text_puts(json, "]}\n");
}
