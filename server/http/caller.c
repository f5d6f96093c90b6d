/* server/http/caller.c: who sends a request: by its token, or by the connection's certificate. See
 * private.h.
 *
 * Threads: one event loop's. Cost: none where neither is asked for; for tokens see access.h.
 */
#include <string.h>

#include "server/http/private.h"

/* A certificate is asked for in the handshake, and there is none without one. */
static const struct client *by_certificate(struct http__connection *c)
{
    if (c->session == NULL)
        return &client_anyone;
    if (!c->named) {
        c->certified = client_anyone;
        if (tls_client_name(c->session, c->certified.name))
            c->certified.account = handlers_certified(c->http->options.handlers, c->certified.name);
        c->named = true;
    }
    return &c->certified;
}

/* NULL: there is none, or more than one. */
static const struct http_guard_field *authorization(const struct http__connection *c)
{
    static const char name[] = "Authorization";
    const struct http_guard_field *found = NULL;
    for (int i = 0; i < c->field_count; i++) {
        if (!http_guard_is(c->fields[i].name, c->fields[i].name_length, name))
            continue;
        if (found != NULL)
            return NULL;
        found = &c->fields[i];
    }
    return found;
}

const struct client *http__caller(struct http__connection *c)
{
    struct access *access = c->http->options.access;
    if (access == NULL)
        return by_certificate(c);
    const struct http_guard_field *field = authorization(c);
    size_t length;
    const char *token =
        field == NULL ? NULL : access_bearer(field->value, field->value_length, &length);
    if (token == NULL)
        return NULL;
    access_hold(access, &c->table);
    return access_find(c->table, token, length);
}

void http__caller_forget(struct http__connection *c)
{
    if (c->table != NULL)
        access_let_go(c->http->options.access, &c->table);
}
