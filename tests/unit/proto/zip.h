/* tests/unit/proto/zip.h: zip files of NPY arrays, made in each of the forms that are read. */
#ifndef TESTS_UNIT_PROTO_ZIP_H
#define TESTS_UNIT_PROTO_ZIP_H

#include <stdint.h>

enum prototest_zip_flag {
    ZIP_DEFLATED = 1,
    ZIP_DESCRIPTOR = 2, /* sizes behind the data, zeros in the local header */
    ZIP_ZIP64 = 4,      /* sizes and offset in extra fields, a zip64 end record */
    ZIP_COMMENT = 8
};

struct prototest_member {
    const char *name, *dict;
    int data_bytes;
};

/* A zip file as it grows; where its records lie, for those who want to spoil them. */
struct prototest_zip {
    unsigned char bytes[4096];
    int64_t length, local[8], data[8], central[8], end, end64;
    int count;
};

void prototest_zip(struct prototest_zip *zip, const struct prototest_member *members, int count,
                   unsigned flags);

#endif
