/* client/format.c: see format.h. */
#include "client/format.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name, *ending, *type;
} rows[] = {{"", "", NULL},
#define FORMAT_ROW(code, name, ending, type) {name, ending, type},
            FORMAT_TABLE(FORMAT_ROW)
#undef FORMAT_ROW
};
enum {
    ROWS = sizeof rows / sizeof rows[0]
};

enum format format_of_path(const char *path)
{
    size_t length = strlen(path);
    for (int i = 1; i < ROWS; i++) {
        size_t ending = strlen(rows[i].ending);
        if (length > ending && strcasecmp(path + length - ending, rows[i].ending) == 0)
            return (enum format)i;
    }
    return FORMAT_UNKNOWN;
}

enum format format_of_name(const char *name)
{
    int i = ROWS - 1;
    while (i > 0 && strcasecmp(name, rows[i].name) != 0)
        i--;
    return (enum format)i;
}

const char *format_media_type(enum format format)
{
    return rows[format_is_converted(format) ? FORMAT_NPY : format].type;
}

bool format_is_converted(enum format format)
{
    return format != FORMAT_UNKNOWN && rows[format].type == NULL;
}
