/* queue/jobs/disk.c: the file system that the process sees. See disk.h.
 *
 * fdatasync is enough for a file's bytes: it takes along what of the inode is needed to read them,
 * the length and blocks that were allocated and not written. Symbolic links are not followed.
 */
#include "queue/jobs/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

struct disk_file {
    int fd;
};

static int file_open(struct disk *disk, const char *path, enum disk_mode mode,
                     struct disk_file **file)
{
    (void)disk;
    static const int flags[] = {
        [DISK_READ] = O_RDONLY, [DISK_WRITE] = O_RDWR, [DISK_MAKE] = O_RDWR | O_CREAT | O_TRUNC};
    struct disk_file *made = malloc(sizeof *made);
    if (!made)
        return ENOMEM;
    made->fd = open(path, flags[mode] | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (made->fd < 0) {
        int number = errno;
        free(made);
        return number;
    }
    *file = made;
    return 0;
}

/* File systems that cannot hold room say so; then the room is made by writing zeros. */
static int fill_with_zeros(struct disk_file *file, int64_t bytes)
{
    static const char zeros[1 << 16];
    int status = 0;
    for (int64_t at = 0; at < bytes && status == 0; at += (int64_t)sizeof zeros) {
        int64_t piece = bytes - at < (int64_t)sizeof zeros ? bytes - at : (int64_t)sizeof zeros;
        ssize_t count;
        do
            count = pwrite(file->fd, zeros, (size_t)piece, at);
        while (count < 0 && errno == EINTR);
        status = count < 0 ? errno : count < piece ? ENOSPC : 0;
    }
    return status;
}

static int file_allocate(struct disk_file *file, int64_t bytes)
{
    if (bytes == 0)
        return 0;
    int status;
    do
        status = fallocate(file->fd, 0, 0, bytes) == 0 ? 0 : errno;
    while (status == EINTR);
    return status == EOPNOTSUPP ? fill_with_zeros(file, bytes) : status;
}

static int file_write(struct disk_file *file, int64_t offset_bytes, const void *data, int64_t bytes)
{
    const char *from = data;
    while (bytes > 0) {
        ssize_t count = pwrite(file->fd, from, (size_t)bytes, offset_bytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? errno : EIO;
        from += count;
        offset_bytes += count;
        bytes -= count;
    }
    return 0;
}

static int file_read(struct disk_file *file, int64_t offset_bytes, void *data, int64_t bytes)
{
    char *to = data;
    while (bytes > 0) {
        ssize_t count = pread(file->fd, to, (size_t)bytes, offset_bytes);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? errno : ENODATA;
        to += count;
        offset_bytes += count;
        bytes -= count;
    }
    return 0;
}

static int file_size(struct disk_file *file, int64_t *bytes)
{
    struct stat stat;
    if (fstat(file->fd, &stat) != 0)
        return errno;
    *bytes = stat.st_size;
    return 0;
}

static int file_sync(struct disk_file *file)
{
    return fdatasync(file->fd) == 0 ? 0 : errno;
}

static int file_descriptor(const struct disk_file *file)
{
    return file->fd;
}

static void file_close(struct disk_file **file)
{
    if (!*file)
        return;
    close((*file)->fd);
    free(*file);
    *file = NULL;
}

static int path_rename(struct disk *disk, const char *from, const char *to)
{
    (void)disk;
    return rename(from, to) == 0 ? 0 : errno;
}

static int path_remove(struct disk *disk, const char *path)
{
    (void)disk;
    return unlink(path) == 0 ? 0 : errno;
}

static int folder_make(struct disk *disk, const char *path)
{
    (void)disk;
    if (mkdir(path, 0700) == 0)
        return 0;
    int number = errno;
    struct stat stat;
    if (number == EEXIST && lstat(path, &stat) == 0)
        return S_ISDIR(stat.st_mode) ? 0 : ENOTDIR;
    return number;
}

static int folder_sync(struct disk *disk, const char *path)
{
    (void)disk;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int status = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    return status;
}

static int64_t age_ms(const struct timespec *now, const struct timespec *then)
{
    return (int64_t)(now->tv_sec - then->tv_sec) * 1000 + (now->tv_nsec - then->tv_nsec) / 1000000;
}

static int folder_list(struct disk *disk, const char *path,
                       void (*each)(void *context, const char *name, int64_t age_ms), void *context)
{
    (void)disk;
    DIR *folder = opendir(path);
    if (!folder)
        return errno;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct dirent *entry;
    int status = 0;
    while (errno = 0, (entry = readdir(folder)) != NULL) {
        struct stat stat;
        if (fstatat(dirfd(folder), entry->d_name, &stat, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(stat.st_mode))
            each(context, entry->d_name, age_ms(&now, &stat.st_mtim));
    }
    status = errno;
    closedir(folder);
    return status;
}

static int path_free_bytes(struct disk *disk, const char *path, int64_t *bytes)
{
    (void)disk;
    struct statfs statfs_of;
    if (statfs(path, &statfs_of) != 0)
        return errno;
    if (__builtin_mul_overflow((int64_t)statfs_of.f_bavail, (int64_t)statfs_of.f_bsize, bytes))
        *bytes = INT64_MAX;
    return 0;
}

static const struct disk_ops ops = {
    .open = file_open,
    .allocate = file_allocate,
    .write = file_write,
    .read = file_read,
    .size = file_size,
    .sync = file_sync,
    .descriptor = file_descriptor,
    .close = file_close,
    .rename = path_rename,
    .remove = path_remove,
    .make_folder = folder_make,
    .sync_folder = folder_sync,
    .list = folder_list,
    .free_bytes = path_free_bytes,
};

struct disk disk_system = {&ops};
