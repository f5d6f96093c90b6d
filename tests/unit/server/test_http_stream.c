/* tests/unit/server/test_http_stream.c: answers that are a part of a file, or of unknown length. */
#include "tests/unit/server/http_bed.h"

#include <sys/stat.h>

/* ---- Files ---- */

#define FILE_BYTES (4 << 20)

/* A file of 'A' behind three bytes of 'x'; nameless. */
static int make_file(void)
{
    char name[] = "/tmp/invertd-stream-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(write(fd, "xxx", 3), 3);
    assert_int_equal(write(fd, answer_body, FILE_BYTES), FILE_BYTES);
    return fd;
}

/* The door has closed it; its number may be another's by now. */
static bool is_closed(const struct exchange_file *file, ino_t inode)
{
    struct stat status;
    return fstat(file->fd, &status) != 0 || status.st_ino != inode;
}

static void test_file(void **state)
{
    static const struct {
        const char *request, *length;
        int64_t offset, bytes, heard; /* heard: of the body */
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "5", 3, 5, 5},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "4194304", 3, FILE_BYTES,
         FILE_BYTES},
        {"GET / HTTP/1.0\r\n\r\n", "100000", 4000000, 100000, 100000},
        {"HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "100000", 3, 100000, 0},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "0", 3, 0, 0},
        /* The file is shorter than was said: no one may take that for the whole. */
        {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "200", FILE_BYTES + 3 - 100, 200, 100},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        set_up(generous);
        struct exchange_file file = {make_file(), rows[i].offset, rows[i].bytes};
        struct stat status;
        assert_int_equal(fstat(file.fd, &status), 0);
        ino_t inode = status.st_ino;
        fake.file = &file;
        int client = call();
        say(client, rows[i].request);
        const char *heard = hear(client, "<end>");
        char length[64];
        snprintf(length, sizeof length, "\r\nContent-Length: %s\r\n", rows[i].length);
        assert_non_null(strstr(heard, length));
        const char *body = strstr(heard, "\r\n\r\n");
        assert_non_null(body);
        assert_int_equal(strspn(body + 4, "A"), rows[i].heard);
        assert_string_equal(body + 4 + rows[i].heard, "<end>");
        assert_int_equal(fake.released, 1);
        assert_true(is_closed(&file, inode));
        close(client);
        tear_down();
    }
}

/* ---- Streams ---- */

static struct {
    const char *pieces[8]; /* "": dry, until the test sets it; NULL: the end */
    int at, reads;
    bool endless; /* says the first piece, and as much as fits, for ever */
    bool probes;  /* says something once its client has closed the sending side */
} source;

static int64_t on_read(void *context, void *buffer, size_t max)
{
    (void)context;
    source.reads++;
    const char *piece = source.pieces[source.at];
    if (source.probes && fake.waiting != NULL && fake.waiting->half_closed)
        piece = ":\n";
    if (piece == NULL)
        return EXCHANGE_STREAM_END;
    if (piece[0] == '\0')
        return EXCHANGE_STREAM_DRY;
    size_t length = strlen(piece);
    assert_true(length <= max);
    memcpy(buffer, piece, length);
    if (source.endless)
        memset((char *)buffer + length, '.', max - length);
    source.at += !source.endless;
    return (int64_t)(source.endless ? max : length);
}

static const struct exchange_stream stream = {on_read};

/* A door whose every answer is a stream that begins with "one"; and, unless it is endless, is dry
 * then. */
static void set_up_stream(struct http_limits limits, bool endless)
{
    set_up(limits);
    fake.manner = LATER;
    fake.stream = &stream;
    memset(&source, 0, sizeof source);
    source.pieces[0] = "one";
    source.pieces[1] = "";
    source.endless = endless;
}

/* A client whose stream has begun; *x: its exchange. */
static int listen_to(const char *request, struct exchange **x)
{
    int client = call(), run = fake.run;
    say(client, request);
    while (fake.run == run)
        turn();
    *x = fake.waiting;
    answer(*x, 200);
    return client;
}

static void refill(struct exchange *x, const char *first, const char *second)
{
    source.at = 0;
    source.pieces[0] = first;
    source.pieces[1] = second;
    exchange_more(x);
}

#define GET_1_1 "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

static void test_stream(void **state)
{
    struct http_limits limits = generous;
    struct exchange *x;
    (void)state;
    limits.send_timeout_ns = 30 * MS;
    set_up_stream(limits, false);
    int client = listen_to(GET_1_1, &x);
    const char *heard = hear(client, "one");
    assert_non_null(strstr(heard, "Transfer-Encoding: chunked\r\n"));
    assert_non_null(strstr(heard, "\r\n3\r\none"));
    for (int i = 0; i < 5; i++)
        turn();

    /* Dry: it costs nothing, and no deadline ends it. */
    int reads = source.reads;
    uint64_t until_ns = clock_now_ns() + 100 * CLOCK_MS;
    while (clock_now_ns() < until_ns)
        turn();
    assert_int_equal(source.reads, reads);
    assert_int_equal(http_busy(bed.http), 0);
    assert_int_equal(fake.ended, 0);

    /* Wakes, and is dry again; a wake without more changes nothing. */
    refill(x, "two", "");
    assert_true(http_stirred(bed.http));
    assert_non_null(strstr(hear(client, "two"), "3\r\ntwo\r\n"));
    exchange_more(x);
    exchange_more(x);
    for (int i = 0; i < 5; i++)
        turn();
    assert_int_equal(fake.ended, 0);

    /* Its end leaves the connection to the next request. */
    refill(x, "three", NULL);
    assert_non_null(strstr(hear(client, "0\r\n\r\n"), "5\r\nthree\r\n0\r\n\r\n"));
    assert_int_equal(fake.released, 1);
    assert_int_equal(counted(METRIC_BYTES, "out", NULL), 11);
    fake.manner = AT_RUN;
    fake.stream = NULL;
    say(client, GET_1_1);
    assert_non_null(strstr(hear(client, "AAAAA"), "200 OK"));
    close(client);
    tear_down();
}

