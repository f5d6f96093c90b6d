/* proto/json_node.c: the door to jansson, the only file that includes it.
 *
 * It parses skeletons: text of at most PROTO_SKELETON_MAX bytes, whose depth and count of values
 * proto__scan has bounded. A proto__node is a json_t under another name. Names given twice and
 * invalid UTF-8 are refused, texts of errors tell a place in the client's text and repeat none of
 * it. Any thread (jansson seeds its hash tables once, atomically).
 */
#include "proto/json_private.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "proto/proto_private.h"

static const json_t *as_json(const struct proto__node *node)
{
    return (const json_t *)(const void *)node;
}

static const struct proto__node *as_node(const json_t *json)
{
    return (const struct proto__node *)(const void *)json;
}

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
    json_error_t fault;
    json_t *json = json_loadb(scan->skeleton, scan->skeleton_bytes, JSON_REJECT_DUPLICATES, &fault);
    if (json == NULL && json_error_code(&fault) == json_error_out_of_memory)
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
    json_decref((json_t *)(void *)*root); /* NULL is allowed */
    *root = NULL;
}

const struct proto__node *proto__node_member(const struct proto__node *node, const char *name)
{
    return as_node(json_object_get(as_json(node), name));
}

const struct proto__node *proto__node_entry(const struct proto__node *node, int64_t index)
{
    return as_node(json_array_get(as_json(node), (size_t)index));
}

int64_t proto__node_length(const struct proto__node *node)
{
    return (int64_t)json_array_size(as_json(node));
}

enum proto__node_kind proto__node_kind(const struct proto__node *node)
{
    const json_t *json = as_json(node);
    if (json == NULL)
        return PROTO_NODE_NULL;
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

int64_t proto__node_integer(const struct proto__node *node)
{
    return (int64_t)json_integer_value(as_json(node));
}

bool proto__node_true(const struct proto__node *node)
{
    return json_is_true(as_json(node));
}

const char *proto__node_string(const struct proto__node *node)
{
    return json_string_value(as_json(node));
}

bool proto__node_scalar(const struct proto__node *node, struct proto__scalar *scalar)
{
    const json_t *json = as_json(node);
    int length = -1;
    switch (proto__node_kind(node)) {
    case PROTO_NODE_BOOL:
        length = snprintf(scalar->text, sizeof scalar->text, "%s",
                          json_is_true(json) ? "true" : "false");
        break;
    case PROTO_NODE_INTEGER:
        length = snprintf(scalar->text, sizeof scalar->text, "%lld",
                          (long long)json_integer_value(json));
        break;
    case PROTO_NODE_REAL:
        length = snprintf(scalar->text, sizeof scalar->text, "%.17g", json_real_value(json));
        break;
    case PROTO_NODE_STRING:
        length = snprintf(scalar->text, sizeof scalar->text, "%s", json_string_value(json));
        break;
    case PROTO_NODE_NULL:
    case PROTO_NODE_ARRAY:
    case PROTO_NODE_OBJECT:
        break;
    }
    return length >= 0 && (size_t)length < sizeof scalar->text;
}

enum error proto__node_members(const struct proto__node *object, proto__node_each *each,
                               void *context, struct failure *failure)
{
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
