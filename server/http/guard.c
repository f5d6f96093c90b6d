/* server/http/guard.c: see guard.h. Threads: pure functions. */
#include "server/http/guard.h"

#include <string.h>

#define METHOD_MAX 32 /* bytes of a method's name */
#define VERSION_BYTES 8

/* Which bytes may stand where (RFC 9110, 5.6.2 and 5.5; RFC 3986). */
enum {
    TOKEN = 1,  /* names of methods and fields */
    VALUE = 2,  /* field values: visible, space, tab, and bytes above ASCII */
    TARGET = 4, /* request targets: visible ASCII */
    HOST = 8,   /* Host: names, addresses, ports */
    HEX = 16,
    DIGIT = 32,
    BLANK = 64
};

#define ALNUM (TOKEN | VALUE | TARGET | HOST)
#define PUNCT (TOKEN | VALUE | TARGET)
#define OTHER (VALUE | TARGET)

static const uint8_t classes[256] = {
    ['\t'] = VALUE | BLANK,
    [' '] = VALUE | BLANK,
    ['0' ... '9'] = ALNUM | HEX | DIGIT,
    ['A' ... 'F'] = ALNUM | HEX,
    ['G' ... 'Z'] = ALNUM,
    ['a' ... 'f'] = ALNUM | HEX,
    ['g' ... 'z'] = ALNUM,
    ['!'] = PUNCT | HOST,
    ['#'] = TOKEN | VALUE,
    ['$'] = PUNCT | HOST,
    ['%'] = PUNCT | HOST,
    ['&'] = PUNCT | HOST,
    ['\''] = PUNCT | HOST,
    ['*'] = PUNCT | HOST,
    ['+'] = PUNCT | HOST,
    ['-'] = PUNCT | HOST,
    ['.'] = PUNCT | HOST,
    ['^'] = PUNCT,
    ['_'] = PUNCT | HOST,
    ['`'] = PUNCT,
    ['|'] = PUNCT,
    ['~'] = PUNCT | HOST,
    ['"'] = OTHER,
    ['('] = OTHER | HOST,
    [')'] = OTHER | HOST,
    [','] = OTHER,
    ['/'] = OTHER,
    [':'] = OTHER | HOST,
    [';'] = OTHER | HOST,
    ['<' ... '@'] = OTHER,
    ['['] = OTHER | HOST,
    ['\\'] = OTHER,
    [']'] = OTHER | HOST,
    ['{'] = OTHER,
    ['}'] = OTHER,
    [0x80 ... 0xff] = VALUE,
};

static bool all_of(const char *text, size_t length, unsigned class)
{
    for (size_t i = 0; i < length; i++)
        if ((classes[(unsigned char)text[i]] & class) == 0)
            return false;
    return true;
}

bool http_guard_is(const char *text, size_t length, const char *literal)
{
    size_t i = 0;
    for (; i < length && literal[i] != '\0'; i++) {
        unsigned a = (unsigned char)text[i], b = (unsigned char)literal[i];
        if (a != b && ((a | 0x20) != (b | 0x20) || (a | 0x20) < 'a' || (a | 0x20) > 'z'))
            return false;
    }
    return i == length && literal[i] == '\0';
}

static unsigned digit(char hex)
{
    return hex <= '9' ? (unsigned)hex - '0' : ((unsigned)hex | 0x20) - 'a' + 10;
}

/* Whether the escape of these digits stands for what needs none (RFC 3986, 2.3), or for a slash. */
static bool is_veil(const char digits[2])
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    unsigned byte = digit(digits[0]) << 4 | digit(digits[1]);
    return memchr(plain, (int)byte, sizeof plain - 1) != NULL;
}

struct http_guard_uri http_guard_uri(const char *uri)
{
    struct http_guard_uri found = {0};
    bool in_path = true;
    size_t i = 0;
    for (; uri[i] != '\0'; i++) {
        in_path &= uri[i] != '?';
        if ((classes[(unsigned char)uri[i]] & TARGET) == 0)
            found.bad = true;
        if (uri[i] != '%')
            continue;
        /* The second test is not reached when the string ends after the first. */
        if (!all_of(uri + i + 1, 1, HEX) || !all_of(uri + i + 2, 1, HEX) ||
            (uri[i + 1] == '0' && uri[i + 2] == '0'))
            found.bad = true;
        else if (in_path && is_veil(uri + i + 1))
            found.veiled = true;
    }
    found.length = i;
    if (uri[0] != '/' && !(uri[0] == '*' && i == 1) &&
        !http_guard_is(uri, i < 7 ? i : 7, "http://"))
        found.bad = true;
    return found;
}

/* Why the request line has a second reading, or NULL. */
static const char *check_line(const struct http_guard_head *head)
{
    size_t method = head->method_length;
    if (method == 0 || method > METHOD_MAX || !all_of(head->method, method, TOKEN))
        return "The method of the request line is not a token.";
    if (head->target.bad)
        return "The target of the request line holds a byte that is not allowed there.";
    if (head->method + method + 1 != head->uri ||
        head->uri + head->target.length + 1 != head->version)
        return "The parts of the request line are not separated by one space each.";
    return NULL;
}