static void test_stream_1_0_and_head(void **state)
{
    struct exchange *x;
    (void)state;
    set_up_stream(generous, false);
    int client = listen_to("GET / HTTP/1.0\r\n\r\n", &x);
    const char *heard = hear(client, "one");
    assert_null(strstr(heard, "Transfer-Encoding"));
    assert_non_null(strstr(heard, "\r\n\r\none"));
    refill(x, "two", NULL);
    assert_string_equal(hear(client, "<end>"), "two<end>");
    close(client);

    client = listen_to("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", &x);
    heard = hear(client, "<end>");
    assert_string_equal(strstr(heard, "\r\n\r\n"), "\r\n\r\n<end>");
    assert_int_equal(fake.released, 2);
    close(client);
    tear_down();
}

/* Clients that leave: by a reset, seen at once; by closing, seen when something is sent; and one
 * that has only closed its sending side, and listens on. */
static void test_stream_left(void **state)
{
    static const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    struct exchange *x;
    (void)state;
    set_up_stream(generous, false);
    source.probes = true;
    int client = listen_to(GET_1_1, &x);
    hear(client, "one");
    setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(client);
    for (int i = 0; i < 500 && fake.ended < 1; i++)
        turn();
    assert_int_equal(fake.ended, 1);

    source.at = 0;
    client = listen_to(GET_1_1, &x);
    fake.waiting = x;
    hear(client, "one");
    close(client);
    for (int i = 0; i < 500 && fake.ended < 2; i++)
        turn();
    assert_int_equal(fake.ended, 2);

    source.at = 0;
    source.probes = false;
    client = listen_to(GET_1_1, &x);
    hear(client, "one");
    shutdown(client, SHUT_WR);
    for (int i = 0; i < 50; i++)
        turn();
    assert_int_equal(fake.ended, 2);
    assert_true(x->half_closed);
    refill(x, "two", NULL);
    assert_non_null(strstr(hear(client, "<end>"), "two\r\n0\r\n\r\n<end>"));
    close(client);
    assert_int_equal(fake.ended, 3);
    tear_down();
}

/* A client that takes nothing of what there is. */
static void test_stream_not_taken(void **state)
{
    struct http_limits limits = generous;
    struct exchange *x;
    (void)state;
    limits.send_timeout_ns = 100 * MS;
    set_up_stream(limits, true);
    int client = listen_to(GET_1_1, &x);
    uint64_t until_ns = clock_now_ns() + 5 * CLOCK_S;
    while (fake.ended == 0 && clock_now_ns() < until_ns)
        turn();
    assert_int_equal(fake.ended, 1);
    assert_int_equal(fake.released, 1);
    close(client);
    tear_down();
}

/* Drain ends streams, dry ones and others, as their sources would. */
static void test_stream_drain(void **state)
{
    (void)state;
    for (int endless = 0; endless < 2; endless++) {
        struct exchange *x;
        set_up_stream(generous, endless);
        int client = listen_to(GET_1_1, &x);
        hear(client, "one");
        http_drain(bed.http);
        const char *heard = hear(client, "<end>");
        size_t length = strlen(heard);
        assert_true(length >= 10);
        assert_string_equal(heard + length - 10, "0\r\n\r\n<end>");
        assert_int_equal(fake.released, 1);
        close(client);
        tear_down();
    }
}

/* Past the drain, and what has not ended is cut: here one that is not read from. */
static void test_stream_quiesce(void **state)
{
    struct exchange *x;
    (void)state;
    set_up_stream(generous, true);
    int client = listen_to(GET_1_1, &x);
    for (int i = 0; i < 300; i++)
        turn();
    http_drain(bed.http);
    http_quiesce(bed.http, 50 * CLOCK_MS);
    uint64_t until_ns = clock_now_ns() + CLOCK_S;
    while (fake.ended == 0 && clock_now_ns() < until_ns)
        turn();
    assert_int_equal(fake.ended, 1);
    close(client);
    tear_down();
}

/* Streams end with the door. */
static void test_stream_destroy(void **state)
{
    (void)state;
    for (int endless = 0; endless < 2; endless++) {
        struct exchange *x, *y;
        set_up_stream(generous, endless);
        int first = listen_to(GET_1_1, &x), second = listen_to(GET_1_1, &y);
        hear(first, "one");
        tear_down();
        assert_int_equal(fake.released, 2);
        close(first);
        close(second);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_stream_1_0_and_head),
        cmocka_unit_test(test_stream_left),
        cmocka_unit_test(test_stream_not_taken),
        cmocka_unit_test(test_stream_drain),
        cmocka_unit_test(test_stream_quiesce),
        cmocka_unit_test(test_stream_destroy),
    };
    return cmocka_run_group_tests(tests, make_answer_body, free_answer_body);
}
