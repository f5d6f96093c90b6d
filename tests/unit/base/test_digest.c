/* tests/unit/base/test_digest.c: SHA-256, at once and in parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/digest.h"

static const char abc_hex[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
static const char none_hex[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

static void expect(const char *hex, const unsigned char digest[DIGEST_BYTES])
{
    char shown[DIGEST_HEX_BYTES];
    digest_show(digest, shown);
    assert_string_equal(shown, hex);
}

static void test_at_once(void **state)
{
    (void)state;
    unsigned char digest[DIGEST_BYTES];
    assert_true(digest_sha256("abc", 3, digest));
    expect(abc_hex, digest);
}

static void test_in_parts(void **state)
{
    (void)state;
    for (size_t first = 0; first <= 3; first++) {
        unsigned char digest[DIGEST_BYTES];
        struct digest_stream *parts = digest_begin();
        assert_non_null(parts);
        digest_add(parts, "abc", first);
        digest_add(parts, &"abc"[first], 3 - first);
        assert_true(digest_end(&parts, digest));
        assert_null(parts);
        expect(abc_hex, digest);
    }
}

static void test_of_nothing(void **state)
{
    (void)state;
    unsigned char digest[DIGEST_BYTES];
    struct digest_stream *parts = digest_begin();
    assert_non_null(parts);
    assert_true(digest_end(&parts, digest));
    expect(none_hex, digest);
    parts = digest_begin();
    assert_non_null(parts);
    (void)digest_end(&parts, NULL);
    (void)digest_end(&parts, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_in_parts),
        cmocka_unit_test(test_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
