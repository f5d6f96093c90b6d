/* Routes, verbs, listeners, and errors in the format of their path. Simplest first. */
#include "fakes.h"

#include <jansson.h>

#include "base/log.h"
#include "handlers/handlers_private.h"

static void test_match(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *path;
        bool fits;
        const char *model, *version;
    } rows[] = {
        {"/v2", "/v2", true, "", ""},
        {"/v2", "/v2/", false, "", ""},
        {"/v2", "/v", false, "", ""},
        {"/", "/", true, "", ""},
        {"/", "", false, "", ""},
        {"/m/{model}", "/m/lu", true, "lu", ""},
        {"/m/{model}", "/m/", false, "", ""},
        {"/m/{model}", "/m/lu/", false, "", ""},
        {"/m/{model}/v/{version}/x", "/m/a/v/12/x", true, "a", "12"},
        {"/m/{model}/v/{version}/x", "/m/a/v//x", false, "", ""},
        {"/m/{model}/v/{version}/x", "/m/a/v/1/xy", false, "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct handlers__path found;
        assert_int_equal(handlers__route_match(rows[i].pattern, rows[i].path, &found),
                         rows[i].fits);
        if (!rows[i].fits)
            continue;
        assert_int_equal(found.model_length, strlen(rows[i].model));
        assert_int_equal(found.version_length, strlen(rows[i].version));
        if (found.model != NULL)
            assert_memory_equal(found.model, rows[i].model, found.model_length);
        if (found.version != NULL)
            assert_memory_equal(found.version, rows[i].version, found.version_length);
    }
}

