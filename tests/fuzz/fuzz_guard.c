/* tests/fuzz/fuzz_guard.c: whatever the guard accepts has only one reading.
 *
 * The input is the head of a request. It is taken apart as the HTTP library does it
 * (library_head.h) and judged by the guard. A head that is accepted is read a second time from the
 * original bytes, by a reader that knows nothing but the strict grammar of RFC 9112; both must
 * agree on where the head ends, on every field, and on the framing of the body.
 */
#include <assert.h>
#include <stdint.h>

#include "tests/unit/server/library_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_token(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] >= 127 || strchr("\"(),/:;<=>?@[\\]{}", text[i]) != NULL)
            return false;
    return length > 0;
}

/* The length of the line at text, which must end with CR LF and hold no other control. */
static size_t strict_line(const char *text, size_t left)
{
    size_t i = 0;
    while (i < left && ((unsigned char)text[i] >= ' ' || text[i] == '\t') && text[i] != 127)
        i++;
    assert(i + 1 < left && text[i] == '\r' && text[i + 1] == '\n');
    return i;
}

static void strict_request_line(const char *text, size_t length, const struct http_guard_head *head)
{
    const char *uri = memchr(text, ' ', length);
    assert(uri != NULL && is_token(text, (size_t)(uri - text)));
    assert(head->method_length == (size_t)(uri - text));
    uri++;
    const char *version = memchr(uri, ' ', length - (size_t)(uri - text));
    assert(version != NULL && version > uri && head->target.length == (size_t)(version - uri));
    assert(length - (size_t)(version + 1 - text) == 8);
}

static void strict_read(const char *text, size_t size, const struct http_guard_head *head,
                        const struct http_guard_frame *frame)
{
    int lengths = 0, codings = 0, hosts = 0, count = 0;
    int64_t content_length = -1;
    size_t at = strict_line(text, size);
    strict_request_line(text, at, head);
    at += 2;
    for (;;) {
        const char *line = text + at;
        size_t length = strict_line(line, size - at);
        at += length + 2;
        if (length == 0)
            break;
        const char *colon = memchr(line, ':', length);
        assert(colon != NULL && is_token(line, (size_t)(colon - line)));
        size_t name = (size_t)(colon - line);
        const char *value = colon + 1;
        while (value < line + length && (*value == ' ' || *value == '\t'))
            value++;
        const struct http_guard_field *field = &head->fields[count++];
        assert(count <= head->field_count && field->name_length == name);
        assert(field->value_length == (size_t)(line + length - value));
        assert(memcmp(field->value, value, field->value_length) == 0);
        hosts += http_guard_is(line, name, "host");
        codings += http_guard_is(line, name, "transfer-encoding");
        if (http_guard_is(line, name, "content-length")) {
            char digits[HTTP_GUARD_DIGITS_MAX + 1] = {0}, *end;
            assert(field->value_length < sizeof digits);
            memcpy(digits, value, field->value_length);
            content_length = strtoll(digits, &end, 10);
            assert(*end == '\0' && end > digits && digits[0] >= '0');
            lengths++;
        }
    }
    assert(at == head->head_bytes && count == head->field_count);
    assert(lengths + codings <= 1 && hosts <= 1 && (hosts == 1 || frame->http_1_0));
    assert(frame->content_length == content_length && frame->chunked == (codings == 1));
}

/* A NUL at the end of a line leaves the same bytes behind as CR LF: see server/http/guard.h. */
static bool has_line_end_nul(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + 1 < size; i++)
        if (data[i] == '\0' && memchr("\0\r\n", data[i + 1], 3) != NULL)
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct library_head library;
    size_t used;
    if (size > LIBRARY_HEAD_MAX || !library_read(&library, data, size, &used))
        return 0;
    struct http_guard_frame frame;
    const char *why;
    enum error error = http_guard_check(&library.head, &frame, &why);
    assert((error == ERROR_NONE) == (why == NULL));
    if (error == ERROR_NONE && !has_line_end_nul(data, used))
        strict_read((const char *)data, size, &library.head, &frame);
    return 0;
}
