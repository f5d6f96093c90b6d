/* base/option.c: gathers each option's value from flags, environment and file, then reads it.
 *
 * Three passes note who gave what: flags first, then variables, then the file, and a row that was
 * given keeps its first giver. Only then are values read, the defaults of the rest among them. So
 * an error about a value always speaks of the giver that counts.
 *
 * Threads: at start-up only. Memory: what was given is copied and freed again before
 * option_parse returns; the configuration owns its TEXT fields.
 */
#include "base/option.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/option_value.h"

#define NAME_MAX_BYTES 64   /* of a flag, a variable or a key that is looked at closely */
#define SHOWN_MAX 100       /* bytes of a user's text in a message */
#define LINE_MAX_BYTES 4096 /* of a configuration file */
#define LINES_MAX 10000

enum giver {
    GIVER_DEFAULT,
    GIVER_FLAG,
    GIVER_VARIABLE,
    GIVER_FILE
};

struct given {
    enum giver giver;
    char *value; /* owned */
    int line;    /* of the file */
};

struct parse {
    const struct option_table *table;
    struct failure *failure;
    struct given *given; /* [table->count] */
    const char *path;    /* of the file; lent by the "config" row's given */
};

/* ---- Names and messages ---- */

/* The user's text, fit to be shown: no control characters, valid UTF-8, not too long. */
static const char *shown(const char *value, char buffer[SHOWN_MAX])
{
    struct text text;
    text_init_fixed(&text, buffer, SHOWN_MAX - 3);
    size_t length = strlen(value);
    size_t bytes = 1;
    for (size_t at = 0; at < length && !text.failed; at += bytes) {
        bytes = text_utf8(value + at, length - at);
        bool plain = bytes > 0 && !iscntrl((unsigned char)value[at]);
        bytes = bytes > 0 ? bytes : 1;
        text_append(&text, plain ? value + at : "?", plain ? bytes : 1);
    }
    if (text.failed)
        memcpy(buffer + text.length, "...", 4);
    return buffer;
}

/* The name of a flag as a variable: "drain-timeout" is INVERTD_DRAIN_TIMEOUT. */
static void append_variable(const struct option_table *table, const char *flag, struct text *text)
{
    text_printf(text, "%s_", table->prefix);
    for (; *flag != '\0'; flag++) {
        char c = *flag == '-' ? '_' : (char)toupper((unsigned char)*flag);
        text_append(text, &c, 1);
    }
}

/* How a giver names a flag. */
static void append_name(const struct option_table *table, enum giver giver, const char *flag,
                        struct text *text)
{
    if (giver == GIVER_VARIABLE)
        append_variable(table, flag, text);
    else
        text_printf(text, "%s%s", giver == GIVER_FILE ? "" : "--", flag);
}

/* As append_name, and where in the file it stands: "/etc/invertd.conf:12: listen". */
static void append_place(const struct parse *parse, enum giver giver, int line, const char *flag,
                         struct text *text)
{
    char path[SHOWN_MAX];
    if (giver == GIVER_FILE)
        text_printf(text, "%s:%d: ", shown(parse->path, path), line);
    append_name(parse->table, giver, flag, text);
}

/* Single insertions, deletions and replacements that lead from a to b (Levenshtein). */
static size_t distance(const char *a, const char *b)
{
    size_t row[NAME_MAX_BYTES + 1];
    size_t length = strlen(b);
    assert(length <= NAME_MAX_BYTES);
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            size_t best = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            best = best < diagonal + 1 ? best : diagonal + 1;
            row[j + 1] = best < row[j] + 1 ? best : row[j] + 1;
        }
    }
    return row[length];
}

/* The first flag that begins with these words, else the only one that holds them: --token-file for
 * token, --allowed-hosts for hosts. NULL: none. */
