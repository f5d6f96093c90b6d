/* tests/simt/launch.cc: launches of simt.h: blocks one after the other, or a cluster's side by
 * side.
 *
 * The blocks of a cluster run on threads that are made for them once and wait for the next cluster;
 * one cluster runs at a time in the process. None begins before all have found the memory for their
 * threads. What goes wrong in one block ends the others at their next barrier.
 *
 * Threads: any may launch. `cluster` is guarded by its lock.
 */
#include "machine.hh"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

namespace
{

/* What all blocks of a grid run. */
struct grid {
    const cudaLaunchConfig_t *config;
    const void *kernel;
    void (*body)(const void *closure);
    const void *closure;
    unsigned cluster; /* blocks of one, side by side in x; 0: there are none */
    bool overlaps;    /* may it begin before the launch ahead of it has ended? */
};

struct worker {
    machine *own;
    unsigned char *memory;
    uint64_t seen; /* the last job it took */
};

struct cluster {
    pthread_mutex_t turn; /* of the one that launches; taken first */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const grid *of;
    uint64_t first, job; /* the cluster's first block; the number of the job */
    unsigned size, arrived, ended, meetings;
    bool failed;
    cudaError_t status;
    char report[REPORT_BYTES];
    unsigned workers;
    worker all[SIMT_CLUSTER_MAX];
    char token;
};

cluster here = {PTHREAD_MUTEX_INITIALIZER,
                PTHREAD_MUTEX_INITIALIZER,
                PTHREAD_COND_INITIALIZER,
                nullptr,
                0,
                0,
                0,
                0,
                0,
                0,
                false,
                cudaSuccess,
                {},
                0,
                {},
                0};

enum simt_order order_set;
uint32_t order_seed;
bool order_known;

/* ---- Bad addresses ---- */

#if !TSAN_IS_HERE && !ASAN_IS_HERE
/* A fiber at fault goes on in simt_on_fault; anyone else meets the signal again, and its default.
 */
void on_signal(int number, siginfo_t *, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (!simt_machine || !simt_machine->running) {
        signal(number, SIG_DFL);
        return;
    }
    registers[REG_RSP] = (registers[REG_RSP] - 256) / 16 * 16 - 8;
    registers[REG_RIP] = (greg_t)simt_on_fault;
}

/* At each launch, for others set handlers too. */
void watch_faults()
{
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
}
#else
/* The sanitizer's report is the better one. */
void watch_faults()
{
}
#endif

/* ---- One block after the other ---- */

/* SIMT_ORDER: forward, backward, ahead, or the seed of a shuffle. */
void read_order()
{
    const char *text = getenv("SIMT_ORDER");
    if (order_known || !text)
        return;
    bool is_backward = strcmp(text, "backward") == 0, is_forward = strcmp(text, "forward") == 0;
    bool is_ahead = strcmp(text, "ahead") == 0;
    simt_set_order(is_backward  ? SIMT_BACKWARD
                   : is_forward ? SIMT_FORWARD
                   : is_ahead   ? SIMT_AHEAD
                                : SIMT_SHUFFLED,
                   (uint32_t)strtoul(text, nullptr, 10));
}

/* NULL: no memory. */
machine *map_machine()
{
    void *memory = mmap(nullptr, sizeof(machine), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : (machine *)memory;
}

/* The calling thread's. */
void take_machine(machine *m)
{
    simt_machine = m;
    m->tsan = TSAN_SELF();
}

/* NULL: no memory. */
machine *open_machine()
{
    machine *made = simt_machine ? nullptr : map_machine();
    if (made)
        take_machine(made);
    return simt_machine;
}

bool prepare(machine *m, const grid &of, int rank)
{
    const dim3 &threads = of.config->blockDim;
    m->body = of.body;
    m->closure = of.closure;
    m->rank = rank;
    m->overlaps = of.overlaps;
    m->status = cudaSuccess;
    m->report[0] = 0;
    m->random = (order_seed + (uint32_t)rank + 1) * 2654435761u | 1;
    simt_spoil_static(of.kernel);
    return simt_make_fibers(m, (int)(threads.x * threads.y * threads.z));
}

uint64_t blocks_of(const grid &of)
{
    const dim3 &blocks = of.config->gridDim;
    return (uint64_t)blocks.x * blocks.y * blocks.z;
}

void run_alone(machine *m, const grid &of)
{
    uint64_t blocks = blocks_of(of);
    size_t bytes = of.config->dynamicSmemBytes;
    if (!prepare(m, of, -1)) {
        m->status = cudaErrorMemoryAllocation;
        return;
    }
    ASAN_FORBID(cuda__memory + bytes, SIMT_SHARED_MAX - bytes);
    for (uint64_t i = 0; i < blocks && m->status == cudaSuccess; i++)
        simt_run_block(m, of.config, order_set == SIMT_BACKWARD ? blocks - 1 - i : i);
    ASAN_ALLOW(cuda__memory, SIMT_SHARED_MAX);
    if (m->status != cudaSuccess)
        simt_forget_fibers(m);
}

/* ---- Clusters ---- */

/* With the lock: the meeting is over when all that are left have come. */
void try_end_meeting()
{
    if (here.arrived == 0 || here.arrived + here.ended < here.size)
        return;
    here.arrived = 0;
    here.meetings++;
    pthread_cond_broadcast(&here.changed);
}

/* With the lock. */
void end_block(const machine *m)
{
    here.ended++;
    if (m->status != cudaSuccess && !here.failed) {
        here.failed = true;
        here.status = m->status;
        memcpy(here.report, m->report, sizeof here.report);
    }
    try_end_meeting();
    pthread_cond_broadcast(&here.changed);
}

/* False: some block of the cluster has found no memory, and none of them is to run. */
bool prepare_cluster(machine *m, unsigned rank)
{
    if (prepare(m, *here.of, (int)rank) && simt_meet_cluster_blocks())
        return true;
    m->status = cudaErrorMemoryAllocation;
    return false;
}

/* Runs its block of every cluster there is. */
void *work(void *context)
{
    worker *self = (worker *)context;
    unsigned rank = (unsigned)(self - here.all);
    machine *m = self->own;
    take_machine(m);
    pthread_mutex_lock(&here.lock);
    self->memory = cuda__memory;
    for (;;) {
        while (self->seen == here.job || rank >= here.size)
            pthread_cond_wait(&here.changed, &here.lock);
        self->seen = here.job;
        pthread_mutex_unlock(&here.lock);
        size_t bytes = here.of->config->dynamicSmemBytes;
        ASAN_FORBID(cuda__memory + bytes, SIMT_SHARED_MAX - bytes);
        if (prepare_cluster(m, rank)) {
            simt_run_block(m, here.of->config, here.first + rank);
            if (m->status != cudaSuccess)
                simt_forget_fibers(m);
        }
        ASAN_ALLOW(cuda__memory, SIMT_SHARED_MAX);
        pthread_mutex_lock(&here.lock);
        end_block(m);
    }
    return nullptr;
}

/* With the lock; false: no memory. */
bool make_workers(unsigned count)
{
    for (; here.workers < count; here.workers++) {
        pthread_t thread;
        worker *next = &here.all[here.workers];
        next->seen = here.job;
        next->own = next->own ? next->own : map_machine();
        if (!next->own || pthread_create(&thread, nullptr, work, next) != 0)
            return false;
        pthread_detach(thread);
    }
    for (unsigned i = 0; i < count; i++) {
        while (!here.all[i].memory) { /* it begins */
            pthread_mutex_unlock(&here.lock);
            sched_yield();
            pthread_mutex_lock(&here.lock);
        }
    }
    return true;
}

/* The cluster that begins with block number `first`. */
void run_cluster(machine *m, const grid &of, uint64_t first)
{
    pthread_mutex_lock(&here.turn);
    pthread_mutex_lock(&here.lock);
    here.size = 0;
    if (!make_workers(of.cluster)) {
        m->status = cudaErrorMemoryAllocation;
    } else {
        here.of = &of;
        here.first = first;
        here.arrived = here.ended = 0;
        here.failed = false;
        here.size = of.cluster;
        here.job++;
        pthread_cond_broadcast(&here.changed);
        while (here.ended < of.cluster)
            pthread_cond_wait(&here.changed, &here.lock);
        if (here.failed) {
            m->status = here.status;
            memcpy(m->report, here.report, sizeof m->report);
        }
    }
    here.size = 0;
    pthread_mutex_unlock(&here.lock);
    pthread_mutex_unlock(&here.turn);
}

bool is_launchable(const cudaLaunchConfig_t *config, unsigned cluster)
{
    const dim3 &threads = config->blockDim, &blocks = config->gridDim;
    uint64_t count = (uint64_t)threads.x * threads.y * threads.z;
    return count >= 1 && count <= SIMT_THREADS_MAX && blocks.x >= 1 && blocks.x <= INT32_MAX &&
           blocks.y >= 1 && blocks.y <= UINT16_MAX && blocks.z >= 1 && blocks.z <= UINT16_MAX &&
           config->dynamicSmemBytes <= SIMT_SHARED_MAX && cluster <= SIMT_CLUSTER_MAX &&
           (cluster == 0 || blocks.x % cluster == 0);
}

/* The blocks of a cluster; 0: there are none; too many: of more than one dimension, which is not
 * modelled. */
unsigned cluster_of(const cudaLaunchConfig_t *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const cudaLaunchAttribute &attribute = config->attrs[i];
        if (attribute.id == cudaLaunchAttributeClusterDimension)
            return attribute.val.clusterDim.y == 1 && attribute.val.clusterDim.z == 1
                       ? attribute.val.clusterDim.x
                       : SIMT_CLUSTER_MAX + 1;
    }
    return 0;
}

bool is_overlapping(const cudaLaunchConfig_t *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const cudaLaunchAttribute &attribute = config->attrs[i];
        if (attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization)
            return attribute.val.programmaticStreamSerializationAllowed != 0;
    }
    return false;
}

