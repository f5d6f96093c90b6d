/* tests/unit/queue/jobs/test_store.c: each call of a store; then all of them in random order next
 * to a model of a few lines. INVERTD_SEED=N runs seed N alone. */
#include "tests/unit/queue/jobs/bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum error put(struct store *store, const struct store_new *new_job)
{
    static struct job known;
    struct failure failure;
    return store->ops->put(store, new_job, &known, &failure);
}

static void commit_anew(struct store *store)
{
    must(store->ops->commit(store, failure));
    must(store->ops->begin(store, failure));
}

static void test_life(void **state)
{
    (void)state;
    struct bed bed;
    bed_open(&bed);
    struct store *store = bed.store;
    must(store->ops->begin(store, failure));
    struct store_new new_job = bed_new(1, 8);
    assert_int_equal(put(store, &new_job), ERROR_NONE);
    assert_int_equal(put(store, &new_job), ERROR_INTERNAL); /* there is such an id */
    must(store->ops->commit(store, failure));
    bed_reopen(&bed);
    store = bed.store;
    must(store->ops->begin(store, failure));
    static struct job job;
    must(store->ops->get(store, &new_job.job.id, &job, failure));
    assert_int_equal(job.state, JOB_ACCEPTED);
    assert_memory_equal(&job.task, &new_job.job.task, sizeof job.task);
    assert_string_equal(job.owner, "a");
    assert_int_equal(job.answer_bytes, 3);
    static uint8_t bytes[1024];
    must(store->ops->read_body(store, &job.id, bytes, 512, failure));
    assert_memory_equal(bytes, new_job.body, 512);
    assert_int_equal(store->ops->read_result(store, &job.id, bytes, 520, NULL), ERROR_NOT_FOUND);
    int64_t position;
    must(store->ops->position(store, &job.id, &position, failure));
    assert_int_equal(position, 0);
    struct store_claim claim = bed_claim(1100);
    must(store->ops->claim(store, &claim, &job, failure));
    assert_int_equal(job.state, JOB_RUNNING);
    assert_int_equal(job.attempt, 1);
    struct store_lease lease = {job.id, 1}, stale = {job.id, 0};
    assert_int_equal(store->ops->renew(store, &stale, 3000, 5, NULL), ERROR_LEASE_LOST);
    must(store->ops->renew(store, &lease, 3000, 5, failure));
    must(store->ops->claim(store, &claim, &job, failure));
    assert_int_equal(job.state, JOB_STATES);
    claim = bed_claim(3000);
    must(store->ops->claim(store, &claim, &job, failure));
    assert_int_equal(job.attempt, 2);
    assert_int_equal(job.started_ms, 1100);
    struct job_outcome outcome = {.error = ERROR_NONE, .kernel = "k", .queue_ns = 3};
    assert_int_equal(store->ops->finish(store, &lease, &outcome, bytes, 3100, 9000, NULL),
                     ERROR_LEASE_LOST);
    lease.attempt = 2;
    must(store->ops->finish(store, &lease, &outcome, bytes, 3100, 9000, failure));
    assert_int_equal(store->ops->finish(store, &lease, &outcome, bytes, 3100, 9000, NULL),
                     ERROR_LEASE_LOST);
    commit_anew(store);
    must(store->ops->get(store, &job.id, &job, failure));
    assert_int_equal(job.state, JOB_SUCCESSFUL);
    assert_string_equal(job.outcome.kernel, "k");
    must(store->ops->read_result(store, &job.id, bytes, 520, failure));
    assert_int_equal(store->ops->read_body(store, &job.id, bytes, 512, NULL), ERROR_NOT_FOUND);
    must(store->ops->commit(store, failure));
    bed_close(&bed);
}

/* Quotas; each row puts one job of order 200, with 640,008 bytes of spool, after a first one. */
static void test_quotas(void **state)
{
    (void)state;
    static const struct {
        int64_t jobs, owner_bytes, bytes;
        enum error error;
    } rows[] = {
        {0, 0, 0, ERROR_NONE},
        {2, 0, 0, ERROR_NONE},
        {1, 0, 0, ERROR_CLIENT_QUOTA},
        {0, 1280016, 0, ERROR_NONE},
        {0, 1280015, 0, ERROR_CLIENT_QUOTA},
        {0, 0, 1280016, ERROR_NONE},
        {0, 0, 1280015, ERROR_NO_ROOM},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bed bed;
        bed_open(&bed);
        struct store *store = bed.store;
        must(store->ops->begin(store, failure));
        struct store_new new_job = bed_new(1, 200);
        assert_int_equal(put(store, &new_job), ERROR_NONE);
        new_job = bed_new(2, 200);
        new_job.owner_jobs_max = rows[i].jobs;
        new_job.owner_bytes_max = rows[i].owner_bytes;
        new_job.bytes_max = rows[i].bytes;
        assert_int_equal(put(store, &new_job), rows[i].error);
        must(store->ops->commit(store, failure));
        bed_close(&bed);
    }
}

