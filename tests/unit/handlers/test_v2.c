/* The Open Inference Protocol's endpoints, with codecs that are the real ones. */
#include "fakes.h"

#include <jansson.h>
#include <zlib.h>

#define LENGTH "Inference-Header-Content-Length"

static unsigned char body[64 << 10];

static json_t *json_of(const struct fake_exchange *f)
{
    json_t *json = json_loadb(fake_body(f), f->answer.bytes, 0, NULL);
    assert_non_null(json);
    return json;
}

static const char *member(json_t *json, const char *name)
{
    return json_string_value(json_object_get(json, name));
}

static void test_documents(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    fake_start(&fake);
    fake_request(&fake, &f, EXCHANGE_GET, "/v2");
    fake_send(&f, NULL, 0);
    json_t *json = json_of(&f);
    assert_string_equal(member(json, "name"), "invertd");
    assert_string_equal(member(json, "version"), "1.2.3");
    assert_int_equal(json_array_size(json_object_get(json, "extensions")), 5);
    json_decref(json);
    fake_end(&f);

    static const struct {
        const char *path;
        int status;
        const char *member; /* of the answer */
    } rows[] = {
        {"/v2/models/lu", 200, "platform"},
        {"/v2/models/lu/versions/1", 200, "platform"},
        {"/v2/models/lu/config", 200, "max_batch_size"},
        {"/v2/models/auto/versions/1/config", 200, "max_batch_size"},
        {"/v2/models/lu/versions/1/stats", 200, "model_stats"},
        {"/v2/models/nothing", 404, "error"},
        {"/v2/models/l", 404, "error"},
        {"/v2/models/lux/config", 404, "error"},
        {"/v2/models/lu/versions/2", 404, "error"},
        {"/v2/models/lu/versions/11/stats", 404, "error"},
        {"/v2/models/lu/versions/one/ready", 404, "error"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake_request(&fake, &f, EXCHANGE_GET, rows[i].path);
        fake_send(&f, NULL, 0);
        assert_int_equal(f.answer.status, rows[i].status);
        json = json_of(&f);
        assert_non_null(json_object_get(json, rows[i].member));
        json_decref(json);
        fake_end(&f);
    }
    fake_stop(&fake);
}

static void test_index(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool ready;
        int status, models; /* -1: all */
        const char *state;
    } rows[] = {
        {"", true, 200, -1, "READY"},
        {"{}", true, 200, -1, "READY"},
        {" { \"ready\" :\ttrue }\r\n", true, 200, -1, "READY"},
        {"{\"ready\":true}", false, 200, 0, NULL},
        {"{\"ready\":false}", false, 200, -1, "UNAVAILABLE"},
        {"[]", true, 400, 0, NULL},
        {"{\"ready\":true", true, 400, 0, NULL},
        {"{\"ready\":\"a value that is far too long for it\"}", true, 400, 0, NULL},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        atomic_store(&fake.services.ready, rows[i].ready);
        fake_request(&fake, &f, EXCHANGE_POST, "/v2/repository/index");
        fake_send(&f, rows[i].body, strlen(rows[i].body));
        assert_int_equal(f.answer.status, rows[i].status);
        json_t *json = json_of(&f);
        if (rows[i].status == 200) {
            size_t models = rows[i].models < 0 ? (size_t)method_count() : 0;
            assert_int_equal(json_array_size(json), models);
            for (size_t m = 0; m < models; m++) {
                assert_string_equal(member(json_array_get(json, m), "state"), rows[i].state);
                assert_string_equal(member(json_array_get(json, m), "version"), "1");
            }
        }
        json_decref(json);
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* A body that never comes, one that is too long, one of unknown length. */
static void test_index_refusals(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    fake_start(&fake);
    fake_request(&fake, &f, EXCHANGE_POST, "/v2/repository/index");
    f.x.content_length = 10;
    handlers_begin(&f.x);
    assert_non_null(f.x.sink);
    handlers_expired(&f.x, HANDLERS_LATE_BODY);
    assert_int_equal(f.answer.status, 408);
    fake_end(&f);
    fake_request(&fake, &f, EXCHANGE_POST, "/v2/repository/index");
    f.x.content_length = 5000;
    handlers_begin(&f.x);
    assert_int_equal(f.answer.status, 413);
    fake_end(&f);
    fake_stop(&fake);
}

/* JSON in, JSON out, with the id; INFO says, the status is 200 all the same. */
static void test_infer_json(void **state)
{
    (void)state;
    static const char text[] =
        "{\"id\":\"x\\\"y\",\"inputs\":[{\"name\":\"A\",\"shape\":[2,2,2],\"datatype\":\"FP64\","
        "\"data\":[[[1,2],[3,4]],[[5,6],[7,8]]]}]}";
    struct fake fake;
    struct fake_exchange f;
    fake_start(&fake);
    fake_request(&fake, &f, EXCHANGE_POST, "/v2/models/lu/infer");
    fake_send(&f, text, sizeof text - 1);
    fake_compute(&fake, (const int32_t[]){0, 2});
    mailbox_run(&fake.mailbox);
    assert_int_equal(f.answer.status, 200);
    assert_null(fake_field(&f, LENGTH));
    assert_string_equal(fake_field(&f, "Content-Type"), "application/json");
    json_t *json = json_of(&f);
    assert_string_equal(member(json, "model_name"), "lu");
    assert_string_equal(member(json, "model_version"), "1");
    assert_string_equal(member(json, "id"), "x\"y");
    json_t *outputs = json_object_get(json, "outputs");
    assert_int_equal(json_array_size(outputs), 3);
    json_t *info = json_object_get(json_array_get(outputs, 1), "data");
    assert_int_equal(json_integer_value(json_array_get(info, 1)), 2);
    json_decref(json);
    fake_end(&f);
    handlers_run(&f.x); /* answered already: does nothing */
    fake_stop(&fake);
}

static void test_infer_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *json_bytes;
        int status;
        const char *said, *query; /* an argument's name, or NULL */
    } rows[] = {
        {"", NULL, 400, "The body is empty; send JSON", NULL},
        {"", "0", 400, "8 n^2 bytes", NULL},
        {"nonsense", NULL, 400, LENGTH " must say", NULL},
        {"{\"inputs\":[]}", NULL, 400, "inputs", NULL},
        {"{\"inputs\":[{\"name\":\"A\",\"shape\":[1,2,2],\"datatype\":\"FP64\",\"data\":[1]}]}",
         NULL, 400, "A", NULL},
        {"12345678", "8", 400, "malformed", NULL},
        {"1234567", "0", 400, "8 n^2 bytes", NULL},
        {"12345678", "0", 400, "timeout cannot stand here: /v2 has its options in", "timeout"},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        fake_request(&fake, &f, EXCHANGE_POST, "/v2/models/lu/infer");
        if (rows[i].json_bytes != NULL)
            fake_set_header(&f, LENGTH, rows[i].json_bytes);
        if (rows[i].query != NULL)
            fake_set_query(&f, rows[i].query, "5");
        fake_send(&f, rows[i].text, strlen(rows[i].text));
        assert_int_equal(f.answer.status, rows[i].status);
        json_t *json = json_of(&f);
        assert_true(json_is_string(json_object_get(json, "error")));
        assert_non_null(strstr(json_string_value(json_object_get(json, "error")), rows[i].said));
        json_decref(json);
        fake_end(&f);
    }
    fake_stop(&fake);
}

