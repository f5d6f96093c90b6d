/* proto/options.c: options and outputs by name, from a query string, a JSON body or v2 parameters.
 *
 * A method's own options come from its descriptor; the request's own stand in the table below. A
 * bit for each says that it was named, so that naming one twice is noticed wherever it was named.
 * Any thread; no memory is taken.
 */
#include "proto/proto_private.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/choices.h"
#include "base/number.h"

#define PRIORITY_LOWEST 3
#define TIMEOUT_MAX_US INT64_C(1000000000000) /* twelve days */

static enum error refuse(struct failure *failure, const char *name, const char *value,
                         const char *allowed)
{
    return failure_set(failure, ERROR_BAD_OPTION, "option %s: '%s' is not allowed; give %s", name,
                       proto__safe_words(value, strlen(value)).text, allowed);
}

/* A whole number in JSON's form. */
static bool read_integer(const char *text, int64_t *value)
{
    bool negative = *text == '-';
    const char *digit = text + negative;
    int64_t sum = 0;
    if (*digit == '\0' || (*digit == '0' && digit[1] != '\0'))
        return false;
    for (; *digit != '\0'; digit++) {
        if (*digit < '0' || *digit > '9' || __builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_sub_overflow(sum, *digit - '0', &sum))
            return false;
    }
    /* Summed below zero, where the range is larger by one. */
    if (!negative && sum == INT64_MIN)
        return false;
    *value = negative ? sum : -sum;
    return true;
}

/* What is too small for a double is the smallest there is: 0 may mean something else. */
static bool read_real(const char *text, double *value)
{
    const char *rest;
    const char *end = text + strlen(text);
    if (number_read_f64(text, end, &rest, value) != NUMBER_OK || rest != end)
        return false;
    if (number_vanished(text, rest, *value))
        *value = copysign(DBL_TRUE_MIN, *value);
    return true;
}

/* Decimal digits alone, up to the character `stop`. Returns what follows them; NULL: not so. */
static const char *read_index(const char *text, char stop, int64_t *index)
{
    int64_t sum = 0;
    const char *digit = text;
    for (; *digit >= '0' && *digit <= '9' && sum <= METHOD_RANGE_MAX; digit++)
        sum = 10 * sum + (*digit - '0');
    *index = sum;
    return digit > text && *digit == stop && sum <= METHOD_RANGE_MAX ? digit + 1 : NULL;
}

static bool read_range(const char *text, int64_t *travels)
{
    struct method_range range;
    const char *rest = read_index(text, ':', &range.first);
    if (rest == NULL || read_index(rest, '\0', &range.end) == NULL || range.first >= range.end)
        return false;
    *travels = method_range_pack(range);
    return true;
}

/* What may be given for an option, to be read after "give". */
struct allowed {
    char text[160];
};

static struct allowed allowed_values(const struct method_option *option)
{
    struct allowed allowed = {""};
    size_t size = sizeof allowed.text;
    switch (option->kind) {
    case METHOD_OPTION_BOOL:
        snprintf(allowed.text, size, "true or false (or 1, 0, yes, no, on, off)");
        break;
    case METHOD_OPTION_INT:
        snprintf(allowed.text, size, "a whole number from %.17g to %.17g", option->min,
                 option->max);
        break;
    case METHOD_OPTION_REAL:
        snprintf(allowed.text, size, "a number from %g to %g", option->min, option->max);
        break;
    case METHOD_OPTION_CHOICE:
        snprintf(allowed.text, size, "one of %s", option->choices);
        break;
    case METHOD_OPTION_RANGE:
        snprintf(allowed.text, size,
                 "first:last, both of them, first < last, counted from 0, the last one excluded");
        break;
    }
    return allowed;
}

/* JSON's numbers have digits before and behind the point. */
static bool has_bare_point(const char *text)
{
    const char *point = strchr(text, '.');
    return point != NULL && (point == text || point[-1] < '0' || point[-1] > '9' ||
                             point[1] < '0' || point[1] > '9');
}

