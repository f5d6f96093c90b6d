/* tests/unit/proto/test_coding.c: Content-Encoding, Accept-Encoding, compressed answers. */
#include "bench.h"

#include "proto/coding.h"

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        enum proto_coding coding;
        enum error code;
    } rows[] = {
        {NULL, PROTO_CODING_IDENTITY, ERROR_NONE},
        {"", PROTO_CODING_IDENTITY, ERROR_NONE},
        {"identity", PROTO_CODING_IDENTITY, ERROR_NONE},
        {"gzip", PROTO_CODING_GZIP, ERROR_NONE},
        {" GZip\t", PROTO_CODING_GZIP, ERROR_NONE},
        {"x-gzip", PROTO_CODING_GZIP, ERROR_NONE},
        {"deflate", PROTO_CODING_DEFLATE, ERROR_NONE},
        {"gzip, gzip", PROTO_CODING_IDENTITY, ERROR_UNSUPPORTED_MEDIA},
        {"gzip,identity", PROTO_CODING_IDENTITY, ERROR_UNSUPPORTED_MEDIA},
        {"br", PROTO_CODING_IDENTITY, ERROR_UNSUPPORTED_MEDIA},
        {"zstd", PROTO_CODING_IDENTITY, ERROR_UNSUPPORTED_MEDIA},
        {"gzipp", PROTO_CODING_IDENTITY, ERROR_UNSUPPORTED_MEDIA},
        {"gzip;q=1", PROTO_CODING_IDENTITY, ERROR_UNSUPPORTED_MEDIA},
        {"gz\r\nX: y", PROTO_CODING_IDENTITY, ERROR_UNSUPPORTED_MEDIA},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct failure failure = {0};
        enum proto_coding coding;
        enum error error = proto_coding_parse(rows[i].header, &coding, &failure);
        prototest_expect(rows[i].header != NULL ? rows[i].header : "NULL", error, rows[i].code,
                         &failure, "send gzip, deflate or none");
        assert_int_equal(coding, rows[i].coding);
    }
    assert_string_equal(proto_coding_name(PROTO_CODING_GZIP), "gzip");
    assert_string_equal(proto_coding_name(PROTO_CODING_DEFLATE), "deflate");
    assert_string_equal(proto_coding_name(PROTO_CODING_IDENTITY), "identity");
}

static void test_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        enum proto_coding coding;
    } rows[] = {
        {NULL, PROTO_CODING_IDENTITY},
        {"", PROTO_CODING_IDENTITY},
        {"gzip", PROTO_CODING_GZIP},
        {"x-gzip", PROTO_CODING_GZIP},
        {"deflate", PROTO_CODING_DEFLATE},
        {"deflate, gzip", PROTO_CODING_GZIP},
        {"gzip, deflate, br, zstd", PROTO_CODING_GZIP},
        {"deflate;q=1.0,gzip;q=0.5", PROTO_CODING_DEFLATE},
        {"gzip ; q=0.5 , deflate ; Q=0.501", PROTO_CODING_DEFLATE},
        {"gzip;q=0", PROTO_CODING_IDENTITY},
        {"gzip;q=0.000, deflate;q=0.001", PROTO_CODING_DEFLATE},
        {"gzip;q=0.5, identity", PROTO_CODING_IDENTITY},
        {"gzip, identity;q=0", PROTO_CODING_GZIP},
        {"identity;q=0.5, gzip;q=0.5", PROTO_CODING_GZIP},
        {"*", PROTO_CODING_IDENTITY},
        {"*;q=0", PROTO_CODING_IDENTITY},
        {"identity;q=0, *", PROTO_CODING_GZIP},
        {"gzip;q=0, identity;q=0, *", PROTO_CODING_IDENTITY},
        {"br", PROTO_CODING_IDENTITY},
        {",, gzip,,", PROTO_CODING_GZIP},
        {"gzip;q=2", PROTO_CODING_IDENTITY},
        {"gzip;q=1.001", PROTO_CODING_IDENTITY},
        {"gzip;q=0.1234", PROTO_CODING_IDENTITY},
        {"gzip;q=", PROTO_CODING_IDENTITY},
        {"gzip;q", PROTO_CODING_IDENTITY},
        {"gzip;level=9", PROTO_CODING_IDENTITY},
        {"gzip deflate", PROTO_CODING_IDENTITY},
        {"gzip;q=0.5;q=1", PROTO_CODING_IDENTITY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (proto_coding_accepted(rows[i].header) != rows[i].coding)
            fail_msg("%s", rows[i].header);
    }
}

