/* client/convert.h: text formats, converted from and to NPY: the server reads and writes no others.
 *
 * A text is read into memory, and so are its numbers: at most CONVERT_BYTES_MAX of each. What is
 * wrong with it is reported with line and column.
 *
 * Threads: one.
 */
#ifndef CLIENT_CONVERT_H
#define CLIENT_CONVERT_H

#include "client/arguments.h"
#include "client/files.h"

#define CONVERT_BYTES_MAX (INT64_C(4) << 30)

/* An answer that is converted is received in a file without a name, in TMPDIR or /tmp. */
struct convert_output {
    struct files_output file, npy;
    struct files_output *receives; /* one of the two; borrowed */
};

/* Opens the body that arguments name, as what is sent. BAD_OPTION: it cannot be read.
 * files_close_input in any case. */
ERROR_MUST_CHECK enum error convert_open_input(const struct arguments *arguments,
                                               struct files_input *input, struct failure *failure);
/* Opens what receives the answer. convert_close_output in any case. */
ERROR_MUST_CHECK enum error convert_open_output(const struct arguments *arguments,
                                                struct convert_output *output,
                                                struct failure *failure);
/* The answer takes its place. */
ERROR_MUST_CHECK enum error convert_commit(const struct arguments *arguments,
                                           struct convert_output *output, struct failure *failure);
/* output: zeroed, or opened. */
void convert_close_output(struct convert_output *output);

#endif
