/* handlers/stats.c: counts of what each model has done, as Triton's statistics extension shapes
 * them.
 *
 * A request that was answered well adds one to success and its times to the parts: queue (waiting
 * for its first batch), compute_input (decoding), compute_infer (from the first batch's start to
 * the last one's end), compute_output (encoding); the parts never exceed the whole. As in Triton,
 * inference_count counts what was asked for one by one, which are matrices here, like
 * nv_inference_count; execution_count and batch_stats count the engines' batches, by matrices.
 *
 * Threads: see stats.h. The batches of a model have a mutex of their own, taken once a batch by
 * the reaping thread and by readers. Publishing has another, so that two pages asked for at once
 * add a difference once.
 * Cost: about ten uncontended atomic additions a request.
 */
#include "handlers/stats.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metric.h"
#include "queue/queue.h"

/* Sizes with rows of their own in batch_stats: the first so many as they are, the others rounded up
 * to powers of two, the largest power standing for all beyond. */
#define SIZES_EXACT 96
#define SIZES_POWERS 32
#define SIZES_MAX (SIZES_EXACT + SIZES_POWERS)

/* X(field, metric that shows it or COUNT for none) */
#define STATS_COUNTERS(X)                                                                          \
    X(success, NV_SUCCESS)                                                                         \
    X(failure, NV_FAILURE)                                                                         \
    X(matrices, NV_COUNT)                                                                          \
    X(success_ns, NV_REQUEST_DURATION)                                                             \
    X(queue_ns, NV_QUEUE_DURATION)                                                                 \
    X(input_ns, NV_INPUT_DURATION)                                                                 \
    X(infer_ns, NV_INFER_DURATION)                                                                 \
    X(output_ns, NV_OUTPUT_DURATION)                                                               \
    X(failure_ns, COUNT)                                                                           \
    X(submitted, COUNT)                                                                            \
    X(returned, COUNT)

enum stats_counter {
#define STATS_ENUM(field, metric) STATS_##field,
    STATS_COUNTERS(STATS_ENUM)
#undef STATS_ENUM
    STATS_COUNTER_COUNT
};

static const enum metric_id counter_metrics[STATS_COUNTER_COUNT] = {
#define STATS_METRIC(field, metric) [STATS_##field] = METRIC_##metric,
    STATS_COUNTERS(STATS_METRIC)
#undef STATS_METRIC
};

static const char *const info_labels[SURVEY_INFOS] = {
#define STATS_INFO_LABEL(id, label, help) [SURVEY_##id] = (label),
    SURVEY_INFO_TABLE(STATS_INFO_LABEL)
#undef STATS_INFO_LABEL
};

/* One model as one shard's loops see it. */
struct stats_cell {
    _Alignas(64) _Atomic uint64_t counters[STATS_COUNTER_COUNT];
    _Atomic uint64_t inversions[PRECISION_COUNT][SURVEY_INFOS];
    _Atomic uint64_t rconds[SURVEY_DECADES], measured[SURVEY_RESIDUALS];
    _Atomic double residuals[SURVEY_RESIDUALS]; /* the largest since it was taken */
};

struct batch_row {
    int64_t size;
    uint64_t count, ns;
};

struct batch_rows {
    int count;
    uint64_t last_wall_ms;
    struct batch_row rows[SIZES_MAX];
};

struct batch_table {
    pthread_mutex_t lock; /* guards what follows but the atomic */
    struct batch_rows rows;
    _Atomic uint64_t executions;
};

/* What is published of one model. */
struct model_series {
    struct metric_series *counters[STATS_COUNTER_COUNT]; /* NULL: not shown */
    struct metric_series *inversions[PRECISION_COUNT][SURVEY_INFOS];
    struct metric_series *executions, *pending;
};

struct stats {
    pthread_mutex_t publish_lock;
    struct stats_cell *cells;    /* [shard][model] */
    struct batch_table *batches; /* [model] */
    struct model_series *series; /* [model] */
};

static void on_batch(void *context, const struct method *method, int64_t matrices,
                     uint64_t compute_ns);

/* ---- Life ---- */

