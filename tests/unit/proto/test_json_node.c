/* tests/unit/proto/test_json_node.c: short and plain texts, which are read without jansson, mean
 * what they mean to jansson, and what is neither short nor plain is left to it.
 *
 * A member with more values than the short reader takes makes jansson read the same text.
 */
#include "bench.h"

#include <float.h>
#include <stdlib.h>

#include "proto/json_private.h"
#include "proto/proto_private.h"

#define PADDING "padding"
#define PADDING_VALUES 64

/* ---- What the nodes say, as text ---- */

static void dump(struct text *out, const struct proto__node *node);

static enum error dump_member(void *context, const char *name, const struct proto__node *value,
                              struct failure *failure)
{
    struct text *out = context;
    (void)failure;
    if (strcmp(name, PADDING) == 0)
        return ERROR_NONE;
    text_printf(out, "%s=", name);
    dump(out, value);
    return ERROR_NONE;
}

static void dump(struct text *out, const struct proto__node *node)
{
    struct proto__scalar scalar;
    struct failure failure;
    const char *string = proto__node_string(node);
    bool plain = proto__node_scalar(node, &scalar);
    text_printf(out, "%d:%lld:%d:%s:%s:%lld", proto__node_kind(node),
                (long long)proto__node_integer(node), proto__node_true(node),
                string != NULL ? string : "-", plain ? scalar.text : "-",
                (long long)proto__node_length(node));
    text_puts(out, "(");
    for (int64_t i = 0; i < proto__node_length(node); i++)
        dump(out, proto__node_entry(node, i));
    if (proto__node_kind(node) == PROTO_NODE_OBJECT)
        assert_int_equal(proto__node_members(node, dump_member, out, &failure), ERROR_NONE);
    text_puts(out, ")");
    assert_null(proto__node_entry(node, proto__node_length(node)));
    assert_null(proto__node_entry(node, -1));
    assert_null(proto__node_member(node, "no such member"));
}

static bool lifts_nothing(const void *context, int depth, struct proto__name root,
                          struct proto__name name)
{
    (void)context;
    (void)depth;
    (void)root;
    (void)name;
    return false;
}

/* What the text says, or why it is refused. */
static void describe(struct text *out, const char *json, enum error *error)
{
    struct proto__scan scan;
    struct proto__node *root = NULL;
    struct failure failure = {0};
    *error = proto__scan(&scan, json, (int64_t)strlen(json), lifts_nothing, NULL, &failure);
    if (*error == ERROR_NONE)
        *error = proto__node_parse(&scan, &root, &failure);
    if (*error == ERROR_NONE)
        dump(out, root);
    else
        text_puts(out, failure.detail);
    proto__node_free(&root);
    proto__scan_free(&scan);
}

/* ---- The same text, to both ---- */

static const char *const texts[] = {
    "{}",
    " { } ",
    "{\"a\":1}",
    "{\"a\" : 0 , \"b\":[ ] ,\"c\": {}}\n",
    "{\"inputs\":[{\"name\":\"A\",\"shape\":[1,8,8],\"datatype\":\"FP64\","
    "\"parameters\":{\"binary_data_size\":512}}],\"parameters\":{\"binary_data_output\":true}}",
    "{\"t\":true,\"f\":false,\"n\":null,\"s\":\"\",\"z\":0,\"m\":999999999999999999}",
    "{\"a\":[1,[2,[3,[4]]],{\"b\":[{\"c\":\"~ !\"}]}],\"\":\"\"}",
    /* not plain: jansson's in any case */
    "{\"a\":-1,\"b\":1.5,\"c\":1e3,\"d\":9223372036854775807}",
    "{\"a\":1e-999,\"b\":\"1e-999\",\"c\":[2e-324,0e-999]}",
    "{\"a\":\"\\u00e4\\n\\\"\",\"b\\t\":\"\xc3\xa4\"}",
    "{\"a\":{\"b\":{\"c\":{\"d\":{\"e\":{\"f\":{\"g\":{\"h\":{\"i\":1}}}}}}}}}",
};