static void test_keys(void **state)
{
    (void)state;
    struct bed bed;
    bed_open(&bed);
    struct store *store = bed.store;
    static struct job known;
    must(store->ops->begin(store, failure));
    static struct store_new first, second;
    first = bed_new(1, 4);
    second = bed_new(2, 4);
    strcpy(first.key, "k");
    strcpy(second.key, "k");
    must(store->ops->put(store, &first, &known, failure));
    must(store->ops->put(store, &second, &known, failure));
    assert_memory_equal(&known.id, &first.job.id, sizeof known.id);
    second.key_digest[0] = 1;
    assert_int_equal(put(store, &second), ERROR_KEY_REUSED);
    assert_int_equal(store->ops->find_key(store, "a", "k", second.key_digest, &known, NULL),
                     ERROR_KEY_REUSED);
    must(store->ops->cancel(store, &first.job.id, 1500, &known, failure));
    must(store->ops->find_key(store, "a", "k", first.key_digest, &known, failure));
    assert_int_equal(known.state, JOB_DISMISSED);
    strcpy(second.job.owner, "b"); /* another's key */
    assert_int_equal(put(store, &second), ERROR_NONE);
    second = bed_new(3, 4);
    strcpy(second.key, "k");
    second.key_digest[0] = 1;
    second.job.created_ms = 5000; /* the first has expired */
    assert_int_equal(put(store, &second), ERROR_NONE);
    must(store->ops->commit(store, failure));
    bed_close(&bed);
}

/* A transaction that is rolled back leaves nothing, counts among it. */
static void test_rollback(void **state)
{
    (void)state;
    struct bed bed;
    bed_open(&bed);
    struct store *store = bed.store;
    struct store_new new_job = bed_new(1, 200);
    must(store->ops->begin(store, failure));
    assert_int_equal(put(store, &new_job), ERROR_NONE);
    store->ops->rollback(store);
    must(store->ops->begin(store, failure));
    struct store_totals totals;
    must(store->ops->totals(store, &totals, failure));
    assert_int_equal(totals.jobs[JOB_ACCEPTED], 0);
    assert_int_equal(totals.spool_bytes, 0);
    assert_int_equal(put(store, &new_job), ERROR_NONE);
    must(store->ops->totals(store, &totals, failure));
    assert_int_equal(totals.oldest_accepted_ms, 1000);
    must(store->ops->commit(store, failure));
    bed_close(&bed);
}

/* A file that is newer, or of another program, is refused in words. */
static void test_versions(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"PRAGMA user_version = 99", "of version 99, and this daemon knows those up to 2"},
        {"PRAGMA application_id = 5", "another program"},
    };
    for (int i = 0; i < 2; i++) {
        struct bed bed;
        bed_open(&bed);
        bed.store->ops->destroy(&bed.store);
        bed_sql(&bed, rows[i][0]);
        char path[128];
        snprintf(path, sizeof path, "%s/jobs.db", bed.folder);
        struct store_sqlite_config config = {.path = path, .disk = &disk_system};
        struct failure failure;
        assert_int_equal(store_sqlite_open(&config, &bed.store, &failure), ERROR_STORE_FAILED);
        assert_non_null(strstr(failure.detail, rows[i][1]));
        assert_null(bed.store);
        bed_close(&bed);
    }
}

/* A job that this version cannot read is failed by the claim that meets it. */
static void test_unreadable(void **state)
{
    (void)state;
    struct bed bed;
    bed_open(&bed);
    struct store *store = bed.store;
    must(store->ops->begin(store, failure));
    struct store_new new_job = bed_new(1, 4);
    assert_int_equal(put(store, &new_job), ERROR_NONE);
    new_job = bed_new(2, 4);
    assert_int_equal(put(store, &new_job), ERROR_NONE);
    must(store->ops->commit(store, failure));
    bed.store->ops->destroy(&bed.store);
    bed_sql(&bed, "UPDATE inputs SET task = x'02' WHERE seq = 1");
    bed_reopen(&bed);
    store = bed.store;
    static struct job job;
    struct store_claim claim = bed_claim(1100);
    must(store->ops->begin(store, failure));
    must(store->ops->claim(store, &claim, &job, failure));
    assert_memory_equal(&job.id, &new_job.job.id, sizeof job.id);
    struct store_totals totals;
    must(store->ops->totals(store, &totals, failure));
    assert_int_equal(totals.jobs[JOB_FAILED], 1);
    struct job_id first = bed_id(1);
    assert_int_equal(store->ops->get(store, &first, &job, NULL), ERROR_INTERNAL);
    must(store->ops->commit(store, failure));
    bed_close(&bed);
}

