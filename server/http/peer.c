/* server/http/peer.c: see peer.h. Threads: any. */
#include "server/http/peer.h"

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

/* FNV-1a. */
static uint32_t hash(const void *data, size_t length)
{
    const unsigned char *bytes = data;
    uint32_t value = UINT32_C(2166136261);
    for (size_t i = 0; i < length; i++)
        value = (value ^ bytes[i]) * UINT32_C(16777619);
    return value;
}

uint32_t http_peer_hash(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
        return hash(&v4->sin_addr, sizeof v4->sin_addr);
    }
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
        const unsigned char *bytes = v6->sin6_addr.s6_addr;
        if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
            return hash(bytes + 12, 4);
        return hash(bytes, 16);
    }
    return 0;
}

uint32_t http_peer_number(int fd)
{
    struct sockaddr_storage address;
    memset(&address, 0, sizeof address);
    socklen_t length = sizeof address;
    if (getpeername(fd, (struct sockaddr *)&address, &length) != 0)
        return 0;
    if (address.ss_family != AF_UNIX)
        return http_peer_hash((const struct sockaddr *)&address);
    struct ucred user = {0};
    length = sizeof user;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &length) != 0)
        return 0;
    return hash(&user.uid, sizeof user.uid);
}
