/* Answers later: what becomes a job and what is refused, keys, uploads, the documents of jobs. */
#include "fakes.h"

#include "handlers/jobs/keep.h"

#define LARGE_N 400 /* its .npy is longer than a direct request's body may be */

static unsigned char body[2 << 20];

static const char *const small = "{\"matrix\":[[4,7],[2,6]],\"method\":\"lu\"}";

static void start(struct fake *fake)
{
    fake_start(fake);
    fake->services.jobs = &fake->jobs;
}

static void request(struct fake *fake, struct fake_exchange *f, const char *prefer)
{
    fake_request(fake, f, EXCHANGE_POST, "/v1/invert");
    fake_set_header(f, "Prefer", prefer);
}

static void post(struct fake *fake, struct fake_exchange *f, const void *data, size_t bytes)
{
    fake_send(f, data, bytes);
    fake_await(fake, f);
}

/* Posts a small job and leaves its row. */
static struct fake_row *post_small(struct fake *fake)
{
    struct fake_exchange f;
    request(fake, &f, "respond-async");
    post(fake, &f, small, strlen(small));
    assert_int_equal(f.answer.status, 202);
    fake_end(&f);
    return &fake->jobs.rows[fake->jobs.count - 1];
}

static const char *path_of(const struct fake_row *row, const char *behind)
{
    static char path[128];
    char id[JOB_ID_TEXT];
    job_id_write(&row->job.id, id);
    snprintf(path, sizeof path, "/v1/jobs/%s%s", id, behind);
    return path;
}

static void get(struct fake *fake, struct fake_exchange *f, const char *path)
{
    fake_request(fake, f, EXCHANGE_GET, path);
    fake_send(f, NULL, 0);
    fake_await(fake, f);
}

static void test_small_job(void **state)
{
    (void)state;
    static const double matrix[] = {4, 7, 2, 6};
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    request(&fake, &f, "respond-async");
    post(&fake, &f, small, strlen(small));
    assert_int_equal(f.answer.status, 202);
    assert_string_equal(fake_field(&f, "Preference-Applied"), "respond-async");
    assert_int_equal(fake.jobs.count, 1);
    struct fake_row *row = &fake.jobs.rows[0];
    assert_string_equal(fake_field(&f, "Location"), path_of(row, ""));
    assert_non_null(strstr(fake_body(&f), "\"status\":\"accepted\""));
    assert_non_null(strstr(fake_body(&f), "\"method\":\"lu\",\"n\":2,\"batch\":1"));
    fake_end(&f);
    assert_string_equal(row->job.owner, "127.0.0.1");
    assert_memory_equal(row->body + row->job.task.inputs[0].offset_bytes, matrix, sizeof matrix);
    struct proto_request again;
    struct failure failure;
    assert_int_equal(handlers__keep_request(&row->job, &again, &failure), ERROR_NONE);
    assert_int_equal(again.format, PROTO_FORMAT_JSON);
    fake_stop(&fake);
}

/* Its body goes to the spool, by way of the arena. */
static void test_job_in_spool(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    size_t bytes = fake_npy_body(body, sizeof body, 2, 100, "<f8", "False");
    request(&fake, &f, "respond-async");
    post(&fake, &f, body, bytes);
    assert_int_equal(f.answer.status, 202);
    fake_end(&f);
    const struct spool_file *file = fake_file(&fake.jobs.spool, &fake.jobs.rows[0].job.id, 0);
    assert_non_null(file);
    assert_int_equal(file->bytes, 2 * 100 * 100 * 8);
    double first;
    assert_int_equal(pread(file->fd, &first, sizeof first, 0), sizeof first);
    assert_true(first == 3);
    fake_stop(&fake);
}