/* ---- Next to a model ---- */

#define JOBS 40
#define OWNERS 3

struct model_job {
    bool is_there, is_dropped, has_body;
    char owner[2];
    int64_t n, created_ms, expires_ms, lease_ms, spool_bytes, progress;
    int priority, order;
    enum job_state state;
    int32_t attempt;
};

struct model {
    struct model_job jobs[JOBS];
    int puts;
    int64_t now_ms;
    uint64_t seed;
    struct store *store;
};

static int by_id(const struct job_id *id)
{
    for (int i = 0; i < JOBS; i++) {
        struct job_id other = bed_id(i);
        if (memcmp(&other, id, sizeof other) == 0)
            return i;
    }
    fail_msg("an id of nowhere");
    return -1;
}

static void do_put(struct model *model, int number)
{
    struct model_job *job = &model->jobs[number];
    static const int64_t orders[] = {2, 8, 40, 100};
    struct store_new new_job = bed_new(number, orders[sim_below(&model->seed, 4)]);
    new_job.job.owner[0] = (char)('a' + sim_below(&model->seed, OWNERS));
    new_job.job.task.priority = (int)sim_below(&model->seed, 2);
    new_job.job.created_ms = model->now_ms;
    new_job.job.expires_ms = model->now_ms + 50;
    assert_int_equal(put(model->store, &new_job), job->is_there ? ERROR_INTERNAL : ERROR_NONE);
    if (job->is_there)
        return;
    *job = (struct model_job){.is_there = true,
                              .has_body = new_job.body != NULL,
                              .owner = {new_job.job.owner[0]},
                              .n = new_job.job.task.n,
                              .created_ms = model->now_ms,
                              .expires_ms = model->now_ms + 50,
                              .spool_bytes = new_job.job.spool_bytes,
                              .priority = new_job.job.task.priority,
                              .order = ++model->puts,
                              .state = JOB_ACCEPTED};
}

static bool is_before(const struct model_job *a, const struct model_job *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->created_ms != b->created_ms)
        return a->created_ms < b->created_ms;
    return a->order < b->order;
}

static void do_claim(struct model *model)
{
    struct store_claim claim = bed_claim(model->now_ms);
    claim.lease_until_ms = model->now_ms + sim_below(&model->seed, 20);
    int64_t n_max = sim_below(&model->seed, 2) == 0 ? 40 : INT64_MAX;
    for (int i = 0; i < ENGINE_METHODS_MAX; i++)
        claim.n_max[i][PRECISION_FP64] = n_max;
    struct model_job *best = NULL;
    for (int i = 0; i < JOBS; i++) {
        struct model_job *job = &model->jobs[i];
        bool is_free = job->state == JOB_ACCEPTED ||
                       (job->state == JOB_RUNNING && job->lease_ms <= model->now_ms);
        if (job->is_there && is_free && job->n <= n_max && (!best || is_before(job, best)))
            best = job;
    }
    static struct job job;
    must(model->store->ops->claim(model->store, &claim, &job, failure));
    if (!best) {
        assert_int_equal(job.state, JOB_STATES);
        return;
    }
    assert_ptr_equal(&model->jobs[by_id(&job.id)], best);
    best->state = JOB_RUNNING;
    best->lease_ms = claim.lease_until_ms;
    best->progress = 0;
    assert_int_equal(job.attempt, ++best->attempt);
}

