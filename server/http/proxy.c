/* server/http/proxy.c: see proxy.h. Threads: any. */
#include "server/http/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define SIGNATURE_BYTES 12
#define SCRATCH_BYTES 1024 /* skipped at once */

enum command {
    LOCAL = 0x20,
    PROXY = 0x21
};

enum family {
    UNSPECIFIED = 0x00,
    STREAM_4 = 0x11,
    STREAM_6 = 0x21,
    STREAM_UNIX = 0x31
};

/* ---- Addresses ---- */

static bool read_network(const char *text, struct proxy_network *network)
{
    char address[INET6_ADDRSTRLEN];
    size_t length = strcspn(text, "/");
    if (length >= sizeof address)
        return false;
    memcpy(address, text, length);
    address[length] = '\0';
    *network = (struct proxy_network){.family = AF_INET, .bits = 32};
    if (inet_pton(AF_INET, address, network->bytes) != 1) {
        *network = (struct proxy_network){.family = AF_INET6, .bits = 128};
        if (inet_pton(AF_INET6, address, network->bytes) != 1)
            return false;
    }
    if (text[length] == '\0')
        return true;
    const char *bits = text + length + 1;
    size_t digits = strlen(bits);
    if (digits < 1 || digits > 3 || strspn(bits, "0123456789") != digits ||
        strtol(bits, NULL, 10) > network->bits)
        return false;
    network->bits = (int)strtol(bits, NULL, 10);
    return true;
}

/* A network of IPv4 addresses inside IPv6 becomes one of IPv4. */
static void unmap(struct proxy_network *network)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    const int bits = 8 * (int)sizeof mapped;
    if (network->family != AF_INET6 || network->bits < bits ||
        memcmp(network->bytes, mapped, sizeof mapped) != 0)
        return;
    network->family = AF_INET;
    network->bits -= bits;
    memmove(network->bytes, network->bytes + sizeof mapped, 4);
}

enum error proxy_list_read(const struct option_list *texts, struct proxy_list *list,
                           struct failure *failure)
{
    *list = (struct proxy_list){0};
    for (int i = 0; i < texts->count; i++) {
        if (!read_network(texts->items[i], &list->networks[i]))
            return failure_set(failure, ERROR_BAD_OPTION,
                               "--proxy-protocol \"%.60s\" is not allowed; give addresses, or "
                               "networks such as 10.0.0.0/8, with commas between.",
                               texts->items[i]);
        unmap(&list->networks[i]);
        list->count++;
    }
    return ERROR_NONE;
}

static bool is_in(const struct proxy_network *network, int family, const unsigned char *bytes)
{
    int whole = network->bits / 8, rest = network->bits % 8;
    if (network->family != family || memcmp(network->bytes, bytes, (size_t)whole) != 0)
        return false;
    return rest == 0 || (network->bytes[whole] ^ bytes[whole]) >> (8 - rest) == 0;
}

bool proxy_list_has(const struct proxy_list *list, const struct sockaddr *address)
{
    unsigned char bytes[16] = {0};
    int family = address->sa_family;
    if (family == AF_INET) {
        memcpy(bytes, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    } else if (family == AF_INET6) {
        const struct in6_addr *v6 =
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        bool mapped = IN6_IS_ADDR_V4MAPPED(v6);
        memcpy(bytes, v6->s6_addr + (mapped ? 12 : 0), mapped ? 4 : 16);
        family = mapped ? AF_INET : AF_INET6;
    }
    for (int i = 0; i < list->count; i++)
        if (is_in(&list->networks[i], family, bytes))
            return true;
    return false;
}

/* ---- Headers ---- */

static uint32_t length_of(const struct proxy_header *header)
{
    return (uint32_t)header->bytes[14] << 8 | header->bytes[15];
}

/* The bytes that the addresses of a family take; SIZE_MAX: there is no such family. */
static size_t address_bytes(int family)
{
    switch (family) {
    case UNSPECIFIED:
        return 0;
    case STREAM_4:
        return 12;
    case STREAM_6:
        return 36;
    case STREAM_UNIX:
        return 216;
    default:
        return SIZE_MAX;
    }
}

static bool is_valid(const struct proxy_header *header)
{
    static const unsigned char signature[SIGNATURE_BYTES] = "\r\n\r\n\0\r\nQUIT\n";
    uint32_t known = header->count < SIGNATURE_BYTES ? header->count : SIGNATURE_BYTES;
    if (memcmp(header->bytes, signature, known) != 0)
        return false;
    if (header->count < PROXY_FIXED)
        return true; /* so far */
    int command = header->bytes[12];
    return command == LOCAL ||
           (command == PROXY && length_of(header) >= address_bytes(header->bytes[13]));
}

enum proxy_state proxy_header_read(struct proxy_header *header, int fd)
{
    for (;;) {
        unsigned char scratch[SCRATCH_BYTES];
        uint32_t end = header->count < PROXY_FIXED ? PROXY_FIXED : PROXY_FIXED + length_of(header);
        uint32_t kept_end = end < PROXY_KEPT ? end : PROXY_KEPT;
        if (header->count >= PROXY_FIXED && header->count == end)
            return PROXY_DONE;
        bool keep = header->count < kept_end;
        uint32_t wanted = (keep ? kept_end : end) - header->count;
        if (!keep && wanted > SCRATCH_BYTES)
            wanted = SCRATCH_BYTES;
        ssize_t count =
            recv(fd, keep ? header->bytes + header->count : scratch, wanted, MSG_DONTWAIT);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN)
            return PROXY_MORE;
        if (count <= 0)
            return PROXY_BAD;
        header->count += (uint32_t)count;
        if (!is_valid(header))
            return PROXY_BAD;
    }
}

bool proxy_header_client(const struct proxy_header *header, struct sockaddr_storage *address,
                         socklen_t *length)
{
    memset(address, 0, sizeof *address);
    if (header->bytes[12] != PROXY)
        return false;
    const unsigned char *source = header->bytes + PROXY_FIXED;
    if (header->bytes[13] == STREAM_4) {
        struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)address;
        v4->sin_family = AF_INET;
        memcpy(&v4->sin_addr, source, 4);
        *length = sizeof *v4;
        return true;
    }
    if (header->bytes[13] == STREAM_6) {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)address;
        v6->sin6_family = AF_INET6;
        memcpy(&v6->sin6_addr, source, 16);
        *length = sizeof *v6;
        return true;
    }
    return false; /* unix or not said: the proxy's own address counts */
}
