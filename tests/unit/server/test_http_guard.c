/* tests/unit/server/test_http_guard.c: heads of requests with one reading, and with two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/unit/server/library_head.h"

#define LINE "POST /v1/invert HTTP/1.1\r\n"
#define HOST "Host: localhost\r\n"
#define END "\r\n"
#define NOT_READ ERROR_COUNT /* the library refuses it itself */

static const struct row {
    const char *what;
    const char *text;
    size_t length; /* 0: up to the first NUL of text */
    enum error error;
    int64_t content_length;
    bool chunked, expect_continue;
} rows[] = {
    /* One reading. */
    {"plain", LINE HOST "Content-Length: 24\r\n" END, 0, ERROR_NONE, 24, false, false},
    {"no body", LINE HOST END, 0, ERROR_NONE, -1, false, false},
    {"any case", LINE "hOST: x\r\ncontent-LENGTH: 7\r\n" END, 0, ERROR_NONE, 7, false, false},
    {"no space behind the colon", LINE "Host:x\r\nContent-Length:7\r\n" END, 0, ERROR_NONE, 7,
     false, false},
    {"much space behind the colon", LINE "Host: \t x\r\n" END, 0, ERROR_NONE, -1, false, false},
    {"space behind a value", LINE "Host: x \t\r\nX: y \r\n" END, 0, ERROR_NONE, -1, false, false},
    {"empty value", LINE HOST "X:\r\nY: \r\n" END, 0, ERROR_NONE, -1, false, false},
    {"bytes above ASCII in a value", LINE HOST "X: \xc3\xa4\r\n" END, 0, ERROR_NONE, -1, false,
     false},
    {"empty Host", LINE "Host:\r\n" END, 0, ERROR_NONE, -1, false, false},
    {"IPv6 Host", LINE "Host: [::1]:8000\r\n" END, 0, ERROR_NONE, -1, false, false},
    {"chunked", LINE HOST "Transfer-Encoding: chunked\r\n" END, 0, ERROR_NONE, -1, true, false},
    {"Chunked", LINE HOST "Transfer-Encoding: CHUNKED\r\n" END, 0, ERROR_NONE, -1, true, false},
    {"100-continue", LINE HOST "Content-Length: 1\r\nExpect: 100-Continue\r\n" END, 0, ERROR_NONE,
     1, false, true},
    {"100-continue with a space behind", LINE HOST "Expect: 100-continue \r\n" END, 0, ERROR_NONE,
     -1, false, true},
    {"expectations in 1.0", "POST / HTTP/1.0\r\nExpect: 100-continue\r\nExpect: a\r\n" END, 0,
     ERROR_NONE, -1, false, false},
    {"1.0 without Host", "GET / HTTP/1.0\r\n" END, 0, ERROR_NONE, -1, false, false},
    {"query", "GET /a?b=c&d=%20+e HTTP/1.1\r\n" HOST END, 0, ERROR_NONE, -1, false, false},
    {"absolute target", "GET http://h/p HTTP/1.1\r\n" HOST END, 0, ERROR_NONE, -1, false, false},
    {"the server itself", "OPTIONS * HTTP/1.1\r\n" HOST END, 0, ERROR_NONE, -1, false, false},
    {"zero length", LINE HOST "Content-Length: 0\r\n" END, 0, ERROR_NONE, 0, false, false},
    {"leading zeros", LINE HOST "Content-Length: 0010\r\n" END, 0, ERROR_NONE, 10, false, false},
    {"the largest length", LINE HOST "Content-Length: 999999999999999999\r\n" END, 0, ERROR_NONE,
     999999999999999999, false, false},
    {"two cookies", LINE HOST "Cookie: a=b\r\nCookie: c=d\r\n" END, 0, ERROR_NONE, -1, false,
     false},

    /* Two readings of where the body ends. */
    {"differing lengths", LINE HOST "Content-Length: 0\r\nContent-Length: 35\r\n" END, 0,
     ERROR_MALFORMED, 0, false, false},
    {"the same length twice", LINE HOST "Content-Length: 5\r\nContent-Length: 5\r\n" END, 0,
     ERROR_MALFORMED, 0, false, false},
    {"length and coding", LINE HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" END, 0,
     ERROR_MALFORMED, 0, false, false},
    {"coding and length", LINE HOST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n" END, 0,
     ERROR_MALFORMED, 0, false, false},
    {"two codings", LINE HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END, 0,
     ERROR_MALFORMED, 0, false, false},
    {"unknown coding", LINE HOST "Transfer-Encoding: xchunked\r\n" END, 0, ERROR_MALFORMED, 0,
     false, false},
    {"list of codings", LINE HOST "Transfer-Encoding: gzip, chunked\r\n" END, 0, ERROR_MALFORMED, 0,
     false, false},
    {"coding with a space behind", LINE HOST "Transfer-Encoding: chunked \r\n" END, 0,
     ERROR_MALFORMED, 0, false, false},
    {"coding in 1.0", "POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n" END, 0,
     ERROR_MALFORMED, 0, false, false},
    {"list of lengths", LINE HOST "Content-Length: 5, 5\r\n" END, 0, ERROR_MALFORMED, 0, false,
     false},
    {"signed length", LINE HOST "Content-Length: +5\r\n" END, 0, ERROR_MALFORMED, 0, false, false},
    {"negative length", LINE HOST "Content-Length: -5\r\n" END, 0, ERROR_MALFORMED, 0, false,
     false},
    {"hexadecimal length", LINE HOST "Content-Length: 0x5\r\n" END, 0, ERROR_MALFORMED, 0, false,
     false},
    {"empty length", LINE HOST "Content-Length:\r\n" END, 0, ERROR_MALFORMED, 0, false, false},
    {"length of 19 digits", LINE HOST "Content-Length: 1000000000000000000\r\n" END, 0,
     ERROR_MALFORMED, 0, false, false},

    /* Two readings of a field. */
    {"space before the colon", LINE HOST "Content-Length : 35\r\n" END, 0, ERROR_MALFORMED, 0,
     false, false},
    {"tab before the colon", LINE HOST "Content-Length\t: 35\r\n" END, 0, ERROR_MALFORMED, 0, false,
     false},
    {"folded value", LINE HOST "X: a\r\n b\r\n" END, 0, ERROR_MALFORMED, 0, false, false},
    {"folded with a tab", LINE HOST "X: a\r\n\tb\r\n" END, 0, ERROR_MALFORMED, 0, false, false},
    {"folded length", LINE HOST "Content-Length: 3\r\n 5\r\n" END, 0, ERROR_MALFORMED, 0, false,
     false},
    {"folded, nothing in it", LINE HOST "X: a\r\n \r\nY: b\r\n" END, 0, ERROR_MALFORMED, 0, false,
     false},
    {"folded at the end, nothing in it", LINE HOST "X: a\r\n \r\n" END, 0, ERROR_MALFORMED, 0,
     false, false},
    {"space before the first name", LINE " Host: x\r\n" HOST END, 0, ERROR_MALFORMED, 0, false,
     false},
    {"NUL in a value", LINE HOST "X: a\0b\r\n" END, sizeof(LINE HOST "X: a\0b\r\n" END) - 1,
     ERROR_MALFORMED, 0, false, false},
    {"NUL at the end of a value", LINE HOST "X: a\0\r\n" END,
     sizeof(LINE HOST "X: a\0\r\n" END) - 1, ERROR_MALFORMED, 0, false, false},
    {"NUL and more instead of the end", LINE "Host: a\0\xff\n\n",
     sizeof(LINE "Host: a\0\xff\n\n") - 1, ERROR_MALFORMED, 0, false, false},
    {"CR in a value", LINE HOST "X: a\rb\r\n" END, 0, ERROR_MALFORMED, 0, false, false},
    {"control character in a value", LINE HOST "X: a\001b\r\n" END, 0, ERROR_MALFORMED, 0, false,
     false},
    {"DEL in a value", LINE HOST "X: a\177b\r\n" END, 0, ERROR_MALFORMED, 0, false, false},
    {"LF alone", LINE HOST "X: a\nY: b\r\n" END, 0, ERROR_MALFORMED, 0, false, false},
    {"LF alone behind the request line", "GET / HTTP/1.1\n" HOST END, 0, ERROR_MALFORMED, 0, false,
     false},
    {"LF alone as the empty line", LINE HOST "\n", 0, ERROR_MALFORMED, 0, false, false},
    {"empty name", LINE HOST ": a\r\n" END, 0, ERROR_MALFORMED, 0, false, false},
    {"name with a parenthesis", LINE HOST "a(b: c\r\n" END, 0, ERROR_MALFORMED, 0, false, false},
    {"name above ASCII", LINE HOST "\xc3\xa4: c\r\n" END, 0, ERROR_MALFORMED, 0, false, false},
    {"NUL in a name", LINE HOST "X\0: a\r\n" END, sizeof(LINE HOST "X\0: a\r\n" END) - 1, NOT_READ,
     0, false, false},
    {"no colon", LINE HOST "abc\r\n" END, 0, NOT_READ, 0, false, false},

    /* What cannot be done. */
    {"expectation", LINE HOST "Expect: a-cake\r\n" END, 0, ERROR_EXPECTATION_FAILED, 0, false,
     false},
    {"two expectations", LINE HOST "Expect: 100-continue\r\nExpect: 100-continue, a\r\n" END, 0,
     ERROR_EXPECTATION_FAILED, 0, false, false},

    /* Two readings of whom it is for. */
    {"two Hosts", LINE HOST "Host: y\r\n" END, 0, ERROR_MALFORMED, 0, false, false},
    {"no Host", LINE END, 0, ERROR_MALFORMED, 0, false, false},
    {"two Hosts in 1.0", "GET / HTTP/1.0\r\n" HOST HOST END, 0, ERROR_MALFORMED, 0, false, false},
    {"Host with a space", LINE "Host: a b\r\n" END, 0, ERROR_MALFORMED, 0, false, false},
    {"Host with a path", LINE "Host: a/b\r\n" END, 0, ERROR_MALFORMED, 0, false, false},
    {"Host with a user", LINE "Host: a@b\r\n" END, 0, ERROR_MALFORMED, 0, false, false},

    /* Request lines. */
    {"method is not a token", "PO(ST / HTTP/1.1\r\n" HOST END, 0, ERROR_MALFORMED, 0, false, false},
    {"NUL in the method", "PO\0ST / HTTP/1.1\r\n" HOST END,
     sizeof("PO\0ST / HTTP/1.1\r\n" HOST END) - 1, ERROR_MALFORMED, 0, false, false},
    {"endless method", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\n" HOST END, 0,
     ERROR_MALFORMED, 0, false, false},
    {"two spaces", "GET  / HTTP/1.1\r\n" HOST END, 0, ERROR_MALFORMED, 0, false, false},
    {"two spaces later", "GET /  HTTP/1.1\r\n" HOST END, 0, ERROR_MALFORMED, 0, false, false},
    {"space in the target", "GET /a b HTTP/1.1\r\n" HOST END, 0, ERROR_MALFORMED, 0, false, false},
    {"tab in the target", "GET /a\tb HTTP/1.1\r\n" HOST END, 0, ERROR_MALFORMED, 0, false, false},
    {"NUL in the target", "GET /a\0b HTTP/1.1\r\n" HOST END,
     sizeof("GET /a\0b HTTP/1.1\r\n" HOST END) - 1, ERROR_MALFORMED, 0, false, false},
    {"escaped NUL", "GET /a%00b HTTP/1.1\r\n" HOST END, 0, ERROR_MALFORMED, 0, false, false},
    {"bad escape", "GET /a%zzb HTTP/1.1\r\n" HOST END, 0, ERROR_MALFORMED, 0, false, false},
    {"cut escape", "GET /a%4 HTTP/1.1\r\n" HOST END, 0, ERROR_MALFORMED, 0, false, false},
    {"target above ASCII", "GET /\xc3\xa4 HTTP/1.1\r\n" HOST END, 0, ERROR_MALFORMED, 0, false,
     false},
    {"fragment", "GET /a#b HTTP/1.1\r\n" HOST END, 0, ERROR_MALFORMED, 0, false, false},
    {"neither path nor address", "GET a HTTP/1.1\r\n" HOST END, 0, ERROR_MALFORMED, 0, false,
     false},
    {"authority", "CONNECT h:80 HTTP/1.1\r\n" HOST END, 0, ERROR_MALFORMED, 0, false, false},
};

