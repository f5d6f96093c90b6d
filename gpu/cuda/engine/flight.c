/* gpu/cuda/engine/flight.c: see flight.h. */
#include "gpu/cuda/base/failed.h"
#include "gpu/cuda/engine/flight.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpu/cuda/engine/fault.h"
#include "gpu/cuda/engine/measure.h"
#include "gpu/cuda/gemm/gemm.h"
#include "gpu/cuda/base/status.h"
#include "gpu/cuda/tuning/h200/engine.h"
#include "gpu/process/batch.h"
#include "gpu/process/process.h"
#include "gpu/process/ring.h"

/* To recover in, a block is exchanged for one that is so much larger. */
#define WIDER 2

struct cuda_flight_memory {
    _Alignas(64) _Atomic uint32_t word; /* written by the device, as is unverified */
    uint32_t unverified;
    struct cuda_notes notes;
    union {
        struct cuda_item items[ENGINE_BATCH_ITEMS];
        struct cuda_tensors tensors[ENGINE_BATCH_ITEMS];
        struct cuda_residual_item residuals[ENGINE_BATCH_ITEMS]; /* when the method is done */
    } _Alignas(64) table;
#ifdef ENGINE_FAULTS
    struct cuda_item faulty[ENGINE_BATCH_ITEMS];
#endif
};

enum engine_exit cuda_flight_create(struct cuda_flight *flight, struct cuda_flight_lane *lane,
                                    int priority)
{
    void *memory = NULL, *seen = NULL;
    *flight = (struct cuda_flight){.lane = lane};
    cudaError_t status =
        cudaStreamCreateWithPriority(&flight->stream, cudaStreamNonBlocking, priority);
    if (status == cudaSuccess)
        status = cudaHostAlloc(&memory, sizeof *flight->h_memory, cudaHostAllocMapped);
    if (status == cudaSuccess)
        status = cudaHostGetDevicePointer(&seen, memory, 0);
    if (status == cudaSuccess)
        status = cudaMalloc(&flight->d_table, sizeof flight->h_memory->table);
    if (status == cudaSuccess)
        status = cuda_products_create(lane->neighbour, &flight->products);
    if (status != cudaSuccess)
        return cuda__failed(status, "prepare for batches");
    lane->neighbour = lane->neighbour ? lane->neighbour : flight->products;
    flight->h_memory = memory;
    flight->seen = seen;
    memset(memory, 0, sizeof *flight->h_memory);
    return ENGINE_EXIT_OK;
}

/* ---- Launch ---- */

/* NULL: absent, or unwanted. */
static void *locate(const struct cuda_flight *flight, const struct engine_tensor *tensor)
{
    if (tensor->region != ENGINE_REGION_ARENA)
        return NULL;
    /* Its bytes are checked where the front makes the reference: sizes cost too much here. */
    void *at = region_at(flight->lane->d_arena, tensor->offset_bytes, 0);
    assert(at);
    return at;
}

/* One item of the table for a method that takes one matrix. false: it lacks a tensor that is always
 * there. */
static bool lay_out_matrix(struct cuda_flight *flight, const struct engine_item *from,
                           struct cuda_item *to, int64_t first)
{
    const struct cuda_method *method = flight->method;
    *to = (struct cuda_item){.a = locate(flight, &from->inputs[0]),
                             .result = locate(flight, &from->outputs[method->result]),
                             .extra = locate(flight, &from->outputs[method->extra]),
                             .info = locate(flight, &from->outputs[method->info]),
                             .first = first};
    return to->a && to->info;
}

