/* proto/npy.c: arrays in NumPy's .npy format.
 *
 *      \x93NUMPY major minor | header length, 2 bytes (version 1) or 4 (2, 3), little-endian |
 *      a Python dict literal: {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 3), }
 *      padded with spaces | the data
 *
 * The dict is read as a literal of just this kind: three keys in any order, either quote, white
 * space and a last comma tolerated. Any thread; memory is taken only for data that is not aligned
 * or in Fortran order.
 */
#include <string.h>

#include "base/checked.h"
#include "proto/proto_private.h"

#define MAGIC_BYTES 6

/* ---- The dict literal ---- */

enum npy_key {
    NPY_DESCR = 1,
    NPY_FORTRAN = 2,
    NPY_SHAPE = 4
};

struct cursor {
    const char *at, *end;
    struct proto__npy *npy;
    struct failure *failure;
};

static enum error malformed(const struct cursor *c, const char *what)
{
    return failure_set(c->failure, ERROR_MALFORMED, "the NPY header is malformed: %s", what);
}

static void skip_space(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || (*c->at >= '\t' && *c->at <= '\r')))
        c->at++;
}

/* Skips white space, and the byte when it is the next. */
static bool accept(struct cursor *c, char byte)
{
    skip_space(c);
    if (c->at == c->end || *c->at != byte)
        return false;
    c->at++;
    return true;
}

static bool accept_word(struct cursor *c, const char *word)
{
    size_t length = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

/* A string in either quote; no escapes, for none of ours needs one. */
static bool accept_string(struct cursor *c, const char **text, size_t *length)
{
    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    const char *begin = c->at + 1;
    const char *close = memchr(begin, *c->at, (size_t)(c->end - begin));
    if (close == NULL)
        return false;
    *text = begin;
    *length = (size_t)(close - begin);
    c->at = close + 1;
    return true;
}

static enum error read_descr(struct cursor *c)
{
    const char *descr;
    size_t length;
    if (accept(c, '['))
        return failure_set(c->failure, ERROR_BAD_DATATYPE,
                           "structured arrays are not supported; post float64 or float32, as "
                           "array.astype('<f8') makes it");
    if (!accept_string(c, &descr, &length))
        return malformed(c, "'descr' must be a string such as '<f8'");
    c->npy->precision = PRECISION_FP64;
    if (length == 3 && memcmp(descr, "<f8", 3) == 0)
        return ERROR_NONE;
    c->npy->precision = PRECISION_FP32;
    if (length == 3 && memcmp(descr, "<f4", 3) == 0)
        return ERROR_NONE;
    if (length > 1 && (*descr == 'c' || descr[1] == 'c'))
        return failure_set(c->failure, ERROR_BAD_DATATYPE,
                           "complex matrices are not supported; invert the real 2n x 2n matrix "
                           "[[Re, -Im], [Im, Re]] instead");
    return failure_set(c->failure, ERROR_BAD_DATATYPE,
                       "arrays of '%s' are not supported; post little-endian float64 or float32, "
                       "as array.astype('<f8') makes it",
                       proto__dtype_words(descr, length).text);
}

static enum error read_fortran(struct cursor *c)
{
    c->npy->fortran = accept_word(c, "True");
    if (c->npy->fortran || accept_word(c, "False"))
        return ERROR_NONE;
    return malformed(c, "'fortran_order' must be True or False");
}

static enum error read_length(struct cursor *c, int64_t *length)
{
    int64_t sum = 0;
    const char *begin = c->at;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (!checked_mul(sum, 10, &sum) || !checked_add(sum, *c->at - '0', &sum))
            return failure_set(c->failure, ERROR_BAD_SHAPE,
                               "a dimension in the NPY header overflows");
    }
    if (c->at == begin && c->at < c->end && *c->at == '-')
        return failure_set(c->failure, ERROR_BAD_SHAPE,
                           "a dimension in the NPY header is negative");
    if (c->at == begin)
        return malformed(c, "'shape' must be a tuple of whole numbers");
    accept(c, 'L'); /* as Python 2 wrote them */
    *length = sum;
    return ERROR_NONE;
}