static void test_both_say_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct text said, expected, padded;
        enum error error;
        text_init(&said, 1 << 20);
        text_init(&expected, 1 << 20);
        text_init(&padded, 1 << 20);
        size_t length = (size_t)(strrchr(texts[i], '}') - texts[i]);
        bool empty = strchr(texts[i], '\"') == NULL;
        text_append(&padded, texts[i], length);
        text_puts(&padded, empty ? "" : ",");
        text_puts(&padded, "\"" PADDING "\":[0");
        for (int value = 1; value < PADDING_VALUES; value++)
            text_puts(&padded, ",0");
        text_puts(&padded, "]}");
        text_append(&padded, "", 1);
        describe(&said, texts[i], &error);
        assert_int_equal(error, ERROR_NONE);
        describe(&expected, padded.data, &error);
        assert_int_equal(error, ERROR_NONE);
        assert_int_equal(said.length, expected.length);
        assert_memory_equal(said.data, expected.data, said.length);
        text_free(&said);
        text_free(&expected);
        text_free(&padded);
    }
}

/* No number becomes 0 that is none. */
static void test_small_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        double value;
    } cases[] = {{"{\"\\\"1e-999\":3,\"a\":1e-999}", DBL_TRUE_MIN},
                 {"{\"a\":-0.001E-330,\"b\":0.5}", -DBL_TRUE_MIN},
                 {"{\"b\":[7e-400,\"\\\\\"],\"a\":2e-324}", DBL_TRUE_MIN},
                 {"{\"b\":2e-400,\"a\":0.0e-999}", 0},
                 {"{\"b\":2e-400,\"a\":1e-300}", 1e-300}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct proto__scan scan;
        struct proto__scalar scalar;
        struct proto__node *root;
        struct failure failure = {0};
        const char *json = cases[i].json;
        assert_int_equal(
            proto__scan(&scan, json, (int64_t)strlen(json), lifts_nothing, NULL, &failure),
            ERROR_NONE);
        assert_int_equal(proto__node_parse(&scan, &root, &failure), ERROR_NONE);
        assert_true(proto__node_scalar(proto__node_member(root, "a"), &scalar));
        assert_true(strtod(scalar.text, NULL) == cases[i].value);
        proto__node_free(&root);
        proto__scan_free(&scan);
    }
}

/* The words are jansson's: nothing that is no JSON is read without it. */
static const struct {
    const char *json, *fragment;
} refused[] = {
    {"", "malformed"},
    {"[1]", "must be an object"},
    {"{", "malformed at byte 1"},
    {"{\"a\":1,}", "malformed"},
    {"{\"a\":[1,]}", "malformed"},
    {"{\"a\":[1 2]}", "malformed"},
    {"{\"a\" 1}", "malformed"},
    {"{\"a\":01}", "malformed"},
    {"{\"a\":1x}", "malformed"},
    {"{\"a\":+1}", "malformed"},
    {"{\"a\":truex}", "malformed"},
    {"{\"a\":nul}", "malformed"},
    {"{\"a\":\"b}", "malformed"},
    {"{\"a\":\"\x01\"}", "malformed"},
    {"{\"a\":\"\xff\"}", "malformed"},
    {"{\"a\":1,\"a\":1}", "duplicate object key"},
    {"{\"a\":{\"b\":1,\"b\":1}}", "duplicate object key"},
    {"{\"a\":1}{}", "malformed"},
    {"{\"a\":1]", "malformed"},
    {"{a:1}", "malformed"},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct text said;
        enum error error;
        text_init(&said, 1 << 20);
        describe(&said, refused[i].json, &error);
        text_append(&said, "", 1);
        assert_int_equal(error, ERROR_MALFORMED);
        if (strstr(said.data, refused[i].fragment) == NULL)
            fail_msg("%s: %s", refused[i].json, said.data);
        text_free(&said);
    }
}

/* One more of everything than the short reader takes. */
static void test_borders(void **state)
{
    (void)state;
    struct text json, said;
    enum error error;
    for (int values = 30; values < 50; values++)
        for (int letters = 0; letters < 1000; letters += 91) {
            text_init(&json, 1 << 20);
            text_init(&said, 1 << 20);
            text_puts(&json, "{\"a\":[0");
            for (int i = 1; i < values; i++)
                text_puts(&json, ",0");
            text_puts(&json, "],\"b\":\"");
            for (int i = 0; i < letters; i++)
                text_puts(&json, "x");
            text_puts(&json, "\"}");
            text_append(&json, "", 1);
            describe(&said, json.data, &error);
            assert_int_equal(error, ERROR_NONE);
            text_append(&said, "", 1);
            char count[32];
            snprintf(count, sizeof count, "a=5:0:0:-:-:%d(", values);
            assert_non_null(strstr(said.data, count));
            text_free(&json);
            text_free(&said);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_say_the_same),
        cmocka_unit_test(test_small_numbers),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_borders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
