/* handlers/inference/outputs.c: memory for an item's outputs, and the outputs that need no engine.
 * See item.h. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "handlers/inference/item_private.h"

#define ANSWER_TAKES_BYTES 256 /* lost to alignment when an encoder takes its memory in pieces */

/* Single numbers always are, but for one that takes work of its own. What is asked for needs
 * others, which an engine makes it of. */
static bool is_wanted(const struct proto_request *request, int output)
{
    const struct method_tensor *outputs = request->method->outputs;
    if (outputs[output].rank == 0 && !outputs[output].optional)
        return true;
    for (int i = 0; i < request->output_count; i++) {
        const int named = request->outputs[i].index;
        if (named == output || (outputs[named].needs >> output & 1) != 0)
            return true;
    }
    return false;
}

int64_t handlers__item_output_bytes(const struct proto_request *request, int output)
{
    assert(output >= 0 && output < METHOD_OUTPUTS_MAX);
    if (!is_wanted(request, output))
        return 0;
    int64_t one = method_tensor_bytes(&request->method->outputs[output], request->precision,
                                      request->n, request->m, request->options);
    int64_t all;
    if (one < 0 || !checked_mul(one, request->batch, &all) ||
        !checked_round_up(all, HANDLERS_MEMORY_ALIGN, &all))
        return -1;
    return all;
}

/* Whether a part of the inverse may be asked for. */
static bool has_ranges(const struct method *method)
{
    for (int i = 0; i < METHOD_OPTIONS_MAX && method->options[i].name != NULL; i++)
        if (method->options[i].kind == METHOD_OPTION_RANGE)
            return true;
    return false;
}

enum error handlers__item_memory_failure(const struct item *item, struct failure *failure)
{
    const struct proto_request *request = &item->request;
    enum error error = handlers__memory_failure(&item->memory, failure);
    bool by_arena = error == ERROR_TOO_LARGE && item->memory.wanted_bytes > 0;
    if (!by_arena || request->batch != 1)
        return error;
    return failure_set(failure, ERROR_TOO_LARGE,
                       "The matrix and its answer need at least %lld bytes, the whole arena has "
                       "%llu; %sstart invertd with a larger --arena-size.",
                       (long long)item->memory.wanted_bytes,
                       (unsigned long long)arena_bytes(item->memory.arena),
                       has_ranges(request->method)
                           ? "ask for a part of the inverse (rows, columns), for its diagonal "
                             "alone (outputs), or "
                           : "");
}

uint32_t handlers__item_wanted(const struct proto_request *request)
{
    uint32_t wanted = 0;
    for (int i = 0; i < method_output_count(request->method); i++)
        wanted |= (uint32_t)is_wanted(request, i) << i;
    return wanted;
}

enum error handlers__item_check(const struct item *item, struct failure *failure)
{
    assert(item->state == ITEM_DECODED);
    const struct proto_request *request = &item->request;
    if (request->n <= request->method->n_max)
        return ERROR_NONE;
    return failure_set(failure, ERROR_TOO_LARGE, "The order is %lld; this method takes up to %lld.",
                       (long long)request->n, (long long)request->method->n_max);
}

enum error handlers__item_take_outputs(struct item *item, struct failure *failure)
{
    return handlers__item_take_some_outputs(item, 0, failure);
}

enum error handlers__item_take_some_outputs(struct item *item, uint32_t left_out,
                                            struct failure *failure)
{
    const struct proto_request *request = &item->request;
    struct item_memory *memory = &item->memory;
    enum error error = handlers__item_check(item, failure);
    if (error != ERROR_NONE)
        return error;
    const uint32_t taken = handlers__item_wanted(request) & ~left_out;
    int64_t bytes[METHOD_OUTPUTS_MAX];
    int64_t total = proto_answer_bound(request);
    bool fits = checked_add(total, ANSWER_TAKES_BYTES, &total);
    int count = method_output_count(request->method);
    for (int i = 0; i < count && fits; i++) {
        bytes[i] = (taken >> i & 1) != 0 ? handlers__item_output_bytes(request, i) : 0;
        fits = checked_add(total, bytes[i], &total);
    }
    if (!fits)
        return failure_set(failure, ERROR_TOO_LARGE,
                           "The answer would be too large; send fewer matrices at once.");
    if (!handlers__memory_reserve(memory, total))
        return handlers__item_memory_failure(item, failure);
    item->answer_max_bytes = total;
    for (int i = 0; i < count; i++)
        if ((taken >> i & 1) != 0)
            item->outputs[i] = handlers__memory_take(memory, bytes[i]);
    handlers__item_move(item, ITEM_READY);
    return ERROR_NONE;
}

/* What an output of a matrix of order 0 has as its number `at`, its rows having `columns`. */
static double number_when_empty(enum method_empty when_empty, int64_t at, int64_t columns)
{
    if (when_empty == METHOD_EMPTY_IDENTITY)
        return at % (columns + 1) == 0;
    if (when_empty == METHOD_EMPTY_ONE_ZERO)
        return at == 0 ? 0 : (double)NAN;
    return when_empty == METHOD_EMPTY_ONES;
}

/* An output of order 0, of REALs, for every matrix of the request. */
static void fill_empty(const struct proto_request *request, int output, void *numbers)
{
    const struct method_tensor *tensor = &request->method->outputs[output];
    int64_t unit = precision_bytes(request->precision);
    int64_t count =
        method_tensor_bytes(tensor, request->precision, 0, request->m, request->options) / unit;
    int64_t columns = 1;
    if (tensor->rank > 0)
        columns =
            method_dim_length(tensor->dims[tensor->rank - 1], 0, request->m, request->options);
    for (int64_t i = 0; i < request->batch * count; i++) {
        double number = number_when_empty(tensor->when_empty, i % count, columns);
        if (request->precision == PRECISION_FP32)
            ((float *)numbers)[i] = (float)number;
        else
            ((double *)numbers)[i] = number;
    }
}

bool handlers__item_needs_engine(const struct item *item)
{
    assert(item->state == ITEM_READY);
    return item->request.batch > 0 && item->request.n > 0;
}

void handlers__item_fill_empty(struct item *item)
{
    assert(!handlers__item_needs_engine(item));
    const struct proto_request *request = &item->request;
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++) {
        if (item->outputs[i] == NULL)
            continue;
        memset(item->outputs[i], 0, (size_t)handlers__item_output_bytes(request, i));
        if (request->n == 0 && request->method->outputs[i].when_empty != METHOD_EMPTY_ZEROS)
            fill_empty(request, i, item->outputs[i]);
    }
    static const char no_kernel[] = "none";
    memcpy(item->queued.kernel, no_kernel, sizeof no_kernel);
    handlers__item_move(item, ITEM_DONE);
}

int64_t handlers__item_answer_max_bytes(const struct item *item)
{
    assert(item->state >= ITEM_READY);
    return item->answer_max_bytes;
}

void *const *handlers__item_outputs(const struct item *item)
{
    return item->outputs;
}
