/* tests/unit/proto/test_json_scan.c: arrays of numbers lifted out of JSON text. */
#include "bench.h"

#include <math.h>

#include "proto/json_private.h"

/* Lifts "x" at a depth, but nothing in the root's member "no". */
static bool lifts_x(const void *context, int depth, struct proto__name root,
                    struct proto__name name)
{
    return depth == *(const int *)context && name.length == 1 && *name.text == 'x' &&
           !(root.length == 2 && memcmp(root.text, "no", 2) == 0);
}

static const struct proto__name name = {"a", 1};

static void test_skeletons(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int depth;
        const char *skeleton;
        int lifts;
    } rows[] = {
        {"{}", 1, "{}", 0},
        {"{\"x\":[1,2]}", 1, "{\"x\":0}", 1},
        {"{\"x\" :\n [ 1 ] , \"y\":[2]}", 1, "{\"x\" :\n 0 , \"y\":[2]}", 1},
        {"{\"x\":[1],\"y\":{\"x\":[2]},\"x\":[3]}", 1, "{\"x\":0,\"y\":{\"x\":[2]},\"x\":1}", 2},
        {"{\"x\":[1],\"y\":[{\"x\":[2]}]}", 3, "{\"x\":[1],\"y\":[{\"x\":0}]}", 1},
        {"{\"a\":\"x\",\"b\":[\"x\",[1]]}", 1, "{\"a\":\"x\",\"b\":[\"x\",[1]]}", 0},
        {"{\"a\":\"\\\"x\\\":[1]\",\"x\":[1]}", 1, "{\"a\":\"\\\"x\\\":[1]\",\"x\":0}", 1},
        {"{\"a\":\"\\\\\",\"x\":[1]}", 1, "{\"a\":\"\\\\\",\"x\":0}", 1},
        {"{\"a\":\"]}{[\",\"x\":[1]}", 1, "{\"a\":\"]}{[\",\"x\":0}", 1},
        {"{\"no\":[{\"x\":[1]}],\"y\":[{\"x\":[2]}]}", 3,
         "{\"no\":[{\"x\":[1]}],\"y\":[{\"x\":0}]}", 1},
        {"{\"\\u006eo\":[{\"x\":[1]}],\"y\":[{\"\\u0078\":[2]}]}", 3,
         "{\"\\u006eo\":[{\"x\":[1]}],\"y\":[{\"\\u0078\":0}]}", 1},
        {"{\"\\u0078\":[1]}", 1, "{\"\\u0078\":0}", 1},
        {"{\"\\u007x\":[1]}", 1, "{\"\\u007x\":[1]}", 0},
        {"{\"\\u0178\":[1]}", 1, "{\"\\u0178\":[1]}", 0},
        {"{\"\\nx\":[1],\"\\x\":[2],\"\\\":[3]}", 1, "{\"\\nx\":[1],\"\\x\":[2],\"\\\":[3]}", 0},
        {"{\"\\u0079 and a name that no rule could ever know\":[1],\"x\":[2]}", 1,
         "{\"\\u0079 and a name that no rule could ever know\":[1],\"x\":0}", 1},
        {"{\"a", 1, "{\"a", 0},
        {"{\"a\\", 1, "{\"a\\", 0},
        {"]]]}}}{\"x\":[1]", 1, "]]]}}}{\"x\":0", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct proto__scan scan;
        struct failure failure = {0};
        struct prototest_body body = prototest_body(rows[i].text, (int64_t)strlen(rows[i].text), 0);
        enum error error = proto__scan(&scan, (const char *)body.bytes, body.length, lifts_x,
                                       &rows[i].depth, &failure);
        prototest_expect(rows[i].text, error, ERROR_NONE, &failure, NULL);
        assert_int_equal(scan.skeleton_bytes, strlen(rows[i].skeleton));
        assert_memory_equal(scan.skeleton, rows[i].skeleton, scan.skeleton_bytes);
        assert_int_equal(scan.lift_count, rows[i].lifts);
        proto__scan_free(&scan);
        prototest_body_free(&body);
    }
}

