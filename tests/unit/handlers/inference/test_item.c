/* An item's way from bytes to the queue, and back to an answer's bytes. No exchange. */
#include "../fake_queue.h"

#include "handlers/inference/answer.h"
#include "handlers/inference/item.h"

#define ARENA_BYTES (1 << 20)
#define CLIENT 5
#define MATRICES "{\"matrices\": [[[2, 0], [0, 4]], [[1, 0], [0, 1]]], \"method\": \"lu\"}"

struct bed {
    struct queue queue;
    struct arena *arena;
    struct item_source source;
    struct item *item;
    int rooms_made;
};

static void on_room(void *context)
{
    struct bed *bed = context;
    bed->rooms_made++;
}

static void make_bed(struct bed *bed)
{
    struct failure failure;
    memset(bed, 0, sizeof *bed);
    assert_int_equal(arena_create(ARENA_BYTES, &bed->arena, &failure), ERROR_NONE);
    bed->source = (struct item_source){.arena = bed->arena,
                                       .queue = &bed->queue,
                                       .method_default = method_find("auto"),
                                       .inflated_max_bytes = ARENA_BYTES,
                                       .client = CLIENT,
                                       .account = &bed->queue.account,
                                       .arrived_ns = 77,
                                       .on_room = on_room,
                                       .context = bed};
    bed->item = handlers__item_create();
    assert_non_null(bed->item);
}

static void free_bed(struct bed *bed)
{
    assert_int_equal(bed->queue.entered, bed->queue.left);
    assert_int_equal(arena_used_bytes(bed->arena), 0);
    handlers__item_destroy(&bed->item);
    assert_null(bed->item);
    arena_destroy(&bed->arena);
}

static enum error open_item(struct bed *bed, const struct item_head *head, struct failure *failure)
{
    return handlers__item_open(bed->item, &bed->source, head, failure);
}

static void close_item(struct bed *bed)
{
    handlers__item_close(bed->item);
}

/* From bytes to tensors. */
static enum error decode(struct bed *bed, enum proto_format format, const char *method,
                         const void *body, size_t bytes, struct failure *failure)
{
    struct item_head head = {.method = method != NULL ? method_find(method) : NULL,
                             .format = format,
                             .json_bytes = -1,
                             .body_bytes = (int64_t)bytes};
    assert_int_equal(open_item(bed, &head, failure), ERROR_NONE);
    int64_t room_bytes;
    if (bytes > 0) {
        assert_true(handlers__item_make_room(bed->item, (int64_t)bytes));
        unsigned char *to = handlers__item_body(bed->item, &room_bytes);
        assert_true(room_bytes >= (int64_t)bytes);
        memcpy(to, body, bytes);
    }
    handlers__item_receive(bed->item, (int64_t)bytes);
    assert_true(handlers__item_make_whole(bed->item));
    return handlers__item_decode(bed->item, failure);
}

static struct proto_request *decode_text(struct bed *bed, const char *text)
{
    struct failure failure;
    assert_int_equal(decode(bed, PROTO_FORMAT_UNKNOWN, NULL, text, strlen(text), &failure),
                     ERROR_NONE);
    return handlers__item_request(bed->item);
}

static void on_done(struct queue_item *done)
{
    struct bed *bed = done->owner;
    int *calls = handlers__item_done(done);
    ++*calls;
    queue_computed(&bed->queue, 1);
}

/* Ends the only item of the queue as an engine would that answers with zeros. */
static void finish(struct bed *bed, enum error status)
{
    struct queue_item *queued = fake_take_item(&bed->queue);
    const struct method *method = queued->method;
    for (int i = 0; i < method_output_count(method); i++)
        if (queued->outputs[i].region != ENGINE_REGION_NONE)
            memset(arena_base(bed->arena) + queued->outputs[i].offset_bytes, 0,
                   (size_t)(queued->batch * method_tensor_bytes(&method->outputs[i],
                                                                queued->precision, queued->n,
                                                                queued->m, queued->options)));
    queued->status = status;
    queued->on_done(queued);
}

