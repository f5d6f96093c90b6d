/* gpu/process/fault.h: faults on purpose, for tests of the front's supervision: what they are and
 * how they are asked for. Test builds only (-DENGINE_FAULTS); otherwise nothing of it is compiled
 * in. Each engine does them in its own way.
 *
 * SPEC is a list, "oom:ITEMS,poison:VALUE,hang:VALUE,slow:US":
 *   oom     a batch of more than ITEMS items or matrices answers ENGINE_OUT_OF_MEMORY
 *   poison  a matrix whose first number equals VALUE ends the process (host: SIGSEGV; cuda: a
 *           kernel writes to a bad address)
 *   hang    such a matrix never ends
 *   slow    every matrix (host) or batch (cuda) takes US microseconds longer
 */
#ifndef GPU_PROCESS_FAULT_H
#define GPU_PROCESS_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu/engine.h"

struct process_faults {
    int64_t oom_items; /* 0: none */
    bool has_poison, has_hang;
    double poison, hang;
    int64_t slow_us;
};

#ifdef ENGINE_FAULTS
/* false, and logged, when spec is not understood. Threads: main. */
bool process_faults_parse(const char *spec, struct process_faults *faults);
/* Does this batch find no memory? faults may be NULL. Any thread. */
bool process_fault_oom(const struct process_faults *faults, const struct engine_batch *batch);
#endif

#endif
