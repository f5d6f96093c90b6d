/* server/data.c: see data.h. */
#include "server/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/minmax.h"

#define LEASE_MS 5000
/* A piece of a job: a direct request waits that long behind it. Many pieces are under way, and
 * should leave most of the arena to others. */
#define PIECE_COST_NS ((int64_t)CLOCK_MS)
#define PIECE_BYTES (INT64_C(16) << 20)
#define PIECE_ARENA_SHARE 64

/* The first that there is of the folders of the user's own. false: none is. */
static bool find_folder(char *path, size_t size)
{
    static const struct {
        const char *variable, *below;
    } places[] = {
        {"STATE_DIRECTORY", ""}, {"XDG_STATE_HOME", "/invertd"}, {"HOME", "/.local/state/invertd"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *value = getenv(places[i].variable);
        if (value == NULL || value[0] != '/')
            continue;
        int length = (int)strcspn(value, ":"); /* systemd may name several */
        int written = snprintf(path, size, "%.*s%s", length, value, places[i].below);
        return written > 0 && (size_t)written < size;
    }
    return false;
}

static enum error do_without(const char *why)
{
    log_line(LOG_WARNING, "no jobs are taken; --data-dir names a folder for them", "why", LOG_STR,
             why, NULL);
    return ERROR_NONE;
}

enum error data_open(const struct config *config, struct jobs_config *parts, struct jobs **jobs,
                     struct failure *failure)
{
    char path[512];
    const char *named = config->data_dir;
    *jobs = NULL;
    if (named != NULL && strcmp(named, "none") == 0)
        return ERROR_NONE;
    if (named == NULL && !find_folder(path, sizeof path))
        return do_without("the user has no folder for a program's state");
    parts->folder = named != NULL ? named : path;
    parts->result_ttl_ms = config->result_ttl_ns / (int64_t)CLOCK_MS;
    parts->lease_ms = LEASE_MS;
    parts->spool_bytes_max = config->spool_max_bytes;
    parts->piece_cost_ns = PIECE_COST_NS;
    parts->piece_bytes_max = min_i64(PIECE_BYTES, config->arena_size_bytes / PIECE_ARENA_SHARE);
    if (jobs_create(parts, jobs, failure) != ERROR_NONE) {
        if (named == NULL)
            return do_without(failure->detail);
        failure->code = ERROR_BAD_OPTION;
        return ERROR_BAD_OPTION;
    }
    log_line(LOG_INFO, "jobs are kept", "folder", LOG_STR, parts->folder, NULL);
    return ERROR_NONE;
}
