/* proto/zip_write.c: the records around the stored members of a zip file.
 *
 * Members are stored, never deflated: matrices hardly compress, and an answer's segments stay where
 * the engine wrote them. Sizes of 4 GiB and more, and offsets, go into zip64 fields; smaller files
 * have none. The date is 1980-01-01, so that equal answers are equal bytes. Any thread.
 */
#include <assert.h>
#include <string.h>

#include "proto/zip_private.h"

#define SMALL_MAX INT64_C(0xfffffffe) /* 0xffffffff says: see the zip64 field */
#define VERSION_PLAIN 20
#define VERSION_ZIP64 45
#define DATE_1980_01_01 0x21

static void put(struct proto__writer *writer, uint64_t value, int bytes)
{
    unsigned char little[8];
    for (int i = 0; i < bytes; i++)
        little[i] = (unsigned char)(value >> (8 * i));
    proto__write(writer, little, (size_t)bytes);
}

static void put16(struct proto__writer *writer, unsigned value)
{
    put(writer, value, 2);
}

static void put32(struct proto__writer *writer, uint64_t value)
{
    put(writer, value, 4);
}

static uint64_t small(int64_t value)
{
    return value > SMALL_MAX ? UINT32_MAX : (uint64_t)value;
}

/* Version needed, flags, method, time, date, checksum, sizes, length of the name: in both headers.
 */
static void put_common(struct proto__writer *writer, const struct proto__zip_entry *entry,
                       bool is_zip64)
{
    put16(writer, is_zip64 ? VERSION_ZIP64 : VERSION_PLAIN);
    put16(writer, 0);
    put16(writer, 0);
    put16(writer, 0);
    put16(writer, DATE_1980_01_01);
    put32(writer, entry->crc);
    put32(writer, small(entry->bytes));
    put32(writer, small(entry->bytes));
    put16(writer, (unsigned)strlen(entry->name));
}

void proto__zip_write_local(struct proto__writer *writer, const struct proto__zip_entry *entry)
{
    bool is_zip64 = entry->bytes > SMALL_MAX;
    assert(strlen(entry->name) <= PROTO_ZIP_NAME_MAX);
    put32(writer, 0x04034b50);
    put_common(writer, entry, is_zip64);
    put16(writer, is_zip64 ? 20 : 0);
    proto__write_text(writer, entry->name);
    if (is_zip64) {
        put16(writer, 1);
        put16(writer, 16);
        put(writer, (uint64_t)entry->bytes, 8);
        put(writer, (uint64_t)entry->bytes, 8);
    }
}

static void put_directory_entry(struct proto__writer *writer, const struct proto__zip_entry *entry)
{
    bool long_data = entry->bytes > SMALL_MAX;
    bool far = entry->offset > SMALL_MAX;
    unsigned field_bytes = (long_data ? 16 : 0) + (far ? 8 : 0);
    put32(writer, 0x02014b50);
    put16(writer, VERSION_ZIP64);
    put_common(writer, entry, field_bytes > 0);
    put16(writer, field_bytes > 0 ? 4 + field_bytes : 0);
    put16(writer, 0); /* comment */
    put16(writer, 0); /* disk */
    put16(writer, 0);
    put32(writer, 0);
    put32(writer, small(entry->offset));
    proto__write_text(writer, entry->name);
    if (field_bytes > 0) {
        put16(writer, 1);
        put16(writer, field_bytes);
    }
    if (long_data) {
        put(writer, (uint64_t)entry->bytes, 8);
        put(writer, (uint64_t)entry->bytes, 8);
    }
    if (far)
        put(writer, (uint64_t)entry->offset, 8);
}

void proto__zip_write_central(struct proto__writer *writer, const struct proto__zip_entry *entries,
                              int count, int64_t central_offset)
{
    const char *begin = writer->at;
    for (int i = 0; i < count; i++)
        put_directory_entry(writer, &entries[i]);
    int64_t bytes = writer->at - begin;
    if (central_offset > SMALL_MAX) {
        put32(writer, 0x06064b50);
        put(writer, 44, 8);
        put16(writer, VERSION_ZIP64);
        put16(writer, VERSION_ZIP64);
        put32(writer, 0);
        put32(writer, 0);
        put(writer, (uint64_t)count, 8);
        put(writer, (uint64_t)count, 8);
        put(writer, (uint64_t)bytes, 8);
        put(writer, (uint64_t)central_offset, 8);
        put32(writer, 0x07064b50);
        put32(writer, 0);
        put(writer, (uint64_t)(central_offset + bytes), 8);
        put32(writer, 1);
    }
    put32(writer, 0x06054b50);
    put16(writer, 0);
    put16(writer, 0);
    put16(writer, (unsigned)count);
    put16(writer, (unsigned)count);
    put32(writer, (uint64_t)bytes);
    put32(writer, small(central_offset));
    put16(writer, 0);
}
