/* proto/coding.h: Content-Encoding and Accept-Encoding: gzip and deflate (zlib format).
 *
 * Threads: pure; inflating and deflating more than 16 KiB belongs in the work pool.
 */
#ifndef PROTO_CODING_H
#define PROTO_CODING_H

#include "base/error.h"
#include "proto/proto.h"

enum proto_coding {
    PROTO_CODING_IDENTITY,
    PROTO_CODING_GZIP,
    PROTO_CODING_DEFLATE
};

/* Reads a Content-Encoding header (NULL: identity). UNSUPPORTED_MEDIA for anything but one of
 * identity, gzip, x-gzip, deflate. */
ERROR_MUST_CHECK enum error proto_coding_parse(const char *header, enum proto_coding *coding,
                                               struct failure *failure);
/* The best coding a client accepts, by q-values; identity when in doubt (NULL header too). */
enum proto_coding proto_coding_accepted(const char *header);
const char *proto_coding_name(enum proto_coding coding); /* "gzip" */

/* Inflates a whole body into memory from the space. The declared shapes bound the size: as soon
 * as the head of the inflated data says how much the whole must be (v2 binary, NPY), that much
 * is taken and no more is inflated (a surplus is MALFORMED); text, raw and NPZ, whose heads do not
 * say, grow by doubling up to limit_bytes (TOO_LARGE past it), and text that cannot be JSON is
 * refused at its first byte. json_bytes as in proto_v2_decode; format UNKNOWN is sniffed. A gzip
 * body may have several members (RFC 1952). Trailing garbage, a truncated stream and a wrong
 * checksum are MALFORMED. */
ERROR_MUST_CHECK enum error proto_inflate(enum proto_coding coding, const unsigned char *body,
                                          int64_t length, enum proto_format format,
                                          int64_t json_bytes, int64_t limit_bytes,
                                          struct proto_space *space, unsigned char **inflated,
                                          int64_t *inflated_bytes, struct failure *failure);

/* An upper bound of the deflated size, for reserving space. */
int64_t proto_deflate_bound(int64_t bytes);
/* Whether deflating makes the answer shorter by a tenth, judged by 4 KiB at its beginning and in
 * its middle: random doubles shrink by some hundredths and take long. False, too, when there is no
 * memory to try. */
bool proto_deflate_pays(int level, struct proto_space *space, const struct proto_answer *answer);
/* Replaces the answer's segments by one compressed segment in memory from the space. */
ERROR_MUST_CHECK enum error proto_deflate(enum proto_coding coding, int level,
                                          struct proto_space *space, struct proto_answer *answer,
                                          struct failure *failure);

#endif
