/* tests/sim/vfs.c: see vfs.h. Does what SQLite's unix VFS does, as far as a power cut can see: a
 * new journal's or log's folder is synced with its first sync, a database's is not. */
#include "tests/sim/vfs.h"

#include <assert.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 160
#define SHM_REGIONS 64

struct sim_vfs {
    sqlite3_vfs vfs; /* first */
    struct sim_disk *sim;
    char name[32];
};

struct sim_file {
    sqlite3_file file; /* first */
    struct sim_vfs *owner;
    struct disk_file *of_disk;
    char path[PATH_BYTES];
    bool is_new_log;
    void *regions[SHM_REGIONS];
};

static struct disk *disk_of(struct sim_vfs *vfs)
{
    return sim_disk_of(vfs->sim);
}

static int result(int number, int otherwise)
{
    return number == 0 ? SQLITE_OK : number == ENOSPC ? SQLITE_FULL : otherwise;
}

static int file_close(sqlite3_file *file)
{
    struct sim_file *self = (struct sim_file *)file;
    disk_of(self->owner)->ops->close(&self->of_disk);
    return SQLITE_OK;
}

static int file_read(sqlite3_file *file, void *to, int count, sqlite3_int64 offset)
{
    struct sim_file *self = (struct sim_file *)file;
    const struct disk_ops *ops = disk_of(self->owner)->ops;
    int64_t size;
    if (ops->size(self->of_disk, &size) != 0)
        return SQLITE_IOERR_READ;
    int64_t there = size > offset ? size - offset : 0;
    there = there < count ? there : count;
    memset(to, 0, (size_t)count);
    if (there > 0 && ops->read(self->of_disk, offset, to, there) != 0)
        return SQLITE_IOERR_READ;
    return there == count ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *file, const void *from, int count, sqlite3_int64 offset)
{
    struct sim_file *self = (struct sim_file *)file;
    return result(disk_of(self->owner)->ops->write(self->of_disk, offset, from, count),
                  SQLITE_IOERR_WRITE);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct sim_file *self = (struct sim_file *)file;
    return result(sim_disk_truncate(self->of_disk, size), SQLITE_IOERR_TRUNCATE);
}

