/* proto/inflate.c: inflates a whole body, never further than its declared shapes allow.
 *
 * Honest matrices compress far better than any fixed ratio (zeros 1029:1), so a bomb cannot be
 * known by its ratio. It is known by what it says of itself: the head of a v2 or NPY body declares
 * the whole's size, and just that much is taken and inflated. Text, raw and NPZ say it too late or
 * not at all; they grow by doubling up to the limit, text only if it begins as JSON does. No size
 * is believed that the deflate format could not reach from the bytes that are there.
 *
 * Any thread. Memory: from the space, which takes nothing back before the end. v2 and NPY: at most
 * twice the inflated size, and 8 KiB. Those that grow: one room of 64 KiB or four times the
 * compressed body where that suffices, as it does for most text; else less than four times the
 * inflated size, all rooms together.
 */
#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "proto/coding.h"
#include "proto/flate_private.h"
#include "proto/proto_private.h"

#define SNIFF_BYTES 64
/* The first room of what grows: so many bytes, or times the compressed body, for numbers as text
 * deflate to a half or so. */
#define GROW_FIRST_BYTES (64 << 10)
#define GROW_FIRST_RATIO 4

struct inflation {
    struct proto__flate *flate;
    enum proto__flate_wrap wrap;
    const unsigned char *body;
    int64_t compressed_bytes, limit_bytes;
    struct proto_space *space;
    struct failure *failure;
    unsigned char *data; /* what has been inflated so far lies at its beginning */
    int64_t bytes, room;
    bool done; /* the stream has ended */
};

static enum error malformed(const struct inflation *f, const char *what)
{
    return failure_set(f->failure, ERROR_MALFORMED, "the compressed body %s", what);
}

static enum error too_large(const struct inflation *f)
{
    return failure_set(f->failure, ERROR_TOO_LARGE,
                       "the body inflates to more than the limit of %lld bytes (--request-max)",
                       (long long)f->limit_bytes);
}

/* Whether bytes may be believed as the size of the inflated body. */
static enum error check_size(const struct inflation *f, int64_t bytes)
{
    int64_t max;
    if (bytes > f->limit_bytes)
        return too_large(f);
    if (checked_mul(f->compressed_bytes, PROTO_FLATE_RATIO_MAX, &max) && bytes > max)
        return malformed(f, "is too short for the size that it declares");
    return ERROR_NONE;
}

/* Moves to a larger room; its byte `aligned_at` is aligned. */
static enum error grow(struct inflation *f, int64_t room, int64_t aligned_at)
{
    void *memory;
    int64_t shift = (PROTO_ALIGNMENT - aligned_at % PROTO_ALIGNMENT) % PROTO_ALIGNMENT;
    int64_t taken;
    if (!checked_add(room, shift, &taken))
        return too_large(f);
    enum error error = proto__take(f->space, taken, &memory, f->failure);
    if (error != ERROR_NONE)
        return error;
    unsigned char *data = (unsigned char *)memory + shift;
    if (f->bytes > 0)
        memcpy(data, f->data, (size_t)f->bytes);
    f->data = data;
    f->room = room;
    return ERROR_NONE;
}

/* Tries to inflate the body at once into the room, which is the fast way for the honest. wanted: so
 * many bytes have to come; -1: as many as do. false: nothing has changed, and the stream goes on,
 * which finds what is wrong. */
static bool inflate_at_once(struct inflation *f, int64_t wanted)
{
    int64_t bytes = proto__inflate_whole(f->wrap, f->body, f->compressed_bytes, f->data, f->room);
    if (bytes < 0 || (wanted >= 0 && bytes != wanted))
        return false;
    f->bytes = bytes;
    f->done = true;
    return true;
}