/* An .npy above --request-max never enters the arena. */
static void test_upload(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    size_t bytes = fake_npy_body(body, sizeof body, 1, LARGE_N, "<f8", "True");
    for (size_t i = 0; i < LARGE_N * LARGE_N; i++)
        memcpy(body + 128 + 8 * i, &(double){(double)i}, 8);
    request(&fake, &f, "respond-async");
    fake_set_header(&f, "Content-Type", "application/x-npy");
    fake_set_header(&f, "Idempotency-Key", "a");
    post(&fake, &f, body, bytes);
    assert_int_equal(f.answer.status, 202);
    fake_end(&f);
    const struct job *job = &fake.jobs.rows[0].job;
    assert_true(job->task.inputs[0].column_major);
    const struct spool_file *file = fake_file(&fake.jobs.spool, &job->id, 0);
    assert_int_equal(file->bytes, 8 * LARGE_N * LARGE_N);
    unsigned char *whole = malloc((size_t)file->bytes);
    assert_int_equal(pread(file->fd, whole, (size_t)file->bytes, 0), file->bytes);
    assert_memory_equal(whole, body + 128, (size_t)file->bytes);
    free(whole);
    /* The same once more, under its key: the job that is there, and no file is left of this one. */
    request(&fake, &f, "respond-async");
    fake_set_header(&f, "Content-Type", "application/x-npy");
    fake_set_header(&f, "Idempotency-Key", "a");
    post(&fake, &f, body, bytes);
    assert_int_equal(f.answer.status, 200);
    fake_end(&f);
    workers_destroy(&fake.services.pool);
    assert_int_equal(fake_files(&fake.jobs.spool), 1);
    fake_stop(&fake);
}

/* Refused for its head, before its body has come. */
static void test_upload_refused(void **state)
{
    (void)state;
    static const struct {
        const char *descr;
        int64_t n;
        enum error open_error, check_error, write_error;
        int status;
    } rows[] = {
        {"<c8", LARGE_N, ERROR_NONE, ERROR_NONE, ERROR_NONE, 400},
        {"<f8", LARGE_N + 1, ERROR_NONE, ERROR_NONE, ERROR_NONE, 400}, /* a length that is not so */
        {"<f8", LARGE_N, ERROR_NO_ROOM, ERROR_NONE, ERROR_NONE, 507},
        {"<f8", LARGE_N, ERROR_NONE, ERROR_TOO_LARGE, ERROR_NONE, 413},
        {"<f8", LARGE_N, ERROR_NONE, ERROR_NONE, ERROR_NO_ROOM, 507},
    };
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t bytes = fake_npy_body(body, sizeof body, 1, rows[i].n, rows[i].descr, "False");
        fake.jobs.open_error = rows[i].open_error;
        fake.jobs.check_error = rows[i].check_error;
        fake.jobs.spool.write_error = rows[i].write_error;
        request(&fake, &f, "respond-async");
        fake_set_header(&f, "Content-Type", "application/x-npy");
        f.x.content_length = 128 + 8 * LARGE_N * LARGE_N;
        handlers_begin(&f.x);
        assert_false(f.x.answered);
        fake_bring(&f, body, bytes);
        assert_int_equal(f.answer.status, rows[i].status);
        assert_true(f.x.body_bytes < 100000);
        fake_end(&f);
    }
    assert_int_equal(fake.jobs.count, 0);
    fake_stop(&fake);
}