static int sync_folder(struct sim_vfs *vfs, const char *path)
{
    char folder[PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    assert(slash);
    *slash = '\0';
    return disk_of(vfs)->ops->sync_folder(disk_of(vfs), folder);
}

static int file_sync(sqlite3_file *file, int flags)
{
    (void)flags;
    struct sim_file *self = (struct sim_file *)file;
    int status = disk_of(self->owner)->ops->sync(self->of_disk);
    if (status == 0 && self->is_new_log) {
        self->is_new_log = false;
        status = sync_folder(self->owner, self->path);
    }
    return result(status, SQLITE_IOERR_FSYNC);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    struct sim_file *self = (struct sim_file *)file;
    int64_t bytes = 0;
    int status = disk_of(self->owner)->ops->size(self->of_disk, &bytes);
    *size = bytes;
    return result(status, SQLITE_IOERR_FSTAT);
}

static int file_lock(sqlite3_file *file, int level)
{
    (void)file;
    (void)level;
    return SQLITE_OK;
}

static int file_is_reserved(sqlite3_file *file, int *is_reserved)
{
    (void)file;
    *is_reserved = 0;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *file, int what, void *argument)
{
    (void)file;
    (void)what;
    (void)argument;
    return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *file)
{
    (void)file;
    return 4096;
}

static int file_traits(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int shm_map(sqlite3_file *file, int region, int bytes, int extend, void volatile **memory)
{
    struct sim_file *self = (struct sim_file *)file;
    if (region >= SHM_REGIONS)
        return SQLITE_IOERR_SHMSIZE;
    if (!self->regions[region] && extend)
        self->regions[region] = calloc(1, (size_t)bytes);
    *memory = self->regions[region];
    return SQLITE_OK;
}

static int shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    (void)file;
    (void)offset;
    (void)count;
    (void)flags;
    return SQLITE_OK;
}

static void shm_barrier(sqlite3_file *file)
{
    (void)file;
}

static int shm_unmap(sqlite3_file *file, int remove)
{
    (void)remove;
    struct sim_file *self = (struct sim_file *)file;
    for (int i = 0; i < SHM_REGIONS; i++) {
        free(self->regions[i]);
        self->regions[i] = NULL;
    }
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_lock,
    .xCheckReservedLock = file_is_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_traits,
    .xShmMap = shm_map,
    .xShmLock = shm_lock,
    .xShmBarrier = shm_barrier,
    .xShmUnmap = shm_unmap,
};

static int vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags,
                    int *out_flags)
{
    struct sim_vfs *self = (struct sim_vfs *)vfs;
    struct sim_file *made = (struct sim_file *)file;
    memset(made, 0, sizeof *made);
    assert(path); /* temporary files lie in memory */
    snprintf(made->path, sizeof made->path, "%s", path);
    made->owner = self;
    bool is_there = sim_disk_has(self->sim, path);
    bool makes = !is_there && (flags & SQLITE_OPEN_CREATE) != 0;
    int status = disk_of(self)->ops->open(disk_of(self), path, makes ? DISK_MAKE : DISK_WRITE,
                                          &made->of_disk);
    if (status != 0)
        return SQLITE_CANTOPEN;
    made->is_new_log = makes && (flags & SQLITE_OPEN_MAIN_DB) == 0;
    made->file.pMethods = &methods;
    if (out_flags)
        *out_flags = flags;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    struct sim_vfs *self = (struct sim_vfs *)vfs;
    int status = disk_of(self)->ops->remove(disk_of(self), path);
    if (status == ENOENT)
        return SQLITE_IOERR_DELETE_NOENT;
    if (status == 0 && sync)
        status = sync_folder(self, path);
    return result(status, SQLITE_IOERR_DELETE);
}

static int vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *is_there)
{
    (void)flags;
    struct sim_vfs *self = (struct sim_vfs *)vfs;
    *is_there = sim_disk_has(self->sim, path);
    return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *path, int size, char *full)
{
    (void)vfs;
    snprintf(full, (size_t)size, "%s", path);
    return SQLITE_OK;
}

/* The same in every run. */
static int vfs_randomness(sqlite3_vfs *vfs, int count, char *to)
{
    (void)vfs;
    memset(to, 42, (size_t)count);
    return count;
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return us;
}

static int vfs_time(sqlite3_vfs *vfs, double *now)
{
    (void)vfs;
    *now = 2460000.5;
    return SQLITE_OK;
}

static int vfs_last_error(sqlite3_vfs *vfs, int size, char *text)
{
    (void)vfs;
    (void)size;
    (void)text;
    return 0;
}

struct sim_vfs *sim_vfs_create(struct sim_disk *sim)
{
    struct sim_vfs *made = calloc(1, sizeof *made);
    assert(made);
    made->sim = sim;
    snprintf(made->name, sizeof made->name, "sim-%p", (void *)made);
    made->vfs = (sqlite3_vfs){
        .iVersion = 1,
        .szOsFile = (int)sizeof(struct sim_file),
        .mxPathname = PATH_BYTES - 8,
        .zName = made->name,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_path,
        .xRandomness = vfs_randomness,
        .xSleep = vfs_sleep,
        .xCurrentTime = vfs_time,
        .xGetLastError = vfs_last_error,
    };
    int status = sqlite3_vfs_register(&made->vfs, 0);
    assert(status == SQLITE_OK);
    return made;
}

void sim_vfs_destroy(struct sim_vfs **vfs)
{
    if (!*vfs)
        return;
    sqlite3_vfs_unregister(&(*vfs)->vfs);
    free(*vfs);
    *vfs = NULL;
}

const char *sim_vfs_name(const struct sim_vfs *vfs)
{
    return vfs->name;
}
