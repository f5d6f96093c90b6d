/* client/arguments.c: see arguments.h. */
#include "client/arguments.h"

#include <ctype.h>
#include <getopt.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/option.h"
#include "client/outcome.h"

#define URL_MAX (64 << 10)
#define DAY_NS INT64_C(86400000000000)
#define IDS_MAX 1000
#define ID_MAX 64      /* bytes */
#define KEY_MAX 255    /* bytes, as the server's */
#define HELP_COLUMN 28 /* where the explanations begin */
#define HELP_WIDTH 80
#define FIELD(name) offsetof(struct arguments, name)

/* ---- The tables ---- */

static const struct {
    const char *name, *operands, *help;
    int min, max; /* of operands */
} commands[] = {
    [COMMAND_INVERT] = {"", "FILE -o FILE", "Invert the matrices of a file.", 1, 1},
    [COMMAND_STATUS] = {"status", "ID...", "Print how far jobs are.", 1, IDS_MAX},
    [COMMAND_WAIT] = {"wait", "ID...", "Wait until jobs have ended.", 1, IDS_MAX},
    [COMMAND_FETCH] = {"fetch", "ID -o FILE", "Write the answer of a job that has ended.", 1, 1},
    [COMMAND_CANCEL] = {"cancel", "ID...", "Cancel jobs, or drop their answers.", 1, IDS_MAX},
    [COMMAND_LIST] = {"list", "", "Print this client's jobs, the newest first.", 0, 0},
};
enum {
    COMMANDS = sizeof commands / sizeof commands[0]
};

#define OF(name) (1U << COMMAND_##name)
#define OF_ALL (~0U)

/* A LIST is gathered in the query. */
static const struct argument {
    char letter;
    enum option_kind kind;
    unsigned of; /* the commands that it is for */
    size_t offset;
    int64_t max;
    const char *flag, *placeholder, *help;
} rows[] = {
    {'o', OPTION_TEXT, OF(INVERT) | OF(FETCH), FIELD(output), 0, "output", "FILE",
     "Where the answer goes; the name chooses the format. - is stdout."},
    {'f', OPTION_TEXT, OF(INVERT) | OF(FETCH), FIELD(to), 0, "to", "FORMAT",
     "The answer's format, whatever the name: " FORMAT_NAMES "."},
    {'F', OPTION_TEXT, OF(INVERT), FIELD(from), 0, "from", "FORMAT",
     "The file's format, whatever its name."},
    {'m', OPTION_TEXT, OF(INVERT), FIELD(method), 0, "method", "NAME",
     "The method, lu for example. Without it the server takes auto."},
    {'p', OPTION_LIST, OF(INVERT), 0, 0, "option", "NAME=VALUE",
     "An option of the method, or a common one: outputs=inverse,info."},
    {'a', OPTION_BOOL, OF(INVERT), FIELD(detach), 0, "async", "",
     "Send the file as a job, print its id and end. Needs no -o."},
    {'i', OPTION_TEXT, OF(INVERT), FIELD(idempotency_key), 0, "idempotency-key", "KEY",
     "The same key with the same file again is the same job. Default: a random one."},
    {'d', OPTION_BYTES, OF(INVERT), FIELD(direct_max), INT64_MAX, "direct-max", "SIZE",
     "What is larger is sent as a job. Default 64MiB."},
    {'S', OPTION_TEXT, OF(LIST), FIELD(status), 0, "status", "STATUS",
     "Only jobs that are accepted, running, successful or failed."},
    {'N', OPTION_TEXT, OF(LIST), FIELD(since), 0, "since", "TIME",
     "Only jobs made since then: 2026-11-28T12:00:00Z."},
    {'n', OPTION_INT, OF(LIST), FIELD(limit), 1000000, "limit", "COUNT",
     "How many jobs at most. Default 100."},
    {'s', OPTION_TEXT, OF_ALL, FIELD(server), 0, "server", "URL",
     "http://, https:// or unix:/path. Else INVERTD_SERVER, else " ARGUMENTS_SERVER "."},
    {'t', OPTION_TEXT, OF_ALL, FIELD(token_file), 0, "token-file", "FILE",
     "Its first line is the token. Others must not read it."},
    {'c', OPTION_TEXT, OF_ALL, FIELD(cacert), 0, "cacert", "FILE",
     "PEM file of the CAs to trust instead of the system's."},
    {'C', OPTION_TEXT, OF_ALL, FIELD(cert), 0, "cert", "FILE",
     "PEM file of this client's certificate."},
    {'k', OPTION_TEXT, OF_ALL, FIELD(key), 0, "key", "FILE",
     "PEM file of its key. Others must not read it."},
    {'T', OPTION_DURATION, OF_ALL, FIELD(timeout_ns), 30 * DAY_NS, "timeout", "SECONDS",
     "How long it may take in all. Default: no limit."},
    {'r', OPTION_DURATION, OF_ALL, FIELD(retry_max_ns), 30 * DAY_NS, "retry-max", "SECONDS",
     "How long to wait where there is no room, or for a server that has gone. Default: that of "
     "--timeout, else 60."},
    {'j', OPTION_BOOL, OF_ALL, FIELD(json), 0, "json", "",
     "Print JSON, a line for each request or job; on stderr with -o -."},
    {'q', OPTION_BOOL, OF_ALL, FIELD(quiet), 0, "quiet", "", "Show no progress and no warnings."},
    {'h', OPTION_BOOL, OF_ALL, FIELD(help), 0, "help", "", "Print this."},
    {'V', OPTION_BOOL, OF_ALL, FIELD(version), 0, "version", "", "Print the version."},
};
enum {
    ROWS = sizeof rows / sizeof rows[0]
};