/* The same for any other method. */
static bool lay_out_tensors(struct cuda_flight *flight, const struct engine_item *from,
                            struct cuda_tensors *to, int64_t first)
{
    const struct method *method = method_at((int)flight->batch->method);
    bool complete = true;
    to->first = first;
    for (int i = 0; method->inputs[i].name; i++) {
        to->inputs[i] = locate(flight, &from->inputs[i]);
        flight->call.inputs &= to->inputs[i] ? UINT32_MAX : ~(UINT32_C(1) << i);
        complete = complete && (to->inputs[i] || method->inputs[i].optional);
    }
    for (int i = 0; method->outputs[i].name; i++) {
        to->outputs[i] = locate(flight, &from->outputs[i]);
        flight->call.wanted |= to->outputs[i] ? UINT32_C(1) << i : 0;
        complete = complete &&
                   (to->outputs[i] || method->outputs[i].rank > 0 || method->outputs[i].optional);
    }
    return complete;
}

/* Writes the table of items. false: an item is not whole. */
static bool lay_out(struct cuda_flight *flight)
{
    const struct engine_batch *batch = flight->batch;
    struct cuda_flight_memory *h_memory = flight->h_memory;
    int64_t matrices = 0;
    bool complete = true;
    flight->call.wanted = 0;
    flight->call.inputs = UINT32_MAX;
    for (uint32_t i = 0; i < batch->item_count; i++) {
        const struct engine_item *from = &batch->items[i];
        bool whole = flight->method->takes_tensors
                         ? lay_out_tensors(flight, from, &h_memory->table.tensors[i], matrices)
                         : lay_out_matrix(flight, from, &h_memory->table.items[i], matrices);
        complete = complete && whole && from->count >= 1;
        matrices += from->count;
    }
    flight->call = (struct cuda_call){.precision = (enum precision)batch->precision,
                                      .n = batch->n,
                                      .m = batch->m,
                                      .options = batch->options,
                                      .item_count = batch->item_count,
                                      .matrices = matrices,
                                      .inputs = flight->call.inputs,
                                      .wanted = flight->call.wanted,
                                      .tensors = flight->seen->table.tensors,
                                      .products = flight->products,
                                      .notes = &h_memory->notes,
                                      .d_notes = &flight->seen->notes,
                                      .batch = {.items = flight->seen->table.items,
                                                .item_count = batch->item_count,
                                                .matrices = matrices,
                                                .unverified = &flight->seen->unverified}};
    flight->measures = cuda__measure_wanted(batch);
    return complete;
}

/* Moves the table, whose items have so many bytes, to the device where that pays. */
static cudaError_t bring_table(struct cuda_flight *flight, size_t item)
{
    struct cuda_call *call = &flight->call;
    bool searched = call->item_count > 1 && call->item_count < call->matrices;
    if (!searched && call->item_count <= CUDA__NEAR_ITEMS_MAX)
        return cudaSuccess;
    call->batch.items = flight->d_table;
    call->tensors = flight->d_table;
    call->residuals = flight->d_table;
    return cudaMemcpyAsync(flight->d_table, &flight->h_memory->table,
                           (size_t)call->item_count * item, cudaMemcpyHostToDevice, flight->stream);
}

static bool ends_with_word(const struct engine_batch *batch, int64_t matrices)
{
    int64_t matrix_bytes = batch->n * batch->n * precision_bytes((enum precision)batch->precision);
    return matrices <= CUDA__WORD_BYTES_MAX / matrix_bytes;
}

/* Puts a kernel into the stream, and behind it the word that says it is over. */
static cudaError_t put(struct cuda_flight *flight, cuda_launcher *launch)
{
    flight->h_memory->notes.asked = 0;
    flight->launches++;
    cudaError_t status = launch(&flight->call, flight->stream);
    if (status != cudaSuccess || !flight->has_word)
        return status;
    CUdeviceptr word = (CUdeviceptr)(uintptr_t)&flight->seen->word;
    CUresult result = flight->lane->device->write_value(flight->stream, word, ++flight->awaited,
                                                        CU_STREAM_WRITE_VALUE_DEFAULT);
    /* The runtime's numbers are the driver's. */
    return (cudaError_t)result;
}

#ifdef ENGINE_FAULTS
/* What the kernel of faults looks at: the first matrix alone of an item that has several tensors,
 * which the table of matrices does not show. */
