/* Results of jobs: as a direct request's answer, in every format; ranges, waiting, events, judge.
 */
#include "fakes.h"

#include "handlers/jobs/keep.h"
#include "handlers/judge.h"

static unsigned char body[1 << 20];

static const char *const small = "{\"matrix\":[[4,7],[2,6]],\"method\":\"lu\"}";

static void start(struct fake *fake)
{
    fake_start(fake);
    fake->services.jobs = &fake->jobs;
}

/* Posts a job and leaves its row. */
static struct fake_row *post_job(struct fake *fake, const char *query, const void *data,
                                 size_t bytes)
{
    struct fake_exchange f;
    fake_request(fake, &f, EXCHANGE_POST, "/v1/invert");
    fake_set_header(&f, "Prefer", "respond-async");
    if (query != NULL)
        fake_set_query(&f, "outputs", query);
    fake_send(&f, data, bytes);
    fake_await(fake, &f);
    assert_int_equal(f.answer.status, 202);
    fake_end(&f);
    return &fake->jobs.rows[fake->jobs.count - 1];
}

/* The direct answer to the same request. */
static void post_direct(struct fake *fake, struct fake_exchange *f, const char *accept,
                        const char *query, const void *data, size_t bytes, const int32_t *infos)
{
    fake_request(fake, f, EXCHANGE_POST, "/v1/invert");
    if (accept != NULL)
        fake_set_header(f, "Accept", accept);
    if (query != NULL)
        fake_set_query(f, "outputs", query);
    fake_send(f, data, bytes);
    if (!f->x.answered) {
        fake_await_item(fake);
        fake_compute(fake, infos);
    }
    fake_await(fake, f);
}

static const char *path_of(const struct fake_row *row, const char *behind)
{
    static char path[128];
    char id[JOB_ID_TEXT];
    job_id_write(&row->job.id, id);
    snprintf(path, sizeof path, "/v1/jobs/%s%s", id, behind);
    return path;
}

static void get_result(struct fake *fake, struct fake_exchange *f, const struct fake_row *row,
                       const char *header, const char *value)
{
    fake_request(fake, f, EXCHANGE_GET, path_of(row, "/result"));
    if (header != NULL && value != NULL)
        fake_set_header(f, header, value);
    fake_send(f, NULL, 0);
    fake_await(fake, f);
}

/* Field for field, and byte for byte. */
static void assert_same(const struct fake_exchange *direct, const struct fake_exchange *later)
{
    assert_int_equal(direct->answer.status, later->answer.status);
    for (int i = 0; i < direct->answer.field_count; i++) {
        const char *value = fake_field(later, direct->answer.fields[i].name);
        assert_non_null(value);
        assert_string_equal(value, direct->answer.fields[i].value);
    }
    if (direct->answer.status != 200)
        return;
    assert_int_equal(direct->answer.bytes, later->answer.bytes);
    assert_memory_equal(direct->answer.body, later->answer.body, direct->answer.bytes);
}

static void test_formats(void **state)
{
    (void)state;
    static const char *const accepts[] = {NULL, "application/x-npy", "application/x-npz",
                                          "application/json"};
    static const char *const queries[] = {NULL, "info", "inverse,rcond,method,info", "method"};
    static const struct {
        int64_t batch, n;
    } shapes[] = {{1, 3}, {5, 4}, {2, 100}};
    struct fake fake;
    start(&fake);
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (size_t q = 0; q < 4; q++) {
            size_t bytes =
                fake_npy_body(body, sizeof body, shapes[s].batch, shapes[s].n, "<f8", "False");
            struct fake_row *row = post_job(&fake, queries[q], body, bytes);
            fake_jobs_compute(&fake.jobs, row, NULL, ERROR_NONE);
            for (size_t a = 0; a < sizeof accepts / sizeof accepts[0]; a++) {
                struct fake_exchange direct, later;
                bytes =
                    fake_npy_body(body, sizeof body, shapes[s].batch, shapes[s].n, "<f8", "False");
                post_direct(&fake, &direct, accepts[a], queries[q], body, bytes, NULL);
                get_result(&fake, &later, row, "Accept", accepts[a]);
                assert_same(&direct, &later);
                fake_end(&direct);
                fake_end(&later);
            }
        }
    }
    fake_stop(&fake);
}

