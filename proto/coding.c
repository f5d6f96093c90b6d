/* proto/coding.c: the headers Content-Encoding and Accept-Encoding, and compressing answers.
 *
 * Any thread. Cost of reading a header: one pass.
 */
#include "proto/coding.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "proto/flate_private.h"
#include "proto/proto_private.h"

/* The first row of a coding has the name that is sent. */
static const struct {
    const char *name;
    enum proto_coding coding;
} codings[] = {
    {"identity", PROTO_CODING_IDENTITY},
    {"gzip", PROTO_CODING_GZIP},
    {"x-gzip", PROTO_CODING_GZIP},
    {"deflate", PROTO_CODING_DEFLATE},
};
#define CODING_NAMES ((int)(sizeof codings / sizeof codings[0]))
#define CODINGS 3
/* Compressed, at the beginning and in the middle, to see whether the rest is worth it: long enough
 * to decide by (random numbers in FP64 and FP32 shrink by 0.05 and 0.1), and 0.2 ms. */
#define PROBE_BYTES (4 << 10)

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

static bool find_coding(const char *name, size_t length, enum proto_coding *coding)
{
    for (int i = 0; i < CODING_NAMES; i++) {
        if (proto__equals_ignoring_case(codings[i].name, name, length)) {
            *coding = codings[i].coding;
            return true;
        }
    }
    return false;
}

enum error proto_coding_parse(const char *header, enum proto_coding *coding,
                              struct failure *failure)
{
    *coding = PROTO_CODING_IDENTITY;
    if (header == NULL)
        return ERROR_NONE;
    while (is_space(*header))
        header++;
    size_t length = strlen(header);
    while (length > 0 && is_space(header[length - 1]))
        length--;
    if (length == 0 || find_coding(header, length, coding))
        return ERROR_NONE;
    return failure_set(failure, ERROR_UNSUPPORTED_MEDIA,
                       "Content-Encoding '%s' is not supported; send gzip, deflate or none",
                       proto__safe_words(header, length).text);
}

const char *proto_coding_name(enum proto_coding coding)
{
    for (int i = 0; i < CODING_NAMES; i++) {
        if (codings[i].coding == coding)
            return codings[i].name;
    }
    return "identity";
}

/* ---- Accept-Encoding ---- */

/* qvalue = ( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] ), in thousandths; -1: malformed. */
static int read_quality(const char **at)
{
    const char *c = *at;
    if (*c != '0' && *c != '1')
        return -1;
    int thousandths = (*c++ - '0') * 1000;
    if (*c == '.') {
        c++;
        for (int unit = 100; *c >= '0' && *c <= '9'; unit /= 10, c++) {
            if (unit == 0)
                return -1;
            thousandths += (*c - '0') * unit;
        }
    }
    *at = c;
    return thousandths <= 1000 ? thousandths : -1;
}

static const char *skip_space(const char *at)
{
    while (is_space(*at))
        at++;
    return at;
}

/* Reads `name [;q=value]`, up to a comma or the end. Returns the quality, -1 when malformed. */
static int read_offer(const char **at, const char **name, size_t *length)
{
    int quality = 1000;
    const char *c = skip_space(*at);
    *name = c;
    *length = strcspn(c, " \t,;");
    c = skip_space(c + *length);
    if (*c == ';') {
        c = skip_space(c + 1);
        if ((*c != 'q' && *c != 'Q') || c[1] != '=')
            return -1;
        c += 2;
        quality = read_quality(&c);
        c = skip_space(c);
    }
    if (*c != '\0' && *c != ',')
        return -1;
    *at = c;
    return quality;
}

