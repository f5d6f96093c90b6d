/* proto/zip.c: reads a zip file's central directory, strictly.
 *
 *      local header | data ... | central directory | [zip64 end, its locator] | end | comment
 *
 * Two readers must never see two different files in one body: the end record is the one whose
 * comment reaches exactly to the body's end, members neither overlap nor reach into the directory,
 * local and central names agree, a name stands there once. Encryption, several disks and methods
 * other than stored and deflated are refused. Any thread; no memory is taken.
 */
#include "proto/zip_private.h"

#include <string.h>

#define LOCAL_BYTES 30
#define CENTRAL_BYTES 46
#define END_BYTES 22
#define END64_BYTES 56
#define LOCATOR_BYTES 20
#define COMMENT_MAX 65535

#define LOCAL_SIGNATURE 0x04034b50u
#define CENTRAL_SIGNATURE 0x02014b50u
#define END_SIGNATURE 0x06054b50u
#define END64_SIGNATURE 0x06064b50u
#define LOCATOR_SIGNATURE 0x07064b50u

#define FLAGS_ENCRYPTED (1u << 0 | 1u << 6 | 1u << 13)
#define METHOD_STORED 0
#define METHOD_DEFLATED 8
#define EXTRA_ZIP64 1

struct zip {
    unsigned char *body;
    int64_t length;
    int64_t directory, directory_end; /* offsets */
    int64_t count;
    struct failure *failure;
};

static uint32_t get16(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t get32(const unsigned char *at)
{
    return get16(at) | get16(at + 2) << 16;
}

/* Sizes and offsets over INT64_MAX come out negative, which every check refuses. */
static int64_t get64(const unsigned char *at)
{
    return (int64_t)((uint64_t)get32(at) | (uint64_t)get32(at + 4) << 32);
}

static enum error malformed(const struct zip *zip, const char *what)
{
    return failure_set(zip->failure, ERROR_MALFORMED, "the zip file is malformed: %s", what);
}

/* The offset of the end record, or -1. */
static int64_t find_end(const struct zip *zip)
{
    int64_t lowest = zip->length - END_BYTES - COMMENT_MAX;
    for (int64_t at = zip->length - END_BYTES; at >= 0 && at >= lowest; at--) {
        const unsigned char *end = zip->body + at;
        if (get32(end) == END_SIGNATURE && at + END_BYTES + get16(end + 20) == zip->length)
            return at;
    }
    return -1;
}

static enum error read_end64(struct zip *zip, int64_t end_at)
{
    int64_t locator_at = end_at - LOCATOR_BYTES;
    const unsigned char *locator = zip->body + locator_at;
    if (locator_at < END64_BYTES || get32(locator) != LOCATOR_SIGNATURE)
        return malformed(zip, "its zip64 locator is missing");
    int64_t end64_at = get64(locator + 8);
    if (get32(locator + 4) != 0 || get32(locator + 16) > 1)
        return malformed(zip, "it spans several disks");
    if (end64_at < 0 || end64_at > locator_at - END64_BYTES)
        return malformed(zip, "its zip64 end record is not where it should be");
    const unsigned char *end64 = zip->body + end64_at;
    if (get32(end64) != END64_SIGNATURE || get64(end64 + 4) != locator_at - end64_at - 12)
        return malformed(zip, "its zip64 end record is not where it should be");
    if (get32(end64 + 16) != 0 || get32(end64 + 20) != 0 || get64(end64 + 24) != get64(end64 + 32))
        return malformed(zip, "it spans several disks");
    zip->count = get64(end64 + 32);
    zip->directory = get64(end64 + 48);
    zip->directory_end = end64_at;
    if (zip->directory < 0 || get64(end64 + 40) != zip->directory_end - zip->directory)
        return malformed(zip, "its central directory is not where it should be");
    return ERROR_NONE;
}

static enum error read_end(struct zip *zip)
{
    int64_t at = find_end(zip);
    if (at < 0)
        return malformed(zip, "its end record is missing, or something follows it (with curl use "
                              "--data-binary)");
    const unsigned char *end = zip->body + at;
    uint32_t disks = get16(end + 4) | get16(end + 6);
    bool is_zip64 = get16(end + 10) == 0xffff || get32(end + 12) == UINT32_MAX ||
                    get32(end + 16) == UINT32_MAX ||
                    (at >= LOCATOR_BYTES && get32(end - LOCATOR_BYTES) == LOCATOR_SIGNATURE);
    if (is_zip64)
        return read_end64(zip, at);
    if (disks != 0 || get16(end + 8) != get16(end + 10))
        return malformed(zip, "it spans several disks");
    zip->count = get16(end + 10);
    zip->directory = get32(end + 16);
    zip->directory_end = at;
    if (zip->directory + get32(end + 12) != at)
        return malformed(zip, "its central directory is not where it should be");
    return ERROR_NONE;
}

/* Takes from the zip64 extra field those of the sizes that are all ones in the header. */
static bool read_extra(const unsigned char *extra, int64_t extra_bytes,
                       struct proto__zip_member *member)
{
    int64_t *const wanted[] = {&member->inflated_bytes, &member->data_bytes, &member->begin};
    const unsigned char *field = NULL;
    int64_t field_bytes = 0;
    while (extra_bytes >= 4) {
        int64_t bytes = get16(extra + 2);
        if (bytes > extra_bytes - 4)
            return false;
        if (get16(extra) == EXTRA_ZIP64) {
            field = extra + 4;
            field_bytes = bytes;
        }
        extra += 4 + bytes;
        extra_bytes -= 4 + bytes;
    }
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (*wanted[i] != UINT32_MAX || field == NULL)
            continue;
        if (field_bytes < 8)
            return false;
        *wanted[i] = get64(field);
        field += 8;
        field_bytes -= 8;
    }
    return true;
}

