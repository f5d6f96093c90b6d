/* /v1: bodies by type and by their first bytes, options, Accept, headers, 422. */
#include "fakes.h"

#include <jansson.h>

#include "handlers/stats.h"

static unsigned char body[64 << 10];

/* Sends a body to /v1/invert and, where it reaches the queue, computes it with these INFOs. */
static void invert(struct fake *fake, struct fake_exchange *f, const void *data, size_t bytes,
                   const int32_t *infos)
{
    fake_send(f, data, bytes);
    for (int i = 0; i < 20000 && !f->x.answered; i++) {
        if (fake->queue.count > 0)
            fake_compute(fake, infos);
        mailbox_run(&fake->mailbox);
        if (!f->x.answered && fake->queue.count == 0)
            usleep(100);
    }
    assert_true(f->x.answered);
}

static void invert_text(struct fake *fake, struct fake_exchange *f, const char *text,
                        const int32_t *infos)
{
    fake_request(fake, f, EXCHANGE_POST, "/v1/invert");
    invert(fake, f, text, strlen(text), infos);
}

static void test_npy(void **state)
{
    (void)state;
    static const struct {
        const char *type, *fortran;
    } rows[] = {
        {"application/x-npy", "False"},
        {"Application/X-NPY; a=b", "False"},
        {NULL, "False"},
        {"", "False"},
        {"application/x-www-form-urlencoded", "False"},
        {"application/x-npy", "True"},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        size_t bytes = fake_npy_body(body, sizeof body, 2, 3, "<f8", rows[i].fortran);
        fake_request(&fake, &f, EXCHANGE_POST, "/v1/invert");
        if (rows[i].type != NULL)
            fake_set_header(&f, "Content-Type", rows[i].type);
        invert(&fake, &f, body, bytes, NULL);
        assert_int_equal(f.answer.status, 200);
        assert_string_equal(fake_field(&f, "Content-Type"), "application/x-npy");
        assert_memory_equal(f.answer.body, "\x93NUMPY", 6);
        double first;
        memcpy(&first, f.answer.body + f.answer.bytes - 8, sizeof first);
        assert_true(first == 3);
        assert_string_equal(fake_field(&f, "Vary"), "Accept-Encoding");
        assert_string_equal(fake_field(&f, "Invertd-Method"), "lu");
        assert_string_equal(fake_field(&f, "Invertd-Rcond"), "0.05");
        assert_string_equal(fake_field(&f, "Invertd-Info"), "0");
        assert_string_equal(fake_field(&f, "Invertd-Kernel"), "fake kernel");
        assert_string_equal(fake_field(&f, "Server-Timing"), "queue;dur=1.000, compute;dur=2.500");
        fake_end(&f);
    }
    fake_stop(&fake);
}

static void test_json(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    fake_start(&fake);
    invert_text(&fake, &f, " {\"matrix\":[[4,7],[2,6]],\"method\":\"lu\"}", NULL);
    assert_int_equal(f.answer.status, 200);
    assert_string_equal(fake_field(&f, "Content-Type"), "application/json");
    json_t *json = json_loads(fake_body(&f), 0, NULL);
    assert_non_null(json);
    assert_int_equal(json_array_size(json_object_get(json, "inverse")), 2);
    assert_int_equal(json_integer_value(json_object_get(json, "info")), 0);
    json_decref(json);
    fake_end(&f);
    fake_stop(&fake);
}

/* Shortest text in the answer's precision, not through the other one. */
static void test_rcond_of_fp32(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    fake_start(&fake);
    invert_text(&fake, &f, "{\"matrix\":[[4,7],[2,6]],\"precision\":\"fp32\"}", NULL);
    assert_int_equal(f.answer.status, 200);
    assert_string_equal(fake_field(&f, "Invertd-Rcond"), "0.1");
    fake_end(&f);
    fake_stop(&fake);
}

static void test_no_matrices(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    fake_start(&fake);
    size_t bytes = fake_npy_body(body, sizeof body, 4, 0, "<f8", "False");
    fake_request(&fake, &f, EXCHANGE_POST, "/v1/invert");
    invert(&fake, &f, body, bytes, NULL);
    assert_int_equal(f.answer.status, 200);
    assert_string_equal(fake_field(&f, "Invertd-Method"), "none");
    assert_string_equal(fake_field(&f, "Invertd-Rcond"), "1");
    assert_string_equal(fake_field(&f, "Invertd-Info"), "0");
    assert_string_equal(fake_field(&f, "Invertd-Kernel"), "none");
    fake_end(&f);
    fake_stop(&fake);
}

