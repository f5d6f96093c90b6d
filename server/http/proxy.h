/* server/http/proxy.h: the PROXY protocol, version 2: a proxy says for whom it has connected.
 *
 * A connection from a proxy's address begins with a header:
 *
 *   12 bytes  0d 0a 0d 0a 00 0d 0a 51 55 49 54 0a
 *    1 byte   20: LOCAL, for a health check of the proxy's own; 21: PROXY
 *    1 byte   11: IPv4, 21: IPv6, 31: unix, all of streams; 00: not said
 *    2 bytes  how many bytes follow, big-endian
 *   12 or 36  source address, destination address, source port, destination port
 *   the rest  further fields, which are skipped
 *
 * It is read to its last byte and no further: what follows is HTTP's, or TLS's.
 *
 * Threads: any.
 */
#ifndef SERVER_HTTP_PROXY_H
#define SERVER_HTTP_PROXY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/option.h"

#define PROXY_FIXED 16                    /* bytes up to the length */
#define PROXY_KEPT (PROXY_FIXED + 2 * 16) /* and the addresses, which are all that is kept */

/* Addresses with a length of prefix. */
struct proxy_network {
    int family;
    int bits;
    unsigned char bytes[16];
};

struct proxy_list {
    struct proxy_network networks[OPTION_LIST_MAX];
    int count;
};

/* "192.0.2.1", "10.0.0.0/8", "2001:db8::/32". BAD_OPTION names the option and what is allowed. */
ERROR_MUST_CHECK enum error proxy_list_read(const struct option_list *texts,
                                            struct proxy_list *list, struct failure *failure);
/* IPv4 addresses inside IPv6 are IPv4 addresses. Others than these families are in no list. */
bool proxy_list_has(const struct proxy_list *list, const struct sockaddr *address);

/* A header that is being read. Zeroed: nothing has come. */
struct proxy_header {
    unsigned char bytes[PROXY_KEPT];
    uint32_t count; /* that have come */
};

enum proxy_state {
    PROXY_MORE, /* call again when there is more to read */
    PROXY_DONE,
    PROXY_BAD /* no valid header, or the connection has ended */
};

/* Reads what has come, without waiting. */
enum proxy_state proxy_header_read(struct proxy_header *header, int fd);
/* Of one that is DONE: the client's address; false where it names none. */
bool proxy_header_client(const struct proxy_header *header, struct sockaddr_storage *address,
                         socklen_t *length);

#endif
