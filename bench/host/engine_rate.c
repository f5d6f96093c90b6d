/* bench/host/engine_rate.c: an engine's own rate, driven through its lane without HTTP or queue.
 *
 *   engine_rate PATH-OF-ENGINE METHOD N MATRICES-AN-ITEM SECONDS THREADS [BATCH-MIB
 *               [PRECISION [IN-FLIGHT [SHAPE]]]]
 *
 * THREADS 0 is for invertd-cuda, which has no such option. A batch holds BATCH-MIB (1) of matrices,
 * as far as the contract allows so many items, and one item at least. PRECISION: fp64 (else fp32).
 * IN-FLIGHT (3) batches are under way at a time; with 1 and one matrix a batch, the rate is that of
 * matrices that come one after another. SHAPE: dense, or definite, that is, symmetric too.
 *
 * Does what the front does (gpu/engine.h): makes arena and lanes, starts the engine, keeps a few
 * batches of the short lane in flight and sums up what comes back. The items of a
 * batch lie in the arena in random order, each at an address of its own, so that caches and buses
 * see what they would see in service. Prints one line of JSON. Of the two rates, the one a second
 * of the engine's processor time does not depend on who else uses the machine's cores.
 *
 * One thread. The engine ends with the control socket, that is, with this program.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "gpu/engine.h"

enum {
    IN_FLIGHT = 3,
    BATCH_MIB_MAX = 64,
    ORDER_MAX = 4096,
    START_MS = 20000
};

struct rig {
    struct arena *arena;
    struct engine_shared *shared;
    int shared_fd, event_fd, control_fd;
    const struct method *method;
    enum precision precision;
    int64_t n, per_item, items, batch_bytes;
    uint64_t in_flight;
    bool definite;
    uint64_t sequence;
    int64_t inverted;
    uint64_t busy_ns; /* sum of the batches' own durations */
    clockid_t clock;  /* the engine's processor time */
};

static void die(const char *what)
{
    fprintf(stderr, "engine_rate: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void make_shared(struct rig *rig)
{
    struct failure failure;
    /* Inputs and outputs of every slot, double-buffered. */
    int64_t slots = rig->in_flight == 1 ? 1 : ENGINE_BATCH_SLOTS;
    int64_t bytes = 4 * slots * rig->batch_bytes + (INT64_C(64) << 20);
    if (arena_create(bytes, &rig->arena, &failure) != ERROR_NONE)
        die(failure.detail);
    rig->shared_fd = memfd_create("bench-lanes", MFD_CLOEXEC);
    rig->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (rig->shared_fd < 0 || rig->event_fd < 0 ||
        ftruncate(rig->shared_fd, sizeof *rig->shared) != 0)
        die("memfd");
    void *map =
        mmap(NULL, sizeof *rig->shared, PROT_READ | PROT_WRITE, MAP_SHARED, rig->shared_fd, 0);
    if (map == MAP_FAILED)
        die("mmap");
    rig->shared = map;
    rig->shared->contract_hash = engine_contract_hash();
    rig->shared->arena_bytes = arena_bytes(rig->arena);
    snprintf(rig->shared->front_version, sizeof rig->shared->front_version, "bench");
}

/* In the child: lays the descriptors out as gpu/engine.h says and becomes the engine. */
static _Noreturn void become(const struct rig *rig, int control, char *program, char *threads)
{
    bool has_threads = strcmp(threads, "0") != 0;
    char *arguments[] = {program, has_threads ? (char *)"--threads" : NULL, threads, NULL};
    const int from[] = {control, arena_fd(rig->arena), rig->shared_fd, rig->event_fd};
    const int to[] = {ENGINE_FD_CONTROL, ENGINE_FD_ARENA, ENGINE_FD_SHARED, ENGINE_FD_EVENT};
    int high[4];
    for (int i = 0; i < 4; i++)
        high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 16);
    for (int i = 0; i < 4; i++)
        dup2(high[i], to[i]);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    execv(program, arguments);
    perror(program);
    _exit(127);
}

static void start_engine(struct rig *rig, char *program, char *threads)
{
    int control[2];
    if (descriptor_pair(control, NULL) != ERROR_NONE)
        die("no sockets");
    pid_t pid = fork();
    if (pid == 0)
        become(rig, control[0], program, threads);
    close(control[0]);
    rig->control_fd = control[1];
    for (int ms = 0; atomic_load(&rig->shared->ready) == ENGINE_STARTING && ms < START_MS; ms++)
        (void)poll(NULL, 0, 1);
    if (pid < 0 || atomic_load(&rig->shared->ready) != ENGINE_READY ||
        clock_getcpuclockid(pid, &rig->clock) != 0)
        die("the engine did not start");
}

/* Well-conditioned matrices: random with a heavy off-diagonal band, so that they need pivoting; or
 * symmetric with a heavy diagonal. */
static void fill(const struct rig *rig, void *data)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    int64_t n = rig->n;
    for (int64_t i = 0; i < n * n * rig->per_item; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double uniform = (double)(state >> 11) * 0x1p-53 - 0.5;
        int64_t row = i / n % n, column = i % n, heavy = rig->definite ? row : (row + 1) % n;
        double value = uniform + (column != heavy ? 0 : rig->definite ? (double)n : 2);
        int64_t from = rig->definite && column < row ? i + (column - row) * (n - 1) : i;
        if (rig->precision == PRECISION_FP32)
            ((float *)data)[i] = from == i ? (float)value : ((float *)data)[from];
        else
            ((double *)data)[i] = from == i ? value : ((double *)data)[from];
    }
}