static void test_raw(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    fake_start(&fake);
    double matrix[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    fake_request(&fake, &f, EXCHANGE_POST, "/v2/models/lu/infer");
    fake_set_header(&f, LENGTH, "0");
    fake_send(&f, matrix, sizeof matrix);
    assert_int_equal(fake.queue.items[0]->n, 3);
    fake_compute(&fake, NULL);
    mailbox_run(&fake.mailbox);
    assert_int_equal(f.answer.status, 200);
    size_t json_bytes = strtoul(fake_field(&f, LENGTH), NULL, 10);
    assert_memory_equal(f.answer.body + json_bytes, matrix, sizeof matrix);
    fake_end(&f);
    fake_stop(&fake);
}

static size_t gzip(const unsigned char *from, size_t bytes, unsigned char *to, size_t most)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)from,
                  .avail_in = (unsigned)bytes,
                  .next_out = to,
                  .avail_out = (unsigned)most};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

static size_t gunzip(const unsigned char *from, size_t bytes, unsigned char *to, size_t most)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)from,
                  .avail_in = (unsigned)bytes,
                  .next_out = to,
                  .avail_out = (unsigned)most};
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    inflateEnd(&z);
    return z.total_out;
}

/* Compressed both ways; a small answer, or a client that does not ask, gets it as it is. */
static void test_compression(void **state)
{
    (void)state;
    static const struct {
        int64_t n;
        const char *accept;
        bool in, out;
    } rows[] = {
        {24, "gzip", false, true}, {24, "gzip", true, true},       {24, NULL, true, false},
        {4, "gzip", true, false},  {24, "gzip;q=0", false, false},
    };
    static unsigned char packed[64 << 10], plain[64 << 10];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake fake;
        struct fake_exchange f;
        fake_start(&fake);
        char length[24];
        size_t json_bytes;
        size_t bytes = fake_v2_body(body, sizeof body, 1, rows[i].n, "", &json_bytes);
        snprintf(length, sizeof length, "%zu", json_bytes);
        fake_request(&fake, &f, EXCHANGE_POST, "/v2/models/lu/infer");
        fake_set_header(&f, LENGTH, length);
        if (rows[i].accept != NULL)
            fake_set_header(&f, "Accept-Encoding", rows[i].accept);
        if (rows[i].in) {
            fake_set_header(&f, "Content-Encoding", "gzip");
            bytes = gzip(body, bytes, packed, sizeof packed);
            fake_send(&f, packed, bytes);
        } else {
            fake_send(&f, body, bytes);
        }
        fake_await_item(&fake);
        fake_compute(&fake, NULL);
        fake_await(&fake, &f);
        assert_int_equal(f.answer.status, 200);
        assert_string_equal(fake_field(&f, "Vary"), "Accept-Encoding");
        const unsigned char *answer = f.answer.body;
        size_t answer_bytes = f.answer.bytes;
        if (rows[i].out) {
            assert_string_equal(fake_field(&f, "Content-Encoding"), "gzip");
            answer_bytes = gunzip(answer, answer_bytes, plain, sizeof plain);
            answer = plain;
        } else {
            assert_null(fake_field(&f, "Content-Encoding"));
        }
        json_bytes = strtoul(fake_field(&f, LENGTH), NULL, 10);
        assert_int_equal(answer_bytes, json_bytes + (size_t)(rows[i].n * rows[i].n) * 8 + 4 + 8);
        double first;
        memcpy(&first, answer + json_bytes, sizeof first);
        assert_true(first == 2);
        fake_end(&f);
        fake_stop(&fake);
    }
}

