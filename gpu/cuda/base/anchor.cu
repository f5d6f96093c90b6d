/* gpu/cuda/base/anchor.cu: the list of load.h. Written before main by each file's initialisation,
 * on one thread, and read only. */
#include "gpu/cuda/base/load.h"

static const struct cuda__anchor *newest;

cuda__anchor::cuda__anchor(const void *of) : kernel(of), next(newest)
{
    newest = this;
}

const void *cuda__anchor_at(int index)
{
    const struct cuda__anchor *anchor = newest;
    for (int i = 0; i < index && anchor; i++)
        anchor = anchor->next;
    return anchor ? anchor->kernel : nullptr;
}