static struct cuda_batch seen_by_fault(const struct cuda_flight *flight)
{
    struct cuda_batch batch = flight->call.batch;
    const struct engine_batch *from = flight->batch;
    if (!flight->method->takes_tensors)
        return batch;
    for (uint32_t i = 0; i < from->item_count; i++)
        flight->h_memory->faulty[i] =
            (struct cuda_item){.a = locate(flight, &from->items[i].inputs[0]), .first = i};
    batch.items = flight->seen->faulty;
    batch.matrices = batch.item_count;
    return batch;
}

/* Before the batch's own kernel, in the same stream. */
static cudaError_t put_fault(const struct cuda_flight *flight)
{
    const struct process_faults *faults = flight->lane->faults;
    if (!faults)
        return cudaSuccess;
    struct cuda_fault fault = {.poison = faults->has_poison ? faults->poison : (double)NAN,
                               .hang = faults->has_hang ? faults->hang : (double)NAN,
                               .slow_ns = faults->slow_us * (int64_t)CLOCK_US};
    struct cuda_batch seen = seen_by_fault(flight);
    return cuda__fault_launch(&fault, flight->call.precision, flight->call.n, &seen,
                              flight->stream);
}
#endif

static cudaError_t start(struct cuda_flight *flight)
{
    flight->h_memory->unverified = 0;
    flight->h_memory->notes.progress = flight->reported = 0;
    flight->has_word = ends_with_word(flight->batch, flight->call.matrices);
    const struct cuda_call *call = &flight->call;
    cudaError_t status = bring_table(
        flight, flight->method->takes_tensors ? sizeof *call->tensors : sizeof *call->batch.items);
#ifdef ENGINE_FAULTS
    if (status == cudaSuccess)
        status = put_fault(flight);
#endif
    return status == cudaSuccess ? put(flight, flight->method->launch) : status;
}

static void finish(struct cuda_flight *flight, enum engine_status status)
{
    struct engine_batch *batch = flight->batch;
    cuda_pool_give(flight->lane->pool, &flight->block);
    flight->state = CUDA_FLIGHT_IDLE;
    flight->batch = NULL;
    batch->status = status;
    if (status != ENGINE_OK)
        batch->kernel[0] = 0;
    batch->finished_ns = clock_now_ns();
    /* Sequentially consistent: the front's sleep is decided by this and front_waits together. */
    atomic_store(&batch->state, ENGINE_BATCH_DONE);
}

/* Nothing that runs is reported as done. The front hears it first: the log may be slow, and in the
 * process's end the driver takes the context apart, 0.6 s and more on an H200 (2026-11-22). */
static _Noreturn void end(const struct cuda_flight *flight, cudaError_t status, const char *doing)
{
    bool is_lost = cuda_verdict_exit(cuda_verdict_of(status)) == ENGINE_EXIT_FAULT;
    if (is_lost && flight->lane->engine)
        process_report_lost(flight->lane->engine);
    _exit(cuda__failed(status, doing));
}

/* A failed launch, which has left the device as it was: the batch ends, and the engine goes on. */
static void give_up(struct cuda_flight *flight, cudaError_t status)
{
    enum cuda_verdict verdict = cuda_verdict_of(status);
    if (cuda_verdict_is_fatal(verdict))
        end(flight, status, "launch a batch");
    cuda__failed(status, "launch a batch");
    (void)cudaGetLastError();
    /* What was launched may run still, in either stream: the table's place and the workspace are
     * used again. */
    cudaError_t rest = cudaStreamSynchronize(flight->stream);
    if (rest == cudaSuccess)
        rest = cudaStreamSynchronize(cuda_products_side(flight->products)->stream);
    if (rest != cudaSuccess)
        end(flight, rest, "launch a batch");
    finish(flight, cuda_verdict_status(verdict));
}

/* ---- Memory ---- */

static bool is_empty(const struct cuda_flight_line *line)
{
    return line->served == line->next;
}

