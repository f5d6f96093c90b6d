/* tests/unit/base/test_confine.c: what a confined process can do, and what it is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/confine.h"

/* ---- What is tried: each returns whether it went well, errno says why not ---- */

static bool run_program(void)
{
    char *arguments[] = {(char *)(uintptr_t) "true", NULL}, *none[] = {NULL};
    execve("/bin/true", arguments, none); /* which would end with 0 */
    return false;
}

static bool make_process(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid > 0 && waitpid(pid, NULL, 0) == pid;
}

/* A process in a user name space of its own, where it may do what root may; by either call. */
static bool make_name_space(void)
{
    uint64_t arguments[8] = {CLONE_NEWUSER, [4] = SIGCHLD}; /* struct clone_args */
    long pid = syscall(SYS_clone3, arguments, sizeof arguments);
    if (pid < 0)
        pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(0);
    return pid > 0 && waitpid((pid_t)pid, NULL, 0) == pid;
}

static void *nothing(void *context)
{
    return context;
}

static bool make_thread(void)
{
    pthread_t thread;
    errno = pthread_create(&thread, NULL, nothing, NULL);
    return errno == 0 && pthread_join(thread, NULL) == 0;
}

static bool open_socket(int family)
{
    int fd = socket(family, SOCK_STREAM, 0);
    return fd >= 0 && close(fd) == 0;
}

static bool open_internet(void)
{
    return open_socket(AF_INET);
}

static bool open_unix(void)
{
    return open_socket(AF_UNIX);
}

static int bound; /* a socket that was bound before */

static bool shorten_backlog(void)
{
    return listen(bound, 0) == 0;
}

static bool type_into_terminal(void)
{
    return ioctl(bound, TIOCSTI, "x") == 0;
}

static bool unblock(void)
{
    int on = 1;
    return ioctl(bound, FIONBIO, &on) == 0;
}

static bool trace(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
}

static bool map(int protection)
{
    void *memory = mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED && munmap(memory, 4096) == 0;
}

static bool map_memory(void)
{
    return map(PROT_READ | PROT_WRITE);
}

static bool map_code(void)
{
    return map(PROT_READ | PROT_EXEC);
}

static bool read_file(void)
{
    char line[16];
    FILE *file = fopen("/proc/self/stat", "re");
    return file != NULL && fgets(line, sizeof line, file) != NULL && fclose(file) == 0;
}

static bool wait_for_event(void)
{
    struct pollfd polled = {.fd = eventfd(1, EFD_CLOEXEC), .events = POLLIN};
    return polled.fd >= 0 && poll(&polled, 1, 1000) == 1 && close(polled.fd) == 0;
}

static bool leave_root(void)
{
    return chroot("/") == 0;
}

static bool name_thread(void)
{
    return prctl(PR_SET_NAME, "confined") == 0;
}

/* A signal that is sent to no one. */
static bool send_signal(void)
{
    return kill(getpid(), 0) == 0;
}

static const struct {
    const char *name;
    bool (*run)(void);
    bool front, engine; /* is it allowed? */
} rows[] = {
    {"run a program", run_program, false, false},
    {"make a process", make_process, false, true},
    {"make a name space", make_name_space, false, false},
    {"make a thread", make_thread, true, true},
    {"an internet socket", open_internet, false, false},
    {"a unix socket", open_unix, true, true},
    {"a shorter backlog", shorten_backlog, true, true},
    {"not to block", unblock, true, true},
    {"trace", trace, false, false},
    {"memory", map_memory, true, true},
    {"memory that runs", map_code, false, true},
    {"read a file", read_file, true, true},
    {"wait for an event", wait_for_event, true, true},
    {"another root", leave_root, false, false},
    {"a thread's name", name_thread, true, true},
    {"a terminal's input", type_into_terminal, false, false},
    {"a signal to any process", send_signal, false, true},
};
#define ROWS ((int)(sizeof rows / sizeof rows[0]))

/* In a child: 0 when the row goes as it should under the list. */
static int try(enum confine_list list, int i)
{
    struct failure failure;
    bool allowed = list == CONFINE_FRONT ? rows[i].front : rows[i].engine;
    if (confine_process(list, &failure) != ERROR_NONE)
        return 2;
    if (list == CONFINE_ENGINE && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return 3;
    errno = 0;
    bool went = rows[i].run();
    if (!allowed)
        return !went && errno == EPERM ? 0 : 4;
    return went ? 0 : 5;
}

static void try_all(enum confine_list list)
{
    for (int i = 0; i < ROWS; i++) {
        int status;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            _exit(try(list, i));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("%s: %s %d", rows[i].name, WIFEXITED(status) ? "exit" : "signal",
                     WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    }
}

static void test_front(void **state)
{
    (void)state;
    if (!CONFINE_IS_BUILT)
        skip();
    try_all(CONFINE_FRONT);
}

static void test_engine(void **state)
{
    (void)state;
    if (!CONFINE_IS_BUILT)
        skip();
    try_all(CONFINE_ENGINE);
}

int main(void)
{
    const struct sockaddr any = {.sa_family = AF_UNIX};
    bound = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(bound, &any, sizeof any.sa_family) != 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_front),
        cmocka_unit_test(test_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
