/* gpu/method.c: the registry of methods, and the hash by which front and engine know that they were
 * built from the same contract.
 *
 * The list comes from the file names in gpu/methods, sorted; that of algorithms from what the
 * descriptors name (build/gen, made by the Makefile).
 * Threads: everything is constant; any thread. Cost: linear in the few methods there are.
 */
#include "gpu/method.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "gpu/engine.h"

#define METHOD(name) &method_##name,
static const struct method *const registry[] = {
#include "method_list.inc"
};
#undef METHOD

#define REGISTRY_COUNT ((int)(sizeof registry / sizeof registry[0]))
_Static_assert(sizeof registry / sizeof registry[0] <= ENGINE_METHODS_MAX, "raise it");

static const char *const algorithm_names[METHOD_ALGORITHM_COUNT] = {
    [METHOD_ALGORITHM_NONE] = "none",
#define ALGORITHM(id, name) [METHOD_ALGORITHM_##id] = (name),
#include "method_algorithms.inc"
#undef ALGORITHM
};

int method_count(void)
{
    return REGISTRY_COUNT;
}

const struct method *method_at(int index)
{
    assert(index >= 0 && index < REGISTRY_COUNT);
    return registry[index];
}

const struct method *method_find(const char *name)
{
    for (int i = 0; i < REGISTRY_COUNT; i++) {
        if (strcmp(registry[i]->name, name) == 0)
            return registry[i];
    }
    return NULL;
}

int method_index(const struct method *method)
{
    for (int i = 0; i < REGISTRY_COUNT; i++) {
        if (registry[i] == method)
            return i;
    }
    assert(!"a method outside the registry");
    return -1;
}

static int tensor_count(const struct method_tensor *tensors)
{
    int count = 0;
    while (tensors[count].name)
        count++;
    return count;
}

static int tensor_find(const struct method_tensor *tensors, const char *name)
{
    for (int i = 0; tensors[i].name; i++) {
        if (strcasecmp(tensors[i].name, name) == 0)
            return i;
    }
    return -1;
}

int method_input_count(const struct method *method)
{
    return tensor_count(method->inputs);
}

int method_output_count(const struct method *method)
{
    return tensor_count(method->outputs);
}

int method_input_shapes(const struct method *method, int place)
{
    const struct method_tensor *tensor = &method->inputs[place];
    int shapes = 1;
    while (tensor[shapes].name && strcmp(tensor[shapes].name, tensor->name) == 0)
        shapes++;
    return shapes;
}

int method_input_find(const struct method *method, const char *name)
{
    return tensor_find(method->inputs, name);
}

int method_output_find(const struct method *method, const char *name)
{
    return tensor_find(method->outputs, name);
}

int method_option_find(const struct method *method, const char *name)
{
    for (int i = 0; method->options[i].name; i++) {
        if (strcmp(method->options[i].name, name) == 0)
            return i;
    }
    return -1;
}

int method_residual_find(const struct method *method, enum method_side side)
{
    return method_output_find(method, side == METHOD_LEFT ? "RESIDUAL_LEFT" : "RESIDUAL_RIGHT");
}

static bool is_square(const struct method_tensor *tensor)
{
    return tensor->rank == 2 && tensor->dims[0] == METHOD_DIM_N && tensor->dims[1] == METHOD_DIM_N;
}

bool method_takes_dense(const struct method *method)
{
    const struct method_tensor *inputs = method->inputs;
    if (strcmp(inputs[0].name, "A") != 0 || !is_square(&inputs[0]))
        return false;
    for (int i = 1; inputs[i].name; i++) {
        if (!inputs[i].optional)
            return false;
    }
    bool alone = method->input_sets[0] == 0;
    for (int s = 0; method->input_sets[s]; s++)
        alone = alone || method->input_sets[s] == METHOD_INPUT(0);
    return alone;
}

bool method_inverts_dense(const struct method *method)
{
    const struct method_tensor *first = &method->outputs[0];
    return method_takes_dense(method) && is_square(first) && strcmp(first->name, "INVERSE") == 0;
}

