/* tests/unit/proto/test_v2.c: requests of the Open Inference Protocol, good and hostile. */
#include "bench.h"

#include <math.h>

#define A(shape, rest) "{\"inputs\":[{\"name\":\"A\",\"shape\":" shape ",\"datatype\":" rest "}]}"
#define BINARY(shape, type, bytes)                                                                 \
    A(shape, "\"" type "\",\"parameters\":{\"binary_data_size\":" #bytes "}")
#define DATA(shape, data) A(shape, "\"FP64\",\"data\":" data)
#define ONE "{\"name\":\"A\",\"shape\":[1,1,1],\"datatype\":\"FP64\",\"data\":[4]}"
#define FACTOR(shape)                                                                              \
    "{\"name\":\"X\",\"shape\":[" shape "],\"datatype\":\"FP64\",\"data\":[1,2,3,4,5,6]},"         \
    "{\"name\":\"Y\",\"shape\":[" shape "],\"datatype\":\"FP64\",\"data\":[1,2,3,4,5,6]}"

struct row {
    const char *name;
    const struct method *method; /* NULL: lu */
    const char *json;
    int binary_bytes; /* doubles 0, 1, 2 ... behind the JSON; -1: no header field, JSON alone */
    enum error code;
    const char *fragment;
};

static enum error decode(const struct row *row, int shift, struct prototest_space *space,
                         struct prototest_body *body, struct proto_request *request,
                         struct failure *failure)
{
    unsigned char bytes[4096];
    int64_t json_bytes = (int64_t)strlen(row->json);
    int64_t length = json_bytes;
    assert_true(json_bytes + 512 < (int64_t)sizeof bytes && row->binary_bytes <= 512);
    memcpy(bytes, row->json, (size_t)json_bytes);
    for (int i = 0; i < row->binary_bytes; i++) {
        double value = i / 8;
        bytes[length++] = ((unsigned char *)&value)[i % 8];
    }
    *body = prototest_body(bytes, length, shift);
    proto_request_init(request, PROTO_FORMAT_V2,
                       row->method != NULL ? row->method : method_find("lu"));
    return proto_v2_decode(body->bytes, length, row->binary_bytes < 0 ? -1 : json_bytes,
                           &space->space, request, failure);
}

static const struct row hostile[] = {
    {"empty", NULL, "", -1, ERROR_MALFORMED, "malformed at byte 0"},
    {"no object", NULL, "[1]", -1, ERROR_MALFORMED, "must be an object"},
    {"tensors alone", NULL, "\x01\x02", -1, ERROR_MALFORMED,
     "Inference-Header-Content-Length must say how many bytes of JSON come first"},
    {"cut short", NULL, "{\"inputs\":[", -1, ERROR_MALFORMED, "malformed at byte 11"},
    {"garbage behind", NULL, "{\"inputs\":[" ONE "]} x", -1, ERROR_MALFORMED, "malformed"},
    {"place behind a lifted array", NULL, DATA("[1,2,2]", "[1,2,3,4]") "}", -1, ERROR_MALFORMED,
     "at byte 77"},
    {"no inputs", NULL, "{}", -1, ERROR_MALFORMED, "\"inputs\" must be"},
    {"inputs empty", NULL, "{\"inputs\":[]}", -1, ERROR_MALFORMED, "\"inputs\" must be"},
    {"inputs no list", NULL, "{\"inputs\":{}}", -1, ERROR_MALFORMED, "\"inputs\" must be"},
    {"eight inputs", NULL,
     "{\"inputs\":[" ONE "," ONE "," ONE "," ONE "," ONE "," ONE "," ONE "," ONE "]}", -1,
     ERROR_MALFORMED, "more than 7 inputs"},
    {"ten arrays", NULL,
     "{\"inputs\":[" ONE "," ONE "," ONE "," ONE "," ONE "," ONE "," ONE "," ONE "," ONE "," ONE
     "]}",
     -1, ERROR_MALFORMED, "more than 9 arrays"},
    {"twice", NULL, "{\"inputs\":[" ONE "," ONE "]}", -1, ERROR_MALFORMED, "A is given twice"},
    {"name twice", NULL, "{\"inputs\":[{\"name\":\"A\",\"name\":\"A\"}]}", -1, ERROR_MALFORMED,
     "duplicate object key"},
    {"input no object", NULL, "{\"inputs\":[3]}", -1, ERROR_MALFORMED, "with a \"name\""},
    {"other name", NULL,
     "{\"inputs\":[{\"name\":\"B\",\"shape\":[1,1,1],\"datatype\":\"FP64\",\"data\":[4]}]}", -1,
     ERROR_MALFORMED, "lu has no input 'B'; it takes A"},
    {"a name of one other method", NULL,
     "{\"inputs\":[{\"name\":\"DL\",\"shape\":[1,1],\"datatype\":\"FP64\",\"data\":[4]}]}", -1,
     ERROR_MALFORMED, "lu has no input 'DL', which goes with method tridiagonal; it takes A"},
    {"a name of several", &prototest_chain,
     "{\"inputs\":[{\"name\":\"A\",\"shape\":[1,1,1],\"datatype\":\"FP64\",\"data\":[4]}]}", -1,
     ERROR_MALFORMED,
     "which goes with method auto, gauss_jordan, ism, iterative, lu or lu_factor; it takes DL"},
    {"lower case", NULL,
     "{\"inputs\":[{\"name\":\"a\",\"shape\":[1,1,1],\"datatype\":\"FP64\",\"data\":[4]}]}", -1,
     ERROR_MALFORMED, "no input 'a'"},
    {"raw text in messages", NULL,
     "{\"inputs\":[{\"name\":\"<b>\\n\",\"shape\":[1,1,1],\"datatype\":\"FP64\",\"data\":[4]}]}",
     -1, ERROR_MALFORMED, "no input '?b"},
    {"minus one", NULL, DATA("[-1,2,2]", "[1,2,3,4]"), -1, ERROR_BAD_SHAPE, "holds -1"},
    {"shape real", NULL, DATA("[1.0,2,2]", "[1,2,3,4]"), -1, ERROR_BAD_SHAPE, "whole numbers"},
    {"shape string", NULL, DATA("\"1\"", "[1,2,3,4]"), -1, ERROR_BAD_SHAPE, "list of at most"},
    {"shape of 17", NULL, DATA("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[1]"), -1, ERROR_BAD_SHAPE,
     "at most 16"},
    {"shape 1e19", NULL, DATA("[1,10000000000000000000,1]", "[1]"), -1, ERROR_MALFORMED,
     "too big integer"},
    {"shape overflows", NULL, DATA("[4294967296,4294967296,1]", "[1]"), -1, ERROR_BAD_SHAPE,
     "overflows"},
    {"3037000500", NULL, BINARY("[1,3037000500,3037000500]", "FP64", 8), 8, ERROR_BAD_SHAPE,
     "overflows"},
    {"2^32", NULL, BINARY("[1,4294967296,4294967296]", "FP32", 8), 8, ERROR_BAD_SHAPE, "overflows"},
    {"46341", NULL, BINARY("[1,46341,46341]", "FP64", 17179906248), 8, ERROR_TOO_LARGE,
     "order 46341; lu takes at most 32768"},
    {"m over the limit", &prototest_update,
     "{\"inputs\":[{\"name\":\"X\",\"shape\":[1,2,1001],\"datatype\":\"FP64\","
     "\"parameters\":{\"binary_data_size\":16016}},{\"name\":\"Y\",\"shape\":[1,2,1001],"
     "\"datatype\":\"FP64\",\"parameters\":{\"binary_data_size\":16016}}]}",
     8, ERROR_TOO_LARGE,
     "X has 1001 columns (m); update takes at most 1000. It is read as [batch,n,m]: is it "
     "transposed?"},
    {"65536", NULL, BINARY("[1,65536,65536]", "FP32", 17179869184), 8, ERROR_TOO_LARGE, "65536"},
    {"many empties", NULL, DATA("[1000000000,0,0]", "[]"), -1, ERROR_TOO_LARGE, "at most 65536"},
    {"two dimensions", NULL, DATA("[2,2]", "[1,2,3,4]"), -1, ERROR_BAD_SHAPE,
     "come first, [batch,n,n]; write [1,2,2] for one matrix"},
    {"multipart", NULL, "--b\r\nContent-Disposition: form-data\r\n\r\n{}\r\n--b--", -1,
     ERROR_UNSUPPORTED_MEDIA, "begins as multipart/form-data does, which is not taken here; send"},
    {"no dimension", NULL, DATA("[]", "[1]"), -1, ERROR_BAD_SHAPE, "A has shape []"},
    {"not square", NULL, DATA("[1,2,3]", "[1,2,3,4,5,6]"), -1, ERROR_BAD_SHAPE,
     "A has shape [1,2,3]: the last two dimensions must be equal"},
    {"INT64", NULL, A("[1,1,1]", "\"INT64\",\"data\":[4]"), -1, ERROR_BAD_DATATYPE,
     "INT64 is not supported; post FP64 or FP32"},
    {"BF16", NULL, BINARY("[1,1,1]", "BF16", 2), 2, ERROR_BAD_DATATYPE, "BF16"},
    {"no datatype", NULL, A("[1,1,1]", "8,\"data\":[4]"), -1, ERROR_MALFORMED, "\"datatype\""},
    {"no data", NULL, A("[1,1,1]", "\"FP64\""), -1, ERROR_MALFORMED, "either \"data\""},
    {"both", NULL, A("[1,1,1]", "\"FP64\",\"data\":[4],\"parameters\":{\"binary_data_size\":8}"), 8,
     ERROR_MALFORMED, "either \"data\""},
    {"data a number", NULL, DATA("[1,1,1]", "4"), -1, ERROR_MALFORMED, "\"data\" must be an array"},
    {"data in two spellings", NULL, A("[1,1,1]", "\"FP64\",\"d\\u0061ta\":[4],\"data\":[4]"), -1,
     ERROR_MALFORMED, "duplicate"},
    {"data that stands for another", NULL,
     "{\"inputs\":[" ONE "],\"\\u0069nputs\":[{\"name\":\"A\",\"data\":0}]}", -1, ERROR_MALFORMED,
     "must be an array"},
    {"too few", NULL, DATA("[1,2,2]", "[1,2,3]"), -1, ERROR_MALFORMED, "holds 3 numbers"},
    {"too many", NULL, DATA("[1,2,2]", "[1,2,3,4,5]"), -1, ERROR_MALFORMED, "needs 4"},
    {"nested otherwise", NULL, DATA("[1,2,2]", "[[1,2],[3,4]]"), -1, ERROR_MALFORMED,
     "nested as [2,2]"},
    {"ragged", NULL, DATA("[1,2,2]", "[[[1,2],[3]]]"), -1, ERROR_BAD_SHAPE,
     "data[0,1] has 1 entry, the rows before it have 2"},
    {"mixed", NULL, DATA("[1,2,2]", "[1,[2]]"), -1, ERROR_BAD_SHAPE, "mixes numbers and lists"},
    {"null", NULL, DATA("[1,1,1]", "[null]"), -1, ERROR_MALFORMED, "null"},
    {"NaN", NULL, DATA("[1,1,1]", "[NaN]"), -1, ERROR_MALFORMED, "no NaN"},
    {"string", NULL, DATA("[1,1,1]", "[\"1\"]"), -1, ERROR_MALFORMED, "data[0] is a string"},
    {"overflow", NULL, DATA("[1,2,2]", "[1,2,1e999,4]"), -1, ERROR_MALFORMED,
     "A[2] is too large for FP64"},
    {"overflow of FP32", NULL, A("[1,1,2]", "\"FP32\",\"data\":[1,2]"), -1, ERROR_BAD_SHAPE,
     "must be equal"},
    {"overflow of FP32, nested", NULL, A("[1,2,2]", "\"FP32\",\"data\":[[[1,2],[1e39,4]]]"), -1,
     ERROR_MALFORMED, "A[0,1,0] is too large for FP32"},
    {"leading zero", NULL, DATA("[1,1,1]", "[01]"), -1, ERROR_MALFORMED, "is not a number"},
    {"plus", NULL, DATA("[1,1,1]", "[+1]"), -1, ERROR_MALFORMED, "is not a number"},
    {"two signs", NULL, DATA("[1,1,1]", "[1-2]"), -1, ERROR_MALFORMED, "is not a number"},
    {"no header field", NULL, BINARY("[1,1,1]", "FP64", 8), -1, ERROR_MALFORMED,
     "Inference-Header-Content-Length"},
    {"too short", NULL, BINARY("[1,2,2]", "FP64", 32), 31, ERROR_MALFORMED, "have 31 bytes"},
    {"too long", NULL, BINARY("[1,2,2]", "FP64", 32), 33, ERROR_MALFORMED, "declare 32"},
    {"bytes behind JSON", NULL, DATA("[1,1,1]", "[4]"), 8, ERROR_MALFORMED, "declare 0"},
    {"size of another shape", NULL, BINARY("[1,2,2]", "FP64", 16), 16, ERROR_MALFORMED,
     "must be 32"},
    {"negative size", NULL, BINARY("[1,2,2]", "FP64", -32), 32, ERROR_MALFORMED, "must be 32"},
    {"size a string", NULL, BINARY("[1,2,2]", "FP64", "32"), 32, ERROR_MALFORMED, "must be 32"},
    {"shared memory", NULL,
     A("[1,1,1]", "\"FP64\",\"parameters\":{\"shared_memory_region\":\"r\"}"), -1, ERROR_MALFORMED,
     "shared memory"},
    {"id a number", NULL, "{\"id\":3,\"inputs\":[" ONE "]}", -1, ERROR_MALFORMED, "\"id\""},
    {"output unknown", NULL, "{\"outputs\":[{\"name\":\"LU\"}],\"inputs\":[" ONE "]}", -1,
     ERROR_BAD_OPTION, "no output 'LU'; it has INVERSE, INFO, RCOND"},
    {"output in lower case", NULL, "{\"outputs\":[{\"name\":\"info\"}],\"inputs\":[" ONE "]}", -1,
     ERROR_BAD_OPTION, "no output 'info'; it has INVERSE, INFO, RCOND"},
    {"output twice", NULL,
     "{\"outputs\":[{\"name\":\"INFO\"},{\"name\":\"INFO\"}],\"inputs\":[" ONE "]}", -1,
     ERROR_BAD_OPTION, "INFO is named twice"},
    {"outputs an object", NULL, "{\"outputs\":{},\"inputs\":[" ONE "]}", -1, ERROR_MALFORMED,
     "\"outputs\" must be a list"},
    {"output classified", NULL,
     "{\"outputs\":[{\"name\":\"INFO\",\"parameters\":{\"classification\":3}}],\"inputs\":[" ONE
     "]}",
     -1, ERROR_MALFORMED, "classification"},
    {"binary_data a number", NULL,
     "{\"outputs\":[{\"name\":\"INFO\",\"parameters\":{\"binary_data\":1}}],\"inputs\":[" ONE "]}",
     -1, ERROR_MALFORMED, "true or false"},
    {"a row without a batch", &prototest_update, "{\"inputs\":[" FACTOR("2,3") "]}", -1,
     ERROR_BAD_SHAPE,
     "X has shape [2,3]: a batch dimension must come first, [batch,n,m]; write [1,2,3] for one "
     "matrix, or [2,3,1] for a batch with a column each"},
    {"a vector", &prototest_update, "{\"inputs\":[" FACTOR("6") "]}", -1, ERROR_BAD_SHAPE,
     "X has shape [6]: it must be [batch,n,m]; a column is written [1,6,1]"},
    {"neither square nor a batch", NULL,
     "{\"inputs\":[{\"name\":\"A\",\"shape\":[1,2],\"datatype\":\"FP64\",\"data\":[4,5]}]}", -1,
     ERROR_BAD_SHAPE, "A has shape [1,2]: it must be [batch,n,n]"},
    {"option unknown", NULL, "{\"parameters\":{\"speed\":9},\"inputs\":[" ONE "]}", -1,
     ERROR_BAD_OPTION, "lu has no option 'speed'; it takes priority, timeout"},
    {"on_singular is of /v1", NULL,
     "{\"parameters\":{\"on_singular\":\"nan\"},\"inputs\":[" ONE "]}", -1, ERROR_BAD_OPTION,
     "/v2 always answers NaN and says by INFO: leave on_singular out"},
    {"outputs among the parameters", NULL,
     "{\"parameters\":{\"outputs\":\"INFO\"},\"inputs\":[" ONE "]}", -1, ERROR_BAD_OPTION,
     "outputs go into the request's \"outputs\", next to \"inputs\": {\"outputs\": [{\"name\": "
     "\"INVERSE\"}], ...}"},
    {"a list of outputs among the parameters", NULL,
     "{\"parameters\":{\"outputs\":[\"INFO\"]},\"inputs\":[" ONE "]}", -1, ERROR_BAD_OPTION,
     "outputs go into the request's \"outputs\""},
    {"options of /v1", NULL, "{\"options\":{\"priority\":1},\"inputs\":[" ONE "]}", -1,
     ERROR_BAD_OPTION,
     "options cannot stand here: /v2 has its options in the JSON's \"parameters\""},
    {"an option next to the inputs", NULL, "{\"inputs\":[" ONE "],\"timeout\":5}", -1,
     ERROR_BAD_OPTION, "as {\"parameters\": {\"timeout\": ...}, \"inputs\": [...]}"},
    {"a method's option there", &prototest_update,
     "{\"tolerance\":0.1,\"inputs\":[" FACTOR("2,3") "]}", -1, ERROR_BAD_OPTION,
     "tolerance cannot stand here"},
    {"option a list", NULL, "{\"parameters\":{\"priority\":[1]},\"inputs\":[" ONE "]}", -1,
     ERROR_BAD_OPTION, "option priority: a list is not allowed; give 0 (default"},
    {"an input as an option", NULL, "{\"parameters\":{\"A\":[1]},\"inputs\":[" ONE "]}", -1,
     ERROR_BAD_OPTION, "A is an input of lu, not an option: give it as an array, in \"inputs\""},
    {"timeout negative", NULL, "{\"parameters\":{\"timeout\":-1},\"inputs\":[" ONE "]}", -1,
     ERROR_BAD_OPTION, "timeout: '-1' is not allowed"},
    {"missing inputs", &prototest_chain,
     "{\"inputs\":[{\"name\":\"D\",\"shape\":[1,2],\"datatype\":\"FP64\",\"data\":[4,5]}]}", -1,
     ERROR_MALFORMED, "input DL is missing; chain takes DL, D, DU"},
    {"two datatypes", &prototest_chain,
     "{\"inputs\":[{\"name\":\"D\",\"shape\":[1,2],\"datatype\":\"FP64\",\"data\":[4,5]},"
     "{\"name\":\"DL\",\"shape\":[1,1],\"datatype\":\"FP32\",\"data\":[4]},"
     "{\"name\":\"DU\",\"shape\":[1,1],\"datatype\":\"FP64\",\"data\":[4]}]}",
     -1, ERROR_BAD_DATATYPE, "D is FP64 and input DL is FP32"},
    {"another length", &prototest_chain,
     "{\"inputs\":[{\"name\":\"D\",\"shape\":[1,2],\"datatype\":\"FP64\",\"data\":[4,5]},"
     "{\"name\":\"DL\",\"shape\":[1,2],\"datatype\":\"FP64\",\"data\":[4,5]},"
     "{\"name\":\"DU\",\"shape\":[1,1],\"datatype\":\"FP64\",\"data\":[4]}]}",
     -1, ERROR_BAD_SHAPE, "DL has shape [1,2]: with n = 2 (from D) it must be [...,1]"},
    {"another batch", &prototest_chain,
     "{\"inputs\":[{\"name\":\"DL\",\"shape\":[1,1],\"datatype\":\"FP64\",\"data\":[4]},"
     "{\"name\":\"D\",\"shape\":[2,2],\"datatype\":\"FP64\",\"data\":[1,2,3,4]},"
     "{\"name\":\"DU\",\"shape\":[1,1],\"datatype\":\"FP64\",\"data\":[4]}]}",
     -1, ERROR_BAD_SHAPE, "and DL has shape [1,1], read as [batch,n-1]"},
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
        enum error error = decode(&hostile[i], 0, &space, &body, &request, &failure);
        prototest_expect(hostile[i].name, error, hostile[i].code, &failure, hostile[i].fragment);
        prototest_body_free(&body);
        prototest_space_free(&space);
    }
}