/* A matrix without an inverse: 422 with the words of the direct answer. */
static void test_not_invertible(void **state)
{
    (void)state;
    static const int32_t infos[] = {0, 2, 0};
    struct fake fake;
    struct fake_exchange direct, later;
    start(&fake);
    size_t bytes = fake_npy_body(body, sizeof body, 3, 3, "<f8", "False");
    struct fake_row *row = post_job(&fake, NULL, body, bytes);
    fake_jobs_compute(&fake.jobs, row, infos, ERROR_NOT_INVERTIBLE);
    bytes = fake_npy_body(body, sizeof body, 3, 3, "<f8", "False");
    post_direct(&fake, &direct, NULL, NULL, body, bytes, infos);
    get_result(&fake, &later, row, NULL, NULL);
    assert_int_equal(direct.answer.status, 422);
    assert_same(&direct, &later);
    const char *words = strstr(fake_body(&direct), "\"matrices\":");
    assert_non_null(strstr(fake_body(&later), words));
    fake_end(&direct);
    fake_end(&later);
    fake_stop(&fake);
}

static void test_failed(void **state)
{
    (void)state;
    static const struct {
        enum error error;
        int64_t expires_ms;
        int status;
    } rows[] = {{ERROR_POISON, FAKE_NOW_MS * 2, 500},
                {ERROR_TIMEOUT, FAKE_NOW_MS * 2, 504},
                {ERROR_NOT_INVERTIBLE, FAKE_NOW_MS * 2, 422},
                {ERROR_NONE, 1, 410}};
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_row *row = post_job(&fake, NULL, small, strlen(small));
        fake_jobs_compute(&fake.jobs, row, NULL, rows[i].error);
        row->job.outcome.has_result = false;
        strcpy(row->job.outcome.message, "words of its own");
        row->job.expires_ms = rows[i].expires_ms;
        get_result(&fake, &f, row, NULL, NULL);
        assert_int_equal(f.answer.status, rows[i].status);
        assert_int_equal(strstr(fake_body(&f), "words of its own") != NULL, rows[i].status != 410);
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* A result that is gone, in the moment that it is read. */
static void test_vanished(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    size_t bytes = fake_npy_body(body, sizeof body, 2, 100, "<f8", "False");
    struct fake_row *row = post_job(&fake, NULL, body, bytes);
    fake_jobs_compute(&fake.jobs, row, NULL, ERROR_NONE);
    spool_remove(&fake.jobs.spool, &row->job.id, 1);
    get_result(&fake, &f, row, NULL, NULL);
    assert_int_equal(f.answer.status, 404);
    fake_end(&f);
    fake_stop(&fake);
}

static void test_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *range, *if_range;
        int status;
        int64_t first, bytes; /* first < 0: from the end */
    } rows[] = {
        {"bytes=0-9", NULL, 206, 0, 10},     {"bytes=100-300", NULL, 206, 100, 201},
        {"bytes=128-", NULL, 206, 128, -1},  {"bytes=-5", NULL, 206, -5, 5},
        {"bytes=0-0", NULL, 206, 0, 1},      {"bytes=1000-1007", NULL, 206, 1000, 8},
        {"bytes=9999999-", NULL, 416, 0, 0}, {"bytes=-0", NULL, 416, 0, 0},
        {"bytes=5-4", NULL, 200, 0, -1},     {"bytes=0-1,3-4", NULL, 200, 0, -1},
        {"lines=0-1", NULL, 200, 0, -1},     {"bytes=0-9", "\"other\"", 200, 0, -1},
        {"bytes=0-9", "etag", 206, 0, 10},
    };
    static const int64_t orders[] = {10, 200}; /* in the store, and in the spool */
    struct fake fake;
    struct fake_exchange whole, f;
    start(&fake);
    for (size_t o = 0; o < 2; o++) {
        size_t bytes = fake_npy_body(body, sizeof body, 1, orders[o], "<f8", "False");
        struct fake_row *row = post_job(&fake, NULL, body, bytes);
        fake_jobs_compute(&fake.jobs, row, NULL, ERROR_NONE);
        get_result(&fake, &whole, row, NULL, NULL);
        int64_t total = (int64_t)whole.answer.bytes;
        assert_string_equal(fake_field(&whole, "Accept-Ranges"), "bytes");
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            fake_request(&fake, &f, EXCHANGE_GET, path_of(row, "/result"));
            fake_set_header(&f, "Range", rows[i].range);
            if (rows[i].if_range != NULL)
                fake_set_header(&f, "If-Range",
                                strcmp(rows[i].if_range, "etag") == 0 ? fake_field(&whole, "ETag")
                                                                      : rows[i].if_range);
            fake_send(&f, NULL, 0);
            fake_await(&fake, &f);
            if (rows[i].first + rows[i].bytes <= total) {
                assert_int_equal(f.answer.status, rows[i].status);
                int64_t first = rows[i].first < 0 ? total + rows[i].first : rows[i].first;
                int64_t length = rows[i].bytes < 0 ? total - first : rows[i].bytes;
                assert_int_equal(f.answer.bytes, length);
                assert_memory_equal(f.answer.body, whole.answer.body + first, (size_t)length);
                assert_int_equal(fake_field(&f, "Content-Range") != NULL, rows[i].status != 200);
            }
            fake_end(&f);
        }
        fake_end(&whole);
    }
    fake_stop(&fake);
}

