/* tests/fuzz/fuzz_v2.c: requests of the Open Inference Protocol, decoded and answered.
 *
 * The first byte chooses the method and how the body is aligned, the next two the length of the
 * JSON: 0xffff stands for no header field, 0 for a raw request. The rest is the body.
 */
#include "tests/fuzz/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proto_request request;
    struct fuzz_space space;
    struct failure failure = {0};
    if (size < 3)
        return 0;
    int64_t json_bytes = data[1] | data[2] << 8;
    if (json_bytes == 0xffff)
        json_bytes = -1;
    bool raw = json_bytes == 0;
    struct fuzz_body body = fuzz_body(data + 3, size - 3, data[0] >> 4);
    fuzz_space_init(&space);
    proto_request_init(&request, raw ? PROTO_FORMAT_RAW : PROTO_FORMAT_V2, fuzz_method(data[0]));
    (void)proto_request_is_long(request.format, body.bytes, body.length, json_bytes);
    enum error error =
        raw ? proto_raw_decode(body.bytes, body.length, &space.space, &request, &failure)
            : proto_v2_decode(body.bytes, body.length, json_bytes, &space.space, &request,
                              &failure);
    FUZZ_CHECK(error == ERROR_NONE || failure.code == error);
    if (error == ERROR_NONE)
        fuzz_answer(&request);
    fuzz_space_free(&space);
    fuzz_body_free(&body);
    return 0;
}
