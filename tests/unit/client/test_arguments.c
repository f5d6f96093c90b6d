/* tests/unit/client/test_arguments.c: command lines of invert, good and bad; URLs; media types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "client/arguments.h"

#define WORDS_MAX 16

static enum error read_words(struct arguments *arguments, const char *const *words,
                             const char *server, struct failure *failure)
{
    char *argv[WORDS_MAX + 1] = {(char *)(uintptr_t) "invert"};
    int argc = 1;
    for (; *words != NULL; words++)
        argv[argc++] = (char *)(uintptr_t)*words;
    *failure = (struct failure){0};
    return arguments_read(arguments, argc, argv, server, failure);
}

static const struct {
    const char *words[WORDS_MAX], *environment, *url, *socket;
} good[] = {
    {{"a.npy", "-o", "b.npy"}, NULL, "http://localhost:8000/v1/invert", NULL},
    {{"a.npy", "-ob.npy"}, "https://h:1/", "https://h:1/v1/invert", NULL},
    {{"-o", "b", "--server=http://h/x//", "-"}, "https://h:1", "http://h/x/v1/invert", NULL},
    {{"a", "-o", "-"}, "unix:/run/s", "http://localhost/v1/invert", "/run/s"},
    {{"a", "-o", "b", "-m", "lu"}, NULL, "http://localhost:8000/v1/invert?method=lu", NULL},
    {{"a", "-o", "b", "--option", "rows=0:1,2", "-p", "b=", "-m", "x&y"},
     NULL,
     "http://localhost:8000/v1/invert?rows=0%3A1%2C2&b=&method=x%26y",
     NULL},
    {{"a", "-o", "b", "-p", "n%= \xc3\xa9=~"},
     NULL,
     "http://localhost:8000/v1/invert?n%25=%20%C3%A9%3D~",
     NULL},
};

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct arguments arguments;
        struct failure failure;
        if (read_words(&arguments, good[i].words, good[i].environment, &failure) != ERROR_NONE)
            fail_msg("row %zu: %s", i, failure.detail);
        char url[200];
        snprintf(url, sizeof url, "%s%s", arguments.address.data, arguments.path.data);
        assert_string_equal(url, good[i].url);
        assert_true(good[i].socket == NULL || strcmp(good[i].socket, arguments.socket) == 0);
        assert_true(good[i].socket != NULL || arguments.socket == NULL);
        arguments_free(&arguments);
    }
}

static const struct {
    const char *words[WORDS_MAX], *detail;
} bad[] = {
    {{NULL}, "give one file"},
    {{"a", "b", "-o", "c"}, "give one file"},
    {{"a"}, "-o is missing"},
    {{"a", "-o"}, "-o needs a value"},
    {{"a", "--method"}, "-m needs a value"},
    {{"a", "--foo"}, "--foo is no option"},
    {{"a", "-xo", "b"}, "-x is no option"},
    {{"a", "--json=1"}, "-j is no option, or has a value"},
    {{"a", "-o", "b", "-p", "x"}, "--option \"x\" is not usable; give NAME=VALUE"},
    {{"a", "-o", "b", "-p", "=x"}, "--option \"=x\""},
    {{"a", "-o", "b", "--retry-max", "-1"}, "--retry-max \"-1\" is not usable; give a duration"},
    {{"a", "-o", "b", "-s", "h:8000"}, "the server \"h:8000\" is not usable"},
    {{"a", "-o", "b", "-s", "ftp://h"}, "the server \"ftp://h\""},
    {{"a", "-o", "b", "-s", "unix:s"}, "the server \"unix:s\""},
    {{"a", "-o", "b", "-s", "http://h?x"}, "the server \"http://h?x\""},
    {{"a", "-o", "b", "-s", ""}, "the server \"\""},
    {{"a", "-o", "b", "--to", "xls"},
     "--to \"xls\" is not usable; give npy, npz, json, mtx or csv"},
    {{"a", "-o", "b", "--from", ""}, "--from \"\" is not usable"},
    {{"a", "-o", "b", "--async"}, "--async writes no answer"},
    {{"a", "-o", "b", "--cert", "c"}, "--cert and --key"},
    {{"a", "-o", "b", "-i", ""}, "--idempotency-key is not usable"},
    {{"a", "-o", "b", "-i", "a b"}, "--idempotency-key is not usable"},
    {{"a", "-o", "b", "--limit", "5"}, "--limit is not for invert FILE"},
    {{"status"}, "give invert status from 1 to 1000 ids"},
    {{"status", "../a"}, "\"../a\" is no id of a job"},
    {{"status", "a", ""}, "\"\" is no id of a job"},
    {{"status", "a", "-o", "b"}, "--output is not for invert status"},
    {{"fetch", "a"}, "-o is missing"},
    {{"fetch", "a", "b", "-o", "c"}, "give invert fetch from 1 to 1 ids"},
    {{"list", "a"}, "give invert list from 0 to 0 ids"},
    {{"list", "-n", "0"}, "--limit \"0\" is not usable"},
};

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct arguments arguments;
        struct failure failure;
        assert_int_equal(read_words(&arguments, bad[i].words, NULL, &failure), ERROR_BAD_OPTION);
        if (strstr(failure.detail, bad[i].detail) != failure.detail)
            fail_msg("row %zu: %s", i, failure.detail);
        arguments_free(&arguments);
    }
}

static void test_fields(void **state)
{
    (void)state;
    static const char *const words[WORDS_MAX] = {
        "--token-file", "t", "--cacert", "c", "--retry-max", "1.5", "-q", "--json", "a", "-o", "b"};
    struct arguments arguments;
    struct failure failure;
    assert_int_equal(read_words(&arguments, words, NULL, &failure), ERROR_NONE);
    assert_string_equal(arguments.input, "a");
    assert_string_equal(arguments.output, "b");
    assert_string_equal(arguments.token_file, "t");
    assert_string_equal(arguments.cacert, "c");
    assert_int_equal(arguments.retry_max_ns, 1500000000);
    assert_true(arguments.quiet && arguments.json && !arguments.help);
    arguments_free(&arguments);
    static const char *const help[WORDS_MAX] = {"--help"};
    assert_int_equal(read_words(&arguments, help, "?", &failure), ERROR_NONE);
    assert_true(arguments.help);
    arguments_free(&arguments);
}

/* Longer than any server takes. */
static void test_long_query(void **state)
{
    (void)state;
    static char option[70000] = "n=";
    memset(option + 2, 'x', sizeof option - 3);
    const char *const words[WORDS_MAX] = {"a", "-o", "b", "-p", option};
    struct arguments arguments;
    struct failure failure;
    assert_int_equal(read_words(&arguments, words, NULL, &failure), ERROR_BAD_OPTION);
    assert_string_equal(failure.detail, "the options are longer than 65536 bytes");
    arguments_free(&arguments);
}

