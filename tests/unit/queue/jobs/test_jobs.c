/* tests/unit/queue/jobs/test_jobs.c: jobs from end to end: a real folder, store and spool, the
 * queue, and an engine that is a thread of the test and negates instead of inverting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "gpu/method.h"
#include "queue/jobs/jobs.h"
#include "queue/queue.h"

#define ARENA_BYTES (INT64_C(64) << 20)
#define WAIT_MS 20000

struct bed {
    char folder[64];
    struct arena *arena;
    struct metric_registry *metrics;
    struct queue *queue;
    struct engine_shared *shared;
    struct queue_lane *lane;
    struct jobs *jobs;
    pthread_t engine;
    _Atomic bool ends, is_slow;
};

/* ---- The engine ---- */

static void negate(const struct bed *bed, const struct engine_batch *batch)
{
    for (uint32_t i = 0; i < batch->item_count; i++) {
        const struct engine_item *item = &batch->items[i];
        int64_t count = item->count * batch->n * batch->n;
        const double *from =
            (const double *)(const void *)(arena_base(bed->arena) + item->inputs[0].offset_bytes);
        double *to = (double *)(void *)(arena_base(bed->arena) +
                                        item->outputs[METHOD_OUTPUT_INVERSE].offset_bytes);
        for (int64_t k = 0; k < count; k++)
            to[k] = -from[k];
        int32_t *info = (int32_t *)(void *)(arena_base(bed->arena) +
                                            item->outputs[METHOD_OUTPUT_INFO].offset_bytes);
        memset(info, 0, (size_t)item->count * sizeof *info);
    }
}

static bool serve(struct bed *bed)
{
    bool any = false;
    for (int kind = 0; kind < ENGINE_LANES; kind++)
        for (int i = 0; i < ENGINE_BATCH_SLOTS; i++) {
            struct engine_batch *batch = &bed->shared->lanes[kind].batches[i];
            uint32_t state = ENGINE_BATCH_SUBMITTED;
            if (!atomic_compare_exchange_strong(&batch->state, &state, ENGINE_BATCH_RUNNING))
                continue;
            any = true;
            batch->started_ns = clock_now_ns();
            if (bed->is_slow)
                usleep(20000);
            bool is_unwanted = batch->unwanted;
            if (!is_unwanted)
                negate(bed, batch);
            batch->status = is_unwanted ? ENGINE_STOPPED : ENGINE_OK;
            batch->finished_ns = clock_now_ns();
            strcpy(batch->kernel, "negate");
            atomic_store(&batch->state, ENGINE_BATCH_DONE);
        }
    return any;
}

static void *engine(void *context)
{
    struct bed *bed = context;
    while (!bed->ends) {
        if (!serve(bed))
            usleep(200);
        while (queue_reap(bed->queue))
            continue;
        queue_tick(bed->queue, clock_now_ns());
    }
    return NULL;
}

/* ---- The bed ---- */

static void start_jobs(struct bed *bed)
{
    struct failure failure = {0};
    const struct jobs_config config = {
        .queue = bed->queue,
        .arena = bed->arena,
        .metrics = bed->metrics,
        .folder = bed->folder,
        .result_ttl_ms = 3600000,
        .lease_ms = 1000,
        .piece_bytes_max = 1 << 20,
        .piece_cost_ns = 2000000,
    };
    if (jobs_create(&config, &bed->jobs, &failure) != ERROR_NONE ||
        jobs_start(bed->jobs, NULL, NULL, &failure) != ERROR_NONE)
        fail_msg("%s", failure.detail);
}

