/* tests/unit/server/test_engine_choice.c: what --engine may say, and what it means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "server/engines/choice.h"

static void test_meanings(void **state)
{
    static const struct {
        const char *text;
        bool cuda, must, all, shared;
        const char *devices; /* '1' for each that is started first */
    } rows[] = {
        {"auto", true, false, true, false, "1000000000000000"},
        {"host", false, false, false, false, "0000000000000000"},
        {"cuda", true, true, true, false, "1000000000000000"},
        {"cuda:0", true, true, false, false, "1000000000000000"},
        {"cuda:0,2", true, true, false, false, "1010000000000000"},
        {"cuda:15,3", true, true, false, false, "0001000000000001"},
        {"cuda+host", true, true, true, true, "1000000000000000"},
        {"cuda:0,2+host", true, true, false, true, "1010000000000000"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct engine_choice choice;
        memset(&choice, 1, sizeof choice);
        assert_int_equal(engine_choice_parse(rows[i].text, &choice, NULL), ERROR_NONE);
        assert_int_equal(choice.cuda, rows[i].cuda);
        assert_int_equal(choice.must, rows[i].must);
        assert_int_equal(choice.all, rows[i].all);
        assert_int_equal(choice.shared, rows[i].shared);
        for (int d = 0; d < ENGINE_DEVICES_MAX; d++)
            assert_int_equal(choice.devices[d], rows[i].devices[d] == '1');
    }
}

static void test_refusals(void **state)
{
    static const char *const rows[] = {
        "",          "Auto",        "gpu",
        "host+cuda", "auto+host",   "host+host",
        "cuda:",     "cuda:16",     "cuda:-1",
        "cuda:0,",   "cuda:,0",     "cuda:0,0",
        "cuda: 0",   "cuda:00",     "cuda:0x",
        "cuda:0+",   "cuda+hosts",  "cuda0",
        "cuda:0 ",   "autocuda",    "cuda:999",
        "cuda:0;1",  "cuda:+host",  "cuda:1.5",
        "host ",     "cuda:0+cuda", "cuda:12345678901234567890",
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct engine_choice choice;
        struct failure failure = {0};
        assert_int_equal(engine_choice_parse(rows[i], &choice, &failure), ERROR_BAD_OPTION);
        assert_non_null(strstr(failure.detail, rows[i]));
        assert_non_null(strstr(failure.detail, "cuda:0,2"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meanings),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
