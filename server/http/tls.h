/* server/http/tls.h: TLS for the HTTP library: certificates, the clients' certificates, and what is
 * sent past the library. The only user of the TLS in GnuTLS, which it hides.
 *
 * TLS 1.2 and 1.3. The library makes the sessions; each is given the credentials that are in force
 * when its connection comes. Credentials that were read anew are for new connections; old ones keep
 * what they began with, and the last of them frees it.
 *
 * With a client CA a client must have a certificate that the CA has signed, for use by clients, and
 * whose subject has a CN: the client's name. An alert says to others what is wrong with theirs.
 *
 * Threads: tls_create, tls_destroy and tls_reload on one; the rest on any, each session on its own.
 */
#ifndef SERVER_HTTP_TLS_H
#define SERVER_HTTP_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/client.h"
#include "base/error.h"

struct tls;
struct tls_credentials;
struct gnutls_session_int; /* a session: gnutls_session_t points to it */

struct tls_files {
    const char *cert, *key, *client_ca; /* paths of PEM files; client_ca NULL: none */
};

/* Reads the files; borrows the paths. BAD_OPTION names option, file and what is wrong. */
ERROR_MUST_CHECK enum error tls_create(const struct tls_files *files, struct tls **tls,
                                       struct failure *failure);
void tls_destroy(struct tls **tls); /* no connection may be left */
/* Reads the files anew. On an error what is in force stays. */
ERROR_MUST_CHECK enum error tls_reload(struct tls *tls, struct failure *failure);
/* When the certificate that is in force ends, in seconds since 1970. */
int64_t tls_expires(struct tls *tls);

/* For the library: versions and ciphers; and where it would ask for a certificate of its own. */
extern const char tls_priorities[];
void *tls_no_certificate(void);

/* Before the handshake: gives the session the credentials in force, held until tls_let_go.
 * *finished becomes true when the client has sent the last part of its handshake. */
struct tls_credentials *tls_begin(struct tls *tls, struct gnutls_session_int *session,
                                  bool *finished);
/* When the session is gone. */
void tls_let_go(struct tls_credentials *credentials);

/* After the handshake: the CN of the client's certificate; false: it has none. */
bool tls_client_name(struct gnutls_session_int *session, char name[CLIENT_NAME_BYTES]);
/* Sends data, without waiting, and says that nothing follows. false: not all of it fitted. */
bool tls_send_last(struct gnutls_session_int *session, const void *data, size_t length);

#endif
