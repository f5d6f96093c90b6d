/* proto/bind.c: from the shapes of the posted tensors to n, m, batch and lead.
 *
 * Knows no method: what each input's dimensions mean stands in the descriptor. Everything that
 * later code multiplies has been checked for overflow here, so that the rest may take it for
 * granted. Any thread; no memory is taken.
 */
#include "proto/proto_private.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"

/* What a length was read from; all NULL: not known. */
struct source {
    const struct method_tensor *tensor;
    const struct proto_tensor *input;
};

struct binding {
    struct proto_request *request;
    uint32_t present;
    int lead_wanted;
    struct source n_from, m_from, lead_from;
};

static bool is_present(const struct binding *b, int input)
{
    return (b->present >> input & 1) != 0;
}

/* Present, and with no other shape to be taken for. */
static bool has_one_shape(const struct binding *b, int input)
{
    return is_present(b, input) && method_input_shapes(b->request->method, input) == 1;
}

const char *proto__called(const struct method_tensor *tensor, const struct proto_tensor *input)
{
    return input->called != NULL ? input->called : tensor->name;
}

static const char *source_called(struct source from)
{
    return proto__called(from.tensor, from.input);
}

/* A factor, n by m. Vectors are often given where it should have a column each. */
static bool is_thin(const struct method_tensor *tensor)
{
    return tensor->rank == 2 && tensor->dims[1] == METHOD_DIM_M;
}

/* Names a square, but is none. The input has the tensor's dimensions at least. */
static bool is_oblong(const struct method_tensor *tensor, const struct proto_tensor *input)
{
    const int64_t *own = input->shape + (input->rank - tensor->rank);
    return tensor->rank == 2 && tensor->dims[0] == tensor->dims[1] && own[0] != own[1];
}

int proto__sole_input(const struct method *method)
{
    int sole = -1;
    int count = method_input_count(method);
    for (int i = 0; i < count; i++) {
        if (method->inputs[i].optional)
            continue;
        if (sole >= 0)
            return -1;
        sole = i;
    }
    return sole >= 0 ? sole : method_input_find(method, "A");
}

/* How an input is written in the service's own JSON, where the word for it is not its name. */
static const char *json_hint(const struct binding *b, int input)
{
    const struct method *method = b->request->method;
    bool is_matrix = proto__sole_input(method) == input && method->inputs[input].rank == 2;
    return b->request->format == PROTO_FORMAT_JSON && is_matrix ? ", as in {\"matrix\": [[...]]}"
                                                                : "";
}

static enum error check_presence(const struct binding *b, struct failure *failure)
{
    const struct method *method = b->request->method;
    int count = method_input_count(method);
    for (int i = 0; i < count; i++) {
        if (!is_present(b, i) && !method->inputs[i].optional)
            return failure_set(failure, ERROR_MALFORMED, "input %s is missing; %s takes %s%s",
                               method->inputs[i].name, method->name,
                               proto__input_words(method, false).text, json_hint(b, i));
    }
    if (b->present == 0 && method->input_sets[0] == 0)
        return failure_set(failure, ERROR_MALFORMED, "no input is given; %s takes %s", method->name,
                           proto__input_words(method, false).text);
    return proto__check_inputs(method, b->present, failure);
}

/* The shape of an input whose vectors are columns: [2,8] as [2,8,1]; [8] as [8,1], or [1,8,1] where
 * a batch must come first. */
static struct proto__words column_words(const struct binding *b, const struct proto_tensor *input)
{
    int64_t shape[PROTO_RANK_MAX + 2] = {1};
    int rank = input->rank == 1 && b->lead_wanted != PROTO_LEAD_ANY;
    memcpy(shape + rank, input->shape, (size_t)input->rank * sizeof shape[0]);
    rank += input->rank;
    shape[rank++] = 1;
    return proto__shape_words(rank, shape);
}

