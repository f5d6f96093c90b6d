/* tests/unit/proto/test_inflate.c: compressed bodies, bounded by what they declare. */
#include "bench.h"

#include "proto/coding.h"
#include "proto/flate_private.h"

#define SQUARE "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"
#define LARGE "{'descr': '<f8', 'fortran_order': False, 'shape': (300, 300), }"
#define V2(n, bytes)                                                                               \
    "{\"inputs\":[{\"name\":\"A\",\"shape\":[1," #n "," #n "],\"datatype\":\"FP64\","              \
    "\"parameters\":{\"binary_data_size\":" #bytes "}}]}"

/* A whole body before compression. Zeros follow the text or the header. */
struct row {
    const char *name, *text;
    enum proto_format format;
    bool is_npy;
    int zeros;
    int64_t json_bytes; /* of the header field; 0: as long as the text */
    int64_t limit;
    int cut, more; /* bytes to take off, or zeros to put, at the end of the compressed body */
    int spoil;     /* 1 + the place of a compressed byte to change; -1: one of the checksum */
    enum error code;
    const char *fragment;
    int64_t max; /* bytes that may be taken from the space */
};

#define MIB (1 << 20)

static const struct row rows[] = {
    {"text", "{\"matrix\":[[1]]}", PROTO_FORMAT_JSON, false, 0, -1, MIB, 0, 0, 0, ERROR_NONE, NULL,
     1 << 17},
    {"spaces before text", "  \r\n{}", PROTO_FORMAT_JSON, false, 0, -1, MIB, 0, 0, 0, ERROR_NONE,
     NULL, 1 << 17},
    {"long text", "{", PROTO_FORMAT_JSON, false, 999999, -1, MIB, 0, 0, 0, ERROR_NONE, NULL,
     4 * MIB},
    {"text at the limit", "{", PROTO_FORMAT_JSON, false, MIB - 1, -1, MIB, 0, 0, 0, ERROR_NONE,
     NULL, 4 * MIB},
    {"text past a small limit", "{", PROTO_FORMAT_JSON, false, 32, -1, 32, 0, 0, 0, ERROR_TOO_LARGE,
     "limit of 32 bytes", 4096},
    {"text past the limit", "{", PROTO_FORMAT_JSON, false, MIB, -1, MIB, 0, 0, 0, ERROR_TOO_LARGE,
     "limit of 1048576", 4 * MIB},
    {"bomb of text", "{", PROTO_FORMAT_JSON, false, 30 * MIB, -1, MIB, 0, 0, 0, ERROR_TOO_LARGE,
     "limit of 1048576", 4 * MIB},
    {"bomb of zeros as text", "", PROTO_FORMAT_JSON, false, 30 * MIB, -1, MIB, 0, 0, 0,
     ERROR_MALFORMED, "JSON object", 1024},
    {"v2 text that is none", "[1]", PROTO_FORMAT_V2, false, 30 * MIB, -1, MIB, 0, 0, 0,
     ERROR_MALFORMED, "JSON object", 1024},
    {"no text", "", PROTO_FORMAT_JSON, false, 0, -1, MIB, 0, 0, 0, ERROR_MALFORMED, "JSON object",
     1024},
    {"npy", SQUARE, PROTO_FORMAT_NPY, true, 32, -1, MIB, 0, 0, 0, ERROR_NONE, NULL, 1 << 14},
    {"npy, sniffed", SQUARE, PROTO_FORMAT_UNKNOWN, true, 32, -1, MIB, 0, 0, 0, ERROR_NONE, NULL,
     1 << 14},
    {"npy, large", LARGE, PROTO_FORMAT_NPY, true, 720000, -1, MIB, 0, 0, 0, ERROR_NONE, NULL,
     800000},
    {"npy past the limit", LARGE, PROTO_FORMAT_NPY, true, 720000, -1, 720000, 0, 0, 0,
     ERROR_TOO_LARGE, "limit", 1 << 14},
    {"npy, one byte more", SQUARE, PROTO_FORMAT_NPY, true, 33, -1, MIB, 0, 0, 0, ERROR_MALFORMED,
     "more than its shape", 1 << 14},
    {"bomb behind npy", SQUARE, PROTO_FORMAT_NPY, true, 30 * MIB, -1, MIB, 0, 0, 0, ERROR_MALFORMED,
     "more than its shape", 1 << 14},
    {"large npy, one byte more", LARGE, PROTO_FORMAT_NPY, true, 720001, -1, MIB, 0, 0, 0,
     ERROR_MALFORMED, "more than its shapes", 800000},
    {"npy, one byte less", SQUARE, PROTO_FORMAT_NPY, true, 31, -1, MIB, 0, 0, 0, ERROR_MALFORMED,
     "less than its shapes", 1 << 14},
    {"npy that lies", LARGE, PROTO_FORMAT_NPY, true, 32, -1, MIB, 0, 0, 0, ERROR_MALFORMED,
     "too short for the size", 1 << 14},
    {"npy of integers", "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 2), }",
     PROTO_FORMAT_NPY, true, 32, -1, MIB, 0, 0, 0, ERROR_BAD_DATATYPE, "astype", 1 << 14},
    {"no npy", "()", PROTO_FORMAT_NPY, false, 30 * MIB, -1, MIB, 0, 0, 0, ERROR_MALFORMED,
     "NPY header", 1 << 14},
    {"json for npy", "{}", PROTO_FORMAT_NPY, false, 30 * MIB, -1, MIB, 0, 0, 0, ERROR_MALFORMED,
     "send it as application/json", 1 << 14},
    {"npz grows", "PK\3\4", PROTO_FORMAT_NPZ, false, 500000, -1, MIB, 0, 0, 0, ERROR_NONE, NULL,
     2 * MIB},
    {"npz past the limit", "PK\3\4", PROTO_FORMAT_UNKNOWN, false, 30 * MIB, -1, MIB, 0, 0, 0,
     ERROR_TOO_LARGE, "limit", 4 * MIB},
    {"raw", "", PROTO_FORMAT_RAW, false, 32, 0, MIB, 0, 0, 0, ERROR_NONE, NULL, 1 << 17},
    {"unknown", "matrix=1", PROTO_FORMAT_UNKNOWN, false, 30 * MIB, -1, MIB, 0, 0, 0,
     ERROR_UNSUPPORTED_MEDIA, "neither NPY", 1024},
    {"v2", V2(2, 32), PROTO_FORMAT_V2, false, 32, 0, MIB, 0, 0, 0, ERROR_NONE, NULL, 4096},
    {"v2, large", V2(300, 720000), PROTO_FORMAT_V2, false, 720000, 0, MIB, 0, 0, 0, ERROR_NONE,
     NULL, 730000},
    {"v2, one byte more", V2(2, 32), PROTO_FORMAT_V2, false, 33, 0, MIB, 0, 0, 0, ERROR_MALFORMED,
     "more than its shapes", 4096},
    {"bomb behind v2", V2(2, 32), PROTO_FORMAT_V2, false, 30 * MIB, 0, MIB, 0, 0, 0,
     ERROR_MALFORMED, "more than its shapes", 4096},
    {"v2, one byte less", V2(2, 32), PROTO_FORMAT_V2, false, 31, 0, MIB, 0, 0, 0, ERROR_MALFORMED,
     "less than its shapes", 4096},
    {"v2, size and shape differ", V2(2, 40), PROTO_FORMAT_V2, false, 40, 0, MIB, 0, 0, 0,
     ERROR_MALFORMED, "must be 32", 4096},
    {"v2, JSON longer than all", V2(2, 32), PROTO_FORMAT_V2, false, 32, 2000, MIB, 0, 0, 0,
     ERROR_MALFORMED, "shorter than Inference-Header", 4096},
    {"v2, JSON past the limit", V2(2, 32), PROTO_FORMAT_V2, false, 32, 2 * MIB, MIB, 0, 0, 0,
     ERROR_TOO_LARGE, "limit", 1024},
    {"v2, JSON past belief", V2(2, 32), PROTO_FORMAT_V2, false, 32, MIB - 1, MIB, 0, 0, 0,
     ERROR_MALFORMED, "too short for the size", 1024},
    {"v2, JSON cut short", V2(2, 32), PROTO_FORMAT_V2, false, 32, 80, MIB, 0, 0, 0, ERROR_MALFORMED,
     "malformed at byte 80", 4096},
    {"v2, huge", V2(30000, 7200000000), PROTO_FORMAT_V2, false, 32, 0, MIB, 0, 0, 0,
     ERROR_TOO_LARGE, "limit", 4096},
    {"cut", SQUARE, PROTO_FORMAT_NPY, true, 32, -1, MIB, 1, 0, 0, ERROR_MALFORMED, "cut short",
     1 << 14},
    {"cut to the header", SQUARE, PROTO_FORMAT_NPY, true, 32, -1, MIB, 60, 0, 0, ERROR_MALFORMED,
     "cut short", 1 << 14},
    {"text cut", "{", PROTO_FORMAT_JSON, false, 100000, -1, MIB, 20, 0, 0, ERROR_MALFORMED,
     "cut short", MIB},
    {"garbage behind", SQUARE, PROTO_FORMAT_NPY, true, 32, -1, MIB, 0, 1, 0, ERROR_MALFORMED,
     "followed by something else", 1 << 14},
    {"garbage behind text", "{}", PROTO_FORMAT_JSON, false, 0, -1, MIB, 0, 5, 0, ERROR_MALFORMED,
     "followed by something else", 1 << 17},
    {"no such coding", SQUARE, PROTO_FORMAT_NPY, true, 32, -1, MIB, 0, 0, 1, ERROR_MALFORMED,
     "damaged", 1 << 14},
    {"checksum", SQUARE, PROTO_FORMAT_NPY, true, 32, -1, MIB, 0, 0, -1, ERROR_MALFORMED, "damaged",
     1 << 14},
    {"checksum of text", "{}", PROTO_FORMAT_JSON, false, 0, -1, MIB, 0, 0, -1, ERROR_MALFORMED,
     "damaged", 1 << 17},
};

