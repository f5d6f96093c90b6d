/* tests/unit/proto/test_npz.c: .npz bodies, good and hostile, and .npz answers read back. */
#include "bench.h"
#include "zip.h"

#include "proto/flate_private.h"
#include "proto/zip_private.h"

#define SQUARE "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"
#define TURNED "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 2), }"
#define SINGLE "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"
#define VECTOR(n) "{'descr': '<f8', 'fortran_order': False, 'shape': (" #n ",), }"

static enum error decode(const struct prototest_zip *zip, const struct method *method,
                         struct prototest_space *space, struct prototest_body *body,
                         struct proto_request *request, struct failure *failure)
{
    *body = prototest_body(zip->bytes, zip->length, 0);
    proto_request_init(request, PROTO_FORMAT_NPZ, method);
    return proto_npz_decode(body->bytes, body->length, &space->space, request, failure);
}

/* ---- Good ones ---- */

static const struct prototest_member one[] = {{"a.npy", SQUARE, 32}};

static void test_good(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct prototest_member member;
        bool f32, turned;
    } rows[] = {
        {"a", {"a.npy", SQUARE, 32}, false, false},
        {"A", {"A.npy", SQUARE, 32}, false, false},
        {"arr_0", {"arr_0.npy", SQUARE, 32}, false, false},
        {"f4", {"a.npy", SINGLE, 16}, true, false},
        {"Fortran", {"a.npy", TURNED, 32}, false, true},
    };
    static const double turned[4] = {0, 2, 1, 3};
    for (unsigned flags = 0; flags < 16; flags++) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            struct prototest_zip zip;
            struct prototest_space space;
            struct prototest_body body;
            struct proto_request request;
            struct failure failure = {0};
            prototest_space_init(&space, 1 << 16);
            prototest_zip(&zip, &rows[i].member, 1, flags);
            enum error error = decode(&zip, method_find("lu"), &space, &body, &request, &failure);
            prototest_expect(rows[i].name, error, ERROR_NONE, &failure, NULL);
            assert_int_equal(request.n, 2);
            assert_int_equal(request.lead_rank, 0);
            const void *data = request.inputs[0].data;
            assert_int_equal((uintptr_t)data % (rows[i].f32 ? 4 : 8), 0);
            for (int k = 0; k < 4; k++)
                assert_true(
                    (rows[i].f32 ? (double)((const float *)data)[k] : ((const double *)data)[k]) ==
                    (rows[i].turned ? turned[k] : k));
            prototest_body_free(&body);
            prototest_space_free(&space);
        }
    }
}

static void test_several_inputs(void **state)
{
    (void)state;
    static const struct prototest_member members[] = {
        {"d.npy", VECTOR(3), 24}, {"du.npy", VECTOR(2), 16}, {"DL.npy", VECTOR(2), 16}};
    struct prototest_zip zip;
    struct prototest_space space;
    struct prototest_body body;
    struct proto_request request;
    struct failure failure = {0};
    prototest_space_init(&space, 1 << 16);
    prototest_zip(&zip, members, 3, ZIP_DEFLATED | ZIP_DESCRIPTOR);
    enum error error = decode(&zip, &prototest_chain, &space, &body, &request, &failure);
    prototest_expect("chain", error, ERROR_NONE, &failure, NULL);
    assert_int_equal(request.n, 3);
    assert_int_equal(request.inputs[0].shape[0], 2);
    assert_int_equal(request.inputs[1].shape[0], 3);
    assert_true(((double *)request.inputs[1].data)[2] == 2);
    prototest_body_free(&body);
    prototest_space_free(&space);
}

