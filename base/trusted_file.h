/* base/trusted_file.h: a file that decides who comes in, and is read whole: certificates, tokens.
 *
 * A plain file that others cannot write, nor read where it is secret. A symbolic link counts for
 * what it leads to.
 *
 * Threads: one a file. Blocks on the file system.
 */
#ifndef BASE_TRUSTED_FILE_H
#define BASE_TRUSTED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

#include "base/error.h"

#define TRUSTED_FILE_MAX_BYTES (4 << 20)

/* What changes when a file is written to, or replaced by another; zeros: there is none. */
struct trusted_file_mark {
    dev_t device;
    ino_t number;
    off_t size;
    struct timespec written, changed;
};

struct trusted_file {
    const char *flag, *path; /* of the option that names it, NULL: another file does; borrowed */
    bool secret;             /* its owner, and his group, alone may read it */
    char *data;              /* with a NUL behind it */
    size_t size;
};

/* BAD_OPTION names option and path and says what is wrong. trusted_file_forget in any case. */
ERROR_MUST_CHECK enum error trusted_file_read(struct trusted_file *file, struct failure *failure);
/* Overwrites what was secret. */
void trusted_file_forget(struct trusted_file *file);
/* Sets the failure `--flag "path" is not allowed; WHY.` */
enum error trusted_file_refuse(const struct trusted_file *file, const char *why,
                               struct failure *failure);

/* Of what the path leads to now. Blocks on the file system. */
struct trusted_file_mark trusted_file_mark(const char *path);
bool trusted_file_is_same(const struct trusted_file_mark *a, const struct trusted_file_mark *b);

#endif
