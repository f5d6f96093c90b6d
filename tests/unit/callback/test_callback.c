/* tests/unit/callback/test_callback.c: URLs, the list of hosts, addresses, signatures, and when
 * what failed is tried again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "callback/hosts.h"
#include "callback/retry.h"
#include "callback/sign.h"

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])
#define DAY_MS (INT64_C(24) * 3600 * 1000)

static struct callback_address address_of(const char *text)
{
    struct callback_address address = {.family = strchr(text, ':') ? AF_INET6 : AF_INET};
    assert_int_equal(inet_pton(address.family, text, address.bytes), 1);
    return address;
}

/* ---- URLs ---- */

static const struct {
    const char *text, *host;
    int family, port;
    bool is_https;
} good_urls[] = {
    {"http://a", "a", 0, 80, false},
    {"https://Hooks.Example.COM/Path?x=1&y=%20", "hooks.example.com", 0, 443, true},
    {"HTTP://a-b.example:9000?x", "a-b.example", 0, 9000, false},
    {"http://127.0.0.1:1/", "127.0.0.1", AF_INET, 1, false},
    {"https://[FD00::1]:65535/x:y@z", "fd00::1", AF_INET6, 65535, true},
    {"http://[::ffff:10.0.0.1]/", "::ffff:10.0.0.1", AF_INET6, 80, false},
    {"http://4a.x0/", "4a.x0", 0, 80, false},
};

static void test_good_urls(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(good_urls); i++) {
        struct callback_url url;
        struct failure failure = {0};
        if (callback_url_read(good_urls[i].text, &url, &failure) != ERROR_NONE)
            fail_msg("%s: %s", good_urls[i].text, failure.detail);
        assert_string_equal(url.host, good_urls[i].host);
        assert_int_equal(url.address.family, good_urls[i].family);
        assert_int_equal(url.port, good_urls[i].port);
        assert_int_equal(url.is_https, good_urls[i].is_https);
    }
}

static const struct {
    const char *text, *why;
} bad_urls[] = {
    {"", "scheme"},
    {"ftp://a/", "scheme"},
    {"file:///etc/passwd", "scheme"},
    {"//a/", "scheme"},
    {"http:/a", "scheme"},
    {"http://", "host"},
    {"http:///x", "host"},
    {"http://u@a/", "user"},
    {"http://u:p@a/", "user"},
    {"http://a@b@c/", "user"},
    {"http://a/#x", "fragment"},
    {"http://a\\b/", "escaped"},
    {"http://a/x y", "escaped"},
    {"http://a/\n", "escaped"},
    {"http://\xc3\xa4/", "escaped"},
    {"http://a:0/", "port"},
    {"http://a:65536/", "port"},
    {"http://a:/", "port"},
    {"http://a:1x/", "host"},
    {"http://127.1/", "host"},
    {"http://2130706433/", "host"},
    {"http://0x7f.0.0.1/", "host"},
    {"http://0x7f000001/", "host"},
    {"http://0177.0.0.1/", "host"},
    {"http://1.2.3.4.5/", "host"},
    {"http://a./", "host"},
    {"http://a..b/", "host"},
    {"http://-a/", "host"},
    {"http://a-/", "host"},
    {"http://a%2eb/", "host"},
    {"http://a_b/", "host"},
    {"http://::1/", "host"},
    {"http://[::1/", "host"},
    {"http://[::1]x/", "host"},
    {"http://[127.0.0.1]/", "host"},
    {"http://[fe80::1%25eth0]/", "host"},
};

static void test_bad_urls(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(bad_urls); i++) {
        struct callback_url url;
        struct failure failure = {0};
        if (callback_url_read(bad_urls[i].text, &url, &failure) != ERROR_BAD_OPTION ||
            strstr(failure.detail, bad_urls[i].why) == NULL)
            fail_msg("%s: %s", bad_urls[i].text, failure.detail);
    }
    char text[CALLBACK_URL_BYTES + 1] = "http://a/";
    struct callback_url url;
    struct failure failure = {0};
    memset(text + 9, 'x', sizeof text - 10);
    assert_int_equal(callback_url_read(text, &url, &failure), ERROR_BAD_OPTION);
    assert_non_null(strstr(failure.detail, "1024 characters"));
    text[CALLBACK_URL_BYTES - 1] = '\0';
    assert_int_equal(callback_url_read(text, &url, &failure), ERROR_NONE);
}

