/* client/files.c: see files.h. */
#include "client/files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/trusted_file.h"

static enum error fail(struct failure *failure, const char *what, const char *path, int number)
{
    return failure_set(failure, ERROR_BAD_OPTION, "cannot %s %.200s: %s", what, path,
                       strerror(number));
}

static int write_whole(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t count = write(fd, data, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return errno;
        data += count;
        size -= (size_t)count;
    }
    return 0;
}

/* ---- The body ---- */

/* A file without a name in TMPDIR, or in /tmp; its descriptor, or -1. */
static int open_nameless(void)
{
    const char *folder = getenv("TMPDIR");
    char *name = NULL;
    if (asprintf(&name, "%s/invert-XXXXXX", folder != NULL ? folder : "/tmp") < 0)
        return -1;
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        unlink(name);
    free(name);
    return fd;
}

/* Copies from fd to its end into a file without a name; returns its descriptor, or -1. */
static int spool(int fd)
{
    char piece[8192];
    int copy = open_nameless();
    if (copy < 0)
        return copy;
    ssize_t count;
    while ((count = read(fd, piece, sizeof piece)) > 0) {
        errno = write_whole(copy, piece, (size_t)count);
        if (errno != 0)
            break;
    }
    if (count != 0) {
        int number = errno;
        close(copy);
        errno = number;
    }
    return count == 0 ? copy : -1;
}

enum error files_open_input(struct files_input *input, const char *path, struct failure *failure)
{
    struct stat status;
    *input = (struct files_input){.fd = -1};
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    bool is_plain = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    input->fd = fd < 0 || is_plain ? fd : spool(fd);
    if (input->fd < 0 || fstat(input->fd, &status) != 0)
        fail(failure, fd < 0 || is_plain ? "read" : "make a temporary copy of", path, errno);
    else if (is_plain)
        input->start = lseek(fd, 0, SEEK_CUR);
    if (fd >= 0 && !is_plain)
        close(fd);
    if (input->fd >= 0 && status.st_size > input->start)
        input->size = status.st_size - input->start;
    return input->fd >= 0 ? ERROR_NONE : ERROR_BAD_OPTION;
}

void files_close_input(struct files_input *input)
{
    if (input->fd >= 0)
        close(input->fd);
    input->fd = -1;
}

/* ---- The answer ---- */

/* A signal's handler is given no argument. */
static const char *volatile unfinished;
static char last_words[300];
static volatile sig_atomic_t last_words_size;

static void on_signal(int number)
{
    const char *path = unfinished;
    if (path != NULL)
        unlink(path);
    if (last_words_size > 0 && write(STDERR_FILENO, last_words, (size_t)last_words_size) < 0)
        last_words_size = 0;
    raise(number); /* SA_RESETHAND: it ends the program once the handler has returned */
}

/* Those that are ignored stay so, as nohup(1) wants it. */
static void watch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}, old;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

void files_say_at_signal(const char *line)
{
    last_words_size = 0;
    int length = snprintf(last_words, sizeof last_words, "%s", line != NULL ? line : "");
    last_words_size = length < (int)sizeof last_words ? length : (int)sizeof last_words - 1;
    if (line != NULL)
        watch_signals();
}

/* A new file next to what path leads to. old: of what is there; NULL: nothing. */
static enum error open_next_to(struct files_output *output, const char *path,
                               const struct stat *old, struct failure *failure)
{
    char *temporary = NULL;
    output->path = old != NULL ? realpath(path, NULL) : strdup(path);
    if (output->path != NULL &&
        asprintf(&temporary, "%s.%ld.part", output->path, (long)getpid()) > 0)
        output->fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                          old != NULL ? old->st_mode & 0777 : 0666);
    if (output->fd < 0) {
        fail(failure, "write", path, errno);
        free(temporary);
        return ERROR_BAD_OPTION;
    }
    output->temporary = temporary;
    unfinished = temporary;
    watch_signals();
    return ERROR_NONE;
}

