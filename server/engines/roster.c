/* server/engines/roster.c: see roster.h. */
#include "server/engines/roster.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

#define START_MAX_NS (20 * CLOCK_S)
#define START_GIB_NS CLOCK_S /* more for each GiB of arena, which a CUDA engine pins */

static void make_host_command(const struct roster *roster, const struct supervisor_options *options,
                              struct seat *seat)
{
    struct engine_command *command = &seat->command;
    engine_command_add(command, roster->host_path);
    engine_command_add_flag(command, "--threads", roster->threads);
    engine_command_add_flag(command, "--log-format", options->log_format);
    engine_command_add_flag(command, "--log-level", options->log_level);
    engine_command_add_flag(command, "--scratch-max",
                            options->scratch_max_bytes > 0 ? roster->scratch_max : NULL);
    engine_command_add_flag(command, "--fault", options->host_fault);
}

static void make_cuda_command(const struct roster *roster, const struct supervisor_options *options,
                              struct seat *seat)
{
    struct engine_command *command = &seat->command;
    engine_command_add(command, roster->cuda_path);
    engine_command_add_flag(command, "--device", seat->device_text);
    engine_command_add_flag(command, "--device-memory-max",
                            options->device_memory_max_bytes > 0 ? roster->device_memory_max
                                                                 : NULL);
    engine_command_add_flag(command, "--log-format", options->log_format);
    engine_command_add_flag(command, "--log-level", options->log_level);
    engine_command_add_flag(command, "--fault", options->cuda_fault);
}

/* Who sits there: the role's place and name. */
static void set_up_role(struct seat *seat, enum roster_id id)
{
    int spare = (int)id - ROSTER_SPARE_CUDA;
    bool is_host = id < ROSTER_CUDA, is_spare = id == ROSTER_SPARE_HOST || spare >= 0;
    if (is_host) {
        snprintf(seat->name, sizeof seat->name, is_spare ? "host-spare" : "host");
    } else {
        int number = spare % SUPERVISOR_SPARES_MAX + 1;
        seat->device = is_spare ? spare / SUPERVISOR_SPARES_MAX : (int)id - ROSTER_CUDA;
        snprintf(seat->device_text, sizeof seat->device_text, "%d", seat->device);
        if (!is_spare)
            snprintf(seat->name, sizeof seat->name, "cuda:%d", seat->device);
        else if (number == 1)
            snprintf(seat->name, sizeof seat->name, "cuda:%d-spare", seat->device);
        else
            snprintf(seat->name, sizeof seat->name, "cuda:%d-spare-%d", seat->device, number);
    }
    seat->role =
        (struct queue_engine){is_host ? QUEUE_HOST : QUEUE_CUDA, is_spare, (int)id, seat->name};
}

static void set_up_seat(struct roster *roster, const struct supervisor_options *options,
                        enum roster_id id)
{
    struct seat *seat = &roster->seats[id];
    set_up_role(seat, id);
    if (seat->role.place == QUEUE_HOST)
        make_host_command(roster, options, seat);
    else
        make_cuda_command(roster, options, seat);
    seat->must =
        id == ROSTER_HOST || (id >= ROSTER_CUDA && !seat->role.spare && options->engines.must &&
                              options->engines.devices[seat->device]);
    seat->home = &roster->home;
    seat->metrics = options->metrics;
    seat->start_max_ns = START_MAX_NS + (arena_bytes(options->arena) >> 30) * START_GIB_NS;
    seat->heartbeat_ns = (uint64_t)options->heartbeat_ns;
    seat->backoff_max_ns = (uint64_t)options->backoff_max_ns;
}

/* Without a CUDA engine's program `auto` means the host alone. */
static enum error find_programs(struct roster *roster, struct supervisor_options *options,
                                struct failure *failure)
{
    enum error error = engine_command_find(options->host_path, "invertd-host", "engine-path",
                                           roster->host_path, failure);
    if (error != ERROR_NONE || !options->engines.cuda)
        return error;
    error = engine_command_find(options->cuda_path, "invertd-cuda", "engine-cuda-path",
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
    enum error error = engine_command_make_environment(options->cpu, &roster->environment, failure);
    if (error == ERROR_NONE)
        error = find_programs(roster, options, failure);
    if (error != ERROR_NONE)
        return error;
    write_numbers(roster, options);
    roster->home = (struct engine_process_home){
        .loop = options->loop,
        .queue = options->queue,
        .arena = options->arena,
        .environment = roster->environment.entries,
        .event_fd = event_fd,
        .version = options->version,
        .on_ended = on_ended,
        .context = context,
    };
    for (int id = 0; id < ROSTER_SEATS; id++)
        set_up_seat(roster, options, (enum roster_id)id);
    return ERROR_NONE;
}

void roster_free(struct roster *roster)
{
    engine_command_free_environment(&roster->environment);
}

/* ---- Looking ---- */

struct seat *roster_own(struct roster *roster, int device)
{
    return &roster->seats[ROSTER_CUDA + device];
}

struct seat *roster_spare(struct roster *roster, int device, int index)
{
    return &roster->seats[ROSTER_SPARE_CUDA + device * SUPERVISOR_SPARES_MAX + index];
}

int roster_spare_index(const struct seat *spare)
{
    return (spare->role.number - ROSTER_SPARE_CUDA) % SUPERVISOR_SPARES_MAX;
}

bool roster_is_own(const struct seat *seat)
{
    return seat->role.place == QUEUE_CUDA && !seat->role.spare;
}
