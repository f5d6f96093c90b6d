/* tests/unit/base/test_option_list.c: options that may be given several times, options that may
 * change while the program runs, files that others can write, and variables of
 * other programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/option.h"

#define WORDS_MAX 6

struct configuration {
    char *config;
    struct option_list hosts;
    int64_t wait, size;
    int level;
    bool loud;
};

static const struct option_row table_rows[] = {
    {.flag = "config", .kind = OPTION_TEXT, .offset = offsetof(struct configuration, config)},
    {.flag = "hosts",
     .kind = OPTION_LIST,
     .offset = offsetof(struct configuration, hosts),
     .initial = "a,b",
     .placeholder = "HOST"},
    {.flag = "wait",
     .kind = OPTION_DURATION,
     .offset = offsetof(struct configuration, wait),
     .initial = "1s",
     .max = INT64_MAX,
     .reload = true},
    {.flag = "size",
     .kind = OPTION_BYTES,
     .offset = offsetof(struct configuration, size),
     .initial = "1KiB",
     .max = INT64_MAX},
    {.flag = "level",
     .kind = OPTION_CHOICE,
     .offset = offsetof(struct configuration, level),
     .initial = "low",
     .choices = "low|high",
     .reload = true},
    {.flag = "loud",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct configuration, loud),
     .initial = "false",
     .reload = true},
};

static const struct option_table table = {"tester",
                                          "A program of tests.",
                                          "TESTER",
                                          table_rows,
                                          sizeof table_rows / sizeof table_rows[0],
                                          "TESTER_FOREIGN"};

static char path[] = "/tmp/invertd-test-option-XXXXXX";

static void write_file(const char *data)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(data, file);
    assert_int_equal(fclose(file), 0);
}

static enum error parse(const char *const *arguments, const char *const *variables,
                        struct configuration *configuration, struct failure *failure)
{
    char *argv[WORDS_MAX + 2] = {(char *)"tester"}, *environment[WORDS_MAX + 1] = {NULL};
    int argc = 1;
    for (int i = 0; i < WORDS_MAX && arguments[i] != NULL; i++)
        argv[argc++] = (char *)arguments[i];
    for (int i = 0; i < WORDS_MAX && variables[i] != NULL; i++)
        environment[i] = (char *)variables[i];
    *configuration = (struct configuration){0};
    return option_parse(&table, argc, argv, environment, configuration, failure);
}

static const struct {
    const char *arguments[4], *variable, *file, *expected; /* expected NULL: refused */
} list_rows[] = {
    {{NULL}, NULL, NULL, "a,b"},
    {{"--hosts", "c"}, NULL, NULL, "c"},
    {{"--hosts", "c", "--hosts", "d, e ,f"}, NULL, NULL, "c,d,e,f"},
    {{"--hosts", "c"}, "TESTER_HOSTS=d,e", NULL, "c"},
    {{NULL}, "TESTER_HOSTS=d,e", "hosts = x", "d,e"},
    {{NULL}, NULL, "hosts = x\nhosts = y, z\n", "x,y,z"},
    {{"--hosts", ""}, NULL, NULL, NULL},
    {{"--hosts", ","}, NULL, NULL, NULL},
    {{"--hosts", "a,"}, NULL, NULL, NULL},
    {{"--hosts", "a, ,b"}, NULL, NULL, NULL},
    {{"--hosts", "a\nb"}, NULL, NULL, NULL},
};

