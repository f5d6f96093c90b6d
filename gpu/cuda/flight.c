/* gpu/cuda/flight.c: see flight.h. */
#include "gpu/cuda/flight.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpu/cuda/fault.h"
#include "gpu/cuda/status.h"
#include "gpu/process/batch.h"

/* A table of at most so many items is read across the bus by the kernels. For one 8x8 that saves
 * some 2 us of 17; at 256 items the copy to the device saves 5 us of 37, at 1024 30 of 94 (H200,
 * 2026-11-21). */
#define NEAR_ITEMS_MAX 64
/* Up to so many bytes of matrices a batch ends with a word: seen some 1 us sooner than the stream
 * says so, and up to 10 us at 1024 matrices of 8x8. Beyond, with batches in flight side by side,
 * the word costs some 6% of the rate (32x32, 512 or 1024 a batch), and the stream is asked instead.
 */
#define WORD_BYTES_MAX (INT64_C(2) << 20)
/* How often the stream is asked while its word has not changed. */
#define QUERY_NS (100 * CLOCK_US)

struct cuda_flight_memory {
    _Alignas(64) _Atomic uint32_t word; /* written by the device, as is doubtful */
    uint32_t doubtful;
    _Alignas(64) struct cuda_item items[ENGINE_BATCH_ITEMS];
};

enum engine_exit cuda_flight_create(struct cuda_flight *flight, const struct cuda_device *device,
                                    int priority, unsigned char *d_arena,
                                    const struct process_faults *faults)
{
    void *memory = NULL, *seen = NULL, *table = NULL;
    *flight = (struct cuda_flight){.device = device, .d_arena = d_arena, .faults = faults};
    cudaError_t status =
        cudaStreamCreateWithPriority(&flight->stream, cudaStreamNonBlocking, priority);
    if (status == cudaSuccess)
        status = cudaHostAlloc(&memory, sizeof *flight->h_memory, cudaHostAllocMapped);
    if (status == cudaSuccess)
        status = cudaHostGetDevicePointer(&seen, memory, 0);
    if (status == cudaSuccess)
        status = cudaMalloc(&table, sizeof flight->h_memory->items);
    if (status != cudaSuccess)
        return cuda__failed(status, "prepare for batches");
    flight->h_memory = memory;
    flight->seen = seen;
    flight->d_items = table;
    memset(memory, 0, sizeof *flight->h_memory);
    return ENGINE_EXIT_OK;
}

/* ---- Launch ---- */

/* NULL: absent, or unwanted. */
static void *locate(const struct cuda_flight *flight, const struct engine_tensor *tensor)
{
    return tensor->region == ENGINE_REGION_ARENA ? flight->d_arena + tensor->offset_bytes : NULL;
}

/* Writes the table of items, from 40 bytes of each of the batch's. false: an item lacks a tensor
 * that is always there. */
static bool lay_out(struct cuda_flight *flight, const struct engine_batch *batch)
{
    const struct cuda_method *method = flight->method;
    int64_t matrices = 0;
    bool complete = true;
    for (uint32_t i = 0; i < batch->item_count; i++) {
        const struct engine_item *from = &batch->items[i];
        struct cuda_item *to = &flight->h_memory->items[i];
        *to = (struct cuda_item){.a = locate(flight, &from->inputs[0]),
                                 .result = locate(flight, &from->outputs[method->result]),
                                 .extra = locate(flight, &from->outputs[method->extra]),
                                 .info = locate(flight, &from->outputs[method->info]),
                                 .first = matrices};
        complete = complete && to->a && to->info && from->count >= 1;
        matrices += from->count;
    }
    flight->work = (struct cuda_batch){.items = flight->seen->items,
                                       .item_count = batch->item_count,
                                       .matrices = matrices,
                                       .doubtful = &flight->seen->doubtful};
    return complete;
}

/* Moves the table to the device where that pays. */
static cudaError_t bring_table(struct cuda_flight *flight)
{
    struct cuda_batch *work = &flight->work;
    bool searched = work->item_count > 1 && work->item_count < work->matrices;
    if (!searched && work->item_count <= NEAR_ITEMS_MAX)
        return cudaSuccess;
    work->items = flight->d_items;
    return cudaMemcpyAsync(flight->d_items, flight->h_memory->items,
                           (size_t)work->item_count * sizeof *flight->d_items,
                           cudaMemcpyHostToDevice, flight->stream);
}

static bool ends_with_word(const struct engine_batch *batch, int64_t matrices)
{
    int64_t matrix_bytes = batch->n * batch->n * precision_bytes((enum precision)batch->precision);
    return matrices <= WORD_BYTES_MAX / matrix_bytes;
}

/* Puts a kernel into the stream, and behind it the word that says it is over. */
static cudaError_t put(struct cuda_flight *flight, cuda_launcher *launch)
{
    const struct engine_batch *batch = flight->batch;
    cudaError_t status =
        launch((enum precision)batch->precision, batch->n, &flight->work, flight->stream);
    if (status != cudaSuccess || !flight->has_word)
        return status;
    CUdeviceptr word = (CUdeviceptr)(uintptr_t)&flight->seen->word;
    CUresult result = flight->device->write_value(flight->stream, word, ++flight->awaited,
                                                  CU_STREAM_WRITE_VALUE_DEFAULT);
    /* The runtime's numbers are the driver's. */
    return (cudaError_t)result;
}

