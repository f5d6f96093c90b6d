/* server/http/handshake.c: TLS connections until their handshake is over. See private.h.
 *
 * The library goes on with a handshake whenever it runs, and never waits for the client: it has not
 * noticed that there is nothing to read (0.9.75 clears no readiness in a handshake). One client
 * that is slow would keep the loop busy. So the connection is suspended while the client has to say
 * something, and the watch reports when it has.
 *
 *   asleep (suspended, watched) -> woken (in a line, for its turn) -> awake (resumed) -> asleep ...
 *
 * until the client's last message has come. A turn takes few of those in the line, as each costs
 * the loop up to a millisecond of arithmetic.
 *
 * Threads: one event loop's.
 */
#include "server/http/private.h"

#define TURN_MAX 8

/* ---- Lines of connections ---- */

static void append(struct http__line *line, struct http__connection *c)
{
    c->line = line;
    c->next = NULL;
    c->previous = line->last;
    *(line->last != NULL ? &line->last->next : &line->first) = c;
    line->last = c;
}

static void remove_from_line(struct http__connection *c)
{
    struct http__line *line = c->line;
    if (line == NULL)
        return;
    *(c->previous != NULL ? &c->previous->next : &line->first) = c->next;
    *(c->next != NULL ? &c->next->previous : &line->last) = c->previous;
    c->line = NULL;
}

/* ---- Handshakes ---- */

static void sleep_until_heard(struct http__connection *c)
{
    remove_from_line(c);
    c->asleep = true;
    MHD_suspend_connection(c->library);
    watch_reading(c->http->watch, c->fd, http__key(c), true);
}

void http__handshake_begin(struct http__connection *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->library, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    c->session = info->tls_session;
    c->credentials = tls_begin(c->http->options.tls, c->session, &c->shaken);
    sleep_until_heard(c);
}

void http__handshake_wake(struct http__connection *c)
{
    if (!c->asleep)
        return;
    c->asleep = false;
    append(&c->http->woken, c);
    c->http->stirred = true;
}

bool http__handshakes_resume(struct http *http)
{
    for (int i = 0; i < TURN_MAX && http->woken.first != NULL; i++) {
        struct http__connection *c = http->woken.first;
        remove_from_line(c);
        append(&http->awake, c);
        MHD_resume_connection(c->library);
    }
    return http->woken.first != NULL;
}

void http__handshakes_settle(struct http *http)
{
    while (http->awake.first != NULL) {
        struct http__connection *c = http->awake.first;
        if (!c->shaken) {
            sleep_until_heard(c);
            continue;
        }
        remove_from_line(c);
        watch_reading(http->watch, c->fd, http__key(c), false);
    }
}

void http__handshake_end(struct http__connection *c)
{
    remove_from_line(c);
    tls_let_go(c->credentials);
    c->asleep = false;
    c->credentials = NULL;
    c->session = NULL;
}

void http__handshakes_abandon(struct http *http)
{
    for (uint32_t slot = 0; http->connections != NULL && slot < http->slots; slot++) {
        struct http__connection *c = http->connections[slot];
        if (c != NULL && (c->asleep || c->line == &http->woken))
            MHD_resume_connection(c->library);
    }
}
