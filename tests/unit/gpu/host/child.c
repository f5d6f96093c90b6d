/* tests/unit/gpu/host/child.c: see child.h. */
#include "tests/unit/gpu/host/child.h"

#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/descriptor.h"

static void sleep_ms(int ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

void gputest_child_program(const char *name, char *path, size_t size)
{
    char folder[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    assert_true(length > 0);
    folder[length] = 0;
    for (char *slash = strrchr(folder, '/'); slash; slash = strrchr(folder, '/')) {
        *slash = 0;
        assert_true(snprintf(path, size, "%s/%s", folder, name) < (int)size);
        if (access(path, X_OK) == 0)
            return;
    }
    fail_msg("the engine is not built: %s", name);
}

/* In the child, before exec: only async-signal-safe calls. Descriptors go above the contract's
 * first, so that none overwrites another. */
static _Noreturn void become(const struct gputest_bed *bed, const char *path,
                             const char *const *arguments, int control, int log_fd)
{
    char *argv[GPUTEST_ARGUMENTS_MAX + 2] = {(char *)(uintptr_t)path};
    int count = 0;
    while (count < GPUTEST_ARGUMENTS_MAX && arguments[count]) {
        argv[1 + count] = (char *)(uintptr_t)arguments[count];
        count++;
    }
    int from[] = {dup2(control, 40), dup2(bed->arena_fd, 41), dup2(bed->shared_fd, 42),
                  dup2(bed->event_fd, 43)};
    int to[] = {ENGINE_FD_CONTROL, ENGINE_FD_ARENA, ENGINE_FD_SHARED, ENGINE_FD_EVENT};
    for (int i = 0; i < 4; i++)
        dup2(from[i], to[i]);
    if (log_fd >= 0)
        dup2(log_fd, STDERR_FILENO);
    execv(path, argv);
    _exit(127);
}

void gputest_child_start(struct gputest_child *child, const struct gputest_bed *bed,
                         const char *path, const char *const *arguments, int log_fd)
{
    int ends[2];
    assert_int_equal(descriptor_pair(ends, NULL), ERROR_NONE);
    child->pid = fork();
    assert_true(child->pid >= 0);
    if (child->pid == 0) {
        close(ends[1]);
        become(bed, path, arguments, ends[0], log_fd);
    }
    close(ends[0]);
    child->control = ends[1];
}

enum engine_ready gputest_child_wait_ready(const struct gputest_child *child,
                                           const struct gputest_bed *bed, int timeout_ms)
{
    siginfo_t ended = {0};
    for (int i = 0; i < timeout_ms && ended.si_pid == 0; i++) {
        if (atomic_load(&bed->shared->ready) != ENGINE_STARTING)
            break;
        sleep_ms(1);
        waitid(P_PID, (id_t)child->pid, &ended, WEXITED | WNOHANG | WNOWAIT);
    }
    return (enum engine_ready)atomic_load(&bed->shared->ready);
}

int gputest_child_wait(struct gputest_child *child, int timeout_ms)
{
    int status = -1;
    pid_t ended = 0;
    for (int i = 0; i < timeout_ms && ended == 0; i++) {
        ended = waitpid(child->pid, &status, WNOHANG);
        if (ended == 0)
            sleep_ms(1);
    }
    if (ended != child->pid) {
        kill(child->pid, SIGKILL);
        waitpid(child->pid, &status, 0);
        status = -1;
    }
    if (child->control >= 0)
        close(child->control);
    *child = (struct gputest_child){.control = -1};
    return status;
}

int gputest_child_end(struct gputest_child *child, int timeout_ms)
{
    if (child->control >= 0)
        close(child->control);
    child->control = -1;
    return gputest_child_wait(child, timeout_ms);
}
