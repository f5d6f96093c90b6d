/* tests/unit/server/test_spawner.c: programs started through another process, which are our own
 * children all the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/engines/spawner.h"

#define WITHIN_MS 20000

#define MISSING "/there/is/no/such/program"

static char *nothing[] = {(char *)(uintptr_t) "nothing", NULL};

static struct spawner *make_spawner(void)
{
    static const char *const paths[] = {"/bin/sh", MISSING, NULL};
    char *environment[] = {(char *)(uintptr_t) "WORD=of the environment", NULL};
    const struct spawner_rules rules = {paths, environment};
    struct spawner *spawner = NULL;
    struct failure failure;
    assert_int_equal(spawner_create(&rules, &spawner, &failure), ERROR_NONE);
    return spawner;
}

/* A shell with the script; its descriptor 5 is fd. */
static enum error run_shell(struct spawner *spawner, const char *script, int fd, int *pid)
{
    char *arguments[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                         (char *)(uintptr_t)script, NULL};
    const struct spawner_program program = {
        .path = "/bin/sh", .arguments = arguments, .fds = {-1, -1, STDERR_FILENO, -1, -1, fd}};
    struct failure failure;
    return spawner_start(spawner, &program, pid, &failure);
}

static struct spawner_end end_of(int pid)
{
    struct spawner_end end;
    for (int ms = 0; !spawner_reap(pid, &end); ms++) {
        assert_true(ms < WITHIN_MS);
        poll(NULL, 0, 1);
    }
    return end;
}

/* Arguments, environment, descriptors and the parent are as asked for. */
static void test_start(void **state)
{
    (void)state;
    struct spawner *spawner = make_spawner();
    int ends[2], pid;
    char text[256], wanted[256];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    for (int i = 0; i < 3; i++) { /* one after another: descriptors do not pile up */
        assert_int_equal(run_shell(spawner,
                                   "echo $PPID $WORD $(readlink /proc/$$/fd/1) >&5; exit 7",
                                   ends[1], &pid),
                         ERROR_NONE);
        struct spawner_end end = end_of(pid);
        assert_int_equal(end.exit_status, 7);
        assert_int_equal(end.signal, 0);
        ssize_t bytes = read(ends[0], text, sizeof text - 1);
        assert_true(bytes > 0);
        text[bytes] = '\0';
        snprintf(wanted, sizeof wanted, "%d of the environment /dev/null\n", (int)getpid());
        assert_string_equal(text, wanted);
    }
    close(ends[0]);
    close(ends[1]);
    spawner_destroy(&spawner);
    assert_null(spawner);
}

/* What this process was started with, and did not ask to hand on, is not handed on. */
static void test_no_other_descriptors(void **state)
{
    (void)state;
    int ends[2], stray = open("/dev/null", O_RDONLY), pid;
    assert_int_equal(dup2(stray, 40), 40);
    struct spawner *spawner = make_spawner(); /* which has it too */
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(run_shell(spawner,
                               "for fd in 6 7 8 9 40; do "
                               "[ ! -e /proc/$$/fd/$fd ] || echo $fd >&5; done",
                               ends[1], &pid),
                     ERROR_NONE);
    assert_int_equal(end_of(pid).exit_status, 0);
    close(ends[1]);
    close(stray);
    close(40);
    char text[64] = "";
    assert_true(read(ends[0], text, sizeof text - 1) >= 0);
    assert_string_equal(text, "");
    close(ends[0]);
    spawner_destroy(&spawner);
}

static void test_signal(void **state)
{
    (void)state;
    struct spawner *spawner = make_spawner();
    int pid;
    assert_int_equal(run_shell(spawner, "sleep 60", -1, &pid), ERROR_NONE);
    assert_int_equal(getsid(pid), pid); /* a session of its own */
    struct spawner_end end;
    assert_false(spawner_reap(pid, &end));
    spawner_kill(pid);
    assert_int_equal(end_of(pid).signal, SIGKILL);
    spawner_destroy(&spawner);
}

/* What cannot be run says why, and the spawner goes on. */
static void test_failures(void **state)
{
    (void)state;
    struct spawner *spawner = make_spawner();
    struct failure failure;
    int pid;
    struct spawner_program program = {
        .path = MISSING, .arguments = nothing, .fds = {-1, -1, 2, -1, -1, -1}};
    assert_int_equal(spawner_start(spawner, &program, &pid, &failure), ERROR_INTERNAL);
    assert_non_null(strstr(failure.detail, "No such file"));
    char *word = malloc(SPAWNER_WORDS_MAX_BYTES + 1);
    assert_non_null(word);
    memset(word, 'x', SPAWNER_WORDS_MAX_BYTES);
    word[SPAWNER_WORDS_MAX_BYTES] = '\0';
    program.arguments = (char *const[]){word, NULL};
    assert_int_equal(spawner_start(spawner, &program, &pid, &failure), ERROR_TOO_LARGE);
    free(word);
    assert_int_equal(run_shell(spawner, "exit 3", -1, &pid), ERROR_NONE);
    assert_int_equal(end_of(pid).exit_status, 3);
    spawner_destroy(&spawner);
}

/* It starts what it was made for, whatever it is asked. */
static void test_other_programs(void **state)
{
    (void)state;
    static const char *const paths[] = {"/bin/true", "sh", "/bin/sh/", "/bin/../bin/sh", ""};
    struct spawner *spawner = make_spawner();
    struct failure failure;
    int pid;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const struct spawner_program program = {
            .path = paths[i], .arguments = nothing, .fds = {-1, -1, 2, -1, -1, -1}};
        assert_int_equal(spawner_start(spawner, &program, &pid, &failure), ERROR_INTERNAL);
        assert_non_null(strstr(failure.detail, "not permitted"));
    }
    spawner_destroy(&spawner);
}

/* Messages that no front sends: each is refused, and the next one is served. */
static void test_hostile_requests(void **state)
{
    (void)state;
    static const char path[] = "/bin/sh";
    static char message[70000];
    int32_t reply[2]; /* pid, error */
    int lowest = dup(STDERR_FILENO), pid;
    close(lowest);
    struct spawner *spawner = make_spawner();
    const int front = lowest + 1; /* of the pair that it has made */
    const size_t head = SPAWNER_FDS_MAX * sizeof(int32_t);
    memset(message, 1, head); /* all descriptors, of which none comes */
    memcpy(message + head, path, sizeof path);
    memset(message + head + sizeof path, 'x', 100);
    const size_t lengths[] = {head,                     /* no words */
                              head + sizeof path,       /* no arguments */
                              head + sizeof path + 100, /* no zero at the end */
                              SPAWNER_WORDS_MAX_BYTES + head + 100 /* thousands of words, cut */};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        if (i == 3)
            memset(message + head + sizeof path, 0, sizeof message - head - sizeof path);
        assert_int_equal(send(front, message, lengths[i], 0), (ssize_t)lengths[i]);
        assert_int_equal(recv(front, reply, sizeof reply, 0), sizeof reply);
        assert_int_equal(reply[0], 0);
        assert_int_equal(reply[1], EPERM);
    }
    assert_int_equal(run_shell(spawner, "exit 3", -1, &pid), ERROR_NONE);
    assert_int_equal(end_of(pid).exit_status, 3);
    spawner_destroy(&spawner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start),          cmocka_unit_test(test_no_other_descriptors),
        cmocka_unit_test(test_signal),         cmocka_unit_test(test_failures),
        cmocka_unit_test(test_other_programs), cmocka_unit_test(test_hostile_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
