/* server/engines/roster.h: the roles there are, and what each one's engine is started with.
 *
 * The host has its own role and a spare one; so has each CUDA device, with several spare ones. A
 * role is in the table whether or not it is going to have a process: the supervisor decides.
 *
 * Threads: all on the thread of the libuv loop.
 */
#ifndef SERVER_ENGINES_ROSTER_H
#define SERVER_ENGINES_ROSTER_H

#include "server/engines/role.h"
#include "server/engines/supervisor.h"

/* Of a role in the table; also its role's number. */
enum roster_id {
    ROSTER_HOST,
    ROSTER_SPARE_HOST,
    ROSTER_CUDA,                                          /* of device 0, and so on */
    ROSTER_SPARE_CUDA = ROSTER_CUDA + ENGINE_DEVICES_MAX, /* the first of device 0 */
    ROSTER_ROLES = ROSTER_SPARE_CUDA + ENGINE_DEVICES_MAX * SUPERVISOR_SPARES_MAX
};

struct roster {
    struct role roles[ROSTER_ROLES];

    /* Private: what the roles borrow. */
    struct engine_process_home home;
    char host_path[ENGINE_PATH_MAX], cuda_path[ENGINE_PATH_MAX];
    char threads[16], scratch_max[24], device_memory_max[24];
};

/* Finds the engines' programs and fills in the table. Takes CUDA out of options->engines where its
 * program is not installed and --engine does not insist on it. */
ERROR_MUST_CHECK enum error roster_make(struct roster *roster, struct supervisor_options *options,
                                        int event_fd,
                                        void (*on_ended)(struct engine_process *process),
                                        void *context, struct failure *failure);

/* The role of the device's own engine, and its spare role `index`, below SUPERVISOR_SPARES_MAX. */
struct role *roster_own(struct roster *roster, int device);
struct role *roster_spare(struct roster *roster, int device, int index);
/* The index of a device's spare role. */
int roster_spare_index(const struct role *spare);
bool roster_is_own(const struct role *role); /* of a CUDA device */

#endif
