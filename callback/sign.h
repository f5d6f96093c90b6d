/* callback/sign.h: by which a receiver knows who sends a callback. Threads: pure functions. */
#ifndef CALLBACK_SIGN_H
#define CALLBACK_SIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"

#define CALLBACK_SECRET_MIN 16 /* bytes of a secret */
#define CALLBACK_SECRET_MAX 1024
#define CALLBACK_SIGNATURE_BYTES (sizeof "sha256=" - 1 + DIGEST_HEX_BYTES)

struct callback_secret {
    const void *data;
    size_t bytes;
};

/* "sha256=" and the HMAC-SHA-256 of `timestamp.body` in hexadecimal digits; timestamp: seconds of
 * Unix time in decimal digits. false: there is no memory, or the library has failed. */
ERROR_MUST_CHECK bool callback_sign(const struct callback_secret *secret, int64_t timestamp_s,
                                    const char *body, size_t body_bytes,
                                    char signature[CALLBACK_SIGNATURE_BYTES]);

#endif
