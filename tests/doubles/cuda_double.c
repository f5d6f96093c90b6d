/* tests/doubles/cuda_double.c: a stand-in for invertd-cuda, for tests on machines without a GPU.
 *
 * To the front it is a CUDA engine: it is started with --device, calls itself cuda:N and takes lu
 * and lu_factor to n = 32. Its work is done by the host engine's lanes, so that answers have the
 * host engine's bits. --fault takes what the engines' fault builds take (gpu/process/fault.h), and:
 *   devices:COUNT  devices there are (default 1); on others the process ends with DEVICE_ABSENT
 *   out:DEVICE     on that device it ends with DEVICE_OUT
 *   exit:CODE      poison ends it with this code instead of by SIGSEGV; with ENGINE_EXIT_FAULT it
 *                  says first that its context is lost, and the end is as slow as the front lets it
 *   mismatch:1     it was built from another contract
 *   only:DEVICE    poison, hang, slow and oom are that device's alone
 *   start:MS       it takes so much longer to come up
 *   end:MS         it is reaped so much later than it dies, as a device holds a process
 *
 * Threads: as in gpu/host/engine/main.c.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "gpu/host/engine/lane.h"
#include "gpu/host/linalg/lapack.h"
#include "gpu/host/base/scratch.h"
#include "gpu/process/fault.h"
#include "gpu/process/options.h"
#include "gpu/process/process.h"
#include "version.h"

#define SCRATCH_BYTES (INT64_C(64) << 20)
#define N_MAX 32
#define SPEC_MAX 256

struct settings {
    int64_t device;
    int devices, out, exit_code, mismatch, only, start_ms, end_ms;
    struct process_faults faults;
};

#define SLOW_END_S 5

static int poisoned_exit; /* for the signal's handler */
static struct engine_shared *shared;

static bool parse_device(const char *text, void *settings)
{
    return process_parse_number(text, ENGINE_DEVICES_MAX - 1, "bad option: --device",
                                &((struct settings *)settings)->device);
}

/* One word of the list that is the double's own; false: it is not. */
static bool parse_own(const char *word, struct settings *settings)
{
    return sscanf(word, "devices:%d", &settings->devices) == 1 ||
           sscanf(word, "out:%d", &settings->out) == 1 ||
           sscanf(word, "exit:%d", &settings->exit_code) == 1 ||
           sscanf(word, "mismatch:%d", &settings->mismatch) == 1 ||
           sscanf(word, "only:%d", &settings->only) == 1 ||
           sscanf(word, "start:%d", &settings->start_ms) == 1 ||
           sscanf(word, "end:%d", &settings->end_ms) == 1;
}

static bool parse_faults(const char *text, void *context)
{
    struct settings *settings = context;
    char words[SPEC_MAX], others[SPEC_MAX + 1] = "", *rest = words;
    size_t length = 0;
    if (snprintf(words, sizeof words, "%s", text) >= (int)sizeof words)
        return false;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        if (parse_own(word, settings))
            continue;
        length += (size_t)snprintf(others + length, sizeof others - length, "%s,", word);
    }
    return process_faults_parse(others, &settings->faults);
}

static const struct process_flag flags[] = {
    {"device", true, parse_device, "NUMBER: of the device"},
    {"fault", true, parse_faults, "LIST: faults on purpose"},
    {0},
};

static void on_poison(int number)
{
    (void)number;
    if (poisoned_exit == ENGINE_EXIT_FAULT) {
        process_report_lost(shared);
        sleep(SLOW_END_S);
    }
    _exit(poisoned_exit);
}

static void identify(const struct settings *settings, const char *name,
                     struct process_identity *identity)
{
    *identity = (struct process_identity){.device = name,
                                          .model = "double",
                                          .version = INVERTD_VERSION,
                                          .device_count = settings->devices};
    for (int p = 0; p < PRECISION_COUNT; p++) {
        identity->n_max[method_index(method_find("lu"))][p] = N_MAX;
        identity->n_max[method_index(method_find("lu_factor"))][p] = N_MAX;
    }
}

static bool is_faulty(const struct settings *settings)
{
    return settings->only < 0 || settings->only == settings->device;
}

