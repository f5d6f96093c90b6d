/* bench/host/store.c: the store of jobs through its desk, next to a bare loop that syncs in groups.
 *
 *   store FOLDER POSTERS SECONDS          jobs accepted, claimed and finished a second
 *   store FOLDER list JOBS                a page of 100 and of 1,000 among so many finished jobs
 *
 * Each poster has one call under way, a body of 512 to 8,192 bytes, and posts the next when the
 * desk hands it back. The bare loop has the same posters and bytes: what they have posted while it
 * synced goes into one write, over a file that is there, and one fdatasync. FOLDER is on the disk
 * that is measured; its jobs.db is made anew. Prints lines of JSON.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "queue/jobs/desk.h"
#include "queue/jobs/store_sqlite.h"

enum {
    POSTERS_MAX = 1024,
    BODY_MIN = 512,
    BODY_MAX = 8192,
    LOG_BYTES = 64 << 20,
    LIST_ROUNDS = 50,
    WARM_UP_POSTERS = 256
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "store: %s\n", what);
    exit(2);
}

static struct store_sqlite_config config;
static uint8_t body[BODY_MAX];

static enum error open_store(void *context, struct store **store, struct failure *failure)
{
    (void)context;
    return store_sqlite_open(&config, store, failure);
}

static void open_anew(const char *folder, char path[4096])
{
    static const char *const endings[] = {"-wal", "-shm", ""};
    char name[4200];
    snprintf(path, 4096, "%s/jobs.db", folder);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", path, endings[i]);
        unlink(name);
    }
    config = (struct store_sqlite_config){.path = path, .disk = &disk_system};
}

/* Of some order from 8 to 32: bodies of 512 to 8,192 bytes. */
static void make_job(struct store_new *new_job, unsigned *seed)
{
    struct job *job = &new_job->job;
    struct failure failure;
    int64_t n = 8 + rand_r(seed) % 25;
    memset(&job->task, 0, sizeof job->task);
    job->task.method = method_find("lu");
    job->task.precision = PRECISION_FP64;
    job->task.batch = 1;
    job->task.n = n;
    job->task.body_bytes = job->task.result_bytes = n * n * 8;
    method_default_options(job->task.method, job->task.options);
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        job->task.inputs[i].offset_bytes = i == 0 ? 0 : -1;
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++)
        job->task.outputs[i].offset_bytes = i == 0 ? 0 : -1;
    if (job_id_make(&job->id, &failure) != ERROR_NONE)
        die(failure.detail);
    snprintf(job->owner, sizeof job->owner, "client-%d", rand_r(seed) % 16);
    job->state = JOB_ACCEPTED;
    job->answer_bytes = 64;
    job->created_ms = (int64_t)clock_wall_ms();
    job->expires_ms = job->created_ms + 86400000;
    new_job->body = body;
}

/* ---- The desk ---- */

struct poster {
    struct desk_call call; /* first */
    struct desk *desk;
    struct store_new new_job;
    struct job job;
    struct store_claim claim;
    struct job_outcome outcome;
    unsigned seed;
    enum desk_kind kind; /* PUT, or CLAIM with FINISH after it */
};

static _Atomic uint64_t counted;
static _Atomic int under_way;
static atomic_bool stop;

static void post_next(struct poster *poster)
{
    struct desk_call *call = &poster->call;
    bool finishes =
        poster->kind == DESK_CLAIM && call->kind == DESK_CLAIM && poster->job.state == JOB_RUNNING;
    if (poster->kind == DESK_PUT) {
        make_job(&poster->new_job, &poster->seed);
        call->in.put = &poster->new_job;
        call->kind = DESK_PUT;
    } else if (finishes) {
        call->kind = DESK_FINISH;
        call->in.finish.lease.id = poster->job.id;
        call->in.finish.lease.attempt = poster->job.attempt;
        call->in.finish.outcome = &poster->outcome;
        call->in.finish.result = body;
        call->in.finish.now_ms = (int64_t)clock_wall_ms();
        call->in.finish.expires_ms = call->in.finish.now_ms + 86400000;
    } else {
        call->kind = DESK_CLAIM;
        call->in.claim = &poster->claim;
        poster->claim.now_ms = (int64_t)clock_wall_ms();
        poster->claim.lease_until_ms = poster->claim.now_ms + 60000;
    }
    call->job = &poster->job;
    desk_post(poster->desk, call);
}

