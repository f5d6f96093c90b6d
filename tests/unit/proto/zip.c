/* tests/unit/proto/zip.c: see zip.h. */
#include "zip.h"

#include "bench.h"
#include "proto/flate_private.h"

static void put(struct prototest_zip *zip, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        zip->bytes[zip->length++] = (unsigned char)(value >> (8 * i));
}

static void put_bytes(struct prototest_zip *zip, const void *bytes, int64_t length)
{
    memcpy(zip->bytes + zip->length, bytes, (size_t)length);
    zip->length += length;
}

static int64_t deflate_raw(unsigned char *out, int64_t room, const unsigned char *in, int64_t bytes)
{
    unsigned char *at = out;
    struct proto__flate *flate = proto__deflate_open(PROTO_FLATE_RAW, 6);
    assert_non_null(flate);
    assert_true(proto__deflate_next(flate, in, bytes, true, &at, &room));
    proto__deflate_close(&flate);
    return at - out;
}

static void put_common(struct prototest_zip *zip, unsigned flags, uint32_t crc, int64_t data,
                       int64_t whole, const char *name, int extra)
{
    put(zip, 20, 2);
    put(zip, (flags & ZIP_DESCRIPTOR) != 0 ? 8 : 0, 2);
    put(zip, (flags & ZIP_DEFLATED) != 0 ? 8 : 0, 2);
    put(zip, 0x00210000, 4);
    put(zip, crc, 4);
    put(zip, (flags & ZIP_ZIP64) != 0 ? UINT32_MAX : (uint64_t)data, 4);
    put(zip, (flags & ZIP_ZIP64) != 0 ? UINT32_MAX : (uint64_t)whole, 4);
    put(zip, strlen(name), 2);
    put(zip, (uint64_t)extra, 2);
}

/* What prototest_zip() knows of a member once its data stands in the file. */
struct written {
    uint32_t crc;
    int64_t bytes, whole; /* as stored or deflated, and inflated */
};

static struct written put_member(struct prototest_zip *zip, const struct prototest_member *member,
                                 unsigned flags)
{
    unsigned char npy[2048], packed[2048];
    struct written w;
    w.bytes = w.whole =
        prototest_npy(npy, member->dict, member->data_bytes, strstr(member->dict, "f4") != NULL);
    w.crc = proto__crc32(0, npy, w.whole);
    const unsigned char *data = npy;
    if ((flags & ZIP_DEFLATED) != 0) {
        w.bytes = deflate_raw(packed, sizeof packed, npy, w.whole);
        data = packed;
    }
    bool later = (flags & ZIP_DESCRIPTOR) != 0;
    int i = zip->count++;
    zip->local[i] = zip->length;
    put(zip, 0x04034b50, 4);
    put_common(zip, flags, later ? 0 : w.crc, later ? 0 : w.bytes, later ? 0 : w.whole,
               member->name, 4);
    put_bytes(zip, member->name, (int64_t)strlen(member->name));
    put(zip, 0x00007777, 4); /* an extra field of no known kind */
    zip->data[i] = zip->length;
    put_bytes(zip, data, w.bytes);
    if (later) {
        put(zip, 0x08074b50, 4);
        put(zip, w.crc, 4);
        put(zip, (uint64_t)w.bytes, 4);
        put(zip, (uint64_t)w.whole, 4);
    }
    return w;
}

static void put_entry(struct prototest_zip *zip, int i, const char *name, const struct written *w,
                      unsigned flags)
{
    zip->central[i] = zip->length;
    put(zip, 0x02014b50, 4);
    put(zip, 20, 2);
    put_common(zip, flags, w->crc, w->bytes, w->whole, name, (flags & ZIP_ZIP64) != 0 ? 32 : 0);
    put(zip, 0, 8); /* comment, disk, attributes */
    put(zip, 0, 2);
    put(zip, (flags & ZIP_ZIP64) != 0 ? UINT32_MAX : (uint64_t)zip->local[i], 4);
    put_bytes(zip, name, (int64_t)strlen(name));
    if ((flags & ZIP_ZIP64) == 0)
        return;
    put(zip, 0x00005555, 4);
    put(zip, 1 | 24 << 16, 4);
    put(zip, (uint64_t)w->whole, 8);
    put(zip, (uint64_t)w->bytes, 8);
    put(zip, (uint64_t)zip->local[i], 8);
}

static void put_end64(struct prototest_zip *zip, int64_t directory, int64_t directory_bytes)
{
    zip->end64 = zip->length;
    put(zip, 0x06064b50, 4);
    put(zip, 44, 8);
    put(zip, 45 | 45 << 16, 4);
    put(zip, 0, 8);
    put(zip, (uint64_t)zip->count, 8);
    put(zip, (uint64_t)zip->count, 8);
    put(zip, (uint64_t)directory_bytes, 8);
    put(zip, (uint64_t)directory, 8);
    put(zip, 0x07064b50, 4);
    put(zip, 0, 4);
    put(zip, (uint64_t)zip->end64, 8);
    put(zip, 1, 4);
}

void prototest_zip(struct prototest_zip *zip, const struct prototest_member *members, int count,
                   unsigned flags)
{
    struct written written[8];
    bool is_zip64 = (flags & ZIP_ZIP64) != 0;
    memset(zip, 0, sizeof *zip);
    for (int i = 0; i < count; i++)
        written[i] = put_member(zip, &members[i], flags);
    int64_t directory = zip->length;
    for (int i = 0; i < count; i++)
        put_entry(zip, i, members[i].name, &written[i], flags);
    int64_t directory_bytes = zip->length - directory;
    if (is_zip64)
        put_end64(zip, directory, directory_bytes);
    zip->end = zip->length;
    put(zip, 0x06054b50, 4);
    put(zip, 0, 4);
    put(zip, is_zip64 ? 0xffff : (uint64_t)count, 2);
    put(zip, is_zip64 ? 0xffff : (uint64_t)count, 2);
    put(zip, is_zip64 ? UINT32_MAX : (uint64_t)directory_bytes, 4);
    put(zip, is_zip64 ? UINT32_MAX : (uint64_t)directory, 4);
    put(zip, (flags & ZIP_COMMENT) != 0 ? 7 : 0, 2);
    put_bytes(zip, "comment", (flags & ZIP_COMMENT) != 0 ? 7 : 0);
}
