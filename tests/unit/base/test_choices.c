/* tests/unit/base/test_choices.c: words in a list, and those for yes and no. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

#include "base/choices.h"

static void finds_whole_words_alone(void **state)
{
    static const struct {
        const char *choices, *word;
        int index;
    } rows[] = {
        {"auto|single|block", "auto", 0},
        {"auto|single|block", "single", 1},
        {"auto|single|block", "block", 2},
        {"auto|single|block", "", -1},
        {"auto|single|block", "sing", -1},
        {"auto|single|block", "singles", -1},
        {"auto|single|block", "auto|single", -1},
        {"auto|single|block", "BLOCK", -1},
        {"only", "only", 0},
        {"only", "onl", -1},
        {"a||c", "", 1},
        {"a||c", "c", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int index = choices_find(rows[i].choices, rows[i].word);
        if (index != rows[i].index)
            fail_msg("'%s' in %s: %d", rows[i].word, rows[i].choices, index);
    }
}

static void gives_each_choice_and_no_more(void **state)
{
    static const char *const wanted[] = {"auto", "single", "block"};
    size_t length = 0;
    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *choice = choices_at("auto|single|block", i, &length);
        assert_int_equal(length, strlen(wanted[i]));
        assert_memory_equal(choice, wanted[i], length);
    }
    assert_null(choices_at("auto|single|block", 3, &length));
    assert_null(choices_at("auto|single|block", 400, &length));
}

static void reads_words_for_yes_and_no(void **state)
{
    static const char *const yes[] = {"true", "True", "on", "yes", "1"};
    static const char *const no[] = {"false", "False", "off", "no", "0"};
    static const char *const neither[] = {"", "TRUE", "2", "tru", "true ", "off|on"};
    (void)state;
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        bool value = false;
        assert_true(choices_read_bool(yes[i], &value) && value);
        assert_true(choices_read_bool(no[i], &value) && !value);
    }
    for (size_t i = 0; i < sizeof neither / sizeof neither[0]; i++) {
        bool value = true;
        if (choices_read_bool(neither[i], &value) || !value)
            fail_msg("'%s' was read", neither[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_whole_words_alone),
        cmocka_unit_test(gives_each_choice_and_no_more),
        cmocka_unit_test(reads_words_for_yes_and_no),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
