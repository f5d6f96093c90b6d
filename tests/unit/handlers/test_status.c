/* tests/unit/handlers/test_status.c: the status document: rates, quantiles, its events. */
#include "fakes.h"

#include <jansson.h>
#include <math.h>

#include "handlers/history.h"
#include "handlers/stats.h"
#include "handlers/status.h"

static json_t *document(struct fake *fake, int history)
{
    struct text text;
    json_error_t error;
    text_init(&text, 1 << 20);
    handlers__status_document(fake->handlers, history, &text);
    assert_false(text.failed);
    json_t *json = json_loads(text.data, 0, &error);
    if (json == NULL)
        fail_msg("%s in %s", error.text, text.data);
    text_free(&text);
    return json;
}

/* A number by its path; NaN where it is null. */
static double number(const json_t *json, const char *path)
{
    char name[64];
    int length;
    for (; sscanf(path, " %63[^/]%n", name, &length) == 1; path += *path == '/') {
        json = json_is_array(json) ? json_array_get(json, (size_t)strtol(name, NULL, 10))
                                   : json_object_get(json, name);
        if (json == NULL)
            fail_msg("no %s", path);
        path += length;
    }
    return json_is_number(json) ? json_number_value(json) : (double)NAN;
}

static void assert_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-4 * fabs(wanted)))
        fail_msg("%g, not %g", value, wanted);
}

/* The next sample, a second after the last. */
static void tick(struct fake *fake, uint64_t *now_ns)
{
    *now_ns += CLOCK_S;
    handlers_tick(fake->handlers, &fake->mailbox, *now_ns);
}

/* Requests, matrices and batches of one second. */
static void work(struct fake *fake, int requests, uint64_t each_ns, uint64_t busy_ns)
{
    struct metric_registry *metrics = fake->services.metrics;
    struct stats_cell *cell = handlers__stats_cell(fake->handlers, &fake->handlers->shards[1],
                                                   &fake->handlers->models[0]);
    const struct stats_times times = {each_ns, 1, 1, 1, 1};
    for (int i = 0; i < requests; i++) {
        handlers__stats_success(cell, &times, 10);
        metric_observe(metric_series(metrics, METRIC_REQUEST_DURATION, "/v1/invert"), each_ns);
        metric_observe(metric_series(metrics, METRIC_REQUEST_DURATION, "/metrics"), CLOCK_S);
        metric_observe(metric_series(metrics, METRIC_BATCH_SIZE, "lu"), 10);
    }
    metric_add(metric_series(metrics, METRIC_DEVICE_BUSY, "host"), busy_ns);
    metric_add(metric_series(metrics, METRIC_DEVICE_MATRICES, "host"), (uint64_t)requests * 10);
}

static void test_rates(void **state)
{
    struct fake fake;
    (void)state;
    fake_start(&fake);
    uint64_t now_ns = clock_now_ns();
    metric_set(metric_series(fake.services.metrics, METRIC_DEVICE_UP, "host"), 1);
    metric_set(metric_series(fake.services.metrics, METRIC_DEVICE_INFO, "host", "a \"b\""), 1);
    json_t *json = document(&fake, 300);
    assert_near(number(json, "rates/requests/second"), 0);
    assert_true(isnan(number(json, "latency/p99_s")));
    assert_int_equal(json_array_size(json_object_get(json_object_get(json, "history"), "busy")), 0);
    json_decref(json);

    tick(&fake, &now_ns);
    for (int i = 0; i < 70; i++) {
        work(&fake, i < 69 ? 4 : 8, i < 69 ? CLOCK_MS : 40 * CLOCK_MS, CLOCK_S / 4);
        tick(&fake, &now_ns);
    }
    json = document(&fake, 3);
    assert_near(number(json, "rates/requests/second"), 8);
    assert_near(number(json, "rates/requests/minute"), (59 * 4 + 8) / 60.0);
    assert_near(number(json, "rates/inversions/second"), 80);
    assert_near(number(json, "devices/0/busy/minute"), 0.25);
    assert_near(number(json, "devices/0/inversions/second"), 80);
    assert_string_equal(json_string_value(json_object_get(
                            json_array_get(json_object_get(json, "devices"), 0), "model")),
                        "a \"b\"");
    /* In the bucket from 0.5 to 1 ms, and in that from 25 to 50 ms. */
    double p50_s = number(json, "latency/p50_s"), p99_s = number(json, "latency/p99_s");
    assert_true(p50_s > 5e-4 && p50_s <= 1e-3);
    assert_true(p99_s > 25e-3 && p99_s <= 50e-3);
    assert_near(number(json, "batches/rate/second"), 8);
    assert_near(number(json, "batches/sizes/0/from"), 9);
    assert_near(number(json, "batches/sizes/0/to"), 16);
    assert_near(number(json, "history/requests/1"), 4);
    assert_near(number(json, "history/requests/2"), 8);
    assert_near(number(json, "history/busy/2"), 0.25);
    assert_false(json_is_true(json_object_get(json_object_get(json, "jobs"), "kept")));
    json_decref(json);

    /* No more than there is room for. */
    for (int i = 0; i < 400; i++)
        tick(&fake, &now_ns);
    json = document(&fake, 300);
    assert_int_equal(json_array_size(json_object_get(json_object_get(json, "history"), "busy")),
                     300);
    assert_near(number(json, "rates/requests/minute"), 0);
    json_decref(json);
    fake_stop(&fake);
}

