/* client/arguments.c: see arguments.h. */
#include "client/arguments.h"

#include <ctype.h>
#include <getopt.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/option.h"
#include "client/outcome.h"

#define URL_MAX (64 << 10)
#define DAY_NS INT64_C(86400000000000)
#define FIELD(name) offsetof(struct arguments, name)

/* A LIST is gathered in the query. */
static const struct argument {
    char letter;
    enum option_kind kind;
    size_t offset;
    const char *flag, *placeholder, *help;
} rows[] = {
    {'o', OPTION_TEXT, FIELD(output), "output", "FILE",
     "Where the answer goes; the name chooses the format. - is stdout. Needed."},
    {'m', OPTION_TEXT, FIELD(method), "method", "NAME",
     "The method, lu for example. Without it the server takes auto."},
    {'p', OPTION_LIST, 0, "option", "NAME=VALUE",
     "An option of the method, or a common one: outputs=inverse,info."},
    {'s', OPTION_TEXT, FIELD(server), "server", "URL",
     "http://, https:// or unix:/path. Else INVERTD_SERVER, else " ARGUMENTS_SERVER "."},
    {'t', OPTION_TEXT, FIELD(token_file), "token-file", "FILE",
     "Its first line is the token. Others must not read it."},
    {'c', OPTION_TEXT, FIELD(cacert), "cacert", "FILE",
     "PEM file of the CAs to trust instead of the system's."},
    {'r', OPTION_DURATION, FIELD(retry_max_ns), "retry-max", "SECONDS",
     "How long to wait in all where there is no room. Default 60."},
    {'j', OPTION_BOOL, FIELD(json), "json", "",
     "Print a line of JSON about the request; on stderr with -o -."},
    {'q', OPTION_BOOL, FIELD(quiet), "quiet", "", "Show no progress and no warnings."},
    {'h', OPTION_BOOL, FIELD(help), "help", "", "Print this."},
    {'V', OPTION_BOOL, FIELD(version), "version", "", "Print the version."},
};
enum {
    ROWS = sizeof rows / sizeof rows[0]
};

static const struct {
    const char *ending, *type;
} media_types[] = {
    {".npy", "application/x-npy"},
    {".npz", "application/x-npz"},
    {".json", "application/json"},
};

const char *arguments_media_type(const char *path)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof media_types / sizeof media_types[0]; i++) {
        size_t ending = strlen(media_types[i].ending);
        if (length > ending && strcasecmp(path + length - ending, media_types[i].ending) == 0)
            return media_types[i].type;
    }
    return NULL;
}

/* ---- The URL ---- */

static void escape(struct text *text, const char *value, size_t length)
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
    escape(&arguments->query, name, length);
    text_puts(&arguments->query, "=");
    escape(&arguments->query, value, strlen(value));
}

static enum error make_url(struct arguments *arguments, struct failure *failure)
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
        text_puts(&arguments->url, "http://localhost");
    else
        text_append(&arguments->url, server, length);
    text_puts(&arguments->url, "/v1/invert");
    if (arguments->method != NULL)
        add_to_query(arguments, "method", strlen("method"), arguments->method);
    if (arguments->query.length > 0)
        text_printf(&arguments->url, "?%s", arguments->query.data + 1);
    if (arguments->query.failed || arguments->url.failed)
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
    struct option_row reader = {.kind = row->kind, .offset = row->offset, .max = DAY_NS};
    const char *sign = row->kind == OPTION_LIST ? strchr(value, '=') : NULL;
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

enum error arguments_read(struct arguments *arguments, int argc, char **argv, const char *server,
                          struct failure *failure)
{
    *arguments = (struct arguments){.retry_max_ns = 60 * (int64_t)CLOCK_S};
    text_init(&arguments->query, URL_MAX);
    text_init(&arguments->url, URL_MAX);
    enum error error = read_options(arguments, argc, argv, failure);
    if (error != ERROR_NONE || arguments->help || arguments->version)
        return error;
    if (argc - optind != 1)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "give one file to invert, or - for stdin; see invert --help");
    if (arguments->output == NULL)
        return failure_set(failure, ERROR_BAD_OPTION,
                           "-o is missing: give a file for the answer, or - for stdout");
    arguments->input = argv[optind];
    if (arguments->server == NULL)
        arguments->server = server != NULL ? server : ARGUMENTS_SERVER;
    return make_url(arguments, failure);
}

void arguments_free(struct arguments *arguments)
{
    text_free(&arguments->query);
    text_free(&arguments->url);
}

void arguments_print_help(FILE *stream)
{
    fprintf(stream, "Usage: invert FILE -o FILE [--method NAME] [--option NAME=VALUE]...\n\n"
                    "Inverts the matrices of a NumPy (.npy, .npz) or JSON file by a running "
                    "invertd.\n\n");
    for (int i = 0; i < ROWS; i++)
        fprintf(stream, "  -%c, --%s %s\n          %s\n", rows[i].letter, rows[i].flag,
                rows[i].placeholder, rows[i].help);
    fprintf(stream, "\nExit codes:\n");
#define OUTCOME_HELP(code, exit_code, help) fprintf(stream, "  %d  %s\n", exit_code, help);
    OUTCOME_TABLE(OUTCOME_HELP)
#undef OUTCOME_HELP
}
