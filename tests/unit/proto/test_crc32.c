/* tests/unit/proto/test_crc32.c: the checksum against zlib's, over lengths and alignments, and in
 * pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <zlib.h>

#include "proto/flate_private.h"

enum {
    LONG = 70000,
    SHIFTS = 17
};

static void test_against_zlib(void **state)
{
    (void)state;
    unsigned char *data = malloc(LONG + SHIFTS);
    assert_non_null(data);
    uint64_t seed = 1;
    for (int i = 0; i < LONG + SHIFTS; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        data[i] = (unsigned char)(seed >> 56);
    }
    for (int shift = 0; shift < SHIFTS; shift++)
        for (int length = 0; length < 400; length++)
            assert_int_equal(proto__crc32(0, data + shift, length),
                             crc32(0, data + shift, (uInt)length));
    for (int length = LONG - 70; length <= LONG; length++)
        assert_int_equal(proto__crc32(7, data, length), crc32(7, data, (uInt)length));
    free(data);
}

static void test_pieces_add_up(void **state)
{
    (void)state;
    static unsigned char data[1000];
    for (int i = 0; i < 1000; i++)
        data[i] = (unsigned char)(i * i >> 3);
    uint32_t whole = proto__crc32(0, data, sizeof data);
    for (int cut = 0; cut <= 1000; cut += 7) {
        uint32_t crc = proto__crc32(0, data, cut);
        assert_int_equal(proto__crc32(crc, data + cut, 1000 - cut), whole);
    }
    assert_int_equal(proto__crc32(0, (const unsigned char *)"123456789", 9), 0xcbf43926);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_zlib),
        cmocka_unit_test(test_pieces_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
