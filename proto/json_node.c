/* proto/json_node.c: the door to jansson, the only file that includes it.
 *
 * It parses skeletons: text of at most PROTO_SKELETON_MAX bytes, whose depth and count of values
 * proto__scan has bounded. Names given twice and invalid UTF-8 are refused, texts of errors show a
 * place in the client's text and repeat none of it. Any thread (jansson seeds its hash tables once,
 * atomically).
 *
 * A proto__node is a json_t under another name, or a `struct brief`. The header of most requests is
 * short and plain: some twenty values, ASCII without escapes, whole numbers. A reader of our own
 * takes those into one block of memory, ten times as fast as a tree of hash tables is built; at
 * anything else (an escape, a fraction, a name given twice, an error, more than fits) it gives up,
 * and jansson reads the text from its beginning. So what is JSON, and what is said about it where
 * it is not, jansson alone decides.
 */
#include "proto/json_private.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/number.h"
#include "proto/proto_private.h"

#define BRIEF_VALUES_MAX 40
#define BRIEF_TEXT_MAX 768 /* bytes of all names and strings with their NULs */
#define BRIEF_DEPTH_MAX 8
#define BRIEF_DIGITS_MAX 18 /* of a number: fits an int64_t */
#define BRIEF_TYPE 99       /* no json_type */

/* A value of a short and plain text. */
struct brief {
    json_t head; /* its type distinguishes a brief from jansson's own values */
    enum proto__node_kind kind;
    int length;       /* entries or members */
    const char *name; /* of a member */
    struct brief *next;
    union {
        int64_t integer; /* also of BOOL */
        const char *string;
        struct brief *first; /* of ARRAY and OBJECT */
    };
};

/* The whole text; the root is the first value. */
struct brief_block {
    struct brief values[BRIEF_VALUES_MAX];
    int value_count;
    size_t text_used;
    char text[BRIEF_TEXT_MAX];
};

static const json_t *as_json(const struct proto__node *node)
{
    return (const json_t *)(const void *)node;
}

static const struct proto__node *as_node(const json_t *json)
{
    return (const struct proto__node *)(const void *)json;
}

/* NULL: it is jansson's, or NULL. */
static const struct brief *as_brief(const struct proto__node *node)
{
    const json_t *json = as_json(node);
    return json != NULL && (int)json->type == BRIEF_TYPE ? (const struct brief *)(const void *)json
                                                         : NULL;
}

static const struct proto__node *of_brief(const struct brief *value)
{
    return (const struct proto__node *)(const void *)value;
}

/* ---- The reader of short and plain texts: false, or NULL, wherever it gives up ---- */

struct reader {
    const char *at, *end;
    struct brief_block *block;
    int depth;
};

static void skip_blanks(struct reader *reader)
{
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\n' ||
                                        *reader->at == '\t' || *reader->at == '\r'))
        reader->at++;
}

/* Whether the next character, after blanks, is this one; it is passed then. */
static bool read_mark(struct reader *reader, char mark)
{
    skip_blanks(reader);
    if (reader->at == reader->end || *reader->at != mark)
        return false;
    reader->at++;
    return true;
}

/* What follows the opening quote. */
static const char *read_text(struct reader *reader)
{
    struct brief_block *block = reader->block;
    char *copy = block->text + block->text_used;
    size_t room = BRIEF_TEXT_MAX - block->text_used, length = 0;
    while (reader->at < reader->end && *reader->at >= ' ' && *reader->at <= '~' &&
           *reader->at != '"' && *reader->at != '\\' && length < room)
        copy[length++] = *reader->at++;
    if (reader->at == reader->end || *reader->at != '"' || length == room)
        return NULL;
    reader->at++;
    copy[length] = '\0';
    block->text_used += length + 1;
    return copy;
}

static bool read_number(struct reader *reader, struct brief *value)
{
    static const char behind[] = {',', ']', '}', ' ', '\n', '\t', '\r'};
    const char *from = reader->at;
    int64_t number = 0;
    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9' &&
           reader->at - from < BRIEF_DIGITS_MAX)
        number = number * 10 + (*reader->at++ - '0');
    value->kind = PROTO_NODE_INTEGER;
    value->integer = number;
    bool leading_zero = *from == '0' && reader->at - from > 1;
    /* Not a digit too many, nor a fraction or an exponent. */
    return reader->at > from && !leading_zero && reader->at < reader->end &&
           memchr(behind, *reader->at, sizeof behind) != NULL;
}

