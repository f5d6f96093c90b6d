/* tests/unit/client/test_outcome.c: statuses, details of refusals, the line of JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "client/outcome.h"

static void test_statuses(void **state)
{
    (void)state;
    static const struct {
        long status;
        enum outcome_code code;
    } rows[] = {
        {200, OUTCOME_DONE},         {400, OUTCOME_INVALID},      {404, OUTCOME_NOT_FOUND},
        {401, OUTCOME_UNAUTHORIZED}, {403, OUTCOME_UNAUTHORIZED}, {408, OUTCOME_TIMED_OUT},
        {413, OUTCOME_INVALID},      {422, OUTCOME_SINGULAR},     {429, OUTCOME_NO_ROOM},
        {500, OUTCOME_SERVER},       {502, OUTCOME_SERVER},       {503, OUTCOME_NO_ROOM},
        {504, OUTCOME_TIMED_OUT},    {0, OUTCOME_SERVER},         {204, OUTCOME_DONE},
        {302, OUTCOME_SERVER},       {202, OUTCOME_DONE},         {206, OUTCOME_DONE},
        {410, OUTCOME_NOT_FOUND},    {507, OUTCOME_NO_ROOM},      {416, OUTCOME_INVALID},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(outcome_of_status(rows[i].status), rows[i].code);
    for (int code = ERROR_NONE + 1; code < ERROR_COUNT; code++)
        assert_int_not_equal(outcome_of_status(error_http_status((enum error)code)), OUTCOME_DONE);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *body, *message, *type;
    } rows[] = {
        {"{\"title\":\"t\",\"detail\":\"Send it.\"}", "Send it", "application/problem+json"},
        {"{\"detail\":\"a\\u001b[2J\\u009b\\n\"}", "a?[2J???", ""},
        {"{\"detail\":\"\"}", "", ""},
        {"{\"detail\":3}", "the server answered 400", ""},
        {"[\"detail\"]", "the server answered 400", ""},
        {"<html>", "the server answered 400", ""},
        {"", "the server answered 400", ""},
        {"Use TLS.\nBye.\n", "Use TLS", "text/plain; charset=utf-8"},
        {"Use TLS.", "Use TLS", "text/plain"},
        {"", "the server answered 400", "text/plain"},
        {"<html>", "the server answered 400", "text/html"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct outcome outcome = {.info = -1};
        struct text body;
        text_init(&body, 1000);
        text_puts(&body, rows[i].body);
        outcome_refused(&outcome, 400, rows[i].type, &body);
        assert_string_equal(outcome.message, rows[i].message);
        assert_int_equal(outcome.code, OUTCOME_INVALID);
        text_free(&body);
    }
}

static void test_a_job_that_has_not_ended(void **state)
{
    (void)state;
    struct outcome outcome = {0};
    struct text body;
    text_init(&body, 1000);
    text_puts(&body, "{\"type\":\"https://h/errors#result-not-ready\",\"detail\":\"Wait.\"}");
    outcome_refused(&outcome, 404, "application/problem+json", &body);
    assert_int_equal(outcome.code, OUTCOME_NOT_READY);
    outcome_refused(&outcome, 410, "application/problem+json", &body);
    assert_int_equal(outcome.code, OUTCOME_NOT_FOUND);
    text_free(&body);
}

static void test_long_messages_are_cut(void **state)
{
    (void)state;
    struct outcome outcome = {0};
    char message[2000];
    memset(message, 'x', sizeof message - 1);
    message[sizeof message - 1] = '\0';
    outcome_say(&outcome, message);
    assert_int_equal(strlen(outcome.message), sizeof outcome.message - 1);
}

static void check_json(const struct outcome *outcome, const char *wanted)
{
    char line[1000] = "";
    FILE *file = tmpfile();
    assert_non_null(file);
    outcome_print_json(outcome, file);
    rewind(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
    assert_string_equal(line, wanted);
}

static void test_json(void **state)
{
    (void)state;
    check_json(&(struct outcome){.code = OUTCOME_DONE,
                                 .status = 200,
                                 .tries = 2,
                                 .sent_bytes = INT64_C(1) << 40,
                                 .received_bytes = 5,
                                 .seconds = 0.25,
                                 .method = "lu",
                                 .id = "j1"},
               "{\"exit\":0,\"status\":200,\"id\":\"j1\",\"method\":\"lu\",\"info\":0,"
               "\"sent_bytes\":1099511627776,\"received_bytes\":5,\"tries\":2,\"seconds\":0.25,"
               "\"error\":null}\n");
    check_json(
        &(struct outcome){.code = OUTCOME_UNREACHABLE, .info = -1, .message = "a \"b\""},
        "{\"exit\":4,\"status\":0,\"id\":null,\"method\":null,\"info\":null,\"sent_bytes\":0,"
        "\"received_bytes\":0,\"tries\":0,\"seconds\":0.0,\"error\":\"a \\\"b\\\"\"}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_a_job_that_has_not_ended),
        cmocka_unit_test(test_long_messages_are_cut), cmocka_unit_test(test_json)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
