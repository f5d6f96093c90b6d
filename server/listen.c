/* server/listen.c: see listen.h. Threads: the starting thread. */
#include "server/listen.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096

/* ---- Addresses ---- */

static bool is_port(const char *text)
{
    size_t length = strlen(text);
    return length >= 1 && length <= 5 && strspn(text, "0123456789") == length &&
           strtol(text, NULL, 10) <= 65535;
}

enum error listen_parse(const char *text, struct listen_address *address, struct failure *failure)
{
    *address = (struct listen_address){0};
    if (strncmp(text, "unix:", 5) == 0) {
        size_t length = strlen(text + 5);
        if (length == 0 || length >= sizeof address->path)
            return failure_set(failure, ERROR_BAD_OPTION, "give unix: and a path of 1 to %d bytes",
                               LISTEN_PATH_MAX - 1);
        address->is_unix = true;
        memcpy(address->path, text + 5, length);
        return ERROR_NONE;
    }
    const char *host = text, *colon = strrchr(text, ':'), *end = colon;
    if (text[0] == '[') {
        host = text + 1;
        end = strchr(text, ']');
        if (end != NULL && end + 1 != colon)
            end = NULL;
    } else if (colon != NULL && strchr(text, ':') != colon) {
        end = NULL; /* IPv6 without brackets: which colon is meant? */
    }
    if (colon == NULL || end == NULL || end == host || !is_port(colon + 1) ||
        (size_t)(end - host) >= sizeof address->host)
        return failure_set(failure, ERROR_BAD_OPTION, "give HOST:PORT, [IPV6]:PORT or unix:PATH");
    memcpy(address->host, host, (size_t)(end - host));
    snprintf(address->port, sizeof address->port, "%s", colon + 1);
    return ERROR_NONE;
}

/* ---- Files ---- */

static struct listen_file look_at(const char *path)
{
    struct stat file;
    if (lstat(path, &file) != 0)
        return (struct listen_file){0};
    return (struct listen_file){true, file.st_dev, file.st_ino, file.st_mtim};
}

/* Removes the file unless another daemon has put its own there since. Once the file is gone its
 * inode's number may be that other file's: so the time counts too. */
void listen_remove(struct listen_file *own, const char *path)
{
    struct listen_file now = look_at(path);
    if (own->exists && now.exists && now.device == own->device && now.inode == own->inode &&
        now.modified.tv_sec == own->modified.tv_sec &&
        now.modified.tv_nsec == own->modified.tv_nsec)
        unlink(path);
    own->exists = false;
}

/* ---- Sockets ---- */

static enum error cannot(const char *name, struct failure *failure)
{
    int number = errno;
    return failure_set(failure, ERROR_INTERNAL, "cannot listen on %s: %s", name,
                       number == EADDRINUSE ? "it is in use already" : strerror(number));
}

static bool set_flag(int fd, int level, int option, bool on)
{
    int value = on;
    return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

/* [::] takes IPv4 connections too, whatever the system's default is; other addresses do not. */
static bool set_families(int fd, const struct addrinfo *info)
{
    if (info->ai_family != AF_INET6)
        return true;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)info->ai_addr;
    return set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY, !IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr));
}

static int port_of(int fd)
{
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    memset(&bound, 0, sizeof bound);
    if (getsockname(fd, (struct sockaddr *)&bound, &length) != 0)
        return 0;
    if (bound.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)(void *)&bound)->sin6_port);
    return ntohs(((struct sockaddr_in *)(void *)&bound)->sin_port);
}

/* Binds one socket; the first one without SO_REUSEPORT, which it is given afterwards, so that it
 * fails where another program has the port already. */
static int bind_tcp(const struct addrinfo *info, bool first, bool shared)
{
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    /* REUSEADDR: old connections in TIME_WAIT do not count. */
    bool good = set_flag(fd, SOL_SOCKET, SO_REUSEADDR, true) && set_families(fd, info) &&
                (first || set_flag(fd, SOL_SOCKET, SO_REUSEPORT, true)) &&
                bind(fd, info->ai_addr, info->ai_addrlen) == 0 &&
                (!first || !shared || set_flag(fd, SOL_SOCKET, SO_REUSEPORT, true)) &&
                listen(fd, BACKLOG) == 0;
    if (good)
        return fd;
    int number = errno;
    close(fd);
    errno = number;
    return -1;
}

static enum error open_tcp(int count, struct listen *sockets, struct failure *failure)
{
    const struct listen_address *address = &sockets->address;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *info = NULL;
    char name[300];
    snprintf(name, sizeof name, strchr(address->host, ':') != NULL ? "[%s]:%s" : "%s:%s",
             address->host, address->port);
    int code = getaddrinfo(address->host, address->port, &hints, &info);
    if (code != 0)
        return failure_set(failure, ERROR_INTERNAL, "cannot listen on %s: %s", name,
                           gai_strerror(code));
    enum error error = ERROR_NONE;
    while (sockets->count < count && error == ERROR_NONE) {
        int fd = bind_tcp(info, sockets->count == 0, count > 1);
        if (fd < 0) {
            error = cannot(name, failure);
            break;
        }
        sockets->fds[sockets->count++] = fd;
        if (sockets->count > 1)
            continue;
        sockets->port = port_of(fd);
        /* Where port 0 was asked for, the others take the one that was given. */
        if (info->ai_family == AF_INET6)
            ((struct sockaddr_in6 *)(void *)info->ai_addr)->sin6_port =
                htons((uint16_t)sockets->port);
        else
            ((struct sockaddr_in *)(void *)info->ai_addr)->sin_port =
                htons((uint16_t)sockets->port);
    }
    freeaddrinfo(info);
    return error;
}

