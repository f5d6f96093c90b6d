/* tests/unit/server/test_site.c: hosts that are served, and pages that may ask. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "server/http/site.h"

static char gate[] = "gate.example", address[] = "10.1.2.3";
static char *listed[] = {gate, address};
static char app[] = "https://app.example:81";
static char *apps[] = {app};
static const struct option_list origins = {apps, 1};
static const struct option_list hosts = {listed, 2};

static const struct row {
    const char *host, *origin, *fetch_site, *authority;
    bool network, reads, any_host, listed;
    enum error error;
} rows[] = {
    /* Hosts. */
    {.host = "localhost"},
    {.host = "LOCALHOST:8000 \t"},
    {.host = "localhost."},
    {.host = "127.0.0.1:1"},
    {.host = "127.9.9.9"},
    {.host = "[::1]:8000"},
    {.host = "gate.example:81"},
    {.host = "Gate.Example"},
    {.host = "10.1.2.3"},
    {.host = NULL},
    {.host = "", .error = ERROR_MISDIRECTED},
    {.host = ":80", .error = ERROR_MISDIRECTED},
    {.host = "evil.example", .error = ERROR_MISDIRECTED},
    {.host = "evil.example", .any_host = true},
    {.host = "evil.example", .network = true},
    {.host = "localhost.evil.example", .error = ERROR_MISDIRECTED},
    {.host = "127.0.0.1.evil.example", .error = ERROR_MISDIRECTED},
    {.host = "a.gate.example", .error = ERROR_MISDIRECTED},
    {.host = "[::2]", .error = ERROR_MISDIRECTED},
    {.host = "[::1", .error = ERROR_MISDIRECTED},
    {.host = "128.0.0.1", .error = ERROR_MISDIRECTED},
    {.host = "127.00000000000000000000000000000000000000000000000000000000000000000.0.1",
     .error = ERROR_MISDIRECTED},
    {.host = "localhost", .authority = "evil.example", .error = ERROR_MISDIRECTED},
    {.host = "evil.example", .authority = "localhost:8000"},

    /* Origins. */
    {.host = "localhost:8000", .origin = "http://localhost:8000"},
    {.host = "localhost:8000", .origin = "HTTPS://LocalHost:8000"},
    {.host = "localhost:8000", .origin = "http://localhost:8001", .error = ERROR_FORBIDDEN},
    {.host = "localhost", .origin = "http://evil.example", .error = ERROR_FORBIDDEN},
    {.host = "localhost", .origin = "http://evil.example", .reads = true, .error = ERROR_FORBIDDEN},
    {.host = "a.example", .origin = "ftp://a.example", .network = true, .error = ERROR_FORBIDDEN},
    {.host = "localhost", .origin = "null", .error = ERROR_FORBIDDEN},
    {.host = "localhost", .origin = "", .error = ERROR_FORBIDDEN},
    {.host = "", .origin = "http://", .network = true, .error = ERROR_FORBIDDEN},
    {.host = NULL, .origin = "http://localhost", .error = ERROR_FORBIDDEN},

    {.host = "localhost", .origin = "https://app.example:81", .listed = true},
    {.host = "localhost", .origin = "HTTPS://App.example:81 ", .listed = true},
    {.host = "localhost", .origin = "http://app.example:81", .error = ERROR_FORBIDDEN},
    {.host = "localhost", .origin = "https://app.example", .error = ERROR_FORBIDDEN},
    {.host = "localhost", .origin = "https://app.example:811", .error = ERROR_FORBIDDEN},

    /* Without Origin. */
    {.host = "localhost", .fetch_site = "same-origin"},
    {.host = "localhost", .fetch_site = "none "},
    {.host = "localhost", .fetch_site = "cross-site", .error = ERROR_FORBIDDEN},
    {.host = "localhost", .fetch_site = "same-site", .error = ERROR_FORBIDDEN},
    {.host = "localhost", .fetch_site = "cross-site", .reads = true},
};

static const struct http_guard_field *field(struct http_guard_field *made, const char *value)
{
    *made = (struct http_guard_field){.value = value};
    if (value != NULL)
        made->value_length = (uint32_t)strlen(value);
    return value == NULL ? NULL : made;
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        struct http_guard_field host, origin, fetch_site;
        struct site_rules rules = {.loopback = !row->network, .hosts = &hosts, .origins = &origins};
        struct site_claims claims = {
            .host = field(&host, row->host),
            .origin = field(&origin, row->origin),
            .fetch_site = field(&fetch_site, row->fetch_site),
            .authority = row->authority,
            .authority_length = row->authority == NULL ? 0 : strlen(row->authority),
            .reads = row->reads,
            .any_host = row->any_host,
        };
        const char *why = NULL, *named = "";
        enum error error = site_check(&rules, &claims, &named, &why);
        if (error != row->error)
            fail_msg("row %zu: %d instead of %d", i, (int)error, (int)row->error);
        assert_int_equal(error != ERROR_NONE, why != NULL);
        assert_ptr_equal(named, row->listed ? app : NULL);
    }
}

static const struct {
    const char *text;
    enum error error;
} texts[] = {
    {"https://app.example:81", ERROR_NONE},
    {"http://[::1]:3000", ERROR_NONE},
    {"http://localhost", ERROR_NONE},
    {"*", ERROR_BAD_OPTION},
    {"null", ERROR_BAD_OPTION},
    {"app.example", ERROR_BAD_OPTION},
    {"http://", ERROR_BAD_OPTION},
    {"https://a.example/", ERROR_BAD_OPTION},
    {"https://A.example", ERROR_BAD_OPTION},
    {"ftp://a.example", ERROR_BAD_OPTION},
};

static void test_origins(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char copy[64], *items[] = {copy};
        const struct option_list one = {items, 1};
        struct failure failure = {0};
        snprintf(copy, sizeof copy, "%s", texts[i].text);
        assert_int_equal(site_check_origins(&one, &failure), texts[i].error);
        if (texts[i].error != ERROR_NONE)
            assert_non_null(strstr(failure.detail, copy));
    }
}

static const struct {
    const char *text;
    enum error error;
} names[] = {
    {"matrices.example", ERROR_NONE},
    {"Node_1", ERROR_NONE},
    {"10.0.0.7", ERROR_NONE},
    {"[fd00::1]", ERROR_NONE},
    {"a.example:8000", ERROR_BAD_OPTION},
    {"https://a.example", ERROR_BAD_OPTION},
    {"a.example/", ERROR_BAD_OPTION},
    {"*.example", ERROR_BAD_OPTION},
    {"fd00::1", ERROR_BAD_OPTION},
    {"[fd00::1]:8000", ERROR_BAD_OPTION},
    {"[fd00::1", ERROR_BAD_OPTION},
    {"[]", ERROR_BAD_OPTION},
};

static void test_hosts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char copy[64], *items[] = {copy};
        const struct option_list one = {items, 1};
        struct failure failure = {0};
        snprintf(copy, sizeof copy, "%s", names[i].text);
        if (site_check_hosts(&one, &failure) != names[i].error)
            fail_msg("%s", names[i].text);
        if (names[i].error != ERROR_NONE)
            assert_non_null(strstr(failure.detail, copy));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