static int64_t compress(const struct row *row, enum proto__flate_wrap wrap, unsigned char *whole,
                        int64_t *whole_bytes, unsigned char *out, int64_t room)
{
    int64_t length = (int64_t)strlen(row->text);
    memset(whole, 0, (size_t)(length + row->zeros) + 16);
    if (row->is_npy)
        length = prototest_npy(whole, row->text, 0, false);
    else
        memcpy(whole, row->text, (size_t)length);
    *whole_bytes = length + row->zeros;
    unsigned char *at = out;
    struct proto__flate *flate = proto__deflate_open(wrap, 1);
    assert_non_null(flate);
    assert_true(proto__deflate_next(flate, whole, *whole_bytes, true, &at, &room));
    proto__deflate_close(&flate);
    int64_t bytes = at - out;
    if (row->spoil != 0)
        out[row->spoil > 0 ? row->spoil - 1 : bytes - (wrap == PROTO_FLATE_GZIP ? 5 : 1)] ^= 0x55;
    memset(at, 0, 16);
    return bytes - row->cut + row->more;
}

static void check(const struct row *row, bool gzip)
{
    unsigned char *whole = malloc(32 * MIB), *out = malloc(MIB);
    struct prototest_space space;
    struct failure failure = {0};
    int64_t whole_bytes, bytes = -1;
    unsigned char *inflated = NULL;
    assert_non_null(whole);
    assert_non_null(out);
    int64_t length =
        compress(row, gzip ? PROTO_FLATE_GZIP : PROTO_FLATE_ZLIB, whole, &whole_bytes, out, MIB);
    struct prototest_body body = prototest_body(out, length, 0);
    int64_t json_bytes = row->json_bytes != 0 ? row->json_bytes : (int64_t)strlen(row->text);
    prototest_space_init(&space, row->max);
    enum error error = proto_inflate(gzip ? PROTO_CODING_GZIP : PROTO_CODING_DEFLATE, body.bytes,
                                     body.length, row->format, json_bytes, row->limit, &space.space,
                                     &inflated, &bytes, &failure);
    prototest_expect(row->name, error, row->code, &failure, row->fragment);
    if (error == ERROR_NONE) {
        assert_int_equal(bytes, whole_bytes);
        assert_memory_equal(inflated, whole, (size_t)bytes);
        /* What comes behind the head is aligned. */
        if (row->format == PROTO_FORMAT_V2 && json_bytes >= 0)
            assert_int_equal((uintptr_t)(inflated + json_bytes) % 64, 0);
        if (row->is_npy)
            assert_int_equal((uintptr_t)(inflated + 10 + strlen(row->text)) % 64, 0);
    }
    prototest_body_free(&body);
    prototest_space_free(&space);
    free(whole);
    free(out);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check(&rows[i], true);
        check(&rows[i], false);
    }
}