/* Good requests for a 2 x 2 matrix 0, 1, 2, 3 in each form. */
static const struct row good[] = {
    {"flat", NULL, DATA("[1,2,2]", "[0,1,2,3]"), -1, ERROR_NONE, NULL},
    {"nested, spaced", NULL, DATA("[1,2,2]", " [ [[0 ,1.0],\n\t[2e0, 0.3E+1]] ]\r"), -1, ERROR_NONE,
     NULL},
    {"binary", NULL, BINARY("[1,2,2]", "FP64", 32), 32, ERROR_NONE, NULL},
    {"FP32", NULL, A("[1,2,2]", "\"FP32\",\"data\":[0,1,2,3]"), -1, ERROR_NONE, NULL},
    {"datatype last", NULL,
     "{\"inputs\":[{\"data\":[0,1,2,3],\"name\":\"A\",\"shape\":[1,2,2],\"datatype\":\"FP32\"}]}",
     -1, ERROR_NONE, NULL},
    {"JSON with a header field", NULL, DATA("[1,2,2]", "[0,1,2,3]"), 0, ERROR_NONE, NULL},
    {"data elsewhere", NULL,
     "{\"foo\":{\"bar\":{\"data\":3}},\"goo\":[{\"data\":[7]}],\"parameters\":{\"headers\":{"
     "\"data\":1}},"
     "\"inputs\":[{\"name\":\"A\",\"shape\":[1,2,2],\"datatype\":\"FP64\",\"data\":[0,1,2,3]}]}",
     -1, ERROR_NONE, NULL},
    {"escapes in names", NULL,
     "{\"\\u0069nputs\":[{\"n\\u0061me\":\"A\",\"shape\":[1,2,2],\"datatype\":\"FP64\","
     "\"d\\u0061ta\":[0,1,2,3],\"a\\tb\":{}}]}",
     -1, ERROR_NONE, NULL},
};

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        for (int shift = 0; shift < 9; shift++) {
            struct prototest_space space;
            struct prototest_body body;
            struct proto_request request;
            struct failure failure = {0};
            prototest_space_init(&space, 1 << 16);
            enum error error = decode(&good[i], shift, &space, &body, &request, &failure);
            prototest_expect(good[i].name, error, ERROR_NONE, &failure, NULL);
            bool f32 = strstr(good[i].json, "FP32") != NULL;
            assert_int_equal(request.precision, f32 ? PRECISION_FP32 : PRECISION_FP64);
            assert_int_equal(request.batch, 1);
            assert_int_equal(request.n, 2);
            assert_int_equal(request.lead_rank, 1);
            assert_int_equal(request.output_count, 3);
            assert_false(request.outputs[0].binary);
            const void *data = request.inputs[0].data;
            assert_int_equal((uintptr_t)data % (f32 ? 4 : 8), 0);
            for (int k = 0; k < 4; k++)
                assert_true((f32 ? (double)((const float *)data)[k] : ((const double *)data)[k]) ==
                            k);
            prototest_body_free(&body);
            prototest_space_free(&space);
        }
    }
}