/* Looks up where the data lies, through the local header. */
static enum error find_data(const struct zip *zip, struct proto__zip_member *member)
{
    int64_t begin = member->begin;
    if (begin < 0 || begin > zip->directory - LOCAL_BYTES)
        return malformed(zip, "a member lies outside of it");
    const unsigned char *local = zip->body + begin;
    if (get32(local) != LOCAL_SIGNATURE)
        return malformed(zip, "a member's local header is missing");
    int64_t data_at = begin + LOCAL_BYTES + get16(local + 26) + get16(local + 28);
    if (data_at > zip->directory || member->data_bytes < 0 || member->inflated_bytes < 0 ||
        member->data_bytes > zip->directory - data_at)
        return malformed(zip, "a member lies outside of it");
    if (get16(local + 26) != member->name_length ||
        memcmp(local + LOCAL_BYTES, member->name, member->name_length) != 0)
        return malformed(zip, "a member has two names");
    if ((get16(local + 6) & FLAGS_ENCRYPTED) != 0)
        return malformed(zip, "a member is encrypted");
    if (get16(local + 8) != (member->deflated ? METHOD_DEFLATED : METHOD_STORED))
        return malformed(zip, "a member has two compression methods");
    if (!member->deflated && member->data_bytes != member->inflated_bytes)
        return malformed(zip, "a stored member has two sizes");
    member->data = zip->body + data_at;
    member->end = data_at + member->data_bytes;
    return ERROR_NONE;
}

/* Reads the directory entry at *at and moves *at behind it. */
static enum error read_member(const struct zip *zip, int64_t *at, struct proto__zip_member *member)
{
    const unsigned char *entry = zip->body + *at;
    int64_t left = zip->directory_end - *at;
    if (left < CENTRAL_BYTES || get32(entry) != CENTRAL_SIGNATURE)
        return malformed(zip, "its central directory is broken");
    int64_t name_bytes = get16(entry + 28);
    int64_t extra_bytes = get16(entry + 30);
    int64_t bytes = CENTRAL_BYTES + name_bytes + extra_bytes + get16(entry + 32);
    uint32_t method = get16(entry + 10);
    if (bytes > left)
        return malformed(zip, "its central directory is broken");
    if ((get16(entry + 8) & FLAGS_ENCRYPTED) != 0)
        return malformed(zip, "a member is encrypted");
    if (method != METHOD_STORED && method != METHOD_DEFLATED)
        return malformed(zip, "a member is compressed by other means than deflate");
    *member = (struct proto__zip_member){
        .name = (const char *)entry + CENTRAL_BYTES,
        .name_length = (size_t)name_bytes,
        .data_bytes = get32(entry + 20),
        .inflated_bytes = get32(entry + 24),
        .crc = get32(entry + 16),
        .deflated = method == METHOD_DEFLATED,
        .begin = get32(entry + 42),
    };
    uint32_t disk = get16(entry + 34);
    if (disk != 0 && disk != 0xffff)
        return malformed(zip, "it spans several disks");
    if (!read_extra(entry + CENTRAL_BYTES + name_bytes, extra_bytes, member))
        return malformed(zip, "a member's extra field is broken");
    *at += bytes;
    return find_data(zip, member);
}

static enum error check_against(const struct zip *zip, const struct proto__zip_member *member,
                                const struct proto__zip_member *other)
{
    if (member->begin < other->end && other->begin < member->end)
        return malformed(zip, "members overlap");
    if (member->name_length == other->name_length &&
        memcmp(member->name, other->name, member->name_length) == 0)
        return malformed(zip, "two members have one name");
    return ERROR_NONE;
}

enum error proto__zip_read(unsigned char *body, int64_t length, struct proto__zip_member *members,
                           int *count, struct failure *failure)
{
    struct zip zip = {.body = body, .length = length, .failure = failure};
    enum error error = read_end(&zip);
    if (error != ERROR_NONE)
        return error;
    int64_t at = zip.directory;
    if (at < 0 || at > zip.directory_end)
        return malformed(&zip, "its central directory is not where it should be");
    if (zip.count < 0 || zip.count > PROTO_ZIP_MEMBERS_MAX)
        return failure_set(failure, ERROR_MALFORMED, "the zip file has more than %d members",
                           PROTO_ZIP_MEMBERS_MAX);
    for (*count = 0; *count < zip.count; ++*count) {
        error = read_member(&zip, &at, &members[*count]);
        for (int i = 0; error == ERROR_NONE && i < *count; i++)
            error = check_against(&zip, &members[*count], &members[i]);
        if (error != ERROR_NONE)
            return error;
    }
    return at == zip.directory_end ? ERROR_NONE
                                   : malformed(&zip, "its central directory is broken");
}
