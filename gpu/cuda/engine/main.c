/* gpu/cuda/engine/main.c: invertd-cuda, the engine process of one NVIDIA GPU. See gpu/engine.h for
 * the contract.
 *
 * Started by the front, with the descriptors of enum engine_fd, once for each device it is to use.
 * It looks for the device, joins the front, opens the device, checks that it computes, pins the
 * arena so that kernels read and write it in place, and serves each lane with one thread. It takes
 * the methods and orders of its table (method.c) and says so in n_max. What its kernels need of the
 * device's memory besides the arena comes from one pool with a budget.
 *
 * Threads: main waits for the control socket's end; one beats; each lane has one; CUDA has some of
 * its own. The process ends by _exit: with the front, or at once when the device fails.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpu/cuda/engine/device.h"
#include "gpu/cuda/engine/lane.h"
#include "gpu/cuda/base/method.h"
#include "gpu/cuda/base/pool.h"
#include "gpu/cuda/base/self_test.h"
#include "gpu/process/options.h"
#include "gpu/process/process.h"
#include "version.h"

/* How long the short lane polls before it sleeps. A wake from sleep costs a batch 15 us or so,
 * which a client that sends one matrix after the other would pay each time; with few cores the poll
 * keeps the front from running. The other lanes never poll. */
#define SPIN_NS 100000
#define SPIN_FEW_CORES_NS 5000
#define FEW_CORES 4

struct settings {
    struct process_test_flags tests; /* first */
    int64_t device;
    int64_t memory_max; /* 0: half of the device's */
    bool list;
};

static bool parse_device(const char *text, void *settings)
{
    return process_parse_number(text, ENGINE_DEVICES_MAX - 1,
                                "bad option: --device takes the number of a visible device",
                                &((struct settings *)settings)->device);
}

static bool parse_memory_max(const char *text, void *settings)
{
    return process_parse_number(
        text, INT64_MAX, "bad option: --device-memory-max takes bytes, or 0 (half of the device's)",
        &((struct settings *)settings)->memory_max);
}

static bool parse_list(const char *text, void *settings)
{
    (void)text;
    ((struct settings *)settings)->list = true;
    return true;
}

static const struct process_flag flags[] = {
    {"device", true, parse_device, "NUMBER: of the visible device to serve (0)"},
    {"device-memory-max", true, parse_memory_max,
     "BYTES: of the device's memory next to the arena; 0: half of it (0)"},
    {"list", false, parse_list, "list the devices and end"},
    {"self-test", false, process_parse_self_test,
     "try every method on the device and end: with 0 when all are right"},
#ifdef ENGINE_FAULTS
    {"fault", true, process_parse_fault, "LIST: faults on purpose"},
#endif
    {0},
};

static void identify(const struct cuda_device *device, struct process_identity *identity)
{
    *identity = (struct process_identity){.device = device->name,
                                          .model = device->model,
                                          .version = INVERTD_VERSION,
                                          .device_count = device->count};
    for (int i = 0; i < method_count(); i++) {
        for (int p = 0; p < PRECISION_COUNT; p++)
            identity->n_max[i][p] = cuda_method_n_max((uint32_t)i, (enum precision)p);
    }
}

static enum engine_exit start_lanes(const struct settings *settings, const struct process *process,
                                    const struct cuda_device *device, struct cuda_pool *pool)
{
    struct region_map d_arena = {.bytes = process->arena.bytes};
    enum engine_exit how = cuda_device_pin(process->arena.base, d_arena.bytes, &d_arena.base);
    cuda_pool_set_patience(pool, ENGINE_MEMORY_WAIT_NS);
    for (int i = 0; how == ENGINE_EXIT_OK && i < ENGINE_LANES; i++) {
        struct cuda_lane_options options = {
            .lane = &process->shared->lanes[i],
            .device = device,
            .engine = process->shared,
            .d_arena = d_arena,
            .pool = pool,
            .event_fd = ENGINE_FD_EVENT,
            .kind = (enum engine_lane_id)i,
            .spin_ns = i != ENGINE_LANE_SHORT        ? 0
                       : process_cores() < FEW_CORES ? SPIN_FEW_CORES_NS
                                                     : SPIN_NS,
            .faults = settings->tests.has_faults ? &settings->tests.faults : NULL,
        };
        how = cuda_lane_start(&options);
    }
    return how;
}

/* The device open, and its kernels tried. */
static enum engine_exit open_device(const struct settings *settings, struct cuda_device *device,
                                    struct cuda_pool **pool)
{
    enum engine_exit how = cuda_device_open(device);
    if (how == ENGINE_EXIT_OK)
        how = cuda_pool_create((size_t)settings->memory_max, pool);
    if (how != ENGINE_EXIT_OK)
        return how;
    return cuda_self_test(*pool, settings->tests.self_test);
}

static enum engine_exit serve(const struct settings *settings)
{
    static struct cuda_device device;
    static struct process process;
    struct cuda_pool *pool = NULL;
    struct process_identity identity;
    uint64_t began_ns = clock_now_ns();
    enum engine_exit how = cuda_device_find((int)settings->device, &device);
    if (how != ENGINE_EXIT_OK)
        return how;
    identify(&device, &identity);
    if (!process_join(&identity, &process))
        return ENGINE_EXIT_FAILURE;
    how = open_device(settings, &device, &pool);
    uint64_t opened_ns = clock_now_ns();
    if (how == ENGINE_EXIT_OK)
        how = start_lanes(settings, &process, &device, pool);
    if (how != ENGINE_EXIT_OK)
        return how;
    log_line(LOG_INFO, "device ready", "device", LOG_STR, device.name, "model", LOG_STR,
             device.model, "open_ms", LOG_I64, (int64_t)((opened_ns - began_ns) / CLOCK_MS),
             "pin_ms", LOG_I64, (int64_t)((clock_now_ns() - opened_ns) / CLOCK_MS), "memory_max",
             LOG_I64, (int64_t)cuda_pool_bytes_max(pool), NULL);
    process_serve(&process);
    return ENGINE_EXIT_OK;
}

static enum engine_exit self_test(const struct settings *settings)
{
    struct cuda_device device;
    struct cuda_pool *pool = NULL;
    enum engine_exit how = cuda_device_find((int)settings->device, &device);
    if (how != ENGINE_EXIT_OK)
        return how;
    printf("invertd-cuda %s, %s, %s\n", INVERTD_VERSION, device.name, device.model);
    return open_device(settings, &device, &pool);
}

int main(int argc, char **argv)
{
    static struct settings settings;
    struct process_logging logging;
    log_open(LOG_INFO, LOG_JSON, "invertd-cuda", NULL);
    if (!process_parse(argc, argv, flags, &settings, &logging))
        return ENGINE_EXIT_BAD_OPTION;
    log_open(logging.level, logging.format, "invertd-cuda", NULL);
    if (settings.list)
        return cuda_device_list();
    if (settings.tests.self_test)
        return self_test(&settings);
    process_isolate("invertd-cuda");
    _exit(serve(&settings));
}
