/* base/option_reload.c: what differs between two configurations of one table, and what of it may
 * change while the program runs. See option.h.
 *
 * Threads: one.
 */
#include <string.h>

#include "base/option_value.h"

#define SHOWN_MAX ((size_t)1 << 16)

/* The field as text; what is not there is "". */
static const char *show(const struct option_row *row, const void *configuration, struct text *text)
{
    text_init(text, SHOWN_MAX);
    option__show(row, configuration, text);
    return text->data != NULL ? text->data : "";
}

void option_reload_differences(const struct option_table *table, const void *before,
                               const void *after,
                               void (*each)(void *context, const struct option_row *row,
                                            const char *before, const char *after),
                               void *context)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct option_row *row = &table->rows[i];
        struct text was, is;
        const char *was_text = show(row, before, &was), *is_text = show(row, after, &is);
        if (strcmp(was_text, is_text) != 0)
            each(context, row, was_text, is_text);
        text_free(&was);
        text_free(&is);
    }
}

void option_reload_apply(const struct option_table *table, void *configuration, const void *fresh)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->rows[i].reload)
            option__copy(&table->rows[i], configuration, fresh);
}
