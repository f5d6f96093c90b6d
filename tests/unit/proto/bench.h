/* tests/unit/proto/bench.h: what the tests of codecs share: a space with a budget, descriptors that
 * no registered method has, and bodies put together from parts.
 */
#ifndef TESTS_UNIT_PROTO_BENCH_H
#define TESTS_UNIT_PROTO_BENCH_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/proto.h"

/* Gives 64-byte aligned memory, all of it back at once. */
struct prototest_space {
    struct proto_space space; /* first: take() gets its address */
    int64_t budget, taken;
    void *blocks[256];
    int count;
};
void prototest_space_init(struct prototest_space *space, int64_t budget);
void prototest_space_free(struct prototest_space *space);

/* DL [n-1], D [n], DU [n-1]; outputs INVERSE, DIAGONAL, INFO, RCOND, METHOD. */
extern const struct method prototest_chain;
/* X, Y [n,m] and an optional A0 [n]; an option of each kind. */
extern const struct method prototest_update;

/* A body on the heap, `shift` bytes off a 64-byte boundary, so that reads past its end are seen.
 * Freed by prototest_body_free. */
struct prototest_body {
    unsigned char *block, *bytes;
    int64_t length;
};
struct prototest_body prototest_body(const void *bytes, int64_t length, int shift);
void prototest_body_free(struct prototest_body *body);

/* All segments of an answer in one string, NUL-terminated; free() it. */
char *prototest_join(const struct proto_answer *answer);

/* The code of a decode, and that the words of a failure hold `fragment`. */
void prototest_expect(const char *row, enum error got, enum error wanted,
                      const struct failure *failure, const char *fragment);

/* A version 1.0 NPY file with this header dict, and count doubles 0, 1, 2 ... behind it. */
int64_t prototest_npy(unsigned char *out, const char *dict, int64_t data_bytes, bool f32);

#endif
