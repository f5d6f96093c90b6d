/* tests/device/rig.c: see rig.h. */
#include "tests/device/rig.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "gpu/method.h"
#include "tests/support/gallery.h"
#include "tests/unit/gpu/host/matrices.h"

#define END_MS 5000

static void sound_program(char *path, size_t size)
{
    const char *named = getenv("INVERTD_ENGINE");
    if (named)
        snprintf(path, size, "%s", named);
    else
        gputest_child_program("invertd-cuda", path, size);
}

void rig_faulty_program(char *path, size_t size)
{
    const char *named = getenv("INVERTD_ENGINE"), *slash = named ? strrchr(named, '/') : NULL;
    if (slash)
        snprintf(path, size, "%.*s/faults%s", (int)(slash - named), named, slash);
    else
        gputest_child_program("faults/invertd-cuda", path, size);
}

static void start(struct rig *rig, const char *fault)
{
    char path[PATH_MAX];
    const char *const arguments[] = {fault ? "--fault" : NULL, fault, NULL};
    if (fault)
        rig_faulty_program(path, sizeof path);
    else
        sound_program(path, sizeof path);
    gputest_child_start(&rig->child, &rig->bed, path, arguments, -1);
    assert_int_equal(gputest_child_wait_ready(&rig->child, &rig->bed, RIG_WAIT_MS), ENGINE_READY);
}

void rig_start(struct rig *rig, uint64_t arena_bytes, const char *fault)
{
    gputest_bed_create(&rig->bed, arena_bytes);
    start(rig, fault);
}

void rig_restart(struct rig *rig, const char *fault)
{
    gputest_bed_renew(&rig->bed);
    start(rig, fault);
}

void rig_stop(struct rig *rig)
{
    int status = gputest_child_end(&rig->child, END_MS);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), ENGINE_EXIT_OK);
    gputest_bed_destroy(&rig->bed);
}

int64_t rig_order_max(const struct rig *rig, const char *method)
{
    int64_t most = rig->bed.shared->n_max[method_index(method_find(method))][PRECISION_FP64];
    const char *cap = getenv("INVERTD_ENGINE_N_MAX");
    assert_true(most > 0);
    return cap && strtoll(cap, NULL, 10) < most ? strtoll(cap, NULL, 10) : most;
}

bool rig_is_cuda(const struct rig *rig)
{
    return strncmp(rig->bed.shared->device, "cuda:", 5) == 0;
}

bool rig_is_simt(const struct rig *rig)
{
    return strncmp(rig->bed.shared->model, "SIMT", 4) == 0;
}

void rig_run(struct rig *rig, enum engine_lane_id lane, struct engine_batch *batch)
{
    gputest_bed_submit(&rig->bed, lane, batch);
    assert_true(gputest_bed_wait(&rig->bed, lane, batch, RIG_WAIT_MS));
    assert_int_equal(batch->status, ENGINE_OK);
    assert_true(batch->finished_ns >= batch->started_ns && batch->started_ns > 0);
}

uint64_t rig_run_spinning(struct rig *rig, enum engine_lane_id lane, struct engine_batch *batch)
{
    uint64_t began = clock_now_ns();
    gputest_bed_submit(&rig->bed, lane, batch);
    while (atomic_load(&batch->state) != ENGINE_BATCH_DONE)
        assert_true(clock_now_ns() - began < RIG_WAIT_MS * CLOCK_MS);
    assert_int_equal(batch->status, ENGINE_OK);
    return clock_now_ns() - began;
}

static void put(enum precision precision, void *data, int64_t i, double value)
{
    if (precision == PRECISION_FP32)
        ((float *)data)[i] = (float)value;
    else
        ((double *)data)[i] = value;
}

void rig_fill_pool(enum precision precision, int64_t n, void *pool)
{
    uint64_t seed = (uint64_t)n;
    for (int64_t k = 0; k < RIG_POOL; k++) {
        for (int64_t e = 0; e < n * n; e++) {
            double value = gputest_random(&seed);
            if (k == RIG_POOL_GROWTH)
                value = gallery_growing_inexact(e / n, e % n, n);
            if (k == 11 && e % n == n / 2)
                value = 0;
            if (k == 23 && e == n * n / 2)
                value = (double)NAN;
            put(precision, pool, k * n * n + e, value);
        }
    }
}

int64_t rig_output_bytes(const struct engine_batch *batch, int output)
{
    return method_tensor_bytes(&method_at((int)batch->method)->outputs[output],
                               (enum precision)batch->precision, batch->n, 0, batch->options);
}

unsigned char *rig_output(struct rig *rig, const struct engine_batch *batch,
                          const struct engine_item *item, int output, int64_t index)
{
    return rig->bed.arena + item->outputs[output].offset_bytes +
           index * rig_output_bytes(batch, output);
}
