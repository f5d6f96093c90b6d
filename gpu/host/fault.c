/* gpu/host/fault.c: see fault.h. Threads: any, after the parse. */
#include "gpu/host/fault.h"

#ifdef ENGINE_FAULTS

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static bool parse_one(const char *name, size_t length, double value, struct host_faults *faults)
{
    if (length == 3 && memcmp(name, "oom", 3) == 0) {
        faults->oom_items = (int64_t)value;
    } else if (length == 6 && memcmp(name, "poison", 6) == 0) {
        faults->has_poison = true;
        faults->poison = value;
    } else if (length == 4 && memcmp(name, "hang", 4) == 0) {
        faults->has_hang = true;
        faults->hang = value;
    } else if (length == 4 && memcmp(name, "slow", 4) == 0) {
        faults->slow_us = (int64_t)value;
    } else {
        return false;
    }
    return true;
}

bool host__faults_parse(const char *spec, struct host_faults *faults)
{
    while (*spec) {
        const char *colon = strchr(spec, ':');
        if (!colon)
            return false;
        char *end;
        double value = strtod(colon + 1, &end);
        if (end == colon + 1 || (*end && *end != ','))
            return false;
        if (!parse_one(spec, (size_t)(colon - spec), value, faults))
            return false;
        spec = *end ? end + 1 : end;
    }
    return true;
}

bool host__fault_oom(const struct host_faults *faults, const struct engine_batch *batch)
{
    return faults && faults->oom_items > 0 &&
           (batch->item_count > faults->oom_items || batch->matrices > faults->oom_items);
}

void host__fault_matrix(const struct host_faults *faults, enum precision precision, const void *a)
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
