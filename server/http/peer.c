/* server/http/peer.c: see peer.h. Threads: any. */
#include "server/http/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

#define NETWORK_BYTES 8 /* of an IPv6 address, that count */

static uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static void sip_rounds(uint64_t v[4], int rounds)
{
    for (int i = 0; i < rounds; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

/* SipHash-2-4 of up to eight bytes, filled up with zeros, and a kind. */
static uint32_t hash(const struct http_peer_key *key, int kind, const void *data, size_t bytes)
{
    uint64_t words[2] = {0, UINT64_C(9) << 56 | (uint64_t)(unsigned char)kind};
    memcpy(&words[0], data, bytes);
    uint64_t v[4] = {
        key->words[0] ^ UINT64_C(0x736f6d6570736575), key->words[1] ^ UINT64_C(0x646f72616e646f6d),
        key->words[0] ^ UINT64_C(0x6c7967656e657261), key->words[1] ^ UINT64_C(0x7465646279746573)};
    for (int i = 0; i < 2; i++) {
        v[3] ^= words[i];
        sip_rounds(v, 2);
        v[0] ^= words[i];
    }
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return (uint32_t)(v[0] ^ v[1] ^ v[2] ^ v[3]);
}

void http_peer_key_make(struct http_peer_key *key)
{
    size_t got = 0;
    while (got < sizeof *key) {
        ssize_t count = getrandom((char *)key + got, sizeof *key - got, 0);
        if (count < 0)
            key->words[0] ^= clock_now_ns(); /* a signal; at worst a poor key */
        else
            got += (size_t)count;
    }
}

static void read_user(int fd, struct http_peer *peer)
{
    struct ucred user = {0};
    socklen_t length = sizeof user;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &length) != 0)
        return;
    peer->family = AF_UNIX;
    memcpy(peer->bytes, &user.uid, sizeof user.uid);
}

void http_peer_read(const struct sockaddr *address, int fd, const struct http_peer_key *key,
                    struct http_peer *peer)
{
    *peer = (struct http_peer){.family = AF_UNSPEC};
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof v4);
        peer->family = AF_INET;
        memcpy(peer->bytes, &v4.sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof v6);
        bool mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
        peer->family = mapped ? AF_INET : AF_INET6;
        memcpy(peer->bytes, v6.sin6_addr.s6_addr + (mapped ? 12 : 0), mapped ? 4 : 16);
    } else if (address->sa_family == AF_UNIX) {
        read_user(fd, peer);
    }
    size_t bytes = peer->family == AF_INET6 ? NETWORK_BYTES : 4;
    if (peer->family != AF_UNSPEC)
        peer->number = hash(key, peer->family, peer->bytes, bytes);
}

void http_peer_show(const struct http_peer *peer, char text[HTTP_PEER_TEXT])
{
    uid_t user;
    memcpy(&user, peer->bytes, sizeof user);
    if (peer->family == AF_UNIX)
        snprintf(text, HTTP_PEER_TEXT, "uid %lu", (unsigned long)user);
    else if (peer->family == AF_UNSPEC)
        snprintf(text, HTTP_PEER_TEXT, "unknown");
    else if (inet_ntop(peer->family, peer->bytes, text, HTTP_PEER_TEXT) == NULL)
        text[0] = '\0';
}
