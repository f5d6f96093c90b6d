/* proto/json_scan.c: lifts arrays of numbers out of JSON text, and reads them.
 *
 * A parsed tree costs 24 to 77 times the text of a matrix, so no matrix becomes one. Pass one walks
 * the text: names and brackets outside, and in an array to be lifted nothing but a class for each
 * byte. It knows just enough of JSON to find the arrays; the skeleton that it leaves is validated
 * by the parser, the numbers by pass two. Where text is no JSON, both see the same first fault.
 *
 * Any thread. Memory: the skeleton alone. Cost: pass one some hundred MB/s, pass two as fast as
 * number_read_* is.
 */
#include "proto/json_private.h"

#include <assert.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "proto/proto_private.h"

/* ---- Pass one, inside an array of numbers ---- */

enum byte_class {
    BYTE_OTHER,
    BYTE_SPACE,
    BYTE_NUMBER,
    BYTE_COMMA,
    BYTE_OPEN,
    BYTE_CLOSE
};

static const unsigned char byte_classes[256] = {
    [' '] = BYTE_SPACE,  ['\t'] = BYTE_SPACE, ['\n'] = BYTE_SPACE, ['\r'] = BYTE_SPACE,
    ['0'] = BYTE_NUMBER, ['1'] = BYTE_NUMBER, ['2'] = BYTE_NUMBER, ['3'] = BYTE_NUMBER,
    ['4'] = BYTE_NUMBER, ['5'] = BYTE_NUMBER, ['6'] = BYTE_NUMBER, ['7'] = BYTE_NUMBER,
    ['8'] = BYTE_NUMBER, ['9'] = BYTE_NUMBER, ['+'] = BYTE_NUMBER, ['-'] = BYTE_NUMBER,
    ['.'] = BYTE_NUMBER, ['e'] = BYTE_NUMBER, ['E'] = BYTE_NUMBER, [','] = BYTE_COMMA,
    ['['] = BYTE_OPEN,   [']'] = BYTE_CLOSE,
};

/* What may come next. */
enum expect {
    EXPECT_FIRST, /* behind '[': a value or ']' */
    EXPECT_VALUE, /* behind ',' */
    EXPECT_MORE   /* behind a value: ',' or ']' */
};

struct nesting {
    struct proto__lift *lift;
    struct proto__name name;
    int rank;         /* levels of one matrix */
    const char *text; /* of the whole document */
    enum expect expect;
    int depth, leaf;                    /* levels open now; level of the numbers, 0: none seen */
    int64_t counts[PROTO_RANK_MAX];     /* entries so far, a level each */
    bool closed_before[PROTO_RANK_MAX]; /* lift->shape of this level is known */
    struct failure *failure;
};

static long long byte_of(const struct nesting *nest, const char *at)
{
    return (long long)(at - nest->text) + 1;
}

/* "x[1,0]": entry `last` of the list that is open at level `levels` - 1. */
static struct proto__words entry_words(const struct nesting *nest, int levels, int64_t last)
{
    struct proto__words words = {""};
    struct text text;
    int64_t place[PROTO_RANK_MAX] = {0};
    for (int i = 0; i < levels; i++)
        place[i] = i < levels - 1 ? nest->counts[i] - 1 : last;
    text_init_fixed(&text, words.text, sizeof words.text);
    text_puts(&text, proto__safe_words(nest->name.text, nest->name.length).text);
    text_puts(&text, proto__shape_words(levels, place).text);
    return words;
}

/* Something that is no part of an array of numbers: where it stands, and what to write. */
static enum error refuse_entry(const struct nesting *nest, const char *at)
{
    const char *what = ": a matrix must hold numbers alone";
    const bool behind = nest->expect == EXPECT_MORE; /* an entry, which is reported then */
    if (!behind && *at == 'n')
        what = ": null, or nan, is not a number in JSON; binary tensors and NPY can carry NaN, "
               "where INFO is then -1";
    else if (!behind && (*at == 'N' || *at == 'I'))
        what = ": JSON has no NaN and no Infinity; binary tensors and NPY can carry them, where "
               "INFO is then -1";
    else if (!behind && *at == '"')
        what = " is a string; a matrix must hold numbers";
    return failure_set(nest->failure, ERROR_MALFORMED, "%s%s (byte %lld)",
                       entry_words(nest, nest->depth, nest->counts[nest->depth - 1] - behind).text,
                       what, byte_of(nest, at));
}

