/* callback/hosts.c: see hosts.h. */
#include "callback/hosts.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#define BITS_4 32
#define BITS_6 128

/* ---- Addresses ---- */

struct network {
    uint8_t bytes[16];
    int bits;
};

/* As in IANA's registry of special-purpose IPv4 addresses, multicast added. */
static const struct network special_4[] = {
    {{0}, 8},             /* this network */
    {{10}, 8},            /* private */
    {{100, 64}, 10},      /* shared, behind a carrier's NAT */
    {{127}, 8},           /* loopback */
    {{169, 254}, 16},     /* link-local */
    {{172, 16}, 12},      /* private */
    {{192, 0, 0}, 24},    /* protocols */
    {{192, 0, 2}, 24},    /* documentation */
    {{192, 88, 99}, 24},  /* relays of 6to4 */
    {{192, 168}, 16},     /* private */
    {{198, 18}, 15},      /* benchmarks */
    {{198, 51, 100}, 24}, /* documentation */
    {{203, 0, 113}, 24},  /* documentation */
    {{224}, 4},           /* multicast */
    {{240}, 4},           /* reserved, broadcast */
};

/* Of IPv6 only 2000::/3 is given out to hosts at all; in it these are not. */
static const struct network global_6 = {{0x20}, 3};
static const struct network special_6[] = {
    {{0x20, 0x01}, 23},             /* protocols, Teredo's tunnels */
    {{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documentation */
    {{0x20, 0x02}, 16},             /* 6to4: holds an address of IPv4 */
    {{0x3f, 0xff}, 20},             /* documentation */
};

static bool has_prefix(const uint8_t *bytes, const uint8_t *prefix, int bits)
{
    int whole = bits / 8, rest = bits % 8;
    uint8_t mask = (uint8_t)(0xff00 >> rest);
    return memcmp(bytes, prefix, (size_t)whole) == 0 &&
           (rest == 0 || ((bytes[whole] ^ prefix[whole]) & mask) == 0);
}

static bool is_in(const struct callback_address *address, const struct network *networks,
                  size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (has_prefix(address->bytes, networks[i].bytes, networks[i].bits))
            return true;
    return false;
}

bool callback_address_is_public(const struct callback_address *address)
{
    if (address->family == AF_INET)
        return !is_in(address, special_4, sizeof special_4 / sizeof special_4[0]);
    return address->family == AF_INET6 && is_in(address, &global_6, 1) &&
           !is_in(address, special_6, sizeof special_6 / sizeof special_6[0]);
}

/* ---- The list ---- */

static bool has_port(const struct callback_host *host, int port)
{
    return host->port != 0 ? host->port == port
                           : port == CALLBACK_PORT_HTTP || port == CALLBACK_PORT_HTTPS;
}

static bool covers(const struct callback_host *host, const struct callback_address *address,
                   int port)
{
    return host->address.family != 0 && host->address.family == address->family &&
           has_prefix(address->bytes, host->address.bytes, host->bits) && has_port(host, port);
}

static bool is_listed(const struct callback_hosts *hosts, const struct callback_address *address,
                      int port)
{
    for (int i = 0; i < hosts->count; i++)
        if (covers(&hosts->hosts[i], address, port))
            return true;
    return false;
}

bool callback_hosts_list_url(const struct callback_hosts *hosts, const struct callback_url *url)
{
    if (url->address.family != 0)
        return is_listed(hosts, &url->address, url->port);
    for (int i = 0; i < hosts->count; i++)
        if (hosts->hosts[i].address.family == 0 && strcmp(hosts->hosts[i].name, url->host) == 0 &&
            has_port(&hosts->hosts[i], url->port))
            return true;
    return false;
}

bool callback_hosts_allow(const struct callback_hosts *hosts,
                          const struct callback_address *address, int port)
{
    return callback_address_is_public(address) || is_listed(hosts, address, port);
}

/* ---- Entries ---- */

/* /BITS and :PORT, both of which may be missing. */
static bool read_rest(const char *text, struct callback_host *host)
{
    host->bits = host->address.family == AF_INET ? BITS_4 : BITS_6;
    if (*text == '/') {
        size_t digits = strcspn(++text, ":");
        int bits = callback_port_read(text, digits); /* a number from 1 on */
        if (host->address.family == 0 || bits < 1 || bits > host->bits)
            return false;
        host->bits = bits;
        text += digits;
    }
    if (*text == ':')
        host->port = callback_port_read(text + 1, strlen(text + 1));
    return host->port >= 0 && (*text == '\0' || *text == ':');
}

enum error callback_hosts_add(struct callback_hosts *hosts, const char *entry,
                              struct failure *failure)
{
    struct callback_host host = {.port = 0};
    const char *bracket = entry[0] == '[' ? strchr(entry, ']') : NULL;
    size_t length = bracket != NULL ? (size_t)(bracket - entry) + 1 : strcspn(entry, "/:");
    if (hosts->count == CALLBACK_HOSTS_MAX)
        return failure_set(failure, ERROR_BAD_OPTION, "--allow-callbacks takes %d hosts at most.",
                           CALLBACK_HOSTS_MAX);
    if (strlen(entry) >= CALLBACK_ENTRY_BYTES ||
        !callback_host_read(entry, length, host.name, &host.address) ||
        !read_rest(entry + length, &host))
        return failure_set(failure, ERROR_BAD_OPTION,
                           "--allow-callbacks \"%.100s\" is not allowed; give HOST[:PORT], "
                           "ADDRESS[:PORT] or ADDRESS/BITS[:PORT], with IPv6 in brackets, as in "
                           "hooks.example.com, 10.0.0.0/8:9000 or [fd00::1]:9000.",
                           entry);
    hosts->hosts[hosts->count++] = host;
    return ERROR_NONE;
}

enum error callback_hosts_read(const struct option_list *entries, struct callback_hosts *hosts,
                               struct failure *failure)
{
    enum error error = ERROR_NONE;
    for (int i = 0; i < entries->count && error == ERROR_NONE; i++)
        error = callback_hosts_add(hosts, entries->items[i], failure);
    return error;
}
