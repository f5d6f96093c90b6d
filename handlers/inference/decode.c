/* handlers/inference/decode.c: from a body's bytes to an item's tensors. See item.h.
 *
 * What is short may run on an event loop: little text, or binary tensors that are used where they
 * lie, whatever their length. Inflating, long text, archives and arrays that have to be transposed
 * or moved belong in the pool.
 */
#include <assert.h>
#include <string.h>

#include "handlers/inference/item_private.h"

bool handlers__item_is_compressed(const struct item *item)
{
    return item->head.coding != PROTO_CODING_IDENTITY;
}

/* An archive may inflate to any multiple of its length. */
bool handlers__item_decode_is_long(const struct item *item)
{
    const struct item_head *head = &item->head;
    assert(item->state == ITEM_RECEIVED);
    return handlers__item_is_compressed(item) || head->format == PROTO_FORMAT_NPZ ||
           proto_request_is_long(head->format, item->body, item->body_bytes, head->json_bytes);
}

/* No body but a raw one begins as gzip does, unless it is. */
static enum error check_coding(const struct item_head *head, const unsigned char *body,
                               int64_t length, struct failure *failure)
{
    if (head->coding != PROTO_CODING_IDENTITY || head->format == PROTO_FORMAT_RAW || length < 2 ||
        memcmp(body, "\x1f\x8b", 2) != 0)
        return ERROR_NONE;
    return failure_set(failure, ERROR_MALFORMED,
                       "The body begins as gzip does, and no header says so; send it with "
                       "Content-Encoding: gzip.");
}

static enum error decode_format(struct item *item, unsigned char *body, int64_t length,
                                struct failure *failure)
{
    struct proto_space *space = &item->memory.space;
    struct proto_request *request = &item->request;
    enum error error = check_coding(&item->head, body, length, failure);
    if (error == ERROR_NONE)
        error = proto_check_format(item->head.format, body, length, failure);
    if (error != ERROR_NONE)
        return error;
    switch (item->head.format) {
    case PROTO_FORMAT_V2:
        return proto_v2_decode(body, length, item->head.json_bytes, space, request, failure);
    case PROTO_FORMAT_RAW:
        return proto_raw_decode(body, length, space, request, failure);
    case PROTO_FORMAT_NPY:
        return proto_npy_decode(body, length, space, request, failure);
    case PROTO_FORMAT_NPZ:
        return proto_npz_decode(body, length, space, request, failure);
    case PROTO_FORMAT_JSON:
        return proto_json_decode(body, length, space, request, failure);
    case PROTO_FORMAT_UNKNOWN:
        break;
    }
    return failure_set(failure, ERROR_UNSUPPORTED_MEDIA,
                       "The body is neither an .npy nor an .npz file nor a JSON object; send one "
                       "of these, with its Content-Type.");
}

/* Text has been read and archives unpacked: their bytes are not needed any more. */
static void drop_body_if_unused(struct item *item)
{
    const unsigned char *from = item->body, *to = from + item->body_bytes;
    for (int i = 0; i < METHOD_INPUTS_MAX; i++) {
        const unsigned char *data = item->request.inputs[i].data;
        if (data != NULL && data >= from && data <= to)
            return;
    }
    handlers__memory_drop_body(&item->memory);
}

static enum error inflate_and_decode(struct item *item, struct failure *failure)
{
    struct item_head *head = &item->head;
    const struct item_source *source = &item->source;
    unsigned char *body = item->body;
    int64_t length = item->body_bytes;
    if (head->coding != PROTO_CODING_IDENTITY) {
        enum error error =
            proto_inflate(head->coding, body, length, head->format, head->json_bytes,
                          source->inflated_max_bytes, &item->memory.space, &body, &length, failure);
        if (error != ERROR_NONE)
            return error;
        handlers__memory_drop_body(&item->memory);
    }
    proto_blank_mark(head->format, body, length);
    if (head->format == PROTO_FORMAT_UNKNOWN)
        head->format = proto_sniff(body, length);
    /* Only /v1 JSON can name a method itself. */
    const struct method *method =
        head->format == PROTO_FORMAT_JSON ? head->method : handlers__item_method(item);
    proto_request_init(&item->request, head->format, method);
    item->request.inflated_max = source->inflated_max_bytes;
    return decode_format(item, body, length, failure);
}

enum error handlers__item_decode(struct item *item, struct failure *failure)
{
    assert(item->state == ITEM_RECEIVED);
    enum error error = inflate_and_decode(item, failure);
    if (error == ERROR_FULL)
        return handlers__item_memory_failure(item, failure);
    if (error != ERROR_NONE)
        return error;
    drop_body_if_unused(item);
    handlers__item_move(item, ITEM_DECODED);
    return ERROR_NONE;
}
