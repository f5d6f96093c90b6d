/* gpu/cuda/base/load.c: see load.h. The runtime has no such calls; the driver's are asked for by
 * name, so that nothing is linked with it. */
#include "gpu/cuda/base/load.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SINCE 12040 /* the release that has all of them */

struct calls {
    CUresult (*module_of)(CUmodule *module, CUfunction function);
    CUresult (*count)(unsigned *count, CUmodule module);
    CUresult (*list)(CUfunction *functions, unsigned count, CUmodule module);
    CUresult (*load)(CUfunction function);
};

static const struct {
    const char *name;
    size_t at;
} rows[] = {
    {"cuFuncGetModule", offsetof(struct calls, module_of)},
    {"cuModuleGetFunctionCount", offsetof(struct calls, count)},
    {"cuModuleEnumerateFunctions", offsetof(struct calls, list)},
    {"cuFuncLoad", offsetof(struct calls, load)},
};

static bool find(struct calls *calls)
{
    bool found = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum cudaDriverEntryPointQueryResult result;
        void *entry = NULL;
        cudaError_t status = cudaGetDriverEntryPointByVersion(rows[i].name, &entry, SINCE,
                                                              cudaEnableDefault, &result);
        memcpy((char *)calls + rows[i].at, &entry, sizeof entry);
        found = found && status == cudaSuccess && entry;
    }
    (void)cudaGetLastError();
    return found;
}

/* The runtime's numbers are the driver's. */
static cudaError_t load_file(const struct calls *calls, const void *kernel)
{
    cudaFunction_t anchor = NULL;
    CUmodule module = NULL;
    unsigned count = 0;
    cudaError_t status = cudaGetFuncBySymbol(&anchor, kernel);
    if (status == cudaSuccess)
        status = (cudaError_t)calls->module_of(&module, anchor);
    if (status == cudaSuccess)
        status = (cudaError_t)calls->count(&count, module);
    if (status != cudaSuccess || count == 0)
        return status;
    CUfunction *functions = calloc(count, sizeof *functions);
    if (!functions)
        return cudaErrorMemoryAllocation;
    status = (cudaError_t)calls->list(functions, count, module);
    for (unsigned i = 0; status == cudaSuccess && i < count; i++)
        status = (cudaError_t)calls->load(functions[i]);
    free(functions);
    return status;
}

cudaError_t cuda__load_kernels(void)
{
    struct calls calls = {0};
    const void *kernel;
    cudaError_t status = cudaSuccess;
    if (!find(&calls))
        return cudaSuccess;
    for (int i = 0; status == cudaSuccess && (kernel = cuda__anchor_at(i)); i++)
        status = load_file(&calls, kernel);
    return status;
}
