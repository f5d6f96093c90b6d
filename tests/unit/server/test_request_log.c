/* tests/unit/server/test_request_log.c: the access log: its lines, when they are written, and a
 * file that is moved away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/http/request_log.h"

static char path[] = "/tmp/invertd-test-access-XXXXXX";

static const struct request_log_entry whole = {.id = "an\"id",
                                               .client = "192.0.2.1",
                                               .route = "/v1/invert",
                                               .status = 200,
                                               .method = "lu",
                                               .n = 8,
                                               .batch = 3,
                                               .bytes_in = 512,
                                               .bytes_out = 640,
                                               .queue_ns = 3999,
                                               .compute_ns = 12000,
                                               .total_ns = 80000};

/* What the file holds. */
static const char *held(const char *name)
{
    static char text[1 << 20];
    FILE *file = fopen(name, "r");
    size_t length = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    text[length] = '\0';
    if (file != NULL)
        fclose(file);
    return text;
}

static size_t line_count(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

static struct request_log *open_log(void)
{
    struct request_log *log = NULL;
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(request_log_open(path, &log, NULL), ERROR_NONE);
    return log;
}

static void test_lines(void **state)
{
    static const struct request_log_entry empty = {.status = 0};
    (void)state;
    struct request_log *log = open_log();
    struct request_log_buffer *buffer = request_log_buffer_create(log);
    request_log_add(buffer, &whole, 1);
    request_log_add(buffer, &empty, 2);
    assert_string_equal(held(path), ""); /* no system call a request */
    request_log_tick(buffer, REQUEST_LOG_LAG_NS);
    assert_string_equal(held(path), "");
    request_log_tick(buffer, REQUEST_LOG_LAG_NS + 1);
    const char *text = held(path);
    assert_int_equal(line_count(text), 2);
    assert_int_equal(strncmp(text, "{\"time\":\"20", 11), 0);
    assert_int_equal(text[strlen("{\"time\":\"2026-01-31T23:59:59.123")], 'Z');
    assert_non_null(strstr(text, "Z\",\"id\":\"an\\\"id\",\"client\":\"192.0.2.1\",\"route\":"
                                 "\"/v1/invert\",\"status\":200,\"method\":\"lu\",\"n\":8,"
                                 "\"batch\":3,\"bytes_in\":512,\"bytes_out\":640,\"queue_us\":3,"
                                 "\"compute_us\":12,\"total_us\":80}\n"));
    assert_non_null(strstr(text, "Z\",\"id\":null,\"client\":null,\"route\":null,\"status\":null,"
                                 "\"method\":null,\"n\":null,\"batch\":null,\"bytes_in\":0,"));
    request_log_buffer_destroy(&buffer);
    request_log_close(&log);
    assert_null(log);
}

/* A full buffer is written; so is what is left at the end. The longest line fits. */
static void test_full(void **state)
{
    char id[129], route[129];
    (void)state;
    struct request_log *log = open_log();
    struct request_log_buffer *buffer = request_log_buffer_create(log);
    memset(id, '"', sizeof id - 1);
    memset(route, '\\', sizeof route - 1);
    id[sizeof id - 1] = route[sizeof route - 1] = '\0';
    struct request_log_entry entry = whole;
    entry.id = id;
    entry.client = entry.route = route;
    entry.n = entry.batch = entry.bytes_in = entry.bytes_out = INT64_MAX;
    entry.queue_ns = entry.compute_ns = entry.total_ns = UINT64_MAX;
    for (int i = 0; i < 500; i++)
        request_log_add(buffer, &entry, 1);
    size_t before = line_count(held(path));
    assert_true(before > 0 && before < 500);
    request_log_buffer_destroy(&buffer);
    assert_int_equal(line_count(held(path)), 500);
    request_log_close(&log);
}

static void test_reopen(void **state)
{
    char moved[64];
    (void)state;
    snprintf(moved, sizeof moved, "%s.1", path);
    struct request_log *log = open_log();
    struct request_log_buffer *buffer = request_log_buffer_create(log);
    request_log_add(buffer, &whole, 1);
    request_log_tick(buffer, UINT64_MAX);
    assert_int_equal(rename(path, moved), 0);
    request_log_add(buffer, &whole, 1);
    request_log_reopen(log);
    request_log_tick(buffer, UINT64_MAX);
    assert_int_equal(line_count(held(moved)), 1);
    assert_int_equal(line_count(held(path)), 1);
    request_log_buffer_destroy(&buffer);
    request_log_close(&log);
    unlink(moved);
}

static void test_none(void **state)
{
    struct request_log *log = NULL;
    struct failure failure = {0};
    (void)state;
    assert_int_equal(request_log_open("/nonexistent/log", &log, &failure), ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, "--access-log \"/nonexistent/log\""));
    struct request_log_buffer *buffer = request_log_buffer_create(NULL);
    assert_null(buffer);
    request_log_add(buffer, &whole, 1);
    request_log_tick(buffer, 2);
    request_log_buffer_destroy(&buffer);
}

int main(void)
{
    close(mkstemp(path));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_reopen),
        cmocka_unit_test(test_none),
    };
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failures;
}
