/* tests/unit/proto/test_npy.c: .npy bodies, good and hostile, and .npy answers. */
#include "bench.h"

#define DICT(descr, order, shape)                                                                  \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }"
#define SQUARE DICT("<f8", "False", "(2, 2)")

struct row {
    const char *name, *dict;
    int data_bytes;
    enum error code;
    const char *fragment;
};

static enum error decode(const struct method *method, struct prototest_body *body,
                         struct prototest_space *space, struct proto_request *request,
                         struct failure *failure)
{
    proto_request_init(request, PROTO_FORMAT_NPY, method);
    return proto_npy_decode(body->bytes, body->length, &space->space, request, failure);
}

static const struct row hostile[] = {
    {"integers", DICT("<i8", "False", "(2, 2)"), 32, ERROR_BAD_DATATYPE, "astype('<f8')"},
    {"half", DICT("<f2", "False", "(2, 2)"), 8, ERROR_BAD_DATATYPE, "'<f2'"},
    {"big-endian", DICT(">f8", "False", "(2, 2)"), 32, ERROR_BAD_DATATYPE, "'>f8'"},
    {"quotes", DICT("=<\\\"", "False", "(2, 2)"), 32, ERROR_BAD_DATATYPE, "'=<?"},
    {"complex", DICT("<c16", "False", "(2, 2)"), 64, ERROR_BAD_DATATYPE, "[[Re, -Im], [Im, Re]]"},
    {"object", DICT("|O", "False", "(2, 2)"), 32, ERROR_BAD_DATATYPE, "'|O'"},
    {"long double", DICT("<f16", "False", "(2, 2)"), 64, ERROR_BAD_DATATYPE, "astype('<f8')"},
    {"structured", "{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (2, 2)}", 32,
     ERROR_BAD_DATATYPE, "structured"},
    {"descr a number", "{'descr': 8, 'fortran_order': False, 'shape': (2, 2)}", 32, ERROR_MALFORMED,
     "'descr' must be"},
    {"no dict", "[]", 32, ERROR_MALFORMED, "must be a dict"},
    {"empty header", "", 32, ERROR_MALFORMED, "must be a dict"},
    {"dict not closed", "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)", 32,
     ERROR_MALFORMED, "a comma is missing"},
    {"string not closed", "{'descr': '<f8, 'fortran_order': False, 'shape': (2, 2)}", 32,
     ERROR_BAD_DATATYPE, "astype"},
    {"name not closed", "{'descr", 32, ERROR_MALFORMED, "must be a dict"},
    {"key missing", "{'descr': '<f8', 'shape': (2, 2)}", 32, ERROR_MALFORMED, "lacks one"},
    {"key twice", "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)}", 32,
     ERROR_MALFORMED, "twice"},
    {"key unknown", "{'descr': '<f8', 'colour': 1}", 32, ERROR_MALFORMED, "a key besides"},
    {"no comma", "{'descr': '<f8' 'fortran_order': False, 'shape': (2, 2)}", 32, ERROR_MALFORMED,
     "a comma is missing"},
    {"order a number", DICT("<f8", "0", "(2, 2)"), 32, ERROR_MALFORMED, "True or False"},
    {"shape a list", DICT("<f8", "False", "[2, 2]"), 32, ERROR_MALFORMED, "a tuple"},
    {"shape a number", DICT("<f8", "False", "(4)"), 32, ERROR_MALFORMED, "a tuple"},
    {"shape of words", DICT("<f8", "False", "(n, n)"), 32, ERROR_MALFORMED, "a tuple"},
    {"shape not closed", DICT("<f8", "False", "(2, 2"), 32, ERROR_MALFORMED, "a tuple"},
    {"shape without a comma", DICT("<f8", "False", "(2 2)"), 32, ERROR_MALFORMED, "a tuple"},
    {"negative", DICT("<f8", "False", "(-1, 2, 2)"), 32, ERROR_BAD_SHAPE, "negative"},
    {"1e19", DICT("<f8", "False", "(10000000000000000000, 2)"), 32, ERROR_BAD_SHAPE, "overflows"},
    {"3037000500", DICT("<f8", "False", "(3037000500, 3037000500)"), 32, ERROR_BAD_SHAPE,
     "overflows"},
    {"product with zero", DICT("<f8", "False", "(4294967296, 4294967296, 0)"), 0, ERROR_BAD_SHAPE,
     "overflows"},
    {"17 dimensions", DICT("<f8", "False", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"), 8,
     ERROR_BAD_SHAPE, "more than 16"},
    {"32 GiB", DICT("<f8", "False", "(65536, 65536)"), 8, ERROR_TOO_LARGE, "at most 32768"},
    {"8 GiB", DICT("<f8", "False", "(1, 32768, 32768)"), 8, ERROR_MALFORMED, "but 8 bytes"},
    {"many empties", DICT("<f8", "False", "(65537, 0, 0)"), 0, ERROR_TOO_LARGE, "65536 matrices"},
    {"wide empties", DICT("<f8", "False", "(1099511627776, 0, 3, 3)"), 0, ERROR_TOO_LARGE,
     "65536 matrices"},
    {"a vector", DICT("<f8", "False", "(4,)"), 32, ERROR_BAD_SHAPE,
     "A has shape [4]: it must be [...,n,n]"},
    {"a number", DICT("<f8", "False", "()"), 8, ERROR_BAD_SHAPE, "A has shape []"},
    {"not square", DICT("<f8", "False", "(2, 3, 4)"), 192, ERROR_BAD_SHAPE,
     "A has shape [2,3,4]: the last two dimensions must be equal"},
    {"data too short", SQUARE, 31, ERROR_MALFORMED, "32 bytes, but 31 bytes"},
    {"data too long", SQUARE, 40, ERROR_MALFORMED, "but 40 bytes"},
    {"no data", SQUARE, 0, ERROR_MALFORMED, "but 0 bytes"},
    {"something behind the dict", SQUARE " x", 32, ERROR_MALFORMED, "something follows"},
};

static void test_hostile(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        unsigned char bytes[1024];
        struct prototest_space space;
        struct proto_request request;
        struct failure failure = {0};
        prototest_space_init(&space, 1 << 16);
        int64_t length = prototest_npy(bytes, hostile[i].dict, hostile[i].data_bytes, false);
        struct prototest_body body = prototest_body(bytes, length, 0);
        enum error error = decode(method_find("lu"), &body, &space, &request, &failure);
        prototest_expect(hostile[i].name, error, hostile[i].code, &failure, hostile[i].fragment);
        assert_int_equal(space.taken, 0);
        prototest_body_free(&body);
        prototest_space_free(&space);
    }
}

