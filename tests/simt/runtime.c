/* tests/simt/runtime.c: the runtime's calls in the SIMT stand-in (simt.h). Threads: any. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"
#include "cuda_runtime_api.h"
#include "simt.h"

#define ALIGN_BYTES 256
#define MEMORY_BYTES ((size_t)16 << 30)
#define KERNELS_MAX 1024

static _Atomic int lost;
static _Thread_local cudaError_t last_error;
static _Atomic int64_t allocations;
static atomic_bool memory_full;

static struct {
    const void *kernel;
    size_t bytes;
} allowed[KERNELS_MAX];
static int allowed_count;
static pthread_mutex_t allowed_lock = PTHREAD_MUTEX_INITIALIZER;

cudaError_t simt_lost(void)
{
    return (cudaError_t)atomic_load(&lost);
}

void simt_lose(cudaError_t status)
{
    atomic_store(&lost, (int)status);
}

int64_t simt_allocations(void)
{
    return atomic_load(&allocations);
}

void simt_fill_memory(bool full)
{
    atomic_store(&memory_full, full);
}

cudaError_t simt_say(cudaError_t status)
{
    cudaError_t before = simt_lost();
    status = before != cudaSuccess ? before : status;
    if (status != cudaSuccess)
        last_error = status;
    return status;
}

static cudaError_t say_valid(int is_valid)
{
    return simt_say(is_valid ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- Errors ---- */

