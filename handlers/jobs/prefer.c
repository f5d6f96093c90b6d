/* handlers/jobs/prefer.c: see prefer.h. A field is a list of preferences, `name`, `name=value` or
 * `name="value"`, each with parameters behind semicolons, which none of ours has. */
#include "handlers/jobs/prefer.h"

#include <string.h>
#include <strings.h>

/* Past white space. */
static const char *skip(const char *at)
{
    return at + strspn(at, " \t");
}

/* Past a token, or a quoted string with its escapes. */
static const char *skip_word(const char *at)
{
    if (*at != '"')
        return at + strcspn(at, "=;, \t\"");
    for (at++; *at != '\0' && *at != '"'; at++)
        if (*at == '\\' && at[1] != '\0')
            at++;
    return *at == '"' ? at + 1 : at;
}

/* Past all up to the comma that ends a preference. */
static const char *skip_preference(const char *at)
{
    while (*at != '\0' && *at != ',') {
        const char *behind = skip_word(at);
        at = behind > at ? behind : at + 1;
    }
    return at;
}

static bool is_word(const char *begin, const char *end, const char *word)
{
    size_t length = (size_t)(end - begin);
    return strlen(word) == length && strncasecmp(begin, word, length) == 0;
}

int handlers__wait_seconds(const char *text, int length)
{
    int seconds = 0;
    for (int i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        seconds = seconds * 10 + (text[i] - '0');
        if (seconds > PREFER_WAIT_MAX_S)
            seconds = PREFER_WAIT_MAX_S;
    }
    return length > 0 ? seconds : -1;
}

void handlers__prefer(struct prefer *prefer, const char *value)
{
    const char *at = value;
    while (*at != '\0') {
        const char *name = skip(at), *end = skip_word(name), *next = skip(end);
        if (is_word(name, end, "respond-async"))
            prefer->respond_async = true;
        if (is_word(name, end, "wait") && *next == '=' && !prefer->has_wait) {
            const char *begin = skip(next + 1), *last = skip_word(begin);
            if (*begin == '"' && last > begin + 1) {
                begin++;
                last--;
            }
            int seconds = handlers__wait_seconds(begin, (int)(last - begin));
            prefer->wait_s = seconds > 0 ? seconds : 0;
            prefer->has_wait = true;
        }
        at = skip_preference(end);
        at += *at == ',';
    }
}
