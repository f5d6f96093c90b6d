/* tests/unit/base/test_number.c: numbers to text and back, against the C library's conversions.
 *
 * glibc's strtod, strtof and printf are correctly rounded, so they serve as the reference. Texts
 * are read from blocks of exactly their length: the sanitizer sees a read past the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

/* xorshift64*: the same numbers in every run. */
static uint64_t random_bits(void)
{
    static uint64_t state = 88172645463325252U;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * UINT64_C(2685821657736338717);
}

static uint64_t bits_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint32_t bits_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double random_f64(void)
{
    double value;
    do {
        uint64_t bits = random_bits();
        memcpy(&value, &bits, sizeof value);
    } while (!isfinite(value));
    return value;
}

static float random_f32(void)
{
    float value;
    do {
        uint32_t bits = (uint32_t)(random_bits() >> 32);
        memcpy(&value, &bits, sizeof value);
    } while (!isfinite(value));
    return value;
}

/* Reads text in both precisions; both must take it whole and agree with the C library. */
static void check_against_libc(const char *text)
{
    size_t length = strlen(text);
    char *exact = malloc(length);
    assert_non_null(exact);
    memcpy(exact, text, length);
    const char *rest = NULL;
    double f64 = 77;
    enum number_status status = number_read_f64(exact, exact + length, &rest, &f64);
    double want_f64 = strtod(text, NULL);
    if (isinf(want_f64)
            ? status != NUMBER_OVERFLOW || f64 != 77
            : status != NUMBER_OK || rest != exact + length || bits_f64(f64) != bits_f64(want_f64))
        fail_msg("f64 of %s: status %d, %a, want %a", text, status, f64, want_f64);
    float f32 = 77;
    status = number_read_f32(exact, exact + length, &rest, &f32);
    float want_f32 = strtof(text, NULL);
    if (isinf(want_f32)
            ? status != NUMBER_OVERFLOW || f32 != 77
            : status != NUMBER_OK || rest != exact + length || bits_f32(f32) != bits_f32(want_f32))
        fail_msg("f32 of %s: status %d, %a, want %a", text, status, (double)f32, (double)want_f32);
    free(exact);
}

static const char *const good[] = {
    "0",
    "-0",
    "-0.0",
    "0e5",
    "-0e-999999999999",
    "0.000e+99999999999999999999",
    "1",
    "-1",
    "10",
    "1e22",
    "1e23",
    "9007199254740992",
    "9007199254740993",
    "9007199254740993e0",
    "123456789012345678901234567890",
    "18446744073709551616",
    "1E5",
    "1e+5",
    "1e-5",
    "1.5",
    "0.1",
    "0.30000000000000004",
    "3.4028234663852886e38",
    "3.4028235677973362e38",
    "3.4028235677973366e38",
    "16777217",
    "16777217.0000001",
    "1.7976931348623157e308",
    "1.7976931348623158e308",
    "1.7976931348623159e308",
    "1e308",
    "1e309",
    "-1e309",
    "1e400",
    "-1e400",
    "1e-400",
    "-1e-400",
    "1e99999999999999999999999",
    "1e-99999999999999999999999",
    "2.2250738585072014e-308",
    "2.2250738585072011e-308",
    "4.9406564584124654e-324",
    "2.4703282292062328e-324",
    "2.4703282292062327e-324",
    "1.1754943508222875e-38",
    "1.401298464324817e-45",
    "7.006492321624085e-46",
    "7.006492321624086e-46",
    "-7.0e-46",
    "0.00000000000000000000000000000000000000000000000000000000000000000000000000001",
    "100000000000000000000000000000000000000000000000000000000000000000000000e-72",
    "0.000000000000000000000000000000000000000000000000001e51",
    "1.00000000000000000000000000000000000000000000000000000000000000000000000000",
};

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        check_against_libc(good[i]);
}

/* Underflow and overflow that only the count of digits decides. */
static void test_long(void **state)
{
    (void)state;
    char text[2100];
    for (int zeros = 0; zeros <= 1000; zeros += 125) {
        snprintf(text, sizeof text, "0.%0*d1e%d", zeros + 1, 0, zeros + 2);
        check_against_libc(text);
        snprintf(text, sizeof text, "0.%0*d1", zeros + 1, 0);
        check_against_libc(text);
        snprintf(text, sizeof text, "1%0*d", zeros + 1, 0);
        check_against_libc(text);
        snprintf(text, sizeof text, "-1%0*de-%d", zeros + 1, 0, zeros + 300);
        check_against_libc(text);
    }
}

