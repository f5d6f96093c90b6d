/* tests/unit/proto/test_documents.c: documents about methods, to the byte. */
#include "bench.h"

static void expect_text(struct text *text, const char *wanted)
{
    assert_false(text->failed);
    assert_string_equal(text->data, wanted);
    text_free(text);
}

static void test_metadata(void **state)
{
    (void)state;
    struct text text;
    text_init(&text, 1 << 16);
    proto_v2_metadata(method_find("auto"), &text);
    expect_text(&text,
                "{\"name\":\"auto\",\"versions\":[\"1\"],\"platform\":\"invertd\",\"inputs\":["
                "{\"name\":\"A\",\"datatype\":\"FP64\",\"shape\":[-1,-1,-1]}],\"outputs\":["
                "{\"name\":\"INVERSE\",\"datatype\":\"FP64\",\"shape\":[-1,-1,-1]},"
                "{\"name\":\"INFO\",\"datatype\":\"INT32\",\"shape\":[-1]},"
                "{\"name\":\"RCOND\",\"datatype\":\"FP64\",\"shape\":[-1]},"
                "{\"name\":\"METHOD\",\"datatype\":\"BYTES\",\"shape\":[-1]},"
                "{\"name\":\"RESIDUAL_LEFT\",\"datatype\":\"FP64\",\"shape\":[-1]},"
                "{\"name\":\"RESIDUAL_RIGHT\",\"datatype\":\"FP64\",\"shape\":[-1]}]}");
}

/* A constant dimension is reported; one that depends on an option varies. */
static void test_metadata_of_dims(void **state)
{
    (void)state;
    struct text text;
    text_init(&text, 1 << 16);
    proto_v2_metadata(&prototest_chain, &text);
    assert_false(text.failed);
    assert_non_null(strstr(text.data, "\"INVERSE\",\"datatype\":\"FP64\",\"shape\":[-1,-1,-1]}"));
    assert_non_null(strstr(text.data, "\"HISTORY\",\"datatype\":\"FP64\",\"shape\":[-1,-1,4]}"));
    text_free(&text);
}

static void test_config(void **state)
{
    (void)state;
    struct text text;
    text_init(&text, 1 << 16);
    proto_v2_config(&prototest_update, &text);
    assert_false(text.failed);
    static const char *const fragments[] = {
        "{\"name\":\"update\",\"platform\":\"invertd\",",
        "\"max_batch_size\":2147483647,",
        "{\"name\":\"A0\",\"data_type\":\"TYPE_FP64\",\"format\":\"FORMAT_NONE\",\"dims\":[-1],"
        "\"is_shape_tensor\":false,\"allow_ragged_batch\":false,\"optional\":true}",
        "{\"name\":\"INFO\",\"data_type\":\"TYPE_INT32\",\"dims\":[],",
        "\"dynamic_batching\":{}",
        "\"model_transaction_policy\":{\"decoupled\":false}",
        "\"response_cache\":{\"enable\":false}}",
    };
    for (size_t i = 0; i < sizeof fragments / sizeof fragments[0]; i++) {
        if (strstr(text.data, fragments[i]) == NULL)
            fail_msg("%s lacks %s", text.data, fragments[i]);
    }
    text_free(&text);
}

static void test_methods(void **state)
{
    (void)state;
    struct text text;
    text_init(&text, 1 << 16);
    proto_methods_document(&text);
    assert_false(text.failed);
    for (int i = 0; i < method_count(); i++) {
        char name[64];
        snprintf(name, sizeof name, "{\"name\":\"%s\",\"title\":\"", method_at(i)->name);
        assert_non_null(strstr(text.data, name));
    }
    static const char *const fragments[] = {
        "{\"methods\":[{",
        "\"inputs\":[{\"name\":\"A\",\"help\":\"matrices\",\"type\":\"real\",\"shape\":[\"batch\","
        "\"n\",\"n\"],\"optional\":false}]",
        "\"type\":\"int32\",\"shape\":[\"batch\"],\"default\":true}",
        "\"options\":[{\"name\":\"spd\",",
        "\"kind\":\"bool\",\"default\":false}]",
        "\"options\":[]}",
    };
    for (size_t i = 0; i < sizeof fragments / sizeof fragments[0]; i++) {
        if (strstr(text.data, fragments[i]) == NULL)
            fail_msg("%s lacks %s", text.data, fragments[i]);
    }
    text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_metadata_of_dims),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_methods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
