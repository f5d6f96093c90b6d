/* proto/input_shapes.c: inputs that go with only some others, and inputs that have several
 * shapes; see gpu/method.h.
 *
 * In a descriptor every shape of an input is an input of its own. A request names it once, and its
 * tensor is kept under the first of them while it is decoded; what the shapes of the others say of
 * batch, n and m then say which one it is, and at the end it moves there.
 *
 * Any thread; no memory is taken.
 */
#include "proto/proto_private.h"

#include <stdio.h>
#include <string.h>

/* The set with every input replaced by the first of its name. */
static uint32_t first_names(const struct method *method, uint32_t set)
{
    uint32_t names = 0;
    for (int i = 0; method->inputs[i].name != NULL; i++) {
        if ((set >> i & 1) != 0)
            names |= METHOD_INPUT(method_input_find(method, method->inputs[i].name));
    }
    return names;
}

/* The inputs that `present` lacks to be one of the method's sets; 0: no set has all of it. */
static uint32_t missing_names(const struct method *method, uint32_t present)
{
    for (int s = 0; method->input_sets[s] != 0; s++) {
        uint32_t names = first_names(method, method->input_sets[s]);
        if ((present & ~names) == 0)
            return names & ~present;
    }
    return 0;
}

/* "X, Y, A0" */
static void put_names(struct text *words, const struct method *method, uint32_t names)
{
    const char *comma = "";
    for (int i = 0; method->inputs[i].name != NULL; i++) {
        if ((names >> i & 1) == 0)
            continue;
        text_printf(words, "%s%s", comma, method->inputs[i].name);
        comma = ", ";
    }
}

/* The first input that is there and that the method takes only without others; 0: none. */
static uint32_t sole_name(const struct method *method, uint32_t present)
{
    for (int s = 0; method->input_sets[s] != 0; s++) {
        uint32_t names = first_names(method, method->input_sets[s]);
        if ((names & (names - 1)) == 0 && (names & present) != 0)
            return names;
    }
    return 0;
}

/* An input that stands alone comes with others, which may lack some that go with them. */
static void put_overlapped(struct text *words, const struct method *method, uint32_t sole,
                           uint32_t others)
{
    uint32_t missing = missing_names(method, others);
    put_names(words, method, sole);
    text_puts(words, " stands alone: leave it out");
    if (missing != 0) {
        text_puts(words, " and send ");
        put_names(words, method, missing);
        text_puts(words, " too");
    }
    text_puts(words, ", or leave out ");
    put_names(words, method, others);
    text_puts(words, ".");
}

/* What is wrong with the inputs that are there, to its full stop or semicolon. */
static void put_wrong(struct text *words, const struct method *method, uint32_t present)
{
    uint32_t sole = sole_name(method, present);
    uint32_t missing = missing_names(method, present);
    bool is_one = (missing & (missing - 1)) == 0;
    if (present == 0) {
        text_puts(words, "no input is given;");
    } else if (missing == 0 && sole != 0) {
        put_overlapped(words, method, sole, present & ~sole);
    } else if (missing == 0) {
        text_puts(words, "the inputs are ");
        put_names(words, method, present);
        text_puts(words, ";");
    } else {
        text_puts(words, is_one ? "input " : "inputs ");
        put_names(words, method, missing);
        text_puts(words, is_one ? " is missing next to " : " are missing next to ");
        put_names(words, method, present);
        text_puts(words, ";");
    }
}

enum error proto__check_inputs(const struct method *method, uint32_t present,
                               struct failure *failure)
{
    char wrong[120], taken[240];
    struct text words;
    uint32_t before = 0;
    if (method->input_sets[0] == 0)
        return ERROR_NONE;
    text_init_fixed(&words, taken, sizeof taken);
    for (int s = 0; method->input_sets[s] != 0; s++) {
        uint32_t names = first_names(method, method->input_sets[s]);
        if (names == present)
            return ERROR_NONE;
        if (names == before)
            continue;
        text_puts(&words, s > 0 ? "; or " : "");
        put_names(&words, method, names);
        before = names;
    }
    text_init_fixed(&words, wrong, sizeof wrong);
    put_wrong(&words, method, present);
    return failure_set(failure, ERROR_MALFORMED, "%s %s takes %s", wrong, method->name, taken);
}