static const char *flag_with_words(const struct option_table *table, const char *words)
{
    const char *holds = NULL;
    size_t length = strlen(words), count = 0;
    for (size_t i = 0; i < table->count; i++) {
        const char *flag = table->rows[i].flag, *at = strstr(flag, words);
        if (length == 0 || at == NULL || (at[length] != '-' && at[length] != '\0'))
            continue;
        if (at == flag)
            return flag;
        if (at[-1] != '-')
            continue;
        holds = flag;
        count++;
    }
    return count == 1 ? holds : NULL;
}

/* The flag that name was probably meant to be; NULL when none is near. */
static const char *nearest_flag(const struct option_table *table, const char *name)
{
    size_t length = strlen(name);
    if (length > NAME_MAX_BYTES)
        return NULL;
    const char *nearest = flag_with_words(table, name);
    if (nearest != NULL)
        return nearest;
    size_t min = length / 3 + 2; /* must be below */
    for (size_t i = 0; i < table->count; i++) {
        size_t steps = distance(name, table->rows[i].flag);
        if (steps < min) {
            min = steps;
            nearest = table->rows[i].flag;
        }
    }
    return nearest;
}

/* Is name, in any case, one of the parts of "HOST:PORT|unix:PATH"? */
static bool is_part(const char *name, const char *placeholder)
{
    static const char between[] = ":|";
    const char *part = placeholder;
    if (part == NULL || strpbrk(part, between) == NULL)
        return false;
    bool is_it = false;
    while (!is_it && *part != '\0') {
        size_t length = strcspn(part, between);
        is_it = length == strlen(name) && strncasecmp(name, part, length) == 0;
        part += length + (part[length] != '\0');
    }
    return is_it;
}

/* The row whose value has a part of this name: --listen for --port; NULL: none. */
static const struct option_row *row_with_part(const struct option_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (is_part(name, table->rows[i].placeholder))
            return &table->rows[i];
    return NULL;
}

static enum error fail_unknown(const struct parse *parse, enum giver giver, int line,
                               const char *name, const char *as_written)
{
    char place[2 * SHOWN_MAX + 16] = "", guess[NAME_MAX_BYTES + 32] = "", safe[SHOWN_MAX];
    char path[SHOWN_MAX];
    if (giver == GIVER_FILE)
        snprintf(place, sizeof place, "%s:%d: ", shown(parse->path, path), line);
    const struct option_row *whole = row_with_part(parse->table, name);
    const char *nearest = whole != NULL ? whole->flag : nearest_flag(parse->table, name);
    if (nearest != NULL) {
        struct text text;
        text_init_fixed(&text, guess, sizeof guess);
        append_name(parse->table, giver, nearest, &text);
        if (whole != NULL && giver == GIVER_FLAG)
            text_printf(&text, " %s", whole->placeholder);
    }
    return failure_set(parse->failure, ERROR_BAD_OPTION, "%s%s is not an option. %s%s%s", place,
                       shown(as_written, safe), nearest != NULL ? "Did you mean " : "See --help.",
                       guess, nearest != NULL ? "?" : "");
}

static enum error fail_value(const struct parse *parse, const struct option_row *row,
                             const struct given *given)
{
    char place[3 * SHOWN_MAX], allowed[3 * SHOWN_MAX], value[SHOWN_MAX];
    struct text text;
    text_init_fixed(&text, place, sizeof place);
    append_place(parse, given->giver, given->line, row->flag, &text);
    text_init_fixed(&text, allowed, sizeof allowed);
    option__allowed(row, &text);
    return failure_set(parse->failure, ERROR_BAD_OPTION, "%s \"%s\" is not allowed; give %s.",
                       place, shown(given->value, value), allowed);
}

/* ---- Who gave what ---- */

/* The row whose flag is name[0..length); -1 when there is none. */
static int find_row(const struct option_table *table, const char *name, size_t length)
{
    for (size_t i = 0; i < table->count; i++) {
        const char *flag = table->rows[i].flag;
        if (strlen(flag) == length && memcmp(flag, name, length) == 0)
            return (int)i;
    }
    return -1;
}

