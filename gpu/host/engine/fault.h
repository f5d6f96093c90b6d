/* gpu/host/engine/fault.h: what the host engine does for a fault on purpose (gpu/process/fault.h).
 * Test builds only. */
#ifndef GPU_HOST_ENGINE_FAULT_H
#define GPU_HOST_ENGINE_FAULT_H

#include "base/datatype.h"
#include "gpu/process/fault.h"

#ifdef ENGINE_FAULTS
/* Runs before each matrix; a is its first input. faults may be NULL. */
void host__fault_matrix(const struct process_faults *faults, enum precision precision,
                        const void *a);
#endif

#endif