static bool lacks(const struct cuda_flight *flight)
{
    return flight->state == CUDA_FLIGHT_LACKING;
}

/* Who has begun is served before those that have not. */
static bool is_its_turn(const struct cuda_flight *flight)
{
    const struct cuda_flight_lane *lane = flight->lane;
    if (lacks(flight))
        return flight->ticket == lane->lacking.served;
    return flight->ticket == lane->waiting.served && is_empty(&lane->lacking);
}

static void use_block(struct cuda_flight *flight)
{
    flight->call.workspace = flight->block.d_data;
    flight->call.workspace_bytes = flight->block.bytes;
}

/* For one matrix at least, for all where there is so much. */
static cudaError_t take_block(struct cuda_flight *flight)
{
    const struct cuda_flight_lane *lane = flight->lane;
    const struct cuda_method *method = flight->method;
    const struct cuda_call *call = &flight->call;
    size_t least = lacks(flight) ? method->recover_workspace(call, 1) : method->workspace(call, 1);
    size_t wanted = lacks(flight) ? method->recover_workspace(call, call->to_recover)
                                  : method->workspace(call, call->matrices);
    wanted = wanted < least ? least : wanted;
    return lacks(flight) ? cuda_pool_take_on(lane->pool, lane->kind, least, wanted, &flight->block)
                         : cuda_pool_take(lane->pool, lane->kind, least, wanted, &flight->block);
}

/* Takes what a flight in line waits for, when it is its turn; nothing where nothing is going to be
 * launched. Anything but cudaErrorNotReady: it has left the line. */
static cudaError_t take_workspace(struct cuda_flight *flight, bool unwanted)
{
    struct cuda_flight_lane *lane = flight->lane;
    struct cuda_flight_line *line = lacks(flight) ? &lane->lacking : &lane->waiting;
    cudaError_t status = cudaSuccess;
    if (!is_its_turn(flight))
        return cudaErrorNotReady;
    if (unwanted)
        cuda_pool_withdraw(lane->pool, lane->kind);
    else
        status = take_block(flight);
    use_block(flight);
    if (status != cudaErrorNotReady)
        line->served++;
    return status;
}

/* Is there not even the memory to recover one matrix in? */
static bool has_too_little(const struct cuda_flight *flight)
{
    const struct cuda_method *method = flight->method;
    return method->recover_workspace &&
           method->recover_workspace(&flight->call, 1) > flight->block.bytes;
}

/* To LACKING, and in line. The device is done with what it has. */
static void fall_short(struct cuda_flight *flight)
{
    cuda_pool_give(flight->lane->pool, &flight->block);
    flight->state = CUDA_FLIGHT_LACKING;
    flight->ticket = flight->lane->lacking.next++;
    flight->lacking_ns = clock_now_ns();
    atomic_store_explicit(&flight->batch->waits, 1, memory_order_relaxed);
}

/* LACKING -> RECOVERY. What it has waited is no work. */
static void end_lacking(struct cuda_flight *flight)
{
    struct engine_batch *batch = flight->batch;
    flight->state = CUDA_FLIGHT_RECOVERY;
    atomic_fetch_add_explicit(&batch->started_ns, clock_now_ns() - flight->lacking_ns,
                              memory_order_relaxed);
    atomic_store_explicit(&batch->waits, 0, memory_order_relaxed);
}

/* More matrices are recovered at once in a larger block, if one is to be had without waiting. */
static cudaError_t widen(struct cuda_flight *flight)
{
    const struct cuda_flight_lane *lane = flight->lane;
    const struct cuda_method *method = flight->method;
    struct cuda_block larger = {0};
    if (!method->recover_workspace || !is_empty(&lane->waiting) || !is_empty(&lane->lacking))
        return cudaSuccess;
    size_t least = WIDER * flight->block.bytes;
    size_t wanted = method->recover_workspace(&flight->call, flight->call.to_recover);
    cudaError_t status = cudaSuccess;
    if (wanted >= least)
        status = cuda_pool_try(lane->pool, lane->kind, least, wanted, &larger);
    if (!larger.d_data)
        return status;
    cuda_pool_give(lane->pool, &flight->block);
    flight->block = larger;
    use_block(flight);
    return status;
}

