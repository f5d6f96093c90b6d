/* server/http/token_file.c: see token_file.h. */
#include "server/http/token_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/option.h"

#define SECRET "callback-secret-file="
#define BLANKS " \t\r"
#define VALUE_MAX_BYTES 64
#define SIZE_MAX_BYTES (INT64_C(1) << 50)
#define RATE_MAX 1000000000
#define DEVICE_NS_MAX INT64_C(1000000000000) /* of a thousand devices */

#define SHAPE                                                                                      \
    "a line is NAME ROLE[,ROLE...] sha256:HEX [quota=value ...], as the second "                   \
    "of the two that invertd --new-token NAME prints"
#define NAME_RULE                                                                                  \
    "the name takes 1 to 64 letters, digits and . _ - @, the first a letter or a digit"
#define ROLES_RULE "the roles are " CLIENT_ROLE_WORDS ", with commas between, each once"
#define QUOTAS_RULE                                                                                \
    "what follows the token's hash is requests=, rate=, bytes=, device=, jobs=, spool= or "        \
    "callback-secret-file= with a value, each once"

#define LIMIT(field) offsetof(struct client_limits, field)

static const struct option_row quotas[] = {
    {.flag = "requests", .kind = OPTION_INT, .offset = LIMIT(requests), .min = 1, .max = 1 << 24},
    {.flag = "rate", .kind = OPTION_INT, .offset = LIMIT(rate), .min = 1, .max = RATE_MAX},
    {.flag = "bytes",
     .kind = OPTION_BYTES,
     .offset = LIMIT(bytes),
     .min = 1,
     .max = SIZE_MAX_BYTES},
    {.flag = "device",
     .kind = OPTION_DURATION,
     .offset = LIMIT(device_ns),
     .min = 1000,
     .max = DEVICE_NS_MAX},
    {.flag = "jobs", .kind = OPTION_INT, .offset = LIMIT(jobs), .min = 1, .max = 1 << 24},
    {.flag = "spool",
     .kind = OPTION_BYTES,
     .offset = LIMIT(spool_bytes),
     .min = 1,
     .max = SIZE_MAX_BYTES},
};
#define QUOTA_COUNT (sizeof quotas / sizeof quotas[0])

/* A part of a line. */
struct part {
    const char *text;
    size_t length; /* 0: the line has no more */
};

struct parse {
    const char *path;
    int line;
    struct token_file_row *rows; /* [CLIENTS_MAX] */
    int *lines;                  /* [CLIENTS_MAX]: where they stand */
    int count;
    struct failure *failure;
};

static enum error refuse(const struct parse *parse, const char *why)
{
    return failure_set(parse->failure, ERROR_BAD_OPTION, "%.120s:%d: %s.", parse->path, parse->line,
                       why);
}

/* Takes the next part off a line. */
static struct part take(struct part *line)
{
    struct part part = {line->text, 0};
    while (line->length > 0 && strchr(BLANKS, *line->text) != NULL && *line->text != '\0') {
        line->text++;
        line->length--;
    }
    part.text = line->text;
    while (line->length > 0 && (strchr(BLANKS, *line->text) == NULL || *line->text == '\0')) {
        line->text++;
        line->length--;
        part.length++;
    }
    if (part.length > 0 && part.text[0] == '#')
        part.length = line->length = 0;
    return part;
}

/* 0: they are none. */
static unsigned read_roles(struct part part)
{
    unsigned roles = 0;
    for (;;) {
        const char *comma = memchr(part.text, ',', part.length);
        size_t length = comma == NULL ? part.length : (size_t)(comma - part.text);
        unsigned role = client_role_find(part.text, length);
        if (role == 0 || (roles & role) != 0)
            return 0;
        roles |= role;
        if (comma == NULL)
            return roles;
        part.text += length + 1;
        part.length -= length + 1;
    }
}

static bool read_digest(struct part part, unsigned char digest[DIGEST_BYTES])
{
    static const char scheme[] = "sha256:";
    const size_t length = sizeof scheme - 1;
    return part.length > length && memcmp(part.text, scheme, length) == 0 &&
           digest_read(part.text + length, part.length - length, digest);
}

/* NULL: the part is no quota. */
static const struct option_row *find_quota(struct part part)
{
    const char *equals = memchr(part.text, '=', part.length);
    for (size_t i = 0; equals != NULL && i < QUOTA_COUNT; i++) {
        size_t length = strlen(quotas[i].flag);
        if (length == (size_t)(equals - part.text) &&
            memcmp(quotas[i].flag, part.text, length) == 0)
            return &quotas[i];
    }
    return NULL;
}

static enum error read_quota(const struct parse *parse, struct part part,
                             struct client_limits *limits, unsigned *seen)
{
    char value[VALUE_MAX_BYTES], allowed[192], why[256];
    const struct option_row *row = find_quota(part);
    if (row == NULL || (*seen & 1u << (row - quotas)) != 0)
        return refuse(parse, QUOTAS_RULE);
    *seen |= 1u << (row - quotas);
    size_t name = strlen(row->flag) + 1, length = part.length - name;
    if (length >= sizeof value || memchr(part.text, '\0', part.length) != NULL)
        length = 0; /* no value, which no row takes */
    memcpy(value, part.text + name, length);
    value[length] = '\0';
    if (option_value_read(row, value, limits, allowed, sizeof allowed) == ERROR_NONE)
        return ERROR_NONE;
    snprintf(why, sizeof why, "%s= takes %s", row->flag, allowed);
    return refuse(parse, why);
}

