/* tests/unit/base/test_log.c: lines as JSON and as text, what is cut, levels, reopening.
 *
 * Each test logs into a file of its own; a line is checked behind its time, which is checked apart.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#define TIME "2026-01-31T23:59:59.123Z"
#define THREADS 4
#define LINES 500 /* of one thread */

static char folder[] = "/tmp/invertd-test-log-XXXXXX";
static char path[128], moved[128];

static void start(enum log_level least, enum log_format format)
{
    remove(path);
    assert_true(log_open(least, format, "tester", path));
}

/* The whole file; the caller frees it. */
static char *contents(const char *name)
{
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    char *data = calloc(1, 1 << 20);
    assert_non_null(data);
    size_t length = fread(data, 1, (1 << 20) - 1, file);
    assert_int_equal(length, strlen(data));
    fclose(file);
    return data;
}

/* Fails unless text starts with a time in RFC 3339, in milliseconds and UTC. */
static void assert_time(const char *text)
{
    for (size_t i = 0; i < strlen(TIME); i++) {
        bool digit = isdigit((unsigned char)TIME[i]);
        assert_true(digit ? isdigit((unsigned char)text[i]) : text[i] == TIME[i]);
    }
}

/* Compares the only line of the log: before the time, and behind it. */
static void assert_only_line(const char *before, const char *behind)
{
    char *data = contents(path);
    assert_memory_equal(data, before, strlen(before));
    assert_time(data + strlen(before));
    assert_string_equal(data + strlen(before) + strlen(TIME), behind);
    free(data);
}

static void test_json(void **state)
{
    (void)state;
    start(LOG_INFO, LOG_JSON);
    log_line(LOG_INFO, "engine \"started\"", "pid", LOG_I64, INT64_MIN, "rate", LOG_F64, 0.1,
             "name", LOG_STR, "a\"\n\x1b[31m\xff", "none", LOG_STR, NULL, "last", LOG_I64,
             INT64_C(7), NULL);
    assert_only_line("{\"time\":\"", "\",\"level\":\"info\",\"program\":\"tester\","
                                     "\"message\":\"engine \\\"started\\\"\","
                                     "\"pid\":-9223372036854775808,\"rate\":0.1,"
                                     "\"name\":\"a\\\"\\n\\u001b[31m\xef\xbf\xbd\","
                                     "\"none\":null,\"last\":7}\n");
}

static void test_text(void **state)
{
    (void)state;
    start(LOG_INFO, LOG_TEXT);
    log_line(LOG_WARNING, "engine died", "pid", LOG_I64, INT64_C(12), "name", LOG_STR, "host",
             "why", LOG_STR, "out of\nmemory", "empty", LOG_STR, "", "trick", LOG_STR, "a=b", "del",
             LOG_STR, "a\x7f", "csi", LOG_STR,
             "\xc2\x9b"
             "31m\xc3\xa9",
             NULL);
    assert_only_line("", " tester warning: engine died pid=12 name=host why=\"out of\\nmemory\" "
                         "empty=\"\" trick=\"a=b\" del=\"a\\u007f\" csi=\"\\u009b31m\xc3\xa9\"\n");
}

static void test_levels(void **state)
{
    (void)state;
    static const char *const names[] = {"debug", "info", "warning", "error"};
    for (int least = LOG_DEBUG; least <= LOG_ERROR; least++) {
        start((enum log_level)least, LOG_JSON);
        for (int level = LOG_DEBUG; level <= LOG_ERROR; level++) {
            log_line((enum log_level)level, "hello", NULL);
            assert_int_equal(log_wanted((enum log_level)level), level >= least);
        }
        char *data = contents(path);
        for (int level = LOG_DEBUG; level <= LOG_ERROR; level++) {
            char field[64];
            snprintf(field, sizeof field, "\"level\":\"%s\"", names[level]);
            assert_int_equal(strstr(data, field) != NULL, level >= least);
        }
        free(data);
    }
}

/* A long string is cut between characters, what follows still comes, the line stays whole JSON of
 * at most 4 KiB. */