/* Inflates until `bytes` bytes are there, or the stream ends. */
static enum error inflate_to(struct inflation *f, int64_t bytes)
{
    int64_t produced;
    assert(bytes <= f->room);
    if (f->done || f->bytes >= bytes)
        return ERROR_NONE;
    enum proto__flate_end end =
        proto__inflate_next(f->flate, f->data + f->bytes, bytes - f->bytes, &produced);
    f->bytes += produced;
    f->done = end == PROTO_FLATE_DONE;
    if (end == PROTO_FLATE_BROKEN)
        return malformed(f, "is damaged, or not in the coding that Content-Encoding names");
    return end == PROTO_FLATE_SHORT ? malformed(f, "is cut short") : ERROR_NONE;
}

/* The stream must end here, and the body with it. */
static enum error finish(struct inflation *f)
{
    unsigned char beyond;
    int64_t produced = 0;
    if (!f->done) {
        enum proto__flate_end end = proto__inflate_next(f->flate, &beyond, 1, &produced);
        if (end == PROTO_FLATE_BROKEN)
            return malformed(f, "is damaged: its checksum is wrong");
        if (end == PROTO_FLATE_SHORT)
            return malformed(f, "is cut short");
    }
    if (produced > 0)
        return malformed(f, "inflates to more than its shapes declare");
    if (proto__inflate_unread(f->flate) > 0)
        return malformed(f, "is followed by something else: bytes that are not compressed data");
    return ERROR_NONE;
}

/* The whole is known to be `total` bytes long, its first tensor at `aligned_at`. */
static enum error inflate_declared(struct inflation *f, int64_t total, int64_t aligned_at)
{
    enum error error = check_size(f, total);
    if (error == ERROR_NONE)
        error = grow(f, total, aligned_at);
    if (error == ERROR_NONE && inflate_at_once(f, total))
        return ERROR_NONE;
    if (error == ERROR_NONE)
        error = inflate_to(f, total);
    if (error == ERROR_NONE && f->bytes < total)
        error = malformed(f, "inflates to less than its shapes declare");
    return error == ERROR_NONE ? finish(f) : error;
}

static enum error inflate_v2(struct inflation *f, int64_t json_bytes)
{
    int64_t binary_bytes, total;
    enum error error = check_size(f, json_bytes);
    if (error == ERROR_NONE)
        error = grow(f, json_bytes > f->room ? json_bytes : f->room, 0);
    if (error == ERROR_NONE)
        error = inflate_to(f, json_bytes);
    if (error != ERROR_NONE)
        return error;
    if (f->bytes < json_bytes)
        return malformed(f, "is shorter than Inference-Header-Content-Length says");
    error = proto__v2_binary_bytes((const char *)f->data, json_bytes, &binary_bytes, f->failure);
    if (error != ERROR_NONE)
        return error;
    if (!checked_add(json_bytes, binary_bytes, &total))
        return too_large(f);
    if (f->bytes > total)
        return malformed(f, "inflates to more than its shapes declare");
    return inflate_declared(f, total, json_bytes);
}

static enum error inflate_npy(struct inflation *f)
{
    struct proto__npy npy;
    enum error error = grow(f, PROTO_NPY_HEADER_MAX, 0);
    if (error == ERROR_NONE)
        error = inflate_to(f, PROTO_NPY_HEADER_MAX);
    if (error == ERROR_NONE)
        error = proto__npy_read(f->data, f->bytes, &npy, f->failure);
    if (error != ERROR_NONE)
        return error;
    int64_t total = npy.data_offset + npy.data_bytes; /* proto__npy_read has seen it fit */
    if (f->bytes > total)
        return malformed(f, "inflates to more than its shape declares");
    return inflate_declared(f, total, npy.data_offset);
}

