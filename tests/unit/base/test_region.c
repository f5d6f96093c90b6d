/* Offsets become pointers where they lie inside alone; a region lives as long as its users. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/region.h"

#define BYTES 4096

static void test_at(void **state)
{
    (void)state;
    static const struct {
        uint64_t offset_bytes;
        int64_t bytes;
        bool is_inside;
    } rows[] = {
        {0, BYTES, true},
        {0, 0, true},
        {BYTES, 0, true}, /* zero bytes at the very end */
        {BYTES - 1, 1, true},
        {1, 8, true}, /* unaligned */
        {3, BYTES - 3, true},
        {0, BYTES + 1, false},
        {1, BYTES, false},
        {BYTES, 1, false},
        {BYTES + 1, 0, false},
        {0, -1, false},
        {8, INT64_MIN, false},
        {UINT64_MAX, 0, false},
        {UINT64_MAX, 1, false}, /* their sum is 0 */
        {UINT64_MAX - 7, 16, false},
        {16, INT64_MAX, false},
        {UINT64_MAX / 2 + 1, INT64_MAX, false},
    };
    static unsigned char memory[BYTES];
    const struct region_map map = {memory, BYTES};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const unsigned char *at = region_at(map, rows[i].offset_bytes, rows[i].bytes);
        const unsigned char *expected = rows[i].is_inside ? memory + rows[i].offset_bytes : NULL;
        if (at != expected)
            fail_msg("row %zu", i);
    }
}

static void test_offset(void **state)
{
    (void)state;
    static unsigned char memory[BYTES + 16];
    const struct region_map map = {memory + 8, BYTES};
    uint64_t offset_bytes = 77;
    assert_false(region_offset(map, memory + 7, 1, &offset_bytes));
    assert_false(region_offset(map, memory + 8 + BYTES, 1, &offset_bytes));
    assert_false(region_offset(map, memory + 8 + BYTES - 7, 8, &offset_bytes));
    assert_false(region_offset(map, memory + 8, -1, &offset_bytes));
    assert_int_equal(offset_bytes, 77);
    assert_true(region_offset(map, memory + 8, BYTES, &offset_bytes));
    assert_int_equal(offset_bytes, 0);
    assert_true(region_offset(map, memory + 8 + BYTES, 0, &offset_bytes));
    assert_int_equal(offset_bytes, BYTES);
}

static int make_file(off_t bytes)
{
    int fd = memfd_create("test-region", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, bytes), 0);
    return fd;
}

static void test_life(void **state)
{
    (void)state;
    struct region *region, *other;
    struct failure failure;
    int fd = make_file(BYTES);
    assert_int_equal(region_create(REGION_SPOOL, fd, BYTES, &region, &failure), ERROR_NONE);
    assert_int_equal(region_kind(region), REGION_SPOOL);
    assert_int_equal(region_fd(region), fd);
    assert_int_equal(region_map(region).bytes, BYTES);
    other = region_hold(region);
    assert_ptr_equal(other, region);

    /* Unregistered while in use: the bytes stay. */
    region_drop(&region);
    assert_null(region);
    memcpy(region_at(region_map(other), 8, 4), "abc", 4);
    char read_back[4];
    assert_int_equal(pread(fd, read_back, 4, 8), 4);
    assert_string_equal(read_back, "abc");
    region_drop(&other);
    assert_null(other);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    region_drop(&other); /* none */
}

static void test_refusals(void **state)
{
    (void)state;
    struct region *region = NULL;
    struct failure failure;
    int fd = make_file(BYTES);
    assert_int_equal(region_create(REGION_CLIENT, fd, BYTES + 1, &region, &failure),
                     ERROR_TOO_LARGE);
    assert_int_equal(region_create(REGION_CLIENT, fd, UINT64_MAX, &region, &failure),
                     ERROR_TOO_LARGE);
    assert_int_equal(region_create(REGION_CLIENT, fd, 0, &region, &failure), ERROR_INTERNAL);
    assert_null(region);
    assert_true(fcntl(fd, F_GETFD) >= 0); /* still the caller's */
    close(fd);

    int pipes[2];
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    assert_int_equal(region_create(REGION_CLIENT, pipes[0], 1, &region, &failure), ERROR_TOO_LARGE);
    close(pipes[0]);
    close(pipes[1]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_at),
        cmocka_unit_test(test_offset),
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