static int open_bed(void **state)
{
    static const struct queue_limits limits = {
        .requests_max = 100,
        .bytes_max = ARENA_BYTES,
        .batch_matrices_max = {4096, 4096},
        .batch_bytes_max = 1 << 28,
        .batch_cost_ns = 5000000,
        .long_cost_ns = 20000000,
        .batch_deadline_ns = 2000000000,
        .in_flight = 2,
    };
    static const struct queue_engine main_engine = {QUEUE_HOST, false, 0, "test"};
    struct bed *bed = calloc(1, sizeof *bed);
    assert_non_null(bed);
    strcpy(bed->folder, "/tmp/invertd-test-jobs-XXXXXX");
    assert_non_null(mkdtemp(bed->folder));
    assert_int_equal(arena_create(ARENA_BYTES, &bed->arena, NULL), ERROR_NONE);
    bed->metrics = metric_registry_create();
    assert_int_equal(queue_create(&limits, bed->metrics, &bed->queue, NULL), ERROR_NONE);
    bed->shared = calloc(1, sizeof *bed->shared);
    for (int i = 0; i < method_count(); i++)
        for (int p = 0; p < PRECISION_COUNT; p++)
            bed->shared->n_max[i][p] = 1000;
    assert_int_equal(queue_lane_create(bed->queue, bed->shared, &main_engine, &bed->lane),
                     ERROR_NONE);
    queue_lane_up(bed->lane);
    assert_int_equal(pthread_create(&bed->engine, NULL, engine, bed), 0);
    start_jobs(bed);
    *state = bed;
    return 0;
}

static int close_bed(void **state)
{
    struct bed *bed = *state;
    char command[128];
    jobs_destroy(&bed->jobs);
    bed->ends = true;
    pthread_join(bed->engine, NULL);
    queue_lane_down(bed->lane, false);
    queue_lane_destroy(&bed->lane);
    queue_destroy(&bed->queue);
    metric_registry_destroy(&bed->metrics);
    arena_destroy(&bed->arena);
    free(bed->shared);
    snprintf(command, sizeof command, "rm -rf %s", bed->folder);
    assert_int_equal(system(command), 0);
    free(bed);
    return 0;
}

/* ---- Calls ---- */

struct question {
    struct desk_call call; /* first */
    sem_t answered;
};

static void on_answer(struct message *message)
{
    sem_post(&((struct question *)message)->answered);
}

static enum error ask(struct bed *bed, struct question *question,
                      void (*post)(struct jobs *jobs, struct desk_call *call))
{
    sem_init(&question->answered, 0, 0);
    question->call.message.run = on_answer;
    if (post != NULL)
        post(bed->jobs, &question->call);
    else
        desk_post(jobs_desk(bed->jobs), &question->call);
    sem_wait(&question->answered);
    sem_destroy(&question->answered);
    return question->call.failure.code;
}

static enum error get(struct bed *bed, const struct job_id *id, struct job *job)
{
    struct question question = {.call = {.kind = DESK_GET, .in.get = *id, .job = job}};
    return ask(bed, &question, NULL);
}

static double number_at(int64_t k)
{
    return (double)(k % 1009) + 0.5;
}

/* Fills a body of that many matrices, as they lie there. */
static double *make_body(int64_t numbers)
{
    double *body = malloc((size_t)numbers * sizeof *body);
    assert_non_null(body);
    for (int64_t k = 0; k < numbers; k++)
        body[k] = number_at(k);
    return body;
}

static void make_task(struct job_task *task, int64_t batch, int64_t n, bool column_major)
{
    memset(task, 0, sizeof *task);
    task->method = method_find("lu");
    task->precision = PRECISION_FP64;
    task->batch = batch;
    task->n = n;
    task->m = n;
    method_default_options(task->method, task->options);
    for (int i = 0; i < METHOD_INPUTS_MAX; i++)
        task->inputs[i].offset_bytes = -1;
    for (int i = 0; i < METHOD_OUTPUTS_MAX; i++)
        task->outputs[i].offset_bytes = -1;
    task->inputs[0] = (struct job_tensor){0, column_major};
    task->body_bytes = batch * n * n * 8;
    task->outputs[METHOD_OUTPUT_INVERSE].offset_bytes = 0;
    task->outputs[METHOD_OUTPUT_INFO].offset_bytes = task->body_bytes;
    task->result_bytes = task->body_bytes + batch * 4;
}

