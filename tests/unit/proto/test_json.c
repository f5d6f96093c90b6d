/* tests/unit/proto/test_json.c: /v1 JSON requests, good and hostile. */
#include "bench.h"

#define SIXTEEN "0123456789abcdef"
#define LONG                                                                                       \
    SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN        \
        SIXTEEN SIXTEEN SIXTEEN SIXTEEN SIXTEEN

struct row {
    const char *name;
    const struct method *method; /* NULL: not known before */
    const char *json;
    enum error code;
    const char *fragment;
};

static enum error decode(const struct method *method, const char *json,
                         struct prototest_space *space, struct prototest_body *body,
                         struct proto_request *request, struct failure *failure)
{
    *body = prototest_body(json, (int64_t)strlen(json), 1);
    proto_request_init(request, PROTO_FORMAT_JSON, method);
    return proto_json_decode(body->bytes, body->length, &space->space, request, failure);
}

static const struct row hostile[] = {
    {"empty", NULL, "", ERROR_MALFORMED, "malformed"},
    {"an array", NULL, "[[1]]", ERROR_MALFORMED, "wrap it"},
    {"nothing given", NULL, "{}", ERROR_MALFORMED,
     "input A is missing; auto takes A, as in {\"matrix\": [[...]]}"},
    {"deep", NULL, "{\"q\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]", ERROR_MALFORMED,
     "over 32 levels"},
    {"deep matrix", NULL, "{\"matrix\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]",
     ERROR_BAD_SHAPE, "\"matrix\" has more than 16 dimensions"},
    {"matrix cut", NULL, "{\"matrix\":[[1,2],[3", ERROR_MALFORMED, "ends within"},
    {"matrix not closed", NULL, "{\"matrix\":[[1,2],[3,4]}", ERROR_MALFORMED, "a comma or ']'"},
    {"comma too many", NULL, "{\"matrix\":[[1,2],[3,4],]}", ERROR_MALFORMED,
     "at byte 24: a trailing comma, a number is missing"},
    {"an option outside", NULL, "{\"matrix\":[[1]],\"spd\":true}", ERROR_BAD_OPTION,
     "go into \"options\""},
    {"two commas", NULL, "{\"matrix\":[[1,,2],[3,4]]}", ERROR_MALFORMED, "a number is missing"},
    {"no comma", NULL, "{\"matrix\":[[1 2],[3,4]]}", ERROR_MALFORMED, "a comma or ']'"},
    {"no comma between rows", NULL, "{\"matrix\":[[1,2][3,4]]}", ERROR_MALFORMED, "a comma or ']'"},
    {"true", NULL, "{\"matrix\":[[true]]}", ERROR_MALFORMED, "numbers alone"},
    {"Infinity", NULL, "{\"matrix\":[[Infinity]]}", ERROR_MALFORMED,
     "matrix[0,0]: JSON has no NaN and no Infinity; binary tensors and NPY can carry them, where "
     "INFO "
     "is then -1 (byte 13)"},
    {"NaN", NULL, "{\"matrix\":[[1,2],[3,NaN]]}", ERROR_MALFORMED,
     "matrix[1,1]: JSON has no NaN and no Infinity; binary tensors"},
    {"null", NULL, "{\"matrix\":[[1,null],[3,4]]}", ERROR_MALFORMED,
     "matrix[0,1]: null, or nan, is not a number in JSON"},
    {"a string", NULL, "{\"x\":[[\"1\"]],\"method\":\"ism\"}", ERROR_MALFORMED,
     "x[0,0] is a string; a matrix must hold numbers (byte 8)"},
    {"a string in place of a row", NULL, "{\"matrix\":[[1,2],\"3\"]}", ERROR_MALFORMED,
     "matrix[1] is a string; a matrix must hold numbers (byte 18)"},
    {"hexadecimal", NULL, "{\"matrix\":[[1,2],[3,0x10]]}", ERROR_MALFORMED,
     "matrix[1,1]: a matrix must hold numbers alone (byte 22)"},
    {"behind a row", NULL, "{\"matrix\":[[1,2]x]}", ERROR_MALFORMED, "matrix[0]: a matrix must"},
    {"behind a number", NULL, "{\"matrix\":[[1,2\"3\"]]}", ERROR_MALFORMED,
     "matrix[0,1]: a matrix must hold numbers alone (byte 16)"},
    {"number of signs", NULL, "{\"matrix\":[[--]]}", ERROR_MALFORMED,
     "matrix[0,0] is not a number"},
    {"number of signs in A", NULL, "{\"a\":[[--]]}", ERROR_MALFORMED, "A[0,0] is not a number"},
    {"matrix a number", NULL, "{\"matrix\":4}", ERROR_MALFORMED,
     "\"matrix\" must be an array of numbers, a list of rows, as in {\"matrix\": [[4, 7], [2, "
     "6]]}"},
    {"matrices a string", NULL, "{\"matrices\":\"a\"}", ERROR_MALFORMED,
     "must be an array of numbers, a list of matrices, as in {\"matrices\": [[[4, 7], [2, 6]]]}"},
    {"A a number", NULL, "{\"a\":4}", ERROR_MALFORMED,
     "\"a\" must be an array of numbers of shape [n,n]"},
    {"A0 a number", NULL, "{\"method\":\"ism\",\"a0\":4}", ERROR_MALFORMED,
     "\"a0\" must be an array of numbers of shape [1], [n] or [n,n]"},
    {"A0 a word", NULL, "{\"a0\":\"identity\",\"method\":\"ism\"}", ERROR_MALFORMED,
     "\"a0\" must be an array of numbers of shape [1], [n] or [n,n]"},
    {"matrix flat", NULL, "{\"matrix\":[1,2,3,4]}", ERROR_BAD_SHAPE, "list of rows"},
    {"matrix of three levels", NULL, "{\"matrix\":[[[1]]]}", ERROR_BAD_SHAPE, "list of rows"},
    {"matrices of two", NULL, "{\"matrices\":[[1]]}", ERROR_BAD_SHAPE, "list of matrices"},
    {"not square", NULL, "{\"matrix\":[[1,2],[3,4],[5,6]]}", ERROR_BAD_SHAPE,
     "matrix has shape [3,2]: the last two dimensions must be equal"},
    {"not square in a batch", NULL, "{\"matrices\":[[[1,2]]]}", ERROR_BAD_SHAPE,
     "matrices has shape [1,1,2]: the last two dimensions must be equal"},
    {"A not square", NULL, "{\"a\":[[1,2],[3,4],[5,6]]}", ERROR_BAD_SHAPE,
     "A has shape [3,2]: the last two dimensions must be equal"},
    {"rows without numbers", NULL, "{\"matrix\":[[],[]]}", ERROR_BAD_SHAPE, "shape [2,0]"},
    {"ragged", NULL, "{\"matrix\":[[1,2],[3]]}", ERROR_BAD_SHAPE,
     "matrix[1] has 1 entry, the rows before it have 2 (byte 20)"},
    {"ragged in a stack", NULL, "{\"matrices\":[[[1,2],[3,4]],[[5,6],[7]]]}", ERROR_BAD_SHAPE,
     "matrices[1,1] has 1 entry, the rows before it have 2 (byte 37)"},
    {"stack of different orders", NULL, "{\"matrices\":[[[1,2],[3,4]],[[5,6]]]}", ERROR_BAD_SHAPE,
     "matrices[1] has 1 row, those before it have 2: all matrices of a request must have one "
     "shape: send one request for each shape (byte 34)"},
    {"stacks of different lengths", NULL, "{\"matrices\":[[[[1]],[[2]]],[[[3]]]]}", ERROR_BAD_SHAPE,
     "matrices[1] has 1 list, those before it have 2 (byte 34)"},
    {"wider in a stack", NULL, "{\"matrices\":[[[1]],[[5,6],[7,8]]]}", ERROR_BAD_SHAPE,
     "matrices[1,0] has 2 entries, the rows before it have 1: all matrices of a request must have "
     "one shape: send one request for each shape (byte 25)"},
    {"diagonals of two orders", NULL,
     "{\"method\":\"tridiagonal\",\"d\":[[1,2],[3]],\"dl\":[[1],[]],\"du\":[[1],[]]}",
     ERROR_BAD_SHAPE,
     "d[1] has 1 entry, those before it have 2: all matrices of a request must have one shape"},
    {"empty next to number", NULL, "{\"matrix\":[[],1]}", ERROR_BAD_SHAPE,
     "matrix[1]: an array mixes numbers and lists at one level (byte 15)"},
    {"list next to number", NULL, "{\"matrix\":[1,[2]]}", ERROR_BAD_SHAPE,
     "matrix[1]: an array mixes numbers and lists at one level (byte 14)"},
    {"both", NULL, "{\"matrix\":[[1]],\"matrices\":[[[1]]]}", ERROR_MALFORMED, "given twice"},
    {"two names for one", NULL, "{\"matrix\":[[1]],\"a\":[[1]]}", ERROR_MALFORMED, "given twice"},
    {"same name twice", NULL, "{\"matrix\":[[1]],\"matrix\":[[1]]}", ERROR_MALFORMED, "duplicate"},
    {"two cases of a name", NULL, "{\"a\":[[1]],\"A\":[[1]]}", ERROR_MALFORMED, "given twice"},
    {"unknown member", NULL, "{\"matrix\":[[1]],\"colour\":1}", ERROR_MALFORMED,
     "no member \"colour\""},
    {"escapes in an unknown name", NULL, "{\"matrix\":[[1]],\"a\\tb\":1}", ERROR_MALFORMED,
     "no member \"a?b\""},
    {"a name in two spellings", NULL, "{\"matrix\":[[1]],\"m\\u0061trix\":[[1]]}", ERROR_MALFORMED,
     "duplicate"},
    {"method unknown", NULL, "{\"method\":\"magic\",\"matrix\":[[1]]}", ERROR_BAD_OPTION,
     "no method 'magic'"},
    {"method a number", NULL, "{\"method\":1,\"matrix\":[[1]]}", ERROR_BAD_OPTION, "\"method\""},
    {"precision", NULL, "{\"precision\":\"fp16\",\"matrix\":[[1]]}", ERROR_BAD_OPTION, "fp32"},
    {"overflow of fp32", NULL, "{\"precision\":\"fp32\",\"matrix\":[[1,2],[3,1e40]]}",
     ERROR_MALFORMED, "matrix[1,1] is too large for FP32"},
    {"option unknown", NULL, "{\"options\":{\"fast\":true},\"matrix\":[[1]]}", ERROR_BAD_OPTION,
     "auto has no option 'fast'; it takes spd, outputs, on_singular, priority, timeout; another "
     "method is named by \"method\""},
    {"an optional input alone", NULL, "{\"method\":\"iterative\",\"v0\":[[1]]}", ERROR_MALFORMED,
     "input A is missing; iterative takes A, V0 (optional), as in {\"matrix\": [[...]]}"},
    {"option a list", NULL, "{\"options\":{\"spd\":[1]},\"matrix\":[[1]]}", ERROR_BAD_OPTION,
     "option spd: a list is not allowed; give true or false"},
    {"option null", NULL, "{\"options\":{\"spd\":null},\"matrix\":[[1]]}", ERROR_BAD_OPTION,
     "option spd: null is not allowed; give true or false"},
    {"method among the options", NULL, "{\"options\":{\"method\":\"lu\"},\"matrix\":[[1]]}",
     ERROR_BAD_OPTION, "\"method\" stands next to \"options\", not in them"},
    {"choice an object", &prototest_update, "{\"options\":{\"variant\":{}},\"x\":[[1]]}",
     ERROR_BAD_OPTION,
     "option variant: an object is not allowed; give a string, one of auto|single|block"},
    {"number null", &prototest_update, "{\"options\":{\"tolerance\":null},\"x\":[[1]]}",
     ERROR_BAD_OPTION, "option tolerance: null is not allowed; give a number from 0 to 0.5"},
    {"number as it was written", &prototest_update, "{\"options\":{\"tolerance\":0.6},\"x\":[[1]]}",
     ERROR_BAD_OPTION, "option tolerance: '0.6' is not allowed; give a number from 0 to 0.5"},
    {"choice too long", &prototest_update, "{\"options\":{\"variant\":\"" LONG "\"},\"x\":[[1]]}",
     ERROR_BAD_OPTION, "option variant: so long a string is not allowed; give a string, one of"},
    {"on_singular null", NULL, "{\"on_singular\":null,\"matrix\":[[1]]}", ERROR_BAD_OPTION,
     "option on_singular: null is not allowed; give a string, error or nan"},
    {"timeout a list", NULL, "{\"timeout\":[1],\"matrix\":[[1]]}", ERROR_BAD_OPTION,
     "option timeout: a list is not allowed; give a whole number of microseconds"},
    {"an input as an option", &prototest_update, "{\"options\":{\"a0\":[1]},\"x\":[[1]]}",
     ERROR_BAD_OPTION,
     "A0 is an input of update, not an option: give it as an array, next to \"options\""},
    {"outputs twice, within", NULL,
     "{\"options\":{\"outputs\":[\"info\"]},\"outputs\":\"info\",\"matrix\":[[1]]}",
     ERROR_BAD_OPTION, "option outputs is given twice; give it once: names with commas between"},
    {"a bare array", NULL, "[[1]]", ERROR_MALFORMED, "does not say what it is: wrap it"},
    {"options a list", NULL, "{\"options\":[],\"matrix\":[[1]]}", ERROR_BAD_OPTION, "an object"},
    {"option twice", NULL, "{\"options\":{\"timeout\":1},\"timeout\":2,\"matrix\":[[1]]}",
     ERROR_BAD_OPTION, "timeout is given twice"},
    {"on_singular", NULL, "{\"on_singular\":\"inf\",\"matrix\":[[1]]}", ERROR_BAD_OPTION,
     "error or nan"},
    {"outputs of numbers", NULL, "{\"outputs\":[1],\"matrix\":[[1]]}", ERROR_BAD_OPTION,
     "list of names"},
    {"outputs with a comma", NULL, "{\"outputs\":[\"inverse,info\"],\"matrix\":[[1]]}",
     ERROR_BAD_OPTION, "must be a list of names, as in [\"inverse\", \"info\"]"},
    {"outputs a number", NULL, "{\"outputs\":5,\"matrix\":[[1]]}", ERROR_BAD_OPTION,
     "option outputs: a number is not allowed; give a string, names with commas between them, as "
     "in "
     "inverse,info; in JSON also a list of names"},
    {"outputs an object", NULL, "{\"outputs\":{},\"matrix\":[[1]]}", ERROR_BAD_OPTION,
     "option outputs: an object is not allowed; give a string, names"},
    {"outputs unknown", NULL, "{\"outputs\":\"inverse,speed\",\"matrix\":[[1]]}", ERROR_BAD_OPTION,
     "no output 'speed'; it has inverse, info, rcond, method"},
    {"outputs twice", NULL, "{\"outputs\":[\"info\",\"INFO\"],\"matrix\":[[1]]}", ERROR_BAD_OPTION,
     "named twice"},
    {"no input of that name", NULL, "{\"method\":\"lu\",\"b\":[[1]]}", ERROR_MALFORMED,
     "for lu there is no member \"b\"; give"},
    {"an input of another method", NULL, "{\"dl\":[1],\"d\":[1,2],\"du\":[1]}", ERROR_MALFORMED,
     "for auto there is no member \"dl\", which goes with method tridiagonal; give matrix"},
    {"a range as a list", NULL,
     "{\"method\":\"tridiagonal\",\"options\":{\"rows\":[0,1]},\"dl\":[],\"d\":[1],\"du\":[]}",
     ERROR_BAD_OPTION, "option rows: a list is not allowed; give a string, first:last, both of"},
    {"an unknown option as a list", NULL, "{\"options\":{\"rows\":[0,1]},\"matrix\":[[1]]}",
     ERROR_BAD_OPTION,
     "auto has no option 'rows', which goes with method tridiagonal; it takes spd"},
    {"matrix for several inputs", &prototest_chain, "{\"matrix\":[[1]]}", ERROR_MALFORMED,
     "chain takes dl, d, du"},
    {"vectors too deep", &prototest_chain, "{\"d\":[1,2],\"dl\":[[1]],\"du\":[1]}", ERROR_BAD_SHAPE,
     "all inputs must have the same batch"},
    {"vector too long", &prototest_chain, "{\"d\":[1,2],\"dl\":[1],\"du\":[1,2]}", ERROR_BAD_SHAPE,
     "DU has shape [2]: with n = 2 (from D) it must be [1]"},
    {"garbage behind", NULL, "{\"matrix\":[[1]]}{", ERROR_MALFORMED, "end of file"},
    {"string not closed", NULL, "{\"matrix\":[[1]],\"a", ERROR_MALFORMED, "malformed"},
    {"bad UTF-8", NULL, "{\"matrix\":[[1]],\"method\":\"\xff\"}", ERROR_MALFORMED, "malformed"},
    {"a NUL", NULL, "{\"matrix\":[[1]],\"method\":\"\\u0000\"}", ERROR_MALFORMED, "malformed"},
};

