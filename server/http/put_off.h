/* server/http/put_off.h: refusals that come late, for clients that do not wait.
 *
 * A refusal for lack of room asks the client to wait for a second or more. One that comes again
 * sooner, and is refused again, is put off: its connection leaves the HTTP library, no more of the
 * request is read, and the refusal is sent when the second is over, and up to another second, after
 * which the connection closes. The time differs from client to client: those who were refused
 * together would come back together, and be refused together again. So a client costs a descriptor
 * and no processor, and those who were let in have the loops. With TLS the library holds the
 * connection until then, and it stays open.
 *
 * Who is put off keeps no newcomer out: where there are as many connections as are taken, newcomers
 * that owe nothing are let in, and as many others hear of their refusals at the next tick, and
 * close.
 *
 * A connection that is kept is known by itself. A client whose refused connection has closed, and
 * who comes on a new one, is known by its number (peer.h): how many such connections of a number
 * have closed is counted, and as many refusals of new ones are put off. Who shares the number of
 * such a client may be taken for it, and hears of a refusal up to two seconds late: one refusal for
 * each refused connection that has closed.
 *
 * Threads: put_off_owe and put_off_take any; the rest one event loop's. Cost: a compare-and-swap a
 * connection that closes within a second of a refusal, and one a refusal.
 */
#ifndef SERVER_HTTP_PUT_OFF_H
#define SERVER_HTTP_PUT_OFF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "server/http/watch.h"

#define PUT_OFF_NS CLOCK_S /* the smallest Retry-After */
#define PUT_OFF_CLIENTS 4096

/* Of all doors: clients whose refused connections have closed within PUT_OFF_NS. Two whose numbers
 * end alike take each other's place. All zeros: none. */
struct put_off_clients {
    _Atomic int64_t waiting; /* connections that are put off now; with TLS their doors count them */
    _Atomic uint64_t cells[PUT_OFF_CLIENTS];
};

/* A connection of the client has closed that was refused; it shall not come again before until_ns.
 */
void put_off_owe(struct put_off_clients *clients, uint32_t client, uint64_t until_ns,
                 uint64_t now_ns);
/* A new connection of the client is refused: the time of which that is put off; 0: it is not. */
uint64_t put_off_take(struct put_off_clients *clients, uint32_t client, uint64_t now_ns);
/* Whether it would be. */
bool put_off_owes(const struct put_off_clients *clients, uint32_t client, uint64_t now_ns);
/* What a refusal is put off for beyond the second: from 0 to PUT_OFF_NS, evenly. */
uint64_t put_off_spread_ns(uint32_t client, uint64_t now_ns);

struct put_off;

/* max: how many connections may be put off at once. Borrows clients. */
ERROR_MUST_CHECK enum error put_off_create(int max, struct put_off_clients *clients,
                                           struct put_off **put_off, struct failure *failure);
/* put_off_tick has sent all. */
void put_off_destroy(struct put_off **put_off);
/* Keeps a duplicate of fd, and takes the text and empties it. false: there is no place, and nothing
 * has changed. */
bool put_off_add(struct put_off *put_off, int fd, uint32_t client, struct text *refusal,
                 uint64_t until_ns);
/* Sends what is due by then, and as much more as makes min, if there is; the connections linger in
 * watch, and their clients owe a second again. How many. Call it every 100 ms or so. */
int put_off_tick(struct put_off *put_off, struct watch *watch, uint64_t due_ns, int64_t min,
                 uint64_t now_ns);

#endif