static void test_rows(void **state)
{
    static struct library_head library;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        size_t length = row->length != 0 ? row->length : strlen(row->text), used;
        struct http_guard_frame frame;
        const char *why = NULL;
        enum error error = NOT_READ;
        if (library_read(&library, row->text, length, &used))
            error = http_guard_check(&library.head, &frame, &why);
        if (error != row->error)
            fail_msg("%s: %d instead of %d (%s)", row->what, error, row->error,
                     why == NULL ? "" : why);
        assert_int_equal(error != ERROR_NONE && error != NOT_READ, why != NULL);
        if (error != ERROR_NONE)
            continue;
        assert_int_equal(used, length);
        assert_int_equal(frame.content_length, row->content_length);
        assert_int_equal(frame.chunked, row->chunked);
        assert_int_equal(frame.expect_continue, row->expect_continue);
    }
}

static const struct {
    const char *uri;
    bool veiled;
} escapes[] = {
    {"/a/b", false},     {"/a%20b", false},     {"/%c3%a4", false}, {"/%3F", false},
    {"/a%2fb", true},    {"/a%2Fb", true},      {"/%6d", true},     {"/%4D", true},
    {"/%7e", true},      {"/%39", true},        {"/%2E%2e", true},  {"/%5F", true},
    {"/a?b=%6d", false}, {"/%2a?b=%2f", false}, {"/%41?b", true},
};

