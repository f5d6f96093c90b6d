/* queue/jobs/store_sqlite.h: the store of one daemon: a file of SQLite's. See store.h. */
#ifndef QUEUE_JOBS_STORE_SQLITE_H
#define QUEUE_JOBS_STORE_SQLITE_H

#include "queue/jobs/disk.h"
#include "queue/jobs/store.h"

struct store_sqlite_config {
    const char *path;  /* of the file, which is made if it is missing; its folder is there */
    struct disk *disk; /* that the file lies on; borrowed */
    const char *vfs;   /* the name of SQLite's way to that disk; NULL: the system's */
    bool no_sync;      /* for tests, whose control loses what it acknowledged */
};

/* STORE_FAILED, with what to do: the disk does not do it, the file is of a newer version, or none
 * of ours. Blocks. The store belongs to one thread at a time. */
ERROR_MUST_CHECK enum error store_sqlite_open(const struct store_sqlite_config *config,
                                              struct store **store, struct failure *failure);

#endif
