/* The words of /v1/jobs: preferences, ranges, times, cursors, and what is kept with a job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "handlers/jobs/document.h"
#include "handlers/jobs/keep.h"
#include "handlers/jobs/prefer.h"
#include "handlers/jobs/range.h"

static void test_prefer(void **state)
{
    (void)state;
    static const struct {
        const char *values[2]; /* of two lines */
        bool respond_async;
        int wait_s;
    } rows[] = {
        {{NULL}, false, 0},
        {{""}, false, 0},
        {{"respond-async"}, true, 0},
        {{"Respond-Async"}, true, 0},
        {{"respond-asynchronously"}, false, 0},
        {{"respond-async, wait=10"}, true, 10},
        {{"wait=10,respond-async"}, true, 10},
        {{"wait = \"7\" ; x=y , respond-async"}, true, 7},
        {{"wait=3, wait=9"}, false, 3},
        {{"wait=x, respond-async"}, true, 0},
        {{"wait=-1, respond-async"}, true, 0},
        {{"wait=99999999999, respond-async"}, true, PREFER_WAIT_MAX_S},
        {{"foo=\"a, respond-async\""}, false, 0},
        {{"foo; respond-async"}, false, 0},
        {{"foo=\"\\\"\", respond-async"}, true, 0},
        {{"\""}, false, 0},
        {{",,;=,respond-async"}, true, 0},
        {{"respond-async", "wait=10"}, true, 10},
        {{"wait=10", "handling=lenient, respond-async"}, true, 10},
        {{"wait=3", "wait=9, respond-async"}, true, 3},
        {{"foo=\"", "respond-async"}, true, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct prefer prefer = {0};
        for (int k = 0; k < 2 && rows[i].values[k] != NULL; k++)
            handlers__prefer(&prefer, rows[i].values[k]);
        assert_int_equal(prefer.respond_async, rows[i].respond_async);
        assert_int_equal(prefer.wait_s, rows[i].wait_s);
    }
}

static void test_range(void **state)
{
    (void)state;
    static const struct {
        const char *range, *if_range;
        enum range_kind kind;
        int64_t first, bytes;
    } rows[] = {
        {NULL, NULL, RANGE_ALL, 0, 100},
        {"bytes=0-0", NULL, RANGE_PART, 0, 1},
        {"bytes= 10-19 ", NULL, RANGE_PART, 10, 10},
        {"Bytes=90-200", NULL, RANGE_PART, 90, 10},
        {"bytes=-30", NULL, RANGE_PART, 70, 30},
        {"bytes=-300", NULL, RANGE_PART, 0, 100},
        {"bytes=99-", NULL, RANGE_PART, 99, 1},
        {"bytes=0-99999999999999999999999", NULL, RANGE_PART, 0, 100},
        {"bytes=100-", NULL, RANGE_NONE, 0, 0},
        {"bytes=-0", NULL, RANGE_NONE, 0, 0},
        {"bytes=9-3", NULL, RANGE_ALL, 0, 100},
        {"bytes=-", NULL, RANGE_ALL, 0, 100},
        {"bytes=", NULL, RANGE_ALL, 0, 100},
        {"bytes=1-2,4-5", NULL, RANGE_ALL, 0, 100},
        {"bytes=1-2x", NULL, RANGE_ALL, 0, 100},
        {"bytes=0-9", "\"a\"", RANGE_PART, 0, 10},
        {"bytes=0-9", "\"b\"", RANGE_ALL, 0, 100},
        {"bytes=0-9", "Sat, 01 Jan 2000 00:00:00 GMT", RANGE_ALL, 0, 100},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct range range = handlers__range(rows[i].range, rows[i].if_range, "\"a\"", 100);
        assert_int_equal(range.kind, rows[i].kind);
        assert_int_equal(range.first, rows[i].first);
        assert_int_equal(range.bytes, rows[i].bytes);
    }
}

