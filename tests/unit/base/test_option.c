/* tests/unit/base/test_option.c: where values come from, what they may be, and what is said when
 * they are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/option.h"

#define S INT64_C(1000000000)
#define WORDS_MAX 6

struct configuration {
    char *config, *listen, *name;
    int64_t workers, offset, size, wait, any;
    bool verbose, quick;
    int format;
};

#define AT(field) offsetof(struct configuration, field)

static const struct option_row table_rows[] = {
    {"config", OPTION_TEXT, AT(config), NULL, 0, 0, NULL, "FILE", "A file of options.", false,
     false},
    {"listen", OPTION_TEXT, AT(listen), "127.0.0.1:8000", 0, 0, NULL, "HOST:PORT",
     "Where to listen.", false, false},
    {"name", OPTION_TEXT, AT(name), NULL, 0, 0, NULL, NULL, "A name.", false, false},
    {"workers", OPTION_INT, AT(workers), "4", 1, 64, NULL, "COUNT", "How many workers.", false,
     false},
    {"offset", OPTION_INT, AT(offset), "0", -5, 5, NULL, "NUMBER", "May be negative.", false,
     false},
    {"body-max", OPTION_BYTES, AT(size), "256MiB", 1, INT64_C(1) << 40, NULL, "SIZE",
     "The longest body.", false, false},
    {"drain-timeout", OPTION_DURATION, AT(wait), "30s", 0, 3600 * S, NULL, "DURATION",
     "How long a drain may take.", false, false},
    {"any", OPTION_INT, AT(any), "7", INT64_MIN, INT64_MAX, NULL, "NUMBER", "Without bounds.",
     false, false},
    {"verbose", OPTION_BOOL, AT(verbose), "false", 0, 0, NULL, NULL, "Says more.", false, false},
    {"quick", OPTION_BOOL, AT(quick), "true", 0, 0, NULL, NULL, "Goes faster.", true, false},
    {"log-format", OPTION_CHOICE, AT(format), "json", 0, 0, "json|text|js", "FORMAT",
     "One object a line, or text for people. A | B.", false, true},
};

static const struct option_table table = {
    "tester", "A program of tests.", "TESTER", table_rows, sizeof table_rows / sizeof table_rows[0],
    NULL};

static char path[] = "/tmp/invertd-test-option-XXXXXX";

static void write_file(const char *data)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(data, file);
    assert_int_equal(fclose(file), 0);
}

/* Parses up to WORDS_MAX arguments and variables, each list closed by NULL or its length. */
static enum error parse(const char *const *arguments, const char *const *variables,
                        struct configuration *configuration, struct failure *failure)
{
    char *argv[WORDS_MAX + 2] = {(char *)"tester"};
    char *environment[WORDS_MAX + 1] = {NULL};
    int argc = 1;
    for (int i = 0; i < WORDS_MAX && arguments[i] != NULL; i++)
        argv[argc++] = (char *)arguments[i];
    for (int i = 0; i < WORDS_MAX && variables[i] != NULL; i++)
        environment[i] = (char *)variables[i];
    *configuration = (struct configuration){0};
    *failure = (struct failure){0};
    return option_parse(&table, argc, argv, environment, configuration, failure);
}

static const char *const nothing[WORDS_MAX] = {NULL};

/* Parses what must be good. */
static struct configuration parse_good(const char *const *arguments, const char *const *variables)
{
    struct configuration configuration;
    struct failure failure;
    if (parse(arguments, variables, &configuration, &failure) != ERROR_NONE)
        fail_msg("%s", failure.detail);
    return configuration;
}

static void test_defaults(void **state)
{
    (void)state;
    struct configuration c = parse_good(nothing, nothing);
    assert_null(c.config);
    assert_null(c.name);
    assert_string_equal(c.listen, "127.0.0.1:8000");
    assert_int_equal(c.workers, 4);
    assert_int_equal(c.size, 256 << 20);
    assert_int_equal(c.wait, 30 * S);
    assert_int_equal(c.any, 7);
    assert_false(c.verbose);
    assert_true(c.quick);
    assert_int_equal(c.format, 0);
    option_free(&table, &c);
    assert_null(c.listen);
    option_free(&table, &c);
}

/* ---- Values ---- */