static bool read_word(struct reader *reader, struct brief *value)
{
    static const struct {
        const char *word;
        size_t length;
        enum proto__node_kind kind;
        int64_t integer;
    } words[] = {{"true", 4, PROTO_NODE_BOOL, 1},
                 {"false", 5, PROTO_NODE_BOOL, 0},
                 {"null", 4, PROTO_NODE_NULL, 0}};
    size_t left = (size_t)(reader->end - reader->at);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (left >= words[i].length && memcmp(reader->at, words[i].word, words[i].length) == 0) {
            reader->at += words[i].length;
            value->kind = words[i].kind;
            value->integer = words[i].integer;
            return true;
        }
    return false;
}

static const struct brief *find_member(const struct brief *object, const char *name)
{
    const struct brief *member = object->first;
    while (member != NULL && strcmp(member->name, name) != 0)
        member = member->next;
    return member;
}

static struct brief *read_value(struct reader *reader);

/* A name and its colon; NULL also where the object has the name already. */
static const char *read_name(struct reader *reader, const struct brief *object)
{
    const char *name = read_mark(reader, '"') ? read_text(reader) : NULL;
    bool good = name != NULL && find_member(object, name) == NULL && read_mark(reader, ':');
    return good ? name : NULL;
}

/* What follows the opening bracket. */
static bool read_container(struct reader *reader, struct brief *container, char close)
{
    struct brief **link = &container->first;
    bool object = close == '}';
    container->kind = object ? PROTO_NODE_OBJECT : PROTO_NODE_ARRAY;
    container->first = NULL;
    if (read_mark(reader, close))
        return true;
    do {
        const char *name = object ? read_name(reader, container) : NULL;
        struct brief *value = object && name == NULL ? NULL : read_value(reader);
        if (value == NULL)
            return false;
        value->name = name;
        *link = value;
        link = &value->next;
        container->length++;
    } while (read_mark(reader, ','));
    return read_mark(reader, close);
}

static bool read_into(struct reader *reader, struct brief *value)
{
    if (read_mark(reader, '{'))
        return read_container(reader, value, '}');
    if (read_mark(reader, '['))
        return read_container(reader, value, ']');
    if (read_mark(reader, '"')) {
        value->kind = PROTO_NODE_STRING;
        value->string = read_text(reader);
        return value->string != NULL;
    }
    if (reader->at == reader->end)
        return false;
    return *reader->at >= '0' && *reader->at <= '9' ? read_number(reader, value)
                                                    : read_word(reader, value);
}

static struct brief *read_value(struct reader *reader)
{
    struct brief_block *block = reader->block;
    if (block->value_count == BRIEF_VALUES_MAX || reader->depth == BRIEF_DEPTH_MAX)
        return NULL;
    struct brief *value = &block->values[block->value_count++];
    memset(value, 0, sizeof *value);
    value->head.type = (json_type)BRIEF_TYPE;
    reader->depth++;
    bool good = read_into(reader, value);
    reader->depth--;
    return good ? value : NULL;
}

/* The root of a short and plain text that is an object; NULL: jansson is to read it. */
static struct brief *read_brief(const char *text, size_t length)
{
    struct brief_block *block = malloc(sizeof *block);
    if (block == NULL)
        return NULL;
    block->value_count = 0;
    block->text_used = 0;
    struct reader reader = {.at = text, .end = text + length, .block = block};
    struct brief *root = read_value(&reader);
    skip_blanks(&reader);
    if (root != NULL && root->kind == PROTO_NODE_OBJECT && reader.at == reader.end)
        return root;
    free(block);
    return NULL;
}

/* ---- Numbers that are too small ---- */

/* Not a string: it has no end. No number that jansson reads as 0 by mistake is shorter. */
static const char smallest[] = {'5', 'e', '-', '3', '2', '4'};

/* A number that is too small for a double becomes the smallest there is, for 0 may mean something
 * else. What is no JSON is left to jansson. */
