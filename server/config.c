/* server/config.c: see config.h. Threads: the starting thread. */
#include "server/config.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "gpu/engine.h"
#include "server/listeners.h"

#define FIELD(name) offsetof(struct config, name)
#define S(seconds) ((int64_t)(seconds)*INT64_C(1000000000))
#define MS(milliseconds) ((int64_t)(milliseconds)*INT64_C(1000000))
#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)

static const struct option_row rows[] = {
    {.flag = "config",
     .kind = OPTION_TEXT,
     .offset = FIELD(config),
     .placeholder = "FILE",
     .help = "Read further options from FILE, lines of `key = value`."},
    /* Listeners */
    {.flag = "listen",
     .kind = OPTION_LIST,
     .offset = FIELD(listen),
     .initial = "127.0.0.1:8000",
     .max = LISTENERS_MAX - 1,
     .placeholder = "HOST:PORT|unix:PATH",
     .help = "Where to serve: an address and a port (0 picks a free one), [::1]:8000 for IPv6, "
             "[::]:8000 for every address of both families, or a unix socket. May be given several "
             "times."},
    {.flag = "open",
     .kind = OPTION_BOOL,
     .offset = FIELD(open),
     .initial = "false",
     .help = "Listen beyond loopback and unix sockets without --token-file or --tls-client-ca: a "
             "gateway, or the network, keeps strangers out."},
    {.flag = "allowed-hosts",
     .kind = OPTION_LIST,
     .offset = FIELD(allowed_hosts),
     .placeholder = "NAME",
     .help = "Names in the Host field, without port, that loopback listeners serve besides "
             "localhost and loopback addresses; others are answered 421."},
    {.flag = "cors-origins",
     .kind = OPTION_LIST,
     .offset = FIELD(cors_origins),
     .placeholder = "ORIGIN",
     .help = "Sites whose pages may use this service, as https://app.example or "
             "http://localhost:3000; pages of others are answered 403."},
    {.flag = "tls-cert",
     .kind = OPTION_TEXT,
     .offset = FIELD(tls_cert),
     .placeholder = "FILE",
     .help = "Serve TLS on every TCP listener, with the certificate, and its chain, in this PEM "
             "file. Read anew at SIGHUP, as the two below."},
    {.flag = "tls-key",
     .kind = OPTION_TEXT,
     .offset = FIELD(tls_key),
     .placeholder = "FILE",
     .help = "The certificate's key, in a PEM file that others can neither read nor write."},
    {.flag = "tls-client-ca",
     .kind = OPTION_TEXT,
     .offset = FIELD(tls_client_ca),
     .placeholder = "FILE",
     .help = "Only clients with a certificate of a CA in this PEM file may connect by TCP. The CN "
             "of its subject is the client's name."},
    {.flag = "token-file",
     .kind = OPTION_TEXT,
     .offset = FIELD(token_file),
     .placeholder = "FILE",
     .help = "Only clients with a token in this file may come in. A line is NAME ROLE[,ROLE...] "
             "sha256:HEX, and invertd --new-token NAME makes one. Read anew at SIGHUP, and when "
             "it changes."},
    {.flag = "token-check",
     .kind = OPTION_DURATION,
     .offset = FIELD(token_check_ns),
     .initial = "10s",
     .min = MS(100),
     .max = S(3600),
     .placeholder = "DURATION",
     .help = "How often it is looked whether the token file has changed."},
    {.flag = "proxy-protocol",
     .kind = OPTION_LIST,
     .offset = FIELD(proxy_protocol),
     .placeholder = "ADDRESS[/BITS]",
     .help = "Addresses and networks of proxies: each TCP connection from there begins with a "
             "header of the PROXY protocol, version 2, whose client is the one that counts."},
    {.flag = "metrics-listen",
     .kind = OPTION_TEXT,
     .offset = FIELD(metrics_listen),
     .placeholder = "HOST:PORT|unix:PATH",
     .help = "Serve /metrics, /livez and /readyz here instead of on the main listener."},
    {.flag = "port-file",
     .kind = OPTION_TEXT,
     .offset = FIELD(port_file),
     .placeholder = "FILE",
     .help = "Write the first port that is listened on to FILE once the service listens. A "
             "symbolic link is refused."},
    /* Size */
    {.flag = "loops",
     .kind = OPTION_INT,
     .offset = FIELD(loops),
     .initial = "0",
     .min = 0,
     .max = CONFIG_LOOPS_MAX,
     .placeholder = "COUNT",
     .help = "Event loops that serve HTTP, one thread each; 0: half as many as cores."},
    {.flag = "threads",
     .kind = OPTION_INT,
     .offset = FIELD(threads),
     .initial = "0",
     .min = 0,
     .max = 1024,
     .placeholder = "COUNT",
     .help = "Threads of the host engine that compute; 0: one a core."},
    {.flag = "pool-threads",
     .kind = OPTION_INT,
     .offset = FIELD(pool_threads),
     .initial = "0",
     .min = 0,
     .max = 256,
     .placeholder = "COUNT",
     .help = "Threads that compress, inflate and convert long bodies; 0: a quarter as many as "
             "cores."},
    {.flag = "pool-max",
     .kind = OPTION_INT,
     .offset = FIELD(pool_max),
     .initial = "1024",
     .min = 1,
     .max = 1 << 20,
     .placeholder = "COUNT",
     .help = "Tasks that may wait for those threads; further requests are answered 503."},
    {.flag = "arena-size",
     .kind = OPTION_BYTES,
     .offset = FIELD(arena_size_bytes),
     .initial = "0",
     .min = 0,
     .max = 16 * TIB,
     .placeholder = "BYTES",
     .help = "Memory for bodies, matrices and answers, shared with the engines, at least 16MiB; 0: "
             "1GiB, or 8GiB where a CUDA engine is to run, but a quarter of the memory at most."},
    {.flag = "connections-max",
     .kind = OPTION_INT,
     .offset = FIELD(connections_max),
     .initial = "4096",
     .min = 1,
     .max = 1 << 20,
     .placeholder = "COUNT",
     .help = "Open connections; further ones are answered 503 and closed."},
    {.flag = "streams-max",
     .kind = OPTION_INT,
     .offset = FIELD(streams_max),
     .initial = "256",
     .min = 0,
     .max = 1 << 20,
     .placeholder = "COUNT",
     .reload = true,
     .help = "Answers that are streams of events and have not ended; further ones are answered "
             "503."},
    {.flag = "queue-max",
     .kind = OPTION_INT,
     .offset = FIELD(queue_max),
     .initial = "16384",
     .min = 1,
     .max = 1 << 24,
     .placeholder = "COUNT",
     .reload = true,
     .help = "Requests that arrive, wait or run; further ones are answered 503."},
    {.flag = "client-requests-max",
     .kind = OPTION_INT,
     .offset = FIELD(client_requests_max),
     .initial = "0",
     .min = 0,
     .max = 1 << 24,
     .placeholder = "COUNT",
     .reload = true,
     .help =
         "Requests of one client that wait or run; further ones are answered 429; 0: no limit. A "
         "client is its name, where it has one, or its address. Behind a proxy all clients have "
         "one address, but with --proxy-protocol."},
    {.flag = "client-bytes-max",
     .kind = OPTION_BYTES,
     .offset = FIELD(client_bytes_max),
     .initial = "0",
     .min = 0,
     .max = 1 * TIB,
     .placeholder = "BYTES",
     .reload = true,
     .help = "Arena bytes that the requests of one client may hold together; further ones wait "
             "until no other client's do; 0: half of the arena."},
    {.flag = "request-max",
     .kind = OPTION_BYTES,
     .offset = FIELD(request_max_bytes),
     .initial = "256MiB",
     .min = 1 * KIB,
     .max = 1 * TIB,
     .placeholder = "BYTES",
     .reload = true,
     .help = "Body of a request, as sent and once inflated; a longer one is answered 413."},
    /* Jobs */
    {.flag = "data-dir",
     .kind = OPTION_TEXT,
     .offset = FIELD(data_dir),
     .placeholder = "FOLDER|none",
     .help =
         "Keep jobs in FOLDER, which is made, and which others must not be able to write; none: "
         "take no jobs. Default: $STATE_DIRECTORY, $XDG_STATE_HOME/invertd or "
         "~/.local/state/invertd; where that cannot be used, no jobs are taken."},
    {.flag = "result-ttl",
     .kind = OPTION_DURATION,
     .offset = FIELD(result_ttl_ns),
     .initial = "86400s",
     .min = S(1),
     .max = S(366 * 86400),
     .placeholder = "DURATION",
     .help = "How long a job's result is kept once it has ended."},
    {.flag = "job-request-max",
     .kind = OPTION_BYTES,
     .offset = FIELD(job_request_max_bytes),
     .initial = "128GiB",
     .min = 1 * KIB,
     .max = 16 * TIB,
     .placeholder = "BYTES",
     .help = "Body of a job that is written to disk as it comes; a longer one is answered 413."},
    {.flag = "spool-max",
     .kind = OPTION_BYTES,
     .offset = FIELD(spool_max_bytes),
     .initial = "0",
     .min = 0,
     .max = 1024 * TIB,
     .placeholder = "BYTES",
     .help =
         "Disk that bodies and results of all jobs may take; past it, 507; 0: what is free. One "
         "client's may take a quarter of what is free, unless its token says otherwise."},
    {.flag = "allow-callbacks",
     .kind = OPTION_LIST,
     .offset = FIELD(allow_callbacks),
     .placeholder = "HOST[:PORT]",
     .help = "Hosts that jobs may name as callback: names, addresses or ADDRESS/BITS; ports 80 and "
             "443 if none is given. An address that is not public must be listed itself."},
    {.flag = "callback-ca",
     .kind = OPTION_TEXT,
     .offset = FIELD(callback_ca),
     .placeholder = "FILE",
     .help = "Authorities, in PEM, that are trusted for https callbacks in place of the system's."},
    {.flag = "callback-retry",
     .kind = OPTION_DURATION,
     .offset = FIELD(callback_retry_ns),
     .initial = "5s",
     .min = MS(10),
     .max = S(3600),
     .placeholder = "DURATION",
     .help = "Pause after a callback first fails; it doubles, up to an hour, for a day."},
    /* Deadlines */
    {.flag = "header-timeout",
     .kind = OPTION_DURATION,
     .offset = FIELD(header_timeout_ns),
     .initial = "10s",
     .min = MS(10),
     .max = S(3600),
     .placeholder = "DURATION",
     .reload = true,
     .help = "A connection without a complete request header after this is closed."},
    {.flag = "body-timeout",
     .kind = OPTION_DURATION,
     .offset = FIELD(body_timeout_ns),
     .initial = "30s",
     .min = MS(10),
     .max = S(86400),
     .placeholder = "DURATION",
     .reload = true,
     .help = "A body that takes longer than this, plus one second a MiB, is answered 408; while it "
             "waits for memory, time is not counted."},
    {.flag = "body-rate-min",
     .kind = OPTION_BYTES,
     .offset = FIELD(body_rate_min),
     .initial = "4KiB",
     .min = 0,
     .max = 1 * TIB,
     .placeholder = "BYTES",
     .reload = true,
     .help = "A body of which fewer bytes a second come over any 10 seconds is answered 408; 0: no "
             "limit."},
    {.flag = "request-timeout",
     .kind = OPTION_DURATION,
     .offset = FIELD(request_timeout_ns),
     .initial = "60s",
     .min = MS(1),
     .max = S(86400),
     .placeholder = "DURATION",
     .reload = true,
     .help = "A request that has waited and run for longer is answered 504, unless it asks for "
             "another `timeout`."},
    {.flag = "send-timeout",
     .kind = OPTION_DURATION,
     .offset = FIELD(send_timeout_ns),
     .initial = "30s",
     .min = MS(10),
     .max = S(86400),
     .placeholder = "DURATION",
     .reload = true,
     .help = "A client that takes longer than this, plus one second a MiB, to read its answer is "
             "cut off."},
    {.flag = "idle-timeout",
     .kind = OPTION_DURATION,
     .offset = FIELD(idle_timeout_ns),
     .initial = "75s",
     .min = MS(10),
     .max = S(86400),
     .placeholder = "DURATION",
     .reload = true,
     .help = "A connection without a request for this long is closed."},
    /* Batches */
    {.flag = "batch-wait-us",
     .kind = OPTION_INT,
     .offset = FIELD(batch_wait_us),
     .initial = "0",
     .min = 0,
     .max = 1000000,
     .placeholder = "MICROSECONDS",
     .help = "How long a batch waits for company while an engine is free; 0: not at all."},
    {.flag = "batch-matrices-max",
     .kind = OPTION_INT,
     .offset = FIELD(batch_matrices_max),
     .initial = "0",
     .min = 0,
     .max = 1 << 24,
     .placeholder = "COUNT",
     .help =
         "Matrices in one batch; 0: 4096 on the CPU, 262144 on a GPU, where a batch costs a start "
         "whatever it holds."},
    {.flag = "batch-bytes-max",
     .kind = OPTION_BYTES,
     .offset = FIELD(batch_bytes_max),
     .initial = "64MiB",
     .min = 1,
     .max = 16 * TIB,
     .placeholder = "BYTES",
     .help = "Inputs and outputs of one batch, which holds one matrix at least."},
    {.flag = "batch-cost-max",
     .kind = OPTION_DURATION,
     .offset = FIELD(batch_cost_ns),
     .initial = "2ms",
     .min = 1000,
     .max = S(60),
     .placeholder = "DURATION",
     .help = "Predicted time at which a batch is closed."},
    {.flag = "long-cost",
     .kind = OPTION_DURATION,
     .offset = FIELD(long_cost_ns),
     .initial = "20ms",
     .min = 1000,
     .max = S(60),
     .placeholder = "DURATION",
     .help = "Requests predicted to take longer run in slices next to the others."},
    {.flag = "in-flight",
     .kind = OPTION_INT,
     .offset = FIELD(in_flight),
     .initial = "3",
     .min = 1,
     .max = ENGINE_BATCH_SLOTS,
     .placeholder = "COUNT",
     .help = "Batches under way at once in an engine, of each lane."},
    /* Engines */
    {.flag = "engine",
     .kind = OPTION_TEXT,
     .offset = FIELD(engine),
     .initial = "auto",
     .placeholder = "auto|host|cuda[:LIST][+host]",
     .help = "Which engines to start. The host's always runs, for what the others do not take. "
             "auto: CUDA too, on every device that answers; cuda: the same, but device 0 must "
             "answer; cuda:0,2: on these devices, which must answer. With +host the host helps "
             "CUDA, and a matrix may get either's bits."},
    {.flag = "engine-path",
     .kind = OPTION_TEXT,
     .offset = FIELD(engine_path),
     .placeholder = "FILE",
     .help = "The host engine's program, if not next to this one."},
    {.flag = "engine-cuda-path",
     .kind = OPTION_TEXT,
     .offset = FIELD(engine_cuda_path),
     .placeholder = "FILE",
     .help = "The CUDA engine's program, if not next to this one."},
    {.flag = "engine-scratch-max",
     .kind = OPTION_BYTES,
     .offset = FIELD(engine_scratch_max_bytes),
     .initial = "0",
     .min = 0,
     .max = 64 * TIB,
     .placeholder = "BYTES",
     .help = "Working memory of the host engine, next to the arena, at least 1MiB; a matrix that "
             "needs more is answered 413; 0: half of what the machine has free at the start."},
    {.flag = "device-memory-max",
     .kind = OPTION_BYTES,
     .offset = FIELD(device_memory_max_bytes),
     .initial = "0",
     .min = 0,
     .max = 64 * TIB,
     .placeholder = "BYTES",
     .help = "Working memory of each CUDA engine on its device, at least 1MiB; a matrix that needs "
             "more is answered 413; 0: half of the device's memory. A spare engine takes some only "
             "for what it runs."},
    {.flag = "cuda-spares",
     .kind = OPTION_INT,
     .offset = FIELD(cuda_spares),
     .initial = "3",
     .min = 0,
     .max = SUPERVISOR_SPARES_MAX,
     .placeholder = "COUNT",
     .help =
         "CUDA engines kept up on each device next to its own, which hold 1 GiB of the device's "
         "memory and 0.2 GiB of the host's each (H200). One takes over at once when that ends; "
         "the others then run what "
         "may have killed it, a request at a time. Those that lack are started then, which "
         "takes seconds."},
    {.flag = "engine-heartbeat",
     .kind = OPTION_DURATION,
     .offset = FIELD(engine_heartbeat_ns),
     .initial = "2s",
     .min = MS(200),
     .max = S(3600),
     .placeholder = "DURATION",
     .help = "An engine that is silent for longer is replaced."},
    {.flag = "engine-backoff-max",
     .kind = OPTION_DURATION,
     .offset = FIELD(engine_backoff_max_ns),
     .initial = "10s",
     .min = MS(10),
     .max = S(3600),
     .placeholder = "DURATION",
     .help = "Longest pause before an engine that keeps dying, or whose device is out of order, "
             "is started again."},
    {.flag = "batch-deadline",
     .kind = OPTION_DURATION,
     .offset = FIELD(batch_deadline_ns),
     .initial = "2s",
     .min = MS(10),
     .max = S(86400),
     .placeholder = "DURATION",
     .help = "An engine that takes longer for a batch, and longer than 20 times what difficult "
             "matrices are predicted to take, is replaced. While the batch waits for a device's "
             "memory it may take 4 s more, and as long as the batches that may hold it."},
    {.flag = "cpu",
     .kind = OPTION_TEXT,
     .offset = FIELD(cpu),
     .placeholder = "NAME",
     .help = "Use the host kernels of this processor family (Haswell, SkylakeX, Zen, ...), so "
             "that different machines answer with the same bits."},
    {.flag = "fault",
     .kind = OPTION_TEXT,
     .offset = FIELD(fault),
     .placeholder = "NAME",
     .help = "The fault that a test build of the host engine should have.",
     .for_tests = true},
    {.flag = "fault-cuda",
     .kind = OPTION_TEXT,
     .offset = FIELD(fault_cuda),
     .placeholder = "NAME",
     .help = "The fault that a test build of the CUDA engine should have.",
     .for_tests = true},
    /* Answers */
    {.flag = "compress-min",
     .kind = OPTION_BYTES,
     .offset = FIELD(compress_min_bytes),
     .initial = "1KiB",
     .min = 0,
     .max = 1 * TIB,
     .placeholder = "BYTES",
     .reload = true,
     .help = "Answers below this are never compressed."},
    {.flag = "compress-level",
     .kind = OPTION_INT,
     .offset = FIELD(compress_level),
     .initial = "1",
     .min = 1,
     .max = 9,
     .placeholder = "LEVEL",
     .reload = true,
     .help = "How hard to compress: 1 is fastest, 9 smallest."},
    /* Life */
    {.flag = "drain-delay",
     .kind = OPTION_DURATION,
     .offset = FIELD(drain_delay_ns),
     .initial = "0s",
     .min = 0,
     .max = S(3600),
     .placeholder = "DURATION",
     .reload = true,
     .help = "After SIGTERM, stay unready but serve for this long before refusing new work."},
    {.flag = "drain-timeout",
     .kind = OPTION_DURATION,
     .offset = FIELD(drain_timeout_ns),
     .initial = "30s",
     .min = MS(100),
     .max = S(86400),
     .placeholder = "DURATION",
     .reload = true,
     .help = "After refusing new work, finish what was admitted within this time, or exit with 1."},
    {.flag = "no-seccomp",
     .kind = OPTION_BOOL,
     .offset = FIELD(no_seccomp),
     .initial = "false",
     .help = "Do not give up the calls of the system that daemon and engines do not need."},
    /* Log */
    {.flag = "log-format",
     .kind = OPTION_CHOICE,
     .offset = FIELD(log_format),
     .initial = "json",
     .choices = "json|text",
     .help = "One JSON object a line, or text for people."},
    {.flag = "log-level",
     .kind = OPTION_CHOICE,
     .offset = FIELD(log_level),
     .initial = "info",
     .choices = "debug|info|warning|error",
     .reload = true,
     .help = "The least that is logged."},
    {.flag = "log-file",
     .kind = OPTION_TEXT,
     .offset = FIELD(log_file),
     .placeholder = "FILE",
     .help = "Log there instead of on stderr; SIGHUP opens it anew."},
    {.flag = "access-log",
     .kind = OPTION_TEXT,
     .offset = FIELD(access_log),
     .placeholder = "FILE",
     .help = "Write a JSON line for each request there; - is stderr; SIGHUP opens it anew."},
};