static bool start_lanes(const struct settings *settings, const struct process *process)
{
    struct failure failure = {0};
    struct host_budget *budget = NULL;
    enum error error = host_budget_create(SCRATCH_BYTES, ENGINE_LANES, &budget, &failure);
    for (int i = 0; error == ERROR_NONE && i < ENGINE_LANES; i++) {
        struct host_lane *lane;
        struct host_lane_options options = {
            .lane = &process->shared->lanes[i],
            .arena = process->arena,
            .event_fd = ENGINE_FD_EVENT,
            .threads = 1,
            .budget = budget,
            .faults = is_faulty(settings) ? &settings->faults : NULL,
        };
        error = host_lane_create(&options, &lane, &failure);
    }
    return error == ERROR_NONE;
}

static int serve(const struct settings *settings)
{
    struct process process;
    struct process_identity identity;
    char name[ENGINE_NAME_MAX];
    if (settings->device >= settings->devices)
        return ENGINE_EXIT_DEVICE_ABSENT;
    snprintf(name, sizeof name, "cuda:%d", (int)settings->device);
    identify(settings, name, &identity);
    if (!process_join(&identity, &process))
        return ENGINE_EXIT_FAILURE;
    shared = process.shared;
    if (settings->mismatch) {
        atomic_store(&process.shared->ready, ENGINE_MISMATCH);
        return ENGINE_EXIT_FAILURE;
    }
    if (settings->device == settings->out)
        return ENGINE_EXIT_DEVICE_OUT;
    usleep((useconds_t)settings->start_ms * 1000);
    if (!start_lanes(settings, &process))
        return ENGINE_EXIT_FAILURE;
    process_serve(&process);
    return ENGINE_EXIT_OK;
}

/* Traces the engine, whose end its parent is then reported when the tracer has ended. */
static _Noreturn void hold(pid_t engine, int from_engine, int to_engine, int ms)
{
    char byte = 0;
    siginfo_t end = {0};
    bool traced = read(from_engine, &byte, 1) == 1 && ptrace(PTRACE_SEIZE, engine, 0, 0) == 0;
    if (write(to_engine, &byte, 1) != 1 || !traced)
        _exit(1);
    close_range(0, ~0U, 0);
    for (;;) {
        int status = 0;
        if (waitid(P_PID, (id_t)engine, &end, WEXITED | WSTOPPED | WNOWAIT) != 0)
            _exit(1);
        if (end.si_code != CLD_TRAPPED && end.si_code != CLD_STOPPED)
            break;
        (void)waitpid(engine, &status, WUNTRACED); /* a signal, which is passed on */
        (void)ptrace(PTRACE_CONT, engine, 0, WSTOPSIG(status));
    }
    usleep((useconds_t)ms * 1000);
    _exit(0);
}

/* Another process, for only one that is dead can be late to be reaped. Where tracing is not allowed
 * the end is as quick as ever. Before there are threads. */
static void end_slowly(int ms)
{
    int to_holder[2], from_holder[2];
    pid_t engine = getpid();
    char byte = 0;
    if (pipe(to_holder) != 0 || pipe(from_holder) != 0)
        return;
    pid_t holder = fork();
    if (holder == 0)
        hold(engine, to_holder[0], from_holder[1], ms);
    prctl(PR_SET_PTRACER, holder);
    if (write(to_holder[1], &byte, 1) != 1 || read(from_holder[0], &byte, 1) != 1)
        log_line(LOG_ERROR, "the end will not be slow", NULL);
}

int main(int argc, char **argv)
{
    static struct settings settings = {.devices = 1, .out = -1, .only = -1};
    struct process_logging logging;
    host__lapack_init(); /* first: it may begin the program again */
    log_open(LOG_INFO, LOG_JSON, "invertd-cuda", NULL);
    if (!process_parse(argc, argv, flags, &settings, &logging))
        return ENGINE_EXIT_BAD_OPTION;
    log_open(logging.level, logging.format, "invertd-cuda", NULL);
    poisoned_exit = settings.exit_code;
    if (settings.exit_code != 0)
        signal(SIGSEGV, on_poison);
    if (settings.end_ms > 0)
        end_slowly(settings.end_ms);
    process_isolate("invertd-cuda");
    _exit(serve(&settings));
}