/* ---- The address and the query ---- */

void arguments_escape(struct text *text, const char *value, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)value[i];
        bool plain = c < 0x80 && (isalnum(c) || strchr("-._~", c) != NULL);
        text_printf(text, plain ? "%c" : "%%%02X", c);
    }
}

static void add_to_query(struct arguments *arguments, const char *name, size_t length,
                         const char *value)
{
    text_puts(&arguments->query, "&");
    arguments_escape(&arguments->query, name, length);
    text_puts(&arguments->query, "=");
    arguments_escape(&arguments->query, value, strlen(value));
}

static enum error make_address(struct arguments *arguments, struct failure *failure)
{
    const char *server = arguments->server;
    size_t length = strlen(server);
    bool is_socket = strncmp(server, "unix:/", 6) == 0;
    if ((!is_socket && strncmp(server, "http://", 7) != 0 && strncmp(server, "https://", 8) != 0) ||
        strpbrk(server, "?# ") != NULL)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "the server \"%.200s\" is not usable; give http://HOST:PORT, "
                           "https://HOST:PORT or unix:/path",
                           server);
    while (server[length - 1] == '/')
        length--;
    arguments->socket = is_socket ? server + strlen("unix:") : NULL;
    if (is_socket)
        text_puts(&arguments->address, "http://localhost");
    else
        text_append(&arguments->address, server, length);
    return ERROR_NONE;
}

static enum error make_path(struct arguments *arguments, struct failure *failure)
{
    text_puts(&arguments->path, "/v1/invert");
    if (arguments->method != NULL)
        add_to_query(arguments, "method", strlen("method"), arguments->method);
    if (arguments->query.length > 0)
        text_printf(&arguments->path, "?%s", arguments->query.data + 1);
    if (arguments->query.failed || arguments->path.failed || arguments->address.failed)
        return failure_set(failure, ERROR_BAD_OPTION, "the options are longer than %d bytes",
                           URL_MAX);
    return ERROR_NONE;
}

/* ---- The command line ---- */

static enum error read_row(struct arguments *arguments, const struct argument *row, char *value,
                           struct failure *failure)
{
    char allowed[200] = "NAME=VALUE";
    void *field = (char *)arguments + row->offset;
    struct option_row reader = {
        .kind = row->kind, .offset = row->offset, .min = row->kind == OPTION_INT, .max = row->max};
    const char *sign = row->kind == OPTION_LIST ? strchr(value, '=') : NULL;
    if ((row->of & (1U << arguments->command)) == 0)
        return failure_set(failure, ERROR_BAD_OPTION, "--%s is not for invert%s%s", row->flag,
                           arguments->command == COMMAND_INVERT ? " FILE" : " ",
                           commands[arguments->command].name);
    if (row->kind == OPTION_BOOL)
        *(bool *)field = true;
    else if (row->kind == OPTION_TEXT)
        *(const char **)field = value;
    else if (sign != NULL && sign != value)
        add_to_query(arguments, value, (size_t)(sign - value), sign + 1);
    else if (row->kind == OPTION_LIST ||
             option_value_read(&reader, value, arguments, allowed, sizeof allowed) != ERROR_NONE)
        return failure_set(failure, ERROR_BAD_OPTION, "--%s \"%.100s\" is not usable; give %s",
                           row->flag, value, allowed);
    return ERROR_NONE;
}

