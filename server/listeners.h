/* server/listeners.h: the table of what the daemon listens on: each --listen, and --metrics-listen.
 *
 * Threads: the starting thread.
 */
#ifndef SERVER_LISTENERS_H
#define SERVER_LISTENERS_H

#include "base/option.h"
#include "handlers/exchange.h"
#include "server/listen.h"

#define LISTENERS_MAX 17 /* 16 of --listen, and that of --metrics-listen */

struct listener {
    struct listen_address address;
    const char *text; /* as given; borrowed */
    enum exchange_listener place;
    struct listen sockets;
};

/* Zeroed: none. */
struct listeners {
    struct listener rows[LISTENERS_MAX];
    int count;
    const char *port_path; /* borrowed; NULL: none is to be written */
    struct listen_file port_file;
};

/* Reads the addresses. metrics, port_file: NULL: none. BAD_OPTION names option, value and what is
 * allowed. Borrows the texts. */
ERROR_MUST_CHECK enum error listeners_read(const struct option_list *listen, const char *metrics,
                                           const char *port_file, struct listeners *listeners,
                                           struct failure *failure);
/* Whether strangers are kept out: BAD_OPTION for a listener that others than this machine's users
 * reach. */
ERROR_MUST_CHECK enum error listeners_check_closed(const struct listeners *listeners,
                                                   struct failure *failure);
/* How many doors they need, and how many sockets, of all loops. */
int listeners_doors(const struct listeners *listeners, int loops);
int listeners_sockets(const struct listeners *listeners, int loops);
/* Binds them all, each with a socket for each of the loops; that of the metrics with one. */
ERROR_MUST_CHECK enum error listeners_open(struct listeners *listeners, int loops,
                                           struct failure *failure);
/* The sockets of a loop that serve one place and have one reach, which are the caller's from
 * now on; how many. A second call would find them taken: each is given once. */
int listeners_take(struct listeners *listeners, int loop, enum exchange_listener place,
                   enum listen_reach reach, int fds[LISTENERS_MAX]);
/* Logs a line for each. */
void listeners_log(const struct listeners *listeners);
/* The first TCP port; 0: there is none. of_metrics: that of the metrics' listener. */
int listeners_port(const struct listeners *listeners, bool of_metrics);
/* Writes the first TCP port to the port file, in one step, and through no symbolic link. */
ERROR_MUST_CHECK enum error listeners_write_port(struct listeners *listeners,
                                                 struct failure *failure);
/* Closes what was not taken, and removes socket files and the port file. */
void listeners_close(struct listeners *listeners);

#endif