const char *cudaGetErrorName(cudaError_t status)
{
    switch (status) {
#define SIMT_ERROR(name, number)                                                                   \
    case name:                                                                                     \
        return #name;
#include "errors.inc"
#undef SIMT_ERROR
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t status)
{
    return *simt_report() ? simt_report() : cudaGetErrorName(status);
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t status = simt_say(last_error);
    last_error = cudaSuccess;
    return status;
}

/* ---- The device ---- */

static int multiprocessors = 1, shared_max = SIMT_SHARED_MAX;

void simt_set_multiprocessors(int count)
{
    multiprocessors = count;
}

void simt_set_shared(int bytes)
{
    shared_max = bytes;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return simt_say(cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    *properties = (struct cudaDeviceProp){.name = "SIMT stand-in",
                                          .totalGlobalMem = MEMORY_BYTES,
                                          .sharedMemPerBlock = SIMT_SHARED_USUAL,
                                          .sharedMemPerBlockOptin = (size_t)shared_max,
                                          .sharedMemPerMultiprocessor = (size_t)shared_max + 1024,
                                          .major = 9,
                                          .multiProcessorCount = multiprocessors};
    return simt_say(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaSetDevice(int device)
{
    return simt_say(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return simt_say(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    if (device != 0)
        return simt_say(cudaErrorInvalidDevice);
    if (attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin)
        *value = shared_max;
    else if (attribute == cudaDevAttrMultiProcessorCount)
        *value = multiprocessors;
    else if (attribute == cudaDevAttrClusterLaunch)
        *value = 1;
    else if (attribute == cudaDevAttrComputeCapabilityMajor)
        *value = 9;
    else
        return simt_say(cudaErrorInvalidValue);
    return simt_say(cudaSuccess);
}

cudaError_t cudaDeviceReset(void)
{
    simt_lose(cudaSuccess);
    last_error = cudaSuccess;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return simt_say(cudaSuccess);
}

/* A value on its way. */
struct value {
    CUdeviceptr address;
    cuuint32_t value;
};

static void put_value(const void *context)
{
    const struct value *of = context;
    if (simt_lost() == cudaSuccess)
        atomic_store((_Atomic uint32_t *)(uintptr_t)of->address, of->value);
}

static CUresult write_value(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    (void)flags;
    const struct value of = {address, value};
    if (say_valid(stream != NULL) == cudaSuccess)
        simt_put(stream, put_value, &of, sizeof of);
    return (CUresult)simt_lost();
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found)
{
    (void)version;
    (void)flags;
    int is_known = strcmp(name, "cuStreamWriteValue32") == 0;
    *function = is_known ? (void *)write_value : NULL;
    *found = is_known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return simt_say(cudaSuccess);
}

/* Kernels are functions here, and always loaded. */
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *kernel)
{
    *function = NULL;
    return say_valid(kernel != NULL);
}

/* ---- Memory ---- */

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    if (simt_lost() != cudaSuccess)
        return simt_say(simt_lost());
    *memory = bytes < MEMORY_BYTES && !atomic_load(&memory_full)
                  ? aligned_alloc(ALIGN_BYTES, bytes / ALIGN_BYTES * ALIGN_BYTES + ALIGN_BYTES)
                  : NULL;
    if (!*memory)
        return simt_say(cudaErrorMemoryAllocation);
    memset(*memory, 0xff, bytes); /* what is not written is NaN */
    atomic_fetch_add(&allocations, 1);
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    simt_await_all();
    if (memory)
        atomic_fetch_sub(&allocations, 1);
    free(memory);
    return simt_say(cudaSuccess);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    (void)flags;
    return cudaMalloc(memory, bytes);
}

cudaError_t cudaFreeHost(void *memory)
{
    return cudaFree(memory);
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags)
{
    (void)flags;
    return say_valid(memory && bytes > 0);
}

cudaError_t cudaHostGetDevicePointer(void **seen, void *memory, unsigned flags)
{
    *seen = memory;
    return say_valid(memory && flags == 0);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = *total = MEMORY_BYTES;
    return simt_say(cudaSuccess);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    (void)kind;
    if (simt_lost() == cudaSuccess && bytes > 0)
        memcpy(to, from, bytes);
    return simt_say(cudaSuccess);
}

/* A copy on its way. */
struct copy {
    void *to;
    const void *from;
    size_t bytes;
};

static void make_copy(const void *context)
{
    const struct copy *of = context;
    (void)cudaMemcpy(of->to, of->from, of->bytes, cudaMemcpyDefault);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)kind;
    const struct copy of = {to, from, bytes};
    simt_put(stream, make_copy, &of, sizeof of);
    return simt_say(cudaSuccess);
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    if (simt_lost() == cudaSuccess && bytes > 0)
        memset(to, value, bytes);
    return simt_say(cudaSuccess);
}

/* ---- Kernels ---- */

cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *kernel,
                                           const cudaLaunchConfig_t *config)
{
    unsigned blocks = 1;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
            blocks = config->attrs[i].val.clusterDim.x;
    }
    /* Of a single multiprocessor, which there is none of, small ones. */
    if (multiprocessors == 1)
        *clusters = blocks <= 4 ? 1 : 0;
    else
        *clusters = blocks <= SIMT_CLUSTER_MAX ? multiprocessors / (int)blocks : 0;
    return say_valid(kernel != NULL);
}

/* The kernel's row, or the first free one, or NULL. With the lock. */
static size_t *find_allowed(const void *kernel)
{
    for (int i = 0; i < allowed_count; i++) {
        if (allowed[i].kernel == kernel)
            return &allowed[i].bytes;
    }
    if (allowed_count == KERNELS_MAX)
        return NULL;
    allowed[allowed_count].kernel = kernel;
    allowed[allowed_count].bytes = SIMT_SHARED_USUAL;
    return &allowed[allowed_count++].bytes;
}

size_t simt_shared_allowed(const void *kernel)
{
    pthread_mutex_lock(&allowed_lock);
    const size_t *found = find_allowed(kernel);
    size_t bytes = found ? *found : SIMT_SHARED_USUAL;
    pthread_mutex_unlock(&allowed_lock);
    return bytes;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
        return say_valid(value == 0 || value == 1);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > shared_max)
        return simt_say(cudaErrorInvalidValue);
    pthread_mutex_lock(&allowed_lock);
    size_t *found = find_allowed(kernel);
    if (found)
        *found = (size_t)value;
    pthread_mutex_unlock(&allowed_lock);
    return simt_say(found ? cudaSuccess : cudaErrorMemoryAllocation);
}