static enum error read_options(struct arguments *arguments, int argc, char **argv,
                               struct failure *failure)
{
    char letters[2 + 2 * ROWS] = ":", *letter = letters + 1;
    struct option options[ROWS + 1] = {{0}};
    for (int i = 0; i < ROWS; i++) {
        bool has_value = rows[i].kind != OPTION_BOOL;
        options[i] = (struct option){rows[i].flag, has_value, NULL, rows[i].letter};
        *letter++ = rows[i].letter;
        if (has_value)
            *letter++ = ':';
    }
    optind = 0; /* from the start, in tests too */
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, letters, options, NULL)) != -1;) {
        int i = 0;
        while (i < ROWS && rows[i].letter != found)
            i++;
        char name[] = {'-', (char)optopt, '\0'};
        enum error error =
            i < ROWS ? read_row(arguments, &rows[i], optarg, failure)
                     : failure_set(failure, ERROR_BAD_OPTION, "%.200s %s; see invert --help",
                                   optopt != 0 ? name : argv[optind - 1],
                                   found == ':' ? "needs a value" : "is no option, or has a value");
        if (error != ERROR_NONE)
            return error;
    }
    return ERROR_NONE;
}

/* A command is the first word; a file of such a name is given as ./status. */
static enum command find_command(const char *word)
{
    int i = COMMANDS - 1;
    while (i > COMMAND_INVERT && (word == NULL || strcmp(word, commands[i].name) != 0))
        i--;
    return (enum command)i;
}

/* What a path holds without escapes: a server gives no other ids. */
static bool is_id(const char *id)
{
    size_t length = strlen(id);
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)id[i]) && id[i] != '-' && id[i] != '_')
            return false;
    }
    return length > 0 && length <= ID_MAX;
}

static enum error read_operands(struct arguments *arguments, int count, char **operands,
                                struct failure *failure)
{
    enum command command = arguments->command;
    if (count >= commands[command].min && count <= commands[command].max) {
        arguments->input = command == COMMAND_INVERT ? operands[0] : NULL;
        arguments->ids = command == COMMAND_INVERT ? NULL : operands;
        arguments->id_count = command == COMMAND_INVERT ? 0 : count;
    } else if (command == COMMAND_INVERT) {
        return failure_set(failure, ERROR_BAD_OPTION,
                           "give one file to invert, or - for stdin; see invert --help");
    } else {
        return failure_set(failure, ERROR_BAD_OPTION,
                           "give invert %s from %d to %d ids of jobs; see invert --help",
                           commands[command].name, commands[command].min, commands[command].max);
    }
    for (int i = 0; i < arguments->id_count; i++) {
        if (!is_id(operands[i]))
            return failure_set(failure, ERROR_BAD_OPTION,
                               "\"%.100s\" is no id of a job; give what invert --async printed",
                               operands[i]);
    }
    return ERROR_NONE;
}

/* By --from or --to, else by the file's name. */
static enum error find_format(const char *flag, const char *name, const char *path,
                              enum format *format, struct failure *failure)
{
    *format = name != NULL ? format_of_name(name) : path != NULL ? format_of_path(path) : 0;
    if (name != NULL && *format == FORMAT_UNKNOWN)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "--%s \"%.100s\" is not usable; give " FORMAT_NAMES, flag, name);
    return ERROR_NONE;
}

static enum error find_formats(struct arguments *arguments, struct failure *failure)
{
    enum error error =
        find_format("from", arguments->from, arguments->input, &arguments->input_format, failure);
    if (error == ERROR_NONE)
        error =
            find_format("to", arguments->to, arguments->output, &arguments->output_format, failure);
    if (arguments->output_format == FORMAT_UNKNOWN && format_is_converted(arguments->input_format))
        arguments->output_format = arguments->input_format;
    return error;
}

