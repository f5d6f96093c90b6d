/* gpu/host/main.c: invertd-host, the engine process of the CPU. See gpu/engine.h for the contract.
 *
 * Started by the front, with the descriptors of enum engine_fd. It maps the arena and the lanes,
 * checks that both were built from one contract, and serves each lane with a pool of workers of its
 * own: the long lane's are as many, and nice, so that long work never holds a short worker.
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

#include "base/clock.h"
#include "base/log.h"
#include "gpu/engine.h"
#include "gpu/host/fault.h"
#include "gpu/host/lane.h"
#include "gpu/host/lapack.h"
#include "gpu/host/self_test.h"
#include "version.h"

#define EXIT_BAD_OPTION 2
#define THREADS_MAX 1024
#define LONG_NICE 10
/* The short lane polls this long before it sleeps; with few cores the poll keeps the front from
 * running. The long lane never polls. */
#define SPIN_NS 20000
#define SPIN_FEW_CORES_NS 4000
#define FEW_CORES 4

struct settings {
    int threads;
    bool self_test;
    struct host_faults faults;
    bool has_faults;
};

struct process {
    struct settings settings;
    struct engine_shared *shared;
    unsigned char *arena;
    struct host_lane *lanes[ENGINE_LANES];
};

static int online_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online < THREADS_MAX ? (int)online : 1;
}

static const struct option flags[] = {
    {"threads", required_argument, NULL, 't'},
    {"self-test", no_argument, NULL, 's'},
#ifdef ENGINE_FAULTS
    {"fault", required_argument, NULL, 'f'},
#endif
    {0},
};

static bool parse_threads(const char *text, int *threads)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 0 || value > THREADS_MAX) {
        log_line(LOG_ERROR, "bad option: --threads takes 0 (one a core) to 1024", "value", LOG_STR,
                 text, NULL);
        return false;
    }
    *threads = (int)value;
    return true;
}

static bool parse(int argc, char **argv, struct settings *settings)
{
    int flag;
    while ((flag = getopt_long(argc, argv, "", flags, NULL)) != -1) {
        switch (flag) {
        case 't':
            if (!parse_threads(optarg, &settings->threads))
                return false;
            break;
        case 's':
            settings->self_test = true;
            break;
#ifdef ENGINE_FAULTS
        case 'f':
            settings->has_faults = true;
            if (host__faults_parse(optarg, &settings->faults))
                break;
            log_line(LOG_ERROR, "bad option: --fault takes oom:, poison:, hang:, slow:", "value",
                     LOG_STR, optarg, NULL);
            return false;
#endif
        default:
            return false; /* getopt has told */
        }
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
    snprintf(shared->cpu_family, sizeof shared->cpu_family, "%s", host__lapack_cpu());
    if (shared->contract_hash == shared->engine_contract_hash)
        return true;
    char front[ENGINE_NAME_MAX];
    memcpy(front, shared->front_version, sizeof front);
    front[sizeof front - 1] = 0;
    log_line(LOG_ERROR, "front and engine were built from different contracts", "front_version",
             LOG_STR, front, "engine_version", LOG_STR, INVERTD_VERSION, NULL);
    atomic_store(&shared->ready, 2);
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
    for (int i = 0; i < ENGINE_LANES; i++) {
        bool is_long = i == ENGINE_LANE_LONG;
        struct host_lane_options options = {
            .lane = &process->shared->lanes[i],
            .arena = process->arena,
            .event_fd = ENGINE_FD_EVENT,
            .threads = threads,
            .nice = is_long ? LONG_NICE : 0,
            .spin_ns = is_long ? 0 : spin_ns,
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
    pthread_t heart;
    if (!process->arena || pthread_create(&heart, NULL, beat, shared) != 0 ||
        !start_lanes(process, threads, cores < FEW_CORES ? SPIN_FEW_CORES_NS : SPIN_NS))
        return EXIT_FAILURE;
    atomic_store(&shared->ready, 1);
    wait_for_end();
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static struct process process;
    log_open(LOG_INFO, LOG_JSON, "invertd-host", NULL);
    if (!parse(argc, argv, &process.settings))
        return EXIT_BAD_OPTION;
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
