/* tests/fuzz/codec.h: what the fuzz targets of proto/ share: a space with a small budget,
 * descriptors beyond the registry's, and the way back from a decoded request to an encoded answer.
 */
#ifndef TESTS_FUZZ_CODEC_H
#define TESTS_FUZZ_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "proto/proto.h"

#define FUZZ_BUDGET_BYTES (4 << 20)

struct fuzz_space {
    struct proto_space space; /* first: take() gets its address */
    int64_t taken;
    void *blocks[64];
    int count;
};
void fuzz_space_init(struct fuzz_space *space);
void fuzz_space_free(struct fuzz_space *space);

/* A method by a number from the input: one of the registry, one with several inputs, one with
 * options of each kind. */
const struct method *fuzz_method(unsigned number);

/* A copy of the body in memory of just that size, misaligned by `shift`, since decoders may write
 * to it. */
struct fuzz_body {
    unsigned char *block, *bytes;
    int64_t length;
};
struct fuzz_body fuzz_body(const uint8_t *data, size_t size, unsigned shift);
void fuzz_body_free(struct fuzz_body *body);

/* Reads every number of a decoded request, then encodes poisoned outputs in every form that its
 * format has. Ends the process when a promise of proto.h is broken. */
void fuzz_answer(struct proto_request *request);

#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            __builtin_trap();                                                                      \
    } while (0)

#endif
