/* handlers/exchange.c: how handlers reach the door. See exchange.h. Threads: the exchange's loop.
 */
#include "handlers/exchange.h"

#include <assert.h>

void exchange_answer(struct exchange *x, const struct exchange_reply *reply)
{
    assert(!x->answered);
    assert(reply->field_count <= EXCHANGE_HEADERS_MAX);
    assert(reply->segment_count <= EXCHANGE_SEGMENTS_MAX);
    assert(reply->file == NULL || reply->stream == NULL);
    assert(reply->stream == NULL || reply->segment_count == 0);
    x->answered = true;
    x->streams = reply->stream != NULL;
    x->door->answer(x, reply);
}

void exchange_more(struct exchange *x)
{
    assert(x->streams);
    x->door->more(x);
}

const char *exchange_header(const struct exchange *x, const char *name)
{
    return x->door->header(x, name, 0);
}
