/* server/http/site.h: which site a request is meant for, and which site's page sent it.
 *
 * A page in a user's browser may send requests to a daemon on the user's own machine. Two rules
 * keep it out:
 *
 * - A loopback listener serves loopback names and addresses, and names that are listed. A name that
 *   a page's owner has pointed at 127.0.0.1 (DNS rebinding) is none of them.
 * - A page of another site is refused, unless that is listed. Browsers name the page's site in
 * Origin, but not for every form; then Sec-Fetch-Site says so, which no page can change. Without
 * Origin only what changes nothing (GET, HEAD, OPTIONS) is served to it, and no page can read such
 * an answer.
 *
 * Threads: pure functions. Cost: a few comparisons.
 */
#ifndef SERVER_HTTP_SITE_H
#define SERVER_HTTP_SITE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/option.h"
#include "server/http/guard.h"

/* Of a door. */
struct site_rules {
    bool loopback;                     /* its listeners are loopback's */
    const struct option_list *hosts;   /* served there besides loopback's; NULL: none */
    const struct option_list *origins; /* whose pages may ask; NULL: none */
};

/* What a request says. The fields may be NULL. */
struct site_claims {
    const struct http_guard_field *host, *origin, *fetch_site;
    const char *authority; /* of an absolute target, which counts instead of Host; NULL: none */
    size_t authority_length;
    bool reads;    /* GET, HEAD, OPTIONS */
    bool any_host; /* served under any Host */
};

/* BAD_OPTION for what no Host field holds besides its port, and so would never match. */
ERROR_MUST_CHECK enum error site_check_hosts(const struct option_list *hosts,
                                             struct failure *failure);
/* BAD_OPTION for what is no origin. */
ERROR_MUST_CHECK enum error site_check_origins(const struct option_list *origins,
                                               struct failure *failure);

/* NONE, or MISDIRECTED, FORBIDDEN and a sentence that says why (constant text). *listed: the origin
 * of another site, as listed, that the answer has to name; NULL: it names none. */
ERROR_MUST_CHECK enum error site_check(const struct site_rules *rules,
                                       const struct site_claims *claims, const char **listed,
                                       const char **why);

#endif