static enum error check_rank(const struct binding *b, const struct method_tensor *tensor,
                             const struct proto_tensor *input, struct failure *failure)
{
    int lead_rank = input->rank - tensor->rank;
    for (int i = 0; i < input->rank; i++) {
        if (input->shape[i] < 0)
            return failure_set(
                failure, ERROR_BAD_SHAPE, "%s has shape %s: a dimension must not be negative",
                proto__called(tensor, input), proto__shape_words(input->rank, input->shape).text);
    }
    bool batched = b->lead_wanted != PROTO_LEAD_ANY;
    bool fits = b->lead_wanted >= 0 ? lead_rank == b->lead_wanted : lead_rank >= (int)batched;
    if (fits)
        return ERROR_NONE;
    struct proto__words shape = proto__shape_words(input->rank, input->shape);
    struct proto__words columns = column_words(b, input);
    bool thin = is_thin(tensor);
    if (lead_rank == 0 && batched && !is_oblong(tensor, input))
        return failure_set(failure, ERROR_BAD_SHAPE,
                           "%s has shape %s: a batch dimension must come first, %s; write [1%s%s "
                           "for one matrix%s%s%s",
                           proto__called(tensor, input), shape.text,
                           proto__dims_words(b->request->method, tensor, 1).text,
                           input->rank > 0 ? "," : "", shape.text + 1, thin ? ", or " : "",
                           thin ? columns.text : "", thin ? " for a batch with a column each" : "");
    thin = thin && lead_rank == -1;
    return failure_set(failure, ERROR_BAD_SHAPE, "%s has shape %s: it must be %s%s%s",
                       proto__called(tensor, input), shape.text,
                       proto__dims_words(b->request->method, tensor, batched ? 1 : -1).text,
                       thin ? "; a column is written " : "", thin ? columns.text : "");
}

/* Would a column for each vector of `from` have the batch of `other`? */
static bool are_vectors(struct source from, struct source other)
{
    bool same =
        is_thin(from.tensor) && other.input->rank - other.tensor->rank == from.input->rank - 1;
    for (int i = 0; same && i < from.input->rank - 1; i++)
        same = from.input->shape[i] == other.input->shape[i];
    return same;
}

/* The batch of an input is not that of the one before. */
static enum error refuse_lead(const struct binding *b, struct source from, struct failure *failure)
{
    struct source before = b->lead_from;
    int lead_rank = from.input->rank - from.tensor->rank;
    char hint[300] = "";
    const struct source *vectors = are_vectors(from, before)   ? &from
                                   : are_vectors(before, from) ? &before
                                                               : NULL;
    if (vectors != NULL)
        snprintf(hint, sizeof hint, "; a column for each matrix is %s, in NumPy %s[..., None]",
                 column_words(b, vectors->input).text,
                 proto__lower_words(vectors->tensor->name).text);
    return failure_set(
        failure, ERROR_BAD_SHAPE,
        "%s has shape %s, read as %s, and %s has shape %s, read as %s: all inputs "
        "must have the same batch, none is broadcast%s",
        source_called(from), proto__shape_words(from.input->rank, from.input->shape).text,
        proto__dims_words(b->request->method, from.tensor, lead_rank).text, source_called(before),
        proto__shape_words(before.input->rank, before.input->shape).text,
        proto__dims_words(b->request->method, before.tensor, b->request->lead_rank).text, hint);
}

static enum error bind_lead(struct binding *b, const struct method_tensor *tensor,
                            const struct proto_tensor *input, struct failure *failure)
{
    struct proto_request *request = b->request;
    int lead_rank = input->rank - tensor->rank;
    if (b->lead_from.tensor == NULL) {
        b->lead_from = (struct source){tensor, input};
        request->lead_rank = lead_rank;
        memcpy(request->lead, input->shape, (size_t)lead_rank * sizeof input->shape[0]);
        return ERROR_NONE;
    }
    bool same = request->lead_rank == lead_rank;
    for (int i = 0; same && i < lead_rank; i++)
        same = request->lead[i] == input->shape[i];
    return same ? ERROR_NONE : refuse_lead(b, (struct source){tensor, input}, failure);
}

/* Where n is looked for, one after the other: what is as long as the matrix, or has its shape, is
 * seldom given wrongly; factors may be transposed, and n - 1 gives n only where nothing else does.
 */
enum n_search {
    N_FROM_ORDER,
    N_FROM_FACTOR,
    N_FROM_N_MINUS_1,
    N_SEARCHES
};

static bool gives_n(const struct method_tensor *tensor, enum method_dim dim, enum n_search search)
{
    if (dim == METHOD_DIM_N)
        return search == (is_thin(tensor) ? N_FROM_FACTOR : N_FROM_ORDER);
    return dim == METHOD_DIM_N_MINUS_1 && search == N_FROM_N_MINUS_1;
}

