/* queue/jobs/folder.c: see folder.h. Threads: one. */
#include "queue/jobs/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

static enum error refuse(const char *path, const char *what, struct failure *failure)
{
    return failure_set(failure, ERROR_BAD_OPTION, "The data folder \"%.200s\" %s.", path, what);
}

static enum error refuse_errno(const char *path, const char *what, struct failure *failure)
{
    char text[64];
    return failure_set(failure, ERROR_BAD_OPTION, "The data folder \"%.200s\" %s: %s.", path, what,
                       strerror_r(errno, text, sizeof text));
}

/* Those above it too, as mkdir -p does. */
static int make_folders(const char *path)
{
    char part[1024];
    size_t length = strlen(path);
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, S_IRWXU) != 0 && errno != EEXIST)
            return -1;
    }
    return 0;
}

static enum error check(const char *path, struct failure *failure)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return refuse_errno(path, "cannot be looked at", failure);
    if (!S_ISDIR(status.st_mode))
        return refuse(path, "is not a folder; give one, or a path where one can be made", failure);
    if (status.st_uid != geteuid())
        return refuse(path, "belongs to another user; give one of this user's", failure);
    if ((status.st_mode & OTHERS_WRITE) != 0)
        return refuse(path, "can be written by others; take that from them (chmod 700)", failure);
    return access(path, R_OK | W_OK | X_OK) == 0
               ? ERROR_NONE
               : refuse_errno(path, "cannot be read and written", failure);
}

/* Who has the lock is this node: its id is read, or made. */
static enum error read_node(const char *path, struct folder *folder, struct failure *failure)
{
    char text[JOB_ID_TEXT] = "";
    ssize_t length = pread(folder->lock, text, sizeof text - 1, 0);
    if (length == JOB_ID_TEXT - 1 && job_id_read(text, (size_t)length, &folder->node))
        return ERROR_NONE;
    enum error error = job_id_make(&folder->node, failure);
    if (error != ERROR_NONE)
        return error;
    job_id_write(&folder->node, text);
    if (ftruncate(folder->lock, 0) != 0 ||
        pwrite(folder->lock, text, JOB_ID_TEXT - 1, 0) != JOB_ID_TEXT - 1 ||
        fsync(folder->lock) != 0)
        return refuse_errno(path, "cannot be written", failure);
    return ERROR_NONE;
}

static enum error take_lock(const char *path, struct folder *folder, struct failure *failure)
{
    char lock[1024];
    snprintf(lock, sizeof lock, "%s/lock", path);
    folder->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (folder->lock < 0)
        return refuse_errno(path, "cannot be locked", failure);
    if (flock(folder->lock, LOCK_EX | LOCK_NB) == 0)
        return read_node(path, folder, failure);
    if (errno == EWOULDBLOCK)
        return failure_set(failure, ERROR_FULL,
                           "Another invertd uses the data folder \"%.200s\"; give each its own "
                           "with --data-dir.",
                           path);
    return refuse_errno(path, "cannot be locked", failure);
}

enum error folder_open(const char *path, struct folder *folder, struct failure *failure)
{
    *folder = (struct folder){.lock = -1};
    if (path[0] == '\0' || strlen(path) > sizeof folder->jobs - 64)
        return refuse(path, "has a path that is empty or too long", failure);
    if (make_folders(path) != 0)
        return refuse_errno(path, "cannot be made", failure);
    enum error error = check(path, failure);
    if (error == ERROR_NONE)
        error = take_lock(path, folder, failure);
    snprintf(folder->jobs, sizeof folder->jobs, "%s/jobs.db", path);
    snprintf(folder->spool, sizeof folder->spool, "%s/spool", path);
    if (error == ERROR_NONE && mkdir(folder->spool, S_IRWXU) != 0 && errno != EEXIST)
        error = refuse_errno(path, "cannot be written", failure);
    if (error != ERROR_NONE)
        folder_close(folder);
    return error;
}

void folder_close(struct folder *folder)
{
    if (folder->lock >= 0)
        close(folder->lock);
    folder->lock = -1;
}
