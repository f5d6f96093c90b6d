/* gpu/host/main.c: invertd-host, the engine process of the CPU. See gpu/engine.h for the contract.
 *
 * Started by the front, with the descriptors of enum engine_fd. It maps the arena and the lanes,
 * checks that both were built from one contract, and serves each lane with a pool of workers of its
 * own: the long lane's are as many, and nice, so that long work never holds a short worker. The
 * lanes share one budget of scratch memory.
 *
 * Threads: main waits for the control pipe's end; one beats; the lanes have their workers.
 * The process ends by _exit when the pipe ends, or with the front (PR_SET_PDEATHSIG); nothing
 * needs tidying, for all that outlives it belongs to the front.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "gpu/engine.h"
#include "gpu/host/fault.h"
#include "gpu/host/lane.h"
#include "gpu/host/lapack.h"
#include "gpu/host/scratch.h"
#include "gpu/host/self_test.h"
#include "version.h"

#define THREADS_ASKED_MAX 1024
/* Of a lane. OpenBLAS lends each caller a buffer from a table sized for its build's count of
 * processors, 128 in distributions; more threads than that would wait for one another, or fail. */
#define THREADS_MAX 128
#define SCRATCH_LEAST (INT64_C(1) << 30)
#define LONG_NICE 10
/* The short lane polls this long before it sleeps; with few cores the poll keeps the front from
 * running. The long lane never polls. */
#define SPIN_NS 20000
#define SPIN_FEW_CORES_NS 4000
#define FEW_CORES 4

struct settings {
    int threads;
    int64_t scratch_max; /* 0: by what the machine has */
    enum log_format log_format;
    enum log_level log_level;
    bool self_test;
    struct host_faults faults;
    bool has_faults;
};

struct process {
    struct settings settings;
    struct engine_shared *shared;
    unsigned char *arena;
    struct host_budget *budget;
    struct host_lane *lanes[ENGINE_LANES];
};

static int online_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online < THREADS_ASKED_MAX ? (int)online : 1;
}

static const struct option flags[] = {
    {"threads", required_argument, NULL, 't'},
    {"scratch-max", required_argument, NULL, 'm'},
    {"log-format", required_argument, NULL, 'o'},
    {"log-level", required_argument, NULL, 'l'},
    {"self-test", no_argument, NULL, 's'},
#ifdef ENGINE_FAULTS
    {"fault", required_argument, NULL, 'f'},
#endif
    {0},
};

/* Half of the memory that is free now; at least SCRATCH_LEAST. */
static int64_t default_scratch_max(void)
{
    long long kilobytes = 0;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "MemAvailable: %lld kB", &kilobytes) == 1)
            break;
    }
    if (file)
        fclose(file);
    int64_t half = 0;
    if (!checked_mul(kilobytes, 1024 / 2, &half))
        half = 0;
    return half > SCRATCH_LEAST ? half : SCRATCH_LEAST;
}

static bool parse_number(const char *text, long long most, const char *complaint, int64_t *number)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < 0 || value > most) {
        log_line(LOG_ERROR, complaint, "value", LOG_STR, text, NULL);
        return false;
    }
    *number = value;
    return true;
}

/* The index of a word in a list that ends with NULL; -1 when it is none of them. */
static int parse_word(const char *text, const char *const *words, const char *complaint)
{
    for (int i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0)
            return i;
    }
    log_line(LOG_ERROR, complaint, "value", LOG_STR, text, NULL);
    return -1;
}

static bool parse_threads(const char *text, struct settings *settings)
{
    int64_t threads;
    if (!parse_number(text, THREADS_ASKED_MAX, "bad option: --threads takes 0 (one a core) to 1024",
                      &threads))
        return false;
    settings->threads = (int)threads;
    return true;
}

static bool parse_log_format(const char *text, struct settings *settings)
{
    static const char *const names[] = {[LOG_JSON] = "json", [LOG_TEXT] = "text", NULL};
    int found = parse_word(text, names, "bad option: --log-format takes json or text");
    settings->log_format = found < 0 ? LOG_JSON : (enum log_format)found;
    return found >= 0;
}

static bool parse_log_level(const char *text, struct settings *settings)
{
    static const char *const names[] = {[LOG_DEBUG] = "debug",
                                        [LOG_INFO] = "info",
                                        [LOG_WARNING] = "warning",
                                        [LOG_ERROR] = "error",
                                        NULL};
    int found =
        parse_word(text, names, "bad option: --log-level takes debug, info, warning or error");
    settings->log_level = found < 0 ? LOG_INFO : (enum log_level)found;
    return found >= 0;
}

#ifdef ENGINE_FAULTS
static bool parse_faults(const char *text, struct settings *settings)
{
    settings->has_faults = host__faults_parse(text, &settings->faults);
    if (!settings->has_faults)
        log_line(LOG_ERROR, "bad option: --fault takes oom:, poison:, hang:, slow:", "value",
                 LOG_STR, text, NULL);
    return settings->has_faults;
}
#endif

static bool parse_flag(int flag, struct settings *settings)
{
    switch (flag) {
    case 't':
        return parse_threads(optarg, settings);
    case 'm':
        return parse_number(optarg, INT64_MAX,
                            "bad option: --scratch-max takes bytes, or 0 (half of what is free)",
                            &settings->scratch_max);
    case 'o':
        return parse_log_format(optarg, settings);
    case 'l':
        return parse_log_level(optarg, settings);
    case 's':
        settings->self_test = true;
        return true;
#ifdef ENGINE_FAULTS
    case 'f':
        return parse_faults(optarg, settings);
#endif
    default:
        return false; /* getopt has told */
    }
}