/* ---- Launches ---- */

struct launch {
    cudaLaunchConfig_t config;
    const void *kernel;
    unsigned cluster;
    bool overlaps;
    void (*body)(const void *closure);
    alignas(16) unsigned char closure[SIMT_CLOSURE_MAX];
};

/* The launch that the thread puts into a stream, and what became of it, if it was made at once. One
 * that is late is the stream's copy of it. */
thread_local const launch *put_now;
thread_local cudaError_t launched;

/* Where there was no memory for a launch. No one is left whom a late one can tell: the context is
 * lost. m: to keep the report in, or NULL. */
void find_no_memory(machine *m, bool is_late)
{
    static const char report[] = "simt: a late launch found no memory for its threads\n";
    if (!is_late) {
        launched = cudaErrorMemoryAllocation;
        return;
    }
    if (m)
        memcpy(m->report, report, sizeof report);
    fputs(report, stderr);
    simt_lose(cudaErrorLaunchFailure);
}

void run_launch(const void *context)
{
    const launch *l = (const launch *)context;
    const grid of = {&l->config, l->kernel, l->body, l->closure, l->cluster, l->overlaps};
    const uint64_t blocks = blocks_of(of);
    if (simt_lost() != cudaSuccess)
        return;
    machine *m = open_machine();
    if (!m) {
        find_no_memory(nullptr, l != put_now);
        return;
    }
    read_order();
    watch_faults();
    m->status = cudaSuccess;
    m->report[0] = 0;
    if (l->cluster == 0)
        run_alone(m, of);
    for (uint64_t i = 0; l->cluster > 0 && i < blocks && m->status == cudaSuccess; i += l->cluster)
        run_cluster(m, of, i);
    if (m->status == cudaErrorMemoryAllocation) {
        find_no_memory(m, l != put_now);
    } else if (m->status != cudaSuccess) {
        launched = m->status;
        fputs(m->report, stderr);
        simt_lose(m->status);
    }
}