struct value_row {
    const char *flag;
    size_t offset; /* of the field */
    const char *value;
    bool good;
    int64_t result;
};

static const struct value_row value_rows[] = {
    {"workers", AT(workers), "1", true, 1},
    {"workers", AT(workers), "64", true, 64},
    {"workers", AT(workers), "007", true, 7},
    {"workers", AT(workers), "0", false, 0},
    {"workers", AT(workers), "65", false, 0},
    {"workers", AT(workers), "-1", false, 0},
    {"workers", AT(workers), "", false, 0},
    {"workers", AT(workers), " 4", false, 0},
    {"workers", AT(workers), "4 ", false, 0},
    {"workers", AT(workers), "+4", false, 0},
    {"workers", AT(workers), "4.0", false, 0},
    {"workers", AT(workers), "0x4", false, 0},
    {"workers", AT(workers), "4s", false, 0},
    {"workers", AT(workers), "99999999999999999999", false, 0},
    {"offset", AT(offset), "-5", true, -5},
    {"offset", AT(offset), "-6", false, 0},
    {"offset", AT(offset), "-", false, 0},
    {"any", AT(any), "9223372036854775807", true, INT64_MAX},
    {"any", AT(any), "9223372036854775808", false, 0},
    {"body-max", AT(size), "4096", true, 4096},
    {"body-max", AT(size), "4096B", true, 4096},
    {"body-max", AT(size), "64KiB", true, 65536},
    {"body-max", AT(size), "1MiB", true, 1 << 20},
    {"body-max", AT(size), "8GiB", true, INT64_C(8) << 30},
    {"body-max", AT(size), "1TiB", true, INT64_C(1) << 40},
    {"body-max", AT(size), "1kB", true, 1000},
    {"body-max", AT(size), "1KB", true, 1000},
    {"body-max", AT(size), "1MB", true, 1000000},
    {"body-max", AT(size), "1.5GiB", true, INT64_C(3) << 29},
    {"body-max", AT(size), "2TiB", false, 0},
    {"body-max", AT(size), "99999999999TiB", false, 0},
    {"body-max", AT(size), "1.5", false, 0},
    {"body-max", AT(size), "0.3KiB", false, 0},
    {"body-max", AT(size), "1.KiB", false, 0},
    {"body-max", AT(size), "1M", false, 0},
    {"body-max", AT(size), "1mib", false, 0},
    {"body-max", AT(size), "MiB", false, 0},
    {"body-max", AT(size), "0", false, 0},
    {"drain-timeout", AT(wait), "0", true, 0},
    {"drain-timeout", AT(wait), "10", true, 10 * S},
    {"drain-timeout", AT(wait), "10s", true, 10 * S},
    {"drain-timeout", AT(wait), "1.5s", true, 3 * S / 2},
    {"drain-timeout", AT(wait), "0.25", true, S / 4},
    {"drain-timeout", AT(wait), "500ms", true, S / 2},
    {"drain-timeout", AT(wait), "50us", true, 50000},
    {"drain-timeout", AT(wait), "7ns", true, 7},
    {"drain-timeout", AT(wait), "2m", true, 120 * S},
    {"drain-timeout", AT(wait), "1h", true, 3600 * S},
    {"drain-timeout", AT(wait), "3601s", false, 0},
    {"drain-timeout", AT(wait), "0.0001us", false, 0},
    {"drain-timeout", AT(wait), "-1s", false, 0},
    {"drain-timeout", AT(wait), "10 s", false, 0},
    {"drain-timeout", AT(wait), "soon", false, 0},
};

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof value_rows / sizeof value_rows[0]; i++) {
        const struct value_row *row = &value_rows[i];
        char argument[100];
        snprintf(argument, sizeof argument, "--%s=%s", row->flag, row->value);
        const char *const arguments[WORDS_MAX] = {argument};
        struct configuration c;
        struct failure failure;
        enum error error = parse(arguments, nothing, &c, &failure);
        if (error != (row->good ? ERROR_NONE : ERROR_BAD_OPTION))
            fail_msg("%s: error %d %s", argument, error, failure.detail);
        if (!row->good) {
            assert_non_null(strstr(failure.detail, row->value));
            assert_null(c.listen); /* nothing to free after a failure */
            continue;
        }
        int64_t result = *(int64_t *)((char *)&c + row->offset);
        if (result != row->result)
            fail_msg("%s gave %lld", argument, (long long)result);
        option_free(&table, &c);
    }
}

