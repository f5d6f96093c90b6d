/* What every engine process shares: its command line, and its side of a lane's ring. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <getopt.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "gpu/process/options.h"
#include "gpu/process/process.h"
#include "gpu/process/ring.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define WORDS_MAX 6

/* ---- Options ---- */

struct settings {
    int64_t number;
    bool on;
};

static bool parse_number(const char *text, void *settings)
{
    return process_parse_number(text, 15, "bad option: --number takes 0 to 15",
                                &((struct settings *)settings)->number);
}

static bool parse_on(const char *text, void *settings)
{
    assert_null(text);
    ((struct settings *)settings)->on = true;
    return true;
}

static const struct process_flag flags[] = {
    {"number", true, parse_number, "NUMBER: what it is for"},
    {"on", false, parse_on, "a switch"},
    {0},
};

struct line {
    const char *words[WORDS_MAX];
    bool good;
    struct settings settings;
    struct process_logging logging;
};

static const struct line lines[] = {
    {{NULL}, true, {0, false}, {LOG_JSON, LOG_INFO}},
    {{"--number", "15"}, true, {15, false}, {LOG_JSON, LOG_INFO}},
    {{"--number=7", "--on"}, true, {7, true}, {LOG_JSON, LOG_INFO}},
    {{"--on", "--log-format", "text"}, true, {0, true}, {LOG_TEXT, LOG_INFO}},
    {{"--log-level", "debug", "--number", "0"}, true, {0, false}, {LOG_JSON, LOG_DEBUG}},
    {{"--log-level", "error", "--log-format", "json"}, true, {0, false}, {LOG_JSON, LOG_ERROR}},
    {{"--number", "16"}, false, {0}, {0}},
    {{"--number", "-1"}, false, {0}, {0}},
    {{"--number", "1x"}, false, {0}, {0}},
    {{"--number", ""}, false, {0}, {0}},
    {{"--number", "99999999999999999999"}, false, {0}, {0}},
    {{"--number"}, false, {0}, {0}},
    {{"--on", "stray"}, false, {0}, {0}},
    {{"--off"}, false, {0}, {0}},
    {{"--on=1"}, false, {0}, {0}},
    {{"--log-level", "loud"}, false, {0}, {0}},
    {{"--log-format", "xml"}, false, {0}, {0}},
};

static void test_options(void **state)
{
    (void)state;
    opterr = 0;
    for (size_t i = 0; i < COUNT(lines); i++) {
        struct settings settings = {0};
        struct process_logging logging;
        char *argv[WORDS_MAX + 2] = {(char *)(uintptr_t) "engine"};
        int argc = 1;
        for (; lines[i].words[argc - 1]; argc++)
            argv[argc] = (char *)(uintptr_t)lines[i].words[argc - 1];
        optind = 0;
        assert_int_equal(process_parse(argc, argv, flags, &settings, &logging), lines[i].good);
        if (!lines[i].good)
            continue;
        assert_true(settings.number == lines[i].settings.number);
        assert_int_equal(settings.on, lines[i].settings.on);
        assert_int_equal(logging.format, lines[i].logging.format);
        assert_int_equal(logging.level, lines[i].logging.level);
    }
}

struct help_case {
    const char *words[WORDS_MAX];
    int status; /* 0: help was printed */
};