/* Escapes of what needs none, in the path alone. */
static void test_escapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof escapes / sizeof escapes[0]; i++) {
        struct http_guard_uri uri = http_guard_uri(escapes[i].uri);
        assert_false(uri.bad);
        assert_int_equal(uri.veiled, escapes[i].veiled);
    }
}

/* A head with a target of so many bytes, so many fields, and one value of so many bytes. */
static enum error check_size(size_t target, int fields, size_t value)
{
    static struct library_head library;
    static char text[LIBRARY_HEAD_MAX];
    size_t used, at = 0;
    memcpy(text, "GET /", 5);
    memset(text + 5, 'a', target - 1);
    at = 4 + target;
    at += (size_t)snprintf(text + at, sizeof text - at, " HTTP/1.1\r\nHost: x\r\n");
    for (int i = 1; i < fields; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "X%d: %0*d\r\n", i,
                               i == 1 ? (int)value : 1, 0);
    at += (size_t)snprintf(text + at, sizeof text - at, "\r\n");
    assert_true(at < sizeof text);
    assert_true(library_read(&library, text, at, &used));
    struct http_guard_frame frame;
    const char *why;
    return http_guard_check(&library.head, &frame, &why);
}

static void test_sizes(void **state)
{
    (void)state;
    assert_int_equal(check_size(HTTP_GUARD_URI_MAX, 2, 1), ERROR_NONE);
    assert_int_equal(check_size(HTTP_GUARD_URI_MAX + 1, 2, 1), ERROR_URI_TOO_LONG);
    assert_int_equal(check_size(8, HTTP_GUARD_FIELDS_MAX, 1), ERROR_NONE);
    assert_int_equal(check_size(8, HTTP_GUARD_FIELDS_MAX + 1, 1), ERROR_HEADERS_TOO_LARGE);
    assert_int_equal(check_size(8000, 2, 7000), ERROR_NONE);
    assert_int_equal(check_size(8192, 2, 8192), ERROR_HEADERS_TOO_LARGE);
}

static void test_is(void **state)
{
    (void)state;
    assert_true(http_guard_is("HoSt", 4, "Host"));
    assert_true(http_guard_is("100-CONTINUE", 12, "100-continue"));
    assert_false(http_guard_is("Host", 3, "Host"));
    assert_false(http_guard_is("Hosts", 5, "Host"));
    assert_false(http_guard_is("@", 1, "`")); /* 0x20 apart, and no letters */
    assert_true(http_guard_is("", 0, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