/* The largest residual goes with its minute; RCONDs are kept. */
static void test_accuracy(void **state)
{
    struct fake fake;
    (void)state;
    fake_start(&fake);
    uint64_t now_ns = clock_now_ns();
    struct stats_cell *cell =
        handlers__stats_cell(fake.handlers, &fake.handlers->shards[0], &fake.handlers->models[0]);
    struct survey survey = {.measured = {2, 0}, .residuals = {0.5, 0}};
    survey.rconds[3] = 7;
    tick(&fake, &now_ns);
    handlers__stats_accuracy(cell, &survey);
    survey.residuals[0] = 0.25;
    handlers__stats_accuracy(cell, &survey);
    tick(&fake, &now_ns);
    tick(&fake, &now_ns);
    json_t *json = document(&fake, 0);
    assert_near(number(json, "accuracy/residual/largest"), 0.5);
    assert_near(number(json, "accuracy/residual/matrices"), 4);
    assert_true(isnan(number(json, "accuracy/scaled_residual/largest")));
    assert_near(number(json, "accuracy/rcond/3/minute"), 14);
    assert_near(number(json, "accuracy/rcond/3/from"), 1e-4);
    json_decref(json);
    for (int i = 0; i < 60; i++)
        tick(&fake, &now_ns);
    json = document(&fake, 0);
    assert_true(isnan(number(json, "accuracy/residual/largest")));
    assert_near(number(json, "accuracy/rcond/3/minute"), 0);
    assert_near(number(json, "accuracy/rcond/3/total"), 14);
    json_decref(json);
    fake_stop(&fake);
}

static void test_history_asked_for(void **state)
{
    static const struct {
        const char *value;
        int status;
    } rows[] = {{"0", 200}, {"300", 200}, {"301", 400}, {"-1", 400},
                {"", 400},  {"x", 400},   {"1x", 400},  {"99999999999999999999", 400}};
    struct fake fake;
    (void)state;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        fake_request(&fake, &f, EXCHANGE_GET, "/v1/status");
        fake_set_query(&f, "history", rows[i].value);
        fake_send(&f, NULL, 0);
        assert_int_equal(f.answer.status, rows[i].status);
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* Two listeners of one loop are sent the same document, each second a new one, and one that was
 * slow only the newest. */
static void test_events(void **state)
{
    struct fake fake;
    static struct fake_exchange f, g; /* large for a frame */
    (void)state;
    fake_start(&fake);
    fake.services.limits.streams_max = 2;
    uint64_t now_ns = clock_now_ns();
    fake_request(&fake, &f, EXCHANGE_GET, "/v1/events");
    fake_set_header(&f, "Last-Event-ID", "12\\\"x");
    fake_send(&f, NULL, 0);
    fake_request(&fake, &g, EXCHANGE_GET, "/v1/events");
    fake_send(&g, NULL, 0);
    assert_int_equal(fake_drain(&f), EXCHANGE_STREAM_DRY);
    assert_int_equal(fake_drain(&g), EXCHANGE_STREAM_DRY);
    assert_string_equal((char *)f.answer.body, (char *)g.answer.body);
    assert_ptr_equal(strstr((char *)f.answer.body, "retry: 3000\n\nid: 1\ndata: {\""),
                     f.answer.body);
    size_t first = f.answer.bytes;
    assert_string_equal((char *)f.answer.body + first - 3, "}\n\n");
    for (int i = 0; i < 3; i++) {
        tick(&fake, &now_ns);
        assert_int_equal(f.mores, i + 1);
        assert_int_equal(fake_drain(&f), EXCHANGE_STREAM_DRY);
    }
    assert_int_equal(fake_drain(&g), EXCHANGE_STREAM_DRY);
    assert_null(strstr((char *)g.answer.body, "\nid: 3\n"));
    assert_non_null(strstr((char *)g.answer.body, "\nid: 4\n"));
    assert_non_null(strstr((char *)f.answer.body, "\nid: 3\n"));
    fake_end(&f);
    fake_end(&g);
    fake_stop(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_history_asked_for),
        cmocka_unit_test(test_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