/* Three segments, compressed and inflated again. */
static void test_deflate(void **state)
{
    (void)state;
    static const enum proto_coding codings[] = {PROTO_CODING_GZIP, PROTO_CODING_DEFLATE};
    static unsigned char random[200000], whole[400002];
    uint32_t seed = 1;
    for (size_t i = 0; i < sizeof random; i++) {
        seed = seed * 1664525 + 1013904223;
        random[i] = (unsigned char)(seed >> 24);
    }
    memcpy(whole, "{ ", 2);
    memcpy(whole + 2, random, sizeof random);
    for (int level = 1; level <= 9; level += 4) {
        for (int c = 0; c < 4; c++) {
            enum proto_coding coding = codings[c % 2];
            struct prototest_space space;
            struct failure failure = {0};
            struct proto_answer answer = {.segment_count = 3,
                                          .segments = {{whole, 2},
                                                       {random, sizeof random},
                                                       {whole + 2 + sizeof random, 200000}},
                                          .total_bytes = 400002,
                                          .json_bytes = 77};
            if (c >= 2) { /* the same in one piece */
                answer.segment_count = 1;
                answer.segments[0] = (struct iovec){whole, sizeof whole};
            }
            prototest_space_init(&space, 1 << 23);
            enum error error = proto_deflate(coding, level, &space.space, &answer, &failure);
            prototest_expect("deflate", error, ERROR_NONE, &failure, NULL);
            assert_int_equal(answer.segment_count, 1);
            assert_int_equal(answer.json_bytes, 77);
            assert_in_range(answer.total_bytes, 190000, 210000);
            unsigned char *inflated;
            int64_t bytes;
            error = proto_inflate(coding, answer.segments[0].iov_base, answer.total_bytes,
                                  PROTO_FORMAT_JSON, -1, 1 << 20, &space.space, &inflated, &bytes,
                                  &failure);
            prototest_expect("inflate", error, ERROR_NONE, &failure, NULL);
            assert_int_equal(bytes, sizeof whole);
            assert_memory_equal(inflated, whole, sizeof whole);
            prototest_space_free(&space);
        }
    }
}

/* What does not compress fits the bound, down to nothing at all. */
static void test_bound(void **state)
{
    (void)state;
    unsigned char noise[600];
    uint32_t seed = 7;
    for (size_t i = 0; i < sizeof noise; i++) {
        seed = seed * 1664525 + 1013904223;
        noise[i] = (unsigned char)(seed >> 24);
    }
    for (int length = 0; length <= 600; length += 25) {
        struct prototest_space space;
        struct failure failure = {0};
        struct proto_answer answer = {
            .segment_count = 1, .segments = {{noise, (size_t)length}}, .total_bytes = length};
        prototest_space_init(&space, proto_deflate_bound(length));
        enum error error = proto_deflate(PROTO_CODING_GZIP, 1, &space.space, &answer, &failure);
        prototest_expect("bound", error, ERROR_NONE, &failure, NULL);
        prototest_space_free(&space);
    }
    assert_int_equal(proto_deflate_bound(INT64_MAX), INT64_MAX);
}

/* 4 KiB at the beginning and in the middle decide, over all segments. */
static void test_pays(void **state)
{
    (void)state;
    enum {
        PIECE = 64 << 10
    };
    static unsigned char noise[PIECE], zeros[PIECE];
    uint32_t seed = 7;
    for (size_t i = 0; i < sizeof noise; i++) {
        seed = seed * 1664525 + 1013904223;
        noise[i] = (unsigned char)(seed >> 24);
    }
    const struct {
        const unsigned char *first, *second;
        size_t first_bytes;
        bool pays;
    } rows[] = {
        {zeros, noise, PIECE, true},      {noise, zeros, PIECE, true},
        {noise, noise, PIECE, false},     {noise, zeros, PIECE / 2, true},
        {zeros, noise, PIECE / 64, true}, {zeros, noise, PIECE / 128, false},
        {noise, noise, 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct prototest_space space;
        struct proto_answer answer = {
            .segment_count = 2,
            .segments = {{(void *)(uintptr_t)rows[i].first, rows[i].first_bytes},
                         {(void *)(uintptr_t)rows[i].second, PIECE}},
            .total_bytes = (int64_t)rows[i].first_bytes + PIECE};
        prototest_space_init(&space, proto_deflate_bound(PIECE));
        assert_int_equal(proto_deflate_pays(1, &space.space, &answer), rows[i].pays);
        prototest_space_free(&space);
        prototest_space_init(&space, 8);
        assert_false(proto_deflate_pays(1, &space.space, &answer));
        prototest_space_free(&space);
    }
}

static void test_no_room(void **state)
{
    (void)state;
    struct prototest_space space;
    struct failure failure = {0};
    struct proto_answer answer = {0};
    prototest_space_init(&space, 8);
    enum error error = proto_deflate(PROTO_CODING_GZIP, 1, &space.space, &answer, &failure);
    prototest_expect("no room", error, ERROR_FULL, &failure, "no room");
    prototest_space_free(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),   cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_deflate), cmocka_unit_test(test_bound),
        cmocka_unit_test(test_pays),    cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
