/* tests/unit/proto/test_input_shapes.c: inputs with several shapes, and sets of inputs. */
#include "bench.h"

enum {
    SOLE,
    LEFT,
    BASE_SCALE,
    BASE_DIAGONAL,
    BASE_DENSE,
    KNOWN
};

#define SETS_LEFT METHOD_INPUT(LEFT)

/* SOLE [n,n]; or LEFT [n,m], with BASE [1] or [n], or with KNOWN [n,n] and perhaps BASE [n,n]. */
static const struct method several = {
    .name = "several",
    .title = "Inputs with several shapes",
    .when = "In tests.",
    .inputs =
        {{.name = "SOLE", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_N}, .optional = true},
         {.name = "LEFT", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_M}, .optional = true},
         {.name = "BASE", .rank = 1, .dims = {METHOD_DIM_1}, .optional = true},
         {.name = "BASE", .rank = 1, .dims = {METHOD_DIM_N}, .optional = true},
         {.name = "BASE",
          .rank = 2,
          .dims = {METHOD_DIM_N, METHOD_DIM_N},
          .optional = true,
          .instead = "form the sum"},
         {.name = "KNOWN", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_N}, .optional = true}},
    .input_sets = {METHOD_INPUT(SOLE), SETS_LEFT, SETS_LEFT | METHOD_INPUT(BASE_SCALE),
                   SETS_LEFT | METHOD_INPUT(BASE_DIAGONAL), SETS_LEFT | METHOD_INPUT(KNOWN),
                   SETS_LEFT | METHOD_INPUT(KNOWN) | METHOD_INPUT(BASE_DENSE)},
    .outputs = {{.name = "INFO", .kind = METHOD_INT32, .is_default = true},
                {.name = "FACTOR", .rank = 2, .dims = {METHOD_DIM_N, METHOD_DIM_M}}},
    .n_max = 100,
};

