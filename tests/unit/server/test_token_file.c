/* tests/unit/server/test_token_file.c: the lines of --token-file, good and malformed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/http/token_file.h"

#define A "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" /* of "abc" */
#define B "sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855" /* of "" */
#define MS INT64_C(1000000)

static const struct {
    const char *text;
    struct client first;
    int count;
} good[] = {
    {"a infer " A, {.name = "a", .roles = CLIENT_INFER}, 1},
    {"a infer " A "\n", {.name = "a", .roles = CLIENT_INFER}, 1},
    {"\xef\xbb\xbf"
     "a infer " A "\r\n",
     {.name = "a", .roles = CLIENT_INFER},
     1},
    {"\n# clients\n \t \r\n  a\tinfer,jobs,metrics  " A " \t\r\n",
     {.name = "a", .roles = CLIENT_INFER | CLIENT_JOBS | CLIENT_METRICS},
     1},
    {"Team-1.x_y@z admin " A " # b infer " A "\nb infer " B,
     {.name = "Team-1.x_y@z", .roles = CLIENT_ADMIN},
     2},
    {"a infer " A " requests=3 rate=100 bytes=2MiB device=250ms jobs=7 spool=1GB\n",
     {.name = "a",
      .roles = CLIENT_INFER,
      .limits = {.requests = 3,
                 .rate = 100,
                 .bytes = 2 << 20,
                 .device_ns = 250 * MS,
                 .jobs = 7,
                 .spool_bytes = 1000000000}},
     1},
};

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct token_file_row *rows = NULL;
        struct failure failure = {0};
        int count = 0;
        enum error error =
            token_file_parse(good[i].text, strlen(good[i].text), "tokens", &rows, &count, &failure);
        if (error != ERROR_NONE || count != good[i].count)
            fail_msg("row %zu: %d clients, %s", i, count, failure.detail);
        const struct client *client = &rows[0].client, *wanted = &good[i].first;
        assert_string_equal(client->name, wanted->name);
        assert_int_equal(client->roles, wanted->roles);
        assert_memory_equal(&client->limits, &wanted->limits, sizeof wanted->limits);
        assert_int_equal(rows[0].digest[0], 0xba);
        assert_int_equal(rows[0].digest[DIGEST_BYTES - 1], 0xad);
        free(rows);
    }
}

static void test_secret(void **state)
{
    (void)state;
    static const char text[] =
        "\na infer " A " rate=5 callback-secret-file=/x=y.z jobs=7\nb jobs " B;
    struct token_file_row *rows = NULL;
    int count = 0;
    assert_int_equal(token_file_parse(text, strlen(text), "tokens", &rows, &count, NULL),
                     ERROR_NONE);
    assert_string_equal(rows[0].secret_path, "/x=y.z");
    assert_int_equal(rows[0].line, 2);
    assert_int_equal(rows[0].client.limits.jobs, 7);
    assert_string_equal(rows[1].secret_path, "");
    free(rows);
}

#define NAME64 "0123456789012345678901234567890123456789012345678901234567890123"

