/* client/direct.h: a request that the server answers at once. Threads: one; blocks. */
#ifndef CLIENT_DIRECT_H
#define CLIENT_DIRECT_H

#include "client/receive.h"

/* Sends input and writes the answer to output, again where there is no room. The session has the
 * outcome. */
void direct_run(struct session *session, struct files_input *input, struct files_output *output);
/* The request of both ways. An ending that says nothing leaves it to the server: it looks at the
 * first bytes. type: a buffer that the request borrows. */
struct wire_request direct_request(const struct session *session, struct files_input *input,
                                   char type[100]);

#endif