static bool parse(int argc, char **argv, struct settings *settings)
{
    int flag;
    settings->log_level = LOG_INFO;
    while ((flag = getopt_long(argc, argv, "", flags, NULL)) != -1) {
        if (!parse_flag(flag, settings))
            return false;
    }
    if (optind < argc)
        log_line(LOG_ERROR, "bad option: stray argument", "value", LOG_STR, argv[optind], NULL);
    return optind == argc;
}

/* Nothing but the contract's descriptors stays open; stdout becomes /dev/null. */
static void close_the_rest(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, STDOUT_FILENO);
    close_range(ENGINE_FD_EVENT + 1, ~0U, 0);
}

static void *map_descriptor(int fd, uint64_t bytes, const char *what)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || (uint64_t)status.st_size < bytes) {
        log_line(LOG_ERROR, "a shared region is missing or too short", "region", LOG_STR, what,
                 "bytes", LOG_I64, (int64_t)bytes, NULL);
        return NULL;
    }
    void *map = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        log_line(LOG_ERROR, "cannot map a shared region", "region", LOG_STR, what, "error", LOG_STR,
                 strerror(errno), NULL);
        return NULL;
    }
    return map;
}

/* Says who we are; false when the front was built from another contract. */
static bool greet(struct engine_shared *shared)
{
    shared->engine_contract_hash = engine_contract_hash();
    snprintf(shared->engine_version, sizeof shared->engine_version, "%s", INVERTD_VERSION);
    snprintf(shared->device, sizeof shared->device, "host");
    snprintf(shared->model, sizeof shared->model, "%s", host__lapack_cpu());
    shared->device_count = 1;
    for (int i = 0; i < method_count(); i++) {
        for (int p = 0; p < PRECISION_COUNT; p++)
            shared->n_max[i][p] = method_at(i)->n_max;
    }
    if (shared->contract_hash == shared->engine_contract_hash)
        return true;
    char front[ENGINE_NAME_MAX];
    memcpy(front, shared->front_version, sizeof front);
    front[sizeof front - 1] = 0;
    log_line(LOG_ERROR, "front and engine were built from different contracts", "front_version",
             LOG_STR, front, "engine_version", LOG_STR, INVERTD_VERSION, NULL);
    atomic_store(&shared->ready, ENGINE_MISMATCH);
    return false;
}

static void *beat(void *context)
{
    struct engine_shared *shared = context;
    struct timespec pause = {0, ENGINE_HEARTBEAT_MS * (long)CLOCK_MS / 2};
    for (;;) {
        atomic_fetch_add(&shared->heartbeat, 1);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static bool start_lanes(struct process *process, int threads, int64_t spin_ns)
{
    struct failure failure = {0};
    int64_t scratch_max = process->settings.scratch_max;
    scratch_max = scratch_max > 0 ? scratch_max : default_scratch_max();
    if (host_budget_create(scratch_max, ENGINE_LANES * threads, &process->budget, &failure) !=
        ERROR_NONE) {
        log_line(LOG_ERROR, "cannot start", "detail", LOG_STR, failure.detail, NULL);
        return false;
    }
    for (int i = 0; i < ENGINE_LANES; i++) {
        bool is_long = i == ENGINE_LANE_LONG;
        struct host_lane_options options = {
            .lane = &process->shared->lanes[i],
            .arena = process->arena,
            .event_fd = ENGINE_FD_EVENT,
            .threads = threads,
            .nice = is_long ? LONG_NICE : 0,
            .spin_ns = is_long ? 0 : spin_ns,
            .budget = process->budget,
            .faults = process->settings.has_faults ? &process->settings.faults : NULL,
        };
        if (host_lane_create(&options, &process->lanes[i], &failure) != ERROR_NONE) {
            log_line(LOG_ERROR, "cannot start workers", "detail", LOG_STR, failure.detail, NULL);
            return false;
        }
    }
    return true;
}

/* Returns when the front has closed its end. */
static void wait_for_end(void)
{
    char byte;
    ssize_t got;
    do {
        got = read(ENGINE_FD_CONTROL, &byte, 1);
    } while (got > 0 || (got < 0 && errno == EINTR));
}

static int serve(struct process *process)
{
    struct engine_shared *shared = map_descriptor(ENGINE_FD_SHARED, sizeof *shared, "lanes");
    if (!shared || !greet(shared))
        return EXIT_FAILURE;
    process->shared = shared;
    process->arena = map_descriptor(ENGINE_FD_ARENA, shared->arena_bytes, "arena");
    int cores = online_cores();
    int threads = process->settings.threads > 0 ? process->settings.threads : cores;
    threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    pthread_t heart;
    if (!process->arena || pthread_create(&heart, NULL, beat, shared) != 0 ||
        !start_lanes(process, threads, cores < FEW_CORES ? SPIN_FEW_CORES_NS : SPIN_NS))
        return EXIT_FAILURE;
    atomic_store(&shared->ready, ENGINE_READY);
    wait_for_end();
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static struct process process;
    log_open(LOG_INFO, LOG_JSON, "invertd-host", NULL);
    if (!parse(argc, argv, &process.settings))
        return ENGINE_EXIT_BAD_OPTION;
    log_open(process.settings.log_level, process.settings.log_format, "invertd-host", NULL);
    host__lapack_init();
    if (process.settings.self_test) {
        printf("invertd-host %s, %s\n", INVERTD_VERSION, host__lapack_cpu());
        return host_self_test() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "invertd-host");
    /* The front ends us, also when the terminal signals the whole group. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    close_the_rest();
    _exit(serve(&process));
}