static void test_shapes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum error code;
        int rank;
        int64_t count, shape[4];
    } rows[] = {
        {"[]", ERROR_NONE, 1, 0, {0}},
        {"[1]", ERROR_NONE, 1, 1, {1}},
        {"[1,2,3]", ERROR_NONE, 1, 3, {3}},
        {"[[1,2],[3,4],[5,6]]", ERROR_NONE, 2, 6, {3, 2}},
        {"[[[[1]],[[2]]]]", ERROR_NONE, 4, 2, {1, 2, 1, 1}},
        {"[[],[],[]]", ERROR_NONE, 2, 0, {3, 0}},
        {"[[[],[]],[[],[]]]", ERROR_NONE, 3, 0, {2, 2, 0}},
        {"[ [ 1 ,\t2 ] ,\r\n[ -3e+4 , 5.5E-1 ] ]", ERROR_NONE, 2, 4, {2, 2}},
        {"[[1],[]]", ERROR_BAD_SHAPE, 0, 0, {0}},
        {"[[],[1]]", ERROR_BAD_SHAPE, 0, 0, {0}},
        {"[[1],2]", ERROR_BAD_SHAPE, 0, 0, {0}},
        {"[1,[2]]", ERROR_BAD_SHAPE, 0, 0, {0}},
        {"[[],1]", ERROR_BAD_SHAPE, 0, 0, {0}},
        {"[[[1]],[2]]", ERROR_BAD_SHAPE, 0, 0, {0}},
        {"[[1],[[2]]]", ERROR_BAD_SHAPE, 0, 0, {0}},
        {"[[[]],[]]", ERROR_BAD_SHAPE, 0, 0, {0}},
        {"[[[1,2]],[[3]]]", ERROR_BAD_SHAPE, 0, 0, {0}},
        {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", ERROR_BAD_SHAPE, 0, 0, {0}},
        {"[", ERROR_MALFORMED, 0, 0, {0}},
        {"[1", ERROR_MALFORMED, 0, 0, {0}},
        {"[1,", ERROR_MALFORMED, 0, 0, {0}},
        {"[1,]", ERROR_MALFORMED, 0, 0, {0}},
        {"[,1]", ERROR_MALFORMED, 0, 0, {0}},
        {"[1 2]", ERROR_MALFORMED, 0, 0, {0}},
        {"[1][", ERROR_NONE, 1, 1, {1}},
        {"[[1][2]]", ERROR_MALFORMED, 0, 0, {0}},
        {"[1}", ERROR_MALFORMED, 0, 0, {0}},
        {"[\"1\"]", ERROR_MALFORMED, 0, 0, {0}},
        {"[\xff]", ERROR_MALFORMED, 0, 0, {0}},
        {"[1\v]", ERROR_MALFORMED, 0, 0, {0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct proto__lift lift;
        struct failure failure = {0};
        struct prototest_body body = prototest_body(rows[i].text, (int64_t)strlen(rows[i].text), 0);
        const char *text = (const char *)body.bytes;
        enum error error =
            proto__lift_scan(&lift, name, 2, text, text, text + body.length, &failure);
        prototest_expect(rows[i].text, error, rows[i].code, &failure, "");
        if (error == ERROR_NONE) {
            assert_int_equal(lift.rank, rows[i].rank);
            assert_int_equal(lift.count, rows[i].count);
            assert_memory_equal(lift.shape, rows[i].shape, (size_t)lift.rank * sizeof(int64_t));
            assert_int_equal(lift.end[-1], ']');
        }
        prototest_body_free(&body);
    }
}

static void test_numbers(void **state)
{
    (void)state;
    static const char text[] = "[[ 0,-0,1e-400, 5e-324],\n[1.7976931348623157e308,0.1,-1E+2 ,1 ]]";
    static const double wanted[8] = {0, -0.0, 0, 5e-324, 1.7976931348623157e308, 0.1, -100, 1};
    struct proto__lift lift;
    struct failure failure = {0};
    double values[8];
    assert_int_equal(proto__lift_scan(&lift, name, 2, text, text, text + sizeof text - 1, &failure),
                     ERROR_NONE);
    assert_int_equal(proto__lift_read(&lift, PRECISION_FP64, "A", values, &failure), ERROR_NONE);
    for (int i = 0; i < 8; i++)
        assert_true(values[i] == wanted[i] && signbit(values[i]) == signbit(wanted[i]));
    float values_f32[8];
    enum error error = proto__lift_read(&lift, PRECISION_FP32, "A", values_f32, &failure);
    prototest_expect("f32", error, ERROR_MALFORMED, &failure, "A[1,0] is too large for FP32");
}

static void test_bad_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"-", "them"},
        {"+1", "them"},
        {".5", "them: write 0.5, not .5"},
        {"-.5", "them: write 0.5, not .5"},
        {"1.", "them"},
        {"1e", "them"},
        {"1e+", "them"},
        {"01", "them"},
        {"e", "them"},
        {"--1", "them"},
        {"1-", "them"},
        {"1.2.3", "them"},
        {"1e5e", "them"},
        {"-+1", "them"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[32];
        struct proto__lift lift;
        struct failure failure = {0};
        double values[2];
        snprintf(text, sizeof text, "[7,%s]", rows[i].text);
        assert_int_equal(
            proto__lift_scan(&lift, name, 2, text, text, text + strlen(text), &failure),
            ERROR_NONE);
        enum error error = proto__lift_read(&lift, PRECISION_FP64, "A", values, &failure);
        char words[96];
        snprintf(words, sizeof words, "A[1] is not a number as JSON writes %s\n", rows[i].words);
        memcpy(failure.detail + strlen(failure.detail), "\n", 2); /* says where the words end */
        prototest_expect(rows[i].text, error, ERROR_MALFORMED, &failure, words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skeletons),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_bad_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
