/* base/trusted_file.c: see trusted_file.h. */
#include "base/trusted_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum error trusted_file_refuse(const struct trusted_file *file, const char *why,
                               struct failure *failure)
{
    return failure_set(failure, ERROR_BAD_OPTION, "%s%s%s\"%s\" is not allowed; %s.",
                       file->flag != NULL ? "--" : "", file->flag != NULL ? file->flag : "",
                       file->flag != NULL ? " " : "", file->path, why);
}

static enum error check_mode(const struct trusted_file *file, const struct stat *status,
                             struct failure *failure)
{
    mode_t forbidden = S_IWOTH | (file->secret ? S_IROTH | S_IWGRP : 0);
    if (!S_ISREG(status->st_mode))
        return trusted_file_refuse(file, "it is no plain file", failure);
    if ((status->st_mode & forbidden) != 0)
        return trusted_file_refuse(file,
                                   file->secret ? "others can read or write the file (chmod 0600)"
                                                : "others can write the file (chmod 0644)",
                                   failure);
    if (status->st_size > TRUSTED_FILE_MAX_BYTES)
        return trusted_file_refuse(file, "it is longer than 4 MiB", failure);
    return ERROR_NONE;
}

static enum error read_open(struct trusted_file *file, int fd, struct failure *failure)
{
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0)
        return trusted_file_refuse(file, strerror(errno), failure);
    enum error error = check_mode(file, &status, failure);
    if (error != ERROR_NONE)
        return error;
    file->data = malloc((size_t)status.st_size + 1);
    if (file->data == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    while (file->size < (size_t)status.st_size) {
        ssize_t count = read(fd, file->data + file->size, (size_t)status.st_size - file->size);
        if (count < 0)
            return trusted_file_refuse(file, strerror(errno), failure);
        if (count == 0)
            break; /* it has become shorter */
        file->size += (size_t)count;
    }
    file->data[file->size] = '\0';
    return ERROR_NONE;
}

enum error trusted_file_read(struct trusted_file *file, struct failure *failure)
{
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    enum error error = read_open(file, fd, failure);
    if (fd >= 0)
        close(fd);
    return error;
}

void trusted_file_forget(struct trusted_file *file)
{
    if (file->secret && file->data != NULL)
        explicit_bzero(file->data, file->size);
    free(file->data);
    file->data = NULL;
    file->size = 0;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

struct trusted_file_mark trusted_file_mark(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return (struct trusted_file_mark){0};
    return (struct trusted_file_mark){.device = status.st_dev,
                                      .number = status.st_ino,
                                      .size = status.st_size,
                                      .written = status.st_mtim,
                                      .changed = status.st_ctim};
}

bool trusted_file_is_same(const struct trusted_file_mark *a, const struct trusted_file_mark *b)
{
    return a->device == b->device && a->number == b->number && a->size == b->size &&
           is_same_time(&a->written, &b->written) && is_same_time(&a->changed, &b->changed);
}
