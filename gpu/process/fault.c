/* gpu/process/fault.c: see fault.h. Threads: any, after the parse. */
#include "gpu/process/fault.h"

#ifdef ENGINE_FAULTS

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static bool parse_one(const char *name, size_t length, double value, struct process_faults *faults)
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

static bool parse_all(const char *spec, struct process_faults *faults)
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

bool process_faults_parse(const char *spec, struct process_faults *faults)
{
    bool good = parse_all(spec, faults);
    if (!good)
        log_line(LOG_ERROR, "bad option: --fault takes oom:, poison:, hang:, slow:", "value",
                 LOG_STR, spec, NULL);
    return good;
}

bool process_fault_oom(const struct process_faults *faults, const struct engine_batch *batch)
{
    return faults && faults->oom_items > 0 &&
           (batch->item_count > faults->oom_items || batch->matrices > faults->oom_items);
}

#endif