static void keep_from_zero(char *at, const char *end)
{
    double value;
    const char *rest;
    for (bool quoted = false; at < end; at++) {
        if (*at == '"') {
            quoted = !quoted;
        } else if (*at == '\\') {
            at++;
        } else if (!quoted && *at >= '0' && *at <= '9') {
            if (number_read_f64(at, end, &rest, &value) != NUMBER_OK)
                return;
            char *digits = at;
            at += rest - at - 1;
            if (number_vanished(digits, rest, value)) {
                memset(digits, ' ', (size_t)(rest - digits));
                memcpy(digits, smallest, sizeof smallest);
            }
        }
    }
}

/* ---- Parsing ---- */

/* From a place in the skeleton to the same place in the client's text. */
static long long place_in_text(const struct proto__scan *scan, int64_t at)
{
    int64_t place = at;
    for (int i = 0; i < scan->lift_count; i++) {
        const struct proto__lift *lift = &scan->lifts[i];
        if (lift->skeleton_at < at)
            place += lift->end - lift->begin - 1;
    }
    return (long long)place;
}

enum error proto__node_parse(const struct proto__scan *scan, struct proto__node **root,
                             struct failure *failure)
{
    struct brief *brief = read_brief(scan->skeleton, scan->skeleton_bytes);
    if (brief != NULL) {
        *root = (struct proto__node *)(void *)brief;
        return ERROR_NONE;
    }
    const size_t length = scan->skeleton_bytes;
    char *copy = malloc(length + 1);
    json_error_t fault;
    json_t *json = NULL;
    if (copy != NULL) {
        memcpy(copy, scan->skeleton, length);
        keep_from_zero(copy, copy + length);
        json = json_loadb(copy, length, JSON_REJECT_DUPLICATES, &fault);
        free(copy);
    }
    if (copy == NULL || (json == NULL && json_error_code(&fault) == json_error_out_of_memory))
        return failure_set(failure, ERROR_FULL, "out of memory for the JSON text");
    if (json == NULL) {
        char *near = strstr(fault.text, " near ");
        if (near != NULL)
            *near = '\0'; /* what follows is the client's */
        return failure_set(failure, ERROR_MALFORMED, "the JSON is malformed at byte %lld: %s",
                           place_in_text(scan, fault.position), fault.text);
    }
    if (!json_is_object(json)) {
        json_decref(json);
        return failure_set(failure, ERROR_MALFORMED, "the JSON must be an object: { ... }");
    }
    *root = (struct proto__node *)(void *)json;
    return ERROR_NONE;
}

void proto__node_free(struct proto__node **root)
{
    if (as_brief(*root) != NULL)
        free(*root); /* the block begins with it */
    else
        json_decref((json_t *)(void *)*root); /* NULL is allowed */
    *root = NULL;
}

/* ---- Looking around ---- */

const struct proto__node *proto__node_member(const struct proto__node *node, const char *name)
{
    const struct brief *brief = as_brief(node);
    if (brief == NULL)
        return as_node(json_object_get(as_json(node), name));
    return brief->kind == PROTO_NODE_OBJECT ? of_brief(find_member(brief, name)) : NULL;
}

const struct proto__node *proto__node_entry(const struct proto__node *node, int64_t index)
{
    const struct brief *brief = as_brief(node);
    if (brief == NULL)
        return as_node(json_array_get(as_json(node), (size_t)index));
    if (brief->kind != PROTO_NODE_ARRAY || index < 0 || index >= brief->length)
        return NULL;
    const struct brief *entry = brief->first;
    while (index-- > 0)
        entry = entry->next;
    return of_brief(entry);
}

int64_t proto__node_length(const struct proto__node *node)
{
    const struct brief *brief = as_brief(node);
    if (brief == NULL)
        return (int64_t)json_array_size(as_json(node));
    return brief->kind == PROTO_NODE_ARRAY ? brief->length : 0;
}

enum proto__node_kind proto__node_kind(const struct proto__node *node)
{
    const json_t *json = as_json(node);
    if (json == NULL)
        return PROTO_NODE_NULL;
    if (as_brief(node) != NULL)
        return as_brief(node)->kind;
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        return PROTO_NODE_OBJECT;
    case JSON_ARRAY:
        return PROTO_NODE_ARRAY;
    case JSON_STRING:
        return PROTO_NODE_STRING;
    case JSON_INTEGER:
        return PROTO_NODE_INTEGER;
    case JSON_REAL:
        return PROTO_NODE_REAL;
    case JSON_TRUE:
    case JSON_FALSE:
        return PROTO_NODE_BOOL;
    case JSON_NULL:
        break;
    }
    return PROTO_NODE_NULL;
}