/* More leading dimensions than one: the answer has them too. */
static void test_batches_of_batches(void **state)
{
    (void)state;
    static const struct row row = {"batches of batches", NULL, DATA("[2,1,1,1]", "[0,1]"), -1,
                                   ERROR_NONE,           NULL};
    struct prototest_space space;
    struct prototest_body body;
    struct proto_request request;
    struct failure failure = {0};
    prototest_space_init(&space, 1 << 16);
    enum error error = decode(&row, 0, &space, &body, &request, &failure);
    prototest_expect(row.name, error, ERROR_NONE, &failure, NULL);
    assert_int_equal(request.batch, 2);
    assert_int_equal(request.n, 1);
    assert_int_equal(request.lead_rank, 2);
    assert_int_equal(request.lead[0], 2);
    assert_int_equal(request.lead[1], 1);
    prototest_body_free(&body);
    prototest_space_free(&space);
}

/* An aligned binary tensor stays where it lies. */
static void test_in_place(void **state)
{
    (void)state;
    struct prototest_space space;
    struct prototest_body body;
    struct proto_request request;
    struct failure failure = {0};
    const struct row *row = &good[2];
    int64_t json_bytes = (int64_t)strlen(row->json);
    prototest_space_init(&space, 0);
    assert_int_equal(decode(row, 64 - (int)(json_bytes % 64), &space, &body, &request, &failure),
                     ERROR_NONE);
    assert_ptr_equal(request.inputs[0].data, body.bytes + json_bytes);
    prototest_body_free(&body);
    prototest_space_free(&space);
}

