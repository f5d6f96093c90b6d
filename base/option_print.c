/* base/option_print.c: the option table as help, as a configuration file and as Markdown.
 *
 * Threads: at start-up only.
 */
#include "base/option.h"

#include <ctype.h>
#include <string.h>

#include "base/option_value.h"

#define PAGE_MAX ((size_t)1 << 20)
#define WIDTH 80

static void print_page(struct text *page, FILE *stream)
{
    if (page->data != NULL)
        fwrite(page->data, 1, page->length, stream);
    text_free(page);
}

/* Appends words with line breaks so that lines stay within WIDTH; each line begins with indent. */
static void append_wrapped(struct text *page, const char *indent, const char *words)
{
    size_t column = 0;
    while (*words != '\0') {
        size_t length = strcspn(words, " ");
        if (column > 0 && column + 1 + length > WIDTH) {
            text_puts(page, "\n");
            column = 0;
        }
        text_puts(page, column == 0 ? indent : " ");
        column += column == 0 ? strlen(indent) : 1;
        text_append(page, words, length);
        column += length;
        words += length;
        words += strspn(words, " ");
    }
    text_puts(page, "\n");
}

/* "Default 10s; give a duration from ..." */
static void append_default(const struct option_row *row, struct text *words)
{
    if (row->initial == NULL)
        text_puts(words, "No default");
    else if (row->initial[0] == '\0')
        text_puts(words, "Default empty");
    else
        text_printf(words, "Default %s", row->initial);
    if (!option__may_lack(row)) {
        text_puts(words, "; give ");
        option__allowed(row, words);
    }
    text_puts(words, ".");
}

void option_print_help(const struct option_table *table, FILE *stream)
{
    struct text page, words;
    text_init(&page, PAGE_MAX);
    text_init(&words, PAGE_MAX);
    text_printf(&page, "Usage: %s [--option value]...\n\n", table->program);
    append_wrapped(&page, "", table->summary);
    text_printf(&words,
                "Each option may also be given as a variable (--some-option is %s_SOME_OPTION) or "
                "as a line \"some-option = value\" of the file that --config names. A flag wins "
                "over a variable, a variable over the file.",
                table->prefix);
    text_puts(&page, "\n");
    append_wrapped(&page, "", words.data != NULL ? words.data : "");
    for (size_t i = 0; i < table->count; i++) {
        const struct option_row *row = &table->rows[i];
        text_printf(&page, "\n  --%s", row->flag);
        if (row->kind != OPTION_BOOL)
            text_printf(&page, " %s", row->placeholder != NULL ? row->placeholder : "VALUE");
        text_puts(&page, "\n");
        text_free(&words);
        text_printf(&words, "%s ", row->help);
        append_default(row, &words);
        append_wrapped(&page, "      ", words.data != NULL ? words.data : "");
    }
    text_free(&words);
    print_page(&page, stream);
}

/* A value as the file wants it: in quotes when it would else be read differently. */
static void append_file_value(struct text *page, const char *value)
{
    size_t length = strlen(value);
    bool quotes = length == 0 || value[0] == '"' || isspace((unsigned char)value[0]) ||
                  isspace((unsigned char)value[length - 1]);
    text_printf(page, quotes ? "\"%s\"" : "%s", value);
}

void option_print_config(const struct option_table *table, const void *configuration, FILE *stream)
{
    struct text page, words;
    text_init(&page, PAGE_MAX);
    text_init(&words, PAGE_MAX);
    for (size_t i = 0; i < table->count; i++) {
        const struct option_row *row = &table->rows[i];
        if (strcmp(row->flag, "config") == 0)
            continue; /* the file cannot name itself */
        text_free(&words);
        text_printf(&words, "%s ", row->help);
        append_default(row, &words);
        append_wrapped(&page, "# ", words.data != NULL ? words.data : "");
        text_free(&words);
        option__show(row, configuration, &words);
        bool none = option__lacks(row, configuration);
        text_printf(&page, "%s%s = ", none ? "# " : "", row->flag);
        if (!none)
            append_file_value(&page, words.data != NULL ? words.data : "");
        text_puts(&page, "\n\n");
    }
    text_free(&words);
    print_page(&page, stream);
}

/* A bar would end the cell. */
static void append_cell(struct text *page, const char *words)
{
    for (; *words != '\0'; words++) {
        if (*words == '|')
            text_puts(page, "\\");
        text_append(page, words, 1);
    }
}

static void append_row(struct text *page, const struct option_row *row)
{
    struct text words;
    text_init(&words, PAGE_MAX);
    option__allowed(row, &words);
    text_printf(page, "| `--%s` | ", row->flag);
    if (row->initial == NULL || row->initial[0] == '\0')
        text_puts(page, row->initial == NULL ? "none" : "empty");
    else
        text_printf(page, "`%s`", row->initial);
    text_puts(page, " | ");
    append_cell(page, words.data != NULL ? words.data : "");
    text_puts(page, " | ");
    append_cell(page, row->help);
    text_puts(page, row->reload ? " | yes |\n" : " | |\n");
    text_free(&words);
}

/* Of the rows that are for tests, or of all others. Nothing when there are none. */
static void append_table(struct text *page, const struct option_table *table, bool for_tests)
{
    bool begun = false;
    for (size_t i = 0; i < table->count; i++) {
        if (table->rows[i].for_tests != for_tests)
            continue;
        if (!begun && for_tests)
            text_puts(page, "\n## For tests alone\n\n");
        if (!begun)
            text_puts(page, "| Option | Default | Allowed | What it does | Reload |\n"
                            "| --- | --- | --- | --- | --- |\n");
        begun = true;
        append_row(page, &table->rows[i]);
    }
}

void option_print_markdown(const struct option_table *table, FILE *stream)
{
    struct text page;
    text_init(&page, PAGE_MAX);
    append_table(&page, table, false);
    append_table(&page, table, true);
    print_page(&page, stream);
}