/* Takes n and m from the dimensions of an input that name them, where they are not known yet. */
static enum error take_n_and_m(struct binding *b, struct source from, enum n_search search,
                               struct failure *failure)
{
    struct proto_request *request = b->request;
    for (int d = 0; d < from.tensor->rank; d++) {
        int64_t length = from.input->shape[from.input->rank - from.tensor->rank + d];
        enum method_dim dim = from.tensor->dims[d];
        if (dim == METHOD_DIM_M && b->m_from.tensor == NULL) {
            request->m = length;
            b->m_from = from;
        }
        if (b->n_from.tensor != NULL || !gives_n(from.tensor, dim, search))
            continue;
        if (!checked_add(length, dim == METHOD_DIM_N ? 0 : 1, &request->n))
            return failure_set(failure, ERROR_BAD_SHAPE, "%s has a dimension that overflows",
                               source_called(from));
        b->n_from = from;
    }
    return ERROR_NONE;
}

static enum error find_n_and_m(struct binding *b, struct failure *failure)
{
    const struct method_tensor *tensors = b->request->method->inputs;
    enum error error = ERROR_NONE;
    for (int search = 0; search < N_SEARCHES; search++) {
        for (int i = 0; error == ERROR_NONE && tensors[i].name != NULL; i++) {
            struct source from = {&tensors[i], &b->request->inputs[i]};
            if (has_one_shape(b, i))
                error = take_n_and_m(b, from, (enum n_search)search, failure);
        }
    }
    return error;
}

/* " with n = 8 (from A) and m = 2 (from X)": what the other inputs say of its lengths. */
static void put_known(const struct binding *b, const struct method_tensor *tensor,
                      const struct proto_tensor *input, struct text *words)
{
    const char *and = "";
    if (b->n_from.tensor != NULL && b->n_from.input != input) {
        text_printf(words, " with n = %lld (from %s)", (long long)b->request->n,
                    source_called(b->n_from));
        and = " and";
    }
    if (is_thin(tensor) && b->m_from.tensor != NULL && b->m_from.input != input)
        text_printf(words, "%s m = %lld (from %s)", and, (long long)b->request->m,
                    source_called(b->m_from));
}

/* "8,m": what an input's lengths must be; m where nothing else gives it. */
static void put_wanted(const struct binding *b, const struct method_tensor *tensor,
                       const struct proto_tensor *input, struct text *words)
{
    const struct proto_request *request = b->request;
    for (int d = 0; d < tensor->rank; d++) {
        enum method_dim dim = tensor->dims[d];
        text_puts(words, d > 0 ? "," : "");
        if (dim == METHOD_DIM_M && b->m_from.input == input)
            text_puts(words, method_dim_name(request->method, dim));
        else
            text_printf(words, "%lld",
                        (long long)method_dim_length(dim, request->n, request->m, NULL));
    }
}

static enum error check_dims(const struct binding *b, const struct method_tensor *tensor,
                             const struct proto_tensor *input, struct failure *failure)
{
    const struct proto_request *request = b->request;
    const int64_t *own = input->shape + (input->rank - tensor->rank);
    char known[160], wanted[80];
    struct text known_words, wanted_words;
    bool fits = true;
    for (int d = 0; d < tensor->rank; d++)
        fits = fits && own[d] == method_dim_length(tensor->dims[d], request->n, request->m, NULL);
    if (fits)
        return ERROR_NONE;
    text_init_fixed(&known_words, known, sizeof known);
    text_init_fixed(&wanted_words, wanted, sizeof wanted);
    put_known(b, tensor, input, &known_words);
    put_wanted(b, tensor, input, &wanted_words);
    return failure_set(failure, ERROR_BAD_SHAPE, "%s has shape %s:%s it must be [%s%s]",
                       proto__called(tensor, input),
                       proto__shape_words(input->rank, input->shape).text, known,
                       request->lead_rank > 0 ? "...," : "", wanted);
}

static enum error check_bytes(const struct proto_request *request,
                              const struct method_tensor *tensors, struct failure *failure)
{
    for (const struct method_tensor *tensor = tensors; tensor->name != NULL; tensor++) {
        int64_t bytes = method_tensor_bytes(tensor, request->precision, request->n, request->m,
                                            request->options);
        if (bytes < 0 || !checked_mul(bytes, request->batch, &bytes))
            return failure_set(failure, ERROR_BAD_SHAPE,
                               "the size of %s overflows: %lld matrices of order %lld",
                               tensor->name, (long long)request->batch, (long long)request->n);
    }
    return ERROR_NONE;
}