/* The limit holds for all members together, deflated or stored, before memory is taken. */
static void test_limit(void **state)
{
    (void)state;
    static const struct prototest_member members[] = {{"x.npy", SQUARE, 32}, {"y.npy", SQUARE, 32}};
    int64_t bytes = 2 * (10 + (int64_t)strlen(SQUARE) + 32);
    for (unsigned flags = 0; flags < 16; flags++) {
        for (int over = 0; over < 2; over++) {
            struct prototest_zip zip;
            struct prototest_space space;
            struct proto_request request;
            struct failure failure = {0};
            prototest_space_init(&space, over ? 0 : 1 << 16);
            prototest_zip(&zip, members, 2, flags);
            struct prototest_body body = prototest_body(zip.bytes, zip.length, 0);
            proto_request_init(&request, PROTO_FORMAT_NPZ, &prototest_update);
            request.inflated_max = bytes - over;
            enum error error =
                proto_npz_decode(body.bytes, body.length, &space.space, &request, &failure);
            prototest_expect("limit", error, over ? ERROR_TOO_LARGE : ERROR_NONE, &failure,
                             "more than the limit");
            prototest_body_free(&body);
            prototest_space_free(&space);
        }
    }
}

/* ---- Hostile ones: what the directory says is not so ---- */

enum part {
    LOCAL,
    DATA,
    CENTRAL,
    END,
    END64
};

struct spoiled {
    const char *name;
    unsigned flags;
    enum part part;
    int at; /* within the record of the second member */
    int bytes;
    uint64_t value;
    const char *fragment;
};