static void test_words(void **state)
{
    (void)state;
    static const char *const yes[] = {"true", "on", "yes", "1"};
    static const char *const no[] = {"false", "off", "no", "0"};
    for (int i = 0; i < 4; i++) {
        char verbose[32], quick[32];
        snprintf(verbose, sizeof verbose, "--verbose=%s", yes[i]);
        snprintf(quick, sizeof quick, "TESTER_QUICK=%s", no[i]);
        const char *const arguments[WORDS_MAX] = {verbose};
        const char *const variables[WORDS_MAX] = {quick};
        struct configuration c = parse_good(arguments, variables);
        assert_true(c.verbose);
        assert_false(c.quick);
        option_free(&table, &c);
    }
    static const char *const bare[WORDS_MAX] = {"--verbose", "--log-format", "js", "--name="};
    struct configuration c = parse_good(bare, nothing);
    assert_true(c.verbose);
    assert_int_equal(c.format, 2);
    assert_string_equal(c.name, "");
    option_free(&table, &c);
}

/* ---- Sources ---- */

/* A flag wins over the environment, the environment over the file, the file over the default. */
static void test_precedence(void **state)
{
    (void)state;
    /* It begins as editors of Windows write files. */
    write_file("\xef\xbb\xbfname = \"  kept \"\r\n# workers\n\n  workers = 11\nbody-max=1KiB\n"
               "drain-timeout =  1s  \n listen = a#b = c\nverbose = on");
    char config[64];
    snprintf(config, sizeof config, "TESTER_CONFIG=%s", path);
    static const char *const arguments[WORDS_MAX] = {"--workers", "33"};
    const char *const variables[WORDS_MAX] = {"TESTER_WORKERS=22", config, "OTHER=1", "TESTERX=2",
                                              "TESTER_BODY_MAX=2KiB"};
    struct configuration c = parse_good(arguments, variables);
    assert_int_equal(c.workers, 33);
    assert_int_equal(c.size, 2048);
    assert_int_equal(c.wait, S);
    assert_int_equal(c.any, 7);
    assert_true(c.verbose);
    assert_string_equal(c.name, "  kept ");
    assert_string_equal(c.listen, "a#b = c");
    assert_string_equal(c.config, path);
    option_free(&table, &c);

    const char *const flag[WORDS_MAX] = {"--config", path};
    static const char *const elsewhere[WORDS_MAX] = {"TESTER_CONFIG=/nonexistent/file"};
    c = parse_good(flag, elsewhere);
    assert_int_equal(c.workers, 11);
    option_free(&table, &c);
}

/* Kubernetes sets these for Services named tester and tester-blue. */
static void test_variables_of_services(void **state)
{
    (void)state;
    static const char *const names[] = {
        "TESTER_SERVICE_HOST",
        "TESTER_SERVICE_PORT",
        "TESTER_SERVICE_PORT_HTTP",
        "TESTER_PORT",
        "TESTER_PORT_8000_TCP",
        "TESTER_PORT_8000_TCP_PROTO",
        "TESTER_PORT_8000_TCP_PORT",
        "TESTER_PORT_8000_TCP_ADDR",
        "TESTER_BLUE_SERVICE_HOST",
        "TESTER_BLUE_SERVICE_PORT",
        "TESTER_BLUE_SERVICE_PORT_METRICS",
        "TESTER_BLUE_PORT",
        "TESTER_BLUE_PORT_53_UDP_ADDR",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char variable[64];
        snprintf(variable, sizeof variable, "%s=tcp://10.0.0.1:8000", names[i]);
        const char *const variables[WORDS_MAX] = {variable, "TESTER_WORKERS=22"};
        struct configuration c = parse_good(nothing, variables);
        assert_int_equal(c.workers, 22);
        option_free(&table, &c);
    }
}

/* ---- Errors ---- */

#define FILE_ERROR "FILE" /* stands for the file's path in an expected text */

struct error_row {
    const char *arguments[3], *variables[2], *file; /* file: given by --config */
    const char *detail;
};