static void test_full(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) { /* JSON; a misaligned tensor */
        struct prototest_space space;
        struct prototest_body body;
        struct proto_request request;
        struct failure failure = {0};
        const struct row *row = &good[i * 2];
        prototest_space_init(&space, 31);
        enum error error =
            decode(row, 65 - (int)strlen(row->json) % 64, &space, &body, &request, &failure);
        prototest_expect(row->name, error, ERROR_FULL, &failure, "no room");
        prototest_body_free(&body);
        prototest_space_free(&space);
    }
}

static void test_parameters(void **state)
{
    (void)state;
    static const struct row row = {
        "parameters",
        &prototest_update,
        "{\"id\":\"\\u00e9\\\"\",\"parameters\":{\"sequence_id\":7,\"triton_x\":{},\"headers\":{},"
        "\"priority\":1,\"timeout\":5000,\"binary_data_output\":true,\"refine\":false,"
        "\"block_size\":64,\"tolerance\":1e-9,\"variant\":\"single\"},"
        "\"inputs\":[{\"name\":\"Y\",\"shape\":[2,3,1],\"datatype\":\"FP64\","
        "\"parameters\":{\"binary_data_size\":48}},"
        "{\"name\":\"X\",\"shape\":[2,3,1],\"datatype\":\"FP64\",\"data\":[9,8,7,6,5,-0]}],"
        "\"outputs\":[{\"name\":\"INFO\",\"parameters\":{\"binary_data\":false}},"
        "{\"name\":\"INVERSE\"}]}",
        48,
        ERROR_NONE,
        NULL};
    struct prototest_space space;
    struct prototest_body body;
    struct proto_request request;
    struct failure failure = {0};
    prototest_space_init(&space, 1 << 16);
    enum error error = decode(&row, 0, &space, &body, &request, &failure);
    prototest_expect(row.name, error, ERROR_NONE, &failure, NULL);
    double tolerance;
    memcpy(&tolerance, &request.options[2], sizeof tolerance);
    assert_string_equal(request.id, "\xc3\xa9\"");
    assert_int_equal(request.priority, 1);
    assert_int_equal(request.timeout_us, 5000);
    assert_int_equal(request.options[0], 0);
    assert_int_equal(request.options[1], 64);
    assert_true(tolerance == 1e-9);
    assert_int_equal(request.options[3], 1);
    assert_int_equal(request.options_set, 15);
    assert_int_equal(request.batch, 2);
    assert_int_equal(request.n, 3);
    assert_int_equal(request.m, 1);
    assert_null(request.inputs[2].data);
    const double *x = request.inputs[0].data;
    const double *y = request.inputs[1].data;
    assert_true(x[0] == 9 && x[5] == 0 && signbit(x[5]) && y[5] == 5);
    assert_int_equal(request.output_count, 2);
    assert_int_equal(request.outputs[0].index, 1);
    assert_false(request.outputs[0].binary);
    assert_int_equal(request.outputs[1].index, 0);
    assert_true(request.outputs[1].binary);
    prototest_body_free(&body);
    prototest_space_free(&space);
}

