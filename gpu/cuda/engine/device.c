/* gpu/cuda/engine/device.c: see device.h. */
#include "gpu/cuda/engine/device.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "gpu/cuda/base/load.h"
#include "gpu/cuda/base/failed.h"
#include "gpu/cuda/base/status.h"

#define POPULATE_THREADS 8
#define PAGE_BYTES 4096
#define CAPABILITY_MIN 9 /* of lu's clusters and of launches that overlap */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older C libraries do not name it */
#endif

/* Kernels are loaded as load.h says: not all of cuBLAS's with the context. And each stream has a
 * hardware queue of its own, of which there are 8 unless one asks for more, as many as the lanes'
 * streams alone: streams that share one wait for each other, so that a kernel that hangs would stop
 * batches of the other lanes. Must come before the process's first CUDA call. */
static cudaError_t count_devices(int *count)
{
    setenv("CUDA_MODULE_LOADING", "LAZY", 0);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    return cudaGetDeviceCount(count);
}

enum engine_exit cuda_device_find(int index, struct cuda_device *device)
{
    struct cudaDeviceProp properties;
    *device = (struct cuda_device){.index = index};
    cudaError_t status = count_devices(&device->count);
    if (cuda_verdict_of(status) == CUDA_DEVICE_ABSENT) {
        log_line(LOG_INFO, "no NVIDIA device, or no driver for it", "status", LOG_STR,
                 cudaGetErrorName(status), NULL);
        return ENGINE_EXIT_DEVICE_ABSENT;
    }
    if (status != cudaSuccess)
        return cuda__failed(status, "look for devices");
    if (index >= device->count) {
        log_line(LOG_ERROR, "there is no such device", "device", LOG_I64, (int64_t)index, "devices",
                 LOG_I64, (int64_t)device->count, NULL);
        return ENGINE_EXIT_DEVICE_ABSENT;
    }
    status = cudaGetDeviceProperties(&properties, index);
    if (status != cudaSuccess)
        return cuda__failed(status, "ask for the device's properties");
    if (properties.major < CAPABILITY_MIN) {
        log_line(
            LOG_ERROR, "the device has no thread-block clusters: compute capability 9.0 is needed",
            "device", LOG_STR, properties.name, "major", LOG_I64, (int64_t)properties.major, NULL);
        return ENGINE_EXIT_DEVICE_OUT;
    }
    snprintf(device->name, sizeof device->name, "cuda:%d", index);
    snprintf(device->model, sizeof device->model, "%.*s", ENGINE_NAME_MAX - 1, properties.name);
    return ENGINE_EXIT_OK;
}

/* The runtime has no such call; the driver's is asked for by name, so that nothing is linked with
 * it. */
static cudaError_t find_write_value(cuda__write_value **function)
{
    enum cudaDriverEntryPointQueryResult found;
    void *entry = NULL;
    cudaError_t status = cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &entry, 12000,
                                                          cudaEnableDefault, &found);
    memcpy(function, &entry, sizeof entry);
    return status == cudaSuccess && !entry ? cudaErrorCallRequiresNewerDriver : status;
}

enum engine_exit cuda_device_open(struct cuda_device *device)
{
    enum engine_exit how = cuda_device_enter(device);
    if (how != ENGINE_EXIT_OK)
        return how;
    cudaError_t status = find_write_value(&device->write_value);
    if (status != cudaSuccess)
        return cuda__failed(status, "ask for a function");
    status = cuda__load_kernels();
    return status == cudaSuccess ? ENGINE_EXIT_OK : cuda__failed(status, "load the kernels");
}

enum engine_exit cuda_device_enter(const struct cuda_device *device)
{
    cudaError_t status = cudaSetDevice(device->index);
    return status == cudaSuccess ? ENGINE_EXIT_OK : cuda__failed(status, "open the device");
}

/* A part of the arena, for one thread. */
struct part {
    unsigned char *start;
    size_t bytes;
};

static void *populate_part(void *context)
{
    const struct part *part = context;
    madvise(part->start, part->bytes, MADV_POPULATE_WRITE);
    return NULL;
}

/* Has the arena's pages made by several threads at once. Pinning would make them too, one after the
 * other: 8 GiB of untouched memory took 4.5 s to pin, and 1.8 s + 0.3 s so (H200's host,
 * 2026-11-21). Where it fails, pinning does it. */
static void populate(unsigned char *arena, uint64_t bytes)
{
    pthread_t threads[POPULATE_THREADS];
    struct part parts[POPULATE_THREADS];
    int started = 0;
    uint64_t step = bytes / POPULATE_THREADS / PAGE_BYTES * PAGE_BYTES;
    for (int i = 0; i < POPULATE_THREADS; i++) {
        bool is_last = i == POPULATE_THREADS - 1;
        uint64_t from = (uint64_t)i * step;
        parts[i] = (struct part){arena + from, (size_t)(is_last ? bytes - from : step)};
    }
    for (; started < POPULATE_THREADS; started++) {
        if (pthread_create(&threads[started], NULL, populate_part, &parts[started]) != 0)
            break;
    }
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

enum engine_exit cuda_device_pin(unsigned char *arena, uint64_t bytes, unsigned char **d_arena)
{
    void *seen = NULL;
    populate(arena, bytes);
    cudaError_t status =
        cudaHostRegister(arena, (size_t)bytes, cudaHostRegisterMapped | cudaHostRegisterPortable);
    if (status != cudaSuccess)
        return cuda__failed(status, "pin the arena");
    status = cudaHostGetDevicePointer(&seen, arena, 0);
    if (status != cudaSuccess)
        return cuda__failed(status, "find the arena from the device");
    *d_arena = seen;
    return ENGINE_EXIT_OK;
}

enum engine_exit cuda_device_list(void)
{
    int count = 0;
    cudaError_t status = count_devices(&count);
    if (cuda_verdict_of(status) == CUDA_DEVICE_ABSENT) {
        printf("no NVIDIA device, or no driver for it (%s)\n", cudaGetErrorName(status));
        return ENGINE_EXIT_DEVICE_ABSENT;
    }
    for (int i = 0; status == cudaSuccess && i < count; i++) {
        struct cudaDeviceProp properties;
        status = cudaGetDeviceProperties(&properties, i);
        if (status == cudaSuccess)
            printf("cuda:%d  %s, %" PRIu64 " MiB, compute capability %d.%d\n", i, properties.name,
                   (uint64_t)(properties.totalGlobalMem >> 20), properties.major, properties.minor);
    }
    return status == cudaSuccess ? ENGINE_EXIT_OK : cuda__failed(status, "look for devices");
}
