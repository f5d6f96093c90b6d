/* gpu/host/engine/job.c: see job.h.
 *
 * Threads: any worker of the job's lane; the holder of a chunk reads the job, and only its atomics
 * are written meanwhile. The batch and the arena belong to the front, scratch to the worker. Cost:
 * a few hundred nanoseconds a batch, one compare-and-swap a chunk, nothing to speak of a matrix.
 */
#include "gpu/host/engine/job.h"

#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "gpu/host/engine/fault.h"
#include "gpu/host/base/progress.h"
#include "gpu/host/base/stop.h"
#include "gpu/host/linalg/residual.h"
#include "gpu/process/batch.h"
#include "gpu/process/ring.h"

/* What orders one batch's writes to the arena before the next one's is the front, in another
 * process, where ThreadSanitizer does not look: it is reported. */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define ORDER_ACQUIRE(arena) __tsan_acquire(arena)
#define ORDER_RELEASE(arena) __tsan_release(arena)
#else
#define ORDER_ACQUIRE(arena) (void)(arena)
#define ORDER_RELEASE(arena) (void)(arena)
#endif

/* A matrix's time is predicted as a fixed part, one for every number moved and one for every
 * operation (measured on one core of Zen 4 with LAPACK's getrf + getri, n = 2 to 256). */
#define MATRIX_NS 150.0
#define NUMBER_NS 6.0
#define FLOPS_PER_NS 20.0

static double predict_ns(const struct host_job *job, const struct engine_batch *batch)
{
    const struct method *method = method_at((int)batch->method);
    int64_t n = batch->n, m = batch->m;
    if (job->group > 1 && job->method->group_matrix_ns)
        return job->method->group_matrix_ns(n);
    return MATRIX_NS + NUMBER_NS * (double)n * (double)n + method->flops(n, m) / FLOPS_PER_NS;
}

/* Where each item starts, and how many matrices there are. */
static int64_t lay_out_items(struct host_job *job, const struct engine_batch *batch)
{
    int64_t matrices = 0;
    job->single = batch->matrices == batch->item_count;
    if (job->single)
        return batch->matrices;
    for (uint32_t i = 0; i < batch->item_count; i++) {
        job->first[i] = matrices;
        matrices += batch->items[i].count;
    }
    return matrices;
}

static void lay_out_tensors(struct host_job *job, const struct engine_batch *batch)
{
    const struct method *method = method_at((int)batch->method);
    enum precision precision = (enum precision)batch->precision;
    job->input_count = method_input_count(method);
    job->output_count = method_output_count(method);
    for (int side = METHOD_LEFT; side <= METHOD_RIGHT; side++)
        job->residuals[side] = method_residual_find(method, (enum method_side)side);
    for (int i = 0; i < job->input_count; i++)
        job->tensor_bytes[i] =
            method_tensor_bytes(&method->inputs[i], precision, batch->n, batch->m, batch->options);
    for (int i = 0; i < job->output_count; i++)
        job->tensor_bytes[METHOD_INPUTS_MAX + i] =
            method_tensor_bytes(&method->outputs[i], precision, batch->n, batch->m, batch->options);
}

/* What the method takes. The inputs of all items are the same. */
static int64_t method_scratch(const struct host_job *job, const struct engine_batch *batch)
{
    const struct host_method *method = job->method;
    struct host_task task = {
        .n = batch->n, .m = batch->m, .options = batch->options, .outputs = UINT32_MAX};
    if (!method->task_scratch_bytes)
        return method->scratch_bytes(task.n, task.m);
    for (int i = 0; i < job->input_count; i++)
        task.inputs |=
            batch->items[0].inputs[i].region == ENGINE_REGION_ARENA ? UINT32_C(1) << i : 0;
    for (uint32_t k = 0; k < batch->item_count; k++) {
        uint32_t wanted = 0;
        for (int i = 0; i < job->output_count; i++)
            wanted |=
                batch->items[k].outputs[i].region == ENGINE_REGION_ARENA ? UINT32_C(1) << i : 0;
        task.outputs &= wanted;
        task.wanted |= wanted;
    }
    return method->task_scratch_bytes(&task);
}

/* Residuals are measured in the method's scratch, when it is done. */
static int64_t scratch_of(const struct host_job *job, const struct engine_batch *batch)
{
    const int64_t bytes = method_scratch(job, batch);
    if (bytes < 0 || job->residuals[METHOD_LEFT] < 0)
        return bytes;
    const int64_t measure = batch->precision == PRECISION_FP32 ? host__ratios_bytes_f32(batch->n)
                                                               : host__ratios_bytes_f64(batch->n);
    return measure < 0 ? -1 : max_i64(bytes, measure);
}

