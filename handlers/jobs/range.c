/* handlers/jobs/range.c: see range.h. */
#include "handlers/jobs/range.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"

/* A number of decimal digits; one that is too large counts as the largest. */
static bool read_number(const char **at, int64_t *number)
{
    const char *begin = *at;
    *number = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++)
        if (!checked_mul(*number, 10, number) || !checked_add(*number, **at - '0', number))
            *number = INT64_MAX;
    return *at > begin;
}

/* "first-last", "first-" or "-count"; -1 for what is absent. */
static bool read_range(const char *at, int64_t *first, int64_t *last)
{
    *first = *last = -1;
    at += strspn(at, " \t");
    bool has_first = read_number(&at, first);
    if (!has_first)
        *first = -1;
    if (*at++ != '-')
        return false;
    bool has_last = read_number(&at, last);
    if (!has_last)
        *last = -1;
    at += strspn(at, " \t");
    return *at == '\0' && (has_first || has_last) && (!has_first || !has_last || *first <= *last);
}

struct range handlers__range(const char *range, const char *if_range, const char *etag,
                             int64_t total_bytes)
{
    static const char unit[] = "bytes=";
    struct range all = {.kind = RANGE_ALL, .first = 0, .bytes = total_bytes};
    int64_t first, last;
    if (range == NULL || strncasecmp(range, unit, sizeof unit - 1) != 0 ||
        (if_range != NULL && strcmp(if_range, etag) != 0) ||
        !read_range(range + sizeof unit - 1, &first, &last))
        return all;
    if (first < 0) {
        first = last < total_bytes ? total_bytes - last : 0;
        last = last > 0 ? total_bytes - 1 : -1;
    } else if (last < 0 || last >= total_bytes) {
        last = total_bytes - 1;
    }
    if (first >= total_bytes || last < first)
        return (struct range){.kind = RANGE_NONE};
    return (struct range){.kind = RANGE_PART, .first = first, .bytes = last - first + 1};
}