enum method_algorithm method_algorithm_of_all(const struct method *method)
{
    bool reports = method_output_find(method, "METHOD") >= 0;
    return reports ? METHOD_ALGORITHM_NONE : method->algorithms[0].id;
}

const char *method_algorithm_name(int algorithm)
{
    return algorithm_names[algorithm >= 0 && algorithm < METHOD_ALGORITHM_COUNT
                               ? algorithm
                               : METHOD_ALGORITHM_NONE];
}

void method_default_options(const struct method *method, int64_t options[METHOD_OPTIONS_MAX])
{
    memset(options, 0, METHOD_OPTIONS_MAX * sizeof *options);
    for (int i = 0; i < METHOD_OPTIONS_MAX && method->options[i].name; i++)
        options[i] = method->options[i].initial;
}

int64_t method_range_pack(struct method_range range)
{
    assert(range.first >= 0 && range.first < range.end && range.end <= METHOD_RANGE_MAX);
    return range.first << 32 | range.end;
}

struct method_range method_range_unpack(int64_t value, int64_t n)
{
    if (value == 0)
        return (struct method_range){0, n};
    return (struct method_range){value >> 32, value & METHOD_RANGE_MAX};
}

/* The option that a dimension depends on; -1: none. */
static int option_of(enum method_dim dim)
{
    if (dim >= METHOD_DIM_RANGE_FIRST)
        return (int)dim - METHOD_DIM_RANGE_FIRST;
    return dim >= METHOD_DIM_INT_FIRST ? (int)dim - METHOD_DIM_INT_FIRST : -1;
}

const char *method_dim_name(const struct method *method, enum method_dim dim)
{
    static const char *const names[] = {
        [METHOD_DIM_1] = "1",           [METHOD_DIM_4] = "4", [METHOD_DIM_N] = "n",
        [METHOD_DIM_N_MINUS_1] = "n-1", [METHOD_DIM_M] = "m",
    };
    int option = option_of(dim);
    return option >= 0 ? method->options[option].name : names[dim];
}

int64_t method_dim_length(enum method_dim dim, int64_t n, int64_t m, const int64_t *options)
{
    int option = option_of(dim);
    if (option >= 0) {
        assert(options && option < METHOD_OPTIONS_MAX);
        struct method_range range = method_range_unpack(options[option], n);
        return dim >= METHOD_DIM_RANGE_FIRST ? range.end - range.first : options[option];
    }
    switch (dim) {
    case METHOD_DIM_1:
        return 1;
    case METHOD_DIM_4:
        return 4;
    case METHOD_DIM_N:
        return n;
    case METHOD_DIM_N_MINUS_1:
        return n > 0 ? n - 1 : 0;
    case METHOD_DIM_M:
        return m;
    default:
        break;
    }
    assert(!"a dimension outside the enumeration");
    return -1;
}

int64_t method_tensor_bytes(const struct method_tensor *tensor, enum precision precision, int64_t n,
                            int64_t m, const int64_t *options)
{
    int64_t bytes = tensor->kind == METHOD_REAL ? precision_bytes(precision) : 4;
    for (int i = 0; i < tensor->rank; i++) {
        if (!checked_mul(bytes, method_dim_length(tensor->dims[i], n, m, options), &bytes))
            return -1;
    }
    return bytes;
}

/* ---- The contract's hash: 64-bit FNV-1a ---- */

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t length)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_number(uint64_t hash, uint64_t number)
{
    return hash_bytes(hash, &number, sizeof number);
}

/* The NUL goes in too, so that "a" "bc" and "ab" "c" differ. NULL hashes as "". */
static uint64_t hash_string(uint64_t hash, const char *string)
{
    return string ? hash_bytes(hash, string, strlen(string) + 1) : hash_bytes(hash, "", 1);
}

static uint64_t hash_real(uint64_t hash, double real)
{
    return hash_bytes(hash, &real, sizeof real);
}

