/* queue/jobs/folder.h: the data folder: ours alone, and one daemon's at a time.
 *
 *     lock     held with flock(2) as long as the daemon lives; in it the node's id, made once
 *     jobs.db  the store
 *     spool/   the files
 */
#ifndef QUEUE_JOBS_FOLDER_H
#define QUEUE_JOBS_FOLDER_H

#include "queue/jobs/job.h"

struct folder {
    int lock; /* -1: not open */
    struct job_id node;
    char jobs[1024], spool[1024]; /* paths */
};

/* Makes it, with mode 0700, if it is missing. FULL: another daemon has it; BAD_OPTION: it cannot
 * be used; both with words. */
ERROR_MUST_CHECK enum error folder_open(const char *path, struct folder *folder,
                                        struct failure *failure);
void folder_close(struct folder *folder);

#endif