enum error files_open_output(struct files_output *output, const char *path, struct failure *failure)
{
    struct stat old;
    *output = (struct files_output){.fd = -1};
    bool is_stdout = strcmp(path, "-") == 0, is_there = stat(path, &old) == 0;
    if (!is_stdout && (!is_there || S_ISREG(old.st_mode)))
        return open_next_to(output, path, is_there ? &old : NULL, failure);
    output->fd = is_stdout ? dup(STDOUT_FILENO) : open(path, O_WRONLY | O_CLOEXEC);
    return output->fd >= 0 ? ERROR_NONE : fail(failure, "write", path, errno);
}

enum error files_open_nameless(struct files_output *output, struct failure *failure)
{
    *output = (struct files_output){.fd = open_nameless(), .nameless = true};
    if (output->fd < 0)
        return failure_set(failure, ERROR_BAD_OPTION, "cannot make a temporary file: %s",
                           strerror(errno));
    return ERROR_NONE;
}

void files_read_back(struct files_output *output, struct files_input *input)
{
    *input = (struct files_input){.fd = output->fd, .size = output->at};
    output->fd = -1;
}

int files_write(struct files_output *output, const char *data, size_t size)
{
    int number = write_whole(output->fd, data, size);
    output->at += number == 0 ? (int64_t)size : 0;
    return number;
}

bool files_rewind(struct files_output *output)
{
    bool is_plain = output->temporary != NULL || output->nameless;
    if (output->at == 0)
        return true;
    if (!is_plain || ftruncate(output->fd, 0) != 0 || lseek(output->fd, 0, SEEK_SET) != 0)
        return false;
    output->at = 0;
    return true;
}

/* The folder's entry for a file that was renamed; what cannot be synced, cannot. */
static void sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL   ? strdup(".")
                   : slash == path ? strdup("/")
                                   : strndup(path, (size_t)(slash - path));
    int fd = folder != NULL ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(folder);
}

enum error files_commit(struct files_output *output, struct failure *failure)
{
    int number = output->temporary == NULL || fsync(output->fd) == 0 ? 0 : errno;
    if (close(output->fd) != 0 && number == 0)
        number = errno;
    output->fd = -1;
    if (number == 0 && output->temporary != NULL && rename(output->temporary, output->path) != 0)
        number = errno;
    if (number != 0)
        return fail(failure, "write", output->path != NULL ? output->path : "the answer", number);
    unfinished = NULL;
    if (output->temporary != NULL)
        sync_folder(output->path);
    free(output->temporary);
    output->temporary = NULL;
    return ERROR_NONE;
}

void files_close_output(struct files_output *output)
{
    if (output->fd >= 0)
        close(output->fd);
    if (output->temporary != NULL)
        unlink(output->temporary);
    if (output->temporary != NULL)
        unfinished = NULL;
    free(output->temporary);
    free(output->path);
    *output = (struct files_output){.fd = -1};
}

/* ---- Secrets ---- */

enum error files_check_key(const char *path, struct failure *failure)
{
    struct trusted_file file = {.flag = "key", .path = path, .secret = true};
    enum error error = trusted_file_read(&file, failure);
    trusted_file_forget(&file);
    return error;
}

enum error files_read_token(const char *path, char *token, size_t size, struct failure *failure)
{
    struct trusted_file file = {.flag = "token-file", .path = path, .secret = true};
    enum error error = trusted_file_read(&file, failure);
    if (error == ERROR_NONE) {
        size_t length = strcspn(file.data, "\r\n");
        bool usable = length > 0 && length < size;
        for (size_t i = 0; usable && i < length; i++)
            usable = file.data[i] > ' ' && file.data[i] <= '~';
        if (usable)
            snprintf(token, size, "%.*s", (int)length, file.data);
        else
            error = trusted_file_refuse(&file, "its first line is no token", failure);
    }
    trusted_file_forget(&file);
    return error;
}