static struct engine_tensor take(struct rig *rig, const struct method_tensor *tensor, int64_t count)
{
    static const int64_t options[METHOD_OPTIONS_MAX]; /* dense methods: no length depends on them */
    struct arena_slot slot;
    int64_t bytes = method_tensor_bytes(tensor, rig->precision, rig->n, 0, options) * count;
    if (bytes <= 0 || arena_alloc(rig->arena, bytes, &slot) != ERROR_NONE)
        die("the arena is too small");
    return (struct engine_tensor){.offset_bytes = slot.offset_bytes, .region = ENGINE_REGION_ARENA};
}

static void shuffle(struct engine_item *items, int64_t count)
{
    uint64_t state = UINT64_C(0x2545f4914f6cdd1d);
    for (int64_t k = count - 1; k > 0; k--) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int64_t other = (int64_t)((state >> 33) % (uint64_t)(k + 1));
        struct engine_item old = items[k];
        items[k] = items[other];
        items[other] = old;
    }
}

/* Lays a batch's items out in the arena; they are run again and again from there. */
static void prepare(struct rig *rig, struct engine_batch *batch)
{
    batch->method = (uint32_t)method_index(rig->method);
    batch->precision = (uint32_t)rig->precision;
    batch->item_count = (uint32_t)rig->items;
    batch->n = rig->n;
    batch->matrices = rig->items * rig->per_item;
    for (int64_t k = 0; k < rig->items; k++) {
        struct engine_item *item = &batch->items[k];
        item->count = rig->per_item;
        for (int i = 0; i < METHOD_INPUTS_MAX; i++)
            item->inputs[i].region = ENGINE_REGION_NONE;
        for (int i = 0; i < METHOD_OUTPUTS_MAX; i++)
            item->outputs[i].region = ENGINE_REGION_NONE;
        item->inputs[0] = take(rig, &rig->method->inputs[0], rig->per_item);
        for (int i = 0; i < method_output_count(rig->method); i++)
            if (!rig->method->outputs[i].optional)
                item->outputs[i] = take(rig, &rig->method->outputs[i], rig->per_item);
        fill(rig, arena_base(rig->arena) + item->inputs[0].offset_bytes);
    }
    shuffle(batch->items, rig->items);
}

/* The batches of all slots: each its own, or one for all when only one is under way. */
static void prepare_all(struct rig *rig, struct engine_lane *lane)
{
    for (int i = 0; i < ENGINE_BATCH_SLOTS; i++) {
        struct engine_batch *batch = &lane->batches[i];
        if (i == 0 || rig->in_flight > 1)
            prepare(rig, batch);
        else
            memcpy(batch, lane->batches, sizeof *batch);
    }
}

