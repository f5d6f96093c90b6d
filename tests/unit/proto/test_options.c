/* tests/unit/proto/test_options.c: options by name. */
#include "bench.h"

#include <float.h>

struct row {
    const char *name, *value;
    enum error code;
    const char *fragment;
};

static const struct row rows[] = {
    {"refine", "true", ERROR_NONE, NULL},
    {"refine", "0", ERROR_NONE, NULL},
    {"refine", "maybe", ERROR_BAD_OPTION,
     "refine: 'maybe' is not allowed; give true or false (or 1, 0"},
    {"refine", "yes", ERROR_NONE, NULL},
    {"refine", "", ERROR_BAD_OPTION, "''"},
    {"block_size", "1", ERROR_NONE, NULL},
    {"block_size", "64", ERROR_NONE, NULL},
    {"block_size", "0", ERROR_BAD_OPTION, "a whole number from 1 to 64"},
    {"block_size", "65", ERROR_BAD_OPTION, "a whole number from 1 to 64"},
    {"block_size", "-1", ERROR_BAD_OPTION, "'-1'"},
    {"block_size", "08", ERROR_BAD_OPTION, "'08'"},
    {"block_size", "8.0", ERROR_BAD_OPTION, "'8.0'"},
    {"block_size", "8 ", ERROR_BAD_OPTION, "'8 '"},
    {"block_size", "9223372036854775808", ERROR_BAD_OPTION, "9223372036854775808"},
    {"block_size", "-9223372036854775808", ERROR_BAD_OPTION, "whole number"},
    {"tolerance", "1e-9", ERROR_NONE, NULL},
    {"tolerance", "0.5", ERROR_NONE, NULL},
    {"tolerance", "0.6", ERROR_BAD_OPTION, "a number from 0 to 0.5"},
    {"tolerance", ".1", ERROR_BAD_OPTION,
     "from 0 to 0.5, with a digit on either side of its point"},
    {"tolerance", "-.1", ERROR_BAD_OPTION, "with a digit on either side of its point"},
    {"tolerance", "1.e-3", ERROR_BAD_OPTION, "with a digit on either side of its point"},
    {"tolerance", "nan", ERROR_BAD_OPTION, "'nan'"},
    {"tolerance", "1e-9x", ERROR_BAD_OPTION, "'1e-9x'"},
    {"tolerance", "1e999", ERROR_BAD_OPTION, "'1e999'"},
    {"tolerance", "1e-999", ERROR_NONE, NULL},
    {"tolerance", "-1e-999", ERROR_BAD_OPTION, "'-1e-999'"},
    {"tolerance", "-0", ERROR_NONE, NULL},
    {"variant", "single", ERROR_NONE, NULL},
    {"variant", "block", ERROR_NONE, NULL},
    {"variant", "blo", ERROR_BAD_OPTION, "one of auto|single|block"},
    {"variant", "single|block", ERROR_BAD_OPTION, "one of"},
    {"variant", "", ERROR_BAD_OPTION, "one of"},
    {"outputs", "info,INVERSE", ERROR_NONE, NULL},
    {"outputs", " info , inverse ", ERROR_NONE, NULL},
    {"outputs", "", ERROR_NONE, NULL},
    {"outputs", "info,", ERROR_BAD_OPTION, "no output ''"},
    {"outputs", "rcond", ERROR_BAD_OPTION, "update has no output 'rcond'; it has inverse, info"},
    {"outputs", "inverse info", ERROR_BAD_OPTION,
     "no output 'inverse info'; it has inverse, info; names have commas between them"},
    {"outputs", "info,info", ERROR_BAD_OPTION, "INFO is named twice"},
    {"on_singular", "nan", ERROR_NONE, NULL},
    {"on_singular", "error", ERROR_NONE, NULL},
    {"on_singular", "NaN", ERROR_BAD_OPTION, "error or nan"},
    {"priority", "1", ERROR_NONE, NULL},
    {"priority", "9", ERROR_NONE, NULL},
    {"priority", "-1", ERROR_BAD_OPTION, "1 (highest), 2, or more (lowest)"},
    {"timeout", "1000000", ERROR_NONE, NULL},
    {"timeout", "1s", ERROR_BAD_OPTION, "microseconds"},
    {"timeout", "1000000000001", ERROR_BAD_OPTION, "microseconds"},
    {"Refine", "true", ERROR_BAD_OPTION,
     "no option 'Refine'; it takes refine, block_size, tolerance, variant, outputs, on_singular"},
    {"\r\nX: \"<script>", "1", ERROR_BAD_OPTION, "X: ?"},
    {"a0", "2", ERROR_BAD_OPTION,
     "A0 is an input of update, not an option: give it as an array, in an .npz with the others"},
    {"spd", "1", ERROR_BAD_OPTION,
     "update has no option 'spd', which goes with method auto; it takes"},
    {"a_name_that_is_very_much_longer_than_forty_bytes", "1", ERROR_BAD_OPTION, "..."},
};