static void do_lease(struct model *model, int number, int what)
{
    struct model_job *job = &model->jobs[number];
    struct store_lease lease = {bed_id(number),
                                job->attempt - (sim_below(&model->seed, 4) == 0 ? 1 : 0)};
    bool holds = job->is_there && job->state == JOB_RUNNING && lease.attempt == job->attempt;
    static const uint8_t result[100 * 100 * 8];
    struct store *store = model->store;
    enum error error;
    struct job_outcome outcome = {.error =
                                      sim_below(&model->seed, 2) == 0 ? ERROR_NONE : ERROR_POISON};
    int64_t result_bytes = job->n * job->n * 8 + 8;
    bool good = outcome.error == ERROR_NONE;
    const uint8_t *inline_result = good && result_bytes <= JOB_INLINE_MAX ? result : NULL;
    if (what == 0)
        error = store->ops->renew(store, &lease, model->now_ms + 30, 7, NULL);
    else if (what == 1)
        error = store->ops->release(store, &lease, true, NULL);
    else
        error = store->ops->finish(store, &lease, &outcome, inline_result, model->now_ms,
                                   model->now_ms + 40, NULL);
    assert_int_equal(error, holds ? ERROR_NONE : ERROR_LEASE_LOST);
    if (!holds)
        return;
    job->lease_ms = what == 0 ? model->now_ms + 30 : 0;
    if (what == 0)
        job->progress = 7;
    if (what == 1)
        job->state = JOB_ACCEPTED;
    if (what < 2)
        return;
    job->state = good ? JOB_SUCCESSFUL : JOB_FAILED;
    job->expires_ms = model->now_ms + 40;
    job->has_body = false;
    job->spool_bytes = good && !inline_result && job->spool_bytes > 0 ? result_bytes : 0;
    if (good)
        job->progress = JOB_PROGRESS_WHOLE;
}

static void do_cancel(struct model *model, int number)
{
    struct model_job *job = &model->jobs[number];
    struct job_id id = bed_id(number);
    static struct job was;
    bool may = job->is_there && job->state != JOB_DISMISSED;
    assert_int_equal(model->store->ops->cancel(model->store, &id, model->now_ms, &was, NULL),
                     may ? ERROR_NONE : ERROR_NOT_FOUND);
    if (!may)
        return;
    assert_int_equal(was.state, job->state);
    job->state = JOB_DISMISSED;
    job->spool_bytes = 0;
    job->has_body = false;
}

static void do_expire(struct model *model)
{
    struct store_gone gone[JOBS];
    int count = JOBS, dropped = 0, removed = 0;
    bool is_more;
    for (int i = 0; i < JOBS; i++) {
        struct model_job *job = &model->jobs[i];
        if (!job->is_there || !job->is_dropped || job->expires_ms > model->now_ms - 30)
            continue;
        job->is_there = false;
        removed++;
    }
    if (removed > 0 && sim_below(&model->seed, 4) == 0) { /* without room for what is dropped */
        int none = 0;
        must(model->store->ops->expire(model->store, model->now_ms, 30, gone, &none, &is_more,
                                       failure));
        assert_true(is_more);
        assert_int_equal(none, 0);
    }
    must(model->store->ops->expire(model->store, model->now_ms, 30, gone, &count, &is_more,
                                   failure));
    assert_int_equal(is_more, removed == JOBS || count == JOBS);
    for (int i = 0; i < JOBS; i++) {
        struct model_job *job = &model->jobs[i];
        if (!job->is_there || job->is_dropped || !job_is_over(job->state) ||
            job->expires_ms > model->now_ms)
            continue;
        job->is_dropped = true;
        job->spool_bytes = 0;
        dropped++;
    }
    assert_int_equal(count, dropped);
}

static void check_list(struct model *model)
{
    static struct job jobs[JOBS];
    struct store_list list = {.limit = 1 + (int)sim_below(&model->seed, JOBS),
                              .states = 1 + (unsigned)sim_below(&model->seed, 15),
                              .owner = sim_below(&model->seed, 2) == 0 ? "a" : NULL};
    int seen = 0, expected = 0, count;
    for (int i = 0; i < JOBS; i++) {
        const struct model_job *job = &model->jobs[i];
        expected += job->is_there && (list.states >> job->state & 1) != 0 &&
                    (!list.owner || job->owner[0] == 'a');
    }
    do {
        must(model->store->ops->list(model->store, &list, jobs, &count, failure));
        for (int i = 0; i < count; i++) {
            const struct model_job *job = &model->jobs[by_id(&jobs[i].id)];
            assert_true(job->is_there && (list.states >> job->state & 1) != 0);
            assert_int_equal(jobs[i].state, job->state);
            assert_true(list.before_ms == 0 || jobs[i].created_ms < list.before_ms ||
                        (jobs[i].created_ms == list.before_ms &&
                         memcmp(&jobs[i].id, &list.before_id, sizeof list.before_id) < 0));
            list.before_ms = jobs[i].created_ms;
            list.before_id = jobs[i].id;
        }
        seen += count;
    } while (count == list.limit);
    assert_int_equal(seen, expected);
}