/* A list that is given again grows. */
static enum error extend(struct parse *parse, struct given *given, const char *value)
{
    char *joined = NULL;
    if (asprintf(&joined, "%s,%s", given->value, value) < 0)
        return failure_set(parse->failure, ERROR_INTERNAL, "Out of memory for the options.");
    free(given->value);
    given->value = joined;
    return ERROR_NONE;
}

/* Notes a value, unless a stronger giver has given one. Twice by the same giver is an error, unless
 * the option is a list. */
static enum error note(struct parse *parse, int row, enum giver giver, int line, const char *value)
{
    struct given *given = &parse->given[row];
    if (given->giver == giver && parse->table->rows[row].kind == OPTION_LIST)
        return extend(parse, given, value);
    if (given->giver == giver) {
        char place[3 * SHOWN_MAX];
        struct text text;
        text_init_fixed(&text, place, sizeof place);
        append_place(parse, giver, line, parse->table->rows[row].flag, &text);
        return failure_set(parse->failure, ERROR_BAD_OPTION, "%s is given twice.", place);
    }
    if (given->giver != GIVER_DEFAULT)
        return ERROR_NONE;
    char *copy = strdup(value);
    if (copy == NULL)
        return failure_set(parse->failure, ERROR_INTERNAL, "Out of memory for the options.");
    *given = (struct given){giver, copy, line};
    return ERROR_NONE;
}

/* One flag at argv[*at], which moves past the value when that stands apart. */
static enum error gather_flag(struct parse *parse, int argc, char *const *argv, int *at)
{
    char safe[SHOWN_MAX];
    const char *argument = argv[*at];
    if (strncmp(argument, "--", 2) != 0 || argument[2] == '\0')
        return failure_set(parse->failure, ERROR_BAD_OPTION,
                           "\"%s\" is not expected here. Options are written --name value or "
                           "--name=value, switches --name or --name=false.",
                           shown(argument, safe));
    const char *name = argument + 2;
    size_t length = strcspn(name, "=");
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    int row = find_row(parse->table, name, length);
    if (row < 0) {
        char bare[SHOWN_MAX];
        snprintf(bare, sizeof bare, "--%.*s", (int)strcspn(name, "="), name);
        return fail_unknown(parse, GIVER_FLAG, 0, bare + 2, bare);
    }
    if (value == NULL && parse->table->rows[row].kind == OPTION_BOOL) {
        value = "true";
    } else if (value == NULL) {
        if (*at + 1 >= argc || strncmp(argv[*at + 1], "--", 2) == 0) {
            char allowed[3 * SHOWN_MAX];
            struct text text;
            text_init_fixed(&text, allowed, sizeof allowed);
            option__allowed(&parse->table->rows[row], &text);
            return failure_set(parse->failure, ERROR_BAD_OPTION, "%s needs a value; give %s.",
                               argument, allowed);
        }
        value = argv[++*at];
    }
    return note(parse, row, GIVER_FLAG, 0, value);
}

static enum error gather_flags(struct parse *parse, int argc, char *const *argv)
{
    for (int at = 1; at < argc; at++) {
        enum error error = gather_flag(parse, argc, argv, &at);
        if (error != ERROR_NONE)
            return error;
    }
    return ERROR_NONE;
}

/* Whether Kubernetes sets such a variable for a Service. */
static bool is_of_service(const char *variable)
{
    static const char *const patterns[] = {"*_SERVICE_HOST", "*_SERVICE_PORT", "*_SERVICE_PORT_*",
                                           "*_PORT", "*_PORT_[0-9]*"};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        if (fnmatch(patterns[i], variable, 0) == 0)
            return true;
    }
    return false;
}

