/* handlers/inference/answer.c: see answer.h. Binary answers are compressed only where a first piece
 * shows that it pays.
 */
#include "handlers/inference/answer.h"

#include <assert.h>
#include <string.h>

#include "handlers/inference/item_private.h"

#define SHORT_MATRICES_MAX 16384 /* whose INFO is read soon enough for a loop */

bool handlers__answer_is_long(struct item *item)
{
    const struct proto_request *request = handlers__item_request(item);
    return proto_answer_is_long(request) || request->batch > SHORT_MATRICES_MAX;
}

static enum error encode_format(struct item *item, struct proto_answer *body,
                                struct failure *failure)
{
    const struct proto_request *request = &item->request;
    struct proto_space *space = &item->memory.space;
    switch (request->format) {
    case PROTO_FORMAT_V2:
    case PROTO_FORMAT_RAW:
        return proto_v2_encode(request, item->outputs, space, body, failure);
    case PROTO_FORMAT_JSON:
        return proto_json_encode(request, item->outputs, space, body, failure);
    default:
        break;
    }
    if (request->want_npz)
        return proto_npz_encode(request, item->outputs, space, body, failure);
    return proto_npy_encode(request, item->outputs, space, body, failure);
}

static bool compress(struct item *item, const struct answer_compression *compression,
                     struct proto_answer *body)
{
    struct proto_space *space = &item->memory.space;
    struct failure ignored;
    if (compression->coding == PROTO_CODING_IDENTITY || body->total_bytes < compression->min_bytes)
        return false;
    bool is_text = strcmp(body->content_type, "application/json") == 0;
    if (!is_text && !proto_deflate_pays(compression->level, space, body))
        return false;
    return proto_deflate(compression->coding, compression->level, space, body, &ignored) ==
           ERROR_NONE;
}

enum error handlers__answer_encode(struct item *item, const struct answer_compression *compression,
                                   struct answer *answer, struct failure *failure)
{
    assert(item->state == ITEM_DONE);
    enum error error = encode_format(item, &answer->body, failure);
    if (error == ERROR_FULL)
        return handlers__memory_failure(&item->memory, failure);
    if (error != ERROR_NONE)
        return error;
    answer->coding = PROTO_CODING_IDENTITY;
    if (compress(item, compression, &answer->body))
        answer->coding = compression->coding;
    return ERROR_NONE;
}
