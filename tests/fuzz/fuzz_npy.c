/* tests/fuzz/fuzz_npy.c: .npy bodies, decoded and answered.
 *
 * The first byte chooses the method and how the body is aligned; the rest is the body.
 */
#include "tests/fuzz/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proto_request request;
    struct fuzz_space space;
    struct failure failure = {0};
    if (size == 0)
        return 0;
    struct fuzz_body body = fuzz_body(data + 1, size - 1, data[0] >> 4);
    fuzz_space_init(&space);
    (void)proto_request_is_long(PROTO_FORMAT_NPY, body.bytes, body.length, -1);
    proto_request_init(&request, PROTO_FORMAT_NPY, fuzz_method(data[0]));
    enum error error = proto_npy_decode(body.bytes, body.length, &space.space, &request, &failure);
    FUZZ_CHECK(error == ERROR_NONE || failure.code == error);
    if (error == ERROR_NONE)
        fuzz_answer(&request);
    fuzz_space_free(&space);
    fuzz_body_free(&body);
    return 0;
}