static enum error unexpected(const struct nesting *nest, const char *at, const char *end)
{
    const char *what = "a number is missing in an array of numbers";
    bool trailing = nest->expect == EXPECT_VALUE && at < end && (*at == ']' || *at == '}');
    if (at == end)
        what = "the JSON text ends within an array of numbers";
    else if (byte_classes[(unsigned char)*at] == BYTE_OTHER && *at != '}')
        return refuse_entry(nest, at);
    else if (nest->expect == EXPECT_MORE)
        what = "a comma or ']' is missing in an array of numbers";
    return failure_set(nest->failure, ERROR_MALFORMED, "at byte %lld: %s%s", byte_of(nest, at),
                       trailing ? "a trailing comma, " : "", what);
}

static enum error refuse_mixture(const struct nesting *nest, const char *at)
{
    return failure_set(nest->failure, ERROR_BAD_SHAPE,
                       "%s: an array mixes numbers and lists at one level (byte %lld)",
                       entry_words(nest, nest->depth, nest->counts[nest->depth - 1]).text,
                       byte_of(nest, at));
}

static enum error open_level(struct nesting *nest, const char *at)
{
    struct proto__lift *lift = nest->lift;
    if (nest->depth == PROTO_RANK_MAX)
        return failure_set(nest->failure, ERROR_BAD_SHAPE, "\"%s\" has more than %d dimensions",
                           proto__safe_words(nest->name.text, nest->name.length).text,
                           PROTO_RANK_MAX);
    if (nest->leaf != 0 && nest->depth >= nest->leaf)
        return refuse_mixture(nest, at);
    if (nest->depth > 0)
        nest->counts[nest->depth - 1]++;
    nest->counts[nest->depth++] = 0;
    if (nest->depth > lift->rank)
        lift->rank = nest->depth;
    nest->expect = EXPECT_FIRST;
    return ERROR_NONE;
}

/* The list that ends at a byte has another length than those of its level before it. */
static enum error refuse_length(const struct nesting *nest, const char *at, int level)
{
    static const char *const units[][2] = {
        {"entry", "entries"}, {"row", "rows"}, {"list", "lists"}};
    const int inner = nest->lift->rank - 1 - level; /* levels of lists within it */
    const int batch = nest->lift->rank - nest->rank;
    const int64_t count = nest->counts[level];
    bool is_first = batch > 0 && level >= batch; /* of its level in a matrix of a batch */
    for (int i = batch; is_first && i < level; i++)
        is_first = nest->counts[i] == 1;
    return failure_set(
        nest->failure, ERROR_BAD_SHAPE, "%s has %lld %s, %s before it have %lld%s (byte %lld)",
        entry_words(nest, level, nest->counts[level - 1] - 1).text, (long long)count,
        units[inner < 2 ? inner : 2][count != 1],
        inner == 0 && nest->rank > 1 ? "the rows" : "those", (long long)nest->lift->shape[level],
        is_first ? ": all matrices of a request must have one shape: send one "
                   "request for each shape"
                 : "",
        byte_of(nest, at));
}

static enum error close_level(struct nesting *nest, const char *at)
{
    int level = --nest->depth;
    int64_t *length = &nest->lift->shape[level];
    int64_t count = nest->counts[level];
    if (!nest->closed_before[level]) {
        nest->closed_before[level] = true;
        *length = count;
    } else if (*length != count) {
        return refuse_length(nest, at, level);
    }
    nest->expect = EXPECT_MORE;
    return ERROR_NONE;
}

static enum error count_number(struct nesting *nest, const char *at)
{
    if (nest->leaf == 0)
        nest->leaf = nest->depth;
    if (nest->depth != nest->leaf || nest->lift->rank != nest->depth)
        return refuse_mixture(nest, at);
    nest->counts[nest->depth - 1]++;
    nest->lift->count++;
    nest->expect = EXPECT_MORE;
    return ERROR_NONE;
}