/* Bytes changed in a good file's first ones. */
static void test_broken_prefix(void **state)
{
    (void)state;
    static const struct {
        int at, value;
        const char *fragment;
    } rows[] = {
        {0, 'X', "does not begin"}, {6, 0, "version"},   {6, 4, "version"},
        {7, 1, "version"},          {9, 2, "cut short"}, {9, 255, "longer than 8 KiB"},
        {6, 2, "longer than"}, /* version 2 has a longer length field */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned char bytes[512];
        struct prototest_space space;
        struct proto_request request;
        struct failure failure = {0};
        prototest_space_init(&space, 1 << 16);
        int64_t length = prototest_npy(bytes, SQUARE, 32, false);
        bytes[rows[i].at] = (unsigned char)rows[i].value;
        struct prototest_body body = prototest_body(bytes, length, 0);
        enum error error = decode(method_find("lu"), &body, &space, &request, &failure);
        prototest_expect("prefix", error, ERROR_MALFORMED, &failure, rows[i].fragment);
        prototest_body_free(&body);
        prototest_space_free(&space);
    }
}

/* Every prefix of a good file is refused, and never read past its end. */
static void test_cut(void **state)
{
    (void)state;
    unsigned char bytes[512];
    int64_t length = prototest_npy(bytes, SQUARE, 32, false);
    for (int64_t cut = 0; cut < length; cut++) {
        struct prototest_space space;
        struct proto_request request;
        struct failure failure = {0};
        prototest_space_init(&space, 1 << 16);
        struct prototest_body body = prototest_body(bytes, cut, 0);
        enum error error = decode(method_find("lu"), &body, &space, &request, &failure);
        prototest_expect("cut", error, ERROR_MALFORMED, &failure, "");
        prototest_body_free(&body);
        prototest_space_free(&space);
    }
}

