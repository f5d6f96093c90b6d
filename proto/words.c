/* proto/words.c: pieces of messages: shapes, lists of names, a client's text made harmless.
 *
 * Any thread. Everything is returned by value and cut where it would grow too long.
 */
#include "proto/proto_private.h"

#include <stdio.h>
#include <string.h>

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Appends, or ends the words in "..." when there is no room left. */
static void add(struct proto__words *words, const char *piece)
{
    size_t used = strlen(words->text);
    size_t length = strlen(piece);
    if (used + length + 4 <= sizeof words->text) {
        memcpy(words->text + used, piece, length + 1);
        return;
    }
    if (used < 3 || strcmp(words->text + used - 3, "...") != 0)
        memcpy(words->text + used, "...", 4);
}

struct proto__words proto__shape_words(int rank, const int64_t *shape)
{
    struct proto__words words = {"["};
    for (int i = 0; i < rank; i++) {
        char number[24];
        snprintf(number, sizeof number, "%s%lld", i > 0 ? "," : "", (long long)shape[i]);
        add(&words, number);
    }
    add(&words, "]");
    return words;
}

static struct proto__words harmless_words(const char *text, size_t length, const char *harmful)
{
    struct proto__words words = {""};
    size_t max = 40;
    size_t used = 0;
    for (; used < length && used < max; used++) {
        char c = text[used];
        bool harmless = c >= ' ' && c <= '~' && strchr(harmful, c) == NULL;
        words.text[used] = harmless ? c : '?';
    }
    words.text[used] = '\0';
    if (length > max)
        add(&words, "...");
    return words;
}

struct proto__words proto__safe_words(const char *text, size_t length)
{
    return harmless_words(text, length, "\"\\<>");
}

struct proto__words proto__dtype_words(const char *text, size_t length)
{
    return harmless_words(text, length, "\"\\");
}

struct proto__words proto__lower_words(const char *name)
{
    struct proto__words words = {""};
    add(&words, name);
    for (char *c = words.text; *c != '\0'; c++)
        *c = lower(*c);
    return words;
}

/* marks: says which of them may be left out. */
static struct proto__words tensor_words(const struct method_tensor *tensors, bool in_lower,
                                        bool marks)
{
    struct proto__words words = {""};
    bool some_must = false;
    for (const struct method_tensor *tensor = tensors; tensor->name != NULL; tensor++)
        some_must = some_must || !tensor->optional;
    for (const struct method_tensor *tensor = tensors; tensor->name != NULL; tensor++) {
        if (tensor > tensors && strcmp(tensor[-1].name, tensor->name) == 0)
            continue; /* another shape of it */
        add(&words, tensor == tensors ? "" : ", ");
        add(&words, in_lower ? proto__lower_words(tensor->name).text : tensor->name);
        add(&words, marks && tensor->optional && some_must ? " (optional)" : "");
    }
    return words;
}

struct proto__words proto__input_words(const struct method *method, bool in_lower)
{
    return tensor_words(method->inputs, in_lower, true);
}

struct proto__words proto__output_words(const struct method *method, bool in_lower)
{
    return tensor_words(method->outputs, in_lower, false);
}

struct proto__words proto__dims_words(const struct method *method,
                                      const struct method_tensor *tensor, int lead_rank)
{
    struct proto__words words = {"["};
    const char *comma = "";
    if (lead_rank != 0) {
        add(&words, lead_rank == 1 ? "batch" : "...");
        comma = ",";
    }
    for (int d = 0; d < tensor->rank; d++) {
        add(&words, comma);
        add(&words, method_dim_name(method, tensor->dims[d]));
        comma = ",";
    }
    add(&words, "]");
    return words;
}

struct proto__words proto__input_shapes_words(const char *name)
{
    struct proto__words words = {""};
    for (int i = 0; i < method_count(); i++) {
        const struct method *method = method_at(i);
        int place = method_input_find(method, name);
        int shapes = place >= 0 ? method_input_shapes(method, place) : 0;
        for (int k = 0; k < shapes; k++) {
            add(&words, k == 0 ? "" : k == shapes - 1 ? " or " : ", ");
            add(&words, proto__dims_words(method, &method->inputs[place + k], 0).text);
        }
        if (shapes > 0)
            break;
    }
    return words;
}

static bool takes(const struct method *method, const char *name)
{
    return method_input_find(method, name) >= 0 || method_option_find(method, name) >= 0;
}

struct proto__words proto__takers_words(const char *name)
{
    struct proto__words words = {""};
    int takers = 0, named = 0;
    for (int i = 0; i < method_count(); i++)
        takers += takes(method_at(i), name);
    for (int i = 0; i < method_count(); i++) {
        if (!takes(method_at(i), name))
            continue;
        named++;
        add(&words, named == 1 ? ", which goes with method " : named == takers ? " or " : ", ");
        add(&words, method_at(i)->name);
    }
    return words;
}

bool proto__equals_ignoring_case(const char *name, const char *text, size_t length)
{
    if (strlen(name) != length)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (lower(name[i]) != lower(text[i]))
            return false;
    }
    return true;
}