static const struct spoiled spoiled[] = {
    {"local signature", 0, LOCAL, 0, 1, 0, "local header is missing"},
    {"central signature", 0, CENTRAL, 0, 1, 0, "directory is broken"},
    {"end signature", 0, END, 0, 1, 0,
     "end record is missing, or something follows it (with curl use --data-binary)"},
    {"encrypted", 0, CENTRAL, 8, 1, 1, "encrypted"},
    {"encrypted strongly", 0, CENTRAL, 8, 1, 0x40, "encrypted"},
    {"encrypted directory", 0, CENTRAL, 9, 1, 0x20, "encrypted"},
    {"encrypted locally", 0, LOCAL, 6, 1, 1, "encrypted"},
    {"bzip2", 0, CENTRAL, 10, 1, 12, "other means than deflate"},
    {"deflate64", 0, CENTRAL, 10, 1, 9, "other means than deflate"},
    {"two methods", 0, LOCAL, 8, 1, 8, "two compression methods"},
    {"two names", 0, LOCAL, 30, 1, 'x', "two names"},
    {"two lengths of name", 0, LOCAL, 26, 1, 3, "two names"},
    {"name over the end", 0, CENTRAL, 28, 2, 0xffff, "directory is broken"},
    {"extra over the end", 0, CENTRAL, 30, 2, 0xffff, "directory is broken"},
    {"comment over the end", 0, CENTRAL, 32, 2, 0xffff, "directory is broken"},
    {"comment inside", 0, CENTRAL, 32, 1, 1, "directory is broken"},
    {"stored size", 0, CENTRAL, 20, 4, 8, "two sizes"},
    {"stored size, far", 0, CENTRAL, 20, 4, 0xfffffff0, "outside of it"},
    {"size", 0, CENTRAL, 24, 4, 8, "two sizes"},
    {"offset", 0, CENTRAL, 42, 4, 1, "local header is missing"},
    {"offset, far", 0, CENTRAL, 42, 4, 0xfffffff0, "outside of it"},
    {"offset, all ones", 0, CENTRAL, 42, 4, 0xffffffff, "outside of it"},
    {"offset of the first", 0, CENTRAL, 42, 4, 0, "two names"},
    {"other disk", 0, CENTRAL, 34, 2, 1, "several disks"},
    {"checksum", 0, CENTRAL, 16, 4, 0, "checksum is wrong"},
    {"data", 0, DATA, 90, 1, 0xff, "checksum is wrong"},
    {"deflated size", ZIP_DEFLATED, CENTRAL, 24, 4, 0x7fffffff, "cannot be as large"},
    {"deflated size, one more", ZIP_DEFLATED, CENTRAL, 24, 4, 102, "does not inflate"},
    {"deflated size, one less", ZIP_DEFLATED, CENTRAL, 24, 4, 100, "but 31 are there"},
    {"deflated data cut", ZIP_DEFLATED, CENTRAL, 20, 4, 20, "deflated data is damaged"},
    {"deflated data empty", ZIP_DEFLATED, CENTRAL, 20, 4, 0, "cannot be as large"},
    {"deflated data broken", ZIP_DEFLATED, DATA, 0, 1, 0xff, "deflated data is damaged"},
    {"deflated checksum", ZIP_DEFLATED, CENTRAL, 16, 4, 0, "checksum is wrong"},
    {"number of disk", 0, END, 4, 2, 1, "several disks"},
    {"disk of directory", 0, END, 6, 2, 1, "several disks"},
    {"count on this disk", 0, END, 8, 2, 1, "several disks"},
    {"count", 0, END, 8, 4, 0x00010001, "directory is broken"},
    {"count, more", 0, END, 8, 4, 0x00030003, "directory is broken"},
    {"count, many", 0, END, 8, 4, 0x00200020, "more than 14 members"},
    {"directory's size", 0, END, 12, 4, 1, "not where it should be"},
    {"directory's offset", 0, END, 16, 4, 1, "not where it should be"},
    {"comment's length", 0, END, 20, 2, 1, "something follows"},
    {"zip64 without a locator", 0, END, 16, 4, UINT32_MAX, "locator is missing"},
    {"locator", ZIP_ZIP64, END, -20, 1, 0, "locator is missing"},
    {"locator's disk", ZIP_ZIP64, END, -16, 1, 1, "several disks"},
    {"locator's disks", ZIP_ZIP64, END, -4, 1, 2, "several disks"},
    {"locator's offset", ZIP_ZIP64, END, -12, 8, UINT64_MAX, "not where it should be"},
    {"locator's offset, far", ZIP_ZIP64, END, -12, 8, INT64_MAX, "not where it should be"},
    {"locator's offset, before", ZIP_ZIP64, END, -12, 8, 0, "not where it should be"},
    {"zip64 signature", ZIP_ZIP64, END64, 0, 1, 0, "not where it should be"},
    {"zip64 length", ZIP_ZIP64, END64, 4, 8, 45, "not where it should be"},
    {"zip64 disk", ZIP_ZIP64, END64, 16, 1, 1, "several disks"},
    {"zip64 count", ZIP_ZIP64, END64, 24, 8, 1, "several disks"},
    {"zip64 size", ZIP_ZIP64, END64, 40, 8, 1, "not where it should be"},
    {"zip64 offset", ZIP_ZIP64, END64, 48, 8, (uint64_t)INT64_MIN, "not where it should be"},
    {"zip64 extra cut", ZIP_ZIP64, CENTRAL, 57, 2, 16, "extra field is broken"},
    {"zip64 extra long", ZIP_ZIP64, CENTRAL, 57, 2, 25, "extra field is broken"},
    {"zip64 size, huge", ZIP_ZIP64, CENTRAL, 59, 8, INT64_MAX, "two sizes"},
    {"zip64 size, negative", ZIP_ZIP64, CENTRAL, 59, 8, UINT64_MAX, "outside of it"},
    {"zip64 stored, huge", ZIP_ZIP64, CENTRAL, 67, 8, INT64_MAX, "outside of it"},
    {"zip64 stored, negative", ZIP_ZIP64, CENTRAL, 67, 8, UINT64_MAX, "outside of it"},
    {"zip64 offset, negative", ZIP_ZIP64, CENTRAL, 75, 8, UINT64_MAX, "outside of it"},
};

/* The update method's X and Y, 2 by 2 each. */
static const struct prototest_member two[] = {{"x.npy", SQUARE, 32}, {"y.npy", SQUARE, 32}};

static void test_spoiled(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof spoiled / sizeof spoiled[0]; i++) {
        const struct spoiled *row = &spoiled[i];
        struct prototest_zip zip;
        struct prototest_space space;
        struct prototest_body body;
        struct proto_request request;
        struct failure failure = {0};
        prototest_space_init(&space, 1 << 16);
        prototest_zip(&zip, two, 2, row->flags);
        const int64_t parts[] = {zip.local[1], zip.data[1], zip.central[1], zip.end, zip.end64};
        for (int b = 0; b < row->bytes; b++)
            zip.bytes[parts[row->part] + row->at + b] = (unsigned char)(row->value >> (8 * b));
        enum error error = decode(&zip, &prototest_update, &space, &body, &request, &failure);
        prototest_expect(row->name, error, ERROR_MALFORMED, &failure, row->fragment);
        prototest_body_free(&body);
        prototest_space_free(&space);
    }
}