static void submit(struct rig *rig, struct engine_lane *lane, struct engine_batch *batch)
{
    batch->sequence = ++rig->sequence;
    atomic_store_explicit(&batch->state, ENGINE_BATCH_SUBMITTED, memory_order_release);
    atomic_fetch_add(&lane->submitted, 1);
    syscall(SYS_futex, &lane->submitted, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Waits as the front does: asks for an event, looks once more, sleeps. */
static void wait_done(struct rig *rig, struct engine_lane *lane, struct engine_batch *batch)
{
    while (atomic_load_explicit(&batch->state, memory_order_acquire) != ENGINE_BATCH_DONE) {
        struct pollfd event = {.fd = rig->event_fd, .events = POLLIN};
        uint64_t count;
        atomic_store(&lane->front_waits, 1);
        if (atomic_load(&batch->state) != ENGINE_BATCH_DONE)
            (void)poll(&event, 1, 100);
        (void)!read(rig->event_fd, &count, sizeof count);
    }
    if (batch->status != ENGINE_OK)
        die("a batch failed");
    rig->inverted += batch->matrices;
    rig->busy_ns += batch->finished_ns - batch->started_ns;
}

static double processor_seconds(const struct rig *rig)
{
    struct timespec time;
    if (clock_gettime(rig->clock, &time) != 0)
        die("the engine's clock");
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Keeps in_flight batches under way for some seconds; returns the seconds it took. */
static double drive(struct rig *rig, double seconds)
{
    struct engine_lane *lane = &rig->shared->lanes[ENGINE_LANE_SHORT];
    uint64_t next = rig->sequence % ENGINE_BATCH_SLOTS, start = clock_now_ns();
    uint64_t end = start + (uint64_t)(seconds * 1e9);
    uint64_t submitted = 0, finished = 0;
    rig->inverted = 0;
    rig->busy_ns = 0;
    while (clock_now_ns() < end || finished < submitted) {
        while (submitted - finished < rig->in_flight && clock_now_ns() < end) {
            submit(rig, lane, &lane->batches[(next + submitted) % ENGINE_BATCH_SLOTS]);
            submitted++;
        }
        if (finished < submitted) {
            wait_done(rig, lane, &lane->batches[(next + finished) % ENGINE_BATCH_SLOTS]);
            finished++;
        }
    }
    return (double)(clock_now_ns() - start) * 1e-9;
}

static bool parse(struct rig *rig, int argc, char **argv)
{
    if (argc < 7 || argc > 11)
        return false;
    int64_t batch_mib = argc > 7 ? strtol(argv[7], NULL, 10) : 1;
    rig->method = method_find(argv[2]);
    rig->n = strtol(argv[3], NULL, 10);
    rig->per_item = strtol(argv[4], NULL, 10);
    rig->precision = argc > 8 && strcmp(argv[8], "fp32") == 0 ? PRECISION_FP32 : PRECISION_FP64;
    rig->in_flight = argc > 9 ? strtoul(argv[9], NULL, 10) : IN_FLIGHT;
    rig->definite = argc > 10 && strcmp(argv[10], "definite") == 0;
    if (rig->method == NULL || rig->n < 1 || rig->n > ORDER_MAX || rig->per_item < 1 ||
        rig->per_item > ORDER_MAX * ORDER_MAX || batch_mib < 1 || batch_mib > BATCH_MIB_MAX ||
        rig->in_flight < 1 || rig->in_flight > IN_FLIGHT || method_input_count(rig->method) != 1)
        return false;
    int64_t item_bytes = rig->n * rig->n * precision_bytes(rig->precision) * rig->per_item;
    int64_t items = (batch_mib << 20) / item_bytes;
    rig->items = items < 1 ? 1 : items > ENGINE_BATCH_ITEMS ? ENGINE_BATCH_ITEMS : items;
    rig->batch_bytes =
        item_bytes * rig->items > batch_mib << 20 ? item_bytes * rig->items : batch_mib << 20;
    return true;
}

int main(int argc, char **argv)
{
    struct rig rig = {0};
    if (!parse(&rig, argc, argv)) {
        fprintf(stderr, "usage: engine_rate PATH-OF-ENGINE METHOD N MATRICES-AN-ITEM SECONDS "
                        "THREADS [BATCH-MIB [PRECISION [IN-FLIGHT [SHAPE]]]]\n");
        return 2;
    }
    make_shared(&rig);
    start_engine(&rig, argv[1], argv[6]);
    prepare_all(&rig, &rig.shared->lanes[ENGINE_LANE_SHORT]);
    (void)drive(&rig, 0.2);
    double before = processor_seconds(&rig);
    double seconds = drive(&rig, strtod(argv[5], NULL));
    printf("{\"inversions_per_s\": %.3f, \"inversions_per_core_s\": %.3f, \"bytes_per_s\": %.0f, "
           "\"batch_us\": %.1f, \"kernel\": \"%s\"}\n",
           (double)rig.inverted / seconds,
           (double)rig.inverted / (processor_seconds(&rig) - before),
           (double)rig.inverted / seconds * (double)(rig.n * rig.n) *
               (double)precision_bytes(rig.precision),
           (double)rig.busy_ns * 1e-3 * (double)(rig.items * rig.per_item) / (double)rig.inverted,
           rig.shared->lanes[ENGINE_LANE_SHORT].batches[0].kernel);
    return 0;
}