static enum error refuse_method_option(const struct method_option *option, const char *value,
                                       struct failure *failure)
{
    struct allowed allowed = allowed_values(option);
    if (option->kind == METHOD_OPTION_REAL && has_bare_point(value))
        strncat(allowed.text, ", with a digit on either side of its point, as in 0.5",
                sizeof allowed.text - 1 - strlen(allowed.text));
    return refuse(failure, option->name, value, allowed.text);
}

static enum error set_method_option(struct proto_request *request, int index, const char *value,
                                    struct failure *failure)
{
    const struct method_option *option = &request->method->options[index];
    bool good = false, truth = false;
    double real = 0;
    int64_t travels = 0;
    switch (option->kind) {
    case METHOD_OPTION_BOOL:
        good = choices_read_bool(value, &truth);
        travels = truth;
        break;
    case METHOD_OPTION_INT:
        good = read_integer(value, &travels) && (double)travels >= option->min &&
               (double)travels <= option->max;
        break;
    case METHOD_OPTION_REAL:
        good = read_real(value, &real) && real >= option->min && real <= option->max;
        memcpy(&travels, &real, sizeof travels);
        break;
    case METHOD_OPTION_CHOICE:
        travels = choices_find(option->choices, value);
        good = travels >= 0;
        break;
    case METHOD_OPTION_RANGE:
        good = read_range(value, &travels);
        break;
    }
    if (!good)
        return refuse_method_option(option, value, failure);
    request->options[index] = travels;
    return ERROR_NONE;
}

/* ---- Outputs ---- */

static bool is_named(const char *output, const char *name, size_t length, bool any_case)
{
    if (any_case)
        return proto__equals_ignoring_case(output, name, length);
    return strlen(output) == length && memcmp(output, name, length) == 0;
}

/* Letters, digits and '_', as all names have them. */
static bool is_one_word(const char *name, size_t length)
{
    bool is_word = true;
    for (size_t i = 0; is_word && i < length; i++)
        is_word = name[i] == '_' || (name[i] >= '0' && name[i] <= '9') ||
                  (name[i] >= 'A' && name[i] <= 'Z') || (name[i] >= 'a' && name[i] <= 'z');
    return is_word;
}

enum error proto__add_output(struct proto_request *request, const char *name, size_t length,
                             bool binary, struct failure *failure)
{
    const struct method *method = request->method;
    bool in_lower = request->format != PROTO_FORMAT_V2 && request->format != PROTO_FORMAT_RAW;
    int count = method_output_count(method);
    int index = 0;
    while (index < count && !is_named(method->outputs[index].name, name, length, in_lower))
        index++;
    if (index == count)
        return failure_set(failure, ERROR_BAD_OPTION, "%s has no output '%s'; it has %s%s",
                           method->name, proto__safe_words(name, length).text,
                           proto__output_words(method, in_lower).text,
                           is_one_word(name, length) ? "" : "; names have commas between them");
    for (int i = 0; i < request->output_count; i++) {
        if (request->outputs[i].index == index)
            return failure_set(failure, ERROR_BAD_OPTION, "output %s is named twice",
                               method->outputs[index].name);
    }
    request->outputs[request->output_count++] = (struct proto_output){index, binary};
    return ERROR_NONE;
}

static enum error set_outputs(struct proto_request *request, const char *value, const char *allowed,
                              struct failure *failure)
{
    (void)allowed; /* the names that exist say more */
    request->output_count = 0;
    bool more = *value != '\0'; /* none named: the defaults */
    while (more) {
        size_t length = strcspn(value, ",");
        more = value[length] == ',';
        const char *name = value;
        size_t name_length = length;
        while (name_length > 0 && *name == ' ') {
            name++;
            name_length--;
        }
        while (name_length > 0 && name[name_length - 1] == ' ')
            name_length--;
        enum error error = proto__add_output(request, name, name_length, false, failure);
        if (error != ERROR_NONE)
            return error;
        value += length + 1;
    }
    proto__default_outputs(request, false);
    return ERROR_NONE;
}

