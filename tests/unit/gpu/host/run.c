/* tests/unit/gpu/host/run.c: one run of a method on one matrix; see matrices.h. Either the host's
 * code is called in this process, or a batch of one goes to the engine process that INVERTD_ENGINE
 * names (a path), which is started at the first need and ends with the test. INVERTD_ENGINE_N_MAX
 * keeps an engine that is slow from larger orders than that, and `iterative`, whose matrices take
 * some thirty times the work, from more than a quarter of it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu/cuda/tuning/h200/auto.h"
#include "gpu/host/base/host.h"
#include "gpu/host/linalg/residual.h"
#include "gpu/method.h"
#include "tests/unit/gpu/host/child.h"
#include "tests/unit/gpu/host/matrices.h"

#define GUARD 7 /* elements before and after a tensor: also spoils its alignment */
#define GUARD_BYTE 0x5a
/* For the input and the inverse of the largest order that a test has, and small outputs. */
#define N_MAX 2048
#define ARENA_BYTES (3 * UINT64_C(8) * N_MAX * N_MAX)
#define START_MS 20000
#define WAIT_MS 20000

static double get(enum precision precision, const void *data, int64_t i)
{
    return precision == PRECISION_FP32 ? ((const float *)data)[i] : ((const double *)data)[i];
}

static void put(enum precision precision, void *data, int64_t i, double value)
{
    if (precision == PRECISION_FP32)
        ((float *)data)[i] = (float)value;
    else
        ((double *)data)[i] = value;
}

/* ---- The engine process ---- */

struct remote {
    struct gputest_bed bed;
    struct gputest_child child;
};

/* NULL: none is asked for. */
static struct remote *remote(void)
{
    static struct remote started;
    static const char *const no_arguments[] = {NULL};
    const char *path = getenv("INVERTD_ENGINE");
    if (!path || started.child.pid > 0)
        return path ? &started : NULL;
    gputest_bed_create(&started.bed, ARENA_BYTES);
    gputest_child_start(&started.child, &started.bed, path, no_arguments, -1);
    assert_int_equal(gputest_child_wait_ready(&started.child, &started.bed, START_MS),
                     ENGINE_READY);
    return &started;
}

const char *gputest_inverter(size_t place)
{
    for (int i = 0; i < method_count(); i++) {
        if (method_inverts_dense(method_at(i)) && place-- == 0)
            return method_at(i)->name;
    }
    return NULL;
}

size_t gputest_inverters(void)
{
    size_t count = 0;
    while (gputest_inverter(count))
        count++;
    return count;
}

bool gputest_iterates(const char *method)
{
    return method_output_find(method_find(method), "ITERATIONS") >= 0;
}

bool gputest_takes(const char *name, enum precision precision, int64_t n)
{
    struct remote *engine = remote();
    const struct method *method = method_find(name);
    assert_non_null(method);
    int64_t most =
        engine ? engine->bed.shared->n_max[method_index(method)][precision] : method->n_max;
    const char *cap = getenv("INVERTD_ENGINE_N_MAX");
    int64_t part = gputest_iterates(name) ? 4 : 1;
    if (engine && cap && strtoll(cap, NULL, 10) / part < most)
        most = strtoll(cap, NULL, 10) / part;
    return n <= most;
}

enum method_algorithm gputest_algorithm(enum method_algorithm of_host, int64_t n)
{
    struct remote *engine = remote();
    bool is_lu = engine && strncmp(engine->bed.shared->device, "cuda", 4) == 0 &&
                 n < CUDA_AUTO_SORTED_N_MIN && of_host != METHOD_ALGORITHM_NONE;
    return is_lu ? METHOD_ALGORITHM_LU : of_host;
}

/* ---- Tensors with guards around them ---- */

/* Where one tensor lies, guards left aside. */
struct place {
    unsigned char *data;
    int64_t bytes, unit;
};