static const struct {
    const char *json;
    uint32_t inputs; /* where they come to lie; 0: refused */
    int64_t n, m;
    const char *words;
} rows[] = {
    {"{\"sole\":[[1,2],[3,4]]}", METHOD_INPUT(SOLE), 2, 2, NULL},
    {"{\"left\":[[1,2,3],[3,4,5]]}", SETS_LEFT, 2, 3, NULL},
    {"{\"left\":[[1],[2]],\"base\":[7]}", SETS_LEFT | METHOD_INPUT(BASE_SCALE), 2, 1, NULL},
    {"{\"base\":[7,8],\"left\":[[1],[2]]}", SETS_LEFT | METHOD_INPUT(BASE_DIAGONAL), 2, 1, NULL},
    /* of n = 1, the first that fits */
    {"{\"left\":[[1]],\"base\":[7]}", SETS_LEFT | METHOD_INPUT(BASE_SCALE), 1, 1, NULL},
    {"{\"left\":[[1],[2]],\"base\":[[7,8],[9,9]],\"known\":[[1,2],[3,4]]}",
     SETS_LEFT | METHOD_INPUT(KNOWN) | METHOD_INPUT(BASE_DENSE), 2, 1, NULL},
    /* two matrices with a diagonal each, not one with a dense base */
    {"{\"left\":[[[1],[2]],[[3],[4]]],\"base\":[[7,8],[9,9]]}",
     SETS_LEFT | METHOD_INPUT(BASE_DIAGONAL), 2, 1, NULL},
    {"{\"left\":[[[1],[2]]],\"base\":[[7]]}", SETS_LEFT | METHOD_INPUT(BASE_SCALE), 2, 1, NULL},
    {"{\"sole\":[[1]],\"left\":[[1]]}", 0, 0, 0,
     "SOLE stands alone: leave it out, or leave out LEFT. several takes SOLE; or LEFT; or LEFT, "
     "BASE; "
     "or LEFT, KNOWN; or "
     "LEFT, BASE, KNOWN"},
    {"{\"sole\":[[1]],\"known\":[[1]],\"base\":[1]}", 0, 0, 0,
     "SOLE stands alone: leave it out and send LEFT too, or leave out BASE, KNOWN. several takes"},
    {"{\"base\":[1]}", 0, 0, 0, "input LEFT is missing next to BASE; several takes SOLE; or"},
    {"{\"known\":[[1]],\"base\":[1]}", 0, 0, 0,
     "input LEFT is missing next to BASE, KNOWN; several"},
    {"{}", 0, 0, 0, "no input is given; several takes SOLE; or LEFT; or LEFT, BASE;"},
    {"{\"left\":[[1],[2]],\"base\":[1,2,3]}", 0, 0, 0,
     "it must be [1] or [2], for n = 2 (from LEFT, read as [n,m])"},
    {"{\"left\":[[1,2]],\"base\":[1,2]}", 0, 0, 0,
     "it must be [1], for n = 1 (from LEFT, read as [n,m])"},
    {"{\"left\":[[1],[2]],\"base\":[[1,2],[3,4]]}", 0, 0, 0,
     "it must be [1] or [2], for n = 2 (from LEFT, read as [n,m]); of that shape it is taken with "
     "LEFT, BASE, KNOWN: send KNOWN too, or form the sum\n"},
    {"{\"left\":[[1],[2]],\"base\":[1,2],\"known\":[[1,2],[3,4]]}", 0, 0, 0,
     "BASE has shape [2]: next to these inputs it must be [2,2], for n = 2 (from KNOWN); of that "
     "shape it is taken with LEFT, BASE\n"},
    {"{\"left\":[[[1],[2]]],\"base\":[[7,8,9]]}", 0, 0, 0,
     "BASE has shape [1,3]: next to these inputs it must be [1,1] or [1,2], for n = 2 (from LEFT, "
     "read as [batch,n,m])"},
    {"{\"left\":[[[1],[2]]],\"base\":[[7],[8]]}", 0, 0, 0,
     "BASE has shape [2,1], read as [batch,1], and LEFT has shape [1,2,1], read as [batch,n,m]: "
     "all "
     "inputs must have the same batch, none is broadcast"},
    {"{\"left\":[[1,2],[3,4]],\"known\":[[[1,2],[3,4]],[[1,2],[3,4]]]}", 0, 0, 0,
     "KNOWN has shape [2,2,2], read as [batch,n,n], and LEFT has shape [2,2], read as [n,m]: all "
     "inputs must have the same batch, none is broadcast; a column for each matrix is [2,2,1], in "
     "NumPy left[..., None]"},
    /* no vectors: the batch is another */
    {"{\"left\":[[1,2],[3,4],[5,6]],\"known\":[[[1,2],[3,4]],[[1,2],[3,4]]]}", 0, 0, 0,
     "read as [n,m]: all inputs must have the same batch, none is broadcast\n"},
    {"{\"left\":[1,2],\"known\":[[1,2],[3,4]]}", 0, 0, 0,
     "LEFT has shape [2]: it must be [...,n,m]; a column is written [2,1]\n"},
    /* a row in a column's place: the square says n */
    {"{\"left\":[[1,2]],\"known\":[[1,2],[3,4]]}", 0, 0, 0,
     "LEFT has shape [1,2]: with n = 2 (from KNOWN) it must be [2,m]\n"},
    {"{\"left\":[[[1,2]]],\"known\":[[[1,2],[3,4]]]}", 0, 0, 0,
     "LEFT has shape [1,1,2]: with n = 2 (from KNOWN) it must be [...,2,m]\n"},
    {"{\"left\":[[1],[2]],\"known\":[[1,2,3],[4,5,6]]}", 0, 0, 0,
     "KNOWN has shape [2,3]: the last two dimensions must be equal\n"},
    {"{\"left\":[[1],[2]],\"base\":1}", 0, 0, 0, "must be an array"},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct prototest_space space;
        struct proto_request request;
        struct failure failure = {0};
        prototest_space_init(&space, 1 << 20);
        struct prototest_body body = prototest_body(rows[i].json, (int64_t)strlen(rows[i].json), 0);
        proto_request_init(&request, PROTO_FORMAT_JSON, &several);
        enum error error =
            proto_json_decode(body.bytes, body.length, &space.space, &request, &failure);
        if (rows[i].inputs == 0) {
            assert_int_not_equal(error, ERROR_NONE);
            size_t length = strlen(failure.detail);
            assert_true(length + 2 <= sizeof failure.detail);
            memcpy(failure.detail + length, "\n", 2); /* rows tell where the words end */
            prototest_expect(rows[i].json, error, error, &failure, rows[i].words);
        } else {
            prototest_expect(rows[i].json, error, ERROR_NONE, &failure, NULL);
            assert_int_equal(request.n, rows[i].n);
            assert_int_equal(request.m, rows[i].m);
            for (int k = 0; k < METHOD_INPUTS_MAX; k++)
                assert_int_equal(request.inputs[k].data != NULL, rows[i].inputs >> k & 1);
        }
        prototest_body_free(&body);
        prototest_space_free(&space);
    }
}

/* The protocol's metadata have one shape a name, the service's own all of them. */
static void test_metadata(void **state)
{
    (void)state;
    struct text text;
    char json[1024];
    text_init_fixed(&text, json, sizeof json);
    proto_v2_metadata(&several, &text);
    assert_non_null(strstr(json, "{\"name\":\"BASE\",\"datatype\":\"FP64\",\"shape\":[-1,-1]}"));
    const char *first = strstr(json, "BASE");
    assert_null(strstr(first + 1, "BASE"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
