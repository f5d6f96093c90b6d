/* base/option_value.c: reads and shows the values of options, one kind each.
 *
 * INT, BYTES and DURATION are one thing: a decimal number with a unit from a table, kept as an
 * int64_t of the smallest unit. 1.5s is 1500000000 ns; what is not a whole number of the smallest
 * unit is refused, not rounded.
 *
 * Threads: at start-up only.
 */
#include "base/option_value.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/choices.h"

#define FRACTION_DIGITS_MAX 9

/* A value is shown in the first unit that divides it. */
struct unit {
    const char *name;
    int64_t size;
};

static const struct unit units_int[] = {{"", 1}, {NULL, 0}};
static const struct unit units_bytes[] = {{"TiB", INT64_C(1) << 40},
                                          {"GiB", INT64_C(1) << 30},
                                          {"MiB", INT64_C(1) << 20},
                                          {"KiB", INT64_C(1) << 10},
                                          {"TB", 1000000000000},
                                          {"GB", 1000000000},
                                          {"MB", 1000000},
                                          {"KB", 1000},
                                          {"B", 1},
                                          {"kB", 1000},
                                          {"", 1},
                                          {NULL, 0}};
static const struct unit units_duration[] = {
    {"h", 3600000000000}, {"m", 60000000000}, {"s", 1000000000}, {"ms", 1000000},
    {"us", 1000},         {"ns", 1},          {"", 1000000000},  {NULL, 0}};

static const struct unit *units_of(enum option_kind kind)
{
    if (kind == OPTION_BYTES)
        return units_bytes;
    return kind == OPTION_DURATION ? units_duration : units_int;
}

static void *field_of(const struct option_row *row, void *configuration)
{
    return (char *)configuration + row->offset;
}

bool option__may_lack(const struct option_row *row)
{
    return row->kind == OPTION_TEXT || row->kind == OPTION_LIST;
}

bool option__lacks(const struct option_row *row, const void *configuration)
{
    const void *field = (const char *)configuration + row->offset;
    if (row->kind == OPTION_LIST)
        return ((const struct option_list *)field)->count == 0;
    return row->kind == OPTION_TEXT && *(char *const *)field == NULL;
}

static void clear_list(struct option_list *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct option_list){0};
}

void option__clear(const struct option_row *row, void *configuration)
{
    void *field = field_of(row, configuration);
    if (row->kind == OPTION_LIST)
        clear_list(field);
    if (row->kind != OPTION_TEXT)
        return;
    free(*(char **)field);
    *(char **)field = NULL;
}

void option__copy(const struct option_row *row, void *configuration, const void *fresh)
{
    static const size_t sizes[] = {[OPTION_INT] = sizeof(int64_t),
                                   [OPTION_BYTES] = sizeof(int64_t),
                                   [OPTION_DURATION] = sizeof(int64_t),
                                   [OPTION_BOOL] = sizeof(bool),
                                   [OPTION_CHOICE] = sizeof(int)};
    assert(!option__may_lack(row));
    memcpy(field_of(row, configuration), (const char *)fresh + row->offset, sizes[row->kind]);
}

/* ---- Reading ---- */

/* Reads decimal digits, at least one and at most limit; advances *text. */
static bool read_digits(const char **text, int limit, int64_t *value, int *count)
{
    *value = 0;
    for (*count = 0; isdigit((unsigned char)**text); ++*count, ++*text) {
        if (*count == limit || !checked_mul(*value, 10, value) ||
            !checked_add(*value, **text - '0', value))
            return false;
    }
    return *count > 0;
}

/* [-] digits [. digits] [unit] */
static bool read_scaled(const char *text, const struct unit *unit, int64_t *value)
{
    bool negative = *text == '-';
    text += negative;
    int64_t whole, fraction = 0, parts = 1;
    int count, fraction_digits = 0;
    if (!read_digits(&text, 19, &whole, &count))
        return false;
    if (*text == '.') {
        text++;
        if (!read_digits(&text, FRACTION_DIGITS_MAX, &fraction, &fraction_digits))
            return false;
    }
    while (unit->name != NULL && strcmp(unit->name, text) != 0)
        unit++;
    if (unit->name == NULL || (unit->size == 1 && fraction_digits > 0))
        return false;
    for (int i = 0; i < fraction_digits; i++)
        parts *= 10;
    int64_t sum;
    if (!checked_mul(whole, unit->size, &whole) || !checked_mul(fraction, unit->size, &fraction) ||
        fraction % parts != 0 || !checked_add(whole, fraction / parts, &sum))
        return false;
    *value = negative ? -sum : sum;
    return true;
}

/* A line break would not survive a configuration file, and no path or address needs one. */
static bool has_control(const char *text)
{
    for (; *text != '\0'; text++) {
        if (iscntrl((unsigned char)*text))
            return true;
    }
    return false;
}

/* Texts in a list of that row. */
static int list_max(const struct option_row *row)
{
    return row->max > 0 ? (int)row->max : OPTION_LIST_MAX;
}

static enum error read_list(const struct option_row *row, const char *value,
                            struct option_list *list)
{
    assert(list->count == 0);
    if (has_control(value))
        return ERROR_BAD_OPTION;
    list->items = calloc(OPTION_LIST_MAX, sizeof list->items[0]);
    enum error error = list->items == NULL ? ERROR_INTERNAL : ERROR_NONE;
    for (const char *part = value; error == ERROR_NONE; part++) {
        part += strspn(part, " ");
        size_t length = strcspn(part, ","), bytes = length;
        while (bytes > 0 && part[bytes - 1] == ' ')
            bytes--;
        if (bytes == 0 || list->count == list_max(row)) {
            error = ERROR_BAD_OPTION;
            break;
        }
        list->items[list->count] = strndup(part, bytes);
        if (list->items[list->count] == NULL)
            error = ERROR_INTERNAL;
        else
            list->count++;
        part += length;
        if (*part == '\0')
            break;
    }
    if (error != ERROR_NONE)
        clear_list(list);
    return error;
}

