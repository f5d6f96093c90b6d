/* server/engines/roster.c: see roster.h. */
#include "server/engines/roster.h"

#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

#define START_MAX_NS (20 * CLOCK_S) /* as start_clock.h counts */
#define START_GIB_NS CLOCK_S        /* more for each GiB of arena, which a CUDA engine pins */

static void make_host_command(const struct roster *roster, const struct supervisor_options *options,
                              struct role *role)
{
    struct engine_command *command = &role->command;
    engine_command_add(command, roster->host_path);
    engine_command_add_flag(command, "--threads", roster->threads);
    engine_command_add_flag(command, "--log-format", options->log_format);
    engine_command_add_flag(command, "--log-level", options->log_level);
    engine_command_add_flag(command, "--scratch-max",
                            options->scratch_max_bytes > 0 ? roster->scratch_max : NULL);
    engine_command_add_flag(command, "--fault", options->host_fault);
}

static void make_cuda_command(const struct roster *roster, const struct supervisor_options *options,
                              struct role *role)
{
    struct engine_command *command = &role->command;
    engine_command_add(command, roster->cuda_path);
    engine_command_add_flag(command, "--device", role->device_text);
    engine_command_add_flag(command, "--device-memory-max",
                            options->device_memory_max_bytes > 0 ? roster->device_memory_max
                                                                 : NULL);
    engine_command_add_flag(command, "--log-format", options->log_format);
    engine_command_add_flag(command, "--log-level", options->log_level);
    engine_command_add_flag(command, "--fault", options->cuda_fault);
}

/* The role's device class and name. */
static void identify_role(struct role *role, enum roster_id id)
{
    int spare = (int)id - ROSTER_SPARE_CUDA;
    bool is_host = id < ROSTER_CUDA, is_spare = id == ROSTER_SPARE_HOST || spare >= 0;
    if (is_host) {
        snprintf(role->name, sizeof role->name, is_spare ? "host-spare" : "host");
    } else {
        int number = spare % SUPERVISOR_SPARES_MAX + 1;
        role->device = is_spare ? spare / SUPERVISOR_SPARES_MAX : (int)id - ROSTER_CUDA;
        snprintf(role->device_text, sizeof role->device_text, "%d", role->device);
        if (!is_spare)
            snprintf(role->name, sizeof role->name, "cuda:%d", role->device);
        else if (number == 1)
            snprintf(role->name, sizeof role->name, "cuda:%d-spare", role->device);
        else
            snprintf(role->name, sizeof role->name, "cuda:%d-spare-%d", role->device, number);
    }
    role->engine =
        (struct queue_engine){is_host ? QUEUE_HOST : QUEUE_CUDA, is_spare, (int)id, role->name};
}

static void set_up_role(struct roster *roster, const struct supervisor_options *options,
                        enum roster_id id)
{
    struct role *role = &roster->roles[id];
    identify_role(role, id);
    if (role->engine.device_class == QUEUE_HOST)
        make_host_command(roster, options, role);
    else
        make_cuda_command(roster, options, role);
    role->must =
        id == ROSTER_HOST || (id >= ROSTER_CUDA && !role->engine.spare && options->engines.must &&
                              options->engines.devices[role->device]);
    role->home = &roster->home;
    role->metrics = options->metrics;
    role->start_max_ns = START_MAX_NS + (arena_bytes(options->arena) >> 30) * START_GIB_NS;
    role->heartbeat_ns = (uint64_t)options->heartbeat_ns;
    role->backoff_max_ns = (uint64_t)options->backoff_max_ns;
}

/* Without a CUDA engine's program `auto` means the host alone. */
static enum error find_programs(struct roster *roster, struct supervisor_options *options,
                                struct failure *failure)
{
    enum error error = engine_command_find(options->host_path, ENGINE_HOST_PROGRAM, "engine-path",
                                           roster->host_path, failure);
    if (error != ERROR_NONE || !options->engines.cuda)
        return error;
    error = engine_command_find(options->cuda_path, ENGINE_CUDA_PROGRAM, "engine-cuda-path",
                                roster->cuda_path, failure);
    bool needed = options->engines.must || options->cuda_path != NULL;
    if (error != ERROR_NOT_FOUND || needed)
        return error;
    options->engines = (struct engine_choice){0};
    log_line(LOG_INFO, "no CUDA engine is installed: the host computes alone", "path", LOG_STR,
             roster->cuda_path, NULL);
    return ERROR_NONE;
}

static void write_numbers(struct roster *roster, const struct supervisor_options *options)
{
    snprintf(roster->threads, sizeof roster->threads, "%d", options->threads);
    snprintf(roster->scratch_max, sizeof roster->scratch_max, "%lld",
             (long long)options->scratch_max_bytes);
    snprintf(roster->device_memory_max, sizeof roster->device_memory_max, "%lld",
             (long long)options->device_memory_max_bytes);
}

enum error roster_make(struct roster *roster, struct supervisor_options *options, int event_fd,
                       void (*on_ended)(struct engine_process *process), void *context,
                       struct failure *failure)
{
    enum error error = find_programs(roster, options, failure);
    if (error != ERROR_NONE)
        return error;
    write_numbers(roster, options);
    roster->home = (struct engine_process_home){
        .loop = options->loop,
        .queue = options->queue,
        .arena = options->arena,
        .event_fd = event_fd,
        .spawner = options->spawner,
        .confine = options->confine,
        .version = options->version,
        .on_ended = on_ended,
        .context = context,
    };
    for (int id = 0; id < ROSTER_ROLES; id++)
        set_up_role(roster, options, (enum roster_id)id);
    return ERROR_NONE;
}

/* ---- Looking ---- */

struct role *roster_own(struct roster *roster, int device)
{
    assert(device >= 0 && device < ENGINE_DEVICES_MAX);
    return &roster->roles[ROSTER_CUDA + device];
}

struct role *roster_spare(struct roster *roster, int device, int index)
{
    assert(device >= 0 && device < ENGINE_DEVICES_MAX);
    assert(index >= 0 && index < SUPERVISOR_SPARES_MAX);
    return &roster->roles[ROSTER_SPARE_CUDA + device * SUPERVISOR_SPARES_MAX + index];
}

int roster_spare_index(const struct role *spare)
{
    assert(spare->engine.spare && spare->engine.device_class == QUEUE_CUDA);
    return (spare->engine.number - ROSTER_SPARE_CUDA) % SUPERVISOR_SPARES_MAX;
}

bool roster_is_own(const struct role *role)
{
    return role->engine.device_class == QUEUE_CUDA && !role->engine.spare;
}
