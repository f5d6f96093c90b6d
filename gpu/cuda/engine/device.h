/* gpu/cuda/engine/device.h: the one device of this process: finding it, its name and model, its
 * view of the arena; and what its failures ask for.
 *
 * Threads: main finds and opens; the struct is constant afterwards.
 */
#ifndef GPU_CUDA_ENGINE_DEVICE_H
#define GPU_CUDA_ENGINE_DEVICE_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdint.h>

#include "gpu/engine.h"

/* The driver's cuStreamWriteValue32: the stream writes a word behind what it was given so far. */
typedef CUresult cuda__write_value(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                   unsigned flags);

struct cuda_device {
    int index, count;            /* among the visible ones */
    char name[ENGINE_NAME_MAX];  /* "cuda:0" */
    char model[ENGINE_NAME_MAX]; /* "NVIDIA H200" */
    cuda__write_value *write_value;
};

/* Looks for the device. What fails, here and below, is logged. */
enum engine_exit cuda_device_find(int index, struct cuda_device *device);
/* Makes its context, current to the calling thread. Blocks for some 0.3 s. */
enum engine_exit cuda_device_open(struct cuda_device *device);
/* Makes the open device the calling thread's too. */
enum engine_exit cuda_device_enter(const struct cuda_device *device);

/* Pins the arena and lends its address as the device sees it, for the life of the process. Blocks
 * for some 0.3 s a GiB the first time, 0.1 s a GiB after that. */
enum engine_exit cuda_device_pin(unsigned char *arena, uint64_t bytes, unsigned char **d_arena);

/* Prints the visible devices to stdout, one a line. */
enum engine_exit cuda_device_list(void);

#endif
