/* gpu/process/process.c: see process.h. Cost: once a process; the heart's thread wakes 20 times a
 * second. */
#include "gpu/process/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/confine.h"
#include "base/descriptor.h"
#include "base/log.h"

static void close_the_rest(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0)
        dup2(null, STDOUT_FILENO);
    close_range(ENGINE_FD_EVENT + 1, ~0U, 0);
}

void process_isolate(const char *name)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, name);
    /* The front ends us, also when all processes get a signal, as at a machine's shutdown. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    close_the_rest();
}

static void *map_descriptor(int fd, uint64_t bytes, const char *what)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || (uint64_t)status.st_size < bytes) {
        log_line(LOG_ERROR,
                 "a shared region is missing or too short; invertd starts engines, no one else can",
                 "region", LOG_STR, what, "bytes", LOG_I64, (int64_t)bytes, NULL);
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
static bool greet(const struct process_identity *identity, struct engine_shared *shared)
{
    shared->engine_contract_hash = engine_contract_hash();
    snprintf(shared->engine_version, sizeof shared->engine_version, "%s", identity->version);
    snprintf(shared->device, sizeof shared->device, "%s", identity->device);
    snprintf(shared->model, sizeof shared->model, "%s", identity->model);
    shared->device_count = identity->device_count;
    memcpy(shared->n_max, identity->n_max, sizeof shared->n_max);
    if (shared->contract_hash == shared->engine_contract_hash)
        return true;
    char front[ENGINE_NAME_MAX];
    memcpy(front, shared->front_version, sizeof front);
    front[sizeof front - 1] = 0;
    log_line(LOG_ERROR, "front and engine were built from different contracts", "front_version",
             LOG_STR, front, "engine_version", LOG_STR, identity->version, NULL);
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

bool process_join(const struct process_identity *identity, struct process *process)
{
    *process = (struct process){0};
    process->shared = map_descriptor(ENGINE_FD_SHARED, sizeof *process->shared, "lanes");
    if (!process->shared || !greet(identity, process->shared))
        return false;
    process->arena.bytes = process->shared->arena_bytes;
    process->arena.base = map_descriptor(ENGINE_FD_ARENA, process->arena.bytes, "arena");
    if (!process->arena.base)
        return false;
    pthread_t heart;
    int error = pthread_create(&heart, NULL, beat, process->shared);
    if (error)
        log_line(LOG_ERROR, "cannot start a thread", "error", LOG_STR, strerror(error), NULL);
    return error == 0;
}

int process_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online < CPU_SETSIZE ? (int)online : 1;
}

/* Returns when the front has closed its end. No kind of message is known yet. */
static void read_messages(void)
{
    struct descriptor_message message;
    for (;;) {
        enum error error = descriptor_receive(ENGINE_FD_CONTROL, &message);
        if (error == ERROR_INTERNAL || (error == ERROR_NONE && message.length == 0))
            return;
        if (message.fd >= 0)
            close(message.fd);
    }
}

/* Drivers have made their devices' files and threads by now. Without it the engine serves too. */
static void confine_self(struct engine_shared *shared)
{
    struct failure failure = {0};
    if (shared->confine == 0)
        return;
    shared->confined = confine_process(CONFINE_ENGINE, &failure) == ERROR_NONE;
    if (shared->confined == 0)
        log_line(LOG_WARNING, "the engine is not confined", "why", LOG_STR, failure.detail, NULL);
}

void process_serve(struct process *process)
{
    assert(atomic_load(&process->shared->ready) == ENGINE_STARTING);
    confine_self(process->shared);
    atomic_store(&process->shared->ready, ENGINE_READY);
    read_messages();
}

void process_report_lost(struct engine_shared *shared)
{
    /* An engine that fails before it was ready was never reported as there. */
    uint32_t was = ENGINE_READY;
    atomic_compare_exchange_strong(&shared->ready, &was, ENGINE_LOST);
}
