/* tests/unit/server/test_request_log.c: the access log: its lines, when they are written, and a
 * file that is moved away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

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

/* ---- A pipe ---- */

#define WRITERS 2
#define LINES 2000 /* of a writer */

static struct request_log *pipe_log;
static int pipe_reader;
static _Atomic int writers_ended;

static void open_pipe(void)
{
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    pipe_reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_int_equal(request_log_open(path, &pipe_log, NULL), ERROR_NONE);
}

static void close_pipe(void)
{
    request_log_close(&pipe_log);
    close(pipe_reader);
    unlink(path);
    close(open(path, O_CREAT | O_WRONLY, 0600));
}

static void *write_lines(void *context)
{
    (void)context;
    struct request_log_buffer *buffer = request_log_buffer_create(pipe_log);
    for (int i = 0; i < LINES; i++) {
        request_log_add(buffer, &whole, 1);
        if (i % 64 == 0)
            usleep(100); /* about as fast as the reader */
    }
    request_log_buffer_destroy(&buffer);
    atomic_fetch_add(&writers_ended, 1);
    return NULL;
}

/* The lines that are whole; a broken one fails. */
static size_t count_whole(char *text)
{
    size_t lines = 0;
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1, lines++) {
        *end = '\0';
        if (strncmp(line, "{\"time\":\"20", 11) != 0 || strchr(line + 1, '{') != NULL ||
            end[-1] != '}')
            fail_msg("a broken line: %s", line);
    }
    return lines;
}

/* Doors that write to one pipe do not tear each other's lines, though it is full most of the time.
 */
static void test_pipe_of_many(void **state)
{
    static char text[4 << 20];
    size_t length = 0;
    pthread_t writers[WRITERS];
    (void)state;
    open_pipe();
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, write_lines, NULL), 0);
    for (bool ended = false, more = true; !ended || more;) {
        ended = atomic_load(&writers_ended) == WRITERS;
        ssize_t count = read(pipe_reader, text + length, 1000);
        more = count > 0;
        length += more ? (size_t)count : 0;
        usleep(more ? 1 : 1000);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    text[length] = '\0';
    assert_in_range(count_whole(text), LINES / 4, WRITERS * LINES);
    assert_true(length == 0 || text[length - 1] == '\0'); /* the last one ended */
    close_pipe();
}

/* There is no reader: lines are kept as long as there is room, and then lost, and nothing waits. */
static void test_full_pipe(void **state)
{
    static char text[1 << 20];
    size_t length = 0;
    (void)state;
    open_pipe();
    struct request_log_buffer *buffer = request_log_buffer_create(pipe_log);
    uint64_t start_ns = clock_now_ns();
    for (int i = 0; i < 5000; i++)
        request_log_add(buffer, &whole, 1);
    request_log_tick(buffer, UINT64_MAX);
    assert_true(clock_now_ns() - start_ns < CLOCK_S);
    for (ssize_t count; (count = read(pipe_reader, text + length, 4096)) > 0;) {
        length += (size_t)count;
        request_log_tick(buffer, UINT64_MAX); /* goes on where it stopped */
    }
    request_log_buffer_destroy(&buffer);
    assert_in_range(length, 100 << 10, 150 << 10); /* what pipe and buffer hold */
    assert_in_range(count_whole(text), 300, 1000);
    close_pipe();
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
        cmocka_unit_test(test_lines),     cmocka_unit_test(test_full),
        cmocka_unit_test(test_reopen),    cmocka_unit_test(test_pipe_of_many),
        cmocka_unit_test(test_full_pipe), cmocka_unit_test(test_none),
    };
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failures;
}