static const char *const bad[] = {
    "",         "-",         "+1",    "+",    "--1",   "- 1",  " 1",   "01",  "-01",
    "00",       ".5",        "-.5",   "5.",   "5.e3",  "5.x",  "1e",   "1e+", "1e-",
    "1E",       "1e5.",      "1e5e5", "0x10", "0X1p3", "inf",  "-inf", "nan", "NaN",
    "Infinity", "-Infinity", "1.2.3", "1-2",  "1+2",   "12a",  "e5",   "-e5", "null",
    "true",     "\"1\"",     "1e5f",  "1d5",  ",",     "1e 5",
};

static void test_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t length = strlen(bad[i]);
        char *exact = malloc(length + (length == 0));
        assert_non_null(exact);
        memcpy(exact, bad[i], length);
        const char *rest = "untouched";
        double f64 = 77;
        float f32 = 77;
        if (number_read_f64(exact, exact + length, &rest, &f64) != NUMBER_SYNTAX ||
            number_read_f32(exact, exact + length, &rest, &f32) != NUMBER_SYNTAX)
            fail_msg("\"%s\" was taken for a number", bad[i]);
        assert_string_equal(rest, "untouched");
        assert_true(f64 == 77 && f32 == 77);
        free(exact);
    }
}

static void test_rest(void **state)
{
    (void)state;
    static const char *const texts[] = {"1.5,2", "1.5]", "1.5 ",   "1.5}",
                                        "1.5\n", "1.5_", "1.5\xc3"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *rest;
        double value;
        assert_int_equal(number_read_f64(texts[i], texts[i] + strlen(texts[i]), &rest, &value),
                         NUMBER_OK);
        assert_ptr_equal(rest, texts[i] + 3);
        assert_true(value == 1.5);
    }
    /* Nothing past the end counts. */
    const char *text = "12345";
    const char *rest;
    double value;
    assert_int_equal(number_read_f64(text, text + 3, &rest, &value), NUMBER_OK);
    assert_true(value == 123 && rest == text + 3);
}

static void check_round_trip_f64(double value)
{
    char text[NUMBER_TEXT_MAX];
    size_t length = number_write_f64(text, value);
    assert_true(length > 0 && length <= 24);
    const char *rest;
    double back;
    if (number_read_f64(text, text + length, &rest, &back) != NUMBER_OK || rest != text + length ||
        bits_f64(back) != bits_f64(value))
        fail_msg("%a became \"%.*s\"", value, (int)length, text);
}

static void check_round_trip_f32(float value)
{
    char text[NUMBER_TEXT_MAX];
    size_t length = number_write_f32(text, value);
    assert_true(length > 0 && length <= 15);
    const char *rest;
    float back;
    if (number_read_f32(text, text + length, &rest, &back) != NUMBER_OK || rest != text + length ||
        bits_f32(back) != bits_f32(value))
        fail_msg("%a became \"%.*s\"", (double)value, (int)length, text);
}

static void test_round_trips(void **state)
{
    (void)state;
    static const double edges[] = {0,       -0.0,    DBL_MIN, DBL_MAX, -DBL_MAX, DBL_TRUE_MIN,
                                   FLT_MIN, FLT_MAX, 0.5,     1e22,    1e23,     DBL_EPSILON};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        check_round_trip_f64(edges[i]);
    for (int i = 0; i < 100000; i++) {
        check_round_trip_f64(random_f64());
        check_round_trip_f32(random_f32());
    }
    for (int i = 0; i < 20000; i++) { /* what matrices hold: halves, whole numbers, subnormals */
        check_round_trip_f64((double)(int64_t)(random_bits() >> 40) / 2);
        check_round_trip_f64((double)(random_bits() >> 12) * DBL_TRUE_MIN);
        check_round_trip_f32((float)(random_bits() >> 41) * FLT_TRUE_MIN);
        check_round_trip_f64((double)random_bits() / 18446744073709551616.0);
    }
}

static int significant_digits(const char *text)
{
    int digits = 0;
    for (; *text != '\0' && *text != 'e'; text++)
        digits += *text >= '0' + (digits == 0) && *text <= '9';
    return digits;
}