static void test_accept(void **state)
{
    (void)state;
    static const struct {
        const char *accept;
        int status;
        const char *type;
    } rows[] = {
        {NULL, 200, "application/x-npy"},
        {"*/*", 200, "application/x-npy"},
        {"application/x-npz", 200, "application/x-npz"},
        {"application/json", 200, "application/json"},
        {"text/html", 406, "application/problem+json"},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        size_t bytes = fake_npy_body(body, sizeof body, 2, 2, "<f8", "False");
        fake_request(&fake, &f, EXCHANGE_POST, "/v1/invert");
        if (rows[i].accept != NULL)
            fake_set_header(&f, "Accept", rows[i].accept);
        invert(&fake, &f, body, bytes, NULL);
        assert_int_equal(f.answer.status, rows[i].status);
        assert_string_equal(fake_field(&f, "Content-Type"), rows[i].type);
        if (rows[i].status == 200 && strcmp(rows[i].type, "application/json") == 0) {
            json_t *json = json_loads(fake_body(&f), 0, NULL);
            assert_non_null(json);
            assert_int_equal(json_array_size(json_object_get(json, "inverse")), 2);
            json_decref(json);
        }
        fake_end(&f);
    }
    fake_stop(&fake);
}

static void test_errors(void **state)
{
    (void)state;
    static const char good[] = "{\"matrix\":[[4,7],[2,6]]}";
    static const struct {
        const char *text, *query[4];
        int status;
        const char *type, *said;
    } rows[] = {
        {good, {"method", "nothing"}, 400, "bad-option", NULL},
        {good, {"method", "lu", "method", "lu"}, 400, "bad-option", NULL},
        {good, {"what", "x"}, 400, "bad-option", NULL},
        {good, {"on_singular", "x"}, 400, "bad-option", NULL},
        {good, {"outputs", "nothing"}, 400, "bad-option", NULL},
        {"{\"matrix\":[[4,7],[2,6]],\"method\":\"lu\"}", {"method", "lu"}, 400, "bad-option", NULL},
        {"{\"matrix\":[[4,7],[2,6]],\"on_singular\":\"nan\"}",
         {"on_singular", "nan"},
         400,
         "bad-option",
         NULL},
        {"what is this?", {NULL}, 415, "unsupported-media-type", "with its Content-Type.\""},
        {"\x1f\x8bxxxx", {NULL}, 400, "malformed-request", "send it with Content-Encoding: gzip"},
        {"\xef\xbb\xbf{\"matrix\":5}", {NULL}, 400, NULL, "a list of rows, as in"},
        {"\xef\xbb\xbf\xef\xbb\xbf{}", {NULL}, 415, NULL, NULL},
        {good, {"methd", "lu"}, 400, "bad-option", "another method is named by"},
        {"", {NULL}, 400, "malformed-request", NULL},
        {"[[4,7],[2,6]]", {NULL}, 400, "malformed-request", NULL},
        {good, {"precision", "fp32"}, 400, "bad-option", NULL},
        {"{\"matrix\":[[4,7],[2]]}", {NULL}, 400, NULL, NULL},
        {"{", {NULL}, 400, "malformed-request", NULL},
        {"\x93NUMPYxxxx", {NULL}, 400, NULL, NULL},
        {"PK\3\4xxxx", {NULL}, 400, NULL, NULL},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        fake_request(&fake, &f, EXCHANGE_POST, "/v1/invert");
        for (int q = 0; q < 4 && rows[i].query[q] != NULL; q += 2)
            fake_set_query(&f, rows[i].query[q], rows[i].query[q + 1]);
        invert(&fake, &f, rows[i].text, strlen(rows[i].text), NULL);
        if (f.answer.status != rows[i].status)
            print_error("row %zu: %s\n", i, fake_body(&f));
        assert_int_equal(f.answer.status, rows[i].status);
        json_t *json = json_loads(fake_body(&f), 0, NULL);
        assert_non_null(json);
        const char *type = json_string_value(json_object_get(json, "type"));
        assert_memory_equal(type, "urn:invertd:problem:", 20);
        if (rows[i].type != NULL)
            assert_string_equal(type + 20, rows[i].type);
        if (rows[i].said != NULL)
            assert_non_null(strstr(fake_body(&f), rows[i].said));
        json_decref(json);
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* Options of the query, before and after a body that names the method. */
static void test_query(void **state)
{
    (void)state;
    struct fake fake;
    struct fake_exchange f;
    fake_start(&fake);
    fake_request(&fake, &f, EXCHANGE_POST, "/v1/invert");
    fake_set_query(&f, "outputs", "rcond,inverse");
    fake_set_query(&f, "priority", "1");
    fake_set_header(&f, "Prefer", "wait=5, handling=strict"); /* without respond-async: ignored */
    static const char text[] = "{\"method\":\"lu\",\"matrix\":[[4,7],[2,6]]}";
    fake_send(&f, text, sizeof text - 1);
    assert_int_equal(fake.queue.items[0]->priority, 1);
    assert_string_equal(fake.queue.items[0]->method->name, "lu");
    fake_compute(&fake, NULL);
    mailbox_run(&fake.mailbox);
    json_t *json = json_loads(fake_body(&f), 0, NULL);
    assert_non_null(json);
    assert_non_null(json_object_get(json, "inverse"));
    assert_non_null(json_object_get(json, "rcond"));
    json_decref(json);
    fake_end(&f);

    size_t bytes = fake_npy_body(body, sizeof body, 1, 2, "<f8", "False");
    fake_request(&fake, &f, EXCHANGE_POST, "/v1/invert");
    fake_set_query(&f, "method", "lu");
    fake_set_query(&f, "outputs", "info");
    invert(&fake, &f, body, bytes, NULL);
    assert_int_equal(f.answer.status, 200);
    assert_memory_equal(f.answer.body + f.answer.bytes - 4, "\0\0\0\0", 4);
    fake_end(&f);
    fake_stop(&fake);
}

static uint64_t inversions(struct fake *fake, const char *info)
{
    return metric_value(
        metric_series(fake->services.metrics, METRIC_INVERSIONS, "lu", "fp64", info));
}

/* detail NULL: any. */
static void check_problem(struct fake_exchange *f, const int32_t *infos, int failed,
                          const char *detail)
{
    json_t *json = json_loads(fake_body(f), 0, NULL);
    assert_non_null(json);
    assert_string_equal(fake_field(f, "Content-Type"), "application/problem+json");
    assert_string_equal(json_string_value(json_object_get(json, "type")),
                        "urn:invertd:problem:not-invertible");
    assert_string_equal(json_string_value(json_object_get(json, "instance")), "/v1/invert");
    if (detail != NULL)
        assert_string_equal(json_string_value(json_object_get(json, "detail")), detail);
    assert_int_equal(json_integer_value(json_object_get(json, "count")), failed);
    json_t *matrices = json_object_get(json, "matrices");
    assert_int_equal(json_array_size(matrices), failed);
    for (size_t m = 0; m < json_array_size(matrices); m++) {
        json_t *bad = json_array_get(matrices, m);
        json_int_t index = json_integer_value(json_object_get(bad, "index"));
        assert_in_range(index, 0, 2);
        assert_int_equal(json_integer_value(json_object_get(bad, "info")), infos[index]);
    }
    json_decref(json);
}

/* INFO decides: n+1 alone is an answer, the others are not unless on_singular=nan. */
static const struct {
    int32_t infos[3];
    const char *on_singular;
    int status, failed;
    const char *info, *detail;
} info_rows[] = {
    {{0, 0, 0}, NULL, 200, 0, "0", NULL},
    {{0, 3, 0}, NULL, 200, 0, "1", NULL},
    {{0, 1, 0},
     NULL,
     422,
     1,
     "1",
     "Matrix 1 (of 0 to 2): singular, exact zero pivot at step 1 of 2. Ask on_singular=nan for NaN "
     "in "
     "its place."},
    {{4, -1, 2},
     NULL,
     422,
     3,
     "3",
     "3 of 3 matrices could not be inverted, the first of them matrix 0 (of 0 to 2): the "
     "iteration did not converge; \"matrices\" lists them. on_singular=nan answers with NaN in "
     "their places, or the best iterate."},
    {{0, 4, 0},
     NULL,
     422,
     1,
     "1",
     "Matrix 1 (of 0 to 2): the iteration did not converge. Ask on_singular=nan for the best "
     "iterate, and outputs=inverse,iterations,residual for how near it came."},
    {{3, 3, -1},
     NULL,
     422,
     1,
     "3",
     "Matrix 2 (of 0 to 2): its input holds a NaN or an infinity. Ask on_singular=nan for NaN "
     "in its place."},
    {{-1, 4, 2}, "nan", 200, 0, "3", NULL},
    {{-1, 4, 2}, "error", 422, 3, "3", NULL},
};

static void test_info(void **state)
{
    (void)state;
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof info_rows / sizeof info_rows[0]; i++) {
        struct fake_exchange f;
        size_t bytes = fake_npy_body(body, sizeof body, 3, 2, "<f8", "False");
        fake_request(&fake, &f, EXCHANGE_POST, "/v1/invert");
        fake_set_query(&f, "method", "lu");
        if (info_rows[i].on_singular != NULL)
            fake_set_query(&f, "on_singular", info_rows[i].on_singular);
        invert(&fake, &f, body, bytes, info_rows[i].infos);
        assert_int_equal(f.answer.status, info_rows[i].status);
        assert_string_equal(fake_field(&f, "Invertd-Info"), info_rows[i].info);
        assert_non_null(fake_field(&f, "Invertd-Method"));
        if (info_rows[i].status == 422)
            check_problem(&f, info_rows[i].infos, info_rows[i].failed, info_rows[i].detail);
        fake_end(&f);
    }
    handlers__stats_publish(fake.handlers);
    assert_int_equal(inversions(&fake, "good"), 9);
    assert_int_equal(inversions(&fake, "ill_conditioned"), 3);
    assert_int_equal(inversions(&fake, "singular"), 4);
    assert_int_equal(inversions(&fake, "not_converged"), 4);
    assert_int_equal(inversions(&fake, "nonfinite"), 4);
    assert_int_equal(
        metric_value(metric_series(fake.services.metrics, METRIC_NV_SUCCESS, "lu", "1")), 3);
    assert_int_equal(
        metric_value(metric_series(fake.services.metrics, METRIC_NV_FAILURE, "lu", "1")), 5);
    fake_stop(&fake);
}

/* A matrix may be given as a sum, which overflows, and iterations have no pivots. */
static void test_reasons(void **state)
{
    (void)state;
    static const struct {
        const char *text, *method;
        int32_t info;
        const char *said;
    } rows[] = {
        {"{\"matrix\":[[4,7],[2,6]]}", "lu", -1, "0: its input holds a NaN or an infinity."},
        {"{\"x\":[[1],[2]],\"y\":[[1],[2]]}", "ism", -1,
         "0: one of its inputs (X, Y), or A0 + X Y^T, holds a NaN or an infinity."},
        {"{\"matrix\":[[4,7],[2,6]],\"v0\":[[1,0],[0,1]]}", "iterative", -1,
         "0: one of its inputs (A, V0) holds a NaN or an infinity."},
        {"{\"matrix\":[[4,7],[2,6]]}", "lu", 2, "0: singular, exact zero pivot at step 2 of 2."},
        {"{\"matrix\":[[4,7],[2,6]]}", "iterative", 2, "0: a row or a column of zeros."},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        fake_request(&fake, &f, EXCHANGE_POST, "/v1/invert");
        fake_set_query(&f, "method", rows[i].method);
        invert(&fake, &f, rows[i].text, strlen(rows[i].text), &rows[i].info);
        assert_int_equal(f.answer.status, 422);
        assert_non_null(strstr(fake_body(&f), rows[i].said));
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* What became of an iteration, and what may help, by all that its answer says. */
static const struct {
    const char *query[6];
    int32_t iterations;
    const char *said;
} unconverged_rows[] = {
    {{NULL},
     40,
     ": no start led to an inverse, the best of them ended after 40 of at most 100 steps. The "
     "matrix may be singular: method=lu says, and inverts it if it is not. Ask on_singular=nan "
     "for the best iterate"},
    {{"initial", "transpose"},
     40,
     "of at most 100 steps. Take initial=auto, or method=lu, which says whether the matrix is "
     "singular. Ask"},
    {{"max_iterations", "50", "initial", "transpose"},
     40,
     "of at most 50 steps. Raise max_iterations. Ask"},
    {{"max_iterations", "5"},
     5,
     ": it took all 5 steps that max_iterations allows. Raise max_iterations. Ask"},
    {{"max_iterations", "5", "outputs", "inverse,residual"},
     5,
     ": it took all 5 steps that max_iterations allows (RESIDUAL 0.1). Raise max_iterations. Ask"},
    {{"max_iterations", "5", "outputs", "residual", "tolerance", "0.01"},
     5,
     "allows (RESIDUAL 0.1). Raise max_iterations, or tolerance above RESIDUAL. Ask"},
    {{"max_iterations", "1000"},
     1000,
     ": it took all 1000 steps that max_iterations allows. The matrix may be singular: method=lu "
     "says. Ask"},
    {{"tolerance", "1e-14"},
     9,
     ": it ended after 9 of at most 100 steps, above tolerance=1e-14. Where outputs=residual is "
     "below 0.5, rounding allows no less, and tolerance has to be above it; else leave tolerance "
     "out, or ask method=lu whether the matrix is singular. Ask"},
    {{"tolerance", "1e-14", "outputs", "residual"},
     9,
     ": RESIDUAL stood still at 0.1, above tolerance=1e-14. Raise tolerance above that, or leave "
     "it out. Ask"},
    {{"outputs", "residual"},
     40,
     ": RESIDUAL came to 0.1, above what lu leaves. Take method=lu. Ask"},
    {{"max_iterations", "1000"},
     40,
     "ended after 40 of at most 1000 steps. The matrix may be singular: method=lu says, and "
     "inverts it if it is not. Ask"},
};

static void test_unconverged(void **state)
{
    (void)state;
    static const char text[] = "{\"matrix\":[[4,7],[2,6]]}";
    static const int32_t info = 4;
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof unconverged_rows / sizeof unconverged_rows[0]; i++) {
        struct fake_exchange f;
        const char *const *query = unconverged_rows[i].query;
        fake.iterations = unconverged_rows[i].iterations;
        fake_request(&fake, &f, EXCHANGE_POST, "/v1/invert");
        fake_set_query(&f, "method", "iterative");
        for (int q = 0; q < 6 && query[q] != NULL; q += 2)
            fake_set_query(&f, query[q], query[q + 1]);
        invert(&fake, &f, text, sizeof text - 1, &info);
        assert_int_equal(f.answer.status, 422);
        if (strstr(fake_body(&f), unconverged_rows[i].said) == NULL)
            fail_msg("not \"%s\": %s", unconverged_rows[i].said, fake_body(&f));
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* The first that failed is not the first that did not converge: both are reported of. */
static void test_unconverged_behind_another(void **state)
{
    (void)state;
    static const int32_t infos[] = {-1, 0, 4};
    struct fake fake;
    struct fake_exchange f;
    fake_start(&fake);
    fake.iterations = 100;
    fake_request(&fake, &f, EXCHANGE_POST, "/v1/invert");
    fake_set_query(&f, "method", "iterative");
    size_t bytes = fake_npy_body(body, sizeof body, 3, 2, "<f8", "False");
    invert(&fake, &f, body, bytes, infos);
    assert_int_equal(f.answer.status, 422);
    check_problem(&f, infos, 2,
                  "2 of 3 matrices could not be inverted, the first of them matrix 0 (of 0 to 2): "
                  "its input holds a NaN or an infinity; \"matrices\" lists them. Matrix 2: the "
                  "iteration did not converge: it took all 100 steps that max_iterations allows. "
                  "Raise max_iterations. on_singular=nan answers with NaN in their places, or the "
                  "best iterate.");
    fake_end(&f);
    fake_stop(&fake);
}

/* A problem document names a hundred matrices and counts the rest. */
static void test_many_bad(void **state)
{
    (void)state;
    static int32_t infos[300];
    struct fake fake;
    struct fake_exchange f;
    fake_start(&fake);
    for (int i = 0; i < 300; i++)
        infos[i] = 1;
    size_t bytes = fake_npy_body(body, sizeof body, 300, 2, "<f8", "False");
    fake_request(&fake, &f, EXCHANGE_POST, "/v1/invert");
    invert(&fake, &f, body, bytes, infos);
    assert_int_equal(f.answer.status, 422);
    json_t *json = json_loads(fake_body(&f), 0, NULL);
    assert_non_null(json);
    assert_int_equal(json_integer_value(json_object_get(json, "count")), 300);
    assert_int_equal(json_array_size(json_object_get(json, "matrices")), 100);
    json_decref(json);
    fake_end(&f);
    fake_stop(&fake);
}

/* The work of so many matrices is looked through in the pool. */
static void test_many_matrices(void **state)
{
    (void)state;
    static unsigned char many[512 << 10];
    struct fake fake;
    struct fake_exchange f;
    fake_start(&fake);
    size_t bytes = fake_npy_body(many, sizeof many, 20000, 1, "<f8", "False");
    fake_request(&fake, &f, EXCHANGE_POST, "/v1/invert");
    fake_send(&f, many, bytes);
    fake_await_item(&fake);
    fake_compute(&fake, NULL);
    fake_await(&fake, &f);
    assert_int_equal(f.answer.status, 200);
    assert_int_equal(f.answer.bytes, bytes);
    fake_end(&f);
    fake_stop(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_npy),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_rcond_of_fp32),
        cmocka_unit_test(test_no_matrices),
        cmocka_unit_test(test_accept),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_unconverged),
        cmocka_unit_test(test_unconverged_behind_another),
        cmocka_unit_test(test_many_bad),
        cmocka_unit_test(test_many_matrices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