enum error proto__lift_scan(struct proto__lift *lift, struct proto__name name, int rank,
                            const char *text, const char *begin, const char *end,
                            struct failure *failure)
{
    struct nesting nest = {.lift = lift,
                           .name = name,
                           .rank = rank,
                           .text = text,
                           .expect = EXPECT_VALUE,
                           .failure = failure};
    const char *at = begin;
    enum error error = ERROR_NONE;
    memset(lift, 0, sizeof *lift);
    lift->begin = begin;
    while (error == ERROR_NONE) {
        enum byte_class class = at < end ? byte_classes[(unsigned char)*at] : BYTE_OTHER;
        if (class == BYTE_SPACE) {
            at++;
        } else if (class == BYTE_NUMBER && nest.expect != EXPECT_MORE) {
            error = count_number(&nest, at);
            while (at < end && byte_classes[(unsigned char)*at] == BYTE_NUMBER)
                at++;
        } else if (class == BYTE_COMMA && nest.expect == EXPECT_MORE) {
            nest.expect = EXPECT_VALUE;
            at++;
        } else if (class == BYTE_OPEN && nest.expect != EXPECT_MORE) {
            error = open_level(&nest, at);
            at++;
        } else if (class == BYTE_CLOSE && nest.expect != EXPECT_VALUE) {
            error = close_level(&nest, at);
            at++;
            if (nest.depth == 0)
                break;
        } else {
            error = unexpected(&nest, at, end);
        }
    }
    lift->end = at;
    return error;
}

/* ---- Pass one, outside ---- */

#define NAME_MAX_BYTES 40 /* of a name whose escapes are resolved; no rule knows a longer one */

struct walk {
    struct proto__scan *scan;
    const char *text, *at, *end;
    const char *copied; /* what lies before it is in the skeleton */
    uint32_t objects;   /* bit d: the container at depth d + 1 is an object */
    int depth, tokens;
    struct proto__name name;     /* the last string, where it may be a member's name; else NULL */
    struct proto__name root;     /* the last one at depth 1, resolved; perhaps in root_text */
    bool name_expected, escaped; /* escaped: there is a backslash in name */
    char root_text[NAME_MAX_BYTES];
    proto__lift_rule *rule;
    const void *context;
    struct failure *failure;
};

static enum error refuse_large(const struct walk *w)
{
    return failure_set(w->failure, ERROR_TOO_LARGE,
                       "there are over %d bytes of JSON besides the matrices", PROTO_SKELETON_MAX);
}

static enum error append(struct walk *w, const char *data, size_t length)
{
    struct text *copy = &w->scan->copy;
    if (length > PROTO_SKELETON_MAX - copy->length)
        return refuse_large(w);
    text_append(copy, data, length);
    if (copy->failed)
        return failure_set(w->failure, ERROR_FULL, "out of memory for the JSON text");
    return ERROR_NONE;
}

/* From the opening quote to behind the closing one, or to the end of the text. */
static void skip_string(struct walk *w)
{
    const char *begin = ++w->at;
    w->escaped = false;
    while (w->at < w->end && *w->at != '"') {
        w->escaped = w->escaped || *w->at == '\\';
        if (*w->at == '\\' && w->end - w->at > 1)
            w->at++;
        w->at++;
    }
    w->name = (struct proto__name){w->name_expected ? begin : NULL, (size_t)(w->at - begin)};
    w->name_expected = false;
    if (w->at < w->end)
        w->at++;
}

/* 256 for what is none: a code made with it is out of every range. */
static unsigned hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 256;
}

/* Resolves the escapes of a name. Names that rules know are printable ASCII: one with anything
 * else, or that is no JSON, becomes empty. */