#ifdef ENGINE_FAULTS
/* Before the batch's own kernel, in the same stream. */
static cudaError_t put_fault(const struct cuda_flight *flight)
{
    const struct process_faults *faults = flight->faults;
    const struct engine_batch *batch = flight->batch;
    if (!faults)
        return cudaSuccess;
    struct cuda_fault fault = {.poison = faults->has_poison ? faults->poison : (double)NAN,
                               .hang = faults->has_hang ? faults->hang : (double)NAN,
                               .slow_ns = faults->slow_us * (int64_t)CLOCK_US};
    return cuda__fault_launch(&fault, (enum precision)batch->precision, batch->n, &flight->work,
                              flight->stream);
}
#endif

static cudaError_t start(struct cuda_flight *flight)
{
    flight->h_memory->doubtful = 0;
    flight->has_word = ends_with_word(flight->batch, flight->work.matrices);
    cudaError_t status = bring_table(flight);
#ifdef ENGINE_FAULTS
    if (status == cudaSuccess)
        status = put_fault(flight);
#endif
    return status == cudaSuccess ? put(flight, flight->method->launch) : status;
}

static void finish(struct cuda_flight *flight, enum engine_status status)
{
    struct engine_batch *batch = flight->batch;
    flight->state = CUDA_FLIGHT_IDLE;
    flight->batch = NULL;
    batch->status = status;
    if (status != ENGINE_OK)
        batch->kernel[0] = 0;
    batch->finished_ns = clock_now_ns();
    /* Sequentially consistent: the front's sleep is decided by this and front_waits together. */
    atomic_store(&batch->state, ENGINE_BATCH_DONE);
}

/* A failed launch, which has left the device as it was: the batch ends, and the engine goes on. */
static void give_up(struct cuda_flight *flight, cudaError_t status)
{
    enum cuda_verdict verdict = cuda_verdict_of(status);
    if (cuda_verdict_is_fatal(verdict))
        cuda__end(status, "launch a batch");
    cuda__failed(status, "launch a batch");
    (void)cudaGetLastError();
    /* The table may be on its way still, and its place is used again. */
    cudaError_t rest = cudaStreamSynchronize(flight->stream);
    if (rest != cudaSuccess)
        cuda__end(rest, "launch a batch");
    finish(flight, cuda_verdict_status(verdict));
}

bool cuda_flight_launch(struct cuda_flight *flight, struct engine_batch *batch)
{
    assert(flight->state == CUDA_FLIGHT_IDLE);
    flight->queried_ns = batch->started_ns = clock_now_ns();
    atomic_store_explicit(&batch->state, ENGINE_BATCH_RUNNING, memory_order_release);
    flight->state = CUDA_FLIGHT_RUNNING;
    flight->batch = batch;
    flight->method = cuda_method_at(batch->method);
    int64_t n_max = flight->method ? flight->method->n_max : 0;
    enum engine_status refused = process_batch_check(batch, n_max, flight->faults);
    if (refused == ENGINE_OK && !lay_out(flight, batch))
        refused = ENGINE_UNSUPPORTED;
    if (refused != ENGINE_OK) {
        finish(flight, refused);
        return false;
    }
    cudaError_t status = start(flight);
    if (status != cudaSuccess) {
        give_up(flight, status);
        return false;
    }
    snprintf(batch->kernel, sizeof batch->kernel, "%s %s n=%d", flight->method->kernel,
             batch->precision == PRECISION_FP32 ? "f32" : "f64", (int)batch->n);
    return true;
}

/* ---- Completion ---- */

static bool is_over(struct cuda_flight *flight, uint64_t now_ns)
{
    uint32_t word = atomic_load_explicit(&flight->h_memory->word, memory_order_acquire);
    if (flight->has_word && word == flight->awaited)
        return true;
    if (flight->has_word && now_ns < flight->queried_ns + QUERY_NS)
        return false;
    flight->queried_ns = now_ns;
    cudaError_t status = cudaStreamQuery(flight->stream);
    enum cuda_verdict verdict = cuda_verdict_of(status);
    if (verdict != CUDA_GOOD && verdict != CUDA_NOT_YET)
        cuda__end(status, "run a batch");
    return verdict == CUDA_GOOD;
}

bool cuda_flight_look(struct cuda_flight *flight, uint64_t now_ns)
{
    assert(flight->state != CUDA_FLIGHT_IDLE);
    if (!is_over(flight, now_ns))
        return false;
    if (flight->state == CUDA_FLIGHT_RUNNING && flight->h_memory->doubtful > 0 &&
        flight->method->mend) {
        flight->state = CUDA_FLIGHT_MENDING;
        cudaError_t status = put(flight, flight->method->mend);
        if (status == cudaSuccess)
            return false;
        give_up(flight, status);
        return true;
    }
    finish(flight, ENGINE_OK);
    return true;
}
