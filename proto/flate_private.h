/* proto/flate_private.h: zlib and libdeflate as the codecs see them. proto/flate.c alone knows
 * zlib, proto/flate_whole.c alone libdeflate.
 *
 * Threads: a stream belongs to one at a time. Memory: zlib's own state (7 KiB and a window of 32
 * KiB to inflate, 260 KiB to deflate) from the heap.
 */
#ifndef PROTO_FLATE_PRIVATE_H
#define PROTO_FLATE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* No more than this many bytes can come out of one byte of a deflate stream, by its format: 258
 * bytes from two bits. Sizes that claim more are false. */
#define PROTO_FLATE_RATIO_MAX 1032

enum proto__flate_wrap {
    PROTO_FLATE_RAW, /* as in a zip file */
    PROTO_FLATE_ZLIB,
    PROTO_FLATE_GZIP
};

enum proto__flate_end {
    PROTO_FLATE_MORE, /* the room is full, the stream has not ended */
    PROTO_FLATE_DONE, /* the stream has ended, its checksum is right; in gzip its last member's */
    PROTO_FLATE_SHORT,
    PROTO_FLATE_BROKEN
};

struct proto__flate;

/* Borrows the input until close. NULL when out of memory. */
struct proto__flate *proto__inflate_open(enum proto__flate_wrap wrap, const unsigned char *input,
                                         int64_t input_bytes);
/* Inflates up to `bytes` bytes to out; *produced says how many. */
enum proto__flate_end proto__inflate_next(struct proto__flate *flate, unsigned char *out,
                                          int64_t bytes, int64_t *produced);
int64_t proto__inflate_unread(const struct proto__flate *flate); /* input bytes not used */
void proto__inflate_close(struct proto__flate **flate);

struct proto__flate *proto__deflate_open(enum proto__flate_wrap wrap, int level);
/* Compresses a piece; with last, ends the stream. out moves forward as bytes come; false when it
 * does not suffice, which proto_deflate_bound rules out. */
bool proto__deflate_next(struct proto__flate *flate, const unsigned char *input, int64_t bytes,
                         bool last, unsigned char **out, int64_t *out_bytes);
void proto__deflate_close(struct proto__flate **flate);
/* Compresses all of the input at once; out_bytes: what proto_deflate_bound says. Returns the bytes
 * written, -1 when out of memory. Takes some 100 KiB to 1 MB from the heap while it runs, by level.
 */
int64_t proto__deflate_whole(enum proto__flate_wrap wrap, int level, const void *input,
                             int64_t bytes, void *out, int64_t out_bytes);
/* Inflates all of the input at once. Returns the bytes that came out; -1: it is damaged, has more
 * than one member, or bytes behind it, or there is too little room or memory. Which of these, a
 * stream finds. */
int64_t proto__inflate_whole(enum proto__flate_wrap wrap, const void *input, int64_t bytes,
                             void *out, int64_t out_bytes);

/* CRC-32 as zip files have it; begin with 0. */
uint32_t proto__crc32(uint32_t crc, const unsigned char *data, int64_t bytes);

/* Can this processor fold so many bytes, and is it worth it? Then proto__crc32_fold does the same
 * for a multiple of 16: crc32.c. */
bool proto__crc32_folds(int64_t bytes);
uint32_t proto__crc32_fold(uint32_t crc, const unsigned char *data, int64_t bytes);

#endif
