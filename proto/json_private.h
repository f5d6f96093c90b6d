/* proto/json_private.h: JSON whose matrices never become trees.
 *
 * Pass one (proto__scan) walks the text once, checks the nesting of the arrays of numbers that a
 * rule names, and lifts them out: what remains, the skeleton, has a small integer in place of each.
 * jansson, or for short and plain ones a reader of ours, parses the skeleton (proto__node_*). Pass
 * two (proto__lift_read) reads the numbers of a lifted array right into their place, once shape and
 * precision are known. Threads: pure functions of their arguments. Memory: at most
 * PROTO_SKELETON_MAX bytes of text, and the tree of PROTO_TOKENS_MAX tokens (3 MiB), from the heap.
 */
#ifndef PROTO_JSON_PRIVATE_H
#define PROTO_JSON_PRIVATE_H

#include "proto/proto.h"

#define PROTO_LIFTS_MAX (METHOD_INPUTS_MAX + 2)
#define PROTO_TOKENS_MAX 32768 /* strings, brackets, commas and colons in a skeleton */

/* An array of numbers in the text: from its '[' to behind its ']'. */
struct proto__lift {
    const char *begin, *end;
    int64_t skeleton_at; /* where its placeholder stands */
    int64_t count;       /* numbers */
    int rank;            /* levels of brackets; shape: entries in each */
    int64_t shape[PROTO_RANK_MAX];
};

struct proto__scan {
    const char *skeleton; /* in copy; where nothing was lifted, the text itself */
    size_t skeleton_bytes;
    struct text copy;
    struct proto__lift lifts[PROTO_LIFTS_MAX];
    int lift_count;
};

/* A member's name with its escapes resolved, not terminated. */
struct proto__name {
    const char *text;
    size_t length;
};
/* Whether the value of this member, in an object inside `depth` - 1 other containers, is to be
 * lifted. root: the root's member that it is part of; the member itself at depth 1. */
typedef bool proto__lift_rule(const void *context, int depth, struct proto__name root,
                              struct proto__name name);

/* The lifts point into text. proto__scan_free is due after a failure too. */
ERROR_MUST_CHECK enum error proto__scan(struct proto__scan *scan, const char *text, int64_t length,
                                        proto__lift_rule *rule, const void *context,
                                        struct failure *failure);
void proto__scan_free(struct proto__scan *scan);

/* What is no array stands where a matrix should: says so, and how to write one. */
ERROR_MUST_CHECK enum error proto__refuse_value(struct proto__name name, struct failure *failure);

/* Reads the numbers of a lifted array into out, in order. name: the tensor's, for messages. */
ERROR_MUST_CHECK enum error proto__lift_read(const struct proto__lift *lift,
                                             enum precision precision, const char *name, void *out,
                                             struct failure *failure);
/* The step of it, for an array found by proto__scan: one level of brackets after the other. name:
 * its member's, for messages; their bytes are counted from text. rank: levels that one matrix takes
 * of it; more are a batch. */
ERROR_MUST_CHECK enum error proto__lift_scan(struct proto__lift *lift, struct proto__name name,
                                             int rank, const char *text, const char *begin,
                                             const char *end, struct failure *failure);

/* ---- The parsed skeleton ---- */

struct proto__node; /* a JSON value; belongs to the root */

enum proto__node_kind {
    PROTO_NODE_NULL,
    PROTO_NODE_BOOL,
    PROTO_NODE_INTEGER,
    PROTO_NODE_REAL,
    PROTO_NODE_STRING,
    PROTO_NODE_ARRAY,
    PROTO_NODE_OBJECT
};

/* The skeleton's root, which is an object; MALFORMED says where in the text it breaks off. */
ERROR_MUST_CHECK enum error proto__node_parse(const struct proto__scan *scan,
                                              struct proto__node **root, struct failure *failure);
void proto__node_free(struct proto__node **root);

/* NULL where the node is NULL, no object, or has no such member. */
const struct proto__node *proto__node_member(const struct proto__node *node, const char *name);
/* NULL where the node is NULL, no array, or too short. */
const struct proto__node *proto__node_entry(const struct proto__node *node, int64_t index);
int64_t proto__node_length(const struct proto__node *node);             /* of an array; else 0 */
enum proto__node_kind proto__node_kind(const struct proto__node *node); /* node may be NULL: NULL */
/* "a list": a value that no option has; a STRING is then "so long a string". */
const char *proto__node_kind_words(const struct proto__node *node);
int64_t proto__node_integer(const struct proto__node *node); /* of INTEGER; else 0 */
bool proto__node_true(const struct proto__node *node);
const char *proto__node_string(const struct proto__node *node); /* of STRING; else NULL */

/* A BOOL, INTEGER, REAL or STRING as the text of an option's value, exactly; false for others,
 * and for what is longer. */
struct proto__scalar {
    char text[256];
};
bool proto__node_scalar(const struct proto__node *node, struct proto__scalar *scalar);

/* Calls each for every member until one does not return NONE; returns that. */
typedef enum error proto__node_each(void *context, const char *name,
                                    const struct proto__node *value, struct failure *failure);
ERROR_MUST_CHECK enum error proto__node_members(const struct proto__node *object,
                                                proto__node_each *each, void *context,
                                                struct failure *failure);

/* The array that stands where this placeholder does; NULL when it is none. */
const struct proto__lift *proto__node_lift(const struct proto__node *node,
                                           const struct proto__scan *scan);

#endif