/* Of a method that takes ranges. */
static const struct row range_rows[] = {
    {"rows", "0:1", ERROR_NONE, NULL},
    {"rows", "0:100", ERROR_NONE, NULL},
    {"columns", "0:2147483647", ERROR_NONE, NULL},
    {"columns", "007:0008", ERROR_NONE, NULL},
    {"rows", "", ERROR_BAD_OPTION,
     "'' is not allowed; give first:last, both of them, first < last"},
    {"rows", ":", ERROR_BAD_OPTION, "':'"},
    {"rows", "3", ERROR_BAD_OPTION, "'3'"},
    {"rows", "3:", ERROR_BAD_OPTION, "'3:'"},
    {"rows", ":3", ERROR_BAD_OPTION, "':3'"},
    {"rows", "0:0", ERROR_BAD_OPTION, "'0:0'"},
    {"rows", "3:3", ERROR_BAD_OPTION, "'3:3'"},
    {"rows", "4:3", ERROR_BAD_OPTION, "'4:3'"},
    {"rows", "-1:3", ERROR_BAD_OPTION, "'-1:3'"},
    {"rows", "0:-1", ERROR_BAD_OPTION, "'0:-1'"},
    {"rows", "0:+1", ERROR_BAD_OPTION, "'0:+1'"},
    {"rows", "0:1:2", ERROR_BAD_OPTION, "'0:1:2'"},
    {"rows", "0: 1", ERROR_BAD_OPTION, "'0: 1'"},
    {"rows", "0:1 ", ERROR_BAD_OPTION, "'0:1 '"},
    {"rows", "0,1", ERROR_BAD_OPTION, "'0,1'"},
    {"rows", "0:1e3", ERROR_BAD_OPTION, "'0:1e3'"},
    {"rows", "0:2147483648", ERROR_BAD_OPTION, "2147483648"},
    {"rows", "0:99999999999999999999999", ERROR_BAD_OPTION, "the last one excluded"},
    {"rows", "99999999999999999999999:1", ERROR_BAD_OPTION, "the last one excluded"},
};

static void test_ranges(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof range_rows / sizeof range_rows[0]; i++) {
        const struct row *row = &range_rows[i];
        struct proto_request request;
        struct failure failure = {0};
        proto_request_init(&request, PROTO_FORMAT_NPY, &prototest_chain);
        enum error error = proto_request_option(&request, row->name, row->value, &failure);
        prototest_expect(row->value, error, row->code, &failure, row->fragment);
    }
}

/* What a request of that order asks of rows, after it was found to fit. */
static void test_ranges_and_orders(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        int64_t n;
        enum error code;
        int64_t first, end;
    } cases[] = {{NULL, 5, ERROR_NONE, 0, 5},         {NULL, 0, ERROR_NONE, 0, 0},
                 {"1:4", 5, ERROR_NONE, 1, 4},        {"4:5", 5, ERROR_NONE, 4, 5},
                 {"0:5", 5, ERROR_NONE, 0, 5},        {"0:6", 5, ERROR_BAD_OPTION, 0, 0},
                 {"5:6", 5, ERROR_BAD_OPTION, 0, 0},  {"0:1", 0, ERROR_BAD_OPTION, 0, 0},
                 {"98:100", 100, ERROR_NONE, 98, 100}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct proto_request request;
        struct failure failure = {0};
        proto_request_init(&request, PROTO_FORMAT_NPY, &prototest_chain);
        if (cases[i].value)
            assert_int_equal(proto_request_option(&request, "rows", cases[i].value, &failure),
                             ERROR_NONE);
        request.n = cases[i].n;
        request.batch = 1;
        prototest_expect("fit", proto_request_fit(&request, &failure), cases[i].code, &failure,
                         "reaches beyond the order, ");
        if (cases[i].code != ERROR_NONE)
            continue;
        struct method_range range = method_range_unpack(request.options[0], request.n);
        assert_int_equal(range.first, cases[i].first);
        assert_int_equal(range.end, cases[i].end);
        bool all = range.first == 0 && range.end == request.n;
        assert_int_equal(request.options[0] == 0, all);
    }
}