const struct option_table config_table = {
    .program = "invertd",
    .summary = "A daemon that inverts matrices over HTTP.",
    .prefix = "INVERTD",
    .rows = rows,
    .count = sizeof rows / sizeof rows[0],
    .foreign = "INVERTD_SERVER", /* of invert, the client */
};

/* Flags that are not options: they have no variable, no file key and no value. */
static const struct {
    const char *flag;
    enum config_task task;
    const char *help;
} tasks[] = {
    {"--help", CONFIG_HELP, "Print this and exit."},
    {"--version", CONFIG_VERSION, "Print the version and exit."},
    {"--print-config", CONFIG_PRINT, "Print the configuration as a file for --config and exit."},
    {"--new-token", CONFIG_NEW_TOKEN,
     "Print a token for NAME [ROLE,...] (infer), and its line for the token file, and exit."},
    {"--print-options-markdown", CONFIG_PRINT_MARKDOWN,
     "Print the table of options as Markdown and exit."},
};
#define TASK_COUNT (sizeof tasks / sizeof tasks[0])

/* Takes the first task out of argv; CONFIG_SERVE when there is none. */
static enum config_task take_task(int *argc, char **argv)
{
    for (int i = 1; i < *argc; i++)
        for (size_t k = 0; k < TASK_COUNT; k++)
            if (strcmp(argv[i], tasks[k].flag) == 0 || (k == 0 && strcmp(argv[i], "-h") == 0)) {
                memmove(&argv[i], &argv[i + 1], (size_t)(*argc - i) * sizeof argv[0]);
                (*argc)--;
                return tasks[k].task;
            }
    return CONFIG_SERVE;
}

enum error config_read(int argc, char **argv, char *const *environment, struct config *config,
                       enum config_task *task, struct failure *failure)
{
    *config = (struct config){0};
    *task = take_task(&argc, argv);
    if (*task != CONFIG_SERVE && *task != CONFIG_PRINT)
        return ERROR_NONE;
    enum error error = option_parse(&config_table, argc, argv, environment, config, failure);
    if (error != ERROR_NONE)
        return error;
    error = config_check(config, failure);
    if (error != ERROR_NONE)
        config_free(config);
    return error;
}

void config_free(struct config *config)
{
    option_free(&config_table, config);
}

void config_print_help(FILE *stream)
{
    option_print_help(&config_table, stream);
    fputc('\n', stream);
    for (size_t k = 0; k < TASK_COUNT; k++)
        fprintf(stream, "  %s\n      %s\n", tasks[k].flag, tasks[k].help);
}