const char *proto__node_kind_words(const struct proto__node *node)
{
    static const char *const words[] = {[PROTO_NODE_NULL] = "null",
                                        [PROTO_NODE_BOOL] = "true or false",
                                        [PROTO_NODE_INTEGER] = "a number",
                                        [PROTO_NODE_REAL] = "a number",
                                        [PROTO_NODE_STRING] = "so long a string",
                                        [PROTO_NODE_ARRAY] = "a list",
                                        [PROTO_NODE_OBJECT] = "an object"};
    return words[proto__node_kind(node)];
}

int64_t proto__node_integer(const struct proto__node *node)
{
    const struct brief *brief = as_brief(node);
    if (brief == NULL)
        return (int64_t)json_integer_value(as_json(node));
    return brief->kind == PROTO_NODE_INTEGER ? brief->integer : 0;
}

bool proto__node_true(const struct proto__node *node)
{
    const struct brief *brief = as_brief(node);
    if (brief == NULL)
        return json_is_true(as_json(node));
    return brief->kind == PROTO_NODE_BOOL && brief->integer != 0;
}

const char *proto__node_string(const struct proto__node *node)
{
    const struct brief *brief = as_brief(node);
    if (brief == NULL)
        return json_string_value(as_json(node));
    return brief->kind == PROTO_NODE_STRING ? brief->string : NULL;
}

/* In as few digits as read back to the value, which is how people write it. */
static int put_real(struct proto__scalar *scalar, double value)
{
    int length = 0;
    for (int digits = DBL_DIG; digits <= DBL_DECIMAL_DIG; digits++) {
        const char *rest;
        double back;
        length = snprintf(scalar->text, sizeof scalar->text, "%.*g", digits, value);
        if (length < 0 || (size_t)length >= sizeof scalar->text)
            break;
        if (number_read_f64(scalar->text, scalar->text + length, &rest, &back) == NUMBER_OK &&
            back == value)
            break;
    }
    return length;
}

bool proto__node_scalar(const struct proto__node *node, struct proto__scalar *scalar)
{
    int length = -1;
    switch (proto__node_kind(node)) {
    case PROTO_NODE_BOOL:
        length = snprintf(scalar->text, sizeof scalar->text, "%s",
                          proto__node_true(node) ? "true" : "false");
        break;
    case PROTO_NODE_INTEGER:
        length = snprintf(scalar->text, sizeof scalar->text, "%lld",
                          (long long)proto__node_integer(node));
        break;
    case PROTO_NODE_REAL:
        length = put_real(scalar, json_real_value(as_json(node)));
        break;
    case PROTO_NODE_STRING:
        length = snprintf(scalar->text, sizeof scalar->text, "%s", proto__node_string(node));
        break;
    case PROTO_NODE_NULL:
    case PROTO_NODE_ARRAY:
    case PROTO_NODE_OBJECT:
        break;
    }
    return length >= 0 && (size_t)length < sizeof scalar->text;
}

static enum error brief_members(const struct brief *object, proto__node_each *each, void *context,
                                struct failure *failure)
{
    const struct brief *member = object->kind == PROTO_NODE_OBJECT ? object->first : NULL;
    enum error error = ERROR_NONE;
    for (; error == ERROR_NONE && member != NULL; member = member->next)
        error = each(context, member->name, of_brief(member), failure);
    return error;
}

enum error proto__node_members(const struct proto__node *object, proto__node_each *each,
                               void *context, struct failure *failure)
{
    if (as_brief(object) != NULL)
        return brief_members(as_brief(object), each, context, failure);
    json_t *json = (json_t *)(void *)(uintptr_t)(const void *)object;
    enum error error = ERROR_NONE;
    for (void *member = json_object_iter(json); error == ERROR_NONE && member != NULL;
         member = json_object_iter_next(json, member))
        error = each(context, json_object_iter_key(member), as_node(json_object_iter_value(member)),
                     failure);
    return error;
}

const struct proto__lift *proto__node_lift(const struct proto__node *node,
                                           const struct proto__scan *scan)
{
    int64_t index = proto__node_integer(node);
    if (proto__node_kind(node) != PROTO_NODE_INTEGER || index < 0 || index >= scan->lift_count)
        return NULL;
    return &scan->lifts[index];
}
