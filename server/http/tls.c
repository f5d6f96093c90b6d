/* server/http/tls.c: see tls.h. */
#include "server/http/tls.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/trusted_file.h"

#define CERTIFICATES_MAX 16 /* of a chain */

const char tls_priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE";

struct tls_credentials {
    _Atomic int64_t users;
    gnutls_certificate_credentials_t gnutls;
    int64_t expires;
    bool clients; /* must have certificates */
};

struct tls {
    struct tls_files files;
    pthread_mutex_t lock; /* guards current */
    struct tls_credentials *current;
};

/* ---- Credentials ---- */

static gnutls_datum_t datum(const struct trusted_file *file)
{
    return (gnutls_datum_t){(unsigned char *)file->data, (unsigned)file->size};
}

static enum error read_certificate(const struct trusted_file *cert,
                                   struct tls_credentials *credentials, struct failure *failure)
{
    gnutls_x509_crt_t chain[CERTIFICATES_MAX];
    unsigned count = CERTIFICATES_MAX;
    gnutls_datum_t data = datum(cert);
    int code = gnutls_x509_crt_list_import(chain, &count, &data, GNUTLS_X509_FMT_PEM,
                                           GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);
    if (code < 1)
        return trusted_file_refuse(cert, "it holds no chain of 1 to 16 PEM certificates", failure);
    credentials->expires = gnutls_x509_crt_get_expiration_time(chain[0]);
    for (int i = 0; i < code; i++)
        gnutls_x509_crt_deinit(chain[i]);
    return ERROR_NONE;
}

static enum error read_key(const struct trusted_file *key, struct failure *failure)
{
    gnutls_x509_privkey_t parsed;
    if (gnutls_x509_privkey_init(&parsed) != 0)
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    gnutls_datum_t data = datum(key);
    int code = gnutls_x509_privkey_import2(parsed, &data, GNUTLS_X509_FMT_PEM, NULL, 0);
    gnutls_x509_privkey_deinit(parsed);
    if (code == 0)
        return ERROR_NONE;
    return trusted_file_refuse(key, "it holds no PEM private key without a passphrase", failure);
}

/* Names the reason to the client: the library closes the connection of a handshake that failed. */
static void refuse_client(gnutls_session_t session, gnutls_alert_description_t why)
{
    (void)gnutls_alert_send(session, GNUTLS_AL_FATAL, why);
}

/* A client is known by the subject's CN, so a certificate without one is none. */
static int verify_client(gnutls_session_t session)
{
    char name[CLIENT_NAME_BYTES];
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                     .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT};
    unsigned status = 0;
    int code = gnutls_certificate_verify_peers(session, &purpose, 1, &status);
    if (code == 0 && status == 0 && tls_client_name(session, name))
        return 0;
    refuse_client(session, (status & GNUTLS_CERT_SIGNER_NOT_FOUND) != 0 ? GNUTLS_A_UNKNOWN_CA
                                                                        : GNUTLS_A_BAD_CERTIFICATE);
    return GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR;
}

static enum error fill(struct tls_credentials *credentials, struct trusted_file files[3],
                       struct failure *failure)
{
    struct trusted_file *cert = &files[0], *key = &files[1], *ca = &files[2];
    enum error error = ERROR_NONE;
    for (int i = 0; i < 3 && error == ERROR_NONE; i++)
        if (files[i].path != NULL)
            error = trusted_file_read(&files[i], failure);
    if (error == ERROR_NONE)
        error = read_certificate(cert, credentials, failure);
    if (error == ERROR_NONE)
        error = read_key(key, failure);
    if (error != ERROR_NONE)
        return error;
    gnutls_datum_t cert_data = datum(cert), key_data = datum(key), ca_data = datum(ca);
    if (gnutls_certificate_set_x509_key_mem2(credentials->gnutls, &cert_data, &key_data,
                                             GNUTLS_X509_FMT_PEM, NULL, 0) < 0)
        return trusted_file_refuse(key, "it is not the key of the first certificate of --tls-cert",
                                   failure);
    if (ca->path == NULL)
        return ERROR_NONE;
    if (gnutls_certificate_set_x509_trust_mem(credentials->gnutls, &ca_data, GNUTLS_X509_FMT_PEM) <
        1)
        return trusted_file_refuse(ca, "it holds no PEM certificate", failure);
    credentials->clients = true;
    gnutls_certificate_set_verify_function(credentials->gnutls, verify_client);
    return ERROR_NONE;
}

static enum error make_credentials(const struct tls_files *paths, struct tls_credentials **result,
                                   struct failure *failure)
{
    struct trusted_file files[] = {{.flag = "tls-cert", .path = paths->cert},
                                   {.flag = "tls-key", .path = paths->key, .secret = true},
                                   {.flag = "tls-client-ca", .path = paths->client_ca}};
    struct tls_credentials *credentials = calloc(1, sizeof *credentials);
    if (credentials == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    credentials->users = 1;
    enum error error = ERROR_INTERNAL;
    if (gnutls_certificate_allocate_credentials(&credentials->gnutls) == 0)
        error = fill(credentials, files, failure);
    for (int i = 0; i < 3; i++)
        trusted_file_forget(&files[i]);
    if (error == ERROR_NONE)
        *result = credentials;
    else
        tls_let_go(credentials);
    return error;
}

/* ---- Life ---- */

enum error tls_create(const struct tls_files *files, struct tls **result, struct failure *failure)
{
    struct tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL)
        return failure_set(failure, ERROR_INTERNAL, "out of memory");
    tls->files = *files;
    enum error error = make_credentials(files, &tls->current, failure);
    if (error != ERROR_NONE) {
        free(tls);
        return error;
    }
    pthread_mutex_init(&tls->lock, NULL);
    *result = tls;
    return ERROR_NONE;
}