static void test_hostile(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        struct prototest_space space;
        struct prototest_body body;
        struct proto_request request;
        struct failure failure = {0};
        prototest_space_init(&space, 1 << 16);
        enum error error =
            decode(hostile[i].method, hostile[i].json, &space, &body, &request, &failure);
        prototest_expect(hostile[i].name, error, hostile[i].code, &failure, hostile[i].fragment);
        prototest_body_free(&body);
        prototest_space_free(&space);
    }
}

static void test_method_named_dd(void **state)
{
    (void)state;
    struct prototest_space space;
    struct prototest_body body;
    struct proto_request request;
    struct failure failure = {0};
    prototest_space_init(&space, 1 << 16);
    enum error error = decode(method_find("lu"), "{\"method\":\"lu\",\"matrix\":[[1]]}", &space,
                              &body, &request, &failure);
    prototest_expect("method", error, ERROR_BAD_OPTION, &failure, "in the query and in the body");
    prototest_body_free(&body);
    prototest_space_free(&space);
}

struct good {
    const char *name;
    const struct method *method;
    const char *json, *method_name;
    bool f32;
    int64_t n, batch;
    int lead_rank, outputs;
};

/* The numbers of the first input count up from 0. */
static const struct good good[] = {
    {"matrix", NULL, "{\"matrix\":[[0,1],[2,3]]}", "auto", false, 2, 1, 0, 4},
    {"spaces", NULL, " { \"matrix\" : [ [ 0 , 1 ] ,\r\n [ 2 ,\t3 ] ] } ", "auto", false, 2, 1, 0,
     4},
    {"escapes in names", NULL, "{\"m\\u0061tri\\u0078\":[[0,1],[2,3]],\"met\\u0068od\":\"lu\"}",
     "lu", false, 2, 1, 0, 3},
    {"matrices", NULL, "{\"matrices\":[[[0,1],[2,3]],[[4,5],[6,7]]]}", "auto", false, 2, 2, 1, 4},
    {"by name", NULL, "{\"A\":[[0,1],[2,3]],\"method\":\"lu\"}", "lu", false, 2, 1, 0, 3},
    {"by name, deep", NULL, "{\"method\":\"lu\",\"a\":[[[[0]]],[[[1]]]]}", "lu", false, 1, 2, 2, 3},
    {"fp32, behind", NULL, "{\"matrix\":[[0,1],[2,3]],\"precision\":\"fp32\"}", "auto", true, 2, 1,
     0, 4},
    {"outputs in a list", NULL, "{\"outputs\":[\"inverse\",\"method\"],\"matrix\":[[0]]}", "auto",
     false, 1, 1, 0, 2},
    {"outputs in options", NULL,
     "{\"options\":{\"outputs\":[\"info\",\"rcond\"]},\"matrix\":[[0]]}", "auto", false, 1, 1, 0,
     2},
    {"outputs in a string", NULL, "{\"outputs\":\"rcond, info\",\"matrix\":[[0]]}", "auto", false,
     1, 1, 0, 2},
    {"outputs empty", NULL, "{\"outputs\":[],\"matrix\":[[0]]}", "auto", false, 1, 1, 0, 4},
    {"no rows", NULL, "{\"matrix\":[]}", "auto", false, 0, 1, 0, 4},
    {"no matrices", NULL, "{\"matrices\":[]}", "auto", false, 0, 0, 1, 4},
    {"matrices without rows", NULL, "{\"matrices\":[[],[]]}", "auto", false, 0, 2, 1, 4},
    {"several inputs", &prototest_chain, "{\"dl\":[0,1],\"d\":[5,5,5],\"du\":[7,8]}", "chain",
     false, 3, 1, 0, 3},
    {"order one", &prototest_chain, "{\"dl\":[[],[]],\"d\":[[5],[6]],\"du\":[[],[]]}", "chain",
     false, 1, 2, 1, 3},
};

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const struct good *row = &good[i];
        struct prototest_space space;
        struct prototest_body body;
        struct proto_request request;
        struct failure failure = {0};
        prototest_space_init(&space, 1 << 16);
        enum error error = decode(row->method, row->json, &space, &body, &request, &failure);
        prototest_expect(row->name, error, ERROR_NONE, &failure, NULL);
        assert_string_equal(request.method->name, row->method_name);
        assert_int_equal(request.n, row->n);
        assert_int_equal(request.batch, row->batch);
        assert_int_equal(request.lead_rank, row->lead_rank);
        assert_int_equal(request.output_count, row->outputs);
        const void *data = request.inputs[0].data;
        assert_non_null(data);
        int64_t count = 1;
        for (int d = 0; d < request.inputs[0].rank; d++)
            count *= request.inputs[0].shape[d];
        for (int64_t k = 0; k < count; k++)
            assert_true((row->f32 ? (double)((const float *)data)[k] : ((const double *)data)[k]) ==
                        (double)k);
        prototest_body_free(&body);
        prototest_space_free(&space);
    }
}

