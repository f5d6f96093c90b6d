/* tests/unit/handlers/test_entry.c: which clients a route is for, and what others are answered. */
#include "fakes.h"

#include "handlers/handlers_private.h"

static const struct client clients[] = {
    {.name = "infer", .roles = CLIENT_INFER},
    {.name = "jobs", .roles = CLIENT_JOBS},
    {.name = "metrics", .roles = CLIENT_METRICS},
    {.name = "admin", .roles = CLIENT_ADMIN},
    {.name = "most", .roles = CLIENT_INFER | CLIENT_JOBS | CLIENT_METRICS},
};
#define CLIENT_COUNT (sizeof clients / sizeof clients[0])

/* A path that the pattern takes. */
static void fill(const char *pattern, char *path, size_t size)
{
    struct text text;
    text_init_fixed(&text, path, size);
    for (; *pattern != '\0'; pattern++) {
        if (*pattern != '{') {
            text_append(&text, pattern, 1);
            continue;
        }
        text_puts(&text, pattern[1] == 'm' ? "lu" : "1");
        pattern = strchr(pattern, '}');
    }
}

/* Every route has its roles, and lets in their clients alone. */
static void test_every_route(void **state)
{
    (void)state;
    struct fake fake;
    fake_start(&fake);
    for (int i = 0; i < handlers__route_count(); i++) {
        const struct handlers_route *route = handlers__route_at(i);
        char path[64];
        fill(route->pattern, path, sizeof path);
        enum exchange_verb verb =
            (route->verbs & 1u << EXCHANGE_POST) != 0 ? EXCHANGE_POST : EXCHANGE_GET;
        for (size_t k = 0; k <= CLIENT_COUNT; k++) {
            const struct client *client = k < CLIENT_COUNT ? &clients[k] : NULL;
            struct fake_exchange f;
            fake_request(&fake, &f, verb, path);
            f.x.caller = client;
            f.x.content_length = verb == EXCHANGE_POST ? 1 << 20 : -1;
            handlers_begin(&f.x);
            bool open = route->roles == 0;
            bool may = open || (client != NULL && (route->roles & client->roles) != 0) ||
                       (client != NULL && client->roles == CLIENT_ADMIN);
            int wanted = client == NULL ? 401 : 403;
            if (may ? f.answer.status == 401 || f.answer.status == 403 : f.answer.status != wanted)
                fail_msg("%s: client %zu: %d", path, k, f.answer.status);
            if (!may) {
                assert_false(f.x.takes_body); /* and nothing is kept for it */
                assert_null(f.x.state);
                assert_string_equal(handlers_route_label(&f.x), route->pattern);
            }
            const char *challenge =
                f.answer.status == 0 ? NULL : fake_field(&f, "WWW-Authenticate");
            assert_int_equal(challenge != NULL, !may && client == NULL);
            fake_end(&f);
        }
    }
    fake_stop(&fake);
}

static void test_answers(void **state)
{
    (void)state;
    static const struct {
        const char *path, *accept;
        const struct client *client;
        int status;
        const char *type, *said;
    } rows[] = {
        {"/nowhere", NULL, NULL, 401, "application/problem+json", "Authorization: Bearer TOKEN"},
        {"/nowhere", NULL, &clients[1], 404, "application/problem+json", "nothing at this path"},
        {"/v2", NULL, NULL, 401, "application/json", "{\"error\":\"A token"},
        {"/v2", NULL, &clients[1], 403, "application/json", "with the role infer"},
        {"/metrics", NULL, &clients[0], 403, "application/problem+json", "with the role metrics"},
        {"/metrics", "text/html", NULL, 401, "application/problem+json", "unauthorized"},
        {"/", NULL, NULL, 401, "application/problem+json", "unauthorized"},
        {"/", "*/*", NULL, 401, "application/problem+json", "unauthorized"},
        {"/", "text/html,*/*", NULL, 401, "text/html; charset=utf-8", "<form"},
        {"/", "text/html,*/*", &clients[0], 403, "application/problem+json", "role metrics"},
        {"/", "text/html,*/*", &clients[2], 200, "text/html; charset=utf-8", "Methods"},
    };
    struct fake fake;
    fake_start(&fake);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fake_exchange f;
        fake_request(&fake, &f, EXCHANGE_GET, rows[i].path);
        f.x.caller = rows[i].client;
        if (rows[i].accept != NULL)
            fake_set_header(&f, "Accept", rows[i].accept);
        fake_send(&f, NULL, 0);
        assert_int_equal(f.answer.status, rows[i].status);
        assert_string_equal(fake_field(&f, "Content-Type"), rows[i].type);
        assert_non_null(strstr(fake_body(&f), rows[i].said));
        fake_end(&f);
    }
    assert_int_equal(
        metric_value(metric_series(fake.services.metrics, METRIC_REJECTED, "unauthorized")), 6);
    assert_int_equal(
        metric_value(metric_series(fake.services.metrics, METRIC_REJECTED, "forbidden")), 3);
    fake_stop(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_route),
        cmocka_unit_test(test_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
