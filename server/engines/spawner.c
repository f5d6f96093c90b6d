/* server/engines/spawner.c: see spawner.h.
 *
 * A request is one message: path and arguments, each with its zero, and a descriptor for each that
 * is not /dev/null. The answer is one too: the pid, and errno where the program could not be run;
 * then the pid is of a process that has ended.
 */
#include "server/engines/spawner.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.h"

#define WORDS_MAX 64   /* arguments, the NULL with them */
#define EXIT_UNRUN 127 /* of a process that could not become the program */
#define FDS_ABOVE 16   /* received descriptors are moved here, out of the way of 0 to 5 */
#define NO_FD (-1)

struct spawner {
    int socket, pid;
};

struct request {
    int32_t has_fd[SPAWNER_FDS_MAX];
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

/* The descriptors of a message; -1 behind them. */
static void take_fds(struct msghdr *message, int fds[SPAWNER_FDS_MAX])
{
    const struct cmsghdr *part = CMSG_FIRSTHDR(message);
    size_t count = part != NULL ? (part->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
    assert(count <= SPAWNER_FDS_MAX); /* the room there was; the system closes the others */
    for (size_t i = 0; i < SPAWNER_FDS_MAX; i++)
        fds[i] = NO_FD;
    if (count > 0)
        memcpy(fds, CMSG_DATA(part), count * sizeof(int));
}

/* The bytes of the words; negative: there will be no more requests. given: in the order they came.
 */
static ssize_t receive(int socket, struct request *request, int given[SPAWNER_FDS_MAX])
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
    if (bytes <= 0)
        return -1;
    take_fds(&message, given);
    return bytes - (ssize_t)offsetof(struct request, words);
}

/* The request's strings, path first; false: they are none, or too many. */
static bool cut(const struct request *request, ssize_t bytes, char *list[WORDS_MAX])
{
    char *word = (char *)(uintptr_t)request->words, *end = word + bytes;
    int count = 0;
    if (bytes <= 0 || end[-1] != '\0')
        return false;
    for (; word < end && count < WORDS_MAX - 1; word += strlen(word) + 1)
        list[count++] = word;
    list[count] = NULL;
    return word == end && count >= 2;
}

static bool is_allowed(const struct spawner_rules *rules, const char *path)
{
    for (const char *const *allowed = rules->paths; *allowed != NULL; allowed++)
        if (strcmp(*allowed, path) == 0)
            return true;
    return false;
}

/* fds[i]: what is to be descriptor i; -1: /dev/null. */
static void place_fds(const struct request *request, const int given[SPAWNER_FDS_MAX],
                      int fds[SPAWNER_FDS_MAX])
{
    for (int i = 0, next = 0; i < SPAWNER_FDS_MAX; i++)
        fds[i] = request->has_fd[i] ? given[next++] : NO_FD;
}

/* In the new process: becomes the program, or says through failed why not. */
static _Noreturn void become(char *const *words, char *const *environment, int *fds, int failed)
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
    /* Those that the front was started with. Before Linux 5.11 they go on. */
    (void)close_range(SPAWNER_FDS_MAX, UINT_MAX, CLOSE_RANGE_CLOEXEC);
    if (good)
        execve(words[0], words + 1, environment);
    int32_t error = errno;
    if (write(failed, &error, sizeof error) != sizeof error)
        _exit(EXIT_UNRUN + 1);
    _exit(EXIT_UNRUN);
}

static struct reply start(char *const *words, char *const *environment, int *fds)
{
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0)
        return (struct reply){0, errno};
    /* As fork, but for the parent: it is ours. */
    long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        int failed = fcntl(pipe_ends[1], F_DUPFD_CLOEXEC, FDS_ABOVE);
        become(words, environment, fds, failed);
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

static _Noreturn void serve(int socket, const struct spawner_rules *rules)
{
    static struct request request;
    char *words[WORDS_MAX];
    int given[SPAWNER_FDS_MAX], fds[SPAWNER_FDS_MAX];
    prctl(PR_SET_NAME, "invertd-spawn");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN); /* the front ends us */
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    for (;;) {
        ssize_t bytes = receive(socket, &request, given);
        if (bytes < 0)
            _exit(0);
        struct reply reply = {0, EPERM};
        place_fds(&request, given, fds);
        if (cut(&request, bytes, words) && is_allowed(rules, words[0]))
            reply = start(words, rules->environment, fds);
        for (int i = 0; i < SPAWNER_FDS_MAX; i++)
            if (given[i] >= 0)
                close(given[i]);
        if (send(socket, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply)
            _exit(0);
    }
}

/* ---- The front's side ---- */

enum error spawner_create(const struct spawner_rules *rules, struct spawner **result,
                          struct failure *failure)
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
        serve(ends[0], rules);
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
    return fits && count < WORDS_MAX - 1;
}

static bool send_request(int socket, const struct spawner_program *program, struct request *request,
                         size_t words)
{
    union rights rights = {{0}};
    struct iovec piece = {request, offsetof(struct request, words) + words};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = rights.bytes};
    size_t count = 0;
    rights.header = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    for (int i = 0; i < SPAWNER_FDS_MAX; i++) {
        request->has_fd[i] = program->fds[i] >= 0;
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
        return failure_set(failure, ERROR_TOO_LARGE, "the arguments of %s are too long",
                           program->path);
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
