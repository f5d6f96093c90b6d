/* queue/jobs/disk.h: what jobs ask of a file system, as a struct of functions.
 *
 * disk_system is the real one. tests/sim/disk.h is one in memory, which loses, tears and reorders
 * on a power cut what was not synced.
 *
 * What holds on every one: bytes survive a power loss once sync has returned 0, a name (of a new
 * file, of one that was renamed or removed) once sync_folder has. rename replaces a file at once or
 * not at all. Functions return 0 or an errno; after a failed sync the bytes are as good as lost,
 * and a second one proves nothing.
 *
 * Threads: any; a file belongs to one at a time. Calls block for as long as the disk takes.
 */
#ifndef QUEUE_JOBS_DISK_H
#define QUEUE_JOBS_DISK_H

#include <stdint.h>

struct disk_file; /* an open one */

struct disk {
    const struct disk_ops *ops;
};

enum disk_mode {
    DISK_READ,
    DISK_WRITE, /* it exists, and keeps its bytes */
    DISK_MAKE   /* a new one, mode 0600; one of that name is emptied */
};

struct disk_ops {
    int (*open)(struct disk *disk, const char *path, enum disk_mode mode, struct disk_file **file);
    /* Takes room for so many bytes from the start on: ENOSPC when there is none. */
    int (*allocate)(struct disk_file *file, int64_t bytes);
    int (*write)(struct disk_file *file, int64_t offset_bytes, const void *data, int64_t bytes);
    /* All of them, or ENODATA: the file ends before. */
    int (*read)(struct disk_file *file, int64_t offset_bytes, void *data, int64_t bytes);
    int (*size)(struct disk_file *file, int64_t *bytes);
    int (*sync)(struct disk_file *file);
    int (*descriptor)(const struct disk_file *file); /* lent; -1: it has none */
    void (*close)(struct disk_file **file);          /* NULL is allowed */

    int (*rename)(struct disk *disk, const char *from, const char *to);
    int (*remove)(struct disk *disk, const char *path);
    int (*make_folder)(struct disk *disk, const char *path); /* mode 0700; 0 if it is there */
    int (*sync_folder)(struct disk *disk, const char *path);
    /* Calls each for every file of a folder, in any order, with how long ago it was written. */
    int (*list)(struct disk *disk, const char *folder,
                void (*each)(void *context, const char *name, int64_t age_ms), void *context);
    /* What we may still write to the file system that path lies on. */
    int (*free_bytes)(struct disk *disk, const char *path, int64_t *bytes);
};

extern struct disk disk_system;

#endif
