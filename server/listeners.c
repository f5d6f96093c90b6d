/* server/listeners.c: see listeners.h. Threads: the starting thread. */
#include "server/listeners.h"

#include <string.h>
#include <sys/stat.h>

#include "base/log.h"

static bool is_metrics(const struct listener *row)
{
    return row->place == EXCHANGE_LISTENER_OPERATIONS;
}

static enum error refuse(const char *flag, const char *value, const char *why,
                         struct failure *failure)
{
    return failure_set(failure, ERROR_BAD_OPTION, "--%s \"%s\" is not allowed; %s.", flag, value,
                       why);
}

static enum error add(struct listeners *listeners, const char *flag, const char *text,
                      enum exchange_listener place, struct failure *failure)
{
    struct failure inner = {0};
    struct listener *row = &listeners->rows[listeners->count];
    *row = (struct listener){.text = text, .place = place};
    if (listen_parse(text, &row->address, &inner) != ERROR_NONE)
        return refuse(flag, text, inner.detail, failure);
    listeners->count++;
    return ERROR_NONE;
}

/* A link there could have another file overwritten. */
static enum error check_port_file(const char *path, struct failure *failure)
{
    struct stat file;
    if (path != NULL && lstat(path, &file) == 0 && !S_ISREG(file.st_mode))
        return refuse("port-file", path,
                      S_ISLNK(file.st_mode) ? "it is a symbolic link; give the file itself"
                                            : "it is no plain file",
                      failure);
    return ERROR_NONE;
}

enum error listeners_read(const struct option_list *listen, const char *metrics,
                          const char *port_file, struct listeners *listeners,
                          struct failure *failure)
{
    *listeners = (struct listeners){.port_path = port_file};
    enum exchange_listener place = metrics != NULL ? EXCHANGE_LISTENER_WORK : EXCHANGE_LISTENER_ALL;
    if (listen->count > LISTENERS_MAX - 1)
        return refuse("listen", listen->items[LISTENERS_MAX - 1], "give 16 addresses at most",
                      failure);
    enum error error = check_port_file(port_file, failure);
    for (int i = 0; i < listen->count && error == ERROR_NONE; i++)
        error = add(listeners, "listen", listen->items[i], place, failure);
    if (error == ERROR_NONE && metrics != NULL)
        error = add(listeners, "metrics-listen", metrics, EXCHANGE_LISTENER_OPERATIONS, failure);
    return error;
}

enum error listeners_check_closed(const struct listeners *listeners, struct failure *failure)
{
    for (int i = 0; i < listeners->count; i++) {
        const struct listener *row = &listeners->rows[i];
        const char *flag = is_metrics(row) ? "metrics-listen" : "listen";
        if (listen_reach_of(&row->address) == LISTEN_REACH_NETWORK)
            return failure_set(
                failure, ERROR_BAD_OPTION,
                "--%s \"%.48s\" would let everyone on the network in. Ask for tokens: "
                "invertd --%s %.48s --token-file FILE (line 2 of invertd --new-token NAME goes "
                "there); or for certificates (--tls-client-ca). Give --open where a gateway "
                "guards it. Or listen on 127.0.0.1 or a unix socket.",
                flag, row->text, flag, row->text);
    }
    return ERROR_NONE;
}

int listeners_doors(const struct listeners *listeners, int loops)
{
    bool metrics = false, kinds[LISTEN_REACHES] = {false};
    for (int i = 0; i < listeners->count; i++) {
        const struct listener *row = &listeners->rows[i];
        metrics |= is_metrics(row);
        kinds[listen_reach_of(&row->address)] |= !is_metrics(row);
    }
    return loops * (kinds[0] + kinds[1] + kinds[2]) + metrics;
}

int listeners_sockets(const struct listeners *listeners, int loops)
{
    int sockets = 0;
    for (int i = 0; i < listeners->count; i++)
        sockets += is_metrics(&listeners->rows[i]) ? 1 : loops;
    return sockets;
}

enum error listeners_open(struct listeners *listeners, int loops, struct failure *failure)
{
    enum error error = ERROR_NONE;
    for (int i = 0; i < listeners->count && error == ERROR_NONE; i++) {
        struct listener *row = &listeners->rows[i];
        error = listen_open(&row->address, is_metrics(row) ? 1 : loops, &row->sockets, failure);
    }
    return error;
}

int listeners_take(struct listeners *listeners, int loop, enum exchange_listener place,
                   enum listen_reach reach, int fds[LISTENERS_MAX])
{
    int count = 0;
    for (int i = 0; i < listeners->count; i++) {
        struct listener *row = &listeners->rows[i];
        if (row->place == place && listen_reach_of(&row->address) == reach &&
            loop < row->sockets.count)
            fds[count++] = listen_take(&row->sockets, loop);
    }
    return count;
}

void listeners_log(const struct listeners *listeners)
{
    for (int i = 0; i < listeners->count; i++) {
        const struct listener *row = &listeners->rows[i];
        log_line(LOG_INFO, "listening", "address", LOG_STR, row->text, "port", LOG_I64,
                 (int64_t)row->sockets.port, "serves", LOG_STR,
                 is_metrics(row)                       ? "metrics and health"
                 : row->place == EXCHANGE_LISTENER_ALL ? "all"
                                                       : "all but metrics",
                 NULL);
    }
}

int listeners_port(const struct listeners *listeners, bool of_metrics)
{
    for (int i = 0; i < listeners->count; i++) {
        const struct listener *row = &listeners->rows[i];
        if (is_metrics(row) == of_metrics && row->sockets.port != 0)
            return row->sockets.port;
    }
    return 0;
}

enum error listeners_write_port(struct listeners *listeners, struct failure *failure)
{
    if (listeners->port_path == NULL)
        return ERROR_NONE;
    return listen_write_port(listeners_port(listeners, false), listeners->port_path,
                             &listeners->port_file, failure);
}

void listeners_close(struct listeners *listeners)
{
    for (int i = 0; i < listeners->count; i++)
        listen_close(&listeners->rows[i].sockets);
    if (listeners->port_path != NULL)
        listen_remove(&listeners->port_file, listeners->port_path);
}
