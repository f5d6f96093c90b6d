/* tests/unit/base/test_metric.c: series, sums, buckets and the page, line by line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric.h"

#define THREADS 4
#define ADDS 20000 /* of one thread */

static struct metric_registry *create(void)
{
    struct metric_registry *registry = metric_registry_create();
    assert_non_null(registry);
    return registry;
}

static struct text render(struct metric_registry *registry)
{
    struct text page;
    text_init(&page, (size_t)64 << 20);
    metric_render(registry, &page);
    assert_false(page.failed);
    return page;
}

/* How often the page has exactly this line. */
static int count_line(const struct text *page, const char *line)
{
    size_t length = strlen(line);
    int count = 0;
    for (const char *at = page->data; (at = strstr(at, line)) != NULL; at++) {
        bool starts = at == page->data || at[-1] == '\n';
        count += starts && at[length] == '\n';
    }
    return count;
}

static void assert_line(const struct text *page, const char *line)
{
    if (count_line(page, line) != 1)
        fail_msg("not once on the page: %s\n%s", line, page->data);
}

static void assert_rendered(struct metric_registry *registry, const char *line)
{
    struct text page = render(registry);
    assert_line(&page, line);
    text_free(&page);
}

/* HELP and TYPE of every row, used or not, and nothing else. */
static void test_empty_page(void **state)
{
    (void)state;
    static const char *const names[] = {
#define NAME(id, name, kind, scale, labels, buckets, help)                                         \
    "# HELP " name " " help "\n", "# TYPE " name " " #kind "\n",
        METRIC_TABLE(NAME)
#undef NAME
    };
    struct metric_registry *registry = create();
    struct text page = render(registry);
    size_t length = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char line[512];
        snprintf(line, sizeof line, "%s", names[i]);
        char *kind = strrchr(line, ' ');
        if (i % 2 == 1) { /* COUNTER is shown as counter */
            for (char *c = kind; *c != '\0'; c++)
                *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
        }
        assert_memory_equal(page.data + length, line, strlen(line));
        length += strlen(line);
    }
    assert_int_equal(page.length, length);
    text_free(&page);
    metric_registry_destroy(&registry);
    assert_null(registry);
    metric_registry_destroy(&registry);
}

static void test_series(void **state)
{
    (void)state;
    struct metric_registry *registry = create();
    struct metric_series *ok = metric_series(registry, METRIC_REQUESTS, "/v1/invert", "200");
    struct metric_series *full = metric_series(registry, METRIC_REQUESTS, "/v1/invert", "503");
    assert_ptr_not_equal(ok, full);
    char route[] = "/v1/invert"; /* found by value, not by pointer */
    assert_ptr_equal(metric_series(registry, METRIC_REQUESTS, route, "200"), ok);
    /* The border between two values counts. */
    assert_ptr_not_equal(metric_series(registry, METRIC_REQUESTS, "/v1/invert2", "00"), ok);
    metric_add(ok, 3);
    metric_add(ok, 4);
    metric_add(full, 1);
    assert_int_equal(metric_value(ok), 7);
    struct text page = render(registry);
    assert_line(&page, "invertd_requests_total{route=\"/v1/invert\",code=\"200\"} 7");
    assert_line(&page, "invertd_requests_total{route=\"/v1/invert\",code=\"503\"} 1");
    assert_line(&page, "invertd_requests_total{route=\"/v1/invert2\",code=\"00\"} 0");
    text_free(&page);
    metric_registry_destroy(&registry);
}

static void test_gauge(void **state)
{
    (void)state;
    struct metric_registry *registry = create();
    struct metric_series *ready = metric_series(registry, METRIC_READY);
    assert_ptr_equal(metric_series(registry, METRIC_READY), ready);
    metric_set(ready, 5);
    metric_add(ready, 2);
    assert_rendered(registry, "invertd_ready 7");
    metric_add(ready, (uint64_t)-10);
    assert_int_equal((int64_t)metric_value(ready), -3);
    assert_rendered(registry, "invertd_ready -3");
    metric_set(ready, INT64_MIN);
    assert_rendered(registry, "invertd_ready -9223372036854775808");
    metric_registry_destroy(&registry);
}

