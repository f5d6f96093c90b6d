/* server/config.h: the daemon's configuration: one table row an option, and what follows from it.
 *
 * Threads: filled once at the start; read-only afterwards.
 */
#ifndef SERVER_CONFIG_H
#define SERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"
#include "handlers/handlers.h"
#include "queue/queue.h"
#include "server/engines/choice.h"
#include "server/http/http.h"
#include "server/engines/supervisor.h"

#define CONFIG_LOOPS_MAX 64
#define CONFIG_ARENA_MIN (INT64_C(16) << 20)

struct config {
    struct option_list listen, allowed_hosts, cors_origins, proxy_protocol, allow_callbacks;
    char *config, *metrics_listen, *port_file, *tls_cert, *tls_key, *tls_client_ca, *token_file,
        *cpu, *log_file, *access_log, *data_dir, *callback_ca;
    char *engine, *engine_path, *engine_cuda_path, *fault, *fault_cuda;
    int log_format, log_level;
    bool open, no_seccomp;
    int64_t loops, threads, pool_threads, pool_max;
    int64_t arena_size_bytes, request_max_bytes, compress_min_bytes;
    int64_t connections_max, streams_max, queue_max, client_requests_max, client_bytes_max;
    int64_t engine_scratch_max_bytes, device_memory_max_bytes;
    int64_t callback_retry_ns;
    int64_t result_ttl_ns, job_request_max_bytes, spool_max_bytes;
    int64_t body_rate_min;
    int64_t header_timeout_ns, body_timeout_ns, request_timeout_ns, send_timeout_ns,
        idle_timeout_ns;
    int64_t batch_wait_us, batch_matrices_max, batch_bytes_max, batch_cost_ns, long_cost_ns,
        in_flight;
    int64_t engine_heartbeat_ns, batch_deadline_ns, engine_backoff_max_ns, cuda_spares;
    int64_t drain_delay_ns, drain_timeout_ns, token_check_ns;
    int64_t compress_level;
    struct engine_choice engines; /* what `engine` says */
    struct proxy_list proxies;    /* what `proxy_protocol` says */
};

extern const struct option_table config_table;

/* What the command line asks for besides, or instead of, serving. */
enum config_task {
    CONFIG_SERVE,
    CONFIG_HELP,
    CONFIG_VERSION,
    CONFIG_PRINT,
    CONFIG_PRINT_MARKDOWN,
    CONFIG_NEW_TOKEN /* for the rest of the command line */
};

/* Reads the command line, the environment and the file. BAD_OPTION: the failure names the option,
 * the value and what is allowed. For HELP, VERSION, PRINT_MARKDOWN and NEW_TOKEN the configuration
 * is not read. On any error *config holds nothing to free. */
ERROR_MUST_CHECK enum error config_read(int argc, char **argv, char *const *environment,
                                        struct config *config, enum config_task *task,
                                        struct failure *failure);
/* What the table cannot say; and what follows from options that are lists. */
ERROR_MUST_CHECK enum error config_check(struct config *config, struct failure *failure);
void config_free(struct config *config);
void config_print_help(FILE *stream);

/* The numbers that 0 stands for are filled in: cores is how many processors may be used. */
int config_loops(const struct config *config, int cores);
int config_pool_threads(const struct config *config, int cores);
struct queue_limits config_queue_limits(const struct config *config);
struct http_limits config_http_limits(const struct config *config);
struct handlers_limits config_handlers_limits(const struct config *config);
/* What of it is the configuration's. */
struct supervisor_options config_supervisor(const struct config *config, const char *version);
/* memory_bytes: what this process may use; has_gpu: a CUDA engine may come up. */
int64_t config_arena_bytes(const struct config *config, int64_t memory_bytes, bool has_gpu);

#endif