/* ---- Addresses ---- */

static const struct {
    const char *text;
    bool is_public;
} addresses[] = {
    {"0.0.0.0", false},
    {"1.1.1.1", true},
    {"9.255.255.255", true},
    {"10.0.0.0", false},
    {"10.255.255.255", false},
    {"11.0.0.0", true},
    {"100.63.255.255", true},
    {"100.64.0.1", false},
    {"100.127.255.255", false},
    {"100.128.0.0", true},
    {"127.0.0.1", false},
    {"127.255.255.254", false},
    {"169.254.169.254", false},
    {"172.15.255.255", true},
    {"172.16.0.1", false},
    {"172.31.255.255", false},
    {"172.32.0.0", true},
    {"192.0.0.8", false},
    {"192.0.2.1", false},
    {"192.88.99.1", false},
    {"192.168.0.1", false},
    {"192.169.0.1", true},
    {"198.17.255.255", true},
    {"198.18.0.1", false},
    {"198.19.255.255", false},
    {"198.51.100.1", false},
    {"203.0.113.1", false},
    {"223.255.255.255", true},
    {"224.0.0.1", false},
    {"255.255.255.255", false},
    {"::", false},
    {"::1", false},
    {"::127.0.0.1", false},
    {"::ffff:1.1.1.1", false},
    {"::ffff:127.0.0.1", false},
    {"64:ff9b::7f00:1", false},
    {"64:ff9b::101:101", false},
    {"64:ff9b:1::1", false},
    {"100::1", false},
    {"1fff:ffff::1", false},
    {"2000::1", true},
    {"2001::1", false},
    {"2001:1ff:ffff::1", false},
    {"2001:200::1", true},
    {"2001:db7:ffff::1", true},
    {"2001:db8::1", false},
    {"2001:db9::1", true},
    {"2002:7f00:1::1", false},
    {"2606:4700::1111", true},
    {"3ffe::1", true},
    {"3fff::1", false},
    {"4000::1", false},
    {"fc00::1", false},
    {"fd00::1", false},
    {"fe80::1", false},
    {"fec0::1", false},
    {"ff02::1", false},
};

static void test_addresses(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(addresses); i++) {
        struct callback_address address = address_of(addresses[i].text);
        if (callback_address_is_public(&address) != addresses[i].is_public)
            fail_msg("%s", addresses[i].text);
    }
    const struct callback_address none = {.family = AF_UNIX};
    assert_false(callback_address_is_public(&none));
}

/* ---- The list ---- */

