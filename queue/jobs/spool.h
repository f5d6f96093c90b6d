/* queue/jobs/spool.h: the files of jobs: bodies and results of more than JOB_INLINE_MAX bytes.
 *
 * A file is written under another name, synced, and renamed; then its folder is synced. So a file
 * that has its name is whole. Names are ID.body and ID.ATTEMPT.result, with .part while they are
 * being written, in 256 folders by the id's first byte. A file's bytes are followed by none of
 * ours: a result is served as it lies there.
 * Room is taken when a file is made (fallocate; where the file system has none, by writing), so
 * that a full disk refuses a job before it is accepted and not while it is computed.
 *
 * The disk is a struct of functions (disk.h), so that a simulation may lose what was not synced.
 *
 * Threads: any; a file belongs to one at a time. Calls block for as long as the disk takes, so none
 * belongs on an event loop, but spool_fd, and spool_close of a file that was read. While the
 * service drains, what a client has left is closed and removed there all the same.
 */
#ifndef QUEUE_JOBS_SPOOL_H
#define QUEUE_JOBS_SPOOL_H

#include "queue/jobs/job.h"

struct disk;
struct spool;
struct spool_file;

/* folder exists, and is ours alone. Borrows disk. */
ERROR_MUST_CHECK enum error spool_create(const char *folder, struct disk *disk,
                                         struct spool **spool, struct failure *failure);
void spool_destroy(struct spool **spool);

/* Bytes that the file system has free for us. */
ERROR_MUST_CHECK enum error spool_free(struct spool *spool, int64_t *bytes,
                                       struct failure *failure);

/* A new file, of so many bytes that are reserved: NO_ROOM when there are none. attempt 0: a body. A
 * file that is left over from an interrupted writing of the same name is written anew. */
ERROR_MUST_CHECK enum error spool_write(struct spool *spool, const struct job_id *id,
                                        int32_t attempt, int64_t bytes, struct spool_file **file,
                                        struct failure *failure);
/* STORE_FAILED when the disk fails. */
ERROR_MUST_CHECK enum error spool_put(struct spool_file *file, int64_t offset_bytes,
                                      const void *data, int64_t bytes, struct failure *failure);
/* Syncs it and gives it its name. Closes it in any case; one that failed is removed. */
ERROR_MUST_CHECK enum error spool_keep(struct spool_file **file, struct failure *failure);
/* One that is to be read. NOT_FOUND; STORE_FAILED when it is shorter than so many bytes. */
ERROR_MUST_CHECK enum error spool_read(struct spool *spool, const struct job_id *id,
                                       int32_t attempt, int64_t bytes, struct spool_file **file,
                                       struct failure *failure);
ERROR_MUST_CHECK enum error spool_get(struct spool_file *file, int64_t offset_bytes, void *data,
                                      int64_t bytes, struct failure *failure);
int spool_fd(const struct spool_file *file); /* lent; -1: the disk has no descriptors */
/* Closes it; one that was not kept is removed. NULL is allowed. */
void spool_close(struct spool_file **file);
/* Removes a file, if it is there. */
void spool_remove(struct spool *spool, const struct job_id *id, int32_t attempt);

/* Calls each for every file that was last written so long ago, in any order, with attempt -1 for
 * one that is not whole; each says whether it may go. For what a crash left behind. */
ERROR_MUST_CHECK enum error spool_sweep(struct spool *spool, int64_t older_than_ms,
                                        bool (*each)(void *context, const struct job_id *id,
                                                     int32_t attempt),
                                        void *context, struct failure *failure);

#endif
