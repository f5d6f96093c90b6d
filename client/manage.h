/* client/manage.h: the commands that are of jobs: status, wait, fetch, cancel, list. Threads: one;
 * blocks. */
#ifndef CLIENT_MANAGE_H
#define CLIENT_MANAGE_H

#include "client/session.h"

/* Each job has an outcome of its own, which `each` is called with; done: what was asked for is
 * printed already. Returns the first outcome that is not DONE. */
enum outcome_code manage_run(struct session *session,
                             void (*each)(const struct arguments *arguments,
                                          const struct outcome *outcome, bool printed));

#endif
