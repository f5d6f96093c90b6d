/* server/http/site.c: see site.h. Threads: pure functions. */
#include "server/http/site.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define LOOPBACK_NET 127 /* the first byte of IPv4's loopback addresses */

struct piece {
    const char *text; /* NULL: there is none */
    size_t length;
};

/* A field's value without white space at its end. */
static struct piece value_of(const struct http_guard_field *field)
{
    struct piece piece = {0};
    if (field == NULL)
        return piece;
    piece = (struct piece){field->value, field->value_length};
    while (piece.length > 0 &&
           (piece.text[piece.length - 1] == ' ' || piece.text[piece.length - 1] == '\t'))
        piece.length--;
    return piece;
}

static struct piece host_of(const struct site_claims *claims)
{
    if (claims->authority != NULL)
        return (struct piece){claims->authority, claims->authority_length};
    return value_of(claims->host);
}

/* Without the port. */
static struct piece name_of(struct piece host)
{
    const char *end =
        memchr(host.text, host.length > 0 && host.text[0] == '[' ? ']' : ':', host.length);
    if (end != NULL)
        host.length = (size_t)(end - host.text) + (*end == ']');
    return host;
}

static bool is_loopback(struct piece name)
{
    char copy[64];
    struct in_addr ipv4;
    if (http_guard_is(name.text, name.length, "localhost") ||
        http_guard_is(name.text, name.length, "localhost.") ||
        http_guard_is(name.text, name.length, "[::1]"))
        return true;
    if (name.length >= sizeof copy)
        return false;
    memcpy(copy, name.text, name.length);
    copy[name.length] = '\0';
    return inet_pton(AF_INET, copy, &ipv4) == 1 && ntohl(ipv4.s_addr) >> 24 == LOOPBACK_NET;
}

/* The text of the list that it is, in any case of letters; NULL: none. */
static const char *find(const struct option_list *list, struct piece piece)
{
    for (int i = 0; list != NULL && i < list->count; i++)
        if (http_guard_is(piece.text, piece.length, list->items[i]))
            return list->items[i];
    return NULL;
}

/* What stands in a Host field without its port: a name, or an address, IPv6 in brackets. */
static bool is_host(const char *text)
{
    static const char name[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_";
    bool ipv6 = text[0] == '[';
    size_t length = strspn(text + ipv6, ipv6 ? "0123456789abcdefABCDEF:." : name);
    return length > 0 && strcmp(text + ipv6 + length, ipv6 ? "]" : "") == 0;
}

enum error site_check_hosts(const struct option_list *hosts, struct failure *failure)
{
    for (int i = 0; i < hosts->count; i++)
        if (!is_host(hosts->items[i]))
            return failure_set(failure, ERROR_BAD_OPTION,
                               "--allowed-hosts \"%.80s\" is not allowed; give a name or an "
                               "address, as matrices.example or [fd00::1], without scheme, port, "
                               "path and wildcard.",
                               hosts->items[i]);
    return ERROR_NONE;
}

enum error site_check_origins(const struct option_list *origins, struct failure *failure)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyz0123456789.-:[]"; /* as browsers write it */
    for (int i = 0; i < origins->count; i++) {
        const char *text = origins->items[i], *rest = text;
        if (strncmp(text, "http://", 7) == 0)
            rest = text + 7;
        else if (strncmp(text, "https://", 8) == 0)
            rest = text + 8;
        if (rest == text || *rest == '\0' || rest[strspn(rest, plain)] != '\0')
            return failure_set(failure, ERROR_BAD_OPTION,
                               "--cors-origins \"%.80s\" is not allowed; give http:// or https://, "
                               "a name in lower case, and the port if there is one, without a "
                               "path.",
                               text);
    }
    return ERROR_NONE;
}

/* Whether a page's origin is the host that it sends its request to. */
static bool is_same(struct piece origin, struct piece host)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(schemes[i]);
        if (host.text != NULL && host.length > 0 && origin.length == length + host.length &&
            strncasecmp(origin.text, schemes[i], length) == 0 &&
            strncasecmp(origin.text + length, host.text, host.length) == 0)
            return true;
    }
    return false;
}

enum error site_check(const struct site_rules *rules, const struct site_claims *claims,
                      const char **listed, const char **why)
{
    *listed = NULL;
    struct piece host = host_of(claims), origin = value_of(claims->origin);
    if (rules->loopback && !claims->any_host && host.text != NULL) {
        struct piece name = name_of(host);
        if (!is_loopback(name) && find(rules->hosts, name) == NULL) {
            *why = "This address serves localhost, loopback addresses and the names of "
                   "--allowed-hosts; the Host field names none of them.";
            return ERROR_MISDIRECTED;
        }
    }
    bool foreign = origin.text != NULL && !is_same(origin, host);
    if (foreign)
        *listed = find(rules->origins, origin);
    if (foreign && *listed == NULL) {
        *why = "Pages of other sites are not served; the Origin field names another site than the "
               "Host field, and --cors-origins of the service does not list it.";
        return ERROR_FORBIDDEN;
    }
    struct piece from = value_of(claims->fetch_site);
    if (origin.text != NULL || from.text == NULL || claims->reads ||
        http_guard_is(from.text, from.length, "same-origin") ||
        http_guard_is(from.text, from.length, "none"))
        return ERROR_NONE;
    *why = "Pages of other sites are not served; Sec-Fetch-Site says that one has sent this.";
    return ERROR_FORBIDDEN;
}
