/* handlers/reply.c: replies made of a document, and the small steps that all replies share.
 *
 * Threads: the exchange's loop. A document's bytes belong to the reply and are freed by its
 * release. Cost: none of this is on the path of an inference's answer but the three small steps.
 */
#include <assert.h>
#include <stdlib.h>

#include "handlers/handlers_private.h"

void handlers__reply_open(struct exchange_reply *reply, int status)
{
    assert(status >= 200 && status <= 599);
    reply->status = status;
    reply->field_count = 0;
    reply->segment_count = 0;
    reply->file = NULL;
    reply->stream = NULL;
    reply->close = false;
    reply->release = NULL;
    reply->context = NULL;
}

void handlers__reply_field(struct exchange_reply *reply, const char *name, const char *value)
{
    assert(reply->field_count < EXCHANGE_HEADERS_MAX);
    reply->fields[reply->field_count++] = (struct exchange_field){name, value};
}

void handlers__reply_segment(struct exchange_reply *reply, const void *data, size_t bytes)
{
    assert(reply->segment_count < EXCHANGE_SEGMENTS_MAX);
    reply->segments[reply->segment_count++] =
        (struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = bytes};
}

/* The document could not be made for want of memory: says so without taking any. */
static void answer_without_memory(struct exchange *x)
{
    static const char body[] = "{\"error\":\"The service is out of memory.\"}\n";
    struct exchange_reply reply;
    handlers__reply_open(&reply, error_http_status(ERROR_INTERNAL));
    handlers__reply_field(&reply, "Content-Type", HANDLERS_JSON);
    handlers__reply_segment(&reply, body, sizeof body - 1);
    exchange_answer(x, &reply);
}

void handlers__reply_text(struct exchange *x, struct exchange_reply *reply,
                          const char *content_type, struct text *text)
{
    /* A terminal's next prompt begins its own line. */
    if (text->length > 0 && text->data[text->length - 1] != '\n')
        text_puts(text, "\n");
    if (text->failed) {
        text_free(text);
        answer_without_memory(x);
        return;
    }
    handlers__reply_field(reply, "Content-Type", content_type);
    if (text->length > 0)
        handlers__reply_segment(reply, text->data, text->length);
    reply->release = free;
    reply->context = text->data;
    exchange_answer(x, reply);
}

void handlers__reply_document(struct exchange *x, const char *content_type, struct text *text)
{
    struct exchange_reply reply;
    handlers__reply_open(&reply, 200);
    handlers__reply_text(x, &reply, content_type, text);
}
