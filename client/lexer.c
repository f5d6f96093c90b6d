/* client/lexer.c: see lexer.h. */
#include "client/lexer.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/number.h"

#define NUMBER_MAX 1000 /* bytes of a number */

void lexer_begin(struct lexer *lexer, const char *text, size_t size, const char *name,
                 struct failure *failure)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t skipped = size >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    *lexer = (struct lexer){.at = text + skipped,
                            .end = text + size,
                            .line_start = text + skipped,
                            .line = 1,
                            .name = name,
                            .failure = failure};
}

enum error lexer_fail(const struct lexer *lexer, const char *at, const char *format, ...)
{
    char words[200];
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    return failure_set(lexer->failure, ERROR_MALFORMED, "%.150s, line %lld, column %lld: %s",
                       lexer->name, (long long)lexer->line, (long long)(at - lexer->line_start) + 1,
                       words);
}

bool lexer_at_line_end(struct lexer *lexer)
{
    while (lexer->at < lexer->end && strchr(" \t\r", *lexer->at) != NULL && *lexer->at != '\0')
        lexer->at++;
    return lexer->at == lexer->end || *lexer->at == '\n';
}

bool lexer_next_line(struct lexer *lexer)
{
    size_t left = (size_t)(lexer->end - lexer->at);
    const char *end = left > 0 ? memchr(lexer->at, '\n', left) : NULL;
    lexer->at = end != NULL ? end + 1 : lexer->end;
    lexer->line_start = lexer->at;
    lexer->line += end != NULL;
    return lexer->at < lexer->end;
}

bool lexer_next_data(struct lexer *lexer, char mark)
{
    while (lexer_at_line_end(lexer) || *lexer->at == mark) {
        if (!lexer_next_line(lexer))
            return false;
    }
    return true;
}

size_t lexer_word(struct lexer *lexer, const char **word)
{
    (void)lexer_at_line_end(lexer);
    *word = lexer->at;
    while (lexer->at < lexer->end && *lexer->at != '\0' &&
           strchr(" \t\r\n,;\"", *lexer->at) == NULL)
        lexer->at++;
    return (size_t)(lexer->at - *word);
}

/* ---- Numbers ---- */

static bool read_name(const char *word, size_t length, double *value)
{
    static const struct {
        const char *name;
        double value;
    } names[] = {{"nan", NAN}, {"inf", INFINITY}, {"infinity", INFINITY}};
    bool is_negative = length > 0 && word[0] == '-';
    size_t sign = length > 0 && (word[0] == '-' || word[0] == '+');
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (length - sign == strlen(names[i].name) &&
            strncasecmp(word + sign, names[i].name, length - sign) == 0) {
            *value = is_negative ? -names[i].value : names[i].value;
            return true;
        }
    }
    return false;
}

/* As JSON writes it: no plus before, no zeros before, digits on both sides of the point. Returns
 * the length. */
static size_t as_json(const char *word, size_t length, char *json)
{
    size_t at = 0, count = 0;
    if (word[at] == '-')
        json[count++] = word[at];
    at += word[at] == '-' || word[at] == '+';
    while (at + 1 < length && word[at] == '0' && isdigit((unsigned char)word[at + 1]))
        at++;
    if (at < length && word[at] == '.' && at + 1 < length && isdigit((unsigned char)word[at + 1]))
        json[count++] = '0';
    for (; at < length; at++) {
        bool is_exponent = strchr("eEdD", word[at]) != NULL;
        json[count++] = (char)(is_exponent ? 'e' : word[at]);
        bool is_bare = word[at] == '.' && count > 1 && isdigit((unsigned char)json[count - 2]) &&
                       (at + 1 == length || !isdigit((unsigned char)word[at + 1]));
        if (is_bare)
            json[count++] = '0';
    }
    return count;
}

enum error lexer_number(struct lexer *lexer, double *value)
{
    char json[NUMBER_MAX + 3];
    const char *word, *rest;
    size_t length = lexer_word(lexer, &word);
    if (length == 0)
        return lexer_fail(lexer, word, "a number is missing");
    enum number_status status = number_read_f64(word, word + length, &rest, value);
    if ((status == NUMBER_OK && rest == word + length) || read_name(word, length, value))
        return ERROR_NONE;
    size_t count = length <= NUMBER_MAX ? as_json(word, length, json) : 0;
    if (count > 0 && status != NUMBER_OVERFLOW)
        status = number_read_f64(json, json + count, &rest, value);
    if (status == NUMBER_OVERFLOW)
        return lexer_fail(lexer, word, "%.*s is too large for a float64",
                          (int)(length < 40 ? length : 40), word);
    if (count == 0 || status != NUMBER_OK || rest != json + count)
        return lexer_fail(lexer, word, "\"%.*s\" is no number", (int)(length < 40 ? length : 40),
                          word);
    return ERROR_NONE;
}

enum error lexer_whole(struct lexer *lexer, const char *what, int64_t min, int64_t max,
                       int64_t *value)
{
    const char *word;
    int64_t sum = 0;
    size_t length = lexer_word(lexer, &word), i = 0;
    while (i < length && isdigit((unsigned char)word[i]) && checked_mul(sum, 10, &sum) &&
           checked_add(sum, word[i] - '0', &sum))
        i++;
    if (length == 0 || i < length || sum < min || sum > max)
        return lexer_fail(
            lexer, word, "%s \"%.*s\" is not usable; a whole number from %lld to %lld is expected",
            what, (int)(length < 40 ? length : 40), word, (long long)min, (long long)max);
    *value = sum;
    return ERROR_NONE;
}