/* The client leaves in the middle of its upload: the file goes. */
static void test_upload_left(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    size_t bytes = fake_npy_body(body, sizeof body, 1, LARGE_N, "<f8", "False");
    request(&fake, &f, "respond-async");
    fake_set_header(&f, "Content-Type", "application/x-npy");
    f.x.content_length = (int64_t)bytes;
    handlers_begin(&f.x);
    fake_bring(&f, body, bytes / 2);
    assert_false(f.x.answered);
    fake_end(&f);
    for (int i = 0; i < 10000 && atomic_load(&fake.jobs.spool.closed_unkept) == 0; i++) {
        mailbox_run(&fake.mailbox);
        usleep(100);
    }
    assert_int_equal(atomic_load(&fake.jobs.spool.closed_unkept), 1);
    fake_stop(&fake);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct client no_jobs = {.roles = CLIENT_INFER};
    static const struct {
        const char *text, *key;
        const struct client *caller;
        enum error open_error, put_error;
        bool has_no_jobs;
        int status;
    } rows[] = {
        {.text = "{\"matrix\":[[4,7],[2]]}", .status = 400},
        {.text = "{\"matrix\":[[4,7],[2,6]],\"nosuch\":1}", .status = 400},
        {.caller = &no_jobs, .status = 403},
        {.has_no_jobs = true, .status = 503},
        {.open_error = ERROR_JOBS_OFF, .status = 503},
        {.put_error = ERROR_NO_ROOM, .status = 507},
        {.put_error = ERROR_CLIENT_QUOTA, .status = 429},
        {.put_error = ERROR_STORE_FAILED, .status = 507},
        {.key = "", .status = 400},
        {.key = "\x80", .status = 400},
    };
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *text = rows[i].text != NULL ? rows[i].text : small;
        fake.jobs.open_error = rows[i].open_error;
        fake.jobs.put_error = rows[i].put_error;
        fake.services.jobs = rows[i].has_no_jobs ? NULL : &fake.jobs;
        request(&fake, &f, "respond-async");
        if (rows[i].caller != NULL)
            f.x.caller = rows[i].caller;
        if (rows[i].key != NULL)
            fake_set_header(&f, "Idempotency-Key", rows[i].key);
        post(&fake, &f, text, strlen(text));
        assert_int_equal(f.answer.status, rows[i].status);
        if (f.answer.status == 507 || f.answer.status == 503 || f.answer.status == 429)
            assert_non_null(fake_field(&f, "Retry-After"));
        fake_end(&f);
    }
    assert_int_equal(fake.jobs.count, 0);
    fake_stop(&fake);
}