static const struct error_row error_rows[] = {
    {{"--lisen", "x"}, {NULL}, NULL, "--lisen is not an option. Did you mean --listen?"},
    {{"--lisen=x"}, {NULL}, NULL, "--lisen is not an option. Did you mean --listen?"},
    {{"--drain-time", "x"},
     {NULL},
     NULL,
     "--drain-time is not an option. Did you mean --drain-timeout?"},
    {{"--drain", "x"}, {NULL}, NULL, "--drain is not an option. Did you mean --drain-timeout?"},
    {{"--max", "x"}, {NULL}, NULL, "--max is not an option. Did you mean --body-max?"},
    {{"--form", "x"}, {NULL}, NULL, "--form is not an option. See --help."},
    {{"--port", "8001"}, {NULL}, NULL, "--port is not an option. Did you mean --listen HOST:PORT?"},
    {{"--host=x"}, {NULL}, NULL, "--host is not an option. Did you mean --listen HOST:PORT?"},
    {{"--count", "3"}, {NULL}, NULL, "--count is not an option. See --help."},
    {{NULL}, {NULL}, "port = 8001", FILE_ERROR ":1: port is not an option. Did you mean listen?"},
    {{"--frobnicate"}, {NULL}, NULL, "--frobnicate is not an option. See --help."},
    {{"--Listen", "x"}, {NULL}, NULL, "--Listen is not an option. Did you mean --listen?"},
    {{NULL},
     {"TESTER_WORKER=1"},
     NULL,
     "TESTER_WORKER is not an option. Did you mean TESTER_WORKERS?"},
    {{NULL},
     {"TESTER_drain_timeout=1"},
     NULL,
     "TESTER_drain_timeout is not an option. Did you mean TESTER_DRAIN_TIMEOUT?"},
    {{NULL}, {"TESTER_=1"}, NULL, "TESTER_ is not an option. See --help."},
    {{NULL}, {"TESTER_SERVICE=1"}, NULL, "TESTER_SERVICE is not an option. See --help."},
    {{NULL}, {"TESTER_PORT_X=1"}, NULL, "TESTER_PORT_X is not an option. See --help."},
    {{NULL}, {"TESTER_SUPPORT=1"}, NULL, "TESTER_SUPPORT is not an option. See --help."},
    {{NULL},
     {NULL},
     "workers = 1\nlog-forma = text\n",
     "FILE:2: log-forma is not an option. Did you mean log-format?"},
    {{"--workers", "100"},
     {NULL},
     NULL,
     "--workers \"100\" is not allowed; give a whole number from 1 to 64."},
    {{NULL},
     {"TESTER_DRAIN_TIMEOUT=2h"},
     NULL,
     "TESTER_DRAIN_TIMEOUT \"2h\" is not allowed; give a duration from 0s to 1h, written as "
     "50us, 500ms, 10s or 2m."},
    {{NULL},
     {NULL},
     "\n\nbody-max = lots\n",
     "FILE:3: body-max \"lots\" is not allowed; give a size from 1B to 1TiB, written as 4096, "
     "64KiB, 1MB or 8GiB."},
    {{"--any", "x"}, {NULL}, NULL, "--any \"x\" is not allowed; give a whole number."},
    {{"--offset=9"},
     {NULL},
     NULL,
     "--offset \"9\" is not allowed; give a whole number from -5 to 5."},
    {{"--log-format", "xml"},
     {NULL},
     NULL,
     "--log-format \"xml\" is not allowed; give one of json, text, js."},
    {{"--log-format", "j"},
     {NULL},
     NULL,
     "--log-format \"j\" is not allowed; give one of json, text, js."},
    {{"--verbose=maybe"}, {NULL}, NULL, "--verbose \"maybe\" is not allowed; give true or false."},
    {{"--listen", "a\nb\xff"},
     {NULL},
     NULL,
     "--listen \"a?b?\" is not allowed; give HOST:PORT, without control characters."},
    {{"--listen"},
     {NULL},
     NULL,
     "--listen needs a value; give HOST:PORT, without control characters."},
    {{"--workers", "--verbose"},
     {NULL},
     NULL,
     "--workers needs a value; give a whole number from 1 to 64."},
    {{"--workers=1", "--workers=1"}, {NULL}, NULL, "--workers is given twice."},
    {{NULL}, {NULL}, "any = 1\nany = 2\n", "FILE:2: any is given twice."},
    {{"stray"},
     {NULL},
     NULL,
     "\"stray\" is not expected here. Options are written --name value or --name=value, switches "
     "--name or --name=false."},
    {{"--verbose", "false"},
     {NULL},
     NULL,
     "\"false\" is not expected here. Options are written --name value or --name=value, switches "
     "--name or --name=false."},
    {{"--"},
     {NULL},
     NULL,
     "\"--\" is not expected here. Options are written --name value or --name=value, switches "
     "--name or --name=false."},
    {{NULL}, {NULL}, "just words\n", "FILE:1: a line must be \"key = value\", or start with #."},
    {{NULL}, {NULL}, "= 5\n", "FILE:1: a line must be \"key = value\", or start with #."},
    {{NULL}, {NULL}, "config = x\n", "FILE:1: a configuration file cannot name another."},
    {{"--config", "/nonexistent/file"},
     {NULL},
     NULL,
     "--config \"/nonexistent/file\" cannot be read: No such file or directory."},
    {{NULL},
     {"TESTER_CONFIG=/nonexistent/file"},
     NULL,
     "TESTER_CONFIG \"/nonexistent/file\" cannot be read: No such file or directory."},
    {{"--config", "/tmp"}, {NULL}, NULL, "--config \"/tmp\" cannot be read: Is a directory."},
};