static enum error check(const struct arguments *arguments, struct failure *failure)
{
    const char *key = arguments->idempotency_key;
    bool needs_output = arguments->command == COMMAND_FETCH ||
                        (arguments->command == COMMAND_INVERT && !arguments->detach);
    if (needs_output && arguments->output == NULL)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "-o is missing: give a file for the answer, or - for stdout");
    if (arguments->detach && arguments->output != NULL)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "--async writes no answer: leave -o out, and give it to invert fetch");
    if ((arguments->cert == NULL) != (arguments->key == NULL))
        return failure_set(failure, ERROR_BAD_OPTION, "--cert and --key are of use together alone");
    size_t length = key != NULL ? strlen(key) : 1;
    for (size_t i = 0; key != NULL && i < length; i++)
        length = key[i] > ' ' && key[i] <= '~' ? length : 0;
    if (length == 0 || length > KEY_MAX)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "--idempotency-key is not usable; give 1 to %d letters, digits and "
                           "signs, without spaces",
                           KEY_MAX);
    return ERROR_NONE;
}

enum error arguments_read(struct arguments *arguments, int argc, char **argv, const char *server,
                          struct failure *failure)
{
    *arguments = (struct arguments){.retry_max_ns = -1,
                                    .direct_max = ARGUMENTS_DIRECT_MAX,
                                    .limit = 100,
                                    .command = find_command(argc > 1 ? argv[1] : NULL)};
    int skipped = arguments->command != COMMAND_INVERT;
    text_init(&arguments->query, URL_MAX);
    text_init(&arguments->path, URL_MAX);
    text_init(&arguments->address, URL_MAX);
    enum error error = read_options(arguments, argc - skipped, argv + skipped, failure);
    if (error != ERROR_NONE || arguments->help || arguments->version)
        return error;
    if (arguments->server == NULL)
        arguments->server = server != NULL ? server : ARGUMENTS_SERVER;
    if (arguments->retry_max_ns < 0)
        arguments->retry_max_ns =
            arguments->timeout_ns > 0 ? arguments->timeout_ns : 60 * (int64_t)CLOCK_S;
    error = read_operands(arguments, argc - skipped - optind, argv + skipped + optind, failure);
    if (error == ERROR_NONE)
        error = find_formats(arguments, failure);
    if (error == ERROR_NONE)
        error = check(arguments, failure);
    if (error == ERROR_NONE)
        error = make_address(arguments, failure);
    return error == ERROR_NONE ? make_path(arguments, failure) : error;
}

void arguments_free(struct arguments *arguments)
{
    text_free(&arguments->query);
    text_free(&arguments->path);
    text_free(&arguments->address);
}

/* ---- Help ---- */

/* One row of a table, the right column of which is broken into lines. */
static void print_row(FILE *stream, const char *left, const char *right)
{
    int column = fprintf(stream, "  %-*s", HELP_COLUMN - 2, left);
    while (*right != '\0') {
        int length = (int)strcspn(right, " ");
        if (column > HELP_COLUMN && column + 1 + length > HELP_WIDTH)
            column = fprintf(stream, "\n%*s", HELP_COLUMN, "") - 1;
        column += fprintf(stream, "%s%.*s", column > HELP_COLUMN ? " " : "", length, right);
        right += length + (right[length] == ' ');
    }
    fputc('\n', stream);
}

static void print_options(FILE *stream, const char *title, unsigned of)
{
    char left[100];
    fprintf(stream, "\n%s:\n", title);
    for (int i = 0; i < ROWS; i++) {
        const struct argument *row = &rows[i];
        snprintf(left, sizeof left, "-%c, --%s %s", row->letter, row->flag, row->placeholder);
        if (row->of == of)
            print_row(stream, left, row->help);
    }
}

void arguments_print_help(FILE *stream)
{
    char left[100];
    fprintf(stream, "Inverts the matrices of NumPy (.npy, .npz), JSON, Matrix Market (.mtx) and\n"
                    "CSV files by a running invertd.\n\nCommands:\n");
    for (int i = 0; i < COMMANDS; i++) {
        snprintf(left, sizeof left, "invert%s%s %s", i > 0 ? " " : "", commands[i].name,
                 commands[i].operands);
        print_row(stream, left, commands[i].help);
    }
    print_options(stream, "Answers", OF(INVERT) | OF(FETCH));
    print_options(stream, "Inversion", OF(INVERT));
    print_options(stream, "List", OF(LIST));
    print_options(stream, "All commands", OF_ALL);
    fprintf(stream, "\nExit codes:\n");
#define OUTCOME_HELP(code, exit_code, help)                                                        \
    snprintf(left, sizeof left, "%d", exit_code);                                                  \
    fprintf(stream, "  %2s  %s\n", left, help);
    OUTCOME_TABLE(OUTCOME_HELP)
#undef OUTCOME_HELP
}
