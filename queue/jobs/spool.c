/* queue/jobs/spool.c: files by the ids of their jobs. See spool.h.
 *
 *     FOLDER/ab/ab..ef.body        the bytes of a job's input, and no other
 *     FOLDER/ab/ab..ef.3.result    of its result, by attempt 3
 *     ....part                     the same while it is being written
 *
 * A spool is constant after its start. Cost: two allocations a file.
 */
#include "queue/jobs/spool.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/jobs/disk.h"

#define FOLDERS 256
#define FOLDER_BYTES 1024              /* of the spool's own path, its NUL among them */
#define PATH_BYTES (FOLDER_BYTES + 64) /* "/ab/", JOB_ID_TEXT, a number, two endings */
#define PART ".part"

struct spool {
    struct disk *disk;
    char folder[FOLDER_BYTES];
};

struct spool_file {
    struct spool *spool;
    struct disk_file *file;
    int64_t bytes;
    bool is_part; /* to be kept or removed */
    struct job_id id;
    int32_t attempt;
};

struct path {
    char text[PATH_BYTES];
};

/* What a disk said, in words. */
static enum error fail(struct failure *failure, int number, const char *what)
{
    bool is_full = number == ENOSPC || number == EDQUOT || number == EFBIG;
    char text[64];
    return failure_set(failure, is_full ? ERROR_NO_ROOM : ERROR_STORE_FAILED,
                       "The spool of jobs cannot %s: %s.", what,
                       strerror_r(number, text, sizeof text));
}

static struct path folder_of(const struct spool *spool, int number)
{
    struct path path;
    snprintf(path.text, sizeof path.text, "%s/%02x", spool->folder, (unsigned)number & 255);
    return path;
}

/* part: PART or "". */
static struct path path_of(const struct spool *spool, const struct job_id *id, int32_t attempt,
                           const char *part)
{
    struct path path;
    char text[JOB_ID_TEXT];
    job_id_write(id, text);
    if (attempt == 0)
        snprintf(path.text, sizeof path.text, "%s/%.2s/%s.body%s", spool->folder, text, text, part);
    else
        snprintf(path.text, sizeof path.text, "%s/%.2s/%s.%" PRId32 ".result%s", spool->folder,
                 text, text, attempt, part);
    return path;
}

/* ---- The spool ---- */

enum error spool_create(const char *folder, struct disk *disk, struct spool **spool,
                        struct failure *failure)
{
    *spool = NULL;
    if (strlen(folder) >= FOLDER_BYTES)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "The path of the folder of jobs is longer than %d characters.",
                           FOLDER_BYTES - 1);
    struct spool *made = calloc(1, sizeof *made);
    if (!made)
        return failure_set(failure, ERROR_INTERNAL, "Out of memory for the spool of jobs.");
    made->disk = disk;
    memcpy(made->folder, folder, strlen(folder) + 1);
    int status = 0;
    for (int i = 0; i < FOLDERS && status == 0; i++) {
        struct path path = folder_of(made, i);
        status = disk->ops->make_folder(disk, path.text);
    }
    if (status == 0)
        status = disk->ops->sync_folder(disk, folder);
    if (status != 0) {
        free(made);
        return fail(failure, status, "make its folders");
    }
    *spool = made;
    return ERROR_NONE;
}

void spool_destroy(struct spool **spool)
{
    free(*spool);
    *spool = NULL;
}

enum error spool_free(struct spool *spool, int64_t *bytes, struct failure *failure)
{
    int status = spool->disk->ops->free_bytes(spool->disk, spool->folder, bytes);
    return status == 0 ? ERROR_NONE : fail(failure, status, "ask how much room there is");
}

/* ---- A file ---- */

/* Opens it; is_part: a new one. */
static int open_file(struct spool *spool, const struct job_id *id, int32_t attempt, bool is_part,
                     struct spool_file **file)
{
    struct spool_file *made = calloc(1, sizeof *made);
    if (!made)
        return ENOMEM;
    *made = (struct spool_file){.spool = spool, .id = *id, .attempt = attempt, .is_part = is_part};
    struct path path = path_of(spool, id, attempt, is_part ? PART : "");
    int status = spool->disk->ops->open(spool->disk, path.text, is_part ? DISK_MAKE : DISK_READ,
                                        &made->file);
    if (status != 0) {
        free(made);
        return status;
    }
    *file = made;
    return 0;
}

enum error spool_write(struct spool *spool, const struct job_id *id, int32_t attempt, int64_t bytes,
                       struct spool_file **file, struct failure *failure)
{
    assert(attempt >= 0 && bytes >= 0);
    *file = NULL;
    struct spool_file *made = NULL;
    int status = open_file(spool, id, attempt, true, &made);
    if (status != 0)
        return fail(failure, status, "make a file");
    made->bytes = bytes;
    status = spool->disk->ops->allocate(made->file, bytes);
    if (status != 0) {
        spool_close(&made);
        return fail(failure, status, "hold room for a file");
    }
    *file = made;
    return ERROR_NONE;
}

enum error spool_put(struct spool_file *file, int64_t offset_bytes, const void *data, int64_t bytes,
                     struct failure *failure)
{
    assert(file->is_part && offset_bytes >= 0 && bytes >= 0 && bytes <= file->bytes - offset_bytes);
    int status = file->spool->disk->ops->write(file->file, offset_bytes, data, bytes);
    return status == 0 ? ERROR_NONE : fail(failure, status, "write a file");
}

