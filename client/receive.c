/* client/receive.c: see receive.h. */
#include "client/receive.h"

#include <stdio.h>
#include <string.h>

static void add(struct wire_request *request, const char *field)
{
    int i = 0;
    while (request->fields[i] != NULL)
        i++;
    request->fields[i] = field;
}

void receive_ask(struct receive *receive, struct wire_request *request)
{
    const char *type = format_media_type(receive->session->arguments->output_format);
    receive->begun = false;
    receive->skip = 0;
    if (type != NULL) {
        snprintf(receive->accept, sizeof receive->accept, "Accept: %s", type);
        add(request, receive->accept);
    }
    /* A weak ETag promises no equal bytes. */
    if (receive->output == NULL || receive->output->at == 0 || receive->etag[0] != '"')
        return;
    snprintf(receive->range, sizeof receive->range, "Range: bytes=%lld-",
             (long long)receive->output->at);
    snprintf(receive->if_range, sizeof receive->if_range, "If-Range: %s", receive->etag);
    add(request, receive->range);
    add(request, receive->if_range);
}

/* Where the first piece of a try belongs; false: nowhere. */
static bool begin(struct receive *receive, const struct wire_answer *answer)
{
    struct files_output *output = receive->output;
    bool is_same = answer->etag[0] != '\0' && strcmp(answer->etag, receive->etag) == 0;
    receive->begun = true;
    if (answer->status == 206 && (answer->range_from != output->at || output->at == 0))
        return false;
    if (answer->status != 206 && !files_rewind(output)) {
        if (!is_same)
            return false;
        receive->skip = output->at; /* a pipe has these already */
    }
    receive->total = answer->length >= 0 ? answer->length : 0;
    if (answer->status == 206 && answer->length >= 0)
        receive->total += output->at;
    memcpy(receive->etag, answer->etag, sizeof receive->etag);
    return true;
}

bool receive_piece(void *context, struct wire_answer *answer, const char *data, size_t size)
{
    struct receive *receive = context;
    if (answer->status != 200 && answer->status != 206)
        return false;
    if (receive->output == NULL)
        return true;
    if (!receive->begun && !begin(receive, answer)) {
        snprintf(answer->message, sizeof answer->message,
                 "the answer broke off, and another one came that does not continue it");
        return true;
    }
    size_t skipped = (int64_t)size < receive->skip ? size : (size_t)receive->skip;
    receive->skip -= (int64_t)skipped;
    int number = files_write(receive->output, data + skipped, size - skipped);
    if (number != 0)
        snprintf(answer->message, sizeof answer->message, "cannot write %.200s: %s",
                 receive->session->arguments->output, strerror(number));
    return true;
}

void receive_progress(void *context, int64_t sent, int64_t to_send, int64_t received)
{
    struct receive *receive = context;
    struct progress_state state = {PROGRESS_COMPUTING, 0, 0};
    if (sent < to_send)
        state = (struct progress_state){PROGRESS_UPLOAD, sent, to_send};
    else if (receive->begun)
        state = (struct progress_state){PROGRESS_DOWNLOAD, receive->output->at, receive->total};
    else if (to_send == 0 && received == 0)
        return;
    session_show(receive->session, &state);
}