static void test_commands(void **state)
{
    (void)state;
    static const struct {
        const char *words[WORDS_MAX];
        enum command command;
        int ids;
    } rows[] = {
        {{"./status", "-o", "b"}, COMMAND_INVERT, 0},
        {{"-q", "status", "-o", "b"}, COMMAND_INVERT, 0},
        {{"status", "a", "b-_9"}, COMMAND_STATUS, 2},
        {{"wait", "-T", "5", "a"}, COMMAND_WAIT, 1},
        {{"fetch", "a", "-o", "-", "--to", "csv"}, COMMAND_FETCH, 1},
        {{"cancel", "a", "b", "c"}, COMMAND_CANCEL, 3},
        {{"list", "-n", "5", "--status=failed"}, COMMAND_LIST, 0},
        {{"a.npy", "--async", "-d", "1MiB"}, COMMAND_INVERT, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arguments arguments;
        struct failure failure;
        if (read_words(&arguments, rows[i].words, NULL, &failure) != ERROR_NONE)
            fail_msg("row %zu: %s", i, failure.detail);
        assert_int_equal(arguments.command, rows[i].command);
        assert_int_equal(arguments.id_count, rows[i].ids);
        assert_true((arguments.input != NULL) == (arguments.command == COMMAND_INVERT));
        arguments_free(&arguments);
    }
}

/* Names, --from and --to; a text is answered as a text. */
static void test_formats(void **state)
{
    (void)state;
    static const struct {
        const char *words[WORDS_MAX];
        enum format input, output;
    } rows[] = {
        {{"d.x/a.npy", "-o", "B.NPZ"}, FORMAT_NPY, FORMAT_NPZ},
        {{"a.npy.json", "-o", "-"}, FORMAT_JSON, FORMAT_UNKNOWN},
        {{"a.npy.gz", "-o", ".npy"}, FORMAT_UNKNOWN, FORMAT_UNKNOWN},
        {{"npy", "-o", ""}, FORMAT_UNKNOWN, FORMAT_UNKNOWN},
        {{"a.Mtx", "-o", "b.csv"}, FORMAT_MATRIX_MARKET, FORMAT_CSV},
        {{"a.mtx", "-o", "-"}, FORMAT_MATRIX_MARKET, FORMAT_MATRIX_MARKET},
        {{"-", "--from", "CSV", "-o", "-"}, FORMAT_CSV, FORMAT_CSV},
        {{"a.csv", "--to", "npy", "-o", "b.mtx"}, FORMAT_CSV, FORMAT_NPY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arguments arguments;
        struct failure failure;
        assert_int_equal(read_words(&arguments, rows[i].words, NULL, &failure), ERROR_NONE);
        assert_int_equal(arguments.input_format, rows[i].input);
        assert_int_equal(arguments.output_format, rows[i].output);
        arguments_free(&arguments);
    }
    assert_null(format_media_type(FORMAT_UNKNOWN));
    assert_string_equal(format_media_type(FORMAT_CSV), "application/x-npy");
    assert_string_equal(format_media_type(FORMAT_JSON), "application/json");
}

/* Without --retry-max it is --timeout's. */
static void test_times(void **state)
{
    (void)state;
    static const struct {
        const char *words[WORDS_MAX];
        int64_t timeout_ns, retry_max_ns;
    } rows[] = {
        {{"list"}, 0, 60000000000},
        {{"list", "--timeout", "1h"}, 3600000000000, 3600000000000},
        {{"list", "--timeout", "1h", "-r", "0"}, 3600000000000, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arguments arguments;
        struct failure failure;
        assert_int_equal(read_words(&arguments, rows[i].words, NULL, &failure), ERROR_NONE);
        assert_int_equal(arguments.timeout_ns, rows[i].timeout_ns);
        assert_int_equal(arguments.retry_max_ns, rows[i].retry_max_ns);
        arguments_free(&arguments);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),     cmocka_unit_test(test_bad),
        cmocka_unit_test(test_fields),   cmocka_unit_test(test_long_query),
        cmocka_unit_test(test_commands), cmocka_unit_test(test_formats),
        cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
