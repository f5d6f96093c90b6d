/* base/descriptor.c: see descriptor.h. */
#include "base/descriptor.h"

#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECEIVED_MAX 8 /* descriptors looked at in one message; the kernel closes those beyond */

enum error descriptor_pair(int ends[2], struct failure *failure)
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0)
        return ERROR_NONE;
    return failure_set(failure, ERROR_INTERNAL, "cannot make a pair of sockets: %s",
                       strerror(errno));
}

enum error descriptor_send(int socket, const void *bytes, size_t length, int fd)
{
    assert(length >= 1 && length <= DESCRIPTOR_MESSAGE_MAX);
    alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec piece = {(void *)(uintptr_t)bytes, length};
    struct msghdr header = {.msg_iov = &piece, .msg_iovlen = 1};
    if (fd >= 0) {
        header.msg_control = control;
        header.msg_controllen = sizeof control;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    }
    ssize_t sent;
    do {
        sent = sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return ERROR_NONE;
    return errno == EAGAIN || errno == EWOULDBLOCK ? ERROR_FULL : ERROR_INTERNAL;
}

/* Takes the descriptors of a message; returns how many there are. */
static int take_descriptors(struct msghdr *header, int *fds)
{
    int count = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part != NULL;
         part = CMSG_NXTHDR(header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        size_t bytes = part->cmsg_len - CMSG_LEN(0);
        for (size_t at = 0; at + sizeof *fds <= bytes && count < RECEIVED_MAX; at += sizeof *fds)
            memcpy(&fds[count++], CMSG_DATA(part) + at, sizeof *fds);
    }
    return count;
}

enum error descriptor_receive(int socket, struct descriptor_message *message)
{
    alignas(struct cmsghdr) char control[CMSG_SPACE(RECEIVED_MAX * sizeof(int))];
    struct iovec piece = {message->bytes, sizeof message->bytes};
    struct msghdr header = {.msg_iov = &piece,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof control};
    int fds[RECEIVED_MAX];
    ssize_t received;
    do {
        received = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    } while (received < 0 && errno == EINTR);
    message->length = 0;
    message->fd = -1;
    if (received < 0)
        return ERROR_INTERNAL;
    int count = take_descriptors(&header, fds);
    if (count <= 1 && (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0) {
        message->length = (size_t)received;
        message->fd = count == 1 ? fds[0] : -1;
        return ERROR_NONE;
    }
    for (int i = 0; i < count; i++)
        close(fds[i]);
    return ERROR_MALFORMED;
}
