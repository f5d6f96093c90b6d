/* client/run.h: `invert FILE`: from file to file, directly or as a job. Threads: one; blocks. */
#ifndef CLIENT_RUN_H
#define CLIENT_RUN_H

#include "client/session.h"

/* The session's outcome says how it ended. What a local file lacks is an outcome too. */
void run_file(struct session *session);

#endif