/* Whether the file is not a socket, or something answers on it. */
static bool is_taken(const struct sockaddr_un *name)
{
    struct stat file;
    if (lstat(name->sun_path, &file) == 0 && !S_ISSOCK(file.st_mode))
        return true;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return true; /* unknown: leave the file alone */
    bool answered = connect(fd, (const struct sockaddr *)name, sizeof *name) == 0 ||
                    (errno != ECONNREFUSED && errno != ENOENT);
    close(fd);
    return answered;
}

/* The folder decides who may connect, not the umask of who started the daemon. The mode comes with
 * the file: at a later moment the path may lead elsewhere. */
static int bind_unix(int fd, const struct sockaddr_un *name)
{
    mode_t before = umask(0111);
    int code = bind(fd, (const struct sockaddr *)name, sizeof *name), number = errno;
    umask(before);
    errno = number;
    return code;
}

static enum error open_unix(int count, struct listen *sockets, struct failure *failure)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const char *path = sockets->address.path;
    memcpy(name.sun_path, path, sizeof name.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return cannot(path, failure);
    int code = bind_unix(fd, &name);
    if (code != 0 && errno == EADDRINUSE && !is_taken(&name)) {
        unlink(path);
        code = bind_unix(fd, &name);
    }
    if (code != 0) {
        enum error error = cannot(path, failure);
        close(fd);
        return error;
    }
    sockets->fds[sockets->count++] = fd;
    sockets->socket_file = look_at(path);
    if (listen(fd, BACKLOG) != 0)
        return cannot(path, failure);
    while (sockets->count < count) {
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (copy < 0)
            return cannot(path, failure);
        sockets->fds[sockets->count++] = copy;
    }
    return ERROR_NONE;
}

enum listen_reach listen_reach_of(const struct listen_address *address)
{
    struct in_addr ipv4;
    if (address->is_unix)
        return LISTEN_REACH_UNIX;
    bool loopback = strcasecmp(address->host, "localhost") == 0 ||
                    strcmp(address->host, "::1") == 0 ||
                    (inet_pton(AF_INET, address->host, &ipv4) == 1 &&
                     ntohl(ipv4.s_addr) >> 24 == IN_LOOPBACKNET);
    return loopback ? LISTEN_REACH_LOOPBACK : LISTEN_REACH_NETWORK;
}

enum error listen_open(const struct listen_address *address, int count, struct listen *sockets,
                       struct failure *failure)
{
    *sockets = (struct listen){.address = *address};
    if (count < 1 || count > LISTEN_MAX)
        return failure_set(failure, ERROR_INTERNAL, "%d event loops are too many", count);
    enum error error =
        address->is_unix ? open_unix(count, sockets, failure) : open_tcp(count, sockets, failure);
    if (error != ERROR_NONE)
        listen_close(sockets);
    return error;
}

int listen_take(struct listen *sockets, int index)
{
    assert(index >= 0 && index < sockets->count && sockets->fds[index] >= 0);
    int fd = sockets->fds[index];
    sockets->fds[index] = -1;
    return fd;
}

void listen_close(struct listen *sockets)
{
    for (int i = 0; i < sockets->count; i++)
        if (sockets->fds[i] >= 0)
            close(sockets->fds[i]);
    sockets->count = 0;
    listen_remove(&sockets->socket_file, sockets->address.path);
}

static enum error cannot_write(const char *path, const char *why, struct failure *failure)
{
    return failure_set(failure, ERROR_INTERNAL, "cannot write the port file %.200s: %s", path, why);
}

enum error listen_write_port(int port, const char *path, struct listen_file *written,
                             struct failure *failure)
{
    char temporary[4096];
    struct stat target;
    int length = snprintf(temporary, sizeof temporary, "%s.new", path);
    if (length < 0 || (size_t)length >= sizeof temporary)
        return cannot_write(path, "its path is too long", failure);
    if (lstat(path, &target) == 0 && S_ISLNK(target.st_mode))
        return cannot_write(path, "it is a symbolic link", failure);
    unlink(temporary); /* of a daemon that was killed */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return cannot_write(path, strerror(errno), failure);
    bool good = dprintf(fd, "%d\n", port) > 0;
    good &= close(fd) == 0;
    struct listen_file made = look_at(temporary); /* a rename changes none of it */
    if (!good || rename(temporary, path) != 0)
        return cannot_write(path, strerror(errno), failure);
    *written = made;
    return ERROR_NONE;
}