/* On the desk's thread. */
static void on_run(struct message *message)
{
    struct poster *poster = (struct poster *)message;
    const struct desk_call *call = &poster->call;
    if (call->failure.code != ERROR_NONE)
        die(call->failure.detail);
    bool is_dry = call->kind == DESK_CLAIM && poster->job.state == JOB_STATES;
    if (call->kind != DESK_CLAIM)
        atomic_fetch_add(&counted, 1);
    if (is_dry || atomic_load(&stop))
        atomic_fetch_sub(&under_way, 1);
    else
        post_next(poster);
}

static struct poster *make_posters(struct desk *desk, int count, enum desk_kind kind)
{
    struct poster *posters = calloc((size_t)count, sizeof *posters);
    if (!posters)
        die("out of memory");
    for (int i = 0; i < count; i++) {
        posters[i].call.message.run = on_run;
        posters[i].call.kind = DESK_TOTALS; /* none yet */
        posters[i].desk = desk;
        posters[i].seed = (unsigned)i + 1;
        posters[i].kind = kind;
        posters[i].claim.matrix_bytes_max = INT64_MAX;
        for (int m = 0; m < ENGINE_METHODS_MAX; m++)
            posters[i].claim.n_max[m][PRECISION_FP64] = INT64_MAX;
    }
    return posters;
}

/* Calls a second that ended. */
static double run_desk(struct desk *desk, int count, enum desk_kind kind, double seconds)
{
    struct poster *posters = make_posters(desk, count, kind);
    atomic_store(&counted, 0);
    atomic_store(&stop, false);
    atomic_store(&under_way, count);
    uint64_t start_ns = clock_now_ns();
    for (int i = 0; i < count; i++)
        post_next(&posters[i]);
    while ((double)(clock_now_ns() - start_ns) < seconds * 1e9 && atomic_load(&under_way) > 0)
        usleep(1000);
    double elapsed = (double)(clock_now_ns() - start_ns) / 1e9;
    uint64_t done = atomic_load(&counted);
    atomic_store(&stop, true);
    while (atomic_load(&under_way) > 0)
        usleep(1000);
    free(posters);
    return (double)done / elapsed;
}

/* ---- The bare loop ---- */

/* One thread writes and syncs groups of `count` bodies, as the desk's posters would make them. */
static double run_bare(const char *folder, int count, double seconds)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/bare.log", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    uint8_t *group = calloc((size_t)count, BODY_MAX);
    if (fd < 0 || !group)
        die("the bare loop cannot start");
    for (off_t at = 0; at < LOG_BYTES; at += BODY_MAX) {
        if (pwrite(fd, body, BODY_MAX, at) != BODY_MAX)
            die(strerror(errno));
    }
    fsync(fd);
    unsigned seed = 1;
    off_t at = 0;
    uint64_t done = 0, start_ns = clock_now_ns();
    while ((double)(clock_now_ns() - start_ns) < seconds * 1e9) {
        size_t bytes = 0;
        for (int i = 0; i < count; i++) {
            int n = 8 + rand_r(&seed) % 25;
            bytes += (size_t)(n * n * 8);
        }
        if (at + (off_t)bytes > LOG_BYTES)
            at = 0;
        if (pwrite(fd, group, bytes, at) != (ssize_t)bytes || fdatasync(fd) != 0)
            die(strerror(errno));
        at += (off_t)bytes;
        done += (uint64_t)count;
    }
    double elapsed = (double)(clock_now_ns() - start_ns) / 1e9;
    close(fd);
    unlink(path);
    free(group);
    return (double)done / elapsed;
}

static void bench_rates(const char *folder, int count, double seconds)
{
    char path[4096];
    struct desk_opener opener = {open_store, NULL};
    struct metric_registry *metrics = metric_registry_create();
    struct desk *desk;
    struct failure failure;
    open_anew(folder, path);
    double before = run_bare(folder, count, seconds);
    if (desk_create(&opener, metrics, &desk, &failure) != ERROR_NONE)
        die(failure.detail);
    run_desk(desk, WARM_UP_POSTERS, DESK_PUT, 1); /* until the log has its length */
    double puts = run_desk(desk, count, DESK_PUT, seconds);
    double ends = run_desk(desk, count, DESK_CLAIM, seconds);
    desk_destroy(&desk);
    metric_registry_destroy(&metrics);
    double after = run_bare(folder, count, seconds);
    printf(
        "{\"posters\": %d, \"bare\": [%.0f, %.0f], \"accepted\": %.0f, \"claimed_and_finished\": "
        "%.0f, \"share\": %.2f}\n",
        count, before, after, puts, ends, puts / ((before + after) / 2));
}