static struct job_id put(struct bed *bed, int64_t batch, int64_t n, bool column_major)
{
    struct store_new *fresh = calloc(1, sizeof *fresh);
    struct job *known = calloc(1, sizeof *known);
    assert_true(fresh != NULL && known != NULL);
    strcpy(fresh->job.owner, "test");
    make_task(&fresh->job.task, batch, n, column_major);
    double *body = make_body(batch * n * n);
    int64_t bytes = fresh->job.task.body_bytes;
    if (bytes <= JOB_INLINE_MAX) {
        fresh->body = (const uint8_t *)body;
    } else {
        struct spool_file *file;
        assert_int_equal(job_id_make(&fresh->job.id, NULL), ERROR_NONE);
        assert_int_equal(spool_write(jobs_spool(bed->jobs), &fresh->job.id, 0, bytes, &file, NULL),
                         ERROR_NONE);
        assert_int_equal(spool_put(file, 0, body, bytes, NULL), ERROR_NONE);
        assert_int_equal(spool_keep(&file, NULL), ERROR_NONE);
    }
    struct question question = {.call = {.kind = DESK_PUT, .in.put = fresh, .job = known}};
    if (ask(bed, &question, jobs_accept) != ERROR_NONE)
        fail_msg("%s", question.call.failure.detail);
    struct job_id id = fresh->job.id;
    free(body);
    free(fresh);
    free(known);
    return id;
}

static void wait_until_over(struct bed *bed, const struct job_id *id, struct job *job)
{
    for (int i = 0; i < WAIT_MS; i++) {
        assert_int_equal(get(bed, id, job), ERROR_NONE);
        if (job_is_over(job->state))
            return;
        usleep(1000);
    }
    fail_msg("the job does not end: %s", job_state_name(job->state));
}

static unsigned char *read_result(struct bed *bed, const struct job *job)
{
    int64_t bytes = job->task.result_bytes;
    unsigned char *result = malloc((size_t)bytes);
    assert_non_null(result);
    if (bytes <= JOB_INLINE_MAX) {
        struct question question = {
            .call = {.kind = DESK_READ_RESULT, .in.read = {job->id, result, bytes}}};
        assert_int_equal(ask(bed, &question, NULL), ERROR_NONE);
        return result;
    }
    struct spool_file *file;
    assert_int_equal(spool_read(jobs_spool(bed->jobs), &job->id, job->attempt, bytes, &file, NULL),
                     ERROR_NONE);
    assert_int_equal(spool_get(file, 0, result, bytes, NULL), ERROR_NONE);
    spool_close(&file);
    return result;
}

static void check_result(struct bed *bed, const struct job *job)
{
    unsigned char digest[DIGEST_BYTES];
    unsigned char *result = read_result(bed, job);
    int64_t n = job->task.n;
    assert_int_equal(job->state, JOB_SUCCESSFUL);
    for (int64_t k = 0; k < job->task.batch * n * n; k++) {
        int64_t matrix = k / (n * n), row = k % (n * n) / n, column = k % n;
        bool swap = job->task.inputs[0].column_major;
        int64_t from = matrix * n * n + (swap ? column * n + row : row * n + column);
        if (((double *)(void *)result)[k] != -number_at(from))
            fail_msg("number %lld is wrong", (long long)k);
    }
    assert_true(digest_sha256(result, (size_t)job->task.result_bytes, digest));
    assert_memory_equal(digest, job->outcome.digest, DIGEST_BYTES);
    assert_string_equal(job->outcome.kernel, "negate");
    free(result);
}

/* ---- Tests ---- */

static const struct {
    int64_t batch, n;
    bool column_major;
} rows[] = {
    {1, 2, false}, {5, 3, true}, {1000, 16, false}, {300, 40, true}, {3, 700, true},
};

static void test_jobs_are_computed(void **state)
{
    struct bed *bed = *state;
    enum {
        ROWS = sizeof rows / sizeof rows[0]
    };
    struct job_id ids[ROWS];
    struct job *job = calloc(1, sizeof *job);
    for (int i = 0; i < ROWS; i++)
        ids[i] = put(bed, rows[i].batch, rows[i].n, rows[i].column_major);
    for (int i = 0; i < ROWS; i++) {
        wait_until_over(bed, &ids[i], job);
        check_result(bed, job);
        assert_int_equal(job->attempt, 1);
    }
    free(job);
}

static void test_a_running_job_is_cancelled(void **state)
{
    struct bed *bed = *state;
    struct job *job = calloc(1, sizeof *job), *was = calloc(1, sizeof *was);
    bed->is_slow = true;
    struct job_id id = put(bed, 2000, 40, false);
    do
        assert_int_equal(get(bed, &id, job), ERROR_NONE);
    while (job->state == JOB_ACCEPTED);
    struct question question = {.call = {.kind = DESK_CANCEL, .in.cancel.id = id, .job = was}};
    question.call.in.cancel.now_ms = jobs_now_ms(bed->jobs);
    assert_int_equal(ask(bed, &question, jobs_cancel), ERROR_NONE);
    assert_int_equal(get(bed, &id, job), ERROR_NOT_FOUND);
    struct job_id next = put(bed, 1, 2, false); /* which finds room */
    wait_until_over(bed, &next, job);
    free(job);
    free(was);
}

