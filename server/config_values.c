/* server/config_values.c: what follows from the configuration for each part of the daemon. Threads:
 * any; the configuration does not change meanwhile. */
#include "base/clock.h"
#include "base/confine.h"
#include "base/log.h"
#include "server/config.h"

#define ARENA_HOST (INT64_C(1) << 30)
#define ARENA_CUDA (INT64_C(8) << 30)
#define ARENA_SHARE 4 /* of the memory, at most one part in */

/* Matrices of a batch. On a GPU the start of a batch is to be short against even the smallest ones.
 */
#define HOST_MATRICES 4096
#define CUDA_MATRICES (1 << 18)

#define STAGING_BYTES (INT64_C(64) << 20) /* for the first parts of bodies, outside the arena */

static int at_least_one(int64_t count)
{
    return count < 1 ? 1 : (int)count;
}

int config_loops(const struct config *config, int cores)
{
    return at_least_one(config->loops != 0             ? config->loops
                        : cores / 2 < CONFIG_LOOPS_MAX ? cores / 2
                                                       : CONFIG_LOOPS_MAX);
}

int config_pool_threads(const struct config *config, int cores)
{
    return at_least_one(config->pool_threads != 0 ? config->pool_threads : cores / 4);
}

static int64_t matrices_max(const struct config *config, int64_t otherwise)
{
    return config->batch_matrices_max != 0 ? config->batch_matrices_max : otherwise;
}

struct queue_limits config_queue_limits(const struct config *config)
{
    return (struct queue_limits){
        .requests_max = config->queue_max,
        .client_requests_max = config->client_requests_max,
        .bytes_max = config->arena_size_bytes,
        .staging_bytes_max = STAGING_BYTES,
        .client_bytes_max =
            config->client_bytes_max != 0 ? config->client_bytes_max : config->arena_size_bytes / 2,
        .batch_wait_ns = config->batch_wait_us * (int64_t)CLOCK_US,
        .batch_matrices_max = {[QUEUE_HOST] = matrices_max(config, HOST_MATRICES),
                               [QUEUE_CUDA] = matrices_max(config, CUDA_MATRICES)},
        .batch_bytes_max = config->batch_bytes_max,
        .batch_cost_ns = config->batch_cost_ns,
        .long_cost_ns = config->long_cost_ns,
        .batch_deadline_ns = config->batch_deadline_ns,
        .in_flight = (int)config->in_flight,
        .shared = config->engines.shared,
    };
}

struct http_limits config_http_limits(const struct config *config)
{
    return (struct http_limits){
        .connections_max = config->connections_max,
        .header_timeout_ns = config->header_timeout_ns,
        .body_timeout_ns = config->body_timeout_ns,
        .body_rate_min = config->body_rate_min,
        .request_timeout_ns = config->request_timeout_ns,
        .send_timeout_ns = config->send_timeout_ns,
        .idle_timeout_ns = config->idle_timeout_ns,
    };
}

struct handlers_limits config_handlers_limits(const struct config *config)
{
    return (struct handlers_limits){
        .body_max_bytes = config->request_max_bytes,
        .job_max_bytes = config->job_request_max_bytes,
        .streams_max = config->streams_max,
        .compress_min_bytes = config->compress_min_bytes,
        .compress_level = (int)config->compress_level,
    };
}

static const char *const log_format_names[] = {[LOG_JSON] = "json", [LOG_TEXT] = "text"};
static const char *const log_level_names[] = {
    [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARNING] = "warning", [LOG_ERROR] = "error"};

struct supervisor_options config_supervisor(const struct config *config, const char *version)
{
    return (struct supervisor_options){
        .engines = config->engines,
        .cuda_spares = (int)config->cuda_spares,
        .confine = CONFINE_IS_BUILT && !config->no_seccomp,
        .host_path = config->engine_path,
        .cuda_path = config->engine_cuda_path,
        .host_fault = config->fault,
        .cuda_fault = config->fault_cuda,
        .threads = (int)config->threads,
        .cpu = config->cpu,
        .version = version,
        .heartbeat_ns = config->engine_heartbeat_ns,
        .backoff_max_ns = config->engine_backoff_max_ns,
        .scratch_max_bytes = config->engine_scratch_max_bytes,
        .device_memory_max_bytes = config->device_memory_max_bytes,
        .log_format = log_format_names[config->log_format],
        .log_level = log_level_names[config->log_level],
    };
}

int64_t config_arena_bytes(const struct config *config, int64_t memory_bytes, bool has_gpu)
{
    if (config->arena_size_bytes != 0)
        return config->arena_size_bytes;
    int64_t bytes = config->engines.cuda && has_gpu ? ARENA_CUDA : ARENA_HOST;
    int64_t max = memory_bytes / ARENA_SHARE / CONFIG_ARENA_MIN * CONFIG_ARENA_MIN;
    bytes = bytes < max ? bytes : max;
    return bytes > CONFIG_ARENA_MIN ? bytes : CONFIG_ARENA_MIN;
}