/* A shape without numbers costs its sender nothing, but its answer has an INFO for each matrix, or
 * brackets for each row of the batch; and where only m is 0, the service inverts what it was not
 * sent. So all the other lengths count. */
static enum error check_empty(const struct method_tensor *tensor, const struct proto_tensor *input,
                              struct failure *failure)
{
    int64_t count, others = 1;
    if (!proto__shape_count(input->rank, input->shape, &count))
        return failure_set(failure, ERROR_BAD_SHAPE, "%s has shape %s: its size overflows",
                           proto__called(tensor, input),
                           proto__shape_words(input->rank, input->shape).text);
    if (count > 0)
        return ERROR_NONE;
    for (int i = 0; i < input->rank; i++) {
        int64_t length = input->shape[i] > 0 ? input->shape[i] : 1;
        if (!checked_mul(others, length, &others) || others > PROTO_ELEMENTS_EMPTY_MAX)
            return failure_set(failure, ERROR_TOO_LARGE,
                               "%s has shape %s: a tensor without numbers may have at most %d "
                               "matrices, or rows in all of them",
                               proto__called(tensor, input),
                               proto__shape_words(input->rank, input->shape).text,
                               PROTO_ELEMENTS_EMPTY_MAX);
    }
    return ERROR_NONE;
}

static enum error check_sizes(const struct binding *b, struct failure *failure)
{
    struct proto_request *request = b->request;
    const struct method *method = request->method;
    if (!proto__shape_count(request->lead_rank, request->lead, &request->batch))
        return failure_set(failure, ERROR_BAD_SHAPE, "the batch %s overflows",
                           proto__shape_words(request->lead_rank, request->lead).text);
    enum error error = check_bytes(request, method->inputs, failure);
    if (error == ERROR_NONE)
        error = check_bytes(request, method->outputs, failure);
    if (error != ERROR_NONE)
        return error;
    if (request->n > method->n_max)
        return failure_set(failure, ERROR_TOO_LARGE,
                           "the matrices have order %lld; %s takes at most %lld",
                           (long long)request->n, method->name, (long long)method->n_max);
    if (request->m > method->n_max) /* m is n where no input gives it */
        return failure_set(
            failure, ERROR_TOO_LARGE,
            "%s has %lld columns (m); %s takes at most %lld. It is read as %s: is it transposed?",
            source_called(b->m_from), (long long)request->m, method->name, (long long)method->n_max,
            proto__dims_words(method, b->m_from.tensor, request->lead_rank).text);
    return ERROR_NONE;
}

/* Nor do matrices of order 0 cost their sender anything, of which some outputs have numbers. */
static enum error check_answer_to_nothing(const struct proto_request *request,
                                          struct failure *failure)
{
    for (int i = 0; request->n == 0 && i < request->output_count; i++) {
        const struct method_tensor *tensor = &request->method->outputs[request->outputs[i].index];
        int64_t numbers = request->batch;
        for (int d = 0; d < tensor->rank; d++) {
            int64_t length =
                method_dim_length(tensor->dims[d], request->n, request->m, request->options);
            if (!checked_mul(numbers, length, &numbers))
                numbers = INT64_MAX;
        }
        if (numbers > PROTO_ELEMENTS_EMPTY_MAX)
            return failure_set(failure, ERROR_TOO_LARGE,
                               "%s of %lld matrices of order 0 would have %lld numbers; it may "
                               "have at most %d",
                               tensor->name, (long long)request->batch, (long long)numbers,
                               PROTO_ELEMENTS_EMPTY_MAX);
    }
    return ERROR_NONE;
}

enum error proto_request_fit(struct proto_request *request, struct failure *failure)
{
    const struct method *method = request->method;
    for (int i = 0; i < METHOD_OPTIONS_MAX && method->options[i].name != NULL; i++) {
        if (method->options[i].kind != METHOD_OPTION_RANGE)
            continue;
        struct method_range range = method_range_unpack(request->options[i], request->n);
        if (range.end > request->n)
            return failure_set(failure, ERROR_BAD_OPTION,
                               "option %s: %lld:%lld reaches beyond the order, %lld; give "
                               "first:last, counted from 0, the last one excluded",
                               method->options[i].name, (long long)range.first,
                               (long long)range.end, (long long)request->n);
        if (range.first == 0 && range.end == request->n)
            request->options[i] = 0; /* one batch with those who gave no range */
    }
    enum error error = check_bytes(request, method->outputs, failure);
    return error == ERROR_NONE ? check_answer_to_nothing(request, failure) : error;
}

