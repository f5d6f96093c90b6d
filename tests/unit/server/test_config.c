/* tests/unit/server/test_config.c: defaults, tasks, and what follows from the options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "server/config.h"

#define S INT64_C(1000000000)
#define GIB (INT64_C(1) << 30)
#define WORDS_MAX 5

static char *no_environment[] = {NULL};

static enum error read_words(const char *const *words, char *const *environment,
                             struct config *config, enum config_task *task, struct failure *failure)
{
    char *argv[WORDS_MAX + 2] = {(char *)(uintptr_t) "invertd"};
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++)
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
    return config_read(argc, argv, environment, config, task, failure);
}

static void test_defaults(void **state)
{
    static const char *const none[] = {NULL};
    struct config config;
    enum config_task task;
    (void)state;
    assert_int_equal(read_words(none, no_environment, &config, &task, NULL), ERROR_NONE);
    assert_int_equal(task, CONFIG_SERVE);
    assert_int_equal(config.listen.count, 1);
    assert_string_equal(config.listen.items[0], "127.0.0.1:8000");
    assert_null(config.metrics_listen);
    assert_int_equal(config.arena_size_bytes, 0);
    assert_true(config.engines.cuda && config.engines.all && !config.engines.must);
    struct http_limits http = config_http_limits(&config);
    assert_int_equal(http.connections_max, 4096);
    assert_int_equal(http.header_timeout_ns, 10 * S);
    assert_int_equal(http.body_timeout_ns, 30 * S);
    assert_int_equal(http.request_timeout_ns, 60 * S);
    assert_int_equal(http.idle_timeout_ns, 75 * S);
    struct queue_limits queue = config_queue_limits(&config);
    assert_int_equal(queue.requests_max, 16384);
    assert_int_equal(queue.client_requests_max, 0);
    assert_int_equal(queue.batch_wait_ns, 0);
    assert_int_equal(queue.batch_deadline_ns, 2 * S);
    assert_int_equal(queue.long_cost_ns, S / 50);
    assert_int_equal(queue.in_flight, 3);
    struct handlers_limits handlers = config_handlers_limits(&config);
    assert_int_equal(handlers.body_max_bytes, INT64_C(256) << 20);
    assert_int_equal(handlers.compress_min_bytes, 1024);
    assert_int_equal(handlers.compress_level, 1);
    struct supervisor_options engines = config_supervisor(&config, "1.2");
    assert_string_equal(engines.version, "1.2");
    assert_null(engines.host_path);
    assert_null(engines.cuda_path);
    assert_null(engines.host_fault);
    assert_null(engines.cuda_fault);
    assert_true(engines.engines.cuda && !queue.shared);
    assert_int_equal(engines.heartbeat_ns, 2 * S);
    assert_int_equal(config.drain_delay_ns, 0);
    assert_int_equal(config.drain_timeout_ns, 30 * S);
    config_free(&config);
}

static void test_given(void **state)
{
    static const char *const words[] = {"--batch-wait-us", "200", "--in-flight=2", NULL};
    static char variable[] = "INVERTD_QUEUE_MAX=7";
    char *environment[] = {variable, NULL};
    struct config config;
    enum config_task task;
    (void)state;
    assert_int_equal(read_words(words, environment, &config, &task, NULL), ERROR_NONE);
    struct queue_limits queue = config_queue_limits(&config);
    assert_int_equal(queue.batch_wait_ns, 200000);
    assert_int_equal(queue.in_flight, 2);
    assert_int_equal(queue.requests_max, 7);
    config_free(&config);
}

static void test_engines(void **state)
{
    static const char *const words[] = {"--engine", "cuda:1+host", "--fault-cuda", "x", NULL};
    struct config config;
    enum config_task task;
    (void)state;
    assert_int_equal(read_words(words, no_environment, &config, &task, NULL), ERROR_NONE);
    assert_true(config_queue_limits(&config).shared);
    struct supervisor_options engines = config_supervisor(&config, "1.2");
    assert_true(engines.engines.devices[1] && !engines.engines.devices[0]);
    assert_string_equal(engines.cuda_fault, "x");
    assert_null(engines.host_fault);
    config_free(&config);
}

static void test_arena(void **state)
{
    static const struct {
        int64_t given, memory;
        const char *engine;
        bool has_gpu;
        int64_t expected;
    } rows[] = {
        {0, 64 * GIB, "auto", true, 8 * GIB},        {0, 64 * GIB, "auto", false, 1 * GIB},
        {0, 64 * GIB, "host", true, 1 * GIB},        {0, 64 * GIB, "cuda:3", true, 8 * GIB},
        {0, 16 * GIB, "auto", true, 4 * GIB},        {0, 2 * GIB, "host", false, GIB / 2},
        {0, 2 * GIB + 4095, "host", false, GIB / 2}, /* a round number */
        {0, 1 << 20, "host", false, 16 << 20},       /* the least there is */
        {3 * GIB, 2 * GIB, "auto", true, 3 * GIB},   /* who asks for it gets it */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct config config = {.arena_size_bytes = rows[i].given};
        assert_int_equal(engine_choice_parse(rows[i].engine, &config.engines, NULL), ERROR_NONE);
        assert_int_equal(config_arena_bytes(&config, rows[i].memory, rows[i].has_gpu),
                         rows[i].expected);
    }
}