/* Why a field has a second reading, or NULL. end: the first byte behind the field's line. */
static const char *check_field(const struct http_guard_field *field, const char *start,
                               const char *end)
{
    if (field->name != start)
        return "The header fields do not each stand on one line that ends with CR LF.";
    if (field->name_length == 0 || !all_of(field->name, field->name_length, TOKEN))
        return "The name of a header field is not a token.";
    const char *after = field->name + field->name_length + 1;
    const char *rest = field->value + field->value_length;
    if (field->value < after || rest + 2 != end || rest[0] != '\0' || rest[1] != '\0')
        return "A header field is folded, or holds a NUL, or does not end with CR LF.";
    for (const char *gap = after; gap < field->value; gap++)
        if (*gap != ' ' && *gap != '\t')
            return "A header field is folded, or holds a NUL.";
    if (!all_of(field->value, field->value_length, VALUE))
        return "The value of a header field holds a control character.";
    return NULL;
}

/* The fields that frame the body, or name the host, while they are counted. */
struct framing {
    int lengths, codings, hosts;
    const struct http_guard_field *length, *coding, *host;
};

/* An expectation of HTTP/1.0 is ignored (RFC 9110, 10.1.1). */
static void note_expectation(const struct http_guard_field *field, struct http_guard_frame *frame)
{
    size_t length = field->value_length;
    while (length > 0 && all_of(field->value + length - 1, 1, BLANK))
        length--;
    if (frame->http_1_0)
        return;
    if (http_guard_is(field->value, length, "100-continue"))
        frame->expect_continue = true;
    else
        frame->expect_other = true;
}

static void note(struct framing *framing, const struct http_guard_field *field,
                 struct http_guard_frame *frame)
{
    /* By length first: most fields are none of these. */
    switch (field->name_length) {
    case 4:
        if (http_guard_is(field->name, 4, "Host")) {
            framing->hosts++;
            framing->host = field;
        }
        break;
    case 6:
        if (http_guard_is(field->name, 6, "Expect"))
            note_expectation(field, frame);
        else if (http_guard_is(field->name, 6, "Origin"))
            frame->origin = field;
        break;
    case 14:
        if (http_guard_is(field->name, 14, "Content-Length")) {
            framing->lengths++;
            framing->length = field;
        } else if (http_guard_is(field->name, 14, "Sec-Fetch-Site")) {
            frame->fetch_site = field;
        }
        break;
    case 17:
        if (http_guard_is(field->name, 17, "Transfer-Encoding")) {
            framing->codings++;
            framing->coding = field;
        }
        break;
    default:
        break;
    }
}

static bool is_length(const char *digits, size_t count)
{
    return count > 0 && count <= HTTP_GUARD_DIGITS_MAX && all_of(digits, count, DIGIT);
}

static const char *check_framing(const struct framing *framing, struct http_guard_frame *frame)
{
    if (framing->lengths + framing->codings > 1)
        return "Content-Length and Transfer-Encoding may be given once, and not together.";
    if (framing->hosts > 1 || (framing->hosts == 0 && !frame->http_1_0))
        return "Exactly one Host field is needed.";
    frame->host = framing->host;
    size_t host = framing->hosts == 1 ? framing->host->value_length : 0;
    while (host > 0 && all_of(framing->host->value + host - 1, 1, BLANK))
        host--;
    if (host > 0 && !all_of(framing->host->value, host, HOST))
        return "The Host field is not a name or address with an optional port.";
    if (framing->codings == 1) {
        if (frame->http_1_0 ||
            !http_guard_is(framing->coding->value, framing->coding->value_length, "chunked"))
            return "Send the body with a Content-Length instead of this Transfer-Encoding.";
        frame->chunked = true;
    }
    if (framing->lengths == 1) {
        const char *digits = framing->length->value;
        size_t count = framing->length->value_length;
        if (!is_length(digits, count))
            return "The Content-Length must be one decimal number of 1 to 18 digits, without a "
                   "sign.";
        frame->content_length = 0;
        for (size_t i = 0; i < count; i++)
            frame->content_length = frame->content_length * 10 + (digits[i] - '0');
    }
    return NULL;
}

enum error http_guard_check(const struct http_guard_head *head, struct http_guard_frame *frame,
                            const char **why)
{
    *frame = (struct http_guard_frame){.content_length = -1};
    *why = check_line(head);
    if (*why != NULL)
        return ERROR_MALFORMED;
    if (head->target.length > HTTP_GUARD_URI_MAX) {
        *why = "The target of the request line is longer than 8192 bytes.";
        return ERROR_URI_TOO_LONG;
    }
    if (head->head_bytes > HTTP_GUARD_HEAD_MAX || head->field_count > HTTP_GUARD_FIELDS_MAX) {
        *why = "The header fields are more than 64, or longer than 16384 bytes.";
        return ERROR_HEADERS_TOO_LARGE;
    }
    frame->http_1_0 = head->version[VERSION_BYTES - 1] == '0';

    struct framing framing = {0};
    const char *start = head->version + VERSION_BYTES + 2;
    const char *last = head->method + head->head_bytes - 2; /* the empty line */
    for (int i = 0; i < head->field_count && *why == NULL; i++) {
        const struct http_guard_field *field = &head->fields[i];
        const char *end = i + 1 < head->field_count ? head->fields[i + 1].name : last;
        *why = check_field(field, start, end);
        start = end;
        note(&framing, field, frame);
    }
    if (*why == NULL && (start != last || last[0] != '\0' || last[1] != '\0' ||
                         head->version[VERSION_BYTES] != '\0'))
        *why = "The header fields do not each stand on one line that ends with CR LF.";
    if (*why == NULL)
        *why = check_framing(&framing, frame);
    if (*why != NULL)
        return ERROR_MALFORMED;
    if (!frame->expect_other)
        return ERROR_NONE;
    *why = "The only expectation that is met here is 100-continue; leave the Expect field out.";
    return ERROR_EXPECTATION_FAILED;
}