struct good {
    const char *name, *dict;
    int major; /* 0: version 1 */
    bool f32, fortran;
    int rank;
    int64_t shape[4];
};

static const struct good good[] = {
    {"2-D", SQUARE, 0, false, false, 2, {2, 2}},
    {"f4", DICT("<f4", "False", "(2, 2)"), 0, true, false, 2, {2, 2}},
    {"3-D", DICT("<f8", "False", "(3, 2, 2)"), 0, false, false, 3, {3, 2, 2}},
    {"4-D", DICT("<f8", "False", "(2, 3, 2, 2)"), 0, false, false, 4, {2, 3, 2, 2}},
    {"Fortran 2-D", DICT("<f8", "True", "(3, 3)"), 0, false, true, 2, {3, 3}},
    {"Fortran 3-D", DICT("<f8", "True", "(2, 3, 3)"), 0, false, true, 3, {2, 3, 3}},
    {"Fortran 4-D", DICT("<f4", "True", "(2, 3, 2, 2)"), 0, true, true, 4, {2, 3, 2, 2}},
    {"Fortran, large", DICT("<f8", "True", "(2, 37, 37)"), 0, false, true, 3, {2, 37, 37}},
    {"other order of keys",
     "{'shape': (2, 2), 'descr': '<f8', 'fortran_order': False}",
     0,
     false,
     false,
     2,
     {2, 2}},
    {"other quotes and spaces",
     " { \"shape\" :( 2,2 , ) ,\n\"fortran_order\":False , \"descr\" : \"<f8\"}  \n",
     0,
     false,
     false,
     2,
     {2, 2}},
    {"Python 2", DICT("<f8", "False", "(2L, 2L)"), 0, false, false, 2, {2, 2}},
    {"version 2", SQUARE, 2, false, false, 2, {2, 2}},
    {"version 3", SQUARE, 3, false, false, 2, {2, 2}},
    {"n = 0", DICT("<f8", "False", "(0, 0)"), 0, false, false, 2, {0, 0}},
    {"batch of none", DICT("<f8", "True", "(0, 5, 5)"), 0, false, true, 3, {0, 5, 5}},
};

/* The value that stands at C-order index k: values count up in the order of the file. */
static double expected(const struct good *row, int64_t k)
{
    int64_t index[4], at = 0;
    if (!row->fortran)
        return (double)k;
    for (int i = row->rank - 1; i >= 0; i--) {
        index[i] = k % row->shape[i];
        k /= row->shape[i];
    }
    for (int i = row->rank - 1; i >= 0; i--)
        at = at * row->shape[i] + index[i];
    return (double)at;
}

static void check_good(const struct good *row, int shift)
{
    static unsigned char bytes[65536];
    struct prototest_space space;
    struct proto_request request;
    struct failure failure = {0};
    int64_t count = 1;
    for (int i = 0; i < row->rank; i++)
        count *= row->shape[i];
    int64_t length = prototest_npy(bytes, row->dict, count * (row->f32 ? 4 : 8), row->f32);
    if (row->major > 0) {
        memmove(bytes + 12, bytes + 10, (size_t)length - 10);
        bytes[6] = (unsigned char)row->major;
        bytes[10] = bytes[11] = 0;
        length += 2;
    }
    prototest_space_init(&space, 1 << 20);
    struct prototest_body body = prototest_body(bytes, length, shift);
    enum error error = decode(method_find("lu"), &body, &space, &request, &failure);
    prototest_expect(row->name, error, ERROR_NONE, &failure, NULL);
    assert_int_equal(request.precision, row->f32 ? PRECISION_FP32 : PRECISION_FP64);
    assert_int_equal(request.lead_rank, row->rank - 2);
    assert_int_equal(request.n, row->shape[row->rank - 1]);
    assert_int_equal(request.output_count, 3);
    const void *data = request.inputs[0].data;
    assert_non_null(data);
    assert_int_equal((uintptr_t)data % (row->f32 ? 4 : 8), 0);
    for (int64_t k = 0; k < count; k++)
        assert_true((row->f32 ? (double)((const float *)data)[k] : ((const double *)data)[k]) ==
                    expected(row, k));
    prototest_body_free(&body);
    prototest_space_free(&space);
}

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        for (int shift = 0; shift < 9; shift++)
            check_good(&good[i], shift);
    }
}

