/* server/engines/roster.h: the seats there are, and what each one's engine is started with.
 *
 * The host has its own seat and a spare one; so has each CUDA device, with several spare ones. A
 * seat is in the table whether or not somebody is going to sit there: who decides is the
 * supervisor.
 *
 * Threads: all on the thread of the libuv loop.
 */
#ifndef SERVER_ENGINES_ROSTER_H
#define SERVER_ENGINES_ROSTER_H

#include "server/engines/seat.h"
#include "server/engines/supervisor.h"

/* Of a seat in the table; also its role's number. */
enum roster_id {
    ROSTER_HOST,
    ROSTER_SPARE_HOST,
    ROSTER_CUDA,                                          /* of device 0, and so on */
    ROSTER_SPARE_CUDA = ROSTER_CUDA + ENGINE_DEVICES_MAX, /* the first of device 0 */
    ROSTER_SEATS = ROSTER_SPARE_CUDA + ENGINE_DEVICES_MAX * SUPERVISOR_SPARES_MAX
};

struct roster {
    struct seat seats[ROSTER_SEATS];

    /* Private: what the seats borrow. */
    struct engine_process_home home;
    struct engine_environment environment;
    char host_path[ENGINE_PATH_MAX], cuda_path[ENGINE_PATH_MAX];
    char threads[16], scratch_max[24], device_memory_max[24];
};

/* Finds the engines' programs and fills in the table. Takes CUDA out of options->engines where its
 * program is not installed and nobody insists on it. To be freed on any error too. */
ERROR_MUST_CHECK enum error roster_make(struct roster *roster, struct supervisor_options *options,
                                        int event_fd,
                                        void (*on_ended)(struct engine_process *process),
                                        void *context, struct failure *failure);
void roster_free(struct roster *roster);

/* The seat of the device's own engine, and its spare seat `index`, below SUPERVISOR_SPARES_MAX. */
struct seat *roster_own(struct roster *roster, int device);
struct seat *roster_spare(struct roster *roster, int device, int index);
/* The index of a device's spare seat. */
int roster_spare_index(const struct seat *spare);
bool roster_is_own(const struct seat *seat); /* of a CUDA device */

#endif