/* One entry of the environment that starts with the prefix. */
static enum error gather_variable(struct parse *parse, const char *entry)
{
    char name[NAME_MAX_BYTES + 2], variable[SHOWN_MAX];
    struct text text;
    const char *key = entry + strlen(parse->table->prefix) + 1;
    size_t length = strcspn(key, "=");
    bool exact = true; /* variables are upper case: invertd_listen or INVERTD_listen are none */
    text_init_fixed(&text, name, sizeof name);
    for (size_t i = 0; i < length; i++) {
        char c = key[i] == '_' ? '-' : (char)tolower((unsigned char)key[i]);
        exact = exact && !islower((unsigned char)key[i]) && key[i] != '-';
        text_append(&text, &c, 1);
    }
    int row = exact && !text.failed ? find_row(parse->table, name, length) : -1;
    if (row < 0) {
        snprintf(variable, sizeof variable, "%.*s", (int)strcspn(entry, "="), entry);
        bool is_foreign =
            parse->table->foreign != NULL && strcmp(variable, parse->table->foreign) == 0;
        return is_foreign || is_of_service(variable)
                   ? ERROR_NONE
                   : fail_unknown(parse, GIVER_VARIABLE, 0, name, variable);
    }
    if (parse->given[row].giver == GIVER_VARIABLE)
        return ERROR_NONE; /* as getenv: the first of two counts */
    return note(parse, row, GIVER_VARIABLE, 0, key[length] == '=' ? key + length + 1 : "");
}

static enum error gather_environment(struct parse *parse, char *const *environment)
{
    size_t length = strlen(parse->table->prefix);
    for (; environment != NULL && *environment != NULL; environment++) {
        const char *entry = *environment;
        if (strncmp(entry, parse->table->prefix, length) != 0 || entry[length] != '_')
            continue;
        enum error error = gather_variable(parse, entry);
        if (error != ERROR_NONE)
            return error;
    }
    return ERROR_NONE;
}

/* ---- The file ---- */

/* Cuts white space off both ends, in place. */
static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    text[length] = '\0';
    return text;
}

/* `key = value`; a value in double quotes keeps its outer spaces. Overwrites the line. */
static enum error gather_line(struct parse *parse, char *line, int number)
{
    char path[SHOWN_MAX];
    char *key = trim(line);
    if (*key == '\0' || *key == '#')
        return ERROR_NONE;
    char *equals = strchr(key, '=');
    if (equals == NULL || equals == key)
        return failure_set(parse->failure, ERROR_BAD_OPTION,
                           "%s:%d: a line must be \"key = value\", or start with #.",
                           shown(parse->path, path), number);
    *equals = '\0';
    key = trim(key);
    char *value = trim(equals + 1);
    size_t length = strlen(value);
    if (length >= 2 && value[0] == '"' && value[length - 1] == '"') {
        value[length - 1] = '\0';
        value++;
    }
    int row = find_row(parse->table, key, strlen(key));
    if (row < 0)
        return fail_unknown(parse, GIVER_FILE, number, key, key);
    if (strcmp(key, "config") == 0)
        return failure_set(parse->failure, ERROR_BAD_OPTION,
                           "%s:%d: a configuration file cannot name another.",
                           shown(parse->path, path), number);
    return note(parse, row, GIVER_FILE, number, value);
}

static enum error gather_lines(struct parse *parse, FILE *file)
{
    char line[LINE_MAX_BYTES], path[SHOWN_MAX];
    errno = 0;
    for (int number = 1; fgets(line, sizeof line, file) != NULL; number++) {
        size_t length = strlen(line);
        bool whole = length > 0 && line[length - 1] == '\n';
        if (number == 1 && strncmp(line, "\xef\xbb\xbf", 3) == 0)
            memset(line, ' ', 3); /* the byte order mark that editors of Windows write */
        if ((!whole && !feof(file)) || number > LINES_MAX)
            return failure_set(parse->failure, ERROR_BAD_OPTION,
                               "%s:%d: not a line of text, or longer than %d bytes, or past line "
                               "%d.",
                               shown(parse->path, path), number, LINE_MAX_BYTES - 2, LINES_MAX);
        enum error error = gather_line(parse, line, number);
        if (error != ERROR_NONE)
            return error;
    }
    if (ferror(file))
        return failure_set(parse->failure, ERROR_BAD_OPTION, "--config \"%s\" cannot be read: %s.",
                           shown(parse->path, path), strerror(errno));
    return ERROR_NONE;
}