/* An event that says that all blocks have begun comes before what they do. */
void record_begin(const cudaLaunchConfig_t *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id == cudaLaunchAttributeLaunchCompletionEvent)
            (void)cudaEventRecord(config->attrs[i].val.launchCompletionEvent.event, config->stream);
    }
}

} // namespace

/* ---- For simt.cc ---- */

bool simt_meet_cluster_blocks(void)
{
    pthread_mutex_lock(&here.lock);
    unsigned meeting = here.meetings;
    here.arrived++;
    try_end_meeting();
    while (meeting == here.meetings && !here.failed)
        pthread_cond_wait(&here.changed, &here.lock);
    bool good = !here.failed;
    pthread_mutex_unlock(&here.lock);
    return good;
}

bool simt_cluster_failed(void)
{
    return __atomic_load_n(&here.failed, __ATOMIC_RELAXED);
}

char *simt_cluster_token(void)
{
    return &here.token;
}

unsigned char *simt_cluster_memory(unsigned rank)
{
    return simt_machine->rank >= 0 && rank < here.size ? here.all[rank].memory : nullptr;
}

enum simt_order simt_order_now(void)
{
    return order_set;
}

/* ---- What is called from outside ---- */

void simt_set_order(enum simt_order order, uint32_t seed)
{
    order_set = order;
    order_seed = seed;
    order_known = true;
}

const char *simt_report(void)
{
    return simt_machine ? simt_machine->report : "";
}

cudaError_t simt_launch(const cudaLaunchConfig_t *config, const void *kernel,
                        void (*body)(const void *closure), const void *closure, size_t bytes)
{
    launch of = {*config, kernel, cluster_of(config), is_overlapping(config), body, {}};
    if (simt_lost() != cudaSuccess)
        return simt_lost();
    if (!is_launchable(config, of.cluster))
        return cudaErrorInvalidConfiguration;
    if (config->dynamicSmemBytes > simt_shared_allowed(kernel))
        return cudaErrorInvalidValue;
    of.config.attrs = nullptr;
    of.config.numAttrs = 0;
    memcpy(of.closure, closure, bytes);
    record_begin(config);
    put_now = &of;
    launched = cudaSuccess;
    simt_put(config->stream, run_launch, &of, offsetof(launch, closure) + bytes);
    put_now = nullptr;
    return simt_lost() != cudaSuccess ? simt_lost() : launched;
}
