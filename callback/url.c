/* callback/url.c: see url.h. */
#include "callback/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LABEL_MAX 63 /* characters between two dots */
#define PORT_MAX 65535

/* ---- Hosts ---- */

int callback_port_read(const char *text, size_t length)
{
    int port = 0;
    if (length < 1 || length > 5)
        return -1;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        port = 10 * port + (text[i] - '0');
    }
    return port >= 1 && port <= PORT_MAX ? port : -1;
}

/* Labels of letters, digits and hyphens, none of them empty. */
static bool is_name(const char *host)
{
    size_t label = 0;
    for (const char *at = host;; at++) {
        if (*at == '.' || *at == '\0') {
            if (label == 0 || label > LABEL_MAX || at[-1] == '-')
                return false;
            label = 0;
            if (*at == '\0')
                return true;
        } else if (!isalnum((unsigned char)*at) && (*at != '-' || label == 0)) {
            return false;
        } else {
            label++;
        }
    }
}

/* 127.1, 0x7f000001 and the like are addresses to some who read them, and names to others. */
static bool ends_in_number(const char *host)
{
    const char *dot = strrchr(host, '.'), *last = dot != NULL ? dot + 1 : host;
    return strspn(last, "0123456789") == strlen(last) || strncmp(last, "0x", 2) == 0;
}

bool callback_host_read(const char *text, size_t length, char host[CALLBACK_HOST_BYTES],
                        struct callback_address *address)
{
    bool has_brackets = length >= 2 && text[0] == '[' && text[length - 1] == ']';
    *address = (struct callback_address){.family = 0};
    if (has_brackets) {
        text++;
        length -= 2;
    }
    if (length == 0 || length >= CALLBACK_HOST_BYTES)
        return false;
    for (size_t i = 0; i < length; i++)
        host[i] = (char)tolower((unsigned char)text[i]);
    host[length] = '\0';
    if (has_brackets) {
        address->family = AF_INET6;
        return inet_pton(AF_INET6, host, address->bytes) == 1;
    }
    if (inet_pton(AF_INET, host, address->bytes) == 1) {
        address->family = AF_INET;
        return true;
    }
    return is_name(host) && !ends_in_number(host);
}

/* ---- URLs ---- */

static enum error refuse(const char *why, struct failure *failure)
{
    return failure_set(failure, ERROR_BAD_OPTION,
                       "callback is http://HOST[:PORT]/PATH or https://HOST[:PORT]/PATH; %s.", why);
}

/* Returns what follows the scheme; NULL: it is another one. */
static const char *read_scheme(const char *text, struct callback_url *url)
{
    static const char http[] = "http://", https[] = "https://";
    url->is_https = strncasecmp(text, https, sizeof https - 1) == 0;
    url->port = url->is_https ? CALLBACK_PORT_HTTPS : CALLBACK_PORT_HTTP;
    if (url->is_https)
        return text + sizeof https - 1;
    return strncasecmp(text, http, sizeof http - 1) == 0 ? text + sizeof http - 1 : NULL;
}

/* Of the characters that a URL has but for the fragment's mark. */
static bool is_plain(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text <= ' ' || *text > '~' || strchr("\"#<>\\^`{|}", *text) != NULL)
            return false;
    return true;
}

static enum error read_authority(const char *text, size_t length, struct callback_url *url,
                                 struct failure *failure)
{
    size_t host = length;
    if (memchr(text, '@', length) != NULL)
        return refuse("this one has a user's name", failure);
    while (host > 0 && text[host - 1] >= '0' && text[host - 1] <= '9')
        host--;
    if (host > 0 && text[host - 1] == ':') {
        url->port = callback_port_read(text + host, length - host);
        host--;
    } else {
        host = length;
    }
    if (url->port < 0)
        return refuse("its port is no number from 1 to 65535", failure);
    if (!callback_host_read(text, host, url->host, &url->address))
        return refuse("its host is no name, no IPv4 address in four decimal parts, and no IPv6 "
                      "address in brackets",
                      failure);
    return ERROR_NONE;
}

enum error callback_url_read(const char *text, struct callback_url *url, struct failure *failure)
{
    memset(url, 0, sizeof *url);
    if (strnlen(text, CALLBACK_URL_BYTES) == CALLBACK_URL_BYTES)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "callback is too long; a URL has %d characters at most.",
                           CALLBACK_URL_BYTES - 1);
    const char *authority = read_scheme(text, url);
    if (authority == NULL)
        return refuse("this one has another scheme", failure);
    if (!is_plain(authority))
        return refuse("this one has a fragment, or a character that has to be escaped", failure);
    return read_authority(authority, strcspn(authority, "/?"), url, failure);
}
