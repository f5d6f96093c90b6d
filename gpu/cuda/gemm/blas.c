/* gpu/cuda/gemm/blas.c: see blas.h. Cost: the library's pages are mapped, 0.6 GB of them; its
 * kernels are loaded when they are first used (see device.c).
 */
#include "gpu/cuda/gemm/blas.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "base/log.h"

#define TEXT_OF(macro) #macro
#define NAME_OF(version) "libcublas.so." TEXT_OF(version)

/* The functions of 64-bit sizes, by the names that the header's macros hide. */
static const struct {
    const char *name;
    size_t at;
} functions[] = {
    {"cublasCreate_v2", offsetof(struct cuda__blas, create)},
    {"cublasDestroy_v2", offsetof(struct cuda__blas, destroy)},
    {"cublasSetStream_v2", offsetof(struct cuda__blas, set_stream)},
    {"cublasSetWorkspace_v2", offsetof(struct cuda__blas, set_workspace)},
    {"cublasSetMathMode", offsetof(struct cuda__blas, set_math_mode)},
    {"cublasSetPointerMode_v2", offsetof(struct cuda__blas, set_pointer_mode)},
    {"cublasSgemm_v2_64", offsetof(struct cuda__blas, sgemm)},
    {"cublasDgemm_v2_64", offsetof(struct cuda__blas, dgemm)},
    {"cublasGemmEx_64", offsetof(struct cuda__blas, gemm_ex)},
};

bool cuda__blas_open(struct cuda__blas *blas)
{
    void *library = dlopen(NAME_OF(CUBLAS_VER_MAJOR), RTLD_LAZY | RTLD_LOCAL);
    const char *missing = library ? NULL : NAME_OF(CUBLAS_VER_MAJOR);
    for (size_t i = 0; !missing && i < sizeof functions / sizeof functions[0]; i++) {
        void *function = dlsym(library, functions[i].name);
        memcpy((char *)blas + functions[i].at, &function, sizeof function);
        missing = function ? NULL : functions[i].name;
    }
    if (missing)
        log_line(LOG_WARNING, "cuBLAS is missing: large products take the engine's own kernels",
                 "missing", LOG_STR, missing, NULL);
    return !missing;
}
