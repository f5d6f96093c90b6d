/* client/direct.c: see direct.h. */
#include "client/direct.h"

#include <stdio.h>

struct wire_request direct_request(const struct session *session, struct files_input *input,
                                   char type[100])
{
    const struct arguments *arguments = session->arguments;
    const char *known = format_media_type(arguments->input_format);
    snprintf(type, 100, "Content-Type:%s%s", known != NULL ? " " : "", known != NULL ? known : "");
    return (struct wire_request){.verb = "POST",
                                 .path = arguments->path.data,
                                 .fields = {type},
                                 .body = input,
                                 .body_name = arguments->input,
                                 .may_stall = true};
}

void direct_run(struct session *session, struct files_input *input, struct files_output *output)
{
    char type[100];
    struct wire_answer answer;
    struct receive receive = {session, output, .total = 0};
    bool again;
    do {
        struct wire_request request = direct_request(session, input, type);
        request.context = &receive;
        request.on_body = receive_piece;
        request.on_progress = receive_progress;
        receive_ask(&receive, &request);
        again = !session_send(session, &request, &answer) && session_pause(session, &answer, false);
        text_free(&answer.body);
    } while (again);
}