static void test_status(void **state)
{
    (void)state;
    static char long_path[HANDLERS_URI_MAX + 2];
    memset(long_path, 'a', sizeof long_path - 1);
    long_path[0] = '/';
    const struct {
        enum exchange_verb verb;
        const char *path;
        int status;
        const char *label, *allow;
        enum exchange_listener listener;
    } rows[] = {
        {EXCHANGE_GET, "/v2", 200, "/v2", NULL, 0},
        {EXCHANGE_HEAD, "/v2", 200, "/v2", NULL, 0},
        {EXCHANGE_OPTIONS, "/v2", 204, "/v2", "GET, HEAD, OPTIONS", 0},
        {EXCHANGE_OPTIONS, "/v1/invert", 204, "/v1/invert", "POST, OPTIONS", 0},
        {EXCHANGE_POST, "/v2", 405, "/v2", "GET, HEAD, OPTIONS", 0},
        {EXCHANGE_GET, "/v1/invert", 405, "/v1/invert", "POST, OPTIONS", 0},
        {EXCHANGE_OTHER, "/metrics", 405, "/metrics", "GET, HEAD, OPTIONS", 0},
        {EXCHANGE_DELETE, "/v2/models/lu/infer", 405, "/v2/models/{model}/infer", "POST, OPTIONS",
         0},
        {EXCHANGE_GET, "/v2/", 404, "other", NULL, 0},
        {EXCHANGE_GET, "/v2/models", 404, "other", NULL, 0},
        {EXCHANGE_GET, "/v2/models/", 404, "other", NULL, 0},
        {EXCHANGE_GET, "/v1/jobs", 503, "/v1/jobs", NULL, 0},
        {EXCHANGE_DELETE, "/v1/jobs/1", 503, "/v1/jobs/{id}", NULL, 0},
        {EXCHANGE_POST, "/v1/jobs/1", 405, "/v1/jobs/{id}", "GET, HEAD, DELETE, OPTIONS", 0},
        {EXCHANGE_GET, "/v1/jobs/1/result", 503, "/v1/jobs/{id}/result", NULL, 0},
        {EXCHANGE_GET, "/v1/jobs/1/nosuch", 404, "other", NULL, 0},
        {EXCHANGE_GET, "", 404, "other", NULL, 0},
        {EXCHANGE_OPTIONS, "*", 404, "other", NULL, 0},
        {EXCHANGE_GET, long_path, 414, "other", NULL, 0},
        {EXCHANGE_GET, "/livez", 200, "/livez", NULL, 0},
        {EXCHANGE_GET, "/readyz", 200, "/readyz", NULL, 0},
        {EXCHANGE_GET, "/metrics", 200, "/metrics", NULL, 0},
        {EXCHANGE_GET, "/", 200, "/", NULL, 0},
        {EXCHANGE_GET, "/openapi.yaml", 200, "/openapi.yaml", NULL, 0},
        {EXCHANGE_GET, "/v1/methods", 200, "/v1/methods", NULL, 0},
        {EXCHANGE_GET, "/v2/models/lu", 200, "/v2/models/{model}", NULL, 0},
        {EXCHANGE_GET, "/v2/models/stats", 200, "/v2/models/stats", NULL, 0},
        {EXCHANGE_GET, "/v2/models/lu/versions/1", 200, "/v2/models/{model}/versions/{version}",
         NULL, 0},
        {EXCHANGE_GET, "/metrics", 404, "other", NULL, EXCHANGE_LISTENER_WORK},
        {EXCHANGE_GET, "/metrics", 200, "/metrics", NULL, EXCHANGE_LISTENER_OPERATIONS},
        {EXCHANGE_GET, "/livez", 200, "/livez", NULL, EXCHANGE_LISTENER_OPERATIONS},
        {EXCHANGE_GET, "/v2", 404, "other", NULL, EXCHANGE_LISTENER_OPERATIONS},
        {EXCHANGE_POST, "/v1/invert", 404, "other", NULL, EXCHANGE_LISTENER_OPERATIONS},
        {EXCHANGE_GET, "/v2/health/ready", 200, "/v2/health/ready", NULL, EXCHANGE_LISTENER_WORK},
        {EXCHANGE_GET, "/v2/health/ready", 200, "/v2/health/ready", NULL,
         EXCHANGE_LISTENER_OPERATIONS},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        fake_request(&fake, &f, rows[i].verb, rows[i].path);
        f.x.listener = rows[i].listener;
        fake_send(&f, NULL, 0);
        if (f.answer.status != rows[i].status)
            print_error("row %zu: %s\n", i, rows[i].path);
        assert_int_equal(f.answer.status, rows[i].status);
        assert_string_equal(handlers_route_label(&f.x), rows[i].label);
        if (rows[i].allow != NULL)
            assert_string_equal(fake_field(&f, "Allow"), rows[i].allow);
        else
            assert_null(fake_field(&f, "Allow"));
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* A path of the other listener says where it is served; one of none, where to read which are. */
static void test_where_a_path_is(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum exchange_listener listener;
        const char *said;
    } rows[] = {
        {"/metrics", EXCHANGE_LISTENER_WORK, "served on the address of --metrics-listen."},
        {"/readyz", EXCHANGE_LISTENER_WORK, "served on the address of --metrics-listen."},
        {"/v2", EXCHANGE_LISTENER_OPERATIONS, "served on the address of --listen,"},
        {"/nowhere", EXCHANGE_LISTENER_WORK, "GET /openapi.yaml"},
        {"/nowhere", EXCHANGE_LISTENER_OPERATIONS, "GET /openapi.yaml"},
        {"/nowhere", EXCHANGE_LISTENER_ALL, "GET /openapi.yaml"},
        {"/nowhere/", EXCHANGE_LISTENER_ALL, "GET /openapi.yaml"},
        {"/v1", EXCHANGE_LISTENER_ALL, "POST /v1/invert inverts"},
        {"/v1/inverse", EXCHANGE_LISTENER_ALL, "path. POST /v1/invert inverts."},
        {"/v2/models", EXCHANGE_LISTENER_ALL, "POST /v2/repository/index"},
        {"/healthz", EXCHANGE_LISTENER_ALL, "Try /livez and /readyz."},
        {"/v1/invert/", EXCHANGE_LISTENER_ALL, "leave out the slash at its end."},
        {"/v2/models/lu/infer/", EXCHANGE_LISTENER_ALL, "leave out the slash at its end."},
        {"/v2/", EXCHANGE_LISTENER_ALL, "leave out the slash at its end."},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        fake_request(&fake, &f, EXCHANGE_GET, rows[i].path);
        f.x.listener = rows[i].listener;
        fake_send(&f, NULL, 0);
        assert_int_equal(f.answer.status, 404);
        assert_non_null(strstr(fake_body(&f), rows[i].said));
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* Every GET route without braces answers something with a type and, where it is JSON, a value. */
static void test_every_page(void **state)
{
    (void)state;
    struct fake fake;
    fake_start(&fake);
    fake.services.jobs = &fake.jobs;
    for (int i = 0; i < handlers__route_count(); i++) {
        const struct handlers_route *route = handlers__route_at(i);
        if ((route->verbs & (1u << EXCHANGE_GET)) == 0 || strchr(route->pattern, '{') != NULL)
            continue;
        struct fake_exchange f;
        fake_request(&fake, &f, EXCHANGE_GET, route->pattern);
        fake_send(&f, NULL, 0);
        fake_await(&fake, &f);
        assert_int_equal(f.answer.status, 200);
        const char *type = fake_field(&f, "Content-Type");
        assert_non_null(type);
        if (f.answer.stream.read != NULL)
            assert_int_equal(fake_drain(&f), EXCHANGE_STREAM_DRY);
        assert_true(f.answer.bytes > 0);
        if (strcmp(type, "application/json") == 0) {
            json_t *json = json_loads(fake_body(&f), 0, NULL);
            assert_non_null(json);
            json_decref(json);
        }
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* The commands to copy name the host that was asked, unless it is no host's name. */
static void test_status_page_names_its_host(void **state)
{
    (void)state;
    static const struct {
        const char *host, *command;
    } rows[] = {
        {"matrices.example:81", " matrices.example:81/v1/invert"},
        {"[::1]:8001", " [::1]:8001/v1/invert"},
        {NULL, " localhost:8000/v1/invert"},
        {"", " localhost:8000/v1/invert"},
        {"a;rm -rf<b>", " localhost:8000/v1/invert"},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        fake_request(&fake, &f, EXCHANGE_GET, "/");
        if (rows[i].host != NULL)
            fake_set_header(&f, "Host", rows[i].host);
        fake_send(&f, NULL, 0);
        assert_int_equal(f.answer.status, 200);
        assert_non_null(strstr(fake_body(&f), rows[i].command));
        assert_null(strstr(fake_body(&f), "rm -rf"));
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* They ask as a client has to. */
static void test_status_page_names_what_a_client_needs(void **state)
{
    (void)state;
    static const char token[] = "Authorization: Bearer TOKEN", scheme[] = " https://localhost:8000";
    for (int i = 0; i < 4; i++) {
        struct fake fake;
        struct fake_exchange f;
        fake_start(&fake);
        fake.services.tls = (i & 1) != 0;
        fake.services.tokens = (i & 2) != 0;
        fake_request(&fake, &f, EXCHANGE_GET, "/");
        fake_send(&f, NULL, 0);
        assert_int_equal(strstr(fake_body(&f), scheme) != NULL, fake.services.tls);
        assert_int_equal(strstr(fake_body(&f), token) != NULL, fake.services.tokens);
        fake_end(&f);
        fake_stop(&fake);
    }
}

static void test_error_formats(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bool v2;
    } rows[] = {
        {"/v2/nothing", true}, {"/v2/\"\xff", true}, {"/v22", false},
        {"/nothing", false},   {"/v1/\"x\\", false},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        fake_request(&fake, &f, EXCHANGE_GET, rows[i].path);
        fake_send(&f, NULL, 0);
        assert_int_equal(f.answer.status, 404);
        json_t *json = json_loads(fake_body(&f), 0, NULL);
        assert_non_null(json);
        if (rows[i].v2) {
            assert_string_equal(fake_field(&f, "Content-Type"), "application/json");
            assert_true(json_is_string(json_object_get(json, "error")));
            assert_int_equal(json_object_size(json), 1);
        } else {
            assert_string_equal(fake_field(&f, "Content-Type"), "application/problem+json");
            assert_string_equal(json_string_value(json_object_get(json, "type")),
                                "urn:invertd:problem:not-found");
            assert_string_equal(json_string_value(json_object_get(json, "instance")), rows[i].path);
            assert_int_equal(json_integer_value(json_object_get(json, "status")), 404);
            assert_true(json_is_string(json_object_get(json, "title")));
            assert_true(json_is_string(json_object_get(json, "detail")));
        }
        json_decref(json);
        fake_end(&f);
    }
    assert_int_equal(
        metric_value(metric_series(fake.services.metrics, METRIC_REJECTED, "not-found")), 5);
    fake_stop(&fake);
}

/* The door's own refusals, before any route is known. */
static void test_refuse(void **state)
{
    (void)state;
    static const struct {
        enum error code;
        int status;
        bool retry, close;
    } rows[] = {
        {ERROR_MALFORMED, 400, false, false},   {ERROR_HEADERS_TOO_LARGE, 431, false, false},
        {ERROR_CLIENT_QUOTA, 429, true, false}, {ERROR_FULL, 503, true, false},
        {ERROR_DRAINING, 503, true, true},      {ERROR_BODY_TOO_SLOW, 408, false, true},
        {ERROR_TIMEOUT, 504, false, false},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        fake_request(&fake, &f, EXCHANGE_GET, NULL);
        handlers_refuse(&f.x, rows[i].code, i == 0 ? "reported \"so\"" : NULL);
        assert_int_equal(f.answer.status, rows[i].status);
        assert_int_equal(f.answer.close, rows[i].close);
        if (rows[i].retry)
            assert_string_equal(fake_field(&f, "Retry-After"), "7");
        else
            assert_null(fake_field(&f, "Retry-After"));
        json_t *json = json_loads(fake_body(&f), 0, NULL);
        assert_non_null(json);
        const char *detail = json_string_value(json_object_get(json, "detail"));
        assert_string_equal(detail, i == 0 ? "reported \"so\"" : error_title(rows[i].code));
        json_decref(json);
        assert_int_equal(metric_value(metric_series(fake.services.metrics, METRIC_REJECTED,
                                                    error_name(rows[i].code))),
                         1);
        fake_end(&f);
    }
    fake_stop(&fake);
}

static void test_health(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bool live, ready, draining;
        int status;
        const char *body;
    } rows[] = {
        {"/v2/health/live", true, false, false, 200, "{\"live\":true}"},
        {"/livez", false, true, false, 503, "{\"live\":false}"},
        {"/v2/health/ready", true, true, false, 200, "{\"ready\":true}"},
        {"/v2/health/ready", true, false, false, 503, "{\"ready\":false}"},
        {"/readyz", true, true, true, 503, "{\"ready\":false}"},
        {"/v2/models/lu/ready", true, true, false, 200, "{\"name\":\"lu\",\"ready\":true}"},
        {"/v2/models/lu/versions/1/ready", true, false, false, 503,
         "{\"name\":\"lu\",\"ready\":false}"},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        atomic_store(&fake.services.live, rows[i].live);
        atomic_store(&fake.services.ready, rows[i].ready);
        atomic_store(&fake.services.draining, rows[i].draining);
        struct fake_exchange f;
        fake_request(&fake, &f, EXCHANGE_GET, rows[i].path);
        fake_send(&f, NULL, 0);
        assert_int_equal(f.answer.status, rows[i].status);
        size_t length = strlen(rows[i].body);
        assert_memory_equal(fake_body(&f), rows[i].body, length);
        assert_string_equal(fake_body(&f) + length, "\n");
        fake_end(&f);
    }
    fake_stop(&fake);
}

/* The metrics of this folder: what the gauge of readiness says, and which reasons there are. */
static void test_metrics(void **state)
{
    (void)state;
    static const struct {
        bool ready, draining;
        const char *shown;
    } rows[] = {
        {true, false, "\ninvertd_ready 1\n"},
        {false, false, "\ninvertd_ready 0\n"},
        {true, true, "\ninvertd_ready 0\n"},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        atomic_store(&fake.services.ready, rows[i].ready);
        atomic_store(&fake.services.draining, rows[i].draining);
        struct fake_exchange f;
        fake_request(&fake, &f, EXCHANGE_GET, "/metrics");
        fake_send(&f, NULL, 0);
        assert_non_null(strstr(fake_body(&f), rows[i].shown));
        for (int e = 0; e < ERROR_COUNT; e++) {
            char reason[96];
            snprintf(reason, sizeof reason, "invertd_rejected_total{reason=\"%s\"}",
                     error_name((enum error)e));
            bool refusal = e != ERROR_NONE && e != ERROR_NOT_INVERTIBLE && e != ERROR_CANCELLED;
            assert_int_equal(strstr(fake_body(&f), reason) != NULL, refusal);
        }
        fake_end(&f);
    }
    fake_stop(&fake);
}

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static void test_traceparent(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool valid;
    } rows[] = {
        {TRACE, true},
        {"cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", true},
        {NULL, false},
        {"", false},
        {TRACE "0", false},
        {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0", false},
        {"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", false},
        {"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", false},
        {"00-00000000000000000000000000000000-00f067aa0ba902b7-01", false},
        {"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", false},
        {"00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01", false},
        {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-\"\n", false},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        fake_request(&fake, &f, EXCHANGE_GET, "/v2");
        if (rows[i].value != NULL)
            fake_set_header(&f, "TraceParent", rows[i].value);
        const char *trace = handlers_traceparent(&f.x);
        if ((trace != NULL) != rows[i].valid)
            print_error("row %zu\n", i);
        assert_int_equal(trace != NULL, rows[i].valid);
        fake_send(&f, NULL, 0);
        assert_null(fake_field(&f, "traceparent"));
        fake_end(&f);
    }
    fake_stop(&fake);
}

static int open_log(char *path)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_true(log_open(LOG_INFO, LOG_JSON, "test", path));
    return fd;
}

/* The service's own failings are logged, with the client's trace; the client's are not. */
static void test_failures_are_logged(void **state)
{
    (void)state;
    static const struct {
        enum error error;
        const char *trace, *line; /* NULL: no line */
    } rows[] = {
        {ERROR_MALFORMED, TRACE, NULL},
        {ERROR_CLIENT_QUOTA, NULL, NULL},
        {ERROR_FULL, NULL, "\"route\":\"other\",\"status\":503,\"error\":\"service-full\"}\n"},
        {ERROR_INTERNAL, TRACE,
         "\"status\":500,\"error\":\"internal-error\",\"traceparent\":\"" TRACE "\"}\n"},
        {ERROR_TIMEOUT, "a\"b", "\"status\":504,\"error\":\"deadline-passed\"}\n"},
    };
    char path[] = "/tmp/invertd-test-log-XXXXXX";
    int fd = open_log(path);
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        fake_request(&fake, &f, EXCHANGE_GET, "/");
        if (rows[i].trace != NULL)
            fake_set_header(&f, "traceparent", rows[i].trace);
        handlers_refuse(&f.x, rows[i].error, NULL);
        char lines[1024];
        ssize_t length = read(fd, lines, sizeof lines - 1);
        assert_true(length >= 0);
        lines[length] = '\0';
        if (rows[i].line == NULL) {
            assert_string_equal(lines, "");
        } else {
            assert_non_null(strstr(lines, rows[i].line));
            assert_non_null(strstr(lines, "\"warning\""));
        }
        fake_end(&f);
    }
    fake_stop(&fake);
    close(fd);
    unlink(path);
}

/* Under a flood of failings the log stays short, and the counter exact. */
static void test_flood_is_logged_in_part(void **state)
{
    (void)state;
    char path[] = "/tmp/invertd-test-log-XXXXXX";
    int fd = open_log(path);
    struct fake fake;
    fake_start(&fake);
    for (int i = 0; i < 300; i++) {
        struct fake_exchange f;
        fake_request(&fake, &f, EXCHANGE_GET, "/");
        handlers_refuse(&f.x, ERROR_FULL, NULL);
        fake_end(&f);
    }
    assert_int_equal(
        metric_value(metric_series(fake.services.metrics, METRIC_REJECTED, "service-full")), 300);
    static char lines[64 << 10];
    ssize_t length = read(fd, lines, sizeof lines);
    int count = 0;
    for (ssize_t i = 0; i < length; i++)
        count += lines[i] == '\n';
    assert_in_range(count, 32, 4 * 32); /* it may take some seconds under load */
    fake_stop(&fake);
    close(fd);
    unlink(path);
}

/* The page a browser gets: whole, escaped, and with what a reader looks for. */
static void test_status_page(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "<!doctype html>",
        "Version 1.2&lt;3, ready",
        "<dt>Requests under way</dt><dd data-at=\"queue.under_way\" "
        "data-as=\"whole\">0</dd>",
        "href=\"/v2/models/lu\"",
        "curl -sS -d",
        "--fail-with-body",
        "</html>"};
    struct fake fake;
    fake_start(&fake);
    fake.services.version = "1.2<3";
    struct fake_exchange f;
    fake_request(&fake, &f, EXCHANGE_GET, "/");
    fake_send(&f, NULL, 0);
    assert_string_equal(fake_field(&f, "Content-Type"), "text/html; charset=utf-8");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        assert_non_null(strstr(fake_body(&f), parts[i]));
    fake_end(&f);
    fake_stop(&fake);
}

/* What clients use of their quotas; names by certificates may hold any character. */
static void test_status_page_has_clients(void **state)
{
    (void)state;
    static const struct queue_account_use use = {
        .name = "<lab & co>",
        .limits = {.requests = 10, .bytes = 1 << 20, .device_ns = 500000000},
        .requests = 3,
        .bytes = 1 << 19,
        .device_ns = 750000000};
    struct fake fake;
    fake_start(&fake);
    struct fake_exchange f;
    static struct queue_account_use uses[QUEUE_ACCOUNTS_SHOWN + 2];
    for (int count = 0; count <= QUEUE_ACCOUNTS_SHOWN + 2; count += QUEUE_ACCOUNTS_SHOWN / 2 + 1) {
        for (int i = 0; i < count; i++)
            uses[i] = use;
        fake.queue.uses = uses;
        fake.queue.use_count = count;
        fake_request(&fake, &f, EXCHANGE_GET, "/");
        fake_send(&f, NULL, 0);
        const char *page = fake_body(&f);
        assert_int_equal(strstr(page, "<h2>Clients</h2>") != NULL, count > 0);
        assert_int_equal(
            strstr(page, "<tr><th scope=\"row\">&lt;lab &amp; co&gt;<td>3 of 10<td><td>0.5 of 1"
                         "<td>0.75 of 0.5") != NULL,
            count > 0);
        assert_int_equal(strstr(page, "and others") != NULL, count > QUEUE_ACCOUNTS_SHOWN);
        fake_end(&f);
    }
    fake_stop(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_match),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_where_a_path_is),
        cmocka_unit_test(test_every_page),
        cmocka_unit_test(test_status_page_names_its_host),
        cmocka_unit_test(test_status_page_names_what_a_client_needs),
        cmocka_unit_test(test_error_formats),
        cmocka_unit_test(test_refuse),
        cmocka_unit_test(test_health),
        cmocka_unit_test(test_status_page),
        cmocka_unit_test(test_status_page_has_clients),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_traceparent),
        cmocka_unit_test(test_failures_are_logged),
        cmocka_unit_test(test_flood_is_logged_in_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
