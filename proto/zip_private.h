/* proto/zip_private.h: zip files of stored and deflated members, as NPZ files are.
 *
 * Threads: pure functions of their arguments. No memory is taken.
 */
#ifndef PROTO_ZIP_PRIVATE_H
#define PROTO_ZIP_PRIVATE_H

#include "proto/proto_private.h"

#define PROTO_ZIP_MEMBERS_MAX (2 * METHOD_INPUTS_MAX)

struct proto__zip_member {
    const char *name; /* in the body; not terminated */
    size_t name_length;
    unsigned char *data; /* stored or deflated, in the body */
    int64_t data_bytes, inflated_bytes;
    uint32_t crc;
    bool deflated;
    int64_t begin, end; /* of local header and data, in the body */
};

/* Reads the central directory. Sizes come from there alone; local headers only say where the data
 * begins. MALFORMED for anything that is not exactly one sound zip file. */
ERROR_MUST_CHECK enum error proto__zip_read(unsigned char *body, int64_t length,
                                            struct proto__zip_member *members, int *count,
                                            struct failure *failure);

/* A member to be written, all but its data. */
struct proto__zip_entry {
    const char *name;
    int64_t bytes;  /* of the data */
    int64_t offset; /* of the local header in the file */
    uint32_t crc;
};

/* Upper bounds of what the writers below write, name included. */
#define PROTO_ZIP_LOCAL_MAX 160
#define PROTO_ZIP_CENTRAL_MAX 192
#define PROTO_ZIP_END_MAX 98
#define PROTO_ZIP_NAME_MAX 112

void proto__zip_write_local(struct proto__writer *writer, const struct proto__zip_entry *entry);
/* central_offset: where in the file the directory begins, at writer->at. */
void proto__zip_write_central(struct proto__writer *writer, const struct proto__zip_entry *entries,
                              int count, int64_t central_offset);

#endif