void host__job_open(struct host_job *job, struct engine_batch *batch, uint32_t number)
{
    process_ring_begin(batch);
    atomic_store_explicit(&batch->started_ns, clock_now_ns(), memory_order_relaxed);
    ORDER_ACQUIRE(job->arena.base);
    job->batch = batch;
    job->method = host_method_at(batch->method, (enum precision)batch->precision);
    job->chunks = 1;
    job->chunk_ns = 0;
    job->matrices = 0;
    job->reports = false;
    int64_t n_max = job->method ? method_at((int)batch->method)->n_max : 0;
    enum engine_status status = process_batch_check(batch, n_max, job->faults);
    if (status == ENGINE_OK) {
        assert(job->method); /* or there were no order to take */
        job->group = job->method->group ? job->method->group(batch->n, batch->m) : 1;
        double matrix_ns = predict_ns(job, batch);
        int64_t matrices = job->matrices = lay_out_items(job, batch);
        lay_out_tensors(job, batch);
        job->scratch_bytes = scratch_of(job, batch);
        int64_t groups = (int64_t)(HOST_CHUNK_NS / (matrix_ns * job->group));
        job->chunk_matrices = (groups > 1 ? groups : 1) * job->group;
        /* Few enough for 32 bits, whatever the count of matrices. */
        if (matrices / job->chunk_matrices > INT32_MAX)
            job->chunk_matrices = (matrices / INT32_MAX + 1) * job->group;
        job->chunks = (uint32_t)((matrices + job->chunk_matrices - 1) / job->chunk_matrices);
        job->chunk_ns =
            matrix_ns * (double)(matrices < job->chunk_matrices ? matrices : job->chunk_matrices);
        job->reports = matrix_ns * (double)matrices >= HOST_REPORT_NS;
    }
    atomic_store_explicit(&job->status, status, memory_order_relaxed);
    atomic_store_explicit(&job->unfinished, job->chunks, memory_order_relaxed);
    atomic_store(&job->left, (uint64_t)number << 32 | job->chunks);
}

bool host__job_take(struct host_job *job, uint32_t number, uint32_t *chunk)
{
    uint64_t left = atomic_load_explicit(&job->left, memory_order_acquire);
    do {
        if ((uint32_t)(left >> 32) != number || (uint32_t)left == 0)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&job->left, &left, left - 1,
                                                    memory_order_acq_rel, memory_order_acquire));
    *chunk = job->chunks - (uint32_t)left;
    return true;
}

bool host__job_has(struct host_job *job, uint32_t number)
{
    uint64_t left = atomic_load(&job->left);
    return (uint32_t)(left >> 32) == number && (uint32_t)left != 0;
}