static void test_unspoiled(void **state)
{
    (void)state;
    for (unsigned flags = 0; flags < 16; flags++) {
        struct prototest_zip zip;
        struct prototest_space space;
        struct prototest_body body;
        struct proto_request request;
        struct failure failure = {0};
        prototest_space_init(&space, 1 << 16);
        prototest_zip(&zip, two, 2, flags);
        enum error error = decode(&zip, &prototest_update, &space, &body, &request, &failure);
        prototest_expect("unspoiled", error, ERROR_NONE, &failure, NULL);
        prototest_body_free(&body);
        prototest_space_free(&space);
    }
}

/* ---- Hostile ones: sound zip files of wrong members ---- */

static const struct {
    const char *name;
    const struct method *method; /* NULL: lu */
    struct prototest_member members[3];
    int count;
    enum error code;
    const char *fragment;
} wrong_members[] = {
    {"none", NULL, {{"", "", 0}}, 0, ERROR_MALFORMED, "input A is missing; lu takes A"},
    {"unknown",
     NULL,
     {{"b.npy", SQUARE, 32}},
     1,
     ERROR_MALFORMED,
     "lu has no input 'b'; the arrays must be named a (one alone also matrix, matrices or arr_0)"},
    {"of another method",
     NULL,
     {{"v0.npy", SQUARE, 32}},
     1,
     ERROR_MALFORMED,
     "lu has no input 'v0', which goes with method iterative; the arrays must be named a"},
    {"no .npy", NULL, {{"a", SQUARE, 32}}, 1, ERROR_MALFORMED, "no input 'a'"},
    {"only .npy", NULL, {{".npy", SQUARE, 32}}, 1, ERROR_MALFORMED, "no input"},
    {"arr_1", NULL, {{"arr_1.npy", SQUARE, 32}}, 1, ERROR_MALFORMED, "no input 'arr_1'"},
    {"arr_0 for several",
     &prototest_chain,
     {{"arr_0.npy", SQUARE, 32}},
     1,
     ERROR_MALFORMED,
     "chain has no input 'arr_0'; the arrays must be named dl, d, du"},
    {"one name twice",
     NULL,
     {{"a.npy", SQUARE, 32}, {"a.npy", SQUARE, 32}},
     2,
     ERROR_MALFORMED,
     "one name"},
    {"two cases",
     NULL,
     {{"a.npy", SQUARE, 32}, {"A.npy", SQUARE, 32}},
     2,
     ERROR_MALFORMED,
     "A is given twice"},
    {"one missing",
     &prototest_chain,
     {{"d.npy", VECTOR(2), 16}, {"dl.npy", VECTOR(1), 8}},
     2,
     ERROR_MALFORMED,
     "input DU is missing"},
    {"two precisions",
     &prototest_update,
     {{"x.npy", SQUARE, 32}, {"y.npy", SINGLE, 16}},
     2,
     ERROR_BAD_DATATYPE,
     "X is of float64 and Y of float32: post all in one of them"},
    {"too short", NULL, {{"a.npy", SQUARE, 31}}, 1, ERROR_MALFORMED, "but 31 are there"},
    {"too long", NULL, {{"a.npy", SQUARE, 33}}, 1, ERROR_MALFORMED, "but 33 are there"},
    {"no NPY", NULL, {{"a.npy", "", 0}}, 1, ERROR_MALFORMED, "must be a dict"},
    {"a vector", NULL, {{"a.npy", VECTOR(4), 32}}, 1, ERROR_BAD_SHAPE, "A has shape [4]"},
};

