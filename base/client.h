/* base/client.h: who sends a request: the client's name, what it may do, and how much of it.
 *
 * Threads: constant once made.
 */
#ifndef BASE_CLIENT_H
#define BASE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLIENT_NAME_BYTES 65 /* of a name, its NUL among them */
#define CLIENTS_MAX 1024     /* of a token file */

/* X(id, name) */
#define CLIENT_ROLE_TABLE(X)                                                                       \
    X(INFER, "infer")                                                                              \
    X(JOBS, "jobs")                                                                                \
    X(METRICS, "metrics")                                                                          \
    X(ADMIN, "admin")

enum client_role_number {
#define CLIENT_ROLE_NUMBER(id, name) CLIENT_ROLE_NUMBER_##id,
    CLIENT_ROLE_TABLE(CLIENT_ROLE_NUMBER)
#undef CLIENT_ROLE_NUMBER
    CLIENT_ROLE_COUNT
};

/* Bits, for sets of them. */
enum client_role {
#define CLIENT_ROLE_BIT(id, name) CLIENT_##id = 1 << CLIENT_ROLE_NUMBER_##id,
    CLIENT_ROLE_TABLE(CLIENT_ROLE_BIT)
#undef CLIENT_ROLE_BIT
    CLIENT_ROLES_ALL = (1 << CLIENT_ROLE_COUNT) - 1
};

#define CLIENT_ROLE_WORDS "infer, jobs, metrics or admin" /* for messages */

/* 0: none is set, and the defaults of the options are in force. */
struct client_limits {
    int64_t requests;    /* under way at once */
    int64_t rate;        /* requests a second */
    int64_t bytes;       /* of the arena, held at once */
    int64_t device_ns;   /* of a device's time, a second */
    int64_t jobs;        /* kept at once */
    int64_t spool_bytes; /* held by its jobs */
};

struct queue_account;

struct client {
    char name[CLIENT_NAME_BYTES]; /* "": it has none, and its address stands for it */
    unsigned roles;               /* bits of enum client_role */
    struct client_limits limits;
    struct queue_account *account; /* which the limits hold for; NULL: it has none */
};

/* Who comes in where neither a token nor a certificate is asked for: all roles but admin. */
extern const struct client client_anyone;

/* Whether it may do what a role is needed for. */
bool client_may(const struct client *client, enum client_role role);
/* The role of that name; 0: there is none. */
unsigned client_role_find(const char *name, size_t length);
const char *client_role_name(enum client_role role); /* of one bit */
/* Of a token file: 1 to 64 letters, digits and . _ - @, the first a letter or a digit. */
bool client_is_name(const char *name, size_t length);

#endif