static void test_key(void **state)
{
    (void)state;
    static const char other[] = "{\"matrix\":[[5,7],[2,6]],\"method\":\"lu\"}";
    static const struct {
        const char *key, *text, *path, *query;
        int status, jobs;
    } rows[] = {
        {"k", small, "/v1/invert", NULL, 202, 1},     {"k", small, "/v1/invert", NULL, 200, 1},
        {"k", other, "/v1/invert", NULL, 422, 1},     {"k", small, "/v1/invert", "outputs", 422, 1},
        {"other", small, "/v1/invert", NULL, 202, 2},
    };
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        request(&fake, &f, "respond-async");
        fake_set_header(&f, "Idempotency-Key", rows[i].key);
        if (rows[i].query != NULL)
            fake_set_query(&f, rows[i].query, "info");
        post(&fake, &f, rows[i].text, strlen(rows[i].text));
        assert_int_equal(f.answer.status, rows[i].status);
        assert_int_equal(fake.jobs.count, rows[i].jobs);
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* The client leaves while the store takes the job: it is there all the same, and nothing leaks. */
static void test_left_while_accepted(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    fake.jobs.hold = true;
    request(&fake, &f, "respond-async");
    fake_send(&f, small, strlen(small));
    assert_false(f.x.answered);
    fake_end(&f);
    fake_desk_go(&fake.jobs);
    mailbox_run(&fake.mailbox);
    assert_int_equal(fake.jobs.count, 1);
    fake_stop(&fake);
}

static void test_document(void **state)
{
    (void)state;
    static const struct client other = {.name = "other", .roles = CLIENT_JOBS},
                               admin = {.name = "admin", .roles = CLIENT_ADMIN};
    static const struct {
        const struct client *caller;
        int status;
    } rows[] = {{&client_anyone, 200}, {&other, 404}, {&admin, 200}};
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    const struct fake_row *row = post_small(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake_request(&fake, &f, EXCHANGE_GET, path_of(row, ""));
        f.x.caller = rows[i].caller;
        fake_send(&f, NULL, 0);
        fake_await(&fake, &f);
        assert_int_equal(f.answer.status, rows[i].status);
        if (rows[i].status == 200)
            assert_non_null(strstr(fake_body(&f), "\"position\":3"));
        fake_end(&f);
    }
    get(&fake, &f, "/v1/jobs/nosuch");
    assert_int_equal(f.answer.status, 404);
    fake_end(&f);
    get(&fake, &f, path_of(row, "/result"));
    assert_int_equal(f.answer.status, 404);
    assert_non_null(strstr(fake_body(&f), "result-not-ready"));
    fake_end(&f);
    fake_stop(&fake);
}

static void test_delete(void **state)
{
    (void)state;
    static const int statuses[] = {204, 404};
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    const struct fake_row *row = post_small(&fake);
    for (size_t i = 0; i < 2; i++) {
        fake_request(&fake, &f, EXCHANGE_DELETE, path_of(row, ""));
        fake_send(&f, NULL, 0);
        fake_await(&fake, &f);
        assert_int_equal(f.answer.status, statuses[i]);
        fake_end(&f);
    }
    fake_stop(&fake);
}

static void test_list(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
        int status, jobs;
        bool is_more;
    } rows[] = {
        {"limit", "2", 200, 2, true},
        {"limit", "3", 200, 3, false},
        {"limit", "5000", 200, 3, false},
        {"limit", "0", 400, 0, false},
        {"limit", "x", 400, 0, false},
        {"status", "accepted", 200, 3, false},
        {"status", "failed,running", 200, 0, false},
        {"status", "dismissed", 400, 0, false},
        {"status", "", 400, 0, false},
        {"since", "2020-01-01T00:00:00Z", 200, 3, false},
        {"since", "2100-01-01T00:00:00+01:00", 200, 0, false},
        {"since", "yesterday", 400, 0, false},
        {"cursor", "x", 400, 0, false},
        {"nosuch", "1", 400, 0, false},
    };
    struct fake fake;
    struct fake_exchange f;
    start(&fake);
    for (int i = 0; i < 3; i++)
        (void)post_small(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake_request(&fake, &f, EXCHANGE_GET, "/v1/jobs");
        fake_set_query(&f, rows[i].name, rows[i].value);
        fake_send(&f, NULL, 0);
        fake_await(&fake, &f);
        assert_int_equal(f.answer.status, rows[i].status);
        int jobs = 0;
        for (const char *at = fake_body(&f); (at = strstr(at, "\"id\":")) != NULL; at++)
            jobs++;
        assert_int_equal(jobs, rows[i].jobs);
        if (rows[i].status == 200)
            assert_int_equal(strstr(fake_body(&f), "\"next\":null") == NULL, rows[i].is_more);
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* A page's cursor leads to the rest. */
static void test_cursor(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    char cursor[64];
    start(&fake);
    for (int i = 0; i < 3; i++)
        (void)post_small(&fake);
    fake_request(&fake, &f, EXCHANGE_GET, "/v1/jobs");
    fake_set_query(&f, "limit", "2");
    fake_send(&f, NULL, 0);
    fake_await(&fake, &f);
    const char *next = strstr(fake_body(&f), "\"next\":\"");
    assert_non_null(next);
    assert_int_equal(sscanf(next, "\"next\":\"%63[0-9a-f]\"", cursor), 1);
    fake_end(&f);
    fake_request(&fake, &f, EXCHANGE_GET, "/v1/jobs");
    fake_set_query(&f, "cursor", cursor);
    fake_send(&f, NULL, 0);
    fake_await(&fake, &f);
    char id[JOB_ID_TEXT];
    job_id_write(&fake.jobs.rows[0].job.id, id);
    assert_non_null(strstr(fake_body(&f), id));
    assert_non_null(strstr(fake_body(&f), "\"next\":null"));
    fake_end(&f);
    fake_stop(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_job),   cmocka_unit_test(test_job_in_spool),
        cmocka_unit_test(test_upload),      cmocka_unit_test(test_upload_refused),
        cmocka_unit_test(test_upload_left), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_key),         cmocka_unit_test(test_left_while_accepted),
        cmocka_unit_test(test_document),    cmocka_unit_test(test_delete),
        cmocka_unit_test(test_list),        cmocka_unit_test(test_cursor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