static void test_members(void **state)
{
    (void)state;
    for (unsigned flags = 0; flags <= ZIP_DEFLATED; flags++) {
        for (size_t i = 0; i < sizeof wrong_members / sizeof wrong_members[0]; i++) {
            struct prototest_zip zip;
            struct prototest_space space;
            struct prototest_body body;
            struct proto_request request;
            struct failure failure = {0};
            prototest_space_init(&space, 1 << 16);
            prototest_zip(&zip, wrong_members[i].members, wrong_members[i].count, flags);
            enum error error = decode(
                &zip, wrong_members[i].method != NULL ? wrong_members[i].method : method_find("lu"),
                &space, &body, &request, &failure);
            prototest_expect(wrong_members[i].name, error, wrong_members[i].code, &failure,
                             wrong_members[i].fragment);
            prototest_body_free(&body);
            prototest_space_free(&space);
        }
    }
}

/* Two directory entries for one member's bytes, under two names of one length. */
static void test_overlap(void **state)
{
    (void)state;
    struct prototest_zip zip;
    struct prototest_space space;
    struct prototest_body body;
    struct proto_request request;
    struct failure failure = {0};
    prototest_space_init(&space, 1 << 16);
    prototest_zip(&zip, two, 2, 0);
    memcpy(zip.bytes + zip.central[1] + 42, zip.bytes + zip.central[0] + 42, 4);
    zip.bytes[zip.central[1] + 46] = 'x';
    enum error error = decode(&zip, &prototest_update, &space, &body, &request, &failure);
    prototest_expect("overlap", error, ERROR_MALFORMED, &failure, "members overlap");
    prototest_body_free(&body);
    prototest_space_free(&space);
}

/* Every prefix is refused, and every byte that follows too. */
static void test_cut(void **state)
{
    (void)state;
    struct prototest_zip whole;
    prototest_zip(&whole, one, 1, 0);
    for (int64_t length = 0; length <= whole.length + 1; length++) {
        struct prototest_zip zip = whole;
        struct prototest_space space;
        struct prototest_body body;
        struct proto_request request;
        struct failure failure = {0};
        if (length == whole.length)
            continue;
        zip.length = length;
        prototest_space_init(&space, 1 << 16);
        enum error error = decode(&zip, method_find("lu"), &space, &body, &request, &failure);
        prototest_expect("cut", error, ERROR_MALFORMED, &failure, "end record is missing");
        prototest_body_free(&body);
        prototest_space_free(&space);
    }
}

/* A stored, unaligned array needs 32 bytes; a deflated one its whole file. */
static void test_no_room(void **state)
{
    (void)state;
    for (unsigned flags = 0; flags <= ZIP_DEFLATED; flags++) {
        struct prototest_zip zip;
        struct prototest_space space;
        struct prototest_body body;
        struct proto_request request;
        struct failure failure = {0};
        prototest_space_init(&space, 31);
        prototest_zip(&zip, one, 1, flags);
        enum error error = decode(&zip, method_find("lu"), &space, &body, &request, &failure);
        prototest_expect("room", error, ERROR_FULL, &failure, "no room");
        prototest_body_free(&body);
        prototest_space_free(&space);
    }
}

/* ---- Answers ---- */

