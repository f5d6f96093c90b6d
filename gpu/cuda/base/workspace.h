/* gpu/cuda/base/workspace.h: a walk through a workspace that is cut into pieces, each aligned to
 * CUDA_WORKSPACE_ALIGN. Host code; any thread.
 */
#ifndef GPU_CUDA_BASE_WORKSPACE_H
#define GPU_CUDA_BASE_WORKSPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/checked.h"
#include "gpu/cuda/base/call.h"

struct cuda__walk {
    int64_t bytes; /* so far */
    bool fits;     /* it could be counted */
};

/* The next piece: count times each * bytes. Returns where it begins. */
static inline int64_t cuda__walk_take(struct cuda__walk *walk, int64_t count, int64_t each,
                                      int64_t bytes)
{
    int64_t start = walk->bytes, more = 0;
    walk->fits = walk->fits && checked_mul(count, each, &more) && checked_mul(more, bytes, &more) &&
                 checked_round_up(more, CUDA_WORKSPACE_ALIGN, &more) &&
                 checked_add(walk->bytes, more, &walk->bytes);
    return start;
}

#endif
