/* base/digest.h: SHA-256, alone and with a key. The only door to GnuTLS's hashes.
 *
 * Threads: pure functions; a stream belongs to one thread at a time. Cost: no allocation of ours;
 * 0.1 us for a hundred bytes where the processor has instructions for it.
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define DIGEST_BYTES 32
#define DIGEST_HEX_BYTES 65 /* as text, its NUL among them */

/* false: the library has failed, and digest is undefined. */
ERROR_MUST_CHECK bool digest_sha256(const void *data, size_t bytes,
                                    unsigned char digest[DIGEST_BYTES]);
/* HMAC-SHA-256 (RFC 2104) of data under a key. false: as above. */
ERROR_MUST_CHECK bool digest_hmac(const void *key, size_t key_bytes, const void *data, size_t bytes,
                                  unsigned char digest[DIGEST_BYTES]);
/* SHA-256 of bytes that come one after the other. */
struct digest_stream;
/* NULL: out of memory, or the library has failed. */
struct digest_stream *digest_begin(void);
void digest_add(struct digest_stream *stream, const void *data, size_t bytes);
/* Ends it and nulls *stream, which may be NULL. digest: NULL where it is of no use any more. false:
 * the library has failed, now or before. */
bool digest_end(struct digest_stream **stream, unsigned char digest[DIGEST_BYTES]);
/* In lower case. */
void digest_show(const unsigned char digest[DIGEST_BYTES], char hex[DIGEST_HEX_BYTES]);
/* 64 digits in any case; false: anything else. */
ERROR_MUST_CHECK bool digest_read(const char *hex, size_t length,
                                  unsigned char digest[DIGEST_BYTES]);
/* In a time that does not depend on the bytes. */
bool digest_equal(const unsigned char a[DIGEST_BYTES], const unsigned char b[DIGEST_BYTES]);

#endif
