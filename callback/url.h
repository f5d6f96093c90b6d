/* callback/url.h: the URL of a callback, as far as it decides where a request goes.
 *
 *      http[s]://HOST[:PORT][/PATH][?QUERY]
 *
 * HOST is a name of letters, digits, dots and hyphens, an IPv4 address in four decimal parts, or an
 * IPv6 address in brackets. What libraries read in different ways is refused: a user name, a
 * fragment, backslashes, blanks, characters outside ASCII, numbers that stand for an address.
 *
 * Threads: pure functions.
 */
#ifndef CALLBACK_URL_H
#define CALLBACK_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CALLBACK_URL_BYTES 1025 /* of a URL, its NUL among them */
#define CALLBACK_HOST_BYTES 254 /* of a name, its NUL among them */
#define CALLBACK_PORT_HTTP 80
#define CALLBACK_PORT_HTTPS 443

/* An address without its port. */
struct callback_address {
    int family; /* AF_INET or AF_INET6; 0: a name */
    uint8_t bytes[16];
};

struct callback_url {
    char host[CALLBACK_HOST_BYTES]; /* in lower case, without brackets */
    struct callback_address address;
    int port;
    bool is_https;
};

/* BAD_OPTION, with what is wrong. */
ERROR_MUST_CHECK enum error callback_url_read(const char *text, struct callback_url *url,
                                              struct failure *failure);

/* A name or an address, of so many bytes, in lower case and without brackets. false: it is none. */
ERROR_MUST_CHECK bool callback_host_read(const char *text, size_t length,
                                         char host[CALLBACK_HOST_BYTES],
                                         struct callback_address *address);
/* 1 to 65535, of digits alone; -1: it is none. */
int callback_port_read(const char *text, size_t length);

#endif