static void test_ids(void **state)
{
    (void)state;
    for (int length = 255; length <= 257; length++) {
        char json[1024];
        char id[300];
        memset(id, 'i', sizeof id);
        id[length] = '\0';
        snprintf(json, sizeof json, "{\"id\":\"%s\",\"inputs\":[" ONE "],\"outputs\":[]}", id);
        struct row row = {"id", NULL, json, -1, ERROR_NONE, NULL};
        struct prototest_space space;
        struct prototest_body body;
        struct proto_request request;
        struct failure failure = {0};
        prototest_space_init(&space, 1 << 16);
        enum error error = decode(&row, 0, &space, &body, &request, &failure);
        prototest_expect("id", error, length <= PROTO_ID_MAX ? ERROR_NONE : ERROR_MALFORMED,
                         &failure, "at most 256 bytes");
        if (error == ERROR_NONE) {
            assert_string_equal(request.id, id);
            assert_int_equal(request.output_count, 3);
        }
        prototest_body_free(&body);
        prototest_space_free(&space);
    }
}

static void test_lengths_that_lie(void **state)
{
    (void)state;
    static const int64_t lies[] = {-2, INT64_MIN, 4, INT64_MAX};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct prototest_space space;
        struct proto_request request;
        struct failure failure = {0};
        unsigned char body[] = "{}";
        prototest_space_init(&space, 1 << 16);
        proto_request_init(&request, PROTO_FORMAT_V2, method_find("lu"));
        enum error error = proto_v2_decode(body, 2, lies[i], &space.space, &request, &failure);
        prototest_expect("length", error, ERROR_MALFORMED, &failure, "the body has 2 bytes");
        prototest_space_free(&space);
    }
}