static void test_whole_way(void **state)
{
    (void)state;
    struct bed bed;
    struct failure failure;
    int calls = 0;
    make_bed(&bed);
    const struct proto_request *request = decode_text(&bed, MATRICES);
    assert_ptr_equal(request->method, method_find("lu"));
    assert_int_equal(request->batch, 2);
    assert_int_equal(request->n, 2);
    assert_int_equal(handlers__item_take_outputs(bed.item, &failure), ERROR_NONE);
    assert_true(handlers__item_answer_max_bytes(bed.item) > 2 * 4 * 8);
    assert_true(handlers__item_needs_engine(bed.item));
    handlers__item_submit(bed.item, on_done, &bed, &calls);

    const struct queue_item *queued = bed.queue.items[0];
    assert_ptr_equal(queued->method, request->method);
    assert_int_equal(queued->client, CLIENT);
    assert_ptr_equal(queued->account, &bed.queue.account);
    assert_int_equal(queued->priority, 2);
    assert_int_equal(queued->batch, 2);
    assert_ptr_equal(queued->owner, &bed);
    const double *a =
        (const double *)(const void *)(arena_base(bed.arena) + queued->inputs[0].offset_bytes);
    assert_true(a[0] == 2 && a[3] == 4 && a[4] == 1);
    int inverse = method_output_find(request->method, "INVERSE");
    assert_int_equal(queued->outputs[inverse].region, ENGINE_REGION_ARENA);

    finish(&bed, ERROR_NONE);
    assert_int_equal(calls, 1);
    assert_int_equal(handlers__item_failure(bed.item, &failure), ERROR_NONE);
    assert_ptr_equal(handlers__item_result(bed.item), queued);
    struct answer answer;
    const struct answer_compression none = {.coding = PROTO_CODING_IDENTITY};
    assert_false(handlers__answer_is_long(bed.item));
    assert_int_equal(handlers__answer_encode(bed.item, &none, &answer, &failure), ERROR_NONE);
    assert_string_equal(answer.body.content_type, "application/json");
    assert_int_equal(answer.coding, PROTO_CODING_IDENTITY);
    assert_true(answer.body.total_bytes > 0);

    /* The same, compressed. */
    const struct answer_compression gzip = {.coding = PROTO_CODING_GZIP, .level = 1};
    assert_int_equal(handlers__answer_encode(bed.item, &gzip, &answer, &failure), ERROR_NONE);
    assert_int_equal(answer.coding, PROTO_CODING_GZIP);
    close_item(&bed);
    free_bed(&bed);
}

static void test_no_engine_needed(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int64_t batch, n;
    } rows[] = {
        {"{\"matrix\": [], \"method\": \"lu\"}", 1, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bed bed;
        struct failure failure;
        make_bed(&bed);
        enum error error =
            decode(&bed, PROTO_FORMAT_JSON, NULL, rows[i].body, strlen(rows[i].body), &failure);
        if (error != ERROR_NONE)
            fail_msg("row %zu: %s", i, failure.detail);
        assert_int_equal(handlers__item_request(bed.item)->batch, rows[i].batch);
        assert_int_equal(handlers__item_request(bed.item)->n, rows[i].n);
        assert_int_equal(handlers__item_take_outputs(bed.item, &failure), ERROR_NONE);
        assert_false(handlers__item_needs_engine(bed.item));
        handlers__item_fill_empty(bed.item);
        assert_string_equal(handlers__item_result(bed.item)->kernel, "none");
        int info = method_output_find(method_find("lu"), "INFO");
        const int32_t *infos = handlers__item_outputs(bed.item)[info];
        for (int64_t b = 0; b < rows[i].batch; b++)
            assert_int_equal(infos[b], 0);
        close_item(&bed);
        free_bed(&bed);
    }
}

static void test_method(void **state)
{
    (void)state;
    static const struct {
        const char *method, *body, *expected; /* method: of the head */
    } rows[] = {
        {NULL, "{\"matrix\": [[1]]}", "auto"},
        {NULL, "{\"matrix\": [[1]], \"method\": \"lu\"}", "lu"},
        {"lu", "{\"matrix\": [[1]]}", "lu"},
        {NULL, "[[1]]", NULL},
        {NULL, "{\"matrix\": [[1]", NULL},
        {NULL, "", NULL},
    };
    struct bed bed;
    make_bed(&bed);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct failure failure;
        enum error error = decode(&bed, PROTO_FORMAT_UNKNOWN, rows[i].method, rows[i].body,
                                  strlen(rows[i].body), &failure);
        assert_int_equal(error == ERROR_NONE, rows[i].expected != NULL);
        if (error == ERROR_NONE)
            assert_string_equal(handlers__item_request(bed.item)->method->name, rows[i].expected);
        else
            assert_int_equal(failure.code, error);
        close_item(&bed);
    }
    free_bed(&bed);
}

static void test_limits(void **state)
{
    (void)state;
    struct bed bed;
    struct failure failure;
    make_bed(&bed);
    const struct item_head larger = {.body_bytes = 4 * ARENA_BYTES, .json_bytes = -1};
    assert_int_equal(open_item(&bed, &larger, &failure), ERROR_TOO_LARGE);
    assert_int_equal(failure.code, ERROR_TOO_LARGE);
    bed.queue.enter_error = ERROR_CLIENT_QUOTA; /* which takes precedence */
    assert_int_equal(open_item(&bed, &larger, &failure), ERROR_CLIENT_QUOTA);
    bed.queue.enter_error = ERROR_NONE;

    /* The client may hold no more than what it came with. */
    (void)decode_text(&bed, "{\"matrix\": [[1]], \"method\": \"lu\"}");
    bed.queue.bytes_max = 1;
    enum error error = handlers__item_take_outputs(bed.item, &failure);
    assert_true(error == ERROR_NONE || error == ERROR_FULL);
    close_item(&bed);
    free_bed(&bed);
}