/* The row's text with the file's path in place of FILE. */
static void expected_detail(const struct error_row *row, char *detail, size_t size)
{
    bool names_file = strncmp(row->detail, FILE_ERROR ":", 5) == 0;
    snprintf(detail, size, "%s%s", names_file ? path : "", row->detail + (names_file ? 4 : 0));
}

static void test_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof error_rows / sizeof error_rows[0]; i++) {
        const struct error_row *row = &error_rows[i];
        const char *arguments[WORDS_MAX] = {row->arguments[0], row->arguments[1]};
        const char *const variables[WORDS_MAX] = {row->variables[0]};
        if (row->file != NULL) {
            write_file(row->file);
            arguments[0] = "--config";
            arguments[1] = path;
        }
        struct configuration c;
        struct failure failure;
        char detail[512];
        expected_detail(row, detail, sizeof detail);
        assert_int_equal(parse(arguments, variables, &c, &failure), ERROR_BAD_OPTION);
        assert_int_equal(failure.code, ERROR_BAD_OPTION);
        assert_string_equal(failure.detail, detail);
        assert_null(c.listen);
    }
}

/* Values and names of any length are reported in short, and harm nothing. */
static void test_long_texts(void **state)
{
    (void)state;
    static char words[5000], argument[5100];
    memset(words, 'w', sizeof words - 1);
    static const char *const forms[] = {"--workers=%s", "--%s", "--%s=x", "%s"};
    struct configuration c;
    struct failure failure;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const char *percent = strchr(forms[i], '%');
        snprintf(argument, sizeof argument, "%.*s%s%s", (int)(percent - forms[i]), forms[i], words,
                 percent + 2);
        const char *const arguments[WORDS_MAX] = {argument};
        assert_int_equal(parse(arguments, nothing, &c, &failure), ERROR_BAD_OPTION);
        assert_non_null(strstr(failure.detail, "www..."));
    }
    snprintf(argument, sizeof argument, "TESTER_%s=1", words);
    const char *const variables[WORDS_MAX] = {argument};
    assert_int_equal(parse(nothing, variables, &c, &failure), ERROR_BAD_OPTION);

    snprintf(argument, sizeof argument, "name = %s\n", words);
    write_file(argument);
    const char *const config[WORDS_MAX] = {"--config", path};
    assert_int_equal(parse(config, nothing, &c, &failure), ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, ":1: not a line of text, or longer than"));
}

/* ---- Printing ---- */

/* What printing gives, in memory; the caller frees it. */
static char *printed_help(void (*print)(const struct option_table *table, FILE *stream))
{
    char *data;
    size_t length;
    FILE *stream = open_memstream(&data, &length);
    assert_non_null(stream);
    print(&table, stream);
    assert_int_equal(fclose(stream), 0);
    return data;
}

