/* base/descriptor.h: short messages between processes, each with one file descriptor or none.
 *
 * Over a pair of sockets (AF_UNIX, SOCK_SEQPACKET), which keep the bounds of messages. What else
 * comes, a longer message or one with several descriptors, is refused, and its descriptors are
 * closed: no peer can fill a process with descriptors that it does not know of.
 *
 * Threads: any; one at a time for each end of a socket.
 */
#ifndef BASE_DESCRIPTOR_H
#define BASE_DESCRIPTOR_H

#include <stddef.h>

#include "base/error.h"

#define DESCRIPTOR_MESSAGE_MAX 256 /* bytes */

struct descriptor_message {
    unsigned char bytes[DESCRIPTOR_MESSAGE_MAX];
    size_t length; /* 0: the other end is closed */
    int fd;        /* the receiver's own, closed on exec; -1: none */
};

/* Makes the two ends, both closed on exec. INTERNAL with words. */
ERROR_MUST_CHECK enum error descriptor_pair(int ends[2], struct failure *failure);
/* For shared memory that a client registers, which an engine is then sent; today tests alone send.
 * Never blocks. fd is borrowed; -1: none. 1 <= length <= DESCRIPTOR_MESSAGE_MAX. FULL: the other
 * end reads too slowly; INTERNAL: there is no other end. */
ERROR_MUST_CHECK enum error descriptor_send(int socket, const void *bytes, size_t length, int fd);
/* Blocks until a message or the end has come. MALFORMED: a message that was refused; the next may
 * be good. INTERNAL: nothing more can come. */
ERROR_MUST_CHECK enum error descriptor_receive(int socket, struct descriptor_message *message);

#endif