static void test_several_inputs(void **state)
{
    (void)state;
    unsigned char bytes[512];
    struct prototest_space space;
    struct proto_request request;
    struct failure failure = {0};
    prototest_space_init(&space, 1 << 16);
    struct prototest_body body = prototest_body(bytes, prototest_npy(bytes, SQUARE, 32, false), 0);
    enum error error = decode(&prototest_chain, &body, &space, &request, &failure);
    prototest_expect("chain", error, ERROR_MALFORMED, &failure, "dl, d, du: post them together");
    prototest_body_free(&body);
    prototest_space_free(&space);
}

static void check_answer(const struct proto_request *request, void *const *outputs,
                         const char *header, const void *data, size_t data_bytes)
{
    struct prototest_space space;
    struct proto_answer answer;
    struct failure failure = {0};
    prototest_space_init(&space, proto_answer_bound(request));
    enum error error = proto_npy_encode(request, outputs, &space.space, &answer, &failure);
    prototest_expect("encode", error, ERROR_NONE, &failure, NULL);
    char *joined = prototest_join(&answer);
    assert_string_equal(answer.content_type, "application/x-npy");
    assert_int_equal(answer.json_bytes, -1);
    assert_memory_equal(joined, "\x93NUMPY\1\0", 8);
    assert_memory_equal(joined + 10, header, strlen(header));
    size_t head = (size_t)(unsigned char)joined[8] + 10;
    assert_int_equal(head % 64, 0);
    assert_int_equal(joined[head - 1], '\n');
    assert_int_equal(answer.total_bytes, head + data_bytes);
    assert_memory_equal(joined + head, data, data_bytes);
    free(joined);
    prototest_space_free(&space);
}

static void test_answers(void **state)
{
    (void)state;
    double inverse[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    int32_t info[2] = {0, -1}, algorithm[2] = {METHOD_ALGORITHM_LU, 99};
    double rcond[2] = {0.5, 0.25};
    void *const outputs[METHOD_OUTPUTS_MAX] = {inverse, info, rcond, algorithm};
    char names[2][4 * 21] = {{'l', 0, 0, 0, 'u'}, {'n', 0, 0, 0, 'o', 0, 0, 0, 'n', 0, 0, 0, 'e'}};
    struct proto_request request;
    proto_request_init(&request, PROTO_FORMAT_NPY, method_find("auto"));
    request.batch = request.n = 2;
    request.lead_rank = 1;
    request.lead[0] = 2;
    request.output_count = 1;
    check_answer(&request, outputs,
                 "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2, 2), }", inverse, 64);
    request.outputs[0].index = 1;
    check_answer(&request, outputs, "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }",
                 info, 8);
    request.outputs[0].index = 3;
    check_answer(&request, outputs, "{'descr': '<U21', 'fortran_order': False, 'shape': (2,), }",
                 names, sizeof names);
    request.lead_rank = 0;
    request.batch = 1;
    request.outputs[0].index = 2;
    request.precision = PRECISION_FP32;
    check_answer(&request, outputs, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }",
                 rcond, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),    cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_cut),     cmocka_unit_test(test_broken_prefix),
        cmocka_unit_test(test_answers), cmocka_unit_test(test_several_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