static void test_options(void **state)
{
    (void)state;
    struct prototest_space space;
    struct prototest_body body;
    struct proto_request request;
    struct failure failure = {0};
    prototest_space_init(&space, 1 << 16);
    enum error error = decode(
        NULL,
        "{\"matrix\":[[1]],\"options\":{\"spd\":true,\"priority\":1},\"on_singular\":\"nan\","
        "\"timeout\":7}",
        &space, &body, &request, &failure);
    prototest_expect("options", error, ERROR_NONE, &failure, NULL);
    assert_int_equal(request.options[0], 1);
    assert_int_equal(request.options_set, 1);
    assert_int_equal(request.priority, 1);
    assert_true(request.nan_on_singular);
    assert_int_equal(request.timeout_us, 7);
    /* What the body has named, the query may not name again; the rest it may. */
    error = proto_request_option(&request, "spd", "false", &failure);
    prototest_expect("twice", error, ERROR_BAD_OPTION, &failure, "spd is given twice");
    error = proto_request_option(&request, "timeout", "1", &failure);
    prototest_expect("twice", error, ERROR_BAD_OPTION, &failure, "timeout is given twice");
    assert_int_equal(proto_request_option(&request, "outputs", "info", &failure), ERROR_NONE);
    assert_int_equal(request.output_count, 1);
    prototest_body_free(&body);
    prototest_space_free(&space);
}

