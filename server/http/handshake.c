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
#include <string.h>
#include <sys/socket.h>

#include "server/http/private.h"
#include "server/http/raw.h"

#define TURN_MAX 8
#define PLAIN_MAX 4096 /* bytes of a plain request that are looked at */
#define HOST_MAX 255

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

/* What a plain request names as the host, where that may stand in a text. */
static int host_of(const char *head, const char **host)
{
    static const char field[] = "\r\nHost: ", plain[] = "abcdefghijklmnopqrstuvwxyz"
                                                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]";
    const char *found = strcasestr(head, field);
    if (found == NULL)
        return 0;
    *host = found + sizeof field - 1;
    size_t length = strspn(*host, plain);
    return length <= HOST_MAX && (*host)[length] == '\r' ? (int)length : 0;
}

/* Whether the client has sent plain HTTP. Five bytes of it the session may have read; the rest has
 * mostly come with them. A message of TLS begins with a control character. */
static bool is_plain(const char *head)
{
    const char *version = strstr(head, " HTTP/1."), *end = strchr(head, '\n');
    return head[0] >= ' ' && version != NULL && (end == NULL || version < end);
}

static void answer_plain(struct http__connection *c, const char *head)
{
    const char *host = NULL;
    int length = host_of(head, &host);
    struct text body, answer;
    text_init(&body, PLAIN_MAX);
    text_printf(&body, "This port speaks TLS. Use https://%.*s in place of http://.\n", length,
                host);
    struct exchange_reply reply = {.status = 400,
                                   .fields = {{"Content-Type", "text/plain; charset=utf-8"}},
                                   .field_count = 1,
                                   .segments = {{body.data, body.length}},
                                   .segment_count = body.failed ? 0 : 1};
    text_init(&answer, HTTP_RAW_MAX);
    http_raw_compose(&answer, &reply, http__id(c, NULL), NULL, false);
    (void)http_raw_send(c->fd, &answer);
    shutdown(c->fd, SHUT_WR);
    text_free(&answer);
    text_free(&body);
    c->refused = reply.status;
    http_count_refused(&c->http->count, c->refused);
    http__log(c, "other", c->refused, 0);
}

void http__handshake_failed(struct http *http)
{
    char head[PLAIN_MAX + 1];
    for (struct http__connection *c = http->awake.first; c != NULL; c = c->next) {
        if (c->shaken || c->refused != 0)
            continue;
        ssize_t count = recv(c->fd, head, PLAIN_MAX, MSG_PEEK | MSG_DONTWAIT);
        head[count > 0 ? count : 0] = '\0';
        if (is_plain(head))
            answer_plain(c, head);
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
