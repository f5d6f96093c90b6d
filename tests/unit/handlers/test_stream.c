/* tests/unit/handlers/test_stream.c: streams of events: what is framed, when, for how many. */
#include "fakes.h"

#include "handlers/stream.h"

static struct {
    const char *news; /* NULL: none */
    bool is_over;
    int asked, ended;
} source;

static bool on_next(void *context, struct text *events)
{
    assert_ptr_equal(context, &source);
    source.asked++;
    if (source.news != NULL)
        text_puts(events, source.news);
    source.news = NULL;
    return !source.is_over;
}

static void on_end(void *context)
{
    assert_ptr_equal(context, &source);
    source.ended++;
}

static const struct stream_source seldom = {.next = on_next, .on_end = on_end};
static const struct stream_source often = {.next = on_next, .on_end = on_end, .each_second = true};
static const struct handlers_route route = {.pattern = "/test", .drop = handlers__stream_drop};

static void open_stream(struct fake *fake, struct fake_exchange *f,
                        const struct stream_source *from)
{
    fake_request(fake, f, EXCHANGE_GET, "/test");
    f->x.route = &route;
    handlers__stream_answer(&f->x, from, &source);
}

static void end_stream(struct fake_exchange *f)
{
    if (f->answer.release != NULL)
        f->answer.release(f->answer.context);
    handlers_end(&f->x);
    free(f->answer.body);
}

/* What was said since the last time. */
static const char *said(struct fake_exchange *f, int64_t then)
{
    size_t from = f->answer.bytes;
    assert_int_equal(fake_drain(f), then);
    return (const char *)f->answer.body + from;
}

static void start(struct fake *fake)
{
    memset(&source, 0, sizeof source);
    fake_start(fake);
    fake->services.limits.streams_max = 2;
}

static void test_events(void **state)
{
    struct fake fake;
    struct fake_exchange f;
    (void)state;
    start(&fake);
    open_stream(&fake, &f, &seldom);
    assert_int_equal(f.answer.status, 200);
    assert_string_equal(fake_field(&f, "Content-Type"), "text/event-stream");
    assert_string_equal(fake_field(&f, "Cache-Control"), "no-store");
    assert_string_equal(said(&f, EXCHANGE_STREAM_DRY), "retry: 3000\n\n");

    source.news = "data: 1\n\n";
    handlers__stream_wake(&f.x);
    assert_int_equal(f.mores, 1);
    assert_string_equal(said(&f, EXCHANGE_STREAM_DRY), "data: 1\n\n");
    assert_string_equal(said(&f, EXCHANGE_STREAM_DRY), "");

    /* A client that closed its sending side gets a word, once, by which it is found or not. */
    f.x.half_closed = true;
    assert_string_equal(said(&f, EXCHANGE_STREAM_DRY), ":\n\n");
    assert_string_equal(said(&f, EXCHANGE_STREAM_DRY), "");

    /* The last words are said before the end. */
    source.news = "data: last\n\n";
    source.is_over = true;
    assert_string_equal(said(&f, EXCHANGE_STREAM_END), "data: last\n\n");
    assert_int_equal(source.ended, 0);
    end_stream(&f);
    assert_int_equal(source.ended, 1);
    fake_stop(&fake);
}

/* What is longer than a piece goes out in several, whatever is news in between. */
static void test_long(void **state)
{
    static char news[3 * FAKE_PIECE];
    struct fake fake;
    struct fake_exchange f;
    (void)state;
    start(&fake);
    open_stream(&fake, &f, &seldom);
    said(&f, EXCHANGE_STREAM_DRY);
    memset(news, 'n', sizeof news - 1);
    source.news = news;
    assert_string_equal(said(&f, EXCHANGE_STREAM_DRY), news);
    end_stream(&f);
    fake_stop(&fake);
}

/* By the clock: every second, where the source wants that, and a comment after 15 s of silence. */
static void test_ticks(void **state)
{
    struct fake fake;
    struct fake_exchange f, g;
    (void)state;
    start(&fake);
    uint64_t now_ns = clock_now_ns();
    open_stream(&fake, &f, &seldom);
    open_stream(&fake, &g, &often);
    said(&f, EXCHANGE_STREAM_DRY);
    said(&g, EXCHANGE_STREAM_DRY);
    for (uint64_t at_ms = 0; at_ms < 14000; at_ms += 100)
        handlers_tick(fake.handlers, &fake.mailbox, now_ns + at_ms * CLOCK_MS);
    assert_int_equal(f.mores, 0);
    assert_int_equal(g.mores, 14);
    for (uint64_t at_ms = 14000; at_ms < 17000; at_ms += 100)
        handlers_tick(fake.handlers, &fake.mailbox, now_ns + at_ms * CLOCK_MS);
    assert_true(f.mores > 0);
    assert_string_equal(said(&f, EXCHANGE_STREAM_DRY), ":\n\n");
    assert_string_equal(said(&f, EXCHANGE_STREAM_DRY), "");
    end_stream(&g);
    end_stream(&f);
    handlers_tick(fake.handlers, &fake.mailbox, now_ns + 20 * CLOCK_S);
    fake_stop(&fake);
}

static void test_limit(void **state)
{
    struct fake fake;
    static struct fake_exchange f[3]; /* large for a frame */
    (void)state;
    start(&fake);
    struct metric_series *gauge = metric_series(fake.services.metrics, METRIC_STREAMS);
    open_stream(&fake, &f[0], &seldom);
    open_stream(&fake, &f[1], &seldom);
    open_stream(&fake, &f[2], &seldom);
    assert_int_equal(metric_value(gauge), 2);
    assert_int_equal(f[2].answer.status, 503);
    assert_non_null(fake_field(&f[2], "Retry-After"));
    assert_int_equal(source.ended, 1);
    end_stream(&f[2]);
    end_stream(&f[0]);
    open_stream(&fake, &f[2], &seldom);
    assert_int_equal(f[2].answer.status, 200);
    end_stream(&f[1]);

    atomic_store(&fake.services.draining, true);
    open_stream(&fake, &f[1], &seldom);
    assert_int_equal(f[1].answer.status, 503);
    assert_true(f[1].answer.close);
    end_stream(&f[1]);
    end_stream(&f[2]);
    assert_int_equal(metric_value(gauge), 0);
    assert_int_equal(source.ended, 5);
    fake_stop(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