/* deflate means the zlib format: not raw deflate, and not gzip. */
static void test_codings_differ(void **state)
{
    (void)state;
    static const enum proto__flate_wrap wraps[] = {PROTO_FLATE_RAW, PROTO_FLATE_ZLIB,
                                                   PROTO_FLATE_GZIP};
    for (int w = 0; w < 3; w++) {
        for (int gzip = 0; gzip < 2; gzip++) {
            unsigned char whole[512], out[512], *inflated;
            int64_t whole_bytes, bytes;
            struct prototest_space space;
            struct failure failure = {0};
            int64_t length = compress(&rows[0], wraps[w], whole, &whole_bytes, out, sizeof out);
            bool fits = wraps[w] == (gzip ? PROTO_FLATE_GZIP : PROTO_FLATE_ZLIB);
            prototest_space_init(&space, MIB);
            enum error error = proto_inflate(gzip ? PROTO_CODING_GZIP : PROTO_CODING_DEFLATE, out,
                                             length, PROTO_FORMAT_JSON, -1, MIB, &space.space,
                                             &inflated, &bytes, &failure);
            prototest_expect("coding", error, fits ? ERROR_NONE : ERROR_MALFORMED, &failure,
                             "not in the coding");
            prototest_space_free(&space);
        }
    }
}