/* ---- Lists ---- */

static void check(enum error error, const struct failure *failure)
{
    if (error != ERROR_NONE)
        die(failure->detail);
}

static void fill(struct store *store, int64_t jobs)
{
    static struct store_new new_job;
    static struct job job;
    static struct store_claim claim;
    struct failure failure;
    unsigned seed = 1;
    claim.matrix_bytes_max = INT64_MAX;
    for (int m = 0; m < ENGINE_METHODS_MAX; m++)
        claim.n_max[m][PRECISION_FP64] = INT64_MAX;
    for (int64_t i = 0; i < jobs; i++) {
        if (i % 1000 == 0)
            check(store->ops->begin(store, &failure), &failure);
        make_job(&new_job, &seed);
        new_job.job.task.n = 4;
        new_job.job.task.body_bytes = new_job.job.task.result_bytes = 128;
        check(store->ops->put(store, &new_job, &job, &failure), &failure);
        check(store->ops->claim(store, &claim, &job, &failure), &failure);
        struct store_lease lease = {job.id, job.attempt};
        struct job_outcome outcome = {.error = ERROR_NONE};
        check(store->ops->finish(store, &lease, &outcome, body, job.created_ms + 1, job.expires_ms,
                                 &failure),
              &failure);
        if (i % 1000 == 999 || i == jobs - 1)
            check(store->ops->commit(store, &failure), &failure);
    }
}

/* Page after page from the newest on; the median and the longest in milliseconds. */
static void time_pages(struct store *store, const char *owner, int limit)
{
    static double times[LIST_ROUNDS];
    struct job *jobs = calloc((size_t)limit, sizeof *jobs);
    struct store_list list = {.owner = owner, .states = 15, .limit = limit};
    struct failure failure;
    int count = 0;
    if (!jobs)
        die("out of memory");
    for (int i = 0; i < LIST_ROUNDS; i++) {
        uint64_t start_ns = clock_now_ns();
        check(store->ops->begin(store, &failure), &failure);
        check(store->ops->list(store, &list, jobs, &count, &failure), &failure);
        check(store->ops->commit(store, &failure), &failure);
        times[i] = (double)(clock_now_ns() - start_ns) / 1e6;
        if (count > 0) {
            list.before_ms = jobs[count - 1].created_ms;
            list.before_id = jobs[count - 1].id;
        }
    }
    for (int i = 1; i < LIST_ROUNDS; i++) {
        for (int k = i; k > 0 && times[k] < times[k - 1]; k--) {
            double swap = times[k];
            times[k] = times[k - 1];
            times[k - 1] = swap;
        }
    }
    printf("{\"list\": \"%s\", \"limit\": %d, \"last_page\": %d, \"median_ms\": %.3f, \"max_ms\": "
           "%.3f}\n",
           owner ? "one of 16 clients" : "all", limit, count, times[LIST_ROUNDS / 2],
           times[LIST_ROUNDS - 1]);
    free(jobs);
}

static void bench_list(const char *folder, int64_t jobs)
{
    char path[4096];
    struct store *store;
    struct failure failure;
    open_anew(folder, path);
    check(store_sqlite_open(&config, &store, &failure), &failure);
    fill(store, jobs);
    time_pages(store, NULL, 100);
    time_pages(store, "client-3", 100);
    time_pages(store, NULL, 1000);
    time_pages(store, "client-3", 1000);
    store->ops->destroy(&store);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("store FOLDER POSTERS SECONDS, or store FOLDER list JOBS");
    memset(body, 1, sizeof body);
    if (strcmp(argv[2], "list") == 0) {
        bench_list(argv[1], strtol(argv[3], NULL, 10));
        return 0;
    }
    long posters = strtol(argv[2], NULL, 10);
    double seconds = strtod(argv[3], NULL);
    if (posters < 1 || posters > POSTERS_MAX || !(seconds > 0))
        die("POSTERS is 1 to 1024, SECONDS more than 0");
    bench_rates(argv[1], (int)posters, seconds);
    return 0;
}
