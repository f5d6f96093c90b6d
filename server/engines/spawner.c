/* server/engines/spawner.c: see spawner.h.
 *
 * A request is one message: how many arguments there are, then path, arguments and environment,
 * each with its zero, and a descriptor for each that is not /dev/null. The answer is one too: the
 * pid, and errno where the program could not be run; then the pid is of a process that has ended.
 */
#include "server/engines/spawner.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.h"

#define WORDS_MAX 512  /* arguments and environment, the two NULLs with them */
#define EXIT_UNRUN 127 /* of a process that could not become the program */
#define FDS_ABOVE 16   /* received descriptors are moved here, out of the way of 0 to 5 */
#define NO_FD (-1)

struct spawner {
    int socket, pid;
};

struct head {
    int32_t argument_count;
    int32_t has_fd[SPAWNER_FDS_MAX];
};

struct request {
    struct head head;
    char words[SPAWNER_WORDS_MAX_BYTES];
};

struct reply {
    int32_t pid, error; /* error 0: it runs */
};

/* ---- The spawner's own process ---- */

/* Room for a message's descriptors, aligned as the system wants it. */
union rights {
    char bytes[CMSG_SPACE(SPAWNER_FDS_MAX * sizeof(int))];
    struct cmsghdr header;
};

/* fds[i]: -1 where the head says that there is none. */
static ssize_t receive(int socket, struct request *request, int fds[SPAWNER_FDS_MAX])
{
    union rights rights;
    struct iovec piece = {request, sizeof *request};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = rights.bytes,
                             .msg_controllen = sizeof rights.bytes};
    ssize_t bytes;
    do
        bytes = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (bytes < 0 && errno == EINTR);
    if (bytes < (ssize_t)sizeof request->head)
        return -1;
    const struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    size_t given = part != NULL ? (part->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
    for (size_t i = 0, next = 0; i < SPAWNER_FDS_MAX; i++) {
        fds[i] = NO_FD;
        if (request->head.has_fd[i] && next < given)
            memcpy(&fds[i], CMSG_DATA(part) + next++ * sizeof(int), sizeof(int));
    }
    return bytes - (ssize_t)sizeof request->head;
}

/* The strings that begin in words, as far as there are bytes; returns where the next one begins. */
static char *cut(char *words, const char *end, int count, char **list)
{
    for (int i = 0; i < count && words < end; i++) {
        *list++ = words;
        words += strlen(words) + 1;
    }
    *list = NULL;
    return words;
}

/* In the new process: becomes the program, or says through failed why not. */
static _Noreturn void become(const char *path, char **arguments, char **environment, int *fds,
                             int failed)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t none;
    sigemptyset(&none);
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &standard, NULL); /* SIGKILL's and SIGSTOP's fail */
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    bool good = true;
    for (int i = 0; i < SPAWNER_FDS_MAX && good; i++) {
        int fd = fds[i] >= 0 ? fds[i] : open("/dev/null", O_RDWR | O_CLOEXEC);
        fds[i] = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, FDS_ABOVE) : -1;
        good = fds[i] >= 0;
    }
    for (int i = 0; i < SPAWNER_FDS_MAX && good; i++)
        good = dup2(fds[i], i) == i;
    if (good)
        execve(path, arguments, environment);
    int32_t error = errno;
    if (write(failed, &error, sizeof error) != sizeof error)
        _exit(EXIT_UNRUN + 1);
    _exit(EXIT_UNRUN);
}

static struct reply start(const struct request *request, size_t bytes, int *fds)
{
    static char *lists[2][WORDS_MAX];
    char *words = (char *)(uintptr_t)request->words;
    const char *end = words + bytes;
    char *path = words;
    words = cut(words + strlen(path) + 1, end, request->head.argument_count, lists[0]);
    cut(words, end, WORDS_MAX - 1, lists[1]);
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0)
        return (struct reply){0, errno};
    /* As fork, but for the parent: it is ours. */
    long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        int failed = fcntl(pipe_ends[1], F_DUPFD_CLOEXEC, FDS_ABOVE);
        become(path, lists[0], lists[1], fds, failed);
    }
    struct reply reply = {(int32_t)pid, 0};
    if (pid < 0)
        reply = (struct reply){0, errno};
    close(pipe_ends[1]);
    ssize_t got;
    do
        got = read(pipe_ends[0], &reply.error, sizeof reply.error);
    while (got < 0 && errno == EINTR);
    close(pipe_ends[0]);
    return reply;
}

static _Noreturn void serve(int socket)
{
    static struct request request;
    int fds[SPAWNER_FDS_MAX];
    prctl(PR_SET_NAME, "invertd-spawn");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN); /* the front ends us */
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    for (;;) {
        ssize_t bytes = receive(socket, &request, fds);
        if (bytes < 0)
            _exit(0);
        struct reply reply = start(&request, (size_t)bytes, fds);
        for (int i = 0; i < SPAWNER_FDS_MAX; i++)
            if (fds[i] >= 0)
                close(fds[i]);
        if (send(socket, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply)
            _exit(0);
    }
}

