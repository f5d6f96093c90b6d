/* handlers/inference/answer.h: the answer's body, from an item's outputs: encoded, and compressed
 * where that was asked for and pays.
 *
 * Threads: the item's.
 * Ownership: the segments lie in the item's memory and in `body`; valid until the item is closed.
 */
#ifndef HANDLERS_INFERENCE_ANSWER_H
#define HANDLERS_INFERENCE_ANSWER_H

#include "handlers/inference/item.h"

struct answer {
    struct proto_answer body;
    enum proto_coding coding; /* IDENTITY: it is not compressed */
};

struct answer_compression {
    enum proto_coding coding; /* IDENTITY: none */
    int level;                /* zlib 1..9 */
    int64_t min_bytes;        /* shorter answers are not compressed */
};

/* Whether encoding takes long enough to need the work pool. Compressing always does. */
bool handlers__answer_is_long(struct item *item);
/* Encodes the outputs of an item that is DONE, in the format of its request. Without memory for
 * compression the answer stays as it is. */
ERROR_MUST_CHECK enum error handlers__answer_encode(struct item *item,
                                                    const struct answer_compression *compression,
                                                    struct answer *answer, struct failure *failure);

#endif