/* Bodies that would cost much more memory than they have bytes. */
static void test_bombs(void **state)
{
    (void)state;
    static const struct {
        const char *head, *unit, *tail;
        int units;
        enum error code;
        const char *fragment;
    } rows[] = {
        {"{\"matrices\":[", "[],", "[]]}", 300000, ERROR_TOO_LARGE, "at most 65536"},
        {"{\"q\":[", "[],", "[]]}", 300000, ERROR_TOO_LARGE, "too many JSON values"},
        {"{\"q\":[", "{},", "{}]}", 300000, ERROR_TOO_LARGE, "too many JSON values"},
        {"{\"q\":\"", "xxxxxxxx", "\"}", 300000, ERROR_TOO_LARGE, "over 1048576 bytes"},
        {"{\"matrix\":[[1]]", "        ", "}", 300000, ERROR_TOO_LARGE, "over 1048576 bytes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t unit = strlen(rows[i].unit);
        size_t head = strlen(rows[i].head);
        char *json = malloc(head + unit * (size_t)rows[i].units + strlen(rows[i].tail) + 1);
        assert_non_null(json);
        strcpy(json, rows[i].head);
        for (int u = 0; u < rows[i].units; u++)
            memcpy(json + head + unit * (size_t)u, rows[i].unit, unit);
        strcpy(json + head + unit * (size_t)rows[i].units, rows[i].tail);
        struct prototest_space space;
        struct prototest_body body;
        struct proto_request request;
        struct failure failure = {0};
        prototest_space_init(&space, 1 << 16);
        enum error error = decode(NULL, json, &space, &body, &request, &failure);
        prototest_expect(rows[i].unit, error, rows[i].code, &failure, rows[i].fragment);
        prototest_body_free(&body);
        prototest_space_free(&space);
        free(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_method_named_dd),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_bombs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