/* The length of an output may overflow by an option alone. */
static void test_outputs_that_overflow(void **state)
{
    (void)state;
    struct proto_request request;
    struct failure failure = {0};
    proto_request_init(&request, PROTO_FORMAT_NPY, &prototest_chain);
    request.n = 3;
    request.batch = 1000;
    assert_int_equal(proto_request_option(&request, "steps", "1000", &failure), ERROR_NONE);
    assert_int_equal(proto_request_fit(&request, &failure), ERROR_NONE);
    request.options[2] = INT64_C(1000000000000000);
    prototest_expect("steps", proto_request_fit(&request, &failure), ERROR_BAD_SHAPE, &failure,
                     "the size of HISTORY overflows");
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct proto_request request;
        struct failure failure = {0};
        proto_request_init(&request, PROTO_FORMAT_NPY, &prototest_update);
        enum error error = proto_request_option(&request, rows[i].name, rows[i].value, &failure);
        prototest_expect(rows[i].name, error, rows[i].code, &failure, rows[i].fragment);
        if (error != ERROR_NONE)
            continue;
        error = proto_request_option(&request, rows[i].name, rows[i].value, &failure);
        prototest_expect(rows[i].name, error, ERROR_BAD_OPTION, &failure,
                         "is given twice; give it once: ");
    }
}

static void test_values(void **state)
{
    (void)state;
    struct proto_request request;
    struct failure failure = {0};
    double tolerance;
    proto_request_init(&request, PROTO_FORMAT_NPY, &prototest_update);
    assert_int_equal(request.options[0], 1); /* the defaults */
    assert_int_equal(request.options[1], 8);
    assert_int_equal(request.options[3], 2);
    static const char *const set[][2] = {
        {"refine", "no"},    {"block_size", "33"}, {"tolerance", "0.125"}, {"variant", "auto"},
        {"outputs", "info"}, {"priority", "7"},    {"timeout", "12"},      {"on_singular", "nan"}};
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
        assert_int_equal(proto_request_option(&request, set[i][0], set[i][1], &failure),
                         ERROR_NONE);
    memcpy(&tolerance, &request.options[2], sizeof tolerance);
    assert_int_equal(request.options[0], 0);
    assert_int_equal(request.options[1], 33);
    assert_true(tolerance == 0.125);
    assert_int_equal(request.options[3], 0);
    assert_int_equal(request.output_count, 1);
    assert_int_equal(request.outputs[0].index, 1);
    assert_int_equal(request.priority, 3);
    assert_int_equal(request.timeout_us, 12);
    assert_true(request.nan_on_singular);
}

/* 0 may mean something else than what is too small to be reported from it. */
static void test_small_reals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {{"1e-999", DBL_TRUE_MIN},
                 {"0.0001E-330", DBL_TRUE_MIN},
                 {"2e-324", DBL_TRUE_MIN},
                 {"1e-323", 1e-323},
                 {"0e-999", 0},
                 {"0.000", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct proto_request request;
        struct failure failure = {0};
        double tolerance;
        proto_request_init(&request, PROTO_FORMAT_NPY, &prototest_update);
        assert_int_equal(proto_request_option(&request, "tolerance", cases[i].text, &failure),
                         ERROR_NONE);
        memcpy(&tolerance, &request.options[2], sizeof tolerance);
        assert_true(tolerance == cases[i].value);
    }
}

