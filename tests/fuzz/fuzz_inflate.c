/* tests/fuzz/fuzz_inflate.c: compressed bodies of every format.
 *
 * The first byte chooses coding, format and whether a header field gives the length of the JSON,
 * which the next two bytes hold; bit 7 has the rest compressed first, so that the mutator reaches
 * what lies behind the checksums. What inflates is deflated again and must come back the same.
 */
#include "tests/fuzz/codec.h"

#include <string.h>

#include "proto/coding.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(enum proto_coding coding, unsigned char *inflated, int64_t bytes)
{
    struct fuzz_space space;
    struct failure failure;
    struct proto_answer answer = {
        .segments = {{inflated, (size_t)bytes}}, .segment_count = 1, .total_bytes = bytes};
    unsigned char *again;
    int64_t again_bytes;
    fuzz_space_init(&space);
    FUZZ_CHECK(proto_deflate(coding, 1, &space.space, &answer, &failure) == ERROR_NONE);
    if (proto_inflate(coding, answer.segments[0].iov_base, answer.total_bytes, PROTO_FORMAT_RAW, 0,
                      FUZZ_BUDGET_BYTES, &space.space, &again, &again_bytes,
                      &failure) == ERROR_NONE)
        FUZZ_CHECK(again_bytes == bytes && memcmp(again, inflated, (size_t)bytes) == 0);
    else
        FUZZ_CHECK(failure.code == ERROR_FULL);
    fuzz_space_free(&space);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_space space, packed;
    struct failure failure = {0};
    unsigned char *inflated = NULL;
    int64_t inflated_bytes = 0;
    if (size < 3)
        return 0;
    enum proto_coding coding = (data[0] & 1) != 0 ? PROTO_CODING_GZIP : PROTO_CODING_DEFLATE;
    enum proto_format format = (enum proto_format)((data[0] >> 1) % (PROTO_FORMAT_UNKNOWN + 1));
    int64_t json_bytes = (data[0] & 0x40) != 0 ? data[1] | data[2] << 8 : -1;
    struct fuzz_body body = fuzz_body(data + 3, size - 3, 0);
    struct proto_answer answer = {.segments = {{body.bytes, (size_t)body.length}},
                                  .segment_count = 1,
                                  .total_bytes = body.length};
    fuzz_space_init(&space);
    fuzz_space_init(&packed);
    if ((data[0] & 0x80) != 0)
        FUZZ_CHECK(proto_deflate(coding, 1, &packed.space, &answer, &failure) == ERROR_NONE);
    enum error error =
        proto_inflate(coding, answer.segments[0].iov_base, answer.total_bytes, format, json_bytes,
                      1 << 20, &space.space, &inflated, &inflated_bytes, &failure);
    FUZZ_CHECK(error == ERROR_NONE || failure.code == error);
    if (error == ERROR_NONE) {
        FUZZ_CHECK(inflated_bytes <= 1 << 20);
        check_same(coding, inflated, inflated_bytes);
    }
    fuzz_space_free(&packed);
    fuzz_space_free(&space);
    fuzz_body_free(&body);
    return 0;
}