static struct place place_within(unsigned char *raw, int64_t bytes, int64_t unit)
{
    memset(raw, GUARD_BYTE, (size_t)(bytes + 2 * GUARD * unit));
    return (struct place){.data = raw + GUARD * unit, .bytes = bytes, .unit = unit};
}

static struct place place_anywhere(int64_t bytes, int64_t unit)
{
    unsigned char *raw = malloc((size_t)(bytes + 2 * GUARD * unit));
    assert_non_null(raw);
    return place_within(raw, bytes, unit);
}

static struct place place_in_arena(struct gputest_bed *bed, int64_t bytes, int64_t unit,
                                   struct engine_tensor *tensor)
{
    uint64_t offset = gputest_bed_take(bed, bytes + 2 * GUARD * unit, 2 * unit);
    struct place place = place_within(bed->arena + offset, bytes, unit);
    *tensor = (struct engine_tensor){.offset_bytes = (uint64_t)(place.data - bed->arena)};
    return place;
}

static void check_guards(const struct place *place)
{
    int64_t guard = GUARD * place->unit;
    for (int64_t i = 0; i < guard; i++) {
        assert_int_equal(place->data[i - guard], GUARD_BYTE);
        assert_int_equal(place->data[place->bytes + i], GUARD_BYTE);
    }
}

static bool is_square(const struct method_tensor *tensor)
{
    return tensor->kind == METHOD_REAL && tensor->rank == 2 && tensor->dims[0] == METHOD_DIM_N &&
           tensor->dims[1] == METHOD_DIM_N;
}

/* Fills the answer from a raw output. What it has no place for has tests of its own. */
static void take_output(const struct method *method, int index, enum precision precision,
                        const void *raw, struct gputest_answer *answer)
{
    const char *name = method->outputs[index].name;
    if (index == 0 && is_square(&method->outputs[0])) {
        for (int64_t i = 0; i < answer->n * answer->n; i++)
            answer->inverse[i] = get(precision, raw, i);
    } else if (strcmp(name, "PIVOTS") == 0) {
        memcpy(answer->pivots, raw, (size_t)answer->n * sizeof *answer->pivots);
    } else if (strcmp(name, "INFO") == 0) {
        memcpy(&answer->info, raw, sizeof answer->info);
    } else if (strcmp(name, "METHOD") == 0) {
        memcpy(&answer->algorithm, raw, sizeof answer->algorithm);
    } else if (strcmp(name, "RCOND") == 0) {
        answer->rcond = get(precision, raw, 0);
    } else if (index == method_residual_find(method, METHOD_LEFT)) {
        answer->residuals[METHOD_LEFT] = get(precision, raw, 0);
    } else if (index == method_residual_find(method, METHOD_RIGHT)) {
        answer->residuals[METHOD_RIGHT] = get(precision, raw, 0);
    }
}

/* ---- One run ---- */

struct run {
    const struct method *method;
    enum precision precision;
    int64_t n;
    bool spd;
    struct place input, outputs[METHOD_OUTPUTS_MAX];
};

static void set_options(const struct run *run, int64_t options[METHOD_OPTIONS_MAX])
{
    int spd = method_option_find(run->method, "spd");
    method_default_options(run->method, options);
    if (spd >= 0)
        options[spd] = run->spd;
}

/* As the engine does when a method is done (gpu/host/engine/job.c). */
static void measure(struct run *run, const struct host_matrix *matrix)
{
    int left = method_residual_find(run->method, METHOD_LEFT);
    int right = method_residual_find(run->method, METHOD_RIGHT);
    if (left < 0)
        return;
    if (run->precision == PRECISION_FP32)
        host__residual_ratios_f32(matrix, (float *)(void *)run->outputs[left].data,
                                  (float *)(void *)run->outputs[right].data);
    else
        host__residual_ratios_f64(matrix, (double *)(void *)run->outputs[left].data,
                                  (double *)(void *)run->outputs[right].data);
}

