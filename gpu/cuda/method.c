/* gpu/cuda/method.c: see method.h. */
#include "gpu/cuda/method.h"

#include <stddef.h>
#include <string.h>

static const struct cuda_method table[] = {
    {.name = "lu",
     .kernel = "cuda lu fused",
     .n_max = CUDA_SMALL_N_MAX,
     .result = 0,
     .info = 1,
     .extra = 2,
     .launch = cuda_inverse_small,
     .mend = cuda_mend_small},
    {.name = "lu_factor",
     .kernel = "cuda lu_factor fused",
     .n_max = CUDA_SMALL_N_MAX,
     .result = 0,
     .extra = 1,
     .info = 2,
     .launch = cuda_factor_small},
};

const struct cuda_method *cuda_method_at(uint32_t index)
{
    for (size_t i = 0; index < (uint32_t)method_count() && i < sizeof table / sizeof table[0];
         i++) {
        if (strcmp(table[i].name, method_at((int)index)->name) == 0)
            return &table[i];
    }
    return NULL;
}