void tls_destroy(struct tls **tls)
{
    if (*tls == NULL)
        return;
    tls_let_go((*tls)->current);
    pthread_mutex_destroy(&(*tls)->lock);
    free(*tls);
    *tls = NULL;
}

enum error tls_reload(struct tls *tls, struct failure *failure)
{
    struct tls_credentials *fresh = NULL;
    enum error error = make_credentials(&tls->files, &fresh, failure);
    if (error != ERROR_NONE)
        return error;
    pthread_mutex_lock(&tls->lock);
    struct tls_credentials *old = tls->current;
    tls->current = fresh;
    pthread_mutex_unlock(&tls->lock);
    tls_let_go(old);
    return ERROR_NONE;
}

int64_t tls_expires(struct tls *tls)
{
    pthread_mutex_lock(&tls->lock);
    int64_t expires = tls->current->expires;
    pthread_mutex_unlock(&tls->lock);
    return expires;
}

static int refuse_certificate(gnutls_session_t session, const gnutls_datum_t *authorities,
                              int authority_count, const gnutls_pk_algorithm_t *algorithms,
                              int algorithm_count, gnutls_pcert_st **certificate,
                              unsigned *certificate_count, gnutls_privkey_t *key)
{
    (void)session;
    (void)authorities;
    (void)authority_count;
    (void)algorithms;
    (void)algorithm_count;
    (void)certificate;
    (void)certificate_count;
    (void)key;
    return -1;
}

/* The library wants some certificate to start; tls_begin gives every session another. */
void *tls_no_certificate(void)
{
    return (void *)refuse_certificate;
}

/* ---- Sessions ---- */

/* A client that has no certificate sends a list without any: 3 bytes of its length, and with TLS
 * 1.3 one more before them. */
static bool is_empty_list(const gnutls_datum_t *message)
{
    return message->size <= 4;
}

static int on_message(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
                      const gnutls_datum_t *message)
{
    bool *finished = gnutls_db_get_ptr(session);
    (void)when;
    if (incoming != 0 && type == GNUTLS_HANDSHAKE_FINISHED)
        *finished = true;
    if (incoming != 0 && type == GNUTLS_HANDSHAKE_CERTIFICATE_PKT && is_empty_list(message))
        refuse_client(session, gnutls_protocol_get_version(session) == GNUTLS_TLS1_3
                                   ? GNUTLS_A_CERTIFICATE_REQUIRED
                                   : GNUTLS_A_HANDSHAKE_FAILURE);
    return 0;
}

struct tls_credentials *tls_begin(struct tls *tls, gnutls_session_t session, bool *finished)
{
    pthread_mutex_lock(&tls->lock);
    struct tls_credentials *credentials = tls->current;
    atomic_fetch_add(&credentials->users, 1);
    pthread_mutex_unlock(&tls->lock);
    (void)gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials->gnutls);
    gnutls_certificate_server_set_request(session, credentials->clients ? GNUTLS_CERT_REQUIRE
                                                                        : GNUTLS_CERT_IGNORE);
    *finished = false;
    gnutls_db_set_ptr(session, finished); /* the session's own pointer is the library's */
    gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_ANY, GNUTLS_HOOK_POST, on_message);
    return credentials;
}

void tls_let_go(struct tls_credentials *credentials)
{
    if (credentials == NULL || atomic_fetch_sub(&credentials->users, 1) > 1)
        return;
    if (credentials->gnutls != NULL)
        gnutls_certificate_free_credentials(credentials->gnutls);
    free(credentials);
}

/* Visible ASCII and spaces. */
static bool is_name(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (name[i] < ' ' || name[i] > '~')
            return false;
    return length > 0 && name[0] != ' ' && name[length - 1] != ' ';
}

bool tls_client_name(gnutls_session_t session, char name[CLIENT_NAME_BYTES])
{
    unsigned count = 0;
    size_t bytes = CLIENT_NAME_BYTES;
    gnutls_x509_crt_t certificate;
    const gnutls_datum_t *list = gnutls_certificate_get_peers(session, &count);
    name[0] = '\0';
    if (list == NULL || count == 0 || gnutls_x509_crt_init(&certificate) != 0)
        return false;
    bool good = gnutls_x509_crt_import(certificate, &list[0], GNUTLS_X509_FMT_DER) == 0 &&
                gnutls_x509_crt_get_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name,
                                              &bytes) == 0 &&
                strlen(name) == bytes && is_name(name, bytes);
    gnutls_x509_crt_deinit(certificate);
    if (!good)
        name[0] = '\0';
    return good;
}

bool tls_send_last(gnutls_session_t session, const void *data, size_t length)
{
    size_t sent = 0;
    while (sent < length) {
        ssize_t count = gnutls_record_send(session, (const char *)data + sent, length - sent);
        if (count == GNUTLS_E_INTERRUPTED)
            continue;
        if (count <= 0)
            return false;
        sent += (size_t)count;
    }
    (void)gnutls_bye(session, GNUTLS_SHUT_WR);
    return true;
}
