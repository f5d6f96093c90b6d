/* base/choices.h: lists of words as options name them, "auto|single|block", and the words for yes
 * and no.
 *
 * Threads: everything here is pure. Cost: one pass over the list.
 */
#ifndef BASE_CHOICES_H
#define BASE_CHOICES_H

#include <stdbool.h>
#include <stddef.h>

/* The place of word among the choices; -1 when it is not there. */
int choices_find(const char *choices, const char *word);
/* The choice at a place, not terminated; NULL past the last. */
const char *choices_at(const char *choices, int index, size_t *length);

/* true/false, True/False as Python has them, on/off, yes/no, 1/0. False, with *value as before, for
 * anything else. */
bool choices_read_bool(const char *word, bool *value);

#endif
