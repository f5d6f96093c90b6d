/* gpu/host/fault.h: faults on purpose, for tests of the front's supervision. Test builds only
 * (-DENGINE_FAULTS); otherwise nothing of it is compiled in.
 *
 * SPEC is a list, "oom:ITEMS,poison:VALUE,hang:VALUE,slow:US":
 *   oom     a batch of more than ITEMS items or matrices answers ENGINE_OUT_OF_MEMORY
 *   poison  a matrix whose first number equals VALUE kills the process (SIGSEGV)
 *   hang    such a matrix stops its worker for ever
 *   slow    every matrix takes US microseconds longer
 */
#ifndef GPU_HOST_FAULT_H
#define GPU_HOST_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/datatype.h"
#include "gpu/engine.h"

struct host_faults {
    int64_t oom_items; /* 0: none */
    bool has_poison, has_hang;
    double poison, hang;
    int64_t slow_us;
};

#ifdef ENGINE_FAULTS
/* false when spec is not understood. */
bool host__faults_parse(const char *spec, struct host_faults *faults);
/* Does this batch find no memory? */
bool host__fault_oom(const struct host_faults *faults, const struct engine_batch *batch);
/* Runs before each matrix; a is its first input. faults may be NULL. */
void host__fault_matrix(const struct host_faults *faults, enum precision precision, const void *a);
#endif

#endif