static void test_raw(void **state)
{
    (void)state;
    static const struct {
        int64_t length, n; /* n: -1 where the length is none of a square matrix */
    } rows[] = {{8, 1}, {32, 2}, {72, 3}, {512, 8}, {0, -1}, {7, -1}, {16, -1}, {33, -1}, {31, -1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned char bytes[512] = {0};
        struct prototest_space space;
        struct proto_request request;
        struct failure failure = {0};
        prototest_space_init(&space, 1 << 16);
        struct prototest_body body = prototest_body(bytes, rows[i].length, (int)i % 2);
        proto_request_init(&request, PROTO_FORMAT_RAW, method_find("lu"));
        enum error error =
            proto_raw_decode(body.bytes, body.length, &space.space, &request, &failure);
        prototest_expect("raw", error, rows[i].n < 0 ? ERROR_MALFORMED : ERROR_NONE, &failure,
                         "8 n^2 bytes");
        if (rows[i].n >= 0) {
            assert_int_equal(request.n, rows[i].n);
            assert_int_equal(request.lead_rank, 1);
            assert_true(request.outputs[0].binary);
            assert_int_equal((uintptr_t)request.inputs[0].data % 8, 0);
        }
        proto_request_init(&request, PROTO_FORMAT_RAW, &prototest_chain);
        error = proto_raw_decode(body.bytes, body.length, &space.space, &request, &failure);
        prototest_expect("raw", error, ERROR_MALFORMED, &failure, "one input alone");
        prototest_body_free(&body);
        prototest_space_free(&space);
    }
}

static void test_empty(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"flat", NULL, DATA("[2,0,0]", "[]"), -1, ERROR_NONE, NULL},
        {"nested", NULL, DATA("[2,0,0]", "[[],[]]"), -1, ERROR_NONE, NULL},
        {"binary", NULL, BINARY("[2,0,0]", "FP64", 0), 0, ERROR_NONE, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct prototest_space space;
        struct prototest_body body;
        struct proto_request request;
        struct failure failure = {0};
        prototest_space_init(&space, 1 << 16);
        enum error error = decode(&rows[i], 0, &space, &body, &request, &failure);
        prototest_expect(rows[i].name, error, ERROR_NONE, &failure, NULL);
        assert_int_equal(request.batch, 2);
        assert_int_equal(request.n, 0);
        assert_non_null(request.inputs[0].data);
        prototest_body_free(&body);
        prototest_space_free(&space);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_batches_of_batches),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_raw),
        cmocka_unit_test(test_lengths_that_lie),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
