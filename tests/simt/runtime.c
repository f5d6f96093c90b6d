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

struct CUstream_st {
    int priority;
};

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

/* What a call returns: the status it found, unless the context is lost. */
static cudaError_t say(cudaError_t status)
{
    cudaError_t before = simt_lost();
    status = before != cudaSuccess ? before : status;
    if (status != cudaSuccess)
        last_error = status;
    return status;
}

static cudaError_t say_valid(int is_valid)
{
    return say(is_valid ? cudaSuccess : cudaErrorInvalidValue);
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
    cudaError_t status = say(last_error);
    last_error = cudaSuccess;
    return status;
}

/* ---- The device ---- */

static int multiprocessors = 1, shared_most = SIMT_SHARED_MAX;

void simt_set_multiprocessors(int count)
{
    multiprocessors = count;
}

void simt_set_shared(int bytes)
{
    shared_most = bytes;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return say(cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    *properties = (struct cudaDeviceProp){.name = "SIMT stand-in",
                                          .totalGlobalMem = MEMORY_BYTES,
                                          .sharedMemPerBlock = SIMT_SHARED_USUAL,
                                          .sharedMemPerBlockOptin = (size_t)shared_most,
                                          .sharedMemPerMultiprocessor = (size_t)shared_most + 1024,
                                          .major = 9,
                                          .multiProcessorCount = multiprocessors};
    return say(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaSetDevice(int device)
{
    return say(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return say(cudaSuccess);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    if (device != 0)
        return say(cudaErrorInvalidDevice);
    if (attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin)
        *value = shared_most;
    else if (attribute == cudaDevAttrMultiProcessorCount)
        *value = multiprocessors;
    else if (attribute == cudaDevAttrClusterLaunch)
        *value = 1;
    else if (attribute == cudaDevAttrComputeCapabilityMajor)
        *value = 9;
    else
        return say(cudaErrorInvalidValue);
    return say(cudaSuccess);
}

cudaError_t cudaDeviceSynchronize(void)
{
    return say(cudaSuccess);
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
    return say(cudaSuccess);
}

static CUresult write_value(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
    (void)flags;
    if (say_valid(stream != NULL) == cudaSuccess)
        atomic_store((_Atomic uint32_t *)(uintptr_t)address, value);
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
    return say(cudaSuccess);
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
        return say(simt_lost());
    *memory = bytes < MEMORY_BYTES && !atomic_load(&memory_full)
                  ? aligned_alloc(ALIGN_BYTES, bytes / ALIGN_BYTES * ALIGN_BYTES + ALIGN_BYTES)
                  : NULL;
    if (!*memory)
        return say(cudaErrorMemoryAllocation);
    memset(*memory, 0xff, bytes); /* what is not written is NaN */
    atomic_fetch_add(&allocations, 1);
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    if (memory)
        atomic_fetch_sub(&allocations, 1);
    free(memory);
    return say(cudaSuccess);
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
    return say(cudaSuccess);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    (void)kind;
    if (simt_lost() == cudaSuccess && bytes > 0)
        memcpy(to, from, bytes);
    return say(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)stream;
    return cudaMemcpy(to, from, bytes, kind);
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    if (simt_lost() == cudaSuccess && bytes > 0)
        memset(to, value, bytes);
    return say(cudaSuccess);
}

/* ---- Streams: all is done at once ---- */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    (void)flags;
    *stream = calloc(1, sizeof **stream);
    if (!*stream)
        return say(cudaErrorMemoryAllocation);
    (*stream)->priority = priority;
    return say(cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    free(stream);
    return say_valid(stream != NULL);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    (void)stream;
    return say(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    return say(cudaSuccess);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)stream;
    return say_valid(event != NULL && flags == 0);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    *event = malloc(1);
    return say(*event && flags == cudaEventDisableTiming ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    return say_valid(event != NULL);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void)stream;
    return say_valid(event != NULL);
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
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
        value > shared_most)
        return say(cudaErrorInvalidValue);
    pthread_mutex_lock(&allowed_lock);
    size_t *found = find_allowed(kernel);
    if (found)
        *found = (size_t)value;
    pthread_mutex_unlock(&allowed_lock);
    return say(found ? cudaSuccess : cudaErrorMemoryAllocation);
}