/* Text is likely to need more than its length: all of that is there before it is decoded. */
static void test_waiting(void **state)
{
    (void)state;
    const struct item_head head = {
        .format = PROTO_FORMAT_JSON, .body_bytes = ARENA_BYTES / 8, .json_bytes = -1};
    struct bed bed;
    struct failure failure;
    int64_t room_bytes;
    make_bed(&bed);
    assert_int_equal(open_item(&bed, &head, &failure), ERROR_NONE);
    assert_int_equal(bed.queue.reserved_bytes, 0);
    assert_true(handlers__item_make_room(bed.item, 10));
    memcpy(handlers__item_body(bed.item, &room_bytes), "{\"matrix\":", 10);
    bed.queue.is_short = true;
    assert_false(handlers__item_make_room(bed.item, head.body_bytes));
    assert_true(handlers__item_stop_waiting(bed.item));
    assert_false(handlers__item_make_room(bed.item, head.body_bytes));
    fake_give_room(&bed.queue);
    assert_int_equal(bed.rooms_made, 1);
    assert_true(handlers__item_make_room(bed.item, head.body_bytes));
    assert_true(bed.queue.reserved_bytes > 2 * head.body_bytes);
    unsigned char *body = handlers__item_body(bed.item, &room_bytes);
    assert_memory_equal(body, "{\"matrix\":", 10);
    memset(body + 10, ' ', (size_t)head.body_bytes - 10);
    handlers__item_receive(bed.item, head.body_bytes);
    assert_true(handlers__item_make_whole(bed.item)); /* it has all */
    assert_int_not_equal(handlers__item_decode(bed.item, &failure), ERROR_NONE);
    close_item(&bed);
    free_bed(&bed);
}

/* RESIDUAL is measured from INVERSE, which then has memory, and is not answered. */
static void test_output_of_the_inverse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool has_inverse;
    } rows[] = {
        {"{\"method\":\"ism\",\"x\":[[1]],\"y\":[[1]],\"outputs\":\"residual\"}", true},
        {"{\"method\":\"ism\",\"x\":[[1]],\"y\":[[1]],\"outputs\":\"rcond\"}", false},
    };
    const struct method *method = method_find("ism");
    struct bed bed;
    make_bed(&bed);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct failure failure;
        int calls = 0;
        (void)decode_text(&bed, rows[i].text);
        assert_int_equal(handlers__item_take_outputs(bed.item, &failure), ERROR_NONE);
        handlers__item_submit(bed.item, on_done, &bed, &calls);
        const struct queue_item *queued = bed.queue.items[0];
        for (int k = 0; k < 2; k++) {
            const int output = method_output_find(method, k == 0 ? "INVERSE" : "RESIDUAL");
            assert_int_equal(queued->outputs[output].region == ENGINE_REGION_ARENA,
                             rows[i].has_inverse);
        }
        finish(&bed, ERROR_NONE);
        assert_int_equal(handlers__item_failure(bed.item, &failure), ERROR_NONE);
        close_item(&bed);
    }
    free_bed(&bed);
}

static void test_results(void **state)
{
    (void)state;
    static const struct {
        enum error status, expected;
    } rows[] = {
        {ERROR_NONE, ERROR_NONE},          {ERROR_NO_ENGINE, ERROR_NO_ENGINE},
        {ERROR_POISON, ERROR_POISON},      {ERROR_TOO_LARGE, ERROR_TOO_LARGE},
        {ERROR_FULL, ERROR_FULL},          {ERROR_INTERNAL, ERROR_INTERNAL},
        {ERROR_CANCELLED, ERROR_INTERNAL}, /* by no one who asks for the result */
    };
    struct bed bed;
    make_bed(&bed);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct failure failure;
        int calls = 0;
        (void)decode_text(&bed, MATRICES);
        assert_int_equal(handlers__item_take_outputs(bed.item, &failure), ERROR_NONE);
        handlers__item_submit(bed.item, on_done, &bed, &calls);
        finish(&bed, rows[i].status);
        assert_int_equal(handlers__item_failure(bed.item, &failure), rows[i].expected);
        close_item(&bed);
    }
    free_bed(&bed);
}

static void test_cancel(void **state)
{
    (void)state;
    struct bed bed;
    struct failure failure;
    int calls = 0;
    make_bed(&bed);
    (void)decode_text(&bed, MATRICES);
    assert_int_equal(handlers__item_take_outputs(bed.item, &failure), ERROR_NONE);
    bed.queue.cancel_at_once = true;
    handlers__item_submit(bed.item, on_done, &bed, &calls);
    handlers__item_cancel(bed.item);
    assert_int_equal(calls, 1);
    assert_int_equal(bed.queue.cancels, 1);
    close_item(&bed);
    free_bed(&bed);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_way), cmocka_unit_test(test_no_engine_needed),
        cmocka_unit_test(test_method),    cmocka_unit_test(test_limits),
        cmocka_unit_test(test_waiting),   cmocka_unit_test(test_results),
        cmocka_unit_test(test_cancel),    cmocka_unit_test(test_output_of_the_inverse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
