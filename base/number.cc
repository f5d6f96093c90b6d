/* base/number.cc: numbers to text and back through <charconv>; the one C++ file of the front.
 *
 * Reading has two steps. The scan checks the grammar of RFC 8259, which is narrower than that of
 * std::from_chars, and gathers the digits as an integer and a power of ten. When both are small
 * enough to be exact in the precision asked for, one multiplication or division gives the correctly
 * rounded value (Clinger, 1990); otherwise std::from_chars does. Whole numbers and short decimals,
 * the bulk of what people write, take the first algorithm.
 *
 * The rounding mode is to nearest, as every process of invertd leaves it.
 * Threads: pure. Cost: 5 to 40 ns a number.
 */
#include "base/number.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace
{

/* Digits that always fit a uint64_t. */
constexpr int DIGITS_MAX = 19;
/* A written exponent is cut off here: far outside both precisions whatever digits precede it in a
 * body of any size we accept, and sums with lengths cannot overflow. */
constexpr int64_t EXPONENT_MAX = INT64_C(1000000000000000);

struct scanned {
    const char *rest;  /* behind the number */
    bool negative;     /* has a minus sign */
    bool complete;     /* digits holds all of them */
    uint64_t digits;   /* the significant digits as an integer, without leading zeros */
    int64_t count;     /* of significant digits */
    int64_t exponent;  /* value = digits * 10^exponent, when complete */
    int64_t magnitude; /* 10^(magnitude-1) <= |value| < 10^magnitude, unless digits is 0 */
};

inline bool is_digit(char c)
{
    return static_cast<unsigned char>(c - '0') < 10;
}

/* Whether a byte behind a number makes it none: 0x10, 1.2.3, 1e5e, 12a, 1-2. */
inline bool runs_on(char c)
{
    char lower = static_cast<char>(c | 0x20);
    return is_digit(c) || (lower >= 'a' && lower <= 'z') || c == '.' || c == '+' || c == '-';
}

/* Reads digits up to the first other byte. */
inline const char *scan_digits(const char *text, const char *end, scanned &number)
{
    uint64_t digits = number.digits;
    int64_t count = number.count;
    while (text < end && is_digit(*text)) {
        /* Past 19 digits the integer wraps; complete then says not to use it. */
        digits = digits * 10 + static_cast<uint64_t>(*text - '0');
        count += (count | static_cast<int64_t>(*text != '0')) != 0;
        text++;
    }
    number.digits = digits;
    number.count = count;
    return text;
}

/* Reads the part after e or E; nullptr when it has no digit. */
const char *scan_exponent(const char *text, const char *end, int64_t &exponent)
{
    bool negative = false;
    if (text < end && (*text == '+' || *text == '-')) {
        negative = *text == '-';
        text++;
    }
    if (text == end || !is_digit(*text))
        return nullptr;
    int64_t value = 0;
    while (text < end && is_digit(*text)) {
        if (value < EXPONENT_MAX)
            value = value * 10 + (*text - '0');
        text++;
    }
    exponent += negative ? -value : value;
    return text;
}

/* number = [ "-" ] ( "0" | 1-9 *DIGIT ) [ "." 1*DIGIT ] [ ("e" | "E") [ "+" | "-" ] 1*DIGIT ] */
bool scan(const char *text, const char *end, scanned &number)
{
    number = scanned{};
    number.negative = text < end && *text == '-';
    text += number.negative;
    if (text == end || !is_digit(*text))
        return false;
    if (*text == '0') {
        text++;
        if (text < end && is_digit(*text))
            return false;
    } else {
        text = scan_digits(text, end, number);
    }
    if (text < end && *text == '.') {
        const char *fraction = text + 1;
        text = scan_digits(fraction, end, number);
        if (text == fraction)
            return false;
        number.exponent = fraction - text;
    }
    if (text < end && (*text == 'e' || *text == 'E')) {
        text = scan_exponent(text + 1, end, number.exponent);
        if (text == nullptr)
            return false;
    }
    if (text < end && runs_on(*text))
        return false;
    number.rest = text;
    number.complete = number.count <= DIGITS_MAX;
    number.magnitude = number.count + number.exponent;
    return true;
}

/* What the exact algorithm needs: integers to digits_max and powers of ten to 10^exponent_max are
 * exact in the precision. */
template <typename real> struct exact;
template <> struct exact<double> {
    static constexpr uint64_t digits_max = UINT64_C(1) << 53;
    static constexpr int64_t exponent_max = 22;
    static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                        1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                        1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
};
template <> struct exact<float> {
    static constexpr uint64_t digits_max = UINT64_C(1) << 24;
    static constexpr int64_t exponent_max = 10;
    static constexpr float powers[] = {1e0F, 1e1F, 1e2F, 1e3F, 1e4F, 1e5F,
                                       1e6F, 1e7F, 1e8F, 1e9F, 1e10F};
};

/* The absolute value, when it can be had with a single rounding. */
template <typename real> bool read_exact(const scanned &number, real &value)
{
    if (!number.complete || number.digits > exact<real>::digits_max)
        return false;
    if (number.digits == 0) {
        value = 0;
        return true;
    }
    int64_t exponent = number.exponent;
    if (exponent > exact<real>::exponent_max || exponent < -exact<real>::exponent_max)
        return false;
    value = static_cast<real>(number.digits);
    if (exponent < 0)
        value /= exact<real>::powers[-exponent];
    else
        value *= exact<real>::powers[exponent];
    return true;
}

/* The absolute value of any number. from_chars says out of range for what overflows and for what
 * underflows to zero; the magnitude says the two apart. */
template <typename real>
number_status read_any(const char *digits, const scanned &number, real &value)
{
    value = 0;
    std::from_chars_result result = std::from_chars(digits, number.rest, value);
    if (result.ec == std::errc::result_out_of_range) {
        value = 0;
        return number.magnitude > 0 ? NUMBER_OVERFLOW : NUMBER_OK;
    }
    if (result.ec != std::errc() || result.ptr != number.rest)
        return NUMBER_SYNTAX;
    return std::isinf(value) ? NUMBER_OVERFLOW : NUMBER_OK;
}

template <typename real>
number_status read(const char *text, const char *end, const char **rest, real *value)
{
    scanned number;
    if (!scan(text, end, number))
        return NUMBER_SYNTAX;
    real absolute;
    if (!read_exact(number, absolute)) {
        number_status status = read_any(text + number.negative, number, absolute);
        if (status != NUMBER_OK)
            return status;
    }
    *value = number.negative ? -absolute : absolute;
    *rest = number.rest;
    return NUMBER_OK;
}

template <typename real> size_t write(char *text, real value)
{
    if (!std::isfinite(value)) {
        std::memcpy(text, "null", 4);
        return 4;
    }
    if (value == 0 && std::signbit(value)) {
        std::memcpy(text, "-0.0", 4); /* readers take -0 for an integer, which has no sign */
        return 4;
    }
    /* The longest are 24 bytes (double) and 15 (float): there is always room. */
    std::to_chars_result result = std::to_chars(text, text + NUMBER_TEXT_MAX, value);
    return static_cast<size_t>(result.ptr - text);
}

} // namespace

enum number_status number_read_f64(const char *text, const char *end, const char **rest,
                                   double *value)
{
    return read(text, end, rest, value);
}

enum number_status number_read_f32(const char *text, const char *end, const char **rest,
                                   float *value)
{
    return read(text, end, rest, value);
}

bool number_vanished(const char *text, const char *rest, double value)
{
    for (; value == 0 && text < rest && (*text | 0x20) != 'e'; text++) {
        if (*text >= '1' && *text <= '9')
            return true;
    }
    return false;
}

size_t number_write_f64(char *text, double value)
{
    return write(text, value);
}

size_t number_write_f32(char *text, float value)
{
    return write(text, value);
}

size_t number_write_i64(char *text, long long value)
{
    std::to_chars_result result = std::to_chars(text, text + NUMBER_TEXT_MAX, value);
    return static_cast<size_t>(result.ptr - text);
}
