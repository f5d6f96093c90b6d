/* gpu/process/process.h: the life of an engine process, whatever its device; gpu/engine.h is the
 * contract it keeps.
 *
 *      process_isolate -> process_join -> (the engine starts its lanes) -> process_serve -> _exit
 *
 * Nothing is given back: the process ends by _exit when the control socket ends, or with the front
 * (PR_SET_PDEATHSIG), and all that outlives it belongs to the front.
 *
 * Threads: main calls; process_join starts one that beats.
 */
#ifndef GPU_PROCESS_PROCESS_H
#define GPU_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"
#include "gpu/engine.h"

struct process {
    struct engine_shared *shared;
    struct region_map arena;
};

/* Who an engine is, for struct engine_shared. */
struct process_identity {
    const char *device, *model, *version;
    int device_count;
    int64_t n_max[ENGINE_METHODS_MAX][PRECISION_COUNT];
};

/* Ties the process to the front: its death is ours, a terminal's signals are not, and nothing but
 * the contract's descriptors stays open; stdout becomes /dev/null. name: as ps shows it. */
void process_isolate(const char *name);

/* Maps the lanes, says who we are, maps the arena and begins to beat. false: what is wrong has been
 * logged, and the front sees where it is a mismatch. */
bool process_join(const struct process_identity *identity, struct process *process);

/* The processors this process may use, at least 1. Any thread. */
int process_cores(void);

/* Reports to the front that batches can come, and returns when it has closed its end. */
void process_serve(struct process *process);

/* Reports to the front that this process is about to end with ENGINE_EXIT_FAULT. Any thread. */
void process_report_lost(struct engine_shared *shared);

#endif
