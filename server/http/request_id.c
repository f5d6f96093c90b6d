/* server/http/request_id.c: the id of a request, by which its client finds it in the log.
 *
 * An id that is made is 16 random digits of the door's and a count. Threads: one event loop's.
 */
#include <string.h>
#include <sys/random.h>

#include "server/http/private.h"

static const char digits[] = "0123456789abcdef";

/* The 16 digits of a number. */
static void write_number(uint64_t number, char text[16])
{
    for (int i = 15; i >= 0; i--, number >>= 4)
        text[i] = digits[number & 15];
}

void http__id_prefix_make(struct http *http)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        number ^= clock_now_ns() ^ (uint64_t)(uintptr_t)http;
    write_number(number, http->id_prefix);
    http->id_prefix[16] = '-';
}

/* Visible ASCII, and not too long. */
static bool is_id(const char *text)
{
    size_t length = strnlen(text, HTTP_ID_MAX_BYTES + 1);
    if (length == 0 || length > HTTP_ID_MAX_BYTES)
        return false;
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return true;
}

const char *http__id(struct http__connection *c, const char *given)
{
    if (given != NULL && is_id(given))
        return given;
    struct http *http = c->http;
    memcpy(c->id, http->id_prefix, sizeof http->id_prefix);
    write_number(http->id_count++, c->id + sizeof http->id_prefix);
    c->id[sizeof http->id_prefix + 16] = '\0';
    return c->id;
}