/* ---- Waiting ---- */

/* Runs what is posted, which asks the desk, which posts. */
static void settle(struct fake *fake)
{
    for (int i = 0; i < 10; i++)
        mailbox_run(&fake->mailbox);
}

static void test_long_poll(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    struct fake_row *row = post_job(&fake, NULL, small, strlen(small));
    fake_request(&fake, &f, EXCHANGE_GET, path_of(row, ""));
    fake_set_query(&f, "wait", "20");
    fake_send(&f, NULL, 0);
    settle(&fake);
    row->job.state = JOB_RUNNING;
    fake_news(&fake.jobs);
    settle(&fake);
    assert_false(f.x.answered);
    fake_jobs_compute(&fake.jobs, row, NULL, ERROR_NONE);
    fake_news(&fake.jobs);
    settle(&fake);
    assert_int_equal(f.answer.status, 200);
    assert_non_null(strstr(fake_body(&f), "successful"));
    fake_end(&f);
    fake_stop(&fake);
}

/* The time is over, or the service drains. */
static void test_long_poll_ends(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    struct fake_row *row = post_job(&fake, NULL, small, strlen(small));
    for (int drains = 0; drains < 2; drains++) {
        fake_request(&fake, &f, EXCHANGE_GET, path_of(row, ""));
        fake_set_query(&f, "wait", "20");
        fake_send(&f, NULL, 0);
        settle(&fake);
        assert_false(f.x.answered);
        if (drains)
            handlers_hasten(&f.x);
        else
            handlers_expired(&f.x, HANDLERS_LATE_ANSWER);
        settle(&fake);
        assert_int_equal(f.answer.status, 200);
        assert_non_null(strstr(fake_body(&f), "accepted"));
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* wait=N with respond-async: the result itself, or 202. */
static void test_post_waits(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    for (int in_time = 0; in_time < 2; in_time++) {
        fake_request(&fake, &f, EXCHANGE_POST, "/v1/invert");
        fake_set_header(&f, "Prefer", "respond-async, wait=10");
        fake_send(&f, small, strlen(small));
        settle(&fake);
        assert_false(f.x.answered);
        if (in_time) {
            fake_jobs_compute(&fake.jobs, &fake.jobs.rows[fake.jobs.count - 1], NULL, ERROR_NONE);
            fake_news(&fake.jobs);
        } else {
            handlers_expired(&f.x, HANDLERS_LATE_ANSWER);
        }
        fake_await(&fake, &f);
        assert_int_equal(f.answer.status, in_time ? 200 : 202);
        assert_non_null(strstr(fake_body(&f), in_time ? "\"inverse\"" : "\"accepted\""));
        assert_non_null(fake_field(&f, "Location"));
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* The client of a long poll, and of a stream, leaves. */
static void test_left_while_waiting(void **state)
{
    (void)state;
    static const char *const paths[] = {"", "/events"};
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    fake.services.limits.streams_max = 10;
    struct fake_row *row = post_job(&fake, NULL, small, strlen(small));
    for (int posted = 0; posted < 2; posted++) {
        for (size_t i = 0; i < 2; i++) {
            fake_request(&fake, &f, EXCHANGE_GET, path_of(row, paths[i]));
            if (i == 0)
                fake_set_query(&f, "wait", "20");
            fake_send(&f, NULL, 0);
            settle(&fake);
            if (posted)
                fake_news(&fake.jobs); /* on its way when the client leaves */
            fake_end(&f);
            settle(&fake);
            assert_int_equal(fake.jobs.watch_count, 0);
        }
    }
    fake_stop(&fake);
}

static void test_events(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    fake.services.limits.streams_max = 10;
    struct fake_row *row = post_job(&fake, NULL, small, strlen(small));
    fake_request(&fake, &f, EXCHANGE_GET, path_of(row, "/events"));
    fake_send(&f, NULL, 0);
    settle(&fake);
    assert_int_equal(f.answer.status, 200);
    assert_string_equal(fake_field(&f, "Content-Type"), "text/event-stream");
    assert_int_equal(fake_drain(&f), EXCHANGE_STREAM_DRY);
    assert_non_null(strstr(fake_body(&f), "id: 0.0.0\nevent: status\ndata: "
                                          "{\"status\":\"accepted\"}\n\n"));
    assert_non_null(strstr(fake_body(&f), "data: {\"progress\":0,\"position\":3}"));
    settle(&fake);
    row->job.state = JOB_RUNNING;
    row->job.attempt = 1;
    row->job.progress = 420000;
    fake_news(&fake.jobs);
    settle(&fake);
    assert_int_equal(fake_drain(&f), EXCHANGE_STREAM_DRY);
    assert_non_null(strstr(fake_body(&f), "id: 1.1.42\nevent: progress\ndata: "
                                          "{\"progress\":42,\"position\":null}"));
    fake_jobs_compute(&fake.jobs, row, NULL, ERROR_NONE);
    fake_news(&fake.jobs);
    settle(&fake);
    assert_int_equal(fake_drain(&f), EXCHANGE_STREAM_END);
    assert_non_null(strstr(fake_body(&f), "{\"status\":\"successful\"}\n\n"));
    fake_end(&f);
    fake_stop(&fake);
}

/* Who comes again hears nothing twice; a cancelled job is said to be. */
static void test_events_again(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    fake.services.limits.streams_max = 10;
    struct fake_row *row = post_job(&fake, NULL, small, strlen(small));
    row->job.state = JOB_RUNNING;
    row->job.attempt = 1;
    row->job.progress = 420000;
    fake_request(&fake, &f, EXCHANGE_GET, path_of(row, "/events"));
    fake_set_header(&f, "Last-Event-ID", "1.1.42");
    fake_send(&f, NULL, 0);
    settle(&fake);
    assert_int_equal(fake_drain(&f), EXCHANGE_STREAM_DRY);
    assert_null(strstr(fake_body(&f), "data:"));
    row->job.state = JOB_DISMISSED;
    fake_news(&fake.jobs);
    settle(&fake);
    assert_int_equal(fake_drain(&f), EXCHANGE_STREAM_END);
    assert_non_null(strstr(fake_body(&f), "{\"status\":\"dismissed\"}\n\n"));
    fake_end(&f);
    fake_stop(&fake);
}

/* ---- The judge ---- */

static void test_judge(void **state)
{
    (void)state;
    static const struct {
        int32_t info;
        bool nan_on_singular;
        enum error error;
    } rows[] = {
        {0, false, ERROR_NONE},           {4, false, ERROR_NONE}, /* n + 1 */
        {2, false, ERROR_NOT_INVERTIBLE}, {-1, false, ERROR_NOT_INVERTIBLE},
        {5, false, ERROR_NOT_INVERTIBLE}, {2, true, ERROR_NONE},
    };
    struct fake fake;
    struct failure failure;
    start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int32_t infos[] = {0, rows[i].info};
        size_t bytes = fake_npy_body(body, sizeof body, 2, 3, "<f8", "False");
        struct fake_row *row = post_job(&fake, NULL, body, bytes);
        row->job.task.nan_on_singular = rows[i].nan_on_singular;
        fake_jobs_compute(&fake.jobs, row, infos, ERROR_NONE);
        assert_int_equal(handlers_judge(fake.handlers, &row->job,
                                        (const struct jobs_result *)row->result, &failure),
                         rows[i].error);
        if (rows[i].error != ERROR_NONE)
            assert_non_null(strstr(failure.detail, "Matrix 1"));
    }
    fake_stop(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_not_invertible),
        cmocka_unit_test(test_failed),
        cmocka_unit_test(test_vanished),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_long_poll),
        cmocka_unit_test(test_long_poll_ends),
        cmocka_unit_test(test_post_waits),
        cmocka_unit_test(test_left_while_waiting),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_events_again),
        cmocka_unit_test(test_judge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