/* ---- The request's own options ---- */

static enum error set_on_singular(struct proto_request *request, const char *value,
                                  const char *allowed, struct failure *failure)
{
    bool nan = strcmp(value, "nan") == 0;
    if (!nan && strcmp(value, "error") != 0)
        return refuse(failure, "on_singular", value, allowed);
    request->nan_on_singular = nan;
    return ERROR_NONE;
}

static enum error set_priority(struct proto_request *request, const char *value,
                               const char *allowed, struct failure *failure)
{
    int64_t priority;
    if (!read_integer(value, &priority) || priority < 0)
        return refuse(failure, "priority", value, allowed);
    request->priority = priority < PRIORITY_LOWEST ? (int)priority : PRIORITY_LOWEST;
    return ERROR_NONE;
}

static enum error set_timeout(struct proto_request *request, const char *value, const char *allowed,
                              struct failure *failure)
{
    int64_t timeout_us;
    if (!read_integer(value, &timeout_us) || timeout_us < 0 || timeout_us > TIMEOUT_MAX_US)
        return refuse(failure, "timeout", value, allowed);
    request->timeout_us = timeout_us;
    return ERROR_NONE;
}

static const struct {
    const char *name;
    unsigned scopes;
    bool is_text;        /* in JSON a string */
    const char *allowed; /* as allowed_values */
    enum error (*set)(struct proto_request *request, const char *value, const char *allowed,
                      struct failure *failure);
} request_options[] = {
    {"outputs", PROTO_SCOPE_V1, true,
     "names with commas between them, as in inverse,info; in JSON also a list of names",
     set_outputs},
    {"on_singular", PROTO_SCOPE_V1, true, "error or nan", set_on_singular},
    {"priority", PROTO_SCOPE_V1 | PROTO_SCOPE_V2, false,
     "0 (default, the same as 2), 1 (highest), 2, or more (lowest)", set_priority},
    {"timeout", PROTO_SCOPE_V1 | PROTO_SCOPE_V2, false,
     "a whole number of microseconds, 0 to 1000000000000", set_timeout},
};
#define REQUEST_OPTIONS ((int)(sizeof request_options / sizeof request_options[0]))

/* The row of an option of this name; -1: none. */
static int find_request_option(enum proto__scope scope, const char *name)
{
    for (int i = 0; i < REQUEST_OPTIONS; i++) {
        if ((request_options[i].scopes & scope) != 0 && strcmp(request_options[i].name, name) == 0)
            return i;
    }
    return -1;
}

/* An array that the method takes was given among the options. */
static enum error refuse_input(const struct proto_request *request, int place,
                               struct failure *failure)
{
    const struct method *method = request->method;
    const char *where = request->format == PROTO_FORMAT_JSON ? "next to \"options\""
                        : request->format == PROTO_FORMAT_V2 ? "in \"inputs\""
                                                             : "in an .npz with the others";
    return failure_set(failure, ERROR_BAD_OPTION,
                       "%s is an input of %s, not an option: give it as an array, %s",
                       method->inputs[place].name, method->name, where);
}

