/* base/option.h: options from flags, environment and a file, by one table row each.
 *
 * A row gives the flag `--drain-timeout`, from which come the variable INVERTD_DRAIN_TIMEOUT and
 * the file's key drain-timeout (`key = value` lines, and comment lines that start with #; a value
 * in double quotes keeps its outer spaces). A flag wins over the environment, the environment over
 * the file, the file over the default.
 *
 * A file that others can write is refused.
 *
 * Threads: one.
 */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum option_kind {
    OPTION_INT,      /* int64_t */
    OPTION_BYTES,    /* int64_t; accepts 4096, 64KiB, 1MiB, 8GiB, 1MB (decimal) */
    OPTION_DURATION, /* int64_t nanoseconds; accepts 10s, 500ms, 50us, 2m, and plain seconds */
    OPTION_BOOL,     /* bool; true/false, on/off, yes/no, 1/0; a bare flag is true */
    OPTION_TEXT,     /* char *, owned by the configuration */
    OPTION_CHOICE,   /* int, index into choices */
    OPTION_LIST,     /* struct option_list: texts with commas between, or given several times */
};

#define OPTION_LIST_MAX 64 /* texts in a list */

/* Owned by the configuration. Zeroed: none. No text is empty or holds a comma. */
struct option_list {
    char **items;
    int count;
};

struct option_row {
    const char *flag; /* without the dashes */
    enum option_kind kind;
    size_t offset;           /* of the field in the configuration struct */
    const char *initial;     /* default, as a user would write it; NULL for TEXT, LIST: none */
    int64_t min, max;        /* bounds of INT, BYTES, DURATION, in the field's unit, inclusive;
                              * max of LIST: texts, 0: OPTION_LIST_MAX */
    const char *choices;     /* "json|text" for CHOICE */
    const char *placeholder; /* "HOST:PORT" in --help */
    const char *help;        /* one sentence or two */
    bool for_tests;          /* of no use but to tests: documented apart */
    bool reload;             /* may change while the program runs; no TEXT and no LIST may */
};

struct option_table {
    const char *program, *summary, *prefix; /* prefix: "INVERTD" */
    const struct option_row *rows;
    size_t count;
    const char *foreign; /* a variable with the prefix that another program reads; NULL: none */
};

/* Fills *configuration (zeroed by the caller). `--config FILE` (INVERTD_CONFIG) names the file;
 * it is itself a row's business: the table must hold a TEXT row "config". On ERROR_BAD_OPTION the
 * failure names the option, where it came from, the value and what is allowed. Stray arguments and
 * repeated
 * options that are no lists are errors. environment: as environ(7). An unknown INVERTD_* variable
 * is an error too, save those that Kubernetes sets in every pod for a Service whose name begins as
 * the prefix does: INVERTD_SERVICE_HOST, INVERTD_SERVICE_PORT and what begins so, INVERTD_PORT,
 * INVERTD_PORT_8000_TCP and what begins so, with or without words between (INVERTD_BLUE_PORT). The
 * table's foreign variable is left alone too. On any error the configuration holds nothing to free.
 * --help, --version and --print-config are not options: main looks for them first. */
ERROR_MUST_CHECK enum error option_parse(const struct option_table *table, int argc,
                                         char *const *argv, char *const *environment,
                                         void *configuration, struct failure *failure);
/* Calls each(context, row, before, after) for each row that has another value now, as texts. */
void option_reload_differences(const struct option_table *table, const void *before,
                               const void *after,
                               void (*each)(void *context, const struct option_row *row,
                                            const char *before, const char *after),
                               void *context);
/* Copies the rows that may change. */
void option_reload_apply(const struct option_table *table, void *configuration, const void *fresh);
void option_free(const struct option_table *table, void *configuration); /* TEXT, LIST */

/* For tables that are no command line's: reads one value into its row's field. BAD_OPTION: the
 * value is not of the row's kind, or out of bounds; allowed holds what may be given instead, to be
 * read after "give". */
ERROR_MUST_CHECK enum error option_value_read(const struct option_row *row, const char *value,
                                              void *configuration, char *allowed, size_t size);

void option_print_help(const struct option_table *table, FILE *stream);
/* As a configuration file that would give the same configuration, each row with its help. */
void option_print_config(const struct option_table *table, const void *configuration, FILE *stream);
/* A Markdown table, for docs/options.md, and one of the rows that are for tests, under a heading of
 * its own, where there are any. */
void option_print_markdown(const struct option_table *table, FILE *stream);

#endif
