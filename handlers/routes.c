/* handlers/routes.c: one table row a route; matching, Allow.
 *
 * Threads: constant data and pure functions.
 * Cost: rows are tried in order; the busiest stand first. A row that does not fit costs a few
 * bytes of comparison.
 */
#include <assert.h>
#include <string.h>

#include "handlers/handlers_private.h"
#include "handlers/inference.h"
#include "handlers/job_pages.h"
#include "handlers/stream.h"

#define GET (1u << EXCHANGE_GET)
#define POST (1u << EXCHANGE_POST)
#define DELETE (1u << EXCHANGE_DELETE)
#define WORK HANDLERS_PLACE_WORK
#define OPERATIONS HANDLERS_PLACE_OPERATIONS
#define BOTH HANDLERS_PLACE_BOTH
#define INFER                                                                                      \
    POST, CLIENT_INFER, WORK, handlers__v2_infer_begin, handlers__inference_run,                   \
        handlers__inference_drop
#define INVERT                                                                                     \
    POST, CLIENT_INFER, WORK, handlers__v1_invert_begin, handlers__inference_run,                  \
        handlers__inference_drop
#define INDEX                                                                                      \
    POST, CLIENT_INFER, WORK, handlers__v2_index_begin, handlers__v2_index_run,                    \
        handlers__v2_index_drop
/* roles: of the clients that may see it; ANY: all that are known; NONE: also those that are not. */
#define PAGE(roles, place, run) GET, roles, place, NULL, run, NULL
#define NONE 0
#define ANY CLIENT_ROLES_ALL
#define VERSIONS "/v2/models/{model}/versions/{version}"

/* A literal row stands before one with braces that would fit too. */
static const struct handlers_route routes[] = {
    {"/v2/models/{model}/infer", INFER},
    {VERSIONS "/infer", INFER},
    {"/v1/invert", INVERT},
    {"/v1/jobs", PAGE(CLIENT_JOBS, WORK, handlers__jobs_list)},
    {"/v1/jobs/{id}", GET | DELETE, CLIENT_JOBS, WORK, NULL, handlers__job_page, NULL},
    {"/v1/jobs/{id}/result", PAGE(CLIENT_JOBS, WORK, handlers__job_result)},
    {"/v1/jobs/{id}/events", GET, CLIENT_JOBS, WORK, NULL, handlers__job_events,
     handlers__stream_drop},
    {"/v1/methods", PAGE(ANY, WORK, handlers__v1_methods)},
    {"/v1/status", PAGE(CLIENT_METRICS, WORK, handlers__status)},
    {"/v1/events", GET, CLIENT_METRICS, WORK, NULL, handlers__events, handlers__stream_drop},
    {"/v2", PAGE(CLIENT_INFER, WORK, handlers__v2_server)},
    {"/v2/health/live", PAGE(NONE, BOTH, handlers__live)},
    {"/v2/health/ready", PAGE(NONE, BOTH, handlers__ready_answer)},
    {"/v2/models/stats", PAGE(CLIENT_INFER, WORK, handlers__v2_stats)},
    {"/v2/models/{model}", PAGE(CLIENT_INFER, WORK, handlers__v2_model)},
    {"/v2/models/{model}/ready", PAGE(CLIENT_INFER, WORK, handlers__v2_model_ready)},
    {"/v2/models/{model}/config", PAGE(CLIENT_INFER, WORK, handlers__v2_model_config)},
    {"/v2/models/{model}/stats", PAGE(CLIENT_INFER, WORK, handlers__v2_model_stats)},
    {VERSIONS, PAGE(CLIENT_INFER, WORK, handlers__v2_model)},
    {VERSIONS "/ready", PAGE(CLIENT_INFER, WORK, handlers__v2_model_ready)},
    {VERSIONS "/config", PAGE(CLIENT_INFER, WORK, handlers__v2_model_config)},
    {VERSIONS "/stats", PAGE(CLIENT_INFER, WORK, handlers__v2_model_stats)},
    {"/v2/repository/index", INDEX},
    {"/livez", PAGE(NONE, OPERATIONS, handlers__live)},
    {"/readyz", PAGE(NONE, OPERATIONS, handlers__ready_answer)},
    {"/metrics", PAGE(CLIENT_METRICS, OPERATIONS, handlers__metrics)},
    {"/openapi.yaml", PAGE(ANY, WORK, handlers__openapi)},
    {"/", PAGE(CLIENT_METRICS, WORK, handlers__status_page)},
};
#define ROUTE_COUNT ((int)(sizeof routes / sizeof routes[0]))

/* The verbs a row can name, in the order of Allow. HEAD and OPTIONS follow from them. */
static const struct {
    enum exchange_verb verb;
    const char *name;
} verb_names[] = {
    {EXCHANGE_GET, "GET, HEAD, "},
    {EXCHANGE_POST, "POST, "},
    {EXCHANGE_PUT, "PUT, "},
    {EXCHANGE_DELETE, "DELETE, "},
};

bool handlers__route_match(const char *pattern, const char *path, struct handlers__path *found)
{
    *found = (struct handlers__path){0};
    while (*pattern != '\0') {
        if (*pattern != '{') {
            if (*pattern++ != *path++)
                return false;
            continue;
        }
        size_t length = strcspn(path, "/");
        if (length == 0)
            return false;
        if (pattern[1] == 'm') {
            found->model = path;
            found->model_length = length;
        } else if (pattern[1] == 'i') {
            found->id = path;
            found->id_length = length;
        } else {
            found->version = path;
            found->version_length = length;
        }
        path += length;
        pattern = strchr(pattern, '}') + 1;
    }
    return *path == '\0';
}

static bool serves(enum handlers__place place, enum exchange_listener listener)
{
    switch (listener) {
    case EXCHANGE_LISTENER_WORK:
        return (place & HANDLERS_PLACE_WORK) != 0;
    case EXCHANGE_LISTENER_OPERATIONS:
        return (place & HANDLERS_PLACE_OPERATIONS) != 0;
    case EXCHANGE_LISTENER_ALL:
        break;
    }
    return true;
}

const struct handlers_route *handlers__route_find(const char *path, enum exchange_listener listener)
{
    struct handlers__path found;
    for (int i = 0; i < ROUTE_COUNT; i++)
        if (handlers__route_match(routes[i].pattern, path, &found))
            return serves(routes[i].place, listener) ? &routes[i] : NULL;
    return NULL;
}

bool handlers_is_health(const struct exchange *x)
{
    /* The first letters rule the busy routes out. */
    if (strncmp(x->path, "/v2/health/", 11) != 0 && strcmp(x->path, "/livez") != 0 &&
        strcmp(x->path, "/readyz") != 0)
        return false;
    return handlers__route_find(x->path, x->listener) != NULL;
}

bool handlers__route_allows(const struct handlers_route *route, enum exchange_verb verb)
{
    if (verb == EXCHANGE_HEAD)
        verb = EXCHANGE_GET;
    return verb == EXCHANGE_OPTIONS || (route->verbs & (1u << verb)) != 0;
}

void handlers__route_allow(const struct handlers_route *route, struct text *allow)
{
    for (size_t i = 0; i < sizeof verb_names / sizeof verb_names[0]; i++)
        if ((route->verbs & (1u << verb_names[i].verb)) != 0)
            text_puts(allow, verb_names[i].name);
    text_puts(allow, "OPTIONS");
}

int handlers__route_count(void)
{
    return ROUTE_COUNT;
}

const struct handlers_route *handlers__route_at(int index)
{
    assert(index >= 0 && index < handlers__route_count());
    return &routes[index];
}