static void call_host(struct run *run)
{
    const struct host_method *host =
        host_method_at((uint32_t)method_index(run->method), run->precision);
    int64_t options[METHOD_OPTIONS_MAX];
    int64_t scratch_bytes = host->scratch_bytes(run->n, 0);
    struct host_matrix matrix = {.inputs = {run->input.data}, .n = run->n, .options = options};
    set_options(run, options);
    for (int i = 0; run->method->outputs[i].name; i++)
        matrix.outputs[i] = run->method->outputs[i].needs ? NULL : run->outputs[i].data;
    matrix.scratch = aligned_alloc(HOST_ALIGN_BYTES, (size_t)scratch_bytes);
    assert_non_null(matrix.scratch);
    memset(matrix.scratch, 0xff, (size_t)scratch_bytes);
    host->run(&matrix);
    measure(run, &matrix);
    free(matrix.scratch);
}

static void call_remote(struct run *run, struct remote *engine, struct engine_batch *batch)
{
    set_options(run, batch->options);
    batch->item_count = 1;
    batch->matrices = batch->items[0].count = 1;
    gputest_bed_submit(&engine->bed, ENGINE_LANE_SHORT, batch);
    assert_true(gputest_bed_wait(&engine->bed, ENGINE_LANE_SHORT, batch, WAIT_MS));
    assert_int_equal(batch->status, ENGINE_OK);
    gputest_bed_release(batch);
}

struct gputest_answer gputest_run(const char *name, enum precision precision, int64_t n,
                                  const double *a, bool spd)
{
    struct remote *engine = remote();
    struct engine_batch *batch = NULL;
    struct run run = {.method = method_find(name), .precision = precision, .n = n, .spd = spd};
    int64_t options[METHOD_OPTIONS_MAX];
    int64_t unit = precision_bytes(precision);
    assert_non_null(run.method);
    set_options(&run, options);
    if (engine) {
        gputest_bed_reset(&engine->bed); /* of a run that failed, too */
        batch = gputest_bed_next(&engine->bed, ENGINE_LANE_SHORT, name, precision, n);
        batch->items[0] = (struct engine_item){0};
        for (int i = 1; i < METHOD_INPUTS_MAX; i++) /* optional ones */
            batch->items[0].inputs[i].region = ENGINE_REGION_NONE;
    }
    run.input = engine ? place_in_arena(&engine->bed, n * n * unit, unit, batch->items[0].inputs)
                       : place_anywhere(n * n * unit, unit);
    for (int64_t i = 0; i < n * n; i++)
        put(precision, run.input.data, i, a[i]);
    for (int i = 0; run.method->outputs[i].name; i++) {
        int64_t bytes = method_tensor_bytes(&run.method->outputs[i], precision, n, n, options);
        run.outputs[i] =
            engine ? place_in_arena(&engine->bed, bytes, unit, &batch->items[0].outputs[i])
                   : place_anywhere(bytes, unit);
    }
    if (engine)
        call_remote(&run, engine, batch);
    else
        call_host(&run);

    struct gputest_answer answer = {.n = n, .inverse = gputest_numbers(n * n)};
    answer.pivots = calloc((size_t)n, sizeof *answer.pivots);
    for (int64_t i = 0; i < n * n; i++)
        assert_true(get(precision, run.input.data, i) == a[i] || isnan(a[i]));
    check_guards(&run.input);
    for (int i = 0; run.method->outputs[i].name; i++) {
        take_output(run.method, i, precision, run.outputs[i].data, &answer);
        check_guards(&run.outputs[i]);
        if (!engine)
            free(run.outputs[i].data - GUARD * unit);
    }
    if (!engine)
        free(run.input.data - GUARD * unit);
    return answer;
}

void gputest_free(struct gputest_answer *answer)
{
    free(answer->inverse);
    free(answer->pivots);
    *answer = (struct gputest_answer){0};
}
