/* server/reload.h: SIGHUP: opens the logs anew, and reads anew what may change while the daemon
 * runs. The token file is also read anew when it has changed, as those who replace files do not
 * always send signals.
 *
 * Certificates, tokens, and the options whose rows say so, are read anew each by itself. Of what is
 * wrong, nothing is taken: the old stays, and the log has the reason. Options that differ and
 * cannot change are reported as waiting for a restart.
 *
 * Threads: loop 0's.
 */
#ifndef SERVER_RELOAD_H
#define SERVER_RELOAD_H

#include "server/config.h"
#include "server/drain.h"
#include "server/http/access.h"
#include "server/http/request_log.h"
#include "server/http/tls.h"
#include "server/loop.h"

struct reload_options {
    int argc; /* the command line, borrowed as all below */
    char **argv;
    struct config *config; /* in force; what may change is changed in it */
    struct handlers_services *services;
    struct loop **loops;
    int loop_count;
    struct drain *drain;
    struct tls *tls;                /* NULL: none */
    struct access *access;          /* NULL: none */
    struct request_log *access_log; /* NULL: none */
};

struct reload;

ERROR_MUST_CHECK enum error reload_create(const struct reload_options *options,
                                          struct reload **reload, struct failure *failure);
/* Before loop 0 is destroyed; NULL: nothing. */
void reload_close(struct reload *reload);
void reload_destroy(struct reload **reload);
void reload_run(struct reload *reload);

#endif
