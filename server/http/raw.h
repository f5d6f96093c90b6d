/* server/http/raw.h: an answer written past the HTTP library.
 *
 * The library answers before a request's body or after it, never in the middle. A body that comes
 * too slowly is answered in the middle: with a small answer composed here, written to the socket in
 * one piece, after which the connection closes.
 *
 * Threads: the exchange's loop.
 */
#ifndef SERVER_HTTP_RAW_H
#define SERVER_HTTP_RAW_H

#include <stdbool.h>

#include "base/text.h"
#include "handlers/exchange.h"

#define HTTP_RAW_MAX (64 << 10) /* bytes of such an answer; a longer one is not sent */

/* cors: the site whose page may read it; NULL: none. Appends status line, fields, `Connection:
 * close`, X-Request-Id, X-Content-Type-Options and body (not for HEAD) to text. */
void http_raw_compose(struct text *text, const struct exchange_reply *reply, const char *id,
                      const char *cors, bool head);
/* Writes text without waiting. false when not all of it fitted into the socket's buffer. */
bool http_raw_send(int fd, const struct text *text);

#endif
