/* gpu/process/options.c: see options.h. Threads: main alone. Cost: once a process. */
#include "gpu/process/options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the common rows set. */
struct parsed {
    struct process_logging *logging;
    bool help;
};

/* The index of a word in a list that ends with NULL; -1 when it is none of them. */
static int parse_word(const char *text, const char *const *words, const char *complaint)
{
    for (int i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0)
            return i;
    }
    log_line(LOG_ERROR, complaint, "value", LOG_STR, text, NULL);
    return -1;
}

static bool parse_log_format(const char *text, void *context)
{
    static const char *const names[] = {[LOG_JSON] = "json", [LOG_TEXT] = "text", NULL};
    struct process_logging *logging = ((struct parsed *)context)->logging;
    int found = parse_word(text, names, "bad option: --log-format takes json or text");
    logging->format = found < 0 ? LOG_JSON : (enum log_format)found;
    return found >= 0;
}

static bool parse_log_level(const char *text, void *context)
{
    static const char *const names[] = {[LOG_DEBUG] = "debug",
                                        [LOG_INFO] = "info",
                                        [LOG_WARNING] = "warning",
                                        [LOG_ERROR] = "error",
                                        NULL};
    struct process_logging *logging = ((struct parsed *)context)->logging;
    int found =
        parse_word(text, names, "bad option: --log-level takes debug, info, warning or error");
    logging->level = found < 0 ? LOG_INFO : (enum log_level)found;
    return found >= 0;
}

static bool ask_for_help(const char *text, void *context)
{
    (void)text;
    ((struct parsed *)context)->help = true;
    return true;
}

static const struct process_flag common[] = {
    {"log-format", true, parse_log_format, "json|text: how log lines look (json)"},
    {"log-level", true, parse_log_level,
     "debug|info|warning|error: the least that is reported (info)"},
    {"help", false, ask_for_help, "this list"},
};

#define COMMON ((int)(sizeof common / sizeof common[0]))

static void print_flags(const struct process_flag *flags, int count)
{
    for (int i = 0; i < count; i++)
        printf("  --%-18s %s\n", flags[i].name, flags[i].help);
}

static _Noreturn void print_help(const char *program, const struct process_flag *flags, int count)
{
    const char *slash = strrchr(program, '/');
    printf("usage: %s [--flag value ...]\n"
           "An engine of invertd, which starts it.\n",
           slash ? slash + 1 : program);
    print_flags(flags, count);
    print_flags(common, COMMON);
    exit(EXIT_SUCCESS);
}

/* getopt's table: the common rows, then the engine's, then the row of zeros that ends it. */
static int lay_out(const struct process_flag *flags, struct option *table)
{
    int count = 0;
    while (flags[count].name)
        count++;
    assert(count <= PROCESS_FLAGS_MAX);
    for (int i = 0; i < COMMON + count; i++) {
        const struct process_flag *flag = i < COMMON ? &common[i] : &flags[i - COMMON];
        table[i] = (struct option){.name = flag->name,
                                   .has_arg = flag->has_value ? required_argument : no_argument,
                                   .val = i};
    }
    table[COMMON + count] = (struct option){0};
    return COMMON + count;
}

bool process_parse(int argc, char **argv, const struct process_flag *flags, void *settings,
                   struct process_logging *logging)
{
    struct option table[COMMON + PROCESS_FLAGS_MAX + 1];
    int count = lay_out(flags, table), found;
    struct parsed parsed = {.logging = logging};
    *logging = (struct process_logging){.format = LOG_JSON, .level = LOG_INFO};
    while ((found = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (found < 0 || found >= count)
            return false; /* getopt has reported it */
        bool good = found < COMMON ? common[found].parse(optarg, &parsed)
                                   : flags[found - COMMON].parse(optarg, settings);
        if (!good)
            return false;
        if (parsed.help)
            print_help(argv[0], flags, count - COMMON);
    }
    if (optind < argc)
        log_line(LOG_ERROR, "bad option: stray argument", "value", LOG_STR, argv[optind], NULL);
    return optind == argc;
}

bool process_parse_self_test(const char *text, void *settings)
{
    (void)text;
    ((struct process_test_flags *)settings)->self_test = true;
    return true;
}

#ifdef ENGINE_FAULTS
bool process_parse_fault(const char *text, void *settings)
{
    struct process_test_flags *tests = settings;
    tests->has_faults = process_faults_parse(text, &tests->faults);
    return tests->has_faults;
}
#endif

bool process_parse_number(const char *text, int64_t max, const char *complaint, int64_t *number)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < 0 || value > max) {
        log_line(LOG_ERROR, complaint, "value", LOG_STR, text, NULL);
        return false;
    }
    *number = value;
    return true;
}