/* false: the part is another one. */
static bool is_secret(struct part part)
{
    return part.length >= sizeof SECRET - 1 && memcmp(part.text, SECRET, sizeof SECRET - 1) == 0;
}

static enum error read_secret(const struct parse *parse, struct part part,
                              struct token_file_row *row)
{
    size_t length = part.length - (sizeof SECRET - 1);
    if (row->secret_path[0] != '\0')
        return refuse(parse, QUOTAS_RULE);
    if (length == 0 || length >= sizeof row->secret_path ||
        memchr(part.text, '\0', part.length) != NULL)
        return refuse(parse, SECRET " takes a path without blanks, of 511 bytes at most");
    memcpy(row->secret_path, part.text + sizeof SECRET - 1, length);
    return ERROR_NONE;
}

static enum error check_unique(const struct parse *parse, const struct token_file_row *row)
{
    char why[64];
    for (int i = 0; i < parse->count; i++) {
        const struct token_file_row *other = &parse->rows[i];
        bool same_name = strcmp(other->client.name, row->client.name) == 0;
        if (!same_name && memcmp(other->digest, row->digest, DIGEST_BYTES) != 0)
            continue;
        snprintf(why, sizeof why, "line %d has the same %s", parse->lines[i],
                 same_name ? "name" : "token");
        return refuse(parse, why);
    }
    return ERROR_NONE;
}

static enum error parse_line(struct parse *parse, struct part line)
{
    struct token_file_row row = {.line = parse->line};
    struct part name = take(&line), roles, digest, quota;
    if (name.length == 0)
        return ERROR_NONE;
    roles = take(&line);
    digest = take(&line);
    if (digest.length == 0)
        return refuse(parse, SHAPE);
    if (!client_is_name(name.text, name.length))
        return refuse(parse, NAME_RULE);
    memcpy(row.client.name, name.text, name.length);
    row.client.roles = read_roles(roles);
    if (row.client.roles == 0)
        return refuse(parse, ROLES_RULE);
    if (!read_digest(digest, row.digest))
        return refuse(parse, "the third part is sha256: and 64 hexadecimal digits, the SHA-256 of "
                             "the token; invertd --new-token NAME makes such a line");
    unsigned seen = 0;
    enum error error = ERROR_NONE;
    while (error == ERROR_NONE && (quota = take(&line)).length > 0)
        error = is_secret(quota) ? read_secret(parse, quota, &row)
                                 : read_quota(parse, quota, &row.client.limits, &seen);
    if (error == ERROR_NONE)
        error = check_unique(parse, &row);
    if (error != ERROR_NONE)
        return error;
    if (parse->count == CLIENTS_MAX)
        return refuse(parse, "a file holds 1024 clients at most");
    parse->lines[parse->count] = parse->line;
    parse->rows[parse->count++] = row;
    return ERROR_NONE;
}

static enum error parse_lines(struct parse *parse, const char *text, size_t size)
{
    enum error error = ERROR_NONE;
    const char *end = text + size;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3; /* the byte order mark that editors of Windows write */
    while (error == ERROR_NONE && text < end) {
        const char *feed = memchr(text, '\n', (size_t)(end - text));
        const char *stop = feed == NULL ? end : feed;
        parse->line++;
        error = parse_line(parse, (struct part){text, (size_t)(stop - text)});
        text = stop + 1;
    }
    if (error == ERROR_NONE && parse->count == 0)
        error = refuse(parse, "the file holds no client, and would let no one in; " SHAPE);
    return error;
}

enum error token_file_parse(const char *text, size_t size, const char *path,
                            struct token_file_row **rows, int *count, struct failure *failure)
{
    struct parse parse = {.path = path, .failure = failure};
    parse.rows = calloc(CLIENTS_MAX, sizeof *parse.rows);
    parse.lines = calloc(CLIENTS_MAX, sizeof *parse.lines);
    bool made = parse.rows != NULL && parse.lines != NULL;
    enum error error = made ? parse_lines(&parse, text, size)
                            : failure_set(failure, ERROR_INTERNAL, "out of memory");
    free(parse.lines);
    if (error != ERROR_NONE) {
        free(parse.rows);
        return error;
    }
    *rows = parse.rows;
    *count = parse.count;
    return ERROR_NONE;
}

enum error token_file_new(const char *name, const char *roles, char token[DIGEST_HEX_BYTES],
                          struct text *line, struct failure *failure)
{
    unsigned char bytes[DIGEST_BYTES], digest[DIGEST_BYTES];
    char hex[DIGEST_HEX_BYTES];
    if (!client_is_name(name, strlen(name)))
        return failure_set(failure, ERROR_BAD_OPTION, "--new-token: %s.", NAME_RULE);
    if (read_roles((struct part){roles, strlen(roles)}) == 0)
        return failure_set(failure, ERROR_BAD_OPTION, "--new-token: %s.", ROLES_RULE);
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return failure_set(failure, ERROR_INTERNAL, "the system has no random bytes");
    digest_show(bytes, token);
    explicit_bzero(bytes, sizeof bytes);
    if (!digest_sha256(token, strlen(token), digest))
        return failure_set(failure, ERROR_INTERNAL, "GnuTLS computes no SHA-256");
    digest_show(digest, hex);
    text_printf(line, "%s %s sha256:%s", name, roles, hex);
    return ERROR_NONE;
}