static void test_times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t unix_ms; /* -1: it is none */
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-11-28T15:18:16.123Z", 1795879096123},
        {"2026-11-28t16:18:16.123456+01:00", 1795879096123},
        {"2026-11-28 10:18:16-05:00", 1795879096000},
        {"2026-11-28T16:18:16 01:00", 1795879096000}, /* a + of a query */
        {"2024-02-29T00:00:00Z", 1709164800000},
        {"2023-02-29T00:00:00Z", -1},
        {"2026-13-01T00:00:00Z", -1},
        {"2026-01-01T24:00:00Z", -1},
        {"2026-01-01T00:00:00", -1},
        {"2026-01-01T00:00:00.Z", -1},
        {"2026-01-01", -1},
        {"yesterday", -1},
        {"", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t unix_ms = -1;
        assert_int_equal(handlers__time_read(rows[i].text, &unix_ms), rows[i].unix_ms >= 0);
        if (rows[i].unix_ms < 0)
            continue;
        assert_int_equal(unix_ms, rows[i].unix_ms);
        char text[JOB_TIME_TEXT];
        handlers__time_write(unix_ms, text);
        assert_true(handlers__time_read(text, &unix_ms));
        assert_int_equal(unix_ms, rows[i].unix_ms);
    }
}

static void test_cursor(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "x", "0123",
                                      "g000000000000000"
                                      "00000000000000000000000000000000"};
    struct job_id id = {{1, 2, 0xff}}, read;
    char text[JOB_CURSOR_TEXT];
    int64_t created_ms = 0;
    handlers__cursor_write(1795879096123, &id, text);
    assert_true(handlers__cursor_read(text, &created_ms, &read));
    assert_int_equal(created_ms, 1795879096123);
    assert_memory_equal(&read, &id, sizeof id);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(handlers__cursor_read(bad[i], &created_ms, &read));
}

/* A request of every input, kept and read. */
static void make_job(struct job *job)
{
    struct proto_request request;
    struct failure failure;
    static char there;
    memset(job, 0, sizeof *job);
    proto_request_init(&request, PROTO_FORMAT_NPZ, method_find("iterative"));
    request.lead_rank = 2;
    request.lead[0] = 3;
    request.lead[1] = 4;
    request.batch = 12;
    request.n = request.m = 5;
    request.want_npz = true;
    request.outputs[0].index = 1;
    request.outputs[1].index = 0;
    request.output_count = 2;
    request.inputs[0].data = request.inputs[1].data = &there;
    assert_int_equal(handlers__keep_task(&request, 3, &job->task, &failure), ERROR_NONE);
    for (int i = 0; i < 2; i++)
        assert_true(handlers__keep_place_input(&job->task, i, false));
    job->answer_bytes = handlers__keep_answer(&request, job->answer);
}

static void test_keep(void **state)
{
    (void)state;
    static struct job job;
    struct proto_request read;
    struct failure failure;
    make_job(&job);
    assert_int_equal(job_task_check(&job.task, &failure), ERROR_NONE);
    assert_int_equal(job.task.inputs[1].offset_bytes % KEEP_ALIGN, 0);
    assert_true(job.task.body_bytes >= 2 * 12 * 25 * 8);
    assert_int_equal(handlers__keep_request(&job, &read, &failure), ERROR_NONE);
    assert_int_equal(read.format, PROTO_FORMAT_NPZ);
    assert_true(read.want_npz && read.inputs[0].data != NULL && read.inputs[1].data != NULL);
    assert_int_equal(read.lead_rank, 2);
    assert_int_equal(read.lead[1], 4);
    assert_int_equal(read.outputs[0].index, 1);
    assert_int_equal(read.output_count, 2);
}

/* Any byte may be another, and any length: it is refused, or read within its bounds. */
static void test_spoilt(void **state)
{
    (void)state;
    static struct job job;
    struct proto_request read;
    struct failure failure;
    make_job(&job);
    const int bytes = job.answer_bytes;
    for (int length = 0; length < bytes; length++) {
        job.answer_bytes = length;
        assert_int_equal(handlers__keep_request(&job, &read, &failure), ERROR_INTERNAL);
    }
    job.answer_bytes = bytes;
    for (int at = 0; at < bytes; at++) {
        const uint8_t good = job.answer[at];
        for (int value = 0; value < 256; value++) {
            job.answer[at] = (uint8_t)value;
            if (handlers__keep_request(&job, &read, &failure) != ERROR_NONE)
                continue;
            assert_in_range(read.output_count, 1, METHOD_OUTPUTS_MAX);
            assert_int_equal(read.lead[0] * read.lead[1], 12);
            for (int i = 0; i < read.output_count; i++)
                assert_in_range(read.outputs[i].index, 0, 1);
        }
        job.answer[at] = good;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefer), cmocka_unit_test(test_range), cmocka_unit_test(test_times),
        cmocka_unit_test(test_cursor), cmocka_unit_test(test_keep),  cmocka_unit_test(test_spoilt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