enum proto_coding proto_coding_accepted(const char *header)
{
    /* By coding; -1: not named. gzip and deflate come first where all is equal, but not when only
     * "*" allows them. */
    static const enum proto_coding order[] = {PROTO_CODING_GZIP, PROTO_CODING_DEFLATE,
                                              PROTO_CODING_IDENTITY};
    int named[CODINGS] = {-1, -1, -1};
    int others = -1;
    for (const char *at = header; at != NULL && *at != '\0'; at += *at == ',') {
        const char *name;
        size_t length;
        enum proto_coding coding;
        int quality = read_offer(&at, &name, &length);
        if (quality < 0)
            return PROTO_CODING_IDENTITY;
        if (length == 1 && *name == '*')
            others = quality;
        else if (find_coding(name, length, &coding))
            named[coding] = quality;
    }
    int best_quality = 0;
    enum proto_coding best = PROTO_CODING_IDENTITY;
    for (int i = 0; i < CODINGS; i++) {
        if (named[order[i]] > best_quality) {
            best_quality = named[order[i]];
            best = order[i];
        }
    }
    bool identity_refused = named[PROTO_CODING_IDENTITY] == 0;
    if (best_quality == 0 && identity_refused && others > 0 && named[PROTO_CODING_GZIP] < 0)
        return PROTO_CODING_GZIP;
    return best;
}

/* ---- Compressing ---- */

int64_t proto_deflate_bound(int64_t bytes)
{
    /* zlib's own bound for any parameters, with room for the gzip header. */
    int64_t bound;
    if (!checked_add(bytes, (bytes >> 3) + (bytes >> 6) + 64, &bound))
        return INT64_MAX;
    return bound;
}

/* Compresses `max` bytes of the answer behind the first `skipped`; out has room for them. Returns
 * the bytes written, -1 when out of memory. */
static int64_t compress(enum proto__flate_wrap wrap, int level, const struct proto_answer *answer,
                        int64_t skipped, int64_t max, unsigned char *out)
{
    int64_t room = proto_deflate_bound(max);
    struct proto__flate *flate = proto__deflate_open(wrap, level);
    if (flate == NULL)
        return -1;
    unsigned char *at = out;
    bool fits = true;
    for (int i = 0; i < answer->segment_count && max > 0; i++) {
        int64_t bytes = (int64_t)answer->segments[i].iov_len;
        int64_t first = skipped < bytes ? skipped : bytes;
        skipped -= first;
        bytes -= first;
        bytes = bytes < max ? bytes : max;
        if (bytes == 0)
            continue;
        fits = fits && proto__deflate_next(
                           flate, (const unsigned char *)answer->segments[i].iov_base + first,
                           bytes, false, &at, &room);
        max -= bytes;
    }
    fits = fits && proto__deflate_next(flate, NULL, 0, true, &at, &room);
    proto__deflate_close(&flate);
    assert(fits); /* room was zlib's own bound */
    return at - out;
}

bool proto_deflate_pays(int level, struct proto_space *space, const struct proto_answer *answer)
{
    bool whole = answer->total_bytes <= 2 * PROBE_BYTES;
    int64_t tried = whole ? answer->total_bytes : PROBE_BYTES, more = 0;
    struct failure ignored;
    void *memory;
    if (proto__take(space, proto_deflate_bound(tried), &memory, &ignored) != ERROR_NONE)
        return false;
    int64_t bytes = compress(PROTO_FLATE_ZLIB, level, answer, 0, tried, memory);
    if (bytes < 0)
        return false;
    if (!whole) {
        more = compress(PROTO_FLATE_ZLIB, level, answer, answer->total_bytes / 2, tried, memory);
        tried *= 2;
    }
    return more >= 0 && bytes + more <= tried - tried / 10;
}

enum error proto_deflate(enum proto_coding coding, int level, struct proto_space *space,
                         struct proto_answer *answer, struct failure *failure)
{
    int64_t room = proto_deflate_bound(answer->total_bytes);
    void *memory;
    assert(coding != PROTO_CODING_IDENTITY);
    enum error error = proto__take(space, room, &memory, failure);
    if (error != ERROR_NONE)
        return error;
    enum proto__flate_wrap wrap = coding == PROTO_CODING_GZIP ? PROTO_FLATE_GZIP : PROTO_FLATE_ZLIB;
    int64_t bytes = answer->segment_count == 1
                        ? proto__deflate_whole(wrap, level, answer->segments[0].iov_base,
                                               answer->total_bytes, memory, room)
                        : compress(wrap, level, answer, 0, answer->total_bytes, memory);
    if (bytes < 0)
        return failure_set(failure, ERROR_FULL, "out of memory to compress the answer");
    answer->segment_count = 0;
    answer->total_bytes = 0;
    proto__answer_add(answer, memory, bytes);
    return ERROR_NONE;
}
