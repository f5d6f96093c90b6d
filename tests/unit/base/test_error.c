/* tests/unit/base/test_error.c: the error table and failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

struct row {
    enum error code;
    int http_status;
    const char *name;
};

static const struct row rows[] = {
    {ERROR_NONE, 200, "none"},
    {ERROR_BAD_SHAPE, 400, "bad-shape"},
    {ERROR_NOT_INVERTIBLE, 422, "not-invertible"},
    {ERROR_CLIENT_QUOTA, 429, "client-quota"},
    {ERROR_FULL, 503, "service-full"},
    {ERROR_TIMEOUT, 504, "deadline-passed"},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(error_http_status(rows[i].code), rows[i].http_status);
        assert_string_equal(error_name(rows[i].code), rows[i].name);
    }
}

/* Every row is usable: a status of HTTP, a title, a name that fits a URL and is no one else's. */
static void test_every_row(void **state)
{
    (void)state;
    for (int code = 0; code < ERROR_COUNT; code++) {
        int status = error_http_status((enum error)code);
        const char *name = error_name((enum error)code);
        assert_true(code == ERROR_NONE ? status == 200 : status >= 400 && status < 600);
        assert_true(strlen(error_title((enum error)code)) > 0);
        assert_true(strlen(name) > 0);
        for (const char *c = name; *c != '\0'; c++)
            assert_true(islower((unsigned char)*c) || *c == '-');
        for (int other = 0; other < code; other++)
            assert_string_not_equal(name, error_name((enum error)other));
    }
}

static void test_failure_set(void **state)
{
    (void)state;
    struct failure failure = {0};
    assert_int_equal(failure_set(&failure, ERROR_TOO_LARGE, "%d over %s", 7, "six"),
                     ERROR_TOO_LARGE);
    assert_int_equal(failure.code, ERROR_TOO_LARGE);
    assert_string_equal(failure.detail, "7 over six");
    assert_int_equal(failure_set(&failure, ERROR_FULL, "later"), ERROR_FULL);
    assert_string_equal(failure.detail, "later");
    assert_int_equal(failure_set(NULL, ERROR_FULL, "no one listens"), ERROR_FULL);
}

/* A detail that is cut stays UTF-8, wherever the cut falls. */
static void test_long_detail(void **state)
{
    (void)state;
    static const char *const characters[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t kind = 0; kind < 4; kind++) {
        size_t bytes = strlen(characters[kind]);
        for (int shift = 0; shift < 4; shift++) {
            char words[1024] = "----";
            words[shift] = '\0';
            for (size_t at = (size_t)shift; at < 900; at += bytes)
                memcpy(words + at, characters[kind], bytes + 1);
            struct failure failure;
            (void)failure_set(&failure, ERROR_MALFORMED, "%s", words);
            size_t length = strlen(failure.detail);
            assert_true(length < sizeof failure.detail);
            assert_true(length + bytes >= sizeof failure.detail);
            assert_int_equal((length - (size_t)shift) % bytes, 0);
            assert_memory_equal(failure.detail, words, length);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_every_row),
        cmocka_unit_test(test_failure_set),
        cmocka_unit_test(test_long_detail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