static void test_answer(void **state)
{
    (void)state;
    double inverse[8] = {1, 2, 3, 4, 5, 6, 7, 8}, rcond[2] = {0.5, 0.25};
    int32_t info[2] = {0, -1}, algorithm[2] = {METHOD_ALGORITHM_LU, METHOD_ALGORITHM_CHOLESKY};
    void *const outputs[METHOD_OUTPUTS_MAX] = {inverse, info, rcond, algorithm};
    static const char *const names[] = {"method.npy", "inverse.npy", "info.npy", "rcond.npy"};
    static const int order[] = {3, 0, 1, 2};
    /* an algorithm is as wide as the longest name, four bytes a character */
    int64_t algorithm_bytes = 4 * (int64_t)proto__algorithm_name_max();
    const int64_t bytes[] = {2 * algorithm_bytes, 64, 8, 16};
    struct prototest_space space;
    struct proto_request request;
    struct proto_answer answer;
    struct proto__zip_member members[PROTO_ZIP_MEMBERS_MAX];
    struct failure failure = {0};
    int count;
    proto_request_init(&request, PROTO_FORMAT_NPZ, method_find("auto"));
    request.batch = request.n = 2;
    request.lead_rank = 1;
    request.lead[0] = 2;
    for (int i = 0; i < 4; i++)
        request.outputs[request.output_count++].index = order[i];
    prototest_space_init(&space, proto_answer_bound(&request));
    enum error error = proto_npz_encode(&request, outputs, &space.space, &answer, &failure);
    prototest_expect("answer", error, ERROR_NONE, &failure, NULL);
    assert_string_equal(answer.content_type, "application/x-npz");
    char *joined = prototest_join(&answer);
    error = proto__zip_read((unsigned char *)joined, answer.total_bytes, members, &count, &failure);
    prototest_expect("answer", error, ERROR_NONE, &failure, NULL);
    assert_int_equal(count, 4);
    for (int i = 0; i < 4; i++) {
        struct proto__zip_member *member = &members[i];
        assert_int_equal(member->name_length, strlen(names[i]));
        assert_memory_equal(member->name, names[i], member->name_length);
        assert_false(member->deflated);
        assert_int_equal(proto__crc32(0, member->data, member->data_bytes), member->crc);
        assert_int_equal(member->data_bytes % 64, bytes[i] % 64);
    }
    assert_memory_equal(members[1].data + members[1].data_bytes - 64, inverse, 64);
    assert_memory_equal(members[2].data + members[2].data_bytes - 8, info, 8);
    assert_memory_equal(members[0].data + members[0].data_bytes - algorithm_bytes, "c\0\0\0h\0\0\0",
                        8);
    free(joined);
    prototest_space_free(&space);
}

/* Records of members over 4 GiB, without their data. */
static void test_zip64_records(void **state)
{
    (void)state;
    const struct proto__zip_entry entries[] = {
        {"a.npy", INT64_C(5) << 30, 0, 0x12345678},
        {"b.npy", 100, INT64_C(5) << 30, 1},
        {"c.npy", 0xfffffffe, 0xfffffffe, 1},
    };
    char bytes[1024];
    struct proto__writer writer = {bytes, bytes, bytes + sizeof bytes};
    proto__zip_write_local(&writer, &entries[0]);
    assert_int_equal(writer.at - bytes, 30 + 5 + 20);
    assert_memory_equal(bytes + 18, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    assert_memory_equal(bytes + 35, "\1\0\x10\0\0\0\0\x40\1\0\0\0\0\0\0\x40\1\0\0\0", 20);
    writer.at = bytes;
    proto__zip_write_central(&writer, entries, 3, INT64_C(6) << 30);
    const char *second = bytes + 46 + 5 + 20;
    const char *third = second + 46 + 5 + 12;
    const char *end64 = third + 46 + 5;
    assert_memory_equal(bytes + 46 + 5, "\1\0\x10\0\0\0\0\x40\1\0\0\0\0\0\0\x40\1\0\0\0", 20);
    assert_memory_equal(second + 46 + 5, "\1\0\x08\0\0\0\0\x40\1\0\0\0", 12);
    assert_memory_equal(third + 20, "\xfe\xff\xff\xff\xfe\xff\xff\xff", 8);
    assert_memory_equal(end64, "PK\6\6\x2c\0\0\0\0\0\0\0", 12);
    assert_memory_equal(end64 + 48, "\0\0\0\x80\1\0\0\0", 8);
    assert_memory_equal(end64 + 56, "PK\6\7", 4);
    assert_memory_equal(end64 + 76, "PK\5\6\0\0\0\0\3\0\3\0", 12);
    assert_memory_equal(end64 + 76 + 16, "\xff\xff\xff\xff\0\0", 6);
    assert_int_equal(writer.at - end64, 56 + 20 + 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),          cmocka_unit_test(test_several_inputs),
        cmocka_unit_test(test_limit),         cmocka_unit_test(test_spoiled),
        cmocka_unit_test(test_unspoiled),     cmocka_unit_test(test_members),
        cmocka_unit_test(test_overlap),       cmocka_unit_test(test_cut),
        cmocka_unit_test(test_no_room),       cmocka_unit_test(test_answer),
        cmocka_unit_test(test_zip64_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
