/* client/transfer.h: sends the request, again where there is no room, and receives the answer.
 *
 * Threads: one. Blocks until the request has ended.
 */
#ifndef CLIENT_TRANSFER_H
#define CLIENT_TRANSFER_H

#include "client/arguments.h"
#include "client/files.h"
#include "client/outcome.h"

/* Fills *outcome. All else is borrowed. token NULL: none. Only the body of a 200 goes to output.
 * show: progress and waits, on stderr. */
void transfer_run(const struct arguments *arguments, const char *token, struct files_input *input,
                  struct files_output *output, bool show, struct outcome *outcome);

#endif
