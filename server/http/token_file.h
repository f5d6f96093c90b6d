/* server/http/token_file.h: the lines of --token-file, one a client:
 *
 *   NAME ROLE[,ROLE...] sha256:HEX [quota=value ...] [callback-secret-file=PATH]
 *
 * with blanks between the parts. HEX is the SHA-256 of the token. What follows a # at the start of
 * a part is a comment. Quotas are those of client_limits; sizes and durations are written as in
 * options.
 *
 * Messages name file and line, and nothing of the line: a token may stand there by mistake.
 *
 * Threads: pure functions.
 */
#ifndef SERVER_HTTP_TOKEN_FILE_H
#define SERVER_HTTP_TOKEN_FILE_H

#include "base/client.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"

#define TOKEN_FILE_PATH_BYTES 512 /* of a secret's path, its NUL among them */

struct token_file_row {
    struct client client;
    unsigned char digest[DIGEST_BYTES];
    int line;
    char secret_path[TOKEN_FILE_PATH_BYTES]; /* of callbacks; "": none */
};

/* Reads text, of a file that path names. One row a line; each name and token once. *rows: taken by
 * the caller, to be freed; *count: at least one. BAD_OPTION: the failure names file, line and what
 * is allowed. */
ERROR_MUST_CHECK enum error token_file_parse(const char *text, size_t size, const char *path,
                                             struct token_file_row **rows, int *count,
                                             struct failure *failure);

/* For --new-token: a token of 256 random bits, and its line. roles as in a line. BAD_OPTION: name
 * or roles are not what a line takes. */
ERROR_MUST_CHECK enum error token_file_new(const char *name, const char *roles,
                                           char token[DIGEST_HEX_BYTES], struct text *line,
                                           struct failure *failure);

#endif
