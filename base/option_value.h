/* base/option_value.h: an option's value as text and as a field. Private to base/option*.c. */
#ifndef BASE_OPTION_VALUE_H
#define BASE_OPTION_VALUE_H

#include "base/option.h"
#include "base/text.h"

/* Reads value into the row's field. BAD_OPTION: not a value of this kind, or out of bounds;
 * INTERNAL: out of memory. The field is then as before. A TEXT or LIST must be empty before. */
ERROR_MUST_CHECK enum error option__read(const struct option_row *row, const char *value,
                                         void *configuration);
/* Appends the field as a user would write it. Nothing for a TEXT or LIST that is not there. */
void option__show(const struct option_row *row, const void *configuration, struct text *text);
/* Appends what may be given, to be read after "give": "a whole number from 1 to 65535". */
void option__allowed(const struct option_row *row, struct text *text);
/* Copies the field of a row that may change. */
void option__copy(const struct option_row *row, void *configuration, const void *fresh);
/* Whether the row may have no value at all: its field is then NULL, or empty. */
bool option__may_lack(const struct option_row *row);
bool option__lacks(const struct option_row *row, const void *configuration);
/* Frees a TEXT or LIST and leaves it empty; nothing for other kinds. */
void option__clear(const struct option_row *row, void *configuration);

#endif
