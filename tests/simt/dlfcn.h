/* tests/simt/dlfcn.h: in the place of the system's header: the engine finds the stand-in's cuBLAS
 * (cublas.c) where it looks for the toolkit's. */
#ifndef TESTS_SIMT_DLFCN_H
#define TESTS_SIMT_DLFCN_H

#include "simt.h"

#define RTLD_LAZY 1
#define RTLD_LOCAL 0

static inline void *dlopen(const char *name, int how)
{
    (void)how;
    return simt_library(name);
}

static inline void *dlsym(void *library, const char *name)
{
    (void)library;
    return simt_library_function(name);
}

#endif