static struct proto__name resolve(struct proto__name name, char text[NAME_MAX_BYTES])
{
    struct proto__name resolved = {text, 0};
    const struct proto__name unknown = {text, 0};
    const char *end = name.text + name.length;
    for (const char *at = name.text; at < end; at++) {
        char c = *at;
        if (c == '\\' && end - at > 5 && at[1] == 'u' && at[2] == '0' && at[3] == '0') {
            unsigned code = 16 * hex_digit(at[4]) + hex_digit(at[5]);
            c = code >= ' ' && code <= '~' ? (char)code : '\0';
            at += 5;
        } else if (c == '\\') {
            at++;
            c = at < end && (*at == '"' || *at == '\\' || *at == '/') ? *at : '\0';
        }
        if (c == '\0' || resolved.length == NAME_MAX_BYTES)
            return unknown;
        text[resolved.length++] = c;
    }
    return resolved;
}

enum error proto__refuse_value(struct proto__name name, struct failure *failure)
{
    struct proto__words called = proto__safe_words(name.text, name.length);
    struct proto__words shapes = proto__input_shapes_words(called.text);
    const char *hint = "";
    if (proto__equals_ignoring_case("matrix", name.text, name.length))
        hint = ", a list of rows, as in {\"matrix\": [[4, 7], [2, 6]]}";
    else if (proto__equals_ignoring_case("matrices", name.text, name.length))
        hint = ", a list of matrices, as in {\"matrices\": [[[4, 7], [2, 6]]]}";
    return failure_set(failure, ERROR_MALFORMED, "\"%s\" must be an array of numbers%s%s%s",
                       called.text, shapes.text[0] != '\0' ? " of shape " : "", shapes.text, hint);
}

/* Levels that one matrix takes of the array of that name: where it is no input's, as of rows. */
static int matrix_rank(struct proto__name name)
{
    int rank = 0;
    for (int m = 0; m < method_count(); m++) {
        const struct method_tensor *input = method_at(m)->inputs;
        for (; input->name != NULL; input++) {
            if (proto__equals_ignoring_case(input->name, name.text, name.length))
                rank = rank < input->rank ? input->rank : rank;
        }
    }
    return rank > 0 ? rank : 2;
}

/* At the ':' behind a name: lifts the value, when the rule says so. */
static enum error lift_value(struct walk *w)
{
    struct proto__scan *scan = w->scan;
    struct proto__name name = w->name;
    char text[NAME_MAX_BYTES];
    w->at++;
    if (name.text == NULL)
        return ERROR_NONE;
    if (w->escaped)
        name = resolve(name, w->depth == 1 ? w->root_text : text);
    if (w->depth == 1)
        w->root = name;
    if (!w->rule(w->context, w->depth, w->root, name))
        return ERROR_NONE;
    while (w->at < w->end && byte_classes[(unsigned char)*w->at] == BYTE_SPACE)
        w->at++;
    if (w->at == w->end || *w->at != '[')
        return proto__refuse_value(name, w->failure);
    if (scan->lift_count == PROTO_LIFTS_MAX)
        return failure_set(w->failure, ERROR_MALFORMED, "there are more than %d arrays of numbers",
                           PROTO_LIFTS_MAX);
    enum error error = append(w, w->copied, (size_t)(w->at - w->copied));
    if (error != ERROR_NONE)
        return error;
    struct proto__lift *lift = &scan->lifts[scan->lift_count];
    error = proto__lift_scan(lift, name, matrix_rank(name), w->text, w->at, w->end, w->failure);
    if (error != ERROR_NONE)
        return error;
    char placeholder = (char)('0' + scan->lift_count++);
    lift->skeleton_at = (int64_t)scan->copy.length;
    w->at = lift->end;
    w->copied = lift->end;
    return append(w, &placeholder, 1);
}

static enum error open_container(struct walk *w, bool is_object)
{
    if (w->depth == PROTO_DEPTH_MAX)
        return failure_set(w->failure, ERROR_MALFORMED, "the JSON is nested over %d levels deep",
                           PROTO_DEPTH_MAX);
    uint32_t bit = UINT32_C(1) << w->depth++;
    w->objects = is_object ? w->objects | bit : w->objects & ~bit;
    w->name_expected = is_object;
    w->at++;
    return ERROR_NONE;
}