static char *printed_config(const struct configuration *c)
{
    char *data;
    size_t length;
    FILE *stream = open_memstream(&data, &length);
    assert_non_null(stream);
    option_print_config(&table, c, stream);
    assert_int_equal(fclose(stream), 0);
    return data;
}

/* The printed configuration, read as a file, prints the same again. */
static void test_print_config(void **state)
{
    (void)state;
    static const char *const rows[][WORDS_MAX] = {
        {NULL},
        {"--workers=64", "--body-max=1536", "--drain-timeout=1500us", "--verbose", "--quick=0",
         "--log-format=text"},
        {"--body-max=1500", "--drain-timeout=0", "--offset=-3", "--name=", "--listen= x "},
        {"--body-max=3MB", "--drain-timeout=7ns", "--offset=0", "--name=\"quoted\"",
         "--any=-9223372036854775807", "--listen=# x = y"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct configuration c = parse_good(rows[i], nothing);
        char *first = printed_config(&c);
        write_file(first);
        const char *const config[WORDS_MAX] = {"--config", path};
        struct configuration again = parse_good(config, nothing);
        char *second = printed_config(&again);
        assert_string_equal(first, second);
        assert_string_equal(again.listen, c.listen);
        assert_int_equal(again.name == NULL, c.name == NULL);
        if (c.name != NULL)
            assert_string_equal(again.name, c.name);
        assert_true(again.size == c.size && again.wait == c.wait && again.any == c.any &&
                    again.offset == c.offset && again.workers == c.workers &&
                    again.verbose == c.verbose && again.quick == c.quick &&
                    again.format == c.format);
        free(first);
        free(second);
        option_free(&table, &c);
        option_free(&table, &again);
    }
}

static void test_print_config_text(void **state)
{
    (void)state;
    static const char *const arguments[WORDS_MAX] = {"--body-max=64KiB", "--drain-timeout=90s"};
    struct configuration c = parse_good(arguments, nothing);
    char *text = printed_config(&c);
    assert_non_null(strstr(text, "# How many workers. Default 4; give a whole number from 1 to "
                                 "64.\nworkers = 4\n"));
    assert_non_null(strstr(text, "\n# name = \n"));
    assert_non_null(strstr(text, "\nbody-max = 64KiB\n"));
    assert_non_null(strstr(text, "\ndrain-timeout = 90s\n"));
    assert_non_null(strstr(text, "\nlog-format = json\n"));
    assert_null(strstr(text, "config ="));
    free(text);
    option_free(&table, &c);
}

static void test_print_help(void **state)
{
    (void)state;
    char *text = printed_help(option_print_help);
    assert_non_null(strstr(text, "Usage: tester "));
    assert_non_null(strstr(text, "A program of tests."));
    assert_non_null(strstr(text, "TESTER_SOME_OPTION"));
    assert_non_null(strstr(text, "\n  --listen HOST:PORT\n      Where to listen. Default "
                                 "127.0.0.1:8000.\n"));
    assert_non_null(strstr(text, "\n  --verbose\n"));
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        assert_true(strlen(line) <= 80);
    free(text);
}

static void test_print_markdown(void **state)
{
    (void)state;
    char *text = printed_help(option_print_markdown);
    assert_non_null(strstr(text, "| --- | --- | --- | --- | --- |\n"));
    assert_non_null(strstr(
        text, "| `--workers` | `4` | a whole number from 1 to 64 | How many workers. | |\n"));
    assert_non_null(strstr(text, "| `--log-format` | `json` | one of json, text, js | One object a "
                                 "line, or text for people. A \\| B. | yes |\n"));
    assert_non_null(strstr(text, "| `--name` | none | "));
    /* What is for tests stands in a table of its own, and there alone. */
    const char *apart = strstr(text, "\n## For tests alone\n");
    assert_non_null(apart);
    assert_ptr_equal(strstr(text, "| `--quick` | "), strstr(apart, "| `--quick` | "));
    assert_null(strstr(apart, "| `--log-format` | "));
    free(text);
}

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_variables_of_services),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_print_config),
        cmocka_unit_test(test_print_config_text),
        cmocka_unit_test(test_print_help),
        cmocka_unit_test(test_print_markdown),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
