/* callback/message.h: what the front and invertd-post say to each other, over a pair of sockets
 * (AF_UNIX, SOCK_SEQPACKET), one struct a message.
 *
 * The front asks for one attempt in a slot; the answer to it frees the slot. What comes from
 * invertd-post is a stranger's: it parses what strangers send. The front checks all of it.
 */
#ifndef CALLBACK_MESSAGE_H
#define CALLBACK_MESSAGE_H

#include "callback/url.h"

#define CALLBACK_PROGRAM "invertd-post"
#define CALLBACK_FD_CONTROL 3 /* of invertd-post: the socket */

#define CALLBACK_SLOTS 16 /* attempts under way */
#define CALLBACK_FIELDS_MAX 6
#define CALLBACK_FIELD_BYTES 128
#define CALLBACK_BODY_MAX 8192
#define CALLBACK_PROBLEM_BYTES 160 /* of what went wrong, its NUL among them */

struct callback_request {
    int32_t slot;
    char url[CALLBACK_URL_BYTES];
    char fields[CALLBACK_FIELDS_MAX][CALLBACK_FIELD_BYTES]; /* "Name: value"; "": none */
    int32_t body_bytes;
    char body[CALLBACK_BODY_MAX]; /* last; the message ends where it ends */
};

struct callback_reply {
    int32_t slot;
    int32_t status; /* of HTTP; 0: there was no answer */
    char problem[CALLBACK_PROBLEM_BYTES];
};

#endif