/* ---- Begin ---- */

static uint64_t note_start(struct engine_batch *batch)
{
    uint64_t now_ns = clock_now_ns();
    atomic_store_explicit(&batch->started_ns, now_ns, memory_order_relaxed);
    return now_ns;
}

/* Ends a batch that is not going to be launched. false: it is. */
static bool is_refused(struct cuda_flight *flight, cudaError_t status, bool unwanted)
{
    if (unwanted)
        finish(flight, ENGINE_STOPPED);
    else if (status == cudaErrorMemoryAllocation) /* others have it, and keep it */
        finish(flight, ENGINE_OUT_OF_MEMORY);
    return flight->state == CUDA_FLIGHT_IDLE;
}

/* WAITING -> RUNNING, or not yet. false: the batch is DONE. */
static bool begin(struct cuda_flight *flight)
{
    struct engine_batch *batch = flight->batch;
    bool unwanted = process_batch_unwanted(batch);
    cudaError_t status = flight->takes_memory ? take_workspace(flight, unwanted) : cudaSuccess;
    if (status == cudaErrorNotReady)
        return true;
    process_ring_begin(batch);
    flight->queried_ns = note_start(batch);
    flight->state = CUDA_FLIGHT_RUNNING;
    if (is_refused(flight, status, unwanted))
        return false;
    if (status == cudaSuccess)
        status = start(flight);
    if (status != cudaSuccess) {
        give_up(flight, status);
        return false;
    }
    snprintf(batch->kernel, sizeof batch->kernel, "%s %s n=%d", flight->method->kernel,
             batch->precision == PRECISION_FP32 ? "f32" : "f64", (int)batch->n);
    return true;
}

/* Sets the flight's method and its call. Anything but ENGINE_OK: the batch is not one for this
 * engine, or it could never have the memory. */
static enum engine_status check(struct cuda_flight *flight, const struct engine_batch *batch)
{
    bool known = batch->precision < PRECISION_COUNT;
    flight->method =
        known ? cuda_method_find(batch->method, (enum precision)batch->precision, batch->n) : NULL;
    int64_t n_max = flight->method ? flight->method->n_max[batch->precision] : 0;
    enum engine_status status = process_batch_check(batch, n_max, flight->lane->faults);
    if (status == ENGINE_OK && !lay_out(flight))
        status = ENGINE_UNSUPPORTED;
    if (status == ENGINE_OK && cuda_method_bytes_min(flight->method, &flight->call) >
                                   cuda_pool_bytes_max(flight->lane->pool))
        status = ENGINE_OUT_OF_MEMORY;
    return status;
}

bool cuda_flight_launch(struct cuda_flight *flight, struct engine_batch *batch)
{
    assert(flight->state == CUDA_FLIGHT_IDLE);
    flight->state = CUDA_FLIGHT_WAITING;
    flight->batch = batch;
    enum engine_status refused = check(flight, batch);
    if (refused != ENGINE_OK) {
        process_ring_begin(batch);
        note_start(batch);
        finish(flight, refused);
        return false;
    }
    const struct cuda_method *method = flight->method;
    flight->takes_memory = method->workspace && method->workspace(&flight->call, 1) > 0;
    if (flight->takes_memory)
        flight->ticket = flight->lane->waiting.next++;
    return begin(flight);
}

/* ---- Completion ---- */