static void test_long_field(void **state)
{
    (void)state;
    static const char *const pieces[] = {"x", "\xe2\x82\xac", "\n", "\xff", "\xf0\x9f\x98\x80"};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        static char words[9000];
        words[0] = '\0';
        for (size_t at = 0; at + 5 < sizeof words; at += strlen(pieces[i]))
            memcpy(words + at, pieces[i], strlen(pieces[i]) + 1);
        start(LOG_INFO, LOG_JSON);
        log_line(LOG_INFO, "long", "words", LOG_STR, words, "behind", LOG_I64, INT64_C(1), NULL);
        char *data = contents(path);
        size_t length = strlen(data);
        assert_true(length > 500 && length <= 4096);
        assert_string_equal(data + length - strlen("\",\"behind\":1}\n"), "\",\"behind\":1}\n");
        if (pieces[i][0] != '\xff')
            assert_null(strstr(data, "\xef\xbf\xbd"));
        free(data);
    }
}

/* Fields for which no room is left are dropped whole. */
static void test_many_fields(void **state)
{
    (void)state;
    static char words[3001];
    memset(words, 'w', 3000);
    start(LOG_INFO, LOG_JSON);
    log_line(LOG_INFO, "many", "a", LOG_STR, words, "b", LOG_STR, words, "c", LOG_STR, words, "d",
             LOG_STR, words, "e", LOG_STR, words, "f", LOG_STR, words, "g", LOG_STR, words, "h",
             LOG_STR, words, "i", LOG_STR, words, "j", LOG_STR, words, "k", LOG_STR, words, "l",
             LOG_I64, INT64_MIN, "m", LOG_I64, INT64_MIN, "n", LOG_I64, INT64_MIN, NULL);
    char *data = contents(path);
    size_t length = strlen(data);
    assert_true(length > 3900 && length <= 4096);
    assert_string_equal(data + length - 2, "}\n");
    char end = data[length - 3];
    assert_true(end == '"' || isdigit((unsigned char)end));
    free(data);
}

static void test_reopen(void **state)
{
    (void)state;
    start(LOG_INFO, LOG_TEXT);
    log_line(LOG_INFO, "first", NULL);
    assert_int_equal(rename(path, moved), 0);
    log_line(LOG_INFO, "second", NULL);
    log_reopen();
    log_line(LOG_INFO, "third", NULL);
    char *old = contents(moved), *new = contents(path);
    assert_non_null(strstr(old, "first"));
    assert_non_null(strstr(old, "second"));
    assert_null(strstr(old, "third"));
    assert_non_null(strstr(new, "third"));
    assert_null(strstr(new, "second"));
    free(old);
    free(new);
    remove(moved);
}

static void test_bad_path(void **state)
{
    (void)state;
    assert_false(log_open(LOG_INFO, LOG_JSON, "tester", "/nonexistent/folder/log"));
    assert_false(log_open(LOG_INFO, LOG_JSON, "tester", ""));
}

static void test_errno_kept(void **state)
{
    (void)state;
    start(LOG_INFO, LOG_JSON);
    errno = ENOENT;
    log_line(LOG_INFO, "between a failure and its report", NULL);
    assert_int_equal(errno, ENOENT);
}

static void *log_all(void *context)
{
    for (int i = 0; i < LINES; i++)
        log_line(LOG_INFO, "from a thread", "filler", LOG_STR,
                 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", "thread", LOG_I64,
                 *(const int64_t *)context, NULL);
    return NULL;
}

/* Lines of several threads do not mix. */
static void test_threads(void **state)
{
    (void)state;
    start(LOG_INFO, LOG_JSON);
    pthread_t threads[THREADS];
    int64_t numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, log_all, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    char *data = contents(path);
    int lines = 0;
    char *rest;
    for (char *line = strtok_r(data, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest), lines++) {
        assert_memory_equal(line, "{\"time\":\"", 9);
        assert_memory_equal(strrchr(line, ','), ",\"thread\":", 10);
    }
    assert_int_equal(lines, THREADS * LINES);
    free(data);
}

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/log", folder);
    snprintf(moved, sizeof moved, "%s/log.1", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    remove(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),        cmocka_unit_test(test_text),
        cmocka_unit_test(test_levels),      cmocka_unit_test(test_long_field),
        cmocka_unit_test(test_many_fields), cmocka_unit_test(test_reopen),
        cmocka_unit_test(test_errno_kept),  cmocka_unit_test(test_threads),
        cmocka_unit_test(test_bad_path),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