/* Where no input gives m, it is n. */
static void complete_m(struct binding *b)
{
    const struct method_tensor *tensors = b->request->method->inputs;
    bool has_m = false;
    for (int i = 0; tensors[i].name != NULL; i++) {
        for (int d = 0; d < tensors[i].rank; d++)
            has_m = has_m || tensors[i].dims[d] == METHOD_DIM_M;
    }
    if (has_m && b->m_from.tensor == NULL)
        b->request->m = b->request->n;
}

/* " (from X, read as [n,m])": the input that gave n; a factor may have been meant in another way.
 */
static struct proto__words n_from_words(const struct binding *b)
{
    struct proto__words words = {""};
    struct text text;
    struct source from = b->n_from;
    if (from.tensor == NULL)
        return words;
    text_init_fixed(&text, words.text, sizeof words.text);
    text_printf(&text, " (from %s", source_called(from));
    if (is_thin(from.tensor))
        text_printf(&text, ", read as %s",
                    proto__dims_words(b->request->method, from.tensor, b->request->lead_rank).text);
    text_puts(&text, ")");
    return words;
}

static enum error choose_shapes(struct binding *b, struct failure *failure)
{
    enum error error = ERROR_NONE;
    for (int i = 0; error == ERROR_NONE && b->request->method->inputs[i].name != NULL; i++) {
        if (is_present(b, i) && !has_one_shape(b, i))
            error = proto__choose_shape(b->request, b->present, i, n_from_words(b).text, failure);
    }
    return error;
}

typedef enum error each_input(struct binding *b, const struct method_tensor *tensor,
                              const struct proto_tensor *input, struct failure *failure);

/* several: those that may have several shapes too, whose own has been chosen. */
static enum error for_each_input(struct binding *b, bool several, each_input *each,
                                 struct failure *failure)
{
    const struct method_tensor *tensors = b->request->method->inputs;
    enum error error = ERROR_NONE;
    for (int i = 0; error == ERROR_NONE && tensors[i].name != NULL; i++) {
        if (has_one_shape(b, i) || (several && is_present(b, i)))
            error = each(b, &tensors[i + b->request->shapes[i]], &b->request->inputs[i], failure);
    }
    return error;
}

static enum error bind_rank(struct binding *b, const struct method_tensor *tensor,
                            const struct proto_tensor *input, struct failure *failure)
{
    enum error error = check_rank(b, tensor, input, failure);
    if (error == ERROR_NONE && is_oblong(tensor, input))
        return failure_set(
            failure, ERROR_BAD_SHAPE, "%s has shape %s: the last two dimensions must be equal",
            proto__called(tensor, input), proto__shape_words(input->rank, input->shape).text);
    return error == ERROR_NONE ? bind_lead(b, tensor, input, failure) : error;
}

static enum error bind_dims(struct binding *b, const struct method_tensor *tensor,
                            const struct proto_tensor *input, struct failure *failure)
{
    enum error error = check_dims(b, tensor, input, failure);
    return error == ERROR_NONE ? check_empty(tensor, input, failure) : error;
}

enum error proto__bind(struct proto_request *request, uint32_t present, int lead_rank,
                       struct failure *failure)
{
    struct binding b = {.request = request, .present = present, .lead_wanted = lead_rank};
    request->n = 0;
    request->m = 0;
    memset(request->shapes, 0, sizeof request->shapes);
    enum error error = check_presence(&b, failure);
    if (error == ERROR_NONE)
        error = for_each_input(&b, false, bind_rank, failure);
    if (error == ERROR_NONE)
        error = find_n_and_m(&b, failure);
    complete_m(&b);
    if (error == ERROR_NONE)
        error = choose_shapes(&b, failure);
    if (error == ERROR_NONE)
        error = for_each_input(&b, true, bind_rank, failure);
    if (error == ERROR_NONE)
        error = for_each_input(&b, true, bind_dims, failure);
    if (error == ERROR_NONE)
        error = check_sizes(&b, failure);
    if (error == ERROR_NONE)
        error = proto_request_fit(request, failure);
    return error;
}
