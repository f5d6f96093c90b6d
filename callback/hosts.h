/* callback/hosts.h: who may be called back: --allow-callbacks, and which addresses are public.
 *
 * An entry is HOST[/BITS][:PORT]: a name, an address, or a network of addresses; IPv6 stands in
 * brackets. Without a port it allows 80 and 443. Two questions are asked of the list:
 *
 *   - Of a URL, before anything is sent: is its host listed, with its port?
 *   - Of the address that is about to be connected to, whatever name led there: is it public, or
 *     listed itself? A name that is listed makes no private address public.
 *
 * Threads: constant once read; pure functions.
 */
#ifndef CALLBACK_HOSTS_H
#define CALLBACK_HOSTS_H

#include "base/option.h"
#include "callback/url.h"

#define CALLBACK_HOSTS_MAX 64
#define CALLBACK_ENTRY_BYTES 300 /* of an entry as text, its NUL among them */

struct callback_host {
    char name[CALLBACK_HOST_BYTES]; /* of an address: as it was written */
    struct callback_address address;
    int bits; /* of the address that count */
    int port; /* 0: 80 and 443 */
};

struct callback_hosts {
    struct callback_host hosts[CALLBACK_HOSTS_MAX];
    int count; /* 0: no one is called back */
};

/* Adds an entry. BAD_OPTION: it is none, or there are CALLBACK_HOSTS_MAX. */
ERROR_MUST_CHECK enum error callback_hosts_add(struct callback_hosts *hosts, const char *entry,
                                               struct failure *failure);
/* All of a list, into one that is empty. */
ERROR_MUST_CHECK enum error callback_hosts_read(const struct option_list *entries,
                                                struct callback_hosts *hosts,
                                                struct failure *failure);
bool callback_hosts_list_url(const struct callback_hosts *hosts, const struct callback_url *url);
/* May it be connected to? */
bool callback_hosts_allow(const struct callback_hosts *hosts,
                          const struct callback_address *address, int port);
/* Is it one that anyone in the internet means by it? Not so: private, shared, loopback, link-local,
 * multicast, reserved and documentation's addresses, and those of IPv6 that hold one of IPv4
 * (mapped, translated, tunnelled). */
bool callback_address_is_public(const struct callback_address *address);

#endif