struct label_row {
    const char *value, *shown;
};

static const struct label_row label_rows[] = {
    {"", "invertd_device_up{device=\"\"} 0"},
    {"cuda:0", "invertd_device_up{device=\"cuda:0\"} 0"},
    {"a\"b\\c\nd", "invertd_device_up{device=\"a\\\"b\\\\c\\nd\"} 0"},
    {"\xc3\xa9", "invertd_device_up{device=\"\xc3\xa9\"} 0"},
    {"x\xff\xc3", "invertd_device_up{device=\"x??\"} 0"},
    {"{,}=", "invertd_device_up{device=\"{,}=\"} 0"},
};

static void test_labels(void **state)
{
    (void)state;
    struct metric_registry *registry = create();
    for (size_t i = 0; i < sizeof label_rows / sizeof label_rows[0]; i++) {
        struct metric_series *series =
            metric_series(registry, METRIC_DEVICE_UP, label_rows[i].value);
        assert_ptr_equal(series, metric_series(registry, METRIC_DEVICE_UP, label_rows[i].value));
        assert_rendered(registry, label_rows[i].shown);
    }
    metric_registry_destroy(&registry);
}

struct scaled_row {
    uint64_t value;
    const char *shown;
};

/* Counted in nanoseconds, shown in microseconds: exact, whatever the size. */
static const struct scaled_row scaled_rows[] = {
    {0, "0"},       {1, "0.001"},        {1000, "1"},
    {1010, "1.01"}, {123456, "123.456"}, {UINT64_MAX, "18446744073709551.615"},
};

static void test_scale(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof scaled_rows / sizeof scaled_rows[0]; i++) {
        struct metric_registry *registry = create();
        metric_add(metric_series(registry, METRIC_NV_QUEUE_DURATION, "lu", "1"),
                   scaled_rows[i].value);
        char line[256];
        snprintf(line, sizeof line, "nv_inference_queue_duration_us{model=\"lu\",version=\"1\"} %s",
                 scaled_rows[i].shown);
        assert_rendered(registry, line);
        metric_registry_destroy(&registry);
    }
}

/* ---- Histograms ---- */

struct bucket_row {
    enum metric_id id;
    uint64_t value;
    const char *first;  /* the first bucket that counts it */
    const char *before; /* the last that does not; NULL: none */
    const char *sum;
};

static const struct bucket_row bucket_rows[] = {
    {METRIC_QUEUE_DURATION, 0, "1e-05", NULL, "0"},
    {METRIC_QUEUE_DURATION, 10000, "1e-05", NULL, "0.00001"},
    {METRIC_QUEUE_DURATION, 10001, "2.5e-05", "1e-05", "0.000010001"},
    {METRIC_QUEUE_DURATION, 25000, "2.5e-05", "1e-05", "0.000025"},
    {METRIC_QUEUE_DURATION, 100000, "0.0001", "5e-05", "0.0001"},
    {METRIC_QUEUE_DURATION, 1000000000, "1", "0.5", "1"},
    {METRIC_QUEUE_DURATION, 1000000001, "2.5", "1", "1.000000001"},
    {METRIC_QUEUE_DURATION, 60000000000, "60", "50", "60"},
    {METRIC_QUEUE_DURATION, 60000000001, "+Inf", "60", "60.000000001"},
    {METRIC_BATCH_SIZE, 1, "1", NULL, "1"},
    {METRIC_BATCH_SIZE, 2, "2", "1", "2"},
    {METRIC_BATCH_SIZE, 3, "4", "2", "3"},
    {METRIC_BATCH_SIZE, 65536, "65536", "32768", "65536"},
    {METRIC_BATCH_SIZE, 65537, "+Inf", "65536", "65537"},
};

static void assert_sample(const struct text *page, const char *name, const char *suffix,
                          const char *bound, const char *value)
{
    char line[256];
    snprintf(line, sizeof line, "%s%s{method=\"lu\"%s%s%s} %s", name, suffix,
             bound != NULL ? ",le=\"" : "", bound != NULL ? bound : "", bound != NULL ? "\"" : "",
             value);
    assert_line(page, line);
}