static enum error inflate_growing(struct inflation *f)
{
    enum error error = ERROR_NONE;
    int64_t first;
    if (!checked_mul(f->compressed_bytes, GROW_FIRST_RATIO, &first) || first < GROW_FIRST_BYTES)
        first = GROW_FIRST_BYTES;
    first = first < f->limit_bytes ? first : f->limit_bytes;
    if (first > f->room)
        error = grow(f, first, 0);
    if (error == ERROR_NONE && inflate_at_once(f, -1))
        return ERROR_NONE;
    while (error == ERROR_NONE && !f->done) {
        int64_t room = f->room < first ? first : f->room;
        if (f->bytes == f->room && f->room >= first && !checked_mul(room, 2, &room))
            return too_large(f);
        if (room > f->limit_bytes)
            room = f->limit_bytes;
        if (room <= f->bytes)
            break; /* at the limit: finish finds whether anything is left */
        if (room > f->room)
            error = grow(f, room, 0);
        if (error == ERROR_NONE)
            error = inflate_to(f, room);
    }
    if (error != ERROR_NONE)
        return error;
    if (!f->done) {
        unsigned char beyond;
        int64_t produced;
        (void)proto__inflate_next(f->flate, &beyond, 1, &produced);
        if (produced > 0)
            return too_large(f);
    }
    return finish(f);
}

/* Inflates the first bytes, to see what they are. */
static enum error inflate_head(struct inflation *f)
{
    enum error error = grow(f, SNIFF_BYTES, 0);
    if (error == ERROR_NONE)
        error = inflate_to(f, SNIFF_BYTES);
    return error == ERROR_NONE && f->bytes > f->limit_bytes ? too_large(f) : error;
}

static enum error check_is_json(const struct inflation *f)
{
    int64_t at = 0;
    while (at < f->bytes && (f->data[at] == ' ' || f->data[at] == '\n' || f->data[at] == '\r' ||
                             f->data[at] == '\t'))
        at++;
    if (at == f->bytes ? f->done : f->data[at] != '{')
        return malformed(f, "does not inflate to a JSON object: { ... }");
    return ERROR_NONE;
}

static enum error inflate_as(struct inflation *f, enum proto_format format, int64_t json_bytes)
{
    enum error error = inflate_head(f);
    if (error == ERROR_NONE)
        proto_blank_mark(format, f->data, f->bytes);
    if (error == ERROR_NONE)
        error = proto_check_format(format, f->data, f->bytes, f->failure);
    if (error != ERROR_NONE)
        return error;
    if (format == PROTO_FORMAT_UNKNOWN)
        format = proto_sniff(f->data, f->bytes);
    switch (format) {
    case PROTO_FORMAT_V2:
    case PROTO_FORMAT_JSON:
        error = check_is_json(f);
        if (error != ERROR_NONE)
            return error;
        return format == PROTO_FORMAT_V2 && json_bytes >= 0 ? inflate_v2(f, json_bytes)
                                                            : inflate_growing(f);
    case PROTO_FORMAT_NPY:
        return inflate_npy(f);
    case PROTO_FORMAT_RAW:
    case PROTO_FORMAT_NPZ:
        return inflate_growing(f);
    case PROTO_FORMAT_UNKNOWN:
        break;
    }
    return failure_set(f->failure, ERROR_UNSUPPORTED_MEDIA,
                       "the inflated body is neither NPY, NPZ nor a JSON object");
}

enum error proto_inflate(enum proto_coding coding, const unsigned char *body, int64_t length,
                         enum proto_format format, int64_t json_bytes, int64_t limit_bytes,
                         struct proto_space *space, unsigned char **inflated,
                         int64_t *inflated_bytes, struct failure *failure)
{
    assert(coding != PROTO_CODING_IDENTITY && limit_bytes >= 0);
    enum proto__flate_wrap wrap = coding == PROTO_CODING_GZIP ? PROTO_FLATE_GZIP : PROTO_FLATE_ZLIB;
    struct inflation f = {.wrap = wrap,
                          .body = body,
                          .compressed_bytes = length,
                          .limit_bytes = limit_bytes,
                          .space = space,
                          .failure = failure,
                          .flate = proto__inflate_open(wrap, body, length)};
    if (f.flate == NULL)
        return failure_set(failure, ERROR_FULL, "out of memory to inflate the body");
    enum error error = inflate_as(&f, format, json_bytes);
    proto__inflate_close(&f.flate);
    *inflated = f.data;
    *inflated_bytes = f.bytes;
    return error;
}
