/* server/http/peer.h: who is at the other end of a connection, and a number for it, for fairness
 * and quotas between clients.
 *
 * The same address has the same number whatever its port. An IPv4 address inside IPv6 counts as
 * itself. An IPv6 address counts as its network of 64 bits, for a host has as many addresses of its
 * network as it likes. Users of a unix socket differ by their user.
 *
 * Two clients may share a number by chance: it is 32 bits of a hash (SipHash-2-4). The key is
 * random, so that addresses that share one cannot be chosen.
 *
 * Threads: any.
 */
#ifndef SERVER_HTTP_PEER_H
#define SERVER_HTTP_PEER_H

#include <stdint.h>
#include <sys/socket.h>

#define HTTP_PEER_TEXT 48 /* bytes of an address as text, its NUL among them */

struct http_peer_key {
    uint64_t words[2];
};

struct http_peer {
    int family;              /* AF_INET, AF_INET6, AF_UNIX; AF_UNSPEC: not known */
    unsigned char bytes[16]; /* the address, in network order; of AF_UNIX the user, an uid_t */
    uint32_t number;
};

/* A random key, from the system. */
void http_peer_key_make(struct http_peer_key *key);

/* fd: the socket, of which a unix one is asked for its user. */
void http_peer_read(const struct sockaddr *address, int fd, const struct http_peer_key *key,
                    struct http_peer *peer);
/* "192.0.2.1", "2001:db8::1", "uid 1000", "unknown". */
void http_peer_show(const struct http_peer *peer, char text[HTTP_PEER_TEXT]);

#endif
