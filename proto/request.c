/* proto/request.c: the request's beginning, its default outputs, and what a body looks like.
 *
 * Any thread; no memory is taken.
 */
#include "proto/proto_private.h"

#include <string.h>

#include "base/text.h"

#define LONG_TEXT_BYTES (16 << 10)
#define LONG_COPY_BYTES (1 << 20)

void proto__set_method(struct proto_request *request, const struct method *method)
{
    request->method = method;
    method_default_options(method, request->options);
}

void proto_request_init(struct proto_request *request, enum proto_format format,
                        const struct method *method)
{
    memset(request, 0, sizeof *request);
    request->format = format;
    request->precision = PRECISION_FP64;
    if (method != NULL)
        proto__set_method(request, method);
}

enum error proto_no_method(enum error code, const char *name, size_t length,
                           struct failure *failure)
{
    char buffer[256];
    struct text known;
    text_init_fixed(&known, buffer, sizeof buffer);
    for (int i = 0; i < method_count(); i++)
        text_printf(&known, "%s%s", i > 0 ? ", " : "", method_at(i)->name);
    return failure_set(failure, code, "There is no method '%s'; there are %s.",
                       proto__safe_words(name, length).text, buffer);
}

void proto__default_outputs(struct proto_request *request, bool binary)
{
    const struct method_tensor *outputs = request->method->outputs;
    if (request->output_count > 0)
        return;
    for (int i = 0; outputs[i].name != NULL; i++) {
        if (outputs[i].is_default)
            request->outputs[request->output_count++] = (struct proto_output){i, binary};
    }
    if (request->output_count == 0)
        request->outputs[request->output_count++] = (struct proto_output){0, binary};
}

enum proto_format proto_sniff(const unsigned char *body, int64_t length)
{
    if (length >= 6 && memcmp(body, "\x93NUMPY", 6) == 0)
        return PROTO_FORMAT_NPY;
    if (length >= 4 && (memcmp(body, "PK\3\4", 4) == 0 || memcmp(body, "PK\5\6", 4) == 0))
        return PROTO_FORMAT_NPZ;
    int64_t at = 0;
    while (at < length && (body[at] == ' ' || (body[at] >= '\t' && body[at] <= '\r')))
        at++;
    return at < length && (body[at] == '{' || body[at] == '[') ? PROTO_FORMAT_JSON
                                                               : PROTO_FORMAT_UNKNOWN;
}

void proto_blank_mark(enum proto_format format, unsigned char *body, int64_t length)
{
    if (format != PROTO_FORMAT_RAW && length >= 3 && memcmp(body, "\xef\xbb\xbf", 3) == 0)
        memset(body, ' ', 3);
}

enum error proto_check_format(enum proto_format format, const unsigned char *body, int64_t length,
                              struct failure *failure)
{
    static const struct {
        const char *looks, *type; /* NULL: no format of /v1, or not known by its first bytes */
    } formats[] = {
        [PROTO_FORMAT_NPY] = {"an .npy file", "application/x-npy"},
        [PROTO_FORMAT_NPZ] = {"an .npz file", "application/x-npz"},
        [PROTO_FORMAT_JSON] = {"JSON", "application/json"},
        [PROTO_FORMAT_UNKNOWN] = {NULL, NULL},
    };
    enum proto_format begins = proto_sniff(body, length);
    if (begins == format || formats[begins].type == NULL || formats[format].type == NULL)
        return ERROR_NONE;
    return failure_set(failure, ERROR_MALFORMED,
                       "the body begins as %s does, but its Content-Type is %s; send it as %s",
                       formats[begins].looks, formats[format].type, formats[begins].type);
}

static bool npy_is_long(const unsigned char *body, int64_t length)
{
    struct proto__npy npy;
    if (length <= LONG_COPY_BYTES)
        return false;
    if (proto__npy_read(body, length, &npy, NULL) != ERROR_NONE)
        return false; /* refused at once */
    uintptr_t data = (uintptr_t)body + (uintptr_t)npy.data_offset;
    return npy.fortran || data % (uintptr_t)precision_bytes(npy.precision) != 0;
}

bool proto_request_is_long(enum proto_format format, const unsigned char *body, int64_t length,
                           int64_t json_bytes)
{
    switch (format) {
    case PROTO_FORMAT_V2:
        if (json_bytes < 0 || json_bytes > length)
            return length > LONG_TEXT_BYTES;
        return json_bytes > LONG_TEXT_BYTES ||
               (length > LONG_COPY_BYTES && ((uintptr_t)body + (uintptr_t)json_bytes) % 8 != 0);
    case PROTO_FORMAT_RAW:
        return length > LONG_COPY_BYTES && (uintptr_t)body % 8 != 0;
    case PROTO_FORMAT_NPY:
        return npy_is_long(body, length);
    case PROTO_FORMAT_NPZ:
    case PROTO_FORMAT_JSON:
        return length > LONG_TEXT_BYTES;
    case PROTO_FORMAT_UNKNOWN:
        break;
    }
    return proto_sniff(body, length) == PROTO_FORMAT_NPY ? npy_is_long(body, length)
                                                         : length > LONG_TEXT_BYTES;
}
