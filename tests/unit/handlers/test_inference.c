/* The life of an inference: refusals at its beginning, the way through, and an end in every state
 * with nothing left behind (fake_stop looks). */
#include "fakes.h"

#include "handlers/inference.h"
#include "handlers/inference/item_private.h"

#define INFER "/v2/models/lu/infer"
#define LENGTH "Inference-Header-Content-Length"
#define BODY_MAX (2 << 20)

static unsigned char body[BODY_MAX];

/* An infer request of `batch` binary matrices, all but sent. Returns the body's bytes. */
static size_t infer_request(struct fake *fake, struct fake_exchange *f, int64_t batch, int64_t n,
                            const char *parameters)
{
    static char length[24];
    size_t json_bytes;
    size_t bytes = fake_v2_body(body, sizeof body, batch, n, parameters, &json_bytes);
    snprintf(length, sizeof length, "%zu", json_bytes);
    fake_request(fake, f, EXCHANGE_POST, INFER);
    fake_set_header(f, LENGTH, length);
    return bytes;
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int64_t content_length;
        const char *header, *value;
        enum error enter;
        int status;
    } rows[] = {
        {INFER, -1, NULL, NULL, ERROR_NONE, 411},
        {INFER, (1 << 20) + 1, NULL, NULL, ERROR_NONE, 413},
        {INFER, 10, "Content-Encoding", "br", ERROR_NONE, 415},
        {INFER, 10, "Content-Encoding", "gzip, gzip", ERROR_NONE, 415},
        {INFER, 10, LENGTH, "", ERROR_NONE, 400},
        {INFER, 10, LENGTH, "-1", ERROR_NONE, 400},
        {INFER, 10, LENGTH, "5x", ERROR_NONE, 400},
        {INFER, 10, LENGTH, "99999999999999999999999", ERROR_NONE, 400},
        {INFER, 10, LENGTH, "11", ERROR_NONE, 400},
        {INFER, 10, NULL, NULL, ERROR_FULL, 503},
        {INFER, 10, NULL, NULL, ERROR_DRAINING, 503},
        {INFER, 10, NULL, NULL, ERROR_NO_ENGINE, 503},
        {INFER, 10, NULL, NULL, ERROR_CLIENT_QUOTA, 429},
        {INFER, -1, NULL, NULL, ERROR_FULL, 503}, /* counted in first of all */
        {"/v2/models/none/infer", 10, NULL, NULL, ERROR_NONE, 404},
        {"/v2/models/lu/versions/2/infer", 10, NULL, NULL, ERROR_NONE, 404},
        {"/v2/models/lu/versions/01/infer", 10, NULL, NULL, ERROR_NONE, 404},
        {"/v2/models/lu/versions/x/infer", 10, NULL, NULL, ERROR_NONE, 404},
        {"/v1/invert", 10, "Content-Type", "text/plain", ERROR_NONE, 415},
        {"/v1/invert", 10, "Content-Type", "application/octet-stream", ERROR_NONE, 415},
        {"/v1/invert", -1, NULL, NULL, ERROR_NONE, 411},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        fake_request(&fake, &f, EXCHANGE_POST, rows[i].path);
        f.x.content_length = rows[i].content_length;
        fake.queue.enter_error = rows[i].enter;
        if (rows[i].header != NULL)
            fake_set_header(&f, rows[i].header, rows[i].value);
        handlers_begin(&f.x);
        if (f.answer.status != rows[i].status)
            print_error("row %zu\n", i);
        assert_int_equal(f.answer.status, rows[i].status);
        assert_null(f.x.sink);
        if (rows[i].value != NULL && strcmp(rows[i].value, "application/octet-stream") == 0)
            assert_non_null(strstr(fake_body(&f), "taken by /v2/models/METHOD/infer"));
        bool retry = rows[i].status == 429 || rows[i].status == 503;
        assert_int_equal(fake_field(&f, "Retry-After") != NULL, retry);
        assert_int_equal(f.answer.close, rows[i].enter == ERROR_DRAINING);
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* One small matrix: one slot, the tensor on 64 bytes, the outputs where the answer says. */
static void test_small(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    fake_start(&fake);
    size_t bytes = infer_request(&fake, &f, 1, 8, "");
    fake_send(&f, body, bytes);
    assert_false(f.x.answered);
    assert_int_equal(fake.queue.count, 1);
    struct queue_item *item = fake.queue.items[0];
    assert_int_equal(item->inputs[0].offset_bytes % 64, 0);
    assert_int_equal(item->inputs[0].region, ENGINE_REGION_ARENA);
    assert_int_equal(item->inputs[1].region, ENGINE_REGION_NONE);
    assert_int_equal(item->outputs[0].offset_bytes % 64, 0);
    assert_int_equal(item->outputs[METHOD_OUTPUTS_MAX - 1].region, ENGINE_REGION_NONE);
    assert_int_equal(item->batch, 1);
    assert_int_equal(item->n, 8);
    assert_int_equal(item->priority, 2);
    assert_int_equal(item->client, 5);
    assert_int_equal(((struct inference *)f.x.state)->item->memory.count, 1);

    fake_compute(&fake, NULL);
    assert_false(f.x.answered); /* the completion has not run */
    mailbox_run(&fake.mailbox);
    assert_int_equal(f.answer.status, 200);
    assert_null(f.x.state);
    assert_string_equal(fake_field(&f, "Content-Type"), "application/octet-stream");
    size_t json_bytes = strtoul(fake_field(&f, LENGTH), NULL, 10);
    double first;
    memcpy(&first, f.answer.body + json_bytes, sizeof first);
    assert_true(first == 2);
    assert_int_equal(f.answer.bytes, json_bytes + 512 + 4 + 8);
    assert_true(arena_used_bytes(fake.services.arena) > 0);
    fake_end(&f);
    assert_int_equal(arena_used_bytes(fake.services.arena), 0);

    handlers__stats_publish(fake.handlers);
    assert_int_equal(
        metric_value(metric_series(fake.services.metrics, METRIC_INVERSIONS, "lu", "fp64", "good")),
        1);
    assert_int_equal(
        metric_value(metric_series(fake.services.metrics, METRIC_NV_SUCCESS, "lu", "1")), 1);
    assert_int_equal(
        metric_value(metric_series(fake.services.metrics, METRIC_NV_PENDING, "lu", "1")), 0);
    fake_stop(&fake);
}

static void test_priority_and_timeout(void **state)
{
    (void)state;
    static const struct {
        const char *parameters;
        int priority;
        uint64_t timeout_ns;
    } rows[] = {
        {"", 2, 60 * CLOCK_S},
        {",\"priority\":0", 2, 60 * CLOCK_S},
        {",\"priority\":1", 1, 60 * CLOCK_S},
        {",\"priority\":2", 2, 60 * CLOCK_S},
        {",\"priority\":3,\"timeout\":5000", 3, 5 * CLOCK_MS},
        {",\"timeout\":90000000", 2, 90 * CLOCK_S},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        size_t bytes = infer_request(&fake, &f, 1, 2, rows[i].parameters);
        /* The service's limit counts from the head, the client's from the whole body. */
        bool moved = rows[i].timeout_ns != 60 * CLOCK_S;
        f.x.body_done_ns = f.x.arrived_ns + 7 * CLOCK_S;
        fake_send(&f, body, bytes);
        assert_int_equal(fake.queue.count, 1);
        assert_int_equal(fake.queue.items[0]->priority, rows[i].priority);
        assert_int_equal(f.x.deadline_ns - (moved ? f.x.body_done_ns : f.x.arrived_ns),
                         rows[i].timeout_ns);
        assert_int_equal(f.deadline_moves, moved);
        fake_compute(&fake, NULL);
        mailbox_run(&fake.mailbox);
        assert_int_equal(f.answer.status, 200);
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* What the queue says without a result. */
static void test_item_status(void **state)
{
    (void)state;
    static const struct {
        enum error error;
        int status;
        const char *rejected;
    } rows[] = {
        {ERROR_NO_ENGINE, 503, "no-engine"},     {ERROR_POISON, 500, "engine-killed"},
        {ERROR_TOO_LARGE, 413, "too-large"},     {ERROR_FULL, 503, "service-full"},
        {ERROR_INTERNAL, 500, "internal-error"}, {ERROR_CANCELLED, 500, "internal-error"},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        size_t bytes = infer_request(&fake, &f, 1, 2, "");
        fake_send(&f, body, bytes);
        struct queue_item *item = fake_take_item(&fake.queue);
        item->status = rows[i].error;
        item->on_done(item);
        struct metric_series *rejected =
            metric_series(fake.services.metrics, METRIC_REJECTED, rows[i].rejected);
        uint64_t before = metric_value(rejected);
        mailbox_run(&fake.mailbox);
        assert_int_equal(f.answer.status, rows[i].status);
        assert_int_equal(metric_value(rejected) - before, 1);
        assert_int_equal(fake_field(&f, "Retry-After") != NULL, rows[i].status == 503);
        fake_end(&f);
    }
    handlers__stats_publish(fake.handlers);
    assert_int_equal(
        metric_value(metric_series(fake.services.metrics, METRIC_NV_FAILURE, "lu", "1")), 6);
    fake_stop(&fake);
}

/* ---- An end in every state ---- */

enum until {
    UNTIL_BEGUN,
    UNTIL_RUN, /* decoding in the pool, or queued */
    UNTIL_QUEUED,
    UNTIL_DONE,     /* its completion is posted */
    UNTIL_ENCODING, /* in the pool */
};

static void test_ends(void **state)
{
    (void)state;
    static const struct {
        enum until until;
        bool expired; /* else the client leaves */
        bool text;    /* a long JSON body */
        bool at_once; /* queue_cancel finishes the item itself */
        int cancels;
    } rows[] = {
        {UNTIL_BEGUN, false, false, false, 0},   {UNTIL_BEGUN, true, false, false, 0},
        {UNTIL_RUN, false, true, false, 0},      {UNTIL_RUN, true, true, false, 0},
        {UNTIL_QUEUED, false, false, false, 1},  {UNTIL_QUEUED, true, false, false, 1},
        {UNTIL_QUEUED, false, false, true, 1},   {UNTIL_QUEUED, true, true, true, 1},
        {UNTIL_DONE, false, false, false, 1},    {UNTIL_DONE, true, false, false, 1},
        {UNTIL_ENCODING, false, true, false, 0}, {UNTIL_ENCODING, true, true, false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake fake;
        struct fake_exchange f;
        fake_start(&fake);
        fake.queue.cancel_at_once = rows[i].at_once;
        size_t bytes = infer_request(&fake, &f, 1, 2, "");
        if (rows[i].text) {
            memset(f.headers, 0, sizeof f.headers);
            bytes = fake_json_body(body, sizeof body, 64, "1.25e10");
        }
        f.x.content_length = (int64_t)bytes;
        handlers_begin(&f.x);
        assert_false(f.x.answered);
        fake_bring(&f, body, bytes);
        if (rows[i].until >= UNTIL_RUN)
            handlers_run(&f.x);
        if (rows[i].until >= UNTIL_QUEUED)
            fake_await_item(&fake);
        bool computed = rows[i].until >= UNTIL_DONE;
        if (computed)
            fake_compute(&fake, NULL);
        if (rows[i].until == UNTIL_ENCODING)
            mailbox_run(&fake.mailbox);
        assert_false(f.x.answered);

        if (rows[i].expired) {
            handlers_expired(&f.x, rows[i].until == UNTIL_BEGUN ? HANDLERS_LATE_BODY
                                                                : HANDLERS_LATE_ANSWER);
            assert_int_equal(f.answer.status, rows[i].until == UNTIL_BEGUN ? 408 : 504);
            assert_non_null(strstr(fake_body(&f), rows[i].until == UNTIL_BEGUN
                                                      ? "The body did not arrive in time, or"
                                                      : "No answer within 60 s; the work was dr"));
            assert_null(f.x.sink);
        }
        fake_end(&f);
        assert_int_equal(fake.queue.cancels, rows[i].cancels);
        /* The door counts the clients that left. */
        assert_int_equal(
            metric_value(metric_series(fake.services.metrics, METRIC_CANCELLED, "timeout")),
            rows[i].expired);
        assert_int_equal(
            metric_value(metric_series(fake.services.metrics, METRIC_CANCELLED, "client_left")), 0);
        /* A running item ends later, when its engine lets go. */
        if (rows[i].until == UNTIL_QUEUED && !rows[i].at_once) {
            assert_int_equal(fake.queue.entered - fake.queue.left, 1);
            fake_compute(&fake, NULL);
        }
        fake_stop(&fake);
    }
}

/* The door gives a reply's segments back after it has ended the exchange. */
static void test_released_late(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    fake_start(&fake);
    size_t bytes = infer_request(&fake, &f, 1, 2, "");
    fake_send(&f, body, bytes);
    fake_compute(&fake, NULL);
    mailbox_run(&fake.mailbox);
    handlers_end(&f.x);
    assert_int_equal(fake.queue.entered - fake.queue.left, 1);
    f.answer.release(f.answer.context);
    free(f.answer.body);
    fake_stop(&fake);
}

/* ---- Memory ---- */

/* More than the arena ever has is refused at once. */
static void test_memory(void **state)
{
    (void)state;
    static const int64_t rows[] = {
        FAKE_ARENA_BYTES + 1, FAKE_ARENA_BYTES - 100 /* no room for an answer next to it */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake fake;
        struct fake_exchange f;
        fake_start(&fake);
        fake.services.limits.body_max_bytes = INT64_C(1) << 40;
        fake_request(&fake, &f, EXCHANGE_POST, INFER);
        f.x.content_length = rows[i];
        fake_set_header(&f, LENGTH, "100");
        handlers_begin(&f.x);
        assert_int_equal(f.answer.status, 413);
        fake_end(&f);
        fake_stop(&fake);
    }
}

enum wait_end {
    ROOM_COMES,
    DEADLINE,      /* of the wait */
    CLIENT_LEAVES, /* while it waits */
    LEAVES_LATE,   /* when room has come, and its message has not */
    WAIT_ENDS
};

/* A body for which there is no memory waits: for its first part, or once it is whole. */
static void test_waiting_for_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * WAIT_ENDS; i++) {
        struct fake fake;
        struct fake_exchange f;
        enum wait_end end = (enum wait_end)(i / 2);
        bool is_whole = i % 2 != 0;
        fake_start(&fake);
        size_t bytes = infer_request(&fake, &f, 20, 24, "");
        f.x.content_length = (int64_t)bytes;
        handlers_begin(&f.x);
        assert_true(f.x.takes_body && f.x.sink_bytes == 0);
        assert_int_equal(fake.queue.reserved_bytes, 0);
        if (is_whole) {
            fake_bring(&f, body, bytes < 30000 ? bytes : 30000);
            fake.queue.is_short = true;
            assert_false(handlers_make_room(&f.x, (int64_t)bytes));
        } else {
            fake.queue.is_short = true;
            assert_false(handlers_make_room(&f.x, 1));
        }
        fake.queue.is_short = false;
        if (end == ROOM_COMES || end == LEAVES_LATE)
            fake_give_room(&fake.queue);
        if (end == ROOM_COMES) {
            mailbox_run(&fake.mailbox);
            assert_int_equal(f.rooms_made, 1);
            assert_true(f.x.sink_bytes > 0);
            f.x.body_bytes = 0; /* again from the start */
            fake_bring(&f, body, bytes);
            handlers_run(&f.x);
            fake_compute(&fake, NULL);
            fake_await(&fake, &f);
            assert_int_equal(f.answer.status, 200);
        } else if (end == DEADLINE) {
            handlers_expired(&f.x, HANDLERS_LATE_ROOM);
            assert_int_equal(f.answer.status, 503);
            assert_string_equal(fake_field(&f, "Retry-After"), "7");
        }
        fake_end(&f);
        mailbox_run(&fake.mailbox);
        assert_int_equal(f.rooms_made, end == ROOM_COMES);
        fake_stop(&fake);
    }
}

/* What a client with an account has done is counted for it, and it pays for its batches. */
static void test_accounts(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    fake_start(&fake);
    struct client client = {.name = "lab", .roles = CLIENT_INFER, .account = &fake.queue.account};
    size_t bytes = infer_request(&fake, &f, 3, 8, "");
    f.x.caller = &client;
    fake_send(&f, body, bytes);
    assert_ptr_equal(fake.queue.items[0]->account, client.account);
    fake_compute(&fake, NULL);
    fake_await(&fake, &f);
    assert_int_equal(client.account->matrices, 3);
    handlers_answered(&f.x, 200, 12, 34); /* which the door calls */
    assert_int_equal(client.account->answers, 1);
    assert_int_equal(client.account->out_bytes, 34);
    fake_end(&f);
    bytes = infer_request(&fake, &f, 1, 8, "");
    fake_send(&f, body, bytes); /* of a client without one */
    assert_null(fake.queue.items[0]->account);
    fake_compute(&fake, NULL);
    fake_await(&fake, &f);
    handlers_answered(&f.x, 200, 12, 34);
    fake_end(&f);
    assert_int_equal(client.account->answers, 1);
    assert_ptr_equal(handlers_certified(fake.handlers, "a"), &fake.queue.account);
    assert_string_equal(fake.queue.certified, "a");
    fake_stop(&fake);
}

/* A quota that says when to come again is believed. */
static void test_retry_after(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    static const struct {
        int retry_after_s;
        const char *field;
    } rows[] = {{0, "7"}, {1, "1"}, {86400, "86400"}};
    fake_start(&fake);
    fake.queue.enter_error = ERROR_CLIENT_QUOTA;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake.queue.retry_after_s = rows[i].retry_after_s;
        fake_request(&fake, &f, EXCHANGE_POST, i == 1 ? "/v1/invert" : INFER);
        f.x.content_length = i == 1 ? -1 : 10; /* a bad head is refused for the quota as well */
        handlers_begin(&f.x);
        assert_int_equal(f.answer.status, 429);
        assert_string_equal(fake_field(&f, "Retry-After"), rows[i].field);
        assert_non_null(strstr(fake_body(&f), "no entry"));
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* The outputs do not fit what is left: refused after decoding. */
static void test_no_room_for_outputs(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    struct arena_slot slot = {0};
    fake_start(&fake);
    assert_int_equal(arena_alloc(fake.services.arena, FAKE_ARENA_BYTES - (16 << 10), &slot),
                     ERROR_NONE);
    fake_request(&fake, &f, EXCHANGE_POST, INFER);
    size_t bytes = fake_json_body(body, sizeof body, 40, "1");
    fake_send(&f, body, bytes);
    assert_int_equal(f.answer.status, 503);
    assert_string_equal(fake_field(&f, "Retry-After"), "7");
    fake_end(&f);
    arena_free(fake.services.arena, &slot);
    fake_stop(&fake);
}

/* Text whose numbers alone are more than the arena: no use in trying again. */
static void test_never_fits(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    fake_start(&fake);
    fake.services.limits.body_max_bytes = BODY_MAX;
    fake_request(&fake, &f, EXCHANGE_POST, INFER);
    size_t bytes = fake_json_body(body, sizeof body, 720, "1");
    fake_send(&f, body, bytes);
    fake_await(&fake, &f);
    assert_int_equal(f.answer.status, 413);
    fake_end(&f);
    fake_stop(&fake);
}

/* Text that turns out to need more than there is: on the loop, and in the pool. */
static void test_more_than_foreseen(void **state)
{
    (void)state;
    static const struct {
        int64_t n, bytes_max;
        const char *element;
    } rows[] = {{40, 12288, "1"}, {128, 670000, "1.25e10"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake fake;
        struct fake_exchange f;
        fake_start(&fake);
        fake.queue.bytes_max = rows[i].bytes_max;
        fake_request(&fake, &f, EXCHANGE_POST, INFER);
        size_t bytes = fake_json_body(body, sizeof body, rows[i].n, rows[i].element);
        fake_send(&f, body, bytes);
        fake_await(&fake, &f);
        assert_int_equal(f.answer.status, 503);
        assert_string_equal(fake_field(&f, "Retry-After"), "7");
        assert_non_null(strstr(fake_body(&f), "no more bytes"));
        fake_end(&f);
        fake_stop(&fake);
    }
}

/* ---- Work of no matrices ---- */

static void test_empty(void **state)
{
    (void)state;
    static const struct {
        int64_t batch, n;
        size_t tail_bytes; /* INFO and RCOND */
    } rows[] = {{0, 4, 0}, {3, 0, 3 * 12}, {0, 0, 0}};
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        size_t bytes = infer_request(&fake, &f, rows[i].batch, rows[i].n, "");
        fake_send(&f, body, bytes);
        assert_int_equal(f.answer.status, 200);
        size_t json_bytes = strtoul(fake_field(&f, LENGTH), NULL, 10);
        assert_int_equal(f.answer.bytes - json_bytes, rows[i].tail_bytes);
        if (rows[i].batch > 0) {
            double rcond;
            memcpy(&rcond, f.answer.body + f.answer.bytes - 8, 8);
            assert_true(rcond == 1);
        }
        fake_end(&f);
    }
    fake_stop(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_priority_and_timeout),
        cmocka_unit_test(test_item_status),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_released_late),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_waiting_for_memory),
        cmocka_unit_test(test_more_than_foreseen),
        cmocka_unit_test(test_accounts),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_no_room_for_outputs),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_never_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