static _Noreturn void parse_in_child(const struct help_case *help_case, int output)
{
    struct settings settings = {0};
    struct process_logging logging;
    char *argv[WORDS_MAX + 2] = {(char *)(uintptr_t) "/some/where/engine"};
    int argc = 1;
    for (; help_case->words[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)help_case->words[argc - 1];
    dup2(output, STDOUT_FILENO);
    optind = 0;
    _exit(process_parse(argc, argv, flags, &settings, &logging) ? 2 : 3);
}

/* --help ends the process with 0 and says of every flag; what stands before it is looked at. */
static void test_help(void **state)
{
    (void)state;
    static const struct help_case cases[] = {
        {{"--help"}, 0}, {{"--number", "1", "--help"}, 0}, {{"--number", "99", "--help"}, 3}};
    static const char *const wanted[] = {"usage: engine ", "--number",    "what it is for", "--on",
                                         "a switch",       "--log-level", "--help"};
    fflush(NULL);
    for (size_t i = 0; i < COUNT(cases); i++) {
        int ends[2], status;
        char text[1024] = "";
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            parse_in_child(&cases[i], ends[1]);
        close(ends[1]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(read(ends[0], text, sizeof text - 1) >= 0);
        close(ends[0]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == cases[i].status);
        for (size_t j = 0; j < COUNT(wanted) && cases[i].status == 0; j++)
            assert_non_null(strstr(text, wanted[j]));
    }
}

/* ---- The ring ---- */

/* An engine that is started anew finds the batches that wait, whatever the count has come to. */
static void test_first(void **state)
{
    (void)state;
    static struct engine_lane lane;
    static const uint32_t counts[] = {0, 1, 2, 3, 4, 5, 6, 7, 1000, 0x80000000, UINT32_MAX};
    for (size_t i = 0; i < COUNT(counts); i++) {
        for (uint32_t waiting = 0; waiting <= ENGINE_BATCH_SLOTS; waiting++) {
            memset(&lane, 0, sizeof lane);
            atomic_store(&lane.submitted, counts[i]);
            for (uint32_t k = 1; k <= waiting; k++)
                atomic_store(&lane.batches[(counts[i] - k) % ENGINE_BATCH_SLOTS].state,
                             ENGINE_BATCH_SUBMITTED);
            assert_true(process_ring_first(&lane) == counts[i] - waiting);
        }
    }
}

/* A batch that the front has taken back is not begun. */
static void test_begin(void **state)
{
    (void)state;
    struct engine_batch *batch =
        mmap(NULL, sizeof *batch, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(batch != MAP_FAILED);
    atomic_store(&batch->state, ENGINE_BATCH_SUBMITTED);
    process_ring_begin(batch);
    assert_int_equal(atomic_load(&batch->state), ENGINE_BATCH_RUNNING);
    atomic_store(&batch->state, ENGINE_BATCH_FREE);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        process_ring_begin(batch);
        _exit(0);
    }
    usleep(20000);
    int status = 0;
    assert_int_equal(waitpid(child, &status, WNOHANG), 0);
    assert_int_equal(atomic_load(&batch->state), ENGINE_BATCH_FREE);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    munmap(batch, sizeof *batch);
}

static void test_lost(void **state)
{
    (void)state;
    static const struct {
        uint32_t before, after;
    } rows[] = {{ENGINE_READY, ENGINE_LOST},
                {ENGINE_STARTING, ENGINE_STARTING}, /* no one counts on it yet */
                {ENGINE_LOST, ENGINE_LOST}};
    struct engine_shared *shared = calloc(1, sizeof *shared);
    assert_non_null(shared);
    for (size_t i = 0; i < COUNT(rows); i++) {
        atomic_store(&shared->ready, rows[i].before);
        process_report_lost(shared);
        assert_int_equal(atomic_load(&shared->ready), rows[i].after);
    }
    free(shared);
}

static void test_sleep_ends(void **state)
{
    (void)state;
    static struct engine_lane lane;
    atomic_store(&lane.submitted, 5);
    process_ring_sleep(&lane, 4, PROCESS_RING_FOR_EVER); /* there is a batch: no sleep */
    uint64_t before = clock_now_ns();
    process_ring_sleep(&lane, 5, 3 * (int64_t)CLOCK_MS);
    uint64_t slept = clock_now_ns() - before;
    assert_true(slept >= 2 * CLOCK_MS && slept < 20 * CLOCK_S);
}

static void *submit(void *context)
{
    struct engine_lane *lane = context;
    usleep(2000);
    atomic_fetch_add(&lane->submitted, 1);
    process_ring_wake(lane);
    return NULL;
}

static void test_wake(void **state)
{
    (void)state;
    static struct engine_lane lane;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, submit, &lane), 0);
    while (atomic_load(&lane.submitted) == 0)
        process_ring_sleep(&lane, 0, PROCESS_RING_FOR_EVER);
    pthread_join(thread, NULL);
}

static void test_notify(void **state)
{
    (void)state;
    static struct engine_lane lane;
    uint64_t count = 0;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(fd >= 0);
    process_ring_notify(&lane, fd);
    assert_true(read(fd, &count, sizeof count) < 0);
    atomic_store(&lane.front_waits, 1);
    process_ring_notify(&lane, fd);
    process_ring_notify(&lane, fd);
    assert_int_equal(read(fd, &count, sizeof count), sizeof count);
    assert_true(count == 1);
    assert_int_equal(atomic_load(&lane.front_waits), 0);
    close(fd);
}

static void test_cores(void **state)
{
    (void)state;
    assert_true(process_cores() >= 1 && process_cores() <= sysconf(_SC_NPROCESSORS_CONF));
}

/* ---- The control socket ---- */

/* An engine with a control socket and nothing else. */
static _Noreturn void serve_in_child(struct engine_shared *shared, const int control[2])
{
    struct process process = {.shared = shared};
    dup2(control[1], ENGINE_FD_CONTROL);
    close(control[1]);
    close(control[0]); /* ours would keep the other end open */
    process_serve(&process);
    _exit(0);
}

/* It ignores messages that it does not know, closes their descriptors, and ends with the front. */
static void test_control(void **state)
{
    (void)state;
    int control[2], pipes[2], status;
    char byte;
    struct engine_shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    assert_int_equal(descriptor_pair(control, NULL), ERROR_NONE);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        serve_in_child(shared, control);
    close(control[1]);
    for (uint32_t kind = 0; kind < 3; kind++) {
        assert_int_equal(pipe(pipes), 0);
        assert_int_equal(descriptor_send(control[0], &kind, sizeof kind, pipes[1]), ERROR_NONE);
        assert_int_equal(descriptor_send(control[0], "?", 1, -1), ERROR_NONE);
        close(pipes[1]);
        assert_int_equal(read(pipes[0], &byte, 1), 0); /* closed there */
        close(pipes[0]);
    }
    assert_int_equal(waitpid(child, &status, WNOHANG), 0);
    assert_int_equal(atomic_load(&shared->ready), ENGINE_READY);
    close(control[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    munmap(shared, sizeof *shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options), cmocka_unit_test(test_help),
        cmocka_unit_test(test_first),   cmocka_unit_test(test_begin),
        cmocka_unit_test(test_lost),    cmocka_unit_test(test_sleep_ends),
        cmocka_unit_test(test_wake),    cmocka_unit_test(test_notify),
        cmocka_unit_test(test_cores),   cmocka_unit_test(test_control),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
