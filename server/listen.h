/* server/listen.h: listening sockets: one for each event loop, all on one address. [::] is both
 * families' any; any other IPv6 address, like any IPv4 address, is its own family's alone.
 *
 * A TCP port is shared by the loops through SO_REUSEPORT, which would also share it with another
 * daemon of the same user without a word: so the first socket is bound without it, and only then
 * lets others in. A unix socket is one socket with a descriptor for each loop. A stale socket file
 * is replaced only if no process answers there. A daemon that ends leaves alone what its successor
 * has put in the place of its files.
 *
 * Threads: the starting thread.
 */
#ifndef SERVER_LISTEN_H
#define SERVER_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/error.h"

#define LISTEN_MAX 64       /* sockets on one address */
#define LISTEN_PATH_MAX 108 /* bytes of a unix socket's path, its NUL among them */

struct listen_address {
    bool is_unix;
    char host[256]; /* a name or an address, without brackets */
    char port[8];
    char path[LISTEN_PATH_MAX];
};

/* A file as it was when it was made, to know it again. */
struct listen_file {
    bool exists;
    dev_t device;
    ino_t inode;
    struct timespec modified;
};

struct listen {
    struct listen_address address;
    int port; /* the one that was taken; 0 for a unix socket */
    int count;
    int fds[LISTEN_MAX]; /* -1: given away by listen_take */
    struct listen_file socket_file;
};

/* Who can reach a listener. */
enum listen_reach {
    LISTEN_REACH_UNIX,     /* whom the socket's folder lets in */
    LISTEN_REACH_LOOPBACK, /* this machine's users */
    LISTEN_REACH_NETWORK,  /* others; also any name but localhost */
    LISTEN_REACHES
};

/* "127.0.0.1:8000", "[::1]:8000", "localhost:0", "unix:/run/invertd.sock". BAD_OPTION with what is
 * allowed. */
ERROR_MUST_CHECK enum error listen_parse(const char *text, struct listen_address *address,
                                         struct failure *failure);

enum listen_reach listen_reach_of(const struct listen_address *address);

/* Binds and listens with count sockets, all non-blocking and close-on-exec. May ask a name server.
 */
ERROR_MUST_CHECK enum error listen_open(const struct listen_address *address, int count,
                                        struct listen *sockets, struct failure *failure);
/* One of the descriptors; the caller's from now on. */
int listen_take(struct listen *sockets, int index);
/* Closes what was not taken and removes a unix socket's file, unless it is another daemon's by
 * now. Safe on a zeroed struct. */
void listen_close(struct listen *sockets);

/* Writes "PORT\n" to the file, in one step: a reader sees all of it or no file. A symbolic link at
 * the path is an error, and none is ever followed. */
ERROR_MUST_CHECK enum error listen_write_port(int port, const char *path,
                                              struct listen_file *written, struct failure *failure);
/* Removes a file that was written or made, unless it is another daemon's by now. */
void listen_remove(struct listen_file *own, const char *path);

#endif
