/* gpu/host/engine/fault.c: see fault.h. Threads: any. */
#include "gpu/host/engine/fault.h"

#ifdef ENGINE_FAULTS

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

void host__fault_matrix(const struct process_faults *faults, enum precision precision,
                        const void *a)
{
    if (!faults)
        return;
    if (a) {
        double first = precision == PRECISION_FP32 ? *(const float *)a : *(const double *)a;
        if (faults->has_poison && first == faults->poison)
            raise(SIGSEGV);
        while (faults->has_hang && first == faults->hang)
            pause();
    }
    if (faults->slow_us > 0) {
        uint64_t ns = (uint64_t)faults->slow_us * CLOCK_US;
        struct timespec time = {(time_t)(ns / CLOCK_S), (long)(ns % CLOCK_S)};
        nanosleep(&time, NULL);
    }
}

#endif
