/* handlers/accept.c: which format an Accept header likes best (RFC 9110, 12.5.1).
 *
 * A range that names a type wins over `application/...` with a star, that over two stars; the
 * q-value of the winner counts. A q that cannot be read counts as 1, as browsers' headers do.
 */
#include "handlers/accept.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    enum proto_format format;
    const char *subtype; /* of application/ */
} formats[] = {
    {PROTO_FORMAT_NPY, "x-npy"},
    {PROTO_FORMAT_NPZ, "x-npz"},
    {PROTO_FORMAT_JSON, "json"},
};
#define FORMATS ((int)(sizeof formats / sizeof formats[0]))

/* How closely a range fits a type: 0 not at all, 1 by two stars, 2 by application and a star, 3 by
 * its name. */
static int closeness(const char *range, size_t length, const char *subtype)
{
    static const char tree[] = "application/";
    const size_t tree_length = sizeof tree - 1;
    if (length == 3 && memcmp(range, "*/*", 3) == 0)
        return 1;
    if (length <= tree_length || strncasecmp(range, tree, tree_length) != 0)
        return 0;
    range += tree_length;
    length -= tree_length;
    if (length == 1 && *range == '*')
        return 2;
    return length == strlen(subtype) && strncasecmp(range, subtype, length) == 0 ? 3 : 0;
}

/* Thousandths; parameters as they follow a range, up to its comma. */
static int read_q(const char *parameters, size_t length)
{
    for (size_t i = 0; i + 2 < length; i++) {
        bool begins = parameters[i] == ';' || parameters[i] == ' ' || parameters[i] == '\t';
        if (!begins || (parameters[i + 1] | 0x20) != 'q' || parameters[i + 2] != '=')
            continue;
        const char *digits = parameters + i + 3, *end = parameters + length;
        if (digits == end || (*digits != '0' && *digits != '1'))
            return 1000;
        int q = (*digits - '0') * 1000, unit = 100;
        if (++digits < end && *digits == '.')
            for (digits++; digits < end && *digits >= '0' && *digits <= '9'; digits++) {
                q += (*digits - '0') * unit;
                unit /= 10;
            }
        return q < 1000 ? q : 1000;
    }
    return 1000;
}

/* The q-value of one type in thousandths; 0: not accepted. */
static int quality(const char *accept, const char *subtype)
{
    int best = 0, q = 0;
    while (*accept != '\0') {
        accept += strspn(accept, ", \t");
        size_t whole = strcspn(accept, ",");
        size_t range = strcspn(accept, ",; \t");
        int fit = closeness(accept, range, subtype);
        if (fit > best) {
            best = fit;
            q = read_q(accept + range, whole - range);
        }
        accept += whole;
    }
    return q;
}

bool handlers__accept_format(const char *accept, enum proto_format *format)
{
    if (accept == NULL || accept[strspn(accept, " \t")] == '\0')
        return true;
    int best = 0;
    enum proto_format chosen = *format;
    for (int i = 0; i < FORMATS; i++) {
        /* Doubled, so that the natural one can be put half a step before its equals. */
        int q = 2 * quality(accept, formats[i].subtype);
        if (q > 0 && formats[i].format == *format)
            q++;
        if (q > best) {
            best = q;
            chosen = formats[i].format;
        }
    }
    *format = chosen;
    return best > 0;
}