/* One digit less never reads back. (Long whole numbers are written out in full, because that takes
 * fewer bytes than an exponent.) */
static void test_shortest(void **state)
{
    (void)state;
    int tried = 0;
    for (int i = 0; i < 5000; i++) {
        double value = i % 2 == 0 ? random_f64() : (double)(int64_t)random_bits() / 1e22;
        char text[NUMBER_TEXT_MAX + 1], shorter[40];
        text[number_write_f64(text, value)] = '\0';
        int digits = significant_digits(text);
        if (digits < 2 || strpbrk(text, ".e") == NULL)
            continue;
        snprintf(shorter, sizeof shorter, "%.*e", digits - 2, value);
        if (strtod(shorter, NULL) == value)
            fail_msg("%s could be %s", text, shorter);
        tried++;
    }
    assert_true(tried > 4000);
}

/* Decimals of every length, as clients of all kinds write them. */
static void test_random_decimals(void **state)
{
    (void)state;
    char text[64];
    for (int i = 0; i < 20000; i++) {
        int digits = (int)(random_bits() % 25);
        snprintf(text, sizeof text, "%.*e", digits, random_f64());
        check_against_libc(text);
        snprintf(text, sizeof text, "%.*e", digits, (double)random_f32());
        check_against_libc(text);
        snprintf(text, sizeof text, "%.*f", digits, (double)(int64_t)random_bits() / 1e15);
        check_against_libc(text);
        snprintf(text, sizeof text, "%llue%d", (unsigned long long)(random_bits() >> 8),
                 (int)(random_bits() % 60) - 40);
        check_against_libc(text);
    }
}

/* Exactly between two neighbours, and a hair to either side: one rounding, ties to even. The long
 * double and the double hold the middle exactly, printf writes all its digits. */
static void test_halfway(void **state)
{
    (void)state;
    static char text[1400];
    for (int i = 0; i < 1000; i++) {
        double below = fabs(random_f64());
        double above = nextafter(below, INFINITY);
        if (below < 1e-280 || isinf(above))
            continue;
        int length = snprintf(text, sizeof text, "%.1100Le", ((long double)below + above) / 2);
        assert_true(length < (int)sizeof text);
        check_against_libc(text);
        strchr(text, 'e')[-1] = '1';
        check_against_libc(text);
    }
    for (int i = 0; i < 5000; i++) {
        float below = fabsf(random_f32());
        float above = nextafterf(below, INFINITY);
        if (isinf(above))
            continue;
        snprintf(text, sizeof text, "%.160e", ((double)below + above) / 2);
        check_against_libc(text);
        strchr(text, 'e')[-1] = '1';
        check_against_libc(text);
    }
}

struct write_row {
    double value;
    const char *f64, *f32;
};

static const struct write_row write_rows[] = {
    {0, "0", "0"},
    {-0.0, "-0.0", "-0.0"},
    {0.1F, "0.10000000149011612", "0.1"},
    {16777216, "16777216", "16777216"},
    {1e22, "1e+22", "1e+22"},
    {-1.5e-7, "-1.5e-07", "-1.5e-07"},
    {NAN, "null", "null"},
    {INFINITY, "null", "null"},
    {-INFINITY, "null", "null"},
};

static void test_write(void **state)
{
    (void)state;
    char text[NUMBER_TEXT_MAX + 1];
    for (size_t i = 0; i < sizeof write_rows / sizeof write_rows[0]; i++) {
        text[number_write_f64(text, write_rows[i].value)] = '\0';
        assert_string_equal(text, write_rows[i].f64);
        text[number_write_f32(text, (float)write_rows[i].value)] = '\0';
        assert_string_equal(text, write_rows[i].f32);
    }
    text[number_write_i64(text, INT64_MIN)] = '\0';
    assert_string_equal(text, "-9223372036854775808");
    text[number_write_i64(text, 0)] = '\0';
    assert_string_equal(text, "0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),        cmocka_unit_test(test_long),
        cmocka_unit_test(test_bad),         cmocka_unit_test(test_rest),
        cmocka_unit_test(test_round_trips), cmocka_unit_test(test_shortest),
        cmocka_unit_test(test_write),       cmocka_unit_test(test_random_decimals),
        cmocka_unit_test(test_halfway),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