static void test_sniff(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        int64_t length;
        enum proto_format format;
    } bodies[] = {
        {"\x93NUMPY", 6, PROTO_FORMAT_NPY},    {"\x93NUMP", 5, PROTO_FORMAT_UNKNOWN},
        {"PK\3\4", 4, PROTO_FORMAT_NPZ},       {"PK\5\6", 4, PROTO_FORMAT_NPZ},
        {"PK", 2, PROTO_FORMAT_UNKNOWN},       {"{", 1, PROTO_FORMAT_JSON},
        {" \r\n\t{}", 6, PROTO_FORMAT_JSON},   {"[[1]]", 5, PROTO_FORMAT_JSON},
        {"", 0, PROTO_FORMAT_UNKNOWN},         {"    ", 4, PROTO_FORMAT_UNKNOWN},
        {"matrix=1", 8, PROTO_FORMAT_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        assert_int_equal(proto_sniff((const unsigned char *)bodies[i].bytes, bodies[i].length),
                         bodies[i].format);
}

static void test_formats_and_types(void **state)
{
    (void)state;
    static const struct {
        enum proto_format format;
        const char *body, *fragment; /* NULL: they go together, or the decoder will tell */
    } bodies[] = {
        {PROTO_FORMAT_NPY, "\x93NUMPY", NULL},
        {PROTO_FORMAT_NPY, "PK\3\4",
         "begins as an .npz file does, but its Content-Type is application/x-npy; send it as "
         "application/x-npz"},
        {PROTO_FORMAT_NPZ, "\x93NUMPY", "begins as an .npy file does"},
        {PROTO_FORMAT_NPZ, " {", "begins as JSON does"},
        {PROTO_FORMAT_JSON, "PK\3\4", "send it as application/x-npz"},
        {PROTO_FORMAT_JSON, "[[1]]", NULL},
        {PROTO_FORMAT_JSON, "1", NULL},
        {PROTO_FORMAT_UNKNOWN, "PK\3\4", NULL},
        {PROTO_FORMAT_V2, "PK\3\4", NULL},
        {PROTO_FORMAT_RAW, "\x93NUMPY", NULL},
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct failure failure = {0};
        enum error error =
            proto_check_format(bodies[i].format, (const unsigned char *)bodies[i].body,
                               (int64_t)strlen(bodies[i].body), &failure);
        prototest_expect(bodies[i].body, error,
                         bodies[i].fragment != NULL ? ERROR_MALFORMED : ERROR_NONE, &failure,
                         bodies[i].fragment);
    }
}

static void test_long_requests(void **state)
{
    (void)state;
    static _Alignas(64) unsigned char body[3 << 20];
    static const char dict[] = "{'descr':'<f8','fortran_order':True,'shape':(512,512)}";
    int64_t npy = prototest_npy(body, dict, 512 * 512 * 8, false);
    const struct {
        enum proto_format format;
        int64_t length, json_bytes;
        bool is_long;
    } cases[] = {
        {PROTO_FORMAT_V2, 1000, -1, false},      {PROTO_FORMAT_V2, 20000, -1, true},
        {PROTO_FORMAT_V2, 2 << 20, 104, false},  {PROTO_FORMAT_V2, 2 << 20, 101, true},
        {PROTO_FORMAT_V2, 2 << 20, 20000, true}, {PROTO_FORMAT_RAW, 2 << 20, 0, false},
        {PROTO_FORMAT_NPY, npy, -1, true},       {PROTO_FORMAT_UNKNOWN, npy, -1, true},
        {PROTO_FORMAT_NPY, 1000, -1, false},     {PROTO_FORMAT_NPZ, 1000, -1, false},
        {PROTO_FORMAT_NPZ, 20000, -1, true},     {PROTO_FORMAT_JSON, 20000, -1, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(
            proto_request_is_long(cases[i].format, body, cases[i].length, cases[i].json_bytes),
            cases[i].is_long);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_ranges_and_orders),
        cmocka_unit_test(test_outputs_that_overflow),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_small_reals),
        cmocka_unit_test(test_sniff),
        cmocka_unit_test(test_formats_and_types),
        cmocka_unit_test(test_long_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