static uint64_t hash_layout(uint64_t hash)
{
    static const size_t layout[] = {
        ENGINE_CONTRACT,
        METHOD_INPUTS_MAX,
        METHOD_OUTPUTS_MAX,
        METHOD_OPTIONS_MAX,
        METHOD_ALGORITHM_COUNT,
        METHOD_PROGRESS_WHOLE,
        PRECISION_COUNT,
        ENGINE_STATUS_COUNT,
        ENGINE_METHODS_MAX,
        ENGINE_BATCH_SLOTS,
        ENGINE_BATCH_ITEMS,
        sizeof(struct engine_tensor),
        offsetof(struct engine_tensor, region),
        sizeof(struct engine_item),
        offsetof(struct engine_item, inputs),
        offsetof(struct engine_item, outputs),
        sizeof(struct engine_batch),
        offsetof(struct engine_batch, method),
        offsetof(struct engine_batch, precision),
        offsetof(struct engine_batch, item_count),
        offsetof(struct engine_batch, sequence),
        offsetof(struct engine_batch, n),
        offsetof(struct engine_batch, m),
        offsetof(struct engine_batch, matrices),
        offsetof(struct engine_batch, options),
        offsetof(struct engine_batch, status),
        offsetof(struct engine_batch, unwanted),
        offsetof(struct engine_batch, progress),
        offsetof(struct engine_batch, waits),
        offsetof(struct engine_batch, started_ns),
        offsetof(struct engine_batch, kernel),
        offsetof(struct engine_batch, items),
        sizeof(struct engine_lane),
        offsetof(struct engine_lane, front_waits),
        offsetof(struct engine_lane, batches),
        sizeof(struct engine_shared),
        offsetof(struct engine_shared, arena_bytes),
        offsetof(struct engine_shared, n_max),
        offsetof(struct engine_shared, ready),
        offsetof(struct engine_shared, heartbeat),
        offsetof(struct engine_shared, lanes),
    };
    for (size_t i = 0; i < sizeof layout / sizeof layout[0]; i++)
        hash = hash_number(hash, layout[i]);
    return hash;
}

static uint64_t hash_tensors(uint64_t hash, const struct method_tensor *tensor)
{
    for (; tensor->name; tensor++) {
        hash = hash_string(hash, tensor->name);
        hash = hash_string(hash, tensor->help);
        hash = hash_number(hash, (uint64_t)tensor->kind);
        hash = hash_number(hash, (uint64_t)tensor->rank);
        for (int i = 0; i < tensor->rank; i++)
            hash = hash_number(hash, (uint64_t)tensor->dims[i]);
        hash = hash_number(hash, (uint64_t)tensor->optional * 8 + (uint64_t)tensor->is_default * 4 +
                                     (uint64_t)tensor->when_empty);
        hash = hash_number(hash, tensor->needs);
    }
    return hash_string(hash, NULL);
}

static uint64_t hash_method(uint64_t hash, const struct method *method)
{
    hash = hash_string(hash, method->name);
    hash = hash_string(hash, method->title);
    hash = hash_string(hash, method->when);
    hash = hash_tensors(hash, method->inputs);
    for (int i = 0; method->input_sets[i]; i++)
        hash = hash_number(hash, method->input_sets[i]);
    hash = hash_tensors(hash, method->outputs);
    for (const struct method_option *option = method->options; option->name; option++) {
        hash = hash_string(hash, option->name);
        hash = hash_string(hash, option->help);
        hash = hash_number(hash, (uint64_t)option->kind);
        hash = hash_string(hash, option->choices);
        hash = hash_real(hash, option->min);
        hash = hash_real(hash, option->max);
        hash = hash_number(hash, (uint64_t)option->initial);
    }
    for (const struct method_algorithm_row *row = method->algorithms; row->id; row++) {
        hash = hash_number(hash, (uint64_t)row->id);
        hash = hash_string(hash, row->help);
    }
    return hash_number(hash, (uint64_t)method->n_max);
}

uint64_t engine_contract_hash(void)
{
    uint64_t hash = hash_layout(UINT64_C(0xcbf29ce484222325));
    for (int i = 0; i < REGISTRY_COUNT; i++)
        hash = hash_method(hash, registry[i]);
    for (int i = 0; i < METHOD_ALGORITHM_COUNT; i++)
        hash = hash_string(hash, algorithm_names[i]);
    return hash;
}