/* One entry, a URL, an address that is connected to: is the URL listed, the address allowed? */
static const struct {
    const char *entry, *url, *address;
    int port;
    bool is_listed, is_allowed;
} lists[] = {
    {"a.b", "http://a.b/", "1.1.1.1", 80, true, true},
    {"A.b", "https://a.B/", "1.1.1.1", 443, true, true},
    {"a.b", "http://a.b:8080/", "1.1.1.1", 8080, false, true},
    {"a.b:8080", "http://a.b:8080/", "10.0.0.1", 8080, true, false},
    {"a.b:8080", "http://a.b/", "10.0.0.1", 80, false, false},
    {"a.b", "http://b/", "127.0.0.1", 80, false, false},
    {"a.b", "http://x.a.b/", "127.0.0.1", 80, false, false},
    {"localhost", "http://localhost/", "127.0.0.1", 80, true, false},
    {"127.0.0.1", "http://127.0.0.1/", "127.0.0.1", 80, true, true},
    {"127.0.0.1", "http://localhost/", "127.0.0.1", 80, false, true},
    {"127.0.0.1", "http://127.0.0.2/", "127.0.0.2", 80, false, false},
    {"127.0.0.1:90", "http://127.0.0.1/", "127.0.0.1", 80, false, false},
    {"10.0.0.0/8:90", "http://10.1.2.3:90/", "10.255.0.1", 90, true, true},
    {"10.0.0.0/8:90", "http://11.0.0.0:90/", "169.254.169.254", 90, false, false},
    {"10.0.0.0/8", "http://10.1.2.3:90/", "10.1.2.3", 90, false, false},
    {"[fd00::1]", "http://[fd00::1]/", "fd00::1", 80, true, true},
    {"[fd00::]/8:7", "http://[fdff::1]:7/", "fc00::1", 7, true, false},
    {"1.1.1.1", "http://1.1.1.1/", "::ffff:1.1.1.1", 80, true, false},
    {"127.0.0.1", "http://[::ffff:127.0.0.1]/", "::ffff:127.0.0.1", 80, false, false},
    {"[::ffff:10.0.0.0]/104", "http://[::ffff:10.1.1.1]/", "::ffff:10.2.2.2", 80, true, true},
};

static void test_lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(lists); i++) {
        static struct callback_hosts hosts;
        struct callback_url url;
        struct failure failure = {0};
        struct callback_address address = address_of(lists[i].address);
        hosts.count = 0;
        if (callback_hosts_add(&hosts, lists[i].entry, &failure) != ERROR_NONE ||
            callback_url_read(lists[i].url, &url, &failure) != ERROR_NONE)
            fail_msg("row %zu: %s", i, failure.detail);
        if (callback_hosts_list_url(&hosts, &url) != lists[i].is_listed ||
            callback_hosts_allow(&hosts, &address, lists[i].port) != lists[i].is_allowed)
            fail_msg("row %zu: %s", i, lists[i].entry);
    }
}

static void test_bad_entries(void **state)
{
    (void)state;
    static const char *const entries[] = {
        "",          "*",         "*.a",          "a:",          "a:0",      "a:65536",    "a/8",
        "http://a",  "10.0.0.0/", "10.0.0.0/0",   "10.0.0.0/33", "10.0.0/8", "::1",        "[::1",
        "[::1]/129", "[a]",       "10.0.0.0/8/8", "a b",         "a@b",      "1.2.3.4:5:6"};
    static struct callback_hosts hosts;
    for (size_t i = 0; i < COUNT(entries); i++) {
        struct failure failure = {0};
        if (callback_hosts_add(&hosts, entries[i], &failure) != ERROR_BAD_OPTION)
            fail_msg("\"%s\"", entries[i]);
        assert_non_null(strstr(failure.detail, "--allow-callbacks"));
    }
    assert_int_equal(hosts.count, 0);
    for (int i = 0; i < CALLBACK_HOSTS_MAX; i++)
        assert_int_equal(callback_hosts_add(&hosts, "a", NULL), ERROR_NONE);
    assert_int_equal(callback_hosts_add(&hosts, "a", NULL), ERROR_BAD_OPTION);
}

/* ---- Signatures ---- */