static enum error read_shape(struct cursor *c)
{
    struct proto__npy *npy = c->npy;
    if (!accept(c, '('))
        return malformed(c, "'shape' must be a tuple of whole numbers");
    npy->rank = 0;
    while (!accept(c, ')')) {
        if (npy->rank == PROTO_RANK_MAX)
            return failure_set(c->failure, ERROR_BAD_SHAPE, "the array has more than %d dimensions",
                               PROTO_RANK_MAX);
        enum error error = read_length(c, &npy->shape[npy->rank++]);
        if (error != ERROR_NONE)
            return error;
        bool comma = accept(c, ',');
        skip_space(c);
        if (!comma && (c->at == c->end || *c->at != ')' || npy->rank == 1))
            return malformed(c, "'shape' must be a tuple of whole numbers");
    }
    return ERROR_NONE;
}

static const struct {
    const char *name;
    enum npy_key key;
    enum error (*read)(struct cursor *c);
} keys[] = {
    {"descr", NPY_DESCR, read_descr},
    {"fortran_order", NPY_FORTRAN, read_fortran},
    {"shape", NPY_SHAPE, read_shape},
};

static enum error read_item(struct cursor *c, unsigned *seen)
{
    const char *name;
    size_t length;
    if (!accept_string(c, &name, &length) || !accept(c, ':'))
        return malformed(c, "it must be a dict of descr, fortran_order and shape");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strlen(keys[i].name) != length || memcmp(keys[i].name, name, length) != 0)
            continue;
        if ((*seen & keys[i].key) != 0)
            return malformed(c, "a key stands there twice");
        *seen |= keys[i].key;
        return keys[i].read(c);
    }
    return malformed(c, "it has a key besides descr, fortran_order and shape");
}

static enum error read_dict(struct cursor *c)
{
    unsigned seen = 0;
    bool more = true;
    if (!accept(c, '{'))
        return malformed(c, "it must be a dict of descr, fortran_order and shape");
    while (!accept(c, '}')) {
        if (!more)
            return malformed(c, "a comma is missing");
        enum error error = read_item(c, &seen);
        if (error != ERROR_NONE)
            return error;
        more = accept(c, ',');
    }
    if (seen != (NPY_DESCR | NPY_FORTRAN | NPY_SHAPE))
        return malformed(c, "it lacks one of descr, fortran_order and shape");
    skip_space(c);
    return c->at == c->end ? ERROR_NONE : malformed(c, "something follows the dict");
}

/* ---- The array ---- */

enum error proto__npy_read(const unsigned char *bytes, int64_t length, struct proto__npy *npy,
                           struct failure *failure)
{
    struct cursor c = {.npy = npy, .failure = failure};
    memset(npy, 0, sizeof *npy);
    if (length < 10 || memcmp(bytes, "\x93NUMPY", MAGIC_BYTES) != 0)
        return malformed(&c, "it does not begin as NPY files do (with curl use --data-binary)");
    int major = bytes[6];
    if (major < 1 || major > 3 || bytes[7] != 0)
        return malformed(&c, "its version is not 1.0, 2.0 or 3.0 (with curl use --data-binary)");
    int64_t begin = major == 1 ? 10 : 12;
    int64_t header = bytes[8] | bytes[9] << 8;
    if (length >= begin && major > 1)
        header |= (int64_t)bytes[10] << 16 | (int64_t)bytes[11] << 24;
    if (length < begin || begin + header > length || begin + header > PROTO_NPY_HEADER_MAX)
        return malformed(&c, header > PROTO_NPY_HEADER_MAX - begin ? "it is longer than 8 KiB"
                                                                   : "it is cut short");
    c.at = (const char *)bytes + begin;
    c.end = c.at + header;
    npy->data_offset = begin + header;
    enum error error = read_dict(&c);
    if (error != ERROR_NONE)
        return error;
    int64_t count;
    if (!proto__shape_count(npy->rank, npy->shape, &count) ||
        !checked_mul(count, precision_bytes(npy->precision), &npy->data_bytes) ||
        npy->data_bytes > INT64_MAX - npy->data_offset)
        return failure_set(failure, ERROR_BAD_SHAPE, "the array has shape %s: its size overflows",
                           proto__shape_words(npy->rank, npy->shape).text);
    return ERROR_NONE;
}