/* ---- The front's side ---- */

enum error spawner_create(struct spawner **result, struct failure *failure)
{
    int ends[2];
    struct spawner *spawner = calloc(1, sizeof *spawner);
    if (spawner == NULL)
        return failure_set(failure, ERROR_FULL, "out of memory");
    enum error error = descriptor_pair(ends, failure);
    if (error != ERROR_NONE) {
        free(spawner);
        return error;
    }
    signal(SIGCHLD, SIG_DFL); /* ignored, as some callers leave it, ends could not be reaped */
    spawner->pid = fork();
    if (spawner->pid == 0) {
        close(ends[1]);
        serve(ends[0]);
    }
    close(ends[0]);
    spawner->socket = ends[1];
    *result = spawner;
    if (spawner->pid > 0)
        return ERROR_NONE;
    error = failure_set(failure, ERROR_INTERNAL, "cannot fork: %s", strerror(errno));
    close(spawner->socket);
    free(spawner);
    *result = NULL;
    return error;
}

/* Adds a string; false when there is no room. */
static bool add_word(struct request *request, size_t *used, const char *word)
{
    size_t bytes = strlen(word) + 1;
    if (bytes > sizeof request->words - *used)
        return false;
    memcpy(request->words + *used, word, bytes);
    *used += bytes;
    return true;
}

/* The words of a request; false when they are too many. */
static bool write_words(const struct spawner_program *program, struct request *request,
                        size_t *used)
{
    int count = 0;
    bool fits = add_word(request, used, program->path);
    for (char *const *word = program->arguments; *word != NULL && fits; word++, count++)
        fits = add_word(request, used, *word);
    request->head.argument_count = count;
    for (char *const *word = program->environment; *word != NULL && fits; word++, count++)
        fits = add_word(request, used, *word);
    return fits && count < WORDS_MAX - 1;
}

static bool send_request(int socket, const struct spawner_program *program, struct request *request,
                         size_t words)
{
    union rights rights = {{0}};
    struct iovec piece = {request, sizeof request->head + words};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = rights.bytes};
    size_t count = 0;
    rights.header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    for (int i = 0; i < SPAWNER_FDS_MAX; i++) {
        request->head.has_fd[i] = program->fds[i] >= 0;
        if (program->fds[i] >= 0)
            memcpy(CMSG_DATA(&rights.header) + count++ * sizeof(int), &program->fds[i],
                   sizeof(int));
    }
    rights.header.cmsg_len = CMSG_LEN(count * sizeof(int));
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    if (count == 0)
        message.msg_control = NULL;
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

static bool receive_reply(int socket, struct reply *reply)
{
    ssize_t got;
    do
        got = recv(socket, reply, sizeof *reply, 0);
    while (got < 0 && errno == EINTR);
    return got == sizeof *reply;
}

/* flags: those of waitpid. */
static bool reap(int pid, int flags, struct spawner_end *end)
{
    int status = 0;
    pid_t reaped;
    do
        reaped = waitpid(pid, &status, flags);
    while (reaped < 0 && errno == EINTR);
    assert(reaped == pid || (reaped == 0 && flags == WNOHANG));
    *end = (struct spawner_end){0};
    if (WIFSIGNALED(status))
        end->signal = WTERMSIG(status);
    else
        end->exit_status = WEXITSTATUS(status);
    return reaped == pid;
}

bool spawner_reap(int pid, struct spawner_end *end)
{
    return reap(pid, WNOHANG, end);
}

void spawner_kill(int pid)
{
    (void)tgkill(pid, pid, SIGKILL); /* kill is not on the front's list */
}

enum error spawner_start(struct spawner *spawner, const struct spawner_program *program, int *pid,
                         struct failure *failure)
{
    struct reply reply;
    struct spawner_end end;
    size_t words = 0;
    struct request *request = malloc(sizeof *request);
    if (request == NULL)
        return failure_set(failure, ERROR_FULL, "out of memory for an engine");
    bool fits = write_words(program, request, &words);
    bool asked = fits && send_request(spawner->socket, program, request, words);
    free(request);
    if (!fits)
        return failure_set(failure, ERROR_TOO_LARGE,
                           "the arguments and the environment of %s are too long", program->path);
    if (!asked || !receive_reply(spawner->socket, &reply))
        return failure_set(failure, ERROR_INTERNAL,
                           "the process that starts engines has ended; restart invertd");
    *pid = reply.pid;
    if (reply.error == 0)
        return ERROR_NONE;
    if (reply.pid > 0)
        (void)reap(reply.pid, 0, &end);
    return failure_set(failure, ERROR_INTERNAL, "cannot start the engine %s: %s", program->path,
                       strerror(reply.error));
}

void spawner_destroy(struct spawner **spawner_pointer)
{
    struct spawner *spawner = *spawner_pointer;
    if (spawner == NULL)
        return;
    struct spawner_end end;
    close(spawner->socket);
    (void)reap(spawner->pid, 0, &end);
    free(spawner);
    *spawner_pointer = NULL;
}