static void test_buckets(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bucket_rows / sizeof bucket_rows[0]; i++) {
        const struct bucket_row *row = &bucket_rows[i];
        const char *name =
            row->id == METRIC_BATCH_SIZE ? "invertd_batch_size" : "invertd_queue_duration_seconds";
        struct metric_registry *registry = create();
        metric_observe(metric_series(registry, row->id, "lu"), row->value);
        struct text page = render(registry);
        assert_sample(&page, name, "_bucket", row->first, "1");
        if (row->before != NULL)
            assert_sample(&page, name, "_bucket", row->before, "0");
        assert_sample(&page, name, "_bucket", "+Inf", "1");
        assert_sample(&page, name, "_sum", NULL, row->sum);
        assert_sample(&page, name, "_count", NULL, "1");
        text_free(&page);
        metric_registry_destroy(&registry);
    }
}

/* Buckets count what lies below them too, and come in rising order, +Inf last. */
static void test_histogram_page(void **state)
{
    (void)state;
    static const char *const expected = "# TYPE invertd_batch_size histogram\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"1\"} 2\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"2\"} 2\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"4\"} 3\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"8\"} 3\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"16\"} 3\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"32\"} 3\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"64\"} 3\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"128\"} 4\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"256\"} 4\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"512\"} 4\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"1024\"} 4\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"2048\"} 4\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"4096\"} 4\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"8192\"} 4\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"16384\"} 4\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"32768\"} 4\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"65536\"} 4\n"
                                        "invertd_batch_size_bucket{method=\"lu\",le=\"+Inf\"} 5\n"
                                        "invertd_batch_size_sum{method=\"lu\"} 1000105\n"
                                        "invertd_batch_size_count{method=\"lu\"} 5\n"
                                        "# HELP ";
    struct metric_registry *registry = create();
    struct metric_series *sizes = metric_series(registry, METRIC_BATCH_SIZE, "lu");
    static const uint64_t values[] = {1, 3, 100, 1, 1000000};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        metric_observe(sizes, values[i]);
    struct text page = render(registry);
    if (strstr(page.data, expected) == NULL)
        fail_msg("the page has another histogram:\n%s", page.data);
    text_free(&page);
    metric_registry_destroy(&registry);
}

/* ---- Limits and threads ---- */

static void test_series_limit(void **state)
{
    (void)state;
    struct metric_registry *registry = create();
    struct metric_series *first = NULL, *unshown = NULL;
    for (int i = 0; i < 9000; i++) {
        char reason[32];
        snprintf(reason, sizeof reason, "r%d", i);
        struct metric_series *series = metric_series(registry, METRIC_REJECTED, reason);
        metric_add(series, 1);
        first = i == 0 ? series : first;
        if (i == 8192)
            unshown = series;
        assert_true((series == unshown) == (i >= 8192));
    }
    /* Every kind has one to count on in vain, and what was there before is found as before. */
    metric_observe(metric_series(registry, METRIC_BATCH_SIZE, "lu"), 3);
    metric_set(metric_series(registry, METRIC_READY), 1);
    assert_ptr_equal(metric_series(registry, METRIC_REJECTED, "r0"), first);
    struct text page = render(registry);
    assert_line(&page, "invertd_rejected_total{reason=\"r8191\"} 1");
    assert_int_equal(count_line(&page, "invertd_rejected_total{reason=\"r8192\"} 1"), 0);
    assert_null(strstr(page.data, "_bucket"));
    text_free(&page);
    metric_registry_destroy(&registry);
}

static void test_long_label(void **state)
{
    (void)state;
    struct metric_registry *registry = create();
    char value[2000];
    memset(value, 'x', sizeof value);
    value[sizeof value - 1] = '\0';
    struct metric_series *series = metric_series(registry, METRIC_REJECTED, value);
    metric_add(series, 1);
    struct text page = render(registry);
    assert_null(strstr(page.data, "xxxx"));
    text_free(&page);
    metric_registry_destroy(&registry);
}