static void make_series(struct handlers *handlers, const struct handlers__model *model)
{
    struct metric_registry *metrics = handlers->services->metrics;
    struct model_series *series = &handlers->stats->series[model->index];
    const char *name = model->method->name;
    for (int i = 0; i < STATS_COUNTER_COUNT; i++)
        if (counter_metrics[i] != METRIC_COUNT)
            series->counters[i] = metric_series(metrics, counter_metrics[i], name, "1");
    for (int p = 0; p < PRECISION_COUNT; p++)
        for (int i = 0; i < SURVEY_INFOS; i++)
            series->inversions[p][i] =
                metric_series(metrics, METRIC_INVERSIONS, name,
                              p == PRECISION_FP32 ? "fp32" : "fp64", info_labels[i]);
    series->executions = metric_series(metrics, METRIC_NV_EXEC_COUNT, name, "1");
    series->pending = metric_series(metrics, METRIC_NV_PENDING, name, "1");
}

enum error handlers__stats_create(struct handlers *handlers)
{
    size_t models = (size_t)handlers->model_count;
    struct stats *stats = calloc(1, sizeof *stats);
    if (stats == NULL)
        return ERROR_INTERNAL;
    handlers->stats = stats;
    pthread_mutex_init(&stats->publish_lock, NULL);
    size_t cells_bytes = HANDLERS_SHARDS * models * sizeof *stats->cells;
    stats->cells = aligned_alloc(64, cells_bytes);
    stats->batches = calloc(models, sizeof *stats->batches);
    stats->series = calloc(models, sizeof *stats->series);
    for (int i = 0; stats->batches != NULL && i < handlers->model_count; i++)
        pthread_mutex_init(&stats->batches[i].lock, NULL);
    if (stats->cells == NULL || stats->batches == NULL || stats->series == NULL)
        return ERROR_INTERNAL;
    memset(stats->cells, 0, cells_bytes);
    for (int i = 0; i < handlers->model_count; i++)
        make_series(handlers, &handlers->models[i]);
    queue_observe(handlers->services->queue, (struct queue_observer){on_batch, handlers});
    return ERROR_NONE;
}

void handlers__stats_destroy(struct handlers *handlers)
{
    struct stats *stats = handlers->stats;
    if (stats == NULL)
        return;
    queue_observe(handlers->services->queue, (struct queue_observer){NULL, NULL});
    for (int i = 0; stats->batches != NULL && i < handlers->model_count; i++)
        pthread_mutex_destroy(&stats->batches[i].lock);
    pthread_mutex_destroy(&stats->publish_lock);
    free(stats->cells);
    free(stats->batches);
    free(stats->series);
    free(stats);
    handlers->stats = NULL;
}

/* ---- Counting ---- */

struct stats_cell *handlers__stats_cell(struct handlers *handlers,
                                        const struct handlers__shard *shard,
                                        const struct handlers__model *model)
{
    return &handlers->stats->cells[shard->index * handlers->model_count + model->index];
}

static void add(struct stats_cell *cell, enum stats_counter counter, uint64_t amount)
{
    atomic_fetch_add_explicit(&cell->counters[counter], amount, memory_order_relaxed);
}

void handlers__stats_success(struct stats_cell *cell, const struct stats_times *times,
                             int64_t matrices)
{
    add(cell, STATS_success_ns, times->total_ns);
    add(cell, STATS_queue_ns, times->queue_ns);
    add(cell, STATS_input_ns, times->input_ns);
    add(cell, STATS_infer_ns, times->infer_ns);
    add(cell, STATS_output_ns, times->output_ns);
    add(cell, STATS_matrices, (uint64_t)matrices);
    add(cell, STATS_success, 1);
}

void handlers__stats_failure(struct stats_cell *cell, uint64_t total_ns)
{
    add(cell, STATS_failure_ns, total_ns);
    add(cell, STATS_failure, 1);
}

void handlers__stats_inversions(struct stats_cell *cell, enum precision precision,
                                const int64_t counts[SURVEY_INFOS])
{
    for (int i = 0; i < SURVEY_INFOS; i++)
        if (counts[i] > 0)
            atomic_fetch_add_explicit(&cell->inversions[precision][i], (uint64_t)counts[i],
                                      memory_order_relaxed);
}

