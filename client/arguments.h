/* client/arguments.h: the command line of `invert`: one table row an option, from which parsing
 * and --help follow.
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

#define ARGUMENTS_SERVER "http://localhost:8000"

struct arguments {
    /* Borrowed from argv and the environment. - is stdin, stdout. socket: of a unix: server, else
     * NULL. */
    const char *input, *output, *server, *socket, *method, *token_file, *cacert;
    struct text query; /* "&name=value", with escapes, for each --option */
    struct text url;   /* of the request */
    int64_t retry_max_ns;
    bool json, quiet, help, version;
};

/* Fills *arguments; server is the environment's, or NULL. BAD_OPTION: failure says what is wrong.
 * With --help or --version nothing but these is looked at. arguments_free in any case. Reorders
 * argv, as getopt_long does. */
ERROR_MUST_CHECK enum error arguments_read(struct arguments *arguments, int argc, char **argv,
                                           const char *server, struct failure *failure);
void arguments_free(struct arguments *arguments);
void arguments_print_help(FILE *stream);
/* The media type that a file's name stands for, by its ending; NULL: none. */
const char *arguments_media_type(const char *path);

#endif
