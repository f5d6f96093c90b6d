/* handlers/jobs/range.h: Range and If-Range (RFC 9110, 14), for answers whose bytes never change.
 *
 * One range of bytes is served. A request for several, or in words that are none of the RFC's, gets
 * everything, as the RFC allows. Pure.
 */
#ifndef HANDLERS_JOBS_RANGE_H
#define HANDLERS_JOBS_RANGE_H

#include <stdint.h>

enum range_kind {
    RANGE_ALL,
    RANGE_PART,
    RANGE_NONE /* it lies outside: 416 */
};

struct range {
    enum range_kind kind;
    int64_t first, bytes; /* of ALL and PART */
};

/* range, if_range: the fields' values, or NULL. etag: the answer's, with its quotes. */
struct range handlers__range(const char *range, const char *if_range, const char *etag,
                             int64_t total_bytes);

#endif