static enum error walk_byte(struct walk *w)
{
    w->tokens++;
    switch (*w->at) {
    case '"':
        skip_string(w);
        return ERROR_NONE;
    case ':':
        return lift_value(w);
    case '{':
        return open_container(w, true);
    case '[':
        return open_container(w, false);
    case '}':
    case ']':
        if (w->depth > 0)
            w->depth--;
        break;
    case ',':
        w->name_expected = w->depth > 0 && (w->objects >> (w->depth - 1) & 1) != 0;
        break;
    default:
        w->tokens--;
        break;
    }
    w->at++;
    return ERROR_NONE;
}

/* The text has been walked to its end. */
static enum error finish(struct walk *w, int64_t length)
{
    struct proto__scan *scan = w->scan;
    if (scan->lift_count == 0 && length > PROTO_SKELETON_MAX)
        return refuse_large(w);
    if (scan->lift_count == 0) {
        scan->skeleton = length > 0 ? w->text : "";
        scan->skeleton_bytes = (size_t)length;
        return ERROR_NONE;
    }
    enum error error = append(w, w->copied, (size_t)(w->end - w->copied));
    scan->skeleton = scan->copy.data;
    scan->skeleton_bytes = scan->copy.length;
    return error;
}

enum error proto__scan(struct proto__scan *scan, const char *text, int64_t length,
                       proto__lift_rule *rule, const void *context, struct failure *failure)
{
    _Static_assert(PROTO_LIFTS_MAX <= 10, "a placeholder is one digit");
    _Static_assert(PROTO_DEPTH_MAX <= 32, "a bit for each level");
    struct walk w = {.scan = scan,
                     .text = text,
                     .at = text,
                     .end = text + length,
                     .copied = text,
                     .rule = rule,
                     .context = context,
                     .failure = failure};
    enum error error = ERROR_NONE;
    text_init(&scan->copy, PROTO_SKELETON_MAX);
    scan->lift_count = 0;
    while (error == ERROR_NONE && w.at < w.end) {
        error = walk_byte(&w);
        if (error == ERROR_NONE && w.tokens > PROTO_TOKENS_MAX)
            error = failure_set(failure, ERROR_TOO_LARGE,
                                "there are too many JSON values besides the matrices");
    }
    return error == ERROR_NONE ? finish(&w, length) : error;
}

void proto__scan_free(struct proto__scan *scan)
{
    text_free(&scan->copy);
}

/* ---- Pass two ---- */

static bool is_number_byte(const char *at, const char *end)
{
    return at < end && byte_classes[(unsigned char)*at] == BYTE_NUMBER;
}

/* "A[0,2,1]": the place of number `index`. */
static struct proto__words place_words(const struct proto__lift *lift, int64_t index)
{
    int64_t place[PROTO_RANK_MAX];
    for (int i = lift->rank - 1; i >= 0; i--) {
        place[i] = index % lift->shape[i];
        index /= lift->shape[i];
    }
    return proto__shape_words(lift->rank, place);
}

/* For a number that begins with its point, as .5 and -.5. */
static const char *point_hint(const char *at, const char *end)
{
    at += at < end && *at == '-';
    return at < end && *at == '.' ? ": write 0.5, not .5" : "";
}

enum error proto__lift_read(const struct proto__lift *lift, enum precision precision,
                            const char *name, void *out, struct failure *failure)
{
    const char *at = lift->begin;
    float *out_f32 = out;
    double *out_f64 = out;
    for (int64_t i = 0; i < lift->count; i++) {
        while (!is_number_byte(at, lift->end)) {
            assert(at < lift->end); /* pass one has counted */
            at++;
        }
        enum number_status status = precision == PRECISION_FP32
                                        ? number_read_f32(at, lift->end, &at, &out_f32[i])
                                        : number_read_f64(at, lift->end, &at, &out_f64[i]);
        if (status == NUMBER_OVERFLOW)
            return failure_set(failure, ERROR_MALFORMED, "%s%s is too large for %s", name,
                               place_words(lift, i).text, precision_name(precision));
        if (status != NUMBER_OK || is_number_byte(at, lift->end))
            return failure_set(failure, ERROR_MALFORMED,
                               "%s%s is not a number as JSON writes them%s", name,
                               place_words(lift, i).text, point_hint(at, lift->end));
    }
    return ERROR_NONE;
}