/* Makes bytes and name durable. */
static int keep(struct spool_file *file)
{
    const struct spool *spool = file->spool;
    struct disk *disk = spool->disk;
    struct path part = path_of(spool, &file->id, file->attempt, PART);
    struct path path = path_of(spool, &file->id, file->attempt, "");
    struct path folder = folder_of(spool, file->id.bytes[0]);
    int status = disk->ops->sync(file->file);
    if (status != 0)
        return status;
    status = disk->ops->rename(disk, part.text, path.text);
    if (status != 0)
        return status;
    file->is_part = false;
    status = disk->ops->sync_folder(disk, folder.text);
    if (status != 0)
        disk->ops->remove(disk, path.text);
    return status;
}

enum error spool_keep(struct spool_file **file, struct failure *failure)
{
    assert((*file)->is_part);
    int status = keep(*file);
    spool_close(file);
    return status == 0 ? ERROR_NONE : fail(failure, status, "sync a file");
}

enum error spool_read(struct spool *spool, const struct job_id *id, int32_t attempt, int64_t bytes,
                      struct spool_file **file, struct failure *failure)
{
    *file = NULL;
    struct spool_file *made = NULL;
    int status = open_file(spool, id, attempt, false, &made);
    if (status == ENOENT)
        return failure_set(failure, ERROR_NOT_FOUND, "The spool of jobs has no such file.");
    if (status != 0)
        return fail(failure, status, "open a file");
    int64_t there_bytes = 0;
    status = spool->disk->ops->size(made->file, &there_bytes);
    made->bytes = bytes;
    if (status == 0 && there_bytes >= bytes) {
        *file = made;
        return ERROR_NONE;
    }
    spool_close(&made);
    return fail(failure, status != 0 ? status : ENODATA, "read a file");
}

enum error spool_get(struct spool_file *file, int64_t offset_bytes, void *data, int64_t bytes,
                     struct failure *failure)
{
    assert(offset_bytes >= 0 && bytes >= 0 && bytes <= file->bytes - offset_bytes);
    int status = file->spool->disk->ops->read(file->file, offset_bytes, data, bytes);
    return status == 0 ? ERROR_NONE : fail(failure, status, "read a file");
}

int spool_fd(const struct spool_file *file)
{
    return file->spool->disk->ops->descriptor(file->file);
}

void spool_close(struct spool_file **file)
{
    struct spool_file *old = *file;
    if (!old)
        return;
    *file = NULL;
    struct disk *disk = old->spool->disk;
    disk->ops->close(&old->file);
    if (old->is_part) {
        struct path path = path_of(old->spool, &old->id, old->attempt, PART);
        disk->ops->remove(disk, path.text);
    }
    free(old);
}

void spool_remove(struct spool *spool, const struct job_id *id, int32_t attempt)
{
    /* Should a power loss bring it back, a sweep finds it. */
    struct path path = path_of(spool, id, attempt, "");
    spool->disk->ops->remove(spool->disk, path.text);
}

/* ---- What a crash left behind ---- */

struct sweep {
    struct spool *spool;
    int64_t older_than_ms;
    bool (*each)(void *context, const struct job_id *id, int32_t attempt);
    void *context;
    int folder;
};

/* false: that is no name of ours. */
static bool read_name(const char *name, struct job_id *id, int32_t *attempt, bool *is_part)
{
    size_t length = strlen(name);
    if (length < JOB_ID_TEXT || !job_id_read(name, JOB_ID_TEXT - 1, id))
        return false;
    const char *rest = name + JOB_ID_TEXT - 1;
    *is_part = length > strlen(PART) && strcmp(name + length - strlen(PART), PART) == 0;
    const char *part = *is_part ? PART : "";
    char expected[64];
    long number = 0;
    if (rest[1] >= '1' && rest[1] <= '9')
        number = strtol(rest + 1, NULL, 10);
    if (number < 0 || number > INT32_MAX)
        return false;
    *attempt = (int32_t)number;
    if (number == 0)
        snprintf(expected, sizeof expected, ".body%s", part);
    else
        snprintf(expected, sizeof expected, ".%ld.result%s", number, part);
    return strcmp(rest, expected) == 0;
}

static void look_at(void *context, const char *name, int64_t age_ms)
{
    const struct sweep *sweep = context;
    struct job_id id;
    int32_t attempt;
    bool is_part;
    bool is_young = age_ms < sweep->older_than_ms && sweep->older_than_ms > 0;
    if (is_young || !read_name(name, &id, &attempt, &is_part) || id.bytes[0] != sweep->folder ||
        !sweep->each(sweep->context, &id, is_part ? -1 : attempt))
        return;
    struct path path = path_of(sweep->spool, &id, attempt, is_part ? PART : "");
    sweep->spool->disk->ops->remove(sweep->spool->disk, path.text);
}

enum error spool_sweep(struct spool *spool, int64_t older_than_ms,
                       bool (*each)(void *context, const struct job_id *id, int32_t attempt),
                       void *context, struct failure *failure)
{
    struct sweep sweep = {spool, older_than_ms, each, context, 0};
    int status = 0;
    for (; sweep.folder < FOLDERS && status == 0; sweep.folder++) {
        struct path path = folder_of(spool, sweep.folder);
        status = spool->disk->ops->list(spool->disk, path.text, look_at, &sweep);
    }
    return status == 0 ? ERROR_NONE : fail(failure, status, "list its files");
}
