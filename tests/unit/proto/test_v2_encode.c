/* tests/unit/proto/test_v2_encode.c: answers of the Open Inference Protocol, to the byte. */
#include "bench.h"

#include <math.h>

static double inverse_f64[8] = {1, -0.5, 1e300, 4, 5, 6, 7, 0.1};
static float inverse_f32[8] = {1, -0.5F, 0.1F, 4, 5, 6, 7, 8};
static int32_t info[2] = {0, 3};
static double rcond_f64[2] = {0.25, 0};
static float rcond_f32[2] = {0.25F, 0};
static int32_t algorithm[2] = {METHOD_ALGORITHM_CHOLESKY, METHOD_ALGORITHM_NONE};

struct row {
    const char *name, *method, *id;
    enum precision precision;
    int64_t batch, n;
    struct proto_output outputs[METHOD_OUTPUTS_MAX];
    int output_count;
    const char *json; /* of the answer */
    int binary_bytes; /* behind it; -1: an answer of JSON alone */
};

static const struct row rows[] = {
    {"JSON",
     "lu",
     NULL,
     PRECISION_FP64,
     2,
     2,
     {{0, false}, {1, false}, {2, false}},
     3,
     "{\"model_name\":\"lu\",\"model_version\":\"1\",\"outputs\":["
     "{\"name\":\"INVERSE\",\"shape\":[2,2,2],\"datatype\":\"FP64\",\"data\":[1,-0.5,1e+300,4,null,"
     "6,7,0.1]},"
     "{\"name\":\"INFO\",\"shape\":[2],\"datatype\":\"INT32\",\"data\":[0,3]},"
     "{\"name\":\"RCOND\",\"shape\":[2],\"datatype\":\"FP64\",\"data\":[0.25,0]}]}",
     -1},
    {"FP32 and an id",
     "lu",
     "a\"\\\n\x01\xc3\xa9",
     PRECISION_FP32,
     1,
     2,
     {{0, false}},
     1,
     "{\"model_name\":\"lu\",\"model_version\":\"1\",\"id\":\"a\\\"\\\\\\n\\u0001\xc3\xa9\","
     "\"outputs\":[{\"name\":\"INVERSE\",\"shape\":[1,2,2],\"datatype\":\"FP32\",\"data\":[1,-0.5,"
     "0.1,4]}]}",
     -1},
    {"an empty id",
     "lu",
     "",
     PRECISION_FP64,
     1,
     1,
     {{1, false}},
     1,
     "{\"model_name\":\"lu\",\"model_version\":\"1\",\"id\":\"\",\"outputs\":[{\"name\":\"INFO\","
     "\"shape\":[1],\"datatype\":\"INT32\",\"data\":[0]}]}",
     -1},
    {"binary",
     "lu",
     NULL,
     PRECISION_FP64,
     2,
     2,
     {{2, true}, {0, true}},
     2,
     "{\"model_name\":\"lu\",\"model_version\":\"1\",\"outputs\":["
     "{\"name\":\"RCOND\",\"shape\":[2],\"datatype\":\"FP64\",\"parameters\":{\"binary_data_size\":"
     "16}},"
     "{\"name\":\"INVERSE\",\"shape\":[2,2,2],\"datatype\":\"FP64\",\"parameters\":{"
     "\"binary_data_size\":64}}]}",
     80},
    {"mixed",
     "auto",
     "7",
     PRECISION_FP32,
     2,
     2,
     {{3, true}, {1, false}, {0, true}, {3, false}},
     3,
     "{\"model_name\":\"auto\",\"model_version\":\"1\",\"id\":\"7\",\"outputs\":["
     "{\"name\":\"METHOD\",\"shape\":[2],\"datatype\":\"BYTES\",\"parameters\":{\"binary_data_"
     "size\":"
     "20}},"
     "{\"name\":\"INFO\",\"shape\":[2],\"datatype\":\"INT32\",\"data\":[0,3]},"
     "{\"name\":\"INVERSE\",\"shape\":[2,2,2],\"datatype\":\"FP32\",\"parameters\":{"
     "\"binary_data_size\":32}}]}",
     52},
    {"METHOD as JSON",
     "auto",
     NULL,
     PRECISION_FP64,
     2,
     2,
     {{3, false}},
     1,
     "{\"model_name\":\"auto\",\"model_version\":\"1\",\"outputs\":[{\"name\":\"METHOD\",\"shape\":"
     "["
     "2],\"datatype\":\"BYTES\",\"data\":[\"cholesky\",\"none\"]}]}",
     -1},
    {"nothing in it",
     "lu",
     NULL,
     PRECISION_FP64,
     0,
     2,
     {{0, true}, {1, false}},
     2,
     "{\"model_name\":\"lu\",\"model_version\":\"1\",\"outputs\":[{\"name\":\"INVERSE\",\"shape\":["
     "0,2,2],\"datatype\":\"FP64\",\"parameters\":{\"binary_data_size\":0}},{\"name\":\"INFO\","
     "\"shape\":[0],\"datatype\":\"INT32\",\"data\":[]}]}",
     0},
};

static void fill(struct proto_request *request, const struct row *row)
{
    proto_request_init(request, PROTO_FORMAT_V2, method_find(row->method));
    request->precision = row->precision;
    request->batch = row->batch;
    request->n = row->n;
    request->lead_rank = 1;
    request->lead[0] = row->batch;
    memcpy(request->outputs, row->outputs, sizeof request->outputs);
    request->output_count = row->output_count;
    request->has_id = row->id != NULL;
    if (row->id != NULL)
        strcpy(request->id, row->id);
}