enum error option__read(const struct option_row *row, const char *value, void *configuration)
{
    void *field = field_of(row, configuration);
    int64_t number;
    int choice;
    char *copy;
    switch (row->kind) {
    case OPTION_INT:
    case OPTION_BYTES:
    case OPTION_DURATION:
        if (!read_scaled(value, units_of(row->kind), &number) || number < row->min ||
            number > row->max)
            return ERROR_BAD_OPTION;
        *(int64_t *)field = number;
        return ERROR_NONE;
    case OPTION_BOOL:
        return choices_read_bool(value, field) ? ERROR_NONE : ERROR_BAD_OPTION;
    case OPTION_CHOICE:
        choice = choices_find(row->choices, value);
        if (choice < 0)
            return ERROR_BAD_OPTION;
        *(int *)field = choice;
        return ERROR_NONE;
    case OPTION_TEXT:
        if (has_control(value))
            return ERROR_BAD_OPTION;
        copy = strdup(value);
        if (copy == NULL)
            return ERROR_INTERNAL;
        assert(*(char **)field == NULL);
        *(char **)field = copy;
        return ERROR_NONE;
    case OPTION_LIST:
        return read_list(row, value, field);
    }
    assert(!"an option's kind");
    return ERROR_INTERNAL;
}

/* ---- Showing ---- */

static void show_scaled(int64_t value, const struct unit *unit, struct text *text)
{
    /* Zero is a whole number of everything: show it in the unit people would write. */
    if (value == 0 && unit == units_duration) {
        text_puts(text, "0s");
        return;
    }
    while (value % unit->size != 0 || (value == 0 && unit->size > 1))
        unit++;
    text_printf(text, "%lld%s", (long long)(value / unit->size), unit->name);
}

static void show_choice(const char *choices, int index, struct text *text)
{
    size_t length;
    const char *choice = choices_at(choices, index, &length);
    assert(choice != NULL);
    text_append(text, choice, length);
}

static void show_list(const struct option_list *list, struct text *text)
{
    for (int i = 0; i < list->count; i++)
        text_printf(text, "%s%s", i > 0 ? "," : "", list->items[i]);
}

void option__show(const struct option_row *row, const void *configuration, struct text *text)
{
    const void *field = (const char *)configuration + row->offset;
    switch (row->kind) {
    case OPTION_INT:
    case OPTION_BYTES:
    case OPTION_DURATION:
        show_scaled(*(const int64_t *)field, units_of(row->kind), text);
        break;
    case OPTION_BOOL:
        text_puts(text, *(const bool *)field ? "true" : "false");
        break;
    case OPTION_CHOICE:
        show_choice(row->choices, *(const int *)field, text);
        break;
    case OPTION_TEXT:
        if (*(char *const *)field != NULL)
            text_puts(text, *(char *const *)field);
        break;
    case OPTION_LIST:
        show_list(field, text);
        break;
    }
}

/* " from 1 to 65535"; a bound that any value keeps is left out. */
static void show_bounds(const struct option_row *row, struct text *text)
{
    const struct unit *units = units_of(row->kind);
    if (row->min != INT64_MIN) {
        text_puts(text, row->max == INT64_MAX ? " of at least " : " from ");
        show_scaled(row->min, units, text);
    }
    if (row->max != INT64_MAX) {
        text_puts(text, row->min == INT64_MIN ? " of at most " : " to ");
        show_scaled(row->max, units, text);
    }
}

static void show_choices(const char *choices, struct text *text)
{
    size_t length;
    const char *choice;
    text_puts(text, "one of ");
    for (int i = 0; (choice = choices_at(choices, i, &length)) != NULL; i++) {
        text_puts(text, i > 0 ? ", " : "");
        text_append(text, choice, length);
    }
}

void option__allowed(const struct option_row *row, struct text *text)
{
    switch (row->kind) {
    case OPTION_INT:
        text_puts(text, "a whole number");
        show_bounds(row, text);
        break;
    case OPTION_BYTES:
        text_puts(text, "a size");
        show_bounds(row, text);
        text_puts(text, ", written as 4096, 64KiB, 1MB or 8GiB");
        break;
    case OPTION_DURATION:
        text_puts(text, "a duration");
        show_bounds(row, text);
        text_puts(text, ", written as 50us, 500ms, 10s or 2m");
        break;
    case OPTION_BOOL:
        text_puts(text, "true or false");
        break;
    case OPTION_CHOICE:
        show_choices(row->choices, text);
        break;
    case OPTION_TEXT:
        text_printf(text, "%s, without control characters",
                    row->placeholder != NULL ? row->placeholder : "a text");
        break;
    case OPTION_LIST:
        text_printf(text, "%s, or up to %d of them with commas between",
                    row->placeholder != NULL ? row->placeholder : "a text", list_max(row));
        break;
    }
}

enum error option_value_read(const struct option_row *row, const char *value, void *configuration,
                             char *allowed, size_t size)
{
    struct text text;
    enum error error = option__read(row, value, configuration);
    if (error == ERROR_BAD_OPTION) {
        text_init_fixed(&text, allowed, size);
        option__allowed(row, &text);
    }
    return error;
}
