/* server/http/access.h: who a token belongs to, by --token-file.
 *
 * A table of the file's clients never changes. When the file is read anew there is another table,
 * and who holds the old one keeps it, and what it lends. A connection holds the table that its
 * last request was looked up in, so that a request keeps its client.
 *
 * Threads: access_create, access_destroy, access_reload and access_has_changed on one; the rest on
 * any. Cost: a lookup takes a SHA-256 and looks at eight bytes of each client: 0.2 us for a few,
 * 0.7 us for 1024. A lock is taken for the first request of a connection, and for its first after
 * the file was read anew.
 */
#ifndef SERVER_HTTP_ACCESS_H
#define SERVER_HTTP_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/client.h"
#include "base/error.h"
#include "callback/sign.h"

#define ACCESS_TOKEN_MAX 1024 /* bytes of a token; a longer one is unknown */

struct access;
struct access_table;

/* Reads the file; borrows the path. BAD_OPTION names file, line and what is allowed. */
ERROR_MUST_CHECK enum error access_create(const char *path, struct access **access,
                                          struct failure *failure);
void access_destroy(struct access **access); /* no table may be held any more */
/* What makes a client more than a name: called for each client, with its name and limits, before
 * the table that it is in is in force. false: there is no memory for it. */
struct access_bind {
    bool (*bind)(void *context, struct client *client);
    void *context;
};
/* For the table in force, before any is held, and for all that follow. false: as above. */
ERROR_MUST_CHECK bool access_set_bind(struct access *access, const struct access_bind *bind);
/* Reads the file anew. On an error what is in force stays. */
ERROR_MUST_CHECK enum error access_reload(struct access *access, struct failure *failure);
/* Whether the file has changed since it was read last, well or badly. Blocks on the file system. */
bool access_has_changed(const struct access *access);
/* The secret of a client's callbacks, by its name, as the file says now; lent until the next
 * reload. false: it has none. On the thread of access_reload. */
bool access_secret(const struct access *access, const char *name, struct callback_secret *secret);
int access_count(struct access *access); /* clients in force */

/* Makes *held the table in force. It is NULL at first. */
void access_hold(struct access *access, struct access_table **held);
/* Nulls *held, which may be NULL. */
void access_let_go(struct access *access, struct access_table **held);
/* Lent as long as the table is held. NULL: no client has the token. */
const struct client *access_find(const struct access_table *table, const char *token,
                                 size_t length);

/* The token of an Authorization field's value, `Bearer TOKEN`; NULL: there is none. */
const char *access_bearer(const char *value, size_t length, size_t *token_length);

#endif