/* The pool's list is full: a body that needs it is refused, an answer goes out uncompressed. */
static atomic_bool pool_blocked;

static void block_pool(struct workers_task *task)
{
    (void)task;
    while (atomic_load(&pool_blocked))
        usleep(100);
}

static void test_full_pool(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    struct workers_task tasks[8];
    fake_start(&fake);
    atomic_store(&pool_blocked, true);
    int taken = 0;
    for (int i = 0; i < 8; i++) {
        tasks[i].run = block_pool;
        if (workers_submit(fake.services.pool, &tasks[i]) == ERROR_NONE)
            taken++;
        usleep(2000); /* so that the thread holds one and the list the others */
    }
    assert_in_range(taken, 4, 7);

    fake_request(&fake, &f, EXCHANGE_POST, "/v2/models/lu/infer");
    fake_set_header(&f, "Content-Encoding", "gzip");
    fake_send(&f, "12345678", 8);
    assert_int_equal(f.answer.status, 503);
    fake_end(&f);

    char length[24];
    size_t json_bytes;
    size_t bytes = fake_v2_body(body, sizeof body, 1, 24, "", &json_bytes);
    snprintf(length, sizeof length, "%zu", json_bytes);
    fake_request(&fake, &f, EXCHANGE_POST, "/v2/models/lu/infer");
    fake_set_header(&f, LENGTH, length);
    fake_set_header(&f, "Accept-Encoding", "gzip");
    fake_send(&f, body, bytes);
    fake_compute(&fake, NULL);
    mailbox_run(&fake.mailbox);
    assert_int_equal(f.answer.status, 200);
    assert_null(fake_field(&f, "Content-Encoding"));
    fake_end(&f);
    atomic_store(&pool_blocked, false);
    fake_stop(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents),      cmocka_unit_test(test_index),
        cmocka_unit_test(test_index_refusals), cmocka_unit_test(test_infer_json),
        cmocka_unit_test(test_infer_errors),   cmocka_unit_test(test_raw),
        cmocka_unit_test(test_compression),    cmocka_unit_test(test_full_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