static void raise_residual(_Atomic double *largest, double residual)
{
    double was = atomic_load_explicit(largest, memory_order_relaxed);
    while (residual > was &&
           !atomic_compare_exchange_weak_explicit(largest, &was, residual, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
}

void handlers__stats_accuracy(struct stats_cell *cell, const struct survey *survey)
{
    for (int i = 0; i < SURVEY_DECADES; i++)
        if (survey->rconds[i] > 0)
            atomic_fetch_add_explicit(&cell->rconds[i], (uint64_t)survey->rconds[i],
                                      memory_order_relaxed);
    for (int i = 0; i < SURVEY_RESIDUALS; i++) {
        if (survey->measured[i] == 0)
            continue;
        atomic_fetch_add_explicit(&cell->measured[i], (uint64_t)survey->measured[i],
                                  memory_order_relaxed);
        raise_residual(&cell->residuals[i], survey->residuals[i]);
    }
}

void handlers__stats_submitted(struct stats_cell *cell)
{
    add(cell, STATS_submitted, 1);
}

void handlers__stats_returned(struct stats_cell *cell)
{
    add(cell, STATS_returned, 1);
}

static int64_t round_up_to_power(int64_t size)
{
    int64_t power = 1;
    while (power < size && power < INT64_C(1) << (SIZES_POWERS - 1))
        power *= 2;
    return power;
}

static struct batch_row *find_row(struct batch_rows *rows, int64_t size)
{
    for (int i = 0; i < rows->count; i++)
        if (rows->rows[i].size == size)
            return &rows->rows[i];
    return NULL;
}

/* The row for batches of this size; made when new. */
static struct batch_row *row_of(struct batch_rows *rows, int64_t size)
{
    struct batch_row *row = find_row(rows, size);
    if (row == NULL && rows->count >= SIZES_EXACT) {
        size = round_up_to_power(size);
        row = find_row(rows, size);
    }
    if (row == NULL) {
        assert(rows->count < SIZES_MAX);
        row = &rows->rows[rows->count++];
        row->size = size;
    }
    return row;
}

/* Runs on the reaping thread, outside the queue's lock. */
static void on_batch(void *context, const struct method *method, int64_t matrices,
                     uint64_t compute_ns)
{
    struct handlers *handlers = context;
    struct batch_table *table =
        &handlers->stats->batches[handlers__model_of(handlers, method)->index];
    uint64_t now_ms = clock_wall_ms();
    atomic_fetch_add_explicit(&table->executions, 1, memory_order_relaxed);
    pthread_mutex_lock(&table->lock);
    struct batch_row *row = row_of(&table->rows, matrices);
    row->count++;
    row->ns += compute_ns;
    table->rows.last_wall_ms = now_ms;
    pthread_mutex_unlock(&table->lock);
}

/* ---- Reading ---- */

struct totals {
    uint64_t counters[STATS_COUNTER_COUNT];
    uint64_t inversions[PRECISION_COUNT][SURVEY_INFOS];
};

static void sum_cells(struct handlers *handlers, const struct handlers__model *model,
                      struct totals *totals)
{
    memset(totals, 0, sizeof *totals);
    for (int s = 0; s < HANDLERS_SHARDS; s++) {
        struct stats_cell *cell = handlers__stats_cell(handlers, &handlers->shards[s], model);
        for (int i = 0; i < STATS_COUNTER_COUNT; i++)
            totals->counters[i] += atomic_load_explicit(&cell->counters[i], memory_order_relaxed);
        for (int p = 0; p < PRECISION_COUNT; p++)
            for (int i = 0; i < SURVEY_INFOS; i++)
                totals->inversions[p][i] +=
                    atomic_load_explicit(&cell->inversions[p][i], memory_order_relaxed);
    }
}

static uint64_t read_cell(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void take_cell(struct stats_cell *cell, struct stats_totals *totals)
{
    totals->success += read_cell(&cell->counters[STATS_success]);
    totals->failure += read_cell(&cell->counters[STATS_failure]);
    totals->matrices += read_cell(&cell->counters[STATS_matrices]);
    for (int p = 0; p < PRECISION_COUNT; p++)
        for (int i = 0; i < SURVEY_INFOS; i++)
            totals->infos[i] += read_cell(&cell->inversions[p][i]);
    for (int i = 0; i < SURVEY_DECADES; i++)
        totals->rconds[i] += read_cell(&cell->rconds[i]);
    for (int i = 0; i < SURVEY_RESIDUALS; i++) {
        totals->measured[i] += read_cell(&cell->measured[i]);
        double largest = atomic_exchange_explicit(&cell->residuals[i], 0, memory_order_relaxed);
        if (largest > totals->residuals[i])
            totals->residuals[i] = largest;
    }
}

void handlers__stats_take(struct handlers *handlers, struct stats_totals *totals)
{
    memset(totals, 0, sizeof *totals);
    for (int i = 0; i < HANDLERS_SHARDS * handlers->model_count; i++)
        take_cell(&handlers->stats->cells[i], totals);
}

static void put_pair(struct text *json, const char *name, uint64_t count, uint64_t ns)
{
    text_printf(json, "\"%s\":{\"count\":%llu,\"ns\":%llu}", name, (unsigned long long)count,
                (unsigned long long)ns);
}

static void put_batches(struct text *json, const struct batch_rows *rows)
{
    text_puts(json, ",\"batch_stats\":[");
    for (int i = 0; i < rows->count; i++) {
        const struct batch_row *row = &rows->rows[i];
        text_printf(json, "%s{\"batch_size\":%lld,", i == 0 ? "" : ",", (long long)row->size);
        /* Decoding and encoding belong to requests, not to batches. */
        put_pair(json, "compute_input", row->count, 0);
        text_puts(json, ",");
        put_pair(json, "compute_infer", row->count, row->ns);
        text_puts(json, ",");
        put_pair(json, "compute_output", row->count, 0);
        text_puts(json, "}");
    }
    text_puts(json, "]");
}

static void put_model(struct handlers *handlers, const struct handlers__model *model,
                      struct text *json)
{
    struct totals totals;
    sum_cells(handlers, model, &totals);
    const uint64_t *counters = totals.counters;
    const struct {
        const char *name;
        uint64_t count, ns;
    } pairs[] = {
        {"success", counters[STATS_success], counters[STATS_success_ns]},
        {"fail", counters[STATS_failure], counters[STATS_failure_ns]},
        {"queue", counters[STATS_success], counters[STATS_queue_ns]},
        {"compute_input", counters[STATS_success], counters[STATS_input_ns]},
        {"compute_infer", counters[STATS_success], counters[STATS_infer_ns]},
        {"compute_output", counters[STATS_success], counters[STATS_output_ns]},
        {"cache_hit", 0, 0},
        {"cache_miss", 0, 0},
    };
    struct batch_table *table = &handlers->stats->batches[model->index];
    uint64_t executions = atomic_load_explicit(&table->executions, memory_order_relaxed);
    pthread_mutex_lock(&table->lock);
    struct batch_rows rows = table->rows; /* 3 KiB: the reaping thread must not wait for text */
    pthread_mutex_unlock(&table->lock);
    text_printf(json,
                "{\"name\":\"%s\",\"version\":\"1\",\"last_inference\":%llu,"
                "\"inference_count\":%llu,\"execution_count\":%llu,\"inference_stats\":{",
                model->method->name, (unsigned long long)rows.last_wall_ms,
                (unsigned long long)counters[STATS_matrices], (unsigned long long)executions);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        text_puts(json, i == 0 ? "" : ",");
        put_pair(json, pairs[i].name, pairs[i].count, pairs[i].ns);
    }
    text_puts(json, "}");
    put_batches(json, &rows);
    text_puts(json, "}");
}

void handlers__stats_document(struct handlers *handlers, const struct handlers__model *model,
                              struct text *json)
{
    text_puts(json, "{\"model_stats\":[");
    for (int i = 0; i < handlers->model_count; i++) {
        if (model != NULL && model != &handlers->models[i])
            continue;
        if (model == NULL && i > 0)
            text_puts(json, ",");
        put_model(handlers, &handlers->models[i], json);
    }
    text_puts(json, "]}");
}

/* Counters only grow, so a difference is never negative. */
static void raise_to(struct metric_series *series, uint64_t total)
{
    metric_add(series, total - metric_value(series));
}

void handlers__stats_publish(struct handlers *handlers)
{
    struct stats *stats = handlers->stats;
    pthread_mutex_lock(&stats->publish_lock);
    for (int m = 0; m < handlers->model_count; m++) {
        struct model_series *series = &stats->series[m];
        struct totals totals;
        sum_cells(handlers, &handlers->models[m], &totals);
        for (int i = 0; i < STATS_COUNTER_COUNT; i++)
            if (series->counters[i] != NULL)
                raise_to(series->counters[i], totals.counters[i]);
        for (int p = 0; p < PRECISION_COUNT; p++)
            for (int i = 0; i < SURVEY_INFOS; i++)
                raise_to(series->inversions[p][i], totals.inversions[p][i]);
        /* Read one after the other: what returned in between may seem more than was submitted. */
        int64_t pending =
            (int64_t)(totals.counters[STATS_submitted] - totals.counters[STATS_returned]);
        metric_set(series->pending, pending > 0 ? pending : 0);
        raise_to(series->executions,
                 atomic_load_explicit(&stats->batches[m].executions, memory_order_relaxed));
    }
    pthread_mutex_unlock(&stats->publish_lock);
}