static enum error unknown(const struct proto_request *request, enum proto__scope scope,
                          const char *name, struct failure *failure)
{
    const struct method *method = request->method;
    int place = method_input_find(method, name);
    if (place >= 0)
        return refuse_input(request, place, failure);
    if (scope == PROTO_SCOPE_V1 && strcmp(name, "method") == 0)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "\"method\" stands next to \"options\", not in them");
    if (scope == PROTO_SCOPE_V1 && strcmp(name, "precision") == 0)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "precision goes into the JSON body, next to \"options\"; NPY and NPZ "
                           "arrays carry their own");
    if (scope == PROTO_SCOPE_V2 && strcmp(name, "on_singular") == 0)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "/v2 always answers NaN and says by INFO: leave on_singular out");
    if (scope == PROTO_SCOPE_V2 && strcmp(name, "outputs") == 0)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "outputs go into the request's \"outputs\", next to \"inputs\": "
                           "{\"outputs\": [{\"name\": \"%s\"}], ...}",
                           method->outputs[0].name);
    char known[200] = "";
    size_t used = 0;
    for (int i = 0; i < METHOD_OPTIONS_MAX && method->options[i].name != NULL; i++) {
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s, ",
                                     method->options[i].name);
    }
    for (int i = 0; i < REQUEST_OPTIONS; i++) {
        if ((request_options[i].scopes & scope) != 0 && used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s, ",
                                     request_options[i].name);
    }
    if (used < sizeof known)
        known[used - 2] = '\0'; /* the last comma; every scope has an option */
    return failure_set(failure, ERROR_BAD_OPTION, "%s has no option '%s'%s; it takes %s%s",
                       method->name, proto__safe_words(name, strlen(name)).text,
                       proto__takers_words(name).text, known,
                       scope == PROTO_SCOPE_V1 ? "; another method is named by \"method\"" : "");
}

enum error proto__refuse_option(const struct proto_request *request, enum proto__scope scope,
                                const char *name, const char *value, struct failure *failure)
{
    int index = method_option_find(request->method, name);
    int row = index >= 0 ? -1 : find_request_option(scope, name);
    bool is_text = row >= 0 && request_options[row].is_text;
    struct allowed allowed = {""};
    if (index < 0 && row < 0)
        return unknown(request, scope, name, failure);
    if (index >= 0) {
        const struct method_option *option = &request->method->options[index];
        is_text = option->kind == METHOD_OPTION_CHOICE || option->kind == METHOD_OPTION_RANGE;
        allowed = allowed_values(option);
    }
    return failure_set(failure, ERROR_BAD_OPTION, "option %s: %s is not allowed; give %s%s", name,
                       value, is_text ? "a string, " : "",
                       row >= 0 ? request_options[row].allowed : allowed.text);
}

/* Marks bit index in *set; false: it was set already. */
static bool mark(uint32_t *set, int index)
{
    uint32_t bit = UINT32_C(1) << index;
    bool first = (*set & bit) == 0;
    *set |= bit;
    return first;
}

static enum error refuse_second(struct failure *failure, const char *name, const char *allowed)
{
    return failure_set(failure, ERROR_BAD_OPTION, "option %s is given twice; give it once: %s",
                       name, allowed);
}

enum error proto__set_option(struct proto_request *request, enum proto__scope scope,
                             const char *name, const char *value, struct failure *failure)
{
    int index = method_option_find(request->method, name);
    int row = find_request_option(scope, name);
    if (index >= 0 && mark(&request->options_set, index))
        return set_method_option(request, index, value, failure);
    if (index >= 0)
        return refuse_second(failure, name, allowed_values(&request->method->options[index]).text);
    if (row < 0)
        return unknown(request, scope, name, failure);
    const char *allowed = request_options[row].allowed;
    if (!mark(&request->request_options_set, row))
        return refuse_second(failure, name, allowed);
    return request_options[row].set(request, value, allowed, failure);
}

enum error proto_request_option(struct proto_request *request, const char *name, const char *value,
                                struct failure *failure)
{
    return proto__set_option(request, PROTO_SCOPE_V1, name, value, failure);
}

enum error proto_request_stray(const struct proto_request *request, const char *name,
                               struct failure *failure)
{
    const bool all = strcmp(name, "options") == 0;
    if (!all && method_option_find(request->method, name) < 0 &&
        find_request_option(PROTO_SCOPE_V2, name) < 0)
        return ERROR_NONE;
    return failure_set(failure, ERROR_BAD_OPTION,
                       "%s cannot stand here: /v2 has its options in the JSON's \"parameters\", as "
                       "{\"parameters\": {\"%s\": ...}, \"inputs\": [...]}",
                       name, all ? "NAME" : name);
}
