/* tests/unit/base/test_text.c: growth, limits, JSON strings and numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static void test_append(void **state)
{
    (void)state;
    struct text text;
    text_init(&text, 1000);
    assert_null(text.data);
    text_puts(&text, "ab");
    text_append(&text, NULL, 0);
    text_append(&text, "c\0d", 3);
    text_printf(&text, "%d-%s", 42, "x");
    assert_int_equal(text.length, 9);
    assert_memory_equal(text.data, "abc\0d42-x", 10);
    assert_false(text.failed);
    text_free(&text);
    assert_null(text.data);
    assert_int_equal(text.limit, 1000);
    text_puts(&text, "again");
    assert_string_equal(text.data, "again");
    text_free(&text);
}

static void test_growth(void **state)
{
    (void)state;
    struct text text;
    text_init(&text, SIZE_MAX);
    char *expected = calloc(1, 200001);
    assert_non_null(expected);
    for (int i = 0; i < 20000; i++) {
        text_printf(&text, "%09d,", i);
        snprintf(expected + 10 * i, 11, "%09d,", i);
    }
    assert_int_equal(text.length, 200000);
    assert_memory_equal(text.data, expected, 200001);
    assert_true(text.capacity < 600000);
    free(expected);
    text_free(&text);
}

/* Exactly the limit fits; one byte more fails, changes nothing, and so does all that follows. */
static void test_limit(void **state)
{
    (void)state;
    for (int printed = 0; printed < 2; printed++) {
        struct text text;
        text_init(&text, 10);
        text_puts(&text, "0123456");
        text_puts(&text, "789");
        assert_false(text.failed);
        if (printed)
            text_printf(&text, "%s", "x");
        else
            text_puts(&text, "x");
        assert_true(text.failed);
        text_append(&text, "", 0);
        text_json_number(&text, 1);
        assert_string_equal(text.data, "0123456789");
        text_free(&text);
        assert_false(text.failed);
    }
}

static void test_printf_past_limit(void **state)
{
    (void)state;
    struct text text;
    text_init(&text, 300);
    text_puts(&text, "head");
    text_printf(&text, "%500d", 1);
    assert_true(text.failed);
    assert_int_equal(text.length, 4);
    assert_string_equal(text.data, "head");
    text_free(&text);
}

static void test_fixed(void **state)
{
    (void)state;
    char buffer[8];
    struct text text;
    text_init_fixed(&text, buffer, sizeof buffer);
    assert_string_equal(buffer, "");
    text_puts(&text, "1234");
    text_printf(&text, "%d", 567);
    assert_ptr_equal(text.data, buffer);
    assert_string_equal(buffer, "1234567");
    assert_false(text.failed);
    text_puts(&text, "8");
    assert_true(text.failed);
    assert_string_equal(buffer, "1234567");
}

#define BAD "\xef\xbf\xbd"

struct json_row {
    const char *text;
    size_t length; /* 0: strlen */
    const char *json;
};

static const struct json_row json_rows[] = {
    {"", 0, "\"\""},
    {"plain ~", 0, "\"plain ~\""},
    {"a\"b\\c/", 0, "\"a\\\"b\\\\c/\""},
    {"\b\f\n\r\t", 0, "\"\\b\\f\\n\\r\\t\""},
    {"\x01\x1f\x7f", 0, "\"\\u0001\\u001f\\u007f\""},
    {"a\xc2\x80\xc2\x9f\xc2\xa0z", 0, "\"a\\u0080\\u009f\xc2\xa0z\""},
    {"a\0b", 3, "\"a\\u0000b\""},
    {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 0, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
    {"x\xffy", 0, "\"x" BAD "y\""},
    {"\x80", 0, "\"" BAD "\""},
    {"\xc0\xaf", 0, "\"" BAD BAD "\""},                 /* overlong / */
    {"\xc1\xbf", 0, "\"" BAD BAD "\""},                 /* overlong DEL */
    {"\xe0\x9f\xbf", 0, "\"" BAD BAD BAD "\""},         /* overlong in three */
    {"\xf0\x8f\xbf\xbf", 0, "\"" BAD BAD BAD BAD "\""}, /* overlong in four */
    {"\xed\xa0\x80", 0, "\"" BAD BAD BAD "\""},         /* surrogate */
    {"\xf4\x90\x80\x80", 0, "\"" BAD BAD BAD BAD "\""}, /* above U+10FFFF */
    {"\xf5\x80\x80\x80", 0, "\"" BAD BAD BAD BAD "\""},
    {"\xf4\x8f\xbf\xbf", 0, "\"\xf4\x8f\xbf\xbf\""}, /* the last character */
    {"\xed\x9f\xbf", 0, "\"\xed\x9f\xbf\""},
    {"\xe2\x82", 0, "\"" BAD BAD "\""}, /* cut */
    {"\xe2\x82\"", 0, "\"" BAD BAD "\\\"\""},
};

static void test_json_string(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof json_rows / sizeof json_rows[0]; i++) {
        const struct json_row *row = &json_rows[i];
        size_t length = row->length > 0 ? row->length : strlen(row->text);
        char *exact = malloc(length + (length == 0)); /* the sanitizer sees a read past the end */
        assert_non_null(exact);
        memcpy(exact, row->text, length);
        struct text text;
        text_init(&text, 1000);
        text_json_string(&text, exact, length);
        assert_string_equal(text.data, row->json);
        text_free(&text);
        free(exact);
    }
}

struct number_row {
    double value;
    const char *json;
};

static const struct number_row number_rows[] = {
    {0, "0"},          {-0.0, "-0.0"},     {1, "1"},      {0.1, "0.1"},
    {1e300, "1e+300"}, {5e-324, "5e-324"}, {NAN, "null"}, {-INFINITY, "null"},
};

static void test_json_number(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof number_rows / sizeof number_rows[0]; i++) {
        struct text text;
        text_init(&text, 100);
        text_json_number(&text, number_rows[i].value);
        assert_string_equal(text.data, number_rows[i].json);
        text_free(&text);
    }
}

/* Every scalar value and nothing else among all sequences of two bytes, and samples of longer. */
static void test_utf8(void **state)
{
    (void)state;
    int valid = 0;
    for (int pair = 0x8000; pair < 0x10000; pair++) {
        char bytes[2] = {(char)(pair >> 8), (char)pair};
        valid += text_utf8(bytes, 2) == 2;
    }
    assert_int_equal(valid, 0x800 - 0x80);
    int three = 0;
    for (int low = 0; low < 0x100000; low++) {
        char bytes[3] = {(char)(0xe0 | low >> 16), (char)(low >> 8), (char)low};
        three += text_utf8(bytes, 3) == 3;
    }
    assert_int_equal(three, 0x10000 - 0x800 - 0x800);
    assert_int_equal(text_utf8("", 0), 0);
    assert_int_equal(text_utf8("a", 1), 1);
    assert_int_equal(text_utf8("\0", 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),      cmocka_unit_test(test_growth),
        cmocka_unit_test(test_limit),       cmocka_unit_test(test_printf_past_limit),
        cmocka_unit_test(test_fixed),       cmocka_unit_test(test_json_string),
        cmocka_unit_test(test_json_number), cmocka_unit_test(test_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
