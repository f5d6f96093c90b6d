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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct files_input {
    int fd;                  /* owned */
    int64_t start, size, at; /* bytes of the file: the body is [start, start + size) */
};

struct files_output {
    int fd;          /* owned */
    int64_t at;      /* bytes written so far */
    char *path;      /* what is replaced; NULL: fd is written to directly */
    char *temporary; /* the new file; NULL: none */
    bool nameless;   /* a temporary file that is read again */
};

/* path "-": stdin. BAD_OPTION: it cannot be read. files_close_input in any case. */
ERROR_MUST_CHECK enum error files_open_input(struct files_input *input, const char *path,
                                             struct failure *failure);
void files_close_input(struct files_input *input);

/* path "-": stdout. At most one such output is open at a time: SIGINT, SIGTERM and SIGHUP remove
 * its new file, and write what files_say_at_signal was given, before they end the program.
 * files_close_output in any case. */
ERROR_MUST_CHECK enum error files_open_output(struct files_output *output, const char *path,
                                              struct failure *failure);
/* A file without a name in TMPDIR, or in /tmp, for what is converted; it has no files_commit. */
ERROR_MUST_CHECK enum error files_open_nameless(struct files_output *output,
                                                struct failure *failure);
/* What was written to a file without a name, as the body of a request; output is closed. */
void files_read_back(struct files_output *output, struct files_input *input);
/* Returns 0, or errno. */
int files_write(struct files_output *output, const char *data, size_t size);
/* From the start again; false: it cannot, for what was written is gone, into a pipe for example. */
bool files_rewind(struct files_output *output);
/* A line for stderr, copied; NULL: none. */
void files_say_at_signal(const char *line);
/* The new file takes its place: power loss leaves the old one or the whole new one. */
ERROR_MUST_CHECK enum error files_commit(struct files_output *output, struct failure *failure);
/* Removes the new file, unless it was committed. */
void files_close_output(struct files_output *output);

/* BAD_OPTION: others can read the file of --key. */
ERROR_MUST_CHECK enum error files_check_key(const char *path, struct failure *failure);
/* The file's first line into token, NUL-terminated. */
ERROR_MUST_CHECK enum error files_read_token(const char *path, char *token, size_t size,
                                             struct failure *failure);

#endif