static enum error check_mode(const struct parse *parse, FILE *file)
{
    struct stat status;
    char path[SHOWN_MAX];
    if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode) ||
        (status.st_mode & S_IWOTH) == 0)
        return ERROR_NONE;
    return failure_set(parse->failure, ERROR_BAD_OPTION,
                       "--config \"%s\" is not allowed; others can write the file (chmod o-w).",
                       shown(parse->path, path));
}

static enum error gather_file(struct parse *parse)
{
    const struct option_table *table = parse->table;
    int row = find_row(table, "config", strlen("config"));
    assert(row >= 0 && table->rows[row].kind == OPTION_TEXT);
    const struct given *given = &parse->given[row];
    parse->path = given->giver == GIVER_DEFAULT ? table->rows[row].initial : given->value;
    if (parse->path == NULL)
        return ERROR_NONE;
    FILE *file = fopen(parse->path, "re");
    if (file == NULL) {
        char name[SHOWN_MAX], path[SHOWN_MAX];
        struct text text;
        text_init_fixed(&text, name, sizeof name);
        append_name(table, given->giver, "config", &text);
        return failure_set(parse->failure, ERROR_BAD_OPTION, "%s \"%s\" cannot be read: %s.", name,
                           shown(parse->path, path), strerror(errno));
    }
    enum error error = check_mode(parse, file);
    if (error == ERROR_NONE)
        error = gather_lines(parse, file);
    fclose(file);
    return error;
}

/* ---- Public ---- */

/* Reads every row's value, given or default, into the configuration. */
static enum error read_values(const struct parse *parse, void *configuration)
{
    for (size_t i = 0; i < parse->table->count; i++) {
        const struct option_row *row = &parse->table->rows[i];
        const struct given *given = &parse->given[i];
        const char *value = given->giver == GIVER_DEFAULT ? row->initial : given->value;
        if (value == NULL) {
            assert(option__may_lack(row));
            continue;
        }
        enum error error = option__read(row, value, configuration);
        assert(error != ERROR_BAD_OPTION || given->giver != GIVER_DEFAULT);
        if (error == ERROR_BAD_OPTION)
            return fail_value(parse, row, given);
        if (error != ERROR_NONE)
            return failure_set(parse->failure, error, "Out of memory for the options.");
    }
    return ERROR_NONE;
}

enum error option_parse(const struct option_table *table, int argc, char *const *argv,
                        char *const *environment, void *configuration, struct failure *failure)
{
    struct parse parse = {.table = table, .failure = failure};
    parse.given = calloc(table->count, sizeof parse.given[0]);
    if (parse.given == NULL)
        return failure_set(failure, ERROR_INTERNAL, "Out of memory for the options.");
    enum error error = gather_flags(&parse, argc, argv);
    if (error == ERROR_NONE)
        error = gather_environment(&parse, environment);
    if (error == ERROR_NONE)
        error = gather_file(&parse);
    if (error == ERROR_NONE)
        error = read_values(&parse, configuration);
    if (error != ERROR_NONE)
        option_free(table, configuration);
    for (size_t i = 0; i < table->count; i++)
        free(parse.given[i].value);
    free(parse.given);
    return error;
}

void option_free(const struct option_table *table, void *configuration)
{
    for (size_t i = 0; i < table->count; i++)
        option__clear(&table->rows[i], configuration);
}
