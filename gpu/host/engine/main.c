/* gpu/host/engine/main.c: invertd-host, the engine process of the CPU. See gpu/engine.h for the
 * contract.
 *
 * Started by the front, with the descriptors of enum engine_fd. It maps the arena and the lanes,
 * checks that both were built from one contract, and serves each lane with a pool of workers of its
 * own, as many for each: the long lane's are nice, and the background's run where no other thread
 * wants to, so that neither holds a short worker. The lanes share one budget of scratch memory.
 * Each has a team of helpers for large matrices, of its workers' rank: one team for all would hold
 * short work up, or take cores from it.
 *
 * Threads: main waits for the control socket's end; one beats; the lanes have their workers and
 * helpers. The process ends by _exit when the pipe ends, or with the front (PR_SET_PDEATHSIG);
 * nothing needs tidying, for all that outlives it belongs to the front.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/log.h"
#include "gpu/host/engine/lane.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/base/scratch.h"
#include "gpu/host/engine/self_test.h"
#include "gpu/host/base/team.h"
#include "gpu/process/options.h"
#include "gpu/process/process.h"
#include "version.h"

#define THREADS_ASKED_MAX 1024
/* Of a lane. OpenBLAS lends each caller a buffer from a table sized for its build's count of
 * processors, 128 in distributions; more threads than that would wait for one another, or fail. */
#define THREADS_MAX 128
#define HELPERS_MAX 31 /* of a lane; for the same reason */
#define SCRATCH_MIN (INT64_C(1) << 30)
/* The short lane polls this long before it sleeps; with few cores the poll keeps the front from
 * running. The others never poll. */
#define SPIN_NS 20000
#define SPIN_FEW_CORES_NS 4000
#define FEW_CORES 4

struct settings {
    struct process_test_flags tests; /* first */
    int64_t threads;                 /* 0: one a core */
    int64_t scratch_max;             /* 0: by what the machine has */
};

static bool parse_threads(const char *text, void *settings)
{
    return process_parse_number(text, THREADS_ASKED_MAX,
                                "bad option: --threads takes 0 (one a core) to 1024",
                                &((struct settings *)settings)->threads);
}

static bool parse_scratch_max(const char *text, void *settings)
{
    return process_parse_number(
        text, INT64_MAX, "bad option: --scratch-max takes bytes, or 0 (half of what is free)",
        &((struct settings *)settings)->scratch_max);
}

static const struct process_flag flags[] = {
    {"threads", true, parse_threads, "COUNT: workers of each lane; 0: one a core (0)"},
    {"scratch-max", true, parse_scratch_max,
     "BYTES: working memory; 0: half of what is free at the start (0)"},
    {"self-test", false, process_parse_self_test,
     "try every method and end: with 0 when all are right"},
#ifdef ENGINE_FAULTS
    {"fault", true, process_parse_fault, "LIST: faults on purpose"},
#endif
    {0},
};

/* Half of the memory that is free now; at least SCRATCH_MIN. */
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
    return half > SCRATCH_MIN ? half : SCRATCH_MIN;
}

static void identify(struct process_identity *identity)
{
    *identity = (struct process_identity){.device = "host",
                                          .model = host__lapack_cpu(),
                                          .version = INVERTD_VERSION,
                                          .device_count = 1};
    for (int i = 0; i < method_count(); i++) {
        for (int p = 0; p < PRECISION_COUNT; p++)
            identity->n_max[i][p] = method_at(i)->n_max;
    }
}

static const enum rank ranks[ENGINE_LANES] = {[ENGINE_LANE_SHORT] = RANK_NORMAL,
                                              [ENGINE_LANE_LONG] = RANK_NICE,
                                              [ENGINE_LANE_BACKGROUND] = RANK_IDLE};

static bool start_lanes(const struct settings *settings, const struct process *process, int threads,
                        int64_t spin_ns)
{
    struct failure failure = {0};
    struct host_budget *budget = NULL;
    int helpers = threads <= HELPERS_MAX ? threads - 1 : HELPERS_MAX;
    int64_t scratch_max = settings->scratch_max;
    scratch_max = scratch_max > 0 ? scratch_max : default_scratch_max();
    enum error error = host_budget_create(scratch_max, ENGINE_LANES * threads, &budget, &failure);
    for (int i = 0; error == ERROR_NONE && i < ENGINE_LANES; i++) {
        struct host_lane *lane;
        struct host_team *team = NULL;
        error = host_team_create(helpers, ranks[i], &team, &failure);
        struct host_lane_options options = {
            .lane = &process->shared->lanes[i],
            .arena = process->arena,
            .event_fd = ENGINE_FD_EVENT,
            .threads = threads,
            .rank = ranks[i],
            .spin_ns = i == ENGINE_LANE_SHORT ? spin_ns : 0,
            .budget = budget,
            .team = team,
            .faults = settings->tests.has_faults ? &settings->tests.faults : NULL,
        };
        if (error == ERROR_NONE)
            error = host_lane_create(&options, &lane, &failure);
    }
    if (error != ERROR_NONE)
        log_line(LOG_ERROR, "cannot start workers", "detail", LOG_STR, failure.detail, NULL);
    return error == ERROR_NONE;
}

static int serve(const struct settings *settings)
{
    struct process_identity identity;
    struct process process;
    int cores = process_cores();
    int threads = settings->threads > 0 ? (int)settings->threads : cores;
    threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    identify(&identity);
    if (!process_join(&identity, &process) ||
        !start_lanes(settings, &process, threads, cores < FEW_CORES ? SPIN_FEW_CORES_NS : SPIN_NS))
        return ENGINE_EXIT_FAILURE;
    process_serve(&process);
    return ENGINE_EXIT_OK;
}

int main(int argc, char **argv)
{
    static struct settings settings;
    struct process_logging logging;
    host__lapack_init(); /* first: it may begin the program again */
    log_open(LOG_INFO, LOG_JSON, "invertd-host", NULL);
    if (!process_parse(argc, argv, flags, &settings, &logging))
        return ENGINE_EXIT_BAD_OPTION;
    log_open(logging.level, logging.format, "invertd-host", NULL);
    if (settings.tests.self_test) {
        printf("invertd-host %s, %s\n", INVERTD_VERSION, host__lapack_cpu());
        return host_self_test() == 0 ? ENGINE_EXIT_OK : ENGINE_EXIT_FAILURE;
    }
    process_isolate("invertd-host");
    _exit(serve(&settings));
}
