/* client/arguments.h: the command line of `invert`: one table row a command and an option, from
 * which parsing and --help follow.
 *
 * Threads: one.
 */
#ifndef CLIENT_ARGUMENTS_H
#define CLIENT_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"
#include "client/format.h"

#define ARGUMENTS_SERVER "http://localhost:8000"
#define ARGUMENTS_DIRECT_MAX (INT64_C(64) << 20)

enum command {
    COMMAND_INVERT, /* a file; the others are of jobs */
    COMMAND_STATUS,
    COMMAND_WAIT,
    COMMAND_FETCH,
    COMMAND_CANCEL,
    COMMAND_LIST,
};

struct arguments {
    enum command command;
    /* Borrowed from argv and the environment. - is stdin, stdout. socket: of a unix: server, else
     * NULL. */
    const char *input, *output, *server, *socket, *method, *token_file, *cacert, *cert, *key;
    const char *idempotency_key, *from, *to, *status, *since;
    char **ids; /* of jobs */
    int id_count;
    enum format input_format, output_format; /* by --from and --to, else by the names */
    struct text query;                       /* "&name=value", with escapes, for each --option */
    struct text path;                        /* of the request, with its query */
    struct text address;                     /* of the server, without a slash at its end */
    int64_t retry_max_ns, timeout_ns;        /* timeout 0: none */
    int64_t direct_max;                      /* bytes of the largest body that is sent directly */
    int64_t limit;                           /* of `list` */
    bool detach;                             /* --async */
    bool json, quiet, help, version;
};

/* Fills *arguments; server is the environment's, or NULL. BAD_OPTION: failure says what is wrong.
 * With --help or --version nothing but these is looked at. arguments_free in any case. Reorders
 * argv, as getopt_long does. */
ERROR_MUST_CHECK enum error arguments_read(struct arguments *arguments, int argc, char **argv,
                                           const char *server, struct failure *failure);
void arguments_free(struct arguments *arguments);
void arguments_print_help(FILE *stream);
/* Appends value with what a query may not hold as %XX. */
void arguments_escape(struct text *text, const char *value, size_t length);

#endif
