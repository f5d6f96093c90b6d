/* client/files.h: the local files of a request: body, answer and token.
 *
 * A body is read from its file in pieces. What is no plain file, a pipe on stdin for example, is
 * first copied to a temporary file, because the server wants to know the length.
 *
 * An answer goes to a new file in the same folder, which takes the old one's place at the end. So a
 * failure leaves the old one as it was. What is no plain file, stdout among them, is written to
 * directly.
 *
 * Threads: one. Blocks on the file system.
 */
#ifndef CLIENT_FILES_H
#define CLIENT_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct files_input {
    int fd;                  /* owned */
    int64_t start, size, at; /* bytes of the file: the body is [start, start + size) */
};

struct files_output {
    int fd;          /* owned */
    char *path;      /* what is replaced; NULL: fd is written to directly */
    char *temporary; /* the new file; NULL: none */
};

/* path "-": stdin. BAD_OPTION: it cannot be read. files_close_input in any case. */
ERROR_MUST_CHECK enum error files_open_input(struct files_input *input, const char *path,
                                             struct failure *failure);
void files_close_input(struct files_input *input);

/* path "-": stdout. At most one output is open at a time: SIGINT, SIGTERM and SIGHUP remove its new
 * file before they end the program. files_close_output in any case. */
ERROR_MUST_CHECK enum error files_open_output(struct files_output *output, const char *path,
                                              struct failure *failure);
/* Returns 0, or errno. */
int files_write(const struct files_output *output, const char *data, size_t size);
/* The new file takes its place. */
ERROR_MUST_CHECK enum error files_commit(struct files_output *output, struct failure *failure);
/* Removes the new file, unless it was committed. */
void files_close_output(struct files_output *output);

/* The file's first line into token, NUL-terminated. */
ERROR_MUST_CHECK enum error files_read_token(const char *path, char *token, size_t size,
                                             struct failure *failure);

#endif