int64_t proto_npy_head_bytes(const unsigned char *bytes, int64_t length)
{
    if (length < 12)
        return 0;
    int64_t header = bytes[8] | bytes[9] << 8;
    if (memcmp(bytes, "\x93NUMPY", MAGIC_BYTES) != 0 || bytes[6] < 1 || bytes[6] > 3)
        return 12;
    if (bytes[6] == 1)
        return 10 + header;
    return 12 + (header | (int64_t)bytes[10] << 16 | (int64_t)bytes[11] << 24);
}

/* Reads the header, and binds the array to the method's only input. */
static enum error read_head(const unsigned char *bytes, int64_t length, int64_t file_bytes,
                            struct proto_request *request, struct proto__npy *npy, int *place,
                            struct failure *failure)
{
    const struct method *method = request->method;
    *place = proto__sole_input(method);
    if (*place < 0)
        return failure_set(failure, ERROR_MALFORMED,
                           "%s takes %s: post them together as an .npz, as numpy.savez makes it",
                           method->name, proto__input_words(method, true).text);
    enum error error = proto__npy_read(bytes, length, npy, failure);
    if (error != ERROR_NONE)
        return error;
    struct proto_tensor *tensor = &request->inputs[*place];
    tensor->rank = npy->rank;
    memcpy(tensor->shape, npy->shape, sizeof tensor->shape);
    request->precision = npy->precision;
    error = proto__bind(request, UINT32_C(1) << *place, PROTO_LEAD_ANY, failure);
    if (error != ERROR_NONE)
        return error;
    if (file_bytes - npy->data_offset != npy->data_bytes)
        return failure_set(failure, ERROR_MALFORMED,
                           "the array has shape %s: %lld bytes, but %lld bytes of data follow",
                           proto__shape_words(npy->rank, npy->shape).text,
                           (long long)npy->data_bytes, (long long)(file_bytes - npy->data_offset));
    return ERROR_NONE;
}

enum error proto_npy_decode(unsigned char *body, int64_t length, struct proto_space *space,
                            struct proto_request *request, struct failure *failure)
{
    struct proto__npy npy = {0};
    int place;
    enum error error = read_head(body, length, length, request, &npy, &place, failure);
    if (error != ERROR_NONE)
        return error;
    error = proto__place(space, body + npy.data_offset, npy.precision, npy.fortran,
                         &request->inputs[place], failure);
    if (error == ERROR_NONE)
        proto__default_outputs(request, false);
    return error;
}

enum error proto_npy_head(const unsigned char *bytes, int64_t length, int64_t file_bytes,
                          struct proto_request *request, struct proto_npy_place *place,
                          struct failure *failure)
{
    struct proto__npy npy = {0};
    enum error error = read_head(bytes, length, file_bytes, request, &npy, &place->input, failure);
    if (error != ERROR_NONE)
        return error;
    if (npy.fortran && npy.rank > 2 && request->batch > 1)
        return failure_set(failure, ERROR_BAD_SHAPE,
                           "a stack of matrices as large as this must be in C order, as "
                           "numpy.ascontiguousarray makes it");
    place->data_offset = npy.data_offset;
    place->data_bytes = npy.data_bytes;
    place->column_major = npy.fortran && npy.rank >= 2;
    proto__default_outputs(request, false);
    return ERROR_NONE;
}
