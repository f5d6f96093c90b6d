/* tests/unit/queue/jobs/test_store_callbacks.c: which callback is attempted next, how attempts end,
 * and a file of an older version. */
#include "tests/unit/queue/jobs/bed.h"

#include <stdio.h>
#include <string.h>

static enum error put(struct store *store, const struct store_new *new_job)
{
    static struct job known;
    struct failure failure;
    return store->ops->put(store, new_job, &known, &failure);
}

/* Puts a job with a callback at a place, and ends it. */
static void end_with_callback(struct store *store, int number, const char *place)
{
    static struct job job;
    static uint8_t result[520];
    struct store_new new_job = bed_new(number, 8);
    snprintf(new_job.callback_url, sizeof new_job.callback_url, "http://%s/x", place);
    snprintf(new_job.callback_place, sizeof new_job.callback_place, "%s", place);
    assert_int_equal(put(store, &new_job), ERROR_NONE);
    must(store->ops->get(store, &new_job.job.id, &job, failure));
    assert_int_equal(job.callback.state, JOB_CALLBACK_PENDING);
    struct store_claim claim = bed_claim(1100);
    must(store->ops->claim(store, &claim, &job, failure));
    struct store_lease lease = {job.id, job.attempt};
    struct job_outcome outcome = {.error = ERROR_NONE};
    must(store->ops->finish(store, &lease, &outcome, result, 1200 + number, 9000, failure));
}

/* The number of the job whose callback is claimed; -1: none is due. */
static int claim_callback(struct store *store, int64_t now_ms, const char *busy, struct job *job,
                          struct store_callback *callback)
{
    const struct store_callback_claim claim = {now_ms, now_ms + 100, &busy, busy != NULL};
    must(store->ops->claim_callback(store, &claim, job, callback, failure));
    for (int i = 0; i < 10 && job->state != JOB_STATES; i++) {
        struct job_id id = bed_id(i);
        if (memcmp(&id, &job->id, sizeof id) == 0)
            return i;
    }
    return -1;
}

static void settle_callback(struct store *store, const struct job *job,
                            enum job_callback_state state, int64_t due_ms)
{
    const struct store_callback_end end = {job->id, job->callback.attempts, state, due_ms, "why"};
    must(store->ops->settle_callback(store, &end, failure));
}

static void test_callbacks(void **state)
{
    (void)state;
    struct bed bed;
    bed_open(&bed);
    struct store *store = bed.store;
    static struct job job, first;
    static struct store_callback callback;
    must(store->ops->begin(store, failure));
    assert_int_equal(claim_callback(store, 9000, NULL, &job, &callback), -1);
    assert_int_equal(callback.next_due_ms, 0);
    end_with_callback(store, 1, "b:1");
    end_with_callback(store, 2, "b:1");
    end_with_callback(store, 3, "a:1");
    assert_int_equal(claim_callback(store, 1200, NULL, &job, &callback), -1);
    assert_int_equal(callback.next_due_ms, 1201);
    assert_int_equal(claim_callback(store, 1300, NULL, &first, &callback), 1);
    assert_int_equal(first.callback.attempts, 1);
    assert_string_equal(callback.url, "http://b:1/x");
    assert_string_equal(callback.place, "b:1");
    /* A busy place is left out; what is claimed is not claimed again, until that has run out. */
    assert_int_equal(claim_callback(store, 1300, "b:1", &job, &callback), 3);
    settle_callback(store, &job, JOB_CALLBACK_DELIVERED, 0);
    assert_int_equal(claim_callback(store, 1300, NULL, &job, &callback), 2);
    settle_callback(store, &job, JOB_CALLBACK_WAITING, 1500);
    must(store->ops->get(store, &job.id, &job, failure));
    assert_int_equal(job.callback.due_ms, 1500);
    assert_string_equal(job.callback.problem, "why");
    assert_int_equal(claim_callback(store, 1399, NULL, &job, &callback), -1);
    assert_int_equal(callback.next_due_ms, 1400);
    assert_int_equal(claim_callback(store, 1400, NULL, &job, &callback), 1);
    assert_int_equal(job.callback.attempts, 2);
    settle_callback(store, &first, JOB_CALLBACK_DELIVERED, 0); /* by the first attempt: too late */
    must(store->ops->get(store, &job.id, &job, failure));
    assert_int_equal(job.callback.state, JOB_CALLBACK_WAITING);
    must(store->ops->commit(store, failure));
    /* The next life: what was claimed is due. */
    bed_reopen(&bed);
    store = bed.store;
    must(store->ops->begin(store, failure));
    struct job_id node = bed_id(0);
    must(store->ops->end_leases(store, &node, failure));
    assert_int_equal(claim_callback(store, 1401, NULL, &job, &callback), 1);
    assert_int_equal(job.callback.attempts, 3);
    settle_callback(store, &job, JOB_CALLBACK_UNWANTED, 0);
    /* A job that is cancelled has none any more. */
    struct job_id second = bed_id(2);
    must(store->ops->cancel(store, &second, 1450, &job, failure));
    assert_int_equal(claim_callback(store, 1600, NULL, &job, &callback), -1);
    assert_int_equal(callback.next_due_ms, 0);
    must(store->ops->commit(store, failure));
    bed_close(&bed);
}

/* A file of version 1, as an older daemon left it, is brought to this version, and works. */
static void test_migration(void **state)
{
    (void)state;
    struct bed bed;
    bed_open(&bed);
    struct store *store = bed.store;
    must(store->ops->begin(store, failure));
    struct store_new new_job = bed_new(1, 8);
    assert_int_equal(put(store, &new_job), ERROR_NONE);
    must(store->ops->commit(store, failure));
    bed.store->ops->destroy(&bed.store);
    bed_sql(&bed, "DROP TABLE callbacks; PRAGMA user_version = 1");
    bed_reopen(&bed);
    store = bed.store;
    static struct job job;
    static struct store_callback callback;
    must(store->ops->begin(store, failure));
    must(store->ops->get(store, &new_job.job.id, &job, failure));
    assert_int_equal(job.state, JOB_ACCEPTED);
    assert_int_equal(job.callback.state, JOB_CALLBACK_NONE);
    must(store->ops->cancel(store, &new_job.job.id, 1000, &job, failure));
    end_with_callback(store, 2, "a:1");
    assert_int_equal(claim_callback(store, 1300, NULL, &job, &callback), 2);
    must(store->ops->commit(store, failure));
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_callbacks),
                                       cmocka_unit_test(test_migration)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