static void test_no_room(void **state)
{
    (void)state;
    static const char *const which[] = {"long text", "npy, large", "npz grows", "v2, large"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool wanted = false;
        for (size_t w = 0; w < sizeof which / sizeof which[0]; w++)
            wanted = wanted || strcmp(which[w], rows[i].name) == 0;
        for (int64_t budget = 0; wanted && budget < 200; budget += 100) {
            struct row row = rows[i];
            row.max = budget;
            row.code = ERROR_FULL;
            row.fragment = "no room";
            check(&row, true);
        }
    }
}

static int64_t put_member(unsigned char *out, int64_t room, enum proto__flate_wrap wrap,
                          const char *text)
{
    unsigned char *at = out;
    struct proto__flate *flate = proto__deflate_open(wrap, 6);
    assert_non_null(flate);
    assert_true(proto__deflate_next(flate, (const unsigned char *)text, (int64_t)strlen(text), true,
                                    &at, &room));
    proto__deflate_close(&flate);
    return at - out;
}

/* A gzip body may be several members one after the other, which inflate to one text. */
static void test_members(void **state)
{
    (void)state;
    static const struct {
        const char *name, *texts[4], *behind, *whole;
        int cut;
        bool spoil; /* the first member's checksum */
        enum error code;
        const char *fragment;
    } cases[] = {
        {"two", {"{\"a\":", "1}"}, "", "{\"a\":1}", 0, false, ERROR_NONE, NULL},
        {"empty ones", {"", "{}", "", ""}, "", "{}", 0, false, ERROR_NONE, NULL},
        {"cut", {"{\"a\":", "1}"}, "", "", 1, false, ERROR_MALFORMED, "cut short"},
        {"cut in the header", {"{}", ""}, "", "", 15, false, ERROR_MALFORMED, "cut short"},
        {"a header alone", {"{}"}, "\x1f\x8b", "", 0, false, ERROR_MALFORMED, "cut short"},
        {"a broken header",
         {"{}"},
         "\x1f\x8b\x09rubbish",
         "",
         0,
         false,
         ERROR_MALFORMED,
         "damaged"},
        {"garbage", {"{", "}"}, "\x1f", "", 0, false, ERROR_MALFORMED, "not compressed data"},
        {"checksum", {"{", "}"}, "", "", 0, true, ERROR_MALFORMED, "damaged"},
        {"over the limit",
         {"{", "                                                 }"},
         "",
         "",
         0,
         false,
         ERROR_TOO_LARGE,
         "limit of 40"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char out[1024], *inflated = NULL;
        int64_t length = 0, bytes = 0;
        struct prototest_space space;
        struct failure failure = {0};
        for (int m = 0; m < 4 && cases[i].texts[m] != NULL; m++) {
            length += put_member(out + length, (int64_t)sizeof out - length, PROTO_FLATE_GZIP,
                                 cases[i].texts[m]);
            if (m == 0 && cases[i].spoil)
                out[length - 5] ^= 0x55;
        }
        memcpy(out + length, cases[i].behind, strlen(cases[i].behind));
        length += (int64_t)strlen(cases[i].behind) - cases[i].cut;
        struct prototest_body body = prototest_body(out, length, 0);
        prototest_space_init(&space, 1 << 17);
        enum error error =
            proto_inflate(PROTO_CODING_GZIP, body.bytes, body.length, PROTO_FORMAT_JSON, -1, 40,
                          &space.space, &inflated, &bytes, &failure);
        prototest_expect(cases[i].name, error, cases[i].code, &failure, cases[i].fragment);
        if (error == ERROR_NONE) {
            assert_int_equal(bytes, strlen(cases[i].whole));
            assert_memory_equal(inflated, cases[i].whole, (size_t)bytes);
        }
        prototest_body_free(&body);
        prototest_space_free(&space);
    }
}

/* The zlib format knows no members. */
static void test_one_zlib_stream(void **state)
{
    (void)state;
    unsigned char out[128], *inflated;
    int64_t bytes;
    struct prototest_space space;
    struct failure failure = {0};
    int64_t length = put_member(out, 64, PROTO_FLATE_ZLIB, "{}");
    length += put_member(out + length, 64, PROTO_FLATE_GZIP, "");
    prototest_space_init(&space, 1 << 17);
    enum error error = proto_inflate(PROTO_CODING_DEFLATE, out, length, PROTO_FORMAT_JSON, -1, MIB,
                                     &space.space, &inflated, &bytes, &failure);
    prototest_expect("zlib", error, ERROR_MALFORMED, &failure, "followed by something else");
    prototest_space_free(&space);
}

/* Numbers as text deflate to about half: they take one room. */
static void test_room_of_honest_text(void **state)
{
    (void)state;
    static char text[400001];
    static unsigned char out[400000];
    unsigned char *inflated = NULL;
    uint32_t random = 1;
    int64_t bytes = 0, most = sizeof text - 1;
    struct prototest_space space;
    struct failure failure = {0};
    text[0] = '{';
    for (int64_t i = 1; i < most; i++) {
        random = random * 1664525 + 1013904223;
        text[i] = (char)('0' + (random >> 16) % 10);
    }
    int64_t length = put_member(out, sizeof out, PROTO_FLATE_GZIP, text);
    prototest_space_init(&space, 64 * MIB);
    enum error error = proto_inflate(PROTO_CODING_GZIP, out, length, PROTO_FORMAT_JSON, -1, MIB,
                                     &space.space, &inflated, &bytes, &failure);
    prototest_expect("honest", error, ERROR_NONE, &failure, NULL);
    assert_int_equal(bytes, most);
    assert_memory_equal(inflated, text, (size_t)most);
    if (space.taken > 4 * length + 64)
        fail_msg("%lld bytes for %lld, %lld compressed", (long long)space.taken, (long long)most,
                 (long long)length);
    prototest_space_free(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_codings_differ),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_one_zlib_stream),
        cmocka_unit_test(test_room_of_honest_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