static void test_a_job_goes_on_in_the_next_life(void **state)
{
    struct bed *bed = *state;
    struct job *job = calloc(1, sizeof *job);
    bed->is_slow = true;
    struct job_id id = put(bed, 3000, 40, false);
    do
        assert_int_equal(get(bed, &id, job), ERROR_NONE);
    while (job->state == JOB_ACCEPTED);
    jobs_destroy(&bed->jobs);
    bed->is_slow = false;
    start_jobs(bed);
    wait_until_over(bed, &id, job);
    check_result(bed, job);
    assert_int_equal(job->attempt, 2);
    free(job);
}

static void test_a_second_daemon_is_refused(void **state)
{
    struct bed *bed = *state;
    struct jobs *second;
    struct failure failure = {0};
    const struct jobs_config config = {
        .queue = bed->queue,
        .arena = bed->arena,
        .metrics = bed->metrics,
        .folder = bed->folder,
        .result_ttl_ms = 1000,
        .lease_ms = 1000,
        .piece_bytes_max = 1,
        .piece_cost_ns = 1,
    };
    assert_int_equal(jobs_create(&config, &second, &failure), ERROR_FULL);
    assert_non_null(strstr(failure.detail, bed->folder));
    assert_int_equal(chmod(bed->folder, 0770), 0);
    jobs_destroy(&bed->jobs);
    assert_int_equal(jobs_create(&config, &second, &failure), ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, "by others"));
}

static void test_too_large_is_said_before(void **state)
{
    struct bed *bed = *state;
    struct job_task task;
    struct failure failure = {0};
    make_task(&task, 1, 3000, false);
    assert_int_equal(jobs_check(bed->jobs, &task, &failure), ERROR_TOO_LARGE);
    assert_non_null(strstr(failure.detail, "--arena-size"));
    make_task(&task, 1, 40000, false);
    assert_int_equal(jobs_check(bed->jobs, &task, &failure), ERROR_TOO_LARGE);
    assert_non_null(strstr(failure.detail, "up to 32768"));
    make_task(&task, 1000000, 100, false);
    assert_int_equal(jobs_check(bed->jobs, &task, &failure), ERROR_NONE);
}

/* ---- Watches ---- */

struct watcher {
    struct message message; /* first */
    struct mailbox mailbox;
    sem_t woken;
};

static void on_news(struct message *message)
{
    (void)message;
}

static void on_woken(void *context)
{
    sem_post(&((struct watcher *)context)->woken);
}

static void test_news_of_a_job(void **state)
{
    struct bed *bed = *state;
    struct watcher watcher = {.message.run = on_news};
    struct jobs_watch *watch;
    struct jobs_news news = {.state = JOB_STATES};
    sem_init(&watcher.woken, 0, 0);
    mailbox_init(&watcher.mailbox, on_woken, &watcher);
    bed->is_slow = true;
    struct job_id id = put(bed, 500, 40, false);
    assert_int_equal(jobs_watch(bed->jobs, &id, &watcher.mailbox, &watcher.message, &watch, NULL),
                     ERROR_NONE);
    uint64_t serial = 0;
    while (news.state != JOB_SUCCESSFUL) {
        sem_wait(&watcher.woken);
        mailbox_run(&watcher.mailbox);
        news = jobs_watch_take(watch);
        assert_true(news.serial > serial);
        serial = news.serial;
    }
    assert_int_equal(news.progress, JOB_PROGRESS_WHOLE);
    assert_true(jobs_unwatch(&watch));
    mailbox_fini(&watcher.mailbox);
    sem_destroy(&watcher.woken);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_bed, close_bed)
    const struct CMUnitTest tests[] = {
        TEST(test_jobs_are_computed),
        TEST(test_a_running_job_is_cancelled),
        TEST(test_a_job_goes_on_in_the_next_life),
        TEST(test_a_second_daemon_is_refused),
        TEST(test_too_large_is_said_before),
        TEST(test_news_of_a_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
