/* server/http/peer.h: a number for the peer of a socket, for fairness and quotas between clients.
 *
 * The same address has the same number whatever its port; users of a unix socket differ by
 * their user. An IPv4 address inside IPv6 counts as itself. Two clients may share a number by
 * chance: the number is 32 bits of a hash.
 *
 * Threads: any.
 */
#ifndef SERVER_HTTP_PEER_H
#define SERVER_HTTP_PEER_H

#include <stdint.h>
#include <sys/socket.h>

uint32_t http_peer_number(int fd);
uint32_t http_peer_hash(const struct sockaddr *address); /* of an IPv4 or IPv6 one; else 0 */

#endif
