/* handlers/entry.c: who may use a route, and the page that asks a browser for a token.
 *
 * A client that is not known gets 401 wherever it knocks but at the health paths, whether the path
 * exists or not, and without a word on what was wrong with its token. A client that is known and
 * lacks the route's role gets 403.
 *
 * Threads: the exchange's loop. Cost: a comparison a request; a refusal allocates what any error
 * does, and no memory for its body.
 */
#include <stdio.h>
#include <string.h>

#include "handlers/handlers_private.h"

static bool wants_page(const struct exchange *x)
{
    const char *accept = exchange_header(x, "Accept");
    return x->route != NULL && x->route->run == handlers__status_page && accept != NULL &&
           strstr(accept, "text/html") != NULL;
}

static void answer_page(struct exchange *x)
{
    struct exchange_reply reply;
    handlers__count_refusal(x, ERROR_UNAUTHORIZED);
    handlers__reply_open(&reply, error_http_status(ERROR_UNAUTHORIZED));
    handlers__reply_field(&reply, "WWW-Authenticate", HANDLERS_CHALLENGE);
    handlers__login_page(x, &reply);
}

bool handlers__admit(struct exchange *x)
{
    char detail[160];
    unsigned needed = x->route == NULL ? (unsigned)CLIENT_ROLES_ALL : x->route->roles;
    if (needed == 0 || (x->caller != NULL && client_may(x->caller, needed)))
        return true;
    if (x->caller == NULL && wants_page(x)) {
        answer_page(x);
    } else if (x->caller == NULL) {
        handlers__fail_with(x, ERROR_UNAUTHORIZED,
                            "A token that this service knows is needed: send the header "
                            "Authorization: Bearer TOKEN.");
    } else {
        snprintf(detail, sizeof detail,
                 "This path is for clients with the role %s; the token's line in the service's "
                 "token file does not give it.",
                 client_role_name((enum client_role)needed));
        handlers__fail_with(x, ERROR_FORBIDDEN, detail);
    }
    return false;
}