/* May the input at `place` stand with the others that are present? */
static bool goes_with(const struct method *method, uint32_t present, int place)
{
    bool goes = method->input_sets[0] == 0;
    for (int s = 0; method->input_sets[s] != 0; s++) {
        uint32_t set = method->input_sets[s];
        goes = goes || ((set >> place & 1) != 0 && first_names(method, set) == present);
    }
    return goes;
}

static bool has_shape(const struct proto_request *request, const struct method_tensor *tensor,
                      const struct proto_tensor *input)
{
    bool same = input->rank == request->lead_rank + tensor->rank;
    for (int d = 0; same && d < tensor->rank; d++)
        same = input->shape[request->lead_rank + d] ==
               method_dim_length(tensor->dims[d], request->n, request->m, request->options);
    return same;
}

/* "; of that shape it is taken with ...": what one of the shape at `place` goes with, and
 * which of it is lacking. */
static void put_company(struct text *words, const struct method *method, uint32_t present,
                        int place)
{
    for (int s = 0; method->input_sets[s] != 0; s++) {
        if ((method->input_sets[s] >> place & 1) == 0)
            continue;
        uint32_t names = first_names(method, method->input_sets[s]);
        text_puts(words, "; of that shape it is taken with ");
        put_names(words, method, names);
        if ((present & ~names) == 0) {
            text_puts(words, ": send ");
            put_names(words, method, names & ~present);
            text_puts(words, " too");
            const char *instead = method->inputs[place].instead;
            if (instead != NULL)
                text_printf(words, ", or %s", instead);
        }
        return;
    }
}

enum error proto__choose_shape(struct proto_request *request, uint32_t present, int place,
                               const char *n_from, struct failure *failure)
{
    const struct method *method = request->method;
    const struct proto_tensor *input = &request->inputs[place];
    struct proto__words before = {""};
    char wanted[120], others[160];
    int64_t right[PROTO_RANK_MAX + METHOD_RANK_MAX];
    struct text words, more;
    text_init_fixed(&words, wanted, sizeof wanted);
    text_init_fixed(&more, others, sizeof others);
    for (int k = 0; k < method_input_shapes(method, place); k++) {
        const struct method_tensor *tensor = &method->inputs[place + k];
        if (!goes_with(method, present, place + k)) {
            if (has_shape(request, tensor, input))
                put_company(&more, method, present, place + k);
            continue;
        }
        request->shapes[place] = k;
        if (has_shape(request, tensor, input))
            return ERROR_NONE;
        memcpy(right, request->lead, (size_t)request->lead_rank * sizeof right[0]);
        for (int d = 0; d < tensor->rank; d++)
            right[request->lead_rank + d] =
                method_dim_length(tensor->dims[d], request->n, request->m, request->options);
        struct proto__words shape = proto__shape_words(request->lead_rank + tensor->rank, right);
        if (strcmp(shape.text, before.text) != 0) /* two shapes are one for n = 1 */
            text_printf(&words, "%s%s", before.text[0] != '\0' ? " or " : "", shape.text);
        before = shape;
    }
    return failure_set(failure, ERROR_BAD_SHAPE,
                       "%s has shape %s: next to these inputs it must be %s, for n = %lld%s%s",
                       proto__called(&method->inputs[place], input),
                       proto__shape_words(input->rank, input->shape).text, wanted,
                       (long long)request->n, n_from, others);
}

void proto__settle_inputs(struct proto_request *request)
{
    const struct method_tensor *tensors = request->method->inputs;
    for (int i = 0; tensors[i].name != NULL; i++) {
        if (request->shapes[i] == 0)
            continue;
        request->inputs[i + request->shapes[i]] = request->inputs[i];
        request->inputs[i] = (struct proto_tensor){0};
        request->shapes[i] = 0;
    }
}