static void test_lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof list_rows / sizeof list_rows[0]; i++) {
        char config[64], joined[64] = "";
        snprintf(config, sizeof config, "TESTER_CONFIG=%s", path);
        write_file(list_rows[i].file != NULL ? list_rows[i].file : "");
        const char *arguments[WORDS_MAX] = {NULL};
        memcpy(arguments, list_rows[i].arguments, sizeof list_rows[i].arguments);
        const char *const variables[WORDS_MAX] = {config, list_rows[i].variable};
        struct configuration c;
        struct failure failure;
        enum error error = parse(arguments, variables, &c, &failure);
        if (list_rows[i].expected == NULL) {
            assert_int_equal(error, ERROR_BAD_OPTION);
            assert_non_null(strstr(failure.detail, "give HOST, or up to 64 of them with commas"));
            assert_int_equal(c.hosts.count, 0);
            continue;
        }
        assert_int_equal(error, ERROR_NONE);
        for (int k = 0; k < c.hosts.count; k++) {
            strcat(joined, k > 0 ? "," : "");
            strcat(joined, c.hosts.items[k]);
        }
        assert_string_equal(joined, list_rows[i].expected);
        option_free(&table, &c);
        assert_int_equal(c.hosts.count, 0);
    }
    char many[2 * OPTION_LIST_MAX + 16] = "--hosts=a";
    for (int i = 1; i < OPTION_LIST_MAX; i++)
        strcat(many, ",a");
    const char *const arguments[WORDS_MAX] = {many};
    const char *const nothing[WORDS_MAX] = {NULL};
    struct configuration c;
    struct failure failure;
    assert_int_equal(parse(arguments, nothing, &c, &failure), ERROR_NONE);
    assert_int_equal(c.hosts.count, OPTION_LIST_MAX);
    option_free(&table, &c);
    strcat(many, ",a");
    assert_int_equal(parse(arguments, nothing, &c, &failure), ERROR_BAD_OPTION);
}

/* ---- Changes ---- */

static void note_change(void *context, const struct option_row *row, const char *before,
                        const char *after)
{
    char *text = context;
    snprintf(text + strlen(text), 256 - strlen(text), "%s%s %s %s;", row->reload ? "" : "!",
             row->flag, before, after);
}

static struct configuration parse_file(const char *text)
{
    const char *const arguments[WORDS_MAX] = {"--config", path}, *const none[WORDS_MAX] = {NULL};
    struct configuration c;
    struct failure failure;
    write_file(text);
    if (parse(arguments, none, &c, &failure) != ERROR_NONE)
        fail_msg("%s", failure.detail);
    return c;
}

static void test_changes(void **state)
{
    char text[256] = "";
    (void)state;
    struct configuration before = parse_file("hosts = x\n");
    struct configuration same = parse_file("wait = 1000ms\nhosts = x\n");
    option_reload_differences(&table, &before, &same, note_change, text);
    assert_string_equal(text, "");
    struct configuration after =
        parse_file("hosts = x, y\nwait = 2s\nsize = 3B\nlevel = high\nloud = yes\n");
    option_reload_differences(&table, &before, &after, note_change, text);
    assert_string_equal(text, "!hosts x x,y;wait 1s 2s;!size 1KiB 3B;level low high;"
                              "loud false true;");
    option_reload_apply(&table, &before, &after);
    text[0] = '\0';
    option_reload_differences(&table, &before, &after, note_change, text);
    assert_string_equal(text, "!hosts x x,y;!size 1KiB 3B;");
    option_free(&table, &before);
    option_free(&table, &same);
    option_free(&table, &after);
}

static void test_file_of_others(void **state)
{
    const char *const arguments[WORDS_MAX] = {"--config", path}, *const none[WORDS_MAX] = {NULL};
    struct configuration c;
    struct failure failure = {0};
    (void)state;
    write_file("wait = 2s\n");
    assert_int_equal(chmod(path, 0646), 0);
    assert_int_equal(parse(arguments, none, &c, &failure), ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, "others can write the file"));
    assert_int_equal(chmod(path, 0664), 0);
    assert_int_equal(parse(arguments, none, &c, &failure), ERROR_NONE);
    option_free(&table, &c);
}

/* A variable of another program; one that begins as it does is an error all the same. */
static void test_foreign_variable(void **state)
{
    const char *const arguments[] = {NULL};
    const char *const foreign[] = {"TESTER_FOREIGN=x", "TESTER_WAIT=2s", NULL};
    const char *const longer[] = {"TESTER_FOREIGNER=x", NULL};
    struct configuration c;
    struct failure failure = {0};
    (void)state;
    assert_int_equal(parse(arguments, foreign, &c, &failure), ERROR_NONE);
    assert_int_equal(c.wait, 2000000000);
    option_free(&table, &c);
    assert_int_equal(parse(arguments, longer, &c, &failure), ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, "TESTER_FOREIGNER"));
}

int main(void)
{
    close(mkstemp(path));
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lists), cmocka_unit_test(test_changes),
                                       cmocka_unit_test(test_file_of_others),
                                       cmocka_unit_test(test_foreign_variable)};
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failures;
}
