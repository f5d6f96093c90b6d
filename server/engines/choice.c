/* server/engines/choice.c: see choice.h. */
#include "server/engines/choice.h"

#include <stddef.h>
#include <string.h>

/* Takes a word off the front of *text. */
static bool take(const char **text, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0)
        return false;
    *text += length;
    return true;
}

/* 0 to ENGINE_DEVICES_MAX - 1, without leading zeros; -1 when there is none. */
static int take_device(const char **text)
{
    const char *at = *text;
    int device = 0, digits = 0;
    for (; *at >= '0' && *at <= '9' && digits < 3; at++, digits++)
        device = 10 * device + (*at - '0');
    bool padded = digits > 1 && **text == '0';
    *text = at;
    return digits == 0 || padded || device >= ENGINE_DEVICES_MAX ? -1 : device;
}

static bool take_devices(const char **text, struct engine_choice *choice)
{
    do {
        int device = take_device(text);
        if (device < 0 || choice->devices[device])
            return false;
        choice->devices[device] = true;
    } while (take(text, ","));
    return true;
}

static bool take_all(const char *text, struct engine_choice *choice)
{
    if (take(&text, "host"))
        return *text == '\0';
    choice->cuda = choice->all = choice->devices[0] = true;
    if (take(&text, "auto"))
        return *text == '\0';
    if (!take(&text, "cuda"))
        return false;
    choice->must = true;
    if (take(&text, ":")) {
        choice->all = choice->devices[0] = false;
        if (!take_devices(&text, choice))
            return false;
    }
    choice->shared = take(&text, "+host");
    return *text == '\0';
}

enum error engine_choice_parse(const char *text, struct engine_choice *choice,
                               struct failure *failure)
{
    *choice = (struct engine_choice){0};
    if (take_all(text, choice))
        return ERROR_NONE;
    return failure_set(failure, ERROR_BAD_OPTION,
                       "--engine \"%.80s\" is not allowed; it takes auto, host, cuda, a list of "
                       "different devices from 0 to %d as in cuda:0,2, and cuda+host or "
                       "cuda:0,2+host.",
                       text, ENGINE_DEVICES_MAX - 1);
}