/* The item that holds a matrix of the batch. */
static uint32_t item_of(const struct host_job *job, int64_t matrix)
{
    if (job->single)
        return (uint32_t)matrix;
    uint32_t low = 0, high = job->batch->item_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (job->first[middle] <= matrix)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void *locate(const struct host_job *job, const struct engine_tensor *tensor, int64_t index,
                    int64_t bytes)
{
    if (tensor->region != ENGINE_REGION_ARENA)
        return NULL;
    void *at = region_at(job->arena, tensor->offset_bytes + (uint64_t)(index * bytes), bytes);
    assert(at);
    return at;
}

/* Two groups of matrices: one that waits to be run, and the next, which is being gathered.
 * residuals: where they are wanted. */
struct gathering {
    struct host_matrix matrices[2][HOST_GROUP_MAX];
    void *residuals[2][HOST_GROUP_MAX][2];
    int side; /* the group that is being gathered */
    int counts[2];
};

static void measure(const struct host_job *job, const struct host_matrix *matrix,
                    void *const residuals[2])
{
    if (!residuals[METHOD_LEFT] && !residuals[METHOD_RIGHT])
        return;
    if (job->batch->precision == PRECISION_FP32)
        host__residual_ratios_f32(matrix, residuals[METHOD_LEFT], residuals[METHOD_RIGHT]);
    else
        host__residual_ratios_f64(matrix, residuals[METHOD_LEFT], residuals[METHOD_RIGHT]);
}

/* Runs the group that waits; the gathered one waits now. */
static void turn(const struct host_job *job, struct gathering *gathering)
{
    int next = gathering->side, now = !next;
    if (gathering->counts[now] > 0 && job->group > 1)
        job->method->run_group(gathering->matrices[now], gathering->counts[now],
                               gathering->matrices[next], gathering->counts[next]);
    else if (gathering->counts[now] > 0)
        job->method->run(gathering->matrices[now]);
    for (int i = 0; i < gathering->counts[now]; i++)
        measure(job, &gathering->matrices[now][i], gathering->residuals[now][i]);
    gathering->counts[now] = 0;
    gathering->side = now;
}

/* `index`: of the matrix within its item. */
static void gather_matrix(const struct host_job *job, const struct engine_item *item, int64_t index,
                          struct gathering *gathering)
{
    int side = gathering->side, place = gathering->counts[side]++;
    struct host_matrix *matrix = &gathering->matrices[side][place];
    for (int i = 0; i < job->input_count; i++)
        matrix->inputs[i] = locate(job, &item->inputs[i], index, job->tensor_bytes[i]);
    for (int i = 0; i < job->output_count; i++)
        matrix->outputs[i] =
            locate(job, &item->outputs[i], index, job->tensor_bytes[METHOD_INPUTS_MAX + i]);
    for (int of = METHOD_LEFT; of <= METHOD_RIGHT; of++) {
        int output = job->residuals[of];
        gathering->residuals[side][place][of] = output < 0 ? NULL : matrix->outputs[output];
        if (output >= 0)
            matrix->outputs[output] = NULL;
    }
#ifdef ENGINE_FAULTS
    host__fault_matrix(job->faults, (enum precision)job->batch->precision, matrix->inputs[0]);
#endif
    if (gathering->counts[side] == job->group)
        turn(job, gathering);
}

/* A chunk that is being run. */
struct chunk {
    const struct host_job *job;
    uint32_t number;
    void *scratch;
    struct host_progress progress;
};

static void run_matrices(void *context)
{
    struct chunk *chunk = context;
    const struct host_job *job = chunk->job;
    const struct engine_batch *batch = job->batch;
    int64_t matrix = (int64_t)chunk->number * job->chunk_matrices;
    int64_t first = matrix, last = min_i64(matrix + job->chunk_matrices, job->matrices);
    uint32_t i = item_of(job, matrix);
    int64_t index = job->single ? 0 : matrix - job->first[i];
    /* With as many chunks as threads, all of them are busy without help. */
    bool few = (int64_t)job->chunks < host_team_threads(job->team);
    bool reports = job->chunk_matrices == 1 && job->chunk_ns >= HOST_REPORT_NS;
    struct host_progress *progress = reports ? &chunk->progress : NULL;
    struct gathering gathering;
    gathering.side = gathering.counts[0] = gathering.counts[1] = 0;
    for (int k = 0; k < 2 * job->group; k++)
        gathering.matrices[k % 2][k / 2] = (struct host_matrix){.n = batch->n,
                                                                .m = batch->m,
                                                                .options = batch->options,
                                                                .team = few ? job->team : NULL,
                                                                .progress = progress,
                                                                .scratch = chunk->scratch};
    for (; i < batch->item_count && matrix < last; i++, index = 0) {
        const struct engine_item *item = &batch->items[i];
        for (; index < item->count && matrix < last; index++, matrix++)
            gather_matrix(job, item, index, &gathering);
    }
    turn(job, &gathering);
    turn(job, &gathering);
    if (job->reports)
        host__progress_end(&chunk->progress, last - first);
}

static void finish(struct host_job *job)
{
    struct engine_batch *batch = job->batch;
    batch->status = atomic_load_explicit(&job->status, memory_order_relaxed);
    batch->kernel[0] = 0;
    if (batch->status == ENGINE_OK)
        snprintf(batch->kernel, sizeof batch->kernel, "%s", job->method->kernel(batch->n));
    batch->finished_ns = clock_now_ns();
    ORDER_RELEASE(job->arena.base);
    /* Sequentially consistent: the front's sleep is decided by this and front_waits together. */
    atomic_store(&batch->state, ENGINE_BATCH_DONE);
}

static enum engine_status run_chunk(const struct host_job *job, uint32_t number,
                                    struct host_scratch *scratch)
{
    struct engine_batch *batch = job->batch;
    if (process_batch_unwanted(batch))
        return ENGINE_STOPPED;
    enum engine_status status = ENGINE_OUT_OF_MEMORY;
    if (host__scratch_fit(scratch, job->budget, job->scratch_bytes)) {
        struct chunk chunk = {
            .job = job, .number = number, .scratch = scratch->data, .progress = {.batch = batch}};
        bool whole = host_stop_watch(&batch->unwanted, run_matrices, &chunk);
        status = whole ? ENGINE_OK : ENGINE_STOPPED;
    }
    host__scratch_done(scratch, job->budget);
    return status;
}

bool host__job_run(struct host_job *job, uint32_t chunk, struct host_scratch *scratch)
{
    if (atomic_load_explicit(&job->status, memory_order_relaxed) == ENGINE_OK) {
        enum engine_status status = run_chunk(job, chunk, scratch);
        if (status != ENGINE_OK)
            atomic_store_explicit(&job->status, status, memory_order_relaxed);
    }
    if (atomic_fetch_sub_explicit(&job->unfinished, 1, memory_order_acq_rel) != 1)
        return false;
    finish(job);
    return true;
}