static void *count_all(void *context)
{
    struct metric_registry *registry = context;
    struct metric_series *bytes = metric_series(registry, METRIC_BYTES, "in");
    struct metric_series *depth = metric_series(registry, METRIC_QUEUE_DEPTH, "lu");
    for (int i = 0; i < ADDS; i++) {
        metric_add(bytes, 3);
        metric_add(depth, 2);
        metric_add(depth, (uint64_t)-1);
        metric_observe(metric_series(registry, METRIC_BATCH_REQUESTS, "lu"), (uint64_t)i % 8 + 1);
        if (i % 100 == 0) {
            char reason[32];
            snprintf(reason, sizeof reason, "r%d", i);
            metric_add(metric_series(registry, METRIC_BATCHES, reason), 1);
        }
    }
    return NULL;
}

/* Nothing is lost, and no series is made twice, while the page is read all along. */
static void test_threads(void **state)
{
    (void)state;
    struct metric_registry *registry = create();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_all, registry), 0);
    for (int i = 0; i < 20; i++) {
        struct text page = render(registry);
        text_free(&page);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(metric_value(metric_series(registry, METRIC_BYTES, "in")), 3 * THREADS * ADDS);
    assert_int_equal(metric_value(metric_series(registry, METRIC_QUEUE_DEPTH, "lu")),
                     THREADS * ADDS);
    struct text page = render(registry);
    assert_line(&page, "invertd_batch_requests_bucket{method=\"lu\",le=\"1\"} 10000");
    assert_line(&page, "invertd_batch_requests_bucket{method=\"lu\",le=\"4\"} 40000");
    assert_line(&page, "invertd_batch_requests_count{method=\"lu\"} 80000");
    assert_line(&page, "invertd_batch_requests_sum{method=\"lu\"} 360000");
    assert_line(&page, "invertd_batches_total{reason=\"r0\"} 4");
    assert_line(&page, "invertd_batches_total{reason=\"r19900\"} 4");
    text_free(&page);
    metric_registry_destroy(&registry);
}

static void test_reading(void **state)
{
    (void)state;
    struct metric_registry *registry = create();
    struct metric_series *first = metric_series(registry, METRIC_REQUESTS, "/a", "200");
    struct metric_series *second = metric_series(registry, METRIC_REQUESTS, "b\"\\\n,c=\"", "404");
    assert_ptr_equal(metric_next(registry, METRIC_REQUESTS, NULL), first);
    assert_ptr_equal(metric_next(registry, METRIC_REQUESTS, first), second);
    assert_null(metric_next(registry, METRIC_REQUESTS, second));
    char value[16];
    metric_label(second, "route", value, sizeof value);
    assert_string_equal(value, "b\"\\\n,c=\"");
    metric_label(second, "code", value, sizeof value);
    assert_string_equal(value, "404");
    metric_label(second, "c", value, sizeof value);
    assert_string_equal(value, "");
    metric_label(second, "code", value, 3);
    assert_string_equal(value, "40");

    struct metric_counts counts = {0};
    struct metric_series *sizes = metric_series(registry, METRIC_BATCH_SIZE, "lu");
    metric_observe(sizes, 1);
    metric_observe(sizes, 3);
    metric_observe(sizes, 1 << 20);
    metric_counts_add(sizes, &counts);
    metric_counts_add(sizes, &counts);
    assert_int_equal(counts.counts[0], 2);
    assert_int_equal(counts.counts[2], 2);
    assert_int_equal(counts.limits[2], 4);
    assert_int_equal(counts.counts[counts.bounds], 2);
    metric_registry_destroy(&registry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_page),     cmocka_unit_test(test_series),
        cmocka_unit_test(test_gauge),          cmocka_unit_test(test_labels),
        cmocka_unit_test(test_scale),          cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_histogram_page), cmocka_unit_test(test_series_limit),
        cmocka_unit_test(test_long_label),     cmocka_unit_test(test_threads),
        cmocka_unit_test(test_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