/* RFC 4231, cases 1 to 4, 6 and 7. */
static void test_hmac(void **state)
{
    (void)state;
    static const struct {
        int key, key_bytes, data, data_bytes; /* a byte that is repeated; -1: the text */
        const char *key_text, *data_text, *hex;
    } rows[] = {
        {0x0b, 20, -1, 8, NULL, "Hi There",
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {-1, 4, -1, 28, "Jefe", "what do ya want for nothing?",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {0xaa, 20, 0xdd, 50, NULL, NULL,
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {-1, 25, 0xcd, 50,
         "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16"
         "\x17\x18\x19",
         NULL, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {0xaa, 131, -1, 54, NULL, "Test Using Larger Than Block-Size Key - Hash Key First",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {0xaa, 131, -1, 152, NULL,
         "This is a test using a larger than block-size key and a larger than block-size data. The "
         "key needs to be hashed before being used by the HMAC algorithm.",
         "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        unsigned char key[160], data[160], digest[DIGEST_BYTES];
        char hex[DIGEST_HEX_BYTES];
        memset(key, rows[i].key, sizeof key);
        memset(data, rows[i].data, sizeof data);
        if (rows[i].key < 0)
            memcpy(key, rows[i].key_text, (size_t)rows[i].key_bytes);
        if (rows[i].data < 0)
            memcpy(data, rows[i].data_text, (size_t)rows[i].data_bytes);
        assert_true(
            digest_hmac(key, (size_t)rows[i].key_bytes, data, (size_t)rows[i].data_bytes, digest));
        digest_show(digest, hex);
        assert_string_equal(hex, rows[i].hex);
    }
}

/* Of `timestamp.body`. */
static void test_signature(void **state)
{
    (void)state;
    const struct callback_secret secret = {"0123456789abcdef", 16};
    char signature[CALLBACK_SIGNATURE_BYTES], hex[DIGEST_HEX_BYTES];
    unsigned char digest[DIGEST_BYTES];
    assert_true(callback_sign(&secret, 1700000000, "{\"id\":1}", 8, signature));
    assert_true(digest_hmac(secret.data, secret.bytes, "1700000000.{\"id\":1}", 19, digest));
    digest_show(digest, hex);
    assert_int_equal(strncmp(signature, "sha256=", 7), 0);
    assert_string_equal(signature + 7, hex);
}

/* ---- Later attempts ---- */

#define BEGIN_MS 1000000

/* The pause doubles up to an hour; half of it at most is left to chance. */
static void check_pause(int64_t pause_ms, int64_t first_ms, int attempts)
{
    int64_t whole_ms = attempts > 30 ? CALLBACK_PAUSE_MAX_MS : first_ms << (attempts - 1);
    if (whole_ms > CALLBACK_PAUSE_MAX_MS)
        whole_ms = CALLBACK_PAUSE_MAX_MS;
    assert_in_range(pause_ms, whole_ms / 2, whole_ms);
}

/* The life of a callback that always fails, on a clock of the test's own; how many attempts. */
static int fail_always(int64_t first_ms, int64_t ttl_ms, int64_t took_ms, uint32_t random)
{
    int64_t now_ms = BEGIN_MS;
    struct callback_history history = {now_ms, now_ms + ttl_ms, 0};
    for (;;) {
        history.attempts++;
        now_ms += took_ms;
        random = random * 1664525u + 1013904223u;
        int64_t next_ms = callback_retry(&history, now_ms, first_ms, random >> 8);
        if (next_ms < 0)
            return history.attempts;
        check_pause(next_ms - now_ms, first_ms, history.attempts);
        now_ms = next_ms;
        assert_true(now_ms <= BEGIN_MS + DAY_MS && now_ms <= history.expires_ms);
    }
}

static void test_retries(void **state)
{
    (void)state;
    static const struct {
        int64_t first_ms, ttl_ms, took_ms;
        int min, max; /* attempts */
    } rows[] = {
        {5000, DAY_MS, 0, 32, 58},
        {5000, 2 * DAY_MS, 15000, 32, 58}, /* for a day all the same */
        {5000, 60000, 0, 4, 6},            /* while there is a result */
        {10, DAY_MS, 0, 40, CALLBACK_ATTEMPTS_MAX},
        {3600000, DAY_MS, 0, 24, 48},
        {5000, 1, 0, 1, 1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        for (uint32_t seed = 1; seed <= 50; seed++) {
            int attempts =
                fail_always(rows[i].first_ms, rows[i].ttl_ms, rows[i].took_ms, seed * 2654435761u);
            assert_in_range(attempts, rows[i].min, rows[i].max);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_urls),   cmocka_unit_test(test_bad_urls),
        cmocka_unit_test(test_addresses),   cmocka_unit_test(test_lists),
        cmocka_unit_test(test_bad_entries), cmocka_unit_test(test_hmac),
        cmocka_unit_test(test_signature),   cmocka_unit_test(test_retries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
