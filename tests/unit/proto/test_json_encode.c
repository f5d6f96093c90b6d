/* tests/unit/proto/test_json_encode.c: /v1 answers as JSON, to the byte. */
#include "bench.h"

#include <math.h>

static double inverse[8] = {1, 2.5, -3e-9, 4, 5, 6, 7, 8};
static int32_t info[2] = {0, -1};
static double rcond[2] = {0.5, 0};
static int32_t algorithm[2] = {METHOD_ALGORITHM_DIAGONAL, METHOD_ALGORITHM_GAUSS_JORDAN};
static int32_t pivots[4] = {2, 2, 1, 2};

struct row {
    const char *name, *method;
    int64_t n;
    int lead_rank;
    int64_t lead[PROTO_RANK_MAX];
    int outputs[4], output_count;
    bool no_algorithm; /* the METHOD output was not computed */
    const char *json;
};

static const struct row rows[] = {
    {"one",
     "lu",
     2,
     0,
     {0},
     {0, 1, 2},
     3,
     false,
     "{\"inverse\":[[1,2.5],[-3e-09,4]],\"info\":0,\"rcond\":0.5,\"method\":\"lu\"}\n"},
    {"a stack",
     "lu",
     2,
     1,
     {2},
     {0, 1, 2},
     3,
     false,
     "{\"inverse\":[[[1,2.5],[-3e-09,4]],[[5,6],[7,8]]],\"info\":[0,-1],\"rcond\":[0.5,null],"
     "\"method\":[\"lu\",\"lu\"]}\n"},
    {"two dimensions of batch",
     "lu",
     1,
     2,
     {1, 2},
     {0, 1},
     2,
     false,
     "{\"inverse\":[[[[1]],[[2.5]]]],\"info\":[[0,-1]],\"method\":[[\"lu\",\"lu\"]]}\n"},
    {"METHOD asked for",
     "auto",
     1,
     1,
     {2},
     {3, 0},
     2,
     false,
     "{\"method\":[\"diagonal\",\"gauss_jordan\"],\"inverse\":[[[1]],[[2.5]]]}\n"},
    {"METHOD not asked for",
     "auto",
     1,
     0,
     {0},
     {1},
     1,
     false,
     "{\"info\":0,\"method\":\"diagonal\"}\n"},
    {"METHOD not computed", "auto", 1, 0, {0}, {1}, 1, true, "{\"info\":0}\n"},
    {"n = 0", "lu", 0, 0, {0}, {0, 1}, 2, false, "{\"inverse\":[],\"info\":0,\"method\":\"lu\"}\n"},
    {"no matrices",
     "lu",
     2,
     1,
     {0},
     {0, 1},
     2,
     false,
     "{\"inverse\":[],\"info\":[],\"method\":[]}\n"},
    {"matrices without rows",
     "lu",
     0,
     1,
     {2},
     {0, 1},
     2,
     false,
     "{\"inverse\":[[],[]],\"info\":[0,-1],\"method\":[\"lu\",\"lu\"]}\n"},
    {"pivots", "lu_factor", 2, 0, {0}, {1}, 1, false, "{\"pivots\":[2,2],\"method\":\"lu\"}\n"},
};

static void fill(struct proto_request *request, const struct row *row)
{
    proto_request_init(request, PROTO_FORMAT_JSON, method_find(row->method));
    request->n = row->n;
    request->lead_rank = row->lead_rank;
    request->batch = 1;
    for (int i = 0; i < row->lead_rank; i++) {
        request->lead[i] = row->lead[i];
        request->batch *= row->lead[i];
    }
    for (int i = 0; i < row->output_count; i++)
        request->outputs[i].index = row->outputs[i];
    request->output_count = row->output_count;
}

static void test_answers(void **state)
{
    (void)state;
    rcond[1] = NAN;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct prototest_space space;
        struct proto_request request;
        struct proto_answer answer;
        struct failure failure = {0};
        bool factor = strcmp(rows[i].method, "lu_factor") == 0;
        bool none = rows[i].n == 0 || strcmp(rows[i].name, "no matrices") == 0;
        void *const outputs[METHOD_OUTPUTS_MAX] = {none ? NULL : inverse, factor ? pivots : info,
                                                   rcond, rows[i].no_algorithm ? NULL : algorithm};
        fill(&request, &rows[i]);
        prototest_space_init(&space, proto_answer_bound(&request));
        enum error error = proto_json_encode(&request, outputs, &space.space, &answer, &failure);
        prototest_expect(rows[i].name, error, ERROR_NONE, &failure, NULL);
        char *joined = prototest_join(&answer);
        assert_string_equal(joined, rows[i].json);
        assert_string_equal(answer.content_type, "application/json");
        assert_int_equal(answer.json_bytes, -1);
        free(joined);
        prototest_space_free(&space);
    }
}

/* Deep shapes and wide numbers fit the bound. */
static void test_bound(void **state)
{
    (void)state;
    static const struct row deep = {"deep",
                                    "lu",
                                    1,
                                    PROTO_RANK_MAX,
                                    {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                                    {0, 1, 2},
                                    3,
                                    false,
                                    NULL};
    double wide[2] = {-2.2250738585072014e-308, -1.7976931348623157e+308};
    int32_t least[2] = {INT32_MIN, INT32_MIN};
    void *const outputs[METHOD_OUTPUTS_MAX] = {wide, least, wide};
    struct prototest_space space;
    struct proto_request request;
    struct proto_answer answer;
    struct failure failure = {0};
    fill(&request, &deep);
    prototest_space_init(&space, proto_answer_bound(&request));
    assert_int_equal(proto_json_encode(&request, outputs, &space.space, &answer, &failure),
                     ERROR_NONE);
    prototest_space_free(&space);
    prototest_space_init(&space, 100);
    enum error error = proto_json_encode(&request, outputs, &space.space, &answer, &failure);
    prototest_expect("no room", error, ERROR_FULL, &failure, "no room");
    prototest_space_free(&space);
}

static void test_overflow(void **state)
{
    (void)state;
    struct proto_request request;
    struct failure failure = {0};
    struct proto_answer answer;
    struct prototest_space space;
    void *const outputs[METHOD_OUTPUTS_MAX] = {inverse, info, rcond};
    fill(&request, &rows[1]);
    request.lead[0] = request.batch = INT64_C(1) << 57; /* as binary it would still fit */
    prototest_space_init(&space, 0);
    assert_int_equal(proto_answer_bound(&request), -1);
    enum error error = proto_json_encode(&request, outputs, &space.space, &answer, &failure);
    prototest_expect("overflow", error, ERROR_TOO_LARGE, &failure, "too large");
    prototest_space_free(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
