/* server/http/guard.h: whether the head of a request may mean only one thing.
 *
 * Two programs that read the same bytes differently can be made to disagree on where a request
 * ends, and a request that one of them never saw is served by the other (request smuggling). The
 * HTTP library is tolerant: it joins folded lines, accepts spaces before the colon, takes the first
 * of two lengths, cuts a value at a NUL. The guard reads what the library made of the head and
 * refuses everything that has a second reading.
 *
 * The library parses in place: name and value are pieces of the head as it arrived, ended by NULs
 * written over the colon and over the CR LF. So the gaps between consecutive pieces show what stood
 * there: one byte and white space before a value, two bytes before the next name, and four before
 * the end of the head. A folded line, a bare LF, an ignored line, a NUL all leave another gap. The
 * pointers are compared, and only the bytes of the gaps are read.
 *
 * What cannot be seen: NULs at the very end of a line, in the place of its CR and LF, or of those
 * of the empty line, leave the same bytes behind as CR and LF do, and are accepted.
 *
 * What the guard never sees, since the library answers it by itself, with a short HTML page, and
 * closes: a request line or head above the library's pool of some 30 KiB (414, 431, 413), another
 * version than HTTP/1.0 and 1.1 (505), a line without a colon (400), a bad chunk (400). What is not
 * HTTP at all is closed without an answer. All but those of the request line (414, 505) are counted
 * in the metrics, as of route "other". So is a Content-Length that is no number (400), which is
 * answered in the library's place, see http__on_complaint.
 *
 * Threads: pure functions. Cost: one look at every byte of the head.
 */
#ifndef SERVER_HTTP_GUARD_H
#define SERVER_HTTP_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define HTTP_GUARD_FIELDS_MAX 64  /* header fields of a request */
#define HTTP_GUARD_URI_MAX 8192   /* bytes of a request target */
#define HTTP_GUARD_HEAD_MAX 16384 /* bytes of request line and header fields */
#define HTTP_GUARD_DIGITS_MAX 18  /* of a Content-Length: fits an int64_t */

/* One header field; neither part is NUL-terminated as far as the guard cares. */
struct http_guard_field {
    const char *name, *value;
    uint32_t name_length, value_length;
};

/* The request line's target, looked at as it arrived, before the library decodes it in place. */
struct http_guard_uri {
    size_t length;
    bool bad;    /* a byte that no target may hold, a bad escape, or %00 */
    bool veiled; /* the path holds a slash, letter, digit or one of -._~ as an escape */
};

struct http_guard_head {
    const char *method; /* the first byte of the head */
    const char *uri;    /* where the target began; its text may have been rewritten since */
    const char *version;
    struct http_guard_uri target;
    size_t head_bytes; /* from method to the end of the empty line */
    const struct http_guard_field *fields;
    int field_count;      /* how many the request had; more than FIELDS_MAX are not in `fields` */
    size_t method_length; /* up to the first NUL */
};

/* What the framing of an accepted head is. */
struct http_guard_frame {
    int64_t content_length; /* -1: none given */
    bool chunked, expect_continue, http_1_0;
    bool expect_other; /* something else is expected: refused */
    const struct http_guard_field *host, *origin, *fetch_site; /* lent; NULL: not given */
};

/* Looks at a target as it arrived: a NUL-terminated string, as the library gives it. */
struct http_guard_uri http_guard_uri(const char *uri);

/* NONE and *frame, or MALFORMED, URI_TOO_LONG, HEADERS_TOO_LARGE, EXPECTATION_FAILED and a
 * sentence that says why (constant text; it never quotes the request). A refused head must be
 * answered with Connection: close: nothing after it can be trusted. */
ERROR_MUST_CHECK enum error http_guard_check(const struct http_guard_head *head,
                                             struct http_guard_frame *frame, const char **why);

/* ASCII case-insensitive comparison of a piece of a head with a literal. */
bool http_guard_is(const char *text, size_t length, const char *literal);

#endif