static char *encode(const struct row *row, struct proto_answer *answer)
{
    struct prototest_space space;
    struct proto_request request;
    struct failure failure = {0};
    bool f32 = row->precision == PRECISION_FP32;
    void *const outputs[METHOD_OUTPUTS_MAX] = {f32 ? (void *)inverse_f32 : (void *)inverse_f64,
                                               info, f32 ? (void *)rcond_f32 : (void *)rcond_f64,
                                               algorithm};
    fill(&request, row);
    prototest_space_init(&space, proto_answer_bound(&request));
    inverse_f64[4] = NAN;
    enum error error = proto_v2_encode(&request, outputs, &space.space, answer, &failure);
    prototest_expect(row->name, error, ERROR_NONE, &failure, NULL);
    char *joined = prototest_join(answer);
    prototest_space_free(&space);
    return joined;
}

static void test_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        struct proto_answer answer;
        char *joined = encode(row, &answer);
        int64_t json_bytes = (int64_t)strlen(row->json);
        if (memcmp(joined, row->json, (size_t)json_bytes) != 0)
            fail_msg("%s: %s", row->name, joined);
        assert_int_equal(answer.json_bytes, row->binary_bytes < 0 ? -1 : json_bytes);
        assert_string_equal(answer.content_type, row->binary_bytes < 0
                                                     ? "application/json"
                                                     : "application/octet-stream");
        /* JSON alone ends its line. */
        int64_t behind = row->binary_bytes < 0 ? 1 : row->binary_bytes;
        assert_int_equal(answer.total_bytes, json_bytes + behind);
        if (row->binary_bytes < 0)
            assert_int_equal(joined[json_bytes], '\n');
        free(joined);
    }
}

static void test_binary(void **state)
{
    (void)state;
    struct proto_answer answer;
    char *joined = encode(&rows[3], &answer);
    assert_memory_equal(joined + answer.json_bytes, rcond_f64, 16);
    assert_memory_equal(joined + answer.json_bytes + 16, inverse_f64, 64);
    free(joined);
    joined = encode(&rows[4], &answer);
    assert_memory_equal(joined + answer.json_bytes, "\x08\0\0\0cholesky\x04\0\0\0none", 20);
    assert_memory_equal(joined + answer.json_bytes + 20, inverse_f32, 32);
    /* Outputs are not copied. */
    assert_ptr_equal(answer.segments[answer.segment_count - 1].iov_base, inverse_f32);
    free(joined);
}

static void test_no_room(void **state)
{
    (void)state;
    struct prototest_space space;
    struct proto_request request;
    struct proto_answer answer;
    struct failure failure = {0};
    void *const outputs[METHOD_OUTPUTS_MAX] = {inverse_f64, info, rcond_f64, algorithm};
    fill(&request, &rows[0]);
    prototest_space_init(&space, proto_answer_bound(&request) / 2);
    enum error error = proto_v2_encode(&request, outputs, &space.space, &answer, &failure);
    prototest_expect("no room", error, ERROR_FULL, &failure, "no room");
    prototest_space_free(&space);
}

/* The widest numbers, names and shapes fit the bound. */
static void test_bound(void **state)
{
    (void)state;
    static double wide[4] = {-2.2250738585072014e-308, -1.7976931348623157e+308,
                             -1.2345678901234567e-300, -4.9406564584124654e-324};
    static float wide_f32[4] = {-1.17549435e-38F, -3.40282347e+38F, -1.23456789e-30F, -1e-45F};
    int32_t least[1] = {INT32_MIN};
    for (int p = 0; p < PRECISION_COUNT; p++) {
        struct row row = rows[0];
        char id[PROTO_ID_MAX + 1];
        memset(id, 1, sizeof id);
        id[PROTO_ID_MAX] = '\0';
        row.precision = (enum precision)p;
        row.batch = 1;
        row.id = id;
        struct prototest_space space;
        struct proto_request request;
        struct proto_answer answer;
        struct failure failure = {0};
        void *data = p == PRECISION_FP32 ? (void *)wide_f32 : (void *)wide;
        void *const outputs[METHOD_OUTPUTS_MAX] = {data, least, data};
        fill(&request, &row);
        prototest_space_init(&space, proto_answer_bound(&request));
        assert_int_equal(proto_v2_encode(&request, outputs, &space.space, &answer, &failure),
                         ERROR_NONE);
        prototest_space_free(&space);
    }
}

static void test_long(void **state)
{
    (void)state;
    static const struct {
        enum proto_format format;
        int64_t batch;
        bool binary, npz, is_long;
    } cases[] = {
        {PROTO_FORMAT_V2, 2, false, false, false},
        {PROTO_FORMAT_V2, 1000, false, false, true},
        {PROTO_FORMAT_V2, 1000, true, false, false},
        {PROTO_FORMAT_RAW, 1000, true, false, false},
        {PROTO_FORMAT_NPY, 1000, false, false, false},
        {PROTO_FORMAT_NPZ, 1000, false, true, true},
        {PROTO_FORMAT_NPZ, 2, false, true, false},
        {PROTO_FORMAT_JSON, 1000, false, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct proto_request request;
        fill(&request, &rows[0]);
        request.format = cases[i].format;
        request.batch = request.lead[0] = cases[i].batch;
        request.want_npz = cases[i].npz;
        for (int k = 0; k < request.output_count; k++)
            request.outputs[k].binary = cases[i].binary;
        assert_int_equal(proto_answer_is_long(&request), cases[i].is_long);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers), cmocka_unit_test(test_binary),
        cmocka_unit_test(test_no_room), cmocka_unit_test(test_bound),
        cmocka_unit_test(test_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
