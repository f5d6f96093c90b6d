/* proto/flate.c: the door to zlib, the only file that includes it.
 *
 * zlib counts in unsigned int: longer pieces go in steps. See flate_private.h for threads and
 * memory.
 */
#include "proto/flate_private.h"

#include <assert.h>
#include <stdlib.h>

#include <zlib.h>

#define STEP_BYTES (INT64_C(1) << 30)
#define MEMORY_LEVEL 8

struct proto__flate {
    z_stream stream;
    const unsigned char *input;
    int64_t input_bytes; /* not yet shown to zlib */
    bool is_gzip, done;
};

static int window_bits(enum proto__flate_wrap wrap)
{
    switch (wrap) {
    case PROTO_FLATE_RAW:
        return -MAX_WBITS;
    case PROTO_FLATE_ZLIB:
        return MAX_WBITS;
    case PROTO_FLATE_GZIP:
        break;
    }
    return MAX_WBITS + 16;
}

static uInt step_of(int64_t bytes)
{
    return (uInt)(bytes < STEP_BYTES ? bytes : STEP_BYTES);
}

struct proto__flate *proto__inflate_open(enum proto__flate_wrap wrap, const unsigned char *input,
                                         int64_t input_bytes)
{
    struct proto__flate *flate = calloc(1, sizeof *flate);
    if (flate == NULL)
        return NULL;
    flate->input = input;
    flate->input_bytes = input_bytes;
    flate->is_gzip = wrap == PROTO_FLATE_GZIP;
    if (inflateInit2(&flate->stream, window_bits(wrap)) == Z_OK)
        return flate;
    free(flate);
    return NULL;
}

static void show_input(struct proto__flate *flate)
{
    uInt step = step_of(flate->input_bytes);
    if (step == 0)
        return; /* the input may be NULL */
    flate->stream.next_in = (Bytef *)(uintptr_t)flate->input;
    flate->stream.avail_in = step;
    flate->input += step;
    flate->input_bytes -= step;
}

/* At the end of a stream: whether the bytes behind it begin another member of a gzip file, which
 * goes on with the first one's data. What zlib has been shown and what it has not lie together. */
static bool begins_member(const struct proto__flate *flate)
{
    const unsigned char *behind = flate->stream.next_in;
    return flate->is_gzip && proto__inflate_unread(flate) >= 2 && behind[0] == 0x1f &&
           behind[1] == 0x8b;
}

enum proto__flate_end proto__inflate_next(struct proto__flate *flate, unsigned char *out,
                                          int64_t bytes, int64_t *produced)
{
    z_stream *z = &flate->stream;
    *produced = 0;
    while (!flate->done) {
        uInt room = step_of(bytes - *produced);
        if (room == 0)
            return PROTO_FLATE_MORE;
        if (z->avail_in == 0)
            show_input(flate);
        bool starved = z->avail_in == 0;
        z->next_out = out + *produced;
        z->avail_out = room;
        int status = inflate(z, Z_NO_FLUSH);
        *produced += room - z->avail_out;
        if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
            return PROTO_FLATE_BROKEN;
        if (status == Z_STREAM_END) {
            flate->done = !begins_member(flate) || inflateReset(z) != Z_OK;
            continue;
        }
        if (starved && z->avail_out > 0)
            return PROTO_FLATE_SHORT;
    }
    return PROTO_FLATE_DONE;
}

int64_t proto__inflate_unread(const struct proto__flate *flate)
{
    return flate->input_bytes + flate->stream.avail_in;
}

void proto__inflate_close(struct proto__flate **flate)
{
    if (*flate == NULL)
        return;
    inflateEnd(&(*flate)->stream);
    free(*flate);
    *flate = NULL;
}

struct proto__flate *proto__deflate_open(enum proto__flate_wrap wrap, int level)
{
    struct proto__flate *flate = calloc(1, sizeof *flate);
    assert(level >= 1 && level <= 9);
    if (flate == NULL)
        return NULL;
    if (deflateInit2(&flate->stream, level, Z_DEFLATED, window_bits(wrap), MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) == Z_OK)
        return flate;
    free(flate);
    return NULL;
}

bool proto__deflate_next(struct proto__flate *flate, const unsigned char *input, int64_t bytes,
                         bool last, unsigned char **out, int64_t *out_bytes)
{
    z_stream *z = &flate->stream;
    flate->input = input;
    flate->input_bytes = bytes;
    for (;;) {
        if (z->avail_in == 0)
            show_input(flate);
        uInt room = step_of(*out_bytes);
        bool final = last && flate->input_bytes == 0;
        z->next_out = *out;
        z->avail_out = room;
        int status = deflate(z, final ? Z_FINISH : Z_NO_FLUSH);
        uInt written = room - z->avail_out;
        *out += written;
        *out_bytes -= written;
        if (status == Z_STREAM_END)
            return true;
        if (!final && z->avail_in == 0 && flate->input_bytes == 0)
            return true;
        if (written == 0 && z->avail_out == 0)
            return false;
    }
}

void proto__deflate_close(struct proto__flate **flate)
{
    if (*flate == NULL)
        return;
    deflateEnd(&(*flate)->stream);
    free(*flate);
    *flate = NULL;
}

uint32_t proto__crc32(uint32_t crc, const unsigned char *data, int64_t bytes)
{
    if (proto__crc32_folds(bytes)) {
        int64_t folded = bytes / 16 * 16;
        crc = proto__crc32_fold(crc, data, folded);
        data += folded;
        bytes -= folded;
    }
    return (uint32_t)crc32_z(crc, data, (z_size_t)bytes);
}