static void check_job(struct model *model, int number)
{
    const struct model_job *job = &model->jobs[number];
    struct job_id id = bed_id(number);
    static struct job got;
    static uint8_t body[JOB_INLINE_MAX];
    enum error error = model->store->ops->get(model->store, &id, &got, NULL);
    if (!job->is_there || job->state == JOB_DISMISSED) {
        assert_int_equal(error, ERROR_NOT_FOUND);
        return;
    }
    assert_int_equal(error, ERROR_NONE);
    assert_int_equal(got.state, job->state);
    assert_int_equal(got.attempt, job->attempt);
    assert_int_equal(got.progress, job->progress);
    assert_int_equal(got.spool_bytes, job->spool_bytes);
    assert_int_equal(got.expires_ms, job->expires_ms);
    error = model->store->ops->read_body(model->store, &id, body, got.task.body_bytes, NULL);
    assert_int_equal(error, job->has_body ? ERROR_NONE : ERROR_NOT_FOUND);
    int64_t position, expected = job->state == JOB_ACCEPTED ? 0 : -1;
    for (int i = 0; i < JOBS && expected >= 0; i++) {
        const struct model_job *other = &model->jobs[i];
        expected += other->is_there && other->state == JOB_ACCEPTED && is_before(other, job);
    }
    must(model->store->ops->position(model->store, &id, &position, failure));
    assert_int_equal(position, expected);
}

static void check_totals(struct model *model)
{
    struct store_totals totals, expected = {.spool_bytes = 0};
    for (int i = 0; i < JOBS; i++) {
        const struct model_job *job = &model->jobs[i];
        if (!job->is_there || job->is_dropped)
            continue;
        expected.jobs[job->state]++;
        expected.spool_bytes += job->spool_bytes;
        if (job->state == JOB_ACCEPTED &&
            (expected.oldest_accepted_ms == 0 || job->created_ms < expected.oldest_accepted_ms))
            expected.oldest_accepted_ms = job->created_ms;
    }
    must(model->store->ops->totals(model->store, &totals, failure));
    assert_memory_equal(&totals, &expected, sizeof totals);
}

static void random_step(struct model *model)
{
    int number = (int)sim_below(&model->seed, JOBS);
    int64_t what = sim_below(&model->seed, 20);
    model->now_ms += sim_below(&model->seed, 4);
    if (what < 5)
        do_put(model, number);
    else if (what < 9)
        do_claim(model);
    else if (what < 14)
        do_lease(model, number, (int)what % 3);
    else if (what < 15)
        do_cancel(model, number);
    else if (what < 16)
        do_expire(model);
    else if (what < 17)
        check_list(model);
    else if (what < 18)
        check_totals(model);
    else
        check_job(model, number);
}

static void run_seed(uint64_t seed)
{
    static struct model model;
    model = (struct model){.now_ms = 1000, .seed = seed};
    struct sim_disk *sim = sim_disk_create(seed);
    struct sim_vfs *vfs = sim_vfs_create(sim);
    struct store_sqlite_config config = {
        .path = "/jobs.db", .disk = sim_disk_of(sim), .vfs = sim_vfs_name(vfs)};
    must(store_sqlite_open(&config, &model.store, failure));
    static struct model before;
    for (int turn = 0; turn < 30; turn++) {
        must(model.store->ops->begin(model.store, failure));
        before = model;
        for (int i = 0; i < 20; i++)
            random_step(&model);
        if (sim_below(&model.seed, 5) == 0) {
            model.store->ops->rollback(model.store);
            memcpy(model.jobs, before.jobs, sizeof model.jobs);
        } else {
            must(model.store->ops->commit(model.store, failure));
        }
    }
    model.store->ops->destroy(&model.store);
    sim_vfs_destroy(&vfs);
    sim_disk_destroy(&sim);
}

static void test_model(void **state)
{
    (void)state;
    const char *one = getenv("INVERTD_SEED");
    for (uint64_t seed = one ? strtoull(one, NULL, 10) : 1, i = 0; i < (one ? 1U : 60U);
         i++, seed++) {
        print_message("seed %llu\r", (unsigned long long)seed);
        run_seed(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),     cmocka_unit_test(test_quotas),
        cmocka_unit_test(test_keys),     cmocka_unit_test(test_rollback),
        cmocka_unit_test(test_versions), cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