static const struct {
    const char *words[WORDS_MAX];
    enum error error;
    enum config_task task;
    const char *said; /* in the failure's words */
} command_lines[] = {
    {{"--help"}, ERROR_NONE, CONFIG_HELP, NULL},
    {{"--version"}, ERROR_NONE, CONFIG_VERSION, NULL},
    {{"--in-flight", "2", "--help", "--nonsense"}, ERROR_NONE, CONFIG_HELP, NULL},
    {{"--print-options-markdown"}, ERROR_NONE, CONFIG_PRINT_MARKDOWN, NULL},
    {{"--print-config", "--in-flight", "2"}, ERROR_NONE, CONFIG_PRINT, NULL},
    {{"--print-config", "--in-flight", "9"}, ERROR_BAD_OPTION, CONFIG_PRINT, "in-flight"},
    {{"--nonsense"}, ERROR_BAD_OPTION, CONFIG_SERVE, "nonsense"},
    {{"stray"}, ERROR_BAD_OPTION, CONFIG_SERVE, "stray"},
    {{"--arena-size", "1MiB"}, ERROR_BAD_OPTION, CONFIG_SERVE, "arena-size"},
    {{"--arena-size", "0"}, ERROR_NONE, CONFIG_SERVE, NULL},
    {{"--engine-scratch-max", "1KiB"}, ERROR_BAD_OPTION, CONFIG_SERVE, "engine-scratch-max"},
    {{"--device-memory-max", "1KiB"}, ERROR_BAD_OPTION, CONFIG_SERVE, "device-memory-max"},
    {{"--device-memory-max", "1MiB"}, ERROR_NONE, CONFIG_SERVE, NULL},
    {{"--engine", "gpu"}, ERROR_BAD_OPTION, CONFIG_SERVE, "auto"},
    {{"--engine", "cuda:0,2+host"}, ERROR_NONE, CONFIG_SERVE, NULL},
    {{"--print-config", "--engine", "cuda:"}, ERROR_BAD_OPTION, CONFIG_PRINT, "cuda:0,2"},
    {{"--cpu", "Foo"}, ERROR_BAD_OPTION, CONFIG_SERVE, "SkylakeX|Cooperlake"},
    {{"--cpu", "Zen"}, ERROR_NONE, CONFIG_SERVE, NULL},
    {{"--cpu", "skylakex"}, ERROR_NONE, CONFIG_SERVE, NULL},
    {{"--cpu", "Zen4"}, ERROR_BAD_OPTION, CONFIG_SERVE, "Zen"},
    {{"--cpu", "Opteron_"}, ERROR_BAD_OPTION, CONFIG_SERVE, "Opteron_SSE3"},
    {{"--cpu", ""}, ERROR_BAD_OPTION, CONFIG_SERVE, "Haswell"},
    {{"--compress-level", "0"}, ERROR_BAD_OPTION, CONFIG_SERVE, "compress-level"},
    {{"--request-timeout", "0"}, ERROR_BAD_OPTION, CONFIG_SERVE, "request-timeout"},
};

static void test_command_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof command_lines / sizeof command_lines[0]; i++) {
        struct config config;
        struct failure failure = {0};
        enum config_task task;
        enum error error =
            read_words(command_lines[i].words, no_environment, &config, &task, &failure);
        assert_int_equal(error, command_lines[i].error);
        assert_int_equal(task, command_lines[i].task);
        if (command_lines[i].said != NULL)
            assert_non_null(strstr(failure.detail, command_lines[i].said));
        if (error == ERROR_NONE)
            config_free(&config);
    }
}

static void test_counts(void **state)
{
    struct config config = {0};
    (void)state;
    assert_int_equal(config_loops(&config, 1), 1);
    assert_int_equal(config_loops(&config, 2), 1);
    assert_int_equal(config_loops(&config, 16), 8);
    assert_int_equal(config_loops(&config, 1000), CONFIG_LOOPS_MAX);
    assert_int_equal(config_pool_threads(&config, 2), 1);
    assert_int_equal(config_pool_threads(&config, 16), 4);
    config.loops = 3;
    config.pool_threads = 5;
    assert_int_equal(config_loops(&config, 16), 3);
    assert_int_equal(config_pool_threads(&config, 16), 5);
}

static void test_pages(void **state)
{
    char *page = NULL;
    size_t length;
    (void)state;
    FILE *stream = open_memstream(&page, &length);
    config_print_help(stream);
    fclose(stream);
    assert_non_null(strstr(page, "--drain-timeout"));
    assert_non_null(strstr(page, "--print-config"));
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),      cmocka_unit_test(test_given),
        cmocka_unit_test(test_engines),       cmocka_unit_test(test_arena),
        cmocka_unit_test(test_command_lines), cmocka_unit_test(test_counts),
        cmocka_unit_test(test_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
