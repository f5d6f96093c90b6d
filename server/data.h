/* server/data.h: where jobs are kept, and the jobs themselves, as the options have them.
 *
 * Threads: the starting thread.
 */
#ifndef SERVER_DATA_H
#define SERVER_DATA_H

#include "queue/jobs/jobs.h"
#include "server/config.h"

/* Opens jobs in the folder that --data-dir names, or in the user's own. *jobs is NULL where there
 * are to be none, and where a folder that no one has named cannot be used, which is logged.
 * BAD_OPTION: the one that is named cannot. */
ERROR_MUST_CHECK enum error data_open(const struct config *config, struct jobs_config *parts,
                                      struct jobs **jobs, struct failure *failure);

#endif