static bool is_over(struct cuda_flight *flight, uint64_t now_ns)
{
    uint32_t word = atomic_load_explicit(&flight->h_memory->word, memory_order_acquire);
    if (flight->has_word && word == flight->awaited)
        return true;
    if (flight->has_word && now_ns < flight->queried_ns + CUDA__QUERY_NS)
        return false;
    flight->queried_ns = now_ns;
    cudaError_t status = cudaStreamQuery(flight->stream);
    enum cuda_verdict verdict = cuda_verdict_of(status);
    if (verdict != CUDA_GOOD && verdict != CUDA_NOT_YET)
        end(flight, status, "run a batch");
    return verdict == CUDA_GOOD;
}

/* The launcher that follows, now that the stream has come to its end; NULL: the batch is over. */
static cuda_launcher *next_launcher(struct cuda_flight *flight)
{
    const struct cuda_method *method = flight->method;
    if (flight->state == CUDA_FLIGHT_MEASURING)
        return NULL;
    if (method->again && flight->h_memory->notes.asked)
        return method->again;
    if (flight->state != CUDA_FLIGHT_RECOVERY && flight->h_memory->unverified != 0 &&
        method->recover)
        return method->recover;
    return flight->measures ? cuda__measure : NULL;
}

/* Says the front what the launcher has said of the batch's progress. */
static void tell_progress(struct cuda_flight *flight)
{
    uint64_t progress = flight->h_memory->notes.progress;
    if (progress <= flight->reported)
        return;
    process_batch_advance(flight->batch, progress - flight->reported);
    flight->reported = progress;
}

/* A further launch, where there is no error. true: the batch is DONE. */
static bool go_on(struct cuda_flight *flight, cuda_launcher *launcher, cudaError_t status)
{
    if (status == cudaSuccess) {
        status = put(flight, launcher);
        tell_progress(flight);
    }
    if (status != cudaSuccess)
        give_up(flight, status);
    return status != cudaSuccess;
}

/* LACKING -> RECOVERY, or not yet. true: the batch is DONE. */
static bool recover_in_turn(struct cuda_flight *flight)
{
    bool unwanted = process_batch_unwanted(flight->batch);
    cudaError_t status = take_workspace(flight, unwanted);
    if (status == cudaErrorNotReady)
        return false;
    end_lacking(flight);
    return is_refused(flight, status, unwanted) || go_on(flight, flight->method->recover, status);
}

/* RUNNING -> RECOVERY or LACKING. true: the batch is DONE. */
static bool recover(struct cuda_flight *flight)
{
    flight->call.to_recover = flight->h_memory->unverified;
    if (has_too_little(flight)) {
        fall_short(flight);
        return recover_in_turn(flight);
    }
    flight->state = CUDA_FLIGHT_RECOVERY;
    return go_on(flight, flight->method->recover, widen(flight));
}

/* RUNNING or RECOVERY -> MEASURING: the device is done with the table, whose place is used again.
 * true: the batch is DONE. */
static bool measure(struct cuda_flight *flight)
{
    cuda__measure_lay_out(flight->batch, flight->lane->d_arena, flight->h_memory->table.residuals);
    flight->call.residuals = flight->seen->table.residuals;
    flight->state = CUDA_FLIGHT_MEASURING;
    return go_on(flight, cuda__measure, bring_table(flight, sizeof *flight->call.residuals));
}

bool cuda_flight_look(struct cuda_flight *flight, uint64_t now_ns)
{
    assert(flight->state != CUDA_FLIGHT_IDLE);
    if (flight->state == CUDA_FLIGHT_WAITING)
        return !begin(flight);
    if (flight->state == CUDA_FLIGHT_LACKING)
        return recover_in_turn(flight);
    if (!is_over(flight, now_ns))
        return false;
    cuda_launcher *launcher = next_launcher(flight);
    if (launcher && process_batch_unwanted(flight->batch)) {
        finish(flight, ENGINE_STOPPED);
        return true;
    }
    if (launcher == cuda__measure)
        return measure(flight);
    if (launcher)
        return launcher == flight->method->recover ? recover(flight)
                                                   : go_on(flight, launcher, cudaSuccess);
    finish(flight, ENGINE_OK);
    return true;
}
