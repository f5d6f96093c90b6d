/* gpu/host/base/progress.c: see progress.h. */
#include "gpu/host/base/progress.h"

#include <stddef.h>

#include "gpu/process/batch.h"

/* Up to so many parts in all. */
static void raise_to(struct host_progress *progress, uint64_t parts)
{
    if (parts <= progress->reported)
        return;
    process_batch_advance(progress->batch, parts - progress->reported);
    progress->reported = parts;
}

void host_progress_report(struct host_progress *progress, int64_t done, int64_t whole)
{
    if (!progress || done <= 0 || whole <= 0)
        return;
    double share = (double)done / (double)whole * METHOD_PROGRESS_WHOLE;
    raise_to(progress, share < METHOD_PROGRESS_WHOLE ? (uint64_t)share : METHOD_PROGRESS_WHOLE - 1);
}

void host__progress_end(struct host_progress *progress, int64_t matrices)
{
    raise_to(progress, (uint64_t)matrices * METHOD_PROGRESS_WHOLE);
}
