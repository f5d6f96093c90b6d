/* Statistics: Triton's shapes, counts that only grow, the table of batch sizes, the metrics. */
#include "fakes.h"

#include <jansson.h>

#include "handlers/handlers_private.h"
#include "handlers/stats.h"

static json_t *document(struct fake *fake, const char *path)
{
    struct fake_exchange f;
    fake_request(fake, &f, EXCHANGE_GET, path);
    fake_send(&f, NULL, 0);
    assert_int_equal(f.answer.status, 200);
    json_t *json = json_loads(fake_body(&f), 0, NULL);
    assert_non_null(json);
    fake_end(&f);
    return json;
}

static json_int_t number(json_t *object, const char *outer, const char *inner)
{
    json_t *value = json_object_get(json_object_get(object, outer), inner);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static struct stats_cell *cell_of(struct fake *fake, const char *name, int shard)
{
    return handlers__stats_cell(fake->handlers, &fake->handlers->shards[shard],
                                handlers__model_find(fake->handlers, name, strlen(name)));
}

static void test_document(void **state)
{
    (void)state;
    struct fake fake;
    fake_start(&fake);
    const struct stats_times times = {100, 20, 5, 50, 7};
    handlers__stats_success(cell_of(&fake, "lu", 0), &times, 3);
    handlers__stats_success(cell_of(&fake, "lu", 3), &times, 4);
    handlers__stats_failure(cell_of(&fake, "lu", 1), 9);
    fake.queue.observer.on_batch(fake.queue.observer.context, method_find("lu"), 7, 55);

    json_t *all = document(&fake, "/v2/models/lu/stats");
    json_t *models = json_object_get(all, "model_stats");
    assert_int_equal(json_array_size(models), 1);
    json_t *model = json_array_get(models, 0);
    assert_string_equal(json_string_value(json_object_get(model, "name")), "lu");
    assert_string_equal(json_string_value(json_object_get(model, "version")), "1");
    assert_true(json_integer_value(json_object_get(model, "last_inference")) > 0);
    assert_int_equal(json_integer_value(json_object_get(model, "inference_count")), 7);
    assert_int_equal(json_integer_value(json_object_get(model, "execution_count")), 1);
    json_t *stats = json_object_get(model, "inference_stats");
    static const struct {
        const char *name;
        int count, ns;
    } rows[] = {
        {"success", 2, 200},       {"fail", 1, 9},
        {"queue", 2, 40},          {"compute_input", 2, 10},
        {"compute_infer", 2, 100}, {"compute_output", 2, 14},
        {"cache_hit", 0, 0},       {"cache_miss", 0, 0},
    };
    assert_int_equal(json_object_size(stats), sizeof rows / sizeof rows[0]);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(number(stats, rows[i].name, "count"), rows[i].count);
        assert_int_equal(number(stats, rows[i].name, "ns"), rows[i].ns);
    }
    json_t *batch = json_array_get(json_object_get(model, "batch_stats"), 0);
    assert_int_equal(json_integer_value(json_object_get(batch, "batch_size")), 7);
    assert_int_equal(number(batch, "compute_input", "count"), 1);
    assert_int_equal(number(batch, "compute_infer", "ns"), 55);
    assert_int_equal(number(batch, "compute_output", "count"), 1);
    json_decref(all);

    all = document(&fake, "/v2/models/stats");
    assert_int_equal(json_array_size(json_object_get(all, "model_stats")), method_count());
    json_decref(all);
    fake_stop(&fake);
}

/* However many sizes there are, the table stays small and no batch is lost. */
static void test_batch_sizes(void **state)
{
    (void)state;
    struct fake fake;
    fake_start(&fake);
    const struct queue_observer *observer = &fake.queue.observer;
    int64_t batches = 0;
    for (int64_t size = 1; size < 1000; size++, batches++)
        observer->on_batch(observer->context, method_find("lu"), size, 1);
    for (int shift = 0; shift < 63; shift++, batches++)
        observer->on_batch(observer->context, method_find("lu"), INT64_C(1) << shift, 1);
    observer->on_batch(observer->context, method_find("lu"), INT64_MAX, 1);
    batches++;

    json_t *all = document(&fake, "/v2/models/lu/stats");
    json_t *model = json_array_get(json_object_get(all, "model_stats"), 0);
    json_t *rows = json_object_get(model, "batch_stats");
    assert_in_range(json_array_size(rows), 96, 128);
    int64_t counted = 0, rounded = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        counted += number(row, "compute_infer", "count");
        if (json_integer_value(json_object_get(row, "batch_size")) == 256)
            rounded = number(row, "compute_infer", "count");
    }
    assert_int_equal(counted, batches);
    assert_int_equal(rounded, 128 + 1); /* 129..256, and 256 itself as a power */
    assert_int_equal(json_integer_value(json_object_get(model, "execution_count")), batches);
    json_decref(all);
    fake_stop(&fake);
}

static uint64_t shown(struct fake *fake, enum metric_id id)
{
    return metric_value(metric_series(fake->services.metrics, id, "lu", "1"));
}

/* Publishing twice adds once. */
static void test_metrics(void **state)
{
    (void)state;
    struct fake fake;
    fake_start(&fake);
    struct stats_cell *cell = cell_of(&fake, "lu", 2);
    const struct stats_times times = {100, 20, 5, 50, 7};
    handlers__stats_success(cell, &times, 3);
    handlers__stats_submitted(cell);
    handlers__stats_submitted(cell);
    handlers__stats_returned(cell);
    handlers__stats_inversions(cell, PRECISION_FP32, (const int64_t[SURVEY_INFOS]){4, 0, 1, 0, 2});
    for (int i = 0; i < 2; i++) {
        handlers__stats_publish(fake.handlers);
        assert_int_equal(shown(&fake, METRIC_NV_SUCCESS), 1);
        assert_int_equal(shown(&fake, METRIC_NV_FAILURE), 0);
        assert_int_equal(shown(&fake, METRIC_NV_COUNT), 3);
        assert_int_equal(shown(&fake, METRIC_NV_REQUEST_DURATION), 100);
        assert_int_equal(shown(&fake, METRIC_NV_QUEUE_DURATION), 20);
        assert_int_equal(shown(&fake, METRIC_NV_INFER_DURATION), 50);
        assert_int_equal(shown(&fake, METRIC_NV_PENDING), 1);
    }
    static const struct {
        const char *info;
        uint64_t count;
    } rows[] = {{"good", 4}, {"singular", 0}, {"ill_conditioned", 1}, {"nonfinite", 2}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(metric_value(metric_series(fake.services.metrics, METRIC_INVERSIONS, "lu",
                                                    "fp32", rows[i].info)),
                         rows[i].count);
    fake_stop(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_batch_sizes),
        cmocka_unit_test(test_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
