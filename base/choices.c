/* base/choices.c: see choices.h. */
#include "base/choices.h"

#include <string.h>

const char *choices_at(const char *choices, int index, size_t *length)
{
    for (; index > 0; index--) {
        choices = strchr(choices, '|');
        if (choices == NULL)
            return NULL;
        choices++;
    }
    *length = strcspn(choices, "|");
    return choices;
}

int choices_find(const char *choices, const char *word)
{
    size_t wanted = strlen(word);
    for (int index = 0;; index++) {
        size_t length = strcspn(choices, "|");
        if (length == wanted && memcmp(choices, word, wanted) == 0)
            return index;
        if (choices[length] == '\0')
            return -1;
        choices += length + 1;
    }
}

bool choices_read_bool(const char *word, bool *value)
{
    int index = choices_find("false|true|False|True|off|on|no|yes|0|1", word);
    if (index < 0)
        return false;
    *value = index % 2 == 1;
    return true;
}
