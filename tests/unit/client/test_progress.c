/* tests/unit/client/test_progress.c: the line of a transfer at each stage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/clock.h"
#include "client/progress.h"

#define MIB (INT64_C(1) << 20)

static const struct {
    struct progress_state state;
    double seconds;
    const char *line;
} rows[] = {
    {{PROGRESS_COMPUTING, 0, 0}, 0.5, "computing  0 s"},
    {{PROGRESS_UPLOAD, 0, 1000}, 1, "upload [                        ]   0%  0 B of 1000 B  1 s"},
    {{PROGRESS_UPLOAD, 8 * MIB, 64 * MIB},
     2.9,
     "upload [###                     ]  12%  8.0 MiB of 64.0 MiB  2 s"},
    {{PROGRESS_DOWNLOAD, 0, 2048},
     3,
     "download [                        ]   0%  0 B of 2.0 KiB  3 s"},
    {{PROGRESS_DOWNLOAD, 2048, 2048},
     60,
     "download [########################] 100%  2.0 KiB of 2.0 KiB  60 s"},
    {{PROGRESS_DOWNLOAD, 4096, 2048},
     0,
     "download [########################] 100%  4.0 KiB of 2.0 KiB  0 s"},
    {{PROGRESS_DOWNLOAD, 5, 0}, 0, "download [                        ]   0%  5 B  0 s"},
    {{PROGRESS_WAITING, 0, 0}, 7, "waiting  7 s"},
    {{PROGRESS_WAITING, 3, 0}, 7, "waiting, position 3  7 s"},
    {{PROGRESS_RUNNING, 5000, 10000}, 9, "running [############            ]  50%  9 s"},
    {{PROGRESS_RUNNING, -1, 10000}, 9, "running [                        ]   0%  9 s"},
};

static void test_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char buffer[128];
        struct text line;
        text_init_fixed(&line, buffer, sizeof buffer);
        progress_text(&rows[i].state, (uint64_t)(rows[i].seconds * (double)CLOCK_S), &line);
        assert_string_equal(buffer, rows[i].line);
    }
}

/* The longest that there is: as wide as a terminal has room for. */
static void test_width(void **state)
{
    (void)state;
    char buffer[128];
    struct text line;
    text_init_fixed(&line, buffer, sizeof buffer);
    progress_text(&(struct progress_state){PROGRESS_DOWNLOAD, 1023 * MIB, 1023 * 1024 * MIB},
                  86400 * CLOCK_S, &line);
    assert_true(strlen(buffer) <= 79);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines), cmocka_unit_test(test_width)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