static const struct {
    const char *text, *said;
} bad[] = {
    {"", "tokens:0: the file holds no client"},
    {"# none\n\n", "tokens:2: the file holds no client"},
    {"a infer", "tokens:1: a line is NAME ROLE"},
    {"a " A, "a line is NAME ROLE"},
    {"\n\na\n", "tokens:3: "},
    {NAME64 "4 infer " A, "the name takes 1 to 64"},
    {"a/b infer " A, "the name takes"},
    {"\xc3\xa4 infer " A, "the name takes"},
    {"a Infer " A, "infer, jobs, metrics or admin"},
    {"a infer,infer " A, "each once"},
    {"a infer, " A, "the roles are"},
    {"a ,infer " A, "the roles are"},
    {"a infer,,jobs " A, "the roles are"},
    {"a infer " A "0", "64 hexadecimal digits"},
    {"a infer SHA256:00", "the third part is sha256:"},
    {"a infer sha256:", "64 hexadecimal digits"},
    {"a infer ga7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "sha256:"},
    {"a infer sha256:ga7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "64"},
    {"a infer " A " swift=1", "jobs=, spool= or callback-secret-file="},
    {"a infer " A " callback-secret-file=", "takes a path"},
    {"a infer " A " callback-secret-file=a callback-secret-file=b", "each once"},
    {"a infer " A " requests", "what follows the token's hash is"},
    {"a infer " A " requests=1 requests=2", "each once"},
    {"a infer " A " requests=", "requests= takes a whole number from 1 to"},
    {"a infer " A " requests=0", "requests= takes"},
    {"a infer " A " requests=-1", "requests= takes"},
    {"a infer " A " rate=1.5", "rate= takes a whole number"},
    {"a infer " A " bytes=2XB", "bytes= takes a size"},
    {"a infer " A " bytes=99999999999999999999999", "bytes= takes"},
    {"a infer " A " bytes=" NAME64 "MiB", "bytes= takes"},
    {"a infer " A " device=fast", "device= takes a duration"},
    {"a infer " A " jobs=x", "jobs= takes"},
    {"a infer " A " spool=-1B", "spool= takes a size"},
    {"a infer " A " spool=1GB#", "spool= takes a size"}, /* inside a part it begins no comment */
    {"a infer " A "\na jobs " B, "tokens:2: line 1 has the same name"},
    {"a infer " A "\n\nb jobs " A, "tokens:3: line 1 has the same token"},
};

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct token_file_row *rows = NULL;
        struct failure failure = {0};
        int count = 0;
        enum error error =
            token_file_parse(bad[i].text, strlen(bad[i].text), "tokens", &rows, &count, &failure);
        if (error != ERROR_BAD_OPTION || strstr(failure.detail, bad[i].said) == NULL)
            fail_msg("row %zu: %s", i, failure.detail);
        assert_null(rows);
        /* Nothing of the line: it may be a token. */
        assert_null(strstr(failure.detail, "ba7816bf"));
        assert_null(strstr(failure.detail, "swift"));
    }
}

static void test_nul_bytes(void **state)
{
    (void)state;
    static const char *const texts[] = {"a\0 infer " A, "a infer\0 " A,
                                        "a infer " A " jobs=\0"
                                        "1",
                                        "a infer " A "\0"};
    static const size_t sizes[] = {9 + 71, 9 + 71, 8 + 71 + 8, 8 + 71 + 1};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct token_file_row *rows = NULL;
        struct failure failure = {0};
        int count = 0;
        assert_int_equal(token_file_parse(texts[i], sizes[i], "tokens", &rows, &count, &failure),
                         ERROR_BAD_OPTION);
    }
}

/* As many clients as fit, and one more. */
static void test_as_many_as_fit(void **state)
{
    (void)state;
    struct text text;
    text_init(&text, 1 << 20);
    for (int i = 0; i <= CLIENTS_MAX; i++)
        text_printf(&text, "client-%d infer sha256:%064x\n", i, (unsigned)i);
    assert_false(text.failed);
    struct token_file_row *rows = NULL;
    struct failure failure = {0};
    int count = 0;
    assert_int_equal(token_file_parse(text.data, text.length, "tokens", &rows, &count, &failure),
                     ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, "tokens:1025: a file holds 1024 clients at most"));
    size_t last = (size_t)(strrchr(text.data, 'c') - text.data);
    assert_int_equal(token_file_parse(text.data, last, "tokens", &rows, &count, &failure),
                     ERROR_NONE);
    assert_int_equal(count, CLIENTS_MAX);
    free(rows);
    text_free(&text);
}

static void test_new_token(void **state)
{
    (void)state;
    char token[DIGEST_HEX_BYTES], second[DIGEST_HEX_BYTES];
    unsigned char digest[DIGEST_BYTES];
    struct token_file_row *rows = NULL;
    struct failure failure = {0};
    struct text line;
    int count = 0;
    text_init(&line, 1024);
    assert_int_equal(token_file_new("a", "infer,jobs", token, &line, &failure), ERROR_NONE);
    assert_int_equal(strlen(token), 64);
    assert_int_equal(token_file_parse(line.data, line.length, "tokens", &rows, &count, &failure),
                     ERROR_NONE);
    assert_string_equal(rows[0].client.name, "a");
    assert_int_equal(rows[0].client.roles, CLIENT_INFER | CLIENT_JOBS);
    assert_true(digest_sha256(token, 64, digest));
    assert_memory_equal(rows[0].digest, digest, DIGEST_BYTES);
    free(rows);

    assert_int_equal(token_file_new("a", "infer", second, &line, &failure), ERROR_NONE);
    assert_string_not_equal(token, second);
    assert_int_equal(token_file_new("a b", "infer", token, &line, &failure), ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, "--new-token: the name takes"));
    assert_int_equal(token_file_new("a", "root", token, &line, &failure), ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, "--new-token: the roles are"));
    text_free(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_secret),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_nul_bytes),
        cmocka_unit_test(test_as_many_as_fit),
        cmocka_unit_test(test_new_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
